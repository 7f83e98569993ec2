"""Stores: what `store=` of every call may be, and the type Store."""
from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from . import _core, _devices, _native
from ._config import SYMLINKS, config
from .errors import NodeNotFoundError, NotFoundError, ReadOnlyError, StoreError, make_error


_memory: dict[str, Store] = {}
_memory_lock = threading.Lock()


class Store(_core.Store):
    """Keys and their bytes: a directory, or memory. `zarrc.open_store` makes one.

    It can be given to every call that takes a path. Values are replaced in one step; writers of one
    key wait for each other, across processes too, unless ``locks="none"`` is set.
    """

    _options: dict[str, Any]
    _adapter: Any = None  # of a store of another kind
    _unique = ""  # of one in memory, whose address another may have later

    @property
    def read_only(self) -> bool:
        """Whether writes are refused."""
        return self._read_only

    def with_read_only(self, read_only: bool = True) -> Store:
        """The same store, which refuses writes (or not)."""
        if not read_only and self._options.get("flags", 0) & _core.ZARR_STORE_READ_ONLY:
            if self._adapter is not None:
                raise make_error(ReadOnlyError, f"{self}: the store itself is read-only")
            return _open_url(self.url, {**self._options, "flags": self._options["flags"] & ~_core.ZARR_STORE_READ_ONLY})
        view = self._view(read_only)
        view._options, view._adapter, view._unique = self._options, self._adapter, self._unique
        return view

    @property
    def kind(self) -> str:
        """Such as "local" or "memory"; "python" for one of another package."""
        return self._caps[0] if self._adapter is None else "python"

    @property
    def _can_erase(self) -> bool:
        """False: a mark of unfinished work would stay for ever."""
        return self._adapter is None or bool(self._adapter.can_erase)

    def __contains__(self, key: str) -> bool:
        return self._stat(key) is not None

    def get(self, key: str, offset: int = 0, length: int | None = None) -> bytes | None:
        """The value of a key, or a part of it; None: there is no such key."""
        if offset < 0 or length is not None and length < 0:
            raise ValueError(f"{key}: a part of {length} bytes from {offset} on; neither number is negative")
        return self._get(key, offset) if length is None else self._get(key, offset, length)

    def set(self, key: str, value: bytes | bytearray | memoryview) -> None:
        """Writes a whole value."""
        self._put(key, value)

    def set_if_not_exists(self, key: str, value: bytes | bytearray | memoryview) -> None:
        """Writes a value under a new key; a key that is there stays as it is."""
        from .errors import ExistsError
        try:
            self._put(key, value, True)
        except ExistsError:
            pass

    def delete(self, key: str) -> None:
        """Removes a key, if it is there."""
        try:
            self._erase(key)
        except NotFoundError:
            pass

    def delete_dir(self, prefix: str) -> None:
        """Removes all keys below a prefix."""
        self._erase(prefix, True)

    def getsize(self, key: str) -> int:
        """The length of a value."""
        size = self._stat(key)
        if size is None:
            raise make_error(NotFoundError, f"{key}: there is no such key", key=key)
        return size

    def list(self) -> Iterator[str]:
        """All keys."""
        return self.list_prefix("")

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """All keys below a prefix."""
        return (key for key, _, _ in self._list(prefix.strip("/"), _core.ZARR_LIST_RECURSIVE))

    def list_dir(self, prefix: str) -> Iterator[str]:
        """The names of keys and prefixes one level below a prefix."""
        return (key.rpartition("/")[2] for key, _, _ in self._list(prefix.strip("/"), _core.ZARR_LIST_DIRECTORY))

    def flush(self) -> None:
        """Makes what was written survive a loss of power (see ``config["durability"]``)."""
        self._flush()

    def close(self) -> None:
        """Flushes. Arrays and groups of the store go on working."""
        if not self.read_only:
            self._flush()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        if self._adapter is not None:
            return _reopened_foreign, (self._adapter.picklable_source(), self.read_only, self._options.get("device"))
        if self.kind == "memory":
            raise TypeError("a store in memory cannot be pickled: another process has no access to it")
        return _reopen, (self.url, self._options, self.read_only)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Store):
            return NotImplemented
        if self._adapter is not None and other._adapter is not None:
            same = self._adapter.source is other._adapter.source or bool(self._adapter.source == other._adapter.source)
            return same and self.read_only == other.read_only
        if self.kind != other.kind or self.kind == "memory":
            return self._identity == other._identity
        return self.url == other.url and self.read_only == other.read_only

    def __hash__(self) -> int:
        if self._adapter is not None:
            return hash(type(self._adapter.source))
        return hash(self.url if self.kind != "memory" else self._identity)

    def _token(self) -> str:
        """The same for equal stores, and for no others: dask takes arrays with equal tokens for one."""
        return f"{self}{self._unique}" if self._adapter is None else str(self._adapter.token())

    def __str__(self) -> str:
        if self._adapter is not None:
            return str(self._adapter.describe())
        return f"memory://{self._identity}" if self.kind == "memory" else (
            f"file://{self.url}" if "://" not in self.url else self.url)

    def __repr__(self) -> str:
        return f"<zarrc.Store {self}{' read-only' if self.read_only else ''}>"


