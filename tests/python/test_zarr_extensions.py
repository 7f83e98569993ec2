"""Data types and codecs that zarr-python lacks, by the entry points `zarr.data_type` and `zarr.codecs`: with zarr-python's own
pipeline, which asks our classes chunk by chunk, and with zarrc's."""
import concurrent.futures
import multiprocessing
import os
import pickle
import subprocess
import sys
import textwrap
import tomllib
import types
import warnings

import numpy as np
import pytest
from conftest import ROOT, install
from pipelines import OWN, zarr
from zarr.buffer.cpu import Buffer
from zarr.storage import MemoryStore

import zarrc
import zarrc_hook
from zarrc_hook import codecs, data_types

ml_dtypes = pytest.importorskip("ml_dtypes", reason="scripts/venv installs ml_dtypes")
VERSION = tuple(int(part) for part in zarr.__version__.split(".")[:3])
LOADS_TYPES = VERSION >= (3, 4, 1)  # entry points of data types
NEW = [name for name in codecs.CLASSES if name not in ("CastValue", "ScaleOffset")]  # zarr-python 3.2 has these two
NUMBERS = np.arange(5 * 7).reshape(5, 7)
FUSED = "zarr.core.codec_pipeline.FusedCodecPipeline"
LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


@pytest.fixture(autouse=True)
def register():
    """As zarrc.enable() leaves zarr-python: the classes are registered, and the pipeline is zarr-python's."""
    with zarrc.enable():
        pass


def use_pipeline(way):
    """`way`: "native" (zarrc's pipeline), or "own" and "fused", which are zarr-python's."""
    zarrc.pipeline_stats(reset=True)
    return zarrc.enable() if way == "native" else zarr.config.set({"codec_pipeline.path": OWN if way == "own" else FUSED})


def make_values(name):
    top = {"int2": 2, "uint2": 4, "float4_e2m1fn": 4}.get(name, 7)
    return (NUMBERS % top).astype(getattr(ml_dtypes, name))


def raw_values():
    return np.frombuffer(NUMBERS.astype("u1").repeat(3).tobytes(), "V3").reshape(NUMBERS.shape)


def same_bits(found, expected):
    assert found.dtype == expected.dtype and found.shape == expected.shape
    assert found.tobytes() == expected.tobytes()


def round_trip(way, values, **spec):
    """Creates, writes, changes a part, opens again and reads. Returns what is in the store."""
    spec = {"dtype": values.dtype, "chunks": (2, 3)[:values.ndim], **spec}
    store = MemoryStore()
    with use_pipeline(way), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Numcodecs codecs")
        zarr.create_array(store, shape=values.shape, **spec)[...] = values
        z = zarr.open_array(store, mode="r+")
        if values.ndim:
            z[1:4, 2] = values[1:4, 2]
        found = z[...]
        if found.dtype.kind in "OT":
            np.testing.assert_array_equal(found, values)
        else:
            same_bits(found, values)
            assert z.ndim == 0 or z[3, 1:6].tobytes() == values[3, 1:6].tobytes()
    told = zarrc.pipeline_stats()
    assert bool(told["native_chunks"]) == (way == "native") and not told["fallback_chunks"], told
    return {key: value.to_bytes() for key, value in store._store_dict.items()}


# ---- data types ----


@pytest.mark.parametrize("form", ["chunks", "shards", "by name", "v2"])
@pytest.mark.parametrize("name", data_types._SIZES)
def test_types(name, form):
    values = make_values(name)
    spec = {"chunks": {}, "shards": {"shards": (4, 6), "fill_value": 1}, "by name": {"dtype": name}, "v2": {"zarr_format": 2, "compressors": None}}[form]
    if form == "v2" and name in data_types._NOT_IN_V2:
        with pytest.raises(ValueError, match="use zarr_format=3"):
            zarr.create_array({}, shape=3, dtype=values.dtype, zarr_format=2)
        return
    assert round_trip("own", values, **spec) == round_trip("native", values, **spec)


def test_v2_with_a_compressor():
    """numcodecs does not take memory of ml_dtypes, so only the library writes it; both read it."""
    values, store = make_values("bfloat16"), MemoryStore()
    with use_pipeline("native"):
        zarr.create_array(store, shape=(5, 7), chunks=(2, 3), dtype="bfloat16", zarr_format=2)[...] = values
    with use_pipeline("own"):
        same_bits(zarr.open_array(store)[...], values)


