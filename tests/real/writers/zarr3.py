"""Stores of zarr-python 3, whichever is installed: the versions differ in how they spell codecs,
data types and fill values (3.0 writes bare NaN into v2 and names codecs numcodecs.*; 3.1 has data
types of its own), so each writes the same."""
import importlib
import itertools

import numcodecs
import numcodecs.zarr3 as codecs
import numpy as np
import zarr

from keep import keep, place, walk
from number_types import NUMBERS, path_name, numbers

WRITER = f"zarr-python {zarr.__version__}, numcodecs {numcodecs.__version__}"
VERSION = tuple(int(part) for part in zarr.__version__.split(".")[:2])
if VERSION > (3, 0):
    DTYPES = importlib.import_module("zarr.dtype" if VERSION > (3, 1) else "zarr.core.dtype")
RNG = np.random.default_rng(3)


def create(root, name, data, **options):
    made = root.create_array(name, shape=data.shape, dtype=data.dtype, **options)
    made[...] = data
    return made


def types():
    for version in (2, 3):
        root = zarr.open_group(place(f"types-v{version}.zarr"), mode="w", zarr_format=version)
        root.attrs["text"] = "ü\u2028"
        if VERSION != (3, 1):  # it refuses to write them
            root.attrs["nan"] = [float("nan"), float("-inf")]
        for at, dtype in enumerate(NUMBERS):
            if VERSION == (3, 0) and ("c" in dtype if version == 2 else ">" in dtype):
                continue  # it cannot write its own fill value; v3 has native types only
            data = numbers(dtype, (5, 7, 3), RNG)
            more = {"dimension_names": ["time", None, "x"]} if version == 3 else {"order": "CF"[at % 2]}
            made = create(root, f"g{at % 3}/{path_name(at, dtype)}", data, chunks=(2, 3, 3),
                          compressors=None if at % 4 == 0 else "auto", attributes={"at": at}, **more)
            made.attrs["units"] = "m"
        keep(f"types-v{version}.zarr", WRITER, walk(root))


def fills():
    for version in (2, 3):
        root = zarr.open_group(place(f"fills-v{version}.zarr"), mode="w", zarr_format=version)
        for kind, values in {"f4": [0, -0.0, 1.5, np.nan, np.inf, -np.inf], "i8": [0, -1, 2**62],
                             "u8": [2**64 - 1, 2**53 + 1], "b1": [True, False], "f8": [np.nan, 0.1],
                             "c8": [0, 1 + 2j, complex(np.nan, np.inf)], "f2": [np.nan, 65504]}.items():
            if VERSION == (3, 0) and version == 2 and "c" in kind:
                continue
            for at, fill in enumerate(values):
                for empty in (True, False):
                    made = root.create_array(path_name(kind, at, empty), shape=(5, 4), chunks=(2, 2), dtype=kind,
                                             fill_value=fill, config={"write_empty_chunks": empty})
                    made[:2] = fill
                    made[2, 1] = 1
        keep(f"fills-v{version}.zarr", WRITER, walk(root))


