"""Every row of the registry of Zarr's extensions, and every other name in docs/status: either a
small array of it is created, written and read back, by its aliases too, or opening metadata with
it says why not. A name in one of the two lists only, this table or docs/status, fails."""
import copy
import json
import os
import pathlib
import re
import subprocess

import numpy as np
import pytest

import cases
from cases import CRC, LITTLE, PLAIN
from every_type import (CHUNKS, CODECS_V2, INTEGERS, NUMBERS, SHAPE, SMALL_FLOATS, TYPES, TYPES_V2, codec,
                        spelled_v2, make_words)
from zarrc_abi import ZarrcError

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = os.environ.get("ZARRC", str(ROOT / "build/dev/bin/zarrc"))

# ---- data types --------------------------------------------------------------------------

# Further names, where not just the name is another.
TYPE_ALIASES = {
    "raw_bytes": (codec("raw_bytes", length_bytes=3), [1, 2, 255]),
    "structured": (codec("structured", fields=[["a", "int16"], ["b", "uint8"]]), "//8C"),
}


# ---- codecs ------------------------------------------------------------------------------

def of(dtype, *codecs, data=None, fill=0, **more):
    """An array of numbers with this chain; more: members of the document."""
    return (dtype, fill, list(codecs), NUMBERS.astype(dtype) if data is None else data, more)


def behind(found, dtype="int16"):
    return of(dtype, LITTLE, found)


TEXT = {"fill": "", "data": make_words("string")}
BOOLS = {"fill": False, "data": NUMBERS % 3 == 0}
N5 = codec("n5_default", codecs=[cases.transpose(1, 0), cases.BIG, cases.gzip()])
CODECS = {
    "bytes": of("int16", LITTLE),
    "transpose": of("int16", cases.transpose(1, 0), LITTLE),
    "sharding_indexed": of("int16", cases.sharding((1, 3), [LITTLE, CRC])),
    "gzip": behind(cases.gzip()), "zstd": behind(cases.zstd()), "blosc": behind(cases.blosc(typesize=2)),
    "snappy": behind(codec("snappy")),
    "crc32c": behind(CRC), "conditional": behind(codec("conditional", codecs=[cases.gzip(), cases.zstd()])),
    "bitround": of("float32", codec("bitround", keepbits=10), LITTLE),
    "cast_value": of("int16", codec("cast_value", data_type="float32", out_of_range="clamp"), LITTLE),
    "scale_offset": of("int16", codec("scale_offset", offset=3, scale=2), LITTLE),
    "reshape": of("int16", codec("reshape", shape=[[0, 1]]), LITTLE),
    "zarrs.squeeze": of("int16", {"name": "zarrs.squeeze"}, LITTLE),
    "packbits": of("bool", codec("packbits", padding_encoding="first_byte"), **BOOLS),
    "zfp": of("int32", codec("zfp", mode="reversible")),
    "n5_default": of("int16", N5, chunk_key_encoding=codec("v2", separator="/")),
    "vlen-utf8": of("string", {"name": "vlen-utf8"}, **TEXT),
    "vlen-bytes": of("variable_length_bytes", {"name": "vlen-bytes"}, fill="", data=make_words("bytes")),
    "zarrs.vlen": of("string", codec("zarrs.vlen", data_codecs=[PLAIN, cases.gzip()], index_codecs=[LITTLE],
                                     index_data_type="uint32", index_location="end"), **TEXT),
    "zarrs.vlen_v2": of("string", {"name": "zarrs.vlen_v2"}, **TEXT),
    "optional": TYPES["optional"], "zarrs.optional": TYPES["zarrs.optional"],
    "numcodecs.packbits": of("bool", {"name": "numcodecs.packbits"}, PLAIN, **BOOLS),
    "numcodecs.delta": of("int16", codec("numcodecs.delta", dtype="<i2"), LITTLE),
    "numcodecs.fixedscaleoffset": of("int16", codec("numcodecs.fixedscaleoffset", offset=1, scale=2, dtype="<i2",
                                                    astype="<i4"), LITTLE),
    "numcodecs.quantize": of("float32", codec("numcodecs.quantize", digits=1, dtype="<f4"), LITTLE),
    "numcodecs.astype": of("int16", codec("numcodecs.astype", encode_dtype="<i4", decode_dtype="<i2"), LITTLE),
    "numcodecs.zfpy": of("int32", codec("numcodecs.zfpy", mode=5)),
    "numcodecs.shuffle": behind(codec("numcodecs.shuffle", elementsize=2)),
    "numcodecs.lzma": behind(codec("numcodecs.lzma", preset=1)),
}
CODECS |= {f"numcodecs.{name}": behind(codec(f"numcodecs.{name}"))
           for name in ("zlib", "lz4", "bz2", "base64", "crc32", "adler32", "fletcher32", "jenkins_lookup3")}
