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
    """Makes zarr-python use zarrc for arrays that are opened afterwards, or only inside the block when used as a context manager.

    Arrays that a read returns are in memory that zarrc keeps for the next read, unless the program has changed zarr-python's
    setting ``ndbuffer``. Data types and codecs that zarr-python lacks are registered, and stay so.

    Returns
    -------
    EnabledScope
        A context manager, whose exit restores the pipeline. A program that does not use it calls `disable`.

    Raises
    ------
    ModuleNotFoundError
        zarr-python is not installed.

    Examples
    --------
    >>> import zarr
    >>> with zarrc.enable():
    ...     z = zarr.create_array("x.zarr", shape=(100, 100), chunks=(10, 10), dtype="float32")
    ...     z[...] = 1
    >>> float(z[5, 5])
    1.0
    """
    try:
        import zarr
    except ModuleNotFoundError as problem:
        if problem.name != "zarr":
            raise
        raise ModuleNotFoundError("zarrc.enable() needs zarr-python, which is not installed: pip install 'zarr>=3.1'. "
                                  "zarrc's own arrays need no zarr-python", name="zarr") from None
    from zarr.registry import register_ndbuffer, register_pipeline

    from zarrc_hook import codecs, data_types
    from zarrc_hook.buffer import ZarrcNDBuffer
    from zarrc_hook.pipeline import ZarrcCodecPipeline

    pipeline: Any = ZarrcCodecPipeline
    buffer: Any = ZarrcNDBuffer
    register_pipeline(pipeline)
    register_ndbuffer(buffer)
    codecs.register()
    data_types.register()
    before = EnabledScope(zarr.config.get(_SETTING))
    zarr.config.set({_SETTING: _NAME})
    if zarr.config.get(_BUFFER) == _default(_BUFFER):
        zarr.config.set({_BUFFER: _BUFFER_NAME})
    return before


def disable() -> None:
    """Makes zarr-python use its own default pipeline for arrays that are opened afterwards.

    Settings of zarr-python that name another pipeline or buffer stay.

    Raises
    ------
    ModuleNotFoundError
        zarr-python is not installed.

    Examples
    --------
    >>> import zarr
    >>> scope = zarrc.enable()
    >>> zarrc.disable()
    >>> zarr.config.get("codec_pipeline.path").startswith("zarrc")
    False
    """
    import zarr
    if zarr.config.get(_SETTING) == _NAME:
        zarr.config.set({_SETTING: _default("codec_pipeline")["path"]})
    if zarr.config.get(_BUFFER) == _BUFFER_NAME:
        zarr.config.set({_BUFFER: _default(_BUFFER)})


def pipeline_stats(*, reset: bool = False) -> dict[str, Any]:
    """Counts what the pipelines of `enable` did in this process.

    Parameters
    ----------
    reset : bool, default False
        Sets all counts to zero afterwards.

    Returns
    -------
    dict
        ``batches``; ``native_chunks``, which the library read or wrote; ``fallback_chunks``, which zarr-python's own pipeline
        did; and ``reasons``. For each of at most 100 causes of a fallback, such as a codec that zarrc lacks, ``reasons`` has the
        number of chunks and one array as an example.

    Examples
    --------
    >>> import zarr
    >>> unused = zarrc.pipeline_stats(reset=True)
    >>> with zarrc.enable():
    ...     zarr.create_array({}, shape=4, chunks=2, dtype="int8")[...] = 1
    >>> zarrc.pipeline_stats()
    {'batches': 1, 'native_chunks': 2, 'fallback_chunks': 0, 'reasons': {}}
    """
    return STATS.tell(reset)
