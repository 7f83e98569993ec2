"""More cases for stores.py: codecs that compute, and variable-length elements. Metadata gives the
size of streams of numbers; streams of text contain their own sizes."""
import struct

from stores import (BYTES, CORRUPT, GZIP, LIMIT, STRICT, UNSUPPORTED, V2, ZSTD, add, codec, gzip_bomb, grid, text, v2,
                    v3, zstd_bomb)

FLOATS = {"data_type": "float32", "fill_value": 1}


def config(name, status, word, found, after=BYTES, write=None, **changes):
    """A configuration that open refuses; the error gives the codec's name and the rule."""
    add(name, lambda: v3(codecs=[found, after], **changes), open=(status, word), **({"write": write} if write else {}))


def number(name, chunk, codecs, word, status=CORRUPT, **changes):
    """A damaged stored chunk at 0, 0. The last element is in a missing chunk."""
    add(name, lambda: v3({"c/0/0": chunk}, codecs=codecs, **changes), data=(status, word))


# ---- cast_value --------------------------------------------------------------------------

def cast(**config):
    return codec("cast_value", **config)


config("cast_no_type", CORRUPT, "data_type is missing", cast())
config("cast_unknown_type", UNSUPPORTED, "float7", cast(data_type="float7"))
config("cast_to_number", CORRUPT, "data_type", cast(data_type=8))
config("cast_to_text", UNSUPPORTED, "only integers and floats", cast(data_type="string"))
config("cast_to_pairs", UNSUPPORTED, "only integers and floats", cast(data_type="complex64"))
config("cast_from_raw", UNSUPPORTED, "only integers and floats", cast(data_type="int8"), data_type="r16",
       fill_value=[0, 0])
config("cast_rounding", CORRUPT, "rounding", cast(data_type="int8", rounding="up"))
config("cast_range", CORRUPT, "out_of_range", cast(data_type="int8", out_of_range="saturate"))
config("cast_wrap_float", CORRUPT, "only integers", cast(data_type="float32", out_of_range="wrap"))
config("cast_member", CORRUPT, "round", cast(data_type="int8", round="nearest-even"))
config("cast_map_list", CORRUPT, "scalar_map", cast(data_type="int8", scalar_map=[[1, 2]]))
config("cast_map_member", CORRUPT, "encoded", cast(data_type="int8", scalar_map={"encoded": []}))
config("cast_map_triple", CORRUPT, "must be a pair", cast(data_type="int8", scalar_map={"encode": [[1, 2, 3]]}))
config("cast_map_range", CORRUPT, "scalar_map.encode[0]",
       cast(data_type="int8", scalar_map={"encode": [[1, 300]]}))
config("cast_map_word", CORRUPT, "scalar_map.decode[0]",
       cast(data_type="int8", scalar_map={"decode": [["NaN", 1]]}))
config("cast_fill_lost", CORRUPT, "does not come back", cast(data_type="int8"), codec("bytes"),
       data_type="float32", fill_value=1.5)
config("cast_fill_nan", CORRUPT, "NaN", cast(data_type="int8"), codec("bytes"), data_type="float32",
       fill_value="NaN")
config("cast_fill_range", CORRUPT, "does not come back", cast(data_type="uint8"), codec("bytes"),
       fill_value=256)
config("cast_no_endian", CORRUPT, "endian is required", cast(data_type="int32"), codec("bytes"))
number("cast_chunk_nan", struct.pack("<4f", 1, 2, float("nan"), 4), [cast(data_type="float32"), BYTES],
       "element 2 of the chunk is NaN")
number("cast_chunk_infinite", struct.pack("<4f", float("inf"), 2, 3, 4), [cast(data_type="float32"), BYTES],
       "element 0 of the chunk is infinite")
number("cast_chunk_negative", struct.pack("<4f", 1, -2, 3, 4), [cast(data_type="float32"), BYTES],
       "element 1 of the chunk is out of")
number("cast_chunk_of_other_width", bytes(8), [cast(data_type="float32"), BYTES], "16")

# ---- scale_offset ------------------------------------------------------------------------


def scale(**config):
    return codec("scale_offset", **config)


