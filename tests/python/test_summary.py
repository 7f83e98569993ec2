"""Statistics: exact sums, the bound of the error of sums of floats, and the same results as NumPy for each
region, kept dimension and number of threads. Counters show that each chunk is decoded once."""
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

import zarrc
from zarrc import errors

INTEGERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
FLOATS = ["f2", "f4", "f8"]


def fill(rng, dtype, shape):
    """Elements of all sizes of a type; some floats are NaN."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        data = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        return (info.max - (data & 3)).astype(dtype) if rng.random() < 0.3 else data
    data = (rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 3, shape)).astype(dtype)
    data[rng.random(shape) < rng.choice([0, 0.2])] = np.nan
    return data


@st.composite
def cases(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    ndim = draw(st.integers(1, 3))
    shape = tuple(rng.integers(1, (2000, 60, 16)[ndim - 1], ndim).tolist())
    chunks = tuple(int(rng.integers(1, n + 1)) for n in shape)
    data = fill(rng, draw(st.sampled_from(["b1", *INTEGERS, *FLOATS])), shape)
    over = draw(st.none() | st.lists(st.integers(0, ndim - 1), unique=True))
    key = tuple(slice(*sorted(rng.integers(0, n + 1, 2).tolist()), draw(st.integers(1, 2))) for n in shape)
    missing = data.flat[0] if draw(st.booleans()) and data.flat[0] == data.flat[0] else None
    return data, {"chunks": chunks, "shards": tuple(2 * n for n in chunks) if draw(st.booleans()) else None}, key, over, missing


def check_values(values, found):
    """One place of the result."""
    exact = sum(map(Fraction, values.tolist()))
    if values.dtype.kind == "f":
        bound = values.size * Fraction(1, 2**104) * sum(abs(Fraction(v)) for v in values.tolist())
        assert abs(Fraction(float(found["sum"])) - exact) <= bound + Fraction(float(np.spacing(abs(float(exact))))) / 2
    else:
        assert found["sum"] == exact
    mean = exact / values.size
    deviation = float(sum((Fraction(v) - mean) ** 2 for v in values.tolist()) / values.size) ** 0.5
    assert found["min"] == values.min() and found["max"] == values.max()
    assert abs(found["mean"] - float(mean)) <= 2 * np.spacing(abs(float(mean)))
    assert abs(found["std"] - deviation) <= 1e-12 * deviation


@given(cases())
def test_like_exact_arithmetic(case):
    data, layout, key, over, missing = case
    array = zarrc.create_array("memory:", data=data, **layout)
    with zarrc.config.set(max_threads=4):
        found = array.summary(key, over=over, missing=missing)
    alone = array.summary(key, over=over, missing=missing, max_threads=1)
    assert repr(found) == repr(alone)
    part = data[key]
    nan = np.isnan(part) if data.dtype.kind == "f" else np.zeros(part.shape, bool)
    lost = part == missing if missing is not None else np.zeros(part.shape, bool)
    axes = tuple(range(data.ndim)) if over is None else tuple(over)
    assert np.array_equal(found.nan, nan.sum(axes)) and np.array_equal(found.missing, lost.sum(axes))
    assert np.array_equal(found.count, (~(nan | lost)).sum(axes))
    kept = [d for d in range(data.ndim) if d not in axes]
    assert found.dims == tuple(kept)
    for place in np.ndindex(*(part.shape[d] for d in kept)):
        where = [slice(None)] * data.ndim
        for d, i in zip(kept, place):
            where[d] = i
        values = part[tuple(where)][~(nan | lost)[tuple(where)]]
        if values.size:
            check_values(values, {name: np.asarray(getattr(found, name))[place] for name in ("sum", "mean", "std", "min", "max")})
        elif not kept:
            assert np.isnan(found.mean) and np.isnan(found.std) and found.sum == 0


@pytest.mark.parametrize("instructions", ["", "all"])
@pytest.mark.parametrize("data", [
    np.tile([1e16, 1.0, -1e16], 5000), np.tile([2.0**100, 1.0, -(2.0**100), 2.0**-30], 3000),
    np.ldexp(1.0, np.arange(-500, 500)).repeat(9),
    np.tile(np.repeat(np.float32([[2**17, -(2**17)], [1 + 2**-23, -1]]), 8, 0).ravel(), 300),
    np.tile(np.repeat(np.float32([[2**40, -(2**40)], [1 + 2**-23, -1]]), 8, 0).ravel(), 300)],
    ids=["cancels", "far", "wide", "lanes of one sign", "wide lanes of one sign"])
def test_sum_of_hard_numbers(data, instructions, subprocess_env=None):
    """Numbers whose plain sum is wrong, with each set of instructions."""
    import os
    import subprocess
    import sys
    program = ("import sys, numpy as np, zarrc; d = np.frombuffer(sys.stdin.buffer.read(), sys.argv[1]); "
               "print(float(zarrc.create_array('memory:', data=d, chunks=1000).summary().sum).hex())")
    out = subprocess.run([sys.executable, "-c", program, data.dtype.str], input=data.tobytes(), capture_output=True, check=True,
                         env={**os.environ, "ZARRC_DISABLE_CPU": instructions}).stdout
    exact = sum(map(Fraction, data.tolist()))
    bound = data.size * Fraction(1, 2**104) * sum(abs(Fraction(v)) for v in data.tolist())
    assert abs(Fraction(float.fromhex(out.decode())) - exact) <= bound + Fraction(float(np.spacing(abs(float(exact))))) / 2


def test_infinities():
    for values in ([np.inf, 1], [np.inf, -np.inf, 3], [-np.inf] * 40, [1e308] * 40):
        data = np.array(values)
        found = zarrc.create_array("memory:", data=data).summary()
        with np.errstate(all="ignore"):
            assert np.array_equal(found.sum, data.sum(), equal_nan=True) and np.array_equal(found.mean, data.mean(), equal_nan=True)
        assert (found.min, found.max, found.nan) == (data.min(), data.max(), 0)


def test_constant_elements_have_no_deviation():
    for value in (0.1, -1e-300, np.float32(0.3)):
        for n in range(1, 40):
            data = np.full((n, 3), value)
            array = zarrc.create_array("memory:", data=data, chunks=(2, 2))
            assert array.summary().std == 0 and not array.summary(over=0).std.any()
    ends = np.array([2**63, 2**63 + 2] * 999, "u8")
    assert zarrc.create_array("memory:", data=ends, chunks=100).summary().std == 1


def test_types():
    import ml_dtypes
    half = zarrc.create_array("memory:", data=np.array([1, -2.5, np.nan, 6e-8], "f2")).summary()
    assert (half.min, half.max.dtype, half.nan) == (np.float16(-2.5), np.float16, 1)
    brain = zarrc.create_array("memory:", data=np.array([3, -7], ml_dtypes.bfloat16)).summary()
    assert float(brain.min) == -7 and brain.sum == -4
    small = zarrc.create_array("memory:", data=np.array([-8, 7], ml_dtypes.int4)).summary()
    assert int(small.min) == -8 and small.sum == -1
    times = zarrc.create_array("memory:", data=np.array(["2003-07-01", "NaT", "1999-01-02"], "M8[s]")).summary()
    assert times.min == np.datetime64("1999-01-02") and times.nan == 1 and np.isnan(times.mean)
    for wrong in (np.zeros(3, "c8"), np.array(["a"]), np.zeros(2, [("a", "i4")])):
        with pytest.raises(errors.UnsupportedError, match="no summary"):
            zarrc.create_array("memory:", data=wrong).summary()
    pairs = zarrc.create_array("memory:", data=np.array([(1, 2.5), (3, -1)], [("a", ">i4"), ("b", "f8")]))
    assert pairs.summary(field="a").sum == 4 and pairs.summary(field="b").min == -1


def test_weights():
    rng = np.random.default_rng(3)
    data = rng.normal(280, 20, (6, 18, 36)).astype("f4")
    data[0, 3] = np.nan
    latitude = np.linspace(-85, 85, 18)
    weights = np.cos(np.radians(latitude))
    array = zarrc.create_array("memory:", data=data, chunks=(2, 5, 7), dimension_names=["time", "lat", "lon"])
    full = np.broadcast_to(weights[:, None], data.shape)
    for over, axes in ((None, (0, 1, 2)), (["lat", "lon"], (1, 2)), (["lat"], (1,))):
        found = array.summary(over=over, weights={"lat": weights})
        good = ~np.isnan(data)
        total = np.where(good, full, 0).sum(axes)
        mean = (np.where(good, data, 0).astype("f8") * full).sum(axes) / total
        square = (np.where(good, data - np.expand_dims(mean, axes), 0) ** 2 * full).sum(axes) / total
        assert np.allclose(found.weight, total, rtol=1e-14) and np.allclose(found.mean, mean, rtol=1e-14)
        assert np.allclose(found.std, square**0.5, rtol=1e-12) and np.allclose(found.sum, mean * total, rtol=1e-14)
    for wrong in ({"lat": weights[1:]}, {"lat": -weights}, {"lat": weights * np.nan}, {"height": weights}):
        with pytest.raises(ValueError):
            array.summary(weights=wrong)
    with pytest.raises(ValueError, match="go over"):
        array.summary(over="time", weights={"lat": weights})


@pytest.mark.parametrize("dtype", ["u1", "i2", "f2", "i4", "f4", "f8", "u8"])
def test_quantiles_and_histograms(dtype):
    rng = np.random.default_rng(5)
    data = fill(rng, dtype, (37, 41))
    data.flat[0] = 0
    array = zarrc.create_array("memory:", data=data, chunks=(10, 8))
    good = data[data == data].astype("f8")
    ranks = [0, 0.01, 0.25, 0.5, 0.999, 1]
    found = array.summary(quantiles=ranks, bins=7)
    assert not found.is_sketch and np.array_equal(found.quantiles, np.quantile(good, ranks))
    counts, edges = np.histogram(good, 7)
    assert np.array_equal(found.histogram[1], edges) and np.array_equal(found.histogram[0], counts)
    own = [0, 1, 10, 1e4]
    found = array.summary(bins=own)
    assert np.array_equal(found.histogram[0], np.histogram(good, own)[0])
    assert found.below == (good < 0).sum() and found.above == (good > 1e4).sum()
    for wrong in ({"bins": [1, 1]}, {"bins": 0}, {"quantiles": [1.5]}, {"bins": 3, "over": 0}, {"quantiles": [0.5], "over": 1}):
        with pytest.raises(ValueError):
            array.summary(**wrong)


def test_sketch(tmp_path):
    """Without room for all elements, ranks err by at most 1 %."""
    import subprocess
    import sys
    data = np.random.default_rng(8).permutation(3_000_000).astype("f4") ** 2
    zarrc.create_array(tmp_path / "a", data=data, chunks=100_000)
    program = ("import sys, zarrc; z = zarrc.open_array(sys.argv[1]); s = z.summary(quantiles=[0.01 * i for i in range(101)], bins=10); "
               "print(s.is_sketch, s.histogram[0].sum(), *s.quantiles)")
    out = subprocess.run([sys.executable, "-c", program, tmp_path / "a"], capture_output=True, check=True, text=True,
                         env={**__import__("os").environ, "ZARRC_MEMORY_BYTES": str(32 << 20)}).stdout.split()
    assert out[0] == "True" and int(out[1]) == data.size
    ranks = np.searchsorted(np.sort(data), np.array(out[2:], "f8")) / data.size
    assert np.abs(ranks - np.linspace(0, 1, 101)).max() <= 0.01


def test_each_chunk_is_decoded_once(tmp_path):
    """Of boxes with any start, and none if it is missing."""
    array = zarrc.create_array(tmp_path / "a", shape=(64, 64, 640), dtype="f8", chunks=(8, 8, 640), fill_value=2)
    array[:32] = np.random.default_rng(1).normal(size=(32, 64, 640))
    for key, chunks, missing in ((slice(None), 64, 32), ((slice(3, 61), slice(5, 44)), 48, 24), ((5, slice(9, 60)), 7, 0)):
        counts = zarrc.Stats()
        found = array.summary(key, stats=counts)
        assert (counts.chunks_total, counts.chunks_missing, counts.store_gets - missing) in ((chunks, missing, chunks - missing), (chunks, missing, chunks))
        assert counts.bytes_decoded <= (chunks - missing) * 8 * 8 * 640 * 8
        assert found.count == array[key].size
    assert array.summary(slice(32, 64)).mean == 2


def test_dropped_dimension_beside_others_of_one_element():
    data = np.arange(90).reshape(5, 6, 1, 3)
    array = zarrc.create_array("memory:", data=data, chunks=(3, 4, 1, 2))
    for key in ((slice(0, 1), slice(3, 5), 0, slice(2, 3)), (0, slice(3, 5), slice(0, 1), 2), (slice(0, 1), slice(3, 5), 0, 2)):
        for over in range(data[key].ndim):
            assert np.array_equal(array.summary(key, over=over).sum, data[key].sum(over))


def test_missing_value_of_the_array():
    array = zarrc.create_array("memory:", data=np.array([1.0, -999, 3]), dimension_names=["x"], attributes={"_FillValue": -999.0})
    assert (array.summary().mean, array.summary().missing) == (2, 1)
    assert array.summary(missing=False).count == 3 and array.summary(missing=3).sum == -998
    for wrong in (300, 1.5):
        with pytest.raises(ValueError, match="not a number of type int8"):
            zarrc.create_array("memory:", data=np.array([44, 1], "i1")).summary(missing=wrong)


def test_infinite_quantiles_and_more_bins_than_memory():
    array = zarrc.create_array("memory:", data=np.array([-np.inf, 1, np.inf]))
    assert array.summary(quantiles=[0, 0.5, 1]).quantiles.tolist() == [-np.inf, 1, np.inf]
    with zarrc.config.set(memory_bytes=32 << 20), pytest.raises(errors.LimitError, match="bins"):
        zarrc.create_array("memory:", data=np.arange(3)).summary(bins=10**7)


def test_damage_and_wrong_arguments(tmp_path):
    array = zarrc.create_array(tmp_path / "a", data=np.arange(4000.0), chunks=1000)
    (tmp_path / "a/c/2").write_bytes(b"nothing")
    with pytest.raises(errors.CorruptError, match="c/2"):
        array.summary()
    assert array.summary(slice(0, 2000)).sum == 1999000
    for wrong in ({"over": 1}, {"over": "x"}, {"over": [0, 0]}, {"weights": {0: [1, 2]}}):
        with pytest.raises(ValueError):
            array.summary(**wrong)
    empty = array.summary(slice(5, 5), quantiles=[0.5], bins=2)
    assert (empty.count, empty.sum, np.isnan(empty.mean), np.isnan(empty.quantiles[0])) == (0, 0, True, True)
    scalar = zarrc.create_array("memory:", data=np.array(7, "i2")).summary()
    assert (scalar.sum, scalar.min, scalar.std) == (7, 7, 0)
