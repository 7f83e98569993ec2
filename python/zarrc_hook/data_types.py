"""What zarr-python finds by the entry points `zarr.data_type`: classes of the data types that it lacks.

zarr-python 3.4.1 and newer loads all of them when it opens its first array, also for users who never chose zarrc. As
`zarrc_hook.pipeline`, this imports neither zarrc nor NumPy nor ml_dtypes before an array has such a type. If the import fails,
`zarrc_hook.data_type` hides that.
"""
from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self

    class Base:
        _zarr_v3_name: str

    class HasEndianness(Base):
        def __init__(self, *, endianness: str = ...) -> None: ...
        endianness: str

    class HasItemSize: ...

    class RawBytes(Base):
        def __init__(self, *, length: int) -> None: ...
        length: int
        def cast_scalar(self, data: object) -> Any: ...
        def to_json(self, zarr_format: int) -> Any: ...
        def to_native_dtype(self) -> Any: ...
        def to_json_scalar(self, data: object, *, zarr_format: int) -> Any: ...
        def from_json_scalar(self, data: Any, *, zarr_format: int) -> Any: ...

    registry: Any
    Mismatch: type[ValueError]
else:
    from zarr.core.dtype.common import HasEndianness, HasItemSize
    from zarr.dtype import RawBytes
    from zarr.dtype import ZDType as Base
    from zarr.dtype import data_type_registry as registry
    try:
        from zarr.errors import DataTypeValidationError as Mismatch
    except ImportError:  # before 3.2
        from zarr.core.dtype.common import DataTypeValidationError as Mismatch


_SIZES = {  # bytes of an element, by the name in metadata, which is that in ml_dtypes
    "bfloat16": 2, "float8_e3m4": 1, "float8_e4m3": 1, "float8_e4m3b11fnuz": 1, "float8_e4m3fn": 1, "float8_e4m3fnuz": 1,
    "float8_e5m2": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1, "float6_e2m3fn": 1, "float6_e3m2fn": 1, "float4_e2m1fn": 1,
    "int2": 1, "int4": 1, "uint2": 1, "uint4": 1}
_NOT_IN_V2 = ("float8_e4m3", "float6_e2m3fn", "float6_e3m2fn", "uint2", "uint4",
              "float4_e2m1fn")  # TensorStore's v2 has it, with base64 text for the fill value


class _NativeClass:
    """The class of a NumPy type, which is imported when it is asked for."""

    def __get__(self, instance: Any, owner: Any) -> Any:
        return type(owner._native())


class Element:
    """The data types of ml_dtypes. The name of the class is that of the type."""

    __slots__ = ()
    _zarr_v3_name: str
    dtype_cls = _NativeClass()

    @classmethod
    def _native(cls) -> Any:
        from zarrc import _dtypes
        return _dtypes.find_dtype(cls._zarr_v3_name)

    @classmethod
    def _from_order(cls, is_native: bool) -> Self:
        return cls()

    @classmethod
    def from_native_dtype(cls, dtype: Any) -> Self:
        kind = dtype.type
        if kind.__name__ != cls._zarr_v3_name or kind.__module__.partition(".")[0] != "ml_dtypes" or _is_matched(dtype):
            raise Mismatch(f"{dtype} is not {cls._zarr_v3_name}")
        return cls._from_order(dtype.isnative)

    def to_native_dtype(self) -> Any:
        return self._native()

    @classmethod
    def _from_json_v3(cls, data: Any) -> Self:
        if data != cls._zarr_v3_name:
            raise Mismatch(f"{data!r} is not {cls._zarr_v3_name}")
        return cls()

    @classmethod
    def _from_json_v2(cls, data: Any) -> Self:
        name = data.get("name") if isinstance(data, dict) else data
        if cls._zarr_v3_name in _NOT_IN_V2:
            raise Mismatch(f"{data!r} is no data type of Zarr v2")
        return cls._from_json_v3(name)

    def to_json(self, zarr_format: int) -> Any:
        if zarr_format == 3:
            return self._zarr_v3_name
        if self._zarr_v3_name in _NOT_IN_V2:
            raise ValueError(f"zarr-python has no {self._zarr_v3_name} in Zarr v2: use zarr_format=3")
        return {"name": self._zarr_v3_name, "object_codec_id": None}

    @property
    def item_size(self) -> int:
        return _SIZES[self._zarr_v3_name]

    def _check_scalar(self, data: object) -> bool:
        try:
            self.cast_scalar(data)
        except TypeError:
            return False
        return True

    def cast_scalar(self, data: object) -> Any:
        from zarrc import _one_codec
        return _one_codec.cast_element(self.to_native_dtype(), data)

    def default_scalar(self) -> Any:
        import numpy as np
        return np.zeros((), self.to_native_dtype())[()]

    def from_json_scalar(self, data: Any, *, zarr_format: int) -> Any:
        from zarrc import _dtypes
        return _dtypes.parse_element(self.to_native_dtype(), data)

    def to_json_scalar(self, data: object, *, zarr_format: int) -> Any:
        from zarrc import _dtypes
        return _dtypes.spell_element(self.to_native_dtype(), self.cast_scalar(data))


