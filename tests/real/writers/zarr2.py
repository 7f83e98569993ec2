"""Stores of zarr-python 2.18: each of its directory stores, data types, orders, filters,
compressors, object codecs and structured types, fill values, what it does with empty chunks,
consolidated metadata, and N5."""
import itertools

import numcodecs
import numpy as np
import zarr

from keep import array, keep, place, walk
from number_types import NUMBERS, path_name, numbers

WRITER = f"zarr-python {zarr.__version__}, numcodecs {numcodecs.__version__}"
RNG = np.random.default_rng(2)


def types():
    for kind, store in [("nested", zarr.NestedDirectoryStore), ("flat", zarr.DirectoryStore),
                        ("fs", lambda folder: zarr.storage.FSStore(folder, dimension_separator="/"))]:
        name = f"types-{kind}.zarr"
        folder = place(name)
        root = zarr.group(store(folder), overwrite=True)
        root.attrs["title"] = "Grüße \u2028 \U0001f600"
        for at, dtype in enumerate(NUMBERS):
            order = "CF"[at % 2]
            made = root.require_group(f"g/{dtype[1]}").create_dataset(
                path_name(at, dtype), data=numbers(dtype, (5, 7, 3), RNG), chunks=(2, 3, 3), order=order)
            made.attrs.update(_ARRAY_DIMENSIONS=["time", "y", "x"], at=at, of=[1.5, None, True, {"a": []}])
        keep(name, WRITER, walk(root))


def compressors():
    root = zarr.open_group(place("compressors.zarr"), "w")
    data = np.repeat(RNG.integers(0, 50, 3000), 3).astype("<i4").reshape(90, 100)
    makers = {"none": None, "zlib": numcodecs.Zlib(9), "gzip": numcodecs.GZip(1), "bz2": numcodecs.BZ2(3),
              "lzma": numcodecs.LZMA(preset=1), "lzma-alone": numcodecs.LZMA(format=2, preset=1),
              "lzma-raw": numcodecs.LZMA(format=3, filters=[
                  {"id": 3, "dist": 4}, {"id": 0x21, "preset": 1}]),
              "lz4": numcodecs.LZ4(4), "zstd": numcodecs.Zstd(7), "zstd-sum": numcodecs.Zstd(1, checksum=True),
              "zfpy": None, "pcodec": None}
    for cname, shuffle in itertools.product(numcodecs.blosc.list_compressors(), (-1, 0, 1, 2)):
        if cname != "snappy":
            makers[f"blosc-{cname}-{shuffle + 1}"] = numcodecs.Blosc(cname, 5, shuffle, 0)
    makers["blosc-blocks"] = numcodecs.Blosc("zstd", 9, 1, 512)
    makers["blosc-store"] = numcodecs.Blosc("lz4", 0)
    skip = ("zfpy", "pcodec")
    for name, compressor in makers.items():
        if name not in skip:
            root.create_dataset(name, data=data, chunks=(40, 30), compressor=compressor)
    keep("compressors.zarr", WRITER, walk(root))


