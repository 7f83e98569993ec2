"""What programs in Fortran write, read by zarr-python and xarray: tests/ports/fortran, and the example."""
import os
import re
import subprocess

import numpy as np
import pytest
import xarray
import zarr

from documents import ROOT

BUILD = ROOT / "build/dev"
if "ZARRC_BUILD" in os.environ:
    BUILD = ROOT / os.environ["ZARRC_BUILD"]


def run(name, folder, *arguments):
    program = BUILD / name
    if not program.exists():
        pytest.skip(f"{name} was not built: that needs gfortran 12, which scripts/setup installs")
    return subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True, timeout=120)


def test_values(tmp_path):
    done = run("tests/test_port_fortran", tmp_path)
    assert done.returncode == 0, done.stderr
    group = zarr.open_group(tmp_path / "values.zarr", mode="r")
    six = np.arange(1, 7).reshape(2, 3)
    for name, expected in {"int8": -six, "int16": -300 * six, "int32": -70000 * six, "int64": 2**40 * six,
                           "float32": six / 2, "complex64": six / 2 * (1 - 1j)}.items():
        assert group[name].dtype == name
        assert np.array_equal(group[name][:], expected), name
    for name, expected in {"float64": 0.1 * six, "complex128": 0.2 * six * (1 - 1j)}.items():
        assert group[name].dtype == name
        assert np.allclose(group[name][:], expected, rtol=1e-15), name
    assert group["scalar"][()] == 7.5
    box = group["box"]
    assert (box.shape, box.shards, box.chunks) == ((2, 3, 4), (2, 3, 4), (1, 3, 2))
    assert box.metadata.dimension_names == ("time", "lat", "lon")
    k, j, i = np.ogrid[1:3, 1:4, 1:5]
    expected = i + 10 * j + 100 * k
    expected[:, 2] *= -1
    expected[0, 0, 0] = -1
    assert np.array_equal(box[:], expected)
    assert np.array_equal(group["section"][:], [[1, 3, 5, 7], [25, 27, 29, 31], [49, 51, 53, 55]])
    assert group["steps"].shape == (7, 3, 2)
    assert list(group["line"][:]) == [1.5, 2.5, 3.5]
    assert dict(group["float64"].attrs) == {
        "scale": 0.25, "count": 2**60, "year": 2026, "units": "m s-1", "range": [0.1, 0.2, 0.3],
        "three": [1, 2, 3], "names": ["u", "vee", "w"], "empty": [], "half": 0.5}
    assert dict(group.attrs) == {"title": "Winds", "one": [4]}


def test_stop(tmp_path):
    done = run("tests/test_port_fortran", tmp_path, "stop")
    assert done.returncode > 0
    assert "ERROR STOP nothing.zarr: the directory does not exist" in done.stderr


def steps(folder):
    with xarray.open_zarr(folder / "steps.zarr", consolidated=False) as data:
        return data.load()


def check_steps(data, first, last):
    """Steps of the example: their number is the hour."""
    assert dict(data.temp.sizes) == {"time": last, "y": 3, "x": 4}
    assert data.temp.units == "K"
    i, y, x = np.ogrid[first:last + 1, 1:4, 1:5]
    assert np.array_equal(data.temp[first - 1:], (270 + x + 10 * y + 100 * i).astype("f4"))
    hours = (data.time.values - np.datetime64("2026-01-01")) / np.timedelta64(1, "h")
    assert np.array_equal(hours, np.arange(1, last + 1))


def test_append_steps(tmp_path):
    for last in (25, 50):
        done = run("examples/example_append_steps", tmp_path)
        assert done.returncode == 0, done.stderr
        check_steps(steps(tmp_path), 1, last)


def test_append_to_array_of_xarray(tmp_path):
    """An existing array has other chunks, attributes and codecs."""
    start = xarray.Dataset({"temp": (("time", "y", "x"), np.full((2, 3, 4), 5, "f4"), {"units": "K"})},
                           {"time": ("time", [1.0, 2.0], {"units": "hours since 2026-01-01"})})
    start.to_zarr(tmp_path / "steps.zarr", zarr_format=3, consolidated=False)
    done = run("examples/example_append_steps", tmp_path)
    assert done.returncode == 0, done.stderr
    data = steps(tmp_path)
    assert np.array_equal(data.temp[:2], start.temp)
    check_steps(data, 3, 27)


def test_status_values():
    """The module has the values of zarrc/error.h."""
    header = (ROOT / "include/zarrc/error.h").read_text()
    module = (ROOT / "fortran/zarrc.f90").read_text()
    wanted = {name.lower(): int(value) for name, value in re.findall(r"\b(ZARR_OK|ZARR_ERR_\w+) = (-?\d+)", header)}
    assert {name: int(value) for name, value in re.findall(r"\b(zarr_ok|zarr_err_\w+) = (-?\d+)", module)} == wanted
    assert len(wanted) == 16
