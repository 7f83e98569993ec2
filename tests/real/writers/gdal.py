"""Rasters and arrays that GDAL's Zarr driver writes: gdal_translate from raw files, with each of
its compressors, and gdalmdimtranslate from netCDF. The expected elements are those of the
source."""
import json
import pathlib
import shutil
import subprocess

import netCDF4
import numpy as np

from keep import DIMENSIONS, OUT, array, group, keep, place

RNG = np.random.default_rng(9)
GDAL = subprocess.run(["gdalinfo", "--version"], stdout=subprocess.PIPE, text=True).stdout.strip()
TYPES = {"u1": 1, "i2": 2, "i4": 3, "f4": 4, "f8": 5, "c8": 6, "c16": 9, "u2": 12, "u4": 13}
SOURCES = OUT / "sources"
SOURCES.mkdir(exist_ok=True)


def read_attributes(folder, path):
    document = pathlib.Path(folder, path, ".zattrs")
    return json.loads(document.read_text()) if document.exists() else {}


def raster(kind, data):
    source = SOURCES / f"{kind}.raw"
    data.tofile(source)
    source.with_suffix(".hdr").write_text(
        f"ENVI\nsamples = {data.shape[1]}\nlines = {data.shape[0]}\nbands = 1\nheader offset = 0\n"
        f"data type = {TYPES[kind]}\ninterleave = bsq\nbyte order = 0\n")
    return source


def rasters():
    chains = {"plain": [], "blosc": ["COMPRESS=BLOSC", "BLOSC_CNAME=zstd", "BLOSC_SHUFFLE=BIT"],
              "zlib": ["COMPRESS=ZLIB"], "gzip": ["COMPRESS=GZIP"], "lzma": ["COMPRESS=LZMA"],
              "zstd": ["COMPRESS=ZSTD"], "lz4": ["COMPRESS=LZ4"], "f": ["CHUNK_MEMORY_LAYOUT=F", "COMPRESS=ZLIB"],
              "nested": ["DIM_SEPARATOR=/"]}
    for chain, options in chains.items():
        for kind in TYPES if chain in ("plain", "f") else ("i2", "f8"):
            data = (RNG.integers(0, 250, (70, 50)) * (1 + 1j if kind[0] == "c" else 1)).astype(f"<{kind}")
            name = f"raster-{chain}-{kind}.zarr"
            folder = place(name)
            words = [w for option in ["FORMAT=ZARR_V2", "BLOCKSIZE=32,16", *options] for w in ("-co", option)]
            subprocess.run(["gdal_translate", "-q", "-of", "ZARR", *words, raster(kind, data), folder], check=True)
            path = name.removesuffix(".zarr")
            attributes = read_attributes(folder, path)
            keep(name, GDAL, {"": group(read_attributes(folder, "")), path: array(
                data, attributes, attributes.get(DIMENSIONS))})


def arrays():
    source = str(SOURCES / "source.nc")
    values = {}
    with netCDF4.Dataset(source, "w") as root:
        for name, length in {"time": 5, "y": 6, "x": 10}.items():
            root.createDimension(name, length)
            root.createVariable(name, "f8", (name,))[:] = values[name] = np.arange(length) * 1.5
        for kind in "u1 i2 u2 i4 u4 i8 u8 f4 f8".split():
            values[kind] = RNG.integers(0, 100, (5, 6, 10)).astype(kind)
            made = root.createVariable(kind, kind, ("time", "y", "x"), chunksizes=(2, 3, 4))
            made[:], made.units = values[kind], "K"
        root.title = "a title"
        root.createGroup("g/h").createVariable("z", "f4", ("x",))[:] = values["g/h/z"] = np.arange(10, dtype="f4")
    folder = place("arrays.zarr")
    subprocess.run(["gdalmdimtranslate", "-q", "-of", "ZARR", source, folder], check=True)
    nodes = {path: group(read_attributes(folder, path)) for path in ("", "g", "g/h")}
    for path, data in values.items():
        attributes = read_attributes(folder, path)
        nodes[path] = array(data, attributes, attributes.get(DIMENSIONS))
    keep("arrays.zarr", GDAL, nodes)


rasters()
arrays()
shutil.rmtree(SOURCES)
