"""What arrays and groups have in common: a place in a store, and attributes."""
from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ._attrs import Attributes, to_json

if TYPE_CHECKING:
    from ._store import Store

_N = TypeVar("_N", bound="Node")


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
        from ._consolidation import change
        with change(self.store, self.path):
            self._attribute(name, value, is_all)

    def __enter__(self: _N) -> _N:
        return self

    def __exit__(self, *unused: object) -> None:
        self.store.close()
