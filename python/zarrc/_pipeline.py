"""The pipeline for zarr-python: a batch of chunks becomes one call of the library.

Files of a LocalStore are read and written by the library. Chunks of other stores go through the
store's own calls, as zarr-python makes them, and are decoded and encoded here; for parts of shards,
the library itself asks the store. Elements may be in memory of a device (zarr-python's GPU mode); metadata and
encoded chunks are asked from stores in host memory. What is not for the library goes to zarr-python's own pipeline,
which also says in its own words why a call fails.
`zarrc_hook.pipeline` has the class; this module is imported when the first pipeline is made.
"""
from __future__ import annotations

import asyncio
import inspect
import json
import logging
import os
import threading
import time
import warnings
import weakref
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import numpy as np
from zarr.codecs import sharding as _sharding
from zarr.core.array_spec import ArrayConfig, ArraySpec
from zarr.core.buffer import cpu, default_buffer_prototype
from zarr.core.common import concurrent_map
from zarr.core.config import config as zarr_config
from zarr.storage import LocalStore, MemoryStore, StorePath

from . import _aio, _batch, _core, _devices, _dtypes, _foreign, _indexing, _quick, _store
from ._adapters import Calls
from ._batch import Item, Refused
from ._config import SYMLINKS, config
from ._stats import STATS
from ._zarr_adapters import host_prototype
from ._zarr_store import ZarrcStore
from .errors import LimitError, ZarrcError

_log = logging.getLogger("zarrc")
_MEMORY = 7  # the registry of kinds of memory
_GRID_SHAPE = 1
_OUTSIDE_RESET = 2
_SKIP, _WRITE = 1, 2  # empty chunks
_ORDERS = {"lexicographic": 1, "unordered": 1, "morton": 2, "colexicographic": 3}
_HANDLES = 16  # of one array: for shapes that its chunks at the end had
_OURS = (LocalStore, ZarrcStore)  # what the library reads and writes itself


# ---- stores ----

_stores: weakref.WeakValueDictionary[tuple[Any, ...], _store.Store] = weakref.WeakValueDictionary()
_stores_lock = threading.Lock()


def _local(root: str, place: tuple[int, int], context: _core.Context) -> _store.Store:
    """The library's store for a directory. An open store holds its directory, so a directory that was
    deleted, made again, or moved since is another store: `place` tells."""
    options = {**config._store_options(), "flags": 0}
    if config["symlinks"] is None:  # as LocalStore does
        options["symlinks"] = SYMLINKS["follow"]
    key = (os.path.abspath(root), *place, context, *options.values())
    with _stores_lock:
        store = _stores.get(key)
        if store is None:
            store = _stores[key] = _store._open_url(key[0], options, context)
    return store


class Settings(NamedTuple):
    of: tuple[Any, ...]
    context: _core.Context


class Counted(NamedTuple):
    """The settings of the latest new array, and when its cores were counted."""

    at: float
    machine: tuple[Any, ...]
    settings: Settings


_RECENT = 1.0  # seconds in which the quota of the control group is not read again
_counted: Counted | None = None


def _settings_of_new(now: tuple[Any, ...]) -> Settings:
    """For the first batch of an array. To count cores is to read files, so a program that opens many arrays, and reads each
    once, counts them once a second."""
    global _counted
    machine = os.sched_getaffinity(0), os.environ.get("ZARRC_THREADS"), os.environ.get("ZARRC_LOG_LEVEL")
    at, found = time.monotonic(), _counted
    if found is None or at - found.at >= _RECENT or (found.machine, found.settings.of) != (machine, now):
        found = _counted = Counted(at, machine, Settings(now, config._context()))
    return found.settings


class LastStore(NamedTuple):
    """The library's store of the batch before. It is that of the next batch, too, if all else is the same."""

    root: Any  # of the LocalStore
    text: str
    place: tuple[int, int]  # device and inode
    settings: Settings
    store: _store.Store


_nowhere: dict[_core.Context, _store.Store] = {}


