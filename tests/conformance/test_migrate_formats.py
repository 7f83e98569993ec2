"""Metadata of the other format for the same chunks. zarr-python writes v2, the store is migrated,
zarr-python and we read it as v3, and it is migrated back. All reads must give the same elements."""
import base64
import json
import shutil

import numcodecs
import numpy as np
import pytest
import zarr

import peers
from zarrc_abi import NUMBER, ZarrcError
from zarrc_dict import STORE_GET, STORE_STAT, DictStore

SHAPE, CHUNKS = (7, 10), (3, 4)
DTYPES = ["?", "i1", "u1", "<i2", ">i2", "<i4", ">i4", "<u8", ">u8", "<f2", ">f2", "<f4", ">f4", "<f8",
          ">f8", "<c8", ">c16", "<M8[ns]", ">M8[us]", "<m8[s]", "S5", "<U4", ">U4", "V3",
          [("a", "<i4"), ("b", "<f8")], [("a", ">i4"), ("b", ">f8")], [("a", "u1"), ("b", "S3")]]
COMPRESSORS = [None, {"id": "zstd", "level": 1}, {"id": "zstd", "level": 3, "checksum": True},
               {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1},
               {"id": "blosc", "cname": "zstd", "clevel": 1, "shuffle": 2},
               {"id": "blosc", "cname": "lz4", "clevel": 1, "shuffle": -1},
               {"id": "zlib", "level": 1}, {"id": "gzip", "level": 1},
               {"id": "gzip", "level": -1}, {"id": "bz2", "level": 1},
               {"id": "lzma"}, {"id": "lz4"}, {"id": "shuffle", "elementsize": 4}, {"id": "crc32"},
               {"id": "adler32"}, {"id": "crc32c"}, {"id": "fletcher32"}, {"id": "jenkins_lookup3"}]


def elements(rng, dtype):
    if dtype.names:
        out = np.zeros(SHAPE, dtype)
        for name in dtype.names:
            out[name] = elements(rng, dtype[name])
        return out
    if dtype.kind == "V":
        return np.frombuffer(rng.bytes(70 * dtype.itemsize), dtype).reshape(SHAPE)
    if dtype.kind in "mM":
        return rng.integers(0, 1000, SHAPE).astype("i8").view(dtype.newbyteorder("=")).astype(dtype)
    if dtype.kind in "fc":
        return (rng.integers(0, 1000, SHAPE) / 8).astype(dtype)
    return rng.integers(0, 2 if dtype.kind == "b" else 100, SHAPE).astype(dtype)


def write_v2(path, data, dtype, order="C", filters=None, compressor=None, separator="."):
    array = zarr.create_array(
        path, shape=SHAPE, chunks=CHUNKS, dtype=dtype, zarr_format=2, order=order,
        filters=[numcodecs.get_codec(dict(f)) for f in filters] if filters else None,
        compressors=numcodecs.get_codec(dict(compressor)) if compressor else None,
        chunk_key_encoding={"name": "v2", "separator": separator})
    array[:6, :9] = data[:6, :9]  # some chunks are missing
    return array[:]


def same(a, b):
    if a.dtype.kind in "OT":
        return a.astype(object).tolist() == b.astype(object).tolist()
    return a.dtype.newbyteorder("=") == b.dtype.newbyteorder("=") and \
        a.astype(b.dtype).tobytes() == b.tobytes()


def ours(context, path, want):
    with context.store(str(path)) as store, store.open() as array:
        return same(array.read(want.dtype.newbyteorder("=")), want)


def migrate(context, path, **options):
    with context.store(str(path)) as store:
        return store.migrate(**options)


