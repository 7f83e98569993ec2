"""How stores of other kinds answer operations: dicts and mappings, stores of zarr-python, file systems
and maps of fsspec, stores of obstore. `_foreign` calls them. No package is imported unless an object
of it was given, or `of_url` needs it."""
from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

from .errors import UnsupportedError, raised

_DOCUMENTS = frozenset(("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"))
_FEW = 256  # names of a directory that are looked up one by one

Row = tuple[str, int | None, bool]


def part(data: Any, offset: int | None, length: int | None) -> memoryview:
    """A range of a value; offset None: its last bytes."""
    view = memoryview(data).cast("B")
    if offset is None:
        return view[max(0, len(view) - (length or 0)):]
    return view[offset:] if length is None else view[offset:offset + length]


def below(prefix: str) -> str:
    return prefix + "/" if prefix else ""


def rows_of(keys: Iterable[tuple[str, int | None]], prefix: str, is_directory: bool) -> list[Row]:
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


class Adapter:
    """What `_foreign` needs of a store. The methods of a store with the lane "loop" are coroutines."""

    lane: Literal["inline", "pool", "loop"] = "loop"
    parallel = 16  # operations in flight
    can_list = can_write = is_atomic = True
    can_flush = can_erase_prefix = has_ranges = False

    def __init__(self, source: Any) -> None:
        self.source = source

    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop of the store; None: any."""
        return None

    def whole(self, key: str) -> Any:
        """Lane "inline": a whole value, or None."""
        return self.get(key, 0, None)

    def get(self, key: str, offset: int | None, length: int | None) -> Any:
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

    def erase_prefix(self, prefix: str) -> Any:
        raise NotImplementedError

    def flush(self) -> Any:
        raise NotImplementedError

    def pickled(self) -> Any:
        """What another process makes the store of."""
        return self.source

    def describe(self) -> str:
        return f"{type(self.source).__module__}.{type(self.source).__qualname__}"


# ---- mappings ----


class MappingAdapter(Adapter):
    """A mapping of keys to bytes. A dict answers at once; another may block."""

    def __init__(self, source: Mapping[str, Any]) -> None:
        super().__init__(source)
        self.lane = "inline" if type(source) is dict else "pool"
        self.can_write = hasattr(source, "__setitem__")

    def whole(self, key: str) -> Any:
        return self.source.get(key)

    def get(self, key: str, offset: int | None, length: int | None) -> Any:
        try:
            return part(self.source[key], offset, length)
        except KeyError:
            return None

    def size(self, key: str) -> int | None:
        try:
            return memoryview(self.source[key]).nbytes
        except KeyError:
            return None

    def put(self, key: str, data: bytes) -> None:
        self.source[key] = data

    def erase(self, key: str) -> bool:
        try:
            del self.source[key]
        except KeyError:
            return False
        return True

    def rows(self, prefix: str, is_directory: bool) -> list[Row]:
        if type(self.source) is dict:
            items = self.source.copy().items()
            return rows_of([(key, memoryview(value).nbytes) for key, value in items], prefix, is_directory)
        return rows_of([(key, None) for key in list(self.source)], prefix, is_directory)


# ---- zarr-python ----


class MemoryAdapter(Adapter):
    """zarr-python's MemoryStore, of which this class reads the dict."""

    lane = "inline"

    def __init__(self, source: Any) -> None:
        super().__init__(source)
        from zarr.core.buffer import cpu

        self.values = source._store_dict
        self.can_write = not source.read_only
        self.buffer = cpu.Buffer

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
        return rows_of([(key, len(value)) for key, value in dict(self.values).items()], prefix, is_directory)


class Calls(NamedTuple):
    """How coroutines of a store of zarr-python are called."""

    loop: asyncio.AbstractEventLoop | None = None  # None: zarr-python's own
    max_gap_bytes: int = -1  # of get_ranges; the library has joined ranges already
    max_coalesced_bytes: int = 1