config("scale_zero", CORRUPT, "scale is 0", scale(scale=0))
config("scale_list", CORRUPT, "offset", scale(offset=[1]))
config("scale_word", CORRUPT, "scale", scale(scale="ten"))
config("scale_range", CORRUPT, "offset", scale(offset=65536))
config("scale_fraction", CORRUPT, "scale", scale(scale=1.5))
config("scale_member", CORRUPT, "factor", scale(factor=2))
config("scale_bool", UNSUPPORTED, "only integers and floats", scale(scale=2), codec("bytes"),
       data_type="bool", fill_value=False)
config("scale_powers", UNSUPPORTED, "with a zero", scale(scale=2), codec("bytes"),
       data_type="float8_e8m0fnu", fill_value=1)
config("scale_fill", CORRUPT, "(fill_value 7 - offset)", scale(offset=8))
number("scale_chunk_inexact", struct.pack("<4H", 2, 4, 5, 8), [scale(scale=2), BYTES], "element 2 ")
number("scale_chunk_overflows", struct.pack("<4H", 2, 4, 65535, 8), [scale(offset=7), BYTES], "element 2 ")

# ---- numcodecs' filters, bitround ----------------------------------------------------------


def old(name, **config):
    return codec("numcodecs." + name, **config)


def filters(name, status, word, *found, write=None, **changes):
    add(name, lambda: v2(filters=list(found), **changes), open=(status, word), **({"write": write} if write else {}))


config("bitround_none", STRICT, "keepbits is missing", codec("bitround"))
config("bitround_negative", STRICT, "keepbits", codec("bitround", keepbits=-1))
config("bitround_word", STRICT, "keepbits", codec("bitround", keepbits="3"))
config("bitround_bool", STRICT, "only integers, times", codec("bitround", keepbits=3), codec("bytes"),
       data_type="bool", fill_value=True, write=(UNSUPPORTED, "not write them"))
filters("v2_bitround_integers", STRICT, "filters[0]: bitround: its input must be little-endian floats", {"id": "bitround", "keepbits": 3},
        write=(UNSUPPORTED, "not write them"))
config("fso_no_scale", CORRUPT, "scale", old("fixedscaleoffset", offset=0))
config("fso_scale_word", CORRUPT, "scale", old("fixedscaleoffset", offset=0, scale="ten"))
config("fso_offset_huge", CORRUPT, "offset", old("fixedscaleoffset", offset=2**64, scale=1))
config("fso_other_type", CORRUPT, "is not the array's", old("fixedscaleoffset", offset=0, scale=1, dtype="<f4"))
config("fso_unknown_type", UNSUPPORTED, "<q9", old("fixedscaleoffset", offset=0, scale=1, dtype="<q9"))
config("fso_of_raw", UNSUPPORTED, "only integers or floats", old("fixedscaleoffset", offset=0, scale=1),
       codec("bytes"), data_type="r16", fill_value=[0, 0])
filters("v2_fso_no_type", CORRUPT, "/a: filters[0]: fixedscaleoffset: dtype", {"id": "fixedscaleoffset", "offset": 0, "scale": 1})
add("v2_fso_odd", lambda: v2({"0.0": bytes(7)}, filters=[
    {"id": "fixedscaleoffset", "offset": 0, "scale": 1, "dtype": "<u2", "astype": "<u2"}]), data=(CORRUPT, "a/0.0"))
config("quantize_digits", STRICT, "digits", old("quantize", digits=301, dtype="<f4"), **FLOATS)
config("quantize_fraction", STRICT, "digits", old("quantize", digits=1.5, dtype="<f4"), **FLOATS)
config("quantize_none", STRICT, "digits is missing", old("quantize", dtype="<f4"), **FLOATS)
config("quantize_integers", STRICT, "floats", old("quantize", digits=1, dtype="<u2"),
       write=(UNSUPPORTED, "only decoded"))
config("astype_none", CORRUPT, "encode_dtype", old("astype"))
config("astype_text", UNSUPPORTED, "encode_dtype", old("astype", encode_dtype="<U3"))
config("delta_floats_of_8", UNSUPPORTED, "dtype", old("delta", dtype="<f1"))
number("delta_chunk_short", bytes(7), [old("delta", dtype="<u2"), BYTES], "a/c/0/0")

# ---- packbits, zfp -------------------------------------------------------------------------

BITS = {"data_type": "bool", "fill_value": False}


def refuse_packed(name, status, word, found, **changes):
    add(name, lambda: v3(codecs=[found], **changes), open=(status, word))


