"""What the library needs for one array of zarr-python: its codecs, its document, and its handles."""
from __future__ import annotations

import inspect
import json
import os
import threading
import warnings
from typing import Any

import numpy as np
from zarr.codecs import sharding as _sharding
from zarr.codecs._v2 import V2Codec
from zarr.core.buffer import cpu

from . import _batch, _core, _dtypes
from ._batch import Item, Refusal
from ._pipeline_stores import LastStore, Settings, open_local
from ._settings import settings
from .errors import UnsupportedError, make_error

_ORDERS = {"lexicographic": 0, "unordered": 0, "morton": _core.ZARR_INNER_ORDER_MORTON,
           "colexicographic": _core.ZARR_INNER_ORDER_COLUMN_MAJOR}
_HANDLES = 16  # of one array: for shapes that its chunks at the end had


def _methods(*classes: Any) -> list[tuple[Any, str, Any]]:
    return [(cls, name, value) for cls in classes for name, value in vars(cls).items() if inspect.isfunction(value)]


_OF_SHARDS = _methods(_sharding.ShardingCodec, _sharding._ShardIndex)


def class_name(thing: Any) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def _check_builtin(codec: Any) -> None:
    """Refuses a codec that is neither of zarr-python nor of `zarrc_hook`. Another class of the same name may do something else, and so
    may a class with another method in place of its own."""
    kind = type(codec)
    if kind.__name__ == "V2Codec" and kind.__module__ == "zarr.codecs._v2":
        for one in (*(codec.filters or ()), codec.compressor):
            if one is not None and type(one).__module__.partition(".")[0] != "numcodecs":
                raise Refusal(f"codec {class_name(one)}")
    elif not kind.__module__.startswith(("zarr.codecs.", "zarrc_hook.codecs")):
        raise Refusal(f"codec {class_name(codec)}")
    elif kind.__name__ == "ShardingCodec":
        if any(vars(cls).get(name) is not value for cls, name, value in _OF_SHARDS):
            raise Refusal(f"codec {class_name(codec)} with other methods")
        for one in (*codec.codecs, *codec.index_codecs):
            _check_builtin(one)


