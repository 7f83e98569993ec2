"""import and create: every kind of input, and the failures that must change nothing."""
import io
import json
import re
import signal
import subprocess
import time

import numpy as np
import pytest
import zarr

from conftest import PROGRAM, peak
from test_cat import TYPES, sample


def npy(data, version=None):
    out = io.BytesIO()
    np.lib.format.write_array(out, data, version=version)
    return out.getvalue()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("endian", ["<", ">"])
def test_npy(zarrc, tmp_path, rng, dtype, order, endian):
    data = sample(dtype, (5, 4, 3), rng)
    wide = data.astype(data.dtype.newbyteorder(endian), order=order)
    (tmp_path / "a.npy").write_bytes(npy(wide))
    zarrc("import", tmp_path / "a.npy", tmp_path / "x.zarr/a", "--chunks=2,3,2", "-q")
    zarrc("import", "-", tmp_path / "x.zarr/b", "--chunks=2,3,2", input=npy(wide))
    for name in "ab":
        if data.dtype.kind == "V":  # zarr-python has no r24
            assert zarrc("cat", "-Fraw", tmp_path / "x.zarr" / name).out == data.tobytes()
            continue
        read = zarr.open_array(tmp_path / "x.zarr" / name)
        assert read.chunks == (2, 3, 2)
        assert read.dtype == data.dtype
        assert read[...].tobytes() == data.tobytes()


STRUCT = json.dumps({"name": "struct", "configuration": {"fields": [
    {"name": "a", "data_type": "int16"}, {"name": "b", "data_type": "float8_e4m3"},
    {"name": "in", "data_type": {"name": "struct", "configuration": {"fields": [
        {"name": "n", "data_type": "int4"}, {"name": "z", "data_type": "complex_bfloat16"}]}}}]}})


PAIR = ('{"name": "struct", "configuration": {"fields": ['
        '{"name": "x", "data_type": "int16"}, {"name": "n", "data_type": "%s"}]}}')


@pytest.mark.parametrize("dtype, values", [
    ("bfloat16", '[1.5, "NaN", -8.5]'), ("float8_e5m2", '[1.5, "Infinity", -2.0]'), ("float6_e3m2fn", "[28.0, 0.25, -1.0]"),
    ("float4_e2m1fn", "[6.0, 0.5, -1.0]"), ("int4", "[-8, 7, 0]"), ("uint2", "[3, 0, 1]"),
    ("complex_float16", '[[1.5,2.0], [3.0,"NaN"], [0.0,0.0]]'), ("optional[int16]", "[[5], null, [-1]]"),
    ("optional[optional[uint4]]", "[[[5]], null, [null]]"),
    (STRUCT, '[{"a":1,"b":1.5,"in":{"n":-8,"z":[1.0,2.0]}}, {"a":0,"b":"NaN","in":{"n":7,"z":[0.0,0.0]}}, '
             '{"a":-1,"b":-2.0,"in":{"n":0,"z":[0.0,"Infinity"]}}]')])
def test_npy_of_what_numpy_lacks(zarrc, tmp_path, dtype, values):
    """A type that NumPy lacks is exported as opaque bytes, and imported again into an array of the type."""
    a, b, c, file = (tmp_path / name for name in ("a", "b", "c", "a.npy"))
    zarrc("import", "--format=json", "--dtype", dtype, "-", a, input=values.encode())
    zarrc("export", a, file)
    zarrc("create", "--like", a, b)
    zarrc("import", file, f"{b}[...]")
    zarrc("import", "--format=npy", "--dtype", dtype, file, c)
    assert zarrc("diff", a, b).out == zarrc("diff", a, c).out == b""
    assert zarrc("cat", "--format=json", c).text.split() == values.split()
    zarrc("append", b, file)
    assert zarrc("cat", "--format=json", f"{b}[3:]").text.split() == values.split()
    zarrc("import", "--format=npy", "--dtype=float64", file, tmp_path / "d", code=2)
    zarrc("create", "--shape=3", "--dtype=float32", tmp_path / "e")
    zarrc("import", file, f"{tmp_path / 'e'}[...]", code=2)


