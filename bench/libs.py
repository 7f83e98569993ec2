"""libs - one class a library, each with the same four methods, as its users would write
them. `threads` 0: the library's own defaults."""
import ctypes
import os
from ctypes import POINTER, byref, c_char_p, c_int32, c_int64, c_uint32, c_uint64, c_void_p

import numpy as np

ZSTD = {"name": "zstd", "configuration": {"level": 0, "checksum": False}}


def make(name, threads):
    return {"zarrc": Zarrc, "tensorstore": TensorStore, "zarr-python": ZarrPython,
            "zarrs": ZarrsPython}[name](threads)


# ---- zarrc -----------------------------------------------------------------------------------

class Struct(ctypes.Structure):
    def __init__(self, **members):
        super().__init__(**members)
        self.struct_size = ctypes.sizeof(self)


class Error(ctypes.Structure):
    _fields_ = [("code", c_int32), ("os_code", c_int32), ("os_domain", c_uint32),
                ("operation", c_uint32), ("item", c_uint64), ("part", ctypes.c_uint16 * 8), ("message", ctypes.c_char * 488)]


class Tensor(Struct):
    _fields_ = [("struct_size", c_uint32), ("device_type", c_int32), ("device_id", c_int32),
                ("ndim", c_int32), ("data", c_void_p), ("dtype", c_void_p),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64), ("data_bytes", c_uint64), ("byte_order", c_uint32),
                ("flags", c_uint32)]


class ContextOptions(Struct):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("allocator", c_void_p),
                ("limits", c_void_p), ("log", c_void_p), ("log_user", c_void_p),
                ("log_level", c_uint32), ("n_threads", c_uint32), ("memory_bytes", c_uint64),
                ("wave_bytes", c_uint64), ("pipeline", c_char_p), ("codec_preference", c_char_p)]


class StoreOptions(Struct):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("durability", c_uint32),
                ("locking", c_uint32), ("symlinks", c_uint32), ("reserved", c_uint32),
                ("device_type", c_int32), ("device_id", c_int32), ("kind", c_char_p)]


class ArraySpec(Struct):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("zarr_format", c_int32),
                ("ndim", c_int32), ("shape", POINTER(c_uint64)), ("chunk_shape", POINTER(c_uint64)),
                ("shard_shape", POINTER(c_uint64)), ("data_type", c_char_p),
                ("fill_value", c_char_p), ("codecs", c_char_p), ("index_codecs", c_char_p),
                ("attributes", c_char_p), ("dimension_names", c_void_p), ("key_encoding", c_char_p),
                ("separator", ctypes.c_char), ("order", ctypes.c_char), ("reserved", ctypes.c_uint16),
                ("reserved2", c_uint32), ("document", c_char_p)]


class Stats(Struct):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32)] + [(name, c_uint64) for name in """
        chunks_total chunks_done chunks_missing chunks_direct chunks_partial chunks_fallback
        elements bytes_stored bytes_decoded store_gets store_puts store_erases store_ranges
        index_reads index_hits copies_host bytes_host copies_up bytes_up copies_down bytes_down
        copies_device bytes_device copies_decoded_host waves read_modify_writes wall_ns""".split()]

    def __repr__(self):
        return " ".join(f"{n}={getattr(self, n)}" for n, _ in self._fields_[2:] if getattr(self, n))


class IoOptions(Struct):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("max_threads", c_uint32),
                ("missing_chunks", c_uint32), ("wave_bytes", c_uint64), ("stream", c_void_p),
                ("stats", POINTER(Stats)), ("pipeline", c_char_p), ("progress", c_void_p),
                ("progress_user", c_void_p), ("empty_chunks", c_uint32), ("reserved", c_uint32)]


def u64s(values):
    return (c_uint64 * len(values))(*values)


