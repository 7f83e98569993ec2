"""Switching zarr-python to the pipeline of zarrc, and what that pipeline did."""
from __future__ import annotations

from typing import Any

from ._stats import STATS

_SETTING = "codec_pipeline.path"
_NAME = "zarrc.ZarrcCodecPipeline"
_BUFFER = "ndbuffer"
_BUFFER_NAME = "zarrc.ZarrcNDBuffer"


class EnabledScope:
    """What `zarrc.enable` returns; as a context manager it takes the change of the pipeline back. The setting `ndbuffer`
    stays: a read of zarr-python's own pipeline in another thread, of a part of a shard, would fail if it changed meanwhile."""

    def __init__(self, before: str) -> None:
        self._before = before

    def __enter__(self) -> EnabledScope:
        return self

    def __exit__(self, *unused: object) -> None:
        import zarr
        zarr.config.set({_SETTING: self._before})


def _default(section: str) -> Any:
    """zarr-python's own setting."""
    from zarr.core.config import config
    return next(one[section] for one in config.defaults if section in one)


def enable() -> EnabledScope:
    """Makes zarr-python use zarrc for arrays that are opened from now on, or only inside the block when used as a context
    manager. Arrays that a read returns are in memory that zarrc keeps for the next read, unless the program has changed
    zarr-python's setting ``ndbuffer``."""
    try:
        import zarr
    except ModuleNotFoundError as problem:
        if problem.name != "zarr":
            raise
        raise ModuleNotFoundError("zarrc.enable() needs zarr-python, which is not installed: pip install 'zarr>=3.1'. "
                                  "zarrc's own arrays need no zarr-python", name="zarr") from None
    from zarr.registry import register_ndbuffer, register_pipeline

    from zarrc_hook.buffer import ZarrcNDBuffer
    from zarrc_hook.pipeline import ZarrcCodecPipeline

    pipeline: Any = ZarrcCodecPipeline
    buffer: Any = ZarrcNDBuffer
    register_pipeline(pipeline)
    register_ndbuffer(buffer)
    before = EnabledScope(zarr.config.get(_SETTING))
    zarr.config.set({_SETTING: _NAME})
    if zarr.config.get(_BUFFER) == _default(_BUFFER):
        zarr.config.set({_BUFFER: _BUFFER_NAME})
    return before


def disable() -> None:
    """Lets arrays that zarr-python opens from now on use its own default pipeline."""
    import zarr
    if zarr.config.get(_SETTING) == _NAME:
        zarr.config.set({_SETTING: _default("codec_pipeline")["path"]})
    if zarr.config.get(_BUFFER) == _BUFFER_NAME:
        zarr.config.set({_BUFFER: _default(_BUFFER)})


def pipeline_stats(*, reset: bool = False) -> dict[str, Any]:
    """What pipelines did in this process: ``batches``; ``native_chunks``, which the library read or
    wrote; ``fallback_chunks``, which zarr-python's own pipeline did; and ``reasons``, the number of these chunks and one
    array as an example for each of at most 100 causes, such as a codec that zarrc lacks. ``reset=True`` sets all counts to zero."""
    return STATS.tell(reset)
