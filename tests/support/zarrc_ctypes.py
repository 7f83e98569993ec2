"""zarrc_ctypes - the public C API through ctypes, for tests only.

This is not a Python package for users, and it adds as little as possible. Host tensors are numpy views of any strides and byte
order; fake device tensors (tests/fakedev) have the same layout in guarded memory. Every
failure is a ZarrcError. The library is $ZARRC_LIBRARY.
"""
import ctypes
import itertools
import json
import os
import threading
import weakref
from ctypes import (CFUNCTYPE, POINTER, Structure, byref, c_char, c_char_p, c_int, c_int32,
                    c_int64, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p, sizeof)

import numpy as np

STATUS = {0: "OK", -1: "NOT_FOUND", -2: "EXISTS", -3: "INVALID", -4: "UNSUPPORTED", -5: "CORRUPT",
          -6: "IO", -7: "NO_MEMORY", -8: "LIMIT", -9: "DEVICE", -10: "CANCELLED", -11: "ABI",
          -12: "INTERNAL", -13: "CONFLICT", -14: "MEMORY_KIND"}
NUMBER = {name: number for number, name in STATUS.items()}
CPU, FAKE = 1, 12
CHUNKS_OBJECTS, CHUNKS_INNER = 0, 1
U64_MAX = 2**64 - 1
SLICE_DEFAULT = -2**63


class ZarrcError(Exception):
    def __init__(self, code, message, os_code=0, item=0):
        super().__init__(f"{STATUS.get(code, code)}: {message}")
        self.code = STATUS.get(code, str(code))
        self.message, self.os_code, self.item = message, os_code, item


class Sized(Structure):
    """A struct that begins with its size. Members that are not named are zero."""

    def __init__(self, **members):
        super().__init__(**members)
        if "struct_size" not in members:
            self.struct_size = sizeof(self)


class Error(Structure):
    _fields_ = [("code", c_int32), ("os_code", c_int32), ("os_domain", c_uint32),
                ("operation", c_uint32), ("item", c_uint64), ("part", ctypes.c_uint16 * 8), ("message", c_char * 488)]


class Mem(Structure):
    _fields_ = [("device_type", c_int32), ("device_id", c_int32), ("handle", c_void_p),
                ("offset", c_uint64), ("bytes", c_uint64)]


class TensorStruct(Sized):
    _fields_ = [("struct_size", c_uint32), ("device_type", c_int32), ("device_id", c_int32),
                ("ndim", c_int32), ("data", c_void_p), ("dtype", c_void_p),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64), ("data_bytes", c_uint64), ("byte_order", c_uint32),
                ("flags", c_uint32)]


class Stats(Sized):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32)] + [(name, c_uint64) for name in """
        chunks_total chunks_done chunks_missing chunks_direct chunks_partial chunks_fallback
        elements bytes_stored bytes_decoded store_gets store_puts store_erases store_ranges
        index_reads index_hits copies_host bytes_host copies_up bytes_up copies_down bytes_down
        copies_device bytes_device copies_decoded_host waves read_modify_writes wall_ns""".split()]

    def __repr__(self):
        return " ".join(f"{n}={getattr(self, n)}" for n, _ in self._fields_[2:] if getattr(self, n))


class Limits(Sized):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("metadata_bytes", c_uint64),
                ("consolidated_bytes", c_uint64), ("json_depth", c_uint32), ("rank", c_uint32),
                ("json_tokens", c_uint64), ("string_bytes", c_uint64), ("codecs", c_uint32),
                ("shard_depth", c_uint32), ("chunks_per_shard", c_uint64),
                ("chunk_bytes", c_uint64), ("encoded_bytes", c_uint64),
                ("node_name_bytes", c_uint32), ("dimension_name_bytes", c_uint32),
                ("listing_keys", c_uint64), ("dtype_bytes", c_uint64),
                ("variable_chunk_bytes", c_uint64), ("linked_directories", c_uint64)]


LogFn = CFUNCTYPE(None, c_void_p, c_uint32, c_char_p)


class ContextOptions(Sized):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("allocator", c_void_p),
                ("limits", POINTER(Limits)), ("log", LogFn), ("log_user", c_void_p),
                ("log_level", c_uint32), ("n_threads", c_uint32), ("memory_bytes", c_uint64),
                ("wave_bytes", c_uint64), ("pipeline", c_char_p), ("codec_preference", c_char_p)]


class StoreOptions(Sized):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("durability", c_uint32),
                ("locking", c_uint32), ("symlinks", c_uint32), ("reserved", c_uint32),
                ("device_type", c_int32), ("device_id", c_int32), ("kind", c_char_p),
                ("lock_wait_ms", c_uint32), ("reserved_1", c_uint32)]


class ArrayOpenOptions(Sized):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("zarr_format", c_int32),
                ("consolidated", c_uint32), ("chunk_store", c_void_p), ("device_type", c_int32),
                ("device_id", c_int32), ("codec_preference", c_char_p), ("pipeline", c_char_p),
                ("empty_chunks", c_uint32), ("missing_chunks", c_uint32)]


class ArraySpec(Sized):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("zarr_format", c_int32),
                ("ndim", c_int32), ("shape", POINTER(c_uint64)), ("chunk_shape", POINTER(c_uint64)),
                ("shard_shape", POINTER(c_uint64)), ("data_type", c_char_p),
                ("fill_value", c_char_p), ("codecs", c_char_p), ("index_codecs", c_char_p),
                ("attributes", c_char_p), ("dimension_names", POINTER(c_char_p)),
                ("key_encoding", c_char_p), ("separator", c_char), ("order", c_char),
                ("reserved", ctypes.c_uint16), ("reserved2", c_uint32), ("document", c_char_p),
                ("chunk_grid", c_char_p)]


ProgressFn = CFUNCTYPE(None, c_void_p, POINTER(Stats))


class IoOptions(Sized):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("max_threads", c_uint32),
                ("missing_chunks", c_uint32), ("wave_bytes", c_uint64), ("stream", c_void_p),
                ("stats", POINTER(Stats)), ("pipeline", c_char_p), ("progress", ProgressFn),
                ("progress_user", c_void_p), ("empty_chunks", c_uint32), ("outside", c_uint32),
                ("field", c_char_p), ("heap", c_void_p), ("cancel", c_void_p),
                ("coalesce_gap", c_uint64), ("coalesce_bytes", c_uint64), ("memory_bytes", c_uint64),
                ("codec_preference", c_char_p), ("present", POINTER(c_uint8)),
                ("n_present", c_uint64), ("inner_order", c_uint32), ("reserved", c_uint32)]


class ShapeOptions(Sized):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("cancel", c_void_p)]


class ConsolidateOptions(Sized):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("key", c_char_p),
                ("cancel", c_void_p)]


