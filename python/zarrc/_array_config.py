"""How handles of arrays read and write, and their metadata as a mapping."""
from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from . import _core, _libraries
from ._settings import TRUST, choice, settings

if TYPE_CHECKING:
    from ._types import ConfigLike, LikeLike


@dataclass(frozen=True)
class ArrayConfig:
    """How a handle reads and writes; not part of the metadata."""

    order: str = "C"
    write_empty_chunks: bool = False
    read_missing_chunks: bool = True
    trust: str | None = None  # None: that of `zarrc.config` when the store was opened
    like: Any = None  # whose arrays reads return; None: that of `zarrc.config` when the array was opened

    @classmethod
    def of(cls, given: ConfigLike) -> ArrayConfig:
        """From a dict, zarr-python's ArrayConfig, or the settings of `zarrc.config`."""
        if isinstance(given, cls):
            return given if given.like is None or isinstance(given.like, _libraries.Like) else given.for_library(given.like)
        values = settings.values
        defaults = _make_config(values["array.order"], values["array.write_empty_chunks"], values["array.read_missing_chunks"])
        if given is None:
            return defaults
        names = cls.__dataclass_fields__
        if not isinstance(given, Mapping):
            given = {name: getattr(given, name) for name in names if hasattr(given, name)}
        unknown = set(given) - set(names)
        if unknown:
            raise TypeError(f"config: unknown {', '.join(sorted(unknown))}; there are {', '.join(names)}")
        return cls.of(replace(defaults, **given))

    def inherit(self, other: ArrayConfig) -> ArrayConfig:
        """The same, with `like` and `trust` of another one where this one does not say them."""
        return replace(self, like=other.like if self.like is None else self.like, trust=other.trust if self.trust is None else self.trust)

    def for_library(self, like: LikeLike) -> ArrayConfig:
        """The same with `like` in its final form; None changes nothing."""
        found = _libraries.check_like(like)
        return self if found is None else replace(self, like=_libraries.aim(found, settings["device"]))

    def library(self) -> _libraries.Like | None:
        """Whose arrays a handle that is opened now returns; None: NumPy's own."""
        like: _libraries.Like | None = settings.like() if self.like is None else self.like
        return None if like == _libraries.NUMPY else like

    def options(self) -> dict[str, Any]:
        """As the library takes it."""
        return {"empty_chunks": _core.ZARR_EMPTY_CHUNKS_WRITE if self.write_empty_chunks else _core.ZARR_EMPTY_CHUNKS_SKIP,
                "missing_chunks": _core.ZARR_MISSING_FILL if self.read_missing_chunks else _core.ZARR_MISSING_ERROR,
                "trust": choice("trust", TRUST, self.trust)}


_make_config = lru_cache(8)(ArrayConfig)  # every opening asks for the same one


class Metadata(Mapping[str, Any]):
    """The metadata document of a node, as a mapping that is read-only."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    def __getitem__(self, name: str) -> Any:
        return self._document[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._document)

    def __len__(self) -> int:
        return len(self._document)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_document"][name]
        except KeyError:
            raise AttributeError(name) from None

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(json.dumps(self._document))
        return found

    def __repr__(self) -> str:
        return f"Metadata({self._document!r})"
