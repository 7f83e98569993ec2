"""What zarrc refuses, zarr-python's own pipeline does not try again: broken chunks, locks, stores that fail, limits. The broken
chunks are those of tests/hostile, which the C library reads there."""
import concurrent.futures
import contextlib
import fcntl
import os
import struct
import subprocess
import sys
import textwrap
import threading
import types
import warnings

import numpy as np
import pytest
from conftest import ROOT
from pipelines import Plain, enable_pipeline, make_array, native_only, own, same, zarr  # noqa: F401
from zarr.buffer import cpu
from zarr.storage import LocalStore, MemoryStore, ZipStore

import zarrc
from zarrc import _core, errors

sys.path.append(str(ROOT / "tests/hostile"))
from every_store import CASES  # noqa: E402
from test_hostile import write_store  # noqa: E402

CLASSES = {"corrupt": errors.CorruptError, "unsupported": errors.UnsupportedError, "limit": errors.LimitError,
           "io": errors.StoreError, "invalid": errors.InvalidError, "not found": errors.NotFoundError}


class OwnZstd(zarr.codecs.ZstdCodec):
    """A codec of another package: zarr-python's own pipeline does it."""


def create_lacking(store, **more):
    """An array that zarrc leaves to zarr-python, of one block."""
    z = zarr.create_array(store, name="a", shape=(16,), dtype="i4", **{"chunks": (16,), "compressors": OwnZstd(), **more})
    z[...] = 1
    zarrc.pipeline_stats(reset=True)
    return z


# ---- broken chunks ----


def is_refused(name):
    """Whether a case is an array that opens, and whose first element is refused."""
    steps = CASES[name]().steps
    return steps.get("open", ("ok",))[0] == "ok" and (steps.get("first") or ("ok",))[0] in CLASSES


LACKING = ("optional_text", "v2_struct_short_chunk")  # NumPy has no such type; memory of a struct with two byte orders
REFUSED = [name for name in CASES if not name.startswith(LACKING) and is_refused(name)]


def first(module, root):
    """An array, and a function that reads its first element."""
    z = module.open_array(root, path="a", mode="r+")
    return z, lambda: z[(0,) * z.ndim]


def read_files(root):
    """What a write would change."""
    return {path: (path.lstat().st_ino, path.lstat().st_mtime_ns) for path in root.rglob("*") if path.is_file() and "__lock" not in path.name}


def fails_as(problem, status):
    assert isinstance(problem.value, CLASSES[status]), repr(problem.value)
    assert problem.value.node in ("/a", "a") or "a/" in str(problem.value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REFUSED)
def test_broken_chunks(name, tmp_path):
    """By the package's own arrays, and below `enable`: the same class, no second decoder, and no write that changes them."""
    case = CASES[name]()
    status = case.steps["first"][0]
    write_store(root := tmp_path / "x", case)
    zarrc.config.set({"symlinks": "within", "untrusted": case.untrusted})
    z, read = first(zarrc, root)
    with pytest.raises(errors.ZarrcError) as problem:
        read()
    fails_as(problem, status)
    try:
        z, read = first(zarr, root)
    except Exception:
        return  # zarr-python does not open it
    with pytest.raises(errors.ZarrcError) as problem:
        read()
    fails_as(problem, status)
    before = read_files(root)
    if (case.steps.get("write") or ("ok",))[0] in CLASSES:
        with pytest.raises(errors.ZarrcError):
            z[(slice(0, 1),) * z.ndim] = b"" if z.dtype == object else np.zeros((), z.dtype)[()]
        assert read_files(root) == before
    assert zarrc.pipeline_stats()["fallback_chunks"] == 0


def test_there_are_enough_broken_chunks():
    assert len(REFUSED) > 100


@pytest.mark.parametrize("kind", ["memory", "other"])
@pytest.mark.parametrize("shards", [None, (10, 8)])
def test_broken_chunks_in_other_stores(kind, shards):
    memory = MemoryStore()
    z = make_array(memory if kind == "memory" else Plain(memory), "i4", "v3", shards=shards)
    z[...] = 1
    memory._store_dict["a/c/0/0"] = type(memory._store_dict["a/c/0/0"]).from_bytes(b"nothing")
    for work in (lambda: z[0, 0], lambda: z[...], lambda: z.__setitem__((0, 0), 2)):
        with pytest.raises(errors.CorruptError) as problem:
            work()
        assert (problem.value.key, problem.value.block, problem.value.chunk) == ("a/c/0/0", (0, 0), None if shards else (0, 0))
        assert "memory://" in problem.value.store and problem.value.store in str(problem.value)
    assert zarrc.pipeline_stats()["fallback_chunks"] == 0


