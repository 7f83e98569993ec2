"""The blocks and chunks that a selection touches, and what the store has of them."""
from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core, _indexing
from ._edges import MOST_SIZES, count_edges, list_edges
from .errors import LimitError, UnsupportedError

if TYPE_CHECKING:
    from ._types import Key

_PAGE = 1000  # keys in a page of a store's listing
_UNKNOWN = 2**64 - 1  # a listing may lack sizes
_Place = tuple[int, ...]


@dataclass(frozen=True)
class Block:
    """A block (what is stored as one object), or a chunk of a shard. `Array.iter_blocks` and `Array.iter_chunks` yield them.

    Attributes
    ----------
    coordinates : tuple of int
        Coordinates in the grid of blocks, or in that of chunks.
    selection : tuple of slice
        The elements, so ``z[block.selection]`` reads them. It ends at the end of the array.
    key : str
        Key of the object in the store.
    offset, nbytes : int
        Where the encoded bytes begin in the object, and how many they are. Both are 0 if they are missing.
    is_stored : bool
        False: missing, so its elements read as the fill value.
    is_chunk : bool
        Whether it is a chunk of a shard.
    """

    coordinates: tuple[int, ...]
    selection: tuple[slice, ...]
    key: str
    offset: int = 0
    nbytes: int = 0
    is_stored: bool = False
    is_chunk: bool = False

    def __repr__(self) -> str:
        where = ", ".join(f"{one.start}:{one.stop}" for one in self.selection)
        at = f" at {self.offset}" if self.is_chunk else ""
        state = f"{self.nbytes} bytes{at}" if self.is_stored else "missing"
        return f"<{'Chunk' if self.is_chunk else 'Block'} {self.coordinates} [{where}] {self.key}: {state}>"


