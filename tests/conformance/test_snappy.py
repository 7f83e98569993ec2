"""snappy in both formats: cramjam decodes our chunks, and we decode blocks that cramjam
encodes."""
import cramjam
import numpy as np
import pytest

import cases
from zarrc_abi import ZarrcError

SNAPPY = {"name": "snappy"}


def document(format, shape, chunks):
    if format == 3:
        return cases.document_v3("uint32", 0, [cases.LITTLE, SNAPPY], shape, chunks)
    return cases.document_v2("<u4", 0, shape, chunks, compressor={"id": "snappy"})


def key(format):
    return "c/0" if format == 3 else "0"


@pytest.fixture(params=[2, 3])
def array(request, context):
    store = context.store()
    return store, store.create(document=document(request.param, (1000,), (1000,))), key(request.param)


def samples(rng):
    return [np.arange(1000, dtype="u4"), np.frombuffer(rng.bytes(4000), "u4"),
            np.repeat(np.arange(10, dtype="u4"), 100)]


def test_what_we_write_cramjam_reads(array, rng):
    store, handle, where = array
    for data in samples(rng):
        handle.write(data)
        assert bytes(cramjam.snappy.decompress_raw(bytes(store.get(where)))) == data.tobytes()


def test_what_cramjam_writes_we_read(array, rng):
    store, handle, where = array
    for data in samples(rng):
        store.put(where, bytes(cramjam.snappy.compress_raw(data.tobytes())))
        assert np.array_equal(handle.read("uint32"), data)


@pytest.mark.parametrize("damage, says", [
    (lambda b: b[:-1], "damaged block"), (lambda b: b + b"\0", "damaged block"), (lambda b: b"", "are not a block"),
    (lambda b: b"\xff" * 6, "are not a block"), (lambda b: b"\xa1\x1f" + b[2:], "block says it has 4001 bytes"),
    (lambda b: b"\x9f\x1f" + b[2:], "damaged block")])
def test_damage_is_told(array, damage, says):
    store, handle, where = array
    block = bytes(cramjam.snappy.compress_raw(np.arange(1000, dtype="u4").tobytes()))
    assert block[:2] == b"\xa0\x1f"  # 4000
    store.put(where, damage(block))
    with pytest.raises(ZarrcError, match=says):
        handle.read("uint32")
