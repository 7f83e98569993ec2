"""Fill values compared bit for bit, in both formats, written and read by each implementation."""
import json

import numpy as np
import pytest

import cases
import peers
from zarrc_abi import ZarrcError


def bits(value, unsigned):
    return np.array(value, unsigned).tobytes()


# (v3 data type, numpy type, JSON, bits)
V3 = [
    ("bool", "?", False, b"\0"), ("bool", "?", True, b"\1"),
    ("int8", "i1", -128, b"\x80"), ("uint8", "u1", 255, b"\xff"),
    ("int64", "i8", 2**63 - 1, bits(2**63 - 1, "u8")), ("int64", "i8", -2**63, bits(2**63, "u8")),
    ("uint64", "u8", 2**64 - 1, b"\xff" * 8), ("uint64", "u8", 2**53 + 1, bits(2**53 + 1, "u8")),
    ("float16", "f2", "NaN", bits(0x7e00, "u2")), ("float16", "f2", "0x7c01", bits(0x7c01, "u2")),
    ("float16", "f2", 6e-8, bits(1, "u2")), ("float16", "f2", -0.0, bits(0x8000, "u2")),
    ("float32", "f4", "NaN", bits(0x7fc00000, "u4")), ("float32", "f4", "Infinity", bits(0x7f800000, "u4")),
    ("float32", "f4", "0xffc12345", bits(0xffc12345, "u4")),
    ("float32", "f4", "0x7f800001", bits(0x7f800001, "u4")), ("float32", "f4", 0.1, bits(0x3dcccccd, "u4")),
    ("float32", "f4", 1e-45, bits(1, "u4")), ("float32", "f4", 3.4028234663852886e38, bits(0x7f7fffff, "u4")),
    ("float64", "f8", -0.0, bits(1 << 63, "u8")), ("float64", "f8", "-Infinity", bits(0xfff << 52, "u8")),
    ("float64", "f8", "0x7ff8000000000001", bits(0x7ff8000000000001, "u8")),
    ("float64", "f8", "0xfff0000000000001", bits(0xfff0000000000001, "u8")),
    ("float64", "f8", 5e-324, bits(1, "u8")), ("float64", "f8", 0.1, np.float64(0.1).tobytes()),
    ("float64", "f8", 7, np.float64(7).tobytes()),
    ("complex64", "c8", ["-Infinity", -0.0], bits(0xff800000, "u4") + bits(1 << 31, "u4")),
    ("complex128", "c16", ["NaN", "0x7ff8000000000fff"],
     bits(0x7ff8 << 48, "u8") + bits(0x7ff8000000000fff, "u8")),
    ("r16", "V2", [1, 254], b"\1\xfe"), ("r16", "V2", "Af4=", b"\1\xfe"),
]


# NumPy's scalars quiet signalling NaNs, and zarr-python's fill value is one.
SIGNALLING = ("0x7c01", "0x7f800001", "0xfff0000000000001")


def name(value):
    return json.dumps(value)[:24].replace('"', "").replace("/", "_") if not isinstance(value, bytes) \
        else value.hex()


@pytest.mark.parametrize("data_type,numpy_type,value,expected", V3, ids=name)
def test_v3(context, tmp_path, data_type, numpy_type, value, expected):
    codec = cases.PLAIN if np.dtype(numpy_type).itemsize == 1 or data_type[0] == "r" else cases.BIG
    document = cases.document_v3(data_type, value, [codec], (3,), (2,))
    whole = expected * 3
    array = context.store().create(document=document)
    assert array.fill_bytes == expected
    assert array.read(numpy_type).tobytes() == whole
    assert array.read(numpy_type, memory="fake").tobytes() == whole
    # Every implementation, ours included, reads the fill value that we write.
    written = json.loads(array.metadata)
    again = context.store().create(document=written)
    assert again.fill_bytes == expected and again.metadata == array.metadata
    cases.put_document(tmp_path, peers.translate(written))
    able = set(peers.find_supporting(written)) - {peers.ZARRS}
    for peer in able - ({peers.PYTHON} if value in SIGNALLING else set()):
        assert peers.read(peer, tmp_path).tobytes() == whole, peer
    # Through the options of creation as well.
    made = context.store().create("", (3,), data_type, fill_value=value, codecs=[codec], chunks=(2,))
    assert made.fill_bytes == expected
    # An array of nothing but the fill value stores nothing; one bit beside it is stored.
    made.write(np.frombuffer(whole, numpy_type))
    assert made.store.keys() == ["zarr.json"]
    other = bytearray(whole)
    other[-1] ^= 1
    if data_type != "bool":
        made.write(np.frombuffer(bytes(other), numpy_type))
        assert len(made.store.keys()) == 2
        assert made.read(numpy_type).tobytes() == bytes(other)


