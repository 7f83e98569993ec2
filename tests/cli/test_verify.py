"""zarrc verify finds every kind of damage, names its key and reason, and exits with 1."""
import json
import os
import shutil
import socket
import subprocess
import zipfile

import numcodecs
import numpy as np
import pytest
import zarr
from conftest import PROGRAM


@pytest.fixture
def store(tmp_path, rng):
    top = zarr.create_group(str(tmp_path / "x.zarr"))
    values = rng.integers(0, 99, (64, 64)).astype("i4")
    top.create_array("plain", shape=(64, 64), chunks=(16, 16), dtype="i4")[:] = values
    top.create_array("sharded", shape=(64, 64), chunks=(8, 8), shards=(32, 32), dtype="i4")[:] = \
        values
    top.create_array("sums", shape=(64, 64), chunks=(32, 32), dtype="i4",
                     compressors=[zarr.codecs.Crc32cCodec()])[:] = values
    top.create_group("deep").create_array("x", shape=(10,), chunks=(5,), dtype="f8")[:] = 1
    return tmp_path / "x.zarr"


def damage(path, at, data=b"\xff\x00\xff"):
    bytes_ = bytearray(path.read_bytes())
    at = at if at >= 0 else len(bytes_) + at
    bytes_[at:at + len(data)] = data
    path.write_bytes(bytes_)


def faults(zarrc, path, **options):
    return zarrc("verify", "--json", path, code=1, **options).json["faults"]


def test_valid(zarrc, store):
    done = zarrc("verify", "--json", store).json
    assert done["valid"] is True and done["faults"] == []
    assert (done["arrays"], done["groups"], done["objects"]) == (4, 2, 16 + 4 + 4 + 2)
    stored = [p for p in store.rglob("*") if p.is_file() and p.name != "zarr.json"]
    assert done["bytes"] == sum(p.stat().st_size for p in stored)
    text = zarrc("verify", store)
    assert "valid" in text.err and text.out == b""
    zarrc("verify", store / "plain")


def test_missing_chunks_are_legal(zarrc, store):
    (store / "plain/c/0/0").unlink()
    (store / "sharded/c/0/0").unlink()
    zarrc("verify", store)


@pytest.mark.parametrize("key, at, reason", [
    ("plain/c/1/2", 0, ""), ("sums/c/0/1", 17, ""), ("sums/c/0/1", -1, ""),
    ("sharded/c/1/0", 3, "chunk ["), ("sharded/c/1/0", -2, ""), ("sharded/c/1/0", -80, "")])
def test_damage(zarrc, store, key, at, reason):
    damage(store / key, at)
    found = faults(zarrc, store)
    assert {f["key"] for f in found} == {key} and found[0]["code"] == "corrupt"
    assert any(reason in f["reason"] for f in found)
    assert all(f["block"] == [int(i) for i in key.split("/")[-2:]] for f in found)
    printed = zarrc("verify", store, code=1)
    assert printed.text.startswith(f"{key}: ") and "NOT VALID" in printed.err


@pytest.mark.parametrize("key, chunk", [("sums/c/0/1", None), ("sharded/c/1/0", [4, 0])])
def test_error_of_a_read(zarrc, store, key, chunk):
    """It has the coordinates of the block, and those of the chunk in the array, not in its shard."""
    damage(store / key, 3)
    node = key.split("/")[0]
    error = zarrc("cat", "--json", store / node, code=4).error
    assert error["node"] == f"/{node}" and error["key"] == key
    assert error["block"] == [int(i) for i in key.split("/")[-2:]] and error.get("chunk") == chunk
    absent = zarrc("cat", "--json", store / "absent", code=3).error
    assert not {"key", "block", "chunk"} & set(absent)


@pytest.mark.parametrize("key", ["plain/c/1/2", "sums/c/0/1", "sharded/c/1/0"])
@pytest.mark.parametrize("keep", [0, 5, -1])
def test_truncated(zarrc, store, key, keep):
    path = store / key
    path.write_bytes(path.read_bytes()[:keep])
    assert {f["key"] for f in faults(zarrc, store)} == {key}


