"""numcodecs' filters in front of its zfpy, v2 and v3, compared with zarr-python. zfpy's header
shows what the filters produce: delta and fixedscaleoffset one dimension, bitround integers. Arrays
that numcodecs cannot encode are refused when they are opened."""
import numpy as np
import pytest

import cases
import peers
from zarrc_abi import ZarrcError

zfpy = pytest.importorskip("zfpy", reason="the oracle, zfpy, has no wheel here")


def f(id_, **members):
    return {"id": id_, **members}


# label: (data type of the array, filters as v2 has them)
FILTERS = {
    "none": ("<f8", []),
    "delta": ("<f8", [f("delta", dtype="<f8")]),
    "delta-int": ("<i4", [f("delta", dtype="<i4")]),
    "delta-narrow": ("<f8", [f("delta", dtype="<f8", astype="<f4")]),
    "quantize": ("<f8", [f("quantize", digits=2, dtype="<f8")]),
    "quantize-narrow": ("<f8", [f("quantize", digits=2, dtype="<f8", astype="<f4")]),
    "bitround-8": ("<f8", [f("bitround", keepbits=20)]),
    "bitround-4": ("<f4", [f("bitround", keepbits=10)]),
    "bitround-nothing": ("<f4", [f("bitround", keepbits=23)]),
    "scale": ("<f8", [f("fixedscaleoffset", offset=1, scale=40, dtype="<f8")]),
    "scale-int": ("<f8", [f("fixedscaleoffset", offset=1, scale=40, dtype="<f8", astype="<i4")]),
    "astype": ("<i2", [f("astype", encode_dtype="<i4", decode_dtype="<i2")]),
    "astype-float": ("<f8", [f("astype", encode_dtype="<f4", decode_dtype="<f8")]),
    "delta-astype": ("<i2", [f("delta", dtype="<i2"), f("astype", encode_dtype="<i8", decode_dtype="<i2")]),
    "astype-bitround": ("<f8", [f("astype", encode_dtype="<f4", decode_dtype="<f8"), f("bitround", keepbits=12)]),
    "delta-bitround": ("<f4", [f("delta", dtype="<f4"), f("bitround", keepbits=12)]),
    "bitround-delta": ("<f4", [f("bitround", keepbits=12), f("delta", dtype="<f4")]),
    "bitround-quantize": ("<f4", [f("bitround", keepbits=12), f("quantize", digits=2, dtype="<f4")]),
    "times": ("<M8[s]", []),
}
# v2 views what flows as another type of that size, and names byte orders
ONLY_V2 = {
    "view": ("<u4", [f("delta", dtype="<i4")]),
    "view-bits": ("<f4", [f("bitround", keepbits=12), f("delta", dtype="<i4")]),
    "big-astype": (">i4", [f("astype", encode_dtype="<i4", decode_dtype=">i4")]),
    "big-delta": (">i4", [f("delta", dtype=">i4", astype="<i4")]),
}
FLATTENS = ("delta", "fixedscaleoffset")
# zarr-python's numcodecs fails at mode 5, so reversible is what "tolerance": -1 gives
MODES = [{"mode": 4, "tolerance": 1e-3}, {"mode": 4}, {"mode": 2, "rate": 24}, {"mode": 3, "precision": 30}]


def document(dtype, filters, mode, format_, shape, chunks, order="C"):
    if format_ == 2:
        return cases.document_v2(dtype, 0, shape, chunks, order, {"id": "zfpy", **mode}, filters)
    native = np.dtype(dtype)
    name = {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}} \
        if native.kind == "M" else native.newbyteorder("=").name
    codecs = [{"name": "numcodecs." + v["id"], "configuration": {k: v[k] for k in v if k != "id"}}
              for v in [*filters, {"id": "zfpy", **mode}]]
    return cases.document_v3(name, 0, codecs, shape, chunks)


