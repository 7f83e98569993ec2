"""v2 filters that encode more than numbers: packbits, and the object codecs categorize, json2,
msgpack2 and vlen-array. Written by zarrc and read by numcodecs, and the reverse; also with
zarr-python if it opens such arrays."""
import json
import os
import pathlib
import subprocess

import numcodecs
import numpy as np
import pytest

import cases
import peers
from zarrc_abi import ZarrcError
from zarrc_selection import Selection


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
        with pytest.raises(ZarrcError, match="packbits: its input must be bools"):
            context.store().create(document=document)


def test_packbits_numcodecs(context, rng):
    document = cases.document_v2("|b1", False, (1001,), (1001,), filters=[{"id": "packbits"}])
    data = rng.integers(0, 2, 1001).astype(bool)
    store = context.store()
    store.create(document=document).write(data)
    assert store.get("0") == numcodecs.PackBits().encode(data).tobytes()


# ---- text: json2, msgpack2, categorize ---------------------------------------------------

LABELS = ["red", "grün", "", "漢字", "a\"b", "red"]
SHAPES = [((1,), (1,)), ((7,), (3,)), ((5, 4), (2, 3)), ((2, 3, 2), (2, 2, 2)), ((1, 1), (1, 1)), ((), ())]


def object_document(filters, shape, chunks, fill="", order="C", compressor=None):
    return cases.document_v2("|O", fill, shape, chunks, order, compressor, filters)


def find_codec(config):
    if config["id"] == "msgpack2":
        pytest.importorskip("msgpack", reason="numcodecs needs the module msgpack, which is not installed")
    return numcodecs.get_codec(dict(config))


def box(items, shape):
    out = np.empty(len(items), dtype=object)
    out[:] = items
    return out.reshape(shape)


