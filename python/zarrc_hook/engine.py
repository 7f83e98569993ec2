"""What xarray finds by the entry point `xarray.backends`: the engine "zarrc".

xarray imports the engines of all packages when it looks for one. This module imports nothing but
xarray; zarrc is imported when a dataset is opened.
"""
from __future__ import annotations

import importlib.util
import inspect
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from xarray.backends import BackendEntrypoint

if TYPE_CHECKING:
    from xarray import Dataset, DataTree


class ZarrcBackendEntrypoint(BackendEntrypoint):
    """Reads Zarr hierarchies with zarrc: ``xarray.open_dataset(path, engine="zarrc", chunks={})``.

    Datasets are those of the engine "zarr", and so are the arguments, without ``chunk_store``, ``synchronizer``
    and ``zarr_version``. It reads only: writes go through
    ``Dataset.to_zarr`` and zarr-python, with `zarrc.enable` by the pipeline of zarrc.
    """

    description = "Read Zarr hierarchies, formats 2 and 3, with zarrc"
    supports_groups = True

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """True for names that end in .zarr, unless zarr-python is there: then they are its engine's."""
        if importlib.util.find_spec("zarr") is not None or not isinstance(filename_or_obj, (str, os.PathLike)):
            return False
        return os.path.splitext(os.fspath(filename_or_obj).rstrip("/"))[1] == ".zarr"

    def open_dataset(self, filename_or_obj: Any, *, mask_and_scale: Any = True, decode_times: Any = True,
                     concat_characters: Any = True, decode_coords: Any = True,
                     drop_variables: str | Iterable[str] | None = None, use_cftime: Any = None, decode_timedelta: Any = None,
                     group: str | None = None, mode: str = "r", consolidated: bool | str | None = None,
                     storage_options: dict[str, Any] | None = None, zarr_format: int | None = None,
                     use_zarr_fill_value_as_mask: bool | None = None, cache_members: bool = True) -> Dataset:
        """One group as a dataset. What is read, and when, is up to xarray: variables are lazy."""
        from zarrc import _xarray
        decoders = {"mask_and_scale": mask_and_scale, "decode_times": decode_times, "concat_characters": concat_characters,
                    "decode_coords": decode_coords, "drop_variables": drop_variables, "use_cftime": use_cftime,
                    "decode_timedelta": decode_timedelta}
        return _xarray.open_dataset(filename_or_obj, decoders, group=group, mode=mode, consolidated=consolidated,
                                    storage_options=storage_options, zarr_format=zarr_format,
                                    fill_value_is_mask=use_zarr_fill_value_as_mask)

    def open_groups_as_dict(self, filename_or_obj: Any, *, mask_and_scale: Any = True, decode_times: Any = True,
                            concat_characters: Any = True, decode_coords: Any = True,
                            drop_variables: str | Iterable[str] | None = None, use_cftime: Any = None,
                            decode_timedelta: Any = None, group: str | None = None, mode: str = "r",
                            consolidated: bool | str | None = None, storage_options: dict[str, Any] | None = None,
                            zarr_format: int | None = None) -> dict[str, Dataset]:
        """A group and all groups below it, by their paths."""
        from zarrc import _xarray
        decoders = {"mask_and_scale": mask_and_scale, "decode_times": decode_times, "concat_characters": concat_characters,
                    "decode_coords": decode_coords, "drop_variables": drop_variables, "use_cftime": use_cftime,
                    "decode_timedelta": decode_timedelta}
        return _xarray.open_groups(filename_or_obj, decoders, group=group, mode=mode, consolidated=consolidated,
                                   storage_options=storage_options, zarr_format=zarr_format)

    def open_datatree(self, filename_or_obj: Any, *, mask_and_scale: Any = True, decode_times: Any = True,
                      concat_characters: Any = True, decode_coords: Any = True,
                      drop_variables: str | Iterable[str] | None = None, use_cftime: Any = None,
                      decode_timedelta: Any = None, group: str | None = None, mode: str = "r",
                      consolidated: bool | str | None = None, storage_options: dict[str, Any] | None = None,
                      zarr_format: int | None = None) -> DataTree:
        """The same as a tree."""
        from xarray.core.datatree import DataTree
        return DataTree.from_dict(self.open_groups_as_dict(
            filename_or_obj, mask_and_scale=mask_and_scale, decode_times=decode_times, concat_characters=concat_characters,
            decode_coords=decode_coords, drop_variables=drop_variables, use_cftime=use_cftime,
            decode_timedelta=decode_timedelta, group=group, mode=mode, consolidated=consolidated,
            storage_options=storage_options, zarr_format=zarr_format))


# For users who give xarray the class; for an entry point xarray finds this itself.
ZarrcBackendEntrypoint.open_dataset_parameters = tuple(inspect.signature(ZarrcBackendEntrypoint.open_dataset).parameters)[1:]