@pytest.mark.parametrize("dtype, bad", [("int4", 8), ("int4", 15), ("uint2", 4)])
def test_npy_of_integers_too_large(zarrc, tmp_path, dtype, bad):
    values = np.array([1, bad], "i1" if dtype[0] == "i" else "u1")
    zarrc("create", "--shape=2", "--dtype", dtype, tmp_path / "a")
    for command in (["import", "-", f"{tmp_path / 'a'}[...]"], ["append", tmp_path / "a", "-"]):
        refused = zarrc(*command, input=npy(values), code=None)
        assert refused.code and re.search(f"(is no|not a valid) {dtype}", refused.err)  # the library, or the program
        assert zarrc("cat", "--format=json", tmp_path / "a").text == "[0, 0]\n"
    zarrc("import", "-", f"{tmp_path / 'a'}[...]", input=npy(values // 4))
    zarrc("create", "--shape=2", f"--dtype={PAIR % dtype}", tmp_path / "b")
    pair = np.array([(0, 1), (0, bad)], [("x", "i2"), ("n", values.dtype)])
    refused = zarrc("import", "-", f"{tmp_path / 'b'}[...]", input=npy(pair), code=None)
    assert refused.code and dtype in refused.err
    assert zarrc("cat", "--field=n", "--format=json", tmp_path / "b").text == "[0, 0]\n"


@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2", "float8_e4m3b11fnuz", "int4", "float6_e2m3fn"])
def test_npy_of_ml_dtypes(zarrc, tmp_path, name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.array([1, -3, 2], getattr(ml_dtypes, name))
    np.save(tmp_path / "a.npy", values)
    zarrc("import", "--format=npy", "--dtype", name, tmp_path / "a.npy", tmp_path / "x")
    read = json.loads(zarrc("cat", "--format=json", tmp_path / "x").out)
    assert read == values.astype("f4").tolist()


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_npy_versions(zarrc, tmp_path, version):
    data = np.arange(6.0).reshape(2, 3)
    zarrc("import", "-", tmp_path / "x", input=npy(data, version))
    assert (zarr.open_array(tmp_path / "x")[...] == data).all()


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,)])
def test_shapes(zarrc, tmp_path, shape):
    data = np.ones(shape, "i2")
    zarrc("import", "-", tmp_path / "x", input=npy(data))
    assert (zarr.open_array(tmp_path / "x")[...] == data).all()
    assert np.load(io.BytesIO(zarrc("cat", "-Fnpy", tmp_path / "x").out)).shape == shape


def test_raw(zarrc, tmp_path):
    data = np.arange(12, dtype=">i2").reshape(3, 4)
    raw = b"head" + data.tobytes()
    (tmp_path / "raw").write_bytes(raw)
    common = ["--dtype=>i2", "--shape=3,4", "--offset=4"]
    zarrc("import", tmp_path / "raw", tmp_path / "a", *common)
    zarrc("import", "-", tmp_path / "b", *common, input=raw)
    zarrc("import", "-", tmp_path / "c", "-t", "int16", "--byte-order=big", "--shape=3,4",
          input=data.tobytes())
    zarrc("import", "-", tmp_path / "d", "-t", "int16", "--byte-order=big", "--shape=3,4", "--order=F",
          input=data.tobytes(order="F"))
    for name in "abcd":
        assert (zarr.open_array(tmp_path / name)[...] == data).all()


def test_region(zarrc, tmp_path):
    a = zarr.create_array(tmp_path / "a", shape=(4, 6), chunks=(2, 4), dtype="i4", fill_value=-1)
    expected = np.full((4, 6), -1)
    zarrc("import", "-", f"{tmp_path}/a[1:3,::2]", input=npy(np.arange(6, dtype="i4").reshape(2, 3)))
    expected[1:3, ::2] = np.arange(6).reshape(2, 3)
    zarrc("import", "-", f"{tmp_path}/a[3]", input=npy(np.arange(6, dtype="i4")))
    expected[3] = np.arange(6)
    zarrc("import", "-", f"{tmp_path}/a[0,:2]", "--format=raw", input=bytes(range(8)))
    expected[0, :2] = np.frombuffer(bytes(range(8)), "<i4")
    assert (a[...] == expected).all()
    zarrc("import", "-", f"{tmp_path}/a[...]", input=npy(expected.astype("i4") + 1))
    assert (a[...] == expected + 1).all()


