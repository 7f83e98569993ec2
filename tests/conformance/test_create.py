"""Arrays created with zarrc's own options (not from a document), read by zarr-python; and arrays
so large that only their corners are tested."""
import json
import warnings

import numpy as np
import pytest
import zarr

import cases
import peers
import zarrs_crate
from zarrc_abi import ZarrcError
from zarrc_nodes import IF_MISSING, INDEX_AT_START, OVERWRITE
from zarrc_selection import Selection


def theirs(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return zarr.open_array(str(folder), mode="r+")


SPECS = {
    "least": {},
    "chunks": {"chunks": (3, 4)},
    "shards": {"chunks": (3, 4), "shards": (6, 8)},
    "shards-start": {"chunks": (3, 4), "shards": (6, 8), "flags": INDEX_AT_START,
                     "index_codecs": [cases.BIG]},
    "fortran": {"chunks": (3, 4), "order": "F"},
    "fortran-shards": {"chunks": (4, 4), "shards": (8, 8), "order": "F"},
    "codecs": {"chunks": (3, 4), "codecs": [cases.gzip(3), cases.CRC]},
    "codecs-whole": {"chunks": (3, 4), "codecs": [cases.transpose(1, 0), cases.BIG, cases.zstd(2)]},
    "codecs-shards": {"chunks": (3, 4), "shards": (9, 4), "codecs": [cases.blosc("zstd", "shuffle", 4)]},
    "none": {"chunks": (3, 4), "codecs": []},
    "dots": {"chunks": (3, 4), "separator": "."},
    "v2-keys": {"chunks": (3, 4), "key_encoding": "v2"},
    "big": {"dtype": ">i4", "chunks": (3, 4)},
    "fill": {"fill_value": -7, "attributes": {"a": {"b": [1]}}, "dimension_names": ["y", "x"]},
    "v2": {"zarr_format": 2, "chunks": (3, 4)},
    "v2-plain": {"zarr_format": 2, "chunks": (3, 4), "codecs": {"filters": [], "compressor": None}},
    "v2-bytes": {"zarr_format": 2, "chunks": (3, 4), "codecs": {"filters": [
        {"id": "transpose", "order": [1, 0]}, {"id": "bytes", "endian": "big"}, {"id": "shuffle", "elementsize": 4}],
        "compressor": {"id": "zlib", "level": 1}}},
    "v2-bytes-last": {"zarr_format": 2, "chunks": (3, 4), "dtype": ">i4", "codecs": {
        "filters": None, "compressor": {"id": "bytes", "endian": "little"}}},
    "v2-fortran": {"zarr_format": 2, "chunks": (3, 4), "order": "F", "separator": "/", "dtype": ">i4"},
    "v2-filters": {"zarr_format": 2, "chunks": (3, 4), "codecs": {
        "filters": [{"id": "delta", "dtype": "<i4"}, {"id": "shuffle", "elementsize": 4}],
        "compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 0, "blocksize": 0}}},
}


@pytest.mark.parametrize("name", SPECS)
def test_specs(context, rng, tmp_path, name):
    options = {"dtype": "int32", **SPECS[name]}
    store = context.store(str(tmp_path))
    array = store.create("a", (10, 13), options.pop("dtype"), **options)
    data = cases.random_data(rng, (10, 13), "i4")
    array.write(data, memory="fake")
    seen = theirs(tmp_path / "a")
    cases.same_bits(seen[...], data)
    assert seen.shape == array.shape
    assert tuple(seen.chunks) == array.chunks
    assert tuple(seen.shards or seen.chunks) == array.write_chunks
    if options.get("chunks"):
        assert array.chunks == options["chunks"]
    if options.get("shards"):
        assert array.write_chunks == options["shards"]
    assert seen.fill_value == options.get("fill_value", 0)
    seen[2:5, 3:11] = 5
    data[2:5, 3:11] = 5
    cases.same_bits(array.read("i4"), data)
    # Its document makes the same array.
    again = context.store().create(document=json.loads(array.metadata))
    assert again.metadata == array.metadata


def test_key_encoding(context):
    """An encoding given by name and as an object. By name, no separator is added to it."""
    store = context.store()
    encoding = {"name": "suffix", "configuration": {"suffix": ".tiff", "base_encoding": {"name": "default"}}}
    array = store.create("a", (4, 4), "int16", chunks=(2, 2), codecs=[], key_encoding=json.dumps(encoding))
    array.write(np.arange(16, dtype="i2").reshape(4, 4))
    assert store.get("a/c/1/0.tiff") == np.array([8, 9, 12, 13], "<i2").tobytes()
    for name in ("suffix", "zarrs.default_suffix"):
        with pytest.raises(ZarrcError) as failed:
            store.create("b", (4,), "int16", key_encoding=name)
        assert f'chunk key encoding "{name}": suffix is nothing, must be a string' in failed.value.message
    with pytest.raises(ZarrcError, match='unknown member "separator"'):
        store.create("b", (4,), "int16", key_encoding="suffix", separator="/")
    for name in ("default", "v2"):
        made = json.loads(store.create(name, (4,), "int16", key_encoding=name).metadata)
        assert made["chunk_key_encoding"] == {"name": name, "configuration": {"separator": "/"}}


def test_there_already(context):
    store = context.store()
    first = store.create("a", (4,), "int8", chunks=(2,), attributes={"k": 1})
    first.write(np.ones(4, "i1"))
    with pytest.raises(ZarrcError, match="EXISTS"):
        store.create("a", (4,), "int8", chunks=(2,))
    same = store.create("a", (4,), "int8", chunks=(2,), attributes={"k": 1}, flags=IF_MISSING)
    assert same.read("i1").tolist() == [1] * 4
    with pytest.raises(ZarrcError, match="EXISTS"):
        store.create("a", (5,), "int8", chunks=(2,), flags=IF_MISSING)
    fresh = store.create("a", (5,), "int8", chunks=(2,), flags=OVERWRITE)
    assert fresh.read("i1").tolist() == [0] * 5
    assert store.keys("a") == ["a/zarr.json"]
    with pytest.raises(ZarrcError):
        store.create("a/below", (1,), "int8")


@pytest.mark.parametrize("codecs", [[cases.LITTLE], [cases.sharding((500, 500), [cases.LITTLE, cases.zstd()])]],
                         ids=["chunks", "shards"])
def test_huge(context, rng, tmp_path, codecs):
    """2^40 x 2^38 elements; only the corners exist."""
    shape, chunks = (2**40, 2**38 + 3), (1000, 1000)
    document = cases.document_v3("int16", 9, codecs, shape, chunks)
    array = context.store(str(tmp_path)).create(document=document)
    corner = cases.random_data(rng, (7, 5), "i2")
    part = Selection.dims(shape, slice(-7, None), slice(-5, None))
    array.write(corner, part)
    array.write(corner, Selection.dims(shape, slice(0, 7), slice(998, 1003)), memory="fake")
    assert (array.read("i2", part, memory="fake") == corner).all()
    points = Selection.points(shape, [(-1, -1), (0, 998), (5, 5), (2**39, 2**37)])
    assert array.read("i2", points).tolist() == [corner[-1, -1], corner[0, 0], 9, 9]
    seen = theirs(tmp_path)
    assert (seen[-7:, -5:] == corner).all() and (seen[:7, 998:1003] == corner).all()
    assert len(array.chunk_list()) == 3 and array.verify() == []
    assert (peers.open_tensorstore(tmp_path)[2**40 - 7:, 2**38 - 2:].read().result() == corner).all()
    assert "chunks" in array.explain()
    array.resize((1000, 1000))
    assert [row[0] for row in array.chunk_list()] == [(0, 0)]


# ---- chains inside codecs are complete, too ------------------------------------------------------

def codec(name, /, **configuration):
    return {"name": name, "configuration": configuration}


OPEN = codec("blosc", cname="lz4", clevel=5, blocksize=0)
FORTRAN = codec("transpose", order="F")
MAYBE = codec("zarrs.optional", name="float32", configuration={})
TWICE = codec("zarrs.optional", **MAYBE)


def optional(data, name="zarrs.optional"):
    return codec(name, mask_codecs=[FORTRAN, codec("packbits"), OPEN], data_codecs=data)


def both(typesize):
    return codec("blosc", typesize=typesize, cname="lz4", clevel=5,
                 shuffle="bitshuffle" if typesize == 1 else "shuffle", blocksize=0)


def optional_codec(data, name="zarrs.optional", mask=(1, 0)):
    packed = codec("packbits", padding_encoding="none")
    return codec(name, mask_codecs=[cases.transpose(*mask), packed, both(1)], data_codecs=data)


OFFSETS = {"index_codecs": [FORTRAN, cases.BIG, OPEN], "index_data_type": "uint64"}
TOLD_OFFSETS = {"index_codecs": [cases.transpose(0), cases.BIG, both(8)], "index_data_type": "uint64"}
INSIDE = {  # data type, fill value, codecs as given, codecs as written
    "optional": (codec("optional", name="float32", configuration={}), None,
                 [optional([FORTRAN, cases.LITTLE, OPEN], "optional")],
                 [optional_codec([cases.transpose(0), cases.LITTLE, both(4)], "optional")]),
    "zarrs.optional": (MAYBE, None, [optional([FORTRAN, cases.LITTLE, OPEN])],
                       [optional_codec([cases.transpose(0), cases.LITTLE, both(4)])]),
    "order of one byte": (codec("zarrs.optional", name="uint8", configuration={}), None,
                          [codec("zarrs.optional", mask_codecs=[cases.BIG], data_codecs=[cases.LITTLE])],
                          [codec("zarrs.optional", mask_codecs=[cases.PLAIN], data_codecs=[cases.PLAIN])]),
    "nested": (TWICE, None, [optional([optional([cases.LITTLE, OPEN])])],
               [optional_codec([optional_codec([cases.LITTLE, both(4)], mask=(0,))])]),
    "zarrs.vlen": ("string", "", [codec("zarrs.vlen", data_codecs=[FORTRAN, cases.LITTLE, OPEN], **OFFSETS)],
                   [codec("zarrs.vlen", data_codecs=[cases.transpose(0), cases.PLAIN, both(1)], **TOLD_OFFSETS)]),
    "vlen inside": (codec("zarrs.optional", name="string", configuration={}), None,
                    [optional([codec("zarrs.vlen", data_codecs=[cases.PLAIN, OPEN], **OFFSETS)])],
                    [optional_codec([codec("zarrs.vlen", data_codecs=[cases.PLAIN, both(1)], **TOLD_OFFSETS)])]),
    "conditional": ("int16", 0, [FORTRAN, cases.LITTLE, codec("conditional", codecs=[OPEN])],
                    [cases.transpose(1, 0), cases.LITTLE, codec("conditional", codecs=[both(2)], header_bits=8)]),
    "n5_default": ("int16", 0, [codec("n5_default", codecs=[FORTRAN, cases.BIG, OPEN])],
                   [codec("n5_default", codecs=[cases.transpose(1, 0), cases.BIG, both(2)])]),
    "in shards": (MAYBE, None, [cases.sharding((2, 1), [optional([cases.LITTLE, OPEN])])],
                  [cases.sharding((2, 1), [optional_codec([cases.LITTLE, both(4)])])]),
}


def inside(store, name):
    dtype, fill, given, _ = INSIDE[name]
    return store.create(document=cases.document_v3(dtype, fill, given, (4, 2), (4, 2)))


@pytest.mark.parametrize("name", INSIDE)
def test_inside(context, name):
    """What others cannot know is settled."""
    store, written = context.store(), INSIDE[name][3]
    array = inside(store, name)
    found = json.loads(store.get("zarr.json"))["codecs"]
    assert plain(found) == plain(written)
    again = context.store().create(document=json.loads(array.metadata))
    assert again.metadata == array.metadata


@zarrs_crate.needed
@pytest.mark.parametrize("name", sorted(set(INSIDE) - {"optional", "conditional", "n5_default"}))  # it lacks these
def test_inside_zarrs(context, tmp_path, name):
    """Which refuses blosc without its item size, and letters."""
    inside(context.store(str(tmp_path), create=True), name)
    assert zarrs_crate.info(tmp_path)["chunk_counts"]


def plain(value):
    """Without empty configurations."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if v != {}}
    return [plain(v) for v in value] if isinstance(value, list) else value


# ---- indexes of shards -------------------------------------------------------------------------

KEEPS = {"packbits": [codec("packbits")], "bitround": [codec("bitround", keepbits=64), cases.LITTLE],
         "delta": [codec("numcodecs.delta", dtype="<u8"), cases.LITTLE, cases.CRC],
         "astype": [codec("numcodecs.astype", encode_dtype="<i8", decode_dtype="<u8"), cases.BIG],
         "cast": [codec("cast_value", data_type="uint64"), cases.LITTLE],
         "scale": [codec("scale_offset", offset=0, scale=1), cases.LITTLE]}


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("name", KEEPS)
def test_index_kept(context, rng, name, location):
    """Codecs that can lose values are allowed in an index if their configuration prevents that.
    Otherwise no array can be created: see shard_index_packbits and its neighbours in tests/hostile."""
    store = context.store()
    array = store.create(document=cases.document_v3(
        "int32", 0, [cases.sharding((2,), [cases.LITTLE, cases.gzip()], KEEPS[name], location)], (16,), (8,)))
    data = rng.integers(1, 100, 16, "i4")
    data[4:8] = 0
    array.write(data)
    cases.same_bits(array.read("i4"), data)
    assert array.verify() == []
