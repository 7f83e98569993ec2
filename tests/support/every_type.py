"""every_type - a small array of every data type that the registries list, in both formats, and of
every codec that only v2 has: for tests that go through all of them. Two of those hold this table and
the registries together: tests/conformance/test_registry_rows.py and tests/cli/test_every_type.py."""
import re

import numpy as np

from cases import LITTLE, PLAIN

SHAPE, CHUNKS = (4, 6), (2, 3)
NUMBERS = np.arange(24).reshape(SHAPE)
WORDS = ["", "a", "zwölf", "漢字", "x" * 300, "\0"] * 4


def codec(name, **configuration):
    return {"name": name, "configuration": configuration} if configuration else {"name": name}


def make_words(name):
    return [w.encode() for w in WORDS] if name == "string" else [w.encode() + b"\xff" for w in WORDS]


# ---- data types --------------------------------------------------------------------------

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
SMALL_FLOATS = ["float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
                "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn",
                "float4_e2m1fn"]
# name in docs/status: (data_type, fill value, codecs, elements)
TYPES = {name: (name, 3, [LITTLE], NUMBERS.astype(name)) for name in INTEGERS}
TYPES |= {name: (name, 1.5, [LITTLE], NUMBERS.astype(name)) for name in ("float16", "float32", "float64")}
TYPES |= {name: (name, 1, [PLAIN], (NUMBERS % 2).astype("u1")) for name in ("int2", "int4", "uint2", "uint4")}
TYPES |= {name: (name, 1.0, [PLAIN], (NUMBERS % 8).astype("u1")) for name in SMALL_FLOATS}
TYPES |= {"complex_" + name: ("complex_" + name, [1.0, 2.0], [PLAIN],
                              np.stack([NUMBERS % 8, NUMBERS % 4], -1).astype("u1").view("V2").reshape(SHAPE))
          for name in SMALL_FLOATS if name != "float8_e4m3fn"}
TYPES |= {
    "bool": ("bool", True, [PLAIN], NUMBERS % 2 == 0),
    "bfloat16": ("bfloat16", "0x7fc0", [LITTLE], NUMBERS.astype("u2")),
    "complex64": ("complex64", [1, "NaN"], [LITTLE], (NUMBERS - 2j).astype("c8")),
    "complex128": ("complex128", [1, "-Infinity"], [LITTLE], (NUMBERS - 2j).astype("c16")),
    "complex_float16": ("complex_float16", [1, 2], [LITTLE], NUMBERS.astype("u4")),
    "complex_bfloat16": ("complex_bfloat16", [1, 2], [LITTLE], NUMBERS.astype("u4")),
    "r": ("r24", [1, 2, 255], [PLAIN], np.array([b"%3d" % n for n in range(24)], "V3").reshape(SHAPE)),
    "null_terminated_bytes": (codec("null_terminated_bytes", length_bytes=3), "YWI=", [PLAIN],
                              NUMBERS.astype("S3")),
    "fixed_length_utf32": (codec("fixed_length_utf32", length_bytes=12), "zwö", [LITTLE], NUMBERS.astype("U3")),
    "numpy.datetime64": (codec("numpy.datetime64", unit="us", scale_factor=10), "NaT", [LITTLE],
                         NUMBERS.astype("M8[10us]")),
    "numpy.timedelta64": (codec("numpy.timedelta64", unit="s", scale_factor=1), 7, [LITTLE],
                          NUMBERS.astype("m8[s]")),
    "struct": (codec("struct", fields=[{"name": "a", "data_type": "int16"}, {"name": "b", "data_type": "uint8"}]),
               {"a": -1, "b": 2}, [LITTLE], np.array([(n, n) for n in range(24)], "i2,u1").reshape(SHAPE)),
    "string": ("string", "fill", [{"name": "vlen-utf8"}], make_words("string")),
    "variable_length_bytes": ("variable_length_bytes", "AP8=", [{"name": "vlen-bytes"}], make_words("bytes")),
}
for _name in ("optional", "zarrs.optional"):
    TYPES[_name] = ({"name": _name, "configuration": {"name": "int16", "configuration": {}}}, None,
                    [codec(_name, mask_codecs=[codec("packbits")], data_codecs=[LITTLE])],
                    np.array([b"\0\0\0" if n % 3 == 0 else bytes([n, 0, 1]) for n in range(24)], "V3").reshape(SHAPE))
# name in v2: (dtype, fill value, filters, elements)
RAGGED = [np.arange(n % 4, dtype="<i4").tobytes() for n in range(24)]
TYPES_V2 = {"vlen-array": ("|O", None, [{"id": "vlen-array", "dtype": "<i4"}], RAGGED)}
# id of what v3 has not: (dtype, fill value, filters, elements)
CODECS_V2 = {
    "packbits": ("|b1", False, [{"id": "packbits"}], NUMBERS % 3 == 0),
    "bitround": ("<f4", 0, [{"id": "bitround", "keepbits": 10}], NUMBERS.astype("f4")),
    "vlen-array": TYPES_V2["vlen-array"],
    "nvcomp_batch": ("<i2", 0, [{"id": "nvcomp_batch", "algorithm": "lz4"}], NUMBERS.astype("i2")),
    "json2": ("|O", "", [{"id": "json2"}], make_words("string")),
    "json2 of numbers": ("<f4", 1.5, [{"id": "json2"}], NUMBERS.astype("f4") / 8),
    "msgpack2": ("|O", "", [{"id": "msgpack2"}], make_words("string")),
    "msgpack2 of numbers": ("<i4", 7, [{"id": "msgpack2"}], NUMBERS.astype("i4") - 9),
    "categorize": ("|O", "", [{"id": "categorize", "labels": sorted(set(WORDS) - {""}), "dtype": "|O", "astype": "|u1"}],
                   make_words("string")),
}


def spelled_v2(name, letters):
    """(dtype, fill value, filters) of v2 for a row of data types."""
    families = {"V": ("|V3", None), "S": ("|S3", None), "U": ("<U3", ""), "M": ("<M8[10us]", "NaT"),
                "m": ("<m8[s]", 7), "[": ([["a", "<i2"], ["b", "|u1"]], None)}
    if letters in families:
        return families[letters]
    if re.fullmatch(r"[a-z]\d+", letters):
        return ("|" if letters[1:] == "1" else "<") + letters, TYPES[name][1]
    return letters, TYPES[name][1]
