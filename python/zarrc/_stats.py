"""How much of zarr-python's work the library did: `zarrc.pipeline_stats`."""
from __future__ import annotations

import threading
from collections import Counter
from typing import Any

from . import _core

_MOST = 100  # reasons: metadata of any text are among them


class Stats:
    """Counts batches and their chunks. A chunk is the unit of writing, a shard in sharded arrays."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._batches = self._native = 0
        self._reasons: Counter[str] = Counter()

    def in_child(self) -> None:
        """After a fork: a thread of the parent may have held the lock."""
        self._lock = threading.Lock()

    def native(self, chunks: int) -> None:
        with self._lock:
            self._batches += 1
            self._native += chunks

    def fallback(self, chunks: int, reason: str) -> None:
        with self._lock:
            self._batches += 1
            self._reasons[reason if reason in self._reasons or len(self._reasons) < _MOST else "another reason"] += chunks

    def tell(self, reset: bool) -> dict[str, Any]:
        with self._lock:
            batches, chunks = _core.quick_counts(bool(reset))
            found = {"batches": self._batches + batches, "native_chunks": self._native + chunks,
                     "fallback_chunks": self._reasons.total(), "reasons": dict(self._reasons)}
            if reset:
                self._batches = self._native = 0
                self._reasons.clear()
        return found


STATS = Stats()
