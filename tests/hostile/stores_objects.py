"""More cases for stores.py: v2's object codecs, codecs that contain codecs, and numcodecs'
compressors and checksums. Streams of variable-length elements contain their own sizes."""
import base64
import bz2
import functools
import lzma
import struct
import zlib

from stores import (BYTES, CORRUPT, GZIP, INVALID, LIMIT, MIB, OK, STRICT, UNSUPPORTED, V2, ZSTD, add, codec, grid,
                    gzip, gzip_bomb, text, v2, v3, zlib_bomb, zstd_bomb)
from stores_codecs import BLOB, FLOATS, TEXT, UTF8, config, filters, items, number, texts

# ---- v2: objects of any kind ---------------------------------------------------------------


def objects_document(found, shape=(4,), chunks=(2,), fill="f", **changes):
    return text(V2, {"shape": list(shape), "chunks": list(chunks), "dtype": "|O", "fill_value": fill,
                     "filters": [found], **changes})


def objects(name, found, value, word, status=CORRUPT, key="0", **changes):
    """A damaged chunk of two elements. The last element is in a missing chunk."""
    add(name, lambda: v2({key: value() if callable(value) else value}, raw=objects_document(found, **changes)),
        data=(status, word))


def objects_config(name, found, status, word, **changes):
    add(name, lambda: v2(raw=objects_document(found, **changes)), open=(status, word))


JSON2, PACK2 = {"id": "json2"}, {"id": "msgpack2"}


def jsons(name, value, word, **more):
    objects("json2_" + name, JSON2, value.encode() if isinstance(value, str) else value, word, **more)


add("json2_good", lambda: v2({"0": b'["a","\\ud83d\\ude00","|O",[2]]'}, raw=objects_document(JSON2)),
    values={"first": '"a"', "last": '"f"'})
jsons("empty", "", "json2")
jsons("cut", '["a","b","|O",[2', "json2")
jsons("rubbish", b"\x80\x03]q\0.", "json2")
jsons("tail", '["a","b","|O",[2]] x', "json2")
jsons("object", '{"a":1}', "not a list of 2")
jsons("one_missing", '["a","|O",[2]]', "not a list of 2")
jsons("one_more", '["a","b","c","|O",[2]]', "not a list of 2")
jsons("no_tail", '["a","b"]', "not a list of 2")
jsons("other_shape", '["a","b","|O",[3]]', "the shape after the elements")
jsons("more_dimensions", '["a","b","|O",[2,1]]', "the shape after the elements")
jsons("negative_shape", '["a","b","|O",[-2]]', "the shape after the elements")
jsons("huge_shape", '["a","b","|O",[' + "9" * 400 + "]]", "json2")
jsons("shape_text", '["a","b","|O","2"]', "the shape after the elements")
jsons("type_number", '["a","b",7,[2]]', "json2")
jsons("type_integers", '["a","b","<i4",[2]]', "only text of any length (|O) is supported", status=UNSUPPORTED)
for _name, _value, _first in (("null", "null", " null"), ("nan", "NaN", " NaN"), ("number", "1", " 1"),
                              ("list", '[ "a" , {} ]', ' [\\"a\\",{}]'), ("looks_like_one", '" 1"', ' \\" 1\\"')):
    add("json2_" + _name, lambda value=_value: v2({"0": f'[{value},"b","|O",[2]]'.encode()}, raw=objects_document(JSON2)),
        values={"first": f'"{_first}"', "last": '"f"'})
jsons("key_twice", '["a",{"b":1,"b":2},"|O",[2]]', "json2")
jsons("not_utf8", b'["a","\xc3\x28","|O",[2]]', "UTF-8")
jsons("surrogate", '["a","\\ud800","|O",[2]]', "surrogate")
jsons("control", b'["a","\n","|O",[2]]', "json2")
jsons("deep", "[" * 100000 + "]" * 100000, "json_depth", status=LIMIT)
jsons("deep_cut", "[" * 1000000, "json_depth", status=LIMIT)
jsons("deep_element", '["a",' + '{"a":' * 50000 + "1" + "}" * 50000 + ',"|O",[2]]', "json_depth", status=LIMIT)
jsons("million_elements", lambda: b'["a"' + b',"b"' * 1000000 + b',"|O",[1000001]]', "not a list of 2")
add("json2_deep_text", lambda: v2({"0": b'["a"," ' + b"[" * 100000 + b'","|O",[2]]'}, raw=objects_document(JSON2)),
    values={"first": '"a"', "last": '"f"'})  # text, which is shown as a JSON string
jsons("other_lists", '[["a"],["b"],"|O",[2,1]]', "the shape after the elements")
objects("json2_lists_of_other_length", JSON2, b'[["a","b"],["c"],"|O",[2,2]]', "json2", key="0.0", shape=[4, 4],
        chunks=[2, 2])
objects("json2_lists_too_deep", JSON2, b'[[["a"],["b"]],[["c"],["d"]],"|O",[2,2,1]]', "the shape after the elements", key="0.0", shape=[4, 4], chunks=[2, 2])
for _name, _found in (("json2", JSON2), ("msgpack2", PACK2), ("categorize", {"id": "categorize", "labels": ["a"],
                                                                              "dtype": "|O"}),
                      ("vlen_array", {"id": "vlen-array", "dtype": "<i4"})):
    add(_name + "_zlib_bomb", lambda found=_found: v2({"0": zlib_bomb()}, raw=objects_document(
        found, compressor={"id": "zlib", "level": 1}, fill=0 if found["id"] == "vlen-array" else "f")),
        data=(CORRUPT, "a/0") if _name == "categorize" else (LIMIT, "chunk_bytes"), untrusted=True, mib=320)
