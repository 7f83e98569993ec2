"""Requests in flight: submit, wait, progress, cancel; threads that share chunks and shards;
fork."""
import asyncio
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import cases
from cases import LITTLE, sharding, zstd
from zarrc_abi import Stats, ZarrcError
from zarrc_ctypes import Context
from zarrc_dict import ATOMIC_PUT, CONDITIONAL, LIST, LOCK, RANGES, SUFFIX, WRITE, DictStore
from zarrc_selection import Selection

KINDS = {"chunks": [LITTLE, zstd()], "raw": [LITTLE], "shards": [sharding((4, 4), [LITTLE, zstd()])],
         "nested": [sharding((8, 8), [sharding((4, 4), [LITTLE, zstd()])])]}


def make(store, codecs, shape=(64, 48), chunks=(16, 16), path=""):
    document = cases.document_v3("int64", -1, codecs, shape, chunks)
    return store.create(path, document=document)


@pytest.mark.parametrize("memory", ["host", "fake"])
@pytest.mark.parametrize("kind", KINDS)
def test_submit_and_wait(context, kind, memory):
    array = make(context.store(), KINDS[kind])
    data = np.arange(64 * 48).reshape(64, 48)
    requests = []
    for row in range(0, 64, 16):
        part = Selection.dims(data.shape, slice(row, row + 16))
        requests.append(array.submit("write", np.ascontiguousarray(data[row:row + 16]), part, memory))
    for request in requests:
        assert request.wait()
        assert request.wait(0)  # again, and at once
        so_far = request.progress()
        assert so_far.chunks_done == so_far.chunks_total > 0
        request.close()
    assert (array.read("i8") == data).all()
    into = np.zeros_like(data)
    stats = Stats()
    request = array.submit("read", into, memory=memory, stats=stats)
    request.wait()
    request.keep[1].fetch()
    assert (into == data).all()
    assert stats.elements == data.size == request.progress().elements
    request.close()


class SlowStore(DictStore):
    """Each GET of a chunk waits for a permit."""

    def __init__(self, values):
        super().__init__(values)
        self.permits, self.started = threading.Semaphore(0), threading.Semaphore(0)

    def run(self, op):
        if op.verb == 1 and not op.key.endswith(b"zarr.json"):
            self.started.release()
            self.permits.acquire()
        return super().run(op)

    def open_gates(self):
        for _ in range(1000):
            self.permits.release()


def slow_array(context, n=12):
    fast = context.custom(DictStore())
    make(fast, [LITTLE, zstd()], (n * 4,), (4,)).write(np.arange(n * 4))
    slow = SlowStore(fast.implementation.values)
    store = context.custom(slow)
    return slow, store, store.open()


def test_wait_with_a_timeout(context):
    slow, store, array = slow_array(context)
    into = np.zeros(48, "i8")
    seen = []
    request = array.submit("read", into, progress=lambda stats: seen.append(stats.chunks_done))
    assert slow.started.acquire(timeout=20)
    before = time.monotonic()
    assert request.wait(50_000_000) is False
    assert 0.04 <= time.monotonic() - before < 10
    assert request.wait(0) is False
    assert request.progress().chunks_done < 12
    slow.open_gates()
    assert request.wait()
    assert (into == np.arange(48)).all() and request.progress().chunks_done == 12
    assert seen == sorted(seen)
    request.close()


def test_cancel(context):
    slow, store, array = slow_array(context, 200)
    into = np.zeros(800, "i8")
    request = array.submit("read", into, max_threads=2)
    assert slow.started.acquire(timeout=20)
    request.cancel()
    slow.open_gates()
    with pytest.raises(ZarrcError) as caught:
        request.wait()
    assert caught.value.code == "CANCELLED"
    with pytest.raises(ZarrcError):
        request.wait()  # it stays so
    done = request.progress().chunks_done
    assert done < 200
    gets = len(slow.calls)
    request.close()
    assert len(slow.calls) == gets  # nothing goes on behind it
    assert (array.read("i8") == np.arange(800)).all()


