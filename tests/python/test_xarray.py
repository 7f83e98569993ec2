"""The engine "zarrc" of xarray: datasets, encodings and errors are those of the engine "zarr"."""
import asyncio
import os
import pathlib
import pickle
import subprocess
import sys
import textwrap
import unittest.mock

import numpy as np
import pytest
import zarr
from conftest import install

import zarrc

xr = pytest.importorskip("xarray", reason="scripts/venv installs xarray")
from zarrc_hook.engine import ZarrcBackendEntrypoint as Engine  # noqa: E402

FORMATS = [2, 3]
needs_zarr_32 = pytest.mark.skipif(not hasattr(zarr.Array, "read_chunk_sizes"), reason="zarr-python 3.1 has no such grids")


def variables():
    """Variables of many types, with what netCDF's conventions do to them."""
    rng = np.random.default_rng(0)
    times = np.array("2026-01-01", "M8[ns]") + np.arange(12).astype("m8[h]")
    masked = rng.random(12)
    masked[3:5] = np.nan
    return {
        "float": (("x",), rng.random(12).astype("f4"), {"units": "m", "list": [1, 2], "nested": {"a": [1.5]}}),
        "masked": (("x",), masked, {}, {"_FillValue": -1.0}),
        "missing_value": (("x",), masked, {}, {"missing_value": -9.0, "_FillValue": -9.0}),
        "packed": (("x",), np.linspace(0, 1, 12), {}, {"scale_factor": 0.01, "add_offset": 3.0, "dtype": "i2", "_FillValue": -99}),
        "unsigned": (("x",), np.arange(12, dtype="u1")),
        "integer": (("x", "y"), np.arange(60, dtype="i8").reshape(12, 5), {}, {"chunks": (5, 2)}),
        "bool": (("x",), np.arange(12) % 3 == 0),
        "complex": (("x",), np.arange(12) * (1 + 2j)),
        "time": (("x",), times),
        "time_seconds": (("x",), times, {}, {"units": "seconds since 2000-01-01", "dtype": "i4"}),
        "delta": (("x",), np.arange(12).astype("m8[s]").astype("m8[ns]")),
        "unicode": (("x",), np.array([f"a{i}é" for i in range(12)])),
        "object": (("x",), np.array([f"b{'x' * i}" for i in range(12)], object)),
        "bytes": (("x",), np.array([b"%d" % i for i in range(12)], "S3")),
        "scalar": ((), np.float64(1.5)),
        "text_scalar": ((), "one"),
        "empty": (("none",), np.empty(0, "f8")),
        "empty_text": (("none",), np.empty(0, "U3")),
    }


def dataset(zarr_format):
    found = variables()
    if hasattr(np.dtypes, "StringDType") and zarr_format == 3:
        found["string"] = (("x",), np.array(["c", "", "dd"] * 4, np.dtypes.StringDType()))
    data = {name: xr.Variable(*value) for name, value in found.items()}
    return xr.Dataset(data, coords={"x": np.arange(12) * 10, "label": ("y", list("vwxyz")), "reference": 7.0},
                      attrs={"title": "many", "numbers": [1, 2]})


def own_encoding(variable):
    """What does not name its engine: dask's chunks of a sharded array differ on purpose."""
    found = dict(variable.encoding)
    if found.get("shards"):
        found.pop("preferred_chunks")
    return found


def same(value, other):
    if isinstance(value, (float, np.floating, complex, np.complexfloating)) and value != value:
        return type(value) is type(other) and other != other
    if isinstance(value, np.generic) or isinstance(other, np.generic):
        return type(value) is type(other) and value == other
    return value == other


def assert_same(ours, theirs):
    xr.testing.assert_identical(ours, theirs)
    assert {**ours.encoding, "source": ""} == {**theirs.encoding, "source": ""}
    for name in theirs.variables:
        a, b = own_encoding(ours[name].variable), own_encoding(theirs[name].variable)
        assert list(sorted(a)) == list(sorted(b)), name
        for key, value in b.items():
            assert same(a[key], value), (name, key, a[key], value)
        assert ours[name].dtype == theirs[name].dtype
        for key, value in theirs[name].attrs.items():
            assert same(ours[name].attrs[key], value), (name, key)


