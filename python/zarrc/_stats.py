"""What calls did and would do, and how much of zarr-python's work the library did (`zarrc.pipeline_stats`)."""
from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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
