"""Commands that write a zip archive, killed before each system call on it. Afterwards a reader finds the old or the new state,
the next writer works, and then other programs read the archive."""
import json
import os
import random
import zipfile

import kill_points
import numpy as np
import pytest

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
REASON = kill_points.reason_to_skip()
ARCHIVE, ARRAY = "x.zarr.zip", "x.zarr.zip/a"
OLD, NEW = np.arange(1000, dtype="<i4"), np.arange(5000, 6000, dtype="<i4")
COPY = ["--store-option", "zip_update=copy"]

# name: (the command; whether the archive is there before)
COMMANDS = {
    "import into a new archive": (["import", "new.raw", ARRAY, "-t", "int32", "--shape=1000", "-c", "100"], False),
    "write": (["import", "new.raw", f"{ARRAY}[:]", "-t", "int32"], True),
    "write a copy": (["import", "new.raw", f"{ARRAY}[:]", "-t", "int32", *COPY], True),
    "append": (["append", ARRAY, "new.raw"], True),
    "attrs": (["attrs", "set", ARRAY, "k", "2"], True),
    "attrs of a copy": (["attrs", "set", *COPY, ARRAY, "k", "2"], True),
    "cp": (["cp", ARRAY, f"{ARCHIVE}/b"], True),
    "rm": (["rm", ARRAY], True),
    "clean a tail": (["clean", "--age=0", ARCHIVE], True),
    "repack dead bytes": (["repack", ARCHIVE], True),
    "repack dead bytes in order": (["repack", "--store-option", "zip_form=ozx", ARCHIVE], True),
}


def read(folder):
    """{name: (elements, attributes)} of the arrays, by the program; None: there is no archive."""
    if not (folder / ARCHIVE).exists():
        return None
    done = kill_points.zarrc(folder, "verify", ARCHIVE)
    assert done.returncode in (0, 3) or "interrupted" in done.stdout, done.stderr + done.stdout
    found = {}
    for name in "ab":
        info = kill_points.zarrc(folder, "attrs", "list", "--json", f"{ARCHIVE}/{name}")
        if info.returncode == 0:
            done = kill_points.zarrc(folder, "export", "--force", f"{ARCHIVE}/{name}", "out.npy")
            assert done.returncode == 0, done.stderr
            found[name] = np.load(folder / "out.npy").tobytes(), json.loads(info.stdout)["attributes"]
    return found


def make(folder, there, name):
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    (folder / "old.raw").write_bytes(OLD.tobytes())
    (folder / "new.raw").write_bytes(NEW.tobytes())
    if there:
        done = kill_points.zarrc(folder, "import", "old.raw", ARRAY, "-t", "int32", "--shape=1000", "-c", "100")
        assert done.returncode == 0, done.stderr
    if "dead bytes" in name:
        for value in "12":
            done = kill_points.zarrc(folder, "attrs", "set", ARRAY, "k", value)
            assert done.returncode == 0, done.stderr
    if "tail" in name:
        with open(folder / ARCHIVE, "ab") as file:
            file.write(b"PK\3\4 half a member" * 100)
    return folder


@pytest.mark.skipif(REASON is not None, reason=str(REASON))
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.timeout(900)
def test_kill(name, tmp_path):
    command, there = COMMANDS[name]
    line, world = [kill_points.PROGRAM, *command], tmp_path / "w"
    old = read(make(world, there, name))
    program = kill_points.StoppedProgram(world, line, 0)
    code, text = program.end()
    assert code == 0 and program.calls > 3, text
    new, points = read(world), list(range(1, program.calls + 1))
    if not LONG:
        points = sorted(random.Random(name).sample(points, min(len(points), 12)) + points[-3:])
    for point in points:
        make(world, there, name)
        program = kill_points.StoppedProgram(world, line, point)
        program.end()
        at = f"point {point}: {program.call}"
        if "repack" in name or "copy" in name:  # every program finds the old archive or the new one
            with zipfile.ZipFile(world / ARCHIVE) as archive:
                assert archive.testzip() is None, at
        found = read(world)
        assert found in (old, new), at
        done = kill_points.zarrc(world, "create", f"{ARCHIVE}/next", "--shape=3", "-t", "int8")
        assert done.returncode == 0, f"{at}: {done.stderr}"
        assert read(world) == (found or {}), at
        assert not [p.name for p in world.iterdir() if "__lock" in p.name], at
        with zipfile.ZipFile(world / ARCHIVE) as archive:
            assert archive.testzip() is None and "next/zarr.json" in archive.namelist(), at
