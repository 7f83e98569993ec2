"""Metadata documents that the repository already has: what zarr-python writes (tests/golden), the
examples of the registry (tests/conformance/registry_examples.py) and the hostile stores."""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "conformance"), str(HERE.parent / "hostile")]
from every_store import CASES  # noqa: E402
from registry_examples import examples  # noqa: E402
from seeds_texts import GRIDS, KEYS, STRUCTS  # noqa: E402

LONGEST = 4000  # bytes: a fuzzer changes short inputs better
LITTLE = [{"name": "bytes", "configuration": {"endian": "little"}}]


def dump(value):
    """Compact, and with lone surrogates as escapes."""
    return json.dumps(value, separators=(",", ":")).encode()


def array(**changes):
    return {"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "uint8",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
            "chunk_key_encoding": "default", "fill_value": 0, "codecs": LITTLE, "attributes": {}, **changes}


def array_v2(**changes):
    return {"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<i4", "fill_value": 0, "order": "C",
            "filters": None, "compressor": None, **changes}


def written_documents():
    """Documents that a person or zarr-python wrote."""
    for document in json.loads((HERE.parent / "golden/zarr-python.json").read_text()).values():
        yield dump(document)
    for grid in GRIDS:
        shape = [9] * (3 if grid is not GRIDS[0] and grid is not GRIDS[1] else 2)
        yield dump(array(shape=shape, chunk_grid=grid))
    for inner in (1, 2):
        yield dump(array(codecs=[{"name": "sharding_indexed", "configuration": {
            "chunk_shape": [inner], "codecs": LITTLE, "index_codecs": LITTLE}}]))
    for keys in KEYS:
        yield dump(array(chunk_key_encoding=keys))
    for text in STRUCTS:
        yield dump(array_v2(dtype=json.loads(text)) if text[0] == "[" else array(data_type=json.loads(text)))


def hostile():
    """(document, chunk or nothing) of every array there."""
    for make in CASES.values():
        files = make().files
        for key, document in files.items():
            folder, _, name = key.rpartition("/")
            if name in ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata") and len(document) < LONGEST:
                chunks = [value for other, value in files.items()
                          if folder and other.startswith(f"{folder}/") and other != key and len(value) < 1000]
                yield document, chunks[:1]


def seeds():
    """{target: [bytes]}: each document goes to every target that takes one."""
    found = {name: [] for name in ("meta_v2", "meta_v3", "consolidated", "nodes", "shard")}
    documents = [*written_documents(), *(dump(example.document) for example in examples())]
    chunks = [bytes(96) for _ in documents]
    for document, stored in hostile():
        documents.append(document)
        chunks.append(b"".join(stored))
    for document, chunk in zip(documents, chunks):
        many = b"consolidated" in document
        old = b'"zarr_format":2' in document.replace(b" ", b"") and not many
        for target in ("consolidated", "nodes") if many else ("meta_v2",) if old else ("meta_v3",):
            found[target].append(document)
        if not many and not old:
            found["shard"].append(document + b"\0" + chunk)
    return found
