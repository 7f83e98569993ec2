"""The pipeline for zarr-python: a batch of chunks becomes one call of the library.

Files of a LocalStore are read and written by the library. Chunks of other stores go through the
store's own calls, as zarr-python makes them, and are decoded and encoded here; for parts of shards,
the library itself asks the store. Elements may be in memory of a device (zarr-python's GPU mode); metadata and
encoded chunks are asked from stores in host memory.

A batch that needs what zarrc lacks goes to zarr-python's own pipeline. `_prepared` decides that, before a byte of a chunk
is read or written. After that, nothing does: another decoder has no limits, and another writer no locks.
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

from . import _batch, _core, _devices, _dtypes, _indexing, _quick, _requests, _store
from ._adapters import Calls
from ._batch import Item, Refusal
from ._settings import SYMLINKS, settings
from ._stats import STATS
from ._zarr_adapters import describe_store, host_prototype
from ._zarr_store import ZarrcStore
from .errors import UnsupportedError, ZarrcError, in_store, make_error

_log = logging.getLogger("zarrc")
_ORDERS = {"lexicographic": 0, "unordered": 0, "morton": _core.ZARR_INNER_ORDER_MORTON,
           "colexicographic": _core.ZARR_INNER_ORDER_COLUMN_MAJOR}
_HANDLES = 16  # of one array: for shapes that its chunks at the end had
_OURS = (LocalStore, ZarrcStore)  # what the library reads and writes itself


# ---- stores ----

_stores: weakref.WeakValueDictionary[tuple[Any, ...], _store.Store] = weakref.WeakValueDictionary()
_stores_lock = threading.Lock()


def _local(root: str, place: tuple[int, int], context: _core.Context) -> _store.Store:
    """The library's store for a directory. An open store holds its directory, so a directory that was
    deleted, made again, or moved since is another store: `place` tells."""
    options = {**settings.store_options(), "flags": 0}
    if settings["symlinks"] is None:  # as LocalStore does
        options["symlinks"] = SYMLINKS["follow"]
    key = (os.path.abspath(root), *place, context, *options.values())
    with _stores_lock:
        store = _stores.get(key)
        if store is None:
            store = _stores[key] = _store.open_url(key[0], options, context)
    return store


class Settings(NamedTuple):
    of: tuple[Any, ...]
    context: _core.Context


class CoreCount(NamedTuple):
    """The settings of the latest new array, and when its cores were counted."""

    at: float
    machine: tuple[Any, ...]
    settings: Settings


_RECENT = 1.0  # seconds in which the quota of the control group is not read again
_counted: CoreCount | None = None


def _settings_of_new(now: tuple[Any, ...]) -> Settings:
    """For the first batch of an array. To count cores is to read files, so a program that opens many arrays, and reads each
    once, counts them once a second."""
    global _counted
    machine = os.sched_getaffinity(0), os.environ.get("ZARRC_MAX_THREADS"), os.environ.get("ZARRC_LOG_LEVEL")
    at, found = time.monotonic(), _counted
    if found is None or at - found.at >= _RECENT or (found.machine, found.settings.of) != (machine, now):
        found = _counted = CoreCount(at, machine, Settings(now, settings.context()))
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
        _nowhere[context] = _store.open_url("memory:", {})
    return _nowhere[context]


def _is_memory(store: Any) -> bool:
    """Whether the values of a store can be taken from its dict: it is exactly the class that we know."""
    return type(store) is MemoryStore and MemoryStore.get is _quick.memory_get


# ---- one array ----


def _methods(*classes: Any) -> list[tuple[Any, str, Any]]:
    return [(cls, name, value) for cls in classes for name, value in vars(cls).items() if inspect.isfunction(value)]


_OF_SHARDS = _methods(_sharding.ShardingCodec, _sharding._ShardIndex)


def _class_name(thing: Any) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def _check_builtin(codec: Any) -> None:
    """Refuses a codec that zarr-python itself does not have. Another class of the same name may do something else, and so
    may a class with another method in place of its own."""
    kind = type(codec)
    if kind.__name__ == "V2Codec" and kind.__module__ == "zarr.codecs._v2":
        for one in (*(codec.filters or ()), codec.compressor):
            if one is not None and type(one).__module__.partition(".")[0] != "numcodecs":
                raise Refusal(f"codec {_class_name(one)}")
    elif not kind.__module__.startswith("zarr.codecs."):
        raise Refusal(f"codec {_class_name(codec)}")
    elif kind.__name__ == "ShardingCodec":
        if any(vars(cls).get(name) is not value for cls, name, value in _OF_SHARDS):
            raise Refusal(f"codec {_class_name(codec)} with other methods")
        for one in (*codec.codecs, *codec.index_codecs):
            _check_builtin(one)


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
        raise Refusal(f"metadata without a document: {type(problem).__name__}") from None
    for name in ("attributes", "consolidated_metadata", "dimension_names"):  # no call of the library here needs them
        document.pop(name, None)
    return document


def _lack(problem: UnsupportedError) -> Refusal:
    """What is missing, without the node: one cause counts for all arrays."""
    return Refusal(str(problem.args[0]).removeprefix(f"{problem.node or '/'}: "))


class Engine:
    """What the library needs for one array, made at its first read or write. Refuses arrays that are
    not for the library."""

    def __init__(self, metadata: Any, codecs: tuple[Any, ...], document: dict[str, Any] | None) -> None:
        self._handles: dict[tuple[Any, ...], _core.Array] = {}
        self._longer: dict[str, Engine] = {}
        self._last: LastStore | None = None
        self._seen: Settings | None = None
        self._encodes = False
        self._lock = threading.Lock()
        for codec in codecs:
            _check_builtin(codec)
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
                raise Refusal(f"chunk key encoding {_class_name(encoding)}")
            self.separator = encoding.separator
            self._parts = self.ndim + 1 if named[0] == "D" else max(self.ndim, 1)
            grid = metadata.chunk_grid
            edges = getattr(grid, "chunk_shape", None) or getattr(grid, "chunk_shapes", ())
        if len(edges) != self.ndim:
            raise Refusal(f"chunk grid {_class_name(metadata.chunk_grid)}")
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
        """Those of now. An array keeps the cores that were there for its first batch: to count them takes 0.1 ms where the
        caches are cold."""
        seen, now = self._seen, settings.snapshot()
        if seen is None:
            seen = self._seen = _settings_of_new(now)
        elif seen.of != now:
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
        found = self._last = LastStore(root, text, place, settings, _local(text, place, settings.context))
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
        if found._how == _dtypes.OTHER:
            raise Refusal(f"data type {document.get('data_type', document.get('dtype'))} without a counterpart in NumPy")
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
            except Refusal as why:
                found = str(why)
            state["_engine"] = found
    if isinstance(found, str):
        raise Refusal(found)
    assert isinstance(found, Engine)
    return found


def in_child() -> None:
    """After a fork: locks that another thread of the parent held are free."""
    global _stores_lock, _engines_lock, _counted
    _stores_lock, _engines_lock, _counted = threading.Lock(), threading.Lock(), None


os.register_at_fork(after_in_child=in_child)


def make_pipeline(cls: Any, metadata: Any) -> Any:
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
        except Refusal:
            pass
    return pipeline


# ---- one batch ----


class Job:
    """One batch. It is ready for the library after `prepare_read` or `prepare_write`: only these, and what makes a Job, refuse."""

    present: bytearray  # of a read: for each chunk, whether the store has it
    given: _core.Selection | None  # the selection, for `array`
    elements: Any  # the memory, as a call of the extension takes it

    def __init__(self, engine: Engine, batch: list[Item], memory: Any, device: str | None, drop_axes: tuple[int, ...],
                 is_write: bool) -> None:
        self.engine, self.batch, self.device, self.is_write = engine, batch, device, is_write
        self.store = batch[0][0].store
        self.path = engine.array_path(batch[0][0].path)
        self.spec = batch[0][1]
        self.prototype = self.spec.prototype if device is None else host_prototype()  # of encoded chunks
        self.is_ours = type(self.store) in _OURS
        self.array = engine.array(self._library_store(), self.path)
        if device is not None and not _knows(self.array.store._context, device):
            raise Refusal(f"memory of {device}, a device that no plug-in knows")
        if is_write:
            engine.check_encoders(self.array)
        if engine.grid.is_regular:
            self.places = self._places()
        else:
            self.places = engine.parse_keys(self.keys(), self.path)
            self.engine = engine.grow(batch, self.places)
            self.array = self.engine.array(self.array.store, self.path)
        self._check_specs()
        self.chosen = _batch.Reader(self.engine.grid, batch, self.places, drop_axes).choose()
        self.memory, self.byte_order = self._memory(memory)
        self.options: dict[str, Any] = {}

    def _library_store(self) -> _store.Store:
        self.last: LastStore | None = None  # of a LocalStore
        self.settings: Settings | None = None  # a ZarrcStore has its own
        if type(self.store) is ZarrcStore:
            return self.store.native
        if self.is_ours:
            try:
                self.last = self.engine.local(self.store.root)
            except FileNotFoundError:  # the directory has gone: a write makes it anew, as LocalStore does
                if self.is_write:
                    os.makedirs(self.store.root, exist_ok=True)
                    self.last = self.engine.local(self.store.root)
            if self.last is not None:
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
                raise Refusal("chunks of another grid")

    def _memory(self, memory: Any) -> tuple[Any, int]:
        if self.array._how == _dtypes.VLEN:
            if self.device is not None or memory.dtype.kind not in ("O", "T", "U"):
                raise Refusal(f"memory of the data type {memory.dtype}")
            return memory, 0
        order = _dtypes.find_byte_order(self.array.dtype, memory.dtype)
        if order is None or self.device is not None and order != _dtypes.NATIVE:
            raise Refusal(f"memory of the data type {memory.dtype}")
        return memory, order

    def lend(self, array: _core.Array, memory: Any, *, is_out: bool = False) -> Any:
        """Memory as a call of the extension takes it. For that of a device, the call waits for what its library
        has queued there."""
        if self.device is None:
            return memory
        found, self.options = _indexing.lend(memory, array, self.options, is_out=is_out)
        if isinstance(found, tuple):
            try:
                array._check_address(found)
            except ValueError:
                raise Refusal(f"memory of {self.device}, a device that no plug-in knows") from None
        return found

    def selection(self, array: _core.Array) -> _core.Selection | None:
        if self.chosen.points is not None:
            return array._select_points(self.chosen.points, self.chosen.shape)
        if not self.chosen.key:
            return None
        found = array._select(self.chosen.key, False)
        if found.shape != self.chosen.shape:
            raise Refusal("selection beyond the chunk grid")
        return found

    def part(self) -> Any:
        """The elements of the memory that the batch is about."""
        return self.memory if self.chosen.part is None else self.memory[self.chosen.part]

    # -- reads --

    def prepare_read(self) -> None:
        target = self.part()
        if target.shape != self.chosen.shape:
            raise Refusal("memory of another shape")
        self.asks = not (self.is_ours or _is_memory(self.store)) and self.engine.is_sharded and not all(
            map(self.is_whole, self.batch))
        if self.asks:
            self.ask_store()
        self.present = self.options["present"] = bytearray(len(self.batch))
        self.given = self.selection(self.array)
        self.elements = self.lend(self.array, target, is_out=True)

    def is_whole(self, item: Item) -> bool:
        """Whether zarr-python reads all of a shard for this item."""
        inner = self.array._chunk_shape or item[1].shape
        return item[4] and all(
            isinstance(one, slice) and one.stop is not None and one.stop > edge - length
            for one, edge, length in zip(item[2], item[1].shape, inner))

    def decode(self, values: list[Any]) -> None:
        """Decodes chunks that were fetched."""
        chunks = [None if value is None else value.as_numpy_array() for value in values]
        if self.array._how == _dtypes.VLEN:
            box = self.array._vlen(self.chosen.shape)
            self.array._decode(self.given, box, _dtypes.NATIVE, self.keys(), chunks, self.options)
            self.elements[...] = _indexing.from_vlen(self.array, box)
        else:
            self.array._decode(self.given, self.elements, self.byte_order, self.keys(), chunks, self.options)

    def ask_store(self) -> None:
        """Lets the library ask a store of another package for parts of shards, with zarr-python's rules
        for ranges that are close together."""
        if self.prototype.buffer is not host_prototype().buffer:
            raise Refusal("memory of encoded chunks of another kind")
        calls = Calls(asyncio.get_running_loop())
        gap = getattr(self.spec.config, "sharding_coalesce_max_gap_bytes", None)
        most = getattr(self.spec.config, "sharding_coalesce_max_bytes", None)
        if gap is not None and most is not None:  # not in zarr-python 3.1
            calls = Calls(calls.loop, gap, most)
            self.options |= {"coalesce_gap": max(gap, 1), "coalesce_bytes": max(most, 1) if gap >= 0 else 1}
        with _opening_for(self.device):
            self.array = self.engine.array(_store.wrap_store(self.store, calls), self.path)

    # -- writes --

    def prepare_write(self) -> None:
        """The handle, the selection and the memory of a write. A whole chunk at the end of the array is written as in
        zarr-python: what is beyond the shape becomes the fill value, unless it is in a shard."""
        source = self.part() if self.memory.ndim else self.memory
        if source.shape not in ((), self.chosen.shape):
            raise Refusal("memory of another shape")
        self.options["empty_chunks"] = _core.ZARR_EMPTY_CHUNKS_WRITE if self.spec.config.write_empty_chunks else _core.ZARR_EMPTY_CHUNKS_SKIP
        if self.engine.order:
            self.options["inner_order"] = self.engine.order
        if not self.engine.is_sharded and self.chosen.points is None:
            shape = _batch.find_ends(self.engine.grid, self.batch, self.places[-1])
            if shape is not None:
                self.array = self.engine.array(self.array.store, self.path, shape)
                self.options["outside"] = _core.ZARR_OUTSIDE_RESET
        self.given = self.selection(self.array)
        if self.array._how != _dtypes.VLEN:
            self.elements = self.lend(self.array, source)
            return
        try:
            self.elements = _indexing.to_vlen(self.array, np.broadcast_to(source, self.chosen.shape))
        except (TypeError, ValueError, UnicodeError):
            raise Refusal("memory of objects that are neither text nor bytes") from None

    def needs_old(self, item: Item) -> bool:
        """Whether zarr-python reads the old value of a chunk before it writes this item."""
        return _batch.is_part(item, self.engine.is_sharded)

    def write_files(self) -> None:
        self.array._write(self.given, self.elements, self.byte_order, self.options)

    def encode(self, old: list[str], values: list[Any]) -> list[tuple[str, Any]]:
        """Encodes the batch: (key, bytes or None) for each chunk."""
        chunks = [None if value is None else value.as_numpy_array() for value in values]
        return self.array._encode(self.given, self.elements, self.byte_order, old, chunks, self.options)

    # -- failures --

    def note(self, problem: BaseException, key: str | None) -> None:
        """Says in a note what an exception of another package's store is about."""
        where = f"array {describe_store(self.store)}/{self.path}"
        if key is not None:
            place = np.frombuffer(self.array._places([key]), np.int64).tolist()
            where += f", key {key}, chunk {tuple(place)}"
        problem.add_note(where)

    async def ask(self, key: str, call: Awaitable[Any]) -> Any:
        """What a call of another package's store gives."""
        try:
            return await call
        except Exception as problem:
            self.note(problem, key)
            raise


