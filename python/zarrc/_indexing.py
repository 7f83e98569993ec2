"""Keys as selections of the library, and elements between NumPy and the library. It has no logic of
chunks: a selection says which elements are meant, and the library finds their chunks."""
from __future__ import annotations

import json
import math
import operator
import sys
from typing import Any, NamedTuple

import numpy as np

from . import _core, _dtypes, _libraries
from ._settings import settings
from .errors import BoundsCheckError, UnsupportedError, make_error

Array = _core.Array
Selection = _core.Selection


def pop_fields(key: Any) -> tuple[list[str], Any]:
    """The names of fields in a key, and the rest of it."""
    if isinstance(key, str):
        return [key], ...
    if isinstance(key, list) and key and all(isinstance(item, str) for item in key):
        return list(key), ...
    if isinstance(key, tuple) and any(isinstance(item, str) for item in key):
        rest = tuple(item for item in key if not isinstance(item, str))
        return [item for item in key if isinstance(item, str)], rest
    return [], key


def _as_tuple(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _is_index_array(item: Any) -> bool:
    return isinstance(item, (list, np.ndarray)) or hasattr(item, "__array__") and not isinstance(item, np.generic)


def _as_array(item: Any) -> np.ndarray[Any, Any]:
    """Indexes or a mask, also of another library, in host memory."""
    return np.asarray(item) if isinstance(item, (list, np.ndarray)) else _libraries.to_host(item)


def _expand(key: tuple[Any, ...], ndim: int) -> list[Any]:
    """One item for each dimension."""
    at = [i for i, item in enumerate(key) if item is Ellipsis]
    if len(at) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    items = list(key)
    missing = ndim - (len(items) - len(at))
    if missing < 0:
        raise IndexError(f"too many indices for array; expected {ndim}, got {len(items) - len(at)}")
    if at:
        items[at[0]:at[0] + 1] = [slice(None)] * missing
    else:
        items += [slice(None)] * missing
    return items


def _indexes(item: Any, dimension: int) -> np.ndarray[Any, Any] | int:
    """A list of indexes as the library takes it: int64, or a mask of bytes."""
    array = _as_array(item)
    if array.size == 0 and array.dtype.kind == "f":
        array = array.astype(np.int64)
    if array.dtype.kind == "b":
        return np.ascontiguousarray(array)
    if array.dtype.kind not in "iu":
        raise IndexError(f"dimension {dimension}: indexes are integers or bool, not {array.dtype}")
    if array.dtype.kind == "u" and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise make_error(BoundsCheckError, f"dimension {dimension}: an index is out of bounds")
    if array.ndim == 0:
        return int(array)
    return np.ascontiguousarray(array, dtype=np.int64)


def _orthogonal_item(item: Any, dimension: int) -> Any:
    if isinstance(item, slice):
        return item
    if isinstance(item, (bool, np.bool_)) or item is None:
        raise IndexError(f"unsupported selection item {item!r}")
    if _is_index_array(item):
        indexes = _indexes(item, dimension)
        if isinstance(indexes, np.ndarray) and indexes.ndim != 1:
            raise IndexError(f"dimension {dimension}: a list of indexes has one dimension, not {indexes.ndim}")
        return indexes
    try:
        return operator.index(item)
    except TypeError:
        raise IndexError(f"unsupported selection item for orthogonal indexing; expected integer, slice, list or "
                         f"array of integers or bool, got {type(item)!r}") from None


def orthogonal(array: Array, key: Any) -> Selection:
    """Each dimension on its own."""
    items = _expand(_as_tuple(key), array.ndim)
    return array._select(tuple(_orthogonal_item(item, d) for d, item in enumerate(items)), False)


def basic(array: Array, key: Any) -> Selection:
    """Integers and slices only."""
    items = _expand(_as_tuple(key), array.ndim)
    for item in items:
        if isinstance(item, (bool, np.bool_)) or not isinstance(item, slice) and not hasattr(item, "__index__"):
            raise IndexError(f"unsupported selection item for basic indexing; expected integer or slice, got {type(item)!r}")
    return array._select(tuple(item if isinstance(item, slice) else operator.index(item) for item in items), False)


def blocks(array: Array, key: Any) -> Selection:
    """Whole blocks: shards, or chunks of an array without shards."""
    items = _expand(_as_tuple(key), array.ndim)
    return array._select(tuple(_orthogonal_item(item, d) for d, item in enumerate(items)), True)


def is_mask(key: Any, ndim: int) -> bool:
    """Whether a key is one mask for all dimensions."""
    if isinstance(key, tuple) and len(key) == 1:
        key = key[0]
    return _is_index_array(key) and (array := _as_array(key)).dtype.kind == "b" and array.ndim == ndim


def mask(array: Array, key: Any) -> Selection:
    if isinstance(key, tuple) and len(key) == 1:
        key = key[0]
    found = _as_array(key)
    if found.dtype.kind != "b" or found.shape != array.shape:
        raise IndexError(f"a mask has the array's shape {array.shape} and the type bool, not {found.shape}, {found.dtype}")
    return array._select_mask(np.ascontiguousarray(found))


def points(array: Array, key: Any) -> Selection:
    """Single elements by their coordinates, as NumPy broadcasts them."""
    items = _as_tuple(key)
    if len(items) != array.ndim or any(isinstance(item, slice) or item is Ellipsis for item in items):
        raise IndexError(f"coordinates of all {array.ndim} dimensions are needed, as integers or lists")
    found = [np.asarray(_indexes(item, d)) for d, item in enumerate(items)]
    if any(one.dtype.kind == "b" for one in found):
        raise IndexError("coordinates are integers; a mask has all dimensions of the array")
    try:
        placed = np.broadcast_arrays(*found)
    except ValueError as problem:
        raise IndexError(f"shape mismatch: {problem}") from None
    shape = placed[0].shape
    coordinates = np.stack([one.ravel() for one in placed], axis=-1) if placed else np.empty((0, 0), np.int64)
    return array._select_points(np.ascontiguousarray(coordinates, dtype=np.int64), shape)


def select_vectorised(array: Array, key: Any) -> Selection:
    """What `vindex` takes: coordinates or a mask."""
    return mask(array, key) if is_mask(key, array.ndim) else points(array, key)


def _is_pure_fancy(key: Any, ndim: int) -> bool:
    """Whether zarr-python takes `[]` for `vindex`: integers and lists of them for all dimensions."""
    items = _as_tuple(key)
    if len(items) != ndim or any(isinstance(item, slice) or item is Ellipsis or item is None for item in items):
        return False
    arrays = [_as_array(item) for item in items if _is_index_array(item)]
    return bool(arrays) and all(one.dtype.kind in "iu" or one.size == 0 for one in arrays)


def any_key(array: Array, key: Any) -> Selection:
    """What `[]` takes, as zarr-python tells its meanings apart: a mask or coordinates if all items
    are integers or lists of them, else each dimension on its own."""
    quick = array._key(key)
    if isinstance(quick, _core.Selection):
        return quick
    if is_mask(key, array.ndim):
        return mask(array, key)
    if _is_pure_fancy(key, array.ndim):
        return points(array, key)
    return orthogonal(array, key)


class SplitKey(NamedTuple):
    """A key of an array, as one item for each dimension: an integer, a slice, or an array of indexes or a mask."""

    items: list[Any]
    is_product: bool
    """False: the items are the coordinates of elements."""


def split_key(array: Array, key: Any) -> SplitKey:
    """What `[]` takes, after the same checks."""
    key = pop_fields(key)[1]
    any_key(array, key)
    if not array.ndim:
        return SplitKey([], True)
    if is_mask(key, array.ndim):
        return SplitKey(list(np.nonzero(_as_array(key[0] if isinstance(key, tuple) else key))), False)
    if _is_pure_fancy(key, array.ndim):
        found = np.broadcast_arrays(*(np.asarray(_indexes(item, d)) for d, item in enumerate(_as_tuple(key))))
        return SplitKey([one.ravel() for one in found], False)
    return SplitKey([_orthogonal_item(item, d) for d, item in enumerate(_expand(_as_tuple(key), array.ndim))], True)


# ---- elements out ----


def unwrap(out: Any) -> Any:
    """The array in an NDBuffer of zarr-python, in memory of the host or of a device; anything else as it is."""
    return out.as_ndarray_like() if hasattr(out, "as_ndarray_like") else out


def _output_memory(out: Any) -> np.ndarray[Any, Any]:
    """The array behind `out=`: NumPy's, an NDBuffer of zarr-python, or anything with the buffer protocol."""
    if isinstance(out, np.ndarray):
        return out
    if hasattr(out, "as_numpy_array"):
        return np.asarray(out.as_numpy_array())
    return np.asarray(memoryview(out))


HOST_KINDS = (_core.ZARR_DEVICE_CPU, _core.ZARR_DEVICE_CUDA_HOST)  # memory that NumPy can use, too
CUDA_KINDS = (_core.ZARR_DEVICE_CUDA, _core.ZARR_DEVICE_CUDA_MANAGED)  # memory whose users have streams
DEFAULT_STREAM = 1  # what DLPack and CUDA call the legacy default stream


def find_handle(array: Array, device: str | None, may_open: bool = True) -> Any:
    """The handle of an array for calls that use memory of a device: itself, or one with the plug-in for the device, which is kept. Those of
    the pipeline stay as they are. None: the elements go through host memory, because no device is wanted or the store cannot be opened
    again. NotImplemented: something must be opened, and may not."""
    if device is None:
        return None
    find = None if device == "cpu" else getattr(array, "_for_device", None)
    return array if find is None else find(device, may_open)


def lend(tensor: Any, array: Array, options: dict[str, Any] | None = None, *, is_out: bool = False) -> tuple[Any, dict[str, Any]]:
    """(memory of a tensor of another library, options of a call that uses it). Work on memory of CUDA
    that its library has queued comes first: the library orders the stream that is named here after it, and
    ours begins after what is on that stream."""
    options = options or {}
    if not hasattr(tensor, "__dlpack__"):
        return _of_interface(tensor, array, options, is_out)
    if _device_kind(tensor) in CUDA_KINDS:
        return _capsule(tensor, stream=DEFAULT_STREAM), {**options, "stream": DEFAULT_STREAM}
    return _capsule(tensor), options


def _capsule(tensor: Any, **options: Any) -> Any:
    """The capsule of a tensor. It frees itself."""
    try:
        return tensor.__dlpack__(**options, max_version=(1, 1))
    except TypeError:  # older than DLPack 1.0
        return tensor.__dlpack__(**options)


def _of_interface(tensor: Any, array: Array, options: dict[str, Any], is_out: bool) -> tuple[Any, dict[str, Any]]:
    """The same by the CUDA array interface."""
    told = tensor.__cuda_array_interface__
    pointer, is_read_only = told["data"]
    given = np.dtype(told["typestr"])
    if not given.isnative or given != array.dtype.newbyteorder("="):
        raise TypeError(f"the memory has the data type {told['typestr']}, and the array {array.dtype}")
    if is_read_only and is_out:
        raise ValueError("out is read-only")
    if 0 in told["shape"]:  # without an address, which would tell the device
        return np.empty(told["shape"], given), options
    if (stream := told.get("stream")) is not None:
        options = {**options, "stream": stream}
    return (pointer, tuple(told["shape"]), told.get("strides"), tensor), options


def _device_kind(tensor: Any) -> int:
    """DLPack's number of the kind of memory."""
    return int(tensor.__dlpack_device__()[0]) if hasattr(tensor, "__dlpack_device__") else _core.ZARR_DEVICE_CPU


def is_tensor(out: Any) -> bool:
    """Whether memory is described by DLPack, or by the CUDA array interface."""
    return not isinstance(out, np.ndarray) and not hasattr(out, "as_numpy_array") and (
        hasattr(out, "__dlpack__") or hasattr(out, "__cuda_array_interface__"))


def check_shape(out: Any, shape: tuple[int, ...], name: str = "out") -> None:
    if tuple(out.shape) != shape:
        raise ValueError(f"{name} has the shape {tuple(out.shape)}, and the selection {shape}")


def _check_out(out: np.ndarray[Any, Any], shape: tuple[int, ...], dtype: np.dtype[Any], name: str = "out") -> int:
    """The byte order of an array to fill."""
    check_shape(out, shape, name)
    order = _dtypes.find_byte_order(dtype, out.dtype)
    if order is None:
        raise TypeError(f"{name} has the data type {out.dtype}, and the array {dtype}")
    if not out.flags.writeable:
        raise ValueError(f"{name} is read-only")
    return order


def check_tensor(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any], name: str = "out") -> None:
    """The same of a tensor, as far as it tells."""
    if hasattr(out, "shape"):
        check_shape(out, shape, name)
    if given := _libraries.find_other_dtype(out, dtype):
        raise TypeError(f"{name} has the data type {given}, and the array {dtype}")


