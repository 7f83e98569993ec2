"""Arrays and files of other programs: metadata as these programs write it, by hand."""
import json

import numpy as np
import pytest
import zarr

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


def array_v3(folder, objects=None, **changes):
    document = {"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "int16", "fill_value": 0,
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
                "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "codecs": [LITTLE]}
    return array(folder, "zarr.json", {**document, **changes}, objects)


def array_v2(folder, objects=None, **changes):
    document = {"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "<i2", "fill_value": 0, "compressor": None,
                "filters": None, "order": "C"}
    return array(folder, ".zarray", {**document, **changes}, objects)


def array(folder, name, document, objects):
    folder.mkdir(parents=True)
    (folder / name).write_text(json.dumps(document))
    for key, value in (objects or {}).items():
        (folder / key).parent.mkdir(parents=True, exist_ok=True)
        (folder / key).write_bytes(value)
    return folder


# ---- opaque bytes ------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["import", "create"])
def test_opaque_bytes(zarrc, tmp_path, command):
    """V<n> has the name and the fill value that zarr-python reads; what is opened as r<n> stays r<n>."""
    data, path = np.array([b"abc", b"\0\0d"], "V3"), tmp_path / "a.zarr"
    np.save(tmp_path / "a.npy", data)
    zarrc(*(("import", tmp_path / "a.npy", path) if command == "import" else ("create", path, "--shape=2", "--dtype=V3")))
    document = json.loads((path / "zarr.json").read_text())
    assert document["data_type"] == {"name": "raw_bytes", "configuration": {"length_bytes": 3}}
    assert document["fill_value"] == "AAAA"
    opened = zarr.open_array(path, mode="r+")
    if command == "create":
        opened[:] = data
    assert opened[:].tobytes() == data.tobytes()
    zarrc("export", path, tmp_path / "b.npy")
    assert np.load(tmp_path / "b.npy").tobytes() == data.tobytes()
    old = array_v3(tmp_path / "r.zarr", data_type="r24", fill_value=[1, 2, 3])
    zarrc("attrs", "set", old, "a", "1")
    zarrc("resize", old, "8")
    document = json.loads((old / "zarr.json").read_text())
    assert (document["data_type"], document["fill_value"]) == ("r24", [1, 2, 3])


# ---- keys of chunks ----------------------------------------------------------------------

V3_KEYS = {"name": "default", "configuration": {"separator": "."}}
OTHER_KEYS = [  # the array, keys of its chunks as they are stored, and as the metadata says
    (lambda to, keys: array_v2(to, keys, shape=[4, 2], chunks=[2, 2], dimension_separator="."), "{}/0", "{}.0"),
    (lambda to, keys: array_v2(to, keys, shape=[4, 2], chunks=[2, 2], dimension_separator="/"), "{}.0", "{}/0"),
    (lambda to, keys: array_v3(to, keys, shape=[8]), "c.{}", "c/{}"),
    (lambda to, keys: array_v3(to, keys, shape=[8], chunk_key_encoding=V3_KEYS), "c/{}", "c.{}")]


@pytest.mark.parametrize("make, stored, expected", OTHER_KEYS)
def test_other_separator(zarrc, tmp_path, make, stored, expected):
    """A read that would give fill values only, because the metadata names the wrong separator, fails."""
    path = make(tmp_path / "a", {"README": b"x", stored.format(1): bytes([1, 0] * 4)})
    text = f'"{stored.format(1)}" is stored where "{expected.format(1)}" is expected'
    for command in (["cat", path], ["cat", f"{path}[:1]"], ["export", path, tmp_path / "a.npy"], ["info", "--stats", path],
                    ["reencode", path, tmp_path / "b"], ["diff", path, path], ["ls", "--stored", path]):
        failed = zarrc(*command, code=None)
        assert failed.code == 4 and text in failed.err + failed.text, command
    found = zarrc("verify", "--json", path, code=1).json
    assert text in [f for f in found["faults"] if f["severity"] == "error"][0]["reason"] and found["valid"] is False


@pytest.mark.parametrize("make, stored, expected", OTHER_KEYS)
def test_both_separators(zarrc, tmp_path, make, stored, expected):
    """Keys with the other separator harm nothing where the array has the chunk. A chunk outside of the grid is no chunk."""
    one, two = bytes([1, 0] * 4), bytes([2, 0] * 4)
    path = make(tmp_path / "a", {stored.format(1): two, expected.format(1): one})
    for selection, value in (("[:1]", "0"), ("", "0 0 0 0 1 1 1 1")):
        assert zarrc("cat", f"{path}{selection}").text.split()[-1:] == value.split()[-1:]
    outside = make(tmp_path / "b", {stored.format(7): two})
    assert set(zarrc("cat", outside).text.split()) == {"0"}
    for valid in (path, outside):
        assert zarrc("verify", "--json", valid).json["valid"]


# ---- codecs and data types ---------------------------------------------------------------


def test_codec_of_other_type(zarrc, tmp_path):
    """Such an array is not damaged: the exit code and the hint do not say so."""
    path = array_v3(tmp_path / "a.zarr", data_type="bytes", fill_value="", codecs=[{"name": "vlen-utf8"}])
    failed = zarrc("cat", path, code=6)
    assert "codec vlen-utf8 does not take data type variable_length_bytes, only string" in failed.err
    assert "interrupted" not in failed.err


def test_hint_of_damaged_chunks(zarrc, tmp_path):
    """Only bytes of a chunk can be what an interrupted write left."""
    hint = "An interrupted write or a damaged copy can be the cause"
    assert hint in zarrc("cat", array_v3(tmp_path / "a.zarr", {"c/0": b"1234567"}), code=4).err
    bad = array_v3(tmp_path / "b.zarr", shape=[-1])
    assert hint not in zarrc("cat", bad, code=4).err


# ---- GDAL --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "int16", "uint8", "complex64", "bool"])
def test_null_fill(zarrc, tmp_path, dtype):
    """GDAL 3.12 writes "fill_value": null into arrays without a nodata value."""
    codecs = [LITTLE] if np.dtype(dtype).itemsize > 1 else [{"name": "bytes"}]
    path = array_v3(tmp_path / "a.zarr", {"c/0": np.array([1, 1], dtype).tobytes()}, data_type=dtype, fill_value=None,
                    codecs=codecs, chunk_grid={"name": "regular", "configuration": {"chunk_shape": [2]}})
    done = zarrc("export", path, tmp_path / "a.npy")
    assert np.load(tmp_path / "a.npy").tolist() == np.array([1, 1, 0, 0], dtype).tolist()
    assert done.err.count("fill_value is null") == 1
    assert zarrc("verify", path).code == 0
    assert "fill_value" in zarrc("verify", "--strict", path, code=1).text
    zarrc("resize", path, "6")
    zarrc("export", "--force", path, tmp_path / "a.npy")
    assert np.load(tmp_path / "a.npy").tolist() == np.array([1, 1, 0, 0, 0, 0], dtype).tolist()


def test_null_fill_of_text(zarrc, tmp_path):
    path = array_v3(tmp_path / "a.zarr", data_type="string", fill_value=None, codecs=[{"name": "vlen-utf8"}])
    assert "fill_value" in zarrc("info", path, code=4).err


# ---- netCDF-C ----------------------------------------------------------------------------

DATA = np.arange(1000, 1012, dtype="<i4")


def shuffle(data):
    return np.frombuffer(data.tobytes(), "u1").reshape(-1, data.itemsize).T.tobytes()


def netcdf(root, mark=True, **filter_):
    """The mode "zarr": shuffle with elementsize 0, and a mark at the root only."""
    (root / "g").mkdir(parents=True)
    for folder in (root, root / "g"):
        (folder / ".zgroup").write_text('{"zarr_format": 2}')
    if mark:
        (root / ".zattrs").write_text('{"_NCProperties": "version=2,netcdf=4.10.0,nczarr=3.1.0"}')
    return array_v2(root / "g/v", {"0": shuffle(DATA)}, shape=[12], chunks=[12], dtype="<i4",
                    filters=[{"id": "shuffle", "elementsize": 0, **filter_}])


@pytest.mark.parametrize("alone", [False, True])
def test_shuffle_of_netcdf(zarrc, tmp_path, alone):
    path = netcdf(tmp_path / "x.zarr")
    node = f"{path}:/" if alone else path  # the store is the array: the mark is above it
    done = zarrc("export", node, tmp_path / "a.npy")
    assert (np.load(tmp_path / "a.npy") == DATA).all() and not done.err
    np.save(tmp_path / "b.npy", -DATA)
    zarrc("append", node, tmp_path / "b.npy")
    zarrc("attrs", "set", node, "a", "1")
    zarrc("export", "--force", node, tmp_path / "a.npy")
    assert (np.load(tmp_path / "a.npy") == np.concatenate([DATA, -DATA])).all()
    assert (path / "1").read_bytes() == shuffle(-DATA)
    if not alone:
        zarrc("migrate", tmp_path / "x.zarr")
    zarrc("export", "--force", node, tmp_path / "a.npy")
    assert (np.load(tmp_path / "a.npy") == np.concatenate([DATA, -DATA])).all()


@pytest.mark.parametrize("command", [["cp"], ["cp", "--force"], ["cp", "--resume"], ["mv"]], ids=str)
def test_shuffle_of_netcdf_out_of_its_hierarchy(zarrc, tmp_path, command):
    """A byte-for-byte copy would be read scrambled: it is refused before anything changes."""
    path, out = netcdf(tmp_path / "x.zarr"), tmp_path / "y.zarr"
    if "--force" in command:
        array_v2(out, {"0": b"12345678"})
    before = {at: at.read_bytes() for at in tmp_path.rglob("*") if at.is_file()}
    for node in (path, path.parent, f"{path}:/"):
        assert "/v: shuffle" in (error := zarrc(*command, node, out, code=6).err) or "/: shuffle" in error
        assert "_NCProperties" in error and "re-encode" in error
    assert {at: at.read_bytes() for at in tmp_path.rglob("*") if at.is_file()} == before
    array_v2(path.parent / "plain", {"0": b"12345678"})
    zarrc(*command, path.parent / "plain", out)
    assert (out / "0").read_bytes() == b"12345678"


@pytest.mark.parametrize("command", [["cp"], ["cp", "--resume"], ["mv"]], ids=str)
def test_shuffle_of_numcodecs_into_netcdf(zarrc, tmp_path, command):
    """The mark of the new hierarchy would change what elementsize 0 means."""
    path = netcdf(tmp_path / "x.zarr", mark=False)
    netcdf(tmp_path / "y.zarr")
    before = {at: at.read_bytes() for at in tmp_path.rglob("*") if at.is_file()}
    for node in (path, path.parent, tmp_path / "x.zarr", f"{path}:/"):
        error = zarrc(*command, node, tmp_path / "y.zarr/h", code=6).err
        assert "_NCProperties" in error and "re-encode" in error
    assert {at: at.read_bytes() for at in tmp_path.rglob("*") if at.is_file()} == before
    zarrc("reencode", path, tmp_path / "y.zarr/h")
    for node in (path, tmp_path / "y.zarr/h"):
        zarrc("export", "--force", node, tmp_path / f"{node.name}.npy")
    assert (tmp_path / "v.npy").read_bytes() == (tmp_path / "h.npy").read_bytes()
    array_v2(path.parent / "plain", {"0": b"12345678"})
    zarrc(*command, path.parent / "plain", tmp_path / "y.zarr/plain")
    assert (tmp_path / "y.zarr/plain/0").read_bytes() == b"12345678"


@pytest.mark.parametrize("command", ["cp", "mv"])
def test_shuffle_of_netcdf_with_its_mark(zarrc, tmp_path, command):
    """The whole hierarchy, inside of it, into another one of netCDF-C, and out of that one again."""
    path, _ = netcdf(tmp_path / "x.zarr"), netcdf(tmp_path / "z.zarr")
    inner = tmp_path / "z.zarr/inner"
    for source, target, array_ in ((path, tmp_path / "x.zarr/w", ""), (tmp_path / "x.zarr/w", tmp_path / "z.zarr/w", ""),
                                   (tmp_path / "z.zarr", tmp_path / "a.zarr", "w"), (tmp_path / "a.zarr", inner, "w"),
                                   (inner, tmp_path / "b.zarr", "w")):
        (tmp_path / "z.zarr").exists() or netcdf(tmp_path / "z.zarr")
        zarrc(command, source, target)
        done = zarrc("export", "--force", target / array_, tmp_path / "a.npy")
        assert (np.load(tmp_path / "a.npy") == DATA).all() and not done.err, target


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("command", ["reencode", "migrate"])
def test_shuffle_of_netcdf_written_anew(zarrc, tmp_path, command, alone):
    """The new document says the size, so it needs no mark."""
    path, out = netcdf(tmp_path / "x.zarr"), tmp_path / "y.zarr"
    if command == "reencode":
        zarrc("reencode", f"{path}:/" if alone else path, out)
        assert json.loads((out / ".zarray").read_text())["filters"][0]["elementsize"] == 4
    else:
        zarrc("migrate", "--remove-old", f"{path}:/" if alone else path)
        zarrc("cp", path, out)
    done = zarrc("export", out, tmp_path / "a.npy")
    assert (np.load(tmp_path / "a.npy") == DATA).all() and not done.err


@pytest.mark.parametrize("text", ["{", "[]", "\0"])
def test_shuffle_below_broken_attributes(zarrc, tmp_path, text):
    """What cannot be read above the array has no mark, and the array opens."""
    path = netcdf(tmp_path / "x.zarr")
    (tmp_path / "x.zarr/g/.zattrs").write_text(text)
    zarrc("export", path, tmp_path / "a.npy")
    assert (np.load(tmp_path / "a.npy") == DATA).all()


def test_shuffle_without_mark(zarrc, tmp_path):
    """numcodecs does not shuffle with 0. No mark tells which program wrote the array, so a warning does."""
    path = netcdf(tmp_path / "x.zarr", mark=False)
    done = zarrc("export", path, tmp_path / "a.npy")
    assert np.load(tmp_path / "a.npy").tobytes() == shuffle(DATA)
    assert done.err.count("shuffle has elementsize 0") == 1
    path = netcdf(tmp_path / "y.zarr", mark=False, elementsize=4)
    assert not zarrc("export", "--force", path, tmp_path / "a.npy").err
    assert (np.load(tmp_path / "a.npy") == DATA).all()


# ---- numcodecs.bitround ------------------------------------------------------------------


@pytest.mark.parametrize("options", [[], ["--zarr-format=2"], ["--zarr-format=3"], ["--shards=4"]], ids=str)
@pytest.mark.parametrize("source", [2, 3, "sharded"])
def test_rounded_integers(zarrc, tmp_path, source, options):
    """numcodecs cannot encode integers by this codec, and decoding changes nothing: a new array goes without it."""
    chunk, rounding = DATA[:4].tobytes(), {"name": "numcodecs.bitround", "configuration": {"keepbits": 3}}
    if source == 2:
        path = array_v2(tmp_path / "a.zarr", {"0": chunk}, dtype="<i4", filters=[{"id": "bitround", "keepbits": 3}])
    elif source == 3:
        path = array_v3(tmp_path / "a.zarr", {"c/0": chunk}, data_type="int32", codecs=[rounding, LITTLE])
    else:
        shard = {"name": "sharding_indexed", "configuration": {
            "chunk_shape": [2], "codecs": [rounding, LITTLE], "index_codecs": [LITTLE], "index_location": "end"}}
        index = np.array([0, 8, 8, 8], "<u8").tobytes()
        path = array_v3(tmp_path / "a.zarr", {"c/0": chunk + index}, data_type="int32", codecs=[shard])
    if "--zarr-format=2" in options and source == "sharded":
        options = [*options, "--shards=none"]
    if "--shards=4" in options and source == 2:
        options = [*options, "--zarr-format=3"]
    done = zarrc("reencode", path, tmp_path / "b.zarr", *options)
    assert "no codec bitround" in done.err
    zarrc("export", tmp_path / "b.zarr", tmp_path / "b.npy")
    assert (np.load(tmp_path / "b.npy") == DATA[:4]).all()


# ---- zarr-python 3.2.0 and 3.2.1 ---------------------------------------------------------


def test_mixed_grid(zarrc, tmp_path):
    """chunks=(2, (5, 10, 5)): a grid called regular that has lists of edges."""
    data = np.arange(120, dtype="<i2").reshape(6, 20)
    chunks = {f"c/{i}/{j}": data[2 * i:2 * i + 2, a:b].tobytes()
              for i in range(3) for j, (a, b) in enumerate(((0, 5), (5, 15), (15, 20)))}
    path = array_v3(tmp_path / "a.zarr", chunks, shape=[6, 20],
                    chunk_grid={"name": "regular", "configuration": {"chunk_shape": [2, [5, 10, 5]]}})
    zarrc("export", path, tmp_path / "a.npy")
    assert (np.load(tmp_path / "a.npy") == data).all()
    assert zarrc("info", "--json", path).json["chunk_grid"]["name"] == "rectilinear"
    assert "chunk_shape[1]" in zarrc("verify", "--strict", path, code=1).text
    zarrc("resize", path, "4,20")
    assert json.loads((path / "zarr.json").read_text())["chunk_grid"]["name"] == "rectilinear"
    zarrc("export", "--force", path, tmp_path / "a.npy")
    assert (np.load(tmp_path / "a.npy") == data[:4]).all()
    failed = zarrc("create", tmp_path / "b.zarr", "--shape=6,20", "--dtype=int16", "--chunks=2,0", code=2)
    assert failed.err
