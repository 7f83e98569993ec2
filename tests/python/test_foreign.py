"""Stores of other packages below the library: dicts, zarr-python's, fsspec's, obstore's, and those of a
user; what they raise, forks, threads, and the end of the interpreter."""
import asyncio
import collections
import contextlib
import errno
import gc
import os
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import zarr
from test_process import run
from zarr.abc.store import Store as ZarrStore
from zarr.storage import MemoryStore, WrapperStore, ZipStore

import zarrc
from zarrc import _core, _find_adapter, _foreign, _store

fsspec = pytest.importorskip("fsspec")
icechunk = pytest.importorskip("icechunk")
obstore = pytest.importorskip("obstore.store")


class PlainMapping(collections.UserDict):
    """A mapping that is not a dict."""


class Slow(WrapperStore):
    """A store whose coroutines wait for the event loop."""

    async def get(self, key, prototype, byte_range=None):
        await asyncio.sleep(0)
        return await self._store.get(key, prototype, byte_range)


KINDS = {
    "dict": lambda path: {},
    "mapping": lambda path: PlainMapping(),
    "MemoryStore": lambda path: MemoryStore(),
    "WrapperStore": lambda path: WrapperStore(MemoryStore()),
    "Slow": lambda path: Slow(MemoryStore()),
    "ZipStore": lambda path: ZipStore(path + ".zip", mode="w"),
    "wrapped LocalStore": lambda path: WrapperStore(zarr.storage.LocalStore(path)),
}
def of_fsspec(path):
    return zarr.storage.FsspecStore.from_url("memory://" + path)


def of_icechunk(path):
    return icechunk.Repository.create(icechunk.in_memory_storage()).writable_session("main").store


KINDS |= {
    "FSMap": lambda path: fsspec.get_mapper("memory://" + path),
    "fsspec local": lambda path: fsspec.get_mapper(path, auto_mkdir=True),
    "FsspecStore": of_fsspec,
    "obstore": lambda path: obstore.MemoryStore(),
    "ObjectStore": lambda path: zarr.storage.ObjectStore(obstore.MemoryStore()),
    "ObjectStore local": lambda path: zarr.storage.ObjectStore(obstore.LocalStore(path, mkdir=True)),
    "icechunk": of_icechunk,
}


@pytest.fixture(params=KINDS)
def source(request, path):
    made = KINDS[request.param](path)
    yield made
    if isinstance(made, ZipStore):
        made.close()


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("given", [{}, {"shards": (20, 20)}, {"zarr_format": 2}], ids=["plain", "shards", "v2"])
def test_arrays(source, numbers, given):
    if isinstance(source, icechunk.IcechunkStore) and "zarr_format" in given:
        pytest.skip("icechunk has no format 2")
    array = zarrc.create_array(source, name="g/a", shape=(60, 40), chunks=(10, 10), dtype="int32", attributes={"n": 1}, **given)
    if isinstance(source, ZipStore) and given:
        array[...] = numbers  # a zip file cannot replace parts
    else:
        array[:33] = numbers[:33]
        array[33:] = numbers[33:]
        array[5:7, 3] = -1
        numbers[5:7, 3] = -1
    again = zarrc.open_array(source, path="g/a", mode="r")
    assert (again[...] == numbers).all() and (again[3:12, ::7] == numbers[3:12, ::7]).all() and again.attrs["n"] == 1
    assert again.nchunks_initialized > 0 and again.read_only
    if isinstance(source, ZarrStore):
        assert (zarr.open_array(source, path="g/a", mode="r+")[...] == numbers).all()


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_groups(source):
    group = zarrc.open_group(source)
    group.create_array("b/a", data=np.arange(4))
    group.create_group("c", attributes={"x": 1})
    assert sorted(name for name, _ in group.members(max_depth=None)) == ["b", "b/a", "c"]
    assert sorted(group.store.list()) == ["b/a/c/0", "b/a/zarr.json", "b/zarr.json", "c/zarr.json", "zarr.json"]
    assert sorted(group.store.list_dir("b")) == ["a", "zarr.json"] and sorted(group.store.list_dir("")) == ["b", "c", "zarr.json"]
    if not isinstance(source, ZipStore):
        del group["b"]
        assert sorted(group.store.list()) == ["c/zarr.json", "zarr.json"]
        zarrc.save(source, np.arange(3), path="d")
        assert zarrc.load(source, path="d").tolist() == [0, 1, 2]
    zarrc.copy_store(group.store, into := zarrc.open_store("memory:"))
    assert "c/zarr.json" in into


