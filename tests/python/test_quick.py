"""Reads of zarr-python's arrays in one call (`zarrc/_quick.py`), against the way that prepares each read in Python, and what ends
them: another store, directory, setting, chunk grid or data type."""
import asyncio
import concurrent.futures
import logging
import os
import pickle
import random
import shutil
import signal
import sys
import time
import types
import warnings

import numpy as np
import pytest

import zarrc
from zarrc import _core

zarr = pytest.importorskip("zarr")
from pipelines import IS_NEW, OWN, enable_pipeline  # noqa: E402, F401
from zarr.buffer import cpu  # noqa: E402
from zarr.storage import LocalStore, MemoryStore  # noqa: E402

from zarrc import _quick, _requests  # noqa: E402
from zarrc_hook.buffer import ZarrcNDBuffer  # noqa: E402


class Spy:
    """A Quick that remembers whether it did something."""

    def __init__(self, quick):
        self.quick, self.answers = quick, []

    def read(self, *given):
        self.answers.append(self.quick.read(*given))
        return self.answers[-1]


def find_pipeline(z):
    return z.async_array.codec_pipeline.__dict__ if hasattr(z, "async_array") else z._async_array.codec_pipeline.__dict__


def quickly(z, read):
    """What a read gives, and whether it was quick."""
    state = find_pipeline(z)
    spy = state["_quick"] = Spy(state["_quick"])
    try:
        found = read(z)
    finally:
        if state.get("_quick") is spy:
            state["_quick"] = spy.quick
    return found, len(spy.answers) > 0 and all(one is not None for one in spy.answers)


def slowly(z, read):
    """The same by the way in Python."""
    state = find_pipeline(z)
    kept = state.pop("_quick", None)
    try:
        return read(z)
    finally:
        state["_quick"] = kept


def same(a, b):
    assert type(a) is type(b)
    a, b = np.asarray(a), np.asarray(b)
    assert (a.dtype, a.shape, a.flags.f_contiguous) == (b.dtype, b.shape, b.flags.f_contiguous)
    np.testing.assert_array_equal(a, b)


