"""Source and destination are the same node, or one contains the other, in many spellings: cp, mv and reencode
refuse and change nothing."""
import os

import numpy as np
import pytest
import zarr

pytestmark = pytest.mark.zarr_makes_input


def tree(top):
    """{path: the bytes of a file, the target of a link, None for a folder}"""
    found = {}
    for folder, folders, files in os.walk(top):
        folders.sort()  # a file system has an order of its own
        for name in folders + sorted(files):
            path = os.path.join(folder, name)
            if os.path.islink(path):
                found[path] = os.readlink(path)
            elif os.path.isdir(path):
                found[path] = None
            else:
                with open(path, "rb") as f:
                    found[path] = f.read()
    return found


@pytest.fixture
def here(tmp_path):
    top = zarr.create_group(str(tmp_path / "g.zarr"))
    top.create_array("a", shape=(10,), chunks=(4,), dtype="i4")[:] = np.arange(10)
    x = top.create_group("x")
    x.create_array("a", shape=(10,), chunks=(4,), dtype="i4")[:] = np.arange(10)
    (tmp_path / "link.zarr").symlink_to("g.zarr")
    (tmp_path / "g.zarr/l").symlink_to("a")
    (tmp_path / "g.zarr/lx").symlink_to("x")
    return tmp_path


# name: (source, destination); {} is replaced by the temporary folder
LOCATIONS = {
    "dot": ("g.zarr/a", "./g.zarr/a"),
    "dots": ("g.zarr/a", "g.zarr/x/../a"),
    "absolute": ("g.zarr/a", "{}/g.zarr/a"),
    "file url": ("g.zarr/a", "file://{}/g.zarr/a"),
    "symlinked root": ("g.zarr/a", "link.zarr/a"),
    "from a symlinked root": ("link.zarr/a", "g.zarr/a"),
    "link inside": ("g.zarr/a", "g.zarr/l"),
    "link inside as source": ("g.zarr/l", "g.zarr/a"),
    "root one level down": ("g.zarr/a", "g.zarr/a:/"),
    "root one level down, source": ("g.zarr/a:/", "g.zarr/a"),
    "root one level up": ("g.zarr/a", "{}:/g.zarr/a"),
    "destination in source": ("g.zarr/x", "./g.zarr/x/z"),
    "destination in source, deep": ("g.zarr/x", "{}/g.zarr/x/y/z"),
    "destination in source, there": ("g.zarr/x", "./g.zarr/x/a"),
    "destination in source by a link": ("g.zarr/x", "g.zarr/lx/z"),
    "destination in source, another root": ("g.zarr/x", "g.zarr/x/new.zarr:/"),
    "destination in the whole store": ("g.zarr", "link.zarr:/n"),
    "source in destination": ("./g.zarr/x/a", "g.zarr/x"),
    "source in destination by a link": ("g.zarr/lx/a", "g.zarr/x"),
    "source in destination, another root": ("g.zarr/x/a:/", "g.zarr/x"),
    "source in the whole store": ("g.zarr/x/a", "link.zarr"),
}


@pytest.mark.parametrize("flags", [[], ["-f"], ["--skip-equal"], ["-f", "--skip-equal"]], ids=str)
@pytest.mark.parametrize("verb", ["cp", "mv"])
@pytest.mark.parametrize("locations", LOCATIONS.values(), ids=LOCATIONS)
def test_one_place_is_refused(zarrc, here, verb, flags, locations):
    before = tree(here)
    src, dst = (p.format(here) for p in locations)
    failed = zarrc(verb, *flags, src, dst, cwd=here, code=None)
    assert tree(here) == before
    assert failed.code == 2 and "one place" in failed.err, failed.err


@pytest.mark.parametrize("locations", LOCATIONS.values(), ids=LOCATIONS)
@pytest.mark.parametrize("flags", [["-f"], ["--resume"], []], ids=str)
def test_reencode_refuses_one_place(zarrc, here, flags, locations):
    before = tree(here)
    src, dst = (p.format(here) for p in locations)
    failed = zarrc("reencode", *flags, src, dst, cwd=here, code=None)
    assert tree(here) == before
    assert failed.code == 2 and "overlap" in failed.err, failed.err


# The input or output file is a file of the array itself, under several names.
@pytest.mark.parametrize("name", ["g.zarr/a/c/0", "./g.zarr/l/c/0", "link.zarr/x/../a/zarr.json"])
@pytest.mark.parametrize("array", ["g.zarr/a", "link.zarr/a", "g.zarr/a:/", "g.zarr/l"])
@pytest.mark.parametrize("command", [
    lambda a, f: ["import", "--force", "--dtype=int32", "--shape=4", f, a],
    lambda a, f: ["export", "--force", "--format=npy", a, f],
    lambda a, f: ["plot", "--force", "--output", f, a],
], ids=["import", "export", "plot"])
def test_a_file_of_the_array(zarrc, here, command, array, name):
    before = tree(here)
    failed = zarrc(*command(array, name), cwd=here, code=2)
    assert "is inside" in failed.err
    assert tree(here) == before


def test_neighbours_are_apart(zarrc, here):
    want = tree(here / "g.zarr/a").values()
    zarrc("cp", "g.zarr/a", "./g.zarr/aa", cwd=here)
    zarrc("cp", "-f", "link.zarr/aa", "g.zarr/x/a", cwd=here)
    zarrc("mv", "{}/g.zarr/aa".format(here), "g.zarr/lx/b", cwd=here)
    zarrc("mv", "-f", "g.zarr/x/b", "link.zarr/x/a", cwd=here)
    assert not (here / "g.zarr/aa").exists() and not (here / "g.zarr/x/b").exists()
    for there in ("g.zarr/a", "g.zarr/x/a"):
        assert list(tree(here / there).values()) == list(want)


@pytest.mark.parametrize("link, target", [("l", "a"), ("lx", "x")])
def test_rm_of_a_link_keeps_its_target(zarrc, here, link, target):
    want = tree(here / "g.zarr" / target)
    shown = zarrc("rm", f"g.zarr/{link}", cwd=here).out + zarrc("tree", "g.zarr", cwd=here).out
    assert not (here / "g.zarr" / link).is_symlink() and link not in shown.split()
    assert tree(here / "g.zarr" / target) == want


def test_replacing_a_link_keeps_its_target(zarrc, here):
    want = tree(here / "g.zarr/a")
    zarrc("create", "--force", "--shape=3", "--dtype=int8", "g.zarr/l", cwd=here)
    zarrc("cp", "-f", "g.zarr/x/a", "g.zarr/lx", cwd=here, code=2)  # lx is a link to x, which contains x/a
    zarrc("cp", "-f", "g.zarr/a", "g.zarr/l", cwd=here)
    assert not (here / "g.zarr/l").is_symlink()
    assert tree(here / "g.zarr/a") == want
    assert list(tree(here / "g.zarr/l").values()) == list(want.values())