def make_document(metadata: Any) -> dict[str, Any]:
    """The metadata as a document, from the object: what is stored may be older, or spelled otherwise."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # zarr-python has told the user when it opened the array
            if metadata.zarr_format == 3 and hasattr(metadata.chunk_grid, "chunk_shape"):
                document: dict[str, Any] = metadata.to_dict()  # of which zarr-python makes the text
            else:
                found = metadata.to_buffer_dict(cpu.buffer_prototype)
                document = json.loads((found.get("zarr.json") or found[".zarray"]).to_bytes())
    except Exception as problem:
        raise Refusal(f"metadata without a document: {type(problem).__name__}") from None
    for name in ("attributes", "consolidated_metadata", "dimension_names"):  # no call of the library here needs them
        document.pop(name, None)
    return document


def document_text(metadata: Any) -> str:
    """The document of an array. UnsupportedError: it has a codec that is not zarr-python's or zarrc's own."""
    try:
        for codec in metadata.codecs if metadata.zarr_format == 3 else (V2Codec(filters=metadata.filters, compressor=metadata.compressor),):
            _check_builtin(codec)
        return json.dumps(make_document(metadata), ensure_ascii=False)
    except Refusal as why:
        raise make_error(UnsupportedError, str(why)) from None


def _lack(problem: UnsupportedError) -> Refusal:
    """What is missing, without the node: one cause counts for all arrays."""
    return Refusal(str(problem.args[0]).removeprefix(f"{problem.node or '/'}: "))


class Engine:
    """What the library needs for one array, made at its first read or write. Refuses arrays that are
    not for the library."""

    def __init__(self, metadata: Any, codecs: tuple[Any, ...], document: dict[str, Any] | None, batch_size: int = 1) -> None:
        self._handles: dict[tuple[Any, ...], _core.Array] = {}
        self._longer: dict[str, Engine] = {}
        self._last: LastStore | None = None
        self._seen: Settings | None = None
        self._encodes = False
        self._batch_size = batch_size  # zarr-python's; 1 is its default, so it is no wish
        self._lock = threading.Lock()
        for codec in codecs:
            _check_builtin(codec)
        shards = [codec for codec in codecs if type(codec).__name__ == "ShardingCodec"]
        self.is_sharded = bool(shards) and len(codecs) == 1  # else the shard is one opaque chunk
        self.order = _ORDERS.get(getattr(shards[0], "subchunk_write_order", "morton"), 0) if shards else 0
        self._keys(metadata)
        self._json = make_document(metadata) if document is None else document

    def _keys(self, metadata: Any) -> None:
        self.ndim = len(metadata.shape)
        if metadata.zarr_format == 2:
            self.separator, self._parts, edges = metadata.dimension_separator, max(self.ndim, 1), metadata.chunks
        else:
            encoding = metadata.chunk_key_encoding
            named = type(encoding).__name__
            if named not in ("DefaultChunkKeyEncoding", "V2ChunkKeyEncoding") or not (
                    type(encoding).__module__.startswith("zarr.core.chunk_key_encodings")):
                raise Refusal(f"chunk key encoding {class_name(encoding)}")
            self.separator = encoding.separator
            self._parts = self.ndim + 1 if named[0] == "D" else max(self.ndim, 1)
            grid = metadata.chunk_grid
            edges = getattr(grid, "chunk_shape", None) or getattr(grid, "chunk_shapes", ())
        if len(edges) != self.ndim:
            raise Refusal(f"chunk grid {class_name(metadata.chunk_grid)}")
        self.grid = _batch.Grid(tuple(edges))

    def parse_keys(self, keys: list[str], path: str) -> np.ndarray[Any, Any]:
        """The grid coordinates of keys, also of chunks that the array did not have when it was opened."""
        start = len(path) + 1 if path else 0
        found = [key[start:].split(self.separator)[-self.ndim:] for key in keys]
        return np.array(found).astype(np.int64).reshape(len(keys), self.ndim)

    def grow(self, batch: list[Item], places: np.ndarray[Any, Any]) -> Engine:
        """This, or the same array with more chunks in a rectilinear grid: zarr-python adds one to each list of edges that
        the array outgrows, and leaves those that are there."""
        edges, shape = self.grid.grow(batch, places, self._json["shape"])
        if shape is None:
            return self
        with self._lock:
            found = self._longer.get(key := str((edges, shape)))
            if found is None:
                if len(self._longer) >= _HANDLES:
                    self._longer.clear()
                found = self._longer[key] = object.__new__(Engine)
                found.__dict__.update(self.__dict__)
                found._handles, found._lock, found._longer = {}, threading.Lock(), {}
                found.grid = _batch.Grid(tuple(edges))
                grid = self._json["chunk_grid"]
                found._json = {**self._json, "shape": shape,
                               "chunk_grid": {**grid, "configuration": {**grid["configuration"], "chunk_shapes": edges}}}
        return found

    def array_path(self, key: str) -> str:
        """The path of the array, from the key of one of its chunks."""
        parts = key.rsplit("/", self._parts if self.separator == "/" else 1)
        return parts[0] if len(parts) > (self._parts if self.separator == "/" else 1) else ""

    def check_encoders(self, array: _core.Array) -> None:
        """Once: the handles of an array have the same codecs."""
        if self._encodes:
            return
        try:
            array._check_codecs(True)
        except UnsupportedError as problem:
            raise _lack(problem) from None
        self._encodes = True

    def _settings(self) -> Settings:
        """Those of now. An array keeps the cores that were there for its first batch."""
        seen, now = self._seen, settings.snapshot()
        if seen is None or seen.of != now:
            seen = self._seen = Settings(now, settings.context())
        return seen

    def local(self, root: Any) -> LastStore:
        """The library's store for the directory of a LocalStore."""
        last, settings = self._last, self._settings()
        text = last.text if last is not None and last.root is root else os.fspath(root)
        facts = os.stat(text)
        place = facts.st_dev, facts.st_ino
        if last is not None and last.settings is settings and (last.text, last.place) == (text, place):
            return last
        found = self._last = LastStore(root, text, place, settings, open_local(text, place, settings.context))
        return found

    def array(self, store: _core.Store, path: str, shape: tuple[int, ...] | None = None) -> _core.Array:
        """A handle. zarr-python keeps a pipeline after a resize, so its metadata may be out of date: the
        shape of the handle ends where the grid ends, unless another one is given."""
        key = (id(store), path, shape)  # of the same directory, which a path does not tell; the handle keeps it
        found = self._handles.get(key)
        if found is not None:
            return found
        document = self._json if shape is None else {**self._json, "shape": list(shape)}
        try:
            text = json.dumps(document, ensure_ascii=False)
            text.encode()
            found = _core.open_document(_core.Array, store, path, text, None, {"flags": _core.ZARR_OPEN_GRID_SHAPE if shape is None else 0})
            found._check_codecs(False)
        except (TypeError, UnicodeEncodeError) as problem:  # such as half of a surrogate pair, which Python takes for text
            raise Refusal(f"metadata without a document: {type(problem).__name__}") from None
        except UnsupportedError as problem:
            raise _lack(problem) from None
        found._tuning = self._wave_bytes(found), 0, 0, 0
        if found._how == _dtypes.OTHER:
            raise Refusal(f"data type {document.get('data_type', document.get('dtype'))} without a counterpart in NumPy")
        with self._lock:
            if len(self._handles) >= _HANDLES:
                self._handles.clear()
            self._handles[key] = found
        return found


    def _wave_bytes(self, array: _core.Array) -> int:
        """The decoded bytes of so many chunks as zarr-python's `codec_pipeline.batch_size` wants in a wave; 0: the library's own waves."""
        if self._batch_size <= 1 or array._how == _dtypes.VLEN:
            return 0
        return min(self._batch_size * self.grid.count_elements() * array.dtype.itemsize, 2**64 - 1)


_engines_lock = threading.Lock()


def find_engine(pipeline: Any) -> Engine:
    state = pipeline.__dict__
    found = state.get("_engine")
    if found is None:
        with _engines_lock:
            try:
                found = Engine(state["_metadata"], tuple(pipeline), state.get("_document"), pipeline.batch_size)
            except Refusal as why:
                found = str(why)
            state["_engine"] = found
    if isinstance(found, str):
        raise Refusal(found)
    assert isinstance(found, Engine)
    return found


def in_child() -> None:
    """After a fork: the lock that another thread of the parent held is free."""
    global _engines_lock
    _engines_lock = threading.Lock()


os.register_at_fork(after_in_child=in_child)
