"""The pipeline for zarr-python with chunks of different lengths, and arrays that grew."""
import tracemalloc

import numpy as np
import pytest
from pipelines import IS_NEW, enable_pipeline, fell_back, make_array, native_only, own, same, stores, zarr  # noqa: F401
from zarr.storage import MemoryStore

from zarrc import _batch, _core


@pytest.mark.skipif(not IS_NEW, reason="new in zarr-python 3.2")
def test_rectilinear_grids():
    with zarr.config.set({"array.rectilinear_chunks": True}):
        for chunks in ([[2, 5, 3], [4, 6]], [[5, 5], [10]], [[10], [3, 3, 4]]):
            z = zarr.create_array(MemoryStore(), shape=(10, 10), chunks=chunks, dtype="i4")
            ref = np.arange(100, dtype="i4").reshape(10, 10)
            z[...] = ref
            z[1:8:3, 2] = 7
            ref[1:8:3, 2] = 7
            same(z[...], ref)
            same(z.oindex[[9, 0], 3:], ref[[9, 0], 3:])
            native_only()
    z[0, 0] = 5  # the setting was of that time
    native_only()


@pytest.mark.skipif(not IS_NEW, reason="new in zarr-python 3.2")
@pytest.mark.parametrize("name", ["memory", "local", "other"])
def test_every_box_of_a_rectilinear_grid(tmp_path, name):
    """A write that ends in a longer chunk than those before it keeps the rest of that chunk."""
    with zarr.config.set({"array.rectilinear_chunks": True}):
        z = zarr.create_array(stores(tmp_path)[name](), shape=(6, 3), chunks=[[1, 1, 4], [2, 1]], dtype="i4")
    ref = np.zeros((6, 3), "i4")
    boxes = [np.s_[a:b, c:d] for a in range(6) for b in range(a + 1, 7) for c in range(3) for d in range(c + 1, 4)]
    for i, box in enumerate(boxes):
        z[...] = ref[...] = -1
        z[box] = ref[box] = i
        same(z[...], ref)
    native_only()


