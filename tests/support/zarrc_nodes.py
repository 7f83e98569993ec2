"""zarrc_nodes - arrays, groups and requests of the C API."""
import ctypes
import itertools
import json
import os
import re
from ctypes import byref, c_char_p, c_int, c_uint64, c_void_p

import numpy as np

from elsewhere import open_elsewhere
from zarrc_abi import (CHUNKS_OBJECTS, STATUS, U, U64_MAX, ArrayOpenOptions, ArraySpec, ChunkFn,
                       GroupOpenOptions, Handle, NodeFn, ShapeOptions, Stats, ThenFn, VerifyFn, VlenColumn,
                       call, call_text, lib, shape_argument, text_argument)
from zarrc_memory import Tensor, io_options

OVERWRITE, NO_PARENTS, INDEX_AT_START, IF_MISSING = 1, 2, 4, 8
NO_FALLBACK = "ZARRC_TEST_NO_FALLBACK" in os.environ  # a read fails if an implementation of a codec declines a chunk,
SMALL_BLOCKS = re.compile(r'"blocksize": ?([1-9]\d{0,2}|[123]\d{3})\b')  # except blosc with many blocks of less than 4 KiB


def array_spec(shape, dtype, zarr_format=0, chunks=None, shards=None, fill_value=None, codecs=None,
               index_codecs=None, attributes=None, dimension_names=None, key_encoding=None,
               separator="", order="", flags=0, document=None, chunk_grid=None):
    spec = ArraySpec(flags=flags, zarr_format=zarr_format, ndim=len(shape))
    if document is not None:
        spec.document = text_argument(document)
        return spec, None
    spec.shape = shape_argument(shape)
    if chunks is not None:
        spec.chunk_shape = shape_argument(chunks)
    if shards is not None:
        spec.shard_shape = shape_argument(shards)
    spec.data_type = text_argument(dtype)
    if fill_value is not None:  # a value; bytes are its JSON text
        spec.fill_value = fill_value if isinstance(fill_value, bytes) else json.dumps(fill_value).encode()
    for name, value in [("codecs", codecs), ("index_codecs", index_codecs),
                        ("attributes", attributes)]:
        if value is not None:
            setattr(spec, name, text_argument(value))
    if dimension_names is not None:
        names = [None if n is None else n.encode() for n in dimension_names]
        spec.dimension_names = (c_char_p * max(1, len(names)))(*names)
    if key_encoding:
        spec.key_encoding = text_argument(key_encoding)
    if chunk_grid is not None:
        spec.chunk_grid = text_argument(chunk_grid)
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
    if isinstance(options.get("chunk_store"), Handle):
        options["chunk_store"] = options["chunk_store"].pointer
    return byref(ArrayOpenOptions(**options))


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

    def __init__(self, pointer, store, has_options=False):
        super().__init__(pointer)
        self.store, self.context, self.has_options = store, store.context, has_options

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
        found = lib.zarr_array_block_shape(self.pointer)
        return tuple(found[:self.ndim]) if found else None

    @property
    def chunk_grid(self):
        return json.loads(lib.zarr_array_chunk_grid(self.pointer))

    @property
    def chunk_counts(self):
        counts = (c_uint64 * max(1, self.ndim))()
        lib.zarr_array_block_counts(self.pointer, counts)
        return tuple(counts[:self.ndim])

    def chunk_extent(self, *chunk):
        """(origin, shape)"""
        origin, shape = ((c_uint64 * max(1, self.ndim))() for _ in range(2))
        call("zarr_array_block_extent", self.pointer, shape_argument(chunk), origin, shape)
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
        tensor, source = Tensor(view, self.context, memory), open_elsewhere(self)
        if NO_FALLBACK:
            options.setdefault("stats", Stats())
        call("zarr_array_read", source.pointer, selection and selection.pointer, byref(tensor.struct),
             byref(io_options(**options)))
        if NO_FALLBACK and not SMALL_BLOCKS.search(self.metadata):
            assert options["stats"].chunks_fallback == 0, f"chunks were declined: {options['stats']}, {self.metadata}"
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
        column, source = VlenColumn(), open_elsewhere(self)
        call("zarr_array_read_vlen", source.pointer, selection and selection.pointer,
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
        call("zarr_array_resize", self.pointer, shape_argument(shape), byref(ShapeOptions(flags=flags)))

    def append(self, view, axis=0, memory="host", **options):
        tensor = Tensor(np.asarray(view), self.context, memory)
        first = U()
        call("zarr_array_append", self.pointer, axis, byref(tensor.struct), byref(first),
             byref(io_options(**options)))
        return first.value

    def refresh(self):
        changed = c_int()
        call("zarr_array_refresh", self.pointer, byref(changed), None)
        return bool(changed.value)

    def attribute(self, name):
        return json.loads(call_text("zarr_array_attribute_get", self.pointer, name.encode()))

    def set_attribute(self, name, value):
        call("zarr_array_attribute_set", self.pointer, name.encode(), json.dumps(value).encode(), None)

    def delete_attribute(self, name):
        call("zarr_array_attribute_delete", self.pointer, name.encode(), None)

    def merge_attributes(self, members, replace=False):
        call("zarr_array_attributes_merge", self.pointer, json.dumps(members).encode(), int(replace), None)

    # chunks
    def chunk_list(self, what=CHUNKS_OBJECTS):
        found = []

        @ChunkFn
        def each(_, info):
            info = info.contents
            found.append((tuple(info.coordinates[:info.ndim]), info.key.decode(), info.offset,
                          info.bytes, bool(info.is_chunk)))
            return 0
        call("zarr_array_list_blocks", self.pointer, what, each, None, None)
        return sorted(found)

    def chunk_key(self, chunk):
        return call_text("zarr_array_block_key", self.pointer, shape_argument(chunk))

    def chunk_encoded(self, chunk, room=1 << 20):
        data, size = ctypes.create_string_buffer(room), c_uint64(room)
        call("zarr_array_block_read_encoded", self.pointer, shape_argument(chunk), data, byref(size), None)
        return data.raw[:size.value]

    def set_chunk_encoded(self, chunk, value):
        call("zarr_array_block_write_encoded", self.pointer, shape_argument(chunk), value, len(value), None)

    def erase_chunk(self, chunk):
        call("zarr_array_block_erase", self.pointer, shape_argument(chunk), None)

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
        return Array(out.value, self.store, bool(options))

    def open_group(self, path, **options):
        out = c_void_p()
        call("zarr_group_open_group", byref(out), self.pointer, path.encode(),
             byref(GroupOpenOptions(**options)))
        return Group(out.value, self.store)

    def set_attribute(self, name, value):
        call("zarr_group_attribute_set", self.pointer, name.encode(), json.dumps(value).encode(), None)

    def delete_attribute(self, name):
        call("zarr_group_attribute_delete", self.pointer, name.encode(), None)

    def merge_attributes(self, members, replace=False):
        call("zarr_group_attributes_merge", self.pointer, json.dumps(members).encode(), int(replace), None)

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
