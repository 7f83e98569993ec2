"""Codecs that compute: numcodecs' filters in v2 and v3, bitround, cast_value, scale_offset, reshape,
squeeze. Their definition includes a loss of information, so the tests compare stored bytes and
decoded elements with those of the other implementation."""
import json
import platform
import warnings

import numcodecs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cases
import peers
from zarrc_abi import ZarrcError

try:
    import cast_value_rs
except ImportError:
    cast_value_rs = None
needs_cast = pytest.mark.skipif(cast_value_rs is None, reason="cast-value-rs is not installed")

# On other machines NumPy uses instructions for halves, which make NaN quiet.
NANS = platform.machine() in ("x86_64", "AMD64")
N = 700  # more than one block of the loops
INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
FLOATS = ["f2", "f4", "f8"]
V3_NAMES = {"i": "int", "u": "uint", "f": "float"}


def spell(code, order="<"):
    return ("|" if code.endswith("1") else order) + code


def v3_name(code):
    dtype = np.dtype(code)
    return V3_NAMES[dtype.kind] + str(8 * dtype.itemsize)


def quiet(function, *arguments, **options):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return function(*arguments, **options)


def small(rng, dtype, limit=100):
    """Whole numbers that fit every type; with halves for floats."""
    dtype = np.dtype(dtype)
    low = 0 if dtype.kind in "ub" else -limit
    data = rng.integers(low, limit + 1, N)
    return (data / 2 if dtype.kind == "f" else data).astype(dtype)


def any_bits(rng, dtype):
    return np.frombuffer(rng.bytes(N * np.dtype(dtype).itemsize), dtype).copy()


def make(context, document, chunk=None):
    store = context.store()
    array = store.create(document=document)
    if chunk is not None:
        store.put("c/0" if document["zarr_format"] == 3 else "0", chunk)
    return store, array


def read_chunk(store, document):
    return store.get("c/0" if document["zarr_format"] == 3 else "0")


# ---- numcodecs ---------------------------------------------------------------------------

@st.composite
def filters(draw):
    """Draws (configuration, decoded type, encoded type)."""
    order = draw(st.sampled_from("<<<>"))
    kind = draw(st.sampled_from(["delta", "fixedscaleoffset", "quantize", "astype", "bitround"]))
    types = FLOATS if kind in ("quantize", "bitround") else INTEGERS + FLOATS
    dtype, astype = draw(st.sampled_from(types)), draw(st.sampled_from(types))
    if draw(st.booleans()):
        astype = dtype
    if kind == "bitround":
        return {"id": kind, "keepbits": draw(st.integers(0, 10))}, spell(dtype), spell(dtype)
    if kind == "astype":
        return ({"id": kind, "encode_dtype": spell(astype, order), "decode_dtype": spell(dtype, order)},
                spell(dtype, order), spell(astype, order))
    config = {"id": kind, "dtype": spell(dtype, order), "astype": spell(astype, order)}
    if kind == "quantize":
        config["digits"] = draw(st.integers(-3, 6))
    if kind == "fixedscaleoffset":
        config["offset"] = draw(st.sampled_from([0, 1, 7, 0.5, 2.0, -3, 1e3, 0.1, 123456789]))
        config["scale"] = draw(st.sampled_from([1, 2, 10, 0.5, 10.0, 100.0, 0.1, 3, 1 / 3]))
    return config, spell(dtype, order), spell(astype, order)


def make_document(config, dtype, astype, format):
    if format == 2:
        return cases.document_v2(dtype, 0, (N,), (N,), filters=[config])
    config = dict(config)
    name = "numcodecs." + config.pop("id")
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    return cases.document_v3(v3_name(dtype), 0, [{"name": name, "configuration": config},
                                                 little if astype[1:] not in ("i1", "u1") else cases.PLAIN],
                             (N,), (N,))


def encode(config, data, format):
    encoded = quiet(numcodecs.get_codec(config).encode, data)
    return (encoded if format == 2 else cases.native(encoded)).tobytes()


def fits(config, data, astype):
    """Whether NumPy's casts are defined: all values are in the integers' range."""
    to = np.dtype(astype)
    if to.kind not in "iu" or config["id"] in ("delta", "bitround"):
        return True
    values = data.astype("f8")
    if config["id"] == "fixedscaleoffset":
        typed = cases.native(data)
        values = quiet(lambda: np.rint((typed - config["offset"]) * config["scale"]).astype("f8")) \
            if typed.dtype.kind == "f" else np.rint((values - config["offset"]) * config["scale"])
    info = np.iinfo(to)
    return bool((values >= info.min).all() and (values <= min(info.max, 2**62)).all())