def numbers(rng, dtype, shape):
    native = np.dtype(dtype).newbyteorder("=")
    steps = rng.normal(size=shape).cumsum(axis=-1) * 30
    return steps.astype("i8").astype(native) if native.kind in "iuM" else steps.astype(native)


def chunks_in(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*")
            if path.is_file() and path.name not in (".zarray", ".zattrs", "zarr.json")}


def both_ways(context, tmp_path, doc, data):
    """The same bytes from both, the same values to both."""
    cases.put_document(tmp_path / "theirs", doc)
    peers.write(peers.PYTHON, tmp_path / "theirs", data)
    context.store(str(tmp_path / "ours"), create=True).create(document=doc).write(data)
    expected = peers.read(peers.PYTHON, tmp_path / "theirs")
    got = context.store(str(tmp_path / "theirs")).open().read(data.dtype)
    assert got.tobytes() == np.ascontiguousarray(expected).astype(data.dtype).tobytes()
    assert chunks_in(tmp_path / "ours") == chunks_in(tmp_path / "theirs")


@pytest.mark.parametrize("mode", MODES, ids=lambda m: "-".join(str(v) for v in m.values()))
@pytest.mark.parametrize("format_", [2, 3])
@pytest.mark.parametrize("name", FILTERS)
def test_filters(context, rng, tmp_path, name, format_, mode):
    dtype, filters = FILTERS[name]
    both_ways(context, tmp_path, document(dtype, filters, mode, format_, (12, 11), (5, 6)),
              numbers(rng, dtype, (12, 11)))


@pytest.mark.parametrize("mode", MODES, ids=lambda m: "-".join(str(v) for v in m.values()))
@pytest.mark.parametrize("name", ONLY_V2)
def test_v2_views(context, rng, tmp_path, name, mode):
    dtype, filters = ONLY_V2[name]
    both_ways(context, tmp_path, document(dtype, filters, mode, 2, (12, 11), (5, 6)),
              numbers(rng, dtype, (12, 11)))


@pytest.mark.parametrize("format_", [2, 3])
@pytest.mark.parametrize("shape", [(), (7,), (3, 1, 2), (2, 3, 2, 2, 2)])
def test_flat_shapes(context, rng, tmp_path, shape, format_):
    """One dimension has any rank."""
    dtype, filters = FILTERS["delta"]
    both_ways(context, tmp_path, document(dtype, filters, MODES[0], format_, shape, shape),
              numbers(rng, dtype, (*shape, 1))[..., 0])


@pytest.mark.parametrize("name", sorted({*FILTERS, *ONLY_V2}))
def test_order_f(context, rng, tmp_path, name):
    """Flat: as zarr-python. Else it cannot write, but reads what we do; or scrambles: refused."""
    dtype, filters = {**FILTERS, **ONLY_V2}[name]
    doc = document(dtype, filters, MODES[1], 2, (12, 11), (5, 6), "F")
    data = numbers(rng, dtype, (12, 11))
    if filters and filters[0]["id"] in FLATTENS:
        both_ways(context, tmp_path, doc, data)
        return
    if any(v["id"] == "bitround" for v in filters):
        with pytest.raises(ZarrcError, match="UNSUPPORTED.*bitround: with order F"):
            context.store().create(document=doc)
        return
    ours = context.store(str(tmp_path), create=True).create(document=doc)
    ours.write(data)
    np.testing.assert_array_equal(peers.read(peers.PYTHON, tmp_path), ours.read(data.dtype))


