"""The pipeline for zarr-python with stores of other packages, parts of shards, and directories that move."""
import asyncio
import concurrent.futures
import os
import sys
import types

import numpy as np
import pytest
from pipelines import IS_NEW, Plain, enable_pipeline, fell_back, make_array, native_only, reopen, own, same, stores, zarr  # noqa: F401
from zarr.storage import LocalStore, MemoryStore, ZipStore

import zarrc
from zarrc import _core
from zarrc._settings import settings

# ---- parts of shards, and stores of other packages ----


class CountingStore(Plain):
    """Counts what is asked for, and how many bytes come."""

    def __init__(self, store):
        super().__init__(store)
        self.gets = []

    async def get(self, key, prototype, byte_range=None):
        value = await self._store.get(key, prototype, byte_range)
        self.gets.append((key, type(byte_range).__name__, 0 if value is None else len(value)))
        return value

    async def get_ranges(self, key, byte_ranges, **given):
        async for found in self._store.get_ranges(key, byte_ranges, **given):
            self.gets.extend((key, type(byte_ranges[i]).__name__, len(value)) for i, value in found)
            yield found


def test_parts_of_shards_in_other_stores():
    """One read of the index and one of the inner chunks that are close together."""
    store = CountingStore(MemoryStore())
    z = zarr.create_array(store, name="a", shape=(64, 64), chunks=(4, 4), shards=(32, 32), dtype="i4", compressors=None)
    ref = np.arange(64 * 64, dtype="i4").reshape(64, 64)
    z[...] = ref
    store.gets.clear()
    same(z[3:5, 2:4], ref[3:5, 2:4])
    index, data = store.gets
    assert index[0] == data[0] == "a/c/0/0" and index[1] == "SuffixByteRequest" and data[1] == "RangeByteRequest"
    assert index[2] == 64 * 16 + 4 and 2 * 64 <= data[2] < 32 * 32 * 4
    same(z[::9, 40], ref[::9, 40])
    same(z.oindex[[63, 1, 30], 5:40], ref[[63, 1, 30], 5:40])
    same(z.vindex[[63, 1, 30], [5, 40, 5]], ref[[63, 1, 30], [5, 40, 5]])
    native_only()
    z[40, 40] = -1  # through zarr-python's calls: what was read before is not kept
    ref[40, 40] = -1
    same(z[40:42, 40], ref[40:42, 40])
    z[32:, 32:] = 0
    ref[32:, 32:] = 0
    same(z[31:33, 31:33], ref[31:33, 31:33])
    native_only()


@pytest.mark.skipif(not IS_NEW, reason="new in zarr-python 3.2")
def test_parts_of_missing_shards():
    from zarr.errors import ChunkNotFoundError
    z = make_array(Plain(MemoryStore()), "i4", "v3-shards", config={"read_missing_chunks": False})
    z[:10, :8] = 1
    assert z[3, 4] == 1
    with pytest.raises(ChunkNotFoundError):
        z[11:13, 4]
    native_only()


def test_parts_of_shards_whose_store_needs_threads(tmp_path):
    """More reads at once than asyncio has threads, of a store whose own reads need one."""
    z = make_array(Plain(LocalStore(tmp_path / "x")), "i4", "v3-shards")
    ref = np.arange(23 * 17, dtype="i4").reshape(23, 17)
    z[...] = ref
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        rows = list(pool.map(lambda i: z[i % 23, 1:3], range(120), timeout=120))
    assert all((row == ref[i % 23, 1:3]).all() for i, row in enumerate(rows))
    native_only()


def of_packages(tmp_path):
    """Stores of other packages, by name."""
    _, icechunk, obstore = map(pytest.importorskip, ("fsspec", "icechunk", "obstore.store"))
    return {
        "FsspecStore": lambda: zarr.storage.FsspecStore.from_url(f"memory://{tmp_path}"),
        "FsspecStore local": lambda: zarr.storage.FsspecStore.from_url(f"file://{tmp_path}/x", storage_options={"auto_mkdir": True}),
        "ObjectStore": lambda: zarr.storage.ObjectStore(obstore.MemoryStore()),
        "icechunk": lambda: icechunk.Repository.create(icechunk.in_memory_storage()).writable_session("main").store,
        "zip": lambda: ZipStore(tmp_path / "x.zip", mode="w"),
    }


