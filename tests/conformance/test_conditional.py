"""The codec conditional as its description defines it. No installable package implements it, so
the tests build chunks and take them apart themselves."""
import gzip
import zlib

import numpy as np
import pytest

import cases
from zarrc_abi import ZarrcError
from zarrc_selection import Selection

GZIP = {"name": "gzip", "configuration": {"level": 6}}
SHUFFLE = {"name": "numcodecs.shuffle", "configuration": {"elementsize": 4}}


def only_chunk(store):
    (key,) = [k for k in store.keys() if k != "zarr.json"]
    return store.get(key)


def put(store, value):
    store.put("c/0", bytes(value))


# ---- conditional -------------------------------------------------------------------------

def conditional(codecs, **members):
    return {"name": "conditional", "configuration": {"codecs": codecs, **members}}


def of_conditional(context, codecs, n=100, behind=(), **members):
    doc = cases.document_v3("uint32", 0, [cases.LITTLE, conditional(codecs, **members), *behind], (n,), (n,))
    store = context.store()
    return store, store.create(document=doc)


def shuffle(raw):
    return np.frombuffer(raw, "u1").reshape(-1, 4).T.tobytes()


def test_conditional_reads_every_mask(context, rng):
    data = rng.integers(0, 1000, 100, "u4")
    for mask in range(8):
        store, array = of_conditional(context, [SHUFFLE, GZIP, {"name": "numcodecs.zlib", "configuration": {"level": 1}}],
                                      header_bits=16)
        raw = data.tobytes()
        raw = shuffle(raw) if mask & 1 else raw
        raw = gzip.compress(raw) if mask & 2 else raw
        raw = zlib.compress(raw) if mask & 4 else raw
        put(store, bytes([mask, 0]) + raw)
        assert np.array_equal(array.read("uint32"), data)


def test_conditional_writes_what_helps(context, rng):
    noise = np.frombuffer(rng.bytes(400), "u4")
    ramp = np.arange(100, dtype="u4")
    store, array = of_conditional(context, [SHUFFLE, GZIP])
    array.write(ramp)
    value = only_chunk(store)
    assert value[0] == 3 and np.array_equal(np.frombuffer(
        gzip.decompress(value[1:]), "u1"), np.frombuffer(shuffle(ramp.tobytes()), "u1"))
    array.write(noise)
    assert only_chunk(store) == b"\0" + noise.tobytes()
    assert np.array_equal(array.read("uint32"), noise)
    # a part of it
    array.write(np.array([5], "u4"), Selection.box((100,), (7,), (1,)))
    noise = noise.copy()
    noise[7] = 5
    assert np.array_equal(array.read("uint32"), noise)


def test_conditional_header(context):
    data = np.zeros(100, "u4")
    for codecs, members, bits in [([GZIP], {}, 8), ([GZIP] * 9, {}, 16), ([GZIP], {"header_bits": 64}, 64), ([], {}, 0)]:
        store, array = of_conditional(context, codecs, **members)
        assert array.codecs[1]["configuration"]["header_bits"] == bits
        data[3] = 7
        array.write(data)
        assert np.array_equal(array.read("uint32"), data)
        assert len(only_chunk(store)) > bits // 8
        if bits == 0:
            assert only_chunk(store) == data.tobytes()


def test_conditional_nested_and_sharded(context, rng):
    data = rng.integers(0, 50, 100, "u4")
    inner = [cases.LITTLE, conditional([conditional([SHUFFLE, GZIP]), GZIP]), {"name": "crc32c"}]
    doc = cases.document_v3("uint32", 0, [cases.sharding((10,), inner)], (100,), (50,))
    array = context.store().create(document=doc)
    array.write(data)
    assert np.array_equal(array.read("uint32"), data)
    array.write(data[5:17][::-1].copy(), Selection.box((100,), (33,), (12,)))
    data[33:45] = data[5:17][::-1].copy()
    assert np.array_equal(array.read("uint32"), data)


@pytest.mark.parametrize("value,says", [
    (b"", "header has 1"), (b"\x04" + bytes(400), "bit 2"), (b"\x80" + bytes(400), "bit 7"),
    (b"\0" + bytes(399), "400"), (b"\0" + bytes(401), "400"), (b"\x02" + bytes(400), "gzip"),
    (b"\x02" + gzip.compress(bytes(401), mtime=0), ""), (b"\x02" + gzip.compress(bytes(399), mtime=0), "400"),
    (b"\x03" + gzip.compress(bytes(64 << 20), mtime=0), ""), (b"\x01" + bytes(4), "400"),
])
def test_conditional_hostile(context, value, says):
    store, array = of_conditional(context, [SHUFFLE, GZIP])
    put(store, value)
    with pytest.raises(ZarrcError) as failed:
        array.read("uint32")
    assert says in str(failed.value) and "conditional" in str(failed.value) or says == "400"


@pytest.mark.parametrize("codecs,members,says", [
    ([GZIP], {"header_bits": 7}, "multiple of 8"), ([GZIP] * 9, {"header_bits": 8}, "a bit for each"),
    ([cases.LITTLE], {}, "bytes->bytes"), ([GZIP], {"mask": 1}, "unknown member"), (None, {}, "codecs are missing"),
    ([GZIP], {"header_bits": 1 << 40}, "header_bits"), ([{"name": "nobody"}], {}, "nobody"),
])
def test_conditional_refused(context, codecs, members, says):
    with pytest.raises(ZarrcError) as failed:
        of_conditional(context, codecs, **members)
    assert says in str(failed.value)


def test_growing_codecs_around_texts(context):
    """What the chain of a text can have is bounded by a limit alone; codecs that may double it
    twice are taken inside, as they are outside."""
    lzma = {"name": "numcodecs.lzma", "configuration": {"format": 2, "preset": 0}}
    texts = [b"", b"a", b"q" * 5000, b"1234" * 9]
    for codecs in [lzma, lzma], [conditional([lzma, lzma])]:
        doc = cases.document_v3("string", "", [{"name": "vlen-utf8"}, *codecs], (4,), (2,))
        array = context.store().create(document=doc)
        array.write_vlen(texts)
        assert array.read_vlen() == texts


def test_depth(context):
    codec = conditional([GZIP])
    for _ in range(300):
        codec = conditional([codec])
    doc = cases.document_v3("uint8", 0, [{"name": "bytes"}, codec], (4,), (4,))
    with pytest.raises(ZarrcError):
        context.store().create(document=doc)
