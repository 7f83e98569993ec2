"""Attributes of nodes, as a mapping."""
from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ._node import Node


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


class Attributes(MutableMapping[str, Any]):
    """The attributes of an array or a group. A change is written at once, and keeps what others
    have changed; values are copies."""

    __slots__ = ("_node",)

    def __init__(self, node: Node) -> None:
        self._node = node

    def asdict(self) -> dict[str, Any]:
        """All attributes."""
        found: dict[str, Any] = json.loads(self._node._attributes_text)
        return found

    def __getitem__(self, name: str) -> Any:
        return self.asdict()[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._node._attribute(name, to_json(value))

    def __delitem__(self, name: str) -> None:
        if name not in self.asdict():
            raise KeyError(name)
        self._node._attribute(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self.asdict())

    def __len__(self) -> int:
        return len(self.asdict())

    def put(self, values: Mapping[str, Any]) -> None:
        """Replaces all attributes."""
        self._node._attribute(None, to_json(dict(values)), True)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Sets several attributes in one step."""
        values = dict(*args, **kwargs)
        if values:
            self._node._attribute(None, to_json(values), False)

    def refresh(self) -> None:
        """Reads the metadata again, if the node can."""
        if hasattr(self._node, "refresh"):
            self._node.refresh()

    def __repr__(self) -> str:
        return repr(self.asdict())
