"""matrix_types - every data type for the matrix, with what its chunks start from: elements to
choose from, a fill value in metadata and in memory.

Elements of a fixed size are NumPy's, those of optional the value's bytes and its mask's. Of
those of any length the model is an object: bytes, or for optional (element,) and None."""
from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

import cases
import strategies

# name: (NumPy type in memory, kind, whole numbers from 0 that it holds exactly)
WHOLE = {
    "int8": ("i1", "int", 127), "int16": ("i2", "int", 2**15 - 1), "int32": ("i4", "int", 2**31 - 1),
    "int64": ("i8", "int", 2**52), "uint8": ("u1", "uint", 255), "uint16": ("u2", "uint", 2**16 - 1),
    "uint32": ("u4", "uint", 2**31 - 1), "uint64": ("u8", "uint", 2**52),
    "float16": ("f2", "float", 2**11), "float32": ("f4", "float", 2**24), "float64": ("f8", "float", 2**52),
    "int2": ("u1", "int", 1), "int4": ("u1", "int", 7), "uint2": ("u1", "uint", 3), "uint4": ("u1", "uint", 15),
    "bfloat16": ("u2", "float", 256), "float8_e3m4": ("u1", "float", 15), "float8_e4m3": ("u1", "float", 16),
    "float8_e4m3b11fnuz": ("u1", "float", 16), "float8_e4m3fn": ("u1", "float", 16),
    "float8_e4m3fnuz": ("u1", "float", 16), "float8_e5m2": ("u1", "float", 8),
    "float8_e5m2fnuz": ("u1", "float", 8), "float6_e2m3fn": ("u1", "float", 7),
    "float6_e3m2fn": ("u1", "float", 8), "float4_e2m1fn": ("u1", "float", 4)}
NUMPY = {name: code for name, (code, _, _) in list(WHOLE.items())[:11]}
BITS = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "float6_e2m3fn": 6, "float6_e3m2fn": 6,
        "float4_e2m1fn": 4}
IEEE = ["float16", "float32", "float64", "bfloat16"]
PAIRS = ["float16", "bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2",
         "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"]
V2_SMALL = ["int2", "int4", "bfloat16", "float8_e3m4", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
            "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn"]
TEXTS = ["", "a", "fü", "漢字", "x" * 300, "\0\"\\"]
LABELS = ["", "a", "f\u00fc", "\u6f22\u5b57", "q\"\\"]
BLOBS = [b"", b"\0", b"\xff\xfe", bytes(range(256)), b"q" * 5000]


def small_patterns(name):
    """Every legal element of a type of one byte."""
    low = np.arange(1 << BITS.get(name, 8), dtype="u1")
    if name in ("int2", "int4"):
        bits = BITS[name]
        low = np.where(low >> (bits - 1) == 1, low | (256 - (1 << bits)), low).astype("u1")
    return low


def tame(name, high):
    """0, 1, 2, ... as elements."""
    values = np.arange(high + 1)
    code, kind, _ = WHOLE[name]
    if name in NUMPY or kind != "float":
        return values.astype(code)
    return values.astype(getattr(ml_dtypes, name)).view(code)


@dataclass
class Chunk:
    """What flows between two codecs: type, bytes of an element, shape, and how large elements
    are; None: any bits."""
    name: str
    item: int
    shape: list
    high: object = None
    value: object = None  # of optional: the values' Chunk

    @property
    def kind(self):
        return WHOLE[self.name][1] if self.name in WHOLE else None


def codec(name, **configuration):
    return {"name": name, "configuration": configuration}


def v2_type(name, draw):
    code = NUMPY[name]
    return ("|" if code.endswith("1") else draw(st.sampled_from("<<>"))) + code


@dataclass
class Type:
    chunk: Chunk
    data_type: object
    dtype: np.dtype
    fill_value: object
    fill: object = None
    pool: object = None
    levels: int = 0  # of optional around elements of any length


def objects(items):
    out = np.empty(len(items), object)
    for i, item in enumerate(items):
        out[i] = item
    return out


def some(pool, dtype, rng, n):
    return cases.random_data(rng, (n,), dtype) if pool is None else pool[rng.integers(0, len(pool), n)]


# ---- v3 ----------------------------------------------------------------------------------

