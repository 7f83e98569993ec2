"""More cases for stores.py: the same kinds of broken metadata and malformed chunks in format 2, whose
documents are other files that other functions read."""
import json
import os

from stores import CHUNK, CORRUPT, IO, LIMIT, MIB, V2, add, text, v2

# ---- .zarray --------------------------------------------------------------------------


def member(old, new):
    """The usual document with one text replaced, for documents that json cannot write."""
    document = json.dumps(V2)
    assert old in document
    return document.replace(old, new, 1).encode()


def refuse_v2(name, status, word, raw=None, **changes):
    add(name, lambda: v2(raw=raw, **changes), open=(status, word))


DEEP = "[" * 100000 + "]" * 100000
refuse_v2("v2_empty_document", CORRUPT, ".zarray", raw=b"")
refuse_v2("v2_not_an_object", CORRUPT, ".zarray", raw=b"[2]")
refuse_v2("v2_trailing_text", CORRUPT, ".zarray", raw=json.dumps(V2).encode() + b"{}")
refuse_v2("v2_deep_json", LIMIT, "json_depth", raw=b'{"a":' * 100000 + b"1" + b"}" * 100000)
refuse_v2("v2_deep_unknown_member", LIMIT, "json_depth", raw=member('"order"', f'"x": {DEEP}, "order"'))
refuse_v2("v2_deep_fill", LIMIT, "json_depth", raw=member('"fill_value": 7', f'"fill_value": {DEEP}'))
refuse_v2("v2_deep_compressor", LIMIT, "json_depth",
       raw=member('"compressor": null', '"compressor": {"id": "zlib", "level": ' + DEEP + "}"))
refuse_v2("v2_duplicate_shape", CORRUPT, "shape", raw=member('"shape"', '"shape": [400, 4], "shape"'))
refuse_v2("v2_escaped_duplicate", CORRUPT, "shape", raw=member('"shape"', '"sh\\u0061pe": [400, 4], "shape"'))
refuse_v2("v2_duplicate_level", CORRUPT, "level",
       raw=member('"compressor": null', '"compressor": {"id": "zlib", "level": 1, "level": 2}'))
refuse_v2("v2_bad_utf8", CORRUPT, "UTF-8", raw=member('"order": "C"', '"order": "?"').replace(b'"?"', b'"\xc3\x28"'))
refuse_v2("v2_overlong_utf8", CORRUPT, "UTF-8", raw=member('"order": "C"', '"order": "?"').replace(b"?", b"\xc0\xaf"))
refuse_v2("v2_lone_surrogate", CORRUPT, "surrogate", raw=member('"order": "C"', '"order": "\\ud800"'))
refuse_v2("v2_rank_2000", LIMIT, "rank", raw=text(V2, {"shape": [1] * 2000, "chunks": [1] * 2000}))
refuse_v2("v2_rank_1000000", LIMIT, "rank", shape=[1] * 1000000)
refuse_v2("v2_shape_1e26", CORRUPT, "shape", raw=member("[4, 4]", "[1e26, 4]"))
refuse_v2("v2_shape_negative", CORRUPT, "shape", shape=[-4, 4])
refuse_v2("v2_shape_2_64", CORRUPT, "shape", shape=[2**64, 4])
refuse_v2("v2_shape_text", CORRUPT, "shape", shape=["4", 4])
refuse_v2("v2_shape_object", CORRUPT, "shape", shape={"0": 4})
refuse_v2("v2_shape_huge_digits", CORRUPT, "shape", raw=member("[4, 4]", "[" + "9" * 100000 + ", 4]"))
refuse_v2("v2_no_shape", CORRUPT, "shape", raw=text({k: v for k, v in V2.items() if k != "shape"}, {}))
refuse_v2("v2_rank_of_chunks", CORRUPT, "chunks", raw=text(V2, {"chunks": [2, 2, 2]}))
refuse_v2("v2_chunks_1e26", CORRUPT, "chunks", raw=member("[2, 2]", "[1e26, 2]"))
refuse_v2("v2_fill_list", CORRUPT, "fill_value", fill_value=[7])
refuse_v2("v2_fill_object", CORRUPT, "fill_value", fill_value={"0": 7})
refuse_v2("v2_fill_range", CORRUPT, "fill_value", fill_value=65536)
refuse_v2("v2_fill_negative", CORRUPT, "fill_value", fill_value=-1)
refuse_v2("v2_fill_list_of_text", CORRUPT, "fill_value", dtype="|S4", fill_value=["a"])
refuse_v2("v2_compressor_list", CORRUPT, "compressor", compressor=[{"id": "zlib"}])
refuse_v2("v2_document_over_limit", LIMIT, "metadata_bytes", raw=json.dumps(V2).encode() + b" " * (65 * MIB))
refuse_v2("v2_million_numbers", LIMIT, "json_tokens",
       raw=member('"order"', '"x": [' + "1," * (4 * MIB + 100) + '1], "order"'))

# ---- .zattrs --------------------------------------------------------------------------


def attributes(name, value, status, word):
    add(name, lambda: dict(v2(), **{"a/.zattrs": value() if callable(value) else value}), open=(status, word))