def test_region_refusals(zarrc, tmp_path):
    a = zarr.create_array(tmp_path / "a", shape=(4, 6), chunks=(2, 4), dtype="i4")
    wrong = npy(np.zeros(5, "i4"))
    assert "has shape (5,), the region has (6,)" in zarrc("import", "-", f"{tmp_path}/a[0]",
                                                          input=wrong, code=2).err
    zarrc("import", "-", f"{tmp_path}/a[0]", input=npy(np.zeros(6, "f4")), code=None)
    assert "there is no array" in zarrc("import", "-", f"{tmp_path}/b[0]", input=wrong, code=3).err
    assert (a[...] == 0).all() and not (tmp_path / "b").exists()


def test_existing(zarrc, tmp_path):
    zarr.save_array(tmp_path / "a", np.arange(3))
    other = npy(np.arange(4.0))
    assert "already exists" in zarrc("import", "-", tmp_path / "a", input=other, code=5).err
    assert zarr.open_array(tmp_path / "a").shape == (3,)
    zarrc("import", "--force", "-", tmp_path / "a", input=other)
    assert (zarr.open_array(tmp_path / "a")[...] == np.arange(4.0)).all()
    zarr.open_group(tmp_path / "g", mode="w").create_array("x", shape=(1,), dtype="i1")
    zarrc("import", "--force", "-", tmp_path / "g", input=other, code=5)
    assert zarr.open_group(tmp_path / "g")["x"].shape == (1,)


@pytest.mark.parametrize("data, code", [
    (b"", 4), (b"not a numpy file", 4), (npy(np.arange(5))[:-1], 4), (npy(np.arange(5))[:60], 4),
    (npy(np.arange(5)) + b"x", 2),
    (b"\x93NUMPY\x09\x00" + npy(np.arange(5))[8:], 6),
    (b"\x93NUMPY\x02\x00\xff\xff\xff\xff", 4),
    (npy(np.arange(5)).replace(b"(5,)", b"(9223372036854775807,)"), None),
    (npy(np.arange(5)).replace(b"'<i8'", b"'|O' "), 6),
    (npy(np.arange(5)).replace(b"False", b"maybe"), 4),
])
def test_wrong_files(zarrc, tmp_path, data, code):
    result = zarrc("import", "-", tmp_path / "x.zarr/a", input=data, code=code)
    assert result.code != 0 and result.err.startswith("zarrc: ")
    assert not (tmp_path / "x.zarr/a").exists()


def test_short_raw_file(zarrc, tmp_path):
    (tmp_path / "raw").write_bytes(bytes(15))
    err = zarrc("import", tmp_path / "raw", tmp_path / "a", "-ti4", "--shape=4", code=2).err
    assert "holds 15 bytes of elements, not 16" in err
    assert not (tmp_path / "a").exists()


def test_large_import_in_little_memory(tmp_path, rng):
    data = rng.integers(0, 2**32, (4096, 8192), dtype="u4")  # 128 MiB
    np.save(tmp_path / "a.npy", data)
    for source, options in [("a.npy", ["--chunks=512,1024"]), ("a.npy", ["--chunks=4096,64"])]:
        target = tmp_path / "x"
        used = peak("import", "--force", "--codec=none", "--mem=16M", "-j2", *options,
                    tmp_path / source, target)
        assert used < 48 * 1024
        assert (zarr.open_array(target)[...] == data).all()


