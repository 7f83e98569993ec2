"""cases - data types with data, memory layouts, metadata documents; for all Python suites.

A case is a metadata document and a numpy array. Documents are written by hand, not by an
implementation, so that every implementation under test is given the same one.
"""
import json

import numpy as np

JUNK = 0x5A  # what lies between the elements of a view
LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
PLAIN = {"name": "bytes"}
CRC = {"name": "crc32c"}


def gzip(level=1):
    return {"name": "gzip", "configuration": {"level": level}}


def zstd(level=1, checksum=False):
    return {"name": "zstd", "configuration": {"level": level, "checksum": checksum}}


def blosc(cname="lz4", shuffle="shuffle", typesize=4, clevel=5, blocksize=0):
    return {"name": "blosc", "configuration": {
        "cname": cname, "clevel": clevel, "shuffle": shuffle, "typesize": typesize,
        "blocksize": blocksize}}


def transpose(*order):
    return {"name": "transpose", "configuration": {"order": list(order)}}


def sharding(inner, codecs, index_codecs=None, location="end"):
    return {"name": "sharding_indexed", "configuration": {
        "chunk_shape": list(inner), "codecs": codecs,
        "index_codecs": [LITTLE, CRC] if index_codecs is None else index_codecs,
        "index_location": location}}


def document_v3(dtype, fill, codecs, shape, chunks, encoding="default", separator="/",
                attributes=None, names=None):
    document = {
        "zarr_format": 3, "node_type": "array", "shape": list(shape), "data_type": dtype,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunks)}},
        "chunk_key_encoding": {"name": encoding, "configuration": {"separator": separator}},
        "fill_value": fill, "codecs": codecs, "attributes": attributes or {}}
    if names is not None:
        document["dimension_names"] = names
    return document


def document_v2(dtype, fill, shape, chunks, order="C", compressor=None, filters=None,
                separator="."):
    return {"zarr_format": 2, "shape": list(shape), "chunks": list(chunks), "dtype": dtype,
            "compressor": compressor, "fill_value": fill, "order": order, "filters": filters,
            "dimension_separator": separator}


def put_document(folder, document):
    folder.mkdir(parents=True, exist_ok=True)
    name = "zarr.json" if document["zarr_format"] == 3 else ".zarray"
    (folder / name).write_text(json.dumps(document))


# v3 name -> (numpy type, fill value as JSON, the same as native bytes)
def _raw(text):
    return bytes.fromhex(text)


def _n(value, dtype):
    return np.array(value, dtype).tobytes()


V3_TYPES = {
    "bool": ("?", True, b"\1"),
    "int8": ("i1", -128, _n(-128, "i1")),
    "int16": ("i2", -2, _n(-2, "i2")),
    "int32": ("i4", 7, _n(7, "i4")),
    "int64": ("i8", -2**63, _n(-2**63, "i8")),
    "uint8": ("u1", 255, b"\xff"),
    "uint16": ("u2", 65535, b"\xff\xff"),
    "uint32": ("u4", 2**32 - 1, b"\xff" * 4),
    "uint64": ("u8", 2**64 - 1, b"\xff" * 8),
    "float16": ("f2", "-Infinity", _n(-np.inf, "f2")),
    "float32": ("f4", "0x7fc00123", _n(0x7fc00123, "u4")),
    "float64": ("f8", -0.0, _n(-0.0, "f8")),
    "complex64": ("c8", ["NaN", -0.0], _n(0x7fc00000, "u4") + _n(-0.0, "f4")),
    "complex128": ("c16", ["Infinity", "0x7ff8000000000abc"],
                   _n(np.inf, "f8") + _n(0x7ff8000000000abc, "u8")),
}
# Names that the raw type goes by, and the types of zarr-python's extensions.
V3_MORE = {
    "r24": ("r24", "V3", [1, 2, 255], b"\1\2\xff"),
    "r64": ("r64", "V8", [0] * 8, bytes(8)),
    "r24-base64": ("r24", "V3", "AQL/", b"\1\2\xff"),
    "raw_bytes": ({"name": "raw_bytes", "configuration": {"length_bytes": 5}}, "V5", "AQIDBAU=",
                  b"\1\2\3\4\5"),
    "datetime": ({"name": "numpy.datetime64", "configuration": {"unit": "us", "scale_factor": 10}},
                 "M8[10us]", "NaT", _n(-2**63, "i8")),
    "timedelta": ({"name": "numpy.timedelta64", "configuration": {"unit": "s", "scale_factor": 1}},
                  "m8[s]", 12345, _n(12345, "i8")),
    "utf32": ({"name": "fixed_length_utf32", "configuration": {"length_bytes": 12}}, "U3", "\u00e9x",
              "\u00e9x\0".encode("utf-32-le")),
    "bytes": ({"name": "null_terminated_bytes", "configuration": {"length_bytes": 4}}, "S4", "YWI=",
              b"ab\0\0"),
}
# zarr-python reads them, too
V3_STRUCTS = {
    "struct": ({"name": "struct", "configuration": {"fields": [
        {"name": "a", "data_type": "int32"}, {"name": "b", "data_type": "uint8"},
        {"name": "c", "data_type": "complex64"}]}},
        np.dtype([("a", "i4"), ("b", "u1"), ("c", "c8")]), {"a": -1, "b": 7, "c": [0.5, -0.0]},
        _n(-1, "i4") + b"\7" + _n([0.5, -0.0], "f4")),
    "struct-nested": ({"name": "struct", "configuration": {"fields": [
        {"name": "n", "data_type": {"name": "struct", "configuration": {"fields": [
            {"name": "x", "data_type": "float64"}, {"name": "y", "data_type": "int16"}]}}},
        {"name": "t", "data_type": "bool"}]}},
        np.dtype([("n", [("x", "f8"), ("y", "i2")]), ("t", "?")]),
        {"n": {"x": 1.5, "y": -2}, "t": True}, _n(1.5, "f8") + _n(-2, "i2") + b"\1"),
}
V2_STRUCTS = {
    "struct-mixed": ([["a", ">i4"], ["b", "<f8"], ["c", "|u1"]],
                     np.dtype([("a", "i4"), ("b", "f8"), ("c", "u1")]), "AAAAAQAAAAAAAPg/Bw=="),
    "struct-subarrays": ([["s", ">i2", [2, 2]], ["n", [["x", "<f4"], ["y", "|S2"]], [2]]],
                         np.dtype([("s", "i2", (2, 2)), ("n", [("x", "f4"), ("y", "S2")], (2,))]),
                         "AAEAAgADAAQAAIA/YWIAAABAAAA="),
}