@pytest.mark.parametrize("way", ["own", "native"])
def test_raw_bits(way):
    values = raw_values()
    for spec in ({}, {"fill_value": b"abc"}, *([{"fill_value": b"abc", "shards": (4, 6)}] if VERSION >= (3, 2) or way == "native" else [])):
        stored = round_trip(way, values, dtype="r24", **spec)
        assert b'"r24"' in stored["zarr.json"]
    assert zarr.create_array({}, shape=3, dtype="r24", fill_value=b"abc").metadata.to_dict()["fill_value"] == [97, 98, 99]
    with pytest.raises((TypeError, ValueError)):
        zarr.create_array({}, shape=3, dtype="r12")


def test_raw_bytes_stay_with_zarr_python():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        z = zarr.create_array({}, shape=3, dtype="V3")
        assert z.metadata.to_dict()["data_type"]["name"] == "raw_bytes"


@pytest.mark.parametrize("way", ["own", "native"])
def test_byte_order(way):
    values = make_values("bfloat16").ravel()
    big = {"name": "bytes", "configuration": {"endian": "big"}}
    with use_pipeline(way):
        z = zarr.create_array({}, shape=35, dtype="bfloat16", serializer=big, compressors=None)
        z[...] = values
        assert z.store._store_dict["c/0"].to_bytes() == values.view("u2").byteswap().tobytes()
        assert (z[...] == values).all() and (z[3:9] == values[3:9]).all()


FILLS = {
    "bfloat16": [(1.5, 1.5), ("NaN", "NaN"), ("0x7fc1", "0x7fc1"), (np.float32(2), 2.0), (ml_dtypes.bfloat16(3), 3.0), (-0.0, -0.0),
                 (np.inf, "Infinity"), (np.nan, "NaN"), (np.array(4), 4.0), (None, 0.0)],
    "int4": [(7, 7), (-8, -8), (1.0, 1), (None, 0)],
    "float8_e5m2": [(2, 2.0), ("-Infinity", "-Infinity")],
}


@pytest.mark.parametrize("way", ["own", "native"])
@pytest.mark.parametrize("name", FILLS)
def test_fill_values(name, way):
    for given, told in FILLS[name]:
        with use_pipeline(way):
            z = zarr.create_array({}, shape=4, chunks=2, dtype=name, fill_value=given)
            assert repr(z.metadata.to_dict()["fill_value"]) == repr(told)
            copy = zarr.open_array(z.store)
            assert copy[...].tobytes() == np.full(4, copy.fill_value).tobytes()
            assert copy[...].tobytes() == zarrc.open_array(z.store, zarr_format=3)[...].tobytes()
    for wrong in (1e40, "x", [1], 8.5 if name == "int4" else True):
        with pytest.raises(TypeError, match="is not a valid"):
            zarr.create_array({}, shape=4, dtype=name, fill_value=wrong)


@pytest.mark.parametrize("driver", ["zarr3", "zarr"])
@pytest.mark.parametrize("name", ["bfloat16", "int4", "int2", "float8_e5m2", "float8_e4m3fn", "float4_e2m1fn"])
def test_both_ways_with_tensorstore(tmp_path, name, driver):
    tensorstore = pytest.importorskip("tensorstore")
    if driver == "zarr" and name in data_types._NOT_IN_V2:
        pytest.skip("not a data type of v2 in zarr-python")
    values = make_values(name)
    theirs = {"driver": driver, "kvstore": {"driver": "file", "path": f"{tmp_path}/theirs"}}
    member = "data_type" if driver == "zarr3" else "dtype"
    tensorstore.open({**theirs, "metadata": {"shape": [5, 7], member: name}}, create=True).result().write(values).result()
    for way in ("own", "native"):
        with use_pipeline(way):
            same_bits(zarr.open_array(tmp_path / "theirs", mode="r")[...], values)
            ours = tmp_path / way
            zarr.create_array(ours, shape=(5, 7), chunks=(2, 3), dtype=name, fill_value=1, zarr_format=3 if driver == "zarr3" else 2,
                              **({} if driver == "zarr3" else {"compressors": None}))[:4] = values[:4]
        found = tensorstore.open({**theirs, "kvstore": {"driver": "file", "path": str(ours)}}, open=True, read=True).result().read().result()
        same_bits(found[:4], values[:4])
        assert (found[4] == found.dtype.type(1)).all()