V2 = [
    ("<f4", "NaN", bits(0x7fc00000, "u4")), (">f8", "-Infinity", bits(0xfff << 52, "u8")),
    ("<f8", -0.0, bits(1 << 63, "u8")), ("<u8", 2**64 - 1, b"\xff" * 8), (">i2", -2, bits(65534, "u2")),
    ("|b1", True, b"\1"), ("<c8", ["NaN", 0.0], bits(0x7fc00000, "u4") + bytes(4)),
    ("|S3", "YWI=", b"ab\0"), ("<U2", "\u00fc", "\u00fc\0".encode("utf-32-le")),
    ("|V2", "/wA=", b"\xff\0"), ("<M8[s]", "NaT", bits(1 << 63, "u8")), ("<m8[s]", 3, bits(3, "u8")),
]


@pytest.mark.parametrize("data_type,value,expected", V2, ids=name)
def test_v2(context, tmp_path, data_type, value, expected):
    numpy_type = np.dtype(data_type).newbyteorder("=")
    document = cases.document_v2(data_type, value, (3,), (2,))
    array = context.store().create(document=document)
    assert array.fill_bytes == expected
    assert array.read(numpy_type).tobytes() == expected * 3
    written = json.loads(array.metadata)
    cases.put_document(tmp_path, written)
    for peer in peers.find_supporting(written):
        cases.same_bits(peers.read(peer, tmp_path), np.frombuffer(expected * 3, numpy_type))
    array.write(np.frombuffer(expected * 3, numpy_type))
    assert array.store.keys() == [".zarray"]


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
def test_bare_words(context, tmp_path, value):
    """zarr-python 3.0 wrote them without quotes."""
    document = cases.document_v2("<f8", 0, (2,), (2,))
    text = json.dumps(document).replace('"fill_value": 0', f'"fill_value": {value}')
    (tmp_path / ".zarray").write_text(text)
    array = context.store(str(tmp_path)).open()
    assert array.fill_bytes == np.float64(value.replace("Infinity", "inf")).tobytes() or value == "NaN"
    assert f'"fill_value": "{value}"' in array.metadata


BEYOND = [("float16", 65520, "inf"), ("float16", -65520.0, "-inf"), ("float32", 1e39, "inf"),
          ("float32", -3.5e38, "-inf"), ("float16", 65519, "65504"), ("float32", 3.4028235e38, "3.4028235e38"),
          ("complex64", [1e39, 2.5], "inf"), ("complex64", [1.5, -1e39], "1.5"), ("complex128", [1.5, 2.5], "1.5")]


@pytest.mark.parametrize("format", [2, 3])
def test_beyond_real_part(context, tmp_path, format):
    """A number alone is the real part of a pair."""
    document = cases.document_v2("<c8", 1e39, (3,), (2,)) if format == 2 else \
        cases.document_v3("complex64", 1e39, [cases.LITTLE], (3,), (2,))
    cases.put_document(tmp_path, document)
    got = context.store(str(tmp_path)).open().read("<c8")
    assert np.isposinf(got.real).all() and (got.imag == 0).all()


@pytest.mark.parametrize("format", [2, 3])
@pytest.mark.parametrize("data_type,value,real", BEYOND, ids=name)
def test_beyond(context, tmp_path, data_type, value, real, format):
    """A stored fill value is rounded to nearest, as in other implementations. Creating such an array fails."""
    dtype = np.dtype(data_type)
    document = cases.document_v2(dtype.str, value, (3,), (2,)) if format == 2 else \
        cases.document_v3(data_type, value, [cases.LITTLE], (3,), (2,))
    cases.put_document(tmp_path, document)
    array = context.store(str(tmp_path)).open()
    got = array.read(dtype)
    assert got.real[0] == dtype.type(0).real.dtype.type(real)
    for peer in (peers.PYTHON, peers.TENSORSTORE):
        cases.same_bits(np.asarray(peers.read(peer, tmp_path)).astype(dtype), got)
    if not np.isinf(got.view(dtype.type(0).real.dtype)).any():
        return
    with pytest.raises(ZarrcError, match="out of range") as raised:
        context.store().create(document=document)
    assert raised.value.code == "INVALID"


@pytest.mark.parametrize("data_type,value", [("float8_e4m3fn", 1e9), ("float4_e2m1fn", 7.5), ("int8", 128),
                                             ("float32", [1e39]), ("float32", "1e39x"), ("complex64", [1e39])])
def test_beyond_without_infinity(context, data_type, value):
    store = context.store()
    codec = cases.PLAIN if data_type in ("float8_e4m3fn", "float4_e2m1fn", "int8") else cases.LITTLE
    store.put("zarr.json", json.dumps(cases.document_v3(data_type, value, [codec], (3,), (2,))).encode())
    with pytest.raises(ZarrcError, match="fill_value") as raised:
        store.open()
    assert raised.value.code in ("CORRUPT", "UNSUPPORTED")
