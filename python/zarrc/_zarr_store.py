"""`zarrc.ZarrcStore`: a store of zarrc as a store of zarr-python."""
from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype

from . import _core, _places, _store
from .errors import ExistsError, NodeNotFoundError, NotFoundError, UnsupportedError

if TYPE_CHECKING:
    from ._types import StoreLike

_UNKNOWN = (1 << 64) - 1
_NAMELESS = (None, "memory:")
_T = TypeVar("_T")


class ZarrcStore(Store):
    """A store for zarr-python that keeps its bytes where zarrc does: ``ZarrcStore("x.zarr")``. It takes
    what `zarrc.open_store` takes: a path, a URL with ``storage_options``, a `zarrc.Store`, and a ``chunk_store`` for the chunks.

    Values are replaced in one step, and writers of one key wait for each other, also those of other
    processes and of zarrc's own arrays. Reads of a store that answers in microseconds happen on the
    event loop; everything else runs on threads.
    """

    supports_writes: bool = True
    supports_deletes: bool = True
    supports_listing: bool = True

    def __init__(self, store: StoreLike = None, *, read_only: bool = False,
                 storage_options: dict[str, Any] | None = None, chunk_store: StoreLike = None) -> None:
        super().__init__(read_only=read_only)
        if chunk_store is not None:
            store, storage_options = _places.open_store(store, mode="r" if read_only else "a", storage_options=storage_options,
                                                        chunk_store=chunk_store), None
        self._given, self._options = store, storage_options
        self._native: _store.Store | None = None
        self._opening = threading.Lock()
        if isinstance(store, _store.Store):
            self._bind(store)

    def _bind(self, native: _store.Store) -> _store.Store:
        if any(getattr(part._adapter, "is_on_loop_of_zarr", False) for part in native._parts or (native,)):
            raise TypeError(f"{native} is a store of zarr-python: give zarr-python that store itself. Calls that wait would "
                            "block the event loop that answers them")
        self._is_fast = bool(native._caps[1] & _core.ZARR_STORE_CAP_FAST_GET)
        self._native = native
        return native

    @property
    def native(self) -> _store.Store:
        """The store of zarrc. The first use opens it."""
        if self._native is not None:
            return self._native
        mode = "r" if self.read_only else "a"
        with self._opening:  # two threads would make two stores in memory
            try:
                return self._native or self._bind(_places.open_store(self._given, mode=mode, storage_options=self._options))
            except NodeNotFoundError as problem:
                raise FileNotFoundError(f"{self._given} does not exist") from problem

    async def _open(self) -> None:
        await super()._open()  # it raises if the store is open already
        await self._ensure_native()

    async def _ensure_native(self) -> None:
        """Opens the store of zarrc, which another task may be doing."""
        if self._native is None:
            await asyncio.to_thread(lambda: self.native)

    def with_read_only(self, read_only: bool = False) -> ZarrcStore:
        if self._given in _NAMELESS:
            self._native = self.native  # a store that the new one opened would be other memory
        new = type(self)(self._given, read_only=read_only, storage_options=self._options)
        if self._native is not None and (read_only or not self._native.read_only):
            new._bind(self._native)
        elif isinstance(self._given, _store.Store):
            new._bind(self._given.with_read_only(read_only))
        return new

    def __reduce__(self) -> Any:
        given = self.native if self._given in _NAMELESS else self._given
        return _reopen, (type(self), given, self.read_only, self._options)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)) or self.read_only != other.read_only:
            return False
        mine, theirs = self.native, other.native
        return mine == theirs or mine.with_read_only(True) == theirs.with_read_only(True)

    def __str__(self) -> str:
        return f"zarrc+{self.native}"

    def __repr__(self) -> str:
        return f"ZarrcStore('{self}')"

    def close(self) -> None:
        if self._native is not None and not self.read_only:
            self._native.close()
        super().close()

    # ---- calls that wait for their end ----

    def get_sync(self, key: str, *, prototype: BufferPrototype | None = None,
                 byte_range: ByteRequest | None = None) -> Buffer | None:
        native = self.native
        self._is_open = True
        if byte_range is None:
            data = native._get(key)
        elif isinstance(byte_range, RangeByteRequest):
            data = native._get(key, byte_range.start, byte_range.end - byte_range.start)
        elif isinstance(byte_range, OffsetByteRequest):
            data = native._get(key, byte_range.offset)
        elif isinstance(byte_range, SuffixByteRequest):
            data = native._get(key, _core.ZARR_STORE_SUFFIX, byte_range.suffix)
        else:
            raise ValueError(f"Unexpected byte_range, got {byte_range}.")
        return None if data is None else (prototype or default_buffer_prototype()).buffer.from_bytes(data)

    def set_sync(self, key: str, value: Buffer) -> None:
        self._put(key, value, is_new=False)

    def delete_sync(self, key: str) -> None:
        self._check_writable()
        self._is_open = True
        self.native.delete(key)

    def _put(self, key: str, value: Buffer, is_new: bool) -> None:
        self._check_writable()
        if not isinstance(value, Buffer):
            raise TypeError(
                f"{type(self).__name__}.set(): `value` must be a Buffer instance. Got an instance of {type(value)} instead.")
        self._is_open = True
        data = value.as_numpy_array()
        try:
            self.native._put(key, data, is_new)
        except ExistsError:
            pass
        except UnsupportedError:  # this store has no such write
            if not is_new:
                raise
            if key not in self.native:
                self.native._put(key, data)

    def _size(self, key: str) -> int:
        size = self.native._stat(key)
        if size is None:
            raise FileNotFoundError(key)
        return size

    def _rows(self, prefix: str, is_directory: bool) -> list[tuple[str, int, int]]:
        return self.native._list(prefix.strip("/"), _core.ZARR_LIST_DIRECTORY if is_directory else _core.ZARR_LIST_RECURSIVE)

    def _erase_dir(self, prefix: str) -> None:
        try:
            self.native.delete_dir(prefix.strip("/"))
        except NotFoundError:
            pass

    # ---- the same for asyncio ----

    async def _wait(self, is_quick: bool, work: Callable[[], _T]) -> _T:
        """Does work here if it takes microseconds, else on a thread."""
        if not self._is_open:
            await self._open()
        await self._ensure_native()
        return work() if is_quick and self._is_fast else await asyncio.to_thread(work)

    @property
    def _is_memory(self) -> bool:
        return self._native is not None and self._native.kind == "memory"

    async def get(self, key: str, prototype: BufferPrototype | None = None,
                  byte_range: ByteRequest | None = None) -> Buffer | None:
        return await self._wait(True, lambda: self.get_sync(key, prototype=prototype, byte_range=byte_range))

    async def get_partial_values(self, prototype: BufferPrototype,
                                 key_ranges: Iterable[tuple[str, ByteRequest | None]]) -> list[Buffer | None]:
        return list(await asyncio.gather(*[self.get(key, prototype, byte_range) for key, byte_range in key_ranges]))

    async def exists(self, key: str) -> bool:
        return await self._wait(True, lambda: key in self.native)

    async def getsize(self, key: str) -> int:
        return await self._wait(True, lambda: self._size(key))

    async def getsize_prefix(self, prefix: str) -> int:
        rows = await self._wait(False, lambda: self._rows(prefix, False))
        sizes = [size if size != _UNKNOWN else await self.getsize(key) for key, size, _ in rows]
        return sum(sizes)

    async def set(self, key: str, value: Buffer) -> None:
        self._check_writable()
        await self._wait(self._is_memory, lambda: self.set_sync(key, value))

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        self._check_writable()
        await self._wait(self._is_memory, lambda: self._put(key, value, is_new=True))

    async def delete(self, key: str) -> None:
        self._check_writable()
        await self._wait(self._is_memory, lambda: self.native.delete(key))

    async def delete_dir(self, prefix: str) -> None:
        self._check_writable()
        await self._wait(False, lambda: self._erase_dir(prefix))

    async def clear(self) -> None:
        await self.delete_dir("")

    async def is_empty(self, prefix: str) -> bool:
        return not await self._wait(False, lambda: self._rows(prefix, True))

    async def list(self) -> AsyncIterator[str]:
        for key, _, _ in await self._wait(False, lambda: self._rows("", False)):
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        folder = prefix.rpartition("/")[0]  # a prefix of zarr-python may end inside of a name
        for key, _, _ in await self._wait(False, lambda: self._rows(folder, False)):
            if key.startswith(prefix):
                yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        rows = await self._wait(False, lambda: self._rows(prefix, True))
        for name in dict.fromkeys(key.rpartition("/")[2] for key, _, _ in rows):
            yield name


def _reopen(cls: type[ZarrcStore], store: Any, read_only: bool, options: dict[str, Any] | None) -> ZarrcStore:
    return cls(store, read_only=read_only, storage_options=options)