def check_round(context, path, want, by_us=True):
    """Migrates zarr-python's v2 to v3, removes the v2 documents, migrates back, removes the v3 documents."""
    before = {p: p.read_bytes() for p in path.rglob("*") if p.is_file() and p.name[0].isdigit()}
    migrate(context, path, remove=True)
    assert not (path / ".zarray").exists() and not (path / ".zattrs").exists()
    assert same(zarr.open_array(path, mode="r", zarr_format=3)[:], want)
    if by_us:
        assert ours(context, path, want)
    migrate(context, path, zarr_format=2, remove=True)
    assert not (path / "zarr.json").exists()
    assert same(zarr.open_array(path, mode="r", zarr_format=2)[:], want)
    if by_us:
        assert ours(context, path, want)
    assert before == {p: p.read_bytes() for p in before}  # no chunk was touched


def newer(dtypes, is_new, mark):
    """The data types, with `mark` on those that need a newer zarr-python."""
    return [pytest.param(t, marks=mark) if is_new(t) else t for t in dtypes]


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", newer(DTYPES, lambda t: isinstance(t, list), peers.needs_structs), ids=str)
def test_data_types(context, rng, tmp_path, dtype, order):
    dtype = np.dtype(dtype)
    for i, compressor in enumerate(COMPRESSORS[:4]):
        path = tmp_path / str(i)
        want = write_v2(path, elements(rng, dtype), dtype, order, None, compressor, "./"[i % 2])
        check_round(context, path, want, by_us=not dtype.names)


@pytest.mark.parametrize("compressor", COMPRESSORS, ids=str)
def test_compressors(context, rng, tmp_path, compressor):
    for i, dtype in enumerate(("<i4", ">f8")):
        dtype, path = np.dtype(dtype), tmp_path / str(i)
        check_round(context, path, write_v2(path, elements(rng, dtype), dtype, compressor=compressor))


SWAPS = peers.needs_zarr_3_3("mixes byte orders up in front of filters")


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", newer(["<i4", ">i4", "<f4", ">f4"], lambda t: t[0] == ">", SWAPS))
def test_filters(context, rng, tmp_path, dtype, order):
    real = "f" in dtype
    chains = [[{"id": "delta", "dtype": dtype}],
              [{"id": "delta", "dtype": dtype, "astype": "<i2"}],
              [{"id": "fixedscaleoffset", "offset": 0, "scale": 8, "dtype": dtype, "astype": dtype}],
              [{"id": "fixedscaleoffset", "offset": 0, "scale": 1, "dtype": dtype, "astype": "u1"}],
              [{"id": "shuffle", "elementsize": 4}],
              [{"id": "delta", "dtype": dtype}, {"id": "shuffle", "elementsize": 4}],
              [{"id": "crc32"}],
              [{"id": "quantize", "digits": 3, "dtype": dtype}] if real else
              [{"id": "astype", "encode_dtype": "<i8", "decode_dtype": dtype}]]
    if dtype == "<f4":  # numcodecs cannot round the other byte order
        chains.append([{"id": "bitround", "keepbits": 5}])
    data = rng.integers(0, 100, SHAPE).astype(dtype)
    for i, filters in enumerate(chains):
        for compressor in (None, {"id": "zlib", "level": 1}):
            path = tmp_path / f"{i}{compressor is None}"
            check_round(context, path, write_v2(path, data, np.dtype(dtype), order, filters, compressor))


@pytest.mark.parametrize("order", "CF")
def test_strings(context, tmp_path, order):
    data = np.array([str(i) * (i % 3) for i in range(70)], object).reshape(SHAPE)
    want = write_v2(tmp_path, data, str, order, [{"id": "vlen-utf8"}], {"id": "zstd", "level": 1})
    check_round(context, tmp_path, want, by_us=False)


def test_filter_of_the_other_order(context, rng, tmp_path):
    write_v2(tmp_path, rng.integers(0, 100, SHAPE), np.dtype(">i4"),
             filters=[{"id": "delta", "dtype": "<i4"}])
    with pytest.raises(ZarrcError, match="filter \"delta\""):
        migrate(context, tmp_path)
    assert not (tmp_path / "zarr.json").exists()


