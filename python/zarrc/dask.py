"""Arrays of dask over arrays of zarrc. Each task reads or writes whole blocks (shards, or
chunks if there are no shards), so tasks of several processes never write one object at the same time.

    import zarrc.dask

    x = zarrc.dask.from_zarrc("x.zarr")
    zarrc.dask.to_zarrc(x + 1, "y.zarr", shards=(1000, 1000), chunks=(100, 100))
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np

from . import _api, _create
from ._array import Array
from ._edges import MOST_SIZES, list_edges
from ._places import open_place
from .errors import LimitError

if TYPE_CHECKING:
    from typing import Unpack

    from . import _arguments
    from ._types import ChunksLike, StoreLike

__all__ = ["from_zarrc", "to_zarrc"]


def _as_array(source: Array | StoreLike, name: str | None, storage_options: dict[str, Any] | None) -> Array:
    if not isinstance(source, Array):
        return _api.open_array(source, mode="r", path=name, storage_options=storage_options)
    if name or storage_options:
        raise TypeError("name= and storage_options= are for paths, URLs and stores, not for an open array")
    return source


def _join_edges(length: int, edges: Sequence[int]) -> tuple[int, ...]:
    """Neighbouring edges of a grid joined to blocks of at most `length`, or of one edge that is longer."""
    blocks: list[int] = []
    for edge in edges:
        if blocks and blocks[-1] + edge <= length:
            blocks[-1] += edge
        else:
            blocks.append(edge)
    return tuple(blocks) or (0,)


def _blocks(array: Array, chunks: Any) -> tuple[tuple[int, ...], ...]:
    """The blocks of a dask array over an array: by default a block of the array each, else about `chunks`, which
    is what dask takes, moved to the borders of blocks."""
    if chunks is None:
        blocks = array.write_chunk_sizes
    else:
        shape = array._block_shape
        units: Any = shape or tuple(one or (0,) for one in array.write_chunk_sizes)
        wanted = da.core.normalize_chunks(chunks, shape=array.shape, dtype=array.dtype, previous_chunks=units)
        lengths = [max(one, default=0) for one in wanted]
        if shape:  # units of one edge are joined without a list of them
            blocks = tuple(tuple(list_edges(n, max(one - one % unit, unit))) for n, one, unit in zip(array.shape, lengths, shape))
        else:
            blocks = tuple(_join_edges(one, unit) for one, unit in zip(lengths, units))
    n = math.prod(len(one) for one in blocks)
    if n > MOST_SIZES:
        raise LimitError(f"{array.store.url}/{array.path}: {n} blocks of dask, more than the limit {MOST_SIZES}: "
                         "choose larger ones with chunks=")
    return tuple(one or (0,) for one in blocks)


def from_zarrc(source: Array | StoreLike, *, name: str | None = None, chunks: ChunksLike = None,
               storage_options: dict[str, Any] | None = None) -> da.Array:
    """A dask array over an array of zarrc, which is read when dask computes.

    ``source`` is an array, or what `zarrc.open_array` takes, with ``name`` the path in it. The blocks of
    dask are those of the array, or whole numbers of these, about as large as ``chunks`` says (what dask takes, also "auto").
    """
    array = _as_array(source, name, storage_options)._with_numpy()
    meta = np.empty((0,) * array.ndim, array.dtype)
    return da.from_array(array, chunks=_blocks(array, chunks), asarray=True, fancy=True, lock=False, meta=meta)


def _edges_between(edges: Sequence[int], start: int, stop: int) -> list[int]:
    """The edges of a grid between two places, cut there."""
    borders = list(itertools.accumulate(edges, initial=0))
    inside = [start, *(one for one in borders if start < one < stop), stop]
    return [b - a for a, b in zip(inside, inside[1:])]


def _regular_blocks(blocks: Sequence[int], edge: int, start: int, stop: int) -> tuple[int, ...]:
    """The blocks between two places if they end at blocks of one edge, else blocks that do."""
    ends = [start + one for one in itertools.accumulate(blocks) if one]
    if all(end % edge == 0 or end == stop for end in ends):
        return tuple(blocks)
    length, out = max(blocks, default=0), []
    while start < stop:
        end = max((start + length) // edge, start // edge + 1) * edge
        end = stop if start + length >= stop else min(end, stop)
        out.append(end - start)
        start = end
    return tuple(out) or (0,)


def _region(array: Array, region: Any) -> tuple[slice, ...]:
    if region is None:
        return tuple(slice(0, n) for n in array.shape)
    given = region if isinstance(region, tuple) else (region,)
    if len(given) > array.ndim or not all(isinstance(one, slice) and one.step in (None, 1) for one in given):
        raise ValueError(f"region {region!r}: a slice without a step for each dimension is needed")
    given += (slice(None),) * (array.ndim - len(given))
    return tuple(slice(*one.indices(n)) for one, n in zip(given, array.shape))


def _to_units(x: da.Array, array: Array, region: tuple[slice, ...]) -> da.Array:
    """The same dask array with whole blocks of the array in each of its own, so that none has two tasks."""
    wanted: list[tuple[int, ...]] = []
    if array._block_shape:
        for blocks, edge, part in zip(x.chunks, array._block_shape, region):
            wanted.append(_regular_blocks(blocks, edge, part.start, part.stop))
        return x.rechunk(tuple(wanted))
    for blocks, edges, part in zip(x.chunks, array.write_chunk_sizes, region):
        units = _edges_between(edges, part.start, part.stop)
        borders = set(itertools.accumulate(units))
        fits = all(one in borders for one in itertools.accumulate(blocks) if one)
        wanted.append(tuple(blocks) if fits else _join_edges(max(blocks, default=0), units))
    return x.rechunk(tuple(wanted))


def _new_chunks(x: da.Array, kwargs: Mapping[str, Any]) -> Any:
    return "auto" if kwargs.get("shards") is not None else tuple(max(1, n) for n in x.chunksize)


def _write(x: da.Array, array: Array, region: Any, compute: bool) -> Any:
    place = _region(array, region)
    if x.shape != tuple(one.stop - one.start for one in place):
        raise ValueError(f"the dask array has the shape {x.shape}, and what it is written to "
                         f"{tuple(one.stop - one.start for one in place)}")
    done = da.store(_to_units(x, array, place), array, lock=False, regions=place, compute=compute)
    return array if compute else done


def to_zarrc(x: da.Array, store: Array | StoreLike, *, name: str | None = None,
             region: slice | tuple[slice, ...] | None = None, compute: bool = True, chunks: ChunksLike = None,
             storage_options: dict[str, Any] | None = None, **kwargs: Unpack[_arguments.ToZarrc]) -> Any:
    """Writes a dask array: each task whole blocks, without locks between them.

    ``store`` is an array of zarrc that is there, of which ``region`` (slices) is written; or what
    `zarrc.create_array` takes, with its arguments, such as ``name``, ``shards`` and ``overwrite``. The new array's
    ``chunks`` are dask's blocks by default, unless there are ``shards``. Returns the array; with ``compute=False`` a delayed object that
    writes when it is computed. Blocks of dask that cut those of the array are joined or cut before.

    Another call that replaces a new array waits until this one has written all blocks. With ``compute=False`` it does not wait: do not
    replace an array before its delayed object was computed.
    """
    if any(np.isnan(one) for blocks in x.chunks for one in blocks):
        raise ValueError("the lengths of the dask array's blocks are not known: x.compute_chunk_sizes() finds them")
    if isinstance(store, Array):
        if name or chunks is not None or storage_options or kwargs:
            raise TypeError("an array that is there keeps its properties: only region= and compute= apply")
        return _write(x, store, region, compute)
    if region is not None:
        raise TypeError("region= is for an array that is there")
    array = _create.create(open_place(store, mode="a", path=name, storage_options=storage_options), claim=compute, shape=x.shape,
                           dtype=x.dtype, chunks=_new_chunks(x, kwargs) if chunks is None else chunks, **kwargs)
    if not compute:
        return _write(x, array, None, compute)
    is_complete = False
    try:
        _write(x, array, None, compute)
        is_complete = True
    finally:
        array._release_claim(is_complete)
    return array