@pytest.mark.skipif(not IS_NEW, reason="new in zarr-python 3.2")
@pytest.mark.parametrize("name", ["memory", "local", "other"])
@pytest.mark.parametrize("columns", [[2, 3], 2], ids=["lists", "mixed"])
def test_rectilinear_arrays_that_grew(tmp_path, name, columns):
    """zarr-python adds a chunk for each growth, of which a pipeline of before does not learn."""
    given = {"shape": (6, 5), "chunks": [[1, 1, 4], columns], "dtype": "i4", "fill_value": -1}
    with zarr.config.set({"array.rectilinear_chunks": True}):
        z = zarr.create_array(stores(tmp_path)[name](), **given)
        with zarr.config.set({"codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline"}):
            other = zarr.create_array(MemoryStore(), **given)
        for n, m in ((9, 5), (14, 7), (10, 6), (15, 30), (3, 30), (40, 31)):
            z.resize((n, m))
            other.resize((n, m))
            same(z[...], other[...])
            rows = sorted({0, n // 2, n - 1})
            for i, box in enumerate((np.s_[n - 1:, :], np.s_[1::3, m - 2:], np.s_[-1:, m - 1:], np.s_[-1, 1], np.s_[n - 2:n - 1, 3:])):
                z[box] = other[box] = 100 * n + i
                same(z[n - 2:, 1::2], other[n - 2:, 1::2])
            z.oindex[rows, 1:] = other.oindex[rows, 1:] = 7
            z.vindex[rows, rows[:1] * len(rows)] = other.vindex[rows, rows[:1] * len(rows)] = 8
            same(z.oindex[rows, [0, m - 1]], other.oindex[rows, [0, m - 1]])
            same(z.vindex[rows[::-1], [m - 1] * len(rows)], other.vindex[rows[::-1], [m - 1] * len(rows)])
            same(z[...], other[...])
        native_only()


@pytest.mark.skipif(not IS_NEW, reason="new in zarr-python 3.2")
@pytest.mark.parametrize("name", ["memory", "local", "other"])
@pytest.mark.parametrize("value", [5, None], ids=["scalar", "array"])
@pytest.mark.parametrize("first, opened_as, then", [((6,), (3,), (6,)), ((6,), (3,), (5,)), ((6,), (0,), (3,)), ((0,), (0,), (1,)),
                                                    ((6, 3), (2, 3), (6, 3)), ((6, 3), (3, 0), (4, 2)), ((6,), (1,), (9,))])
def test_rectilinear_arrays_that_grew_within_their_edges(tmp_path, name, value, first, opened_as, then):
    """The lists of edges reach beyond the shape that a pipeline knows: nothing of a value may be lost there."""
    store = stores(tmp_path)[name]()
    with zarr.config.set({"array.rectilinear_chunks": True}):
        zarr.create_array(store, shape=first, chunks=[[2, 2, 2] if n == 6 else [max(n, 1)] for n in first], dtype="i4",
                          fill_value=-1).resize(opened_as)
        z = zarr.open_array(store)
        z.resize(then)
        wanted = np.full(then, value or 0, "i4") if value else np.arange(np.prod(then), dtype="i4").reshape(then)
        z[...] = value or wanted
        same(z[...], wanted)
        same(z[1::2], wanted[1::2])
        z.oindex[[0, then[0] - 1]] = 9
        wanted[[0, then[0] - 1]] = 9
        native_only()
        with own():
            same(zarr.open_array(store, mode="r")[...], wanted)


def test_a_selection_beyond_the_grid_is_not_for_the_library(tmp_path, monkeypatch):
    """Not even a value that would be repeated to fill less."""
    z = make_array(MemoryStore(), "i4", "v3")
    chosen = _batch.SelectedPart((slice(5), slice(4)), None, (6, 4), None)
    monkeypatch.setattr(_batch.Reader, "choose", lambda self: chosen)
    z[...] = 5
    same(z[...], np.full(z.shape, 5, "i4"))
    fell_back("selection beyond the chunk grid")


def draw_index(rng, n):
    """What to take of a dimension: most often a slice that jumps over chunks, else an index or a list."""
    kind = rng.integers(6)
    if kind == 0:
        return int(rng.integers(-n, n))
    if kind == 1:
        return rng.permutation(n)[:3].tolist()
    start, stop = sorted(rng.choice(n + 1, 2, replace=False).tolist())
    return slice(start, stop, int(rng.integers(1, 9)))


@pytest.fixture
def rectilinear():
    if not IS_NEW:
        pytest.skip("new in zarr-python 3.2")
    with zarr.config.set({"array.rectilinear_chunks": True}):
        yield


@pytest.mark.parametrize("name", ["memory", "local"])
def test_one_slice_that_jumps_over_a_new_chunk(tmp_path, rectilinear, name):
    z = zarr.create_array(stores(tmp_path)[name](), shape=(4,), chunks=[[4]], dtype="i4")
    for n in (6, 26):
        z.resize((n,))
    ref = np.arange(26, dtype="i4")
    z[...] = ref
    for key in (np.s_[3::5], np.s_[2:24:6], np.s_[3::22], np.s_[1::24]):
        same(z[key], ref[key])
    z[3::5] = ref[3::5] = 100
    same(z[...], ref)
    native_only()


@pytest.mark.parametrize("name", ["memory", "local"])
@pytest.mark.parametrize("seed", range(9))
def test_slices_that_jump_over_new_chunks(tmp_path, rectilinear, name, seed):
    """Each growth adds a chunk of another length, of which a batch that does not meet it tells nothing."""
    rng = np.random.default_rng(seed)
    ndim = 1 + seed % 3
    shape = [4, 3, 5][:ndim]
    chunks = [[4], [1, 2], [5] if seed < 6 else 2][:ndim]
    z = zarr.create_array(stores(tmp_path)[name](), shape=tuple(shape), dtype="i4", fill_value=-1, chunks=chunks)
    for _ in range(4):
        shape = [n + int(rng.integers(1, 8)) for n in shape]
        z.resize(tuple(shape))
        ref = np.arange(np.prod(shape), dtype="i4").reshape(shape)
        z[...] = ref
        for i in range(12):
            key = tuple(draw_index(rng, n) for n in shape)
            every = np.ix_(*(np.atleast_1d(np.arange(n)[one]) for one, n in zip(key, shape)))
            kept = tuple(0 if isinstance(one, int) else slice(None) for one in key)
            of, has_list = (z.oindex, True) if any(isinstance(one, list) for one in key) else (z, False)
            same(np.asarray(of[key]), ref[every][kept])
            if not has_list or not any(isinstance(one, int) for one in key):
                of[key] = ref[every][kept] + 1000
                ref[every] += 1000
            same(z[...], ref)
    native_only()


def test_chunks_that_a_slice_meets_are_counted_by_their_edges():
    """However long it is: its elements have no list."""
    for seed in range(20):
        random = np.random.default_rng(seed)
        edges = random.integers(1, 9, 7).tolist()
        grid = _batch.Grid((edges,))
        start, stop = sorted(random.choice(sum(edges) + 1, 2, replace=False).tolist())
        assert grid.count_met(0, start, stop - start) == len(set(np.repeat(np.arange(7), edges)[start:stop].tolist()))
    tracemalloc.start()
    try:
        assert _batch.Grid(([10**12] * 4,)).count_met(0, 3, 3 * 10**12) == 4 and tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_what_a_slice_selects_has_one_rule():
    """The pipeline and a Quick call it: elements, their place in the result, and the chunks that they meet."""
    for edge in range(1, 7):
        for start in range(2 * edge):
            for step in range(1, 2 * edge + 1):
                for count in range(1, 6):
                    elements = range(start, start + (count - 1) * step + 1, step)
                    inside, where = slice(start % edge, edge, step), slice(3, 3 + count)
                    found = _core.select_slice(inside, where, where, start - start % edge, edge)
                    assert found == (start, elements.stop, step, count, 3, len({one // edge for one in elements}))


@pytest.mark.parametrize("inside, where", [
    (slice(0, 4, -1), slice(0, 4)), (slice(4, 2), slice(0, 4)), (slice(-2, None), slice(0, 2)), (slice(10, 11), slice(0, 1)),
    (slice(0, 4), slice(0, 4, 2)), (slice(0, 4), slice(0, None)), (slice(0, 4), slice(4, 4)), (slice("a", "b"), slice(0, 4)),
    (slice(0, 4, 2**62), slice(0, 4)), (2, slice(0, 1)), (slice(0, 4), 2)])
def test_slices_that_the_rule_refuses(inside, where):
    assert _core.select_slice(inside, where, where, 0, 10) is None
    assert _core.select_slice(slice(0, 4), slice(0, 4), slice(0, 4), 2**62, 10) is None
