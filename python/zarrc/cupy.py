"""Arrays whose elements are CuPy's, between files and memory of a GPU.

    import zarrc.cupy

    z = zarrc.cupy.open_array("x.zarr")
    z[:100]  # an array of CuPy, decoded on the GPU where a codec can be
    z[:100] = cupy.ones((100, 10))

What `open_array` does with local files is GPUDirect Storage where cuFile reaches them, and else reads and writes
through pinned host memory; a warning then says why. docs/python/from-kvikio.md has more.
"""
from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import cupy

from . import _api, _array, _core, _devices, _indexing, _tensors
from ._places import find_local_path

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

    from . import _arguments
    from ._types import ArrayLike, Key, Memory, Progress, StoreLike

__all__ = ["Array", "open_array"]


def open_array(store: StoreLike = None, *, device: str = "cuda:0", gds: bool = True, **kwargs: Unpack[_arguments.CupyOpenArray]) -> Array:
    """Opens an array, or creates one, as `zarrc.open_array` does with the same arguments, for a GPU.

    ``gds=False`` opens a path as an ordinary local store. Codecs and the default compressor of new arrays are those of
    ``device``; ``trust="full"`` lets decoders work on the GPU that do not check their input.
    """
    if not _devices.is_of_cuda(_devices.check_device(device)):
        raise ValueError(f"device: {device!r} is not one of CUDA")
    path = find_local_path(os.fspath(store)) if gds and isinstance(store, (str, os.PathLike)) else None
    if path is not None and not path.startswith(("memory:", "gds:")):
        store = f"gds://{os.path.abspath(path)}"
    return Array(_api.open_array(store, device=device, **kwargs), device)


class _Indexer:
    """`oindex`, `vindex` or `blocks`."""

    def __init__(self, of: Array, name: str) -> None:
        self._of, self._name = of, name

    def __getitem__(self, key: Key) -> cupy.ndarray:
        return self._of._read(_SELECT[self._name](self._of.array, key))

    def __setitem__(self, key: Key, value: ArrayLike) -> None:
        getattr(self._of.array, self._name)[key] = value


class Array:
    """A `zarrc.Array` whose ``[]``, `oindex`, `vindex` and `blocks` give arrays of CuPy, and take them. All else is that
    of the array, which ``array`` is."""

    def __init__(self, array: _array.Array, device: str = "cuda:0") -> None:
        self.array, self.device = array, device

    def _read(self, selection: _core.Selection) -> cupy.ndarray:
        return cupy.from_dlpack(_tensors.DeviceTensor.read(self.array, selection, self.device, {}))

    def __getitem__(self, key: Key) -> cupy.ndarray:
        return self._read(_indexing.any_key(self.array, key))

    def __setitem__(self, key: Key, value: ArrayLike) -> None:
        self.array[key] = value

    def read_many(self, keys: Iterable[Key], *, out: Memory | Sequence[Memory] | None = None, progress: Progress = None,
                  max_threads: int | None = None) -> list[cupy.ndarray]:
        """What ``[z[key] for key in keys]`` reads, by one request."""
        return [cupy.from_dlpack(one) for one in self.array.read_many(keys, out=out, progress=progress, max_threads=max_threads, device=self.device)]

    @property
    def oindex(self) -> _Indexer:
        return _Indexer(self, "oindex")

    @property
    def vindex(self) -> _Indexer:
        return _Indexer(self, "vindex")

    @property
    def blocks(self) -> _Indexer:
        return _Indexer(self, "blocks")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "array":
            raise AttributeError(name)
        return getattr(self.array, name)

    def __len__(self) -> int:
        return len(self.array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Elements in host memory, which are not read by way of the GPU."""
        return self.array.__array__(dtype, copy)

    def __reduce__(self) -> Any:
        return Array, (self.array, self.device)

    def __repr__(self) -> str:
        return f"<zarrc.cupy.Array {self.array.store_path} shape={self.array.shape} dtype={self.array.dtype} device={self.device}>"


_SELECT = {"oindex": _indexing.orthogonal, "vindex": _indexing.select_vectorised, "blocks": _indexing.blocks}
