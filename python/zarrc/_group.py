"""Groups: the members of a hierarchy."""
from __future__ import annotations

import contextvars
import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

import numpy as np

from . import _array, _consolidation, _core, _create, _dtypes, _libraries
from ._aio import AsyncGroupBase, run_on_thread, wrap
from ._array import Array, AsyncArray
from ._array_config import ArrayConfig, Metadata
from ._indexing import is_foreign
from ._node import Node, to_json
from ._places import Place, join_path
from ._settings import settings
from .errors import ArrayNotFoundError, ExistsError, GroupNotFoundError, NodeNotFoundError, NotFoundError, ZarrcError, as_class, in_store

if TYPE_CHECKING:
    from typing import Unpack

    from . import _arguments
    from ._info import Info, Tree
    from ._types import ArrayLike, ConfigLike, DTypeLike, FillValue, LikeLike, ShapeLike

_Member = TypeVar("_Member", bound=Node)
_Opened = TypeVar("_Opened", bound=Node)
_Default = TypeVar("_Default")


_AT_ONCE = 32  # members that are opened together


def _levels(max_depth: int | None) -> int:
    """zarr-python's 0 is the members alone, and None is all. The library's 0 is all."""
    if max_depth is not None and max_depth < 0:
        raise ValueError(f"max_depth: {max_depth} is negative; None is all")
    return 0 if max_depth is None else max_depth + 1


class _Row(NamedTuple):
    """A member in a listing."""

    path: str  # below the group
    kind: int
    document: str | None  # of an array that it describes alone; None: to open the member is to read it


