"""New arrays: what users of zarr-python write, as a zarr_array_spec of the library."""
from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from . import _codecs, _consolidation, _core, _dtypes, _libraries
from ._array import Array
from ._array_config import ArrayConfig
from ._indexing import as_host, check_text, is_foreign
from ._node import to_json
from ._places import Place
from ._settings import settings
from ._store import Store
from .errors import ContainsArrayError, ContainsGroupError, ExistsError, NotFoundError, ZarrcError, as_class, in_store

_Node = TypeVar("_Node")


class _Default:
    """The fill value that an array has if the user names none. None means v2's null."""

    def __repr__(self) -> str:
        return "<the data type's default>"


DEFAULT_FILL_VALUE: Any = _Default()


def exists_error(problem: ExistsError, place: Place) -> ExistsError:
    """The exception that names what is there, as zarr-python's do."""
    kind = place.store._probe(place.path)[0]
    cls = {_core.ZARR_NODE_ARRAY: ContainsArrayError, _core.ZARR_NODE_GROUP: ContainsGroupError}.get(kind)
    in_store(problem, place.store.url)
    return problem if cls is None else as_class(cls, problem)  # type: ignore[return-value]


def open_or_create(opened: Callable[[], _Node], created: Callable[[], _Node]) -> _Node:
    """What mode "a" gives. Of callers that come at the same moment one creates, and the others open."""
    for _ in range(8):  # between the two, another may have replaced or deleted the node
        try:
            return opened()
        except NotFoundError:
            pass
        try:
            return created()
        except ExistsError as problem:
            exists = problem
    raise exists


def normalize_shape(shape: Any) -> tuple[int, ...]:
    if isinstance(shape, (int, np.integer)):
        return (int(shape),)
    return tuple(int(n) for n in shape)