def _reopen(url: str, options: dict[str, Any], read_only: bool) -> Store:
    store = _open_url(url, options)
    return store if store.read_only == read_only else store.with_read_only(read_only)


def _reopened_foreign(source: Any, read_only: bool, device: str | None = None) -> Store:
    from ._foreign import open_foreign
    with _devices.opening_for(device):
        store = open_foreign(source)
    assert store is not None
    return store if store.read_only == read_only else store.with_read_only(read_only)


def _open_url(url: str, options: dict[str, Any], context: _core.Context | None = None) -> Store:
    """`context`: that of the settings of now, if it is known."""
    if device := _devices.wanted_device():
        options = {**options, "device": device}
    try:
        with _devices.opening_for(options.get("device")):
            store = _core.open_store(Store, context or config._context(), url, {k: v for k, v in options.items() if k != "device"})
    except NotFoundError as problem:
        raise make_error(NodeNotFoundError, problem.reason, errno=problem.errno) from None
    store._options = options
    if store.kind == "memory":
        store._unique = os.urandom(16).hex()
    return store


class Place(NamedTuple):
    """Where a node is."""

    store: Store
    path: str


def _named_memory(url: str) -> Store:
    """The store in memory that has this name in the process, until delete_memory()."""
    with _memory_lock:
        store = _memory.get(url)
        if store is None:
            _memory[url] = store = _open_url("memory:", {})
        return store


def delete_memory(name: str) -> None:
    """Deletes the store ``memory://name``, which otherwise lives until the process ends. Its memory is freed when no array,
    group or store uses it any more. Raises NotFoundError if there is no such store."""
    with _memory_lock:
        if _memory.pop(f"memory://{name.removeprefix('memory://').rstrip('/')}", None) is None:
            raise make_error(NotFoundError, f"memory://{name}: there is no such store in memory")


def _flags(mode: str) -> int:
    if mode not in ("r", "r+", "a", "w", "w-", "x"):
        raise ValueError(f"mode {mode!r} is not one of r, r+, a, w, w-")
    return _core.ZARR_STORE_READ_ONLY if mode == "r" else 0 if mode == "r+" else _core.ZARR_STORE_CREATE


def _local_path(text: str) -> str | None:
    """The directory of a path or of a URL of files. fsspec calls them "local", too."""
    if text.startswith(("file:", "local://")):
        parts = urlsplit(text)
        if parts.netloc not in ("", "localhost"):
            raise ValueError(f"{text!r}: a file URL has no host; three slashes begin a path")
        return unquote(parts.path)
    return None if "://" in text else text


def _symlink_root(path: str) -> dict[str, str]:
    """The option with which links of a node may lead anywhere in the hierarchy around it, as in the program."""
    root, _ = _core.locate(config._context(), path)
    if not path.startswith(f"{root}/") or not root.isascii() and any("\ud800" <= c <= "\udfff" for c in root):
        return {}
    return {"symlink_root": root}


