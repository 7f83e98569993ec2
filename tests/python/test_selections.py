"""Every selection means what NumPy means by it, for reads, writes and `out=`, in chunks, shards and
chunks that differ."""
import numpy as np
import pytest
from hypothesis import given, strategies as st

import zarrc
from zarrc import errors

SHAPE = (7, 5, 6)
LAYOUTS = {
    "chunks": dict(chunks=(3, 2, 4)),
    "shards": dict(chunks=(2, 1, 3), shards=(4, 3, 6)),
    "whole": dict(chunks=(7, 5, 6)),
    "rectilinear": dict(chunks=([3, 4], [1, 2, 2], [6])),
}


def values():
    return np.arange(np.prod(SHAPE), dtype="int16").reshape(SHAPE)


@pytest.fixture(scope="module", params=LAYOUTS)
def layout(request):
    array = zarrc.create_array("memory:", shape=SHAPE, dtype="int16", fill_value=-1, **LAYOUTS[request.param])
    array[...] = values()
    return request.param, array


def slices(n):
    bound = st.none() | st.integers(-n - 2, n + 2)
    return st.builds(slice, bound, bound, st.none() | st.integers(-3, 3).filter(bool))


def integers(n):
    return st.integers(-n, n - 1)


@st.composite
def basic_keys(draw):
    items = [draw(slices(n) | integers(n)) for n in SHAPE[:draw(st.integers(0, 3))]]
    if draw(st.booleans()) and len(items) < 3:
        items.insert(draw(st.integers(0, len(items))), ...)
        if items.index(...) < len(items) - 1:  # what follows it selects the last dimensions
            after = len(items) - 1 - items.index(...)
            items[-after:] = [draw(slices(n) | integers(n)) for n in SHAPE[-after:]]
    return tuple(items)


@st.composite
def orthogonal_keys(draw):
    def one(n):
        return draw(slices(n) | integers(n) | st.lists(integers(n), min_size=1, max_size=2 * n).map(np.array)
                    | st.lists(st.booleans(), min_size=n, max_size=n).map(np.array))
    return tuple(one(n) for n in SHAPE)


def orthogonal(array, key):
    """What oindex means, one dimension after the other."""
    dropped = 0
    for d, item in enumerate(key):
        array = array[(slice(None),) * (d - dropped) + (item,)]
        dropped += isinstance(item, int)
    return array


@st.composite
def points(draw):
    n = draw(st.integers(1, 20))
    return tuple(np.array(draw(st.lists(integers(length), min_size=n, max_size=n))) for length in SHAPE)


@given(key=basic_keys())
def test_read_basic(layout, key):
    expected = values()[key]
    for found in (layout[1][key], layout[1].get_basic_selection(key), layout[1].oindex[key]):
        assert np.shape(found) == expected.shape and np.array_equal(found, expected)
        assert found.dtype == expected.dtype


@given(key=orthogonal_keys())
def test_read_orthogonal(layout, key):
    assert np.array_equal(layout[1].oindex[key], orthogonal(values(), key))


@given(key=points())
def test_read_points(layout, key):
    expected = values()[key]
    assert np.array_equal(layout[1].vindex[key], expected)
    assert np.array_equal(layout[1][key], expected)
    assert np.array_equal(layout[1].get_coordinate_selection(key), expected)


@given(mask=st.lists(st.booleans(), min_size=210, max_size=210))
def test_read_mask(layout, mask):
    mask = np.array(mask).reshape(SHAPE)
    assert np.array_equal(layout[1].vindex[mask], values()[mask])
    assert np.array_equal(layout[1][mask], values()[mask])


@given(key=basic_keys(), order=st.sampled_from("CF"), swap=st.booleans(), flip=st.booleans())
def test_read_into(layout, key, order, swap, flip):
    """`out` may have any strides and byte order."""
    expected = values()[key]
    out = np.zeros(np.shape(expected), ">i2" if swap else "i2", order=order)
    out = out[::-1] if flip and out.ndim else out
    assert layout[1].read(key, out=out) is out
    assert np.array_equal(out, expected)


@given(key=basic_keys(), data=st.data())
def test_write_basic(key, data):
    layout = data.draw(st.sampled_from(sorted(LAYOUTS)))
    array = zarrc.create_array("memory:", shape=SHAPE, dtype="int16", fill_value=3, **LAYOUTS[layout])
    expected = np.full(SHAPE, 3, "int16")
    shape = expected[key].shape
    broadcast = tuple(1 if data.draw(st.booleans()) else n for n in shape)[data.draw(st.integers(0, len(shape))):]
    value = np.arange(np.prod(broadcast, dtype=int), dtype="int16").reshape(broadcast)
    array[key] = value
    expected[key] = value
    assert np.array_equal(array[...], expected)


