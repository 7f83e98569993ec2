"""Data types beyond zarr-python's: small floats, packed integers, subarrays, bytes, and what cannot
be a value."""
import asyncio
import json
import pickle
import sys
import types

import numpy as np
import pytest

import zarrc

ml_dtypes = pytest.importorskip("ml_dtypes")


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3", "float8_e5m2", "int4", "uint4", "int2"])
def test_small_numbers(store, name):
    dtype = np.dtype(getattr(ml_dtypes, name))
    data = np.array([[1, 0, -1 if not name.startswith("u") else 3, 1]] * 5).astype(dtype)
    array = zarrc.create_array(store, name="a", shape=data.shape, dtype=name, chunks=(2, 4), fill_value=1)
    assert array.dtype == dtype and array.fill_value == dtype.type(1) and (array[...] == data.dtype.type(1)).all()
    array[...] = data
    assert (array[...].astype(float) == data.astype(float)).all()
    assert zarrc.create_array(store, name="b", data=data).dtype == dtype
    array[0] = [0, 1, 0, 1]
    assert array[0].astype(int).tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("name,bits", [("int4", 4), ("uint4", 4), ("int2", 2)])
def test_packed(name, bits):
    dtype = np.dtype(getattr(ml_dtypes, name))
    data = np.arange(3 * 8).reshape(3, 8).astype(dtype)
    array = zarrc.create_array(None, shape=data.shape, dtype=name, chunks=(2, 8))
    array[...] = data
    packed = array.read(packed=True)
    assert packed.dtype == np.uint8 and packed.shape == (3, bits)
    per = 8 // bits
    unpacked = np.stack([packed >> bits * i & (1 << bits) - 1 for i in range(per)], axis=-1).reshape(3, 8)
    assert (unpacked == data.view(np.uint8) & (1 << bits) - 1).all()
    out = np.zeros_like(packed)
    assert array.read(out=out) is out and (out == packed).all()
    other = zarrc.create_array(None, shape=data.shape, dtype=name, chunks=(2, 8))
    other.write(..., packed, packed=True)
    assert (other[...] == data).all()
    with pytest.raises(ValueError, match="packed"):
        other.write(..., packed[:, :1], packed=True)
    with pytest.raises(TypeError, match="not packed"):
        zarrc.create_array(None, shape=4, dtype="int8").read(packed=True)


@pytest.mark.parametrize("order", ["><", ">>", "<>"])
def test_structs_of_another_byte_order(store, order):
    """Values and `out=` of structs in any byte order, also of fields that differ."""
    dtype = np.dtype([("a", "<i4"), ("p", [("x", "<f8")])])
    swapped = np.dtype([("a", order[0] + "i4"), ("p", [("x", order[1] + "f8")])])
    data = np.array([(1, (2.5,)), (3, (4.5,)), (-5, (6.5,))], dtype)
    array = zarrc.create_array(store, name="a", shape=3, dtype=dtype, chunks=2)
    array[...] = data.astype(swapped)
    assert (array[...] == data).all()
    asyncio.run(array.async_array.setitem(..., data[::-1].astype(swapped)))
    for read in (array.read, lambda key, out: asyncio.run(array.async_array.getitem(key, out=out)),
                 lambda key, out: array.read_many([key], out=[out])[0]):
        out = np.zeros(2, swapped)
        assert read(slice(1, 3), out=out) is out and (out == data[1::-1].astype(swapped)).all()
        with pytest.raises(ValueError, match="shape"):
            read(slice(0, 3), out=out)


@pytest.mark.parametrize("stored", [[("a", ">i4"), ("b", ">f8")], [("a", "u1"), ("b", ">f8")], [("a", "<i4"), ("b", ">f8")]])
def test_stored_structs_of_another_byte_order(path, stored):
    """Version 2 says the order of each field; memory has that of the machine, or the caller's."""
    stored = np.dtype(stored)
    data = np.array([(1, 2.5), (3, 4.5), (5, 6.5)], stored)
    array = zarrc.create_array(path, shape=3, dtype=stored, chunks=2, zarr_format=2)
    array[...] = data
    assert (array[...] == data).all() and array.dtype == stored.newbyteorder("=")
    out = np.zeros(3, stored)
    assert (array.read(out=out) == data).all() and (out == data).all()
    array[1:] = data[:2].astype(array.dtype)
    assert (array[...] == data[[0, 0, 1]]).all()


