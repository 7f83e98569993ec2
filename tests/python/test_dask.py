"""Arrays of dask, on threads and on a real cluster of several processes; writers at once, by bench/python/concurrent."""
import concurrent.futures
import importlib.machinery
import importlib.util
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import warnings

import numpy as np
import pytest
from conftest import ROOT

import zarrc

da = pytest.importorskip("dask.array", reason="scripts/venv installs dask")
import dask  # noqa: E402

import zarrc.dask as zd  # noqa: E402


@pytest.fixture
def threads():
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


@pytest.fixture(scope="module")
def cluster(semaphores):
    """Two processes with two threads each."""
    distributed = pytest.importorskip("distributed", reason="scripts/venv installs distributed")
    with dask.config.set({"distributed.scheduler.worker-saturation": 1.1}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ports that are taken, time zones
        with distributed.LocalCluster(n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None) as running:
            with distributed.Client(running) as client:
                yield client


def create_sharded(path, data, **given):
    return zarrc.create_array(path, data=data, **{"chunks": (5, 5), "shards": (20, 10), **given})


def test_blocks_are_shards(path, numbers, threads):
    x = zd.from_zarrc(create_sharded(path, numbers))
    assert x.chunks == ((20, 20, 20), (10, 10, 10, 10)) and x.dtype == "int32"
    assert (x.compute() == numbers).all() and (x[3:50:7, [1, 30]].sum().compute() == numbers[3:50:7][:, [1, 30]].sum())
    assert zd.from_zarrc(zarrc.open_array(path)).name == x.name
    assert zd.from_zarrc(create_sharded(path.replace("x.zarr", "y.zarr"), numbers)).name != x.name


@pytest.mark.parametrize("wanted, chunks", [
    ((30, 25), ((20, 20, 20), (20, 20))), ((45, -1), ((40, 20), (40,))), ((1, 1), ((20, 20, 20), (10, 10, 10, 10))),
    ("auto", ((60,), (40,)))], ids=str)
def test_blocks_as_wished(path, numbers, wanted, chunks):
    assert zd.from_zarrc(create_sharded(path, numbers), chunks=wanted).chunks == chunks


def test_no_shards(path, numbers, threads):
    zarrc.create_group(path).create_array("a", data=numbers, chunks=(25, 40))
    x = zd.from_zarrc(path, name="a")
    assert x.chunks == ((25, 25, 10), (40,)) and (x.compute() == numbers).all()


REPLACES = """
import sys, zarrc
with zarrc.config.set({"lock_wait": 0.001}):
    zarrc.create_array(sys.argv[1], shape=(40,), dtype="i4", chunks=(10,), overwrite=True)
"""


def test_no_writer_replaces_an_array_in_the_middle(path):
    """A process that replaces the array waits for the last block, here in vain."""
    def run_replacement():
        return subprocess.run([sys.executable, "-c", REPLACES, path], stderr=subprocess.PIPE, text=True)

    def block(values, block_info=None):
        if block_info and block_info[0]["chunk-location"] == (2,):
            tried.append(run_replacement())
        return values

    def fail(values):
        raise OSError("a source that cannot be read")

    tried, numbers = [], np.arange(40, dtype="i4")
    x = da.from_array(numbers, chunks=10)
    with dask.config.set(scheduler="synchronous"):
        zd.to_zarrc(x.map_blocks(block, dtype="i4", meta=numbers[:0]), path, overwrite=True)
        assert (zarrc.open_array(path)[:] == numbers).all()
        with pytest.raises(OSError, match="a source"):
            zd.to_zarrc(x.map_blocks(fail, dtype="i4", meta=numbers[:0]), path, overwrite=True)
    assert len(tried) == 1 and tried[0].returncode != 0 and "lock" in tried[0].stderr, tried
    assert run_replacement().returncode == 0  # a call that failed keeps no right


@pytest.mark.parametrize("shape", [(), (0,), (0, 3)], ids=str)
def test_no_elements(path, shape, threads):
    array = zarrc.create_array(path, data=np.zeros(shape))
    x = zd.from_zarrc(array)
    assert x.shape == shape and x.compute().shape == shape
    copy = zd.to_zarrc(x, path.replace("x.zarr", "y.zarr"))
    assert copy.shape == shape


def test_text(path, threads):
    array = zarrc.create_array(path, shape=4, dtype=str, chunks=2)
    array[:] = ["a", "bc", "", "d"]
    assert zd.from_zarrc(array).compute().tolist() == ["a", "bc", "", "d"]


@pytest.mark.parametrize("blocks", [(20, 10), (7, 9), (60, 40), (33, 40), (40, 5)], ids=str)
def test_one_task_a_shard(path, numbers, blocks, threads, monkeypatch):
    """Whatever the blocks of dask: no two tasks write into one shard."""
    writes = []
    real = zarrc.Array.__setitem__

    def note(self, key, value):
        writes.append(key)
        real(self, key, value)

    monkeypatch.setattr(zarrc.Array, "__setitem__", note)
    done = zd.to_zarrc(da.from_array(numbers, chunks=blocks), path, chunks=(5, 5), shards=(20, 10))
    assert isinstance(done, zarrc.Array) and (done[...] == numbers).all() and done.shards == (20, 10)
    owners = {}
    for number, (rows, columns) in enumerate(writes):
        for a in range(rows.start // 20, -(-rows.stop // 20)):
            for b in range(columns.start // 10, -(-columns.stop // 10)):
                assert owners.setdefault((a, b), number) == number, (rows, columns)
    assert len(owners) == 12


def test_new_array(path, numbers, threads):
    x = da.from_array(numbers, chunks=(20, 25))
    plain = zd.to_zarrc(x, path, name="g/a", attributes={"units": "K"}, compressors=None)
    assert plain.chunks == (20, 25) and plain.path == "g/a" and dict(plain.attrs) == {"units": "K"} and plain.compressors == ()
    assert (zarrc.open_array(path, path="g/a")[...] == numbers).all()
    with pytest.raises(FileExistsError):
        zd.to_zarrc(x, path, name="g/a")
    zd.to_zarrc(x + 1, path, name="g/a", overwrite=True)
    assert (zarrc.open_array(path, path="g/a")[...] == numbers + 1).all()


def test_delayed(path, numbers):
    done = zd.to_zarrc(da.from_array(numbers, chunks=(20, 10)), path, compute=False)
    assert not zarrc.open_array(path)[...].any()
    done.compute(scheduler="threads")
    assert (zarrc.open_array(path)[...] == numbers).all()


def test_region(path, numbers, threads):
    array = zarrc.create_array(path, shape=(100, 40), dtype="int32", chunks=(5, 5), shards=(20, 10), fill_value=-1)
    zd.to_zarrc(da.from_array(numbers, chunks=(17, 40)), array, region=(slice(30, 90), slice(None)))
    assert (array[30:90] == numbers).all() and (array[:30] == -1).all() and (array[90:] == -1).all()


def test_blocks_of_a_region_end_at_shards(path, numbers):
    array = zarrc.create_array(path, shape=(100, 40), dtype="int32", chunks=(5, 5), shards=(20, 10))
    found = zd._to_units(da.from_array(numbers, chunks=(17, 40)), array, zd._region(array, slice(30, 90)))
    assert found.chunks == ((10, 20, 20, 10), (40,))  # 30-40, 40-60, 60-80, 80-90


@pytest.mark.parametrize("given, error, text", [
    ({"region": slice(0, 3)}, ValueError, "shape"), ({"region": (slice(0, 60, 2),)}, ValueError, "slice"), ({"region": 5}, ValueError, "slice"),
    ({"name": "b"}, TypeError, "properties"), ({"chunks": (3, 3)}, TypeError, "properties")], ids=str)
def test_wrong(path, numbers, given, error, text):
    array = create_sharded(path, numbers)
    with pytest.raises(error, match=text):
        zd.to_zarrc(da.from_array(numbers), array, **given)
    with pytest.raises(TypeError):
        zd.from_zarrc(array, name="b")


def test_unknown_lengths(path, numbers):
    x = da.from_array(numbers, chunks=20)
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        zd.to_zarrc(x[x[:, 0] > 5], path)


# ---- a cluster ----


def test_cluster(cluster, path, numbers):
    data = np.arange(200 * 300, dtype="i4").reshape(200, 300)
    source = zarrc.create_array(path, data=data, chunks=(10, 10), shards=(50, 60))
    done = zd.to_zarrc(zd.from_zarrc(source) + 1, path.replace("x.zarr", "y.zarr"), chunks=(10, 10), shards=(40, 100))
    assert (done[...] == data + 1).all()
    assert int((zd.from_zarrc(done).sum() - data.size).compute()) == data.sum()


def test_cluster_writes_one_array_from_all_processes(cluster, path):
    """Hundreds of small shards, blocks that fit them badly: nothing is lost."""
    data = np.random.default_rng(0).integers(0, 100, (120, 130), dtype="i2")
    done = zd.to_zarrc(da.from_array(data, chunks=(11, 13)), path, chunks=(2, 2), shards=(6, 10))
    assert (done[...] == data).all() and done._count_stored(False)[0] == 20 * 13


def threads_of_worker(path):
    import distributed

    import zarrc
    from zarrc import _threads
    array = zarrc.open_array(path)
    array[...]
    return os.getpid(), _threads.count(), distributed.get_worker().state.nthreads


def test_threads_of_workers(cluster, path, numbers, monkeypatch):
    """In a task, an array works with the threads of its worker, not with all cores of the machine."""
    create_sharded(path, numbers)
    futures = [cluster.submit(threads_of_worker, path, workers=[address], pure=False) for address in cluster.scheduler_info()["workers"]]
    found = cluster.gather(futures)
    assert len({pid for pid, _, _ in found}) == 2 and os.getpid() not in {pid for pid, _, _ in found}
    cores = multiprocessing.cpu_count()
    for _, count, nthreads in found:
        assert nthreads == 2 and count == min(2, cores)


def test_memory_cannot_leave_the_process(cluster, numbers):
    array = zarrc.create_array("memory:", data=numbers)
    with pytest.raises(Exception, match="serialize|pickle"):
        zd.from_zarrc(array).sum().compute()


def test_xarray_on_the_cluster(cluster, path):
    xr = pytest.importorskip("xarray", reason="scripts/venv installs xarray")
    from zarrc_hook.engine import ZarrcBackendEntrypoint
    ds = xr.Dataset({"a": (("x", "y"), np.arange(400.0).reshape(20, 20))})
    ds.to_zarr(path, encoding={"a": {"chunks": (5, 5), "shards": (10, 10)}}, zarr_format=3)
    found = xr.open_dataset(path, engine=ZarrcBackendEntrypoint, chunks={})
    assert float(found["a"].mean().compute()) == ds["a"].mean()


@pytest.mark.parametrize("kind", ["dict", "memory", "fsspec", "zarr"])
def test_stores_without_a_place_are_not_one(kind, threads):
    """dask takes arrays with equal names for one array."""
    def new():
        if kind == "zarr":
            return pytest.importorskip("zarr.storage").MemoryStore()
        if kind == "fsspec":
            return pytest.importorskip("fsspec.implementations.memory").MemoryFileSystem(skip_instance_cache=True)
        return {} if kind == "dict" else zarrc.open_store("memory:")

    first, second = (zarrc.create_array(new(), name=f"a{i if kind == 'fsspec' else ''}", data=np.full(4, i)) for i in range(2))
    x, y = zd.from_zarrc(first), zd.from_zarrc(second)
    assert x.name != y.name and (y - x).compute().tolist() == [1, 1, 1, 1]
    assert zd.from_zarrc(first).name == x.name == zd.from_zarrc(first.with_config({})).name


def test_more_units_than_blocks(tmp_path, threads):
    """Blocks of many units are made without a list of these; a block for each of too many is refused."""
    z = zarrc.create_array(tmp_path / "x", shape=(2**40 + 5,), chunks=(8,), dtype="i1")
    with pytest.raises(zarrc.errors.LimitError, match="137438953473"):
        zd.from_zarrc(z)
    x = zd.from_zarrc(z, chunks=2**30)
    assert x.numblocks == (1025,) and all(one % 8 == 0 for one in x.chunks[0][:-1]) and sum(x.chunks[0]) == z.shape[0]
    part = da.ones((100,), chunks=7, dtype="i1")
    zd.to_zarrc(part, z, region=slice(2**39 + 3, 2**39 + 103))
    assert z[2**39:2**39 + 110].sum() == 100
    square = zarrc.create_array(tmp_path / "y", shape=(2**13, 2**13), chunks=(1, 1), dtype="i1")
    with pytest.raises(zarrc.errors.LimitError, match="blocks of dask"):
        zd.from_zarrc(square)


SCRIPT = ROOT / "bench/python/concurrent"


@pytest.mark.parametrize("library, kind", [("zarrc", "threads"), ("zarrc", "dask processes"), ("zarr+zarrc", "processes"), ("zarr+zarrc", "dask threads")])
def test_concurrent_writes_lose_nothing(semaphores, library, kind):
    """Cells of the table of docs/python/concurrent-writes.md, by the script that makes it."""
    if library != "zarrc":
        pytest.importorskip("zarr")
    done = subprocess.run([sys.executable, SCRIPT, "--one", library, kind, "shards"], capture_output=True, text=True, timeout=240)
    assert json.loads(done.stdout)["wrong"] == 0, done.stdout + done.stderr


WRITE = """
import sys, zarrc
zarrc.config.set({"durability": "none", "locks": sys.argv[1], "max_threads": 1})
z = zarrc.create_array(sys.argv[2], shape=4096 * int(sys.argv[3]), chunks=4096, dtype="u1", compressors=None)
z[...] = 1
"""
CALLS = "fcntl", "newfstatat", "openat", "openat2", "pread64", "pwrite64", "renameat", "close"


def count_calls(locks, folder, n):
    """{system call: how often} of a program that writes n whole chunks."""
    log = folder / f"{locks}-{n}"
    done = subprocess.run(["strace", "-f", "-c", "--seccomp-bpf", "-e", "trace=" + ",".join(CALLS), "-o", log, sys.executable, "-c", WRITE, locks, f"{log}.zarr", str(n)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"strace does not work here: {done.stderr}")
    return {words[-1]: int(words[3]) for words in map(str.split, log.read_text().splitlines()) if len(words) > 4 and words[3].isdigit()}


def test_cost_of_locks(tmp_path):
    """What docs/python/concurrent-writes.md says of writes of whole blocks."""
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    calls = {(locks, n): count_calls(locks, tmp_path, n) for locks in ("os", "none") for n in (10, 510)}

    def more(name):
        """Calls that each block adds with locks, less those without. The interpreter makes a few more or less from run to run."""
        return round(sum(sign * calls[key].get(name, 0) for key, sign in ((("os", 510), 1), (("os", 10), -1), (("none", 510), -1), (("none", 10), 1))) / 500)

    assert more("fcntl") == 2 and all(more(name) <= 0 for name in CALLS if name != "fcntl"), calls


def test_table_of_concurrent_writes(tmp_path, monkeypatch):
    """The page has a row for each library and layout of the script, which writes them there."""
    loader = importlib.machinery.SourceFileLoader("concurrent_writes", str(SCRIPT))
    script = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(sys, "path", list(sys.path))
    loader.exec_module(script)
    told = script.PAGE.read_text()
    for option, libraries in ("", script.LIBS), (" --s3", script.S3_LIBS):
        table = told.partition(f"<!-- made by bench/python/concurrent{option} -->")[2].partition("<!-- end -->")[0]
        rows = re.findall(r"(?m)^\| (.+?) \| (chunks|shards) \|", table)
        assert rows == [(name, layout) for name in libraries.values() for layout in script.LAYOUTS]
    rounds = [{"wrong": 0.5}, {"wrong": 0.0125}, {"error": "OSError", "step": "write"}, {"error": "OSError", "step": "read"}]
    assert script.cell(rounds) == "1.2 to 50 %, 1 of 4 writes failed, 1 of 4 reads failed" and script.cell(rounds[:1]) == "50 %"
    monkeypatch.setattr(script, "PAGE", tmp_path / "page.md")
    script.PAGE.write_text(told)
    script.save(["| mine | chunks | 0 % |"], {"zarr": "zarr-python 3.4.2"}, 7, "")
    now = script.PAGE.read_text()
    assert "| mine | chunks | 0 % |\n\n7 rounds each" in now and now.count("<!-- end -->") == 2 and "zarrista |" not in now


def run_all(work, n=4):
    with concurrent.futures.ThreadPoolExecutor(n) as pool:
        return list(pool.map(work, range(n)))


def test_what_is_safe(path):
    """The rows of the page's last table that threads can show, each of which opens the array for itself."""
    zarrc.create_array(path, shape=(40, 40), dtype="i4", shards=(20, 20), chunks=(5, 5), fill_value=-1)

    def overwrite(i):
        z, mixed = zarrc.open_array(path), 0
        for value in range(i, 100, 4):
            z[...] = value
            found = z[...].reshape(2, 20, 2, 20)
            mixed += int((found != found[:, :1, :, :1]).sum())
        return mixed

    assert run_all(overwrite) == [0] * 4  # in every read each block is from one writer
    rows = zarrc.create_array(path + ".rows", shape=(0, 3), dtype="i4", chunks=(4, 3))

    def append(i):
        for _ in range(10):
            zarrc.open_array(path + ".rows").append(np.full((3, 3), i))

    run_all(append)
    rows.refresh()
    found = rows[...].reshape(40, 9)
    assert (found == found[:, :1]).all() and np.bincount(found[:, 0]).tolist() == [10] * 4
    zarrc.open_group(path + ".group", mode="w")
    zarrc.consolidate_metadata(path + ".group")

    def change(i):
        group = zarrc.open_group(path + ".group")
        for k in range(5):
            group.attrs[f"{i}.{k}"] = k
            group.create_array(f"{i}.{k}", shape=3, dtype="i4")

    run_all(change)
    names = {f"{i}.{k}" for i in range(4) for k in range(5)}
    group = zarrc.open_consolidated(path + ".group")
    assert set(group) == set(group.attrs) == names