def filters():
    root = zarr.open_group(place("filters.zarr"), "w")
    ints = np.cumsum(RNG.integers(0, 9, (31, 11)), axis=0)
    floats = RNG.normal(size=(31, 11)) * 100
    rows = {
        "delta": (ints.astype("<i8"), [numcodecs.Delta("<i8")]),
        "delta-narrow": (ints.astype("<i4"), [numcodecs.Delta("<i4", astype="<i2")]),
        "delta-big": (ints.astype(">u2"), [numcodecs.Delta(">u2")]),
        "delta-float": (floats.astype("<f4"), [numcodecs.Delta("<f4")]),
        "scaled": (floats.astype("<f8"), [numcodecs.FixedScaleOffset(-500, 10, "<f8", "<u2")]),
        "scaled-single": (floats.astype("<f4"), [numcodecs.FixedScaleOffset(1.5, 0.25, "<f4", "|i1")]),
        "quantized": (floats.astype("<f4"), [numcodecs.Quantize(2, "<f4")]),
        "quantized-cast": (floats.astype("<f8"), [numcodecs.Quantize(1, "<f8", "<f4")]),
        "bitround": (floats.astype("<f4"), [numcodecs.BitRound(5)]),
        "packbits": (RNG.integers(0, 2, (31, 11)).astype(bool), [numcodecs.PackBits()]),
        "astype": (ints.astype("<i4"), [numcodecs.AsType("<f8", "<i4")]),
        "shuffled": (ints.astype("<i4"), [numcodecs.Shuffle(4)]),
        "base64": (ints.astype("<i4"), [numcodecs.Base64()]),
        "crc32": (ints.astype("<i4"), [numcodecs.CRC32()]),
        "crc32-end": (ints.astype("<i4"), [numcodecs.CRC32(location="end")]),
        "adler32": (ints.astype("<i4"), [numcodecs.Adler32()]),
        "fletcher32": (ints.astype("<i4"), [numcodecs.Fletcher32()]),
        "jenkins": (ints.astype("<i4"), [numcodecs.JenkinsLookup3(initval=7)]),
        "both": (ints.astype("<i4"), [numcodecs.Delta("<i4"), numcodecs.Shuffle(4), numcodecs.Adler32()]),
        "text-of-labels": (np.array([["a", "ccc"], ["", "bb"]] * 9), [
            numcodecs.Categorize(["a", "bb", "ccc"], "<U3")]),
    }
    for (name, (data, chain)), order in itertools.product(rows.items(), "CF"):
        for compressor in (None, numcodecs.Zlib(1)):
            root.create_dataset(f"{name}/{order}{0 if compressor is None else 1}", data=data, chunks=(10, 4),
                                order=order, filters=chain, compressor=compressor)
    keep("filters.zarr", WRITER, walk(root), unmigrated="has no codec \"categorize\"")


def box(items, shape):
    out = np.empty(len(items), object)
    out[:] = items
    return out.reshape(shape)


def objects():
    """zarr-python 2 leaves its fill value 0 in what was never written, and reads it back as 0."""
    root = zarr.open_group(place("objects.zarr"), "w")
    words = ["", "a", "grün", "漢字 and more of it", "\U0001f600", "x" * 300] * 7
    byte = [w.encode() for w in words[:-1]] + [b"\0\xff"]
    rows = {"utf8": (words, numcodecs.VLenUTF8()), "bytes": (byte, numcodecs.VLenBytes()),
            "json": (words, numcodecs.JSON()), "msgpack": (words, numcodecs.MsgPack()),
            "labels": (words, numcodecs.Categorize(sorted(set(words)), object)),
            "ragged": ([np.arange(n % 5, dtype="<i4") for n in range(42)], numcodecs.VLenArray("<i4")),
            "ragged-floats": ([np.arange(n % 3) / 3 for n in range(42)], numcodecs.VLenArray("<f8")),
            "ragged-big": ([np.arange(n % 4, dtype=">i2") for n in range(42)], numcodecs.VLenArray(">i2"))}
    for (name, (items, codec)), order in itertools.product(rows.items(), "CF"):
        if order == "F" and name in ("json", "msgpack"):
            continue  # it reads other elements than it wrote: refused, below
        data = box(items, (6, 7))
        made = root.create_dataset(f"{name}/{order}", shape=(6, 7), chunks=(2, 7), dtype=object,
                                   object_codec=codec, order=order)
        made[...] = data
    root.create_dataset("str", data=box(words, (42,)), dtype=str, chunks=5)
    root.create_dataset("str-fill", shape=9, dtype=str, chunks=2, fill_value="none")[3:5] = box(["a", "b"], 2)
    # Some are encoded twice: the object codec with a filter behind it.
    root.create_dataset("sum", data=box(words, 42), dtype=object, object_codec=numcodecs.VLenUTF8(),
                        filters=[numcodecs.CRC32()], chunks=8)
    keep("objects.zarr", WRITER, walk(root), unmigrated="has no codec \"(json2|msgpack2|categorize)\"|vlen-array.* has no form in Zarr v3")

    root = zarr.open_group(place("refused.zarr"), "w")
    root.create_dataset("pickle", data=box([1, "a", None], 3), object_codec=numcodecs.Pickle())
    for name, codec in [("json-f", numcodecs.JSON()), ("msgpack-f", numcodecs.MsgPack())]:
        root.create_dataset(name, data=box(words, (6, 7)), object_codec=codec, order="F")
    root.create_dataset("good", data=np.arange(3))
    refused = {"pickle": "run code from the file",
               "json-f": "other elements than it wrote", "msgpack-f": "other elements than it wrote"}
    keep("refused.zarr", WRITER, walk(root, skip=refused), refused=refused)