REFUSED = {
    "half": ("<f2", [f("bitround", keepbits=5)], "data type float16"),
    "narrow": ("<f8", [f("fixedscaleoffset", offset=0, scale=4, dtype="<f8", astype="|u1")], "data type uint8"),
    "unsigned": ("<u4", [f("delta", dtype="<u4")], "data type uint32"),
    "packbits": ("|b1", [f("packbits")], "data type uint8"),
    "complex": ("<c8", [f("delta", dtype="<c8")], "data type complex64"),
    "shuffle": ("<f4", [f("shuffle", elementsize=4)], '"shuffle" gives bytes'),
    "zlib": ("<f4", [f("zlib", level=1)], '"zlib" gives bytes'),
    "big": (">f4", [f("delta", dtype=">f4")], "little-endian elements only"),
    "other-order": ("<f4", [f("delta", dtype=">f4", astype="<f4")], "byte order that its elements do not have"),
    "big-round": (">f4", [f("bitround", keepbits=3)], "little-endian elements only"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(context, name):
    """numcodecs cannot encode these, or takes other numbers than the array has."""
    dtype, filters, reason = REFUSED[name]
    doc = document(dtype, filters, MODES[0], 2, (6,), (6,))
    doc["fill_value"] = False if dtype == "|b1" else 0
    with pytest.raises(ZarrcError, match=f"UNSUPPORTED.*{reason}"):
        context.store().create(document=doc)


def test_rounded_integers(context):
    with pytest.raises(ZarrcError, match="UNSUPPORTED.*bitround does not take data type int32"):
        context.store().create(document=document("<i4", [f("bitround", keepbits=3)], MODES[0], 2, (6,), (6,)))


def read_chunk(context, doc, encoded, dtype):
    store = context.store()
    array = store.create(document=doc)
    store.put("c/0/0", bytes(encoded))
    return array.read(dtype)


def test_other_headers(context, rng):
    """Writers that do not flatten, or pass floats on: the same count of the same width, or none."""
    data = numbers(rng, "<f4", (6, 10))
    delta = document("<f4", [f("delta", dtype="<f4")], MODES[1], 3, (6, 10), (6, 10))
    differences = np.diff(data.ravel(), prepend=np.float32(0))
    good = [differences, differences.reshape(6, 10)]
    bad = [differences.reshape(10, 6), differences.reshape(3, 20), differences[:-1],
           np.append(differences, np.float32(0)), differences.view("i4"), differences.astype("f8")]
    for given in good:
        got = read_chunk(context, delta, zfpy.compress_numpy(given), "f4")
        np.testing.assert_allclose(got, data, rtol=1e-4, atol=1e-3)
    for given in bad:
        with pytest.raises(ZarrcError, match="CORRUPT.*zfpy: the header says .* items of .*, the chunk has"):
            read_chunk(context, delta, zfpy.compress_numpy(given), "f4")

    rounded = document("<f4", [f("bitround", keepbits=10)], MODES[1], 3, (6, 10), (6, 10))
    for given in (data, data.view("i4"), data.ravel(), data.view("i4").ravel()):
        assert read_chunk(context, rounded, zfpy.compress_numpy(given), "f4").tobytes() == data.tobytes()
    for given in (data.reshape(10, 6), data.view("i4").ravel()[:-1], data.astype("f8"), data.astype("i8")):
        with pytest.raises(ZarrcError, match="CORRUPT.*zfpy: the header says .* items of .*, the chunk has"):
            read_chunk(context, rounded, zfpy.compress_numpy(given), "f4")
    plain = document("<f4", [], MODES[1], 3, (6, 10), (6, 10))
    assert read_chunk(context, plain, zfpy.compress_numpy(data.ravel()), "f4").tobytes() == data.tobytes()
    for given in (data.ravel()[:-1], data.reshape(10, 6), data.view("i4"), data.view("i4").ravel()):
        with pytest.raises(ZarrcError, match="CORRUPT.*zfpy: the header says .* items of .*, the chunk has"):
            read_chunk(context, plain, zfpy.compress_numpy(given), "f4")


def test_header_in_words(context, rng):
    data = numbers(rng, "<f4", (6, 10))
    plain = document("<f4", [], MODES[1], 3, (6, 10), (6, 10))
    for given, says in ((data.reshape(10, 6), "10 x 6 items of float32"), (data.astype("f8"), "6 x 10 items of float64"),
                        (data.view("i4").ravel(), "60 items of int32"), (data.astype("i8")[None], "1 x 6 x 10 items of int64")):
        with pytest.raises(ZarrcError, match=f"zfpy: the header says {says}, the chunk has 6 x 10 items of float32$"):
            read_chunk(context, plain, zfpy.compress_numpy(given), "f4")


@pytest.mark.parametrize("format_", [2, 3])
@pytest.mark.parametrize("kwargs", [{}, {"tolerance": 1e-3}, {"rate": 16}, {"precision": 24}], ids=str)
@pytest.mark.parametrize("shape", [(), (7,), (6, 10), (5, 1, 9), (3, 4, 5, 2), (2, 3, 2, 2, 2)], ids=str)
def test_flattened(context, rng, tmp_path, shape, kwargs, format_):
    """Chunks whose header has one dimension: zarr-python reshapes them, whatever rank the array has.
    The elements are also read where they have strides."""
    data = numbers(rng, "<f8", (*shape, 1))[..., 0]
    cases.put_document(tmp_path, document("<f8", [], MODES[1], format_, shape, shape))
    key = "/".join(["c", *"0" * len(shape)]) if format_ == 3 else ".".join("0" * len(shape)) or "0"
    (tmp_path / key).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / key).write_bytes(zfpy.compress_numpy(data.reshape(-1), **kwargs))
    expected = np.asarray(peers.read(peers.PYTHON, tmp_path))
    array = context.store(str(tmp_path)).open()
    assert array.read("f8").tobytes() == expected.tobytes()
    if shape:
        wide = np.zeros((*shape[:-1], 2 * shape[-1]))[..., ::2]
        array.read_into(wide)
        assert wide.tobytes() == expected.tobytes()
    array.write(data)  # and zarr-python reads what we write
    np.testing.assert_array_equal(peers.read(peers.PYTHON, tmp_path), array.read("f8"))


@pytest.mark.parametrize("name", ["delta", "bitround-4"])
def test_damaged(context, rng, name):
    """Any bytes give an error or values; cut and lengthened ones an error."""
    dtype, filters = FILTERS[name]
    data = numbers(rng, dtype, (13, 7))
    doc = document(dtype, filters, MODES[1], 3, (13, 7), (13, 7))
    store = context.store()
    array = store.create(document=doc)
    array.write(data)
    encoded = bytes(store.get("c/0/0"))
    for broken in (b"", encoded[:-8], encoded[:len(encoded) // 2], encoded + bytes(8), encoded + b"x"):
        with pytest.raises(ZarrcError, match="CORRUPT.*zfp"):
            read_chunk(context, doc, broken, data.dtype)
    for _ in range(200):
        broken = bytearray(encoded)
        for _ in range(rng.integers(1, 4)):
            broken[rng.integers(0, min(len(broken), 40))] ^= 1 << rng.integers(0, 8)
        try:
            assert read_chunk(context, doc, broken, data.dtype).shape == data.shape
        except ZarrcError as error:
            assert "CORRUPT" in str(error)


@pytest.mark.parametrize("name", ["delta", "bitround-4", "scale-int", "astype", "big-delta", "delta-bitround"])
def test_migrated(context, rng, tmp_path, name):
    """A v2 array in the words of v3: the same chunks, which zarr-python reads alike."""
    dtype, filters = {**FILTERS, **ONLY_V2}[name]
    data = numbers(rng, dtype, (12, 11))
    store = context.store(str(tmp_path), create=True)
    store.create(document=document(dtype, filters, MODES[1], 2, (12, 11), (5, 6))).write(data)
    before = store.open().read(data.dtype)
    assert np.allclose(before.astype("f8"), data.astype("f8"), rtol=1e-3, atol=2e-2)
    store.migrate(remove=True)
    np.testing.assert_array_equal(context.store(str(tmp_path)).open().read(data.dtype), before)
    np.testing.assert_array_equal(peers.read(peers.PYTHON, tmp_path), before)