CODECS["numcodecs.jenkins_lookup3"] = behind(codec("numcodecs.jenkins_lookup3", initval=1))
# Their metadata is read and written, and what can do them is said when data is asked for.
METADATA_ONLY = {"numcodecs.pcodec": (of("int32", codec("numcodecs.pcodec", level=8)), "pco, is in Rust"),
                 "zarrs.gdeflate": (behind(codec("zarrs.gdeflate", level=1)), "GDeflate")}

# ---- chunk grids, key encodings ----------------------------------------------------------

GRIDS = {
    "regular": codec("regular", chunk_shape=[2, 3]),
    "rectilinear": codec("rectilinear", kind="inline", chunk_shapes=[[1, 3], [[2, 3]]]),
    "zarrs.regular_bounded": codec("zarrs.regular_bounded", chunk_shape=[3, 4]),
}
KEYS = {  # encoding, and the key of chunk 1, 0
    "default": (codec("default", separator="."), "c.1.0"), "v2": (codec("v2", separator="/"), "1/0"),
    "suffix": ({"name": "suffix", "configuration": {"suffix": ".tif", "base_encoding": {"name": "default"}}},
               "c/1/0.tif"),
    "zarrs.default_suffix": (codec("zarrs.default_suffix", separator="/", suffix=".bin"), "c/1/0.bin"),
}

# ---- refused -----------------------------------------------------------------------------

ODD_FLOATS = "layout differs between machines"


def draft(number):
    return rf"a draft \(zarr-extensions pull request {number}\) that may still change"


NUMBERS_OR_TEXT = r"only text of any length \(\|O\), bools, integers and floats of 16 to 64 bits"
# (kind, name in docs/status): (names to try, what the error says)
REFUSED = {("data type", name): ([name], ODD_FLOATS) for name in (
    "f12", "f16", "c24", "c32", "g", "G", "float80", "float96", "float128", "longdouble", "complex256")}