attributes("v2_attributes_empty", b"", CORRUPT, ".zattrs")
attributes("v2_attributes_list", b"[1]", CORRUPT, ".zattrs")
attributes("v2_attributes_trailing", b"{}{}", CORRUPT, ".zattrs")
attributes("v2_attributes_deep", b'{"a":' * 100000 + b"1" + b"}" * 100000, LIMIT, "json_depth")
attributes("v2_attributes_deep_list", b'{"a":' + DEEP.encode() + b"}", LIMIT, "json_depth")
attributes("v2_attributes_duplicate", b'{"x": 1, "x": 2}', CORRUPT, '"x"')
attributes("v2_attributes_duplicate_inside", b'{"y": {"x": 1, "\\u0078": 2}}', CORRUPT, '"x"')
attributes("v2_attributes_bad_utf8", b'{"x": "\xc3\x28"}', CORRUPT, "UTF-8")
attributes("v2_attributes_utf16", '{"x": 1}'.encode("utf-16"), CORRUPT, ".zattrs")
attributes("v2_attributes_lone_surrogate", b'{"x": "\\ud800"}', CORRUPT, "surrogate")
attributes("v2_attributes_low_surrogate", b'{"\\udc00": 1}', CORRUPT, "surrogate")
attributes("v2_attributes_control_character", b'{"x": "a\nb"}', CORRUPT, ".zattrs")
attributes("v2_attributes_over_limit", lambda: b"{}" + b" " * (65 * MIB), LIMIT, "metadata_bytes")
attributes("v2_attributes_million_numbers", lambda: b'{"x": [' + b"1," * (4 * MIB + 100) + b"1]}", LIMIT,
           "json_tokens")
# Chunks within the limits are read, quickly and with little memory.
add("v2_attributes_2_million_numbers",
    lambda: dict(v2({"0.0": CHUNK}), **{"a/.zattrs": b'{"x": [' + b"1," * 2000000 + b"1]}"}), values={"first": "1"})
add("v2_attributes_nan", lambda: dict(v2(), **{"a/.zattrs": b'{"x": NaN}'}), values={"first": "7"})

# ---- chunks ---------------------------------------------------------------------------

add("v2_chunk_empty", v2({"0.0": b""}), data=(CORRUPT, "a/0.0"), values={"last": "7"})
add("v2_chunk_empty_compressed", v2({"0.0": b""}, compressor={"id": "zlib", "level": 1}), data=(CORRUPT, "a/0.0"))
add("v2_chunk_empty_filtered", v2({"0.0": b""}, filters=[{"id": "crc32c"}]), data=(CORRUPT, "a/0.0"))
add("v2_chunk_very_long", v2({"0.0": CHUNK}), data=(CORRUPT, "a/0.0"),
    prepare=lambda root: os.truncate(f"{root}/a/0.0", 1 << 40))


def special(name, make, listed=True):
    """The chunk's file is not a plain file. If .zarray has no separator, the first chunk's key gives it.
    A key that is neither present nor missing gives none, so such an array cannot be opened."""
    def prepare(root):
        make(f"{root}/a/0.0")
    add(name, lambda: v2(dimension_separator="."), data=(IO, "a/0.0"), prepare=prepare, chunks=None,
        fault=(IO, "a/0.0") if listed else None)
    add(name + "_unsaid", lambda: v2(), open=(IO, "a/0.0"), prepare=prepare)


special("v2_chunk_is_fifo", os.mkfifo)
special("v2_chunk_is_folder", os.mkdir, listed=False)
special("v2_chunk_is_device", lambda path: os.symlink("/dev/zero", path))
special("v2_chunk_leads_out", lambda path: os.symlink("/etc/passwd", path))
special("v2_chunk_leads_out_relative", lambda path: os.symlink("../" * 24 + "etc/passwd", path))
special("v2_chunk_leads_to_itself", lambda path: os.symlink("0.0", path))
add("v2_folder_of_chunks_leads_out", lambda: v2(dimension_separator="/"), data=(IO, "a/0/0"),
    chunks=(IO, "a/0/0"), fault=(IO, "a/0/0"), prepare=lambda root: os.symlink("/etc", f"{root}/a/0"))
add("v2_folder_of_chunks_is_file", lambda: v2({"0": b"x"}, dimension_separator="/"), data=(IO, "a/0/0"),
    chunks=(IO, "a/0/0"), fault=(IO, "a/0/0"))
for _name in (".zarray", ".zattrs"):
    add(f"v2_{_name[1:]}_is_fifo", lambda: v2(), open=(IO, _name),
        prepare=lambda root, name=_name: ((name == ".zarray") and os.unlink(f"{root}/a/.zarray"),
                                          os.mkfifo(f"{root}/a/{name}")))
    add(f"v2_{_name[1:]}_leads_out", lambda: v2(), open=(IO, _name), list=None, walk=None,
        prepare=lambda root, name=_name: ((name == ".zarray") and os.unlink(f"{root}/a/.zarray"),
                                          os.symlink("/etc/passwd", f"{root}/a/{name}")))
