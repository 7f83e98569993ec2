#!/usr/bin/env python3
"""end_to_end - times whole reads from files into memory of a device, and whole writes from it: medians of five, after one that
warms up. Files are in a tmpfs. Beside it the same by the CPU and a copy, and by other packages where they are installed.

    end_to_end.py OUT.json [--plugin FILE] [--folder /dev/shm/...] [--gib 4] [--seconds 200] [--cases WORD,...] [--trace]

Every result is compared with what was written. With --trace each case runs once more under torch's profiler, and its row tells
what the GPU did. No case begins after --seconds.
"""
import argparse
import faulthandler
import json
import os
import shutil
import statistics
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/gpu"))
from gpu_trace import format_trace, trace_gpu  # noqa: E402
from library import KINDS, Failure, Library, Stats  # noqa: E402

LITTLE = '{"name":"bytes","configuration":{"endian":"little"}}'
CHAINS = {
    "raw": "[{0}]",
    "lz4": '[{0},{{"name":"numcodecs.lz4","configuration":{{"acceleration":1}}}}]',
    "shuffle-lz4": '[{0},{{"name":"numcodecs.shuffle","configuration":{{"elementsize":{1}}}}},'
                   '{{"name":"numcodecs.lz4","configuration":{{"acceleration":1}}}}]',
    "blosc-lz4": '[{0},{{"name":"blosc","configuration":{{"cname":"lz4","clevel":5,"shuffle":"shuffle","typesize":{1},'
                 '"blocksize":0}}}}]',
    "zstd": '[{0},{{"name":"zstd","configuration":{{"level":1,"checksum":false}}}}]',
    "zstd-3": '[{0},{{"name":"zstd","configuration":{{"level":3,"checksum":false}}}}]',
    "blosc-zstd": '[{0},{{"name":"blosc","configuration":{{"cname":"zstd","clevel":3,"shuffle":"shuffle","typesize":{1},'
                  '"blocksize":0}}}}]',
}
CPU_ONLY = b"lz4=cpu;blosc=cpu;zstd=cpu;shuffle=cpu"
DEEP = {"uint16": 128, "float32": 64}  # of a shard: 64 MiB
CHUNKS = {"uint16": {"128K": (16, 64, 64), "1M": (32, 128, 128), "8M": (64, 256, 256)},
          "float32": {"128K": (8, 64, 64), "1M": (16, 128, 128), "8M": (32, 256, 256)}}
RATIO = 1.75  # that the noise is chosen for; 1.5 to 2 are found
# The most wanted first.
CASES = [("1M", "blosc-lz4 lz4 zstd zstd-3 blosc-zstd raw", "uint16"), ("1M", "blosc-lz4 lz4 zstd", "float32"),
         ("128K", "blosc-lz4 lz4 zstd zstd-3 blosc-zstd", "uint16"),
         ("8M", "blosc-lz4 lz4 zstd", "uint16"), ("128K", "blosc-lz4 lz4 zstd", "float32"), ("8M", "blosc-lz4 lz4 zstd", "float32"),
         ("1M", "shuffle-lz4", "uint16 float32"), ("128K", "raw", "uint16"), ("8M", "raw", "uint16")]
REPEATS = 5
GIB = 1 << 30