def create(store, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shape = more.pop("shape", (23, 17, 6))
        z = zarr.create_array(store, name="a", shape=shape, chunks=more.pop("chunks", (5, 4, 3)[:len(shape)]),
                              **{"dtype": "<i4", "fill_value": 7, **more})
        z[...] = np.arange(int(np.prod(shape))).reshape(shape).astype(z.dtype)
        z[..., :1] = 7  # some chunks are not stored
        z[...]
        z[...]  # the second read leaves a Quick behind
    return z


STORES = {"local": lambda path: LocalStore(path / "x"), "memory": lambda path: MemoryStore(),
          "zarrc": lambda path: zarrc.ZarrcStore(path / "x"), "zarrc in memory": lambda path: zarrc.ZarrcStore("memory:")}
FORMS = {"v2": {"zarr_format": 2}, "v2-f": {"zarr_format": 2, "order": "F"}, "v3": {}, "v3-f": {"config": {"order": "F"}},
         "raw": {"compressors": None}, "shards": {"shards": (10, 8, 6)}, "swapped": {"dtype": ">f8"}, "bool": {"dtype": bool},
         "one": {"chunks": (1, 1, 6)}, "text": {"dtype": "S5", "fill_value": b"7"}, "dates": {"dtype": "M8[s]"}}


def any_slice(chance, length):
    kind = chance.randrange(6)
    if kind == 0:
        return chance.randrange(length)
    if kind == 1:
        return slice(None)
    start = chance.randrange(length)
    return slice(start, chance.randint(start + 1, length), chance.choice((None, 1, 1, 2, 3, 9)))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", STORES)
def test_the_same_as_in_python(tmp_path, kind, form):
    z = create(STORES[kind](tmp_path), **FORMS[form])
    chance = random.Random(f"{kind} {form}")
    n = 0
    for _ in range(60):
        key = tuple(any_slice(chance, length) for length in z.shape[:chance.randint(0, 3)])
        found, is_quick = quickly(z, lambda z: z[key])
        same(found, slowly(z, lambda z: z[key]))
        n += is_quick
    assert n == 60
    assert zarrc.pipeline_stats()["fallback_chunks"] == 0


@pytest.mark.parametrize("kind", STORES)
def test_selections_that_are_not_quick(tmp_path, kind):
    z = create(STORES[kind](tmp_path))
    mask = np.arange(23 * 17 * 6).reshape(z.shape) % 5 == 0
    for read in (lambda z: z.oindex[[1, 20, 3], :, 2], lambda z: z.oindex[3, 2:9, [0, 5]], lambda z: z.vindex[[1, 2], [3, 4], [5, 0]],
                 lambda z: z.vindex[mask]):
        found, is_quick = quickly(z, read)
        assert not is_quick
        same(found, slowly(z, read))
    for read in (lambda z: z.oindex[3:9], lambda z: z.blocks[1, 2], lambda z: z.get_basic_selection((slice(3, 9), 2))):
        found, is_quick = quickly(z, read)
        same(found, slowly(z, read))


@pytest.mark.parametrize("kind", STORES)
def test_no_dimensions(tmp_path, kind):
    z = zarr.create_array(STORES[kind](tmp_path), shape=(), dtype="i4")
    z[...] = 5
    z[()], z[()]
    assert quickly(z, lambda z: z[()]) == (5, True)
    assert zarrc.pipeline_stats()["fallback_chunks"] == 0


@pytest.mark.parametrize("kind", STORES)
def test_memory_of_the_caller(tmp_path, kind):
    z = create(STORES[kind](tmp_path))
    ref = slowly(z, lambda z: z[3:9])
    for out, wanted in ((np.zeros((6, 17, 6), "<i4"), True), (np.zeros((6, 17, 6), "<i4", "F"), True),
                        (np.zeros((12, 17, 6), "<i4")[::-2], True), (np.zeros((6, 17, 6), ">i4"), False),
                        (np.zeros((6, 17, 6), "<f8"), False)):
        _, is_quick = quickly(z, lambda z: z.get_basic_selection(slice(3, 9), out=cpu.NDBuffer(out)))
        assert is_quick == wanted
        np.testing.assert_array_equal(out, ref)
        z[...]


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("form", ["v3", "shards"])
def test_after_resize(tmp_path, kind, form):
    z = create(STORES[kind](tmp_path), **FORMS[form])
    n = 0
    for shape in ((40, 30, 6), (11, 9, 4), (24, 17, 9)):
        z.resize(shape)
        with zarr.config.set({"codec_pipeline.path": OWN}):
            ref = zarr.open_array(z.store, path="a", mode="r")
        for key in (np.s_[...], np.s_[5:], np.s_[-3:, 2], np.s_[:, :, -1]):
            found, _ = quickly(z, lambda z: z[key])
            np.testing.assert_array_equal(found, ref[key])
        z[-2:] = 9
        np.testing.assert_array_equal(z[...], ref[...])
        n += quickly(z, lambda z: z[...])[1]
    assert n > 0


@pytest.mark.skipif(not IS_NEW, reason="zarr-python 3.1 has no such setting")
@pytest.mark.parametrize("kind", STORES)
def test_missing_chunks_are_told(tmp_path, kind):
    z = zarr.create_array(STORES[kind](tmp_path), shape=(4, 4), chunks=(2, 2), dtype="i4", config={"read_missing_chunks": False})
    z[:2] = 5
    z[:2], z[:2]
    for key in (np.s_[:], np.s_[3, 3]):
        with pytest.raises(zarr.errors.ChunkNotFoundError, match="c/1/1"):
            quickly(z, lambda z: z[key])
    found, is_quick = quickly(z, lambda z: z[1, 3])
    assert is_quick and found == 5


# ---- what ends it ----


def test_directories_that_are_made_again(tmp_path):
    z = create(LocalStore(tmp_path / "x"))
    old = z[...]
    (tmp_path / "x").rename(tmp_path / "y")
    found, is_quick = quickly(z, lambda z: z[...])
    assert not is_quick and (found == 7).all()  # zarr-python's own pipeline says so: there is no store
    other = create(LocalStore(tmp_path / "x"))
    other[...] = 3
    found, is_quick = quickly(z, lambda z: z[...])
    assert not is_quick and (found == 3).all()
    found, is_quick = quickly(z, lambda z: z[...])
    assert is_quick and (found == 3).all()
    same(zarr.open_array(tmp_path / "y", path="a")[...], old)


def test_a_directory_that_is_made_again_meanwhile(tmp_path, monkeypatch):
    """Another thread has seen the new directory, while this one read the old."""
    z = create(LocalStore(tmp_path / "x"))
    find_pipeline(z).pop("_quick")
    keep = _quick.keep

    def late(pipeline, job):
        monkeypatch.setattr(_quick, "keep", keep)
        (tmp_path / "x").rename(tmp_path / "y")
        shutil.copytree(tmp_path / "y", tmp_path / "x")
        (tmp_path / "x/a/c/0/0/0").unlink()
        job.engine.local(z.store.root)
        keep(pipeline, job)

    monkeypatch.setattr(_quick, "keep", late)
    assert z[1, 1, 1] == 109
    assert z[1, 1, 1] == 7


def test_chunks_that_change(tmp_path):
    """Nothing of a chunk is kept."""
    z = create(LocalStore(tmp_path / "x"))
    (tmp_path / "x/a/c/0/0/1").unlink()
    found, is_quick = quickly(z, lambda z: z[:5, :4, 3:])
    assert is_quick and (found == 7).all()
    z[0, 0, 3] = 8
    found, is_quick = quickly(z, lambda z: z[0, 0, 3])
    assert is_quick and found == 8


@pytest.mark.parametrize("kind", ["local", "memory"])
def test_settings(tmp_path, kind, monkeypatch):
    z = create(STORES[kind](tmp_path))
    ref = z[...]
    for config, change in ((zarr.config, {"threading.max_workers": 1}), (zarrc.config, {"memory_bytes": "64M"}),
                           (zarrc.config, {"lock_wait": 7})):
        with config.set(change):
            for wanted in (False, True):
                found, is_quick = quickly(z, lambda z: z[...])
                assert is_quick == wanted
                same(found, ref)
        z[...]
    with monkeypatch.context() as patch:  # the process is a worker of dask from now on
        worker = types.SimpleNamespace(state=types.SimpleNamespace(nthreads=1))
        patch.setitem(sys.modules, "distributed", types.SimpleNamespace(get_worker=lambda: worker))
        assert not quickly(z, lambda z: z[...])[1]


def test_settings_of_others(tmp_path, monkeypatch):
    """What does not change the library's settings ends nothing."""
    z = create(LocalStore(tmp_path / "x"))
    quick = find_pipeline(z)["_quick"]

    def no_worker():
        raise ValueError("no worker found")

    with zarr.config.set({"async.concurrency": 3, "array.order": "F"}), zarrc.config.set({}):
        assert quickly(z, lambda z: z[...])[1]
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "distributed", types.SimpleNamespace(get_worker=no_worker))
        assert quickly(z, lambda z: z[...])[1]
    assert find_pipeline(z)["_quick"] is quick
    for logger in (logging.getLogger(), logging.getLogger("zarrc")):
        before = logger.level
        logger.setLevel(logging.DEBUG)
        try:
            assert not quickly(z, lambda z: z[...])[1]
        finally:
            logger.setLevel(before)
        z[...]


