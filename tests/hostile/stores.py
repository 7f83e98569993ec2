"""Hostile and damaged stores, made when the tests run: the repository has no such files.

Each case is a dict of keys and bytes, or a function that prepares the folder, and the results
that a reader must give: for each step of probe.c a status and a word that the message must
contain. The array under test is "a", of 4 x 4 uint16 in chunks of 2 x 2 with fill value 7,
unless the case changes it. The cases are in the other files of this folder
that begin with stores_; every_store.py has all of them.
"""
import functools
import json
import struct
import zlib

CASES = {}
OK, CORRUPT, UNSUPPORTED, LIMIT, IO, NOT_FOUND, INVALID = (
    "ok", "corrupt", "unsupported", "limit", "io", "not found", "invalid")
STRICT = "strict"  # as the status of open: it is read, and `verify --strict` reports it by the word
MIB = 1 << 20
CHUNK = struct.pack("<4H", 1, 2, 3, 4)
DELETE = object()


class Case:
    """files: key -> bytes. steps: step -> (status, word). Steps that are not named must be ok,
    except that steps that read data (read, first, fault, write) default to `data`. mib: the
    largest peak of memory. strict: what `verify --strict` reports of the array's metadata; "":
    nothing."""

    def __init__(self, files, open=None, data=None, untrusted=False, prepare=None, values=None,
                 mib=256, strict="", **steps):
        self.files, self.untrusted, self.prepare = files, untrusted, prepare
        self.values, self.mib = values or {}, mib
        self.steps, self.strict = dict(steps), strict
        if open and open[0] == STRICT:
            self.strict = open[1]
        elif open:
            self.steps["open"] = open
        if data:
            for step in ("read", "first", "fault", "write"):
                self.steps.setdefault(step, data)


def case(function):
    CASES[function.__name__] = function
    return function


def add(name, files, *arguments, **options):
    CASES[name] = lambda: Case(files() if callable(files) else files, *arguments, **options)


# ---- documents ----------------------------------------------------------------------

BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
CRC = {"name": "crc32c"}
V3 = {
    "zarr_format": 3, "node_type": "array", "shape": [4, 4], "data_type": "uint16",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 2]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "fill_value": 7, "codecs": [BYTES], "attributes": {},
}
V2 = {"zarr_format": 2, "shape": [4, 4], "chunks": [2, 2], "dtype": "<u2", "fill_value": 7,
      "order": "C", "filters": None, "compressor": None}
GROUP = json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {}}).encode()


def text(document, changes):
    document = dict(document, **changes)
    return json.dumps({k: v for k, v in document.items() if v is not DELETE}).encode()


def v3(chunks=None, raw=None, **changes):
    files = {"zarr.json": GROUP, "a/zarr.json": raw if raw is not None else text(V3, changes)}
    files.update({f"a/{key}": value for key, value in (chunks or {}).items()})
    return files


def v2(chunks=None, raw=None, **changes):
    files = {".zgroup": b'{"zarr_format": 2}',
             "a/.zarray": raw if raw is not None else text(V2, changes)}
    files.update({f"a/{key}": value for key, value in (chunks or {}).items()})
    return files


def whole(chunks):
    return {"c/0/0": chunks}


def grid(*shape):
    return {"name": "regular", "configuration": {"chunk_shape": list(shape)}}


def codec(name, **configuration):
    return {"name": name, "configuration": configuration}


# ---- streams ------------------------------------------------------------------------

def deflate_bomb(n):
    """Raw deflate of n MiB of zeros: one flushed block, repeated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packer.compress(bytes(MIB))
    packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    return block * n + zlib.compressobj(9, zlib.DEFLATED, -15).flush()


@functools.cache
def zlib_bomb(n=1024):
    return b"\x78\xda" + deflate_bomb(n) + bytes(4)


@functools.cache
def gzip_bomb(n=1024):
    return b"\x1f\x8b\x08\0\0\0\0\0\0\x03" + deflate_bomb(n) + bytes(4) + struct.pack("<I", 8)


def gzip(data):
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


def zstd(data, claim=None):
    """One frame of raw blocks that claims a length; claim False: no length."""
    head = struct.pack("<IB", 0xFD2FB528, 0x00 if claim is False else 0xE0)
    head += b"\x80" if claim is False else struct.pack("<Q", len(data) if claim is None else claim)
    return head + struct.pack("<I", len(data) << 3 | 1)[:3] + data


def zstd_bomb(n=1024, claim=None):
    """n MiB in blocks of one repeated byte."""
    head = struct.pack("<IB", 0xFD2FB528, 0x80 if claim is not None else 0x00) + b"\x50"
    if claim is not None:
        head += struct.pack("<I", claim)
    block = struct.pack("<I", (128 << 10) << 3 | 2)[:3] + b"\0"
    return head + block * (n * 8 - 1) + struct.pack("<I", (128 << 10) << 3 | 3)[:3] + b"\0"


def lz4(data, claim=None):
    """Literals only, after the length that numcodecs puts first."""
    n = len(data)
    token = bytes([min(n, 15) << 4])
    if n >= 15:
        token += b"\xff" * ((n - 15) // 255) + bytes([(n - 15) % 255])
    return struct.pack("<i", n if claim is None else claim) + token + data


def lz4_bomb(claim):
    return struct.pack("<i", claim) + b"\x1f\0\x01\0" + b"\xff" * MIB + b"\0\x50hello"


def blosc(data, nbytes=None, blocksize=None, cbytes=None, typesize=2, flags=0x02, version=2):
    """A stored (memcpyed) buffer; each argument can make its header wrong."""
    return struct.pack("<4B3I", version, 1, flags, typesize, len(data) if nbytes is None else nbytes,
                       len(data) if blocksize is None else blocksize,
                       len(data) + 16 if cbytes is None else cbytes) + data


CRC_TABLE = []
for _n in range(256):
    for _ in range(8):
        _n = _n >> 1 ^ (0x82F63B78 if _n & 1 else 0)
    CRC_TABLE.append(_n)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 255]
    return struct.pack("<I", crc ^ 0xFFFFFFFF)

GZIP, ZSTD = codec("gzip", level=5), codec("zstd", level=3, checksum=False)
LZ4 = codec("numcodecs.lz4", acceleration=1)
ZLIB = codec("numcodecs.zlib", level=1)
BLOSC = codec("blosc", cname="lz4", clevel=5, shuffle="noshuffle", typesize=2, blocksize=0)