class VlenColumn(Sized):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("n", c_uint64),
                ("offsets", POINTER(c_uint64)), ("bytes", c_void_p), ("owner", c_void_p)]


class DimSelection(Structure):
    _fields_ = [("kind", c_uint32), ("reserved", c_uint32), ("start", c_int64), ("stop", c_int64),
                ("step", c_int64), ("list", POINTER(c_int64)), ("mask", POINTER(c_uint8)),
                ("n_list", c_uint64)]


class ChunkInfo(Structure):
    _fields_ = [("struct_size", c_uint32), ("ndim", c_int32), ("chunk", POINTER(c_uint64)),
                ("key", c_char_p), ("offset", c_uint64), ("bytes", c_uint64), ("inner", c_uint32),
                ("reserved", c_uint32)]


class VerifyItem(Structure):
    _fields_ = [("struct_size", c_uint32), ("status", c_int32), ("key", c_char_p),
                ("message", c_char_p)]


class GroupOpenOptions(Sized):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("zarr_format", c_int32),
                ("consolidated", c_uint32), ("consolidated_key", c_char_p)]


class GroupSpec(Sized):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("zarr_format", c_int32),
                ("reserved", c_uint32), ("attributes", c_char_p)]


class NodeItem(Structure):
    _fields_ = [("struct_size", c_uint32), ("kind", c_uint32), ("path", c_char_p),
                ("name", c_char_p), ("zarr_format", c_int32), ("depth", c_int32),
                ("metadata", c_char_p)]


class StoreItem(Structure):
    _fields_ = [("key", c_char_p), ("bytes", c_uint64), ("is_prefix", c_uint32),
                ("reserved", c_uint32)]


class StoreVersion(Structure):
    _fields_ = [("word", c_uint64 * 4)]


class StoreOp(Structure):
    _fields_ = [("verb", c_uint32), ("flags", c_uint32), ("key", c_char_p), ("offset", c_uint64),
                ("length", c_uint64), ("mem", Mem), ("version", StoreVersion), ("lock", c_void_p),
                ("done_bytes", c_uint64), ("object_bytes", c_uint64), ("status", c_int32),
                ("os_code", c_int32), ("tag", c_void_p), ("up_bytes", c_uint64),
                ("down_bytes", c_uint64), ("cancel", c_void_p)]


class StoreCaps(Sized):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("device_types", c_void_p),
                ("n_device_types", c_uint32), ("parallel", c_uint32)]


class MigrateItem(Structure):
    _fields_ = [("struct_size", c_uint32), ("action", c_uint32), ("kind", c_uint32),
                ("reserved", c_uint32), ("path", c_char_p), ("key", c_char_p), ("text", c_char_p)]


MigrateFn = CFUNCTYPE(None, c_void_p, POINTER(MigrateItem))


class MigrateOptions(Sized):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("zarr_format", c_int32),
                ("reserved", c_uint32), ("tell", MigrateFn), ("user", c_void_p),
                ("cancel", c_void_p)]


ItemFn = CFUNCTYPE(c_int, c_void_p, POINTER(StoreItem))
ChunkFn = CFUNCTYPE(c_int, c_void_p, POINTER(ChunkInfo))
VerifyFn = CFUNCTYPE(c_int, c_void_p, POINTER(VerifyItem))
NodeFn = CFUNCTYPE(c_int, c_void_p, POINTER(NodeItem))
ThenFn = CFUNCTYPE(None, c_void_p, c_int32, c_void_p)
CheckFn = CFUNCTYPE(c_int, c_void_p, c_char_p, c_char_p)
E = POINTER(Error)


class StoreVtable(Sized):
    _fields_ = [
        ("struct_size", c_uint32), ("flags", c_uint32), ("name", c_char_p), ("open", c_void_p),
        ("caps", CFUNCTYPE(None, c_void_p, POINTER(StoreCaps))),
        ("run", CFUNCTYPE(None, c_void_p, POINTER(StoreOp), E)), ("submit", c_void_p),
        ("cancel", c_void_p),
        ("list", CFUNCTYPE(c_int32, c_void_p, c_char_p, c_uint32, ItemFn, c_void_p, E)),
        ("lock", CFUNCTYPE(c_int32, c_void_p, c_char_p, c_void_p, POINTER(c_void_p), E)),
        ("unlock", CFUNCTYPE(None, c_void_p, c_void_p)), ("flush", c_void_p),
        ("erase_prefix", c_void_p), ("clean", c_void_p), ("close", CFUNCTYPE(None, c_void_p))]


class FakeCounters(Structure):
    _fields_ = [(name, c_uint64) for name in """allocs frees live_blocks live_bytes peak_bytes
        copies_up copies_down copies_device bytes_up bytes_down bytes_device boxes fills
        faults""".split()]


