"""Stores that cannot be written: on a file system that is read-only or full. What the commands say, what they leave, and
that consolidated metadata is right afterwards. The file systems are mounts of a namespace of the test's own."""
import json
import os
import shutil
import subprocess

import numpy as np
import pytest
import zarr
from conftest import PROGRAM

pytestmark = pytest.mark.zarr_makes_input

MOUNTS = {"read-only": 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"',
          "full": 'mount -t tmpfs -o size=600k none "$1"'}


class Session:
    """Commands that run one after the other on one mount."""

    def __init__(self, folder, kind):
        self.script, self.folder = MOUNTS[kind], folder
        self.log = folder.parent / "log"
        self.log.mkdir()
        self.lines = []

    def add(self, *command):
        words = " ".join(f"'{word}'" for word in map(str, command))
        n = len(self.lines)
        self.lines.append(f'{words} >"$2/{n}.out" 2>"$2/{n}.err" </dev/null; echo $? >"$2/{n}.code"')
        return n

    def zarrc(self, *arguments):
        return self.add(PROGRAM, *arguments)

    def run(self):
        """Returns (exit code, standard output and errors) of each command."""
        script = "\n".join([self.script + " || exit 97", 'cd "$3"', *self.lines])
        done = subprocess.run(["unshare", "-rm", "sh", "-c", script, "sh", self.folder, self.log, self.folder.parent],
                              capture_output=True, text=True, timeout=120)
        if done.returncode and not (self.log / "0.code").exists():
            pytest.skip(f"this machine permits no mounts in a namespace: {done.stderr.strip()}")
        return [(int((self.log / f"{i}.code").read_text()),
                 (self.log / f"{i}.out").read_text() + (self.log / f"{i}.err").read_text()) for i in range(len(self.lines))]


@pytest.fixture
def session(tmp_path):
    if not shutil.which("unshare"):
        pytest.skip("unshare is not installed")

    def make(kind):
        (tmp_path / "m").mkdir(exist_ok=True)
        return Session(tmp_path / "m", kind)
    return make


