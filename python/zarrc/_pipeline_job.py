"""One batch of a pipeline, made ready for the library: its selection, its memory and its options."""
from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable
from typing import Any

import numpy as np
from zarr.storage import StorePath

from . import _batch, _core, _devices, _dtypes, _indexing, _store
from ._adapters import Calls
from ._batch import Item, Refusal
from ._pipeline_engine import Engine, class_name, find_engine
from ._pipeline_stores import OURS, LastStore, Settings, is_memory, knows_device, open_nowhere, opening_for
from ._zarr_adapters import describe_store, host_prototype
from ._zarr_store import ZarrcStore


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
        self.is_ours = type(self.store) in OURS
        self.is_memory = not self.is_ours and is_memory(self.store)
        self.array = engine.array(self._library_store(), self.path)
        if device is not None and not knows_device(self.array.store._context, device):
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
            except FileNotFoundError:  # the directory is gone: a write makes it again, as LocalStore does
                if self.is_write:
                    os.makedirs(self.store.root, exist_ok=True)
                    self.last = self.engine.local(self.store.root)
            if self.last is not None:
                self.settings = self.last.settings
                return self.last.store
        self.settings = self.engine._settings()
        return open_nowhere(self.settings.context)

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
        self.asks = not (self.is_ours or self.is_memory) and self.engine.is_sharded and not all(
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
        with opening_for(self.device):
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


def make_job(pipeline: Any, batch: list[Item], buffer: Any, drop_axes: tuple[int, ...], is_write: bool) -> Job:
    if type(batch[0][0]) is not StorePath:
        raise Refusal(f"store {class_name(batch[0][0])}")
    memory = buffer.as_ndarray_like()
    device = _device_name(memory)
    if device is None:
        return Job(find_engine(pipeline), batch, memory, device, drop_axes, is_write)
    with opening_for(device):
        return Job(find_engine(pipeline), batch, memory, device, drop_axes, is_write)


def _device_name(memory: Any) -> str | None:
    """The device that has the elements, as `zarrc.open(device=)` names it; None: the host."""
    if isinstance(memory, np.ndarray):
        return None
    if not _indexing.is_tensor(memory):
        raise Refusal(f"memory {class_name(memory)}")
    if not hasattr(memory, "__dlpack_device__"):
        return "cuda"
    kind, number = _devices.parse_dl_device(memory.__dlpack_device__())
    if kind not in _devices.KINDS:
        raise Refusal(f"memory {class_name(memory)}")
    return f"{_devices.KINDS[kind]}:{number}"