@pytest.mark.parametrize("format", [2, 3])
@given(filters(), st.integers(0, 2**32))
def test_numcodecs_encodes(context, format, chosen, seed):
    config, dtype, astype = chosen
    rng = np.random.default_rng(seed)
    whole = np.dtype(dtype).kind in "iu" and np.dtype(astype).kind in "iu"
    data = any_bits(rng, dtype) if config["id"] == "bitround" or \
        (whole and config["id"] in ("delta", "astype")) or \
        (config["id"] == "astype" and NANS and np.dtype(dtype).kind + np.dtype(astype).kind == "ff") \
        else small(rng, dtype)
    if config["id"] == "delta" and np.dtype(astype).kind != "f" and np.dtype(dtype).kind == "f":
        data = np.rint(np.abs(data)).cumsum().astype(dtype)
        if np.diff(data).max(initial=0) > 100 or data[0] < 0:
            return
    if config["id"] == "bitround":
        data = data[~np.isnan(data)]
        data = np.resize(data, N)
    if not fits(config, data, astype):
        return
    try:
        expected = encode(config, data, format)
    except (OverflowError, ValueError) as error:  # an integer out of the type's range; keepbits
        store, array = make(context, make_document(config, dtype, astype, format))
        if isinstance(error, OverflowError) and config["id"] == "fixedscaleoffset":
            with pytest.raises(ZarrcError):
                array.write(data)
        return
    document = make_document(config, dtype, astype, format)
    store, array = make(context, document)
    document["fill_value"] = 77
    array.write(data)
    if not (cases.native(data) == 0).all():
        assert read_chunk(store, document) == expected


@pytest.mark.parametrize("format", [2, 3])
@given(filters(), st.integers(0, 2**32))
def test_numcodecs_decodes(context, format, chosen, seed):
    config, dtype, astype = chosen
    rng = np.random.default_rng(seed)
    kinds = np.dtype(dtype).kind + np.dtype(astype).kind
    wild = config["id"] != "fixedscaleoffset" and kinds in ("ii", "iu", "ui", "uu") or kinds[0] == "f"
    encoded = any_bits(rng, astype) if wild else small(rng, astype, 10)
    if config["id"] == "fixedscaleoffset" and kinds[0] in "iu":
        values = encoded.astype("f8") / config["scale"] + config["offset"]
        info = np.iinfo(dtype)
        if (values < info.min).any() or (values > min(info.max, 2**62)).any():
            return
    if config["id"] == "delta" and (kinds in ("fi", "iu", "ui") or dtype[1:] != astype[1:]):
        encoded = np.minimum(small(rng, astype, 1), 1).astype(astype)  # sums fit every type
    if kinds[0] in "iu" and kinds[1] == "f":
        encoded = np.abs(np.rint(encoded)).astype(astype)
    if config["id"] == "delta" and dtype[1:] != astype[1:] and kinds[0] in "iu":
        encoded[60:] = 0
    chunk = (encoded if format == 2 else cases.native(encoded)).tobytes()
    document = make_document(config, dtype, astype, format)
    _, array = make(context, document, chunk)
    native = np.dtype(dtype).newbyteorder("=")
    expected = cases.native(quiet(numcodecs.get_codec(config).decode, encoded.tobytes()).view(dtype))
    got = array.read(native)
    if config["id"] == "astype" and NANS:
        cases.same_bits(got, expected)
    nan = np.isnan(expected)
    assert (np.isnan(got) == nan).all()
    cases.same_bits(np.where(nan, 0, got).astype(native), np.where(nan, 0, expected).astype(native))


def nans(code):
    """Signalling and quiet NaN of both signs, with high and low bits in the payload, and some numbers."""
    part = {"c8": "f4", "c16": "f8"}.get(code, code)
    size = np.dtype(part).itemsize
    fraction = {2: 10, 4: 23, 8: 52}[size]
    inf = (1 << (8 * size - 1)) - (1 << fraction)
    payload = [1, 3, 1 << (fraction - 2), (1 << (fraction - 1)) - 1, 1 << (fraction - 1), (1 << fraction) - 1,
               *(1 << at for at in range(fraction))]
    bits = [sign << (8 * size - 1) | inf | low for sign in (0, 1) for low in payload] + [0, inf]
    return np.array(bits, f"u{size}").view(part).view(code)


