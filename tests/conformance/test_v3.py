"""Version 3: data types x codec chains x sharding x shapes, written by either side and read by the
other, in host and device memory."""
import numpy as np
import pytest

import both_ways
import cases
from cases import BIG, CRC, LITTLE, PLAIN, blosc, gzip, sharding, transpose, zstd
from zarrc_abi import ZarrcError

TYPES = {**{name: (name, *rest) for name, rest in cases.V3_TYPES.items()}, **cases.V3_MORE}
SHAPES = {
    "0d": ((), ()),
    "1d": ((13,), (4,)),
    "empty": ((0,), (4,)),
    "chunk-larger": ((5,), (8,)),
    "2d-even": ((8, 12), (4, 6)),
    "2d-edge": ((7, 13), (4, 6)),
    "empty-inside": ((4, 0, 3), (2, 2, 4)),
    "3d": ((5, 7, 6), (2, 4, 6)),
    "4d": ((3, 4, 2, 5), (2, 2, 2, 4)),
    "5d": ((3, 2, 4, 3, 2), (2, 2, 4, 2, 2)),
    "long-and-thin": ((2, 301), (1, 100)),
    "rank-12": ((1,) * 9 + (3, 1, 4), (1,) * 9 + (2, 1, 2)),
    "rank-32": ((1,) * 30 + (3, 2), (1,) * 30 + (2, 2)),
    "rank-64": ((2,) + (1,) * 62 + (3,), (2,) + (1,) * 62 + (2,)),
}


