"""What calls did and would do, and how much of zarr-python's work the library did (`zarrc.pipeline_stats`)."""
from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from . import _core

_MOST = 100  # causes: metadata of any text are among them
_LONGEST = 200  # characters of a cause, and of the name of an array
_OTHERS = "other causes"


class Stats(dict[str, int]):
    """Counters of what calls did: ``z.read(key, stats=stats)`` adds to them.

    Each is an item and an attribute, by its name in `zarr_stats` of the library: ``stats.bytes_stored``. The repr shows those above 0.

    Examples
    --------
    >>> z = zarrc.create_array("x.zarr", data=np.arange(6, dtype="int8"), chunks=2, compressors=None)
    >>> stats = zarrc.Stats()
    >>> unused = z.read(slice(4), stats=stats)
    >>> stats.chunks_total, stats["bytes_stored"], stats.waves
    (2, 4, 1)
    """

    def __getattr__(self, name: str) -> int:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __repr__(self) -> str:
        counters = {name: n for name, n in self.items() if n}
        width = max(map(len, counters), default=0)
        return "\n".join(f"{name:<{width}} : {n}" for name, n in counters.items()) or "<Stats: nothing is counted>"


class Explanation(Mapping[str, Any]):
    """What a read or write would do, from `Array.explain`: the members of `zarr_explanation` of the library, as items and attributes.
    A count that is not known is None. ``notes`` tells what the package does besides. The repr is lines of text."""

    def __init__(self, notes: Sequence[str], text: str, members: str) -> None:
        self._text = "".join(f"{note}\n" for note in notes) + text
        self._members = {**json.loads(members), "notes": tuple(notes)}

    def __getitem__(self, name: str) -> Any:
        return self._members[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_members"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __repr__(self) -> str:
        return self._text.rstrip("\n")


class Summary:
    """Statistics of elements, from `Array.summary`. Over all dimensions they are numbers, else arrays of the dimensions that are kept.

    Attributes
    ----------
    count, missing, nan : int
        Elements that are neither missing nor NaN (or NaT), that are missing, and other ones that are NaN.
    min, max
        The least and the greatest element, in the array's data type. Without elements they are zero.
    sum
        The sum: exact for integers without weights, else a float.
    mean, std : float
        Mean and standard deviation (as ``np.std``, the divisor is the number of elements). NaN without elements, and for times.
    weight : float or None
        Sum of the weights.
    dims : tuple of int
        The dimensions of the result of the key that are kept.
    histogram : tuple of arrays or None
        Numbers of elements and edges of the bins, as ``np.histogram`` returns them.
    below, above : int
        Elements outside of the edges.
    quantiles : array or None
        As ``np.quantile`` computes them, for each of the given ones.
    is_sketch : bool
        Whether quantiles, and a histogram without given edges, are from a sketch: their rank errs by at most 1 %.
    """

    def __init__(self, found: dict[str, Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.dims = tuple(np.frombuffer(found["dims"], np.int32).tolist())
        kept = tuple(shape[d] for d in self.dims)

        def give(name: str, kind: Any) -> Any:
            value = np.frombuffer(found[name], kind).reshape(kept)[()] if name in found else None
            return value if kept or value is None or name in ("min", "max") else value.item()

        self.count, self.missing, self.nan = (give(name, np.uint64) for name in ("count", "missing", "nan"))
        self.min, self.max = give("min", dtype), give("max", dtype)
        self.sum, self.mean, self.std = (give(name, np.float64) for name in ("sum", "mean", "std"))
        self.weight = give("weight", np.float64)
        if "sum_high" in found:  # integers of Python have no largest
            high, low = give("sum_high", np.int64), give("sum_low", np.uint64)
            self.sum = high.astype(object) * 2**64 + low.astype(object) if kept else high * 2**64 + low
        self.histogram = (np.frombuffer(found["bins"], np.uint64), np.frombuffer(found["edges"])) if "bins" in found else None
        self.quantiles = np.frombuffer(found["quantiles"]) if "quantiles" in found else None
        self.below, self.above = found["n_below"], found["n_above"]
        self.is_sketch = bool(found["flags"] & 1)

    def __repr__(self) -> str:
        rows = [(name, value) for name, value in vars(self).items() if name not in ("below", "above", "dims") and value is not None]
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}} : {value}" for name, value in rows)


class _PipelineStats:
    """Counts batches and their chunks. A chunk is a block here: a shard in arrays with shards."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._batches = self._native = 0
        self._reasons: dict[str, dict[str, Any]] = {}

    def in_child(self) -> None:
        """After a fork: a thread of the parent may have held the lock."""
        self._lock = threading.Lock()

    def native(self, chunks: int) -> None:
        with self._lock:
            self._batches += 1
            self._native += chunks

    def fallback(self, chunks: int, cause: str, array: str) -> None:
        with self._lock:
            self._batches += 1
            cause = cause[:_LONGEST]
            if cause not in self._reasons and len(self._reasons) >= _MOST - 1:
                cause = _OTHERS
            row = self._reasons.setdefault(cause, {"chunks": 0, "example": array[:_LONGEST]})
            row["chunks"] += chunks

    def tell(self, reset: bool) -> dict[str, Any]:
        with self._lock:
            batches, chunks = _core.quick_counts(bool(reset))
            found = {"batches": self._batches + batches, "native_chunks": self._native + chunks,
                     "fallback_chunks": sum(row["chunks"] for row in self._reasons.values()),
                     "reasons": {cause: dict(row) for cause, row in self._reasons.items()}}
            if reset:
                self._batches = self._native = 0
                self._reasons.clear()
        return found


STATS = _PipelineStats()
os.register_at_fork(after_in_child=STATS.in_child)
