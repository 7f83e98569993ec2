"""Undocumented properties of real files, and known mistakes of readers: one row for each entry of
the handbook's list of traps. A row has the trap in our words, a store, and the expected elements
or the expected error. If another suite tests a trap in more detail, the row only refers to it."""
import json
import os
import struct
import unicodedata
import warnings
import zlib

import numcodecs
import numpy as np
import pytest
import zarr

import cases
from zarrc_abi import ZarrcError
from zarrc_selection import Selection

NAN32 = "0000c07f"
MISSING = object()
U2 = struct.Struct("<4H").pack(1, 2, 3, 4)
LITTLE, PLAIN = cases.LITTLE, cases.PLAIN
ROWS = {}


def codec(name, **configuration):
    return {"name": name, "configuration": configuration}


def text(document, changes):
    document = {k: v for k, v in {**document, **changes}.items() if v is not MISSING}
    return json.dumps(document).encode()


def v3(chunks=None, replace=None, **changes):
    """An array of 4 uint16 in one chunk "c/0"; replace: texts that json cannot write."""
    document = text(cases.document_v3("uint16", 7, [LITTLE], (4,), (4,)), changes)
    if replace:
        assert replace[0] in document
        document = document.replace(*replace)
    return {"zarr.json": document, **(chunks or {})}


def v2(stored=None, replace=None, attributes=None, **changes):
    document = cases.document_v2("<u2", 7, (4,), (4,))
    document = text(document, {"dimension_separator": MISSING, **changes})
    if replace:
        assert replace[0] in document
        document = document.replace(*replace)
    more = {".zattrs": attributes} if attributes else {}
    return {".zarray": document, **more, **(stored or {})}


def row(trap, files, dtype=None, values=None, error=None, fill=None):
    """values: what is read, in C order; fill: the fill value's bytes as hexadecimal digits;
    error: a code and a word of the text, from opening or from reading all of it."""
    assert trap not in ROWS
    ROWS[trap] = (files, dtype, values, error, fill)


def frame(data, sized):
    """A zstd frame of one stored block, with its length or without."""
    head = struct.pack("<IBB", 0xFD2FB528, 0x20, len(data)) if sized else struct.pack("<IBB", 0xFD2FB528, 0, 0x80)
    return head + struct.pack("<I", len(data) << 3 | 1)[:3] + data


def gzip(data):
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


def shuffle(data, size):
    return bytes(numcodecs.Shuffle(size).encode(data))


def blosc(data, claim=None):
    n = len(data) if claim is None else claim
    return struct.pack("<4B3I", 2, 1, 2, 2, n, n, n + 16) + data


ONE = [1, 2, 3, 4]
F4, F8 = {"data_type": "float32"}, {"data_type": "float64"}
C0 = {"c/0": U2}

# ---- documents ---------------------------------------------------------------------------

row("7.1 bare NaN as a fill value, v2", v2(replace=(b'"fill_value": 7', b'"fill_value": NaN'), dtype="<f4"),
    fill=NAN32)
row("7.1 bare -Infinity as a fill value, v3",
    v3(replace=(b'"fill_value": 7', b'"fill_value": -Infinity'), **F4), fill="000080ff")
