"""The matrix: every data type x a chain of codecs that takes it x order x shards x selections
x memory x pipeline, drawn for a while instead of a number of times: 60 s of two cores, ten
minutes in `make test-long`. Each round has a seed of its own; a failure says which, and
ZARRC_MATRIX=<that seed> repeats that round alone."""
import math
import os
import time

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

import matrix
from twins import run

SEED = int(os.environ["ZARRC_SEED"])
ONLY = os.environ.get("ZARRC_MATRIX")
PARTS, EXAMPLES = 4, 25
SECONDS = (600 if os.environ.get("HYPOTHESIS_PROFILE") == "long" else 60) * 2 / (2 * PARTS)
pytestmark = pytest.mark.timeout(3600)


class Enough(BaseException):
    """Leaves hypothesis, which may find that the example ended too early, or not."""


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("version", [2, 3])
def test_matrix(context, version, part):
    made = {2: matrix.cases_v2, 3: matrix.cases_v3}[version]()
    end = math.inf if ONLY else time.monotonic() + SECONDS * (0.5 if version == 2 else 1.5)
    number, late = 0, False
    while number == 0 or not ONLY and time.monotonic() < end:
        chosen = int(ONLY) if ONLY else (SEED + 1000003 * (2 * part + version) + 7919 * number) % 2**32

        @seed(chosen)
        @settings(max_examples=EXAMPLES, database=None)
        @given(case=made, data=st.data())
        def examples(case, data):
            nonlocal end, late
            if time.monotonic() > end:
                late = True
                raise Enough
            try:
                run(context, case, data)
            except Exception:
                end = math.inf  # whatever repeats or shrinks it gets the time
                raise

        try:
            examples()
        except BaseException as problem:
            if late:
                return
            problem.add_note(f"round {number} of part {part}: repeat it with ZARRC_MATRIX={chosen}")
            raise
        number += 1
