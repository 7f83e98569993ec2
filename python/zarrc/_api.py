"""The functions of the package, with the names and arguments that zarr-python's users know."""
from __future__ import annotations

import contextlib
import dataclasses
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _array, _consolidation, _core, _create, _devices, _group, _libraries, _remote, _threads
from ._array import Array, AsyncArray
from ._array_config import ArrayConfig
from ._create import DEFAULT_FILL_VALUE
from ._group import AsyncGroup, Group
from ._indexing import as_host, is_foreign
from ._places import Place, find_archive, join_path, open_place, open_store
from ._settings import settings
from ._store import Store
from .errors import ArrayNotFoundError, ExistsError, GroupNotFoundError, NodeNotFoundError, NotFoundError, as_class, make_error

if TYPE_CHECKING:
    from typing import Unpack

    from . import _arguments
    from ._info import Tree
    from ._types import (
        ArrayLike, ChunksLike, CodecLike, CodecsLike, ConfigLike, DimensionNames, DTypeLike, FillValue, KeyEncoding, LikeLike, ShapeLike, StoreLike,
    )

_CREATING = ("a", "w", "w-", "x")
_UNUSED = ("synchronizer", "cache_attrs", "cache_metadata", "object_codec", "zarr_version")


def _refuse_old(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The other arguments. Those of old versions of zarr-python are errors rather than ignored."""
    if not kwargs:
        return {}
    for name in _UNUSED:
        if kwargs.get(name) is not None:
            raise TypeError(f"{name}= has no meaning in zarrc")
    return {name: value for name, value in kwargs.items() if name not in _UNUSED}


def _compose(store: Any, mode: str | None, storage_options: dict[str, Any] | None, given: dict[str, Any]) -> tuple[Any, dict[str, Any] | None]:
    """(store, storage_options) of a call: those that it names, or the composite store if it has `chunk_store=`."""
    chunk_store = given.pop("chunk_store", None)
    if chunk_store is None:
        return store, storage_options
    mode = "a" if mode in _CREATING else mode
    return open_store(store, mode=mode, storage_options=storage_options, chunk_store=chunk_store), None


# ---- open ----


def open(store: StoreLike = None, *, mode: str | None = None, zarr_format: int | None = None, path: str | None = None,
         storage_options: dict[str, Any] | None = None, device: str | None = None, like: LikeLike = None, meta_array: LikeLike = None,
         **kwargs: Unpack[_arguments.Open]) -> Array | Group:
    """Opens an array or a group.

    With a mode that creates, a missing node becomes an array if ``shape=`` or ``data=`` is given, else a group.

    Parameters
    ----------
    store : str, path, Store, Group, mapping, store of another package, or None
        Where the node is: a path, a URL, an open store or group, or a new store in memory (None).
    mode : {"r", "r+", "a", "w", "w-"}, optional
        "r" reads; "r+" reads and writes what exists; "a" also creates; "w" replaces; "w-" creates, and fails if a node exists.
        The default is "a", and "r" for a store that is read-only.
    zarr_format : {2, 3}, optional
        Format of the metadata. By default that of the node, or the setting ``default_zarr_format`` for a new one.
    path : str, optional
        Path of the node in the store. By default the root.
    storage_options : dict, optional
        Options of a plug-in's store, or of fsspec or obstore, which open a URL with another scheme.
    device : str, optional
        A device such as "cuda:0", whose memory ``read(device=)``, ``out=`` and values may then use. Loads the plug-in for it.
    like : array, class, module, or {"numpy", "cupy", "torch", "jax"}, optional
        Whose arrays reads return, on ``device`` or on that of the array. By default the setting ``like``.
    meta_array : array, optional
        What zarr 2 calls ``like``.
    **kwargs
        Arguments of `open_array` for an array, of `open_group` for a group.

    Returns
    -------
    Array or Group
        The node.

    Raises
    ------
    NodeNotFoundError
        There is no node, and the mode does not create one.
    ContainsArrayError, ContainsGroupError
        A node exists, and the mode is "w-".
    ReadOnlyError
        The store is read-only, and the mode writes.
    ValueError
        The mode is unknown.

    Examples
    --------
    >>> z = zarrc.open("x.zarr", mode="w", shape=(4, 3), chunks=(2, 3), dtype="int32")
    >>> z[0] = 7
    >>> zarrc.open("x.zarr", mode="r")[0]
    array([7, 7, 7], dtype=int32)
    """
    given: dict[str, Any] = {**kwargs}
    if device is not None or like is not None or meta_array is not None:
        with _open_for(store, given, device, like, meta_array):
            return open(store, mode=mode, zarr_format=zarr_format, path=path, storage_options=storage_options, **given)
    store, storage_options = _compose(store, mode, storage_options, given)
    mode = _default_mode(store, mode)
    wants_array = "shape" in given or "data" in given
    if mode not in ("w", "w-", "x"):
        place = None
        try:
            place = open_place(store, mode="r" if mode == "r" else "r+", path=path, storage_options=storage_options)
            given["config"] = _config_for(store, given.get("config"))
            return _open_node(place, zarr_format, given)
        except NodeNotFoundError:
            if mode in ("r", "r+"):
                other = place.store._other_format(place.path) if place else None
                raise make_error(NodeNotFoundError, f"no array or group found in store {store!r} at path {path or ''!r}"
                                 + (f"; this may be {other}" if other else ""), errno=2) from None
    if wants_array:
        return open_array(store, mode=mode, path=path, zarr_format=zarr_format, storage_options=storage_options, **given)
    return _open_group(store, mode, path, zarr_format, storage_options, **given)


def _config_for(store: Any, config: ConfigLike) -> ConfigLike:
    """How arrays are read and written that are opened in a store: a group says it where the call does not."""
    return store._config_for(config) if isinstance(store, Group) else config


@contextlib.contextmanager
def _open_for(store: Any, given: dict[str, Any], device: str | None, like: Any, meta_array: Any) -> Iterator[None]:
    """What is opened in the ``with`` statement can use the device, and the member `config` of `given` says whose arrays it returns."""
    if device is not None:
        _devices.check_device(device)
    owner = store.store if isinstance(store, Group) else store
    wanted, device = _libraries.choose(like, meta_array, device, owner._default_device if isinstance(owner, Store) else settings["device"])
    if wanted is not None:
        given["config"] = dataclasses.replace(ArrayConfig.of(given.get("config")), like=wanted)
    with _devices.opening_for(device):
        yield


def _open_node(place: Place, zarr_format: int | None, given: dict[str, Any]) -> Array | Group:
    config, trust = given.get("config"), given.get("trust")
    if trust is not None:
        config = dataclasses.replace(ArrayConfig.of(config), trust=trust)
    node = _group.open_node(place.store, place.path, zarr_format=zarr_format, use_consolidated=given.get("use_consolidated"), config=config)
    if isinstance(node, Array):
        _refuse_old(given)
    return node


def _default_mode(store: Any, mode: str | None) -> str:
    if mode is not None:
        if mode not in (*_CREATING, "r", "r+"):
            raise ValueError(f"mode {mode!r} is not one of r, r+, a, w, w-")
        return mode
    is_archive = isinstance(store, (str, os.PathLike)) and find_archive(os.fspath(store)) is not None
    return "r" if is_archive or getattr(store, "read_only", False) else _remote.default_mode(store)


def open_array(store: StoreLike = None, *, mode: str | None = None, path: str | None = None, zarr_format: int | None = None,
               storage_options: dict[str, Any] | None = None, config: ConfigLike = None, trust: str | None = None,
               device: str | None = None, like: LikeLike = None, meta_array: LikeLike = None, **kwargs: Unpack[_arguments.OpenArray]) -> Array:
    """Opens an array. With a mode that creates, and ``shape=`` or ``data=``, a missing one is created.

    Parameters
    ----------
    store : str, path, Store, Group, mapping, store of another package, or None
        Where the node is: a path, a URL, an open store or group, or a new store in memory (None).
    mode : {"r", "r+", "a", "w", "w-"}, optional
        "r" reads; "r+" reads and writes what exists; "a" also creates; "w" replaces; "w-" creates, and fails if a node exists.
        The default is "a", and "r" for a store that is read-only.
    path : str, optional
        Path of the node in the store. By default the root.
    zarr_format : {2, 3}, optional
        Format of the metadata. By default that of the node, or the setting ``default_zarr_format`` for a new one.
    storage_options : dict, optional
        Options of a plug-in's store, or of fsspec or obstore, which open a URL with another scheme.
    config : ArrayConfig or dict, optional
        Run-time options of the handle, by the names of `ArrayConfig`, such as ``order`` and ``wave_bytes``.
    trust : {"verified", "full", "none"}, optional
        Which decoders that do not check their input may be used.
    device : str, optional
        A device such as "cuda:0", whose memory ``read(device=)``, ``out=`` and values may then use. Loads the plug-in for it.
    like : array, class, module, or {"numpy", "cupy", "torch", "jax"}, optional
        Whose arrays reads return, on ``device`` or on that of the array. By default the setting ``like``.
    meta_array : array, optional
        What zarr 2 calls ``like``.
    **kwargs
        Arguments of `create` for a new array.

    Returns
    -------
    Array
        The array.

    Raises
    ------
    ArrayNotFoundError
        There is no array, and the mode does not create one.
    ContainsArrayError, ContainsGroupError
        A node exists, and the mode is "w-".
    UnsupportedError
        The array needs a codec or a data type that zarrc lacks.
    TypeError
        An argument has no meaning in zarrc, such as ``synchronizer``.

    Examples
    --------
    >>> z = zarrc.open_array("x.zarr", mode="w", shape=6, chunks=3, dtype="float64")
    >>> z[:2] = [1.5, 2.5]
    >>> zarrc.open_array("x.zarr", mode="r")[:3]
    array([1.5, 2.5, 0. ])
    """
    given: dict[str, Any] = {**kwargs}
    if device is not None or like is not None or meta_array is not None:
        given["config"] = config
        with _open_for(store, given, device, like, meta_array):
            return open_array(store, mode=mode, path=path, zarr_format=zarr_format, storage_options=storage_options, trust=trust, **given)
    store, storage_options = _compose(store, mode, storage_options, given)
    mode = _default_mode(store, mode)
    given = _refuse_old(given)
    config = _config_for(store, config)
    if trust is not None:
        config = dataclasses.replace(ArrayConfig.of(config), trust=trust)

    def open_node() -> Array:
        place = open_place(store, mode="r" if mode == "r" else "r+", path=path, storage_options=storage_options)
        return _array.open_in_store(place.store, place.path, zarr_format=zarr_format, config=config)

    def create_node() -> Array:
        return create(store=store, mode=mode, path=path, zarr_format=zarr_format, storage_options=storage_options, config=config,
                      overwrite=mode == "w", **given)

    if mode in ("w", "w-", "x"):
        return create_node()
    if mode == "a" and ("shape" in given or "data" in given):
        return _create.open_or_create(open_node, create_node)
    try:
        return open_node()
    except NotFoundError as problem:
        raise as_class(ArrayNotFoundError, problem) from None


def open_group(store: StoreLike = None, *, mode: str | None = None, path: str | None = None, zarr_format: int | None = None,
               storage_options: dict[str, Any] | None = None, attributes: Mapping[str, Any] | None = None,
               use_consolidated: bool | str | None = None, device: str | None = None, like: LikeLike = None, meta_array: LikeLike = None,
               **kwargs: Unpack[_arguments.Old]) -> Group:
    """Opens a group. With a mode that creates, a missing one is created.

    Parameters
    ----------
    store : str, path, Store, Group, mapping, store of another package, or None
        Where the node is: a path, a URL, an open store or group, or a new store in memory (None).
    mode : {"r", "r+", "a", "w", "w-"}, optional
        "r" reads; "r+" reads and writes what exists; "a" also creates; "w" replaces; "w-" creates, and fails if a node exists.
        The default is "a", and "r" for a store that is read-only.
    zarr_format : {2, 3}, optional
        Format of the metadata. By default that of the node, or the setting ``default_zarr_format`` for a new one.
    path : str, optional
        Path of the node in the store. By default the root.
    storage_options : dict, optional
        Options of a plug-in's store, or of fsspec or obstore, which open a URL with another scheme.
    attributes : mapping, optional
        Attributes of a new group. They must be JSON.
    use_consolidated : bool or str, optional
        Whether consolidated metadata answers for the members: True needs it, False ignores it, a str is the key of its document
        (format 2). By default it is used if it is there.
    device : str, optional
        A device such as "cuda:0", whose memory ``read(device=)``, ``out=`` and values may then use. Loads the plug-in for it.
    like : array, class, module, or {"numpy", "cupy", "torch", "jax"}, optional
        Whose arrays reads return, on ``device`` or on that of the array. By default the setting ``like``.
    meta_array : array, optional
        What zarr 2 calls ``like``.
    **kwargs
        Arguments of old versions of zarr-python, which are refused unless they are None.

    Returns
    -------
    Group
        The group.

    Raises
    ------
    GroupNotFoundError
        There is no group, and the mode does not create one.
    ContainsArrayError, ContainsGroupError
        A node exists, and the mode is "w-".
    ValueError
        ``use_consolidated`` is True, and there is no consolidated metadata.
    TypeError
        An argument has no meaning in zarrc.

    Examples
    --------
    >>> root = zarrc.open_group("x.zarr", mode="w", attributes={"run": 12})
    >>> z = root.create_array("temp", data=np.arange(3.0))
    >>> root = zarrc.open_group("x.zarr", mode="r")
    >>> list(root), root.attrs["run"]
    (['temp'], 12)
    """
    given: dict[str, Any] = {**kwargs, "attributes": attributes, "use_consolidated": use_consolidated}
    with _open_for(store, given, device, like, meta_array):
        return _open_group(store, mode, path, zarr_format, storage_options, **given)


def _open_group(store: Any, mode: str | None, path: str | None, zarr_format: int | None, storage_options: dict[str, Any] | None, *,
                attributes: Mapping[str, Any] | None = None, use_consolidated: bool | str | None = None, config: ConfigLike = None,
                **kwargs: Any) -> Group:
    """What `open_group` does, with `config` for the arrays below the group."""
    store, storage_options = _compose(store, mode, storage_options, kwargs)
    unknown = _refuse_old(kwargs)
    if unknown:
        raise TypeError(f"open_group() has no argument {', '.join(unknown)}")
    mode, config = _default_mode(store, mode), _config_for(store, config)

    def open_node() -> Group:
        place = open_place(store, mode="r" if mode == "r" else "r+", path=path, storage_options=storage_options)
        return _group.open_in_store(place.store, place.path, zarr_format=zarr_format, use_consolidated=use_consolidated, config=config)

    def create_node() -> Group:
        place = open_place(store, mode="a", path=path, storage_options=storage_options)
        return _group.create(place, overwrite=mode == "w", zarr_format=zarr_format, attributes=attributes, config=config)

    if mode in ("w", "w-", "x"):
        return create_node()
    if mode == "a":
        return _create.open_or_create(open_node, create_node)
    try:
        return open_node()
    except NotFoundError as problem:
        raise as_class(GroupNotFoundError, problem) from None


def open_consolidated(store: StoreLike = None, *, use_consolidated: bool | str = True, **kwargs: Unpack[_arguments.OpenConsolidated]) -> Group:
    """Opens a group that must have consolidated metadata."""
    if use_consolidated is False:
        raise TypeError("use_consolidated=False contradicts open_consolidated()")
    return open_group(store, use_consolidated=use_consolidated, **kwargs)


def group(store: StoreLike = None, *, overwrite: bool = False, path: str | None = None, zarr_format: int | None = None,
          attributes: Mapping[str, Any] | None = None, storage_options: dict[str, Any] | None = None, device: str | None = None,
          like: LikeLike = None, meta_array: LikeLike = None, **kwargs: Unpack[_arguments.Old]) -> Group:
    """Opens or creates a group. ``device`` and ``like`` are those of `open_group`."""
    return open_group(store, mode="w" if overwrite else "a", path=path, zarr_format=zarr_format, attributes=attributes,
                      storage_options=storage_options, device=device, like=like, meta_array=meta_array, **kwargs)


async def open_async(store: StoreLike = None, **kwargs: Unpack[_arguments.OpenAsync]) -> AsyncArray | AsyncGroup:
    """Opens an array or a group for asyncio, with the arguments of `open`, without blocking the event loop."""
    import asyncio

    node = await asyncio.to_thread(open, store, **kwargs)
    return node.async_array if isinstance(node, Array) else node.async_group


# ---- create ----


def create_group(store: StoreLike = None, *, path: str | None = None, zarr_format: int | None = None, overwrite: bool = False,
                 attributes: Mapping[str, Any] | None = None, storage_options: dict[str, Any] | None = None, device: str | None = None,
                 like: LikeLike = None, meta_array: LikeLike = None) -> Group:
    """Creates a group.

    Parameters
    ----------
    store : str, path, Store, Group, mapping, store of another package, or None
        Where the node is: a path, a URL, an open store or group, or a new store in memory (None).
    path : str, optional
        Path of the node in the store. By default the root.
    zarr_format : {2, 3}, optional
        Format of the metadata. By default that of the node, or the setting ``default_zarr_format`` for a new one.
    overwrite : bool, default False
        Replaces what is there, with all below it.
    attributes : mapping, optional
        Attributes of a new group. They must be JSON.
    storage_options : dict, optional
        Options of a plug-in's store, or of fsspec or obstore, which open a URL with another scheme.
    device : str, optional
        A device such as "cuda:0", whose memory ``read(device=)``, ``out=`` and values may then use. Loads the plug-in for it.
    like : array, class, module, or {"numpy", "cupy", "torch", "jax"}, optional
        Whose arrays reads return, on ``device`` or on that of the array. By default the setting ``like``.
    meta_array : array, optional
        What zarr 2 calls ``like``.

    Returns
    -------
    Group
        The new group.

    Raises
    ------
    ContainsArrayError, ContainsGroupError
        A node exists at the path.
    ReadOnlyError
        The store is read-only.

    Examples
    --------
    >>> root = zarrc.create_group("x.zarr", attributes={"title": "run"})
    >>> root.create_group("raw").path
    'raw'
    """
    more: dict[str, Any] = {}
    with _open_for(store, more, device, like, meta_array):
        place = open_place(store, mode="a", path=path, storage_options=storage_options)
    return _group.create(place, overwrite=overwrite, attributes=attributes, zarr_format=zarr_format, config=_config_for(store, more.get("config")))


def create_array(store: StoreLike = None, *, name: str | None = None, shape: ShapeLike | None = None, dtype: DTypeLike = None,
                 data: ArrayLike | None = None, chunks: ChunksLike = "auto", shards: ChunksLike = None, filters: CodecsLike = "auto",
                 compressors: CodecsLike = "auto", serializer: CodecLike = "auto", fill_value: FillValue = DEFAULT_FILL_VALUE,
                 order: str | None = None, zarr_format: int | None = None, attributes: Mapping[str, Any] | None = None,
                 chunk_key_encoding: KeyEncoding = None, dimension_names: DimensionNames = None,
                 storage_options: dict[str, Any] | None = None, overwrite: bool = False, config: ConfigLike = None,
                 write_data: bool = True, if_missing: bool = False, checksum: bool = False, device: str | None = None,
                 like: LikeLike = None, meta_array: LikeLike = None) -> Array:
    """Creates an array.

    Either ``shape`` and ``dtype`` or ``data`` is required.

    Parameters
    ----------
    store : str, path, Store, Group, mapping, store of another package, or None
        Where the node is: a path, a URL, an open store or group, or a new store in memory (None).
    name : str, optional
        Path of the array in the store. By default the root.
    shape : int or sequence of int, optional
        Length of each dimension.
    dtype : str, dtype or type, optional
        Data type of the elements: a type of NumPy or ml_dtypes, or a name of the Zarr specification.
    data : array_like, optional
        Elements of the new array, which also give its shape and data type.
    chunks : int, sequence of int, dict or "auto", default "auto"
        Shape of a chunk. A list of lengths for a dimension, or a dict of metadata, makes a grid of chunks that differ.
    shards : int, sequence of int, dict or "auto", optional
        Shape of a shard. By default there are none.
    filters, compressors : codec, list of codecs, "auto" or None, default "auto"
        Codecs before and after the serializer. A codec is a name, a dict of metadata, a `Codec`, or an object of zarr-python or
        numcodecs.
    serializer : codec or "auto", default "auto"
        The codec that turns elements into bytes. Only format 3 has one.
    fill_value : scalar or None, optional
        The value of elements that are not stored. By default that of the data type. None means null, in format 2.
    order : {"C", "F"}, optional
        Order of elements in the arrays that reads return. In format 2 also the order in the chunks.
    zarr_format : {2, 3}, optional
        Format of the metadata. By default that of the node, or the setting ``default_zarr_format`` for a new one.
    attributes : mapping, optional
        Attributes of a new array. They must be JSON.
    chunk_key_encoding : str or dict, optional
        How keys of chunks are formed, such as "v2" or ``{"name": "default", "separator": "."}``.
    dimension_names : sequence of str or None, optional
        A name for each dimension (format 3).
    storage_options : dict, optional
        Options of a plug-in's store, or of fsspec or obstore, which open a URL with another scheme.
    overwrite : bool, default False
        Replaces what is there, with all below it.
    config : ArrayConfig or dict, optional
        Run-time options of the handle, by the names of `ArrayConfig`, such as ``order`` and ``wave_bytes``.
    write_data : bool, default True
        Whether the elements of ``data`` are written.
    if_missing : bool, default False
        Opens an array with equal metadata if one exists.
    checksum : bool, default False
        Appends crc32c to the codecs of each chunk. Without it, a changed byte may decode to wrong elements without an error.
    device : str, optional
        A device such as "cuda:0", whose memory ``read(device=)``, ``out=`` and values may then use. Loads the plug-in for it.
    like : array, class, module, or {"numpy", "cupy", "torch", "jax"}, optional
        Whose arrays reads return, on ``device`` or on that of the array. By default the setting ``like``.
    meta_array : array, optional
        What zarr 2 calls ``like``.

    Returns
    -------
    Array
        The new array.

    Raises
    ------
    ContainsArrayError, ContainsGroupError
        A node exists at the path.
    InvalidError
        The metadata is invalid: a chunk does not divide its shard, a configuration is wrong.
    UnsupportedError
        zarrc lacks a codec or a data type.
    ValueError
        Neither ``shape`` and ``dtype`` nor ``data`` is given, or both are.

    Examples
    --------
    >>> z = zarrc.create_array("x.zarr", shape=(100, 100), dtype="float32", chunks=(10, 10), shards=(50, 50), checksum=True)
    >>> z[:2, :2] = 1
    >>> z[0, :3]
    array([1., 1., 0.], dtype=float32)
    >>> zarrc.create_array("y.zarr", data=np.arange(6), compressors=None).shape
    (6,)
    """
    more: dict[str, Any] = {"config": config}
    with _open_for(store, more, device, like, meta_array):
        place = open_place(store, mode="a", path=name, storage_options=storage_options)
    if data is None and (shape is None or dtype is None):
        raise ValueError("`shape` and `dtype`, or `data`, are needed")
    return _create.create(place, shape=shape, dtype=dtype, data=data, chunks=chunks, shards=shards, filters=filters,
                          compressors=compressors, serializer=serializer, fill_value=fill_value, order=order,
                          zarr_format=zarr_format, attributes=attributes, chunk_key_encoding=chunk_key_encoding,
                          dimension_names=dimension_names, overwrite=overwrite, write_data=write_data,
                          if_missing=if_missing, checksum=checksum, device=device, config=_config_for(store, more["config"]))


def create(shape: ShapeLike | None = None, *, chunks: ChunksLike = "auto", dtype: DTypeLike = "float64", compressor: CodecsLike = "auto",
           fill_value: FillValue = DEFAULT_FILL_VALUE, order: str | None = None, store: StoreLike = None,
           overwrite: bool = False, path: str | None = None, filters: CodecsLike = None,
           dimension_separator: str | None = None, zarr_format: int | None = None, chunk_shape: ChunksLike = None,
           chunk_key_encoding: KeyEncoding = None, codecs: CodecsLike = None, dimension_names: DimensionNames = None,
           attributes: Mapping[str, Any] | None = None, storage_options: dict[str, Any] | None = None, mode: str = "a",
           write_empty_chunks: bool | None = None, config: ConfigLike = None, device: str | None = None, like: LikeLike = None,
           meta_array: LikeLike = None, **kwargs: Unpack[_arguments.Create]) -> Array:
    """Creates an array, with the arguments that zarr-python had before `create_array`. ``device`` and ``like`` are as there."""
    given: dict[str, Any] = {**kwargs}
    data = given.pop("data", None)
    more: dict[str, Any] = {"config": config}
    with _open_for(store, more, device, like, meta_array):
        store, storage_options = _compose(store, "a", storage_options, given)
        given = _refuse_old(given)
        place = open_place(store, mode=mode if mode in _CREATING else "a", path=path, storage_options=storage_options)
    config = _config_for(store, more["config"])
    if write_empty_chunks is not None:
        config = dataclasses.replace(ArrayConfig.of(config), write_empty_chunks=write_empty_chunks)
    if dimension_separator and chunk_key_encoding is None:
        chunk_key_encoding = {"name": "v2" if zarr_format == 2 else "default", "separator": dimension_separator}
    if codecs is not None:
        given = {**given, "filters": None, "serializer": None, "compressors": None, **_split_codecs(codecs)}
    elif compressor != "auto":
        given.setdefault("compressors", compressor)
    if filters is not None:
        given["filters"] = filters
    if data is None:
        given |= {"shape": shape, "dtype": dtype or "float64"}
    return _create.create(place, chunks=chunk_shape if chunk_shape is not None else chunks, fill_value=fill_value, order=order,
                          zarr_format=zarr_format, chunk_key_encoding=chunk_key_encoding, dimension_names=dimension_names,
                          attributes=attributes, overwrite=overwrite, config=config, data=data, device=device, **given)


def _split_codecs(codecs: Any) -> dict[str, Any]:
    """The chain of `codecs=`, whose order says which one is the serializer."""
    listed = list(codecs)
    return {"filters": [], "serializer": listed[0], "compressors": listed[1:]} if listed else {}


def array(data: ArrayLike, **kwargs: Unpack[_arguments.Array]) -> Array:
    """Creates an array of the elements of `data`."""
    given: dict[str, Any] = {**kwargs}
    dtype = _libraries.parse_dtype(given.pop("dtype", None))
    if not hasattr(data, "shape") or not hasattr(data, "dtype"):
        data = np.asarray(data, dtype=dtype)
    elif dtype is not None:
        converted = _libraries.as_type(data, dtype) if is_foreign(data) else None
        data = np.asarray(as_host(data)).astype(dtype) if converted is None else converted
    return create(data=data, **given)


def from_array(store: StoreLike = None, *, data: ArrayLike, write_data: bool = True, name: str | None = None, chunks: ChunksLike = "keep",
               shards: ChunksLike = "keep", filters: CodecsLike = "keep", compressors: CodecsLike = "keep", serializer: CodecLike = "keep",
               fill_value: FillValue = DEFAULT_FILL_VALUE, order: str | None = None, zarr_format: int | None = None,
               attributes: Mapping[str, Any] | None = None, chunk_key_encoding: KeyEncoding = None, dimension_names: DimensionNames = None,
               storage_options: dict[str, Any] | None = None, overwrite: bool = False, config: ConfigLike = None, device: str | None = None,
               like: LikeLike = None, meta_array: LikeLike = None) -> Array:
    """Creates an array with the elements of another, and with its properties where "keep" is given.

    Parameters
    ----------
    store : str, path, Store, Group, mapping, store of another package, or None
        Where the node is: a path, a URL, an open store or group, or a new store in memory (None).
    data : array_like
        The elements, and the properties to keep: an array of zarrc, zarr-python, h5py, dask or NumPy.
    write_data : bool, default True
        Whether the elements of ``data`` are written.
    name : str, optional
        Path of the array in the store. By default the root.
    chunks : int, sequence of int, dict, "auto" or "keep", default "keep"
        Shape of a chunk, as in `create_array`.
    shards : int, sequence of int, dict, "auto", "keep" or None, default "keep"
        Shape of a shard, as in `create_array`.
    filters, compressors : codec, list of codecs, "auto" or None, default "keep"
        Codecs before and after the serializer. A codec is a name, a dict of metadata, a `Codec`, or an object of zarr-python or
        numcodecs.
    serializer : codec or "auto", default "keep"
        The codec that turns elements into bytes. Only format 3 has one.
    fill_value : scalar or None, optional
        The value of elements that are not stored. By default that of ``data``. None means null, in format 2.
    order : {"C", "F"}, optional
        Order of elements in the arrays that reads return. In format 2 also the order in the chunks.
    zarr_format : {2, 3}, optional
        Format of the metadata. By default that of the node, or the setting ``default_zarr_format`` for a new one.
    attributes : mapping, optional
        Attributes of a new array. By default those of ``data``.
    chunk_key_encoding : str or dict, optional
        How keys of chunks are formed, such as "v2" or ``{"name": "default", "separator": "."}``.
    dimension_names : sequence of str or None, optional
        A name for each dimension (format 3).
    storage_options : dict, optional
        Options of a plug-in's store, or of fsspec or obstore, which open a URL with another scheme.
    overwrite : bool, default False
        Replaces what is there, with all below it.
    config : ArrayConfig or dict, optional
        Run-time options of the handle, by the names of `ArrayConfig`, such as ``order`` and ``wave_bytes``.
    device : str, optional
        A device such as "cuda:0", whose memory ``read(device=)``, ``out=`` and values may then use. Loads the plug-in for it.
    like : array, class, module, or {"numpy", "cupy", "torch", "jax"}, optional
        Whose arrays reads return, on ``device`` or on that of the array. By default the setting ``like``.
    meta_array : array, optional
        What zarr 2 calls ``like``.

    Returns
    -------
    Array
        The new array.

    Raises
    ------
    ContainsArrayError, ContainsGroupError
        A node exists at the path.
    UnsupportedError
        zarrc lacks a codec or a data type.

    Examples
    --------
    >>> z = zarrc.create_array("x.zarr", data=np.arange(6), chunks=2, attributes={"unit": "m"})
    >>> copied = zarrc.from_array("y.zarr", data=z, chunks=3)
    >>> copied.chunks, copied.attrs["unit"], int(copied[4])
    ((3,), 'm', 4)
    """
    place = name
    kept = _create.like_arguments(data)
    wanted = {"chunks": chunks, "shards": shards, "filters": filters, "compressors": compressors, "serializer": serializer}
    given: dict[str, Any] = {name: kept.get(name, None if name == "shards" else "auto") if isinstance(value, str) and value == "keep" else value
             for name, value in wanted.items()}
    same = zarr_format is None or zarr_format == getattr(data, "zarr_format", zarr_format)
    if not same:  # the codecs of the other format have other names
        given |= {name: "auto" for name in ("filters", "compressors", "serializer") if wanted[name] == "keep"}
    given["fill_value"] = kept.get("fill_value", DEFAULT_FILL_VALUE) if fill_value is DEFAULT_FILL_VALUE else fill_value
    for name, value in (("order", order), ("attributes", attributes),
                        ("dimension_names", dimension_names), ("zarr_format", zarr_format)):
        given[name] = kept.get(name) if value is None else value
    return create_array(store, name=place, data=data, write_data=write_data, chunk_key_encoding=chunk_key_encoding,
                        storage_options=storage_options, overwrite=overwrite, config=config, device=device, like=like, meta_array=meta_array, **given)


def empty(shape: ShapeLike, **kwargs: Unpack[_arguments.Full]) -> Array:
    """Creates an array whose elements have no value of note: they read as zero."""
    return create(shape, **kwargs)


def zeros(shape: ShapeLike, **kwargs: Unpack[_arguments.Full]) -> Array:
    """Creates an array of zeros."""
    return create(shape, fill_value=0, **kwargs)


def ones(shape: ShapeLike, **kwargs: Unpack[_arguments.Full]) -> Array:
    """Creates an array of ones."""
    return create(shape, fill_value=1, **kwargs)


def full(shape: ShapeLike, fill_value: FillValue, **kwargs: Unpack[_arguments.Full]) -> Array:
    """Creates an array of one value."""
    return create(shape, fill_value=fill_value, **kwargs)


def _like(a: Any, kwargs: Mapping[str, Any], **more: Any) -> Array:
    kept = {k: v for k, v in _create.like_arguments(a).items() if k in ("shape", "dtype", "chunks", "order", "zarr_format")}
    given = {**kept, **kwargs, **more}
    store, path = given.pop("store", None), given.pop("path", None)
    return create_array(store, name=path, **given)


def empty_like(a: ArrayLike, **kwargs: Unpack[_arguments.Like]) -> Array:
    """Creates an array with the shape, type and chunks of another."""
    return _like(a, kwargs)


def zeros_like(a: ArrayLike, **kwargs: Unpack[_arguments.Like]) -> Array:
    return _like(a, kwargs, fill_value=0)


def ones_like(a: ArrayLike, **kwargs: Unpack[_arguments.Like]) -> Array:
    return _like(a, kwargs, fill_value=1)


def full_like(a: ArrayLike, fill_value: FillValue = None, **kwargs: Unpack[_arguments.Like]) -> Array:
    return _like(a, kwargs, fill_value=getattr(a, "fill_value", DEFAULT_FILL_VALUE) if fill_value is None else fill_value)


def open_like(a: ArrayLike, path: str, **kwargs: Unpack[_arguments.OpenLike]) -> Array:
    """Opens an array, which is created like `a` if it is missing."""
    kept = {k: v for k, v in _create.like_arguments(a).items() if k in ("shape", "dtype", "chunks", "order", "zarr_format", "fill_value")}
    return open_array(path=path, **{**kept, **kwargs})


def create_hierarchy(*, store: StoreLike, nodes: Mapping[str, Any], overwrite: bool = False) -> Iterator[tuple[str, Array | Group]]:
    """Creates several nodes from their metadata: dicts, or metadata of zarr-python. Groups above them
    that are missing are created, too. Parents come before their children."""
    return _group.create_hierarchy(open_place(store, mode="a"), nodes, overwrite=overwrite, config=_config_for(store, None))


# ---- whole arrays and hierarchies ----


def save_array(store: StoreLike, arr: ArrayLike, *, zarr_format: int | None = None, path: str | None = None,
               storage_options: dict[str, Any] | None = None, **kwargs: Unpack[_arguments.SaveArray]) -> None:
    """Stores an array, in place of what is there."""
    given: dict[str, Any] = {"overwrite": True, **kwargs}
    given.pop("mode", None)
    create_array(store, name=path, data=_with_dtype(arr), zarr_format=zarr_format, storage_options=storage_options, **given)


def _with_dtype(arr: Any) -> Any:
    """An array of NumPy, or one of another library on its device."""
    return arr if is_foreign(arr) else np.asarray(arr)


def save_group(store: StoreLike, *args: ArrayLike, zarr_format: int | None = None, path: str | None = None,
               storage_options: dict[str, Any] | None = None, **named: ArrayLike) -> None:
    """Stores arrays in a group: by their names, or as arr_0 and so on."""
    if not args and not named:
        raise ValueError("at least one array is needed")
    place = open_place(store, mode="a", path=path, storage_options=storage_options)
    values = {name: _with_dtype(arr) for name, arr in {**{f"arr_{i}": arr for i, arr in enumerate(args)}, **named}.items()}
    for arr in values.values():
        _create.check_value(place.store, arr)
    target = _group.create(place, overwrite=True, zarr_format=zarr_format, claim=True)
    is_complete = False
    try:
        with _consolidation.join_updates():
            for name, arr in values.items():
                target.create_array(name, data=arr)
        is_complete = True
    finally:
        target._release_claim(is_complete)


def save(store: StoreLike, *args: ArrayLike, zarr_format: int | None = None, path: str | None = None, **named: ArrayLike) -> None:
    """Stores one array, or several as a group."""
    if not args and not named:
        raise ValueError("at least one array is needed")
    if len(args) == 1 and not named:
        save_array(store, args[0], zarr_format=zarr_format, path=path)
    else:
        more: dict[str, Any] = {**named}
        save_group(store, *args, zarr_format=zarr_format, path=path, **more)


def load(store: StoreLike, path: str | None = None, zarr_format: int | None = None, *, device: str | None = None, like: LikeLike = None) -> Any:
    """Reads an array, or the arrays of a group as a dict. ``device`` and ``like`` are those of `open`."""
    node = open(store, mode="r", path=path, zarr_format=zarr_format, device=device, like=like)
    if isinstance(node, Array):
        return node[()]
    return {name: member[()] for name, member in node.arrays()}


def consolidate_metadata(store: StoreLike, path: str | None = None, zarr_format: int | None = None, *, device: str | None = None,
                         like: LikeLike = None, meta_array: LikeLike = None) -> Group:
    """Writes the metadata of all nodes below a group into one document, and opens the group from it.

    Parameters
    ----------
    store : str, path, Store, Group, mapping, store of another package
        Where the node is: a path, a URL, or an open store or group.
    path : str, optional
        Path of the group in the store. By default the root.
    zarr_format : {2, 3}, optional
        Format of the metadata. By default that of the node.
    device : str, optional
        A device such as "cuda:0", whose memory ``read(device=)``, ``out=`` and values may then use. Loads the plug-in for it.
    like : array, class, module, or {"numpy", "cupy", "torch", "jax"}, optional
        Whose arrays reads return, on ``device`` or on that of the array. By default as the group ``store`` was opened, else the setting ``like``.
    meta_array : array, optional
        What zarr 2 calls ``like``.

    Returns
    -------
    Group
        The group, whose members are those of the document.

    Raises
    ------
    GroupNotFoundError
        There is no group at the path.
    ReadOnlyError
        The store is read-only.

    Examples
    --------
    >>> root = zarrc.create_group("x.zarr")
    >>> z = root.create_array("a", shape=3, dtype="int8")
    >>> list(zarrc.consolidate_metadata("x.zarr"))
    ['a']
    """
    more: dict[str, Any] = {}
    with _open_for(store, more, device, like, meta_array):
        place = open_place(store, mode="r+", path=path)
    try:
        place.store._consolidate(place.path)
    except NotFoundError as problem:
        raise as_class(GroupNotFoundError, problem) from None
    return _group.open_in_store(place.store, place.path, zarr_format=zarr_format, use_consolidated=True,
                                config=_config_for(store, more.get("config")))


def tree(grp: StoreLike, expand: bool | None = None, level: int | None = None) -> Tree:
    """The hierarchy below a group, or of a store."""
    return (grp if isinstance(grp, Group) else open_group(grp, mode="r")).tree(expand=expand, level=level)


def _if_exists(word: str) -> int:
    flags = {"raise": 0, "replace": _core.ZARR_COPY_OVERWRITE, "skip": _core.ZARR_COPY_SKIP_EQUAL}
    if word not in flags:
        raise ValueError(f"if_exists: {word!r} is not one of {', '.join(flags)}")
    return flags[word]


def _copy(source: Store, path: str, dest: Store, dest_path: str, if_exists: str) -> None:
    try:
        _consolidation.copy(source, path, dest, dest_path, flags=_if_exists(if_exists))
    except ExistsError as error:
        error.add_note("if_exists='skip' continues an interrupted copy, if_exists='replace' begins it again")
        raise


def copy(source: Array | Group, dest: Group, name: str | None = None, *, if_exists: str = "raise") -> Array | Group:
    """Copies a node, with all below it, into a group. Stored chunks are copied as they are; "skip"
    keeps equal objects, so that an interrupted copy goes on."""
    name = name or source.basename
    if not name:
        raise ValueError("a name is needed for the copy of a root")
    path = join_path(dest.path, name)
    _copy(source.store, source.path, dest.store, path, if_exists)
    opener: Any = _array.open_in_store if isinstance(source, Array) else _group.open_in_store
    found: Array | Group = opener(dest.store, path, config=dest._config_for())
    return found


def copy_all(source: Group, dest: Group, *, if_exists: str = "raise") -> None:
    """Copies the members of a group into another."""
    with _consolidation.join_updates():
        for _, member in source.members():
            copy(member, dest, if_exists=if_exists)


def copy_store(source: StoreLike, dest: StoreLike, *, if_exists: str = "raise") -> None:
    """Copies the root of a store, and all below it, to another store."""
    here, there = open_place(source, mode="r"), open_place(dest, mode="a")
    _copy(here.store, here.path, there.store, there.path, if_exists)


def print_debug_info() -> None:
    """Prints versions, and how many threads are used, for reports of bugs."""
    rows = [("zarrc", _core.version()), ("libzarrc", _core.version()), ("numpy", np.__version__),
            ("python", platform.python_version()), ("platform", platform.platform()),
            ("max_threads", settings["max_threads"] or _threads.count() or _core.core_count())]
    rows += [(name, getattr(sys.modules[name], "__version__", "?")) for name in ("zarr", "xarray", "dask") if name in sys.modules]
    rows += [(name, os.environ[name]) for name in sorted(os.environ) if name.startswith("ZARRC_")]
    for name, value in rows:
        print(f"{name}: {value}")


