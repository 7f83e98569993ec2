"""For tests of the Python package: stores to work in, and both packages side by side.

scripts/run-tests python builds the package into build/dev/python and sets PYTHONPATH."""
import multiprocessing
import pathlib
import sys
import tomllib

import numpy as np
import pytest

import zarrc

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))


@pytest.fixture(scope="session")
def semaphores():
    """What queues, pools and clusters of processes are made of."""
    try:
        multiprocessing.get_context("spawn").Lock()
    except OSError as problem:
        pytest.skip(f"multiprocessing cannot create semaphores (is /dev/shm writable?): {problem}")


@pytest.fixture
def path(tmp_path):
    """A place for a store."""
    return str(tmp_path / "x.zarr")


@pytest.fixture(params=["local", "memory"])
def store(request, path):
    return zarrc.open_store(path if request.param == "local" else "memory:")


@pytest.fixture(autouse=True)
def settings():
    """Each test begins and ends with the default settings."""
    zarrc.config.reset()
    yield
    zarrc.config.reset()


@pytest.fixture
def numbers():
    """Some elements that differ."""
    return np.arange(60 * 40, dtype="int32").reshape(60, 40)


def install(tmp_path, package=None):
    """A folder with what a wheel installs: the hooks, their entry points, and the package or what is in its place."""
    source = pathlib.Path(zarrc.__file__).parents[1]
    folder = tmp_path / "site"
    info = folder / "zarrc-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: zarrc\nVersion: 0\n")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (info / "entry_points.txt").write_text("".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in project["entry-points"].items()))
    (folder / "zarrc_hook").symlink_to(source / "zarrc_hook")
    if package is None:
        (folder / "zarrc").symlink_to(source / "zarrc")
    else:
        (folder / "zarrc").mkdir()
        (folder / "zarrc/__init__.py").write_text(package)
    return str(folder)