REFUSED |= {
    ("data type", "O"): (["O"], "no filter says"),
    ("data type", "json"): (["json"], draft(9)),
    ("data type", "binary_fixed_point"): (["binary_fixed_point"], draft(40)),
    ("data type", "label_multiset"): (["label_multiset"], draft(55)),
    ("data type", "fixed_size_list"): (["fixed_size_list"], draft(62)),
    ("data type", "vlen-ndarray"): (["vlen-ndarray"], draft(71)),
    # Documents of v2 instead of names.
    ("elements", "S0, U0, V0"): ([cases.document_v2(name, None, SHAPE, CHUNKS) for name in ("|S0", "<U0", "|V0")],
                                    "elements of zero bytes"),
    ("elements", "struct with an empty subarray"): ([cases.document_v2(
        [["a", "<i4"], ["b", "<i2", shape]], None, SHAPE, CHUNKS) for shape in ([0], [2, 0])],
        "whose shape has a zero"),
    ("codec", "pickle"): (["pickle", "numcodecs.pickle"], "run code from the file"),
    ("codec", "json"): (["json", "numcodecs.json"], "do not say their shape"),
    ("codec", "msgpack"): (["msgpack", "numcodecs.msgpack"], "do not say their shape"),
    ("codec", "imagecodecs_*"): (["imagecodecs_jpeg2k", "imagecodecs_jpegxl"], "imagecodecs"),
    ("codec", "nvcomp_*"): (["nvcomp_ANS", "nvcomp_Bitcomp", "nvcomp_Cascaded", "nvcomp_Gdeflate", "nvcomp_LZ4",
                             "nvcomp_Snappy"], "nvCOMP's managers"),
    ("codec", "szip"): (["szip"], "scan lines"),
    ("codec", "lzw"): (["lzw"], draft(16)),
    ("codec", "pad"): (["pad"], draft(36)),
    ("codec", "arrow-ipc"): (["arrow-ipc"], draft(41)),
    ("codec", "n5_varlen"): (["n5_varlen"], draft(54)),
    ("codec", "label_multiset"): (["label_multiset"], draft(55)),
    ("codec", "n5_label_multiset"): (["n5_label_multiset"], draft(56)),
    ("codec", "singleton_dim"): (["singleton_dim"], draft(58)),
    ("codec", "jpeg"): (["jpeg"], draft(66)),
    ("codec", "vlen-ndarray"): (["vlen-ndarray"], draft(71)),
    ("codec", "nanovdb"): (["nanovdb"], draft(73)),
    ("codec", "jpeg*"): (["jpegxl", "jpeg2000"], "no codec is registered"),
    ("elements", "json2, msgpack2"): ([
        (cases.document_v2(dtype, None, SHAPE, CHUNKS, order, filters=[{"id": id_}]), says)
        for id_ in ("json2", "msgpack2") for dtype, order, says in (
            *((dtype, "C", NUMBERS_OR_TEXT)
              for dtype in ("<c8", "|S3", "<U3", "<M8[s]")),
            (">i4", "C", "takes little-endian elements only"), ("<i4", "F", "other elements than it wrote"))],
        NUMBERS_OR_TEXT + " are supported, and little-endian ones only: no text of fixed length"),
    ("elements", "json2, encoding"): ([
        cases.document_v2("|O", "", SHAPE, CHUNKS, filters=[{"id": "json2", "encoding": encoding}])
        for encoding in ("latin-1", "utf-16")], '"utf-8" and "ascii" are known|only utf-8 and ascii are'),
    ("elements", "categorize, astype of floats or text"): ([cases.document_v2("|O", "", SHAPE, CHUNKS, filters=[
        {"id": "categorize", "labels": ["a"], "dtype": "|O", "astype": astype}]) for astype in ("<f4", "|S1", "|b1")],
        "not an integer of 8 to 64 bits|integers of 8 to 64 bits"),
    ("elements", "categorize, dtype of another array"): ([cases.document_v2(dtype, "", SHAPE, CHUNKS, filters=[
        {"id": "categorize", "labels": ["a"], "dtype": own}]) for dtype, own in (
            ("<U2", "|O"), ("<U2", ">U2"), ("<U2", "<U4"), (">U2", ">U4"))],
        "is not the array's|dtype must have the array's"),
    ("elements", "vlen-array of |O"): ([cases.document_v2("|O", None, SHAPE, CHUNKS, filters=[
        {"id": "vlen-array", "dtype": "|O"}])], "Python objects"),
    ("elements", "delta of bools"): ([cases.document_v2("|b1", False, SHAPE, CHUNKS, filters=[
        {"id": "delta", "dtype": "|b1"}])], 'dtype is "|b1", must be integers|do not add up to the original'),
    ("elements", "delta"): ([cases.document_v2(dtype, None, SHAPE, CHUNKS, filters=[
        {"id": "delta", "dtype": dtype, "astype": astype}]) for dtype, astype in (("<c8", "<f4"), ("<f8", "<c16"))],
        "either both dtype and astype must be complex or neither"),
    ("elements", "delta, astype of times or text"): ([
        *((cases.document_v2("<M8[s]", 0, SHAPE, CHUNKS, filters=[{"id": "delta", "dtype": dtype, "astype": astype}]),
           "times must be timedelta64 of the same unit on both sides") for dtype, astype in (
               ("<M8[s]", "<M8[s]"), ("<m8[s]", "<m8[ms]"), ("<m8[s]", "<i8"), ("<i8", "<m8[s]"))),
        *((cases.document_v2(decode, 0 if decode[1] == "M" else "", SHAPE, CHUNKS, filters=[
            {"id": "astype", "encode_dtype": encode, "decode_dtype": decode}]), says) for encode, decode, says in (
                ("<M8[m]", "<M8[s]", "times of the same unit"), ("<f8", "<M8[s]", "times of the same unit"),
                ("<M8", "<M8[s]", "must be bools, integers"), ("|S3", "<U3", "must be bools, integers")))],
        "delta works on timedelta64 of one unit"),
    ("elements", "numcodecs filters of another type"): ([(cases.document_v3("float32", 0, [
        {"name": f"numcodecs.{name}", "configuration": {"dtype": "<i4", **more}}, LITTLE], SHAPE, CHUNKS),
        "is not the array's, float32") for name, more in (("delta", {}), ("fixedscaleoffset", {"offset": 0, "scale": 1}))],
        "the type must have the array's width"),
    ("storage transformer", "concat-parts"): (["concat-parts"], draft(39)),
    ("storage transformer", "chunk-manifest-json"): (["chunk-manifest-json"], "outside the store"),
    ("storage transformer", "*"): (["indexed", "acme"], "wrong values"),
    ("chunk grid", "rectangular"): (["rectangular"], "rectilinear"),
    ("member", "encoded_chunk_shapes"): (["encoded_chunk_shapes"], draft(75)),
    ("chunk key encoding", "fanout"): (["fanout"], draft(31)),
    ("chunk key encoding", "prefix"): (["prefix"], draft(47)),
    ("chunk key encoding", "template"): (["template"], draft(69)),
}