def test_struct_fields(store):
    dtype = np.dtype([("a", "int32"), ("p", [("x", "float32"), ("y", "float32", (2,))]), ("t", "datetime64[s]")])
    data = np.zeros((4, 3), dtype)
    data["a"] = np.arange(12).reshape(4, 3)
    data["p"]["y"] = np.arange(24).reshape(4, 3, 2)
    array = zarrc.create_array(store, name="a", data=data, chunks=(3, 2), zarr_format=2)
    assert array.dtype == dtype and (array[...] == data).all()
    assert (array["a"] == data["a"]).all() and (array["a", 1:3, ::-1] == data["a"][1:3, ::-1]).all()
    assert (array["p.y", 0] == data["p"]["y"][0]).all() and array["p.y"].shape == (4, 3, 2)
    both = array["a", "t", :2]
    assert both.dtype.names == ("a", "t") and (both["a"] == data["a"][:2]).all()
    array["a", 0] = -1
    data["a"][0] = -1
    array["p.y", 1] = [7, 8]
    data["p"]["y"][1] = [7, 8]
    assert (array[...] == data).all()
    assert isinstance(array[0, 0], np.void) and array[0, 0]["a"] == -1
    assert array.vindex["a", [0, 3], [1, 1]].tolist() == [-1, 10]
    array[1, 1] = (5, (1, [2, 3]), 9)
    assert array[1, 1]["p"]["y"].tolist() == [2, 3]
    with pytest.raises(IndexError, match="no field 'z'"):
        array["z"]


def test_text(store):
    data = np.array([["", "a", "ß€𝄞"], ["x" * 1000, "a\0b", "c\0"]], object)
    array = zarrc.create_array(store, name="a", shape=(2, 3), dtype=str, chunks=(1, 2))
    array[...] = data
    assert array[...].tolist() == data.tolist() and array[1, 2] == "c\0"
    assert array[::-1, [0, 2]].tolist() == [[data[1, 0], data[1, 2]], [data[0, 0], data[0, 2]]]
    array[0] = "one"
    assert array[0].tolist() == ["one"] * 3
    array[:, 0] = ["p", "q"]
    assert array[:, 0].tolist() == ["p", "q"]
    out = np.empty((2, 3), object)
    assert array.read(out=out) is out and out[1, 0] == "q"
    with pytest.raises(TypeError, match="text"):
        array[0] = [None, "a", "b"]
    with pytest.raises(UnicodeEncodeError):
        array[0] = "\ud800"


def _string_dtype(**options):
    if not hasattr(np.dtypes, "StringDType"):
        pytest.skip("NumPy 1 has no StringDType")
    return np.dtypes.StringDType(**options)


TEXTS = ["", "a", "fifteen bytes !", "sixteen bytes !!", "x" * 300, "ß€𝄞", "é" * 200, "a\0b", "c\0", "\0", "𝄞" * 4, "end"]  # NumPy keeps up to 15 and 255 bytes in other ways


def test_arrays_of_text(store):
    dtype = _string_dtype()
    data = np.array(TEXTS * 3, dtype).reshape(6, 6)
    array = zarrc.create_array(store, name="a", shape=(6, 6), dtype=str, chunks=(4, 5), fill_value="fill ß")
    assert array[...].dtype == dtype and (array[...] == "fill ß").all()
    array[...] = data
    assert array[...].tolist() == data.tolist() and array[...].flags.c_contiguous and array[...].flags.writeable
    assert array[::-2, 1::3].tolist() == data[::-2, 1::3].tolist() and array[5, 1] == TEXTS[7]
    found = array[...]
    found[0] = "another text of more than fifteen bytes"  # memory of its own
    assert array[1:].tolist() == found[1:].tolist() and array[0].tolist() == data[0].tolist()
    for given in (data[::-1], data.T, np.asfortranarray(data), data[:, ::-1], np.broadcast_to(data[2], (6, 6))):
        array[...] = given
        assert array[...].tolist() == given.tolist()
    array[1:3, ::2] = data[3:5, 1::2]
    assert array[1:3, ::2].tolist() == data[3:5, 1::2].tolist()
    array[0] = data[1, :1]
    array[4] = np.array("one text of no dimension", dtype)
    assert array[0].tolist() == [data[1, 0]] * 6 and array[4].tolist() == ["one text of no dimension"] * 6
    array[2:2] = data[:0]
    assert array[2:2].shape == (0, 6) and array[2:2].dtype == dtype
    out = np.empty((6, 6), dtype)
    assert array.read(out=out[::-1]) is not None and out[::-1].tolist() == array[...].tolist()


