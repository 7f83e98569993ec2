import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))


@pytest.fixture(scope="session")
def context():
    """One context with the fake device; nothing may ever break the device's rules."""
    from zarrc_ctypes import Context
    made = Context(max_threads=2)
    yield made
    assert made.counters().faults == 0


@pytest.fixture
def rng(request):
    """Random numbers that depend on the test's name alone, so a failure repeats."""
    import zlib

    import numpy as np
    seed = zlib.crc32(request.node.name.encode())
    print(f"seed {seed}")
    return np.random.default_rng(seed)
