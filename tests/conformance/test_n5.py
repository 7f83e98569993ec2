"""n5_default compared with TensorStore's N5 driver: both read and write the same files."""
import gzip
import json
import struct

import numpy as np
import pytest
import tensorstore as ts

import cases
from zarrc_abi import ZarrcError
from zarrc_selection import Selection

TYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64"]
COMPRESSORS = [
    ({"type": "raw"}, []),
    ({"type": "gzip", "level": 6}, [{"name": "gzip", "configuration": {"level": 6}}]),
    ({"type": "zstd", "level": 3}, [{"name": "zstd", "configuration": {"level": 3}}]),
    ({"type": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1},
     [{"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4,
                                          "blocksize": 0}}]),
]


def document(dtype, shape, chunks, behind, fill=0, grid=None):
    native = np.dtype(dtype)
    codec = {"name": "n5_default", "configuration": {"codecs": [
        {"name": "transpose", "configuration": {"order": list(range(len(shape)))[::-1]}},
        {"name": "bytes", "configuration": {"endian": "big"}} if native.itemsize > 1 else {"name": "bytes"},
        *behind]}}
    made = cases.document_v3(dtype, fill, [codec], shape, chunks)
    made["chunk_key_encoding"] = {"name": "v2", "configuration": {"separator": "/"}}
    if grid:
        made["chunk_grid"] = grid
    return made


def theirs(path, dtype, shape, chunks, compression, create):
    return ts.open({"driver": "n5", "kvstore": {"driver": "file", "path": f"{path}/"},
                    **({"metadata": {"dimensions": shape, "blockSize": chunks, "dataType": dtype,
                                     "compression": compression}} if create else {})},
                   create=create, open=True).result()


def values(rng, dtype, shape):
    native = np.dtype(dtype)
    return np.frombuffer(rng.bytes(int(np.prod(shape)) * native.itemsize), native).reshape(shape).copy()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("compression,behind", COMPRESSORS, ids=lambda c: c["type"] if isinstance(c, dict) else "")
@pytest.mark.parametrize("shape,chunks", [([7], [3]), ([5, 3], [3, 2]), ([4, 5, 3], [2, 3, 3])])
def test_tensorstore(context, rng, tmp_path, dtype, compression, behind, shape, chunks):
    data = values(rng, dtype, shape)
    data = np.nan_to_num(data) if data.dtype.kind == "f" else data
    other = theirs(tmp_path / "a", dtype, shape, chunks, compression, True)
    other[...] = data
    doc = document(dtype, shape, chunks, behind)
    (tmp_path / "a/zarr.json").write_text(json.dumps(doc))
    assert np.array_equal(context.store(str(tmp_path / "a")).open().read(dtype), data)

    theirs(tmp_path / "b", dtype, shape, chunks, compression, True)
    ours = context.store(str(tmp_path / "b")).create(document=doc)
    ours.write(data)
    assert np.array_equal(theirs(tmp_path / "b", dtype, shape, chunks, compression, False).read().result(), data)
    assert np.array_equal(ours.read(dtype), data)
    if compression["type"] == "raw":
        for block in (tmp_path / "a").rglob("*"):
            if block.is_file() and block.suffix != ".json":
                mine = (tmp_path / "b" / block.relative_to(tmp_path / "a")).read_bytes()
                assert mine == block.read_bytes()


def block(shape, values, dtype=">u2", mode=0):
    head = struct.pack(">HH", mode, len(shape)) + b"".join(struct.pack(">I", n) for n in shape)
    return head + np.asarray(values, dtype).tobytes(order="F")


def with_block(context, doc, stored, key="0/0"):
    store = context.store()
    array = store.create(document=doc)
    store.put(key, stored)
    return array