def test_one_text(store):
    data = np.array("tëxt\0", _string_dtype())
    array = zarrc.create_array(store, name="a", shape=(), dtype=str)
    array[...] = data
    assert array[...] == array[()] == "tëxt\0"
    array[...] = "other"
    assert zarrc.open_array(store, path="a")[()] == "other"


@pytest.mark.parametrize("missing", [None, np.nan, "none"])
def test_missing_text(missing):
    """The value in place of a missing element is written if it is text."""
    data = np.array(["a", missing, "c"], _string_dtype(na_object=missing))
    array = zarrc.create_array(None, shape=3, dtype=str, chunks=2)
    if missing == "none":
        array[...] = data
        assert array[...].tolist() == ["a", "none", "c"]
        return
    with pytest.raises(TypeError, match="elements are text"):
        array[...] = data
    array[...] = data[[0, 2, 0]]
    assert array[...].tolist() == ["a", "c", "a"]


def test_the_extension_checks_arrays_of_text():
    array = zarrc.create_array(None, shape=3, dtype=str)
    for wrong in (np.arange(3), np.array(["a"] * 2, _string_dtype()), np.array([["a"] * 3], _string_dtype())):
        with pytest.raises(ValueError, match="one text an element"):
            array._vlen((3,), wrong)
    with pytest.raises(ValueError, match="one text an element"):
        array._vlen((3,)).texts(np.dtype("int64"))


def test_bytes():
    array = zarrc.create_array(None, shape=3, dtype="variable_length_bytes", chunks=2)
    array[:] = np.array([b"", b"a\0", b"\xff" * 99], object)
    assert array[:].tolist() == [b"", b"a\0", b"\xff" * 99] and array[1] == b"a\0"
    with pytest.raises(TypeError, match="bytes"):
        array[0] = "text"


@pytest.mark.parametrize("dtype,value,expected", [
    ("float32", "nan", np.nan), ("float64", np.inf, np.inf), ("int8", -5, -5), ("bool", True, True), ("complex64", 1 + 2j, 1 + 2j),
    ("datetime64[s]", np.datetime64("2020-01-01"), np.datetime64("2020-01-01", "s")), ("S3", b"ab", b"ab"), ("U3", "äb", "äb"),
    ("str", "none", "none"), ("str", 0, "0"), ("str", "", ""), ("variable_length_bytes", 0, b""), ("datetime64[s]", np.datetime64("NaT", "s"), np.datetime64("NaT", "s"))])
def test_fill_values(store, dtype, value, expected):
    for zarr_format in (2, 3):
        array = zarrc.create_array(store, name=f"a{zarr_format}", shape=3, dtype=dtype, fill_value=value, zarr_format=zarr_format)
        again = zarrc.open_array(store, path=f"a{zarr_format}")
        for found in (array.fill_value, again.fill_value, again[0]):
            assert found == expected or found != found and expected != expected


def test_wrong_fill_values():
    for dtype, value in [("uint8", 300), ("uint8", -1), ("int32", 1.5), ("variable_length_bytes", 5),
                         ("r16", b"abcd"), ("r16", np.void(b"abcd"))]:
        with pytest.raises((ValueError, OverflowError, TypeError)):
            zarrc.create_array(None, shape=3, dtype=dtype, fill_value=value)
    assert zarrc.create_array(None, shape=1, dtype="r16", fill_value=b"a").fill_value.tobytes() == b"a\0"


def test_conversion_as_numpy_assigns():
    array = zarrc.create_array(None, shape=4, dtype="int16")
    array[:] = [1.9, 2, True, -3]
    assert array[:].tolist() == [1, 2, 1, -3]
    array[:2] = np.array([7, 8], ">i8")
    assert array[:].tolist() == [7, 8, 1, -3]


