"""For every pytest suite: hypothesis profiles, one seed, the marker `long`, the options --zarr-python and --draw. With
$ZARRC_TEST_DEVICE (see support/zarrc_abi.py) only the tests that move elements through a device, and with $ZARRC_TEST_STORE (see
support/elsewhere.py) only those that have a context.

scripts/run-tests sets ZARRC (the program), ZARRC_LIBRARY (libzarrc.so), ZARRC_BUILD (the
build folder) and HYPOTHESIS_PROFILE. By hand: ZARRC=build/dev/bin/zarrc pytest tests/cli
"""
import inspect
import os
import random
import signal
import threading

import pytest
from hypothesis import HealthCheck, core, settings

os.environ["ZARRC_CONFIG"] = ""  # no settings of the user
LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"

# A script's background job ignores SIGINT, and so would every program that a test starts and interrupts.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

_calm = dict(deadline=None, print_blob=True, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("default", max_examples=100, **_calm)
settings.register_profile("long", max_examples=3000, **_calm)
settings.register_profile("few", max_examples=30, **_calm)  # in make test
settings.load_profile("long" if LONG else "few" if "ZARR_TEST_FEW" in os.environ else "default")


# Modules of tests/support that use zarr-python, and it.
ZARR_PYTHON = {"zarr", "peers", "both_ways"}


# These count what the fake device does.
OF_THE_FAKE_DEVICE = {"test_copies", "test_front"}
NEVER_LEFT_OUT = {"test_memory_kinds"}  # docs/status/memory.md says that CI runs it
HALVED = {"test_hostile"}  # by make test; CI leaves none out


def pytest_addoption(parser):
    parser.addoption("--draw", type=int, metavar="N", help="N of the tests, which the seed chooses")
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


def leave(config, items, wanted):
    """Takes all others away."""
    config.hook.pytest_deselected(items=[item for item in items if not wanted(item)])
    items[:] = [item for item in items if wanted(item)]


def module_name(item):
    return item.module.__name__.rpartition(".")[2]


def moves_through_a_device(item):
    found = vars(item.module)
    return module_name(item) not in OF_THE_FAKE_DEVICE and (
        {"both_ways", "read_every_way", "write_every_way"} & set(found) or '"fake"' in inspect.getsource(item.module))


def pytest_collection_modifyitems(config, items):
    if config.getoption("--zarr-python"):
        leave(config, items, lambda item: ZARR_PYTHON & set(vars(item.module))
              and not item.get_closest_marker("zarr_makes_input"))
    if os.environ.get("ZARRC_TEST_DEVICE"):
        leave(config, items, moves_through_a_device)
    if os.environ.get("ZARRC_TEST_STORE"):
        leave(config, items, lambda item: "context" in item.fixturenames)
    if (most := config.getoption("--draw")) is not None and most < len(items):
        chance = random.Random(int(os.environ["ZARRC_SEED"]))
        drawn = set(chance.sample([item.nodeid for item in items], most))
        halved = [item.nodeid for item in items if module_name(item) in HALVED]
        drawn.update(chance.sample(halved, len(halved) // 2) if "ZARR_TEST_FEW" in os.environ else halved)
        leave(config, items, lambda item: item.nodeid in drawn or module_name(item) in NEVER_LEFT_OUT)
    for item in items:
        if not LONG and item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="long: make test-long"))
