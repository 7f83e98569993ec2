"""The type Store, and the stores of other packages below it. `_places` has what `store=` of every call may be."""
from __future__ import annotations

import atexit
import hashlib
import os
import threading
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import _core, _devices, _native
from ._log import logger
from ._settings import settings
from .errors import ConflictError, ExistsError, NodeNotFoundError, NotFoundError, ReadOnlyError, UnsupportedError, ZarrcError, make_error

if TYPE_CHECKING:
    from ._adapters import Adapter, Calls


class Store(_core.Store):
    """Keys and their bytes: a directory, or memory. `zarrc.open_store` makes one.

    It can be given to every call that takes a path. Values are replaced in one step; writers of one
    key wait for each other, across processes too, unless ``locks="none"`` is set.
    """

    _options: dict[str, Any]
    _adapter: Any = None  # of a store of another kind
    _address = ""  # the URL that it was opened with, with what `url` does not show
    _unique = ""  # of one in memory, whose address another may have later
    _parts: tuple[Store, Store] | None = None  # of a composite store: where its documents are, and its chunks
    # By plug-in for devices: this store in a context that has it, or why there is none. None: its own context has the plug-in.
    _twins: dict[str, Store | ZarrcError | None]

    @property
    def read_only(self) -> bool:
        """Whether writes are refused."""
        return self._read_only

    @property
    def _default_device(self) -> str | None:
        """The device that it was opened for, else the setting `device`."""
        found: str | None = self._options.get("device") or settings["device"]
        return found

    def with_read_only(self, read_only: bool = True) -> Store:
        """The same store, which refuses writes (or not)."""
        if self._parts is not None and not read_only:
            return combine(*(part.with_read_only(False) for part in self._parts))
        if not read_only and self._options.get("flags", 0) & _core.ZARR_STORE_READ_ONLY:
            if self._adapter is not None:
                raise make_error(ReadOnlyError, f"{self}: the store itself is read-only")
            return open_url(self._address, {**self._options, "flags": self._options["flags"] & ~_core.ZARR_STORE_READ_ONLY})
        view = self._view(read_only)
        view._options, view._adapter, view._unique, view._address = self._options, self._adapter, self._unique, self._address
        view._twins, view._parts = self._twins, self._parts
        return view

    def _can_use(self, device: str) -> bool:
        """Whether a plug-in of the context knows the kind of memory."""
        return any(_devices.KINDS.get(row["device_type"]) == device.partition(":")[0] for row in self._context.registry(_core.ZARR_REGISTRY_MEMORY))

    def _for_device(self, device: str, may_open: bool = True) -> Any:
        """The same store for calls that use memory of a device: itself, or one in a context with the package's plug-in, which is opened
        once. None: it cannot be opened a second time. NotImplemented: it must be opened, and may not."""
        name = _devices.plugin_name(device)
        if name is None:
            return self
        if name not in self._twins:  # of threads that come at the same moment, the first one's stays
            if not may_open:
                return NotImplemented
            self._twins.setdefault(name, None if self._can_use(device) else self._open_twin(device))
        twin = self._twins[name]
        if twin is None:
            return self
        if isinstance(twin, ZarrcError):
            if self._can_reopen:
                raise make_error(type(twin), twin.reason)
            return None
        return twin if twin.read_only == self.read_only else twin.with_read_only(self.read_only)

    @property
    def _can_reopen(self) -> bool:
        """False: what another store of the same place reads and writes is not the same."""
        if self._parts is not None:
            return all(part._can_reopen for part in self._parts)
        return self._adapter is None and self.kind != "memory" and (self.kind != "zip" or self.read_only)

    def _open_twin(self, device: str) -> Store | ZarrcError:
        if not self._can_reopen:
            return make_error(UnsupportedError, f"{self}: the store cannot be opened a second time")
        try:
            context, where = settings.context_for(device, self._context), self._address
            if self._parts is not None:
                metadata, chunks = (part._open_twin(device) for part in self._parts)
                return metadata if isinstance(metadata, ZarrcError) else chunks if isinstance(chunks, ZarrcError) else combine(metadata, chunks)
            if self.kind == "local":  # a directory that was renamed, too
                where = self._directory or where
            found = open_url(where, {**self._options, "device": device}, context)
        except ZarrcError as problem:
            return problem
        if self.kind == "local" and found._directory != self._directory:
            return make_error(ConflictError, f"{self}: there is another directory now")
        if found._can_use(device):
            return found
        return make_error(UnsupportedError, f"{device}: this package has no plug-in for this kind of memory")

    @property
    def kind(self) -> str:
        """Such as "local" or "memory"; "python" for one of another package."""
        return self._caps[0] if self._adapter is None else "python"

    @property
    def _can_erase(self) -> bool:
        """False: a mark of unfinished work would stay for ever."""
        if self._parts is not None:
            return all(part._can_erase for part in self._parts)
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
        if self._parts is not None:
            return _recombine, (*self._parts, self.read_only)
        if self._adapter is not None:
            return _reopen_foreign, (self._adapter.picklable_source(), self.read_only, self._options.get("device"))
        if self.kind == "memory":
            raise TypeError("a store in memory cannot be pickled: another process has no access to it")
        if self.kind == "zip" and not self.read_only:
            self._flush()
        return _reopen, (self._address, self._options, self.read_only)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Store):
            return NotImplemented
        if self._parts is not None or other._parts is not None:
            return (self._parts, self.read_only) == (other._parts, other.read_only)
        if self._adapter is not None and other._adapter is not None:
            same = self._adapter.source is other._adapter.source or bool(self._adapter.source == other._adapter.source)
            return same and self.read_only == other.read_only
        if self.kind != other.kind or self.kind == "memory":
            return self._identity == other._identity
        return (self._address, self._options.get("config"), self.read_only) == (
            other._address, other._options.get("config"), other.read_only)

    def __hash__(self) -> int:
        if self._parts is not None:
            return hash(self._parts)
        if self._adapter is not None:
            return hash(type(self._adapter.source))
        return hash(self._address if self.kind != "memory" else self._identity)

    def _token(self) -> str:
        """The same for equal stores, and for no others: dask takes arrays with equal tokens for one."""
        if self._parts is not None:
            return "+".join(part._token() for part in self._parts)
        if self._adapter is not None:
            return str(self._adapter.token())
        if self._address == self.url and "config" not in self._options:
            return f"{self}{self._unique}"
        secret = repr((self._address, self._options)).encode("utf-8", "surrogateescape")
        return f"{self}#{hashlib.sha256(secret).hexdigest()}"

    def __str__(self) -> str:
        if self._parts is not None:
            return "composite:" + "+".join(map(str, self._parts))
        if self._adapter is not None:
            return self.url
        return f"memory://{self._identity}" if self.kind == "memory" else (
            self.url if "://" in self.url or self.url.startswith("zip:") else f"file://{self.url}")

    def __repr__(self) -> str:
        return f"<zarrc.Store {self}{' read-only' if self.read_only else ''}>"