class ZarrAdapter(Adapter):
    """Any store of zarr-python, through its coroutines."""

    is_on_loop_of_zarr = True

    def __init__(self, source: Any, calls: Calls = Calls()) -> None:
        super().__init__(source)
        self._loop = calls.loop
        self._joins = {"max_gap_bytes": calls.max_gap_bytes, "max_coalesced_bytes": calls.max_coalesced_bytes}
        import zarr
        from zarr.abc import store as abc
        from zarr.core.buffer import cpu, default_buffer_prototype

        self.can_write = source.supports_writes and not source.read_only
        self.can_list = source.supports_listing
        self.can_erase_prefix = source.supports_deletes and self.can_list
        self.has_ranges = hasattr(source, "get_ranges")  # not in zarr-python 3.1
        self.parallel = int(zarr.config.get("async.concurrency"))
        self.prototype = default_buffer_prototype
        self.buffer = cpu.Buffer
        self.ranges = abc

    def loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is not None:
            return self._loop
        from zarr.core.sync import _get_loop
        return _get_loop()

    async def opened(self) -> Any:
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
        store = await self.opened()
        try:
            value = await store.get(key, self.prototype(), self.range(offset, length))
        except FileNotFoundError:
            raise
        except Exception:  # a range that begins after the end, or is cut off there, is an error for some stores
            size = await self.size(key) if offset else None
            if size is None or not offset or (length is not None and offset + length <= size):
                raise
            if offset >= size:
                return b""
            value = await store.get(key, self.prototype(), self.range(offset, None))
        return None if value is None else value.as_numpy_array()

    async def get_ranges(self, key: str, ranges: list[tuple[int, int]]) -> Any:
        """In one call of the store."""
        store = await self.opened()
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
        store = await self.opened()
        try:
            return int(await store.getsize(key))
        except FileNotFoundError:
            return None

    async def put(self, key: str, data: bytes) -> None:
        await (await self.opened()).set(key, self.buffer.from_bytes(data))

    async def erase(self, key: str) -> bool:
        await (await self.opened()).delete(key)
        return True

    async def erase_prefix(self, prefix: str) -> None:
        store = await self.opened()
        await (store.delete_dir(prefix) if prefix else store.clear())

    async def rows(self, prefix: str, is_directory: bool) -> list[Row]:
        store = await self.opened()
        start = below(prefix)
        if not is_directory:
            return [(key, None, False) async for key in store.list_prefix(start)]
        names = sorted({name.strip("/") async for name in store.list_dir(prefix)} - {""})
        open_names = [name for name in names if name not in _DOCUMENTS]
        if len(open_names) > _FEW:  # one listing costs less than as many questions
            return rows_of([(key, None) async for key in store.list_prefix(start)], prefix, True)
        keys = _DOCUMENTS | await self._keys_of(start, open_names)
        return [(start + name, None, name not in keys) for name in names]

    async def has(self, key: str) -> bool:
        """Whether there is a key, and not only keys below it."""
        return bool(await self.source.exists(key))

    async def _keys_of(self, start: str, names: list[str]) -> set[str]:
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
        store = await self.opened()
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
        records = rows_of([(key, len(value)) for key, value in self.records.items()], prefix, is_directory)
        return await self._rows(prefix, is_directory) + [row for row in records if not row[2]]

    async def _rows(self, prefix: str, is_directory: bool) -> list[Row]:
        """icechunk lists nodes only; chunks may be listed below an array."""
        store = await self.opened()
        node = prefix
        while node and not await store.exists(f"{node}/zarr.json"):
            node = node.rpartition("/")[0]
        if node == prefix:
            return await super().rows(prefix, is_directory)
        document = await store.get(below(node) + "zarr.json", self.prototype())
        if document is None or json.loads(document.to_bytes()).get("node_type") != "array":
            return []
        return rows_of([(key, None) async for key in store.list_prefix(below(node))], prefix, is_directory)


class DrivenAdapter(ZarrAdapter):
    """A store of zarr-python whose coroutines never wait for an event loop, such as ZipStore: a thread
    runs each of them to its end."""

    lane = "pool"
    is_on_loop_of_zarr = False

    def __init__(self, source: Any) -> None:
        super().__init__(source)
        self.parallel, self.has_ranges = 1, False
        for name in ("get", "size", "put", "erase", "erase_prefix", "rows"):
            setattr(self, name, _driven(getattr(self, name)))

    def loop(self) -> asyncio.AbstractEventLoop:
        raise AssertionError("no loop is needed")

    async def _keys_of(self, start: str, names: list[str]) -> set[str]:
        return {name for name in names if await self.has(start + name)}


def _driven(function: Any) -> Any:
    def call(*arguments: Any) -> Any:
        coroutine = function(*arguments)
        try:
            coroutine.send(None)
        except StopIteration as end:
            return end.value
        coroutine.close()
        raise RuntimeError("a coroutine waits, which this store does not do")
    return call


