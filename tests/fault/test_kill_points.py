"""Every command and every writing call of the Python package, killed before each system call on a store, and pairs of commands
that run at once. make test-long tries all points, .ci/run a sample by a fixed seed; kill_points.py does the same by hand."""
import os

import kill_points
import pytest

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
REASON = kill_points.reason_to_skip()


@pytest.mark.skipif(REASON is not None, reason=str(REASON))
@pytest.mark.parametrize("name", kill_points.tasks())
@pytest.mark.timeout(1800)
def test_kill_points(name):
    _, trials, bad = kill_points.run(name, is_sample=not LONG)
    assert trials and not bad, "\n".join(bad[:20])
