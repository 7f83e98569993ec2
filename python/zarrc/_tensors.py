"""Elements for other libraries: by DLPack, the CUDA array interface and Arrow."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _core, _devices, _dtypes, _indexing, _libraries, _parts
from ._settings import settings
from ._stats import Explanation
from .errors import UnsupportedError, make_error

HOST = (_core.ZARR_DEVICE_CPU, 0)


class Tensor:
    """Elements in host memory for libraries that speak DLPack. ``array`` is NumPy's view of them."""

    def __init__(self, of: _core.Array, array: np.ndarray[Any, Any]) -> None:
        self._of, self.array = of, array

    def __dlpack__(self, *, stream: object = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        if stream is not None or dl_device is not None and _devices.parse_dl_device(dl_device) != HOST:
            raise BufferError("the elements are in host memory")
        memory = self.array.copy() if copy else self.array
        if not self._of.dtype.isnative and memory.dtype.isnative:  # the extension has the byte order of the array
            return memory.__dlpack__(max_version=max_version) if max_version else memory.__dlpack__()
        return self._of._tensor(memory).capsule(max_version is not None and max_version[0] >= 1)

    def __dlpack_device__(self) -> tuple[int, int]:
        return HOST

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self.array, dtype=dtype) if copy else np.asarray(self.array, dtype=dtype)


class DeviceTensor:
    """Elements in memory of a device, for libraries that speak DLPack or the CUDA array interface:
    ``torch.from_dlpack(t)``, ``cupy.from_dlpack(t)``, ``jax.dlpack.from_dlpack(t)``. They are there
    already, so no stream has to wait. Memory is freed with the last object that uses it. It is that of the plug-in, or of
    the function in the setting `device_allocators`."""

    def __init__(self, block: _core.Device, dtype: np.dtype[Any]) -> None:
        self._block, self.dtype = block, dtype

    @classmethod
    def make(cls, array: _core.Array, selection: _core.Selection | None, device: str) -> DeviceTensor:
        """Memory for what a selection reads."""
        allocate = (settings["device_allocators"] or {}).get(device.partition(":")[0])
        given = None if allocate is None else lambda n: _devices.allocated_block(allocate(n), n)
        try:
            block = array._device(array.shape if selection is None else selection.shape, device, given)
        except UnsupportedError as problem:
            if "no memory backend" not in problem.reason:
                raise  # such as a missing driver
            raise make_error(UnsupportedError, f"{device}: no plug-in that is loaded has this kind of memory: open the store with "
                         f"device={device!r}, or set zarrc.config[\"device\"], [\"plugins\"] or ZARRC_PLUGINS",
                         store=problem.store, node=f"/{array.path}") from problem
        return cls(block, array.dtype.newbyteorder("="))

    @classmethod
    def read(cls, array: _core.Array, selection: _core.Selection | None, device: str, options: dict[str, Any]) -> DeviceTensor:
        _check_plain(array)
        if (there := _indexing.find_handle(array, device)) is None:
            host = _native(array, selection)
            _indexing.read(array, selection, out=host, options=options)
            return cls.from_host(host, device, options)
        found = cls.make(there, selection, device)
        there._read(selection, found._block, _dtypes.NATIVE, found.after_allocator(options))
        return found

    @classmethod
    def from_host(cls, host: np.ndarray[Any, Any], device: str, options: dict[str, Any]) -> DeviceTensor:
        """Elements that were read into host memory, on a device."""
        between = _indexing.between_memories(host.shape, host.dtype, device)
        between._write(None, host, _dtypes.NATIVE, {})
        _libraries.count(options, "up", host)
        return cls.read(between, None, device, {})

    @classmethod
    def read_many(cls, array: _core.Array, selections: Sequence[_core.Selection], device: str, options: dict[str, Any]) -> list[DeviceTensor]:
        _check_plain(array)
        if (there := _indexing.find_handle(array, device)) is None:
            hosts = [_native(array, one) for one in selections]
            _parts.read(array, selections, hosts, options)
            return [cls.from_host(host, device, options) for host in hosts]
        found = [cls.make(there, one, device) for one in selections]
        options = found[0].after_allocator(options) if found else options
        there._read_many(tuple(selections), tuple(one._block for one in found), (_dtypes.NATIVE,) * len(found), options)
        return found

    def after_allocator(self, options: dict[str, Any]) -> dict[str, Any]:
        """Options of a call that fills the memory: an allocator may give what queued work still uses."""
        return {**options, "stream": _indexing.DEFAULT_STREAM} if self._block.is_borrowed else options

    @property
    def shape(self) -> tuple[int, ...]:
        return self._block.shape

    @property
    def ndim(self) -> int:
        return len(self._block.shape)

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tensor without dimensions has no length")
        return self.shape[0]

    def __dlpack__(self, *, stream: object = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        if copy or dl_device is not None and _devices.parse_dl_device(dl_device) != self._block.place:
            raise BufferError("the elements stay where they are")
        return self._block.capsule(max_version is not None and max_version[0] >= 1)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._block.place

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self._block.place[0] not in _indexing.CUDA_KINDS:
            raise AttributeError("the memory is not of CUDA")
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self._block.pointer if self.nbytes else 0, False),
                "strides": None, "stream": None, "version": 3}

    def __array__(self, *unused: Any, **options: Any) -> Any:
        raise TypeError("the elements are on a device: read them without device=, or copy them by the library that uses them")

    def __repr__(self) -> str:
        kind, number = self._block.place
        return f"<DeviceTensor shape={self.shape} dtype={self.dtype} device={_devices.KINDS.get(kind, kind)}:{number}>"


