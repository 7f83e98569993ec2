"""Arrays: NumPy's indexing over a zarr_array of the library."""
from __future__ import annotations

import hashlib
import json
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _codecs, _consolidation, _core, _dtypes, _indexing, _libraries, _log, _parts, _tensors
from ._aio import AsyncArrayBase
from ._array_config import ArrayConfig, Metadata
from ._edges import MOST_SIZES, count_edges, list_edges
from ._node import Node
from ._progress import reporter
from ._store import Store
from ._settings import call_options, settings
from ._stats import Summary
from ._tensors import HOST, Column, DeviceTensor, Tensor
from .errors import ConflictError, LimitError, NotFoundError, ZarrcError, in_store, make_error

if TYPE_CHECKING:
    from typing import Unpack

    from ._arguments import Controls
    from ._blocks import Block
    from ._info import Info
    from ._stats import Explanation
    from ._types import ArrayLike, ConfigLike, Fields, Key, LikeLike, Memory, Progress


class _Indexer:
    """`oindex`, `vindex` or `blocks` of an array."""

    __slots__ = ("_array", "_select")

    def __init__(self, array: Array, select: Callable[[Array, Any], _core.Selection]) -> None:
        self._array, self._select = array, select

    def __getitem__(self, key: Key) -> Any:
        fields, key = _indexing.pop_fields(key)
        return _tensors.read(self._array, self._select(self._array, key), self._array._find_like(), fields=fields)

    def __setitem__(self, key: Key, value: ArrayLike) -> None:
        fields, key = _indexing.pop_fields(key)
        _indexing.write(self._array, self._select(self._array, key), value, fields=fields)