def test_fortran_file_larger_than_the_buffer(zarrc, tmp_path, rng):
    data = np.asfortranarray(rng.integers(0, 1000, (300, 200, 50), dtype="i4"))
    np.save(tmp_path / "a.npy", data)
    zarrc("import", tmp_path / "a.npy", tmp_path / "x", "--mem=2M", "--chunks=64,64,16")
    assert (zarr.open_array(tmp_path / "x")[...] == data).all()
    zarrc("import", "-", tmp_path / "y", "--mem=2M", "--chunks=64,64,16", input=npy(data))
    assert (zarr.open_array(tmp_path / "y")[...] == data).all()


# ---- create


def test_create_options(zarrc, tmp_path):
    zarrc("create", tmp_path / "a", "--shape=100,200", "--dtype=float32", "--chunks=10,20",
          "--shards=50,100", "--codec=blosc:cname=lz4,clevel=7,shuffle=bitshuffle", "--codec=crc32c",
          "--fill=\"NaN\"", "--dims=time,", "--attributes={\"units\": \"K\"}", "--index-at-start")
    a = zarr.open_array(tmp_path / "a")
    assert a.shape == (100, 200) and a.chunks == (10, 20) and a.shards == (50, 100)
    assert np.isnan(a.fill_value) and a.metadata.dimension_names == ("time", None)
    assert dict(a.attrs) == {"units": "K"}
    document = json.loads((tmp_path / "a/zarr.json").read_text())
    sharding = document["codecs"][0]["configuration"]
    assert sharding["index_location"] == "start"
    assert [c["name"] for c in sharding["codecs"]] == ["bytes", "blosc", "crc32c"]
    assert sharding["codecs"][1]["configuration"]["shuffle"] == "bitshuffle"


@pytest.mark.parametrize("codec, name, configuration", [
    ("zstd:5", "zstd", {"level": 5, "checksum": False}), ("gzip:7", "gzip", {"level": 7}),
    ("zstd:level=3,checksum=true", "zstd", {"level": 3, "checksum": True}),
    ('{"name": "gzip", "configuration": {"level": 2}}', "gzip", {"level": 2}),
    ('[{"name": "zstd", "configuration": {"level": 1}}]', "zstd", {"level": 1, "checksum": False}),
])
def test_codec_spellings(zarrc, tmp_path, codec, name, configuration):
    zarrc("create", tmp_path / "a", "--shape=8", "--dtype=i4", "--codec", codec)
    last = zarrc("info", "--json", tmp_path / "a").json["codecs"][-1]
    assert last == {"name": name, "configuration": configuration}
    zarr.open_array(tmp_path / "a")[...] = 1


def test_no_codec_and_transpose(zarrc, tmp_path):
    zarrc("create", tmp_path / "n", "--shape=8", "--dtype=i4", "--codec=none")
    assert [c["name"] for c in zarrc("info", "--json", tmp_path / "n").json["codecs"]] == ["bytes"]
    zarrc("create", tmp_path / "t", "--shape=8,9,10", "--dtype=i4", "--codec=transpose:2,0,1",
          "--codec=bytes:big", "--codec=zstd")
    codecs = zarrc("info", "--json", tmp_path / "t").json["codecs"]
    assert codecs[0]["configuration"]["order"] == [2, 0, 1]
    assert codecs[1]["configuration"]["endian"] == "big"


def test_create_v2(zarrc, tmp_path):
    zarrc("create", tmp_path / "x.zarr/a", "--zarr-format=2", "--shape=10,10", "--dtype=>i4",
          "--codec=shuffle:4", "--codec=zlib:6", "--separator=/", "--order=F", "--fill=null")
    a = zarr.open_array(tmp_path / "x.zarr/a", zarr_format=2)
    document = json.loads((tmp_path / "x.zarr/a/.zarray").read_text())
    assert document["compressor"] == {"id": "zlib", "level": 6}
    assert document["filters"] == [{"id": "shuffle", "elementsize": 4}]
    assert document["dtype"] == ">i4" and document["order"] == "F"
    assert document["fill_value"] is None
    a[...] = np.arange(100).reshape(10, 10)
    out = zarrc("cat", "-Fraw", tmp_path / "x.zarr/a").out
    assert out == np.arange(100, dtype="<i4").tobytes()
    zarrc("create", tmp_path / "x.zarr/n", "--zarr-format=2", "--shape=10", "--dtype=i4", "--codec=none")
    assert json.loads((tmp_path / "x.zarr/n/.zarray").read_text())["compressor"] is None


