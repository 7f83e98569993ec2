"""Numbers of 2 to 16 bits, and their complex pairs: every bit pattern against ml_dtypes, and
TensorStore as reader and writer where it has the type."""
import ctypes
import json
import os
import pathlib
import random
import struct
import subprocess

import ml_dtypes
import numpy as np
import pytest

import cases
import peers
from zarrc_abi import ZarrcError, call, lib
from zarrc_memory import Tensor
from zarrc_selection import Selection

FLOATS = {
    "float16": np.float16, "bfloat16": ml_dtypes.bfloat16,
    **{name: getattr(ml_dtypes, name) for name in (
        "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
        "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn",
        "float4_e2m1fn")}}
BITS = {"float6_e2m3fn": 6, "float6_e3m2fn": 6, "float4_e2m1fn": 4}
INTEGERS = {"int2": (-2, 1), "int4": (-8, 7), "uint2": (0, 3), "uint4": (0, 15)}
NO_INFINITY = [n for n in FLOATS if n.endswith(("fn", "fnuz", "fnu"))]
NO_NAN = list(BITS)
CANONICAL_NAN = {
    "float16": 0x7e00, "bfloat16": 0x7fc0, "float8_e3m4": 0x78, "float8_e4m3": 0x7c,
    "float8_e4m3fn": 0x7f, "float8_e4m3b11fnuz": 0x80, "float8_e4m3fnuz": 0x80,
    "float8_e5m2": 0x7e, "float8_e5m2fnuz": 0x80, "float8_e8m0fnu": 0xff}
PACKED = 1
PROGRAM = os.environ.get("ZARRC", str(pathlib.Path(__file__).parents[2] / "build/dev/bin/zarrc"))


def width(name):
    return BITS.get(name, np.dtype(FLOATS[name]).itemsize * 8)


def patterns(name):
    """Every bit pattern, as elements of ml_dtypes."""
    n = width(name)
    return np.arange(1 << n, dtype=np.uint16 if n == 16 else np.uint8).view(FLOATS[name])


def numpy_zeros(name, count=1):
    return np.zeros(count, FLOATS[name]).view(f"u{np.dtype(FLOATS[name]).itemsize}")


def element(name, pattern):
    return struct.pack("=H" if width(name) == 16 else "=B", pattern)


def number(dtype, raw):
    out = (ctypes.c_double * 2)()
    lib.zarr_dtype_number.argtypes = [
        ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_double), ctypes.c_uint32
    ]
    lib.zarr_dtype_number.restype = ctypes.c_uint32
    n = lib.zarr_dtype_number(dtype, raw, out, 2)
    return list(out)[:n]


@pytest.mark.parametrize("name", FLOATS)
def test_every_pattern(context, name):
    """Printed, parsed, as a double: what ml_dtypes makes of the same bits."""
    dtype = context.dtype(name)
    lib.zarr_dtype_compare.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
    everything = patterns(name)
    values = everything.astype(np.float64)
    for pattern, value in enumerate(values):
        raw = element(name, pattern)
        text = context.print(dtype, raw)
        assert context.parse(dtype, text) == raw, text
        [ours] = number(dtype, raw)
        if np.isnan(value):
            assert np.isnan(ours)
            assert text == ('"NaN"' if pattern == CANONICAL_NAN[name]
                            else f'"0x{pattern:0{width(name) // 4}x}"')
            continue
        assert struct.pack("d", ours) == struct.pack("d", value)
        if np.isinf(value):
            assert text == ('"Infinity"' if value > 0 else '"-Infinity"')
            continue
        read = np.array(float(text)).astype(FLOATS[name])
        assert read.tobytes() == raw
        assert width(name) == 16 or float(text) == value
    finite = sorted((v, p) for p, v in enumerate(values) if not np.isnan(v))
    for (v, p), (w, q) in zip(finite, finite[1:]):
        if v < w:  # not the two zeros
            assert lib.zarr_dtype_compare(dtype, element(name, p), element(name, q)) < 0