def field(dtype, noise, deep, flat, seed=1):
    """Smooth hills with noise; floats have six bits after the point, as an instrument gives them."""
    if deep % 4 == 0 and deep > 32:  # four times the same, farther apart than codecs look
        return np.tile(field(dtype, noise, deep // 4, flat, seed), (4, 1, 1))
    random = np.random.default_rng(seed)
    z, y, x = (np.arange(n, dtype=np.float32) for n in (deep, flat, flat))
    hill = (np.sin(z / 31)[:, None, None] + np.sin(y / 97)[None, :, None] + np.sin(x / 211)[None, None, :])
    bell = random.random(hill.shape, np.float32) + random.random(hill.shape, np.float32) - 1
    if dtype == "uint16":
        return (9000 + 1500 * hill + 2 * noise * bell).astype(np.uint16)
    return (280 + np.floor(64 * (20 * hill + noise * bell)) / 64).astype(np.float32)


class Bench:
    def __init__(self, options):
        self.options, self.rows, self.start = options, [], time.monotonic()
        self.library = Library(plugin=options.plugin)
        self.noises, self.blocks = {}, {}
        self.up_rate = 0  # GB/s of a copy from pinned memory

    def block(self, kind, n_bytes):
        """Memory that cases use one after the other."""
        kind = "host" if kind == "pinned" and self.options.kind != "device" else kind
        if kind not in self.blocks:
            self.blocks[kind] = self.library.memory(kind, n_bytes)
        return self.blocks[kind]

    def seconds_left(self):
        return self.options.seconds - (time.monotonic() - self.start)

    def row(self, name, n_bytes, seconds, **more):
        row = {"name": name, "gib": round(n_bytes / GIB, 3), "seconds": [round(s, 5) for s in sorted(seconds)],
               "gib_s": round(n_bytes / GIB / statistics.median(seconds), 3), **more}
        self.rows.append(row)
        print(f"{name:46} {row['gib_s']:8.2f} GiB/s  " + " ".join(f"{k}={v}" for k, v in more.items() if k not in ("stats", "trace")),
              *format_trace(more.get("trace")), sep="\n", flush=True)
        self.save()

    def note_failure(self, name, why):
        self.rows.append({"name": name, "failed": str(why)})
        print(f"{name:46} failed: {why}", flush=True)
        self.save()

    def save(self):
        Path(self.options.out).write_text(json.dumps({"gib": self.options.gib, "kind": self.options.kind, "cores": os.cpu_count(),
                                                      "rows": self.rows}, indent=1) + "\n")

    def is_wanted(self, name):
        words = self.options.cases.split(",") if self.options.cases else []
        return self.seconds_left() > 0 and (not words or any(word in name for word in words))

    # ---- stores ----

    def ratio(self, codec, dtype, noise):
        values = field(dtype, noise, CHUNKS[dtype]["1M"][0], 256)
        path, stats = Path(self.options.folder) / "sample", Stats()
        array = self.library.create(path, values.shape, dtype, CHUNKS[dtype]["1M"], self.chain(codec, dtype))
        memory = self.library.memory("host", values.nbytes)
        memory.put(values)
        array.write(memory, values.shape, stats=stats)
        array.close()
        shutil.rmtree(path)
        return values.nbytes / stats.bytes_stored

    def noise(self, codec, dtype):
        """With which the codec has the ratio."""
        key = codec, dtype
        if codec == "raw":
            return 20
        if key not in self.noises:
            low, high = .01, 1e4
            for _ in range(14):
                middle = (low * high) ** .5
                low, high = (middle, high) if self.ratio(codec, dtype, middle) > RATIO else (low, middle)
            self.noises[key] = low
        return self.noises[key]

    @staticmethod
    def chain(codec, dtype):
        return CHAINS[codec].format(LITTLE, np.dtype(dtype).itemsize)

    def shard(self, dtype):
        return DEEP[dtype], min(512, self.options.flat), min(512, self.options.flat)

    def shape(self, dtype):
        slab = DEEP[dtype] * self.options.flat ** 2 * np.dtype(dtype).itemsize
        return max(1, int(self.options.gib * GIB) // slab) * DEEP[dtype], self.options.flat, self.options.flat

    def store(self, path, codec, dtype, size, values):
        """Many slabs of the same elements: no codec sees more than a chunk."""
        shape, stored = self.shape(dtype), 0
        array = self.library.create(path, shape, dtype, CHUNKS[dtype][size], self.chain(codec, dtype), self.shard(dtype))
        memory = self.library.memory("host", values.nbytes)
        memory.put(values)
        for z in range(0, shape[0], DEEP[dtype]):
            stats = Stats()
            array.write(memory, values.shape, selection=f"{z}:{z + DEEP[dtype]}", stats=stats)
            stored += stats.bytes_stored
        array.close()
        return stored

    # ---- cases ----

    def time_runs(self, what, repeats=REPEATS):
        seconds = []
        for i in range(1 + repeats):
            start = time.perf_counter()
            what()
            seconds.append(time.perf_counter() - start)
            if self.seconds_left() < 0 and i > 0:
                break
        return seconds[1:]

    def trace(self, what):
        """Of one more call, or None."""
        if not self.options.trace:
            return None
        try:
            return trace_gpu(what)
        except ImportError as why:
            self.note_failure("trace", why)
        return None

    def equal(self, memory, values):
        """The first and the last slab of memory."""
        want = values.view(np.uint8).reshape(-1)
        return all(np.array_equal(memory.get(values.nbytes, offset), want) for offset in {0, memory.n_bytes - values.nbytes})

    def reads(self, name, path, dtype, values, stored):
        shape = self.shape(dtype)
        n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        memory, stats = self.block(self.options.kind, n_bytes), Stats()
        array = self.library.open(path)
        ways = {"": {}, ", CPU codecs": {"codec_preference": CPU_ONLY}}
        if self.options.prefer:
            ways[f", {self.options.prefer}"] = {"codec_preference": self.options.prefer.encode()}
        try:
            for way, more in ways.items():
                if way == ", CPU codecs" and "1M" not in name and not self.options.prefer:
                    continue
                for offset in (0, n_bytes - values.nbytes):
                    memory.put(np.zeros_like(values), offset)
                try:
                    def read(more=more):
                        array.read(memory, shape, stats=stats, **more)
                    seconds, trace = self.time_runs(read, 3 if way == ", CPU codecs" else REPEATS), None if way else self.trace(read)
                except Failure as why:
                    self.note_failure(name + way, why)
                    continue
                self.row(name + way, n_bytes, seconds, ratio=round(n_bytes / stored, 3), equal=self.equal(memory, values),
                         up_gb_s=round(stored / 1e9 / statistics.median(seconds), 2),
                         of_bus=round(stored / 1e9 / statistics.median(seconds) / self.up_rate, 3), fallback=stats.chunks_fallback,
                         decoded_host=stats.copies_decoded_host, stats=stats.nonzero_counters(), trace=trace)
            if "1M" in name or self.options.prefer:
                self.by_cpu(name, array, shape, n_bytes, memory)
        finally:
            array.close()

    def by_cpu(self, name, array, shape, n_bytes, memory):
        """The CPU decodes everything into pinned memory, which is then copied."""
        pinned = self.block("pinned", n_bytes)

        def both():
            array.read(pinned, shape, codec_preference=CPU_ONLY)
            self.library.copy(memory, pinned, n_bytes)
        try:
            self.row(name + ", CPU, then a copy", n_bytes, self.time_runs(both, 3))
            self.row(name + ", CPU, no copy", n_bytes, self.time_runs(lambda: array.read(pinned, shape, codec_preference=CPU_ONLY), 3))
        except Failure as why:
            self.note_failure(name + ", CPU, then a copy", why)

    def others(self, name, path, n_bytes):
        for package, how in {"tensorstore": tensorstore_read, "zarr-python": zarr_read}.items():
            try:
                read = how(path)
                self.row(f"{name}, {package}", n_bytes, self.time_runs(read, 2 if package == "tensorstore" else 1))
            except ImportError as why:
                self.note_failure(f"{name}, {package}", f"not installed: {why}")
            except Exception as why:  # of another library
                self.note_failure(f"{name}, {package}", f"{type(why).__name__}: {why}"[:300])

    def write(self, codec, dtype, size, values):
        """From the device into new files."""
        name = f"write {codec} {dtype} {size}"
        if not self.is_wanted(name):
            return
        shape, path = self.shape(dtype), Path(self.options.folder) / "written"
        n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        memory, stats = self.block(self.options.kind, n_bytes), Stats()
        for offset in range(0, n_bytes, values.nbytes):
            memory.put(values, offset)
        seconds = []
        try:
            for _ in range(4):
                array = self.library.create(path, shape, dtype, CHUNKS[dtype][size], self.chain(codec, dtype), self.shard(dtype))
                start = time.perf_counter()
                array.write(memory, shape, stats=stats)
                seconds.append(time.perf_counter() - start)
                back = self.library.memory("host", values.nbytes)
                array.read(back, values.shape, selection=f"0:{DEEP[dtype]}")
                equal = np.array_equal(back.get(), values.view(np.uint8).reshape(-1))
                array.close()
                shutil.rmtree(path)
            array = self.library.create(path, shape, dtype, CHUNKS[dtype][size], self.chain(codec, dtype), self.shard(dtype))
            trace = self.trace(lambda: array.write(memory, shape))
            array.close()
            self.row(name, n_bytes, seconds[1:], ratio=round(n_bytes / stats.bytes_stored, 3), equal=bool(equal),
                     fallback=stats.chunks_fallback, decoded_host=stats.copies_decoded_host, stats=stats.nonzero_counters(), trace=trace)
        except Failure as why:
            self.note_failure(name, why)
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def case(self, codec, dtype, size):
        name = f"{codec} {dtype} {size}"
        writes = size == "1M" and dtype == "uint16" and self.is_wanted(f"write {name}") and not self.options.prefer
        if not writes and not self.is_wanted(name):
            return
        values = field(dtype, self.noise(codec, dtype), DEEP[dtype], self.options.flat)
        if self.is_wanted(name):
            self.read_case(name, codec, dtype, size, values)
        if writes:
            self.write(codec, dtype, size, values)

    def read_case(self, name, codec, dtype, size, values):
        path = Path(self.options.folder) / "read"
        try:
            stored = self.store(path, codec, dtype, size, values)
            self.reads(name, path, dtype, values, stored)
            if size == "1M" and codec in ("blosc-lz4", "zstd") and dtype == "uint16" and not self.options.prefer and self.seconds_left() > 0:
                self.others(name, path, int(np.prod(self.shape(dtype))) * np.dtype(dtype).itemsize)
        except Failure as why:
            self.note_failure(name, why)
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def copies(self):
        """What the bus gives for a copy from pinned memory."""
        n_bytes = int(np.prod(self.shape("uint16"))) * 2
        device, pinned = self.block(self.options.kind, n_bytes), self.block("pinned", n_bytes)
        up = self.time_runs(lambda: self.library.copy(device, pinned, n_bytes))
        self.up_rate = n_bytes / 1e9 / statistics.median(up)
        self.row("copy up, pinned", n_bytes, up)
        self.row("copy down, pinned", n_bytes, self.time_runs(lambda: self.library.copy(pinned, device, n_bytes)))

    def run(self):
        self.copies()
        for size, codecs, dtypes in CASES:
            for dtype in dtypes.split():
                for codec in codecs.split():
                    self.case(codec, dtype, size)
        for block in self.blocks.values():
            block.free()
        self.library.close()
        print("the library's context is free", flush=True)  # to tell where a process ended that fails later


def tensorstore_read(path):
    import tensorstore
    import torch
    opened = tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path)}}, open=True).result()

    def read():
        torch.from_numpy(opened.read().result()).cuda()
        torch.cuda.synchronize()
    return read


def zarr_read(path):
    import cupy
    import zarr
    zarr.config.enable_gpu()
    array = zarr.open_array(path, mode="r")

    def read():
        array[...]
        cupy.cuda.Device().synchronize()
    return read


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--plugin")
    parser.add_argument("--kind", default="device", choices=list(KINDS))
    parser.add_argument("--folder", default="/dev/shm/zarrc-bench")
    parser.add_argument("--gib", type=float, default=4)
    parser.add_argument("--flat", type=int, default=1024, help="elements along two dimensions, a multiple of 256")
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--cases", default="", help="words of the names of cases; default: all")
    parser.add_argument("--prefer", default="", metavar="TEXT", help="a codec preference with which reads are timed, too, beside the CPU alone")
    parser.add_argument("--trace", action="store_true", help="tell what the GPU did, by torch's profiler")
    options = parser.parse_args()
    faulthandler.enable()  # other packages are in this process, too
    Path(options.folder).mkdir(parents=True, exist_ok=True)
    bench = Bench(options)
    try:
        bench.run()
    finally:
        shutil.rmtree(options.folder, ignore_errors=True)
    return any(row.get("equal") is False for row in bench.rows)


sys.exit(main())
