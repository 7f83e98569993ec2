"""Version 2: data types x order x separator x compressors x filters, written by either side and
read by the other."""
import base64

import numpy as np
import pytest

import both_ways
import cases
import peers


def text(value):
    return base64.b64encode(value).decode()


# v2 string -> (fill value, the same as native bytes)
TYPES = {
    "|b1": (True, b"\1"), "|i1": (-1, b"\xff"), "|u1": (7, b"\7"),
    "<i2": (-2, np.int16(-2).tobytes()), ">i2": (3, np.int16(3).tobytes()),
    "<i4": (0, bytes(4)), ">i4": (-9, np.int32(-9).tobytes()),
    "<i8": (-2**63, np.int64(-2**63).tobytes()), ">u8": (2**64 - 1, b"\xff" * 8),
    "<u2": (65535, b"\xff\xff"), "<u4": (5, np.uint32(5).tobytes()),
    "<f2": ("NaN", np.float16(np.nan).tobytes()), ">f4": (-0.0, np.float32(-0.0).tobytes()),
    "<f8": ("-Infinity", np.float64(-np.inf).tobytes()), ">f8": (1.5, np.float64(1.5).tobytes()),
    "<c8": ([1.0, "NaN"], np.complex64(complex(1, np.nan)).tobytes()),
    ">c16": ([0.0, -0.0], np.array([0.0, -0.0]).tobytes()),
    "|S3": (text(b"ab\0"), b"ab\0"), "|S1": (text(b"\0"), b"\0"),
    "<U2": ("\u00e4", "\u00e4\0".encode("utf-32-le")), ">U3": ("", bytes(12)),
    "|V5": (text(bytes(5)), bytes(5)), "|V1": (text(b"\xff"), b"\xff"),
    "<M8[ns]": ("NaT", np.int64(-2**63).tobytes()), ">M8[10us]": (77, np.int64(77).tobytes()),
    "<m8[D]": (0, bytes(8)), ">m8[ms]": ("NaT", np.int64(-2**63).tobytes()),
}
COMPRESSORS = {
    "none": None, "zlib": {"id": "zlib", "level": 1}, "zlib9": {"id": "zlib", "level": 9},
    "gzip": {"id": "gzip", "level": 5}, "zstd": {"id": "zstd", "level": 1},
    "zstd-checksum": {"id": "zstd", "level": 0, "checksum": True}, "lz4": {"id": "lz4", "acceleration": 1},
    "lz4-fast": {"id": "lz4", "acceleration": 10},
    "blosc": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
}
SHAPES = {
    "0d": ((), ()), "1d": ((13,), (4,)), "empty": ((0,), (3,)), "chunk-larger": ((3, 2), (5, 7)),
    "2d-edge": ((7, 13), (4, 6)), "3d": ((5, 4, 6), (2, 4, 3)), "4d": ((3, 1, 2, 5), (2, 1, 2, 4)),
    "rank-20": ((1,) * 17 + (3, 1, 4), (1,) * 17 + (2, 1, 2)),
}


def run(context, rng, folder, dtype, shape_name, order, separator, compressor, filters=None):
    shape, chunks = SHAPES[shape_name]
    fill, fill_bytes = TYPES[dtype]
    native_type = np.dtype(dtype).newbyteorder("=")
    data = cases.random_data(rng, shape, native_type)
    data = cases.with_holes(rng, data, chunks, fill_bytes)
    document = cases.document_v2(dtype, fill, shape, chunks, order, compressor, filters, separator)
    both_ways.check(context, document, data, rng, folder)


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("compressor", ["none", "zstd", "blosc"])
def test_types(context, rng, tmp_path, dtype, order, compressor):
    run(context, rng, tmp_path, dtype, "2d-edge", order, "./"[len(dtype) % 2],
        COMPRESSORS[compressor])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("compressor", COMPRESSORS)
@pytest.mark.parametrize("order", "CF")
def test_shapes(context, rng, tmp_path, shape, order, compressor):
    names = list(TYPES)
    number = list(SHAPES).index(shape) * len(COMPRESSORS) * 2 + list(COMPRESSORS).index(compressor) * 2 \
        + (order == "F")
    run(context, rng, tmp_path, names[number % len(names)], shape, order, "./"[number // 2 % 2],
        COMPRESSORS[compressor])


@pytest.mark.parametrize("cname", ["lz4", "lz4hc", "blosclz", "zstd", "zlib"])
@pytest.mark.parametrize("shuffle", [-1, 0, 1, 2])
@pytest.mark.parametrize("dtype", ["|u1", ">i4"])
def test_blosc(context, rng, tmp_path, cname, shuffle, dtype):
    run(context, rng, tmp_path, dtype, "2d-edge", "C", "/",
        {"id": "blosc", "cname": cname, "clevel": 3, "shuffle": shuffle, "blocksize": 0})


@pytest.mark.parametrize("dtype", ["|i1", "<i2", ">i4", "<u8", ">f4", "<f8"])
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("filters", ["shuffle", "delta", "delta-then-shuffle"])
@pytest.mark.parametrize("compressor", ["none", "zlib", "blosc"])
def test_filters(context, rng, tmp_path, dtype, order, filters, compressor):
    """numcodecs' filters see the chunk flat, in its own order. Differences of floats lose
    bits, so they get numbers that subtract exactly."""
    size = np.dtype(dtype).itemsize
    shuffle = {"id": "shuffle", "elementsize": size}
    delta = {"id": "delta", "dtype": dtype}
    chain = {"shuffle": [shuffle], "delta": [delta], "delta-then-shuffle": [delta, shuffle]}[filters]
    shape, chunks = (7, 13), (4, 6)
    if np.dtype(dtype).kind == "f":
        data = rng.integers(-1000, 1000, shape).astype(np.dtype(dtype).newbyteorder("="))
    else:
        data = cases.random_data(rng, shape, np.dtype(dtype).newbyteorder("="))
    document = cases.document_v2(dtype, 1, shape, chunks, order, COMPRESSORS[compressor], chain, ".")
    both_ways.check(context, document, data, rng, tmp_path)


@pytest.mark.parametrize("dtype", ["<i4", ">f8", "|S3", "|b1", "<M8[s]", "<U2", "|V4"])
def test_null_fill(context, rng, tmp_path, dtype):
    """null: unwritten elements read as the type's default, as in zarr-python; nothing is left
    out when it is written."""
    native_type = np.dtype(dtype).newbyteorder("=")
    document = cases.document_v2(dtype, None, (5, 6), (2, 3))
    data = np.zeros((5, 6), native_type)
    if native_type.kind == "M":
        data[...] = 0
    both_ways.check(context, document, data, rng, tmp_path, compare_keys=False)
    store = context.store()
    array = store.create(document=document)
    assert array.fill_bytes is None
    cases.put_document(tmp_path / "unwritten", document)
    cases.same_bits(array.read(native_type), peers.read(peers.PYTHON, tmp_path / "unwritten"))