def their_document(path, copy):
    """The document that zarr-python's own migration writes. None: it cannot."""
    from zarr.metadata.migrate_v3 import migrate_v2_to_v3
    from zarr.storage import LocalStore
    shutil.copytree(path, copy)
    try:
        migrate_v2_to_v3(input_store=LocalStore(copy))
    except (TypeError, ValueError):  # filters on bytes, blosc's shuffle -1
        return None
    return json.loads((copy / "zarr.json").read_text())


@pytest.mark.parametrize("dtype", newer([t for t in DTYPES if isinstance(t, str)] + DTYPES[-3:-2],
                                        lambda t: isinstance(t, list), peers.needs_structs), ids=str)
def test_same_document_as_theirs(context, rng, tmp_path, dtype):
    dtype, n = np.dtype(dtype), 0
    for i, compressor in enumerate(COMPRESSORS):
        path = tmp_path / str(i)
        write_v2(path, elements(rng, dtype), dtype, "CF"[i % 2], None, compressor)
        theirs = their_document(path, tmp_path / f"{i}.theirs")
        migrate(context, path)
        made = json.loads((path / "zarr.json").read_text())
        if theirs is None or compressor in ({"id": "crc32c"}, {"id": "jenkins_lookup3"}):
            continue  # we write the core's name for numcodecs' crc32c, and omit a null
        if dtype.kind in "mMS":  # it writes "NaT" for -2^63, and all bytes of S
            del made["fill_value"], theirs["fill_value"]
        assert made == theirs
        n += 1
    assert n > 10


def test_hierarchy(context, rng, tmp_path):
    root = zarr.create_group(tmp_path, zarr_format=2, attributes={"title": "x"})
    root.create_group("a/b", attributes={"deep": [1, {"y": None}]})
    for name in ("x", "a/y", "a/b/z"):
        array = root.create_array(name, shape=SHAPE, chunks=CHUNKS, dtype="f4",
                                  attributes={"_ARRAY_DIMENSIONS": ["row", "col"], "of": name})
        array[:] = rng.random(SHAPE)
    zarr.consolidate_metadata(tmp_path, zarr_format=2)
    want = {n: a[:] for n, a in root.members(max_depth=None) if isinstance(a, zarr.Array)}

    actions = migrate(context, tmp_path, dry_run=True)
    assert not list(tmp_path.rglob("zarr.json"))
    assert migrate(context, tmp_path) == actions
    assert [key for action, key in actions if action == "write"][-1] == "zarr.json"  # the root comes last
    again = zarr.open_group(tmp_path, mode="r", zarr_format=3)
    assert again.metadata.consolidated_metadata is not None
    assert dict(again.attrs) == {"title": "x"}
    assert dict(again["a/b"].attrs) == {"deep": [1, {"y": None}]}
    for name, data in want.items():
        array = again[name]
        assert array.metadata.dimension_names == ("row", "col")
        assert dict(array.attrs) == {"of": name, "_FillValue": "AAAAAAAAAAA="}  # v2's fill value 0
        assert np.array_equal(array[:], data)
    assert {action for action, _ in migrate(context, tmp_path)} == {"keep", "consolidate"}

    # One document has changed since: the call does nothing, unless it may replace it.
    before = (tmp_path / "x/zarr.json").read_bytes()
    zarr.open_array(tmp_path / "x", zarr_format=3).attrs["new"] = 1
    (tmp_path / "a/y/zarr.json").unlink()
    with pytest.raises(ZarrcError, match="/x: there is a zarr.json already"):
        migrate(context, tmp_path)
    assert not (tmp_path / "a/y/zarr.json").exists()
    migrate(context, tmp_path, overwrite=True)
    assert json.loads((tmp_path / "x/zarr.json").read_bytes()) == json.loads(before)

    # Then back to v2.
    for old in list(tmp_path.rglob(".z*")):
        old.unlink()
    migrate(context, tmp_path, zarr_format=2, remove=True)
    assert not list(tmp_path.rglob("zarr.json"))
    again = zarr.open_group(tmp_path, mode="r", zarr_format=2)
    assert again.metadata.consolidated_metadata is not None
    assert dict(again["a/b"].attrs) == {"deep": [1, {"y": None}]}
    for name, data in want.items():
        assert dict(again[name].attrs) == {"_ARRAY_DIMENSIONS": ["row", "col"], "of": name}
        assert np.array_equal(again[name][:], data)