def halves(chunks):
    return [c // 2 if c % 2 == 0 and c > 1 else c for c in chunks]


def reverse(chunks):
    return transpose(*reversed(range(len(chunks))))


def rotate(chunks):
    """A permutation that isn't its own inverse."""
    return transpose(*(list(range(1, len(chunks))) + [0] if chunks else []))


def rotate_axes(shape):
    return list(shape[1:]) + list(shape[:1])


# Each: (chunk shape, little/big `bytes`, item size) -> codecs.
CHAINS = {
    "bytes": lambda c, b, n: [b],
    "gzip": lambda c, b, n: [b, gzip(1)],
    "gzip9": lambda c, b, n: [b, gzip(9), CRC],
    "zstd": lambda c, b, n: [b, zstd(1)],
    "zstd-checksum": lambda c, b, n: [b, zstd(7, True)],
    "zstd-negative": lambda c, b, n: [b, zstd(-5)],
    "blosc": lambda c, b, n: [b, blosc("zstd", "bitshuffle", n)],
    "crc32c": lambda c, b, n: [b, CRC],
    "crc-zstd-crc": lambda c, b, n: [b, CRC, zstd(), CRC],
    "transpose": lambda c, b, n: [reverse(c), b],
    "transpose-rotate": lambda c, b, n: [rotate(c), b, zstd()],
    "transpose-twice": lambda c, b, n: [rotate(c), reverse(c), b],
}
SHARDS = {
    "plain": lambda c, b, n: [sharding(halves(c), [b])],
    "zstd-end": lambda c, b, n: [sharding(halves(c), [b, zstd()])],
    "zstd-start": lambda c, b, n: [sharding(halves(c), [b, zstd()], location="start")],
    "index-big": lambda c, b, n: [sharding(halves(c), [b, gzip()], [BIG, CRC])],
    "index-no-crc": lambda c, b, n: [sharding(halves(c), [b], [LITTLE])],
    "index-big-start-no-crc": lambda c, b, n: [sharding(halves(c), [b, CRC], [BIG], "start")],
    "index-transposed": lambda c, b, n: [sharding(halves(c), [b, zstd()], [
        transpose(*reversed(range(len(c) + 1))), LITTLE, CRC])],
    "inner-transpose": lambda c, b, n: [sharding(halves(c), [rotate(c), b, zstd()])],
    "outer-transpose": lambda c, b, n: [rotate(c), sharding(halves(rotate_axes(c)), [b, gzip()])],
    "both-transposes": lambda c, b, n: [
        rotate(c), sharding(halves(rotate_axes(c)), [reverse(c), b])],
    "outer-crc": lambda c, b, n: [sharding(halves(c), [b]), CRC],
    "outer-zstd": lambda c, b, n: [sharding(halves(c), [b, CRC], location="start"), zstd()],
    "one-inner": lambda c, b, n: [sharding(c, [b, blosc("lz4", "shuffle", n)])],
    "ones": lambda c, b, n: [sharding([1] * len(c), [b])],
    "nested": lambda c, b, n: [sharding(halves(c), [sharding(halves(halves(c)), [b, zstd()])])],
    "nested-start": lambda c, b, n: [sharding(halves(c), [
        sharding(halves(halves(c)), [b], [BIG], "start")], location="start")],
    "nested-all": lambda c, b, n: [rotate(c), sharding(halves(rotate_axes(c)), [
        reverse(c), sharding(list(reversed(halves(rotate_axes(c)))), [rotate(c), b, gzip()], [BIG, CRC]), CRC],
        [LITTLE]), zstd()],
    "thrice": lambda c, b, n: [sharding(c, [sharding(halves(c), [
        sharding(halves(halves(c)), [b])])])],
}


def run(context, rng, folder, type_name, chains, chain, shape_name, big=False):
    data_type, numpy_type, fill, fill_bytes = TYPES[type_name]
    shape, chunks = SHAPES[shape_name]
    numpy_type = np.dtype(numpy_type)
    one_byte = numpy_type.kind in "SV?" or numpy_type.itemsize == 1
    bytes_codec = PLAIN if one_byte else BIG if big else LITTLE
    codecs = chains[chain](list(chunks), bytes_codec, numpy_type.itemsize)
    data = cases.random_data(rng, shape, numpy_type)
    data = cases.with_holes(rng, data, chunks, fill_bytes)
    encoding = [("default", "/"), ("default", "."), ("v2", "."), ("v2", "/")][rng.integers(0, 4)]
    document = cases.document_v3(data_type, fill, codecs, shape, chunks, *encoding)
    both_ways.check(context, document, data, rng, folder)


# The index of a shard has one dimension more than the shard, so rank 64 cannot be sharded.
@pytest.mark.parametrize("shape,chain", [
    (shape, chain) for shape in SHAPES for chain in CHAINS | SHARDS
    if shape != "rank-64" or chain in CHAINS])
def test_shapes(context, rng, tmp_path, shape, chain):
    """Every chain with every shape; the data type goes round."""
    names = list(TYPES)
    number = list(SHAPES).index(shape) * len(CHAINS | SHARDS) + list(CHAINS | SHARDS).index(chain)
    run(context, rng, tmp_path, names[number % len(names)], CHAINS | SHARDS, chain, shape,
        big=number % 2 == 1)


@pytest.mark.parametrize("chain", ["bytes", "transpose-rotate", "blosc", "nested", "nested-all"])
@pytest.mark.parametrize("big", [False, True], ids=["little", "big"])
@pytest.mark.parametrize("data_type", TYPES)
def test_types(context, rng, tmp_path, data_type, big, chain):
    """Every data type in both byte orders."""
    run(context, rng, tmp_path, data_type, CHAINS | SHARDS, chain,
        ["2d-edge", "3d"][len(chain) % 2], big)


@pytest.mark.parametrize("cname", ["lz4", "lz4hc", "blosclz", "zstd", "zlib"])
@pytest.mark.parametrize("shuffle", ["noshuffle", "shuffle", "bitshuffle"])
@pytest.mark.parametrize("clevel", [0, 1, 9])
def test_blosc(context, rng, tmp_path, cname, shuffle, clevel):
    data = rng.integers(0, 50, (20, 70)).astype("f8")
    codec = blosc(cname, shuffle, 8, clevel, blocksize=256 if clevel == 9 else 0)
    document = cases.document_v3("float64", 0.0, [LITTLE, codec], data.shape, (20, 31))
    both_ways.check(context, document, data, rng, tmp_path)


def test_shard_of_rank_64(context):
    """Its index would have 65 dimensions: refused when it is made, not later."""
    ones = (1,) * 64
    document = cases.document_v3("uint8", 0, [sharding(ones, [PLAIN])], ones, ones)
    with pytest.raises(ZarrcError) as caught:
        context.store().create(document=document)
    assert caught.value.code in ("LIMIT", "UNSUPPORTED", "INVALID")
