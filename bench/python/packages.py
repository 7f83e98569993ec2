"""packages - one class a library, as its users would call it. Each opens, reads, writes and creates the
arrays of cases.py."""
import os
import shutil
import subprocess

import numpy as np

NAMES = ("zarrc", "zarr+zarrc", "zarr+zarrs", "tensorstore", "zarrista", "zarr", "zarr-fused", "c")


def make(name, program=None):
    return {"zarrc": Zarrc, "tensorstore": TensorStore, "zarrista": Zarrista, "c": lambda: C(program)}.get(name, lambda: ZarrPython(name))()


def metadata(case):
    """What zarr.json says of a case, for libraries that take it as it is."""
    codecs = [{"name": "bytes", "configuration": {"endian": "little"}}, *(case.compressors or ())]
    if case.shards:
        codecs = [{"name": "sharding_indexed", "configuration": {
            "chunk_shape": list(case.chunks), "codecs": codecs,
            "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]}}]
    return {"shape": list(case.shape), "data_type": np.dtype(case.dtype).name, "fill_value": 0, "codecs": codecs,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(case.shards or case.chunks)}}}


class Library:
    """What a library may lack: a store in memory, and others' writes."""
    stores = ("local", "memory")
    can_write = True

    def remove(self, path):
        shutil.rmtree(path, ignore_errors=True)

    def write_box(self, array, key, data):
        array[key] = data

    def scan(self, array, keys):
        """Reads box after box, and gives the last one."""
        part = None
        for key in keys:
            part = self.read(array, key)
        return part


class Zarrc(Library):
    """Our own Array."""
    name = "zarrc"

    def __init__(self):
        import zarrc
        self.zarrc = zarrc
        zarrc.config.set({"durability": "none"})  # no other library waits for the disk

    def version(self):
        return self.zarrc.__version__

    def open(self, place):
        return self.zarrc.open_array(place, mode="r+")

    def create(self, place, case):
        return self.zarrc.create_array(place, shape=case.shape, chunks=case.chunks, shards=case.shards, dtype=case.dtype,
                                       fill_value=0, compressors=case.compressors, overwrite=True)

    def read(self, array, key):
        return array[key]

    def read_out(self, array, out):
        return array.read(out=out)

    def write(self, array, data):
        array[...] = data

    def memory(self):
        return self.zarrc.open_store("memory:")


class ZarrPython(Library):
    """zarr-python with one of four pipelines."""
    pipelines = {"zarr": "zarr.core.codec_pipeline.BatchedCodecPipeline", "zarr-fused": "zarr.core.codec_pipeline.FusedCodecPipeline",
                 "zarr+zarrs": "zarrs.ZarrsCodecPipeline", "zarr+zarrc": "zarrc.ZarrcCodecPipeline"}

    def __init__(self, name):
        import zarr
        self.zarr, self.name = zarr, name
        path = self.pipelines[name]
        package = path.split(".")[0]
        if package != "zarr":
            __import__(package)
        if name == "zarr+zarrs":
            self.stores = ("local",)  # it takes its own pipeline's fallback for others
        if name == "zarr+zarrc":
            import zarrc
            zarrc.config.set({"durability": "none"})
            zarrc.enable()
        self.settings = {"codec_pipeline.path": path, "async.concurrency": 10, "ndbuffer": "zarr.buffer.cpu.NDBuffer"}
        if name == "zarr+zarrc":
            self.settings["ndbuffer"] = "zarrc.ZarrcNDBuffer"  # as zarrc.enable() has it

    def version(self):
        from importlib.metadata import version
        own = version("zarrs") if self.name == "zarr+zarrs" else ""
        return f"{self.zarr.__version__} {own}".strip()

    def _within(self):
        return self.zarr.config.set(self.settings)

    def open(self, place):
        with self._within():
            return self.zarr.open_array(place, mode="r+")

    def create(self, place, case):
        with self._within():
            return self.zarr.create_array(place, shape=case.shape, chunks=case.chunks, shards=case.shards, dtype=case.dtype,
                                          fill_value=0, compressors=case.compressors, overwrite=True)

    def read(self, array, key):
        with self._within():
            return array[key]

    def read_out(self, array, out):
        from zarr.core.buffer import default_buffer_prototype
        with self._within():
            return array.get_basic_selection(..., out=default_buffer_prototype().nd_buffer.from_numpy_array(out))

    def write(self, array, data):
        with self._within():
            array[...] = data

    def memory(self):
        return self.zarr.storage.MemoryStore()


class TensorStore(Library):
    name = "tensorstore"

    def __init__(self):
        import tensorstore
        self.ts = tensorstore
        self.context = tensorstore.Context({"file_io_sync": False})

    def version(self):
        from importlib.metadata import version
        return version("tensorstore")

    def write_box(self, array, key, data):
        array[key].write(data).result()

    def _spec(self, place):
        if isinstance(place, str):
            return {"driver": "zarr3", "kvstore": {"driver": "file", "path": place}}
        return {"driver": "zarr3", "kvstore": place if isinstance(place, dict) else {"driver": "memory", "path": place[1]}}

    def open(self, place):
        return self.ts.open(self._spec(place), context=self.context, open=True).result()

    def create(self, place, case):
        return self.ts.open({**self._spec(place), "metadata": metadata(case)}, context=self.context, create=True,
                            delete_existing=True).result()

    def read(self, array, key):
        return array[key].read().result()

    def read_out(self, array, out):
        self.ts.array(out).write(array).result()
        return out

    def write(self, array, data):
        array.write(data).result()

    def memory(self):
        return ("memory", "x/")


class Zarrista(Library):
    """Rust's zarrs by bindings without zarr-python."""
    name = "zarrista"
    stores = ("local",)

    def __init__(self):
        import zarrista
        self.zarrista = zarrista

    def version(self):
        return self.zarrista.__version__

    def _store(self, place):
        return self.zarrista.store.FilesystemStore(place)

    def open(self, place):
        return self.zarrista.Array.open(self._store(place))

    def create(self, place, case):
        self.remove(place)
        os.makedirs(place)
        document = {"zarr_format": 3, "node_type": "array", **metadata(case), "attributes": {},
                    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}}
        array = self.zarrista.Array.from_metadata(document, self._store(place))
        array.store_metadata()
        return array

    def read(self, array, key):
        return np.asarray(array[key])

    def read_out(self, array, out):
        out[...] = array[...]
        return out

    def write(self, array, data):
        self.write_box(array, ..., data)

    def write_box(self, array, key, data):
        array[key] = np.ascontiguousarray(data)  # it refuses others


class C(Library):
    """The C library itself, through bench/micro/array_read.c: no Python takes part in what is timed."""
    name = "c"
    stores = ("local",)
    can_write = False

    def __init__(self, program):
        self.program = program

    def version(self):
        return "libzarrc"

    def seconds(self, path, edge, rounds, is_fresh, is_cpu):
        """Seconds of one read, the median of some."""
        told = subprocess.run([self.program, path, str(edge), str(rounds), str(int(is_fresh)), *(["cpu"] if is_cpu else [])], check=True,
                              capture_output=True, text=True, env={**os.environ, "ZARRC_DURABILITY": "none"})
        return float(told.stdout.split()[0])