def both(path, **given):
    return xr.open_dataset(path, engine=Engine, **given), xr.open_dataset(path, engine="zarr", **given)


@pytest.fixture(params=FORMATS)
def zarr_format(request):
    return request.param


@pytest.fixture
def written_path(path, zarr_format):
    dataset(zarr_format).to_zarr(path, zarr_format=zarr_format, consolidated=True)
    return path


RAW = {"mask_and_scale": False, "decode_times": False}


@pytest.mark.parametrize("given", [{}, RAW, {"decode_cf": False}, {"consolidated": True}, {"consolidated": False},
                                   {"drop_variables": ["float", "time"]}, {"chunks": {}}, {"chunks": {"x": 5}}],
                         ids=lambda given: ",".join(given) or "plain")
@pytest.mark.filterwarnings("ignore:.*separate the stored chunks:UserWarning")
def test_same_dataset(written_path, given):
    if "chunks" in given:
        pytest.importorskip("dask", reason="scripts/venv installs dask")
    ours, theirs = both(written_path, **given)
    assert_same(ours, theirs)
    if "chunks" in given:
        assert {name: one.chunks for name, one in ours.variables.items()} == {name: one.chunks
                                                                              for name, one in theirs.variables.items()}


def test_without_consolidated_metadata(path, zarr_format):
    dataset(zarr_format).to_zarr(path, zarr_format=zarr_format, consolidated=False)
    assert_same(*both(path, consolidated=False))
    xr.testing.assert_identical(xr.open_dataset(path, engine=Engine), xr.open_dataset(path, engine="zarr", consolidated=False))
    with pytest.raises(ValueError, match="onsolidated"):
        xr.open_dataset(path, engine=Engine, consolidated=True)


@pytest.mark.parametrize("given", [{"use_zarr_fill_value_as_mask": True}, {"zarr_format": 3}], ids=str)
def test_fill_value_as_mask(path, given):
    """The engine "zarr" of xarray 2026.9 ignores the first of these arguments; zarrc does what it says."""
    root = zarr.create_group(path)
    array = root.create_array("a", shape=4, dtype="i4", fill_value=-1, dimension_names=("x",))
    array[:2] = [5, 6]
    found = xr.open_dataset(path, engine=Engine, consolidated=False, **given)["a"].values.tolist()
    assert found[:2] == [5, 6]
    assert np.isnan(found[2:]).all() if "use_zarr_fill_value_as_mask" in given else found[2:] == [-1, -1]


INDEXES = {
    "slice": {"x": slice(2, 9, 3)}, "negative": {"x": slice(None, None, -2)}, "integer": {"x": 3, "y": -1},
    "outer": {"x": [5, 1, 1], "y": [0, 4]}, "mixed": {"x": [5, 1], "y": slice(1, 3)}, "mask": {"x": np.arange(12) % 2 == 0},
    "points": {"x": xr.DataArray([0, 11, 3], dims="p"), "y": xr.DataArray([4, 0, 2], dims="p")},
    "points and slice": {"x": xr.DataArray([[0, 11], [3, 3]], dims=("p", "q")), "y": slice(None, None, 2)},
    "nothing": {"x": slice(5, 5)},
}