def structs():
    root = zarr.open_group(place("structs.zarr"), "w")
    types = {
        "two": [("a", "<i4"), ("b", "<f8")], "mixed": [("a", ">i4"), ("b", "<f8"), ("c", ">u2")],
        "texts": [("s", "S5"), ("u", "<U3"), ("n", "|u1")], "times": [("t", "<M8[ns]"), ("d", "<m8[s]")],
        "sub": [("p", "<f4", (3,)), ("m", "<i2", (2, 2)), ("k", "|b1")],
        "nested": [("in", [("x", "<f4"), ("y", ">f4")]), ("c", "<c8")],
        "deep": [("in", [("sub", "<i2", (2,)), ("in", [("z", "|i1")])])], "one": [("only", "<f8")]}
    for name, fields in types.items():
        dtype = np.dtype(fields)
        data = np.frombuffer(RNG.integers(0, 2, 12 * dtype.itemsize).astype("u1").tobytes(), dtype).copy()
        if name == "texts":
            data["u"] = ["", "ä", "漢字x"] * 4
        root.create_dataset(name, data=data, chunks=5)
        fill = data[3]
        if name not in ("nested", "deep"):  # zarr 2 cannot express those
            part = root.create_dataset(name + "-fill", shape=12, chunks=5, dtype=dtype, fill_value=fill)
            part[:2] = data[:2]
    keep("structs.zarr", WRITER, walk(root), unmigrated="fields differ in byte order|has no form in Zarr v3")


def texts_and_times():
    root = zarr.open_group(place("texts.zarr"), "w")
    data = np.array(["", "a", "äöü", "漢字", "\U0001f600!"] * 4).reshape(4, 5)
    for order, dtype in itertools.product("CF", ("<U5", ">U5", "S7", "V3", "S1", "U1")):
        values = data.astype(dtype) if "U" in dtype else np.array([b"", b"a", b"b\0c", b"1234567", b"\xff"] * 4,
                                                                  "S7").reshape(4, 5).astype(dtype)
        made = root.create_dataset(path_name(dtype, order), shape=(4, 5), chunks=(3, 2), order=order, dtype=dtype)
        made[:3] = values[:3]
        if "V" not in dtype:
            made = root.create_dataset(path_name(dtype, order, "fill"), shape=(4, 5), chunks=(3, 2), order=order,
                                       dtype=dtype, fill_value="zz" if "U" in dtype else b"zz")
            made[0] = values[0]
    for unit in "Y M W D h m s ms us ns ps fs as".split():
        for kind, order in itertools.product("Mm", "<>"):
            values = RNG.integers(-300, 300, 10).astype("i8").view(f"{kind}8[{unit}]").astype(f"{order}{kind}8[{unit}]")
            values[3] = "NaT"
            root.create_dataset(f"times/{unit}-{kind}{'lb'['<>'.index(order)]}", data=values, chunks=4)
    root.create_dataset("times/ten", data=np.arange(5).view("<M8[10us]"), chunks=4)
    root.create_dataset("times/nat", shape=7, dtype="<M8[s]", chunks=4, fill_value="NaT")[1:3] = 5
    refused = {f"U1-{order}-fill": "the text is too long" for order in "CF"}
    keep("texts.zarr", WRITER, walk(root, skip=refused), refused=refused)


