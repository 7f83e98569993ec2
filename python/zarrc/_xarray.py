"""Datasets of xarray over groups. `zarrc_hook.engine` is what xarray finds; xarray decodes, and the
library reads what xarray asks for."""
from __future__ import annotations

import asyncio
import importlib.util
import os
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from xarray import Dataset, Variable
from xarray.backends import AbstractDataStore, BackendArray, StoreBackendEntrypoint
from xarray.backends.zarr import FillValueCoder
from xarray.core import indexing

from . import _group
from ._array import Array
from ._group import Group
from ._places import open_place
from .errors import GroupNotFoundError, NotFoundError, as_class

_DIMENSIONS = "_ARRAY_DIMENSIONS"  # what xarray calls them in v2
_NCZARR = "_NCZARR_ARRAY"


# ---- elements ----


class LazyArray(BackendArray):
    """An array that xarray indexes when it needs elements."""

    __slots__ = ("_array", "dtype", "shape")  # `array` would be taken for a layer of xarray

    def __init__(self, array: Array) -> None:
        self._array, self.shape, self.dtype = array._with_numpy(), array.shape, array.dtype

    def _as_array(self, value: Any) -> Any:
        """Scalars, also texts, keep the data type of the array."""
        return value if isinstance(value, np.ndarray) else np.asarray(value, dtype=self.dtype)

    def _basic(self, key: Any) -> Any:
        return self._as_array(self._array[key])

    def _outer(self, key: Any) -> Any:
        return self._as_array(self._array.oindex[key])

    def _points(self, key: Any) -> Any:
        return self._as_array(self._array.vindex[key])

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        method = {indexing.BasicIndexer: self._basic, indexing.OuterIndexer: self._outer}.get(type(key), self._points)
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.VECTORIZED, method)

    async def async_getitem(self, key: indexing.ExplicitIndexer) -> Any:
        await asyncio.sleep(0)  # other loads begin first, as with the engine "zarr": a small read does not suspend its task
        array = self._array.async_array
        call = {indexing.BasicIndexer: array.getitem, indexing.OuterIndexer: array.oindex.getitem}.get(
            type(key), array.vindex.getitem)

        async def method(inner: Any) -> Any:
            return self._as_array(await call(inner))

        return await indexing.async_explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.VECTORIZED, method)


# ---- metadata ----


def _dimensions(array: Array, attributes: dict[str, Any]) -> tuple[Any, ...]:
    """The names of the dimensions. They leave the attributes of v2."""
    if array.zarr_format == 3:
        names = array.metadata.get("dimension_names") or ()
        if len(names) != array.ndim:
            raise KeyError(f"{array.name}: the array has no `dimension_names`, which are required for xarray to determine "
                           "variable dimensions")
        return tuple(names)
    names = attributes.pop(_DIMENSIONS, None)
    if names is None:
        names = [os.path.basename(one) for one in (array.metadata.get(_NCZARR) or {}).get("dimrefs", ())]
        if len(names) != array.ndim:
            raise KeyError(f"{array.name}: the array has neither the attribute `{_DIMENSIONS}` nor NCZarr's metadata, one of "
                           "which is required for xarray to determine variable dimensions")
    for name in [name for name in attributes if name.lower().startswith("_nc")]:
        del attributes[name]
    return tuple(names)


def _compact(sizes: tuple[tuple[int, ...], ...]) -> tuple[Any, ...]:
    """The lengths of chunks along each dimension: one number if only the last is shorter."""
    return tuple((one[0] if len(set(one[:-1])) <= 1 and one[-1] <= one[0] else one) if one else (0,) for one in sizes)


def _grid(array: Array) -> tuple[tuple[Any, ...], tuple[Any, ...] | None]:
    """(chunks, shards) as xarray has them in an encoding."""
    chunks = array._chunk_shape or _compact(array.read_chunk_sizes)
    if not array._is_sharded:
        return chunks, None
    return chunks, array._block_shape or _compact(array.write_chunk_sizes)


def _codecs(array: Array) -> dict[str, Any]:
    """The codecs of an encoding, as zarr-python's objects, which `Dataset.to_zarr` takes. Without zarr-python:
    those of zarrc. Nothing if zarr-python does not know them: it could not write them either."""
    if importlib.util.find_spec("zarr") is None:
        found: dict[str, Any] = {"compressors": array.compressors, "filters": array.filters}
        return found if array.zarr_format == 2 else {**found, "serializer": array.serializer}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about specifications: xarray's user did not choose them
            return _zarr_codecs(array)
    except Exception:
        return {}


def _zarr_codecs(array: Array) -> dict[str, Any]:
    from zarr.abc.codec import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec
    from zarr.core.metadata import ArrayV2Metadata, ArrayV3Metadata

    document = array.metadata.to_dict()
    if array.zarr_format == 2:
        v2 = ArrayV2Metadata.from_dict(document)
        return {"compressors": () if v2.compressor is None else (v2.compressor,), "filters": v2.filters or ()}
    codecs = ArrayV3Metadata.from_dict(document).inner_codecs
    return {"compressors": tuple(one for one in codecs if isinstance(one, BytesBytesCodec)),
            "filters": tuple(one for one in codecs if isinstance(one, ArrayArrayCodec)),
            "serializer": next(one for one in codecs if isinstance(one, ArrayBytesCodec))}


