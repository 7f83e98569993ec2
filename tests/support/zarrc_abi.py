"""zarrc_abi - the C functions and structs of the public API through ctypes, for tests only.

Every failure of call() is a ZarrcError. The library is $ZARRC_LIBRARY."""
import ctypes
import json
import os
from ctypes import (CFUNCTYPE, POINTER, Structure, byref, c_char, c_char_p, c_int, c_int32, c_int64, c_size_t,
                    c_ubyte, c_uint8, c_uint32, c_uint64, c_void_p, sizeof)

STATUS = {0: "OK", -1: "NOT_FOUND", -2: "EXISTS", -3: "INVALID", -4: "UNSUPPORTED", -5: "CORRUPT",
          -6: "IO", -7: "NO_MEMORY", -8: "LIMIT", -9: "DEVICE", -10: "CANCELLED", -11: "ABI",
          -12: "INTERNAL", -13: "CONFLICT", -14: "MEMORY_KIND", -15: "DENIED"}
NUMBER = {name: number for number, name in STATUS.items()}
# The device that the tests call "fake": the fake one, or that of the plug-in in $ZARRC_TEST_DEVICE, which is the name
# of a memory kind and a file ("opencl:build/x.so").
KIND, _, PLUGIN = os.environ.get("ZARRC_TEST_DEVICE", "").partition(":")
CPU, FAKE = 1, {"": 12, "cuda": 2, "opencl": 4}[KIND]
CHUNKS_OBJECTS, CHUNKS_INNER = 0, 1
U64_MAX = 2**64 - 1
SLICE_DEFAULT = -2**63


class ZarrcError(Exception):
    def __init__(self, code, message, os_code=0, item=0):
        super().__init__(f"{STATUS.get(code, code)}: {message}")
        self.code = STATUS.get(code, str(code))
        self.message, self.os_code, self.item = message, os_code, item


class SizedStruct(Structure):
    """A struct that begins with its size. Members that are not named are zero."""

    def __init__(self, **members):
        super().__init__(**members)
        if "struct_size" not in members:
            self.struct_size = sizeof(self)


class Error(Structure):
    _fields_ = [("code", c_int32), ("os_code", c_int32), ("os_domain", c_uint32),
                ("operation", c_uint32), ("item", c_uint64), ("part", ctypes.c_uint16 * 10), ("message", c_char * 484)]


class Mem(Structure):
    _fields_ = [("device_type", c_int32), ("device_id", c_int32), ("handle", c_void_p),
                ("offset", c_uint64), ("bytes", c_uint64)]


class TensorStruct(SizedStruct):
    _fields_ = [("struct_size", c_uint32), ("device_type", c_int32), ("device_id", c_int32),
                ("ndim", c_int32), ("data", c_void_p), ("dtype", c_void_p),
                ("shape", POINTER(c_uint64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64), ("data_bytes", c_uint64), ("byte_order", c_uint32),
                ("flags", c_uint32)]


class Stats(SizedStruct):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32)] + [(name, c_uint64) for name in """
        chunks_total chunks_done chunks_missing chunks_direct chunks_partial chunks_fallback
        elements bytes_stored bytes_decoded store_gets store_puts store_erases store_ranges
        index_reads index_hits copies_host bytes_host copies_up bytes_up copies_down bytes_down
        copies_device bytes_device copies_decoded_host waves read_modify_writes wall_ns bytes_heap chunks_distrusted""".split()]

    def __repr__(self):
        return " ".join(f"{n}={getattr(self, n)}" for n, _ in self._fields_[2:] if getattr(self, n))


class Limits(SizedStruct):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("metadata_bytes", c_uint64),
                ("consolidated_bytes", c_uint64), ("json_depth", c_uint32), ("rank", c_uint32),
                ("json_tokens", c_uint64), ("string_bytes", c_uint64), ("codecs", c_uint32),
                ("shard_depth", c_uint32), ("chunks_per_shard", c_uint64),
                ("chunk_bytes", c_uint64), ("encoded_bytes", c_uint64),
                ("node_name_bytes", c_uint32), ("dimension_name_bytes", c_uint32),
                ("listing_keys", c_uint64), ("dtype_bytes", c_uint64),
                ("variable_chunk_bytes", c_uint64), ("linked_directories", c_uint64)]


LogFn = CFUNCTYPE(None, c_void_p, c_uint32, c_char_p)


