"""The life of the process: threads, forks, spawned workers, Ctrl-C, the end of the interpreter, and
references that must not be lost."""
import fcntl
import gc
import multiprocessing
import os
import signal
import struct
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import zarrc
from zarrc import _core


def run(code, *arguments, timeout=60, **options):
    """Runs a program in a new interpreter."""
    return subprocess.run([sys.executable, "-X", "faulthandler", "-W", "error", "-c", textwrap.dedent(code), *map(str, arguments)],
                          capture_output=True, text=True, timeout=timeout, **options)


# ---- references ----


def exercise(array, text, group, numbers):
    out = np.empty((60, 40), "int32")
    array[3:9, ::2], array[5, 5], array[...], array[[1, 2], [3, 4]], array.oindex[[1, 2]], array.blocks[0, 0]
    array.read(out=out), array.shape, array.chunks, array.metadata, array.attrs["a"], array.fill_value, array.info
    array[3:9] = numbers[3:9]
    array[0, 0] = 7
    text[:] = ["a", "bc"]
    text[:], text[0]
    for wrong in (lambda: array[99], lambda: array["x"], lambda: array[0.5], lambda: group["none"],
                  lambda: array.read(out=np.empty(3)), lambda: text.__setitem__(0, 5)):
        try:
            wrong()
        except (IndexError, KeyError, ValueError, TypeError):
            pass
    list(group.members()), group["a"], group.attrs.asdict(), group.tree()
    array.with_config({"order": "C"}), array.nchunks_initialized


@pytest.mark.skipif(not hasattr(sys, "getallocatedblocks"), reason="this Python does not count its blocks")
def test_no_references_are_lost(numbers):
    """10^4 calls leave no blocks behind. Every kind of call is among them, those that fail too."""
    group = zarrc.open_group("memory:")
    array = group.create_array("a", data=numbers, chunks=(20, 20), attributes={"a": 1})
    text = group.create_array("t", shape=2, dtype=str)

    def blocks(rounds):
        for _ in range(rounds):
            exercise(array, text, group, numbers)
        gc.collect()
        return sys.getallocatedblocks()

    counts = [blocks(100) for _ in range(5)]  # some 30 calls a round: 15,000
    assert min(b - a for a, b in zip(counts, counts[1:])) < 100  # one block a round; Python's own caches grow


def test_none_keeps_its_references():
    """Before 3.12 None is counted, and headers of later versions forget that."""
    store = zarrc.open_store("memory:")
    before = sys.getrefcount(None)
    for _ in range(1000):
        store.flush(), store.get("none")
    assert abs(sys.getrefcount(None) - before) < 100


def test_handles_are_freed(path, numbers):
    """Stores, arrays, groups and their files are closed."""
    zarrc.create_array(path, name="a", data=numbers)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(300):
        zarrc.open_group(path)["a"][0]
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before + 2


# ---- threads ----


def test_threads_share_an_array(store, numbers):
    array = zarrc.create_array(store, name="a", shape=(60, 40), dtype="int32", chunks=(7, 9))
    failures = []

    def work(k):
        try:
            for i in range(k, 60, 8):
                array[i] = numbers[i]
                assert (array[i] == numbers[i]).all()
                array.attrs[f"a{k}"] = i
                array.refresh(), array.shape, array.metadata
        except BaseException as problem:
            failures.append(problem)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and (array[...] == numbers).all() and len(array.attrs) == 8


def test_the_gil_is_released(path):
    array = zarrc.create_array(path, shape=(2000, 2000), dtype="f8", chunks=(100, 100))
    array[...] = np.random.default_rng(0).random((2000, 2000))
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    began = time.monotonic()
    array[...]
    took = time.monotonic() - began
    done.set()
    thread.join()
    assert len([t for t in ticks if began <= t <= began + took]) >= 2


# ---- other processes ----


def read_in_child(array, row, queue):
    queue.put((os.getpid(), array[row].tolist(), array.async_array.array.shape))
    array[row] = -1