@pytest.mark.skipif(not NANS, reason="NumPy's halves go by the processor's instructions there")
@pytest.mark.parametrize("order", ["<>", "<<", ">>", "><"])
@pytest.mark.parametrize("encoded", [*FLOATS, "c8", "c16"])
@pytest.mark.parametrize("decoded", [*FLOATS, "c8", "c16"])
def test_nan_bits(context, decoded, encoded, order):
    """astype keeps, makes quiet and cuts NaN as NumPy does, both ways and in both orders. So does delta
    for its first element, which it only converts."""
    if "c" in decoded and "c" not in encoded:
        pytest.skip("imaginary parts are lost")
    decoded, encoded = order[0] + decoded, order[1] + encoded
    data = nans(decoded[1:]).astype(decoded, copy=False)
    config = {"id": "astype", "encode_dtype": encoded, "decode_dtype": decoded}
    check_nan_bits(context, config, data, encoded)
    if ("c" in decoded) == ("c" in encoded):
        for value in data:
            one = np.array([value], decoded)
            check_nan_bits(context, {"id": "delta", "dtype": decoded, "astype": encoded}, one, encoded)


def check_nan_bits(context, config, data, encoded):
    fill = [77, 0] if data.dtype.kind == "c" else 77
    document = cases.document_v2(data.dtype.str, fill, data.shape, data.shape, filters=[config])
    theirs = numcodecs.get_codec(config)
    store, array = make(context, document)
    array.write(data)
    assert store.get("0") == quiet(theirs.encode, data).tobytes()
    back = nans(encoded[1:])[:len(data)] if config["id"] == "astype" else data.astype(encoded)
    chunk = np.resize(back.astype(encoded), data.shape).tobytes()
    store.put("0", chunk)
    expected = quiet(theirs.decode, chunk).view(data.dtype)
    native = data.dtype.newbyteorder("=")
    cases.same_bits(array.read(native), cases.native(expected))


def test_bits_pass_through(context):
    """numcodecs views its input as the filter's type: text of four bytes passes a cast of floats to floats."""
    data = np.frombuffer(bytes([1, 0, 128, 127, 1, 0, 128, 255, 120, 121, 122, 119]), "S4")
    document = cases.document_v2("|S4", "", (3,), (3,), filters=[
        {"id": "astype", "encode_dtype": "<f4", "decode_dtype": "<f4"}])
    store, array = make(context, document)
    array.write(data)
    assert store.get("0") == data.tobytes() == array.read("S4").tobytes()


MISFITS = [np.nan, np.inf, -np.inf, 3e9, -3e9, 2.0**31, -2.0**31, 1e20, -1e20, 2.0**63, 2.0**64]


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"),
                    reason="what a float becomes that does not fit an integer is the processor's there; ours is x86's")
@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("code", [c for c in INTEGERS if c != "u4"])  # NumPy's result for uint32 depends on the length
def test_misfits(context, source, code):
    """Values that do not fit become the same as in NumPy, in runs of any length. Other readers may take
    such a value for NaN."""
    for value in np.array(MISFITS, "f8"):
        for n in (1, 3, 8, 17, 700):
            data = quiet(np.full(n, value).astype, source)
            for config in ({"id": "fixedscaleoffset", "offset": 0, "scale": 1,
                            "dtype": spell(source), "astype": spell(code)},
                           {"id": "astype", "encode_dtype": spell(code), "decode_dtype": spell(source)}):
                document = cases.document_v2(spell(source), 7, (n,), (n,), filters=[config])
                store, array = make(context, document)
                array.write(data)
                want = quiet(data.astype, code)
                assert store.get("0") == want.tobytes(), (value, config, n)
                assert store.get("0") == np.asarray(quiet(numcodecs.get_codec(dict(config)).encode, data)).tobytes()


COMPLEX = ["c8", "c16"]


def complex_values(rng, dtype):
    """Complex numbers of all signs and sizes, with infinities and NaN."""
    data = (rng.standard_normal(N) * 1000 + 1j * rng.standard_normal(N)).astype(dtype)
    data[:6] = [0, complex(-0.0, -0.0), complex(1, np.inf), complex(-np.inf, 2), complex(np.nan, 1), complex(0, np.nan)]
    return data


