"""strategies - random arrays, codec chains, selections and layouts for hypothesis.

A selection comes as three things that mean the same: a maker of a zarr_selection, the flat
C-order indexes of the selected elements in the result's shape, and its text for messages.
"""
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

import cases
from zarrc_selection import Selection

TYPES_V3 = {**{name: (name, *rest) for name, rest in cases.V3_TYPES.items()}, **cases.V3_MORE,
            **cases.V3_STRUCTS}
TYPES_V2 = {
    "|b1": False, "|i1": -3, "|u1": 9, "<i2": 0, ">i2": 5, "<u4": 2**32 - 1, ">i4": 0, "<i8": -1,
    ">u8": 2**64 - 1, "<f2": 0.5, ">f4": "NaN", "<f8": -0.0, "<c8": [0.0, 1.0], ">c16": [0.0, 0.0],
    "|S3": "YWIA", "<U2": "x", ">U1": "", "|V3": "AAAA", "<M8[s]": "NaT", ">m8[us]": 4}


@dataclass
class Case:
    document: dict
    dtype: np.dtype
    shape: tuple
    chunks: tuple  # the unit of writing
    inner: tuple   # the unit of reading
    pool: object = None        # the elements to choose from; None: any
    fill: object = None        # the fill value's bytes, where they are known
    peer_dtype: object = None  # what zarr-python's elements are made to be
    levels: int = 0            # of optional around elements of any length

    def values(self, rng, shape):
        if self.pool is None:
            return cases.random_data(rng, shape, self.dtype)
        values = np.empty(shape, self.dtype)
        values[...] = self.pool[rng.integers(0, len(self.pool), shape)]
        return values

    def __repr__(self):
        return f"Case({self.document})"


def permutations(rank):
    return st.permutations(range(rank)).map(list)


@st.composite
def divisor(draw, n):
    return draw(st.sampled_from([d for d in range(1, n + 1) if n % d == 0]))


@st.composite
def bytes_codecs(draw, itemsize):
    compress = [cases.gzip(draw(st.integers(0, 9))), cases.zstd(draw(st.integers(-3, 5)), draw(st.booleans())),
                cases.CRC,
                cases.blosc(draw(st.sampled_from(["lz4", "lz4hc", "blosclz", "zstd", "zlib"])),
                            draw(st.sampled_from(["noshuffle", "shuffle", "bitshuffle"])), itemsize,
                            draw(st.integers(0, 9)))]
    return draw(st.lists(st.sampled_from(compress), max_size=2))


@st.composite
def chains(draw, shape, one_byte, itemsize, depth=0):
    """(codecs, innermost chunk shape in the order of the array's dimensions)."""
    codecs, order = [], list(range(len(shape)))
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]) if shape else st.just(0))):
        by = draw(permutations(len(shape)))
        codecs.append(cases.transpose(*by))
        order = [order[d] for d in by]
    seen = [shape[d] for d in order]
    if depth < 2 and draw(st.integers(0, 9)) < (5 if depth == 0 else 3):
        inner = [draw(divisor(n)) for n in seen]
        below, innermost = draw(chains(inner, one_byte, itemsize, depth + 1))
        index = [draw(st.sampled_from([cases.LITTLE, cases.BIG]))]
        if draw(st.booleans()):
            index.append(cases.CRC)
        codecs.append(cases.sharding(inner, below, index, draw(st.sampled_from(["start", "end"]))))
        if draw(st.integers(0, 4)) == 0:
            codecs += draw(bytes_codecs(itemsize))
        seen = innermost
    else:
        codecs.append(cases.PLAIN if one_byte else draw(st.sampled_from([cases.LITTLE, cases.BIG])))
        codecs += draw(bytes_codecs(itemsize))
    inner = [0] * len(shape)
    for place, d in enumerate(order):
        inner[d] = seen[place]
    return codecs, inner


shapes = st.lists(st.one_of(st.integers(1, 9), st.integers(0, 12)), max_size=4).map(tuple)


def edge_unit(chunks, codecs):
    """What edges of chunks must be multiples of: the outermost inner chunk's, or 1."""
    order = list(range(len(chunks)))
    for codec in codecs:
        if codec["name"] == "transpose":
            order = [order[d] for d in codec["configuration"]["order"]]
        elif codec["name"] == "sharding_indexed":
            unit = [0] * len(chunks)
            for place, d in enumerate(order):
                unit[d] = codec["configuration"]["chunk_shape"][place]
            return unit
    return [1] * len(chunks)


