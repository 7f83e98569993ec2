"""Memory stays bounded, however often each main entry is called. Counted are the bytes that malloc has
given out, the blocks of Python's own allocator and, in a debug build of Python, all references.

ZARRC_LEAK_CALLS says how often each entry is called, 1,000 times by default; `scripts/run-tests
python-long` calls each 100,000 times, and once more with Debian's python3-dbg."""
import asyncio
import ctypes
import gc
import os
import sys

import numpy as np
import pytest

import zarrc
from zarrc import _core, plugins

CALLS = int(os.environ.get("ZARRC_LEAK_CALLS", "1000"))
WINDOWS = 5
IS_DEBUG = hasattr(sys, "gettotalrefcount")
GIB = 1 << 30


class Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
                ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]


try:
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = Mallinfo
except AttributeError:
    mallinfo2 = None


def measure_use():
    """(bytes of malloc, blocks of Python, references, resident bytes)"""
    gc.collect()
    info = mallinfo2() if mallinfo2 else Mallinfo()
    references = sys.gettotalrefcount() if IS_DEBUG else 0
    with open("/proc/self/statm", encoding="ascii") as f:
        resident = int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    return info.uordblks + info.hblkhd, sys.getallocatedblocks(), references, resident


@plugins.register
class Same(plugins.BytesCodec):
    name = "test.leaks"

    def encode(self, chunk, spec):
        return bytes(chunk)

    decode = encode


class Shelf(plugins.Store):
    def __init__(self):
        self.values = {}

    def get(self, key):
        return self.values.get(key)

    def set(self, key, value):
        self.values[key] = value

    def delete(self, key):
        self.values.pop(key, None)

    def list_prefix(self, prefix):
        return [key for key in self.values if key.startswith(prefix)]


class Place:
    """What the entries work on."""

    def __init__(self, path):
        self.path, self.numbers = path, np.arange(24, dtype="i4").reshape(4, 6)
        self.local = zarrc.create_array(path, name="a", data=self.numbers, chunks=(2, 3), shards=(4, 6),
                                        attributes={"a": 1}, overwrite=True)
        self.store = zarrc.open_store("memory:")
        self.group = zarrc.open_group(self.store)
        self.array = self.group.create_array("a", data=self.numbers, chunks=(2, 3), attributes={"a": 1})
        self.kept = self.group["a"]
        self.text = self.group.create_array("t", shape=3, dtype=str)
        self.text[:] = ["a", "bc", "d" * 100]
        self.damaged = self.group.create_array("d", data=self.numbers, chunks=(4, 6))
        self.store.set("d/c/0/0", b"damage")
        self.dict = {}
        self.foreign = zarrc.create_array(self.dict, name="a", data=self.numbers, chunks=(2, 3))
        self.shelf = zarrc.create_array(Shelf(), name="a", data=self.numbers, chunks=(2, 3))
        self.codec = self.group.create_array("p", data=self.numbers, chunks=(2, 3), compressors="test.leaks")
        self.out, self.bytes = np.empty((4, 6), "i4"), memoryview(bytearray(4 * 24)).cast("i", (4, 6))
        self.queue = _core.new_queue()
        self.loop = asyncio.new_event_loop()

    def fails(self, error, call, *arguments):
        try:
            call(*arguments)
        except error:
            return
        raise AssertionError(f"{call} did not fail")


def entry_open(p):
    zarrc.open_array(p.path, path="a", mode="r"), zarrc.open_group(p.path, mode="r")["a"]


def entry_create(p):
    zarrc.create_array(p.store, name="n", shape=4, dtype="f8", overwrite=True, attributes={"x": [1, 2]})


def entry_read(p):
    p.array[...], p.local[1:3, ::-2], p.array[1, 2], p.array.read(out=p.out)


def entry_write(p):
    p.array[...] = p.numbers
    p.array[1:3, 2] = 5


def entry_iterate(p):
    list(p.array), list(p.group.members()), p.group.tree(), list(p.store.list()), len(p.array)


def entry_selections(p):
    (p.array.oindex[[0, 2], :], p.array.vindex[[0, 1], [2, 3]], p.array.blocks[0, 1], p.array[p.numbers > 5], p.array[[1, 2], [3, 4]])
    p.array.oindex[[0, 2], 1] = 3