# ---- fsspec ----


class FsspecAdapter(Adapter):
    """A file system of fsspec below a root. One of coroutines runs on the loop of fsspec."""

    def __init__(self, source: Any, fs: Any, root: str) -> None:
        super().__init__(source)
        self.fs = fs
        self.root = root.rstrip("/")
        self.is_async = bool(getattr(fs, "async_impl", False)) and fs.loop is not None
        self.lane = "loop" if self.is_async else "pool"
        if not self.is_async:
            for name in ("get", "size", "put", "erase", "rows"):
                setattr(self, name, getattr(self, f"{name}_now"))

    def __reduce__(self) -> Any:
        return FsspecAdapter, (self.source, self.fs, self.root)

    def loop(self) -> asyncio.AbstractEventLoop | None:
        return self.fs.loop  # type: ignore[no-any-return]

    def path(self, key: str) -> str:
        return f"{self.root}/{key}" if self.root and key else self.root or key

    @staticmethod
    def bounds(offset: int | None, length: int | None) -> dict[str, int]:
        if offset is None:
            return {"start": -(length or 0)}
        if length is None:
            return {"start": offset} if offset else {}
        return {"start": offset, "end": offset + length}

    async def get(self, key: str, offset: int | None, length: int | None) -> Any:
        try:
            return await self.fs._cat_file(self.path(key), **self.bounds(offset, length))
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError, KeyError):
            return None

    def get_now(self, key: str, offset: int | None, length: int | None) -> Any:
        try:
            return self.fs.cat_file(self.path(key), **self.bounds(offset, length))
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError, KeyError):
            return None

    @staticmethod
    def size_of(info: dict[str, Any]) -> int | None:
        return None if info.get("type") == "directory" else int(info["size"])

    async def size(self, key: str) -> int | None:
        try:
            return self.size_of(await self.fs._info(self.path(key)))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def size_now(self, key: str) -> int | None:
        try:
            return self.size_of(self.fs.info(self.path(key)))
        except (FileNotFoundError, NotADirectoryError):
            return None

    async def put(self, key: str, data: bytes) -> None:
        await self.fs._pipe_file(self.path(key), data)

    def put_now(self, key: str, data: bytes) -> None:
        path = self.path(key)
        try:
            self.fs.pipe_file(path, data)
        except FileNotFoundError:
            self.fs.makedirs(path.rpartition("/")[0], exist_ok=True)
            self.fs.pipe_file(path, data)

    async def erase(self, key: str) -> bool:
        try:
            await self.fs._rm_file(self.path(key))
        except FileNotFoundError:
            return False
        return True

    def erase_now(self, key: str) -> bool:
        try:
            self.fs.rm_file(self.path(key))
        except FileNotFoundError:
            return False
        return True

    def _rows(self, infos: Iterable[dict[str, Any]], prefix: str) -> list[Row]:
        skip = len(self.root) + 1 if self.root else 0
        start = below(prefix)
        rows = []
        for info in infos:
            key = info["name"].rstrip("/")[skip:]
            if key != prefix and key.startswith(start):
                is_prefix = info["type"] == "directory"
                rows.append((key, None if is_prefix else info.get("size"), is_prefix))
        return rows

    async def rows(self, prefix: str, is_directory: bool) -> list[Row]:
        path = self.path(prefix)
        try:
            if is_directory:
                return self._rows(await self.fs._ls(path, detail=True), prefix)
            return self._rows((await self.fs._find(path, detail=True)).values(), prefix)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def rows_now(self, prefix: str, is_directory: bool) -> list[Row]:
        path = self.path(prefix)
        try:
            if is_directory:
                return self._rows(self.fs.ls(path, detail=True, refresh=True), prefix)
            return self._rows(self.fs.find(path, detail=True).values(), prefix)
        except (FileNotFoundError, NotADirectoryError):
            return []

    def pickled(self) -> Any:
        return self

    def describe(self) -> str:
        protocol = self.fs.protocol if isinstance(self.fs.protocol, str) else self.fs.protocol[0]
        return f"{protocol}://{self.root}"


# ---- obstore ----


