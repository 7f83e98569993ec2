import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))


@pytest.fixture(scope="session")
def context():
    from zarrc_ctypes import Context
    made = Context(max_threads=3)
    yield made
    assert made.counters().faults == 0
