"""Arrays and groups for asyncio. A read, write or append is a request of the library, which runs on
its threads (`_requests`). What has no request (opening, attributes, listings) runs on a thread of the
loop's executor. `AsyncArray` and `AsyncGroup` stand beside `Array` and `Group` and say which class their node
has; the rest of them is here. The first call imports asyncio."""
from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from . import _consolidation, _core, _dtypes, _indexing, _libraries, _tensors
from ._settings import call_options

if TYPE_CHECKING:
    from typing import Self, Unpack

    from ._arguments import Controls
    from ._requests import Queue
    from ._types import ArrayLike, Key, LikeLike, Memory

_T = TypeVar("_T")


def _find_queue() -> Queue:
    from ._requests import find_queue
    return find_queue()


async def run_on_thread(work: Callable[..., _T], *args: Any, **kwargs: Any) -> _T:
    """Runs a function on a thread of the loop's executor."""
    import asyncio
    return await asyncio.to_thread(work, *args, **kwargs)


async def _find_handle(array: Any, device: str | None) -> Any:
    """`_indexing.find_handle`, on a thread where it opens something: the loop may have to answer that."""
    there = _indexing.find_handle(array, device, may_open=False)
    return await run_on_thread(_indexing.find_handle, array, device) if there is NotImplemented else there


async def _read(array: _core.Array, selection: _core.Selection | None, out: Any, options: dict[str, Any]) -> Any:
    shape = array.shape if selection is None else selection.shape
    queue = _find_queue()
    if array._how == _dtypes.VLEN:
        objects = None if out is None else _indexing.check_objects(out, shape)
        box = array._vlen(shape)
        await queue.run(array._submit(queue.native, _core.ZX_READ, selection, box, _dtypes.NATIVE, options or None))
        return _indexing.finish_read(_indexing.from_vlen(array, box), out, objects)
    if array._how == _dtypes.OTHER:
        return _indexing.read(array, selection)  # raises
    if out is not None and _indexing.is_tensor(out):
        _libraries.check_usable(out, is_out=True)
        there = await _find_handle(array, _libraries.find_device(out))
        if there is None:
            host = await _read(array, selection, _indexing.memory_before(array, shape, out), options)
            return await run_on_thread(_indexing.copy_up, host, out, {})
        _indexing.check_tensor(out, shape, array.dtype)
        memory, options = _indexing.lend(out, there, options, is_out=True)
        await queue.run(there._submit(queue.native, _core.ZX_READ, selection, memory, _dtypes.NATIVE, options))
        return out
    target = _indexing.fresh(array, shape, array.dtype) if out is None else _indexing._output_memory(out)
    if out is not None and _dtypes.is_swapped_struct(array.dtype, target.dtype):
        _indexing.put_structs(target, await _read(array, selection, None, options))
        return out
    order = _indexing._check_out(target, shape, array.dtype)
    await queue.run(array._submit(queue.native, _core.ZX_READ, selection, target, order, options or None))
    if out is not None:
        return out
    return target[()] if target.ndim == 0 else target


async def _write(array: _core.Array, selection: _core.Selection | None, value: Any, options: dict[str, Any]) -> None:
    queue = _find_queue()
    if array._how == _dtypes.VLEN:
        memory: Any = _indexing.to_vlen(array, value)
        order = 0
    elif array._how == _dtypes.OTHER:
        _indexing.write(array, selection, value)  # raises
        return
    elif _indexing.is_foreign(value):
        _libraries.check_usable(value, is_out=False)
        await _find_handle(array, _libraries.find_device(value))
        there, memory, order, options = _indexing.prepare_tensor(array, value, options)
        await queue.run(there._submit(queue.native, _core.ZX_WRITE, selection, memory, order, options))
        return
    else:
        memory, order = _indexing.coerce(array.dtype, value)
    await queue.run(array._submit(queue.native, _core.ZX_WRITE, selection, memory, order, options or None))


class AsyncOIndex:
    """`oindex` for asyncio."""

    __slots__ = ("_array",)

    def __init__(self, array: AsyncArrayBase) -> None:
        self._array = array

    async def getitem(self, selection: Key, *, like: LikeLike = None, meta_array: LikeLike = None) -> Any:
        return await self._array._get(_indexing.orthogonal, selection, None, like, meta_array)


class AsyncVIndex:
    """`vindex` for asyncio."""

    __slots__ = ("_array",)

    def __init__(self, array: AsyncArrayBase) -> None:
        self._array = array

    async def getitem(self, selection: Key, *, like: LikeLike = None, meta_array: LikeLike = None) -> Any:
        return await self._array._get(_indexing.select_vectorised, selection, None, like, meta_array)