def test_all_faults_are_listed(zarrc, store):
    for i in range(4):
        damage(store / f"plain/c/{i}/{i}", 0)
    damage(store / "sharded/c/0/1", -1)
    assert len(faults(zarrc, store)) == 5


def test_metadata(zarrc, store):
    (store / "plain/zarr.json").write_text('{"zarr_format": 3')
    found = faults(zarrc, store)
    assert [f["node"] for f in found] == ["plain"] and "zarr.json" in found[0]["reason"]


def test_consolidated(zarrc, store):
    zarrc("consolidate", store)
    zarrc("verify", store)
    zarrc("resize", "--no-consolidate", store / "plain", "32,64")
    found = faults(zarrc, store)
    assert len(found) == 1 and "plain" in found[0]["reason"]


def test_v2(zarrc, tmp_path, rng):
    path = tmp_path / "v2.zarr"
    zarr.create_array(str(path), shape=(30, 30), chunks=(10, 10), dtype="i2", zarr_format=2)[:] = \
        rng.integers(0, 99, (30, 30))
    zarrc("verify", path)
    (path / "1.1").write_bytes((path / "1.1").read_bytes()[:-3])
    assert [f["key"] for f in faults(zarrc, path)] == ["1.1"]


def test_unknown_codecs_do_not_stop_verify(zarrc, store):
    """verify reports arrays whose codec is refused, unknown or not decodable here, and checks the others."""
    for name, codec in [("a", "numcodecs.pcodec"), ("b", "snake")]:
        shutil.copytree(store / "sums", store / name)
        text = (store / name / "zarr.json").read_text()
        codecs = [{"name": "bytes", "configuration": {"endian": "little"}}]
        (store / name / "zarr.json").write_text(json.dumps({**json.loads(text), "codecs": [
            {"name": codec, "configuration": {}}] if name == "a" else [*codecs, {"name": codec}]}))
    damage(store / "sums/c/0/1", 17)
    assert [(f["node"], f["code"]) for f in faults(zarrc, store)] == [
        ("a", "unsupported"), ("b", "unsupported"), ("sums", "corrupt")]
    assert zarrc("verify", store, code=1).text.count("/b: codecs[1]") == 0  # the key already names the node
    assert [f["code"] for f in faults(zarrc, store / "b")] == ["unsupported"]
    assert [f["code"] for f in faults(zarrc, f"{store}/a")] == ["unsupported"]


def test_missing_node(zarrc, tmp_path):
    zarrc("verify", tmp_path / "none.zarr", code=3)
    zarrc("verify", code=2)


def test_untrusted(zarrc, tmp_path):
    path = tmp_path / "big.zarr"
    zarr.create_array(str(path), shape=(2**27,), chunks=(2**27,), dtype="i4")
    (path / "c").mkdir()
    (path / "c/0").write_bytes(b"\x28\xb5\x2f\xfd" * 8)
    assert faults(zarrc, path)[0]["code"] == "corrupt"
    assert zarrc("verify", "--untrusted", "--json", path, code=None).code in (1, 4)


def test_no_data(zarrc, store):
    damage(store / "plain/c/1/2", 0)
    zarrc("verify", "--no-data", store)


def test_closed_pipe(store):
    for i in range(4):
        for k in range(4):
            damage(store / f"plain/c/{i}/{k}", 0)
    run = subprocess.Popen([PROGRAM, "verify", str(store)], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL)
    run.stdout.close()
    assert run.wait() in (1, 3)


def test_uncompressed_damage_needs_checksums(zarrc, tmp_path):
    path = tmp_path / "raw.zarr"
    zarr.create_array(str(path), shape=(8,), dtype="i4", compressors=None)[:] = np.arange(8) + 1
    damage(path / "c/0", 4)
    zarrc("verify", path)  # the length is right, and there is no checksum
    (path / "c/0").write_bytes(b"12345")
    assert faults(zarrc, path)


