"""What one package writes the other reads: every data type of zarr-python, both formats, codecs,
shards, and attributes."""
import copy
import itertools
import pickle
import sys

import numcodecs
import numpy as np
import pytest
import zarr

import zarrc

SIMPLE = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
          "complex64", "complex128", "datetime64[ns]", "datetime64[10us]", "timedelta64[s]", "S5", "U4", "V3",
          [("a", "int32"), ("b", "float64")], "str"]
pytestmark = pytest.mark.filterwarnings("ignore")  # zarr-python's, about types without a specification


def elements(dtype, shape=(6, 5)):
    n = int(np.prod(shape))
    if dtype == "str":
        return np.array([f"ä{i}" * (i % 4) for i in range(n)], dtype=zarrc._dtypes.text_dtype()).reshape(shape)
    dtype = np.dtype(dtype)
    if dtype.kind in "SU":
        return np.array([str(i) for i in range(n)]).astype(dtype).reshape(shape)
    if dtype.kind == "V":
        return np.frombuffer(np.random.default_rng(1).bytes(n * dtype.itemsize), dtype).reshape(shape)
    if dtype.kind in "mM":
        return np.arange(n).astype("int64").view(dtype.newbyteorder("=")).astype(dtype).reshape(shape)
    return (np.arange(n) % 2 if dtype.kind == "b" else np.arange(n)).astype(dtype).reshape(shape)


def same(a, b):
    a, b = (one.astype(one.dtype.newbyteorder("=")) if one.dtype.kind in "mMV" else one for one in map(np.asarray, (a, b)))
    return a.shape == b.shape and (a.tobytes() == b.tobytes() if a.dtype.kind in "VmM" else np.array_equal(a, b))


@pytest.mark.parametrize("dtype,zarr_format", list(itertools.product(SIMPLE, [2, 3])), ids=str)
def test_types(path, dtype, zarr_format):
    data = elements(dtype)
    given = dict(shape=data.shape, chunks=(4, 2), dtype=dtype if dtype == "str" else data.dtype, zarr_format=zarr_format)
    theirs = zarr.create_array(path + "/theirs", **given)
    theirs[...] = data
    ours = zarrc.open_array(path + "/theirs", mode="r")
    assert ours.dtype == theirs.dtype and same(ours[...], data) and same(ours[1:3, ::2], data[1:3, ::2])
    assert same(ours.fill_value, theirs.fill_value) or ours.fill_value == theirs.fill_value
    mine = zarrc.create_array(path + "/mine", **given)
    mine[...] = data
    if zarr_format == 3 and (dtype == "V3" or isinstance(dtype, list) and zarr.__version__ < "3.2"):
        return  # zarr-python reads its own names of these types, and not r24 and, in 3.1, struct
    read = zarr.open_array(path + "/mine", mode="r")
    assert read.dtype == mine.dtype and same(read[...], data)
    documents = [read.metadata.to_dict(), theirs.metadata.to_dict()]
    if dtype == "S5":  # zarr-python drops the NULs, which mean the same
        documents = [{**one, "fill_value": None} for one in documents]
    assert documents[0] == documents[1]