P, T, S, U = c_void_p, c_int32, c_char_p, c_uint64
OUT = POINTER(c_void_p)
SHAPE, SHAPE_S = POINTER(c_uint64), POINTER(c_int64)
TEXT = [S, c_size_t, POINTER(c_size_t), E]
# name: (result, arguments). Result T is a status; a failure raises.
FUNCTIONS = {
    "zarr_version": (S, []), "zarr_status_text": (S, [T]),
    "zarr_context_create": (T, [OUT, POINTER(ContextOptions), E]), "zarr_context_free": (None, [P]),
    "zarr_context_trim": (None, [P]), "zarr_context_limits_sized": (None, [P, POINTER(Limits), c_uint32]),
    "zarr_context_register_memory": (T, [P, P, P, S, E]),
    "zarr_mem_alloc": (T, [P, T, T, U, POINTER(Mem), E]), "zarr_mem_free": (None, [P, POINTER(Mem)]),
    "zarr_mem_copy": (T, [P, POINTER(Mem), POINTER(Mem), U, E]),
    "zarr_dtype_find": (T, [P, S, OUT, E]), "zarr_dtype_name": (S, [P]), "zarr_dtype_v2": (S, [P]),
    "zarr_dtype_kind": (c_uint32, [P]), "zarr_dtype_item_bytes": (U, [P]),
    "zarr_dtype_swap_bytes": (c_uint32, [P]), "zarr_dtype_print": (T, [P, P, *TEXT]),
    "zarr_dtype_parse": (T, [P, S, P, E]),
    "zarr_store_open": (T, [OUT, P, S, POINTER(StoreOptions), E]),
    "zarr_store_open_custom": (T, [OUT, P, POINTER(StoreVtable), P, POINTER(StoreOptions), E]),
    "zarr_store_flush": (T, [P, E]), "zarr_store_close": (T, [P, E]), "zarr_store_free": (None, [P]),
    "zarr_store_url": (S, [P]), "zarr_store_get": (T, [P, S, U, P, POINTER(U), POINTER(U), E]),
    "zarr_store_put": (T, [P, S, P, U, E]), "zarr_store_erase": (T, [P, S, E]),
    "zarr_store_erase_prefix": (T, [P, S, E]),
    "zarr_store_list": (T, [P, S, c_uint32, ItemFn, P, E]),
    "zarr_store_clean": (T, [P, S, U, POINTER(U), E]),
    "zarr_selection_dims": (T, [OUT, T, SHAPE, T, POINTER(DimSelection), E]),
    "zarr_selection_all": (T, [OUT, T, SHAPE, E]),
    "zarr_selection_box": (T, [OUT, T, SHAPE, SHAPE, SHAPE, E]),
    "zarr_selection_points": (T, [OUT, T, SHAPE, U, SHAPE_S, T, SHAPE, E]),
    "zarr_selection_mask": (T, [OUT, T, SHAPE, POINTER(c_uint8), E]),
    "zarr_selection_blocks": (T, [OUT, T, SHAPE, SHAPE, T, POINTER(DimSelection), E]),
    "zarr_selection_parse": (T, [OUT, T, SHAPE, S, E]), "zarr_selection_compose": (T, [OUT, P, P, E]),
    "zarr_selection_ndim": (c_int32, [P]), "zarr_selection_shape": (SHAPE, [P]),
    "zarr_selection_n_items": (U, [P]), "zarr_selection_free": (None, [P]),
    "zarr_array_open": (T, [OUT, P, S, POINTER(ArrayOpenOptions), E]),
    "zarr_array_create": (T, [OUT, P, S, POINTER(ArraySpec), POINTER(ArrayOpenOptions), E]),
    "zarr_array_free": (None, [P]), "zarr_array_zarr_format": (c_int32, [P]),
    "zarr_array_path": (S, [P]), "zarr_array_ndim": (c_int32, [P]), "zarr_array_shape": (SHAPE, [P]),
    "zarr_array_write_shape": (SHAPE, [P]), "zarr_array_chunk_shape": (SHAPE, [P]),
    "zarr_array_chunk_grid": (S, [P]), "zarr_array_chunk_counts": (None, [P, SHAPE]),
    "zarr_array_chunk_extent": (T, [P, SHAPE, SHAPE, SHAPE, E]),
    "zarr_array_select_blocks": (T, [P, OUT, T, POINTER(DimSelection), E]),
    "zarr_array_dtype": (P, [P]), "zarr_array_fill_value": (P, [P]),
    "zarr_array_dimension_name": (S, [P, T]), "zarr_array_metadata": (S, [P]),
    "zarr_array_attributes": (S, [P]), "zarr_array_codecs": (S, [P]),
    "zarr_array_read": (T, [P, P, POINTER(TensorStruct), POINTER(IoOptions), E]),
    "zarr_array_write": (T, [P, P, POINTER(TensorStruct), POINTER(IoOptions), E]),
    "zarr_array_read_submit": (T, [OUT, P, P, POINTER(TensorStruct), POINTER(IoOptions), E]),
    "zarr_array_write_submit": (T, [OUT, P, P, POINTER(TensorStruct), POINTER(IoOptions), E]),
    "zarr_array_explain": (T, [OUT, P, c_uint32, P, POINTER(TensorStruct), POINTER(IoOptions), E]),
    "zarr_explanation_text": (T, [P, c_uint32, *TEXT]), "zarr_explanation_free": (None, [P]),
    "zarr_array_resize": (T, [P, SHAPE, POINTER(ShapeOptions), E]),
    "zarr_array_append": (T, [P, T, POINTER(TensorStruct), POINTER(U), POINTER(IoOptions), E]),
    "zarr_array_refresh": (T, [P, POINTER(c_int), E]),
    "zarr_array_attribute_get": (T, [P, S, *TEXT]), "zarr_array_attribute_set": (T, [P, S, S, E]),
    "zarr_array_attribute_delete": (T, [P, S, E]),
    "zarr_array_attributes_merge": (T, [P, S, c_int, E]),
    "zarr_array_chunk_list": (T, [P, c_uint32, ChunkFn, P, POINTER(IoOptions), E]),
    "zarr_array_chunk_read_encoded": (T, [P, SHAPE, P, POINTER(U), E]),
    "zarr_array_chunk_write_encoded": (T, [P, SHAPE, P, U, E]),
    "zarr_array_chunk_erase": (T, [P, SHAPE, E]), "zarr_array_chunk_key": (T, [P, SHAPE, *TEXT]),
    "zarr_array_verify": (T, [P, VerifyFn, P, POINTER(IoOptions), E]),
    "zarr_array_read_vlen": (T, [P, P, POINTER(VlenColumn), POINTER(IoOptions), E]),
    "zarr_array_write_vlen": (T, [P, P, POINTER(VlenColumn), POINTER(IoOptions), E]),
    "zarr_vlen_column_free": (None, [POINTER(VlenColumn)]),
    "zarr_heap_create": (T, [OUT, P, U, E]), "zarr_heap_clear": (None, [P]), "zarr_heap_free": (None, [P]),
    "zarr_request_wait": (T, [P, U, POINTER(c_int), E]), "zarr_request_cancel": (None, [P]),
    "zarr_request_fd": (T, [P, POINTER(c_int), E]), "zarr_request_then": (T, [P, ThenFn, P, E]),
    "zarr_request_progress": (None, [P, POINTER(Stats)]), "zarr_request_free": (None, [P]),
    "zarr_group_open": (T, [OUT, P, S, POINTER(GroupOpenOptions), E]),
    "zarr_group_create": (T, [OUT, P, S, POINTER(GroupSpec), POINTER(GroupOpenOptions), E]),
    "zarr_group_free": (None, [P]),
    "zarr_group_zarr_format": (c_int32, [P]), "zarr_group_path": (S, [P]),
    "zarr_group_is_consolidated": (c_int, [P]), "zarr_group_metadata": (S, [P]),
    "zarr_group_attributes": (S, [P]),
    "zarr_group_open_array": (T, [OUT, P, S, POINTER(ArrayOpenOptions), E]),
    "zarr_group_open_group": (T, [OUT, P, S, POINTER(GroupOpenOptions), E]),
    "zarr_group_attribute_get": (T, [P, S, *TEXT]), "zarr_group_attribute_set": (T, [P, S, S, E]),
    "zarr_group_attribute_delete": (T, [P, S, E]),
    "zarr_group_attributes_merge": (T, [P, S, c_int, E]),
    "zarr_group_list": (T, [P, NodeFn, P, P, E]), "zarr_group_walk": (T, [P, NodeFn, P, P, E]),
    "zarr_node_probe": (T, [P, S, POINTER(c_uint32), POINTER(c_int32), E]),
    "zarr_node_delete": (T, [P, S, E]), "zarr_node_copy": (T, [P, S, P, S, P, E]),
    "zarr_node_move": (T, [P, S, P, S, P, E]), "zarr_group_consolidate": (T, [P, POINTER(ConsolidateOptions), E]),
    "zarr_group_consolidated_check": (T, [P, CheckFn, P, P, E]),
    "zarr_node_migrate": (T, [P, S, POINTER(MigrateOptions), E]),
}