def files(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


READ = [["info", "m/x.zarr"], ["info", "--stats", "m/x.zarr/a"], ["ls", "-lR", "m/x.zarr"], ["tree", "m/x.zarr"], ["cat", "m/x.zarr/a"],
        ["verify", "m/x.zarr"], ["explain", "m/x.zarr/a"], ["attrs", "list", "m/x.zarr"], ["consolidate", "--check", "m/x.zarr"],
        ["clean", "-n", "m/x.zarr"], ["diff", "m/x.zarr", "m/x.zarr"], ["rm", "-rn", "m/x.zarr"], ["cp", "m/x.zarr", "copy.zarr"],
        ["export", "m/x.zarr/a", "a.npy"], ["migrate", "-n", "m/x.zarr/two"], ["reencode", "m/x.zarr", "anew.zarr"],
        # nothing is to do, so nothing fails and nothing is warned of
        ["clean", "--age=0", "m/x.zarr"], ["create", "m/x.zarr/a", "--if-missing", "--shape=4", "-t", "i4", "--chunks=4"],
        ["create", "-g", "m/x.zarr/g", "--if-missing"]]
WRITE = [["consolidate", "m/x.zarr"], ["attrs", "set", "m/x.zarr", "k", "1"], ["attrs", "del", "m/x.zarr/a", "k"],
         ["create", "m/x.zarr/n", "--shape=2", "-t", "i1"], ["create", "-g", "m/x.zarr/g/n"], ["import", "n.npy", "m/x.zarr/n"],
         ["import", "--force", "n.npy", "m/x.zarr/a"], ["import", "n.npy", "m/x.zarr/a[0:4]"], ["append", "m/x.zarr/a", "n.npy"],
         ["resize", "m/x.zarr/a", "3"], ["resize", "m/x.zarr/a", "9"], ["rm", "m/x.zarr/a"], ["rm", "-r", "m/x.zarr"],
         ["mv", "m/x.zarr/a", "m/x.zarr/b"], ["mv", "y.zarr", "m/x.zarr/b"], ["cp", "m/x.zarr/a", "m/x.zarr/b"],
         ["cp", "--force", "y.zarr", "m/x.zarr/a"], ["reencode", "y.zarr", "m/x.zarr/b"], ["reencode", "--force", "y.zarr", "m/x.zarr/a"],
         ["migrate", "m/x.zarr/two"], ["export", "m/x.zarr/a", "m/a.npy"], ["plot", "-o", "m/p.png", "m/x.zarr/a"],
         ["create", "m/new.zarr", "--shape=2", "-t", "i1"]]


def test_read_only(zarrc, session, tmp_path):
    """What only reads works. What would write says why it cannot, and changes nothing, also not at the other place."""
    run = session("read-only")
    np.save(tmp_path / "n.npy", np.arange(4, dtype="i4"))
    for where in ("m/x.zarr/a", "m/x.zarr/g/b", "y.zarr"):
        zarrc("import", "-q", "--chunks=4", tmp_path / "n.npy", tmp_path / where)
    zarrc("create", tmp_path / "m/x.zarr/two", "--zarr-format=2", "--shape=4", "-t", "i1", "--separator=/")
    zarrc("attrs", "set", tmp_path / "m/x.zarr/a", "k", "1")
    zarrc("consolidate", "-q", tmp_path / "m/x.zarr")
    for command in READ + WRITE:
        run.zarrc(*command)
    before = files(tmp_path / "m"), files(tmp_path / "y.zarr")
    results = run.run()
    assert (files(tmp_path / "m"), files(tmp_path / "y.zarr")) == before
    for command, (code, text) in zip(READ, results):
        assert code == 0 and "warning" not in text, (command, text)
    for command, (code, text) in zip(WRITE, results[len(READ):]):
        assert code == 3 and "Read-only file system" in text, (command, text)
        assert "bug in zarrc" not in text and "out of date" not in text, (command, text)


def test_move_out_of_a_read_only_store(zarrc, session, tmp_path):
    """The copy is complete, and both are nodes: the message says how to go on. Consolidated metadata has the new node."""
    run = session("read-only")
    np.save(tmp_path / "n.npy", np.arange(4, dtype="i4"))
    zarrc("import", "-q", tmp_path / "n.npy", tmp_path / "m/x.zarr/a")
    zarrc("import", "-q", tmp_path / "n.npy", tmp_path / "w.zarr/old")
    zarrc("consolidate", "-q", tmp_path / "w.zarr")
    run.zarrc("mv", "m/x.zarr/a", "w.zarr/a")
    run.zarrc("mv", "m/x.zarr/a", "w.zarr/a")
    (code, text), (again, says) = run.run()
    assert code == 3 and "was copied to w.zarr:/a, but cannot be deleted" in text and "--resume" in text
    assert again == 5 and "exists" in says
    zarrc("consolidate", "--check", tmp_path / "w.zarr")
    zarrc("mv", "--skip-equal", tmp_path / "m/x.zarr/a", tmp_path / "w.zarr/a")
    assert (zarr.open_array(tmp_path / "w.zarr/a")[:] == np.arange(4)).all() and not (tmp_path / "m/x.zarr/a").exists()


@pytest.fixture
def noise(tmp_path, rng):
    """Arrays of 400 kB that do not become smaller."""
    np.save(tmp_path / "n.npy", rng.integers(0, 256, 400_000).astype("u1"))
    return tmp_path / "n.npy"


def test_full(zarrc, session, tmp_path, noise):
    """Each command says that there is no space, and the next one how to go on or that nothing is left."""
    run = session("full")
    zarrc("import", "-q", "--chunks=20000", noise, tmp_path / "big.zarr/a")
    run.zarrc("import", "-q", "--chunks=20000", noise, "m/x.zarr/a")
    run.zarrc("consolidate", "-q", "m/x.zarr")
    fail, after = {}, {}
    for name, command in {
            "import": ["import", "--chunks=20000", noise, "m/x.zarr/b"], "force": ["import", "--force", "--codec=none", noise, "m/x.zarr/a"],
            "cp": ["cp", "big.zarr/a", "m/x.zarr/b"], "mv": ["mv", "big.zarr/a", "m/x.zarr/b"],
            "reencode": ["reencode", "--codec=none", "big.zarr/a", "m/x.zarr/b"], "append": ["append", "m/x.zarr/a", noise],
            "export": ["export", "m/x.zarr/a", "m/a.npy"]}.items():
        fail[name] = run.zarrc(*command)
        after[name] = [run.zarrc("info", "m/x.zarr/b"), run.zarrc("consolidate", "--check", "m/x.zarr"), run.zarrc("info", "m/x.zarr/a")]
        run.zarrc("rm", "-rfq", "m/x.zarr/b")
        run.zarrc("clean", "-q", "m/x.zarr")
    values = run.zarrc("diff", "big.zarr/a", "m/x.zarr/a")
    left = run.add("find", "m", "-name", "*zarrc*", "-o", "-name", "*.npy*", "-o", "-name", "*lock*")
    less = [run.zarrc("resize", "m/x.zarr/a", "399999"), run.zarrc("rm", "m/x.zarr/a"), run.zarrc("verify", "m/x.zarr")]
    results = run.run()
    for name, at in fail.items():
        code, text = results[at]
        assert code == 3 and "No space left on device" in text, (name, text)
        new, consolidated, old = (results[i] for i in after[name])
        assert consolidated[0] == old[0] == 0, (name, consolidated, old)
        if name in ("cp", "mv", "reencode"):
            assert new[0] == 3 and f"interrupted {name}" in new[1], (name, new)
            assert "zarrc rm -r" in new[1] and "--resume" in new[1]
        else:
            assert new[0] == 3 and "there is no Zarr array or group" in new[1], (name, new)
    assert results[values] == (0, "") and results[left][1] == ""
    assert [results[i][0] for i in less] == [0, 0, 0]
    assert (zarr.open_array(tmp_path / "big.zarr/a")[:] == np.load(noise)).all()


# ---- commands that end in the middle --------------------------------------------------

def inject(log, what, arguments, cwd, options=()):
    """Runs zarrc under strace with one fault."""
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    done = subprocess.run(["strace", "-f", "-o", log, *options, "-e", f"trace={what.split(':')[0]}", "-e", f"inject={what}", PROGRAM, *arguments],
                          cwd=cwd, capture_output=True, text=True)
    if "ptrace" in done.stderr:
        pytest.skip("this machine permits no ptrace")
    return done


def syncs(log, arguments, cwd):
    """How often a command flushes its stores."""
    done = inject(log, "syncfs:error=EIO:when=1000", arguments, cwd)
    assert done.returncode == 0, done.stderr
    n = sum("syncfs(" in line for line in log.read_text().splitlines())
    assert 0 < n < 100
    return n


COMMANDS = {
    "import": ["import", "--chunks=1", "n.npy", "x.zarr/n"], "import --force": ["import", "--force", "--chunks=1", "n.npy", "x.zarr/g/b"],
    "import root": ["import", "--force", "--chunks=1", "n.npy", "y.zarr"], "cp": ["cp", "y.zarr", "x.zarr/g/n"],
    "cp --force": ["cp", "--force", "y.zarr", "x.zarr/g/b"], "mv": ["mv", "y.zarr", "x.zarr/g/n"],
    "mv --force": ["mv", "--force", "y.zarr", "x.zarr/g/b"], "mv inside": ["mv", "x.zarr/g/b", "x.zarr/n"], "rm": ["rm", "-r", "x.zarr/g"],
    "reencode": ["reencode", "--chunks=2", "y.zarr", "x.zarr/g/n"], "reencode --force": ["reencode", "--force", "y.zarr", "x.zarr/g/b"],
    "migrate": ["migrate", "x.zarr/two"], "create --force": ["create", "--force", "--shape=2", "-t", "i1", "x.zarr/g/b"],
    "append": ["append", "x.zarr/a", "n.npy"], "resize": ["resize", "x.zarr/a", "2"], "attrs": ["attrs", "set", "x.zarr/a", "k", "1"]}


def make_stores(zarrc, folder):
    np.save(folder / "n.npy", np.arange(4, dtype="i4"))
    for where in ("x.zarr/a", "x.zarr/g/b", "y.zarr"):
        zarrc("import", "-q", "--chunks=1", folder / "n.npy", folder / where)
    zarrc("create", "-q", folder / "x.zarr/two", "--zarr-format=2", "--shape=4", "-t", "i1", "--separator=/")
    for group in ("x.zarr/g", "x.zarr"):
        zarrc("consolidate", "-q", folder / group)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_flush_fails(zarrc, tmp_path, name):
    """Whichever flush of a command fails, the command fails, consolidated metadata says what is there, and what is left is
    a complete node or names the command that goes on. The last flush of import --force once crashed."""
    arguments = COMMANDS[name]
    (tmp_path / "0").mkdir()
    make_stores(zarrc, tmp_path / "0")
    shutil.copytree(tmp_path / "0", tmp_path / "count")
    n = syncs(tmp_path / "log", arguments, tmp_path / "count")
    for k in range(1, n + 1):
        place = shutil.copytree(tmp_path / "0", tmp_path / f"at {k}")
        done = inject(tmp_path / "log", f"syncfs:error=EIO:when={k}", arguments, place)
        assert done.returncode == 3 and "Input/output error" in done.stderr, (k, n, done.stderr)
        for group in ("x.zarr", "x.zarr/g"):
            if (place / group / "zarr.json").exists():
                zarrc("consolidate", "--check", place / group)
        for place_of_node in ("x.zarr/a", "x.zarr/g/b", "x.zarr/g/n", "x.zarr/n", "y.zarr", "x.zarr/g"):
            found = zarrc("info", place / place_of_node, code=None)
            assert found.code in (0, 3) and "bug in zarrc" not in found.err, (k, place_of_node, found.err)
            assert found.code == 0 or "zarrc " in found.err or "no Zarr array" in found.err or "[not found]" in found.err
