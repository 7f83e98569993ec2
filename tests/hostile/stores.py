"""Hostile and damaged stores, made when the tests run: the repository has no such files.

Each case is a dict of keys and bytes, or a function that prepares the folder, and the results
that a reader must give: for each step of probe.c a status and a word that the message must
contain. The array under test is "a", of 4 x 4 uint16 in chunks of 2 x 2 with fill value 7,
unless the case changes it.
"""
import functools
import json
import os
import struct
import zlib

CASES = {}
OK, CORRUPT, UNSUPPORTED, LIMIT, IO, NOT_FOUND, INVALID = (
    "ok", "corrupt", "unsupported", "limit", "io", "not found", "invalid")
STRICT = "strict"  # as the status of open: it is read, and `verify --strict` reports it by the word
MIB = 1 << 20
CHUNK = struct.pack("<4H", 1, 2, 3, 4)
DELETE = object()


class Case:
    """files: key -> bytes. steps: step -> (status, word). Steps that are not named must be ok,
    except that steps that read data (read, first, fault, write) default to `data`. mib: the
    largest peak of memory. strict: what `verify --strict` reports of the array's metadata; "":
    nothing."""

    def __init__(self, files, open=None, data=None, untrusted=False, prepare=None, values=None,
                 mib=256, strict="", **steps):
        self.files, self.untrusted, self.prepare = files, untrusted, prepare
        self.values, self.mib = values or {}, mib
        self.steps, self.strict = dict(steps), strict
        if open and open[0] == STRICT:
            self.strict = open[1]
        elif open:
            self.steps["open"] = open
        if data:
            for step in ("read", "first", "fault", "write"):
                self.steps.setdefault(step, data)


def case(function):
    CASES[function.__name__] = function
    return function


def add(name, files, *arguments, **options):
    CASES[name] = lambda: Case(files() if callable(files) else files, *arguments, **options)


# ---- documents ----------------------------------------------------------------------

BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
CRC = {"name": "crc32c"}
V3 = {
    "zarr_format": 3, "node_type": "array", "shape": [4, 4], "data_type": "uint16",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 2]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "fill_value": 7, "codecs": [BYTES], "attributes": {},
}
V2 = {"zarr_format": 2, "shape": [4, 4], "chunks": [2, 2], "dtype": "<u2", "fill_value": 7,
      "order": "C", "filters": None, "compressor": None}
GROUP = json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {}}).encode()


def text(document, changes):
    document = dict(document, **changes)
    return json.dumps({k: v for k, v in document.items() if v is not DELETE}).encode()


def v3(chunks=None, raw=None, **changes):
    files = {"zarr.json": GROUP, "a/zarr.json": raw if raw is not None else text(V3, changes)}
    files.update({f"a/{key}": value for key, value in (chunks or {}).items()})
    return files


def v2(chunks=None, raw=None, **changes):
    files = {".zgroup": b'{"zarr_format": 2}',
             "a/.zarray": raw if raw is not None else text(V2, changes)}
    files.update({f"a/{key}": value for key, value in (chunks or {}).items()})
    return files


def whole(chunks):
    return {"c/0/0": chunks}


def grid(*shape):
    return {"name": "regular", "configuration": {"chunk_shape": list(shape)}}


def codec(name, **configuration):
    return {"name": name, "configuration": configuration}


# ---- streams ------------------------------------------------------------------------