row("7.1 bare NaN in attributes, v2", v2({"0": U2}, attributes=b'{"x": NaN, "y": [-Infinity]}'), "u2", ONE)
row("7.2 an empty list of filters", v2({"0": U2}, filters=[]), "u2", ONE)
row("7.2 no compressor said", v2({"0": U2}, compressor=MISSING), "u2", ONE)
row("7.2 no filters said", v2({"0": U2}, filters=MISSING), "u2", ONE)
row("7.2 storage transformers null", v3(C0, storage_transformers=None), "u2", ONE)
row("7.2 storage transformers an empty list", v3(C0, storage_transformers=[]), "u2", ONE)
row("7.2 dimension names null", v3(C0, dimension_names=None), "u2", ONE)
row("7.2 consolidated metadata null in an array", v3(C0, consolidated_metadata=None), "u2", ONE)
row("7.2 no attributes", v3(C0, attributes=MISSING), "u2", ONE)
row("7.3 a codec as a bare text", v3({"c/0": b"\1\2\3\4"}, data_type="uint8", codecs=["bytes"]), "u1", ONE)
row("7.3 a key encoding as a bare text", v3(C0, chunk_key_encoding="default"), "u2", ONE)
row("7.3 a data type as an object", v3(C0, data_type={"name": "uint16"}), "u2", ONE)
row("7.4 an unknown member that may be ignored", v3(C0, later={"must_understand": False}), "u2", ONE)
row("7.4 an unknown member that may not", v3(C0, later={"x": 1}), error=("UNSUPPORTED", "later"))
row("7.4 an unknown codec by its name", v3(C0, codecs=[LITTLE, codec("snake")]), error=("UNSUPPORTED", "snake"))
row("7.4 a codec's URI", v3({"c/0": b"\x0f"}, data_type="bool", fill_value=False,
                            codecs=[codec("https://codec.zarrs.dev/array_to_bytes/packbits")]), "?", [True] * 4)
row("7.4 names are case-sensitive", v3(C0, codecs=[{**LITTLE, "name": "Bytes"}]), error=("UNSUPPORTED", "Bytes"))
row("7.5 an integer's fill value as 0.0", v2(replace=(b'"fill_value": 7', b'"fill_value": 0.0')), fill="0000")
row("7.5 a float's fill value as a text of digits", v2(dtype="<f4", fill_value="1.5"), fill="0000c03f")
row("7.5 hexadecimal digits, highest first", v3(**F4, fill_value="0x7fc00001"), fill="0100c07f")
row("7.5 hexadecimal digits do not follow endian",
    v3(**F4, fill_value="0x7fc00001", codecs=[cases.BIG]), fill="0100c07f")
row("7.5 minus zero", v3(**F8, fill_value=-0.0), fill="0000000000000080")
row("7.5 more than 2^53", v3(data_type="uint64", fill_value=2**53 + 1), fill="0100000000002000")
row("7.5 a signalling NaN", v3(**F4, fill_value="0x7f800001"), fill="0100807f")
row("7.6 raw bits with a list", v3(data_type="r16", fill_value=[1, 2], codecs=[PLAIN]), fill="0102")
row("7.6 raw bits with base64", v3(data_type="r16", fill_value="AQI=", codecs=[PLAIN]), fill="0102")
row("7.6 raw bits by the other name", v3(data_type=codec("raw_bytes", length_bytes=2), fill_value="AQI=",
                                         codecs=[PLAIN]), fill="0102")
row("7.6 raw bits that are no bytes", v3(data_type="r9", fill_value=[1]), error=("CORRUPT", "r9"))
PAIRED = codec("structured", fields=[["a", "int16"], ["b", "uint8"]])
row("7.7 the old name of structs, fields as pairs, no endian, base64",
    v3({"c/0": b"\1\0\2" * 4}, data_type=PAIRED, fill_value="AQIDBA=="[:4], codecs=[PLAIN]), "i2,u1", [(1, 2)] * 4)
row("7.7 a struct's fill value in the fields' own orders, v2",
    v2(dtype=[["a", ">i2"], ["b", "<i2"]], fill_value="AAECAA=="), fill="01000200")
row("7.9 nested keys without dimension_separator",
    v2({"0/0": U2}, shape=[2, 2], chunks=[2, 2]), "u2", ONE)
row("7.10 the same member twice", v3(C0, replace=(b'"shape"', b'"shape": [9], "shape"')),
    error=("CORRUPT", "shape"))
