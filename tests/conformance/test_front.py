"""Codecs that compute element by element in front of shards: zarr-python decodes such shards
whole, zarrc only the inner chunks it needs. A missing inner chunk reads as the fill value that
went through the codecs, a missing shard as the fill value itself."""
import warnings

import numpy as np
import pytest

import cases
import peers
from cases import LITTLE, PLAIN, gzip, sharding, transpose, zstd
from zarrc_abi import FAKE, Stats
from zarrc_selection import Selection

pytestmark = peers.needs_zarr_3_3("lacks cast_value and scale_offset")
try:
    import cast_value_rs  # noqa: F401  zarr-python's cast_value needs it
except ImportError:
    pytest.skip("cast-value-rs is not installed", allow_module_level=True)

UNWRITTEN = {"fixed", "fixed at rest"}  # zarr-python flattens the shard and then cannot cut it
SHAPE, SHARD, INNER = (23, 26), (8, 12), (2, 3)


def codec(name, **config):
    return {"name": name, "configuration": config}


SCALE = codec("scale_offset", offset=10.0, scale=10.0)
CAST = codec("cast_value", data_type="int16", out_of_range="clamp")
FRONTS = {  # codecs, and whether a missing inner chunk reads as something else than the fill value
    "scale": ([SCALE], 12.5, False),
    "scale cast": ([SCALE, CAST], 12.5, False),
    "turned": ([SCALE, transpose(1, 0), CAST], 12.5, False),
    "cast": ([codec("cast_value", data_type="int8", out_of_range="clamp")], 3.0, False),
    "NaN": ([codec("cast_value", data_type="float32")], "NaN", False),
    "fixed": ([codec("numcodecs.fixedscaleoffset", dtype="<f8", astype="<f8", offset=10, scale=8)], 11.0, True),
    "fixed at rest": ([codec("numcodecs.fixedscaleoffset", dtype="<f8", astype="<f8", offset=0, scale=8)], 0.0, False),
    "quantize": ([codec("numcodecs.quantize", dtype="<f8", astype="<f8", digits=1)], 7.25, False),
    "astype": ([codec("numcodecs.astype", encode_dtype="<f4", decode_dtype="<f8")], 1.0, False),
    "bitround": ([codec("numcodecs.bitround", keepbits=4)], 1.2345, True),
}
INNERS = {
    "raw": lambda plain: [sharding(INNER, [plain])],
    "zstd": lambda plain: [sharding(INNER, [plain, zstd()], location="start")],
    "wrapped": lambda plain: [sharding(INNER, [plain]), gzip()],
    "nested": lambda plain: [sharding((4, 6), [sharding(INNER, [plain, zstd()])])],
}


def make_document(front, inner, fill=None):
    codecs, own, _ = FRONTS[front]
    plain = PLAIN if front == "cast" else LITTLE
    shard = tuple(reversed(SHARD)) if front == "turned" else SHARD
    return cases.document_v3("float64", own if fill is None else fill, codecs + INNERS[inner](plain), SHAPE,
                             (24, 24) if front == "turned" else shard)


BOXES = [(slice(0, 8), slice(0, 12)),  # a shard
         (slice(9, 11), slice(1, 3)),  # some of an inner chunk, and the rest is missing
         (slice(5, 21), slice(20, 25)),
         (slice(22, 23), slice(0, 26)),
         (slice(3, 4), slice(3, 12))]


def full_array(array, fill):
    return np.full(SHAPE, float(fill) if fill != "NaN" else np.nan)


def values(rng):
    return np.round(rng.uniform(-11, 11, SHAPE), 1)


def ours(store, every=True):
    array = store.open()
    got = array.read("f8")
    for memory, pipeline in (("host", "serial"), ("fake", "waves"), ("fake", "serial"))[:3 if every else 1]:
        stats = Stats()
        cases.same_bits(array.read("f8", memory=memory, pipeline=pipeline, stats=stats), got)
        assert stats.chunks_done == stats.chunks_total, stats
    part = Selection.dims(SHAPE, slice(1, 22, 3), slice(25, 2, -2))
    cases.same_bits(array.read("f8", part), np.ascontiguousarray(got[1:22:3, 25:2:-2]))
    assert array.verify() == []
    return got


def same_numbers(a, b):
    """NaN need not have the same bits: cast_value says nothing of them."""
    np.testing.assert_array_equal(a, b)


