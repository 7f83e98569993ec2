"""Writes a dataset of xarray with zarrc under zarr-python, and reads it with the engine "zarrc": lazily, a
task of dask for each shard."""
import sys

import numpy as np
import xarray as xr

import zarrc


def write(path: str) -> None:
    days = np.datetime64("2026-01-01", "ns") + np.arange(60) * np.timedelta64(1, "D")
    field = np.arange(60 * 18 * 36, dtype="float32").reshape(60, 18, 36) / 100
    dataset = xr.Dataset({"temperature": (("time", "lat", "lon"), field, {"units": "K"})}, coords={"time": days})
    chunks = {"chunks": (10, 9, 9), "shards": (30, 18, 36), "scale_factor": 0.01, "dtype": "int32", "_FillValue": -1}
    with zarrc.enable():
        dataset.to_zarr(path, mode="w", zarr_format=3, consolidated=False, encoding={"temperature": chunks})


def main(path: str) -> None:
    write(path)
    dataset = xr.open_dataset(path, engine="zarrc", chunks={})
    print("blocks along time:", dataset["temperature"].chunksizes["time"])
    february = dataset["temperature"].sel(time="2026-02").mean("time")
    print("mean of February at a point:", round(float(february.isel(lat=3, lon=5)), 2))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "example.zarr")