def test_event_loop(context):
    """asyncio waits for the descriptors of several requests; continuations wake a loop, too."""
    slow, store, array = slow_array(context, 12)
    into = [np.zeros(48, "i8") for _ in range(4)]

    async def read(buffer, by_descriptor):
        loop, done = asyncio.get_running_loop(), asyncio.Event()
        request = array.submit("read", buffer)
        if by_descriptor:
            loop.add_reader(request, done.set)
        else:
            request.then(lambda status: loop.call_soon_threadsafe(done.set))
        await done.wait()
        if by_descriptor:
            loop.remove_reader(request)
        assert request.wait(0)
        request.close()

    async def read_all():
        asyncio.get_running_loop().call_later(0.05, slow.open_gates)
        await asyncio.gather(*(read(buffer, i % 2 == 0) for i, buffer in enumerate(into)))

    asyncio.run(asyncio.wait_for(read_all(), 60))
    assert all((buffer == np.arange(48)).all() for buffer in into)


def test_free_cancels(context):
    slow, store, array = slow_array(context, 100)
    request = array.submit("read", np.zeros(400, "i8"))
    assert slow.started.acquire(timeout=20)
    threading.Timer(0.05, slow.open_gates).start()
    request.close()  # waits
    assert not store.failures


def test_errors_come_with_wait(context):
    values = DictStore()
    store = context.custom(values)
    array = make(store, [LITTLE, zstd()], (40,), (4,))
    array.write(np.arange(40))
    values.values["c/3"] = b"no frame"
    values.values["c/7"] = b""
    messages = set()
    for pipeline in ("waves", "serial") * 3:
        request = array.submit("read", np.zeros(40, "i8"), pipeline=pipeline)
        with pytest.raises(ZarrcError) as caught:
            request.wait()
        request.close()
        assert caught.value.code == "CORRUPT" and "c/3" in caught.value.message
        messages.add(caught.value.message)
    assert len(messages) == 1  # the lowest failing chunk, whatever ran first
    assert {key for _, key, _ in array.verify()} == {"c/3", "c/7"}


STORES = {"memory": lambda context, folder: context.store(),
          "local": lambda context, folder: context.store(str(folder)),
          "python-lock": lambda context, folder: context.custom(
              DictStore(caps=RANGES | SUFFIX | LIST | WRITE | ATOMIC_PUT | LOCK)),
          "python-versions": lambda context, folder: context.custom(
              DictStore(caps=RANGES | SUFFIX | LIST | WRITE | ATOMIC_PUT | CONDITIONAL)),
          "python-bare": lambda context, folder: context.custom(
              DictStore(caps=RANGES | SUFFIX | LIST | WRITE | ATOMIC_PUT))}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", STORES)
