"""zarrc_ctypes - contexts and stores of the C API, for tests only.

This is not a Python package for users, and it adds as little as possible. Arrays are in
zarrc_nodes, tensors in zarrc_memory, selections in zarrc_selection."""
import ctypes
import os
import threading
from ctypes import byref, c_int32, c_uint32, c_uint64, c_void_p

from zarrc_abi import (NUMBER, PLUGIN, U64_MAX, CheckFn, ConsolidateOptions, ContextOptions, FakeCounters,
                       GroupOpenOptions, GroupSpec, Handle, ItemFn, MigrateFn, MigrateOptions, RepackResult,
                       StoreItem, StoreOptions, StoreValue, StoreVtable, call, call_text, fakedev, lib, text_argument)
from zarrc_dict import LOCK
from zarrc_memory import NEAR
from zarrc_nodes import Array, Group, array_spec, open_options


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
            if PLUGIN:
                call("zarr_context_load", self.pointer, os.fsencode(PLUGIN))

    def add_near(self):
        """Memory of the host under the names of pinned and managed memory."""
        for kind in ("pinned", "managed"):
            table = fakedev.zarr_fakedev_vtable_near(NEAR[kind])
            call("zarr_context_register_memory", self.pointer, table, table, b"tests")

    def counters(self):
        counters = FakeCounters()
        fakedev.zarr_fakedev_count(self.device, byref(counters))
        return counters

    def dtype(self, name):
        out = c_void_p()
        call("zarr_dtype_find", byref(out), self.pointer, text_argument(name))
        return out.value

    def parse(self, dtype, value):
        """Bytes of one element from its JSON fill value."""
        dtype = self.dtype(dtype) if isinstance(dtype, str) else dtype
        element = ctypes.create_string_buffer(lib.zarr_dtype_item_bytes(dtype))
        call("zarr_dtype_parse", dtype, text_argument(value), element)
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
        if size is None:
            value = StoreValue()
            call("zarr_store_stat", self.pointer, key.encode(), byref(value), None)
            size = max(0, value.bytes - offset)
        data = ctypes.create_string_buffer(max(1, size))
        size_c = c_uint64(size)
        call("zarr_store_get", self.pointer, key.encode(), offset, data, byref(size_c), None)
        return data.raw[:size_c.value]

    def put(self, key, value):
        call("zarr_store_put", self.pointer, key.encode(), bytes(value), len(value), None)

    def erase(self, key):
        call("zarr_store_erase", self.pointer, key.encode(), None)

    def erase_prefix(self, prefix=""):
        call("zarr_store_erase_prefix", self.pointer, prefix.encode(), None)

    def keys(self, prefix="", how=0):
        found = []

        @ItemFn
        def each(_, item):
            item = item.contents
            found.append(item.key.decode() + ("/" if item.is_prefix else ""))
            return 0
        call("zarr_store_list", self.pointer, prefix.encode(), how, each, None, None)
        return sorted(found)

    def dump(self, prefix=""):
        """Every key with its bytes."""
        return {key: self.get(key) for key in self.keys(prefix)}

    def clean(self, prefix="", age=0):
        removed = c_uint64()
        call("zarr_store_clean", self.pointer, prefix.encode(), age, byref(removed), None)
        return removed.value

    def flush(self):
        call("zarr_store_flush", self.pointer, None)

    def repack(self):
        """Returns the length of the archive."""
        result = RepackResult()
        call("zarr_store_repack", self.pointer, 0, byref(result), None)
        return result.bytes_after

    def probe(self, path=""):
        kind, form = c_uint32(), c_int32()
        call("zarr_node_probe", self.pointer, path.encode(), byref(kind), byref(form), None)
        return {0: None, 1: "array", 2: "group"}[kind.value], form.value

    def delete_node(self, path):
        call("zarr_node_delete", self.pointer, path.encode())

    def copy_node(self, path, other, other_path):
        call("zarr_node_copy", self.pointer, path.encode(), other.pointer, other_path.encode(), None)

    def move_node(self, path, other, other_path):
        call("zarr_node_move", self.pointer, path.encode(), other.pointer, other_path.encode(), None)

    def consolidate(self, path="", key=None):
        group = self.group(path, consolidated=2)
        call("zarr_group_consolidate", group.pointer, byref(ConsolidateOptions(key=text_argument(key))))

    def consolidated_check(self, path=""):
        found, group = [], self.group(path, consolidated=2)

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
        return Array(out.value, self, bool(options))

    def open(self, path="", **options):
        out = c_void_p()
        call("zarr_array_open", byref(out), self.pointer, path.encode(), open_options(options))
        return Array(out.value, self, bool(options))

    def create_group(self, path="", zarr_format=0, attributes=None, flags=0):
        out = c_void_p()
        spec = GroupSpec(flags=flags, zarr_format=zarr_format, attributes=text_argument(attributes))
        call("zarr_group_create", byref(out), self.pointer, path.encode(), byref(spec), None)
        return Group(out.value, self)

    def group(self, path="", **options):
        out = c_void_p()
        if options.get("consolidated_key"):
            options["consolidated_key"] = options["consolidated_key"].encode()
        call("zarr_group_open", byref(out), self.pointer, path.encode(),
             byref(GroupOpenOptions(**options)))
        return Group(out.value, self)


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

    def _list(self, _, prefix, how, each, user, _cancel, err):
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