class Array(Node, _core.Array):
    """A Zarr array. `open_array` and `create_array` make one.

    ``z[...]`` reads into new arrays of NumPy and writes from them, as arrays of zarr-python do: slices with any step, integers,
    lists and masks. ``oindex``, ``vindex`` and ``blocks`` select in other ways. With ``like="cupy"`` and so on, reads return arrays of
    that library. Threads may share the object. The GIL is released while the library works, and Ctrl-C cancels.

    Attributes
    ----------
    shape : tuple of int
        Length of each dimension.
    dtype : numpy.dtype
        Data type of the elements.
    chunks : tuple of int
        Shape of a chunk.
    shards : tuple of int or None
        Shape of a shard. None: there are none.
    attrs : Attributes
        The attributes. A change is written at once.

    Examples
    --------
    >>> z = zarrc.create_array("x.zarr", data=np.arange(12).reshape(3, 4), chunks=(2, 2))
    >>> z[1, ::2]
    array([4, 6])
    >>> z.oindex[[0, 2], 1]
    array([1, 9])
    >>> z[0] = -1
    >>> z.attrs["unit"] = "m"
    """

    _config: ArrayConfig
    _like: _libraries.Like | None  # None: NumPy's own arrays
    _twin: Array | None = None  # this array in a store with the plug-in for a device
    _seen: tuple[tuple[int, ...], Any] | None = None  # of a twin: shape and data type of the other handle

    if TYPE_CHECKING:
        def __getitem__(self, key: Key, /) -> Any: ...
        def __setitem__(self, key: Key, value: ArrayLike, /) -> None: ...

    # ---- what it is ----

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements in memory. Of text only the references count, as in NumPy."""
        return self.size * self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def config(self) -> ArrayConfig:
        return self._config

    @property
    def order(self) -> str:
        """The order of elements in new arrays that reads give; in v2 of chunks, too."""
        return str(self.metadata["order"]) if self.zarr_format == 2 else self._config.order

    @property
    def fill_value(self) -> Any:
        """The value of elements that are not stored; None: v2's null."""
        return _dtypes.fill_value(self)

    @property
    def chunks(self) -> tuple[int, ...]:
        """The shape of a chunk."""
        shape = self._chunk_shape
        if shape is None:
            raise NotImplementedError("the chunks of this array differ in shape: see read_chunk_sizes")
        return shape

    @property
    def shards(self) -> tuple[int, ...] | None:
        """The shape of a shard; None: there are none."""
        return self._block_shape if self._is_sharded else None

    @property
    def _is_sharded(self) -> bool:
        return any(codec == "sharding_indexed" or isinstance(codec, dict) and codec["name"] == "sharding_indexed"
                   for codec in json.loads(self._codecs_text))

    @property
    def read_chunk_sizes(self) -> tuple[tuple[int, ...], ...]:
        """The lengths of all chunks along each dimension, cut at the end of the array."""
        shape = self._chunk_shape
        return self.write_chunk_sizes if shape is None else self._all_sizes(shape)

    @property
    def write_chunk_sizes(self) -> tuple[tuple[int, ...], ...]:
        """The same for blocks: shards, or chunks of an array without shards."""
        return self._all_sizes(self._edges)

    @property
    def _edges(self) -> Sequence[Any]:
        """For each dimension the edge of all blocks, or those of a rectilinear grid, as metadata has them."""
        shape = self._block_shape
        if shape is not None:
            return shape
        edges: list[Any] = json.loads(self._grid_text)["configuration"]["chunk_shapes"]
        return edges

    def _all_sizes(self, edges: Sequence[Any]) -> tuple[tuple[int, ...], ...]:
        n = sum(count_edges(length, one) for length, one in zip(self.shape, edges))
        if n > MOST_SIZES:
            raise LimitError(f"{self.store.url}/{self.path}: {n} chunk lengths, more than the limit {MOST_SIZES}: "
                             "z.cdata_shape gives their number")
        return tuple(tuple(list_edges(length, one)) for length, one in zip(self.shape, edges))

    @property
    def cdata_shape(self) -> tuple[int, ...]:
        """How many chunks there are along each dimension."""
        return tuple(count_edges(n, one) for n, one in zip(self.shape, self._chunk_shape or self._edges))

    @property
    def nchunks(self) -> int:
        """The number of chunks, stored or not."""
        return math.prod(self.cdata_shape)

    @property
    def nchunks_initialized(self) -> int:
        """The number of stored chunks. Shards count with all their chunks, as in zarr-python."""
        objects = self._count_stored(False)[0]
        if not self._is_sharded:
            return objects
        return objects * math.prod(s // c for s, c in zip(self.shards or (), self.chunks))

    def nbytes_stored(self) -> int:
        """Bytes of everything that the store has for the array, metadata included."""
        names = ("zarr.json",) if self.zarr_format == 3 else (".zarray", ".zattrs")
        documents = (self.store._stat("/".join(part for part in (self.path, name) if part)) for name in names)
        return self._count_stored(True)[1] + sum(size for size in documents if size is not None)

    @property
    def metadata(self) -> Metadata:
        return Metadata(json.loads(self._metadata_text))

    @property
    def _chain(self) -> tuple[tuple[_codecs.Codec, ...], _codecs.Codec | None, tuple[_codecs.Codec, ...]]:
        document = self.metadata
        if self.zarr_format == 2:
            filters = tuple(_codecs.of_v2(one) for one in document["filters"] or ())
            return filters, None, (_codecs.of_v2(document["compressor"]),) if document["compressor"] else ()
        codecs = document["codecs"]
        if self._is_sharded and len(codecs) == 1:
            codecs = codecs[0]["configuration"]["codecs"]
        return _codecs.split(self.store._context, codecs)

    @property
    def filters(self) -> tuple[_codecs.Codec, ...]:
        return self._chain[0]

    @property
    def serializer(self) -> _codecs.Codec | None:
        """The codec that turns elements into bytes (v3)."""
        return self._chain[1]

    @property
    def compressors(self) -> tuple[_codecs.Codec, ...]:
        return self._chain[2]

    @property
    def compressor(self) -> _codecs.Codec | None:
        """The compressor of a v2 array."""
        if self.zarr_format == 3:
            raise TypeError("`compressor` is of Zarr format 2: use `compressors`")
        return self.compressors[0] if self.compressors else None

    @property
    def async_array(self) -> AsyncArray:
        """The same array for asyncio."""
        return AsyncArray(self)

    # ---- elements ----

    @property
    def oindex(self) -> _Indexer:
        """Each dimension on its own: ``z.oindex[[1, 5], :, mask]``."""
        return _Indexer(self, _indexing.orthogonal)

    @property
    def vindex(self) -> _Indexer:
        """Single elements: coordinates, ``z.vindex[[1, 5], [2, 3]]``, or a mask."""
        return _Indexer(self, _indexing.select_vectorised)

    @property
    def blocks(self) -> _Indexer:
        """Whole blocks (shards, or chunks without shards) by their place in the grid: ``z.blocks[0, 1:3]``."""
        return _Indexer(self, _indexing.blocks)

    # ---- blocks and chunks ----

    def iter_blocks(self, key: Key = ..., *, stored: bool | None = None) -> Iterator[Block]:
        """Iterates over the blocks that a selection touches, in C order. A block is what is stored as one object: a shard, or a chunk
        of an array without shards.

        Parameters
        ----------
        key : int, slice, list, array, or tuple of these, default ...
            What ``z[key]`` takes.
        stored : bool, optional
            True: only blocks that the store has. False: only missing blocks.

        Returns
        -------
        iterator of Block
            Coordinates, elements, key and encoded size of each block. The store is listed once, at the first step; if it cannot list,
            or the selection touches few of the array's blocks, the store is asked for each block.

        Raises
        ------
        BoundsCheckError
            An index is outside of the array.
        NotFoundError
            The array was moved or deleted.
        StoreError
            The store fails.

        Examples
        --------
        >>> z = zarrc.create_array("x.zarr", shape=(4, 4), dtype="int8", chunks=(2, 2), compressors=None)
        >>> z[0] = 1
        >>> list(z.iter_blocks(np.s_[:, 0]))
        [<Block (0, 0) [0:2, 0:2] c/0/0: 4 bytes>, <Block (1, 0) [2:4, 0:2] c/1/0: missing>]
        """
        from ._blocks import iter_blocks  # few programs need it
        return iter_blocks(self, key, stored)

    def iter_chunks(self, key: Key = ..., *, stored: bool | None = None) -> Iterator[Block]:
        """Iterates over the chunks that a selection touches. A chunk is the smallest unit that is decoded on its own.

        Chunks of one shard follow each other, in C order; the index of a shard is read when the iteration comes to it. In an array
        without shards, this is `iter_blocks`.

        Parameters
        ----------
        key : int, slice, list, array, or tuple of these, default ...
            What ``z[key]`` takes.
        stored : bool, optional
            True: only chunks that the store has. False: only missing chunks.

        Returns
        -------
        iterator of Block
            Coordinates, elements, key, offset and encoded size of each chunk.

        Raises
        ------
        BoundsCheckError
            An index is outside of the array.
        CorruptError
            The index of a shard is damaged.
        NotFoundError
            The array was moved or deleted.
        StoreError
            The store fails.

        Examples
        --------
        >>> z = zarrc.create_array("x.zarr", shape=8, dtype="int8", chunks=2, shards=4, compressors=None)
        >>> z[:2] = 1
        >>> [chunk.coordinates for chunk in z.iter_chunks(stored=True)]
        [(0,)]
        """
        from ._blocks import iter_chunks
        return iter_chunks(self, key, stored)

    def block_key(self, coordinates: Sequence[int]) -> str:
        """The key in the store of the block with these grid coordinates."""
        return self._block_key(_as_coordinates(coordinates))

    def block_read_encoded(self, coordinates: Sequence[int]) -> bytes:
        """Reads the encoded bytes of one block, without decoding them.

        Parameters
        ----------
        coordinates : sequence of int
            Grid coordinates of the block.

        Returns
        -------
        bytes
            What the store has.

        Raises
        ------
        NotFoundError
            The store does not have the block.
        ValueError
            The grid has no such block.
        StoreError
            The store fails.

        Examples
        --------
        >>> z = zarrc.create_array("x.zarr", data=np.arange(4, dtype="int8"), chunks=2, compressors=None)
        >>> z.block_read_encoded([1])
        b'\\x02\\x03'
        """
        return self._block_read(_as_coordinates(coordinates))

    def block_write_encoded(self, coordinates: Sequence[int], data: bytes | bytearray | memoryview) -> None:
        """Stores the encoded bytes of one block. They are not checked: bytes that the codecs of the array cannot decode make reads of the
        block fail.

        Parameters
        ----------
        coordinates : sequence of int
            Grid coordinates of the block.
        data : bytes-like
            The bytes.

        Raises
        ------
        ValueError
            The grid has no such block.
        NotFoundError
            The array was moved or deleted.
        ReadOnlyError
            The store is read-only.
        StoreError
            The store fails.

        Examples
        --------
        >>> z = zarrc.create_array("x.zarr", shape=4, dtype="int8", chunks=2, compressors=None)
        >>> z.block_write_encoded([1], bytes([2, 3]))
        >>> z[...]
        array([0, 0, 2, 3], dtype=int8)
        """
        if data is None:
            raise TypeError("data is None: block_erase removes a block")
        self._block_write(_as_coordinates(coordinates), data)

    def block_erase(self, coordinates: Sequence[int]) -> None:
        """Removes one block from the store. Its elements then read as the fill value. A missing block is a NotFoundError."""
        self._block_write(_as_coordinates(coordinates), None)

    # ---- reads and writes ----

    def _get(self, key: Any) -> Any:
        """What ``[]`` of the extension leaves to Python."""
        fields, key = _indexing.pop_fields(key)
        return _tensors.read(self, _indexing.any_key(self, key), self._find_like(), fields=fields)

    def _set(self, key: Any, value: Any) -> None:
        fields, key = _indexing.pop_fields(key)
        _indexing.write(self, _indexing.any_key(self, key), value, fields=fields)

    def _find_like(self, like: LikeLike = None, meta_array: LikeLike = None, device: str | None = None, out: Any = None) -> _libraries.Like | None:
        """Whose arrays a read returns; None: NumPy's own, or `out`."""
        if out is not None:
            if like is not None or meta_array is not None:
                raise TypeError("like= makes memory: it goes without out=")
            return None
        is_own = like is None and meta_array is None and device is None
        if like is None and meta_array is None:
            if self._like is None or device is not None and _libraries.is_host(device):
                return None
            if is_own and self._like.device is not None:
                return self._like
            like = self._like
        found = _libraries.choose(like, meta_array, device, self.store._default_device)[0]
        if is_own:
            self._like = found
        return None if found == _libraries.NUMPY else found

    def _for_device(self, device: str, may_open: bool = True) -> Any:
        """This array in the store that `Store._for_device` gives; None and NotImplemented are as there."""
        store, twin = self.store._for_device(device, may_open), self._twin
        if store is None or store is NotImplemented:
            return store
        if store is self.store:
            return self
        if twin is None or twin.store._context is not store._context or twin._seen != (self.shape, self.dtype):
            if not may_open:
                return NotImplemented
            twin = self._twin = self._open_twin(store)
        return twin

    def _open_twin(self, store: Store) -> Array:
        """This array in another store of the same place. Raises NotFoundError if it is gone, and ConflictError if it is not as this handle
        has it: a selection is for one shape, and a handle that was made of its metadata alone would not see who replaces the array."""
        try:
            twin = _open(store, self.path, zarr_format=self.zarr_format, config=self._config)
        except NotFoundError:
            twin = None
        self._recheck()
        if twin is None:  # consolidated metadata alone describes it, so there is no document that a handle could check
            twin = _core.open_document(Array, store, self.path, self._metadata_text, None, self._config.options())._configure(self._config)
        twin._seen = twin.shape, twin.dtype
        if twin._seen != (self.shape, self.dtype):
            raise make_error(ConflictError, f"{self.store_path} has another shape or data type now: call refresh()")
        return twin

    def refresh(self) -> bool:
        """Reads the metadata again; tells whether it has changed."""
        self._twin = None
        return super().refresh()

    def _follow(self, twin: Array) -> None:
        """Reads the metadata again after the twin has changed it."""
        super().refresh()
        twin._seen = self.shape, self.dtype

    def read(self, key: Key = ..., *, out: Memory | None = None, fields: Fields = None, packed: bool = False,
             progress: Progress = None, max_threads: int | None = None, device: str | None = None, like: LikeLike = None,
             meta_array: LikeLike = None, stats: dict[str, int] | None = None, **controls: Unpack[Controls]) -> Any:
        """Reads what ``z[key]`` reads, with options.

        Parameters
        ----------
        key : int, slice, list, array, field name, or tuple of these, default ...
            What ``z[key]`` takes.
        out : array or tensor, optional
            Memory to fill: an array of NumPy with any strides and byte order, an NDBuffer of zarr-python, or a tensor of another
            library, in host memory or on a device.
        fields : str or list of str, optional
            Fields of a struct type to read.
        packed : bool, default False
            Returns elements of 2 or 4 bits as uint8, with several of them in a byte.
        progress : callable, tqdm bar or True, optional
            Is called with the number of chunks that are done, and of all chunks. True shows a bar of tqdm.
        max_threads : int, optional
            How many threads the call uses at most. By default the setting ``max_threads``.
        device : str, optional
            A device such as "cuda:0", in whose memory the elements are returned.
        like : array, class, module, or {"numpy", "cupy", "torch", "jax"}, optional
            Whose arrays are returned, on ``device`` or on that of the array. By default as the array was opened.
        meta_array : array, optional
            What zarr 2 calls ``like``.
        stats : Stats or dict, optional
            Counters of what the call did, such as ``bytes_stored`` and ``copies_up``, are added to it.
        **controls
            How this call works: ``wave_bytes``, ``memory_bytes``, ``pipeline``, ``codec_preference``, ``trust``, ``coalesce_gap`` and
            ``coalesce_bytes``, as in `ArrayConfig`. They come before those of the array and the settings.

        Returns
        -------
        array, scalar or DeviceTensor
            The elements, as an array of NumPy or of ``like``; ``out`` if it is given; a `DeviceTensor` with ``device`` alone.

        Raises
        ------
        BoundsCheckError
            An index is outside of the array.
        CorruptError
            A stored chunk is damaged.
        ChunkNotFoundError
            A chunk is missing, and the array was opened with ``read_missing_chunks=False``.
        StoreError
            The store fails.
        ValueError
            ``out`` has another shape.
        TypeError
            The options exclude each other.

        Examples
        --------
        >>> z = zarrc.create_array("x.zarr", data=np.arange(6.0))
        >>> out = np.empty(3)
        >>> z.read(slice(3), out=out) is out
        True
        >>> out
        array([0., 1., 2.])
        """
        wanted = self._find_like(like, meta_array, device, out)
        if packed and (like is not None or meta_array is not None):
            raise TypeError("packed= gives elements of NumPy: it goes without like=")
        if wanted is None and device is not None and not _libraries.is_host(device) and like is None and meta_array is None:
            if out is not None or fields or packed:
                raise TypeError("device= makes memory for whole elements: it goes without out=, fields= and packed=")
            with reporter(progress) as options:
                return DeviceTensor.read(self, _indexing.any_key(self, key), device, _with(options, max_threads, stats, controls))
        if wanted is not None and not packed:
            more, key = _indexing.pop_fields(key)
            with reporter(progress) as options:
                return _tensors.read(self, _indexing.any_key(self, key), wanted, fields=fields or more, options=_with(options, max_threads, stats, controls))
        if not (packed or fields or max_threads or controls or stats is not None) and (progress is None or progress is False):  # a bar of tqdm may have no truth
            if out is not None and self._read_into(key, out):
                return out
            if (quick := self._key(key)) is not NotImplemented:
                return _indexing.read(self, quick, out=out)
        more, key = _indexing.pop_fields(key)
        selection = _indexing.any_key(self, key)
        if packed:
            out = np.empty(_packed_shape(self, selection.shape), np.uint8) if out is None else out
        with reporter(progress) as options:
            return _indexing.read(self, selection, out=out, fields=fields or more, options=_with(options, max_threads, stats, controls))

    def read_many(self, keys: Iterable[Key], *, out: Memory | Sequence[Memory] | None = None, progress: Progress = None,
                  max_threads: int | None = None, device: str | None = None, like: LikeLike = None, meta_array: LikeLike = None,
                  stats: dict[str, int] | None = None, **controls: Unpack[Controls]) -> list[Any]:
        """Reads what ``[z[key] for key in keys]`` reads, in one request.

        Chunks are fetched together, and a chunk that several keys need is fetched and decoded once. Text and bytes of any length are
        read key by key.

        Parameters
        ----------
        keys : iterable
            Keys that ``z[key]`` takes.
        out : list of arrays or tensors, or array, optional
            Memory for each key, or one array whose rows these are.
        progress : callable, tqdm bar or True, optional
            Is called with the number of chunks that are done, and of all chunks. True shows a bar of tqdm.
        max_threads : int, optional
            How many threads the call uses at most. By default the setting ``max_threads``.
        device : str, optional
            A device such as "cuda:0", in whose memory the elements are returned.
        like : array, class, module, or {"numpy", "cupy", "torch", "jax"}, optional
            Whose arrays are returned, on ``device`` or on that of the array. By default as the array was opened.
        meta_array : array, optional
            What zarr 2 calls ``like``.
        stats : Stats or dict, optional
            Counters of what the call did, such as ``bytes_stored`` and ``copies_up``, are added to it.
        **controls
            How this call works: ``wave_bytes``, ``memory_bytes``, ``pipeline``, ``codec_preference``, ``trust``, ``coalesce_gap`` and
            ``coalesce_bytes``, as in `ArrayConfig`. They come before those of the array and the settings.

        Returns
        -------
        list
            An array of NumPy or of ``like`` for each key; the memory of ``out``; `DeviceTensor` objects with ``device`` alone.

        Raises
        ------
        BoundsCheckError
            An index is outside of the array.
        CorruptError
            A stored chunk is damaged. The memory of keys that do not need it is filled.
        StoreError
            The store fails.
        TypeError
            Both ``out`` and ``device`` or ``like`` are given.

        Examples
        --------
        >>> z = zarrc.create_array("x.zarr", data=np.arange(6), chunks=3)
        >>> z.read_many([slice(0, 2), slice(1, 3)])
        [array([0, 1]), array([1, 2])]
        """
        on_device = device is not None and not _libraries.is_host(device)
        if out is not None and on_device:
            raise TypeError("device= makes memory: it goes without out=")
        wanted = self._find_like(like, meta_array, device, out)
        with reporter(progress) as options:
            options = _with(options, max_threads, stats, controls)
            if wanted is not None:
                return _tensors.read_many(self, [_indexing.any_key(self, key) for key in keys], wanted, options)
            if on_device and like is None and meta_array is None:
                return DeviceTensor.read_many(self, [_indexing.any_key(self, key) for key in keys], str(device), options)
            return _parts.read(self, [_indexing.any_key(self, key) for key in keys], out, options)

    def explain(self, key: Key = ..., *, out: Memory | None = None, value: ArrayLike | None = None, device: str | None = None,
                like: LikeLike = None, max_threads: int | None = None, **controls: Unpack[Controls]) -> Explanation:
        """Tells what `read` with these arguments would do, or `write` with ``value``: which implementations of codecs it would use, which
        copies it would make, and how many waves it would take. No element is read or written.

        Parameters
        ----------
        key, out, device, like
            As for `read`.
        value : array_like or tensor, optional
            As for `write`.
        max_threads : int, optional
            How many threads the call would use at most.
        **controls
            As for `read`.

        Returns
        -------
        Explanation
            A mapping with the members of `zarr_explanation`, whose repr is lines of text.

        Examples
        --------
        >>> z = zarrc.create_array("x.zarr", shape=(4, 4), dtype="int8", chunks=(2, 2))
        >>> z.explain(wave_bytes=8)["waves"]
        2
        """
        wanted = self._find_like(like, None, device, value if out is None else out)
        return _tensors.explain(self, _indexing.any_key(self, key), _indexing.unwrap(out), value, wanted, device, _with({}, max_threads, None, controls))

    def summary(self, key: Key = ..., *, over: int | str | Sequence[int | str] | None = None, weights: Mapping[int | str, ArrayLike] | None = None,
                missing: ArrayLike | None = True, bins: int | ArrayLike | None = None, quantiles: ArrayLike | None = None, field: str | None = None,
                max_threads: int | None = None, stats: dict[str, int] | None = None, **controls: Unpack[Controls]) -> Summary:
        """Computes statistics of the elements of ``z[key]``, a part of them at a time: each chunk is read and decoded once.

        Sums of integers are exact. Sums of floats are rounded once, from about twice the digits. Results do not depend on the number
        of threads. NaN and missing elements are counted, and left out of everything else.

        Parameters
        ----------
        key : int, slice, list, array, or tuple of these, default ...
            What ``z[key]`` takes.
        over : int, str or sequence of them, optional
            Dimensions of ``z[key]`` over which statistics are computed, by number or name. By default all of them.
        weights : mapping, optional
            One dimension, by number or name, and a weight for each index of it: ``{"lat": np.cos(np.radians(lat))}``. They apply to
            sum, mean and standard deviation.
        missing : scalar, bool, default True
            Elements with this value are missing. True: the value that xarray shows as NaN, such as the attribute ``_FillValue``. False
            or None: no value means that.
        bins : int or array_like, optional
            Makes a histogram, with this many bins between the extremes, or with these edges. Only over all dimensions.
        quantiles : array_like, optional
            Numbers from 0 to 1. Only over all dimensions. They are exact for types of up to 16 bits, and if the elements as doubles
            take at most a quarter of the context's memory.
        field : str, optional
            One field of a struct type.
        max_threads : int, optional
            How many threads the call uses at most. By default the setting ``max_threads``.
        stats : Stats or dict, optional
            Counters of what the call did, such as ``bytes_stored``, are added to it.
        **controls
            As for `read`.

        Returns
        -------
        Summary
            The statistics: ``count``, ``missing``, ``nan``, ``min``, ``max``, ``sum``, ``mean``, ``std`` and more.

        Raises
        ------
        UnsupportedError
            Elements are not real numbers, booleans or times.
        CorruptError
            A stored chunk is damaged.
        ValueError
            An option does not fit the array.

        Examples
        --------
        >>> z = zarrc.create_array("x.zarr", data=np.arange(6, dtype="int16").reshape(2, 3), chunks=(1, 3))
        >>> z.summary().sum, z.summary().mean
        (15, 2.5)
        >>> z.summary(over=0).max
        array([3, 4, 5], dtype=int16)
        """
        selection = _indexing.any_key(self, key)
        dtype = self.dtype
        for name in field.split(".") if field else ():
            dtype = dtype[name]
        dtype = dtype.newbyteorder("=")
        options = _with({"field": field}, max_threads, stats, controls)
        options.update(_summary_options(self, selection.shape, over, weights, bins, quantiles))
        if missing is True:  # the library finds it
            options["missing"] = True
        elif missing is not None and missing is not False:
            value = np.asarray(missing).astype(dtype).reshape(1)
            if dtype.kind in "iu" and value.item() != missing:
                raise ValueError(f"missing={missing}: not a number of type {dtype}")
            options["missing"] = value.view(np.uint8)
        return Summary(self._summary(selection, options), selection.shape, dtype)

    def write(self, key: Key, value: ArrayLike, *, fields: Fields = None, packed: bool = False, progress: Progress = None,
              max_threads: int | None = None, stats: dict[str, int] | None = None, **controls: Unpack[Controls]) -> None:
        """Writes what ``z[key] = value`` writes, with options.

        Parameters
        ----------
        key : int, slice, list, array, field name, or tuple of these
            What ``z[key]`` takes.
        value : array_like or tensor
            The elements, of the selection's shape or of a shape that NumPy broadcasts to it. Those of another library stay on their device.
        fields : str or list of str, optional
            Fields of a struct type to write.
        packed : bool, default False
            Takes elements of 2 or 4 bits as uint8, with several of them in a byte.
        progress : callable, tqdm bar or True, optional
            Is called with the number of chunks that are done, and of all chunks. True shows a bar of tqdm.
        max_threads : int, optional
            How many threads the call uses at most. By default the setting ``max_threads``.
        stats : Stats or dict, optional
            Counters of what the call did, such as ``bytes_stored`` and ``copies_down``, are added to it.
        **controls
            How this call works: ``wave_bytes``, ``memory_bytes``, ``pipeline``, ``codec_preference``, ``trust``, ``coalesce_gap`` and
            ``coalesce_bytes``, as in `ArrayConfig`. They come before those of the array and the settings.

        Raises
        ------
        BoundsCheckError
            An index is outside of the array.
        ReadOnlyError
            The store is read-only.
        StoreError
            The store fails.
        ValueError
            The value cannot be broadcast to the selection.

        Examples
        --------
        >>> z = zarrc.create_array("x.zarr", shape=4, dtype="int8")
        >>> z.write(slice(2), [1, 2], max_threads=1)
        >>> z[...]
        array([1, 2, 0, 0], dtype=int8)
        """
        more, key = _indexing.pop_fields(key)
        with reporter(progress) as options:
            if packed:
                options["packed"] = 1
            _indexing.write(self, _indexing.any_key(self, key), value, fields=fields or more,
                            options=_with(options, max_threads, stats, controls))

    def _read_as(self, like: LikeLike, meta_array: LikeLike, selection: _core.Selection, fields: Any, out: Any) -> Any:
        wanted = self._find_like(like, meta_array, None, out)
        return _tensors.read(self, selection, wanted, fields=fields) if out is None else _indexing.read(
            self, selection, out=_indexing.unwrap(out), fields=fields)

    def get_basic_selection(self, selection: Key = ..., *, out: Memory | None = None, prototype: object = None, fields: Fields = None, like: LikeLike = None,
                            meta_array: LikeLike = None) -> Any:
        """Integers and slices, of any step. As in zarr-python, an NDBuffer as ``out`` is filled, and the array in it is
        returned, or its element if it has no dimension. So do the methods below."""
        found = self._read_as(like, meta_array, _indexing.basic(self, selection), fields, out)
        return found[()] if out is not None and _indexing.unwrap(out) is not out and not found.shape else found

    def set_basic_selection(self, selection: Key, value: ArrayLike, *, fields: Fields = None, prototype: object = None) -> None:
        _indexing.write(self, _indexing.basic(self, selection), value, fields=fields)

    def get_orthogonal_selection(self, selection: Key, *, out: Memory | None = None, fields: Fields = None, like: LikeLike = None, meta_array: LikeLike = None, prototype: object = None) -> Any:
        """As `oindex`."""
        return self._read_as(like, meta_array, _indexing.orthogonal(self, selection), fields, out)

    def set_orthogonal_selection(self, selection: Key, value: ArrayLike, *, fields: Fields = None, prototype: object = None) -> None:
        _indexing.write(self, _indexing.orthogonal(self, selection), value, fields=fields)

    def get_mask_selection(self, mask: ArrayLike, *, out: Memory | None = None, fields: Fields = None, like: LikeLike = None, meta_array: LikeLike = None, prototype: object = None) -> Any:
        """The elements whose place in a mask is True, in C order."""
        return self._read_as(like, meta_array, _indexing.mask(self, mask), fields, out)

    def set_mask_selection(self, mask: ArrayLike, value: ArrayLike, *, fields: Fields = None, prototype: object = None) -> None:
        _indexing.write(self, _indexing.mask(self, mask), value, fields=fields)

    def get_coordinate_selection(self, selection: Key, *, out: Memory | None = None, fields: Fields = None, like: LikeLike = None, meta_array: LikeLike = None, prototype: object = None) -> Any:
        """As `vindex` with coordinates."""
        chosen = _indexing.points(self, selection)
        return self._read_as(like, meta_array, chosen, fields, None if out is None else _indexing.as_points(out, chosen.shape))

    def set_coordinate_selection(self, selection: Key, value: ArrayLike, *, fields: Fields = None, prototype: object = None) -> None:
        _indexing.write(self, _indexing.points(self, selection), value, fields=fields)

    def get_block_selection(self, selection: Key, *, out: Memory | None = None, fields: Fields = None, like: LikeLike = None, meta_array: LikeLike = None, prototype: object = None) -> Any:
        """As `blocks`."""
        return self._read_as(like, meta_array, _indexing.blocks(self, selection), fields, out)

    def set_block_selection(self, selection: Key, value: ArrayLike, *, fields: Fields = None, prototype: object = None) -> None:
        _indexing.write(self, _indexing.blocks(self, selection), value, fields=fields)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("the elements of a Zarr array cannot become an array of NumPy without a copy")
        found = self._numpy(...)
        return found if dtype is None else found.astype(dtype, copy=False)

    def __iter__(self) -> Iterator[Any]:
        """Reads one block after the other along the first dimension, each once."""
        if not self.ndim:
            raise TypeError("iteration over an array without dimensions")
        start = 0
        for n in list_edges(self.shape[0], self._edges[0]):
            yield from self[start:start + n]
            start += n

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("an array without dimensions has no length")
        return self.shape[0]

    def __bool__(self) -> bool:
        return True

    # ---- changes ----

    def resize(self, new_shape: int | Iterable[int]) -> None:
        """Changes the shape. Elements outside of a smaller shape are deleted.

        Parameters
        ----------
        new_shape : int or iterable of int
            Length of each dimension.

        Raises
        ------
        ValueError
            A length is negative, or the number of dimensions differs.
        ReadOnlyError
            The store is read-only.

        Examples
        --------
        >>> z = zarrc.create_array("x.zarr", data=np.arange(4))
        >>> z.resize(6)
        >>> z[...]
        array([0, 1, 2, 3, 0, 0])
        """
        shape = (new_shape,) if isinstance(new_shape, (int, np.integer)) else tuple(new_shape)
        if any(operator.index(n) < 0 for n in shape):
            raise ValueError(f"a shape has no negative lengths: {shape}")
        with _consolidation.change(self.store, self.path):
            self._resize(tuple(operator.index(n) for n in shape), _consolidation.flag(_core.ZARR_RESIZE_CONSOLIDATED))

    def append(self, data: ArrayLike, axis: int = 0, **controls: Unpack[Controls]) -> tuple[int, ...]:
        """Writes elements after those that are there. Readers see all of them or none, and appends of several processes wait for each other.

        Parameters
        ----------
        data : array_like or tensor
            The elements. Their shape is that of the array, except along ``axis``.
        axis : int, default 0
            The dimension that grows.
        **controls
            How this call works: ``wave_bytes``, ``memory_bytes``, ``pipeline``, ``codec_preference``, ``trust``, ``coalesce_gap`` and
            ``coalesce_bytes``, as in `ArrayConfig`. They come before those of the array and the settings.

        Returns
        -------
        tuple of int
            The new shape.

        Raises
        ------
        ValueError
            The elements have another number of dimensions, or other lengths.
        IndexError
            There is no such axis.
        ReadOnlyError
            The store is read-only.

        Examples
        --------
        >>> z = zarrc.create_array("x.zarr", shape=(0, 2), dtype="int8", chunks=(4, 2))
        >>> z.append([[1, 2], [3, 4]])
        (2, 2)
        """
        there, memory, order, options = self._to_append(data, axis)
        with _consolidation.change(self.store, self.path):
            there._append(memory, axis % self.ndim, order, {**options, **call_options(controls)})
        if there is not self:
            self._follow(there)
        return self.shape

    def _to_append(self, data: Any, axis: int) -> tuple[Array, Any, int, dict[str, Any]]:
        """(handle, memory, byte order, options) of an append."""
        if not -self.ndim <= axis < self.ndim:
            raise IndexError(f"axis {axis} of an array with {self.ndim} dimensions")
        if self._how == _dtypes.VLEN:
            return self, _indexing.to_vlen(self, data), 0, {}
        is_foreign = _indexing.is_foreign(data)
        given, order = (data, 0) if is_foreign else _indexing.coerce(self.dtype, data)
        if given.ndim != self.ndim:
            raise ValueError(f"data to append has {given.ndim} dimensions, and the array {self.ndim}")
        if not is_foreign:
            return self, given, order, {}
        self._open_to_append(data)
        return _indexing.prepare_tensor(self, data, {})

    def _open_to_append(self, data: Any) -> None:
        """Opens the handle that appends a tensor."""
        try:
            self._for_device(_libraries.find_device(data))
        except ConflictError:  # perhaps only the shape is another one, which is of no concern here
            self._recheck()
            self.refresh()

    def with_config(self, config: ConfigLike) -> Array:
        """The same array, read and written in another way. What the config does not say about `like` and `trust` stays as it is."""
        if isinstance(config, Mapping):
            config = {**{name: getattr(self._config, name) for name in ArrayConfig.__dataclass_fields__}, **config}
        found = ArrayConfig.of(config).inherit(self._config)
        return self._with(found.options())._configure(found)

    def _with_numpy(self) -> Array:
        """The same array, whose reads return arrays of NumPy."""
        return self if self._like is None else self.with_config({"like": "numpy"})

    def _configure(self, config: ArrayConfig) -> Array:
        self._like = config.library()
        self._config = config if self._like is None or config.like is not None else config.for_library(self._like)
        self._is_fortran = self.order == "F"
        self._has_like = self._like is not None
        self._tuning = config.tuning()
        return self

    # ---- what people see ----

    def _info_rows(self) -> list[tuple[str, Any]]:
        from ._info import bytes_text  # few programs need it

        filters, serializer, compressors = self._chain
        rows: list[tuple[str, Any]] = [("Type", "Array"), ("Zarr format", self.zarr_format), ("Data type", self.dtype),
                                       ("Fill value", self.fill_value), ("Shape", self.shape)]
        if self.shards is not None:
            rows.append(("Shard shape", self.shards))
        rows += [("Chunk shape", self._chunk_shape or "<variable>"), ("Order", self.order),
                 ("Read-only", self.read_only), ("Store type", self.store.kind), ("Filters", filters)]
        if serializer is not None:
            rows.append(("Serializer", serializer))
        return [*rows, ("Compressors", compressors), ("No. bytes", bytes_text(self.nbytes))]

    @property
    def info(self) -> Info:
        """What the metadata says."""
        from ._info import Info
        return Info(tuple(self._info_rows()))

    def info_complete(self) -> Info:
        """The same with what is stored, for which the store is listed."""
        from ._info import Info, bytes_text

        stored, objects = self.nbytes_stored(), self._count_stored(False)[0]
        rows = [*self._info_rows(), ("No. bytes stored", bytes_text(stored))]
        if stored:
            rows.append(("Storage ratio", f"{self.nbytes / stored:.1f}"))
        return Info((*rows, ("Shards Initialized" if self._is_sharded else "Chunks Initialized", objects)))

    def __repr__(self) -> str:
        return f"<Array {self.store_path} shape={self.shape} dtype={self.dtype}>"

    def _repr_html_(self) -> str:
        return f"<div><b>zarrc.Array</b> <code>{self.name}</code>{self.info._repr_html_()}</div>"

    # ---- other libraries ----

    def __reduce__(self) -> Any:
        return _reopen, (self.store, self.path, self.zarr_format, self._config)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Array):
            return NotImplemented
        return (self.store == other.store and self.path == other.path and self._config == other._config
                and self._metadata_text == other._metadata_text)

    __hash__ = None  # type: ignore[assignment]

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """The same for equal arrays. It follows the metadata and the store, and not the elements."""
        digest = hashlib.sha256(self._metadata_text.encode()).hexdigest()
        return "zarrc.Array", self.store._token(), self.path, digest, self._config

    def tensor(self, key: Key = ..., *, device: str | None = None) -> Tensor | DeviceTensor:
        """Reads what ``z[key]`` reads, for another library: ``torch.from_dlpack(z.tensor(key))``. The
        library gets the elements without a further copy, also types that NumPy lacks, as bfloat16.
        With ``device``, such as "cuda:0", they are in memory of that device."""
        if device is not None and not _libraries.is_host(device):
            return DeviceTensor.read(self, _indexing.any_key(self, key), device, {})
        return Tensor(self, self._numpy(key))

    def _numpy(self, key: Any) -> np.ndarray[Any, Any]:
        """What ``z[key]`` reads, as an array of NumPy."""
        fields, key = _indexing.pop_fields(key)
        return np.asarray(_indexing.read(self, _indexing.any_key(self, key), fields=fields))

    def column(self, key: Key = ...) -> Column:
        """Text, bytes or lists of any length for a library that speaks Arrow: ``pyarrow.array(z.column())``,
        ``polars.Series(z.column(slice(10)))``. It is read when the library asks."""
        return Column(self, _indexing.any_key(self, key))

    def __dlpack__(self, **options: Any) -> Any:
        return self.tensor().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return HOST


