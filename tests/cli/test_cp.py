"""The commands that change a store: zarrc cp, mv, rm, resize, append, clean, consolidate."""
import json
import os
import shutil
import subprocess

import numpy as np
import pytest
import zarr
from conftest import PROGRAM, run


def files(top):
    return {p.relative_to(top).as_posix(): p.read_bytes()
            for p in sorted(top.rglob("*")) if p.is_file()}


@pytest.fixture
def store(tmp_path, rng):
    top = zarr.create_group(str(tmp_path / "x.zarr"), attributes={"t": 1})
    top.create_array("temp", shape=(100, 200), chunks=(10, 50), dtype="f4")[:] = \
        rng.random((100, 200))
    deep = top.create_group("deep")
    deep.create_array("b", shape=(64, 64), chunks=(8, 8), shards=(32, 32), dtype="i2")[:] = \
        np.arange(4096).reshape(64, 64)
    return tmp_path / "x.zarr"


def read(path):
    return zarr.open_array(str(path), mode="r")[...]


# ---- cp

def test_cp(zarrc, store, tmp_path):
    done = zarrc("cp", "--verify", "--json", store, tmp_path / "y.zarr").json
    assert files(store) == files(tmp_path / "y.zarr")
    assert done["objects"] == len(files(store)) and done["verified"] is True
    assert done["bytes"] == sum(map(len, files(store).values()))


def test_cp_of_a_node_into_a_new_hierarchy(zarrc, store, tmp_path):
    zarrc("cp", store / "temp", tmp_path / "new.zarr/a/b")
    assert files(store / "temp") == files(tmp_path / "new.zarr/a/b")
    assert zarr.open_group(str(tmp_path / "new.zarr"), mode="r")["a/b"].shape == (100, 200)


def test_cp_overwrites_only_with_force(zarrc, store, tmp_path):
    zarrc("cp", store / "temp", tmp_path / "y.zarr")
    before = files(tmp_path / "y.zarr")
    assert "exists" in zarrc("cp", store / "deep/b", tmp_path / "y.zarr", code=5).err
    assert files(tmp_path / "y.zarr") == before
    zarrc("cp", "--force", store / "deep/b", tmp_path / "y.zarr")
    assert files(tmp_path / "y.zarr") == files(store / "deep/b")


def test_cp_continues_an_earlier_copy(zarrc, store, tmp_path):
    zarrc("cp", store / "temp", tmp_path / "y.zarr")
    (tmp_path / "y.zarr/zarr.json").unlink()
    (tmp_path / "y.zarr/c/3/2").unlink()
    stays = tmp_path / "y.zarr/c/0/0"
    was = stays.stat()
    zarrc("cp", store / "temp", tmp_path / "y.zarr", code=5)
    zarrc("cp", "--skip-equal", "--verify", store / "temp", tmp_path / "y.zarr")
    assert files(store / "temp") == files(tmp_path / "y.zarr")
    assert (stays.stat().st_ino, stays.stat().st_mtime_ns) == (was.st_ino, was.st_mtime_ns)


@pytest.mark.parametrize("command", [["cp", "--force"], ["cp"], ["mv", "--force"],
                                     ["cp", "--force", "--skip-equal"]])
def test_what_is_no_node_is_never_deleted(zarrc, store, tmp_path, command):
    home = tmp_path / "home"
    home.mkdir()
    (home / "letter").write_text("dear")
    before = files(store)
    zarrc(*command, store, home, code=5)
    assert files(home) == {"letter": b"dear"} and files(store) == before


def test_cp_failures(zarrc, store, tmp_path):
    zarrc("cp", store / "nothing", tmp_path / "y.zarr", code=3)
    assert not (tmp_path / "y.zarr").exists()
    zarrc("cp", store, store / "deep/copy", code=2)
    zarrc("cp", store, code=2)


# ---- mv, rm

def test_mv(zarrc, store, tmp_path):
    before = files(store / "temp")
    zarrc("mv", store / "temp", store / "deep/renamed")
    assert files(store / "deep/renamed") == before and not (store / "temp/zarr.json").exists()
    zarrc("mv", "--json", store / "deep", tmp_path / "other.zarr")
    assert files(tmp_path / "other.zarr/renamed") == before
    zarrc("mv", store, store, code=2)
    assert (store / "zarr.json").exists()