def _no_store(context: _core.Context) -> _store.Store:
    """An empty store, for arrays whose chunks Python has."""
    if context not in _nowhere:
        _nowhere[context] = _store._open_url("memory:", {})
    return _nowhere[context]


def _is_memory(store: Any) -> bool:
    """Whether the values of a store can be taken from its dict: it is exactly the class that we know."""
    return type(store) is MemoryStore and MemoryStore.get is _quick.memory_get


# ---- one array ----


def _methods(*classes: Any) -> list[tuple[Any, str, Any]]:
    return [(cls, name, value) for cls in classes for name, value in vars(cls).items() if inspect.isfunction(value)]


_OF_SHARDS = _methods(_sharding.ShardingCodec, _sharding._ShardIndex)


def _is_builtin(codec: Any) -> bool:
    """Whether zarr-python itself has the codec. Another class of the same name may do something else, and so
    may a class with another method in place of its own."""
    kind = type(codec)
    if kind.__name__ == "V2Codec" and kind.__module__ == "zarr.codecs._v2":
        given = (*(codec.filters or ()), codec.compressor)
        return all(type(one).__module__.partition(".")[0] == "numcodecs" for one in given if one is not None)
    if not kind.__module__.startswith("zarr.codecs."):
        return False
    if kind.__name__ == "ShardingCodec":
        if any(vars(cls).get(name) is not value for cls, name, value in _OF_SHARDS):
            return False
        return all(map(_is_builtin, (*codec.codecs, *codec.index_codecs)))
    return True


def _document(metadata: Any) -> dict[str, Any]:
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
        raise Refused(f"metadata without text: {type(problem).__name__}") from None
    for name in ("attributes", "consolidated_metadata", "dimension_names"):  # no call of the library here needs them
        document.pop(name, None)
    return document


def _of_any_array(problem: ZarrcError) -> str:
    """Its text without the node, so that one reason counts for all arrays."""
    return f"{type(problem).__name__}: {str(problem.args[0]).removeprefix(f'{problem.node}: ')}"


