"""Invalid configurations, data types, ranks and fill values: for every name of the registries
(docs/status/registries.md) an error that gives the node, the field, the value and the rule. The
tests try one wrong value for each member, one unknown member, one data type and one rank that the
codec does not accept, and one fill value out of range for each data type."""
import json
import pathlib
import re

import pytest

import cases
from cases import BIG, LITTLE, PLAIN
from zarrc_abi import ZarrcError

STATUS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "status" / "registries.md"
RULE = re.compile(  # what is allowed, or what is wrong
    r"must|expected|needs|takes|required|at most|limit |only|unknown|known|refused|cannot|beyond|outside|is out of|"
    r"is missing|are missing|has no |have no |is no |are no |is not |are not |no such|does not|no fixed size|fit|"
    r"divide|permutation|besides|, but |makes \d+ elements of a chunk of \d+|names dimension \d+ of an array of \d+|"
    r"is an object(?: or a name)?, not |has \d+ (?:entries|dimensions|numbers), the (?:array|shard) |"
    r"the dimension has length|names the")


def rows(title):
    """The first two columns, v3 and v2, of one table of the registries."""
    section = STATUS.read_text().split(f"## {title}\n")[1].split("\n## ")[0]
    found = [re.split(r"(?<!\\)\|", line.strip("|")) for line in section.splitlines() if line.startswith(("| `", "|  |"))]
    return [[cell.strip().strip("`").replace("\\|", "|") for cell in row] for row in found]


def codec(name, **configuration):
    return {"name": name, "configuration": configuration}


def excerpt(value):
    """The value as messages show it: JSON, cut after 20 characters."""
    return json.dumps(value, separators=(",", ":"))[:20]


def inside(value):
    """The innermost last value: messages may show only the wrong part of a list."""
    while isinstance(value, (list, dict)) and value:
        value = list(value.values())[-1] if isinstance(value, dict) else value[-1]
    return excerpt(value).strip('"')


def refusal(context, document):
    with pytest.raises(ZarrcError) as failed:
        context.store().create("w", document=document)
    return failed.value.message


def refuse(context, document, *says):
    with pytest.raises(ZarrcError) as failed:
        context.store().create("w", document=document)
    text = failed.value.message
    print(failed.value.code, text)
    assert failed.value.code in ("CORRUPT", "INVALID", "UNSUPPORTED", "LIMIT"), text
    assert text.startswith("/w"), f"no node: {text}"
    assert RULE.search(text), f"no rule: {text}"
    for word in says:
        assert str(word) in text, f"no {word}: {text}"


# ---- codecs of v3 ------------------------------------------------------------------------

STRING, MAYBE = ("string", ""), ({"name": "optional", "configuration": {"name": "uint8"}}, None)
NUMBERS, FLOATS, BOOLS = ("uint16", 1), ("float32", 1), ("bool", True)
N5_CHAIN = [cases.transpose(1, 0), BIG]
N5_LITTLE = [cases.transpose(1, 0), LITTLE]
ZFP = "zfp"


class Row:
    """A codec: a good configuration, wrong values by member, a type that it takes, one that it
    does not take, and the codecs before and after it."""

    def __init__(self, good, wrong, takes=NUMBERS, type_=None, before=(), after=(), open_=False, more=()):
        self.good, self.wrong, self.takes, self.type, self.open = good, wrong, takes, type_, open_
        self.before, self.after, self.more = list(before), list(after), list(more)

    def document(self, name, configuration, takes=None):
        dtype, fill = takes or self.takes
        found = {"name": name} if configuration is None else {"name": name, "configuration": configuration}
        return cases.document_v3(dtype, fill, [*self.before, found, *self.after], (4, 4), (2, 2))


def array(good, wrong, *more, takes=NUMBERS, **other):
    after = [LITTLE] if takes[0] not in ("bool",) else [PLAIN]
    return Row(good, wrong, takes, after=after, more=more, **other)


def packer(good, wrong, **other):
    return Row(good, wrong, before=[LITTLE], **other)


def compressor(name, **other):
    """A codec of numcodecs. Unknown members are accepted, as in v2: that package defines them."""
    return packer(*other.pop("of"), open_=True, **other)