def _normalize_chunks(chunks: Any, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Chunks as zarr-python takes them; None: the library chooses."""
    if chunks is None or chunks is True or isinstance(chunks, str) and chunks == "auto":
        return None
    if chunks is False:
        return tuple(max(n, 1) for n in shape)
    if isinstance(chunks, (int, np.integer)):
        chunks = (int(chunks),) * len(shape)
    if isinstance(chunks, (str, bytes)):
        raise TypeError(f"chunks: {chunks!r} is not a tuple of integers or 'auto'")
    chunks = tuple(chunks)
    if len(chunks) > len(shape):
        raise ValueError(f"chunks: {len(chunks)} lengths for {len(shape)} dimensions")
    if any(isinstance(n, (list, tuple)) for n in chunks):
        return None  # a rectilinear grid: _grid_document
    given = (*chunks, *shape[len(chunks):])
    return tuple(max(size, 1) if n is None or n == -1 else int(n) for n, size in zip(given, shape))


def _grid_document(chunks: Any, shape: tuple[int, ...]) -> str | None:
    """A grid of chunks that differ: a list of lengths for a dimension, or metadata of a grid."""
    if isinstance(chunks, Mapping):
        return json.dumps(dict(chunks))
    if isinstance(chunks, (list, tuple)) and any(isinstance(n, (list, tuple)) for n in chunks):
        edges = [[int(e) for e in n] if isinstance(n, (list, tuple)) else int(n) for n in chunks]
        return json.dumps({"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": edges}})
    return None


def _auto_shards(shape: tuple[int, ...], chunks: tuple[int, ...]) -> tuple[int, ...]:
    """zarr-python's rule: two chunks along each dimension that has more than eight of them."""
    return tuple(c * 2 if math.ceil(n / c) > 8 else c for n, c in zip(shape, chunks))


def _key_encoding(given: Any) -> dict[str, Any]:
    if given is None:
        return {}
    if isinstance(given, str):
        given = {"name": given}
    if hasattr(given, "to_dict"):
        given = given.to_dict()
    entry = dict(given)
    name = entry.get("name", "default")
    separator = entry.get("separator") or (entry.get("configuration") or {}).get("separator")
    out: dict[str, Any] = {"key_encoding": name}
    if separator or name == "v2":  # the library's own choice is "/" for all encodings of format 3
        out["separator"] = separator or "."
    return out


def _codecs_v3(filters: Any, compressors: Any, serializer: Any) -> str | None:
    chain = [_codecs.several(filters, 3), None if serializer == "auto" else [_codecs.codec_entry(serializer, 3)],
             _codecs.several(compressors, 3)]
    if all(part is None for part in chain):
        return None
    if chain[2] is None:
        chain[2] = [{"name": "zstd", "configuration": {"level": 0, "checksum": False}}]
    return json.dumps([codec for part in chain for codec in part or []])


def _codecs_v2(filters: Any, compressors: Any, serializer: Any) -> str | None:
    if serializer != "auto":
        raise ValueError("Zarr format 2 has no serializer")
    wanted, chain = _codecs.several(compressors, 2), _codecs.several(filters, 2)
    if wanted is None and chain is None:
        return None
    if wanted and len(wanted) > 1:
        raise ValueError("Zarr format 2 has one compressor: give the others as filters")
    compressor = {"id": "zstd", "level": 0} if wanted is None else wanted[0] if wanted else None
    return json.dumps({"filters": chain or None, "compressor": compressor})


def make_spec(context: _core.Context, *, shape: Any, dtype: Any, chunks: Any = "auto", shards: Any = None, filters: Any = "auto",
            compressors: Any = "auto", serializer: Any = "auto", fill_value: Any = DEFAULT_FILL_VALUE, order: str | None = None,
            zarr_format: int | None = None, attributes: Mapping[str, Any] | None = None, chunk_key_encoding: Any = None,
            dimension_names: Any = None, checksum: bool = False) -> dict[str, Any]:
    """The members of a zarr_array_spec."""
    zarr_format = zarr_format or settings["default_zarr_format"]
    lengths = normalize_shape(shape)
    name = _dtypes.library_name(dtype)
    spec: dict[str, Any] = {"shape": lengths, "zarr_format": zarr_format, "data_type": name,
                            **_key_encoding(chunk_key_encoding)}
    if zarr_format == 2:
        spec.pop("key_encoding", None)
    spec["chunk_grid"] = _grid_document(chunks, lengths)
    if spec["chunk_grid"] is None:
        spec["chunk_shape"] = _normalize_chunks(chunks, lengths)
    _add_shards(spec, shards, lengths, name, context)
    if fill_value is None and zarr_format == 2:
        spec["fill_value"] = "null"
    elif fill_value is not None and fill_value is not DEFAULT_FILL_VALUE:
        spec["fill_value"] = _dtypes.fill_json(context, name, as_host(fill_value))
    elif fill_value is DEFAULT_FILL_VALUE or fill_value is None:
        spec["fill_value"] = _dtypes.default_fill_json(context, name)
    spec["codecs"] = (_codecs_v2(filters, compressors, serializer) if zarr_format == 2 else
                      _codecs_v3(filters, compressors, serializer))
    if checksum:
        spec["flags"] = spec.get("flags", 0) | _core.ZARR_SPEC_CHECKSUM
    if attributes:
        spec["attributes"] = to_json(dict(attributes))
    if dimension_names is not None:
        spec["dimension_names"] = tuple(dimension_names)
    if zarr_format == 2 and (order or settings["array.order"] == "F"):
        spec["order"] = order or "F"
    return spec


def _add_shards(spec: dict[str, Any], shards: Any, shape: tuple[int, ...], dtype: str, context: _core.Context) -> None:
    if shards is None:
        return
    if isinstance(shards, Mapping):
        spec["index_codecs"] = json.dumps(_codecs.several(shards["index_codecs"], 3)) if shards.get("index_codecs") else None
        if getattr(shards.get("index_location"), "value", shards.get("index_location")) == "start":
            spec["flags"] = _core.ZARR_SPEC_INDEX_AT_START
        shards = shards["shape"]
    if spec["chunk_grid"] is not None:
        raise ValueError("shards: the chunks of a shard are all equal")
    if isinstance(shards, str) and shards == "auto":
        spec["chunk_shape"] = spec["chunk_shape"] or _library_chunks(context, shape, dtype)
        spec["shard_shape"] = _auto_shards(shape, spec["chunk_shape"])
        return
    if spec["chunk_shape"] is None:
        spec["chunk_shape"] = _divisors(_library_chunks(context, shape, dtype), normalize_shape(shards))
    spec["shard_shape"] = _normalize_chunks(shards, shape)


def _library_chunks(context: _core.Context, shape: tuple[int, ...], dtype: str) -> tuple[int, ...]:
    """The chunks that the library chooses, from an array in memory that is thrown away."""
    store = _core.open_store(Store, context, "memory:", {})
    array = _core.create_array(Array, store, "", {"shape": shape, "data_type": dtype}, {})
    found = array._chunk_shape
    assert found is not None
    return found


def _divisors(wanted: tuple[int, ...], shards: tuple[int, ...]) -> tuple[int, ...]:
    """The largest chunks, up to those wanted, that fill the shards."""
    return tuple(next(n for n in range(min(w, s), 0, -1) if s % n == 0) for w, s in zip(wanted, shards))


def create(place: Place, *, overwrite: bool = False, config: Any = None, if_missing: bool = False, data: Any = None,
           write_data: bool = True, claim: bool = False, document: str | None = None, device: str | None = None, **given: Any) -> Array:
    """Creates an array at a place, and writes `data` to it. `claim`: no other call replaces it before `_release_claim`."""
    device = device or place.store._default_device
    found = ArrayConfig.of(config)
    if data is not None and document is None:
        given = _from_data(data, given)
    order = given.get("order")
    if order is not None and order not in ("C", "F"):
        raise ValueError(f"order: {order!r} is not 'C' or 'F'")
    if order is not None:
        found = ArrayConfig.of({**{n: getattr(found, n) for n in ArrayConfig.__dataclass_fields__}, "order": order})
    spec: dict[str, Any] = {"document": document} if document else make_spec(place.store._context, **given)
    writes = data is not None and write_data
    if writes:
        check_value(place.store, data)
    claims = (writes or claim) and place.store._can_erase  # document and elements are those of one caller
    spec["flags"] = (spec.get("flags", 0) | (_core.ZARR_SPEC_OVERWRITE if overwrite else 0) | (_core.ZARR_SPEC_IF_MISSING if if_missing else 0)
                     | (_core.ZARR_SPEC_CLAIM if claims else 0) | _consolidation.flag(_core.ZARR_SPEC_CONSOLIDATED))
    # The library's default codecs depend on the device that the elements are for.
    options = {**found.options(), "device": device}
    try:
        with _consolidation.change(place.store, place.path):
            array = _core.create_array(Array, place.store, place.path, spec, options)
    except ExistsError as problem:
        raise exists_error(problem, place) from None
    except ZarrcError as problem:
        in_store(problem, place.store.url)
        raise
    array._configure(found)
    if writes:
        is_complete = False
        try:
            array[...] = data
            is_complete = True
        finally:
            array._release_claim(is_complete)
    return array


def check_value(store: Store, data: Any) -> None:
    """Raises what a write of the value would, if that is known before anything is replaced: memory that cannot be used, a plug-in that
    cannot be loaded."""
    if is_foreign(data):
        _libraries.check_usable(data, is_out=False)
        if (device := _libraries.find_device(data)) != "cpu":
            store._for_device(device)


def _from_data(data: Any, given: dict[str, Any]) -> dict[str, Any]:
    if given.get("shape") is not None or given.get("dtype") is not None:
        raise ValueError("`shape` and `dtype` are those of `data`: do not give both")
    if not hasattr(data, "shape") or not hasattr(data, "dtype"):
        data = np.asarray(data)
    return {**given, "shape": data.shape, "dtype": _find_dtype(data)}


def _find_dtype(data: Any) -> Any:
    """What NumPy makes of a data type, else its name: that of torch, or of what other arrays become. Raises TypeError for
    objects that are no text, before anything is created."""
    if str(data.dtype).startswith("torch."):
        return data.dtype
    try:
        found = None if data.dtype is None else np.dtype(data.dtype)
    except TypeError:
        found = None
    if found is not None and found != object:
        return data.dtype
    array = np.asarray(as_host(data))
    if array.dtype == object:
        check_text(array.ravel().tolist())
    return array.dtype


def like_arguments(like: Any) -> dict[str, Any]:
    """The arguments of `create_array` for an array like this one."""
    if not hasattr(like, "shape") or not hasattr(like, "dtype"):
        like = np.asarray(like)
    out: dict[str, Any] = {"shape": like.shape, "dtype": like.dtype}
    if hasattr(like, "zarr_format") and hasattr(like, "attrs"):  # ours, or zarr-python's
        out |= {"zarr_format": like.zarr_format, "chunks": like.chunks, "shards": like.shards, "filters": like.filters,
                "compressors": like.compressors, "fill_value": like.fill_value, "attributes": dict(like.attrs),
                "order": like.order}
        names = getattr(like, "dimension_names", None) or getattr(like.metadata, "dimension_names", None)
        out["dimension_names"] = names if names and any(name is not None for name in names) else None
        if like.zarr_format == 3:
            out["serializer"] = like.serializer
    elif hasattr(like, "chunks") and isinstance(like.chunks, tuple) and all(isinstance(n, int) for n in like.chunks):
        out["chunks"] = like.chunks  # h5py
    elif hasattr(like, "chunksize"):
        out["chunks"] = like.chunksize  # dask
    return out