CANNOT = {
    "keys": ({}, 'chunk key encoding "default"'),
    "shards": ({"shards": (6, 8)}, "sharding_indexed"),
    "order": ({"shape": (2, 3, 4), "chunks": (1, 2, 2),
               "filters": [zarr.codecs.TransposeCodec(order=(1, 0, 2))]}, "transpose"),
}


@pytest.mark.parametrize("name", CANNOT)
def test_what_v2_cannot_express(context, tmp_path, name):
    more, says = CANNOT[name]
    keys = {"name": "default" if name == "keys" else "v2", "separator": "."}
    root = zarr.create_group(tmp_path, zarr_format=3)
    root.create_array("good", shape=(4,), chunks=(2,), dtype="i4", chunk_key_encoding=keys | {"name": "v2"})
    root.create_array("bad", **{"shape": (6, 8), "chunks": (3, 4), **more}, dtype="i4",
                      chunk_key_encoding=keys)
    with pytest.raises(ZarrcError, match="/bad: .*" + says):
        migrate(context, tmp_path, zarr_format=2)
    assert not list(tmp_path.rglob(".z*"))


def v3_document(path, **members):
    document = {"zarr_format": 3, "node_type": "array", "shape": [4, 6], "data_type": "float32",
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 3]}},
                "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "."}},
                "fill_value": 0, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
                "attributes": {"a": 1}} | members
    path.mkdir()
    (path / "zarr.json").write_text(json.dumps(document))
    return path


VLEN = {"data_type": "string", "codecs": [{"name": "vlen-utf8"}]}
STRUCT = {"data_type": {"name": "struct", "configuration": {"fields": [
    {"name": "a", "data_type": "float32"}, {"name": "b", "data_type": "uint8"}]}}}
LOST = {
    "nan": ({"fill_value": "0x7fc00001"}, "fill_value.*0x7fc00001.*NaN"),
    "minus nan": ({"fill_value": "0xffc00000"}, "fill_value.*0xffc00000.*NaN"),
    "complex": ({"data_type": "complex64", "fill_value": ["0x7fc00001", 1]}, "fill_value.*0x7fc00001"),
    "half of the names": ({"dimension_names": [None, "x"]}, r"dimension_names\[0\] is null.*_ARRAY_DIMENSIONS"),
    "other names": ({"dimension_names": ["y", "x"], "attributes": {"_ARRAY_DIMENSIONS": ["p", "q"]}},
                    "_ARRAY_DIMENSIONS.*differs from dimension_names"),
    "no names": ({"dimension_names": ["y", "x"], "attributes": {"_ARRAY_DIMENSIONS": None}},
                 "_ARRAY_DIMENSIONS.*differs from dimension_names"),
}


@pytest.mark.parametrize("name", LOST)
def test_what_v2_would_lose(context, tmp_path, name):
    """The call refuses documents whose fill value (to the bit), names or attributes would change."""
    members, says = LOST[name]
    path = v3_document(tmp_path / "x", **members)
    with pytest.raises(ZarrcError, match=says) as raised:
        migrate(context, path, zarr_format=2, remove=True)
    assert raised.value.code == "UNSUPPORTED"
    assert [p.name for p in path.iterdir()] == ["zarr.json"]


