"""Large uncompressed chunks are read in slabs of rows, by several threads when there is
one chunk only: every layout and cut must give what numpy gives."""
import itertools

import numpy as np
import pytest
from zarrc_abi import Stats, ZarrcError
from zarrc_ctypes import Context
from zarrc_selection import Selection

CASES = {  # shape, chunks, format, order; chunks are 2 MiB or more
    "planes": ((200, 150, 300), (128, 100, 150), 3, "C"),
    "fortran": ((300, 200, 150), (150, 128, 100), 2, "F"),
    "transposed": ((2500, 700), (2400, 650), 3, "F"),
    "one plane": ((2, 1500, 2000), (1, 1500, 1400), 3, "C"),
    "line": ((3000000,), (2000000,), 2, "C"),
}
CUTS = [slice(None), slice(1, None), slice(7, -5), slice(None, None, 2), slice(-2, 3, -1)]


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def large(request, tmp_path):
    shape, chunks, form, order = request.param
    data = np.random.default_rng(1).integers(0, 1 << 15, shape, dtype=np.uint16)
    with Context(fake=None) as context:
        store = context.store(tmp_path / "a", create=True)
        none = '{"filters": null, "compressor": null}' if form == 2 else "[]"
        array = store.create("", shape, "uint16", zarr_format=form, chunks=chunks, order=order,
                             codecs=none)
        array.write(data)
        yield data, store, array


def places(shape):
    """Memory in C and Fortran order, big-endian, and 2 bytes behind a line of the cache."""
    yield np.empty(shape, "<u2")
    yield np.empty(shape, "<u2", order="F")
    yield np.empty(shape, ">u2")
    raw = np.empty(2 * int(np.prod(shape)) + 128, np.uint8)
    at = -raw.ctypes.data % 64 + 2
    yield raw[at:at + 2 * int(np.prod(shape))].view("<u2").reshape(shape)
    yield raw[at - 2:at - 2 + 2 * int(np.prod(shape))].view("<u2").reshape(shape)


def test_cuts(large):
    data, _, array = large
    for cut in itertools.islice(itertools.product(CUTS, repeat=data.ndim), 0, None, 1 + 6 * (data.ndim == 3)):
        got = array.read("<u2", Selection.dims(data.shape, *cut))
        assert np.array_equal(got, data[cut]), cut


def test_places(large):
    data, _, array = large
    chunk = tuple(slice(0, c) for c in array.chunks)
    for view in places(data[chunk].shape):
        stats = Stats()
        got = array.read_into(view, Selection.dims(data.shape, *chunk), stats=stats)
        assert np.array_equal(got, data[chunk])
        assert (stats.chunks_done, stats.store_gets) == (1, 1)
        assert stats.bytes_stored == stats.bytes_decoded == data[chunk].nbytes


def test_damage(large):
    """A missing chunk reads as the fill value; objects of the wrong size are errors, as without slabs."""
    data, store, array = large
    key = min(k for k in store.keys() if "zarr" not in k and not k.startswith("."))
    value = store.get(key)
    first = Selection.dims(data.shape, *(slice(0, c) for c in array.chunks))
    for wrong in (value[:-2], value + b"xx", b""):
        store.put(key, wrong)
        for selection in (first, None):
            with pytest.raises(ZarrcError) as error:
                array.read("<u2", selection)
            assert error.value.code == "CORRUPT" and key in error.value.message
    store.erase(key)
    assert not array.read("<u2", first).any()
