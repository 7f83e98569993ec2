"""Codecs in metadata: as the parts of an array, and as users give them. Codecs themselves are in the
library; here they are names with configurations."""
from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import _core

_ARRAY_TO_ARRAY, _ARRAY_TO_BYTES = "array to array", "array to bytes"


@dataclass(frozen=True)
class Codec:
    """A codec of an array: its name and configuration, whose members are attributes, too. It can be given to
    `create_array`."""

    name: str
    configuration: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        out: dict[str, Any] = {"name": self.name}
        if self.configuration:
            out["configuration"] = dict(self.configuration)
        return out

    def get_config(self) -> dict[str, Any]:
        """As numcodecs has it."""
        return {"id": self.name, **self.configuration}

    def __getattr__(self, name: str) -> Any:
        """Members of the configuration, and the name as numcodecs has it."""
        configuration = self.__dict__.get("configuration", {})  # an object that is being copied has none yet
        if name in configuration:
            return configuration[name]
        if name == "codec_id" and "name" in self.__dict__:
            return self.name
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def __hash__(self) -> int:
        return hash(json.dumps(self.to_dict(), sort_keys=True))

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{k}={v!r}' for k, v in self.configuration.items())})"


def of_v3(entry: Any) -> Codec:
    return Codec(entry) if isinstance(entry, str) else Codec(entry["name"], entry.get("configuration") or {})


def of_v2(entry: Mapping[str, Any]) -> Codec:
    return Codec(entry["id"], {k: v for k, v in entry.items() if k != "id"})


def kinds(context: _core.Context) -> dict[str, str]:
    """What each codec turns into what, by name."""
    return {row["name"]: row["detail"] for row in context.registry(_core.ZARR_REGISTRY_CODEC)}


def split(context: _core.Context, codecs: list[Any]) -> tuple[tuple[Codec, ...], Codec | None, tuple[Codec, ...]]:
    """(filters, serializer, compressors) of a chain of v3."""
    known = kinds(context)
    parts = [of_v3(one) for one in codecs]
    for i, codec in enumerate(parts):
        if not known.get(codec.name, _ARRAY_TO_BYTES).startswith(_ARRAY_TO_ARRAY):
            return tuple(parts[:i]), codec, tuple(parts[i + 1:])
    return tuple(parts), None, ()


# ---- as users give them ----


def codec_entry(codec: Any, zarr_format: int) -> dict[str, Any]:
    """One codec: ours, zarr-python's or numcodecs', its dict, or its name."""
    if isinstance(codec, str):
        return {"name": codec} if zarr_format == 3 else {"id": codec}
    if isinstance(codec, Mapping):
        return _spell(dict(codec), zarr_format)
    if isinstance(codec, Codec):
        return codec.to_dict() if zarr_format == 3 else codec.get_config()
    if hasattr(codec, "to_dict"):
        entry = _json(codec.to_dict())
        for name in getattr(codec, "_tunable_attrs", ()):  # zarr-python's guesses until it knows the data type
            entry.get("configuration", {}).pop(name, None)
        return _spell(entry, zarr_format)
    if hasattr(codec, "get_config"):
        return _spell(_json(codec.get_config()), zarr_format)
    raise TypeError(f"{codec!r} is not a codec: give its name, a dict, or an object of zarr-python or numcodecs")


def _json(value: Any) -> dict[str, Any]:
    """Without tuples and enumerations."""
    out: dict[str, Any] = json.loads(json.dumps(value, default=lambda one: getattr(one, "value", str(one))))
    return out


def _spell(entry: dict[str, Any], zarr_format: int) -> dict[str, Any]:
    if zarr_format == 2:
        if "id" in entry:
            return entry
        return {"id": entry["name"].removeprefix("numcodecs."), **(entry.get("configuration") or {})}
    if "name" in entry:
        return entry
    if "id" not in entry:
        raise ValueError(f"{entry!r} has no name")
    configuration = {k: v for k, v in entry.items() if k != "id"}
    return {"name": f"numcodecs.{entry['id']}", "configuration": configuration}


def several(codecs: Any, zarr_format: int) -> list[dict[str, Any]] | None:
    """A list of codecs; None: the default is wanted."""
    if isinstance(codecs, str) and codecs == "auto":
        return None
    if codecs is None:
        return []
    if isinstance(codecs, (str, Mapping)) or not isinstance(codecs, Iterable):
        codecs = [codecs]
    return [codec_entry(one, zarr_format) for one in codecs]
