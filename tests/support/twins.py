"""twins - one array in two stores, one written by `waves`, the other by `serial`, held against
numpy after every request, against each other bit for bit, and against others (oracles.py)."""
import ctypes
import struct

import numpy as np
import pytest
from hypothesis import event, note
from hypothesis import strategies as st

import cases
import oracles
import strategies
from zarrc_abi import FAKE, Stats, ZarrcError
from zarrc_memory import Heap

PIPELINES = ("waves", "serial")
HOST_ONLY = ("/: elements of variable length are in host memory only, not in memory of device type "
             f"{FAKE}")

def made_stores(context, values):
    return [context.store("memory:", device_type=FAKE if v == "fake" else 0) for v in values]


class Twins:
    """The same array in two stores."""

    def __init__(self, context, case, values):
        self.case = case
        self.stores = made_stores(context, values)
        self.arrays = [s.create(document=case.document) for s in self.stores]
        self.model = self.arrays[0].read(case.dtype)  # nothing is stored: all fill
        fill = self.arrays[0].fill_bytes
        if case.fill is not None:
            assert fill == case.fill
        if fill is not None:
            cases.same_bits(self.model, cases.full_array(case.shape, case.dtype, fill))

    @staticmethod
    def draw_tuning(rng):
        """What must not matter: the size of waves, and threads."""
        return {"wave_bytes": int(rng.choice([0, 1, 300])), "max_threads": int(rng.choice([0, 0, 1]))}

    def write(self, chosen, data, layout_rng, memories, broadcast):
        for array, memory, pipeline in zip(self.arrays, memories, PIPELINES):
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
                        **self.draw_tuning(layout_rng))
            assert stats.chunks_done == stats.chunks_total, stats
        strategies.store_into(self.model, chosen.flat, data)

    def read(self, chosen, layout_rng, memories):
        expected = strategies.apply(self.model, chosen.flat)
        for array, memory, pipeline in zip(self.arrays, memories, PIPELINES):
            selection = chosen.make()
            assert selection.shape == chosen.flat.shape
            assert selection.n_items == chosen.flat.size
            view = cases.layout(layout_rng, expected.shape, self.case.dtype)
            stats = Stats()
            array.read_into(view, selection, memory=memory, pipeline=pipeline, stats=stats,
                            **self.draw_tuning(layout_rng))
            cases.same_bits(view, expected)
            assert cases.gaps_intact(view)
            assert stats.elements == expected.size, stats

    def read_all(self, array):
        return array.read(self.case.dtype)

    def same(self, got):
        cases.same_bits(got, self.model)

    def compare(self):
        dumps = [store.dump() for store in self.stores]
        assert dumps[0].keys() == dumps[1].keys()
        assert [k for k in dumps[0] if dumps[0][k] != dumps[1][k]] == []
        for store in self.stores:
            array = store.open()
            self.same(self.read_all(array))
            assert array.verify() == []
        for name, oracle in oracles.ORACLES.items():
            theirs = oracle(dumps[0], self.case)
            event(f"read by {name}" if theirs is not None else f"not for {name}")
            if theirs is not None:
                self.same(theirs)


