"""Everyday reads of the pipeline for zarr-python, in one call of the extension (`python/ext/quick.c`).

A read that `_pipeline` prepared, and the library did, leaves a `_core.Quick` behind. It does the next one alone if all rules of
docs/internals/python.md hold. Else it says None, and `_pipeline` does the read as before, and raises what is wrong.
"""
from __future__ import annotations

import functools
import logging
from typing import Any, NamedTuple

from zarr.core.buffer import cpu
from zarr.storage import StorePath

from zarrc_hook.buffer import ZarrcNDBuffer

from . import _core, _dtypes, _requests
from ._pipeline_stores import find_mark
from ._settings import settings
from .errors import ZarrcError

PRESENT, MISSING = {"status": "present"}, {"status": "missing"}
_log = logging.getLogger("zarrc")
_BUFFERS: tuple[Any, ...] = (cpu.NDBuffer, ZarrcNDBuffer)  # of elements, which have an array of NumPy
_SMALL_BYTES = 64 << 10  # more are not decoded on the event loop: the library need not be asked


class KeptRead(NamedTuple):
    """What a Quick is of. A read that another one would do makes a new one."""

    array: _core.Array
    store: Any
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
    grid, array, seen, dtype = job.engine.grid, job.array, job.settings, getattr(job.memory, "dtype", None)
    mark = find_mark(job.store, job.last, array)
    kept = pipeline.__dict__["_kept"]
    if mark is None or (kept is not None and kept.array is array and kept.store is mark.owner and kept.settings is seen
                        and kept.dtype == dtype):
        return
    if (not grid.is_regular or 0 in grid.chunk or job.device is not None or array._how != _dtypes.PLAIN
            or dtype is None or dtype.hasobject or dtype.names is not None or dtype.subdtype is not None):
        return
    rules = (None, (), ()) if seen is None else (settings.snapshot, seen.of, settings.marks())
    if seen is not None and settings.snapshot() != seen.of:  # they changed meanwhile
        return
    values = cpu.Buffer if job.is_memory else None
    pipeline.__dict__["_quick"] = _core.new_quick(array, StorePath, type(job.store), _BUFFERS, grid.chunk, dtype, job.byte_order,
                                                  mark.attribute, mark.directory, rules, (PRESENT, MISSING), values)
    pipeline.__dict__["_kept"] = KeptRead(array, mark.owner, seen, dtype)


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
    is_small = n <= _core.ZX_MOST_AT_ONCE and memory.nbytes <= _SMALL_BYTES
    if is_small and decode({"present": present, "at_once": 1}):
        await _requests.rest()
    else:
        await _requests.apart(decode, {"present": present})
    return results(present)
