"""Where things are: roots found by walking up, explicit roots, regions, suggestions."""
import os

import numpy as np
import pytest
import zarr


@pytest.fixture(params=[2, 3])
def tree(request, tmp_path):
    root = zarr.open_group(tmp_path / "x.zarr", mode="w", zarr_format=request.param)
    group = root.create_group("g")
    array = group.create_array("temp", shape=(4, 6), chunks=(2, 3), dtype="i4")
    array[...] = np.arange(24).reshape(4, 6)
    group.attrs["title"] = "a group"
    return tmp_path


@pytest.mark.parametrize("text, shown", [
    ("x.zarr/g/temp", "x.zarr:/g/temp"), ("x.zarr/g/temp/", "x.zarr:/g/temp"),
    ("./x.zarr/g/temp", "./x.zarr:/g/temp"), ("x.zarr:/g/temp", "x.zarr:/g/temp"),
    ("x.zarr/g:/temp", "x.zarr/g:/temp"), ("x.zarr//g//temp", None),
])
def test_same_node(zarrc, tree, text, shown):
    info = zarrc("info", "--json", text, cwd=tree).json
    assert info["kind"] == "array" and info["shape"] == [4, 6]
    if shown:
        assert info["node"] == shown


def test_file_url_and_absolute(zarrc, tree):
    for text in [f"file://{tree}/x.zarr/g/temp", f"{tree}/x.zarr/g/temp", f"{tree}/x.zarr:/g/temp",
                 f"file://{tree}/x.zarr:/g/temp"]:
        assert zarrc("info", "--json", text).json["path"] == "g/temp"


def test_from_inside(zarrc, tree):
    inside = tree / "x.zarr" / "g"
    assert zarrc("info", "--json", "temp", cwd=inside).json["shape"] == [4, 6]
    assert zarrc("info", "--json", ".", cwd=inside).json["attributes"] == {"title": "a group"}
    assert zarrc("info", "--json", "../g/temp", cwd=inside).json["shape"] == [4, 6]
    assert zarrc("ls", cwd=inside).text == "temp\n"


def test_array_in_plain_folder(zarrc, tmp_path):
    zarr.save_array(tmp_path / "plain", np.arange(3))
    assert zarrc("cat", tmp_path / "plain").text == "0\n1\n2\n"


def test_did_you_mean(zarrc, tree):
    err = zarrc("info", "x.zarr/g/tmep", code=3, cwd=tree).err
    assert "there is no Zarr array or group at x.zarr:/g/tmep" in err
    assert 'Did you mean "g/temp"?' in err


def test_kinds(zarrc, tree):
    assert "is a group, cat needs an array" in zarrc("cat", "x.zarr/g", code=2, cwd=tree).err
    assert "takes no region" in zarrc("info", "x.zarr/g/temp[0]", code=2, cwd=tree).err
    assert "needs an array" in zarrc("explain", "x.zarr:/g[0]", code=2, cwd=tree).err


def test_names_with_brackets(zarrc, tmp_path):
    zarr.save_array(tmp_path / "a[1]", np.arange(3))
    assert zarrc("info", "--json", tmp_path / "a[1]").json["shape"] == [3]
    assert zarrc("cat", f"{tmp_path}/a[1][2]").text == "2\n"


def test_missing(zarrc, tmp_path):
    assert "no such directory" in zarrc("info", tmp_path / "none.zarr", code=3).err
    (tmp_path / "file").write_text("no store")
    assert "Not a directory" in zarrc("info", tmp_path / "file", code=2).err
    (tmp_path / "empty").mkdir()
    assert "there is no Zarr array or group" in zarrc("info", tmp_path / "empty", code=3).err


def test_new_hierarchy_is_rooted_at_dot_zarr(zarrc, tmp_path):
    zarrc("create", "sub/new.zarr/a/b", "--shape=2", "--dtype=i1", cwd=tmp_path)
    assert (tmp_path / "sub/new.zarr/zarr.json").exists()
    assert zarr.open_group(tmp_path / "sub/new.zarr")["a/b"].shape == (2,)
    zarrc("create", "bare/a", "--shape=2", "--dtype=i1", cwd=tmp_path)
    assert (tmp_path / "bare/a/zarr.json").exists() and not (tmp_path / "bare/zarr.json").exists()


def test_failed_create_leaves_nothing(zarrc, tmp_path):
    zarrc("create", "x.zarr", "--shape=2", "--dtype=nonsense", code=None, cwd=tmp_path)
    assert os.listdir(tmp_path) == []