row("7.11 both formats at one place", {**v2(), **v3(C0)}, "u2", ONE)
row("7.13 a transpose by the letter F",
    v3({"c/0/0": U2}, shape=[2, 2], chunk_grid=codec("regular", chunk_shape=[2, 2]),
       codecs=[codec("transpose", order="F"), LITTLE]), "u2", [1, 3, 2, 4])
row("7.13 a transpose by the letter C", v3(C0, codecs=[codec("transpose", order="C"), LITTLE]), "u2", ONE)
row("7.13 the codec bytes as endian", v3(C0, codecs=[codec("endian", endian="little")]), "u2", ONE)
row("7.13 a sharding without index_location",
    v3({"c/0": U2 + struct.pack("<2Q", 0, 8)}, codecs=[codec(
        "sharding_indexed", chunk_shape=[4], codecs=[LITTLE], index_codecs=[LITTLE])]), "u2", ONE)
row("7.13 gzip without a level", v3({"c/0": gzip(U2)}, codecs=[LITTLE, {"name": "gzip"}]), "u2", ONE)
row("7.13 blosc with numcodecs' shuffle and no typesize",
    v3({"c/0": blosc(U2)}, codecs=[LITTLE, codec("blosc", cname="lz4", clevel=5, shuffle=1, blocksize=0)]),
    "u2", ONE)
row("7.44 endian where it means nothing", v3({"c/0": b"\1\2\3\4"}, data_type="uint8", codecs=[cases.BIG]), "u1", ONE)
row("7.44 no endian where it is needed", v3(C0, codecs=[PLAIN]), error=("CORRUPT", "endian is required"))
row("7.45 a codec without configuration", v3({"c/0": bytes(numcodecs.CRC32C().encode(U2))},
                                             codecs=[LITTLE, {"name": "crc32c"}]), "u2", ONE)
row("7.45 zstd without checksum", v3({"c/0": frame(U2, True)}, codecs=[LITTLE, codec("zstd", level=3)]), "u2", ONE)
row("7.46 0 for bytes of fixed length", v2(dtype="|S2", fill_value=0), fill="0000")
row("7.46 0 for text of fixed length", v2(dtype="<U1", fill_value=0), fill="00000000")
row("7.46 a text for an integer", v2(fill_value="0"), fill="0000")
row("7.46 a byte order for a byte", v2({"0": b"\1\2\3\4"}, dtype="<u1"), "u1", ONE)
row("7.46 the other one", v2({"0": b"\1\2\3\4"}, dtype=">i1"), "i1", ONE)
row("7.46 U with vlen-utf8, of zarr-python 3.0", v2({"0": struct.pack(
    "<IIcII2sI", 4, 1, b"a", 0, 2, "\u00fc".encode(), 0)},
    dtype="<U5", fill_value="", filters=[{"id": "vlen-utf8"}]), None, [b"a", b"", "\u00fc".encode(), b""])
row("7.46 S with vlen-bytes, of zarr-python 3.0", v2({"0": struct.pack("<II2sIII", 4, 2, b"\0a", 0, 0, 0)},
    dtype="|S6", fill_value="", filters=[{"id": "vlen-bytes"}]), None, [b"\0a", b"", b"", b""])
row("7.46 null as a fill value of numbers in v3, as GDAL writes it", v3(C0, fill_value=None), "u2", ONE)
row("7.46 null of a text", v3(data_type="string", fill_value=None, codecs=[{"name": "vlen-utf8"}]),
    error=("CORRUPT", "fill_value"))
row("7.46 null of a bool, which zarr-python reads as false", v3(data_type="bool", fill_value=None, codecs=[PLAIN]),
    "u1", [0] * 4)
row("order null in v2, which zarr-python refuses", v2(order=None), error=("CORRUPT", "order"))
row("7.42 NCZarr's char of netCDF 4.9.0", v2({"0": b"abcd"}, dtype="<U1", fill_value=None, _NCZARR_ARRAY={}),
    "S1", [b"a", b"b", b"c", b"d"])
