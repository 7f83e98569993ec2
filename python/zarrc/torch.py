"""Datasets of torch over arrays of zarrc. A batch is one request of the library, and its elements reach
torch without a copy, bfloat16 too.

    from torch.utils.data import DataLoader
    import zarrc.torch

    crops = zarrc.torch.Crops("x.zarr", (64, 64), n=10_000, seed=1)
    for batch in DataLoader(crops, batch_size=32, num_workers=4):
        ...

Which elements an item has depends on the seed, the epoch and its number, and on nothing else: not on the
number of workers, nor on how they are started. In a worker, arrays use its share of the cores.

With ``device="cuda"`` each batch is read into a tensor of torch on the GPU, on which codecs then work, too. Its
arrays need no workers: the library has threads of its own. A worker that uses the GPU must be spawned.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info

from . import _api
from ._array import Array
from ._tensors import Tensor

if TYPE_CHECKING:
    from ._types import StoreLike

__all__ = ["CropStream", "Crops", "Rows"]

_Transform = Callable[[torch.Tensor], Any]
_Device: TypeAlias = "str | int | torch.device | None"


def _as_array(source: Array | StoreLike, storage_options: dict[str, Any] | None, device: str | None = None) -> Array:
    if isinstance(source, Array):
        return source
    return _api.open_array(source, mode="r", storage_options=storage_options, device=device)


def _device(given: _Device) -> str | None:
    """The device of tensors as `zarrc.open(device=)` names it; None: the host."""
    if given is None or (kind := torch.device(given).type) == "cpu":
        return None
    if kind != "cuda":
        raise ValueError(f"device {given}: tensors are in host memory, or on a device of the kind cuda")
    return str(torch.device(given))


def _memory(array: Array, shape: tuple[int, ...], device: str | None = None) -> Any:
    """New memory for elements: NumPy's, in the byte order of the machine, as torch needs it, or a tensor on a device."""
    memory = np.empty(shape if device is None else 0, array.dtype.newbyteorder("="))
    return memory if device is None else _empty(shape, _tensor(array, memory).dtype, device)


def _empty(shape: tuple[int, ...], dtype: torch.dtype, device: str) -> torch.Tensor:
    """Memory of torch's own allocator, which its current stream may still use: reads begin after that."""
    return torch.empty(shape, dtype=dtype, device=device)


def _tensor(array: Array, memory: Any) -> torch.Tensor:
    """The same memory as a tensor."""
    if not isinstance(memory, np.ndarray):  # it is one
        found: torch.Tensor = memory
        return found
    found = torch.from_dlpack(Tensor(array, memory))
    return found


class _Items(Dataset[torch.Tensor]):  # type: ignore[misc,unused-ignore]
    """Items by number. A DataLoader asks for those of a batch at once, by `__getitems__`."""

    def __init__(self, source: Array | StoreLike, transform: _Transform | None, storage_options: dict[str, Any] | None,
                 device: _Device) -> None:
        self.device = _device(device)
        self.array = _as_array(source, storage_options, self.device)
        self.transform = transform

    def _read(self, numbers: Sequence[int]) -> torch.Tensor:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def __getitem__(self, number: int) -> Any:
        return self.__getitems__([number])[0]

    def __getitems__(self, numbers: Sequence[int]) -> list[Any]:
        """The items of a batch, by one request."""
        n = len(self)
        if not all(-n <= one < n for one in numbers):
            raise IndexError(f"items {min(numbers)} to {max(numbers)} of {n}")
        items = self._read([one % n for one in numbers])
        return [one if self.transform is None else self.transform(one) for one in items]


class Rows(_Items):
    """What an array has along its first dimension: item i is ``array[i]`` as a tensor.

    ``source`` is an array, or what `zarrc.open_array` takes. ``transform`` is called with each item. ``device``: where
    tensors are, such as "cuda:0".
    """

    def __init__(self, source: Array | StoreLike, *, transform: _Transform | None = None,
                 storage_options: dict[str, Any] | None = None, device: _Device = None) -> None:
        super().__init__(source, transform, storage_options, device)
        if not self.array.ndim:
            raise ValueError("an array without dimensions has no rows")

    def __len__(self) -> int:
        return self.array.shape[0]

    def _read(self, numbers: Sequence[int]) -> torch.Tensor:
        memory = _memory(self.array, (len(numbers), *self.array.shape[1:]), self.device)
        self.array.get_orthogonal_selection((np.asarray(numbers, np.int64),), out=memory)
        return _tensor(self.array, memory)


