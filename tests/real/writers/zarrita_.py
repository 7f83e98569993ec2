"""Runs zarrita.mjs and stores the elements that it read back. The npm package is in a folder
beside the stores."""
import json
import math
import os
import pathlib
import shutil
import subprocess

import numpy as np

from keep import OUT, array, group, keep, place

VERSION = "0.7.5"
HERE = pathlib.Path(__file__).resolve().parent


def read_values(node):
    if node["dtype"] == "string":
        return np.array(node["elements"], object).reshape(node["shape"])
    items = [math.nan if v is None else int(v) if isinstance(v, str) else v for v in node["elements"]]
    return np.array(items, node["dtype"]).reshape(node["shape"])


package = OUT / "npm"
package.mkdir(exist_ok=True)
subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(package),
                f"zarrita@{VERSION}"], check=True)
shutil.copy(HERE / "zarrita.mjs", package)
folder = place("types.zarr")
done = subprocess.run(["node", str(package / "zarrita.mjs"), folder], check=True, stdout=subprocess.PIPE,
                      env={**os.environ, "NODE_NO_WARNINGS": "1"})
nodes = {}
for path, node in json.loads(done.stdout).items():
    parents = path.strip("/").split("/")
    nodes[path.strip("/")] = group(node["attributes"]) if "dtype" not in node else array(
        read_values(node), node["attributes"], node["dims"])
keep("types.zarr", f"zarrita {VERSION}", nodes)