def _load():
    library = ctypes.CDLL(os.environ["ZARRC_LIBRARY"])
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def _load_fake():
    path = os.path.join(os.environ["ZARRC_BUILD"], "tests", "libzarrc_fakedev.so")
    fake = ctypes.CDLL(path)
    for name, result, arguments in [
            ("zarr_fakedev_vtable", P, []), ("zarr_fakedev_vtable_plain", P, []),
            ("zarr_fakedev_create", P, []), ("zarr_fakedev_free", None, [P]),
            ("zarr_fakedev_count", None, [P, POINTER(FakeCounters)]),
            ("zarr_fakedev_fail", None, [P, c_uint32, U, T]),
            ("zarr_fakedev_peek", c_int, [P, U, P, U]), ("zarr_fakedev_poke", c_int, [P, U, P, U])]:
        function = getattr(fake, name)
        function.restype, function.argtypes = result, arguments
    return fake


lib = _load()
fakedev = _load_fake()


def call(name, *arguments):
    """Calls a function that returns a status. The error struct is its last argument."""
    error = Error()
    status = getattr(lib, name)(*arguments, byref(error))
    if status:
        message = error.message.decode(errors="replace")
        assert error.code == status, (name, status, error.code, message)
        assert message, f"{name}: {STATUS.get(status)} without a text"
        raise ZarrcError(status, message, error.os_code, error.item)


def call_text(name, *arguments):
    """Calls a function that writes text as snprintf does: once for the length, once for the text."""
    need = c_size_t()
    call(name, *arguments, None, 0, byref(need))
    text = ctypes.create_string_buffer(need.value + 1)
    call(name, *arguments, text, need.value + 1, byref(need))
    assert len(text.value) == need.value
    return text.value.decode()


def shape_of(values):
    values = [int(v) for v in values]
    return (c_uint64 * max(1, len(values)))(*values)


def text_of(value):
    """JSON text for the C API. Text is passed unchanged."""
    if value is None or isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else json.dumps(value)).encode()


class Handle:
    """Owns one C handle and frees it with the object."""
    free = ""

    def __init__(self, pointer):
        self.pointer = pointer

    def close(self):
        pointer, self.pointer = self.pointer, None
        if pointer:
            getattr(lib, self.free)(pointer)

    def __del__(self):
        try:
            self.close()
        except (AttributeError, TypeError):  # the interpreter is shutting down
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Context(Handle):
    """A context with the fake device registered as device type 12 (fake=None: without;
    "plain": a device that cannot copy boxes)."""
    free = "zarr_context_free"

    def __init__(self, fake="full", limits=None, **options):
        for key in ("pipeline", "codec_preference"):
            if options.get(key):
                options[key] = options[key].encode()
        opts = ContextOptions(**options)
        if limits:
            opts.limits = ctypes.pointer(limits)
        out = c_void_p()
        call("zarr_context_create", byref(out), byref(opts))
        super().__init__(out.value)
        self.device = None
        if fake:
            self.device = fakedev.zarr_fakedev_create()
            table = fakedev.zarr_fakedev_vtable() if fake == "full" else fakedev.zarr_fakedev_vtable_plain()
            call("zarr_context_register_memory", self.pointer, table, self.device, b"tests")

    def counters(self):
        counters = FakeCounters()
        fakedev.zarr_fakedev_count(self.device, byref(counters))
        return counters

    def dtype(self, name):
        out = c_void_p()
        call("zarr_dtype_find", self.pointer, text_of(name), byref(out))
        return out.value

    def parse(self, dtype, value):
        """Bytes of one element from its JSON fill value."""
        dtype = self.dtype(dtype) if isinstance(dtype, str) else dtype
        element = ctypes.create_string_buffer(lib.zarr_dtype_item_bytes(dtype))
        call("zarr_dtype_parse", dtype, text_of(value), element)
        return element.raw

    def print(self, dtype, element):
        dtype = self.dtype(dtype) if isinstance(dtype, str) else dtype
        return call_text("zarr_dtype_print", dtype, element)

    def trim(self):
        lib.zarr_context_trim(self.pointer)

    def store(self, url="memory:", create=False, read_only=False, **options):
        out = c_void_p()
        opts = StoreOptions(flags=(2 if create else 0) | (1 if read_only else 0), **options)
        call("zarr_store_open", byref(out), self.pointer, os.fsencode(url), byref(opts))
        return Store(out.value, self)

    def custom(self, implementation):
        """A store of Python functions: see DictStore."""
        return CustomStore(self, implementation)