@pytest.mark.parametrize("consolidated", [True, False], ids=["consolidated", "single"])
@pytest.mark.parametrize("zarr_format", FORMATS)
def test_attributes_that_json_lacks(path, zarr_format, consolidated):
    """The bounds and missing values of netCDF's conventions may be NaN and Infinity."""
    ds = xr.Dataset({"a": ("x", np.array([1.0, np.nan, 3.0])), "b": ("x", np.arange(3.0), {"valid_range": [-np.inf, np.inf]})},
                    attrs={"level": float("nan")})
    ds["a"].encoding = {"missing_value": np.nan, "_FillValue": np.nan}
    ds.to_zarr(path, zarr_format=zarr_format, consolidated=consolidated)
    for given in ({}, {"mask_and_scale": False}):
        found = [xr.open_dataset(path, engine=engine, consolidated=consolidated, **given) for engine in ("zarr", Engine)]
        assert repr(found[0].attrs) == repr(found[1].attrs)
        for name in ds.variables:
            assert repr(found[0][name].attrs) == repr(found[1][name].attrs), name
        assert repr(found[0]["a"].encoding.get("missing_value")) == repr(found[1]["a"].encoding.get("missing_value"))


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
def test_lazy_indexes(written_path, index):
    ours, theirs = both(written_path)
    xr.testing.assert_identical(ours[["integer", "float"]].isel(index, missing_dims="ignore"),
                                theirs[["integer", "float"]].isel(index, missing_dims="ignore").load())
    if index is INDEXES["nothing"]:
        return  # after a backward slice xarray 2026.9 fails, with any engine
    twice = {"x": slice(None, None, -1)}
    xr.testing.assert_identical(ours["integer"].isel(twice).isel(index), theirs["integer"].load().isel(twice).isel(index))


def test_reads_only_what_is_asked_for(path):
    """Opening reads no chunk of a variable without an index; an index of one element reads one chunk."""
    xr.Dataset({"a": (("x",), np.arange(100))}).to_zarr(path, encoding={"a": {"chunks": (10,)}}, zarr_format=3)
    chunks = pathlib.Path(path, "a/c")
    for chunk in chunks.iterdir():
        if chunk.name != "3":
            chunk.write_bytes(b"damaged")
    found = xr.open_dataset(path, engine=Engine)
    assert int(found["a"][35]) == 35 and found["a"].isel(x=[39, 30]).values.tolist() == [39, 30]
    with pytest.raises(zarrc.ZarrcError):
        found["a"].load()


def test_async_load(written_path):
    ours, theirs = both(written_path)
    loaded = asyncio.run(ours.load_async())
    xr.testing.assert_identical(loaded, theirs)

    async def count_reads(n_loads):
        with unittest.mock.patch.object(zarrc.AsyncArray, "getitem", side_effect=zarrc.AsyncArray.getitem, autospec=True) as reads:
            one = both(written_path)[0]["integer"]
            await asyncio.gather(*(one.load_async() for _ in range(n_loads)))
            return reads.call_count

    # The loads begin before the first is done, though it is so small that it is done at once.
    assert asyncio.run(count_reads(3)) == 3 * asyncio.run(count_reads(1))
    part = asyncio.run(both(written_path)[0]["integer"].isel(x=[3, 1], y=slice(1, 3)).load_async())
    xr.testing.assert_identical(part, theirs["integer"].isel(x=[3, 1], y=slice(1, 3)))


def test_round_trip_keeps_the_encoding(written_path, tmp_path, zarr_format):
    """`to_zarr` takes the encodings of the engine. (Those of v2's objects zarr-python refuses from both engines.)"""
    ours, theirs = (ds.drop_vars([name for name, one in ds.variables.items() if zarr_format == 2 and one.encoding["filters"]])
                    for ds in both(written_path))
    ours.to_zarr(tmp_path / "a.zarr", zarr_format=zarr_format)
    theirs.to_zarr(tmp_path / "b.zarr", zarr_format=zarr_format)
    assert_same(*(xr.open_dataset(tmp_path / name, engine="zarr") for name in ("a.zarr", "b.zarr")))


@pytest.mark.parametrize("codecs", [
    {"compressors": None}, {"compressors": zarr.codecs.BloscCodec(cname="lz4", clevel=3)},
    {"compressors": [zarr.codecs.GzipCodec(level=2)]}, {"filters": [zarr.codecs.TransposeCodec(order=(1, 0))]},
    {"serializer": zarr.codecs.BytesCodec(endian="big")}, {"shards": (10, 10)}], ids=lambda codecs: next(iter(codecs)))