def _job(pipeline: Any, batch: list[Item], buffer: Any, drop_axes: tuple[int, ...], is_write: bool) -> Job:
    if type(batch[0][0]) is not StorePath:
        raise Refusal(f"store {_class_name(batch[0][0])}")
    memory = buffer.as_ndarray_like()
    device = _device_name(memory)
    if device is None:
        return Job(_engine(pipeline), batch, memory, device, drop_axes, is_write)
    with _opening_for(device):
        return Job(_engine(pipeline), batch, memory, device, drop_axes, is_write)


def _knows(context: _core.Context, device: str) -> bool:
    """Whether a plug-in of a context has the device's kind of memory."""
    return any(_devices.KINDS.get(row["device_type"]) == device.partition(":")[0] for row in context.registry(_core.ZARR_REGISTRY_MEMORY))


def _opening_for(device: str | None) -> Any:
    """Stores that are opened in the ``with`` statement can use the device, by a plug-in that is loaded anyway, or by
    the package's own."""
    return _devices.opening_for(None if device is None or _knows(settings.context(), device) else device)


def _device_name(memory: Any) -> str | None:
    """The device that has the elements, as `zarrc.open(device=)` names it; None: the host."""
    if isinstance(memory, np.ndarray):
        return None
    if not _indexing.is_tensor(memory):
        raise Refusal(f"memory {_class_name(memory)}")
    if not hasattr(memory, "__dlpack_device__"):
        return "cuda"
    kind, number = _devices.parse_dl_device(memory.__dlpack_device__())
    if kind not in _devices.KINDS:
        raise Refusal(f"memory {_class_name(memory)}")
    return f"{_devices.KINDS[kind]}:{number}"