def test_strict(zarrc, tmp_path):
    """What is read although other readers may refuse it is reported only if that is asked for."""
    path = tmp_path / "a.zarr"
    zarr.create_array(str(path), shape=(8,), dtype="i4", zarr_format=2, compressors=numcodecs.Zstd())[:] = np.arange(8)
    zarrc("verify", "--strict", path)
    document = json.loads((path / ".zarray").read_text())
    document["compressor"]["level"] = 100
    (path / ".zarray").write_text(json.dumps(document))
    zarrc("verify", path)
    assert "compressor: zstd: level is 100, must be an integer from -131072 to 22" in \
        zarrc("verify", "--strict", path, code=1).text
    found = zarrc("verify", "--strict", "--json", path, code=1).json
    assert [fault["code"] for fault in found["faults"]] == ["invalid"] and not found["valid"]
    zarrc("reencode", path, tmp_path / "b.zarr")
    zarrc("verify", "--strict", tmp_path / "b.zarr")


def unreadable(path, what):
    path.unlink()
    if what == "fifo":
        os.mkfifo(path)
    elif what == "socket":
        with socket.socket(socket.AF_UNIX) as s:
            here = os.open(path.parent, os.O_PATH)
            s.bind(f"/proc/self/fd/{here}/{path.name}")  # a path may be too long for a socket
            os.close(here)
    elif what == "empty":
        path.mkdir()
    elif what == "folder":
        path.mkdir()
        (path / "x").write_bytes(b"1")
    elif what == "linked":
        (path.parent / "real").mkdir()
        path.symlink_to("real")
    elif what == "loop":
        path.symlink_to(path.name)
    elif what == "nowhere":
        path.symlink_to("nowhere")
    else:
        path.symlink_to("/dev/null")


@pytest.mark.parametrize("what", ["fifo", "socket", "empty", "folder", "linked", "loop", "nowhere", "outside"])
def test_objects_that_cannot_be_read(zarrc, store, what):
    """One object that is no file is one fault of that chunk, and no note. The others are checked, too."""
    keys = {"plain/c/1/2", "sharded/c/1/0", "sums/c/0/1"}
    for key in keys:
        unreadable(store / key, what)
    damage(store / "plain/c/3/3", 0)
    found = {f["key"]: f for f in faults(zarrc, store)}
    assert set(found) == keys | {"plain/c/3/3"} and found["plain/c/3/3"]["code"] == "corrupt"
    for key in keys:
        assert found[key]["code"] == "io"
        assert (key in found[key]["reason"]) == (what in ("loop", "outside"))  # a refused link is shown with its target


@pytest.mark.parametrize("what", ["file", "link"])
def test_files_that_hide_chunks(zarrc, store, what):
    """A file, or a link that leads nowhere, in the place of a folder hides the chunks in it. The others are checked."""
    shutil.rmtree(store / "plain/c/2")
    if what == "file":
        (store / "plain/c/2").write_text("x")
    else:
        (store / "plain/c/2").symlink_to("nowhere")
    damage(store / "plain/c/3/3", 0)
    found = faults(zarrc, store)
    assert {(f["key"], f["code"]) for f in found} == {("plain/c/2/0", "io"), ("plain/c/3/3", "corrupt")}


@pytest.mark.parametrize("name", ["zarr.json", ".zarrc-leftovers"])
def test_documents_that_cannot_be_read(zarrc, store, name):
    path = store / "plain" / name
    path.touch()
    unreadable(path, "fifo")
    damage(store / "plain/c/3/3", 0)
    damage(store / "sums/c/0/1", 17)
    found = faults(zarrc, store)
    assert {f["key"] for f in found} == {"plain", "sums/c/0/1"} | ({"plain/c/3/3"} if name != "zarr.json" else set())
    assert next(f for f in found if f["key"] == "plain")["code"] == "io"