def _reopen(url: str, options: dict[str, Any], read_only: bool) -> Store:
    store = open_url(url, options)
    if store.kind == "zip" and not store.read_only:
        store._flush_each()  # another process waits for what this one writes
    return store if store.read_only == read_only else store.with_read_only(read_only)


def combine(metadata: Store, chunks: Store) -> Store:
    """A store whose documents are in one store, and whose chunks are in another one."""
    store = _core.open_composite(Store, metadata, chunks, 0)
    store._options, store._twins, store._parts = {"flags": 0}, {}, (metadata, chunks)
    return store.with_read_only(True) if metadata.read_only or chunks.read_only else store


def _recombine(metadata: Store, chunks: Store, read_only: bool) -> Store:
    store = combine(metadata, chunks)
    return store if store.read_only == read_only else store.with_read_only(read_only)


def _reopen_foreign(source: Any, read_only: bool, device: str | None = None) -> Store:
    with _devices.opening_for(device):
        store = open_foreign(source)
    assert store is not None
    return store if store.read_only == read_only else store.with_read_only(read_only)


def open_url(url: str, options: dict[str, Any], context: _core.Context | None = None) -> Store:
    """`context`: that of the settings of now, if it is known."""
    if device := _devices.wanted_device():
        options = {**options, "device": device}
    elif context is None and "device" in options:  # of a store that is opened again
        with _devices.opening_for(options["device"]):
            context = settings.context()
    try:
        store = _core.open_store(Store, context or settings.context(), url, options)
    except NotFoundError as problem:
        raise make_error(NodeNotFoundError, problem.reason, errno=problem.errno) from None
    store._options, store._address, store._twins = options, url, {}
    if store.kind == "memory":
        store._unique = os.urandom(16).hex()
    elif store.kind == "zip" and not store.read_only:
        _archives[id(store)] = store
    return store


