"""zarrs_crate - the Rust crate zarrs, called through the program in tests/oracles/zarrs, and a
list of what it lacks. Elements are NumPy arrays of items as zarrc has them in memory; those of
variable length are lists of bytes."""
import json
import pathlib
import re
import struct
import subprocess

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Refusal(Exception):
    """The stderr of the program."""


def _program():
    """(path, None) or (None, why there is none)."""
    done = subprocess.run([ROOT / "scripts/zarrs-oracle", "--built"], capture_output=True, text=True)
    return (done.stdout.strip(), None) if done.returncode == 0 else (None, done.stderr.strip())


PROGRAM, MISSING = _program()
needed = pytest.mark.skipif(PROGRAM is None, reason=str(MISSING))


def run(*words, data=b""):
    done = subprocess.run([PROGRAM, *map(str, words)], input=data, capture_output=True)
    assert done.returncode in (0, 1) and b"panicked" not in done.stderr, done.stderr.decode()
    if done.returncode:
        raise Refusal(done.stderr.decode().strip())
    return done.stdout


# ---- arrays ------------------------------------------------------------------------------

def create(folder, document):
    folder.mkdir(parents=True, exist_ok=True)
    run("create", folder, data=json.dumps(document).encode())


def info(folder):
    facts = json.loads(run("info", folder))
    return {**facts, "fill_value": bytes(facts["fill_value"])}


def _area(area):
    return [",".join(f"{a}:{b}" for a, b in area)] if area else []


def read(folder, dtype, area=None):
    """Flat: fixed items, or a list of bytes for dtype None."""
    block, rest = _get(run("read", folder, *_area(area)))
    assert not rest
    if dtype is None:
        return block
    return np.frombuffer(np.ascontiguousarray(block).tobytes(), dtype).copy()


def write(folder, items, area=None, depth=0):
    """Depth: how many masks end each item."""
    run("write", folder, *_area(area), data=_put(items, depth))


def fills(dtype, values):
    """For each value (bytes, how zarrs writes it), or None where it refuses."""
    found = json.loads(run("fills", data=json.dumps({"data_type": dtype, "fill_values": values}).encode()))
    return [f and (bytes(f["bytes"]), f["json"]) for f in found]


# ---- blocks: the head of the program's main.rs says what they are ----------------------------

def _get(text):
    kind, n = text[:1], struct.unpack_from("=Q", text, 1)[0]
    text = text[9:]
    if kind == b"F":
        return np.frombuffer(text[:n], "u1"), text[n:]
    if kind == b"V":
        ends = struct.unpack_from(f"={n + 1}Q", text)
        data, size = text[8 * (n + 1):], ends[-1]
        return [data[a:b] for a, b in zip(ends, ends[1:])], data[size:]
    assert kind == b"O"
    mask = np.frombuffer(text[:n], "u1")
    inner, rest = _get(text[n:])
    if isinstance(inner, list):
        return [v if m else None for v, m in zip(inner, mask)], rest
    return np.hstack([inner.reshape(n, -1), mask[:, None]]), rest


def _put(items, depth):
    if isinstance(items, list):
        mask = bytes(v is not None for v in items) if depth else b""
        items = [v or b"" for v in items]
        ends = np.cumsum([0, *map(len, items)]).astype("u8")
        block = b"V" + struct.pack("=Q", len(items)) + ends.tobytes() + b"".join(items)
        return (b"O" + struct.pack("=Q", len(mask)) + mask + block) if depth else block
    rows = np.frombuffer(np.ascontiguousarray(items).tobytes(), "u1").reshape(items.size, -1)
    head = b""
    for d in range(depth):
        head += b"O" + struct.pack("=Q", len(rows)) + rows[:, -1 - d].tobytes()
    rows = rows[:, :rows.shape[1] - depth]
    return head + b"F" + struct.pack("=Q", rows.size) + rows.tobytes()


# ---- both ways -----------------------------------------------------------------------------

def read_ours(array, dtype):
    if dtype is None:
        return array.read_vlen()
    return array.read(dtype).reshape(-1)


def write_ours(array, items):
    if isinstance(items, list):
        array.write_vlen(items)
    else:
        array.write(items)


def same(got, expected):
    if isinstance(expected, list):
        assert got == expected
        return
    expected = expected.reshape(-1)
    assert got.size == expected.size
    wrong = [i for i in range(got.size) if got[i].tobytes() != expected[i].tobytes()]
    assert not wrong, (len(wrong), wrong[0], got[wrong[0]].tobytes(), expected[wrong[0]].tobytes())


def cut_part(items, shape, area):
    """The box of a flat list or an array."""
    box = tuple(slice(a, b) for a, b in area)
    if isinstance(items, list):
        return [items[i] for i in np.arange(len(items)).reshape(shape)[box].reshape(-1)]
    return items.reshape(shape)[box].copy()


def read_chunks(store):
    return {k: store.get(k) for k in store.keys() if k.rpartition("/")[2] not in (
        "zarr.json", ".zarray", ".zattrs", ".zgroup")}


def middle(shape):
    return [(n // 3, n - n // 4) for n in shape]


def check(context, folder, document, items, depth=0, same_bytes=True, parts=lambda part: part,
          reads=True):
    """zarrs creates and writes, we read; we create and write, zarrs reads, all of it and a box;
    then it writes a box into ours. The bytes of the chunks are equal, too. `parts` is what to
    compare of what zarrs reads of a part of a chunk; None: nothing. reads: whether it reads."""
    shape = tuple(document["shape"])
    dtype = None if isinstance(items, list) else items.dtype
    area = middle(shape)
    create(folder / "theirs", document)
    write(folder / "theirs", items, depth=depth)
    store = context.store(str(folder / "theirs"))
    theirs = store.open()
    same(read_ours(theirs, dtype), items)
    assert theirs.verify() == []
    ours_store = context.store(str(folder / "ours"), create=True)
    ours = ours_store.create(document=document)
    write_ours(ours, items)
    assert ours.verify() == []
    if reads:
        same(read(folder / "ours", dtype), items)
    has_box = reads and bool(shape) and all(a < b for a, b in area)
    if has_box and parts:
        same(parts(read(folder / "ours", dtype, area)), parts(cut_part(items, shape, area)))
    facts = info(folder / "ours")
    if dtype is not None and not depth:
        assert facts["fill_value"] == ours.fill_bytes == theirs.fill_bytes
    assert tuple(facts["chunk_counts"]) == ours.chunk_counts == theirs.chunk_counts
    mine, others = read_chunks(ours_store), read_chunks(store)
    assert mine.keys() == others.keys()
    if same_bytes:
        different = [k for k in mine if mine[k] != others[k]]
        assert not different, (different, mine[different[0]], others[different[0]])
    if has_box:
        back = list(reversed(items)) if isinstance(items, list) else items.reshape(-1)[::-1].reshape(shape)
        write(folder / "ours", cut_part(back, shape, area), area, depth)
        want = _patch(items, back, shape, area)
        same(read_ours(ours_store.open(), dtype), want)
        assert ours_store.open().verify() == []
    return ours


def _patch(items, back, shape, area):
    box = tuple(slice(a, b) for a, b in area)
    if isinstance(items, list):
        where = np.zeros(shape, bool)
        where[box] = True
        return [b if w else a for a, b, w in zip(items, back, where.reshape(-1))]
    want = items.reshape(shape).copy()
    want[box] = back[box]
    return want


def version():
    """(0, 23, 14): of the crate."""
    return tuple(int(n) for n in re.findall(r"\d+", run("version").decode()))
