"""Exceptions and their facts, the log, and the settings."""
import logging
import os
import pickle
import re
import subprocess
import sys
import types
import warnings

import numpy as np
import pytest
from documents import read_blocks

import zarrc
from zarrc import _core, _threads, errors


def create_damaged(path):
    array = zarrc.create_array(path, name="g/a", shape=(4, 6), dtype="i4", chunks=(2, 3), fill_value=1)
    array[...] = np.arange(24).reshape(4, 6)
    (path_of_chunk := os.path.join(path, "g/a/c/1/0"))
    with open(path_of_chunk, "wb") as file:
        file.write(b"no zstd")
    return array


def test_facts(path):
    array = create_damaged(path)
    with pytest.raises(errors.CorruptError) as caught:
        array[...]
    error = caught.value
    assert (error.node, error.key, error.block, error.chunk) == ("/g/a", "g/a/c/1/0", (1, 0), (1, 0))
    assert error.operation == "decode" and "zstd" in error.reason and str(error) == error.reason
    assert isinstance(error, ValueError) and error.code == -5
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and again.chunk == (1, 0) and str(again) == str(error)
    assert array[:2].shape == (2, 6)


@pytest.mark.parametrize("names, what", [
    (("snapshots/1", "refs/1"), "an Icechunk repository"), (("meta", "attrs"), "a Zarr v1 array"),
    (("attributes.json",), "an N5 container"), ((".zmetadata", "temp/refs.0.parq"), "a kerchunk folder")])
def test_folders_of_other_formats(tmp_path, names, what):
    """The message of every call that opens says what the folder seems to be, also one level below."""
    zarrc.create_group(tmp_path / "g")
    for place in (tmp_path / "x", tmp_path / "g/x"):
        for name in names:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text("{}")
        for opened in (zarrc.open, zarrc.open_array, zarrc.open_group):
            with pytest.raises(errors.NodeNotFoundError, match=f"; this may be {what}"):
                opened(place, mode="r")


def test_the_root_is_a_node(path):
    array = zarrc.create_array(path, data=np.arange(10), chunks=5)
    with open(os.path.join(path, "c/1"), "wb") as file:
        file.write(b"no zstd")
    with pytest.raises(errors.CorruptError) as caught:
        array[...]
    assert (caught.value.node, caught.value.key, caught.value.chunk) == ("/", "c/1", (1,))


def test_classes(path):
    codes = [cls.code for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, errors.ZarrcError)]
    assert set(codes) == set(range(-15, 1))
    for cls, bases in [(errors.NodeNotFoundError, (ValueError, FileNotFoundError)), (errors.StoreError, (OSError,)),
                       (errors.NoMemoryError, (MemoryError,)), (errors.BoundsCheckError, (IndexError,)),
                       (errors.UnsupportedError, (NotImplementedError, ValueError)), (errors.ExistsError, (ValueError,))]:
        assert issubclass(cls, bases) and issubclass(cls, errors.ZarrcError)
    with pytest.raises(FileNotFoundError) as caught:
        zarrc.open_array(path, mode="r")
    assert caught.value.errno == 2
    with pytest.raises(errors.UnsupportedError, match="nonsense"):
        zarrc.create_array(None, shape=1, dtype="i4", compressors="nonsense")
    if os.geteuid():
        zarrc.create_group(path)
        os.chmod(path, 0o500)
        with pytest.raises(OSError) as caught:
            zarrc.open_group(path, path="new", mode="w")
        assert caught.value.errno == 13


@pytest.mark.parametrize("cls", [cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, errors.ZarrcError)],
                         ids=lambda cls: cls.__name__)
def test_pickling(cls):
    """Workers of dask and multiprocessing send exceptions back."""
    error = errors.make_error(cls, "why", node="/a", chunk=(1, 2), store="file:///x")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is cls and str(again) == "why" and (again.node, again.chunk, again.store) == ("/a", (1, 2), "file:///x")


def test_store_is_named(path):
    """The text of every error says in which store it was."""
    array = create_damaged(path)
    readonly = zarrc.open_array(path, path="g/a", mode="r")
    for cls, fails in [
            (errors.CorruptError, lambda: array[...]), (errors.ReadOnlyError, lambda: readonly.__setitem__(..., 1)),
            (errors.ContainsArrayError, lambda: zarrc.create_array(path, name="g/a", shape=1, dtype="i4")),
            (errors.ContainsGroupError, lambda: zarrc.create_group(path, path="g")),
            (errors.ArrayNotFoundError, lambda: zarrc.open_array(path, path="g", mode="r")),
            (errors.GroupNotFoundError, lambda: zarrc.open_group(path, path="g/a", mode="r")),
            (errors.ArrayNotFoundError, lambda: zarrc.open_group(path).get_array("no")),
            (errors.UnsupportedError, lambda: zarrc.create_array(path, name="n", shape=1, dtype="i4", compressors="none such"))]:
        with pytest.raises(cls) as caught:
            fails()
        assert caught.value.store == f"file://{path}" and str(caught.value).endswith(f" (in file://{path})")
    with pytest.raises(errors.UnsupportedError) as caught:
        zarrc.create_array(None, shape=1, dtype="i4", compressors="none such")
    assert caught.value.store is None and "memory" not in str(caught.value)