def test_encodings_of_codecs(path, codecs):
    ds = xr.Dataset({"a": (("x", "y"), np.arange(400.0).reshape(20, 20))})
    ds.to_zarr(path, encoding={"a": {"chunks": (5, 5), **codecs}}, zarr_format=3)
    assert_same(*both(path))


def test_chunks_of_dask_are_shards(path):
    """A task reads whole shards; the engine "zarr" gives it a chunk, and reads the index of each shard for all of them."""
    pytest.importorskip("dask", reason="scripts/venv installs dask")
    ds = xr.Dataset({"a": (("x", "y"), np.arange(400.0).reshape(20, 20))})
    ds.to_zarr(path, encoding={"a": {"chunks": (5, 5), "shards": (10, 20)}}, zarr_format=3)
    found = xr.open_dataset(path, engine=Engine, chunks={})
    assert found["a"].chunks == ((10, 10), (20,)) and found["a"].encoding["chunks"] == (5, 5)
    assert found["a"].encoding["preferred_chunks"] == {"x": 10, "y": 20}
    xr.testing.assert_identical(found.compute(), ds)
    found.to_zarr(path.replace("x.zarr", "y.zarr"))  # whole shards: xarray finds nothing unsafe
    for auto in ("auto", {"x": "auto"}):
        assert all(n % 10 == 0 for n in xr.open_dataset(path, engine=Engine, chunks=auto)["a"].chunks[0])


@needs_zarr_32
def test_variable_chunks(path):
    with zarr.config.set({"array.rectilinear_chunks": True}):
        root = zarr.create_group(path)
        array = root.create_array("a", shape=(60, 4), dtype="i4", chunks=[[10, 20, 30], [4]], dimension_names=("x", "y"))
        array[...] = np.arange(240).reshape(60, 4)
        ours, theirs = both(path, consolidated=False)
        assert_same(ours, theirs)
        assert ours["a"].encoding["preferred_chunks"] == {"x": (10, 20, 30), "y": 4}


def test_group(path, zarr_format):
    ds = xr.Dataset({"a": ("x", [1, 2, 3])}, attrs={"n": 1})
    ds.to_zarr(path, group="one/two", zarr_format=zarr_format)
    for group in ("one/two", "/one/two"):
        assert_same(*both(path, group=group))
        assert_same(*both(path, group=group, consolidated=False))
    assert_same(*both(path))
    with pytest.raises(KeyError):
        xr.open_dataset(path, engine=Engine, group="three")
    with pytest.raises(FileNotFoundError):
        xr.open_dataset(path, engine=Engine, group="three", consolidated=False)


def tree(zarr_format):
    return xr.DataTree.from_dict({"/": xr.Dataset({"r": ("x", [1.0, 2.0])}, attrs={"root": 1}), "/a": xr.Dataset({"v": ("x", [3, 4])}),
                                  "/a/b": xr.Dataset({"w": ("y", ["p", "q", "r"])}), "/c": xr.Dataset(attrs={"empty": True})})


@pytest.mark.parametrize("consolidated", [True, False])
def test_datatree(path, zarr_format, consolidated):
    tree(zarr_format).to_zarr(path, zarr_format=zarr_format, consolidated=consolidated)
    for given in ({"consolidated": consolidated}, {"consolidated": consolidated, "group": "a"},
                  {"consolidated": consolidated, "drop_variables": "v"}):
        ours, theirs = (xr.open_datatree(path, engine=engine, **given) for engine in (Engine, "zarr"))
        xr.testing.assert_identical(ours, theirs)
        ours, theirs = (xr.open_groups(path, engine=engine, **given) for engine in (Engine, "zarr"))
        assert set(ours) == set(theirs)
        for name in theirs:
            assert_same(ours[name], theirs[name])


@pytest.mark.parametrize("names", [None, ("x", None)], ids=["none", "one"])
def test_dimensions_without_names(path, names):
    zarr.create_group(path).create_array("a", shape=(2, 2), dtype="i4", dimension_names=names)
    if names is None:
        for engine in (Engine, "zarr"):
            with pytest.raises(KeyError, match="dimension_names.* required for xarray to determine variable dimensions"):
                xr.open_dataset(path, engine=engine, consolidated=False)
    else:
        ours, theirs = (xr.open_dataset(path, engine=engine, consolidated=False)["a"].dims for engine in (Engine, "zarr"))
        assert ours == theirs


