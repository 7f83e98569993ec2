"""The classes that codecs, data types and stores in Python derive from: `zarrc.plugins` shows them."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from . import _dtypes


class ChunkSpec(NamedTuple):
    """A chunk before or after a codec: an array; or bytes, whose shape and data type are None."""

    shape: tuple[int, ...] | None
    dtype: np.dtype[Any] | None
    n_bytes: int
    """The length in bytes."""
    is_exact: bool
    """Whether every chunk has this length; else none is longer."""
    fill_value: Any = None


class Codec:
    """What `BytesCodec`, `ArrayCodec` and `Serializer` have in common. An object is made for each
    configuration, and may be used for many arrays."""

    name: ClassVar[str]
    """The name in metadata: of v3, and the `id` of v2."""
    zarr_formats: ClassVar[tuple[int, ...]] = (2, 3)
    """The formats of arrays that may have the codec. In others, opening and creating fail."""
    is_lossy: ClassVar[bool] = False
    """Whether decoding can give other elements than those that were encoded."""

    def __init__(self, **configuration: object) -> None:
        """Takes the configuration of the metadata, and raises what is wrong with it."""
        if configuration:
            raise TypeError(f"the codec {self.name} has no member {', '.join(configuration)}")

    def configuration(self) -> dict[str, Any]:
        """The configuration as metadata should have it. A codec whose configuration has members defines it."""
        return {}

    def encode(self, chunk: Any, spec: ChunkSpec) -> Any:
        """Encodes a chunk that is as `spec` says."""
        raise NotImplementedError(f"the codec {self.name} cannot encode")

    def decode(self, chunk: Any, spec: ChunkSpec) -> Any:
        """Decodes a chunk; the result is as `spec` says."""
        raise NotImplementedError(f"the codec {self.name} cannot decode")

    def encode_batch(self, chunks: Sequence[Any], spec: ChunkSpec) -> list[Any]:
        """Encodes the chunks of a wave. A result that is an exception is the failure of its chunk."""
        return [_one(self.encode, chunk, spec) for chunk in chunks]

    def decode_batch(self, chunks: Sequence[Any], spec: ChunkSpec) -> list[Any]:
        """Decodes the chunks of a wave."""
        return [_one(self.decode, chunk, spec) for chunk in chunks]


def _one(function: Any, chunk: Any, spec: ChunkSpec) -> Any:
    try:
        return function(chunk, spec)
    except Exception as problem:
        return problem


class BytesCodec(Codec):
    """Encodes bytes as bytes, such as a compressor."""

    def encoded_bytes(self, spec: ChunkSpec) -> int | None:
        """The most bytes that encoding gives; None: there is no bound."""
        return spec.n_bytes + spec.n_bytes // 8 + (1 << 16)


class Serializer(Codec):
    """Encodes an array of NumPy as bytes."""

    def encoded_bytes(self, spec: ChunkSpec) -> int | None:
        """The most bytes that encoding gives; None: there is no bound."""
        return spec.n_bytes + spec.n_bytes // 8 + (1 << 16)


class ArrayCodec(Codec):
    """Encodes an array of NumPy as another array."""

    is_elementwise: ClassVar[bool] = False
    """Whether each element is computed by itself, and the shape stays. Such a codec may stand before
    shards that are read in parts."""

    def resolve(self, spec: ChunkSpec) -> ChunkSpec:
        """The array that encoding gives: shape, data type and fill value may differ."""
        return spec


class DataType:
    """A data type: elements of a data type of NumPy, under a name of their own."""

    name: ClassVar[str]
    """The name in v3 metadata."""
    dtype: ClassVar[Any]
    """The elements in memory: a data type of a fixed size, such as ``np.dtype("i8")``; or `str` or `bytes` for elements of
    any length."""
    configuration: ClassVar[dict[str, Any]] = {}
    """The configuration in the v3 metadata of new arrays. What an array has is kept, and does not change its elements."""
    v2_name: ClassVar[str | None] = None
    """The name in v2 metadata, whose elements are little-endian. None: format 2 does not have the type."""
    item_bits: ClassVar[int | None] = None
    """How many bits of an element are significant: 4 if the codec `packbits` shall store two of them in a byte. None: all."""

    def fill_from_json(self, value: Any, zarr_format: int) -> Any:
        """An element of the fill value in metadata. It raises ValueError for what is none. By default
        metadata spell it as they do for the data type of NumPy."""
        return _dtypes.parse_element(self.dtype, value)

    def fill_to_json(self, element: Any, zarr_format: int) -> Any:
        """The fill value in metadata of an element, which is a scalar of NumPy, a `str` or `bytes`."""
        return _dtypes.spell_element(self.dtype, element)


class Store:
    """A store: keys, and bytes under them. All methods are coroutine functions, or none is.

    An object of such a class is a store for every call of zarrc. If the class has a `scheme` and is
    registered, URLs of the scheme are opened by `from_url`.
    """

    scheme: ClassVar[str | None] = None
    read_only: bool = False
    parallel: ClassVar[int] = 16
    """The most calls in flight at once."""

    @classmethod
    def from_url(cls, url: str, **storage_options: Any) -> Any:
        """The store of a URL."""
        raise NotImplementedError(f"{cls.__qualname__} opens no URLs")

    def get(self, key: str) -> Any:
        """The bytes under a key, or None."""
        raise NotImplementedError

    def get_part(self, key: str, start: int | None, length: int | None) -> Any:
        """A part of the bytes under a key, or None if there is no such key. A start of None means the
        last bytes, a length of None the rest. Such a call is optional: parts are else cut of `get`."""
        raise NotImplementedError

    def getsize(self, key: str) -> Any:
        """How many bytes are under a key, or None. It is optional, too."""
        raise NotImplementedError

    def set(self, key: str, value: bytes) -> Any:
        """Writes a value in one step."""
        raise NotImplementedError

    def delete(self, key: str) -> Any:
        """Removes a key, if it is there."""
        raise NotImplementedError

    def list_prefix(self, prefix: str) -> Any:
        """The keys that begin with a prefix: any iterable of texts, or a coroutine that gives one."""
        raise NotImplementedError

    def flush(self) -> Any:
        """Makes what was written durable. It is optional. Each append, and each resize that clears elements, calls it, too."""
        raise NotImplementedError
