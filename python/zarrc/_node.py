"""What arrays and groups have in common: a place in a store, and attributes as a mapping."""
from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ._consolidation import change
from ._store import Store

_N = TypeVar("_N", bound="Node")


def _plain(value: Any) -> Any:
    """What JSON has no words for: scalars and arrays of NumPy."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{value!r} of type {type(value).__name__} cannot be an attribute: it is not JSON")


def to_json(value: Any) -> str:
    return json.dumps(value, default=_plain, ensure_ascii=False)


_WORDS = ('"NaN"', '"Infinity"', '"-Infinity"')


def _as_stored(value: Any, stored: Any) -> Any:
    """The value, with a number where `stored` has one of the words without quotes."""
    if isinstance(value, str) and isinstance(stored, float) and json.dumps(stored) == value:
        return stored
    if isinstance(value, dict) and isinstance(stored, dict):
        return {name: _as_stored(one, stored.get(name)) for name, one in value.items()}
    if isinstance(value, list) and isinstance(stored, list) and len(value) == len(stored):
        return [_as_stored(one, other) for one, other in zip(value, stored)]
    return value


class Attributes(MutableMapping[str, Any]):
    """The attributes of an array or a group. A change is written at once, and keeps what others
    have changed; values are copies."""

    __slots__ = ("_node", "_stored")

    def __init__(self, node: Node) -> None:
        self._node = node
        self._stored: tuple[str, bytes | None] | None = None

    def asdict(self) -> dict[str, Any]:
        """All attributes."""
        text = self._node._attributes_text
        found: dict[str, Any] = json.loads(text)
        if any(word in text for word in _WORDS):
            found = _as_stored(found, self._document(text))
        return found

    def _document(self, text: str) -> Any:
        """The attributes as they are stored. The library gives JSON, where NaN and Infinity can only be texts, and
        other programs in Python store them as numbers."""
        node = self._node
        if self._stored is None or self._stored[0] != text:
            name = ".zattrs" if node.zarr_format == 2 else "zarr.json"
            self._stored = text, node.store.get(f"{node.path}/{name}" if node.path else name)
        try:
            document = json.loads(self._stored[1] or b"{}")
        except ValueError:  # another program replaced it by what is not JSON
            return {}
        return document if node.zarr_format == 2 or not isinstance(document, dict) else document.get("attributes")

    def _change(self, name: str | None, value: str | None, is_all: bool = False) -> None:
        self._stored = None
        self._node._change_attribute(name, value, is_all)

    def __getitem__(self, name: str) -> Any:
        return self.asdict()[name]

    def __setitem__(self, name: str, value: object) -> None:
        self._change(name, to_json(value))

    def __delitem__(self, name: str) -> None:
        if name not in self.asdict():
            raise KeyError(name)
        self._change(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self.asdict())

    def __len__(self) -> int:
        return len(self.asdict())

    def put(self, values: Mapping[str, Any]) -> None:
        """Replaces all attributes."""
        self._change(None, to_json(dict(values)), True)

    def update(self, *args: Any, **kwargs: object) -> None:
        """Sets several attributes in one step."""
        values = dict(*args, **kwargs)
        if values:
            self._change(None, to_json(values), False)

    def refresh(self) -> None:
        """Reads the metadata again, if the node can."""
        if hasattr(self._node, "refresh"):
            self._node.refresh()

    def __repr__(self) -> str:
        return repr(self.asdict())


class Node:
    """The part of Array and Group that is the same. The types of the extension bring what it uses."""

    __slots__ = ()

    if TYPE_CHECKING:
        @property
        def path(self) -> str: ...
        @property
        def store(self) -> Store: ...
        @property
        def zarr_format(self) -> int: ...
        @property
        def _attributes_text(self) -> str: ...
        def _attribute(self, name: str | None, value: str | None, is_all: bool = ..., /) -> None: ...

    @property
    def name(self) -> str:
        """The path with a slash before it."""
        return f"/{self.path}"

    @property
    def basename(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def store_path(self) -> str:
        """The store and the path in it, as text."""
        return f"{self.store}/{self.path}".rstrip("/")

    @property
    def read_only(self) -> bool:
        """Whether writes are refused."""
        return self.store.read_only

    @property
    def attrs(self) -> Attributes:
        """The attributes. A change is written at once."""
        return Attributes(self)

    def update_attributes(self: _N, new_attributes: Mapping[str, Any]) -> _N:
        """Sets attributes in one step; others stay."""
        self._change_attribute(None, to_json(dict(new_attributes)), False)
        return self

    def _change_attribute(self, name: str | None, value: str | None, is_all: bool) -> None:
        with change(self.store, self.path):
            self._attribute(name, value, is_all)

    def __enter__(self: _N) -> _N:
        return self

    def __exit__(self, *unused: object) -> None:
        self.store.close()
