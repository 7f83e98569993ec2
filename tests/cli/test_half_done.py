"""Commands that fail after they changed something, with an exit code that is otherwise that of a refusal. Consolidated metadata says
what is there then. A command that the library refuses changes nothing, also no consolidated metadata."""
import json
import shutil

import numpy as np
import pytest
from test_failing_stores import inject


def write_objects(folder, chunks, filters, fill=None):
    """A v2 array of objects, whose chunks of 2 elements are given."""
    folder.mkdir(parents=True)
    (folder / ".zarray").write_text(json.dumps({
        "zarr_format": 2, "shape": [2 * len(chunks)], "chunks": [2], "dtype": "|O", "compressor": None, "fill_value": fill, "order": "C",
        "filters": [{"id": filters}]}))
    for i, chunk in enumerate(chunks):
        (folder / str(i)).write_bytes(chunk)


def names(store):
    return sorted(json.loads((store / ".zmetadata").read_text())["metadata"])


TEXT = b"\x94\xa1a\xa1b\xa2|O\x91\x02"  # msgpack2: "a", "b"
BIN = b"\x94\xa1a\xc4\x01b\xa2|O\x91\x02"  # the second is bytes, which no array has here
LARGE = json.dumps([1 << 96, 1, "|O", [2]]).encode()  # json2 has integers of any size, msgpack2 has not


@pytest.fixture
def store(zarrc, tmp_path):
    zarrc("create", "-q", "-g", "--zarr-format=2", tmp_path / "x.zarr")
    for name in "ab":
        zarrc("create", "-q", "--zarr-format=2", "--shape=4", "-t", "i4", tmp_path / "x.zarr" / name)
    zarrc("consolidate", "-q", tmp_path / "x.zarr")
    return tmp_path / "x.zarr"


@pytest.mark.parametrize("chunk,filters,options,code", [(BIN, "msgpack2", [], 6), (LARGE, "json2", ["--codec=msgpack2"], 2)],
                         ids=["unsupported", "invalid"])
def test_reencode_over_a_node(zarrc, store, tmp_path, chunk, filters, options, code):
    write_objects(tmp_path / "y.zarr", [chunk], filters)
    zarrc("reencode", "--force", *options, tmp_path / "y.zarr", store / "b", code=code)
    assert not (store / "b/.zarray").exists() and names(store) == [".zgroup", "a/.zarray"]
    zarrc("consolidate", "--check", store)


def test_resize(zarrc, store):
    write_objects(store / "o", [TEXT, BIN], "msgpack2")
    zarrc("consolidate", "-q", store)
    said = zarrc("resize", store / "o", "3", code=6).err
    assert "has its new shape" in said
    assert json.loads((store / ".zmetadata").read_text())["metadata"]["o/.zarray"]["shape"] == [3]
    zarrc("consolidate", "--check", store)


@pytest.mark.parametrize("command", ["cp", "mv"])
def test_an_object_vanishes(zarrc, store, tmp_path, command):
    np.save(tmp_path / "n.npy", np.arange(4, dtype="i4"))
    zarrc("import", "-q", "--chunks=1", tmp_path / "n.npy", tmp_path / "y.zarr")
    done = inject(tmp_path / "log", "openat2:error=ENOENT", [command, "--force", "y.zarr", "x.zarr/b"], tmp_path, ["-P", "c/3"])
    assert done.returncode == 5 and "vanished" in done.stderr, done.stderr
    assert names(store) == [".zgroup", "a/.zarray"]
    zarrc("consolidate", "--check", store)


def test_with_no_consolidate(zarrc, store, tmp_path):
    write_objects(tmp_path / "y.zarr", [BIN], "msgpack2")
    before = (store / ".zmetadata").read_bytes()
    said = zarrc("reencode", "--force", "--no-consolidate", tmp_path / "y.zarr", store / "b", code=6).err
    assert "may be out of date; zarrc consolidate updates it" in said
    assert (store / ".zmetadata").read_bytes() == before


@pytest.mark.parametrize("command,code", [
    (["cp", "a", "b"], 5), (["mv", "a", "b"], 5), (["reencode", "a", "b"], 5), (["create", "b", "--shape=4", "-t", "i4"], 5),
    (["create", "c", "--shape=4", "-t", "nothing"], 6), (["import", "n.npy", "b"], 5), (["resize", "b", "1,2"], 2), (["append", "b", "w.npy"], 2),
    (["cp", "none", "b"], 3), (["rm", "."], 2)], ids=lambda value: " ".join(value) if isinstance(value, list) else None)
def test_a_refused_command_changes_nothing(zarrc, store, command, code):
    """Also if another program left consolidated metadata out of date: that is no work of a command that does nothing."""
    np.save(store / "n.npy", np.arange(4, dtype="i4"))
    np.save(store / "w.npy", np.arange(4, dtype="f8"))
    metadata = json.loads((store / "b/.zarray").read_text())
    (store / "b/.zarray").write_text(json.dumps(metadata | {"shape": [8]}))
    before = (store / ".zmetadata").read_bytes()
    said = zarrc(*command, cwd=store, code=None)
    assert said.code == code and "out of date" not in said.err, (said.code, said.err)
    assert (store / ".zmetadata").read_bytes() == before


# ---- a move whose copy cannot be flushed -----------------------------------------------

@pytest.mark.parametrize("options", [[], ["--force"]], ids=["new", "force"])
def test_move_without_a_flush(zarrc, tmp_path, options):
    """Nothing of the source is deleted. --skip-equal, which would delete it, is not what the message advises."""
    np.save(tmp_path / "n.npy", np.arange(4, dtype="i4"))
    for where in ["y.zarr", "x.zarr/a"] + (["x.zarr/b"] if options else []):
        zarrc("import", "-q", tmp_path / "n.npy", tmp_path / where)
    before = {p.name: p.read_bytes() for p in sorted((tmp_path / "y.zarr").rglob("*")) if p.is_file()}
    for json_option in ([], ["--json"]):
        place = shutil.copytree(tmp_path, tmp_path.parent / f"{tmp_path.name} {len(json_option)}")
        done = inject(tmp_path / "log", "syncfs:error=EIO:when=1", ["mv", *options, *json_option, "y.zarr", "x.zarr/b"], place)
        assert done.returncode == 3
        assert {p.name: p.read_bytes() for p in sorted((place / "y.zarr").rglob("*")) if p.is_file()} == before
        assert "cannot be deleted" not in done.stderr and "Both are complete" not in done.stderr
        assert "may not be on the disk" in done.stderr and "Do not continue with --resume" in done.stderr
        assert "zarrc rm -r x.zarr:/b removes the copy" in done.stderr
        found = zarrc("info", "x.zarr/b", cwd=place, code=None)
        assert "use --force instead of --resume" in found.err + found.text
    error = json.loads(done.stderr.splitlines()[-1])["error"]
    assert error["code"] == "io" and error["exit"] == 3 and "Input/output error" in error["why"]
    again = inject(tmp_path / "log", "syncfs:error=EIO:when=1", ["mv", "--skip-equal", "y.zarr", "x.zarr/b"], place)
    assert again.returncode == 3 and "Do not continue" in again.stderr and (place / "y.zarr/zarr.json").exists()
    zarrc("mv", "--force", "y.zarr", "x.zarr/b", cwd=place)
    zarrc("diff", tmp_path / "y.zarr", place / "x.zarr/b")
    assert not (place / "y.zarr").exists()
