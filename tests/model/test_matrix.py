"""The matrix: every data type x a chain of codecs that takes it x order x shards x selections
x memory x pipeline. A push draws a fixed number of rounds from a fixed seed, so that a faster
machine draws no other cases; `make test-long` draws for ten minutes of two cores, from a fresh
seed. Each round has a seed of its own; a failure says which, and ZARRC_MATRIX=<that seed>
repeats that round alone."""
import itertools
import json
import os
import pathlib
import re
import subprocess
import time

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import matrix
from twins import run

SEED = int(os.environ["ZARRC_SEED"])
ONLY = os.environ.get("ZARRC_MATRIX")
LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
PARTS, EXAMPLES = 4, 25
FEW = "ZARR_TEST_FEW" in os.environ
ROUNDS = {2: 2, 3: 3} if FEW else {2: 6, 3: 12}  # of each part: all of them take some 60 seconds of a core
SECONDS = {2: 75, 3: 225}  # of each part, instead, in the long run
pytestmark = pytest.mark.timeout(3600)


class Enough(BaseException):
    """Leaves hypothesis, which lets it pass."""


ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = os.environ.get("ZARRC", str(ROOT / "build/dev/bin/zarrc"))
# What the matrix does not draw: name, and why.
NOT_DRAWN = {
    **{(2, name): "numcodecs, which v2's cases are compared with, has no such codec"
       for name in ("snappy", "nvcomp_batch")},
    "pcodec": "no implementation", "numcodecs.pcodec": "no implementation", "zarrs.gdeflate": "no implementation",
}


def names_in(node):
    """Of data types and codecs, in a document of either format."""
    if isinstance(node, dict):
        mine = {node[key] for key in ("name", "id", "data_type") if isinstance(node.get(key), str)}
        return mine.union(*map(names_in, node.values()))
    return set().union(*map(names_in, node)) if isinstance(node, list) else set()


def registered_names():
    """{(format, name)} that this build has."""
    listed = json.loads(subprocess.run([PROGRAM, "list", "--json"], stdout=subprocess.PIPE, check=True).stdout)
    found = {(3, row["v3"]) for kind in ("dtypes", "codecs") for row in listed[kind] if row["v3"]}
    return found | {(2, row["v2"]) for row in listed["codecs"] if row["v2"]}


@pytest.mark.parametrize("version", [2, 3])
def test_everything_is_drawn(version):
    """Each registered name comes up within some thousand cases, or says above why not."""
    drawn = set()
    wanted = {name for of, name in registered_names() if of == version and not {name, (of, name)} & set(NOT_DRAWN)}

    @seed(2)  # of the generator, not of luck: with others, a name takes thousands of cases to come up
    @settings(max_examples=8000, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(case={2: matrix.cases_v2, 3: matrix.cases_v3}[version]())
    def look(case):
        drawn.update("r" if re.fullmatch(r"r\d+", name) else name for name in names_in(case.document))
        if drawn >= wanted:
            raise Enough

    try:
        look()
    except Enough:
        pass
    assert not wanted - drawn
    assert not drawn & set(NOT_DRAWN)


def round_seeds(version, part):
    """The seed of each round, while there are rounds or time left."""
    if ONLY:
        yield int(ONLY)
        return
    end = time.monotonic() + SECONDS[version]
    for number in itertools.count():
        if time.monotonic() > end if LONG else number == ROUNDS[version]:
            return
        yield (SEED + 1000003 * (2 * part + version) + 7919 * number) % 2**32


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("version", [2, 3])
def test_matrix(context, version, part):
    made = {2: matrix.cases_v2, 3: matrix.cases_v3}[version]()
    for number, chosen in enumerate(round_seeds(version, part)):
        @seed(chosen)
        @settings(max_examples=EXAMPLES)
        @given(case=made, data=st.data())
        def examples(case, data):
            run(context, case, data)

        try:
            examples()
        except Exception as problem:
            problem.add_note(f"round {number} of part {part}: repeat it with ZARRC_MATRIX={chosen}")
            raise