row("7.42 the same without NCZarr's own member", v2({"0": b"abcd"}, dtype="<U1", fill_value=None),
    error=("CORRUPT", "4 bytes where its shape and data type need 16"))
row("7.50 the draft that GDAL 3.6 writes", {"zarr.json": json.dumps({
    "zarr_format": "https://purl.org/zarr/spec/protocol/core/3.0", "metadata_encoding":
    "https://purl.org/zarr/spec/protocol/core/3.0", "metadata_key_suffix": ".json", "extensions": []}).encode()},
    error=("UNSUPPORTED", "a draft of Zarr v3"))
for _size in ({}, {"elementsize": 0}):  # by the size of the data type, whatever the member says
    for _mark in ("_NCZARR_ARRAY", "_nczarr_array"):
        row(f"7.42 NCZarr's shuffle {_size} {_mark}", v2({"0": shuffle(U2, 2)}, filters=[{"id": "shuffle", **_size}],
                                                      **{_mark: {}}), "u2", ONE)
        row(f"7.42 the same among attributes {_size} {_mark}", v2(
            {"0": shuffle(U2, 2)}, filters=[{"id": "shuffle", **_size}],
            attributes=json.dumps({_mark: {}}).encode()), "u2", ONE)
row("7.42 shuffle without a size of others: numcodecs copies", v2({"0": U2}, filters=[{"id": "shuffle", "elementsize": 0}]),
    "u2", ONE)
row("7.17 blosc's shuffle in GDAL's words", v2({"0": blosc(U2)}, compressor={
    "id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": "BIT", "blocksize": 0}), "u2", ONE)
row("7.47 a small float as a number", v3(data_type="float8_e4m3fn", fill_value=1.5, codecs=[PLAIN]), fill="3c")
row("7.47 a small float as hexadecimal digits", v3(data_type="float8_e4m3fn", fill_value="0x3c", codecs=[PLAIN]),
    fill="3c")
row("7.50 a draft's bool fill value", v3(data_type="bool", fill_value=0, codecs=[PLAIN]), fill="00")
row("7.50 a draft without array->bytes", v3(C0, codecs=[]), error=("CORRUPT", "codecs"))
row("7.42 NCZarr's own member", v2({"0": U2}, _nczarr_array={"storage": "chunked"}), "u2", ONE)
row("7.42 NCZarr's char", v2({"0": b"abcd"}, dtype=">S1", fill_value=""), "S1", [b"a", b"b", b"c", b"d"])
row("7.38 names fewer than dimensions", v3(C0, dimension_names=[]), error=("CORRUPT", "dimension_names"))
row("7.38 a name twice", v3({"c/0/0": U2}, shape=[2, 2], chunk_grid=codec("regular", chunk_shape=[2, 2]),
                            dimension_names=["x", "x"]), "u2", ONE)
row("7.40 a rank that NumPy lacks", v3(shape=[1] * 64, chunk_grid=codec("regular", chunk_shape=[1] * 64)), fill="0700")
row("7.40 a chunk larger than the array", v3({"c/0": U2}, shape=[2]), "u2", [1, 2])
row("7.40 a chunk of nothing", v3(chunk_grid=codec("regular", chunk_shape=[0])), error=("CORRUPT", "chunk_shape"))
row("1.3 a bool that is text elsewhere", v2(dtype="|b1", fill_value=1), fill="01")
row("1.3 TensorStore's names in v2", v2(dtype="int4", fill_value=-1), fill="ff")
row("1.3 microseconds by the Greek letter", v2(dtype="<M8[\u03bcs]", fill_value=3), fill="0300000000000000")
row("1.3 long doubles are refused", v2(dtype="<f16", fill_value=0), error=("UNSUPPORTED", "f16"))
row("1.5 a complex fill value as one number", v2(dtype="<c8", fill_value=1), fill="0000803f00000000")
row("1.5 a struct's 0", v2(dtype=[["a", "<i2"], ["b", "|u1"]], fill_value=0), fill="000000")
row("1.6 pickles are refused", v2(dtype="|O", fill_value=None, filters=[{"id": "pickle"}]),
    error=("UNSUPPORTED", "pickle"))
