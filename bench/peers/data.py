"""data - makes the arrays of cases.py, with libraries that are not measured here first of all: TensorStore, and
zarr-python for what it lacks.

    data.py FOLDER SIZE NAME ...      FOLDER/NAME; a folder with the file .done is kept"""
import json
import math
import pathlib
import shutil
import sys

import numpy as np

import cases

SEED = 1
NODES = 10_000


def case_codecs(it):
    if not it.inner:
        return list(it.codecs)
    return [{"name": "sharding_indexed", "configuration": {
        "chunk_shape": it.inner, "codecs": it.codecs, "index_codecs": [cases.LITTLE, {"name": "crc32c"}], "index_location": "end"}}]


def document(it):
    fill = "" if it.dtype == "string" else 0
    return {"zarr_format": 3, "node_type": "array", "shape": it.shape, "data_type": it.dtype,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": it.chunks}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": fill, "codecs": case_codecs(it)}


def waves(places, random, dtype):
    """Smooth, with noise that leaves about a half of the bits."""
    smooth = sum(np.sin(at.astype(np.float32) / step) for at, step in zip(places, (41, 67, 23)))
    noise = random.standard_normal(smooth.shape, dtype=np.float32)
    if dtype == "float32":
        return (273 + 10 * smooth + .01 * np.round(10 * noise)).astype(np.float32)
    return (1000 + 100 * smooth + 3 * noise).astype(np.uint16)


def block(it, origin, extent, random):
    """The elements of a box."""
    places = np.ix_(*[np.arange(o, o + n, dtype=np.uint64) for o, n in zip(origin, extent)])
    if it.data == "noise":
        return waves(places, random, it.dtype)
    if it.data == "rows":
        return ((places[0] * 31 + places[1] * places[1] // 16) % 65536).astype(np.uint16)
    return (places[2] + places[1] * places[1] // 32 + places[0] ** 3).astype(np.uint16)


def fill(it, array, write):
    """A chunk, or a band of small chunks, at a time."""
    random = np.random.default_rng(SEED)
    edges = it.chunks
    if math.prod(edges) < 1 << 16:
        edges = (edges[0], *it.shape[1:])
    for place in np.ndindex(*[-(-n // edge) for n, edge in zip(it.shape, edges)]):
        origin = [i * edge for i, edge in zip(place, edges)]
        extent = [min(edge, n - o) for edge, n, o in zip(edges, it.shape, origin)]
        key = tuple(slice(o, o + n) for o, n in zip(origin, extent))
        write(array, key, block(it, origin, extent, random))


def write_item(array, key, data):
    array[key] = data


def make_array(folder, it):
    import tensorstore
    (folder / "zarr.json").write_text(json.dumps(document(it)))
    if any("numcodecs" in codec["name"] for codec in it.codecs):  # TensorStore lacks them
        import zarr
        fill(it, zarr.open_array(folder, mode="r+"), write_item)
        return
    store = {"driver": "file", "path": str(folder), "file_io_sync": False}
    fill(it, tensorstore.open({"driver": "zarr3", "kvstore": store}, open=True).result(), write_item)


def make_v2(folder, it):
    """Within a group, as netCDF wants it."""
    import zarr
    from numcodecs import Zlib
    codec = Zlib(it.codecs[0]["level"]) if it.codecs else None
    group = zarr.open_group(folder, mode="w", zarr_format=2)
    array = group.create_array("a", shape=it.shape, chunks=it.chunks, dtype=it.dtype, compressors=codec, fill_value=0)
    fill(it, array, write_item)


def make_texts(folder, it):
    import zarr
    (folder / "zarr.json").write_text(json.dumps(document(it)))
    array = zarr.open_array(folder, mode="r+")
    step = it.chunks[0] * 10
    for first in range(0, it.shape[0], step):
        texts = [f"{k * k % 997}-{'aéxyz' * (k % 3)}" for k in range(first, first + step)]
        array[first:first + step] = np.array(texts, dtype=np.dtypes.StringDType())


def make_tree(folder, it):
    (folder / "zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {}}))
    text = json.dumps({**document(it), "attributes": {"units": "K", "long_name": "air temperature"}})
    for i in range(NODES):
        node = folder / f"a{i:05d}"
        node.mkdir()
        (node / "zarr.json").write_text(text)


def make(folder, it):
    if (folder / ".done").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if it.data == "texts":
        make_texts(folder, it)
    elif it.data == "tree":
        make_tree(folder, it)
    elif it.data == "none":
        (folder / "zarr.json").write_text(json.dumps(document(it)))
    elif it.format == 2:
        make_v2(folder, it)
    else:
        make_array(folder, it)
    (folder / ".done").touch()


def main(argv):
    folder, size, *names = argv
    sets = cases.sets(int(size))
    for name in names:
        print(f"data: {name}", file=sys.stderr, flush=True)
        make(pathlib.Path(folder) / name, sets[name])


if __name__ == "__main__":
    main(sys.argv[1:])