CODECS = {
    "bytes": Row({"endian": "little"}, {"endian": "middle"}, type_=STRING),
    "transpose": array({"order": [1, 0]}, {"order": [0, 0]}, {"order": [0]}),  # "F" is read: old drafts have it
    "sharding_indexed": Row(
        {"chunk_shape": [1, 1], "codecs": [LITTLE], "index_codecs": [LITTLE]},
        {"chunk_shape": [1, 0], "codecs": 7, "index_codecs": "crc32c", "index_location": "middle"}, more=[
            {"chunk_shape": [1]}, {"chunk_shape": [3, 1]}, {"chunk_shape": "1"}]),
    "gzip": packer({"level": 1}, {"level": 10}),
    "numcodecs.zlib": packer({"level": 1}, {"level": 10}, open_=True),
    "zstd": packer({"level": 1}, {"level": 23, "checksum": "no"}),
    "numcodecs.lz4": packer({}, {"acceleration": "fast"}, open_=True),
    "blosc": packer({"cname": "lz4", "clevel": 1, "shuffle": "shuffle", "typesize": 2, "blocksize": 0},
                    {"cname": "lz5", "clevel": 10, "shuffle": 1.5, "typesize": 0, "blocksize": -1}),
    "crc32c": packer({}, {}), "snappy": packer({}, {}),
    "numcodecs.shuffle": packer({"elementsize": 2}, {"elementsize": "2"}, open_=True, more=[{"elementsize": 3}]),
    "numcodecs.delta": array({"dtype": "<u2"}, {"dtype": "<q9", "astype": 5}, {"dtype": "<f4"}, open_=True),
    "numcodecs.bz2": packer({"level": 1}, {"level": 0}, open_=True),
    "numcodecs.lzma": packer({}, {"format": 9, "check": 99, "preset": 10, "filters": "x"}, open_=True),
    "numcodecs.base64": packer({}, {}, open_=True),
    "numcodecs.crc32": packer({}, {"location": "middle"}, open_=True),
    "numcodecs.adler32": packer({}, {"location": 1}, open_=True),
    "numcodecs.fletcher32": packer({}, {}, open_=True),
    "numcodecs.jenkins_lookup3": packer({}, {"initval": -1, "prefix": "ab"}, open_=True),
    "packbits": Row({}, {"padding_encoding": "both", "first_bit": 64, "last_bit": -1}, type_=STRING,
                    more=[{"last_bit": 16}, {"first_bit": 9, "last_bit": 2}]),
    "numcodecs.packbits": array({}, {}, takes=BOOLS, type_=NUMBERS, open_=True),
    "zfp": Row({"mode": "reversible"}, {"mode": "best"}, takes=FLOATS, type_=BOOLS, more=[
        {"mode": "fixed_rate", "rate": 0}, {"mode": "fixed_precision", "precision": 1.5},
        {"mode": "fixed_accuracy", "tolerance": -1}, {"mode": "expert", "minbits": -1, "maxbits": 9, "maxprec": 9,
                                                      "minexp": 0}]),
    "numcodecs.zfpy": Row({"mode": 5}, {"mode": 9}, takes=FLOATS, type_=BOOLS, open_=True, more=[
        {"mode": 4, "tolerance": "x"}, {"mode": 3, "precision": "x"}, {"mode": 2, "rate": [1]}]),
    "numcodecs.fixedscaleoffset": array({"offset": 0, "scale": 1, "dtype": "<u2"}, {
        "offset": "x", "scale": None, "dtype": "<q9", "astype": 5}, takes=NUMBERS, type_=("r16", [0, 0]), open_=True),
    "numcodecs.quantize": array({"digits": 1, "dtype": "<f4"}, {"digits": 1.5, "dtype": "<q9", "astype": "<u2"},
                                takes=FLOATS, type_=NUMBERS, open_=True),
    "numcodecs.astype": array({"encode_dtype": "<u4", "decode_dtype": "<u2"}, {
        "encode_dtype": "<U3", "decode_dtype": "<f4"}, type_=("r16", [0, 0]), open_=True),
    "bitround": array({"keepbits": 3}, {"keepbits": -1}, takes=FLOATS, type_=BOOLS),
    "reshape": array({"shape": [4]}, {"shape": "flat"}, {"shape": [5]}, {"shape": [[0], [2]]}, {"shape": [-1, -1]}),
    "zarrs.squeeze": array({}, {}),
    "cast_value": array({"data_type": "int32"}, {"data_type": "float7", "rounding": "up", "out_of_range": "saturate",
                                                 "scalar_map": [[1, 2]]}, type_=STRING),
    "scale_offset": array({"scale": 1, "offset": 0}, {"scale": 1.5, "offset": "x"}, type_=BOOLS),
    "vlen-utf8": Row({}, {}, takes=STRING, type_=NUMBERS),
    "vlen-bytes": Row({}, {}, takes=("variable_length_bytes", ""), type_=STRING),
    "optional": Row({"mask_codecs": [PLAIN], "data_codecs": [PLAIN]}, {"mask_codecs": 7, "data_codecs": "bytes"},
                    takes=MAYBE, type_=NUMBERS),
    "zarrs.optional": Row({"mask_codecs": [PLAIN], "data_codecs": [PLAIN]}, {"mask_codecs": 7, "data_codecs": 8},
                          takes=MAYBE, type_=NUMBERS),
    "n5_default": Row({"codecs": N5_CHAIN}, {"codecs": 7}, type_=("float16", 1), more=[{"codecs": N5_LITTLE}]),
    "conditional": packer({"codecs": [cases.gzip()]}, {"codecs": 7, "header_bits": 7}),
    "zarrs.vlen": Row({"data_codecs": [PLAIN], "index_codecs": [LITTLE], "index_data_type": "uint32"}, {
        "data_codecs": 7, "index_codecs": 8, "index_data_type": "uint16", "index_location": "middle"}, takes=STRING,
        type_=NUMBERS),
    "zarrs.vlen_v2": Row({}, {}, takes=STRING, type_=NUMBERS),
}
ABSENT = {"numcodecs.pcodec": ("level", 8), "zarrs.gdeflate": ("level", 1)}  # no library: refused by name
# The codec and the member that the error names.
RANKED = {"transpose": ("transpose", "order"), "sharding_indexed": ("sharding_indexed", "chunk_shape"),
          "n5_default": ("transpose", "order")}
