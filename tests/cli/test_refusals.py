"""Commands that are refused: they change nothing, leave nothing behind, and say what is wrong."""
import json
import os
import shlex
import subprocess

import numpy as np
import pytest
import zarr
from conftest import PROGRAM

pytestmark = pytest.mark.zarr_makes_input


def files(folder):
    """Without empty folders, which are nothing to a store: the lock of a name makes those above it."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture
def place(tmp_path, zarrc):
    """x.zarr has an array a, and a group g with an array b. Other stores are an array and a group."""
    top = zarr.create_group(tmp_path / "x.zarr")
    for path in ("a", "g/b"):
        top.create_array(path, shape=(4,), chunks=(2,), dtype="i4")[:] = np.arange(1, 5)
    zarrc("consolidate", "-q", tmp_path / "x.zarr")
    zarr.create_array(tmp_path / "y.zarr", shape=(4,), dtype="i4")[:] = 7
    zarr.create_group(tmp_path / "empty.zarr")
    np.save(tmp_path / "n.npy", np.arange(4, dtype="i4"))
    return tmp_path


def refuse(zarrc, place, commands, code, *texts):
    before = files(place)
    for command in commands:
        done = zarrc(*(shlex.split(command) if isinstance(command, str) else command), code=code, cwd=place)
        for text in texts:
            assert text in done.err, (command, done.err)
        assert "bug in zarrc" not in done.err and done.out == b"", command
        assert files(place) == before, command


def test_groups_where_arrays_are_meant(zarrc, place):
    refuse(zarrc, place, ["cat x.zarr/g", "export x.zarr/g o.npy", "explain x.zarr/g", "resize x.zarr/g 5",
                          "append x.zarr/g n.npy", "plot -o p.png x.zarr/g", "create x.zarr/new --like=x.zarr/g"],
           2, "x.zarr:/g is a group", "needs an array")
    refuse(zarrc, place, ["import n.npy x.zarr/g[0:2]", "cat x.zarr/g[0]"], 2, "x.zarr:/g is a group")
    refuse(zarrc, place, ["import n.npy x.zarr/g", "import --force n.npy x.zarr/g", "create x.zarr/g --shape=4 -t i4",
                          "create x.zarr/g --force --shape=4 -t i4", "create x.zarr/g --if-missing --shape=4 -t i4"],
           5, "x.zarr:/g is a group")


def test_arrays_where_groups_are_meant(zarrc, place):
    refuse(zarrc, place, ["consolidate x.zarr/a", "consolidate --check x.zarr/a"], 2, "x.zarr:/a is an array", "needs a group")
    refuse(zarrc, place, ["create -g x.zarr/a", "create -g x.zarr/a --force", "create -g x.zarr/a --if-missing"],
           5, "x.zarr:/a is an array")
    assert zarrc("ls", "x.zarr/a", cwd=place).text == "a\n"


@pytest.mark.parametrize("force", ["", " --force"])
def test_below_an_array(zarrc, place, force):
    """Also reencode finds that out before its work, and before it leaves a record of it."""
    for path in ("x.zarr/a/k", "x.zarr/a/k/l", "y.zarr/k"):
        refuse(zarrc, place, [f"create {path} --shape=3 -t i1" + force, f"create -g {path}" + force,
                              f"cp x.zarr/g {path}" + force, f"cp empty.zarr {path}" + force, f"mv x.zarr/g {path}" + force,
                              f"mv empty.zarr {path}" + force, f"import n.npy {path}" + force,
                              f"reencode x.zarr/g {path}" + force, f"reencode empty.zarr {path}" + force],
               2, "is an array: no node can be below it")


def test_into_itself(zarrc, place):
    inside = ["x.zarr x.zarr/new", "x.zarr x.zarr/g/new", "x.zarr/g x.zarr/g", "x.zarr/g x.zarr/g/b/new", "x.zarr/g/b x.zarr/g"]
    refuse(zarrc, place, [f"{command} {force} {paths}" for paths in inside for command in ("cp", "mv", "reencode")
                          for force in ("", "--force")], 2)


def test_streams_are_no_nodes(zarrc, place):
    """- is standard input or output for files. As a node it is a mistake, and made a folder of this name."""
    refuse(zarrc, place, ["info -", "ls -", "tree -", "cat -", "rm -", "rm -r -", "verify -", "clean -", "consolidate -",
                          "migrate -", "explain -", "attrs list -", "attrs set - a 1", "resize - 4", "append - n.npy",
                          "create - --shape=3 -t i1", "create -g -", "import n.npy -", "cp - z.zarr", "cp x.zarr -",
                          "mv - z.zarr", "mv x.zarr -", "reencode x.zarr -", "diff x.zarr -", "plot -o p.png -",
                          "create z.zarr --like=-"], 2, "- is a stream", "./-")
    zarrc("create", "./-", "--shape=3", "-t", "i1", cwd=place)
    assert zarrc("cat", "./-", cwd=place).text.split() == ["0"] * 3


def test_empty_operands(zarrc, place):
    nodes = ["info", "ls", "tree", "cat", "rm", "verify", "clean", "consolidate", "migrate", "explain", "attrs list",
             "create -g", "cp x.zarr", "mv x.zarr", "reencode x.zarr", "import n.npy", "diff x.zarr"]
    refuse(zarrc, place, [[*shlex.split(command), ""] for command in nodes] + [["cp", "", "z.zarr"], ["resize", "", "4"]],
           2, '"" names no node')
    refuse(zarrc, place, [["import", "", "x.zarr/new"], ["append", "x.zarr/a", ""], ["plot", "-o", "", "x.zarr/a"],
                          ["attrs", "merge", "x.zarr", "@"]], 3)


@pytest.mark.parametrize("name", ["zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata", ".zarrc-job", ".zarrc-leftovers",
                                  "__x", "..", ".", "a\\x00", "n" * 2000, "b\udcff"])
def test_names_that_nodes_cannot_have(zarrc, place, name):
    name = name.replace("\\x00", "/../b")
    commands = [["create", f"x.zarr:/g/new/{name}", "--shape=4", "-t", "i4"], ["create", "-g", f"x.zarr:/g/new/{name}"],
                ["import", "n.npy", f"x.zarr:/g/new/{name}"], ["cp", "x.zarr/a", f"x.zarr:/g/new/{name}"],
                ["mv", "x.zarr/a", f"x.zarr:/g/new/{name}"], ["reencode", "x.zarr/a", f"x.zarr:/g/new/{name}"]]
    refuse(zarrc, place, commands, 4 if len(name) > 1000 else 2)


NAMES = ["a b", " ", "a ", "a\nb", "\t", "100%", "%2F", "ü日", "u\u0308", "a:b", "a;b", "-x", "--json", "[", "a]", "*", "?",
         "~", "a\x1b'\u009b", "$HOME", "it's", 'a"b', ".hidden", "c", "0", "x.zarr", "\x01", "&", "#", "con", "`w`", "$(touch p)", "|", "é" * 120]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_names_that_nodes_can_have(zarrc, place, name):
    """Each command finds a node by such a name, and what it prints has no control character."""
    node = f"x.zarr:/g/{name}"
    for command in (["create", "--shape=4", "-t", "i4", "--", node], ["info", node], ["info", f"x.zarr/g/{name}"],
                    ["ls", "-l", "x.zarr/g"], ["tree", "x.zarr"], ["cat", node], ["attrs", "set", node, "--", name, "1"],
                    ["attrs", "get", node, "--", name], ["verify", node], ["explain", node], ["import", "--force", "n.npy", node],
                    ["append", node, "n.npy"], ["resize", node, "6"], ["cp", node, "x.zarr:/copy"], ["diff", node, "x.zarr:/copy"],
                    ["mv", "x.zarr:/copy", f"x.zarr:/{name}/{name}"], ["reencode", node, f"r.zarr:/{name}"], ["clean", node],
                    ["rm", "-r", "--", f"x.zarr:/{name}"], ["consolidate", "--check", "x.zarr"], ["verify", "x.zarr"]):
        done = zarrc(*command, cwd=place)
        for text in (done.text, done.err):
            assert not [c for c in text.replace("\n", "") if ord(c) < 32 or 127 <= ord(c) < 160], command
    assert list(zarr.open_group(place / "x.zarr/g", mode="r")[name][:]) == [0, 1, 2, 3, 0, 1]
    (place / f"x.zarr/g/{name}/zarr.json").unlink()
    done = zarrc("info", node, code=3, cwd=place).err
    hint = done.split("zarrc ")[-1].split(" removes them")[0]
    subprocess.run(["bash", "-c", f"{shlex.quote(PROGRAM)} {hint}"], cwd=place, check=True, stderr=subprocess.DEVNULL)
    assert os.listdir(place / "x.zarr/g") != [] and not (place / f"x.zarr/g/{name}").exists() and not (place / "p").exists()


def test_names_of_lock_and_temporary_files(zarrc, place):
    """A local store keeps such names for itself."""
    for name in ("zarr.json.__lock", "a.__lock", ".zarrc-tmp-1-2"):
        for command in (["create", f"x.zarr:/{name}", "--shape=4", "-t", "i4"], ["create", "-g", f"x.zarr:/{name}"],
                        ["cp", "x.zarr/a", f"x.zarr:/{name}"], ["import", "n.npy", f"x.zarr:/{name}"]):
            refuse(zarrc, place, [command], 2, "lock and temporary files")


def test_closed_standard_input(place):
    """A command that reads standard input says so if there is none, and others do not need it."""
    for command, code in (("append x.zarr/a -", 3), ("import -t i4 --shape=2 - x.zarr/new", 3), ("attrs merge x.zarr -", 3),
                          ("create x.zarr/new --document=-", 3), ("info x.zarr", 0), ("verify x.zarr", 0),
                          ("append x.zarr/a n.npy", 0), ("cp x.zarr/a x.zarr/copy", 0)):
        done = subprocess.run(["sh", "-c", 'exec "$0" "$@" <&-', PROGRAM, *shlex.split(command)], cwd=place, capture_output=True)
        assert done.returncode == code, (command, done.stderr)
        assert code == 0 or b"standard input" in done.stderr, (command, done.stderr)
    assert not (place / "x.zarr/new").exists()


def test_options_given_twice(zarrc, place):
    """The last one counts, as in other programs; options that may be repeated add up."""
    zarrc("create", "x.zarr/t", "--shape=4", "--shape=6", "-t", "i4", "--dtype=i8", "--codec=crc32c", "-Cgzip:1", "-q", "-q", cwd=place)
    found = zarrc("info", "--json", "--json", "x.zarr/t", cwd=place).json
    assert found["shape"] == [6] and found["data_type"] == "int64"
    assert [codec["name"] for codec in found["codecs"]] == ["bytes", "crc32c", "gzip"]


def test_errors_of_several_operands(zarrc, place):
    """Each operand is tried, and the exit code is that of the first that failed."""
    done = zarrc("rm", "x.zarr/none", "x.zarr/g", "x.zarr/a", code=3, cwd=place)
    assert "none" in done.err and "-r" in done.err and "deleted x.zarr:/a" in done.err
    assert (place / "x.zarr/g/b/zarr.json").exists() and not (place / "x.zarr/a").exists()
    assert json.loads(zarrc("ls", "--json", "x.zarr/none", "x.zarr", code=3, cwd=place).out)[-1]["nodes"]
