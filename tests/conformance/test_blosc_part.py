"""Reads of small parts of large blosc chunks: only the blocks that they touch are decoded."""
import itertools

import numpy as np
import pytest

import cases
import peers
from zarrc_abi import Stats, ZarrcError
from zarrc_selection import Selection

SHAPE, CHUNKS = (70, 80, 60), (64, 64, 60)


def blosc_array(context, folder, dtype, shuffle, blocksize, rng, order=None, writer="zarrc"):
    codecs = [cases.transpose(*order)] if order else []
    codecs += [cases.BIG if dtype == "float64" else cases.LITTLE,
               cases.blosc("lz4", shuffle, np.dtype(dtype).itemsize, 5, blocksize)]
    document = cases.document_v3(dtype, 3, codecs, SHAPE, CHUNKS)
    data = (rng.integers(0, 1000, SHAPE).cumsum(axis=2) % 32000).astype(dtype)
    cases.put_document(folder, document)
    if writer == "zarrc":
        context.store(str(folder)).open().write(data)
    else:
        peers.write(writer, folder, data)
    return context.store(str(folder)).open(), data


SELECTIONS = [(slice(3, 4), slice(None), slice(None)), (slice(None), slice(70, 71), slice(None)),
              (slice(60, 66), slice(62, 66), slice(10, 20)), (slice(None, None, 31), slice(None), slice(5, 6)),
              (slice(40, 10, -7), slice(0, 64, 13), slice(None)), (slice(0, 1), slice(0, 1), slice(0, 1)),
              (slice(69, 70), slice(79, 80), slice(59, 60))]


@pytest.mark.parametrize("writer", ["zarrc", peers.PYTHON, peers.TENSORSTORE])
@pytest.mark.parametrize("dtype,shuffle", [("uint8", "bitshuffle"), ("int16", "shuffle"),
                                           ("float64", "noshuffle"), ("int32", "bitshuffle")])
def test_parts(context, rng, tmp_path, dtype, shuffle, writer):
    for blocksize, order in itertools.product((0, 4096, 1 << 16), (None, (2, 0, 1))):
        folder = tmp_path / f"{blocksize}{order}"
        array, data = blosc_array(context, folder, dtype, shuffle, blocksize, rng, order, writer)
        parts = 0
        for selection in SELECTIONS:
            stats, serial = Stats(), Stats()
            what = Selection.dims(SHAPE, *selection)
            got = array.read(dtype, what, stats=stats)
            np.testing.assert_array_equal(got, data[selection])
            parts += stats.chunks_partial
            again = array.read(dtype, what, stats=serial, pipeline="serial")
            np.testing.assert_array_equal(again, data[selection])
            assert serial.chunks_partial == 0
            assert stats.bytes_decoded <= serial.bytes_decoded
        assert parts > 0 or blocksize == 0


@pytest.mark.parametrize("shards", [False, True])
def test_hostile_tables(context, rng, shards):
    """Headers and tables of blocks that lie, through a read that wants one row."""
    codecs = [cases.LITTLE, cases.blosc("lz4", "shuffle", 4, 5, 4096)]
    if shards:
        codecs = [cases.sharding((128, 256), codecs)]
    store = context.store()
    array = store.create(document=cases.document_v3("int32", 3, codecs, (128, 256), (128, 256)))
    data = rng.integers(0, 500, (128, 256)).cumsum(axis=1).astype("i4")
    array.write(data)
    row = Selection.dims((128, 256), slice(77, 78))
    stats = Stats()
    np.testing.assert_array_equal(array.read("i4", row, stats=stats), data[77:78])
    assert stats.chunks_partial == 1 and stats.bytes_decoded < data.nbytes
    encoded = store.get("c/0/0")
    for _ in range(600):
        broken = bytearray(encoded)
        for _ in range(rng.integers(1, 4)):
            at = rng.integers(0, 16 + 4 * 32) if rng.integers(0, 3) else rng.integers(0, len(broken))
            broken[at] = rng.integers(0, 256) if rng.integers(0, 2) else broken[at] ^ (1 << rng.integers(0, 8))
        store.put("c/0/0", bytes(broken))
        try:
            array.read("i4", row)
        except ZarrcError as error:
            assert error.code in ("CORRUPT", "UNSUPPORTED"), error
