#!/usr/bin/env python3
"""Writes tests/golden/zarr-python.json: metadata documents, by name, as zarr-python writes them.

Run by hand when a case is added, with the interpreter that scripts/venv prints. The unit
test meta_golden reads each of them, and compares what we write with zarr-python's document
as JSON values, and with tests/golden/zarrc.txt byte for byte (ZR_GOLDEN_UPDATE=1 renews that).
"""
import json
import pathlib
import warnings

import numcodecs
import zarr
from zarr.codecs import (BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, TransposeCodec,
                         ZstdCodec)
from zarr.storage import MemoryStore

warnings.simplefilter("ignore")
GOLDEN = pathlib.Path(__file__).with_name("zarr-python.json")
DOCUMENTS = {}  # by name

DTYPES = ["bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8",
          "c16", "S5", "U3", "V4", "M8[10us]", "m8[ns]"]
FILLS = {"bool": True, "i1": -7, "i2": -300, "i4": 2**31 - 1, "i8": -(2**63), "u1": 255,
         "u2": 65535, "u4": 2**32 - 1, "u8": 2**64 - 1, "f2": 0.1, "f4": 9.969209968386869e36,
         "f8": float("nan"), "c8": complex(1.5, float("-inf")), "c16": complex(0, -0.0),
         "S5": b"ab", "U3": "aé"}


def save(name, store, key):
    DOCUMENTS[name] = json.loads(store[key].to_bytes())


def array(name, key, **kwargs):
    store = {}
    zarr.create_array(MemoryStore(store), **kwargs)
    save(name, store, key)


def v3(name, **kwargs):
    kwargs = {"shape": (30, 20), "chunks": (10, 20), "dtype": "i4", **kwargs}
    array(f"v3-{name}", "zarr.json", zarr_format=3, **kwargs)


def v2(name, **kwargs):
    kwargs = {"shape": (30, 20), "chunks": (10, 20), "dtype": "<i4", **kwargs}
    array(f"v2-{name}", ".zarray", zarr_format=2, **kwargs)


def dtypes():
    for dtype in DTYPES:
        word = dtype.replace("[", "-").replace("]", "")
        v3(f"dtype-{word}", dtype=dtype)
        v2(f"dtype-{word}", dtype=dtype, compressors=None)
        if dtype in FILLS:
            v3(f"fill-{word}", dtype=dtype, fill_value=FILLS[dtype])
            v2(f"fill-{word}", dtype=dtype, fill_value=FILLS[dtype], compressors=None)
    v2("big-endian", dtype=">f8", compressors=None)
    v2("null-fill", fill_value=None)
    v3("minus-zero", dtype="f8", fill_value=-0.0)
    v3("infinity", dtype="f4", fill_value=float("inf"))


def codecs():
    v3("plain", compressors=None)
    v3("gzip", compressors=GzipCodec(level=6))
    v3("zstd", compressors=ZstdCodec(level=3, checksum=True))
    v3("blosc", compressors=BloscCodec(cname="zstd", clevel=4, shuffle="bitshuffle"), dtype="f8")
    v3("several", compressors=[GzipCodec(), ZstdCodec(), Crc32cCodec()])
    v3("big", serializer=BytesCodec(endian="big"))
    v3("transpose", filters=TransposeCodec(order=(1, 0)))
    v3("shards", shards=(30, 20))
    v3("shards-blosc", shards=(30, 40), compressors=[BloscCodec(), Crc32cCodec()])
    v3("shards-transpose", shards=(30, 20), filters=TransposeCodec(order=(1, 0)))
    v2("default")
    v2("fortran", order="F")
    for codec in (numcodecs.Zlib(3), numcodecs.GZip(2), numcodecs.LZ4(2), numcodecs.Zstd(5),
                  numcodecs.Zstd(1, checksum=True), numcodecs.Blosc("zstd", 4, 2),
                  numcodecs.Blosc("lz4hc", 9, -1, 4096)):
        words = [str(word) for word in codec.get_config().values()]
        v2("compressor-" + "-".join(words).replace("--", "-"), compressors=codec)
    v2("shuffle", filters=[numcodecs.Shuffle(4)], compressors=numcodecs.Zlib())
    v2("delta", filters=[numcodecs.Delta(dtype="<i4")], compressors=numcodecs.Zstd())
    v2("delta-narrow", filters=[numcodecs.Delta(dtype="<i4", astype="<i2")], compressors=None)


def shapes():
    v3("scalar", shape=(), chunks=())
    v2("scalar", shape=(), chunks=())
    v3("empty", shape=(0, 5), chunks=(1, 5))
    v3("rank-5", shape=(2, 3, 4, 5, 6), chunks=(1, 2, 3, 4, 5))
    v3("names", dimension_names=["y", None])
    v3("attributes", attributes={"unit": "m", "n": [1, 2.5, None, {"a": "é"}]})
    v3("keys-v2", chunk_key_encoding={"name": "v2", "separator": "."})
    v3("keys-dots", chunk_key_encoding={"name": "default", "separator": "."})
    v2("keys-slash", chunk_key_encoding={"name": "v2", "separator": "/"})
    v3("huge", shape=(2**40, 2**40), chunks=(2**10, 2**10))


def groups():
    for zarr_format, key in ((3, "zarr.json"), (2, ".zgroup")):
        store = {}
        root = zarr.create_group(MemoryStore(store), zarr_format=zarr_format,
                                 attributes={"title": "t"})
        root.create_group("g").create_array("a", shape=(3,), dtype="i1", fill_value=1)
        save(f"group-v{zarr_format}", store, key)
        zarr.consolidate_metadata(MemoryStore(store))
        save(f"consolidated-v{zarr_format}", store, key if zarr_format == 3 else ".zmetadata")


if __name__ == "__main__":
    dtypes()
    codecs()
    shapes()
    groups()
    GOLDEN.write_text(json.dumps(dict(sorted(DOCUMENTS.items())), indent=2) + "\n")
    print(f"zarr {zarr.__version__}: {len(DOCUMENTS)} documents")