def test_objects():
    """Pickles, equality, and what shows arrays."""
    group = zarr.create_group({})
    made = [group.create_array(name, shape=(4,), chunks=(2,), dtype=name, compressors=[{"name": "snappy"}])
            for name in ("bfloat16", "int4", "r24")]
    for z, name in zip(made, ("bfloat16", "int4", "r24")):
        assert zarr.open_array(z.store, path=z.path) == z and pickle.loads(pickle.dumps(z.metadata)) == z.metadata
        assert name in str(z.info).lower() or "RawBits" in str(z.info)
        kind = z.metadata.data_type
        assert pickle.loads(pickle.dumps(kind)) == kind and hash(pickle.loads(pickle.dumps(kind))) == hash(kind)
        (codec,) = z.compressors
        assert pickle.loads(pickle.dumps(codec)) == codec and hash(pickle.loads(pickle.dumps(codec))) == hash(codec)
        assert "Snappy" in repr(codec) and "Snappy" in str(z.info)
    assert sorted(name for name, _ in group.arrays()) == ["bfloat16", "int4", "r24"]
    assert made[0].metadata.data_type != made[1].metadata.data_type
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zarr.consolidate_metadata(group.store)
    assert zarr.open_consolidated(group.store)["int4"] == made[1]
    one, two = (codecs.CLASSES["Bitround"](keepbits=n) for n in (3, 4))
    assert one != two and one == codecs.CLASSES["Bitround"].from_dict(one.to_dict()) and repr(one) == "Bitround(keepbits=3)"
    assert zarr.array(np.arange(3).astype(ml_dtypes.bfloat16)).dtype == ml_dtypes.bfloat16
    assert zarr.ones_like(zarr.zeros(3, dtype="bfloat16"))[...].tolist() == [1, 1, 1]
    assert zarr.from_array({}, data=zarr.full(3, 2, dtype="int4"))[...].tolist() == [2, 2, 2]
    assert zarrc.create_array({}, shape=3, dtype=made[0].metadata.data_type, compressors=made[0].compressors).dtype == ml_dtypes.bfloat16


def test_struct_with_a_field():
    kind = np.dtype([("a", ml_dtypes.bfloat16), ("b", "<i4")])
    values = np.zeros(4, kind)
    values["a"] = [1, 2, 3, 4]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        z = zarr.create_array({}, shape=4, dtype=kind)
        z[...] = values
        assert zarr.open_array(z.store)[...].tobytes() == values.tobytes()


def test_types_for_zarr_python(path):
    z = zarr.create_array(store=path, shape=(4,), dtype=ml_dtypes.bfloat16)
    z[:] = np.arange(4).astype(ml_dtypes.bfloat16)
    same_bits(zarr.open_array(path)[:], np.arange(4).astype(ml_dtypes.bfloat16))
    same_bits(zarrc.open_array(path)[:], np.arange(4).astype(ml_dtypes.bfloat16))


@pytest.mark.parametrize("way", ["own", "native"])
def test_xarray(tmp_path, way):
    xr = pytest.importorskip("xarray", reason="scripts/venv installs xarray")
    values = make_values("bfloat16")
    with use_pipeline(way), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        xr.Dataset({"a": (("x", "y"), values)}).to_zarr(tmp_path / "x.zarr", zarr_format=3)
        same_bits(xr.open_zarr(tmp_path / "x.zarr", zarr_format=3)["a"].values, values)


# ---- codecs ----

