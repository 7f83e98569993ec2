"""Random arrays, written and read by random selections through random memory, against numpy; the
stores that result against each other, bit for bit, and against zarr-python."""
import json
import os
import warnings

import numpy as np
import pytest
import zarr
from hypothesis import event, given, note, seed, settings
from hypothesis import strategies as st
from zarr.core.buffer import cpu

import cases
import peers
import strategies
from zarrc_ctypes import FAKE, Context, Stats

EXAMPLES = max(200, settings.default.max_examples)
pytestmark = pytest.mark.timeout(3600)


def by_zarr_python(dump, document):
    """The array in a dump of a store, as zarr-python reads it; None where it cannot."""
    name = "zarr.json" if document["zarr_format"] == 3 else ".zarray"
    spoken = json.loads(dump[name])
    if document["zarr_format"] == 3:
        spoken = peers.spoken(spoken)
    if peers.PYTHON not in peers.supporting(spoken):
        return None
    values = {key: cpu.Buffer.from_bytes(value) for key, value in dump.items()}
    values[name] = cpu.Buffer.from_bytes(json.dumps(spoken).encode())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zarr.config.set(peers.RECTILINEAR):
            array = zarr.open_array(zarr.storage.MemoryStore(values), mode="r")
        return np.asarray(array[...], array.dtype)


class Twins:
    """The same array in two stores, one written by `waves`, the other by `serial`."""

    def __init__(self, context, case, values):
        self.case = case
        self.stores = [context.store("memory:", device_type=FAKE if v == "fake" else 0) for v in values]
        self.arrays = [s.create(document=case.document) for s in self.stores]
        self.model = self.arrays[0].read(case.dtype)  # nothing is stored: all fill
        fill = self.arrays[0].fill_bytes
        if fill is not None:
            cases.same_bits(self.model, cases.filled(case.shape, case.dtype, fill))

    @staticmethod
    def tuning(rng):
        """What must not matter: the size of mini-batches, threads, short cuts."""
        return {"wave_bytes": int(rng.choice([0, 1, 300])), "max_threads": int(rng.choice([0, 0, 1])),
                "flags": int(rng.choice([0, 0, 2]))}

    def write(self, chosen, data, layout_rng, memories, broadcast):
        for array, memory, pipeline in zip(self.arrays, memories, ("waves", "serial")):
            if broadcast:
                view = cases.layout(layout_rng, (1,), data.dtype)
                view[...] = data.reshape(-1)[:1]
                view = np.ndarray(data.shape, view.dtype, view.base,
                                  view.__array_interface__["data"][0] - view.base.ctypes.data,
                                  (0,) * data.ndim)
            else:
                view = cases.layout(layout_rng, data.shape, data.dtype)
                view[...] = data
            stats = Stats()
            array.write(view, chosen.make(), memory=memory, pipeline=pipeline, stats=stats,
                        **self.tuning(layout_rng))
            assert stats.chunks_done == stats.chunks_total, stats
        strategies.store_into(self.model, chosen.flat, data)

    def read(self, chosen, layout_rng, memories):
        expected = strategies.apply(self.model, chosen.flat)
        for array, memory, pipeline in zip(self.arrays, memories, ("waves", "serial")):
            selection = chosen.make()
            assert selection.shape == chosen.flat.shape
            assert selection.n_items == chosen.flat.size
            view = cases.layout(layout_rng, expected.shape, self.case.dtype)
            stats = Stats()
            array.read_into(view, selection, memory=memory, pipeline=pipeline, stats=stats,
                            **self.tuning(layout_rng))
            cases.same_bits(view, expected)
            assert cases.gaps_intact(view)
            assert stats.elements == expected.size, stats

    def compare(self):
        dumps = [store.dump() for store in self.stores]
        assert dumps[0].keys() == dumps[1].keys()
        assert [k for k in dumps[0] if dumps[0][k] != dumps[1][k]] == []
        for store in self.stores:
            array = store.open()
            cases.same_bits(array.read(self.case.dtype), self.model)
            assert array.verify() == []
        theirs = by_zarr_python(dumps[0], self.case.document)
        event("read by zarr-python" if theirs is not None else "not for zarr-python")
        if theirs is not None:
            cases.same_bits(theirs, self.model)


memories = st.tuples(*[st.sampled_from(["host", "fake"])] * 2)


def run(context, case, data):
    twins = Twins(context, case, data.draw(memories, "values in"))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), "elements"))
    for _ in range(data.draw(st.integers(1, 4), "rounds")):
        chosen = data.draw(strategies.selections(case.shape, case.chunks), "write")
        values = cases.random_data(rng, chosen.flat.shape, case.dtype)
        broadcast = rng.integers(0, 6) == 0
        if broadcast and values.size:
            values = np.full_like(values, values.reshape(-1)[0])
        elif rng.integers(0, 5) == 0:
            values = strategies.apply(twins.arrays[0].read(case.dtype), chosen.flat)
        twins.write(chosen, values, rng, data.draw(memories, "from"), broadcast and values.size > 0)
        chosen = data.draw(strategies.selections(case.shape, case.inner), "read")
        twins.read(chosen, rng, data.draw(memories, "into"))
    twins.compare()
    note(f"stored: {sorted(twins.stores[0].keys())}")


# Parts run beside each other, each with a seed of its own.
SEED = int(os.environ["ZARRC_SEED"])


@pytest.fixture(scope="module")
def plain_context():
    """Its fake device copies runs of bytes only, no boxes."""
    made = Context(fake="plain", n_threads=3)
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