KEPT = {
    "nan": {"fill_value": "NaN"}, "bits of nan": {"fill_value": "0x7fc00000"}, "-0": {"fill_value": -0.0},
    "infinity": {"fill_value": "-Infinity"}, "complex": {"data_type": "complex64", "fill_value": ["NaN", 1]},
    "text": VLEN | {"fill_value": "\u00e9 x"}, "no text": VLEN | {"fill_value": ""},
    "bytes": {"data_type": "variable_length_bytes", "codecs": [{"name": "vlen-bytes"}], "fill_value": "AP8="},
    "struct": STRUCT | {"fill_value": "AQDAfwE="},  # base64 keeps all bits of a NaN
    "all names": {"dimension_names": ["y", "x"]}, "same name": {"dimension_names": ["x", "x"]},
    "empty names": {"dimension_names": ["", ""]},
    "names twice": {"dimension_names": ["y", "x"], "attributes": {"_ARRAY_DIMENSIONS": ["y", "x"]}},
    "null names": {"dimension_names": [None, None]},
    "attribute": {"attributes": {"_ARRAY_DIMENSIONS": ["y", "x"]}},
    "other attribute": {"attributes": {"_ARRAY_DIMENSIONS": ["y"]}},
}


@pytest.mark.parametrize("name", KEPT)
def test_what_v2_keeps(context, tmp_path, name):
    path = v3_document(tmp_path / "x", **KEPT[name])
    before = json.loads((path / "zarr.json").read_text())
    names, attributes = before.get("dimension_names"), dict(before["attributes"])
    dtype = {"struct": np.dtype([("a", "f4"), ("b", "u1")]), "complex": np.dtype("c8"), "text": None,
             "no text": None, "bytes": None}.get(name, np.dtype("f4"))
    with context.store(str(path)) as store, store.open() as array:
        fill = array.read(dtype).tobytes() if dtype else None
    migrate(context, path, zarr_format=2, remove=True)
    written = json.loads((path / ".zattrs").read_text())
    assert written == attributes | ({"_ARRAY_DIMENSIONS": names} if names and names[0] is not None else {})
    migrate(context, path, remove=True)
    after = json.loads((path / "zarr.json").read_text())
    with context.store(str(path)) as store, store.open() as array:
        assert fill is None or array.read(dtype).tobytes() == fill
    if fill is None:  # elements of variable length
        assert after["fill_value"] == before["fill_value"]
    if len(written.get("_ARRAY_DIMENSIONS", [])) == 2:  # the attribute becomes the names again
        assert after["dimension_names"] == written.pop("_ARRAY_DIMENSIONS")
        if not names:  # without names, v3's fill value 0 was no missing value to keep apart
            written["_FillValue"] = "AAAAAAAAAAA="
    assert after["attributes"] == written


def test_nan_in_attributes(context, tmp_path):
    """Python's NaN is not JSON, so v3 gets strings. A second call recognises its own document."""
    write_v2(tmp_path, np.zeros(SHAPE, "i4"), np.dtype("i4"))
    (tmp_path / ".zattrs").write_text('{"a": [NaN, {"b": -Infinity}], "c": Infinity, "d": 1, "e": "NaN"}')
    want = {"a": ["NaN", {"b": "-Infinity"}], "c": "Infinity", "d": 1, "e": "NaN"}
    assert migrate(context, tmp_path) == [("write", "zarr.json")]
    assert json.loads((tmp_path / "zarr.json").read_text())["attributes"] == want
    assert migrate(context, tmp_path) == [("keep", "zarr.json")]
    attributes = (tmp_path / ".zattrs").read_bytes()
    assert ("remove", ".zattrs") in migrate(context, tmp_path, remove=True)
    (tmp_path / ".zattrs").write_bytes(attributes)  # as after a kill
    assert migrate(context, tmp_path, remove=True) == [("remove", ".zattrs")]