def test_v2_without_dimensions(path):
    zarr.create_group(path, zarr_format=2).create_array("a", shape=(2, 2), dtype="i4")
    with pytest.raises(KeyError, match="_ARRAY_DIMENSIONS"):
        xr.open_dataset(path, engine=Engine, consolidated=False)


def test_nczarr(path):
    """Names of dimensions as netCDF-C writes them, and its attributes, which are hidden."""
    import json
    root = zarr.create_group(path, zarr_format=2, attributes={"_NCProperties": "version=2", "title": "t"})
    array = root.create_array("a", shape=(2, 3), dtype="i4", attributes={"_NCZARR_ATTR": {"types": {}}, "units": "m"})
    array[...] = [[1, 2, 3], [4, 5, 6]]
    file = pathlib.Path(path, "a/.zarray")
    document = json.loads(file.read_text())
    document["_NCZARR_ARRAY"] = {"dimrefs": ["/lat", "/group/lon"], "storage": "chunked"}
    file.write_text(json.dumps(document))
    ours, theirs = both(path, consolidated=False)
    assert_same(ours, theirs)
    assert ours["a"].dims == ("lat", "lon") and ours.attrs == {"title": "t"}


def test_stores(written_path, zarr_format):
    """Whatever zarrc opens: stores of zarr-python, a Store, a mapping, a path object, a URL."""
    wanted = xr.open_dataset(written_path, engine="zarr")
    memory = zarr.storage.MemoryStore()
    dataset(zarr_format).to_zarr(memory, zarr_format=zarr_format)
    for store in (zarr.storage.LocalStore(written_path), memory, zarrc.open_store(written_path), pathlib.Path(written_path), f"file://{written_path}",
                  {file.relative_to(written_path).as_posix(): file.read_bytes() for file in pathlib.Path(written_path).rglob("*") if file.is_file()}):
        xr.testing.assert_identical(xr.open_dataset(store, engine=Engine), wanted)


def test_stores_without_consolidated_metadata(zarr_format):
    """A store that says it has none, as icechunk's does: `consolidated=True` asks for nothing then."""
    from zarr.storage import MemoryStore

    class Plain(MemoryStore):
        supports_consolidated_metadata = False

    store = Plain()
    wanted = dataset(zarr_format)
    wanted.to_zarr(store, zarr_format=zarr_format, consolidated=True)
    for consolidated in (True, None):
        xr.testing.assert_identical(*both(store, consolidated=consolidated))


def test_storage_options(written_path):
    """URLs of other schemes go to fsspec, with the options."""
    fsspec = pytest.importorskip("fsspec", reason="fsspec opens URLs of other schemes")
    from fsspec.implementations.local import LocalFileSystem

    class Files(LocalFileSystem):
        protocol = "zrtest"

        def __init__(self, *, password, **given):
            assert password == "abc"
            super().__init__(**given)

    fsspec.register_implementation("zrtest", Files, clobber=True)
    found = xr.open_dataset(f"zrtest://{written_path}", engine=Engine, storage_options={"password": "abc"})
    xr.testing.assert_identical(found, xr.open_dataset(written_path, engine="zarr"))
    with pytest.raises(TypeError, match="storage_options"):
        xr.open_dataset(written_path, engine=Engine, storage_options={"anon": True})


def test_pickle(written_path):
    ours, theirs = both(written_path)
    xr.testing.assert_identical(pickle.loads(pickle.dumps(ours)), theirs)