def deflate_bomb(n):
    """Raw deflate of n MiB of zeros: one flushed block, repeated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packer.compress(bytes(MIB))
    packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    return block * n + zlib.compressobj(9, zlib.DEFLATED, -15).flush()


@functools.cache
def zlib_bomb(n=1024):
    return b"\x78\xda" + deflate_bomb(n) + bytes(4)


@functools.cache
def gzip_bomb(n=1024):
    return b"\x1f\x8b\x08\0\0\0\0\0\0\x03" + deflate_bomb(n) + bytes(4) + struct.pack("<I", 8)


def gzip(data):
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


def zstd(data, claim=None):
    """One frame of raw blocks that claims a length; claim False: no length."""
    head = struct.pack("<IB", 0xFD2FB528, 0x00 if claim is False else 0xE0)
    head += b"\x80" if claim is False else struct.pack("<Q", len(data) if claim is None else claim)
    return head + struct.pack("<I", len(data) << 3 | 1)[:3] + data


def zstd_bomb(n=1024, claim=None):
    """n MiB in blocks of one repeated byte."""
    head = struct.pack("<IB", 0xFD2FB528, 0x80 if claim is not None else 0x00) + b"\x50"
    if claim is not None:
        head += struct.pack("<I", claim)
    block = struct.pack("<I", (128 << 10) << 3 | 2)[:3] + b"\0"
    return head + block * (n * 8 - 1) + struct.pack("<I", (128 << 10) << 3 | 3)[:3] + b"\0"


def lz4(data, claim=None):
    """Literals only, after the length that numcodecs puts first."""
    n = len(data)
    token = bytes([min(n, 15) << 4])
    if n >= 15:
        token += b"\xff" * ((n - 15) // 255) + bytes([(n - 15) % 255])
    return struct.pack("<i", n if claim is None else claim) + token + data


def lz4_bomb(claim):
    return struct.pack("<i", claim) + b"\x1f\0\x01\0" + b"\xff" * MIB + b"\0\x50hello"


def blosc(data, nbytes=None, blocksize=None, cbytes=None, typesize=2, flags=0x02, version=2):
    """A stored (memcpyed) buffer; each argument can make its header wrong."""
    return struct.pack("<4B3I", version, 1, flags, typesize, len(data) if nbytes is None else nbytes,
                       len(data) if blocksize is None else blocksize,
                       len(data) + 16 if cbytes is None else cbytes) + data


CRC_TABLE = []
for _n in range(256):
    for _ in range(8):
        _n = _n >> 1 ^ (0x82F63B78 if _n & 1 else 0)
    CRC_TABLE.append(_n)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 255]
    return struct.pack("<I", crc ^ 0xFFFFFFFF)


# ---- metadata of format 3 -------------------------------------------------------------

def meta(name, status, word, untrusted=False, **changes):
    add(name, lambda: v3(**changes), open=(status, word), untrusted=untrusted)


def swapped(old, new):
    """The usual document with one text replaced, for documents that json cannot write."""
    document = json.dumps(V3)
    assert old in document
    return document.replace(old, new, 1).encode()


meta("v3_empty_document", CORRUPT, "zarr.json", raw=b"")
meta("v3_not_json", CORRUPT, "zarr.json", raw=b"\0\1\2\3")
meta("v3_cut_document", CORRUPT, "zarr.json", raw=json.dumps(V3).encode()[:-20])
meta("v3_trailing_text", CORRUPT, "zarr.json", raw=json.dumps(V3).encode() + b"{}")
meta("v3_not_an_object", CORRUPT, "zarr.json", raw=b"[1, 2, 3]")
meta("v3_deep_json", LIMIT, "json_depth", raw=b'{"a":' * 100000 + b"1" + b"}" * 100000)
meta("v3_deep_attributes", LIMIT, "json_depth",
     raw=swapped('"attributes": {}', '"attributes": ' + "[" * 100000 + "]" * 100000))
meta("v3_duplicate_shape", CORRUPT, "shape", raw=swapped('"shape"', '"shape": [400, 4], "shape"'))
meta("v3_duplicate_attribute", CORRUPT, "x", raw=swapped('"attributes": {}',
                                                         '"attributes": {"x": 1, "x": 2}'))
meta("v3_escaped_duplicate", CORRUPT, "shape",
     raw=swapped('"shape"', '"sh\\u0061pe": [400, 4], "shape"'))
meta("v3_bad_utf8", CORRUPT, "UTF-8", raw=swapped('"attributes": {}', '"attributes": {"x": "ab"}')
     .replace(b'"ab"', b'"\xc3\x28"'))
meta("v3_overlong_utf8", CORRUPT, "UTF-8",
     raw=swapped('"attributes": {}', '"attributes": {"x": "ab"}').replace(b'"ab"', b'"\xc0\xaf"'))
meta("v3_lone_surrogate", CORRUPT, "surrogate",
     raw=swapped('"attributes": {}', '"attributes": {"x": "\\ud800"}'))
meta("v3_control_character", CORRUPT, "zarr.json",
     raw=swapped('"attributes": {}', '"attributes": {"x": "a\nb"}'))
meta("v3_utf16", CORRUPT, "zarr.json", raw=json.dumps(V3).encode("utf-16"))
meta("v3_format_4", CORRUPT, "zarr_format", zarr_format=4)
meta("v3_format_text", CORRUPT, "zarr_format", zarr_format="3")
meta("v3_no_shape", CORRUPT, "shape", shape=DELETE)
meta("v3_shape_float", CORRUPT, "shape", raw=swapped("[4, 4]", "[4.5, 4]"))
meta("v3_shape_negative", CORRUPT, "shape", shape=[-4, 4])
meta("v3_shape_text", CORRUPT, "shape", shape=["4", 4])
meta("v3_shape_1e26", CORRUPT, "shape", raw=swapped("[4, 4]", "[1e26, 4]"))
meta("v3_shape_2_64", CORRUPT, "shape", shape=[2**64, 4])
meta("v3_shape_huge_digits", CORRUPT, "shape", raw=swapped("[4, 4]", "[" + "9" * 100000 + ", 4]"))
meta("v3_shape_object", CORRUPT, "shape", shape={"0": 4})
meta("v3_rank_2000", LIMIT, "rank", shape=[1] * 2000, chunk_grid=grid(*[1] * 2000))
meta("v3_rank_1000000", LIMIT, "rank", shape=[1] * 1000000, chunk_grid=grid(1))
meta("v3_rank_of_chunks", CORRUPT, "chunk_shape", chunk_grid=grid(2, 2, 2))
meta("v3_chunk_zero", CORRUPT, "chunk_shape", chunk_grid=grid(0, 2))
meta("v3_chunk_negative", CORRUPT, "chunk_shape", chunk_grid=grid(-2, 2))
meta("v3_chunk_product_wraps", LIMIT, "64 bits", shape=[2**33, 2**33],
     chunk_grid=grid(2**32, 2**32))
meta("v3_chunk_bytes_wrap", LIMIT, "64 bits", shape=[2**33, 2**33],
     chunk_grid=grid(2**31, 2**32))
meta("v3_chunk_shape_2_63", CORRUPT, "chunk_shape", shape=[2**40, 2**40],
     chunk_grid=grid(2**63, 2**63))
for _name, _n, _untrusted in [("", 2**31 + 1, False), ("hardened_", 2**28 + 1, True)]:
    # Such an array can be opened; its chunks cannot be read.
    add(f"v3_chunk_over_{_name}limit",
        v3(shape=[_n], chunk_grid=grid(_n), data_type="uint8"), untrusted=_untrusted, fault=None,
        data=(LIMIT, "chunk_bytes"), last=(LIMIT, "chunk_bytes"), verify=(LIMIT, "chunk_bytes"))
meta("v3_unknown_grid", UNSUPPORTED, "spiral", chunk_grid={"name": "spiral", "configuration": {}})
meta("v3_grid_text", CORRUPT, "chunk_grid", chunk_grid=17)
meta("v3_unknown_dtype", UNSUPPORTED, "float7", data_type="float7")
meta("v3_dtype_number", CORRUPT, "data_type", data_type=16)
meta("v3_raw_type_huge", UNSUPPORTED, "16777216", data_type="r18446744073709551608", fill_value=[0])
meta("v3_raw_type_bits", CORRUPT, "r7", data_type="r7", fill_value=[0])


def fields(*types):
    return {"name": "struct", "configuration": {"fields": [
        {"name": f"f{n}", "data_type": kind} for n, kind in enumerate(types)]}}


def nested(depth):
    kind = "int32"
    for _ in range(depth):
        kind = fields(kind)
    return kind


add("v3_struct", v3(whole(bytes(range(48))), data_type=fields("int32", "float64"),
                    fill_value={"f0": 1, "f1": 2}), values={"read": '{"f0":50462976,"f1":1.733947411150308e-255} and others'})
add("v3_struct_short_chunk", v3(whole(bytes(49)), data_type=fields("int32", "float64"),
                                fill_value={"f0": 1, "f1": 2}), data=(CORRUPT, "48"))
meta("v3_struct_no_fields", CORRUPT, "at least one field", data_type=fields())
meta("v3_struct_no_configuration", CORRUPT, "needs a configuration", data_type="struct")
meta("v3_struct_twice", CORRUPT, "two fields", data_type={"name": "struct", "configuration": {
    "fields": [{"name": "x", "data_type": "int8"}, {"name": "x", "data_type": "int8"}]}})
meta("v3_struct_more_members", CORRUPT, "name and data_type", data_type={
    "name": "struct", "configuration": {"fields": [{"name": "x", "data_type": "int8", "offset": 4}]}})
meta("v3_struct_unknown_inside", UNSUPPORTED, "float7", data_type=fields("int8", fields("float7")))
meta("v3_struct_deep", LIMIT, "json_depth", data_type=nested(16))
meta("v3_struct_huge", UNSUPPORTED, "16777216", data_type=fields("r128000000", "r128000000"))
meta("v3_struct_wide", LIMIT, "fields", data_type={"name": "struct", "configuration": {
    "fields": [[f"{_n:x}", "int8"] for _n in range(16385)]}})
meta("v3_struct_no_endian", CORRUPT, "endian is required", data_type=fields("int32"),
     fill_value={"f0": 0}, codecs=[{"name": "bytes"}])
meta("v3_struct_fill_part", CORRUPT, "f1", data_type=fields("int32", "int8"), fill_value={"f0": 1})
meta("v3_struct_fill_more", CORRUPT, "no field", data_type=fields("int8"),
     fill_value={"f0": 1, "f1": 1})
meta("v3_struct_fill_zero", CORRUPT, "every field", data_type=fields("int8"), fill_value=0)
meta("v3_struct_fill_range", CORRUPT, "f0", data_type=fields("int8"), fill_value={"f0": 128})
meta("v3_unknown_codec", UNSUPPORTED, "snake_oil", codecs=[BYTES, codec("snake_oil")])
meta("v3_codec_says_ignore_me", UNSUPPORTED, "snake_oil",
     codecs=[BYTES, dict(codec("snake_oil"), must_understand=False)])
meta("v3_unknown_key_encoding", UNSUPPORTED, "morse",
     chunk_key_encoding={"name": "morse"})
meta("v3_separator", CORRUPT, "separator",
     chunk_key_encoding={"name": "default", "configuration": {"separator": "/../"}})
meta("v3_unknown_member", UNSUPPORTED, "surprise", surprise={"must_understand": True})
meta("v3_unknown_member_plain", UNSUPPORTED, "surprise", surprise=17)
meta("v3_must_understand_lies", UNSUPPORTED, "surprise", surprise={"must_understand": "false"})
meta("v3_storage_transformer", UNSUPPORTED, "indirection",
     storage_transformers=[codec("indirection")])
meta("v3_codecs_100000", LIMIT, "codecs", codecs=[BYTES] + [CRC] * 100000)
meta("v3_codecs_33", LIMIT, "codecs", codecs=[BYTES] + [CRC] * 32)
meta("v3_codecs_empty", CORRUPT, "codecs", codecs=[])
meta("v3_codecs_order", CORRUPT, "codecs", codecs=[CRC, BYTES])
meta("v3_codecs_two_bytes", CORRUPT, "codecs", codecs=[BYTES, BYTES])
meta("v3_codec_no_name", CORRUPT, "codecs", codecs=[{"configuration": {}}])
meta("v3_codec_null", CORRUPT, "codecs", codecs=[None])
meta("v3_endian", CORRUPT, "endian", codecs=[codec("bytes", endian="middle")])
meta("v3_endian_missing", CORRUPT, "endian", codecs=[{"name": "bytes"}])
meta("v3_transpose_repeats", CORRUPT, "order", codecs=[codec("transpose", order=[0, 0]), BYTES])
meta("v3_transpose_outside", CORRUPT, "order", codecs=[codec("transpose", order=[0, 2]), BYTES])
meta("v3_transpose_rank", CORRUPT, "order", codecs=[codec("transpose", order=[1, 0, 2]), BYTES])
meta("v3_transpose_huge", CORRUPT, "order",
     codecs=[codec("transpose", order=[0, 2**32]), BYTES])
meta("v3_gzip_level", STRICT, "level", codecs=[BYTES, codec("gzip", level=99)])
meta("v3_zstd_level_text", STRICT, "level", codecs=[BYTES, codec("zstd", level="3")])
meta("v3_blosc_cname", STRICT, "cname",
     codecs=[BYTES, codec("blosc", cname="best", clevel=5, shuffle="noshuffle", blocksize=0)])
meta("v3_blosc_blocksize", STRICT, "blocksize",
     codecs=[BYTES, codec("blosc", cname="lz4", clevel=5, shuffle="noshuffle", blocksize=2**40)])
meta("v3_fill_text", CORRUPT, "fill_value", fill_value="seven")
meta("v3_fill_list", CORRUPT, "fill_value", fill_value=[7])
meta("v3_fill_range", CORRUPT, "fill_value", fill_value=65536)
meta("v3_fill_negative", CORRUPT, "fill_value", fill_value=-1)
meta("v3_fill_fraction", CORRUPT, "fill_value", fill_value=7.5)
meta("v3_fill_object", CORRUPT, "fill_value", fill_value={})
meta("v3_fill_null", CORRUPT, "fill_value", fill_value=None)  # as zarr-python
meta("v3_fill_missing", CORRUPT, "fill_value", fill_value=DELETE)
meta("v3_fill_hex_length", CORRUPT, "fill_value", data_type="float32", fill_value="0x7fc0")
meta("v3_fill_hex_huge", CORRUPT, "fill_value", data_type="float32", fill_value="0x" + "f" * 10**6)
meta("v3_fill_raw_short", CORRUPT, "fill_value", data_type="r32", fill_value=[1, 2])
for _name, _type, _value in (
        ("int4_high", "int4", 9), ("int4_low", "int4", -9), ("int2", "int2", 2), ("uint2", "uint2", 4),
        ("uint4_negative", "uint4", -1), ("uint4_fraction", "uint4", 1.5),
        ("e4m3fn_infinity", "float8_e4m3fn", "Infinity"), ("e4m3fn_large", "float8_e4m3fn", 465),
        ("e4m3fnuz_large", "float8_e4m3fnuz", 1e300), ("e5m2_hex", "float8_e5m2", "0x123"),
        ("e8m0_small", "float8_e8m0fnu", 1e-45), ("e8m0_negative", "float8_e8m0fnu", -1),
        ("fp4_nan", "float4_e2m1fn", "NaN"), ("fp4_large", "float4_e2m1fn", 7),
        ("fp4_hex", "float4_e2m1fn", "0x10"), ("fp6_hex", "float6_e3m2fn", "0x40"),
        ("pair_one", "complex_float8_e5m2", [1]), ("pair_three", "complex_float4_e2m1fn", [1, 2, 3]),
        ("raw_bytes_short", {"name": "raw_bytes", "configuration": {"length_bytes": 4}}, "AQI=")):
    meta("v3_fill_" + _name, CORRUPT, "fill_value", data_type=_type, fill_value=_value)
for _name, _value in (("large", 3.4e38), ("long", "1" * 10**5)):  # rounds to infinity, as in other readers
    add("v3_fill_bf16_" + _name, v3(data_type="bfloat16", fill_value=_value), values={"first": '"Infinity"'},
        strict="out of range")
meta("v3_small_configured", CORRUPT, "int4", data_type={"name": "int4", "configuration": {"bits": 3}},
     fill_value=0)
meta("v3_names_count", CORRUPT, "dimension_names", dimension_names=["y"])
meta("v3_names_number", CORRUPT, "dimension_names", dimension_names=["y", 3])
meta("v3_name_100kb", LIMIT, "dimension_name_bytes", dimension_names=["y" * 100000, "x"])
meta("v3_name_2mib", LIMIT, "string_bytes", dimension_names=["y" * (2 * MIB), "x"])
meta("v3_attributes_list", CORRUPT, "attributes", attributes=[1])
meta("v3_document_over_limit", LIMIT, "metadata_bytes",
     raw=json.dumps(dict(V3, attributes={"x": "y" * 1000})).encode() + b" " * (17 * MIB))
meta("v3_million_keys", LIMIT, "json_tokens",
     raw=json.dumps(V3).encode().replace(b'"attributes": {}', b'"attributes": {"x": ['
                                         + b"1," * (4 * MIB + 100) + b"1]}"))
meta("v3_node_type", CORRUPT, "node_type", node_type="arroy")


def edges(*shapes, **more):
    return codec("rectilinear", kind="inline", chunk_shapes=list(shapes), **more)


add("v3_edges_good", lambda: v3({"c/0/0": CHUNK, "c/1/0": CHUNK * 3}, chunk_grid=edges([1, 3], 4)))
meta("v3_edges_of_other_kind", UNSUPPORTED, "outline",
     chunk_grid=codec("rectilinear", kind="outline", chunk_shapes=[2, 2]))
meta("v3_edges_without_kind", CORRUPT, "kind", chunk_grid=codec("rectilinear", chunk_shapes=[2, 2]))
meta("v3_edges_rank", CORRUPT, "chunk_shapes", chunk_grid=edges([4]))
meta("v3_edges_short", CORRUPT, "sum to 3", chunk_grid=edges([1, 2], 2))
meta("v3_edges_none", CORRUPT, "no edges", chunk_grid=edges([], 2))
meta("v3_edges_zero", CORRUPT, "edge 0", chunk_grid=edges([2, 0, 2], 2))
meta("v3_edges_negative", CORRUPT, "edge -2", chunk_grid=edges([2, -2, 4], 2))
meta("v3_edges_fraction", CORRUPT, "edge 1.5", chunk_grid=edges([1.5, 2.5], 2))
meta("v3_edges_count_zero", CORRUPT, "count", chunk_grid=edges([[2, 0], 4], 2))
meta("v3_edges_count_negative", CORRUPT, "count", chunk_grid=edges([[2, -1], 4], 2))
meta("v3_edges_triple", CORRUPT, "pair", chunk_grid=edges([[2, 1, 1], 4], 2))
meta("v3_edges_nested", CORRUPT, "edge", chunk_grid=edges([[[2, 1], 1], 4], 2))
meta("v3_edges_2_64", CORRUPT, "edge", chunk_grid=edges([2**64, 4], 2))
meta("v3_edges_overflow", CORRUPT, "2^63", chunk_grid=edges([[2**62, 2], 4], 2))
meta("v3_edges_count_overflow", CORRUPT, "2^63", chunk_grid=edges([[2, 2**64 - 1]], 2))
meta("v3_edges_sum_overflow", CORRUPT, "2^63", chunk_grid=edges([2**63 - 1, 1], 2))
meta("v3_edges_undivided", CORRUPT, "not a multiple", chunk_grid=edges([2, 3], 2),
     codecs=[codec("sharding_indexed", chunk_shape=[2, 2], codecs=[BYTES], index_codecs=[BYTES])])
meta("v3_suffix_without_base", CORRUPT, "base_encoding", chunk_key_encoding=codec("suffix", suffix=".x"))
meta("v3_suffix_is_none", CORRUPT, "suffix", chunk_key_encoding=codec("zarrs.default_suffix"))
# 10^9 chunks of one element are as cheap as one. Nothing is stored, so all elements are the fill value.
add("v3_edges_10_9_chunks", lambda: v3(chunk_grid=edges([[1, 10**9]], [[2, 10**9]])))
# The second chunk is far larger than the array. Only requests that need its elements are refused.
OVER = (LIMIT, "chunk_bytes")
add("v3_edges_beyond", lambda: v3(chunk_grid=edges([2, 2**40], 4)),
    values={"first": "7"}, read=OVER, last=OVER)
# Each chunk must have the size that the grid gives it.
add("v3_edges_sizes_swapped",
    lambda: v3({"c/0/0": CHUNK * 3, "c/1/0": CHUNK}, chunk_grid=edges([1, 3], 4)),
    data=(CORRUPT, "c/"), last=(CORRUPT, "c/"))
add("v3_nan_attribute", v3(raw=swapped('"attributes": {}', '"attributes": {"x": NaN}')))
add("v3_nan_fill", v3(raw=swapped('"fill_value": 7', '"fill_value": NaN')
                      .replace(b"uint16", b"float32")), values={"read": '"NaN"'})
add("v3_many_attributes",
    lambda: v3(attributes={"x": list(range(400000)), **{f"k{i}": i for i in range(50000)}}))
add("v3_huge_shape", v3(shape=[2**63 - 1, 2**62], chunk_grid=grid(1, 2**22)),
    values={"read": "7", "last": "7"})
add("v3_shape_beyond_signed", v3(shape=[2**64 - 1, 2], chunk_grid=grid(2, 2)),
    open=(CORRUPT, "shape"))
add("v3_scalar_missing", v3(shape=[], chunk_grid=grid()), values={"read": "7"})
add("v3_empty", v3(shape=[0, 2**62], chunk_grid=grid(2, 2)), values={"read": "empty"})
add("v3_missing_chunks", v3(), values={"read": "7", "first": "7", "last": "7"})
add("v3_document_is_folder", lambda: v3(), open=(IO, "zarr.json"),
    prepare=lambda root: (os.unlink(f"{root}/a/zarr.json"), os.mkdir(f"{root}/a/zarr.json")))
add("v3_document_is_fifo", lambda: v3(), open=(IO, "zarr.json"),
    prepare=lambda root: (os.unlink(f"{root}/a/zarr.json"), os.mkfifo(f"{root}/a/zarr.json")))
add("v3_document_leads_out", lambda: v3(), open=(IO, "zarr.json"), list=(IO, "a/zarr.json"),
    walk=(IO, "a/zarr.json"),
    prepare=lambda root: (os.unlink(f"{root}/a/zarr.json"),
                          os.symlink("/etc/passwd", f"{root}/a/zarr.json")))

# ---- metadata of format 2 -------------------------------------------------------------


def meta2(name, status, word, **changes):
    add(name, lambda: v2(**changes), open=(status, word))


meta2("v2_cut_document", CORRUPT, ".zarray", raw=json.dumps(V2).encode()[:-9])
meta2("v2_format_3", CORRUPT, "zarr_format", zarr_format=3)
meta2("v2_no_chunks", CORRUPT, "chunks", raw=json.dumps(
    {k: v for k, v in V2.items() if k != "chunks"}).encode())
meta2("v2_rank", CORRUPT, "chunks", raw=text(V2, {"chunks": [2]}))
meta2("v2_chunk_zero", CORRUPT, "chunks[1] is 0", raw=text(V2, {"chunks": [2, 0]}))
meta2("v2_chunk_negative", CORRUPT, "chunks", raw=text(V2, {"chunks": [2, -1]}))
meta2("v2_chunk_wraps", LIMIT, "64 bits",
      raw=text(V2, {"shape": [2**40, 2**40], "chunks": [2**32, 2**32]}))
for _i, (_name, _status) in enumerate([
        ("<q9", UNSUPPORTED), ("", CORRUPT), ("<", UNSUPPORTED), ("<i", UNSUPPORTED),
        ("?i4", UNSUPPORTED), ("<i99999999999999999999", UNSUPPORTED), ("|S-1", UNSUPPORTED),
        ("<U1073741824", UNSUPPORTED), ("|S18446744073709551615", UNSUPPORTED),
        ("|V0", UNSUPPORTED), ("<M8[parsec]", CORRUPT), ("<M8[0s]", CORRUPT), ("<M8[", CORRUPT),
        ("|O", UNSUPPORTED), ("<f\u0668", UNSUPPORTED), ("<i4" * 100000, UNSUPPORTED)]):
    meta2(f"v2_dtype_{_i}", _status, "", dtype=_name, fill_value=None)
FIELDS = [["x", "<i4"], ["y", ">f8"]]
add("v2_struct", v2({"0.0": bytes(range(48))}, dtype=FIELDS, fill_value=None),
    values={"read": '{"x":50462976,"y":2.6966222901940374e-289} and others'})
add("v2_struct_short_chunk", v2({"0.0": bytes(47)}, dtype=FIELDS, fill_value=None), data=(CORRUPT, "48"))
meta2("v2_dtype_struct_deep", LIMIT, "json_depth", fill_value=None,
      raw=text(V2, {"dtype": "@"}).replace(b'"@"', b'[["x",' * 1000 + b'"<i4"' + b"]]" * 1000))
meta2("v2_dtype_struct_wide", LIMIT, "json_tokens",
      raw=text(V2, {"dtype": "@"}).replace(b'"@"', b"[" + b",".join(
          b'["%x","<i4"]' % _n for _n in range(1000000)) + b"]"))
meta2("v2_struct_empty", CORRUPT, "at least one field", dtype=[])
meta2("v2_struct_twice", CORRUPT, "two fields", dtype=[["x", "<i4"], ["x", "<i4"]])
meta2("v2_struct_no_order", CORRUPT, "byte order", dtype=[["x", "i4"]])
meta2("v2_struct_unknown_inside", UNSUPPORTED, "<q9", dtype=[["x", [["y", "<q9"]]]])
meta2("v2_struct_object_inside", UNSUPPORTED, "", dtype=[["x", "|O"]])
meta2("v2_struct_subarray_wraps", CORRUPT, "too large", dtype=[["x", "<i4", [2**33, 2**33]]])
meta2("v2_struct_subarray_huge", UNSUPPORTED, "16777216", dtype=[["x", "<i4", [2**23]]])
meta2("v2_struct_subarray_zero", UNSUPPORTED, "shape has a zero", dtype=[["x", "<i4", [0]]])
meta2("v2_struct_subarray_rank", CORRUPT, "too many dimensions", dtype=[["x", "<i4", [1] * 65]])
meta2("v2_struct_sum_huge", UNSUPPORTED, "16777216", dtype=[["x", "|V16000000"], ["y", "|V16000000"]])
meta2("v2_struct_title", CORRUPT, "name", dtype=[[["title", "x"], "<i4"]])
meta2("v2_struct_fill_short", CORRUPT, "base64 of its 12 bytes", dtype=FIELDS, fill_value="AAAA")
meta2("v2_struct_fill_list", CORRUPT, "every field", dtype=FIELDS, fill_value=[1, 2.0])
meta2("v2_dtype_null", CORRUPT, "dtype", dtype=None)
meta2("v2_order", CORRUPT, "order", order="K")
meta2("v2_order_null", CORRUPT, "order", order=None)
meta2("v2_separator", CORRUPT, "dimension_separator", dimension_separator="..")
meta2("v2_filters_object", CORRUPT, "filters", filters={"id": "delta"})
meta2("v2_unknown_filter", UNSUPPORTED, "/a: filters[0]: codec \"pickle\"", filters=[{"id": "pickle"}])
meta2("v2_unknown_compressor", UNSUPPORTED, "/a: compressor: codec \"snake_oil\"", compressor={"id": "snake_oil"})
meta2("v2_compressor_no_id", CORRUPT, "/a: compressor: id", compressor={"level": 1})
meta2("v2_filters_100000", LIMIT, "/a: filters: more than", filters=[{"id": "crc32c"}] * 100000)
meta2("v2_fill_text", CORRUPT, "fill_value", fill_value="seven")
meta2("v2_fill_huge", CORRUPT, "fill_value", fill_value=10**40)
add("v2_fill_plain_text", v2(dtype="|S4", fill_value="!!!!"), values={"read": '"ISEhIQ=="'})
meta2("v2_fill_base64_long", CORRUPT, "fill_value", dtype="|S4", fill_value="QUFBQUFBQUFBQUFB")
meta2("v2_delta_types", UNSUPPORTED, "/a: filters[0]: delta: dtype", filters=[{"id": "delta", "dtype": "<q9", "astype": "<i2"}])
meta2("v2_shuffle_size", CORRUPT, "/a: filters[0]: shuffle: elementsize", filters=[{"id": "shuffle", "elementsize": -4}])
add("v2_null_fill", v2(fill_value=None), values={"read": "0"})
add("v2_attributes_cut", lambda: dict(v2(), **{"a/.zattrs": b'{"x": '}), open=(CORRUPT, ".zattrs"))
add("v2_chunk_short", v2({"0.0": CHUNK[:5]}), data=(CORRUPT, "a/0.0"))
add("v2_chunk_long", v2({"0.0": CHUNK + b"x"}), data=(CORRUPT, "a/0.0"))
add("v2_zlib_bomb", lambda: v2({"0.0": zlib_bomb()}, compressor={"id": "zlib", "level": 1}),
    data=(CORRUPT, "a/0.0"))
add("v2_delta_odd", v2({"0.0": CHUNK[:7]}, filters=[{"id": "delta", "dtype": "<u2", "astype": "<u2"}]),
    data=(CORRUPT, "a/0.0"))
add("v2_both_formats", lambda: dict(v3(), **{"a/.zarray": b"rubbish", ".zgroup": b"rubbish"}),
    values={"read": "7"})

# ---- chunks ---------------------------------------------------------------------------


def chunk(name, value, codecs=(), word="a/c/0/0", status=CORRUPT, more=None, **changes):
    """One stored chunk and the result of reading it. The last element is in a missing chunk."""
    add(name, lambda: v3(whole(value() if callable(value) else value), codecs=[BYTES, *codecs],
                         **changes),
        data=(status, word) if status else None, values={"last": "7", **(more or {})})


def special(name, make, status, word="a/c/0/0", listed=True):
    def prepare(root):
        os.makedirs(f"{root}/a/c/0")
        make(f"{root}/a/c/0/0", root)
    add(name, lambda: v3(), data=(status, word), prepare=prepare, chunks=None,
        fault=(status, word) if listed else None)


GZIP, ZSTD = codec("gzip", level=5), codec("zstd", level=3, checksum=False)
LZ4 = codec("numcodecs.lz4", acceleration=1)
ZLIB = codec("numcodecs.zlib", level=1)
BLOSC = codec("blosc", cname="lz4", clevel=5, shuffle="noshuffle", typesize=2, blocksize=0)

chunk("chunk_empty", b"")
chunk("chunk_short", CHUNK[:-1])
chunk("chunk_long", CHUNK + b"\0")
add("chunk_very_long", v3(whole(CHUNK)), data=(CORRUPT, "a/c/0/0"),
    prepare=lambda root: os.truncate(f"{root}/a/c/0/0", 1 << 40))
chunk("chunk_whole_array", CHUNK * 4)
chunk("crc_empty", b"", [CRC])
chunk("crc_3_bytes", b"abc", [CRC])
chunk("crc_wrong", CHUNK + b"\0\0\0\0", [CRC])
chunk("crc_of_short", lambda: CHUNK[:6] + crc32c(CHUNK[:6]), [CRC])
chunk("crc_right", lambda: CHUNK + crc32c(CHUNK), [CRC], status=None, more={"first": "1"})
chunk("gzip_empty", b"", [GZIP])
chunk("gzip_header_only", b"\x1f\x8b\x08\0\0\0\0\0\0\x03", [GZIP])
chunk("gzip_not", b"rubbish, rubbish, rubbish", [GZIP])
chunk("gzip_bomb", gzip_bomb, [GZIP])
chunk("gzip_short", lambda: gzip(CHUNK[:5]), [GZIP])
chunk("gzip_long", lambda: gzip(CHUNK + b"\0"), [GZIP])
chunk("gzip_crc", lambda: gzip(CHUNK)[:-8] + bytes(8), [GZIP])
chunk("gzip_cut", lambda: gzip(CHUNK)[:-9], [GZIP])
chunk("gzip_members_too_long", lambda: gzip(CHUNK) + gzip(CHUNK), [GZIP])
chunk("gzip_rubbish_tail", lambda: gzip(CHUNK) + b"\x1f\x8brubbish", [GZIP])
chunk("gzip_10000_members", lambda: gzip(b"") * 10000 + gzip(CHUNK) + gzip(b"x"), [GZIP])
chunk("gzip_name_without_end", b"\x1f\x8b\x08\x08\0\0\0\0\0\x03" + b"n" * MIB, [GZIP])
chunk("gzip_two_members", lambda: gzip(CHUNK[:3]) + gzip(CHUNK[3:]), [GZIP], status=None,
      more={"first": "1"})
chunk("zlib_bomb", zlib_bomb, [ZLIB])
chunk("zlib_dictionary", b"\x78\xbb\x01\x02\x03\x04" + bytes(20), [ZLIB])
chunk("zstd_empty", b"", [ZSTD])
chunk("zstd_bomb", zstd_bomb, [ZSTD])
chunk("zstd_bomb_with_right_claim", lambda: zstd_bomb(1024, 1 << 30), [ZSTD])
chunk("zstd_bomb_with_small_claim", lambda: zstd_bomb(1024, 8), [ZSTD])
chunk("zstd_claims_10_gib", zstd(CHUNK, 10 << 30), [ZSTD])
chunk("zstd_claims_2_64", zstd(CHUNK, 2**64 - 2), [ZSTD])
chunk("zstd_claims_what_says_unknown", zstd(CHUNK, 2**64 - 1), [ZSTD], status=None,
      more={"first": "1"})
chunk("zstd_claims_less", zstd(CHUNK, 4), [ZSTD])
chunk("zstd_no_claim_long", zstd(CHUNK + b"x", False), [ZSTD])
chunk("zstd_window_2_gib", struct.pack("<IB", 0xFD2FB528, 0) + b"\xa8" + b"\x41\0\0" + CHUNK, [ZSTD],
      status=None, more={"first": "1"})
chunk("zstd_dictionary", struct.pack("<IBI", 0xFD2FB528, 0x23, 99) + b"\x08\x41\0\0" + CHUNK, [ZSTD])
chunk("zstd_two_frames_too_long", zstd(CHUNK) + zstd(CHUNK), [ZSTD])
chunk("zstd_rubbish_tail", zstd(CHUNK) + b"tail", [ZSTD])
chunk("zstd_skippable_only", struct.pack("<II", 0x184D2A50, 4) + b"abcd", [ZSTD])
chunk("zstd_skippable_lies", struct.pack("<II", 0x184D2A50, 0xFFFFFFFF) + b"abcd", [ZSTD])
chunk("zstd_no_claim", zstd(CHUNK, False), [ZSTD], status=None, more={"first": "1"})
chunk("lz4_empty", b"", [LZ4])
chunk("lz4_prefix_only", b"\x08\0\0\0", [LZ4])
chunk("lz4_claims_2_gib", lz4(CHUNK, 2**31 - 1), [LZ4])
chunk("lz4_claims_negative", lz4(CHUNK, -1), [LZ4])
chunk("lz4_claims_less", lz4(CHUNK, 4), [LZ4])
chunk("lz4_bomb", lambda: lz4_bomb(255 * MIB), [LZ4])
chunk("lz4_bomb_with_right_size", lambda: lz4_bomb(8), [LZ4])
chunk("lz4_offset_before_start", struct.pack("<i", 8) + b"\x14A\xff\xff\x50hello", [LZ4])
chunk("lz4_offset_zero", struct.pack("<i", 8) + b"\x10A\0\0\x30abc", [LZ4])
chunk("blosc_header_zeros", bytes(16), [BLOSC])
chunk("blosc_15_bytes", blosc(CHUNK)[:15], [BLOSC])
chunk("blosc_claims_2_gib", blosc(CHUNK, nbytes=2**31 - 17), [BLOSC])
chunk("blosc_claims_4_gib", blosc(CHUNK, nbytes=2**32 - 1), [BLOSC])
chunk("blosc_claims_less", blosc(CHUNK, nbytes=4), [BLOSC])
chunk("blosc_length_lies", blosc(CHUNK, cbytes=1000), [BLOSC])
chunk("blosc_length_short", blosc(CHUNK, cbytes=17), [BLOSC])
chunk("blosc_blocksize_zero", blosc(CHUNK, blocksize=0, flags=0), [BLOSC])
chunk("blosc_blocksize_huge", blosc(CHUNK, blocksize=2**31 - 1, flags=0), [BLOSC])
chunk("blosc_typesize_zero", blosc(CHUNK, typesize=0, flags=1), [BLOSC])
chunk("blosc_typesize_255", blosc(CHUNK, typesize=255, flags=1), [BLOSC])
chunk("blosc_offsets_outside", blosc(struct.pack("<I", 0x7FFFFFFF) + CHUNK, nbytes=8, blocksize=8,
                                     flags=0x20), [BLOSC])
chunk("blosc_offset_negative", blosc(struct.pack("<i", -4) + CHUNK, nbytes=8, blocksize=8,
                                     flags=0x20), [BLOSC])
chunk("blosc_version", blosc(CHUNK, version=77), [BLOSC], status=UNSUPPORTED)
chunk("blosc_unknown_format", blosc(struct.pack("<I", 20) + CHUNK, nbytes=8, blocksize=8,
                                    flags=7 << 5), [BLOSC])
chunk("blosc_rubbish_tail", blosc(CHUNK) + b"tail", [BLOSC])
chunk("blosc_stored", blosc(CHUNK), [BLOSC], status=None, more={"first": "1"})
chunk("two_bombs", lambda: gzip(gzip_bomb()), [GZIP, GZIP])
add("chunks_of_a_gib", lambda: v3({"c/0": b"short"}, shape=[2**30], chunk_grid=grid(2**30),
                                  data_type="uint8"), data=(CORRUPT, "a/c/0"), last=(CORRUPT, "a/c/0"),
    first=None)
add("chunk_keys_that_are_none",
    lambda: v3({key: b"x" for key in ("c/0/00", "c/-1/0", "c/9/9", "c/0/1e0", "c/1e3/0", "x",
                                      "c/18446744073709551616/0")}), values={"read": "7", "first": "7", "last": "7"})
add("file_where_a_folder_of_chunks_belongs", lambda: v3({"c/1": b"x"}), read=(IO, "a/c/1/0"),
    last=(IO, "a/c/1/1"), chunks=(IO, "a/c/1/0"), fault=(IO, "a/c/1/0"), values={"first": "7"})

special("chunk_is_fifo", lambda path, _: os.mkfifo(path), IO)
special("chunk_is_folder", lambda path, _: os.mkdir(path), IO, listed=False)
special("chunk_is_device", lambda path, _: os.symlink("/dev/zero", path), IO)
special("chunk_leads_out", lambda path, _: os.symlink("/etc/passwd", path), IO)
special("chunk_leads_out_relative",
        lambda path, root: os.symlink("../../../../../../../../../../etc/passwd", path), IO)
special("chunk_leads_to_itself", lambda path, _: os.symlink("0", path), IO)
add("folder_of_chunks_leads_out", lambda: v3(), data=(IO, "a/c/0/0"), last=(IO, "a/c/"),
    chunks=(IO, "a/c/0/0"), fault=(IO, "a/c/0/0"), prepare=lambda root: os.symlink("/etc", f"{root}/a/c"))
add("folder_of_chunks_is_file", lambda: v3({"c": b"x"}), data=(IO, "a/c/0/0"), last=(IO, "a/c/1/1"),
    chunks=(IO, "a/c/0/0"), fault=(IO, "a/c/0/0"), write=(IO, "a/c"))

# ---- shards ---------------------------------------------------------------------------

MISSING = (2**64 - 1, 2**64 - 1)


def sharded(codecs=(BYTES,), index=(BYTES, CRC), inner=(1, 2), where="end"):
    return [codec("sharding_indexed", chunk_shape=list(inner), codecs=list(codecs),
                  index_codecs=list(index), index_location=where)]


def shard(data, *entries, crc=True, index_first=False):
    index = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    index += crc32c(index) if crc else b""
    return index + data if index_first else data + index


def shards(name, value, word="a/c/0/0", status=CORRUPT, more=None, codecs=None, **steps):
    """Shards of 2 x 2 with inner chunks of 1 x 2, 4 bytes each."""
    add(name, lambda: v3(whole(value() if callable(value) else value), codecs=codecs or sharded()),
        data=(status, word) if status else None, values={"last": "7", **(more or {})},
        **{"chunks": (status, word) if status else (OK, ""), **steps})


shards("shard_empty", b"")
shards("shard_1_byte", b"x")
shards("shard_shorter_than_index", bytes(35))
shards("shard_index_crc", shard(CHUNK, (0, 4), (4, 4), crc=False) + bytes(4))
shards("shard_index_of_other_length", lambda: shard(CHUNK, (0, 4), (4, 4), (0, 4)))
shards("shard_offset_beyond", lambda: shard(CHUNK, (1000, 4), (4, 4)))
shards("shard_offset_wraps", lambda: shard(CHUNK, (2**64 - 4, 8), (4, 4)))
shards("shard_offset_2_63", lambda: shard(CHUNK, (2**63, 4), (4, 4)))
shards("shard_length_wraps", lambda: shard(CHUNK, (4, 2**64 - 4), (4, 4)))
shards("shard_length_2_64", lambda: shard(CHUNK, (0, 2**64 - 1), (4, 4)))
shards("shard_offset_missing_only", lambda: shard(CHUNK, (2**64 - 1, 4), (4, 4)))
shards("shard_length_beyond", lambda: shard(CHUNK, (0, 5 + 36 + 4), (4, 4)))
shards("shard_entry_in_index", lambda: shard(CHUNK, (8, 4), (4, 4)))
shards("shard_entry_meets_index", lambda: shard(CHUNK, (6, 4), (0, 4)))
shards("shard_entry_in_first_index",
       lambda: shard(CHUNK, (0, 4), (36, 4), index_first=True), codecs=sharded(where="start"))
shards("shard_overlap_whole", lambda: shard(CHUNK, (0, 8), (0, 4)), chunks=(OK, ""))
shards("shard_overlap", lambda: shard(CHUNK, (0, 4), (2, 4)), status=None, more={"first": "1"})
shards("shard_inner_short", lambda: shard(CHUNK, (0, 3), (4, 4)), chunks=(OK, ""))
shards("shard_inner_long", lambda: shard(CHUNK + b"x", (0, 5), (5, 4)), chunks=(OK, ""))
shards("shard_inner_zero", lambda: shard(CHUNK, (0, 0), (4, 4)), chunks=(OK, ""))
shards("shard_inner_bomb", lambda: shard(gzip_bomb(), (0, len(gzip_bomb())), MISSING),
       codecs=sharded([BYTES, GZIP]), chunks=(OK, ""))
shards("shard_inner_crc", lambda: shard(CHUNK + crc32c(CHUNK[:4])[::-1], (0, 8), MISSING),
       codecs=sharded([BYTES, CRC]), chunks=(OK, ""))
shards("shard_same_bytes_twice", lambda: shard(CHUNK[:4], (0, 4), (0, 4)), status=None,
       more={"first": "1"})
shards("shard_gap", lambda: shard(b"gap!" + CHUNK, (4, 4), (8, 4)), status=None, more={"first": "1"})
shards("shard_all_missing", lambda: shard(b"", MISSING, MISSING), status=None, more={"read": "7"})
shards("shard_trailing_byte", lambda: shard(CHUNK, (0, 4), (4, 4)) + b"x")
shards("shard_index_first_lies", lambda: b"x" + shard(CHUNK, (0, 4), (4, 4), index_first=True),
       codecs=sharded(where="start"))


def wholes(name, value, word="a/c/0/0", status=CORRUPT, before="reshape", codecs=None, **steps):
    """The same after a codec that needs all of the shard, so that reading the chunk reads the index."""
    before = codec("reshape", shape=[2, 2]) if before == "reshape" else codec("numcodecs.delta", dtype="<u2")
    add(name, lambda: v3(whole(value() if callable(value) else value), codecs=[before, *(codecs or sharded())]),
        data=(status, word) if status else None, chunks=(OK, ""), values={"last": "7", **steps.pop("more", {})}, **steps)


wholes("whole_empty", b"")
wholes("whole_shorter_than_index", bytes(35), before="delta")
wholes("whole_index_crc", shard(CHUNK, (0, 4), (4, 4), crc=False) + bytes(4))
wholes("whole_offset_wraps", lambda: shard(CHUNK, (2**64 - 4, 8), (4, 4)))
wholes("whole_length_2_64", lambda: shard(CHUNK, (0, 2**64 - 1), (4, 4)), before="delta")
wholes("whole_offset_missing_only", lambda: shard(CHUNK, (2**64 - 1, 4), (4, 4)))
wholes("whole_length_beyond", lambda: shard(CHUNK, (0, 5 + 36 + 4), (4, 4)))
wholes("whole_entry_meets_index", lambda: shard(CHUNK, (6, 4), (0, 4)))
wholes("whole_entry_in_first_index",
       lambda: shard(CHUNK, (0, 4), (36, 4), index_first=True), codecs=sharded(where="start"))
wholes("whole_inner_short", lambda: shard(CHUNK, (0, 3), (4, 4)), "inner chunk [0,0]")
wholes("whole_inner_bomb", lambda: shard(zstd_bomb(), MISSING, (0, len(zstd_bomb()))), "inner chunk [1,0]",
       codecs=sharded([BYTES, ZSTD]), before="delta")
wholes("whole_same_bytes_twice", lambda: shard(CHUNK[:4], (0, 4), (0, 4)), status=None, more={"first": "1"})
wholes("whole_all_missing", lambda: shard(b"", MISSING, MISSING), status=None, more={"first": "7"})
wholes("whole_nested_lies", lambda: shard(shard(CHUNK, (2**64 - 4, 8), (4, 4)), (0, 44)),
       codecs=sharded(sharded(), inner=(2, 2)))
meta("whole_shape_not_divided", CORRUPT, "chunk_shape",
     codecs=[codec("reshape", shape=[4]), *sharded(inner=(3,))])
meta("whole_index_sharded", CORRUPT, "index_codecs",
     codecs=[codec("reshape", shape=[2, 2]), *sharded(index=sharded())])
meta("shard_index_codecs_gzip", CORRUPT, "index_codecs", codecs=sharded(index=[BYTES, GZIP]))
meta("shard_index_codecs_empty", CORRUPT, "index_codecs", codecs=sharded(index=[]))
meta("shard_index_sharded", CORRUPT, "index_codecs", codecs=sharded(index=sharded()))
# With a lossy codec, an index would point to other chunks.
LOSSY = {
    "packbits": [codec("packbits", last_bit=3)], "packbits_62": [codec("packbits", first_bit=1)],
    "bitround": [codec("bitround", keepbits=63), BYTES],
    "cast": [codec("cast_value", data_type="uint8", out_of_range="clamp"), codec("bytes")],
    "cast_signed": [codec("cast_value", data_type="int64", out_of_range="wrap"), BYTES],
    "scale": [codec("scale_offset", offset=1), BYTES],
    "fixedscaleoffset": [codec("numcodecs.fixedscaleoffset", scale=1, offset=0, dtype="<u8", astype="<u8"), BYTES],
    "astype": [codec("numcodecs.astype", encode_dtype="<u4", decode_dtype="<u8"), BYTES],
    "astype_float": [codec("numcodecs.astype", encode_dtype="<f8", decode_dtype="<u8"), BYTES],
    "delta": [codec("numcodecs.delta", dtype="<u8", astype="<u4"), BYTES],
    "quantize": [codec("cast_value", data_type="float64"),
                 codec("numcodecs.quantize", digits=1, dtype="<f8"), BYTES],
    "reshaped": [codec("reshape", shape=[-1]), codec("packbits", last_bit=62)],
}
for _name, _index in LOSSY.items():
    meta(f"shard_index_{_name}", CORRUPT, "loses values", codecs=sharded(index=_index))
    meta(f"whole_index_{_name}", CORRUPT, "loses values",
         codecs=[codec("reshape", shape=[2, 2]), *sharded(index=_index)])
meta("shard_index_zfp", CORRUPT, "index_codecs",
     codecs=sharded(index=[codec("cast_value", data_type="int64", out_of_range="wrap"),
                           codec("zfp", mode="fixed_rate", rate=8)]))
meta("shard_index_location", CORRUPT, "index_location", codecs=sharded(where="middle"))
meta("shard_shape_not_divided", CORRUPT, "chunk_shape", codecs=sharded(inner=(3, 2)))
meta("shard_shape_larger", CORRUPT, "chunk_shape", codecs=sharded(inner=(4, 4)))
meta("shard_shape_rank", CORRUPT, "chunk_shape", codecs=sharded(inner=(2,)))
meta("shard_shape_zero", CORRUPT, "chunk_shape", codecs=sharded(inner=(0, 2)))
meta("shard_no_codecs", CORRUPT, "codecs", codecs=[codec("sharding_indexed", chunk_shape=[1, 2])])
meta("shard_inner_unknown_codec", UNSUPPORTED, "snake_oil",
     codecs=sharded([BYTES, codec("snake_oil")]))
meta("shard_too_many_chunks", LIMIT, "chunks_per_shard", shape=[2**20, 2**20],
     chunk_grid=grid(2**20, 2**20), codecs=sharded(inner=(1, 1)))
meta("shard_chunks_wrap", LIMIT, "64 bits", shape=[2**40, 2**40],
     chunk_grid=grid(2**32, 2**32), codecs=sharded(inner=(1, 1)))


def nested(depth):
    codecs = [BYTES]
    for _ in range(depth):
        codecs = sharded(codecs, inner=(1, 1))
    return codecs


meta("shard_depth_5", LIMIT, "shard_depth", codecs=nested(5))
meta("shard_depth_30", LIMIT, "", codecs=nested(30))
add("shard_nested_lies", lambda: v3(whole(shard(shard(CHUNK, (2**64 - 4, 8), (4, 4)), (0, 44))),
                                    codecs=sharded(sharded(), inner=(2, 2))),
    data=(CORRUPT, "a/c/0/0"), chunks=(CORRUPT, "a/c/0/0"), values={"last": "7"})
add("shard_nested_outer_cuts_inner",
    lambda: v3(whole(shard(shard(CHUNK, (0, 4), (4, 4)), (0, 43))),
               codecs=sharded(sharded(), inner=(2, 2))),
    data=(CORRUPT, "a/c/0/0"), chunks=(CORRUPT, "a/c/0/0"), values={"last": "7"})
add("shard_nested_points_out",
    lambda: v3(whole(shard(shard(CHUNK, (0, 60), (4, 4)), (0, 44))),
               codecs=sharded(sharded(), inner=(2, 2))),
    data=(CORRUPT, "a/c/0/0"), chunks=(CORRUPT, "a/c/0/0"), values={"last": "7"})
add("shard_nested_ok",
    lambda: v3(whole(shard(shard(CHUNK, (0, 4), (4, 4)), (0, 44))),
               codecs=sharded(sharded(), inner=(2, 2))), values={"last": "7", "first": "1"})
add("shard_of_4m_chunks_cut",
    lambda: v3({"c/0/0": bytes(100000)}, shape=[2**11, 2**11], chunk_grid=grid(2**11, 2**11),
               codecs=sharded(inner=(1, 1))),
    data=(CORRUPT, "a/c/0/0"), last=(CORRUPT, "a/c/0/0"), chunks=(CORRUPT, "a/c/0/0"))

# ---- groups and consolidated metadata ---------------------------------------------------


def consolidated(metadata, kind="inline", **more):
    """A v3 root with these consolidated children; the array "a" itself is sound."""
    return lambda: dict(v3(), **{"zarr.json": json.dumps(
        {"zarr_format": 3, "node_type": "group", "attributes": {}, "consolidated_metadata":
         {"kind": kind, "must_understand": False, "metadata": metadata}, **more}).encode()})


def zmetadata(metadata, **more):
    return lambda: dict(v2(), **{".zmetadata": json.dumps(
        {"zarr_consolidated_format": 1, "metadata": metadata, **more}).encode()})


def broken(name, files, group=None, **steps):
    """Broken consolidated metadata: the array can still be read by its own path."""
    add(name, files, values={"read": "7"}, **({"group": group} if group else {}), **steps)


ARRAY = dict(V3)
for _i, _path in enumerate(["../out", "a/../../out", "/etc/passwd", "a//b", ".", "..", "a/./b", "",
                            "a\0b", "a/", "\\..\\x", "x" * 100000]):
    broken(f"consolidated_path_{_i}", consolidated({_path: ARRAY}), group=None, list=None, walk=None,
           child=None, check=None)
for _i, _key in enumerate(["../.zarray", "/.zarray", "a/../b/.zarray", "a/.zarray/.zarray", "a", ""]):
    broken(f"zmetadata_key_{_i}", zmetadata({".zgroup": {"zarr_format": 2}, _key: V2}), group=None,
           list=None, walk=None, child=None, check=None)
broken("consolidated_lies", consolidated({"a": dict(ARRAY, shape=[400, 400])}))
broken("consolidated_ghost", consolidated({"ghost": ARRAY}), child=(NOT_FOUND, "a"))
broken("consolidated_child_broken", consolidated({"a": dict(ARRAY, shape="x")}), list=None, walk=None,
       child=(CORRUPT, "shape"))
broken("consolidated_child_null", consolidated({"a": None}), list=None, walk=None, child=None)
broken("consolidated_not_object", consolidated([1, 2]), group=None, list=None, walk=None, child=None,
       check=None)
broken("consolidated_kind", consolidated({"a": ARRAY}, kind="elsewhere"), group=None, list=None,
       walk=None, child=None, check=None)
broken("consolidated_child_below_array", consolidated({"a": ARRAY, "a/b": ARRAY}), list=None,
       walk=None, check=None)
broken("consolidated_100000", consolidated({f"n{i}": {"zarr_format": 3, "node_type": "group"}
                                            for i in range(100000)}), child=(NOT_FOUND, "a"))
broken("consolidated_deep_path", consolidated({"/".join(["d"] * 20000): ARRAY}), group=None, list=None,
       walk=None, child=None, check=None)
broken("group_broken", lambda: dict(v3(), **{"zarr.json": b"{"}), group=(CORRUPT, "zarr.json"),
       check=(CORRUPT, "zarr.json"))
broken("group_is_fifo", lambda: {k: v for k, v in v3().items() if k != "zarr.json"},
       group=(IO, "zarr.json"), check=(IO, "zarr.json"),
       prepare=lambda root: os.mkfifo(f"{root}/zarr.json"))
broken("zmetadata_broken", lambda: dict(v2(), **{".zmetadata": b"[[["}), group=None, list=None,
       walk=None, child=None, check=None)
broken("children_broken", lambda: dict(v3(), **{"b/zarr.json": b"{", "c/zarr.json": b"",
                                                "d/zarr.json": b'{"zarr_format": 3}'}))
broken("children_deep", lambda: v3(), walk=(INVALID, "dddd"), prepare=lambda root: deep_folders(root))
broken("group_below_array", lambda: dict(v3(), **{"a/inner/zarr.json": GROUP}))
broken("names_odd", lambda: dict(v3(), **{f"{name}/zarr.json": GROUP for name in
                                          ("__x", "...", "a b", "\u00e9", "x" * 250)}))
broken("names_not_utf8", lambda: v3(), list=None, walk=None,
       prepare=lambda root: os.mkdir(os.fsencode(root) + b"/\xff\xfe"))
broken("groups_in_a_ring", lambda: dict(v3(), **{"d/zarr.json": GROUP}), walk=(IO, "d/ring"),
       check=None, prepare=lambda root: os.symlink("..", f"{root}/d/ring"))
broken("folders_in_a_ring", lambda: v3(), list=None, walk=None, chunks=(IO, "a/ring"), verify=(IO, "a/ring"),
       prepare=lambda root: os.symlink("..", f"{root}/a/ring"))


def deep_folders(root):
    folder = os.open(root, os.O_RDONLY)
    for _ in range(600):
        os.mkdir("d" * 20, dir_fd=folder)
        deeper = os.open("d" * 20, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = deeper
        with open(os.open("zarr.json", os.O_WRONLY | os.O_CREAT, dir_fd=folder), "wb") as file:
            file.write(GROUP)
    os.close(folder)