class Store(Handle):
    free = "zarr_store_free"

    def __init__(self, pointer, context):
        super().__init__(pointer)
        self.context = context

    @property
    def url(self):
        return lib.zarr_store_url(self.pointer).decode()

    def get(self, key, offset=0, size=None):
        total, size_c = c_uint64(), c_uint64(0)
        if size is None:
            call("zarr_store_get", self.pointer, key.encode(), 0, None, byref(size_c), byref(total))
            size = max(0, total.value - offset)
        data = ctypes.create_string_buffer(max(1, size))
        size_c = c_uint64(size)
        call("zarr_store_get", self.pointer, key.encode(), offset, data, byref(size_c), byref(total))
        return data.raw[:size_c.value]

    def put(self, key, value):
        call("zarr_store_put", self.pointer, key.encode(), bytes(value), len(value))

    def erase(self, key):
        call("zarr_store_erase", self.pointer, key.encode())

    def erase_prefix(self, prefix=""):
        call("zarr_store_erase_prefix", self.pointer, prefix.encode())

    def keys(self, prefix="", how=0):
        found = []

        @ItemFn
        def each(_, item):
            item = item.contents
            found.append(item.key.decode() + ("/" if item.is_prefix else ""))
            return 0
        call("zarr_store_list", self.pointer, prefix.encode(), how, each, None)
        return sorted(found)

    def dump(self, prefix=""):
        """Every key with its bytes."""
        return {key: self.get(key) for key in self.keys(prefix)}

    def clean(self, prefix="", age=0):
        removed = c_uint64()
        call("zarr_store_clean", self.pointer, prefix.encode(), age, byref(removed))
        return removed.value

    def flush(self):
        call("zarr_store_flush", self.pointer)

    def probe(self, path=""):
        kind, form = c_uint32(), c_int32()
        call("zarr_node_probe", self.pointer, path.encode(), byref(kind), byref(form))
        return {0: None, 1: "array", 2: "group"}[kind.value], form.value

    def delete_node(self, path):
        call("zarr_node_delete", self.pointer, path.encode())

    def copy_node(self, path, other, other_path):
        call("zarr_node_copy", self.pointer, path.encode(), other.pointer, other_path.encode(), None)

    def move_node(self, path, other, other_path):
        call("zarr_node_move", self.pointer, path.encode(), other.pointer, other_path.encode(), None)

    def consolidate(self, path="", key=None):
        group = self.group(path, consolidated=3)
        call("zarr_group_consolidate", group.pointer, byref(ConsolidateOptions(key=text_of(key))))

    def consolidated_check(self, path=""):
        found, group = [], self.group(path, consolidated=3)

        @CheckFn
        def each(_, where, what):
            found.append((where.decode(), what.decode()))
            return 0
        call("zarr_group_consolidated_check", group.pointer, each, None, None)
        return found

    def migrate(self, path="", zarr_format=3, dry_run=False, overwrite=False, remove=False):
        """Gives [(action, key)] in the order in which the call does them."""
        names = [None, "write", "replace", "keep", "consolidate", "remove", "refuse", "leave"]
        actions = []

        def each(_, item):
            key = item.contents.key
            actions.append((names[item.contents.action], key and key.decode()))
        options = MigrateOptions(flags=dry_run | overwrite << 1 | remove << 2, zarr_format=zarr_format,
                                 tell=MigrateFn(each))
        call("zarr_node_migrate", self.pointer, path.encode(), byref(options))
        return actions

    def create(self, path="", shape=(), dtype="uint8", options=None, **spec):
        """An array; see array_spec() for the members."""
        struct, keep = array_spec(shape, dtype, **spec)
        out = c_void_p()
        call("zarr_array_create", byref(out), self.pointer, path.encode(), byref(struct),
             open_options(options))
        del keep
        return Array(out.value, self)

    def open(self, path="", **options):
        out = c_void_p()
        call("zarr_array_open", byref(out), self.pointer, path.encode(), open_options(options))
        return Array(out.value, self)

    def create_group(self, path="", zarr_format=0, attributes=None, flags=0):
        out = c_void_p()
        spec = GroupSpec(flags=flags, zarr_format=zarr_format, attributes=text_of(attributes))
        call("zarr_group_create", byref(out), self.pointer, path.encode(), byref(spec), None)
        return Group(out.value, self)

    def group(self, path="", **options):
        out = c_void_p()
        if options.get("consolidated_key"):
            options["consolidated_key"] = options["consolidated_key"].encode()
        call("zarr_group_open", byref(out), self.pointer, path.encode(),
             byref(GroupOpenOptions(**options)))
        return Group(out.value, self)


OVERWRITE, NO_PARENTS, INDEX_AT_START, IF_MISSING = 1, 2, 4, 8


def array_spec(shape, dtype, zarr_format=0, chunks=None, shards=None, fill_value=None, codecs=None,
               index_codecs=None, attributes=None, dimension_names=None, key_encoding=None,
               separator="", order="", flags=0, document=None, chunk_grid=None):
    spec = ArraySpec(flags=flags, zarr_format=zarr_format, ndim=len(shape))
    if document is not None:
        spec.document = text_of(document)
        return spec, None
    spec.shape = shape_of(shape)
    if chunks is not None:
        spec.chunk_shape = shape_of(chunks)
    if shards is not None:
        spec.shard_shape = shape_of(shards)
    spec.data_type = text_of(dtype)
    if fill_value is not None:  # a value; bytes are its JSON text
        spec.fill_value = fill_value if isinstance(fill_value, bytes) else json.dumps(fill_value).encode()
    for name, value in [("codecs", codecs), ("index_codecs", index_codecs),
                        ("attributes", attributes)]:
        if value is not None:
            setattr(spec, name, text_of(value))
    if dimension_names is not None:
        names = [None if n is None else n.encode() for n in dimension_names]
        spec.dimension_names = (c_char_p * max(1, len(names)))(*names)
    if key_encoding:
        spec.key_encoding = text_of(key_encoding)
    if chunk_grid is not None:
        spec.chunk_grid = text_of(chunk_grid)
    if separator:
        spec.separator = separator.encode()
    if order:
        spec.order = order.encode()
    return spec, (shape, chunks, shards)


def open_options(options):
    if not options:
        return None
    options = dict(options)
    for key in ("codec_preference", "pipeline"):
        if options.get(key):
            options[key] = options[key].encode()
    if isinstance(options.get("chunk_store"), Store):
        options["chunk_store"] = options["chunk_store"].pointer
    return byref(ArrayOpenOptions(**options))


# ---- memory ---------------------------------------------------------------------------

class Block:
    """Fake device memory, freed with the object."""

    def __init__(self, context, size):
        self.context, self.size, self.mem = context, size, Mem()
        call("zarr_mem_alloc", context.pointer, FAKE, 0, size, byref(self.mem))
        self._free = weakref.finalize(self, lib.zarr_mem_free, context.pointer, byref(self.mem))
        self._free.atexit = False
        self.pid = os.getpid()

    def poke(self, data):
        data = np.ascontiguousarray(data).view(np.uint8).reshape(-1)
        assert data.nbytes == self.size
        if self.size:
            assert fakedev.zarr_fakedev_poke(self.mem.handle, 0, data.ctypes.data, self.size) == 0

    def peek(self):
        data = np.empty(self.size, np.uint8)
        if self.size:
            assert fakedev.zarr_fakedev_peek(self.mem.handle, 0, data.ctypes.data, self.size) == 0
        return data


def base_of(view):
    """The numpy array that owns the bytes of a view."""
    base = view
    while isinstance(base.base, np.ndarray):
        base = base.base
    return base.reshape(-1, order="A").view(np.uint8) if base.size else np.empty(0, np.uint8)


class Tensor:
    """The tensor of a read or a write: a numpy view, or its copy on the fake device.

    After a read, fetch() brings the device's bytes back into the view's own memory, the
    bytes between the elements included, so one check serves both memories."""

    def __init__(self, view, context=None, memory="host", dtype=None):
        self.view, self.memory = view, memory
        base = base_of(view)
        offset = view.__array_interface__["data"][0] - base.ctypes.data if base.size else 0
        self.shape = (c_int64 * max(1, view.ndim))(*view.shape)
        self.strides = (c_int64 * max(1, view.ndim))(*view.strides)
        order = {"<": 1, ">": 2}.get(view.dtype.byteorder, 0)
        self.base, self.block = base, None
        data, device = base.ctypes.data, CPU
        if memory == "fake":
            self.block = Block(context, base.nbytes)
            self.block.poke(base)
            data, device = self.block.mem.handle, FAKE
        self.struct = TensorStruct(device_type=device, ndim=view.ndim, data=data, dtype=dtype,
                                   shape=self.shape, strides=self.strides, byte_offset=offset,
                                   data_bytes=base.nbytes, byte_order=order)

    def fetch(self):
        if self.block:
            self.base[...] = self.block.peek()
        return self.view


