"""Columns of Arrow, read by their C structs: no Arrow library is needed."""
import ctypes

import numpy as np
import pytest

import zarrc


class ArrowSchema(ctypes.Structure):
    _fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p)]


class ArrowArray(ctypes.Structure):
    _fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
                ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p))]


def pointer(capsule, name):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get(capsule, name)


def elements(column):
    """(format, elements as bytes) of a column with offsets of 32 bits."""
    schema, array = column.__arrow_c_array__()
    s = ArrowSchema.from_address(pointer(schema, b"arrow_schema"))
    a = ArrowArray.from_address(pointer(array, b"arrow_array"))
    offsets = (ctypes.c_int32 * (a.length + 1)).from_address(a.buffers[1]) if a.length else [0]
    data = ctypes.string_at(a.buffers[2], offsets[a.length]) if a.length and offsets[a.length] else b""
    return s.format, [data[offsets[i]:offsets[i + 1]] for i in range(a.length)]


def test_columns():
    array = zarrc.create_array(None, shape=(2, 3), dtype=str, chunks=2)
    array[...] = [["a", "", "ß€"], ["x" * 100, "y", "z"]]
    assert elements(array.column()) == (b"u", [b"a", b"", "ß€".encode(), b"x" * 100, b"y", b"z"])
    assert elements(array.column((1, slice(None, None, -1)))) == (b"u", [b"z", b"y", b"x" * 100])
    assert elements(array.column((slice(0, 0),))) == (b"u", [])
    data = zarrc.create_array(None, shape=2, dtype="variable_length_bytes")
    data[:] = np.array([b"\0", b"ab"], object)
    assert elements(data.column()) == (b"z", [b"\0", b"ab"])
    for _ in range(100):
        array.column().__arrow_c_array__()  # dropped: their release is called
    with pytest.raises(ValueError):
        zarrc.create_array(None, shape=2, dtype="i4").column().__arrow_c_array__()


def test_pyarrow():
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not among the packages of the tests")
    array = zarrc.array(np.array(["a", "b"], object))
    assert pyarrow.array(array.column()).to_pylist() == ["a", "b"]