objects_config("json2_encoding", {"id": "json2", "encoding": "utf-16"}, UNSUPPORTED, 'encoding "utf-16"')
objects_config("json2_encoding_number", {"id": "json2", "encoding": 8}, UNSUPPORTED, "encoding")
objects_config("json2_separators", {"id": "json2", "separators": [";", ":"]}, STRICT, "separators")
objects_config("json2_separators_text", {"id": "json2", "separators": ","}, STRICT, "separators")
objects_config("json2_ascii_word", {"id": "json2", "ensure_ascii": "yes"}, STRICT, "ensure_ascii")
objects_config("json2_order_f", JSON2, UNSUPPORTED, "json2", shape=[4, 4], chunks=[2, 2], order="F")
objects_config("vlen_utf8_fill_number", {"id": "vlen-utf8"}, CORRUPT, "fill_value", fill=7)
add("json2_fill_deep", lambda: v2(raw=objects_document(JSON2, fill="deep").replace(b'"deep"', b"[" * 1100 + b"]" * 1100)),
    open=(LIMIT, "json_depth"))  # more than json.dumps() can write
filters("json2_of_big_endian_numbers", UNSUPPORTED, "little-endian", JSON2, dtype=">u2")
filters("json2_of_complex_numbers", UNSUPPORTED, "text of any length (|O), bools", JSON2, dtype="<c8", fill_value=None)
filters("json2_of_numbers_order_f", UNSUPPORTED, "elements than it wrote", JSON2, order="F")


def numbers(name, found, value, word, status=CORRUPT):
    """A chunk of 2 x 2 uint16 in a list."""
    add(name, lambda: v2({"0.0": value}, filters=[found]), data=(status, word))


NUMBERS, PACKED = b'"<u2",[2,2]]', b"\xa3<u2\x92\x02\x02"
for _name, _found, _data, _word in (
        ("empty", JSON2, b"", "json2"), ("cut", JSON2, b"[[1,2],[3,4]", "json2"),
        ("other_shape", JSON2, b'[[1,2],[3,4],"<u2",[4]]', "shape"), ("flat", JSON2, b"[1,2,3," + NUMBERS, "list"),
        ("other_type", JSON2, b'[[1,2],[3,4],"<i2",[2,2]]', '"<i2"'), ("swapped", JSON2, b'[[1,2],[3,4],">u2",[2,2]]', '">u2"'),
        ("too_large", JSON2, b"[[1,2],[3,65536]," + NUMBERS, "element 3 is 65536"),
        ("negative", JSON2, b"[[-1,2],[3,4]," + NUMBERS, "element 0 is -1"),
        ("fraction", JSON2, b"[[1,2.5],[3,4]," + NUMBERS, "element 1 is 2.5"),
        ("bool", JSON2, b"[[1,true],[3,4]," + NUMBERS, "element 1 is true"),
        ("null", JSON2, b"[[1,null],[3,4]," + NUMBERS, "element 1 is null"),
        ("text", JSON2, b'[[1,"2"],[3,4],' + NUMBERS, "element 1 is"),
        ("nan", JSON2, b"[[1,NaN],[3,4]," + NUMBERS, "element 1 is NaN"),
        ("digits", JSON2, b"[[1," + b"9" * 100000 + b"],[3,4]," + NUMBERS, "element 1 is"),
        ("empty", {"id": "msgpack2"}, b"", "msgpack2"), ("cut", {"id": "msgpack2"}, b"\x94\x92\x01", "element 1"),
        ("cut_inside", {"id": "msgpack2"}, b"\x94\x92\x01\xcd\x01", "element 1 ends"),
        ("other_type", {"id": "msgpack2"}, b"\x94\x92\1\2\x92\3\4\xa3<i2\x92\2\2", '"<i2"'),
        ("too_large", {"id": "msgpack2"}, b"\x94\x92\1\2\x92\3\xce\0\1\0\0" + PACKED, "element 3 is a number"),
        ("negative", {"id": "msgpack2"}, b"\x94\x92\xff\2\x92\3\4" + PACKED, "element 0 is a number"),
        ("float", {"id": "msgpack2"}, b"\x94\x92\1\xca\0\0\0\0\x92\3\4" + PACKED, "element 1 is a number"),
        ("nil", {"id": "msgpack2"}, b"\x94\x92\1\xc0\x92\3\4" + PACKED, "element 1 is nil"),
        ("text", {"id": "msgpack2"}, b"\x94\x92\1\xa1a\x92\3\4" + PACKED, "element 1 is text"),
        ("tail", {"id": "msgpack2"}, b"\x94\x92\1\2\x92\3\4" + PACKED + b"\0", "after the shape")):
    numbers(f"{_found['id']}_numbers_{_name}", _found, _data, _word)
numbers("json2_numbers_of_lists", JSON2, b"[[1,2],[3,[" + b"4," * 40 + b"4]]," + NUMBERS, "lists and objects", UNSUPPORTED)
add("json2_numbers", v2({"0.0": b" [[1, 2], [3, 4], " + NUMBERS}, filters=[JSON2]), values={"first": "1", "last": "7"})
add("msgpack2_numbers", v2({"0.0": b"\x94\x92\xcd\0\1\xd0\2\x92\3\4" + PACKED}, filters=[{"id": "msgpack2"}]),
    values={"first": "1", "last": "7"})


def packs(name, value, word, **more):
    objects("msgpack2_" + name, PACK2, value, word, **more)


A, B, OBJECT, SHAPE_2 = b"\xa1a", b"\xa1b", b"\xa2|O", b"\x91\x02"
add("msgpack2_good", lambda: v2({"0": b"\x94" + A + B + OBJECT + SHAPE_2}, raw=objects_document(PACK2)),
    values={"first": '"a"', "last": '"f"'})