refuse_packed("packbits_padding", CORRUPT, "padding_encoding", codec("packbits", padding_encoding="both"))
refuse_packed("packbits_order", CORRUPT, "last_bit", codec("packbits", first_bit=5, last_bit=2))
refuse_packed("packbits_beyond", CORRUPT, "has 16 bits", codec("packbits", last_bit=16))
refuse_packed("packbits_bit_64", CORRUPT, "first_bit", codec("packbits", first_bit=64))
refuse_packed("packbits_both_names", CORRUPT, "name the same member", codec("packbits", first_bit=0, start_bit=0))
refuse_packed("packbits_raw", UNSUPPORTED, "only bools, numbers and times", codec("packbits"), data_type="r16", fill_value=[0, 0])
number("packbits_short", b"", [codec("packbits")], "a/c/0/0", **BITS)
number("packbits_long", b"\1\1", [codec("packbits")], "a/c/0/0", **BITS)
number("packbits_padding_lies", b"\3\1", [codec("packbits", padding_encoding="first_byte")], "padding", **BITS)
number("packbits_padding_huge", b"\1\xff", [codec("packbits", padding_encoding="last_byte")], "padding", **BITS)
config("old_packbits_numbers", UNSUPPORTED, "only bool", old("packbits"), codec("bytes"))
number("old_packbits_lies", b"\x09\xf0", [old("packbits"), codec("bytes")], "packbits", **BITS)
refuse_packed("zfp_no_mode", CORRUPT, "mode is required", codec("zfp"))
refuse_packed("zfp_mode", CORRUPT, "mode", codec("zfp", mode="best"))
refuse_packed("zfp_no_tolerance", CORRUPT, "tolerance is required", codec("zfp", mode="fixed_accuracy"), **FLOATS)
refuse_packed("zfp_tolerance", CORRUPT, "tolerance", codec("zfp", mode="fixed_accuracy", tolerance=-1), **FLOATS)
refuse_packed("zfp_rate_huge", CORRUPT, "rate", codec("zfp", mode="fixed_rate", rate=1e9), **FLOATS)
refuse_packed("zfp_rate_zero", CORRUPT, "rate", codec("zfp", mode="fixed_rate", rate=0), **FLOATS)
refuse_packed("zfp_expert", CORRUPT, "minbits", codec("zfp", mode="expert", minbits=9, maxbits=8, maxprec=9, minexp=0),
       **FLOATS)
refuse_packed("zfp_bool", UNSUPPORTED, "data type bool", codec("zfp", mode="reversible"), **BITS)
refuse_packed("zfp_rank", UNSUPPORTED, "dimensions", codec("zfp", mode="reversible"), shape=[4] * 5,
       chunk_grid=grid(*[2] * 5), **FLOATS)
number("zfp_empty", b"", [codec("zfp", mode="reversible")], "a/c/0/0", **FLOATS)
number("zfpy_rubbish", b"rubbish, rubbish, rubbish", [old("zfpy", mode=5)], "a/c/0/0", **FLOATS)
number("zfpy_empty", b"", [old("zfpy", mode=5)], "a/c/0/0", **FLOATS)
number("zfpy_header_only", b"zfp\x05" + bytes(12), [old("zfpy", mode=5)], "a/c/0/0", **FLOATS)

# ---- texts and bytes of any length -----------------------------------------------------------

UTF8, BLOBS = codec("vlen-utf8"), codec("vlen-bytes")
TEXT = {"data_type": "string", "fill_value": "f", "shape": [4], "chunk_grid": grid(2)}
BLOB = {"data_type": "variable_length_bytes", "fill_value": "", "shape": [4], "chunk_grid": grid(2)}
OBJECTS = text(V2, {"shape": [4], "chunks": [2], "dtype": "|O", "fill_value": "f",
                    "filters": [{"id": "vlen-utf8"}]})


def items(*values, count=None):
    found = struct.pack("<I", len(values) if count is None else count)
    return found + b"".join(struct.pack("<I", len(v)) + v for v in values)


def texts(name, value, word, codecs=(UTF8,), status=CORRUPT, **changes):
    add(name, lambda: v3({"c/0": value() if callable(value) else value}, codecs=list(codecs), **{**TEXT, **changes}),
        data=(status, word))


