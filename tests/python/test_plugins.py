"""Codecs, data types and stores that are written in Python, and plug-ins that packages name by entry
points."""
import asyncio
import json
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap
import threading
import zlib
from pathlib import Path

import numpy as np
import pytest

import zarrc
from zarrc import _plugins, plugins

ROOT = Path(__file__).resolve().parents[2]
CALLS = []  # (function, chunks, thread) of codecs


@plugins.register
class Zlib(plugins.BytesCodec):
    """Members are checked, and one has a default."""

    name = "test.zlib"

    def __init__(self, level=6):
        if not 0 <= level <= 9:
            raise ValueError(f"level {level} is not from 0 to 9")
        self.level = level

    def configuration(self):
        return {"level": self.level}

    def encode_batch(self, chunks, spec):
        CALLS.append(("encode", len(chunks), threading.current_thread().name))
        return super().encode_batch(chunks, spec)

    def decode_batch(self, chunks, spec):
        CALLS.append(("decode", len(chunks), threading.current_thread().name))
        return super().decode_batch(chunks, spec)

    def encode(self, chunk, spec):
        return zlib.compress(chunk, self.level)

    def decode(self, chunk, spec):
        return zlib.decompress(chunk)


@plugins.register
class Negative(plugins.ArrayCodec):
    name = "test.negative"
    is_elementwise = True

    def encode(self, chunk, spec):
        return -chunk

    def decode(self, chunk, spec):
        return -chunk

    def resolve(self, spec):
        return spec._replace(fill_value=-spec.fill_value)


@plugins.register
class Halves(plugins.ArrayCodec):
    """Another data type and another shape."""

    name = "test.halves"
    is_lossy = True
    zarr_formats = (3,)

    def encode(self, chunk, spec):
        return chunk.astype("f4").reshape(-1)

    def decode(self, chunk, spec):
        return chunk.astype(spec.dtype).reshape(spec.shape)

    def resolve(self, spec):
        return spec._replace(shape=(int(np.prod(spec.shape)),), dtype=np.dtype("f4"))


@plugins.register
class Text(plugins.Serializer):
    name = "test.text"

    def encode(self, chunk, spec):
        return json.dumps(chunk.tolist()).encode()

    def decode(self, chunk, spec):
        return np.array(json.loads(chunk), spec.dtype)

    def encoded_bytes(self, spec):
        return None


@plugins.register
class Money(plugins.DataType):
    name = "test.money"
    dtype = np.dtype("i8")

    def fill_from_json(self, value, zarr_format):
        if not isinstance(value, str) or not value.endswith(" EUR"):
            raise ValueError(f"{value!r} is no amount")
        return int(value.removesuffix(" EUR"))

    def fill_to_json(self, element, zarr_format):
        return f"{int(element)} EUR"


@plugins.register
class Temperature(plugins.DataType):
    name = "https://example.org/temperature"
    dtype = np.dtype("f4")
    configuration = {"unit": "K", "version": "1"}
    v2_name = "test.temperature"


@plugins.register
class Label(plugins.DataType):
    name = "test.label"
    dtype = str
    configuration = {"language": "en"}

    def fill_to_json(self, element, zarr_format):
        return {"text": element}

    def fill_from_json(self, value, zarr_format):
        return value["text"]


@plugins.register
class Blob(plugins.DataType):
    name = "test.blob"
    dtype = bytes


@plugins.register
class Nibble(plugins.DataType):
    name = "test.nibble"
    dtype = "i1"
    item_bits = 4


TYPES = {
    "complex64": (1 - 2j, [1.0, -2.0]),
    "f2": (np.inf, "Infinity"),
    "M8[s]": (np.datetime64("2026-01-02T03:04:05"), 1767323045),
    "m8[ms]": (np.timedelta64("NaT", "ms"), "NaT"),
    "S3": (b"ab", "YWIA"),
    "?": (True, True),
}
STRUCTS = {f"struct{n}": np.dtype([("a", "u1"), ("b", "c8"), ("t", "M8[D]")], align=bool(n)) for n in range(2)}


def scheme_name(told):
    return "test.as." + "".join(c if c.isalnum() else "-" for c in told)


for _told in TYPES:
    plugins.register(type("As", (plugins.DataType,), {"name": scheme_name(_told), "dtype": _told, "__qualname__": scheme_name(_told)}))
for _told, _dtype in STRUCTS.items():
    plugins.register(type(_told, (plugins.DataType,), {"name": f"test.{_told}", "dtype": _dtype}))


