"""Zarr arrays, fast: the C library zarrc for NumPy.

The names are those of zarr-python::

    import zarrc

    z = zarrc.create_array("x.zarr", shape=(10_000, 10_000), dtype="float32", chunks=(1000, 1000))
    z[:1000] = 42
    zarrc.open_array("x.zarr", mode="r")[::100, ::100]

docs/python.md of the source tells what differs.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import errors
from ._api import (
    array, consolidate_metadata, copy, copy_all, copy_store, create, create_array, create_group, create_hierarchy, empty,
    empty_like, from_array, full, full_like, group, load, ones, ones_like, open, open_array, open_async, open_consolidated, open_group,
    open_like, print_debug_info, save, save_array, save_group, tree, zeros, zeros_like,
)
from ._array import Array, AsyncArray
from ._array_config import ArrayConfig
from ._codecs import Codec
from ._config import config
from ._core import version as _version
from ._enable import disable, enable, pipeline_stats
from ._group import AsyncGroup, Group
from ._places import delete_memory, open_store
from ._stats import Explanation, Stats, Summary
from ._store import Store
from ._tensors import DeviceTensor, Tensor
from .errors import ZarrcError, ZarrcWarning

if TYPE_CHECKING:
    from zarrc_hook.buffer import ZarrcNDBuffer
    from zarrc_hook.pipeline import ZarrcCodecPipeline

    from ._blocks import Block
    from ._data_type import dtype
    from ._zarr_store import ZarrcStore

__version__: str = _version()

__all__ = [
    "Array", "ArrayConfig", "AsyncArray", "AsyncGroup", "Block", "Codec", "DeviceTensor", "Explanation", "Group", "Stats", "Store", "Summary", "Tensor", "ZarrcCodecPipeline",
    "ZarrcError", "ZarrcNDBuffer", "ZarrcStore", "ZarrcWarning", "__version__", "array", "config", "consolidate_metadata", "copy", "copy_all",
    "copy_store", "create", "create_array", "create_group", "create_hierarchy", "delete_memory", "disable", "dtype", "empty", "empty_like", "enable",
    "errors", "from_array", "full", "full_like", "group", "load",
    "ones", "ones_like", "open", "open_array", "open_async", "open_consolidated", "open_group", "open_like", "open_store",
    "pipeline_stats", "print_debug_info", "save", "save_array", "save_group", "tree", "zeros", "zeros_like",
]


def __dir__() -> list[str]:
    """The public names, also of what is not imported yet."""
    return sorted({*__all__, "cupy", "plugins", *(name for name in globals() if name[:2] == "__" or name in _MODULES)})


def __getattr__(name: str) -> Any:
    """What few programs use is imported then, and so is zarr-python."""
    if name == "Block":
        from ._blocks import Block
        return Block
    if name == "dtype":
        from ._data_type import dtype
        return dtype
    if name == "ZarrcCodecPipeline":
        from zarrc_hook.pipeline import ZarrcCodecPipeline
        return ZarrcCodecPipeline
    if name == "ZarrcNDBuffer":
        from zarrc_hook.buffer import ZarrcNDBuffer
        return ZarrcNDBuffer
    if name == "ZarrcStore":
        from ._zarr_store import ZarrcStore
        return ZarrcStore
    if name in _MODULES:
        return _import(f"zarrc.{name}", "a module of the package")
    if name in _OF_ZARR:
        return _import(f"zarr.{name}", f"zarr-python's module zarr.{name}", f"; {_OF_ZARR[name]}")
    raise AttributeError(f"module 'zarrc' has no attribute {name!r}")


_MODULES = ("cupy", "dask", "plugins", "torch")
# zarr-python's modules, for programs that have `import zarrc as zarr`: arguments may be its objects.
_OF_ZARR = {"codecs": 'name codecs instead: compressors={"name": "gzip", "configuration": {"level": 1}}',
            "storage": "give paths, URLs and dicts instead, or what zarrc.open_store returns"}


def _import(module: str, what: str, remedy: str = "") -> Any:
    import importlib
    try:
        return importlib.import_module(module)
    except ImportError as problem:
        raise AttributeError(f"zarrc.{module.partition('.')[2]} is {what}, which cannot be imported ({problem}){remedy}") from problem
