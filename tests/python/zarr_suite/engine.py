"""A plugin of pytest (`scripts/zarr-suite --of xarray --engine`): xarray's own tests read with the engine "zarrc" wherever
they ask for the engine "zarr". What writes stays zarr-python's."""
import functools

from xarray.backends.zarr import ZarrBackendEntrypoint

from zarrc_hook.engine import ZarrcBackendEntrypoint

_OWN = ("store", "engine", "cache_members")  # arguments that only the engine "zarr" has


def _instead(name):
    own, ours = getattr(ZarrBackendEntrypoint, name), getattr(ZarrcBackendEntrypoint, name)

    @functools.wraps(own)  # xarray looks at the parameters
    def call(self, filename_or_obj, **given):
        if given.get("store") is not None or given.get("mode", "r") != "r":
            return own(self, filename_or_obj, **given)
        return ours(ZarrcBackendEntrypoint(), filename_or_obj, **{key: value for key, value in given.items() if key not in _OWN})

    setattr(ZarrBackendEntrypoint, name, call)


def pytest_configure(config):
    for name in ("open_dataset", "open_datatree", "open_groups_as_dict"):
        _instead(name)