def test_missing(path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        xr.open_dataset(path, engine=Engine)
    assert not os.path.exists(path)


def test_reads_only(written_path):
    with pytest.raises(ValueError, match="to_zarr"):
        xr.open_dataset(written_path, engine=Engine, mode="r+")


def test_codecs_that_zarr_python_lacks(path):
    """The dataset is read all the same; its encoding has no codecs then."""
    root = zarrc.create_group(path)
    root.create_array("a", data=np.arange(4), dimension_names=("x",), compressors=["snappy"])
    found = xr.open_dataset(path, engine=Engine, consolidated=False)
    assert found["a"].values.tolist() == [0, 1, 2, 3]


# ---- as a package that is installed ----


def program(tmp_path, text, folder):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, cwd=tmp_path,
                          env={**os.environ, "PYTHONPATH": folder}, timeout=120)


def test_entry_point(tmp_path):
    done = program(tmp_path, """
        import numpy as np, xarray as xr
        xr.Dataset({"a": ("x", np.arange(5))}).to_zarr("x.zarr")
        assert xr.open_dataset("x.zarr", engine="zarrc")["a"].sum() == 10
        assert type(xr.backends.list_engines()["zarrc"]).__name__ == "ZarrcBackendEntrypoint"
        assert xr.open_dataset("x.zarr").encoding["source"] and xr.backends.plugins.guess_engine("x.zarr") == "zarr"
        tree = xr.open_datatree("x.zarr", engine="zarrc")
        assert tree["a"].sum() == 10
    """, install(tmp_path))
    assert done.returncode == 0, done.stderr


def test_entry_point_is_cheap_and_never_fails(tmp_path):
    """Users of other engines do not notice a broken zarrc; its own are told."""
    done = program(tmp_path, """
        import sys, time
        import numpy as np, xarray as xr
        from importlib.metadata import entry_points
        (point,) = entry_points(group="xarray.backends", name="zarrc")
        times = []
        for _ in range(3):
            sys.modules.pop("zarrc_hook.engine", None)
            start = time.process_time()
            point.load()
            times.append(time.process_time() - start)
        assert "zarrc" not in sys.modules and "zarr" not in sys.modules and min(times) < .01, times
        xr.Dataset({"a": ("x", np.arange(5))}).to_zarr("x.zarr")
        assert xr.open_dataset("x.zarr")["a"].sum() == 10 and "zarrc" not in sys.modules
        try:
            xr.open_dataset("x.zarr", engine="zarrc")
        except ImportError as problem:
            assert "libmissing" in str(problem)
        else:
            raise AssertionError
    """, install(tmp_path, "raise ImportError('libmissing.so: cannot open shared object file')"))
    assert done.returncode == 0, done.stderr


def test_without_zarr_python(tmp_path):
    """xarray finds the engine by itself, and codecs are those of zarrc."""
    dataset(3).drop_vars("string", errors="ignore").to_zarr(tmp_path / "x.zarr", zarr_format=3)
    done = program(tmp_path, """
        import importlib.abc, importlib.util, sys
        real = importlib.util.find_spec
        importlib.util.find_spec = lambda name, *more: None if name == "zarr" else real(name, *more)
        sys.modules["zarr"] = None
        import xarray as xr
        found = xr.open_dataset("x.zarr")
        assert found["float"].encoding["compressors"][0].name == "zstd" and int(found["integer"].sum()) == 1770
    """, install(tmp_path))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("consolidated", [None, True, False])
def test_a_group_that_does_not_exist(tmp_path, consolidated):
    xr.Dataset({"t": ("x", np.arange(3))}).to_zarr(tmp_path / "x.zarr")
    for group in ("none", "a/b", "t"):
        with pytest.raises(FileNotFoundError, match=rf"/{group}: .*group.*x\.zarr") as problem:
            xr.open_dataset(tmp_path / "x.zarr", engine=Engine, group=group, consolidated=consolidated)
        assert isinstance(problem.value, KeyError) and isinstance(problem.value, zarrc.errors.GroupNotFoundError)


@pytest.mark.parametrize("head", [b"\x89HDF\r\n\x1a\n....", b"CDF\x01...."])
def test_files_of_netcdf(tmp_path, head):
    (tmp_path / "x.nc").write_bytes(head)
    with pytest.raises(ValueError, match="x.nc is a.* netCDF.* file, not a Zarr store: .*xarray"):
        xr.open_dataset(tmp_path / "x.nc", engine=Engine)