def tame_type(draw):
    name = draw(st.sampled_from(sorted(WHOLE)))
    pool = tame(name, min(WHOLE[name][2], draw(st.sampled_from([1, 7, 15, 100]))))
    fill = draw(st.integers(0, len(pool) - 1))
    return Type(Chunk(name, pool.itemsize, [], len(pool) - 1), name, pool.dtype, fill, pool[fill].tobytes(), pool)


def small_type(draw):
    name = draw(st.sampled_from(sorted(set(WHOLE) - set(NUMPY)) + ["float8_e8m0fnu"]))
    pool = None if name == "bfloat16" else small_patterns(name)
    dtype = np.dtype("u2" if name == "bfloat16" else "u1")
    return Type(Chunk(name, dtype.itemsize, []), name, dtype, 1, None, pool)


def pair_type(draw):
    part = draw(st.sampled_from(PAIRS))
    dtype, pool = np.dtype("V4" if part in ("bfloat16", "float16") else "V2"), None
    if part in BITS:
        bits = small_patterns(part)
        pool = np.stack([bits, bits[::-1]], -1).copy().view("V2").reshape(-1)
    return Type(Chunk("complex_" + part, dtype.itemsize, []), "complex_" + part, dtype, [1, 2.0], None, pool)


def text_type(draw):
    if draw(st.booleans()):
        fill = draw(st.sampled_from(TEXTS))
        return Type(Chunk("string", 1, []), "string", np.dtype(object), fill, fill.encode(),
                    objects([t.encode() for t in TEXTS]))
    return Type(Chunk("variable_length_bytes", 1, []), "variable_length_bytes", np.dtype(object), "AP8=",
                b"\0\xff", objects(BLOBS))


def numpy_type(draw):
    name = draw(st.sampled_from(sorted(strategies.TYPES_V3)))
    data_type, dtype, fill_value, fill = strategies.TYPES_V3[name]
    dtype = np.dtype(dtype)
    plain = not dtype.names and (dtype.kind in "SV?" or dtype.itemsize == 1)
    known = name if name in WHOLE or name in ("bool", "complex64", "complex128") else "opaque"
    return Type(Chunk(known, 1 if plain else dtype.itemsize, []), data_type, dtype, fill_value, fill)


def time_type(draw):
    """A count of any unit, and as many of them as NumPy can say; its generic ones it does not
    turn from one byte order into the other."""
    kind = draw(st.sampled_from("Mm"))
    unit = draw(st.sampled_from("Y M W D h m s ms us ns ps fs as".split()))
    scale = draw(st.sampled_from([1, 1, 10, 2**31 - 1]))
    dtype = np.dtype(f"{kind}8[{scale}{unit}]")
    count = draw(st.sampled_from([0, -1, 2**62, "NaT"]))
    fill = np.array(-2**63 if count == "NaT" else count, "i8").tobytes()
    name = "numpy.datetime64" if kind == "M" else "numpy.timedelta64"
    return Type(Chunk("time", 8, []), {"name": name, "configuration": {"unit": unit, "scale_factor": scale}},
                dtype, count, fill)


def fields(draw, depth):
    """(fields of a struct, its NumPy fields, fill value, the same in memory)"""
    known = {**cases.V3_TYPES, **cases.V3_MORE, "bfloat16": ("bfloat16", "u2", 1.5, b"\xc0\x3f"),
             "float8_e5m2": ("float8_e5m2", "u1", 1, b"\x3c")}
    found, dtypes, fills, raw = [], [], {}, b""
    for name in draw(st.permutations(["a", "b", "\u00fc", "two words"]))[:draw(st.integers(1, 4))]:
        if depth < 3 and draw(st.integers(0, 3)) == 0:
            below, dtype, fill, bits = fields(draw, depth + 1)
            data_type, dtype = {"name": "struct", "configuration": {"fields": below}}, np.dtype(dtype)
        else:
            kind = draw(st.sampled_from(sorted(known)))
            data_type, dtype, fill, bits = known[kind] if len(known[kind]) == 4 else (kind, *known[kind])
        found.append({"name": name, "data_type": data_type})
        dtypes.append((name, dtype))
        fills[name], raw = fill, raw + bits
    return found, dtypes, fills, raw


def struct_type(draw):
    found, dtypes, fill_value, fill = fields(draw, 0)
    dtype = np.dtype(dtypes)
    return Type(Chunk("opaque", dtype.itemsize + 256, []), {"name": "struct", "configuration": {"fields": found}},
                dtype, fill_value, fill)