def test_keys(source):
    """Bytes of keys: ranges, suffixes, and what is beyond the end."""
    if isinstance(source, icechunk.IcechunkStore):
        pytest.skip("icechunk takes the keys of Zarr only")
    store = zarrc.open_store(source)
    assert store.get("a/b") is None and "a/b" not in store
    store.set("a/b", b"0123456789")
    assert store.get("a/b") == b"0123456789" and store.get("a/b", 3) == b"3456789" and store.get("a/b", 3, 4) == b"3456"
    assert store.get("a/b", 8, 100) == b"89" and store.get("a/b", 10) == b"" and store.get("a/b", 50, 3) == b""
    assert store.getsize("a/b") == 10 and "a/b" in store and "a" not in store
    store.set("empty", b"")
    assert store.get("empty") == b"" and store.getsize("empty") == 0
    if not isinstance(source, ZipStore):
        store.set("a/b", b"new")
        assert store.get("a/b") == b"new"
        store.delete("a/b")
        store.delete("a/b")
        assert store.get("a/b") is None and list(store.list_prefix("a")) == []
        with pytest.raises(zarrc.errors.NotFoundError):
            store.getsize("a/b")


def test_ranges_of_archives_that_begin_after_the_end(tmp_path):
    adapter = _find_adapter.find_adapter(ZipStore(tmp_path / "x.zip", mode="w"))
    adapter.put("a", b"0123456789")
    assert bytes(adapter.get("a", 50, 3)) == b"" and bytes(adapter.get("a", 8, 100)) == b"89" and adapter.get("b", 50, 3) is None


def test_one_store_for_one_source():
    source = MemoryStore()
    store = _store.wrap_store(source)
    assert _store.wrap_store(source) is store and zarrc.open_store(source) == store
    assert _store.wrap_store(MemoryStore()) is not store
    adapters = _foreign.service().adapters
    before = len(adapters)
    del store
    gc.collect()
    deadline = time.monotonic() + 10
    while len(adapters) >= before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(adapters) < before  # the store has gone, and its adapter with it


def test_what_is_no_store():
    with pytest.raises(TypeError, match="is not a store"):
        zarrc.open(5)
    with pytest.raises(TypeError, match="is not a store"):
        _store.wrap_store(object())


def test_read_only():
    source = MemoryStore()
    zarrc.create_array(source, name="a", data=np.arange(4))
    sealed = source.with_read_only(True)
    assert zarrc.open_array(sealed, path="a", mode="r")[2] == 2
    for write in (lambda: zarrc.open_array(sealed, path="a", mode="r+"), lambda: zarrc.create_array(sealed, name="b", shape=3, dtype="i4"),
                  lambda: zarrc.open_store(sealed, mode="r").set("x", b""),
                  lambda: zarrc.open_store(sealed, mode="r").with_read_only(False)):
        with pytest.raises(zarrc.errors.ReadOnlyError):
            write()


def test_store_path():
    source = MemoryStore()
    zarrc.create_array(source, name="g/a", data=np.arange(4))
    assert zarrc.open_array(zarr.storage.StorePath(source, "g"), path="a", mode="r")[1] == 1


def test_urls(path):
    url = f"simplecache::file://{path}"
    zarrc.create_array(path, data=np.arange(6), chunks=2)
    assert zarrc.open_array(url, mode="r")[...].tolist() == list(range(6))


def test_paths_that_have_their_scheme():
    """As those of fsspec's file system for http."""
    from fsspec.implementations.memory import MemoryFileSystem

    class Web(MemoryFileSystem):
        protocol = ("web", "webs")
        store, pseudo_dirs = {}, [""]

        @classmethod
        def _strip_protocol(cls, path):
            return path

    array = zarrc.create_array(fsspec.FSMap("webs://host/x", Web()), data=np.arange(6), chunks=2)
    assert repr(array) == "<Array webs://host/x shape=(6,) dtype=int64>" and array[4] == 4


def test_urls_that_nothing_opens(path):
    with pytest.raises(zarrc.errors.UnsupportedError, match="nothing-like-it://x.*Install fsspec"):
        zarrc.open("nothing-like-it://x")
    with pytest.raises(TypeError, match="storage_options"):
        zarrc.open(path, storage_options={"a": 1})


