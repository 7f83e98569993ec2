"""For every pytest suite: hypothesis profiles and the marker `long`.

scripts/run-tests sets ZARRC (the program), ZARRC_LIBRARY (libzarrc.so), ZARRC_BUILD (the
build folder) and HYPOTHESIS_PROFILE. By hand: ZARRC=build/dev/bin/zarrc pytest tests/cli
"""
import os

import pytest
from hypothesis import HealthCheck, settings

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"

_calm = dict(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("default", max_examples=100, **_calm)
settings.register_profile("long", max_examples=3000, **_calm)
settings.load_profile("long" if LONG else "default")


def pytest_collection_modifyitems(items):
    for item in items:
        if not LONG and item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="long: make test-long"))
