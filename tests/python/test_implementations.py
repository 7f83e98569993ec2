"""Implementations of codecs in Python: batches of memory of the library, on the host and on the fake device of tests/fakedev."""
import ctypes
import gc
import itertools
import os
import shutil
import sys
import threading
import weakref
import zlib

import numpy as np
import pytest
from test_device import device, needs_own, plugin, with_cupy  # noqa: F401: `device` is a fixture
from test_device import pytestmark as needs_device
from test_plugins import ROOT, environment, package, run

import zarrc
from zarrc import _plugins, plugins

GZIP = {"name": "gzip", "configuration": {"level": 1}}
numbers_used = itertools.count()


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """What a test registers is there for this test only."""
    monkeypatch.setattr(_plugins.registry, "_rows", _plugins.registry._rows)


def inflate(inputs, outputs, batch):
    for one, to in zip(inputs, outputs):
        memoryview(to)[:] = zlib.decompress(one, 31)


def deflate(inputs, outputs, batch):
    found = []
    for one, to in zip(inputs, outputs):
        press = zlib.compressobj(1, zlib.DEFLATED, 31)
        data = press.compress(one) + press.flush()
        memoryview(to)[:len(data)] = data
        found.append(len(data))
    return found


def implement(decode=inflate, encode=None, base=plugins.Implementation, **members):
    """Registers an implementation of gzip. `calls` has (chunks, name of the next one, configuration, thread) of each call."""
    calls = []

    def counter(function):
        def method(self, inputs, outputs, batch):
            calls.append((len(inputs), batch.next_name, str(self.configuration), threading.current_thread().name))
            return function(inputs, outputs, batch)
        return method

    if decode is not None:
        members.setdefault("decode_batch", counter(decode))
    if encode is not None:
        members.setdefault("encode_batch", counter(encode))
    name = members.pop("name", f"test.way{next(numbers_used)}")
    cls = type("Way", (base,), {"codec": "gzip", "name": name, "memory": "host", "is_safe": True, "calls": calls, "__qualname__": f"Way_{name}", **members})
    return plugins.register(cls)


def make(path, data, **more):
    with zarrc.config.set({"entry_points": False}):
        return zarrc.create_array(path, data=data, chunks=(7, 9), compressors=GZIP, **more)


# ---- host memory ----


@pytest.mark.parametrize("more", [{}, {"zarr_format": 2}, {"filters": [{"name": "numcodecs.delta", "configuration": {"dtype": "<i4"}}]}])
def test_host(path, numbers, more):
    way = implement(encode=deflate)
    array = zarrc.create_array(path, data=numbers, chunks=(7, 9), compressors=GZIP if not more.get("zarr_format") else {"id": "gzip", "level": 1}, **more)
    stats = zarrc.Stats()
    assert (array.read(stats=stats) == numbers).all() and (array[::-3, 5:9] == numbers[::-3, 5:9]).all()
    assert stats.chunks_fallback == 0 and stats.chunks_done == 45 and stats.bytes_decoded == 45 * 7 * 9 * 4
    assert {(call[1][:4], *call[2:]) for call in way.calls} == {("cpu.", "{'level': 1}", "zarrc-plugins")}
    zarrc.config.set({"codec_preference": "gzip=cpu"})
    assert (zarrc.open_array(path)[...] == numbers).all()


def test_a_wave_is_one_call(path):
    way = implement(encode=deflate)
    array = zarrc.create_array(path, shape=(64, 64), chunks=(4, 4), dtype="i4", compressors=GZIP)
    array[...] = 1
    array[...]
    assert sum(call[0] for call in way.calls) == 512 and len(way.calls) < 20


def test_shards(path, numbers):
    way = implement(encode=deflate)
    array = zarrc.create_array(path, shape=numbers.shape, dtype="i4", chunks=(10, 10), shards=(30, 20), compressors=GZIP, fill_value=3)
    array[5:55, 3:37] = numbers[5:55, 3:37]
    found = np.full_like(numbers, 3)
    found[5:55, 3:37] = numbers[5:55, 3:37]
    array[20, 20] = found[20, 20] = 5
    assert (zarrc.open_array(path)[...] == found).all() and way.calls


