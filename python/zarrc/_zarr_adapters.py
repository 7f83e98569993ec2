"""How stores of zarr-python, and sessions of icechunk, answer operations; `_adapters` chooses one."""
from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from . import _native
from ._adapter_places import PlaceTexts, fsspec_place, local_place, memory_place, obstore_place
from ._adapters import PAGE, Adapter, Calls, Row, below, part, listing_rows

_DOCUMENTS = frozenset(("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"))
_FEW = 256  # names of a directory that are looked up one by one


def host_prototype() -> Any:
    """What zarr-python makes buffers of, unless they are in memory of a device: bytes of a store are used here."""
    from zarr.core.buffer import cpu, default_buffer_prototype

    found = default_buffer_prototype()
    return found if issubclass(found.buffer, cpu.Buffer) else cpu.buffer_prototype


def zarr_place(store: Any) -> PlaceTexts | None:
    """The place of a store of zarr-python; that of a wrapper is the one of the store inside, if the wrapper is zarr-python's."""
    kind = type(store).__name__ if type(store).__module__.startswith("zarr.storage.") else ""
    if kind in ("WrapperStore", "LoggingStore"):
        return zarr_place(store._store)
    if kind == "MemoryStore":
        return memory_place(store._store_dict)
    if kind == "LocalStore":
        return local_place(store.root)
    if kind == "FsspecStore":
        return fsspec_place(store.fs, store.path)
    return obstore_place(store.store) if kind == "ObjectStore" else None


def describe_store(store: Any) -> str:
    """The URL of a store of zarr-python, or its class if it tells none."""
    text = str(store)
    return text if "://" in text else f"{type(store).__module__}.{type(store).__qualname__}"


class MemoryAdapter(Adapter):
    """zarr-python's MemoryStore, of which this class reads the dict."""

    lane = "inline"

    def __init__(self, source: Any) -> None:
        super().__init__(source)
        from zarr.core.buffer import cpu

        self.values = source._store_dict
        self.can_write = not source.read_only
        self.buffer = cpu.Buffer

    def describe(self) -> str:
        return describe_store(self.source)

    def place(self) -> PlaceTexts | None:
        return memory_place(self.values)

    def whole(self, key: str) -> Any:
        value = self.values.get(key)
        return None if value is None else value.as_numpy_array()

    def get(self, key: str, offset: int | None, length: int | None) -> Any:
        value = self.whole(key)
        return None if value is None else part(value, offset, length)

    def size(self, key: str) -> int | None:
        value = self.values.get(key)
        return None if value is None else len(value)

    def put(self, key: str, data: bytes) -> None:
        self.values[key] = self.buffer.from_bytes(data)

    def erase(self, key: str) -> bool:
        return self.values.pop(key, None) is not None

    def rows(self, prefix: str, is_directory: bool) -> list[Row]:
        return listing_rows([(key, len(value)) for key, value in dict(self.values).items()], prefix, is_directory)