def fills():
    root = zarr.open_group(place("fills.zarr"), "w")
    for kind, values in {"<f4": [0, -0.0, 1.5, np.nan, np.inf, -np.inf, None], "<i8": [0, -1, 2**62, None],
                         "<u8": [2**64 - 1, 2**53 + 1], "|b1": [True, False, None],
                         "<c8": [0, 1 + 2j, complex(np.nan, np.inf), None], ">f8": [np.nan, 0.1]}.items():
        for at, fill in enumerate(values):
            for empty in (True, False):
                made = root.create_dataset(path_name(kind, at, empty), shape=(5, 4), chunks=(2, 2), dtype=kind,
                                           fill_value=fill, write_empty_chunks=empty)
                made[:2] = fill if fill is not None else 0
                made[2, 1] = 1
    nodes = {p: n for p, n in walk(root).items()}
    for path, node in nodes.items():  # what was never written is undefined: zeros for zarrc
        if node["kind"] == "array" and root[path].fill_value is None:
            node["values"] = np.where(written_mask(node["values"]), node["values"], 0).astype(node["values"].dtype)
    keep("fills.zarr", WRITER, nodes)


def written_mask(values):
    mask = np.zeros(values.shape, bool)
    mask[:4, :2] = mask[:2] = True
    return mask


def shapes():
    root = zarr.open_group(place("shapes.zarr"), "w")
    root.create_dataset("scalar", data=np.float64(2.5))
    root.create_dataset("scalar-text", shape=(), dtype=str, object_codec=numcodecs.VLenUTF8())[()] = "ä"
    root.create_dataset("none", shape=(0,), dtype="<i4")
    root.create_dataset("flat", shape=(3, 0, 2), dtype="<i4", chunks=(2, 1, 1))
    root.create_dataset("large-chunk", data=np.arange(5), chunks=100)
    root.create_dataset("one-chunk", data=np.arange(12).reshape(3, 4), chunks=False)
    root.create_dataset("deep/er/and/deep er", data=np.arange(2 ** 9).reshape((2,) * 9), chunks=(1, 2) * 4 + (1,))
    grown = root.create_dataset("grown", data=np.arange(10), chunks=4)
    grown.append(np.arange(7))
    grown.resize(15)
    keep("shapes.zarr", WRITER, walk(root))


def write_consolidated():
    folder = place("consolidated.zarr")
    root = zarr.open_group(folder, "w")
    root.attrs["a"] = float("nan")
    root.create_dataset("x/y", data=np.arange(6), chunks=4).attrs["b"] = [float("inf"), 1e300]
    root.create_group("empty")
    zarr.consolidate_metadata(folder)
    keep("consolidated.zarr", WRITER, walk(zarr.open_consolidated(folder)))


def n5():
    """No Zarr store, but v3's codec n5_default names its chunks: tests/real puts a zarr.json there."""
    folder = place("n5.n5")
    root = zarr.group(zarr.N5Store(folder), overwrite=True)
    data = RNG.integers(0, 1000, (7, 5, 9)).astype("<i4")
    nodes = {}
    for name, compressor in {"raw": None, "gzip": numcodecs.GZip(5), "zlib": numcodecs.Zlib(5), "bz2": numcodecs.BZ2(9),
                             "zstd": numcodecs.Zstd(3), "blosc": numcodecs.Blosc(shuffle=1)}.items():
        for dtype in ("|u1", "<i2", "<f8"):
            path = f"{name}/{path_name(dtype)}"
            root.create_dataset(path, data=data.astype(dtype), chunks=(3, 5, 4), compressor=compressor)
            nodes[path] = array(root[path][...], {})
    keep("n5.n5", WRITER, nodes, n5=True)


for make in (types, compressors, filters, objects, structs, texts_and_times, fills, shapes, write_consolidated, n5):
    make()
