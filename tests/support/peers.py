"""peers - zarr-python, zarrs and tensorstore behind one pair of functions, and what each
of them is known to lack. All work on a folder whose metadata is there already."""
import base64
import math
import pathlib
import tempfile
import warnings

import numpy as np
import pytest
import tensorstore
import zarr
import zarrs.pipeline

import cases

PYTHON, ZARRS, TENSORSTORE = "zarr-python", "zarrs", "tensorstore"
PIPELINES = {PYTHON: "zarr.core.codec_pipeline.BatchedCodecPipeline",
             ZARRS: "zarrs.ZarrsCodecPipeline"}
ZARR_AT_LEAST_3_3 = tuple(int(v) for v in zarr.__version__.split(".")[:2]) >= (3, 3)
RECTILINEAR = {"array.rectilinear_chunks": True} if "rectilinear_chunks" in zarr.config.get("array") else {}


def needs_zarr_3_3(why):
    """A mark. why: what an older version does, after its name."""
    return pytest.mark.skipif(not ZARR_AT_LEAST_3_3, reason=f"zarr-python {zarr.__version__} {why}")


needs_structs = needs_zarr_3_3("lacks the data type struct")
needs_rectilinear = pytest.mark.skipif(
    not RECTILINEAR, reason=f"zarr-python {zarr.__version__} has no rectilinear grids")