@pytest.mark.parametrize("name", [">M8[5generic]", "<m8[7generic]"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_multiples_of_times_without_a_unit(path, name, zarr_format):
    """Both ways, and through the pipeline."""
    def counts(found):
        return found.view(found.dtype.byteorder + "i8").tolist()

    data = np.array([1, -2, 100, -2**63], name[0] + "i8").view(name)
    with zarrc.enable():
        zarrc.pipeline_stats(reset=True)
        theirs = zarr.create_array(path + "/theirs", data=data, chunks=3, zarr_format=zarr_format)
        if np.datetime_data(theirs.dtype) != np.datetime_data(data.dtype):
            pytest.skip(f"zarr-python {zarr.__version__} leaves the multiple out")
        assert counts(theirs[:]) == counts(data)
        assert zarrc.pipeline_stats()["reasons"] == {}
    ours = zarrc.open_array(path + "/theirs")
    assert np.datetime_data(ours.dtype) == np.datetime_data(data.dtype) and counts(ours[:]) == counts(data)
    zarrc.create_array(path + "/ours", data=data, chunks=3, zarr_format=zarr_format)
    read = zarr.open_array(path + "/ours", mode="r")
    assert np.datetime_data(read.dtype) == np.datetime_data(data.dtype) and counts(read[:]) == counts(data)


@pytest.mark.parametrize("dtype", [">i4", ">f8", ">U3", ">M8[s]"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_big_endian(path, dtype, zarr_format):
    data = elements(dtype)
    zarr.create_array(path, shape=data.shape, chunks=(4, 2), dtype=dtype, zarr_format=zarr_format)[...] = data
    array, other = zarrc.open_array(path), zarr.open_array(path)
    assert array.dtype == other.dtype and same(array[...], data)
    array[2:4] = data[:2]
    assert same(other[2:4], data[:2])
    out = np.empty(data.shape, array.dtype.newbyteorder("S"))
    assert same(array.read(out=out), other[...])


@pytest.mark.parametrize("given", [
    dict(compressors=None), dict(compressors=zarr.codecs.GzipCodec(level=3)), dict(compressors={"name": "gzip", "configuration": {"level": 1}}),
    dict(compressors=zarr.codecs.BloscCodec(cname="lz4")), dict(filters=zarr.codecs.TransposeCodec(order=(1, 0))),
    dict(chunk_key_encoding={"name": "v2"}), dict(chunk_key_encoding={"name": "default"}),
    dict(shards=(6, 6)), dict(shards={"shape": (6, 6), "index_location": "start"}), dict(serializer=zarr.codecs.BytesCodec(endian="big")),
    dict(fill_value=7), dict(chunk_key_encoding={"name": "v2", "separator": "."}), dict(dimension_names=("x", None)),
    dict(attributes={"a": [1, {"b": None}], "c": "ü"}), dict(shards="auto"),
], ids=lambda given: "-".join(given))
def test_metadata_v3(path, given):
    """The same arguments make the same document."""
    data = elements("int32", (12, 12))
    ours = zarrc.create_array(path + "/a", shape=(12, 12), chunks=(3, 2), dtype="int32", **given)
    theirs = zarr.create_array(path + "/b", shape=(12, 12), chunks=(3, 2), dtype="int32", **given)
    ours[:7] = theirs[:7] = data[:7]
    assert zarr.open_array(path + "/a").metadata.to_dict() == theirs.metadata.to_dict()
    assert same(zarrc.open_array(path + "/b")[...], ours[...]) and same(zarr.open_array(path + "/a")[...], theirs[...])
    assert dict(zarrc.open_array(path + "/b").attrs) == dict(theirs.attrs)


@pytest.mark.parametrize("given", [
    dict(compressors=None), dict(compressors=numcodecs.GZip(3)), dict(filters=[numcodecs.Delta("<i4")]),
    dict(order="F"), dict(fill_value=None), dict(fill_value=3), dict(), dict(chunk_key_encoding={"name": "v2", "separator": "/"}),
], ids=lambda given: "-".join(given) or "none")
def test_metadata_v2(path, given):
    data = elements("int32", (12, 12))
    ours = zarrc.create_array(path + "/a", shape=(12, 12), chunks=(3, 2), dtype="int32", zarr_format=2, **given)
    theirs = zarr.create_array(path + "/b", shape=(12, 12), chunks=(3, 2), dtype="int32", zarr_format=2, **given)
    ours[:7] = theirs[:7] = data[:7]
    assert zarr.open_array(path + "/a").metadata.to_dict() == theirs.metadata.to_dict()
    assert same(zarrc.open_array(path + "/b")[...], ours[...]) and same(zarr.open_array(path + "/a")[...], theirs[...])


def test_numbers_of_chunks(path):
    array = zarrc.create_array(path, shape=(10, 11), chunks=(2, 3), shards=(4, 6), dtype="int16")
    array[:5, :5] = 1
    other = zarr.open_array(path)
    for name in ("shape", "chunks", "shards", "cdata_shape", "nchunks", "nchunks_initialized", "size", "nbytes", "ndim",
                 "order", "fill_value", "dtype", "name", "path", "basename", "read_only", "dimension_names"):
        if hasattr(other, name):
            assert getattr(array, name) in (getattr(other, name), (None, None)), name
    for name in ("read_chunk_sizes", "write_chunk_sizes"):
        if hasattr(other, name):
            assert getattr(array, name) == getattr(other, name)
    assert array.nbytes_stored() == other.nbytes_stored()


def test_groups(path):
    group = zarrc.open_group(path, attributes={"title": "x"})
    group.create_array("a/b", data=np.arange(4))
    group.create_group("c", attributes={"n": 1})
    other = zarr.open_group(path)
    assert dict(other.attrs) == {"title": "x"} and sorted(other.keys()) == sorted(group.keys()) == ["a", "c"]
    assert sorted(name for name, _ in other.members(max_depth=None)) == [name for name, _ in group.members(max_depth=None)]
    other["a"].create_array("d", data=np.ones(3))
    assert same(group["a/d"][...], np.ones(3)) and group["c"].attrs["n"] == 1
    zarr.consolidate_metadata(path)
    found = zarrc.open_consolidated(path, mode="r")
    assert found.info.items()["Consolidated"] and sorted(found["a"].keys()) == ["b", "d"]
    zarrc.consolidate_metadata(path)
    assert sorted(zarr.open_consolidated(path)["a"].keys()) == ["b", "d"]


@pytest.mark.parametrize("setting", [{"array.order": "F"}, {"array.write_empty_chunks": True}], ids=str)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_settings_of_new_arrays(path, setting, zarr_format):
    """The settings that both packages have make the same document, the same chunks and the same memory."""
    made = []
    for package in (zarr, zarrc):
        with package.config.set(setting):
            array = package.create_array(f"{path}/{package.__name__}", shape=(4, 6), chunks=(2, 3), dtype="i4", zarr_format=zarr_format)
        array[...] = 0
        made.append((zarr.open_array(f"{path}/{package.__name__}").metadata.to_dict(), array.order, array.nchunks_initialized,
                     array[...].flags.f_contiguous))
    assert made[0] == made[1]


def test_levels_of_a_tree(path):
    if zarr.__version__ < "3.2":
        pytest.importorskip("rich")
    group = zarr.open_group(path)
    group.create_array("a/b/c", shape=(3, 4), dtype="i4")
    group.create_group("d")
    for level in (None, 0, 1, 2):
        assert str(zarrc.tree(path, level=level)) == str(group.tree(level=level)).rstrip(), level


@pytest.mark.parametrize("above", [None, "group"])
def test_hierarchy_with_groups_above(path, above):
    """Groups that are missing are made, and are among what comes back."""
    found = []
    for package in (zarr, zarrc):
        place = f"{path}/{package.__name__}"
        if above:
            package.create_group(place, path="b")
        store = zarr.storage.LocalStore(place) if package is zarr else place
        nodes = {"a": zarr.core.group.GroupMetadata(), "b/c/d": zarr.core.group.GroupMetadata(attributes={"q": 1})}
        made = dict(package.create_hierarchy(store=store, nodes=nodes))
        assert all(isinstance(node, package.Group) for node in made.values()) and dict(made["b/c/d"].attrs) == {"q": 1}
        found.append(sorted(made))
    assert found[0] == found[1]


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("name", ["", "a/b"])
def test_numbers_that_json_lacks(path, name, zarr_format):
    """zarr-python stores NaN and Infinity as bare words. They are numbers; what we write are texts."""
    given = {"v": float("nan"), "r": [float("-inf"), {"q": float("inf")}, "NaN"], "t": "NaN", "n": 1}
    theirs = zarr.create_array(path, name=name or None, shape=3, dtype="i4", attributes=given, zarr_format=zarr_format)
    for node in (zarrc.open_array(path, path=name), zarrc.open(zarr.storage.LocalStore(path), path=name)):
        assert repr(dict(node.attrs)) == repr(node.attrs.asdict()) == repr(dict(theirs.attrs))
    attrs = zarrc.open_array(path, path=name, mode="r+").attrs
    assert np.isnan(attrs["v"])
    attrs["n"] = 2
    assert attrs.asdict() == {"v": "NaN", "r": ["-Infinity", {"q": "Infinity"}, "NaN"], "t": "NaN", "n": 2}
    assert zarr.open_array(path, path=name).attrs["v"] == "NaN"
    group = zarr.open_group(path + "/g", attributes=given, zarr_format=zarr_format)
    assert repr(dict(zarrc.open_group(path + "/g").attrs)) == repr(dict(group.attrs))


def test_members_of_codecs(path):
    """The configuration of a codec is in its attributes."""
    for given, names in ((dict(), ["level", "checksum"]), (dict(compressors=zarr.codecs.GzipCodec(level=3)), ["level"]),
                         (dict(zarr_format=2, compressors=numcodecs.Zstd(2)), ["codec_id", "level"])):
        codecs = [package.create_array(f"{path}/{package.__name__}", shape=3, dtype="i4", overwrite=True, **given).compressors[0]
                  for package in (zarr, zarrc)]
        for name in names:
            assert getattr(codecs[0], name) == getattr(codecs[1], name), name
        assert pickle.loads(pickle.dumps(codecs[1])) == copy.copy(codecs[1]) == codecs[1]
        with pytest.raises(AttributeError, match="nonsense"):
            codecs[1].nonsense


def test_modules_of_zarr_python(path, monkeypatch):
    """A program that has `import zarrc as zarr` finds the codecs, stores and data types that calls take."""
    given = dict(shape=(4, 6), chunks=(2, 3), compressors=zarrc.codecs.BloscCodec(cname="lz4"))
    array = zarrc.create_array(zarrc.storage.LocalStore(path), dtype=zarrc.dtype.Float32() if hasattr(zarr, "dtype") else "f4", **given)
    assert array.dtype == "f4" and array.compressors[0].name == "blosc" and zarrc.storage is zarr.storage
    for module in ("zarr", "zarr.codecs", "zarr.storage", "zarr.dtype"):
        monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    for call in (lambda: zarrc.codecs, lambda: zarrc.storage, lambda: zarrc.dtype.Float32):
        with pytest.raises(AttributeError, match="instead"):
            call()


def test_names():
    """Every public name of zarr-python is here."""
    missing = [name for name in zarr.__all__ if not hasattr(zarrc, name)]
    assert not missing
    assert set(zarr.__all__) <= set(zarrc.__all__)


def test_members_of_types():
    """Every public method and property of zarr-python's Array and Group is here, except those that
    the package's documentation names."""
    absent = {"from_dict", "from_store", "open", "create"}
    for theirs, ours in ((zarr.Array, zarrc.Array), (zarr.Group, zarrc.Group)):
        public = {name for name in dir(theirs) if not name.startswith("_")}
        assert public - set(dir(ours)) <= absent | {"array", "create_dataset", "require_dataset"}


def test_from_their_objects(path):
    store = zarr.storage.LocalStore(path)
    theirs = zarr.create_array(store, name="a", data=np.arange(10), chunks=3)
    assert same(zarrc.open_array(store, path="a")[...], np.arange(10))
    assert same(zarrc.open_array(theirs.store_path, mode="r")[...], np.arange(10))
    ours = zarrc.from_array(path + "/copy", data=theirs)
    assert ours.chunks == (3,) and same(ours[...], np.arange(10)) and ours.compressors[0].name == "zstd"
    like = zarrc.zeros_like(theirs)
    assert like.shape == (10,) and like.chunks == (3,) and not like[...].any()
    with pytest.raises(TypeError, match="not a store"):
        zarrc.open_array(object())


def test_out_of_their_class():
    """A method fills an NDBuffer, and returns what zarr-python's method returns."""
    from zarr.buffer.cpu import NDBuffer
    data = np.arange(20, dtype="i4").reshape(4, 5)
    arrays = [package.create_array({}, shape=data.shape, chunks=(2, 2), dtype="i4") for package in (zarr, zarrc)]
    calls = [("get_basic_selection", (slice(1, 3),), (2, 5)), ("get_basic_selection", (2, 3), ()), ("get_basic_selection", 2, (5,)),
             ("get_orthogonal_selection", ([0, 3], [1, 2]), (2, 2)), ("get_mask_selection", data % 2 == 0, (10,)),
             ("get_block_selection", (0, 1), (2, 2)), ("get_coordinate_selection", ([0, 3], [1, 2]), (2,)),
             ("get_coordinate_selection", ([[0], [3]], [[1], [2]]), (2,)), ("get_basic_selection", 2, (4,))]
    for z in arrays:
        z[...] = data
    for name, key, shape in calls:
        found = []
        for z in arrays:
            out = NDBuffer.create(shape=shape, dtype="i4", fill_value=77)
            try:
                got = getattr(z, name)(key, out=out)
                found.append((isinstance(got, np.ndarray), np.shape(got), np.asarray(got).tolist(), out.as_numpy_array().tolist()))
            except ValueError as problem:
                found.append(type(problem))
        assert found[0] == found[1], (name, key)
    out = NDBuffer.create(shape=(5,), dtype="i4")
    assert arrays[1].read(2, out=out) is out and out.as_numpy_array().tolist() == data[2].tolist()
