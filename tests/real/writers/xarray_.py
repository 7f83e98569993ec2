"""Data sets of xarray, in both formats: CF attributes, encoded times, scalar and text coordinates,
missing values, groups."""
import numpy as np
import pandas
import xarray
import zarr

from keep import keep, place, walk

WRITER = f"xarray {xarray.__version__}, zarr-python {zarr.__version__}"
RNG = np.random.default_rng(4)


def dataset():
    times = pandas.date_range("2024-01-31", periods=7, freq="36h")
    temperature = RNG.normal(280, 10, (7, 4, 5)).astype("f4")
    temperature[2, 1] = np.nan
    out = xarray.Dataset(
        {"temperature": (("time", "lat", "lon"), temperature, {
            "units": "K", "standard_name": "air_temperature"}),
         "packed": (("time", "lat", "lon"), temperature.astype("f8") / 3, {"long_name": "packed °"}),
         "flag": (("lat", "lon"), RNG.integers(0, 2, (4, 5)).astype(bool)),
         "lag": ("time", np.arange(7).astype("m8[h]").astype("m8[ns]")),
         "name": ("lat", np.array(["a", "bb", "", "漢字"], object)),
         "fixed": ("lat", np.array(["a", "bb", "", "dddd"], "<U4")), "code": ("lat", np.array([b"a", b"", b"cc", b"d"])),
         "wave": ("lon", RNG.normal(size=5) + 1j * RNG.normal(size=5)), "crs": ((), np.int32(4326), {"epsg": "4326"})},
        coords={"time": times, "lat": ("lat", np.linspace(-60, 60, 4), {"units": "degrees_north"}),
                "lon": ("lon", np.arange(5) * 72.0), "level": 850.0, "station": "Zürich"},
        attrs={"title": "a title", "valid_range": np.array([0, 5]), "history": "", "weights": [0.5, 1e-30]})
    out["packed"].encoding = {"dtype": "int16", "scale_factor": 0.01, "add_offset": 100.0, "_FillValue": -32768}
    out["time"].encoding = {"units": "seconds since 1970-01-01", "dtype": "int64"}
    return out


for version in (2, 3):
    for consolidated in (True, False):
        name = f"data-v{version}{'-consolidated' if consolidated else ''}.zarr"
        made = dataset()
        if version == 3:
            made = made.drop_vars("code")  # zarr-python has no described form of it in v3
        folder = place(name)
        made.chunk({"time": 3, "lat": 2}).to_zarr(folder, zarr_format=version, consolidated=consolidated)
        made.isel(time=slice(0, 2)).drop_vars(
            [v for v in made.variables if "time" not in made[v].dims]).to_zarr(
            folder, append_dim="time", consolidated=consolidated)
        keep(name, WRITER, walk(zarr.open_group(folder, mode="r", use_consolidated=False)))
    name = f"tree-v{version}.zarr"
    folder = place(name)
    xarray.DataTree.from_dict({"/": xarray.Dataset({"x": ("t", [1, 2, 3])}, attrs={"a": 1}),
                               "/model/run": xarray.Dataset({"y": (("t", "u"), np.ones((3, 2)))})}).to_zarr(
        folder, zarr_format=version)
    keep(name, WRITER, walk(zarr.open_group(folder, mode="r", use_consolidated=False)))
