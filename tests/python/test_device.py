"""Memory of devices: `device=`, and `out=` of libraries with streams. The device is the fake one of
tests/fakedev under the number of CUDA: memory that the CPU cannot touch, and streams whose work is done
only when they are waited for."""
import asyncio
import collections
import concurrent.futures
import ctypes
import enum
import gc
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import tomllib
import types
import weakref

import numpy as np
import pytest
import s3_server

import zarrc
from zarrc import _devices, _indexing, _libraries, _parts, _tensors, errors

CUDA = (2, 0)


def plugin():
    build = os.environ.get("ZARRC_BUILD") or str(pathlib.Path(zarrc.__file__).parents[2])
    return os.path.join(build, "tests/libzarrc_fakecuda.so")


pytestmark = pytest.mark.skipif(not os.path.exists(plugin()), reason="the fake device is not built here")


class Counters(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in (
        "allocs", "frees", "live_blocks", "live_bytes", "peak_bytes", "copies_up", "copies_down", "copies_device", "bytes_up",
        "bytes_down", "bytes_device", "boxes", "fills", "faults")]


class Late(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in (
        "calls", "lists", "list_items", "equals", "queued", "syncs", "orders", "streams", "streams_opened", "pinned_allocs",
        "pinned_blocks", "pinned_bytes", "pinned_peak")]


class Device:
    """What a library of the application knows of the device."""

    def __init__(self):
        self.lib = ctypes.CDLL(plugin())
        for name in ("zarr_fakedev_peek", "zarr_fakedev_poke"):
            getattr(self.lib, name).argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64]
        self.lib.zarr_fakecuda_queue_copy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64]

    def count(self):
        counters, late = Counters(), Late()
        self.lib.zarr_fakecuda_count(ctypes.byref(counters), ctypes.byref(late))
        return counters, late

    def peek(self, tensor):
        """The elements of a tensor, in host memory."""
        found = np.empty(tensor.shape, tensor.dtype)
        assert self.lib.zarr_fakedev_peek(tensor.pointer, 0, found.ctypes.data, found.nbytes) == 0
        return found

    def poke(self, tensor, data):
        data = np.ascontiguousarray(data, tensor.dtype)
        assert self.lib.zarr_fakedev_poke(tensor.pointer, 0, data.ctypes.data, data.nbytes) == 0

    def queue_copy(self, to, source):
        """On the default stream: done when something waits for it."""
        assert self.lib.zarr_fakecuda_queue_copy(to.pointer, source.pointer, to.nbytes) == 0


class Tensor:
    """A tensor as torch and CuPy have it: on the device, with DLPack and a stream."""

    def __init__(self, like, shape, dtype=None):
        source = zarrc.create_array(None, shape=shape, dtype=dtype or like.dtype, chunks=shape)
        self._held = source.read(device="cuda:0")
        self.shape, self.dtype, self.nbytes = self._held.shape, self._held.dtype, self._held.nbytes
        self.pointer = self._held.__cuda_array_interface__["data"][0]
        self.streams = []

    def __dlpack__(self, *, stream=None, max_version=None):
        self.streams.append(stream)
        return self._held.__dlpack__(max_version=max_version)

    def __dlpack_device__(self):
        return CUDA

    def __array__(self, *unused, **options):
        raise TypeError("can't convert a cuda tensor to NumPy")


class OldTensor(Tensor):
    """One of before DLPack 1.0."""

    def __dlpack__(self, *, stream=None):
        return super().__dlpack__(stream=stream)


class Interface:
    """Memory that is known by the CUDA array interface only, as Numba's."""

    def __init__(self, tensor, **more):
        self.told = {"shape": tensor.shape, "typestr": tensor.dtype.str, "data": (tensor.pointer, False), "version": 3, **more}
        self.__cuda_array_interface__ = self.told


@pytest.fixture
def device():
    with zarrc.config.set({"plugins": [plugin()]}):
        found = Device()
        yield found
        gc.collect()
        assert found.count()[0].faults == 0


@pytest.fixture
def array(device, path, numbers):
    return zarrc.create_array(path, data=numbers, chunks=(16, 16))


def test_device_reads(device, array, numbers):
    for key in (..., slice(5, 50), (slice(None, None, -3), 7), (3, 4), (slice(3, 3), slice(None)), ([5, 1], slice(2, 9))):
        for found in (array.read(key, device="cuda:0"), array.tensor(key, device="cuda")):
            wanted = numbers[key]
            assert found.shape == wanted.shape and found.dtype == numbers.dtype and found.nbytes == wanted.nbytes
            assert found.__dlpack_device__() == CUDA and "cuda:0" in repr(found)
            told = found.__cuda_array_interface__
            assert told["shape"] == wanted.shape and told["typestr"] == "<i4" and told["stream"] is None
            if wanted.size:
                found.pointer = told["data"][0]
                assert (device.peek(found) == wanted).all()
    assert array.read(slice(3), device="cpu").tolist() == numbers[:3].tolist()
    assert isinstance(array.tensor(device="cpu"), zarrc.Tensor)


@pytest.mark.parametrize("more", [{}, {"shards": (32, 32)}], ids=["chunks", "shards"])
def test_a_bucket(device, numbers, tmp_path, more):
    """The CPU writes to S3, the device reads from there; each byte goes up once."""
    (tmp_path / s3_server.BUCKET).mkdir()
    numbers = numbers[:32, :32]  # whole chunks
    with s3_server.start_service(tmp_path / s3_server.BUCKET) as server:
        options = {"access_key_id": s3_server.ID, "secret_access_key": s3_server.SECRET, "endpoint": server.url}
        try:
            array = zarrc.create_array(f"s3://{s3_server.BUCKET}/x.zarr", data=numbers, chunks=(16, 16), storage_options=options, **more)
        except (errors.UnsupportedError, ImportError) as problem:
            pytest.skip(str(problem))
        before = device.count()[0]
        found = array.read(device="cuda:0")
        after = device.count()[0]
        found.pointer = found.__cuda_array_interface__["data"][0]
        assert after.bytes_up - before.bytes_up == numbers.nbytes and after.bytes_down == before.bytes_down
        assert (device.peek(found) == numbers).all()


def test_device_memory_is_freed(device, array):
    array.read(device="cuda:0")  # the library keeps a block of its own for the next read
    gc.collect()
    before = device.count()[0].live_blocks
    held = [array.read(device="cuda:0").__dlpack__(max_version=version) for version in (None, (1, 0)) for _ in range(5)]
    gc.collect()
    assert device.count()[0].live_blocks == before + 10  # the capsules have them
    del held
    gc.collect()
    assert device.count()[0].live_blocks == before


class Pool:
    """An application's allocator: RMM's or CuPy's pool, which gives objects with `ptr`, or a function that gives tensors."""

    def __init__(self, *, gives_tensors=False, **more):
        self.gives_tensors, self.more = gives_tensors, more
        self.asked, self.alive, self.threads = [], weakref.WeakSet(), set()

    def __call__(self, nbytes):
        self.asked.append(nbytes)
        self.threads.add(threading.get_ident())
        found = Block(nbytes, self.gives_tensors, self.more)
        self.alive.add(found)
        return found


class Block:
    def __init__(self, nbytes, is_tensor, more):
        self._held = zarrc.create_array(None, shape=nbytes, dtype="u1")._device((nbytes,), "cuda:0", None)
        self.pointer, self.nbytes, self.streams = self._held.pointer, nbytes, []
        if is_tensor:
            self.__cuda_array_interface__ = {"data": (self.pointer, False)}
        else:
            self.ptr = self.pointer
        self.__dict__.update(more)

    def __dlpack__(self, *, stream):
        self.streams.append(stream)
        return self._held.capsule(False)


@pytest.mark.parametrize("gives_tensors", [False, True])
def test_allocator_of_the_application(device, array, numbers, gives_tensors):
    pool = Pool(gives_tensors=gives_tensors)
    assert not array.read(slice(3), device="cuda:0")._block.is_borrowed
    with zarrc.config.set({"device_allocators": {"cuda": pool}}):
        orders = device.count()[1].orders
        found = array.read(slice(5, 50), device="cuda:0")
        assert pool.asked == [45 * 40 * 4] and device.count()[1].orders > orders
        block = next(iter(pool.alive))
        assert found.__cuda_array_interface__["data"][0] == block.pointer and found.__dlpack_device__() == CUDA
        assert block.streams == ([1] if gives_tensors else [])
        found.pointer = block.pointer
        assert (device.peek(found) == numbers[5:50]).all()
        many = array.read_many([slice(2), (5, 6), slice(3, 3)], device="cuda:0") + [array.tensor((2, 3), device="cuda:0")]
        assert pool.asked[1:] == [320, 4, 1, 4]
        for one, key in zip(many, (slice(2), (5, 6), slice(3, 3), (2, 3))):
            one.pointer = one.__cuda_array_interface__["data"][0]
            assert one.nbytes == 0 or (device.peek(one) == numbers[key]).all()
        assert array.read(slice(3), device="cpu").tolist() == numbers[:3].tolist() and len(pool.asked) == 5
    del one, block
    capsule = found.__dlpack__(max_version=(1, 0))
    del found, many
    gc.collect()
    assert len(pool.alive) == 1  # the capsule has it
    del capsule
    gc.collect()
    assert len(pool.alive) == 0 and pool.threads == {threading.get_ident()}