class AsyncArrayBase:
    """What `AsyncArray` does with its array."""

    array: Any

    def __getattr__(self, name: str) -> Any:
        if name in _PLAIN:
            return getattr(self.array, name)
        raise AttributeError(f"AsyncArray has no {name}: see AsyncArray.array")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_PLAIN})

    async def getitem(self, selection: Key, *, out: Memory | None = None, like: LikeLike = None, meta_array: LikeLike = None,
                      **controls: Unpack[Controls]) -> Any:
        """What ``[]`` of the array reads. Controls are as for `Array.read`."""
        return await self._get(_indexing.any_key, selection, out, like, meta_array, call_options(controls))

    async def setitem(self, selection: Key, value: ArrayLike, **controls: Unpack[Controls]) -> None:
        """Writes as ``[]`` of the array does. Controls are as for `Array.write`."""
        await self._set(_indexing.any_key, selection, value, call_options(controls))

    async def _get(self, select: Callable[..., _core.Selection], key: Any, out: Any, like: LikeLike = None, meta_array: LikeLike = None,
                   options: dict[str, Any] | None = None) -> Any:
        options = options or {}
        fields, key = _indexing.pop_fields(key)
        selection, out = select(self.array, key), _indexing.unwrap(out)
        wanted = self.array._find_like(like, meta_array, None, out)
        if wanted is not None:
            return await self._get_like(selection, wanted, fields, options)
        if fields:
            return await run_on_thread(_indexing.read, self.array, selection, out=out, fields=fields, options=options)
        return await _read(self.array, selection, out, options)

    async def _get_like(self, selection: _core.Selection, like: Any, fields: Any, options: dict[str, Any]) -> Any:
        """A read for another library. On a device its memory is made, and given away, at once."""
        if fields:
            return await run_on_thread(_tensors.read, self.array, selection, like, fields=fields, options=options)
        there = await _find_handle(self.array, _tensors.choose_device(self.array, like))
        if there is None:
            found = await _read(self.array, selection, _tensors.host_memory(self.array, selection, like), options)
            return _tensors.give(self.array, found, like, {})
        queue, found = _find_queue(), _tensors.DeviceTensor.make(there, selection, like.device)
        await queue.run(there._submit(queue.native, _core.ZX_READ, selection, found._block, _dtypes.NATIVE, found.after_allocator(options)))
        return _tensors.take(like, found)

    async def _set(self, select: Callable[..., _core.Selection], key: Any, value: Any, options: dict[str, Any] | None = None) -> None:
        fields, key = _indexing.pop_fields(key)
        selection = select(self.array, key)
        if fields:
            await run_on_thread(_indexing.write, self.array, selection, value, fields=fields, options=options)
        else:
            await _write(self.array, selection, value, options or {})

    async def read_many(self, keys: Iterable[Key], *, out: Memory | Sequence[Memory] | None = None, device: str | None = None,
                        like: LikeLike = None, meta_array: LikeLike = None, **controls: Unpack[Controls]) -> list[Any]:
        """What `Array.read_many` reads, on a thread of the loop's executor."""
        found: list[Any] = await run_on_thread(self.array.read_many, keys, out=out, device=device, like=like, meta_array=meta_array, **controls)
        return found

    async def get_basic_selection(self, selection: Key = ..., *, out: Memory | None = None, like: LikeLike = None, meta_array: LikeLike = None) -> Any:
        return await self._get(_indexing.basic, selection, out, like, meta_array)

    async def get_orthogonal_selection(self, selection: Key, *, out: Memory | None = None, like: LikeLike = None, meta_array: LikeLike = None) -> Any:
        return await self._get(_indexing.orthogonal, selection, out, like, meta_array)

    async def get_coordinate_selection(self, selection: Key, *, out: Memory | None = None, like: LikeLike = None, meta_array: LikeLike = None) -> Any:
        return await self._get(_indexing.points, selection, out, like, meta_array)

    async def get_mask_selection(self, mask: ArrayLike, *, out: Memory | None = None, like: LikeLike = None, meta_array: LikeLike = None) -> Any:
        return await self._get(_indexing.mask, mask, out, like, meta_array)

    async def get_block_selection(self, selection: Key, *, out: Memory | None = None, like: LikeLike = None, meta_array: LikeLike = None) -> Any:
        return await self._get(_indexing.blocks, selection, out, like, meta_array)

    async def set_orthogonal_selection(self, selection: Key, value: ArrayLike) -> None:
        await self._set(_indexing.orthogonal, selection, value)

    async def set_coordinate_selection(self, selection: Key, value: ArrayLike) -> None:
        await self._set(_indexing.points, selection, value)

    @property
    def oindex(self) -> AsyncOIndex:
        """Each dimension on its own: ``await a.oindex.getitem(([1, 5], slice(3)))``."""
        return AsyncOIndex(self)

    @property
    def vindex(self) -> AsyncVIndex:
        """Single elements, or a mask: ``await a.vindex.getitem(([1, 5], [2, 3]))``."""
        return AsyncVIndex(self)

    async def append(self, data: ArrayLike, axis: int = 0, **controls: Unpack[Controls]) -> tuple[int, ...]:
        """Writes elements after those that are there, and returns the new shape. Controls are as for `Array.append`."""
        queue, wanted = _find_queue(), call_options(controls)
        if _indexing.is_foreign(data):
            await run_on_thread(self.array._open_to_append, data)
        there, memory, order, options = self.array._to_append(data, axis)
        await queue.run(there._submit(queue.native, _core.ZX_APPEND, None, memory, order, {**options, **wanted}, axis % self.array.ndim))
        if there is not self.array:
            await run_on_thread(self.array._follow, there)
        await run_on_thread(_consolidation.update_above, self.array.store, self.array.path)
        shape: tuple[int, ...] = self.array.shape
        return shape

    async def resize(self, new_shape: int | Iterable[int]) -> None:
        await run_on_thread(self.array.resize, new_shape)

    async def update_attributes(self, new_attributes: Mapping[str, Any]) -> Self:
        await run_on_thread(self.array.update_attributes, new_attributes)
        return self

    async def info_complete(self) -> Any:
        return await run_on_thread(self.array.info_complete)

    async def nchunks_initialized(self) -> int:
        return await run_on_thread(lambda: self.array.nchunks_initialized)

    async def nbytes_stored(self) -> int:
        return await run_on_thread(self.array.nbytes_stored)

    def __eq__(self, other: object) -> bool:
        return self.array == other.array if isinstance(other, AsyncArrayBase) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        return type(self), (self.array,)

    def __repr__(self) -> str:
        return f"<AsyncArray {self.array.store_path} shape={self.array.shape} dtype={self.array.dtype}>"