class _Axis:
    """Where blocks or chunks begin and end along one dimension."""

    def __init__(self, length: int, edges: Any) -> None:
        self.length, self.n = length, count_edges(length, edges)
        self.edge = edges if isinstance(edges, int) else 0
        if not self.edge and self.n > MOST_SIZES:
            raise LimitError(f"{self.n} blocks of different lengths along one dimension, more than the limit {MOST_SIZES}")
        self.ends = None if self.edge else np.cumsum(np.fromiter(list_edges(length, edges), np.int64))

    def locate(self, elements: Any) -> Any:
        """The coordinates of elements."""
        return elements // self.edge if self.ends is None else np.searchsorted(self.ends, elements, side="right")

    def span(self, place: int) -> slice:
        if self.ends is None:
            return slice(place * self.edge, min((place + 1) * self.edge, self.length))
        return slice(int(self.ends[place - 1]) if place else 0, int(self.ends[place]))

    def touch(self, item: Any) -> Sequence[int]:
        """The coordinates, in order, that an item of a key touches."""
        if isinstance(item, slice):
            picked = range(self.length)[item]
            return self._touch_range(picked[::-1] if picked.step < 0 else picked)
        if not isinstance(item, np.ndarray):
            return [int(self.locate(item % self.length))]
        elements = np.flatnonzero(item) if item.dtype.kind == "b" else item % max(self.length, 1)
        found: list[int] = np.unique(self.locate(elements)).tolist()
        return found

    def _touch_range(self, picked: range) -> Sequence[int]:
        if not picked:
            return ()
        first, last = int(self.locate(picked[0])), int(self.locate(picked[-1]))
        if picked.step == 1 or picked.step <= self.edge:
            return range(first, last + 1)
        if self.ends is None:  # at most one element of each block
            return [element // self.edge for element in picked]
        begins = np.concatenate(([0], self.ends))[first:last + 1]
        steps = np.maximum(-(-(begins - picked.start) // picked.step), 0)  # to the first element that is not before the block
        found: list[int] = (first + np.flatnonzero(picked.start + steps * picked.step < self.ends[first:last + 1])).tolist()
        return found


class _Places:
    """Grid coordinates that a selection touches: the product of those along each dimension, or a sorted list of them."""

    def __init__(self, axes: tuple[Sequence[int], ...], points: list[_Place] | None = None) -> None:
        self.axes, self.points = axes, points

    def __iter__(self) -> Iterator[_Place]:
        return itertools.product(*self.axes) if self.points is None else iter(self.points)

    def count(self) -> int:
        return math.prod(map(len, self.axes)) if self.points is None else len(self.points)

    def has(self, place: _Place) -> bool:
        if self.points is not None:
            return _find(self.points, place)
        return all(_find(axis, one) for axis, one in zip(self.axes, place))

    def within(self, first: _Place, last: _Place) -> Iterator[_Place]:
        """Those between two corners; the last one is outside."""
        if self.points is not None:
            below = self.points[bisect.bisect_left(self.points, first):bisect.bisect_left(self.points, last)]
            return (one for one in below if all(map(_is_between, first, one, last)))
        return itertools.product(*(axis[bisect.bisect_left(axis, low):bisect.bisect_left(axis, high)]
                                   for axis, low, high in zip(self.axes, first, last)))


def _find(values: Sequence[Any], value: Any) -> bool:
    at = bisect.bisect_left(values, value)
    return at < len(values) and values[at] == value


def _is_between(low: int, one: int, high: int) -> bool:
    return low <= one < high


class _Grid:
    """The blocks or the chunks of an array."""

    def __init__(self, array: Any, edges: Sequence[Any]) -> None:
        self.array = array
        self.axes = [_Axis(length, one) for length, one in zip(array.shape, edges)]

    def count(self) -> int:
        return math.prod(axis.n for axis in self.axes)

    def select(self, place: _Place) -> tuple[slice, ...]:
        return tuple(axis.span(one) for axis, one in zip(self.axes, place))

    def touch(self, key: Any) -> _Places:
        items = _indexing.split_key(self.array, key)
        if items.is_product:
            return _Places(tuple(axis.touch(item) for axis, item in zip(self.axes, items.items)))
        found = [axis.locate(item % max(axis.length, 1)) for axis, item in zip(self.axes, items.items)]
        return _Places((), [tuple(row) for row in np.unique(np.stack(found, axis=-1), axis=0).tolist()])


def _list_stored(array: Any, grid: _Grid, places: _Places) -> dict[_Place, tuple[str, int]] | None:
    """Key and size of the stored blocks, by their coordinates; None: to ask for each block costs less than to list all."""
    if places.count() * _PAGE < grid.count():
        return None
    try:
        return {tuple(place): (key, nbytes) for key, _, nbytes, *place in array._chunks(_core.ZARR_BLOCKS_STORED)}
    except UnsupportedError:  # the store cannot list
        return None


def iter_blocks(array: Any, key: Key, stored: bool | None) -> Iterator[Block]:
    grid = _Grid(array, array._edges)
    places = grid.touch(key)
    return _each_block(array, grid, places, stored)


def _each_block(array: Any, grid: _Grid, places: _Places, stored: bool | None) -> Iterator[Block]:
    known = _list_stored(array, grid, places)
    if known is None:
        array._recheck()
    for place in places if known is None or not stored else filter(places.has, sorted(known)):
        row = None if known is None else known.get(place)
        name = array._block_key(place) if row is None else row[0]
        size = row[1] if row is not None and row[1] != _UNKNOWN else None
        if size is None and (row is not None or known is None):
            size = array.store._stat(name)
        if stored is None or stored == (size is not None):
            yield Block(place, grid.select(place), name, 0, size or 0, size is not None)


def iter_chunks(array: Any, key: Key, stored: bool | None) -> Iterator[Block]:
    if not array._is_sharded or array._chunk_shape is None:
        return iter_blocks(array, key, stored)
    grid, shards = _Grid(array, array._chunk_shape), _Grid(array, array._edges)
    blocks = _each_block(array, shards, shards.touch(key), stored or None)
    return _each_chunk(array, grid, grid.touch(key), blocks, stored)


def _each_chunk(array: Any, grid: _Grid, places: _Places, blocks: Iterator[Block], stored: bool | None) -> Iterator[Block]:
    for block in blocks:
        listed = array._chunks(_core.ZARR_BLOCKS_STORED, block.coordinates) if block.is_stored else ()
        rows = {tuple(place): (offset, nbytes) for _, offset, nbytes, *place in listed}
        first = tuple(one.start // axis.edge for one, axis in zip(block.selection, grid.axes))
        last = tuple(-(-one.stop // axis.edge) for one, axis in zip(block.selection, grid.axes))
        for place in places.within(first, last):
            offset, nbytes = rows.get(place, (0, 0))
            if stored is None or stored == (place in rows):
                yield Block(place, grid.select(place), block.key, offset, nbytes, place in rows, True)