@given(key=orthogonal_keys())
def test_write_orthogonal(key):
    array = zarrc.create_array("memory:", shape=SHAPE, dtype="int16", chunks=(3, 2, 4))
    expected = np.zeros(SHAPE, "int16")
    places = orthogonal(np.arange(expected.size).reshape(SHAPE), key)
    value = np.arange(places.size, dtype="int16").reshape(np.shape(places)) + 1
    array.oindex[key] = value
    expected.ravel()[places] = value  # the last one wins, as in zarrc
    assert np.array_equal(array[...], expected)


@given(key=points())
def test_write_points(key):
    array = zarrc.create_array("memory:", shape=SHAPE, dtype="int16", chunks=(3, 2, 4))
    expected = np.zeros(SHAPE, "int16")
    value = np.arange(len(key[0]), dtype="int16") + 1
    array.vindex[key] = value
    expected[key] = value
    assert np.array_equal(array[...], expected)


@pytest.mark.parametrize("key", [(9,), (slice(None), -6), (0, 0, 0, 0), (..., ...), (0.5,), "a", (None,), ([0.5],),
                                 ([0, 99],), (True,), np.zeros((2, 2), bool)])
def test_wrong_keys(layout, key):
    with pytest.raises((IndexError, TypeError)):
        layout[1][key]
    with pytest.raises((IndexError, TypeError)):
        layout[1][key] = 0


def test_wrong_values(layout):
    for shape in [(2,), (7, 5, 7), (1, 1, 1, 2)]:
        with pytest.raises(ValueError, match="broadcast"):
            layout[1][...] = np.zeros(shape, "int16")
    with pytest.raises(ValueError, match="shape"):
        layout[1].read(out=np.zeros((7, 5), "int16"))
    with pytest.raises(TypeError, match="data type"):
        layout[1].read(out=np.zeros(SHAPE, "float32"))
    frozen = np.zeros(SHAPE, "int16")
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        layout[1].read(out=frozen)


def test_mixed_lists_are_orthogonal(layout):
    """zarr-python's rule for []: not all items are lists, so each dimension is on its own."""
    assert np.array_equal(layout[1][[0, 2], :, [1, 3, 5]], values()[np.ix_([0, 2], range(5), [1, 3, 5])])
    assert layout[1][np.array([[0, 1]]), 2, [[3], [4]]].shape == (2, 2)


def test_blocks(layout):
    name, array = layout
    edges = [np.cumsum([0, *sizes]) for sizes in array.write_chunk_sizes]
    for key in [(0, 0, 0), (-1, slice(None), 0), (slice(0, 2),), (...,)]:
        items = [*key, *[slice(None)] * (3 - len(key))] if key != (...,) else [slice(None)] * 3
        expected = values()
        for d, item in enumerate(items):
            chunks = range(len(edges[d]) - 1)[item]
            chunks = [chunks] if isinstance(chunks, int) else chunks
            places = [i for c in chunks for i in range(edges[d][c], edges[d][c + 1])]
            expected = expected.take(places, axis=d)
        assert np.array_equal(array.blocks[key], expected), (name, key)


def test_no_dimensions():
    array = zarrc.create_array("memory:", shape=(), dtype="float64", fill_value=2.5)
    assert array[()] == array[...] == 2.5 and isinstance(array[()], np.float64)
    array[...] = 7
    assert array[()] == 7
    with pytest.raises(IndexError):
        array[0]
    with pytest.raises(TypeError):
        len(array)


def test_empty():
    array = zarrc.create_array("memory:", shape=(0, 3), dtype="int8")
    assert array[...].shape == (0, 3)
    array[...] = np.zeros((0, 3))
    assert array[:, [1, 2]].shape == (0, 2)


@pytest.mark.parametrize("key", [None, True, [0, 1], np.array([0, 1]), np.array([True, False, True]), 1.5, (0, 0), np.newaxis], ids=str)
def test_wrong_blocks(key):
    z = zarrc.create_array(None, data=np.arange(6), chunks=2)
    for use in (lambda: z.blocks[key], lambda: z.blocks.__setitem__(key, 5)):
        with pytest.raises(IndexError):
            use()
    assert (z[:] == np.arange(6)).all()


# ---- the blocks and chunks that a selection touches ----


KEYS = [..., 3, np.s_[2:9], np.s_[::3, 4], np.s_[::-7, 1:11:5], np.s_[[0, -1], 3:], np.s_[:, [True, False] * 6], np.s_[[1, 9], [-1, 0]],
        np.s_[12:4:-9, :0], np.s_[5:5]]
GRIDS = [{"chunks": (4, 5)}, {"chunks": (2, 5), "shards": (4, 5)}, {"chunks": (2, 5), "shards": (8, 15)}, {"chunks": [[3, 1, 7, 2], [12]]}]


def find_touched(z, sizes, key):
    """The grid coordinates of the elements that a key selects, by NumPy."""
    places = np.zeros(z.shape, bool)
    places[key if isinstance(key, tuple) and all(isinstance(one, (list, int)) for one in key) else (
        np.ix_(*(np.arange(n)[one] for n, one in zip(z.shape, key))) if isinstance(key, tuple) and any(isinstance(one, list) for one in key) else key)] = True
    ends = [np.cumsum(one) for one in sizes]
    return sorted({tuple(int(np.searchsorted(end, i, side="right")) for end, i in zip(ends, at)) for at in zip(*np.nonzero(places))})


