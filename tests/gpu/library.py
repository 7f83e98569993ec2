"""library - libzarrc with a plug-in for a device through ctypes, with memory of every kind. It needs NumPy alone, because it
runs on machines that have nothing else of ours."""
import ctypes
import os
from ctypes import POINTER, byref, c_char, c_char_p, c_int32, c_int64, c_uint16, c_uint32, c_uint64, c_void_p

import numpy as np

KINDS = {"host": 1, "device": 2, "pinned": 3, "managed": 13}
STATUS = {-1: "NOT_FOUND", -3: "INVALID", -4: "UNSUPPORTED", -5: "CORRUPT", -6: "IO", -7: "NO_MEMORY", -8: "LIMIT", -9: "DEVICE",
          -12: "INTERNAL", -14: "MEMORY_KIND", -15: "DENIED"}


class Failure(Exception):
    def __init__(self, code, message):
        super().__init__(f"{STATUS.get(code, code)}: {message}")
        self.code = STATUS.get(code, str(code))


class SizedStruct(ctypes.Structure):
    """A struct that begins with its size."""

    def __init__(self, **members):
        super().__init__(**members)
        self.struct_size = ctypes.sizeof(self)


class Error(ctypes.Structure):
    _fields_ = [("code", c_int32), ("os_code", c_int32), ("os_domain", c_uint32), ("operation", c_uint32), ("item", c_uint64),
                ("part", c_uint16 * 10), ("message", c_char * 484)]


class Mem(ctypes.Structure):
    _fields_ = [("device_type", c_int32), ("device_id", c_int32), ("handle", c_void_p), ("offset", c_uint64), ("bytes", c_uint64)]


class Tensor(SizedStruct):
    _fields_ = [("struct_size", c_uint32), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32), ("data", c_void_p),
                ("dtype", c_void_p), ("shape", POINTER(c_uint64)), ("strides", POINTER(c_int64)), ("byte_offset", c_uint64),
                ("data_bytes", c_uint64), ("byte_order", c_uint32), ("flags", c_uint32)]


class ContextOptions(SizedStruct):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("allocator", c_void_p), ("limits", c_void_p), ("log", c_void_p),
                ("log_user", c_void_p), ("log_level", c_uint32), ("max_threads", c_uint32), ("memory_bytes", c_uint64),
                ("wave_bytes", c_uint64), ("pipeline", c_char_p), ("codec_preference", c_char_p), ("plugins", POINTER(c_char_p)),
                ("device_bytes", c_uint64), ("pinned_bytes", c_uint64), ("plugin_options", c_char_p), ("allocators", c_char_p),
                ("device_type", c_int32), ("device_id", c_int32)]


class StoreOptions(SizedStruct):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("durability", c_uint32), ("locks", c_uint32),
                ("symlinks", c_uint32), ("reserved", c_uint32), ("device_type", c_int32), ("device_id", c_int32), ("kind", c_char_p)]
    CREATE, NO_FSYNC = 2, 1


class ArraySpec(SizedStruct):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("zarr_format", c_int32), ("ndim", c_int32),
                ("shape", POINTER(c_uint64)), ("chunk_shape", POINTER(c_uint64)), ("shard_shape", POINTER(c_uint64)),
                ("data_type", c_char_p), ("fill_value", c_char_p), ("codecs", c_char_p)]


class Stats(SizedStruct):
    COUNTERS = """chunks_total chunks_done chunks_missing chunks_direct chunks_partial chunks_fallback elements bytes_stored
        bytes_decoded store_gets store_puts store_erases store_ranges index_reads index_hits copies_host bytes_host copies_up
        bytes_up copies_down bytes_down copies_device bytes_device copies_decoded_host waves read_modify_writes wall_ns""".split()
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32)] + [(name, c_uint64) for name in COUNTERS]

    def nonzero_counters(self):
        return {name: getattr(self, name) for name in self.COUNTERS if getattr(self, name)}


class Tuning(SizedStruct):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("wave_bytes", c_uint64), ("memory_bytes", c_uint64),
                ("coalesce_gap", c_uint64), ("coalesce_bytes", c_uint64), ("pipeline", c_char_p), ("codec_preference", c_char_p)]


class IoOptions(SizedStruct):
    """Members of Tuning may be given, too."""
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("missing_chunks", c_uint32), ("empty_chunks", c_uint32),
                ("outside", c_uint32), ("trust", c_uint32), ("field", c_char_p), ("stats", POINTER(Stats)), ("heap", c_void_p),
                ("present", c_void_p), ("n_present", c_uint64), ("progress", c_void_p), ("progress_user", c_void_p),
                ("max_threads", c_uint32), ("reserved", c_uint32), ("cancel", c_void_p), ("stream", c_void_p),
                ("tuning", POINTER(Tuning))]

    def __init__(self, **members):
        own = {n: members.pop(n) for n, _ in Tuning._fields_[2:] if n in members}
        super().__init__(**members)
        if own:
            self.tuning = ctypes.pointer(Tuning(**own))


def numbers(kind, values):
    return (kind * max(1, len(values)))(*values)


