"""python_worker - the worker of the libraries that have Python's interface: see worker.h.

    python_worker.py LIBRARY MODE PLACE [key=value ...]

LIBRARY: tensorstore, zarr-python, zarr-fused, zarr-zarrs, netcdf or gdal."""
import asyncio
import json
import mmap
import os
import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

STEP, ROWS = 4099, 10


class ZarrPython:
    """zarr-python with its default pipeline, its fused one, or that of zarrs."""
    pipelines = {"zarr-fused": "zarr.core.codec_pipeline.FusedCodecPipeline", "zarr-zarrs": "zarrs.ZarrsCodecPipeline"}

    def __init__(self, name):
        import zarr
        self.zarr = zarr
        if name in self.pipelines:
            zarr.config.set({"codec_pipeline.path": self.pipelines[name]})

    def open(self, place, is_target=False):
        return self.zarr.open_array(place, mode="r+" if is_target else "r")

    def open_slow(self, place, delay):
        from zarr.storage import LocalStore, WrapperStore

        class Slow(WrapperStore):
            async def get(self, key, prototype, byte_range=None):
                await asyncio.sleep(delay)
                return await self._store.get(key, prototype, byte_range)

        return self.zarr.open_array(Slow(LocalStore(place, read_only=True)), mode="r")

    def unit(self, array):
        return array.shards or array.chunks

    def read(self, array, key):
        return array[key]

    def read_into(self, array, out):
        from zarr.core.buffer import default_buffer_prototype
        array.get_basic_selection(..., out=default_buffer_prototype().nd_buffer.from_numpy_array(out))

    def write(self, array, key, data):
        array[key] = data

    def append(self, array, data):
        array.append(data, 0)
        return array

    def points(self, array, points):
        return array.vindex[tuple(points.T)]

    def count(self, place):
        return len(list(self.zarr.open_group(place, mode="r").arrays()))

    def open_nodes(self, place, n):
        group = self.zarr.open_group(place, mode="r")
        return sum(group[f"a{i:05d}"].shape[0] for i in range(n))


class TensorStore:
    def __init__(self, _name):
        import tensorstore
        self.ts = tensorstore
        self.context = tensorstore.Context()

    def open(self, place, is_target=False, context=None):
        store = {"driver": "file", "path": place}
        if is_target:
            store["file_io_sync"] = False  # no other library waits for the disk
        driver = "zarr" if os.path.exists(place + "/.zarray") else "zarr3"
        return self.ts.open({"driver": driver, "kvstore": store}, context=context or self.context, open=True).result()

    def unit(self, array):
        return array.chunk_layout.write_chunk.shape

    def read(self, array, key):
        return array[key].read().result()

    def read_into(self, array, out):
        self.ts.array(out).write(array).result()

    def write(self, array, key, data):
        array[key].write(data).result()

    def append(self, array, data):
        rows = array.shape[0]
        array = array.resize(exclusive_max=[rows + len(data), *array.shape[1:]]).result()
        array[rows:].write(data).result()
        return array

    def points(self, array, points):
        return array.vindex[tuple(points.T)].read().result()

    def count(self, place):
        """It has no groups: the keys tell where arrays are. All are opened, as zarr-python and zarrs do."""
        keys = self.ts.KvStore.open(f"file://{place}/").result().list().result()
        names = {key.split(b"/")[0].decode() for key in keys if key.count(b"/") == 1}
        spec = {"driver": "zarr3"}
        opens = [self.ts.open({**spec, "kvstore": {"driver": "file", "path": f"{place}/{name}"}}, context=self.context, open=True)
                 for name in names]
        return len([each.result() for each in opens])

    def open_nodes(self, place, n):
        return sum(self.open(f"{place}/a{i:05d}").shape[0] for i in range(n))


class NetCDF:
    """netCDF-C's NCZarr: version 2 alone."""

    def __init__(self, _name):
        import netCDF4
        self.netcdf = netCDF4

    def open(self, place):
        group, _, name = place.rpartition("/")
        self.file = self.netcdf.Dataset(f"file://{group}#mode=zarr,file")
        self.file.set_auto_maskandscale(False)
        return self.file.variables[name]

    def read(self, array, key):
        return array[key]


class Gdal:
    def __init__(self, _name):
        from osgeo import gdal
        gdal.UseExceptions()
        self.gdal = gdal

    def open(self, place):
        group, _, name = place.rpartition("/")
        self.file = self.gdal.OpenEx(f'ZARR:"{group}"', self.gdal.OF_MULTIDIM_RASTER)
        return self.file.GetRootGroup().OpenMDArray(name)

    def read(self, array, key):
        assert key is ...
        return array.ReadAsArray()


LIBRARIES = {"tensorstore": TensorStore, "zarr-python": ZarrPython, "zarr-fused": ZarrPython, "zarr-zarrs": ZarrPython,
             "netcdf": NetCDF, "gdal": Gdal}


class Random:
    """The same numbers in every worker."""
    state = 1

    def __call__(self, below):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        return (self.state >> 33) % below


def words(data):
    data = np.asarray(data)
    return np.ascontiguousarray(data, data.dtype.newbyteorder("=")).reshape(-1).view(np.uint64)


def full_sum(data):
    all_words = words(data)
    some = all_words[::STEP]
    placed = some * np.arange(1, len(some) + 1, dtype=np.uint64)
    return (int(all_words.sum()) + int(placed.sum())) % 2**64


def sparse_sum(data):
    return int(words(data)[::STEP].sum())


