"""zarrc_memory - tensors of host memory and of the fake device, options of a request, heaps.

Host tensors are numpy views of any strides and byte order; fake device tensors
(tests/fakedev) have the same layout in guarded memory. A plug-in may take the place of the
fake device: see zarrc_abi. Then pinned and managed memory are its own, if it has them."""
import ctypes
import os
import weakref
from ctypes import byref, c_int64, c_uint64, c_void_p

import numpy as np

from zarrc_abi import CPU, FAKE, KIND, PLUGIN, Handle, IoOptions, Mem, ProgressFn, TensorStruct, call, fakedev, lib


# Kinds of memory that the CPU reads and writes: memory of the host can have their names.
NEAR = {"host": CPU, "pinned": 3, "managed": 13}
# Those that the plug-in for CUDA has itself. Their tensors are in memory of its making, not in numpy's.
OWN = {"pinned", "managed"} if KIND == "cuda" else set()


class Block:
    """Memory of a device, or of a plug-in's other kinds, freed with the object."""

    def __init__(self, context, size, device_type=FAKE):
        self.context, self.size, self.mem = context, size, Mem()
        call("zarr_memory_alloc", byref(self.mem), context.pointer, device_type, 0, size)
        assert self.mem.device_type == device_type
        self._free = weakref.finalize(self, lib.zarr_memory_free, context.pointer, byref(self.mem))
        self._free.atexit = False
        self.pid = os.getpid()

    def poke(self, data):
        data = np.ascontiguousarray(data).view(np.uint8).reshape(-1)
        assert data.nbytes == self.size
        if self.size and PLUGIN:
            self.copy(self.mem, host_block(data))
        elif self.size:
            assert fakedev.zarr_fakedev_poke(self.mem.handle, 0, data.ctypes.data, self.size) == 0

    def peek(self):
        data = np.empty(self.size, np.uint8)
        if self.size and PLUGIN:
            self.copy(host_block(data), self.mem)
        elif self.size:
            assert fakedev.zarr_fakedev_peek(self.mem.handle, 0, data.ctypes.data, self.size) == 0
        return data

    def copy(self, to, of):
        call("zarr_memory_copy", self.context.pointer, byref(to), byref(of), self.size)


def host_block(data):
    return Mem(device_type=CPU, handle=data.ctypes.data, bytes=data.nbytes)


def owner_bytes(view):
    """The numpy array that owns the bytes of a view."""
    base = view
    while isinstance(base.base, np.ndarray):
        base = base.base
    return base.reshape(-1, order="A").view(np.uint8) if base.size else np.empty(0, np.uint8)


class Tensor:
    """The tensor of a read or a write: a numpy view, or its copy in a block.

    After a read, fetch() brings the device's bytes back into the view's own memory, the
    bytes between the elements included, so one check serves both memories."""

    def __init__(self, view, context=None, memory="host", dtype=None):
        self.view, self.memory = view, memory
        base = owner_bytes(view)
        offset = view.__array_interface__["data"][0] - base.ctypes.data if base.size else 0
        self.shape = (c_uint64 * max(1, view.ndim))(*view.shape)
        self.strides = (c_int64 * max(1, view.ndim))(*view.strides)
        order = {"<": 1, ">": 2}.get(view.dtype.byteorder, 0)
        self.base, self.block = base, None
        data, device = base.ctypes.data, NEAR.get(memory, FAKE)
        if memory not in NEAR or memory in OWN:
            self.block = Block(context, base.nbytes, device)
            self.block.poke(base)
            data, offset = self.block.mem.handle, offset + self.block.mem.offset
        self.struct = TensorStruct(device_type=device, ndim=view.ndim, data=data, dtype=dtype,
                                   shape=self.shape, strides=self.strides, byte_offset=offset,
                                   data_bytes=base.nbytes, byte_order=order)

    def fetch(self):
        if self.block:
            self.base[...] = self.block.peek()
        return self.view


def io_options(stats=None, pipeline=None, progress=None, field=None, heap=None, **options):
    if pipeline:
        options["pipeline"] = pipeline.encode()
    opts = IoOptions(**options)
    if heap is not None:
        opts.heap = heap.pointer
    if field:
        opts.field = field.encode()
    if stats is not None:
        opts.stats = ctypes.pointer(stats)
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