row("7.29 dates of any length and NaT", v2(dtype="<M8[10us]", fill_value="NaT"), fill="0000000000000080")
row("7.29 a scale factor", v3({"c/0": struct.pack("<4q", 1, 2, 3, 4)}, data_type=codec(
    "numpy.datetime64", unit="us", scale_factor=10), fill_value="NaT"), "M8[10us]",
    [np.datetime64(10 * n, "us") for n in ONE])
row("7.36 no fill value reads as zero", v2(fill_value=None), "u2", [0] * 4)

# ---- chunks ------------------------------------------------------------------------------

ZSTD, GZIP = {"id": "zstd", "level": 1}, {"id": "gzip", "level": 1}
row("7.15 zstd without the content's size", v2({"0": frame(U2, False)}, compressor=ZSTD), "u2", ONE)
row("7.15 zstd in two frames", v2({"0": frame(U2[:3], True) + frame(U2[3:], False)}, compressor=ZSTD), "u2", ONE)
row("7.15 zstd of nothing before it", v2({"0": frame(b"", True) + frame(U2, True)}, compressor=ZSTD), "u2", ONE)
row("7.15 zstd that is empty", v2({"0": b""}, compressor=ZSTD), error=("CORRUPT", "0"))
row("7.16 gzip in two members", v2({"0": gzip(U2[:3]) + gzip(U2[3:])}, compressor=GZIP), "u2", ONE)
row("7.16 zlib is not gzip", v2({"0": zlib.compress(U2)}, compressor=GZIP), error=("CORRUPT", "gzip"))
row("7.16 rubbish behind gzip", v2({"0": gzip(U2) + b"rubbish"}, compressor=GZIP), error=("CORRUPT", "gzip"))
BLOSC = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}
row("7.17 blosc that only copied", v2({"0": blosc(U2)}, compressor=BLOSC), "u2", ONE)
row("7.52 a copy shorter than blosc says", v2({"0": blosc(U2[:6], 8)}, compressor=BLOSC), error=("CORRUPT", "blosc"))
LITERALS = b"\x80" + U2
row("7.18 lz4's length, lowest byte first", v2({"0": b"\x08\0\0\0" + LITERALS}, compressor={"id": "lz4"}), "u2", ONE)
row("7.18 N5's is another", v2({"0": b"\0\0\0\x08" + LITERALS}, compressor={"id": "lz4"}), error=("CORRUPT", "lz4"))
for _name, _sum in (("crc32", zlib.crc32), ("adler32", zlib.adler32)):
    four = struct.pack("<I", _sum(U2))
    row(f"7.19 {_name} stands in front", v2({"0": four + U2}, filters=[{"id": _name}]), "u2", ONE)
    row(f"7.19 {_name} at the end where it is said", v2({"0": U2 + four}, filters=[{"id": _name, "location": "end"}]),
        "u2", ONE)
row("7.19 crc32c stands behind", v2({"0": bytes(numcodecs.CRC32C().encode(U2))}, filters=[{"id": "crc32c"}]), "u2", ONE)
row("7.19 fletcher32 takes words of high bytes first",
    v2({"0": bytes(numcodecs.Fletcher32().encode(U2))}, filters=[{"id": "fletcher32"}]), "u2", ONE)
BOOL3 = {"data_type": "bool", "fill_value": False}
row("7.20 v3's packbits begins with the lowest bit", v3({"c/0": b"\x01"}, **BOOL3, codecs=[codec("packbits")]), "?",
    [True, False, False, False])
row("7.20 numcodecs' with the highest, behind a count",
    v2({"0": b"\4\x80"}, dtype="|b1", fill_value=False, filters=[{"id": "packbits"}]), "?",
    [True, False, False, False])
