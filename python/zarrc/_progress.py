"""`progress=`: a function, a bar of tqdm, or True for a bar of our own making."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _Bar:
    """Tells a bar of tqdm how far a request is."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def __call__(self, done: int, total: int) -> None:
        if self._bar.total != total:
            self._bar.total = total
        self._bar.update(done - self._bar.n)


@contextmanager
def reporter(progress: Any) -> Iterator[dict[str, Any]]:
    """Options of a request that reports."""
    if progress is None or progress is False:
        yield {}
    elif progress is True:
        try:
            from tqdm.auto import tqdm  # type: ignore[import-untyped,import-not-found,unused-ignore]
        except ImportError:
            raise ImportError("progress=True shows a bar of tqdm: pip install tqdm, or give a function of (done, total)") from None
        with tqdm(unit="chunk") as bar:
            yield {"progress": _Bar(bar)}
    elif hasattr(progress, "update") and hasattr(progress, "total"):
        yield {"progress": _Bar(progress)}
    elif callable(progress):
        yield {"progress": progress}
    else:
        raise TypeError(f"progress: {progress!r} is not a function, a bar of tqdm or True")
