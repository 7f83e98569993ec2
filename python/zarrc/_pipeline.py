"""The pipeline for zarr-python: a batch of chunks becomes one call of the library.

Files of a LocalStore are read and written by the library. Chunks of other stores go through the
store's own calls, as zarr-python makes them, and are decoded and encoded here; for parts of shards,
the library itself asks the store. Elements may be in memory of a device (zarr-python's GPU mode); metadata and
encoded chunks are asked from stores in host memory.

A batch that needs what zarrc lacks goes to zarr-python's own pipeline. `_pipeline_job` decides that, before a byte of a chunk
is read or written. After that, nothing does: another decoder has no limits, and another writer no locks.
`zarrc_hook.pipeline` has the class; this module is imported when the first pipeline is made.
"""
from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
from zarr.core.array_spec import ArrayConfig, ArraySpec
from zarr.core.buffer import default_buffer_prototype
from zarr.core.common import concurrent_map
from zarr.core.config import config as zarr_config
from zarr.storage import MemoryStore

from . import _core, _dtypes, _indexing, _quick, _requests
from ._batch import Item, Refusal
from ._pipeline_engine import make_document
from ._pipeline_fallback import leave_to_zarr, write_own
from ._pipeline_job import Job, make_job
from ._pipeline_stores import OURS
from ._stats import STATS
from ._zarr_adapters import describe_store
from .errors import ZarrcError, in_store


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
            pipeline.__dict__["_document"] = make_document(metadata)
        except Refusal:
            pass
    return pipeline


async def _open(store: Any) -> None:
    if not store._is_open:
        await (store._ensure_open() if hasattr(store, "_ensure_open") else store._open())


async def _prepare(pipeline: Any, batch: list[Item], memory: Any, drop_axes: tuple[int, ...], is_write: bool) -> Job:
    """The batch, ready for the library. Refused: zarrc lacks what it needs."""
    store = getattr(batch[0][0], "store", None)
    if type(store) in OURS:
        await _open(store)
    job = make_job(pipeline, batch, memory, drop_axes, is_write)
    if not is_write:
        job.prepare_read()
    elif job.array._how == _dtypes.VLEN:
        await _requests.apart(job.prepare_write)
    else:
        job.prepare_write()
    return job


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
        leave_to_zarr(pipeline, batch, why)
        return await own(batch, out, drop_axes)
    await _carry_out(job, _read)
    STATS.native(len(batch))
    if job.is_ours or job.is_memory:
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
    elif job.is_memory:
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
        leave_to_zarr(pipeline, batch, why)
        await write_own(pipeline, batch, value, drop_axes, own)
        return
    await _carry_out(job, _write)
    STATS.native(len(batch))


async def _write(job: Job) -> None:
    if job.is_ours:
        await _write_files(job)
    elif job.is_memory:
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
