"""Both directions against the Rust crate zarrs, for features that no Python package has: small
numbers and packbits of them, optional elements, zarrs' own codecs, grids and key encodings. If
zarrs is wrong or refuses a case, the test says so and compares the rest."""
import json
import math
import os
import pathlib
import struct
import subprocess

import ml_dtypes
import numpy as np
import pytest

import cases
import zarrs_crate
from zarrc_abi import ZarrcError

pytestmark = zarrs_crate.needed
PROGRAM = os.environ.get("ZARRC", str(pathlib.Path(__file__).parents[2] / "build/dev/bin/zarrc"))
check = zarrs_crate.check

FLOATS = {name: getattr(ml_dtypes, name) for name in (
    "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "bfloat16")}
BITS = {"float6_e2m3fn": 6, "float6_e3m2fn": 6, "float4_e2m1fn": 4}
INTEGERS = {"int2": 2, "int4": 4, "uint2": 2, "uint4": 4}
PADDINGS = ["none", "first_byte", "last_byte"]


def codec(name, **configuration):
    return {"name": name, "configuration": configuration}


def packbits(padding=None, first=None, last=None):
    given = {"padding_encoding": padding, "first_bit": first, "last_bit": last}
    return codec("packbits", **{k: v for k, v in given.items() if v is not None})


def vlen(data=(cases.PLAIN,), index=(cases.LITTLE,), kind="uint32", location="start"):
    return codec("zarrs.vlen", data_codecs=list(data), index_codecs=list(index), index_data_type=kind,
                 index_location=location)


def width(name):
    """Bits of one component of a small type."""
    name = name.removeprefix("complex_")
    return INTEGERS.get(name) or BITS.get(name) or np.dtype(FLOATS[name]).itemsize * 8


def small(rng, name, shape):
    """Any legal bits."""
    if name.startswith("complex_"):
        part = small(rng, name.removeprefix("complex_"), (*shape, 2))
        return part.view(f"V{2 * part.itemsize}").reshape(shape)
    n = width(name)
    data = rng.integers(0, 1 << n, shape).astype("u2" if n == 16 else "u1")
    if name in ("int2", "int4"):
        data = np.where(data >> (n - 1) == 1, data | (256 - (1 << n)), data).astype("u1")
    return data


def document(dtype, fill, codecs, shape=(7, 5), chunks=(4, 3), **options):
    return cases.document_v3(dtype, fill, codecs, shape, chunks, **options)


SMALL = [*INTEGERS, *FLOATS, *(f"complex_{name}" for name in FLOATS)]


def zero(dtype):
    return [0.0, 0.0] if dtype.startswith("complex") else 0


# ---- data types ----------------------------------------------------------------------------

def choose_fill(name):
    if name == "float8_e8m0fnu":
        return 1.0
    return [1.0, 1.0] if name == "complex_float8_e8m0fnu" else zero(name)


def low_bits(name):
    """Of a part of a chunk that is packed, zarrs leaves the sign of int2 and int4 where it was."""
    return (lambda part: part & ((1 << INTEGERS[name]) - 1)) if name in ("int2", "int4") else (lambda part: part)


def is_whole(name):
    """Whether a component fills its bytes: zarrs packs these as `bytes` does, and leaves out the
    count of padding bits that padding_encoding asks for."""
    return width(name) % 8 == 0


@pytest.mark.parametrize("padding", ["bytes", *PADDINGS])
@pytest.mark.parametrize("name", SMALL)
def test_small(context, rng, tmp_path, name, padding):
    """Small numbers: a byte each, and packed."""
    codecs = [packbits(padding)]
    if padding == "bytes":
        codecs = [cases.BIG if name.endswith("bfloat16") else cases.PLAIN]
    data = small(rng, name, (8, 6))
    made = document(name, choose_fill(name), codecs, (8, 6))
    if is_whole(name) and padding in ("first_byte", "last_byte"):
        zarrs_crate.create(tmp_path, made)
        zarrs_crate.write(tmp_path, data)
        with pytest.raises(ZarrcError, match="expected"):
            context.store(str(tmp_path)).open().read(data.dtype)
        return
    check(context, tmp_path, made, data, parts=low_bits(name))


@pytest.mark.parametrize("name", SMALL)
def test_small_behind(context, rng, tmp_path, name):
    """In shards of shards, transposed, squeezed, compressed, with fill values between."""
    inner = [cases.transpose(1, 0), packbits("none" if is_whole(name) else "first_byte"), cases.gzip()]
    rows = 16 if name in ("int2", "int4") else 9  # a part of a chunk has no signs
    codecs = [cases.sharding((4, 6), [cases.sharding((2, 3), inner)], [cases.LITTLE, cases.CRC], "start")]
    data = small(rng, name, (rows, 12))
    fill = zarrs_crate.fills(name, [choose_fill(name)])[0][0]
    data[:4, :6] = data[5:, 3:] = np.frombuffer(fill, data.dtype)[0]
    check(context, tmp_path, document(name, choose_fill(name), codecs, data.shape, (8, 12)), data, same_bytes=False,
          parts=low_bits(name))


CORE = {**{name: cases.V3_TYPES[name] for name in cases.V3_TYPES},
        **{key: cases.V3_MORE[key][1:] for key in ("r24", "r64", "datetime", "timedelta", "utf32")},
        "complex_float16": ("c4", [0.5, "NaN"], None), "complex_float32": ("c8", ["-Infinity", 0.0], None),
        "complex_float64": ("c16", [-0.0, "0x7ff8000000000abc"], None)}
NAMES = {key: cases.V3_MORE[key][0] for key in ("r24", "r64", "datetime", "timedelta", "utf32")}


def core_data(rng, key, shape):
    code = CORE[key][0]
    if code == "c4":
        return np.frombuffer(rng.bytes(4 * math.prod(shape)), "V4").reshape(shape)
    return cases.random_data(rng, shape, code)


@pytest.mark.parametrize("endian", ["little", "big"])
@pytest.mark.parametrize("key", CORE)
def test_core(context, rng, tmp_path, key, endian):
    fill = CORE[key][1]
    order = cases.PLAIN if np.dtype(CORE[key][0].replace("c4", "V4")).itemsize == 1 or key[0] == "r" \
        else codec("bytes", endian=endian)
    data = core_data(rng, key, (9, 7))
    check(context, tmp_path, document(NAMES.get(key, key), fill, [order], (9, 7)), data)


# ---- fill values -----------------------------------------------------------------------------

def hexadecimal(name, pattern):
    return f'0x{pattern:0{max(width(name), 8) // 4}x}'


@pytest.mark.parametrize("name", FLOATS)
def test_fills_of_floats(context, name):
    """Every bit pattern as we print it, as hexadecimal, and as zarrs prints it.

    zarrs prints every NaN of 8 bits as "NaN". A decimal it rounds to a bfloat16 by the upper half of
    the double alone, so that what is just above a middle goes to the even side."""
    dtype, n = context.dtype(name), width(name)
    raw = [int(p).to_bytes(2 if n == 16 else 1, "little") for p in range(1 << n)]
    printed = [json.loads(context.print(dtype, r)) for r in raw]
    for how in (printed, [hexadecimal(name, p) for p in range(1 << n)]):
        found = zarrs_crate.fills(name, how)
        wrong = [(w, f and f[0]) for r, w, f in zip(raw, how, found)
                 if f is None or f[0] != r and not (n == 16 and seems_middle(w))]
        assert not wrong, (len(wrong), wrong[:20])
    for r, f in zip(raw, found):
        if f[1] == "NaN" and n == 8:
            r = context.parse(dtype, '"NaN"')
        assert context.parse(dtype, json.dumps(f[1])) == r, f


def seems_middle(value):
    return isinstance(value, float) and struct.unpack("<Q", struct.pack("<d", value))[0] >> 32 & 0x1fff == 0x1000


@pytest.mark.parametrize("name", ["complex_bfloat16", "complex_float8_e4m3", "complex_float4_e2m1fn",
                                  "complex_float6_e3m2fn", "complex_float8_e8m0fnu", "complex_float16"])
def test_fills_of_pairs(context, name):
    dtype = context.dtype(name)
    values = [[1.0, 2.0], [2.0, 0.5], ["0x01", "0x02"] if "16" not in name else ["0x3f80", "0x0001"]]
    if "float4" not in name and "float6" not in name:
        values.append(["NaN", 1.0])
    for value, found in zip(values, zarrs_crate.fills(name, values)):
        raw = context.parse(dtype, value)
        assert found and found[0] == raw, (value, raw, found)
        assert context.parse(dtype, json.dumps(found[1])) == raw


FILLS = [
    ("bool", [True, False]), ("int2", [-2, -1, 0, 1]), ("int4", list(range(-8, 8))),
    ("uint2", list(range(4))), ("uint4", list(range(16))), ("int8", [-128, 127]), ("uint8", [0, 255]),
    ("int16", [-2**15]), ("uint16", [2**16 - 1]), ("int32", [-2**31]), ("uint32", [2**32 - 1]),
    ("int64", [-2**63, 2**63 - 1, 2**53 + 1]), ("uint64", [2**64 - 1, 2**53 + 1]),
    ("float16", [0.1, -0.0, 65504.0, 6e-8, "NaN", "Infinity", "-Infinity", "0x7e01"]),
    ("float32", [0.1, -0.0, 1e-45, 3.4028235e38, 16777217, "NaN", "Infinity", "-Infinity", "0x7fc00123"]),
    ("float64", [0.1, -0.0, 5e-324, 1.7976931348623157e308, "NaN", "-Infinity", "0x7ff8000000000abc"]),
    ("complex64", [[1.5, -0.0], ["NaN", "-Infinity"], ["0x7fc00123", 0.1]]),
    ("complex128", [[0.1, -0.0], ["NaN", "Infinity"], ["0x7ff8000000000abc", 1e300]]),
    ("complex_float32", [[0.1, "0x7fc00123"]]), ("complex_float64", [[0.1, "NaN"]]),
    ("r8", [[255]]), ("r40", [[1, 2, 3, 4, 255]]),
    (NAMES["datetime"], ["NaT", 0, -1, 2**63 - 1]), (NAMES["timedelta"], ["NaT", -2**63 + 1]),
    (NAMES["utf32"], ["", "ab", "éx漢"]),
]


@pytest.mark.parametrize("dtype,values", FILLS, ids=[str(d) for d, _ in FILLS])
def test_fills(context, dtype, values):
    ours = context.dtype(dtype if isinstance(dtype, str) else json.dumps(dtype))
    found = zarrs_crate.fills(dtype, values)
    for value, row in zip(values, found):
        raw = context.parse(ours, json.dumps(value))
        assert row and row[0] == raw, (value, raw, row)
        assert context.parse(ours, json.dumps(row[1])) == raw, row
        [again] = zarrs_crate.fills(dtype, [json.loads(context.print(ours, raw))])
        assert again[0] == raw


# ---- packbits ---------------------------------------------------------------------------------

RANGES = [("int4", 0, 2), ("uint4", 0, 2), ("uint4", 1, 3), ("uint4", 1, 2), ("int4", 1, 3), ("float4_e2m1fn", 0, 2),
          ("float6_e2m3fn", 2, 5), ("float8_e5m2", 1, 7), ("bfloat16", 4, 15), ("complex_float4_e2m1fn", 1, 3),
          ("complex_bfloat16", 7, 15), ("complex_float8_e4m3", 0, 4)]


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("name,first,last", RANGES)
def test_packbits_range(context, rng, tmp_path, name, first, last, padding):
    """Elements that the range holds whole: what is cut off is a sign, or zeros. zarrs reads parts
    of chunks as if first_bit were 0, and without signs."""
    data = small(rng, name, (8, 6))
    unit = "u2" if name.endswith("bfloat16") else "u1"
    parts = data.view(unit) if data.dtype.kind == "V" else data
    kept = (parts.astype("i8") >> first) & ((1 << (last - first + 1)) - 1)
    if name == "int4":
        kept = np.where(kept >> (last - first) == 1, kept - (1 << (last - first + 1)), kept)
    data = ((kept << first) & (0xffff if unit == "u2" else 0xff)).astype(unit).view(data.dtype).reshape(8, 6)
    made = document(name, zero(name), [packbits(padding, first, last)], (8, 6))
    check(context, tmp_path, made, data, parts=None if first or name == "int4" else lambda part: part)


@pytest.mark.parametrize("name", ["bool", "int8", "uint16", "int32", "float32", "complex64", "uint64", "float16"])
def test_packbits_whole(context, rng, tmp_path, name):
    """All bits: as `bytes` would. With a count of padding bits zarrs leaves the count out."""
    data = cases.random_data(rng, (7, 5), cases.V3_TYPES[name][0])
    check(context, tmp_path, document(name, False if name == "bool" else zero(name), [packbits("none")]), data)


# ---- elements that may be missing ---------------------------------------------------------------

def optional(inner, **configuration):
    return {"name": "zarrs.optional", "configuration": {"name": inner, "configuration": configuration}}


def optional_codec(data, mask=("packbits",)):
    return codec("zarrs.optional", mask_codecs=[m if isinstance(m, dict) else codec(m) for m in mask],
                 data_codecs=list(data))


def maybe(rng, raw, depth=1, missing=0.4):
    """Items with their masks; what is missing is zero."""
    n = raw.size
    rows = np.frombuffer(np.ascontiguousarray(raw).tobytes(), "u1").reshape(n, -1).copy()
    for _ in range(depth):
        mask = (rng.random(n) >= missing).astype("u1")
        rows[mask == 0] = 0
        rows = np.hstack([rows, mask[:, None]])
    return np.frombuffer(np.ascontiguousarray(rows).tobytes(), f"V{rows.shape[1]}").reshape(raw.shape).copy()


INNER = {"bool": cases.PLAIN, "int8": cases.PLAIN, "int16": cases.LITTLE, "float64": cases.BIG,
         "complex64": cases.LITTLE, "int4": packbits(), "float4_e2m1fn": packbits("first_byte"),
         "bfloat16": cases.LITTLE, "r24": cases.PLAIN,
         "datetime": cases.LITTLE, "utf32": cases.BIG}


def inner_type(key):
    name = NAMES.get(key, key)
    return optional(name) if isinstance(name, str) else {
        "name": "zarrs.optional", "configuration": {"name": name["name"], "configuration": name["configuration"]}}


def inner_data(rng, key, shape):
    return small(rng, key, shape) if key in SMALL else core_data(rng, key, shape)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("key", INNER)
def test_optional(context, rng, tmp_path, key, packed):
    chain = optional_codec([INNER[key], *([cases.gzip()] if packed else [])],
                           [packbits(), cases.gzip()] if packed else ["bytes"])
    data = maybe(rng, inner_data(rng, key, (7, 5)))
    check(context, tmp_path, document(inner_type(key), None, [chain]), data, depth=1, same_bytes=not packed)


# zarrs writes shards of elements that may be missing, and does not read them.

@pytest.mark.parametrize("fill", [None, [-5]])
@pytest.mark.parametrize("shards", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.5, 1.0])
def test_optional_fill(context, rng, tmp_path, fill, shards, missing):
    chain = [optional_codec([cases.LITTLE], [packbits("last_byte")])]
    chain = [cases.sharding((2, 3), chain)] if shards else chain
    made = document(optional("int16"), fill, chain, (9, 7), (4, 3))
    data = maybe(rng, cases.random_data(rng, (9, 7), "i2"), missing=missing)
    data[:4, :3] = np.frombuffer(b"\0\0\0" if fill is None else b"\xfb\xff\1", "V3")[0]
    check(context, tmp_path, made, data, depth=1, same_bytes=not shards, reads=not shards)


@pytest.mark.parametrize("fill", [None, [None], [[7]]])
@pytest.mark.parametrize("shards", [False, True])
def test_optional_nested(context, rng, tmp_path, fill, shards):
    inner = optional("uint8")
    chain = [optional_codec([optional_codec([cases.PLAIN])])]
    chain = [cases.sharding((2, 3), [*chain, cases.CRC])] if shards else chain
    made = document(optional(inner["name"], **inner["configuration"]), fill, chain, (9, 7), (4, 3))
    data = maybe(rng, cases.random_data(rng, (9, 7), "u1"), depth=2)
    data[:4, :3] = np.frombuffer({None: b"\0\0\0", 1: b"\0\0\1", 2: b"\7\1\1"}[
        None if fill is None else 1 if fill == [None] else 2], "V3")[0]
    check(context, tmp_path, made, data, depth=2, same_bytes=not shards, reads=not shards)


def test_optional_thrice(context, rng, tmp_path):
    two = optional("zarrs.optional", name="int16", configuration={})
    made = document(optional(two["name"], **two["configuration"]), [[None]],
                    [optional_codec([optional_codec([optional_codec([cases.BIG])], ["bytes"])])])
    check(context, tmp_path, made, maybe(rng, cases.random_data(rng, (7, 5), "i2"), depth=3), depth=3)


@pytest.mark.parametrize("inner,fill", [("string", None), ("string", ["füll"]), ("bytes", None)])
@pytest.mark.parametrize("data", ["vlen", "zarrs.vlen", "zarrs.vlen_v2"])
@pytest.mark.parametrize("shards", [False, True])
def test_optional_text(tmp_path, inner, fill, data, shards):
    """By the program, whose JSON says what is missing."""
    chain = {"vlen": codec("vlen-utf8" if inner == "string" else "vlen-bytes"), "zarrs.vlen": vlen(),
             "zarrs.vlen_v2": codec("zarrs.vlen_v2")}[data]
    chain = [optional_codec([chain, cases.gzip()])]
    made = document(optional(inner), fill, [cases.sharding((2,), chain)] if shards else chain, (11,), (4,))
    values = [None, "", "a", "zwölf", None, None, "x" * 300, "漢", "\0", None, "e"]
    raw = [v and v.encode() if v else None if v is None else b"" for v in values]
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    zarrs_crate.create(theirs, made)
    zarrs_crate.write(theirs, raw, depth=1)
    shown = [None if v is None else [v] for v in values]
    if inner == "bytes":
        import base64
        shown = [None if v is None else [base64.b64encode(v).decode()] for v in raw]
    assert cat(theirs) == shown
    cases.put_document(ours, made)
    (tmp_path / "d.json").write_text(json.dumps(shown))
    zarrc("import", "--format=json", tmp_path / "d.json", f"{ours}[:]")
    assert cat(ours) == shown
    if not shards:
        assert zarrs_crate.read(ours, None) == raw
        assert zarrs_crate.read(ours, None, [(1, 7)]) == raw[1:7]


def zarrc(*words):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def cat(folder):
    return json.loads(zarrc("cat", "--format=json", folder))


# ---- variable length --------------------------------------------------------------------------

WORDS = [w.encode() for w in ("", "a", "zwölf", "", "x" * 3000, "\0", "漢字", "b", "", "cc", "ddd", "eeee")]
# zarrs drops a chunk whose elements run together to fill values, such as an empty one beside a fill
# value, which it then reads as two fill values: no such neighbours here.
BLOBS = [b"", b"\xff\xfe", b"abc", b"\0" * 50, b"4", b"1", b"22", b"", b"\x80", b"5", b"66", b"7"]
PACKED_INDEX = [cases.BIG, cases.gzip()]
VLEN = {"vlen": None, "zarrs.vlen_v2": codec("zarrs.vlen_v2"), "vlen-array": codec("vlen-array"),
        "32-start": vlen(), "64-end": vlen(kind="uint64", location="end"),
        "32-packed": vlen([cases.PLAIN, cases.zstd()], PACKED_INDEX, location="end"),
        "64-packed": vlen([cases.PLAIN, cases.CRC], [cases.LITTLE, cases.blosc("zstd"), cases.CRC], "uint64"),
        "old": {"name": "zarrs.vlen", "configuration": {
            k: v for k, v in vlen()["configuration"].items() if k != "index_location"}}}


@pytest.mark.parametrize("after", ["", "gzip", "shards"])
@pytest.mark.parametrize("key", VLEN)
@pytest.mark.parametrize("dtype,fill", [("string", ""), ("string", "füll"), ("bytes", []), ("bytes", [1, 255])])
def test_vlen(context, tmp_path, dtype, fill, key, after):
    chain = [VLEN[key] or codec("vlen-utf8" if dtype == "string" else "vlen-bytes")]
    chain += [cases.gzip()] if after == "gzip" else []
    chain = [cases.sharding((2, 1), chain)] if after == "shards" else chain
    filler = fill.encode() if dtype == "string" else bytes(fill)
    items = [*(WORDS if dtype == "string" else BLOBS), *[filler] * 8]
    made = document(dtype, fill, chain, (10, 2), (4, 2))
    check(context, tmp_path, made, items, same_bytes=not after and "packed" not in key)


def split(rng, total, n):
    """n elements of so many bytes together."""
    ends = [0, *sorted(rng.integers(0, total + 1, n - 1)), total]
    return list(zip(ends, ends[1:]))


@pytest.mark.parametrize("after", ["", "gzip"])
@pytest.mark.parametrize("last", [0, 3, 6])
def test_vlen_packed(context, rng, tmp_path, last, after):
    """Spare bits of the last byte are no more elements: the index says how many bytes there are."""
    for total in (*range(21), 4103, 70001):
        raw = bytes(rng.integers(0, 1 << (last + 1), total, "u1"))
        if total > 100:
            raw = raw[:7] + bytes(total - 7)  # compresses well: the input explains little of it
        items = [raw[a:b] for a, b in split(rng, total, 6)]
        chain = vlen([packbits(None, 0, last), *([cases.gzip()] if after else [])])
        made = document("bytes", [255, 255], [chain], (6,), (6,))
        check(context, tmp_path / str(total), made, items, same_bytes=not after)


@pytest.mark.parametrize("front", [[], [cases.transpose(0)]])
@pytest.mark.parametrize("last", [3, 6, 12])
def test_vlen_packed_index(tmp_path, last, front):
    """The same for the offsets, which are as many as there are values."""
    index = packbits(None, 0, last)
    for present in (*range(10), *([300] if last == 12 else [])):
        values = [f"{i % 10}" if i < present else None for i in range(max(present, 9))][::-1]
        chain = optional_codec([*front, vlen([cases.PLAIN], [index])])
        made = document(optional("string"), None, [chain], (len(values),), (len(values),))
        raw = [v and v.encode() for v in values]
        theirs, ours = tmp_path / f"theirs{present}", tmp_path / f"ours{present}"
        zarrs_crate.create(theirs, made)
        zarrs_crate.write(theirs, raw, depth=1)
        shown = [v and [v] for v in values]
        assert cat(theirs) == shown
        cases.put_document(ours, made)
        (tmp_path / "d.json").write_text(json.dumps(shown))
        zarrc("import", "--format=json", tmp_path / "d.json", f"{ours}[:]")
        assert cat(ours) == shown
        assert zarrs_crate.read(ours, None) == raw


@pytest.mark.parametrize("dtype", ["binary", "variable_length_bytes"])
def test_vlen_names(context, tmp_path, dtype):
    made = document(dtype, [] if dtype == "binary" else "AQI=", [codec("vlen-bytes")], (12,), (5,))
    check(context, tmp_path, made, BLOBS)


# ---- codecs ------------------------------------------------------------------------------------

@pytest.mark.parametrize("keep", [0, 1, 3, 7])
@pytest.mark.parametrize("name", ["bitround", "numcodecs.bitround"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "int16", "uint32", "uint64",
                                   "complex64", "complex_bfloat16"])
def test_bitround(context, rng, tmp_path, dtype, name, keep):
    """What rounding makes of numbers; what it made stays as it is, if a bit is kept of it. By the name of
    numcodecs zarrs rounds more than numcodecs does."""
    n = (7, 10)
    if "bfloat16" in dtype:
        data = rng.standard_normal(n).astype(ml_dtypes.bfloat16).view("u2")
    elif dtype.startswith(("int", "uint")):
        data = rng.integers(0, 100, n).astype(dtype)
    else:
        data = rng.standard_normal(n).astype(cases.V3_TYPES["float32" if dtype == "complex64" else dtype][0])
    if dtype.startswith("complex"):
        data = np.ascontiguousarray(data).view(f"V{2 * data.itemsize}")
    made = document(dtype, zero(dtype), [codec(name, keepbits=keep), codec("bytes", endian="little")], data.shape)
    zarrs_crate.create(tmp_path / "t", made)
    zarrs_crate.write(tmp_path / "t", data)
    rounded = zarrs_crate.read(tmp_path / "t", data.dtype).reshape(data.shape)
    if name == "numcodecs.bitround" and ("int" in dtype or dtype.startswith("complex")):
        zarrs_crate.same(context.store(str(tmp_path / "t")).open().read(data.dtype).reshape(-1), rounded)
        return
    ours = context.store()
    array = ours.create(document=made)
    array.write(data)
    zarrs_crate.same(array.read(data.dtype).reshape(-1), rounded)
    assert zarrs_crate.read_chunks(ours) == zarrs_crate.read_chunks(context.store(str(tmp_path / "t")))
    if keep or "int" not in dtype:
        check(context, tmp_path, made, rounded)


@pytest.mark.parametrize("shape", [[12], [-1], [[0], [1]], [[0, 1]], [2, -1, 2], [[0], 3], [2, 2, 3], [1, -1]])
def test_reshape(context, rng, tmp_path, shape):
    data = cases.random_data(rng, (8, 6), "i2")
    chain = [codec("reshape", shape=shape), cases.LITTLE, cases.CRC]
    check(context, tmp_path, document("int16", 5, chain, (8, 6), (4, 3)), data)


@pytest.mark.parametrize("chunks", [(1, 4, 1, 3), (1, 1, 1, 1), (2, 4, 2, 3)])
@pytest.mark.parametrize("more", [[], [cases.transpose(3, 1, 0, 2)]])
def test_squeeze(context, rng, tmp_path, chunks, more):
    data = cases.random_data(rng, (4, 8, 2, 6), "i2")
    made = document("int16", 5, [*more, codec("zarrs.squeeze"), cases.LITTLE], data.shape, chunks)
    check(context, tmp_path, made, data)


@pytest.mark.parametrize("dtype,astype,offset,scale", [
    ("float64", None, 10, 4), ("float32", "<u2", 0, 2), ("float64", "<i4", 1000, 0.5), ("int32", None, 5, 3),
    ("int16", "i2", -3, 1), ("float32", ">f8", 1, 8)])
def test_fixedscaleoffset(context, rng, tmp_path, dtype, astype, offset, scale):
    """Numbers that both sides hold."""
    data = (rng.integers(0, 20, (7, 5)) + offset).astype(cases.V3_TYPES[dtype][0])
    config = {"offset": offset, "scale": scale, "dtype": "<" + cases.V3_TYPES[dtype][0]}
    if astype:
        config["astype"] = astype
    if scale < 1:
        data = (data.astype("i8") // 2 * 2).astype(data.dtype)
    check(context, tmp_path, document(dtype, 10, [codec("numcodecs.fixedscaleoffset", **config), cases.LITTLE]), data)


SUMS = {"crc32c": cases.CRC, "adler32": codec("numcodecs.adler32"), "fletcher32": codec("numcodecs.fletcher32"),
        "adler32-end": codec("numcodecs.adler32", location="end"), "shuffle": codec("numcodecs.shuffle", elementsize=4),
        "shuffle-3": codec("numcodecs.shuffle", elementsize=3)}
STREAMS = {"gzip": cases.gzip(), "zstd": cases.zstd(3), "zstd-sum": cases.zstd(1, True),
           "bz2": codec("numcodecs.bz2", level=5), "zlib": codec("numcodecs.zlib", level=6),
           **{f"blosc-{name}": cases.blosc(name, mode) for name, mode in (
               ("lz4", "shuffle"), ("lz4hc", "bitshuffle"), ("blosclz", "noshuffle"), ("zstd", "bitshuffle"),
               ("zlib", "shuffle"))}}


@pytest.mark.parametrize("shards", [False, True])
@pytest.mark.parametrize("key", [*SUMS, *STREAMS])
def test_bytes_to_bytes(context, rng, tmp_path, key, shards):
    data = rng.integers(0, 1000, (24, 18)).astype("i4")
    chain = [cases.LITTLE, SUMS.get(key) or STREAMS[key]]
    if key == "shuffle-3":
        chain[0] = codec("packbits", padding_encoding="none", last_bit=23)
    chain = [cases.sharding((4, 3), chain)] if shards else chain
    made = document("int32", 5, chain, (24, 18), (12, 9))
    check(context, tmp_path, made, data, same_bytes=key in SUMS and not shards)


def test_chain(context, rng, tmp_path):
    """One of nearly all of them. zarrs' fletcher32 leaves out the last byte of an odd number, and
    what is before a blosc zarrs cannot decode in part."""
    data = rng.integers(0, 50, (12, 8)).astype("u2")
    chain = [cases.transpose(1, 0), codec("reshape", shape=[[0, 1]]), packbits("none", 0, 11), SUMS["shuffle"],
             SUMS["fletcher32"], *(STREAMS[k] for k in ("zlib", "bz2", "gzip", "zstd", "blosc-lz4")),
             SUMS["adler32"], cases.CRC]
    check(context, tmp_path, document("uint16", 5, chain, (12, 8), (6, 4)), data, same_bytes=False, parts=None)


# ---- shards --------------------------------------------------------------------------------------

@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("index", [[cases.LITTLE], [cases.LITTLE, cases.CRC], [cases.BIG, cases.CRC],
                                   [cases.transpose(2, 1, 0), cases.LITTLE, SUMS["fletcher32"]]],
                         ids=["bare", "crc32c", "big", "transposed"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_shards(context, rng, tmp_path, location, index, depth):
    chain = [cases.transpose(1, 0), cases.LITTLE, cases.gzip()]
    for level in range(depth):
        edge = 2 * 2 ** level
        chain = [cases.sharding((edge, edge), chain, index, location)]
    data = rng.integers(0, 4, (40, 24)).astype("f4")
    data[:16, :16] = data[20:30] = 3
    check(context, tmp_path, document("float32", 3.0, chain, (40, 24), (16, 16)), data, same_bytes=False)


FRONTS = {
    "transpose": ([cases.transpose(2, 0, 1)], (3, 1, 4)), "squeeze": ([codec("zarrs.squeeze")], (4, 3)),
    "reshape": ([codec("reshape", shape=[[0, 1], [2]])], (4, 3)), "flat": ([codec("reshape", shape=[-1])], (12,)),
    "both": ([cases.transpose(2, 0, 1), codec("zarrs.squeeze")], (3, 4)),
    "bitround": ([codec("bitround", keepbits=23)], (1, 4, 3)),
    "fixedscaleoffset": ([codec("numcodecs.fixedscaleoffset", scale=1, offset=0, dtype="<f4")], (1, 4, 3))}


@pytest.mark.parametrize("key", FRONTS)
def test_before_shards(context, rng, tmp_path, key):
    front, inner = FRONTS[key]
    chain = [*front, cases.sharding(inner, [cases.LITTLE, cases.gzip()])]
    data = rng.integers(0, 9, (4, 16, 12)).astype("f4")
    data[:2, :8] = 5
    made = document("float32", 5.0, chain, data.shape, (1, 8, 6))
    check(context, tmp_path, made, data, same_bytes=False)


# ---- grids and keys ----------------------------------------------------------------------------

def on_grid(shape, name, codecs, dtype="int16", fill=5, **configuration):
    return {**document(dtype, fill, codecs, shape, shape), "chunk_grid": codec(name, **configuration)}


def on_bounded_grid(shape, chunks, codecs):
    return on_grid(shape, "zarrs.regular_bounded", codecs, chunk_shape=list(chunks))


@pytest.mark.parametrize("shape,chunks", [((7, 10), (4, 3)), ((1, 5), (4, 5)), ((8, 6), (4, 3)), ((5,), (2,))])
@pytest.mark.parametrize("chain", ["plain", "packed", "transposed"])
def test_bounded(context, rng, tmp_path, shape, chunks, chain):
    chains = {"plain": [cases.LITTLE], "packed": [packbits("first_byte", 0, 12), cases.CRC],
              "transposed": [cases.transpose(*reversed(range(len(shape)))), cases.BIG]}
    data = rng.integers(0, 4000, shape).astype("i2")
    check(context, tmp_path, on_bounded_grid(shape, chunks, chains[chain]), data)


def test_bounded_shards(context, rng, tmp_path):
    data = cases.random_data(rng, (10, 12), "i2")
    made = on_bounded_grid((10, 12), (4, 8), [cases.sharding((2, 4), [cases.LITTLE])])
    check(context, tmp_path, made, data, same_bytes=False)


GRIDS = [((9, 12), [[4, 5], [[3, 4]]]), ((9, 12), [[2, 3, 4], 5]), ((10, 7), [[[2, 3], 4], [7]]),
         ((6, 6), [[6], [1, 2, 3]]), ((5,), [[[1, 5]]]), ((8, 4, 3), [[3, 5], 4, [1, 2]])]


@pytest.mark.parametrize("shape,edges", GRIDS, ids=[str(e) for _, e in GRIDS])
@pytest.mark.parametrize("chain", ["plain", "packed", "streams"])
def test_rectilinear(context, rng, tmp_path, shape, edges, chain):
    chains = {"plain": [cases.LITTLE], "packed": [packbits("last_byte", 0, 12)],
              "streams": [cases.transpose(*reversed(range(len(shape)))), cases.LITTLE, cases.gzip(), cases.CRC]}
    data = rng.integers(0, 4000, shape).astype("i2")
    made = on_grid(shape, "rectilinear", chains[chain], kind="inline", chunk_shapes=edges)
    check(context, tmp_path, made, data, same_bytes=chain != "streams")


def test_rectilinear_shards(context, rng, tmp_path):
    data = cases.random_data(rng, (12, 12), "i2")
    made = on_grid((12, 12), "rectilinear", [cases.sharding((2, 3), [cases.LITTLE, cases.CRC], None, "start")],
                   kind="inline", chunk_shapes=[[4, 2, 6], [[6, 2]]])
    check(context, tmp_path, made, data, same_bytes=False)


def test_rectilinear_small(context, rng, tmp_path):
    """Chunks whose packed sizes differ; text in them; elements that may be missing."""
    grid = {"kind": "inline", "chunk_shapes": [[1, 2, 4], [[2, 2], 1]]}
    made = on_grid((7, 5), "rectilinear", [packbits("first_byte")], "float6_e3m2fn", 0, **grid)
    check(context, tmp_path / "a", made, small(rng, "float6_e3m2fn", (7, 5)))
    made = on_grid((7, 5), "rectilinear", [vlen()], "string", "", **grid)
    check(context, tmp_path / "b", made, [b"x" * int(n) for n in rng.integers(0, 9, 35)])
    made = on_grid((7, 5), "rectilinear", [optional_codec([packbits()])], optional("int4"), None, **grid)
    check(context, tmp_path / "c", made, maybe(rng, small(rng, "int4", (7, 5))), depth=1)


KEYS = [codec("default"), codec("default", separator="."), codec("v2"), codec("v2", separator="/"),
        codec("zarrs.default_suffix", suffix=".tif"), codec("zarrs.default_suffix", suffix=".shard.zip", separator=".")]


@pytest.mark.parametrize("key", KEYS, ids=[json.dumps(k) for k in KEYS])
@pytest.mark.parametrize("shape", [(12, 5), (12,), ()])
def test_keys(context, rng, tmp_path, key, shape):
    made = document("int16", 5, [cases.LITTLE], shape, (1, 5, 5)[:len(shape)])
    check(context, tmp_path, {**made, "chunk_key_encoding": key}, cases.random_data(rng, shape, "i2"))


# ---- format 2 ----------------------------------------------------------------------------------

V2 = [
    ("<i2", {}), (">i4", {}), ("<f8", {"order": "F"}), (">f4", {"order": "F"}), ("|b1", {}),
    ("|u1", {"separator": "/"}), ("<c8", {"compressor": {"id": "zlib", "level": 3}}), (">c16", {}),
    ("<i4", {"compressor": {"id": "bz2", "level": 3}}),
    ("<i4", {"compressor": {"id": "gzip", "level": 3}}), ("<i4", {"compressor": {"id": "zstd", "level": 3}}),
    ("<i4", {"compressor": {"id": "zstd", "level": 3, "checksum": True}}),
    ("<f4", {"compressor": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}}),
    ("<f4", {"filters": [{"id": "shuffle", "elementsize": 4}], "compressor": {"id": "zlib", "level": 1}}),
    ("<u4", {"filters": [{"id": "fletcher32"}]}), ("<u4", {"filters": [{"id": "adler32"}]}),
    ("<f4", {"filters": [{"id": "fixedscaleoffset", "scale": 2, "offset": 0, "dtype": "<f4", "astype": "<i2"}]}),
]


@pytest.mark.parametrize("dtype,more", V2, ids=[f"{d} {json.dumps(m)}" for d, m in V2])
def test_v2(context, rng, tmp_path, dtype, more):
    native = np.dtype(dtype[1:])
    data = rng.integers(0, 2 if dtype == "|b1" else 100, (7, 5)).astype(native)
    fill = True if dtype == "|b1" else [5.0, 0.0] if dtype[1] == "c" else 5
    made = cases.document_v2(dtype, fill, (7, 5), (4, 3), **more)
    check(context, tmp_path, made, data, same_bytes=not more.get("compressor"))


@pytest.mark.parametrize("fill", ["NaN", "Infinity", "-Infinity", 0.1])
def test_v2_fill(context, rng, tmp_path, fill):
    data = cases.random_data(rng, (7, 5), "f8")
    data[:4, :3] = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}.get(fill, fill)
    check(context, tmp_path, cases.document_v2("<f8", fill, (7, 5), (4, 3)), data)


# ---- hierarchies -------------------------------------------------------------------------------

def tree(context, folder):
    store = context.store(str(folder), create=True)
    store.create_group("", 3, {"a": 1})
    store.create_group("g", 3, {"b": [1, None]})
    store.create_group("g/h", 3)
    for path in ("x", "g/y", "g/h/z"):
        array = store.create(path, (4, 6), "int4", chunks=(2, 3), attributes={"path": path}, codecs=[packbits()])
        array.write(np.ones((4, 6), "u1"))
    return store


PATHS = {"/x": "array", "/g": "group", "/g/h": "group", "/g/y": "array", "/g/h/z": "array"}


def test_consolidated(context, tmp_path):
    """Each reads the other's, from the root's document alone."""
    tree(context, tmp_path / "ours").consolidate()
    found = json.loads(zarrs_crate.run("nodes", tmp_path / "ours"))
    assert {path: doc["node_type"] for path, doc in found.items()} == PATHS
    for path, doc in found.items():
        real = json.loads((tmp_path / f"ours{path}/zarr.json").read_text())
        assert doc.get("attributes", {}) == real.get("attributes", {})
    tree(context, tmp_path / "theirs")
    with pytest.raises(zarrs_crate.Refusal, match="Consolidated"):
        zarrs_crate.run("nodes", tmp_path / "theirs")
    zarrs_crate.run("consolidate", tmp_path / "theirs")
    store = context.store(str(tmp_path / "theirs"))
    assert store.consolidated_check() == []
    for path in PATHS:
        (tmp_path / f"theirs{path}/zarr.json").unlink()
    root = store.group("")
    assert root.is_consolidated
    assert {"/" + path: kind for path, kind, *_ in root.walk() if path} == PATHS
    np.testing.assert_array_equal(root.open_array("g/h/z").read("u1"), np.ones((4, 6), "u1"))


# ---- what zarrs refuses --------------------------------------------------------------------------

STRUCT = {"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": "int32"}]}}
LACKS = {
    "struct": document(STRUCT, {"a": 1}, [cases.LITTLE]),
    **{name: document(codec(name, length_bytes=2), "AQI=", [cases.PLAIN]) for name in (
        "raw_bytes", "null_terminated_bytes")},
    "optional": document({"name": "optional", "configuration": {"name": "int8", "configuration": {}}}, None,
                         [codec("optional", mask_codecs=[cases.PLAIN], data_codecs=[cases.PLAIN])]),
    "float8_e4m3fn": document("float8_e4m3fn", 0, [cases.PLAIN]),
    "cast_value": document("int16", 0, [codec("cast_value", data_type="int8"), cases.PLAIN]),
    "scale_offset": document("int16", 0, [codec("scale_offset", scale=2), cases.LITTLE]),
    "conditional": document("int16", 0, [cases.LITTLE, codec("conditional", codecs=[cases.gzip()])]),
    "n5_default": document("int16", 0, [codec("n5_default", codecs=[cases.BIG])]),
    **{name: document("int16", 0, [cases.LITTLE, codec(f"numcodecs.{name}")]) for name in (
        "lz4", "lzma", "crc32", "jenkins_lookup3", "base64", "blosc")},
    "delta": document("int16", 0, [codec("numcodecs.delta", dtype="<i2"), cases.LITTLE]),
    "astype": document("int16", 0, [codec("numcodecs.astype", encode_dtype="<i4", decode_dtype="<i2"), cases.LITTLE]),
    "quantize": document("float32", 0, [codec("numcodecs.quantize", digits=1, dtype="<f4"), cases.LITTLE]),
    "packbits": document("bool", False, [codec("numcodecs.packbits"), cases.PLAIN]),
    "suffix": {**document("int16", 0, [cases.LITTLE]), "chunk_key_encoding": codec("suffix", suffix=".x")},
}


@pytest.mark.parametrize("name", LACKS)
def test_zarrs_lacks(tmp_path, name):
    """Where this fails zarrs has learned it, and the row belongs above."""
    with pytest.raises(zarrs_crate.Refusal):
        zarrs_crate.create(tmp_path, LACKS[name])


def test_version():
    manifest = (pathlib.Path(__file__).parents[1] / "oracles/zarrs/Cargo.toml").read_text()
    assert f'version = "={".".join(map(str, zarrs_crate.version()))}"' in manifest
