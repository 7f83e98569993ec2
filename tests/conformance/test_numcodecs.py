"""numcodecs' bytes->bytes codecs: chunks of any size encoded by numcodecs and decoded by zarrc,
and the reverse; arrays of zarr-python in both formats; zarrs if it has the codec."""
import json

import numcodecs
import numpy as np
import pytest
import zarr
import zarr.codecs.numcodecs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cases
import peers
from zarrc_abi import ZarrcError

SETTINGS = settings(max_examples=60, deadline=None, derandomize=True, database=None,
                    suppress_health_check=list(HealthCheck))


@st.composite
def lzma_configs(draw):
    lzma2 = {"id": 0x21, "preset": draw(st.integers(0, 6))}
    if draw(st.booleans()):
        lzma2.update(dict_size=draw(st.sampled_from([4096, 65536, 1 << 20])), lc=draw(st.integers(0, 2)),
                     lp=draw(st.integers(0, 2)), pb=draw(st.integers(0, 4)), mode=draw(st.integers(1, 2)),
                     nice_len=draw(st.integers(8, 273)), mf=draw(st.sampled_from([3, 4, 0x12, 0x13, 0x14])))
    before = draw(st.lists(st.sampled_from([{"id": 3, "dist": 4}, {"id": 3}, {"id": 4}, {"id": 7}]),
                           max_size=2))
    how = draw(st.sampled_from(["xz", "preset", "filters", "alone", "raw", "raw1"]))
    return {"xz": {"format": 1, "check": draw(st.sampled_from([-1, 0, 1, 4, 10]))},
            "preset": {"preset": draw(st.sampled_from([0, 1, 6, 1 | 1 << 31]))},
            "filters": {"format": 1, "filters": [*before, lzma2]},
            "alone": {"format": 2, "preset": draw(st.integers(0, 3))},
            "raw": {"format": 3, "check": -1, "filters": [*before, lzma2]},
            "raw1": {"format": 3, "filters": [{**lzma2, "id": 0x4000000000000001}]}}[how]


LOCATION = st.sampled_from([{}, {"location": "start"}, {"location": "end"}])
CONFIGS = {
    "zlib": st.builds(lambda n: {"level": n}, st.integers(0, 9)),
    "gzip": st.builds(lambda n: {"level": n}, st.integers(0, 9)),
    "zstd": st.builds(lambda n, c: {"level": n, "checksum": c}, st.integers(-5, 12), st.booleans()),
    "lz4": st.builds(lambda n: {"acceleration": n}, st.integers(1, 50)),
    "bz2": st.builds(lambda n: {"level": n}, st.integers(1, 9)),
    "lzma": lzma_configs(),
    "base64": st.just({}),
    "crc32": LOCATION, "crc32c": LOCATION, "adler32": LOCATION,
    "fletcher32": st.just({}),
    "jenkins_lookup3": st.builds(lambda n: {"initval": n}, st.integers(0, 2**32 - 1)),
    "shuffle": st.just({"elementsize": 1}),
}
DETERMINISTIC = ["bz2", "base64", "crc32", "crc32c", "adler32", "fletcher32", "jenkins_lookup3",
                 "shuffle", "lz4", "lzma"]


