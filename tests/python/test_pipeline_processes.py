"""The pipeline for zarr-python in programs: pickles, processes and threads, how it is switched on, and what it counts."""
import asyncio
import concurrent.futures
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from conftest import install
from pipelines import BUFFER, NAME, OWN, OWN_BUFFER, Plain, enable_pipeline, make_array, native_only, reopen, own, same, zarr  # noqa: F401
from zarr.buffer.cpu import NDBuffer
from zarr.storage import LocalStore, MemoryStore

import zarrc
from zarrc import _core

# ---- objects and processes ----


def test_pickles_and_equality(tmp_path):
    z = make_array(LocalStore(tmp_path / "x"), "i4", "v3-shards")
    z[...] = 1
    copy = pickle.loads(pickle.dumps(z))
    assert copy == z and (copy[...] == 1).all()
    one, two = z._async_array.codec_pipeline, reopen(z)._async_array.codec_pipeline
    assert type(one).__module__ + "." + type(one).__qualname__ == NAME
    assert one == two == pickle.loads(pickle.dumps(one)) and hash(one) == hash(two)
    assert one != make_array(MemoryStore(), "i4", "v3")._async_array.codec_pipeline
    with own():
        assert one != reopen(z)._async_array.codec_pipeline


def _sum(z):
    return int(z[...].sum()), zarrc.pipeline_stats()["native_chunks"] > 0


@pytest.mark.usefixtures("semaphores")
@pytest.mark.parametrize("how", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_processes(tmp_path, how):
    z = make_array(LocalStore(tmp_path / "x"), "i4", "v3")
    z[...] = 1
    with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context(how)) as pool:
        assert list(pool.map(_sum, [z, z], timeout=120)) == [(23 * 17, True)] * 2


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_while_another_thread_holds_a_lock(tmp_path):
    from zarrc import _foreign, _pipeline_engine, _pipeline_stores, _stats, _store
    files, other = make_array(LocalStore(tmp_path / "x"), "i4", "v3"), make_array(Plain(MemoryStore()), "i4", "v3-shards")
    files[...] = other[...] = 1
    other[3, 4]
    with _foreign.service.lock, _store._stores_lock, _pipeline_stores._stores_lock, _pipeline_engine._engines_lock, _stats.STATS._lock:
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # a lock that is never free ends the child
            os._exit(0 if reopen(files)[3, 4] == 1 and reopen(other)[3, 4] == 1 else 3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_threads(tmp_path):
    z = zarr.create_array(LocalStore(tmp_path / "x"), shape=(64, 64), chunks=(8, 8), shards=(32, 32), dtype="i4")

    def work(i):
        z[i] = i  # rows of one shard: none may be lost
        return int(z[i].sum())

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(64))) == [64 * i for i in range(64)]
    same(z[...], np.repeat(np.arange(64, dtype="i4"), 64).reshape(64, 64))
    native_only()


def test_loop_goes_on(tmp_path):
    """Other tasks of the loop run while the library reads."""
    z = zarr.create_array(MemoryStore(), shape=(2000, 2000), chunks=(100, 100), dtype="f8")
    z[...] = np.random.default_rng(0).random((2000, 2000))

    async def main():
        ticks = 0
        task = asyncio.create_task(z._async_array.getitem(...))
        while not task.done():
            await asyncio.sleep(0)
            ticks += 1
        return ticks

    assert asyncio.run(main()) > 10


# ---- switching ----


def switches():
    return zarr.config.get("codec_pipeline.path"), zarr.config.get("ndbuffer")


def test_enable_and_disable():
    ours, own = (NAME, BUFFER), (OWN, OWN_BUFFER)
    assert switches() == ours
    zarrc.disable()
    assert switches() == own
    with zarrc.enable():
        with zarrc.enable():
            assert switches() == ours
        assert switches() == ours
    assert switches() == (OWN, BUFFER)  # reads of other threads fail if it changes
    zarrc.disable()
    assert switches() == own
    zarrc.enable()
    assert switches() == ours


def test_a_buffer_of_the_program_stays():
    """As that of zarr.config.enable_gpu(), before and after."""
    zarrc.disable()
    with zarr.config.set({"ndbuffer": "a.Buffer"}):
        with zarrc.enable():
            assert switches() == (NAME, "a.Buffer")
        assert switches() == (OWN, "a.Buffer")
        zarrc.disable()
        assert switches() == (OWN, "a.Buffer")
    with zarrc.enable():
        zarr.config.set({"ndbuffer": "a.Buffer"})
    try:
        assert switches() == (OWN, "a.Buffer")
    finally:
        zarr.config.set({"ndbuffer": OWN_BUFFER})


@pytest.mark.parametrize("order", ["C", "F"])
def test_new_arrays_are_in_memory_that_is_kept(tmp_path, order):
    data = np.arange(1 << 21, dtype="i4").reshape(512, -1)
    z = zarr.create_array(str(tmp_path), data=data, chunks=(128, 4096), config={"order": order})
    _core.keep_outputs(0)
    zarrc.config.set({"output_cache": 64 << 20})
    try:
        found = z[...]
        assert _core.outputs() == (8 << 20, 0) and np.array_equal(found, data)
        assert found.flags.owndata and found.flags.writeable and found.flags[f"{order}_CONTIGUOUS"]
        place = found.__array_interface__["data"][0]
        del found
        assert _core.outputs() == (0, 8 << 20)
        found = z[...]
        assert found.__array_interface__["data"][0] == place
        native_only()
        with own():
            assert np.array_equal(zarr.open_array(str(tmp_path), mode="r")[...], data)  # zarr-python's pipeline fills it, too
        out = NDBuffer.from_numpy_array(np.zeros_like(data))
        assert z.get_basic_selection(..., out=out) is not None and np.array_equal(out.as_numpy_array(), data)
    finally:
        del found
        zarrc.config.reset()


