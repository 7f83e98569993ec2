"""How many chunks lie along a dimension of a grid, and how long each of them is."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MOST_SIZES = 2**24
"""Lengths of chunks in one tuple, and blocks of a dask array."""


def _runs(edges: Any) -> Iterator[tuple[int, int]]:
    """(edge, how often) of a dimension of a grid; [3, 2] in a list means two edges of 3."""
    for edge in edges:
        yield (edge, 1) if isinstance(edge, int) else tuple(edge)


def count_edges(length: int, edges: Any) -> int:
    """How many chunks there are along a dimension."""
    if isinstance(edges, int):
        return -(-length // edges) if edges else 0
    count = 0
    for edge, times in _runs(edges):
        times = min(times, -(-length // edge) if edge else 0)
        count += times
        length -= min(length, edge * times)
    return count


def list_edges(length: int, edges: Any) -> Iterator[int]:
    """The lengths of chunks along a dimension, of which the last one is cut at the end of the array."""
    for edge, times in ((edges, count_edges(length, edges)),) if isinstance(edges, int) else _runs(edges):
        for _ in range(times):
            if length <= 0 or edge <= 0:
                break
            yield min(edge, length)
            length -= edge