def test_a_bomb_is_not_inflated(tmp_path):
    """65 KB of zstd that claim 1 GiB."""
    from stores import zstd_bomb
    z = zarr.create_array(tmp_path / "x", shape=(100,), chunks=(100,), dtype="i4", compressors=zarr.codecs.ZstdCodec())
    z[...] = 1
    (tmp_path / "x/c/0").write_bytes(zstd_bomb(1024, 1 << 30))
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(f"""
        import re, zarr, zarrc
        zarrc.enable()
        z = zarr.open_array({str(tmp_path / "x")!r}, mode="r+")
        for untrusted in (0, 1):
            with zarrc.config.set(untrusted=untrusted):
                for work in (lambda: z[...], lambda: z.__setitem__(0, 1)):
                    try:
                        work()
                        raise SystemExit("no error")
                    except zarrc.errors.CorruptError:
                        pass
        print(re.search(r"VmHWM:[^0-9]*([0-9]+) kB", open("/proc/self/status").read())[1])  # ru_maxrss counts the parent's memory, too
        """)], capture_output=True, text=True, env={**os.environ, "ZARRC_MAX_THREADS": "2"})
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 400 << 10  # KiB


@pytest.mark.filterwarnings("ignore")
def test_limits(tmp_path):
    z = zarr.create_array(LocalStore(tmp_path / "x"), shape=(2**29,), chunks=(2**29,), dtype="f8")
    with pytest.raises(errors.LimitError):
        z[:1]
    assert zarrc.pipeline_stats()["fallback_chunks"] == 0


def test_untrusted_data_does_not_fall_back(tmp_path):
    """zarr-python's own pipeline has no limits."""
    z = create_lacking(tmp_path / "x")
    with zarrc.config.set(untrusted=True):
        for work in (lambda: z[...], lambda: z.__setitem__(0, 1)):
            with pytest.raises(errors.UnsupportedError, match="x/a: .*codec .*OwnZstd.*untrusted=0"):
                work()
    assert z[0] == 1 and zarrc.pipeline_stats()["fallback_chunks"] == 1


# ---- locks ----


@contextlib.contextmanager
def hold_lock(path):
    """The lock of a block, as another program has it."""
    file = os.open(f"{path}.__lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.fcntl(file, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))  # F_OFD_SETLK
        yield
    finally:
        os.close(file)


FORMS = {"native": {"compressors": None}, "fallback": {}, "shards": {"chunks": (4,), "shards": (16,)}}
LOCAL = {"LocalStore": LocalStore, "ZarrcStore": zarrc.ZarrcStore}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", LOCAL)
def test_a_lock_that_another_holds(tmp_path, kind, form):
    zarrc.config.set({"lock_wait": 0.05})
    z = create_lacking(LOCAL[kind](tmp_path / "x"), **FORMS[form])
    block = tmp_path / "x/a/c/0"
    with hold_lock(block):
        with pytest.raises(OSError, match="lock") as problem:
            z[5:6] = 7
        assert isinstance(problem.value, errors.StoreError) and problem.value.operation == "lock"
        assert z[5] == 1
    z[5:6] = 7
    z[6:7] = 0
    assert z[5:8].tolist() == [7, 0, 1] and not os.path.exists(f"{block}.__lock")
    z[5:6] = 1
    z[...] = 0
    assert z[0] == 0


@pytest.mark.parametrize("form", FORMS)
def test_no_update_is_lost(tmp_path, form):
    """Threads write single elements of one block."""
    z = create_lacking(LocalStore(tmp_path / "x"), **FORMS[form])
    ready = threading.Barrier(8)

    def work(i):
        ready.wait()
        z[i] = 100 + i
        z[i + 8] = 200 + i

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert z[...].tolist() == [100 + i for i in range(8)] + [200 + i for i in range(8)]


def test_whole_and_part_in_one_call(tmp_path):
    z = create_lacking(LocalStore(tmp_path / "x"), chunks=(4,))
    value = np.arange(100, 110)
    z[3:13] = value
    z.vindex[[0, 15]] = [8, 9]
    assert z[...].tolist() == [8, 1, 1, *value.tolist(), 1, 1, 9]
    z[3:13] = 0
    assert z[...].sum() == 8 + 9 + 4 and not (tmp_path / "x/a/c/1").exists()
    assert zarrc.pipeline_stats()["native_chunks"] == 0


def test_without_locks(tmp_path, monkeypatch):
    """A file system that has none: the write is refused, unless the user has said that there is one writer."""
    z = create_lacking(LocalStore(tmp_path / "x"))
    folder = tmp_path / "preload"
    folder.mkdir()
    (folder / "none.c").write_text(textwrap.dedent("""
        #include <errno.h>
        #include <stdarg.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        static int call(int fd, int cmd, void *p)
        {
            if (cmd == 6 || cmd == 7 || cmd == 37 || cmd == 38) {
                errno = ENOLCK;
                return -1;
            }
            return (int)syscall(SYS_fcntl, fd, cmd, p);
        }
        int fcntl64(int fd, int cmd, ...) { va_list a; va_start(a, cmd); void *p = va_arg(a, void *); va_end(a); return call(fd, cmd, p); }
        int fcntl(int fd, int cmd, ...) { va_list a; va_start(a, cmd); void *p = va_arg(a, void *); va_end(a); return call(fd, cmd, p); }
        int flock(int fd, int op) { (void)fd; (void)op; errno = ENOLCK; return -1; }
        """))
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "none.so", folder / "none.c"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("there is no C compiler")
    code = textwrap.dedent(f"""
        import sys
        sys.path.append({os.path.dirname(__file__)!r})
        import zarr, zarrc
        from zarr.codecs import ZstdCodec
        class OwnZstd(ZstdCodec):
            pass
        from zarr.registry import register_codec
        zarrc.enable()
        z = zarr.open_array({str(tmp_path / "x")!r}, path="a", mode="r+")
        codec = OwnZstd()
        object.__setattr__(z.metadata, "codecs", (z.metadata.codecs[0], codec))
        z = zarr.Array(zarr.AsyncArray(metadata=z.metadata, store_path=z.store_path))
        z[...] = 2
        try:
            z[5] = 7
        except zarrc.errors.ZarrcError as problem:
            print("lock" in str(problem))
        print(z[5], zarrc.pipeline_stats()["native_chunks"])
        """)
    for locks, said in (("os", "True\n2 0\n"), ("none", "7 0\n")):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              env={**os.environ, "LD_PRELOAD": str(folder / "none.so"), "ZARRC_LOCKS": locks})
        assert (done.stdout, done.returncode) == (said, 0), done.stderr
    assert z[5] == 7


