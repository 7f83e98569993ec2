"""matrix - every data type with every chain of codecs that takes it, for hypothesis.

Chains lose nothing. Where a codec computes, elements are whole numbers from 0 ("tame"), and
every step of the chain keeps in mind how large they are and what the next type holds.
"""
import math
from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

import cases
import strategies
from strategies import Case

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
PAIRS = ["bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2",
         "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"]
V2_SMALL = ["int2", "int4", "bfloat16", "float8_e3m4", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
            "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn"]
TEXTS = ["", "a", "fü", "漢字", "x" * 300, "\0\"\\"]
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

    @property
    def kind(self):
        return WHOLE[self.name][1] if self.name in WHOLE else None


def codec(name, **configuration):
    return {"name": name, "configuration": configuration}


# ---- array->array ------------------------------------------------------------------------

def do_transpose(draw, at):
    by = draw(strategies.permutations(len(at.shape)))
    return cases.transpose(*by), replace(at, shape=[at.shape[d] for d in by])


def do_reshape(draw, at):
    n = math.prod(at.shape)
    how = draw(st.sampled_from(["flat", "rest", "split", "merge"]))
    shape, spelled = [n], [n]
    if how == "rest":
        spelled = [-1]
    elif how == "split":
        d = draw(strategies.divisor(n))
        shape, spelled = [d, n // d], [d, -1]
    elif how == "merge" and len(at.shape) > 1:
        cut = draw(st.integers(1, len(at.shape) - 1))
        shape = [math.prod(at.shape[:cut]), *at.shape[cut:]]
        spelled = [list(range(cut)), *([d] for d in range(cut, len(at.shape)))]
    return codec("reshape", shape=spelled), replace(at, shape=shape)


def do_squeeze(draw, at):
    return codec("zarrs.squeeze"), replace(at, shape=[n for n in at.shape if n != 1] or [1])


def do_packbits(draw, at):
    n = math.prod(at.shape)
    return codec("numcodecs.packbits"), Chunk("uint8", 1, [1 + n // 8 + (n % 8 != 0)])


def do_bitround(draw, at):
    return codec("bitround", keepbits=draw(st.integers(at.high.bit_length(), 23))), at


def wider(draw, at, names):
    fit = [n for n in names if WHOLE[n][2] >= at.high]
    name = draw(st.sampled_from(fit))
    return name, replace(at, name=name, item=np.dtype(WHOLE[name][0]).itemsize)


def do_cast(draw, at):
    name, after = wider(draw, at, sorted(WHOLE))
    more = draw(st.sampled_from([{}, {"rounding": "towards-zero"}, {"out_of_range": "clamp"}]))
    return codec("cast_value", data_type=name, **more), after


def do_scale(draw, at):
    scale = draw(st.integers(1, max(1, WHOLE[at.name][2] // max(1, at.high))).filter(lambda n: n < 100))
    if at.kind == "float" and at.high > 1:
        scale = 2 if scale > 1 and at.high * 2 <= WHOLE[at.name][2] else 1
    return codec("scale_offset", scale=scale), replace(at, high=at.high * scale)


def v2_type(name, draw):
    code = NUMPY[name]
    return ("|" if code.endswith("1") else draw(st.sampled_from("<<>"))) + code


def filter_types(draw, at):
    """Of a filter's two sides."""
    name, after = wider(draw, at, sorted(NUMPY)) if at.high is not None else (at.name, at)
    return v2_type(at.name, draw), v2_type(name, draw), after


def do_delta(draw, at):
    spelled = v2_type(at.name, draw)
    signed = [n for n in NUMPY if WHOLE[n][1] != "uint" and WHOLE[n][2] >= WHOLE[at.name][2]]
    after = replace(at, high=None)
    config = {"dtype": spelled}
    if at.high is not None and at.kind != "uint" and draw(st.booleans()):
        name = draw(st.sampled_from(signed))
        config["astype"] = v2_type(name, draw)
        after = replace(after, name=name, item=np.dtype(NUMPY[name]).itemsize)
    return codec("numcodecs.delta", **config), after


def do_fixedscaleoffset(draw, at):
    scale = draw(st.sampled_from([1, 2, 2.0]))
    dtype, astype, after = filter_types(draw, replace(at, high=int(at.high * scale)))
    return codec("numcodecs.fixedscaleoffset", offset=0, scale=scale, dtype=dtype, astype=astype), after


def do_quantize(draw, at):
    floats = sorted(n for n in NUMPY if WHOLE[n][1] == "float")
    name, after = wider(draw, at, floats)
    digits = 1 if at.name == "float16" else draw(st.integers(1, 3))  # times 2^10 it overflows
    return codec("numcodecs.quantize", digits=digits, dtype=v2_type(at.name, draw),
                 astype=v2_type(name, draw)), after


def do_astype(draw, at):
    decoded, encoded, after = filter_types(draw, at)
    return codec("numcodecs.astype", encode_dtype=encoded, decode_dtype=decoded), after


def filters_for(at):
    """numcodecs' filters that compute, in either format."""
    found = []
    if at.name in NUMPY:
        if at.kind != "float" or at.high is not None:
            found.append(do_delta)
        if at.high is not None:
            found += [do_astype]
            if at.high * 2 <= min(WHOLE[at.name][2], 2**20):
                found.append(do_fixedscaleoffset)
            if at.kind == "float":
                found.append(do_quantize)
    return found


def array_codecs(at, fixed_shape):
    found = [do_transpose] + ([do_reshape, do_squeeze] if fixed_shape else []) + filters_for(at)
    if at.name == "bool":
        found.append(do_packbits)
    if at.high is not None and at.name in WHOLE:
        found += [do_cast, do_scale]
        whole = at.kind != "float" and at.name not in BITS
        if (at.name in IEEE or whole) and at.high.bit_length() <= 23:
            found.append(do_bitround)
    return found


# ---- array->bytes, bytes->bytes ----------------------------------------------------------

def order_of(draw, at):
    return cases.PLAIN if at.item == 1 or at.name.startswith(("complex_float", "opaque")) and at.item == 2 \
        else draw(st.sampled_from([cases.LITTLE, cases.BIG]))


def takes_zfp(at):
    if not 1 <= len(at.shape) <= 4 or at.name in ("opaque", "bool"):
        return False
    if at.name in ("int32", "int64", "float32", "float64"):
        return True
    return at.high is not None and at.name in WHOLE and at.name not in BITS


def do_bytes(draw, at):
    return order_of(draw, at)


def do_bits(draw, at):
    config = {"padding_encoding": draw(st.sampled_from(["none", "first_byte", "last_byte"]))}
    if at.high is not None and at.kind in ("int", "uint"):
        least = min(at.high.bit_length() + (at.kind == "int"), BITS.get(at.name, 8 * at.item))
        config["last_bit"] = draw(st.integers(max(0, least - 1), BITS.get(at.name, 8 * at.item) - 1))
    return codec("packbits", **config)


def do_zfp(draw, at):
    if at.name in ("int32", "int64", "float32", "float64") and draw(st.booleans()):
        return codec("numcodecs.zfpy", mode=5)
    return codec("zfp", mode="reversible")


@st.composite
def lzma(draw):
    return draw(st.sampled_from([
        {"preset": 0}, {"format": 2, "preset": 0}, {"format": 3, "filters": [{"id": 0x21, "preset": 0}]},
        {"format": 3, "filters": [{"id": 3, "dist": 2}, {"id": 0x21, "preset": 0}]}]))


LEVELS = st.sampled_from([1, 6])
# numcodecs' id: its configurations
NUMCODECS = {
    "zlib": st.builds(lambda n: {"level": n}, LEVELS), "bz2": st.builds(lambda n: {"level": n}, LEVELS),
    "lz4": st.builds(lambda n: {"acceleration": n}, st.integers(1, 9)), "lzma": lzma(),
    "base64": st.just({}), "fletcher32": st.just({}),
    "crc32": st.sampled_from([{}, {"location": "end"}]), "adler32": st.sampled_from([{}, {"location": "end"}]),
    "jenkins_lookup3": st.builds(lambda n: {"initval": n}, st.integers(0, 9))}


@st.composite
def shuffles(draw, item):
    return {"elementsize": draw(st.sampled_from([d for d in (1, 2, 3, 4, 8) if item % d == 0]))}


@st.composite
def bytes_codecs(draw, item):
    """item: bytes that the length is a multiple of; 1: unknown."""
    found = []
    for _ in range(draw(st.sampled_from([0, 1, 1, 2, 3]))):
        name = draw(st.sampled_from(["gzip", "zstd", "blosc", "crc32c", "shuffle", *NUMCODECS]))
        if name == "shuffle":
            found.append(codec("numcodecs.shuffle", **draw(shuffles(item))))
        elif name in NUMCODECS:
            found.append(codec("numcodecs." + name, **draw(NUMCODECS[name])))
        else:
            found.append({
                "gzip": cases.gzip(draw(LEVELS)), "crc32c": cases.CRC,
                "zstd": cases.zstd(draw(st.integers(-3, 5)), draw(st.booleans())),
                "blosc": cases.blosc(draw(st.sampled_from(["lz4", "lz4hc", "blosclz", "zstd", "zlib"])),
                                     draw(st.sampled_from(["noshuffle", "shuffle", "bitshuffle"])),
                                     item, draw(st.integers(0, 9)))}[name])
        if name != "shuffle":
            item = 1
    return found


@st.composite
def chains(draw, at, fixed_shape, depth=0):
    codecs, sharded = [], depth < 2 and draw(st.integers(0, 9)) < (4, 3)[depth]
    few = sharded and draw(st.integers(0, 9)) > 0  # see REFUSED in twins.py
    for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2, 3]))):
        makers = [do_transpose] if few else array_codecs(at, fixed_shape)
        if sharded:  # of what the library has not, what keeps type and shape is refused plainly
            makers = [m for m in makers if m in (do_transpose, do_bitround, do_scale)]
        found, at = draw(st.sampled_from(makers))(draw, at)
        codecs.append(found)
    if sharded:
        inner = [draw(strategies.divisor(n)) for n in at.shape]
        below = draw(chains(replace(at, shape=inner), True, depth + 1))
        index = [draw(st.sampled_from([cases.LITTLE, cases.BIG]))] + ([cases.CRC] if draw(st.booleans()) else [])
        codecs.append(cases.sharding(inner, below, index, draw(st.sampled_from(["start", "end"]))))
        return codecs + (draw(bytes_codecs(1)) if draw(st.integers(0, 4)) == 0 else [])
    if at.name in ("string", "variable_length_bytes"):
        return codecs + [{"name": "vlen-utf8" if at.name == "string" else "vlen-bytes"}] + draw(bytes_codecs(1))
    kinds = [do_bytes] * 3 + ([do_bits] if at.name in WHOLE or at.name == "bool" else []) + \
        ([do_zfp] if takes_zfp(at) else [])
    last = draw(st.sampled_from(kinds))
    item = at.item if last is do_bytes and at.item < 256 else 1
    return codecs + [last(draw, at)] + draw(bytes_codecs(item))


# ---- types -------------------------------------------------------------------------------

@dataclass
class Type:
    chunk: Chunk
    data_type: object
    dtype: np.dtype
    fill_value: object
    fill: object = None
    pool: object = None


def objects(items):
    out = np.empty(len(items), object)
    out[:] = items
    return out


@st.composite
def types_v3(draw):
    kind = draw(st.sampled_from(["tame", "tame", "tame", "numpy", "numpy", "small", "pair", "text"]))
    if kind == "tame":
        name = draw(st.sampled_from(sorted(WHOLE)))
        pool = tame(name, min(WHOLE[name][2], draw(st.sampled_from([1, 7, 15, 100]))))
        fill = draw(st.integers(0, len(pool) - 1))
        return Type(Chunk(name, pool.itemsize, [], len(pool) - 1), name, pool.dtype, fill,
                    pool[fill].tobytes(), pool)
    if kind == "small":
        name = draw(st.sampled_from(sorted(set(WHOLE) - set(NUMPY)) + ["float8_e8m0fnu"]))
        pool = None if name == "bfloat16" else small_patterns(name)
        dtype = np.dtype("u2" if name == "bfloat16" else "u1")
        return Type(Chunk(name, dtype.itemsize, []), name, dtype, 1, None, pool)
    if kind == "pair":
        part = draw(st.sampled_from(PAIRS))
        dtype = np.dtype("V4" if part == "bfloat16" else "V2")
        pool = None
        if part in BITS:
            bits = small_patterns(part)
            pool = np.stack([bits, bits[::-1]], -1).copy().view("V2").reshape(-1)
        return Type(Chunk("complex_" + part, dtype.itemsize, []), "complex_" + part, dtype, [1, 2.0], None, pool)
    if kind == "text":
        if draw(st.booleans()):
            fill = draw(st.sampled_from(TEXTS))
            return Type(Chunk("string", 1, []), "string", np.dtype(object), fill, fill.encode(),
                        objects([t.encode() for t in TEXTS]))
        return Type(Chunk("variable_length_bytes", 1, []), "variable_length_bytes", np.dtype(object), "AP8=",
                    b"\0\xff", objects(BLOBS))
    name = draw(st.sampled_from(sorted(strategies.TYPES_V3)))
    data_type, dtype, fill_value, fill = strategies.TYPES_V3[name]
    dtype = np.dtype(dtype)
    plain = not dtype.names and (dtype.kind in "SV?" or dtype.itemsize == 1)
    known = name if name in WHOLE or name in ("bool", "complex64", "complex128") else "opaque"
    return Type(Chunk(known, 1 if plain else dtype.itemsize, []), data_type, dtype, fill_value, fill)


@st.composite
def cases_v3(draw):
    kind = draw(types_v3())
    shape = draw(strategies.shapes)
    chunks = tuple(draw(st.one_of(st.integers(1, 6), st.sampled_from([4, 6, 8, 12]))) for _ in shape)
    grid = draw(st.sampled_from(["regular"] * 3 + ["rectilinear", "zarrs.regular_bounded"]))
    codecs = draw(chains(replace(kind.chunk, shape=list(chunks)), grid == "regular"))
    encoding = draw(st.sampled_from([("default", "/"), ("default", "."), ("v2", "."), ("v2", "/")]))
    document = cases.document_v3(kind.data_type, kind.fill_value, codecs, shape, chunks, *encoding)
    sharded = any(found["name"] == "sharding_indexed" for found in codecs)
    unit = strategies.unit_of(chunks, codecs) if sharded else [1] * len(chunks)
    if shape and grid == "rectilinear":
        edges = [draw(strategies.edge_lists(n, u)) for n, u in zip(shape, unit)]
        document["chunk_grid"] = {"name": grid, "configuration": {"kind": "inline", "chunk_shapes": edges}}
    elif grid == "zarrs.regular_bounded" and all(n % u == 0 for n, u in zip(shape, unit)):
        document["chunk_grid"]["name"] = grid
    return Case(document, kind.dtype, shape, chunks, chunks, kind.pool, kind.fill)


# ---- v2 ----------------------------------------------------------------------------------

@st.composite
def types_v2(draw):
    """(Type, the byte order's letter)."""
    kind = draw(st.sampled_from(["tame", "tame", "tame", "numpy", "numpy", "small", "text"]))
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
        if draw(st.booleans()):
            fill = draw(st.sampled_from(TEXTS))
            return Type(Chunk("string", 1, []), "|O", np.dtype(object), fill, fill.encode(),
                        objects([t.encode() for t in TEXTS]))
        return Type(Chunk("variable_length_bytes", 1, []), "|O", np.dtype(object), "AP8=", b"\0\xff",
                    objects(BLOBS))
    name = draw(st.sampled_from(sorted([*strategies.TYPES_V2, *cases.V2_STRUCTS])))
    if name in cases.V2_STRUCTS:
        data_type, dtype, fill = cases.V2_STRUCTS[name]
    else:
        data_type, dtype, fill = name, np.dtype(name).newbyteorder("="), strategies.TYPES_V2[name]
    known = next((n for n, code in NUMPY.items() if dtype == np.dtype(code)), "bool" if dtype == bool else "opaque")
    return Type(Chunk(known, dtype.itemsize, []), data_type, dtype, fill)


def as_filter(found):
    return {"id": found["name"].removeprefix("numcodecs."), **found["configuration"]}


@st.composite
def bytes_filters(draw, item):
    found = []
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        name = draw(st.sampled_from(["shuffle", "crc32c", "base64", "fletcher32", "crc32", "adler32",
                                     "jenkins_lookup3"]))
        config = {} if name == "crc32c" else draw(shuffles(item) if name == "shuffle" else NUMCODECS[name])
        found.append({"id": name, **config})
        item = item if name == "shuffle" else 1
    return found


@st.composite
def compressors(draw, item):
    name = draw(st.sampled_from([None, "gzip", "zstd", "blosc", *NUMCODECS]))
    if name is None:
        return None
    if name == "blosc":
        return {"id": name, "cname": draw(st.sampled_from(["lz4", "zstd", "blosclz"])), "clevel": 5,
                "shuffle": draw(st.integers(-1, 2)), "blocksize": 0}
    config = {"level": draw(LEVELS)} if name in ("gzip", "zstd") else draw(NUMCODECS[name])
    return {"id": name, **config}


@st.composite
def cases_v2(draw):
    kind = draw(types_v2())
    shape = draw(strategies.shapes)
    chunks = tuple(draw(st.integers(1, 6)) for _ in shape)
    at, filters, order = replace(kind.chunk, shape=list(chunks)), [], draw(st.sampled_from("CF"))
    compressor = draw(compressors(at.item))
    if kind.dtype == object:
        filters = [{"id": "vlen-utf8" if at.name == "string" else "vlen-bytes"}]
    elif at.name in ("int32", "int64", "float32", "float64") and 1 <= len(shape) <= 4 and order == "C" and \
            kind.data_type[0] == "<" and draw(st.integers(0, 5)) == 0:
        compressor = {"id": "zfpy", "mode": 5, "tolerance": -1, "rate": -1, "precision": -1}
    elif at.name == "bool" and draw(st.booleans()):
        filters = [{"id": "packbits"}, *draw(bytes_filters(1))]
    else:
        spelled = kind.data_type
        for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
            makers = filters_for(at) if isinstance(spelled, str) else []
            if not makers:
                break
            made, at = draw(st.sampled_from(makers))(draw, at)
            made = as_filter(made)
            side = "decode_dtype" if made["id"] == "astype" else "dtype"
            made[side] = spelled
            spelled = made.get("encode_dtype" if made["id"] == "astype" else "astype", spelled)
            filters.append(made)
        if at.high is not None and at.kind == "float" and spelled[0] == "<" and draw(st.booleans()):
            filters.append({"id": "bitround", "keepbits": draw(st.integers(at.high.bit_length(), 10))})
        filters += draw(bytes_filters(at.item if at.item < 256 else 1))
    fill = draw(st.sampled_from([kind.fill_value, None])) if kind.dtype != object else kind.fill_value
    document = cases.document_v2(kind.data_type, fill, shape, chunks, order, compressor,
                                 filters or None, draw(st.sampled_from("./")))
    return Case(document, kind.dtype, shape, chunks, chunks, kind.pool,
                kind.fill if fill is not None else None)
