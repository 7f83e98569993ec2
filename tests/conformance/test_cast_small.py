"""cast_value between types of few bits, which no other implementation does: against arithmetic with
fractions. A float type is the table of its values (ml_dtypes'), an integer type its range; what lies
between two values goes where the rounding says, and what lies beyond them where out_of_range says.

Left out: numbers less than a step beyond the largest value, where "round, then range" and formats
without infinity leave room; signs and ties of float8_e8m0fnu, which has neither zero nor even codes.
"""
import bisect
import functools
import math
import random
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import cases
from zarrc_abi import ZarrcError

FLOATS = {"float16": np.float16, **{name: getattr(ml_dtypes, name) for name in (
    "bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3fn", "float8_e4m3b11fnuz", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn")
    if hasattr(ml_dtypes, name)}}
BITS = {"float6_e2m3fn": 6, "float6_e3m2fn": 6, "float4_e2m1fn": 4, "float16": 16, "bfloat16": 16}
INTEGERS = {f"{'u' * (low == 0)}int{bits}": (low, low + 2**bits - 1)
            for bits in (2, 4, 8, 16, 32, 64) for low in (0, -2**(bits - 1))}
ROUNDINGS = ["nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away"]
ERROR, NAN, OPEN = "error", "NaN", "left out"


def memory(name):
    """An element in memory: the numbers of its codes."""
    if name in FLOATS:
        return "<u2" if BITS.get(name) == 16 else "|u1"
    return {"int2": "|i1", "int4": "|i1", "uint2": "|u1", "uint4": "|u1"}.get(name) or np.dtype(name).str


@functools.cache
def table(name):
    """(value of each code, {(value, its sign): code}, the finite values in order)"""
    codes = np.arange(1 << BITS.get(name, 8), dtype=memory(name))
    with np.errstate(invalid="ignore"):
        values = codes.view(FLOATS[name]).astype("f8").tolist()
    code = {}
    for at, value in enumerate(values):
        if not math.isnan(value):
            code.setdefault((value, math.copysign(1, value)), at)
    return values, code, sorted({value for value in values if math.isfinite(value)})


def find_code(name, value):
    code = table(name)[1]
    return code.get((float(value), math.copysign(1, value)), code.get((float(value), 1.0)))


def nearer(x, low, high, low_is_even, rounding):
    if rounding == "towards-zero":
        return low if x > 0 else high
    if rounding.startswith("towards"):
        return high if rounding == "towards-positive" else low
    if x - low != high - x:
        return low if x - low < high - x else high
    if rounding == "nearest-away":
        return high if x > 0 else low
    return low if low_is_even else high


def to_integer(x, target, rounding, beyond):
    low, high = INTEGERS[target]
    if not math.isfinite(x):
        return ERROR
    x = Fraction(x)
    floor = math.floor(x)
    value = floor if x == floor else nearer(x, floor, floor + 1, floor % 2 == 0, rounding)
    if low <= value <= high:
        return value
    if beyond == "wrap":
        return (value - low) % (high - low + 1) + low
    return ERROR if beyond is None else high if value > high else low


def past_the_end(x, target, rounding, beyond):
    _, code, values = table(target)
    up = x > 0
    edge = Fraction(values[-1] if up else values[0])
    step = Fraction(values[-1]) - Fraction(values[-2])
    if target == "float8_e8m0fnu" and not up or abs(x - edge) <= step:
        return OPEN
    if beyond is None:
        return ERROR
    infinity = math.inf if up else -math.inf
    return find_code(target, infinity if (infinity, math.copysign(1, infinity)) in code else float(edge))


def to_float(x, target, rounding, beyond):
    all_values, code, values = table(target)
    if math.isnan(x):
        return NAN if any(math.isnan(v) for v in all_values) else ERROR
    if math.isinf(x):
        return code.get((x, math.copysign(1, x)), ERROR)
    if x == 0:
        found = find_code(target, math.copysign(0.0, x))
        return OPEN if found is None else found
    x = Fraction(x)
    at = bisect.bisect_left(values, x)
    if at < len(values) and values[at] == x:
        return find_code(target, values[at])
    if at in (0, len(values)):
        return past_the_end(x, target, rounding, beyond)
    low, high = Fraction(values[at - 1]), Fraction(values[at])
    if target == "float8_e8m0fnu" and x - low == high - x:
        return OPEN
    value = nearer(x, low, high, find_code(target, values[at - 1]) % 2 == 0, rounding)
    return find_code(target, -0.0 if value == 0 and x < 0 else float(value))


def sample_codes(source, rng):
    """[(code, value)]: all of a small type."""
    if source in FLOATS:
        values = table(source)[0]
        codes = range(len(values)) if len(values) <= 256 else rng.sample(range(len(values)), 300)
        return [(code, values[code]) for code in codes]
    low, high = INTEGERS[source]
    found = {low, high, 0, 1, high // 2 + 1} | {rng.randint(low, high) for _ in range(60)} | {
        max(low, min(high, rng.choice((1, -1)) * rng.randint(0, 2**rng.randint(1, 20)))) for _ in range(60)}
    return [(value, value) for value in sorted(found)]


def encode(context, source, codes, configuration):
    data = np.array(codes, memory(source))
    codec = {"name": "cast_value", "configuration": configuration}
    wide = np.dtype(memory(configuration["data_type"])).itemsize > 1
    store = context.store()
    array = store.create(document=cases.document_v3(
        source, 1, [codec, cases.LITTLE if wide else cases.PLAIN], data.shape, data.shape))
    array.write(data.view(f"V{data.dtype.itemsize}"))
    return np.frombuffer(store.get("c/0"), memory(configuration["data_type"])).tolist()


@pytest.mark.parametrize("target", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("source", [*FLOATS, *INTEGERS])
def test_cast(context, source, target):
    rng = random.Random(f"{source} {target}")
    convert = to_float if target in FLOATS else to_integer
    rounding = rng.choice(ROUNDINGS)
    for beyond in [None, "clamp"] + ["wrap"] * (target in INTEGERS):
        configuration = {"data_type": target, "rounding": rounding, **({"out_of_range": beyond} if beyond else {})}
        chosen = [(code, value, convert(value, target, rounding, beyond)) for code, value in sample_codes(source, rng)]
        good = [(code, want) for code, _, want in chosen if want not in (ERROR, OPEN)]
        if any(value != 1 for _, value, want in chosen if want not in (ERROR, OPEN)):  # not the fill value alone
            got = encode(context, source, [code for code, _ in good], configuration)
            for (code, want), found in zip(good, got):
                assert math.isnan(table(target)[0][found]) if want == NAN else found == want, (code, configuration)
        for code, value, _ in rng.sample([row for row in chosen if row[2] == ERROR],
                                         min(2, sum(row[2] == ERROR for row in chosen))):
            with pytest.raises(ZarrcError, match="cast_value"):
                encode(context, source, [code], configuration)
                pytest.fail(f"{value} was taken: {configuration}")
