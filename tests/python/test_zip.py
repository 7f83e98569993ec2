"""Zip archives: how they are opened, what they refuse, pickles and forks. tests/conformance/test_zip_programs.py compares values."""
import multiprocessing
import os
import pickle
import shutil
import zipfile

import numpy as np
import pytest
import zarr
import zarrc


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "x.zarr.zip"
    with zarr.storage.ZipStore(path, mode="w") as store:
        group = zarr.create_group(store, attributes={"a": 1})
        group.create_array("g/temp", shape=(20, 30), chunks=(5, 10), shards=(10, 30), dtype="i4")[:] = np.arange(600).reshape(20, 30)
    return path


def all_values():
    return np.arange(600, dtype="i4").reshape(20, 30)


def test_places(archive, monkeypatch):
    monkeypatch.chdir(archive.parent)
    shutil.copy(archive, "odd name [1].ozx")
    shutil.copy(archive, "plain")
    for root in (archive, str(archive), f"file://{archive}", "x.zarr.zip", "odd name [1].ozx", "zip:plain", f"zip:{archive}"):
        assert zarrc.open_group(root).attrs["a"] == 1
        assert np.array_equal(zarrc.open_group(root)["g/temp"][:], all_values())
        assert np.array_equal(zarrc.open(root, path="g/temp")[3:7], all_values()[3:7])
        assert np.array_equal(zarrc.open_array(f"{root}/g/temp")[:], all_values())
    store = zarrc.open_store(archive, mode="r")
    assert store.kind == "zip" and store.read_only and str(store) == f"file://{archive}"
    assert sorted(store.list_dir("")) == ["g", "zarr.json"]
    assert store.getsize("zarr.json") == len(store.get("zarr.json")) and store.get("none") is None
    assert str(zarrc.open_store("zip:plain", mode="r")) == f"zip:{archive.parent}/plain"
    assert np.array_equal(zarrc.open_array(str(zarrc.open_store("zip:plain", mode="r")), path="g/temp")[:], all_values())


def test_folder_named_zip(tmp_path):
    array = zarrc.create_array(tmp_path / "made", shape=(3,), dtype="i4")
    array[:] = 7
    os.rename(tmp_path / "made", tmp_path / "made.zip")
    assert list(zarrc.open_array(tmp_path / "made.zip")[:]) == [7, 7, 7]


def test_refusals(archive, tmp_path):
    with pytest.raises(zarrc.errors.ReadOnlyError, match="read-only"):
        zarrc.open_array(f"{archive}/g/temp", mode="r")[0] = 1
    with pytest.raises(zarrc.errors.NotFoundError, match="none.zip"):
        zarrc.open(tmp_path / "none.zip")
    (tmp_path / "bad.zip").write_bytes(b"no archive")
    with pytest.raises(zarrc.errors.CorruptError, match="bad.zip.*no zip archive"):
        zarrc.open(tmp_path / "bad.zip")
    array = zarrc.open_array(f"{archive}/g/temp")
    os.utime(archive, (1, 1))
    with pytest.raises(OSError, match="changed after it was opened"):
        array[:]


def test_fsspec_has_its_own_scheme(archive):
    assert np.array_equal(zarrc.open_array(f"zip://::file://{archive}", path="g/temp")[:], all_values())


def _sum(array):
    return int(array[:].sum())


def test_pickle_and_fork(archive):
    array = zarrc.open_array(f"{archive}/g/temp")
    assert np.array_equal(pickle.loads(pickle.dumps(array))[:], all_values())
    array[0]
    with multiprocessing.get_context("fork").Pool(3) as pool:
        assert pool.map(_sum, [array] * 8) == [int(all_values().sum())] * 8
    pid = os.fork()
    if pid == 0:
        os._exit(0 if np.array_equal(array[:], all_values()) else 1)
    assert np.array_equal(array[:], all_values())
    assert os.waitpid(pid, 0)[1] == 0


def test_compressed_members_of_a_shard(archive, tmp_path):
    """Reads of parts of deflated shards."""
    packed = tmp_path / "packed.zip"
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            new.writestr(info.filename, old.read(info))
    array = zarrc.open_array(f"{packed}/g/temp")
    for row in range(20):
        assert np.array_equal(array[row, 5:25], all_values()[row, 5:25])


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED], ids=["stored", "deflated"])
def test_others_read_what_zarrc_wrote(tmp_path, zarr_format, compression):
    tensorstore = pytest.importorskip("tensorstore")
    group = zarrc.create_group(tmp_path / "x.zarr", zarr_format=zarr_format, attributes={"a": 1})
    more = {"shards": (10, 30)} if zarr_format == 3 else {}
    group.create_array("g/temp", data=all_values(), chunks=(5, 10), **more)
    with zipfile.ZipFile(tmp_path / "x.zip", "w", compression) as archive:
        for file in sorted((tmp_path / "x.zarr").rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(tmp_path / "x.zarr"))
    assert np.array_equal(zarrc.open_array(f"{tmp_path}/x.zip/g/temp")[:], all_values())
    with zarr.storage.ZipStore(tmp_path / "x.zip", mode="r") as store:
        theirs = zarr.open_group(store, mode="r")
        assert theirs.attrs["a"] == 1 and np.array_equal(theirs["g/temp"][:], all_values())
    spec = {"driver": "zarr" if zarr_format == 2 else "zarr3",
            "kvstore": {"driver": "zip", "base": {"driver": "file", "path": f"{tmp_path}/x.zip"}, "path": "g/temp/"}}
    assert np.array_equal(tensorstore.open(spec, open=True, read=True).result().read().result(), all_values())