class AsyncArray(AsyncArrayBase):
    """An array whose reads and writes are awaited: ``await a.getitem((slice(0, 10), 3))``. What needs
    no I/O, such as ``shape``, is as in `Array`, which is ``array``."""

    array: Array

    def __init__(self, array: Array) -> None:
        self.array = array

    def with_config(self, config: ConfigLike) -> AsyncArray:
        return AsyncArray(self.array.with_config(config))


def _with(options: dict[str, Any], max_threads: int | None, stats: dict[str, int] | None, controls: Controls) -> dict[str, Any]:
    if controls:
        options = {**options, **call_options(controls)}
    if stats is not None:
        if not isinstance(stats, dict):
            raise TypeError(f"stats: {stats!r} is not a dict")
        options = {**options, "stats": stats}
    return {**options, "max_threads": max_threads} if max_threads else options


def _dimension(array: Array, shape: tuple[int, ...], given: int | str) -> int:
    """The number of a dimension of the result of a key."""
    if isinstance(given, str):
        names = array.dimension_names or ()
        if len(shape) != array.ndim:
            raise ValueError(f"dimension {given!r}: the key drops dimensions, so give the number of the one that is meant")
        if given not in names:
            raise ValueError(f"dimension {given!r} is not one of {names}")
        return names.index(given)
    number = operator.index(given)
    if not -len(shape) <= number < len(shape):
        raise ValueError(f"dimension {number} is not one of {len(shape)}")
    return number % len(shape)


