"""NumPy's data types for those of arrays, and back. Nothing here knows how elements are stored."""
from __future__ import annotations

import base64
import functools
import json
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from . import _core
from .errors import UnsupportedError, make_error

NATIVE = 0  # the byte order of the machine, beside ZARR_ORDER_LITTLE and ZARR_ORDER_BIG
PLAIN, VLEN = _core.ZX_PLAIN, _core.ZX_VLEN  # how elements travel
OTHER, VIEWED = _core.ZX_OTHER, _core.ZX_VIEWED
SWAPPED = _core.ZARR_ORDER_BIG if sys.byteorder == "little" else _core.ZARR_ORDER_LITTLE

_T = TypeVar("_T")
StringDType: Any = getattr(np.dtypes, "StringDType", None)  # NumPy 2
_cache: dict[tuple[Any, ...], np.dtype[Any]] = {}
plugin_types: dict[str, Any] = {}  # classes of data types that are written in Python, by name


def text_dtype() -> np.dtype[Any]:
    """What text of any length is in NumPy."""
    return StringDType() if StringDType else np.dtype(object)


def from_fields(listed: list[Any]) -> np.dtype[Any]:
    """A struct, from the list of fields of v2 metadata."""
    members = []
    for name, code, *shape in listed:
        inner = from_fields(code) if isinstance(code, list) else find_dtype(code)
        members.append((name, inner, tuple(shape[0])) if shape else (name, inner))
    return np.dtype(members)


def find_dtype(name: str) -> np.dtype[Any]:
    """The data type of a name of NumPy or of ml_dtypes, which is imported only if it is needed."""
    try:
        return np.dtype(name)
    except TypeError:
        try:
            import ml_dtypes  # type: ignore[import-not-found,unused-ignore]
        except ImportError:
            raise make_error(UnsupportedError, f"elements of type {name} need the package ml_dtypes") from None
        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return found


def from_facts(facts: tuple[Any, ...], context: _core.Context | None = None) -> np.dtype[Any]:
    """NumPy's type for a type of the library, in the machine's byte order. Types that NumPy has no
    name for are opaque bytes."""
    numpy, v2, v3, kind, size = facts
    if plugin_types and numpy is None and v3 and (cls := plugin_types.get(_type_name(v3))):
        return plugin_dtype(cls)
    key = (numpy, v2 if kind == _core.ZARR_KIND_STRUCT else None, v3 if kind == _core.ZARR_KIND_OPTIONAL else None, size)
    if key in _cache:
        return _cache[key]
    if numpy == "T":
        found = text_dtype()
    elif kind == _core.ZARR_KIND_STRUCT and v2:
        found = from_fields(json.loads(v2)).newbyteorder("=")
    elif kind == _core.ZARR_KIND_OPTIONAL and context is not None:
        found = np.dtype([("value", from_facts(context.facts(_underlying_type(v3)), context)), ("valid", np.bool_)])
    else:
        try:
            found = find_dtype(numpy).newbyteorder("=") if numpy else np.dtype(f"V{size}")
        except AttributeError:  # newer than the ml_dtypes that is here
            found = np.dtype(f"V{size}")
    _cache[key] = found
    return found


def item_dtype(array: _core.Array) -> np.dtype[Any]:
    """The type of the items of lists, for an array whose elements are lists."""
    facts = array._item_facts
    assert facts is not None
    return from_facts(facts)


def find(ask: Callable[[str], _T], context: _core.Context, name: str) -> _T:
    """What the context tells about a data type. The error for an unknown name lists similar ones."""
    try:
        return ask(name)
    except UnsupportedError as problem:
        if not str(problem).endswith("is not known"):
            raise
        import difflib
        rows = context.registry(_core.ZARR_REGISTRY_DTYPE)
        near = difflib.get_close_matches(name, {row[key] for row in rows for key in ("name", "v2")}, cutoff=0.7)
        if not near:
            raise
        raise make_error(UnsupportedError, f"{problem}; similar names are {', '.join(near)}") from None


def _type_name(v3: str) -> str:
    told = json.loads(v3)
    return str(told["name"] if isinstance(told, dict) else told)


def _underlying_type(v3: str) -> str:
    inner = json.loads(v3)["configuration"]
    return json.dumps(inner) if inner.get("configuration") else inner["name"]


