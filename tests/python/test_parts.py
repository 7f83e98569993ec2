"""Several selections in one request: what `read_many` gives is what one read after the other gives."""
import numpy as np
import pytest

import zarrc
from zarrc import _core


@pytest.fixture
def array(store, numbers):
    return zarrc.create_array(store, name="a", data=numbers, chunks=(7, 9))


KEYS = [(slice(3, 20), slice(None)), 5, (5, 6), ..., (slice(None, None, -7), [1, 30, 1]), (slice(4, 4), 0), np.arange(60) % 5 == 0,
        ([1, 2], [3, 4]), -1]


def test_as_one_read_after_the_other(array, numbers):
    found = array.read_many(KEYS)
    assert len(found) == len(KEYS)
    for one, key in zip(found, KEYS):
        wanted = array[key]
        assert type(one) is type(wanted) and np.array_equal(one, wanted) and one.dtype == wanted.dtype


def test_random_crops(array, numbers):
    rng = np.random.default_rng(1)
    corners = rng.integers([60 - 16 + 1, 40 - 8 + 1], size=(50, 2))
    keys = [(slice(a, a + 16), slice(b, b + 8)) for a, b in corners]
    out = np.zeros((50, 16, 8), "int32")
    found = array.read_many(keys, out=out)
    assert all(one.base is out for one in found)
    assert (out == np.stack([numbers[key] for key in keys])).all()


def test_shared_chunks_are_read_once(array):
    """The progress counts chunks; a damaged chunk would show in each part that has it."""
    calls = []
    array.read_many([slice(0, 7)] * 20, progress=lambda done, total: calls.append((done, total)))
    assert calls and calls[-1][0] <= calls[-1][1]


@pytest.mark.parametrize("orders", [("<i4", "<i4"), (">i4", ">i4"), ("<i4", ">i4")])
def test_out(array, numbers, orders):
    outs = [np.zeros((2, 40), orders[0])[::-1], np.zeros((40, 60), orders[1]).T]
    found = array.read_many([slice(0, 2), ...], out=outs)
    assert found[0] is outs[0] and found[1] is outs[1]
    assert (outs[0] == numbers[:2]).all() and (outs[1] == numbers).all()


STRUCT = np.dtype([("a", "i4"), ("b", "f4")])


@pytest.mark.parametrize("kind", ["numbers", "structs", "text"])
def test_one_that_fails_stops_no_other(path, kind):
    """Whatever memory the others have, and the progress is that of one request."""
    data = {"numbers": np.arange(40, dtype="i4"), "structs": np.array([(i, i / 2) for i in range(40)], STRUCT),
            "text": np.array([str(i) for i in range(40)], object)}[kind]
    z = zarrc.create_array(path, data=data, chunks=10)
    outs = {"numbers": [np.zeros(10, order) for order in (">i4", "<i4", ">i4", "<i4")],
            "structs": [np.zeros(10, STRUCT.newbyteorder(order)) for order in "<>><"],
            "text": [np.zeros(10, object) for _ in range(4)]}[kind]
    keys, told = [slice(i, i + 10) for i in range(0, 40, 10)], []
    z.read_many(keys, out=outs, progress=lambda done, total: told.append((done, total)))
    assert all(before <= after for before, after in zip(told, told[1:])) and told[-1] == (4, 4)
    for i in range(4):
        with open(f"{path}/c/{i}", "r+b") as file:
            whole = file.read()
            file.truncate(3)
        for out in outs:
            out[:] = data[0]
        with pytest.raises(zarrc.ZarrcError) as caught:
            z.read_many(keys, out=outs)
        assert caught.value.key == f"c/{i}"
        assert all((out == data[key]).all() for j, (out, key) in enumerate(zip(outs, keys)) if j != i)
        with open(f"{path}/c/{i}", "wb") as file:
            file.write(whole)


def test_errors_name_the_memory(array):
    for out in (np.zeros(39, "i4"), np.zeros(40, "f4"), np.frombuffer(bytes(160), "i4")):
        before = [np.full((), -1, "i4"), np.full(40, -1, ">i4")]
        with pytest.raises((ValueError, TypeError), match=r"out\[2\]"):
            array.read_many([(0, 1), 1, 2], out=[*before, out])
        assert all((one == -1).all() for one in before)


def test_rows_of_scalars(array, numbers):
    out = np.zeros(3, "int32")
    array.read_many([(0, 1), (59, 39), (30, 0)], out=out)
    assert out.tolist() == [numbers[0, 1], numbers[59, 39], numbers[30, 0]]


@pytest.mark.parametrize("out, error", [
    ([np.zeros((2, 40), "i4")], ValueError), ([np.zeros((2, 40), "i4"), np.zeros(3, "i4")], ValueError),
    ([np.zeros((2, 40), "i8"), np.zeros((60, 40), "i8")], TypeError),
    (np.zeros((3, 2, 40), "i4"), ValueError)], ids=["too few", "shape", "type", "too many"])
def test_wrong_out(array, out, error):
    with pytest.raises(error):
        array.read_many([slice(0, 2), ...], out=out)


def test_wrong_keys(array):
    with pytest.raises(IndexError):
        array.read_many([slice(0, 2), 60])
    assert array.read_many([]) == []


def test_text(store):
    array = zarrc.create_array(store, name="t", shape=4, dtype=str, chunks=2)
    array[:] = ["a", "bc", "", "d"]
    found = array.read_many([slice(1, 3), 3, ...])
    assert found[0].tolist() == ["bc", ""] and found[1] == "d" and found[2].tolist() == ["a", "bc", "", "d"]


def test_fortran_order(store, numbers):
    array = zarrc.create_array(store, name="a", data=numbers, chunks=(7, 9), config={"order": "F"})
    assert all(one.flags.f_contiguous for one in array.read_many([slice(0, 9), ...]))


def test_a_chunk_that_fails(path, numbers):
    array = zarrc.create_array(path, data=numbers, chunks=(7, 9))
    (zarrc.open_store(path)).set("c/3/0", b"damaged")
    with pytest.raises(zarrc.ZarrcError) as caught:
        array.read_many([slice(0, 7), slice(21, 28)])
    assert caught.value.key == "c/3/0"
    assert (array.read_many([slice(0, 7), slice(28, 35)])[1] == numbers[28:35]).all()


@pytest.mark.parametrize("arguments", [((), ()), ((None,), (), (0,)), ((None,), (), ()), ((1,), (np.zeros((60, 40), "i4"),), (0,)),
                                       ((None,), (b"x" * 9600,), (0,)), ((None,), (np.zeros((60, 40), "i4"),), ("x",)),
                                       ((None,), (np.zeros((60, 40), "i4"),), ()), ([None], [1], [0])])
def test_extension_refuses(array, arguments):
    assert isinstance(array, _core.Array)
    with pytest.raises((TypeError, ValueError, BufferError)):
        array._read_many(*arguments)
