"""What the arguments of public functions may be. Only type checkers import this module."""
from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import EllipsisType, ModuleType
from typing import Any, Protocol, SupportsIndex, TypeAlias, Union

import numpy as np
import numpy.typing as npt

from . import _core, _libraries, _plugin_classes

# ---- objects of other packages, by what zarrc calls ----


class AsyncStore(Protocol):
    """A store of zarr-python or icechunk."""

    @property
    def supports_deletes(self) -> bool: ...


class StorePath(Protocol):
    """A place in a store of zarr-python."""

    @property
    def store(self) -> Any: ...
    @property
    def path(self) -> str: ...


class ObjectStore(Protocol):
    """A store of obstore."""

    @property
    def get_range_async(self) -> Callable[..., Any]: ...


class FileSystem(Protocol):
    """A file system of fsspec."""

    @property
    def cat_file(self) -> Callable[..., Any]: ...


class SupportsDLPack(Protocol):
    """A tensor of any library."""

    @property
    def __dlpack__(self) -> Callable[..., Any]: ...


class SupportsCudaArray(Protocol):
    """A tensor in memory of CUDA."""

    @property
    def __cuda_array_interface__(self) -> Any: ...


class NDBuffer(Protocol):
    """A buffer of zarr-python."""

    def as_ndarray_like(self) -> Any: ...


class SupportsToDict(Protocol):
    """A codec of zarrc or zarr-python, or a chunk key encoding."""

    def to_dict(self) -> Any: ...


class SupportsGetConfig(Protocol):
    """A codec of numcodecs."""

    def get_config(self) -> Any: ...


class ZDType(Protocol):
    """A data type of zarr-python."""

    def to_native_dtype(self) -> Any: ...


class TensorType(Protocol):
    """A data type of torch."""

    @property
    def is_floating_point(self) -> bool: ...


class HandleConfig(Protocol):
    """An ArrayConfig of zarrc or zarr-python."""

    @property
    def order(self) -> Any: ...
    @property
    def write_empty_chunks(self) -> bool: ...


class ProgressBar(Protocol):
    """A bar of tqdm."""

    total: Any
    n: Any

    def update(self, n: Any = ..., /) -> Any: ...


# ---- arguments ----

StoreLike: TypeAlias = Union[
    str, os.PathLike[str], _core.Store, _core.Group, Mapping[str, Any], AsyncStore, StorePath, ObjectStore, FileSystem,
    _plugin_classes.Store, None]
ShapeLike: TypeAlias = Union[SupportsIndex, Iterable[SupportsIndex]]
DTypeLike: TypeAlias = Union[npt.DTypeLike, type[_plugin_classes.DataType], dict[str, Any], ZDType, TensorType, None]
ArrayLike: TypeAlias = Union[npt.ArrayLike, SupportsDLPack, SupportsCudaArray]
Memory: TypeAlias = Union[np.ndarray[Any, Any], NDBuffer, SupportsDLPack, SupportsCudaArray]

LikeLike: TypeAlias = Union[str, type[Any], ModuleType, np.ndarray[Any, Any], SupportsDLPack, SupportsCudaArray, _libraries.Like, None]

ChunksLike: TypeAlias = Union[str, SupportsIndex, Sequence[Union[SupportsIndex, Sequence[Any], None]], Mapping[str, Any], None]
CodecLike: TypeAlias = Union[str, Mapping[str, Any], SupportsToDict, SupportsGetConfig]
CodecsLike: TypeAlias = Union[CodecLike, Iterable[CodecLike], None]
FillValue: TypeAlias = Union[complex, str, bytes, np.generic, np.ndarray[Any, Any], Sequence[Any], Mapping[str, Any], None]
KeyEncoding: TypeAlias = Union[str, Mapping[str, Any], SupportsToDict, None]
DimensionNames: TypeAlias = Union[Iterable[Union[str, None]], None]
ConfigLike: TypeAlias = Union[Mapping[str, Any], HandleConfig, None]

KeyItem: TypeAlias = Union[SupportsIndex, slice, EllipsisType, npt.ArrayLike, None]
Key: TypeAlias = Union[KeyItem, tuple[KeyItem, ...]]
Fields: TypeAlias = Union[str, Sequence[str], None]
Progress: TypeAlias = Union[Callable[[int, int], object], ProgressBar, bool, None]