@pytest.mark.parametrize("shards", [None, (10, 8)])
@pytest.mark.parametrize("kind", ["FsspecStore", "FsspecStore local", "ObjectStore", "icechunk", "zip"])
def test_stores_of_packages(tmp_path, kind, shards):
    """Written and read through ours, also in parts; zarr-python's own pipeline reads the same, and so does zarrc."""
    z = make_array(of_packages(tmp_path)[kind](), "i4", "v3", shards=shards)
    ref = np.arange(23 * 17, dtype="i4").reshape(23, 17)
    z[...] = ref
    if kind != "zip":  # it cannot replace
        z[3:5, 2:4] = -1
        ref[3:5, 2:4] = -1
    same(z[...], ref)
    same(z[4, ::3], ref[4, ::3])
    same(z.oindex[[22, 1], 3:9], ref[[22, 1], 3:9])
    same(z.vindex[[22, 1, 3], [3, 9, 3]], ref[[22, 1, 3], [3, 9, 3]])
    native_only()
    with own():
        same(reopen(z)[...], ref)
    same(zarrc.open_array(z.store, path="a", mode="r")[2:20, ::4], ref[2:20, ::4])


class BoundStore(Plain):
    """A store of one event loop, as those with connections are."""

    async def get(self, key, prototype, byte_range=None):
        assert asyncio.get_running_loop() is self.loop
        await asyncio.sleep(0)
        return await self._store.get(key, prototype, byte_range)


def test_parts_of_shards_on_a_loop_of_the_user():
    memory = MemoryStore()
    ref = np.arange(23 * 17, dtype="i4").reshape(23, 17)
    make_array(memory, "i4", "v3-shards")[...] = ref

    async def main():
        store = BoundStore(memory)
        store.loop = asyncio.get_running_loop()
        z = await zarr.AsyncArray.open(zarr.storage.StorePath(store, "a"))
        rows = await asyncio.gather(*[z.getitem((i, slice(1, 3))) for i in range(23)])
        same(np.stack(rows), ref[:, 1:3])

    asyncio.run(main())
    asyncio.run(main())
    native_only()


def test_a_mock_of_a_store():
    """It looks as if it were a store with calls that wait; only its coroutines are asked."""
    from unittest.mock import AsyncMock
    memory = MemoryStore()
    ref = np.arange(23 * 17, dtype="i4").reshape(23, 17)
    make_array(memory, "i4", "v3-shards")[...] = ref
    mock = AsyncMock(wraps=memory, spec=MemoryStore)
    z = zarr.open_array(zarr.storage.StorePath(mock, "a"), mode="r")
    native_only()
    same(z[3:5, 2:4], ref[3:5, 2:4])
    same(z[...], ref)
    native_only()
    assert {one.args[0] for one in mock.get.call_args_list if "/c/" in one.args[0]} >= {"a/c/0/0"}


@pytest.mark.parametrize("shards", [None, (10, 8)])
@pytest.mark.parametrize("kind", ["local", "memory"])
def test_zarrc_store(tmp_path, kind, shards):
    """Our own store is read and written by the library alone."""
    store = zarrc.ZarrcStore(str(tmp_path / "x") if kind == "local" else zarrc.open_store("memory:"))
    z = make_array(store, "i4", "v3", shards=shards)
    ref = np.arange(23 * 17, dtype="i4").reshape(23, 17)
    z[...] = ref
    z[3:5, 2:4] = -1
    ref[3:5, 2:4] = -1
    same(z[...], ref)
    same(z[4, ::3], ref[4, ::3])
    native_only()
    with own():
        same(reopen(z)[...], ref)
    with pytest.raises(ValueError, match="read-only"):
        zarr.open_array(store.with_read_only(True), path="a", mode="r")[...] = 1


# ---- directories that move ----


def test_directories_that_are_made_again(tmp_path):
    root = tmp_path / "x"
    z = make_array(LocalStore(root), "i4", "v3")
    z[...] = 1
    root.rename(tmp_path / "old")
    same(z[...], np.zeros((23, 17), "i4"))
    z[...] = 2
    assert (root / "a/c/0/0").exists()
    assert (zarr.open_array(tmp_path / "old", path="a")[...] == 1).all()
    assert (z[...] == 2).all()