# ---- the rows of the registry, section by section -----------------------------------------

# The lists of the handbook's chapter on the registry, in its order: registered names,
# unregistered names found in files, and open pull requests. {kind: names}
REGISTRY = {
    "codec": """bytes transpose blosc gzip crc32c sharding_indexed zstd bitround cast_value scale_offset reshape
        conditional packbits zfp n5_default vlen-utf8 vlen-bytes
        numcodecs.blosc numcodecs.lz4 numcodecs.zstd numcodecs.zlib numcodecs.gzip numcodecs.bz2 numcodecs.lzma
        numcodecs.shuffle numcodecs.crc32 numcodecs.crc32c numcodecs.adler32 numcodecs.fletcher32
        numcodecs.jenkins_lookup3 numcodecs.delta numcodecs.bitround numcodecs.fixedscaleoffset numcodecs.quantize
        numcodecs.astype numcodecs.packbits numcodecs.pcodec numcodecs.zfpy
        zarrs.vlen zarrs.vlen_v2 vlen-array zarrs.squeeze zarrs.optional zarrs.gdeflate
        imagecodecs_* jpeg* lzw optional pad arrow-ipc n5_varlen label_multiset n5_label_multiset singleton_dim
        jpeg""".split(),
    "data type": ["bool", *INTEGERS, "float16", "float32", "float64", "complex64", "complex128", "r", "int2", "int4",
                  "uint2", "uint4", "bfloat16", *SMALL_FLOATS, "complex_bfloat16", "complex_float16", "complex_float32",
                  "complex_float64", *("complex_" + n for n in SMALL_FLOATS if n != "float8_e4m3fn"),
                  "string", "bytes", "fixed_length_utf32", "numpy.datetime64", "numpy.timedelta64", "struct",
                  "structured", "null_terminated_bytes", "raw_bytes", "variable_length_bytes", "zarrs.optional",
                  "json", "optional", "binary_fixed_point", "label_multiset", "fixed_size_list"],
    "chunk grid": ["regular", "rectilinear", "zarrs.regular_bounded"],
    "chunk key encoding": ["default", "v2", "zarrs.default_suffix", "suffix", "fanout", "prefix", "template"],
    "storage transformer": ["chunk-manifest-json", "concat-parts"],
    "member": ["encoded_chunk_shapes"],
    # Conventions of users, in attributes: the library keeps them and gives them no meaning.
    "attribute": ["_FillValue", "ome", "geo:proj"],
}