def put_structs(out: np.ndarray[Any, Any], found: Any) -> None:
    """What was read, into memory with fields of another byte order."""
    check_shape(out, np.shape(found))
    out[...] = found


def _is_packed(array: Array, out: np.ndarray[Any, Any], shape: tuple[int, ...]) -> bool:
    bits = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2}.get(array.dtype.name)
    if not bits or out.dtype != np.uint8 or not shape:
        return False
    return tuple(out.shape) == (*shape[:-1], (shape[-1] * bits + 7) // 8)


def _field(dtype: np.dtype[Any], name: str) -> np.dtype[Any]:
    """The type of a field, "a" or "a.b", subarrays included."""
    if dtype.names and name in dtype.names:
        return dtype[name]
    head, _, rest = name.partition(".")
    if dtype.names and head in dtype.names and rest:
        base, shape = dtype[head].subdtype or (dtype[head], ())
        inner = _field(base, rest)
        return np.dtype((inner, shape)) if shape else inner
    raise IndexError(f"no field {name!r}; the type has {', '.join(dtype.names or ()) or 'no fields'}")


def fresh(array: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """A new array to read into, in the order that the array is configured for."""
    return _dtypes.as_wanted(array._fresh(shape, dtype, 0 if dtype.hasobject else math.prod(shape) * dtype.itemsize), dtype)


def _read_fields(array: Array, selection: Selection | None, names: list[str], out: Any, options: dict[str, Any]) -> Any:
    types = [_field(array.dtype, name) for name in names]
    shape = array.shape if selection is None else selection.shape
    if len(names) == 1:
        base, inner = types[0].subdtype or (types[0], ())
        found = fresh(array, (*shape, *inner), base) if out is None else _output_memory(out)
        order = _check_out(found, (*shape, *inner), base)
        array._read(selection, found, order, {**options, "field": names[0]})
        return found[()] if out is None and found.ndim == 0 else found if out is None else out
    found = fresh(array, shape, np.dtype(list(zip(names, types)))) if out is None else _output_memory(out)
    for name in names:
        _read_fields(array, selection, [name], found[name], options)
    return found[()] if out is None and found.ndim == 0 else found if out is None else out


def from_vlen(array: Array, found: _core.Vlen) -> np.ndarray[Any, Any]:
    """Elements of variable length as an array of StringDType, or of objects."""
    kind = array._facts[3]
    texts = found.texts(array.dtype) if array.dtype.kind == "T" else None
    if texts is not None:
        return texts.reshape(found.shape)
    listed = found.list(kind == _core.ZARR_KIND_STRING)
    if array.dtype.kind == "T":
        return np.array(listed, dtype=array.dtype).reshape(found.shape)
    out = np.empty(len(listed), object)
    if kind == _core.ZARR_KIND_VARRAY:
        item = _dtypes.item_dtype(array)
        listed = [np.frombuffer(one, item).copy() for one in listed]
    for i, one in enumerate(listed):
        out[i] = one
    return out.reshape(found.shape)


def check_objects(out: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The array behind `out=` for elements of any length, which memory of fixed-width text would cut."""
    target = _output_memory(out)
    if target.shape != shape:
        raise ValueError(f"out has the shape {target.shape}, and the selection {shape}")
    if target.dtype.kind not in ("O", "T"):
        raise TypeError(f"out has the data type {target.dtype}, and the elements have any length: give an array of objects, or of "
                        "StringDType for text")
    return target


def finish_read(found: np.ndarray[Any, Any], out: Any, objects: np.ndarray[Any, Any] | None) -> Any:
    """What a read of elements of any length returns."""
    if objects is None:
        return found[()] if found.ndim == 0 else found
    objects[...] = found
    return out


def read(array: Array, selection: Selection | None, *, out: Any = None, fields: Any = None,
         options: dict[str, Any] | None = None) -> Any:
    """Reads a selection into a new array, or into `out`."""
    options = options or {}
    if out is not None and (inner := unwrap(out)) is not out:
        read(array, selection, out=inner, fields=fields, options=options)
        return out
    if fields:
        return _read_fields(array, selection, [fields] if isinstance(fields, str) else list(fields), out, options)
    shape = array.shape if selection is None else selection.shape
    if array._how == _dtypes.OTHER:
        raise make_error(UnsupportedError, f"elements of type {array._facts[2]} have no counterpart in NumPy", node=f"/{array.path}")
    if array._how == _dtypes.VLEN:
        objects = None if out is None else check_objects(out, shape)
        box = array._vlen(shape)
        array._read(selection, box, _dtypes.NATIVE, options)
        return finish_read(from_vlen(array, box), out, objects)
    if out is not None and is_tensor(out):
        _libraries.check_usable(out, is_out=True)
        there = find_handle(array, _libraries.find_device(out))
        if there is None:
            return _fill(array, selection, out, options)
        check_tensor(out, shape, array.dtype)
        memory, options = lend(out, there, options, is_out=True)
        there._read(selection, memory, _dtypes.NATIVE, options)
        return out
    target = fresh(array, shape, array.dtype) if out is None else _output_memory(out)
    if out is not None and _is_packed(array, target, shape):
        array._read(selection, target, _dtypes.NATIVE, {**options, "packed": 1})
        return out
    if out is not None and _dtypes.is_swapped_struct(array.dtype, target.dtype):
        put_structs(target, read(array, selection, options=options))
        return out
    array._read(selection, target, _check_out(target, shape, array.dtype), options)
    if out is not None:
        return out
    return target[()] if target.ndim == 0 else target


def _fill(array: Array, selection: Selection | None, out: Any, options: dict[str, Any]) -> Any:
    """Reads into host memory, from which the elements are copied to `out`."""
    host = memory_before(array, array.shape if selection is None else selection.shape, out)
    read(array, selection, out=host, options=options)
    return copy_up(host, out, options)


def memory_before(array: Array, shape: tuple[int, ...], out: Any) -> np.ndarray[Any, Any]:
    """Host memory for the elements that go to `out`."""
    check_tensor(out, shape, array.dtype)
    return np.empty(shape, array.dtype.newbyteorder("="))


def copy_up(host: np.ndarray[Any, Any], out: Any, options: dict[str, Any]) -> Any:
    _libraries.count(options, "up", host)
    device = _libraries.find_device(out)
    if device == "cpu" or _libraries.find_name(out) is not None:
        _libraries.fill(out, host)
    else:
        between = between_memories(host.shape, host.dtype, device)
        between._write(None, host, _dtypes.NATIVE, {})
        memory, more = lend(out, between, is_out=True)
        between._read(None, memory, _dtypes.NATIVE, more)
    return out


def as_points(out: Any, shape: tuple[int, ...]) -> Any:
    """zarr-python's buffer for coordinates of several dimensions is flat, and the result is not."""
    flat = unwrap(out)
    return flat.reshape(shape) if flat is not out and flat.ndim == 1 and flat.size == math.prod(shape) else flat


# ---- elements in ----


def coerce(dtype: np.dtype[Any], value: Any) -> tuple[np.ndarray[Any, Any], int]:
    """A value as an array of the type, and its byte order. It is converted as NumPy's assignment
    converts; another byte order is not."""
    if isinstance(value, np.ndarray):
        array = value
    elif hasattr(value, "as_numpy_array"):
        array = value.as_numpy_array()
    elif hasattr(value, "__array__") or hasattr(value, "dtype"):
        array = np.asarray(value)
    else:
        array = np.asarray(value, dtype=dtype)
    order = _dtypes.find_byte_order(dtype, array.dtype)
    if order is None:
        array = array.astype(dtype)
        order = _dtypes.NATIVE if dtype.isnative else _dtypes.SWAPPED
    return array, order


def check_text(values: list[Any]) -> None:
    if any(not isinstance(one, str) for one in values):
        wrong = next(one for one in values if not isinstance(one, str))
        raise TypeError(f"elements are text, not {wrong!r}")


def to_vlen(array: Array, value: Any) -> _core.Vlen:
    """Text or bytes as the library takes them."""
    kind = array._facts[3]
    if kind == _core.ZARR_KIND_VARRAY:
        return _pack_lists(array, value)
    # Not NumPy's own text, which loses NULs at the end.
    given = np.asarray(value) if hasattr(value, "__array__") else np.asarray(value, object)
    if kind == _core.ZARR_KIND_STRING and given.dtype.kind not in ("O", "T", "U"):
        given = given.astype(str)
    if kind == _core.ZARR_KIND_STRING and given.dtype.kind == "T" and not hasattr(given.dtype, "na_object"):
        return array._vlen(given.shape, np.asarray(given.ravel()))
    listed = given.ravel().tolist()
    if kind == _core.ZARR_KIND_STRING:
        check_text(listed)
    if kind == _core.ZARR_KIND_VBYTES:
        listed = [one.tobytes() if isinstance(one, (memoryview, np.void)) else bytes(one) if isinstance(one, bytearray)
                  else one for one in listed]
        if any(not isinstance(one, bytes) for one in listed):
            raise TypeError("elements are bytes")
    return array._vlen(given.shape, listed)


def _pack_lists(array: Array, value: Any) -> _core.Vlen:
    """Lists of any length: an array of objects, each of them a list."""
    if not isinstance(value, np.ndarray) or value.dtype != object:
        one = np.empty((), object)
        one[()] = value
        value = one
    item = _dtypes.item_dtype(array)
    listed = [np.ascontiguousarray(one, dtype=item).tobytes() for one in value.ravel().tolist()]
    return array._vlen(value.shape, listed)


def write(array: Array, selection: Selection | None, value: Any, *, fields: Any = None,
          options: dict[str, Any] | None = None) -> None:
    """Writes a value to a selection; it is repeated to fill it, as in NumPy."""
    options = options or {}
    if fields:
        _write_fields(array, selection, [fields] if isinstance(fields, str) else list(fields), value, options)
    elif array._how == _dtypes.VLEN:
        array._write(selection, to_vlen(array, value), _dtypes.NATIVE, options)
    elif array._how == _dtypes.OTHER:
        raise make_error(UnsupportedError, f"elements of type {array._facts[2]} have no counterpart in NumPy", node=f"/{array.path}")
    elif is_foreign(value):
        there, memory, order, options = prepare_tensor(array, value, options)
        there._write(selection, memory, order, options)
    elif options.get("packed"):
        array._write(selection, np.asarray(value, np.uint8), _dtypes.NATIVE, options)
    else:
        given, order = coerce(array.dtype, value)
        array._write(selection, given, order, options)


def prepare_tensor(array: Array, value: Any, options: dict[str, Any]) -> tuple[Any, Any, int, dict[str, Any]]:
    """(handle, memory, byte order, options) of a write from a tensor, whose elements its library converts to the array's data type."""
    _libraries.check_usable(value, is_out=False)
    device = _libraries.find_device(value)
    given: Any = value
    if _libraries.find_other_dtype(value, array.dtype) and (given := _libraries.as_type(value, array.dtype.newbyteorder("="))) is not None:
        _libraries.count(options, "host" if device == "cpu" else "device", given)
    there = None if given is None else find_handle(array, device)
    if there is None:
        host = copy_down(value if given is None else given)
        _libraries.count(options, "down", host)
        return array, *coerce(array.dtype, host), options
    memory, options = lend(_libraries.resolve(given), there, options)
    return there, memory, _dtypes.NATIVE, options


def as_host(value: Any) -> Any:
    """A value whose elements NumPy can use."""
    if not is_foreign(value):
        return value
    _libraries.check_usable(value, is_out=False)
    return copy_down(value)


def copy_down(value: Any) -> np.ndarray[Any, Any]:
    """The elements of a tensor in host memory, where its library copies them, or ours if it is not known."""
    device = _libraries.find_device(value)
    if device == "cpu" or _libraries.find_name(value) in _libraries.LIBRARIES:
        return _libraries.to_host(value)
    told = getattr(value, "__cuda_array_interface__", {})
    dtype, shape = _libraries.find_dtype(value), getattr(value, "shape", told.get("shape"))
    if dtype is None or shape is None:
        raise TypeError(f"a {type(value).__name__} does not tell the shape and the data type of its elements")
    between = between_memories(tuple(shape), dtype, device)
    memory, options = lend(value, between)
    between._write(None, memory, _dtypes.NATIVE, options)
    host = np.empty(shape, dtype)
    between._read(None, host, _dtypes.NATIVE, {})
    return host


def between_memories(shape: tuple[int, ...], dtype: np.dtype[Any], device: str) -> Array:
    """An array in memory, through which elements go between the host and a device."""
    store = _core.open_store(_core.Store, settings.context_for(device, settings.context()), "memory:", {})
    codec = {"name": "bytes", "configuration": {"endian": sys.byteorder}} if dtype.itemsize > 1 else {"name": "bytes"}
    spec = {"shape": shape, "data_type": _dtypes.library_name(dtype), "codecs": json.dumps([codec])}
    return _core.create_array(_core.Array, store, "", spec, {})


def is_foreign(value: Any) -> bool:
    """Whether a value is a tensor that does not become an array of NumPy: its library knows its elements."""
    return is_tensor(value) and not has_numpy(value)


def has_numpy(value: Any) -> bool:
    """Whether a tensor becomes an array of NumPy; one of bfloat16 does not, nor one on a device."""
    if not hasattr(value, "__dlpack__") or _device_kind(value) not in HOST_KINDS:
        return False
    if isinstance(value, Array):  # its elements are read when they are needed
        return True
    try:
        return bool(np.asarray(value).dtype != object)
    except (TypeError, RuntimeError, BufferError):
        return False


def _write_fields(array: Array, selection: Selection | None, names: list[str], value: Any, options: dict[str, Any]) -> None:
    shape = array.shape if selection is None else selection.shape
    value = as_host(value)
    for name in names:
        given = value
        if len(names) > 1 or (isinstance(value, np.ndarray) and value.dtype.names and name in value.dtype.names):
            given = np.asarray(value)[name]
        base, inner = (lambda t: t.subdtype or (t, ()))(_field(array.dtype, name))
        found, order = coerce(base, given)
        array._write(selection, np.broadcast_to(found, (*shape, *inner)), order, {**options, "field": name})