class Group(Node, _core.Group):
    """A Zarr group: arrays and groups by their names, and attributes. `open_group` and `create_group` make one.

    ``g["a/b"]`` opens a member. A group with consolidated metadata answers from it.

    Attributes
    ----------
    path : str
        Path of the group in its store.
    attrs : Attributes
        The attributes. A change is written at once.
    store : Store
        The store of the group.

    Examples
    --------
    >>> root = zarrc.create_group("x.zarr")
    >>> z = root.create_array("raw/temp", shape=4, dtype="int8")
    >>> root["raw/temp"].shape
    (4,)
    >>> [name for name, node in root.members(max_depth=None)]
    ['raw', 'raw/temp']
    >>> "raw" in root, "clean" in root
    (True, False)
    """

    _use_consolidated: bool | str | None
    _config: Any = None  # of the arrays below, that of `zarrc.config` if it is None

    # ---- what it is ----

    @property
    def metadata(self) -> Metadata:
        return Metadata(json.loads(self._metadata_text))

    @property
    def synchronizer(self) -> None:
        """None: writers of one key wait for each other by themselves."""
        return None

    @property
    def async_group(self) -> AsyncGroup:
        """The same group for asyncio."""
        return AsyncGroup(self)

    # ---- members ----

    def _child(self, path: str) -> str:
        return "/".join(part for part in (self.path, path.strip("/")) if part)

    def _place(self, path: str) -> Place:
        return Place(self.store, self._child(path))

    def _node(self, path: str, like: LikeLike = None, meta_array: LikeLike = None) -> Array | Group:
        relative = path.strip("/")
        if not relative:
            return self
        return open_node(self.store, relative, within=self, config=self._config_for(None, like, meta_array))

    def _config_for(self, config: ConfigLike = None, like: LikeLike = None, meta_array: LikeLike = None, device: str | None = None) -> ConfigLike:
        """How a member reads and writes: what a call says, else what the group was opened with."""
        wanted = _libraries.choose(like, meta_array, device, self.store._default_device)[0]
        if config is None and wanted is None:
            return self._config  # type: ignore[no-any-return]
        found = ArrayConfig.of(config).inherit(ArrayConfig.of(self._config))
        return found if wanted is None else dataclasses.replace(found, like=wanted)

    def __getitem__(self, path: str) -> Array | Group:
        if not isinstance(path, str):
            raise TypeError(f"{path!r} is not the path of a member")
        try:
            return self._node(path)
        except NotFoundError as problem:
            raise KeyError(path) from problem

    @overload
    def get(self, path: str, *, like: LikeLike = None, meta_array: LikeLike = None) -> Array | Group | None: ...
    @overload
    def get(self, path: str, default: _Default, *, like: LikeLike = None, meta_array: LikeLike = None) -> Array | Group | _Default: ...
    def get(self, path: str, default: Any = None, *, like: LikeLike = None, meta_array: LikeLike = None) -> Any:
        """A member, or `default`. ``like`` says whose arrays reads return, if not those that the group says."""
        try:
            return self._node(path, like, meta_array)
        except NotFoundError:
            return default

    def get_array(self, path: str, *, like: LikeLike = None, meta_array: LikeLike = None) -> Array:
        """Opens an array below the group. ``like`` is that of `get`."""
        try:
            return _array.open_in_store(self.store, path.strip("/"), within=self, config=self._config_for(None, like, meta_array))
        except NotFoundError as problem:
            raise as_class(ArrayNotFoundError, problem) from None

    def get_group(self, path: str) -> Group:
        """Opens a group below the group."""
        return open_in_store(self.store, path.strip("/"), within=self, config=self._config)

    def __setitem__(self, name: str, value: ArrayLike) -> None:
        """Creates an array of the value, or replaces one."""
        self.create_array(name, data=value if is_foreign(value) else np.asarray(value), overwrite=True)

    def __delitem__(self, name: str) -> None:
        path = self._child(name)
        try:
            _consolidation.delete(self.store, path)
        except NotFoundError as problem:
            raise KeyError(name) from problem

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def __iter__(self) -> Iterator[str]:
        return self.keys()

    def __len__(self) -> int:
        return self.nmembers()

    def __bool__(self) -> bool:
        return True

    def _rows(self, max_depth: int | None = 0, kind: int = 0) -> list[_Row]:
        """The members, damaged ones left out."""
        skip = len(self.path) + 1 if self.path else 0
        whole = (_core.ZARR_NODE_ARRAY, 0 if self._is_consolidated else 3)  # format 2 has the attributes in another document
        return [_Row(path[skip:], found, document if (found, zarr_format) == whole else None)
                for path, _, document, found, zarr_format, _ in self._members(_levels(max_depth))
                if found in ((kind,) if kind else (_core.ZARR_NODE_ARRAY, _core.ZARR_NODE_GROUP))]

    def keys(self) -> Iterator[str]:
        """The names of the direct members."""
        return (row.path for row in self._rows())

    def _open_row(self, row: _Row) -> tuple[str, Any]:
        return row.path, self.get_array(row.path) if row.kind == _core.ZARR_NODE_ARRAY else self.get_group(row.path)

    def _open_rows(self, rows: list[_Row]) -> Iterator[tuple[str, Any]]:
        """Opens members: arrays of format 3 with the documents that the listing has read."""
        config = ArrayConfig.of(self._config)
        options = {**config.options(), "flags": _core.ZARR_OPEN_STORED}
        others = self._open_unread([row for row in rows if row.document is None])
        for row in rows:
            if row.document is None:
                yield next(others)
            else:
                yield row.path, _array.open_listed(self.store, self._child(row.path), row.document, config, options)

    def _open_unread(self, rows: list[_Row]) -> Iterator[tuple[str, Any]]:
        """Opens members whose documents are read again. Each is a request if the store is far away, so many are opened at once."""
        if len(rows) < 2 or self._is_consolidated or self.store._adapter is not None or self.store._caps[1] & _core.ZARR_STORE_CAP_FAST_GET:
            yield from map(self._open_row, rows)
            return
        import concurrent.futures  # here, because it takes 0.6 ms of the time of `import zarrc`
        with concurrent.futures.ThreadPoolExecutor(_AT_ONCE, "zarrc-open") as pool:
            for i in range(0, len(rows), _AT_ONCE):
                opened = [pool.submit(contextvars.copy_context().run, self._open_row, row) for row in rows[i:i + _AT_ONCE]]
                yield from (future.result() for future in opened)

    def members(self, max_depth: int | None = 0, *, use_consolidated_for_children: bool = True) -> tuple[tuple[str, Array | Group], ...]:
        """(path, node) of the members; `max_depth` None: all below the group."""
        return tuple(self._open_rows(self._rows(max_depth)))

    def nmembers(self, max_depth: int | None = 0) -> int:
        return len(self._rows(max_depth))

    def arrays(self) -> Iterator[tuple[str, Array]]:
        return self._open_rows(self._rows(0, _core.ZARR_NODE_ARRAY))

    def array_keys(self) -> Iterator[str]:
        return (row.path for row in self._rows(0, _core.ZARR_NODE_ARRAY))

    def array_values(self) -> Iterator[Array]:
        return (array for _, array in self.arrays())

    def groups(self) -> Iterator[tuple[str, Group]]:
        return self._open_rows(self._rows(0, _core.ZARR_NODE_GROUP))

    def group_keys(self) -> Iterator[str]:
        return (row.path for row in self._rows(0, _core.ZARR_NODE_GROUP))

    def group_values(self) -> Iterator[Group]:
        return (group for _, group in self.groups())

    # ---- new members ----

    def create_group(self, name: str, *, overwrite: bool = False, attributes: Mapping[str, Any] | None = None) -> Group:
        """Creates a group below the group."""
        return create(self._place(name), overwrite=overwrite, attributes=attributes, zarr_format=self.zarr_format, config=self._config)

    def require_group(self, name: str, *, overwrite: bool = False, attributes: Mapping[str, Any] | None = None) -> Group:
        """Opens a group, which is created if it is missing."""
        if overwrite:
            return self.create_group(name, overwrite=True, attributes=attributes)
        found = self.get(name)
        if isinstance(found, Array):
            raise TypeError(f"{found.name} is an array, not a group")
        if found is not None:
            return found
        return _create.open_or_create(lambda: self._add_unlisted(open_in_store(self.store, self._child(name), use_consolidated=False, config=self._config)),
                                      lambda: self.create_group(name, attributes=attributes))

    def _add_unlisted(self, node: _Member) -> _Member:
        """Adds to consolidated metadata a node that it does not list, perhaps because the call that created it was killed."""
        if self._is_consolidated and not self.read_only:
            _consolidation.update_above(self.store, node.path, below=True)
        return node

    def require_groups(self, *names: str) -> tuple[Group, ...]:
        with _consolidation.join_updates():
            return tuple(self.require_group(name) for name in names)

    def create_array(self, name: str, **kwargs: Unpack[_arguments.CreateArray]) -> Array:
        """Creates an array below the group; the arguments are those of `zarrc.create_array`."""
        kwargs.setdefault("zarr_format", self.zarr_format)
        given: dict[str, Any] = {**kwargs}
        config, device = given.pop("config", None), given.pop("device", None)
        config = self._config_for(config, given.pop("like", None), given.pop("meta_array", None), device)
        return _create.create(self._place(name), config=config, device=device, **given)

    create = create_array

    def require_array(self, name: str, *, shape: ShapeLike, dtype: DTypeLike = None, exact: bool = False,
                      **kwargs: Unpack[_arguments.RequireArray]) -> Array:
        """Opens an array of this shape, which is created if it is missing. Its elements must be of the type, or not
        `exact`: of one that can be cast to it."""
        config = self._config_for(kwargs.get("config"), kwargs.get("like"), kwargs.get("meta_array"), kwargs.get("device"))
        try:
            found: Array | Group | None = open_node(self.store, name.strip("/"), within=self, config=config)
        except NotFoundError:
            found = None
        if found is None:
            found = _create.open_or_create(lambda: self._add_unlisted(_array.open_in_store(self.store, self._child(name), config=config)),
                                           lambda: self.create_array(name, shape=shape, dtype=dtype or "float64", **kwargs))
        if isinstance(found, Group):
            raise TypeError(f"{found.name} is a group, not an array")
        if found.shape != _create.normalize_shape(shape):
            raise TypeError(f"{found.name} has the shape {found.shape}, not {_create.normalize_shape(shape)}")
        if dtype is None or _dtypes.library_name(dtype) == _dtypes.library_name(found.dtype):
            return found
        wanted = _libraries.parse_dtype(dtype)
        if exact or wanted is None or not np.can_cast(found.dtype, wanted):
            raise TypeError(f"{found.name} has the data type {found.dtype}, not {dtype}")
        return found

    def create_hierarchy(self, nodes: Mapping[str, Any], *, overwrite: bool = False) -> Iterator[tuple[str, Array | Group]]:
        """Creates several nodes from their metadata."""
        return create_hierarchy(Place(self.store, self.path), nodes, overwrite=overwrite, config=self._config)

    def empty(self, *, name: str, shape: ShapeLike, **kwargs: Unpack[_arguments.GroupFull]) -> Array:
        return self.create_array(name, **_legacy(shape, kwargs, _create.DEFAULT_FILL_VALUE))

    def zeros(self, *, name: str, shape: ShapeLike, **kwargs: Unpack[_arguments.GroupFull]) -> Array:
        return self.create_array(name, **_legacy(shape, kwargs, 0))

    def ones(self, *, name: str, shape: ShapeLike, **kwargs: Unpack[_arguments.GroupFull]) -> Array:
        return self.create_array(name, **_legacy(shape, kwargs, 1))

    def full(self, *, name: str, shape: ShapeLike, fill_value: FillValue, **kwargs: Unpack[_arguments.GroupFull]) -> Array:
        return self.create_array(name, **_legacy(shape, kwargs, fill_value))

    def _like(self, name: str, data: Any, kwargs: Mapping[str, Any], **more: Any) -> Array:
        return self.create_array(name, **{**_create.like_arguments(data), **kwargs, **more})

    def empty_like(self, *, name: str, data: ArrayLike, **kwargs: Unpack[_arguments.GroupLike]) -> Array:
        return self._like(name, data, kwargs)

    def zeros_like(self, *, name: str, data: ArrayLike, **kwargs: Unpack[_arguments.GroupLike]) -> Array:
        return self._like(name, data, kwargs, fill_value=0)

    def ones_like(self, *, name: str, data: ArrayLike, **kwargs: Unpack[_arguments.GroupLike]) -> Array:
        return self._like(name, data, kwargs, fill_value=1)

    def full_like(self, *, name: str, data: ArrayLike, fill_value: FillValue, **kwargs: Unpack[_arguments.GroupLike]) -> Array:
        return self._like(name, data, kwargs, fill_value=fill_value)

    def move(self, source: str, dest: str) -> None:
        """Moves a member; in one step where the store can."""
        _consolidation.copy(self.store, self._child(source), self.store, self._child(dest), is_move=True)

    def refresh(self) -> Group:
        """Another handle of the group, which has read its metadata again."""
        return open_in_store(self.store, self.path, use_consolidated=self._use_consolidated, config=self._config)

    async def update_attributes_async(self, new_attributes: Mapping[str, Any]) -> Group:
        """`update_attributes` on the executor of the loop."""
        return await run_on_thread(self.update_attributes, new_attributes)

    # ---- what people see ----

    def tree(self, expand: bool | None = None, level: int | None = None, *, max_nodes: int | None = None,
             plain: bool = False) -> Tree:
        """The hierarchy below the group. `level` 0 is its members, 1 also theirs, and so on; None is all. `plain` changes
        nothing: no name is bold."""
        from ._info import Tree

        skip = len(self.path) + 1 if self.path else 0
        nodes = []
        for path, name, document, kind, _, _ in self._members(_levels(level)):
            depth = path[skip:].count("/") + 1
            nodes.append((depth, name, _tree_text(kind, document)))
        return Tree(self.name, tuple(nodes[:max_nodes]))

    @property
    def info(self) -> Info:
        from ._info import Info
        return Info((("Name", self.path), ("Type", "Group"), ("Zarr format", self.zarr_format),
                     ("Read-only", self.read_only), ("Store type", self.store.kind),
                     ("Consolidated", self._is_consolidated)))

    def info_complete(self) -> Info:
        """The same with the numbers of members."""
        from ._info import Info

        kinds = [row.kind for row in self._rows(None)]
        return Info((*self.info.rows, ("No. members", len(kinds)), ("No. arrays", kinds.count(_core.ZARR_NODE_ARRAY)),
                     ("No. groups", kinds.count(_core.ZARR_NODE_GROUP))))

    def __repr__(self) -> str:
        return f"<Group {self.store_path}>"

    def _repr_html_(self) -> str:
        return f"<div><b>zarrc.Group</b> <code>{self.name}</code>{self.tree(level=1)._repr_html_()}</div>"

    def __reduce__(self) -> Any:
        return open_in_store, (self.store, self.path), {"_use_consolidated": self._use_consolidated, "_config": self._config}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Group):
            return NotImplemented
        return self.store == other.store and self.path == other.path and self._metadata_text == other._metadata_text

    __hash__ = None  # type: ignore[assignment]


