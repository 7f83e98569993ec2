"""Everyday reads of the pipeline for zarr-python, in one call of the extension (`python/ext/quick.c`).

A read that `_pipeline` prepared, and the library did, leaves a `_core.Quick` behind. It does the next one alone if all that
mattered is as it was: the store, its directory, the settings, the chunks, the data type of the memory. Else it says None, and
`_pipeline` does the read as before, and raises what is wrong.
"""
from __future__ import annotations

import functools
import logging
import os
import sys
from typing import Any, NamedTuple

from zarr.core.buffer import cpu
from zarr.core.config import config as zarr_config
from zarr.storage import MemoryStore, StorePath

from zarrc_hook.buffer import ZarrcNDBuffer

from . import _core, _devices, _dtypes, _requests
from ._pipeline_stores import memory_get
from ._plugins import registry
from ._settings import settings as of_process
from .errors import ZarrcError

PRESENT, MISSING = {"status": "present"}, {"status": "missing"}
_log = logging.getLogger("zarrc")
_BUFFERS: tuple[Any, ...] = (cpu.NDBuffer, ZarrcNDBuffer)  # of elements, which have an array of NumPy
_SMALL_CHUNKS = 8
_SMALL_BYTES = 32 << 10  # more are not decoded on the event loop: the library need not be asked


class KeptRead(NamedTuple):
    """What a Quick is of. A read that another one would do makes a new one."""

    array: _core.Array
    place: Any
    settings: Any
    dtype: Any


def results(present: Any) -> tuple[Any, ...]:
    """What zarr-python is told, from a byte for each chunk."""
    if 0 not in present:
        return (PRESENT,) * len(present)
    return tuple(PRESENT if one else MISSING for one in present)


def keep(pipeline: Any, job: Any) -> None:
    """After a read: lets the next one be quick, if it can be. It is no failure of the read if it cannot."""
    try:
        _keep(pipeline, job)
    except Exception as problem:
        _log.debug("the next read is not quick: %s", problem)


def _keep(pipeline: Any, job: Any) -> None:
    """From the second read on: an array that is read once needs no more than that."""
    if "_kept" not in pipeline.__dict__:
        pipeline.__dict__["_kept"] = None
        return
    grid, array, settings, dtype = job.engine.grid, job.array, job.settings, getattr(job.memory, "dtype", None)
    where, root, place = _where(job)
    kept = pipeline.__dict__["_kept"]
    if kept is not None and kept.array is array and kept.place is place and kept.settings is settings and kept.dtype == dtype:
        return
    if (not grid.is_regular or 0 in grid.chunk or job.device is not None or array._how != _dtypes.PLAIN
            or dtype is None or dtype.hasobject or dtype.names is not None or dtype.subdtype is not None):
        return
    rules = (None, (), ()) if settings is None else (of_process.snapshot, settings.of, _marks())
    if settings is not None and of_process.snapshot() != settings.of:  # they changed meanwhile
        return
    values = cpu.Buffer if type(job.store) is MemoryStore else None
    pipeline.__dict__["_quick"] = _core.new_quick(array, StorePath, type(job.store), _BUFFERS, grid.chunk, dtype, job.byte_order,
                                                  where, root, rules, (PRESENT, MISSING), values)
    pipeline.__dict__["_kept"] = KeptRead(array, place, settings, dtype)


def _marks() -> tuple[tuple[Any, Any, Any], ...]:
    """What `of_process.snapshot` looks at, each with what is there: (object, attribute, value), (dict, key, value) or (callable,
    None, what it returns). While all are so, the settings are. None of a process that may be a worker of dask, which only a
    call tells."""
    if sys.modules.get("distributed") is not None:
        return ()
    found: list[tuple[Any, Any, Any]] = [(of_process, "values", of_process.values), (sys.modules, "distributed", None),
                                         (_devices._wanted.get, None, _devices.wanted_device())]
    found += [(registry, name, getattr(registry, name)) for name in ("_files", "_rows", "_found")]
    logger: Any = _log
    while logger is not None:
        found += [(logger, "level", logger.level), (logger, "parent", logger.parent)]
        logger = None if logger.level else logger.parent
    settings = zarr_config.config
    limits = settings["threading"]
    return *found, (zarr_config, "config", settings), (settings, "threading", limits), (limits, "max_workers", limits["max_workers"])


def _where(job: Any) -> tuple[tuple[str, Any], tuple[bytes | None, int, int], Any]:
    """An attribute of the store (of its class, for values in memory) and its value; the directory; and what they are of."""
    last = job.last
    if last is not None:
        return ("root", last.root), (os.fsencode(last.text), *last.place), last
    if type(job.store) is MemoryStore:
        return ("get", memory_get), (None, 0, 0), MemoryStore
    return ("_native", job.array.store), (None, 0, 0), job.array.store


async def finish(begun: Any, n: int) -> tuple[Any, ...] | None:
    """Goes on with what a Quick began, and says what zarr-python is told. None: it failed, and so will the other way,
    which knows why."""
    try:
        if isinstance(begun, _core.Request):
            return await _wait_for_end(begun)
        return await _decode_kept(begun, n)
    except (ZarrcError, TypeError, ValueError, BufferError, IndexError) as problem:
        _log.debug("again, without haste: %s", problem)
        return None


async def _wait_for_end(request: _core.Request) -> tuple[Any, ...]:
    try:
        queue = _requests.find_queue()
    except OSError:  # no descriptor is left: nothing would tell that it has ended
        await _requests.apart(request.leave)  # other tasks need not wait for that
        raise
    await queue.wait_for_end(request)
    return results(request.present())


async def _decode_kept(begun: list[Any], n: int) -> tuple[Any, ...]:
    """Decodes chunks that Python has: on the event loop, if that takes less time than to wake a thread, and waits for nothing."""
    array, selection, memory, order, keys, values = begun
    present = bytearray(n)
    decode = functools.partial(array._decode, selection, memory, order, keys, values)
    is_small = n <= _SMALL_CHUNKS and memory.nbytes <= _SMALL_BYTES
    if is_small and decode({"present": present, "at_once": 1}):
        await _requests.rest()
    else:
        await _requests.apart(decode, {"present": present})
    return results(present)
