"""Arrays on a GPU, with the libraries that are there: torch, CuPy and JAX. Each is skipped where it is missing or has
no GPU. ZARRC_PLUGINS names the plug-in for CUDA (build/gpu/lib/zarrc/v1/cuda.so after scripts/gpu-check); without it
all is skipped. What needs no such library runs over the driver without a GPU of tests/ports/cuda, too."""
import os

import numpy as np
import pytest

import zarrc

pytestmark = pytest.mark.skipif(not os.path.basename(os.environ.get("ZARRC_PLUGINS", "")).startswith("cuda"),
                                reason="ZARRC_PLUGINS does not name the plug-in for CUDA")
LZ4 = {"name": "numcodecs.lz4", "configuration": {"acceleration": 1}}
CODECS = {"raw": None, "zstd": "zstd", "lz4": LZ4}


@pytest.fixture
def data():
    n = np.arange(300 * 200 * 4, dtype="uint32")
    return (n + (n >> 9) * (n >> 9) // 32).astype("float32").reshape(300, 200, 4)


@pytest.fixture(params=CODECS)
def array(request, path, data):
    return zarrc.create_array(path, data=data, chunks=(64, 64, 4), compressors=CODECS[request.param])


def test_round_trip(array, data, path):
    """To the device and back, without another library."""
    there = array.read(device="cuda:0")
    assert there.__dlpack_device__() == (2, 0) and there.shape == data.shape and there.nbytes == data.nbytes
    again = zarrc.create_array(path + "2", shape=data.shape, dtype=data.dtype, chunks=(100, 50, 4))
    again[...] = there
    assert (again[...] == data).all()
    again[::2] = array.read(slice(None, None, -2), device="cuda:0")
    assert (again[::2] == data[::-2]).all()


def test_torch(array, data):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch has no GPU")
    for key in (..., slice(5, 250), (slice(None, None, 3), 7)):
        found = torch.from_dlpack(array.read(key, device="cuda:0"))
        assert found.is_cuda and (found.cpu().numpy() == data[key]).all()
    out = torch.zeros(data.shape, device="cuda")
    assert array.read(out=out) is out and (out.cpu().numpy() == data).all()
    # On a stream of its own, with work before it that must not come after us.
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        out.fill_(-1)
        array.read(out=out)
        twice = out * 2
    stream.synchronize()
    assert (twice.cpu().numpy() == data * 2).all()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        out.copy_(torch.from_numpy(data + 1))
        array[...] = out
    assert (array[...] == data + 1).all()
    halves = zarrc.create_array(None, data=data, chunks=(64, 64, 4)).tensor(slice(10), device="cuda:0")
    assert torch.from_dlpack(halves).sum().item() == pytest.approx(float(data[:10].sum(dtype="float64")), rel=1e-4)


def test_torch_views(array, data):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch has no GPU")
    whole = torch.zeros((600, 200, 8), device="cuda")
    part = whole[100:400, :, ::2]  # strides
    array.read(out=part)
    assert (part.cpu().numpy() == data).all() and whole[:100].sum().item() == 0 and whole[:, :, 1].sum().item() == 0
    rows = [torch.zeros((200, 4), device="cuda") for _ in range(3)]
    array.read_many([7, 8, 299], out=rows)
    assert all((row.cpu().numpy() == data[i]).all() for row, i in zip(rows, (7, 8, 299)))


def test_cupy(array, data):
    cupy = pytest.importorskip("cupy")
    if not cupy.cuda.is_available():
        pytest.skip("CuPy has no GPU")
    for found in (cupy.from_dlpack(array.read(device="cuda:0")), cupy.asarray(array.read(device="cuda:0"))):
        assert (found.get() == data).all()
    with cupy.cuda.Stream(non_blocking=True) as stream:
        out = cupy.full(data.shape, -1, "float32")
        array.read(out=out)
        twice = out * 2
        stream.synchronize()
    assert (twice.get() == data * 2).all()

    class Interface:
        def __init__(self, of):
            self.__cuda_array_interface__ = of.__cuda_array_interface__
            self.of = of

    out[...] = 0
    array.read(out=Interface(out))
    assert (out.get() == data).all()
    array[...] = out + 1
    assert (array[...] == data + 1).all()


def test_jax(array, data):
    jax = pytest.importorskip("jax")
    if not any(one.platform == "gpu" for one in jax.devices()):
        pytest.skip("JAX has no GPU")
    found = jax.dlpack.from_dlpack(array.read(device="cuda:0"))
    assert (np.asarray(found) == data).all()
    array[...] = found + 1
    assert (array[...] == data + 1).all()


@pytest.mark.parametrize("name", ["cupy", "torch", "jax"])
def test_like(array, data, path, name):
    """Arrays of each library from a handle, and back with another data type; what needs no announcement."""
    library = pytest.importorskip(name)
    if not {"cupy": lambda: library.cuda.is_available(), "torch": lambda: library.cuda.is_available(),
            "jax": lambda: any(one.platform == "gpu" for one in library.devices())}[name]():
        pytest.skip(f"{name} has no GPU")
    z = zarrc.open_array(path, like=name, device="cuda:0")
    there = z[5:250]
    assert type(there).__module__.partition(".")[0] in (name, "jaxlib") and z.config.like[:2] == (name, "cuda:0")
    assert (np.asarray(zarrc._libraries.to_host(there)) == data[5:250]).all()
    plain = zarrc.open_array(path)
    assert isinstance(plain[:3], np.ndarray) and type(plain.read(slice(3), like=there)) is type(there)
    plain.write(slice(0, 245), there)
    assert (plain[:245] == data[5:250]).all()
    whole = zarrc._libraries.as_type(there, np.dtype("int32"))
    plain[:245] = whole  # converted back by the library
    assert (plain[:245] == data[5:250].astype("int32")).all()
    if name == "jax":
        with pytest.raises(TypeError, match='like="jax"'):
            plain.read(slice(245), out=there)
        return
    host, pinned = np.empty(data.shape[1:], data.dtype), plain.read(0, device="cuda_host:0")
    plain.read_many([7, slice(0, 245), 8], out=[host, there, pinned])
    assert (zarrc._libraries.to_host(there) == plain[:245]).all() and (host == plain[7]).all() and (np.from_dlpack(pinned) == plain[8]).all()


def test_bfloat16(path):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch has no GPU")
    array = zarrc.create_array(path, shape=(8, 8), dtype="bfloat16", chunks=3, compressors=None)
    array[...] = torch.arange(64, dtype=torch.bfloat16).reshape(8, 8).cuda()
    found = torch.from_dlpack(array.read(device="cuda:0"))
    assert found.dtype == torch.bfloat16 and found.cpu().float().tolist() == np.arange(64.).reshape(8, 8).tolist()


def test_torch_crops(array):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch has no GPU")
    import zarrc.torch as zt

    here, there = (list(zt.CropStream(array, (48, 48, 4), n=100, batch_size=64, seed=2, device=device)) for device in (None, "cuda"))
    assert [one.shape[0] for one in there] == [64, 36] and all(one.is_cuda for one in there)
    assert all(torch.equal(one, other.cpu()) for one, other in zip(here, there))


def test_arrays_of_cupy(path, data):
    cupy = pytest.importorskip("cupy")
    if not cupy.cuda.is_available():
        pytest.skip("CuPy has no GPU")
    import zarrc.cupy

    z = zarrc.cupy.open_array(path, mode="w", shape=data.shape, dtype=data.dtype, chunks=(64, 64, 4))
    z[...] = cupy.asarray(data)
    assert isinstance(z[5:9], cupy.ndarray) and (z[5:9].get() == data[5:9]).all() and (np.asarray(z) == data).all()
    zarr = pytest.importorskip("zarr")
    zarrc.pipeline_stats(reset=True)
    with zarr.config.enable_gpu(), zarrc.enable():
        a = zarr.open_array(path, mode="r+")
        a[:50] = a[50:100]
        assert isinstance(a[...], cupy.ndarray) and (a[:50].get() == data[50:100]).all()
    assert zarrc.pipeline_stats()["fallback_chunks"] == 0
