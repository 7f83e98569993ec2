"""packbits compared with zarrs and numcodecs; zfp and zfpy compared with zfpy, the Python binding
of zfp."""
from dataclasses import dataclass, field

import numcodecs
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from zarr.abc.codec import ArrayBytesCodec
from zarr.registry import register_codec

import cases
import peers
from zarrc_abi import Stats, ZarrcError

SETTINGS = settings(max_examples=40, deadline=None, derandomize=True, database=None,
                    suppress_health_check=list(HealthCheck))


@dataclass(frozen=True)
class StandIn(ArrayBytesCodec):
    """zarr-python has no packbits; its metadata must pass for zarrs' pipeline to see it."""
    is_fixed_size = False
    members: dict = field(default_factory=dict)

    @classmethod
    def from_dict(cls, data):
        return cls(data.get("configuration", {}))

    def to_dict(self):
        return {"name": "packbits", "configuration": self.members}

    def compute_encoded_size(self, input_byte_length, chunk_spec):
        raise NotImplementedError

    async def _decode_single(self, *_):
        raise NotImplementedError

    async def _encode_single(self, *_):
        raise NotImplementedError


register_codec("packbits", StandIn)
PADDINGS = ["none", "first_byte", "last_byte"]


def read_chunk(store):
    """The value of the only chunk."""
    (key,) = [k for k in store.keys() if k != "zarr.json" and not k.startswith(".z")]
    return store.get(key)


def ours_as_bytes(context, document, data):
    store = context.store()
    store.create(document=document).write(data)
    return read_chunk(store)


def ours_from_bytes(context, document, encoded, dtype):
    store = context.store()
    array = store.create(document=document)
    key = "/".join(["c"] + ["0"] * len(document["shape"]))
    if document["zarr_format"] == 2:
        key = ".".join("0" * len(document["shape"]))
    store.put(key, bytes(encoded))
    return array.read(dtype)


# ---- packbits ----------------------------------------------------------------------------