def test_like(zarrc, tmp_path):
    made = zarr.create_array(tmp_path / "x.zarr/m", shape=(100, 100), chunks=(10, 10),
                             shards=(50, 50), dtype="u2", fill_value=9, dimension_names=["y", "x"],
                             attributes={"a": 1}, compressors=zarr.codecs.GzipCodec(level=3))
    zarrc("create", tmp_path / "x.zarr/same", "--like", tmp_path / "x.zarr/m")
    same = zarr.open_array(tmp_path / "x.zarr/same")
    assert same.metadata == made.metadata
    zarrc("create", tmp_path / "x.zarr/v2", "--like", tmp_path / "x.zarr/m", "--zarr-format=2",
          "--shards=none", "--shape=7,8")
    v2 = zarr.open_array(tmp_path / "x.zarr/v2")
    assert (v2.metadata.zarr_format, v2.shape, v2.chunks) == (2, (7, 8), (10, 10))
    assert v2.metadata.compressor.get_config()["id"] == "gzip" and v2.fill_value == 9
    zarrc("create", tmp_path / "x.zarr/back", "--like", tmp_path / "x.zarr/v2", "--zarr-format=3")
    back = zarr.open_array(tmp_path / "x.zarr/back")
    assert back.metadata.zarr_format == 3 and back.compressors[0].to_dict()["name"] == "gzip"
    refused = zarrc("create", tmp_path / "x.zarr/no", "--like", tmp_path / "x.zarr/m", "--zarr-format=2",
                    code=None)
    assert refused.code and "v2 arrays have no shards" in refused.err


def chain(zarrc, path):
    return zarrc("info", "--json", path).json["codecs"]


def test_like_codecs_in_front_of_shards(zarrc, tmp_path):
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    scale = {"name": "scale_offset", "configuration": {"offset": 1.5, "scale": 2.0}}
    shards = {"name": "sharding_indexed", "configuration": {
        "chunk_shape": [2, 2], "codecs": [little], "index_codecs": [little, {"name": "crc32c"}],
        "index_location": "start"}}
    model, copy = tmp_path / "m", [tmp_path / f"c{i}" for i in range(6)]
    zarrc("create", model, "--shape=8,8", "--chunks=4,4", "--dtype=f8", "--codec", json.dumps([scale, shards]))
    zarrc("create", copy[0], "--like", model)
    zarrc("reencode", model, copy[1])
    for path in copy[:2]:
        assert chain(zarrc, path) == chain(zarrc, model) == [scale, shards]
        assert zarrc("info", "--json", path).json["shards"] == [4, 4]
    zarrc("create", copy[2], "--like", model, "--shards=none")
    assert chain(zarrc, copy[2]) == [scale, little]
    zarrc("create", copy[3], "--like", model, "--chunks=1,2")
    made, = chain(zarrc, copy[3])
    assert made["configuration"]["chunk_shape"] == [1, 2] and made["configuration"]["index_location"] == "start"
    assert made["configuration"]["codecs"] == [scale, little]
    zarrc("create", copy[4], "--like", model, "--codec=gzip:3")
    made, = chain(zarrc, copy[4])
    assert [c["name"] for c in made["configuration"]["codecs"]] == ["bytes", "gzip"]


@pytest.mark.parametrize("keys", [
    {"name": "suffix", "configuration": {"suffix": ".x", "base_encoding": {
        "name": "v2", "configuration": {"separator": "."}}}},
    {"name": "zarrs.default_suffix", "configuration": {"separator": ".", "suffix": ".tif"}},
    {"name": "v2", "configuration": {"separator": "/"}}, {"name": "v2"}, "v2",
    {"name": "default", "configuration": {"separator": "."}}])