@st.composite
def edge_lists(draw, length, unit):
    """Edges that reach the end of a dimension, or beyond, spelled in any way."""
    if draw(st.integers(0, 4)) == 0:
        return unit * draw(st.integers(1, 3))
    spelled, end = [], 0
    while end < length or not spelled:
        edge, count = unit * draw(st.integers(1, 4)), draw(st.sampled_from([1, 1, 1, 2, 3]))
        spelled.append([edge, count] if count > 1 or draw(st.booleans()) else edge)
        end += edge * count
    if draw(st.integers(0, 5)) == 0:
        spelled.append(unit * draw(st.integers(1, 4)))
    return spelled


@st.composite
def cases_v3(draw):
    name = draw(st.sampled_from(sorted(TYPES_V3)))
    data_type, numpy_type, fill, _ = TYPES_V3[name]
    numpy_type = np.dtype(numpy_type)
    shape = draw(shapes)
    chunks = tuple(draw(st.one_of(st.integers(1, 6), st.sampled_from([4, 6, 8, 12]))) for _ in shape)
    one_byte = not numpy_type.names and (numpy_type.kind in "SV?" or numpy_type.itemsize == 1)
    codecs, inner = draw(chains(list(chunks), one_byte, numpy_type.itemsize))
    encoding = draw(st.sampled_from([("default", "/"), ("default", "."), ("v2", "."), ("v2", "/")]))
    document = cases.document_v3(data_type, fill, codecs, shape, chunks, *encoding)
    if shape and draw(st.integers(0, 2)) == 0:
        edges = [draw(edge_lists(n, u)) for n, u in zip(shape, edge_unit(chunks, codecs))]
        document["chunk_grid"] = {"name": "rectilinear", "configuration": {
            "kind": "inline", "chunk_shapes": edges}}
    elif draw(st.integers(0, 9)) == 0 and all(
            n % u == 0 for n, u in zip(shape, edge_unit(chunks, codecs))):
        document["chunk_grid"]["name"] = "zarrs.regular_bounded"
    return Case(document, numpy_type, shape, chunks, tuple(inner))