# ---- what docs/status says ---------------------------------------------------------------

def status():
    """{title: rows of cells without their backquotes}"""
    found, title = {}, None
    for line in (ROOT / "docs/status/registries.md").read_text().splitlines():
        if line.startswith("## "):
            title = line[3:]
            found[title] = []
        elif line.startswith("| ") and title:
            found[title].append([cell.strip().replace("\\|", "|") for cell in line.strip("|").split(" | ")])
    return {title: rows[1:] for title, rows in found.items()}


def bare(cell):
    return cell.strip("` ")


STATUS = status()


def table_names(title, column):
    return {bare(row[column]) for row in STATUS[title]} - {""}


def aliases(title):
    """[(name in v3, alias)]"""
    return [(bare(row[0]), bare(alias)) for row in STATUS[title] for alias in row[2].split(", ")
            if bare(row[0]) and bare(alias)]


def test_no_name_is_missing():
    """This table and docs/status hold the same names."""
    assert table_names("Data types", 0) == set(TYPES)
    only_v2 = {bare(row[1]) for row in STATUS["Data types"] if not bare(row[0])}
    assert only_v2 == set(TYPES_V2)
    assert table_names("Codecs", 0) == set(CODECS) | set(METADATA_ONLY)
    assert {bare(row[1]) for row in STATUS["Codecs"] if not bare(row[0])} == {
        name.removesuffix(" of numbers") for name in CODECS_V2}
    assert table_names("Chunk grids", 0) == set(GRIDS)
    assert table_names("Chunk key encodings", 0) == set(KEYS)
    assert [(row[0], bare(row[1])) for row in STATUS["Refused on purpose"]] == list(REFUSED)


def test_only_these_are_not_done():
    """What has no implementation is named above, and nothing else is left to "the core" silently."""
    metadata_only = {bare(row[0]) for row in STATUS["Codecs"] if row[5].startswith("metadata only: ")}
    assert metadata_only == set(METADATA_ONLY)
    core = {bare(row[0]) for row in STATUS["Codecs"] if row[5].strip("| ") == "the library's core"}
    assert core == {"reshape", "zarrs.squeeze"}


@pytest.mark.parametrize("kind", REGISTRY)
def test_every_row_of_the_registry(kind):
    """It has an answer: implemented, by its name or as an alias, or refused."""
    known = {"data type": set(TYPES) | {a for _, a in aliases("Data types")},
             "codec": set(CODECS) | set(METADATA_ONLY) | {a for _, a in aliases("Codecs")},
             "chunk grid": set(GRIDS), "chunk key encoding": set(KEYS),
             "attribute": {"_FillValue", "ome", "geo:proj"}}.get(kind, set())
    refused = {name for of_kind, name in REFUSED if of_kind == kind}
    assert not known & refused
    assert set(REGISTRY[kind]) - known - refused == set()


# ---- implemented -------------------------------------------------------------------------

def document(dtype, fill, codecs, more=()):
    return {**cases.document_v3(dtype, fill, codecs, SHAPE, CHUNKS), **dict(more)}


def round_trip(context, made, data):
    """Created by us, and by a document put there; written; read from another handle."""
    store = context.store()
    array = store.create(document=made)
    texts = isinstance(data, list)
    array.write_vlen(data) if texts else array.write(data)
    assert any(not key.startswith((".z", "zarr.json")) for key in store.keys())
    chunks = {key: value for key, value in store.dump().items() if not key.startswith((".z", "zarr.json"))}
    other = context.store()
    other.put("zarr.json" if made["zarr_format"] == 3 else ".zarray", json.dumps(made).encode())
    for key, value in chunks.items():
        other.put(key, value)
    for again in (store.open(), other.open()):
        if texts:
            assert again.read_vlen() == data
        else:
            cases.same_bits(again.read(data.dtype), data)
        assert again.verify() == []
    return array