@pytest.mark.parametrize("name", ["M8", "m8"])
def test_times_without_a_unit_of_the_other_order(path, name):
    """NumPy makes arrays of ">M8" in the order of the machine, whatever it is asked for."""
    counts = np.array([1, -2, 100, -2**63], ">i8")
    for order in "<>":
        document = {"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": order + name, "compressor": None, "filters": None,
                    "fill_value": 0, "order": "C"}
        store = {".zarray": json.dumps(document).encode(), "0": counts.astype(order + "i8").tobytes()}
        z = zarrc.open_array(store)
        for found in (z[:], z[::-1][::-1], z.oindex[[0, 1, 2, 3]]):
            assert found.dtype.isnative and (found.view("i8") == counts).all()
        z[:2] = z[1:3]
        assert (z[:].view("i8") == counts[[1, 2, 2, 3]]).all() and np.frombuffer(bytes(store["0"]), order + "i8")[0] == -2


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("name", ["M8", "m8"])
@pytest.mark.parametrize("order", "<>")
def test_multiples_of_times_without_a_unit(store, order, name, zarr_format):
    """NumPy's `empty` and the text of the data type leave the multiple out."""
    dtype = np.dtype(f"{name}[5generic]")
    counts = np.array([1, -2, 100, -2**63])
    given = counts.astype(order + "i8").view(f"{order}{name}[5generic]")
    z = zarrc.create_array(store, name="a", data=given, zarr_format=zarr_format)
    z = zarrc.open_array(store, path="a")
    assert np.datetime_data(z.dtype) == np.datetime_data(z.fill_value.dtype) == ("generic", 5)
    out = np.zeros(4, "i8").view(dtype)
    z.read(out=out)
    for found in (z[:], z[::-1][::-1], z.oindex[[0, 1, 2, 3]], z.read_many([...])[0], out, zarrc.array(z)[:]):
        assert found.dtype == dtype and (found.view("i8") == counts).all()
    assert z[1].dtype == dtype and z[1] == z[:][1]
    z[:2] = z[1:3]
    assert (z[:].view("i8") == counts[[1, 2, 2, 3]]).all()


def test_fields_with_all_dimensions_chosen(store):
    z = zarrc.create_array(store, name="a", shape=3, dtype=[("a", "i4"), ("b", "f8")])
    z["a"] = [1, 2, 3]
    z[1, "b"] = 5
    assert z[1, "a"] == 2 and z["b", 1] == 5 and z[:, "a"].tolist() == [1, 2, 3] and z["a", "b", 1].tolist() == (2, 5)
    with pytest.raises(IndexError):
        z[1, 2, "a"]
    none = zarrc.create_array(store, name="none", shape=(), dtype=z.dtype)
    none["b"] = 7
    assert none["a"] == 0 and none[..., "b"] == 7 and none[()].tolist() == (0, 7)


def test_memory_that_would_cut_text(store):
    z = zarrc.create_array(store, name="a", shape=2, dtype=str)
    z[:] = ["abc", "de"]
    for out, error in [(np.empty(2, "U1"), TypeError), (np.empty(2, "S9"), TypeError), (np.empty((3, 2), object), ValueError)]:
        for read in (lambda: z.read(out=out), lambda: asyncio.run(z.async_array.getitem(..., out=out))):
            with pytest.raises(error, match="out has the"):
                read()
    out = np.empty(2, object)
    assert z.read(out=out) is out and out.tolist() == asyncio.run(z.async_array.getitem(..., out=out)).tolist() == ["abc", "de"]


# ---- zarrc.dtype ----

NAMES = {  # what zarrc.dtype takes: NumPy, v3 name, v2 metadata, kind, bits, byte order, Arrow
    "int16": ("i2", "int16", "<i2", "int", 16, sys.byteorder, "int16"),
    ">i2": (">i2", "int16", ">i2", "int", 16, "big", "int16"),
    "bool": ("?", "bool", "|b1", "bool", 8, None, "bool"),
    "complex128": ("c16", "complex128", "<c16", "complex", 128, sys.byteorder, None),
    "r24": ("V3", "r24", "|V3", "raw", 24, None, "fixed_size_binary[3]"),
    "<U4": ("U4", "fixed_length_utf32", "<U4", "utf32", 128, sys.byteorder, None),
    "M8[us]": ("M8[us]", "numpy.datetime64", "<M8[us]", "datetime", 64, sys.byteorder, "timestamp[us]"),
    "M8[5us]": ("M8[5us]", "numpy.datetime64", "<M8[5us]", "datetime", 64, sys.byteorder, None),
    "bfloat16": (ml_dtypes.bfloat16, "bfloat16", "bfloat16", "float", 16, sys.byteorder, None),
    "int4": (ml_dtypes.int4, "int4", "int4", "int", 4, None, None),
    "string": (np.dtype(zarrc.create_array(None, shape=1, dtype=str).dtype), "string", "|O", "string", 128, None, "string"),
    "bytes": (object, "variable_length_bytes", "|O", "vbytes", 128, None, "binary"),
}


