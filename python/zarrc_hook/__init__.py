"""What other packages find by entry points: `pipeline` has the pipeline for zarr-python, `data_types` and `codecs` what it lacks,
`engine` the engine for xarray. They import their hosts and, before they are used, neither zarrc nor NumPy."""
from __future__ import annotations

from typing import Any


class _DataTypes:
    """What the entry points `zarr.data_type` name. zarr-python loads all of them for all its users. So one for which the classes
    cannot be made gets a class that it has."""

    def __getattr__(self, name: str) -> Any:
        if name[0] == "_":
            raise AttributeError(name)
        try:
            from . import data_types
            return data_types.choose(name)
        except Exception:  # another zarr than we know: its arrays have none of these types
            from zarr.dtype import data_type_registry
            return next(iter(data_type_registry.contents.values()))


data_type = _DataTypes()