row("7.20 the schema's words for its members",
    v3({"c/0": b"\x0f\x04"}, **BOOL3, codecs=[codec("packbits", padding_encoding="end_byte")]), "?", [True] * 4)
row("7.22 a bool that is neither 0 nor 1", v2({"0": b"\0\1\2\xff"}, dtype="|b1", fill_value=False), "?",
    [False, True, True, True])
row("7.23 int4 with its upper bits clear", v3({"c/0": b"\x0f\x01\xff\x08"}, data_type="int4", fill_value=0,
                                               codecs=[PLAIN]), "i1", [-1, 1, -1, -8])
row("7.24 an edge chunk cut short", v2({"0": U2[:4]}, shape=[2]), error=("CORRUPT", "0"))
row("7.25 order F before a filter",
    v2({"0.0": struct.pack("<4h", 1, 1, 1, 1)}, shape=[2, 2], chunks=[2, 2], dtype="<i2", order="F",
       filters=[{"id": "delta", "dtype": "<i2"}]), "i2", [1, 3, 2, 4])
row("7.25 order F before texts",
    v2({"0.0": struct.pack("<I", 4) + b"".join(struct.pack("<I", 1) + c for c in (b"a", b"b", b"c", b"d"))},
       shape=[2, 2], chunks=[2, 2], dtype="|O", order="F", fill_value="", filters=[{"id": "vlen-utf8"}]),
    None, [b"a", b"c", b"b", b"d"])
row("7.21 texts of another number", v2({"0": struct.pack("<2I", 1, 0)}, dtype="|O", fill_value="",
                                       filters=[{"id": "vlen-utf8"}]), error=("CORRUPT", "the chunk has 4"))
row("7.21 no UTF-8", v3({"c/0": struct.pack("<2I", 4, 1) + b"\xff" + bytes(12)}, data_type="string", fill_value="",
                        codecs=[codec("vlen-utf8")]), error=("CORRUPT", "UTF-8"))
row("7.28 a chunk of no bytes", v3({"c/0": b""}), error=("CORRUPT", "c/0"))
row("7.39 no dimension, v3", v3({"c": b"\5\0"}, shape=[], chunk_grid=codec("regular", chunk_shape=[])), "u2", [5])
row("7.39 no dimension, v3 with v2's keys",
    v3({"0": b"\5\0"}, shape=[], chunk_grid=codec("regular", chunk_shape=[]), chunk_key_encoding=codec("v2")), "u2", [5])
row("7.39 no dimension, v2", v2({"0": b"\5\0"}, shape=[], chunks=[]), "u2", [5])
row("7.39 nothing in it", v3(shape=[0]), "u2", [])
row("7.48 shards of a permuted shape",
    v3({"c/0/0": struct.pack("<6H", *range(6)) + struct.pack("<2Q", 0, 12)}, shape=[2, 3],
       chunk_grid=codec("regular", chunk_shape=[2, 3]),
       codecs=[codec("transpose", order=[1, 0]), cases.sharding((3, 2), [LITTLE], [LITTLE])]),
    "u2", [0, 2, 4, 1, 3, 5])
row("1.3 text of fixed length in the other order", v2({"0": "abcd".encode("utf-32-be")}, dtype=">U1", fill_value=""),
    "U1", list("abcd"))
row("1.6 shuffle of single bytes copies", v2({"0": U2}, filters=[{"id": "shuffle", "elementsize": 1}]), "u2", ONE)
row("1.6 fixedscaleoffset rounds halves to even",
    v2({"0": bytes([0, 2, 2, 4])}, dtype="<f4", fill_value=0, filters=[
        {"id": "fixedscaleoffset", "offset": 0, "scale": 1, "dtype": "<f4", "astype": "|u1"}]), "f4", [0, 2, 2, 4])