@pytest.mark.parametrize("name", FLOATS)
def test_rounding(context, name):
    """Decimals between neighbours: to nearest, ties to even; too large is refused."""
    dtype = context.dtype(name)
    values = sorted({float(v) for v in patterns(name).astype(np.float64) if np.isfinite(v)})
    rng = random.Random(3)
    if name == "float8_e8m0fnu":
        values = values[1:]  # below 2^-126 ml_dtypes rounds as its float32 does
    pairs = list(zip(values, values[1:]))
    for a, b in rng.sample(pairs, min(len(pairs), 3000)):
        if name == "float8_e8m0fnu":
            middle = a * 1.5
        else:
            middle = (a + b) / 2
        # A third of the way in is nearer to the end; the middle goes to the even one.
        for x in (a + (b - a) / 3, middle, b - (b - a) / 3):
            expected = np.array(x).astype(FLOATS[name])
            got = context.parse(dtype, f"{x:.160e}")  # all digits: repr() is beside the middle
            assert got == expected.tobytes() or expected == 0 == number(dtype, got)[0], (x, got, expected)  # the sign
        # Nearer to a middle than a double can tell: the decimal decides, not the double.
        exact = f"{middle:.160e}"
        digits, exponent = exact.split("e")
        if float(middle) != 0 and a * b > 0:
            beside = context.parse(dtype, f"{digits}1e{exponent}")
            assert number(dtype, beside) == [b if middle > 0 else a], (a, b, digits)
    for x in (values[-1] * 2.1, 1e300, -1e300):
        with pytest.raises(ZarrcError, match="out of range"):
            context.parse(dtype, repr(x))


@pytest.mark.parametrize("name", FLOATS)
def test_words(context, name):
    dtype = context.dtype(name)
    for word, lacking in (("NaN", NO_NAN), ("Infinity", NO_INFINITY), ("-Infinity", NO_INFINITY)):
        if name in lacking:
            with pytest.raises(ZarrcError, match="no such value"):
                context.parse(dtype, json.dumps(word))
        elif word == "NaN":
            assert context.parse(dtype, '"NaN"') == element(name, CANONICAL_NAN[name])
        else:
            assert number(dtype, context.parse(dtype, json.dumps(word))) == [float(word)]
    last = (1 << width(name)) - 1
    digits = max(width(name), 8) // 4
    assert context.parse(dtype, f'"0x{last:0{digits}x}"') == element(name, last)
    for bad in ([f'"0x{last + 1:0{digits}x}"'] if width(name) < 8 else []) + ['"0x1"', '"x"', "[1]"]:
        with pytest.raises(ZarrcError):
            context.parse(dtype, bad)


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(context, name):
    low, high = INTEGERS[name]
    for v in range(low - 3, high + 4):
        if low <= v <= high:
            raw = context.parse(name, str(v))
            assert raw == np.array(v, "i1").tobytes()
            assert context.print(name, raw) == str(v)
            assert number(context.dtype(name), raw) == [v]
        else:
            with pytest.raises(ZarrcError, match=f"{v} is not a valid {name}: out of range"):
                context.parse(name, str(v))


def pair_names(name):
    return ["complex_" + name] if name != "float8_e4m3fn" else []


@pytest.mark.parametrize("name", [c for n in FLOATS for c in pair_names(n)])
def test_pairs(context, name):
    part = name.removeprefix("complex_")
    dtype = context.dtype(name)
    two = context.parse(dtype, "[1.0, 2.0]")
    assert two == context.parse(part, "1.0") + context.parse(part, "2.0")
    assert number(dtype, two) == [1, 2]
    assert json.loads(context.print(dtype, two)) == [1.0, 2.0]
    array = context.store().create(document=cases.document_v3(
        name, [1.0, 2.0], [cases.BIG if len(two) == 4 else cases.PLAIN], (3,), (2,)))
    assert array.read(f"V{len(two)}").tobytes() == two * 3


# ---- unused bits -------------------------------------------------------------------------

PADDED = {**{n: (2 if "2" in n else 4, n[0] == "i") for n in INTEGERS},
          **{n: (b, False) for n, b in BITS.items()}, "bool": (1, False)}


def read_padded(name, stored):
    bits, signed = PADDED[name]
    if name == "bool":
        return (stored != 0).astype("u1")
    low = stored & ((1 << bits) - 1)
    return np.where(signed & (low >> (bits - 1) == 1), low | (256 - (1 << bits)), low).astype("u1")


@pytest.mark.parametrize("codecs", [[cases.PLAIN], [cases.PLAIN, cases.zstd()],
                                    [cases.transpose(1, 0), cases.PLAIN],
                                    [cases.sharding((4, 4), [cases.PLAIN])]], ids=str)