@pytest.mark.usefixtures("semaphores")
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_workers(path, numbers, method):
    array = zarrc.create_array(path, data=numbers, chunks=(8, 8))
    assert (array[...] == numbers).all()  # the pool of threads has started
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    workers = [context.Process(target=read_in_child, args=(array, row, queue)) for row in range(3)]
    for worker in workers:
        worker.start()
    found = [queue.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    assert sorted(row for _, row, _ in found) == sorted(numbers[:3].tolist())
    assert (array[:3] == -1).all() and (array[3:] == numbers[3:]).all()


def test_fork_with_requests_in_flight(path):
    """The child of a fork does not wait for the parent's requests, and makes its own."""
    done = run("""
        import asyncio, os, sys, warnings
        warnings.simplefilter("ignore")
        import numpy as np, zarrc
        array = zarrc.create_array(sys.argv[1], shape=(600, 600), dtype="f8", chunks=(10, 10))
        async def work():
            task = asyncio.create_task(array.async_array.setitem(..., np.random.random((600, 600))))
            await asyncio.sleep(0.01)
            child = os.fork()
            if child == 0:
                array[:10, :10]
                os._exit(7)
            await task
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(asyncio.run(work()))
    """, path)
    assert done.stdout == "7\n", done.stderr


# ---- Ctrl-C ----


@pytest.mark.parametrize("call", ["array[...] = data", "array[...]", "array.append(data)", "array.resize((1, 1))"])
def test_interrupt(path, call):
    """Ctrl-C stops a call soon, and the array goes on working."""
    done = run("""
        import os, signal, sys, threading, time
        signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored here
        import numpy as np, zarrc
        array = zarrc.create_array(sys.argv[1], shape=(600, 500), dtype="f8", chunks=(5, 5), compressors=None)
        data = np.random.random((600, 500))
        call = sys.argv[2]
        if "= data" not in call:
            array[:100] = data[:100]
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        began = time.monotonic()
        try:
            for _ in range(10000):
                exec(call)
                if "resize" in call:
                    array.resize((600, 500)); array[:50] = 1
        except KeyboardInterrupt:
            took = time.monotonic() - began
            array.refresh()
            array[:1, :1] = 5
            print("stopped", took < 5, array[0, 0])
    """, path, call)
    assert done.stdout == "stopped True 5.0\n", done.stdout + done.stderr


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("kind", ["array", "group"])
def test_interrupt_of_a_change_of_attributes(path, kind, zarr_format):
    """It waits for the lock of the document, which another program holds until the end of the test."""
    options = {"shape": (3,), "dtype": "i4"} if kind == "array" else {}
    node = getattr(zarrc, f"create_{kind}")(path, zarr_format=zarr_format, attributes={"k": 1}, **options)
    lock = os.open(f"{path}/{'zarr.json' if zarr_format == 3 else '.zattrs'}.__lock", os.O_RDWR | os.O_CREAT)
    fcntl.fcntl(lock, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))  # F_OFD_SETLK
    try:
        done = run("""
            import os, signal, sys, threading
            signal.signal(signal.SIGINT, signal.default_int_handler)
            import zarrc
            node = getattr(zarrc, f"open_{sys.argv[2]}")(sys.argv[1], mode="r+")
            for call in ("node.attrs['k'] = 2", "del node.attrs['k']", "node.attrs.update(k=2)", "node.update_attributes({'k': 2})"):
                try:
                    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
                    exec(call)
                except KeyboardInterrupt:
                    print("stopped")
        """, path, kind)
    finally:
        os.close(lock)
    assert done.stdout == "stopped\n" * 4, done.stdout + done.stderr
    node.attrs["other"] = 2
    assert dict(node.attrs) == {"k": 1, "other": 2}


# ---- the end ----


@pytest.mark.parametrize("how", ["", "sys.exit(0)", "os.kill(os.getpid(), signal.SIGTERM)", "os._exit(0)"])
def test_exit_with_requests_in_flight(path, how):
    """The interpreter ends while requests write from its memory."""
    done = run("""
        import asyncio, os, signal, sys
        import numpy as np, zarrc
        from zarrc import _core
        array = zarrc.create_array(sys.argv[1], shape=(1000, 1000), dtype="f8", chunks=(5, 5))
        data = np.random.random((1000, 1000))
        queue = _core.new_queue()
        requests = [array._submit(queue, 1, None, data, 0, None) for _ in range(3)]
        requests += [array._submit(queue, 0, None, np.empty((1000, 1000)), 0, None) for _ in range(3)]
        exec(sys.argv[2])
    """, path, how)
    assert done.returncode == (-signal.SIGTERM if "kill" in how else 0), done.stderr
    assert not done.stderr