def _summary_options(array: Array, shape: tuple[int, ...], over: Any, weights: Any, bins: Any, quantiles: Any) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if over is not None:
        dims = over if isinstance(over, Iterable) and not isinstance(over, str) else [over]
        options["over"] = tuple(_dimension(array, shape, one) for one in dims)
    if weights is not None:
        [(dim, values)] = weights.items()
        options.update(weights_dim=_dimension(array, shape, dim), weights=np.ascontiguousarray(values, np.float64))
    if isinstance(bins, (int, np.integer)):
        if bins <= 0:
            raise ValueError(f"bins={bins}: expected at least 1")
        options["bins"] = bins
    elif bins is not None:
        edges = np.ascontiguousarray(bins, np.float64)
        if edges.ndim != 1 or len(edges) < 2:
            raise ValueError("bins: expected a number, or at least two edges")
        options.update(edges=edges, bins=len(edges) - 1)
    if quantiles is not None:
        options["quantiles"] = np.ascontiguousarray(np.atleast_1d(quantiles), np.float64)
    return options


def _as_coordinates(given: Sequence[int]) -> tuple[int, ...]:
    found = tuple(operator.index(one) for one in given)
    if any(one < 0 for one in found):
        raise ValueError(f"grid coordinates are not negative: {found}")
    return found