@pytest.mark.parametrize("attributes", [{}, {"crs": "c"}, {"_ARRAY_DIMENSIONS": "mine"}])
def test_scalar_of_xarray(context, tmp_path, attributes):
    """xarray needs an empty list of names for a scalar in v2, and no names in v3."""
    zarr.create_array(tmp_path / "a", shape=(), dtype="i4", zarr_format=3, attributes=attributes,
                      compressors=None, chunk_key_encoding={"name": "v2", "separator": "."})[...] = 5
    before = json.loads((tmp_path / "a/zarr.json").read_text())
    migrate(context, tmp_path / "a", zarr_format=2, remove=True)
    there = json.loads((tmp_path / "a/.zattrs").read_text())
    assert there == {"_ARRAY_DIMENSIONS": [], **attributes}
    assert zarr.open_array(tmp_path / "a", mode="r")[...] == 5
    migrate(context, tmp_path / "a", zarr_format=3, remove=True)
    after = json.loads((tmp_path / "a/zarr.json").read_text())
    assert after["attributes"] == attributes and "dimension_names" not in after
    assert after["shape"] == before["shape"] == []
    assert ours(context, tmp_path / "a", np.array(5, "i4"))
    # Without attributes in the call, none is created.
    context.store(str(tmp_path / "b"), create=True).create("", (), "int8", zarr_format=2)
    assert not (tmp_path / "b/.zattrs").exists()


def test_unknown_members(context, tmp_path):
    """A v2 document may have unknown members, and takes those of v3. A v3 document may not take those of v2:
    the v2 document is kept and reported."""
    root = zarr.create_group(tmp_path, zarr_format=2, attributes={"title": "x"})
    write_v2(tmp_path / "a", np.zeros(SHAPE, "i4"), "<i4")
    for document, name in ((tmp_path / ".zgroup", "_NCZARR_GROUP"), (tmp_path / "a/.zarray", "_nczarr_array")):
        document.write_text(json.dumps({**json.loads(document.read_text()), name: {"dims": ["/y"]}}))
    for _ in range(2):  # a second call does the same
        tree = {p.name for p in tmp_path.rglob(".z*")}
        actions = migrate(context, tmp_path, remove=True)
        assert {p.name for p in tmp_path.rglob(".z*")} == tree >= {".zgroup", ".zarray", ".zattrs"}
        assert {key for action, key in actions if action == "leave"} == {".zgroup", ".zattrs", "a/.zarray"} | \
            ({"a/.zattrs"} if (tmp_path / "a/.zattrs").exists() else set())
    assert root.attrs["title"] == "x"
    shutil.rmtree(tmp_path / "a")
    v3_document(tmp_path / "b", later={"must_understand": False, "x": 1}, dtype={"must_understand": False})
    migrate(context, tmp_path / "b", zarr_format=2, remove=True)
    after = json.loads((tmp_path / "b/.zarray").read_text())
    assert after["later"] == {"must_understand": False, "x": 1} and isinstance(after["dtype"], str)
    assert not (tmp_path / "b/zarr.json").exists()


def test_strays_stay(context, tmp_path):
    """v2 documents beside a node that was v3 already may differ from it: only equal ones are removed."""
    root = zarr.create_group(tmp_path, zarr_format=3, attributes={"title": "x"})
    for name in ("same", "other", "broken"):
        array = root.create_array(name, shape=(4, 6), chunks=(2, 3), dtype="i4", attributes={"of": name},
                                  dimension_names=["y", "x"])
        array[:] = 1
        (tmp_path / name / ".zattrs").write_text(json.dumps(
            {"_ARRAY_DIMENSIONS": ["y", "x"], "of": "same"}) if name != "broken" else "{")
    old = zarr.create_group(tmp_path / "old", zarr_format=2, attributes={"k": 1})
    zarr.consolidate_metadata(old.store, zarr_format=2)
    (tmp_path / ".zattrs").write_text('{"mine": 1}')
    (tmp_path / ".zmetadata").write_text('{"mine": 2}')
    strays = {p: p.read_bytes() for p in (tmp_path / ".zattrs", tmp_path / ".zmetadata",
                                          tmp_path / "other/.zattrs", tmp_path / "broken/.zattrs")}
    actions = migrate(context, tmp_path, remove=True, dry_run=True)
    assert migrate(context, tmp_path, remove=True) == actions
    assert sorted(key for action, key in actions if action == "leave") == sorted(
        str(p.relative_to(tmp_path)) for p in strays)
    assert sorted(key for action, key in actions if action == "remove") == [
        "old/.zattrs", "old/.zgroup", "old/.zmetadata", "same/.zattrs"]
    assert {p: p.read_bytes() for p in tmp_path.rglob(".z*")} == strays
    assert dict(zarr.open_group(tmp_path, mode="r", zarr_format=3)["old"].attrs) == {"k": 1}


