"""The life of an array: it is created, written, resized, appended to, deleted, reopened and read
by other implementations, and compared with a numpy array and a dict. One handle stays open as long
as possible. A second one is opened at random times and must see the changes of the first one after
a refresh. It lives in a folder, and in a bucket of S3 whose server fails or loses requests at random."""
import collections
import json
import pathlib
import random
import shutil
import tempfile

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import cases
import peers
import strategies
from s3_large import start_large_service
from s3_server import BUCKET, answer_error, make_variables
from zarrc_abi import ZarrcError
from zarrc_ctypes import Context

memory_kinds = st.sampled_from(["host", "fake"])
pipelines = st.sampled_from(["waves", "serial"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-2**53, 2**53) | st.text(max_size=5) |
    st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5)
# Names that a C string can hold; whole documents may have others.
c_names = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=2)
CONTEXT = []


class Life(RuleBasedStateMachine):
    @initialize(case=st.one_of(strategies.cases_v3(), strategies.cases_v2()),
                seed=st.integers(0, 2**32 - 1))
    def begin(self, case, seed):
        if not CONTEXT:
            CONTEXT.append(Context(max_threads=2))
        self.folder = tempfile.mkdtemp(prefix="zarrc-machine-")
        self.store = self.open_store(seed)
        self.rng = np.random.default_rng(seed)
        self.case, self.attributes = case, {}
        self.create()

    def open_store(self, seed):
        return CONTEXT[0].store(self.folder)

    def create(self):
        self.array = self.store.create("a/b", document=self.case.document)
        self.other = self.store.open("a/b")
        self.fill = self.array.fill_bytes
        if self.fill is None:  # null in version 2: NaT or zero
            self.fill = np.int64(-2**63).tobytes() if self.case.dtype.kind in "mM" \
                else bytes(self.case.dtype.itemsize)
        self.model = cases.full_array(self.case.shape, self.case.dtype, self.fill)
        cases.same_bits(self.array.read(self.case.dtype), self.model)
        self.attributes = {}

    def teardown(self):
        if hasattr(self, "folder"):
            for handle in (self.array, self.other, self.store):
                handle.close()
            shutil.rmtree(self.folder)

    @property
    def shape(self):
        return self.model.shape

    def values(self, shape):
        return cases.random_data(self.rng, shape, self.case.dtype)

    def make_view(self, values):
        view = cases.layout(self.rng, values.shape, values.dtype)
        view[...] = values
        return view

    @rule(data=st.data(), memory=memory_kinds, pipeline=pipelines, fill=st.integers(0, 4))
    def write(self, data, memory, pipeline, fill):
        chosen = data.draw(strategies.selections(self.shape, self.case.chunks), "selection")
        values = self.values(chosen.flat.shape)
        if fill == 0:
            values = cases.full_array(chosen.flat.shape, self.case.dtype, self.fill)
        self.array.write(self.make_view(values), chosen.make(), memory=memory, pipeline=pipeline)
        self.model = self.model.copy()
        strategies.store_into(self.model, chosen.flat, values)

    @rule(data=st.data(), memory=memory_kinds, pipeline=pipelines, second=st.booleans())
    def read(self, data, memory, pipeline, second):
        handle = self.array
        if second:
            self.other.refresh()
            handle = self.other
        chosen = data.draw(strategies.selections(self.shape, self.case.inner), "selection")
        expected = strategies.apply(self.model, chosen.flat)
        view = cases.layout(self.rng, expected.shape, self.case.dtype)
        handle.read_into(view, chosen.make(), memory=memory, pipeline=pipeline)
        cases.same_bits(view, expected)

    def may_change(self, change, *arguments, **more):
        """False if the grid refuses the shape: chunks at the edge of a bounded grid would have to be rewritten."""
        try:
            change(*arguments, **more)
        except ZarrcError as error:
            grid = read_json(self.array)["chunk_grid"]["name"]
            assert (error.code, grid) in [("UNSUPPORTED", "zarrs.regular_bounded"), ("INVALID", "zarrs.regular_bounded")]
            assert error.code == "UNSUPPORTED" or "is not a multiple of the chunk's" in str(error)
            return False
        return True

    @precondition(lambda self: self.model.ndim)
    @rule(data=st.data())
    def resize(self, data):
        shape = tuple(data.draw(st.integers(0, n + 7)) for n in self.shape)
        if not self.may_change(self.array.resize, shape):
            return
        grown = cases.full_array(shape, self.case.dtype, self.fill)
        common = tuple(slice(0, min(a, b)) for a, b in zip(shape, self.shape))
        grown[common] = self.model[common]
        self.model = grown
        assert self.array.shape == shape
        self.other.refresh()
        assert self.other.shape == shape

    @precondition(lambda self: self.model.ndim and self.model.size < 3000)
    @rule(data=st.data(), memory=memory_kinds)
    def append(self, data, memory):
        axis = data.draw(st.integers(0, self.model.ndim - 1))
        shape = list(self.shape)
        shape[axis] = data.draw(st.integers(0, 5))
        values = self.values(tuple(shape))
        if not self.may_change(self.array.append, self.make_view(values), axis, memory=memory):
            return
        self.model = np.concatenate([self.model, values], axis)
        assert self.array.shape == self.model.shape

    @rule(name=c_names, value=json_values)
    def set_attribute(self, name, value):
        self.array.set_attribute(name, value)
        self.attributes[name] = value

    @rule(members=st.dictionaries(st.text(max_size=3), json_values, max_size=3), replace=st.booleans())
    def merge_attributes(self, members, replace):
        self.other.merge_attributes(members, replace)
        self.attributes = members if replace else {**self.attributes, **members}
        self.array.refresh()

    @rule(name=c_names)
    def delete_attribute(self, name):
        try:
            self.array.delete_attribute(name)
            assert name in self.attributes
        except ZarrcError as error:
            assert error.code == "NOT_FOUND" and name not in self.attributes
        self.attributes.pop(name, None)

    def chunk_box(self, chunk):
        """The elements of a chunk, by the array's document."""
        grid = read_json(self.array).get("chunk_grid", {"name": "regular"})
        if grid["name"] != "rectilinear":
            return tuple(slice(i * c, (i + 1) * c) for i, c in zip(chunk, self.case.chunks))
        edges = map(peers.expand_edges, grid["configuration"]["chunk_shapes"], self.shape)
        return tuple(slice(sum(e[:i]), sum(e[:i + 1])) for i, e in zip(chunk, edges))

    @rule()
    def erase_a_chunk(self):
        stored = self.array.chunk_list()
        if stored:
            chunk = stored[int(self.rng.integers(0, len(stored)))][0]
            self.array.erase_chunk(chunk)
            self.model = self.model.copy()
            self.model[self.chunk_box(chunk)] = np.frombuffer(self.fill, self.case.dtype)[0]

    @rule(seed=st.integers(0, 2**32 - 1))
    def reopen(self, seed):
        self.array.close()
        self.store.close()
        self.store = self.open_store(seed)
        self.array = self.store.open("a/b")
        self.other.close()
        self.other = self.store.open("a/b")

    @rule()
    def delete_and_create(self):
        self.store.delete_node("a/b")
        assert self.store.probe("a/b") == (None, 0)
        assert self.store.keys("a/b") == []
        self.create()

    @rule()
    def others_read(self):
        document = read_json(self.array)
        if document["zarr_format"] == 3 and peers.translate(document) is not document:
            return
        if peers.PYTHON in peers.find_supporting(document):
            cases.same_bits(peers.read(peers.PYTHON, pathlib.Path(self.folder, "a", "b")), self.model)

    @rule(data=st.data())
    def others_write(self, data):
        document = read_json(self.array)
        if peers.PYTHON not in peers.find_supporting(document) or self.model.ndim == 0 or \
                document["zarr_format"] == 3 and peers.translate(document) is not document:
            return
        box = tuple(slice(*sorted([data.draw(st.integers(0, n)), data.draw(st.integers(0, n))]))
                    for n in self.shape)
        values = self.values(self.model[box].shape)
        if values.size:
            folder = pathlib.Path(self.folder, "a", "b")
            peers.open_zarr(peers.PYTHON, folder, "r+")[box] = values
            self.model = self.model.copy()
            self.model[box] = values

    @rule()
    def verify(self):
        assert self.array.verify() == []

    @invariant()
    def agree(self):
        if hasattr(self, "array"):
            assert self.array.attributes == self.attributes
            assert self.array.shape == self.model.shape
            keys = self.store.keys("a/b", how=2)
            assert keys == [], keys  # no locks or temporary files are left


