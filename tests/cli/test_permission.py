"""verify and info --stats go on past folders and objects without permission, and report them. Commands that need everything
end there."""
import ctypes
import json
import subprocess

import pytest
import zarr
from conftest import PROGRAM


def without_capabilities():
    """Root may read everything. Without these two capabilities modes count for root, too."""
    libc = ctypes.CDLL(None)
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


@pytest.fixture
def run_refused(tmp_path):
    """Runs the program while the paths below x.zarr have no permission."""
    changed = {}

    def run(*words, paths, code=1):
        for path in paths:
            changed[tmp_path / "x.zarr" / path] = (tmp_path / "x.zarr" / path).stat().st_mode
        for path in reversed(changed):
            path.chmod(0)
        first = next(iter(changed))
        if subprocess.run(["ls" if first.is_dir() else "cat", first], preexec_fn=without_capabilities, capture_output=True,
                          check=False).returncode == 0:
            pytest.skip("modes do not count here: this root cannot drop CAP_DAC_OVERRIDE")
        done = subprocess.run([PROGRAM, *words], preexec_fn=without_capabilities, capture_output=True, text=True, check=False)
        assert done.returncode == code, done
        return done
    yield run
    for path, mode in changed.items():
        path.chmod(mode)


def hierarchy(path, zarr_format=3):
    top = zarr.create_group(str(path), zarr_format=zarr_format)
    for name in ("a", "g/b", "z"):
        top.create_array(name, shape=(4, 4), chunks=(2, 2), dtype="i4", compressors=None)[:] = 1
    return path


DOCUMENTS = {2: ("g/b/.zarray", "g/.zgroup"), 3: ("g/b/zarr.json", "g/zarr.json")}


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("what", ["folder of an array", "folder of a group", "array document", "group document"])
def test_nodes(run_refused, tmp_path, what, zarr_format):
    path = hierarchy(tmp_path / "x.zarr", zarr_format)
    array, group = DOCUMENTS[zarr_format]
    place = {"folder of an array": "g/b", "folder of a group": "g", "array document": array, "group document": group}[what]
    node = "g/b" if "array" in what else "g"
    found = json.loads(run_refused("verify", "--json", path, paths=[place]).stdout)
    fault, = found["faults"]
    assert (fault["node"], fault["code"]) == (node, "denied") and "Permission denied" in fault["reason"]
    assert found["arrays"] == 2 and found["objects"] == 8  # a and z
    done = run_refused("info", "--stats", "--json", path, paths=[place])
    stored = json.loads(done.stdout)["stored"]
    fault, = stored["faults"]
    assert (fault["node"], fault["code"]) == (node, "denied") and "Permission denied" in fault["reason"]
    assert (stored["arrays"], stored["objects"]) == (2, 8)
    assert "Permission denied" in run_refused("info", "--stats", path, paths=[place]).stdout


def test_group_that_cannot_be_listed(run_refused, tmp_path):
    """Its own document may be read, so it is a valid group. What is below it is not known."""
    path = hierarchy(tmp_path / "x.zarr")
    (path / "g").chmod(0o311)
    try:
        fault, = json.loads(run_refused("verify", "--json", path, paths=["z/c/0/0"]).stdout)["faults"][:1]
        assert fault["node"] == "g" and fault["reason"] == "g: cannot list: Permission denied"
        stored = json.loads(run_refused("info", "--stats", "--json", path, paths=["z/c/0/0"]).stdout)["stored"]
        assert [f["node"] for f in stored["faults"]] == ["g", "z"] and stored["arrays"] == 1 and stored["groups"] == 1
        done = run_refused("reencode", path, tmp_path / "y.zarr", paths=["z/c/0/0"], code=4)
        assert "/g has metadata that cannot be read" in done.stderr
    finally:
        (path / "g").chmod(0o755)


def test_folders_of_chunks(run_refused, tmp_path):
    """The other chunks of the array are verified: one of them is damaged."""
    path = hierarchy(tmp_path / "x.zarr")
    (path / "a/c/1/0").write_bytes(b"short")
    found = json.loads(run_refused("verify", "--json", "--missing-chunks=error", path, paths=["a/c/0", "z/c"]).stdout)
    assert [(f["node"], f["key"], f["code"]) for f in found["faults"]] == [
        ("a", "a/c/1/0", "corrupt"), ("a", "a", "denied"), ("z", "z", "denied")]
    assert found["faults"][1]["reason"] == "a/c/0: cannot list: Permission denied"
    stored = json.loads(run_refused("info", "--json", "--stats", path, paths=[]).stdout)["stored"]
    assert [f["node"] for f in stored["faults"]] == ["a", "z"]
    assert stored["faults"][0]["reason"] == "/a: a/c/0: cannot list: Permission denied"


def test_several_folders_of_chunks(run_refused, tmp_path):
    path = hierarchy(tmp_path / "x.zarr")
    fault, = json.loads(run_refused("verify", "--json", path, paths=["a/c/0", "a/c/1"]).stdout)["faults"]
    assert fault["reason"] == "2 entries cannot be read, this one first: a/c/0: cannot list: Permission denied"


def test_objects(run_refused, tmp_path):
    path = hierarchy(tmp_path / "x.zarr")
    found = json.loads(run_refused("verify", "--json", path, paths=["a/c/0/1", "z/c/1/1"]).stdout)
    assert [f["key"] for f in found["faults"]] == ["a/c/0/1", "z/c/1/1"]


def test_folders_that_are_no_nodes(run_refused, tmp_path):
    path = hierarchy(tmp_path / "x.zarr")
    (path / "plain/secret").mkdir(parents=True)
    (path / "plain/notes.txt").write_text("no part of Zarr")
    fault, = json.loads(run_refused("verify", "--json", path, paths=["plain/secret"]).stdout)["faults"]
    assert fault["node"] == "plain" and fault["reason"].endswith("x.zarr: plain/secret: cannot list: Permission denied")


@pytest.mark.parametrize("command", ["consolidate", "cp", "reencode", "migrate"])
def test_what_needs_all_ends(run_refused, tmp_path, command):
    path = hierarchy(tmp_path / "x.zarr", 2)
    target = [tmp_path / "y.zarr"] if command in ("cp", "reencode") else []
    done = run_refused(command, path, *target, paths=["g/b"], code=4 if command == "reencode" else 3)
    assert "g/b" in done.stderr
    assert not (path / ".zmetadata").exists() and not (path / "zarr.json").exists()
