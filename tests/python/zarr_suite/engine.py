"""A plugin of pytest (`scripts/zarr-suite --of xarray --engine`): xarray's own tests read with the engine "zarrc" wherever
they ask for the engine "zarr". What writes stays zarr-python's."""
import functools

import pytest
import zarr
from xarray.backends.zarr import ZarrBackendEntrypoint

import zarrc
from zarrc import _aio
from zarrc_hook.engine import ZarrcBackendEntrypoint

_OWN = ("store", "engine", "cache_members")  # arguments that only the engine "zarr" has
_WATCHED = ("test_indexing", "test_async_load_multiple_variables", "test_concurrent_load_multiple_objects")


def _instead(name):
    own, ours = getattr(ZarrBackendEntrypoint, name), getattr(ZarrcBackendEntrypoint, name)

    @functools.wraps(own)  # xarray looks at the parameters
    def call(self, filename_or_obj, **given):
        if given.get("store") is not None or given.get("mode", "r") != "r":
            return own(self, filename_or_obj, **given)
        return ours(ZarrcBackendEntrypoint(), filename_or_obj, **{key: value for key, value in given.items() if key not in _OWN})

    setattr(ZarrBackendEntrypoint, name, call)


@pytest.fixture(autouse=True)
def watched_calls(request, monkeypatch):
    """Tests that count the awaited calls of zarr-python's classes find ours by those names."""
    if request.function.__name__ in _WATCHED:
        monkeypatch.setattr(zarr, "AsyncArray", zarrc.AsyncArray)
        monkeypatch.setattr("zarr.core.indexing.AsyncOIndex", _aio.AsyncOIndex)
        monkeypatch.setattr("zarr.core.indexing.AsyncVIndex", _aio.AsyncVIndex)


def pytest_configure(config):
    for name in ("open_dataset", "open_datatree", "open_groups_as_dict"):
        _instead(name)
