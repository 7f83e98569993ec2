"""What zarr-python's own pipeline does of a batch, which the library lacks something for."""
from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from typing import Any

from zarr.storage import StorePath

from . import _batch, _core, _requests, _store
from ._batch import Item, Refusal
from ._pipeline_stores import OURS, open_local
from ._settings import settings
from ._stats import STATS
from ._zarr_adapters import describe_store
from ._zarr_store import ZarrcStore
from .errors import UnsupportedError, make_error

_log = logging.getLogger("zarrc")


def _array_name(pipeline: Any, place: Any) -> str:
    """The array of a batch, from the key of a chunk and the number of its parts."""
    metadata = pipeline.__dict__["_metadata"]
    try:
        parts = metadata.encode_chunk_key((0,) * len(metadata.shape)).count("/") + 1
        names = place.path.split("/")
        return f"{describe_store(place.store)}/{'/'.join(names[:-parts])}"
    except Exception:  # a place, or a key encoding, of another kind
        return str(place)


def leave_to_zarr(pipeline: Any, batch: list[Item], why: Refusal) -> None:
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
    """The library's store for one of `OURS`, whose blocks zarr-python's own pipeline changes."""
    if type(store) is ZarrcStore:
        return store.native
    root = os.fspath(store.root)
    os.makedirs(root, exist_ok=True)
    facts = os.stat(root)
    return open_local(root, (facts.st_dev, facts.st_ino), settings.context())


async def write_own(pipeline: Any, batch: list[Item], value: Any, drop_axes: tuple[int, ...],
                     own: Callable[..., Awaitable[Any]]) -> None:
    """Blocks of a store of the library that zarr-python reads and changes are taken one by one, each under its lock."""
    is_locked = type(batch[0][0]) is StorePath and type(batch[0][0].store) in OURS
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