packs("empty", b"", "not a list of 2")
packs("map", b"\x84" + (A + B) * 4, "not a list of 2")
packs("list_cut", b"\xdd\0\0", "not a list of 2")
packs("list_of_4g", b"\xdd\xff\xff\xff\xff" + A + B, "not a list of 2")
packs("list_of_64k", b"\xdc\xff\xff" + A + B, "not a list of 2")
packs("one_missing", b"\x93" + A + OBJECT + b"\x91\x01", "not a list of 2")
packs("ends_early", b"\x94" + A, "element 1 is missing")
packs("text_ends_behind", b"\x94" + A + b"\xa5b", "element 1 ends after")
packs("text_of_4g", b"\x94" + A + b"\xdb\xff\xff\xff\xffb", "element 1 ends after")
packs("text_length_cut", b"\x94" + A + b"\xdb\0\0", "element 1 ends after")
packs("not_utf8", b"\x94" + A + b"\xa2\xc3\x28" + OBJECT + SHAPE_2, "element 1 is not UTF-8")
packs("overlong", b"\x94" + b"\xa2\xc0\xaf" + B + OBJECT + SHAPE_2, "element 0 is not UTF-8")
packs("never_used", b"\x94" + A + b"\xc1" + OBJECT + SHAPE_2, "element 1 is missing or not a value")
for _name, _value, _first in (("number", b"\x07", " 7"), ("nil", b"\xc0", " null"), ("list", b"\x92\x01\x80", " [1,{}]"),
                              ("looks_like_one", b"\xa2 1", ' \\" 1\\"')):
    add("msgpack2_" + _name, lambda value=_value: v2({"0": b"\x94" + value + B + OBJECT + SHAPE_2},
                                                     raw=objects_document(PACK2)),
        values={"first": f'"{_first}"', "last": '"f"'})
packs("bytes", b"\x94" + A + b"\xc4\x01b" + OBJECT + SHAPE_2, "element 1 is or has bytes", status=UNSUPPORTED)
packs("extension", b"\x94" + A + b"\xc7\xff\x01" + OBJECT + SHAPE_2, "element 1 is or has an extension",
      status=UNSUPPORTED)
packs("key_number", b"\x94" + A + b"\x81\x01\x02" + OBJECT + SHAPE_2, "a key that is not text", status=UNSUPPORTED)
packs("key_twice", b"\x94" + A + b"\x82\xa1b\x01\xa1b\x02" + OBJECT + SHAPE_2, "element 1 has a key twice")
packs("key_cut", b"\x94" + A + b"\x82\xa1b\x01", "element 1 ends after")
packs("map_element", b"\x94" + A + b"\xdf\xff\xff\xff\xff", "element 1 ends after")
packs("list_element_of_4g", b"\x94" + A + b"\xdd\xff\xff\xff\xff" + b"\x01" * 1000, "element 1 is missing")
packs("deep", b"\x91" * 1000000, "not a list of 2")
packs("deep_element", b"\x94" + A + b"\x91" * 1000000, "element 1 has lists and maps more than 256 deep", status=LIMIT)
packs("type_number", b"\x94" + A + B + b"\x07" + SHAPE_2, "not a list of 2")
packs("type_integers", b"\x94" + A + B + b"\xa3<i4" + SHAPE_2, "only text of any length (|O) is supported", status=UNSUPPORTED)
packs("no_shape", b"\x94" + A + B + OBJECT, "the shape after")
packs("other_shape", b"\x94" + A + B + OBJECT + b"\x91\x03", "the shape after")
packs("negative_shape", b"\x94" + A + B + OBJECT + b"\x91\xfe", "the shape after")
packs("huge_shape", b"\x94" + A + B + OBJECT + b"\x91\xcf" + b"\xff" * 8, "the shape after")
packs("more_dimensions", b"\x94" + A + B + OBJECT + b"\x92\x02\x01", "the shape after")
packs("tail", b"\x94" + A + B + OBJECT + SHAPE_2 + b"tail", "4 bytes after the shape")
objects("msgpack2_lists_of_other_length", PACK2, b"\x94\x92" + A + B + b"\x91" + A + OBJECT + b"\x92\2\2",
        "element 2 is not in a list", key="0.0", shape=[4, 4], chunks=[2, 2])
objects_config("msgpack2_raw", {"id": "msgpack2", "raw": True}, UNSUPPORTED, "only text is supported")
objects_config("msgpack2_raw_word", {"id": "msgpack2", "raw": "no"}, CORRUPT, "raw")
objects_config("msgpack2_scalar", PACK2, UNSUPPORTED, "without dimensions", shape=[], chunks=[])

LABELS = {"id": "categorize", "labels": ["a", "b"], "dtype": "|O", "astype": "|u1"}


def label(**changes):
    return {**LABELS, **changes}


add("categorize_good", lambda: v2({"0": b"\1\0"}, raw=objects_document(LABELS)),
    values={"first": '"a"', "last": '"f"'})
objects("categorize_beyond", LABELS, b"\1\3", "element 1 has the number 3")
objects("categorize_255", LABELS, b"\xff\1", "element 0 has the number 255")
objects("categorize_negative", label(astype="<i2"), b"\1\0\xff\xff", "element 1 has the number -1")
objects("categorize_2_63", label(astype=">u8"), b"\x80" + bytes(14) + b"\1", "element 0 has the number")
objects("categorize_empty", LABELS, b"", "a/0")
objects("categorize_short", LABELS, b"\1", "a/0")
objects("categorize_long", LABELS, b"\1\1\1", "a/0")
objects_config("categorize_no_labels", {"id": "categorize", "dtype": "|O"}, CORRUPT, "labels")
objects_config("categorize_labels_text", label(labels="ab"), CORRUPT, "a list of texts")
objects_config("categorize_labels_mixed", label(labels=["a", None]), CORRUPT, "a list of texts")
objects_config("categorize_too_many", label(labels=["x"] * 256), CORRUPT, "has numbers for 255")
objects_config("categorize_astype_float", label(astype="<f4"), UNSUPPORTED, "astype")
objects_config("categorize_astype_number", label(astype=1), UNSUPPORTED, "astype")
objects_config("categorize_no_dtype", {"id": "categorize", "labels": ["a"]}, CORRUPT, "dtype")
objects_config("categorize_other_dtype", label(dtype="<U3"), UNSUPPORTED, "categorize")

RAGGED = {"id": "vlen-array", "dtype": "<i4"}
add("vlen_array_good", lambda: v2({"0": items(struct.pack("<2i", 1, 2), b"")}, raw=objects_document(RAGGED, fill=0)),
    values={"first": "[1,2]", "last": "[]"}, write=(INVALID, "not a whole number of items of 4"))