class ZarrAdapter(Adapter):
    """Any store of zarr-python, through its coroutines."""

    is_on_loop_of_zarr = has_pages = True

    def __init__(self, source: Any, calls: Calls = Calls()) -> None:
        super().__init__(source)
        self._loop = calls.loop
        self._joins = {"max_gap_bytes": calls.max_gap_bytes, "max_coalesced_bytes": calls.max_coalesced_bytes}
        import zarr
        from zarr.abc import store as abc
        from zarr.core.buffer import cpu

        self.can_write = source.supports_writes and not source.read_only
        self.can_erase = source.supports_deletes
        self.can_list = source.supports_listing
        self.can_erase_prefix = self.can_erase and self.can_list
        self.has_ranges = hasattr(source, "get_ranges")  # not in zarr-python 3.1
        self.parallel = int(zarr.config.get("async.concurrency"))
        self.prototype = host_prototype
        self.buffer = cpu.Buffer
        self.ranges = abc

    def loop(self) -> asyncio.AbstractEventLoop:
        if type(self.source).__name__ == "ObjectStore":
            _native.obstore.check()
        if self._loop is not None:
            return self._loop
        from zarr.core.sync import _get_loop
        return _get_loop()

    def describe(self) -> str:
        return describe_store(self.source)

    def place(self) -> PlaceTexts | None:
        return zarr_place(self.source)

    async def ensure_open(self) -> Any:
        store = self.source
        if not getattr(store, "_is_open", True):  # a mock of a store has no such attribute
            await store._ensure_open()
        return store

    def range(self, offset: int | None, length: int | None) -> Any:
        if offset is None:
            return self.ranges.SuffixByteRequest(length or 0)
        if length is not None:
            return self.ranges.RangeByteRequest(offset, offset + length)
        return self.ranges.OffsetByteRequest(offset) if offset else None

    async def get(self, key: str, offset: int | None, length: int | None) -> Any:
        store = await self.ensure_open()
        try:
            value = await store.get(key, self.prototype(), self.range(offset, length))
        except FileNotFoundError:
            raise
        except Exception:  # a range that begins after the end, or is cut off there, is an error for some stores
            size = await type(self).size(self, key) if offset else None  # a driven store has another `size`
            if size is None or not offset or (length is not None and offset + length <= size):
                raise
            if offset >= size:
                return b""
            value = await store.get(key, self.prototype(), self.range(offset, None))
        return None if value is None else value.as_numpy_array()

    async def get_ranges(self, key: str, ranges: list[tuple[int, int]]) -> Any:
        """In one call of the store."""
        store = await self.ensure_open()
        values: list[Any] = [None] * len(ranges)
        asked = [self.range(offset, length) for offset, length in ranges]
        try:
            async for found in store.get_ranges(key, asked, prototype=self.prototype(), **self._joins):
                for i, value in found:
                    values[i] = None if value is None else value.as_numpy_array()
        except Exception as problem:
            if isinstance(problem, ExceptionGroup) and problem.split(FileNotFoundError)[1] is None:
                raise FileNotFoundError(key) from problem
            # what is missing is asked for alone: a range may begin after the end
        return values

    async def size(self, key: str) -> int | None:
        store = await self.ensure_open()
        try:
            return int(await store.getsize(key))
        except FileNotFoundError:
            return None

    async def put(self, key: str, data: bytes) -> None:
        await (await self.ensure_open()).set(key, self.buffer.from_bytes(data))

    async def erase(self, key: str) -> bool:
        await (await self.ensure_open()).delete(key)
        return True

    async def erase_prefix(self, prefix: str) -> None:
        store = await self.ensure_open()
        await (store.delete_dir(prefix) if prefix else store.clear())

    async def pages(self, prefix: str) -> AsyncIterator[list[Row]]:
        store = await self.ensure_open()
        page: list[Row] = []
        async for key in store.list_prefix(below(prefix)):
            page.append((key, None, False))
            if len(page) == PAGE:
                yield page
                page = []
        yield page

    async def rows(self, prefix: str, is_directory: bool) -> list[Row]:
        if not is_directory:
            return [row async for page in self.pages(prefix) for row in page]
        store = await self.ensure_open()
        start = below(prefix)
        names = sorted({name.strip("/") async for name in store.list_dir(prefix)} - {""})
        open_names = [name for name in names if name not in _DOCUMENTS]
        if len(open_names) > _FEW:  # one listing costs less than as many questions
            return listing_rows([(key, None) async for key in store.list_prefix(start)], prefix, True)
        keys = _DOCUMENTS | await self._find_keys(start, open_names)
        return [(start + name, None, name not in keys) for name in names]

    async def has(self, key: str) -> bool:
        """Whether there is a key, and not only keys below it."""
        return bool(await self.source.exists(key))

    async def _find_keys(self, start: str, names: list[str]) -> set[str]:
        """Which names of a directory are keys: list_dir does not tell."""
        found: set[str] = set()
        waiting = iter(names)

        async def ask() -> None:
            for name in waiting:
                if await self.has(start + name):
                    found.add(name)

        await asyncio.gather(*[ask() for _ in range(min(len(names), self.parallel))])
        return found


