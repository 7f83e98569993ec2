"""nvcomp_batch, KvikIO's codec of v2: chunks by KvikIO's rules are read, in every kind of memory, and by these rules ours
are read."""
import json
import struct
import zlib

import numcodecs
import numpy as np
import pytest

import cases
import kvikio
import peers
from both_ways import read_every_way, write_every_way
from zarrc_abi import ZarrcError

NO_HEADER = {"algorithm": "lz4", "options": {"has_header": False}}
CONFIGS = {name: {"algorithm": name, "options": {}} for name in kvikio.ALGORITHMS} | {"lz4, raw": NO_HEADER}


def document(config, dtype="<u4", shape=(1000,), chunks=(300,), order="C", filters=None):
    return cases.document_v2(dtype, 7, shape, chunks, order, {"id": "nvcomp_batch", **config}, filters)


def samples(rng):
    return [np.arange(1000, dtype="u4"), np.frombuffer(rng.bytes(4000), "u4"),
            np.repeat(np.arange(10, dtype="u4"), 100)]


@pytest.mark.parametrize("name", CONFIGS)
def test_what_kvikio_writes_we_read(context, rng, tmp_path, name):
    """It is registered with numcodecs, and zarr-python writes the array, its metadata too."""
    for number, data in enumerate(samples(rng)):
        place = tmp_path / str(number)
        cases.put_document(place, document(CONFIGS[name]))
        peers.write(peers.PYTHON, place, data)
        array = context.store(str(place)).open()
        read_every_way(array, data, rng)
        assert array.verify() == []


@pytest.mark.parametrize("name", CONFIGS)
def test_what_we_write_kvikio_reads(context, rng, tmp_path, name):
    for number, data in enumerate(samples(rng)):
        place = tmp_path / str(number)
        dump = write_every_way(context, document(CONFIGS[name]), data, rng, place)
        assert json.loads(dump[".zarray"])["compressor"] == {"id": "nvcomp_batch", **CONFIGS[name]}
        cases.same_bits(peers.read(peers.PYTHON, place), data)


@pytest.mark.parametrize("order", "CF")
def test_among_other_codecs(context, rng, tmp_path, order):
    data = cases.random_data(rng, (7, 13), np.dtype("i2"))
    made = document({"algorithm": "deflate"}, ">i2", (7, 13), (4, 6), order,
                    [{"id": "delta", "dtype": ">i2"}, {"id": "shuffle", "elementsize": 2}])
    write_every_way(context, made, data, rng, tmp_path / "a")
    cases.same_bits(peers.read(peers.PYTHON, tmp_path / "a"), data)


def test_configurations_that_kvikio_stores(context):
    """numcodecs writes all attributes of the codec; people wrote the shorter forms by hand. All stay as they are."""
    stored = {"id": "nvcomp_batch"}
    for config in ({"algorithm": "LZ4"}, {"algorithm": "lz4", "options": None}, {"algorithm": "lz4", "options": {}},
                   {"algorithm": "lz4", "options": {"data_type": 4}},
                   {"algorithm": "lz4", "options": {"data_type": 0, "has_header": True}}):
        store = context.store()
        store.put(".zarray", json.dumps(document({**stored, **config})).encode())
        store.put("0", bytes(numcodecs.LZ4().encode(np.arange(300, dtype="u4"))))
        array = store.open()
        assert array.read("uint32")[299] == 299
        array.resize((900,))
        assert json.loads(store.get(".zarray"))["compressor"] == {**stored, **config}


@pytest.mark.parametrize("config, says", [
    ({}, "nvcomp_batch: algorithm is missing"), ({"algorithm": "ans"}, 'algorithm is "ans", must be "lz4", "zstd", '),
    ({"algorithm": "bitcomp"}, "must be"), ({"algorithm": "cascaded"}, "must be"), ({"algorithm": 7}, "algorithm is 7"),
    ({"algorithm": "gzip"}, "must be"), ({"algorithm": "lz4", "options": []}, "options is .*, must be an object"),
    ({"algorithm": "lz4", "options": {"has_header": 1}}, "whose has_header is a boolean"),
    ({"algorithm": "lz4", "options": {"bitshuffle": 1}}, "with the options of KvikIO's algorithm"),
    ({"algorithm": "zstd", "options": {"has_header": True}}, "with the options of KvikIO's algorithm"),
    ({"algorithm": "lz4", "has_header": False}, "has_header is false, must be in options")])
