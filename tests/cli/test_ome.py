"""OME-Zarr metadata has another place in each format: a change of the format says what to do."""
import json

import pytest
import zarr

MULTISCALES = [{"version": "0.4", "axes": [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}],
                "datasets": [{"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1, 1]}]}]}]
V2 = {"multiscales": {"multiscales": MULTISCALES}, "plate": {"plate": {"wells": [], "version": "0.4"}},
      "well": {"well": {"images": [{"path": "0"}]}}, "label": {"image-label": {"version": "0.4"}},
      "bioformats2raw": {"bioformats2raw.layout": 3}}


def make(path, form, attributes, group=""):
    root = zarr.create_group(path, zarr_format=form, attributes={} if group else attributes)
    image = root.create_group(group, attributes=attributes) if group else root
    image.create_array("0", shape=(4, 4), chunks=(2, 2), dtype="u1", fill_value=0,
                       chunk_key_encoding={"name": "v2", "separator": "/"})[:] = 7
    image.create_group("below", attributes=attributes)


def count_warnings(zarrc, how, path, to, form):
    if how == "reencode":
        return zarrc("reencode", f"--zarr-format={form}", path, to).err.count("the OME-Zarr metadata of this group")
    told = zarrc("migrate", f"--zarr-format={form}", "--json", path)
    items = [i for i in told.json["documents"] if i["action"] == "warn"]
    assert told.err.count("the OME-Zarr metadata of this group") == len(items)
    return len(items)


@pytest.mark.parametrize("how", ["migrate", "reencode"])
@pytest.mark.parametrize("name", V2)
@pytest.mark.parametrize("group", ["", "a"])
def test_to_v3(zarrc, tmp_path, how, name, group):
    """One warning, of the topmost group; the attributes stay."""
    make(tmp_path / "x", 2, V2[name], group)
    assert count_warnings(zarrc, how, tmp_path / "x", tmp_path / "y", 3) == 1
    made = tmp_path / ("x" if how == "migrate" else "y") / group / "zarr.json"
    assert json.loads(made.read_text())["attributes"] == V2[name]


@pytest.mark.parametrize("how", ["migrate", "reencode"])
def test_to_v2(zarrc, tmp_path, how):
    make(tmp_path / "x", 3, {"ome": {"version": "0.5", "multiscales": MULTISCALES}})
    assert count_warnings(zarrc, how, tmp_path / "x", tmp_path / "y", 2) == 1


@pytest.mark.parametrize("how", ["migrate", "reencode"])
@pytest.mark.parametrize("form,attributes", [
    (2, {}), (2, {"labels": ["a"], "series": ["0"], "plate": "x", "well": 1, "multiscales": []}),
    (2, {"ome": {"version": "0.5"}}), (3, {"ome": "x"}), (3, {"multiscales": MULTISCALES})])
def test_no_warning(zarrc, tmp_path, how, form, attributes):
    make(tmp_path / "x", form, attributes)
    assert not count_warnings(zarrc, how, tmp_path / "x", tmp_path / "y", 5 - form)


@pytest.mark.parametrize("how", ["migrate", "reencode"])
def test_the_list_of_labels(zarrc, tmp_path, how):
    make(tmp_path / "x", 2, {"labels": ["cells"]}, "labels")
    assert count_warnings(zarrc, how, tmp_path / "x", tmp_path / "y", 3) == 1


def test_no_change_of_the_format(zarrc, tmp_path):
    make(tmp_path / "x", 2, V2["multiscales"])
    assert "OME-Zarr" not in zarrc("reencode", tmp_path / "x", tmp_path / "y").err