def refuse_ragged(name, value, word, **more):
    objects("vlen_array_" + name, RAGGED, value, word, fill=0, **more)


refuse_ragged("empty", b"", "the count alone has 4")
refuse_ragged("more", items(b"", b"", b""), "3 elements")
refuse_ragged("4g_elements", items(b"", b"", count=2**32 - 1), "4294967295 elements")
refuse_ragged("one_missing", items(b"", count=2), "element 1 is missing")
refuse_ragged("beyond", items(b"", count=2) + struct.pack("<I", 8) + bytes(4), "element 1 ends after")
refuse_ragged("4g_long", items(b"", count=2) + struct.pack("<I", 2**32 - 4) + bytes(4), "element 1 ends after")
refuse_ragged("half_an_item", items(b"", bytes(6)), "element 1")
refuse_ragged("tail", items(b"", bytes(4)) + b"tail", "4 bytes after")
objects_config("vlen_array_no_dtype", {"id": "vlen-array"}, CORRUPT, "dtype", fill=0)
objects_config("vlen_array_of_objects", {"id": "vlen-array", "dtype": "|O"}, UNSUPPORTED, "dtype", fill=0)
objects_config("vlen_array_unknown", {"id": "vlen-array", "dtype": "<q9"}, UNSUPPORTED, "<q9", fill=0)
objects_config("vlen_array_fill", RAGGED, CORRUPT, "fill_value", fill=["x"])
objects_config("vlen_array_fill_range", RAGGED, CORRUPT, "fill_value", fill=[2**40])

# ---- zarrs.vlen, zarrs.vlen_v2 -------------------------------------------------------------

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


def index_codec(data=({"name": "bytes"},), index=(LITTLE,), kind="uint32", **more):
    return codec("zarrs.vlen", data_codecs=list(data), index_codecs=list(index), index_data_type=kind, **more)


def index_chunk(offsets, data, kind="I", size=None, end=False):
    raw = struct.pack(f"<{len(offsets)}{kind}", *offsets)
    head = struct.pack("<Q", len(raw) if size is None else size)
    return data + raw + head if end else head + raw + data


def by_index(name, value, word, found=None, status=CORRUPT, **changes):
    texts("zarrs_vlen_" + name, value, word, [found or index_codec()], status, **changes)


add("zarrs_vlen_good", lambda: v3({"c/0": index_chunk([0, 1, 2], b"ab")}, codecs=[index_codec()], **TEXT),
    values={"first": '"a"', "last": '"f"'})
by_index("empty", b"", "the index's length alone has 8")
by_index("head_cut", bytes(7), "the index's length alone has 8")
by_index("index_2_64", index_chunk([0, 1, 2], b"ab", size=2**64 - 1), "an index of 18446744073709551615")
by_index("index_beyond", index_chunk([0, 1, 2], b"ab", size=15), "an index of 15")
by_index("index_short", index_chunk([0, 1], b"ab"), "index")
by_index("index_long", index_chunk([0, 1, 2, 2], b"ab"), "index")
by_index("index_odd", index_chunk([0, 1, 2], b"ab", size=11), "index")
by_index("escapes", index_chunk([0, 5, 2], b"ab"), "element 0 goes from byte 0 to 5")
by_index("backwards", index_chunk([2, 1, 2], b"ab"), "element 0 goes from byte 2 to 1")
by_index("first_beyond", index_chunk([9, 2, 2], b"ab"), "the first offset is 9")
by_index("last_beyond", index_chunk([0, 1, 3], b"ab"), "2 bytes, the index says 3")
by_index("last_short", index_chunk([0, 1, 1], b"ab"), "2 bytes, the index says 1")
by_index("2_63", index_chunk([0, 2**63, 2**63], b"ab", "Q"), "2 bytes, the index says 9223372036854775808",
         index_codec(kind="uint64"))
by_index("not_utf8", index_chunk([0, 1, 3], b"a\xc3\x28"), "element 1 is not UTF-8")
by_index("end_lies", index_chunk([0, 1, 2], b"ab", size=99, end=True), "an index of 99", index_codec(index_location="end"))
by_index("end_is_start", index_chunk([0, 1, 2], b"ab"), "index", index_codec(index_location="end"))
for _name, _found, _bomb in (
        ("data_bomb", index_codec(data=[{"name": "bytes"}, GZIP]), lambda: index_chunk([0, 1, 2**31], gzip_bomb())),
        ("data_zstd_bomb", index_codec(data=[{"name": "bytes"}, ZSTD]), lambda: index_chunk([0, 1, 2**31], zstd_bomb()))):
    add("zarrs_vlen_" + _name, lambda found=_found, bomb=_bomb: v3({"c/0": bomb()}, codecs=[found], **TEXT),
        data=(LIMIT, "chunk_bytes"), untrusted=True, mib=320)
by_index("index_bomb", lambda: struct.pack("<Q", len(gzip_bomb())) + gzip_bomb(), "zarrs.vlen",
         index_codec(index=[LITTLE, GZIP]))
_flat = codec("transpose", order=[0])
config("zarrs_vlen_kind", CORRUPT, "index_data_type", _flat, index_codec(kind="uint16"), **TEXT)
config("zarrs_vlen_no_kind", CORRUPT, "index_data_type", _flat,
       codec("zarrs.vlen", data_codecs=[{"name": "bytes"}], index_codecs=[LITTLE]), **TEXT)
config("zarrs_vlen_location", CORRUPT, "index_location", _flat, index_codec(index_location="middle"), **TEXT)
config("zarrs_vlen_data_bytes", CORRUPT, "data_codecs", _flat, index_codec(data=[GZIP]), **TEXT)
config("zarrs_vlen_no_endian", CORRUPT, "endian is required", _flat, index_codec(index=[{"name": "bytes"}]), **TEXT)
config("zarrs_vlen_member", CORRUPT, "offsets", _flat, index_codec(offsets=1), **TEXT)
config("zarrs_vlen_of_numbers", UNSUPPORTED, "of variable length", codec("transpose", order=[0, 1]), index_codec())