@pytest.mark.parametrize("options", [[], ["--force"], ["--skip-equal"]])
def test_mv_inside_a_store_is_a_rename(zarrc, store, tmp_path, options):
    def inodes(folder):
        return {p.relative_to(folder): p.stat().st_ino for p in folder.rglob("*") if p.is_file()}
    before = inodes(store / "temp")
    if options == ["--force"]:
        zarrc("create", "--shape=2", "-t", "i1", store / "new")
    (tmp_path / "link.zarr").symlink_to(store)  # the same store by another name
    done = zarrc("mv", "--json", *options, store / "temp", tmp_path / "link.zarr/new").json
    assert inodes(store / "new") == before and done["objects"] == 0
    assert not (store / "temp").exists()
    zarrc("mv", *options, store / "new", store / "deep/g/new")
    assert inodes(store / "deep/g/new") == before and zarrc("info", store / "deep/g").text


def test_mv_of_a_whole_store_leaves_no_folder(zarrc, store, tmp_path):
    before = files(store)
    zarrc("mv", store, tmp_path / "new/other.zarr")
    assert files(tmp_path / "new/other.zarr") == before and not store.exists()


@pytest.mark.parametrize("option", ["--resume", "--skip-equal"])
@pytest.mark.parametrize("command", ["cp", "mv"])
def test_skipped_objects_are_not_copied(zarrc, store, tmp_path, command, option):
    """Two objects are missing at the destination. All others are counted apart."""
    sizes = {name: len(data) for name, data in files(store / "temp").items()}
    zarrc("cp", store / "temp", tmp_path / "y.zarr")
    for name in ("zarr.json", "c/3/2"):
        (tmp_path / "y.zarr" / name).unlink()
    done = zarrc(command, option, "--json", store / "temp", tmp_path / "y.zarr").json
    copied = sizes["zarr.json"] + sizes["c/3/2"]
    assert (done["objects"], done["bytes"]) == (2, copied)
    assert (done["objects_skipped"], done["bytes_skipped"]) == (len(sizes) - 2, sum(sizes.values()) - copied)


def test_skipped_objects_in_the_text(zarrc, store, tmp_path):
    zarrc("cp", store / "temp", tmp_path / "y.zarr")
    text = zarrc("cp", "--resume", store / "temp", tmp_path / "y.zarr").err
    assert "copied 0 objects" in text and f"skipped {len(files(store / 'temp'))} objects that were there" in text


def test_every_command_that_can_resume(zarrc, store, tmp_path):
    for command in (["cp"], ["reencode", "--chunks=50"], ["mv"]):
        assert "exclude each other" in zarrc(*command, "--resume", "--force", store / "temp", tmp_path / "n.zarr", code=2).err
        assert not (tmp_path / "n.zarr").exists()
        zarrc(*command, "--resume", store / "temp", tmp_path / f"{command[0]}.zarr")  # nothing was written yet
        if command[0] == "mv":
            zarrc("cp", tmp_path / "mv.zarr", store / "temp")
        zarrc(*command, "--resume", store / "temp", tmp_path / f"{command[0]}.zarr")  # it is complete
    zarrc("create", "--zarr-format=2", "--shape=2", "--dtype=int8", tmp_path / "v2.zarr")
    for _ in range(2):
        zarrc("migrate", "--resume", tmp_path / "v2.zarr")
    assert (tmp_path / "v2.zarr/zarr.json").exists()


def test_mv_continues_an_earlier_move(zarrc, store, tmp_path):
    before = files(store / "temp")
    zarrc("cp", store / "temp", tmp_path / "y.zarr")
    (tmp_path / "y.zarr/zarr.json").unlink()
    zarrc("mv", store / "temp", tmp_path / "y.zarr", code=5)
    zarrc("mv", "--skip-equal", store / "temp", tmp_path / "y.zarr")
    assert files(tmp_path / "y.zarr") == before and not (store / "temp").exists()