def test_settings_are_looked_at_once(tmp_path, monkeypatch):
    """To count cores is to read files: a batch does not, while no setting changes. Each change counts."""
    n = []
    monkeypatch.setattr(_core, "core_count", lambda: n.append(1) or 4)
    z = zarr.create_array(LocalStore(tmp_path / "x"), data=np.arange(16).reshape(4, 4), chunks=(2, 2))
    same(z[...], np.arange(16).reshape(4, 4))
    engine = z.async_array.codec_pipeline.__dict__["_engine"]
    assert n
    n.clear()
    stores = [engine._last.store]
    z[...], z[1:3], z.oindex[[0, 2]]
    assert not n and engine._last.store is stores[0]
    for config, change in ((zarr.config, {"threading.max_workers": 1}), (zarrc.config, {"memory_bytes": "64M"}),
                           (zarrc.config, {"lock_wait": 7})):
        with config.set(change):
            same(z[...], np.arange(16).reshape(4, 4))
            assert n and not any(engine._last.store is one for one in stores)
            stores.append(engine._last.store)
            n.clear()
    with monkeypatch.context() as patch:  # the process is a worker of dask from now on
        worker = types.SimpleNamespace(state=types.SimpleNamespace(nthreads=1))
        patch.setitem(sys.modules, "distributed", types.SimpleNamespace(get_worker=lambda: worker))
        z[...]
        assert n and engine._last.store is not stores[0]
    z[...]
    assert engine._last.store is stores[0]
    (tmp_path / "x").rename(tmp_path / "y")
    zarr.create_array(LocalStore(tmp_path / "x"), data=np.ones((4, 4), int), chunks=(2, 2))
    same(z[...], np.ones((4, 4), int))
    assert not any(engine._last.store is one for one in stores)
    native_only()


def test_arrays_share_the_latest_context(tmp_path, monkeypatch):
    """It is found anew only if the settings, the environment or the number of cores have changed."""
    data, finds, find = np.arange(16).reshape(4, 4), [], settings._find_context
    for name in "abcd":
        zarr.create_array(LocalStore(tmp_path / name), data=data, chunks=(2, 2))
    monkeypatch.setattr(settings, "_find_context", lambda *arguments: finds.append(1) or find(*arguments))

    def count():
        finds.clear()
        for name in "abcd":
            same(zarr.open_array(tmp_path / name, mode="r")[...], data)
        return len(finds)

    count()
    assert count() == 0
    with monkeypatch.context() as patch:
        patch.setattr(_core, "core_count", lambda: 3)
        assert count() == 1
    with monkeypatch.context() as patch:
        patch.setenv("ZARRC_LOG_LEVEL", "error")
        assert count() == 1
    with zarrc.config.set({"lock_wait": 7}):
        assert count() == 1
    assert (count(), count()) == (1, 0)
    native_only()


def test_attributes_are_not_made_into_text(tmp_path):
    """Nor need they be text: no call of the library here sees them."""
    z = zarr.create_array(LocalStore(tmp_path), data=np.arange(4), chunks=(2,), dimension_names=["x"])
    z.metadata.attributes["here"] = object()
    same(z[...], np.arange(4))
    native_only()


def test_store_that_is_moved(tmp_path):
    store = LocalStore(tmp_path / "x")
    z = make_array(store, "i4", "v3")
    z[...] = 1
    asyncio.run(store.move(tmp_path / "y")) if asyncio.iscoroutinefunction(store.move) else store.move(tmp_path / "y")
    assert (z[...] == 1).all()
    z[...] = 2
    assert not (tmp_path / "x").exists()
    assert (zarr.open_array(tmp_path / "y", path="a")[...] == 2).all()


def test_symbolic_links(tmp_path):
    z = make_array(LocalStore(tmp_path / "x"), "i4", "v3")
    z[...] = 1
    (tmp_path / "x/a/c/1").rename(tmp_path / "elsewhere")
    (tmp_path / "x/a/c/1").symlink_to(tmp_path / "elsewhere")
    assert (z[...] == 1).all()
    native_only()
