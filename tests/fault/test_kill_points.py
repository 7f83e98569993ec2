"""Every command and every writing call of the Python package, killed before each system call on a store, and pairs of commands
that run at once. make test-long tries all points, .ci/run a sample by a fixed seed; kill_points.py does the same by hand."""
import os
import re
import shutil

import kill_points
import pytest

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
REASON = kill_points.reason_to_skip()


@pytest.mark.skipif(REASON is not None, reason=str(REASON))
@pytest.mark.parametrize("name", kill_points.tasks())
@pytest.mark.timeout(1800)
def test_kill_points(name):
    _, trials, bad = kill_points.run(name, is_sample=not LONG)
    assert trials and not bad, "\n".join(bad[:20])


def files(folder):
    """The objects of x.zarr, without files that zarrc clean removes."""
    top = folder / "x.zarr"
    return {str(p.relative_to(top)): p.read_bytes() for p in top.rglob("*")
            if p.is_file() and ".zarrc-tmp" not in p.name and not p.name.endswith("__lock")}


def make_damage(folder):
    """x.zarr with damage of blocks, chunks of shards and documents; sound.zarr without."""
    for words in (["create", "-q", "--group", "x.zarr"], ["create", "-q", "x.zarr/a", "--shape=32", "-t", "int32", "-c", "8", "-C", "crc32c"],
                  ["create", "-q", "x.zarr/g/sh", "--shape=32", "-t", "int32", "-c", "4", "-s", "16", "-C", "crc32c"],
                  ["create", "-q", "x.zarr/n", "--shape=8", "-t", "int32", "-c", "4"], ["consolidate", "-q", "x.zarr"],
                  *(["import", "-q", "new.raw", f"x.zarr/{name}[:]", "-t", "int32"] for name in ("a", "g/sh"))):
        (folder / "new.raw").write_bytes(kill_points.ops.ints(1, 32))
        done = kill_points.zarrc(folder, *words)
        assert done.returncode == 0, done.stderr
    shutil.copytree(folder / "x.zarr", folder / "sound.zarr")
    for name, at in (("a/c/1", 3), ("a/c/3", 35), ("g/sh/c/0", 2), ("g/sh/c/1", -1)):
        path = folder / "x.zarr" / name
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        path.write_bytes(data)
    (folder / "x.zarr/a/c/2").unlink()
    (folder / "x.zarr/a/c/2").symlink_to("nowhere")
    (folder / "x.zarr/n/zarr.json").write_text("{")
    (folder / "x.zarr/g/zarr.json").unlink()


@pytest.mark.skipif(REASON is not None, reason=str(REASON))
@pytest.mark.parametrize("how, code", [("delete", 1), ("from:sound.zarr", 0), ("consolidated", 1)])
def test_killed_repair(tmp_path, how, code):
    """Each object has its old or its new bytes after a kill, and the same command completes the repair."""
    line = [kill_points.PROGRAM, "verify", "-q", f"--repair={how}", "--yes", "x.zarr"]
    template, folder = tmp_path / "t", tmp_path / "w"
    template.mkdir()
    make_damage(template)

    def renew():
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(template, folder, symlinks=True)
        return files(folder)

    def again():
        """The second time checks what is below a restored group."""
        assert kill_points.run_line(folder, line).returncode == code

    before = renew()
    whole = kill_points.StoppedProgram(folder, line, 0)
    assert whole.end()[0] == code
    assert files(folder) != before and whole.calls > 20
    again()
    after, trials = files(folder), 0
    for point in kill_points.order_points(f"repair {how}", whole.calls, not LONG)[:None if LONG else 12]:
        renew()
        program = kill_points.StoppedProgram(folder, line, point)
        program.end()
        trials += program.call is not None
        now = files(folder)
        assert all(now.get(name) in (before.get(name), after.get(name)) for name in now.keys() | before.keys()), program.call
        again()
        again()
        assert files(folder) == after, program.call
    assert trials


@pytest.mark.skipif(REASON is not None, reason=str(REASON))
@pytest.mark.parametrize("chunk", ["1", "2"])
def test_repair_leaves_a_newer_object(tmp_path, chunk):
    """Another program replaces a broken block at each point of the repair, which keeps what that one wrote. Chunk 2 is a broken link,
    which has no version: what comes after the last look at it, while its change is made, is lost."""
    template, folder, kept, lost = tmp_path / "t", tmp_path / "w", 0, 0
    template.mkdir()
    make_damage(template)
    line = [kill_points.PROGRAM, "verify", "-q", "--repair=delete", "--yes", "x.zarr/a"]
    shutil.copytree(template, folder, symlinks=True)
    whole = kill_points.StoppedProgram(folder, line, 0)
    whole.end()
    for point in kill_points.order_points("newer", whole.calls, not LONG)[:None if LONG else 12]:
        shutil.rmtree(folder)
        shutil.copytree(template, folder, symlinks=True)
        path, new = folder / "x.zarr/a/c" / chunk, (folder / "sound.zarr/a/c" / chunk).read_bytes()
        program = kill_points.StoppedProgram(folder, line, point)
        is_old = os.path.lexists(path)
        if is_old:
            path.with_name("new").write_bytes(new)
            path.with_name("new").replace(path)
        program.end("c")
        is_last = program.call and re.match(f"unlink.*/c/{chunk}$", program.call)  # the check of the version precedes it
        if program.call and is_old and not is_last:
            if path.exists():
                assert path.read_bytes() == new, program.call
                kept += 1
            else:
                assert chunk == "2" and re.search(r"/a(/c(/2(\.__lock/?)?)?)?$", program.call), program.call
                lost += 1
    assert kept and lost <= 12