def chunk(rng, n, kind):
    if kind == 0:
        return np.zeros(n, "u1")
    if kind == 1:
        return rng.integers(0, 256, n).astype("u1")
    return np.repeat(rng.integers(0, 256, n // 7 + 1), 7)[:n].astype("u1")


@pytest.mark.parametrize("codec", CONFIGS)
def test_chunks(context, codec):
    """One chunk each way: what numcodecs encodes we read, and the other way round."""
    @SETTINGS
    @given(CONFIGS[codec], st.integers(1, 5000), st.integers(0, 2), st.integers(0, 2**32 - 1))
    def run(config, n, kind, seed):
        data = chunk(np.random.default_rng(seed), n, kind)
        theirs = numcodecs.get_codec({"id": codec, **config})
        document = cases.document_v2("|u1", int(data[0] ^ 1), (n,), (n,), compressor={"id": codec, **config})
        store = context.store()
        array = store.create(document=document)
        store.put("0", bytes(theirs.encode(data)))
        np.testing.assert_array_equal(array.read("u1"), data)
        ours = context.store()
        array = ours.create(document=document)
        array.write(data)
        encoded = ours.get("0")
        if not (codec == "lzma" and config.get("format", 1) == 1 and "filters" in config):
            # (numcodecs hands .xz its filters when decoding, which Python refuses)
            np.testing.assert_array_equal(np.frombuffer(theirs.decode(encoded), "u1"), data)
        if codec in DETERMINISTIC:
            assert encoded == bytes(theirs.encode(data))
    run()


V3 = {
    "bz2": {"level": 3}, "lzma": {"preset": 1}, "lzma-raw": {"format": 3, "filters": [{"id": 33, "preset": 1}]},
    "crc32": {}, "crc32-end": {"location": "end"}, "adler32": {}, "fletcher32": {},
    "jenkins_lookup3": {"initval": 5}, "zlib": {"level": 2}, "gzip": {"level": 2}, "lz4": {"acceleration": 2},
    "zstd": {"level": 1}, "crc32c": {}, "crc32c-start": {"location": "start"}, "shuffle": {"elementsize": 4},
    "blosc": {"cname": "zstd", "clevel": 5, "shuffle": 1, "blocksize": 0},
}


@pytest.mark.parametrize("name", V3)
def test_arrays_v3(context, rng, tmp_path, name):
    codec = {"name": "numcodecs." + name.split("-")[0], "configuration": V3[name]}
    document = cases.document_v3("int32", 7, [cases.LITTLE, codec], (13, 9), (5, 4))
    data = rng.integers(-2**31, 2**31, (13, 9), "i4")
    for peer in [peers.PYTHON] + [peers.ZARRS] * peers.zarrs_takes(document):
        theirs = tmp_path / peer
        cases.put_document(theirs, document)
        peers.write(peer, theirs, data)
        np.testing.assert_array_equal(context.store(str(theirs)).open().read("i4"), data)
        ours = tmp_path / ("for-" + peer)
        context.store(str(ours), create=True).create(document=document).write(data)
        np.testing.assert_array_equal(peers.read(peer, ours), data)
    written = json.loads((tmp_path / "for-zarr-python" / "zarr.json").read_text())
    assert written["codecs"][1]["name"] in (codec["name"], codec["name"].removeprefix("numcodecs."))


@pytest.mark.parametrize("order", "CF")
def test_arrays_v2(context, rng, tmp_path, order):
    """Checksums and texts as filters, in front of and behind compressors."""
    filters = [{"id": "crc32"}, {"id": "bz2", "level": 1}, {"id": "fletcher32"}, {"id": "base64"},
               {"id": "jenkins_lookup3", "initval": 9, "prefix": None}, {"id": "adler32", "location": "end"}]
    document = cases.document_v2(">i2", 0, (7, 13), (4, 6), order, {"id": "lzma", "format": 1, "check": -1,
                                                                    "preset": None, "filters": None}, filters)
    data = rng.integers(-2**15, 2**15, (7, 13)).astype("i2")
    cases.put_document(tmp_path / "theirs", document)
    peers.write(peers.PYTHON, tmp_path / "theirs", data)
    np.testing.assert_array_equal(context.store(str(tmp_path / "theirs")).open().read("i2"), data)
    context.store(str(tmp_path / "ours"), create=True).create(document=document).write(data)
    np.testing.assert_array_equal(peers.read(peers.PYTHON, tmp_path / "ours"), data)
    ours, theirs = ((tmp_path / who / "1.2").read_bytes() for who in ("ours", "theirs"))
    assert ours == theirs


def test_filters_in_xz(context):
    """What numcodecs writes with filters in .xz it cannot read itself; we can."""
    config = {"id": "lzma", "format": 1, "filters": [{"id": 3, "dist": 2}, {"id": 33, "preset": 0}]}
    data = np.arange(3000, dtype="<i2")
    store = context.store()
    array = store.create(document=cases.document_v2("<i2", 0, (3000,), (3000,), compressor=config))
    store.put("0", bytes(numcodecs.get_codec(config).encode(data)))
    np.testing.assert_array_equal(array.read("i2"), data)


ITEMS = {
    "plain": lambda shuffle: [cases.LITTLE, *shuffle],
    "narrowed": lambda shuffle: [{"name": "numcodecs.astype", "configuration": {
        "encode_dtype": "<i2", "decode_dtype": "<i8"}}, cases.LITTLE, *shuffle],
    "sharded": lambda shuffle: [cases.sharding((2, 4), [cases.LITTLE, *shuffle])],
    "conditional": lambda shuffle: [cases.LITTLE, {"name": "conditional", "configuration": {
        "codecs": shuffle, "header_bits": 8}}],
}


def says_items(node):
    """The elementsize of every shuffle in there."""
    if isinstance(node, dict):
        mine = [node["configuration"].get("elementsize")] if node.get("name") == "numcodecs.shuffle" else []
        return mine + says_items(list(node.values()))
    return [size for item in node for size in says_items(item)] if isinstance(node, list) else []


def shuffle_case(rng, chain, dtype, configuration):
    """The document and data of an array, and the size of the items that its shuffle gets."""
    if chain == "narrowed":
        dtype = "int64"
    shuffle = {"name": "numcodecs.shuffle"} if configuration is None else \
        {"name": "numcodecs.shuffle", "configuration": configuration}
    document = cases.document_v3(dtype, [0, 0] if dtype[0] == "c" else 0, ITEMS[chain]([shuffle]), (12, 8), (4, 8))
    item = 2 if chain == "narrowed" else np.dtype(dtype).itemsize
    return document, rng.integers(0, 120, (12, 8)).astype(dtype), item


@pytest.mark.parametrize("configuration", [None, {}, {"elementsize": None}], ids=["none", "empty", "null"])
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "float64", "complex128"])
@pytest.mark.parametrize("chain", ["plain", "narrowed", "sharded", "conditional"])
def test_shuffle_of_items(context, rng, tmp_path, chain, dtype, configuration):
    """A shuffle of v3 without elementsize has that of the array that becomes bytes, and says so
    when it is written."""
    document, data, item = shuffle_case(rng, chain, dtype, configuration)
    context.store(str(tmp_path), create=True).create(document=document).write(data)
    assert says_items(json.loads((tmp_path / "zarr.json").read_text())) == [item]
    if chain != "conditional":  # which zarr-python does not have
        np.testing.assert_array_equal(peers.read(peers.PYTHON, tmp_path), data)
    if chain in ("plain", "narrowed"):
        items = data[:4].astype("<i2") if chain == "narrowed" else data[:4]
        assert (tmp_path / "c/0/0").read_bytes() == bytes(numcodecs.Shuffle(item).encode(items))
    cases.put_document(tmp_path, document)
    np.testing.assert_array_equal(context.store(str(tmp_path)).open().read(data.dtype), data)