class Engine:
    """What the library needs for one array, made at its first read or write. Refuses arrays that are
    not for the library."""

    def __init__(self, metadata: Any, codecs: tuple[Any, ...], document: dict[str, Any] | None) -> None:
        self._handles: dict[tuple[Any, ...], _core.Array] = {}
        self._longer: dict[str, Engine] = {}
        self._last: LastStore | None = None
        self._seen: Settings | None = None
        self._lock = threading.Lock()
        if not all(map(_is_builtin, codecs)):
            raise Refused("codec of another package")
        shards = [codec for codec in codecs if type(codec).__name__ == "ShardingCodec"]
        self.is_sharded = bool(shards) and len(codecs) == 1  # else the shard is one opaque chunk
        self.order = _ORDERS.get(getattr(shards[0], "subchunk_write_order", "morton"), 0) if shards else 0
        self._keys(metadata)
        self._json = _document(metadata) if document is None else document

    def _keys(self, metadata: Any) -> None:
        self.ndim = len(metadata.shape)
        if metadata.zarr_format == 2:
            self.separator, self._parts, edges = metadata.dimension_separator, max(self.ndim, 1), metadata.chunks
        else:
            encoding = metadata.chunk_key_encoding
            named = type(encoding).__name__
            if named not in ("DefaultChunkKeyEncoding", "V2ChunkKeyEncoding") or not (
                    type(encoding).__module__.startswith("zarr.core.chunk_key_encodings")):
                raise Refused("chunk key encoding of another package")
            self.separator = encoding.separator
            self._parts = self.ndim + 1 if named[0] == "D" else max(self.ndim, 1)
            grid = metadata.chunk_grid
            edges = getattr(grid, "chunk_shape", None) or getattr(grid, "chunk_shapes", ())
        if len(edges) != self.ndim:
            raise Refused("chunk grid of an unknown kind")
        self.grid = _batch.Grid(tuple(edges))

    def places_of(self, keys: list[str], path: str) -> np.ndarray[Any, Any]:
        """The grid coordinates of keys, also of chunks that the array did not have when it was opened."""
        start = len(path) + 1 if path else 0
        found = [key[start:].split(self.separator)[-self.ndim:] for key in keys]
        return np.array(found).astype(np.int64).reshape(len(keys), self.ndim)

    def grown(self, batch: list[Item], places: np.ndarray[Any, Any]) -> Engine:
        """This, or the same array with more chunks in a rectilinear grid: zarr-python adds one to each list of edges that
        the array outgrows, and leaves those that are there."""
        edges, shape = self.grid.grown(batch, places, self._json["shape"])
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

    def path_of(self, key: str) -> str:
        """The path of the array, from the key of one of its chunks."""
        parts = key.rsplit("/", self._parts if self.separator == "/" else 1)
        return parts[0] if len(parts) > (self._parts if self.separator == "/" else 1) else ""

    def _settings(self) -> Settings:
        """Those of now. An array keeps the cores that were there for its first batch: to count them takes 0.1 ms where the
        caches are cold."""
        seen, now = self._seen, config._of_now()
        if seen is None:
            seen = self._seen = _settings_of_new(now)
        elif seen.of != now:
            seen = self._seen = Settings(now, config._context())
        return seen

    def local(self, root: Any) -> LastStore:
        """The library's store for the directory of a LocalStore."""
        last, settings = self._last, self._settings()
        text = last.text if last is not None and last.root is root else os.fspath(root)
        try:
            facts = os.stat(text)
        except OSError:
            raise Refused("the directory of the store is missing") from None
        place = facts.st_dev, facts.st_ino
        if last is not None and last.settings is settings and (last.text, last.place) == (text, place):
            return last
        found = self._last = LastStore(root, text, place, settings, _local(text, place, settings.context))
        return found

    def array(self, store: _store.Store, path: str, shape: tuple[int, ...] | None = None) -> _core.Array:
        """A handle. zarr-python keeps a pipeline after a resize, so its metadata may be out of date: the
        shape of the handle ends where the grid ends, unless another one is given."""
        key = (id(store), path, shape)  # of the same directory, which a path does not tell; the handle keeps it
        found = self._handles.get(key)
        if found is not None:
            return found
        document = self._json if shape is None else {**self._json, "shape": list(shape)}
        try:
            found = _core.open_document(_core.Array, store, path, json.dumps(document), None,
                                        {"flags": _GRID_SHAPE if shape is None else 0})
        except LimitError:
            raise
        except ZarrcError as problem:
            _log.debug("%s", problem)
            raise Refused(f"metadata that zarrc refuses: {_of_any_array(problem)}") from None
        if found._how == _dtypes.OTHER:
            raise Refused("elements without a counterpart in NumPy")
        with self._lock:
            if len(self._handles) >= _HANDLES:
                self._handles.clear()
            self._handles[key] = found
        return found


_engines_lock = threading.Lock()


def _engine(pipeline: Any) -> Engine:
    state = pipeline.__dict__
    found = state.get("_engine")
    if found is None:
        with _engines_lock:
            try:
                found = Engine(state["_metadata"], tuple(pipeline), state.get("_document"))
            except Refused as why:
                found = str(why)
            state["_engine"] = found
    if isinstance(found, str):
        raise Refused(found)
    assert isinstance(found, Engine)
    return found


def in_child() -> None:
    """After a fork: locks that another thread of the parent held are free."""
    global _stores_lock, _engines_lock, _counted
    _stores_lock, _engines_lock, _counted = threading.Lock(), threading.Lock(), None


