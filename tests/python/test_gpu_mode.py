"""zarr-python's GPU mode through our pipeline, without CuPy: buffer classes that keep elements in memory of the fake device,
which the CPU cannot touch. Encoded chunks are on the host, where these classes count the buffers that they make."""
import numpy as np
import pytest
from test_device import CUDA, Tensor, device, plugin, pytestmark  # noqa: F401: `device` is a fixture

import zarrc

zarr = pytest.importorskip("zarr")
from zarr.core.buffer import core, cpu  # noqa: E402
from zarr.registry import register_buffer, register_ndbuffer  # noqa: E402

REASON = "memory of cuda, a device that no plug-in knows"


class Elements:
    """What CuPy's ndarray is: elements on the device, of which views can be array. Known by the CUDA array interface."""

    def __init__(self, base, shadow, view):
        self.base, self.shadow, self._view = base, shadow, view  # host memory with the same layout says where elements are
        self.shape, self.dtype, self.ndim, self.size = view.shape, view.dtype, view.ndim, view.size

    @classmethod
    def empty(cls, shape, dtype, order="C"):
        shadow = np.empty(shape, dtype, order)
        with zarrc.config.set({"plugins": [plugin()]}):
            return cls(Tensor(None, shape if 0 not in shape else (1,), shadow.dtype), shadow, shadow)

    @classmethod
    def of(cls, data):
        found = cls.empty(data.shape, data.dtype)
        found.put(..., data)
        return found

    @property
    def __cuda_array_interface__(self):
        offset = self._view.ctypes.data - self.shadow.ctypes.data if self.size else 0
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.base.pointer + offset, False), "version": 3,
                "strides": self._view.strides, "stream": 1}

    def __len__(self):
        return len(self._view)

    def __getitem__(self, key):
        return type(self)(self.base, self.shadow, self._view[key if isinstance(key, tuple) else (key,)])

    def __array__(self, *unused, **options):
        raise TypeError("implicit conversion to NumPy")

    def get(self):
        """Through the back door of the fake device."""
        assert Stand.device.lib.zarr_fakedev_peek(self.base.pointer, 0, self.shadow.ctypes.data, self.shadow.nbytes) == 0
        return self._view.copy()

    def put(self, key, data):
        if self.size:
            self.get()
            self._view[key] = data
            assert Stand.device.lib.zarr_fakedev_poke(self.base.pointer, 0, self.shadow.ctypes.data, self.shadow.nbytes) == 0

    def __getattr__(self, name):
        """What zarr-python's own pipeline needs, in new memory."""
        if name not in ("astype", "copy", "flatten", "ravel", "reshape", "view"):
            raise AttributeError(name)
        return lambda *given, **named: self.of(getattr(self.get(), name)(*given, **named))


class Capsules(Elements):
    """The same known by DLPack, which comes first where CuPy's arrays have both. The tensor is a whole one."""

    def __dlpack__(self, *, stream=None, max_version=None):
        assert stream == 1 and self._view is self.shadow and self._view.flags.c_contiguous
        return self.base.__dlpack__(stream=stream, max_version=max_version)

    def __dlpack_device__(self):
        return CUDA


class Stand:
    """What the tests know of the two classes below."""

    device = None
    on_host = 0  # how often elements came to the host
    buffers = 0  # how many buffers of encoded bytes were made


class Buffer(core.Buffer):
    """Encoded bytes of the GPU mode."""

    def __init__(self, array_like):
        Stand.buffers += 1
        super().__init__(array_like.get() if isinstance(array_like, Elements) else array_like)

    @classmethod
    def create_zero_length(cls):
        return cls(np.array([], "B"))

    @classmethod
    def from_buffer(cls, buffer):
        return cls(buffer.as_numpy_array())

    @classmethod
    def from_bytes(cls, bytes_like):
        return cls(np.frombuffer(bytes_like, "B"))

    def as_numpy_array(self):
        return np.asanyarray(self._data)

    def combine(self, others):
        return type(self)(np.concatenate([self._data, *(one.as_numpy_array() for one in others)]))


