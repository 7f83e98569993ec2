"""matrix - every data type with every chain of codecs that takes it, for hypothesis.

Chains lose nothing. Where a codec computes, elements are whole numbers from 0 ("tame"), and
every step of the chain keeps in mind how large they are and what the next type holds.
"""
import math
from dataclasses import replace

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

import cases
import strategies
from matrix_types import BITS, IEEE, LABELS, NUMPY, TEXTS, WHOLE, Chunk, codec, types_v2, types_v3, v2_type
from strategies import Case

MOST_CODECS = 32  # the default of zarr_limits.codecs

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


def do_fixed_as_is(draw, at):
    """As do_fixedscaleoffset, but in front of shards: it leaves the fill value as it is, which is
    another number behind the codec, so that missing inner chunks have one."""
    dtype, astype, after = filter_types(draw, at)
    return codec("numcodecs.fixedscaleoffset", offset=0, scale=1, dtype=dtype, astype=astype), after


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


# In front of shards.
ELEMENTWISE = (do_transpose, do_bitround, do_cast, do_scale, do_fixedscaleoffset, do_quantize, do_astype)


# ---- array->bytes, bytes->bytes ----------------------------------------------------------

def draw_order(draw, at):
    return cases.PLAIN if at.item == 1 or at.name.startswith(("complex_float", "opaque")) and at.item == 2 \
        else draw(st.sampled_from([cases.LITTLE, cases.BIG]))


N5 = [name for name in NUMPY if name != "float16"]


def takes_zfp(at):
    if not 1 <= len(at.shape) <= 4:
        return False
    if at.name in ("int32", "int64", "float32", "float64"):
        return True
    return at.high is not None and at.name in WHOLE and at.name not in BITS


def do_bytes(draw, at):
    return draw_order(draw, at)


def do_bits(draw, at):
    config = {"padding_encoding": draw(st.sampled_from(["none", "first_byte", "last_byte"]))}
    if at.high is not None and at.kind in ("int", "uint"):
        least = min(at.high.bit_length() + (at.kind == "int"), BITS.get(at.name, 8 * at.item))
        config["last_bit"] = draw(st.integers(max(0, least - 1), BITS.get(at.name, 8 * at.item) - 1))
    return codec("packbits", **config)


def do_zfp(draw, at):
    if at.name in ("int32", "int64", "float32", "float64") and draw(st.integers(0, 3)):
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


GROWING = ("lzma", "base64", "snappy")  # three of them may exceed what an encoded chunk may have


@st.composite
def shuffles(draw, item, own=None):
    """own: v3, and the bytes of an element are these, which is what is left out means."""
    if own == item and draw(st.booleans()):
        return draw(st.sampled_from([{}, {"elementsize": None}]))
    return {"elementsize": draw(st.sampled_from([d for d in (1, 2, 3, 4, 8) if item % d == 0]))}


@st.composite
def bytes_codecs(draw, item, depth=0, own=None):
    """item: bytes that the length is a multiple of; 1: unknown. own: see shuffles()."""
    found = []
    for _ in range(draw(st.sampled_from([0, 1, 1, 2, 3]))):
        name = draw(st.sampled_from(["gzip", "zstd", "blosc", "crc32c", "snappy", "shuffle", "conditional",
                                     *NUMCODECS]))
        if name in GROWING and sum(f["name"].removeprefix("numcodecs.") in GROWING for f in found) == 2:
            name = "gzip"
        if name == "conditional":
            inside = draw(bytes_codecs(1 if depth else item, depth + 1)) if depth < 3 else []
            bits = draw(st.sampled_from([None, 8, 16, 40]))
            found.append(codec(name, codecs=inside, **({} if bits is None else {"header_bits": bits})))
        elif name == "shuffle":
            found.append(codec("numcodecs.shuffle", **draw(shuffles(item, own))))
        elif name in NUMCODECS:
            found.append(codec("numcodecs." + name, **draw(NUMCODECS[name])))
        else:
            found.append({
                "gzip": cases.gzip(draw(LEVELS)), "crc32c": cases.CRC, "snappy": codec("snappy"),
                "zstd": cases.zstd(draw(st.integers(-3, 5)), draw(st.booleans())),
                "blosc": cases.blosc(draw(st.sampled_from(["lz4", "lz4hc", "blosclz", "zstd", "zlib"])),
                                     draw(st.sampled_from(["noshuffle", "shuffle", "bitshuffle"])),
                                     item, draw(st.integers(0, 9)))}[name])
        if name != "shuffle":
            item = 1
    return found