@pytest.mark.parametrize("spec", NAMES)
def test_what_is_known_about_a_type(spec):
    pyarrow = pytest.importorskip("pyarrow")
    numpy, name, v2, kind, bits, byte_order, arrow = NAMES[spec]
    found = zarrc.dtype(bytes if spec == "bytes" else spec)
    assert found.numpy == np.dtype(numpy) and found.numpy.byteorder == np.dtype(numpy).byteorder
    assert (found.name, found.to_json(2), found.kind, found.item_bits, found.byte_order) == (name, v2, kind, bits, byte_order)
    assert found.arrow == (arrow and pyarrow.type_for_alias(arrow) if "[3]" not in str(arrow) else pyarrow.binary(3))
    assert (found.ml_dtypes is None) == (not hasattr(ml_dtypes, name)) and not found.is_experimental
    for again in (found, found.to_json(3) if byte_order != "big" else found.to_json(2), pickle.loads(pickle.dumps(found)), eval(repr(found))):
        assert zarrc.dtype(again) == found and hash(zarrc.dtype(again)) == hash(found)
    if kind not in ("string", "vbytes"):  # the other way round
        assert zarrc.dtype(found.numpy) == found and found.itemsize == found.numpy.itemsize
    array = zarrc.create_array(None, shape=2, dtype=found, zarr_format=2 if byte_order == "big" else 3)
    assert array.dtype == found.numpy and array.dtype.byteorder == found.numpy.byteorder
    assert array.fill_value == found.fill_value or np.isnat(array.fill_value) and np.isnat(found.fill_value)


def test_types_that_consist_of_types():
    mixed = np.dtype([("a", ">i4"), ("t", "<M8[s]"), ("s", [("x", "<f8", (2,))])])
    found = zarrc.dtype(mixed)
    assert found.numpy == mixed and found.byte_order is None and found == eval(repr(found)) and np.isnat(found.fill_value["t"])
    assert found != zarrc.dtype(mixed.newbyteorder("<")) and zarrc.dtype(mixed.newbyteorder(">")).byte_order == "big"
    assert zarrc.dtype([["a", "<i4"]]).configuration["fields"] == [{"name": "a", "data_type": "int32"}] and found.name is None
    optional = zarrc.dtype("optional[int16]")
    assert optional.underlying_type == zarrc.dtype("int16") and str(optional.arrow) == "int16" and optional.item_type is None
    lists = zarrc.dtype("vlen-array[int32]")
    assert lists.item_type == zarrc.dtype("int32") and lists.name is None and str(lists.arrow) == "list<item: int32>"
    assert zarrc.dtype("complex64").components == 2 and zarrc.dtype("complex64").component_bits == 32


def test_similar_names():
    for unknown, similar in {"blfoat16": "bfloat16", "flot32": "float32", "int33": "int32"}.items():
        for call in (zarrc.dtype, lambda dtype: zarrc.create_array(None, shape=1, dtype=dtype)):
            with pytest.raises(zarrc.errors.UnsupportedError, match=f'"{unknown}" is not known; similar names are .*{similar}'):
                call(unknown)
    with pytest.raises(zarrc.errors.UnsupportedError, match='"nonsense" is not known$'):
        zarrc.dtype("nonsense")


def test_types_of_torch(monkeypatch):
    """By a module like torch: its data types are of one class and have names."""
    class Type:
        def __init__(self, name):
            self.name = name

        def __repr__(self):
            return f"torch.{self.name}"

    Type.__module__ = "torch"
    names = ("bool", "int16", "uint8", "bfloat16", "complex64", "float8_e4m3fn", "int4")
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(dtype=Type, string=len, **{name: Type(name) for name in names}))
    for name in names[:-1]:
        assert repr(zarrc.dtype(name).torch) == f"torch.{name}" and zarrc.dtype(zarrc.dtype(name).torch) == zarrc.dtype(name)
    for name in ("int4", "string", "r8", "float64", "<U1"):
        assert zarrc.dtype(name).torch is None