def entry_errors(p):
    p.fails(IndexError, p.array.__getitem__, 99)
    p.fails(IndexError, p.array.__getitem__, "x")
    p.fails(KeyError, p.group.__getitem__, "none")
    p.fails(ValueError, lambda: p.array.read(out=np.empty(3)))
    p.fails(zarrc.ZarrcError, p.damaged.__getitem__, ...)
    p.fails(FileNotFoundError, lambda: zarrc.open_array("/none/such.zarr"))


def entry_attributes(p):
    array = p.group["a"]  # a handle keeps the texts of its metadata that it gave out
    array.attrs["a"] = 2
    array.attrs.asdict(), p.group.attrs.asdict(), p.array.metadata, p.array.info, p.array.fill_value, p.array.dtype


def entry_async(p):
    async def work():
        await asyncio.gather(*[p.array.async_array.getitem(i) for i in range(4)])
        await p.array.async_array.setitem(0, 5)

    p.loop.run_until_complete(work())


def entry_text(p):
    p.text[:], p.text[2]
    p.text[0] = "xyz"


def entry_arrow(p):
    pyarrow = pytest.importorskip("pyarrow")
    pyarrow.array(p.text.column())


def entry_dlpack(p):
    np.from_dlpack(p.array), p.array.__dlpack__(), p.array.tensor().__dlpack__(max_version=(1, 0))


def entry_dlpack_without_memory(p):
    """Each step of making a capsule fails once for want of memory."""
    testcapi = pytest.importorskip("_testcapi", reason="this Python has no tests of its own")
    tensor = p.array._tensor(p.numbers)
    failures = 0
    for step in range(10):
        testcapi.set_nomemory(step // 2, step // 2 + 1)
        try:
            tensor.capsule(step % 2)
        except MemoryError:
            failures += 1
        finally:
            testcapi.remove_mem_hooks()
    assert failures


def entry_foreign(p):
    p.foreign[...], p.shelf[1]
    p.foreign[0] = 1
    p.shelf[1, 1] = 5


def entry_codec(p):
    p.codec[...]
    p.codec[0] = 3


def entry_shape(p):
    array = p.kept
    array.append(p.numbers)
    array.shape, array.chunks, array[0, 0]
    array.resize((4, 6))
    array.shape, array.cdata_shape


def entry_bare(p):
    """Without NumPy, so that a debug build counts every reference exactly."""
    array, store = p.array, p.store
    array._read(None, p.bytes, 0), array._write(None, p.bytes, 0)
    array._select((slice(1, 3), 2), False).shape, array.shape, array.dimension_names, array.path, array._facts
    array._count_stored(True), array._chunks(True), array._places(["a/c/0/0"])
    store.set("k", b"value"), store.get("k"), store.get("none"), list(store.list()), store.delete("k"), "k" in store
    p.group.attrs.asdict(), p.group._children if hasattr(p.group, "_children") else None
    p.foreign._read(None, p.bytes, 0), p.codec._read(None, p.bytes, 0)
    p.fails(IndexError, array._select, (99, 0), False)
    p.fails(zarrc.ZarrcError, p.damaged._read, None, p.bytes, 0)


ENTRIES = {name.removeprefix("entry_"): value for name, value in list(globals().items()) if name.startswith("entry_")}
if IS_DEBUG:  # NumPy is no debug build: what it does is not counted
    ENTRIES = {"bare": entry_bare}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.timeout(1800)
def test_memory_is_bounded(tmp_path, entry):
    place, call = Place(str(tmp_path / "x.zarr")), ENTRIES[entry]
    n = max(CALLS // WINDOWS, 1)
    for _ in range(min(CALLS, 300)):
        call(place)
    counts = [measure_use()]
    for _ in range(WINDOWS):
        for _ in range(n):
            call(place)
        counts.append(measure_use())
    malloc, blocks, references, resident = zip(*counts)

    def growth(values):
        """Of the window that grew least: caches and other threads' work come and go."""
        return min(b - a for a, b in zip(values, values[1:]))

    assert growth(malloc) < max(8 * n, 16384), f"bytes of malloc in windows of {n} calls: {malloc}"
    assert growth(blocks) < max(n // 4, 50), f"blocks of Python in windows of {n} calls: {blocks}"
    assert growth(references) < max(n // 4, 50), f"references in windows of {n} calls: {references}"
    assert resident[-1] - resident[1] < max(16 << 20, 40 * CALLS), f"resident bytes: {resident}"
    place.loop.close()