def complex_document(config, dtype, astype, format):
    if format == 2:
        return cases.document_v2(dtype, None, (N,), (N,), filters=[config])
    config = {k: v for k, v in config.items() if k != "id"}, "numcodecs." + config["id"]
    names = {"c8": "complex64", "c16": "complex128", "b1": "bool"}
    name, fill = names.get(dtype[1:]) or v3_name(dtype), [0, 0] if "c" in dtype else False if "b" in dtype else 0
    return cases.document_v3(name, fill, [{"name": config[1], "configuration": config[0]},
                                          cases.PLAIN if astype[0] == "|" else cases.LITTLE], (N,), (N,))


@pytest.mark.parametrize("format", [2, 3])
@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("dtype,astype", [(a, b) for a in COMPLEX for b in COMPLEX])
def test_delta_of_complex(context, rng, dtype, astype, order, format):
    """Each part is computed separately, in the common type of both types, as cumsum does."""
    dtype, astype = order + dtype, order + astype
    config = {"id": "delta", "dtype": dtype, "astype": astype}
    data = complex_values(rng, dtype)[6:]
    data = np.concatenate([data, complex_values(rng, dtype)[:6]]).astype(dtype)
    document = complex_document(config, dtype, astype, format)
    store, array = make(context, document)
    array.write(data)
    assert read_chunk(store, document) == encode(config, data, format)
    encoded = complex_values(rng, astype)
    _, array = make(context, document, (encoded if format == 2 else cases.native(encoded)).tobytes())
    expected = cases.native(quiet(numcodecs.get_codec(config).decode, encoded.tobytes()).view(dtype))
    np.testing.assert_array_equal(array.read(cases.native(data).dtype), expected)


@pytest.mark.parametrize("format", [2, 3])
@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("dtype,astype", [(a, b) for a in COMPLEX + INTEGERS + FLOATS + ["b1"]
                                          for b in COMPLEX + INTEGERS + FLOATS + ["b1"] if "c" in a + b])
def test_astype_of_complex(context, rng, dtype, astype, order, format):
    """New imaginary parts are 0, and real targets drop them, as with NumPy's astype()."""
    dtype, astype = spell(dtype, order), spell(astype, order)
    config = {"id": "astype", "encode_dtype": astype, "decode_dtype": dtype}

    def values(code, other):
        kind = np.dtype(code).kind
        if kind == "c" and np.dtype(other).kind in "iuf":  # numbers that fit every type
            return (small(rng, "i8", 60).clip(0) + 1j * small(rng, "f8")).astype(code)
        return complex_values(rng, code) if kind == "c" else small(rng, code, 1 if kind == "b" else 60)
    data = values(dtype, astype)
    document = complex_document(config, dtype, astype, format)
    store, array = make(context, document)
    array.write(data)
    assert read_chunk(store, document) == encode(config, data, format)
    encoded = values(astype, dtype)
    _, array = make(context, document, (encoded if format == 2 else cases.native(encoded)).tobytes())
    expected = cases.native(quiet(numcodecs.get_codec(config).decode, encoded.tobytes()).view(dtype))
    np.testing.assert_array_equal(array.read(cases.native(data).dtype), expected)


@pytest.mark.parametrize("compressor", [None, {"id": "zlib", "level": 1}])
@pytest.mark.parametrize("config", [{"id": "delta", "dtype": "<c16"}, {"id": "delta", "dtype": "<c16", "astype": "<c8"},
                                    {"id": "astype", "encode_dtype": "<c8", "decode_dtype": "<c16"}], ids=str)
def test_complex_of_zarr_python(context, tmp_path, config, compressor):
    document = cases.document_v2("<c16", [0.0, 0.0], (7, 13), (4, 6), "C", compressor, [config])
    data = np.arange(91).reshape(7, 13) * (1 + 0.5j) - 9j
    cases.put_document(tmp_path / "python", document)
    quiet(peers.write, peers.PYTHON, tmp_path / "python", data)
    np.testing.assert_array_equal(context.store(str(tmp_path / "python")).open().read("c16"), data)
    context.store(str(tmp_path / "zarrc"), create=True).create(document=document).write(data)
    np.testing.assert_array_equal(peers.read(peers.PYTHON, tmp_path / "zarrc"), data)


