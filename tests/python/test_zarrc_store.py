"""zarrc.ZarrcStore by zarr-python's own tests of stores, and by its state machines."""
import asyncio
import collections
import pathlib
import pickle

import numpy as np
import pytest
import zarr
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from zarr.core.buffer import cpu
from zarr.testing.store import StoreTests

import zarrc
from zarrc import ZarrcStore

QUICK = settings(max_examples=8, stateful_step_count=12, deadline=None, derandomize=True, database=None,
                 suppress_health_check=list(HealthCheck))


class Suite(StoreTests[ZarrcStore, cpu.Buffer]):
    store_cls = ZarrcStore
    buffer_cls = cpu.Buffer

    async def set(self, store, key, value):
        store.native.set(key, value.to_bytes())

    async def get(self, store, key):
        return self.buffer_cls.from_bytes(store.native.get(key))

    @pytest.fixture
    def store(self, open_kwargs):
        return zarr.core.sync.sync(self.store_cls.open(**open_kwargs))

    @pytest.fixture
    def store_not_open(self, store_kwargs):
        return self.store_cls(**store_kwargs)

    def test_store_supports_writes(self, store):
        assert store.supports_writes and store.supports_deletes

    def test_store_supports_listing(self, store):
        assert store.supports_listing

    def test_store_repr(self, store):
        assert repr(store) == f"ZarrcStore('zarrc+{store.native}')"


