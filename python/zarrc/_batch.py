"""What a batch of zarr-python's pipeline selects, as one selection of the whole array.

A batch is what one indexer of zarr-python yields: the product of what each dimension selects in each
of its chunks, in C order, or points. So the first and the last item tell what slices select; lists
are gathered from the items along their dimension. No chunk is looked at alone.
"""
from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from . import _core

Item = tuple[Any, Any, Any, Any, bool]  # byte getter, ArraySpec, selection in the chunk, in the result, is whole
Ints = np.ndarray[Any, Any]


class Refusal(Exception):
    """zarrc lacks what this batch needs; the text is the cause in `zarrc.pipeline_stats`. Raised only before a byte of a chunk
    is read or written."""


class Grid:
    """Where the chunks of an array begin, along each dimension."""

    def __init__(self, edges: tuple[Any, ...]) -> None:
        self.ndim = len(edges)
        self.is_regular = all(isinstance(edge, int) for edge in edges)
        self.chunk = edges if self.is_regular else ()
        self._edges: list[Any] = [edge if isinstance(edge, int) else np.asarray(edge, np.int64) for edge in edges]
        self._ends = [None if isinstance(edge, int) else np.cumsum(edge) for edge in self._edges]

    def count_elements(self) -> int:
        """How many elements the largest chunk has."""
        return math.prod(edge if isinstance(edge, int) else int(edge.max(initial=0)) for edge in self._edges)

    def begin(self, d: int, place: int) -> int:
        ends = self._ends[d]
        if ends is None:
            return place * int(self._edges[d])
        return int(ends[place - 1]) if place else 0

    def span(self, d: int, place: int) -> tuple[int, int]:
        """Where a chunk begins, and its length."""
        if self._ends[d] is None:
            edge = int(self._edges[d])
            return place * edge, edge
        return self.begin(d, place), self.edge(d, place)

    def begins(self, d: int, places: Ints) -> Ints:
        ends = self._ends[d]
        if ends is None:
            return places * int(self._edges[d])
        return np.concatenate(([0], ends))[places]

    def has_list(self, d: int) -> bool:
        """Whether the lengths of the chunks are a list, in which `grown` may have put 1 for a chunk that no item meets."""
        return self._ends[d] is not None

    def edge(self, d: int, place: int) -> int:
        if self._ends[d] is None:
            return int(self._edges[d])
        edges = self._edges[d]
        return int(edges[place]) if place < len(edges) else -1  # -1: the array grew

    def grow(self, batch: list[Item], places: Ints, shape: list[int]) -> tuple[list[Any], list[int] | None]:
        """The edges and a shape that has all places of a batch, if the given one lacks some; else None. A shape may also end
        before the edges do. The batch tells the lengths of its chunks. A new chunk that it does not meet counts as one element: what lies in the others is
        found by their places, wherever they begin. So a distance between elements of two chunks says nothing if a
        chunk between them is not met."""
        edges: list[Any] = [edge if isinstance(edge, int) else [int(n) for n in edge] for edge in self._edges]
        longer = list(shape)
        for d, (one, top) in enumerate(zip(edges, places.max(axis=0).tolist())):
            if isinstance(one, int):
                longer[d] = max(shape[d], (top + 1) * one if top * one >= shape[d] else 0)
            elif top >= (known := len(one)):
                one.extend([1] * (top + 1 - known))
                for item, place in zip(batch, places[:, d].tolist()):
                    if place >= known:
                        one[place] = int(item[1].shape[d])
                longer[d] = sum(one)
            elif sum(one[:top]) >= shape[d]:
                longer[d] = sum(one[:top + 1])
        return edges, None if longer == list(shape) else longer

    def count_met(self, d: int, start: int, count: int) -> int:
        """How many chunks of a list of lengths meet elements that follow each other."""
        ends = self._ends[d]
        assert ends is not None
        first, last = np.searchsorted(ends, (start, start + count - 1), side="right")
        return int(last - first) + 1


class SelectedPart(NamedTuple):
    """A selection of the array, and the part of the result that it fills."""

    key: tuple[Any, ...] | None  # for Array._select; None: points
    points: Ints | None
    shape: tuple[int, ...]
    part: tuple[slice, ...] | None  # None: the whole result


def _flat(chosen: Any) -> Ints:
    """The indexes that a dimension of a chunk selects, from what an indexer made of them."""
    if isinstance(chosen, slice):
        if chosen.stop is None or (chosen.step or 1) < 1:
            raise Refusal("selection of an unknown kind")
        return np.arange(chosen.start or 0, chosen.stop, chosen.step or 1)
    flat = np.asarray(chosen).ravel()
    return flat.nonzero()[0] if flat.dtype == bool else flat.astype(np.int64, copy=False)


def _as_key(indexes: Ints) -> Any:
    """A slice if the indexes are one, because it is faster."""
    if indexes.size > 1:
        step = int(indexes[1] - indexes[0])
        if step > 0 and (np.diff(indexes) == step).all():
            return slice(int(indexes[0]), int(indexes[-1]) + 1, step)
    return np.ascontiguousarray(indexes, np.int64)


