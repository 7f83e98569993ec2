"""What zarr-python's arrays will need of zarrc when they hand over whole selections.

zarr-python's roadmap replaces codec pipelines by engines (https://github.com/zarr-developers/zarr-python/pull/4064). No release has
them, and the protocol may change. The one below has the same calls; this module is all that an adapter to the final one will use, and it
takes from zarr-python only the objects that its arrays hand over: stores, metadata, buffers.
"""
from __future__ import annotations

import asyncio
from typing import Any, Protocol

from . import _core, _indexing, _places
from ._array import Array
from ._array_config import ArrayConfig


class Request(Protocol):
    """A selection as the user gave it."""

    @property
    def kind(self) -> str:
        """ "basic", "orthogonal", "coordinate", "mask" or "block"."""

    @property
    def selection(self) -> Any: ...


class ArrayEngine(Protocol):
    """Reads and writes the elements of one array."""

    def read_selection(self, request: Request, *, prototype: Any = None, out: Any = None, fields: Any = None) -> Any:
        """The elements, in new memory of the prototype's kind, or in `out`: a buffer of zarr-python or any memory that zarrc fills."""

    def write_selection(self, request: Request, value: Any, *, prototype: Any = None, fields: Any = None) -> None: ...

    async def read_selection_async(self, request: Request, *, prototype: Any = None, out: Any = None, fields: Any = None) -> Any: ...

    async def write_selection_async(self, request: Request, value: Any, *, prototype: Any = None, fields: Any = None) -> None: ...

    def with_metadata(self, metadata: Any) -> ArrayEngine:
        """The engine of the same array after a change, such as a resize."""


class HierarchyEngine(Protocol):
    """Makes engines for the arrays of a store."""

    def array_engine(self, path: str, metadata: Any, config: Any = None) -> ArrayEngine: ...


_SELECT = {"basic": _indexing.basic, "orthogonal": _indexing.orthogonal, "coordinate": _indexing.points, "mask": _indexing.mask,
           "block": _indexing.blocks}


class ZarrcHierarchyEngine:
    """Engines for the arrays of a store: any that `zarrc.open` takes, and those of zarr-python."""

    def __init__(self, store: Any) -> None:
        self._place = _places.open_place(store, mode="r" if getattr(store, "read_only", False) else "r+")

    def array_engine(self, path: str, metadata: Any, config: Any = None) -> ZarrcArrayEngine:
        """`metadata`: the object of zarr-python, which counts, not the stored document."""
        return ZarrcArrayEngine(self._place.store, _places.join_path(self._place.path, path), metadata, ArrayConfig.of(config))


class ZarrcArrayEngine:
    """The engine of one array. It raises UnsupportedError at once for an array that zarrc does not read."""

    def __init__(self, store: Any, path: str, metadata: Any, config: ArrayConfig) -> None:
        from ._pipeline_engine import document_text
        self._array = _core.open_document(Array, store, path, document_text(metadata), None, config.options())._configure(config)

    def with_metadata(self, metadata: Any) -> ZarrcArrayEngine:
        return ZarrcArrayEngine(self._array.store, self._array.path, metadata, self._array._config)

    def read_selection(self, request: Request, *, prototype: Any = None, out: Any = None, fields: Any = None) -> Any:
        read = getattr(self._array, f"get_{request.kind}_selection")
        return read(request.selection, out=out, fields=fields, like=_find_like(prototype))

    def write_selection(self, request: Request, value: Any, *, prototype: Any = None, fields: Any = None) -> None:
        getattr(self._array, f"set_{request.kind}_selection")(request.selection, value, fields=fields)

    async def read_selection_async(self, request: Request, *, prototype: Any = None, out: Any = None, fields: Any = None) -> Any:
        if fields:
            return await asyncio.to_thread(self.read_selection, request, prototype=prototype, out=out, fields=fields)
        return await self._array.async_array._get(_SELECT[request.kind], request.selection, out, _find_like(prototype))

    async def write_selection_async(self, request: Request, value: Any, *, prototype: Any = None, fields: Any = None) -> None:
        if fields:
            await asyncio.to_thread(self.write_selection, request, value, fields=fields)
        else:
            await self._array.async_array._set(_SELECT[request.kind], request.selection, value)


def _find_like(prototype: Any) -> str | None:
    """Whose arrays a read returns: CuPy's for the prototype of zarr-python's GPU mode."""
    return "cupy" if prototype is not None and prototype.nd_buffer.__module__.endswith(".gpu") else None