def test_memory_is_not_copied(path):
    """A chunk that is one with the caller's memory is decoded there."""
    places = []

    def note(inputs, outputs, batch):
        places.extend(np.asarray(one).ctypes.data for one in outputs)
        return inflate(inputs, outputs, batch)

    implement(note)
    data = np.arange(1000)
    array = zarrc.create_array(path, data=data, chunks=100, compressors=GZIP)
    out = np.zeros_like(data)
    stats = zarrc.Stats()
    array.read(out=out, stats=stats)
    assert (out == data).all() and sorted(places) == [out.ctypes.data + 800 * i for i in range(10)] and stats.copies_host == 0


def test_inside_zarr_python(path, numbers):
    zarr = pytest.importorskip("zarr")
    way = implement()
    make(path, numbers)
    with zarrc.enable():
        assert (zarr.open_array(path)[...] == numbers).all()
    assert sum(call[0] for call in way.calls) == 45


def capsule_name(capsule):
    get = ctypes.pythonapi.PyCapsule_GetName
    get.restype, get.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return get(capsule)


def test_what_the_memory_is(path):
    """uint8, one dimension, in place; inputs cannot be written to."""
    seen = []

    def look(inputs, outputs, batch):
        one, to = inputs[0], outputs[0]
        assert one.__dlpack_device__() == to.__dlpack_device__() == (1, 0) and to.nbytes == len(to) == 400 and to.shape == (400,)
        assert one.dtype == np.dtype("u1") and "output" in repr(to) and "input" in repr(one) and not hasattr(to, "__cuda_array_interface__")
        assert capsule_name(to.__dlpack__()) == b"dltensor" and capsule_name(to.__dlpack__(max_version=(1, 0), stream=None)) == b"dltensor_versioned"
        for view in np.from_dlpack(to), np.asarray(to), np.frombuffer(to, "u1"):
            assert view.shape == (400,) and view.strides == (1,) and view.dtype == "u1"
        assert not np.asarray(one).flags.writeable and np.asarray(to).flags.writeable
        with pytest.raises(TypeError):
            memoryview(one)[0] = 1
        if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
            assert not np.from_dlpack(one).flags.writeable and np.from_dlpack(to).flags.writeable
        for wrong in {"copy": True}, {"dl_device": (2, 0)}, {"dl_device": (1, 7)}:
            with pytest.raises(BufferError):
                to.__dlpack__(**wrong)
        with pytest.raises(TypeError):
            to.__dlpack__(1)
        with pytest.raises(TypeError):
            type(to)()
        assert batch.decoded.n_bytes == 400 and batch.decoded.is_exact and not batch.encoded.is_exact and batch.next_name
        seen.append(one)
        seen.clear()
        return inflate(inputs, outputs, batch)

    implement(look)
    array = zarrc.create_array(path, data=np.arange(100, dtype="f4"), chunks=100, compressors=GZIP)
    assert (array[...] == np.arange(100)).all()


def test_the_serializer_is_told_its_elements(path):
    """An implementation of a codec that makes bytes of arrays knows shape, type and fill value."""
    told = []

    def swap(inputs, outputs, batch):
        told.append((batch.decoded.shape, batch.decoded.dtype, batch.decoded.fill_value))
        return batch.next(inputs, outputs)

    implement(swap, codec="packbits", name="test.packbits", zarr_formats=(3,))
    array = zarrc.create_array(path, data=np.arange(24).reshape(4, 6) % 3 == 0, chunks=(2, 6), serializer="packbits", compressors=None, fill_value=True)
    assert (array[...] == (np.arange(24).reshape(4, 6) % 3 == 0)).all()
    assert set(map(str, told)) == {str(((2, 6), np.dtype(bool), np.True_))}


# ---- refusals ----


@pytest.mark.parametrize("problem", [MemoryError("full"), zarrc.errors.UnsupportedError("not such"), NotImplementedError("no"),
                                     zarrc.errors.DeviceError("the driver failed"), zarrc.errors.NoMemoryError("full")])