# ---- what stores raise ----


class BrokenStore(MemoryStore):
    problem: BaseException = OSError(errno.EACCES, "no entry")

    async def get(self, key, prototype=None, byte_range=None):
        if "/c/" in key:
            raise self.problem
        return await super().get(key, prototype, byte_range)

    async def set(self, key, value):
        if "/c/" in key and getattr(self, "is_full", False):
            raise self.problem
        return await super().set(key, value)


@pytest.mark.parametrize("problem", [OSError(errno.EACCES, "no entry"), RuntimeError("what\nis\0this" * 100), ValueError(),
                                     SystemExit(3), asyncio.CancelledError(), KeyboardInterrupt()], ids=lambda e: type(e).__name__)
def test_exceptions(problem):
    source = BrokenStore()
    array = zarrc.create_array(source, name="a", shape=100, chunks=10, dtype="i4", fill_value=1)
    source.problem = problem
    with pytest.raises(zarrc.ZarrcError) as caught:
        array[...]
    if not isinstance(problem, asyncio.CancelledError):
        assert caught.value.__cause__ is problem
    if isinstance(problem, OSError):
        assert caught.value.errno == errno.EACCES and isinstance(caught.value, PermissionError)
        assert type(caught.value) is zarrc.errors.DeniedError and isinstance(caught.value, zarrc.errors.StoreError)
    assert caught.value.key == "a/c/0"
    source.is_full = True
    with pytest.raises(zarrc.ZarrcError):
        array[...] = 5
    source.is_full = False
    source.problem = FileNotFoundError(errno.ENOENT, "gone")
    assert (array[...] == 1).all()  # as missing as any other


def test_a_listing_that_fails():
    class UnlistedStore(MemoryStore):
        async def list_dir(self, prefix):
            raise OSError(errno.EIO, "no list")
            yield

    group = zarrc.open_group(UnlistedStore())
    with pytest.raises(OSError, match="cannot list") as caught:
        list(group.keys())
    assert "no list" in str(caught.value.__cause__)


def test_a_dict_that_zarr_python_filled():
    """It holds Buffers, and goes on doing so: both read what either wrote."""
    source = {}
    zarr.create_array(source, name="a", data=np.arange(10), chunks=3)
    ours = zarrc.open_array(source, path="a")
    assert ours[...].tolist() == list(range(10))
    ours[2:8] = 1
    zarrc.create_array(source, name="b", data=np.ones(3))
    assert zarr.open_array(source, path="a", mode="r")[...].tolist() == [0, 1, *[1] * 6, 8, 9]
    assert (zarr.open_array(source, path="b", mode="r")[...] == 1).all()
    assert ours.nchunks_initialized == 4 and ours.nbytes_stored() > 0
    assert sorted(zarrc.open_group(source).keys()) == ["a", "b"]


def test_a_dict_that_gives_no_bytes():
    array = zarrc.create_array(source := {}, name="a", data=np.arange(4))
    source["a/c/0"] = 7
    with pytest.raises(zarrc.ZarrcError) as caught:
        array[...]
    assert isinstance(caught.value.__cause__, TypeError)


class StuckStore(MemoryStore):
    """A store whose reads of chunks never end."""

    async def get(self, key, prototype=None, byte_range=None):
        if "/c/" in key:
            await asyncio.Event().wait()
        return await super().get(key, prototype, byte_range)


def test_a_cancelled_request_ends():
    array = zarrc.create_array(StuckStore(), name="a", shape=100, chunks=10, dtype="i4")
    array[...] = 1

    async def work():
        with pytest.raises((asyncio.TimeoutError, TimeoutError)):
            await asyncio.wait_for(array.async_array.getitem(...), 0.2)

    asyncio.run(work())
    assert array.shape == (100,)


def test_a_dropped_batch_answers():
    """Operations whose batch object goes away end, with an error."""
    service = _core.new_service()
    store = _core.open_foreign(zarrc.Store, zarrc._settings.settings.context(), service, "x:", 1, 15, 4, 0, False, False)
    ended = []

    def ask():
        try:
            store._get("a")
        except OSError as problem:
            ended.append(problem)

    thread = threading.Thread(target=ask)
    thread.start()
    deadline = time.monotonic() + 10
    while not (batches := service.wait()) and time.monotonic() < deadline:
        pass
    assert batches[0].op(0)[:2] == (5, "a")  # ZARR_STORE_STAT
    del batches
    thread.join(10)
    assert len(ended) == 1 and "without an answer" in str(ended[0].reason)