async def _open(store: Any) -> None:
    if not store._is_open:
        await (store._ensure_open() if hasattr(store, "_ensure_open") else store._open())


async def _prepare(pipeline: Any, batch: list[Item], memory: Any, drop_axes: tuple[int, ...], is_write: bool) -> Job:
    """The batch, ready for the library. Refused: zarrc lacks what it needs."""
    store = getattr(batch[0][0], "store", None)
    if type(store) in _OURS:
        await _open(store)
    job = _job(pipeline, batch, memory, drop_axes, is_write)
    if not is_write:
        job.prepare_read()
    elif job.array._how == _dtypes.VLEN:
        await _requests.apart(job.prepare_write)
    else:
        job.prepare_write()
    return job


# ---- what zarr-python does itself ----


def _array_name(pipeline: Any, place: Any) -> str:
    """The array of a batch, from the key of a chunk and the number of its parts."""
    metadata = pipeline.__dict__["_metadata"]
    try:
        parts = metadata.encode_chunk_key((0,) * len(metadata.shape)).count("/") + 1
        names = place.path.split("/")
        return f"{describe_store(place.store)}/{'/'.join(names[:-parts])}"
    except Exception:  # a place, or a key encoding, of another kind
        return str(place)


def _leave(pipeline: Any, batch: list[Item], why: Refusal) -> None:
    """Counts a batch that zarr-python's own pipeline does, which has no limits."""
    array = _array_name(pipeline, batch[0][0])
    if settings["untrusted"]:
        raise make_error(UnsupportedError, f"{array}: zarrc does not support this: {why}. The setting untrusted excludes "
                     "zarr-python's own pipeline, which has no limits; set untrusted=0 for data that you trust")
    _log.debug("zarr-python's own pipeline does %d chunks of %s: %s", len(batch), array, why)
    STATS.fallback(len(batch), str(why), array)