class Library:
    """A context of the library. `plugin`: the file of one, or None."""

    def __init__(self, path=None, plugin=None, **options):
        self.lib = ctypes.CDLL(path or os.environ["ZARRC_LIBRARY"])
        self.lib.zarr_array_shape.restype = POINTER(c_uint64)
        self.lib.zarr_version.restype = c_char_p
        for name in ("memory_free", "array_free", "store_free", "selection_free", "context_free"):
            getattr(self.lib, "zarr_" + name).restype = None
        self.context = c_void_p()
        opts = ContextOptions(**options)
        if plugin:
            opts.plugins = (c_char_p * 2)(os.fsencode(plugin), None)
        self.call("context_create", byref(self.context), byref(opts))

    def call(self, name, *arguments):
        error = Error()
        code = getattr(self.lib, "zarr_" + name)(*arguments, byref(error))
        if code:
            raise Failure(code, error.message.decode(errors="replace"))

    def close(self):
        self.lib.zarr_context_free(self.context)

    def memory(self, kind, n_bytes):
        return Memory(self, kind, n_bytes)

    def copy(self, to, source, n_bytes):
        self.call("memory_copy", self.context, byref(to.mem), byref(source.mem), c_uint64(n_bytes))

    def store(self, path):
        out = c_void_p()
        self.call("store_open", byref(out), self.context, os.fsencode(path),
                  byref(StoreOptions(flags=StoreOptions.CREATE, durability=StoreOptions.NO_FSYNC)))
        return out

    def open(self, path):
        store, out = self.store(path), c_void_p()
        try:
            self.call("array_open", byref(out), store, b"", None)
        finally:
            self.lib.zarr_store_free(store)
        return Array(self, out)

    def create(self, path, shape, dtype, chunks, codecs, shards=None):
        """With v3's metadata; `codecs` as JSON text."""
        spec = ArraySpec(ndim=len(shape), shape=numbers(c_uint64, shape), chunk_shape=numbers(c_uint64, chunks),
                         data_type=str(np.dtype(dtype)).encode(), fill_value=b"0", codecs=codecs.encode())
        if shards:
            spec.shard_shape = numbers(c_uint64, shards)
        store, out = self.store(path), c_void_p()
        try:
            self.call("array_create", byref(out), store, b"", byref(spec), None)
        finally:
            self.lib.zarr_store_free(store)
        return Array(self, out)


class Memory:
    """Bytes of a kind, on device 0. Host memory comes from NumPy."""

    def __init__(self, library, kind, n_bytes):
        self.library, self.kind, self.n_bytes, self.array = library, kind, n_bytes, None
        self.mem = Mem(device_type=KINDS[kind], bytes=n_bytes)
        if kind == "host":
            self.array = np.empty(n_bytes, np.uint8)
            self.mem.handle = self.array.ctypes.data
        else:
            library.call("memory_alloc", byref(self.mem), library.context, KINDS[kind], 0, c_uint64(n_bytes))

    def at(self, offset, n_bytes):
        return Mem(device_type=self.mem.device_type, device_id=self.mem.device_id, handle=self.mem.handle,
                   offset=self.mem.offset + offset, bytes=n_bytes)

    def put(self, values, offset=0):
        values = np.ascontiguousarray(values)
        source = Mem(device_type=1, handle=values.ctypes.data, bytes=values.nbytes)
        if values.nbytes:
            self.library.call("memory_copy", self.library.context, byref(self.at(offset, values.nbytes)), byref(source),
                              c_uint64(values.nbytes))

    def get(self, n_bytes=None, offset=0):
        out = np.empty(self.n_bytes if n_bytes is None else n_bytes, np.uint8)
        to = Mem(device_type=1, handle=out.ctypes.data, bytes=out.nbytes)
        if out.nbytes:
            self.library.call("memory_copy", self.library.context, byref(to), byref(self.at(offset, out.nbytes)), c_uint64(out.nbytes))
        return out

    def tensor(self, shape):
        return Tensor(device_type=self.mem.device_type, ndim=len(shape), data=self.mem.handle, shape=numbers(c_uint64, shape),
                      data_bytes=self.n_bytes)

    def free(self):
        if self.array is None:
            self.library.lib.zarr_memory_free(self.library.context, byref(self.mem))


class Array:
    def __init__(self, library, pointer):
        self.library, self.pointer = library, pointer

    def selection(self, text):
        out, lib = c_void_p(), self.library.lib
        if text is not None:
            self.library.call("selection_parse", byref(out), lib.zarr_array_ndim(self.pointer), lib.zarr_array_shape(self.pointer),
                              text.encode())
        return out

    def move(self, verb, memory, shape, selection=None, stats=None, **options):
        """verb: "array_read" or "array_write"; of the selection's elements, dense in memory."""
        chosen = self.selection(selection)
        io = IoOptions(**options)
        if stats is not None:
            io.stats = ctypes.pointer(stats)
        try:
            self.library.call(verb, self.pointer, chosen if selection is not None else None, byref(memory.tensor(shape)), byref(io))
        finally:
            if selection is not None:
                self.library.lib.zarr_selection_free(chosen)

    def read(self, *arguments, **options):
        self.move("array_read", *arguments, **options)

    def write(self, *arguments, **options):
        self.move("array_write", *arguments, **options)

    def close(self):
        self.library.lib.zarr_array_free(self.pointer)