def test_stores_that_do_something_else(tmp_path, monkeypatch):
    class CountingStore(LocalStore):
        n = 0

        async def get(self, *given, **named):
            CountingStore.n += 1
            return await super().get(*given, **named)

    z = create(CountingStore(tmp_path / "x"))
    z[0], z[1]
    assert "_quick" not in find_pipeline(z) and CountingStore.n > 0
    z = create(MemoryStore())
    get, n = MemoryStore.get, []

    async def other(self, *given, **named):
        n.append(1)
        return await get(self, *given, **named)

    monkeypatch.setattr(MemoryStore, "get", other)
    assert not quickly(z, lambda z: z[...])[1] and n


def test_another_store_of_the_same_pipeline(tmp_path):
    """A pipeline belongs to metadata, and to no store."""
    one, two = create(LocalStore(tmp_path / "x")), create(LocalStore(tmp_path / "y"))
    two[...] = 4
    object.__setattr__(two.async_array, "codec_pipeline", one.async_array.codec_pipeline)
    for _ in range(3):
        assert (two[...] == 4).all() and one[1, 0, 1] == 103
    closed = LocalStore(tmp_path / "x")
    object.__setattr__(one.async_array, "store_path", type(one.store_path)(closed, "a"))
    assert one[1, 0, 1] == 103 and closed._is_open


