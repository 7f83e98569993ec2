#!/usr/bin/env python3
"""conformance - arrays of stores.py in memory of every kind: read whole and in part, compared byte for byte, and written from it.

    conformance.py STORES OUT [--plugin FILE] [--kinds host,device,...]

OUT gets what was written, for `--check OUT` with an interpreter that has zarr-python. The last line is JSON.
"""
import argparse
import json
import shutil
import sys
import traceback
from pathlib import Path

import numpy as np
from library import Failure, Library, Stats

PARTS = {1: "3::7", 2: "5:650:3, ::-1", 3: "7:45, ::-3, 1:8:2", 5: "1:, ::2, 0, 1:5, ..."}
SEVEN = 119  # what memory has before a read


def is_metadata(path):
    return path.name in ("zarr.json", ".zarray", ".zattrs")


def choose_part(values):
    """The text of a selection of an array and its elements."""
    text = PARTS.get(values.ndim)
    if text is None or not values.size:
        return None, values
    index = []
    for word in text.split(", "):
        numbers = [int(n) if n else None for n in word.split(":")] if word != "..." else None
        index.append(... if numbers is None else numbers[0] if len(numbers) == 1 else slice(*numbers))
    try:
        return text, np.ascontiguousarray(values[tuple(index)])
    except IndexError:
        return None, values


def reads(library, array, values, kind, stats):
    """Reads all and a part; what differs."""
    wrong = []
    for what, (text, want) in {"whole": (None, values), "part": choose_part(values)}.items():
        if what == "part" and text is None:
            continue
        memory = library.memory(kind, max(1, want.nbytes))
        try:
            memory.put(np.full(want.nbytes, SEVEN, np.uint8))
            array.read(memory, want.shape, selection=text, stats=stats)
            if memory.get(want.nbytes).tobytes() != want.tobytes():
                wrong.append(f"{what}: other bytes")
        finally:
            memory.free()
    return wrong


def write(library, source, target, values, kind):
    """Writes from memory of a kind, and reads by the CPU."""
    for path in source.rglob("*"):
        if is_metadata(path):
            to = target / path.relative_to(source)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, to)
    array = library.open(target)
    memory, back = library.memory(kind, max(1, values.nbytes)), library.memory("host", max(1, values.nbytes))
    try:
        memory.put(values)
        array.write(memory, values.shape)
        array.read(back, values.shape)
        return [] if back.get(values.nbytes).tobytes() == values.tobytes() else ["written: other bytes"]
    finally:
        memory.free()
        array.close()


def find_codecs(path):
    """Names of the codecs in the document of an array."""
    if (path / ".zarray").exists():
        document = json.loads((path / ".zarray").read_text())
        more = {"transpose"} if document["order"] == "F" else set()
        return {"bytes", *more, *(codec["id"] for codec in [*(document["filters"] or []), document["compressor"]] if codec)}

    def names(codecs):
        for codec in codecs:
            yield codec["name"]
            for inner in codec.get("configuration", {}).values():
                if isinstance(inner, list) and inner and isinstance(inner[0], dict):
                    yield from names(inner)
    return set(names(json.loads((path / "zarr.json").read_text())["codecs"]))


def loses(name):
    """Filters that cannot encode what they decode, bit for bit."""
    return any(word in name for word in ("astype", "fixedscaleoffset"))


def one(library, path, values, kind, out, counts):
    array, stats = library.open(path), Stats()
    try:
        wrong = reads(library, array, values, kind, stats)
        counts["reads"] += 2
        for member in ("chunks_total", "chunks_fallback", "copies_decoded_host"):
            counts[member] += getattr(stats, member)
        if not loses(path.name):
            wrong += write(library, path, out / kind / path.name, values, kind)
            counts["writes"] += 1
        return wrong
    finally:
        array.close()


def check(out, stores):
    """What zarr-python reads of what was written."""
    import zarr
    wrong = []
    for path in sorted(out.glob("*/*")):
        values, got = np.load(stores / f"{path.name}.npy"), np.asarray(zarr.open_array(path, mode="r")[...])
        if got.astype(values.dtype).tobytes() != values.tobytes():
            wrong.append(f"{path.parent.name}/{path.name}")
    return {"zarr-python": zarr.__version__, "arrays": len(list(out.glob("*/*"))), "wrong": wrong}


def run(options):
    library = Library(plugin=options.plugin)
    said = {"kinds": {}, "codecs": {}, "wrong": []}
    for kind in options.kinds.split(","):
        codecs = {True: set(), False: set()}  # of arrays that were right, and that were not
        counts = said["kinds"][kind] = dict.fromkeys(("arrays", "reads", "writes", "chunks_total", "chunks_fallback",
                                                      "copies_decoded_host"), 0)
        for file in sorted(options.stores.glob("*.npy")):
            try:
                found = one(library, file.with_suffix(""), np.load(file), kind, options.out, counts)
            except (Failure, OSError) as why:
                found = [str(why)]
            except Exception:
                found = [traceback.format_exc(limit=2)]
            counts["arrays"] += 1
            codecs[not found] |= find_codecs(file.with_suffix(""))
            said["wrong"] += [f"{kind} {file.stem}: {what}" for what in found]
        said["codecs"][kind] = sorted(codecs[True] - codecs[False])  # scripts/status reads them
        print(kind, counts, flush=True)
    library.close()
    return said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stores", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--plugin")
    parser.add_argument("--kinds", default="host")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    said = check(options.out, options.stores) if options.check else run(options)
    print("\n".join(said["wrong"][:60]))
    print(json.dumps(said))
    return bool(said["wrong"])


sys.exit(main())
