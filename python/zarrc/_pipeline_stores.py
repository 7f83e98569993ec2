"""The library's stores for those of zarr-python, and the settings that a pipeline has seen."""
from __future__ import annotations

import os
import threading
import weakref
from typing import Any, NamedTuple

from zarr.storage import LocalStore, MemoryStore

from . import _core, _devices, _store
from ._settings import SYMLINKS, settings
from ._zarr_store import ZarrcStore

OURS = (LocalStore, ZarrcStore)  # what the library reads and writes itself
memory_get: Any = MemoryStore.get
_stores: weakref.WeakValueDictionary[tuple[Any, ...], _store.Store] = weakref.WeakValueDictionary()
_stores_lock = threading.Lock()


def open_local(root: str, place: tuple[int, int], context: _core.Context) -> _store.Store:
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


class LastStore(NamedTuple):
    """The library's store of the batch before. It is that of the next batch, too, if all else is the same."""

    root: Any  # of the LocalStore
    text: str
    place: tuple[int, int]  # device and inode
    settings: Settings
    store: _store.Store


_nowhere: dict[_core.Context, _store.Store] = {}


def open_nowhere(context: _core.Context) -> _store.Store:
    """An empty store, for arrays whose chunks Python has."""
    if context not in _nowhere:
        _nowhere[context] = _store.open_url("memory:", {})
    return _nowhere[context]


def is_memory(store: Any) -> bool:
    """Whether the values of a store can be taken from its dict: it is exactly the class that we know."""
    return type(store) is MemoryStore and MemoryStore.get is memory_get


class StoreMark(NamedTuple):
    """What tells a Quick that a store is the one of the read before."""

    attribute: tuple[str, Any]  # of the store, and its value; of the class of a store in memory
    directory: tuple[bytes | None, int, int]  # None: it has none; device and inode, as in LastStore
    owner: Any  # of the attribute: the same object means the same store


def find_mark(store: Any, last: LastStore | None, array: _core.Array) -> StoreMark | None:
    """The mark of the store of a batch. None: a Quick does not read this store."""
    if last is not None:
        return StoreMark(("root", last.root), (os.fsencode(last.text), *last.place), last)
    if type(store) is ZarrcStore:
        return StoreMark(("_native", array.store), (None, 0, 0), array.store)
    return StoreMark(("get", memory_get), (None, 0, 0), MemoryStore) if is_memory(store) else None


# ---- devices ----


def knows_device(context: _core.Context, device: str) -> bool:
    """Whether a plug-in of a context has the device's kind of memory."""
    return any(_devices.KINDS.get(row["device_type"]) == device.partition(":")[0] for row in context.registry(_core.ZARR_REGISTRY_MEMORY))


def opening_for(device: str | None) -> Any:
    """Stores that are opened in the ``with`` statement can use the device, by a plug-in that is loaded anyway, or by
    the package's own."""
    return _devices.opening_for(None if device is None or knows_device(settings.context(), device) else device)


def in_child() -> None:
    """After a fork: the lock that another thread of the parent held is free."""
    global _stores_lock
    _stores_lock = threading.Lock()


os.register_at_fork(after_in_child=in_child)
