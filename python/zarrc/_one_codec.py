"""One codec at a time, for the classes of `zarrc_hook.codecs`: zarr-python's own pipeline asks them chunk by chunk.

A codec runs in an array of one chunk. The codec "zarrc.capture" stands beside it where both of its sides are arrays, or both
are bytes: it takes what the codec gives, or gives what the codec takes. With `zarrc.enable` none of this is used.
"""
from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import math
import warnings
import weakref
from typing import Any

import numpy as np

from . import _core, _dtypes, _indexing, _plugin_classes, _plugins, _store
from ._settings import settings
from .errors import ZarrcError

_places: weakref.WeakValueDictionary[int, Place] = weakref.WeakValueDictionary()
_numbers = itertools.count(1)
_WRITE = {"empty_chunks": _core.ZARR_EMPTY_CHUNKS_WRITE}
_ONE = np.zeros(1, "u1")  # the chunk beside a capture of bytes


class Place:
    """Where a capture puts what it takes."""

    def __init__(self) -> None:
        self.number = next(_numbers)
        self.taken: Any = None
        self.gives: Any = b"\0"
        self.spec: _plugin_classes.ChunkSpec | None = None
        _places[self.number] = self


class Capture(_plugin_classes.Serializer):
    name = "zarrc.capture"
    zarr_formats = (3,)

    def __init__(self, place: int) -> None:
        self.place = _places[place]

    def configuration(self) -> dict[str, Any]:
        return {"place": self.place.number}

    def encode(self, chunk: Any, spec: _plugin_classes.ChunkSpec) -> Any:
        self.place.taken = chunk
        return self.place.gives

    def decode(self, chunk: Any, spec: _plugin_classes.ChunkSpec) -> Any:
        self.place.taken = chunk
        return self.place.gives

    def encoded_bytes(self, spec: _plugin_classes.ChunkSpec) -> int | None:
        self.place.spec = spec
        return None


