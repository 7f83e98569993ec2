"""How handles of arrays read and write, and their metadata as a mapping."""
from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from . import _core, _libraries
from ._settings import CONTROLS, call_options, list_near, settings

if TYPE_CHECKING:
    from ._types import ConfigLike, LikeLike


@dataclass(frozen=True)
class ArrayConfig:
    """Run-time options of an array handle. They are not stored in the metadata. None: the setting, when the array was opened.

    Attributes
    ----------
    order : {"C", "F"}
        The order of elements in new arrays that reads return.
    write_empty_chunks : bool
        Whether chunks of fill values are stored.
    read_missing_chunks : bool
        Whether missing chunks read as the fill value; else they are an error.
    trust : {"verified", "full", "none"} or None
        When decoders that do not check their input may be used.
    like : array, class, or str, or None
        Whose arrays reads return.
    wave_bytes : int or str, or None
        Maximum decoded bytes that a call handles in one step.
    memory_bytes : int or str, or None
        Maximum bytes of the buffers of one call.
    pipeline : str or None
        How requests are carried out: "waves", "serial", or the pipeline of a plug-in.
    codec_preference : str or None
        Preferred implementations of codecs, such as "zstd=cpu.libzstd".
    coalesce_gap, coalesce_bytes : int or str, or None
        Reads of shards: chunks with a gap of at most so many bytes are fetched together, and at most so many bytes of them.
    """

    order: str = "C"
    write_empty_chunks: bool = False
    read_missing_chunks: bool = True
    trust: str | None = None
    like: Any = None
    wave_bytes: int | str | None = None
    memory_bytes: int | str | None = None
    pipeline: str | None = None
    codec_preference: str | None = None
    coalesce_gap: int | str | None = None
    coalesce_bytes: int | str | None = None

    def __post_init__(self) -> None:
        for name, control in CONTROLS.items():
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, control.check(name, value))

    @classmethod
    def of(cls, given: ConfigLike) -> ArrayConfig:
        """From a dict, zarr-python's ArrayConfig, or the settings of `zarrc.config`."""
        if isinstance(given, cls):
            return given if given.like is None or isinstance(given.like, _libraries.Like) else given.for_library(given.like)
        values = settings.values
        defaults = _make_config(values["array.order"], values["array.write_empty_chunks"], values["array.read_missing_chunks"],
                                coalesce_gap=values["coalesce_gap"], coalesce_bytes=values["coalesce_bytes"])
        if given is None:
            return defaults
        names = cls.__dataclass_fields__
        if not isinstance(given, Mapping):
            given = {name: getattr(given, name) for name in names if hasattr(given, name)}
        unknown = set(given) - set(names)
        if unknown:
            raise TypeError(f"config: unknown {', '.join(sorted(unknown))}; {list_near(min(unknown), names)}")
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
                **call_options({name: getattr(self, name) for name in ("trust", "pipeline", "codec_preference")})}

    def tuning(self) -> tuple[int, int, int, int]:
        """What the library takes with each call."""
        wave, memory, gap, most = (int(getattr(self, name) or 0) for name in ("wave_bytes", "memory_bytes", "coalesce_gap", "coalesce_bytes"))
        return wave, memory, gap, most


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