# ---- threads and processes ----


def test_threads(numbers):
    array = zarrc.create_array(WrapperStore(MemoryStore()), name="a", shape=(60, 40), dtype="int32", chunks=(7, 9))
    array[...] = 0
    failures = []

    def work(k):
        try:
            for i in range(k, 60, 8):
                array[i] = numbers[i]
                assert (array[i] == numbers[i]).all()
        except BaseException as problem:
            failures.append(problem)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and (array[...] == numbers).all()


def test_asyncio():
    array = zarrc.create_array(MemoryStore(), name="a", shape=(60,), dtype="int32", chunks=7)

    async def work():
        await asyncio.gather(*[array.async_array.setitem(i, i) for i in range(60)])
        return await asyncio.gather(*[array.async_array.getitem(i) for i in range(60)])

    assert [int(x) for x in asyncio.run(work())] == list(range(60))


def test_pickles(path):
    source = WrapperStore(zarr.storage.LocalStore(path))
    array = zarrc.create_array(source, name="a", data=np.arange(5))
    again = pickle.loads(pickle.dumps(array))
    assert again[...].tolist() == list(range(5)) and again.store == array.store


@pytest.mark.parametrize("kind", ["zarr.storage.MemoryStore()", "zarr.storage.WrapperStore(zarr.storage.MemoryStore())", "UserDict()"])
def test_fork(kind):
    """The child of a fork goes on with the stores that the parent had."""
    done = run("""
        import os, sys, warnings
        warnings.simplefilter("ignore")
        from collections import UserDict
        import numpy as np, zarr, zarrc
        array = zarrc.create_array(eval(sys.argv[1]), name="a", shape=1000, chunks=10, dtype="i4")
        array[...] = np.arange(1000)
        array[...]
        for _ in range(5):
            child = os.fork()
            if child == 0:
                ok = (array[...] == np.arange(1000)).all()
                array[5] = 1
                os._exit(0 if ok and array[5] == 1 else 3)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert array[5] == 5
        print("ok")
    """, kind)
    assert done.stdout == "ok\n", done.stdout + done.stderr


def test_write_at_exit():
    """What a program registers before its first read of such a store can still write to it, and so can the last
    consolidation."""
    done = run("""
        import atexit
        import zarrc, zarr
        store = zarr.storage.MemoryStore()
        def save():
            array[...] = 5
            print(array[0])
        atexit.register(save)
        group = zarrc.create_group(store)
        zarrc.consolidate_metadata(store)
        zarrc.config.set({"consolidate": "end"})
        array = group.create_array("a", shape=4, chunks=2, dtype="i4")
        atexit._run_exitfuncs()
        print('"a"' in store._store_dict["zarr.json"].to_bytes().decode())
    """)
    assert done.stdout == "5\nTrue\n" and done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("order", ["import zarrc, zarr", "import zarr, zarrc"])
@pytest.mark.parametrize("kind", ["StuckStore()", "zarr.storage.WrapperStore(StuckStore())", "BlockedMapping()", "zarr.storage.MemoryStore()"])
def test_exit_with_operations_in_flight(order, kind):
    done = run("""
        import asyncio, sys, threading, time
        exec(sys.argv[1])
        from collections import UserDict
        import numpy as np
        class StuckStore(zarr.storage.MemoryStore):
            async def get(self, key, prototype=None, byte_range=None):
                if "/c/" in key:
                    await asyncio.sleep(1000)
                return await super().get(key, prototype, byte_range)
        class BlockedMapping(UserDict):
            def __getitem__(self, key):
                if "/c/" in key:
                    time.sleep(1)
                return super().__getitem__(key)
        array = zarrc.create_array(eval(sys.argv[2]), name="a", shape=(300, 300), chunks=(10, 10), dtype="i4")
        array[...] = 7
        from zarrc import _core
        queue = _core.new_queue()
        requests = [array._submit(queue, 0, None, np.empty((300, 300), "i4"), 0, None) for _ in range(3)]
        def work():
            try:
                while True:
                    array[...]
            except OSError as problem:
                assert "ending" in str(problem)
        threading.Thread(target=work, daemon=True).start()
        time.sleep(0.2)
    """, order, kind)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_interrupt():
    """Ctrl-C ends a read of a store that never answers."""
    done = run("""
        import asyncio, os, signal, threading, time
        signal.signal(signal.SIGINT, signal.default_int_handler)
        import numpy as np, zarr, zarrc
        class StuckStore(zarr.storage.MemoryStore):
            async def get(self, key, prototype=None, byte_range=None):
                if "/c/" in key:
                    await asyncio.sleep(1000)
                return await super().get(key, prototype, byte_range)
        array = zarrc.create_array(StuckStore(), name="a", shape=(300, 300), chunks=(10, 10), dtype="i4")
        array[...] = 7
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        began = time.monotonic()
        try:
            array[...]
        except KeyboardInterrupt:
            print("stopped", time.monotonic() - began < 5)
    """)
    assert done.stdout == "stopped True\n", done.stdout + done.stderr


