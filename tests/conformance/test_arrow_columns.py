"""Columns of Arrow's C data interface as pyarrow exports and imports them."""
import ctypes

import pytest

import cases
from zarrc_abi import ZarrcError, call, lib

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed (it is not in tests/requirements-*.txt)")

lib.zarr_array_write_arrow.argtypes = [ctypes.c_void_p] * 6
lib.zarr_array_read_arrow.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32, *[ctypes.c_void_p] * 4]
VLEN = {"string": [{"name": "vlen-utf8"}], "variable_length_bytes": [{"name": "vlen-bytes"}]}
WORDS = ["", "a", "zwölf", "", "x" * 3000, "\0", "漢字"]
LARGE = 1


class Struct(ctypes.Structure):
    """An ArrowSchema (9 words) or an ArrowArray (10)."""
    _fields_ = [("words", ctypes.c_void_p * 10)]


def write(array, column):
    schema, data = Struct(), Struct()
    column._export_to_c(ctypes.addressof(data), ctypes.addressof(schema))
    call("zarr_array_write_arrow", array.pointer, None, ctypes.byref(schema), ctypes.byref(data), None)
    pa.Array._import_from_c(ctypes.addressof(data), ctypes.addressof(schema))  # takes them back: released


def read(array, flags=0):
    schema, data = Struct(), Struct()
    call("zarr_array_read_arrow", array.pointer, None, flags, ctypes.byref(schema), ctypes.byref(data), None)
    column = pa.Array._import_from_c(ctypes.addressof(data), ctypes.addressof(schema))
    column.validate(full=True)
    return column


def create(store, dtype, n, codecs=None, fill=""):
    if codecs is None:
        return store.create(path="o", shape=(n,), chunks=(3,), dtype=dtype)
    return store.create(path="a", document=cases.document_v3(dtype, fill, codecs, (n,), (3,)))


@pytest.mark.parametrize("flags", [0, LARGE])
@pytest.mark.parametrize("dtype,types", [
    ("string", [pa.string(), pa.large_string()]),
    ("variable_length_bytes", [pa.binary(), pa.large_binary()]),
])
def test_words(context, dtype, types, flags):
    values = WORDS if dtype == "string" else [w.encode() for w in WORDS]
    for type_ in types:
        store = context.store()
        array = create(store, dtype, len(values), VLEN[dtype])
        write(array, pa.array(values, type_))
        column = read(array, flags)
        assert column.type == types[flags] and column.to_pylist() == values
        write(array, pa.array(["gone", *values[1:]] if dtype == "string" else [b"gone", *values[1:]], type_))
        assert column.to_pylist() == values  # the column has its own memory
        array.close()
        store.close()
        assert column.to_pylist() == values


def test_sliced(context):
    store = context.store()
    array = create(store, "string", 4, VLEN["string"])
    write(array, pa.array([*"ab", *WORDS, "c"])[3:7])
    assert read(array).to_pylist() == WORDS[1:5]


@pytest.mark.parametrize("flags", [0, LARGE])
def test_nulls(context, flags):
    values = ["a", None, "", None, "zwölf", "x", None, "y", None, "z"]
    store = context.store()
    array = create(store, "optional[string]", 7)
    write(array, pa.array(values)[3:])
    column = read(array, flags)
    assert column.to_pylist() == values[3:] and column.null_count == 3
    plain = create(store, "string", 7, VLEN["string"])
    with pytest.raises(ZarrcError, match="element 0 is null"):
        write(plain, pa.array(values)[3:])


def test_empty(context):
    store = context.store()
    array = create(store, "string", 0, VLEN["string"])
    write(array, pa.array([], pa.string()))
    assert read(array).to_pylist() == []
