"""cases - the one table of what is measured: the arrays, and what is done with them.

The cubes are those of LDeakin/zarr_benchmarks; noisy data compresses to about a half."""
import dataclasses
import math

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
SMALL = 512  # edge at most of the cubes that are no part of that benchmark


def zstd(level):
    return {"name": "zstd", "configuration": {"level": level, "checksum": False}}


def blosc(cname, shuffle, clevel):
    return {"name": "blosc", "configuration": {"cname": cname, "clevel": clevel, "shuffle": shuffle, "typesize": 2, "blocksize": 0}}


def transpose_first(*codecs):
    return ({"name": "transpose", "configuration": {"order": [2, 1, 0]}}, LITTLE, *codecs)


@dataclasses.dataclass(frozen=True)
class Set:
    """An array, or a tree of them. `floor`: how the floor names the codec; "": it has none."""
    shape: tuple
    chunks: tuple  # or shards
    codecs: tuple = (LITTLE,)
    inner: tuple = None
    floor: str = ""
    level: int = 0
    data: str = "cube"  # how elements are made: see data.py
    dtype: str = "uint16"
    format: int = 3
    in_memory: bool = False  # many files: on tmpfs

    @property
    def item(self):
        return {"uint16": 2, "float32": 4, "string": 16}[self.dtype]

    @property
    def nbytes(self):
        return math.prod(self.shape) * self.item