@pytest.mark.parametrize("option", ["--resume", "--skip-equal", "--force"])
def test_mv_continues_the_delete_of_its_source(zarrc, store, tmp_path, option):
    """The job object of an mv without a source says that the copy is complete."""
    before = files(store / "temp")
    zarrc("cp", store / "temp", tmp_path / "y.zarr")
    zarrc("cp", store / "temp", tmp_path / "z.zarr")
    (store / "temp/zarr.json").unlink()
    job = {"zarrc_job": 1, "command": "mv", "destination": str(tmp_path / "y.zarr")}
    (store / "temp/.zarrc-job").write_text(json.dumps(job))
    command = f"zarrc mv --resume {store}:/temp {tmp_path}/y.zarr completes it"
    assert command in zarrc("mv", store / "temp", tmp_path / "y.zarr", code=3).err
    for other in ("none.zarr", "z.zarr"):
        assert command in zarrc("mv", option, store / "temp", tmp_path / other, code=3).err
    assert (store / "temp/c").exists()
    zarrc("mv", option, store / "temp", tmp_path / "y.zarr")
    assert files(tmp_path / "y.zarr") == before and not (store / "temp").exists()


@pytest.mark.parametrize("spelling", ["temp", ":/temp", "../s.zarr/./temp", "link", "gds:", "gds://"])
def test_resume_takes_any_spelling(zarrc, store, tmp_path, spelling):
    """The library names a place by its real path, whatever the URL and the path of its caller."""
    before = files(store / "temp")
    (store / "link").symlink_to("temp")
    if spelling.startswith("gds:"):
        source = f"{spelling}{store}:/temp"
    else:
        source = f"{store}{spelling}" if spelling[0] == ":" else f"{store}/{spelling.replace('s.zarr', store.name)}"
    zarrc("cp", store / "temp", tmp_path / "y.zarr")
    (tmp_path / "y.zarr/zarr.json").unlink()
    job = {"zarrc_job": 1, "command": "cp", "source": str((store / "temp").resolve())}
    (tmp_path / "y.zarr/.zarrc-job").write_text(json.dumps(job))
    zarrc("cp", "--resume", source, tmp_path / "y.zarr")
    assert files(tmp_path / "y.zarr") == before


def test_mv_of_an_empty_folder(zarrc, store, tmp_path):
    """Only --resume takes it for what an interrupted move left."""
    zarrc("cp", store / "temp", tmp_path / "y.zarr")
    (store / "empty").mkdir()
    assert "there is nothing to move" in zarrc("mv", "--force", store / "empty", tmp_path / "y.zarr", code=3).err
    assert (store / "empty").exists()
    zarrc("mv", "--resume", store / "empty", tmp_path / "y.zarr")
    assert not (store / "empty").exists()


def test_mv_does_not_complete_an_rm(zarrc, store, tmp_path):
    zarrc("cp", store / "temp", tmp_path / "y.zarr")
    (store / "temp/zarr.json").unlink()
    (store / "temp/.zarrc-job").write_text('{"zarrc_job": 1, "command": "rm"}')
    zarrc("mv", "--resume", store / "temp", tmp_path / "y.zarr", code=3)
    assert (store / "temp/c").exists()


def test_rm(zarrc, store, tmp_path):
    assert "-r" in zarrc("rm", store / "deep", code=2).err
    assert (store / "deep/b/zarr.json").exists()
    zarrc("rm", "-n", "-r", store / "deep")
    assert (store / "deep/b/zarr.json").exists()
    zarrc("rm", store / "temp")
    assert not (store / "temp").exists()
    assert zarrc("rm", "-r", "--json", store / "deep").json[0]["deleted"] is True
    assert files(store).keys() == {"zarr.json"}
    zarrc("rm", store / "temp", code=3)
    zarrc("rm", "-f", store / "temp")
    zarrc("rm", store)
    assert not store.exists()


def test_unknown_codecs(zarrc, store, tmp_path):
    """cp, mv and rm handle the stored bytes only, so they need no codec."""
    array = next(p.parent for p in sorted(store.rglob("zarr.json")) if '"array"' in p.read_text())
    document = json.loads((array / "zarr.json").read_text())
    (array / "zarr.json").write_text(json.dumps({**document, "codecs": [{"name": "snake"}]}))
    zarrc("info", array, code=6)
    zarrc("cp", "--verify", array, tmp_path / "copy.zarr")
    assert files(tmp_path / "copy.zarr") == files(array)
    zarrc("mv", tmp_path / "copy.zarr", tmp_path / "moved.zarr")
    assert files(tmp_path / "moved.zarr") == files(array)
    zarrc("rm", tmp_path / "moved.zarr")
    assert not (tmp_path / "moved.zarr").exists()


