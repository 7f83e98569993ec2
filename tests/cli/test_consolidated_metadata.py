"""Consolidated metadata never lists a node that is gone, and what commands leave that were killed: the same command completes it.
tests/fault/kill_points.py kills them at each step."""
import concurrent.futures
import fcntl
import json
import shutil
import struct

import numpy as np
import pytest
import xarray
import zarr


def names(store, zarr_format):
    """The paths of the nodes that consolidated metadata lists."""
    if zarr_format == 3:
        return set(json.loads((store / "zarr.json").read_text())["consolidated_metadata"]["metadata"])
    return {key.rpartition("/")[0] for key in json.loads((store / ".zmetadata").read_text())["metadata"]} - {""}


@pytest.fixture(params=[2, 3])
def hierarchy(zarrc, tmp_path, request):
    store, zarr_format = tmp_path / "x.zarr", request.param
    zarrc("create", "-q", "-g", store, f"--zarr-format={zarr_format}")
    np.save(tmp_path / "n.npy", np.arange(1, 9, dtype="i2"))
    for name in ("a", "g/b"):
        zarrc("import", "-q", tmp_path / "n.npy", store / name, f"--zarr-format={zarr_format}", "--chunks=1")
    zarrc("consolidate", "-q", store)
    return store, zarr_format



def test_killed_after_a_move(zarrc, hierarchy):
    """The destination is not listed. The same command with --skip-equal lists it."""
    store, zarr_format = hierarchy
    before = (store / ("zarr.json" if zarr_format == 3 else ".zmetadata")).read_bytes()
    zarrc("mv", store / "a", store / "h/c")
    zarrc("attrs", "set", store / "g/b", "k", "1")
    document = store / ("zarr.json" if zarr_format == 3 else ".zmetadata")
    whole = json.loads(before)
    entries = whole["consolidated_metadata"]["metadata"] if zarr_format == 3 else whole["metadata"]
    for key in [key for key in entries if key.split("/")[0] == "a"]:
        del entries[key]
    document.write_text(json.dumps(whole))
    said = zarrc("clean", store).err
    assert "out of date" in said and "zarrc consolidate" in said
    assert "--resume" in zarrc("mv", store / "a", store / "h/c", code=3).err
    zarrc("mv", "--skip-equal", store / "a", store / "h/c")
    assert {"h", "h/c"} < names(store, zarr_format)
    assert "no Zarr array" in zarrc("mv", "--skip-equal", store / "a", store / "h/c", code=3).err
    zarrc("consolidate", store)
    assert "out of date" not in zarrc("clean", store).err


def test_rm_force_of_an_empty_folder(zarrc, hierarchy):
    """An rm that is killed at its very end leaves folders, perhaps with the lock files of its last steps."""
    store, _ = hierarchy
    zarrc("rm", store / "a")
    (store / "a/c/0").mkdir(parents=True)
    (store / "a/.zarrc-job.__lock").touch()
    assert zarrc("rm", store / "a", code=3).code == 3
    zarrc("rm", "-rf", "--dry-run", store / "a")
    assert (store / "a").exists()
    zarrc("rm", "-rf", store / "a")
    assert not (store / "a").exists()
    (store / "notes").mkdir()
    (store / "notes/text").write_text("mine")
    zarrc("rm", "-rf", store / "notes", code=3)
    zarrc("rm", "-rf", store / "notes/text", code=3)
    assert (store / "notes/text").read_text() == "mine"


def test_rm_force_of_an_empty_store(zarrc, tmp_path):
    (tmp_path / "x.zarr").mkdir()
    (tmp_path / "x.zarr/.zarrc-work.__lock").touch()
    zarrc("rm", "-rf", tmp_path / "x.zarr")
    assert not (tmp_path / "x.zarr").exists()


@pytest.mark.parametrize("key", ["c/3", "zarr.json"])
@pytest.mark.parametrize("command", [["rm", "-r", "x.zarr/g"], ["create", "--force", "x.zarr/g/b", "--shape=3", "-t", "i1"],
                                     ["cp", "--force", "x.zarr/a", "x.zarr/g/b"], ["mv", "--force", "x.zarr/a", "x.zarr/g/b"],
                                     ["reencode", "--force", "x.zarr/a", "x.zarr/g/b"], ["import", "--force", "n.npy", "x.zarr/g/b"]],
                         ids=lambda words: words[0] if isinstance(words, list) else None)
