"""cases - what is measured. The layouts are those of the benchmarks of zarr-python
(tests/benchmarks) and of LDeakin/zarr_benchmarks, and chunks from small to large."""
import dataclasses
import math

import numpy as np

ZSTD = ({"name": "zstd", "configuration": {"level": 3, "checksum": False}},)
GZIP = ({"name": "gzip", "configuration": {"level": 5}},)
EVERY = (slice(None),) * 3
INDEXERS = {"point": (0, 0, 0), "all": EVERY, "every 4th": (slice(0, None, 4),) * 3, "first 10": (slice(10),) * 3,
            "inner, every 4th": (slice(10, 95, 4),) * 3, "thin": (slice(None), slice(0, 3, 2), slice(0, 10))}


@dataclasses.dataclass(frozen=True)
class Case:
    group: str
    name: str
    action: str  # "read", "out", "write", "scan" (box after box), "tiny", "tiny out" or "open"
    shape: tuple
    chunks: tuple
    shards: tuple = None
    compressors: tuple = ()
    dtype: str = "uint16"
    store: str = "local"
    key: tuple = ...
    box: int = 0  # the edge of boxes of a scan

    @property
    def nbytes(self):
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    @property
    def chunk_bytes(self):
        return math.prod(self.chunks) * np.dtype(self.dtype).itemsize

    @property
    def layout(self):
        """What two cases share that read the same array."""
        return self.shape, self.chunks, self.shards, str(self.compressors), self.dtype, self.store

    def data(self):
        """Elements that compress somewhat, and that differ everywhere."""
        n = np.arange(math.prod(self.shape), dtype=np.uint32)
        return (n + (n >> 9) * (n >> 9) // 32).astype(self.dtype).reshape(self.shape)

    def keys(self):
        """The boxes of a scan."""
        counts = [-(-n // self.box) for n in self.shape]
        return [tuple(slice(i * self.box, (i + 1) * self.box) for i in place) for place in np.ndindex(*counts)]


def zarr_python():
    """tests/benchmarks of zarr-python: end to end, and slices."""
    for store in ("memory", "local"):
        for codec, compressors in (("none", ()), ("gzip", GZIP)):
            for name, chunks, shards in (("1000 chunks", (1000,), None), ("100 shards of 100 chunks", (100,), (10_000,))):
                for action in ("read", "write"):
                    yield Case("zarr-python", f"{action} {name}, {codec}", action, (1_000_000,), chunks, shards, compressors,
                               "uint8", store)
    for shards in (None, (50, 50, 50)):
        for name, key in INDEXERS.items():
            yield Case("zarr-python", f"slice {name}" + (", sharded" if shards else ""), "read",
                       (105, 105, 105) if not shards else (150, 150, 150), (10, 10, 10), shards, (), "uint8", "memory", key)


def zarr_benchmarks(size):
    """LDeakin/zarr_benchmarks: a cube of uint16."""
    cube = (size,) * 3
    for name, chunks, shards, compressors in (("raw", (256,) * 3, None, ()), ("zstd", (256,) * 3, None, ZSTD),
                                              ("shard", (64,) * 3, (256,) * 3, ZSTD)):
        yield Case("zarr_benchmarks", f"read all {name}", "read", cube, chunks, shards, compressors)
        yield Case("zarr_benchmarks", f"chunk by chunk {name}", "scan", cube, chunks, shards, compressors, box=256)
        if shards:
            yield Case("zarr_benchmarks", f"64^3 sub-chunks {name}", "scan", cube, chunks, shards, compressors, box=64)
        yield Case("zarr_benchmarks", f"write {name}", "write", cube, chunks, shards, compressors)


def chunk_sizes(size):
    """Chunks from small to large."""
    yield Case("chunks", "read 10x10", "read", (1000, 1000), (10, 10), None, ZSTD, "int32")
    yield Case("chunks", "write 10x10", "write", (500, 500), (10, 10), None, ZSTD, "int32")
    for edge in (16, 32, 64, 128):
        cube = (min(size, 16 * edge),) * 3
        for action in ("read", "write"):
            yield Case("chunks", f"{action} {edge}^3 ({2 * edge ** 3 >> 10} KiB)", action, cube, (edge,) * 3, None, ZSTD)
    yield Case("chunks", "write 32^3 (64 KiB), raw", "write", (min(size, 512),) * 3, (32,) * 3, None, ())
    yield Case("chunks", "out= 64^3", "out", (size,) * 3, (64,) * 3, None, ZSTD)
    yield Case("chunks", "out= 64^3, raw", "out", (size,) * 3, (64,) * 3, None, ())


def tiny():
    """What a call costs: a chunk of 4^3 in one read, and opening."""
    shape = dict(shape=(64, 64, 64), chunks=(4, 4, 4), compressors=())
    yield Case("tiny", "read 4^3", "tiny", **shape, key=(slice(0, 4),) * 3)
    yield Case("tiny", "read 4^3 into out=", "tiny out", **shape, key=(slice(0, 4),) * 3)
    yield Case("tiny", "open and read 4^3", "open", **shape, key=(slice(0, 4),) * 3)


def every(size):
    return [*tiny(), *chunk_sizes(min(size, 512)), *zarr_python(), *zarr_benchmarks(size)]
