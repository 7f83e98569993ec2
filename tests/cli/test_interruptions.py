"""Commands that were killed: the next command names those that continue or remove what is left."""
import json
import os
import shlex
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest
import zarr
from conftest import PROGRAM

pytestmark = pytest.mark.zarr_makes_input

JOB = ".zarrc-job"


def files(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def templates(tmp_path_factory):
    """The stores that the tests of this file start with. No command changes a file in place, so a test gets links to theirs."""
    folder = tmp_path_factory.mktemp("templates")
    top = zarr.create_group(folder / "x.zarr")
    top.create_group("g", attributes={"a": 1})
    for name in ("a", "g/b"):
        array = top.create_array(name, shape=(900,), chunks=(1,), dtype="i2", fill_value=-1)
        array[:] = np.arange(900)
    zarr.create_array(folder / "b.zarr", shape=(900,), chunks=(1,), dtype="i2", fill_value=-1)[:] = 7
    return folder


@pytest.fixture
def store(templates, tmp_path):
    return shutil.copytree(templates / "x.zarr", tmp_path / "x.zarr", copy_function=os.link)


def kill_during(arguments, seen, cwd):
    """Runs zarrc and kills it -9 as soon as `seen` returns true. Returns whether it was killed at work."""
    process = subprocess.Popen([PROGRAM, *map(str, arguments)], cwd=cwd, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while process.poll() is None and not seen() and time.monotonic() < end:
        time.sleep(0.0003)
    process.send_signal(signal.SIGKILL)
    return process.wait(60) == -signal.SIGKILL


def commands_in(text):
    """The zarrc commands that a message names, as argument lists."""
    return [shlex.split(part.split(" continues")[0].split(" removes")[0].split(" completes")[0])
            for part in text.replace("zarrc: ", "").split("zarrc ")[1:]]


def leave_copy(zarrc, store, target, command="cp", source=None):
    """What a copy leaves that was killed before the documents. The source of the message is exact."""
    zarrc("cp", store, target)
    for document in ("zarr.json", "g/zarr.json"):
        (target / document).unlink()
    (target / JOB).write_text(json.dumps({"zarrc_job": 1, "command": command, "source": str(source or store)}))


def test_killed_copy(zarrc, store, tmp_path):
    target = tmp_path / "y.zarr"
    if not kill_during(["cp", store, target], lambda: (target / "a/c").exists(), tmp_path):
        pytest.skip("the copy was complete before it was killed")
    if (target / "zarr.json").exists():
        pytest.skip("it was killed at the last file")
    assert (target / JOB).exists() and not (target / "zarr.json").exists()
    for command in (["info", target], ["ls", target], ["cat", target / "a"], ["verify", target], ["plot", "-o-", target],
                    ["rm", target / "a"]):
        found = zarrc(*command, code=None)
        assert found.code in (2, 3) and "interrupted cp" in found.err, command
    for command in (["cp", store, target], ["create", "-g", target], ["create", "-t", "i1", "--shape=2", target],
                    ["reencode", store, target], ["mv", store, target], ["cp", store / "a", target, "--skip-equal"]):
        found = zarrc(*command, code=5)
        assert "interrupted cp" in found.err, command
    message = zarrc("info", target, code=3).err
    resume, remove = commands_in(message)
    assert resume[:2] == ["cp", "--resume"] and remove[:2] == ["rm", "-r"]
    zarrc(*resume)
    assert files(target) == files(store)


def test_killed_copy_of_an_archive(zarrc, store, tmp_path):
    """The hint names the archive, and the same command is known again however the archive is named."""
    archive, target = tmp_path / "x.zip", tmp_path / "y.zarr"
    zarrc("cp", store, archive)
    if not kill_during(["cp", f"{archive}/g", target], lambda: (target / "b/c").exists(), tmp_path):
        pytest.skip("the copy was complete before it was killed")
    resume, _ = commands_in(zarrc("cp", f"{archive}/g", target, code=5).err)
    assert resume == ["cp", "--resume", f"file://{archive}/g", str(target)]
    zarrc("cp", "--resume", f"zip:{archive}/g", target)
    assert np.array_equal(zarr.open(target)["b"][:], np.arange(900))
    (target / "zarr.json").unlink()
    (target / JOB).write_text(json.dumps({"zarrc_job": 1, "command": "cp", "source": resume[2]}))
    zarrc(*resume)
    assert files(target) == {name[2:]: data for name, data in files(store).items() if name.startswith("g/")}


def test_names_of_commands_work(zarrc, tmp_path):
    """Also if a path needs quotes, and from another folder."""
    (tmp_path / "a b").mkdir()
    store, target = tmp_path / "a b/it's.zarr", tmp_path / "y's z.zarr"
    zarrc("create", "-t", "i1", "--shape=2", store / "g/a")
    leave_copy(zarrc, store, target)
    resume, remove = commands_in(zarrc("info", target, code=3).err)
    zarrc(*resume, cwd="/")
    assert files(target) == files(store)
    (target / "zarr.json").unlink()
    (target / JOB).write_text('{"zarrc_job": 1, "command": "cp"}')
    assert commands_in(zarrc("info", target, code=3).err)[-1] == ["rm", "-r", str(target).rstrip(".")]
    zarrc("rm", target, code=2)
    assert zarrc("rm", "--json", *remove[1:]).json[0]["kind"] == "rest"
    assert not target.exists()


def test_skip_equal_with_force(zarrc, store, tmp_path):
    """It replaces what differs and deletes what the source does not have, as the message says."""
    target = tmp_path / "y.zarr"
    leave_copy(zarrc, store, target)
    (target / "a/c/7").write_bytes(b"other")
    (target / "a/c/899000").write_bytes(b"extra")
    message = zarrc("cp", "--skip-equal", store, target, code=5).err
    assert "--force" in message and "Nothing was changed" not in message
    zarrc("cp", "--skip-equal", "--force", store, target)
    assert files(target) == files(store)
    leave_copy(zarrc, store, target.with_name("z.zarr"), source="/other/place")
    message = zarrc("cp", "--skip-equal", store, tmp_path / "z.zarr", code=5).err
    assert "/other/place" in message and "--force" in message
    zarrc("cp", "--skip-equal", "--force", store, tmp_path / "z.zarr")
    assert files(tmp_path / "z.zarr") == files(store)
    leave_copy(zarrc, store, tmp_path / "w.zarr", command="rm")
    zarrc("cp", "--force", store, tmp_path / "w.zarr")
    assert files(tmp_path / "w.zarr") == files(store)


@pytest.mark.parametrize("command", ["cp", "mv"])
def test_skip_equal_with_surplus(zarrc, store, tmp_path, command):
    """A chunk that only the destination has would change elements of the copy. mv would delete the right ones."""
    target = tmp_path / "y.zarr"
    zarrc("cp", store, target)
    (store / "a/c/7").unlink()
    before = files(target)
    message = zarrc(command, "--skip-equal", store, target, code=5).err
    assert "a/c/7 exists, but the source lacks it" in message and "--force" in message
    assert files(target) == before and (store / "zarr.json").exists()
    (target / "a/c/7").unlink()
    expected = files(store)
    zarrc(command, "--skip-equal", store, target)
    assert files(target) == expected


def test_killed_move(zarrc, store, tmp_path):
    before, target = files(store), tmp_path / "y.zarr"
    leave_copy(zarrc, store, target, command="mv")
    assert "interrupted mv" in zarrc("info", target, code=3).err
    zarrc(*commands_in(zarrc("mv", store, target, code=5).err)[0])
    assert files(target) == before and not store.exists()


@pytest.mark.parametrize("moment", ["copy", "delete"])
def test_killed_move_to_another_store(zarrc, store, tmp_path, moment):
    """Until all is copied the source is a node and the destination is none; then it is the other way round."""
    before, target = files(store), tmp_path / "y.zarr"
    seen = {"copy": lambda: (target / "a/c").exists(), "delete": lambda: not (store / "zarr.json").exists()}
    if not kill_during(["mv", store, target], seen[moment], tmp_path):
        pytest.skip("the move was complete before it was killed")
    at = target if moment == "copy" and not (target / "zarr.json").exists() else store
    if not at.exists() or not (at / JOB).exists():
        pytest.skip("it was killed between the two, or at the last file")
    message = zarrc("info", at, code=3).err
    assert "interrupted mv" in message
    zarrc(*(commands_in(message)[0] if at == target else ["mv", "--resume", store, target]))
    zarrc("clean", "-q", "--age=0", target)  # the lock of the killed one
    assert files(target) == before and not store.exists()


@pytest.mark.parametrize("place", ["", "/g"])
def test_killed_rm(zarrc, store, tmp_path, place):
    target = tmp_path / f"x.zarr{place}"
    chunk = target / ("g/b/c/899" if not place else "b/c/899")
    if not kill_during(["rm", "-r", target], lambda: not (target / "zarr.json").exists() or not chunk.exists(),
                       tmp_path) or not target.exists():
        pytest.skip("the delete was complete before it was killed")
    if not (target / JOB).exists():
        pytest.skip("it was killed at the last file")
    found = zarrc("info", target, code=3)
    assert "interrupted rm" in found.err
    for command in (["cp", tmp_path / "other.zarr", target], ["create", "-g", target]):
        assert zarrc(*command, code=None).code in (3, 5)
    zarrc(*commands_in(found.err)[0])
    assert not target.exists()


def test_interrupted_rm_is_not_a_node(zarrc, store):
    (store / "g/zarr.json").unlink()
    (store / f"g/{JOB}").write_text('{"zarrc_job": 1, "command": "rm"}')
    found = zarrc("verify", store, code=1).text
    assert f"g/{JOB}" in found and "rm -r" in found
    assert zarrc("verify", "--json", store, code=1).json["faults"][0]["key"] == f"g/{JOB}"
    assert "rm -r" in zarrc("clean", store).err
    assert "rm -r" in zarrc("cat", store / "g/b2", code=3).err
    zarrc("rm", "-r", store / "g")
    assert zarrc("verify", store).text == "" and zarrc("clean", store).err.count("interrupted") == 0


@pytest.mark.parametrize("force", [False, True])
def test_killed_import(zarrc, tmp_path, force):
    np.save(tmp_path / "a.npy", np.arange(60000, dtype="i4"))
    target = tmp_path / "x.zarr/a"
    if force:
        zarrc("import", tmp_path / "a.npy", target)
    at = tmp_path / "x.zarr/a.zarrc-import" if force else target
    command = ["import", "--chunks=50", tmp_path / "a.npy", target, *["--force"] * force]
    zarrc("create", "-g", "--if-missing", tmp_path / "x.zarr")
    if not kill_during(command, lambda: (at / "c").exists(), tmp_path):
        pytest.skip("the import was complete before it was killed")
    assert "import was interrupted" in zarrc("info", at).err and "--force" in zarrc("info", at).err
    assert "import" in zarrc("verify", tmp_path / "x.zarr", code=1).text
    zarrc("import", "--chunks=50", "--force", tmp_path / "a.npy", target)
    assert not list((tmp_path / "x.zarr").rglob(JOB)) and "interrupted" not in zarrc("info", target).err
    assert (zarr.open_array(target)[:] == np.arange(60000)).all()
    if force:
        assert not at.exists()


def test_import_killed_before_its_last_step(zarrc, store):
    """The old array is deleted, the new one is complete, but not at its place yet."""
    (store / "a").rename(store / "a.zarrc-import")
    for command in ("info", "cat"):
        found = zarrc(command, store / "a", code=3).err
        assert "interrupted import" in found and "a.zarrc-import" in found
    arguments, = commands_in(found)
    zarrc(*arguments)
    assert (zarr.open_array(store / "a")[:] == np.arange(900)).all()
    assert not (store / "a.zarrc-import").exists()


@pytest.mark.parametrize("place", ["x.zarr/a", "y.zarr"])
def test_import_killed_while_it_deletes_the_old_array(zarrc, store, tmp_path, place):
    """The same command does it again: --force deletes the rest, and replaces the complete array next to it."""
    target = tmp_path / place
    zarrc("cp", store / "g/b", target, "--force")
    zarrc("cp", target, tmp_path / f"{place}.zarrc-import")
    for name in ("zarr.json", "c/0", "c/7"):
        (target / name).unlink()
    (target / JOB).write_text('{"zarrc_job": 1, "command": "rm"}')
    np.save(tmp_path / "a.npy", np.full(9, 5, "i2"))
    for command in (["import", tmp_path / "a.npy", target], ["create", "-ti2", "--shape=9", target]):
        assert "interrupted rm" in zarrc(*command, code=5).err
    zarrc("import", "--force", tmp_path / "a.npy", target)
    assert (zarr.open_array(target)[:] == 5).all()
    assert sorted(p.name for p in target.iterdir()) == ["c", "zarr.json"]
    assert not (tmp_path / f"{place}.zarrc-import").exists()
    (target / "zarr.json").unlink()
    (target / JOB).write_text('{"zarrc_job": 1, "command": "rm"}')
    zarrc("create", "--force", "-ti2", "--shape=9", target)
    assert (zarr.open_array(target)[:] == 0).all() and not (target / JOB).exists()


def test_import_that_fails_leaves_nothing(zarrc, tmp_path):
    (tmp_path / "a.csv").write_text("1,2\n3,x\n")
    zarrc("import", tmp_path / "a.csv", tmp_path / "x.zarr", code=None)
    assert not (tmp_path / "x.zarr").exists()


def test_killed_migrate(zarrc, tmp_path):
    for i in range(3):
        zarrc("create", "--zarr-format=2", "-t", "i1", "--shape=2", tmp_path / f"x.zarr/a{i}")
    zarrc("migrate", tmp_path / "x.zarr/a0")
    assert not (tmp_path / f"x.zarr/a0/{JOB}").exists()
    (tmp_path / f"x.zarr/{JOB}").write_text(
        '{"zarrc_job": 1, "command": "migrate", "source": "--zarr-format=3 --remove-old"}')
    found = zarrc("info", tmp_path / "x.zarr").err
    command, = commands_in(found)
    assert command == ["migrate", "--zarr-format=3", "--remove-old", str(tmp_path / "x.zarr")]
    zarrc(*command)
    assert not list(tmp_path.rglob(JOB)) and not list(tmp_path.rglob(".zarray"))


def test_killed_migrate_goes_on_with_its_options(zarrc, tmp_path):
    """With other options it would give half of the arrays another missing value."""
    top = zarr.create_group(tmp_path / "x.zarr", zarr_format=2)
    for i in range(300):
        top.create_array(f"a{i}", shape=(2,), dtype="i4", fill_value=7, attributes={"_ARRAY_DIMENSIONS": ["x"]})
    options = ["--keep-fill", "--no-consolidate"]
    if not kill_during(["migrate", *options, tmp_path / "x.zarr"],
                       lambda: list(tmp_path.glob("x.zarr/*/zarr.json")), tmp_path):
        pytest.skip("the migration was complete before it was killed")
    if not list(tmp_path.rglob(".zarray")):
        pytest.skip("it was killed at the last file")
    command, = commands_in(zarrc("info", tmp_path / "x.zarr").err)
    assert command == ["migrate", "--zarr-format=3", *options, str(tmp_path / "x.zarr")]
    zarrc(*command)
    assert all("_FillValue" not in a.attrs for _, a in zarr.open_group(tmp_path / "x.zarr", zarr_format=3).arrays())


def test_migrate_keeps_the_mark_of_another_command(zarrc, tmp_path):
    """An array that was not filled to its end does not look complete afterwards."""
    path = tmp_path / "x.zarr"
    zarrc("create", "--zarr-format=2", "--shape=4", "--dtype=int8", path)
    mark = '{"zarrc_job": 1, "command": "create"}'
    (path / JOB).write_text(mark)
    zarrc("migrate", path)
    assert (path / "zarr.json").exists() and (path / JOB).read_text() == mark


def test_move_of_a_group_with_attributes(zarrc, tmp_path):
    """In v2 they are a document of their own, which goes after the group's."""
    path, out = tmp_path / "x.zarr", tmp_path / "y.zarr"
    zarrc("create", "--group", "--zarr-format=2", path)
    zarrc("attrs", "set", path, "k", "1")
    before = files(path)
    zarrc("mv", path, out)
    assert files(out) == before and not path.exists()


def test_migrate_that_fails_before_it_writes_leaves_nothing(zarrc, tmp_path):
    zarrc("create", "--zarr-format=2", "--group", tmp_path / "x.zarr")
    zarrc("create", "--zarr-format=2", "-t", "i1", "--shape=2", tmp_path / "x.zarr/a")
    zarrc("create", "--zarr-format=2", "-t", "i1", "--shape=2", tmp_path / "x.zarr/b")
    (tmp_path / "x.zarr/b/.zarray").write_text("{")
    before = files(tmp_path)
    zarrc("migrate", tmp_path / "x.zarr", code=4)
    assert files(tmp_path) == before
    # but what an earlier migrate left is still known
    (tmp_path / f"x.zarr/{JOB}").write_text('{"zarrc_job": 1, "command": "migrate", "source": "--zarr-format=3"}')
    zarrc("migrate", tmp_path / "x.zarr", code=4)
    assert (tmp_path / f"x.zarr/{JOB}").exists()


@pytest.mark.parametrize("command", ["cp", "mv", "rm", "import", "migrate", "reencode", "$(touch p)", "", "a\n\x1b[31mb", None])
@pytest.mark.parametrize("source", ["; touch p #", "$(touch p)", "`touch p`", "--zarr-format=3; touch p", "'; touch p '",
                                    "-n\ntouch p\n", "\x1b]0;x\x07", "", 7, None])
def test_hostile_job(zarrc, tmp_path, command, source):
    """A hint that a user pastes into a shell runs zarrc and nothing else."""
    zarrc("create", "-t", "i1", "--shape=2", tmp_path / "x.zarr/a")
    job = {"zarrc_job": 1, "command": command, "source": source, "destination": source}
    if command == "mv" and source is None:
        job = {"zarrc_job": 1, "command": command, "destination": "; touch p #"}
    for place in ("x.zarr/a", "x.zarr/gone"):
        (tmp_path / place).mkdir(exist_ok=True)
        (tmp_path / place / JOB).write_text(json.dumps(job))
        for arguments in (["info", place], ["verify", "x.zarr"]):
            found = zarrc(*arguments, code=None, cwd=tmp_path)
            text = found.err + found.text
            assert "\x1b" not in text and "\x07" not in text
            for line in text.splitlines():
                for part in line.split("zarrc ")[1:] if "x.zarr" in line else []:
                    hint = part.split(" continues it")[0].split(" removes it")[0].split(" completes it")[0]
                    if hint != part:
                        subprocess.run(["sh", "-c", f"zarrc() {{ :; }}; zarrc {hint}"], cwd=tmp_path, check=True)
    assert not (tmp_path / "p").exists()


def test_killed_reencode(zarrc, store, tmp_path):
    zarrc("cp", store / "a", tmp_path / "y.zarr/a")
    (tmp_path / "y.zarr/a/zarr.json").unlink()
    (tmp_path / f"y.zarr/a/{JOB}").write_text('{"zarrc_job": 1, "source": "somewhere", "documents": {}}')
    found = zarrc("info", tmp_path / "y.zarr/a", code=3).err
    assert "interrupted reencode" in found and "--resume" in found
    assert "interrupted reencode" in zarrc("cp", store / "a", tmp_path / "y.zarr/a", code=5).err
    zarrc("rm", "-r", tmp_path / "y.zarr/a")
    assert not (tmp_path / "y.zarr/a").exists()


def test_killed_reencode_with_force(zarrc, store, tmp_path):
    """The node that it replaces is no node from the first deleted chunk on, so --resume does not take it for complete."""
    target, chunks = tmp_path / "y.zarr", [tmp_path / f"y.zarr/a/c/{i}" for i in (0, 899)]
    command = ["reencode", "--codec=gzip:1", store, target]
    zarrc(*command)
    if not kill_during([*command, "--force"], lambda: not all(chunk.exists() for chunk in chunks), tmp_path):
        pytest.skip("the reencode was complete before it was killed")
    if (target / JOB).exists() and "documents" in (target / JOB).read_text():
        pytest.skip("the delete was complete before it was killed")
    assert not (target / "zarr.json").exists()
    assert "interrupted rm" in zarrc(*command, "--resume", code=5).err
    zarrc(*command, "--force")
    assert zarrc("diff", store, target).code == 0


# ---- two commands at once, and codes that tell whether to try again ----

@pytest.fixture
def at_work(store, tmp_path):
    """Starts a command that works at y.zarr/t, and stops it there. The result continues and ends it."""
    started = []

    def start(*arguments, seen=None):
        seen = seen or (lambda: (tmp_path / f"y.zarr/t/{JOB}").exists())
        process = subprocess.Popen([PROGRAM, *map(str, arguments)], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        started.append(process)
        end = time.monotonic() + 60
        while process.poll() is None and not seen() and time.monotonic() < end:
            time.sleep(0.0003)
        process.send_signal(signal.SIGSTOP)
        if process.poll() is not None or not seen():
            pytest.skip("the command was complete before it was stopped")

        def go_on():
            process.send_signal(signal.SIGCONT)
            return process.wait(60)
        return go_on
    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()


@pytest.fixture
def other(templates, tmp_path):
    return shutil.copytree(templates / "b.zarr", tmp_path / "b.zarr", copy_function=os.link)


@pytest.mark.parametrize("first", ["cp", "reencode", "rm"])
def test_second_command_names_the_first(zarrc, store, other, at_work, tmp_path, first):
    target = tmp_path / "y.zarr/t"
    zarrc("cp", other, target)
    go_on = at_work(*(["rm", "-r", target] if first == "rm" else [first, "--force", store / "a", target]))
    for command in (["cp", "--force", other, target], ["mv", "--force", other, target], ["rm", "-r", target],
                    ["cp", "--force", "--skip-equal", other, target], ["reencode", "--force", other, target]):
        found = zarrc(*command, code=None)
        assert found.code == 7 and "another call is at work there" in found.err and "(zarrc)" in found.err, command
    assert zarrc("--json", "rm", "-r", target, code=7).error["code"] == "conflict"
    assert go_on() == 0
    if first == "rm":
        assert not target.exists()
    else:
        assert (zarr.open_array(target)[:] == np.arange(900)).all()
    zarrc("cp", "--force", other, target)
    assert files(target) == files(other) and not list((tmp_path / "y.zarr").rglob("*.__lock"))


def test_move_claims_its_source(zarrc, store, at_work, tmp_path):
    source = store / "a"
    go_on = at_work("mv", source, tmp_path / "y.zarr/t")
    for command in (["rm", source], ["mv", source, store / "b"], ["mv", source, tmp_path / "z.zarr"], ["migrate", source]):
        found = zarrc(*command, code=7)
        assert "/a: another call is at work there" in found.err, command
    assert "lock_wait" in zarrc("create", "--force", "--lock-wait=1", "--shape=8", "-t", "float64", source, code=7).err
    assert go_on() == 0 and not source.exists()
    assert (zarr.open_array(tmp_path / "y.zarr/t")[:] == np.arange(900)).all()


@pytest.mark.parametrize("place", ["", "/t"])
def test_second_import_waits(zarrc, at_work, tmp_path, place):
    """Its bound is --lock-wait. Elements of both files would be an array of neither."""
    for name, value in (("a", 1), ("b", 2)):
        np.save(tmp_path / f"{name}.npy", np.full(60000, value, "i4"))
    target = tmp_path / f"y.zarr{place}"
    staging = tmp_path / f"y.zarr{place}.zarrc-import"
    zarrc("import", tmp_path / "a.npy", target)
    go_on = at_work("import", "--force", "--chunks=50", tmp_path / "b.npy", target, seen=lambda: (staging / "c").exists())
    found = zarrc("import", "--force", "--lock-wait=1", tmp_path / "a.npy", target, code=7)
    assert "(zarrc)" in found.err and "lock_wait" in found.err
    assert go_on() == 0
    assert (zarr.open_array(target)[:] == 2).all() and not staging.exists()
    zarrc("import", "--force", tmp_path / "a.npy", target)
    assert (zarr.open_array(target)[:] == 1).all() and not list(tmp_path.rglob("*.__lock"))


def test_copies_at_once_do_not_mix(store, other, tmp_path):
    sources = [store / "a", other]
    for _ in range(3):
        running = [subprocess.Popen([PROGRAM, "cp", "-q", "--force", source, tmp_path / "y.zarr/t"],
                                    stderr=subprocess.DEVNULL) for source in sources]
        codes = [process.wait(60) for process in running]
        assert set(codes) <= {0, 7} and 0 in codes
        assert files(tmp_path / "y.zarr/t") in [files(source) for source in sources]


LOOP = "until {} || [ $? -lt 7 ]; do n=$((n + 1)); [ $n -lt 300 ] || exit 99; sleep 0.2; done; exit 0"


def test_loop_ends_on_permanent_errors(zarrc, store, other, tmp_path):
    """The loop of the examples does not repeat what cannot succeed."""
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos/1").write_text("mine")
    (tmp_path / "bad.zarr").mkdir()
    (tmp_path / "bad.zarr/zarr.json").write_text("{")
    for command in (["cp", "--skip-equal", tmp_path / "none.zarr", tmp_path / "y.zarr"],
                    ["cp", "--skip-equal", "--unknown", store, tmp_path / "y.zarr"],
                    ["cp", "--skip-equal", store, store / "g/inside"],
                    ["cp", "--skip-equal", store, "/proc/y.zarr"],
                    ["cp", "--skip-equal", store / "a", other],
                    ["reencode", "--resume", store, tmp_path / "photos"],
                    ["reencode", "--resume", "--codec=none-such", store, tmp_path / "y.zarr"],
                    ["reencode", "--resume", tmp_path / "bad.zarr", tmp_path / "y.zarr"]):
        line = shlex.join([PROGRAM, *map(str, command)])
        done = subprocess.run(["bash", "-c", LOOP.format(line)], capture_output=True, text=True)
        assert done.returncode == 0 and done.stderr.count("zarrc: ") == 1, (command, done.stderr)


def test_loop_continues_what_was_killed(store, at_work, tmp_path):
    """It also waits for another command. A kill is code 137."""
    target = tmp_path / "y.zarr/t"
    go_on = at_work("cp", store / "a", target)
    copy = shlex.join([PROGRAM, "cp", "--skip-equal", str(store / "a"), str(target)])
    loop = subprocess.Popen(["bash", "-c", LOOP.format(copy)], stderr=subprocess.PIPE, text=True)
    assert "at work" in loop.stderr.readline() + loop.stderr.readline()
    assert go_on() == 0
    text = loop.stderr.read()
    assert loop.wait() == 0, text
    assert files(target) == files(store / "a")


def test_complete_commands_leave_no_job(zarrc, store, tmp_path):
    zarrc("cp", store, tmp_path / "1.zarr")
    zarrc("mv", tmp_path / "1.zarr", tmp_path / "2.zarr")
    zarrc("mv", tmp_path / "2.zarr/a", tmp_path / "2.zarr/h/a")
    zarrc("reencode", "--chunks=100", tmp_path / "2.zarr/h/a", tmp_path / "3.zarr")
    zarrc("rm", "-r", tmp_path / "2.zarr/g")
    assert not [name for name in os.listdir(tmp_path) if list((tmp_path / name).rglob(JOB))]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_rest_without_job(zarrc, tmp_path, zarr_format):
    """Other programs leave no .zarrc-job: chunks are known by their names, and rm removes them."""
    top = zarr.create_group(tmp_path / "x.zarr", zarr_format=zarr_format)
    for name in ("a", "b"):
        top.create_array(name, shape=(6, 4), chunks=(2, 2), dtype="i2", fill_value=-1)[:] = 7
    target = tmp_path / "x.zarr/a"
    (target / ("zarr.json" if zarr_format == 3 else ".zarray")).unlink()
    for command, code in ((["info", target], 3), (["cat", target], 3), (["cp", tmp_path / "x.zarr/b", target], 5),
                          (["mv", tmp_path / "x.zarr/b", target], 5),
                          (["reencode", tmp_path / "x.zarr/b", target], 5)):
        message = zarrc(*command, code=code).err
        assert "deleted in part" in message and commands_in(message) == [["rm", "-r", f"{tmp_path}/x.zarr:/a"]], command
    assert "--force" in zarrc("create", target, "--shape=6,4", "-ti2", code=5).err
    zarrc(*commands_in(zarrc("info", target, code=3).err)[0])
    assert not target.exists()
    zarrc("create", target, "--shape=6,4", "-ti2", "--chunks=2,2", f"--zarr-format={zarr_format}")
    assert (zarr.open_array(target)[:] == 0).all()


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_verify_and_clean_name_what_has_no_document(zarrc, tmp_path, zarr_format):
    top = zarr.create_group(tmp_path / "x.zarr", zarr_format=zarr_format)
    for name in ("a", "g/b", "h/i/j"):
        top.create_array(name, shape=(6, 4), chunks=(2, 2), dtype="i2", fill_value=-1)[:] = 7
    assert zarrc("verify", tmp_path / "x.zarr").text == "" and zarrc("clean", tmp_path / "x.zarr").err.count("zarrc") == 0
    array, group = ("zarr.json", "zarr.json") if zarr_format == 3 else (".zarray", ".zgroup")
    for document in (f"a/{array}", f"g/{group}", f"g/b/{array}", f"h/i/{group}"):
        (tmp_path / "x.zarr" / document).unlink()
    (tmp_path / "x.zarr/photos/2023").mkdir(parents=True)
    (tmp_path / "x.zarr/photos/2023/1.jpg").write_text("mine")
    found = zarrc("verify", "--json", tmp_path / "x.zarr", code=1).json
    assert {(f["key"], f["severity"]) for f in found["faults"]} == {("a", "warning"), ("g", "note"), ("h/i", "note")}
    assert found["n_faults"] == 1 and found["n_notes"] == 2
    message = zarrc("clean", tmp_path / "x.zarr").err
    assert "a: there are chunks, but no array" in message and "photos" not in message
    for _ in range(2):
        for fault in zarrc("verify", "--json", tmp_path / "x.zarr", code=None).json["faults"]:
            zarrc(*shlex.split(fault["reason"].split("zarrc ")[1].split(" makes")[0].split(" removes")[0]))
    assert not (tmp_path / "x.zarr/a").exists()
    assert (zarr.open_array(tmp_path / "x.zarr/h/i/j")[:] == 7).all()
    assert zarrc("verify", tmp_path / "x.zarr").text == ""
    assert zarrc("ls", "-R", tmp_path / "x.zarr").text.count("h/i") == 2


def test_other_files_are_no_rest(zarrc, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos/1").write_text("mine")
    zarrc("rm", "-r", tmp_path / "photos", code=3)
    zarrc("create", "-g", tmp_path / "x.zarr")
    (tmp_path / "x.zarr/c").mkdir()
    for name in ("c/1", "c/readme"):
        (tmp_path / "x.zarr" / name).write_text("mine")
    zarrc("rm", "-r", tmp_path / "x.zarr/c", code=3)
    assert (tmp_path / "photos/1").exists() and (tmp_path / "x.zarr/c/1").exists()


@pytest.mark.parametrize("command", ["cp", "cp --verify", "cp --skip-equal", "mv"])
def test_copy_of_what_is_incomplete_is_incomplete(zarrc, tmp_path, command):
    """Chunks that an interrupted import has not written must not become elements that look complete."""
    zarrc("create", tmp_path / "x.zarr", "--shape=4", "-t", "i1")
    job = {"zarrc_job": 1, "command": "import", "source": "a.npy"}
    (tmp_path / "x.zarr" / JOB).write_text(json.dumps(job))
    before = files(tmp_path / "x.zarr")
    zarrc(*command.split(), "-q", tmp_path / "x.zarr", tmp_path / "y.zarr")
    assert files(tmp_path / "y.zarr") == before and (tmp_path / "x.zarr").exists() == (command != "mv")
    assert "is incomplete: a import was interrupted" in zarrc("info", tmp_path / "y.zarr").err
    assert "interrupted" in zarrc("verify", tmp_path / "y.zarr", code=1).text