@pytest.mark.parametrize("name", TYPES)
def test_data_type(context, name):
    dtype, fill, codecs, data = TYPES[name]
    array = round_trip(context, document(dtype, fill, codecs), data)
    assert context.store().create(document=json.loads(array.metadata)).fill_bytes is not None


@pytest.mark.parametrize("name,alias", aliases("Data types"))
def test_data_type_by_another_name(context, name, alias):
    dtype, fill, codecs, data = TYPES[name]
    dtype, fill = TYPE_ALIASES.get(alias, ({**dtype, "name": alias} if isinstance(dtype, dict) else alias, fill))
    array = round_trip(context, document(dtype, fill, codecs), data)
    written = json.loads(array.metadata)["data_type"]
    # Aliases are not written; but zarr-python knows raw bytes by no other name.
    assert (alias == "raw_bytes") == (alias in (written, written["name"] if isinstance(written, dict) else ""))


@pytest.mark.parametrize("name", CODECS)
def test_codec(context, name):
    dtype, fill, codecs, data, *more = CODECS[name]
    assert name in json.dumps(codecs)
    array = round_trip(context, document(dtype, fill, codecs, *more), data)
    assert name in json.dumps(array.codecs)


def rename(value, name, alias):
    if isinstance(value, list):
        return [rename(v, name, alias) for v in value]
    if not isinstance(value, dict):
        return value
    return {k: alias if k == "name" and v == name else rename(v, name, alias) for k, v in value.items()}


