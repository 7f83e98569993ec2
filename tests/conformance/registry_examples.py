"""registry_examples - documents for every extension of Zarr's registry (zarr-extensions), made anew
from the rules that its schemas and pages state: what must be accepted, with what a strict writer
makes of it, and what must be refused, with the field that an error has to name.

    python registry_examples.py FOLDER      writes each as FOLDER/<number>/zarr.json, and an index

Nothing is copied from there. Where a page and its schema disagree, the page and the
implementations are followed, and the rule below says so.
"""
import json
import pathlib
import sys
from dataclasses import dataclass

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
SHAPE, CHUNKS = [6, 8], [3, 4]
NOTHING = object()


@dataclass
class Example:
    """place: the member of the document; canonical: its value as written strictly; field: what an
    error names."""
    name: str
    document: dict
    place: str
    canonical: object = None
    field: str = None


@dataclass
class Member:
    """Of a configuration. good: values that are kept as they are; bad: values that are refused."""
    good: list
    bad: list
    required: bool = False
    default: object = NOTHING  # what is written where it was left out


@dataclass
class Rule:
    """An extension. members: of its configuration; base: values of those that are required, when
    another member is looked at; bare: may be a text alone; more: whole configurations, each with
    how it is written (None: as it is) or (text) the field that is refused."""
    name: str
    members: dict
    bare: bool = False
    more: tuple = ()
    data_type: object = "int32"
    fill: object = 0
    alone: bool = False  # an array->bytes codec
    lenient: bool = False  # unknown members are passed over: numcodecs' newer versions add some


def require(good, *bad):
    return Member(good, list(bad), True)


def optional(default, good, *bad):
    return Member(good, list(bad), False, default)


def document(**changes):
    return {"zarr_format": 3, "node_type": "array", "shape": SHAPE, "data_type": "int32",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": CHUNKS}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": 0, "codecs": [LITTLE], "attributes": {}, **changes}


# ---- rules -------------------------------------------------------------------------------