V2VLEN = [codec("zarrs.vlen_v2")]
texts("zarrs_vlen_v2_empty", b"", "the count alone has 4", V2VLEN)
texts("zarrs_vlen_v2_4g", items(b"a", count=2) + struct.pack("<I", 2**32 - 1), "element 1 ends after", V2VLEN)
texts("zarrs_vlen_v2_tail", items(b"a", b"b") + b"x", "1 bytes after", V2VLEN)
texts("zarrs_vlen_v2_not_utf8", items(b"a", b"\xff"), "element 1 is not UTF-8", V2VLEN)
config("zarrs_vlen_v2_of_numbers", UNSUPPORTED, "only variable_length_bytes", codec("transpose", order=[0, 1]), V2VLEN[0])
texts("vlen_bytes_empty", b"", "the count alone has 4", [codec("vlen-bytes")], **BLOB)
texts("vlen_bytes_swallows", items(struct.pack("<I", 1) + b"b", count=2), "element 1 is missing", [codec("vlen-bytes")],
      **BLOB)

# ---- optional ------------------------------------------------------------------------------

MAYBE = {"data_type": {"name": "optional", "configuration": {"name": "uint16"}}, "fill_value": None, "shape": [4],
         "chunk_grid": grid(2)}
MAYBE_TEXT = {**MAYBE, "data_type": {"name": "optional", "configuration": {"name": "string"}}}


def maybe(mask=({"name": "bytes"},), data=(LITTLE,), **more):
    return codec("optional", mask_codecs=list(mask), data_codecs=list(data), **more)


def optional_chunk(mask, data, sizes=None):
    return struct.pack("<2Q", *(sizes or (len(mask), len(data)))) + mask + data


def optionals(name, value, word, found=None, status=CORRUPT, **changes):
    add("optional_" + name, lambda: v3({"c/0": value() if callable(value) else value}, codecs=[found or maybe()],
                                       **{**MAYBE, **changes}), data=(status, word))


add("optional_good", lambda: v3({"c/0": optional_chunk(b"\1\0", b"\7\0")}, codecs=[maybe()], **MAYBE),
    values={"first": "[7]", "last": "null"})
optionals("empty", b"", "optional")
optionals("head_cut", bytes(15), "optional")
optionals("mask_beyond", optional_chunk(b"\1\0", b"\7\0", (5, 2)), "lengths of 5 and 2")
optionals("mask_2_64", optional_chunk(b"\1\0", b"\7\0", (2**64 - 1, 2)), "lengths of 18446744073709551615")
optionals("sizes_wrap", optional_chunk(b"\1\0", b"\7\0", (2**64 - 2, 6)), "lengths of 18446744073709551614")
optionals("data_short", optional_chunk(b"\1\0", b"\7\0", (2, 1)), "lengths of 2 and 1")
optionals("tail", optional_chunk(b"\1\0", b"\7\0", (2, 2)) + b"x", "lengths of 2 and 2")
optionals("mask_short", optional_chunk(b"\1", b"\7\0"), "mask")
optionals("mask_long", optional_chunk(b"\1\0\1", b"\7\0"), "mask")
optionals("values_missing", optional_chunk(b"\1\1", b"\7\0"), "the mask counts 2")
optionals("values_too_many", optional_chunk(b"\1\0", b"\7\0\7\0"), "data_codecs")
optionals("values_for_nobody", optional_chunk(b"\0\0", b"\7\0"), "data_codecs")
optionals("half_a_value", optional_chunk(b"\1\0", b"\7"), "optional")
optionals("mask_bomb", lambda: optional_chunk(gzip_bomb(100), b"\7\0"), "optional",
          maybe(mask=[{"name": "bytes"}, GZIP]))
optionals("data_bomb", lambda: optional_chunk(b"\1\0", gzip_bomb(100)), "optional", maybe(data=[LITTLE, GZIP]))
optionals("data_zstd_bomb", lambda: optional_chunk(b"\1\0", zstd_bomb(1024, 1 << 30)), "optional",
          maybe(data=[LITTLE, ZSTD]))
optionals("packed_mask_empty", optional_chunk(b"", b"\7\0"), "optional", maybe(mask=[codec("packbits")]))
optionals("text_count", optional_chunk(b"\1\0", items(b"a", b"b")), "the mask counts 1: optional: data_codecs",
          maybe(data=[UTF8]), **MAYBE_TEXT)
optionals("text_not_utf8", optional_chunk(b"\0\1", items(b"\xff")), "element 0 is not UTF-8", maybe(data=[UTF8]),
          **MAYBE_TEXT)
optionals("text_4g", optional_chunk(b"\1\0", struct.pack("<2I", 1, 2**32 - 1)), "element 0 ends after",
          maybe(data=[UTF8]), **MAYBE_TEXT)


def deep_optional(n):
    found = {"name": "uint8"}
    for _ in range(n):
        found = {"name": "optional", "configuration": found}
    return found


def deep_codecs(n):
    found = maybe(data=[{"name": "bytes"}])
    for _ in range(n):
        found = maybe(data=[found])
    return found


config("optional_no_mask", CORRUPT, "mask_codecs are missing", _flat, codec("optional", data_codecs=[LITTLE]), **MAYBE)
config("optional_no_data", CORRUPT, "data_codecs are missing", _flat,
       codec("optional", mask_codecs=[{"name": "bytes"}]), **MAYBE)
config("optional_data_bytes", CORRUPT, "data_codecs", _flat, maybe(data=[GZIP]), **MAYBE)
config("optional_member", CORRUPT, "fill", _flat, maybe(fill=1), **MAYBE)
config("optional_codec_of_numbers", UNSUPPORTED, "only optional types", codec("transpose", order=[0, 1]), maybe())
config("optional_by_bytes", UNSUPPORTED, "use codec \"optional\"", _flat, LITTLE, **MAYBE)
config("optional_fill_bare", CORRUPT, "null or a list of one value", _flat, maybe(), **{**MAYBE, "fill_value": 7})
config("optional_fill_two", CORRUPT, "null or a list of one value", _flat, maybe(), **{**MAYBE, "fill_value": [7, 8]})
config("optional_fill_range", CORRUPT, "65536", _flat, maybe(), **{**MAYBE, "fill_value": [65536]})
config("optional_of_nothing", CORRUPT, "optional", _flat, maybe(), **{**MAYBE, "data_type": {"name": "optional"}})
config("optional_of_unknown", UNSUPPORTED, "float7", _flat, maybe(),
       **{**MAYBE, "data_type": {"name": "optional", "configuration": {"name": "float7"}}})