class _LockedPath(StorePath):
    """The place of a block whose lock this task holds. The library writes there, because it knows the lock: not on a thread of
    `_requests.apart`, where tasks may wait for this lock."""

    def __init__(self, place: StorePath, lock: _core.Lock) -> None:
        super().__init__(place.store, place.path)
        self._lock = lock

    async def set(self, value: Any) -> None:
        await asyncio.to_thread(self._lock.put, value.as_numpy_array())

    async def delete(self) -> None:
        await asyncio.to_thread(self._lock.erase)


def _store_with_locks(store: Any) -> _store.Store:
    """The library's store for one of `_OURS`, whose blocks zarr-python's own pipeline changes."""
    if type(store) is ZarrcStore:
        return store.native
    root = os.fspath(store.root)
    os.makedirs(root, exist_ok=True)
    facts = os.stat(root)
    return _local(root, (facts.st_dev, facts.st_ino), _settings_of_new(settings.snapshot()).context)


async def _write_own(pipeline: Any, batch: list[Item], value: Any, drop_axes: tuple[int, ...],
                     own: Callable[..., Awaitable[Any]]) -> None:
    """Blocks of a store of the library that zarr-python reads and changes are taken one by one, each under its lock."""
    is_locked = type(batch[0][0]) is StorePath and type(batch[0][0].store) in _OURS
    parts = [is_locked and _batch.is_part(item, pipeline.supports_partial_encode) for item in batch]
    if not all(parts):
        await own([item for item, is_part in zip(batch, parts) if not is_part], value, drop_axes)
    if not any(parts):
        return
    store = _store_with_locks(batch[0][0].store)
    for item in (item for item, is_part in zip(batch, parts) if is_part):
        lock = await _requests.apart(store._lock, item[0].path)
        try:
            await own([(_LockedPath(item[0], lock), *item[1:])], value, drop_axes)
        finally:
            lock.release()