@plugins.register
class Old(Zlib):
    name = "test.old"
    zarr_formats = (2,)


@plugins.register
class Wrong(plugins.BytesCodec):
    name = "test.wrong"
    gives = None

    def encode(self, chunk, spec):
        return Wrong.gives

    def encode_batch(self, chunks, spec):
        return super().encode_batch(chunks, spec) if Wrong.gives != "few" else []


SHELF = {}


@plugins.register
class Shelf(plugins.Store):
    scheme = "shelf"

    def __init__(self, name):
        self.values = SHELF.setdefault(name, {})

    @classmethod
    def from_url(cls, url, **options):
        return cls(url.partition("://")[2] + options.get("suffix", ""))

    def get(self, key):
        return self.values.get(key)

    def set(self, key, value):
        self.values[key] = value

    def delete(self, key):
        self.values.pop(key, None)

    def list_prefix(self, prefix):
        return [key for key in list(self.values) if key.startswith(prefix)]


class AsyncShelf(plugins.Store):
    def __init__(self):
        self.values, self.parts = {}, 0

    async def get(self, key):
        await asyncio.sleep(0)
        return self.values.get(key)

    async def get_part(self, key, start, length):
        self.parts += 1
        value = self.values.get(key)
        if value is None:
            return None
        return value[-length:] if start is None else value[start:] if length is None else value[start:start + length]

    async def getsize(self, key):
        return len(self.values[key]) if key in self.values else None

    async def set(self, key, value):
        self.values[key] = value

    async def delete(self, key):
        self.values.pop(key, None)

    async def list_prefix(self, prefix):
        return [key for key in list(self.values) if key.startswith(prefix)]


@plugins.register
class RaisingCodec(plugins.BytesCodec):
    name = "test.raising"
    problem = None

    def encode(self, chunk, spec):
        return chunk

    def decode_batch(self, chunks, spec):
        if isinstance(RaisingCodec.problem, BaseException):
            raise RaisingCodec.problem
        return [RaisingCodec.problem(chunk) if RaisingCodec.problem else chunk for chunk in chunks]


# ---- codecs ----


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_bytes_codec(store, numbers, zarr_format):
    array = zarrc.create_array(store, name="a", data=numbers, chunks=(7, 9), zarr_format=zarr_format,
                               compressors={"name": "test.zlib", "configuration": {"level": 1}})
    assert (array[...] == numbers).all() and (array[::-3, 5:9] == numbers[::-3, 5:9]).all()
    found = json.loads(store.get("a/zarr.json" if zarr_format == 3 else "a/.zarray"))
    told = found["codecs"][-1]["configuration"] if zarr_format == 3 else found["compressor"]
    assert told["level"] == 1
    key = next(key for key in store.list() if "json" not in key and ".z" not in key)
    assert len(zlib.decompress(store.get(key))) == 7 * 9 * 4


def test_the_default_of_a_member_is_stored(store):
    zarrc.create_array(store, name="a", shape=4, dtype="u1", compressors="test.zlib")
    assert json.loads(store.get("a/zarr.json"))["codecs"][-1] == {"name": "test.zlib", "configuration": {"level": 6}}


def test_a_wave_is_one_call(path):
    """The library hands over all chunks of a wave at once, to one thread of Python."""
    array = zarrc.create_array(path, shape=(64, 64), chunks=(4, 4), dtype="i4", compressors="test.zlib")
    CALLS.clear()
    array[...] = 1
    array[...]
    assert sum(n for what, n, _ in CALLS if what == "encode") == 256
    assert sum(n for what, n, _ in CALLS if what == "decode") == 256
    assert len(CALLS) < 20, CALLS
    assert {thread for *_, thread in CALLS} == {"zarrc-plugins"}


@pytest.mark.parametrize("codecs", [
    {"filters": [{"name": "test.negative"}]},
    {"filters": [{"name": "test.halves"}]},
    {"filters": [{"name": "test.negative"}, {"name": "test.halves"}], "compressors": "test.zlib"},
    {"serializer": {"name": "test.text"}},
    {"serializer": {"name": "test.text"}, "compressors": ["zstd", "test.zlib"]},
    {"filters": [{"name": "test.negative"}], "compressors": "test.zlib", "shards": (30, 20)},
    {"serializer": {"name": "test.text"}, "shards": (30, 20)},
])
def test_chains(store, numbers, codecs):
    array = zarrc.create_array(store, name="a", shape=numbers.shape, dtype="int32", chunks=(10, 10), fill_value=-7, **codecs)
    array[5:55, 3:37] = numbers[5:55, 3:37]
    wanted = np.full_like(numbers, -7)
    wanted[5:55, 3:37] = numbers[5:55, 3:37]
    again = zarrc.open_array(store, path="a")
    for one in (array, again):
        assert (one[...] == wanted).all()
        assert (one[11:13, ::-2] == wanted[11:13, ::-2]).all()
    array[20, 20] = 5
    assert again[20, 20] == 5