def made(cls: Any, metadata: Any) -> Any:
    """A pipeline for the metadata of an array, as zarr-python makes its own."""
    if metadata.zarr_format == 2:
        from zarr.codecs._v2 import V2Codec
        codecs: Any = [V2Codec(filters=metadata.filters, compressor=metadata.compressor)]
        shape = metadata.chunks
        options: Any = {"order": metadata.order}
    else:
        codecs, options = metadata.codecs, {}
        shape = getattr(metadata.chunk_grid, "chunk_shape", None) or (1,) * len(metadata.shape)
    spec = ArraySpec(shape=shape, dtype=metadata.dtype, fill_value=metadata.fill_value,
                     config=ArrayConfig.from_dict(options), prototype=default_buffer_prototype())
    pipeline = cls.from_codecs(codecs).evolve_from_array_spec(spec)
    pipeline.__dict__["_metadata"] = metadata
    if metadata.zarr_format == 3 and hasattr(metadata.chunk_grid, "chunk_shapes"):
        try:  # now, because a setting of zarr-python that may change forbids its text
            pipeline.__dict__["_document"] = _document(metadata)
        except Refused:
            pass
    return pipeline


# ---- one batch ----


class Job:
    """One batch, ready for the library."""

    def __init__(self, engine: Engine, batch: list[Item], memory: Any, device: str | None, drop_axes: tuple[int, ...]) -> None:
        self.engine, self.batch, self.device = engine, batch, device
        self.store = batch[0][0].store
        self.path = engine.path_of(batch[0][0].path)
        self.spec = batch[0][1]
        self.prototype = self.spec.prototype if device is None else host_prototype()  # of encoded chunks
        self.is_ours = type(self.store) in _OURS
        self.array = engine.array(self._library_store(), self.path)
        if engine.grid.is_regular:
            self.places = self._places()
        else:
            self.places = engine.places_of(self.keys(), self.path)
            self.engine = engine.grown(batch, self.places)
            self.array = self.engine.array(self.array.store, self.path)
        self._check_specs()
        self.chosen = _batch.Reader(self.engine.grid, batch, self.places, drop_axes).chosen()
        self.memory, self.byte_order = self._memory(memory)
        self.options: dict[str, Any] = {}

    def _library_store(self) -> _store.Store:
        self.last: LastStore | None = None  # of a LocalStore
        self.settings: Settings | None = None  # a ZarrcStore has its own
        if type(self.store) is ZarrcStore:
            return self.store.native
        if self.is_ours:
            self.last = self.engine.local(self.store.root)
            self.settings = self.last.settings
            return self.last.store
        self.settings = self.engine._settings()
        return _no_store(self.settings.context)

    def keys(self) -> list[str]:
        return [item[0].path for item in self.batch]

    def _places(self) -> Any:
        """Of all items, or of the first and the last one."""
        ndim = self.engine.ndim
        if _batch.needs_places(self.batch):
            return np.frombuffer(self.array._places(self.keys()), np.int64).reshape(len(self.batch), ndim)
        found = memoryview(self.array._places([self.batch[0][0].path, self.batch[-1][0].path])).cast("q").tolist()
        return found[:ndim], found[ndim:]

    def _check_specs(self) -> None:
        """That the chunks are of the grid that the pipeline knows: an array may have grown."""
        grid = self.engine.grid
        for item, place in ((self.batch[0], self.places[0]), (self.batch[-1], self.places[-1])):
            if tuple(item[1].shape) != (grid.chunk or tuple(grid.edge(d, int(p)) for d, p in enumerate(place))):
                raise Refused("chunks of another grid")

    def _memory(self, memory: Any) -> tuple[Any, int]:
        if self.array._how == _dtypes.VLEN:
            if self.device is not None or memory.dtype.kind not in ("O", "T", "U"):
                raise Refused("data type of the memory")
            return memory, 0
        order = _dtypes.order_of(self.array.dtype, memory.dtype)
        if order is None or self.device is not None and order != _dtypes.NATIVE:
            raise Refused("data type of the memory")
        return memory, order

    def lent(self, array: _core.Array, memory: Any, *, is_out: bool = False) -> Any:
        """Memory as a call of the extension takes it. For that of a device, the call waits for what its library
        has queued there."""
        if self.device is None:
            return memory
        found, self.options = _indexing.lent(memory, array, self.options, is_out=is_out)  # type: ignore[arg-type]
        return found

    def selection(self, array: _core.Array) -> _core.Selection | None:
        if self.chosen.points is not None:
            return array._select_points(self.chosen.points, self.chosen.shape)
        if not self.chosen.key:
            return None
        found = array._select(self.chosen.key, False)
        if found.shape != self.chosen.shape:
            raise Refused("selection beyond the grid")
        return found

    def part(self) -> Any:
        """The elements of the memory that the batch is about."""
        return self.memory if self.chosen.part is None else self.memory[self.chosen.part]

    # -- reads --

    def read_into(self) -> Any:
        """The memory to fill: an array of NumPy, or what `lent` gives."""
        target = self.part()
        if target.shape != self.chosen.shape:
            raise Refused("shape of the result")
        self.present = bytearray(len(self.batch))
        self.options["present"] = self.present
        return self.lent(self.array, target, is_out=True)

    def is_whole(self, item: Item) -> bool:
        """Whether zarr-python reads all of a shard for this item."""
        inner = self.array._chunk_shape or item[1].shape
        return item[4] and all(
            isinstance(one, slice) and one.stop is not None and one.stop > edge - length
            for one, edge, length in zip(item[2], item[1].shape, inner))

    def decode(self, values: list[Any]) -> None:
        """Decodes chunks that were fetched."""
        target = self.read_into()
        chunks = [None if value is None else value.as_numpy_array() for value in values]
        selection = self.selection(self.array)
        if self.array._how == _dtypes.VLEN:
            box = self.array._vlen(self.chosen.shape)
            self.array._decode(selection, box, 0, self.keys(), chunks, self.options)
            target[...] = _indexing.from_vlen(self.array, box)  # type: ignore[arg-type]
        else:
            self.array._decode(selection, target, self.byte_order, self.keys(), chunks, self.options)

    def ask_store(self) -> None:
        """Lets the library ask a store of another package for parts of shards, with zarr-python's rules
        for ranges that are close together."""
        if self.prototype.buffer is not host_prototype().buffer:
            raise Refused("part of a shard in buffers of another kind")
        calls = Calls(asyncio.get_running_loop())
        gap = getattr(self.spec.config, "sharding_coalesce_max_gap_bytes", None)
        most = getattr(self.spec.config, "sharding_coalesce_max_bytes", None)
        if gap is not None and most is not None:  # not in zarr-python 3.1
            calls = Calls(calls.loop, gap, most)
            self.options |= {"coalesce_gap": max(gap, 1), "coalesce_bytes": max(most, 1) if gap >= 0 else 1}
        with _opening_for(self.device):
            self.array = self.engine.array(_foreign.store_of(self.store, calls), self.path)

    # -- writes --

    def write_from(self) -> tuple[_core.Array, Any]:
        """The handle and the memory of a write. A whole chunk at the end of the array is written as in
        zarr-python: what is beyond the shape becomes the fill value, unless it is in a shard."""
        source = self.part() if self.memory.ndim else self.memory
        if source.shape not in ((), self.chosen.shape):
            raise Refused("shape of the value")
        self.options["empty_chunks"] = _WRITE if self.spec.config.write_empty_chunks else _SKIP
        array = self.array
        if self.engine.order:
            self.options["inner_order"] = self.engine.order
        if not self.engine.is_sharded and self.chosen.points is None:
            shape = _batch.ends_of(self.engine.grid, self.batch, self.places[-1])
            if shape is not None:
                array = self.engine.array(array.store, self.path, shape)
                self.options["outside"] = _OUTSIDE_RESET
        if array._how != _dtypes.VLEN:
            return array, self.lent(array, source)
        given = np.broadcast_to(source, self.chosen.shape)
        try:
            return array, _indexing.to_vlen(array, given)  # type: ignore[arg-type]
        except (TypeError, ValueError, UnicodeError):
            raise Refused("value that is neither text nor bytes") from None

    def needs_old(self, item: Item) -> bool:
        """Whether zarr-python reads the old value of a chunk before it writes this item."""
        if not item[4]:
            return True
        return self.engine.is_sharded and any(
            _batch._stops(one) < edge for one, edge in zip(item[2], item[1].shape))

    def write_files(self) -> None:
        array, source = self.write_from()
        array._write(self.selection(array), source, self.byte_order, self.options)

    def encode(self, old: list[str], values: list[Any]) -> list[tuple[str, Any]]:
        """Encodes the batch: (key, bytes or None) for each chunk."""
        array, source = self.write_from()
        chunks = [None if value is None else value.as_numpy_array() for value in values]
        return array._encode(self.selection(array), source, self.byte_order, old, chunks, self.options)


