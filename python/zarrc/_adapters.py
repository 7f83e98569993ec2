"""How stores of other kinds answer operations, which `_foreign` passes on: what all have in common, and
dicts and mappings. `_zarr_adapters` has stores of zarr-python and icechunk, `_file_adapters` has fsspec and
obstore, `_plugin_store` has those of `zarrc.plugins`, and `_find_adapter` chooses."""
from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from ._adapter_places import PlaceTexts, memory_place

Row = tuple[str, int | None, bool]
PAGE = 1000  # rows of a page of a listing


def part(data: Any, offset: int | None, length: int | None) -> memoryview:
    """A range of a value; offset None: its last bytes."""
    view = memoryview(data).cast("B")
    if offset is None:
        return view[max(0, len(view) - (length or 0)):]
    return view[offset:] if length is None else view[offset:offset + length]


def below(prefix: str) -> str:
    return prefix + "/" if prefix else ""


def listing_rows(keys: Iterable[tuple[str, int | None]], prefix: str, is_directory: bool) -> list[Row]:
    """The rows of a listing, of all keys."""
    start = below(prefix)
    found = [(key, size) for key, size in keys if key.startswith(start)]
    if not is_directory:
        return [(key, size, False) for key, size in found]
    rows: dict[tuple[str, bool], Row] = {}
    for key, size in found:
        name, slash, _ = key[len(start):].partition("/")
        row = (start + name, None if slash else size, bool(slash))
        rows[row[0], row[2]] = row
    return list(rows.values())


class Calls(NamedTuple):
    """How coroutines of a store of zarr-python are called."""

    loop: asyncio.AbstractEventLoop | None = None  # None: zarr-python's own
    max_gap_bytes: int = -1  # of get_ranges; the library has joined ranges already
    max_coalesced_bytes: int = 1


class Adapter:
    """What `_foreign` needs of a store. The methods of a store with the lane "loop" are coroutines."""

    lane: Literal["inline", "pool", "loop"] = "loop"
    parallel = 16  # operations in flight
    can_list = can_write = can_erase = is_atomic = True
    can_flush = can_erase_prefix = can_copy = has_ranges = has_pages = False

    def __init__(self, source: Any) -> None:
        self.source = source
        self.listings: dict[int, AsyncIterator[list[Row]]] = {}  # those that wait for the caller of the library

    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop of the store; None: any."""
        return None

    def whole(self, key: str) -> Any:
        """Lane "inline": a whole value, or None."""
        return self.get(key, 0, None)

    def get(self, key: str, offset: int | None, length: int | None) -> Any:
        raise NotImplementedError

    def copy(self, source: str, key: str) -> Any:
        """If the store `can_copy`: gives a key the value of another one."""
        raise NotImplementedError

    def get_ranges(self, key: str, ranges: list[tuple[int, int]]) -> Any:
        """If the store `has_ranges`: a value, or None, for each (offset, length)."""
        raise NotImplementedError

    def size(self, key: str) -> Any:
        raise NotImplementedError

    def put(self, key: str, data: bytes) -> Any:
        raise NotImplementedError

    def erase(self, key: str) -> Any:
        """Whether the key was there, or may have been."""
        raise NotImplementedError

    def rows(self, prefix: str, is_directory: bool) -> Any:
        raise NotImplementedError

    def pages(self, prefix: str) -> AsyncIterator[list[Row]]:
        """If the store `has_pages`, which has the lane "loop": the rows of all keys below a prefix, a page at a time."""
        raise NotImplementedError

    def erase_prefix(self, prefix: str) -> Any:
        raise NotImplementedError

    def flush(self) -> Any:
        raise NotImplementedError

    def picklable_source(self) -> Any:
        """What another process makes the store of."""
        return self.source

    def describe(self) -> str:
        return f"{type(self.source).__module__}.{type(self.source).__qualname__}"

    def place(self) -> PlaceTexts | None:
        """Where the keys are; None: it is not known."""
        return None

    def token(self) -> str:
        """What no other store has in any process. It need not be the same when the source is opened again."""
        found: str = self.__dict__.setdefault("_token", f"{self.describe()} {os.urandom(16).hex()}")
        return found


# ---- mappings ----


def is_a(source: Any, module: str, name: str) -> bool:
    """Whether an object is of a class of another package, which is not imported for this."""
    cls = getattr(sys.modules.get(module), name, None)
    return cls is not None and isinstance(source, cls)


def _is_buffer(value: Any) -> bool:
    """Whether a value is a Buffer of zarr-python, which puts them into a user's dict."""
    return is_a(value, "zarr.core.buffer.core", "Buffer")


def _plain_bytes(value: Any) -> Any:
    return value.as_numpy_array() if _is_buffer(value) else value


class MappingAdapter(Adapter):
    """A mapping of keys to bytes. A dict answers at once; another may block. A dict that zarr-python filled
    goes on holding its Buffers, so that both can read it."""

    def __init__(self, source: Mapping[str, Any]) -> None:
        super().__init__(source)
        self.lane = "inline" if type(source) is dict else "pool"
        first = next(iter(source.values()), None) if self.lane == "inline" else None
        self._buffer: Any = type(first) if _is_buffer(first) else None
        self.can_write = hasattr(source, "__setitem__")

    def place(self) -> PlaceTexts | None:
        return memory_place(self.source)

    def whole(self, key: str) -> Any:
        return _plain_bytes(self.source.get(key))

    def get(self, key: str, offset: int | None, length: int | None) -> Any:
        try:
            return part(_plain_bytes(self.source[key]), offset, length)
        except KeyError:
            return None

    def size(self, key: str) -> int | None:
        try:
            return memoryview(_plain_bytes(self.source[key])).nbytes
        except KeyError:
            return None

    def put(self, key: str, data: bytes) -> None:
        self.source[key] = data if self._buffer is None else self._buffer.from_bytes(data)

    def erase(self, key: str) -> bool:
        try:
            del self.source[key]
        except KeyError:
            return False
        return True

    def rows(self, prefix: str, is_directory: bool) -> list[Row]:
        if type(self.source) is dict:
            items = self.source.copy().items()
            return listing_rows([(key, memoryview(_plain_bytes(value)).nbytes) for key, value in items], prefix, is_directory)
        return listing_rows([(key, None) for key in list(self.source)], prefix, is_directory)
