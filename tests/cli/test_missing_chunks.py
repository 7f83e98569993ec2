"""Chunks that are not stored: --missing-chunks, ls --stored, and --checksum, which finds those that changed."""
import json
import os

import numpy as np
import pytest
import zarr


@pytest.fixture(params=["v2", "v3", "shards"])
def store(request, tmp_path):
    """An array of 4 x 3 blocks without the one at (1, 2), and its key."""
    path = tmp_path / "x.zarr"
    kind = request.param
    array = zarr.create_array(path, name="a", shape=(8, 6), chunks=(1, 1) if kind == "shards" else (2, 2),
                              shards=(2, 2) if kind == "shards" else None, dtype="i4", fill_value=-1,
                              zarr_format=2 if kind == "v2" else 3)
    array[...] = np.arange(48).reshape(8, 6)
    key = "a/1.2" if kind == "v2" else "a/c/1/2"
    os.unlink(path / key)
    return path, key


def test_fill_or_error(zarrc, store, tmp_path):
    path, key = store
    want = np.arange(48).reshape(8, 6)
    want[2:4, 4:6] = -1
    for option in ([], ["--missing-chunks=fill"]):
        got = json.loads(zarrc("cat", "--format=json", *option, f"{path}/a").text)
        assert np.array_equal(got, want)
        zarrc("verify", *option, path)
        zarrc("diff", *option, f"{path}/a", f"{path}/a")
    error = "--missing-chunks=error"
    assert key in zarrc("cat", error, f"{path}/a", code=None).err
    for command in (["cat", error, f"{path}/a"], ["export", error, f"{path}/a", tmp_path / "a.npy"],
                    ["reencode", error, f"{path}/a", tmp_path / "b.zarr"], ["diff", error, f"{path}/a", f"{path}/a"],
                    ["verify", error, path]):
        assert zarrc(*command, code=None).code != 0, command
    assert not (tmp_path / "a.npy").exists()
    zarrc("cat", error, f"{path}/a[:2]")  # what is read is stored
    told = zarrc("verify", error, path, code=1)
    assert f"{key}: 1 block is not stored, this one first" in told.text + told.err
    zarr.open_array(path, path="a")[2:4, 4:6] = 7
    for command in (["cat", error, f"{path}/a"], ["export", error, f"{path}/a", tmp_path / "a.npy"],
                    ["reencode", "--force", "--verify", error, f"{path}/a", tmp_path / "b.zarr"], ["verify", error, path],
                    ["diff", error, f"{path}/a", tmp_path / "b.zarr"]):
        zarrc(*command)


def test_inner_chunks(zarrc, tmp_path):
    """A shard that lacks inner chunks, and one at the border, whose others are outside of the shape."""
    path = tmp_path / "x.zarr"
    array = zarr.create_array(path, shape=(5,), chunks=(1,), shards=(4,), dtype="i4", fill_value=0)
    array[...] = [1, 2, 0, 0, 5]
    told = zarrc("verify", "--missing-chunks=error", path, code=1)
    assert "c/0: 2 chunks are not stored" in told.text + told.err and "c/1" not in told.text + told.err
    array[...] = [1, 2, 3, 4, 5]
    zarrc("verify", "--missing-chunks=error", path)


def test_reencode_of_few_chunks(zarrc, tmp_path):
    """A sparse array is not copied by its stored chunks alone if the others are an error."""
    path = tmp_path / "x.zarr"
    zarr.create_array(path, shape=(1000, 1000), chunks=(10, 10), dtype="u1")[:10, :10] = 1
    zarrc("reencode", path, tmp_path / "y.zarr")
    assert "missing" in zarrc("reencode", "--missing-chunks=error", path, tmp_path / "z.zarr", code=None).err


def test_ls_stored(zarrc, store):
    path, key = store
    lines = zarrc("ls", "--stored", f"{path}/a").text.splitlines()
    assert len(lines) == 12 and lines[-1] == f"missing  {key}"
    for line in lines[:-1]:
        state, name, size = line.split()
        assert state == "stored" and (path / name).stat().st_size == int(size)
    told = zarrc("ls", "--stored", "--json", f"{path}/a").json
    assert told["missing"] == [{"key": key, "block": [1, 2]}] and len(told["stored"]) == 11
    assert {"key", "block", "bytes"} == set(told["stored"][0])
    zarrc("ls", "--stored", path, code=None).err  # a group has none
    assert zarrc("ls", "--stored", path, code=None).code != 0


@pytest.mark.parametrize("options", [[], ["--shards=4"], ["--codec=none"], ["--codec=gzip", "--codec=crc32c"], ["--zarr-format=2"],
                                     ["--order=F", "--shape=8,1", "--chunks=2,1"]])
def test_checksum(zarrc, tmp_path, options):
    path = tmp_path / "x.zarr"
    zarrc("create", path, "--shape=8", "--chunks=2", "--dtype=i4", "--checksum", *options)
    document = json.loads((path / (".zarray" if "--zarr-format=2" in options else "zarr.json")).read_text())
    assert json.dumps(document).count('"crc32c"') == (2 if "--shards=4" in options else 1)  # the index of a shard has one
    codecs = document["filters"] if "--zarr-format=2" in options else document["codecs"]
    if "--shards=4" in options:
        codecs = codecs[0]["configuration"]["codecs"]
    assert (codecs[-1].get("id") or codecs[-1]["name"]) == "crc32c"
    import_from = tmp_path / "a.npy"
    np.save(import_from, np.arange(1, 9, dtype="i4").reshape(document["shape"]))
    zarrc("import", "--force", "--like", path, import_from, tmp_path / "y.zarr")
    zarrc("verify", tmp_path / "y.zarr")
    first = next(p for p in sorted((tmp_path / "y.zarr").rglob("*")) if p.is_file() and p.name[0] not in ".z")
    data = bytearray(first.read_bytes())
    data[1] ^= 1
    first.write_bytes(data)
    zarrc("verify", tmp_path / "y.zarr", code=1)


def test_checksum_of_copies(zarrc, tmp_path):
    zarrc("create", tmp_path / "x.zarr", "--shape=8", "--chunks=2", "--shards=4", "--dtype=i4")
    zarrc("reencode", "--checksum", tmp_path / "x.zarr", tmp_path / "y.zarr")
    inner = json.loads((tmp_path / "y.zarr/zarr.json").read_text())["codecs"][0]["configuration"]["codecs"]
    assert inner[-1]["name"] == "crc32c"
    assert zarrc("create", tmp_path / "z.zarr", "--checksum", "--document", tmp_path / "x.zarr/zarr.json", code=None).code == 2
    assert "--checksum" in zarrc("create", "--help").text and "detect" in zarrc("create", "--help").text


def test_scalar(zarrc, tmp_path):
    zarrc("create", tmp_path / "x.zarr", "--shape=", "--dtype=i4", "--fill=7")
    for region in ("", "[()]", "[...]", "[]", "[ () ]"):
        assert zarrc("cat", f"{tmp_path}/x.zarr{region}").text == "7\n"
    zarrc("create", tmp_path / "y.zarr", "--shape=2", "--dtype=i4", "--fill=7")
    assert zarrc("cat", f"{tmp_path}/y.zarr[()]").text == zarrc("cat", f"{tmp_path}/y.zarr").text
