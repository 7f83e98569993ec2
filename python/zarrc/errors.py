"""The exceptions of zarrc: one class for each error code of the library.

Each derives from :class:`ZarrcError`, which carries the facts, and from the builtin that
zarr-python's exception for the same failure derives from, so that ``except ValueError`` or
``except FileNotFoundError`` works with both.
"""
from __future__ import annotations

import errno as _errno
import os as _os
import re as _re
from typing import Any

from . import _causes, _core

__all__ = [
    "AbiError", "ArrayNotFoundError", "BoundsCheckError", "CancelledError", "ChunkNotFoundError", "ConflictError",
    "ContainsArrayError", "ContainsGroupError", "CorruptError", "DeniedError", "DeviceError", "ExistsError",
    "GroupNotFoundError", "InternalError", "InvalidError", "LimitError", "MemoryKindError", "NoMemoryError", "NodeNotFoundError",
    "NotFoundError", "ReadOnlyError", "StoreError", "UnsupportedError", "ZarrcError", "ZarrcWarning",
]

_OPERATIONS = {getattr(_core, f"ZARR_OPERATION_{word.upper()}"): word for word in (
    "open", "read", "write", "erase", "list", "lock", "rename", "flush", "decode", "encode")}


class ZarrcWarning(UserWarning):
    """A warning of the library, such as a node that has metadata of both formats."""


class ZarrcError(Exception):
    """What failed, and where. All exceptions of the library derive from it. A fact that is not known is None.

    Each subclass also derives from the builtin that zarr-python's exception for this failure derives from. ``str()`` is one line
    with all facts; ``reason`` is the same line.

    Attributes
    ----------
    code : int
        The error code of the library.
    store, node, key : str or None
        URL of the store, path of the node, key of the object.
    block, chunk : tuple of int or None
        Coordinates of the stored object, and of the chunk.
    reason : str
        The message.

    Examples
    --------
    >>> try:
    ...     zarrc.open_array("missing.zarr", mode="r")
    ... except zarrc.ZarrcError as problem:
    ...     isinstance(problem, FileNotFoundError), type(problem).__name__
    (True, 'ArrayNotFoundError')
    """

    code: int = 0
    store: str | None = None
    """The store, as a URL; None: it has none, such as one in memory."""
    node: str | None = None
    """Path of the node, such as ``/a/b``."""
    key: str | None = None
    """Key of the object in the store."""
    block: tuple[int, ...] | None = None
    """Coordinates of the stored object, a chunk or a shard, as in ``Array.blocks``."""
    chunk: tuple[int, ...] | None = None
    """Coordinates of the chunk in the array's grid of chunks; None if a whole shard is damaged."""
    field: str | None = None
    """Field of a struct type."""
    limit: str | None = None
    """Name of the limit that the input exceeds: a member of ``zarr_limits``, or ``memory_bytes``."""
    reason: str = ""
    operation: str | None = None
    """What was done: "read", "decode", "lock" and so on."""
    os_code: int = 0
    """An errno, a status of HTTP, or a code of a driver or a store; see ``os_domain``."""
    os_domain: int = 0

    def __reduce__(self) -> Any:
        facts = dict(self.__dict__)
        if isinstance(self, OSError):
            facts["errno"] = self.errno
        return _remade, (type(self), self.args, facts)

    def __str__(self) -> str:
        return self.reason or super().__str__()


def _remade(cls: type[ZarrcError], args: tuple[Any, ...], facts: dict[str, Any]) -> ZarrcError:
    self = cls(*args)
    _tell(self, facts)
    return self


def _tell(error: ZarrcError, facts: dict[str, Any]) -> None:
    for name, value in facts.items():
        setattr(error, name, value)


class NotFoundError(ZarrcError, ValueError, FileNotFoundError):
    """There is no such node, key, attribute or file."""

    code = _core.ZARR_ERR_NOT_FOUND


class NodeNotFoundError(NotFoundError):
    """There is no node at a path."""


class ArrayNotFoundError(NodeNotFoundError):
    """There is no array at a path."""


class GroupNotFoundError(NodeNotFoundError, KeyError):
    """There is no group at a path."""


class ChunkNotFoundError(NotFoundError):
    """A chunk is missing, and the array was opened with ``read_missing_chunks=False``."""


class ExistsError(ZarrcError, ValueError, FileExistsError):
    """Something exists already."""

    code = _core.ZARR_ERR_EXISTS


class ContainsArrayError(ExistsError):
    """An array exists at the path."""


class ContainsGroupError(ExistsError):
    """A group exists at the path."""


class InvalidError(ZarrcError, ValueError):
    """An argument, an option or the wanted metadata is wrong."""

    code = _core.ZARR_ERR_INVALID


class ReadOnlyError(InvalidError):
    """The store is open for reading only."""


class BoundsCheckError(InvalidError, IndexError):
    """An index is outside of the array, or a selection does not fit it."""


class UnsupportedError(ZarrcError, ValueError, NotImplementedError):
    """This build cannot do it; the message names what is missing."""

    code = _core.ZARR_ERR_UNSUPPORTED


class CorruptError(ZarrcError, ValueError):
    """Stored bytes are not what the format or the metadata promises."""

    code = _core.ZARR_ERR_CORRUPT


