"""Cases for stores.py: metadata of arrays in both formats that open refuses, or that lies."""
import json
import os

from stores import (BYTES, CHUNK, CORRUPT, CRC, DELETE, IO, LIMIT, MIB, STRICT, UNSUPPORTED, V2, V3, add, codec, grid,
                    text, v2, v3, whole, zlib_bomb)

# ---- metadata of format 3 -------------------------------------------------------------

def meta(name, status, word, untrusted=False, **changes):
    add(name, lambda: v3(**changes), open=(status, word), untrusted=untrusted)


def swap_text(old, new):
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
     raw=swap_text('"attributes": {}', '"attributes": ' + "[" * 100000 + "]" * 100000))
meta("v3_duplicate_shape", CORRUPT, "shape", raw=swap_text('"shape"', '"shape": [400, 4], "shape"'))
meta("v3_duplicate_attribute", CORRUPT, "x", raw=swap_text('"attributes": {}',
                                                         '"attributes": {"x": 1, "x": 2}'))
meta("v3_escaped_duplicate", CORRUPT, "shape",
     raw=swap_text('"shape"', '"sh\\u0061pe": [400, 4], "shape"'))
meta("v3_bad_utf8", CORRUPT, "UTF-8", raw=swap_text('"attributes": {}', '"attributes": {"x": "ab"}')
     .replace(b'"ab"', b'"\xc3\x28"'))
meta("v3_overlong_utf8", CORRUPT, "UTF-8",
     raw=swap_text('"attributes": {}', '"attributes": {"x": "ab"}').replace(b'"ab"', b'"\xc0\xaf"'))
meta("v3_lone_surrogate", CORRUPT, "surrogate",
     raw=swap_text('"attributes": {}', '"attributes": {"x": "\\ud800"}'))
meta("v3_control_character", CORRUPT, "zarr.json",
     raw=swap_text('"attributes": {}', '"attributes": {"x": "a\nb"}'))
meta("v3_utf16", CORRUPT, "zarr.json", raw=json.dumps(V3).encode("utf-16"))
meta("v3_format_4", CORRUPT, "zarr_format", zarr_format=4)
meta("v3_format_text", CORRUPT, "zarr_format", zarr_format="3")
meta("v3_no_shape", CORRUPT, "shape", shape=DELETE)
meta("v3_shape_float", CORRUPT, "shape", raw=swap_text("[4, 4]", "[4.5, 4]"))
meta("v3_shape_negative", CORRUPT, "shape", shape=[-4, 4])
meta("v3_shape_text", CORRUPT, "shape", shape=["4", 4])
meta("v3_shape_1e26", CORRUPT, "shape", raw=swap_text("[4, 4]", "[1e26, 4]"))
meta("v3_shape_2_64", CORRUPT, "shape", shape=[2**64, 4])
meta("v3_shape_huge_digits", CORRUPT, "shape", raw=swap_text("[4, 4]", "[" + "9" * 100000 + ", 4]"))
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


def nest(depth):
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
meta("v3_struct_deep", LIMIT, "json_depth", data_type=nest(16))
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
# a key that is a known one up to a NUL
meta("v3_member_with_nul", UNSUPPORTED, "is not known", **{"shape\0": 17})
meta("v3_codec_member_with_nul", CORRUPT, "unknown member", codecs=[{**BYTES, "name\0": "gzip"}])
meta("v3_codec_configuration_with_nul", CORRUPT, "unknown member", codecs=[
    codec("bytes", **{"endian": "little", "endian\0": "big"})])
meta("v3_dtype_member_with_nul", CORRUPT, "unknown member", data_type={"name": "uint16", "name\0": 1})
meta("v3_dtype_configuration_with_nul", CORRUPT, "besides", data_type={
    "name": "raw_bytes", "configuration": {"length_bytes": 2, "length_bytes\0": 4}}, fill_value="AAA=")
meta("v3_grid_member_with_nul", UNSUPPORTED, "unknown member", chunk_grid={
    "name": "regular", "configuration": {"chunk_shape": [2, 2], "chunk_shape\0": [1, 1]}})
meta("v3_grid_with_nul", CORRUPT, "unknown member", chunk_grid={**grid(2, 2), "name\0": 1})
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
meta("v3_fill_null", STRICT, "fill_value", fill_value=None)  # GDAL writes it
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
meta("v3_name_2mib", LIMIT, "dimension_name_bytes", dimension_names=["y" * (2 * MIB), "x"])
meta("v3_attributes_list", CORRUPT, "attributes", attributes=[1])
meta("v3_document_over_limit", LIMIT, "metadata_bytes",
     raw=json.dumps(dict(V3, attributes={"x": "y" * 1000})).encode() + b" " * (65 * MIB))
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
add("v3_nan_attribute", v3(raw=swap_text('"attributes": {}', '"attributes": {"x": NaN}')))
add("v3_nan_fill", v3(raw=swap_text('"fill_value": 7', '"fill_value": NaN')
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
meta2("v2_dtype_text_of_list", CORRUPT, "dtype", dtype='[["x",">i4"]]')
meta2("v2_struct_text_of_list", CORRUPT, "no data type", dtype=[["x", '[["y","<i4"]]']])
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