class Zarrc:
    """libzarrc through ctypes, as a binding would call it: memory by np.empty."""
    name = "zarrc"
    CREATE, NO_FSYNC = 2, 1

    def __init__(self, threads):
        self.lib = ctypes.CDLL(os.environ["ZARRC_LIBRARY"])
        self.lib.zarr_version.restype = c_char_p
        self.lib.zarr_array_shape.restype = POINTER(c_uint64)
        for name in ("array_free", "store_free", "selection_free"):
            getattr(self.lib, "zarr_" + name).restype = None
        self.stats = Stats()
        self.options = IoOptions(stats=ctypes.pointer(self.stats))
        self.context = c_void_p()
        self.call("context_create", byref(self.context), byref(ContextOptions(n_threads=threads)))

    def call(self, name, *arguments):
        error = Error()
        if getattr(self.lib, "zarr_" + name)(*arguments, byref(error)):
            raise RuntimeError(f"{name}: {error.message.decode()}")

    def version(self):
        zstd = ctypes.CDLL("libzstd.so.1").ZSTD_versionString
        zstd.restype = c_char_p
        return f"{self.lib.zarr_version().decode()}, zstd {zstd().decode()} of the system"

    def store(self, path):
        out = c_void_p()
        self.call("store_open", byref(out), self.context, os.fsencode(path),
                  byref(StoreOptions(flags=self.CREATE, durability=self.NO_FSYNC)))
        return out

    def open(self, path):
        store, out = self.store(path), c_void_p()
        self.call("array_open", byref(out), store, b"", None)
        self.lib.zarr_store_free(store)
        return Handle(self, out)

    def tensor(self, data):
        return Tensor(device_type=1, ndim=data.ndim, data=data.ctypes.data,
                      shape=(c_int64 * data.ndim)(*data.shape), data_bytes=data.nbytes)

    def read_all(self, path):
        handle = self.open(path)
        data = np.empty(self.lib.zarr_array_shape(handle.array)[:3], np.uint16)
        self.call("array_read", handle.array, None, byref(self.tensor(data)), byref(self.options))
        return data

    def read_box(self, handle, origin, edge):
        data, selection = np.empty((edge,) * 3, np.uint16), c_void_p()
        self.call("selection_box", byref(selection), 3, self.lib.zarr_array_shape(handle.array),
                  u64s(origin), u64s((edge,) * 3))
        self.call("array_read", handle.array, selection, byref(self.tensor(data)),
                  byref(self.options))
        self.lib.zarr_selection_free(selection)
        return data

    def write(self, path, data, kind):
        spec = ArraySpec(ndim=3, shape=u64s(data.shape), data_type=b"uint16", fill_value=b"0",
                         chunk_shape=u64s((64,) * 3 if kind == "shard" else (256,) * 3))
        spec.codecs = b"[]" if kind == "raw" else \
            b'[{"name":"zstd","configuration":{"level":0,"checksum":false}}]'
        if kind == "shard":
            spec.shard_shape = u64s((256,) * 3)
        store, out = self.store(path), c_void_p()
        self.call("array_create", byref(out), store, b"", byref(spec), None)
        self.call("array_write", out, None, byref(self.tensor(data)), byref(self.options))
        self.lib.zarr_array_free(out)
        self.lib.zarr_store_free(store)


class Handle:
    def __init__(self, owner, array):
        self.owner, self.array = owner, array

    def __del__(self):
        self.owner.lib.zarr_array_free(self.array)


# ---- TensorStore --------------------------------------------------------------------------------

class TensorStore:
    name = "tensorstore"

    def __init__(self, threads):
        import tensorstore
        self.ts = tensorstore
        context = {"file_io_sync": False}  # the others don't fsync
        if threads:
            context.update({"data_copy_concurrency": {"limit": threads},
                            "file_io_concurrency": {"limit": threads}})
        self.context = tensorstore.Context(context)

    def version(self):
        from importlib.metadata import version
        return f"{version('tensorstore')}, its own zstd"

    def spec(self, path):
        return {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path)}}

    def open(self, path):
        return self.ts.open(self.spec(path), context=self.context, open=True).result()

    def read_all(self, path):
        return self.open(path).read().result()

    def read_box(self, handle, origin, edge):
        return handle[tuple(slice(o, o + edge) for o in origin)].read().result()

    def write(self, path, data, kind):
        leaf = [{"name": "bytes", "configuration": {"endian": "little"}}]
        if kind != "raw":
            leaf.append({"name": "zstd", "configuration": {"level": 0}})
        if kind == "shard":
            leaf = [{"name": "sharding_indexed", "configuration": {
                "chunk_shape": [64] * 3, "codecs": leaf, "index_codecs": [
                    {"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]}}]
        metadata = {"shape": list(data.shape), "data_type": "uint16", "fill_value": 0,
                    "codecs": leaf, "chunk_grid": {"name": "regular", "configuration": {
                        "chunk_shape": [256] * 3}}}
        array = self.ts.open({**self.spec(path), "metadata": metadata}, context=self.context,
                             create=True).result()
        array.write(data).result()


# ---- zarr-python ------------------------------------------------------------------------------------

class ZarrPython:
    name = "zarr-python"
    config = {}

    def __init__(self, threads):
        import zarr
        self.zarr = zarr
        self.settings = dict(self.config)
        if threads:
            self.settings["threading.max_workers"] = threads

    def version(self):
        import numcodecs.zstd as z
        from importlib.metadata import version
        return (f"{self.zarr.__version__}, numcodecs {version('numcodecs')}, zstd "
                f"{z.MAJOR_VERSION_NUMBER}.{z.MINOR_VERSION_NUMBER}.{z.MICRO_VERSION_NUMBER}")

    def open(self, path):
        with self.zarr.config.set(self.settings):
            return self.zarr.open_array(str(path), mode="r")

    def read_all(self, path):
        with self.zarr.config.set(self.settings):
            return self.zarr.open_array(str(path), mode="r")[...]

    def read_box(self, handle, origin, edge):
        with self.zarr.config.set(self.settings):
            return handle[tuple(slice(o, o + edge) for o in origin)]

    def write(self, path, data, kind):
        with self.zarr.config.set(self.settings):
            array = self.zarr.create_array(
                str(path), shape=data.shape, dtype=data.dtype, fill_value=0,
                chunks=(64,) * 3 if kind == "shard" else (256,) * 3,
                shards=(256,) * 3 if kind == "shard" else None,
                compressors=None if kind == "raw" else [ZSTD])
            array[...] = data


class ZarrsPython(ZarrPython):
    """zarr-python with the codec pipeline of the package zarrs."""
    name = "zarrs"
    config = {"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}

    def version(self):
        from importlib.metadata import version
        return f"{super().version()}, zarrs {version('zarrs')}"