def open_zarr(peer, folder, mode="r", **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Strict: what zarrs' pipeline cannot do is an error, and not left to zarr-python's.
        with zarr.config.set({"codec_pipeline.path": PIPELINES[peer], "codec_pipeline.strict": True, **RECTILINEAR}):
            return zarr.open_array(str(folder), mode=mode, **options)


def open_tensorstore(folder, **options):
    driver = "zarr3" if (folder / "zarr.json").exists() else "zarr"
    spec = {"driver": driver, "kvstore": {"driver": "file", "path": f"{folder}/"}}
    return tensorstore.open(spec, **options).result()


def read(peer, folder):
    if peer != TENSORSTORE:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            array = open_zarr(peer, folder)
            return np.asarray(array[...], array.dtype)  # 0-d: a scalar without its padding
    return open_tensorstore(folder).read().result()


def write(peer, folder, data):
    if peer != TENSORSTORE:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            open_zarr(peer, folder, "r+")[...] = data
        return
    open_tensorstore(folder).write(data).result()


def translate(document):
    """The document as the peers speak it: none of them reads r<N> into elements, but zarr-python
    has the same bytes by the name raw_bytes."""
    dtype, fill = document["data_type"] if document["zarr_format"] == 3 else "", document["fill_value"]
    if not isinstance(dtype, str) or not dtype.startswith("r"):
        return document
    if isinstance(fill, list):
        fill = base64.b64encode(bytes(fill)).decode()
    return {**document, "fill_value": fill, "data_type": {
        "name": "raw_bytes", "configuration": {"length_bytes": int(dtype[1:]) // 8}}}


# ---- what they lack ---------------------------------------------------------------------

def permute(shape, codec):
    return [shape[d] for d in codec["configuration"]["order"]]


def shard_shapes_divide(shape, codecs):
    """zarr-python wants the inner shape to divide the shard as it is before transposition."""
    for codec in codecs:
        if codec["name"] == "sharding_indexed":
            inner = codec["configuration"]["chunk_shape"]
            if any(s % i for s, i in zip(shape, inner)):
                return False
            return shard_shapes_divide(inner, codec["configuration"]["codecs"])
    return True


def codecs_behind_shards(codecs):
    for at, codec in enumerate(codecs):
        if codec["name"] == "sharding_indexed":
            return at + 1 < len(codecs) or codecs_behind_shards(codec["configuration"]["codecs"])
    return False


def names_in(codecs):
    for codec in codecs:
        yield codec["name"]
        yield from names_in(codec.get("configuration", {}).get("codecs", []))


def old_zarr_fails(dtype, rank, codecs):
    """zarr-python 3.1 can't hash the fill value of raw types, which its shards do, and has no
    shards of rank 0."""
    if ZARR_AT_LEAST_3_3 or "sharding_indexed" not in names_in(codecs):
        return False
    return rank == 0 or not isinstance(dtype, str) or dtype[0] == "r"


def zarrs_takes(document):
    """Whether zarrs' own pipeline does it: by its own word for the metadata, and never objects, texts,
    raw bytes and times, or a fill value that is not said."""
    if document["fill_value"] is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        cases.put_document(pathlib.Path(folder), translate(document))
        try:
            return open_zarr(ZARRS, folder).dtype.kind not in "VSUMmOT"
        except zarrs.pipeline.UnsupportedMetadataError:
            return False


def find_supporting(document):
    """The peers that open this document."""
    found = find_opening(document)
    return [peer for peer in found if peer != ZARRS or zarrs_takes(document)]


def find_opening(document):
    if document["zarr_format"] == 2:
        return supporting_v2(document)
    dtype, codecs = document["data_type"], document["codecs"]
    rank, found = len(document["shape"]), []
    if document["chunk_grid"]["name"] == "rectilinear":
        return supporting_rectilinear(document)
    if document["chunk_grid"]["name"] != "regular":
        return found
    struct = isinstance(dtype, dict) and dtype["name"] == "struct"
    chunks = document["chunk_grid"]["configuration"]["chunk_shape"]
    if rank > 32:  # NumPy's own broadcasting ends there, and tensorstore
        return found
    if shard_shapes_divide(chunks, codecs) and not old_zarr_fails(dtype, rank, codecs):
        found.append(PYTHON)
        # zarrs reads missing NaNs as its own NaN, and mixes up the halves of big-endian complex
        # numbers when it decodes a chunk in part.
        big_complex = str(dtype).startswith("complex") and "'big'" in str(codecs)
        if "0x7f" not in str(document["fill_value"]) and not big_complex and not struct:
            found.append(ZARRS)
    if isinstance(dtype, str) and dtype[0] != "r" and not codecs_behind_shards(codecs) and \
            (rank < 32 or "sharding_indexed" not in names_in(codecs)):
        found.append(TENSORSTORE)
    return found


def expand_edges(spec, length):
    """Edges of one dimension of a rectilinear grid, written out: those that the array reaches."""
    if isinstance(spec, int):
        return [spec] * -(-length // spec)
    edges, found, end = [], [], 0
    for item in spec:
        edges += [item[0]] * item[1] if isinstance(item, list) else [item]
    for edge in edges:
        if end >= length:
            break
        found.append(edge)
        end += edge
    return found


def supporting_rectilinear(document):
    """zarr-python behind its flag, and zarrs in it, with every edge a multiple of the untransposed inner one."""
    first = [d if isinstance(d, int) else None for d in document["chunk_grid"]["configuration"]["chunk_shapes"]]
    for at, spec in enumerate(document["chunk_grid"]["configuration"]["chunk_shapes"]):
        if first[at] is not None:
            continue
        edges = {item[0] if isinstance(item, list) else item for item in spec}
        first[at] = math.gcd(*edges)
    return [PYTHON, ZARRS] if RECTILINEAR and shard_shapes_divide(first, document["codecs"]) else []


def supporting_v2(document):
    """zarrs' pipeline refuses other byte orders and gets chunks of order F from zarr-python in a
    form that it cannot take; tensorstore has no filters, texts or times."""
    found, compressor = [PYTHON], document["compressor"] or {}
    if isinstance(document["dtype"], list):  # tensorstore opens one field of it
        return [] if any(len(field) > 2 for field in document["dtype"]) else [PYTHON]
    if document["dtype"][0] != ">" and document["order"] == "C":
        found.append(ZARRS)
    if document["dtype"][1] in "biufc" and not document["filters"] and \
            compressor.get("id") != "lz4" and not compressor.get("checksum"):
        found.append(TENSORSTORE)
    return found