# Members that name a data type, and that type.
NAMED = {"numcodecs.delta": ("dtype", '"<u2"'), "numcodecs.fixedscaleoffset": ("dtype", '"<u2"'),
         "numcodecs.quantize": ("dtype", '"<f4"'), "numcodecs.astype": ("decode_dtype", '"<u2"')}


def test_every_codec_of_v3():
    assert {row[0] for row in rows("Codecs")} - {""} == {*CODECS, *ABSENT}


@pytest.mark.parametrize("name", CODECS)
def test_good(context, name):
    context.store().create("w", document=CODECS[name].document(name, CODECS[name].good))


@pytest.mark.parametrize("name,member", [(name, member) for name, row in CODECS.items() for member in row.wrong])
def test_member(context, name, member):
    row = CODECS[name]
    value = row.wrong[member]
    wanted = [] if value is None else [inside(value) if name == "sharding_indexed" else excerpt(value).strip("\"")]
    refuse(context, row.document(name, {**row.good, member: value}), f"/w: codecs[{len(row.before)}]: ",
           name.removeprefix("numcodecs."), member, *wanted)


INDEX = [LITTLE, cases.CRC]


@pytest.mark.parametrize("codecs,says", [
    ([cases.transpose(0), LITTLE], "codecs[0]: transpose: order has 1 entries"),
    ([LITTLE, codec("numcodecs.shuffle", elementsize=3)], "codecs[1]: shuffle: 8 bytes are not a whole number"),
    ([cases.transpose(1, 0), codec("sharding_indexed", chunk_shape=[2, 2], codecs=[cases.transpose(0), LITTLE],
                                   index_codecs=INDEX)], "codecs[1]: sharding_indexed: codecs[0]: transpose: order has"),
    ([codec("sharding_indexed", chunk_shape=[2, 2], codecs=[LITTLE], index_codecs=[LITTLE, cases.CRC, cases.gzip(1)])],
     "codecs[0]: sharding_indexed: index_codecs: the size of the encoded index is not fixed"),
], ids=str)
def test_place(context, codecs, says):
    """Errors that depend on the array name the place in the list, also in nested lists."""
    refuse(context, cases.document_v3("uint16", 0, codecs, (4, 4), (2, 2)), f"/w: {says}")


@pytest.mark.parametrize("found,dtype,says", [
    ({"id": "shuffle", "elementsize": 3}, "<u2", "shuffle: 8 bytes are not a whole number"),
    ({"id": "packbits"}, "<u2", "packbits: its input must be bools"),
    ({"id": "bitround", "keepbits": 3}, "<i2", "bitround: its input must be little-endian floats"),
    ({"id": "vlen-utf8"}, "<i4", "codec vlen-utf8 does not take data type int32, only string")], ids=str)
@pytest.mark.parametrize("order", "CF")
def test_place_resolved_v2(context, order, found, dtype, says):
    refuse(context, cases.document_v2(dtype, 1, (4, 4), (2, 2), order, None, [found]), f"/w: filters[0]: {says}")


@pytest.mark.parametrize("name,changes", [(name, more) for name, row in CODECS.items() for more in row.more], ids=str)
def test_more_members(context, name, changes):
    row = CODECS[name]
    good = {} if "mode" in changes else row.good
    refuse(context, row.document(name, {**good, **changes}), name.removeprefix("numcodecs."))