class ContextOptions(SizedStruct):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("allocator", c_void_p),
                ("limits", POINTER(Limits)), ("log", LogFn), ("log_user", c_void_p),
                ("log_level", c_uint32), ("max_threads", c_uint32), ("memory_bytes", c_uint64),
                ("wave_bytes", c_uint64), ("pipeline", c_char_p), ("codec_preference", c_char_p)]


class StoreOptions(SizedStruct):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("durability", c_uint32),
                ("locks", c_uint32), ("symlinks", c_uint32), ("reserved", c_uint32),
                ("device_type", c_int32), ("device_id", c_int32), ("kind", c_char_p),
                ("lock_wait_ms", c_uint32), ("reserved_1", c_uint32), ("config", c_char_p)]


class ArrayOpenOptions(SizedStruct):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("zarr_format", c_int32),
                ("consolidated", c_uint32), ("chunk_store", c_void_p), ("device_type", c_int32),
                ("device_id", c_int32), ("codec_preference", c_char_p), ("pipeline", c_char_p),
                ("empty_chunks", c_uint32), ("missing_chunks", c_uint32), ("trust", c_uint32),
                ("reserved", c_uint32)]


class ArraySpec(SizedStruct):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("zarr_format", c_int32),
                ("ndim", c_int32), ("shape", POINTER(c_uint64)), ("chunk_shape", POINTER(c_uint64)),
                ("shard_shape", POINTER(c_uint64)), ("data_type", c_char_p),
                ("fill_value", c_char_p), ("codecs", c_char_p), ("index_codecs", c_char_p),
                ("attributes", c_char_p), ("dimension_names", POINTER(c_char_p)),
                ("key_encoding", c_char_p), ("separator", c_char), ("order", c_char),
                ("reserved", ctypes.c_uint16), ("reserved2", c_uint32), ("document", c_char_p),
                ("chunk_grid", c_char_p)]


ProgressFn = CFUNCTYPE(None, c_void_p, POINTER(Stats))


class Tuning(SizedStruct):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("wave_bytes", c_uint64),
                ("memory_bytes", c_uint64), ("coalesce_gap", c_uint64), ("coalesce_bytes", c_uint64),
                ("pipeline", c_char_p), ("codec_preference", c_char_p), ("inner_order", c_uint32),
                ("reserved", c_uint32)]


class IoOptions(SizedStruct):
    """Members of Tuning may be given, too."""
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("missing_chunks", c_uint32),
                ("empty_chunks", c_uint32), ("outside", c_uint32), ("trust", c_uint32),
                ("field", c_char_p), ("stats", POINTER(Stats)), ("heap", c_void_p),
                ("present", POINTER(c_uint8)), ("n_present", c_uint64), ("progress", ProgressFn),
                ("progress_user", c_void_p), ("max_threads", c_uint32), ("reserved", c_uint32),
                ("cancel", c_void_p), ("stream", c_void_p), ("tuning", POINTER(Tuning))]

    def __init__(self, **members):
        own = {n: members.pop(n) for n, _ in Tuning._fields_[2:-1] if n in members}
        super().__init__(**members)
        if own:
            self.tuning = ctypes.pointer(Tuning(**own))


class ShapeOptions(SizedStruct):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("cancel", c_void_p)]


class ConsolidateOptions(SizedStruct):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("key", c_char_p),
                ("cancel", c_void_p)]


class VlenColumn(SizedStruct):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("n", c_uint64),
                ("offsets", POINTER(c_uint64)), ("bytes", c_void_p), ("owner", c_void_p)]


class DimSelection(Structure):
    _fields_ = [("kind", c_uint32), ("reserved", c_uint32), ("start", c_int64), ("stop", c_int64),
                ("step", c_int64), ("list", POINTER(c_int64)), ("mask", POINTER(c_uint8)),
                ("n_list", c_uint64)]


class ChunkInfo(Structure):
    _fields_ = [("struct_size", c_uint32), ("ndim", c_int32), ("coordinates", POINTER(c_uint64)),
                ("key", c_char_p), ("offset", c_uint64), ("bytes", c_uint64), ("is_chunk", c_uint32),
                ("reserved", c_uint32)]


class VerifyItem(Structure):
    _fields_ = [("struct_size", c_uint32), ("status", c_int32), ("key", c_char_p),
                ("message", c_char_p)]


class GroupOpenOptions(SizedStruct):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("zarr_format", c_int32),
                ("consolidated", c_uint32), ("consolidated_key", c_char_p)]


