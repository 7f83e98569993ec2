"""For every pytest suite: hypothesis profiles, one seed, and the marker `long`.

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


def pytest_configure(config):
    """One seed for all workers; it is printed at the end, and ZARRC_SEED sets it. The long
    runs look for what is new; what a push must pass is the same each time."""
    number = random.SystemRandom().randrange(2**32) if LONG else 20261121
    os.environ.setdefault("ZARRC_SEED", str(number))
    core.global_force_seed = int(os.environ["ZARRC_SEED"])


def pytest_terminal_summary(terminalreporter):
    """After every run, with -q too, which has no header: what passed can be repeated."""
    terminalreporter.write_line(f"repeat with ZARRC_SEED={os.environ['ZARRC_SEED']}")


def pytest_collection_modifyitems(items):
    for item in items:
        if not LONG and item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="long: make test-long"))