def do_optional(draw, at, fixed_shape, loose):
    """Its two chains; of the second only the chunk tells how many elements it has."""
    mask = draw(chains(Chunk("bool", 1, at.shape), fixed_shape, 2, loose))  # no shards inside codecs
    values = draw(chains(replace(at.value, shape=[1]), False, 2, True))
    return codec(draw(st.sampled_from(["optional", "zarrs.optional"])), mask_codecs=mask, data_codecs=values)


def do_n5(draw, at):
    inside = [cases.transpose(*range(len(at.shape))[::-1]), cases.PLAIN if at.item == 1 else cases.BIG]
    return codec("n5_default", codecs=inside + draw(bytes_codecs(at.item))[:1])


def do_text(draw, at):
    name = draw(st.sampled_from(["vlen-utf8" if at.name == "string" else "vlen-bytes", "zarrs.vlen_v2", "zarrs.vlen"]))
    if name != "zarrs.vlen":
        return {"name": name}
    kind = draw(st.sampled_from(["uint32", "uint64"]))
    index = [draw(st.sampled_from([cases.LITTLE, cases.BIG])), *draw(bytes_codecs(int(kind[4:]) // 8))]
    return codec(name, index_codecs=index, data_codecs=draw(chains(Chunk("uint8", 1, [1]), False, 2, True)),
                 index_data_type=kind, **draw(st.sampled_from([{}, {"index_location": "start"},
                                                               {"index_location": "end"}])))


def last_codecs(at, fixed_shape, loose):
    """What can make bytes of it."""
    if at.name in ("string", "variable_length_bytes"):
        return [do_text]
    if at.name == "optional":
        return [lambda draw, at: do_optional(draw, at, fixed_shape, loose)]
    found = [do_bytes] * 3
    if at.name in WHOLE or at.name in ("bool", "time") or at.name.startswith("complex"):
        found.append(do_bits)
    if takes_zfp(at) and not loose:
        found += [do_zfp] * 2
    if at.name in N5 and not loose:
        found.append(do_n5)
    return found


@st.composite
def chains(draw, at, fixed_shape, depth=0, loose=False):
    """loose: one dimension, and only the chunk tells its length."""
    codecs, sharded = [], depth < 2 and not loose and draw(st.integers(0, 9)) < (4, 3)[depth]
    for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2, 3]))):
        makers = [m for m in array_codecs(at, fixed_shape) if not (loose and m is do_packbits)]
        if sharded:
            makers = [do_fixed_as_is if m is do_fixedscaleoffset else m for m in makers if m in ELEMENTWISE]
        found, at = draw(st.sampled_from(makers))(draw, at)
        codecs.append(found)
    if sharded:
        inner = [draw(strategies.divisor(n)) for n in at.shape]
        below = draw(chains(replace(at, shape=inner), True, depth + 1))
        index = [draw(st.sampled_from([cases.LITTLE, cases.BIG]))] + ([cases.CRC] if draw(st.booleans()) else [])
        codecs.append(cases.sharding(inner, below, index, draw(st.sampled_from(["start", "end"]))))
        return codecs + (draw(bytes_codecs(1)) if draw(st.integers(0, 4)) == 0 else [])
    last = draw(st.sampled_from(last_codecs(at, fixed_shape, loose)))
    item = at.item if last is do_bytes and at.item < 256 else 1
    own = item if last is do_bytes and at.name in NUMPY and item > 1 else None
    return codecs + [last(draw, at)] + draw(bytes_codecs(item, 0, own))


def count(codecs):
    """Those inside others too: the limit `codecs` is for all of them together."""
    inside = [value for found in codecs for value in found.get("configuration", {}).values()
              if isinstance(value, list) and value and isinstance(value[0], dict) and "name" in value[0]]
    return len(codecs) + sum(map(count, inside))