def test_memory_of_an_allocator_may_be_in_use(device, array, numbers):
    """What a pool gives may have been freed while work is queued that writes there."""
    pool = Pool()
    block, stale = pool(numbers.nbytes), Tensor(array, (60, 40))
    with zarrc.config.set({"device_allocators": {"cuda": lambda n: block}}):
        device.queue_copy(block, stale)
        found = array.read(device="cuda:0")
    device.lib.zarr_fakecuda_sync()
    found.pointer = block.pointer
    assert (device.peek(found) == numbers).all()


def test_allocator_in_threads(device, array, numbers):
    pool = Pool()

    def read(i):
        found = array.read(slice(i, i + 20), device="cuda:0")
        found.pointer = found.__cuda_array_interface__["data"][0]
        return bool((device.peek(found) == numbers[i:i + 20]).all())

    with zarrc.config.set({"device_allocators": {"cuda": pool}}), concurrent.futures.ThreadPoolExecutor(8) as threads:
        assert all(threads.map(read, list(range(40)) * 5))
    assert len(pool.asked) == 200 and len(pool.threads) <= 8


def test_wrong_allocators(device, array):
    class Full(Exception):
        pass

    def full(nbytes):
        raise Full

    host = np.zeros(60 * 40, "i4")
    for allocate, error, match in (
            (full, Full, "^$"), (lambda n: Pool()(n - 1), ValueError, "9599 bytes, and 9600 are needed"),
            (lambda n: None, TypeError, "NoneType"), (Pool(ptr=host.ctypes.data), ValueError, "kind 1 of device 0, which is not cuda:0"),
            (Pool(ptr=0), ValueError, "kind 1"), (Pool(ptr="x"), ValueError, "invalid literal")):
        with zarrc.config.set({"device_allocators": {"cuda": allocate}}), pytest.raises(error, match=match):
            array.read(device="cuda:0")
    with zarrc.config.set({"device_allocators": {"cuda": Pool()}}), pytest.raises(ValueError, match="not cuda:1"):
        array.read(device="cuda:1")
    for wrong, error in (({"opencl": Pool()}, ValueError), ({"cuda": 3}, TypeError), (3, TypeError)):
        with pytest.raises(error):
            zarrc.config.set({"device_allocators": wrong})
    gc.collect()


@pytest.mark.parametrize("kind", [Tensor, OldTensor])
def test_out(device, array, numbers, kind):
    target = kind(array, (60, 20))
    orders = device.count()[1].orders
    assert array.read((slice(None), slice(0, 20)), out=target) is target
    assert target.streams == [1] and device.count()[1].orders > orders
    assert (device.peek(target) == numbers[:, :20]).all()
    # zarrc writes only after what the library has queued: else the queued copy would win.
    stale = Tensor(array, (60, 20))
    device.queue_copy(target, stale)
    array.read((slice(None), slice(0, 20)), out=target)
    device.lib.zarr_fakecuda_sync()
    assert (device.peek(target) == numbers[:, :20]).all()


def test_value(device, array, numbers):
    source, target = Tensor(array, (60, 40)), Tensor(array, (60, 40))
    device.poke(source, numbers + 7)
    device.queue_copy(target, source)  # zarrc must not read before that
    array[...] = target
    assert (array[...] == numbers + 7).all()
    part = Tensor(array, (1, 40))
    device.poke(part, np.full((1, 40), 9))
    array[2:5] = part  # it is repeated
    assert (array[2:5] == 9).all()


def test_cuda_array_interface(device, array, numbers):
    tensor = Tensor(array, (60, 40))
    for more in ({}, {"stream": 1}, {"strides": (160, 4)}, {"strides": None, "stream": None}):
        device.poke(tensor, np.zeros((60, 40)))
        memory = Interface(tensor, **more)
        assert array.read(out=memory) is memory
        assert (device.peek(tensor) == numbers).all()
    device.poke(tensor, numbers - 3)
    array[...] = Interface(tensor)
    assert (array[...] == numbers - 3).all()
    with pytest.raises(ValueError, match="read-only"):
        array.read(out=Interface(tensor, data=(tensor.pointer, True)))
    with pytest.raises(TypeError, match="data type"):
        array.read(out=Interface(tensor, typestr="<f4"))
    with pytest.raises(TypeError, match="data type"):
        array.read(out=Interface(tensor, typestr=">i4"))
    with pytest.raises(ValueError, match="stride"):
        array.read(out=Interface(tensor, strides=(4,)))
    with pytest.raises(ValueError, match="plug-in"):
        array.read(out=Interface(tensor, data=(np.zeros(9).ctypes.data, False)))


class StreamTensor(Tensor):
    """A tensor whose library uses another stream."""

    def __init__(self, like, shape, stream):
        super().__init__(like, shape)
        self.stream = stream

    def __getattribute__(self, name):
        if name in ("__dlpack__", "__dlpack_device__"):
            raise AttributeError(name)
        return super().__getattribute__(name)

    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.pointer, False), "version": 3, "stream": self.stream}


def test_many_with_streams(device, array, numbers):
    """Each part is filled after what its own library has queued, and host memory needs no order."""
    rows = [StreamTensor(array, (40,), 1), np.empty(40, "i4"), StreamTensor(array, (40,), None), Tensor(array, (40,)), np.empty(40, ">i4")]
    stale = Tensor(array, (40,))
    device.queue_copy(rows[0], stale)
    device.queue_copy(rows[3], stale)
    orders = device.count()[1].orders
    array.read_many([5, 6, 7, 8, 9], out=rows)
    assert device.count()[1].orders == orders + 1
    device.lib.zarr_fakecuda_sync()
    found = [row.tolist() if isinstance(row, np.ndarray) else device.peek(row).tolist() for row in rows]
    assert found == numbers[5:10].tolist() and rows[3].streams == [1]
    rows[2].stream = 77
    parts = [_parts._prepare(array, _indexing.any_key(array, i), row, "out", {}) for i, row in enumerate(rows)]
    calls = [[part.place for part in one] for one in _parts._join(parts)]
    assert calls == [[("cuda:0", 1), None, ("cuda:0", 1), None], [("cuda:0", 77)]]  # a request for each stream


def test_many_of_which_one_fails(device, path, numbers):
    """Requests of several streams are as one."""
    array = zarrc.create_array(path, data=numbers[:, 0], chunks=10)
    keys, told = [slice(i, i + 10) for i in range(0, 40, 10)], []

    def memory():
        return [np.zeros(10, ">i4"), StreamTensor(array, (10,), 1), StreamTensor(array, (10,), None), np.zeros(10, "i4")]

    array.read_many(keys, out=memory(), progress=lambda done, total: told.append((done, total)))
    assert all(before <= after for before, after in zip(told, told[1:])) and told[-1] == (4, 4)
    for i in range(4):
        whole = array.store.get(f"c/{i}")
        array.store.set(f"c/{i}", b"damaged")
        rows = memory()
        with pytest.raises(errors.CorruptError, match=f"c/{i}"):
            array.read_many(keys, out=rows)
        array.store.set(f"c/{i}", whole)
        found = [row.tolist() if isinstance(row, np.ndarray) else device.peek(row).tolist() for row in rows]
        assert all(found[j] == numbers[keys[j], 0].tolist() for j in range(4) if j != i)
    rows = [*memory()[:2], StreamTensor(array, (9,), None)]
    with pytest.raises(ValueError, match=r"out\[2\] has the shape"):
        array.read_many(keys[:3], out=rows)
    assert (rows[0] == 0).all()


def test_many_and_asyncio(device, array, numbers):
    rows = [Tensor(array, (40,)) for _ in range(3)]
    array.read_many([5, 6, 50], out=rows)
    assert [device.peek(row).tolist() for row in rows] == numbers[[5, 6, 50]].tolist()
    found = array.read_many([5, (slice(3), slice(None, None, 2)), (3, 4)], device="cuda:0")
    for one, wanted in zip(found, (numbers[5], numbers[:3, ::2], numbers[3, 4])):
        one.pointer = one.__cuda_array_interface__["data"][0]
        assert one.shape == wanted.shape and (device.peek(one) == wanted).all()
    with pytest.raises(TypeError, match="out="):
        array.read_many([5], device="cuda:0", out=rows)
    rows = [Tensor(array, (40,)) for _ in range(3)]

    async def work():
        await asyncio.gather(*[array.async_array.getitem(i, out=row) for i, row in enumerate(rows)])
        await array.async_array.setitem(9, rows[0])

    asyncio.run(work())
    assert [device.peek(row).tolist() for row in rows] == numbers[:3].tolist() and (array[9] == numbers[0]).all()


