"""zarrc repack, and archives in the form of single-file OME-Zarr (RFC-9)."""
import json
import random
import zipfile

import numpy as np
import pytest
import zarr

VALUES = np.arange(64 * 64, dtype="u2").reshape(64, 64)
COMMENT = {"ome": {"version": "0.5", "zipFile": {"centralDirectory": {"jsonFirst": True}}}}


@pytest.fixture
def hierarchy(tmp_path):
    """An OME-Zarr of three levels, in a folder."""
    group = zarr.create_group(tmp_path / "x.ome.zarr", attributes={"ome": {"version": "0.5"}})
    for name in ("s0", "s1", "labels/cells/s0"):
        group.create_array(name, shape=(64, 64), chunks=(16, 16), shards=(32, 32), dtype="u2")[...] = VALUES
    return tmp_path / "x.ome.zarr"


def check(zarrc, path):
    """verify has no notes, other programs read all values, and each zarr.json is first."""
    assert zarrc("verify", "--json", path).json["faults"] == []
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None and json.loads(archive.comment) == COMMENT
        names = archive.namelist()
        assert names == [info.filename for info in sorted(archive.infolist(), key=lambda info: info.header_offset)]
        documents = [name for name in names if name.endswith("zarr.json")]
        assert names[:len(documents)] == documents and documents[0] == "zarr.json"
        assert [name.count("/") for name in documents] == sorted(name.count("/") for name in documents)
    with zarr.storage.ZipStore(path, mode="r") as store:
        group = zarr.open_group(store, mode="r")
        assert all(np.array_equal(group[name][...], VALUES) for name in ("s0", "s1", "labels/cells/s0"))


def test_cp_to_ozx(zarrc, hierarchy, tmp_path):
    """A copy has the form, also if it is made of several commands. An array in a new archive, too."""
    path = tmp_path / "out.ozx"
    zarrc("cp", hierarchy, path)
    check(zarrc, path)
    assert not zarrc("repack", "--json", path).json["needed"]
    zarrc("cp", "--store-option", f"{tmp_path}/plain.ozx=zip_form=plain", hierarchy, tmp_path / "plain.ozx")
    assert len(zarrc("verify", "--json", tmp_path / "plain.ozx").json["faults"]) == 3
    zarrc("repack", tmp_path / "plain.ozx")
    check(zarrc, tmp_path / "plain.ozx")
    zarrc("cp", "--store-option", f"{tmp_path}/x.zip=zip_form=ozx", hierarchy, tmp_path / "x.zip")
    (tmp_path / "x.zip").rename(tmp_path / "named.ozx")
    check(zarrc, tmp_path / "named.ozx")
    zarrc("reencode", "--codec=gzip:1", hierarchy, tmp_path / "new.ozx")
    check(zarrc, tmp_path / "new.ozx")


def test_changes_of_ozx(zarrc, hierarchy, tmp_path):
    """A change appends, and the comment tells the version while it may. repack makes it good."""
    path = tmp_path / "out.ozx"
    zarrc("cp", hierarchy, path)
    before = path.read_bytes()
    zarrc("attrs", "set", f"{path}/s0", "k", "1")
    assert path.read_bytes().startswith(before)
    assert zarrc("verify", "--json", path).json["faults"] == []
    zarrc("attrs", "set", path, "k", "1")
    reasons = [fault["reason"] for fault in zarrc("verify", "--json", path).json["faults"]]
    assert reasons == ["zarr.json of the root is not the first member", "its comment does not tell the version of OME-Zarr"]
    said = zarrc("repack", "-n", path).err
    assert said.startswith(f"{path}: would save ") and " KiB of " in said
    assert zarrc("repack", path).err.startswith(f"{path}: saved ")
    check(zarrc, path)
    assert zarrc("attrs", "list", "--json", path).json["attributes"]["k"] == 1


def test_dead_bytes(zarrc, hierarchy, tmp_path):
    path = tmp_path / "x.zip"
    zarrc("cp", hierarchy, path)
    zarrc("rm", "-r", f"{path}/s1")
    dead = zarrc("info", "--json", "--stats", path).json["dead"]["bytes"]
    before = path.stat().st_size
    assert zarrc("repack", "--json", "-n", path).json == {"needed": True, "bytes_before": before, "bytes_after": before - dead}
    assert path.stat().st_size == before
    assert zarrc("repack", "--json", path).json == {"needed": True, "bytes_before": before, "bytes_after": before - dead}
    assert path.stat().st_size == before - dead
    assert "dead" not in zarrc("info", "--json", "--stats", path).json
    after = path.read_bytes(), path.stat().st_ino
    assert "nothing to remove" in zarrc("repack", path).err
    assert (path.read_bytes(), path.stat().st_ino) == after
    zarrc("verify", path)
    assert [p.name for p in tmp_path.iterdir() if "lock" in p.name] == []


def test_many_members(zarrc, tmp_path):
    """Every member that is not replaced keeps its bytes and its record."""
    path, rng = tmp_path / "x.zip", random.Random(5)
    with zipfile.ZipFile(path, "w") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.comment = b"a comment"
        for i in range(20_000):
            method = zipfile.ZIP_DEFLATED if i % 3 == 0 else zipfile.ZIP_STORED
            archive.writestr(f"n/{rng.randrange(15_000)}", rng.randbytes(rng.randrange(60)) * 3, method)
    with zipfile.ZipFile(path) as archive:
        wanted = {name: (archive.read(name), archive.getinfo(name).compress_type, archive.getinfo(name).date_time)
                  for name in set(archive.namelist())}
    assert zarrc("repack", "--json", path).json["needed"]
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None and archive.comment == b"a comment"
        assert len(archive.namelist()) == len(wanted)
        assert {info.filename: (archive.read(info), info.compress_type, info.date_time) for info in archive.infolist()} == wanted


def test_refusals(zarrc, hierarchy, tmp_path):
    assert "no archive: there is nothing to repack" in zarrc("repack", hierarchy, code=6).err
    zarrc("cp", hierarchy, tmp_path / "x.zip")
    assert "Name the archive alone" in zarrc("repack", f"{tmp_path}/x.zip/s0", code=2).err
    zarrc("repack", tmp_path / "none.zip", code=3)
    assert "plain|ozx" in zarrc("repack", "--store-option", "zip_form=7", tmp_path / "x.zip", code=2).err


def test_damaged_archive(zarrc, hierarchy, tmp_path):
    """A damaged member is named, and the archive stays as it is."""
    path = tmp_path / "x.zip"
    zarrc("cp", hierarchy, path)
    zarrc("rm", "-r", f"{path}/s1")
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo("s0/c/0/0")
    data = bytearray(path.read_bytes())
    data[info.header_offset + 60] ^= 1
    path.write_bytes(data)
    assert "s0/c/0/0: member of x.zip: its CRC-32 is not that of the directory" in zarrc("repack", path, code=4).err
    assert path.read_bytes() == data
    assert [p.name for p in tmp_path.iterdir() if "lock" in p.name] == []