@st.composite
def cases_v3(draw):
    kind = draw(types_v3())
    shape = draw(strategies.shapes)
    chunks = tuple(draw(st.one_of(st.integers(1, 6), st.sampled_from([4, 6, 8, 12]))) for _ in shape)
    grid = draw(st.sampled_from(["regular"] * 3 + ["rectilinear", "zarrs.regular_bounded"]))
    codecs = draw(chains(replace(kind.chunk, shape=list(chunks)), grid == "regular"))
    assume(count(codecs) <= MOST_CODECS)
    encoding = draw(st.sampled_from([("default", "/"), ("default", "."), ("v2", "."), ("v2", "/")]))
    document = cases.document_v3(kind.data_type, kind.fill_value, codecs, shape, chunks, *encoding)
    sharded = any(found["name"] == "sharding_indexed" for found in codecs)
    unit = strategies.edge_unit(chunks, codecs) if sharded else [1] * len(chunks)
    if shape and grid == "rectilinear":
        edges = [draw(strategies.edge_lists(n, u)) for n, u in zip(shape, unit)]
        document["chunk_grid"] = {"name": grid, "configuration": {"kind": "inline", "chunk_shapes": edges}}
    elif grid == "zarrs.regular_bounded" and all(n % u == 0 for n, u in zip(shape, unit)):
        document["chunk_grid"]["name"] = grid
    return Case(document, kind.dtype, shape, chunks, chunks, kind.pool, kind.fill, levels=kind.levels)


# ---- v2 ----------------------------------------------------------------------------------

def as_filter(found):
    return {"id": found["name"].removeprefix("numcodecs."), **found["configuration"]}


@st.composite
def whole_delta(draw, item):
    """Of any bytes, taken for whole numbers in either order: sums and differences wrap."""
    size = draw(st.sampled_from([n for n in (1, 2, 4, 8) if item % n == 0]))
    dtype = ("|" if size == 1 else draw(st.sampled_from("<>"))) + draw(st.sampled_from("iu")) + str(size)
    return {"id": "delta", "dtype": dtype, **({"astype": dtype} if draw(st.booleans()) else {})}


@st.composite
def bytes_filters(draw, item):
    """What numcodecs has for compressors may be a filter, too, and what computes stand behind it."""
    found = []
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        name = draw(st.sampled_from(["shuffle", "delta", "crc32c", "base64", "fletcher32", "crc32", "adler32",
                                     "jenkins_lookup3", "gzip", "zstd", "blosc", *NUMCODECS]))
        if name in ("shuffle", "delta"):
            found.append({"id": name, **draw(shuffles(item) if name == "shuffle" else whole_delta(item))})
            continue
        found.append(draw(compressors(item, name)))
        item = 1
    return found


@st.composite
def object_filters(draw, at, order):
    """The first filter of objects that are text, bytes or lists; or of text of NumPy's."""
    if at.name == "ragged":
        return {"id": "vlen-array", "dtype": at.value}
    if at.name == "variable_length_bytes":
        return {"id": "vlen-bytes"}
    names = ["vlen-utf8", "categorize"]
    if at.name == "labels":
        names = ["categorize"]
    elif order == "C" or len(at.shape) < 2:
        names += ["json2"] + (["msgpack2"] if at.shape else [])
    name = draw(st.sampled_from(names))
    if name == "categorize":
        labels = draw(st.permutations(LABELS if at.name == "labels" else TEXTS))
        return {"id": name, "labels": list(labels), "dtype": at.value if at.name == "labels" else "|O",
                "astype": draw(st.sampled_from(["|u1", "|i1", "<u2", ">i4", ">u8"]))}
    more = {"json2": [{}, {"ensure_ascii": False, "separators": [" , ", ":"]}, {"encoding": "ascii"}, {"indent": None}],
            "msgpack2": [{}, {"use_bin_type": False, "use_single_float": True}], "vlen-utf8": [{}]}
    return {"id": name, **draw(st.sampled_from(more[name]))}


@st.composite
def compressors(draw, item, name=None):
    name = name or draw(st.sampled_from([None, "gzip", "zstd", "blosc", *NUMCODECS]))
    if name in (None, "crc32c"):
        return name and {"id": name}
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
    if kind.dtype == object or at.name == "labels":
        filters = [draw(object_filters(at, order)), *draw(bytes_filters(1))]
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
                kind.fill if fill is not None or kind.dtype == object else None)
