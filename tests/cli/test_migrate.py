"""zarrc migrate: messages, documents that stay, exit codes, OME-Zarr. tests/conformance checks the values."""
import json

import numpy as np
import pytest
import zarr


def files(path, pattern):
    return sorted(str(p.relative_to(path)) for p in path.rglob(pattern))


@pytest.fixture
def store(tmp_path):
    root = zarr.create_group(tmp_path / "x.zarr", zarr_format=2)
    root.create_array("g/a", shape=(4, 6), chunks=(2, 3), dtype=">f4", order="F",
                      attributes={"_ARRAY_DIMENSIONS": ["y", "x"]})[:] = np.arange(24).reshape(4, 6)
    root.create_array("b", shape=(3,), dtype="i2")
    return tmp_path / "x.zarr"


def test_dry_run_and_back(zarrc, store):
    before = zarrc("cat", store / "g/a").text
    dry = zarrc("migrate", "--dry-run", store)
    assert files(store, "zarr.json") == []
    assert [line.split() for line in dry.text.splitlines()] == [
        ["write", key] for key in ("g/a/zarr.json", "g/zarr.json", "b/zarr.json", "zarr.json")]
    assert "4 documents would be written" in dry.err
    assert "4 documents written" in zarrc("migrate", store).err
    assert files(store, ".zarray") == ["b/.zarray", "g/a/.zarray"]
    info = zarrc("info", "--json", store / "g/a").json
    assert info["zarr_format"] == 3 and info["dimension_names"] == ["y", "x"]
    assert zarrc("cat", store / "g/a").text == before
    assert "4 unchanged" in zarrc("migrate", "--remove-old", store).err
    assert files(store, ".z*") == [] and zarrc("cat", store / "g/a").text == before
    assert "nothing to migrate" in zarrc("migrate", store).err
    zarrc("migrate", "--zarr-format=2", "--remove-old", store)
    assert files(store, "zarr.json") == [] and zarrc("cat", store / "g/a").text == before
    zarrc("verify", store)


def test_json(zarrc, store):
    done = zarrc("migrate", "--json", store / "b").json
    assert done["zarr_format"] == 3 and done["written"] == 1 and done["removed"] == 0
    [item] = done["documents"]
    assert (item["action"], item["path"], item["key"]) == ("write", "b", "b/zarr.json")
    assert item["document"] == json.loads((store / "b/zarr.json").read_text())


def test_conflict(zarrc, store):
    zarrc("migrate", store)
    zarrc("attrs", store / "b", "set", "k=1", code=None)
    zarr.open_array(store / "b", zarr_format=3).attrs["k"] = 1
    failed = zarrc("migrate", "--json", store, code=5)
    assert "/b: there is a zarr.json already" in failed.error["why"]
    zarrc("migrate", "--force", store)
    assert "k" not in zarr.open_array(store / "b", zarr_format=3).attrs


def test_refused_nodes(zarrc, tmp_path):
    """The error names every refused node, and nothing is written."""
    root = zarr.create_group(tmp_path / "x", zarr_format=3)
    for name in ("a", "b"):
        root.create_array(name, shape=(4,), chunks=(2,), dtype="i4")
    failed = zarrc("migrate", "--zarr-format=2", tmp_path / "x", code=6)
    assert '/a: Zarr v2 cannot express chunk key encoding "default"' in failed.err and "/b:" in failed.err
    assert files(tmp_path / "x", ".z*") == []
    done = zarrc("migrate", "--zarr-format=2", "--json", "-n", tmp_path / "x", code=6)
    assert [i["action"] for i in done.json["documents"]] == ["refuse", "refuse"]


def test_what_v2_would_lose(zarrc, store):
    """The error names the node, the field and the rule."""
    zarrc("migrate", "--remove-old", store)
    document = json.loads((store / "g/a/zarr.json").read_text())
    for change, message in (({"fill_value": "0x7fc00001"}, 'fill_value: Zarr v2 cannot express "0x7fc00001"'),
                            ({"dimension_names": [None, "x"]}, "dimension_names[0] is null")):
        (store / "g/a/zarr.json").write_text(json.dumps(document | change))
        failed = zarrc("migrate", "--zarr-format=2", store, code=6)
        assert f"/g/a: {message}" in failed.err and files(store, ".z*") == []


def test_strays_stay(zarrc, tmp_path):
    path = tmp_path / "x"
    zarrc("create", "-g", "--zarr-format=3", path)
    (path / ".zattrs").write_text('{"mine": 1}')
    (path / ".zmetadata").write_text("{}")
    done = zarrc("migrate", "--remove-old", path)
    assert ".zattrs is not removed: zarr.json has other attributes" in done.err
    assert ".zmetadata is not removed" in done.err and "nothing to migrate" in done.err
    assert files(path, ".z*") == [".zattrs", ".zmetadata"]
    done = zarrc("migrate", "--remove-old", "--json", path).json
    assert [(i["action"], i["key"]) for i in done["documents"]] == [
        ("leave", ".zmetadata"), ("leave", ".zattrs")]
    assert done["documents"][1]["why"] == "zarr.json has other attributes" and done["removed"] == 0
    (path / ".zattrs").write_text("{}")
    zarrc("migrate", "--remove-old", path)
    assert files(path, ".z*") == [".zmetadata"]


def test_usage(zarrc, tmp_path, store):
    zarrc("migrate", tmp_path / "nowhere", code=3)
    zarrc("migrate", "--zarr-format=4", store, code=2)
    zarrc("migrate", f"{store / 'b'}[0]", code=2)
    zarrc("migrate", code=2)
    (store / "b/.zarray").write_text("{")
    failed = zarrc("migrate", store, code=4)
    assert "/b" in failed.err and files(store, "zarr.json") == []
    assert "usage: zarrc migrate" in zarrc("migrate", "--help").text.lower()


# ---- OME-Zarr: its metadata has another place in each format, and a warning says what to do ----

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
