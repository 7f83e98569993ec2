"""What zarr-python finds by the entry point `zarr.codec_pipeline`: the class of the pipeline.

zarr-python imports all such entry points when it opens its first array, also for users who never
chose zarrc, and it does not expect them to fail. So this is outside of the package zarrc: it imports
neither zarrc nor NumPy, and it works even if the extension of zarrc cannot load. zarrc is imported
by the first pipeline that is made.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self

    from zarrc._types import AsyncStore, NDBuffer, SupportsToDict

    class Base:
        def __getattr__(self, name: str) -> Any: ...
        @classmethod
        def from_codecs(cls, codecs: Iterable[SupportsToDict], **given: Any) -> Self: ...
        async def read(self, batch_info: Iterable[tuple[Any, ...]], out: NDBuffer, drop_axes: tuple[int, ...] = ()) -> Any: ...
        async def write(self, batch_info: Iterable[tuple[Any, ...]], value: NDBuffer, drop_axes: tuple[int, ...] = ()) -> None: ...
else:
    try:
        from zarr.core.codec_pipeline import BatchedCodecPipeline as Base
    except Exception:  # another zarr than we know: it fails when it is chosen, and not before
        Base = object


class ZarrcCodecPipeline(Base):
    """The codecs, and for files also the I/O, of zarr-python's arrays by zarrc.

    ``zarr.config.set({"codec_pipeline.path": "zarrc.ZarrcCodecPipeline"})`` or `zarrc.enable` chooses
    it. A batch of chunks is one call of the library. A batch that needs what zarrc lacks goes through
    zarr-python's own pipeline, from which this class derives; `zarrc.pipeline_stats` tells why. Failures are raised.
    """

    @classmethod
    def from_codecs(cls, codecs: Iterable[SupportsToDict], **given: Any) -> Self:
        """A pipeline of codecs alone, as zarr-python makes it for the chunks of its shards."""
        if Base is object:
            raise ImportError("zarrc does not know this version of zarr-python: it has no BatchedCodecPipeline")
        from zarrc import _pipeline  # noqa: F401 - fails here, where zarrc was chosen
        return super().from_codecs(list(codecs), **given)  # zarr-python 3.1.6 walks through them twice

    @classmethod
    def from_array_metadata_and_store(cls, array_metadata: SupportsToDict, store: AsyncStore) -> Self:
        """The pipeline of an array, made when zarr-python opens it."""
        from zarrc import _pipeline
        pipeline: Self = _pipeline.make_pipeline(cls, array_metadata)
        return pipeline

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_engine", "_quick", "_kept")}

    async def read(self, batch_info: Iterable[tuple[Any, ...]], out: NDBuffer, drop_axes: tuple[int, ...] = ()) -> Any:
        """Reads a batch into `out`, and tells of each chunk whether the store has it."""
        quick = self.__dict__.get("_quick")  # of a read before, that left the next one little to do
        begun = None if quick is None else quick.read(batch_info, out, drop_axes)
        if type(begun) is tuple:
            return begun
        from zarrc import _pipeline
        batch = batch_info if isinstance(batch_info, list) else list(batch_info)
        return await _pipeline.read(self, batch, out, drop_axes, super().read, begun)

    async def write(self, batch_info: Iterable[tuple[Any, ...]], value: NDBuffer, drop_axes: tuple[int, ...] = ()) -> None:
        """Writes a batch from `value`."""
        from zarrc import _pipeline
        await _pipeline.write(self, list(batch_info), value, drop_axes, super().write)

    def read_sync(self, batch_info: Iterable[tuple[Any, ...]], out: NDBuffer, drop_axes: tuple[int, ...] = (),
                  max_workers: int = 1) -> Any:
        """The same for a thread without an event loop, as zarr-python's fused pipeline has it."""
        from zarr.core.sync import sync
        return sync(self.read(batch_info, out, drop_axes))

    def write_sync(self, batch_info: Iterable[tuple[Any, ...]], value: NDBuffer, drop_axes: tuple[int, ...] = (),
                   max_workers: int = 1) -> None:
        """The same for a thread without an event loop."""
        from zarr.core.sync import sync
        sync(self.write(batch_info, value, drop_axes))


# zarr-python finds a pipeline by this name, and pickle by `zarrc.__getattr__`.
ZarrcCodecPipeline.__module__ = "zarrc"