@pytest.mark.parametrize("alone", [False, True])
def test_declined(path, numbers, problem, alone):
    """All chunks of a call, or one of them, are done by the next implementation, and counted."""
    def refuse(inputs, outputs, batch):
        if not alone:
            raise problem
        return [problem if i == 3 or len(inputs) == 1 else one for i, one in enumerate(batch.next(inputs, outputs))]

    way = implement(refuse, refuse)
    array = make(path, numbers)
    calls = len(way.calls)
    stats = zarrc.Stats()
    assert (array.read(stats=stats) == numbers).all() and len(way.calls) > calls
    assert stats.chunks_fallback == (45 if not alone else stats.chunks_fallback) > 0
    assert (zarrc.open_array(path, config={"codec_preference": "gzip=cpu"})[...] == numbers).all()


@pytest.mark.parametrize("members", [
    {"supports": lambda self, decoded, encoded: decoded.n_bytes < 100},
    {"__init__": lambda self, level: (_ for _ in ()).throw(zarrc.errors.UnsupportedError("no level"))},
])
def test_not_for_such_chunks(path, numbers, members):
    """It is not chosen for such an array, and explain does not name it."""
    way = implement(encode=deflate, **members)
    array = make(path, numbers)
    assert (array[...] == numbers).all() and not way.calls and way.name not in str(array.explain())


def test_a_broken_constructor_is_an_error(path, numbers):
    make(path, numbers)
    way = implement(__init__=lambda self: None)
    for preference in "gzip=cpu", f"gzip={way.name}":
        with pytest.raises(zarrc.errors.InternalError, match=rf'"{way.name}": TypeError') as caught:
            zarrc.open_array(path, config={"codec_preference": preference})[...]
        assert isinstance(caught.value.__cause__, TypeError)


def test_damage_that_it_declines_is_told_by_the_cpu(path, numbers):
    def picky(inputs, outputs, batch):
        return [zarrc.errors.UnsupportedError("odd") if bytes(one[:2] if isinstance(one, bytes) else memoryview(one)[:2]) != b"\x1f\x8b" else it
                for one, it in zip(inputs, batch.next(inputs, outputs))]

    way = implement(picky)
    array = make(path, numbers)
    array.store.set("c/2/1", b"damage")
    with pytest.raises(zarrc.errors.CorruptError) as caught:
        array[...]
    assert caught.value.chunk == (2, 1) and "cpu." not in way.name and "gzip" in str(caught.value)
    assert (array[:14] == numbers[:14]).all()


# ---- errors ----


def test_an_exception_is_one_error(path, numbers):
    def fail(inputs, outputs, batch):
        held = np.asarray(outputs[0])  # the traceback holds it
        raise ValueError(f"no luck with {len(held)} bytes")

    way = implement(fail, fail)
    with pytest.raises(zarrc.errors.InternalError, match="no luck"):
        make(path, numbers)
    make(path + "2", numbers, name="a", config={"codec_preference": "gzip=cpu"})
    array = zarrc.open_array(path + "2", path="a")
    with pytest.raises(zarrc.errors.InternalError) as caught:
        array[...]
    told = str(caught.value)
    assert 'codec "gzip"' in told and f'"{way.name}": ValueError: no luck with 252 bytes' in told and caught.value.node == "/a" and "a/c/" in told
    assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize("result,words", [
    ([5], "1 results for 45 chunks"), (7, "not iterable"), (["x"] * 45, "'x', which is neither a number"), ([True] * 45, "True, which is neither"),
    ([-1] * 45, "-1, which is neither"), ([10**30] * 45, "something other"), ([3.5] * 45, "3.5, which is neither"),
])
def test_wrong_results(path, numbers, result, words):
    implement(lambda inputs, outputs, batch: result)
    array = make(path, numbers)
    with pytest.raises(zarrc.errors.InternalError, match=words):
        array[...]


def test_wrong_lengths(path, numbers):
    """Neither too many bytes nor too few are taken for a chunk."""
    for n in (0, 251, 253, 10**9):
        implement(lambda inputs, outputs, batch: [n] * len(inputs), priority=200 + next(numbers_used))
        with pytest.raises(zarrc.errors.CorruptError):
            make(path, numbers, overwrite=True)[...]
    implement(encode=lambda inputs, outputs, batch: None, decode=None, priority=400)
    with pytest.raises(zarrc.errors.InternalError, match="how many bytes"):
        make(path, numbers, overwrite=True)


