"""`zarrc create --zarr-format=2` with codecs of v3 that v2 expresses by other members of .zarray. zarr-python opens
the array and reads the data. Codecs that v2 cannot express are refused."""
import json
import warnings

import numpy as np
import pytest
import zarr

DATA = np.arange(24, dtype="i4").reshape(4, 6)


@pytest.mark.parametrize("options,dtype,order,filters", [
    (["bytes:big", "zlib:1"], ">i4", "C", []),
    (["bytes:big"], ">i4", "C", []),
    (["bytes", "shuffle:4"], "<i4", "C", ["shuffle"]),
    (["transpose:1,0", "bytes:big", "shuffle:4", "zlib:1"], ">i4", "F", ["shuffle"]),
    (["transpose:0,1", "zlib:1"], "<i4", "C", []),
    (["transpose:1,0", "transpose:1,0", "endian:little"], "<i4", "C", []),
], ids=str)
def test_folded(zarrc, tmp_path, options, dtype, order, filters):
    path = tmp_path / "a.zarr"
    zarrc("create", "--zarr-format=2", "--shape=4,6", "--chunks=2,4", "-t", "int32",
          *(f"--codec={option}" for option in options), path)
    document = json.loads((path / ".zarray").read_text())
    assert (document["dtype"], document["order"]) == (dtype, order)
    assert [one["id"] for one in document["filters"] or []] == filters
    assert (document["compressor"] or {}).get("id") == ("zlib" if options[-1] == "zlib:1" else None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = zarr.open_array(path, mode="r+")
        assert theirs.order == order
        theirs[:] = DATA
    assert zarrc("cat", "--format=raw", path).out == DATA.tobytes()


@pytest.mark.parametrize("options,message", [
    (["zlib:1", "bytes:big"], 'compressor: Zarr v2 cannot express codec "bytes" after a filter'),
    (["bytes", "transpose:1,0", "zlib:1"], 'filters[1]: Zarr v2 cannot express codec "transpose" after "bytes"'),
    (["shuffle:4", "transpose:1,0", "zlib:1"], 'filters[1]: Zarr v2 cannot express codec "transpose" after a filter'),
    (["transpose:1,1"], "compressor: transpose: order is [1,1], in Zarr v2 it must reverse all 2 dimensions or none"),
    (["transpose:0,1,2", "zlib:1"], "filters[0]: transpose: order is [0,1,2]"),
    (["bytes:middle", "zlib:1"], 'filters[0]: bytes: endian is "middle", must be "little" or "big"'),
    (["bytes:size=3"], 'compressor: bytes: unknown member "size"'),
], ids=str)
def test_refused(zarrc, tmp_path, options, message):
    done = zarrc("create", "--zarr-format=2", "--shape=4,6", "-t", "int32",
                 *(f"--codec={option}" for option in options), tmp_path / "a.zarr", code=None)
    assert done.code and message in done.err
    assert not (tmp_path / "a.zarr" / ".zarray").exists()


@pytest.mark.parametrize("dtype,message", [
    ("string", "compressor: codec bytes does not take data type string, only types of fixed size"),
    ("bfloat16", 'bytes: data type "bfloat16" has no big-endian order in v2')])
def test_refused_type(zarrc, tmp_path, dtype, message):
    done = zarrc("create", "--zarr-format=2", "--shape=4", "-t", dtype, "--codec=bytes:big", tmp_path / "a.zarr", code=None)
    assert done.code and message in done.err
