"""The package and the examples are typed: mypy --strict finds nothing in them. The examples run."""
import os
import pathlib
import re
import subprocess
import sys

import pytest
from conftest import install

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples/python").glob("*.py"))


def strict(tmp_path, *files):
    pytest.importorskip("mypy", reason="scripts/venv installs mypy")
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--config-file", ROOT / "pyproject.toml", "--cache-dir", tmp_path, *files], cwd=ROOT / "python",
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_package_and_examples(tmp_path):
    strict(tmp_path, "zarrc", "zarrc_hook", *EXAMPLES)


def test_arguments(tmp_path):
    """What users give is of the types of the parameters, and what they must not give is not."""
    pytest.importorskip("zarr", minversion="3.2", reason="older ones have other types")
    strict(tmp_path, ROOT / "tests/python/typed_calls.py")


def test_pyright():
    """Another checker finds nothing in the examples: what they use of the package is typed."""
    pytest.importorskip("pyright", reason="make test-torch installs pyright")
    done = subprocess.run([sys.executable, "-m", "pyright", "--project", ROOT / "pyproject.toml", "--pythonpath", sys.executable], cwd=ROOT,
                          capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr


def test_stub_has_every_name():
    """_core.pyi lists what the extension has, and nothing else."""
    import ast

    from zarrc import _core

    tree = ast.parse((ROOT / "python/zarrc/_core.pyi").read_text())
    told = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            told[node.name] = {one.name if isinstance(one, ast.FunctionDef) else one.target.id for one in node.body
                               if isinstance(one, (ast.FunctionDef, ast.AnnAssign))}
        elif isinstance(node, ast.FunctionDef):
            told[node.name] = None
        elif isinstance(node, ast.AnnAssign):
            told[node.target.id] = None
    there = {name for name in dir(_core) if not name.startswith("__")}
    assert set(told) == there
    for name, members in told.items():
        if members is not None:
            inside = {one for one in vars(getattr(_core, name)) if not one.startswith("__")}
            assert {one for one in members if not one.startswith("__")} == inside, name


def test_numbers_of_c():
    """The package takes the numbers of the library from the extension; two that were copied by hand were once the same bit."""
    copied = re.compile(r"^[A-Z_]+(, [A-Z_]+)+ = -?\d+,|[{ ]\"(flags|consolidated)\"\]?(:| =) [1-9]|\b(flag|registry|_chunks)\([1-9]", re.M)
    for path in sorted((ROOT / "python").glob("zarrc*/*.py")):
        found = copied.search(path.read_text())
        assert not found, f"{path.name}: {found[0]}"


NEEDS = {"xarray_dataset": "dask", "dask_cluster": "distributed", "torch_crops": "torch", "ray_tasks": "ray"}


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_example(tmp_path, file):
    pytest.importorskip(NEEDS.get(file.stem, "zarrc"), reason="make test-torch installs what the tests else leave out")
    done = subprocess.run([sys.executable, file, "example.zarr"], cwd=tmp_path, capture_output=True, text=True, timeout=240,
                          env={**os.environ, "PYTHONPATH": install(tmp_path)})
    assert done.returncode == 0 and (not done.stderr or file.stem == "ray_tasks"), done.stderr
    outputs = (ROOT / "examples/outputs.txt").read_text()
    assert done.stdout == outputs.partition(f"\n== {file.stem}\n")[2].partition("== ")[0]
