"""What `store=` of every call may be, and the places that it names."""
from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from . import _core, _devices, _remote
from ._settings import settings
from ._store import Store, combine, open_adapter, open_foreign, open_url
from .errors import NotFoundError, ReadOnlyError, make_error

if TYPE_CHECKING:
    from ._types import StoreLike

_memory: dict[str, Store] = {}
_memory_lock = threading.Lock()


class Place(NamedTuple):
    """Where a node is."""

    store: Store
    path: str


def join_path(*parts: str | None) -> str:
    """A path, of parts that may have slashes around them or be missing."""
    return "/".join(part.strip("/") for part in parts if part)


def _named_memory(url: str) -> Store:
    """The store in memory that has this name in the process, until delete_memory()."""
    with _memory_lock:
        store = _memory.get(url)
        if store is None:
            _memory[url] = store = open_url("memory:", {})
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


def find_local_path(text: str) -> str | None:
    """The directory of a path or of a URL of files. fsspec calls them "local", too."""
    if text.startswith(("file:", "local://")):
        parts = urlsplit(text)
        if parts.netloc not in ("", "localhost"):
            raise ValueError(f"{text!r}: a file URL has no host; three slashes begin a path")
        return unquote(parts.path)
    return None if "://" in text else text


def find_archive(text: str) -> tuple[str, str] | None:
    """The URL of a zip archive, and the path of a node in it; None: the text names no archive. "zip://" is fsspec's."""
    scheme = "zip:" if text.startswith("zip:") and not text.startswith("zip://") else ""
    path = find_local_path(text.removeprefix(scheme))
    if path is None or not scheme and ".zip" not in path and ".ozx" not in path:
        return None
    url, node, _ = _core.locate(settings.context(), f"{scheme}{os.path.abspath(path)}/")  # the slash: brackets are no selection
    return (url, node) if scheme or url.endswith((".zip", ".ozx")) and not os.path.isdir(url) else None


def _of_text(text: str, mode: str, options: dict[str, Any] | None) -> Place:
    if text == "memory:" or text.startswith("memory://"):
        name, _, path = text.removeprefix("memory:").lstrip("/").partition("/")
        store = _named_memory(f"memory://{name}") if name else open_url("memory:", {})
        return Place(store.with_read_only(True) if mode == "r" else store, path)
    url = find_local_path(text)
    wanted: dict[str, Any] = {**settings.store_options(), "flags": _flags(mode)}
    if url is not None:
        if archive := find_archive(text):
            if options:
                import json
                wanted["config"] = json.dumps(options)
            return Place(open_url(archive[0], wanted), archive[1])
        if options:
            raise TypeError("storage_options are for archives, stores of plug-ins, and URLs that fsspec or obstore open")
        return Place(open_url(os.path.abspath(url), wanted), "")
    if _remote.is_remote(text):
        return Place(*_remote.open_remote(text, mode, wanted, options or {}))
    if text.startswith("zip://") or not _is_registered(text.partition("://")[0]):
        from ._find_adapter import open_url_adapter
        return Place(open_adapter(open_url_adapter(text, options or {})), "")
    if options:
        import json
        wanted["config"] = json.dumps(options)
    return Place(*_remote.open_located(text, wanted))


def _is_registered(scheme: str) -> bool:
    """Whether the library, or a plug-in of it, has stores of this name."""
    return any(row["name"] == scheme for row in settings.context().registry(_core.ZARR_REGISTRY_STORE))


def open_place(store: Any, *, mode: str = "r", path: str | None = None,
               storage_options: dict[str, Any] | None = None) -> Place:
    """Opens what a user calls a store: None (new memory), a path, a URL, a Store, a Group of zarrc, or
    a store of zarr-python that is a local directory."""
    _flags(mode)
    inner = "" if path is None else path.strip("/")
    if isinstance(store, _core.Group):
        place = Place(store.store, store.path)  # type: ignore[arg-type]  # what opened it is a Store
    elif isinstance(store, Store):
        place = Place(store, "")
    elif store is None:
        place = Place(open_url("memory:", {}), "")
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
    found = open_foreign(store)
    if found is None:
        raise TypeError(f"{kind.__module__}.{kind.__qualname__} is not a store that zarrc opens: give a path, a URL, a "
                        "zarrc.Store, a store of zarr-python or obstore, a map or file system of fsspec, or a mapping")
    return Place(found, "")


def open_store(store: StoreLike = None, *, mode: str | None = None, storage_options: dict[str, Any] | None = None,
               device: str | None = None, chunk_store: StoreLike = None) -> Store:
    """Opens a store, to which several nodes or other calls have access.

    Parameters
    ----------
    store : str, path, Store, Group, mapping, store of another package, or None
        A path, also of a zip archive, ``zip:PATH``, a ``file:`` URL, ``memory:`` or None (new), ``memory://name`` (shared in this process, until `delete_memory`), or
        a store of another package.
    mode : {"r", "r+", "a"}, optional
        "r" refuses writes, and is the default for URLs of http and https; "r+" needs the directory; "a", the default for others,
        creates a missing directory.
    storage_options : dict, optional
        Options of a plug-in's store, or of fsspec or obstore, which open a URL with another scheme.
    device : str, optional
        A device such as "cuda:0", whose memory ``read(device=)``, ``out=`` and values may then use. Loads the plug-in for it.
    chunk_store : str, path, Store, mapping or store of another package, optional
        Where the chunks are. ``store`` then has the metadata only. By default ``store`` has both.

    Returns
    -------
    Store
        The store.

    Raises
    ------
    NotFoundError
        The directory is missing, and the mode does not create it.
    ReadOnlyError
        The store is read-only, and the mode writes.
    ValueError
        The mode is unknown, or the URL names a node in a store.
    TypeError
        No adapter knows the object.

    Examples
    --------
    >>> store = zarrc.open_store("memory://run1")
    >>> store.set("a/b", b"bytes")
    >>> zarrc.open_store("memory://run1", mode="r").get("a/b")
    b'bytes'
    >>> zarrc.delete_memory("run1")
    """
    with _devices.opening_for(device):
        opened = _open_root(store, mode, storage_options)
        return opened if chunk_store is None else combine(opened, _open_root(chunk_store, mode, None))


def _open_root(store: Any, mode: str | None, storage_options: dict[str, Any] | None) -> Store:
    place = open_place(store, mode=mode or _remote.default_mode(store), storage_options=storage_options)
    if place.path:
        raise ValueError(f"{store!r} names a node, not a store")
    return place.store


def _in_child() -> None:
    """After a fork: the lock that another thread of the parent held is free."""
    global _memory_lock
    _memory_lock = threading.Lock()


os.register_at_fork(after_in_child=_in_child)