def test_a_lock_and_its_one_write(path):
    store = zarrc.open_store(path)
    store.set("k", b"old")
    lock = store._lock("k")
    lock.put(memoryview(b"new"))
    assert store.get("k") == b"new"
    with pytest.raises(ValueError, match="given back"):
        lock.put(b"again")
    lock.release()
    other = store._lock("k")
    other.erase()
    assert "k" not in store
    store._lock("k").erase()  # there is no such key
    store._lock("k")  # dropped, and so given back
    store.set("k", b"end")
    with pytest.raises(errors.ReadOnlyError):
        store.with_read_only()._lock("k")
    with pytest.raises(errors.InvalidError):
        store._lock("../k")


# ---- stores of other packages ----


class BrokenStore(Plain):
    """Its calls for chunks raise."""

    calls = ("get", "get_ranges", "set", "delete")

    def __init__(self, store, problem=None):
        super().__init__(store)
        self.problem = problem

    async def get(self, key, prototype, byte_range=None):
        if self.problem and "/c/" in key and "get" in self.calls:
            raise self.problem
        return await self._store.get(key, prototype, byte_range)

    async def get_ranges(self, key, byte_ranges, **given):
        if self.problem and "/c/" in key and "get_ranges" in self.calls:
            raise self.problem
        async for found in self._store.get_ranges(key, byte_ranges, **given):
            yield found

    async def set(self, key, value):
        if self.problem and "/c/" in key and "set" in self.calls:
            raise self.problem
        await self._store.set(key, value)

    async def delete(self, key):
        if self.problem and "/c/" in key and "delete" in self.calls:
            raise self.problem
        await self._store.delete(key)


class OtherError(Exception):
    """Of no class that zarrc knows."""