# ---- reads ----


async def read(pipeline: Any, batch: list[Item], out: Any, drop_axes: tuple[int, ...],
               own: Callable[..., Awaitable[Any]], begun: Any = None) -> Any:
    """`begun`: what a Quick has done of it."""
    if begun is not None and (told := await _quick.finish(begun, len(batch))) is not None:
        STATS.native(len(batch))
        return told
    if not batch or "_metadata" not in pipeline.__dict__:
        return await own(batch, out, drop_axes)
    try:
        job = await _prepare(pipeline, batch, out, drop_axes, is_write=False)
    except Refusal as why:
        _leave(pipeline, batch, why)
        return await own(batch, out, drop_axes)
    await _carry_out(job, _read)
    STATS.native(len(batch))
    if job.last is not None or type(job.store) is ZarrcStore or _is_memory(job.store):
        _quick.keep(pipeline, job)
    return _quick.results(job.present)


async def _carry_out(job: Job, work: Callable[[Job], Awaitable[None]]) -> None:
    """Reads or writes. What a store of another package raised is raised as it is; other failures tell the store."""
    try:
        await work(job)
        return
    except ZarrcError as problem:
        cause = None if job.is_ours or problem.operation == "decode" else problem.__cause__
        if cause is None:
            in_store(problem, describe_store(job.store))
            raise
        job.note(cause, problem.key)
    raise cause