def test_threads_share_a_chunk(context, tmp_path, place, kind):
    """Four writers own every fourth element of the same objects, through two handles, while a
    reader only ever sees values that were written. (Not where the store gives it no means to
    see that a shard was replaced between its index and its chunks.)"""
    store = STORES[place](context, tmp_path)
    one = make(store, KINDS[kind], (32, 16), (32, 16))
    two = store.open()
    rounds, failures, stop = 12, [], threading.Event()

    def guard(function, *arguments):
        try:
            function(*arguments)
        except BaseException as problem:
            failures.append(problem)

    def writer(me):
        array, memory = (one, two)[me % 2], ("host", "fake")[me // 2]
        for turn in range(rounds):
            part = Selection.dims((32, 16), slice(me, None, 4), slice(turn % 2, None, 2))
            array.write(np.full((8, 8), turn * 10 + me), part, memory=memory)

    def reader():
        while not stop.is_set():
            try:
                got = one.read("i8")
            except ZarrcError as error:  # an error, not a torn value: versions can be compared, not pinned
                assert error.code == "CONFLICT" and place == "python-versions", error
                continue
            rows = np.arange(32)[:, None] % 4
            assert (((got - rows) % 10 == 0) | (got == -1)).all()

    threads = [threading.Thread(target=guard, args=(writer, me)) for me in range(4)]
    watcher = threading.Thread(target=guard, args=(reader,))
    if place not in ("python-lock", "python-bare") or "sharding" not in str(KINDS[kind]):
        watcher.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    if watcher.ident:
        watcher.join()
    assert not failures, failures[0]
    assert not getattr(store, "failures", None)
    rows, columns = np.arange(32)[:, None] % 4, np.arange(16)[None, :] % 2
    assert (one.read("i8") == (rounds - 2 + columns) * 10 + rows).all()
    assert one.verify() == []


def in_child(check):
    """Runs check in a forked child; its failure is the test's."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(60)
            os.close(read)
            check()
            os.write(write, b"fine")
            os._exit(0)
        except BaseException as problem:
            os.write(write, repr(problem).encode()[:4000])
        finally:
            os._exit(1)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    assert said == "fine" and status == 0, (said, status)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_fork_while_the_pool_works(tmp_path, kind):
    """The child has a pool of its own; a request that it inherited is CANCELLED there, and
    goes on here."""
    context = Context(max_threads=4)
    store = context.store(str(tmp_path))
    data = np.random.default_rng(5).integers(0, 1000, (256, 256))
    array = make(store, KINDS[kind], data.shape, (32, 32), "parent")
    array.write(data)
    for turn in range(6):
        into = [np.zeros_like(data) for _ in range(3)]
        requests = [array.submit("read", view) for view in into]

        def check():
            for request in requests:
                try:
                    request.wait()
                    raise AssertionError("an inherited request said that it was done")
                except ZarrcError as error:
                    assert error.code == "CANCELLED", error
            assert (array.read("i8") == data).all()
            assert (store.open("parent").read("i8", memory="fake") == data).all()
            other = make(store, KINDS[kind], (64, 64), (32, 32), f"child{turn}")
            other.write(data[:64, :64])
            assert (other.read("i8") == data[:64, :64]).all()
            request = array.submit("read", np.zeros_like(data))
            assert request.wait()
            for request in requests:
                request.close()
        in_child(check)
        for request, view in zip(requests, into):
            assert request.wait()
            assert (view == data).all()
            request.close()
        assert (store.open(f"child{turn}").read("i8") == data[:64, :64]).all()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_fork_while_threads_write(tmp_path):
    """Forks again and again while other threads hold locks inside the library."""
    context = Context(max_threads=3)
    store = context.store(str(tmp_path))
    array = make(store, KINDS["shards"], (64, 64), (32, 32), "busy")
    stable = make(store, KINDS["shards"], (64, 64), (32, 32), "stable")
    data = np.arange(64 * 64).reshape(64, 64)
    stable.write(data)
    stop = threading.Event()

    def busy():
        turn = 0
        while not stop.is_set():
            turn += 1
            array.write(np.full((3, 64), turn), Selection.dims((64, 64), slice(30, 33)))
            array.read("i8")

    threads = [threading.Thread(target=busy) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(15):
            def check():
                assert (stable.read("i8") == data).all()
                stable.write(data[:5], Selection.dims((64, 64), slice(0, 5)))
            in_child(check)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert (stable.read("i8") == data).all()


@pytest.mark.skipif("ZARR_TEST_FEW" in os.environ, reason="it starts pytest twice: not in make test")
@pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["alone", "xdist"])
def test_seed_is_told(tmp_path, workers):
    """What passed without a word more (scripts/run-tests runs -q) can be repeated, too."""
    here = pathlib.Path(__file__)
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *workers,
                           f"--basetemp={tmp_path / 'inner'}", f"{here}::test_submit_and_wait"],
                          capture_output=True, text=True, timeout=120, env={**os.environ, "ZARRC_SEED": "4711"})
    assert done.returncode == 0, done.stdout
    assert "repeat with ZARRC_SEED=4711" in done.stdout
