"""Shards that must be decoded whole: codecs in front of sharding_indexed combine neighbouring
elements or change the shape of the shard. The stored bytes are those of an array of the codecs'
output whose inner chunks are written one by one."""
import json
import struct

import numpy as np
import pytest
import zarr

import cases
import peers
from cases import BIG, CRC, LITTLE, PLAIN, gzip, sharding, transpose, zstd
from zarrc_abi import CHUNKS_INNER, FAKE, Limits, Stats, ZarrcError
from zarrc_ctypes import Context
from zarrc_selection import Selection

SHAPE, SHARD = (23, 26), (8, 12)
MISSING = b"\xff" * 16


def codec(name, **config):
    return {"name": name, "configuration": config}


def delta(chunk, dtype):
    flat = chunk.reshape(-1).astype(dtype)
    return np.concatenate([flat[:1], flat[1:] - flat[:-1]]).reshape(chunk.shape)


FRONTS = {  # codecs, type, what they make of a chunk
    "delta": ([codec("numcodecs.delta", dtype="<i4")], "i4", lambda c: delta(c, "i4")),
    "delta wider": ([codec("numcodecs.delta", dtype="<i4", astype="<i8")], "i4", lambda c: delta(c, "i8")),
    "delta of floats": ([codec("numcodecs.delta", dtype="<f8")], "f8", lambda c: delta(c, "f8")),
    "turned delta": ([transpose(1, 0), codec("numcodecs.delta", dtype="<i4")], "i4", lambda c: delta(c.T, "i4")),
    "delta turned": ([codec("numcodecs.delta", dtype="<i4"), transpose(1, 0)], "i4", lambda c: delta(c, "i4").T),
    "scaled delta": ([codec("scale_offset", scale=2), codec("numcodecs.delta", dtype="<i4")], "i4",
                     lambda c: delta(c * 2, "i4")),
    "reshape": ([codec("reshape", shape=[4, 2, 12])], "i4", lambda c: c.reshape(4, 2, 12)),
    "flat": ([codec("reshape", shape=[-1])], "i4", lambda c: c.reshape(-1)),
    "turned reshape": ([transpose(1, 0), codec("reshape", shape=[6, 16])], "i4", lambda c: c.T.reshape(6, 16)),
    "squeeze": ([codec("zarrs.squeeze")], "i4", lambda c: c),
    "bits": ([codec("numcodecs.packbits")], "?",
             lambda c: np.concatenate([np.zeros(1, "u1"), np.packbits(c.reshape(-1))])),
}
INNERS = {
    "raw": lambda inner, end: [sharding(inner, [end])],
    "start": lambda inner, end: [sharding(inner, [end, zstd()], location="start")],
    "crc": lambda inner, end: [sharding(inner, [transpose(*reversed(range(len(inner)))), end, CRC], [BIG, CRC])],
    "wrapped": lambda inner, end: [sharding(inner, [end]), gzip(), CRC],
    "nested": lambda inner, end: [sharding(inner, [sharding([1] * len(inner), [end, CRC]), zstd()])],
}
V3 = {"i4": "int32", "i8": "int64", "f8": "float64", "?": "bool", "u1": "uint8"}