def _variable(array: Array, fill_value_is_mask: bool) -> Variable:
    """An encoded variable. Tasks of dask get whole shards (`preferred_chunks`)."""
    attributes: dict[str, Any] = array.attrs.asdict()
    names = _dimensions(array, attributes)
    chunks, shards = _grid(array)
    lazy = LazyArray(array)
    encoding: dict[str, Any] = {"chunks": chunks, "preferred_chunks": dict(zip(names, shards or chunks))}
    if lazy.dtype.kind == "T":
        encoding["dtype"] = lazy.dtype
    encoding.update(_codecs(array))
    encoding["shards"] = shards
    if fill_value_is_mask:
        if array.fill_value is not None:
            attributes["_FillValue"] = array.fill_value
    else:
        if array.zarr_format == 3:
            encoding["fill_value"] = array.fill_value
        if "_FillValue" in attributes:
            attributes["_FillValue"] = FillValueCoder.decode(attributes["_FillValue"], array.dtype)
    return Variable(names, indexing.LazilyIndexedArray(lazy), attributes, encoding)


class GroupStore(AbstractDataStore):
    """A group as xarray reads it: its arrays are variables."""

    __slots__ = ("_arrays", "_fill_value_is_mask", "group")

    def __init__(self, group: Group, arrays: dict[str, Array] | None = None, fill_value_is_mask: bool | None = None) -> None:
        self.group = group
        self._arrays = dict(group.arrays()) if arrays is None else arrays
        self._fill_value_is_mask = group.zarr_format == 2 if fill_value_is_mask is None else fill_value_is_mask

    def get_variables(self) -> dict[str, Variable]:
        return {name: _variable(array, self._fill_value_is_mask) for name, array in self._arrays.items()}

    def get_attrs(self) -> dict[str, Any]:
        return {name: value for name, value in self.group.attrs.items() if not name.lower().startswith("_nc")}


# ---- opening ----


def _open(source: Any, *, group: str | None, mode: str, consolidated: bool | str | None,
          storage_options: dict[str, Any] | None, zarr_format: int | None) -> Group:
    """The group of a path, a URL or a store. The root's consolidated metadata is used if it is there, unless
    `consolidated` is False; True requires it. A store of zarr-python may say that it has none."""
    if mode != "r":
        raise ValueError(f"mode {mode!r}: the engine \"zarrc\" only reads. Write with Dataset.to_zarr; zarrc.enable() lets "
                         "zarrc do the work there, too")
    if isinstance(source, (str, os.PathLike)):
        source = os.path.expanduser(os.fspath(source))
    if not getattr(source, "supports_consolidated_metadata", True):
        consolidated = False
    place = open_place(source, mode="r", storage_options=storage_options)
    path = (group or "").strip("/")
    if consolidated is not False:
        try:
            root = _group.open_in_store(place.store, place.path, zarr_format=zarr_format, use_consolidated=consolidated)
        except GroupNotFoundError:
            if not path or consolidated:
                raise
        else:
            return _below(root, path) if path else root
    full = "/".join(part for part in (place.path, path) if part)
    return _group.open_in_store(place.store, full, zarr_format=zarr_format, use_consolidated=False)


def _below(root: Group, path: str) -> Group:
    try:
        return root.get_group(path)
    except NotFoundError as problem:
        raise as_class(GroupNotFoundError, problem) from None


def _dataset(store: GroupStore, decoders: dict[str, Any]) -> Dataset:
    return StoreBackendEntrypoint().open_dataset(store, **decoders)


def open_dataset(source: Any, decoders: dict[str, Any], *, fill_value_is_mask: bool | None, **given: Any) -> Dataset:
    """What the engine's `open_dataset` gives."""
    return _dataset(GroupStore(_open(source, **given), None, fill_value_is_mask), decoders)


def _stores(group: Group) -> Iterator[tuple[str, GroupStore]]:
    """(path below, store) of a group and of all groups below it. They are listed once."""
    stores = {"": GroupStore(group, {})}
    for path, node in sorted(group.members(max_depth=None), key=lambda row: row[0]):
        parent, _, name = path.rpartition("/")
        if parent not in stores:
            continue  # below something that is no group
        if isinstance(node, Group):
            stores[path] = GroupStore(node, {})
        else:
            stores[parent]._arrays[name] = node
    yield from stores.items()


def open_groups(source: Any, decoders: dict[str, Any], **given: Any) -> dict[str, Dataset]:
    """What the engine's `open_groups_as_dict` gives. Names are relative if there is a `group`."""
    found = {}
    for path, store in _stores(_open(source, **given)):
        name = path or "." if given["group"] else f"/{path}"
        found[name] = _dataset(store, decoders)
    return found