def test_damage_is_an_error_of_its_chunk(path, numbers):
    def tell(inputs, outputs, batch):
        found = batch.next(inputs, outputs)
        return [zarrc.errors.CorruptError("odd bytes") if isinstance(one, Exception) else one for one in found]

    implement(tell)
    array = make(path, numbers)
    array.store.set("c/2/1", b"damage")
    with pytest.raises(zarrc.errors.CorruptError, match="odd bytes") as caught:
        array[...]
    assert caught.value.chunk == (2, 1) and isinstance(caught.value.__cause__, zarrc.errors.CorruptError)


@pytest.mark.parametrize("keep", ["array", "object", "capsule", "memoryview"])
@pytest.mark.parametrize("problem", [None, MemoryError])
def test_memory_that_is_kept(path, numbers, keep, problem):
    """The call fails, even if it declined, because the library reuses its memory; a late export is refused."""
    kept = []

    def hold(inputs, outputs, batch):
        kept.append({"array": np.asarray, "object": lambda one: one, "capsule": lambda one: one.__dlpack__(), "memoryview": memoryview}[keep](outputs[0]))
        if problem is not None:
            raise problem
        return inflate(inputs, outputs, batch)

    implement(hold)
    array = make(path, numbers)
    with pytest.raises(zarrc.errors.InternalError, match="alive after the call"):
        array[:7, :9]
    if keep == "object":
        for late in memoryview, lambda one: one.__dlpack__():
            with pytest.raises(BufferError, match="has ended"):
                late(kept[0])
    kept.clear()


def test_memory_in_a_cycle_is_collected(path, numbers):
    def loop(inputs, outputs, batch):
        one = {"memory": np.asarray(outputs[0])}
        one["self"] = one
        return inflate(inputs, outputs, batch)

    implement(loop)
    gc.disable()
    try:
        assert (make(path, numbers)[...] == numbers).all()
    finally:
        gc.enable()


# ---- choice ----


def test_preference_trust_and_priority(path, numbers):
    first = implement(name="test.first", priority=120)
    second = implement(name="test.second")
    array = make(path, numbers)
    array[...]
    assert first.calls and not second.calls and f"gzip@{first.name}/" in str(array.explain())
    first.calls.clear()
    assert (array.read(codec_preference="gzip=test.second") == numbers).all() and second.calls and not first.calls
    second.calls.clear()
    assert (zarrc.open_array(path, config={"codec_preference": "gzip=cpu"})[...] == numbers).all() and not first.calls and not second.calls
    with zarrc.config.set({"codec_preference": "gzip=test.second,cpu"}):
        assert (zarrc.open_array(path)[...] == numbers).all() and second.calls and not first.calls
        assert {call[1] for call in second.calls} != {"test.first"}  # the next one is that of the preference, too
    low = implement(name="test.low", priority=-5)
    assert (zarrc.open_array(path)[...] == numbers).all() and not low.calls and first.calls


def test_what_does_not_check_its_input(path, numbers):
    way = implement(encode=deflate, is_safe=False)
    array = zarrc.create_array(path, data=numbers, chunks=(7, 9), compressors=GZIP)
    assert way.calls  # it encodes
    way.calls.clear()
    stats = zarrc.Stats()
    assert (array.read(stats=stats) == numbers).all() and not way.calls and stats.chunks_distrusted == 45
    stats = zarrc.Stats()
    assert (array.read(trust="full", stats=stats) == numbers).all() and way.calls and stats.chunks_distrusted == 0
    way.calls.clear()
    checked = zarrc.create_array(path + "2", data=numbers, chunks=(7, 9), compressors=[GZIP, "crc32c"])
    assert (checked[...] == numbers).all() and way.calls  # a checksum was checked
    way.calls.clear()
    assert (checked.read(trust="none") == numbers).all() and not way.calls


def test_listed(path):
    way = implement()
    rows = [row for row in zarrc._settings.settings.context().registry(zarrc._core.ZARR_REGISTRY_CODEC_IMPL) if row["name"] == way.name]
    assert len(rows) == 1 and rows[0]["origin"] == "zarrc.plugins" and "gzip" in rows[0]["detail"]


# ---- wrapping ----