GZIP = {"name": "gzip", "configuration": {"level": 5}}
ZSTD = {"name": "zstd", "configuration": {"level": 0, "checksum": False}}
CRC = {"name": "crc32c"}
TRANSPOSED = {"name": "transpose", "configuration": {"order": [1, 0]}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
LEVEL_WORDS = ["1", 1.5, [1], True]


CODECS = [
    Rule("bytes", {"endian": require(["little", "big"], "middle", "", 1, True, ["little"])}, alone=True),
    Rule("transpose", {"order": require([[0, 1], [1, 0]], [0, 0], [0, 2], [0], [0, 1, 2], [-1, 0], [0.5, 1], "R", 1)}),
    # The schema wants every member; files without typesize exist, and what it means is the elements' size.
    Rule("blosc", {"cname": require(["lz4", "lz4hc", "blosclz", "zstd", "zlib"], "lz5", 1, ""),
                   "clevel": require([0, 5, 9], -1, 10, "5", 1.5),
                   "shuffle": require(["noshuffle", "shuffle", "bitshuffle"], "bits", True, 7),
                   "typesize": require([1, 4, 255], 0, "4", 1.5),
                   "blocksize": require([0, 4096], -1, "0")}),
    Rule("crc32c", {}, bare=True),
    # level: required by the schema, left out by old writers; what is written has one.
    Rule("gzip", {"level": require([0, 5, 9], -1, 10, *LEVEL_WORDS)}),
    # checksum: "should be left out if false" says the page, and zarr-python, like we, always writes it.
    Rule("zstd", {"level": require([-131072, 0, 3, 22], -131073, 23, *LEVEL_WORDS),
                  "checksum": optional(False, [True, False], 1, "true", [])}),
    # The schema's least chunk shape is 0, where nothing could be stored: no implementation takes it.
    Rule("sharding_indexed", {
        "chunk_shape": require([[3, 4], [1, 2]], [0, 4], [-1, 4], [2, 4], [3], [3, 4, 1], 3, "x", [1.5, 4]),
        "codecs": require([[LITTLE], [TRANSPOSED, LITTLE, GZIP]], [], [GZIP], {}, [1], [LITTLE, LITTLE]),
        "index_codecs": require([[LITTLE, CRC], [BIG]], [], [LITTLE, GZIP], 1),
        "index_location": optional("end", ["start", "end"], "middle", 1, True)}, alone=True),
    # keepbits: at least 1 for the page, 0 for the schema and numcodecs; 0 is taken.
    Rule("bitround", {"keepbits": require([0, 1, 10, 23], -1, "3", 1.5, True)}, data_type="float32", fill=0.0),
    # out_of_range: a first edition had the word "error" for leaving it out, which is how it is written.
    Rule("cast_value", {
        "data_type": require(["uint8", "float64", "int2"], 1, [], {"x": 1}),
        "rounding": optional(NOTHING, ["towards-zero", "towards-positive", "towards-negative", "nearest-away"], "up", 1),
        "out_of_range": optional(NOTHING, ["clamp", "wrap"], "saturate", 1),
        "scalar_map": optional(NOTHING, [{"encode": [[1, 2]]}, {"decode": [[2, 1]]}], 1, [], {"x": []},
                               {"encode": [[1]]}, {"encode": [[1, 2, 3]]}, {"encode": [1]}, {"decode": {}})},
        data_type="int16", more=(
            ({"data_type": "string"}, "string"), ({"data_type": "uint8", "rounding": "nearest-even"}, {"data_type": "uint8"}),
            ({"data_type": "uint8", "out_of_range": "error"}, {"data_type": "uint8"}))),
    # Both members were required by a first edition.
    Rule("scale_offset", {"offset": optional(NOTHING, [1, -5], "a", [1], 1.5),
                          "scale": optional(NOTHING, [2, 3], 0, "b", {}, 1.5)}),
    # (The page shows bytes behind zstd in one edition, which no chain may have.)
    Rule("reshape", {"shape": require(
        [[12], [-1], [[0, 1]], [[0], [1]], [3, [1]], [2, -1], [[0], 2, 2]],
        [5], [-1, -1], [[1], [0]], [[1, 0]], [-2], [0], ["a"], 12, [[0, 0]], [[2]], [[0], [0]], [1.5])}),
    Rule("conditional", {"codecs": require([[GZIP], [GZIP, ZSTD]], [LITTLE], [TRANSPOSED], 1, {}),
                         "header_bits": optional(8, [8, 16, 32], 7, 0, -8, "8", 1.5)}),
    # The schema calls them start_bit and end_bit, and "start_byte"; page and zarrs as here, and so it is
    # written. Both are read: their meaning is the same.
    Rule("packbits", {
        "padding_encoding": optional("none", ["none", "first_byte", "last_byte"], "middle_byte", 1),
        "first_bit": optional(NOTHING, [0, 3], -1, 32, "0", 1.5),
        "last_bit": optional(NOTHING, [31, 7], -1, 32, "7")}, alone=True, bare=True,
        more=(({"start_bit": 1, "padding_encoding": "start_byte"}, {"first_bit": 1, "padding_encoding": "first_byte"}),
              ({"end_bit": 3, "padding_encoding": "end_byte"}, {"last_bit": 3, "padding_encoding": "last_byte"}),
              ({"first_bit": 4, "last_bit": 3}, "last_bit"))),
    Rule("zfp", {"mode": require([], "fast", 1)}, alone=True, data_type="float32", fill=0.0, more=(
        ({"mode": "reversible"}, None),
        ({"mode": "fixed_rate", "rate": 10.5}, None), ({"mode": "fixed_rate"}, "rate"),
        ({"mode": "fixed_rate", "rate": "1"}, "rate"), ({"mode": "fixed_rate", "rate": 1, "tolerance": 1}, "tolerance"),
        ({"mode": "fixed_precision", "precision": 19}, None), ({"mode": "fixed_precision"}, "precision"),
        ({"mode": "fixed_precision", "precision": -1}, "precision"),
        ({"mode": "fixed_precision", "precision": 1.5}, "precision"),
        ({"mode": "fixed_accuracy", "tolerance": 0.05}, None), ({"mode": "fixed_accuracy"}, "tolerance"),
        ({"mode": "expert", "minbits": 1, "maxbits": 13, "maxprec": 19, "minexp": -2}, None),
        ({"mode": "expert", "maxbits": 13, "maxprec": 19, "minexp": -2}, "minbits"),
        ({"mode": "expert", "minbits": 1, "maxprec": 19, "minexp": -2}, "maxbits"),
        ({"mode": "expert", "minbits": 1, "maxbits": 13, "minexp": -2}, "maxprec"),
        ({"mode": "expert", "minbits": 1, "maxbits": 13, "maxprec": 19}, "minexp"),
        ({"mode": "expert", "minbits": -1, "maxbits": 13, "maxprec": 19, "minexp": -2}, "minbits"),
        ({"mode": "reversible", "rate": 3}, "rate"))),
    Rule("n5_default", {"codecs": require(
        [[TRANSPOSED, BIG], [TRANSPOSED, BIG, ZSTD], [TRANSPOSED, BIG, GZIP]],
        [BIG], [TRANSPOSED, LITTLE], [TRANSPOSED, BIG, GZIP, ZSTD], [], 1,
        [{"name": "transpose", "configuration": {"order": [0, 1]}}, BIG])}, alone=True),
    Rule("vlen-utf8", {}, bare=True, alone=True, data_type="string", fill=""),
    Rule("vlen-bytes", {}, bare=True, alone=True, data_type="variable_length_bytes", fill=""),
    # numcodecs.*: an open registration; the members are numcodecs' own, and what v3 knows may be left out.
    Rule("numcodecs.zlib", {"level": optional(1, [0, 9], -2, 10, "1")}, bare=True, lenient=True),
    Rule("numcodecs.bz2", {"level": optional(1, [1, 9], 0, 10, "1")}, bare=True, lenient=True),
    Rule("numcodecs.lz4", {"acceleration": optional(1, [1, 50], "1", 1.5)}, bare=True, lenient=True),
    Rule("numcodecs.shuffle", {"elementsize": optional(8, [1, 2, 4, 8], -1, "4")}, bare=True, lenient=True,
         data_type="float64", fill=0.0),  # left out: the array's item size
    Rule("numcodecs.crc32", {"location": optional(NOTHING, ["end"], "middle", 1)}, bare=True, lenient=True,
         more=(({"location": "start"}, {}),)),
    Rule("numcodecs.adler32", {"location": optional(NOTHING, ["end"], "middle", 1)}, bare=True, lenient=True,
         more=(({"location": "start"}, {}),)),
    Rule("numcodecs.fletcher32", {}, bare=True, lenient=True),
    Rule("numcodecs.quantize", {"digits": require([0, 3], "1"), "dtype": optional("<f4", ["<f4"], "<x4", 1),
                                "astype": optional("<f4", ["<f4", "<f8"], "<x4", 1)},
         data_type="float32", fill=0.0, lenient=True),
    Rule("numcodecs.fixedscaleoffset", {"offset": require([0, 1.5], "0"), "scale": require([1, 2.5], "1"),
                                        "dtype": optional("<i4", ["<i4"], "<x4", 1),
                                        "astype": optional("<i4", ["<i4", "|u1"], "<x4", 1)}, lenient=True),
]

PLAIN_TYPES = {
    **{f"{s}int{b}": 1 for s in ("", "u") for b in (2, 4, 8, 16, 32, 64)}, "bool": True,
    **{n: "NaN" for n in ("float16", "float32", "float64", "bfloat16", "float8_e3m4", "float8_e4m3",
                          "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")},
    **{n: 1.0 for n in ("float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn")},
}
PAIRS = {"complex64": "complex64", "complex128": "complex128", "complex_float32": "complex64",
         "complex_float64": "complex128", **{n: n for n in (
             "complex_float16", "complex_bfloat16", "complex_float8_e3m4", "complex_float8_e4m3",
             "complex_float8_e4m3b11fnuz", "complex_float8_e4m3fnuz", "complex_float8_e5m2", "complex_float8_e5m2fnuz",
             "complex_float8_e8m0fnu", "complex_float6_e2m3fn", "complex_float6_e3m2fn", "complex_float4_e2m1fn")}}
UNITS = "Y M W D h m s ms us ns ps fs as generic".split()
FIELD = {"name": "x", "data_type": "float32"}
INNER = {"name": "struct", "configuration": {"fields": [FIELD, {"name": "y", "data_type": "uint8"}]}}
# scale_factor: required there; 1 where writers left it out.
TIME = {"unit": require(UNITS, "minute", "S", 1, ""), "scale_factor": optional(1, [1, 10, 2**31 - 1], 0, -1, 2**31, "1", 1.5)}
DATA_TYPES = [
    Rule("numpy.datetime64", TIME, fill="NaT"), Rule("numpy.timedelta64", TIME, fill=7),
    Rule("fixed_length_utf32", {"length_bytes": require([4, 48], 0, -4, 6, "4", 4.5)}, fill=""),
    Rule("null_terminated_bytes", {"length_bytes": require([1, 7], 0, -1, "4")}, fill=""),
]
# data_type, fill value: accepted; (data_type, fill value, field): refused
STRUCTS = [
    (INNER, {"x": 1.5, "y": 2}, None),
    (INNER, {"x": "NaN", "y": 255}, None),
    ({"name": "struct", "configuration": {"fields": [{"name": "p", "data_type": INNER}, {"name": "v", "data_type": "float64"}]}},
     {"p": {"x": 1.0, "y": 2}, "v": 3.5}, None),
    ({"name": "struct", "configuration": {"fields": [{"name": "t", "data_type": {
        "name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}}, FIELD]}},
     {"t": "NaT", "x": 0.0}, None),
    *(({"name": "struct", "configuration": {"fields": fields}}, {}, says) for fields, says in (
        ([], "fields"), (1, "fields"), ({}, "fields"), ([1], "field"), ([{"name": "x"}], "data_type"),
        ([{"data_type": "int8"}], "name"), ([FIELD, FIELD], '"x"'), ([{"name": "", "data_type": "int8"}], "name"),
        ([{"name": "x", "data_type": "string"}], '"x"'), ([{"name": "x", "data_type": "nope"}], '"nope"'),
        ([{**FIELD, "unit": "m"}], "unit"))),
    ({"name": "struct", "configuration": {}}, {}, "fields"), ({"name": "struct"}, {}, "struct"),
    ({"name": "struct", "configuration": {"fields": [FIELD], "packed": 1}}, {"x": 0}, "packed"),
    (INNER, {"x": 1.5}, "fill_value"), (INNER, {"x": 1.5, "y": 256}, "fill_value"),
    (INNER, {"x": 1.5, "y": 2, "z": 1}, "fill_value"), (INNER, 0, "fill_value"), (INNER, [1.5, 2], "fill_value"),
]
FILLS = [  # of the types' pages: (data_type, fill value, as written, or the field)
    ("bool", 2, "fill_value"), ("bool", "true", "fill_value"), ("int2", 2, "fill_value"), ("int2", -3, "fill_value"),
    ("uint4", 16, "fill_value"), ("uint4", -1, "fill_value"), ("int8", 128, "fill_value"), ("uint64", 2**64, "fill_value"),
    ("int64", 2**63, "fill_value"), ("float32", "nan", "fill_value"), ("float32", "Inf", "fill_value"),
    ("float32", "0x7fc000", "fill_value"), ("float4_e2m1fn", "NaN", "fill_value"),
    ("float6_e3m2fn", "Infinity", "fill_value"), ("complex64", 1, None),
    ("complex64", [1, 2, 3], "fill_value"), ("complex64", ["x", 2], "fill_value"), ("string", 1, "fill_value"),
    ("variable_length_bytes", [256], "fill_value"), ("variable_length_bytes", "?", "fill_value"),
    ("variable_length_bytes", [1, 2], None), ("variable_length_bytes", "AQI=", None), ("string", "é", None),
    ("float32", "0x7fc00001", None), ("float32", "-Infinity", None), ("int2", -2, None), ("uint4", 15, None),
]

GRIDS = [
    # The schema's member is called shape, a slip: the core specification says chunk_shape.
    Rule("regular", {"chunk_shape": require([[3, 4], [6, 8], [7, 100]], [0, 4], [-1, 4], [3], [3, 4, 5], "x", 3, [1.5, 4])},
         more=(({"shape": [3, 4]}, "shape"),)),
    Rule("rectilinear", {
        "kind": require(["inline"], "outline", 1, ""),
        "chunk_shapes": require(
            [[3, 4], [[1, 2, 3], [8]], [[[2, 3]], [[4, 2]]], [[[4, 3]], 5]],
            [3], [3, 4, 5], [[1, 2], 4], [[0, 6], 4], [0, 4], [-1, 4], [[[2, 0], 6], 4], [[[2, 3, 1]], 4], [[], 4], "x",
            ["x", 4], [[1.5, 6], 4], [[[2]], 4])},
        more=(({"kind": "inline", "chunk_shapes": [[1, [1, 2], 3], [[4, 1], 4]]},
               {"kind": "inline", "chunk_shapes": [[[1, 3], 3], [[4, 2]]]}),
              ({"kind": "inline", "chunk_shapes": [[4, 4, 4], 8]}, {"kind": "inline", "chunk_shapes": [[[4, 3]], 8]}),
              ({"kind": "inline", "chunk_shapes": [3, 4], "encoded_chunk_shapes": []}, "encoded_chunk_shapes"))),
]
KEYS = [
    Rule("default", {"separator": optional("/", ["/", "."], "-", "", "//", 1)}, bare=True),
    Rule("v2", {"separator": optional(".", ["/", "."], "-", "", 1)}, bare=True),
    # An open registration. One of its examples spells the member with a hyphen, which is read as the same.
    Rule("suffix", {"suffix": require([".tiff", ".shard.zip"], 1, None), "base_encoding": require(
        [{"name": "v2", "configuration": {"separator": "."}}, {"name": "default", "configuration": {"separator": "/"}}],
        1, [], {"name": "nope"})},
        more=(({"suffix": ".tiff", "base-encoding": {"name": "default"}},
               {"suffix": ".tiff", "base_encoding": {"name": "default", "configuration": {"separator": "/"}}}),
              ({"suffix": ".tiff", "base_encoding": {"name": "v2"}},
               {"suffix": ".tiff", "base_encoding": {"name": "v2", "configuration": {"separator": "."}}}))),
]


# ---- from rules to documents ---------------------------------------------------------------

def base(rule):
    return {name: m.good[0] for name, m in rule.members.items() if m.required and m.good}


def add_defaults(rule, config):
    """With what was left out."""
    defaults = {n: m.default for n, m in rule.members.items() if not m.required and m.default is not NOTHING}
    return {**defaults, **config}


def configurations(rule):
    """(what it is about, configuration, canonical or None, field or None)"""
    start = base(rule)
    whole = all(m.good for m in rule.members.values() if m.required)
    if whole:
        yield "least", start, add_defaults(rule, start), None
        if not rule.lenient:
            yield "unknown member", {**start, "acme": 1}, None, "acme"
    for name, m in rule.members.items():
        for value in m.good:
            config = {**start, name: value}
            yield f"{name} {value}", config, add_defaults(rule, config), None
        for value in m.bad:
            yield f"bad {name} {value}", {**start, name: value}, None, name
        if m.required and whole and rule.name not in TOLERATED.get(name, ()):
            yield f"without {name}", {k: v for k, v in start.items() if k != name}, None, name
    for config, found in rule.more:
        if isinstance(found, str):
            yield f"more {config}", config, None, found
        else:
            yield f"more {config}", config, config if found is None else found, None


# Required there; left out by old writers, so that readers know what is meant.
TOLERATED = {"level": ("gzip", "zstd"), **{n: ("blosc",) for n in ("cname", "clevel", "shuffle", "typesize", "blocksize")}}


def spellings(rule, config):
    yield "object", {"name": rule.name, "configuration": config}
    if not config:
        yield "without configuration", {"name": rule.name}
        if rule.bare:
            yield "text", rule.name


def strict(rule, config):
    """No configuration is written where it would be empty, but numcodecs' always have one."""
    return {"name": rule.name, **({"configuration": config} if config or rule.lenient else {})}


def of_rule(rule, place, wrap):
    """wrap: from the extension's value to the document."""
    for about, config, canonical, field in configurations(rule):
        for how, value in spellings(rule, config):
            yield Example(f"{place} {rule.name}: {about}, {how}", wrap(rule, value), place,
                          None if field else strict(rule, canonical), field)
    if all(m.good for m in rule.members.values() if m.required):
        value = {"name": rule.name, "configuration": base(rule)}
        yield Example(f"{place} {rule.name}: beside the configuration", wrap(rule, {**value, "acme": 1}), place, None, "acme")
        for odd in ([], "x", 1):
            yield Example(f"{place} {rule.name}: configuration {odd}", wrap(rule, {**value, "configuration": odd}), place,
                          None, "configuration")


def as_codec(rule, value):
    chain = [value] if rule.alone else [value, LITTLE] if rule.name in ARRAY_CODECS else [LITTLE, value]
    return document(data_type=rule.data_type, fill_value=rule.fill, codecs=chain)


ARRAY_CODECS = {"transpose", "bitround", "cast_value", "scale_offset", "reshape", "numcodecs.quantize",
                "numcodecs.fixedscaleoffset"}


def codecs_for(name):
    vlen = {"string": "vlen-utf8", "variable_length_bytes": "vlen-bytes", "bytes": "vlen-bytes"}
    return [{"name": vlen[name], "configuration": {}}] if name in vlen else [LITTLE]


def as_type(rule, value):
    return document(data_type=value, fill_value=rule.fill)


def examples():
    for rule in CODECS:
        yield from of_rule(rule, "codecs", as_codec)
    for rule in DATA_TYPES:
        yield from of_rule(rule, "data_type", as_type)
    for rule in GRIDS:
        yield from of_rule(rule, "chunk_grid", lambda _, value: document(chunk_grid=value))
    for rule in KEYS:
        yield from of_rule(rule, "chunk_key_encoding", lambda _, value: document(chunk_key_encoding=value))
    simple = {**{n: (n, fill) for n, fill in PLAIN_TYPES.items()}, **{n: (c, [1.0, 0.5 if "e8m0" in n else 2.0]) for n, c in PAIRS.items()},
              "string": ("string", ""), "bytes": ("variable_length_bytes", ""), "r24": ("r24", [1, 2, 3])}
    for name, (canonical, fill) in simple.items():
        more = {"fill_value": fill, "codecs": codecs_for(name)}
        for value in (name, {"name": name}, {"name": name, "configuration": {}}):
            yield Example(f"data_type {value}", document(data_type=value, **more), "data_type", canonical)
        for value, field in (({"name": name, "configuration": {"acme": 1}}, name), ({"name": name, "acme": 1}, "acme"),
                             ({"name": name, "configuration": []}, "data_type"), (name.upper(), name.upper())):
            yield Example(f"data_type {value}", document(data_type=value, **more), "data_type", None, field)
    for kind, fill, field in STRUCTS:
        yield Example(f"data_type struct: {kind} {fill}", document(data_type=kind, fill_value=fill), "data_type",
                      None if field else kind, field)
    for name, fill, field in FILLS:
        yield Example(f"fill_value of {name}: {fill}", document(data_type=name, fill_value=fill, codecs=codecs_for(name)),
                      "data_type", None if field else name, field)


def main():
    folder = pathlib.Path(sys.argv[1])
    index = []
    for number, example in enumerate(examples()):
        place = folder / str(number)
        place.mkdir(parents=True, exist_ok=True)
        (place / "zarr.json").write_text(json.dumps(example.document))
        index.append({"folder": str(number), "name": example.name, "place": example.place,
                      "canonical": example.canonical, "field": example.field})
    (folder / "index.json").write_text(json.dumps(index, indent=1))


if __name__ == "__main__":
    main()
