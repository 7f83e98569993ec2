"""zarrs.vlen and zarrs.vlen_v2 as their descriptions define them. No installable package reads
text with them, so the tests build chunks and take them apart themselves."""
import gzip
import struct

import numpy as np
import pytest

import cases
from zarrc_abi import ZarrcError
from zarrc_selection import Selection

GZIP = {"name": "gzip", "configuration": {"level": 6}}
BYTES = {"name": "bytes"}
WORDS = ["", "a", "zwölf", "", "x" * 3000, "\0", "漢字"]


def codec(data=(BYTES,), index=(cases.LITTLE,), kind="uint32", **members):
    return {"name": "zarrs.vlen", "configuration": {
        "data_codecs": list(data), "index_codecs": list(index), "index_data_type": kind, **members}}


def create(context, codecs, shape=(7,), chunks=(7,), dtype="string", fill=""):
    store = context.store()
    return store, store.create(document=cases.document_v3(dtype, fill, codecs, shape, chunks))


def parts(items, kind):
    texts = [w.encode() if isinstance(w, str) else w for w in items]
    return np.cumsum([0] + [len(t) for t in texts]).astype(kind).tobytes(), b"".join(texts)


@pytest.mark.parametrize("kind", ["uint32", "uint64"])
@pytest.mark.parametrize("location", ["start", "end", None])
@pytest.mark.parametrize("packed", [False, True])
def test_layout(context, kind, location, packed):
    members = {"index_location": location} if location else {}
    big = [cases.BIG, GZIP] if packed else [cases.LITTLE]
    store, array = create(context, [codec([BYTES, GZIP] if packed else [BYTES], big, kind, **members)])
    assert array.codecs[0]["configuration"].get("index_location", "start") == (location or "start")
    index, data = parts(WORDS, kind)
    if packed:
        index = gzip.compress(np.frombuffer(index, kind).astype(np.dtype(kind).newbyteorder(">")).tobytes())
        data = gzip.compress(data)
    size = struct.pack("<Q", len(index))
    chunk = data + index + size if location == "end" else size + index + data
    store.put("c/0", chunk)
    encoded = [w.encode() for w in WORDS]
    assert array.read_vlen() == encoded
    store.erase("c/0")
    array.write_vlen(encoded)
    if not packed:
        assert store.get("c/0") == chunk
    assert array.read_vlen() == encoded


def test_v2(context):
    for dtype, items in [("string", WORDS), ("bytes", [b"", b"\xff\xfe", b"abc", b"\0" * 50, b"", b"1", b"2"])]:
        store, array = create(context, [{"name": "zarrs.vlen_v2"}, GZIP], dtype=dtype)
        encoded = [w.encode() if isinstance(w, str) else w for w in items]
        array.write_vlen(encoded)
        assert gzip.decompress(store.get("c/0")) == struct.pack("<I", 7) + b"".join(
            struct.pack("<I", len(w)) + w for w in encoded)
        assert array.read_vlen() == encoded


@pytest.mark.parametrize("shards", [False, True])
@pytest.mark.parametrize("pipeline", ["waves", "serial"])
def test_parts(context, rng, shards, pipeline):
    """What stays is read, changed and written: the bytes of both are in the same chain's hands."""
    inner = [codec([BYTES, GZIP], [cases.LITTLE, GZIP], "uint64"), {"name": "crc32c"}]
    codecs = [cases.sharding((4,), inner)] if shards else inner
    store, array = create(context, codecs, (40,), (8,), "bytes", [1])
    want = [b"\1"] * 40
    for _ in range(30):
        at = int(rng.integers(0, 40))
        n = int(rng.integers(1, 41 - at))
        items = [rng.bytes(int(rng.choice([0, 1, 9, 400, 9000]))) for _ in range(n)]
        array.write_vlen(items, Selection.box((40,), (at,), (n,)), pipeline=pipeline)
        want[at:at + n] = items
        assert array.read_vlen(pipeline=pipeline) == want
    assert store.open().verify() == []