def test_wrappers(path, numbers):
    """Python wraps Python, which wraps the core's, all on the thread of plug-ins."""
    pass_on = lambda inputs, outputs, batch: batch.next(inputs, outputs)  # noqa: E731
    inner = implement(pass_on, pass_on, priority=150)
    outer = implement(pass_on, pass_on, priority=160)
    array = zarrc.create_array(path, data=numbers, chunks=(7, 9), compressors=GZIP)
    assert (array[...] == numbers).all()
    assert {call[1] for call in outer.calls} == {inner.name} and {call[1][:4] for call in inner.calls} == {"cpu."}
    assert [call[0] for call in inner.calls] == [call[0] for call in outer.calls] and {call[3] for call in inner.calls} == {"zarrc-plugins"}
    array.store.set("c/2/1", b"damage")
    with pytest.raises(zarrc.errors.CorruptError) as caught:
        array[...]
    assert caught.value.chunk == (2, 1) and outer.name in str(caught.value)
    failing = implement(lambda inputs, outputs, batch: 1 / 0, priority=155)
    with pytest.raises(zarrc.errors.InternalError, match=rf'"{failing.name}": ZeroDivisionError'):
        zarrc.open_array(path)[0]


def test_a_wrapper_of_a_codec_of_python(path, numbers):
    """The codec answers on the thread that waits for it."""
    class Reverse(plugins.BytesCodec):
        name = "test.turned"

        def encode(self, chunk, spec):
            return chunk[::-1]

        decode = encode

    plugins.register(Reverse)
    way = implement(lambda inputs, outputs, batch: batch.next(inputs, outputs), codec="test.turned")
    array = zarrc.create_array(path, data=numbers, chunks=(7, 9), compressors="test.turned")
    assert (array[...] == numbers).all() and {call[1] for call in way.calls} == {"cpu.python"}


def test_a_part_of_the_chunks(path, numbers):
    def every_other(inputs, outputs, batch):
        found = [None] * len(inputs)
        found[::2] = [np.int64(one) for one in batch.next(inputs[::2], outputs[::2])]
        inflate(inputs[1::2], outputs[1::2], batch)
        return found

    implement(every_other)
    assert (make(path, numbers)[...] == numbers).all()


def test_wrong_calls_of_the_next_one(path, numbers):
    problems = []

    def wrong(inputs, outputs, batch):
        for given in ((inputs, outputs[1:]), (outputs, inputs), (inputs, inputs), ([b"x"], outputs[:1]), ([None], [None]), (3, 4)):
            try:
                batch.next(*given)
            except (TypeError, ValueError) as problem:
                problems.append(type(problem))
        assert batch.next([], []) == []
        problems.append(batch)
        return batch.next(inputs, outputs)

    implement(wrong)
    assert (make(path, numbers)[:7, :9] == numbers[:7, :9]).all()
    assert problems[:-1] == [ValueError, TypeError, TypeError, TypeError, TypeError, TypeError]
    with pytest.raises(RuntimeError, match="in the call of its wrapper"):
        problems[-1].next([], [])


# ---- devices ----


class BackDoor:
    """Host memory that goes to the fake device and comes from it."""

    def __init__(self, device):
        self.device = device

    def get(self, memory):
        assert memory.__dlpack_device__() == (2, 0)
        with pytest.raises(BufferError, match="DLPack"):
            memoryview(memory)
        told = memory.__cuda_array_interface__
        assert told["shape"] == memory.shape and told["typestr"] == "|u1" and told["strides"] is None
        data = np.empty(memory.nbytes, "u1")
        assert not memory.nbytes or self.device.lib.zarr_fakedev_peek(told["data"][0], 0, data.ctypes.data, data.nbytes) == 0
        return data

    def put(self, memory, data):
        data, told = np.frombuffer(data, "u1"), memory.__cuda_array_interface__
        assert not told["data"][1] and capsule_name(memory.__dlpack__(stream=1, max_version=(1, 1))) == b"dltensor_versioned"
        assert self.device.lib.zarr_fakedev_poke(told["data"][0], 0, data.ctypes.data, data.nbytes) == 0
        return len(data)