def test_wrong(device, array, path):
    with pytest.raises(ValueError, match="tpu"):
        array.read(device="tpu:0")
    with pytest.raises(errors.UnsupportedError):
        array.read(device="opencl:0")
    with pytest.raises(TypeError, match="text"):
        array.read(device=0)
    with pytest.raises(TypeError, match="device="):
        array.read(device="cuda:0", out=np.zeros(1))
    with pytest.raises(BufferError):
        array.read(device="cuda:0").__dlpack__(dl_device=(1, 0))
    array.read(device="cuda:0").__dlpack__(dl_device=(enum.Enum("Kind", {"CUDA": 2}).CUDA, 0))
    with pytest.raises(TypeError, match="host memory"):
        zarrc.create_array(None, shape=3, dtype=str).read(device="cuda:0")
    with pytest.raises(TypeError, match="on a device"):
        np.asarray(array.read(device="cuda:0"))
    with pytest.raises(ValueError):
        array.read(out=Tensor(array, (3, 3)))
    with zarrc.config.set({"plugins": []}), pytest.raises(errors.UnsupportedError) as caught:
        zarrc.create_array(None, shape=3, dtype="i4").read(device="cuda:0")
    assert "cuda" in str(caught.value)


def test_cuda_plugin():
    """The plug-in for CUDA over a driver without a GPU: what test_gpu.py tests on a real one."""
    build = pathlib.Path(plugin()).parents[1]
    if not (build / "lib/zarrc/v1/cuda.so").exists() or not (build / "tests/fakecuda").exists():
        pytest.skip("the plug-in for CUDA is not built here")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "round_trip", pathlib.Path(__file__).with_name("test_gpu.py")],
        env={**os.environ, "LD_LIBRARY_PATH": str(build / "tests/fakecuda"), "ZARRC_PLUGINS": str(build / "lib/zarrc/v1/cuda.so")},
        capture_output=True, text=True)
    assert done.returncode == 0 and "3 passed" in done.stdout, done.stdout + done.stderr


# ---- the plug-in that the package has ----

OWN = pathlib.Path(zarrc.__file__).parent / "lib/cuda.so"
needs_own = pytest.mark.skipif(not OWN.exists(), reason="the package has no plug-in for CUDA")