@pytest.mark.parametrize("configuration", [{}, {"elementsize": None}], ids=["empty", "null"])
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "float64", "complex128"])
@pytest.mark.parametrize("chain", ["plain", "narrowed", "sharded"])
def test_shuffle_of_items_in_zarr_python(context, rng, tmp_path, chain, dtype, configuration):
    """zarr-python takes a missing elementsize from the array, too."""
    if chain == "narrowed" and not peers.ZARR_AT_LEAST_3_3:
        pytest.skip(f"zarr-python {zarr.__version__} gives a shuffle behind astype the item size of "
                    "the array, not the one that astype makes")
    document, data, _ = shuffle_case(rng, chain, dtype, configuration)
    context.store(str(tmp_path / "ours"), create=True).create(document=document).write(data)
    for peer in ("ours", "theirs"):
        cases.put_document(tmp_path / peer, document)
    np.testing.assert_array_equal(peers.read(peers.PYTHON, tmp_path / "ours"), data)
    peers.write(peers.PYTHON, tmp_path / "theirs", data)
    np.testing.assert_array_equal(context.store(str(tmp_path / "theirs")).open().read(data.dtype), data)


@pytest.mark.parametrize("configuration", [{}, {"elementsize": None}], ids=["empty", "null"])
def test_shuffle_that_zarr_python_creates(context, rng, tmp_path, configuration):
    """Its documents say the elementsize, whichever it takes: so every version's arrays are read."""
    data = rng.integers(-2**15, 2**15, (12, 8))
    astype = zarr.codecs.numcodecs.AsType(encode_dtype="<i2", decode_dtype="<i8")
    shuffle = zarr.codecs.numcodecs.Shuffle(**configuration)
    zarr.create_array(tmp_path, shape=(12, 8), chunks=(4, 8), dtype="i8", filters=[astype],
                      compressors=[shuffle])[...] = data
    item = 2 if peers.ZARR_AT_LEAST_3_3 else 8
    assert says_items(json.loads((tmp_path / "zarr.json").read_text())) == [item]
    assert (tmp_path / "c/0/0").read_bytes() == bytes(numcodecs.Shuffle(item).encode(data[:4].astype("<i2")))
    array = context.store(str(tmp_path)).open()
    np.testing.assert_array_equal(array.read("i8"), data)
    array.write(data[::-1].copy())
    np.testing.assert_array_equal(peers.read(peers.PYTHON, tmp_path), data[::-1])


def test_shuffle_behind_compressors(context, rng, tmp_path):
    """The item size of the array, whatever codecs are in between."""
    codecs = [cases.LITTLE, {"name": "numcodecs.crc32", "configuration": {}},
              {"name": "numcodecs.fletcher32", "configuration": {}},
              {"name": "numcodecs.shuffle", "configuration": {}}]
    document = cases.document_v3("float64", 0.0, codecs, (12, 8), (4, 8))
    data = rng.random((12, 8))
    cases.put_document(tmp_path, document)
    peers.write(peers.PYTHON, tmp_path, data)
    np.testing.assert_array_equal(context.store(str(tmp_path)).open().read("f8"), data)


def test_shuffle_of_texts(context):
    """They have no item size; v2's default stays numcodecs' 4."""
    document = cases.document_v3("string", "", [{"name": "vlen-utf8"}, {"name": "numcodecs.shuffle"}], (4,), (4,))
    with pytest.raises(ZarrcError, match="elementsize is missing") as raised:
        context.store().create(document=document)
    assert raised.value.code == "UNSUPPORTED"
    store = context.store()
    store.create(document=cases.document_v2("<f8", 0, (4,), (4,), filters=[{"id": "shuffle"}])).write(
        np.arange(1.0, 5))
    assert store.get("0") == bytes(numcodecs.Shuffle().encode(np.arange(1.0, 5)))
