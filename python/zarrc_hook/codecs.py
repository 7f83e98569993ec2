"""What zarr-python finds by the entry points `zarr.codecs`: classes of the codecs that it lacks.

zarr-python imports this when an array has one of these codecs. zarrc is imported when the codec is checked, encodes or
decodes. With `zarrc.enable`, arrays with these codecs are read and written in one call of the library.
"""
from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self

    class ArrayArrayCodec: ...
    class ArrayBytesCodec: ...
    class BytesBytesCodec: ...
else:
    try:
        from zarr.abc.codec import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec
    except Exception:  # another zarr than we know: it fails when a codec is chosen, and not before
        class ArrayArrayCodec: pass  # noqa: E701
        class ArrayBytesCodec: pass  # noqa: E701
        class BytesBytesCodec: pass  # noqa: E701


class OneCodec:
    """A codec by the library: its name and configuration."""

    name: str
    kind: str
    is_fixed_size = False
    configuration: dict[str, Any]
    text: str

    def __init__(self, **configuration: Any) -> None:
        text = json.dumps({"name": self.name, "configuration": configuration}, sort_keys=True)
        self.__dict__.update(configuration=configuration, text=text)  # zarr-python's codecs are frozen

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        return cls(**(data.get("configuration") or {}))

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "configuration": dict(self.configuration)} if self.configuration else {"name": self.name}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OneCodec) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{k}={v!r}' for k, v in self.configuration.items())})"

    def validate(self, *, shape: tuple[int, ...], dtype: Any, **unused: Any) -> None:
        """Checks the configuration, for the data type and the number of dimensions."""
        from zarrc import _one_codec
        _one_codec.check(self, shape, dtype)

    def resolve_metadata(self, chunk_spec: Any) -> Any:
        return chunk_spec

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        raise NotImplementedError

    def _decode_sync(self, chunk_data: Any, chunk_spec: Any) -> Any:
        from zarrc import _one_codec
        return _one_codec.decode(self, chunk_data, chunk_spec)

    def _encode_sync(self, chunk_data: Any, chunk_spec: Any) -> Any:
        from zarrc import _one_codec
        return _one_codec.encode(self, chunk_data, chunk_spec)

    async def _decode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        return await asyncio.to_thread(self._decode_sync, chunk_data, chunk_spec)

    async def _encode_single(self, chunk_data: Any, chunk_spec: Any) -> Any:
        return await asyncio.to_thread(self._encode_sync, chunk_data, chunk_spec)


class ArrayCodec(OneCodec, ArrayArrayCodec):
    kind = "array"

    def resolve_metadata(self, chunk_spec: Any) -> Any:
        from zarrc import _one_codec
        return _one_codec.resolve(self, chunk_spec)


class Serializer(OneCodec, ArrayBytesCodec):
    kind = "serializer"


class BytesCodec(OneCodec, BytesBytesCodec):
    kind = "bytes"


# cast_value and scale_offset are for zarr-python before 3.2.
_NAMES = {ArrayCodec: "bitround reshape zarrs.squeeze cast_value scale_offset",
          Serializer: "packbits zfp zarrs.zfp n5_default zarrs.vlen zarrs.vlen_v2 vlen-array numcodecs.vlen-array numcodecs.vlen-utf8 "
                      "numcodecs.vlen-bytes",
          BytesCodec: "snappy numcodecs.base64 conditional zarrs.gdeflate"}


def _make_class(base: Any, name: str) -> Any:
    told = "".join(part[:1].upper() + part[1:] for part in re.split(r"[\W_]", name))
    # zarr-python allows text only with a codec whose class has this name.
    cls = type(base)("VLenUTF8Codec" if "vlen" in name else told, (base,), {"name": name, "__doc__": f"The codec {name}."})
    cls.__module__, cls.__qualname__ = __name__, told
    return cls


CLASSES: dict[str, Any] = {cls.__qualname__: cls for base, names in _NAMES.items()
                           for cls in (_make_class(base, name) for name in names.split())}
globals().update(CLASSES)


def _find_registry() -> Any:
    """zarr-python's registries of codecs, by the codec's name."""
    from zarr import codecs, registry  # noqa: F401 - the import of zarr.codecs registers zarr-python's own
    return getattr(registry, "_codec_registries", None) or getattr(registry, "__codec_registries")


def _find_other(name: str) -> Any:
    """The class that zarr-python or another package has for a codec; None: there is none."""
    try:
        there = _find_registry().get(name)
        for cls in reversed(list(there.values())):
            return cls
        for point in there.lazy_load_list:
            if not point.value.startswith("zarrc_hook."):
                return point.load()
    except Exception:  # another zarr than we know, or a package that does not load
        pass
    return None


class _Choice:
    """What the entry points name: for each class, the one that another package has for the codec, or ours."""

    def __getattr__(self, name: str) -> Any:
        if name not in CLASSES:
            raise AttributeError(name)
        return _find_other(CLASSES[name].name) or CLASSES[name]


choose = _Choice()


def register() -> None:
    """Registers what is not found by entry points."""
    from zarr.registry import register_codec
    registries = _find_registry()
    for cls in CLASSES.values():
        there = registries.get(cls.name)
        if not there and not getattr(there, "lazy_load_list", ()):
            register_codec(cls.name, cls)