class TestLocal(Suite):
    @pytest.fixture
    def store_kwargs(self, tmp_path):
        return {"store": str(tmp_path)}

    def test_bytes_are_files(self, store, tmp_path):
        zarr.create_array(store, name="a", data=np.arange(4))
        assert (zarr.open_array(str(tmp_path / "a"), mode="r")[...] == np.arange(4)).all()

    def test_missing(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            zarr.open_group(ZarrcStore(str(tmp_path / "none"), read_only=True), mode="r")


class TestMemory(Suite):
    @pytest.fixture
    def store_kwargs(self):
        return {"store": zarrc.open_store("memory:")}

    def test_serializable_store(self, store):
        with pytest.raises(TypeError, match="in memory cannot be pickled"):
            pickle.dumps(store)


class TestMappingStore(Suite):
    """A store whose operations block, on threads."""

    @pytest.fixture
    def store_kwargs(self):
        return {"store": zarrc.open_store(collections.UserDict())}

    def test_serializable_store(self, store):
        assert pickle.loads(pickle.dumps(store)).supports_writes  # the copy has bytes of its own


def test_stores_of_zarr_python_are_refused():
    with pytest.raises(TypeError, match="give zarr-python that store itself"):
        ZarrcStore(zarrc.open_store(zarr.storage.WrapperStore(zarr.storage.MemoryStore())))


@pytest.mark.parametrize("shards", [None, (20, 20)])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_arrays(store, numbers, zarr_format, shards):
    if zarr_format == 2 and shards:
        pytest.skip("format 2 has no shards")
    mine = ZarrcStore(store)
    array = zarr.create_array(mine, name="g/a", shape=(60, 40), chunks=(10, 10), shards=shards, dtype="int32", zarr_format=zarr_format)
    array[:31] = numbers[:31]
    array[31:] = numbers[31:]
    array[4:6, 3] = -1
    numbers[4:6, 3] = -1
    assert (array[...] == numbers).all()
    assert (zarrc.open_array(store, path="g/a")[...] == numbers).all()
    assert (zarrc.open_array(mine, path="g/a")[5:50, 3] == numbers[5:50, 3]).all()
    assert (zarr.open_array(mine.with_read_only(True), path="g/a", mode="r")[3] == numbers[3]).all()


def machine(name):
    stateful = pytest.importorskip("zarr.testing.stateful", reason="this zarr-python has no state machines")
    return getattr(stateful, name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["local", "memory"])
@pytest.mark.parametrize("name", ["ZarrStoreStateMachine", "ZarrHierarchyStateMachine"])
def test_state_machines(tmp_path_factory, kind, name):
    cls = machine(name)

    def start():
        place = str(tmp_path_factory.mktemp("m")) if kind == "local" else zarrc.open_store("memory:")
        return cls(zarr.core.sync.sync(ZarrcStore.open(place)))

    run_state_machine_as_test(start, settings=QUICK)


@pytest.mark.parametrize("given", [None, "memory:", "path"])
def test_first_calls_at_once(tmp_path, given):
    """The first one opens the store, and the others wait for it."""
    store = ZarrcStore(str(tmp_path / "x") if given == "path" else given)
    values = {key: cpu.Buffer.from_bytes(key.encode()) for key in "abcd"}

    async def work():
        assert await asyncio.gather(store.get("a", cpu.buffer_prototype), store.exists("b")) == [None, False]

    async def first_writes():
        await asyncio.gather(*[other.set(key, value) for key, value in values.items()])
        return sorted([key async for key in other.list()])

    asyncio.run(work())
    other = ZarrcStore(str(tmp_path / "y") if given == "path" else given)
    assert asyncio.run(first_writes()) == list("abcd")


@pytest.mark.parametrize("given", [None, "memory:"])
def test_memory_has_no_twin(given):
    store = ZarrcStore(given)
    other = store.with_read_only(True)
    store.set_sync("a", cpu.Buffer.from_bytes(b"1"))
    assert other.get_sync("a").to_bytes() == b"1" and other.read_only
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(ZarrcStore(given))


DOCUMENTS = {"zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"}


@pytest.mark.parametrize("chunks", ["path", "store", "dict"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_chunk_store(tmp_path, numbers, zarr_format, chunks):
    """Documents in one store, chunks in another, by each call that takes `chunk_store`, and for zarr-python."""
    documents, folder = str(tmp_path / "documents"), str(tmp_path / "chunks")
    given = {"path": folder, "store": zarrc.open_store(folder), "dict": {}}[chunks]
    both = {"chunk_store": given, "zarr_format": zarr_format}
    root = zarrc.open_group(documents, mode="w", attributes={"a": 1}, **both)
    root.create_array("x", data=numbers, chunks=(7, 7))
    zarrc.create(store=documents, path="y", shape=(3, 3), chunks=(2, 2), dtype="i4", fill_value=5, **both)[:2] = 7
    zarrc.open_array(documents, path="z", mode="w", shape=4, chunks=2, dtype="f4", **both)[...] = 1.5
    keys = [str(p.relative_to(documents)) for p in pathlib.Path(documents).rglob("*") if p.is_file()]
    assert keys and {key.rpartition("/")[2] for key in keys} <= DOCUMENTS
    others = list(given) if chunks == "dict" else [str(p.relative_to(folder)) for p in pathlib.Path(folder).rglob("*") if p.is_file()]
    assert len(others) > 20 and not {key.rpartition("/")[2] for key in others} & DOCUMENTS
    found = zarrc.open(documents, mode="r", **both)
    assert (found["x"][...] == numbers).all() and (found["y"][:2] == 7).all() and (found["y"][2] == 5).all() and found["z"][1] == 1.5
    assert zarrc.open_array(documents, path="x", mode="r", zarr_format=zarr_format).nchunks_initialized == 0  # without the chunks
    store = zarrc.open_store(documents, chunk_store=given)
    assert store == zarrc.open_store(documents, chunk_store=given) != zarrc.open_store(documents) and hash(store) is not None
    assert str(store).startswith("composite:") and store.with_read_only(True).with_read_only(False) == store
    with pytest.raises(zarrc.errors.ReadOnlyError):
        zarrc.open_array(store.with_read_only(True), path="x", mode="r+")
    if chunks != "dict":
        assert (pickle.loads(pickle.dumps(zarrc.open_array(store, path="x")))[...] == numbers).all()
    theirs = ZarrcStore(documents, chunk_store=given)
    assert (zarr.open_array(theirs, path="x", mode="r+")[...] == numbers).all()
    zarr.open_array(theirs, path="x", mode="r+")[0] = -1
    numbers[0] = -1
    assert (zarrc.open_array(store, path="x")[...] == numbers).all()
    del zarrc.open_group(store)["x"]
    assert not [key for key in store.list() if key.startswith("x/")]


def test_chunk_store_that_is_refused(tmp_path):
    store = zarrc.open_store(tmp_path / "a")
    with pytest.raises(zarrc.errors.InvalidError, match="same"):
        zarrc.open_store(store, chunk_store=store)
    with pytest.raises(zarrc.errors.NotFoundError):
        zarrc.open(tmp_path / "a", mode="r", chunk_store=tmp_path / "missing")
    with pytest.raises(ValueError, match="names a node"):
        zarrc.open_store("memory://chunk-store", chunk_store="memory://chunk-store/a")
    with pytest.raises(zarrc.errors.InvalidError, match="composite"):
        zarrc.open_store("memory:", chunk_store=zarrc.open_store("memory:", chunk_store=store))