def io_options(stats=None, pipeline=None, progress=None, field=None, heap=None, **options):
    opts = IoOptions(**options)
    if heap is not None:
        opts.heap = heap.pointer
    if field:
        opts.field = field.encode()
    if stats is not None:
        opts.stats = ctypes.pointer(stats)
    if pipeline:
        opts.pipeline = pipeline.encode()
    if progress:
        opts.progress = ProgressFn(lambda _, so_far: progress(so_far.contents))
    return opts


class Heap(Handle):
    """The memory that elements of variable length point to."""
    free = "zarr_heap_free"

    def __init__(self, context, most=0):
        out = c_void_p()
        call("zarr_heap_create", byref(out), context.pointer, most)
        super().__init__(out.value)
        self.keep = context

    def clear(self):
        lib.zarr_heap_clear(self.pointer)


class Request(Handle):
    free = "zarr_request_free"

    def __init__(self, pointer, keep):
        super().__init__(pointer)
        self.keep = keep

    def wait(self, timeout_ns=U64_MAX):
        """Waits; returns whether the request is done, and raises its failure."""
        done = c_int()
        call("zarr_request_wait", self.pointer, timeout_ns, byref(done))
        return bool(done.value)

    def cancel(self):
        lib.zarr_request_cancel(self.pointer)

    def fileno(self):
        fd = c_int()
        call("zarr_request_fd", self.pointer, byref(fd))
        return fd.value

    def then(self, function):
        """Calls function(status) once, from any thread."""
        each = ThenFn(lambda _, status, error: function(status))
        self.keep = (self.keep, each)
        call("zarr_request_then", self.pointer, each, None)

    def progress(self):
        stats = Stats()
        lib.zarr_request_progress(self.pointer, byref(stats))
        return stats


class Array(Handle):
    free = "zarr_array_free"

    def __init__(self, pointer, store):
        super().__init__(pointer)
        self.store, self.context = store, store.context

    # facts
    @property
    def ndim(self):
        return lib.zarr_array_ndim(self.pointer)

    @property
    def shape(self):
        return tuple(lib.zarr_array_shape(self.pointer)[:self.ndim])

    @property
    def chunks(self):
        """The shape of chunks; None if chunks differ in shape."""
        found = lib.zarr_array_chunk_shape(self.pointer)
        return tuple(found[:self.ndim]) if found else None

    @property
    def write_chunks(self):
        found = lib.zarr_array_write_shape(self.pointer)
        return tuple(found[:self.ndim]) if found else None

    @property
    def chunk_grid(self):
        return json.loads(lib.zarr_array_chunk_grid(self.pointer))

    @property
    def chunk_counts(self):
        counts = (c_uint64 * max(1, self.ndim))()
        lib.zarr_array_chunk_counts(self.pointer, counts)
        return tuple(counts[:self.ndim])

    def chunk_extent(self, *chunk):
        """(origin, shape)"""
        origin, shape = ((c_uint64 * max(1, self.ndim))() for _ in range(2))
        call("zarr_array_chunk_extent", self.pointer, shape_of(chunk), origin, shape)
        return tuple(origin[:self.ndim]), tuple(shape[:self.ndim])

    @property
    def zarr_format(self):
        return lib.zarr_array_zarr_format(self.pointer)

    @property
    def item_bytes(self):
        return lib.zarr_dtype_item_bytes(lib.zarr_array_dtype(self.pointer))

    @property
    def dtype_name(self):
        name = lib.zarr_dtype_name(lib.zarr_array_dtype(self.pointer))
        return name and name.decode()

    @property
    def fill_bytes(self):
        at = lib.zarr_array_fill_value(self.pointer)
        return ctypes.string_at(at, self.item_bytes) if at else None

    @property
    def metadata(self):
        return lib.zarr_array_metadata(self.pointer).decode()

    @property
    def attributes(self):
        return json.loads(lib.zarr_array_attributes(self.pointer))

    @property
    def codecs(self):
        return json.loads(lib.zarr_array_codecs(self.pointer))

    @property
    def dimension_names(self):
        names = [lib.zarr_array_dimension_name(self.pointer, d) for d in range(self.ndim)]
        return [n and n.decode() for n in names]

    # elements
    def read_into(self, view, selection=None, memory="host", **options):
        """Fills the view. Options are members of zarr_io_options."""
        tensor = Tensor(view, self.context, memory)
        call("zarr_array_read", self.pointer, selection and selection.pointer, byref(tensor.struct),
             byref(io_options(**options)))
        return tensor.fetch()

    def read(self, dtype, selection=None, memory="host", **options):
        shape = selection.shape if selection else self.shape
        return self.read_into(np.empty(shape, dtype), selection, memory, **options)

    def write(self, view, selection=None, memory="host", **options):
        tensor = Tensor(np.asarray(view), self.context, memory)
        call("zarr_array_write", self.pointer, selection and selection.pointer,
             byref(tensor.struct), byref(io_options(**options)))

    def read_vlen(self, selection=None, **options):
        """The elements of variable length as a flat list of bytes."""
        column = VlenColumn()
        call("zarr_array_read_vlen", self.pointer, selection and selection.pointer,
             byref(column), byref(io_options(**options)))
        ends = column.offsets[:column.n + 1]
        data = ctypes.string_at(column.bytes, ends[-1])
        lib.zarr_vlen_column_free(byref(column))
        return [data[a:b] for a, b in zip(ends, ends[1:])]

    def write_vlen(self, items, selection=None, **options):
        data = b"".join(items)
        ends = [0, *itertools.accumulate(map(len, items))]
        column = VlenColumn(n=len(items), offsets=(c_uint64 * len(ends))(*ends),
                            bytes=ctypes.cast(ctypes.c_char_p(data), c_void_p).value)
        call("zarr_array_write_vlen", self.pointer, selection and selection.pointer,
             byref(column), byref(io_options(**options)))

    def submit(self, verb, view, selection=None, memory="host", **options):
        tensor = Tensor(view, self.context, memory)
        opts = io_options(**options)
        out = c_void_p()
        call(f"zarr_array_{verb}_submit", byref(out), self.pointer, selection and selection.pointer,
             byref(tensor.struct), byref(opts))
        return Request(out.value, (self, tensor, selection, opts))

    def explain(self, write=False, as_json=False, selection=None, view=None, memory="host", **options):
        tensor = None if view is None else Tensor(view, self.context, memory)
        out = c_void_p()
        call("zarr_array_explain", byref(out), self.pointer, int(write), selection and selection.pointer,
             tensor and byref(tensor.struct), byref(io_options(**options)))
        try:
            text = call_text("zarr_explanation_text", out, int(as_json))
        finally:
            lib.zarr_explanation_free(out)
        return json.loads(text) if as_json else text

    # shape and attributes
    def resize(self, shape, flags=0):
        call("zarr_array_resize", self.pointer, shape_of(shape), byref(ShapeOptions(flags=flags)))

    def append(self, view, axis=0, memory="host", **options):
        tensor = Tensor(np.asarray(view), self.context, memory)
        first = U()
        call("zarr_array_append", self.pointer, axis, byref(tensor.struct), byref(first),
             byref(io_options(**options)))
        return first.value

    def refresh(self):
        changed = c_int()
        call("zarr_array_refresh", self.pointer, byref(changed))
        return bool(changed.value)

    def attribute(self, name):
        return json.loads(call_text("zarr_array_attribute_get", self.pointer, name.encode()))

    def set_attribute(self, name, value):
        call("zarr_array_attribute_set", self.pointer, name.encode(), json.dumps(value).encode())

    def delete_attribute(self, name):
        call("zarr_array_attribute_delete", self.pointer, name.encode())

    def merge_attributes(self, members, replace=False):
        call("zarr_array_attributes_merge", self.pointer, json.dumps(members).encode(), int(replace))

    # chunks
    def chunk_list(self, what=CHUNKS_OBJECTS):
        found = []

        @ChunkFn
        def each(_, info):
            info = info.contents
            found.append((tuple(info.chunk[:info.ndim]), info.key.decode(), info.offset,
                          info.bytes, bool(info.inner)))
            return 0
        call("zarr_array_chunk_list", self.pointer, what, each, None, None)
        return sorted(found)

    def chunk_key(self, chunk):
        return call_text("zarr_array_chunk_key", self.pointer, shape_of(chunk))

    def chunk_encoded(self, chunk, room=1 << 20):
        data, size = ctypes.create_string_buffer(room), c_uint64(room)
        call("zarr_array_chunk_read_encoded", self.pointer, shape_of(chunk), data, byref(size))
        return data.raw[:size.value]

    def set_chunk_encoded(self, chunk, value):
        call("zarr_array_chunk_write_encoded", self.pointer, shape_of(chunk), value, len(value))

    def erase_chunk(self, chunk):
        call("zarr_array_chunk_erase", self.pointer, shape_of(chunk))

    def verify(self):
        found = []

        @VerifyFn
        def each(_, item):
            item = item.contents
            found.append((STATUS[item.status], item.key.decode(), item.message.decode()))
            return 0
        call("zarr_array_verify", self.pointer, each, None, None)
        return found