class GroupSpec(SizedStruct):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("zarr_format", c_int32),
                ("reserved", c_uint32), ("attributes", c_char_p)]


class NodeItem(Structure):
    _fields_ = [("struct_size", c_uint32), ("kind", c_uint32), ("path", c_char_p),
                ("name", c_char_p), ("zarr_format", c_int32), ("depth", c_int32),
                ("metadata", c_char_p)]


class StoreItem(Structure):
    _fields_ = [("key", c_char_p), ("bytes", c_uint64), ("is_prefix", c_uint32),
                ("is_linked", c_uint32), ("age_s", c_uint64)]


class RepackResult(SizedStruct):
    _fields_ = [("struct_size", c_uint32), ("is_needed", c_uint32), ("bytes_before", c_uint64), ("bytes_after", c_uint64)]


class StoreVersion(Structure):
    _fields_ = [("bytes", c_ubyte * 64)]


class StoreValue(SizedStruct):
    _fields_ = [("struct_size", c_uint32), ("has_version", c_uint32), ("bytes", c_uint64), ("done_bytes", c_uint64),
                ("up_bytes", c_uint64), ("down_bytes", c_uint64), ("version", StoreVersion)]


class StoreOp(Structure):
    _fields_ = [("verb", c_uint32), ("flags", c_uint32), ("key", c_char_p), ("offset", c_uint64),
                ("length", c_uint64), ("mem", Mem), ("version", StoreVersion), ("lock", c_void_p),
                ("done_bytes", c_uint64), ("object_bytes", c_uint64), ("status", c_int32),
                ("os_code", c_int32), ("tag", c_void_p), ("up_bytes", c_uint64),
                ("down_bytes", c_uint64), ("cancel", c_void_p)]


class StoreCaps(SizedStruct):
    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("device_types", c_void_p),
                ("n_device_types", c_uint32), ("parallel", c_uint32)]


class MigrateItem(Structure):
    _fields_ = [("struct_size", c_uint32), ("action", c_uint32), ("kind", c_uint32),
                ("reserved", c_uint32), ("path", c_char_p), ("key", c_char_p), ("text", c_char_p)]


MigrateFn = CFUNCTYPE(None, c_void_p, POINTER(MigrateItem))


class MigrateOptions(SizedStruct):
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


