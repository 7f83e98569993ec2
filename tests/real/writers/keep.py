"""keep - what a writer leaves beside each store: what its own library reads back out of it.

NAME.json names the store, who wrote it, and every node below it: its kind, attributes and
dimension names, and where its elements are: an array of NAME.npz, or a list of texts, bytes
(base64) or lists in the JSON itself. Runs in every writer's environment: only NumPy is needed,
and `walk` takes the zarr-python that is there.
"""
import base64
import json
import pathlib
import shutil
import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")
OUT = pathlib.Path(sys.argv[1]).resolve()
DIMENSIONS = "_ARRAY_DIMENSIONS"


def place(name):
    """Where a store of that name goes; what was there is gone."""
    folder = OUT / name
    if folder.is_dir():
        shutil.rmtree(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    return str(folder)


def element(value):
    """An object of Python as the CLI's elements spell it."""
    if isinstance(value, np.ndarray):
        return [element(item) for item in value] if value.ndim else element(value.item())
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, np.generic):
        return value.item()
    return value


def plain(value):
    """Attributes as JSON can say them: NumPy's scalars and arrays are numbers and lists."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(v) for v in value]
    return value.item() if isinstance(value, np.generic) else value


def array(values, attributes, dims=None):
    return {"kind": "array", "values": values, "attributes": plain(attributes), "dims": dims}


def group(attributes):
    return {"kind": "group", "attributes": plain(attributes)}


def keep(name, writer, nodes, **more):
    """nodes: path ("" is the root) -> array() or group(); more: what tests/real must know.
    refused: path -> pattern of the error; unmigrated: pattern of migrate's error."""
    numbers = {}
    for at, (path, node) in enumerate(sorted(nodes.items())):
        if node["kind"] != "array":
            continue
        values = node.pop("values")
        if not isinstance(values, np.ndarray) and not isinstance(values, np.generic):
            values = np.asarray(values)
        if values.dtype.kind in "OT":
            items = [element(v) for v in values.ravel()]
            if any(isinstance(v, str) for v in items):  # 0: zarr-python's fill value of texts
                items = ["" if v == 0 else v for v in items]
            node["elements"] = items
            node["shape"] = list(values.shape)
        else:
            numbers[f"n{at}"] = values
            node["numbers"] = f"n{at}"
    np.savez(OUT / f"{name}.npz", **numbers)
    document = {"store": name, "writer": writer, "nodes": nodes, **more}
    part = OUT / f"{name}.json.part"
    part.write_text(json.dumps(document, indent=1, sort_keys=True))
    part.replace(OUT / f"{name}.json")


def walk(place_or_group, skip=()):
    """Every node as the zarr-python of this environment reads it. skip: paths it cannot read."""
    import zarr
    root = zarr.open(place_or_group, mode="r") if isinstance(place_or_group, str) else place_or_group
    nodes, todo = {}, [("", root)]
    while todo:
        path, node = todo.pop()
        attributes = dict(node.attrs)
        if hasattr(node, "shape"):
            if path in skip:
                continue
            dims = getattr(node.metadata, "dimension_names", None) if hasattr(node, "metadata") else None
            values = node[...]
            if not isinstance(values, np.ndarray):  # 0-d
                values = np.array(values, dtype=node.dtype)
            nodes[path] = array(values, attributes, list(dims) if dims else attributes.get(DIMENSIONS))
            continue
        nodes[path] = group(attributes)
        members = node.members() if hasattr(node, "members") else [(k, node[k]) for k in node]
        todo += [(f"{path}/{name}".lstrip("/"), child) for name, child in members]
    return nodes
