"""Numbers of every type that zarr-python has, and names for arrays of them."""
import numpy as np

NUMBERS = "|b1 |i1 |u1 <i2 >i2 <u2 >u2 <i4 >i4 <u4 >u4 <i8 >i8 <u8 >u8 <f2 >f2 <f4 >f4 <f8 >f8 " \
          "<c8 >c8 <c16 >c16".split()


def numbers(dtype, shape, rng):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype.newbyteorder("="), endpoint=True).astype(dtype)
    if dtype.kind == "c":
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    return rng.normal(size=shape).astype(dtype)


def path_name(*words):
    """Words in a path: byte orders as letters, other marks as underscores."""
    marks = {"<": "l", ">": "b"}
    return "-".join("".join(marks.get(c, c if c.isalnum() else "_") for c in str(w)) for w in words)