config("optional_17_deep", LIMIT, "optional", _flat, maybe(), **{**MAYBE, "data_type": deep_optional(17)})
config("optional_10000_deep", LIMIT, "json_depth", _flat, maybe(),
       raw=text({"data_type": 0}, {}).replace(
           b"0", b'{"name":"optional","configuration":' * 10000 + b"0" + b"}" * 10000))
config("optional_codecs_deep", LIMIT, "deep", _flat, deep_codecs(12), **MAYBE)

# ---- conditional, n5_default ----------------------------------------------------------------


def conditional(*codecs, **more):
    return codec("conditional", codecs=list(codecs), **more)


def conditionals(name, value, word, *codecs, status=CORRUPT, **more):
    number("conditional_" + name, value, [BYTES, conditional(*(codecs or (GZIP, ZSTD)), **more)], word, status)


add("conditional_good", lambda: v3({"c/0/0": b"\0" + struct.pack("<4H", 5, 2, 3, 4)},
                                   codecs=[BYTES, conditional(GZIP)]), values={"first": "5"})
conditionals("empty", b"", "header has 1")
conditionals("header_cut", b"\0", "header has 2", header_bits=16)
conditionals("bit_without_codec", b"\x04" + bytes(8), "bit 2")
conditionals("last_bit", b"\0\x80" + bytes(8), "bit 15", header_bits=16)
conditionals("short", b"\0" + bytes(7), "8")
conditionals("long", b"\0" + bytes(9), "8")
conditionals("not_what_it_says", b"\1" + bytes(8), "gzip")
conditionals("gzip_short", b"\1" + gzip(bytes(7)), "8")
conditionals("gzip_long", b"\1" + gzip(bytes(9)), "a/c/0/0")
add("conditional_bomb", lambda: v3({"c/0/0": b"\1" + gzip_bomb()}, codecs=[BYTES, conditional(GZIP, ZSTD)]),
    data=(CORRUPT, "a/c/0/0"))
add("conditional_two_bombs", lambda: v3({"c/0/0": b"\3" + zstd_bomb(1024, 1 << 30)},
                                        codecs=[BYTES, conditional(GZIP, ZSTD)]), data=(CORRUPT, "a/c/0/0"))
config("conditional_no_codecs", CORRUPT, "codecs are missing", BYTES, codec("conditional"))
config("conditional_array_codec", CORRUPT, "bytes->bytes codecs only", BYTES, conditional(BYTES))
config("conditional_bits_7", CORRUPT, "header_bits", BYTES, conditional(GZIP, header_bits=7))
config("conditional_bits_few", CORRUPT, "header_bits", BYTES, conditional(*[GZIP] * 9, header_bits=8))
config("conditional_bits_2_40", CORRUPT, "header_bits", BYTES, conditional(GZIP, header_bits=2**40))
config("conditional_member", CORRUPT, "mask", BYTES, conditional(GZIP, mask=1))
config("conditional_unknown", UNSUPPORTED, "nobody", BYTES, conditional({"name": "nobody"}))


def deep_conditional(n):
    found = conditional(GZIP)
    for _ in range(n):
        found = conditional(found)
    return found


config("conditional_deep", LIMIT, "deep", BYTES, deep_conditional(20))


def deep_shards(n, found):
    """n nested shards that are read whole. Each but the first has one inner chunk."""
    for i in range(n):
        found = [codec("reshape", shape=[-1] if i == n - 1 else [1]),
                 codec("sharding_indexed", chunk_shape=[1], codecs=found, index_codecs=[BYTES])]
    return found


def deep_edges(shards, conditionals):
    """Chunks of 40 lengths: each length is a level, and nested codecs are bound for each level."""
    found = conditional(*[GZIP] * 11)
    for _ in range(conditionals - 1):
        found = conditional(found)
    lengths = list(range(2, 42))
    return {"codecs": deep_shards(shards, [BYTES, found]) if shards else [BYTES, found], "shape": [sum(lengths), 1],
            "chunk_grid": codec("rectilinear", kind="inline", chunk_shapes=[lengths, [1]])}


add("conditional_edges", lambda: v3({f"c/{i}/0": b"1234" for i in range(40)}, **deep_edges(0, 8)),
    untrusted=True, data=(CORRUPT, "a/c/"), last=(CORRUPT, "a/c/39"), mib=64)
add("conditional_edges_shards", lambda: v3({f"c/{i}/0": b"1234" for i in range(40)}, **deep_edges(4, 4)),
    untrusted=True, data=(CORRUPT, "a/c/"), last=(CORRUPT, "a/c/39"), mib=64)
add("conditional_edges_missing", lambda: v3(**deep_edges(4, 4)), untrusted=True, values={"read": "7"}, mib=64)
config("conditional_shards_deep", LIMIT, "deep", *deep_shards(4, [BYTES, deep_conditional(4)]))

BASE64 = codec("numcodecs.base64")


def plain_shard(*shape):
    return codec("sharding_indexed", chunk_shape=list(shape), codecs=[BYTES], index_codecs=[BYTES])


for _name, _found in (("bytes", [BYTES]), ("shard", [plain_shard(16384, 16384)]),
                      ("whole_shard", [codec("reshape", shape=[1 << 28]), plain_shard(1 << 28)])):
    add(f"base64_behind_{_name}", lambda found=_found: v3({"c/0/0": b"1234"}, codecs=found + [BASE64] * 16,
                                                          data_type="uint8", shape=[16384, 16384],
                                                          chunk_grid=grid(16384, 16384)),
        untrusted=True, data=(LIMIT, "base64"), last=(LIMIT, "base64"), verify=(LIMIT, "base64"), fault=None, mib=64,
        chunks=(LIMIT, "base64") if _name == "shard" else (OK, ""))


