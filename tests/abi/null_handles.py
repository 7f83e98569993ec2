#!/usr/bin/env python3
"""null_handles.py LIBRARY - calls every public function with NULL for its handles.

A call that returns a status returns INVALID with a message, a getter returns NULL or 0, and every
other call, such as a free function, does nothing. A parameter whose comment says what NULL means is
no handle here. `*out` becomes NULL. Each call is made in a child process, so a crash is a line of
the result.
"""
import ctypes
import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from cheaders import read_header  # noqa: E402
from csource import ROOT  # noqa: E402

GOLDEN = ROOT / "tests/abi/golden"
INVALID = int(re.search(r"^ZARR_ERR_INVALID = (-\d+)$", (GOLDEN / "values.txt").read_text(), re.M)[1])
SIZES = {name: int(size) for name, size in
         re.findall(r"^struct (\w+) size (\d+)", (GOLDEN / "structs.txt").read_text(), re.M)}
KEPT = []  # memory that arguments point to
ERROR = ctypes.create_string_buffer(SIZES["zarr_error"])
MESSAGE = int(re.search(r"^struct zarr_error .*?^  message at (\d+)", (GOLDEN / "structs.txt").read_text(),
                        re.M | re.S)[1])


def headers():
    paths = sorted(p.relative_to(ROOT / "include") for p in (ROOT / "include").rglob("*.h"))
    return [read_header(str(p)) for p in paths]


def memory(kind):
    """Zeros, which begin with the size of the struct if it is one."""
    block = ctypes.create_string_buffer(max(SIZES.get(kind, 0), 4096))
    block[0:4] = SIZES.get(kind, 0).to_bytes(4, sys.byteorder)
    KEPT.append(block)
    return ctypes.cast(block, ctypes.c_void_p)


def argument(text, name, doc, opaque, optional):
    """(value, whether it is a handle) of one parameter."""
    kind = re.sub(r"\b(?:const|struct)\b", "", text)
    base, stars = re.match(r"\s*(\w+)", kind)[1], kind.count("*") + kind.count("[")
    if "(*" in text or base.endswith("_fn") or name in ("opts", "user"):
        return None, False
    if name == "err":
        return ctypes.cast(ERROR, ctypes.c_void_p), False
    if stars == 1 and base in opaque:
        return None, "NULL" not in doc.params.get(name, "") and base not in optional
    if stars:
        return (ctypes.c_char_p(b"a") if base == "char" and "const" in text and stars == 1 else memory(base)), False
    return (ctypes.c_double(0) if base == "double" else ctypes.c_uint64(0)), False


def pointer_at(block):
    return ctypes.c_void_p.from_address(block.value).value


def call(library, item, arguments):
    function = getattr(library, item.name)
    status = item.result == "zarr_status"
    out = [value for value, (text, name) in zip(arguments, item.params) if name == "out" and text.count("*") == 2]
    for block in out:
        ctypes.memset(block, 0xee, ctypes.sizeof(ctypes.c_void_p))
    function.restype = None if item.result == "void" else ctypes.c_int if status else ctypes.c_uint64
    got = function(*arguments)
    if status:
        return got == INVALID and ERROR.raw[MESSAGE] != 0 and not any(map(pointer_at, out))
    if "-1 if" in f"{item.doc.text} {item.doc.returns}":  # found, or not
        return got & 0xffffffff == 0xffffffff
    return got in (None, 0)


def crashes_or_differs(library, item, arguments):
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os._exit(0 if call(library, item, arguments) else 1)
    _, ended = os.waitpid(child, 0)
    if os.WIFSIGNALED(ended):
        return f"dies of signal {os.WTERMSIG(ended)}"
    return "accepts it" if os.WEXITSTATUS(ended) else None


def main():
    library, wrong, tested = ctypes.CDLL(sys.argv[1]), [], 0
    everything = [item for header in headers() for item in header.items]
    opaque = {item.name for item in everything if item.kind == "opaque"}
    for item in everything:
        if item.kind != "function" or not hasattr(library, item.name):
            continue
        # NULL: the default context; all elements
        optional = ("zarr_context",) if item.header == "zarrc/easy.h" else \
            () if item.name.startswith("zarr_selection_") else ("zarr_selection",)
        pairs = [argument(text, name, item.doc, opaque, optional) for text, name in item.params if name]
        if not any(is_handle for _, is_handle in pairs):
            continue
        tested += 1
        if problem := crashes_or_differs(library, item, [value for value, _ in pairs]):
            wrong.append(f"{item.header}:{item.line}: {item.name}() with NULL {problem}")
    print("\n".join([*wrong, f"null_handles: {tested} functions, {len(wrong)} problems"]))
    return 1 if wrong or tested < 100 else 0


sys.exit(main())
