"""What a killed resize or append left: the next resize, clean and verify know it, and other programs ignore its
record."""
import json

import numpy as np
import pytest
import zarr

RECORD = ".zarrc-leftovers"


@pytest.fixture(params=[2, 3])
def store(tmp_path, request):
    """An array of 12 rows, cut to 5 as by a resize that was killed before it cleared anything."""
    top = zarr.create_group(str(tmp_path / "x.zarr"), zarr_format=request.param)
    array = top.create_array("a", shape=(12, 4), chunks=(2, 4), dtype="i4", fill_value=-1)
    array[:] = np.arange(48).reshape(12, 4)
    return tmp_path / "x.zarr"


def cut(store, record=True):
    path = store / "a" / ("zarr.json" if (store / "a/zarr.json").exists() else ".zarray")
    document = json.loads(path.read_text())
    document["shape"][0] = 5
    path.write_text(json.dumps(document))
    if record:
        (store / "a" / RECORD).write_text('{"zarrc_leftovers": 1, "extent": [12, 4]}')


def check(store, rows):
    values = zarr.open_group(str(store), mode="r")["a"][:]
    assert values.shape == (rows, 4)
    assert (values[:5].ravel() == np.arange(20)).all() and (values[5:] == -1).all()


def test_resize(zarrc, store):
    cut(store)
    zarrc("resize", store / "a", "12,-")
    check(store, 12)
    assert not (store / "a" / RECORD).exists()


def test_verify_and_clean(zarrc, store):
    cut(store)
    done = zarrc("verify", "--json", store, code=1).json
    assert [f["severity"] for f in done["faults"]] == ["warning", "note", "note"]
    assert done["faults"][0]["key"] == f"a/{RECORD}" and done["faults"][0]["code"] == "conflict"
    assert (done["n_faults"], done["n_notes"], done["valid"]) == (1, 2, False)
    assert zarrc("verify", "--no-data", "--json", store, code=1).json["n_faults"] == 1
    assert "would clear" in zarrc("clean", "-n", store).err
    assert zarrc("clean", "-n", "--json", store).json["arrays"] == [f"{store}:/a"]
    assert (store / "a" / RECORD).exists()
    assert "cleared" in zarrc("clean", store).err
    assert not (store / "a" / RECORD).exists()
    done = zarrc("verify", "--json", store).json
    assert done["valid"] and done["faults"] == []
    assert zarrc("clean", "--json", store / "a").json["arrays"] == []
    zarrc("resize", "--keep-chunks", store / "a", "12,-")
    check(store, 12)


def test_of_other_programs(zarrc, store):
    """zarr-python erases chunks and keeps elements at the border; those are a note, and the same shape clears them."""
    zarr.open_group(str(store))["a"].resize((5, 4))
    done = zarrc("verify", "--json", store).json
    assert done["valid"] and [f["severity"] for f in done["faults"]] == ["note"]
    assert "[note]" in zarrc("verify", store).text
    assert zarrc("clean", "--json", store).json["arrays"] == []
    before = {p: p.stat().st_mtime_ns for p in store.rglob("*") if p.is_file() and p.name[0] not in ".z"}
    zarrc("resize", store / "a", "--", "-,-")
    assert zarrc("verify", "--json", store).json["faults"] == []
    assert sum(p.stat().st_mtime_ns != t for p, t in before.items()) == 1  # only the border chunk
    zarr.open_group(str(store))["a"].resize((12, 4))
    check(store, 12)


def test_chunks_of_other_programs(zarrc, store):
    cut(store, record=False)
    done = zarrc("verify", "--json", store).json
    assert [f["severity"] for f in done["faults"]] == ["note", "note"]
    zarrc("clean", "--age=0", store)
    assert zarrc("verify", "--json", store).json["n_notes"] == 2
    zarrc("resize", store / "a", "--", "-,-")
    assert zarrc("verify", "--json", store).json["n_notes"] == 0
    zarrc("resize", store / "a", "12,-")
    check(store, 12)


def test_others_ignore_the_record(zarrc, store):
    cut(store)
    group = zarr.open_group(str(store))
    assert list(group.array_keys()) == ["a"] and list(group.group_keys()) == []
    assert list(group["a"].shape) == [5, 4] and (group["a"][:].ravel() == np.arange(20)).all()
    zarr.consolidate_metadata(str(store), zarr_format=group.metadata.zarr_format)
    assert list(zarr.open_consolidated(str(store)).array_keys()) == ["a"]


def test_own_commands(zarrc, store):
    cut(store)
    zarrc("consolidate", store)
    zarrc("cp", store / "a", store / "b")
    assert (store / "b" / RECORD).exists()
    zarrc("mv", store / "b", store / "a2")
    zarrc("info", store / "a2")
    zarrc("consolidate", store)
    assert zarrc("ls", store).text.split() == ["a", "a2"]
    zarrc("diff", store / "a", store / "a2")
    zarrc("reencode", store / "a2", store / "again")
    assert not (store / "again" / RECORD).exists()
    zarrc("migrate", store / "a2")
    zarrc("resize", store / "a2", "12,-")
    zarrc("diff", store / "a", store / "a2", code=1)
    assert not (store / "a2" / RECORD).exists()
    zarrc("rm", store / "a")
    assert not (store / "a").exists()
