"""Irregular chunk grids on the command line: create, info, ls, reencode, append, resize."""
import numpy as np
import pytest
import zarr

import peers

EDGES = {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[2, [3, 2]], 4]}}
pytestmark = peers.needs_rectilinear


@pytest.fixture(autouse=True)
def rectilinear():
    with zarr.config.set({"array.rectilinear_chunks": True}):
        yield


def make(path, shape=(8, 10), chunks=([2, 3, 3], [4, 4, 2]), dtype="i4", **options):
    array = zarr.create_array(str(path), shape=shape, chunks=chunks, dtype=dtype, **options)
    array[...] = np.arange(np.prod(shape)).reshape(shape)
    return array[...]


def same(path, values):
    array = zarr.open_array(str(path), mode="r")
    np.testing.assert_array_equal(array[...], values)
    return array


def test_separators(zarrc, tmp_path):
    """`x` separates dimensions, as in 64x64; a count comes after `*`."""
    zarrc("create", tmp_path / "a", "--shape=64x32", "--dtype=int8", "--chunks=16x8")
    assert zarrc("info", "--json", tmp_path / "a").json["chunks"] == [16, 8]
    zarrc("create", tmp_path / "b", "--shape=8x10", "--dtype=int8", "--chunks=2+3*2x4")
    zarrc("create", tmp_path / "c", "--shape=8,10", "--dtype=int8", "--chunks=2+3*2,4")
    assert (tmp_path / "b/zarr.json").read_text() == (tmp_path / "c/zarr.json").read_text()
    zarrc("create", tmp_path / "d", "--shape=8x10", "--dtype=int8", "--chunks=2+3x2,4", code=2)  # three dimensions


def test_create_and_info(zarrc, tmp_path):
    zarr.create_group(str(tmp_path))
    zarrc("create", tmp_path / "a", "--shape=8,10", "--dtype=int32", "--chunks=2+3*2,4")
    array = zarr.open_array(tmp_path / "a", mode="r+")
    assert array.metadata.chunk_grid.to_dict() == {
        "name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": ([2, [3, 2]], 4)}}
    info = zarrc("info", "--json", tmp_path / "a").json
    assert info["chunks"] is None and info["shards"] is None and info["chunk_grid"] == EDGES
    text = zarrc("info", "--stats", tmp_path / "a").text
    assert "[[2,[3,2]],4]  9 of them" in text and "0 of 9 objects" in text
    assert "in [[2, [3, 2]], 4]" in zarrc("ls", "-l", tmp_path).text


def test_create_shards(zarrc, tmp_path):
    zarrc("create", tmp_path / "a", "--shape=8,10", "--dtype=int32", "--chunks=1,2", "--shards=2+3*2,4")
    array = zarr.open_array(tmp_path / "a", mode="r+")
    assert array.chunks == (1, 2) and array.write_chunk_sizes == ((2, 3, 3), (4, 4, 2))
    info = zarrc("info", "--json", tmp_path / "a").json
    assert info["chunks"] == [1, 2] and info["shards"] is None and info["chunk_grid"] == EDGES
    assert "[[2,[3,2]],4]  9 of them" in zarrc("info", tmp_path / "a").text


@pytest.mark.parametrize("options, text", [
    (["--chunks=2+3"], "edges of 1 dimensions for 2"),
    (["--chunks=2+,4"], "list of lengths"),
    (["--chunks=2x,4"], "list of lengths"),
    (["--chunks=2+2,4"], "sum to 4, the dimension has length 8"),
    (["--shards=2+6,4"], "--chunks must be given"),
    (["--chunks=2,2", "--shards=2+3*2,4"], "not a multiple"),
    (["--chunks=2+6,4", "--zarr-format=2"], "v2"),
])
def test_refused(zarrc, tmp_path, options, text):
    done = zarrc("create", tmp_path / "a", "--shape=8,10", "--dtype=int32", *options, code=None)
    assert done.code != 0 and text in done.err, done.err


def test_reencode(zarrc, tmp_path):
    values = make(tmp_path / "a")
    zarrc("reencode", "--verify", tmp_path / "a", tmp_path / "same")
    assert same(tmp_path / "same", values).metadata.chunk_grid == zarr.open_array(tmp_path / "a").metadata.chunk_grid
    zarrc("reencode", "--verify", "--chunks=3,3", tmp_path / "a", tmp_path / "regular")
    assert same(tmp_path / "regular", values).chunks == (3, 3)
    zarrc("reencode", "--verify", "--chunks=1+7,5*2", tmp_path / "regular", tmp_path / "edges")
    assert same(tmp_path / "edges", values).write_chunk_sizes == ((1, 7), (5, 5))
    zarrc("reencode", "--verify", "--chunks=1,2", "--shards=4*2,6+4", tmp_path / "a", tmp_path / "shards")
    assert same(tmp_path / "shards", values).write_chunk_sizes == ((4, 4), (6, 4))
    zarrc("reencode", "--verify", tmp_path / "shards", tmp_path / "shards2")
    assert same(tmp_path / "shards2", values).write_chunk_sizes == ((4, 4), (6, 4))
    zarrc("reencode", "--verify", "--shards=none", tmp_path / "shards", tmp_path / "chunks")
    assert same(tmp_path / "chunks", values).chunks == (1, 2)


def test_reencode_in_pieces(zarrc, tmp_path):
    """With less memory than the array needs, reencode copies boxes of whole chunks."""
    edges = [1, 700, 50, 300, 2, 447]
    values = make(tmp_path / "a", (1500, 1000), ([500, 1000], [1000]), "f8")
    zarrc("reencode", "--verify", "--mem=40M", f"--chunks={'+'.join(map(str, edges))},600+400",
          tmp_path / "a", tmp_path / "b")
    assert same(tmp_path / "b", values).write_chunk_sizes == (tuple(edges), (600, 400))


def test_copy_diff_cat(zarrc, tmp_path):
    values = make(tmp_path / "a")
    zarrc("cp", tmp_path / "a", tmp_path / "b")
    same(tmp_path / "b", values)
    zarrc("diff", tmp_path / "a", tmp_path / "b")
    zarrc("verify", tmp_path / "b")


def test_append_and_resize(zarrc, tmp_path):
    values = make(tmp_path / "a")
    more = np.full((5, 10), 7, "i4")
    np.save(tmp_path / "more.npy", more)
    zarrc("append", tmp_path / "a", tmp_path / "more.npy")
    same(tmp_path / "a", np.concatenate([values, more]))
    zarrc("resize", tmp_path / "a", "4,10")
    same(tmp_path / "a", values[:4])