def test_like_keys(zarrc, tmp_path, keys):
    document = {"zarr_format": 3, "node_type": "array", "shape": [4, 4], "data_type": "int16",
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 2]}},
                "chunk_key_encoding": keys, "fill_value": 0,
                "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}
    if keys == {"name": "v2"} or keys == "v2":
        keys = {"name": "v2", "configuration": {"separator": "."}}
    (tmp_path / "m").mkdir()
    (tmp_path / "m/zarr.json").write_text(json.dumps(document))
    zarrc("create", tmp_path / "c", "--like", tmp_path / "m")
    assert zarrc("info", "--json", tmp_path / "c").json["metadata"]["chunk_key_encoding"] == keys


def test_like_big_endian_fortran_v2(zarrc, tmp_path):
    zarr.create_array(tmp_path / "m", shape=(4, 4), chunks=(2, 2), dtype=">i4", order="F",
                      zarr_format=2)
    zarrc("create", tmp_path / "two", "--like", tmp_path / "m")
    document = json.loads((tmp_path / "two/.zarray").read_text())
    assert document["dtype"] == ">i4" and document["order"] == "F"
    zarrc("create", tmp_path / "three", "--like", tmp_path / "m", "--zarr-format=3")
    names = [c["name"] for c in zarrc("info", "--json", tmp_path / "three").json["codecs"]]
    assert names.count("transpose") == 1
    assert zarrc("info", "--json", tmp_path / "three").json["codecs"][1]["configuration"] == {
        "endian": "big"}


def test_document(zarrc, tmp_path):
    zarr.create_array(tmp_path / "m", shape=(4, 4), chunks=(2, 2), dtype="i4")
    document = (tmp_path / "m/zarr.json").read_bytes()
    zarrc("create", tmp_path / "a", "--document=-", input=document)
    zarrc("create", tmp_path / "b", "--document", tmp_path / "m/zarr.json")
    assert json.loads((tmp_path / "a/zarr.json").read_text()) == json.loads(
        (tmp_path / "b/zarr.json").read_text())
    assert zarr.open_array(tmp_path / "a").metadata == zarr.open_array(tmp_path / "m").metadata
    zarrc("create", tmp_path / "c", "--document=-", input=b"{", code=None)
    assert not (tmp_path / "c").exists()


def test_existing_node(zarrc, tmp_path):
    make = ["create", tmp_path / "a", "--shape=4", "--dtype=i4"]
    zarrc(*make)
    assert "already exists" in zarrc(*make, code=5).err
    zarrc(*make, "--if-missing")
    refused = zarrc("create", tmp_path / "a", "--shape=5", "--dtype=i4", "--if-missing", code=5)
    assert "shape" in refused.err
    zarrc("resize", tmp_path / "a", "9")
    zarrc(*make, "--if-missing")
    zarrc("create", tmp_path / "a", "--shape=5", "--dtype=i4", "--force")
    assert zarr.open_array(tmp_path / "a").shape == (5,)
    zarrc("create", "--group", tmp_path / "g")
    zarrc("create", "--group", tmp_path / "g", code=5)
    zarrc("create", "--group", tmp_path / "g", "--if-missing")
    assert "is a group" in zarrc("create", tmp_path / "g", "--shape=1", "--dtype=i1", "--force",
                                 code=5).err


@pytest.mark.parametrize("options, text", [
    (["--shape=4"], "option --dtype is missing"), (["--dtype=i4"], "option --shape is missing"),
    (["--shape=4", "--dtype=float33"], "float33"),
    (["--shape=4", "--dtype=i4", "--chunks=2,2"], "2 lengths for 1 dimensions"),
    (["--shape=4", "--dtype=i4", "--dims=a,b"], "2 names for 1 dimensions"),
    (["--shape=4", "--dtype=i4", "--codec=nonsense"], "nonsense"),
    (["--shape=4", "--dtype=i4", "--codec=crc32c:5"], "what is"),
    (["--shape=4", "--dtype=i4", "--chunks=3", "--shards=4"], ""),
    (["--shape=4", "--dtype=i4", "--fill=x"], ""),
    (["--shape=4", "--dtype=i4", "--attributes=[]"], ""),
])
def test_refused(zarrc, tmp_path, options, text):
    result = zarrc("create", tmp_path / "x.zarr/a", *options, code=None)
    assert result.code in (2, 6) and text in result.err
    assert not (tmp_path / "x.zarr").exists()