def test_rm_stays_inside(zarrc, store, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "letter").write_text("dear")
    (store / "deep/link").symlink_to(outside)
    zarrc("rm", "-r", store / "deep", code=None)
    assert files(outside) == {"letter": b"dear"}
    zarrc("rm", "-r", f"{store}:/../outside", code=2)
    assert files(outside) == {"letter": b"dear"}


# ---- resize, append

def test_resize(zarrc, store):
    a = read(store / "temp")
    zarrc("resize", store / "temp", "50,-")
    np.testing.assert_array_equal(read(store / "temp"), a[:50])
    assert not (store / "temp/c/5/0").exists() and (store / "temp/c/4/0").exists()
    zarrc("resize", "--keep-chunks", store / "temp", "20,200")
    done = zarrc("resize", "--json", store / "temp", "50,200").json
    assert done["shape"] == [50, 200]
    np.testing.assert_array_equal(read(store / "temp"), a[:50])
    for wrong in ("5", "5,5,5", "a,b", "-1,5", ""):
        zarrc("resize", store / "temp", wrong, code=2)
    zarrc("resize", store / "deep", "5", code=2)


@pytest.mark.parametrize("axis, shape", [(0, (7, 200)), (1, (100, 3)), (-1, (100, 1))])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f4", ">f4"])
def test_append_npy(zarrc, store, tmp_path, rng, axis, shape, order, dtype):
    a = read(store / "temp")
    more = np.array(rng.random(shape), dtype=dtype, order=order)
    np.save(tmp_path / "more.npy", more)
    zarrc("append", f"--axis={axis}", store / "temp", tmp_path / "more.npy")
    np.testing.assert_array_equal(read(store / "temp"), np.concatenate([a, more], axis))


def test_append_streams(zarrc, store, tmp_path, rng):
    a = read(store / "temp")
    more = rng.random((37, 200)).astype("f4")
    np.save(tmp_path / "more.npy", more)
    zarrc("append", store / "temp", "-", input=(tmp_path / "more.npy").read_bytes())
    a = np.concatenate([a, more])
    np.testing.assert_array_equal(read(store / "temp"), a)
    done = zarrc("append", "--format=raw", "--json", store / "temp", "-", input=more.tobytes()).json
    assert done["appended"] == 37 and done["shape"] == [174, 200]
    np.testing.assert_array_equal(read(store / "temp"), np.concatenate([a, more]))
    zarrc("append", "--format=raw", store / "temp", "-", input=b"12345", code=4)
    zarrc("append", "--format=raw", "--axis=1", store / "temp", "-", input=b"1234", code=2)
    (tmp_path / "raw").write_bytes(more[:2].astype(">f4").tobytes())
    zarrc("append", "--format=raw", "--byte-order=big", store / "temp", tmp_path / "raw")
    np.testing.assert_array_equal(read(store / "temp")[-2:], more[:2])


def test_append_refuses(zarrc, store, tmp_path):
    before = files(store)
    for name, array in (("type", np.zeros((2, 200))), ("shape", np.zeros((2, 100), "f4")),
                        ("rank", np.zeros((1, 2, 200), "f4"))):
        np.save(tmp_path / f"{name}.npy", array)
        zarrc("append", store / "temp", tmp_path / f"{name}.npy", code=2)
    (tmp_path / "odd").write_bytes(b"1" * 801)
    zarrc("append", store / "temp", tmp_path / "odd", code=2)
    np.save(tmp_path / "short.npy", np.zeros((2, 200), "f4"))
    short = (tmp_path / "short.npy").read_bytes()[:-4]
    (tmp_path / "short.npy").write_bytes(short)
    zarrc("append", store / "temp", tmp_path / "short.npy", code=4)
    zarrc("append", store / "temp", tmp_path / "none.npy", code=3)
    zarrc("append", "--axis=2", store / "temp", tmp_path / "odd", code=2)
    assert files(store) == before


