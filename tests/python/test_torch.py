"""Datasets of torch, with forked and spawned workers. Without torch all of this is skipped: `make test-torch` installs it."""
import asyncio
import multiprocessing
import os
import warnings

import numpy as np
import pytest

import zarrc

torch = pytest.importorskip("torch", reason="make test-torch installs torch")
from torch.utils.data import DataLoader  # noqa: E402

import zarrc.torch as zt  # noqa: E402

CONTEXTS = [None, "fork", "spawn"]  # how workers start; None: there are none


@pytest.fixture
def image():
    return np.random.default_rng(0).integers(0, 255, (100, 90), dtype="u1")


@pytest.fixture
def array(path, image):
    return zarrc.create_array(path, data=image, chunks=(16, 16))


def loader(dataset, context, **given):
    return DataLoader(dataset, num_workers=0 if context is None else 2, multiprocessing_context=context, **given)


@pytest.mark.parametrize("context", CONTEXTS)
def test_rows(array, image, context):
    rows = zt.Rows(array)
    assert len(rows) == 100 and torch.equal(rows[7], torch.from_numpy(image[7])) and torch.equal(rows[-1], torch.from_numpy(image[-1]))
    batches = list(loader(rows, context, batch_size=32))
    assert [len(one) for one in batches] == [32, 32, 32, 4]
    assert torch.equal(torch.cat(batches), torch.from_numpy(image))
    with pytest.raises(IndexError):
        rows[100]


@pytest.mark.parametrize("context", CONTEXTS)
def test_crops(array, image, context):
    """The same crops for any kind and number of workers; each lies where `place` says."""
    crops = zt.Crops(array, (24, 17), n=50, seed=3)
    assert len(crops) == 50 and all(torch.equal(crops[i], torch.from_numpy(image[crops.place(i)])) for i in range(50))
    assert len({crops.place(i)[0].start for i in range(50)}) > 20
    found = torch.cat(list(loader(crops, context, batch_size=8)))
    assert torch.equal(found, torch.stack([crops[i] for i in range(50)]))


def test_seeds_and_epochs(path, array):
    crops, same, other = (zt.Crops(source, (24, 17), n=20, seed=seed) for source, seed in ((array, 1), (path, 1), (path, 2)))
    places = [crops.place(i) for i in range(20)]
    assert places == [same.place(i) for i in range(20)] != [other.place(i) for i in range(20)]
    crops.set_epoch(1)
    assert places != [crops.place(i) for i in range(20)]
    crops.set_epoch(0)
    assert places == [crops.place(i) for i in range(20)]


def test_a_batch_is_one_request(array, monkeypatch):
    calls = []
    real = zarrc.Array.read_many
    monkeypatch.setattr(zarrc.Array, "read_many", lambda self, keys, **given: calls.append(len(keys)) or real(self, keys, **given))
    list(DataLoader(zt.Crops(array, (24, 17), n=50), batch_size=20))
    assert calls == [20, 20, 10]