def _of_text(text: str, mode: str, options: dict[str, Any] | None) -> Place:
    if text == "memory:" or text.startswith("memory://"):
        name, _, path = text.removeprefix("memory:").lstrip("/").partition("/")
        store = _named_memory(f"memory://{name}") if name else _open_url("memory:", {})
        return Place(store.with_read_only(True) if mode == "r" else store, path)
    url = _local_path(text)
    settings = {**config._store_options(), "flags": _flags(mode)}
    if url is not None:
        if options:
            raise TypeError("storage_options are for stores of plug-ins, and for URLs that fsspec or obstore open")
        url = os.path.abspath(url)
        if settings["symlinks"] in (0, SYMLINKS["within"]):
            settings |= _symlink_root(url)
        return Place(_open_url(url, settings), "")
    if not _is_registered(text.partition("://")[0]):
        from . import _adapters, _foreign
        return Place(_foreign.open_adapter(_adapters.of_url(text, options or {})), "")
    if options:
        import json
        settings["config"] = json.dumps(options)
    return Place(_open_url(text, settings), "")


def _is_registered(scheme: str) -> bool:
    """Whether the library, or a plug-in of it, has stores of this name."""
    return any(row["name"] == scheme for row in config._context().registry(_core.ZARR_REGISTRY_STORE))


def open_place(store: Any, *, mode: str = "r", path: str | None = None,
               storage_options: dict[str, Any] | None = None) -> Place:
    """Opens what a user calls a store: None (new memory), a path, a URL, a Store, a Group of zarrc, or
    a store of zarr-python that is a local directory."""
    from ._group import Group

    _flags(mode)
    inner = "" if path is None else path.strip("/")
    if isinstance(store, Group):
        place = Place(store.store, store.path)
    elif isinstance(store, Store):
        place = Place(store, "")
    elif store is None:
        place = Place(_open_url("memory:", {}), "")
    elif isinstance(store, (str, os.PathLike)):
        place = _of_text(os.fspath(store), mode, storage_options)
    else:
        place = _of_foreign(store, mode)
    if storage_options and not isinstance(store, str):
        raise TypeError("storage_options are for URLs")
    opened = place.store
    if mode == "r" and not opened.read_only:
        opened = opened.with_read_only(True)
    elif mode != "r" and opened.read_only:
        raise make_error(ReadOnlyError, f"{opened}: the store is read-only, but mode is {mode!r}")
    return Place(opened, "/".join(part for part in (place.path, inner) if part))


def _of_foreign(store: Any, mode: str) -> Place:
    """Stores of other packages. zarr-python's LocalStore and StorePath are known by their names."""
    kind = type(store)
    if kind.__module__ == "zarrc._zarr_store":
        return Place(store.native, "")
    if kind.__module__.startswith("zarr."):
        if kind.__name__ == "StorePath":
            place = open_place(store.store, mode="r" if store.store.read_only else mode)
            return Place(place.store, "/".join(part for part in (place.path, store.path) if part))
        if kind.__name__ == "LocalStore":
            return _of_text(os.fspath(store.root), "r" if store.read_only else mode, None)
    from ._foreign import open_foreign
    found = open_foreign(store)
    if found is None:
        raise TypeError(f"{kind.__module__}.{kind.__qualname__} is not a store that zarrc opens: give a path, a URL, a "
                        "zarrc.Store, a store of zarr-python or obstore, a map or file system of fsspec, or a mapping")
    return Place(found, "")


def open_store(store: Any = None, *, mode: str = "a", storage_options: dict[str, Any] | None = None,
               device: str | None = None) -> Store:
    """Opens a store: a path, a ``file:`` URL, ``memory:`` (new) or ``memory://name`` (shared in this
    process, until `delete_memory`). With mode "r" it refuses writes; with "a" a missing directory is made. ``device``: see `open`."""
    with _devices.opening_for(device):
        place = open_place(store, mode=mode, storage_options=storage_options)
    if place.path:
        raise ValueError(f"{store!r} names a node, not a store")
    return place.store


__all__ = ["Place", "Store", "delete_memory", "StoreError", "open_place", "open_store"]
_ = _native  # binds the extension


def in_child() -> None:
    """After a fork: the lock that another thread of the parent held is free."""
    global _memory_lock
    _memory_lock = threading.Lock()
