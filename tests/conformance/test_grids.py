"""Chunk grids whose chunks differ in shape, and key encodings with suffixes: both directions,
both memories, both pipelines; what zarr-python does with edges when arrays grow and shrink."""
import json
import math

import numpy as np
import pytest
import zarr

import both_ways
import cases
import peers
from cases import BIG, CRC, LITTLE, gzip, sharding, transpose, zstd
from zarrc_abi import CHUNKS_INNER, Limits, ZarrcError
from zarrc_ctypes import Context
from zarrc_selection import Selection

needs_rectilinear = peers.needs_rectilinear

GRIDS = {
    "one number": ((20,), [6]),
    "list": ((7,), [[2, 3, 2]]),
    "counts": ((18,), [[[6, 3]]]),
    "mixed": ((9,), [[[2, 4], 1]]),
    "overhang": ((9,), [[4, 4, 40]]),
    "chunks behind the end": ((9,), [[4, 5, 6, [7, 2]]]),
    "one chunk": ((5,), [[9]]),
    "number beside list": ((9, 11), [4, [5, 1, 5]]),
    "3d": ((5, 9, 4), [[1, 4], [[3, 2], 2, 1], [[1, 4]]]),
    "empty": ((0,), [[4, 2]]),
    "empty inside": ((5, 0, 3), [[2, 3], [4], 2]),
    "many": ((400,), [[1, 2, 3, 4, 5, 6, 7, [8, 9], [1, 100], 200]]),
    "0d": ((), []),
}
CHAINS = {
    "bytes": lambda n: [LITTLE],
    "big": lambda n: [BIG, CRC],
    "zstd": lambda n: [LITTLE, zstd(1)],
    "transpose": lambda n: [transpose(*reversed(range(n))), LITTLE, gzip(1)],
}
# Edges of 2 and multiples of it, in every dimension.
SHARDED = {
    "one number": ((20,), [6]),
    "list": ((13,), [[2, 4, 8]]),
    "2d": ((9, 10), [[[4, 2], 2], [2, 6, 2]]),
    "3d": ((5, 9, 4), [[2, 4], [[2, 3], 8], 4]),
    "overhang": ((9, 3), [[4, 4, 40], [2, 2]]),
    "empty": ((0, 3), [[4, 2], [[2, 2]]]),
}
SHARDS = {
    "plain": lambda n: [sharding([2] * n, [LITTLE])],
    "ones": lambda n: [sharding([1] * n, [LITTLE])],
    "zstd start": lambda n: [sharding([2] * n, [LITTLE, zstd()], location="start")],
    "outer codec": lambda n: [sharding([2] * n, [LITTLE]), zstd()],
    "transposed": lambda n: [transpose(*reversed(range(n))), sharding([2] * n, [LITTLE, gzip()])],
    "nested": lambda n: [sharding([2] * n, [sharding([1] * n, [LITTLE, zstd()])])],
}