def test_async_and_threads(path, numbers):
    array = zarrc.create_array(path, data=numbers, chunks=(7, 9), compressors="test.zlib")

    async def rows():
        return await asyncio.gather(*[array.async_array.getitem(i) for i in range(60)])

    assert all((row == numbers[i]).all() for i, row in enumerate(asyncio.run(rows())))
    failures = []

    def work(k):
        for i in range(k, 60, 6):
            array[i] = i
            if not (array[i] == i).all():
                failures.append(i)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_wrong_configuration(store):
    with pytest.raises(ValueError, match="level 11 is not from 0 to 9") as caught:
        zarrc.create_array(store, name="a", shape=4, dtype="u1",
                           compressors={"name": "test.zlib", "configuration": {"level": 11}})
    assert isinstance(caught.value.__cause__, ValueError)
    with pytest.raises(ValueError, match="hardness"):
        zarrc.create_array(store, name="b", shape=4, dtype="u1",
                           compressors={"name": "test.zlib", "configuration": {"hardness": 1}})


def test_a_configuration_needs_its_method(path):
    """Else a document would be read with the defaults of the members."""
    @plugins.register
    class KeyedCodec(plugins.BytesCodec):
        name = "test.keyed"

        def __init__(self, key=1):
            self.key = key

    with pytest.raises(ValueError, match=r"define configuration\(\)"):
        zarrc.create_array(path, name="a", shape=4, dtype="u1",
                           compressors={"name": "test.keyed", "configuration": {"key": 5}})
    zarrc.create_array(path, name="b", shape=4, dtype="u1", compressors="test.keyed")


class Untold(Exception):
    def __str__(self):
        raise RuntimeError("no text")


@pytest.mark.parametrize("problem", [ValueError("\ud800"), Untold(), SystemExit("\udfff")])
def test_texts_that_cannot_be_told(store, problem):
    """The thread of plug-ins goes on."""
    RaisingCodec.problem = None
    array = zarrc.create_array(store, name="a", data=np.arange(6), chunks=2, compressors="test.raising")
    RaisingCodec.problem = problem
    with pytest.raises(zarrc.ZarrcError, match=type(problem).__name__):
        array[...]
    with pytest.raises(zarrc.ZarrcError, match=type(problem).__name__):
        zarrc.open_array({"zarr.json": store.get("a/zarr.json"), "c/0": b"x"})[...]
    RaisingCodec.problem = None
    assert (array[...] == np.arange(6)).all()


@pytest.mark.parametrize("problem", [OSError("\ud800"), Untold()])
def test_texts_of_stores_that_cannot_be_told(problem):
    class BrokenShelf(Shelf):
        scheme = None

        def get(self, key):
            if key == "c/0":
                raise problem
            return super().get(key)

    array = zarrc.create_array(BrokenShelf("broken"), shape=4, chunks=2, dtype="u1", overwrite=True)
    for _ in range(20):  # more often than the pool has threads
        with pytest.raises(OSError, match=type(problem).__name__):
            array[0]
    array[2:] = 1
    assert array[3] == 1


def test_the_first_failure_of_many_is_the_cause(store):
    """Also when more chunks of its wave fail than are remembered."""
    RaisingCodec.problem = None
    array = zarrc.create_array(store, name="a", data=np.arange(200), chunks=1, compressors="test.raising")
    RaisingCodec.problem = lambda chunk: ValueError(f"chunk {chunk!r}")
    with pytest.raises(zarrc.ZarrcError) as caught:
        array[...]
    assert isinstance(caught.value.__cause__, ValueError) and str(caught.value.__cause__) in str(caught.value)