def _job(pipeline: Any, batch: list[Item], buffer: Any, drop_axes: tuple[int, ...]) -> Job:
    if type(batch[0][0]) is not StorePath:
        raise Refused("chunks of an unknown place")
    memory = buffer.as_ndarray_like()
    device = _device_of(memory)
    if device is None:
        return Job(_engine(pipeline), batch, memory, device, drop_axes)
    with _opening_for(device):
        return Job(_engine(pipeline), batch, memory, device, drop_axes)


def _opening_for(device: str | None) -> Any:
    """Stores that are opened in the ``with`` statement can use the device, by a plug-in that is loaded anyway, or by
    the package's own."""
    loaded = device is None or any(_devices.KINDS.get(row["device_type"]) == device.partition(":")[0]
                                   for row in config._context().registry(_MEMORY))
    return _devices.opening_for(None if loaded else device)


def _device_of(memory: Any) -> str | None:
    """The device that has the elements, as `zarrc.open(device=)` names it; None: the host."""
    if isinstance(memory, np.ndarray):
        return None
    if not _indexing.is_tensor(memory):
        raise Refused("memory of an unknown kind")
    if not hasattr(memory, "__dlpack_device__"):
        return "cuda"
    kind, number = _devices.place_of(memory.__dlpack_device__())
    if kind not in _devices.KINDS:
        raise Refused("memory of an unknown kind")
    return f"{_devices.KINDS[kind]}:{number}"