class Group(Handle):
    free = "zarr_group_free"

    def __init__(self, pointer, store):
        super().__init__(pointer)
        self.store, self.context = store, store.context

    @property
    def zarr_format(self):
        return lib.zarr_group_zarr_format(self.pointer)

    @property
    def attributes(self):
        return json.loads(lib.zarr_group_attributes(self.pointer))

    @property
    def metadata(self):
        return lib.zarr_group_metadata(self.pointer).decode()

    @property
    def is_consolidated(self):
        return bool(lib.zarr_group_is_consolidated(self.pointer))

    def open_array(self, path, **options):
        out = c_void_p()
        call("zarr_group_open_array", byref(out), self.pointer, path.encode(), open_options(options))
        return Array(out.value, self.store)

    def open_group(self, path, **options):
        out = c_void_p()
        call("zarr_group_open_group", byref(out), self.pointer, path.encode(),
             byref(GroupOpenOptions(**options)))
        return Group(out.value, self.store)

    def set_attribute(self, name, value):
        call("zarr_group_attribute_set", self.pointer, name.encode(), json.dumps(value).encode())

    def delete_attribute(self, name):
        call("zarr_group_attribute_delete", self.pointer, name.encode())

    def merge_attributes(self, members, replace=False):
        call("zarr_group_attributes_merge", self.pointer, json.dumps(members).encode(), int(replace))

    def _nodes(self, name):
        found = []

        @NodeFn
        def each(_, node):
            node = node.contents
            kind = {0: None, 1: "array", 2: "group"}[node.kind]
            found.append((node.path.decode(), kind, node.zarr_format, node.depth))
            return 0
        call(name, self.pointer, each, None, None)
        return found

    def list(self):
        return self._nodes("zarr_group_list")

    def walk(self):
        return self._nodes("zarr_group_walk")


# ---- selections -------------------------------------------------------------------------

def dim_selections(items):
    """Makes (array of zarr_dim_selection, objects that it borrows) from slices, integers, lists, masks."""
    dims, keep = (DimSelection * max(1, len(items)))(), []
    for dim, item in zip(dims, items):
        if isinstance(item, slice):
            if item == slice(None):
                continue
            dim.kind = 1
            dim.start = SLICE_DEFAULT if item.start is None else item.start
            dim.stop = SLICE_DEFAULT if item.stop is None else item.stop
            dim.step = SLICE_DEFAULT if item.step is None else item.step
        elif isinstance(item, (int, np.integer)):
            dim.kind, dim.start = 2, int(item)
        else:
            item = np.asarray(item)
            item = np.ascontiguousarray(item, np.uint8 if item.dtype == bool else np.int64)
            keep.append(item)
            dim.n_list = item.size
            if item.dtype == np.uint8:
                dim.kind, dim.mask = 4, item.ctypes.data_as(POINTER(c_uint8))
            else:
                dim.kind, dim.list = 3, item.ctypes.data_as(POINTER(c_int64))
    return dims, keep