def chunk(index, data, kind="<u4", size=None):
    raw = np.asarray(index, kind).tobytes()
    return struct.pack("<Q", len(raw) if size is None else size) + raw + data


@pytest.mark.parametrize("value,says", [
    (b"", "0 bytes"), (bytes(7), "7 bytes"), (chunk([0, 1, 2], b"ab", size=2**64 - 1), "an index of 18446744073709551615"),
    (chunk([0, 1, 2], b"ab", size=15), "an index of 15"), (chunk([0, 1], b"ab"), "index"), (chunk([0, 1, 2, 2], b"ab"), "index"),
    (chunk([0, 1, 3], b"ab"), "2 bytes, the index says 3"), (chunk([0, 1, 1], b"ab"), "2 bytes, the index says 1"),
    (chunk([0, 5, 2], b"ab"), "element 0 goes from byte 0 to 5"), (chunk([2, 1, 2], b"ab"), "element 0"),
    (chunk([9, 2, 2], b"ab"), "first offset"), (chunk([0, 2, 2], b"\xff\xff"), "UTF-8"),
    (chunk([0, 2**31, 2**32 - 1], b"ab"), "2 bytes"),
])
def test_hostile(context, value, says):
    store, array = create(context, [codec()], (2,), (2,))
    store.put("c/0", value)
    with pytest.raises(ZarrcError) as failed:
        array.read_vlen()
    assert says in str(failed.value)


def test_bomb():
    from zarrc_abi import Limits
    from zarrc_ctypes import Context
    with Context(limits=Limits(chunk_bytes=1 << 20)) as context:
        store, array = create(context, [codec([BYTES, GZIP])], (2,), (2,))
        store.put("c/0", chunk([0, 1, 64 << 20], gzip.compress(bytes(64 << 20))))
        with pytest.raises(ZarrcError) as failed:
            array.read_vlen()
        assert "zarrs.vlen" in str(failed.value)
        array.close()
        store.close()


@pytest.mark.parametrize("codecs,dtype,says", [
    ([codec(kind="uint16")], "string", "index_data_type"), ([codec(index_location="middle")], "string", "index_location"),
    ([codec(data=[GZIP])], "string", "data_codecs"), ([codec(index=[GZIP])], "string", "index_codecs"),
    ([codec()], "uint8", "variable length"), ([codec(more=1)], "string", "unknown member"),
    ([{"name": "zarrs.vlen_v2"}], "uint8", "does not take data type"), ([{"name": "zarrs.vlen_v2", "configuration": {"a": 1}}], "string", "unknown"),
])
def test_refused(context, codecs, dtype, says):
    with pytest.raises(ZarrcError) as failed:
        create(context, codecs, dtype=dtype, fill=0 if dtype == "uint8" else "")
    assert says in str(failed.value)


FEW = {"packbits": ([{"name": "packbits", "configuration": {"last_bit": 3}}], 15),
       "bitround": ([{"name": "bitround", "configuration": {"keepbits": 2}}, cases.LITTLE], 4),
       "cast": ([{"name": "cast_value", "configuration": {"data_type": "uint8", "out_of_range": "wrap"}}, BYTES], 255),
       "cast-error": ([{"name": "cast_value", "configuration": {"data_type": "uint8"}}, BYTES], 255)}


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("name", FEW)
def test_few_bits(context, name, location):
    """An index that does not keep all bits is good for chunks that need no more, and others are
    not written: never text of other elements."""
    index, most = FEW[name]
    store, array = create(context, [codec(index=index, index_location=location)], (2,), (2,))
    array.write_vlen([b"a", b"b" * (most - 1)])
    assert array.read_vlen() == [b"a", b"b" * (most - 1)]
    old = store.get("c/0")
    with pytest.raises(ZarrcError) as failed:
        array.write_vlen([b"aaaaa", b"b" * (most + 1)])
    assert "index_codecs" in str(failed.value)
    assert store.get("c/0") == old