@needs_device
def test_device(device, path, numbers):
    """Encoded chunks go to the device, and elements stay there."""
    door = BackDoor(device)

    def decode(inputs, outputs, batch):
        for one, to in zip(inputs, outputs):
            door.put(to, zlib.decompress(door.get(one), 31))

    def encode(inputs, outputs, batch):
        return [door.put(to, zlib.compress(door.get(one), wbits=31)) for one, to in zip(inputs, outputs)]

    way = implement(decode, encode, memory="cuda")
    array = make(path, numbers)
    assert (array[...] == numbers).all() and not way.calls  # elements on the host are of no use there
    stats = zarrc.Stats()
    found = array.read(device="cuda:0", stats=stats)
    found.pointer = found.__cuda_array_interface__["data"][0]
    assert (device.peek(found) == numbers).all() and stats.chunks_fallback == 0
    assert stats.bytes_up == stats.bytes_stored < numbers.nbytes and stats.bytes_down == 0 and sum(call[0] for call in way.calls) == 45
    assert f"gzip@{way.name}" in str(array.explain(device="cuda:0"))
    way.calls.clear()
    again = zarrc.create_array(path + "2", shape=numbers.shape, dtype="i4", chunks=(7, 9), compressors=GZIP)
    again[...] = found
    assert (again[...] == numbers).all() and way.calls
    assert (again.read(device="cuda:0", codec_preference="gzip=cpu").shape == numbers.shape)


@needs_device
@pytest.mark.parametrize("problem", [MemoryError("full"), zarrc.errors.UnsupportedError("no"), None])
@pytest.mark.parametrize("alone", [False, True])
def test_device_declines(device, path, numbers, problem, alone):
    """The CPU does these chunks. An implementation that is the last one of its memory declines when it calls the next one."""
    door = BackDoor(device)

    def decode(inputs, outputs, batch):
        assert batch.next_name is None
        if problem is None and not alone:
            return batch.next(inputs, outputs)
        if problem is None:
            with pytest.raises(zarrc.errors.UnsupportedError, match="no next") as caught:
                batch.next(inputs, outputs)
            return [caught.value if i % 2 else door.put(to, zlib.decompress(door.get(one), 31)) for i, (one, to) in enumerate(zip(inputs, outputs))]
        if not alone:
            raise problem
        return [problem if i % 2 else door.put(to, zlib.decompress(door.get(one), 31)) for i, (one, to) in enumerate(zip(inputs, outputs))]

    implement(decode, memory="cuda")
    array = make(path, numbers)
    stats = zarrc.Stats()
    found = array.read(device="cuda:0", stats=stats)
    found.pointer = found.__cuda_array_interface__["data"][0]
    assert (device.peek(found) == numbers).all() and stats.chunks_fallback == (22 if alone else 45)


@needs_device
def test_device_errors(device, path, numbers):
    door = BackDoor(device)

    def decode(inputs, outputs, batch):
        return [door.put(to, zlib.decompress(door.get(one), 31)) if door.get(one)[:2].tolist() == [31, 139] else zarrc.errors.CorruptError("no gzip")
                for one, to in zip(inputs, outputs)]

    implement(decode, memory="cuda")
    array = make(path, numbers)
    array.store.set("c/2/1", b"damage")
    with pytest.raises(zarrc.errors.CorruptError, match="no gzip") as caught:
        array.read(device="cuda:0")
    assert caught.value.chunk == (2, 1)
    way = implement(lambda inputs, outputs, batch: 1 / 0, memory="cuda", priority=300)
    with pytest.raises(zarrc.errors.InternalError, match=rf'"{way.name}": ZeroDivisionError'):
        zarrc.open_array(path).read(device="cuda:0")


@needs_device
def test_device_wrapper(device, path, numbers):
    door = BackDoor(device)
    inner = implement(lambda inputs, outputs, batch: [door.put(to, zlib.decompress(door.get(one), 31)) for one, to in zip(inputs, outputs)], memory="cuda")
    outer = implement(lambda inputs, outputs, batch: batch.next(inputs, outputs), memory="cuda", priority=200)
    array = make(path, numbers)
    found = array.read(device="cuda:0")
    found.pointer = found.__cuda_array_interface__["data"][0]
    assert (device.peek(found) == numbers).all() and {call[1] for call in outer.calls} == {inner.name} and {call[1] for call in inner.calls} == {None}


# ---- registration ----