def test_complex_refused(context):
    """NumPy refuses sums of complex numbers in a real type, or drops the imaginary part, so we refuse them."""
    for dtype, astype in (("<c16", "<f8"), ("<f4", "<c8")):
        for format in (2, 3):
            document = complex_document({"id": "delta", "dtype": dtype, "astype": astype}, dtype, astype, format)
            with pytest.raises(ZarrcError, match="delta: either both dtype and astype must be complex or neither"):
                context.store().create(document=document)
    for config, word in (({"id": "quantize", "digits": 1, "dtype": "<c8"}, "floats of 16"),
                         ({"id": "fixedscaleoffset", "offset": 0, "scale": 1, "dtype": "<c8"}, "integers or floats")):
        with pytest.raises(ZarrcError, match=word):
            context.store().create(document=complex_document(config, "<c8", "<c8", 2))


CHAINS = {
    "fixedscaleoffset": [{"id": "fixedscaleoffset", "offset": 10, "scale": 10, "dtype": "<f4", "astype": "|u1"}],
    "quantize": [{"id": "quantize", "digits": 2, "dtype": "<f4", "astype": "<f2"}],
    "astype-delta": [{"id": "astype", "encode_dtype": "<i4", "decode_dtype": "<f4"},
                     {"id": "delta", "dtype": "<i4", "astype": "<i2"}],
    "bitround-shuffle": [{"id": "bitround", "keepbits": 5}, {"id": "shuffle", "elementsize": 4}],
    "scale-bitround": [{"id": "fixedscaleoffset", "offset": 1.5, "scale": 3, "dtype": "<f4", "astype": "<f8"},
                       {"id": "bitround", "keepbits": 3}],
}


@pytest.mark.parametrize("compressor", [None, {"id": "zlib", "level": 1}])
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("chain", CHAINS)
def test_v2_chains(context, rng, tmp_path, chain, order, compressor):
    """zarr-python writes. We read the same elements and store the same bytes."""
    if chain == "bitround-shuffle" and order == "F":
        pytest.skip("numcodecs' bitround turns a chunk of order F into order C, which does not come back")
    document = cases.document_v2("<f4", 11, (7, 13), (4, 6), order, compressor, CHAINS[chain])
    data = (rng.integers(100, 300, (7, 13)) / 10).astype("f4")
    data[:4, :6] = 11
    there = tmp_path / "python"
    cases.put_document(there, document)
    quiet(peers.write, peers.PYTHON, there, data)
    expected = quiet(peers.read, peers.PYTHON, there)
    theirs = context.store(str(there))
    cases.same_bits(theirs.open().read("f4"), expected)
    store = context.store(str(tmp_path / "zarrc"), create=True)
    array = store.create(document=document)
    array.write(data)
    if compressor is None:
        assert {k: v for k, v in store.dump().items() if k[0] != "."} == \
            {k: v for k, v in theirs.dump().items() if k[0] != "."}
    cases.same_bits(quiet(peers.read, peers.PYTHON, tmp_path / "zarrc"), expected)


# ---- zarr-python's and zarrs' own -----------------------------------------------------------

def both(context, rng, folder, document, data, peer=peers.PYTHON, compare=True):
    """The peer writes. We read the same elements and store the same bytes."""
    native = np.dtype(data.dtype).newbyteorder("=")
    there, here = folder / "peer", folder / "zarrc"
    cases.put_document(there, document)
    quiet(peers.write, peer, there, data)
    expected = quiet(peers.read, peer, there)
    theirs = context.store(str(there))
    cases.same_bits(theirs.open().read(native), expected)
    store = context.store(str(here), create=True)
    array = store.create(document=document)
    array.write(data)
    cases.same_bits(array.read(native), expected)
    cases.same_bits(quiet(peers.read, peer, here), expected)
    if compare:
        assert {k: v for k, v in store.dump().items() if k != "zarr.json"} == \
            {k: v for k, v in theirs.dump().items() if k != "zarr.json"}


def scale_offset(**config):
    return {"name": "scale_offset", "configuration": config}


def cast_value(**config):
    return {"name": "cast_value", "configuration": config}


@peers.needs_zarr_3_3("lacks scale_offset")
@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
@pytest.mark.parametrize("config", [{}, {"offset": 5}, {"scale": 3}, {"offset": 2, "scale": 2}])
def test_scale_offset(context, rng, tmp_path, dtype, config):
    if dtype[0] == "f":
        config = {k: v + 0.1 for k, v in config.items()}
        data = (rng.standard_normal((7, 13)) * 100).astype(dtype)
    else:
        data = rng.integers(5, 40, (7, 13)).astype(dtype)
    document = cases.document_v3(v3_name(dtype), 7, [scale_offset(**config), cases.LITTLE], (7, 13), (4, 6))
    both(context, rng, tmp_path, document, data)