def test_lock_wait_leaves_the_node(zarrc, tmp_path, command, key):
    """A writer holds the lock of one chunk for longer than --lock-wait: nothing was deleted."""
    store = tmp_path / "x.zarr"
    zarrc("create", "-q", "-g", store)
    np.save(tmp_path / "n.npy", np.arange(8, dtype="i2"))
    for name in ("a", "g/b"):
        zarrc("import", "-q", tmp_path / "n.npy", store / name, "--chunks=1")
    zarrc("consolidate", "-q", store)
    before = {p.relative_to(store): p.read_bytes() for p in store.rglob("*") if p.is_file()}
    lock = store / f"g/b/{key}.__lock"
    with open(lock, "w") as held:
        fcntl.fcntl(held, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))  # F_OFD_SETLK
        said = zarrc(*command, "--lock-wait=1", cwd=tmp_path, code=7).err
        assert "lock" in said and not (store / "g/b/.zarrc-job").exists()
    lock.unlink(missing_ok=True)
    shutil.rmtree(store / "g/b.zarrc-import", ignore_errors=True)
    assert {p.relative_to(store): p.read_bytes() for p in store.rglob("*") if p.is_file()} == before
    zarrc(*command, "--lock-wait=1", cwd=tmp_path)


@pytest.mark.parametrize("place", ["x.zarr/g/b", "y.zarr"])
def test_a_repeated_import_leaves_no_staging(zarrc, hierarchy, tmp_path, place):
    """Killed when the old array was gone and the new one was complete beside its place."""
    store, _ = hierarchy
    target, staged = tmp_path / place, tmp_path / f"{place}.zarrc-import"
    zarrc("import", "-q", "--force", tmp_path / "n.npy", target)
    shutil.copytree(target, staged)
    said = zarrc("clean", store if place.startswith("x") else target).err
    assert f"{staged.name}" in said and "zarrc rm -r" in said
    shutil.rmtree(target)
    if place.startswith("x"):
        assert "zarrc mv" in zarrc("clean", store).err
    zarrc("import", "-q", "--force", tmp_path / "n.npy", target)
    assert not staged.exists() and (zarr.open_array(target, mode="r")[:] == np.arange(1, 9)).all()


def test_a_document_that_cannot_be_changed_keeps_the_node(zarrc, hierarchy, tmp_path):
    """What would be listed wrongly is not deleted, unless --no-consolidate says so."""
    store, zarr_format = hierarchy
    document = store / (".zmetadata" if zarr_format == 2 else "g/zarr.json")
    if zarr_format == 3:
        zarrc("consolidate", "-q", store / "g")
    whole = document.read_text()
    document.write_text(whole.replace('"inline"', '"elsewhere"') if zarr_format == 3 else "{")
    path = store / ("a" if zarr_format == 2 else "g/b")
    said = zarrc("rm", path, code=4 if zarr_format == 2 else 6).err
    assert "would list a node that is gone" in said and "--no-consolidate" in said
    assert (zarr.open_array(path, mode="r", zarr_format=zarr_format)[:] == np.arange(1, 9)).all()
    zarrc("rm", "--no-consolidate", path)
    assert not path.exists()


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_rename_dim(zarrc, tmp_path, zarr_format):
    """Only the bytes of the names change, in place; xarray reads them, and consolidated metadata has them."""
    data = xarray.Dataset({"t": (("time", "lat"), np.ones((3, 4)), {"units": "K"}), "b": (("lat", "n"), np.ones((4, 2))),
                           "s": ((), 1)}, coords={"lat": np.arange(4.0)})
    top = tmp_path / "x.zarr"
    data.to_zarr(top, zarr_format=zarr_format, consolidated=True)
    document = top / "t" / ("zarr.json" if zarr_format == 3 else ".zattrs")
    text = document.read_text().replace('"K"', '"K",  "n" : [1.50e0, "\\u0041"]\n\n')
    if zarr_format == 3:
        text = text.replace("{", '{"x_unknown":{"must_understand": false, "dimension_names": ["lat"]},', 1)
    document.write_text(text)
    zarrc("consolidate", top)
    chunks = {p: p.stat().st_mtime_ns for p in top.rglob("*") if p.is_file() and not p.name.startswith((".z", "zarr.json"))}
    for words, code in [((top, "lat", "y"), 2), ((top / "t", "x", "y"), 3), ((top / "t", "lat", "time"), 5), ((top / "t", "lat", ""), 2),
                        (("-r", top, "x", "y"), 3), (("-r", top, "lat", "n"), 5), ((top / "s", "lat", "y"), 3)]:
        zarrc("attrs", "rename-dim", *words, code=code)
        assert document.read_text() == text, "a refused change"
    zarrc("attrs", "rename-dim", "-r", top, "lat", "y")
    assert document.read_text() == '"y"'.join(text.rsplit('"lat"', 1))
    assert {p: p.stat().st_mtime_ns for p in chunks} == chunks
    zarrc("consolidate", "--check", top)
    assert xarray.open_zarr(top, consolidated=True).sizes == {"time": 3, "y": 4, "n": 2}
    shown = zarrc("attrs", "rename-dim", "--json", top / "t", "time", "month").json
    assert shown["attributes"]["units"] == "K"
    zarrc("consolidate", "--check", top)
    assert xarray.open_zarr(top, consolidated=True).t.dims == ("month", "y")