def test_damage_is_an_error_of_its_chunk(store, numbers):
    array = zarrc.create_array(store, name="a", data=numbers, chunks=(30, 20), compressors="test.zlib")
    store.set("a/c/1/0", b"damage")
    with pytest.raises(zarrc.errors.CorruptError) as caught:
        array[...]
    assert caught.value.chunk == (1, 0) and isinstance(caught.value.__cause__, zlib.error)
    assert (array[:30] == numbers[:30]).all()
    store.set("a/c/1/0", zlib.compress(b"short"))
    with pytest.raises(zarrc.errors.CorruptError, match="5 bytes"):
        array[40]
    store.set("a/c/1/0", zlib.compress(bytes(10**6)))
    with pytest.raises(zarrc.errors.CorruptError):
        array[40]


def test_what_codecs_may_not_give(store):
    array = zarrc.create_array(store, name="a", shape=(4, 4), chunks=(2, 2), dtype="u1", compressors="test.wrong")
    for Wrong.gives in (None, 5, "text", "few", bytes(10**6)):
        with pytest.raises(zarrc.ZarrcError):
            array[...] = 1
    with pytest.raises(NotImplementedError):
        store.set("a/c/0/0", b"x")
        array[...]


def test_names(numbers):
    for name, error in (("zstd", ValueError), ("", TypeError), (None, TypeError)):
        with pytest.raises(error):
            plugins.register(type("Other", (plugins.BytesCodec,), {"name": name}))
    with pytest.raises(ValueError, match="Zlib"):
        plugins.register(type("Other", (plugins.BytesCodec,), {"name": "test.zlib"}))
    with pytest.raises(TypeError):
        plugins.register(int)
    with pytest.raises(TypeError):
        plugins.register(5)
    assert plugins.register(Zlib) is Zlib  # twice
    rows = {row["name"]: row for row in zarrc._settings.settings.context().registry()}
    assert rows["test.zlib"]["origin"] == rows["test.money"]["origin"] == rows["shelf"]["origin"] == "zarrc.plugins"


def test_configuration_of_a_type(path):
    """It is stored and read back, and what an array has is kept."""
    array = zarrc.create_array(path, shape=3, dtype=Temperature, fill_value=1.5)
    assert array.metadata["data_type"] == {"name": Temperature.name, "configuration": Temperature.configuration}
    array[:2] = [2.5, -1]
    other = zarrc.open_array(path)
    assert other.dtype == "f4" and other[...].tolist() == [2.5, -1, 1.5] and other.fill_value == 1.5
    other.attrs["units"] = "K"  # the document is written again
    assert zarrc.open_array(path).metadata["data_type"]["configuration"]["version"] == "1"
    told = zarrc.dtype(other.metadata["data_type"])
    assert told == zarrc.dtype(Temperature) and told.configuration == {"unit": "K", "version": "1"} and told.to_json(2) == "test.temperature"
    given = {"name": Temperature.name, "configuration": {"unit": "C"}}
    assert zarrc.create_array(None, shape=3, dtype=given).metadata["data_type"] == given
    assert zarrc.dtype(given) != told and zarrc.create_array(None, shape=3, dtype=Temperature.name).metadata["data_type"] == Temperature.name


def test_a_type_in_format_2(path):
    array = zarrc.create_array(path, shape=4, dtype=Temperature, zarr_format=2, fill_value=7)
    array[...] = np.arange(4)
    assert array.metadata["dtype"] == "test.temperature" and array.metadata["fill_value"] == 7
    assert zarrc.open_array(path)[...].tolist() == [0, 1, 2, 3]
    with pytest.raises(zarrc.errors.ZarrcError, match="test.money"):
        zarrc.create_array(None, shape=4, dtype=Money, zarr_format=2)


@pytest.mark.parametrize("cls,values,fill,told", [
    (Label, ["", "ä", "a\0b", "long " * 100], "none", {"text": "none"}),
    (Blob, [b"", b"\0\xff", b"x" * 1000, b"y"], b"\x01", "AQ=="),
])
def test_types_of_any_length(path, cls, values, fill, told):
    array = zarrc.create_array(path, shape=5, chunks=2, dtype=cls, fill_value=fill)
    array[:4] = np.array(values, array.dtype)
    other = zarrc.open_array(path)
    assert other[...].tolist() == [*values, fill] and other.fill_value == fill and other.metadata["fill_value"] == told
    assert other.serializer.name == ("vlen-bytes" if cls is Blob else "vlen-utf8")
    other.resize(7)
    assert zarrc.open_array(path)[-1] == fill
    assert zarrc.create_array(None, shape=1, dtype=cls)[0] == (b"" if cls is Blob else "")
    assert zarrc.dtype(cls).kind == ("vbytes" if cls is Blob else "string")
    if cls is Label:
        assert other.metadata["data_type"]["configuration"] == {"language": "en"}