class AsyncGroup(AsyncGroupBase):
    """A group whose members are opened without blocking the event loop."""

    group: Group

    def __init__(self, group: Group) -> None:
        self.group = group

    async def getitem(self, path: str) -> AsyncArray | AsyncGroup:
        return wrap(await run_on_thread(self.group.__getitem__, path))  # type: ignore[no-any-return]


def _tree_text(kind: int, document: str | None) -> str:
    if kind == _core.ZARR_NODE_GROUP:
        return ""
    if kind != _core.ZARR_NODE_ARRAY or document is None:
        return " (damaged)"
    found = json.loads(document)
    dtype = found.get("data_type", found.get("dtype"))
    return f" {tuple(found['shape'])} {dtype['name'] if isinstance(dtype, dict) else dtype}"


def _legacy(shape: Any, kwargs: Mapping[str, Any], fill_value: Any) -> dict[str, Any]:
    return {"dtype": "float64", "fill_value": fill_value, **kwargs, "shape": shape}


def _open(opener: Callable[[dict[str, Any]], _Opened], store: Any, path: str, zarr_format: int | None,
            use_consolidated: bool | str | None, missing: type[NotFoundError]) -> _Opened:
    """What `opener` makes with options for a group."""
    options: dict[str, Any] = {"zarr_format": zarr_format or 0,
                               "consolidated": (0 if use_consolidated is None
                                                else _core.ZARR_CONSOLIDATED_MUST if use_consolidated
                                                else _core.ZARR_CONSOLIDATED_NEVER)}
    if isinstance(use_consolidated, str):
        options["consolidated_key"] = use_consolidated
    try:
        node = opener(options)
    except NotFoundError as problem:
        if use_consolidated and store._probe(path)[0] == _core.ZARR_NODE_GROUP:
            raise ValueError(f"Consolidated metadata requested with 'use_consolidated={use_consolidated!r}' but not found "
                             f"in '{path}'.") from problem
        in_store(problem, store.url)
        raise as_class(missing, problem) from None
    except ZarrcError as problem:
        in_store(problem, store.url)
        raise
    if isinstance(node, Group):
        node._use_consolidated = use_consolidated
    return node