@pytest.mark.parametrize("context", CONTEXTS)
def test_stream(array, context):
    """The batches of the stream are those of the map-style dataset, in the same order."""
    stream, crops = zt.CropStream(array, (24, 17), n=50, batch_size=8, seed=3), zt.Crops(array, (24, 17), n=50, seed=3)
    assert len(stream) == 7
    batches = list(loader(stream, context, batch_size=None))
    assert [len(one) for one in batches] == [8] * 6 + [2]
    assert torch.equal(torch.cat(batches), torch.stack([crops[i] for i in range(50)]))


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float16", "float64", "complex64", "bool", "int8", "uint8", "int64", ">f4"])
def test_types(path, name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    data = np.arange(24).reshape(4, 6).astype(dtype)
    array = zarrc.create_array(path, data=data, chunks=(2, 3), zarr_format=2 if name == ">f4" else 3)
    found = torch.stack([zt.Rows(array)[i] for i in range(4)])
    wanted = {">f4": torch.float32}.get(name) or getattr(torch, name)
    assert found.dtype == wanted
    assert found.to(torch.complex128 if name == "complex64" else torch.float64).tolist() == data.astype(
        complex if name == "complex64" else float).tolist()


def test_bfloat16_is_not_copied(path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = zarrc.create_array(path, data=np.arange(24).reshape(4, 6).astype(ml_dtypes.bfloat16))
    memory = zt._memory(array, (4, 6))
    tensor = zt._tensor(array, memory)
    assert tensor.dtype == torch.bfloat16 and tensor.data_ptr() == memory.ctypes.data
    read = torch.from_dlpack(array.tensor())
    assert read.dtype == torch.bfloat16 and read.to(torch.float32).tolist() == np.arange(24.0).reshape(4, 6).tolist()


def test_what_is_handed_over(path):
    """The stories of `test_device.py`, with tensors in host memory."""
    t = torch.arange(20, dtype=torch.float32)
    z = zarrc.array(t, store=path, chunks=10, compressors={"id": "zlib", "level": 1})
    assert type(z[:]) is np.ndarray
    for more in {"like": torch.empty(())}, {"meta_array": torch.empty(())}, {"like": torch.Tensor}, {"like": torch}, {"like": "torch", "device": "cpu"}:
        assert torch.equal(z.read(slice(3, 7), **more), t[3:7])
    assert z.append(torch.arange(5)) == (25,) and z.append(torch.ones(1, dtype=torch.bfloat16)) == (26,)
    assert z[:].tolist() == [*range(20), *range(5), 1]
    zarrc.save(path + ".group", t, b=t.to(torch.bfloat16))
    with zarrc.config.set({"like": "torch"}):
        found = zarrc.load(path + ".group")
        assert torch.equal(found["arr_0"], t) and torch.equal(found["b"], t.to(torch.bfloat16))
        assert isinstance(zarrc.open_array(path, like="numpy")[:], np.ndarray)
    host, tensor = np.empty(4, "f4"), torch.empty(4)
    z.read_many([slice(0, 4), slice(4, 8)], out=[host, tensor])
    assert host.tolist() == [0, 1, 2, 3] and tensor.tolist() == [4, 5, 6, 7]
    assert zarrc.array(t, dtype=torch.int16).dtype == "i2" and zarrc.array([1, 2], dtype="bfloat16")[:].dtype == "bfloat16"
    assert zarrc.zeros_like(t.to(torch.bfloat16)).dtype == "bfloat16" and zarrc.create_array(None, shape=3, dtype=torch.bool).dtype == "?"
    assert zarrc.open_group().require_array("a", shape=3, dtype=torch.float32).dtype == "f4"


def test_data_types_are_converted_as_numpy_does(path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    given = {"f8": torch.tensor([1.5, -2.5, 300.0]), "i8": torch.tensor([1, -2, 300]), "bf16": torch.tensor([1.5, -2.5, 300.0], dtype=torch.bfloat16)}
    for dtype in "i1", "u2", ">i4", "f2", "bfloat16", "M8[s]", "S4", [("a", "i4"), ("b", "f4")], "bool":
        for value in given.values():
            z = zarrc.create_array(path, shape=3, dtype=dtype, overwrite=True)
            host = value.view(torch.int16).numpy().view(ml_dtypes.bfloat16) if value.dtype == torch.bfloat16 else value.numpy()
            wanted, problem = np.zeros(3, z.dtype), None
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    wanted[:] = host
                    z[:] = value
            except (TypeError, ValueError) as found:
                problem = type(found), str(found)
            if problem is None:
                assert z[:].tobytes() == wanted.tobytes(), (dtype, value)
                continue
            with pytest.raises(problem[0]) as ours:  # NumPy's error
                z[:] = value
            assert str(ours.value) == problem[1] and dtype in ("M8[s]", "S4")


def test_memory_of_tensors(path):
    """Views, of any strides, and what torch has in memory in another way."""
    z = zarrc.create_array(path, shape=(8, 6), dtype="f4", chunks=3)
    m = torch.arange(96.0).reshape(8, 12)
    for view in m[:, ::2], m.reshape(12, 8).T[:, :6], m[0, :6].expand(8, 6), torch.tensor(5.0):
        z[...] = view
        assert (z[:] == view.numpy()).all()
        whole = torch.zeros(12, 8).T
        out = whole[:, ::2]
        assert z.read(out=out) is out and (out == view).all() and whole.count_nonzero() <= 48
    c = torch.tensor([1 + 2j, 3 - 1j])
    for value in c.conj(), c.conj().imag, c.conj().imag[:1], c.conj()[0]:
        zarrc.save(path + ".lazy", value)
        assert torch.equal(zarrc.load(path + ".lazy", like="torch"), value.resolve_conj().resolve_neg())
    n = zarrc.create_array(None, shape=2, dtype="f4")
    n[:] = c.conj().imag
    n.append(c.conj().imag.to(torch.float64))
    assert n[:].tolist() == [-2, 1, -2, 1]
    for out, match in (c.conj().imag, "negative view"), (torch.zeros(2, requires_grad=True), "detach"), (torch.zeros(2, dtype=torch.bfloat16), "data type"):
        for call in (lambda: n.read(slice(2), out=out), lambda: n.read_many([slice(2)], out=[out]), lambda: asyncio.run(n.async_array.getitem(slice(2), out=out))):
            with pytest.raises(TypeError, match=match):
                call()


def test_into_a_tensor(array, image):
    out = torch.zeros((2, 24, 17), dtype=torch.uint8)
    array.read_many([(slice(0, 24), slice(0, 17)), (slice(5, 29), slice(6, 23))], out=out)
    assert torch.equal(out[1], torch.from_numpy(image[5:29, 6:23]))


def test_transform(array, image):
    crops = zt.Crops(array, (24, 17), n=4, transform=lambda one: one.float() / 255)
    assert crops[0].dtype == torch.float32
    stream = zt.CropStream(array, (24, 17), n=4, batch_size=4, transform=lambda batch: batch.sum().item())
    assert isinstance(next(iter(stream)), int)


@pytest.mark.parametrize("size", [(24,), (101, 5), (0, 5), (3, 3, 3)], ids=str)
def test_wrong_size(array, size):
    with pytest.raises(ValueError):
        zt.Crops(array, size, n=1)


class Threads(torch.utils.data.Dataset):
    """How many threads the first read of a worker starts. (Later, torch and multiprocessing start some of their own.)"""

    def __init__(self, array):
        self.array, self.started = array, None

    def __len__(self):
        return 8

    def __getitem__(self, i):
        if self.started is None:
            before = len(os.listdir("/proc/self/task"))
            self.array[...]
            self.started = len(os.listdir("/proc/self/task")) - before
        return self.started


@pytest.mark.skipif(multiprocessing.cpu_count() < 2, reason="one core: there is nothing to lower")
@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_have_their_share_of_the_cores(path, context):
    """An array that was opened with all cores before the workers began has one thread in each of as many workers."""
    array = zarrc.create_array(path, shape=(800, 800), dtype="f8", chunks=(50, 50))
    array[...] = np.random.default_rng(0).random((800, 800))
    workers = multiprocessing.cpu_count()
    started = list(DataLoader(Threads(array), num_workers=workers, batch_size=None, multiprocessing_context=context))
    assert len(started) == 8 and max(started) <= 1, started  # the main thread looks for Ctrl-C while one works


@pytest.mark.parametrize("kind", ["crops", "stream", "rows"])
def test_batches_on_a_device(array, image, path, monkeypatch, kind):
    """Each batch is one read into one tensor of the device, here the fake one: torch has no GPU to allocate on."""
    test_device = pytest.importorskip("test_device")
    if not os.path.exists(test_device.plugin()):
        pytest.skip("the fake device is not built here")
    calls, made = [], []

    class Batch(test_device.Tensor):
        def __iter__(self):  # rows, as torch's tensors give them
            step = self.nbytes // self.shape[0]
            for i in range(self.shape[0]):
                row = test_device.Interface(self)
                row.__cuda_array_interface__ = {**row.told, "shape": self.shape[1:], "data": (self.pointer + i * step, False)}
                yield row

    def empty(shape, dtype, where):
        assert dtype == torch.uint8 and where == "cuda:0"
        made.append(Batch(None, shape, "u1"))
        return made[-1]

    monkeypatch.setattr(zt, "_empty", empty)
    real = zarrc.Array.read_many
    monkeypatch.setattr(zarrc.Array, "read_many", lambda self, keys, **given: calls.append(len(keys)) or real(self, keys, **given))
    with zarrc.config.set({"plugins": [test_device.plugin()]}):
        device, there = test_device.Device(), zarrc.open_array(path)
        if kind == "rows":
            zt.Rows(there, device="cuda:0").__getitems__([3, 99, 3])
            assert device.peek(made[0]).tolist() == image[[3, 99, 3]].tolist() and not calls
        else:
            crops = zt.Crops(array, (24, 17), n=150, seed=3)
            if kind == "crops":
                loader(zt.Crops(there, (24, 17), n=150, seed=3, device=torch.device("cuda", 0)), None).dataset.__getitems__(list(range(64)))
            else:
                list(loader(zt.CropStream(there, (24, 17), n=150, batch_size=64, seed=3, device="cuda:0"), None, batch_size=None))
            assert calls == [one.shape[0] for one in made] == ([64] if kind == "crops" else [64, 64, 22])
            found = np.concatenate([device.peek(one) for one in made])
            assert (found == np.stack([image[crops.place(i)] for i in range(len(found))])).all()
        assert device.count()[0].faults == 0


def test_devices_that_are_none(array):
    assert zt.Crops(array, (3, 3), n=1, device="cpu").device is None
    with pytest.raises(ValueError, match="cuda"):
        zt.Crops(array, (3, 3), n=1, device="meta")


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool, torch.bfloat16, torch.complex64], ids=str)
def test_arrays_of_tensors(dtype):
    tensor = torch.arange(6).reshape(2, 3).to(dtype)
    z = zarrc.create_array({}, data=tensor)
    assert torch.equal(torch.from_dlpack(z.tensor()), tensor)