def chains():
    root = zarr.open_group(place("chains.zarr"), mode="w")
    ints = np.cumsum(RNG.integers(0, 9, (31, 12)), axis=0)
    floats = RNG.normal(size=(31, 12)) * 100
    zc = zarr.codecs
    rows = {
        "gzip": ("i4", dict(compressors=zc.GzipCodec(level=3))),
        "zstd": ("i4", dict(compressors=zc.ZstdCodec(level=5))),
        "zstd-sum": ("i4", dict(compressors=zc.ZstdCodec(level=1, checksum=True))),
        "blosc": ("i4", dict(compressors=zc.BloscCodec(cname="zstd", shuffle="bitshuffle"))),
        "blosc-lz4": ("u1", dict(compressors=zc.BloscCodec(cname="lz4", shuffle="noshuffle"))),
        "crc32c": ("i4", dict(compressors=[zc.GzipCodec(), zc.Crc32cCodec()])),
        "big": ("i4", dict(serializer=zc.BytesCodec(endian="big"), compressors=None)),
        "transposed": ("i2", dict(filters=zc.TransposeCodec(order=(1, 0)))),
        "n-delta": ("i4", dict(filters=codecs.Delta(dtype="<i4"))),
        "n-scaled": ("f8", dict(filters=codecs.FixedScaleOffset(offset=-500, scale=10, dtype="<f8", astype="<u2"))),
        "n-quantize": ("f4", dict(filters=codecs.Quantize(digits=2, dtype="<f4"))),
        "n-bitround": ("f4", dict(filters=codecs.BitRound(keepbits=5))),
        "n-astype": ("i4", dict(filters=codecs.AsType(encode_dtype="<f8", decode_dtype="<i4"))),
        "n-packbits": ("b1", dict(filters=codecs.PackBits())),
        "n-lz4": ("i4", dict(compressors=codecs.LZ4(acceleration=2))),
        "n-zlib": ("i4", dict(compressors=codecs.Zlib(level=2))),
        "n-bz2": ("i4", dict(compressors=codecs.BZ2(level=5))),
        "n-lzma": ("i4", dict(compressors=codecs.LZMA(preset=1))),
        "n-zstd": ("i4", dict(compressors=codecs.Zstd(level=5))),
        "n-gzip": ("i4", dict(compressors=codecs.GZip(level=5))),
        "n-blosc": ("i4", dict(compressors=codecs.Blosc(cname="lz4hc", clevel=5, shuffle=2))),
        "n-shuffle": ("i4", dict(compressors=[codecs.Shuffle(elementsize=4), codecs.Zlib(level=1)])),
        "n-crc32": ("i4", dict(compressors=codecs.CRC32())),
        "n-adler32": ("i4", dict(compressors=codecs.Adler32())),
        "n-crc32c": ("i4", dict(compressors=codecs.CRC32C())),
        "n-fletcher32": ("i4", dict(compressors=codecs.Fletcher32())),
        "n-jenkins": ("i4", dict(compressors=codecs.JenkinsLookup3(initval=3))),
        "n-zfpy": ("f4", dict(serializer=codecs.ZFPY(mode=4, tolerance=0.01))),
        "n-zfpy-rate": ("f8", dict(serializer=codecs.ZFPY(mode=2, rate=16))),
        "n-pcodec": ("f8", dict(serializer=codecs.PCodec())),
    }
    for name, (dtype, options) in rows.items():
        data = (ints if np.dtype(dtype).kind in "iub" else floats).astype(dtype)
        chunks = (10, 12) if "zfpy" in name or "pcodec" in name else (10, 4)  # these take no views
        options = {"compressors": None, **options}
        for path, more in [(name, {"chunks": chunks}), (f"sharded/{name}", {"chunks": (5, 12), "shards": (10, 12)})]:
            try:
                create(root, path, data, **more, **options)[...]
            except (ValueError, TypeError, AttributeError) as problem:  # versions lack different ones
                print(f"{WRITER} lacks {path}: {str(problem).splitlines()[0]}")
                if path in root:
                    del root[path]
    refused = {path: "pco, is in Rust" for path in ("n-pcodec", "sharded/n-pcodec") if path in root}
    keep("chains.zarr", WRITER, walk(root, skip=refused), refused=refused, lossy="zfpy")


