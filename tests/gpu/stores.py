#!/usr/bin/env python3
"""stores - arrays as zarr-python writes them, each beside what it contains: FOLDER/NAME is a store, FOLDER/NAME.npy the elements.

    tests/gpu/stores.py FOLDER [--every N]        with an interpreter that has zarr-python; one of N arrays
"""
import itertools
import sys
import warnings
from pathlib import Path

import numcodecs
import numpy as np
import zarr
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec
from zarr.codecs import numcodecs as by_numcodecs

warnings.simplefilter("ignore")
NUMBERS = ["bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
SHAPE, CHUNKS = (50, 61, 9), (16, 20, 9)  # the last chunks are cut
LITTLE, BIG = BytesCodec(endian="little"), BytesCodec(endian="big")


def elements(dtype, shape=SHAPE, seed=1):
    """A walk with noise, that codecs shorten; a corner stays at 0, the fill value."""
    random = np.random.default_rng(seed)
    values = np.cumsum(random.integers(-2, 3, np.prod(shape, dtype=int))).reshape(shape) + random.integers(0, 2, shape)
    kind = np.dtype(dtype).kind
    if kind in "SU":
        out = values.astype("i4").astype(dtype)
    elif kind == "b":
        out = values % 3 == 0
    elif kind in "mM":
        out = values.astype("i8").view(dtype)
    else:
        out = (values * (1.5 if kind in "fc" else 1)).astype(dtype)
    if len(shape) == 3:
        out[:20, :20] = np.zeros((), dtype)
    return out


def v2_cases():
    for dtype in NUMBERS:
        yield f"v2-{dtype}", dtype, {"compressors": numcodecs.LZ4()}
    for dtype in ("S5", "U3", "M8[s]", "m8[ms]"):
        yield f"v2-{dtype.replace('[', '-').replace(']', '')}", dtype, {"compressors": numcodecs.Zstd()}
    for dtype in (">i2", ">u4", ">f8"):
        yield f"v2-big-{dtype[1:]}", dtype, {"compressors": numcodecs.Blosc()}
    for name, codec in {"zlib": numcodecs.Zlib(1), "gzip": numcodecs.GZip(1), "bz2": numcodecs.BZ2(1), "lzma": numcodecs.LZMA(),
                        "zstd": numcodecs.Zstd(3), "zstd-sum": numcodecs.Zstd(1, checksum=True), "lz4": numcodecs.LZ4(3),
                        "none": None}.items():
        for order in "CF":
            yield f"v2-{name}-{order}", "<f4", {"compressors": codec, "order": order}
    for name, filters in {"delta": [numcodecs.Delta("<i4")], "shuffle": [numcodecs.Shuffle(4)],
                          "delta-shuffle": [numcodecs.Delta("<i4"), numcodecs.Shuffle(4)], "crc32": [numcodecs.CRC32()],
                          "adler32": [numcodecs.Adler32()], "fletcher32": [numcodecs.Fletcher32()]}.items():
        yield f"v2-{name}", "<i4", {"filters": filters, "compressors": numcodecs.LZ4()}
    yield "v2-lookup3", "<i4", {"filters": [numcodecs.JenkinsLookup3(7)], "compressors": numcodecs.LZ4()}
    yield "v2-base64", "<i4", {"filters": None, "compressors": numcodecs.Base64()}
    yield "v2-quantize", "<f8", {"filters": [numcodecs.Quantize(1, "<f8")], "compressors": numcodecs.LZ4()}
    yield "v2-bitround", "<f4", {"filters": [numcodecs.BitRound(9)], "compressors": numcodecs.LZ4()}
    yield "v2-packbits", "bool", {"filters": [numcodecs.PackBits()], "compressors": numcodecs.Zstd()}
    yield "v2-fixedscaleoffset", "<f8", {"filters": [numcodecs.FixedScaleOffset(0, 2, "<f8", "<i4")], "compressors": numcodecs.LZ4()}
    yield "v2-astype", "<i8", {"filters": [numcodecs.AsType("<i4", "<i8")], "compressors": numcodecs.LZ4()}
    for name, shuffle, dtype in itertools.product(("lz4", "lz4hc", "blosclz", "zstd", "zlib"), (0, 1, 2), ("<u2", "<f8")):
        yield f"v2-blosc-{name}-{shuffle}-{dtype[1:]}", dtype, {"compressors": numcodecs.Blosc(name, 5, shuffle)}
    yield "v2-blosc-blocks", "<u2", {"compressors": numcodecs.Blosc("lz4", 5, 1, 1000)}
    yield "v2-blosc-stored", "<u2", {"compressors": numcodecs.Blosc("lz4", 0, 1)}


def v3_cases():
    for dtype in NUMBERS:
        yield f"v3-{dtype}", dtype, {"compressors": BloscCodec(cname="lz4", shuffle="shuffle")}
        yield f"v3-{dtype}-raw", dtype, {"compressors": None}
    for name, last in {"raw": [], "zstd": [ZstdCodec()], "zstd-sum": [ZstdCodec(checksum=True)], "gzip": [GzipCodec(level=1)],
                       "crc32c": [Crc32cCodec()], "zstd-crc32c": [ZstdCodec(), Crc32cCodec()],
                       "blosc-bits": [BloscCodec(cname="lz4", shuffle="bitshuffle")], "blosc-zstd": [BloscCodec(cname="zstd")],
                       "lz4": [by_numcodecs.LZ4()], "shuffle-lz4": [by_numcodecs.Shuffle(elementsize=4), by_numcodecs.LZ4()],
                       "zlib": [by_numcodecs.Zlib(level=1)], "adler32": [by_numcodecs.Adler32()]}.items():
        for endian, bytes_codec in {"little": LITTLE, "big": BIG}.items():
            chain = {"serializer": bytes_codec, "compressors": last or None}
            yield f"v3-{name}-{endian}", "i4", chain
            yield f"v3-{name}-{endian}-transposed", "i4", {"filters": [TransposeCodec(order=(2, 0, 1))], **chain}
            inner = ShardingCodec(chunk_shape=(8, 10, 9), codecs=[bytes_codec, *last])
            yield f"v3-{name}-{endian}-sharded", "i4", {"serializer": inner, "compressors": None, "filters": None}
    inner = ShardingCodec(chunk_shape=(4, 5, 3), codecs=[LITTLE, ZstdCodec()])
    yield "v3-shards-of-shards", "i4", {"compressors": None, "serializer": ShardingCodec(chunk_shape=(8, 10, 9), codecs=[inner])}
    yield "v3-index-first", "i4", {"compressors": None, "serializer": ShardingCodec(
        chunk_shape=(8, 10, 9), codecs=[LITTLE, BloscCodec(cname="lz4")], index_location="start")}


def other_shapes():
    for shape, chunks in (((), ()), ((1,), (1,)), ((1000,), (77,)), ((0, 5), (2, 5)), ((3, 4, 5, 6, 2), (2, 4, 3, 6, 1)),
                          ((700, 300), (128, 128))):
        for version in (2, 3):
            name = "x".join(map(str, shape)) or "scalar"
            yield f"v{version}-shape-{name}", shape, chunks, version


def all_cases():
    for version, cases in ((2, v2_cases()), (3, v3_cases())):
        for name, dtype, more in cases:
            yield name, dtype, SHAPE, CHUNKS, version, more
    for name, shape, chunks, version in other_shapes():
        yield name, "f4", shape, chunks, version, {}


def make(folder, every):
    for name, dtype, shape, chunks, version, more in itertools.islice(all_cases(), 0, None, every):
        save(folder, name, elements(dtype, shape), chunks, version, more)
    return len(list(folder.glob("*.npy")))


def save(folder, name, values, chunks, version, more):
    options = {"dtype": values.dtype, "shape": values.shape, "chunks": chunks, "fill_value": np.zeros((), values.dtype)[()], **more}
    if values.dtype.kind in "SUmM":
        options.pop("fill_value")
    array = zarr.create_array(folder / name, zarr_format=version, config={"write_empty_chunks": False}, **options)
    array[...] = values
    # what zarr-python reads again: filters may lose something
    np.save(folder / f"{name}.npy", np.ascontiguousarray(np.asarray(array[...]).astype(values.dtype.newbyteorder("="))).reshape(values.shape))


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    print(f"{make(folder, int(sys.argv[3]) if len(sys.argv) > 3 else 1)} arrays of zarr-python {zarr.__version__}")


if __name__ == "__main__":
    main()