def test_separator_of_the_chunks(context, tmp_path):
    """Old writers of nested chunks omitted dimension_separator. The v3 document must have it."""
    want = write_v2(tmp_path, np.arange(70).reshape(SHAPE), np.dtype("<i4"), separator="/")
    document = json.loads((tmp_path / ".zarray").read_text())
    del document["dimension_separator"]
    (tmp_path / ".zarray").write_text(json.dumps(document))
    migrate(context, tmp_path)
    assert same(zarr.open_array(tmp_path, mode="r", zarr_format=3)[:], want)


class DyingStore(DictStore):
    """Fails all writes after so many changes, as if the process was killed."""

    def __init__(self, values, left):
        super().__init__(values)
        self.left = left

    def run(self, op):
        if op.verb not in (STORE_GET, STORE_STAT):
            if self.left == 0:
                return NUMBER["IO"], "killed"
            self.left -= 1
        return super().run(op)


def read_tree(values):
    """Everything that zarr-python reads from the store, by path."""
    store = zarr.storage.MemoryStore({k: zarr.core.buffer.cpu.Buffer.from_bytes(v) for k, v in values.items()})
    root = zarr.open_group(store, mode="r", use_consolidated=False)
    out = {"": dict(root.attrs)}
    for path, node in root.members(max_depth=None):
        names = node.metadata.dimension_names if isinstance(node, zarr.Array) and \
            node.metadata.zarr_format == 3 else None
        attributes = dict(node.attrs) | ({"_ARRAY_DIMENSIONS": list(names)} if names else {})
        if isinstance(node, zarr.Array):  # v3's attribute is v2's fill value
            fill = base64.b64encode(np.array(node.fill_value, "<f8").tobytes()).decode()
            assert attributes.get("_FillValue", fill) == fill and ("_FillValue" in attributes) == bool(names)
            attributes["_FillValue"] = fill
        out[path] = attributes, (node[...].tolist() if isinstance(node, zarr.Array) else None)
    return out


@pytest.mark.parametrize("to", [3, 2])
def test_killed_between_documents(context, tmp_path, to):
    root = zarr.create_group(tmp_path, zarr_format=2, attributes={"title": "x"})
    root.create_group("a/b", attributes={"deep": 1})
    for name in ("x", "a/y", "a/b/z"):
        array = root.create_array(name, shape=(4,), chunks=(2,), dtype="f4",
                                  attributes={"_ARRAY_DIMENSIONS": ["row"], "of": name})
        array[:] = np.arange(4) / 3
    zarr.consolidate_metadata(tmp_path, zarr_format=2)
    if to == 2:
        migrate(context, tmp_path, remove=True)
    start = {str(p.relative_to(tmp_path)): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    want = read_tree(start)
    for left in range(100):
        values = dict(start)
        with context.custom(DyingStore(values, left)) as store:
            try:
                store.migrate(zarr_format=to, remove=True)
                done = True
            except ZarrcError:
                done = False
        assert read_tree(values) == want, left  # unchanged, in whichever format it is read
        with context.custom(DictStore(values)) as store:
            assert store.group(consolidated=2).walk() and store.probe("a/b/z")
            store.migrate(zarr_format=to, remove=True)  # continues
        old = ("zarr.json",) if to == 2 else (".zarray", ".zgroup", ".zattrs", ".zmetadata")
        assert not [k for k in values if k.rsplit("/")[-1] in old]
        assert read_tree(values) == want
        if done:
            break
    assert left > 15