def test_refused(context, config, says):
    with pytest.raises(ZarrcError, match=says):
        context.store().create(document=document(config))


@pytest.mark.parametrize("config", [{"algorithm": "gdeflate", "options": {}}, {"algorithm": "gdeflate", "options": {"algo": 1}}])
def test_gdeflate_needs_a_plugin(context, config):
    store = context.store()
    array = store.create(document=document(config))
    assert json.loads(store.get(".zarray"))["compressor"] == {"id": "nvcomp_batch", **config}
    with pytest.raises(ZarrcError, match="gdeflate: no library of Debian has GDeflate: a plug-in that registers") as raised:
        array.write(np.arange(1000, dtype="u4"))
    assert raised.value.code == "UNSUPPORTED"


def test_v3_has_no_such_codec(context):
    store = context.store()
    store.create(document=document({"algorithm": "lz4"})).write(np.arange(1000, dtype="u4"))
    with pytest.raises(ZarrcError, match="nvcomp_batch"):
        store.migrate(zarr_format=3)
    with pytest.raises(ZarrcError, match="nvcomp_batch"):
        context.store().create(document=cases.document_v3("uint32", 0, [cases.LITTLE, {
            "name": "nvcomp_batch", "configuration": {"algorithm": "lz4"}}], (10,), (10,)))


PLAIN = np.arange(300, dtype="<u4").tobytes()
LONG = np.arange(301, dtype="<u4").tobytes()


def codec(name):
    return kvikio.NvCompBatchCodec(**CONFIGS[name])


@pytest.mark.parametrize("name", CONFIGS)
def test_damage_is_told(context, name, rng):
    """Streams cut short, with more behind them, or of other lengths are CORRUPT; changed ones are that or have the same
    length."""
    store = context.store()
    array = store.create(document=document(CONFIGS[name], shape=(300,)))
    good = bytes(codec(name).encode(PLAIN))
    broken = [b"", good[:1], good[:-1], good[:len(good) // 2], good + b"x", bytes(codec(name).encode(LONG)),
              bytes(codec(name).encode(PLAIN[:-4])), b"\xff" * 9]
    for value in broken:
        store.put("0", value)
        with pytest.raises(ZarrcError) as raised:
            array.read("uint32")
        assert raised.value.code == "CORRUPT", value
    for _ in range(300):
        changed = bytearray(good)
        changed[rng.integers(len(good))] ^= 1 << rng.integers(8)
        store.put("0", bytes(changed))
        try:
            array.read("uint32")
        except ZarrcError as error:
            assert error.code == "CORRUPT"


def test_padding_of_deflate(context):
    store = context.store()
    array = store.create(document=document({"algorithm": "deflate"}, shape=(300,)))
    store.put("0", kvikio.deflate(PLAIN) + bytes(7))
    assert array.read("uint32").tobytes() == PLAIN
    store.put("0", zlib.compress(PLAIN))  # a header
    with pytest.raises(ZarrcError, match="damaged stream of deflate"):
        array.read("uint32")


def test_header_of_lz4(context):
    store = context.store()
    array = store.create(document=document({"algorithm": "lz4"}, shape=(300,)))
    good = bytes(codec("lz4").encode(PLAIN))
    assert struct.unpack("<I", good[:4]) == (1200,)
    store.put("0", struct.pack("<I", 1204) + good[4:])
    with pytest.raises(ZarrcError, match="block says it has 1204 bytes"):
        array.read("uint32")


@pytest.mark.parametrize("name", CONFIGS)
def test_elements_of_any_length(context, name):
    """Where metadata do not tell the length, the room grows."""
    store = context.store()
    made = cases.document_v2("|O", "", (50,), (50,), "C", {"id": "nvcomp_batch", **CONFIGS[name]}, [{"id": "vlen-utf8"}])
    array = store.create(document=made)
    words = [b"x" * 20000] + [b"y" * n for n in range(49)]
    array.write_vlen(words)
    assert store.open().read_vlen() == words