def test_interrupted_import_is_removed(tmp_path):
    process = subprocess.Popen([PROGRAM, "import", "-t", "u1", "--shape=1000000000", "-",
                                str(tmp_path / "x.zarr/a")], stdin=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    process.stdin.write(bytes(100))
    process.stdin.flush()
    for _ in range(200):
        if (tmp_path / "x.zarr/a/zarr.json").exists():
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    err = process.stderr.read()
    process.stdin.close()
    assert process.wait(20) == 130, err
    assert not (tmp_path / "x.zarr/a").exists()


# ---- an array like another one

def test_like(zarrc, tmp_path):
    zarrc("create", "x.zarr/m", "--shape=4,2", "-t", "float32", "--chunks=2,2", "--fill=7", "--dims=y,x",
          "-a", '{"u": 1}', "-C", "gzip:5", cwd=tmp_path)
    data = np.arange(8, dtype="<f4").reshape(4, 2)
    data.tofile(tmp_path / "d.raw")
    np.save(tmp_path / "d.npy", np.vstack([data, data]))
    np.save(tmp_path / "i.npy", data.astype("i8"))
    (tmp_path / "d.json").write_text("[[1, 2], [3, 4]]")
    model = zarrc("info", "--json", "x.zarr/m", cwd=tmp_path).json["metadata"]
    for file, shape, dtype in [("d.raw", [4, 2], "float32"), ("d.npy", [8, 2], "float32"),
                               ("i.npy", [4, 2], "int64"), ("d.json", [2, 2], "float32")]:
        name = f"x.zarr/{file.replace('.', '_')}"
        zarrc("import", "--like=x.zarr/m", file, name, cwd=tmp_path)
        made = zarrc("info", "--json", name, cwd=tmp_path).json["metadata"]
        assert made["shape"] == shape and made["data_type"] == dtype
        for member in ("chunk_grid", "codecs", "dimension_names", "attributes", "fill_value"):
            if dtype == "float32":
                assert made[member] == model[member], member
    assert np.array_equal(zarr.open_array(str(tmp_path / "x.zarr/d_raw"))[...], data)
    zarrc("import", "--like=x.zarr/m", "--chunks=4,1", "d.raw", "x.zarr/c", cwd=tmp_path)
    assert zarrc("info", "--json", "x.zarr/c", cwd=tmp_path).json["chunks"] == [4, 1]
    np.save(tmp_path / "flat.npy", data.ravel())
    assert "2" in zarrc("import", "--like=x.zarr/m", "flat.npy", "x.zarr/no", cwd=tmp_path, code=2).err
    zarrc("import", "--like=x.zarr/m", "d.raw", "x.zarr/m[:]", cwd=tmp_path, code=2)
    assert not (tmp_path / "x.zarr/no").exists()


def test_npy_fields_with_the_names_of_keys(zarrc, tmp_path):
    dtype = [("shape", "<i4"), ("descr", "<f8"), ("fortran_order", "u1"), ("a': (9,", "<i2")]
    data = np.array([(1, 2.5, 3, 4), (5, 6.5, 7, 8)], dtype)
    np.save(tmp_path / "a.npy", data)
    zarrc("import", tmp_path / "a.npy", tmp_path / "a")
    zarrc("export", tmp_path / "a", tmp_path / "b.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), data)


def test_offset_of_an_endless_stream_can_be_interrupted(tmp_path):
    with open("/dev/zero", "rb") as zeros:
        process = subprocess.Popen([PROGRAM, "import", "-t", "u1", "--shape=4", f"--offset={10 ** 18}", "-", tmp_path / "a"],
                                   stdin=zeros, stderr=subprocess.PIPE)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        try:
            assert b"interrupted" in process.communicate(timeout=10)[1] and process.returncode == 130
        finally:
            process.kill()
