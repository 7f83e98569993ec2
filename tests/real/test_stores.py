"""Stores that other programs wrote (scripts/real-stores), compared with what each writer read
back: the hierarchy, every element of every array, attributes and dimension names. Then the zarrc
program verifies, migrates, copies and reencodes them."""
import base64
import json
import math
import os
import pathlib
import re
import shutil
import subprocess

import numpy as np
import pytest

import peers

ROOT = pathlib.Path(__file__).resolve().parents[2]
STORES = pathlib.Path(os.environ.get("ZARRC_REAL_STORES", ROOT / "build/real-stores"))
PROGRAM = os.environ.get("ZARRC", str(ROOT / "build/dev/bin/zarrc"))
MADE = sorted(STORES.glob("*/*.json"))


def zarrc(*arguments, code=0):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ZARRC_")}
    done = subprocess.run([PROGRAM, *map(str, arguments)], env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    assert code is None or done.returncode == code, (arguments, done.returncode, done.stderr.decode())
    return done


class Store:
    """A store with what its writer left beside it."""

    def __init__(self, document):
        known = json.loads(document.read_text())
        self.folder = document.with_name(known["store"])
        self.writer, self.nodes, self.n5 = known["writer"], known["nodes"], known.get("n5")
        self.refused, self.unmigrated = known.get("refused", {}), known.get("unmigrated")
        self.lossy = known.get("lossy")
        self.numbers = np.load(document.with_name(known["store"] + ".npz"))

    def arrays(self):
        return [path for path, node in self.nodes.items() if node["kind"] == "array"]

    def values(self, path):
        """An array of numbers, or a list of elements."""
        node = self.nodes[path]
        return self.numbers[node["numbers"]] if "numbers" in node else node["elements"]

    def shape(self, path):
        node = self.nodes[path]
        return list(self.values(path).shape) if "numbers" in node else node["shape"]


if MADE:
    @pytest.fixture(params=MADE, ids=lambda p: f"{p.parent.name}-{p.stem}")
    def store(request):
        found = Store(request.param)
        if found.n5:
            pytest.skip("N5 is no Zarr: test_n5 reads it")
        return found
else:
    @pytest.fixture
    def store():
        pytest.skip("no stores are made: scripts/real-stores makes them (make test-long)")


def raw(values):
    """As `cat --format=raw` writes them."""
    return np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes()


def spell_numbers(value):
    """Numbers that JSON does not have are texts for zarrc."""
    if isinstance(value, dict):
        return {k: spell_numbers(v) for k, v in value.items()}
    if isinstance(value, list):
        return [spell_numbers(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def below(folder, path):
    return f"{folder}:/{path}"


def read_filters(folder, path):
    document = folder / path / ".zarray"
    return str(json.loads(document.read_text())["filters"]) if document.exists() else ""


def element(value):
    """As `cat --format=elements` spells it."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def compare_elements(folder, store, path):
    expected = store.values(path)
    if not isinstance(expected, list) and expected.dtype.kind in "US" and "vlen-" in read_filters(folder, path):
        expected = [element(v) for v in expected.ravel().tolist()]  # of zarr-python 3.0
    if isinstance(expected, list):
        lines = zarrc("cat", "--format=elements", below(folder, path)).stdout.decode().splitlines()
        assert [json.loads(line) for line in lines] == expected, path
    else:
        assert zarrc("cat", "--format=raw", below(folder, path)).stdout == raw(expected), path


def test_hierarchy(store):
    found = json.loads(zarrc("tree", "--json", store.folder).stdout)["nodes"]
    assert {n["path"]: n["kind"] for n in found} == {
        **{path: node["kind"] for path, node in store.nodes.items() if path},
        **{path: "array" for path in store.refused}}


def test_elements(store):
    for path in store.arrays():
        compare_elements(store.folder, store, path)


def test_attributes(store):
    for path, node in store.nodes.items():
        info = json.loads(zarrc("info", "--json", below(store.folder, path)).stdout)
        assert info["attributes"] == spell_numbers(node["attributes"]), path
        if node["kind"] == "array":
            assert info["shape"] == store.shape(path), path
            names = info["dimension_names"] or [None] * len(info["shape"])
            assert names == (node["dims"] or [None] * len(info["shape"])), path


def test_verify(store):
    """Valid, except for what is refused on purpose: errors give its name."""
    done = zarrc("verify", "--json", store.folder, code=1 if store.refused else 0)
    faults = json.loads(done.stdout)["faults"]
    assert {fault["node"] for fault in faults} == set(store.refused)
    for fault in faults:
        assert re.search(store.refused[fault["node"]], fault["reason"]), fault


def copy_cleaned(store, folder):
    """A copy without what is refused. That of an archive is a folder."""
    if store.folder.is_file():
        zarrc("cp", store.folder, folder)
    else:
        shutil.copytree(store.folder, folder)
    for path in store.refused:
        zarrc("rm", "-r", "-f", below(folder, path))


def test_copies(store, tmp_path):
    mine = tmp_path / "mine.zarr"
    copy_cleaned(store, mine)
    zarrc("cp", "--verify", mine, tmp_path / "copy.zarr")
    zarrc("diff", mine, tmp_path / "copy.zarr")
    for path in store.arrays():
        if store.lossy and re.search(store.lossy, path):  # these lose something each time
            store.nodes.pop(path)
            zarrc("rm", below(mine, path))
            zarrc("rm", below(tmp_path / "copy.zarr", path))
    zarrc("reencode", "--verify", tmp_path / "copy.zarr", tmp_path / "new.zarr")
    zarrc("diff", mine, tmp_path / "new.zarr")
    for path in store.arrays():
        compare_elements(tmp_path / "new.zarr", store, path)


# ---- migrated: zarr-python reads it ------------------------------------------------------

def test_migrate(store, tmp_path):
    mine = tmp_path / "mine.zarr"
    copy_cleaned(store, mine)
    formats = {n["zarr_format"] for n in json.loads(zarrc("tree", "--json", mine).stdout)["nodes"]}
    if 2 not in formats and not (mine / ".zgroup").exists():
        pytest.skip("it is v3 already")
    done = zarrc("migrate", mine, code=None)
    if store.unmigrated:
        assert done.returncode == 6
        told = done.stderr.decode()
        for path, why in re.findall(r"^(?:zarrc:|) +/(.*?): (.*)$", told, re.M):
            assert re.search(store.unmigrated, why), told
            zarrc("rm", "-r", below(mine, path))
            store.nodes.pop(path)
        done = zarrc("migrate", mine, code=None)
    assert done.returncode == 0, done.stderr.decode()
    for path in store.arrays():
        assert (mine / path / "zarr.json").exists()
        compare_elements(mine, store, path)
        read_by_zarr_python(mine / path, store.values(path))


def read_by_zarr_python(folder, expected):
    document = json.loads((folder / "zarr.json").read_text())
    if is_lacking(document):
        return
    found = np.asarray(peers.read(peers.PYTHON, folder))
    if isinstance(expected, list):
        assert [element(v) for v in found.ravel().tolist()] == expected, folder
    elif found.dtype.kind in "OT":
        assert found.tolist() == expected.tolist(), folder
    else:
        assert raw(found) == raw(expected), folder


def is_lacking(document):
    """zarr-python has no v3 form of some of numcodecs' codecs, and does not follow changes of type
    in others."""
    names = list(peers.names_in(document["codecs"]))
    casts = any(c["name"] == "numcodecs.quantize" and c["configuration"].get("astype") not in (
        None, c["configuration"]["dtype"]) for c in document["codecs"])
    return casts or "numcodecs.base64" in names
