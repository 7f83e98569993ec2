"""Memory of devices: `device=`, and `out=` of libraries with streams. The device is the fake one of
tests/fakedev under the number of CUDA: memory that the CPU cannot touch, and streams whose work is done
only when they are waited for."""
import asyncio
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
import weakref

import numpy as np
import pytest

import zarrc
from zarrc import _devices, errors

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
        zarrc.open_array(path).read(device="cuda:0")
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
try:
    zarrc.open(path).read(device="cuda:0")
except zarrc.errors.UnsupportedError as problem:
    assert "device='cuda:0'" in str(problem)
else:
    raise SystemExit("it read")
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
with zarrc.config.set(device="cuda:0"):
    assert zarrc.create_array(None, data=data).read(device="cuda:0").shape == data.shape
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
import zarrc, zarrc.cupy
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
assert again.device == "cuda:0" and again.shape == (60, 100) and len(again) == 60 and "cuda:0" in repr(again)
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