@pytest.mark.parametrize("memory", ["host", "fake"])
@pytest.mark.parametrize("name", PADDED)
def test_unused_bits_in_a_store(context, tmp_path, name, memory, codecs):
    """All 256 bytes stored; whole reads, strided reads and single elements see values."""
    stored = np.arange(256, dtype="u1").reshape(16, 16)
    document = cases.document_v3("uint8", 0, codecs, (16, 16), (8, 16))
    store = context.store(f"{tmp_path}/a", create=True)
    store.create(document=document).write(stored)
    fill = False if name == "bool" else 0.0 if name[0] == "f" else 0
    document.update(data_type=name, fill_value=fill)
    cases.put_document(tmp_path / "a", document)
    array = context.store(f"{tmp_path}/a").open()
    expected = read_padded(name, stored)
    assert array.read("u1", memory=memory).tobytes() == expected.tobytes()
    assert array.read("u1", Selection.parse((16, 16), "3:14:2,5"), memory).tobytes() == expected[3:14:2, 5].tobytes()
    # ml_dtypes has zeros above a negative int4: the same value.
    low = expected & ((1 << PADDED[name][0]) - 1)
    again = context.store().create(document=document)
    again.write(low)
    assert again.read("u1").tobytes() == expected.tobytes()
    if name != "bool":
        low[7, 3] = 0x51 if PADDED[name][0] == 4 else 0x45
        with pytest.raises(ZarrcError, match=f"an element is not a valid {name}"):
            again.write(low)