def open_in_store(store: Any, path: str, *, zarr_format: int | None = None, use_consolidated: bool | str | None = None,
           within: Any = None, config: ConfigLike = None) -> Group:
    """Opens a group of a store, or below a group. `config`: that of the arrays below it."""
    group = _open(lambda options: _core.open_group(Group, within or store, path, options), store, path, zarr_format,
                   use_consolidated, GroupNotFoundError)
    group._config = config
    return group


def open_node(store: Any, path: str, *, zarr_format: int | None = None, use_consolidated: bool | str | None = None,
              config: Any = None, within: Any = None) -> Array | Group:
    """Opens what is at a path of a store, or below a group. Its documents are read once."""
    found = ArrayConfig.of(config)
    node = _open(lambda options: _core.open_node(Array, Group, within or store, path, {**options, **found.options()}), store,
                   path, zarr_format, use_consolidated, NodeNotFoundError)
    if isinstance(node, Group):
        node._config = config
        return node
    _array.warn_if_unfinished(node)
    return node._configure(found)


def create(place: Place, *, overwrite: bool = False, attributes: Mapping[str, Any] | None = None,
           zarr_format: int | None = None, if_missing: bool = False, claim: bool = False, config: ConfigLike = None) -> Group:
    """Creates a group at a place, with `config` for the arrays below it. `claim`: no other call replaces it before `_release_claim`."""
    flags = ((_core.ZARR_GROUP_OVERWRITE if overwrite else 0) | (_core.ZARR_GROUP_IF_MISSING if if_missing else 0)
             | (_core.ZARR_GROUP_CLAIM if claim and place.store._can_erase else 0))
    text = to_json(dict(attributes)) if attributes else None
    try:
        with _consolidation.change(place.store, place.path):
            group = _core.create_group(Group, place.store, place.path, zarr_format or settings["default_zarr_format"], text,
                                       flags | _consolidation.flag(_core.ZARR_GROUP_CONSOLIDATED))
    except ExistsError as problem:
        raise _create.exists_error(problem, place) from None
    except ZarrcError as problem:
        in_store(problem, place.store.url)
        raise
    group._use_consolidated, group._config = None, config
    return group