@pytest.mark.parametrize("call", ["list(group.keys())", "list(group.store.list())", "group.store.delete_dir('b')"])
@pytest.mark.parametrize("base", ["zarr.storage.MemoryStore", "UserDict"])
def test_interrupt_of_a_call_that_waits(base, call):
    """Ctrl-C ends a listing that the store never answers, and the coroutine that answers it."""
    done = run("""
        import asyncio, os, signal, sys, threading, time
        signal.signal(signal.SIGINT, signal.default_int_handler)
        from collections import UserDict
        import zarr, zarrc
        stuck = False
        class StuckStore(eval(sys.argv[1])):
            def __iter__(self):
                if stuck:
                    time.sleep(1000)
                return super().__iter__()
            async def wait(self):
                if stuck:
                    try:
                        await asyncio.sleep(1000)
                    finally:
                        os.write(1, b"cancelled\\n")
            async def list_dir(self, prefix):
                await self.wait()
                async for name in super().list_dir(prefix):
                    yield name
            async def list_prefix(self, prefix):
                await self.wait()
                async for name in super().list_prefix(prefix):
                    yield name
            async def delete_dir(self, prefix):
                await self.wait()
        group = zarrc.open_group(StuckStore())
        group.create_group("b")
        stuck = True
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        began = time.monotonic()
        try:
            eval(sys.argv[2])
        except KeyboardInterrupt:
            os.write(1, b"stopped %d\\n" % (time.monotonic() - began < 5))
        time.sleep(0.2)
    """, base, call)
    expected = {"stopped 1"} | ({"cancelled"} if base != "UserDict" else set())
    assert set(done.stdout.splitlines()) == expected, done.stdout + done.stderr


def test_calls_of_signal_handlers_and_children(tmp_path):
    """While the main thread waits for a call, a signal handler makes another one; and then a forked child."""
    done = run("""
        import asyncio, os, signal, sys, threading
        import zarr, zarrc
        answers, stuck = threading.Event(), False
        class SlowStore(zarr.storage.MemoryStore):
            async def list_dir(self, prefix):
                while stuck and not answers.is_set():
                    await asyncio.sleep(.01)
                async for name in super().list_dir(prefix):
                    yield name
        def create(name):
            zarrc.create_array(os.path.join(sys.argv[1], name), shape=(4,), dtype="i4")[...] = 7
        def handle(number, frame):
            create("handler")
            answers.set()
        signal.signal(signal.SIGALRM, handle)
        create("first")
        group = zarrc.open_group(SlowStore())
        group.create_group("b")
        stuck = True
        signal.setitimer(signal.ITIMER_REAL, .2)
        print(list(group.keys()), flush=True)
        if os.fork() == 0:
            create("child")
            os._exit(0)
        print(os.wait()[1], [int(zarrc.open_array(os.path.join(sys.argv[1], name))[3]) for name in ("first", "handler", "child")])
    """, str(tmp_path))
    assert done.stdout == "['b']\n0 [7, 7, 7]\n", done.stdout + done.stderr