def cut_chunks(data, chunks, fill):
    """(key, full chunk) as zarr-python cuts them."""
    for at in np.ndindex(*(-(-n // c) for n, c in zip(data.shape, chunks))):
        chunk = np.full(chunks, fill, dtype=object)
        box = tuple(slice(i * c, (i + 1) * c) for i, c in zip(at, chunks))
        part = data[box + (Ellipsis,)]
        chunk[tuple(slice(0, n) for n in part.shape) + (Ellipsis,)] = part
        yield ".".join(map(str, at)) or "0", chunk


def texts(rng, n):
    letters = list("abc xyz\n\t\0\x7f\x1f\"\\/äß€漢😀\u2028")
    return ["".join(rng.choice(letters, int(k))) for k in rng.choice([0, 1, 5, 31, 32, 300, 70000], n,
                                                                     p=[.2, .2, .2, .1, .1, .19, .01])]


TEXT_FILTERS = [
    {"id": "json2"}, {**numcodecs.JSON().get_config()},
    {"id": "json2", "ensure_ascii": False, "separators": [" , ", ":"]},
    {"id": "json2", "encoding": "ascii"}, {"id": "json2", "encoding": "UTF_8", "ensure_ascii": False},
    {"id": "json2", "encoding": "US-ASCII"},
    {"id": "msgpack2"}, {"id": "msgpack2", "use_bin_type": False, "raw": False, "use_single_float": True}]


@pytest.mark.parametrize("compressor", [None, {"id": "zstd", "level": 1}], ids=["plain", "zstd"])
@pytest.mark.parametrize("config", TEXT_FILTERS, ids=str)
@pytest.mark.parametrize("shape,chunks", SHAPES, ids=str)
def test_text(context, rng, config, compressor, shape, chunks):
    codec = find_codec(config)
    if config["id"] == "msgpack2" and not shape:
        with pytest.raises(ZarrcError, match="without dimensions"):
            context.store().create(document=object_document([config], shape, chunks))
        return
    data = box(texts(rng, int(np.prod(shape))), shape)
    document = object_document([config], shape, chunks, compressor=compressor)
    packer = numcodecs.get_codec(compressor) if compressor else None
    ours, theirs = context.store(), context.store()
    array = ours.create(document=document)
    array.write_vlen([v.encode() for v in data.ravel()])
    theirs.create(document=document)
    for key, chunk in cut_chunks(data, chunks, ""):
        encoded = codec.encode(chunk)
        if (chunk != "").any():
            stored = ours.get(key)
            assert (packer.decode(stored) if packer else stored) == encoded
            got = codec.decode(packer.decode(stored) if packer else stored)
            assert got.shape == chunk.shape and (got == chunk).all()
        theirs.put(key, bytes(packer.encode(encoded)) if packer else encoded)
    assert theirs.open().read_vlen() == [v.encode() for v in data.ravel()]
    assert array.read_vlen() == theirs.open().read_vlen()
    assert array.verify() == []


@pytest.mark.parametrize("config", [{"id": "json2"}, {"id": "msgpack2"}], ids=str)
@pytest.mark.parametrize("missing", [None, 0])
def test_text_never_written(context, config, missing):
    """What zarr-python leaves in edges and holes, its fill value, is the value 0 or null and stays it."""
    codec = find_codec(config)
    for fill in (missing, "", "x"):
        store = context.store()
        array = store.create(document=object_document([config], (3,), (2,), fill=fill))
        store.put("0", codec.encode(np.array(["a", missing], dtype=object)))
        store.put("1", codec.encode(np.array(["b", missing], dtype=object)))
        assert array.read_vlen() == [b"a", b" null" if missing is None else b" 0", b"b"]
        array.write_vlen([b"c"], Selection.box((3,), (0,), (1,)))
        array.write_vlen([b"d"], Selection.box((3,), (2,), (1,)))
        assert codec.decode(store.get("0")).tolist() == ["c", missing]
        assert codec.decode(store.get("1"))[0] == "d"


VALUES = [1, -1, 0, 0.0, -0.0, 1.0, 1.5, 1e300, True, False, None, [1], ["a"], ["a", "b", "c"], [], {"a": 1}, {}, 2**63,
          2**64 - 1, -2**63, -129, 70000, float("nan"), float("inf"), [[["a"]]], {"a": {"b": [1, None, {"": "ü"}]}},
          [float("nan")], {"\0": "\0"}, list(range(40)), {str(i): i for i in range(40)}, "1", "null", " 1", " null", " x",
          ' "1"', "  1", " {", " [1", ' {"a": 1} ', " ", "", "\n1", " NaN", "[1]", "ü", " \"ü\"", "a" * 300,
          {"k" * 40: "v" * 300}, " 1e", " -", " tru"]


def same_value(a, b):
    return type(a) is type(b) and (json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True))


def spell_element(value):
    """The element that stands for a value: text is itself, unless it looks like another value."""
    if not isinstance(value, str):
        return " " + json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    if value[:1] == " " and value[1:2] not in ("", " "):
        try:
            json.loads(value[1:])
        except ValueError:
            return value
        return " " + json.dumps(value, ensure_ascii=False)
    return value


@pytest.mark.parametrize("config", [{"id": "json2"}, {"id": "json2", "ensure_ascii": False, "separators": [", ", ": "]},
                                    {"id": "msgpack2"}, {"id": "msgpack2", "use_bin_type": False}], ids=str)
@pytest.mark.parametrize("value", VALUES, ids=lambda v: repr(v)[:40])
def test_values(context, config, value):
    """Any value of JSON is an element of text, and numcodecs reads the value that it wrote."""
    codec = find_codec(config)
    data = np.empty(3, dtype=object)
    data[0], data[1], data[2] = "a", value, "c"
    store, again = context.store(), context.store()
    document = object_document([config], (3,), (3,), fill="f")
    array = store.create(document=document)
    store.put("0", codec.encode(data))
    items = array.read_vlen()
    assert items[0] == b"a" and items[2] == b"c"
    text = items[1].decode()
    expected = spell_element(value)
    if isinstance(value, (dict, list)):
        assert json.loads(text) == value if "NaN" not in text else text == expected
    else:
        assert text == expected
    assert array.verify() == []
    again.create(document=document).write_vlen(items)
    found = codec.decode(again.get("0"))
    assert found[0] == "a" and found[2] == "c" and same_value(found[1], value)
    assert again.open().read_vlen() == items
    array.write_vlen([b"z"], Selection.box((3,), (2,), (1,)))  # the others of the chunk stay
    found = codec.decode(store.get("0"))
    assert found[2] == "z" and same_value(found[1], value)


@pytest.mark.parametrize("config", [{"id": "json2"}, {"id": "msgpack2"}], ids=str)
def test_values_nested(context, config):
    """In chunks of two dimensions, whose lists are no values."""
    codec = find_codec(config)
    data = np.empty((2, 3), dtype=object)
    for at, value in zip(np.ndindex(2, 3), ("a", 1, [1, 2], {"b": []}, None, [])):
        data[at] = value
    store, again = context.store(), context.store()
    document = object_document([config], (2, 3), (2, 3))
    array = store.create(document=document)
    store.put("0.0", codec.encode(data))
    items = array.read_vlen()
    assert items == [b"a", b" 1", b" [1,2]", b' {"b":[]}', b" null", b" []"]
    again.create(document=document).write_vlen(items)
    assert again.open().read_vlen() == items
    assert json.loads(again.get("0.0"))[:2] == data.tolist() if config["id"] == "json2" else \
        again.get("0.0") == store.get("0.0")


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("config", [{"id": "json2"}, {"id": "msgpack2"}], ids=str)
def test_values_made_anew(context, tmp_path, config, zarr_format):
    """Shown, re-encoded into other chunks, into text of v3, and back into the same objects."""
    codec = find_codec(config)
    values = ["a", 1, None, {"b": [1.5, True]}, "1", " 1"]
    data = np.empty(6, dtype=object)
    data[:] = values
    cases.put_document(tmp_path / "a", object_document([config], (6,), (6,)))
    (tmp_path / "a/0").write_bytes(codec.encode(data))
    program = os.environ.get("ZARRC", str(pathlib.Path(__file__).parents[2] / "build/dev/bin/zarrc"))

    def run(*arguments):
        return subprocess.run([program, *map(str, arguments)], check=True, capture_output=True).stdout.decode()
    shown = run("cat", tmp_path / "a")
    for text in ("a", "1", "null", "b"):
        assert text in shown
    more = [] if zarr_format == 2 else ["--codec=vlen-utf8"]
    run("reencode", f"--zarr-format={zarr_format}", "--chunks=2", *more, tmp_path / "a", tmp_path / "b")
    with context.store(str(tmp_path / "b")) as store:
        items = store.open().read_vlen()
    assert items == [spell_element(value).encode() for value in values]
    run("reencode", "--zarr-format=2", "--chunks=3", "--codec=" + json.dumps(config), "--codec=" + json.dumps(
        {"id": "zlib", "level": 1}), tmp_path / "b", tmp_path / "c")
    document = json.loads((tmp_path / "c/.zarray").read_text())
    unpack = [numcodecs.get_codec(dict(document["compressor"]))] if document["compressor"] else []
    found = []
    for key in ("0", "1"):
        raw = (tmp_path / "c" / key).read_bytes()
        for packer in unpack:
            raw = packer.decode(raw)
        found += list(codec.decode(raw))
    assert all(same_value(a, b) for a, b in zip(found, values)) and len(found) == 6


@pytest.mark.parametrize("value", [b"bytes", {1: 2}, {b"k": 1}], ids=str)
def test_no_json(context, value):
    """MessagePack has values that JSON lacks."""
    msgpack = pytest.importorskip("msgpack", reason="numcodecs needs the module msgpack, which is not installed")
    store = context.store()
    array = store.create(document=object_document([{"id": "msgpack2"}], (2,), (2,)))
    store.put("0", msgpack.packb(["a", value, "|O", [2]]))
    with pytest.raises(ZarrcError, match="UNSUPPORTED.*element 1 is or has .*, which JSON lacks"):
        array.read_vlen()


def test_raw_is_false(context):
    """numcodecs hands `raw` on, and 0 is false. A new array says so in JSON."""
    store = context.store()
    for raw, says in ((0, None), (1, "raw is 1, must be true or false"), (True, "with raw the elements are bytes")):
        odd = object_document([{"id": "msgpack2", "raw": raw}], (2,), (2,), fill="x")
        store.put(".zarray", json.dumps(odd).encode())
        if says:
            with pytest.raises(ZarrcError, match=says):
                store.open()
        else:
            assert store.open().read_vlen() == [b"x", b"x"]
        with pytest.raises(ZarrcError, match="raw"):
            context.store().create(document=odd)


def test_values_refused(context):
    """What a codec cannot write is an error, and never other values."""
    def write(config, text):
        context.store().create(document=object_document([config], (1,), (1,))).write_vlen([text])
    for config, text, says in [
            ({"id": "json2", "allow_nan": False}, b" [NaN]", "not finite, allow_nan is false"),
            ({"id": "msgpack2"}, b" 18446744073709551616", "an integer of more than 64 bits"),
            ({"id": "msgpack2", "use_single_float": True}, b" [1e300]", "too large for 32 bits"),
            ({"id": "json2"}, b" " + b"[" * 300 + b"]" * 300, "LIMIT"),
            ({"id": "msgpack2"}, b" " + b"[" * 300 + b"]" * 300, "LIMIT")]:
        with pytest.raises(ZarrcError, match=says):
            write(config, text)
    write({"id": "json2"}, b" " + b"[" * 250 + b"]" * 250)


@pytest.mark.parametrize("config", [{"id": "json2"}, {"id": "msgpack2"}], ids=str)
def test_text_of_other_shapes(context, config):
    codec = find_codec(config)
    items = [b"a", b"b", b"c", b"d", b"e", b"f"]
    flat = np.array([v.decode() for v in items], dtype=object)
    for data, good in [(flat, True), (flat.astype("U1"), True), (flat.reshape(2, 3), True),
                       (flat.reshape(3, 2), False), (flat.reshape(2, 3, 1), False), (flat[:5], False),
                       (flat.reshape(1, 2, 3), False), (np.arange(6), False)]:
        store = context.store()
        array = store.create(document=object_document([config], (2, 3), (2, 3)))
        store.put("0.0", codec.encode(data))
        if good:
            assert array.read_vlen() == items
        else:
            with pytest.raises(ZarrcError, match=config["id"]):
                array.read_vlen()


NUMBERS = {"|b1": [0, 1], "|i1": [-128, 127], "<i2": [-2**15, -129, 255, 256], "<i4": [-2**31, -2**15 - 1, 65535, 65536],
           "<i8": [-2**63, -2**31 - 1, 2**32, 2**63 - 1, -33, -32], "|u1": [127, 128, 255], "<u2": [2**16 - 1],
           "<u4": [2**32 - 1], "<u8": [2**64 - 1, 2**63], "<f2": [0.1, -65504, 6e-8], "<f4": [0.1, 1e16, 3e38, 1e-45],
           "<f8": [0.1, 2.0**-44, 1e16, 1e22, 123456789012345680.0, 5e-324, -1.7976931348623157e308, 1e-5, 0.0001, -0.0]}
NUMBER_FILTERS = [{"id": "json2"}, {"id": "json2", "separators": [", ", ":"]}, {"id": "msgpack2"},
                  {"id": "msgpack2", "use_single_float": True}]


def number_values(rng, dtype, n):
    odd = NUMBERS[dtype] + ([np.nan, np.inf, -np.inf] if dtype[1] == "f" else [])
    data = rng.integers(0, 2 if dtype == "|b1" else 100, n).astype(dtype)
    data[:len(odd)] = np.array(odd).astype(dtype)[:n]
    return data


@pytest.mark.parametrize("config", NUMBER_FILTERS, ids=str)
@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("shape,chunks", SHAPES, ids=str)
def test_numbers(context, rng, config, dtype, shape, chunks):
    """The bytes of numcodecs, and what it reads: lists as nested as the chunk is. (zarr-python 2 writes such
    arrays; zarr-python 3 opens none of them.)"""
    codec = find_codec(config)
    document = cases.document_v2(dtype, 77 if dtype != "|b1" else False, shape, chunks, filters=[config])
    if config["id"] == "msgpack2" and not shape:
        with pytest.raises(ZarrcError, match="without dimensions"):
            context.store().create(document=document)
        return
    data = number_values(rng, dtype, int(np.prod(shape))).reshape(shape)
    ours, theirs = context.store(), context.store()
    array = ours.create(document=document)
    theirs.create(document=document)
    if config.get("use_single_float") and dtype == "<f8":
        if data.size > 7:
            with pytest.raises(ZarrcError, match="too large for 32 bits, use_single_float is true"):
                array.write(data)
        data = np.where(np.isfinite(data) & (np.abs(data) > 1e38), 3, data)
    array.write(data)
    for key, chunk in cut_chunks(data, chunks, 77 if dtype != "|b1" else False):
        chunk = np.ascontiguousarray(chunk, dtype).reshape(chunk.shape)
        encoded = codec.encode(chunk)
        if (chunk != np.array(document["fill_value"]).astype(dtype)).any():
            assert ours.get(key) == encoded
        theirs.put(key, encoded)
    single = config.get("use_single_float") and dtype == "<f8"
    expected = data.astype("f4").astype(dtype) if single else data
    cases.same_bits(theirs.open().read(dtype), expected)
    cases.same_bits(array.read(dtype), expected)
    assert array.verify() == []


def test_numbers_refused(context):
    def make(dtype, config, order="C"):
        return context.store().create(document=cases.document_v2(dtype, 0, (2, 2), (2, 2), order, filters=[config]))
    for id_ in ("json2", "msgpack2"):
        with pytest.raises(ZarrcError, match="little-endian"):
            make(">i4", {"id": id_})
        with pytest.raises(ZarrcError, match="reads other elements than it wrote"):
            make("<i4", {"id": id_}, "F")
    array = make("<f4", {"id": "json2", "allow_nan": False})
    array.write(np.ones((2, 2), "f4"))
    with pytest.raises(ZarrcError, match="element 3 is not finite, allow_nan is false"):
        array.write(np.array([[1, 2], [3, np.inf]], "f4"))


def test_text_order_f(context):
    for config in ({"id": "json2"}, {"id": "msgpack2"}):
        with pytest.raises(ZarrcError, match="reads other elements than it wrote"):
            context.store().create(document=object_document([config], (2, 3), (2, 3), order="F"))
        context.store().create(document=object_document([config], (3,), (3,), order="F"))


@pytest.mark.parametrize("astype", ["|u1", "|i1", "<u2", ">u2", ">i4", "<u8"])
@pytest.mark.parametrize("dtype", ["|O", "<U3", "<U1", "<U9", ">U3"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape,chunks", SHAPES, ids=str)
def test_categorize(context, rng, astype, dtype, order, shape, chunks):
    config = {"id": "categorize", "labels": LABELS, "dtype": dtype, "astype": astype}
    codec = numcodecs.get_codec(dict(config))
    known = LABELS + ["unknown", "re", "redd"]
    data = box([known[i] for i in rng.integers(0, len(known), int(np.prod(shape)))], shape)
    fill = "red" if dtype == "|O" else ""
    document = cases.document_v2(dtype, fill, shape, chunks, order,
                                 {"id": "zlib", "level": 1}, [config])
    unpack = numcodecs.Zlib().decode
    store = context.store()
    array = store.create(document=document)
    if dtype == "|O":
        array.write_vlen([v.encode() for v in data.ravel()])
        typed = data
    else:
        typed = data.astype(dtype)
        array.write(typed)
    for key, chunk in cut_chunks(typed, chunks, fill):
        chunk = np.asarray(chunk, dtype=object if dtype == "|O" else dtype)
        encoded = codec.encode(chunk.ravel(order=order)).tobytes()
        if (chunk == chunk.dtype.type(fill) if dtype != "|O" else chunk == fill).all():
            continue
        assert unpack(store.get(key)) == encoded
    expected = codec.decode(codec.encode(typed.ravel()))
    got = [v.decode() for v in array.read_vlen()] if dtype == "|O" else array.read(dtype).ravel().tolist()
    assert got == expected.tolist()


def test_categorize_refuses(context):
    def make(dtype="|O", filter_dtype="|O", labels=("a",), astype="|u1", order="C"):
        return context.store().create(document=cases.document_v2(dtype, None, (2,), (2,), order, None, [
            {"id": "categorize", "labels": labels, "dtype": filter_dtype, "astype": astype}]))
    make()
    make("<U3", "<U3")
    for arguments, says in [({"dtype": "<U3", "filter_dtype": "<U4"}, "is not the array's"),
                            ({"dtype": ">U3", "filter_dtype": "<U3"}, "little-endian"),
                            ({"dtype": "<U3", "filter_dtype": ">U3"}, "is not the array's, little-endian"),
                            ({"dtype": ">U3", "filter_dtype": ">U4"}, "is not the array's, big-endian"),
                            ({"dtype": "<U3"}, "is not the array's"),
                            ({"dtype": "<i4"}, "does not take data type int32, only text"),
                            ({"labels": ["a", 1]}, "a list of texts"),
                            ({"labels": "ab"}, "a list of texts"),
                            ({"labels": ["x"] * 256}, "numbers for 255"),
                            ({"labels": ["x"] * 128, "astype": "|i1"}, "numbers for 127"),
                            ({"astype": "<f4"}, "is not an integer")]:
        with pytest.raises(ZarrcError, match=says):
            make(**arguments)
    make(labels=["x"] * 255)
    store = context.store()
    array = store.create(document=object_document(
        [{"id": "categorize", "labels": ["a", "b"], "dtype": "|O"}], (2,), (2,)))
    for chunk, says in [(b"\1\3", "element 1 has the number 3, there are 2 labels"), (b"\1", "1 encoded bytes"),
                        (b"\1\1\1", "3 (encoded )?bytes")]:
        store.put("0", chunk)
        with pytest.raises(ZarrcError, match=says):
            array.read_vlen()


# ---- vlen-array --------------------------------------------------------------------------

ITEMS = ["<i4", ">i4", "|u1", "<f8", ">f2", "|b1", "<c16", ">i8", "|S3", "<U2", ">U2"]


def make_ragged(rng, dtype, n):
    dtype = np.dtype(dtype)
    lists = []
    for k in rng.choice([0, 1, 2, 9, 1000], n):
        raw = np.frombuffer(rng.bytes(int(k) * dtype.itemsize), np.uint8)
        if dtype.kind == "b":
            lists.append((raw & 1).astype(bool))
        elif dtype.kind == "U":
            lists.append(rng.choice(["", "a", "äß", "漢"], int(k)).astype(dtype))
        else:
            lists.append(np.frombuffer(raw.tobytes(), dtype))
    return lists


@pytest.mark.parametrize("dtype", ITEMS)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape,chunks", SHAPES, ids=str)
def test_vlen_array(context, rng, dtype, order, shape, chunks):
    config = {"id": "vlen-array", "dtype": dtype}
    codec = numcodecs.VLenArray(dtype)
    document = object_document([config, {"id": "crc32"}], shape, chunks, 0, order, {"id": "lz4"})
    seal, pack = numcodecs.CRC32(), numcodecs.LZ4()
    lists = make_ragged(rng, dtype, int(np.prod(shape)))
    data = np.empty(len(lists), dtype=object)
    for i, v in enumerate(lists):
        data[i] = v
    data = data.reshape(shape)
    items = [v.astype(v.dtype.newbyteorder("=")).tobytes() for v in data.ravel()]
    ours, theirs = context.store(), context.store()
    array = ours.create(document=document)
    assert array.dtype_name.startswith("vlen-array[")
    assert array.read_vlen() == [b""] * len(items)
    array.write_vlen(items)
    theirs.create(document=document)
    for key, chunk in cut_chunks(data, chunks, None):
        flat = np.empty(chunk.size, dtype=object)
        for i, v in enumerate(chunk.ravel(order=order)):
            flat[i] = np.array([], dtype) if v is None else v
        encoded = bytes(codec.encode(flat))
        if any(len(v) for v in flat):
            assert bytes(seal.decode(pack.decode(ours.get(key)))) == encoded
        theirs.put(key, bytes(pack.encode(seal.encode(encoded))))
    assert theirs.open().read_vlen() == items
    assert array.read_vlen() == items
    assert array.verify() == []


def test_vlen_array_created_here(context):
    store = context.store()
    array = store.create(shape=(4,), chunks=(3,), dtype="vlen-array[>i2]", zarr_format=2)
    assert json.loads(array.metadata)["filters"] == [{"id": "vlen-array", "dtype": "<i2"}]
    assert json.loads(array.metadata)["dtype"] == "|O" and array.dtype_name == "vlen-array[int16]"
    array.write_vlen([b"", np.array([1, -2], "i2").tobytes(), b"", b""])
    assert array.read_vlen()[1] == b"\1\0\xfe\xff"
    with pytest.raises(ZarrcError, match="not a whole number of items of 2"):
        array.write_vlen([b"123"] * 4)
    with pytest.raises(ZarrcError, match="does not exist in v3"):
        store.create("v3", shape=(4,), chunks=(3,), dtype="vlen-array[int16]", zarr_format=3)
    for name in ("vlen-array", "vlen-array[]", "vlen-array[string]", "vlen-array[vlen-array[int8]]",
                 "vlen-array[" * 1000 + "]" * 1000, "vlen-array[[[\"a\",\"<i4\"]]]"):
        with pytest.raises(ZarrcError, match="vlen-array"):
            context.dtype(name)


def test_vlen_array_fill(context):
    filters = [{"id": "vlen-array", "dtype": ">i2"}]
    for fill, item in [(0, b""), (None, b""), ("", b""), ([], b""), ([1, 2], b"\1\0\2\0")]:
        array = context.store().create(document=object_document(filters, (2,), (2,), fill=fill))
        assert array.read_vlen() == [item] * 2
    for fill in (1, "ab", [1, "x"], [99999], {"a": 1}):
        with pytest.raises(ZarrcError):
            context.store().create(document=object_document(filters, (2,), (2,), fill=fill))


# ---- what is not done --------------------------------------------------------------------

@pytest.mark.parametrize("filters,says", [
    ([{"id": "pickle", "protocol": 5}], "pickle.*would run code from the file"),
    ([{"id": "json"}], "json.*do not say their shape"),
    ([{"id": "msgpack"}], "msgpack.*do not say their shape"),
    ([{"id": "mystery"}], "filter \"mystery\" in front is not known"),
    ([{"id": "zlib", "level": 1}], "filter \"zlib\" in front is not known"),
    (None, "no filter says how they are stored"),
    ([{"id": "msgpack2", "raw": True}], "the elements are bytes"),
    ([{"id": "json2", "encoding": "utf-16"}], "encoding \"utf-16\""),
    ([{"id": "json2", "separators": [";", ":"]}], "separators"),
    ([{"id": "vlen-array"}], "dtype must be a NumPy type"),
    ([{"id": "vlen-array", "dtype": "|O"}], "no filter says"),
    ([{"id": "vlen-array", "dtype": "string"}], "items must have a fixed length"),
], ids=str)
def test_refused(context, filters, says):
    with pytest.raises(ZarrcError, match=says):
        context.store().create(document=object_document(filters, (2,), (2,)))


@pytest.mark.parametrize("config", [{"id": "json2"}, {"id": "msgpack2"}], ids=str)
@pytest.mark.parametrize("dtype", ["<c8", "|S3", "<U3", "<M8[s]", "|V4", "int4", [["a", "<i4"]]], ids=str)
def test_elements_that_are_not_kept(context, config, dtype):
    fill = 0 if dtype == "int4" else None
    with pytest.raises(ZarrcError, match=r"only text of any length \(\|O\), bools, integers and floats of"):
        context.store().create(document=cases.document_v2(dtype, fill, (2,), (2,), filters=[config]))


def test_no_form_in_v3(context):
    """v3 metadata knows none of these names. (vlen-array is zarrs' for something else.)"""
    for name in ("json2", "msgpack2", "categorize", "numcodecs.json2"):
        with pytest.raises(ZarrcError, match="is unknown" + ("" if "." in name else " in Zarr v3: only v2 has it")):
            context.store().create(document=cases.document_v3("string", "", [{"name": name}], (2,), (2,)))
    with pytest.raises(ZarrcError, match="vlen-array"):
        context.store().create(document=cases.document_v3("vlen-array[int8]", [], [cases.PLAIN], (2,), (2,)))


@pytest.mark.parametrize("codec", ["json2", "msgpack2", "categorize", "vlen-array"])
def test_text_created_here(context, codec):
    """A caller's own filter stays the first, no vlen-utf8 is put in front."""
    config = {"id": codec, **({"labels": ["a", "b"], "dtype": "|O"} if codec == "categorize" else {}),
              **({"dtype": "|u1"} if codec == "vlen-array" else {})}
    array = context.store().create(
        shape=(3,), chunks=(2,), dtype="string" if codec != "vlen-array" else "vlen-array[uint8]",
        zarr_format=2, codecs={"filters": [config], "compressor": None})
    assert [f["id"] for f in json.loads(array.metadata)["filters"]] == [codec]
    array.write_vlen([b"a", b"", b"b"])
    assert array.read_vlen() == [b"a", b"", b"b"]