add("vlen_good", lambda: v3({"c/0": items(b"a", b"b")}, codecs=[UTF8], **TEXT),
    values={"first": '"a"', "last": '"f"'})
add("vlen_good_bytes", lambda: v3({"c/0": items(b"\xff\xfe", b"")}, codecs=[BLOBS], **BLOB),
    values={"first": '"//4="', "last": '""'})
add("vlen_good_v2", lambda: v2({"0": items(b"a", b"b")}, raw=OBJECTS), values={"first": '"a"', "last": '"f"'})
texts("vlen_empty", b"", "the count alone has 4")
texts("vlen_half_a_count", b"\2\0", "the count alone has 4")
texts("vlen_no_elements", items(b"a", b"b", count=0), "0 elements")
texts("vlen_more_elements", items(b"a", b"b", b"c"), "3 elements")
texts("vlen_4g_elements", items(b"a", b"b", count=2**32 - 1), "4294967295 elements")
texts("vlen_one_missing", items(b"a", count=2), "element 1 is missing")
texts("vlen_half_a_length", items(b"a", count=2) + b"\1\0", "element 1 is missing")
texts("vlen_beyond", items(b"a", count=2) + struct.pack("<I", 2) + b"b", "element 1 ends after")
texts("vlen_4g_long", items(b"a", count=2) + struct.pack("<I", 2**32 - 1) + b"b", "element 1 ends after")
texts("vlen_swallows", items(struct.pack("<I", 1) + b"b", count=2), "element 1 is missing")
texts("vlen_tail", items(b"a", b"b") + b"tail", "4 bytes after")
texts("vlen_not_utf8", items(b"a", b"\xc3\x28"), "element 1 is not UTF-8")
texts("vlen_overlong_utf8", items(b"\xc0\xaf", b"b"), "element 0 is not UTF-8")
texts("vlen_surrogate", items(b"\xed\xa0\x80", b"b"), "element 0 is not UTF-8")
texts("vlen_beyond_unicode", items(b"\xf4\x90\x80\x80", b"b"), "element 0 is not UTF-8")
texts("vlen_cut_character", items(b"\xe6\xbc", b"\xa2"), "element 0 is not UTF-8")
# Only limits refuse these, so the limits for untrusted files are set.
for _name, _bomb, _codec in (("gzip", gzip_bomb, GZIP), ("zstd", lambda: zstd_bomb(1024), ZSTD),
                             ("zstd_claiming", lambda: zstd_bomb(1024, 1 << 30), ZSTD)):
    add(f"vlen_{_name}_bomb", lambda bomb=_bomb, codecs=(UTF8, _codec): v3({"c/0": bomb()}, codecs=codecs, **TEXT),
        data=(LIMIT, "chunk_bytes"), untrusted=True, mib=320)
texts("vlen_small_bomb", lambda: zstd_bomb(8), "a/c/0", [UTF8, ZSTD])
texts("vlen_bytes_long", items(b"a", count=2) + struct.pack("<I", 2**31) + b"b", "element 1 ends after", [BLOBS],
      **BLOB)
config("vlen_of_numbers", UNSUPPORTED, "only string", codec("transpose", order=[0, 1]), UTF8)
config("vlen_bytes_of_text", UNSUPPORTED, "only variable_length_bytes", codec("transpose", order=[0]), BLOBS, **TEXT)
config("bytes_of_text", UNSUPPORTED, "only types of fixed size", codec("transpose", order=[0]), BYTES, **TEXT)
config("vlen_fill_number", CORRUPT, "fill_value", codec("transpose", order=[0]), UTF8, **{**TEXT, "fill_value": 7})
config("vlen_fill_base64", CORRUPT, "fill_value", codec("transpose", order=[0]), BLOBS, **{**BLOB, "fill_value": "!"})
config("vlen_member", CORRUPT, "encoding", codec("transpose", order=[0]), codec("vlen-utf8", encoding="utf-8"), **TEXT)
add("v2_vlen_tail", lambda: v2({"0": items(b"a", b"b") + b"x"}, raw=OBJECTS), data=(CORRUPT, "a/0"))
add("v2_object_of_pickle", lambda: v2(dtype="|O", fill_value=None, filters=[{"id": "pickle"}]),
    open=(UNSUPPORTED, "pickle"))