def test_rename_dim_to_bytes_that_are_not_text(zarrc, tmp_path):
    """Such a name would leave a document that no reader opens."""
    array = zarr.create_array(tmp_path / "a.zarr", data=np.ones(3), dimension_names=["x"])
    assert "UTF-8" in zarrc("attrs", "rename-dim", tmp_path / "a.zarr", "x", "\udcff\udcfe", code=2).err
    assert zarr.open_array(tmp_path / "a.zarr").metadata == array.metadata


def make_array(folder, zarr_format, names):
    """Returns the document that has the names of dimensions."""
    array = zarr.create_array(folder, data=np.ones((1,) * len(names)), zarr_format=zarr_format, dimension_names=names if zarr_format == 3 else None)
    if zarr_format == 2:
        array.attrs["_ARRAY_DIMENSIONS"] = names
    return folder / ("zarr.json" if zarr_format == 3 else ".zattrs")


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_rename_dim_beside_other_writers(zarrc, tmp_path, zarr_format):
    """Processes that rename dimensions and that set attributes of one array lose nothing. A lock that another one holds is respected."""
    document = make_array(tmp_path / "a", zarr_format, ["a", "b"])
    commands = [[("rename-dim", tmp_path / "a", f"{name}{i or ''}", f"{name}{i + 1}") for i in range(8)] for name in "ab"] + [
        [("set", tmp_path / "a", f"{name}{i}", str(i)) for i in range(8)] for name in "xy"]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda row: [zarrc("attrs", *command) for command in row], commands))
    info = zarrc("info", "--json", tmp_path / "a").json
    assert info["dimension_names"] == ["a8", "b8"]
    assert {f"{name}{i}": i for name in "xy" for i in range(8)}.items() <= info["attributes"].items()
    before = document.read_bytes()
    with open(f"{document}.__lock", "w") as held:
        fcntl.fcntl(held, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))  # F_OFD_SETLK
        assert "lock" in zarrc("attrs", "rename-dim", "--lock-wait=1", tmp_path / "a", "a8", "c", code=7).err
        assert document.read_bytes() == before
        zarrc("attrs", "rename-dim", "--locks=none", tmp_path / "a", "a8", "c")
    assert document.read_bytes() == before.replace(b"a8", b"c")


def test_rename_dim_in_odd_documents(zarrc, tmp_path):
    """Documents that are spelled with escapes or are no text. None of them changes."""
    document = make_array(tmp_path / "a", 3, ["x", "y"])
    text = document.read_text()
    for odd, code in ((text.replace("dimension_names", "dimension_n\\u0061mes"), 6), (text + "\0", 4), (text[:-5], 4),
                      (text.replace('"y"', '"y", "z"'), 4), (text.replace('"x"', "{}"), 4)):
        document.write_text(odd)
        zarrc("attrs", "rename-dim", tmp_path / "a", "x", "lon", code=code)
        assert document.read_text() == odd
    document.write_text("\ufeff" + text.replace('"x"', '"\\u0078"'))
    zarrc("attrs", "rename-dim", tmp_path / "a", "x", 'lo"n')
    assert document.read_text() == "\ufeff" + text.replace('"x"', '"lo\\"n"')


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_rename_dim_after_a_kill(zarrc, tmp_path, zarr_format):
    """The command that renames what is left brings the metadata of all groups up to date, also of groups below."""
    data = xarray.Dataset({"t": (("time", "lat"), np.ones((3, 4)))})
    top = tmp_path / "x.zarr"
    data.to_zarr(top, zarr_format=zarr_format, consolidated=False)
    data.to_zarr(top, group="below", zarr_format=zarr_format, consolidated=False)
    zarrc("consolidate", top / "below")
    zarrc("consolidate", top)
    for path in ("t", "below/t"):
        zarrc("attrs", "rename-dim", "--no-consolidate", top / path, "lat", "y")
    zarrc("consolidate", "--check", top, code=1)
    zarrc("attrs", "rename-dim", "-r", top, "lat", "y", code=3)
    for path in (top, top / "below"):
        zarrc("consolidate", "--check", path)
    for path in (top, top / "below"):
        assert xarray.open_zarr(path, consolidated=True).t.dims == ("time", "y")
    said = zarrc("attrs", "rename-dim", "-r", "--no-consolidate", top, "y", "z").err
    assert said.count("may be out of date: --no-consolidate") == 2