def test_operations_that_end_while_they_are_read(request):
    """Threads read the operations of a batch while another one ends them all, as the end of the
    interpreter does."""
    service = _core.new_service()
    store = _core.open_foreign(zarrc.Store, zarrc._settings.settings.context(), service, "x:", 1, 15, 64, 0, False, False)

    def ask():
        with contextlib.suppress(OSError):
            store._get("a" * 100)

    def read(batch):
        while (op := batch.op(0)) is not None:
            assert op[1] == "a" * 100

    interval = sys.getswitchinterval()
    request.addfinalizer(lambda: sys.setswitchinterval(interval))
    sys.setswitchinterval(1e-4)  # threads that wait in loops would keep each other off for most of the time
    for _ in range(200):
        asker = threading.Thread(target=ask)
        asker.start()
        while not (batches := service.wait()):
            pass
        readers = [threading.Thread(target=read, args=(batches[0],)) for _ in range(3)]
        for thread in readers:
            thread.start()
        batches[0].fail("over")
        for thread in (*readers, asker):
            thread.join()


def test_references_are_not_lost():
    import sys
    if not hasattr(sys, "getallocatedblocks"):
        pytest.skip("this Python does not count its blocks")
    array = zarrc.create_array(MemoryStore(), name="a", shape=(60, 40), dtype="int32", chunks=(7, 9))
    slow = zarrc.create_array(Slow(MemoryStore()), name="a", shape=(60, 40), dtype="int32", chunks=(7, 9))

    def blocks(rounds):
        for _ in range(rounds):
            for one in (array, slow):
                one[3:9] = 1
                one[...], list(one.store.list()), one.store.get("none"), one.store.getsize("a/zarr.json")
        gc.collect()
        time.sleep(0.05)
        return sys.getallocatedblocks()

    counts = [blocks(50) for _ in range(5)]
    assert min(b - a for a, b in zip(counts, counts[1:])) < 50


FORKED = """
import os, signal, sys, warnings
warnings.simplefilter("ignore")
import numpy as np, zarrc
import obstore
source = obstore.store.LocalStore(sys.argv[1])
if sys.argv[2] == "ObjectStore":
    from zarr.storage import ObjectStore
    source = ObjectStore(source)
if sys.argv[3] == "used":
    z = zarrc.create_array(source, data=np.arange(10), chunks=5)
    assert z[:].sum() == 45
child = os.fork()
if child == 0:
    signal.alarm(30)  # a call that hangs
    try:
        print(int(zarrc.open_array(source, mode="r")[:].sum()), flush=True)
    except OSError as problem:
        print("spawn" in str(problem), type(problem.__cause__).__name__, flush=True)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
os._exit(0)
"""


@pytest.mark.parametrize("kind", ["obstore", "ObjectStore"])
def test_obstore_after_a_fork(tmp_path, kind):
    """Its calls would never return. Where the parent has not used it, they do."""
    for use, said in (("used", "True RuntimeError\n"), ("unused", "45\n")):
        done = subprocess.run([sys.executable, "-c", FORKED, str(tmp_path), kind, use], capture_output=True, text=True, timeout=100)
        assert (done.stdout, done.returncode) == (said, 0), done.stderr


def test_errors_name_the_store(tmp_path):
    memory = zarr.storage.MemoryStore()
    other = zarr.storage.WrapperStore(zarr.storage.MemoryStore())
    for source, name in ((memory, str(memory)), (other, str(other)), ({}, "builtins.dict"),
                         (fsspec.filesystem("memory").get_mapper("/m"), "memory:///m"),
                         (obstore.LocalStore(tmp_path), f'obstore.LocalStore("{tmp_path}")')):
        store = zarrc.open_store(source)
        with pytest.raises(zarrc.errors.ArrayNotFoundError) as problem:
            zarrc.open_array(store, path="none", mode="r")
        assert f"(in {name}" in str(problem.value) and problem.value.store.startswith(name) and store.kind == "python"
        zarrc.create_array(store, name="a", data=np.arange(4), chunks=2)
        store.set("a/c/1", b"damage")
        with pytest.raises(zarrc.errors.CorruptError, match="a/c/1") as problem:
            zarrc.open_array(store, path="a")[:]
        assert problem.value.store.startswith(name)


def test_unknown_operation():
    """A verb of a newer library ends UNSUPPORTED, and the store is not asked."""
    class Batch:
        ended = []

        def op(self, i):
            return 99, "a/c/0", 0, None

        def end(self, i, *result):
            self.ended.append(result)

    batch = Batch()
    assert list(_foreign._op(None, batch, 0)) == []
    assert [result[0] for result in batch.ended] == [_core.ZARR_ERR_UNSUPPORTED]
    assert "a/c/0" in batch.ended[0][1]