def texts():
    for version in (2, 3):
        name = f"texts-v{version}.zarr"
        root = zarr.open_group(place(name), mode="w", zarr_format=version)
        words = np.array(["", "a", "äöü", "漢字 and more", "\U0001f600!"] * 4, object).reshape(4, 5)
        made = root.create_array("str", shape=(4, 5), chunks=(3, 2), dtype=str)
        made[:3] = words[:3]
        made = root.create_array("str-fill", shape=(4, 5), chunks=(3, 2), dtype=str, fill_value="none")
        made[0] = words[0]
        if version == 3:
            made = root.create_array("str-shards", shape=(4, 5), chunks=(1, 5), shards=(2, 5), dtype=str,
                                     dimension_names=["a", "b"])
            made[...] = words
        root.create_array("str-scalar", shape=(), dtype=str)[...] = "ä" if VERSION > (3, 0) else np.array("ä", object)
        if VERSION == (3, 0) and version == 3:
            root.create_array("bytes", shape=4, chunks=3, dtype="bytes")[...] = np.array([b"", b"a", b"\0", b"bc"], object)
        if VERSION > (3, 0) or version == 2:
            for kind in ("<U5", ">U3", "S6"):
                data = words.astype(kind) if "U" in kind else np.array([b"a", b"", b"\xff\0b", b"123456", b"x"] * 4,
                                                                       kind).reshape(4, 5)
                create(root, path_name(kind), data, chunks=(3, 2))
        if VERSION > (3, 0):
            if version == 3:
                root.create_array("bytes", shape=4, chunks=3, dtype=DTYPES.VariableLengthBytes(), fill_value=b"z")[
                    :2] = np.array([b"", b"\0a"], object)
                create(root, "raw", np.arange(12, dtype="u1").view("V3"), chunks=3)
            for unit in "Y M W D h m s ms us ns ps fs as".split():
                for kind in "Mm":
                    values = RNG.integers(-300, 300, 10).astype("i8").view(f"{kind}8[{unit}]")
                    values[3] = "NaT"
                    create(root, f"times/{kind}-{unit}", values, chunks=4)
            create(root, "times/ten", np.arange(5).view("<M8[10us]"), chunks=4)
            fields = np.zeros(6, [("a", "<i4"), ("b", "<f8"), ("s", "S3")])
            fields["a"], fields["b"], fields["s"] = range(6), np.linspace(0, 1, 6), b"abc"
            create(root, "struct", fields, chunks=4)
            root.create_array("struct-fill", shape=6, chunks=2, dtype=fields.dtype, fill_value=fields[4])[:2] = fields[:2]
        keep(name, WRITER, walk(root))


def shards_and_names():
    folder = place("hierarchy.zarr")
    root = zarr.open_group(folder, mode="w", attributes={"who": "me", "deep": {"a": [1, {"b": None}]}})
    data = np.arange(60 * 70, dtype="u2").reshape(60, 70)
    at = 0
    for separator, encoding in itertools.product("/.", ("default", "v2")):
        for options in ({"chunks": (10, 7)}, {"chunks": (5, 7), "shards": (20, 35)}):
            create(root, f"{encoding}/k{at}", data, dimension_names=["y", "x"] if at % 2 else None,
                   chunk_key_encoding={"name": encoding, "separator": separator}, fill_value=at, **options)
            at += 1
    sharding = zarr.codecs.ShardingCodec(
        chunk_shape=(10, 7), codecs=[zarr.codecs.BytesCodec(), zarr.codecs.GzipCodec()],
        index_codecs=[zarr.codecs.BytesCodec(), zarr.codecs.Crc32cCodec()], index_location="start")
    create(root, "start", data, chunks=(20, 35), serializer=sharding, compressors=None)
    inner = zarr.codecs.ShardingCodec(chunk_shape=(5, 7), codecs=[zarr.codecs.BytesCodec(endian="big")])
    outer = zarr.codecs.ShardingCodec(chunk_shape=(10, 35), codecs=[inner])
    create(root, "nested", data, chunks=(20, 70), serializer=outer, compressors=None)
    hole = root.create_array("hole", shape=(100, 100), chunks=(5, 5), shards=(50, 50), dtype="f4", fill_value=np.nan)
    hole[52:58, 3] = 1
    root.create_array("scalar", shape=(), dtype="f8")[...] = 3.5
    root.create_array("zero", shape=(0, 3), chunks=(1, 1), dtype="i4")
    root.create_group("empty/in/side", attributes={"x": 1})
    grown = create(root, "grown", np.arange(10), chunks=(4,))
    grown.append(np.arange(7))
    grown.resize((15,))
    zarr.consolidate_metadata(folder)
    keep("hierarchy.zarr", WRITER, walk(folder))


for make in (types, fills, chains, texts, shards_and_names):
    make()