@pytest.mark.parametrize("members,error,match", [
    ({"codec": None}, TypeError, "Bad has no `codec`"),
    ({"name": None}, TypeError, "Bad has no `name`"),
    ({"memory": None}, TypeError, "Bad has no `memory`"),
    ({"is_safe": None}, TypeError, "Bad has no `is_safe`"),
    ({"memory": "cuda:0"}, ValueError, "'cuda:0' is not one of host, cuda"),
    ({"decode_batch": plugins.Implementation.decode_batch}, TypeError, "neither `decode_batch` nor `encode_batch`"),
    ({"priority": "high"}, TypeError, "priority: 'high'"),
    ({"priority": 1 << 31}, TypeError, "priority"),
    ({"zarr_formats": (1,)}, ValueError, "zarr_formats"),
    ({"name": "cpu.libzstd", "codec": "zstd"}, ValueError, "registered already, by core"),
    ({"name": "a=b"}, ValueError, "names have no ="),
    ({"codec": "packbits"}, TypeError, "Bad has no `zarr_formats`"),
])
def test_classes_that_are_refused(members, error, match):
    given = {"codec": "gzip", "name": f"test.bad{next(numbers_used)}", "memory": "host", "is_safe": True, "decode_batch": lambda *unused: None, **members}
    with pytest.raises(error, match=match):
        plugins.register(type("Bad", (plugins.Implementation,), given))


@pytest.mark.parametrize("base,wrong,right", [
    (plugins.Implementation, {"codec": "zstd", "name": "cpu.libzstd"}, {"codec": "gzip", "name": "cpu.libzstd"}),
    (plugins.Implementation, {"codec": "packbits", "name": "test.late"}, {"codec": "packbits", "name": "test.late", "zarr_formats": (3,)}),
    (plugins.DataType, {"name": "test.late_type", "dtype": "i4", "v2_name": "f4"}, {"name": "test.late_type", "dtype": "i2", "v2_name": "test.late"}),
])
def test_a_corrected_class(base, wrong, right):
    """A registration that failed leaves nothing behind."""
    for members, works in ((wrong, False), (right, True)):
        if base is plugins.Implementation:
            members = {"memory": "host", "is_safe": True, "decode_batch": inflate, **members}
        cls = type("Late", (base,), members)
        if works:
            plugins.register(cls)
            plugins.register(cls)
        else:
            with pytest.raises((ValueError, TypeError)):
                plugins.register(cls)
    assert zarrc.create_array(None, shape=3, dtype="test.late_type").dtype == "i2" if base is plugins.DataType else True


def test_a_codec_that_is_not_registered(path, caplog):
    """A warning says that the implementation is of no use: another plug-in could bring the codec."""
    way = implement(codec="test.missing")
    with pytest.warns(zarrc.ZarrcWarning, match=f'"{way.name}" cannot be used: there is no codec "test.missing"'):
        zarrc.create_array(path, shape=3, dtype="u1")


def test_a_class_again(path, numbers):
    def again(function, **more):
        return type("Twice", (plugins.Implementation,), {"codec": "gzip", "name": "test.twice", "memory": "host", "is_safe": True, "decode_batch": function, **more})

    plugins.register(again(lambda self, inputs, outputs, batch: 1 / 0))
    plugins.register(again(lambda self, inputs, outputs, batch: inflate(inputs, outputs, batch)))
    assert (make(path, numbers)[...] == numbers).all()
    with pytest.raises(ValueError, match="priority"):
        plugins.register(again(inflate, priority=7))


# ---- the process ----


def test_threads(path, numbers):
    implement(encode=deflate)
    array = zarrc.create_array(path, data=numbers, chunks=(7, 9), compressors=GZIP)
    failures = []

    def work(k):
        for i in range(k, 60, 6):
            if not (array[i] == numbers[i]).all():
                failures.append(i)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_leaks(path, numbers):
    class Watch(plugins.Implementation):
        codec, name, memory, is_safe = "gzip", "test.held", "host", True
        arrays = weakref.WeakSet()

        def decode_batch(self, inputs, outputs, batch):
            Watch.arrays.add(batch)
            return batch.next(inputs, outputs)

    plugins.register(Watch)
    array = make(path, numbers)
    for _ in range(20):
        array[...]
    gc.collect()
    assert not Watch.arrays