def test_foreign_objects_are_notes(zarrc, store):
    (store / "plain/README").write_text("x")
    (store / "plain/c/1/notes.txt").write_text("x")
    (store / "plain/sub").mkdir()
    (store / "plain/sub/zarr.json").write_text("{}")
    done = zarrc("verify", "--json", store).json
    assert done["valid"] and done["n_faults"] == 0 and done["n_notes"] == 1
    note, = done["faults"]
    assert note["severity"] == "note" and note["key"] in ("plain/README", "plain/c/1/notes.txt", "plain/sub/zarr.json")
    assert note["reason"] == "3 objects, this one among them, are no part of the array"
    assert "[note]" in zarrc("verify", store / "plain").text


def test_chunks_under_other_keys_are_a_fault(zarrc, tmp_path):
    """Metadata with the wrong separator makes all elements the fill value; of another key encoding there is a note."""
    path = tmp_path / "x.zarr"
    zarr.create_array(str(path), shape=(4, 4), chunks=(2, 2), dtype="i4")[:] = 1
    text = (path / "zarr.json").read_text()
    (path / "zarr.json").write_text(text.replace('"separator": "/"', '"separator": "."'))
    note, fault = zarrc("verify", "--json", path, code=1).json["faults"]
    assert note["reason"] == "4 objects, this one among them, look like chunks, but are none: the array has other keys"
    assert note["key"].startswith("c/") and note["severity"] == "note"
    assert fault["code"] == "corrupt" and fault["reason"].startswith("the metadata names the wrong separator")
    (path / "zarr.json").write_text(text.replace('"default"', '"v2"'))
    note, = zarrc("verify", "--json", path).json["faults"]
    assert note["severity"] == "note" and note["key"].startswith("c/")


@pytest.mark.parametrize("name", ["zarr.json", ".zarrc-leftovers", ".zarrc-job", ".zattrs", "c/1/2"])
def test_rm_deletes_what_is_no_file(zarrc, store, name):
    """A FIFO in the place of any object does not keep a node from being deleted, nor another from its place."""
    path = store / "plain" / name
    path.touch()
    unreadable(path, "fifo")
    zarrc("verify", store / "plain", code=None)
    zarrc("rm", "-r", store / "plain")
    assert not (store / "plain").exists()
    zarrc("create", "-t", "i4", "--shape=4", store / "plain")
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    zarrc("create", "--force", "-t", "i4", "--shape=4", store / "plain")
    assert not path.is_fifo() and zarrc("cat", store / "plain").text.split() == ["0"] * 4


def test_a_limit_does_not_end_verify(zarrc, store):
    zarrc("create", "-t", "string", "--shape=1000000", "--chunks=1000000", store / "deep/big")
    damage(store / "sums/c/0/1", 17)
    found = zarrc("verify", "--json", "--limit=variable_chunk_bytes=1K", store, code=1).json["faults"]
    assert {(f["key"], f["code"]) for f in found} == {("deep/big", "limit"), ("sums/c/0/1", "corrupt")}
    assert "variable_chunk_bytes" in found[0]["reason"]


def test_valid_above_the_limits(zarrc, tmp_path):
    """What exceeds a limit of the run is neither valid nor a fault; a higher limit checks it."""
    zarrc("create", "-t", "f8", "--shape=1000", "--chunks=1000", tmp_path / "a")
    low = zarrc("verify", "--limit=chunk_bytes=1K", tmp_path / "a", code=4)
    assert ": valid, above the limits of this run" in low.err and "NOT VALID" not in low.err
    assert "(limit chunk_bytes is 1024)   [limit]" in low.text
    found = zarrc("verify", "--json", "--limit=chunk_bytes=1K", tmp_path / "a", code=4).json
    assert found["valid"] is None and found["n_faults"] == 0 and found["n_limits"] == 1
    assert found["faults"][0]["severity"] == "limit"
    assert zarrc("verify", "--json", "--limit=chunk_bytes=8K", tmp_path / "a").json["valid"] is True