def test_item_bits(path):
    data = np.arange(-8, 8, dtype="i1")
    array = zarrc.create_array(path, shape=16, dtype=Nibble, serializer="packbits", compressors=None)
    array[...] = data
    assert (zarrc.open_array(path)[...] == data).all() and zarrc.dtype(Nibble).item_bits == 4
    assert [f.stat().st_size for f in pathlib.Path(path).rglob("c/*")] == [8]


@pytest.mark.parametrize("members,error,match", [
    ({"dtype": "i4"}, TypeError, "Bad has no `name`"),
    ({"name": "test.bad1"}, TypeError, "Bad has no `dtype`"),
    ({"name": "test.bad2", "dtype": object}, zarrc.errors.UnsupportedError, "Bad.dtype"),
    ({"name": "test.bad3", "dtype": "V513"}, zarrc.errors.UnsupportedError, "at most 512 bytes"),
    ({"name": "test.bad4", "dtype": "i4", "item_bits": 33}, ValueError, "item_bits: 33"),
    ({"name": "test.bad5", "dtype": str, "item_bits": 3}, TypeError, "item_bits"),
    ({"name": "test.bad6", "dtype": bytes, "v2_name": "bad"}, TypeError, "v2_name"),
    ({"name": "test.bad7", "dtype": "i4", "v2_name": "f4"}, zarrc.errors.ZarrcError, "f4"),
    ({"name": "test.bad8", "dtype": "i4", "configuration": {"a": {1}}}, TypeError, "JSON"),
    ({"name": "test.bad9", "dtype": "i4", "configuration": [1]}, TypeError, "configuration"),
    ({"name": "int16", "dtype": "i4"}, zarrc.errors.ZarrcError, "int16"),
])
def test_types_that_are_refused(members, error, match):
    with pytest.raises(error, match=match):
        plugins.register(type("Bad", (plugins.DataType,), members))


def test_a_name_again(path):
    """A class takes the place of one with its names, and has to be like it."""
    def again(base, **members):
        return type("Again", (base,), {"name": "test.again", "encode": lambda self, chunk, spec: chunk, **members})

    plugins.register(again(plugins.BytesCodec))
    late = plugins.register(again(plugins.BytesCodec, decode=lambda self, chunk, spec: bytes(len(chunk))))
    for other in (again(plugins.Serializer), again(plugins.BytesCodec, zarr_formats=(3,)), again(plugins.BytesCodec, is_lossy=True)):
        with pytest.raises(ValueError, match="test.again is registered already, with another"):
            plugins.register(other)
    array = zarrc.create_array(path, name="a", data=np.arange(1, 5), compressors="test.again")
    assert not array[...].any()  # by the late one
    assert late in [type(codec) for codec in _plugins.service()._codecs.values()]
    plugins.register(type("Sized", (plugins.DataType,), {"name": "test.sized", "dtype": "i4"}))
    with pytest.raises(ValueError, match="test.sized"):
        plugins.register(type("Sized", (plugins.DataType,), {"name": "test.sized", "dtype": "i8"}))
    assert zarrc.create_array(path, name="b", shape=2, dtype="test.sized").dtype == np.dtype("i4")


def test_a_codec_of_one_format(store):
    data = np.arange(100)
    array = zarrc.create_array(store, name="two", data=data, zarr_format=2, compressors="test.old")
    assert json.loads(store.get("two/.zarray"))["compressor"]["id"] == "test.old"
    assert (zarrc.open_array(store, path="two")[...] == data).all() and array.zarr_format == 2
    with pytest.raises(zarrc.errors.UnsupportedError, match="test.old"):
        zarrc.create_array(store, name="three", data=data, compressors="test.old")
    with pytest.raises(zarrc.errors.UnsupportedError, match="test.halves"):
        zarrc.create_array(store, name="no", data=data, zarr_format=2, filters="test.halves")
    with pytest.raises(ValueError, match="zarr_formats"):
        plugins.register(type("None_", (Old,), {"name": "test.none", "zarr_formats": ()}))


def test_zarr_python_knows_its_own_codecs_only(path):
    """A codec of ours is no codec of zarr-python, which names it."""
    zarr = pytest.importorskip("zarr")
    zarrc.create_array(path, data=np.arange(6), compressors="test.zlib")
    with pytest.raises(Exception, match="test.zlib"), zarrc.enable():
        zarr.open_array(path)[...]