FLOATS, WORDS = NUMBERS.astype("f4"), NUMBERS.astype(str).astype(object)
CODECS = {  # values, and what create_array is given
    "bitround": (FLOATS, {"filters": [{"name": "bitround", "configuration": {"keepbits": 10}}]}),
    "bitround of bfloat16 in shards": (make_values("bfloat16"), {"filters": [{"name": "bitround", "configuration": {"keepbits": 7}}],
                                                              "shards": (4, 6)}),
    "reshape": (FLOATS, {"filters": [{"name": "reshape", "configuration": {"shape": [[0, 1]]}}]}),
    "reshape to more": (FLOATS, {"filters": [{"name": "reshape", "configuration": {"shape": [1, 3, -1]}}],
                                 "compressors": None}),
    "squeeze": (FLOATS, {"filters": [{"name": "zarrs.squeeze"}], "chunks": (1, 3)}),
    "packbits": (NUMBERS % 2 == 0, {"serializer": {"name": "packbits"}, "shards": (4, 6)}),
    "packbits of int4": (make_values("int4"), {"serializer": {"name": "packbits", "configuration": {"padding_encoding": "first_byte"}}}),
    "zfp": (FLOATS, {"serializer": {"name": "zfp", "configuration": {"mode": "reversible"}}}),
    "zarrs.zfp": (FLOATS, {"serializer": {"name": "zarrs.zfp", "configuration": {"mode": "reversible"}}}),
    "n5_default": (FLOATS, {"serializer": {"name": "n5_default", "configuration": {"codecs": [
        {"name": "transpose", "configuration": {"order": [1, 0]}}, {"name": "bytes", "configuration": {"endian": "big"}},
        {"name": "gzip", "configuration": {"level": 1}}]}},
        "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "/"}}}),
    "snappy": (FLOATS, {"compressors": [{"name": "snappy"}]}),
    "snappy after zstd, in shards": (FLOATS, {"compressors": [{"name": "zstd", "configuration": {"level": 1, "checksum": False}},
                                                             {"name": "snappy"}], "shards": (4, 6)}),
    "base64": (FLOATS, {"compressors": [{"name": "numcodecs.base64", "configuration": {}}]}),
    "conditional": (FLOATS, {"compressors": [{"name": "conditional", "configuration": {
        "codecs": [{"name": "zstd", "configuration": {"level": 1}}]}}]}),
    "all kinds at once": (make_values("bfloat16"), {"filters": [{"name": "bitround", "configuration": {"keepbits": 7}},
                                                             {"name": "reshape", "configuration": {"shape": [-1]}}],
                                                 "serializer": {"name": "zfp", "configuration": {"mode": "reversible"}},
                                                 "compressors": [{"name": "snappy"}, {"name": "crc32c"}]}),
    "without dimensions": (np.array(1.5, "f4"), {"filters": [{"name": "bitround", "configuration": {"keepbits": 3}}],
                                                 "compressors": [{"name": "snappy"}], "chunks": ()}),
    **{name: (WORDS, {"dtype": "string", "serializer": {"name": name}})
       for name in ("zarrs.vlen_v2", "vlen-array", "numcodecs.vlen-array", "numcodecs.vlen-utf8")},
    "zarrs.vlen": (WORDS, {"dtype": "string", "serializer": {"name": "zarrs.vlen", "configuration": {
        "index_codecs": [LITTLE], "data_codecs": [{"name": "bytes"}], "index_data_type": "uint32"}}}),
    "numcodecs.vlen-bytes": (np.array([[str(n).encode() for n in row] for row in NUMBERS], object),
                             {"dtype": "variable_length_bytes", "serializer": {"name": "numcodecs.vlen-bytes"}}),
    **{f"{name} of bfloat16": (make_values("bfloat16"), {"compressors": [{"name": f"numcodecs.{name}", "configuration": {}}]})
       for name in ("lz4", "bz2", "lzma", "fletcher32")},  # zarr-python's own classes
}


@pytest.mark.parametrize("case", CODECS)
@pytest.mark.filterwarnings("ignore:The data type .* does not have a Zarr V3 specification")
def test_codecs(case):
    values, spec = CODECS[case]
    stored = round_trip("own", values, **spec)
    assert stored == round_trip("native", values, **spec)
    if VERSION >= (3, 3):  # it has the fused pipeline
        assert stored == round_trip("fused", values, **spec)


@pytest.mark.skipif(VERSION >= (3, 2), reason="zarr-python has these two codecs")
@pytest.mark.parametrize("spec", [{"name": "cast_value", "configuration": {"data_type": "int8"}},
                                  {"name": "scale_offset", "configuration": {"scale": 2, "offset": 3}}])
def test_codecs_before_zarr_python_32(spec):
    values = NUMBERS.astype("i2")
    assert round_trip("own", values, filters=[spec], fill_value=3) == round_trip("native", values, filters=[spec], fill_value=3)


@pytest.mark.filterwarnings("ignore:Combining a")
def test_shards_behind_a_codec():
    """Both pipelines read the missing chunks of a shard alike."""
    for way in ("own", "native"):
        with use_pipeline(way):
            z = zarr.create_array({}, shape=(4, 4), chunks=(4, 4), dtype="f4", fill_value=1.2345678, compressors=None, filters=[
                {"name": "bitround", "configuration": {"keepbits": 3}}], serializer=zarr.codecs.ShardingCodec(chunk_shape=(2, 2)))
            z[0, 0] = 1
            found = z[...]
        with use_pipeline("native" if way == "own" else "own"):
            same_bits(zarr.open_array(z.store)[...], found)
        same_bits(zarrc.open_array(z.store)[...], found)


@pytest.mark.parametrize("way", ["own", "native"])
@pytest.mark.parametrize("shape", [(0, 5), (10**9, 10**9)])
@pytest.mark.parametrize("codec", [{"name": "bitround", "configuration": {"keepbits": 10}},
                                   {"name": "reshape", "configuration": {"shape": [[0, 1]]}}, {"name": "zarrs.squeeze"}])
def test_shapes_that_no_chunk_has(shape, codec, way):
    """zarr-python asks the codecs for the array's shape, too."""
    with use_pipeline(way):
        z = zarr.create_array({}, shape=shape, chunks=(1, 5), dtype="f4", filters=[codec])
        z[:1, :5] = np.ones((min(shape[0], 1), 5), "f4")
        assert z[:1, :5].sum() == 5 * min(shape[0], 1)


NINE = {
    "bfloat16": {"dtype": "bfloat16"}, "int4": {"dtype": "int4"}, "r24": {"dtype": "r24"},
    "packbits": {"dtype": "bool", "serializer": {"name": "packbits"}},
    "zfp": {"dtype": "f4", "serializer": {"name": "zfp", "configuration": {"mode": "reversible"}}},
    "bitround": {"dtype": "f4", "filters": [{"name": "bitround", "configuration": {"keepbits": 10}}]},
    "snappy": {"dtype": "f4", "compressors": {"name": "snappy"}},
    "reshape": {"dtype": "f4", "filters": [{"name": "reshape", "configuration": {"shape": [[0, 1]]}}]},
    "lz4": {"dtype": "f4", "compressors": {"name": "numcodecs.lz4", "configuration": {"acceleration": 1}}},
}


@pytest.mark.parametrize("way", ["own", "native"])
@pytest.mark.parametrize("name", NINE)
def test_arrays_that_zarrc_wrote(path, name, way):
    spec = NINE[name]
    values = raw_values() if name == "r24" else make_values(name) if name in ("bfloat16", "int4") else NUMBERS.astype(spec["dtype"])
    zarrc.create_array(path, shape=(5, 7), chunks=(2, 3), **spec)[...] = values
    with use_pipeline(way), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Numcodecs codecs")
        z = zarr.open_array(path)
        same_bits(z[...], values)
        z[2:4] = values[:2]
        z.attrs["a"] = 1  # writes the document
    expected = values.copy()
    expected[2:4] = values[:2]
    again = zarrc.open_array(path)
    same_bits(again[...], expected)
    assert again.attrs["a"] == 1


def test_wrong_configurations():
    """What zarrc refuses is refused when the array is created."""
    for part, wrong, text in (("serializer", {"name": "zfp", "configuration": {"mode": "foo"}}, 'mode is "foo"'),
                              ("serializer", {"name": "zfp"}, "mode is required"),
                              ("serializer", {"name": "packbits", "configuration": {"nope": 1}}, 'unknown member "nope"'),
                              ("compressors", {"name": "snappy", "configuration": {"level": 1}}, 'unknown member "level"'),
                              ("filters", {"name": "bitround", "configuration": {"nope": 1}}, 'unknown member "nope"')):
        with pytest.raises(ValueError, match=text):
            zarr.create_array({}, shape=3, dtype="f4", **{part: wrong})
    z = zarr.create_array({}, shape=(4, 4), chunks=(4, 4), dtype="f4", filters=[{"name": "reshape", "configuration": {"shape": [5, 5]}}])
    with use_pipeline("own"), pytest.raises(ValueError, match="reshape"):
        zarr.open_array(z.store)[...] = 1
    with pytest.raises(zarrc.errors.UnsupportedError, match="no library of Debian has GDeflate"):
        zarr.create_array({}, shape=3, dtype="f4", compressors=[{"name": "zarrs.gdeflate", "configuration": {"level": 1}}])[...] = 1


def test_damaged_chunk():
    with use_pipeline("own"):
        z = zarr.create_array({}, shape=4, dtype="f4", compressors=[{"name": "snappy"}])
        z[...] = 1
        z.store._store_dict["c/0"] = Buffer.from_bytes(b"\x80\x01nonsense")
        with pytest.raises(zarrc.errors.CorruptError, match="snappy"):
            z[...]


def test_many_threads():
    """zarr-python's pipeline encodes and decodes several chunks at once."""
    values = np.arange(400 * 100, dtype="f4").reshape(400, 100)
    with use_pipeline("own"):
        z = zarr.create_array({}, shape=values.shape, chunks=(10, 10), dtype="f4", compressors=[{"name": "snappy"}],
                              filters=[{"name": "bitround", "configuration": {"keepbits": 23}}])
        z[...] = values
        assert (z[...] == values).all()


def _sum(z):
    return float(z[...].sum())


@pytest.mark.usefixtures("semaphores")
@pytest.mark.parametrize("how", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_processes(tmp_path, how):
    with use_pipeline("own"):
        z = zarr.create_array(tmp_path / "x", shape=40, chunks=4, dtype="f4", compressors=[{"name": "snappy"}])
        z[...] = 1
        with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context(how)) as pool:
            assert list(pool.map(_sum, [z, z], timeout=120)) == [40, 40]


# ---- how they are found ----


def test_entry_points_are_the_tables():
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    assert points["zarr.data_type"] == {name: f"zarrc_hook:data_type.{name}" for name in data_types.CLASSES}
    assert points["zarr.codecs"] == {cls.name: f"zarrc_hook.codecs:choose.{name}" for name, cls in codecs.CLASSES.items()}


def test_every_codec_that_zarr_python_lacks():
    """The codecs of the registry that Zarr v3 may have and zarr-python has not."""
    from zarrc._settings import settings
    rows = settings.context().registry(zarrc._core.ZARR_REGISTRY_CODEC)
    known = {row["v3"] for row in rows if row["origin"] != "zarrc.plugins"} - {""}  # other tests register some
    theirs = {name for name, classes in codecs._find_registry().items()
              if any(not cls.__module__.startswith("zarrc_hook") for cls in classes.values())}
    assert known - theirs - {cls.name for cls in codecs.CLASSES.values()} == {"optional", "zarrs.optional"}  # their data type is ours alone


def run(tmp_path, text, package=None):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, cwd=tmp_path,
                          env={**os.environ, "PYTHONPATH": install(tmp_path, package)}, timeout=120)
    assert done.returncode == 0, done.stderr


def test_installed(tmp_path):
    """A program that does not import zarrc."""
    run(tmp_path, """
        import numpy as np, sys, warnings, zarr
        zarr.create_array({}, shape=4, dtype="i4")[...] = 1
        assert "zarrc" not in sys.modules and "ml_dtypes" not in sys.modules
        warnings.simplefilter("error")  # such as two classes for one codec
        z = zarr.create_array("x.zarr", shape=4, chunks=2, dtype="f4", compressors=[{"name": "snappy"}],
                              filters=[{"name": "scale_offset", "configuration": {"offset": 1}}])
        z[...] = np.arange(4)
        assert zarr.open_array("x.zarr")[...].tolist() == [0, 1, 2, 3]
        assert zarr.create_array({}, shape=4, dtype="bool", serializer={"name": "packbits"})[...].sum() == 0
        assert zarr.config.get("codec_pipeline.path") != "zarrc.ZarrcCodecPipeline"
    """ + ("""
        z = zarr.create_array("y.zarr", shape=4, chunks=2, dtype="bfloat16", fill_value=2)
        import ml_dtypes
        z[:2] = np.arange(2).astype(ml_dtypes.bfloat16)
        z = zarr.open_array("y.zarr")
        assert z.dtype == ml_dtypes.bfloat16 and z[...].tolist() == [0, 1, 2, 2]
    """ if LOADS_TYPES else ""))


def test_installed_and_broken(tmp_path):
    """Users who have none of these arrays do not notice a package that cannot be loaded, or one that costs: no other module
    is imported."""
    run(tmp_path, """
        import sys, zarr, zarr.registry
        from importlib.metadata import entry_points
        before = set(sys.modules)
        points = entry_points(group="zarr.data_type")
        assert len([point.load() for point in points if point.value.startswith("zarrc")]) == 17
        assert set(sys.modules) - before == {"zarrc_hook", "zarrc_hook.data_types"}, set(sys.modules) - before
        for point in entry_points(group="zarr.codecs"):
            point.load()
        assert set(sys.modules) - before == {"zarrc_hook", "zarrc_hook.data_types", "zarrc_hook.codecs"}
        z = zarr.create_array({}, shape=(4,), dtype="i4")
        z[...] = 1
        assert z[...].sum() == 4 and "zarrc" not in sys.modules
        try:
            zarr.create_array({}, shape=4, dtype="f4", compressors=[{"name": "snappy"}])
        except ImportError as problem:
            assert "libmissing" in str(problem)
        else:
            raise AssertionError
    """, "raise ImportError('libmissing.so: cannot open shared object file')")


@pytest.mark.parametrize("change", ['sys.modules["zarr.core.dtype.common"] = None', "zarr.dtype.ZDType = 1"])
def test_another_zarr_python(tmp_path, change):
    """If the classes cannot be made, zarr-python has none of the data types and works as before."""
    run(tmp_path, f"""
        import sys, zarr, zarr.dtype, zarr.registry
        from importlib.metadata import entry_points
        from zarr.dtype import data_type_registry
        from zarr.core.dtype import registry, wrapper
        known, before = dict(data_type_registry.contents), sys.modules["zarr.core.dtype.common"]
        {change}
        points = [point for point in entry_points(group="zarr.data_type") if point.value.startswith("zarrc_hook")]
        assert len(points) == 17
        for point in points:
            cls = point.load()
            data_type_registry.register(cls._zarr_v3_name, cls)
        assert data_type_registry.contents == known
        sys.modules["zarr.core.dtype.common"], zarr.dtype.ZDType = before, wrapper.ZDType
        z = zarr.create_array({{}}, shape=(4,), dtype="i4")
        z[...] = 1
        assert z[...].sum() == 4
    """)


def test_another_zarr_python_and_codecs(tmp_path):
    run(tmp_path, """
        import sys, zarr, zarr.registry
        from importlib.metadata import entry_points
        before = sys.modules["zarr.abc.codec"]
        sys.modules["zarr.abc.codec"] = None
        points = [point for point in entry_points(group="zarr.codecs") if point.value.startswith("zarrc_hook")]
        assert len([point.load() for point in points]) == 19
    """)


def test_never_taken_over(monkeypatch):
    """What zarr-python has under a name stays, and what it matches."""
    registry = data_types.registry
    other = registry.contents["float16"]
    monkeypatch.setitem(registry.contents, "bfloat16", other)
    assert zarrc_hook.data_type.bfloat16 is other and zarrc_hook.data_type.int4 is data_types.CLASSES["int4"]
    data_types.register()
    assert registry.contents["bfloat16"] is other

    class Theirs:
        @classmethod
        def from_native_dtype(cls, dtype):
            if dtype != np.dtype(ml_dtypes.int4):
                raise ValueError("another")
            return "theirs"

    monkeypatch.setitem(registry.contents, "theirs", Theirs)
    with pytest.raises(ValueError):
        data_types.CLASSES["int4"].from_native_dtype(np.dtype(ml_dtypes.int4))
    assert data_types.CLASSES["int2"].from_native_dtype(np.dtype(ml_dtypes.int2)).item_size == 1

    class Others(dict):
        """A registry that has not loaded the entry points."""

        def __init__(self, cls, value="theirs:Codec"):
            self.lazy_load_list = [types.SimpleNamespace(value=value, load=lambda: cls)]

    registries = codecs._find_registry()
    monkeypatch.setitem(registries, "packbits", Others(Theirs))
    assert codecs.choose.Packbits is Theirs
    codecs.register()
    assert registries["packbits"] == {}
    monkeypatch.setitem(registries, "packbits", Others(None, "zarrc_hook.codecs:choose.Packbits"))
    assert codecs.choose.Packbits is codecs.CLASSES["Packbits"]
    monkeypatch.setitem(registries, "snappy", {"theirs.Snappy": Theirs})
    assert codecs.choose.Snappy is Theirs
    codecs.register()
    assert registries["snappy"] == {"theirs.Snappy": Theirs}
    with pytest.raises(AttributeError):
        codecs.choose.nonsense