WAY = """
import os, sys, threading, time, warnings, zlib
warnings.simplefilter("ignore")
import numpy as np, zarrc
from zarrc import plugins
begun = threading.Event()

@plugins.register
class Way(plugins.Implementation):
    codec, name, memory, is_safe = "gzip", "test.way", "host", True
    wait = 0
    def decode_batch(self, inputs, outputs, batch):
        begun.set()
        time.sleep(Way.wait)
        for one, to in zip(inputs, outputs):
            memoryview(to)[:] = zlib.decompress(one, 31)

array = zarrc.create_array(sys.argv[1], data=np.arange(400).reshape(20, 20), chunks=(2, 2), compressors={"name": "gzip", "configuration": {"level": 1}})
"""


@pytest.mark.parametrize("how", ["", "os._exit(0)"])
def test_exit_during_a_call(path, how):
    """The end of the interpreter waits for it, because it has the library's memory; calls that have not begun fail."""
    done = run(WAY + f"""
Way.wait = 0.5
for _ in range(3):
    threading.Thread(target=lambda: array[...], daemon=True).start()
begun.wait()
{how}
""", path)
    assert done.returncode == 0, done.stderr


def test_fork_during_a_call(path):
    done = run(WAY + """
Way.wait = 0.2
thread = threading.Thread(target=lambda: array[...])
thread.start()
begun.wait()
child = os.fork()
if child == 0:
    Way.wait = 0
    os._exit(7 if (array[...] == np.arange(400).reshape(20, 20)).all() else 8)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
thread.join()
""", path)
    assert done.stdout == "7\n", done.stdout + done.stderr


# ---- packages ----

EXAMPLE = ROOT / "examples/python/implementation.py"
USE = """
import sys, warnings
warnings.simplefilter("always")
import numpy as np, zarrc
data = np.arange(1000, dtype="i4").reshape(10, 100)
z = zarrc.create_array(sys.argv[1], data=data, chunks=(5, 30), compressors={"name": "numcodecs.shuffle", "configuration": {"elementsize": 4}})
print((zarrc.open_array(sys.argv[1])[...] == data).all(), "shuffle@example.numpy" in str(z.explain()))
print((z.read(codec_preference="shuffle=cpu") == data).all())
"""


def test_a_package(tmp_path, path):
    """The example, found by its entry point."""
    package(tmp_path, "shuffled", {"all": "shuffled:plugins"})
    shutil.copy(EXAMPLE, tmp_path / "shuffled.py")
    done = run(USE, path, env=environment(tmp_path))
    assert done.stdout == "True True\nTrue\n" and not done.stderr, done.stdout + done.stderr
    done = run(USE, path + "2", env=environment(tmp_path, ZARRC_ENTRY_POINTS="0"))
    assert done.stdout == "True False\nTrue\n" and not done.stderr, done.stdout + done.stderr


def test_the_example(tmp_path):
    done = run(EXAMPLE.read_text(), tmp_path / "x.zarr", env=os.environ)
    assert done.returncode == 0 and "example.numpy" in done.stdout, done.stderr


@needs_own
def test_the_example_with_cupy():
    """Over the driver without a GPU: the elements never leave the device."""
    with_cupy(f"""
import sys
sys.path.insert(0, {str(EXAMPLE.parent)!r})
import cupy, numpy as np, zarrc
import implementation
zarrc.plugins.register(implementation.plugins)
data = np.arange(1000, dtype="i4").reshape(10, 100)
more = dict(chunks=(5, 30), compressors={{"name": "numcodecs.shuffle", "configuration": {{"elementsize": 4}}}})
z = zarrc.create_array(sys.argv[1], data=data, device="cuda:0", **more)
assert "shuffle@example.cupy" in str(z.explain(device="cuda:0")), z.explain(device="cuda:0")
stats = zarrc.Stats()
found = z.read(like="cupy", stats=stats)
assert (found.get() == data).all() and stats.chunks_fallback == 0 and stats.bytes_down == 0, stats
w = zarrc.create_array(sys.argv[1] + "2", shape=data.shape, dtype="i4", device="cuda:0", **more)
w[...] = found
assert (w.read(codec_preference="shuffle=cpu", like="numpy") == data).all()
""")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