# ---- archives ----

_archives: weakref.WeakValueDictionary[int, Store] = weakref.WeakValueDictionary()


def _flush_archives() -> None:
    """An archive is complete after a flush. At the end of the program no other code does it, and a process that is forked or started
    now finds what was written."""
    for store in list(_archives.values()):
        try:
            store._flush()
        except Exception as problem:  # no caller could handle it
            logger.error("%s", problem)


# ---- stores of other packages ----

_stores: weakref.WeakValueDictionary[tuple[Any, ...], Store] = weakref.WeakValueDictionary()
_stores_lock = threading.Lock()


def open_adapter(adapter: Adapter) -> Store:
    """A Store of zarrc whose operations an adapter answers."""
    from . import _foreign

    service = _foreign.service()
    number = service.add(adapter)
    flags = 0 if adapter.can_write else _core.ZARR_STORE_READ_ONLY
    url = adapter.describe().replace("\0", "")
    place = adapter.place()
    texts = None if place is None else "\0".join(text.replace("\0", "") for text in place).encode(errors="surrogateescape")
    store = _core.open_foreign(Store, settings.context(), service.native, url, number, _foreign.store_caps(adapter), adapter.parallel, flags,
                               adapter.can_flush, adapter.can_erase_prefix, texts)
    store._options = {"flags": flags, "device": _devices.wanted_device()}
    store._adapter, store._twins = adapter, {}
    return store


def open_foreign(source: Any, calls: Calls | None = None) -> Store | None:
    """The Store of zarrc for a store of another kind; None: it is none. The same source gives the
    same Store while that is in use. `calls`: for a store of zarr-python."""
    from ._adapters import Calls
    from ._find_adapter import find_adapter

    calls = calls or Calls()
    key = (id(source), id(settings.context()), id(calls.loop), *calls[1:], bool(getattr(source, "read_only", False)))
    with _stores_lock:
        store = _stores.get(key)
        if store is not None and store._adapter is not None and store._adapter.source is source:
            return store
        adapter = find_adapter(source, calls)
        if adapter is None:
            return None
        _stores[key] = store = open_adapter(adapter)
        return store


def wrap_store(zarr_store: Any, calls: Calls | None = None) -> Store:
    """The Store of zarrc for a store of zarr-python, whose operations go through its own methods."""
    store = open_foreign(zarr_store, calls)
    if store is None:
        raise TypeError(f"{type(zarr_store)!r} is not a store")
    return store


_ = _native  # binds the extension


def _in_child() -> None:
    """After a fork: the lock that another thread of the parent held is free, and others wait for what this process writes."""
    global _stores_lock
    _stores_lock = threading.Lock()
    for store in list(_archives.values()):
        store._flush_each()  # as after a pickle; and such a process often ends without the exit handlers


os.register_at_fork(before=_flush_archives, after_in_child=_in_child)
atexit.register(_flush_archives)
