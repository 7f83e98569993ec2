"""`zarrc.dtype`: what the library knows about a data type, and what other packages call it."""
from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core, _dtypes
from ._settings import settings

if TYPE_CHECKING:
    from ._types import DTypeLike

_KINDS = {getattr(_core, f"ZARR_KIND_{kind.upper()}"): kind for kind in (
    "bool", "int", "uint", "float", "complex", "raw", "bytes", "utf32", "datetime", "timedelta", "struct", "string", "vbytes", "optional",
    "varray", "other")}
_NUMBERS = "bool", "int", "uint", "float", "complex"
_ORDERS = {0: sys.byteorder, _core.ZARR_ORDER_LITTLE: "little", _core.ZARR_ORDER_BIG: "big"}


class _ForwardsToZarr(type):
    """The class of a class which is a module of zarr-python, too, for programs that have `import zarrc as zarr`."""

    def __getattr__(cls, name: str) -> Any:
        if name[:1] == "_":
            raise AttributeError(name)
        try:
            import zarr.dtype as module
        except ImportError as problem:
            raise AttributeError(f"zarrc.dtype.{name} is of zarr-python, which cannot be imported ({problem}); name data types instead: "
                                 'dtype="float32"') from problem
        return getattr(module, name)


class dtype(metaclass=_ForwardsToZarr):
    """A data type of Zarr.

    Objects are equal if their types and byte orders are equal.

    Parameters
    ----------
    spec : str, dict, numpy.dtype, type or object
        A name of format 3 or 2 (``"bfloat16"``, ``"r24"``, ``">i2"``), the member `data_type` of v3 metadata, a data type of
        NumPy, ml_dtypes, torch or zarr-python, a class of `zarrc.plugins`, or another `zarrc.dtype`.

    Raises
    ------
    UnsupportedError
        No data type has the name. The message lists similar names.

    Examples
    --------
    >>> t = zarrc.dtype("bfloat16")
    >>> t.itemsize, t.kind, t.numpy
    (2, 'float', dtype(bfloat16))
    >>> zarrc.dtype(np.dtype(">i2")).to_json(zarr_format=2)
    '>i2'
    """

    def __init__(self, spec: DTypeLike) -> None:
        self._library_name = _dtypes.library_name(spec)
        self._context = settings.context()
        self._details = _dtypes.find(self._context.details, self._context, self._library_name)

    # ---- names ----

    @property
    def name(self) -> str | None:
        """The name in v3 metadata, without the configuration. None: format 3 has no such type."""
        return self._details["v3_name"]  # type: ignore[no-any-return]

    @property
    def configuration(self) -> dict[str, Any]:
        """The configuration in v3 metadata."""
        return json.loads(self._details["configuration"] or "{}")  # type: ignore[no-any-return]

    def to_json(self, zarr_format: int = 3) -> Any:
        """The data type as metadata of a format have it: a text, a dict (v3) or a list (v2). None: the format has no such type."""
        _, v2, v3, _, _ = self._details["facts"]
        if zarr_format == 3:
            return json.loads(v3) if v3 else None
        if self.kind == "struct":
            return self._fields() or json.loads(v2)
        return f">{v2[1:]}" if v2 and v2[0] == "<" and self.byte_order == "big" else v2

    def _fields(self) -> list[Any] | None:
        """The list of fields that a struct was named by, with their byte orders."""
        return json.loads(self._library_name) if self._library_name[0] == "[" else None

    @property
    def is_experimental(self) -> bool:
        """Whether Zarr's registry of data types calls it experimental, or does not have it."""
        return self._details["is_experimental"]  # type: ignore[no-any-return]

    # ---- elements ----

    @property
    def kind(self) -> str:
        """What elements are: "bool", "int", "uint", "float", "complex", "raw", "bytes" and "utf32" (text of fixed length),
        "datetime", "timedelta", "struct", "string", "vbytes" (bytes of any length), "optional", "varray" (lists), "other"."""
        return _KINDS.get(self._details["facts"][3], "other")

    @property
    def itemsize(self) -> int:
        """Bytes of an element in memory; of any length: those of its address and length."""
        return self._details["facts"][4]  # type: ignore[no-any-return]

    @property
    def item_bits(self) -> int:
        """Significant bits of an element: 4 for int4."""
        return self._details["item_bits"]  # type: ignore[no-any-return]

    @property
    def components(self) -> int:
        """Numbers of an element: 2 for complex128."""
        return self._details["components"]  # type: ignore[no-any-return]

    @property
    def component_bits(self) -> int:
        """Significant bits of one of these numbers."""
        return self._details["component_bits"]  # type: ignore[no-any-return]

    @property
    def byte_order(self) -> str | None:
        """The byte order of elements in memory, "little" or "big". None: they have none, or those of fields differ."""
        if self._details["swap_bytes"] <= 1 and self.kind != "struct":
            return None
        return _ORDERS.get(self._details["byte_order"])

    @property
    def serializer(self) -> str:
        """The codec that turns elements into bytes in arrays which are created without codecs."""
        return self._details["codec"]  # type: ignore[no-any-return]

    @property
    def fill_value(self) -> Any:
        """The fill value of arrays which are created without one."""
        if self.kind in ("string", "vbytes", "varray"):
            return "" if self.kind == "string" else b""
        return _default(self.numpy.newbyteorder("="))[()]

    @property
    def item_type(self) -> dtype | None:
        """The type of the elements of lists, or None."""
        return dtype(self._details["item"]) if self._details["item"] else None

    @property
    def underlying_type(self) -> dtype | None:
        """The type of the values of an optional type, or None."""
        return dtype(self._details["underlying"]) if self._details["underlying"] else None

    # ---- other packages ----

    @property
    def numpy(self) -> np.dtype[Any]:
        """NumPy's data type of arrays with such elements. If NumPy and ml_dtypes have none, elements are opaque (``V3``).
        UnsupportedError: it needs the package ml_dtypes."""
        if fields := self._fields():
            return _dtypes.from_fields(fields)
        found = _dtypes.from_facts(self._details["facts"], self._context)
        return found if self.byte_order in (None, sys.byteorder) else found.newbyteorder("S")

    @property
    def ml_dtypes(self) -> type | None:
        """The class of ml_dtypes, or None. UnsupportedError: it needs the package."""
        found = self.numpy.type
        return found if found.__module__.partition(".")[0] == "ml_dtypes" else None

    @property
    def torch(self) -> Any:
        """The data type of torch, or None if torch has none. ImportError: torch is missing."""
        import torch
        found = getattr(torch, self.name or "", None) if self.kind in _NUMBERS and self.item_bits >= 8 else None
        return found if isinstance(found, torch.dtype) else None

    @property
    def arrow(self) -> Any:
        """The data type of pyarrow, or None if Arrow has none. ImportError: pyarrow is missing."""
        import pyarrow
        if self.kind in ("string", "vbytes", "raw"):
            return pyarrow.string() if self.kind == "string" else pyarrow.binary(-1 if self.kind == "vbytes" else self.itemsize)
        if self.kind == "optional":
            return self.underlying_type.arrow if self.underlying_type else None
        if self.kind == "varray":
            inner = self.item_type.arrow if self.item_type else None
            return None if inner is None else pyarrow.list_(inner)
        numpy = self.numpy.newbyteorder("=")
        if self.kind not in (*_NUMBERS, "datetime", "timedelta") or numpy.kind in "Mm" and np.datetime_data(numpy)[1] != 1:
            return None
        try:
            return pyarrow.from_numpy_dtype(numpy)
        except pyarrow.ArrowNotImplementedError:
            return None

    # ---- objects ----

    def _same(self) -> tuple[Any, ...]:
        has_mixed_fields = self.kind == "struct" and self.byte_order is None
        v2, name = self._details["facts"][1], self._details["name"]
        # r24 and raw_bytes[3] are one type
        return v2 if self.kind == "raw" or not name else name, self.byte_order, self._library_name if has_mixed_fields else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, dtype) and self._same() == other._same()

    def __hash__(self) -> int:
        return hash(self._same())

    def __reduce__(self) -> tuple[Any, ...]:
        return dtype, (self._library_name,)

    def __repr__(self) -> str:
        name = self._details["name"]
        if not name or self.byte_order not in (None, sys.byteorder) or self.kind == "struct":
            return f"zarrc.dtype({self.to_json(2)!r})"
        return f"zarrc.dtype({self.to_json() if name[0] == '{' else name!r})"


dtype.__module__ = "zarrc"


def _default(numpy: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An element of zeros, whose times are NaT."""
    element = np.zeros((), numpy)
    for name in numpy.names or ():
        element[name] = _default(numpy[name].base)
    return np.array("NaT", numpy) if numpy.kind in "Mm" else element
