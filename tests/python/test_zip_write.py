"""Archives that Python programs write: nothing is lost where zarr-python's ZipStore loses data (zarr-python#4450), and other
programs read the result."""
import concurrent.futures
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import zipfile

import numpy as np
import pytest
import zarr
import zarrc

VALUES = np.arange(60, dtype="i4").reshape(6, 10)


def run(program, code=0):
    """Runs a program of its own; its end is part of the test."""
    done = subprocess.run([sys.executable, "-c", "import os, numpy as np, zarrc\n" + textwrap.dedent(program)], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    return done.stdout


def read(path, name="a"):
    """By zarrc, zipfile and zarr-python."""
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
    value = zarrc.open_array(path, path=name, mode="r")[...]
    with zarr.storage.ZipStore(path, mode="r") as store:
        assert np.array_equal(zarr.open_array(store, path=name, mode="r")[...], value)
    return value


def write_row(array, i):
    array[i] = VALUES[i]


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "x.zarr.zip")


def test_exit_without_close(path):
    run(f"a = zarrc.create_array({path!r}, name='a', shape=(6, 10), chunks=(1, 10), dtype='i4')\na[...] = np.arange(60).reshape(6, 10)")
    assert np.array_equal(read(path), VALUES)


def test_mode_w_twice(path):
    for factor in (1, 2):
        group = zarrc.open_group(path, mode="w")
        group.create_array("a", data=VALUES * factor)
        group.create_array(f"only{factor}", data=VALUES)
        group.store.close()
    assert np.array_equal(read(path), VALUES * 2)
    assert sorted(zarrc.open_group(path, mode="r")) == ["a", "only2"]


def test_two_handles(path):
    """Two handles of one program see each other's writes."""
    first = zarrc.create_array(path, name="a", shape=(6, 10), chunks=(1, 10), dtype="i4")
    second = zarrc.open_array(path, path="a", mode="r+")
    for i in range(6):
        write_row((first, second)[i % 2], i)
    assert np.array_equal(first[...], VALUES) and np.array_equal(second[...], VALUES)
    assert np.array_equal(read(path), VALUES)


def test_handles_of_threads(path):
    """Each thread has its own handle; none fails, and none waits until the others are done."""
    array = zarrc.create_array(path, name="a", shape=(6, 10), chunks=(1, 10), dtype="i4")
    array.store.close()

    def work(i):
        own = zarrc.open_array(path, path="a", mode="r+")
        for _ in range(200):
            write_row(own, i)

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(6)))
    assert np.array_equal(array[...], VALUES) and np.array_equal(read(path), VALUES)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes(path, method):
    """Each task has the pickled handle, and its rows are there when it has ended."""
    array = zarrc.create_array(path, name="a", shape=(6, 10), chunks=(2, 10), dtype="i4")
    array[...] = -1
    with multiprocessing.get_context(method).Pool(3) as pool:
        pool.starmap(write_row, [(array, i) for i in range(6)], chunksize=1)
        assert np.array_equal(array[...], VALUES)  # while the pool is there
    assert np.array_equal(read(path), VALUES)


