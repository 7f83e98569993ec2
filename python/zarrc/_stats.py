"""How much of zarr-python's work the library did: `zarrc.pipeline_stats`."""
from __future__ import annotations

import os
import threading
from typing import Any

from . import _core

_MOST = 100  # causes: metadata of any text are among them
_LONGEST = 200  # characters of a cause, and of the name of an array
_OTHERS = "other causes"


class Stats:
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


STATS = Stats()
os.register_at_fork(after_in_child=STATS.in_child)
