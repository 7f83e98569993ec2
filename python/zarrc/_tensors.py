"""Elements for other libraries: by DLPack, the CUDA array interface and Arrow."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import _core, _devices, _dtypes, _indexing
from ._settings import settings
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
    def make(cls, array: _core.Array, selection: _core.Selection, device: str) -> DeviceTensor:
        """Memory for what a selection reads."""
        if array._how != _dtypes.PLAIN:
            raise TypeError(f"elements of type {array.dtype} are in host memory only")
        allocate = (settings["device_allocators"] or {}).get(device.partition(":")[0])
        given = None if allocate is None else lambda n: _devices.allocated_block(allocate(n), n)
        try:
            block = array._device(selection.shape, device, given)
        except UnsupportedError as problem:
            if "no memory backend" not in problem.reason:
                raise  # such as a missing driver
            raise make_error(UnsupportedError, f"{device}: no plug-in that is loaded has this kind of memory: open the store with "
                         f"device={device!r}, or set zarrc.config[\"device\"], [\"plugins\"] or ZARRC_PLUGINS",
                         store=problem.store, node=f"/{array.path}") from problem
        return cls(block, array.dtype.newbyteorder("="))

    @classmethod
    def read(cls, array: _core.Array, selection: _core.Selection, device: str, options: dict[str, Any]) -> DeviceTensor:
        found = cls.make(array, selection, device)
        array._read(selection, found._block, _dtypes.NATIVE, found.after_allocator(options))
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


def is_host(device: str) -> bool:
    return _devices.check_device(device) in ("cpu", "host", "cpu:0", "host:0")


class Column:
    """Elements of variable length, one after the other in C order, for Arrow's PyCapsule interface."""

    def __init__(self, of: _core.Array, selection: _core.Selection) -> None:
        self._of, self._selection = of, selection

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Any, Any]:
        return self._of._arrow(self._selection)
