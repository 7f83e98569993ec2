"""The keyword arguments that public functions hand on, for `Unpack`. Only type checkers import this module.

A function's own parameters may not be in the class of its ``**kwargs``, so the classes differ by them."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from ._types import ArrayLike, ChunksLike, CodecLike, CodecsLike, ConfigLike, DimensionNames, DTypeLike, FillValue, KeyEncoding, LikeLike, ShapeLike, StoreLike


class Old(TypedDict, total=False):
    """Arguments of old versions of zarr-python, which are refused unless they are None, except for `chunk_store`."""

    synchronizer: None
    chunk_store: StoreLike
    cache_attrs: None
    cache_metadata: None
    object_codec: None
    zarr_version: None


class Controls(TypedDict, total=False):
    """How one call reads or writes: see `_settings.CONTROLS`."""

    wave_bytes: int | str | None
    memory_bytes: int | str | None
    pipeline: str | None
    codec_preference: str | None
    trust: str | None
    coalesce_gap: int | str | None
    coalesce_bytes: int | str | None


class _Where(TypedDict, total=False):
    device: str | None
    like: LikeLike
    meta_array: LikeLike


class OpenConsolidated(Old, _Where, total=False):
    mode: str | None
    path: str | None
    zarr_format: int | None
    storage_options: dict[str, Any] | None
    attributes: Mapping[str, Any] | None


# ---- create_array ----


class _Codecs(TypedDict, total=False):
    shards: ChunksLike
    compressors: CodecsLike
    serializer: CodecLike
    write_data: bool
    if_missing: bool
    checksum: bool


class _Properties(_Codecs, total=False):
    filters: CodecsLike
    order: str | None
    attributes: Mapping[str, Any] | None
    chunk_key_encoding: KeyEncoding
    dimension_names: DimensionNames


class ToZarrc(_Properties, total=False):
    overwrite: bool
    config: ConfigLike
    zarr_format: int | None
    fill_value: FillValue


class _NewArray(_Properties, total=False):
    overwrite: bool
    config: ConfigLike
    chunks: ChunksLike
    fill_value: FillValue


class SaveArray(_NewArray, total=False):
    mode: str | None


class RequireArray(_NewArray, _Where, total=False):
    zarr_format: int | None


class CreateArray(RequireArray, total=False):
    shape: ShapeLike | None
    dtype: DTypeLike
    data: ArrayLike | None


class GroupFull(_Properties, _Where, total=False):
    overwrite: bool
    config: ConfigLike
    chunks: ChunksLike
    zarr_format: int | None
    dtype: DTypeLike


class GroupLike(GroupFull, total=False):
    shape: ShapeLike


class Like(GroupLike, total=False):
    store: StoreLike
    path: str | None
    storage_options: dict[str, Any] | None


# ---- create ----


class Create(_Codecs, Old, total=False):
    data: ArrayLike | None


class _Classic(_Properties, Old, total=False):
    chunks: ChunksLike
    dtype: DTypeLike
    compressor: CodecsLike
    dimension_separator: str | None
    chunk_shape: ChunksLike
    codecs: CodecsLike
    write_empty_chunks: bool | None


class Full(_Classic, _Where, total=False):
    store: StoreLike
    path: str | None
    mode: str
    overwrite: bool
    zarr_format: int | None
    storage_options: dict[str, Any] | None
    config: ConfigLike


class Array(Full, total=False):
    fill_value: FillValue


class OpenArray(_Classic, total=False):
    shape: ShapeLike | None
    data: ArrayLike | None
    fill_value: FillValue


class Open(OpenArray, total=False):
    config: ConfigLike
    trust: str | None
    use_consolidated: bool | str | None


class OpenAsync(Open, _Where, total=False):
    mode: str | None
    path: str | None
    zarr_format: int | None
    storage_options: dict[str, Any] | None


class OpenLike(OpenArray, _Where, total=False):
    store: StoreLike
    mode: str | None
    zarr_format: int | None
    storage_options: dict[str, Any] | None
    config: ConfigLike
    trust: str | None


class CupyOpenArray(OpenArray, total=False):
    mode: str | None
    path: str | None
    zarr_format: int | None
    storage_options: dict[str, Any] | None
    config: ConfigLike
    trust: str | None
