import os
import pathlib
import random
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))


def pytest_configure(config):
    """One seed for all workers; it stands at the end, and ZARRC_SEED sets it. The long
    runs look for what is new; what a push must pass is the same each time."""
    from hypothesis import core
    fresh = os.environ.get("HYPOTHESIS_PROFILE") == "long"
    number = random.SystemRandom().randrange(2**32) if fresh else 20261121
    os.environ.setdefault("ZARRC_SEED", str(number))
    core.global_force_seed = int(os.environ["ZARRC_SEED"])


def pytest_terminal_summary(terminalreporter):
    """After every run, with -q too, which has no header: what passed can be repeated."""
    terminalreporter.write_line(f"repeat with ZARRC_SEED={os.environ['ZARRC_SEED']}")


@pytest.fixture(scope="session")
def context():
    from zarrc_ctypes import Context
    made = Context(n_threads=3)
    yield made
    assert made.counters().faults == 0