@pytest.mark.parametrize("kind", ["local", "memory"])
def test_damaged_chunks_fail_in_the_same_words(tmp_path, kind):
    z = create(STORES[kind](tmp_path))
    if kind == "local":
        (tmp_path / "x/a/c/0/0/1").write_bytes(b"damaged")
    else:
        z.store._store_dict["a/c/0/0/1"] = cpu.Buffer.from_bytes(b"damaged")
    said = []
    for how in (quickly, slowly):
        with pytest.raises(Exception) as problem:
            how(z, lambda z: z[:5, :4])
        said.append((type(problem.value), str(problem.value)))
    assert said[0] == said[1] and said[0][0] is zarrc.errors.CorruptError
    assert zarrc.pipeline_stats()["reasons"] == {}


def test_values_of_another_class(tmp_path):
    z = create(MemoryStore())
    ref = z[...]

    class Other(cpu.Buffer):
        pass

    for key, value in z.store._store_dict.items():
        z.store._store_dict[key] = Other(value.as_numpy_array())
    found, is_quick = quickly(z, lambda z: z[...])
    assert not is_quick
    same(found, ref)


# ---- counters, tasks, threads and processes ----


def test_counters(tmp_path):
    for kind, make in STORES.items():
        z = create(make(tmp_path / kind), shape=(10, 10), chunks=(2, 5), fill_value=0)
        zarrc.pipeline_stats(reset=True)
        for _ in range(40):
            z[:3, :]
        assert zarrc.pipeline_stats() == {"batches": 40, "native_chunks": 160, "fallback_chunks": 0, "reasons": {}}, kind
        assert zarrc.pipeline_stats(reset=True)["batches"] == 40 and zarrc.pipeline_stats()["batches"] == 0


@pytest.mark.parametrize("kind", STORES)
def test_other_tasks_run(tmp_path, kind):
    """A task that makes only small reads lets other tasks run."""
    z = create(STORES[kind](tmp_path), shape=(8,), chunks=(4,))

    async def main():
        ticks = 0

        async def reads():
            for _ in range(64):
                await z.async_array.getitem(slice(0, 4))

        task = asyncio.create_task(reads())
        while not task.done():
            await asyncio.sleep(0)
            ticks += 1
        return ticks

    assert asyncio.run(main()) >= 4


def test_what_is_small_needs_no_thread(tmp_path, monkeypatch):
    z = create(MemoryStore(), shape=(8, 20000), chunks=(1, 20000))
    wide = z[...]

    async def refuse(*unused):
        raise AssertionError("a thread")

    monkeypatch.setattr(_requests, "apart", refuse)
    with pytest.raises(AssertionError, match="a thread"):
        z[0]
    monkeypatch.undo()
    same(z[...], wide)
    little = create(MemoryStore(), shape=(40,), chunks=(4,))
    monkeypatch.setattr(_requests, "apart", refuse)
    same(little[2:20], np.arange(2, 20, dtype="<i4"))
    with pytest.raises(AssertionError, match="a thread"):
        little[...]


def test_inner_chunks_count(monkeypatch):
    """Not shards: a shard may have thousands of inner chunks, each of which is decoded for one element."""
    z = create(MemoryStore(), shape=(64 * 4096,), chunks=(4096,), shards=(64 * 4096,))
    wide = z[::4096]

    async def refuse(*unused):
        raise AssertionError("a thread")

    z[::4096]
    monkeypatch.setattr(_requests, "apart", refuse)
    with pytest.raises(AssertionError, match="a thread"):
        z[::4096]
    monkeypatch.undo()
    same(z[::4096], wide)


class Later(zarr.storage.WrapperStore):
    """A store whose chunks take a while, on the event loop of the reader."""

    async def get(self, key, prototype, byte_range=None):
        if "c/" in key:
            await asyncio.sleep(.02)
        return await super().get(key, prototype, byte_range)

    async def get_ranges(self, key, ranges, *, prototype, **options):
        await asyncio.sleep(.02)
        async for found in super().get_ranges(key, ranges, prototype=prototype, **options):
            yield found