async def _open(store: Any) -> None:
    if not store._is_open:
        await (store._ensure_open() if hasattr(store, "_ensure_open") else store._open())


# ---- reads ----


async def read(pipeline: Any, batch: list[Item], out: Any, drop_axes: tuple[int, ...],
               own: Callable[..., Awaitable[Any]], begun: Any = None) -> Any:
    """`begun`: what a Quick has done of it."""
    if begun is not None and (told := await _quick.told(begun, len(batch))) is not None:
        STATS.native(len(batch))
        return told
    if not batch or "_metadata" not in pipeline.__dict__:
        return await own(batch, out, drop_axes)
    try:
        job = await _prepared(pipeline, batch, out, drop_axes)
        await _read(job)
    except (Refused, ZarrcError, TypeError, ValueError, BufferError, IndexError) as problem:
        _fell_back(problem, len(batch))
        return await own(batch, out, drop_axes)
    STATS.native(len(batch))
    if job.is_ours or _is_memory(job.store):
        _quick.keep(pipeline, job)
    return _quick.results(job.present)


def _fell_back(problem: Exception, n: int) -> None:
    """Counts a batch that zarr-python's own pipeline does. A limit that the user set is none of them."""
    if isinstance(problem, LimitError):
        raise problem
    if not isinstance(problem, Refused):
        _log.debug("zarr-python's own pipeline tries again: %s", problem)
        if "no memory backend" in str(problem):
            problem = Refused("memory of a device that no plug-in knows")
    STATS.fallback(n, str(problem) if isinstance(problem, Refused) else f"failure: {type(problem).__name__}")


async def _prepared(pipeline: Any, batch: list[Item], memory: Any, drop_axes: tuple[int, ...]) -> Job:
    store = getattr(batch[0][0], "store", None)
    if type(store) in _OURS:
        await _open(store)
    return _job(pipeline, batch, memory, drop_axes)