# ---- data types ----


@pytest.mark.parametrize("told", TYPES)
def test_fill_values_as_those_of_numpy(store, told):
    value, spelled = TYPES[told]
    zarrc.create_array(store, name="a", shape=3, dtype=scheme_name(told), fill_value=value)
    assert json.loads(store.get("a/zarr.json"))["fill_value"] == spelled
    got = zarrc.open_array(store, path="a")
    assert got.dtype == np.dtype(told)
    np.testing.assert_array_equal(got[...], np.full(3, value, told))


@pytest.mark.parametrize("kind", STRUCTS)
def test_fill_values_of_structs(store, kind):
    value = np.array((7, 1 + 2j, "2026-01-02"), STRUCTS[kind])[()]
    zarrc.create_array(store, name="a", shape=2, dtype=f"test.{kind}", fill_value=value)
    again = zarrc.open_array(store, path="a")
    assert again[1] == value and again.fill_value == value and again.dtype == STRUCTS[kind]


def test_data_type(store):
    array = zarrc.create_array(store, name="a", shape=10, chunks=4, dtype=Money, fill_value=7)
    assert json.loads(store.get("a/zarr.json"))["fill_value"] == "7 EUR"
    assert array.dtype == np.dtype("i8") and array.fill_value == 7 and array[3] == 7
    array[2:5] = [1, 2, 3]
    assert zarrc.open_array(store, path="a")[...].tolist() == [7, 7, 1, 2, 3, 7, 7, 7, 7, 7]
    other = zarrc.create_array(store, name="b", shape=3, dtype="test.money")
    assert other.fill_value == 0 and other.metadata["data_type"] == "test.money"
    store.set("a/zarr.json", store.get("a/zarr.json").replace(b"7 EUR", b"7 USD"))
    with pytest.raises(zarrc.errors.CorruptError, match="7 USD"):
        zarrc.open_array(store, path="a")


def test_bytes_of_a_data_type_are_little_endian(store):
    array = zarrc.create_array(store, name="a", shape=2, dtype="test.money", compressors=None)
    array[...] = [1, 2]
    assert store.get("a/c/0") == np.array([1, 2], "<i8").tobytes()


# ---- stores ----


def test_store_of_a_scheme(numbers):
    SHELF.clear()
    array = zarrc.create_array("shelf://x", name="g/a", data=numbers, chunks=(10, 10), shards=(30, 20))
    assert (array[...] == numbers).all() and "g/zarr.json" in SHELF["x"] and array.store.kind == "shelf"
    group = zarrc.open_group("shelf://x", mode="r")
    assert [name for name, _ in group.members()] == ["g"] and (group["g/a"][3] == numbers[3]).all()
    with pytest.raises(zarrc.errors.ReadOnlyError):
        group.create_group("h")
    zarrc.create_array("shelf://x", name="b", shape=3, dtype="u1", storage_options={"suffix": "y"})
    assert list(SHELF["xy"]) == ["b/zarr.json"] or "b/zarr.json" in SHELF["xy"]


@pytest.mark.parametrize("make", [lambda: Shelf("z"), AsyncShelf])
def test_store_object(numbers, make):
    SHELF.clear()
    source = make()
    array = zarrc.create_array(source, name="a", data=numbers, chunks=(10, 10), shards=(30, 20))
    array[3:5] = 0
    assert (array[5:] == numbers[5:]).all() and not array[3:5].any()
    zarrc.open_group(source)
    zarrc.open_store(source).flush()
    zarrc.Store.delete_dir(zarrc.open_store(source), "a")
    assert not any(key.startswith("a/") for key in source.values)
    if isinstance(source, AsyncShelf):
        assert source.parts


def test_a_store_is_all_coroutines_or_none():
    class MixedShelf(AsyncShelf):
        def get(self, key):
            return self.values.get(key)

    class Reverse(Shelf):
        async def set(self, key, value):
            self.values[key] = value

    for source, words in ((MixedShelf(), "set|get_part"), (Reverse("mixed"), "set is a coroutine function, and get is not")):
        with pytest.raises(TypeError, match=words):
            zarrc.create_array(source, shape=3, dtype="u1")


# ---- the process ----


def run(code, *arguments, **options):
    """Runs a program in a new interpreter."""
    return subprocess.run([sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(code), *map(str, arguments)],
                          capture_output=True, text=True, timeout=60, **options)