@pytest.mark.parametrize("trap", ROWS)
def test_trap(context, trap):
    files, dtype, values, error, fill = ROWS[trap]
    store = context.store()
    for key, value in files.items():
        store.put(key, value)
    if error:
        with pytest.raises(ZarrcError, match=error[1]) as raised:
            array = store.open()
            array.read_vlen() if array.dtype_name == "string" else array.read(f"V{array.item_bytes}")
        assert raised.value.code == error[0], raised.value
        return
    array = store.open()
    if fill is not None:
        assert array.fill_bytes.hex() == fill
    if values is None:
        return
    if dtype is None:
        assert array.read_vlen() == values
    else:
        assert array.read(dtype).reshape(-1).tolist() == np.array(values, dtype).tolist()
    assert array.verify() == []


# ---- what a table does not hold ------------------------------------------------------------

# 7.33. Distinct to Zarr, whatever a file system of another kind makes of them.
ALIKE = ["a", "A", "temp", "Temp", "TEMP", "stra\u00dfe", "strasse", "STRASSE", "\u00e9", "e\u0301", "\u00c5", "A\u030a",
         "\u212b", "\ufb01", "fi", "\uac00", "\u1100\u1161", "\u0130", "i\u0307", "\u03c3", "\u03c2"]
RESERVED = ["CON", "aux", "nul.txt", "com1", "a.", "a b ", "q?", "a*", "x:y", "<d>", "|", '"']