def test_append_says_where(zarrc, tmp_path):
    """The steps of a stream may land in several places if others append between its pieces."""
    zarrc("create", tmp_path / "x.zarr", "--shape=3", "-t", "int32", "--chunks=4")
    np.arange(5, dtype="<i4").tofile(tmp_path / "d.raw")
    done = zarrc("append", "--json", tmp_path / "x.zarr", tmp_path / "d.raw").json
    assert done["ranges"] == [[3, 8]] and done["shape"] == [8]
    assert "at 8:13" in zarrc("append", tmp_path / "x.zarr", tmp_path / "d.raw").err
    with subprocess.Popen([PROGRAM, "append", "--json", "--format=raw", tmp_path / "x.zarr", "-"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as stream:
        out = stream.communicate((tmp_path / "d.raw").read_bytes() * 4)[0]
    assert json.loads(out)["ranges"] == [[13, 33]]


# ---- clean, consolidate

def test_clean(zarrc, store):
    before = files(store)
    debris = [store / "temp/c/0/.zarrc-tmp-999999-0123456789abcdef", store / "temp/c/0/0.__lock"]
    for path in debris:
        path.write_bytes(b"x")
    dry = zarrc("clean", "-n", store)
    assert dry.text == "" and "and 2 younger" in dry.err
    assert len(zarrc("clean", "-n", "--age=0", store).text.splitlines()) == 2
    assert zarrc("clean", "--json", store).json["removed"] == 0  # too young
    assert zarrc("clean", "--json", "--age=0", store).json["removed"] == 2
    assert files(store) == before
    zarrc("clean", "--age=x", store, code=2)


def test_consolidate(zarrc, store):
    zarrc("consolidate", store)
    top = zarr.open_consolidated(str(store))
    assert sorted(k for k, _ in top.members(max_depth=None)) == ["deep", "deep/b", "temp"]
    zarrc("consolidate", "--check", store)
    zarrc("resize", store / "temp", "60,200")
    zarrc("consolidate", "--check", store)
    printed = zarrc("resize", "--no-consolidate", store / "temp", "50,200").err
    assert "consolidated" in printed
    done = zarrc("consolidate", "--check", "--json", store, code=1).json
    assert done["differences"][0]["path"] == "temp"
    zarrc("consolidate", store)
    zarrc("consolidate", "--check", store)
    zarrc("consolidate", store / "temp", code=2)


def test_commands_keep_consolidated_metadata_up_to_date(zarrc, tmp_path, rng):
    """After each command that changes nodes, zarr-python finds the nodes in the consolidated metadata."""
    top = tmp_path / "x.zarr"
    np.save(tmp_path / "n.npy", np.arange(4, dtype="i2"))
    for form in (2, 3):
        zarrc("create", "-g", top, f"--zarr-format={form}")
        zarrc("create", top / "g/a", f"--zarr-format={form}", "--shape=4", "-t", "int16")
        zarrc("consolidate", top / "g")
        zarrc("consolidate", top)
        for command in [
                ["create", top / "g/new/groups/b", f"--zarr-format={form}", "--shape=2", "-t", "uint8"],
                ["create", "-g", top / "empty", f"--zarr-format={form}"],
                ["import", tmp_path / "n.npy", top / "g/c", f"--zarr-format={form}"],
                ["import", tmp_path / "n.npy", top / "g/c", f"--zarr-format={form}", "--force"],
                ["attrs", "set", top / "g/c", "x", "[1, 2]"], ["attrs", "del", top / "g/c", "x"],
                ["attrs", "set", top / "g", "y", "1"], ["attrs", "merge", top, '{"z": 0.5}'],
                ["resize", top / "g/c", "7"], ["append", top / "g/c", tmp_path / "n.npy"],
                ["cp", top / "g/c", top / "d"], ["cp", top / "g/new", top / "copied"],
                ["mv", top / "g/new", top / "g/moved"], ["reencode", top / "g/c", top / "e", "--chunks=2"],
                ["rm", "-r", top / "g/moved"], ["rm", top / "d"]]:
            zarrc(*command)
            for group in (top, top / "g"):
                zarrc("consolidate", "--check", group)
        found = zarr.open_consolidated(str(top), zarr_format=form)
        names = sorted(k for k, _ in found.members(max_depth=None))
        assert names == ["copied", "copied/groups", "copied/groups/b", "e", "empty", "g", "g/a", "g/c"]
        if form == 2:
            zarrc("migrate", top / "g", "--remove-old")
            zarrc("consolidate", "--check", top)
        zarrc("rm", "-r", top)


def test_no_consolidate(zarrc, store):
    zarrc("consolidate", store)
    said = zarrc("attrs", "set", "--no-consolidate", store / "temp", "a", "1").err
    assert "zarrc consolidate updates it" in said
    assert zarrc("consolidate", "--check", "--json", store, code=1).json["differences"]
    # a command that fails half-way still brings what it changed up to date
    zarrc("attrs", "set", store / "temp", "a", "2")
    zarrc("attrs", "del", store / "temp", "a", "none", code=3)
    zarrc("consolidate", "--check", store)


@pytest.mark.parametrize("command", [
    ["attrs", "set", "g/a", "k", "1"], ["attrs", "del", "g/a", "old"], ["attrs", "merge", "g", '{"k": 1}'],
    ["create", "g/new", "--shape=4", "-t", "i1"], ["create", "-g", "g/new"], ["create", "--force", "g/a", "--shape=4", "-t", "i1"],
    ["import", "n.npy", "g/new"], ["import", "--force", "n.npy", "g/a"], ["cp", "g/a", "g/new"], ["cp", "--force", "g/b", "g/a"],
    ["cp", "g", "new"], ["mv", "g/a", "g/new"], ["mv", "g", "new"], ["rm", "g/a"], ["rm", "-r", "g"], ["resize", "g/a", "7"],
    ["append", "g/a", "n.npy"], ["reencode", "g/a", "g/new"], ["reencode", "--force", "--chunks=2", "g/b", "g/a"],
    ["migrate", "--remove-old", "g"]], ids=" ".join)
def test_no_consolidate_of_each_command(zarrc, tmp_path, command):
    """With the option the entries stay as they are, with a warning; without it they are right, in every group above."""
    top = tmp_path / "x.zarr"
    form = 2 if command[0] == "migrate" else 3
    zarrc("create", "-g", top, f"--zarr-format={form}")
    for name, length in (("a", 4), ("b", 5)):
        zarrc("create", top / f"g/{name}", f"--zarr-format={form}", f"--shape={length}", "-t", "i2", '--attributes={"old": 0}')
    for group in ("g", ""):
        zarrc("consolidate", "-q", top / group)
    np.save(top / "n.npy", np.arange(4, dtype="i2"))
    shutil.copytree(top, tmp_path / "y.zarr")
    said = zarrc(*command, "--no-consolidate", cwd=top).err
    assert "zarrc consolidate updates it" in said and "consolidated metadata of" in said
    if command[0] != "migrate":  # in the new format there is none
        assert zarrc("consolidate", "--check", "--json", top, code=1).json["differences"]
    assert "consolidate" not in zarrc(*command, cwd=tmp_path / "y.zarr").err
    for group in ("y.zarr", "y.zarr/g", "y.zarr/new"):
        if (tmp_path / group / "zarr.json").exists() and "node_type\": \"group" in (tmp_path / group / "zarr.json").read_text():
            done = zarrc("consolidate", "--check", "--json", tmp_path / group, code=None)
            assert done.code == 0 or "no consolidated metadata" in done.err, (group, done.out, done.err)


def test_damaged_consolidated_metadata_is_a_warning(zarrc, tmp_path):
    zarrc("create", tmp_path / "x.zarr/a", "--zarr-format=2", "--shape=4", "-t", "<i4")
    (tmp_path / "x.zarr/.zmetadata").write_text("{")
    said = zarrc("attrs", "set", tmp_path / "x.zarr/a", "k", "1").err
    assert ".zmetadata" in said and "out of date" in said
    assert zarrc("attrs", "get", tmp_path / "x.zarr/a", "k").text.strip() == "1"


def test_consolidate_v2(zarrc, tmp_path):
    top = zarr.create_group(str(tmp_path / "x.zarr"), zarr_format=2)
    top.create_array("a", shape=(3,), dtype="i4")
    zarrc("consolidate", tmp_path / "x.zarr")
    assert list(zarr.open_consolidated(str(tmp_path / "x.zarr"), zarr_format=2)) == ["a"]


@pytest.mark.parametrize("command", ["cp", "mv", "rm", "resize", "append", "reencode", "verify",
                                     "diff", "clean", "consolidate", "plot"])
def test_help(zarrc, command):
    text = zarrc(command, "--help").text
    assert f"usage: zarrc {command}" in text.lower()
    zarrc(command, "--no-such-option", code=2)
    done = subprocess.run([PROGRAM, command, "--json"], capture_output=True)
    assert done.returncode == 2 and b'"error"' in done.stderr


def test_consolidate_never_replaces_other_objects(zarrc, tmp_path):
    for name in "ab":
        zarrc("create", f"t.zarr/{name}", "--zarr-format=2", "--shape=4", "-t", "<i4", cwd=tmp_path)
    (tmp_path / "t.zarr/notes").write_text("mine")
    before = files(tmp_path / "t.zarr")
    for key in [".zgroup", ".zarray", ".zattrs", "zarr.json", "a/.zarray", "a/0"]:
        zarrc("consolidate", "t.zarr", f"--key={key}", code=2, cwd=tmp_path)
    zarrc("consolidate", "t.zarr", "--key=notes", code=5, cwd=tmp_path)
    assert files(tmp_path / "t.zarr") == before
    for _ in range(2):
        zarrc("consolidate", "t.zarr", "--key=other", cwd=tmp_path)


@pytest.mark.parametrize("separator", ["/", "."])
def test_rm_shows_progress(zarrc, tmp_path, separator):
    array = zarr.create_array(tmp_path / "x.zarr/a", shape=(300,), chunks=(1,), dtype="i1",
                              chunk_key_encoding={"name": "default", "separator": separator})
    array[:] = 1
    zarrc("create", "-g", tmp_path / "x.zarr")
    lines = [json.loads(line) for line in
             zarrc("rm", "-r", "--progress=json", tmp_path / "x.zarr").err.splitlines() if line.startswith("{")]
    assert lines and lines[-1]["progress"] == "rm" and lines[-1]["done_items"] == lines[-1]["total_items"] == 302
    assert not (tmp_path / "x.zarr").exists()


def test_rm_of_links_keeps_what_they_name(zarrc, store, tmp_path):
    zarrc("cp", store, tmp_path / "other.zarr")
    before = files(tmp_path / "other.zarr")
    (store / "deep/linked").symlink_to(tmp_path / "other.zarr")
    (store / "deep/gone").symlink_to(tmp_path / "nothing")
    (store / "temp/c/link").symlink_to(tmp_path / "other.zarr/temp")
    zarrc("rm", "-r", store)
    assert files(tmp_path / "other.zarr") == before and not store.exists()


@pytest.mark.parametrize("place", ["", "/temp", "/"])
def test_rm_of_a_link_to_a_store_keeps_the_store(zarrc, store, tmp_path, place):
    """As rm does: a link is often the name of the only copy on another disk."""
    before = files(store)
    (tmp_path / "link.zarr").symlink_to(f"{store}{place}")
    word = f"{tmp_path}/link.zarr{'/' if place == '/' else ''}"
    assert zarrc("rm", "-r", "-n", "--json", word).json[0]["objects"] == 0
    assert (tmp_path / "link.zarr").is_symlink()
    zarrc("rm", "-r", word)
    assert files(store) == before and not (tmp_path / "link.zarr").is_symlink()


@pytest.mark.parametrize("place", ["", "/temp", "/"])
def test_mv_of_a_link_to_a_store_is_refused(zarrc, store, tmp_path, place):
    """The copy and deletion of another store's node would empty the only copy."""
    before = files(store)
    (tmp_path / "y.zarr").mkdir()
    (tmp_path / "link.zarr").symlink_to(f"{store.name}{place}")  # relative to tmp_path
    word = f"{tmp_path}/link.zarr{'/' if place == '/' else ''}"
    for option in ([], ["--force"], ["--resume"]):
        for new in [tmp_path / "new.zarr", tmp_path / "y.zarr/a", store / "a"]:
            refused = zarrc("mv", *option, word, new, code=6)
            assert "is a link to" in refused.err and "name it instead of the link" in refused.err
            assert (tmp_path / "link.zarr").is_symlink() and files(store) == before and not new.exists()


def test_deep_groups(zarrc, tmp_path):
    """1,200 groups in each other: none is left out of a copy or a deletion."""
    (tmp_path / "deep").mkdir()
    folder = os.open(tmp_path / "deep", os.O_RDONLY)
    for depth in range(1201):
        with open("zarr.json", "w", opener=lambda p, flags: os.open(p, flags, 0o666, dir_fd=folder)) as f:
            f.write('{"zarr_format": 3, "node_type": "group"}')
        if depth < 1200:
            os.mkdir("a", dir_fd=folder)
            inner = os.open("a", os.O_RDONLY, dir_fd=folder)
            os.close(folder)
            folder = inner
    os.close(folder)
    zarrc("cp", tmp_path / "deep", tmp_path / "copy")
    assert "1201 groups" in zarrc("verify", tmp_path / "copy").err
    assert zarrc("rm", "-r", "--json", tmp_path / "copy").json[0]["objects"] == 1201
    assert not (tmp_path / "copy").exists()
    zarrc("rm", "-r", tmp_path / "deep")
    assert not (tmp_path / "deep").exists()


@pytest.mark.parametrize("what", ["new", "changed", "longer"])
def test_mv_keeps_what_is_written_meanwhile(tmp_path, what):
    """A chunk that another program writes during a move to another store is not deleted with the source."""
    n = 1500
    array = zarr.create_array(tmp_path / "x.zarr", shape=(n,), chunks=(1,), dtype="i4", compressors=None)
    array[:-1] = np.arange(1, n)
    late, place = tmp_path / "late", tmp_path / "x.zarr/c" / (str(n - 1) if what == "new" else "0")
    late.write_bytes(np.array([777] * (2 if what == "longer" else 1), "<i4").tobytes())
    process = subprocess.Popen([PROGRAM, "mv", "-j1", tmp_path / "x.zarr", tmp_path / "y.zarr"],
                               stderr=subprocess.PIPE)
    while process.poll() is None and not (tmp_path / "y.zarr/c/0").exists():
        pass
    assert process.poll() is None and place.parent.exists()
    late.replace(place)
    err = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 5 and "while the node was moved" in err and "--skip-equal --force" in err, err
    assert zarr.open_array(tmp_path / "x.zarr")[1] == 2 and place.exists() and (tmp_path / "y.zarr/.zarrc-job").exists()
    if what != "longer":
        run("mv", "--skip-equal", "--force", tmp_path / "x.zarr", tmp_path / "y.zarr")
        assert zarr.open_array(tmp_path / "y.zarr")[int(place.name)] == 777 and not (tmp_path / "x.zarr").exists()


def test_append_reads_standard_input_from_where_it_is(zarrc, tmp_path):
    """As in { read -r line; zarrc append x.zarr -; }, and for .npy files one after the other."""
    zarrc("create", tmp_path / "x.zarr", "--shape=0", "-t", "int32", "--chunks=4")
    (tmp_path / "raw").write_bytes(b"four" + np.arange(3, dtype="<i4").tobytes())
    with open(tmp_path / "raw", "rb", buffering=0) as file:
        file.seek(4)
        subprocess.run([PROGRAM, "append", "--format=raw", tmp_path / "x.zarr", "-"], stdin=file, check=True)
        assert file.read() == b""
    with open(tmp_path / "two", "wb") as file:
        np.save(file, np.array([7, 8], "<i4"))
        np.save(file, np.array([9], "<i4"))
    with open(tmp_path / "two", "rb", buffering=0) as file:
        for _ in range(2):
            subprocess.run([PROGRAM, "append", tmp_path / "x.zarr", "-"], stdin=file, check=True)
    assert read(tmp_path / "x.zarr").tolist() == [0, 1, 2, 7, 8, 9]


def test_rm_force_tells_what_it_cannot_look_at(zarrc, tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    assert "loop" in zarrc("rm", "-f", tmp_path / "loop/x.zarr/a", code=None).err
    zarrc("rm", "-f", tmp_path / "none.zarr/a")


def test_one_object_is_not_objects(zarrc, tmp_path):
    a, b, c = tmp_path / "a.zarr", tmp_path / "b.zarr", tmp_path / "c.zip"
    zarr.create_array(a, shape=4, chunks=4, dtype="i1")
    assert "copied 1 object," in zarrc("cp", a, b).err
    assert zarrc("mv", b, c).err.endswith(": 1 object copied\n")
    assert zarrc("rm", c).err.endswith(": 1 object\n")
    zarr.create_group(b).create_array("a", shape=4, chunks=4, dtype="i1")
    assert "with 1 node below it" in zarrc("rm", b, code=2).err
    zarr.create_group(tmp_path / "old", zarr_format=2)
    assert "1 document would" in zarrc("migrate", "--dry-run", tmp_path / "old").err
    assert "(1 node)" in zarrc("diff", "-v", a, a).err