@pytest.mark.parametrize("dtype,config,value", [
    ("i1", {"scale": 2}, 100), ("u1", {"offset": 5}, 4), ("u8", {"scale": 2}, 2**63),
    ("i8", {"offset": -1}, 2**63 - 1), ("i4", {"offset": 1}, -2**31)])
def test_scale_offset_overflow(context, dtype, config, value):
    document = cases.document_v3(v3_name(dtype), 9, [scale_offset(**config), cases.LITTLE], (N,), (N,))
    _, array = make(context, document)
    data = np.full(N, 9, dtype)
    data[600] = value
    with pytest.raises(ZarrcError, match="element 600 "):
        array.write(data)


def test_scale_offset_inexact(context):
    document = cases.document_v3("int32", 0, [scale_offset(scale=3), cases.LITTLE], (N,), (N,))
    encoded = 3 * np.arange(N, dtype="<i4")
    _, array = make(context, document, encoded.tobytes())
    cases.same_bits(array.read("i4"), np.arange(N, dtype="i4"))
    encoded[601] += 1
    _, array = make(context, document, encoded.tobytes())
    with pytest.raises(ZarrcError, match="element 601 "):
        array.read("i4")


def interesting_values(rng, dtype):
    dtype = np.dtype(dtype)
    parts = [any_bits(rng, dtype)[:200], small(rng, dtype)[:200]]
    if dtype.kind == "f":
        parts.append(np.array([0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 127.5, 128.5, 255.5, -128.5, 65519,
                               65520, -65504, 2**31, 2.0**24 + 1, 1e-8, 6e-8, 3e-8, 1e-46], "f8").astype(dtype))
    else:
        info = np.iinfo(dtype)
        parts.append(np.array([info.min, info.max, info.max - 1, info.max // 2 + 1, 1, 0], dtype))
    return np.concatenate(parts)


def expected_cast(data, to, rounding, out_of_range, pairs=None):
    try:
        return quiet(cast_value_rs.cast_array, data, target_dtype=np.dtype(to).newbyteorder("="),
                     rounding_mode=rounding, out_of_range_mode=out_of_range, scalar_map_entries=pairs)
    except ValueError:
        return None


ROUNDINGS = ["nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away"]


@needs_cast
@pytest.mark.parametrize("source", INTEGERS + FLOATS)
@pytest.mark.parametrize("target", INTEGERS + FLOATS)
def test_cast_value(context, rng, source, target):
    """Each element is the same as in cast-value-rs, errors included."""
    for rounding in ROUNDINGS:
        for out_of_range in (None, "clamp", "wrap"):
            if out_of_range == "wrap" and target[0] == "f":
                continue
            data = quiet(interesting_values, rng, source)
            alone = [expected_cast(data[i:i + 1], target, rounding, out_of_range) for i in range(len(data))]
            good = np.array([v is not None for v in alone])
            config = {"data_type": v3_name(target), "rounding": rounding}
            if out_of_range:
                config["out_of_range"] = out_of_range
            document = cases.document_v3(v3_name(source), 1, [cast_value(**config), cases.LITTLE],
                                         (int(good.sum()),), (int(good.sum()),))
            store, array = make(context, document)
            array.write(data[good])
            expected = np.concatenate([v for v in alone if v is not None])
            got = np.frombuffer(read_chunk(store, document), np.dtype(target).newbyteorder("<"))
            same_numbers(got, expected)
            bad = data[~good]
            document["shape"] = document["chunk_grid"]["configuration"]["chunk_shape"] = [1]
            for value in bad[:40]:
                _, array = make(context, document)
                with pytest.raises(ZarrcError, match="cast_value: element 0 "):
                    array.write(np.array([value], source))


def same_numbers(got, expected):
    """Compares bit for bit, except that all NaN are equal."""
    assert got.shape == expected.shape
    if expected.dtype.kind == "f":
        nan = np.isnan(expected)
        assert (np.isnan(got) == nan).all()
        got, expected = np.where(nan, 0, got).astype(expected.dtype), np.where(nan, 0, expected)
    cases.same_bits(got, expected)


@needs_cast
@pytest.mark.parametrize("source,target,pairs", [
    ("f8", "i2", [["NaN", -1], ["Infinity", 32767], ["-Infinity", -32768], [1.0, 77], [1.0, 78]]),
    ("f4", "u1", [["NaN", 0], ["+Infinity", 255]]), ("i4", "f4", [[-9999, "NaN"]]), ("i2", "u1", [[-1, 255]])])
def test_cast_value_map(context, rng, tmp_path, source, target, pairs):
    back = [[b, a] for a, b in pairs]
    config = {"data_type": v3_name(target), "scalar_map": {"encode": pairs, "decode": back}}
    document = cases.document_v3(v3_name(source), 5, [cast_value(**config), cases.LITTLE], (N,), (N,))
    data = rng.integers(1, 100, N).astype(source)
    numbers = {"NaN": np.nan, "Infinity": np.inf, "+Infinity": np.inf, "-Infinity": -np.inf}
    for at, (key, _) in zip((3, 520, 699, 44), pairs):
        data[at] = numbers.get(key, key)
    store, array = make(context, document)
    array.write(data)
    entries, seen = [], set()
    for key, value in pairs:
        if str(key) not in seen:
            entries.append((numbers.get(key, key), numbers.get(value, value)))
        seen.add(str(key))
    got = np.frombuffer(read_chunk(store, document), np.dtype(target).newbyteorder("<"))
    same_numbers(got, expected_cast(data, target, "nearest-even", None, entries))
    again = array.read(source)
    assert np.array_equal(again, data, equal_nan=source[0] == "f") or source == "f8"


@needs_cast
@pytest.mark.parametrize("sharded", [None, "inside"])
@pytest.mark.parametrize("turned", [False, True])
def test_scale_then_cast(context, rng, tmp_path, sharded, turned):
    """The two codecs pack floats into integers, also within shards."""
    pair = [scale_offset(offset=10.0, scale=10.0), cast_value(data_type="int16", out_of_range="clamp")]
    if turned:
        pair.insert(1, cases.transpose(1, 0))
    plain, codecs = [cases.LITTLE, cases.zstd()], pair + [cases.LITTLE]
    if sharded:
        codecs = [cases.sharding((2, 3), pair + plain)]
    document = cases.document_v3("float64", 12.5, codecs, (9, 13), (4, 6))
    data = (rng.integers(-1000, 1000, (9, 13)) / 10 + 10)
    data[:4, :6] = 12.5
    both(context, rng, tmp_path, document, data, compare=sharded is None)


@pytest.mark.parametrize("dtype", FLOATS + ["c8", "c16"])
@pytest.mark.parametrize("keepbits", [1, 3, 9])
def test_bitround(context, rng, dtype, keepbits):
    """Floats and complex numbers are rounded as in numcodecs. The unit tests have the specification's
    integers, because no installed peer rounds integers."""
    name = {"c": "complex"}.get(dtype[0]) or V3_NAMES[dtype[0]]
    document = cases.document_v3(name + str(8 * np.dtype(dtype).itemsize),
                                 [1.0, 2.0] if dtype[0] == "c" else 1,
                                 [{"name": "bitround", "configuration": {"keepbits": keepbits}}, cases.LITTLE],
                                 (N,), (N,))
    data = cases.random_data(rng, (N,), dtype)
    parts = data.view(f"f{data.itemsize // 2}") if dtype[0] == "c" else data
    parts[~np.isfinite(parts)] = 1
    store, array = make(context, document)
    array.write(data)
    expected = numcodecs.BitRound(keepbits).encode(parts)
    assert read_chunk(store, document) == expected.tobytes()
    cases.same_bits(array.read(dtype), expected.view(dtype))


def zarrs_only(context, rng, folder, document, data, same=True):
    """Compares with zarrs. zarr-python does not know the codec and only passes its metadata on."""
    import zarr
    store = context.store(str(folder / "zarrc"), create=True)
    array = store.create(document=document)
    array.write(data)
    register_unknown()
    there = folder / "peer"
    cases.put_document(there, document)
    with zarr.config.set({"codec_pipeline.path": peers.PIPELINES[peers.ZARRS]}):
        quiet(peers.write, peers.ZARRS, there, data)
        expected = quiet(peers.read, peers.ZARRS, there)
        cases.same_bits(quiet(peers.read, peers.ZARRS, folder / "zarrc"), expected)
    theirs = context.store(str(there))
    native = np.dtype(data.dtype).newbyteorder("=")
    cases.same_bits(theirs.open().read(native), expected)
    if same:  # zarrs writes inner chunks in any order
        assert {k: v for k, v in store.dump().items() if k != "zarr.json"} == \
            {k: v for k, v in theirs.dump().items() if k != "zarr.json"}


def register_unknown():
    """Registers names with zarr-python, which only passes their metadata to zarrs."""
    from dataclasses import dataclass

    from zarr.abc.codec import ArrayArrayCodec
    from zarr.registry import register_codec

    for known in ("reshape", "zarrs.squeeze"):
        @dataclass(frozen=True)
        class CarriedCodec(ArrayArrayCodec):
            data: str
            name = known
            is_fixed_size = True

            @classmethod
            def from_dict(cls, data):
                return cls(data=json.dumps(data))

            def to_dict(self):
                return json.loads(self.data)

            def compute_encoded_size(self, n, spec):
                return n

            async def _encode_single(self, *_):
                raise NotImplementedError

            _decode_single = _encode_single
        register_codec(known, CarriedCodec)


@pytest.mark.parametrize("codecs", [
    [{"name": "reshape", "configuration": {"shape": [[0, 1], [2], 3]}}],
    [{"name": "reshape", "configuration": {"shape": [-1]}}],
    [cases.transpose(1, 0, 3, 2), {"name": "reshape", "configuration": {"shape": [[0, 1, 2, 3]]}}],
    [{"name": "zarrs.squeeze"}], [cases.transpose(3, 1, 0, 2), {"name": "zarrs.squeeze"}]],
    ids=["groups", "flat", "transposed", "squeeze", "transpose-squeeze"])
@pytest.mark.parametrize("endian", ["little", "big"])
def test_shapes(context, rng, tmp_path, codecs, endian):
    chunks = (2, 1, 4, 3)
    document = cases.document_v3("int32", 7, codecs + [{"name": "bytes", "configuration": {"endian": endian}}],
                                 (4, 2, 8, 3), chunks)  # zarrs cannot decode a part of a reshaped chunk
    data = rng.integers(-1000, 1000, (4, 2, 8, 3)).astype("i4")
    zarrs_only(context, rng, tmp_path, document, data)


@pytest.mark.parametrize("codecs", [
    [{"name": "reshape", "configuration": {"shape": [4, 1, 2, 3]}},
     cases.sharding((2, 1, 1, 3), [cases.LITTLE, cases.zstd()])],
    [{"name": "reshape", "configuration": {"shape": [4, 1, -1, [3]]}},
     cases.sharding((2, 1, 2, 1), [cases.BIG], location="start"), cases.gzip()],
    [cases.transpose(2, 1, 0, 3), {"name": "reshape", "configuration": {"shape": [2, 1, 4, 3]}},
     cases.sharding((2, 1, 2, 3), [cases.sharding((1, 1, 2, 3), [cases.LITTLE])])]],
    ids=["plain", "wrapped", "nested"])
def test_shapes_of_shards(context, rng, tmp_path, codecs):
    """Such shards are read and written whole, also by zarrs. zarr-python passes them to it, and requires
    inner chunks of the array's rank that divide its chunks."""
    document = cases.document_v3("int32", 7, codecs, (4, 2, 8, 3), (2, 1, 4, 3))
    data = rng.integers(-1000, 1000, (4, 2, 8, 3)).astype("i4")
    data[:2, :, :, 0] = 7
    zarrs_only(context, rng, tmp_path, document, data, same=False)


@pytest.mark.parametrize("endian", ["little", "big"])
def test_reshape_then_transpose(context, rng, endian):
    """The expected result is NumPy's, because zarr-python refuses permutations of another rank than the array's."""
    chunks = (2, 1, 4, 3)
    codecs = [{"name": "reshape", "configuration": {"shape": [[0], -1, [3]]}},
              cases.transpose(2, 0, 1), {"name": "bytes", "configuration": {"endian": endian}}]
    data = rng.integers(-1000, 1000, (4, 2, 8, 3)).astype("i4")
    store = context.store("memory:")
    array = store.create(document=cases.document_v3("int32", 7, codecs, data.shape, chunks))
    array.write(data)
    cases.same_bits(array.read("i4"), data)
    first = data[:2, :1, :4].reshape(2, 4, 3).transpose(2, 0, 1).astype("<i4" if endian == "little" else ">i4")
    assert store.get("c/0/0/0/0") == first.tobytes()