async def _read(job: Job) -> None:
    if job.is_ours:
        await _read_store(job)
    elif _is_memory(job.store):
        await _aio.apart(_read_memory, job)
    elif job.engine.is_sharded and not all(map(job.is_whole, job.batch)):
        job.ask_store()
        await _read_store(job)
    else:
        values = await concurrent_map([(item[0], job.prototype) for item in job.batch],
                                      lambda getter, prototype: getter.get(prototype),
                                      zarr_config.get("async.concurrency"))
        await _aio.apart(job.decode, values)


async def _read_store(job: Job) -> None:
    """A request of the library, which no thread of Python waits for: the store of another package may
    need the threads, and this event loop."""
    queue = _aio._queue()
    target = job.read_into()
    array = job.array
    if array._how == _dtypes.VLEN:
        box = array._vlen(job.chosen.shape)
        await queue.run(array._submit(queue.native, _aio.READ, job.selection(array), box, 0, job.options))
        target[...] = await _aio.apart(_indexing.from_vlen, array, box)
    else:
        await queue.run(array._submit(queue.native, _aio.READ, job.selection(array), target, job.byte_order, job.options))


def _read_memory(job: Job) -> None:
    get = job.store._store_dict.get
    job.decode([get(key) for key in job.keys()])


# ---- writes ----


async def write(pipeline: Any, batch: list[Item], value: Any, drop_axes: tuple[int, ...],
                own: Callable[..., Awaitable[Any]]) -> None:
    if not batch or "_metadata" not in pipeline.__dict__:
        await own(batch, value, drop_axes)
        return
    try:
        job = await _prepared(pipeline, batch, value, drop_axes)
        if job.store.read_only:
            raise Refused("store that is read-only")
        await _write(job)
    except (Refused, ZarrcError, TypeError, ValueError, BufferError, IndexError) as problem:
        _fell_back(problem, len(batch))
        await own(batch, value, drop_axes)
        return
    STATS.native(len(batch))


async def _write(job: Job) -> None:
    if job.is_ours:
        await _write_files(job)
    elif _is_memory(job.store):
        await _aio.apart(_write_memory, job)
    else:
        await _write_foreign(job)


async def _write_files(job: Job) -> None:
    if job.array._how == _dtypes.VLEN:
        await _aio.apart(job.write_files)
        return
    array, source = job.write_from()
    queue = _aio._queue()
    await queue.run(array._submit(queue.native, _aio.WRITE, job.selection(array), source, job.byte_order, job.options))


def _write_memory(job: Job) -> None:
    values = job.store._store_dict
    old = [item[0].path for item in job.batch if job.needs_old(item)]
    make = _maker(job)
    for key, block in job.encode(old, [values.get(key) for key in old]):
        if block is None:
            values.pop(key, None)
        else:
            values[key] = make(block)


def _maker(job: Job) -> Callable[[Any], Any]:
    """What makes the buffer that a store gets. A memory store keeps it, so there it is of zarr-python's own kind."""
    if job.device is not None and isinstance(job.store, MemoryStore):
        return lambda block: job.spec.prototype.buffer.from_bytes(block)
    return lambda block: job.prototype.buffer.from_array_like(np.frombuffer(block, "B"))


async def _write_foreign(job: Job) -> None:
    """Through the calls of the store that zarr-python makes."""
    getters = {item[0].path: item[0] for item in job.batch}
    prototype, make = job.prototype, _maker(job)
    old = [item[0].path for item in job.batch if job.needs_old(item)]
    limit = zarr_config.get("async.concurrency")
    values = await concurrent_map([(getters[key],) for key in old],
                                  lambda getter: getter.get(prototype=prototype), limit)
    made = await _aio.apart(job.encode, old, values)

    async def store(key: str, block: Any) -> None:
        if block is None:
            await getters[key].delete()
        else:
            await getters[key].set(make(block))

    await concurrent_map(made, store, limit)