def n5(*behind, order=(1, 0), endian="big"):
    return codec("n5_default", codecs=[codec("transpose", order=list(order)), codec("bytes", endian=endian), *behind])


def block(shape=(2, 2), data=bytes(8), mode=0, rank=None):
    return struct.pack(f">2H{len(shape)}I", mode, len(shape) if rank is None else rank, *shape) + data


def blocks(name, value, word, found=None, status=CORRUPT, **more):
    add("n5_" + name, lambda: v3({"0/0": value() if callable(value) else value}, codecs=[found or n5()],
                                 chunk_key_encoding={"name": "v2", "configuration": {"separator": "/"}}),
        data=(status, word), **more)


add("n5_good", lambda: v3({"0/0": block(data=struct.pack(">4H", 5, 0, 0, 0))}, codecs=[n5()],
                          chunk_key_encoding={"name": "v2", "configuration": {"separator": "/"}}),
    values={"first": "5"})
blocks("empty", b"", "0 bytes")
blocks("head_cut", block()[:3], "3 bytes")
blocks("shape_cut", block()[:11], "header has 12")
blocks("short", block()[:-1], "needs 8")
blocks("long", block() + b"x", "needs 8")
blocks("mode_varlength", block(mode=1), "mode 1", status=UNSUPPORTED)
blocks("mode_object", block(mode=2), "mode 2", status=UNSUPPORTED)
blocks("mode_huge", block(mode=65535), "mode 65535")
blocks("rank_more", block(rank=3), "3 dimensions")
blocks("rank_none", block(rank=0), "0 dimensions")
blocks("rank_65535", block(rank=65535), "65535 dimensions")
blocks("edge_zero", block((0, 2)), "is 0")
blocks("edges_4g", block((2**32 - 1, 2**32 - 1)), "limit chunk_bytes", status=LIMIT)
blocks("edge_lies", block((16383, 16383)), "needs")
add("n5_bomb", lambda: v3({"0/0": block(data=gzip_bomb())}, codecs=[n5(GZIP)], chunk_key_encoding={
    "name": "v2", "configuration": {"separator": "/"}}), data=(CORRUPT, "a/0/0"))
add("n5_bomb_claimed", lambda: v3({"0/0": block((60000, 8000), gzip_bomb())}, codecs=[n5(GZIP)], chunk_key_encoding={
    "name": "v2", "configuration": {"separator": "/"}}), data=(LIMIT, "chunk_bytes"), untrusted=True, mib=320)
_plain = codec("transpose", order=[0, 1])
config("n5_no_codecs", CORRUPT, "codecs are missing", _plain, codec("n5_default"))
config("n5_order", CORRUPT, "reverse", _plain, n5(order=(0, 1)))
config("n5_little", CORRUPT, "endian", _plain, n5(endian="little"))
config("n5_two_compressors", CORRUPT, "at most one", _plain, n5(GZIP, ZSTD))
config("n5_member", CORRUPT, "mode", _plain, codec("n5_default", mode=0, codecs=n5()["configuration"]["codecs"]))
config("n5_type", UNSUPPORTED, "codec n5_default does not take data type float16, only N5's", _plain, n5(), data_type="float16", fill_value=0)

# ---- numcodecs' compressors and checksums -----------------------------------------------------


def old(name, **more):
    return codec("numcodecs." + name, **more)


def refuse_packed(name, value, word, found, status=CORRUPT):
    add(name, lambda: v3({"c/0/0": value() if callable(value) else value}, codecs=[BYTES, found]), data=(status, word))


PLAIN = struct.pack("<4H", 1, 2, 3, 4)


@functools.cache
def bz2_bomb():
    """Streams one after another, each of a MiB of zeros."""
    return bz2.compress(bytes(MIB)) * 1024


@functools.cache
def xz_bomb():
    return lzma.compress(bytes(16 * MIB)) * 64


def xz_of_large_window():
    """An LZMA2 dictionary of 4 GiB less one byte."""
    return lzma.compress(PLAIN, lzma.FORMAT_XZ).replace(b"\x21\x01\x16", b"\x21\x01\x28")


for _name, _found, _good in (("bz2", old("bz2", level=1), bz2.compress(PLAIN)),
                             ("lzma", old("lzma"), lzma.compress(PLAIN)),
                             ("zlib", old("zlib", level=1), zlib.compress(PLAIN))):
    add(_name + "_good", lambda found=_found, good=_good: v3({"c/0/0": good}, codecs=[BYTES, found]),
        values={"first": "1"})
    refuse_packed(_name + "_empty", b"", "a/c/0/0", _found)
    refuse_packed(_name + "_rubbish", b"rubbish, rubbish", _name, _found)
    refuse_packed(_name + "_cut", _good[:-5], _name, _found)
    refuse_packed(_name + "_tail", _good + b"tail", "a/c/0/0", _found)
    _half = len(_good) // 2
    refuse_packed(_name + "_flipped", _good[:_half] + bytes([_good[_half] ^ 255]) + _good[_half + 1:], "a/c/0/0", _found)
refuse_packed("bz2_short", bz2.compress(PLAIN[:-1]), "a/c/0/0", old("bz2", level=1))
refuse_packed("bz2_long", bz2.compress(PLAIN + b"x"), "a/c/0/0", old("bz2", level=1))
refuse_packed("bz2_bomb", bz2_bomb, "a/c/0/0", old("bz2", level=1))
refuse_packed("bz2_level_of_none", b"BZh0" + bz2.compress(PLAIN)[4:], "bz2", old("bz2", level=1))
refuse_packed("lzma_short", lzma.compress(PLAIN[:-1]), "a/c/0/0", old("lzma"))
refuse_packed("lzma_long", lzma.compress(PLAIN + b"x"), "a/c/0/0", old("lzma"))
refuse_packed("lzma_bomb", xz_bomb, "a/c/0/0", old("lzma"))
refuse_packed("lzma_window_4_gib", xz_of_large_window, "a/c/0/0", old("lzma"))
refuse_packed("lzma_raw_cut", lzma.compress(PLAIN, lzma.FORMAT_RAW, filters=[{"id": 0x21, "preset": 0}])[:-2], "a/c/0/0",
       old("lzma", format=3, filters=[{"id": 0x21, "preset": 0}]))
