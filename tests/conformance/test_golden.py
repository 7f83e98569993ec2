"""The arrays whose documents are in tests/golden/zarr-python.json: zarr-python writes elements and we read them, we write them
and zarr-python reads them, in every kind of memory."""
import json
import math
import pathlib

import numpy as np
import pytest
import zarr

import both_ways
import cases

GOLDEN = json.loads((pathlib.Path(__file__).parents[1] / "golden/zarr-python.json").read_text())
MOST = 1 << 20  # elements
NARROW = {"v2-delta-narrow"}  # differences of neighbours fit less than an element
ARRAYS = [name for name, document in GOLDEN.items() if math.prod(document.get("shape", [MOST])) < MOST]


@pytest.mark.parametrize("name", ARRAYS)
def test_golden(context, rng, tmp_path, name):
    document = GOLDEN[name]
    cases.put_document(tmp_path / "asked", document)
    made = zarr.open_array(str(tmp_path / "asked"), mode="r+")
    fill = np.asarray(made[...], made.dtype)  # the fill value everywhere, as zarr-python has it
    data = cases.random_data(rng, fill.shape, fill.dtype)
    if name in NARROW:
        data = np.cumsum(rng.integers(-9, 9, data.shape), -1).astype(data.dtype)
    if data.ndim:  # holes
        data[: len(data) // 3] = fill[: len(data) // 3]
    both_ways.check(context, document, data, rng, tmp_path / "both")