@pytest.mark.parametrize("name", [name for name, row in CODECS.items() if not row.open])
def test_unknown_member(context, name):
    row = CODECS[name]
    refuse(context, row.document(name, {**row.good, "nobody": 1}), name, 'unknown member "nobody"')


@pytest.mark.parametrize("name", [name for name, row in CODECS.items() if row.good])
def test_no_configuration(context, name):
    """Either every member has a default, or the error names the missing one."""
    try:
        context.store().create("w", document=CODECS[name].document(name, None))
    except ZarrcError:
        refuse(context, CODECS[name].document(name, None), name.removeprefix("numcodecs."))


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("configuration", [7, "x", [1]], ids=str)
def test_configuration_of_other_kind(context, name, configuration):
    refuse(context, CODECS[name].document(name, configuration), name, "configuration")


@pytest.mark.parametrize("name", [name for name, row in CODECS.items() if row.type])
def test_data_type(context, name):
    """The error names the array's data type, or the member that names another, and the types allowed."""
    row = CODECS[name]
    dtype = row.type[0]
    document = row.document(name, row.good, row.type)
    place = f"/w: codecs[{len(row.before)}]: "
    refuse(context, document, place, f"{name.removeprefix('numcodecs.')}", dtype, *NAMED.get(name, ()))
    rule = "is not the array's" if name in NAMED else f"codec {name} does not take data type .*, (only|whose) "
    text = refusal(context, document)
    assert re.search(rule, text), text


@pytest.mark.parametrize("name", RANKED)
def test_rank(context, name):
    row = CODECS[name]
    document = row.document(name, row.good)
    document.update(shape=[4], chunk_grid={"name": "regular", "configuration": {"chunk_shape": [2]}})
    refuse(context, document, *RANKED[name], "has 2 ", " 1")


@pytest.mark.parametrize("name", ABSENT)
def test_absent(context, name):
    member, value = ABSENT[name]
    document = cases.document_v3("uint16", 1, [LITTLE, codec(name, **{member: value})] if "gdeflate" in name else
                                 [codec(name, **{member: value})], (4,), (2,))
    store = context.store()
    with pytest.raises(ZarrcError, match=name.split(".")[1]):
        store.create("w", document=document).write([1, 2, 3, 4])


# ---- codecs of v2 ------------------------------------------------------------------------