config("lzma_format", CORRUPT, "format", BYTES, old("lzma", format=9))
config("lzma_preset", STRICT, "preset", BYTES, old("lzma", preset=11))
config("lzma_filter_unknown", CORRUPT, "filters", BYTES, old("lzma", format=3, filters=[{"id": 0x77}]))
config("lzma_filters_text", CORRUPT, "filters", BYTES, old("lzma", format=3, filters="lzma2"))
config("lzma_dictionary_huge", CORRUPT, "dict_size", BYTES,
       old("lzma", format=3, filters=[{"id": 0x21, "dict_size": 2**40}]))
config("bz2_level", STRICT, "level", BYTES, old("bz2", level=10))
config("bz2_level_word", STRICT, "level", BYTES, old("bz2", level="best"))
config("zlib_level", STRICT, "level", BYTES, old("zlib", level=-2))
config("lz4_acceleration", STRICT, "acceleration", BYTES, old("lz4", acceleration="fast"))

B64 = base64.b64encode(PLAIN)
refuse_packed("base64_empty", b"", "a/c/0/0", old("base64"))
refuse_packed("base64_odd", B64[:-1], "base64", old("base64"))
refuse_packed("base64_letter", b"!" + B64[1:], "base64", old("base64"))
refuse_packed("base64_not_ascii", b"\xff" + B64[1:], "base64", old("base64"))
refuse_packed("base64_pad_inside", B64[:4] + b"====" + B64[8:], "base64", old("base64"))
refuse_packed("base64_short", base64.b64encode(PLAIN[:-1]), "a/c/0/0", old("base64"))
refuse_packed("base64_long", base64.b64encode(PLAIN + b"x"), "a/c/0/0", old("base64"))

for _name, _good in (("crc32", struct.pack("<I", zlib.crc32(PLAIN)) + PLAIN),
                     ("adler32", struct.pack("<I", zlib.adler32(PLAIN)) + PLAIN)):
    add(_name + "_good", lambda name=_name, good=_good: v3({"c/0/0": good}, codecs=[BYTES, old(name)]),
        values={"first": "1"})
    refuse_packed(_name + "_empty", b"", _name, old(_name))
    refuse_packed(_name + "_3_bytes", b"123", _name, old(_name))
    refuse_packed(_name + "_wrong", _good[:-1] + b"\xff", _name, old(_name))
    refuse_packed(_name + "_other_end", _good, _name, old(_name, location="end"))
    config(_name + "_location", CORRUPT, "location", BYTES, old(_name, location="middle"))
for _name in ("fletcher32", "jenkins_lookup3"):
    refuse_packed(_name + "_empty", b"", _name, old(_name))
    refuse_packed(_name + "_3_bytes", b"123", _name, old(_name))
    refuse_packed(_name + "_wrong", PLAIN + b"\xff\xff\xff\xff", _name, old(_name))
config("jenkins_initval", CORRUPT, "initval", BYTES, old("jenkins_lookup3", initval=-1))
config("shuffle_elementsize_negative", CORRUPT, "elementsize", BYTES, old("shuffle", elementsize=-1))
config("shuffle_elementsize_word", CORRUPT, "elementsize", BYTES, old("shuffle", elementsize="2"))
number("shuffle_odd", bytes(7), [BYTES, old("shuffle", elementsize=2)], "a/c/0/0")

# ---- zfp, reshape, zarrs.squeeze ------------------------------------------------------------


def zfp_chunks(name, value, word, found=None, **changes):
    number("zfp_" + name, value, [found or codec("zfp", mode="reversible")], word, **{**FLOATS, **changes})


zfp_chunks("long", bytes(100000), "a/c/0/0")
zfp_chunks("rate_short", bytes(3), "a/c/0/0", codec("zfp", mode="fixed_rate", rate=16))
config("zfp_precision", CORRUPT, "precision", _plain, codec("zfp", mode="fixed_precision", precision=-1), **FLOATS)
config("zfp_member", CORRUPT, "speed", _plain, codec("zfp", mode="reversible", speed=1), **FLOATS)
config("zfp_tolerance_nan", CORRUPT, "tolerance", _plain,
       codec("zfp", mode="fixed_accuracy", tolerance="NaN"), **FLOATS)
config("zfpy_mode", STRICT, "mode", _plain, old("zfpy", mode=9), **FLOATS)


def refuse_reshape(name, word, shape, status=CORRUPT):
    config("reshape_" + name, status, word, codec("reshape", shape=shape))


config("reshape_none", CORRUPT, "shape", codec("reshape"))
refuse_reshape("product", "reshape", [5])
refuse_reshape("two_rests", "reshape", [-1, -1])
refuse_reshape("zero", "reshape", [0, 4])
refuse_reshape("negative", "reshape", [-2, 2])
refuse_reshape("fraction", "reshape", [2.0, 2])
refuse_reshape("text", "reshape", "flat")
refuse_reshape("dimension_outside", "reshape", [[0], [2]])
refuse_reshape("dimension_twice", "reshape", [[0, 1], [1]])
refuse_reshape("dimensions_swapped", "reshape", [[1], [0]])
refuse_reshape("rest_undivided", "reshape", [3, -1])
refuse_reshape("2_63", "reshape", [2**63, 2])
refuse_reshape("rank_1000", "at most 64 sizes", [1] * 1000 + [4])
config("reshape_member", CORRUPT, "order", codec("reshape", shape=[4], order="F"))
config("squeeze_member", CORRUPT, "axis", codec("zarrs.squeeze", axis=0))