def test_no_wait_for_memory_on_the_event_loop():
    """A read that has the memory goes on only if the event loop does."""
    big = create(MemoryStore(), shape=(32 * 65536,), chunks=(16384,), shards=(65536,))
    with zarrc.config.set({"memory_bytes": "400K"}):
        late = zarr.open_array(Later(big.store), path="a", mode="r")
        z = create(MemoryStore(), shape=(4096,), chunks=(2048,))
        wanted = z[:2048]
        assert find_pipeline(z)["_quick"] is not None

        async def main():
            task = asyncio.create_task(late.async_array.getitem(slice(5, big.shape[0] - 5)))
            while not task.done():
                await asyncio.sleep(.001)
                same(await z.async_array.getitem(slice(0, 2048)), wanted)
            return await task

        same(asyncio.run(asyncio.wait_for(main(), 60)), np.arange(5, big.shape[0] - 5, dtype="<i4"))


def test_threads_of_the_loop_are_for_stores(tmp_path):
    """A read that has the memory needs a thread of the loop's executor for its store; reads that wait for memory leave it one."""
    big = create(LocalStore(tmp_path / "x"), shape=(32 * 65536,), chunks=(16384,), shards=(65536,), compressors=None)
    with zarrc.config.set({"memory_bytes": "140K"}):
        late = zarr.open_array(Later(big.store), path="a", mode="r")
        z = create(MemoryStore(), shape=(4096 * 64,), chunks=(4096,), compressors=None)
        z[:4096]

        async def small(task):
            while not task.done():
                await asyncio.sleep(.001)
                await z.async_array.getitem(slice(0, 4096))

        async def main():
            asyncio.get_running_loop().set_default_executor(concurrent.futures.ThreadPoolExecutor(1))
            task = asyncio.create_task(late.async_array.getitem(slice(5, big.shape[0] - 5)))
            await asyncio.gather(*[small(task) for _ in range(4)])
            return await task

        same(asyncio.run(asyncio.wait_for(main(), 60)), np.arange(5, big.shape[0] - 5, dtype="<i4"))


class Values:
    """A value of a store in memory that is no array of NumPy."""

    def __init__(self, array):
        self._array = array
        self.dtype, self.itemsize, self.ndim, self.shape = array.dtype, array.itemsize, array.ndim, array.shape

    def __array__(self, dtype=None, copy=None):
        return self._array

    def __len__(self):
        return len(self._array)


def test_values_of_another_kind():
    store = MemoryStore()
    z = create(store, shape=(5,), chunks=(5,))
    for key, value in list(store._store_dict.items()):
        if key.startswith("a/c/"):
            store._store_dict[key] = cpu.Buffer(Values(value.as_numpy_array()))
    for _ in range(5):
        same(z[...], np.array([7, 1, 2, 3, 4], "<i4"))


def test_no_descriptor_is_left(tmp_path, monkeypatch):
    """The read fails, and its request is not kept for ever."""
    z = create(LocalStore(tmp_path / "x"), shape=(64, 64, 64), chunks=(64, 64, 64), dtype="f8")
    z[...]
    before = len(_core.flights())

    def refuse():
        raise OSError("too many open files")

    async def main():
        monkeypatch.setattr(_core, "new_queue", refuse)
        try:
            await z.async_array.getitem(...)
        finally:
            monkeypatch.undo()

    n = 0
    for _ in range(40):
        try:
            asyncio.run(main())  # it succeeds if the library was faster
        except OSError as problem:
            assert "too many" in str(problem)
            n += 1
    assert n > 0
    assert len(_core.flights()) == before


def test_other_tasks_run_while_such_a_read_stops(monkeypatch):
    stopped = []

    class Slow:
        """A request that takes a while to stop."""

        def leave(self):
            time.sleep(.3)
            stopped.append(1)

    def refuse():
        raise OSError("too many open files")

    async def main():
        monkeypatch.setattr(_core, "new_queue", refuse)
        task = asyncio.create_task(_quick._wait_for_end(Slow()))
        n = 0
        while not task.done():
            await asyncio.sleep(.01)
            n += 1
        with pytest.raises(OSError, match="too many"):
            await task
        return n

    assert asyncio.run(main()) > 3 and stopped