def test_log(path, caplog):
    zarrc.create_array(path, shape=4, dtype="i4", zarr_format=2)
    zarrc.create_array(path + "/x", shape=4, dtype="i4")
    os.rename(path + "/x/zarr.json", path + "/zarr.json")
    with pytest.warns(zarrc.ZarrcWarning, match="both formats|v2 and v3|both"):
        zarrc.open_array(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(zarrc.ZarrcWarning):
            zarrc.open_array(path)
    with caplog.at_level(5, logger="zarrc"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zarrc.open_array(path)[:]
    assert any(record.name == "zarrc" for record in caplog.records)
    assert logging.getLogger("zarrc").level == logging.NOTSET


def test_memory_is_a_limit(path):
    """A chunk that the setting does not permit is refused, with a value that works; the default refuses nothing."""
    data = np.arange(2 ** 18, dtype="i4")
    array = zarrc.create_array(path, data=data, chunks=data.shape)
    with zarrc.config.set({"memory_bytes": "2M"}):
        array = zarrc.open_array(path, mode="r+")
        for change in (lambda: array.__setitem__(slice(5), 0), lambda: array.append(data), lambda: array.resize((9,))):
            with pytest.raises(errors.LimitError, match="one chunk needs") as caught:
                change()
            assert caught.value.limit == "memory_bytes" and array.shape == data.shape
    value = int(re.search(r'zarrc.config.set\({"memory_bytes": (\d+)}\)', str(caught.value))[1])
    with zarrc.config.set({"memory_bytes": value}):
        array = zarrc.open_array(path, mode="r+")
        array[:5] = 0
        assert (array[5:] == data[5:]).all() and (array[:5] == 0).all()


def test_settings(path):
    with zarrc.config.set({"max_threads": 3, "memory_bytes": "64M"}, durability="each", locks="none"):
        assert zarrc.config["memory_bytes"] == 64 << 20 and zarrc.config.get("max_threads") == 3
        array = zarrc.create_array(path, data=np.arange(9), chunks=2)
        assert array[...].sum() == 36
        assert "'max_threads': 3" in repr(zarrc.config) and "'locks': 'none'" in repr(zarrc.config)
    assert zarrc.config["max_threads"] is None and "'max_threads': None" in repr(zarrc.config)
    zarrc.config.set({"default_zarr_format": 2, "array.write_empty_chunks": True})
    assert zarrc.create_array(None, shape=1, dtype="i1").zarr_format == 2
    assert zarrc.create_array(None, shape=1, dtype="i1").config.write_empty_chunks
    for name, value in [("max_threads", 0), ("memory_bytes", "much"), ("durability", "maybe"), ("locks", 1), ("array.order", "X")]:
        with pytest.raises((ValueError, TypeError)):
            zarrc.config.set({name: value})
    with pytest.raises(KeyError, match="no setting"):
        zarrc.config.set({"nonsense": 1})
    zarrc.config.set(untrusted=True)
    with pytest.raises(errors.LimitError):
        zarrc.create_array(None, shape=1 << 30, dtype="i1", chunks=1 << 30)


def test_limits(monkeypatch):
    """A LimitError names the limit and its remedy, which works; one parser reads all texts."""
    array = {"shape": 2048, "dtype": "i1", "chunks": 2048}
    with zarrc.config.set({"limits": {"chunk_bytes": "1K"}}):
        with pytest.raises(errors.LimitError) as found:
            zarrc.create_array(None, **array)
    assert found.value.limit == "chunk_bytes"
    assert '(limit chunk_bytes is 1024); ' in str(found.value)
    assert 'zarrc.config.set({"limits": {"chunk_bytes": VALUE}})' in str(found.value)
    with zarrc.config.set({"limits": {"chunk_bytes": 2048}, "untrusted": True}):
        assert zarrc.create_array(None, **array)[0] == 0
    for wrong in ({"chunk_byte": 1}, {"chunk_bytes": 0}, {"chunk_bytes": "1X"}, {"rank": 65}):
        with pytest.raises(ValueError, match="limits: "):
            zarrc.config.set({"limits": wrong})
    monkeypatch.setenv("ZARRC_LIMITS", "chunk_bytes=1000,json_depth=2000")
    assert zarrc.config["limits"] == {"chunk_bytes": "1000", "json_depth": "2000"}
    made = subprocess.run([sys.executable, "-c", "import zarrc; zarrc.create_array(None, shape=2048, dtype='i1', chunks=2048)"],
                          capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert "limit chunk_bytes is 1000" in made.stderr


@pytest.mark.parametrize("depth", [900])
def test_default_limits(path, depth):
    """What zarr-python writes and reads: attributes nested deep, and of two million bytes."""
    value = 1
    for _ in range(depth):
        value = [value]
    array = zarrc.create_array(path, shape=1, dtype="i1", attributes={"deep": value, "xml": "x" * 2_000_000})
    assert array.attrs["deep"] == value and len(zarrc.open_array(path).attrs["xml"]) == 2_000_000


def test_lock_wait(path):
    """A write that waits for a lock of another process fails after the set time."""
    zarrc.config.set({"lock_wait": 0.2})
    array = zarrc.create_array(path, shape=4, dtype="i4", chunks=4)
    array[:] = 1
    holder = subprocess.Popen([sys.executable, "-c", (
        "import fcntl, os, struct, sys, time\n"
        f"fd = os.open({path + '/c/0.__lock'!r}, os.O_RDWR | os.O_CREAT)\n"
        "fcntl.fcntl(fd, 37, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0))\n"  # F_OFD_SETLK
        "print(flush=True)\ntime.sleep(60)")], stdout=subprocess.PIPE)
    try:
        holder.stdout.readline()
        with pytest.raises(OSError, match="lock") as caught:
            array[1] = 2
        assert caught.value.operation == "lock" and caught.value.chunk == (0,)
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()


def test_environment(path):
    def run(code, **environment):
        return subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True)

    code = "import zarrc; print(zarrc.create_array(None, shape=1, dtype='i1')[0], zarrc.config['durability'])"
    done = run(code, ZARRC_MAX_THREADS="2", ZARRC_DURABILITY="each", ZARRC_MEMORY_BYTES="64M")
    assert done.stdout == "0 each\n", done.stderr
    assert "ZARRC_MAX_THREADS" in run(code, ZARRC_MAX_THREADS="many").stderr
    names = "[zarrc.config.get(name) for name in ('max_threads', 'memory_bytes', 'trust', 'plugin_options', 'pipeline')]"
    done = run(f"import zarrc; print({names}, \"'max_threads': 2\" in repr(zarrc.config)); zarrc.config.set(max_threads=3); print(zarrc.config['max_threads'])",
               ZARRC_MAX_THREADS="2", ZARRC_MEMORY_BYTES="64M", ZARRC_TRUST="none", ZARRC_PLUGIN_OPTIONS='{"a": {}}')
    assert done.stdout == "[2, 67108864, 'none', {'a': {}}, None] True\n3\n", done.stdout + done.stderr
    done = run("import zarrc; print(zarrc.config['max_threads'], zarrc.config['memory_bytes'])", ZARRC_MAX_THREADS="many", ZARRC_MEMORY_BYTES="")
    assert done.stdout == "None None\n", done.stdout + done.stderr
    assert "ZARRC_DURABILITY" in run(code, ZARRC_DURABILITY="maybe").stderr
    done = run("import zarrc, sys; print(sorted({'asyncio', 'cupy', 'dask', 'jax', 'ml_dtypes', 'torch', 'xarray', 'zarr', 'zarrc.cupy', 'zarrc.plugins', 'zarrc.torch'} & set(sys.modules)))")
    assert done.stdout == "[]\n", done.stdout + done.stderr


def test_file_of_settings(tmp_path):
    """It counts below the environment and `config.set`, and is found in XDG_CONFIG_HOME or by ZARRC_CONFIG only."""
    names = ("max_threads", "memory_bytes", "durability", "array.order", "limits", "locks")
    code = (f"import zarrc; print([zarrc.config[n] for n in {names}], zarrc.create_array(None, shape=1, dtype='i1')[0]); "
            "zarrc.config.set(durability='none'); print(zarrc.config['durability']); zarrc.config.reset(); print(zarrc.config['durability'])")

    def run(text=code, **environment):
        plain = {name: value for name, value in os.environ.items() if name not in ("ZARRC_CONFIG", "XDG_CONFIG_HOME")}
        done = subprocess.run([sys.executable, "-c", text], env={**plain, **environment}, capture_output=True, text=True, cwd=tmp_path)
        return done.stdout.splitlines() or done.stderr.splitlines()[-1]

    home, file = tmp_path / "home", tmp_path / "home/.config/zarrc.toml"
    file.parent.mkdir(parents=True)
    shown = next(block.code for block in read_blocks("docs/python.md", "toml") if not block.reason)
    file.write_text(given := f'durability = "each"\n{shown}')
    told = ["[8, 4294967296, 'each', 'F', {'chunk_bytes': '8G'}, None] 0", "none", "each"]
    nothing = ["[None, None, None, 'C', None, None] 0", "none", "None"]
    assert run(HOME=str(home)) == run(XDG_CONFIG_HOME=str(file.parent)) == run(ZARRC_CONFIG=str(file)) == told
    assert run(HOME=str(tmp_path / "no")) == run(HOME=str(home), ZARRC_CONFIG="") == run(XDG_CONFIG_HOME="home/.config", HOME="/no") == nothing
    assert run(HOME=str(home), ZARRC_MAX_THREADS="2", ZARRC_DURABILITY="ordered", ZARRC_LIMITS="chunk_bytes=1G") == [
        "[2, 4294967296, 'ordered', 'F', {'chunk_bytes': '1G'}, None] 0", "none", "ordered"]
    assert "no absolute path" in run(ZARRC_CONFIG="home/.config/zarrc.toml") and "No such file" in run(ZARRC_CONFIG="/no/zarrc.toml")
    for wrong, told_so in (("max_threads = 0", "max_threads: 0 is not"), ("max_thread = 1", "max_thread is no setting"), ("=", "Invalid"),
                           ("plugins = 5", "zarrc.toml: "), ("array = 5", "zarrc.toml: ")):
        file.write_text(wrong)
        assert told_so in run(HOME=str(home)) and "zarrc.toml" in run(HOME=str(home))
    file.write_text(given)
    for other, mode in ((file, 0o666), (file, 0o664), (file.parent, 0o777)):
        before = other.stat().st_mode
        other.chmod(mode)
        assert "other users may write" in run(HOME=str(home))
        other.chmod(before)
    file.parent.chmod(0o1777)  # only the owner replaces a file there
    assert run(HOME=str(home)) == told
    quiet = "import sys, zarrc; print('tomllib' in sys.modules)"
    assert run(quiet, HOME=str(tmp_path / "no")) == ["False"] and run(quiet, HOME=str(home)) == ["True"]


def test_threads(monkeypatch):
    cores = _threads.count()
    assert _threads.count(7) == 7 and 1 <= cores <= len(os.sched_getaffinity(0))
    monkeypatch.setattr(_core, "core_count", lambda: 12)
    assert _threads.count() == 12
    with monkeypatch.context() as m:
        info = types.SimpleNamespace(num_workers=5)
        m.setitem(sys.modules, "torch.utils.data", types.SimpleNamespace(get_worker_info=lambda: info))
        assert _threads.count() == 2
        info.num_workers = 50
        assert _threads.count() == 1
        m.setitem(sys.modules, "torch.utils.data", types.SimpleNamespace(get_worker_info=lambda: None))
        assert _threads.count() == 12
    with monkeypatch.context() as m:
        worker = types.SimpleNamespace(state=types.SimpleNamespace(nthreads=3))
        m.setitem(sys.modules, "distributed", types.SimpleNamespace(get_worker=lambda: worker))
        assert _threads.count() == 3
        m.setitem(sys.modules, "distributed", types.SimpleNamespace())  # a stranger of that name
        assert _threads.count() == 12
    with monkeypatch.context() as m:
        m.setitem(sys.modules, "zarr", types.SimpleNamespace(config={"threading.max_workers": 4}))
        assert _threads.count() == 4
    monkeypatch.setenv("ZARRC_MAX_THREADS", "2")
    assert _threads.count() == 0


def test_names():
    """Completion shows what there is to use, and nothing that the package only needs itself."""
    names = {name for name in dir(zarrc) if not name.startswith("_")}
    assert set(zarrc.__all__) - {"__version__"} <= names and not {"Any", "TYPE_CHECKING", "annotations"} & names
    assert all(getattr(zarrc, name) is not None for name in names)


def test_debug_info(capsys, monkeypatch):
    zarrc.print_debug_info()
    found = capsys.readouterr().out
    assert f"zarrc: {zarrc.__version__}" in found and f"max_threads: {_threads.count()}\n" in found
    monkeypatch.setenv("ZARRC_MAX_THREADS", "2")
    zarrc.print_debug_info()
    assert "max_threads: 2\n" in capsys.readouterr().out


def test_settings_of_others_stay():
    """A `with` statement takes back what it has set."""
    with zarrc.config.set(max_threads=2):
        zarrc.config.set(memory_bytes="1G", locks="none")
        with zarrc.config.set(locks="os"):
            pass
        assert zarrc.config["locks"] == "none" and zarrc.config["max_threads"] == 2
    assert zarrc.config["memory_bytes"] == 1 << 30 and zarrc.config["max_threads"] is None