@pytest.mark.parametrize("grid", GRIDS, ids=["chunks", "one_chunk_shards", "shards", "rectilinear"])
@pytest.mark.parametrize("url", ["memory://", "x.zarr"])
def test_blocks_and_chunks_of_selections(grid, url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    z = zarrc.create_array(url, shape=(13, 12), dtype="i2", **grid)
    z[:5, 3:] = 1
    mask = np.zeros(z.shape, bool)
    mask[3:5, 11] = mask[12, 0] = True
    for key in (*KEYS, mask):
        blocks, chunks = list(z.iter_blocks(key)), list(z.iter_chunks(key))
        assert [one.coordinates for one in blocks] == find_touched(z, z.write_chunk_sizes, key)
        assert sorted(one.coordinates for one in chunks) == find_touched(z, z.read_chunk_sizes, key)
        for found, method in ((blocks, z.iter_blocks), (chunks, z.iter_chunks)):
            for stored in (True, False):
                assert list(method(key, stored=stored)) == [one for one in found if one.is_stored == stored]
            for one in found:
                assert one.is_stored == (z[one.selection] == 1).any(), one
                value = z.store.get(one.key)
                assert (value is None if not one.is_stored and not one.is_chunk else 0 <= one.offset <= len(value or b"") - one.nbytes)
                assert (one.nbytes > 0) == one.is_stored and repr(one.coordinates) in repr(one)
    assert [one.nbytes for one in z.iter_blocks(stored=True)] == [len(z.store.get(one.key)) for one in z.iter_blocks(stored=True)]
    with pytest.raises(IndexError):
        z.iter_blocks(13)
    with pytest.raises(IndexError):
        z.iter_chunks(np.s_[0, 0, 0])


def test_blocks_without_a_listing(monkeypatch):
    """Of few blocks of many, the store is asked for each; a listing of all would take longer."""
    z = zarrc.create_array("memory://", shape=10**12, dtype="i1", chunks=10)
    z[10**9 + 3] = 5
    monkeypatch.setattr(zarrc.Array, "_chunks", None)
    first, second = z.iter_blocks(slice(10**9, 10**9 + 11))
    assert first.is_stored and first.selection == (slice(10**9, 10**9 + 10),) and not second.is_stored and second.nbytes == 0
    assert next(z.iter_blocks(slice(None, None, 10**9))).coordinates == (0,)
    monkeypatch.undo()
    (block,) = z.iter_blocks(stored=True)  # no step for each of the missing ones
    assert block == first


def test_blocks_of_arrays_without_dimensions_or_elements():
    z = zarrc.create_array("memory://", data=np.float32(3))
    (block,) = z.iter_blocks()
    assert block.coordinates == () and block.selection == () and block.nbytes and list(z.iter_chunks()) == [block]
    assert not list(zarrc.create_array("memory://", shape=(0, 4), dtype="i1", chunks=(2, 2)).iter_chunks())


@pytest.mark.parametrize("url", ["memory://", "x.zarr", "x.zip"])
def test_encoded_blocks(url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = np.random.default_rng(1).integers(0, 256, (300, 300)).astype("u1")  # encoded blocks of more than 64 KiB
    z = zarrc.create_array(url, shape=data.shape, dtype="u1", chunks=(300, 299), fill_value=9)
    with pytest.raises(errors.NotFoundError):
        z.block_read_encoded((0, 0))
    z[...] = data
    old = z.block_read_encoded((0, 0))
    assert old == z.store.get(z.block_key((0, 0))) and len(old) > 1 << 16
    if url != "x.zip":
        z.block_erase([0, 0])
        assert (z[:, :299] == 9).all()
        with pytest.raises(errors.NotFoundError):
            z.block_erase([0, 0])
        z.block_write_encoded(np.array([0, 0]), memoryview(old))
        assert (z[...] == data).all()
        z.block_write_encoded((0, 1), b"")
        (block,) = z.iter_blocks(np.s_[:, 299])
        assert block.is_stored and block.nbytes == 0  # an object without bytes is no missing block
        with pytest.raises(errors.CorruptError):
            z[:, 299]
    for wrong in ((0, 2), (0,), (-1, 0), (0, 0, 0)):
        for call in (z.block_read_encoded, z.block_key, z.block_erase, lambda at: z.block_write_encoded(at, b"1")):
            with pytest.raises(ValueError):
                call(wrong)
    with pytest.raises(TypeError, match="block_erase"):
        z.block_write_encoded((0, 0), None)
    with pytest.raises(errors.ReadOnlyError):
        zarrc.open_array(z.store.with_read_only(), mode="r").block_write_encoded((0, 0), old)
