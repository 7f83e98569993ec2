"""netCDF and GDAL, if installed (scripts/real-stores), read stores that zarrc writes. Also N5
blocks of zarr-python 2, described by a zarr.json that the test writes."""
import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from test_stores import MADE, Store, below, raw, zarrc

ENVI = {1: "u1", 2: "<i2", 3: "<i4", 4: "<f4", 5: "<f8", 6: "<c8", 9: "<c16", 12: "<u2", 13: "<u4"}


def needs(program):
    return pytest.mark.skipif(not shutil.which(program), reason=f"{program} is not installed: "
                              "scripts/real-stores installs it (make test-long)")


def run(*command):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    assert done.returncode == 0, (command, done.stderr.decode())
    return done.stdout.decode()


def write_array(tmp_path, rng, dtype, *options):
    """An array that zarrc wrote into x.zarr/a, and its elements."""
    data = rng.integers(0, 100, (7, 10)).astype(dtype)
    np.save(tmp_path / "a.npy", data)
    zarrc("import", tmp_path / "a.npy", tmp_path / "x.zarr/a", "--zarr-format", "2", "--chunks", "3,4", *options)
    zarrc("consolidate", tmp_path / "x.zarr")
    return data


@needs("ncdump")
@pytest.mark.parametrize("dtype", "i1 u1 i2 u2 i4 u4 i8 u8 f4 f8".split())
def test_netcdf(tmp_path, rng, dtype):
    """Without compression: Debian's netCDF has no plug-ins, and shows compressed bytes as numbers."""
    data = write_array(tmp_path, rng, dtype, "--codec", "none")
    text = run("ncdump", "-p", "9,17", "-v", "a", f"file://{tmp_path}/x.zarr#mode=zarr,file")
    found = re.search(r"data:\s+a =\s(.*?);", text, re.S).group(1)
    assert [float(v) for v in found.split(",")] == data.ravel().tolist()


@needs("gdal_translate")
@pytest.mark.parametrize("options", [["none"], ["zlib:3"], ["gzip:5"], ["zstd:1"], ["blosc"], ["none", "--order", "F"]],
                         ids="-".join)
@pytest.mark.parametrize("dtype", "u1 i2 u2 i4 u4 f4 f8 c8 c16".split())
def test_gdal(tmp_path, rng, dtype, options):
    fill = ["--fill", "null"] if dtype[0] == "c" else []  # it takes no other for complex numbers
    data = write_array(tmp_path, rng, dtype, "--codec", *options, *fill)
    run("gdal_translate", "-q", "-of", "ENVI", f'ZARR:"{tmp_path}/x.zarr":/a', tmp_path / "out.raw")
    header = (tmp_path / "out.hdr").read_text()
    kind = ENVI[int(re.search(r"data type = (\d+)", header).group(1))]
    found = np.fromfile(tmp_path / "out.raw", kind).reshape(data.shape)
    np.testing.assert_array_equal(found, data)


# ---- N5 ----------------------------------------------------------------------------------

def describe_n5(attributes):
    """A zarr.json over N5's blocks: dimensions as N5 counts them."""
    kind, dtype = attributes["compression"], attributes["dataType"]
    order = list(range(len(attributes["dimensions"])))[::-1]
    behind = {"raw": [], "bzip2": [{"name": "numcodecs.bz2", "configuration": {"level": 9}}],
              "gzip": [{"name": "gzip", "configuration": {"level": 5}}],
              "zstd": [{"name": "zstd", "configuration": {"level": 3, "checksum": False}}],
              "blosc": [{"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle",
                                                            "typesize": 1, "blocksize": 0}}]}[kind["type"]]
    if kind.get("useZlib"):
        behind = [{"name": "numcodecs.zlib", "configuration": {"level": 5}}]
    endian = {} if dtype.endswith("int8") else {"configuration": {"endian": "big"}}
    codecs = [{"name": "transpose", "configuration": {"order": order}}, {"name": "bytes", **endian}, *behind]
    return {"zarr_format": 3, "node_type": "array", "shape": attributes["dimensions"], "data_type": dtype,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": attributes["blockSize"]}},
            "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "/"}}, "fill_value": 0,
            "codecs": [{"name": "n5_default", "configuration": {"codecs": codecs}}]}


def test_n5(tmp_path):
    stores = [store for store in map(Store, MADE) if store.n5]
    if not stores:
        pytest.skip("no N5 is made: scripts/real-stores makes it (make test-long)")
    for store in stores:
        shutil.copytree(store.folder, tmp_path / store.folder.name)
        for path in store.arrays():
            folder = tmp_path / store.folder.name / path
            attributes = json.loads((folder / "attributes.json").read_text())
            (folder / "zarr.json").write_text(json.dumps(describe_n5(attributes)))
            assert zarrc("cat", "--format=raw", folder).stdout == raw(store.values(path).T), below(folder, path)
            zarrc("verify", folder)