def rectilinear(edges):
    return {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": edges}}


def document(shape, grid, codecs, dtype="int16", fill=7):
    made = cases.document_v3(dtype, fill, codecs, shape, [1] * len(shape))
    made["chunk_grid"] = grid
    return made


def number_elements(shape, dtype="int16"):
    return np.arange(math.prod(shape)).reshape(shape).astype(dtype)


@needs_rectilinear
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("grid", GRIDS)
def test_rectilinear(context, rng, tmp_path, grid, chain):
    shape, edges = GRIDS[grid]
    both_ways.check(context, document(shape, rectilinear(edges), CHAINS[chain](len(shape))),
                    number_elements(shape), rng, tmp_path / "x")


@needs_rectilinear
@pytest.mark.parametrize("chain", SHARDS)
@pytest.mark.parametrize("grid", SHARDED)
def test_rectilinear_shards(context, rng, tmp_path, grid, chain):
    shape, edges = SHARDED[grid]
    both_ways.check(context, document(shape, rectilinear(edges), SHARDS[chain](len(shape))),
                    number_elements(shape), rng, tmp_path / "x")


@pytest.mark.parametrize("grid", GRIDS)
def test_what_it_is(context, grid):
    """Counts, extents and shapes against the edges written out."""
    shape, edges = GRIDS[grid]
    array = context.store().create(document=document(shape, rectilinear(edges), [LITTLE]))
    listed = [peers.expand_edges(e, n) for e, n in zip(edges, shape)]
    assert array.chunk_counts == tuple(len(e) for e in listed)
    alike = all(len(set(e)) <= 1 for e in listed)
    assert (array.chunks is not None) == alike and (array.write_chunks is not None) == alike
    assert array.chunk_grid["name"] == "rectilinear"
    for chunk in np.ndindex(*array.chunk_counts):
        origin = tuple(sum(e[:i]) for e, i in zip(listed, chunk))
        assert array.chunk_extent(*chunk) == (origin, tuple(e[i] for e, i in zip(listed, chunk)))
    if shape:
        with pytest.raises(ZarrcError, match="is not below"):
            array.chunk_extent(*array.chunk_counts)


@needs_rectilinear
def test_metadata_as_zarr_python_writes_it(context, tmp_path):
    edges = [[10, 10, 10, 5], [1, 2, 3, 4], 7, [9]]
    shape = (35, 10, 20, 9)
    with zarr.config.set(peers.RECTILINEAR):
        zarr.create_array(str(tmp_path / "a"), shape=shape, chunks=edges, dtype="u1", compressors=None)
    theirs = json.loads((tmp_path / "a" / "zarr.json").read_text())["chunk_grid"]
    store = context.store(str(tmp_path), create=False)
    array = store.open("a")
    assert array.chunk_grid == theirs
    again = store.create("b", shape, "uint8", chunk_grid=theirs)
    assert json.loads((tmp_path / "b" / "zarr.json").read_text())["chunk_grid"] == theirs
    again.write(number_elements(shape, "u1"))
    cases.same_bits(peers.read(peers.PYTHON, tmp_path / "b"), number_elements(shape, "u1"))


@needs_rectilinear
def test_shards_by_the_spec(context, tmp_path):
    """chunk_grid is the grid of the shards where chunk_shape is given, too."""
    store = context.store(str(tmp_path / "x"), create=True)
    array = store.create("", (10, 6), "int32", chunks=(2, 3), chunk_grid=rectilinear([[2, 8], [[3, 2]]]))
    assert array.chunks == (2, 3) and array.write_chunks is None
    array.write(number_elements((10, 6), "i4"))
    theirs = peers.open_zarr(peers.PYTHON, tmp_path / "x")
    assert theirs.chunks == (2, 3) and theirs.write_chunk_sizes == ((2, 8), (3, 3))
    cases.same_bits(theirs[...], number_elements((10, 6), "i4"))


# ---- growing and shrinking --------------------------------------------------------------------

@needs_rectilinear
@pytest.mark.parametrize("to", [(10,), (11,), (9,), (15,), (5,), (4,), (1,), (0,), (16,), (40,)])
def test_resize(context, tmp_path, to):
    """The same edges as zarr-python, and the same elements."""
    made = document((10,), rectilinear([[4, 1, [5, 2]]]), [LITTLE, zstd()])
    places = [tmp_path / "ours", tmp_path / "theirs"]
    for place in places:
        cases.put_document(place, made)
        peers.write(peers.PYTHON, place, number_elements((10,)))
    ours = context.store(str(places[0])).open()
    ours.resize(to)
    with zarr.config.set(peers.RECTILINEAR):
        peers.open_zarr(peers.PYTHON, places[1], "r+").resize(to)
        grids = [json.loads((p / "zarr.json").read_text())["chunk_grid"] for p in places]
        assert grids[0] == grids[1]
        assert both_ways.chunk_keys(p.name for p in (places[0] / "c").glob("*")) == \
            both_ways.chunk_keys(p.name for p in (places[1] / "c").glob("*"))
        kept = min(10, to[0])
        expected = np.concatenate([number_elements((10,))[:kept], np.full(to[0] - kept, 7, "i2")])
        cases.same_bits(ours.read("i2"), expected)
        cases.same_bits(peers.read(peers.PYTHON, places[0]), expected)
        assert ours.verify() == []


@needs_rectilinear
def test_append(context, tmp_path):
    store = context.store(str(tmp_path / "x"), create=True)
    array = store.create("", (5, 4), "int16", chunk_grid=rectilinear([[2, 3], [1, 3]]))
    data = number_elements((5, 4))
    array.write(data)
    for n in (1, 4, 2):
        more = np.full((n, 4), n, "i2")
        array.append(more)
        data = np.concatenate([data, more])
    assert array.chunk_grid["configuration"]["chunk_shapes"] == [[2, 3, 1, 4, 2], [1, 3]]
    cases.same_bits(array.read("i2"), data)
    cases.same_bits(peers.read(peers.PYTHON, tmp_path / "x"), data)


@needs_rectilinear
@pytest.mark.parametrize("codecs", [[sharding([4, 2], [LITTLE])], [transpose(1, 0), sharding([2, 4], [LITTLE, zstd()])]],
                         ids=["shards", "transposed"])
def test_growing_shards(context, tmp_path, codecs):
    """A new shard's edge is rounded up to whole inner chunks; the shape is what was asked for."""
    store = context.store(str(tmp_path / "x"), create=True)
    array = store.create(document=document((10, 4), rectilinear([[4, 8], [4]]), codecs))
    data = number_elements((10, 4))
    array.write(data)
    for n, edges in ((1, [4, [8, 1]]), (3, [4, 8, 4]), (2, [4, 8, 4]), (5, [4, 8, 4, 8])):
        more = np.full((n, 4), n, "i2")
        array.append(more)
        data = np.concatenate([data, more])
        assert array.shape == data.shape
        told = array.chunk_grid["configuration"]["chunk_shapes"][0]
        assert peers.expand_edges(told, data.shape[0]) == peers.expand_edges(edges, data.shape[0])
        cases.same_bits(array.read("i2"), data)
        cases.same_bits(store.open().read("i2"), data)
        cases.same_bits(peers.read(peers.PYTHON, tmp_path / "x"), data)
    array.resize((22, 7))
    assert array.chunk_grid["configuration"]["chunk_shapes"][1] in ([4, 4], [[4, 2]])
    grown = np.full((22, 7), 7, "i2")
    grown[:21, :4] = data
    cases.same_bits(array.read("i2"), grown)
    array.resize((3, 1))
    array.resize((22, 7))
    grown[3:], grown[:, 1:] = 7, 7
    cases.same_bits(array.read("i2"), grown)
    assert array.verify() == []
    with pytest.raises(ZarrcError, match="is not a multiple of the chunk's"):  # edges that are given are as given
        context.store().create(document=document((10, 4), rectilinear([[4, 6], [4]]), codecs))


def test_resize_of_a_stale_handle(context):
    """Another handle added an edge: the stored edges count, not those that this one knows."""
    store = context.store()
    array = store.create("", (4,), "int16", chunk_grid=rectilinear([[1, 3]]), fill_value=9)
    stale = store.open()
    array.resize((6,))
    array.write(number_elements((6,)))
    stale.resize((5,))
    assert stale.chunk_grid["configuration"]["chunk_shapes"] == [[1, 3, 2]]
    cases.same_bits(stale.read("i2"), number_elements((5,)))
    stale.resize((6,))
    cases.same_bits(stale.read("i2"), np.array([0, 1, 2, 3, 4, 9], "i2"))


@pytest.mark.parametrize("codecs", [[LITTLE], [LITTLE, zstd()], [sharding([1, 1], [LITTLE]), zstd()]])
def test_edges_over_the_limit(codecs):
    """An additional edge over the limit is refused before it is published. Existing small chunks
    can be read although others are too large."""
    small = Context(max_threads=2, limits=Limits(chunk_bytes=1000))
    store = small.store()
    array = store.create(document=document((10, 10), rectilinear([[4, 6], [10]]), codecs))
    array.write(number_elements((10, 10)))
    before = store.get("zarr.json")
    for shape in ((70, 10), (10, 2000)):
        with pytest.raises(ZarrcError, match="LIMIT.*limit chunk_bytes is 1000"):
            array.resize(shape)
    with pytest.raises(ZarrcError, match="LIMIT"):
        array.append(number_elements((60, 10)))
    assert store.get("zarr.json") == before
    array.resize((60, 10))  # 50 rows of 20 bytes
    array.resize((10, 10))
    # Written where the limit is another, or by others.
    big = document((75, 10), rectilinear([[4, 65, 6], [10]]), codecs)
    store = small.store()
    store.put("zarr.json", json.dumps(big).encode())
    array = store.open()
    for rows in ((0, 4), (69, 75)):
        sel = Selection.dims((75, 10), slice(*rows), slice(0, 10))
        data = number_elements((rows[1] - rows[0], 10))
        array.write(data, sel)
        for pipeline in ("waves", "serial"):
            cases.same_bits(array.read("i2", sel, pipeline=pipeline), data)
    with pytest.raises(ZarrcError, match="c/1/0.*limit chunk_bytes"):
        array.read("i2")
    assert "and larger" in array.explain()
    array.resize((76, 10))  # no edge larger than those that are there


# ---- bounded ------------------------------------------------------------------------------------

def test_bounded(context, rng, tmp_path):
    """No peer reads it: our own ways against each other, and the bytes of edge chunks."""
    grid = {"name": "zarrs.regular_bounded", "configuration": {"chunk_shape": [4, 4]}}
    data = number_elements((10, 7))
    dump = both_ways.write_every_way(context, document((10, 7), grid, [LITTLE]), data, rng, tmp_path / "x")
    assert dump["c/2/1"] == data[8:, 4:].tobytes()
    array = context.store(str(tmp_path / "x")).open()
    both_ways.read_every_way(array, data, rng)
    assert array.chunk_extent(2, 1) == ((8, 4), (2, 3))
    assert array.verify() == []
    with pytest.raises(ZarrcError, match="chunk 2 would have 4 elements instead of 2"):
        array.resize((12, 7))
    array.resize((8, 7))
    cases.same_bits(array.read("i2"), data[:8])


def test_bounded_shards(context, rng, tmp_path):
    grid = {"name": "zarrs.regular_bounded", "configuration": {"chunk_shape": [4, 8]}}
    data = number_elements((10, 12))
    made = document((10, 12), grid, [sharding([2, 4], [LITTLE, zstd()])])
    both_ways.write_every_way(context, made, data, rng, tmp_path / "x")
    array = context.store(str(tmp_path / "x")).open()
    both_ways.read_every_way(array, data, rng)
    assert len(array.chunk_list(CHUNKS_INNER)) == 15
    made["shape"] = [9, 12]
    with pytest.raises(ZarrcError, match="edge 1 of shard 2 in dimension 0 is not a multiple"):
        context.store().create(document=made)


# ---- parts -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("codecs", [[LITTLE], [LITTLE, zstd()], [sharding([1, 2], [LITTLE])]])
def test_parts_and_blocks(context, codecs):
    shape, edges = (9, 12), [[2, [3, 2], 40], [[4, 2], [2, 2]]]
    array = context.store().create(document=document(shape, rectilinear(edges), codecs))
    model = np.full(shape, 7, "i2")
    for chosen, at in [((slice(1, 4), slice(3, 9)), None), ((slice(8, 0, -3), slice(None, None, 5)), None),
                       (([0, 5, 8, 1], slice(2, 7)), np.ix_([0, 5, 8, 1], range(2, 7)))]:
        at = at or chosen
        values = np.arange(model[at].size, dtype="i2").reshape(model[at].shape) + 1
        array.write(values, Selection.dims(shape, *chosen))
        model[at] = values
        cases.same_bits(array.read("i2"), model)
    cases.same_bits(array.read("i2", Selection.select_blocks(array, slice(1, 3), -1)), model[2:8, 10:])
    cases.same_bits(array.read("i2", Selection.select_blocks(array, 3)), model[8:])
    cases.same_bits(array.read("i2", Selection.points(shape, [(8, 11), (0, 0), (4, 4)])),
                    np.array([model[8, 11], model[0, 0], model[4, 4]]))
    assert array.verify() == []


@needs_rectilinear
def test_encoded_chunks(context, tmp_path):
    """Read, written, erased and listed as they are stored; their sizes differ."""
    store = context.store(str(tmp_path / "x"), create=True)
    array = store.create("", (9,), "int16", chunk_grid=rectilinear([[2, 3, 4]]), codecs=[LITTLE],
                         fill_value=7)
    array.write(number_elements((9,)))
    assert [len(array.chunk_encoded((i,))) for i in range(3)] == [4, 6, 8]
    array.erase_chunk((1,))
    assert [row[:2] for row in array.chunk_list()] == [((0,), "c/0"), ((2,), "c/2")]
    cases.same_bits(array.read("i2"), np.array([0, 1, 7, 7, 7, 5, 6, 7, 8], "i2"))
    array.set_chunk_encoded((1,), np.array([1, 2, 3], "<i2").tobytes())
    cases.same_bits(peers.read(peers.PYTHON, tmp_path / "x"), np.array([0, 1, 1, 2, 3, 5, 6, 7, 8], "i2"))
    array.set_chunk_encoded((1,), bytes(8))
    with pytest.raises(ZarrcError, match="8 bytes"):
        array.read("i2")
    assert [key for _, key, _ in array.verify()] == ["c/1"]


def test_many_shapes(context, rng, tmp_path):
    """More shapes than are kept, several threads at once."""
    edges = [list(range(1, 121)), [[7, 2], 3]]
    shape = (sum(edges[0]), 17)
    made = document(shape, rectilinear(edges), [LITTLE, zstd()], "int32")
    array = context.store().create(document=made)
    data = rng.integers(0, 9, shape).astype("i4")
    array.write(data)
    for _ in range(3):
        cases.same_bits(array.read("i4"), data)
    assert array.verify() == []


def test_explain(context):
    array = context.store().create(document=document((9,), rectilinear([[2, 3, 4]]), [LITTLE]))
    text = array.explain()
    assert "3 of shape [4] and smaller" in text, text


# ---- keys --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("encoding, keys", [
    ({"name": "zarrs.default_suffix", "configuration": {"suffix": ".tif"}}, ["c/0/0.tif", "c/0/1.tif"]),
    ({"name": "zarrs.default_suffix", "configuration": {"suffix": ".tif", "separator": "."}},
     ["c.0.0.tif", "c.0.1.tif"]),
    ({"name": "suffix", "configuration": {"suffix": ".tiff", "base-encoding": {"name": "default"}}},
     ["c/0/0.tiff", "c/0/1.tiff"]),
    ({"name": "suffix", "configuration": {"suffix": ".shard.zip", "base_encoding": {"name": "v2"}}},
     ["0.0.shard.zip", "0.1.shard.zip"]),
])
def test_keys_with_suffixes(context, encoding, keys):
    """The examples of the proposal, which no other implementation reads."""
    store = context.store()
    array = store.create("", (2, 4), "uint8", chunks=(2, 2), codecs=[cases.PLAIN], key_encoding=encoding)
    array.write(number_elements((2, 4), "u1") + 1)
    assert both_ways.chunk_keys(store.keys()) == set(keys)
    assert [row[1] for row in array.chunk_list()] == keys
    assert store.open().verify() == []
    cases.same_bits(store.open().read("u1"), number_elements((2, 4), "u1") + 1)


# ---- refused --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("grid, codecs, text", [
    (rectilinear([[4, 5], [[3, 4]]]), [sharding([2, 3], [LITTLE])], "edge 5 of shard 1 in dimension 0"),
    (rectilinear([[4, 4], [[3, 4]]]), [LITTLE], "sum to 8, the dimension has length 9"),
    (rectilinear([[4, 0, 5], 3]), [LITTLE], "edge 0"),
    (rectilinear([[[2**62, 2**62]], 3]), [LITTLE], "2\\^63 or more"),
    ({"name": "rectangular", "configuration": {"chunk_shape": [[4, 5], 3]}}, [LITTLE], "rectangular"),
    ({"name": "rectilinear", "configuration": {"kind": "outline", "chunk_shapes": [3, 3]}}, [LITTLE], "outline"),
])
def test_refused(context, grid, codecs, text):
    with pytest.raises(ZarrcError, match=text):
        context.store().create(document=document((9, 12), grid, codecs))