def test_a_read_that_nobody_waits_for(tmp_path):
    """Ctrl-C may come between the call that begins a read and the wait for its end. Then the read stops, and nothing keeps it."""
    z = create(LocalStore(tmp_path / "x"), shape=(64, 64, 64), chunks=(64, 64, 64), dtype="f8")
    z[...]
    quick, batch, buffer, drop = caught(z, ...)
    before, kept = len(_core.flights()), sys.getrefcount(buffer._data)
    for _ in range(10):
        assert type(quick.read(batch, buffer, drop)) is _core.Request
        assert len(_core.flights()) == before
    now = sys.getrefcount(buffer._data)
    assert now == kept
    same(z[...], slowly(z, lambda z: z[...]))


def test_settings_of_no_form(tmp_path):
    """What cannot be looked at costs the quick way, not the read."""
    z = create(LocalStore(tmp_path / "x"), shape=(40,), chunks=(4,))
    with zarr.config.set({"threading": None}):
        for _ in range(4):
            same(z[2:9], np.arange(2, 9, dtype="<i4"))


def test_counts_are_reset(tmp_path):
    z = create(LocalStore(tmp_path / "x"), shape=(40,), chunks=(4,))
    for _ in range(5):
        z[:4]
    assert zarrc.pipeline_stats(reset=1)["batches"] > 0
    assert zarrc.pipeline_stats()["batches"] == 0


@pytest.mark.parametrize("order", [None, "C", "F"])
def test_buffers_of_any_order(order):
    same(ZarrcNDBuffer.empty((2, 3), np.dtype("i4"), order).as_ndarray_like() * 0, np.empty((2, 3), "i4", order) * 0)


def test_tasks_that_are_cancelled(tmp_path):
    z = create(LocalStore(tmp_path / "x"), shape=(64, 64, 64), chunks=(64, 64, 64), dtype="f8")
    ref = z[...]

    async def main():
        n = 0
        for i in range(40):
            task = asyncio.create_task(z.async_array.getitem(...))
            for _ in range(i % 4):
                await asyncio.sleep(0)
            task.cancel()
            try:
                await task  # it may be done before
            except asyncio.CancelledError:
                n += 1
        assert n > 0
        return await z.async_array.getitem(...)

    same(asyncio.run(main()), ref)
    until = time.monotonic() + 60
    while _core.flights() and time.monotonic() < until:  # the queue of a loop that was closed is emptied by the next loop
        asyncio.run(main())
    assert not _core.flights()


@pytest.mark.parametrize("kind", STORES)
def test_threads(tmp_path, kind):
    """Some read, one changes settings that matter, and one the elements."""
    z = create(STORES[kind](tmp_path), shape=(64, 64), chunks=(8, 8))
    ref = z[...]

    def work(i):
        for j in range(30):
            if i == 0:
                with zarrc.config.set({"lock_wait": j + 1}):
                    z[j]
            elif i == 1:
                z[63] = ref[63]
            else:
                row = (7 * i + j) % 64
                np.testing.assert_array_equal(z[row:row + 3, i:], ref[row:row + 3, i:])

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert zarrc.pipeline_stats()["fallback_chunks"] == 0