def _packed_shape(array: Array, shape: tuple[int, ...]) -> tuple[int, ...]:
    bits = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2}.get(array.dtype.name)
    if not bits or not shape:
        raise TypeError(f"elements of type {array.dtype} are not packed")
    return (*shape[:-1], (shape[-1] * bits + 7) // 8)


def open_in_store(store: Any, path: str, *, zarr_format: int | None = None, config: Any = None, within: Any = None) -> Array:
    """Opens an array of a store, or of a group that may know it from consolidated metadata."""
    array = _open(store, path, zarr_format=zarr_format, config=config, within=within)
    warn_if_unfinished(array)
    return array


def open_listed(store: Store, path: str, document: str, config: ArrayConfig, options: dict[str, Any]) -> Array:
    """Opens an array whose document a listing has just read. `options` are those of `config`, with ZARR_OPEN_STORED."""
    try:
        array = _core.open_document(Array, store, path, document, None, options)
    except ZarrcError as problem:
        in_store(problem, store.url)
        raise
    array._configure(config)
    warn_if_unfinished(array)
    return array


def _open(store: Any, path: str, *, zarr_format: int | None, config: Any, within: Any = None) -> Array:
    found = ArrayConfig.of(config)
    try:
        array = _core.open_array(Array, within or store, path, {**found.options(), "zarr_format": zarr_format or 0})
    except ZarrcError as problem:
        in_store(problem, store.url)
        raise
    return array._configure(found)


def warn_if_unfinished(array: Array) -> None:
    """Warns, as the program does, if an interrupted command left the array incomplete. Only where the check takes microseconds."""
    key = f"{array.path}/.zarrc-job".lstrip("/")
    if not array.store._caps[1] & _core.ZARR_STORE_CAP_FAST_GET or array.store._stat(key) is None:
        return
    try:
        command = json.loads(array.store.get(key) or b"{}").get("command", "reencode")
    except (ValueError, AttributeError):
        command = ""
    known = command if command in ("cp", "mv", "rm", "create", "import", "migrate", "reencode") else "command"
    _log.on_log(_core.ZARR_LOG_WARN, f"{array.store_path} is incomplete: zarrc {known} was interrupted, or is at work. "
                           "`zarrc clean` names what continues or removes it")


def _reopen(store: Store, path: str, zarr_format: int, config: ArrayConfig) -> Array:
    """The copy of a handle in another process, which may be one of those that fill a new array."""
    return _open(store, path, zarr_format=zarr_format, config=config)