def run(program, *arguments, **environment):
    build = pathlib.Path(plugin()).parents[1]
    outside = {name: text for name, text in os.environ.items() if not name.startswith("ZARRC_")}
    done = subprocess.run([sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True,
                          env={**outside, "LD_LIBRARY_PATH": str(build / "tests/fakecuda"), **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


LAZY = """
import pickle, sys
import numpy as np
import zarrc

def is_loaded():
    with open("/proc/self/maps") as file:
        return "/cuda.so" in file.read()

path, data = sys.argv[1], np.arange(600, dtype="int32").reshape(20, 30)
assert (zarrc.create_array(path, data=data, chunks=(7, 7))[...] == data).all()
assert not is_loaded() and zarrc.config["device"] is None
zarrc.open(path, device="cpu")
assert not is_loaded()
z = zarrc.open(path, device="cuda:0")
assert is_loaded()
there = z.read(device="cuda:0")
assert there.__dlpack_device__() == (2, 0)
z[...] = z.read(slice(None, None, -1), device="cuda:0")
assert (zarrc.open(path)[...] == data[::-1]).all()
back = {}
group = zarrc.create_group(path + ".group")
group.create_array("a", data=data)
for opened in (pickle.loads(pickle.dumps(z)), zarrc.open_array(path, mode="r", device="cuda"),
               zarrc.open(path, mode="r", device="cuda").store.with_read_only(False),
               zarrc.open_group(path + ".group", device="cuda:0")["a"], zarrc.open_store(path, device="cuda:0"),
               zarrc.open_array(back, mode="w", shape=3, dtype="int32", device="cuda_managed")):
    opened = zarrc.open_array(opened) if isinstance(opened, zarrc.Store) else opened
    assert opened.read(device="cuda:0").shape == opened.shape
memory = zarrc.create_array(None, data=data)
with zarrc.config.set(device="cuda:0"):
    assert zarrc.create_array(None, data=data).read(device="cuda:0").shape == memory.read(device="cuda:0").shape == data.shape
"""


@needs_own
def test_own_plugin_is_loaded_when_a_device_is_wanted(tmp_path):
    run(LAZY, tmp_path / "x.zarr")
    # The environment may want a device for all that is opened, or name a plug-in in place of the package's.
    short = "import zarrc; print(zarrc.create_array(None, data=[1, 2]).read(device='cuda:0').shape)"
    build = pathlib.Path(plugin()).parents[1]
    for environment in ({"ZARRC_DEVICE": "cuda"}, {"ZARRC_DEVICE": "cuda", "ZARRC_PLUGINS": str(build / "lib/zarrc/v1")},
                        {"ZARRC_DEVICE": "cuda", "ZARRC_PLUGINS": str(build / "lib/zarrc/v1/cuda.so")}):
        assert run(short, **environment) == "(2,)\n"
    with pytest.raises(TypeError, match="text"):
        zarrc.open(str(tmp_path / "x.zarr"), device=0)


EITHER = """
import sys
import zarrc
from zarrc.errors import ExistsError

given = {"shape": 9, "chunks": 3, "dtype": "f4"}
for zarr_format in 2, 3:
    path = f"{sys.argv[1]}{zarr_format}"
    here = zarrc.open_group(path, mode="a", zarr_format=zarr_format)
    there = zarrc.open_group(path, device="cuda:0")
    made = []
    for name, one, other in ("a", here, there), ("b", there, here):
        made.append(one.create_array(name, **given))
        made[-1][...] = 7
        for group in one, other:
            found = group.create_array(name, if_missing=True, **given)
            assert found.compressors == made[-1].compressors and (found[...] == 7).all()
    assert made[0].compressors != made[1].compressors
    here.create_array("gzip", compressors="gzip", **given)
    named = {"compressors": made[1].compressors}
    for name, more in ("gzip", {}), ("a", {"fill_value": 1}), ("a", named), ("a", {"if_missing": False}):
        try:
            there.create_array(name, **{"if_missing": True, **given, **more})
        except ExistsError:
            continue
        raise SystemExit(f"{name} was taken for {more}")
"""


@needs_own
def test_arrays_with_either_default(tmp_path):
    """Who names no codecs takes an array with the default of stores for the host or with that for a GPU, and no other."""
    run(EITHER, tmp_path / "x.zarr")


CUPY = """
import pickle, sys, warnings
import cupy
import numpy as np
import zarrc
import zarrc.cupy
from cupy import ndarray

path, kind = sys.argv[1:]
warnings.simplefilter("error" if kind == "gds" else "ignore")
data = np.arange(6000, dtype="int32").reshape(60, 100)
z = zarrc.cupy.open_array(path, mode="w", shape=data.shape, dtype="int32", chunks=(20, 50), gds=kind != "plain")
assert z.store.kind == ("local" if kind == "plain" else "gds") and z.compressors[0].configuration["cname"] == "lz4"
z[...] = data
assert isinstance(z[3:50:7], ndarray) and (z[3:50:7].get() == data[3:50:7]).all()
assert (zarrc.open_array(path)[...] == data).all()  # an ordinary array
z[::-1] = z[...]
z.oindex[[5, 1], :3] = z.blocks[0, 0].get()[:2, :3]
data = data[::-1].copy()
data[[5, 1], :3] = data[:2, :3]
again = pickle.loads(pickle.dumps(zarrc.cupy.open_array(path, mode="r")))
assert type(again) is zarrc.Array is zarrc.cupy.Array and again.config.like == ("cupy", "cuda:0", None) and again == zarrc.cupy.open_array(path, mode="r")
assert again.shape == (60, 100) and len(again) == 60
assert (again[...].get() == data).all() and (np.asarray(again) == data).all()
assert (again.oindex[[5, 1], :3].get() == data[[5, 1], :3]).all() and (again.vindex[[5, 1], [2, 3]].get() == data[[5, 1], [2, 3]]).all()
assert [one.get().tolist() for one in again.read_many([slice(2), (5, 6)])] == [data[:2].tolist(), data[5, 6].tolist()]
try:
    zarrc.cupy.open_array(path, device="opencl:0")
except ValueError as problem:
    assert "CUDA" in str(problem)
else:
    raise SystemExit("it opened")
group = zarrc.open_group({}, device="cuda:0")
assert group.create_array("a", shape=3, dtype="bool").compressors[0].configuration["cname"] == "lz4"
assert group.create_array("d", shape=3, dtype="M8[s]").compressors[0].configuration["cname"] == "lz4"
assert group.create_array("b", shape=3, dtype=str).compressors[0].name == "zstd"
assert group.create_array("c", shape=3, dtype="f4", compressors="gzip").compressors[0].name == "gzip"
assert zarrc.open_array(None, mode="w", shape=3, dtype="f4", zarr_format=2, device="cuda:0").compressor.configuration["cname"] == "lz4"
"""


def with_cupy(program, *arguments, has_cufile=True):
    """Runs a program with the drivers without a GPU of tests/ports/cuda, and a CuPy over them."""
    cufile = pathlib.Path(plugin()).parent / "fakecufile/libcufile.so.0"
    if has_cufile and not cufile.exists():
        pytest.skip("cuFile's stand-in is not built here")
    with tempfile.TemporaryDirectory(dir=pathlib.Path(plugin()).parent) as folder:  # on a file system with O_DIRECT
        run(program, f"{folder}/a b%20.zarr", *arguments, ZARRC_CUFILE=str(cufile) if has_cufile else "/missing",
            PYTHONPATH=os.pathsep.join([str(pathlib.Path(__file__).with_name("fakecupy")), os.environ.get("PYTHONPATH", "")]))


@needs_own
@pytest.mark.parametrize("kind", ["gds", "no cufile", "plain"])
def test_arrays_of_cupy(kind):
    with_cupy(CUPY, kind, has_cufile=kind == "gds")


STORIES = """
import pickle
import sys
import cupy, zarr, zarrc
import numpy as np

path = sys.argv[1]


def infer_from_what_is_handed_over():
    a = cupy.arange(20, dtype="f4")
    z = zarrc.array(a, store=path, chunks=(10,), compressors={"id": "zlib", "level": 1})
    assert isinstance(z[:], np.ndarray)  # a handle without a preference gives NumPy's
    for more in {"like": cupy.empty(())}, {"meta_array": cupy.empty(())}, {"like": cupy.ndarray}, {"like": cupy}, {"like": "cupy", "device": "cuda:0"}:
        part = z.read(slice(3, 7), **more)
        assert isinstance(part, cupy.ndarray) and (part == a[3:7]).all()
    assert z.append(cupy.arange(5, dtype="i8")) == (25,) == z.shape
    assert (z[:] == np.r_[np.arange(20.0), np.arange(5.0)]).all() and z.dtype == "f4"
    out = cupy.empty(25, "f4")
    assert z.read(out=out) is out and (out.get() == z[:]).all()
    z[20:] = cupy.arange(5)
    zarrc.save(path + ".copy", a)
    zarrc.save(path + ".group", a, b=a)
    assert (zarrc.load(path + ".copy") == np.arange(20)).all() and sorted(zarrc.load(path + ".group")) == ["arr_0", "b"]
    w = zarrc.array(a, chunks=10, meta_array=cupy.empty(()))
    assert isinstance(w[:], cupy.ndarray) and (w[:] == a).all()
    assert zarrc.array(a, dtype="i2", chunks=10).dtype == "i2"
    assert zarrc.create_array(None, shape=3, dtype="f4", fill_value=cupy.asarray(np.float32(2)))[:].tolist() == [2, 2, 2]


def a_device_array_is_a_regular_array():
    z = zarrc.cupy.open_array(store=path, mode="w", shape=(20,), chunks=(5,))
    assert isinstance(z, zarrc.Array) and z.dtype == "f8" and z.compressors[0].configuration["cname"] == "lz4"
    z[0:10] = np.arange(0, 10)
    z[10:20] = cupy.arange(10, 20)
    assert isinstance(z[:], cupy.ndarray) and (z[:] == cupy.arange(20)).all()
    w = zarrc.cupy.open_array(store=path, mode="w", shape=(20,), chunks=(5,), dtype="i8", compressors={"id": "lz4"})
    w[:] = cupy.arange(20)
    with zarrc.enable():
        assert (zarr.open_array(path)[:] == np.arange(20)).all()  # the CPU reads what the device wrote
    zarr.create_array(store=path, shape=(10,), dtype="i8", compressors=None, overwrite=True)[:] = np.arange(10)
    assert isinstance(zarrc.cupy.open_array(store=path)[:], cupy.ndarray)


def a_library_has_its_own_device():
    for device in "cpu", "opencl:0":
        assert isinstance(zarrc.open(path, device="cpu").read(0, like="cupy"), cupy.ndarray)
        with zarrc.config.set({"device": device}):
            assert isinstance(zarrc.open(path, like="cupy")[0], cupy.ndarray) and isinstance(zarrc.open(path).read(0, like="cupy"), cupy.ndarray)
            with zarrc.config.set({"like": "cupy"}):
                assert isinstance(zarrc.open(path)[0], cupy.ndarray)


def where_a_device_is_taken():
    assert isinstance(zarrc.cupy.open_array(path, like="numpy")[:], np.ndarray)
    group = zarrc.open_group(path + ".places", mode="w")
    z = group.create_array("a", shape=3, dtype="f4", device="cuda:0", like="cupy")
    assert isinstance(z[:], cupy.ndarray) and z.compressors[0].configuration["cname"] == "lz4"
    assert isinstance(group.require_array("a", shape=3, dtype="f4", like="cupy")[:], cupy.ndarray)
    assert zarrc.from_array(path + ".from", data=np.arange(3), device="cuda:0").read(device="cuda:0").shape == (3,)


def one_setting():
    for settings in {"device": "cuda:0", "like": "cupy"}, {"like": cupy.ndarray}:
        with zarrc.config.set(settings):
            z = zarrc.open_array(path)
            assert isinstance(z[:], cupy.ndarray) and z.store._options.get("device") is None
            assert isinstance(zarrc.open_array(path, like="numpy")[:], np.ndarray)
    assert isinstance(zarrc.open_array(path)[:], np.ndarray)
    assert isinstance(z[:], cupy.ndarray) and isinstance(z.with_config({"order": "F"})[:], cupy.ndarray)  # it keeps what was set
    assert isinstance(pickle.loads(pickle.dumps(z))[:], cupy.ndarray)


def parts_in_several_memories():
    z = zarrc.create_array(path + ".parts", data=np.arange(8, dtype="f4"), chunks=4, compressors={"name": "numcodecs.lz4", "configuration": {}})
    host, device, swapped, view = np.empty(4, z.dtype), cupy.empty(4, z.dtype), np.empty(4, ">f4"), cupy.empty(8, z.dtype)
    pinned, stats = z.read(slice(4, 8), device="cuda_host:0"), {}
    z.read_many([slice(0, 4), slice(4, 8), slice(0, 4)], out=[host, device, pinned])
    assert (np.from_dlpack(pinned) == np.arange(4)).all() and (device.get() == np.arange(4, 8)).all() and len(z.store._twins) == 1
    found = z.read_many([slice(0, 4), slice(4, 8)], out=[host, device], stats=stats)
    assert found[0] is host and found[1] is device
    assert (host == np.arange(4)).all() and (device.get() == np.arange(4, 8)).all()
    assert stats["copies_decoded_host"] == 0 and stats["chunks_fallback"] == 0, stats  # each part is decoded where it belongs
    z.read_many([slice(2, 6), slice(0, 4), slice(4, 8), 7], out=[device, swapped, view[2:6], host[0, ...]])
    assert (device.get() == np.arange(2, 6)).all() and (swapped == np.arange(4)).all() and (view.get()[2:6] == np.arange(4, 8)).all() and host[0] == 7


infer_from_what_is_handed_over()
parts_in_several_memories()
a_device_array_is_a_regular_array()
one_setting()
where_a_device_is_taken()
a_library_has_its_own_device()
"""


@needs_own
@pytest.mark.parametrize("has_cufile", [False, True])
def test_stories_of_arrays_of_cupy(has_cufile):
    """What users write, line by line."""
    pytest.importorskip("zarr")
    with_cupy(STORIES, has_cufile=has_cufile)


INFERENCE = """
import asyncio, pickle, sys, types, warnings
import cupy, zarrc
import numpy as np

path, data = sys.argv[1], np.arange(60, dtype="i4").reshape(6, 10)
zarrc.create_array(path, data=data, chunks=(2, 5))


class Tensor:
    "What the tensors of torch and the arrays of JAX are, on the device."

    def __init__(self, held):
        self.held = held
        self.shape, self.ndim, self.dtype, self.nbytes = held.shape, len(held.shape), "torch." + str(held.dtype), held.nbytes

    def __dlpack__(self, *, stream=None, max_version=None):
        return self.held.__dlpack__(max_version=max_version)

    def __dlpack_device__(self):
        return 2, 0

    def to(self, dtype):
        return type(self)(zarrc.create_array(None, data=self.numpy().astype(dtype), device="cuda:0").read(device="cuda:0"))

    def numpy(self):
        z = zarrc.create_array(None, shape=self.shape, dtype=self.held.dtype, device="cuda:0")
        z[...] = self.held
        return z[...]

    def detach(self):
        return self

    cpu = resolve_conj = resolve_neg = detach

    def copy_(self, other):
        held = zarrc.create_array(None, data=other, device="cuda:0")
        held.read(out=cupy.ndarray(self.held))

    def __array__(self, *unused):
        raise TypeError("a cuda tensor")


torch, jax = types.ModuleType("torch"), types.ModuleType("jax")
Tensor.__module__ = "torch"
torch.Tensor, torch.from_dlpack, torch.from_numpy, torch.get_default_device = Tensor, Tensor, lambda host: host, lambda: "cuda"
torch.float32, torch.int32 = "f4", "i4"


class Numba:
    "What Numba's arrays are."

    def __init__(self, held):
        self.held, self.shape, self.dtype, self.ndim = held, held.shape, held.dtype, len(held.shape)
        self.__cuda_array_interface__ = held.__cuda_array_interface__


async def hold(m):
    out = cupy.empty(10, "i4")
    a = m.async_array
    assert await a.getitem(0, out=out) is out and (out.get() == m[0]).all()
    assert isinstance(await a.getitem(0, like="cupy"), cupy.ndarray)


class Array(Tensor):
    def __init__(self, held):
        super().__init__(held)
        self.dtype = held.dtype

    def astype(self, dtype):
        return self.to(dtype)


Array.__module__ = "jaxlib.xla_extension"
jax.dlpack = types.SimpleNamespace(from_dlpack=Array)
jax.default_backend = lambda: "gpu"
sys.modules.update(torch=torch, jax=jax)

# ---- reads ----
z = zarrc.open(path)
assert z.store._twins == {}
for name, kind in {"torch": Tensor, "jax": Array, "cupy": cupy.ndarray}.items():
    found = z.read(slice(2), like=name)
    assert type(found) is kind and (z[:2] == data[:2]).all() and type(z[:2]) is np.ndarray
    twin = z._twin
    assert isinstance(zarrc.open(path, like=found)[:], kind) and zarrc.open(path, like=kind).config.like[0] == name
    for one in zarrc.open(path, like=name).read_many([0, slice(2)]):
        assert type(one) is kind
    assert z._twin is twin and twin is not None  # it was opened once
kept = z.store._twins["cuda"]
assert isinstance(kept, zarrc.Store)
w = zarrc.open(path, like="cupy")
for found, wanted in ((w.oindex[[5, 1], :3], data[[5, 1], :3]), (w.vindex[[5, 1], [2, 3]], data[[5, 1], [2, 3]]), (w.blocks[1], data[2:4]),
                      (w[cupy.asarray(np.array([5, 1]))], data[[5, 1]]), (w[cupy.asarray(data > 30)], data[data > 30]),
                      (w.get_basic_selection((0, slice(3))), data[0, :3]), (w.get_orthogonal_selection(([1],)), data[[1]]),
                      (w[3, 4], data[3, 4]), (w.get_mask_selection(data > 30), data[data > 30])):
    assert isinstance(found, cupy.ndarray) and (found.get() == wanted).all()
assert type(w.read(0, device="cpu")) is type(w.read(0, like="numpy")) is np.ndarray and (np.asarray(w) == data).all()
assert isinstance(pickle.loads(pickle.dumps(w))[0], cupy.ndarray) and isinstance(w.with_config({"order": "F"})[0], cupy.ndarray)
assert w != z and w == zarrc.open(path, like="cupy")
root = zarrc.open(path + ".g", mode="w", like="cupy")
root.create_group("a").create_array("b", data=data)
root["c"] = cupy.asarray(data)
for opened in root, pickle.loads(pickle.dumps(root)):
    assert isinstance(opened["a/b"][0], cupy.ndarray) and isinstance(opened["a"]["b"][0], cupy.ndarray)
    assert all(isinstance(node[...], cupy.ndarray) for _, node in opened.arrays())


async def wait():
    a = zarrc.open(path).async_array
    assert isinstance(await a.getitem(0, like="cupy"), cupy.ndarray) and isinstance(await a.getitem(0), np.ndarray)
    assert isinstance((await a.read_many([0], like="torch"))[0], Tensor)
    assert isinstance(await (await zarrc.open_async(path, like="cupy")).getitem(0), cupy.ndarray)
    await a.setitem(slice(2), cupy.asarray(data[:2].astype("f8")))
    out = cupy.empty((6, 10), "i4")
    assert (await a.getitem(..., out=out)) is out and (out.get() == data).all()


asyncio.run(wait())

# ---- writes: other data types, as NumPy's assignment ----
stats, entered = {}, cupy.cuda.Device.entered
z.write(slice(2), cupy.asarray(data[:2] + 0.75), stats=stats)
assert cupy.cuda.Device.entered == entered + 1  # that of the value is the current one for the conversion
assert (z[:2] == data[:2]).all() and stats["copies_device"] >= 1 and stats["bytes_device"] >= 80
for value in (Tensor, Array):
    z[...] = value(zarrc.create_array(None, data=data + 1.5, device="cuda:0").read(device="cuda:0"))
    assert (z[...] == data + 1).all()
z[3, 4] = cupy.asarray(np.array(7.9))
z.oindex[[0, 5], :2] = cupy.asarray(np.zeros((2, 2)))
z.vindex[[1, 2], [3, 4]] = cupy.asarray(np.array([50, 60], "i8"))
assert z[3, 4] == 7 and z[0, 0] == 0 == z[5, 1] and z[1, 3] == 50 and z[2, 4] == 60
fields = zarrc.create_array(path + ".f", shape=3, dtype=[("a", "i4"), ("b", "f4")])
fields["a", 1:] = cupy.asarray(np.array([4, 5], "i8"))
assert fields["a"].tolist() == [0, 4, 5] and isinstance(fields.read(fields="a", like="cupy"), cupy.ndarray)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    z[0, :2] = cupy.asarray(np.array([1 + 2j, 3]))
assert any("imaginary" in str(one.message) for one in told) and z[0, :2].tolist() == [1, 3]
# Types that CuPy lacks, and memory of a library that is not known: NumPy converts them.
for dtype, more in ([("a", "i4"), ("b", "f4")], {}), ("M8[s]", {}), ("S3", {}), ("bfloat16", {"chunks": 2}), ("f8", {}):
    lacking, wanted = zarrc.create_array(path + ".l", shape=3, dtype=dtype, overwrite=True, **more), np.array([7, 8, 9])
    for value in cupy.asarray(wanted), Numba(z.read((0, slice(3)), device="cuda:0")):
        expected = np.zeros(3, lacking.dtype)
        expected[:] = wanted if isinstance(value, cupy.ndarray) else z[0, :3]
        lacking.write(slice(3), value, stats=(stats := {}))
        is_there = dtype == "f8" and isinstance(value, cupy.ndarray)
        assert (lacking[:] == expected).all() and stats.get("copies_device", 0) == is_there, (dtype, stats)
        assert is_there or dtype == "bfloat16" or "NumPy converts" in repr(lacking.explain(value=value))
assert zarrc.array(cupy.asarray(wanted), dtype="M8[s]")[:].tolist() == wanted.astype("M8[s]").tolist()

# ---- without elements ----
nothing = zarrc.create_array(path + ".empty", data=cupy.empty((0, 10), "i4"))
nothing.append(cupy.empty((0, 10), "i4"))
zarrc.save(path + ".saved", cupy.empty((0, 3), "i4"))
z[3:3] = cupy.empty((0, 10), "i4")
for source in z, zarrc.create_array(None, data=data):
    out = [cupy.empty((0, 10), "i4"), np.empty(10, "i4"), cupy.empty(10, "i4")]
    assert source.read(slice(3, 3), out=out[0]) is out[0] and source.read_many([slice(3, 3), 0, 1], out=out)[2] is out[2]
    assert (out[1] == source[0]).all() and (out[2].get() == source[1]).all()

# ---- another handle changes the array ----
stale, other = zarrc.open(path), zarrc.open(path)
stale[0] = cupy.asarray(data[0])
other.resize((8, 10))
other.append(cupy.asarray(data[:1]))
stale[1] = cupy.asarray(data[1])  # as a handle does that has not read the shape again
assert (other[:2] == data[:2]).all() and other.shape == (9, 10) and (other[8] == data[0]).all()
stale.refresh()
stale[8] = cupy.asarray(data[5])
assert (stale.read(8, like="cupy").get() == data[5]).all() and stale._twin.shape == (9, 10)
other.resize((6, 10))
other.attrs["a"] = 1
gone = zarrc.create_array(path + ".gone", data=data)
gone[0] = cupy.asarray(data[0])
del zarrc.open_group(path.rpartition("/")[0], mode="a")[path.rpartition("/")[2] + ".gone"]
try:
    gone[0] = cupy.asarray(data[0])
except zarrc.errors.NotFoundError:
    pass
else:
    raise SystemExit("it wrote to an array that is gone")

# ---- what must not be ----
needs_grad = Tensor(zarrc.create_array(None, data=data[0, :3]).read(device="cuda:0"))
needs_grad.requires_grad = True
for call in (lambda: fields.__setitem__("a", needs_grad), lambda: z.__setitem__((0, slice(3)), needs_grad), lambda: fields.write(..., needs_grad, fields=["a"])):
    try:
        call()
    except TypeError as problem:
        assert "detach" in str(problem)
    else:
        raise SystemExit("it wrote")
for out, match in ((Array(z.read(device="cuda:0")), 'like="jax"'), (Tensor(z.read(device="cuda:0")), "detach")):
    out.requires_grad = match == "detach"
    try:
        z.read(out=out)
    except TypeError as problem:
        assert match in str(problem)
    else:
        raise SystemExit("it read")
for wrong, error in (("tensorflow", ValueError), (3, TypeError), (object(), TypeError), (np.float32, TypeError), (np.dtype("f8"), TypeError),
                     (np.float32(1), TypeError)):
    for call in (lambda: z.read(like=wrong), lambda: zarrc.open(path, like=wrong), lambda: zarrc.config.set({"like": wrong})):
        try:
            call()
        except error as problem:
            assert "cupy" in str(problem)
        else:
            raise SystemExit("it is no library")
row, rows = cupy.empty(10, "i4"), cupy.empty((6, 10), "i4")
small = zarrc.create_array(None, shape=4, dtype="int4")
for call, error in ((lambda: z.read(out=rows, like="cupy"), TypeError), (lambda: z.get_basic_selection(0, out=row, like="cupy"), TypeError),
                    (lambda: z.get_orthogonal_selection(0, out=row, like="cupy"), TypeError), (lambda: small.read(packed=True, like="cupy"), TypeError),
                    (lambda: z.get_coordinate_selection((0, 0), out=cupy.empty((), "i4"), like="cupy"), TypeError),
                    (lambda: z.get_mask_selection(data > 70, out=cupy.empty(0, "i4"), like="cupy"), TypeError),
                    (lambda: z.get_block_selection(0, out=rows[:2], like="cupy"), TypeError), (lambda: z.explain(out=rows, like="cupy"), TypeError),
                    (lambda: asyncio.run(z.async_array.getitem(0, out=row, like="bogus")), TypeError), (lambda: z.read(like="cupy", meta_array="cupy"), TypeError),
                    (lambda: zarrc.open(path, like="cupy", device="cpu"), ValueError)):
    try:
        call()
    except error:
        continue
    raise SystemExit("it read")

# ---- the device of an open store ----
torch.get_default_device = lambda: "cpu"
there = zarrc.open_store(path, device="cuda:0")
for opened in zarrc.open_array(there, like="torch"), zarrc.open(there, like="torch"), zarrc.open_array(path, like="torch", device="cuda"):
    assert isinstance(opened[0], Tensor) and opened.config.like[1].startswith("cuda")
assert zarrc.open_array(path, like="torch").config.like[1] == "cpu"
torch.get_default_device = lambda: "cuda"

# ---- stores that cannot be opened again ----
for store in None, {}:
    m = zarrc.create_array(store, data=cupy.asarray(data), chunks=(2, 5))
    stats, entered = {}, cupy.cuda.Device.entered
    out = cupy.empty((2, 10), "i4")
    assert m.read(slice(2), out=out, stats=stats) is out and cupy.cuda.Device.entered == entered + 1 and (out.get() == data[:2]).all()
    assert stats["copies_up"] == 1 and stats["bytes_up"] == 80 and m._twin is None
    assert "staged through host memory" in repr(m.explain(like="cupy")) and "staged" in m.explain(out=out).notes[0] and not m.explain().notes
    assert isinstance(m.read(0, like="cupy"), cupy.ndarray)
    stats = {}
    m.write(slice(2), cupy.asarray(data[:2] + 1.0), stats=stats)
    assert (m[:2] == data[:2] + 1).all() and stats["copies_down"] == 1 and stats["copies_device"] == 1
    m.append(cupy.asarray(data[:1]))
    assert m.shape == (7, 10) and (m[6] == data[0]).all()
    asyncio.run(hold(m))
    for place in "cuda:0", "cuda_host:0", "cuda_managed:0":  # tensors of no library
        there = z.read(slice(2), device=place)
        m[2:4] = there
        assert (m[2:4] == z[:2]).all() and m.read(0, device=place).shape == (10,)
        m[2] = 0
        m.write(slice(3, 5), Numba(there) if place != "cuda_host:0" else there)
        assert (m[3:5] == z[:2]).all()
        m.append(there)
        stats = {}
        for out in (there, Numba(there)) if place != "cuda_host:0" else (there,):
            assert m.read(slice(3, 5), out=out, stats=stats) is out and (zarrc.array(out)[...] == m[3:5]).all()
        assert stats["copies_up"] >= 1
        m[...] = 1
        assert all((zarrc.array(one)[...] == 1).all() for one in m.read_many([0, slice(2, 4)], device=place, stats=stats))
        out = [z.read(0, device=place), np.empty(10, "i4")]
        m.read_many([0, 1], out=out)
        assert (zarrc.array(out[0])[...] == 1).all() and (out[1] == 1).all()
        m.resize((7, 10))
        m[:6], m[6] = data, data[0]
    many = [cupy.empty(10, "i4"), np.empty(10, "i4")]
    m.read_many([2, 3], out=many)
    assert (many[0].get() == data[2]).all() and (many[1] == data[3]).all()
    for wrong, error in ((cupy.empty((3, 10), "i4"), ValueError), (cupy.empty((2, 10), "f4"), TypeError)):
        try:
            m.read(slice(2), out=wrong)
        except error:
            continue
        raise SystemExit("it fits")
assert "cupy converts float64 to int32" in z.explain(0, value=cupy.empty(10, "f8")).notes[0] and "host->cuda" in repr(z.explain(like="cupy"))
assert z.store._twins["cuda"] is kept

# ---- a plug-in that cannot be loaded ----
import zarrc._devices
out = cupy.empty((6, 10), "i4")
zarrc._devices.plugin = lambda device, others: path + ".missing.so" if device else None
asked = []
zarrc._settings.settings.context_for, before = lambda *given: asked.append(given) or before(*given), zarrc._settings.settings.context_for
lacking = zarrc.open(path)
for call in (lambda: lacking.read(like="cupy"), lambda: lacking.read(out=out), lambda: lacking.read(device="cuda:0")):
    try:
        call()
    except zarrc.ZarrcError as problem:
        assert "missing.so" in str(problem)
    else:
        raise SystemExit("it read")
assert len(asked) == 1 and (lacking[...] == z[...]).all()
"""


@needs_own
def test_inference():
    """Handles that were opened without a device, and what is handed over."""
    with_cupy(INFERENCE, has_cufile=False)


MEANWHILE = """
import asyncio, os, sys
import cupy, zarrc
import numpy as np

path, data = sys.argv[1], np.arange(8, dtype="i4")


def refuse(call, error):
    try:
        call()
    except error:
        return
    raise SystemExit(f"no {error.__name__}")


def write(z, value=cupy.asarray(data + 7)):
    z[...] = value


Conflict, NotFound = zarrc.errors.ConflictError, zarrc.errors.NotFoundError

# ---- another array is in its place before the first use of a device ----
for n, (new, more) in enumerate({"type": (data.astype("f4"), {"chunks": 4}), "chunks": (data, {"chunks": 2}), "fill": (data, {"chunks": 4, "fill_value": 3}),
                                 "wide": (data.astype("f8"), {"chunks": 4})}.values()):
    where = f"{path}.{n}"
    z = zarrc.create_array(where, data=data, chunks=4, compressors=None)
    opened = zarrc.open(where, like="cupy")
    other = zarrc.create_array(where, data=new, overwrite=True, compressors=None, **more)
    for one in z, opened:
        refuse(lambda: write(one), Conflict)
        refuse(lambda: asyncio.run(one.async_array.setitem(slice(None), cupy.asarray(data))), Conflict)
        refuse(lambda: one.append(cupy.asarray(data[:2])), Conflict)
        refuse(lambda: asyncio.run(one.async_array.append(cupy.asarray(data[:2]))), Conflict)
    assert (zarrc.open(where)[:] == new).all() and zarrc.open(where).dtype == new.dtype

# ---- it is gone, or has another shape ----
group = zarrc.open_group(path + ".group", mode="w")
for is_resized in False, True:
    stale = group.create_array("a", data=data, chunks=4)
    if is_resized:
        zarrc.open_array(group, path="a").resize(12)
        refuse(lambda: write(stale), Conflict)
    del group["a"]
    refuse(lambda: write(stale), NotFound)
    refuse(lambda: stale.append(cupy.asarray(data)), NotFound)
    assert not os.path.exists(path + ".group/a")
stale = group.create_array("a", data=data, chunks=4)
zarrc.open_array(group, path="a").resize(12)
assert stale.append(cupy.asarray(data[:2] + 0.5)) == (14,)
twin = stale._twin
assert stale.append(cupy.asarray(data[:1])) == (15,) and stale._twin is twin is not None  # it was opened once
assert zarrc.open_array(group, path="a")[:].tolist() == [*range(8), 0, 0, 0, 0, 0, 1, 0]
write(stale, cupy.asarray(np.arange(15)))
assert stale._twin is twin and (stale.read(like="cupy").get() == np.arange(15)).all()
stale.refresh()
assert stale.read(0, like="cupy").get() == 0

# ---- the directory has another name ----
z = zarrc.create_array(path + ".moved", data=data, chunks=4)
os.rename(path + ".moved", path + ".old")
other = zarrc.create_array(path + ".moved", data=-data, chunks=4)
assert (z.read(like="cupy").get() == data).all()
write(z)
assert (zarrc.open(path + ".old")[:] == data + 7).all() and (other[:] == -data).all()

# ---- only consolidated metadata describes it ----
group = zarrc.open_group(path + ".only", mode="w")
group.create_array("a", data=data, chunks=4)
zarrc.consolidate_metadata(path + ".only")
os.remove(path + ".only/a/zarr.json")
group = zarrc.open_group(path + ".only", use_consolidated=True, mode="r", like="cupy")
assert (group["a"][:].get() == data).all() and (zarrc.open_group(path + ".only", mode="r")["a"].read(like="cupy").get() == data).all()
"""


@needs_own
def test_changes_before_the_first_use_of_a_device():
    with_cupy(MEANWHILE, has_cufile=False)


CHECKED_FIRST = """
import sys
import cupy, zarrc, zarrc._devices
import numpy as np

path, data = sys.argv[1], np.arange(4, dtype="f4")


class Parameter(cupy.ndarray):
    requires_grad = True


def refuse(value, error, match):
    "What would replace the array, the member or the group, and does not."
    zarrc.save(path, data)
    group = zarrc.open_group(path + ".group", mode="w")
    group["a"] = data
    for call in (lambda: zarrc.save(path, value), lambda: zarrc.create_array(path, data=value, overwrite=True), lambda: zarrc.array(value, store=path, overwrite=True),
                 lambda: group.__setitem__("a", value), lambda: zarrc.save(path + ".group", value, b=data), lambda: zarrc.save(path + ".group", data, b=value)):
        try:
            call()
        except error as problem:
            assert match in str(problem), problem
        else:
            raise SystemExit("it wrote")
    assert (zarrc.load(path) == data).all() and (group["a"][:] == data).all() and list(zarrc.open(path + ".group")) == ["a"]


refuse(Parameter(cupy.asarray(data)._tensor), TypeError, "detach")

# ---- empty memory is on no device ----
z = zarrc.create_array(path + ".z", data=data)
for shape in (0,), (0, 3):
    zarrc.save(path + ".empty", cupy.empty(shape, "i4"))
    assert zarrc.open(path + ".empty").shape == shape
z[4:] = out = cupy.empty(0, "f4")
assert z.read(slice(4, None), out=out) is out and z.append(out) == (4,)

# ---- a plug-in that cannot be loaded ----
value = cupy.asarray(data)
zarrc._devices.plugin = lambda device, others: path + ".missing.so" if device else None
tried, make = [], zarrc._core.new_context
zarrc._core.new_context = lambda wanted: tried.append(wanted) or make(wanted)
refuse(value, zarrc.errors.UnsupportedError, "missing.so")
for call in (lambda: zarrc.open(path, like="cupy"), lambda: zarrc.open(path, device="cuda:0"), lambda: zarrc.open_store(path, device="cuda:0"),
             lambda: zarrc.open(path).read(like="cupy"), lambda: zarrc.open_array(path + ".new", like="cupy", mode="a", shape=3, dtype="i4")) * 2:
    try:
        call()
    except zarrc.errors.NotFoundError as problem:
        raise SystemExit(f"as if there were no array: {problem}")
    except zarrc.errors.UnsupportedError as problem:
        assert "cuda" in str(problem) and "missing.so" in str(problem)
    else:
        raise SystemExit("it opened")
assert len(tried) == 1, len(tried)
"""


SAME_LOOP = """
import asyncio, os, sys, threading
import cupy, zarrc
import numpy as np

path, data = sys.argv[1], np.arange(40, dtype="i4")
zarrc.create_array(path, data=data, chunks=10, compressors=None)
opened_by = []
before = zarrc.Array._open_twin
zarrc.Array._open_twin = lambda self, store: opened_by.append(threading.current_thread()) or before(self, store)


async def serve(reader, writer):
    try:
        while True:
            verb, name, _ = (await reader.readuntil(b"\\r\\n\\r\\n")).decode().split(None, 2)
            file = os.path.join(path, name.lstrip("/"))
            body = open(file, "rb").read() if os.path.isfile(file) else None
            writer.write(b"HTTP/1.1 %b\\r\\nContent-Length: %d\\r\\n\\r\\n" % (b"404 No" if body is None else b"200 OK", len(body or b""))
                         + (b"" if verb == "HEAD" else body or b""))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    out = cupy.empty(3, "i4")
    for options in {"like": "cupy"}, {"out": out}:
        a = await zarrc.open_async(url, mode="r")
        assert ((await a.getitem(slice(3), **options)).get() == data[:3]).all()
    for call in (lambda a: a.setitem(slice(3), out), lambda a: a.append(out)):
        await call(zarrc.open(path).async_array)
    server.close()


asyncio.run(main())
assert len(opened_by) == 4 and threading.main_thread() not in opened_by
"""


@needs_own
def test_what_a_coroutine_opens_is_not_opened_on_the_loop():
    """The server may be on the same loop."""
    with_cupy(SAME_LOOP, has_cufile=False)


@needs_own
def test_values_are_checked_before_anything_is_replaced():
    with_cupy(CHECKED_FIRST, has_cufile=False)


def test_like_in_host_memory(path, numbers):
    class Matrix(np.ndarray):
        pass

    z = zarrc.create_array(path, data=numbers, chunks=(16, 16))
    opened_as = zarrc.open(path, like=np)
    for like in (np.empty(()).view(Matrix), Matrix):
        assert type(zarrc.open(path, like=like)[:3]) is Matrix and type(z.read(slice(3), like=like)) is Matrix
    assert type(zarrc.open(path, like=np.empty(()))[:3]) is type(opened_as[:3]) is np.ndarray and zarrc.open(path, like="numpy").config.like[0] == "numpy"
    with zarrc.config.set({"like": Matrix}):
        opened = zarrc.open(path)
        assert type(opened[:3]) is Matrix and type(zarrc.open(path, like="numpy")[:3]) is np.ndarray
    assert type(opened._with_numpy()[:3]) is np.ndarray and z._with_numpy() is z
    assert type(opened.oindex[[1]]) is type(opened.read_many([0])[0]) is type(asyncio.run(opened.async_array.getitem(0))) is Matrix
    told = []
    assert all(type(one) is Matrix for one in opened.read_many([0, 1], progress=lambda done, total: told.append(done)))
    assert told == sorted(told)
    texts = zarrc.create_array(None, data=np.array(["a", "b"]), like=Matrix)
    assert texts[...].tolist() == ["a", "b"]
    with pytest.raises(ImportError, match="like='cupy' needs the package cupy"):
        zarrc.open(path).read(like="cupy", device="cuda:0")


def test_a_missing_library_is_needed_by_reads_alone(path, numbers, monkeypatch):
    """A setting says what reads return. What reads nothing, or names another library, does not import it."""
    monkeypatch.setitem(sys.modules, "torch", None)
    with zarrc.config.set({"like": "torch"}):
        zarrc.save(path, numbers)
        zarrc.save(path + ".group", numbers, b=numbers)
        root = zarrc.open_group(path + ".group", mode="a")
        root["c"] = numbers
        assert (zarrc.open(path, like="numpy")[:] == numbers).all() and zarrc.open_store(path).kind == "local"
        assert zarrc.open(path, config={"like": "numpy"})[0].tolist() == numbers[0].tolist()
        opened = zarrc.open(path)
        assert (np.asarray(opened) == numbers).all() and opened.append(numbers[:1]) == (len(numbers) + 1, numbers.shape[1])
        if zarr := sys.modules.get("zarr"):
            with zarrc.enable():
                assert (zarr.open(path)[:2] == numbers[:2]).all()
        for read in (lambda: opened[0], lambda: opened.oindex[[0]], lambda: opened.read_many([0]), lambda: root["c"][0]):
            with pytest.raises(ImportError, match="like='torch' needs the package torch"):
                read()


class Own(np.ndarray):
    """Another class than NumPy's own: what `like` needs without a device."""


def test_members_are_as_their_group(path, numbers):
    g = zarrc.open_group(path, mode="w", like=Own)
    g.create_array("a", data=numbers)
    found = {
        "config": g.create_array("b", data=numbers, config={"order": "F"}), "require": g.require_array("b", shape=numbers.shape, config={"order": "F"}),
        "open_array": zarrc.open_array(g, path="a"), "open": zarrc.open(g, path="a"), "copy": zarrc.copy(g["a"], g, "c"),
        "create_array": zarrc.create_array(g, name="d", data=numbers), "array": zarrc.array(numbers, store=g, path="e"),
        "group": g.create_group("f").create_array("a", data=numbers), "open_group": zarrc.open_group(g, path="f")["a"],
        "copied": zarrc.copy(g["f"], g, "h")["a"], "require_group": g.require_group("i").create_array("a", data=numbers), "refresh": g.refresh()["a"],
        "hierarchy": next(g.create_hierarchy({"j": g["a"].metadata.to_dict()}))[1], "consolidated": zarrc.consolidate_metadata(g)["a"],
        "consolidated store": zarrc.consolidate_metadata(g.store, like=Own)["a"], "open_consolidated": zarrc.open_consolidated(g.store, meta_array=Own)["a"],
        "zeros": g.zeros(name="z", shape=3), "require ArrayConfig": g.require_array("b", shape=numbers.shape, config=zarrc.ArrayConfig(order="F")),
        "with_config": g["a"].with_config(zarrc.ArrayConfig(order="F")), "async_array": g["a"].async_array.with_config(zarrc.ArrayConfig()).array,
        "hierarchy below": next(zarrc.create_hierarchy(store=g, nodes={"k": g["a"].metadata.to_dict()}))[1]}
    assert {name: type(z[:]) for name, z in found.items()} == dict.fromkeys(found, Own)
    assert found["config"].order == found["require"].order == "F"
    assert type(g.create_array("n", data=numbers, like="numpy")[:]) is type(zarrc.open(g, path="a", like="numpy")[:]) is np.ndarray
    plain = zarrc.open_group(path, mode="a")
    assert type(plain["a"][:]) is np.ndarray
    for like in {"like": Own}, {"meta_array": Own}:
        assert type(plain.require_array("a", shape=numbers.shape, dtype=numbers.dtype, **like)[:]) is Own
        assert type(plain.require_array("m", shape=3, dtype="i4", **like)[:]) is Own
        assert type(plain.get("a", **like)[:]) is type(plain.get_array("a", **like)[:]) is type(plain.get("f", **like)["a"][:]) is Own
        assert type(plain.zeros(name="o", shape=3, overwrite=True, **like)[:]) is Own
        for make in zarrc.create_group, zarrc.group:
            assert type(make(path + ".new", overwrite=True, **like).create_array("a", data=numbers)[:]) is Own
    assert g["a"].with_config(zarrc.ArrayConfig(trust="full")).with_config(zarrc.ArrayConfig(order="F")).config.trust == "full"
    assert type(g["a"].with_config(zarrc.ArrayConfig(like="numpy"))[:]) is np.ndarray


def test_where_like_is_taken(path, numbers):
    z = zarrc.from_array(path, data=numbers, like=Own)
    a = zarrc.open(path).async_array
    found = {
        "from_array": z[:], "load": zarrc.load(path, like=Own), "basic": a.array.get_basic_selection(..., meta_array=Own),
        "orthogonal": a.array.get_orthogonal_selection(([1],), meta_array=Own), "oindex": asyncio.run(a.oindex.getitem(([1],), like=Own)),
        "vindex": asyncio.run(a.vindex.getitem(([1], [2]), meta_array=Own))}
    assert {name: type(one) for name, one in found.items()} == dict.fromkeys(found, Own)


@pytest.mark.parametrize("name", ["jax", "torch"])
def test_libraries_in_host_memory(path, numbers, name, monkeypatch):
    library = pytest.importorskip(name, reason=f"make test-torch installs {name}")
    kind = library.Array if name == "jax" else library.Tensor
    for dtype in ("i4", ">i4", "f4", "bool"):
        data = numbers.astype(dtype)
        z = zarrc.create_array(path, data=data, chunks=(16, 16), overwrite=True, like=name, device="cpu")
        assert isinstance(z[3:5], kind) and (np.asarray(z[3:5]) == data[3:5]).all() and isinstance(z.oindex[[1, 2]], kind)
        z[:2] = z[2:4]
        assert (zarrc.open(path)[:2] == data[2:4]).all() and all(isinstance(one, kind) for one in z.read_many([0, slice(2)]))
        z[0] = z[2:3]
    made, make = [], _tensors._native
    monkeypatch.setattr(_tensors, "_native", lambda *given: made.append(make(*given)) or made[-1])
    large = zarrc.create_array(None, shape=(1024, 1024), dtype="f4", like=name)  # what is smaller may lie where JAX copies it
    whole = large.read(stats=(stats := {}))
    assert (whole.unsafe_buffer_pointer() if name == "jax" else whole.data_ptr()) == made[0].ctypes.data  # no copy
    assert stats["copies_up"] == stats["copies_down"] == stats["copies_device"] == 0
    if name == "jax":
        out = zarrc.open(path, like=name)[...]
        for call in (lambda: z.read(out=out), lambda: z.read_many([0], out=[out[0]]), lambda: z.get_basic_selection(0, out=out[0]),
                     lambda: asyncio.run(z.async_array.getitem(0, out=out[0])), lambda: z.explain(out=out)):
            with pytest.raises(TypeError, match='arrays of jax are immutable: read with like="jax"'):
                call()
        strided = out.T[::2, ::3]
        zarrc.save(path + ".jax", strided.astype("bfloat16"))
        assert zarrc.load(path + ".jax", like=out).dtype == "bfloat16" and (zarrc.load(path + ".jax").astype("f4") == np.asarray(strided)).all()
    else:
        with pytest.raises(TypeError, match="detach"):
            zarrc.create_array(None, shape=3, dtype="f4").read(out=library.zeros(3, requires_grad=True))
        with pytest.raises(TypeError, match="detach"):
            zarrc.create_array(None, shape=3, dtype=[("a", "f4")])["a"] = library.zeros(3, requires_grad=True)
    with pytest.raises(TypeError, match=f"{name} does not take elements of type int4"):
        zarrc.create_array(None, shape=3, dtype="int4").read(like=name, device="cpu")


def test_an_example_says_the_device():
    """That of the example, else `device=`, else the default."""
    class Example:
        shape = ()

        def __dlpack_device__(self):
            return 2, 1

    Example.__module__ = "torch"
    assert _libraries.check_like(Example()) == ("torch", "cuda:1", None) and _libraries.check_like(Example) == ("torch", None, None)
    for like, device, default, wanted in ((Example(), None, "cuda:0", "cuda:1"), (Example(), "cuda:2", "cuda:0", "cuda:2"), (Example, None, "cuda:0", "cuda:0"),
                                          ("torch", "cpu", "cuda:0", "cpu"), ("torch", None, None, "cuda:3")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, "torch", types.SimpleNamespace(get_default_device=lambda: "cuda:3"))
            assert _libraries.resolve_like(_libraries.check_like(like), device, default).device == wanted


def test_counters_need_a_dict_of_numbers(path, numbers):
    z = zarrc.create_array(path, data=numbers)
    for wrong in (collections.UserDict(), [], {"copies_up": "x"}, {"chunks_total": -1}):
        for call in (lambda: z.read(0, stats=wrong), lambda: z.read_many([0], stats=wrong), lambda: z.write(0, 1, stats=wrong)):
            with pytest.raises((TypeError, OverflowError)):
                call()
    assert (z[...] == numbers).all()


def test_counters_of_a_call(array, numbers):
    stats = {"copies_up": 5}
    array.read(slice(16), stats=stats)
    assert stats["chunks_total"] == 3 and stats["copies_up"] == 5 and stats["bytes_decoded"] > 0
    there = array.read(device="cuda:0", stats=stats)
    assert stats["copies_up"] > 5 and stats["chunks_total"] == 15
    array.write(..., there, stats=stats)
    assert stats["copies_down"] > 0 and (array[...] == numbers).all()


GPU_MODE = """
import sys, warnings
import cupy, zarr, zarrc
import numpy as np

warnings.simplefilter("error")
path, data = sys.argv[1], np.arange(6000, dtype="int32").reshape(60, 100)
there = cupy.asarray(data)
with zarr.config.enable_gpu(), zarrc.enable():
    stores = [path, zarr.storage.MemoryStore(), *(zarrc.ZarrcStore(zarrc.open_store(where, device="cuda:0"))
                                                  for where in (path + "2", "gds://" + path + "3"))]
    assert stores[3].native.kind == "gds"
    for store in stores:
        for name, given in {"a": {}, "b": {"shards": (40, 100)}, "c": {"zarr_format": 2}}.items():
            z = zarr.create_array(store, name=name, shape=data.shape, dtype="int32", chunks=(20, 50), fill_value=5, **given)
            z[...] = there
            z[3:7] = 5
            wanted = data.copy()
            wanted[3:7] = 5
            for key in (..., slice(5, 50, 3), (slice(20), slice(50))):
                assert isinstance(z[key], cupy.ndarray) and (z[key].get() == wanted[key]).all()
    stats = zarrc.pipeline_stats()
    assert stats["native_chunks"] > 100 and stats["fallback_chunks"] == 0, stats
"""


@needs_own
def test_gpu_mode_of_zarr_python():
    """zarr-python's own buffer classes of the GPU; test_gpu_mode.py has the kinds of stores and selections."""
    pytest.importorskip("zarr")
    with_cupy(GPU_MODE)


@needs_own
def test_missing_driver_is_named(path, numbers):
    zarrc.create_array(path, data=numbers)
    if os.path.exists("/dev/nvidiactl"):
        pytest.skip("there is a driver")
    program = "import sys, zarrc; zarrc.open(sys.argv[1], device='cuda:0').read(device='cuda:0')"
    with pytest.raises(AssertionError, match="UnsupportedError.*libcuda"):
        run(program, path, LD_LIBRARY_PATH="")


def test_libnvcomp_of_a_package(tmp_path, monkeypatch):
    monkeypatch.delenv("ZARRC_NVCOMP", raising=False)
    monkeypatch.delenv("ZARRC_PLUGIN_OPTIONS", raising=False)
    monkeypatch.delitem(sys.modules, "nvidia", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    folder = tmp_path / "nvidia/libnvcomp/lib64"
    folder.mkdir(parents=True)
    mine = {"cuda": {"nvcomp": "/mine"}}
    assert str(folder) not in str(_devices.with_nvcomp(None))  # no library is in it
    (folder / "libnvcomp.so.6").touch()
    assert _devices.with_nvcomp(None) == {"cuda": {"nvcomp": str(folder)}}
    assert _devices.with_nvcomp({"a": {"b": 1}, "cuda": {"c": 2}}) == {"a": {"b": 1}, "cuda": {"c": 2, "nvcomp": str(folder)}}
    assert _devices.with_nvcomp(mine) == mine
    assert "nvidia" not in sys.modules
    monkeypatch.setenv("ZARRC_PLUGIN_OPTIONS", "{}")
    assert _devices.with_nvcomp(None) is None
    monkeypatch.setenv("ZARRC_NVCOMP", "/mine")
    assert _devices.with_nvcomp({}) == {}


def test_extras_name_versions_of_nvcomp_that_the_plugin_takes():
    root = pathlib.Path(__file__).resolve().parents[2]
    source = (root / "plugins/cuda/nvcomp_library.c").read_text()
    least, end = (f"{int(number) // 1000}.{int(number) // 100 % 10}" for number in re.findall(r"VERSION_(?:LEAST|END) = (\d+)", source))
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {name: extras[name] for name in ("gpu-cu12", "gpu-cu13")} == {
        f"gpu-{cuda}": [f"nvidia-libnvcomp-{cuda}>={least},<{end}"] for cuda in ("cu12", "cu13")}