class _Places:
    """Where crops of one size lie in an array, from seeds."""

    def __init__(self, array: Array, size: Sequence[int]) -> None:
        self.size = tuple(int(n) for n in size)
        if len(self.size) != array.ndim:
            raise ValueError(f"a crop of {len(self.size)} dimensions, and an array of {array.ndim}")
        if any(not 0 < n <= whole for n, whole in zip(self.size, array.shape)):
            raise ValueError(f"crops of {self.size} do not fit an array of {array.shape}")
        self._ends = np.array([whole - n + 1 for n, whole in zip(self.size, array.shape)])

    def draw(self, seeds: Sequence[int]) -> tuple[slice, ...]:
        """The selection of one crop. Equal seeds give equal crops."""
        first = np.random.default_rng(list(seeds)).integers(self._ends)
        return tuple(slice(int(a), int(a) + n) for a, n in zip(first, self.size))

    def read(self, array: Array, seeds: Sequence[Sequence[int]], device: str | None = None) -> torch.Tensor:
        """One crop for each of the seeds, by one request: what crops share is fetched and decoded once."""
        memory = _memory(array, (len(seeds), *self.size), device)
        array.read_many([self.draw(one) for one in seeds], out=memory)
        return _tensor(array, memory)


class Crops(_Items):
    """``n`` random crops of an array: item i lies at a place that the seed, the epoch and i give.

    ``source`` is an array, or what `zarrc.open_array` takes; ``size`` is the shape of a crop. ``transform`` is
    called with each crop. `set_epoch` moves all crops; workers that persist keep the epoch in which they began.
    ``device``: where tensors are, as in `Rows`.
    """

    def __init__(self, source: Array | StoreLike, size: Sequence[int], n: int, *, seed: int = 0, transform: _Transform | None = None,
                 storage_options: dict[str, Any] | None = None, device: _Device = None) -> None:
        super().__init__(source, transform, storage_options, device)
        self._places = _Places(self.array, size)
        self.n, self.seed, self.epoch = n, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Moves all crops: equal epochs give equal crops. Workers that persist do not learn of it."""
        self.epoch = epoch

    def place(self, number: int) -> tuple[slice, ...]:
        """Where an item lies: ``array[crops.place(i)]`` are its elements."""
        return self._places.draw([self.seed, self.epoch, number])

    def __len__(self) -> int:
        return self.n

    def _read(self, numbers: Sequence[int]) -> torch.Tensor:
        return self._places.read(self.array, [[self.seed, self.epoch, one] for one in numbers], self.device)


class CropStream(IterableDataset[torch.Tensor]):  # type: ignore[misc,unused-ignore]
    """The crops of `Crops` as whole batches, each one tensor that no further copy collates: for
    ``DataLoader(stream, batch_size=None, num_workers=4)``. The last batch may be shorter. Workers take turns, so
    the batches are the same, in the same order, for any number of them. ``device="cuda"``: each batch is one read into
    one tensor on the GPU.
    """

    def __init__(self, source: Array | StoreLike, size: Sequence[int], n: int, batch_size: int, *, seed: int = 0,
                 transform: _Transform | None = None, storage_options: dict[str, Any] | None = None, device: _Device = None) -> None:
        if batch_size < 1:
            raise ValueError(f"a batch of {batch_size} crops")
        self._crops = Crops(source, size, n, seed=seed, storage_options=storage_options, device=device)
        self.batch_size, self.transform = batch_size, transform

    def set_epoch(self, epoch: int) -> None:
        """Moves all crops, as `Crops.set_epoch` does."""
        self._crops.set_epoch(epoch)

    def __len__(self) -> int:
        """The number of batches."""
        return -(-len(self._crops) // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        first, step = (worker.id, worker.num_workers) if worker else (0, 1)
        for number in range(first, len(self), step):
            start = number * self.batch_size
            batch = self._crops._read(range(start, min(start + self.batch_size, len(self._crops))))
            yield batch if self.transform is None else self.transform(batch)