def write_theirs(folder, box, data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peers.open_zarr(peers.PYTHON, folder, "r+")[box] = data[box]


def write_ours(store, box, data, **options):
    store.open().write(np.ascontiguousarray(data[box]), Selection.dims(SHAPE, *box), **options)


@pytest.mark.parametrize("inner", INNERS)
@pytest.mark.parametrize("front", FRONTS)
def test_both_ways(context, rng, tmp_path, front, inner):
    document, data = make_document(front, inner), values(rng)
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    stores = {}
    for folder in (theirs, mine):
        cases.put_document(folder, document)
        stores[folder] = context.store(str(folder))
    serial = context.store("memory:")
    serial.create(document=document)
    alike = not FRONTS[front][2]  # else what they rewrite with all of a shard is rounded once more
    same_numbers(ours(stores[mine]), peers.read(peers.PYTHON, theirs))  # nothing is there
    for box in BOXES:
        write_ours(stores[mine], box, data)
        write_ours(serial, box, data, pipeline="serial")
        same_numbers(ours(stores[mine], every=False), peers.read(peers.PYTHON, mine))
        if front in UNWRITTEN:
            continue
        write_theirs(theirs, box, data)
        same_numbers(ours(stores[theirs], every=False), peers.read(peers.PYTHON, theirs))
        if alike:
            same_numbers(peers.read(peers.PYTHON, mine), peers.read(peers.PYTHON, theirs))
    ours(stores[mine])
    ours(stores[theirs])
    assert stores[mine].dump() == {k: v for k, v in serial.dump().items() if k != "zarr.json"} | {
        "zarr.json": stores[mine].get("zarr.json")}
    other = values(rng)
    for box in BOXES:  # we go on where they were, and they where we were
        write_ours(stores[theirs], box, other)
        if front not in UNWRITTEN:
            write_theirs(mine, box, other)
    same_numbers(ours(stores[theirs]), peers.read(peers.PYTHON, theirs))
    same_numbers(ours(stores[mine]), peers.read(peers.PYTHON, mine))
    if alike and front not in UNWRITTEN:
        same_numbers(ours(stores[mine], every=False), ours(stores[theirs], every=False))


@pytest.mark.parametrize("inner", INNERS)
@pytest.mark.parametrize("front", FRONTS)
def test_empty(context, rng, front, inner):
    """What has the fill value is not stored, and reads the same whether it is or not."""
    document, data = make_document(front, inner), values(rng)
    fill = full_array(None, FRONTS[front][1])
    store = context.store()
    array = store.create(document=document)
    array.write(fill)
    assert [k for k in store.keys() if k != "zarr.json"] == []
    array.write(data)
    keys = set(store.keys())
    missing = ours(store)  # of a missing inner chunk, below
    array.write(np.ascontiguousarray(fill[:8, :24]), Selection.dims(SHAPE, slice(0, 8), slice(0, 24)))
    if front != "turned":
        assert set(store.keys()) == keys - {"c/0/0", "c/0/1"}
        same_numbers(ours(store)[:8, :24], fill[:8, :24])
    same_numbers(ours(store)[8:], missing[8:])
    # Inner chunks: as they would be stored, or as they are missing: the same.
    array.write(data)
    box = (slice(2, 4), slice(3, 6))
    write_ours(store, box, fill)
    dropped = ours(store)
    write_ours(store, box, fill, empty_chunks=2)
    stored = ours(store)
    if not FRONTS[front][2]:
        same_numbers(dropped, stored)
    else:
        same_numbers(np.delete(dropped, np.s_[2:4], 0), np.delete(stored, np.s_[2:4], 0))


def test_lossy_missing(context):
    """A shard whose last inner chunk goes does not turn into another value."""
    document = make_document("fixed", "raw")  # missing in a shard: 11 / 8 + 10
    store = context.store()
    array = store.create(document=document)
    box = (slice(0, 2), slice(0, 3))
    data = np.full(SHAPE, 5.0)
    write_ours(store, box, data)
    before = array.read("f8")
    assert before[0, 0] == 5 and before[4, 4] == 11.375 and before[20, 20] == 11
    write_ours(store, box, np.full(SHAPE, 11.375))
    after = array.read("f8")
    assert after[0, 0] == after[4, 4] == 11.375 and after[20, 20] == 11
    assert len(store.get("c/0/0")) == 4 * 4 * 16 + 4  # nothing but its index
    cases.same_bits(array.read("f8", pipeline="serial"), after)


def test_device_and_ranges(context, rng):
    """Only the inner chunks that are wanted are read, on any memory."""
    document = make_document("scale cast", "raw")
    store = context.store("memory:", device_type=FAKE)
    array = store.create(document=document)
    array.write(values(rng))
    stats = Stats()
    array.read("f8", Selection.dims(SHAPE, slice(0, 2), slice(0, 3)), memory="fake", stats=stats)
    assert stats.chunks_done == 1 and stats.bytes_stored <= 2 * 3 * 2 + 4 * 4 * 16 + 4, stats