def test_quiet_prints_no_notes(zarrc, tmp_path):
    """Faults are printed, and JSON has everything."""
    zarrc("create", tmp_path / "x.zarr", "--shape=4", "--dtype=int8")
    (tmp_path / "x.zarr/stray").write_bytes(b"1")
    assert "[note]" in zarrc("verify", tmp_path / "x.zarr").text
    done = zarrc("verify", "-q", tmp_path / "x.zarr")
    assert done.text == done.err == ""
    assert [fault["severity"] for fault in zarrc("verify", "-q", "--json", tmp_path / "x.zarr").json["faults"]] == ["note"]
    (tmp_path / "x.zarr/c").mkdir()
    (tmp_path / "x.zarr/c/0").write_bytes(b"broken")
    lines = zarrc("verify", "-q", "--show=1", tmp_path / "x.zarr", code=1).text.splitlines()
    assert len(lines) == 1 and lines[0].startswith("c/0")


def test_damaged_nested_shards(zarrc, tmp_path):
    """verify names every inner shard with a damaged index, and checks the chunks of the others."""
    bytes_codec = {"name": "bytes"}
    crc = {"name": "crc32c"}
    inner = {"name": "sharding_indexed", "configuration": {"chunk_shape": [1], "codecs": [bytes_codec, crc], "index_codecs": [
        {"name": "bytes", "configuration": {"endian": "little"}}, crc]}}
    outer = {"name": "sharding_indexed", "configuration": {"chunk_shape": [2], "codecs": [inner], "index_codecs": [
        {"name": "bytes", "configuration": {"endian": "little"}}]}}
    document = {"zarr_format": 3, "node_type": "array", "shape": [8], "data_type": "uint8", "fill_value": 0, "attributes": {},
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [8]}},
                "chunk_key_encoding": {"name": "default"}, "codecs": [outer]}
    (tmp_path / "d.json").write_text(json.dumps(document))
    zarrc("create", f"--document={tmp_path}/d.json", tmp_path / "x.zarr")
    zarrc("import", "--format=json", "-", f"{tmp_path}/x.zarr[...]", input=b"[1, 2, 3, 4, 5, 6, 7, 8]")
    key = tmp_path / "x.zarr/c/0"
    value = bytearray(key.read_bytes())
    places = np.frombuffer(bytes(value[-64:]), "<u8").reshape(4, 2)
    for shard in (0, 2):
        value[int(places[shard].sum()) - 1] ^= 1  # the checksum of its index
    value[int(places[3, 0])] ^= 1  # its first chunk
    key.write_bytes(value)
    faults = zarrc("verify", "--json", tmp_path / "x.zarr", code=1).json["faults"]
    assert [f["key"] for f in faults] == ["c/0"] * 3
    assert ["shard index" in f["reason"] for f in faults] == [True, True, False], faults
    assert "chunk [6]" in faults[2]["reason"]


def pack(path, store, prefix=""):
    files = [file for file in store.rglob("*") if file.is_file()]
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(files, key=lambda file: (file.name != "zarr.json", len(file.parts), file)):
            archive.write(file, prefix + str(file.relative_to(store)))
        archive.comment = b'{"ome": {"version": "0.5"}}\0' if prefix else b""


def test_single_file_ome_zarr(zarrc, store, tmp_path):
    """What RFC-9 requires of an archive is a fault in .ozx, what it recommends is a note."""
    pack(tmp_path / "x.ozx", store)
    done = zarrc("verify", tmp_path / "x.ozx").text
    assert "/: it does not use zip64   [note]\n" in done
    assert "note" not in zarrc("verify", f"{tmp_path}/x.ozx/plain").text
    pack(tmp_path / "folder.ozx", store, "x.zarr/")
    faults = zarrc("verify", "--json", tmp_path / "folder.ozx", code=1).json["faults"]
    assert faults[0]["severity"] == "error" and faults[0]["code"] == "invalid" and "but in x.zarr/" in faults[0]["reason"]
    (tmp_path / "folder.ozx").rename(tmp_path / "folder.zip")
    found = zarrc("verify", "--json", tmp_path / "folder.zip").json
    assert found["valid"] and {f["severity"] for f in found["faults"]} == {"note"}
    pack(tmp_path / "x.zip", store)
    assert zarrc("verify", "--json", tmp_path / "x.zip").json["faults"] == []