class NDBuffer(core.NDBuffer):
    """Elements of the GPU mode."""

    def __init__(self, array):
        super().__init__(array if isinstance(array, Elements) else Elements.of(np.asarray(array)))

    @classmethod
    def create(cls, *, shape, dtype, order="C", fill_value=None):
        found = cls(Elements.empty(shape, dtype, order))
        if fill_value is not None:
            found._data.put(..., fill_value)
        return found

    @classmethod
    def from_numpy_array(cls, array_like):
        return cls(np.asarray(array_like))

    def as_numpy_array(self):
        Stand.on_host += 1
        return self._data.get()

    def all_equal(self, other, equal_nan=True):
        return cpu.NDBuffer(self.as_numpy_array()).all_equal(other, equal_nan)

    def __getitem__(self, key):
        return type(self)(self._data.get()[key])

    def __setitem__(self, key, value):
        self._data.put(key, value.as_numpy_array() if isinstance(value, core.NDBuffer) else value)


register_buffer(Buffer, qualname="test_gpu_mode.Buffer")
register_ndbuffer(NDBuffer, qualname="test_gpu_mode.NDBuffer")
MODE = {"buffer": "test_gpu_mode.Buffer", "ndbuffer": "test_gpu_mode.NDBuffer"}  # as zarr.config.enable_gpu() sets CuPy's


@pytest.fixture
def mode(device):  # noqa: F811
    Stand.device, Stand.on_host, Stand.buffers = device, 0, 0
    zarrc.pipeline_stats(reset=True)
    with zarr.config.set(MODE), zarrc.enable():
        yield


STORES = {
    "local": lambda folder: str(folder / "x.zarr"),
    "memory": lambda folder: zarr.storage.MemoryStore(),
    "zip": lambda folder: zarr.storage.ZipStore(folder / "x.zip", mode="w"),
    "wrapped": lambda folder: zarr.storage.LoggingStore(zarr.storage.MemoryStore(), log_level="CRITICAL"),
    "zarrc": lambda folder: zarrc.ZarrcStore(str(folder / "z.zarr")),
}
KINDS = {"v3": {}, "v2": {"zarr_format": 2}, "sharded": {"shards": (32, 32)}, "raw": {"compressors": None}, "order": {"order": "F", "zarr_format": 2}}
KEYS = [..., slice(5, 50), (slice(3, 40, 7), slice(None)), (7, slice(2, 30)), (3, 4), (slice(0, 16), slice(0, 16))]


def native():
    """That all batches since the last call went through the library, without elements on the host."""
    stats = zarrc.pipeline_stats(reset=True)
    on_host, Stand.on_host = Stand.on_host, 0
    return stats["fallback_chunks"] == 0 and stats["native_chunks"] > 0 and on_host == 0, stats, on_host


@pytest.fixture
def array(mode, tmp_path, numbers, request):
    """An array in GPU mode, and its elements."""
    store, kind = request.param
    z = zarr.create_array(STORES[store](tmp_path), shape=(60, 40), chunks=(16, 16), dtype="i4", fill_value=-1, **KINDS[kind])
    z[...] = Elements.of(numbers)
    assert native()[0]
    return z


EVERY = [(store, "sharded") for store in STORES] + [(store, kind) for store in ("local", "memory") for kind in KINDS if kind != "sharded"]


@pytest.mark.parametrize("array", EVERY, indirect=True, ids="-".join)
def test_reads(array, numbers):
    for key in KEYS:
        found = array[key]
        assert native()[0] and isinstance(found, Elements)
        assert found.shape == numbers[key].shape and (found.get() == numbers[key]).all()
    assert (array.oindex[[1, 5, 40], 3:9].get() == numbers[[1, 5, 40], 3:9]).all()
    assert (array.blocks[1].get() == numbers[array.shards[0] if array.shards else 16:][:array.shards[0] if array.shards else 16]).all()
    assert zarrc.pipeline_stats()["fallback_chunks"] == 0
    with zarr.config.set({"buffer": "zarr.buffer.cpu.Buffer", "ndbuffer": "zarr.buffer.cpu.NDBuffer"}):
        assert (array[...] == numbers).all()  # what the device wrote is an ordinary array


@pytest.mark.filterwarnings("ignore:Duplicate name")  # of a zip file
@pytest.mark.parametrize("array", EVERY, indirect=True, ids="-".join)
def test_writes(array, numbers):
    wanted = numbers.copy()
    for i, key in enumerate(KEYS):
        if np.ndim(numbers[key]):
            array[key] = Elements.of(wanted[key] * 3 + i)
            wanted[key] = wanted[key] * 3 + i
            assert native()[0], key
    array[5:9] = 17  # zarr-python puts a scalar on the device
    wanted[5:9] = 17
    array[16:32, 16:32] = -1  # the fill value: the chunk is not stored
    wanted[16:32, 16:32] = -1
    assert native()[0]
    array.oindex[[2, 30], 5:7] = Elements.of(np.full((2, 2), 9, "i4"))
    wanted[np.ix_([2, 30], range(5, 7))] = 9
    assert native()[0]
    assert (array[...].get() == wanted).all()