def native(array):
    """C order, native byte order; bit for bit."""
    array = np.asarray(array)
    return np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False)) \
        .reshape(array.shape)


def same_bits(got, expected):
    got, expected = native(got), native(expected)
    assert got.shape == expected.shape, (got.shape, expected.shape)
    assert got.dtype.itemsize == expected.dtype.itemsize
    if got.tobytes() != expected.tobytes():
        item = max(1, got.dtype.itemsize)
        a = np.frombuffer(got.tobytes(), f"V{item}")
        b = np.frombuffer(expected.tobytes(), f"V{item}")
        wrong = np.flatnonzero(a != b)
        where = np.unravel_index(wrong[0], expected.shape) if expected.ndim else ()
        raise AssertionError(f"{len(wrong)} of {a.size} elements differ, first at "
                             f"{tuple(map(int, where))}: got {bytes(a[wrong[0]]).hex()}, "
                             f"expected {bytes(b[wrong[0]]).hex()}")


def random_data(rng, shape, dtype):
    """Any bits where any are legal."""
    dtype = np.dtype(dtype)
    n = int(np.prod(shape, dtype=object))
    if dtype.names:
        out = np.zeros(shape, dtype)
        for name in dtype.names:
            base, sub = dtype[name].subdtype or (dtype[name], ())
            out[name] = random_data(rng, (*shape, *sub), base)
        return out
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "SU":
        length = dtype.itemsize // (4 if dtype.kind == "U" else 1)
        letters = rng.integers(33, 127 if dtype.kind == "S" else 0xd7ff, (n, length))
        letters[np.arange(length) >= rng.integers(0, length + 1, (n, 1))] = 0
        unit = np.uint8 if dtype.kind == "S" else np.uint32
        return np.frombuffer(letters.astype(unit).tobytes(), dtype.newbyteorder("=")) \
            .astype(dtype).reshape(shape)
    return np.frombuffer(rng.bytes(n * dtype.itemsize), dtype).reshape(shape).copy()


def full_array(shape, dtype, fill):
    return np.frombuffer(fill * int(np.prod(shape, dtype=object)), dtype).reshape(shape).copy()


def with_holes(rng, data, chunks, fill):
    """Some chunks of the grid, and parts of others, set to the fill value."""
    data = data.copy()
    for _ in range(3 if data.size else 0):
        corner = [int(rng.integers(0, -(-n // c))) * c for n, c in zip(data.shape, chunks)]
        box = tuple(slice(a, a + c) for a, c in zip(corner, chunks))
        if data.ndim or rng.integers(0, 4) == 0:
            data[box] = np.frombuffer(fill, data.dtype)[0]
    return data


def layout(rng, shape, dtype, swap=None, plain=False):
    """A view of any strides, of either sign, at any address, in memory full of JUNK."""
    dtype = np.dtype(dtype)
    if dtype.names:
        swap = False  # in memory structs have the machine's order
    if swap if swap is not None else rng.integers(0, 3) == 0:
        dtype = dtype.newbyteorder("S")
    if plain:
        base = np.full(int(np.prod(shape)) * dtype.itemsize, JUNK, np.uint8)
        return np.ndarray(shape, dtype, base)
    strides, at, span = [0] * len(shape), int(rng.integers(0, 5)), dtype.itemsize
    lead = at
    for d in rng.permutation(len(shape)):
        step = span * int(rng.choice([1, 1, 1, 2])) + int(rng.choice([0, 0, 0, 1]))
        span = step * max(0, shape[d] - 1) + span
        if rng.integers(0, 3) == 0:
            lead += step * max(0, shape[d] - 1)
            step = -step
        strides[d] = step
    base = np.full(at + span + int(rng.integers(0, 4)), JUNK, np.uint8)
    if 0 in shape:
        return np.ndarray(shape, dtype, base, 0)
    return np.ndarray(shape, dtype, base, lead, tuple(int(s) for s in strides))


def gaps_intact(view):
    """Whether only elements of the view were written to."""
    base = view.base
    touched = np.zeros(base.size, np.uint8)
    if view.size:
        offset = view.__array_interface__["data"][0] - base.ctypes.data
        n = view.dtype.itemsize
        np.ndarray(view.shape, f"V{n}", touched, offset, view.strides)[...] = b"\1" * n
    return bool((base[touched == 0] == JUNK).all())
