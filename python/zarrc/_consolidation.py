"""Consolidated metadata follows the changes of the package (the setting `consolidate`)."""
from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import _core, _log
from ._settings import settings
from ._store import Store, open_url
from .errors import ExistsError, NotFoundError, ZarrcError

_lock = threading.Lock()
_pending: dict[tuple[Any, ...], tuple[Store, set[str]]] = {}  # changes that the end of a block brings to consolidated metadata
_joining = threading.local()


def flag(bit: int) -> int:
    """The flag with which a call that deletes, replaces or renames nodes first removes their names."""
    return 0 if settings["consolidate"] is False else bit


@contextmanager
def change(store: Store, path: str, *, below: bool = False) -> Iterator[None]:
    """Around a call that changes a node, or with `below` also nodes below it. A call that fails may have changed a part."""
    try:
        yield
    except (ExistsError, NotFoundError):
        raise
    except BaseException:
        update_above(store, path, below=True)
        raise
    update_above(store, path, below=below)


def update_above(store: Store, path: str, *, below: bool = False) -> None:
    """Brings the consolidated metadata above a changed node up to date, now or at the end of the block."""
    how = settings["consolidate"]
    if how == "end" or getattr(_joining, "depth", 0) and how:
        with _lock:
            _pending.setdefault(_key(store), (store, set()))[1].add(path)
    elif how:
        try:
            store._consolidated_update(path, _core.ZARR_CONSOLIDATED_BELOW if below else 0)
        except ZarrcError as problem:
            _warn(problem)


def delete(store: Store, path: str) -> None:
    """Deletes a node, after its names in consolidated metadata."""
    try:
        store._node_delete(path, flag(_core.ZARR_DELETE_CONSOLIDATED))
    except NotFoundError:
        raise
    except BaseException:
        update_above(store, path, below=True)
        raise


def copy(source: Store, path: str, dest: Store, dest_path: str, *, is_move: bool = False, flags: int = 0) -> None:
    """Copies or moves a node with all below it."""
    try:
        with change(dest, dest_path, below=True):
            source._node_copy(path, dest, dest_path, is_move, flags | flag(_core.ZARR_COPY_CONSOLIDATED))
    except (ExistsError, NotFoundError):
        raise
    except BaseException:
        if is_move:
            update_above(source, path, below=True)
        raise


def _key(store: Store) -> tuple[Any, ...]:
    return ("local", store.url) if store.kind == "local" else (store.kind, store._identity)


def _warn(problem: ZarrcError) -> None:
    _log.on_log(_core.ZARR_LOG_WARN, f"consolidated metadata is out of date: {problem}; zarrc.consolidate_metadata() writes it anew")


@contextmanager
def join_updates() -> Iterator[None]:
    """Makes one update for all changes of the block."""
    _joining.depth = getattr(_joining, "depth", 0) + 1
    try:
        yield
    finally:
        _joining.depth -= 1
        if not _joining.depth and settings["consolidate"] != "end":
            flush()


def flush() -> None:
    """Consolidates each group again that has consolidated metadata and a changed node at or below it."""
    with _lock:
        changes = list(_pending.values())
        _pending.clear()
    roots: dict[tuple[Any, ...], tuple[Store, set[str]]] = {}
    for store, paths in changes:
        for path in paths:
            root, inner = store, path
            if store.kind == "local":
                url, inner, _ = _core.locate(store._context, f"{store.url}/{path}".rstrip("/"))
                root = roots[("local", url)][0] if ("local", url) in roots else (
                    store if url == store.url else open_url(url, {**store._options, "flags": 0}))
            roots.setdefault(_key(root), (root, set()))[1].add(inner)
    for root, paths in roots.values():
        _consolidate_above(root, paths)


def _consolidate_above(root: Store, paths: set[str]) -> None:
    above = {""}
    for path in paths:
        names = path.split("/")
        above.update("/".join(names[:n + 1]) for n in range(len(names)))
    for path in sorted(above, key=lambda one: -one.count("/")):
        try:
            group = _core.open_group(_core.Group, root, path, {"consolidated": _core.ZARR_CONSOLIDATED_MUST})
        except NotFoundError:  # it is no group, or has no consolidated metadata
            continue
        except ZarrcError as problem:
            _warn(problem)
            continue
        del group
        try:
            root._consolidate(path)
        except ZarrcError as problem:
            _warn(problem)


def _in_child() -> None:
    """After a fork: the changes are the parent's, and the lock that another of its threads held is free."""
    global _lock
    _lock = threading.Lock()
    _pending.clear()


atexit.register(flush)
os.register_at_fork(after_in_child=_in_child)