@st.composite
def cases_v2(draw):
    name = draw(st.sampled_from(sorted([*TYPES_V2, *cases.V2_STRUCTS])))
    if name in cases.V2_STRUCTS:
        name, numpy_type, fill = cases.V2_STRUCTS[name]
    else:
        numpy_type, fill = np.dtype(name).newbyteorder("="), TYPES_V2[name]
    shape = draw(shapes)
    chunks = tuple(draw(st.integers(1, 6)) for _ in shape)
    compressor = draw(st.sampled_from([
        None, {"id": "zlib", "level": 1}, {"id": "gzip", "level": 2}, {"id": "zstd", "level": 1},
        {"id": "lz4", "acceleration": 1},
        {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": draw(st.integers(-1, 2)), "blocksize": 0}]))
    filters = None
    if numpy_type.kind in "iu" and draw(st.booleans()):
        filters = draw(st.lists(st.sampled_from([
            {"id": "shuffle", "elementsize": numpy_type.itemsize}, {"id": "delta", "dtype": name}]),
            min_size=1, max_size=2, unique_by=lambda f: f["id"]))
        filters.sort(key=lambda f: f["id"])  # a difference of shuffled bytes has no meaning
    fill = draw(st.sampled_from([fill, None]))
    document = cases.document_v2(name, fill, shape, chunks, draw(st.sampled_from("CF")), compressor,
                                 filters, draw(st.sampled_from("./")))
    return Case(document, numpy_type, shape, chunks, chunks)


# ---- selections -----------------------------------------------------------------------------

@dataclass
class Choice:
    make: object     # () -> Selection
    flat: np.ndarray  # flat indexes, in the result's shape
    text: str

    def __repr__(self):
        return self.text


def flat_indexes(shape):
    return np.arange(int(np.prod(shape, dtype=object)), dtype=np.int64).reshape(shape)


def by_dimension(shape, items):
    """What numpy gives when each dimension is indexed on its own."""
    found = flat_indexes(shape)
    for d in reversed(range(len(items))):
        item = items[d]
        if isinstance(item, slice):
            found = found[(slice(None),) * d + (item,)]
        elif isinstance(item, int):
            found = found.take(item, axis=d)
        else:
            item = np.asarray(item)
            item = np.flatnonzero(item) if item.dtype == bool else item.astype(np.int64)
            found = found[(slice(None),) * d + (item,)]
    return found


@st.composite
def slices(draw, n):
    bound = st.one_of(st.none(), st.integers(-n - 2, n + 2))
    step = draw(st.one_of(st.none(), st.sampled_from([1, 1, 2, 3, 7, -1, -2, -5])))
    return slice(draw(bound), draw(bound), step)


@st.composite
def basic_items(draw, shape):
    n_dims = draw(st.integers(0, len(shape)))
    items = []
    for n in shape[:n_dims]:
        kinds = [slices(n), st.just(slice(None))] + ([st.integers(-n, n - 1)] if n else [])
        items.append(draw(st.one_of(kinds)))
    return items


@st.composite
def orthogonal_items(draw, shape):
    items = []
    for n in shape[:draw(st.integers(0, len(shape)))]:
        mask = st.lists(st.booleans(), min_size=n, max_size=n).map(lambda m: np.array(m, bool))
        kinds = [slices(n), mask]
        if n:
            kinds += [st.integers(-n, n - 1), st.lists(st.integers(-n, n - 1), max_size=2 * n),
                      st.lists(st.integers(0, n - 1), max_size=n, unique=True).map(sorted)]
        items.append(draw(st.one_of(kinds)))
    return items


@st.composite
def selections(draw, shape, chunks):
    kinds = ["all", "basic", "basic", "basic", "orthogonal", "orthogonal", "mask", "blocks", "box", "text"]
    if all(shape):
        kinds += ["points", "points"]
    kind = draw(st.sampled_from(kinds))
    if kind == "all":
        return Choice(lambda: Selection.all(shape), flat_indexes(shape), "all")
    if kind in ("basic", "orthogonal", "text"):
        items = draw(orthogonal_items(shape) if kind == "orthogonal" else basic_items(shape))
        flat = by_dimension(shape, items)
        if kind == "text":
            text = ",".join(as_text(i) for i in items) + (",..." if items else "...")
            return Choice(lambda: Selection.parse(shape, text), flat, f"text {text!r}")
        return Choice(lambda: Selection.dims(shape, *items), flat, f"{kind} {items}")
    if kind == "box":
        start = [draw(st.integers(0, n)) for n in shape]
        count = [draw(st.integers(0, n - s)) for n, s in zip(shape, start)]
        flat = flat_indexes(shape)[tuple(slice(s, s + c) for s, c in zip(start, count))]
        return Choice(lambda: Selection.box(shape, start, count), flat, f"box {start} {count}")
    if kind == "points":
        points = draw(st.lists(st.tuples(*[st.integers(-n, n - 1) for n in shape]), max_size=20))
        coords = np.array(points, np.int64).reshape(len(points), len(shape))
        flat = flat_indexes(shape)[tuple(coords.T)] if shape else np.zeros(len(points), np.int64)
        result = None
        if len(points) and len(points) % 2 == 0 and draw(st.booleans()):
            result = (2, len(points) // 2)
            flat = flat.reshape(result)
        return Choice(lambda: Selection.points(shape, coords, result), flat, f"points {points} {result}")
    if kind == "mask":
        n = int(np.prod(shape, dtype=object))
        bits = draw(st.integers(0, 2**min(n, 256) - 1)) if n else 0
        mask = np.array([bits >> (i % 256) & 1 for i in range(n)], bool).reshape(shape)
        return Choice(lambda: Selection.mask(shape, mask), flat_indexes(shape)[mask].reshape(-1),
                      f"mask {mask.tolist()}")
    items, element = [], []
    for n, c in zip(shape, chunks):
        blocks = -(-n // c)
        if blocks and draw(st.booleans()):
            at = draw(st.integers(0, blocks - 1))
            items.append(at)
            element.append(slice(at * c, min(n, (at + 1) * c)))
        else:
            low = draw(st.integers(0, blocks))
            high = draw(st.integers(low, blocks))
            items.append(slice(low, high))
            element.append(slice(min(n, low * c), min(n, high * c)))
    return Choice(lambda: Selection.dims(shape, *element), by_dimension(shape, element),
                  f"blocks {items} of {chunks} as slices")


def as_text(item):
    if isinstance(item, int):
        return str(item)
    parts = ["" if v is None else str(v) for v in (item.start, item.stop)]
    return ":".join(parts) + ("" if item.step is None else f":{item.step}")


def apply(model, flat):
    return model.reshape(-1)[flat.reshape(-1)].reshape(flat.shape)


def store_into(model, flat, data):
    """One after the other, so the last of repeated elements wins."""
    model.reshape(-1)[flat.reshape(-1)] = data.reshape(-1)
