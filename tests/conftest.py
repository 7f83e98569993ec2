"""For every pytest suite: hypothesis profiles, one seed, the marker `long`, the option --zarr-python.

scripts/run-tests sets ZARRC (the program), ZARRC_LIBRARY (libzarrc.so), ZARRC_BUILD (the
build folder) and HYPOTHESIS_PROFILE. By hand: ZARRC=build/dev/bin/zarrc pytest tests/cli
"""
import os
import random

import pytest
from hypothesis import HealthCheck, core, settings

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"

_calm = dict(deadline=None, print_blob=True, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("default", max_examples=100, **_calm)
settings.register_profile("long", max_examples=3000, **_calm)
settings.load_profile("long" if LONG else "default")


# Modules of tests/support that use zarr-python, and it.
ZARR_PYTHON = {"zarr", "peers", "both_ways"}


def pytest_addoption(parser):
    parser.addoption("--zarr-python", action="store_true",
                     help="only tests whose result depends on the version of zarr-python")


def pytest_configure(config):
    """One seed for all workers; it is printed at the end, and ZARRC_SEED sets it. The long
    runs look for what is new; what a push must pass is the same each time."""
    number = random.SystemRandom().randrange(2**32) if LONG else 20261121
    os.environ.setdefault("ZARRC_SEED", str(number))
    core.global_force_seed = int(os.environ["ZARRC_SEED"])


def pytest_terminal_summary(terminalreporter):
    """After every run, with -q too, which has no header: what passed can be repeated."""
    terminalreporter.write_line(f"repeat with ZARRC_SEED={os.environ['ZARRC_SEED']}")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--zarr-python"):
        out = {item for item in items
               if not ZARR_PYTHON & set(vars(item.module)) or item.get_closest_marker("zarr_makes_input")}
        config.hook.pytest_deselected(items=list(out))
        items[:] = [item for item in items if item not in out]
    for item in items:
        if not LONG and item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="long: make test-long"))