def test_pickles(tmp_path):
    z = create(LocalStore(tmp_path / "x"))
    copy = pickle.loads(pickle.dumps(z))
    assert not {"_quick", "_kept", "_engine"} & set(find_pipeline(copy))
    same(copy[...], z[...])
    assert "_quick" not in find_pipeline(copy)  # an array that is read once needs none
    same(copy[...], z[...])
    assert quickly(copy, lambda z: z[...])[1]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_after_a_fork(tmp_path):
    z = create(LocalStore(tmp_path / "x"))
    ref = z[...]
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        found, is_quick = quickly(z, lambda z: z[...])
        os._exit(0 if (found == ref).all() else 3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_warning_that_is_an_error(tmp_path):
    """It is raised where the read was, and not lost."""
    z = create(LocalStore(tmp_path / "x"))
    ref = z[...]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(z[...], ref)


def caught(z, key):
    """The Quick of an array, and what a read hands to it."""
    state, given = find_pipeline(z), []
    quick = state["_quick"]
    state["_quick"] = type("Catch", (), {"read": lambda self, *arguments: given.append(arguments)})()
    z[key]
    state["_quick"] = quick
    return quick, *given[0]


def test_who_carries_a_small_read_out():
    """The call itself. Each sixteenth is a Request, for other tasks to run, but no thread of the library has to wake up for it."""
    z = create(STORES["zarrc in memory"](None), shape=(20,), chunks=(5,))
    quick, batch, buffer, drop = caught(z, slice(3, 12))
    answers = [quick.read(batch, buffer, drop) for _ in range(48)]
    requests = [one for one in answers if type(one) is not tuple]
    assert len(requests) == 3
    assert all(one.is_done() and bytes(one.present()) == b"\1\1\1" for one in requests)
    np.testing.assert_array_equal(buffer._data, z[3:12])


# ---- calls that no zarr-python makes ----


def test_arguments_of_any_kind(tmp_path):
    z = create(LocalStore(tmp_path / "x"), shape=(20,), chunks=(5,))
    quick, batch, buffer, drop = caught(z, slice(3, 12))
    assert any(type(quick.read(batch, buffer, drop)) is tuple for _ in range(2))  # each sixteenth is a Request
    one = batch[0]
    for wrong in ([], (), None, [None], [()], [one[:4]], tuple(batch), [one], batch[::-1], batch[:2], batch + batch,
                  [(None, *one[1:])], [(one[0], None, *one[2:])], [(*one[:2], slice(3, 5), *one[3:])],
                  [(*one[:2], (), *one[3:])], [(*one[:2], (None,), *one[3:])], [(*one[:2], (slice(5, 3),), *one[3:])],
                  [(*one[:2], (slice(-2, 3),), *one[3:])], [(*one[:2], (slice(0, 1 << 80),), *one[3:])],
                  [(*one[:2], (1 << 80,), (), True)], [(*one[:2], (-1,), (), True)], [(*one[:2], (7,), (), True)],
                  [(*one[:3], (), True)], [(*one[:3], [slice(0, 2)], True)], [(*one[:3], (slice(0, 1 << 62),), True)],
                  [(*one[:2], (slice(3, 5, 1 << 62),), (slice(0, 1 << 62),), True)], [(*one[:3], (slice(1, 3),), True)],
                  [(*one[:3], (slice(0, 2), slice(0, 2)), True)], [(*one[:3], (slice(0, 0),), True)]):
        assert quick.read(wrong, buffer, drop) is None, wrong
    for wrong in (None, buffer._data, ZarrcNDBuffer(None), ZarrcNDBuffer(buffer._data[1:]), ZarrcNDBuffer(buffer._data.astype("f8")),
                  ZarrcNDBuffer(buffer._data[:, None]), ZarrcNDBuffer(np.broadcast_to(np.int32(0), 9))):
        assert quick.read(batch, wrong, drop) is None
    for wrong in (None, (0,), []):
        assert quick.read(batch, buffer, wrong) is None
    with pytest.raises(TypeError):
        quick.read(batch)
    with pytest.raises(TypeError):
        type(quick)()


def test_buffers_are_those_of_numpy():
    for dtype in (bool, "i1", "<i4", ">i4", "f2", "<f8", ">c16", "S5", "U3", "V3", "O", "M8[s]", [("a", "i4")]):
        for shape in ((), (3,), (2, 3), (0, 3), (np.int64(2), 3)):
            for order in "CF":
                found = ZarrcNDBuffer.empty(shape, np.dtype(dtype), order)
                ref = np.empty(shape, dtype, order)
                assert type(found) is ZarrcNDBuffer and type(found._data) is np.ndarray
                assert (found.dtype, found.shape, found._data.strides) == (ref.dtype, ref.shape, ref.strides)
    assert ZarrcNDBuffer.empty((2,), "i4").dtype == "i4"
    for shape in ((1 << 22, 1 << 22, 1 << 22), (1 << 63,), (-1,), (1 << 31, 1 << 31, 1 << 2)):
        with pytest.raises((ValueError, MemoryError, OverflowError)):
            ZarrcNDBuffer.empty(shape, np.dtype("i4"))
    assert _core.empty((2,), np.dtype("M8[s]"), "C") is None and _core.empty((2,), None, "C") is None
    assert _core.empty(None, np.dtype("i4"), "C") is None and _core.empty((2,), np.dtype("i4"), "K") is None
