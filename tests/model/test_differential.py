"""Random arrays, written and read by random selections through random memory, against numpy; the
stores that result against each other, bit for bit, and against zarr-python."""
import os

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

import cases
import strategies
from twins import run
from zarrc_ctypes import Context

EXAMPLES = settings.default.max_examples * 6 // 5
pytestmark = pytest.mark.timeout(3600)


# Parts run beside each other, each with a seed of its own.
SEED = int(os.environ["ZARRC_SEED"])


@pytest.fixture(scope="module")
def plain_context():
    """Its fake device copies runs of bytes only, no boxes."""
    made = Context(fake="plain", max_threads=3)
    yield made
    assert made.counters().faults == 0


@pytest.mark.parametrize("part", range(3))
def test_v3(context, plain_context, part):
    context = plain_context if part == 2 else context

    @seed(SEED + part)
    @settings(max_examples=EXAMPLES)
    @given(case=strategies.cases_v3(), data=st.data())
    def examples(case, data):
        run(context, case, data)
    examples()


@pytest.mark.parametrize("part", range(2))
def test_v2(context, part):
    @seed(SEED + part)
    @settings(max_examples=EXAMPLES)
    @given(case=strategies.cases_v2(), data=st.data())
    def examples(case, data):
        run(context, case, data)
    examples()


@settings(max_examples=EXAMPLES)
@given(shape=strategies.shapes, data=st.data())
def test_selection_of_a_selection(context, shape, data):
    """compose: x[outer][inner] in one."""
    model = strategies.flat_indexes(shape)
    array = context.store().create("", shape, "int64", chunks=[3] * len(shape), codecs=[cases.LITTLE],
                                   fill_value=-1)
    array.write(model)
    outer = data.draw(strategies.selections(shape, (3,) * len(shape)), "outer")
    seen = outer.flat.shape
    inner = data.draw(strategies.selections(seen, (2,) * len(seen)), "inner")
    both = outer.make().compose(inner.make())
    expected = strategies.apply(strategies.apply(model, outer.flat), inner.flat)
    assert both.shape == expected.shape
    assert (array.read("i8", both) == expected).all()