CODEC = """
import os, sys, threading, time, warnings
warnings.simplefilter("ignore")
import numpy as np, zarrc
from zarrc import plugins

@plugins.register
class Slow(plugins.BytesCodec):
    name = "test.slow"
    wait = 0
    def encode(self, chunk, spec):
        time.sleep(Slow.wait)
        return chunk
    decode = encode

array = zarrc.create_array(sys.argv[1], shape=(20, 20), chunks=(2, 2), dtype="i4", compressors="test.slow")
array[...] = 3
"""


@pytest.mark.parametrize("how", ["", "os._exit(0)"])
def test_exit_with_calls_in_flight(path, how):
    done = run(CODEC + textwrap.dedent("""
        Slow.wait = 1000
        for _ in range(2):
            threading.Thread(target=lambda: array[...], daemon=True).start()
        time.sleep(0.3)
        exec(sys.argv[2])
    """), path, how)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_fork(path):
    """The child has a thread of its own, also while the parent's is at work."""
    done = run(CODEC + textwrap.dedent("""
        Slow.wait = 0.05
        thread = threading.Thread(target=lambda: array[...])
        thread.start()
        time.sleep(0.1)
        child = os.fork()
        if child == 0:
            Slow.wait = 0
            os._exit(7 if (array[...] == 3).all() else 8)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        thread.join()
    """), path)
    assert done.stdout == "7\n", done.stdout + done.stderr


def test_exit_with_calls_taken_and_not_begun(path):
    """The thread took several questions at once, and the codec blocks in the first."""
    done = run(CODEC + textwrap.dedent("""
        Slow.wait = 0.3
        threading.Thread(target=lambda: array[:2, :2], daemon=True).start()
        time.sleep(0.1)
        for i in range(1, 4):
            threading.Thread(target=lambda i=i: array[2 * i, 2 * i], daemon=True).start()
        time.sleep(0.1)
        Slow.wait = 1000
        time.sleep(0.5)
        from zarrc import _plugins
        print(len(_plugins.service()._taken))
    """), path)
    assert done.stdout == "2\n" and done.returncode == 0, done.stdout + done.stderr


def test_fork_while_locks_are_held(path):
    done = run("""
        import os, sys, threading, warnings
        warnings.simplefilter("ignore")
        import zarrc
        zarrc.open_group("memory://x")
        held, go = threading.Event(), threading.Event()
        def hold():
            with zarrc._settings.settings._lock, zarrc._places._memory_lock:
                held.set()
                go.wait()
        threading.Thread(target=hold).start()
        held.wait()
        child = os.fork()
        if child == 0:
            zarrc.config.set(max_threads=2)
            zarrc.open_group("memory://x")
            os._exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        go.set()
    """)
    assert done.stdout == "7\n", done.stdout + done.stderr


def test_interrupt(path):
    """Ctrl-C ends a read after the call of the codec that runs."""
    done = run(CODEC + textwrap.dedent("""
        import signal
        signal.signal(signal.SIGINT, signal.default_int_handler)
        Slow.wait = 0.01
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            while True:
                array[...]
        except KeyboardInterrupt:
            Slow.wait = 0
            print("stopped", array[0, 0])
    """), path)
    assert done.stdout == "stopped 3\n", done.stdout + done.stderr


# ---- packages ----


def package(folder, name, points, code=""):
    """An installed package with entry points."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[zarrc.plugins]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()))
    (folder / f"{name}.py").write_text(textwrap.dedent(code))


CLASSES = """
    from zarrc import plugins

    class Same(plugins.BytesCodec):
        name = "acme.same"
        def encode(self, chunk, spec):
            return chunk
        decode = encode

    class Degrees(plugins.DataType):
        name = "acme.degrees"
        dtype = "f4"

    both = [Same, Degrees]
"""
USE = """
    import sys, warnings
    warnings.simplefilter("always")
    import numpy as np, zarrc
    z = zarrc.create_array(sys.argv[1], shape=4, dtype="acme.degrees", compressors="acme.same", overwrite=True)
    z[...] = [1, 2, 3, 4]
    print(zarrc.open_array(sys.argv[1])[...].tolist(), z.dtype)
