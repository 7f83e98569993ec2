"""For tests of the Python package: stores to work in, and both packages side by side.

scripts/run-tests python builds the package into build/dev/python and sets PYTHONPATH."""
import asyncio
import inspect

import numpy as np
import pytest

import zarrc


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


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Runs coroutines, of which zarr-python's tests of stores are made."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(pyfuncitem.obj(**given))
    return True