def pack(data, first, last, signed):
    """The registry's text, bit by bit: values of one component, LSB first."""
    bits = [int(v) >> b & 1 for v in data.ravel() for b in range(first, last + 1)]
    bits += [0] * (-len(bits) % 8)
    return bytes(sum(bits[8 * i + k] << k for k in range(8)) for i in range(len(bits) // 8))


INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_packbits_by_its_text(context, dtype):
    """Every range of bits; what is cut off comes back as the sign, or as zeros."""
    native = np.dtype(dtype)
    n_bits = native.itemsize * 8

    @SETTINGS
    @given(st.data())
    def run(draw):
        first = draw.draw(st.integers(0, n_bits - 1))
        last = draw.draw(st.integers(first, n_bits - 1))
        padding = draw.draw(st.sampled_from(PADDINGS))
        n = draw.draw(st.integers(1, 40))
        rng = np.random.default_rng(draw.draw(st.integers(0, 2**32 - 1)))
        data = np.frombuffer(rng.bytes(n * native.itemsize), native)
        document = cases.document_v3(dtype, int(~data[0]), [{"name": "packbits", "configuration": {
            "padding_encoding": padding, "first_bit": first, "last_bit": last}}], (n,), (n,))
        pad = bytes([-n * (last - first + 1) % 8])
        expected = pack(data, first, last, native.kind == "i")
        expected = (pad if padding == "first_byte" else b"") + expected + \
            (pad if padding == "last_byte" else b"")
        assert ours_as_bytes(context, document, data) == expected
        kept = [(int(v) >> first) & ((1 << (last - first + 1)) - 1) for v in data]
        if native.kind == "i":
            kept = [v - (1 << (last - first + 1)) if v >> (last - first) else v for v in kept]
        back = [(v << first) for v in kept]
        got = ours_from_bytes(context, document, expected, native)
        assert [int(v) for v in got] == back
    run()


@pytest.mark.parametrize("spelling", [("padding_encoding", "first_bit", "last_bit", "first_byte"),
                                      ("padding_encoding", "start_bit", "end_bit", "start_byte")])
def test_packbits_spellings(context, spelling):
    padding, first, last, word = spelling
    document = cases.document_v3("uint16", 0, [{"name": "packbits", "configuration": {
        padding: word, first: 1, last: 4}}], (3,), (3,))
    store = context.store()
    array = store.create(document=document)
    array.write(np.array([30, 2, 16], "u2"))
    assert read_chunk(store) == bytes([4, 0x1F, 0x08])
    assert array.codecs == [{"name": "packbits", "configuration": {
        "padding_encoding": "first_byte", "first_bit": 1, "last_bit": 4}}]


# zarrs writes whole bytes as `bytes` does, without the count of padding bits, and extends a
# sign to the end of its byte only: such cases are left out. It decodes a first_bit other than 0
# to other values than it encoded: there the bytes are compared, and our values with the text's.
ZARRS_CASES = [("bool", None, None, p) for p in PADDINGS] + [
    ("uint8", 0, 4, "none"), ("uint8", 2, 5, "first_byte"), ("int8", 0, 2, "last_byte"),
    ("int8", 1, 6, "none"), ("uint16", 3, 12, "last_byte"), ("uint32", 0, 16, "first_byte"),
    ("uint64", 5, 60, "none"), ("uint16", None, None, "none"), ("float32", 13, 31, "first_byte"),
    ("float64", None, None, "none"), ("complex64", 0, 30, "none"), ("float16", 6, 14, "none")]


@pytest.mark.parametrize("dtype,first,last,padding", ZARRS_CASES)
def test_packbits_zarrs(context, rng, tmp_path, dtype, first, last, padding):
    members = {"padding_encoding": padding}
    if first is not None:
        members.update(first_bit=first, last_bit=last)
    fill = False if dtype == "bool" else [0.0, 0.0] if dtype[0] == "c" else 0
    document = cases.document_v3(dtype, fill, [{"name": "packbits", "configuration": members}], (7, 5), (4, 3))
    raw = rng.bytes(35 * np.dtype(dtype).itemsize)
    data = rng.integers(0, 2, (7, 5)).astype(bool) if dtype == "bool" else \
        np.frombuffer(raw, dtype).reshape(7, 5)
    cases.put_document(tmp_path / "theirs", document)
    peers.write(peers.ZARRS, tmp_path / "theirs", data)
    theirs = context.store(str(tmp_path / "theirs"))
    ours = context.store(str(tmp_path / "ours"), create=True)
    array = ours.create(document=document)
    array.write(data)
    keys = [k for k in theirs.keys() if k != "zarr.json"]
    assert keys and [ours.get(k) for k in keys] == [theirs.get(k) for k in keys]
    decoded = array.read(dtype)
    assert theirs.open().read(dtype).tobytes() == decoded.tobytes()
    if not first:
        assert peers.read(peers.ZARRS, tmp_path / "ours").tobytes() == decoded.tobytes()


@pytest.mark.parametrize("n", [1, 7, 8, 9, 64, 1001])
def test_packbits_v3_of_numcodecs(context, rng, n):
    """A codec between arrays: bool in, uint8 of another shape out."""
    data = rng.integers(0, 2, n).astype(bool)
    document = cases.document_v3("bool", bool(not data[0]), [
        {"name": "numcodecs.packbits", "configuration": {}}, cases.PLAIN,
        {"name": "numcodecs.crc32", "configuration": {}}], (n,), (n,))
    theirs = bytes(numcodecs.CRC32().encode(numcodecs.PackBits().encode(data)))
    assert ours_as_bytes(context, document, data) == theirs
    np.testing.assert_array_equal(ours_from_bytes(context, document, theirs, bool), data)


# ---- zfp ---------------------------------------------------------------------------------

# No rates below 4: zfpy writes behind its buffer when a block of doubles has less than 12 bits.
MODES = st.one_of(
    st.just({"mode": "reversible"}),
    st.builds(lambda v: {"mode": "fixed_accuracy", "tolerance": v}, st.sampled_from([0, 1e-3, 0.05, 3])),
    st.builds(lambda v: {"mode": "fixed_rate", "rate": v}, st.sampled_from([4, 8, 16, 31.25])),
    st.builds(lambda v: {"mode": "fixed_precision", "precision": v}, st.integers(2, 40)))
SHAPES = st.one_of(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.just([100]), st.just([17, 33]))


def zfpy_arguments(members):
    return {k: v for k, v in members.items() if k != "mode"}


def zfp_data(rng, shape, dtype):
    steps = rng.normal(size=shape).cumsum(axis=-1)
    if np.dtype(dtype).kind == "f":
        return steps.astype(dtype)
    return (steps * 1000).astype(dtype)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("header", [False, True])
def test_zfp(context, dtype, header):
    zfpy = pytest.importorskip("zfpy", reason="the oracle, zfpy, has no wheel here")

    @SETTINGS
    @given(MODES, SHAPES, st.integers(0, 2**32 - 1))
    def run(members, shape, seed):
        data = zfp_data(np.random.default_rng(seed), shape, dtype)
        codec = {"name": "zfp", "configuration": members}
        if header:
            number = {"reversible": 4, "fixed_accuracy": 4, "fixed_rate": 2, "fixed_precision": 3}
            codec = {"name": "numcodecs.zfpy", "configuration": {
                "mode": number[members["mode"]], **zfpy_arguments(members)}}
        document = cases.document_v3(dtype, int(data.flat[0]) ^ 1, [codec], shape, shape)
        theirs = zfpy.compress_numpy(data, write_header=header, **zfpy_arguments(members))
        assert ours_as_bytes(context, document, data) == theirs
        decoded = ours_from_bytes(context, document, theirs, dtype)
        if header:
            expected = zfpy.decompress_numpy(theirs)
        else:
            expected = zfpy._decompress(theirs, zfpy.dtype_to_ztype(data.dtype), shape,
                                        **zfpy_arguments(members))
        assert decoded.tobytes() == expected.tobytes()
        if members["mode"] == "reversible":
            assert decoded.tobytes() == data.tobytes()
    run()


def promote(data):
    """The registry's text."""
    bits = data.dtype.itemsize * 8
    wide = data.astype("i8")
    if data.dtype.kind == "u":
        wide = wide - (1 << (bits - 1))
    return (wide << (31 - bits)).astype("i4")


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_zfp_promotes(context, rng, dtype):
    zfpy = pytest.importorskip("zfpy", reason="the oracle, zfpy, has no wheel here")
    data = np.frombuffer(rng.bytes(240 * np.dtype(dtype).itemsize), dtype).reshape(12, 20)
    for members in [{"mode": "reversible"}, {"mode": "fixed_precision", "precision": 32},
                    {"mode": "fixed_rate", "rate": 12}]:
        document = cases.document_v3(dtype, int(data[0, 0]) ^ 1, [{"name": "zfp", "configuration": members}],
                                     data.shape, data.shape)
        theirs = zfpy.compress_numpy(promote(data), write_header=False, **zfpy_arguments(members))
        assert ours_as_bytes(context, document, data) == theirs
        got = ours_from_bytes(context, document, theirs, dtype)
        if members["mode"] == "reversible":
            np.testing.assert_array_equal(got, data)
        bits, info = np.dtype(dtype).itemsize * 8, np.iinfo(dtype)
        wide = zfpy._decompress(theirs, zfpy.type_int32, data.shape, **zfpy_arguments(members)).astype("i8")
        back = (wide >> (31 - bits)) + (1 << (bits - 1) if dtype[0] == "u" else 0)
        np.testing.assert_array_equal(got, np.clip(back, info.min, info.max).astype(dtype))


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_zfp_unsigned(context, dtype):
    """As they are, like zarrs; the highest bit has no room, which is an error, no other number."""
    top = np.iinfo(dtype).max // 2
    data = np.array([0, 1, 77, top], dtype)
    document = cases.document_v3(dtype, 5, [{"name": "zfp", "configuration": {"mode": "reversible"}}], (4,), (4,))
    np.testing.assert_array_equal(
        ours_from_bytes(context, document, ours_as_bytes(context, document, data), dtype), data)
    with pytest.raises(ZarrcError, match="INVALID.*highest bit"):
        ours_as_bytes(context, document, data + np.array(1, dtype))


def test_zfp_expert_and_0d(context):
    """Expert parameters that mean another mode give that mode's bytes."""
    zfpy = pytest.importorskip("zfpy", reason="the oracle, zfpy, has no wheel here")
    data = np.linspace(0, 1, 64).reshape(8, 8)
    expert = {"mode": "expert", "minbits": 1, "maxbits": 16658, "maxprec": 20, "minexp": -1074}
    document = cases.document_v3("float64", -1.0, [{"name": "zfp", "configuration": expert}], (8, 8), (8, 8))
    assert ours_as_bytes(context, document, data) == zfpy.compress_numpy(data, precision=20, write_header=False)
    point = cases.document_v3("float32", 0.0, [{"name": "zfp", "configuration": {"mode": "reversible"}}], (), ())
    data = np.array(2.5, "f4")
    assert ours_as_bytes(context, point, data) == zfpy.compress_numpy(data.reshape(1), write_header=False)


def places(kind, shape):
    """A buffer, and a view of this shape in it."""
    if kind == "turned":
        buffer = np.zeros(shape[::-1], "f4")
        return buffer, buffer.T
    buffer = np.zeros([3 * n for n in shape], "f4")
    if kind == "unaligned":
        buffer = np.zeros(np.prod(shape) * 4 + 1, "u1")
        return buffer, buffer[1:].view("f4").reshape(shape)
    return buffer, {"box": buffer[tuple(slice(1, 1 + n) for n in shape)],
                    "steps": buffer[tuple(slice(2, None, 3) for _ in shape)],
                    "backward": buffer[tuple(slice(n - 1, None, -1) for n in shape)]}[kind]


@pytest.mark.parametrize("kind", ["box", "steps", "backward", "turned", "unaligned"])
@pytest.mark.parametrize("shape,chunks", [((9,), (4,)), ((8, 13), (4, 5)), ((5, 6, 7), (2, 3, 4)),
                                          ((3, 4, 5, 6), (2, 2, 2, 3))], ids=str)
@pytest.mark.parametrize("behind", [[], [cases.gzip()]], ids=["alone", "gzip"])
def test_zfp_strides(context, rng, kind, shape, chunks, behind):
    """libzfp writes whole chunks where they belong; what it cannot do goes by a block."""
    codecs = [{"name": "zfp", "configuration": {"mode": "reversible"}}, *behind]
    array = context.store().create(document=cases.document_v3("float32", 1.5, codecs, shape, chunks))
    data = rng.normal(size=shape).astype("f4")
    array.write(data)
    buffer, view = places(kind, shape)
    untouched = buffer.copy()
    stats = Stats()
    array.read_into(view, stats=stats)
    np.testing.assert_array_equal(view, data)
    whole = np.prod([n // c for n, c in zip(shape, chunks)])
    if kind == "unaligned" and len(shape) > 1:  # a row of elements is one without strides
        whole = 0
    assert stats.chunks_direct == whole, stats
    assert "where the decoder knows the tensor's strides" in array.explain()
    view[...] = 0
    np.testing.assert_array_equal(buffer, untouched)
    array.read_into(view, pipeline="serial")
    np.testing.assert_array_equal(view, data)


def test_zfpy_array(context, rng, tmp_path):
    """zarr-python's own array, in both directions."""
    pytest.importorskip("zfpy", reason="the oracle, zfpy, has no wheel here")
    codec = {"name": "numcodecs.zfpy", "configuration": {"mode": 4, "tolerance": 0.01}}
    document = cases.document_v3("float64", 0.0, [codec], (20, 30), (16, 16))
    data = zfp_data(rng, (20, 30), "float64")
    cases.put_document(tmp_path / "theirs", document)
    peers.write(peers.PYTHON, tmp_path / "theirs", data)
    context.store(str(tmp_path / "ours"), create=True).create(document=document).write(data)
    for place in ("theirs", "ours"):
        got = context.store(str(tmp_path / place)).open().read("f8")
        np.testing.assert_array_equal(got, peers.read(peers.PYTHON, tmp_path / place))
        assert np.abs(got - data).max() <= 0.01


def test_zfpy_v2(context, rng, tmp_path):
    """A compressor that sees the array, not its bytes."""
    numcodecs_zfpy = pytest.importorskip("numcodecs.zfpy", reason="the oracle, zfpy, has no wheel here")
    pytest.importorskip("zfpy", reason="the oracle, zfpy, has no wheel here")
    data = zfp_data(rng, (20, 30), "float32")
    config = numcodecs_zfpy.ZFPY(mode=2, rate=16).get_config()
    document = cases.document_v2("<f4", 0, (20, 30), (16, 16), compressor=config)
    cases.put_document(tmp_path / "theirs", document)
    peers.write(peers.PYTHON, tmp_path / "theirs", data)
    context.store(str(tmp_path / "ours"), create=True).create(document=document).write(data)
    for place in ("theirs", "ours"):
        got = context.store(str(tmp_path / place)).open().read("f4")
        np.testing.assert_array_equal(got, peers.read(peers.PYTHON, tmp_path / place))
    with pytest.raises(ZarrcError, match="UNSUPPORTED.*zfpy.*little-endian"):
        context.store().create(document={**document, "dtype": ">f4"})


def test_pcodec_is_named(context, rng, tmp_path):
    """No library for C: the array opens, its data says what is missing."""
    codec = {"name": "numcodecs.pcodec", "configuration": {"level": 4}}
    document = cases.document_v3("float32", 0.0, [codec], (10,), (10,))
    cases.put_document(tmp_path, document)
    peers.write(peers.PYTHON, tmp_path, rng.normal(size=10).astype("f4")) \
        if "pcodec" in numcodecs.registry.codec_registry else context.store(str(tmp_path)).put("c/0", b"pco!")
    array = context.store(str(tmp_path)).open()
    assert array.shape == (10,)
    with pytest.raises(ZarrcError, match='UNSUPPORTED.*"pcodec".*pco, is in Rust.*plug-in'):
        array.read("f4")


# ---- damage ------------------------------------------------------------------------------

@pytest.mark.parametrize("members", [{"mode": "reversible"}, {"mode": "fixed_rate", "rate": 9},
                                     {"mode": "fixed_accuracy", "tolerance": 0.5}])
@pytest.mark.parametrize("name", ["zfp", "numcodecs.zfpy"])
def test_zfp_damaged(context, rng, name, members):
    """Any bytes give an error or values; cut and lengthened ones an error."""
    data = zfp_data(rng, (13, 7), "float32")
    if name != "zfp":
        members = {"mode": {"reversible": 5, "fixed_rate": 2, "fixed_accuracy": 4}[members["mode"]],
                   **zfpy_arguments(members)}
    document = cases.document_v3("float32", 1.0, [{"name": name, "configuration": members}], (13, 7), (13, 7))
    encoded = ours_as_bytes(context, document, data)
    for broken in (b"", encoded[:-8], encoded[:len(encoded) // 2], encoded + bytes(8), encoded + b"x"):
        with pytest.raises(ZarrcError, match="CORRUPT.*zfp"):
            ours_from_bytes(context, document, broken, "float32")
    for _ in range(200):
        broken = bytearray(encoded)
        for _ in range(rng.integers(1, 4)):
            broken[rng.integers(0, len(broken))] ^= 1 << rng.integers(0, 8)
        try:
            ours_from_bytes(context, document, broken, "float32")
        except ZarrcError as error:
            assert error.code == "CORRUPT", error