VALUES = {"tame": tame_type, "small": small_type, "pair": pair_type, "text": text_type, "numpy": numpy_type,
          "time": time_type, "struct": struct_type}


def optional_type(draw, depth=0):
    """A type whose values may be missing; that may be such a type again."""
    kind = draw(st.sampled_from([*VALUES, *(["optional"] if depth < 2 else [])]))
    value = optional_type(draw, depth + 1) if kind == "optional" else VALUES[kind](draw)
    name = draw(st.sampled_from(["optional", "zarrs.optional"]))
    there, inside = draw(st.booleans()), value.data_type
    if not isinstance(inside, dict):
        inside = {"name": inside, **draw(st.sampled_from([{}, {"configuration": {}}]))}
    made = Type(Chunk("optional", 1, [], None, value.chunk), {"name": name, "configuration": inside}, np.dtype(object),
                [value.fill_value] if there else None)
    if value.dtype == object:
        made.levels = value.levels + 1
        made.fill = (value.fill,) if there else None
        made.pool = objects([None, made.fill, *((item,) for item in value.pool)])
        return made
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    made.dtype = np.dtype(f"V{value.dtype.itemsize + 1}")
    raw, n = some(value.pool, value.dtype, rng, 24).tobytes(), value.dtype.itemsize
    there_is = [raw[i * n:(i + 1) * n] + b"\1" for i in range(24)]
    missing = bytes(made.dtype.itemsize)
    made.pool = np.frombuffer(b"".join([*there_is, *[missing] * 12]), made.dtype)
    if value.fill is not None or not there:
        made.fill = value.fill + b"\1" if there else missing
    return made


@st.composite
def types_v3(draw):
    kind = draw(st.sampled_from(["tame", "tame", "tame", "numpy", "small", "pair", "text", "text", "time",
                                 "struct", "optional", "optional"]))
    return optional_type(draw) if kind == "optional" else VALUES[kind](draw)


# ---- v2 ----------------------------------------------------------------------------------

@st.composite
def types_v2(draw):
    """(Type, the byte order's letter)."""
    kind = draw(st.sampled_from(["tame", "tame", "tame", "numpy", "numpy", "small", "text", "text", "labels",
                                 "ragged"]))
    if kind == "tame":
        name = draw(st.sampled_from(sorted(NUMPY)))
        pool = tame(name, min(WHOLE[name][2], draw(st.sampled_from([1, 7, 15, 100]))))
        fill = draw(st.integers(0, len(pool) - 1))
        return Type(Chunk(name, pool.itemsize, [], len(pool) - 1), v2_type(name, draw), pool.dtype, fill,
                    pool[fill].tobytes(), pool)
    if kind == "small":
        name = draw(st.sampled_from(V2_SMALL))
        dtype = np.dtype("u2" if name == "bfloat16" else "u1")
        return Type(Chunk(name, dtype.itemsize, []), name, dtype, 1, None,
                    None if name == "bfloat16" else small_patterns(name))
    if kind == "text":
        return replace(text_type(draw), data_type="|O")
    if kind == "labels":
        stored = draw(st.sampled_from(["<U3", "<U3", ">U3"]))
        return Type(Chunk("labels", 12, [], None, stored), stored, np.dtype("U3"), "f\u00fc", "f\u00fc\0".encode("utf-32-le"),
                    np.array(LABELS, "U3"))
    if kind == "ragged":
        stored = draw(st.sampled_from(["<i4", ">i2", "|u1", ">f8", "<c16", "|b1", ">U2", "<M8[s]"]))
        dtype = np.dtype(stored).newbyteorder("=")
        rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        pool = [cases.random_data(rng, (n,), dtype).tobytes() for n in (0, 1, 2, 9, 300)]
        return Type(Chunk("ragged", 1, [], None, stored), "|O", np.dtype(object),
                    draw(st.sampled_from([0, None, "", []])), b"", objects(pool))
    name = draw(st.sampled_from(sorted([*strategies.TYPES_V2, *cases.V2_STRUCTS])))
    if name in cases.V2_STRUCTS:
        data_type, dtype, fill = cases.V2_STRUCTS[name]
    else:
        data_type, dtype, fill = name, np.dtype(name).newbyteorder("="), strategies.TYPES_V2[name]
    known = next((n for n, code in NUMPY.items() if dtype == np.dtype(code)), "bool" if dtype == bool else "opaque")
    return Type(Chunk(known, dtype.itemsize, []), data_type, dtype, fill)