class _Handle:
    """An array of one chunk, with the place of its capture. One call at a time uses it."""

    def __init__(self, store: _store.Store, name: str, document: dict[str, Any]) -> None:
        self.place = Place()
        capture = {"name": Capture.name, "configuration": {"place": self.place.number}}
        text = json.dumps({**document, "codecs": [one or capture for one in document["codecs"]]})
        self.array: Any = _core.open_document(_core.Array, store, name, text, None, {"flags": 0})
        self.key = "/".join([name, *"0" * max(self.array.ndim, 1)])

    def _order(self, dtype: np.dtype[Any]) -> int:
        order = _dtypes.find_byte_order(self.array.dtype, dtype)
        if order is None:
            raise TypeError(f"the elements are of {dtype}, and those of the chunk of {self.array.dtype}")
        return order

    def encode(self, chunk: np.ndarray[Any, Any]) -> Any:
        """The stored bytes of a chunk."""
        if self.array._how == _dtypes.VLEN:
            chunk, order = _indexing.to_vlen(self.array, chunk), _dtypes.NATIVE  # type: ignore[assignment]
        else:
            order = self._order(chunk.dtype)
        ((_, block),) = self.array._encode(None, chunk, order, [], [], _WRITE)
        return block

    def decode(self, data: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """The chunk of stored bytes."""
        if self.array._how == _dtypes.VLEN:
            box = self.array._vlen(self.array.shape)
            self.array._decode(None, box, _dtypes.NATIVE, [self.key], [data], {})
            return _indexing.from_vlen(self.array, box).astype(dtype, copy=False)
        out = np.empty(self.array.shape, dtype)
        self.array._decode(None, out, self._order(dtype), [self.key], [data], {})
        return out


class _Pool:
    """The handles for a codec and a kind of chunk. Each thread takes one."""

    def __init__(self, store: _store.Store, name: str, document: dict[str, Any]) -> None:
        self._make = functools.partial(_Handle, store, name, document)
        self._free = [first := self._make()]
        self.spec = first.place.spec  # of what a codec of arrays gives

    def _take(self, gives: Any) -> _Handle:
        try:
            handle = self._free.pop()
        except IndexError:
            handle = self._make()
        handle.place.gives = gives
        return handle

    def _give_back(self, handle: _Handle) -> None:
        handle.place.taken, handle.place.gives = None, b"\0"
        self._free.append(handle)

    def encode(self, chunk: np.ndarray[Any, Any], gives: Any = b"\0") -> tuple[Any, Any]:
        """(the stored bytes, what the capture took)"""
        handle = self._take(gives)
        try:
            return handle.encode(chunk), handle.place.taken
        finally:
            self._give_back(handle)

    def decode(self, data: Any, dtype: np.dtype[Any], gives: Any = None) -> tuple[Any, Any]:
        """(the chunk, what the capture took)"""
        handle = self._take(gives)
        try:
            return handle.decode(data, dtype), handle.place.taken
        finally:
            self._give_back(handle)


@functools.lru_cache(1)
def _find_store(like: _core.Context) -> _store.Store:
    """An empty store in a context as another one is, which knows the capture."""
    context = settings.context_with(like, _plugins.registry.enter_private(Capture))
    return _store.open_url("memory:", {}, context)


@functools.lru_cache(256)
def _find_pool(store: _store.Store, text: str, kind: str, shape: tuple[int, ...], dtype: Any, fill: Any) -> _Pool:
    """The pool of a codec. `fill`: text, or the bytes of an element; None: the default."""
    codec = json.loads(text)
    told: Any = "uint8"
    value: Any = 0
    if kind != "bytes":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # zarr-python has told the user when it opened the array
            told = dtype.to_json(zarr_format=3)
            if fill is None:
                fill = dtype.default_scalar()
            elif isinstance(fill, bytes):
                fill = np.frombuffer(fill, dtype.to_native_dtype())[0]
            value = dtype.to_json_scalar(fill, zarr_format=3)
    chain = {"array": [codec, None], "serializer": [codec], "bytes": [None, codec]}[kind]  # None: the capture
    return _Pool(store, codec["name"], {
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": told, "fill_value": value, "codecs": chain, "attributes": {},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shape}},
        "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "/"}}})


def _pool(codec: Any, shape: tuple[int, ...], dtype: Any, fill: Any = None) -> _Pool:
    if codec.kind == "bytes":
        shape, dtype = (1,), None
    return _find_pool(_find_store(settings.context()), codec.text, codec.kind, tuple(shape), dtype, fill)


# ---- what the classes call ----


def check(codec: Any, shape: tuple[int, ...], dtype: Any) -> None:
    """Raises what is wrong with a configuration. A reshape depends on the lengths of the chunk, so its first chunk tells."""
    if codec.name != "reshape":
        _pool(codec, (1,) * len(shape), dtype)


def resolve(codec: Any, spec: Any) -> Any:
    """The spec of the chunk that a codec of arrays gives. zarr-python also asks for the shape of the whole array, which the codec
    may refuse: then only the number of dimensions counts."""
    native = spec.dtype.to_native_dtype()
    fill = spec.fill_value
    try:
        found = _pool(codec, spec.shape, spec.dtype, fill if isinstance(fill, str) else np.asarray(fill).astype(native).tobytes()).spec
    except ZarrcError:
        ndim = len(codec.configuration["shape"]) if codec.name == "reshape" else len(spec.shape)
        return spec if ndim == len(spec.shape) else dataclasses.replace(spec, shape=(1,) * ndim)
    assert found is not None and found.dtype is not None
    if found.dtype == native.newbyteorder("="):
        fill = np.asarray(found.fill_value).astype(native)[()]
        return dataclasses.replace(spec, shape=found.shape, fill_value=fill)
    from zarr.dtype import parse_dtype
    dtype: Any = parse_dtype(found.dtype, zarr_format=3)
    return dataclasses.replace(spec, shape=found.shape, dtype=dtype, fill_value=found.fill_value)


def encode(codec: Any, chunk: Any, spec: Any) -> Any:
    """zarr-python's buffer of what a codec makes of a chunk."""
    pool, given = _pool(codec, spec.shape, spec.dtype), chunk.as_numpy_array()
    if codec.kind == "array":
        return spec.prototype.nd_buffer.from_numpy_array(pool.encode(given)[1])
    block, _ = pool.encode(_ONE, given) if codec.kind == "bytes" else pool.encode(given)
    return spec.prototype.buffer.from_bytes(block)


def decode(codec: Any, chunk: Any, spec: Any) -> Any:
    """zarr-python's buffer of the chunk that a codec was given."""
    pool, given = _pool(codec, spec.shape, spec.dtype), chunk.as_numpy_array()
    if codec.kind == "bytes":
        return spec.prototype.buffer.from_bytes(pool.decode(given, _ONE.dtype, _ONE)[1])
    native = spec.dtype.to_native_dtype()
    if codec.kind == "array":
        assert pool.spec is not None
        found, _ = pool.decode(b"\0", native, given.astype(pool.spec.dtype, copy=False))
    else:
        found, _ = pool.decode(given, native)
    return spec.prototype.nd_buffer.from_numpy_array(found)


# ---- scalars of data types ----


def cast_element(dtype: np.dtype[Any], value: Any) -> Any:
    """An element of a type of ml_dtypes, from any scalar or from text as metadata have it. One that the type lacks is an error."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, dtype.type):
        return np.asarray(value, dtype)[()]
    if isinstance(value, np.generic):
        value = float(value) if value.dtype.kind == "V" else value.item()  # type: ignore[arg-type,unused-ignore]
    if isinstance(value, float) and not math.isfinite(value):
        value = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    try:
        return _dtypes.parse_element(dtype, value)
    except ValueError as problem:
        raise TypeError(str(problem)) from None
