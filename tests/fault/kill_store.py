"""kill_store - what readers find in the stores of a folder: each node that has a document, opened by its path and through
consolidated metadata. It changes nothing."""
import json
import os
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import zarrc

warnings.simplefilter("ignore", zarrc.ZarrcWarning)  # of unfinished work
DOCUMENTS = {"zarr.json", ".zarray", ".zgroup"}
JOB = ".zarrc-job"
STAGED = ".zarrc-import"


class Node(NamedTuple):
    kind: str
    shape: tuple = ()
    dtype: str = ""
    data: bytes = b""
    attributes: str = ""
    block: int = 0  # bytes of the elements of one stored object

    def is_like(self, other):
        """Whether only elements differ."""
        return self._replace(data=b"") == other._replace(data=b"")


def stores(folder):
    """The folders that may hold a store."""
    return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and ".zarr" in entry.name)


def find_nodes(folder):
    """(name of the store, path in it) of every folder that has a document of Zarr."""
    for store in stores(folder):
        for at, _, files in os.walk(os.path.join(folder, store)):
            if DOCUMENTS & set(files):
                path = os.path.relpath(at, os.path.join(folder, store))
                yield store, "" if path == "." else path


def name(store, path):
    return f"{store}/{path}" if path else store


def describe_node(node):
    attributes = json.dumps(dict(node.attrs), sort_keys=True)
    if not hasattr(node, "shape"):
        return Node("group", attributes=attributes)
    block = (node.shards or node.chunks)[0] * node.itemsize
    return Node("array", tuple(node.shape), str(node.dtype), np.asarray(node[...]).tobytes(), attributes, block)


def read_nodes(folder):
    """Every node by its name. A node that cannot be opened is missing; one that cannot be read is an error."""
    found = {}
    for store, path in find_nodes(folder):
        try:
            node = zarrc.open(os.path.join(folder, store), path=path, mode="r")
        except zarrc.errors.NodeNotFoundError:
            continue
        found[name(store, path)] = describe_node(node)
    return found


def own_document(folder, path):
    """The metadata of a node, in the form that consolidated metadata of format 3 or 2 has; None if the node does not exist."""
    try:
        document = json.loads((folder / path / "zarr.json").read_text())
        document.pop("consolidated_metadata", None)
        return document
    except FileNotFoundError:
        return None


def list_entries(store):
    """(path, document in the consolidated metadata, document of the node or None) of each entry of a store's root."""
    root = read_json(store / "zarr.json")
    for path, document in (root.get("consolidated_metadata") or {"metadata": {}})["metadata"].items():
        document.pop("consolidated_metadata", None)
        yield path, document, own_document(store, path)
    if root:  # readers prefer format 3
        return
    for key, document in read_json(store / ".zmetadata").get("metadata", {}).items():
        own = read_json(store / key)
        yield key.rpartition("/")[0], document, own or None


def read_json(path):
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return {}


def read_consolidated(folder):
    """({name: node as read through consolidated metadata}, {name: (document listed, document of the node)} if they differ)"""
    found, different = {}, {}
    for store in map(Path(folder).joinpath, stores(folder)):
        rows = list(list_entries(store))
        if not rows:
            continue
        try:
            root = zarrc.open_group(str(store), mode="r", use_consolidated=True)
        except zarrc.errors.NodeNotFoundError:
            continue
        for path, listed, own in rows:
            if listed != own:
                different[name(store.name, path)] = listed, own
            if path:
                found[name(store.name, path)] = describe_node(root[path])
    return found, different


def files(folder):
    return sorted(str(p.relative_to(folder)) for store in stores(folder) for p in (Path(folder) / store).rglob("*") if not p.is_dir())


def is_occupied(folder, path):
    """Whether files are left at a place that is not a node."""
    return any(files for _, _, files in os.walk(os.path.join(folder, path)))