@pytest.mark.parametrize("name", [n for n in PADDED if n != "bool"])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 7, 8, 61])
def test_packed(context, name, n):
    bits, _ = PADDED[name]
    rng = np.random.default_rng(n)
    values = read_padded(name, rng.integers(0, 256, n).astype("u1"))
    stream = 0
    for i, v in enumerate(values):
        stream |= (int(v) & ((1 << bits) - 1)) << (bits * i)
    expected = stream.to_bytes((n * bits + 7) // 8, "little")
    fill = 0.0 if name[0] == "f" else 0
    store = context.store()
    array = store.create(path="a", document=cases.document_v3(name, fill, [cases.PLAIN], (n,), (5,)))
    array.write(values)
    packed = np.full(len(expected) + 1, 0xEE, "u1")

    def tensor(**more):
        t = Tensor(np.zeros(n, "u1")).struct
        t.data, t.data_bytes, t.flags, t.strides = packed.ctypes.data, len(expected), PACKED, None
        for key, value in more.items():
            setattr(t, key, value)
        return t

    call("zarr_array_read", array.pointer, None, ctypes.byref(tensor()), None)
    assert packed.tobytes() == expected + b"\xee"
    other = store.create(path="b", document=cases.document_v3(name, fill, [cases.PLAIN], (n,), (5,)))
    call("zarr_array_write", other.pointer, None, ctypes.byref(tensor()), None)
    assert other.read("u1").tobytes() == values.tobytes()
    if not n:
        return
    for more, text in (({"data_bytes": len(expected) - 1 or 1, "byte_offset": 1}, "too few"),
                       ({"strides": (ctypes.c_int64 * 1)(2)}, "must be 1"),
                       ({"device_type": 99}, "99"), ({"flags": 3}, "unknown flags")):
        with pytest.raises(ZarrcError, match=text):
            call("zarr_array_read", array.pointer, None, ctypes.byref(tensor(**more)), None)
    plain = store.create(path="c", shape=(n,), chunks=(5,), dtype="uint8")
    with pytest.raises(ZarrcError, match="cannot be packed"):
        call("zarr_array_read", plain.pointer, None, ctypes.byref(tensor()), None)


# ---- TensorStore --------------------------------------------------------------------------

V3_THERE = ["int2", "int4", "bfloat16", "float8_e3m4", "float8_e4m3b11fnuz", "float8_e4m3fn",
            "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn"]


def find_type(name):
    return getattr(ml_dtypes, name)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("name", V3_THERE)
def test_with_tensorstore(context, tmp_path, name, zarr_format):
    rng = np.random.default_rng(5)
    wide = name == "bfloat16"
    low = rng.integers(0, 256 if not wide else 65536, 40)
    if name in PADDED:
        low &= (1 << PADDED[name][0]) - 1
    data = low.astype("u2" if wide else "u1").view(find_type(name)).reshape(8, 5)
    fill = 1 if name in INTEGERS else 1.0
    if zarr_format == 3:
        codec = cases.LITTLE if wide else cases.PLAIN
        document = cases.document_v3(name, fill, [codec, cases.zstd()], (8, 5), (3, 4))
    else:
        document = cases.document_v2(name, fill, (8, 5), (3, 4), compressor={"id": "zlib", "level": 1})
    raw = data.view("u2" if wide else "u1")
    ours = read_padded(name, raw) if name in PADDED else raw
    # We write, it reads.
    array = context.store(f"{tmp_path}/a", create=True).create(document=document)
    array.write(ours)
    got = peers.read(peers.TENSORSTORE, tmp_path / "a")
    assert got.dtype == data.dtype
    same = got.view(raw.dtype)
    assert (same == raw).all() if name not in PADDED else (read_padded(name, same) == ours).all()
    # It creates and writes, we read, the fill value included.
    import tensorstore
    there = tensorstore.open(
        {"driver": "zarr3" if zarr_format == 3 else "zarr", "kvstore": f"file://{tmp_path}/b/",
         "metadata": {"shape": [8, 5], "data_type" if zarr_format == 3 else "dtype": name},
         "create": True}, fill_value=1 if name in INTEGERS else 1.0).result()
    rows = 8 if name == "float8_e8m0fnu" else 4  # its own fill value it puts down wrong, as 2^-64
    there[:rows].write(data[:rows]).result()
    array = context.store(f"{tmp_path}/b").open()
    one = np.array(1.0).astype(find_type(name)).tobytes()
    assert array.fill_bytes == one
    expected = np.frombuffer(ours[:rows].tobytes() + one * (8 - rows) * 5, raw.dtype)
    assert array.read(raw.dtype).tobytes() == expected.tobytes()
    again = context.store().create(document=json.loads(array.metadata))
    found, made = json.loads(array.metadata), json.loads(again.metadata)
    if zarr_format == 2:  # a new document names the shuffle that -1 stands for
        assert found["compressor"].pop("shuffle") == -1 and made["compressor"].pop("shuffle") in (1, 2)
    assert again.fill_bytes == one and made == found


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("name", V3_THERE)
def test_tensorstore_without_a_fill_value(context, tmp_path, name, zarr_format):
    """It puts down 0, and reads bits that are 0, in the type without a zero too."""
    import tensorstore
    there = tensorstore.open(
        {"driver": "zarr3" if zarr_format == 3 else "zarr", "kvstore": f"file://{tmp_path}/",
         "metadata": {"shape": [3], "data_type" if zarr_format == 3 else "dtype": name}, "create": True}).result()
    width = "u2" if name == "bfloat16" else "u1"
    array = context.store(str(tmp_path)).open()
    expected = there.read().result().view(width)
    assert not expected.any() and (array.read(width) == expected).all()
    array.resize((5,))
    array.set_attribute("k", 1)
    assert (context.store(str(tmp_path)).open().read(width) == 0).all()
    again = context.store().create(document=json.loads(array.metadata))
    assert again.fill_bytes == array.fill_bytes == (np.zeros(1, width).tobytes() if zarr_format == 3 else None)
    if name == "float8_e8m0fnu" and zarr_format == 3:  # the type has no zero: none is made
        with pytest.raises(ZarrcError, match="INVALID.*out of range"):
            context.store().create(document={**json.loads(array.metadata), "fill_value": 0})


@pytest.mark.parametrize("fill", [0, 0.0, "0x00"], ids=str)
def test_fill_zero_of_a_type_without_zero(context, fill):
    """TensorStore writes 0 for float8_e8m0fnu and means the smallest value: read so, and kept."""
    document = cases.document_v3("float8_e8m0fnu", fill, [cases.PLAIN], (2,), (2,))
    store = context.store()
    store.put("zarr.json", json.dumps(document).encode())
    assert store.open().fill_bytes == b"\0"


# ---- printing ------------------------------------------------------------------------------

@pytest.mark.parametrize("numpy_type,name", [("f8", "float64"), ("f4", "float32")])
def test_shortest_texts(context, tmp_path, numpy_type, name):
    """Random bits, integers and short decimals: the digits of Python's repr()."""
    rng = np.random.default_rng(11)
    unsigned = numpy_type.replace("f", "u")
    n = 200_000
    bits = np.frombuffer(rng.bytes(n * int(numpy_type[1])), unsigned).view(numpy_type)
    bits = bits[np.isfinite(bits)]
    short = (rng.integers(-10**6, 10**6, n) / 10.0 ** rng.integers(0, 9, n)).astype(numpy_type)
    tiny = np.arange(1, 20_000, dtype=unsigned).view(numpy_type)
    data = np.concatenate([bits, short, tiny])
    document = cases.document_v3(name, 0.0, [cases.LITTLE], data.shape, data.shape)
    context.store(f"{tmp_path}/a", create=True).create(document=document).write(data)
    texts = subprocess.run([PROGRAM, "cat", "--format=elements", tmp_path / "a"], check=True,
                           stdout=subprocess.PIPE).stdout.decode().split()
    assert len(texts) == len(data)
    for value, text in zip(data, texts):
        expected = repr(float(value)) if numpy_type == "f8" else str(np.float32(value))
        if numpy_type == "f8":
            assert text == expected
        else:  # NumPy lays it out otherwise
            assert np.float32(text) == value
            assert len(text.strip("-0.").replace(".", "").split("e")[0].rstrip("0")) <= len(
                expected.strip("-0.").replace(".", "").split("e")[0].rstrip("0")), (text, expected)