def scale_sets(size):
    """As many bytes as a cube of at most 512 has, in inner chunks of 1 KiB to 4 MiB."""
    n = min(size, SMALL) ** 3
    rows = 1 << (n.bit_length() - 1) // 2
    for name, inner in (("1k", (16, 32)), ("16k", (64, 128)), ("256k", (256, 512)), ("4m", (1024, 2048))):
        shard = tuple(min(a, b) for a, b in zip((2048, 4096), (rows, n // rows)))
        if all(b <= a for a, b in zip(shard, inner)):
            yield f"scale-{name}", Set((rows, n // rows), shard, (LITTLE,), inner, "raw", data="rows")


def sets(size):
    """name -> Set, for cubes of one edge."""
    chunk = (min(256, size // 2),) * 3
    inner = (chunk[0] // 4,) * 3
    small = (min(size, SMALL),) * 3
    part = (min(128, size // 4),) * 3
    tiny = (4096, 4096) if size >= SMALL else (512, 512)
    many = (8000, 25600) if size >= SMALL else (320, 640)
    leaf = (32, 64)
    texts = 10**7 if size >= SMALL else 10**4
    return {
        "warmup": Set((64, 64), (32, 64), (LITTLE, zstd(0)), data="rows"),
        "raw": Set((size,) * 3, chunk, floor="raw"),
        "zstd": Set((size,) * 3, chunk, (LITTLE, zstd(0)), floor="zstd"),
        "shard": Set((size,) * 3, chunk, (LITTLE, zstd(0)), inner, "zstd"),
        "noisy": Set(small, chunk, (LITTLE, zstd(0)), inner, "zstd", data="noise"),
        "gzip": Set(small, part, (LITTLE, {"name": "gzip", "configuration": {"level": 5}}), None, "gzip", 5, "noise"),
        "shuffle": Set(small, part, (LITTLE, {"name": "numcodecs.shuffle", "configuration": {"elementsize": 2}}, zstd(3)),
                       None, "shuffle", 3, "noise"),
        "blosc-lz4-shuffle": Set(small, part, (LITTLE, blosc("lz4", "shuffle", 5)), None, "blosc", data="noise"),
        "blosc-lz4-bitshuffle": Set(small, part, (LITTLE, blosc("lz4", "bitshuffle", 5)), None, "blosc", data="noise"),
        "blosc-zstd-shuffle": Set(small, part, (LITTLE, blosc("zstd", "shuffle", 3)), None, "blosc", data="noise"),
        "transpose": Set(small, part, transpose_first()),
        "transpose-zstd": Set(small, part, transpose_first(zstd(0))),
        "big-endian": Set(small, part, ({"name": "bytes", "configuration": {"endian": "big"}},), None, "big"),
        "crc32c": Set(small, part, (LITTLE, {"name": "crc32c"}), data="noise"),
        "float32": Set((*small[:2], small[2] // 2), part, (LITTLE, zstd(3)), None, "zstd", 3, "noise", "float32"),
        "v2-raw": Set(small, part, (), format=2),
        "v2-zlib": Set(small, part, ({"id": "zlib", "level": 5},), format=2),
        "cubes": Set(small, inner, floor="raw"),
        "files": Set(many, leaf, floor="raw", data="rows", in_memory=True),
        "inner-zstd": Set(tiny, tiny, (LITTLE, zstd(0)), leaf, "zstd", data="rows", in_memory=True),
        "inner-blosc": Set(tiny, tiny, (LITTLE, blosc("lz4", "shuffle", 5)), leaf, "blosc", data="rows", in_memory=True),
        "inner-raw": Set(tiny, tiny, (LITTLE,), leaf, "raw", data="rows", in_memory=True),
        "append": Set((0, 1000), (100, 1000), (LITTLE, zstd(3)), data="none", dtype="float32", in_memory=True),
        "strings": Set((texts,), (texts // 100,), ({"name": "vlen-utf8"}, zstd(1)), data="texts", dtype="string", in_memory=True),
        "tree": Set((1000, 1000), (100, 100), (LITTLE, zstd(0)), data="tree", in_memory=True),
        **dict(scale_sets(size)),
    }


@dataclasses.dataclass(frozen=True)
class Case:
    """`floor`: zarrc's time divided by the floor's at most; `best`: the best peer's by zarrc's at least."""
    name: str
    title: str
    mode: str
    set: str
    keys: dict = dataclasses.field(default_factory=dict)
    floor: float = None
    best: float = .97
    cores: int = 0  # 0: all
    is_cold: bool = False
    is_quick: bool = False
    each: str = ""  # what a time is divided by: a key, if it is shown for one of many

    @property
    def is_fresh(self):
        """Whether the output is memory that the process never had."""
        return self.mode in ("read", "strings") and self.keys.get("out") != "warm"

    @property
    def writes(self):
        return self.mode in ("write", "round", "append")


NAMES = {"raw": "raw", "zstd": "zstd", "shard": "shards"}


def cubes():
    for name, best in (("raw", 1.1), ("zstd", 1.1), ("shard", 1.15)):
        title = NAMES[name]
        yield Case(f"read/{name}", f"read all, {title}", "read", name, floor=1.1, best=best, is_quick=True)
        yield Case(f"read-aligned/{name}", f"read all into aligned memory, {title}", "read", name, {"out": "aligned"}, 1.1)
        yield Case(f"read-warm/{name}", f"read all into used memory, {title}", "read", name, {"out": "warm", "repeats": 3}, 1.1)
        yield Case(f"chunks/{name}", f"block by block, {title}", "units", name, {"repeats": 2}, 1.1, 1.0)
        yield Case(f"chunks-2/{name}", f"block by block, two callers, {title}", "units", name, {"callers": 2, "repeats": 2}, 1.1, 1.0,
                   is_quick=name == "shard")
        yield Case(f"round/{name}", f"read, encode, write, {title}", "round", name, {"callers": 2}, 1.1, 1.0)
    for callers in (1, 2):
        of = ", two callers" if callers == 2 else ""
        yield Case(f"inner-chunks-{callers}", f"chunk by chunk in shards{of}", "units", "shard",
                   {"callers": callers, "region": "inner", "repeats": 2}, 1.1, 1.2, is_quick=callers == 2)
    for name in ("zstd", "shard"):
        yield Case(f"one-core/{name}", f"read all on one core, {NAMES[name]}", "read", name, {"out": "warm", "repeats": 2}, 1.1, cores=1)


def codecs():
    for name, title, best, floor in (
            ("noisy", "shards of noise", 1.1, 1.1), ("gzip", "gzip", 1.5, None), ("shuffle", "shuffle and zstd", 2, None),
            ("blosc-lz4-shuffle", "blosc lz4 shuffle", 1.1, None), ("blosc-lz4-bitshuffle", "blosc lz4 bitshuffle", 1.5, None),
            ("blosc-zstd-shuffle", "blosc zstd shuffle", .97, None), ("transpose", "transposed", 1.5, None),
            ("transpose-zstd", "transposed, zstd", .97, None), ("big-endian", "big-endian", 1.15, 1.15), ("crc32c", "crc32c", .97, None),
            ("float32", "float32, zstd", .97, None), ("v2-raw", "version 2, raw", .97, None),
            ("v2-zlib", "version 2, zlib", 1.5, None)):
        yield Case(f"read/{name}", f"read all, {title}", "read", name, floor=floor, best=best, is_quick=name in ("gzip", "transpose"))
    for name, title, best in (
            ("raw", "raw", .97), ("zstd", "zstd", .97), ("shard", "shards", .97), ("noisy", "shards of noise", .97), ("gzip", "gzip", 2.5),
            ("shuffle", "shuffle and zstd", .97), ("blosc-lz4-shuffle", "blosc lz4 shuffle", .97), ("transpose", "transposed", .97),
            ("big-endian", "big-endian", .97), ("float32", "float32, zstd", .97)):
        yield Case(f"write/{name}", f"write all, {title}", "write", name, best=best, is_quick=name == "shard")


def small_chunks():
    yield Case("read/files", "read 10^5 files of 4 KiB", "read", "files", floor=1.2, best=1.7)
    yield Case("write/files", "write 10^5 files of 4 KiB", "write", "files")
    for name in ("zstd", "blosc", "raw"):
        yield Case(f"read/inner-{name}", f"read 8192 chunks of 4 KiB in a shard, {name}", "read", f"inner-{name}", floor=1.2, best=2,
                   is_quick=name == "zstd")
    yield Case("read-warm/inner-raw", "read them into used memory, raw", "read", "inner-raw", {"out": "warm", "repeats": 5}, 1.2, 2)
    for name in ("zstd", "raw"):
        yield Case(f"write/inner-{name}", f"write 8192 chunks of 4 KiB in a shard, {name}", "write", f"inner-{name}")
    for name, title in (("1k", "1 KiB"), ("16k", "16 KiB"), ("256k", "256 KiB"), ("4m", "4 MiB")):
        yield Case(f"scale/{name}", f"read chunks of {title} in shards, raw, used memory", "read", f"scale-{name}", {"out": "warm", "repeats": 2})


def parts():
    yield Case("append", "append 500 times 10 rows", "append", "append", {"n": 500})
    yield Case("points", "10^5 random points", "points", "shard", {"n": 100_000, "repeats": 2}, best=1.0)
    yield Case("crops", "500 random boxes of 32^3", "crops", "shard", {"n": 500, "region": "32,32,32", "repeats": 2}, best=1.0)
    for axis in range(3):
        yield Case(f"planes/{axis}", f"8 planes across dimension {axis}", "planes", "shard", {"n": 8, "axis": axis, "repeats": 2}, best=1.0)
    yield Case("strings", "10^7 texts", "strings", "strings", best=1.0)


def handles():
    for name, title in (("raw", "raw"), ("shard", "shards")):
        yield Case(f"open/{name}", f"open an array, {title}", "open", name, {"n": 300, "repeats": 3}, best=1.4, each="n", is_quick=True)
    yield Case("tree/open", "open each of 10^4 arrays", "nodes", "tree", {"n": 10_000}, best=1.3, each="n")
    yield Case("tree/list", "list a group of 10^4 arrays", "list", "tree", best=2)


def storage():
    for name, best in (("raw", 1.5), ("zstd", .97), ("shard", 1.5)):
        yield Case(f"cold/{name}", f"read all from the disk, {NAMES[name]}", "read", name, floor=1.25, best=best, is_cold=True)
    yield Case("delay", "512 requests of 30 ms", "read", "cubes", {"delay": 30}, floor=1.2, best=2)


def cases():
    return [*cubes(), *codecs(), *small_chunks(), *parts(), *handles(), *storage()]