@pytest.mark.parametrize("format", [2, 3])
@pytest.mark.parametrize("where", ["memory", "local"])
def test_names_that_are_alike(context, tmp_path, where, format):
    """7.33: case and Unicode's normal forms tell nodes apart; names are kept byte for byte."""
    assert len({unicodedata.normalize("NFC", name).casefold() for name in ALIKE}) < len(ALIKE)
    store = context.store(str(tmp_path / "s"), create=True) if where == "local" else context.store()
    store.create_group(zarr_format=format)
    names = ALIKE + RESERVED
    for i, name in enumerate(names):
        document = cases.document_v3("uint16", 0, [LITTLE], (1,), (1,)) if format == 3 else \
            cases.document_v2("<u2", 0, (1,), (1,))
        store.create(name, document=document).write(np.array([i + 1], "u2"))
    for i, name in enumerate(names):
        assert store.open(name).read("u2")[0] == i + 1
        assert store.group().open_array(name).read("u2")[0] == i + 1
    data = "c/0" if format == 3 else "0"
    assert [key for key in store.keys() if key.endswith("/" + data)] == sorted(
        (f"{name}/{data}" for name in names), key=lambda key: key.encode())
    store.consolidate()
    assert store.consolidated_check() == []
    store.delete_node("A")
    assert store.open("a").read("u2")[0] == 1 and store.open("A\u030a").read("u2")[0] == names.index("A\u030a") + 1
    with pytest.raises(ZarrcError) as failed:
        store.open("A")
    assert failed.value.code == "NOT_FOUND"
    if where == "local":
        on_disk = {name for name in os.listdir(os.fsencode(tmp_path / "s")) if not name.startswith((b".", b"zarr.json"))}
        assert on_disk == {name.encode() for name in names} - {b"A"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = zarr.open_group(tmp_path / "s", mode="r", use_consolidated=False)
            for i, name in enumerate(ALIKE):
                if name != "A":
                    assert theirs[name][0] == i + 1


def test_names_that_are_long(context, tmp_path):
    """7.33: what the file system has no room for is an error of it, beyond the limit one of ours."""
    document = cases.document_v3("uint16", 0, [LITTLE], (1,), (1,))
    store = context.store(str(tmp_path / "s"), create=True)
    store.create("n" * 255, document=document).write(np.array([7], "u2"))
    assert store.open("n" * 255).read("u2")[0] == 7
    deep = "/".join(["d" * 250] * 20)  # beyond PATH_MAX
    for name, code in (("n" * 256, "INVALID"), ("\u00e9" * 128, "INVALID"), (deep, "INVALID"), ("n" * 1025, "LIMIT")):
        with pytest.raises(ZarrcError) as failed:
            store.create(name, document=document)
        assert failed.value.code == code, failed.value
        assert (name[:100] if code == "INVALID" else "limit node_name_bytes is 1024") in failed.value.message
    memory = context.store()
    memory.create("n" * 1024, document=document).write(np.array([7], "u2"))
    assert memory.open("n" * 1024).read("u2")[0] == 7
    assert sorted(os.listdir(tmp_path / "s")) == ["n" * 255, "zarr.json"]


def test_fill_values_compare_by_bits(context):
    """7.27, 7.43: a chunk of -0.0 is not one of 0.0; one NaN's bits are not another's."""
    for fill, stored in ((0.0, [-0.0]), ("NaN", struct.unpack("<d", bytes.fromhex("010000000000f87f")))):
        store = context.store()
        array = store.create(document=cases.document_v3("float64", fill, [LITTLE], (1,), (1,)))
        array.write(np.frombuffer(array.fill_bytes, "f8"))
        assert store.keys() == ["zarr.json"]
        array.write(np.array(stored, "f8"))
        assert store.keys() == ["c/0", "zarr.json"]
        array.write(np.frombuffer(array.fill_bytes, "f8"))
        assert store.keys() == ["zarr.json"]


def test_what_was_cut_off_stays_away(context):
    """7.37: shrink, then grow."""
    array = context.store().create(document=cases.document_v3("uint16", 7, [LITTLE], (8,), (4,)))
    array.write(np.arange(8, dtype="u2"))
    array.resize((2,))
    array.resize((8,))
    assert array.read("u2").tolist() == [0, 1] + [7] * 6


def test_products_beyond_64_bits(context):
    """7.54: opening and small reads work."""
    document = cases.document_v3("uint16", 7, [LITTLE], (2**62, 2**62), (1, 2**20))
    array = context.store().create(document=document)
    last = Selection.dims(array.shape, 2**62 - 1, 2**62 - 1)
    assert array.read("u2", last).tolist() == 7


def test_written_complete(context):
    """7.3, 7.45: what was left out is there when we write."""
    store = context.store()
    store.put("zarr.json", v3(codecs=[LITTLE, "gzip", {"name": "zstd"}])["zarr.json"])
    again = context.store().create(document=json.loads(store.open().metadata))
    assert [set(c["configuration"]) for c in again.codecs] == [{"endian"}, {"level"}, {"level", "checksum"}]


def test_integers_round_below_the_top(context):
    """7.30: bits are counted from the highest that is set, and 255 does not wrap to 0."""
    array = context.store().create(document=cases.document_v3(
        "uint8", 0, [codec("bitround", keepbits=3), PLAIN], (4,), (4,)))
    array.write(np.array([255, 7, 0b1001, 0b11111], "u1"))
    assert array.read("u1").tolist() == [224, 7, 0b1000, 0b100000]


def test_groups(context):
    """7.2, 7.8: a group with consolidated metadata null, one of v2 with a foreign member, and a
    consolidation that leaves out attributes."""
    store = context.store()
    store.put("zarr.json", b'{"zarr_format":3,"node_type":"group","consolidated_metadata":null}')
    assert not store.group().is_consolidated
    store = context.store()
    store.put(".zgroup", b'{"zarr_format":2,"consolidated_metadata":{"metadata":{}}}')
    assert store.group().attributes == {}
    store.put("a/.zarray", v2()[".zarray"])
    store.put(".zmetadata", json.dumps({"zarr_consolidated_format": 1, "metadata": {
        ".zgroup": {"zarr_format": 2}, "a/.zarray": json.loads(v2()[".zarray"])}}).encode())
    group = store.group()
    assert group.is_consolidated and group.attributes == {}
