"""twins - one array in two stores, one written by `waves`, the other by `serial`, held against
numpy after every request, against each other bit for bit, and against zarr-python."""
import json
import re
import warnings

import numpy as np
import zarr
from hypothesis import event, note
from hypothesis import strategies as st
from zarr.core.buffer import cpu

import cases
import peers
import strategies
from zarrc_ctypes import FAKE, Stats, ZarrcError

PIPELINES = ("waves", "serial")
NUMCODECS = ("zlib lz4 bz2 lzma shuffle delta fixedscaleoffset quantize astype crc32 adler32 "
             "fletcher32 jenkins_lookup3 zfpy packbits").split()
IN_ZARR_PYTHON = {
    "bytes", "transpose", "sharding_indexed", "gzip", "zstd", "blosc", "crc32c", "vlen-utf8",
    "vlen-bytes", *("numcodecs." + name for name in NUMCODECS)}
SMALL = re.compile(r"'(u?int[24]|bfloat16|float[468]_\w+)'")
if peers.ZARR_AT_LEAST_3_3:
    IN_ZARR_PYTHON |= {"cast_value", "scale_offset"}


def mixed_up(codecs):
    """zarr-python hands numcodecs what a transpose left as a view, and gets it back in the order
    of memory: its own data does not come back. It takes the byte orders of filters at their word
    although its arrays are native, and does not tell what quantize makes of the type."""
    for codec in codecs:
        config = codec.get("configuration", {})
        sides = {str(config[key])[1:] for key in ("dtype", "astype") if key in config}
        if any(str(value).startswith(">") for value in config.values()) or \
                (codec["name"] == "numcodecs.quantize" and len(sides) > 1):
            return True
    names = [codec["name"] for codec in codecs]
    computing = {"numcodecs." + name for name in "delta fixedscaleoffset quantize astype packbits".split()}
    if "transpose" in names and computing & set(names[:len(names) - names[::-1].index("transpose")]):
        return True
    return any(mixed_up(codec.get("configuration", {}).get("codecs", [])) for codec in codecs)


def zarr_python_knows(document):
    if document["zarr_format"] == 2:
        dtype, filters = document["dtype"], document["filters"] or [{"id": ""}]
        if filters[0]["id"] == "vlen-bytes" and not document["shape"]:
            return False
        return not isinstance(dtype, str) or dtype[0] in "<>|"
    dtype = document["data_type"]
    if not peers.ZARR_AT_LEAST_3_3 and (
            isinstance(dtype, dict) and dtype["name"] == "struct" or any(
                name.startswith("numcodecs.") for name in peers.names_in(document["codecs"]))):
        return False  # it lacks the one, and mixes byte orders up in front of the others
    known = {*cases.V3_TYPES, "string", "variable_length_bytes"}
    if isinstance(dtype, str) and dtype not in known or mixed_up(document["codecs"]):
        return False
    if dtype == "variable_length_bytes" and not document["shape"]:
        return False  # it gives the pointer's own bytes
    names = set(peers.names_in(document["codecs"]))
    return names <= IN_ZARR_PYTHON and not ("cast_value" in names and SMALL.search(str(document["codecs"])))


def by_zarr_python(dump, document, dtype=None):
    """The array in a dump of a store, as zarr-python reads it; None where it cannot."""
    name = "zarr.json" if document["zarr_format"] == 3 else ".zarray"
    spoken = json.loads(dump[name])
    if document["zarr_format"] == 3:
        spoken = peers.spoken(spoken)
    if peers.PYTHON not in peers.supporting(spoken) or not zarr_python_knows(spoken):
        return None
    values = {key: cpu.Buffer.from_bytes(value) for key, value in dump.items()}
    values[name] = cpu.Buffer.from_bytes(json.dumps(spoken).encode())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zarr.config.set(peers.RECTILINEAR):
            array = zarr.open_array(zarr.storage.MemoryStore(values), mode="r")
        return np.asarray(array[...], dtype or array.dtype)


