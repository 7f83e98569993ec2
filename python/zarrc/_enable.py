"""Switching zarr-python to the pipeline of zarrc, and what that pipeline did."""
from __future__ import annotations

from typing import Any

from ._stats import STATS

_SETTING = "codec_pipeline.path"
_NAME = "zarrc.ZarrcCodecPipeline"


class Enabled:
    """What `zarrc.enable` returns; as a context manager it takes the change back."""

    def __init__(self, before: str) -> None:
        self._before = before

    def __enter__(self) -> Enabled:
        return self

    def __exit__(self, *unused: object) -> None:
        import zarr
        zarr.config.set({_SETTING: self._before})


def enable() -> Enabled:
    """Lets arrays that zarr-python opens from now on be read and written by zarrc. In a ``with``
    statement: those that are opened in it."""
    import zarr
    from zarr.registry import register_pipeline

    from . import ZarrcCodecPipeline
    pipeline: Any = ZarrcCodecPipeline
    register_pipeline(pipeline)
    before = zarr.config.get(_SETTING)
    zarr.config.set({_SETTING: _NAME})
    return Enabled(before)


def disable() -> None:
    """Lets arrays that zarr-python opens from now on use its own default pipeline."""
    import zarr
    from zarr.core.config import config
    if zarr.config.get(_SETTING) == _NAME:
        zarr.config.set({_SETTING: next(one["codec_pipeline"]["path"] for one in config.defaults if "codec_pipeline" in one)})


def pipeline_stats(*, reset: bool = False) -> dict[str, Any]:
    """What pipelines did in this process: ``batches``; ``native_chunks``, which the library read or
    wrote; ``fallback_chunks``, which zarr-python's own pipeline did; and ``reasons``, these chunks by
    the reason. ``reset=True`` begins to count anew."""
    return STATS.tell(reset)