def test_other_shapes(context):
    """Java cuts blocks at the array's edge; others pad them, in grids that cut, too."""
    doc = document("uint16", [3, 4], [3, 4], [], fill=9)
    part = np.arange(6).reshape(2, 3)
    want = np.full((3, 4), 9)
    want[:2, :3] = part
    assert np.array_equal(with_block(context, doc, block((2, 3), part)).read("uint16"), want)
    more = np.arange(20 * 30).reshape(20, 30)
    assert np.array_equal(with_block(context, doc, block((20, 30), more)).read("uint16"), more[:3, :4])
    longer = np.arange(2 * 300).reshape(2, 300)
    want = np.full((3, 4), 9)
    want[:2] = longer[:, :4]
    assert np.array_equal(with_block(context, doc, block((2, 300), longer)).read("uint16"), want)
    packed = document("uint16", [3, 4], [3, 4], [{"name": "gzip", "configuration": {"level": 1}}], fill=9)
    stored = block((2, 3), part)
    assert np.array_equal(
        with_block(context, packed, stored[:12] + gzip.compress(stored[12:])).read("uint16")[:2, :3], part)
    stored = block((20, 30), more)
    assert np.array_equal(
        with_block(context, packed, stored[:12] + gzip.compress(stored[12:])).read("uint16"), more[:3, :4])


def test_part_of_a_cut_block(context):
    """Writing to a block that another writer cropped makes it whole."""
    array = with_block(context, document("uint16", [3, 4], [3, 4], [], fill=9), block((2, 3), np.arange(6).reshape(2, 3)))
    before = array.read("uint16")
    before[2, 3] = 77
    array.write(np.array([[77]], "u2"), Selection.box((3, 4), (2, 3), (1, 1)))
    assert np.array_equal(array.read("uint16"), before)


GOOD = block((3, 4), np.arange(12).reshape(3, 4))


@pytest.mark.parametrize("stored,says", [
    (b"", "0 bytes"), (GOOD[:3], "3 bytes"), (GOOD[:11], "header has 12"), (GOOD[:-1], "needs 24"),
    (GOOD + b"x", "needs 24"), (b"\0\1" + GOOD[2:], "mode 1"), (b"\0\2" + GOOD[2:], "mode 2"),
    (b"\xff\xff" + GOOD[2:], "mode 65535"), (b"\0\0\0\3" + GOOD[4:], "3 dimensions"),
    (b"\0\0\0\0" + GOOD[4:], "0 dimensions"), (block((0, 4), np.zeros((0, 4))), "is 0"),
    (GOOD[:4] + b"\xff" * 8, "limit chunk_bytes"), (GOOD[:4] + b"\0\0\x3f\xff" * 2 + GOOD[12:], "needs"),
])
def test_hostile(context, stored, says):
    with pytest.raises(ZarrcError) as failed:
        with_block(context, document("uint16", [3, 4], [3, 4], []), stored).read("uint16")
    assert says in str(failed.value)


def test_bomb(context):
    doc = document("uint16", [3, 4], [3, 4], [{"name": "gzip", "configuration": {"level": 1}}])
    with pytest.raises(ZarrcError):
        with_block(context, doc, GOOD[:12] + gzip.compress(bytes(64 << 20))).read("uint16")


@pytest.mark.parametrize("change,says", [
    (lambda c: c[0]["configuration"].update(order=[0, 1]), "reverse"),
    (lambda c: c.pop(0), "must be transpose"), (lambda c: c.pop(1), "codecs"),
    (lambda c: c[1]["configuration"].update(endian="little"), "must be \"big\""),
    (lambda c: c.extend([{"name": "crc32c"}, {"name": "crc32c"}]), "at most one"),
])
def test_refused(context, change, says):
    doc = document("uint16", [3, 4], [3, 4], [])
    change(doc["codecs"][0]["configuration"]["codecs"])
    with pytest.raises(ZarrcError) as failed:
        context.store().create(document=doc)
    assert says in str(failed.value)


@pytest.mark.parametrize("dtype", ["float16", "bool", "complex64"])
def test_types(context, dtype):
    doc = document("uint16", [3, 4], [3, 4], [])
    doc["data_type"] = dtype
    doc["fill_value"] = [0, 0] if dtype == "complex64" else False if dtype == "bool" else 0
    with pytest.raises(ZarrcError) as failed:
        context.store().create(document=doc)
    assert "codec n5_default does not take data type" in str(failed.value)