class TextTwins(Twins):
    """The same with variable-length elements: bytes objects. Stored objects may be in any memory
    kind. The elements contain host addresses, so a tensor of them in other memory is refused."""

    def __init__(self, context, case, values):
        self.case = case
        self.stores = made_stores(context, values)
        self.arrays = [s.create(document=case.document) for s in self.stores]
        self.model = np.empty(case.shape, object)
        for at in np.ndindex(self.model.shape):
            self.model[at] = case.fill
        self.same(self.read_all(self.arrays[0]))

    def write(self, chosen, data, layout_rng, memories, broadcast):
        for array, memory, pipeline in zip(self.arrays, memories, PIPELINES):
            if memory != "host":
                self.check_refused(array, "write", chosen, memory, pipeline=pipeline)
            self.put(array, list(data.reshape(-1)), chosen.make(), pipeline=pipeline, **self.draw_tuning(layout_rng))
        strategies.store_into(self.model, chosen.flat, data)

    def read(self, chosen, layout_rng, memories):
        expected = strategies.apply(self.model, chosen.flat)
        for array, memory, pipeline in zip(self.arrays, memories, PIPELINES):
            if memory != "host":
                self.check_refused(array, "read_into", chosen, memory, pipeline=pipeline,
                             heap=Heap(array.context))
            got = self.get(array, chosen.make(), pipeline=pipeline, **self.draw_tuning(layout_rng))
            assert got == list(expected.reshape(-1))

    def check_refused(self, array, verb, chosen, memory, **options):
        """Nothing is written, and nothing is put into the tensor."""
        view = np.zeros(chosen.flat.shape, f"V{16 + self.case.levels}")
        with pytest.raises(ZarrcError) as told:
            getattr(array, verb)(view, chosen.make(), memory=memory, **options)
        assert (told.value.code, told.value.message) == ("UNSUPPORTED", HOST_ONLY)
        event(f"{verb}: elements of any length elsewhere refused")

    def put(self, array, items, selection, **options):
        array.write_vlen(items, selection, **options)

    def get(self, array, selection=None, **options):
        return array.read_vlen(selection, **options)

    def read_all(self, array):
        return self.get(array)

    def same(self, got):
        if not isinstance(got, list):  # zarr-python's
            got = [v.encode() if isinstance(v, str) else bytes(v) for v in np.asarray(got, object).reshape(-1)]
        expected = list(self.model.reshape(-1))
        assert got == expected, (got[:9], expected[:9])


class MissingTwins(TextTwins):
    """The same with elements of any length that may be missing: None, or (element,), which
    may be such a thing again. They go through tensors of items, whose bytes lie in a heap."""

    def put(self, array, items, selection, **options):
        keep = []
        dtype = f"V{16 + self.case.levels}"
        raw = b"".join(self.item(item, self.case.levels, keep) for item in items)
        array.write(np.frombuffer(raw, dtype).reshape(selection.shape), selection, **options)

    def item(self, item, levels, keep):
        if levels == 0:
            keep.append(ctypes.create_string_buffer(item, max(1, len(item))))
            return struct.pack("=QQ", ctypes.addressof(keep[-1]), len(item))
        if item is None:
            return bytes(16 + levels)
        return self.item(item[0], levels - 1, keep) + b"\1"

    def get(self, array, selection=None, **options):
        heap = Heap(array.context)
        raw = array.read(f"V{16 + self.case.levels}", selection, heap=heap, **options)
        return [self.element(item.tobytes()) for item in raw.reshape(-1)]

    def element(self, raw):
        if len(raw) == 16:
            address, n = struct.unpack("=QQ", raw)
            return ctypes.string_at(address, n) if n else b""
        assert raw[-1] == 1 or raw == bytes(len(raw)), raw
        return (self.element(raw[:-1]),) if raw[-1] else None


memories = st.tuples(*[st.sampled_from(["host", "fake"])] * 2)


def run(context, case, data):
    """Some writes and reads of parts, then all of it by everyone."""
    kinds = data.draw(memories, "values in")
    if case.dtype == object:
        twins = (MissingTwins if case.levels else TextTwins)(context, case, kinds)
    else:
        twins = Twins(context, case, kinds)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), "elements"))
    for _ in range(data.draw(st.integers(1, 4), "rounds")):
        chosen = data.draw(strategies.selections(case.shape, case.chunks), "write")
        values = case.values(rng, chosen.flat.shape)
        broadcast = rng.integers(0, 6) == 0
        if broadcast and values.size:
            values = values.reshape(-1)[np.zeros(values.size, int)].reshape(values.shape)
        elif rng.integers(0, 5) == 0:
            values = strategies.apply(twins.model, chosen.flat)
        twins.write(chosen, values, rng, data.draw(memories, "from"), broadcast and values.size > 0)
        chosen = data.draw(strategies.selections(case.shape, case.inner), "read")
        twins.read(chosen, rng, data.draw(memories, "into"))
    twins.compare()
    note(f"stored: {sorted(twins.stores[0].keys())}")