def inner_shape(shape):
    """Halves, thirds or nothing, so that rows of an inner chunk are joined or not."""
    return [n // 2 if n % 2 == 0 and n > 2 else n for n in shape]


def documents(front, inner, fill=0):
    """The array, and one whose only chunk is a chunk of it behind the codecs in front."""
    codecs, dtype, after = FRONTS[front]
    made = after(np.full(SHARD, fill, dtype))
    end = PLAIN if made.itemsize == 1 else LITTLE
    behind = INNERS[inner](inner_shape(made.shape), end)
    one = cases.document_v3(V3[made.dtype.str[1:] if dtype != "?" else "u1"],
                            fill * 2 if front.startswith("scaled") else fill, behind, made.shape, made.shape)
    return cases.document_v3(V3[dtype], bool(fill) if dtype == "?" else fill, codecs + behind, SHAPE, SHARD), one


def values(rng, dtype, shape=SHAPE):
    """With long runs of the fill value, 0."""
    data = rng.integers(0, 2 if dtype == "?" else 100, shape).astype(dtype)
    data[3:9, 2:] = 0
    data.reshape(-1)[rng.integers(0, data.size)] = 1
    return data


def cut_chunk(data, at, fill):
    part = data[tuple(slice(a * n, (a + 1) * n) for a, n in zip(at, SHARD))]
    chunk = np.full(SHARD, fill, data.dtype)
    chunk[tuple(slice(0, n) for n in part.shape)] = part
    return chunk


def keys(store):
    return [k for k in store.keys() if k.startswith("c/")]


def read_all_ways(array, dtype, expected):
    for memory in ("host", "fake"):
        for pipeline in ("waves", "serial"):
            stats = Stats()
            cases.same_bits(array.read(dtype, memory=memory, pipeline=pipeline, stats=stats), expected)
            assert stats.chunks_done == stats.chunks_total == 9, stats
    part = Selection.dims(SHAPE, slice(1, 22, 3), slice(25, 2, -2))
    cases.same_bits(array.read(dtype, part), np.ascontiguousarray(expected[1:22:3, 25:2:-2]))
    assert array.verify() == []


@pytest.mark.parametrize("inner", INNERS)
@pytest.mark.parametrize("front", FRONTS)
def test_bytes(context, rng, front, inner):
    document, one = documents(front, inner)
    dtype, after = FRONTS[front][1:]
    store, serial = context.store(), context.store("memory:", device_type=FAKE)
    array, other = store.create(document=document), serial.create(document=document)
    assert array.chunks == array.write_chunks == SHARD
    data, rows = values(rng, dtype), np.zeros(SHAPE, dtype)
    boxes = [(slice(0, 23), slice(0, 26)), (slice(7, 9), slice(1, 15)), (slice(22, 23), slice(0, 26)),
             (slice(0, 8), slice(12, 24))]
    for n, box in enumerate(boxes):
        sel, part = Selection.dims(SHAPE, *box), np.ascontiguousarray(data[box])
        array.write(part, sel)
        other.write(part, sel, pipeline="serial", memory="fake" if n % 2 else "host")
        rows[box] = part
        cases.same_bits(array.read(dtype), rows)
        data = values(rng, dtype)
    read_all_ways(array, dtype, rows)
    read_all_ways(other, dtype, rows)
    assert store.dump() == serial.dump()
    for key in keys(store):
        small = context.store()
        made = after(cut_chunk(rows, [int(n) for n in key.split("/")[1:]], 0))
        small.create(document=one).write(np.ascontiguousarray(made))
        assert store.get(key) == small.get(keys(small)[0]), key


@pytest.mark.parametrize("inner", INNERS)
@pytest.mark.parametrize("front", [f for f in FRONTS if "delta" in f and "turned" not in f])
def test_zarr_python_reads(context, rng, tmp_path, front, inner):
    if front.startswith("scaled") and not peers.ZARR_AT_LEAST_3_3:
        pytest.skip(f"zarr-python {zarr.__version__} lacks scale_offset")
    dtype = FRONTS[front][1]
    document, _ = documents(front, inner, 5)
    cases.put_document(tmp_path, document)
    array = context.store(str(tmp_path)).open()
    data = values(rng, dtype) + np.array(5, dtype)
    array.write(data)
    cases.same_bits(peers.read(peers.PYTHON, tmp_path), data)
    array.write(data[2:10, 5:20] * 2, Selection.dims(SHAPE, slice(2, 10), slice(5, 20)))
    cases.same_bits(peers.read(peers.PYTHON, tmp_path), array.read(dtype))


LINES = {  # numcodecs flattens what it encodes: zarr-python writes what is flat already
    "delta": ("int32", "i4", [codec("numcodecs.delta", dtype="<i4")], 24),
    "narrow": ("int64", "i8", [codec("numcodecs.delta", dtype="<i8", astype="<i4")], 24),
    "bits": ("bool", "?", [codec("numcodecs.packbits")], 4),
}


@pytest.mark.parametrize("inner", INNERS)
@pytest.mark.parametrize("line", LINES)
def test_zarr_python_both_ways(context, rng, tmp_path, line, inner):
    name, dtype, front, length = LINES[line]
    end = PLAIN if line == "bits" else LITTLE
    fill = False if line == "bits" else 3
    document = cases.document_v3(name, fill, front + INNERS[inner]([length // 2], end), (100,), (24,))
    data = np.repeat(rng.integers(0, 2, 25), 4).astype(dtype)
    data[10:40] = 3 if dtype != "?" else False
    dumps = []
    for folder, first in ((tmp_path / "theirs", True), (tmp_path / "ours", False)):
        cases.put_document(folder, document)
        store = context.store(str(folder))
        array = store.open()
        if first:
            peers.write(peers.PYTHON, folder, data)
        else:
            array.write(data)
        cases.same_bits(array.read(dtype), data)
        cases.same_bits(array.read(dtype, pipeline="serial"), data)
        cases.same_bits(peers.read(peers.PYTHON, folder), data)
        dumps.append({k: v for k, v in store.dump().items() if k != "zarr.json"})
        part = np.ascontiguousarray(data[::-1][30:71])
        if first:  # and each goes on where the other was
            array.write(part, Selection.dims((100,), slice(30, 71)))
        else:
            peers.open_zarr(peers.PYTHON, folder, "r+")[30:71] = part
        expected = data.copy()
        expected[30:71] = part
        cases.same_bits(array.read(dtype), expected)
        cases.same_bits(peers.read(peers.PYTHON, folder), expected)
    if inner in ("raw", "crc"):
        assert {k: len(v) for k, v in dumps[0].items()} == {k: len(v) for k, v in dumps[1].items()}


@pytest.mark.parametrize("front", ["delta", "delta wider", "reshape"])
def test_missing_inner_chunks(context, rng, tmp_path, front):
    """Inner chunks that are not there are the fill value as the codecs in front encoded it, so
    that a shard may have none at all and not be missing."""
    document, _ = documents(front, "raw", 5)
    dtype, after = FRONTS[front][1:]
    cases.put_document(tmp_path, document)
    store = context.store(str(tmp_path))
    array = store.open()
    data = np.arange(np.prod(SHAPE)).reshape(SHAPE).astype(dtype)
    array.write(data)
    value, n = bytearray(store.get("c/0/0")), int(np.prod(after(np.ones(SHARD, dtype)).shape)) // \
        int(np.prod(inner_shape(after(np.ones(SHARD, dtype)).shape)))
    for gone in (1, n):
        table = bytearray(value[-4 - 16 * n:-4])
        table[:16 * gone] = MISSING * gone
        store.put("c/0/0", bytes(value[:-4 - 16 * n]) + bytes(table) + cases_crc(table))
        got = array.read(dtype)
        assert not np.array_equal(got, data)
        cases.same_bits(array.read(dtype, pipeline="serial"), got)
        if front != "reshape":
            cases.same_bits(peers.read(peers.PYTHON, tmp_path), got)
        assert array.verify() == []
    steps = np.arange(5, 5 + 5 * 96, 5).reshape(SHARD) if front != "reshape" else np.full(SHARD, 5)
    cases.same_bits(got[:8, :12], steps.astype(dtype))  # nothing but an index
    array.write(np.ascontiguousarray(got[:8, :12]), Selection.dims(SHAPE, slice(0, 8), slice(0, 12)))
    if front == "reshape":
        assert "c/0/0" not in store.keys()
    else:
        assert len(store.get("c/0/0")) == 16 * n + 4
    cases.same_bits(array.read(dtype), got)


def cases_crc(data):
    from google_crc32c import value
    return struct.pack("<I", value(bytes(data)))


def test_empty_chunks(context):
    """Stored or not, as the caller wants it."""
    document, _ = documents("delta", "raw", 5)
    store = context.store()
    array = store.create(document=document)
    fill = np.full(SHAPE, 5, "i4")
    array.write(fill)
    assert keys(store) == []
    array.write(fill, empty_chunks=2)
    sizes = {len(store.get(k)) for k in keys(store)}
    assert sizes == {96 * 4 + 4 * 16 + 4}
    cases.same_bits(array.read("i4"), fill)
    steps = np.arange(5, 5 * 23 * 26 + 5, 5).reshape(SHAPE).astype("i4")
    array.write(steps)
    cases.same_bits(array.read("i4"), steps)
    assert min(len(store.get(k)) for k in keys(store)) < 452  # differences of 5 all over
    array.write(np.zeros(SHAPE, "i4"))
    cases.same_bits(array.read("i4"), np.zeros(SHAPE, "i4"))


def test_inside(context, rng):
    """Shards of shards of which the inner ones are whole, behind what works element by element."""
    whole = [codec("numcodecs.delta", dtype="<i4"), sharding((2, 3), [LITTLE, zstd()])]
    document = cases.document_v3("int32", 4, [codec("scale_offset", offset=4), sharding((4, 6), whole), gzip()],
                                 SHAPE, SHARD)
    store, serial = context.store(), context.store()
    array, other = store.create(document=document), serial.create(document=document)
    assert array.chunks == (4, 6) and array.write_chunks == SHARD
    data = values(rng, "i4") + 4
    array.write(data.astype("i4"))
    other.write(data.astype("i4"), pipeline="serial", memory="fake")
    assert store.dump() == serial.dump()
    data = data.astype("i4")
    array.write(np.ascontiguousarray(data[5:9, 3:20] * 2), Selection.dims(SHAPE, slice(5, 9), slice(3, 20)))
    data[5:9, 3:20] *= 2
    for memory in ("host", "fake"):
        for pipeline in ("waves", "serial"):
            cases.same_bits(array.read("i4", memory=memory, pipeline=pipeline), data)
    stats = Stats()
    array.read("i4", Selection.dims(SHAPE, slice(0, 4), slice(0, 6)), stats=stats)
    assert stats.chunks_done == 1, stats
    assert array.verify() == []


def test_what_is_told(context, rng):
    document, _ = documents("delta", "nested")
    store = context.store()
    array = store.create(document=document)
    array.write(values(rng, "i4"))
    assert "decoded whole: numcodecs.delta in front of sharding_indexed" in array.explain()
    assert array.explain(as_json=True)["whole_shard_codec"] == "numcodecs.delta"
    assert "-> numcodecs.delta@cpu.zarrc -> sharding_indexed@cpu.zarrc" in array.explain(write=True)
    listed = array.chunk_list(CHUNKS_INNER)
    assert len(listed) == len(keys(store))
    assert array.chunk_encoded((0, 0)) == store.get("c/0/0")
    value = bytearray(store.get("c/1/1"))
    value[-6] ^= 1
    store.put("c/1/1", bytes(value))
    (fault,) = array.verify()
    assert "c/1/1" in str(fault)
    with pytest.raises(ZarrcError, match="c/1/1.*shard index") as problem:
        array.read("i4")
    assert problem.value.code == "CORRUPT"


def test_wrong_inner_chunk(context, rng):
    document, _ = documents("reshape", "crc")
    store = context.store()
    array = store.create(document=document)
    data = values(rng, "i4")
    data[0, 0] = 9
    array.write(data)
    value = bytearray(store.get("c/0/0"))
    value[0] ^= 1
    store.put("c/0/0", bytes(value))
    with pytest.raises(ZarrcError, match=r"c/0/0.*chunk \[0,0,0\] of the shard.*crc32c"):
        array.read("i4")
    with pytest.raises(ZarrcError, match=r"chunk \[0,0,0\] of the shard"):  # nor is it changed
        array.write(data[:1, :1].copy(), Selection.dims(SHAPE, slice(0, 1), slice(0, 1)))
    assert store.get("c/0/0") == bytes(value)


TEXTS = ["", "a", "fü", "x" * 300, "gone"]


@pytest.mark.parametrize("behind", [
    [sharding((5,), [codec("vlen-utf8"), zstd()])],
    [sharding((10,), [sharding((5,), [codec("vlen-utf8")]), zstd()], location="start"), gzip()],
    [sharding((5,), [transpose(0), codec("vlen-utf8"), CRC])]])
def test_texts(context, rng, behind):
    document = cases.document_v3("string", "gone", [codec("reshape", shape=[20])] + behind, (9, 11), (4, 5))
    one = cases.document_v3("string", "gone", behind, (20,), (20,))
    model = np.full((9, 11), b"gone", object)
    stores = [context.store(), context.store()]
    arrays = [s.create(document=document) for s in stores]
    for box in ((slice(0, 9), slice(0, 11)), (slice(2, 7), slice(3, 8)), (slice(8, 9), slice(0, 1))):
        part = rng.choice([t.encode() for t in TEXTS], model[box].shape).astype(object)
        model[box] = part
        for array, pipeline in zip(arrays, ("waves", "serial")):
            array.write_vlen(list(part.reshape(-1)), Selection.dims((9, 11), *box), pipeline=pipeline)
            assert array.read_vlen(pipeline=pipeline) == list(model.reshape(-1))
    assert stores[0].dump() == stores[1].dump()
    for key in keys(stores[0]):
        y, x = (int(n) for n in key.split("/")[1:])
        chunk = np.full((4, 5), b"gone", object)
        part = model[4 * y:4 * y + 4, 5 * x:5 * x + 5]
        chunk[:part.shape[0], :part.shape[1]] = part
        small = context.store()
        small.create(document=one).write_vlen(list(chunk.reshape(-1)))
        assert stores[0].get(key) == small.get("c/0")


def test_many_large_texts(context):
    """More than one block of what elements point to; and a limit for all of them together."""
    document = cases.document_v3("string", "", [codec("reshape", shape=[64]),
                                                sharding((1,), [codec("vlen-utf8"), zstd()])], (8, 8), (8, 8))
    texts = [bytes([65 + i % 26]) * (i * i * 7) for i in range(64)]
    store = context.store()
    array = store.create(document=document)
    array.write_vlen(texts)
    assert array.read_vlen() == texts
    value = store.get("c/0/0")
    small = Context(limits=Limits(variable_chunk_bytes=200000))
    other = small.store()
    other.create(document=document)
    other.put("c/0/0", value)
    with pytest.raises(ZarrcError, match="limit variable_chunk_bytes") as problem:
        other.open().read_vlen()
    assert problem.value.code == "LIMIT"


def test_a_million_small_ones(rng):
    """Bounds that add up to more than a chunk may have are no reason to refuse one."""
    context = Context(limits=Limits(chunk_bytes=16 << 20))
    shape = (1024, 1024)
    inner = [PLAIN, zstd(checksum=True), gzip(), *[codec("numcodecs.base64")] * 4]
    document = cases.document_v3("uint8", 0, [codec("reshape", shape=[-1]), sharding((1,), inner)], shape, shape)
    store = context.store()
    array = store.create(document=document)
    data = np.zeros(shape, "u1")
    data[::100, ::50] = rng.integers(0, 9, data[::100, ::50].shape)
    array.write(data)
    cases.same_bits(array.read("u1"), data)


def texts(n, length, seed=1):
    """That no compressor makes any shorter than half."""
    letters = np.random.default_rng(seed).choice(list(b"0123456789abcdef"), (n, length)).astype("u1")
    return [row.tobytes() for row in letters]


VLEN = {
    "zstd": [codec("vlen-utf8"), zstd()],
    "gzip": [codec("vlen-utf8"), gzip()],
    "crc32c": [codec("vlen-utf8"), CRC],
    "base64": [codec("vlen-utf8"), codec("numcodecs.base64")],
    "lz4": [codec("vlen-utf8"), codec("numcodecs.lz4")],
    "zarrs.vlen": [codec("zarrs.vlen", data_codecs=[PLAIN, zstd()], index_codecs=[LITTLE, gzip()],
                         index_data_type="uint32")],
    "zarrs.vlen in shards": [codec("zarrs.vlen", data_codecs=[PLAIN, CRC], index_data_type="uint64",
                                   index_codecs=[codec("reshape", shape=[-1]), sharding((1,), [LITTLE, gzip()])])],
}


@pytest.mark.parametrize("pipeline", ("waves", "serial"))
@pytest.mark.parametrize("dtype", ("string", "variable_length_bytes"))
@pytest.mark.parametrize("inner", VLEN)
def test_longer_than_guessed(context, dtype, inner, pipeline):
    """Encoders get the room that they are promised, however little the shard's buffer has at first."""
    inner = json.loads(json.dumps(VLEN[inner]).replace("vlen-utf8", "vlen-utf8" if dtype == "string" else "vlen-bytes"))
    document = cases.document_v3(dtype, "", [codec("reshape", shape=[16]), sharding((1,), inner)], (4, 4), (4, 4))
    data = texts(16, 3000)
    array = context.store().create(document=document)
    array.write_vlen(data, pipeline=pipeline)
    assert array.read_vlen(pipeline=pipeline) == data


def test_much_in_front_of_texts(context):
    document = cases.document_v3(
        "string", "", [transpose(1, 0), sharding((6, 4), [
            codec("reshape", shape=[-1]), codec("reshape", shape=[4, 1, 6]),
            sharding((2, 1, 6), [codec("zarrs.squeeze"), codec("zarrs.vlen_v2"),
                                 cases.blosc("zstd", "noshuffle", 1), zstd()])])], (8, 12), (8, 12))
    data = texts(96, 2000)
    array = context.store().create(document=document)
    array.write_vlen(data)
    assert array.read_vlen() == data


@pytest.mark.parametrize("codecs", [
    [sharding((1,), [PLAIN, codec("numcodecs.bz2")]), zstd()],
    [sharding((1,), [PLAIN, gzip(), gzip(), gzip()]), zstd()],
    [sharding((1,), [PLAIN, *[codec("numcodecs.base64")] * 4])]])
def test_many_that_grow(rng, codecs):
    """Inner chunks whose codecs make much more of them than they are; also where that is over chunk_bytes."""
    small = Context(limits=Limits(chunk_bytes=1 << 16))
    for shape in ((16, 16), (128, 64)):
        document = cases.document_v3("uint8", 0, [codec("reshape", shape=[-1]),
                                                  sharding((shape[0] * shape[1] // 2,), codecs)], shape, shape)
        array = small.store().create(document=document)
        for data in (np.full(shape, 7, "u1"), rng.integers(0, 9, shape).astype("u1")):
            array.write(data)
            cases.same_bits(array.read("u1"), data)
            cases.same_bits(array.read("u1", pipeline="serial"), data)


RECTILINEAR = {
    "squeeze": ((2, 12), [[1, 1], [4, 8]], [codec("zarrs.squeeze"), sharding((4,), [LITTLE])]),
    "flat": ((6, 8), [[2, 4], [4, 4]], [codec("reshape", shape=[-1]), sharding((8,), [LITTLE, zstd()])]),
    "turned behind": ((6, 8), [[2, 4], [4, 4]], [codec("reshape", shape=[2, 2, -1]), transpose(2, 0, 1),
                                                 sharding((1, 2, 2), [LITTLE])]),
    "turned in front": ((6, 8), [[2, 4], [4, 4]], [transpose(1, 0), codec("reshape", shape=[-1]),
                                                   sharding((4,), [LITTLE])]),
    "delta": ((6, 8), [[2, 4], [4, 4]], [codec("numcodecs.delta", dtype="<i4"), sharding((2, 4), [LITTLE])]),
}


def rectilinear(shape, edges, codecs):
    document = cases.document_v3("int32", 0, codecs, shape, shape)
    document["chunk_grid"] = {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": edges}}
    return document


@pytest.mark.parametrize("row", RECTILINEAR)
def test_chunks_of_many_shapes(context, rng, row):
    """Edges need not be multiples of what the shard's inner chunk has behind other codecs."""
    shape, edges, codecs = RECTILINEAR[row]
    array = context.store().create(document=rectilinear(shape, edges, codecs))
    data = rng.integers(1, 100, shape).astype("i4")
    array.write(data)
    for pipeline in ("waves", "serial"):
        cases.same_bits(array.read("i4", pipeline=pipeline), data)
    assert array.verify() == []


def test_chunks_that_do_not_fit(context):
    """Where a codec changes the shape each chunk says so itself; delta keeps it, so that the grid is checked."""
    shape, edges, codecs = (2, 10), [[1, 1], [4, 6]], RECTILINEAR["squeeze"][2]
    array = context.store().create(document=rectilinear(shape, edges, codecs))
    with pytest.raises(ZarrcError, match="does not divide"):
        array.write(np.ones(shape, "i4"))
    with pytest.raises(ZarrcError, match="multiple"):
        context.store().create(document=rectilinear((5, 8), [[2, 3], [4, 4]], RECTILINEAR["delta"][2]))


@pytest.mark.parametrize("whole", [True, False])
def test_limit_of_inner_chunks(context, rng, whole):
    """Also for shards inside codecs: of a shard's index here, and of a mask."""
    few = Context(limits=Limits(chunks_per_shard=4))
    if whole:
        document = cases.document_v3(
            {"name": "zarrs.optional", "configuration": {"name": "uint16", "configuration": {}}}, None,
            [codec("zarrs.optional", mask_codecs=[sharding((1,), [PLAIN])], data_codecs=[LITTLE])], (12,), (12,))
    else:
        document = cases.document_v3("string", "", [codec(
            "zarrs.vlen", data_codecs=[PLAIN], index_data_type="uint32",
            index_codecs=[sharding((1,), [LITTLE])])], (12,), (12,))
    context.store().create(document=document)
    with pytest.raises(ZarrcError, match="limit chunks_per_shard") as problem:
        few.store().create(document=document).explain()
    assert problem.value.code == "LIMIT"


def test_limit(context):
    """The shard, not the inner chunk, is what limits are for."""
    document, _ = documents("delta", "raw")
    few = Context(limits=Limits(chunk_bytes=300))
    array = few.store().create(document={**document, "codecs": document["codecs"][1:]})
    array.read("i4")
    store = few.store()
    store.put("zarr.json", json.dumps(document).encode())
    with pytest.raises(ZarrcError, match="limit chunk_bytes"):
        store.open().read("i4")


def test_inside_another_codec(context, rng):
    """A mask of an optional type in shards of its own."""
    document = cases.document_v3(
        {"name": "zarrs.optional", "configuration": {"name": "uint16", "configuration": {}}}, None,
        [codec("zarrs.optional", mask_codecs=[sharding((4,), [PLAIN, CRC])], data_codecs=[LITTLE])], (24,), (12,))
    store = context.store()
    array = store.create(document=document)
    dtype = np.dtype([("v", "u2"), ("m", "u1")])
    data = np.zeros(24, dtype)
    data["m"] = rng.integers(0, 2, 24)
    data["v"] = rng.integers(1, 9, 24) * data["m"]
    array.write(data.view("V3"))
    assert array.read("V3").tobytes() == data.tobytes()
    masks, values = struct.unpack("<QQ", store.get("c/0")[:16])
    assert masks <= 3 * 8 + 3 * 16 + 4 and values == 2 * data["m"][:12].sum()