# numcodecs' configurations are not those of the codecs that have a name of their own by now.
NUMCODECS_WAY = {"blosc": {"cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}, "zstd": {"level": 1}}


@pytest.mark.parametrize("name,alias", [pair for pair in aliases("Codecs") if pair[0] not in METADATA_ONLY])
def test_codec_by_another_name(context, name, alias):
    dtype, fill, codecs, data, *more = copy.deepcopy(CODECS[name])
    found = rename(codecs, name, alias)
    assert found != codecs
    if alias.startswith("numcodecs.") and name in NUMCODECS_WAY:
        next(c for c in found if c["name"] == alias)["configuration"] = NUMCODECS_WAY[name]
    array = round_trip(context, document(dtype, fill, found, *more), data)
    # zarr-python has no bitround of another name.
    assert (alias if alias == "numcodecs.bitround" else name) in [c["name"] for c in array.codecs]


@pytest.mark.parametrize("name", METADATA_ONLY)
@pytest.mark.parametrize("alias", [False, True])
def test_metadata_only(context, name, alias):
    (dtype, fill, codecs, data, _), reason = METADATA_ONLY[name]
    for other in [a for n, a in aliases("Codecs") if n == name] if alias else [name]:
        store = context.store()
        store.put("zarr.json", json.dumps(document(dtype, fill, rename(codecs, name, other))).encode())
        array = store.open()
        assert name in json.dumps(array.codecs)
        with pytest.raises(ZarrcError, match=reason) as raised:
            array.write(data)
        assert raised.value.code == "UNSUPPORTED"


@pytest.mark.parametrize("name", sorted({*CODECS_V2, *TYPES_V2}))
def test_of_v2_only(context, name):
    dtype, fill, filters, data = (CODECS_V2 | TYPES_V2)[name]
    round_trip(context, cases.document_v2(dtype, fill, SHAPE, CHUNKS, filters=filters), data)


@pytest.mark.parametrize("name,letters", [(bare(row[0]), bare(row[1])) for row in STATUS["Data types"]
                                          if bare(row[0]) and bare(row[1])])
def test_data_type_in_v2(context, name, letters):
    if letters == "|O":  # the filter says which
        kind, filter_ = {"string": ("string", "vlen-utf8"), "variable_length_bytes": ("bytes", "vlen-bytes")}[name]
        made = cases.document_v2(letters, "", SHAPE, CHUNKS, filters=[{"id": filter_}])
        round_trip(context, made, make_words(kind))
        return
    dtype, fill = spelled_v2(name, letters)
    round_trip(context, cases.document_v2(dtype, fill, SHAPE, CHUNKS), TYPES[name][3])


@pytest.mark.parametrize("name,id_", [(bare(row[0]), bare(row[1])) for row in STATUS["Codecs"]
                                      if bare(row[0]) and bare(row[1])])
def test_codec_in_v2(context, name, id_):
    """As compressor or filter; bytes and transpose are said by dtype and order there."""
    if id_ in ("bytes", "transpose"):
        made, data = cases.document_v2("<i2", 0, SHAPE, CHUNKS, "F"), NUMBERS.astype("i2")
    elif id_ in ("zfpy", "pcodec"):
        compressor = {"id": id_} if id_ == "pcodec" else {"id": id_, "mode": 5, "tolerance": -1, "rate": -1,
                                                          "precision": -1}
        made, data = cases.document_v2("<i4", 0, SHAPE, CHUNKS, compressor=compressor), NUMBERS.astype("i4")
    elif id_.startswith("vlen-"):
        made = cases.document_v2("|O", "", SHAPE, CHUNKS, filters=[{"id": id_}])
        data = make_words("string" if id_ == "vlen-utf8" else "bytes")
    else:
        dtype, _, codecs, data, *_ = CODECS[name]
        config = NUMCODECS_WAY.get(id_) or next(c for c in codecs if c["name"] == name).get("configuration", {})
        spelled = {"int16": "<i2", "float32": "<f4"}[dtype]
        made = cases.document_v2(spelled, 0, SHAPE, CHUNKS, filters=[{"id": id_, **config}])
    if name in METADATA_ONLY:
        with pytest.raises(ZarrcError, match=METADATA_ONLY[name][1]):
            context.store().create(document=made).write(data)
    else:
        round_trip(context, made, data)


@pytest.mark.parametrize("name", GRIDS)
def test_grid(context, name):
    array = round_trip(context, document("int16", 0, [LITTLE], {"chunk_grid": GRIDS[name]}), NUMBERS.astype("i2") + 1)
    assert array.chunk_grid == GRIDS[name]


@pytest.mark.parametrize("name", KEYS)
def test_key_encoding(context, name):
    encoding, key = KEYS[name]
    array = round_trip(context, document("int16", 0, [LITTLE], {"chunk_key_encoding": encoding}),
                       NUMBERS.astype("i2") + 1)
    assert key in array.store.keys() and array.chunk_key((1, 0)) == key


@pytest.mark.parametrize("name,value", [("_FillValue", "AAAAAAAA+D8="), ("_FillValue", -999), ("ome", {"version": "0.5"}),
                                        ("geo:proj", {"code": "EPSG:4326"})])
def test_attributes_of_users(context, name, value):
    """_FillValue is what xarray takes for missing, not what missing chunks hold: elements and fill
    value stay as they are. Like the rest, it is the users' and is kept as it is."""
    array = round_trip(context, document("float32", 1.0, [LITTLE], {"attributes": {name: value}}),
                       NUMBERS.astype("f4"))
    assert array.attributes == {name: value} and array.fill_bytes == np.float32(1).tobytes()


# ---- refused -----------------------------------------------------------------------------

def make_refused(kind, name):
    """A document that uses the name."""
    made = document("int16", 0, [LITTLE])
    if kind == "data type":
        made["data_type"] = name
    elif kind == "codec":
        made["codecs"] = [LITTLE, {"name": name}]
    elif kind == "storage transformer":
        made["storage_transformers"] = [{"name": name, "configuration": {}}]
    elif kind == "chunk grid":
        made["chunk_grid"] = {"name": name, "configuration": {"chunk_shape": [2, 3]}}
    elif kind == "chunk key encoding":
        made["chunk_key_encoding"] = {"name": name, "configuration": {}}
    else:
        made["chunk_grid"] = codec("rectilinear", kind="inline", chunk_shapes=[2, 3], **{name: [2, 3]})
    return made


@pytest.mark.parametrize("kind,row", REFUSED)
def test_refused(context, kind, row):
    """Opened, created, and as the program's list has it."""
    names, reason = REFUSED[kind, row]
    for name in names:
        store = context.store()
        if isinstance(name, tuple):
            name, reason = name
        made = name if isinstance(name, dict) else make_refused(kind, name)
        store.put("zarr.json" if made["zarr_format"] == 3 else ".zarray", json.dumps(made).encode())
        for act in (store.open, lambda: context.store().create(document=made)):  # noqa: B023
            with pytest.raises(ZarrcError, match=reason) as raised:
                act()
            assert raised.value.code == "UNSUPPORTED"
            if isinstance(name, str):
                assert name.removeprefix("numcodecs.") in raised.value.message and "refused" in raised.value.message


def test_refused_are_listed():
    listed = json.loads(subprocess.run([PROGRAM, "list", "--json", "refused"], stdout=subprocess.PIPE, check=True).stdout)
    assert [(row["of"], row["name"]) for row in listed["refused"]] == list(REFUSED)
    for row, shown in zip(listed["refused"], STATUS["Refused on purpose"]):
        assert re.search(REFUSED[row["of"], row["name"]][1], row["detail"])
        assert row["detail"] == shown[2].strip("| ")


@pytest.mark.parametrize("codec_id", ["imagecodecs_jpeg", "pickle", "jpeg"])
def test_refused_in_v2(context, codec_id):
    made = cases.document_v2("<i2", 0, SHAPE, CHUNKS, compressor={"id": codec_id})
    with pytest.raises(ZarrcError, match="refused"):
        context.store().create(document=made)


# ---- must_understand ----------------------------------------------------------------------

@pytest.mark.parametrize("place", ["data_type", "chunk_grid", "chunk_key_encoding", "codecs", "storage_transformers"])
@pytest.mark.parametrize("understand", [False, True])
def test_unknown_extensions(context, place, understand):
    """At these points nothing can be skipped: what is stored would be read as something else."""
    made = document("int16", 0, [LITTLE])
    found = {"name": "acme.thing", "configuration": {}, "must_understand": understand}
    made[place] = [LITTLE, found] if place == "codecs" else [found] if place[0] == "s" else found
    store = context.store()
    store.put("zarr.json", json.dumps(made).encode())
    with pytest.raises(ZarrcError, match="acme.thing"):
        store.open()


@pytest.mark.parametrize("value,opens", [
    ({"must_understand": False}, True), ({"must_understand": False, "name": "acme", "configuration": {"x": 1}}, True),
    ({"must_understand": True}, False), ({}, False), ({"must_understand": 0}, False), (None, False), (False, False),
    ([{"must_understand": False}], False)], ids=str)
def test_unknown_members(context, value, opens):
    """Only an object that says so may be passed over; then it is kept."""
    store = context.store()
    store.put("zarr.json", json.dumps(document("int16", 0, [LITTLE], {"acme.member": value})).encode())
    if not opens:
        with pytest.raises(ZarrcError, match="acme.member") as raised:
            store.open()
        assert raised.value.code == "UNSUPPORTED"
        return
    array = store.open()
    array.set_attribute("a", 1)
    assert json.loads(store.get("zarr.json"))["acme.member"] == value


@pytest.mark.parametrize("place", ["data_type", "chunk_grid", "chunk_key_encoding", "codecs"])
def test_known_extensions_that_say_so(context, place):
    """"must_understand": true is what everything is; it may be said, and is not written."""
    made = document("int16", 0, [LITTLE])
    if place == "codecs":
        made[place] = [{**LITTLE, "must_understand": True}]
    else:
        found = made[place]
        made[place] = {**(found if isinstance(found, dict) else {"name": found}), "must_understand": True}
    array = round_trip(context, made, NUMBERS.astype("i2"))
    again = context.store().create(document=json.loads(array.metadata))
    assert again.codecs == array.codecs