def test_new_arrays_of_masks(tmp_path):
    """zarr-python gives the number of elements that a mask takes as one of NumPy."""
    data = np.arange(1 << 21, dtype="i4").reshape(2048, -1)
    z = zarr.create_array(str(tmp_path), data=data, chunks=(512, 512))
    mask = np.arange(2048) != 3
    same(z.oindex[mask], data[mask])
    native_only()


def test_small_arrays_and_special_types_are_of_numpy():
    from zarrc import ZarrcNDBuffer
    for dtype, shape in (("i4", (10, 10)), ("M8[10s]", (1 << 20,)), ("O", (1 << 20,)), ("i4", (0, 1 << 40))):
        before = _core.outputs()[0]
        found = ZarrcNDBuffer.empty(shape, dtype).as_ndarray_like()
        assert found.dtype == np.dtype(dtype) and found.shape == shape and _core.outputs()[0] == before
    assert pickle.loads(pickle.dumps(ZarrcNDBuffer)) is ZarrcNDBuffer
    with pytest.raises(MemoryError):
        ZarrcNDBuffer.empty((1 << 60,), "u1")


def test_counters():
    z = make_array(MemoryStore(), "i4", "v3")
    z[...] = 1
    z[:5, :4]
    assert zarrc.pipeline_stats() == {"batches": 2, "native_chunks": 26, "fallback_chunks": 0, "reasons": {}}
    assert zarrc.pipeline_stats(reset=True)["batches"] == 2
    assert zarrc.pipeline_stats()["batches"] == 0


def test_reasons_have_an_end():
    from zarrc._stats import STATS
    for i in range(150):
        STATS.fallback(2, f"codec {i}", f"file:///{i}")
    STATS.fallback(1, "codec 7", "file:///b")
    STATS.fallback(1, "c" * 10_000, "a" * 10_000)
    stats = zarrc.pipeline_stats(reset=True)
    assert stats["fallback_chunks"] == 302 and len(stats["reasons"]) == 100
    assert stats["reasons"]["codec 7"] == {"chunks": 3, "example": "file:///7"}
    assert stats["reasons"]["other causes"] == {"chunks": 103, "example": "file:///99"}


def program(tmp_path, text, **env):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, cwd=tmp_path,
                          env={**os.environ, **env}, timeout=120)


def test_entry_point(tmp_path):
    done = program(tmp_path, """
        import zarr
        zarr.config.set({"codec_pipeline.path": "zarrc.ZarrcCodecPipeline", "ndbuffer": "zarrc.ZarrcNDBuffer"})
        z = zarr.create_array("x.zarr", shape=(4,), dtype="i4")
        z[...] = 1
        assert z[...].sum() == 4
        import zarrc
        from zarr.registry import get_ndbuffer_class
        assert get_ndbuffer_class() is zarrc.ZarrcNDBuffer
        assert zarrc.pipeline_stats()["native_chunks"] == 2
    """, PYTHONPATH=install(tmp_path))
    assert done.returncode == 0, done.stderr


def test_entry_point_is_cheap_and_never_fails(tmp_path):
    """Users who did not choose zarrc do not notice a broken one; those who chose it are told."""
    done = program(tmp_path, """
        import sys, time
        import numpy, zarr, zarr.registry
        from importlib.metadata import entry_points
        points = [*entry_points(group="zarr.codec_pipeline", name="zarrc"), *entry_points(group="zarr.ndbuffer", name="zarrc")]
        assert len(points) == 2
        times = []
        for _ in range(3):  # the quickest: other programs use the machine, too
            sys.modules.pop("zarrc_hook.pipeline", None)
            sys.modules.pop("zarrc_hook.buffer", None)
            start = time.process_time()
            for point in points:
                point.load()
            times.append(time.process_time() - start)
        assert "zarrc" not in sys.modules and min(times) < .02, times
        z = zarr.create_array({}, shape=(4,), dtype="i4")
        z[...] = 1
        assert z[...].sum() == 4 and "zarrc" not in sys.modules
        zarr.config.set({"codec_pipeline.path": "zarrc.ZarrcCodecPipeline"})
        try:
            zarr.create_array({}, shape=(4,), dtype="i4")
        except ImportError as problem:
            assert "libmissing" in str(problem)
        else:
            raise AssertionError
    """, PYTHONPATH=install(tmp_path, "raise ImportError('libmissing.so: cannot open shared object file')"))
    assert done.returncode == 0, done.stderr


def test_enable_without_zarr_python(tmp_path):
    done = program(tmp_path, """
        import sys
        sys.modules["zarr"] = None
        import zarrc
        try:
            zarrc.enable()
        except ModuleNotFoundError as problem:
            assert problem.name == "zarr" and "zarr-python, which is not installed" in str(problem), problem
            assert zarrc.create_array(None, data=[1, 2])[1] == 2
        else:
            raise AssertionError
    """)
    assert done.returncode == 0, done.stderr