# id: (dtype, fill, compressor or filter, good configuration, wrong values)
V2 = {
    "zlib": ("c", {"level": 1}, {"level": 10}), "gzip": ("c", {"level": 1}, {"level": "x"}),
    "zstd": ("c", {"level": 1}, {"level": 23, "checksum": 7}), "lz4": ("c", {}, {"acceleration": "fast"}),
    "blosc": ("c", {"cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
              {"cname": "lz5", "clevel": 10, "shuffle": 7, "blocksize": -1}),
    "bz2": ("c", {"level": 1}, {"level": 0}),
    "lzma": ("c", {}, {"format": 9, "check": 99, "preset": 10, "filters": "x"}),
    "crc32c": ("f", {}, {"location": "middle"}), "crc32": ("f", {}, {"location": "middle"}),
    "adler32": ("f", {}, {"location": 1}), "fletcher32": ("f", {}, {}), "base64": ("f", {}, {}), "snappy": ("c", {}, {}),
    "jenkins_lookup3": ("f", {}, {"initval": -1, "prefix": "ab"}), "shuffle": ("f", {}, {"elementsize": "2"}),
    "delta": ("f", {"dtype": "<u2"}, {"dtype": "<q9", "astype": 5}),
    "fixedscaleoffset": ("f", {"offset": 0, "scale": 1, "dtype": "<u2"}, {
        "offset": "x", "scale": "x", "dtype": "<q9", "astype": 5}),
    "quantize": ("f", {"digits": 1, "dtype": "<f4"}, {"digits": 1.5, "dtype": "<u2", "astype": "<q9"}, "<f4"),
    "astype": ("f", {"encode_dtype": "<u4", "decode_dtype": "<u2"}, {"encode_dtype": "<U3", "decode_dtype": 5}),
    "bitround": ("f", {"keepbits": 3}, {"keepbits": -1}, "<f4"),
    "nvcomp_batch": ("c", {"algorithm": "lz4"}, {"algorithm": "ans", "options": 7}),
    "packbits": ("f", {}, {}, "|b1"), "zfpy": ("c", {"mode": 5}, {"mode": 9}, "<f4"),
    "vlen-utf8": ("f", {}, {}, "|O"), "vlen-bytes": ("f", {}, {}, "|O"),
    "vlen-array": ("f", {"dtype": "<i4"}, {"dtype": "<q9"}, "|O"),
    "json2": ("f", {}, {"encoding": "utf-16", "ensure_ascii": "x", "separators": ";"}, "|O"),
    "msgpack2": ("f", {}, {"raw": "x", "use_single_float": 7, "use_bin_type": "y"}, "|O"),
    "categorize": ("f", {"labels": ["a"], "dtype": "|O", "astype": "|u1"}, {
        "labels": "ab", "dtype": "<U9", "astype": "<f4"}, "|O"),
}
V2_OTHER = {"pcodec"}  # without a library


def document_v2(name, changes):
    role, good, _, *dtype = V2[name]
    found = {"id": name, **good, **changes}
    dtype = dtype[0] if dtype else "<u2"
    fill = {"|O": 0 if name == "vlen-array" else "", "|b1": False}.get(dtype, 1)
    compressor, filters = (found, None) if role == "c" else (None, [found])
    return cases.document_v2(dtype, fill, (4,), (2,), "C", compressor, filters)


def test_every_codec_of_v2():
    assert {row[1] for row in rows("Codecs")} - {""} == {*V2, *V2_OTHER}


@pytest.mark.parametrize("name", V2)
def test_good_v2(context, name):
    context.store().create("w", document=document_v2(name, {}))


@pytest.mark.parametrize("name,member", [(name, member) for name, row in V2.items() for member in row[2]])
def test_member_v2(context, name, member):
    value = V2[name][2][member]
    place = "compressor" if V2[name][0] == "c" else "filters[0]"
    refuse(context, document_v2(name, {member: value}), f"/w: {place}: {name}: ", member, excerpt(value).strip("\""))


@pytest.mark.parametrize("wrong,says", [
    ({"id": "zlib", "level": 99}, "zlib: level is 99"), ({"id": "nobody"}, 'codec "nobody" is unknown')], ids=str)
def test_place_v2(context, wrong, says):
    """Messages use the index in the document, even if the chain has codecs before the filters."""
    good = {"id": "shuffle", "elementsize": 2}
    for order in "CF":
        document = cases.document_v2("<u2", 1, (4, 4), (2, 2), order, wrong, [good])
        refuse(context, document, f"/w: compressor: {says}")
        document = cases.document_v2("<u2", 1, (4, 4), (2, 2), order, good, [good, wrong])
        refuse(context, document, f"/w: filters[1]: {says}")


@pytest.mark.parametrize("found", [
    {"id": "bytes"}, {"id": "bytes", "endian": "little"}, {"id": "transpose", "order": [0]}, {"id": "endian"},
    {"id": "sharding_indexed"}, {"id": "cast_value", "data_type": "int8"}], ids=lambda found: found["id"])
@pytest.mark.parametrize("role,place", [("compressor", "compressor"), ("filters", "filters[1]")])
def test_v3_only(context, role, place, found):
    document = cases.document_v2("<u2", 1, (4,), (2,))
    document[role] = found if role == "compressor" else [{"id": "shuffle", "elementsize": 2}, found]
    refuse(context, document, f'/w: {place}: codec "{found["id"]}" is unknown in Zarr v2: only v3 has it')


@pytest.mark.parametrize("found", [7, "zlib", [{"id": "zlib"}], {}, {"id": 7}, {"level": 1}, {"id": "nobody"}], ids=str)
@pytest.mark.parametrize("role", ["compressor", "filters"])
def test_no_codec_v2(context, role, found):
    document = cases.document_v2("<u2", 1, (4,), (2,))
    document[role] = found if role == "compressor" else [found]
    refuse(context, document, "/w: compressor" if role == "compressor" else "/w: filters[0]")


# ---- data types --------------------------------------------------------------------------

# These are accepted, because their meaning is clear and files contain them: a number's text ("1") for
# an integer, one number for a complex type (the real part),
# a list of all its bytes for null_terminated_bytes.

def integers(bits, signed):
    low = -2**(bits - 1) if signed else 0
    return [low - 1, low + 2**bits, 1.5, "1.5", "x", [1], True]


NO_FLOAT = ["x", "nan", [1], True, "0x1"]
PAIR = ["x", [1], [1, 2, 3], True, ["x", 1], [1, "x"]]
TYPES = {"bool": (None, [2, 1.5, "true", [True]])}
for _bits in (2, 4, 8, 16, 32, 64):
    TYPES[f"int{_bits}"] = (None, integers(_bits, True))
    TYPES[f"uint{_bits}"] = (None, integers(_bits, False))
for _name in ("float16", "float32", "float64", "bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz",
              "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn",
              "float6_e3m2fn", "float4_e2m1fn"):
    TYPES[_name] = (None, NO_FLOAT)
    TYPES["complex_" + _name] = (None, PAIR)
TYPES["complex64"], TYPES["complex128"] = TYPES.pop("complex_float32"), TYPES.pop("complex_float64")
for _name in ("complex_float8_e4m3fn",):  # not in the registry
    del TYPES[_name]


def type_entry(name, /, **configuration):
    return {"name": name, "configuration": configuration}


FIELD = {"name": "a", "data_type": "uint8"}
TYPES.update({
    "r": ("r16", [[1], [1, 2, 3], [1, 256], [1, -1], 7, "x", [1, 1.5]]),
    "null_terminated_bytes": (type_entry("null_terminated_bytes", length_bytes=2), [7, "!", "YWJj", [1, 2, 3]]),
    "fixed_length_utf32": (type_entry("fixed_length_utf32", length_bytes=8), [7, "abc", ["a"]]),
    "numpy.datetime64": (type_entry("numpy.datetime64", unit="s", scale_factor=1), [2**63, 1.5, "x", [1]]),
    "numpy.timedelta64": (type_entry("numpy.timedelta64", unit="s", scale_factor=1), [-2**63 - 1, 1.5, "x", [1]]),
    "struct": (type_entry("struct", fields=[FIELD]), [{"a": 256}, {}, {"a": 1, "b": 2}, [300], 7]),
    "string": (None, [7, ["a"], {"a": 1}]),
    "variable_length_bytes": (None, [7, "!", [256], ["a"]]),
    "optional": (type_entry("optional", name="uint8"), [7, [256], [1, 2], "x", [None]]),
    "zarrs.optional": (type_entry("zarrs.optional", name="uint8"), [7, [256], [1, 2], "x", {}]),
})
CONFIGURED = {  # wrong configurations, and the words that their errors must contain
    "r": [("r12", "r12"), ("r", "r"), ("r0", "r0")],
    "raw_bytes": [(type_entry("raw_bytes", length_bytes=-1), "length_bytes"),
                  (type_entry("raw_bytes", length_bytes=0), "length_bytes"),
                  (type_entry("raw_bytes", length_bytes=4, a=1), "raw_bytes"), ("raw_bytes", "raw_bytes")],
    "null_terminated_bytes": [(type_entry("null_terminated_bytes", length_bytes="2"), "length_bytes"),
                              (type_entry("null_terminated_bytes", length=2), "length_bytes"),
                              ("null_terminated_bytes", "length_bytes")],
    "fixed_length_utf32": [(type_entry("fixed_length_utf32", length_bytes=7), "length_bytes"),
                           (type_entry("fixed_length_utf32", length_bytes=None), "length_bytes")],
    "numpy.datetime64": [(type_entry("numpy.datetime64", unit="year", scale_factor=1), "unit"),
                         (type_entry("numpy.datetime64", unit="s", scale_factor=0), "scale_factor"),
                         (type_entry("numpy.datetime64", unit="s", scale_factor=2**31), "scale_factor"),
                         (type_entry("numpy.datetime64", unit="s", scale_factor=1, zone="UTC"), "numpy.datetime64"),
                         ("numpy.datetime64", "unit")],
    "numpy.timedelta64": [(type_entry("numpy.timedelta64", unit=7, scale_factor=1), "unit"),
                          (type_entry("numpy.timedelta64", unit="s", scale_factor="1"), "scale_factor")],
    "struct": [(type_entry("struct", fields=[]), "fields"), (type_entry("struct", fields=7), "fields"),
               (type_entry("struct", fields=[{"name": "a"}]), "data_type"),
               (type_entry("struct", fields=[FIELD, FIELD]), "\"a\""),
               (type_entry("struct", fields=[{"name": "a", "data_type": "float7"}]), "float7"), ("struct", "struct")],
    "optional": [(type_entry("optional", name="float7"), "float7"), ("optional", "optional"),
                 ({"name": "optional", "configuration": 7}, "data_type")],
    "int8": [(type_entry("int8", bits=8), "int8"), ({"name": "int8", "configuration": 7}, "configuration"), (7, "data_type"),
             ({"configuration": {}}, "data_type"), ("int9", "int9"), ("<i4", "<i4"), (None, "data_type")],
}


def test_every_data_type():
    assert {row[0] for row in rows("Data types")} - {""} == set(TYPES)


def type_document(dtype, fill, **changes):
    return {**cases.document_v3(dtype, fill, [], (4,), (2,)), **changes}


def codecs_for(name):
    if name in ("optional", "zarrs.optional"):
        return [codec("optional", mask_codecs=[PLAIN], data_codecs=[PLAIN])]
    return [{"name": {"string": "vlen-utf8", "variable_length_bytes": "vlen-bytes"}[name]}] \
        if name in ("string", "variable_length_bytes") else [LITTLE]


@pytest.mark.parametrize("name,fill", [(name, fill) for name, (_, fills) in TYPES.items() for fill in fills], ids=str)
def test_fill_value(context, name, fill):
    document = type_document(TYPES[name][0] or name, fill, codecs=codecs_for(name))
    refuse(context, document, "fill_value")
    shown = refusal(context, document)
    assert excerpt(fill).strip('"') in shown or inside(fill) in shown or f"{len(fill)} bytes" in shown or \
        "missing" in shown or '"b"' in shown, shown


@pytest.mark.parametrize("name", TYPES)
def test_no_fill_value(context, name):
    document = type_document(TYPES[name][0] or name, 0, codecs=codecs_for(name))
    del document["fill_value"]
    refuse(context, document, "fill_value")


@pytest.mark.parametrize("dtype,says", [case for found in CONFIGURED.values() for case in found], ids=str)
def test_type_configuration(context, dtype, says):
    refuse(context, type_document(dtype, 0, codecs=[LITTLE]), says)


V2_FILLS = {"|b1": 2, "|i1": 128, "<i2": 2**15, ">i4": 2**31, "<i8": 2**63, "|u1": 256, "<u2": -1, ">u4": 2**32,
            "<u8": 2**64, "<f2": "x", "<f4": [1], ">f8": "nan", "<c8": [1], ">c16": "x", "int2": 2, "int4": 8,
            "bfloat16": "x", "float8_e3m4": "x", "float8_e4m3b11fnuz": "x", "float8_e4m3fn": "x",
            "float8_e4m3fnuz": "x", "float8_e5m2": "x", "float8_e5m2fnuz": "x", "float8_e8m0fnu": "x",
            "float4_e2m1fn": "x", "|V2": "!", "|S2": "abc", "<U2": "abc", "<M8[s]": 1.5, ">m8[s]": "x"}


def test_every_data_type_of_v2():
    letters = {re.sub(r"^[<>|]", "", name).split("[")[0] for name in V2_FILLS}
    letters = {name[0] if name in ("V2", "S2", "U2", "M8", "m8") else name for name in letters}
    known = {row[1] for row in rows("Data types")} - {"", "[", "vlen-array", "|O"}  # tested below
    assert known == letters


@pytest.mark.parametrize("dtype", V2_FILLS)
def test_fill_value_v2(context, dtype):
    fill = V2_FILLS[dtype]
    refuse(context, cases.document_v2(dtype, fill, (4,), (2,)), "fill_value", inside(fill))


@pytest.mark.parametrize("dtype,fill,filters,says", [
    ([["a", "<i4"]], "!", None, "fill_value"), ([["a", "<i4"]], "AAA=", None, "fill_value"), ([], 0, None, "dtype"),
    ([["a", "<q9"]], 0, None, "<q9"), ([["a", "<i4"], ["a", "<i4"]], None, None, "\"a\""),
    ([["a"]], None, None, "dtype"),
    ("|O", ["x"], [{"id": "vlen-array", "dtype": "<i4"}], "fill_value"), ("<i3", 0, None, "<i3"), (7, 0, None, "dtype"),
    ("i4", 0, None, "dtype"), ("<i4", "x", None, "fill_value"), ("<M8[q]", 0, None, "[q]"), ("|O", 0, None, "filter"),
], ids=str)
def test_types_v2(context, dtype, fill, filters, says):
    refuse(context, cases.document_v2(dtype, fill, (4,), (2,), filters=filters), says)


# ---- grids, key encodings, the document itself ---------------------------------------------

GRIDS = {
    "regular": ({"chunk_shape": [2, 2]}, [("chunk_shape", [2]), ("chunk_shape", [0, 2]), ("chunk_shape", [2, -1]),
                                          ("chunk_shape", "2"), ("chunk_shape", [2, 1.5]), ("chunk_shape", None)]),
    "zarrs.regular_bounded": ({"chunk_shape": [2, 2]}, [("chunk_shape", [2, 2, 2]), ("chunk_shape", [0, 2]),
                                                        ("chunk_shape", 7)]),
    "rectilinear": ({"kind": "inline", "chunk_shapes": [[2, 2], [4]]}, [
        ("kind", "outline"), ("chunk_shapes", [[2, 2]]), ("chunk_shapes", [[2, 1], [4]]),
        ("chunk_shapes", [[0, 4], [4]]),
        ("chunk_shapes", 7), ("chunk_shapes", [[[2, 0]], [4]]), ("chunk_shapes", [[], [4]])]),
}
KEYS = {"default": [("separator", "-"), ("separator", 7)], "v2": [("separator", "//"), ("separator", None)],
        "suffix": [("suffix", 7), ("base_encoding", 7)], "zarrs.default_suffix": [("suffix", 7), ("separator", "-")]}
KEYS_GOOD = {"suffix": {"suffix": ".x", "base_encoding": {"name": "default"}}, "zarrs.default_suffix": {"suffix": ".x"}}


def test_every_grid_and_key_encoding():
    assert {row[0] for row in rows("Chunk grids")} == set(GRIDS)
    assert {row[0] for row in rows("Chunk key encodings")} == set(KEYS)


@pytest.mark.parametrize("name,member,value", [(name, *case) for name in GRIDS for case in GRIDS[name][1]], ids=str)
def test_grid(context, name, member, value):
    document = cases.document_v3("uint16", 0, [LITTLE], (4, 4), (2, 2))
    document["chunk_grid"] = {"name": name, "configuration": {**GRIDS[name][0], member: value}}
    refuse(context, document, "chunk_grid", member)


@pytest.mark.parametrize("name", GRIDS)
def test_grid_unknown_member(context, name):
    document = cases.document_v3("uint16", 0, [LITTLE], (4, 4), (2, 2))
    document["chunk_grid"] = {"name": name, "configuration": {**GRIDS[name][0], "nobody": 1}}
    refuse(context, document, "chunk_grid", "nobody")
    for configuration in (7, None):
        document["chunk_grid"] = {"name": name, "configuration": configuration}
        refuse(context, document, "chunk_grid")
    document["chunk_grid"] = {"name": name}
    refuse(context, document, "chunk_grid")


@pytest.mark.parametrize("value", ["tree", 7, None], ids=str)
def test_node_type(context, value):
    store = context.store()
    document = {**cases.document_v3("uint16", 0, [LITTLE], (4, 4), (2, 2)), "node_type": value}
    store.put("w/zarr.json", json.dumps(document).encode())
    with pytest.raises(ZarrcError) as failed:
        store.open("w")
    assert f'node_type is {excerpt(value)}, must be "array" or "group"' in failed.value.message


def key_document(name, configuration):
    document = cases.document_v3("uint16", 0, [LITTLE], (4, 4), (2, 2))
    document["chunk_key_encoding"] = {"name": name, "configuration": configuration}
    return document


@pytest.mark.parametrize("name,member,value", [(name, *case) for name, row in KEYS.items() for case in row], ids=str)
def test_key_encoding(context, name, member, value):
    good = KEYS_GOOD.get(name, {})
    refuse(context, key_document(name, {**good, member: value}), "chunk_key_encoding", member)


@pytest.mark.parametrize("name", KEYS)
def test_key_encoding_unknown_member(context, name):
    good = KEYS_GOOD.get(name, {})
    refuse(context, key_document(name, {**good, "nobody": 1}), "chunk_key_encoding", "nobody")
    refuse(context, key_document(name, 7), "chunk_key_encoding")


@pytest.mark.parametrize("member,value", [
    ("chunk_grid", 7), ("chunk_grid", {"name": "hexagonal"}), ("chunk_key_encoding", 7),
    ("chunk_key_encoding", {"name": "morton"}), ("codecs", 7), ("codecs", [7]), ("codecs", [{"name": "nobody"}]),
    ("codecs", [{"configuration": {}}]), ("shape", 7), ("shape", [-1, 4]), ("shape", [1.5, 4]),
    ("dimension_names", ["a"]), ("dimension_names", [1, 2]), ("attributes", 7),
    ("storage_transformers", [{"name": "nobody"}]), ("zarr_format", 4), ("node_type", "tree"), ("nobody", 7)], ids=str)
def test_document(context, member, value):
    document = {**cases.document_v3("uint16", 0, [LITTLE], (4, 4), (2, 2)), member: value}
    refuse(context, document, member)


@pytest.mark.parametrize("member,value", [
    ("shape", 7), ("chunks", [0, 2]), ("chunks", [2]), ("chunks", None), ("order", "K"), ("order", None), ("dimension_separator", "-"),
    ("filters", 7), ("compressor", 7), ("dtype", "<q9"), ("zarr_format", 4)], ids=str)
def test_document_v2(context, member, value):
    refuse(context, {**cases.document_v2("<u2", 0, (4, 4), (2, 2)), member: value}, member)