class Twins:
    """The same array in two stores."""

    def __init__(self, context, case, values):
        self.case = case
        self.stores = [context.store("memory:", device_type=FAKE if v == "fake" else 0) for v in values]
        self.arrays = [s.create(document=case.document) for s in self.stores]
        self.model = self.arrays[0].read(case.dtype)  # nothing is stored: all fill
        fill = self.arrays[0].fill_bytes
        if case.fill is not None:
            assert fill == case.fill
        if fill is not None:
            cases.same_bits(self.model, cases.filled(case.shape, case.dtype, fill))

    @staticmethod
    def tuning(rng):
        """What must not matter: the size of mini-batches, threads, short cuts."""
        return {"wave_bytes": int(rng.choice([0, 1, 300])), "max_threads": int(rng.choice([0, 0, 1])),
                "flags": int(rng.choice([0, 0, 2]))}

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
                        **self.tuning(layout_rng))
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
                            **self.tuning(layout_rng))
            cases.same_bits(view, expected)
            assert cases.gaps_intact(view)
            assert stats.elements == expected.size, stats

    def all_of(self, array):
        return array.read(self.case.dtype)

    def same(self, got):
        cases.same_bits(got, self.model)

    def compare(self):
        dumps = [store.dump() for store in self.stores]
        assert dumps[0].keys() == dumps[1].keys()
        assert [k for k in dumps[0] if dumps[0][k] != dumps[1][k]] == []
        for store in self.stores:
            array = store.open()
            self.same(self.all_of(array))
            assert array.verify() == []
        theirs = by_zarr_python(dumps[0], self.case.document, self.case.peer_dtype)
        event("read by zarr-python" if theirs is not None else "not for zarr-python")
        if theirs is not None:
            self.same(theirs)


class TextTwins(Twins):
    """The same with elements of any length: bytes objects, in host memory."""

    def __init__(self, context, case):
        self.case = case
        self.stores = [context.store("memory:") for _ in PIPELINES]
        self.arrays = [s.create(document=case.document) for s in self.stores]
        self.model = np.full(case.shape, case.fill, object)
        self.same(self.all_of(self.arrays[0]))

    def write(self, chosen, data, layout_rng, memories, broadcast):
        for array, pipeline in zip(self.arrays, PIPELINES):
            array.write_vlen(list(data.reshape(-1)), chosen.make(), pipeline=pipeline,
                             **self.tuning(layout_rng))
        strategies.store_into(self.model, chosen.flat, data)

    def read(self, chosen, layout_rng, memories):
        expected = strategies.apply(self.model, chosen.flat)
        for array, pipeline in zip(self.arrays, PIPELINES):
            got = array.read_vlen(chosen.make(), pipeline=pipeline, **self.tuning(layout_rng))
            assert got == list(expected.reshape(-1))

    def all_of(self, array):
        return array.read_vlen()

    def same(self, got):
        if not isinstance(got, list):  # zarr-python's
            got = [v.encode() if isinstance(v, str) else bytes(v) for v in np.asarray(got, object).reshape(-1)]
        expected = list(self.model.reshape(-1))
        assert got == expected, (got[:9], expected[:9])


# What the library says plainly that it has not: no failure of the matrix.
REFUSED = ("behind more than one codec between arrays",)
memories = st.tuples(*[st.sampled_from(["host", "fake"])] * 2)


def run(context, case, data):
    """Some writes and reads of parts, then all of it by everyone."""
    text, kinds = case.dtype == object, data.draw(memories, "values in")
    try:
        twins = TextTwins(context, case) if text else Twins(context, case, kinds)
    except ZarrcError as problem:
        if problem.code != "UNSUPPORTED" or not any(words in problem.message for words in REFUSED):
            raise
        event("refused")
        return
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), "elements"))
    for _ in range(data.draw(st.integers(1, 4), "rounds")):
        chosen = data.draw(strategies.selections(case.shape, case.chunks), "write")
        values = case.values(rng, chosen.flat.shape)
        broadcast = rng.integers(0, 6) == 0
        if broadcast and values.size:
            values = np.full_like(values, values.reshape(-1)[0], values.dtype)
        elif rng.integers(0, 5) == 0:
            values = strategies.apply(twins.model, chosen.flat)
        twins.write(chosen, values, rng, data.draw(memories, "from"), broadcast and values.size > 0)
        chosen = data.draw(strategies.selections(case.shape, case.inner), "read")
        twins.read(chosen, rng, data.draw(memories, "into"))
    twins.compare()
    note(f"stored: {sorted(twins.stores[0].keys())}")