def as_wanted(found: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """A new array with its data type. NumPy itself makes M8[generic] of M8[5generic]."""
    return found if found.dtype == dtype or dtype.kind not in "Mm" else found.view(dtype)


def describe(array: _core.Array) -> tuple[np.dtype[Any], int, int]:
    """(NumPy's type, byte order of its elements, how they travel); the extension calls it."""
    facts = array._facts
    dtype = from_facts(facts, array.store._context)
    kind = facts[3]
    if kind in (_core.ZARR_KIND_STRING, _core.ZARR_KIND_VBYTES, _core.ZARR_KIND_VARRAY):
        return dtype, NATIVE, VLEN
    if dtype.hasobject or dtype.kind == "T" or dtype.itemsize != facts[4]:
        return dtype, NATIVE, OTHER
    if array.zarr_format == 2 and dtype.kind != "V":  # structs have the machine's order in memory
        stored = _stored_dtype(array)
        if stored is not None and stored != dtype and stored == dtype.newbyteorder("S"):
            if not np.empty(0, stored).dtype.isnative:  # else NumPy has no array of it: times without a unit
                return stored, SWAPPED, PLAIN
    return dtype, NATIVE, PLAIN if np.empty(0, dtype).dtype == dtype else VIEWED


def _stored_dtype(array: _core.Array) -> np.dtype[Any] | None:
    """What the document of a v2 array says, byte order included."""
    told = json.loads(array._metadata_text)["dtype"]
    try:
        return from_fields(told) if isinstance(told, list) else np.dtype(told)
    except TypeError:
        return None


def find_byte_order(wanted: np.dtype[Any], given: np.dtype[Any]) -> int | None:
    """The byte order of memory whose elements are of the wanted type, except for their order; None:
    they are of another type."""
    if given == wanted and given.isnative == wanted.isnative:
        return NATIVE if given.isnative else SWAPPED
    if given.newbyteorder("=") != wanted.newbyteorder("="):
        return None
    if given.names and not given.isnative:
        return None  # the library swaps no structs
    return NATIVE if given.isnative else SWAPPED


def is_swapped_struct(wanted: np.dtype[Any], given: np.dtype[Any]) -> bool:
    """Whether memory has structs of the wanted type with fields of another byte order: NumPy copies them."""
    return bool(given.names and not given.isnative and given.newbyteorder("=") == wanted.newbyteorder("="))


# ---- types for new arrays ----


def library_name(dtype: Any) -> str:
    """How the library calls a data type that a user gave: NumPy's, a v3 name or object, "str"."""
    if isinstance(dtype, dict) or isinstance(dtype, list) and dtype and isinstance(dtype[0], list):
        return json.dumps(dtype)  # from metadata
    if (name := getattr(dtype, "_library_name", None)) is not None:  # a zarrc.dtype
        return str(name)
    if type(dtype).__module__ == "torch":
        return str(dtype).removeprefix("torch.")
    if hasattr(dtype, "to_json") and hasattr(dtype, "to_native_dtype"):  # a ZDType of zarr-python
        told = dtype.to_json(zarr_format=3)
        return str(told) if isinstance(told, str) else json.dumps(told)
    if isinstance(dtype, type) and isinstance(name := getattr(dtype, "name", None), str) and name in plugin_types:
        configuration = getattr(dtype, "configuration", None)
        return json.dumps({"name": name, "configuration": configuration}) if configuration else name
    if dtype is str or dtype in ("str", "string"):
        return "string"
    if isinstance(dtype, str):
        try:
            dtype = np.dtype(dtype)
        except TypeError:
            return str(dtype)  # a v3 name, such as "bfloat16" or "r24"
    dtype = np.dtype(dtype)
    if dtype.kind in "TO":
        return "string"
    if dtype.names:
        return json.dumps(_list_fields(dtype))
    if dtype.kind == "V" and dtype.type.__module__ == "ml_dtypes" or dtype.type.__module__.startswith("ml_dtypes"):
        return str(dtype.name)
    if dtype.kind == "U" and dtype.itemsize == 0 or dtype.kind == "S" and dtype.itemsize == 0:
        return "string" if dtype.kind == "U" else "variable_length_bytes"
    if dtype.kind in "Mm" and (told := np.datetime_data(dtype))[0] == "generic" and told[1] != 1:
        return f"{dtype.str}[{told[1]}generic]"  # NumPy's text leaves the multiple out
    return str(dtype.str)


def _list_fields(dtype: np.dtype[Any]) -> list[Any]:
    """The fields of a struct as v2 metadata list them."""
    assert dtype.names is not None and dtype.fields is not None
    out = []
    for name in dtype.names:
        member = dtype.fields[name][0]
        base, shape = member.subdtype or (member, ())
        code = _list_fields(base) if base.names else library_name(base)
        out.append([name, code, list(shape)] if shape else [name, code])
    return out


def pack_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """A struct without the gaps of an aligned one, as arrays have it."""
    return np.dtype(_packed_fields(dtype)) if dtype.names else dtype


def _packed_fields(dtype: np.dtype[Any]) -> list[Any]:
    assert dtype.names is not None and dtype.fields is not None
    out: list[Any] = []
    for name in dtype.names:
        member = dtype.fields[name][0]
        base, shape = member.subdtype or (member, ())
        out.append((name, pack_dtype(base), shape) if shape else (name, pack_dtype(base)))
    return out


# ---- data types that are written in Python ----


def is_variable(cls: Any) -> bool:
    """Whether elements of a class of zarrc.plugins have any length."""
    return cls.dtype in (str, bytes) or getattr(cls.dtype, "kind", "") == "T"


def plugin_dtype(cls: Any) -> np.dtype[Any]:
    """NumPy's data type of the elements of such a class."""
    if is_variable(cls):
        return np.dtype(object) if cls.dtype is bytes else text_dtype()
    found: np.dtype[Any] = np.dtype(cls.dtype)
    return found.newbyteorder("=")


def plugin_element_bytes(cls: Any, value: Any) -> bytes:
    """An element, as the library has it in memory."""
    if is_variable(cls):
        return bytes(value) if cls.dtype is bytes else str(value).encode()
    element = np.empty((), plugin_dtype(cls))
    element[()] = value
    return element.tobytes()


def plugin_element(cls: Any, stored: bytes) -> Any:
    """The element that the library has in memory, as `fill_to_json` of the class takes it."""
    if is_variable(cls):
        return stored if cls.dtype is bytes else stored.decode()
    return np.frombuffer(stored, plugin_dtype(cls))[0]


# ---- fill values ----


def fill_value(array: _core.Array) -> Any:
    """The fill value as a scalar of NumPy, text or bytes; None: v2's null."""
    stored = array._fill_bytes
    if stored is None:
        return None
    kind = array._facts[3]
    if kind == _core.ZARR_KIND_STRING:
        return stored.decode()
    if kind in (_core.ZARR_KIND_VBYTES, _core.ZARR_KIND_VARRAY):
        return stored
    dtype = array.dtype.newbyteorder("=")
    return np.frombuffer(stored, dtype=dtype)[0] if dtype.itemsize else np.zeros((), dtype)[()]


def default_fill_json(context: _core.Context, name: str) -> str | None:
    """zarr-python's default where the library has another one: times are NaT."""
    numpy = find(context.facts, context, name)[0]
    if not numpy or np.dtype(numpy if numpy[1:2] in ("M", "m") else "V1").kind not in "Mm":
        return None
    return context.element_json(name, np.array(np.iinfo("int64").min).tobytes())


def fill_json(context: _core.Context, name: str, value: Any) -> str:
    """How metadata spell a fill value that a user gave."""
    facts = find(context.facts, context, name)
    kind = facts[3]
    if facts[2] and (cls := plugin_types.get(_type_name(facts[2]))) and is_variable(cls):
        return json.dumps(cls().fill_to_json(plugin_element(cls, plugin_element_bytes(cls, value)), 3))
    if kind == _core.ZARR_KIND_STRING:
        return json.dumps(str(value))
    if kind == _core.ZARR_KIND_VBYTES:
        if isinstance(value, (int, float, np.number)) and value != 0:
            raise TypeError(f"fill value {value!r} is not bytes")
        data = value.encode() if isinstance(value, str) else bytes(value) if value else b""
        return json.dumps(base64.b64encode(data).decode())
    if kind == _core.ZARR_KIND_VARRAY:
        return "[]"
    dtype = from_facts(facts, context)
    if dtype.kind == "V" and dtype.names and isinstance(value, (int, float)) and value == 0:
        element: Any = np.zeros((), dtype)
    elif dtype.kind in "Mm" and isinstance(value, (int, np.integer)):
        element = np.asarray(value, "int64").view(dtype)
    elif dtype.kind == "V" and not dtype.names and isinstance(value, (bytes, np.void)):
        plain = value.tobytes() if isinstance(value, np.void) else value
        if len(plain) > dtype.itemsize:
            raise ValueError(f"fill value {value!r} has {len(plain)} bytes, and elements of {name} {dtype.itemsize}")
        element = np.frombuffer(plain.ljust(dtype.itemsize, b"\0"), dtype)[0]
    else:
        element = np.asarray(value).astype(dtype) if np.ndim(value) == 0 and not dtype.names else np.array(value, dtype)
        _exact(value, element, dtype)
    return context.element_json(name, np.asarray(element, dtype).tobytes())


def _exact(value: Any, element: Any, dtype: np.dtype[Any]) -> None:
    """A fill value that the type does not have is an error, not another value."""
    if dtype.kind in "iu" and isinstance(value, (int, float, np.number)) and not isinstance(value, bool):
        if int(element) != value:
            raise ValueError(f"fill value {value!r} is not a value of {dtype}")


@functools.cache
def _plain_context() -> _core.Context:
    """One that knows no plug-ins in Python, which may ask it."""
    return _core.new_context({})


def parse_element(dtype: Any, value: Any) -> Any:
    """The element that metadata spell so, as they do for a data type of NumPy, `str` or `bytes`."""
    if dtype is bytes:
        return base64.b64decode(value, validate=True)
    dtype = text_dtype() if dtype is str else np.dtype(dtype).newbyteorder("=")
    if dtype == text_dtype():
        if not isinstance(value, str):
            raise ValueError(f"{value!r} is no text")
        return value
    plain = pack_dtype(dtype)
    stored = _plain_context().element(library_name(plain), json.dumps(value))
    return np.frombuffer(stored, plain)[0].astype(dtype)


def spell_element(dtype: Any, element: Any) -> Any:
    """How metadata spell an element of a data type of NumPy, `str` or `bytes`."""
    if isinstance(element, (str, bytes)) and not isinstance(element, np.generic):
        return element if isinstance(element, str) else base64.b64encode(element).decode()
    plain = pack_dtype(np.dtype(dtype).newbyteorder("="))
    return json.loads(_plain_context().element_json(library_name(plain), np.asarray(element).astype(plain).tobytes()))