class SmallElement(Element, HasItemSize, Base):
    """A data type of one byte."""


class LargeElement(Element, HasEndianness, HasItemSize, Base):
    """A data type with a byte order in memory."""

    @classmethod
    def _from_order(cls, is_native: bool) -> Self:
        return cls(endianness=sys.byteorder if is_native else "big" if sys.byteorder == "little" else "little")

    def to_native_dtype(self) -> Any:
        dtype = self._native()
        return dtype if self.endianness == sys.byteorder else dtype.newbyteorder("S")


class RawBits(RawBytes):
    """Raw bytes under the name of the specification: r8, r16 and so on. zarr-python's own class matches the NumPy type."""

    _zarr_v3_name = "r*"

    @classmethod
    def from_native_dtype(cls, dtype: Any) -> Self:
        raise Mismatch(f"{dtype} is raw_bytes in zarr-python")

    @classmethod
    def _from_json_v2(cls, data: Any) -> Self:
        raise Mismatch(f"{data!r} is raw_bytes in zarr-python")

    @classmethod
    def _from_json_v3(cls, data: Any) -> Self:
        match = re.fullmatch(r"r([1-9]\d{0,9})", data) if isinstance(data, str) else None
        if match is None or int(match[1]) % 8:
            raise Mismatch(f"{data!r} is not r8, r16, r24 or more")
        return cls(length=int(match[1]) // 8)

    def to_json(self, zarr_format: int) -> Any:
        return f"r{8 * self.length}" if zarr_format == 3 else super().to_json(zarr_format)

    def from_json_scalar(self, data: Any, *, zarr_format: int) -> Any:
        from zarrc import _dtypes
        return _dtypes.parse_element(self.to_native_dtype(), data)

    def to_json_scalar(self, data: object, *, zarr_format: int) -> Any:
        if zarr_format == 2:
            return super().to_json_scalar(data, zarr_format=2)
        return list(self.cast_scalar(data).tobytes())


def _make_class(name: str, size: int) -> Any:
    base: Any = SmallElement if size == 1 else LargeElement
    return type(base)(name, (base,), {"__slots__": (), "_zarr_v3_name": name, "__module__": __name__, "__doc__": f"The data type {name}."})


CLASSES: dict[str, Any] = {**{name: _make_class(name, size) for name, size in _SIZES.items()}, "RawBits": RawBits}
globals().update(CLASSES)


def _is_matched(dtype: Any) -> bool:
    """Whether a class of zarr-python or of another package matches a NumPy type."""
    for cls in list(registry.contents.values()):
        if cls.__module__ != __name__:
            try:
                cls.from_native_dtype(dtype)
            except Exception:  # it matches another type
                continue
            return True
    return False


def choose(name: str) -> Any:
    """The class of an entry point: the one that zarr-python has under the name, or ours."""
    cls = CLASSES[name]
    return registry.contents.get(cls._zarr_v3_name, cls)


def register() -> None:
    """Registers what entry points have not: those of `zarr.data_type` are for zarr-python 3.4.1 and newer."""
    for name, cls in CLASSES.items():
        if cls._zarr_v3_name not in registry.contents:
            registry.register(cls._zarr_v3_name, cls)