class FsspecStoreAdapter(ZarrAdapter):
    """zarr-python's FsspecStore, which takes directories for keys."""

    async def size(self, key: str) -> int | None:
        store = await self.ensure_open()
        try:
            info = await store.fs._info(f"{store.path}/{key}" if store.path else key)
        except store.allowed_exceptions:
            return None
        if info.get("type") == "directory":
            return None
        return await super().size(key) if info.get("size") is None else int(info["size"])

    async def has(self, key: str) -> bool:
        return await self.size(key) is not None


class IcechunkAdapter(ZarrAdapter):
    """A session of icechunk, which takes the keys of Zarr only. It is a transaction, so the library's
    own records, which tell of unfinished work, are in memory while the session lasts."""

    has_pages = False

    def __init__(self, source: Any, calls: Calls = Calls()) -> None:
        super().__init__(source, calls)
        self.records: dict[str, bytes] = {}

    @staticmethod
    def is_foreign(key: str) -> bool:
        """Whether icechunk would refuse a key: records, and documents of format 2."""
        name = key.rpartition("/")[2]
        return name.startswith(".")

    async def has(self, key: str) -> bool:
        return not await self.rows(key, False)  # `exists` refuses the names of nodes

    async def get(self, key: str, offset: int | None, length: int | None) -> Any:
        if self.is_foreign(key):
            value = self.records.get(key)
            return None if value is None else part(value, offset, length)
        return await super().get(key, offset, length)

    async def size(self, key: str) -> int | None:
        if self.is_foreign(key):
            value = self.records.get(key)
            return None if value is None else len(value)
        return await super().size(key)

    async def put(self, key: str, data: bytes) -> None:
        if key.rpartition("/")[2].startswith(".zarrc-"):
            self.records[key] = data
        else:
            await super().put(key, data)

    async def erase(self, key: str) -> bool:
        if self.is_foreign(key):
            return self.records.pop(key, None) is not None
        return await super().erase(key)

    async def erase_prefix(self, prefix: str) -> None:
        await super().erase_prefix(prefix)
        for key in [key for key in self.records if key.startswith(below(prefix))]:
            del self.records[key]

    async def rows(self, prefix: str, is_directory: bool) -> list[Row]:
        records = listing_rows([(key, len(value)) for key, value in self.records.items()], prefix, is_directory)
        return await self._rows(prefix, is_directory) + [row for row in records if not row[2]]

    async def _rows(self, prefix: str, is_directory: bool) -> list[Row]:
        """icechunk lists nodes only; chunks may be listed below an array."""
        store = await self.ensure_open()
        node = prefix
        while node and not await store.exists(f"{node}/zarr.json"):
            node = node.rpartition("/")[0]
        if node == prefix:
            return await super().rows(prefix, is_directory)
        document = await store.get(below(node) + "zarr.json", self.prototype())
        if document is None or json.loads(document.to_bytes()).get("node_type") != "array":
            return []
        return listing_rows([(key, None) async for key in store.list_prefix(below(node))], prefix, is_directory)


class DrivenAdapter(ZarrAdapter):
    """A store of zarr-python whose coroutines never wait for an event loop, such as ZipStore: a thread
    runs each of them to its end."""

    lane = "pool"
    is_on_loop_of_zarr = has_pages = False

    def __init__(self, source: Any) -> None:
        super().__init__(source)
        self.parallel, self.has_ranges = 1, False
        for name in ("get", "size", "put", "erase", "erase_prefix", "rows"):
            setattr(self, name, _drive(getattr(self, name)))

    def loop(self) -> asyncio.AbstractEventLoop:
        raise AssertionError("no loop is needed")

    async def _find_keys(self, start: str, names: list[str]) -> set[str]:
        return {name for name in names if await self.has(start + name)}


def _drive(function: Any) -> Any:
    def call(*arguments: Any) -> Any:
        coroutine = function(*arguments)
        try:
            coroutine.send(None)
        except StopIteration as end:
            return end.value
        coroutine.close()
        raise RuntimeError("a coroutine waits, which this store does not do")
    return call