async def _read(job: Job) -> None:
    if job.is_ours or job.asks:
        await _read_store(job)
    elif _is_memory(job.store):
        await _requests.apart(_read_memory, job)
    else:
        values = await concurrent_map([(item[0],) for item in job.batch],
                                      lambda getter: job.ask(getter.path, getter.get(job.prototype)),
                                      zarr_config.get("async.concurrency"))
        await _requests.apart(job.decode, values)


async def _read_store(job: Job) -> None:
    """A request of the library, which no thread of Python waits for: the store of another package may
    need the threads, and this event loop."""
    queue = _requests.find_queue()
    array = job.array
    if array._how == _dtypes.VLEN:
        box = array._vlen(job.chosen.shape)
        await queue.run(array._submit(queue.native, _core.ZX_READ, job.given, box, _dtypes.NATIVE, job.options))
        job.elements[...] = await _requests.apart(_indexing.from_vlen, array, box)
    else:
        await queue.run(array._submit(queue.native, _core.ZX_READ, job.given, job.elements, job.byte_order, job.options))


def _read_memory(job: Job) -> None:
    get = job.store._store_dict.get
    job.decode([get(key) for key in job.keys()])


# ---- writes ----


async def write(pipeline: Any, batch: list[Item], value: Any, drop_axes: tuple[int, ...],
                own: Callable[..., Awaitable[Any]]) -> None:
    if not batch or "_metadata" not in pipeline.__dict__:
        await own(batch, value, drop_axes)
        return
    if getattr(batch[0][0], "read_only", False):
        batch[0][0].store._check_writable()  # raises what zarr-python's own pipeline would
    try:
        job = await _prepare(pipeline, batch, value, drop_axes, is_write=True)
    except Refusal as why:
        _leave(pipeline, batch, why)
        await _write_own(pipeline, batch, value, drop_axes, own)
        return
    await _carry_out(job, _write)
    STATS.native(len(batch))


async def _write(job: Job) -> None:
    if job.is_ours:
        await _write_files(job)
    elif _is_memory(job.store):
        await _requests.apart(_write_memory, job)
    else:
        await _write_foreign(job)


async def _write_files(job: Job) -> None:
    array = job.array
    if array._how == _dtypes.VLEN:
        await _requests.apart(job.write_files)
        return
    queue = _requests.find_queue()
    await queue.run(array._submit(queue.native, _core.ZX_WRITE, job.given, job.elements, job.byte_order, job.options))


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
    values = await concurrent_map([(key,) for key in old],
                                  lambda key: job.ask(key, getters[key].get(prototype=prototype)), limit)
    made = await _requests.apart(job.encode, old, values)

    async def store(key: str, block: Any) -> None:
        place = getters[key]
        await job.ask(key, place.delete() if block is None else place.set(make(block)))

    await concurrent_map(made, store, limit)