class StoreError(ZarrcError, OSError):
    """The store failed. ``errno`` is set if the system told one."""

    code = _core.ZARR_ERR_IO


class DeniedError(StoreError, PermissionError):
    """The store refuses access. ``errno`` is set if the system told one."""

    code = _core.ZARR_ERR_DENIED


class NoMemoryError(ZarrcError, MemoryError):
    """There is no memory."""

    code = _core.ZARR_ERR_NO_MEMORY


class LimitError(ZarrcError, ValueError):
    """The input exceeds a limit. The message names it and says how to raise it."""

    code = _core.ZARR_ERR_LIMIT


class DeviceError(ZarrcError, RuntimeError):
    """A device or its driver failed."""

    code = _core.ZARR_ERR_DEVICE


class CancelledError(ZarrcError, RuntimeError):
    """The call was cancelled, or the parent process of a fork had started it."""

    code = _core.ZARR_ERR_CANCELLED


class AbiError(ZarrcError, RuntimeError):
    """A plug-in does not fit the library."""

    code = _core.ZARR_ERR_ABI


class InternalError(ZarrcError, RuntimeError):
    """The library or a plug-in has a bug."""

    code = _core.ZARR_ERR_INTERNAL


class ConflictError(ZarrcError, RuntimeError):
    """Another writer changed the object, or replaced the array."""

    code = _core.ZARR_ERR_CONFLICT


class MemoryKindError(ZarrcError, ValueError):
    """This memory cannot be used here."""

    code = _core.ZARR_ERR_MEMORY_KIND


_BY_CODE: dict[int, type[ZarrcError]] = {
    cls.code: cls for cls in (
        NotFoundError, ExistsError, InvalidError, UnsupportedError, CorruptError, StoreError, NoMemoryError, LimitError,
        DeviceError, CancelledError, AbiError, InternalError, ConflictError, MemoryKindError, DeniedError)
}


def make_error(cls: type[ZarrcError], reason: str, **facts: Any) -> ZarrcError:
    """An exception of ours that the package raises itself."""
    error = cls(reason)
    _tell(error, {"reason": reason, **facts})
    return error


def of_code(code: int, reason: str) -> ZarrcError:
    """An exception of the class for an error code of the library."""
    return make_error(_BY_CODE.get(code, InternalError), reason)


def as_class(cls: type[ZarrcError], error: ZarrcError) -> ZarrcError:
    """The same exception, as a class that says more."""
    facts = {name: getattr(error, name) for name in ("store", "node", "key", "reason")}
    return _remade(cls, (error.reason,), {**facts, "errno": getattr(error, "errno", None) or _errno.ENOENT})


def in_store(error: ZarrcError, url: str | None) -> None:
    """Makes an exception tell which store it is about, which a text of the library does not."""
    if error.store is None and url and url != "memory:":
        error.store = f"file://{url}" if url.startswith("/") else url
        error.reason = f"{error.reason} (in {error.store})"


_REMEDIES = {
    None: "",
    "locks": "; if nothing else writes to the store, turn locks off: zarrc.config.set({'locks': 'none'})",
    "symlinks": "; if you trust the store, follow its links: zarrc.config.set({'symlinks': 'follow'})",
    "memory_bytes": '; zarrc.config.set({"memory_bytes": VALUE}) allows more memory',
}


def _remedy(setting: str | None, message: str) -> str:
    """What the user can do, after the message; the library names the setting. Others than these are limits."""
    limit = f'; if you know where the data comes from, raise the limit: zarrc.config.set({{"limits": {{"{setting}": VALUE}}}})'
    needs = _re.search(r" needs (\d+) bytes", message) if setting == "memory_bytes" else None
    return _REMEDIES.get(setting, limit).replace("VALUE", needs[1] if needs else "VALUE")


def from_library(code: int, message: str, facts: dict[str, Any]) -> ZarrcError:
    """The exception for a zarr_error; the extension calls it."""
    cls = _BY_CODE.get(code, InternalError)
    setting = facts.pop("setting")
    message += _remedy(setting, message)
    facts["limit"] = setting if cls is LimitError else None
    if facts.pop("is_index"):
        cls = BoundsCheckError
    elif cls is NotFoundError and facts["block"] is not None:
        cls = ChunkNotFoundError
    elif cls is InvalidError and "read-only" in message:
        cls = ReadOnlyError
    if facts["node"] is None and facts["block"] is not None:
        facts["node"] = "/"  # the library names no path for the root
    number = facts["os_code"]
    if issubclass(cls, StoreError) and facts["os_domain"] == _core.ZARR_OS_ERRNO and number:
        error: ZarrcError = cls(number, _os.strerror(number))
    else:
        error = cls(message)
    facts["operation"] = _OPERATIONS.get(facts["operation"])
    url = facts.pop("store")
    _tell(error, {**facts, "reason": message})
    in_store(error, url)
    if isinstance(error, (NotFoundError, ExistsError)):
        error.errno = _errno.ENOENT if isinstance(error, NotFoundError) else _errno.EEXIST
    if cause := _causes.take_cause(message):
        error.__cause__ = cause
    return error