def test_open_while_others_write(path):
    """Nothing fails because others append. A pool loses a task whose arguments raise an OSError when unpickled, and waits for ever."""
    array = zarrc.create_array(path, name="a", shape=(6, 10), chunks=(2, 10), dtype="i4")
    array[...] = VALUES
    program = textwrap.dedent(f"""
        import pickle, time, numpy as np, zarrc
        end = time.monotonic() + 2
        while time.monotonic() < end:
            array = pickle.loads({pickle.dumps(array)!r})
            for i in range(6):
                array[i] = np.arange(10) + 10 * i
    """)
    writers = [subprocess.Popen([sys.executable, "-W", "ignore", "-c", program], stderr=subprocess.PIPE, text=True) for _ in range(3)]
    said = [writer.communicate(timeout=120)[1] for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 3, said
    assert np.array_equal(read(path), VALUES)


def test_forked_child_without_exit(path):
    array = zarrc.create_array(path, name="a", shape=(6, 10), chunks=(1, 10), dtype="i4")
    array[0] = VALUES[0]
    child = os.fork()
    if child == 0:
        try:
            array[1:] = VALUES[1:]
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert np.array_equal(array[...], VALUES) and np.array_equal(read(path), VALUES)


def test_pickle(path):
    array = zarrc.create_array(path, name="a", shape=(6, 10), chunks=(1, 10), dtype="i4")
    array[0] = VALUES[0]
    other = pickle.loads(pickle.dumps(array))
    assert np.array_equal(other[0], VALUES[0])
    other[1:] = VALUES[1:]
    assert np.array_equal(read(path), VALUES)


def test_dask(path):
    da = pytest.importorskip("dask.array")
    dask = pytest.importorskip("dask")
    array = zarrc.create_array(path, name="a", shape=(6, 10), chunks=(1, 10), dtype="i4")
    for scheduler in ("threads", "processes"):
        array[...] = 0
        with dask.config.set(scheduler=scheduler):
            da.store(da.from_array(VALUES, chunks=(1, 10)), array, lock=False)
        assert np.array_equal(array[...], VALUES)
    assert np.array_equal(read(path), VALUES)


def test_kill(path):
    """What was flushed stays; the archive can be read and written afterwards."""
    run(f"""
        a = zarrc.create_array({path!r}, name='a', shape=(6, 10), chunks=(1, 10), dtype='i4', fill_value=-1)
        a[:3] = np.arange(30).reshape(3, 10)
        a.store.flush()
        a[3:] = 7
        os.kill(os.getpid(), {signal.SIGKILL})
    """, -signal.SIGKILL)
    with pytest.warns(zarrc.ZarrcWarning, match="interrupted"):
        array = zarrc.open_array(path, path="a", mode="r+")
    assert np.array_equal(array[:3], VALUES[:3]) and (array[3:] == -1).all()
    array[3:] = VALUES[3:]
    array.store.close()
    assert np.array_equal(read(path), VALUES)


def test_copy_option(path):
    store = zarrc.open_store(path, storage_options={"zip_update": "copy"})
    array = zarrc.create_array(store, name="a", data=VALUES, chunks=(1, 10))
    store.close()
    before = os.stat(path).st_ino
    array[0] = 5
    assert np.array_equal(zarr.open_array(zarr.storage.ZipStore(path, mode="r"), path="a", mode="r")[...], VALUES)  # until the flush
    store.close()
    assert os.stat(path).st_ino != before and (read(path)[0] == 5).all()
    with pytest.raises(zarrc.errors.InvalidError, match="append|copy"):
        zarrc.open_store(path, storage_options={"zip_update": "both"})


@pytest.mark.parametrize("update", ["append", "copy"])
def test_links(path, tmp_path, update):
    """A symbolic link stays one, and both names are one archive; a hard link keeps the old archive."""
    zarrc.create_array(path, name="a", data=VALUES, chunks=(1, 10)).store.close()
    (tmp_path / "b").mkdir()
    link, hard = tmp_path / "b/link.zip", tmp_path / "b/hard.zip"
    link.symlink_to("../x.zarr.zip")
    options = {"storage_options": {"zip_update": update}}
    first = zarrc.open_array(str(link), path="a", mode="r+", **options)
    first[0] = 5
    second = zarrc.open_array(path, path="a", mode="r+", **options)  # of the same program
    assert (second[0] == 5).all()
    second[1] = 6
    assert (first[1] == 6).all()
    first.store.close()
    second.store.close()
    assert link.is_symlink() and (read(path)[:2] == [[5], [6]]).all()
    os.link(path, hard)
    first = zarrc.open_array(str(link), path="a", mode="r+", **options)
    first[0] = 7
    first.store.close()
    assert link.is_symlink() and (read(path)[0] == 7).all() and (read(str(hard))[0] == 5).all()


def test_xarray(path):
    xr = pytest.importorskip("xarray")
    data = xr.Dataset({"t": (("x", "y"), VALUES)}, coords={"x": np.arange(6)})
    store = zarrc.ZarrcStore(path)
    data.to_zarr(store, mode="w", consolidated=False)
    store.close()
    assert np.array_equal(read(path, "t"), VALUES)