def test_exit_with_threads_at_work(path):
    """A daemon thread is inside the library when the interpreter ends."""
    done = run("""
        import sys, threading, time
        import numpy as np, zarrc
        array = zarrc.create_array(sys.argv[1], shape=(500, 500), dtype="f8", chunks=(5, 5))
        def work():
            while True:
                array[...] = 1.5
        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.2)
    """, path)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_closed_loop(path):
    """A loop that ends with requests in flight leaves nothing that hangs."""
    done = run("""
        import asyncio, sys
        import numpy as np, zarrc
        from zarrc import _core
        array = zarrc.create_array(sys.argv[1], shape=(500, 500), dtype="f8", chunks=(5, 5))
        for _ in range(3):
            async def work():
                asyncio.create_task(array.async_array.setitem(..., np.random.random((500, 500))))
                await asyncio.sleep(0.01)
            asyncio.run(work())
        print(array.shape)
    """, path)
    assert done.stdout == "(500, 500)\n" and done.returncode == 0, done.stderr


@pytest.mark.parametrize("what", ["import zarrc", "import importlib.util as u; s = u.spec_from_file_location('zarrc._core', {file!r}); "
                                  "m = u.module_from_spec(s); s.loader.exec_module(m)"])
def test_sub_interpreters_are_refused(what):
    """NumPy refuses most of them; the extension refuses all by itself. Nothing crashes."""
    done = run("""
        import sys, zarrc
        try:
            import _interpreters as subs
        except ImportError:
            import _xxsubinterpreters as subs
        one = subs.create()
        try:
            print(subs.run_string(one, sys.argv[1]))
        except Exception as problem:
            print(problem)
        subs.destroy(one)
        zarrc.open_store("memory:").set("a", b"1")
    """, what.format(file=_core.__file__))
    assert done.returncode == 0 and ("ImportError" in done.stdout or "interpreter" in done.stdout), done.stdout + done.stderr


def test_import_is_quick():
    done = run("""
        import time, numpy
        began = time.process_time()
        import zarrc
        print(time.process_time() - began)
    """)
    assert float(done.stdout) < 0.5, done.stdout  # 30 ms; the time of other programs does not count


def test_internal_objects_cannot_be_made():
    for name in ("Array", "Group", "Store", "Context", "Selection", "Request", "Queue", "Vlen"):
        with pytest.raises(TypeError):
            getattr(_core, name)()
    for cls in (zarrc.Array, zarrc.Group, zarrc.Store):
        with pytest.raises(TypeError):
            cls()


# ---- workers of torch ----

WORKER = """
    import multiprocessing, os, sys, types
    import numpy as np
    import zarrc

    def tasks():
        return len(os.listdir("/proc/self/task"))

    def work(array, queue, workers):
        info = types.SimpleNamespace(num_workers=workers) if workers else None
        sys.modules["torch.utils.data"] = types.SimpleNamespace(get_worker_info=lambda: info)
        before = tasks()
        assert (array[...] == 1).all()
        queue.put(tasks() - before)

    if __name__ == "__main__":
        method, workers = sys.argv[1], int(sys.argv[2])
        array = zarrc.create_array("x.zarr", shape=(800, 800), dtype="f8", chunks=(50, 50), overwrite=True)
        array[...] = np.random.default_rng(0).random((800, 800)) * 0 + 1
        array[...]
        context = multiprocessing.get_context(method)
        queue = context.SimpleQueue()
        process = context.Process(target=work, args=(array, queue, workers))
        process.start()
        print(queue.get())
        process.join()
        assert process.exitcode == 0
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core: there is nothing to lower")
@pytest.mark.usefixtures("semaphores")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_worker_of_torch_takes_its_share(tmp_path, method):
    """Its arrays were opened before it began, with the threads of its parent. Of as many workers as there are
    cores, each gets one thread: the one that works while the main thread looks for Ctrl-C. (A module of ours is in
    the place of torch.)"""
    (tmp_path / "worker.py").write_text(textwrap.dedent(WORKER))
    started = {}
    for workers in (0, len(os.sched_getaffinity(0))):
        done = subprocess.run([sys.executable, "worker.py", method, str(workers)], cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        started[workers != 0] = int(done.stdout)
    assert started[True] <= 1 < started[False], started


def test_a_first_read_without_memory_says_so():
    """The first read of a process asks Python for its threads."""
    done = run("""
    import zarrc
    huge = zarrc.create_array(None, shape=1 << 60, dtype="u1", chunks=1 << 20)
    try:
        huge[:]
    except MemoryError:
        print("no memory")
    """)
    assert done.stdout == "no memory\n", done.stderr
