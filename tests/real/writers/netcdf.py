"""NCZarr stores from two netCDF libraries: the one in PyPI's netCDF4 writes directly, Debian's
converts a netCDF-4 file with nccopy. The expected elements are those that netCDF reads from the
store or from the source."""
import json
import os
import pathlib
import subprocess

import netCDF4
import numpy as np

from keep import DIMENSIONS, OUT, array, group, keep, place

RNG = np.random.default_rng(7)
TOLD = subprocess.run(["ncdump"], stderr=subprocess.PIPE, text=True).stderr.splitlines()[-1]
PYPI = f"netCDF4 {netCDF4.__version__} with netCDF {netCDF4.__netcdf4libversion__}"
DEBIAN = f"nccopy, {TOLD}"


def fill(root, texts):
    for name, length in {"time": 5, "y": 6, "x": 10, "s": 4}.items():
        root.createDimension(name, length)
    for kind in "i1 u1 i2 u2 i4 u4 i8 u8 f4 f8".split():
        made = root.createVariable(f"v_{kind}", kind, ("y", "x"), chunksizes=(4, 3), zlib=kind != "i1",
                                   shuffle=texts and kind == "i4", complevel=3)
        made[:] = RNG.integers(0, 100, (6, 10))
    made = root.createVariable("temp", "f8", ("time", "y", "x"), chunksizes=(2, 3, 4), fill_value=-9.)
    made.setncatts({"units": "K", "valid_range": np.array([1, 2], "i2"), "scale": np.float32(0.5)})
    made[:3] = RNG.normal(size=(3, 6, 10))
    root.createVariable("scalar", "i4", ())[...] = 42
    root.createVariable("whole", "i4", ("x",))[:] = range(10)
    root.createVariable("c", "S1", ("y", "s"))[:] = np.array([list("abcd")] * 6, "S1")
    if texts:
        root.createVariable("names", str, ("s",))[:] = np.array(["a", "bb", "", "dddd"], object)
    root.setncatts({"title": "Gruesse", "n": [3.5, 4.5], "one": np.int8(3)})
    made = root.createGroup("g/h").createVariable("z", "f4", ("x",))
    made.long_name = "zz"
    made[:] = range(10)


def read_values(root, path=""):
    root.set_auto_maskandscale(False)
    root.set_auto_chartostring(False)
    found = {path: None}
    for name, variable in root.variables.items():
        data = np.asarray(variable[...])
        if data.dtype == object:  # as they lie: NUL-padded
            data = data.astype("S128")
        found[f"{path}/{name}".lstrip("/")] = data.reshape(data.shape or (1,))
    for name, child in root.groups.items():
        found.update(read_values(child, f"{path}/{name}".lstrip("/")))
    return found


def make_nodes(folder, values):
    nodes = {}
    for path, data in values.items():
        document = pathlib.Path(folder, path, ".zattrs")
        attributes = json.loads(document.read_text()) if document.exists() else {}
        nodes[path] = group(attributes) if data is None else array(data, attributes, attributes.get(DIMENSIONS))
    return nodes


MODES = {"nczarr": "nczarr,file", "plain": "zarr,file", "noxarray": "noxarray,nczarr,file"}
source = str(OUT / "source.nc")
with netCDF4.Dataset(source, "w") as root:
    fill(root, texts=False)
with netCDF4.Dataset(source) as root:
    known = read_values(root)

for name, mode in MODES.items():
    folder = place(f"pypi-{name}.zarr")
    with netCDF4.Dataset(f"file://{folder}#mode={mode}", "w") as root:
        fill(root, texts=True)
    with netCDF4.Dataset(f"file://{folder}#mode={mode}") as root:
        nodes = make_nodes(folder, {**read_values(root), "c": known["c"]})  # it misreads its own chars
    del nodes["v_i4"]
    keep(f"pypi-{name}.zarr", PYPI, nodes, refused={"v_i4": "NCZarr and numcodecs differ"})
    folder = place(f"debian-{name}.zarr")
    subprocess.run(["nccopy", source, f"file://{folder}#mode={mode}"], check=True)
    nodes, more = make_nodes(folder, known), {}
    if name == "plain":  # netCDF 4.9.0 calls a char <U1, and here nothing tells that it is one byte
        del nodes["c"]
        more["refused"] = {"c": "24 bytes where its shape and data type need 96"}
    keep(f"debian-{name}.zarr", DEBIAN, nodes, **more)
os.remove(source)
