"""Codecs, data types, stores and implementations of codecs that are written in Python, and plug-ins of other packages.

Derive from one of the classes here and register the class::

    import zlib
    from zarrc import plugins

    @plugins.register
    class Zlib(plugins.BytesCodec):
        name = "acme.zlib"

        def encode(self, chunk, spec):
            return zlib.compress(chunk)

        def decode(self, chunk, spec):
            return zlib.decompress(chunk)

    zarrc.create_array("x.zarr", shape=100, dtype="i4", compressors={"name": "acme.zlib"})

A package does it for all its users by an entry point of the group ``zarrc.plugins``, whose value is
such a class, a list of them, the path of a plug-in library, or a function that returns one of these.

The library calls a plug-in on one thread of Python, with all chunks of a wave at once. Bytes are
copied on the way in and out, so that a plug-in may keep them. Only an `Implementation` gets the memory
itself, and must not keep it. A plug-in must not call zarrc.
"""
from __future__ import annotations

from typing import TypeVar

from . import _plugins
from ._core import ChunkMemory
from ._implementations import Batch, Implementation
from ._plugin_classes import ArrayCodec, BytesCodec, ChunkSpec, Codec, DataType, Serializer, Store

__all__ = ["ArrayCodec", "Batch", "BytesCodec", "ChunkMemory", "ChunkSpec", "Codec", "DataType", "Implementation", "Serializer", "Store", "register"]

_T = TypeVar("_T")


def register(plugin: _T) -> _T:
    """Registers a class of codecs, implementations, data types or stores, a list of them, or the path of a plug-in
    library. Arrays that are opened afterwards know it, unless they are opened from a Group, a Store or a
    ``memory://name`` that was opened before. It returns its argument: use it as a decorator, too."""
    for one in _plugins.things(plugin):
        _plugins.registry.add(one)
    return plugin
