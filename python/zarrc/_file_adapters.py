"""How file systems and maps of fsspec, and stores of obstore, answer operations; `_adapters` chooses one."""
from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

from . import _native
from ._adapter_places import PlaceTexts, fsspec_place, obstore_place
from ._adapters import PAGE, Adapter, Row, below


class FsspecAdapter(Adapter):
    """A file system of fsspec below a root. One of coroutines runs on the loop of fsspec."""

    def __init__(self, source: Any, fs: Any, root: str) -> None:
        super().__init__(source)
        self.fs = fs
        self.root = root.rstrip("/")
        self.is_async = bool(getattr(fs, "async_impl", False)) and fs.loop is not None
        self.lane = "loop" if self.is_async else "pool"
        self.can_copy = self.is_async and (self.place() or ("",))[0] in ("s3", "gs")  # these do not send the bytes
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
    def file_size(info: dict[str, Any]) -> int | None:
        return None if info.get("type") == "directory" else int(info["size"])

    async def size(self, key: str) -> int | None:
        try:
            return self.file_size(await self.fs._info(self.path(key)))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def size_now(self, key: str) -> int | None:
        try:
            return self.file_size(self.fs.info(self.path(key)))
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

    async def copy(self, source: str, key: str) -> None:
        await self.fs._cp_file(self.path(source), self.path(key))

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

    def picklable_source(self) -> Any:
        return self

    def describe(self) -> str:
        return str(self.fs.unstrip_protocol(self.root))  # paths of http have theirs already

    def place(self) -> PlaceTexts | None:
        return fsspec_place(self.fs, self.root)

    def token(self) -> str:
        of_fs = getattr(self.fs, "_fs_token", None)  # a file system of the same arguments has the same
        return super().token() if of_fs is None else f"{self.describe()} {of_fs}"


class ObstoreAdapter(Adapter):
    """A store of obstore."""

    has_pages = True

    def __init__(self, source: Any) -> None:
        super().__init__(source)
        import obstore
        self.obstore = obstore
        self.can_copy = type(source).__name__ not in ("LocalStore", "HTTPStore")  # the former makes hard links

    def loop(self) -> asyncio.AbstractEventLoop | None:
        _native.obstore.check()
        return None

    def place(self) -> PlaceTexts | None:
        return obstore_place(self.source)

    def describe(self) -> str:
        return f"obstore.{self.source!r}"

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

    async def copy(self, source: str, key: str) -> None:
        await self.obstore.copy_async(self.source, source, key)

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
        return [row async for page in self.pages(prefix) for row in page]

    async def pages(self, prefix: str) -> AsyncIterator[list[Row]]:
        async for metas in self.obstore.list(self.source, prefix or None, chunk_size=PAGE):
            yield [(meta["path"], meta["size"], False) for meta in metas if meta["path"].startswith(below(prefix))]