_PLAIN = frozenset("""attrs basename cdata_shape chunks compressor compressors config dimension_names dtype fill_value filters
    info metadata name nbytes nchunks ndim order path read_chunk_sizes read_only serializer shape shards size store
    store_path write_chunk_sizes zarr_format""".split())
_PLAIN_GROUP = frozenset("attrs basename info metadata name path read_only store store_path synchronizer zarr_format".split())


def wrap(node: Any) -> Any:
    """A node as asyncio has it; anything else as it is."""
    if hasattr(node, "async_array"):
        return node.async_array
    return node.async_group if hasattr(node, "async_group") else node


def _twin(name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
    """A method of `Group` as a coroutine function, which runs it on the executor of the loop."""
    async def call(self: AsyncGroupBase, *args: Any, **kwargs: Any) -> Any:
        found = await run_on_thread(getattr(self.group, name), *args, **kwargs)
        return tuple(map(wrap, found)) if isinstance(found, tuple) else wrap(found)

    call.__name__, call.__qualname__, call.__doc__ = name, f"AsyncGroup.{name}", f"Awaits `Group.{name}`."
    return call


def _make_iterator(name: str) -> Callable[..., AsyncIterator[Any]]:
    """A method of `Group` that yields names, nodes or (path, node), for ``async for``."""
    async def call(self: AsyncGroupBase, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        for found in await run_on_thread(lambda: list(getattr(self.group, name)(*args, **kwargs))):
            yield (found[0], wrap(found[1])) if isinstance(found, tuple) else wrap(found)

    call.__name__, call.__qualname__, call.__doc__ = name, f"AsyncGroup.{name}", f"Iterates over `Group.{name}`."
    return call


class AsyncGroupBase:
    """What `AsyncGroup` does with its group."""

    group: Any

    def __getattr__(self, name: str) -> Any:
        if name in _PLAIN_GROUP:
            return getattr(self.group, name)
        raise AttributeError(f"AsyncGroup has no {name}: see AsyncGroup.group")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_PLAIN_GROUP})

    async def setitem(self, name: str, value: ArrayLike) -> None:
        await run_on_thread(self.group.__setitem__, name, value)

    async def delitem(self, path: str) -> None:
        await run_on_thread(self.group.__delitem__, path)

    async def contains(self, path: str) -> bool:
        return await run_on_thread(self.group.__contains__, path)

    async def update_attributes(self, new_attributes: Mapping[str, Any]) -> Self:
        await run_on_thread(self.group.update_attributes, new_attributes)
        return self

    get, get_array, get_group = _twin("get"), _twin("get_array"), _twin("get_group")
    create_array, require_array = _twin("create_array"), _twin("require_array")
    create_group, require_group, require_groups = _twin("create_group"), _twin("require_group"), _twin("require_groups")
    empty, zeros, ones, full = _twin("empty"), _twin("zeros"), _twin("ones"), _twin("full")
    empty_like, zeros_like, ones_like, full_like = _twin("empty_like"), _twin("zeros_like"), _twin("ones_like"), _twin("full_like")
    nmembers, move, tree, info_complete = _twin("nmembers"), _twin("move"), _twin("tree"), _twin("info_complete")
    members, keys, create_hierarchy = _make_iterator("members"), _make_iterator("keys"), _make_iterator("create_hierarchy")
    arrays, array_keys, array_values = _make_iterator("arrays"), _make_iterator("array_keys"), _make_iterator("array_values")
    groups, group_keys, group_values = _make_iterator("groups"), _make_iterator("group_keys"), _make_iterator("group_values")

    def __eq__(self, other: object) -> bool:
        return self.group == other.group if isinstance(other, AsyncGroupBase) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        return type(self), (self.group,)

    def __repr__(self) -> str:
        return f"<AsyncGroup {self.group.store_path}>"