class ObstoreAdapter(Adapter):
    """A store of obstore."""

    def __init__(self, source: Any) -> None:
        super().__init__(source)
        import obstore
        self.obstore = obstore

    async def get(self, key: str, offset: int | None, length: int | None) -> Any:
        try:
            if offset is None:
                return await self._got(key, {"suffix": length or 0})
            if offset == 0 and length is None:
                return await self._got(key, None)
            if length is None:
                return await self._got(key, {"offset": offset})
            return await self.obstore.get_range_async(self.source, key, start=offset, length=length)
        except FileNotFoundError:
            return None
        except Exception:
            # A range that begins after the end, or is cut off there, is an error for some stores.
            size = None if offset == 0 and length is None else await self.size(key)
            if size is None or offset is None or (length is not None and offset + length <= size):
                raise
            return b"" if offset >= size else await self._got(key, {"offset": offset})

    async def _got(self, key: str, span: Any) -> Any:
        options: Any = None if span is None else {"range": span}
        return await (await self.obstore.get_async(self.source, key, options=options)).bytes_async()

    async def size(self, key: str) -> int | None:
        try:
            return int((await self.obstore.head_async(self.source, key))["size"])
        except FileNotFoundError:
            return None

    async def put(self, key: str, data: bytes) -> None:
        await self.obstore.put_async(self.source, key, data)

    async def erase(self, key: str) -> bool:
        try:
            await self.obstore.delete_async(self.source, key)
        except FileNotFoundError:
            return False
        return True

    async def rows(self, prefix: str, is_directory: bool) -> list[Row]:
        if is_directory:
            found = await self.obstore.list_with_delimiter_async(self.source, prefix or None)
            return [(path.rstrip("/"), None, True) for path in found["common_prefixes"]] + [
                (meta["path"], meta["size"], False) for meta in found["objects"]]
        rows: list[Row] = []
        async for metas in self.obstore.list(self.source, prefix or None):
            rows.extend((meta["path"], meta["size"], False) for meta in metas)
        return [row for row in rows if row[0].startswith(below(prefix))]


# ---- which one ----


def _is_a(source: Any, module: str, name: str) -> bool:
    cls = getattr(sys.modules.get(module), name, None)
    return cls is not None and isinstance(source, cls)


def adapter_of(source: Any, calls: Calls = Calls()) -> Adapter | None:
    """The adapter of an object; None: it is no store. `calls` is for a store of zarr-python. Only exact
    classes are known: a subclass or a mock may do something else."""
    kind = type(source)
    if isinstance(source, Adapter):
        return source
    if _is_a(source, "zarrc.plugins", "Store"):
        from ._plugin_store import adapter
        return adapter(source)
    if _is_a(source, "zarr.abc.store", "Store"):
        name = kind.__name__ if kind.__module__.startswith("zarr.storage.") else ""
        if name == "MemoryStore" and getattr(kind.get, "__qualname__", "") == "MemoryStore.get":  # nothing has replaced it
            return MemoryAdapter(source)
        if kind.__name__ == "IcechunkStore" and kind.__module__.partition(".")[0] == "icechunk":
            return IcechunkAdapter(source, calls)
        if name == "FsspecStore":
            return FsspecStoreAdapter(source, calls)
        return DrivenAdapter(source) if name == "ZipStore" else ZarrAdapter(source, calls)
    if _is_a(source, "fsspec.mapping", "FSMap"):
        return FsspecAdapter(source, source.fs, source.root)
    if _is_a(source, "fsspec.spec", "AbstractFileSystem"):
        return FsspecAdapter(source, source, "")
    if kind.__module__.startswith("obstore"):
        return ObstoreAdapter(source)
    return MappingAdapter(source) if isinstance(source, Mapping) else None


def of_url(url: str, options: dict[str, Any]) -> Adapter:
    """The adapter of a URL, by fsspec or obstore."""
    problems = []
    try:
        from fsspec.core import url_to_fs
        fs, root = url_to_fs(url, **options)
        return FsspecAdapter(fs, fs, root)
    except (ImportError, ValueError) as problem:
        problems.append(f"fsspec: {problem}")
    try:
        from obstore import parse_scheme
        from obstore.store import from_url
        parse_scheme(url)
    except Exception as problem:  # it is missing, or has no such scheme
        problems.append(f"obstore: {str(problem).partition(chr(10))[0]}")
    else:
        return ObstoreAdapter(from_url(url, **options))
    raise raised(UnsupportedError, f"{url!r}: no store is registered for this scheme, and no package here opens it. Install "
                 f"fsspec with the package of the scheme (s3fs, gcsfs, adlfs, aiohttp), or obstore ({'; '.join(problems)})")
