"""v2 filters that make bytes of other things than numbers: packbits, and the object codecs
categorize, json2, msgpack2 and vlen-array, both ways with numcodecs, and with zarr-python
where it opens such arrays."""
import numcodecs
import numpy as np
import pytest

import cases
import peers
from zarrc_ctypes import ZarrcError


# ---- packbits ----------------------------------------------------------------------------

@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("compressor", [None, {"id": "zlib", "level": 1}], ids=str)
@pytest.mark.parametrize("shape,chunks", [((1,), (1,)), ((8,), (8,)), ((9,), (4,)), ((7, 5), (4, 3)),
                                          ((), ())], ids=str)
def test_packbits(context, rng, tmp_path, order, compressor, shape, chunks):
    document = cases.document_v2("|b1", True, shape, chunks, order, compressor, [{"id": "packbits"}])
    data = rng.integers(0, 2, shape).astype(bool)
    cases.put_document(tmp_path / "theirs", document)
    peers.write(peers.PYTHON, tmp_path / "theirs", data)
    theirs = context.store(str(tmp_path / "theirs"))
    np.testing.assert_array_equal(theirs.open().read(bool), data)

    ours = context.store(str(tmp_path / "ours"), create=True)
    array = ours.create(document=document)
    array.write(data)
    np.testing.assert_array_equal(peers.read(peers.PYTHON, tmp_path / "ours"), data)
    if compressor is None:
        keys = [k for k in theirs.keys() if not k.startswith(".z")]
        assert [ours.get(k) for k in keys] == [theirs.get(k) for k in keys]
    assert array.codecs[-2 if compressor else -1]["name"] == "bytes"
    assert {"name": "numcodecs.packbits", "configuration": {}} in array.codecs


def test_packbits_keeps_bools_only(context):
    for dtype, filters in [("|u1", []), ("<i4", []), ("|b1", [{"id": "packbits"}])]:
        document = cases.document_v2(dtype, 0, (8,), (8,), filters=[*filters, {"id": "packbits"}])
        with pytest.raises(ZarrcError, match="packbits: what it gets are no bools"):
            context.store().create(document=document)


def test_packbits_numcodecs(context, rng):
    document = cases.document_v2("|b1", False, (1001,), (1001,), filters=[{"id": "packbits"}])
    data = rng.integers(0, 2, 1001).astype(bool)
    store = context.store()
    store.create(document=document).write(data)
    assert store.get("0") == numcodecs.PackBits().encode(data).tobytes()
