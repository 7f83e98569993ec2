"""Arrays of tensorstore's drivers for v2 and v3, with settings that others seldom use; read back
by it."""
import json
import pathlib

import numpy as np
import tensorstore

from keep import array, group, keep, place
from number_types import NUMBERS, path_name, numbers

WRITER = "tensorstore 0.1.86"
RNG = np.random.default_rng(8)


def write(folder, path, data, driver, metadata):
    spec = {"driver": driver, "kvstore": {"driver": "file", "path": f"{folder}/{path}/"}, "metadata": metadata}
    made = tensorstore.open(spec, create=True, dtype=data.dtype.newbyteorder("="), shape=data.shape).result()
    made.write(data).result()
    return array(made.read().result(), {}, list(metadata["dimension_names"]) if "dimension_names" in metadata else None)


def old():
    folder = place("old.zarr")
    nodes = {}
    for at, dtype in enumerate(NUMBERS):
        metadata = {"dtype": dtype, "chunks": [3, 4], "order": "CF"[at % 2], "dimension_separator": "./"[at // 2 % 2],
                    "fill_value": None, "compressor": [None, {"id": "zlib", "level": 2}, {"id": "zstd", "level": 1}, {
                        "id": "blosc", "cname": "zstd", "clevel": 3, "shuffle": 2}, {"id": "bz2", "level": 1}][at % 5]}
        nodes[path_name(at, dtype)] = write(folder, path_name(at, dtype), numbers(dtype, (7, 9), RNG), "zarr", metadata)
    pathlib.Path(folder, ".zgroup").write_text(json.dumps({"zarr_format": 2}))
    keep("old.zarr", WRITER, {"": group({}), **nodes})


def new():
    folder = place("new.zarr")
    nodes = {}
    inner = [{"name": "bytes", "configuration": {"endian": "big"}}, {"name": "zstd", "configuration": {"level": 1}}]
    for at, dtype in enumerate(d for d in NUMBERS if d[0] != ">"):
        chains = [inner, [{"name": "transpose", "configuration": {"order": [1, 0]}}, *inner], [{
            "name": "sharding_indexed", "configuration": {
                "chunk_shape": [3, 2], "index_location": "start", "codecs": inner,
                "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}}]]
        metadata = {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [6, 4]}},
                    "codecs": chains[at % 3], "dimension_names": ["y", ""] if at % 2 else ["y", "x"]}
        nodes[path_name(at, dtype)] = write(folder, path_name(at, dtype), numbers(dtype, (7, 9), RNG), "zarr3", metadata)
    pathlib.Path(folder, "zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": "group"}))
    keep("new.zarr", WRITER, {"": group({}), **nodes})


old()
new()
