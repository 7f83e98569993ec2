"""How stores that derive from `zarrc.plugins.Store` answer operations."""
from __future__ import annotations

import inspect
from typing import Any

from . import _plugin_classes
from ._adapters import Adapter, Row, below, part, listing_rows

_METHODS = ("get", "get_part", "getsize", "set", "delete", "list_prefix", "flush")


def _has(source: _plugin_classes.Store, name: str) -> bool:
    """Whether a class has a method of its own."""
    return getattr(type(source), name) is not getattr(_plugin_classes.Store, name)


class PluginAdapter(Adapter):
    """A store whose methods block; threads call them."""

    lane = "pool"
    can_flush = True

    def __init__(self, source: _plugin_classes.Store) -> None:
        super().__init__(source)
        self.parallel = max(1, int(source.parallel))
        self.can_write = not source.read_only and _has(source, "set")
        self.can_list = _has(source, "list_prefix")

    def get(self, key: str, offset: int | None, length: int | None) -> Any:
        if (offset, length) != (0, None) and _has(self.source, "get_part"):
            return self.source.get_part(key, offset, length)
        value = self.source.get(key)
        return None if value is None else part(value, offset, length)

    def size(self, key: str) -> int | None:
        if _has(self.source, "getsize"):
            found: int | None = self.source.getsize(key)
            return found
        value = self.source.get(key)
        return None if value is None else memoryview(value).nbytes

    def put(self, key: str, data: bytes) -> None:
        self.source.set(key, data)

    def erase(self, key: str) -> bool:
        self.source.delete(key)
        return True

    def rows(self, prefix: str, is_directory: bool) -> list[Row]:
        return listing_rows([(key, None) for key in self.source.list_prefix(below(prefix))], prefix, is_directory)

    def flush(self) -> None:
        if _has(self.source, "flush"):
            self.source.flush()


class PluginLoopAdapter(PluginAdapter):
    """A store whose methods are coroutines."""

    lane = "loop"  # type: ignore[assignment]

    async def get(self, key: str, offset: int | None, length: int | None) -> Any:
        if (offset, length) != (0, None) and _has(self.source, "get_part"):
            return await self.source.get_part(key, offset, length)
        value = await self.source.get(key)
        return None if value is None else part(value, offset, length)

    async def size(self, key: str) -> int | None:  # type: ignore[override]
        if _has(self.source, "getsize"):
            found: int | None = await self.source.getsize(key)
            return found
        value = await self.source.get(key)
        return None if value is None else memoryview(value).nbytes

    async def put(self, key: str, data: bytes) -> None:  # type: ignore[override]
        await self.source.set(key, data)

    async def erase(self, key: str) -> bool:  # type: ignore[override]
        await self.source.delete(key)
        return True

    async def rows(self, prefix: str, is_directory: bool) -> list[Row]:  # type: ignore[override]
        keys = await self.source.list_prefix(below(prefix))
        return listing_rows([(key, None) for key in keys], prefix, is_directory)

    async def flush(self) -> None:  # type: ignore[override]
        if _has(self.source, "flush"):
            await self.source.flush()


def adapter(source: _plugin_classes.Store) -> Adapter:
    """The adapter of a store."""
    if not isinstance(source, _plugin_classes.Store):
        raise TypeError(f"{type(source)!r} derives from no class of zarrc.plugins")
    own = [name for name in _METHODS if _has(source, name)]
    waits = [name for name in own if inspect.iscoroutinefunction(getattr(type(source), name))]
    if waits and waits != own:
        other = next(name for name in own if name not in waits)
        raise TypeError(f"{type(source).__qualname__}: {waits[0]} is a coroutine function, and {other} is not; "
                        "all methods of a store are, or none")
    return (PluginLoopAdapter if waits else PluginAdapter)(source)