"""


def environment(folder, **more):
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]), **more}


def test_entry_points(tmp_path, path):
    package(tmp_path, "acme", {"all": "acme:both"}, CLASSES)
    done = run(USE, path, env=environment(tmp_path))
    assert done.stdout == "[1.0, 2.0, 3.0, 4.0] float32\n" and not done.stderr, done.stderr
    done = run(USE, path, env=environment(tmp_path, ZARRC_ENTRY_POINTS="0"))
    assert "acme.degrees" in done.stderr and done.returncode == 1


def test_broken_packages_are_left_out(tmp_path, path):
    """Each is a warning that names it; the others work."""
    package(tmp_path, "acme", {"all": "acme:both"}, CLASSES)
    package(tmp_path, "bad_one", {"x": "bad_one:missing"})
    package(tmp_path, "bad_two", {"x": "bad_two:x"}, 'raise RuntimeError("no luck")')
    package(tmp_path, "bad_three", {"x": "bad_three:x"}, 'x = "/none/such.so"')
    package(tmp_path, "late_one", {"x": "late_one:X"},
            'from zarrc import plugins\nclass X(plugins.BytesCodec):\n    name = "acme.same"\n')
    done = run(USE, path, env=environment(tmp_path))
    assert done.stdout == "[1.0, 2.0, 3.0, 4.0] float32\n", done.stderr
    for word in ("bad_one", "bad_two", "no luck", "bad_three", "/none/such.so"):
        assert word in done.stderr, word
    assert "package late_one is left out: ValueError: acme.same is registered already" in done.stderr


def test_imports_and_the_search_at_once(tmp_path, path):
    """A thread imports a plug-in that registers itself, while another one looks for plug-ins."""
    package(tmp_path, "acme", {"all": "acme:both", "twice": "acme:Same"}, """
    import time
    from zarrc import plugins
    time.sleep(0.5)

    @plugins.register
    class Own(plugins.BytesCodec):
        name = "acme.own"
""" + CLASSES)
    done = run(textwrap.dedent("""
        import threading, time, zarrc
        thread = threading.Thread(target=__import__, args=("acme",))
        thread.start()
        time.sleep(0.2)
    """) + textwrap.dedent(USE), path, env=environment(tmp_path))
    assert done.stdout == "[1.0, 2.0, 3.0, 4.0] float32\n" and not done.stderr, done.stderr


def test_an_interrupted_search_begins_again(tmp_path, path):
    package(tmp_path, "acme", {"all": "acme:both"}, """
    import builtins
    if not hasattr(builtins, "was_here"):
        builtins.was_here = True
        raise KeyboardInterrupt
""" + CLASSES)
    done = run(textwrap.dedent("""
        import zarrc
        try:
            zarrc._settings.settings.context()
        except KeyboardInterrupt:
            print("stopped")
    """) + textwrap.dedent(USE), path, env=environment(tmp_path))
    assert done.stdout == "stopped\n[1.0, 2.0, 3.0, 4.0] float32\n", done.stderr


@pytest.mark.skipif(not shutil.which("cc") or not (ROOT / "examples/plugins/codec_xor.c").exists(),
                    reason="the example in C needs a compiler and the source tree")
def test_a_library_of_a_package(tmp_path, path):
    """The example plug-in in C, compiled as a package would bring it."""
    library = tmp_path / "codec_xor.so"
    subprocess.run(["cc", "-std=c11", "-shared", "-fPIC", f"-I{ROOT}/include", "-o", library,
                    ROOT / "examples/plugins/codec_xor.c"], check=True)
    package(tmp_path, "acme", {"xor": "acme:library"}, f"""
        def library():
            return {str(library)!r}
    """)
    done = run("""
        import sys, zarrc
        print([row["origin"] for row in zarrc._settings.settings.context().registry(2) if row["name"] == "example.xor"])
        z = zarrc.create_array(sys.argv[1], shape=4, dtype="u1", compressors={"name": "example.xor", "configuration": {"key": 5}})
        z[...] = [1, 2, 3, 4]
        print(z[...].tolist())
    """, path, env=environment(tmp_path))
    assert done.stdout == "['example-xor']\n[1, 2, 3, 4]\n", done.stderr


def test_the_search_costs_little(tmp_path):
    package(tmp_path, "acme", {"all": "acme:both"}, CLASSES)
    done = run("""
        import time, importlib.metadata, zarrc
        zarrc._settings.settings.context()
        began = time.process_time()
        for _ in range(1000):
            zarrc._settings.settings.context()
        print((time.process_time() - began) / 1000)
    """, env=environment(tmp_path))
    assert float(done.stdout) < 1e-3, done.stdout  # 5 us; the time of other programs does not count