class StoreVtable(SizedStruct):
    _fields_ = [
        ("struct_size", c_uint32), ("flags", c_uint32), ("name", c_char_p), ("open", c_void_p),
        ("caps", CFUNCTYPE(None, c_void_p, POINTER(StoreCaps))),
        ("run", CFUNCTYPE(None, c_void_p, POINTER(StoreOp), E)), ("submit", c_void_p),
        ("cancel", c_void_p),
        ("list", CFUNCTYPE(c_int32, c_void_p, c_char_p, c_uint32, ItemFn, c_void_p, c_void_p, E)),
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
    "zarr_memory_alloc": (T, [POINTER(Mem), P, T, T, U, E]), "zarr_memory_free": (None, [P, POINTER(Mem)]),
    "zarr_memory_classify": (None, [P, P, POINTER(T), POINTER(T)]),
    "zarr_context_load": (T, [P, c_char_p, E]), "zarr_memory_copy": (T, [P, POINTER(Mem), POINTER(Mem), U, E]),
    "zarr_dtype_find": (T, [OUT, P, S, E]), "zarr_dtype_name": (S, [P]), "zarr_dtype_v2": (S, [P]),
    "zarr_dtype_kind": (c_uint32, [P]), "zarr_dtype_item_bytes": (U, [P]),
    "zarr_dtype_swap_bytes": (c_uint32, [P]), "zarr_dtype_print": (T, [P, P, *TEXT]),
    "zarr_dtype_parse": (T, [P, S, P, E]),
    "zarr_store_open": (T, [OUT, P, S, POINTER(StoreOptions), E]),
    "zarr_store_open_custom": (T, [OUT, P, POINTER(StoreVtable), P, POINTER(StoreOptions), E]),
    "zarr_store_open_zip": (T, [OUT, P, S, P, E]), "zarr_store_flush": (T, [P, P, E]), "zarr_store_free": (None, [P]),
    "zarr_store_url": (S, [P]), "zarr_store_get": (T, [P, S, U, P, POINTER(U), P, E]),
    "zarr_store_stat": (T, [P, S, POINTER(StoreValue), P, E]),
    "zarr_store_put": (T, [P, S, P, U, P, E]), "zarr_store_erase": (T, [P, S, P, E]),
    "zarr_store_erase_prefix": (T, [P, S, P, E]),
    "zarr_store_list": (T, [P, S, c_uint32, ItemFn, P, P, E]),
     "zarr_store_clean": (T, [P, S, U, POINTER(U), P, E]),
     "zarr_store_repack": (T, [P, c_uint32, POINTER(RepackResult), P, E]),
    "zarr_selection_dims": (T, [OUT, T, SHAPE, T, POINTER(DimSelection), E]),
    "zarr_selection_box": (T, [OUT, T, SHAPE, SHAPE, SHAPE, E]),
    "zarr_selection_points": (T, [OUT, T, SHAPE, U, SHAPE_S, T, SHAPE, E]),
    "zarr_selection_mask": (T, [OUT, T, SHAPE, POINTER(c_uint8), E]),
    "zarr_selection_parse": (T, [OUT, T, SHAPE, S, E]), "zarr_selection_compose": (T, [OUT, P, P, E]),
    "zarr_selection_ndim": (c_int32, [P]), "zarr_selection_shape": (SHAPE, [P]),
    "zarr_selection_n_items": (U, [P]), "zarr_selection_free": (None, [P]),
    "zarr_array_open": (T, [OUT, P, S, POINTER(ArrayOpenOptions), E]),
    "zarr_array_create": (T, [OUT, P, S, POINTER(ArraySpec), POINTER(ArrayOpenOptions), E]),
    "zarr_array_free": (None, [P]), "zarr_array_zarr_format": (c_int32, [P]),
    "zarr_array_path": (S, [P]), "zarr_array_ndim": (c_int32, [P]), "zarr_array_shape": (SHAPE, [P]),
    "zarr_array_block_shape": (SHAPE, [P]), "zarr_array_chunk_shape": (SHAPE, [P]),
    "zarr_array_chunk_grid": (S, [P]), "zarr_array_block_counts": (None, [P, SHAPE]),
    "zarr_array_block_extent": (T, [P, SHAPE, SHAPE, SHAPE, E]),
    "zarr_array_select_blocks": (T, [OUT, P, T, POINTER(DimSelection), E]),
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
    "zarr_array_refresh": (T, [P, POINTER(c_int), P, E]),
    "zarr_array_attribute_get": (T, [P, S, *TEXT]), "zarr_array_attribute_set": (T, [P, S, S, P, E]),
    "zarr_array_attribute_delete": (T, [P, S, P, E]),
    "zarr_array_attributes_merge": (T, [P, S, c_int, P, E]),
    "zarr_array_list_blocks": (T, [P, c_uint32, ChunkFn, P, POINTER(IoOptions), E]),
    "zarr_array_block_list_chunks": (T, [P, SHAPE, ChunkFn, P, POINTER(IoOptions), E]),
    "zarr_array_block_read_encoded": (T, [P, SHAPE, P, POINTER(U), P, E]),
    "zarr_array_block_write_encoded": (T, [P, SHAPE, P, U, P, E]),
    "zarr_array_block_erase": (T, [P, SHAPE, P, E]), "zarr_array_block_key": (T, [P, SHAPE, *TEXT]),
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
    "zarr_group_open_node": (T, [OUT, OUT, P, S, POINTER(ArrayOpenOptions), POINTER(GroupOpenOptions), E]),
    "zarr_node_open": (T, [OUT, OUT, P, S, POINTER(ArrayOpenOptions), POINTER(GroupOpenOptions), E]),
    "zarr_group_open_group": (T, [OUT, P, S, POINTER(GroupOpenOptions), E]),
    "zarr_group_attribute_get": (T, [P, S, *TEXT]), "zarr_group_attribute_set": (T, [P, S, S, P, E]),
    "zarr_group_attribute_delete": (T, [P, S, P, E]),
    "zarr_group_attributes_merge": (T, [P, S, c_int, P, E]),
    "zarr_group_list": (T, [P, NodeFn, P, P, E]), "zarr_group_walk": (T, [P, NodeFn, P, P, E]),
    "zarr_node_other_format": (S, [P, S]),
    "zarr_node_probe": (T, [P, S, POINTER(c_uint32), POINTER(c_int32), P, E]),
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
            ("zarr_fakedev_vtable_near", P, [T]),
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


def shape_argument(values):
    values = [int(v) for v in values]
    return (c_uint64 * max(1, len(values)))(*values)


def text_argument(value):
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