@pytest.mark.parametrize("array", [("local", "v3"), ("memory", "v3")], indirect=True, ids="-".join)
def test_host_memory_has_metadata_and_chunks(array):
    """Metadata is read and written without buffers of the device; a memory store gets zarr-python's own kind of buffer."""
    Stand.buffers = 0
    array[:10].get()
    assert Stand.buffers == 0
    array[:10] = Elements.of(np.ones((10, 40), "i4"))
    values = getattr(array.store, "_store_dict", {})
    chunks = [value for key, value in values.items() if "/c/" in f"/{key}"]
    assert len(chunks) == (12 if values else 0) and all(type(value) is Buffer for value in chunks)
    assert Stand.buffers <= 1 + 3 * bool(values)  # zarr-python asks an empty one what it is like


@pytest.mark.filterwarnings("ignore:Duplicate name")  # of a zip file
@pytest.mark.parametrize("array", EVERY, indirect=True, ids="-".join)
@pytest.mark.parametrize("kind", [Elements, Capsules])
def test_queued_work_comes_first(array, numbers, kind):
    """The pipeline runs in zarr-python's thread, where CuPy's stream is the default one. What the application has queued there is
    done first, as with zarr-python's own pipeline, and a read leaves nothing behind that a stream would have to wait for."""
    queue, waits = Stand.device.queue_copy, Stand.device.lib.zarr_fakecuda_sync
    source, late, target, stale = (kind.of(numbers + i) for i in range(4))
    try:
        queue(source.base, late.base)
        array[...] = source
        queue(target.base, stale.base)
        array.get_basic_selection(..., out=NDBuffer(target))
        assert native()[0] and (target.get() == numbers + 1).all()
    finally:
        waits()
    assert (target.get() == numbers + 1).all() and (source.get() == numbers + 1).all()


def test_dlpack_comes_first(mode, path, numbers):
    z = zarr.create_array(path, shape=(60, 40), chunks=(16, 16), dtype="i4")
    source = Capsules.of(numbers)
    z[...] = source
    assert native()[0] and source.base.streams == [1]
    target = Capsules.empty((60, 40), "i4")
    z.get_basic_selection(..., out=NDBuffer(target))
    assert native()[0] and target.base.streams == [1] and (target.get() == numbers).all()


@pytest.mark.parametrize("kind", [Elements, Capsules])
def test_own_array_fills_their_buffer(mode, path, numbers, kind):
    """Not a copy of it on the host."""
    z = zarrc.create_array(path, shape=(60, 40), chunks=(16, 16), dtype="i4")
    z[...] = numbers
    for read in (z.read, z.get_basic_selection):
        target = kind.of(np.zeros_like(numbers))
        read(out=NDBuffer(target))
        assert (target.get() == numbers).all()


def test_missing_chunks(mode, path):
    z = zarr.create_array(path, shape=(60, 40), chunks=(16, 16), dtype="f4", fill_value=2.5)
    z[3:5] = Elements.of(np.zeros((2, 40), "f4"))
    assert z[...].get().sum() == 2.5 * 58 * 40 and native()[0]


def test_reasons(mode, path, numbers, device):  # noqa: F811
    """What zarr-python's own pipeline does, and why. The result is the same."""
    z = zarr.create_array(path, shape=(60, 40), chunks=(16, 16), dtype="i4")
    z[...] = Elements.of(numbers)
    zarrc.pipeline_stats(reset=True)
    with zarrc.config.set({"plugins": []}):
        lacking = zarr.open_array(path)
        assert (lacking[...].get() == numbers).all()
        lacking[:3] = Elements.of(numbers[:3] + 1)
    _, stats, on_host = native()
    assert on_host and stats["native_chunks"] == 0 and stats["fallback_chunks"] == 15 and stats["reasons"] == {
        REASON: {"chunks": 15, "example": f"file://{path}/"}}, stats
    assert (z[:3].get() == numbers[:3] + 1).all() and native()[0]