def touch(n):
    """Makes the host of a virtual machine give its memory before the clock runs."""
    if n:
        block = mmap.mmap(-1, n, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        block.madvise(mmap.MADV_HUGEPAGE)
        np.frombuffer(block, np.uint8)[::4096] = 1


def peak_kb():
    with open("/proc/self/status", encoding="ascii") as file:
        return next((int(line.split()[1]) for line in file if line.startswith("VmHWM")), 0)


def reset_peak():
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
    except OSError:
        pass


class Worker:
    def __init__(self, library, mode, place, keys):
        self.lib, self.mode, self.place, self.keys = library, mode, place, keys
        self.array = self.target = self.whole = self.source = None
        if self.text("warmup"):
            self.lib.read(self.lib.open(self.text("warmup")), ...)

    def text(self, key):
        return self.keys.get(key, "")

    def number(self, key, default=0):
        return int(self.keys.get(key, default))

    def numbers(self, key):
        return [int(n) for n in self.text(key).split(",") if n]

    def before(self):
        if self.number("delay"):
            self.array = self.lib.open_slow(self.place, self.number("delay") / 1000)
        elif self.mode not in ("open", "list", "nodes", "append"):
            self.array = self.lib.open(self.place)
        if self.text("to"):
            self.target = self.lib.open(self.text("to"), True)
        if self.mode == "read" and self.text("out") == "warm" and self.whole is None:
            name = getattr(self.array.dtype, "name", self.array.dtype)
            self.whole = np.ones(tuple(self.array.shape), name)
        if self.mode == "write" and self.source is None:
            self.source = np.asarray(self.lib.read(self.array, ...))
        if self.mode == "points":
            random = Random()
            shape = self.array.shape
            self.at = np.array([[random(n) for n in shape] for _ in range(self.number("n", 1))], np.int64)

    def run(self):
        """Returns (what the timed part took, the checksum)."""
        began = time.perf_counter()
        result = getattr(self, "run_" + self.mode)()
        took = time.perf_counter() - began
        return took, full_sum(result) if isinstance(result, np.ndarray) else result

    def run_read(self):
        if self.text("out") == "warm":
            self.lib.read_into(self.array, self.whole)
            return self.whole
        return np.asarray(self.lib.read(self.array, ...))

    def run_write(self):
        self.lib.write(self.target, ..., self.source)
        return 0

    def units(self):
        edges = self.numbers("region") or self.lib.unit(self.array)
        for place in np.ndindex(*[n // edge for n, edge in zip(self.array.shape, edges)]):
            yield tuple(slice(i * edge, (i + 1) * edge) for i, edge in zip(place, edges))

    def unit(self, key):
        data = self.lib.read(self.array, key)
        if self.target is not None:
            self.lib.write(self.target, key, data)
        return sparse_sum(data)

    def run_units(self):
        callers = self.number("callers", 1)
        if callers == 1:
            return sum(self.unit(key) for key in self.units()) % 2**64
        with ThreadPoolExecutor(callers) as pool:
            return sum(pool.map(self.unit, self.units())) % 2**64

    run_round = run_units

    def parts(self, extent):
        random, total = Random(), 0
        for _ in range(self.number("n", 1)):
            key = tuple(slice(at, at + edge) for n, edge in zip(self.array.shape, extent)
                        for at in [random(n - edge + 1) if n > edge else 0])
            total += sparse_sum(self.lib.read(self.array, key))
        return total % 2**64

    def run_crops(self):
        return self.parts(self.numbers("region"))

    def run_planes(self):
        return self.parts([1 if d == self.number("axis") else n for d, n in enumerate(self.array.shape)])

    def run_points(self):
        return np.asarray(self.lib.points(self.array, self.at))

    def run_append(self):
        row = self.target.shape[1]
        for i in range(self.number("n", 1)):
            first = i * ROWS * row
            slab = (np.arange(first, first + ROWS * row) // 8).astype(np.float32).reshape(ROWS, row)
            self.target = self.lib.append(self.target, slab)
        return 0

    def run_strings(self):
        self.texts = self.lib.read(self.array, ...)
        return None  # the sum of their bytes is made after the clock stopped

    def run_open(self):
        return sum(self.lib.open(self.place).shape[0] for _ in range(self.number("n", 1)))

    def run_list(self):
        return self.lib.count(self.place)

    def run_nodes(self):
        return self.lib.open_nodes(self.place, self.number("n", 1))


def count_bytes(texts):
    return sum(len(text if isinstance(text, bytes) else text.encode()) for text in texts.tolist())


def main(argv):
    name, mode, place, *rest = argv
    worker = Worker(LIBRARIES[name](name), mode, place, dict(word.split("=", 1) for word in rest))
    repeats, seconds = worker.number("repeats", 1), []
    for i in range(repeats + (repeats > 1)):  # the first of several is not counted
        worker.before()
        touch(worker.number("touch"))
        reset_peak()
        before = resource.getrusage(resource.RUSAGE_SELF)
        took, total = worker.run()
        after = resource.getrusage(resource.RUSAGE_SELF)
        peak = peak_kb()
        if i or repeats == 1:
            seconds.append(took)
    if mode == "strings":
        total = count_bytes(worker.texts)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps({"seconds": seconds, "sum": total, "cpu": round(cpu, 4), "faults": after.ru_minflt - before.ru_minflt,
                      "peak_kb": peak}))


if __name__ == "__main__":
    main(sys.argv[1:])