def read(array: _core.Array, selection: _core.Selection | None, like: _libraries.Like | None, *, fields: Any = None,
         options: dict[str, Any] | None = None) -> Any:
    """What a selection reads, as an array of a library. Text, bytes, times and structs, which the others lack, stay NumPy's."""
    options = options or {}
    if like is None or fields:
        found = _indexing.read(array, selection, fields=fields, options=options)
        return found if like is None else _give_host(found, like, options)
    there = _indexing.find_handle(array, choose_device(array, like))
    if there is not None:
        return take(like, DeviceTensor.read(there, selection, str(like.device), options))
    return give(array, _indexing.read(array, selection, out=host_memory(array, selection, like), options=options), like, options)


def choose_device(array: _core.Array, like: _libraries.Like) -> str | None:
    """The device into whose memory elements are read for a library; None: they are read into host memory."""
    return None if like.device == "cpu" or not _is_for_others(array) else like.device


def _check_plain(array: _core.Array) -> None:
    if array._how != _dtypes.PLAIN:
        raise TypeError(f"elements of type {array.dtype} are in host memory only")


def host_memory(array: _core.Array, selection: _core.Selection | None, like: _libraries.Like) -> np.ndarray[Any, Any] | None:
    """What the elements for a library are read into; None: any array of NumPy."""
    return None if like.library == "numpy" or not _is_for_others(array) else _native(array, selection)


def give(array: _core.Array, found: Any, like: _libraries.Like, options: dict[str, Any]) -> Any:
    """What was read into host memory, as an array of a library."""
    if like.library != "numpy" and like.device == "cpu" and _is_for_others(array):
        return take(like, Tensor(array, found))
    return _give_host(found, like, options)


def take(like: _libraries.Like, tensor: Tensor | DeviceTensor) -> Any:
    """An array with the memory of a tensor."""
    return _libraries.take(like, tensor, tensor.array.dtype if isinstance(tensor, Tensor) else tensor.dtype)


def read_many(array: _core.Array, selections: Sequence[_core.Selection], like: _libraries.Like, options: dict[str, Any]) -> list[Any]:
    """The same for several selections, by one request where the library has memory for the elements."""
    there = _indexing.find_handle(array, choose_device(array, like))
    if there is not None:
        return [take(like, one) for one in DeviceTensor.read_many(there, selections, str(like.device), options)]
    hosts = [host_memory(array, one, like) for one in selections]
    found = _parts.read(array, selections, None if hosts and hosts[0] is None else hosts, options)
    return [give(array, one, like, options) for one in found]


def _is_for_others(array: _core.Array) -> bool:
    return array._how == _dtypes.PLAIN and _libraries.is_number(array.dtype)


def _native(array: _core.Array, selection: _core.Selection | None) -> np.ndarray[Any, Any]:
    """New memory for a selection, in the byte order of the machine."""
    dtype = array.dtype.newbyteorder("=")
    return _indexing.fresh(array, array.shape if selection is None else selection.shape, dtype)


def _give_host(found: Any, like: _libraries.Like, options: dict[str, Any]) -> Any:
    """The same by a copy that the library makes."""
    host = np.asarray(found)
    if like.library == "numpy":
        return _libraries.from_host(like, found)
    if not _libraries.is_number(host.dtype):
        return found
    if like.device != "cpu":
        _libraries.count(options, "up", host)
    return _libraries.from_host(like, host.astype(host.dtype.newbyteorder("="), copy=False))


def explain(array: _core.Array, selection: _core.Selection, out: Any, value: Any, like: _libraries.Like | None, device: str | None,
            options: dict[str, Any]) -> Explanation:
    """What a read, or a write of a value, would do."""
    given, is_write = out if value is None else value, value is not None
    tensor = given if given is not None and (_indexing.is_foreign(given) if out is None else _indexing.is_tensor(given)) else None
    if tensor is not None:
        _libraries.check_usable(tensor, is_out=not is_write)
        device = _libraries.find_device(tensor)
    elif given is not None:
        device = None
    elif like is not None:
        device = like.device if _is_for_others(array) else None
    notes = []
    if is_write and tensor is not None and (dtype := _libraries.find_other_dtype(tensor, array.dtype)):
        is_there = _libraries.find_name(tensor) in _libraries.LIBRARIES and _libraries.is_number(array.dtype)
        notes.append(f"{_libraries.find_name(tensor) if is_there else 'NumPy'} converts {dtype} to {array.dtype}, in memory of {device if is_there else 'the host'}")
        device = device if is_there else None
    there = None if device is None or _libraries.is_host(device) else _indexing.find_handle(array, device)
    if there is not None:
        return Explanation(notes, *there._explain(is_write, selection, there._device((1,) * len(selection.shape), str(device), None), options))
    if device is not None and not _libraries.is_host(device):
        notes.append(f"elements are staged through host memory, because {array.store} cannot be opened again with the plug-in for {device}")
    return Explanation(notes, *array._explain(is_write, selection, None, options))


class Column:
    """Elements of variable length, one after the other in C order, for Arrow's PyCapsule interface."""

    def __init__(self, of: _core.Array, selection: _core.Selection) -> None:
        self._of, self._selection = of, selection

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Any, Any]:
        return self._of._arrow(self._selection)