class Selection(Handle):
    free = "zarr_selection_free"

    @property
    def shape(self):
        n = lib.zarr_selection_ndim(self.pointer)
        return tuple(lib.zarr_selection_shape(self.pointer)[:n])

    @property
    def n_items(self):
        return lib.zarr_selection_n_items(self.pointer)

    @classmethod
    def _made(cls, name, *arguments):
        out = c_void_p()
        call(name, byref(out), *arguments)
        return cls(out.value)

    @classmethod
    def dims(cls, shape, *items):
        dims, keep = dim_selections(items)
        made = cls._made("zarr_selection_dims", len(shape), shape_of(shape), len(items), dims)
        del keep
        return made

    @classmethod
    def all(cls, shape):
        return cls._made("zarr_selection_all", len(shape), shape_of(shape))

    @classmethod
    def box(cls, shape, start, count):
        return cls._made("zarr_selection_box", len(shape), shape_of(shape), shape_of(start),
                         shape_of(count))

    @classmethod
    def points(cls, shape, coordinates, result_shape=None):
        """coordinates: (points, dimensions)."""
        coords = np.ascontiguousarray(coordinates, np.int64)
        return cls._made("zarr_selection_points", len(shape), shape_of(shape), len(coords),
                         coords.ctypes.data_as(SHAPE_S),
                         0 if result_shape is None else len(result_shape),
                         None if result_shape is None else shape_of(result_shape))

    @classmethod
    def mask(cls, shape, mask):
        mask = np.ascontiguousarray(mask, np.uint8)
        return cls._made("zarr_selection_mask", len(shape), shape_of(shape),
                         mask.ctypes.data_as(POINTER(c_uint8)))

    @classmethod
    def blocks(cls, shape, chunks, *items):
        dims, keep = dim_selections(items)
        made = cls._made("zarr_selection_blocks", len(shape), shape_of(shape), shape_of(chunks),
                         len(items), dims)
        del keep
        return made

    @classmethod
    def blocks_of(cls, array, *items):
        """Blocks of the array's own grid."""
        dims, keep = dim_selections(items)
        out = c_void_p()
        call("zarr_array_select_blocks", array.pointer, byref(out), len(items), dims)
        del keep
        return cls(out.value)

    @classmethod
    def parse(cls, shape, text):
        return cls._made("zarr_selection_parse", len(shape), shape_of(shape), text.encode())

    def compose(self, inner):
        return self._made("zarr_selection_compose", self.pointer, inner.pointer)


# ---- a store of Python functions ----------------------------------------------------------

RANGES, SUFFIX, LIST, WRITE, ATOMIC_PUT, LOCK, CONDITIONAL, FAST_GET, IMMUTABLE = (
    1 << i for i in range(9))
STORE_GET, STORE_PUT, STORE_ERASE, STORE_STAT = 1, 2, 3, 4
OP_IF_VERSION, OP_LOCKED, OP_WANT_VERSION = 1, 2, 4


class DictStore:
    """A store of keys and values in a dict. `caps` tells what the library may use of it. `calls` logs
    (verb, key, offset, length)."""

    def __init__(self, values=None, caps=RANGES | SUFFIX | LIST | WRITE | ATOMIC_PUT):
        self.values = {} if values is None else values
        self.caps, self.calls, self.mutex = caps, [], threading.Lock()
        self.locks, self.held, self.closed = {}, {}, 0
        self.numbers = itertools.count(1)
        self.versions = dict.fromkeys(self.values, 0)

    def run(self, op):
        key = op.key.decode()
        with self.mutex:
            self.calls.append((op.verb, key, op.offset, op.length))
            value = self.values.get(key)
            if op.flags & OP_IF_VERSION:
                assert self.caps & CONDITIONAL, "a condition that was not offered"
                now = 0 if value is None else self.versions.get(key, 0) + 1
                if op.version.word[0] != now:
                    return NUMBER["CONFLICT"], "another version"
            if op.verb in (STORE_GET, STORE_STAT):
                if value is None:
                    return NUMBER["NOT_FOUND"], "no such key"
                if self.caps & CONDITIONAL:
                    op.version.word[0] = self.versions.get(key, 0) + 1
                op.object_bytes = len(value)
                if op.verb == STORE_STAT:
                    return 0, ""
                if op.offset == U64_MAX:
                    assert self.caps & SUFFIX, "a suffix that was not offered"
                    part = value[max(0, len(value) - op.length):]
                else:
                    whole = op.offset == 0 and op.length == U64_MAX
                    assert whole or self.caps & RANGES, "a range that was not offered"
                    part = value[op.offset:] if op.length == U64_MAX else \
                        value[op.offset:op.offset + op.length]
                part = part[:op.mem.bytes]
                assert op.mem.device_type == CPU
                ctypes.memmove((op.mem.handle or 0) + op.mem.offset, part, len(part))
                op.done_bytes = len(part)
                return 0, ""
            if op.verb == STORE_PUT:
                self.values[key] = ctypes.string_at(op.mem.handle + op.mem.offset, op.mem.bytes) \
                    if op.mem.bytes else b""
                self.versions[key] = next(self.numbers)
                if op.flags & OP_WANT_VERSION:
                    op.version.word[0] = self.versions[key] + 1
                return 0, ""
            if self.values.pop(key, None) is None:
                return NUMBER["NOT_FOUND"], "no such key"
            return 0, ""

    def list(self, prefix, how):
        start = prefix + "/" if prefix else ""
        rows = set()
        with self.mutex:
            for key, value in self.values.items():
                if not key.startswith(start) or how == 2:
                    continue
                head, slash, _ = key[len(start):].partition("/")
                rows.add((start + head, 0, 1) if slash and how == 1 else (key, len(value), 0))
        return sorted(rows)


class CustomStore(Store):
    def __init__(self, context, implementation):
        self.implementation, self.failures = implementation, []
        table = StoreVtable(name=b"python")
        table.caps = type(table.caps)(self._caps)
        table.run = type(table.run)(self._run)
        table.list = type(table.list)(self._list)
        if implementation.caps & LOCK:
            table.lock = type(table.lock)(self._lock)
            table.unlock = type(table.unlock)(self._unlock)
        table.close = type(table.close)(self._close)
        self.table = table
        CustomStore.alive.append(table)  # the library may call it until close()
        out = c_void_p()
        call("zarr_store_open_custom", byref(out), context.pointer, byref(table), None, None)
        super().__init__(out.value, context)

    alive = []

    def _caps(self, _, out):
        out.contents.flags = self.implementation.caps

    def _run(self, _, op, err):
        op = op.contents
        try:
            op.status, text = self.implementation.run(op)
        except BaseException as problem:  # the test raises it again, see failures
            self.failures.append(problem)
            op.status, text = NUMBER["INTERNAL"], repr(problem)
        if op.status and err:
            err.contents.code, err.contents.message = op.status, text.encode()[:480]

    def _list(self, _, prefix, how, each, user, err):
        for key, size, is_prefix in self.implementation.list(prefix.decode(), how):
            item = StoreItem(key.encode(), U64_MAX if is_prefix else size, is_prefix, 0)
            if each(user, byref(item)):
                break
        return 0

    def _lock(self, _, key, cancel, out, err):
        with self.implementation.mutex:
            lock = self.implementation.locks.setdefault(key, threading.Semaphore(1))
        lock.acquire()
        with self.implementation.mutex:
            number = next(self.implementation.numbers)
            self.implementation.held[number] = lock
        out[0] = number
        return 0

    def _unlock(self, _, number):
        with self.implementation.mutex:
            lock = self.implementation.held.pop(number)
        lock.release()

    def _close(self, _):
        self.implementation.closed += 1