# ---- hierarchies ----


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name]


def _groups_above(place: Place, nodes: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata of the groups that `nodes` need and do not name, where nothing is yet."""
    out: dict[str, Any] = {}
    named = {"/".join(_names(path)) for path in nodes}
    for path, node in nodes.items():
        names = _names(path)
        zarr_format = node.get("zarr_format") if isinstance(node, Mapping) else node.zarr_format
        for above in ("/".join(names[:n]) for n in range(len(names))):
            if above not in named and above not in out and not place.store._probe(join_path(place.path, above))[0]:
                out[above] = {"zarr_format": zarr_format, "node_type": "group"}
    return out


def create_hierarchy(place: Place, nodes: Mapping[str, Any], *, overwrite: bool = False,
                     config: ConfigLike = None) -> Iterator[tuple[str, Array | Group]]:
    """What `zarrc.create_hierarchy` does below a place."""
    nodes = {**_groups_above(place, nodes), **nodes}
    for path in sorted(nodes, key=lambda one: (len(_names(one)), one)):
        document = nodes[path]
        document = json.loads(json.dumps(document.to_dict() if hasattr(document, "to_dict") else dict(document)))
        inner = Place(place.store, join_path(place.path, path))
        if document.get("node_type", "array" if "shape" in document else "group") == "array":
            yield path, _create.create(inner, document=json.dumps(document), overwrite=overwrite, config=config)
        else:
            yield path, create(inner, overwrite=overwrite, attributes=document.get("attributes"),
                                      zarr_format=document.get("zarr_format"), if_missing=not overwrite, config=config)