@pytest.mark.parametrize("problem", [PermissionError(13, "no entry"), ValueError("no entry"), OtherError("no entry"),
                                     TimeoutError("no entry")], ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("shards", [None, (10, 8)])
def test_what_a_store_raises(shards, problem):
    """It is raised as it is, with a note."""
    store = BrokenStore(MemoryStore())
    z = make_array(store, "i4", "v3", shards=shards)
    z[...] = 1
    zarrc.pipeline_stats(reset=True)
    store.problem = problem
    for work in (lambda: z[3, 4], lambda: z[:10, :8], lambda: z.__setitem__((3, 4), 2), lambda: z.__setitem__(..., 2)):
        with pytest.raises(type(problem), match="no entry") as found:
            work()
        assert found.value is problem
        assert any("memory://" in note and "/a, key a/c/0/" in note and ", chunk (0, " in note for note in problem.__notes__)
        del problem.__notes__
    store.calls = ("set", "delete")
    with pytest.raises(type(problem)):
        z[:10, :8] = 0
    assert zarrc.pipeline_stats()["fallback_chunks"] == 0


def test_a_write_to_a_zip_that_fails_is_no_second_write(tmp_path, monkeypatch):
    store = ZipStore(tmp_path / "x.zip", mode="w")
    z = make_array(store, "i4", "v3")
    n = []

    async def fail(self, key, value):
        n.append(key)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ZipStore, "set", fail)
    with pytest.raises(OSError, match="No space") as problem:
        z[:5, :4] = 1
    assert n == ["a/c/0/0"] and not isinstance(problem.value, errors.ZarrcError)


# ---- what is no lack, and what is ----


def test_a_directory_that_is_gone(tmp_path):
    z = make_array(LocalStore(tmp_path / "x"), "i4", "v3", fill_value=3)
    z[...] = 1
    (tmp_path / "x").rename(tmp_path / "y")
    same(z[...], np.full((23, 17), 3, "i4"))
    assert not (tmp_path / "x").exists()
    z[0, 0] = 2
    assert z[0, :2].tolist() == [2, 3]
    native_only()


def test_reasons_name_the_cause_and_an_array(tmp_path):
    z = create_lacking(tmp_path / "x")
    z[...], z[0]
    name = f"codec {OwnZstd.__module__}.OwnZstd"
    assert zarrc.pipeline_stats()["reasons"] == {name: {"chunks": 2, "example": f"file://{tmp_path / 'x'}/a"}}
    zarrc.pipeline_stats()["reasons"][name]["chunks"] = 9  # a copy
    assert zarrc.pipeline_stats(reset=True)["fallback_chunks"] == 2
    plain = zarr.create_array(tmp_path / "y", shape=(4,), chunks=(2,), dtype="i4")
    plain.get_basic_selection(out=cpu.NDBuffer(np.zeros(4, "f8")))
    assert list(zarrc.pipeline_stats()["reasons"]) == ["memory of the data type float64"]


def test_codecs_without_an_implementation():
    """Which zarr-python may have: known before a chunk is read."""
    document = ('{"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "float32", "fill_value": 0, "chunk_grid": '
                '{"name": "regular", "configuration": {"chunk_shape": [2]}}, "chunk_key_encoding": {"name": "default"}, '
                '"codecs": [%s]}')
    store = zarrc.open_store()

    def open_document(*codecs):
        return _core.open_document(_core.Array, store, "a", document % ", ".join(codecs), None, {})

    with pytest.raises(errors.UnsupportedError, match="pcodec"):
        open_document('{"name": "numcodecs.pcodec", "configuration": {"level": 8}}')._check_codecs(False)
    array = open_document('{"name": "bytes", "configuration": {"endian": "little"}}')
    assert array._check_codecs(False) is array._check_codecs(True) is None


def test_settings_that_are_wrong_are_told(tmp_path, monkeypatch):
    z = zarr.create_array(tmp_path / "x", shape=(4,), dtype="i4")
    monkeypatch.setenv("ZARRC_MAX_THREADS", "many")
    with pytest.raises(errors.InvalidError, match="ZARRC_MAX_THREADS"), zarrc.config.set(memory_bytes="65M"):
        z[...]
    assert zarrc.pipeline_stats()["fallback_chunks"] == 0


def test_options_are_not_lost():
    """A lookup in a dict of options that fails is an error, and no default."""
    class Evil(str):
        def __hash__(self):
            return hash(str(self))

        def __eq__(self, other):
            raise RuntimeError("no comparison")

    z = zarrc.create_array(None, shape=(4,), dtype="i4")
    memory = np.zeros(4, "i4")
    for name in ("progress", "present", "field", "max_threads", "pipeline"):
        with pytest.raises(RuntimeError, match="no comparison"):
            z._read(None, memory, 0, {Evil(name): 1})
    for name in ("plugins", "python"):
        with pytest.raises(RuntimeError, match="no comparison"):
            _core.new_context({Evil(name): ()})
    for name in ("dimension_names", "like"):
        with pytest.raises(RuntimeError, match="no comparison"):
            _core.create_array(zarrc.Array, z.store, "b", {"shape": (4,), "data_type": "int32", Evil(name): 1}, {})
    with pytest.raises(TypeError, match="options are a dict"):
        z._read(None, memory, 0, [1])