class Reader:
    """Turns one batch into a selection. `places`: the grid coordinates of all items, or of the first and
    the last one."""

    def __init__(self, grid: Grid, batch: list[Item], places: Ints, drop_axes: tuple[int, ...]) -> None:
        self._grid, self._batch, self._places, self._drop = grid, batch, places, drop_axes

    def choose(self) -> SelectedPart:
        first = self._batch[0]
        if not isinstance(first[2], tuple) or len(first[2]) != self._grid.ndim:
            raise Refusal("selection of an unknown kind")
        try:
            return self._product() if isinstance(first[3], tuple) else self._points()
        except (AttributeError, IndexError, OverflowError, TypeError, ValueError):
            raise Refusal("selection of an unknown kind") from None

    def _product(self) -> SelectedPart:
        first = self._batch[0]
        key: list[Any] = []
        shape: list[int] = []
        part: list[slice] = []
        n_chunks = 1
        for d, inside in enumerate(first[2]):
            if isinstance(inside, (int, np.integer)) or d in self._drop:
                key.append(int(_flat([inside] if isinstance(inside, (int, np.integer)) else inside)[0])
                           + self._grid.begin(d, int(self._places[0][d])))
                continue
            if len(shape) >= len(first[3]):
                raise Refusal("selection of an unknown kind")
            jumps = isinstance(inside, slice) and (inside.step or 1) > 1 and self._grid.has_list(d)
            if isinstance(inside, slice) and isinstance(first[3][len(shape)], slice) and not jumps:
                one, count, n, where = self._slice(d, len(shape))
            else:
                one, count, n, where = self._list(d, len(shape))
            key.append(one)
            shape.append(count)
            part.append(where)
            n_chunks *= n
        if n_chunks != len(self._batch) or len(shape) != len(first[3]):
            raise Refusal("batch of several selections")
        whole = all(where.start == 0 for where in part)
        return SelectedPart(tuple(key), None, tuple(shape), None if whole else tuple(part))

    def _slice(self, d: int, axis: int) -> tuple[Any, int, int, slice]:
        """By the rule that a Quick follows, too (`python/ext/batch.c`)."""
        first, last = self._batch[0], self._batch[-1]
        found = _core.select_slice(first[2][d], first[3][axis], last[3][axis], *self._grid.span(d, int(self._places[0][d])))
        if found is None:
            raise Refusal("selection of an unknown kind")
        start, stop, step, count, begin, n = found
        if self._grid.has_list(d):
            n = self._grid.count_met(d, start, count)
        return slice(start, stop, step), count, n, slice(begin, begin + count)

    def _list(self, d: int, axis: int) -> tuple[Any, int, int, slice]:
        """From the items whose place differs from the first one's in this dimension only."""
        if len(self._places) != len(self._batch):
            raise Refusal("selection of an unknown kind")
        others = [i for i in range(self._grid.ndim) if i != d]
        rows = np.nonzero((self._places[:, others] == self._places[0, others]).all(axis=1))[0]
        parts = [_flat(self._batch[i][2][d]) for i in rows]
        begins = self._grid.begins(d, self._places[rows, d])
        count = sum(one.size for one in parts)
        indexes = np.full(count, -1, np.int64)
        for i, one, begin in zip(rows, parts, begins):
            where = self._batch[i][3][axis]
            indexes[where if isinstance(where, slice) else _flat(where)] = one + begin
        if count == 0 or (indexes < 0).any():
            raise Refusal("selection of an unknown kind")
        return _as_key(indexes), count, len(rows), slice(0, count)

    def _points(self) -> SelectedPart:
        if self._grid.ndim == 0 or len(self._places) != len(self._batch):
            raise Refusal("selection of an unknown kind")
        count = sum(item[2][0].size for item in self._batch)
        points = np.full((count, self._grid.ndim), -1, np.int64)
        for item, place in zip(self._batch, self._places):
            for d in range(self._grid.ndim):
                points[item[3], d] = item[2][d] + self._grid.begin(d, int(place[d]))
        if (points < 0).any():
            raise Refusal("selection of an unknown kind")
        return SelectedPart(None, points, (count,), None)


def needs_places(batch: list[Item]) -> bool:
    """Whether the places of all items are needed, not only of the first and the last one."""
    first = batch[0]
    if not isinstance(first[2], tuple) or not isinstance(first[3], tuple):
        return True
    return not all(isinstance(one, (int, np.integer, slice)) for one in (*first[2], *first[3]))


def find_ends(grid: Grid, batch: list[Item], last: Ints) -> tuple[int, ...] | None:
    """The shape that zarr-python has in mind if a chunk at the end of the array is written whole: its
    elements beyond that shape become the fill value. None: there is no such chunk."""
    found: dict[int, int] = {}
    for d, inside in enumerate(batch[-1][2]):
        if isinstance(inside, (int, np.integer)):
            stop = int(inside) + 1
        elif isinstance(inside, slice) and inside.stop is not None and (inside.step or 1) == 1:
            stop = inside.stop
        else:
            return None  # chunks that a list meets are never whole
        edge = grid.edge(d, int(last[d]))  # those of other chunks may be shorter
        if 0 <= stop < edge and any(item[4] and _stops(item[2][d]) < item[1].shape[d] for item in batch):
            found[d] = grid.begin(d, int(last[d])) + stop
    if not found:
        return None
    return tuple(found.get(d, grid.begin(d, int(last[d])) + grid.edge(d, int(last[d]))) for d in range(grid.ndim))


def _stops(inside: Any) -> int:
    return int(inside.stop if isinstance(inside, slice) else inside + 1)


def is_part(item: Item, reads_edges: bool) -> bool:
    """Whether zarr-python reads the old value of a chunk before it writes this item. `reads_edges`: also if only elements
    beyond the end of the array are left out."""
    return not item[4] or reads_edges and any(_stops(one) < edge for one, edge in zip(item[2], item[1].shape))