def read_json(array):
    return json.loads(array.metadata)


TestLife = pytest.mark.timeout(3600)(Life.TestCase)
TestLife.settings = settings(max_examples=min(1000, settings.default.max_examples),
                             stateful_step_count=25,
                             suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


# ---- in a bucket ----

SERVICE, SEEN = [], collections.Counter()
LATER = "carried out, but not answered"
# Faults that pass, at once: without the header a repetition waits
FAULTS = {"busy": answer_error(503, "SlowDown", Retry_After="0"), "fails": answer_error(500, "InternalError", Retry_After="0"),
          "too many": answer_error(429, "TooManyRequests", Retry_After="0"), "a proxy": (502, {"Retry-After": "0"}, b"<html>"), "lost": None, LATER: None}
OF_WRITES = {"conflict": answer_error(409, "ConditionalRequestConflict", Retry_After="0")}


class Faults:
    """Every eighth request fails, no more than twice one after the other for a key. No probe does: it would find nothing out."""

    def __init__(self, service, seed):
        self.service, self.draw, self.in_a_row = service, random.Random(seed), {}

    def __call__(self, request):
        faults = FAULTS | OF_WRITES if request.method in ("PUT", "DELETE") else FAULTS
        name = self.draw.choice(list(faults)) if self.draw.random() < 0.125 else None
        self.in_a_row[request.path] = count = self.in_a_row.get(request.path, 0) + 1 if name else 0
        if not count or count > 2 or "probe" in request.path:
            return None
        SEEN[name, request.method] += 1
        if name == LATER:
            self.service.fault = None
            self.service(request)
            self.service.fault = self
        return faults[name] or self.service.LOST


@pytest.fixture(scope="module", autouse=True)
def service(tmp_path_factory):
    with start_large_service(tmp_path_factory.mktemp("bucket")) as server, pytest.MonkeyPatch.context() as patch:
        for name, value in make_variables(server.url).items():
            patch.setenv(name, value)
        SERVICE.append(server.service)
        yield


class LifeInABucket(Life):
    """Each operation succeeds: no fault is seen, and no change is lost or done twice."""

    def open_store(self, seed):
        SERVICE[0].folder, SERVICE[0].fault = pathlib.Path(self.folder), Faults(SERVICE[0], seed)
        return CONTEXT[0].store(f"s3://{BUCKET}")


@pytest.mark.timeout(3600)
class TestLifeInABucket(LifeInABucket.TestCase):
    settings = settings(TestLife.settings, max_examples=max(4, TestLife.settings.max_examples // 8))

    def runTest(self):
        super().runTest()
        print(SEEN)
        assert {name for name, _ in SEEN} == {*FAULTS, *OF_WRITES}
