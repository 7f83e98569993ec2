"""zarrc reencode: the copy has every element and all metadata, in the requested layout. A reencode that
is killed at any moment can be resumed, and gives the same bytes."""
import json
import os
import random
import shutil
import subprocess
import time

import numcodecs
import numpy as np
import pytest
import zarr
import zarr.codecs.numcodecs

import cases
import peers
from conftest import PROGRAM, pseudo_terminal


def files(top):
    """{relative path: bytes}"""
    return {p.relative_to(top).as_posix(): p.read_bytes()
            for p in sorted(top.rglob("*")) if p.is_file()}


def make(path, values, **options):
    array = zarr.create_array(str(path), shape=values.shape, dtype=values.dtype, **options)
    array[...] = values
    return array


def same(path, values):
    array = zarr.open_array(str(path), mode="r")
    np.testing.assert_array_equal(array[...], values)
    return array


@pytest.fixture
def source(tmp_path, rng):
    values = rng.random((120, 90)).astype("f4")
    values[:30] = np.nan
    make(tmp_path / "a.zarr", values, chunks=(17, 20), fill_value=np.nan,
         dimension_names=["y", "x"], attributes={"units": "K", "n": [1, {"a": None}]})
    return tmp_path / "a.zarr", values


def test_chunks_shards_and_codecs(zarrc, source, tmp_path):
    path, values = source
    before = files(path)
    done = zarrc("reencode", "--chunks=10,15", "--shards=60,45", "--codec=zstd:3", "--verify",
                 "--json", path, tmp_path / "b.zarr").json
    array = same(tmp_path / "b.zarr", values)
    assert array.chunks == (10, 15) and array.shards == (60, 45)
    assert array.compressors[0].to_dict()["configuration"]["level"] == 3
    assert array.attrs.asdict() == {"units": "K", "n": [1, {"a": None}]}
    assert array.metadata.dimension_names == ("y", "x")
    assert np.isnan(array.fill_value)
    assert done["state"] == "new" and done["verified"] is True and done["objects_written"] == 4
    assert files(path) == before, "the source was touched"
    assert not list((tmp_path / "b.zarr").glob(".zarrc*"))


def metadata_text(array):
    """The metadata of the array as text, because a NaN is not equal to itself."""
    return json.dumps(array.metadata.to_dict(), sort_keys=True, default=repr)


def test_nothing_given_keeps_all(zarrc, source, tmp_path):
    path, values = source
    zarrc("reencode", path, tmp_path / "b.zarr")
    a, b = zarr.open_array(str(path), mode="r"), same(tmp_path / "b.zarr", values)
    assert metadata_text(a) == metadata_text(b)


def test_scalars_keep_what_xarray_needs(zarrc, tmp_path):
    """_ARRAY_DIMENSIONS is empty in v2 and absent in v3. `create --like` does the same."""
    zarr.create_array(tmp_path / "3", shape=(), dtype="i4", attributes={"crs": "c"})[...] = 5
    zarrc("reencode", "--zarr-format=2", tmp_path / "3", tmp_path / "2")
    assert json.loads((tmp_path / "2/.zattrs").read_text()) == {"crs": "c", "_ARRAY_DIMENSIONS": []}
    zarrc("reencode", "--zarr-format=3", tmp_path / "2", tmp_path / "3b")
    assert json.loads((tmp_path / "3b/zarr.json").read_text())["attributes"] == {"crs": "c"}
    assert zarr.open_array(tmp_path / "3b", mode="r")[...] == 5
    zarrc("create", "--zarr-format=2", "--like", tmp_path / "3", tmp_path / "like")
    assert json.loads((tmp_path / "like/.zattrs").read_text()) == {"crs": "c", "_ARRAY_DIMENSIONS": []}
    zarrc("create", "--zarr-format=2", "--shape=", "--dtype=int8", tmp_path / "plain")
    assert not (tmp_path / "plain/.zattrs").exists()


def test_to_v2_and_back(zarrc, source, tmp_path):
    path, values = source
    zarrc("reencode", "--zarr-format=2", path, tmp_path / "v2.zarr")
    array = same(tmp_path / "v2.zarr", values)
    assert array.metadata.zarr_format == 2 and array.chunks == (17, 20)
    assert array.attrs["_ARRAY_DIMENSIONS"] == ["y", "x"]
    zarrc("reencode", "--zarr-format=3", tmp_path / "v2.zarr", tmp_path / "v3.zarr")
    same(tmp_path / "v3.zarr", values)
    array = zarr.open_array(str(tmp_path / "v3.zarr"), mode="r+")
    assert array.attrs["_FillValue"] == "AAAAAAAA+H8="  # NaN was v2's fill value, so it is missing
    del array.attrs["_FillValue"]
    assert metadata_text(array) == metadata_text(zarr.open_array(str(path), mode="r"))


@pytest.mark.parametrize("dtype", ["<i2", ">i4", "|b1", "<f2", ">f8", "<c8", "<M8[s]", "<U3", "|S4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_v2_types_and_orders(zarrc, tmp_path, rng, dtype, order):
    values = rng.integers(0, 99, (11, 13)).astype("i8")
    values = values.astype(dtype) if dtype[1] != "U" else values.astype("U3")
    make(tmp_path / "a.zarr", values, chunks=(4, 5), zarr_format=2, order=order)
    zarrc("reencode", "--chunks=6,13", "--verify", tmp_path / "a.zarr", tmp_path / "b.zarr")
    array = same(tmp_path / "b.zarr", values)
    assert array.order == order and array.chunks == (6, 13)
    assert (tmp_path / "a.zarr/.zarray").read_text().count(dtype) == 1
    assert dtype in (tmp_path / "b.zarr/.zarray").read_text()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f4", ">f8", ">i4"])
@pytest.mark.parametrize("name, more", [("delta", {}), ("quantize", {"digits": 3}), (
    "fixedscaleoffset", {"offset": 0, "scale": 4, "astype": ">i4"})])
@pytest.mark.parametrize("last", [None, {"id": "zlib", "level": 1}])
def test_v2_filters_keep_their_byte_order(zarrc, tmp_path, rng, name, more, dtype, order, last):
    """A filter works on the stored bytes, which are garbage if read in the other byte order."""
    if name == "quantize" and dtype[1] == "i":
        pytest.skip("quantize takes floats only")
    values = rng.integers(-99, 99, (11, 13)).astype(dtype)
    config = {"id": name, "dtype": dtype, **more}
    array = make(tmp_path / "a.zarr", values, chunks=(4, 5), zarr_format=2, order=order,
                 filters=[numcodecs.get_codec(dict(config))],
                 compressors=last and numcodecs.get_codec(dict(last)))
    values = array[...]
    zarrc("reencode", "--chunks=6,13", "--verify", tmp_path / "a.zarr", tmp_path / "b.zarr")
    same(tmp_path / "b.zarr", values)
    document = json.loads((tmp_path / "b.zarr/.zarray").read_text())
    assert [f["id"] for f in document["filters"]] == [name]
    assert document["filters"][0]["dtype"] == document["dtype"]
    assert (document["compressor"] or {}).get("id") == (last or {}).get("id")
    zarrc("reencode", "--zarr-format=3", tmp_path / "b.zarr", tmp_path / "c.zarr")
    zarrc("diff", "--data", tmp_path / "a.zarr", tmp_path / "c.zarr")
    assert zarrc("cat", "--format=raw", tmp_path / "c.zarr").out == values.astype(values.dtype.newbyteorder("=")).tobytes()
    if peers.ZARR_AT_LEAST_3_3 or ">" not in str(config) + dtype:  # older versions confuse the byte orders
        same(tmp_path / "c.zarr", values)
    zarrc("reencode", "--zarr-format=2", "--verify", tmp_path / "c.zarr", tmp_path / "d.zarr")
    same(tmp_path / "d.zarr", values)


def test_bitround_of_zarr_python(zarrc, tmp_path, rng):
    """zarr-python knows bitround only as numcodecs.bitround."""
    values = rng.random((8, 9)).astype("f4")
    array = make(tmp_path / "a", values, chunks=(4, 5), filters=[zarr.codecs.numcodecs.BitRound(keepbits=5)])
    for n, options in enumerate(([], ["--chunks=3"], ["--chunks=2,3", "--shards=4,6"])):
        zarrc("reencode", *options, tmp_path / "a", tmp_path / str(n))
        same(tmp_path / str(n), array[...])
    zarrc("create", "--shape=4", "--dtype=float32", "--codec", '{"name":"bitround","configuration":{"keepbits":3}}',
          tmp_path / "b")
    assert zarrc("info", "--json", tmp_path / "b").json["codecs"][0]["name"] == "bitround"


LITTLE, CRC = cases.LITTLE, cases.CRC
SHARDS = {  # chains over chunks of (8, 12), and the codecs of their innermost chunks
    "nested": ([cases.sharding((4, 6), [cases.sharding((2, 3), [LITTLE, cases.zstd()])])], ["bytes", "zstd"]),
    "behind": ([cases.sharding((2, 3), [LITTLE]), cases.gzip(), CRC], ["bytes", "gzip", "crc32c"]),
    "turned": ([cases.sharding((4, 6), [cases.transpose(1, 0), cases.sharding(
        (6, 2), [cases.sharding((3, 1), [LITTLE, CRC]), cases.gzip()]), cases.zstd()])],
        ["transpose", "bytes", "crc32c", "gzip", "zstd"]),
    "in front": ([cases.transpose(1, 0), cases.sharding((6, 4), [LITTLE])], ["transpose", "bytes"]),
}


@pytest.mark.parametrize("name", SHARDS)
def test_shards_in_shards_and_codecs_around_them(zarrc, tmp_path, rng, name):
    codecs, inner = SHARDS[name]
    document = cases.document_v3("int32", 7, codecs, (9, 13), (8, 12))
    (tmp_path / "a.json").write_text(json.dumps(document))
    np.save(tmp_path / "a.npy", rng.integers(-9, 9, (9, 13)).astype("i4"))
    zarrc("create", "--document", tmp_path / "a.json", tmp_path / "a")
    zarrc("import", tmp_path / "a.npy", f"{tmp_path / 'a'}[...]")
    zarrc("reencode", tmp_path / "a", tmp_path / "b")
    assert zarrc("diff", "--storage", tmp_path / "a", tmp_path / "b").out == b""
    for n, options in enumerate((["--chunks=4"], ["--shards=none"], ["--chunks=2,3", "--shards=4,6"],
                                 ["--zarr-format=2", "--shards=none"])):
        zarrc("reencode", *options, tmp_path / "a", tmp_path / str(n))
        assert zarrc("diff", tmp_path / "a", tmp_path / str(n)).out == b""
        codecs = zarrc("info", "--json", tmp_path / str(n)).json["codecs"]
        if "sharding" in codecs[0]["name"]:
            codecs = codecs[0]["configuration"]["codecs"]
        assert [c["name"] for c in codecs] == inner


@pytest.mark.parametrize("encoding, separator, key", [
    ("default", "/", "c/1/2"), ("default", ".", "c.1.2"), ("v2", ".", "1.2"), ("v2", "/", "1/2")])
def test_keys(zarrc, tmp_path, encoding, separator, key):
    values = np.arange(120, dtype="u1").reshape(10, 12) + np.uint8(1)
    make(tmp_path / "a.zarr", values, chunks=(5, 4))
    zarrc("reencode", "--key-encoding", encoding, "--separator", separator, tmp_path / "a.zarr",
          tmp_path / "b.zarr")
    same(tmp_path / "b.zarr", values)
    assert (tmp_path / "b.zarr" / key).is_file()


SUFFIX = {"name": "suffix", "configuration": {"suffix": ".tiff", "base_encoding": "v2"}}


@pytest.mark.parametrize("encoding, key, suffix", [
    ("suffix:suffix=.tiff,base_encoding=default", "c/1/2", ".tiff"), (json.dumps(SUFFIX), "1.2", ".tiff"),
    ("zarrs.default_suffix:suffix=.x", "c/1/2", ".x"), ("zarrs.default_suffix:suffix=.x,separator=.", "c.1.2", ".x"),
    ("v2:separator=/", "1/2", "")])
def test_registered_keys(zarrc, tmp_path, encoding, key, suffix):
    """--key-encoding takes every name that `zarrc list` shows. zarr-python reads the chunks under its own keys."""
    values = np.arange(120, dtype="u1").reshape(10, 12) + np.uint8(1)
    make(tmp_path / "a.zarr", values, chunks=(5, 4))
    zarrc("reencode", "--key-encoding", encoding, tmp_path / "a.zarr", tmp_path / "b.zarr")
    assert (tmp_path / "b.zarr" / (key + suffix)).is_file()
    assert zarrc("cat", "--format=raw", tmp_path / "b.zarr").out == values.tobytes()
    zarrc("create", "--like", tmp_path / "b.zarr", tmp_path / "c.zarr")
    document, like = (json.loads((tmp_path / name / "zarr.json").read_text()) for name in ("b.zarr", "c.zarr"))
    assert document["chunk_key_encoding"] == like["chunk_key_encoding"]
    document["chunk_key_encoding"] = {"name": "default" if key[0] == "c" else "v2",
                                      "configuration": {"separator": key[-2]}}
    (tmp_path / "b.zarr/zarr.json").write_text(json.dumps(document))
    for file in [file for file in (tmp_path / "b.zarr").rglob("*" + suffix) if suffix]:
        file.rename(str(file).removesuffix(suffix))
    assert (zarr.open_array(str(tmp_path / "b.zarr"), mode="r")[...] == values).all()


@pytest.mark.parametrize("encoding, message", [
    ("suffix", 'chunk key encoding "suffix": suffix is nothing, must be a string'),
    ("zarrs.default_suffix", 'chunk key encoding "zarrs.default_suffix": suffix is nothing, must be a string'),
    ("suffix:suffix=.x", 'chunk key encoding "suffix": base_encoding is nothing, must be a chunk key encoding'),
    ("suffix:.x", 'key encoding "suffix:.x": what is ".x"?'), ("https://example.org/keys", "is not known"),
    ("nobody", 'chunk key encoding "nobody" is not known'), ("fanout", 'chunk key encoding "fanout" is refused')])
def test_keys_refused(zarrc, tmp_path, encoding, message):
    done = zarrc("create", "--shape=4", "-t", "u1", "--key-encoding", encoding, tmp_path / "a.zarr", code=None)
    assert done.code and message in done.err and "separator" not in done.err


def group(path):
    top = zarr.create_group(str(path), attributes={"title": "x"})
    top.create_array("lat", shape=(10,), chunks=(4,), dtype="f8")[:] = np.arange(10)
    top.create_array("scalar", shape=(), dtype="i4")[...] = 7
    top.create_array("none", shape=(0, 5), chunks=(2, 2), dtype="i4")
    deep = top.create_group("deep", attributes={"z": 2})
    deep.create_array("t", shape=(20, 30, 40), chunks=(5, 5, 5), dtype="i2")[:] = \
        np.arange(24000).reshape(20, 30, 40)
    deep.create_group("empty")


def test_groups(zarrc, tmp_path):
    group(tmp_path / "a.zarr")
    done = zarrc("reencode", "--chunks=20,10,10", "--json", tmp_path / "a.zarr",
                 tmp_path / "b.zarr/sub/copy").json
    assert (done["arrays"], done["groups"]) == (4, 3)
    top = zarr.open_group(str(tmp_path / "b.zarr"), mode="r")["sub/copy"]
    assert top.attrs.asdict() == {"title": "x"} and top["deep"].attrs.asdict() == {"z": 2}
    assert top["deep/t"].chunks == (20, 10, 10) and top["lat"].chunks == (4,)
    np.testing.assert_array_equal(top["deep/t"][...].ravel(), np.arange(24000))
    np.testing.assert_array_equal(top["lat"][...], np.arange(10))
    assert top["scalar"][...] == 7 and top["none"].shape == (0, 5)
    assert sorted(top["deep"].group_keys()) == ["empty"]
    zarrc("diff", tmp_path / "a.zarr", tmp_path / "b.zarr/sub/copy")
    zarrc("reencode", "--fill=1", tmp_path / "a.zarr", tmp_path / "c.zarr", code=2)
    zarrc("reencode", tmp_path / "a.zarr", tmp_path / "a.zarr/deep/new", code=2)


def test_memory_bounds_the_unit(zarrc, tmp_path, rng):
    values = rng.integers(0, 9, (1000, 1500)).astype("i2")
    make(tmp_path / "a.zarr", values, chunks=(100, 100))
    zarrc("reencode", "--mem=2M", "--chunks=90,1500", "--verify", tmp_path / "a.zarr",
          tmp_path / "b.zarr")
    same(tmp_path / "b.zarr", values)
    printed = zarrc("reencode", "--mem=2M", "--chunks=1000,1500", "--force", tmp_path / "a.zarr",
                 tmp_path / "b.zarr", code=4)
    assert "--mem" in printed.err
    same(tmp_path / "b.zarr", values)  # the check comes before any deletion


def test_existing_destination_is_kept(zarrc, source, tmp_path):
    path, values = source
    zarrc("reencode", path, tmp_path / "b.zarr")
    for options in ([], ["--resume", "--chunks=50,50"]):
        assert "already exists" in zarrc("reencode", *options, path, tmp_path / "b.zarr", code=5).err
    assert "complete" in zarrc("reencode", "--resume", path, tmp_path / "b.zarr").err
    zarrc("reencode", "--force", "--resume", path, tmp_path / "b.zarr", code=2)
    zarrc("reencode", "--force", "--chunks=50,50", path, tmp_path / "b.zarr")
    assert same(tmp_path / "b.zarr", values).chunks == (50, 50)
    home = tmp_path / "home"
    home.mkdir()
    (home / "letter").write_text("dear")
    for options in ([], ["--force"], ["--resume"]):
        zarrc("reencode", *options, path, home, code=5)
    assert files(home) == {"letter": b"dear"}


def kill_after(seconds, *arguments):
    run = subprocess.Popen([PROGRAM, "reencode", *map(str, arguments)], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
    time.sleep(seconds)
    run.kill()
    return run.wait()


def objects(top):
    """{path: (inode, mtime)} of finished chunks."""
    return {p: (p.stat().st_ino, p.stat().st_mtime_ns) for p in top.rglob("*")
            if p.is_file() and ".zarrc" not in p.name and "__lock" not in p.name}


@pytest.mark.parametrize("layout", [["--chunks=64,64"], ["--chunks=64,64", "--shards=256,640"]])
def test_killed_and_resumed(zarrc, tmp_path, rng, layout):
    """kill -9 at ten moments or more. Finished chunks are not written again, and the bytes are equal."""
    values = rng.integers(0, 50, (1280, 1280)).astype("i4")
    values[256:512] = 0  # chunks that only have the fill value are not stored
    top = zarr.create_group(str(tmp_path / "a.zarr"), attributes={"k": 1})
    for name in ("one", "two"):
        top.create_array(name, shape=values.shape, chunks=(100, 110), dtype="i4")[...] = values
    options = [*layout, "--codec=gzip:9", tmp_path / "a.zarr"]
    began = time.monotonic()
    zarrc("reencode", *options, tmp_path / "whole.zarr")
    whole = time.monotonic() - began
    target, moments = tmp_path / "b.zarr", random.Random(7)
    kills = 0
    for _ in range(14):
        known = objects(target) if target.exists() else {}
        code = kill_after(moments.uniform(0, whole / 14), "--resume", *options, target)
        for path, was in known.items():
            now = path.stat()
            assert (now.st_ino, now.st_mtime_ns) == was, f"{path} was written again"
        if code == 0:
            break
        assert code == -9
        kills += 1
        if not (target / "zarr.json").exists() and target.exists():
            zarrc("info", target, code=3)  # the node appears only when it is complete
    known = objects(target)
    done = zarrc("reencode", "--resume", "--json", *options, target).json
    assert all((p.stat().st_ino, p.stat().st_mtime_ns) == was for p, was in known.items())
    assert done["state"] in ("resumed", "complete")
    assert kills >= 10, "the machine was too fast for this test"
    zarrc("clean", "--age=0", target)
    assert files(target) == files(tmp_path / "whole.zarr")
    assert files(target / "one") == files(tmp_path / "whole.zarr/one")
    zarrc("verify", target)


def test_resume_is_for_the_same_job(zarrc, tmp_path, rng):
    values = rng.integers(0, 50, (1000, 1000)).astype("i4")
    make(tmp_path / "a.zarr", values, chunks=(100, 100))
    target = tmp_path / "b.zarr"
    for _ in range(20):
        shutil.rmtree(target, ignore_errors=True)
        kill_after(0.1, "--codec=gzip:9", "--chunks=20,20", tmp_path / "a.zarr", target)
        if (target / ".zarrc-job").exists():
            break
    else:
        pytest.skip("the machine was too fast to interrupt")
    printed = zarrc("reencode", "--codec=gzip:9", "--chunks=20,20", tmp_path / "a.zarr", target, code=5)
    assert "--resume" in printed.err
    printed = zarrc("reencode", "--resume", "--chunks=30,20", tmp_path / "a.zarr", target, code=5)
    assert "other options" in printed.err
    zarrc("reencode", "--force", "--chunks=30,20", tmp_path / "a.zarr", target)
    assert same(target, values).chunks == (30, 20)


def test_interrupt(tmp_path, rng):
    values = rng.integers(0, 50, (1500, 1500)).astype("i4")
    make(tmp_path / "a.zarr", values, chunks=(100, 100))
    run = subprocess.Popen([PROGRAM, "reencode", "--codec=gzip:9", "--chunks=10,10",
                            str(tmp_path / "a.zarr"), str(tmp_path / "b.zarr")],
                           stderr=subprocess.PIPE)
    time.sleep(0.15)
    run.terminate()
    _, err = run.communicate(timeout=30)
    if run.returncode == 0:
        pytest.skip("the machine was too fast to interrupt")
    assert run.returncode == 130 and b"interrupted" in err
    assert not (tmp_path / "b.zarr/zarr.json").exists()
    debris = [p for p in (tmp_path / "b.zarr").rglob("*") if "-tmp-" in p.name or "__lock" in p.name]
    assert not debris


def test_progress(zarrc, tmp_path, rng):
    values = rng.integers(0, 50, (600, 600)).astype("i4")
    make(tmp_path / "a.zarr", values, chunks=(100, 100))
    printed = zarrc("reencode", "--progress=json", tmp_path / "a.zarr", tmp_path / "b.zarr").err
    assert '"progress": "reencode"' in printed and '"total_bytes": 1440000' in printed
    printed = zarrc("reencode", "-q", tmp_path / "a.zarr", tmp_path / "c.zarr")
    assert printed.err == "" and printed.out == b""


@pytest.mark.parametrize("locale", ["C", "de_DE.UTF-8"])
def test_no_locale(zarrc, source, tmp_path, locale):
    path, values = source
    zarrc("reencode", "--codec=zstd:1", path, tmp_path / "b.zarr", env={"LC_ALL": locale})
    same(tmp_path / "b.zarr", values)


def test_bar_on_a_terminal(tmp_path, rng):
    values = rng.integers(0, 50, (4000, 3000)).astype("i4")  # takes long enough for a progress bar
    make(tmp_path / "a.zarr", values, chunks=(500, 500))
    terminal, side = pseudo_terminal()
    run = subprocess.Popen([PROGRAM, "reencode", "--codec=gzip:9", "--chunks=50,50", "-j1",
                            tmp_path / "a.zarr", tmp_path / "b.zarr"], stdin=side, stdout=side,
                           stderr=side)
    os.close(side)
    shown = b""
    while True:
        try:
            shown += os.read(terminal, 65536)
        except OSError:  # the other side is closed
            break
    assert run.wait() == 0
    os.close(terminal)
    assert b"reencode" in shown and b"MiB of 45.8 MiB" in shown and b"iB/s" in shown
    assert b"left" in shown and b"100 %" in shown


@pytest.mark.parametrize("fill", [None, "7"])
def test_sparse_giants(zarrc, tmp_path, fill):
    """A few chunks of 2^50 elements are read and written, and compared by --verify."""
    array = zarr.create_array(tmp_path / "a", shape=(2 ** 30, 2 ** 20 + 5), dtype="i4", chunks=(32, 32), fill_value=7)
    array[2 ** 29:2 ** 29 + 33, 2 ** 20 + 1:] = 1
    array[5, 6] = 9
    same_fill = ["--fill", fill] if fill else []
    result = zarrc("reencode", "--json", "--verify", "--chunks=64,64", "--shards=128,128", *same_fill,
                   tmp_path / "a", tmp_path / "b").json
    assert result["verified"] and result["bytes"] == array.size * 4 and result["objects_written"] == 2
    there = zarr.open_array(tmp_path / "b", mode="r")
    assert there.chunks == (64, 64) and there.shards == (128, 128)
    for at in (slice(2 ** 29 - 40, 2 ** 29 + 40), slice(2 ** 20 - 40, None)), (slice(0, 40), slice(0, 40)):
        np.testing.assert_array_equal(there[at], array[at])
    zarrc("reencode", "--chunks=32,32", "--shards=none", tmp_path / "b", tmp_path / "c")
    zarrc("diff", "--data", tmp_path / "a", tmp_path / "c")


def test_another_fill_value_is_written(zarrc, tmp_path):
    """Elements of missing chunks have the old fill value, which is written into the new array."""
    zarr.create_array(tmp_path / "a", shape=(2 ** 13, 2 ** 14), dtype="i4", chunks=(2 ** 12, 2 ** 12), fill_value=7)
    zarrc("reencode", "--verify", "--fill=3", "--chunks=1024,1024", "--mem=512M", tmp_path / "a", tmp_path / "b")
    there = zarr.open_array(tmp_path / "b", mode="r")
    assert there.fill_value == 3 and (there[...] == 7).all()


# ---- v2 filters that v3 cannot express

def delta(dtype):
    return {"id": "delta", "dtype": dtype, "astype": dtype}


def numcodecs_delta(dtype):
    return {"name": "numcodecs.delta", "configuration": {"dtype": dtype, "astype": dtype}}


SHUFFLE = {"id": "shuffle", "elementsize": 4}
INEXPRESSIBLE = {
    "order": ("<i4", [delta(">i4")], [numcodecs_delta(">i4")]),
    "big": (">f8", [delta("<f8")], [numcodecs_delta("<f8")]),
    "behind": ("<i4", [SHUFFLE, delta("<i4")],
               [{"name": "numcodecs.shuffle", "configuration": {"elementsize": 4}}, numcodecs_delta("<i4")]),
    "second": ("<i4", [delta("<i4"), delta(">i4")], [numcodecs_delta("<i4"), numcodecs_delta(">i4")]),
}


@pytest.fixture(params=list(INEXPRESSIBLE))
def inexpressible(request, tmp_path):
    dtype, filters, shown = INEXPRESSIBLE[request.param]
    endian = "big" if dtype[0] == ">" else "little"
    document = {"zarr_format": 2, "shape": [7], "chunks": [4], "dtype": dtype, "fill_value": 0, "order": "C",
                "filters": filters, "compressor": {"id": "zlib", "level": 1}}
    (tmp_path / "a").mkdir()
    (tmp_path / "a/.zarray").write_text(json.dumps(document))
    zarr.open_array(tmp_path / "a", mode="r+")[...] = np.arange(7)
    return tmp_path, filters, [{"name": "bytes", "configuration": {"endian": endian}}, *shown,
                               {"name": "numcodecs.zlib", "configuration": {"level": 1}}]


def test_filters_without_a_v3_form(zarrc, inexpressible):
    folder, filters, shown = inexpressible
    assert zarrc("info", "--json", folder / "a").json["codecs"] == shown
    assert shown[1]["name"] in zarrc("info", folder / "a").text
    zarrc("reencode", "--verify", "--chunks=3", folder / "a", folder / "b")
    assert json.loads((folder / "b/.zarray").read_text())["filters"] == filters
    assert zarr.open_array(folder / "b", mode="r")[...].tolist() == list(range(7))
    zarrc("create", "--like", folder / "a", folder / "c")
    assert json.loads((folder / "c/.zarray").read_text())["filters"] == filters
    zarrc("reencode", "--codec=zlib:1", folder / "a", folder / "d")
    assert json.loads((folder / "d/.zarray").read_text())["filters"] is None
    assert "codecs" in zarrc("diff", "--storage", folder / "a", folder / "d", code=None).text
    failed = zarrc("reencode", "--zarr-format=3", folder / "a", folder / "e", code=None)
    assert failed.code == 2 and "takes an array, but bytes come before it" in failed.err
    assert not (folder / "e").exists()
    failed = zarrc("migrate", folder / "a", code=None)
    assert failed.code != 0 and 'Zarr v3 cannot express the filter "' in failed.err


@pytest.mark.parametrize("command", ["reencode", "create"])
def test_chunks_of_a_sharded_source(zarrc, tmp_path, command):
    """The shards stay, so the message about chunks that do not fit names --shards."""
    zarrc("create", tmp_path / "x.zarr", "--shape=8,8", "--dtype=int8", "--chunks=2,2", "--shards=4,4")
    place = [tmp_path / "x.zarr", tmp_path / "y.zarr"] if command == "reencode" else [tmp_path / "y.zarr", f"--like={tmp_path}/x.zarr"]
    error = zarrc(command, "--json", "--chunks=8,8", *place, code=2).error
    assert "does not divide the shard's 4" in error["why"] and "--shards=SHAPE" in error["next"]
    assert not zarrc(command, "--json", "--chunks=8,8", "--shards=12,12", *place, code=2).error["next"]
    zarrc(command, "--chunks=8,8", "--shards=none", *place)


# ---- another data type ----

def round_values(values, how):
    return {"nearest-even": np.rint, "towards-zero": np.trunc, "towards-positive": np.ceil, "towards-negative": np.floor,
            "nearest-away": lambda v: np.copysign(np.floor(np.abs(v) + 0.5), v)}[how](values)


@pytest.mark.parametrize("how", ["nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_dtype_rounds(zarrc, tmp_path, rng, how, zarr_format):
    values = np.concatenate([rng.uniform(-120, 120, 3000), np.arange(-60, 60) / 2]).astype("f4").reshape(40, 78)
    make(tmp_path / "a.zarr", values, chunks=(7, 20), zarr_format=zarr_format, fill_value=2.5)
    said = zarrc("reencode", "--dtype=int8", tmp_path / "a.zarr", tmp_path / "b.zarr", code=2).err
    assert "the fill value of" in said and "has no value in int8" in said and not (tmp_path / "b.zarr").exists()
    zarrc("reencode", "--dtype=int8", f"--rounding={how}", "--verify", tmp_path / "a.zarr", tmp_path / "b.zarr")
    array = same(tmp_path / "b.zarr", round_values(values, how).astype("i1"))
    assert array.dtype == "i1" and array.fill_value == round_values(np.float32(2.5), how) and array.chunks == (7, 20)


@pytest.mark.parametrize("to", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
def test_dtype_out_of_range(zarrc, tmp_path, rng, dtype, to):
    """All pairs, shorter and longer: clamp and wrap as NumPy does them, and exact unless a value would change."""
    span, target = (np.iinfo(dtype) if dtype[0] != "f" else None), np.iinfo(to)
    values = rng.integers(*(span.min, span.max) if span else (-2 ** 24, 2 ** 24), 1500, dtype=dtype if span else "i4", endpoint=True).astype(dtype)
    make(tmp_path / "a.zarr", values, chunks=(400,), fill_value=1)
    exact = [int(v) for v in values]
    zarrc("reencode", f"--dtype={to}", "--out-of-range=clamp", "--verify", tmp_path / "a.zarr", tmp_path / "b.zarr")
    same(tmp_path / "b.zarr", np.array([min(max(v, target.min), target.max) for v in exact], to))
    zarrc("reencode", f"--dtype={to}", "--out-of-range=wrap", tmp_path / "a.zarr", tmp_path / "c.zarr")
    same(tmp_path / "c.zarr", np.array([v % 2 ** target.bits for v in exact], f"u{target.bits // 8}").astype(to))
    bad = next((i for i, v in enumerate(exact) if not target.min <= v <= target.max), None)
    done = zarrc("reencode", f"--dtype={to}", tmp_path / "a.zarr", tmp_path / "d.zarr", code=None)
    assert done.code == (0 if bad is None else 2)
    assert bad is None or (f"element [{bad}]: " in done.err and "has no value in" in done.err)


def test_dtype_of_floats(zarrc, tmp_path, rng):
    values = np.array([0.5, np.nan, -np.inf, 3, 1e300, -0.0], "f8")
    make(tmp_path / "a.zarr", values[:4], chunks=(3,), fill_value=np.nan)
    zarrc("reencode", "--dtype=float32", "--verify", tmp_path / "a.zarr", tmp_path / "b.zarr")
    assert np.isnan(same(tmp_path / "b.zarr", values[:4].astype("f4")).fill_value)
    make(tmp_path / "c.zarr", values, chunks=(3,), fill_value=0)
    assert "element [4]: 1e+300 has no value in float32" in zarrc("reencode", "--dtype=float32", tmp_path / "c.zarr", tmp_path / "d.zarr", code=2).err
    zarrc("reencode", "--force", "--dtype=float32", "--out-of-range=clamp", tmp_path / "c.zarr", tmp_path / "d.zarr")
    same(tmp_path / "d.zarr", np.array([0.5, np.nan, -np.inf, 3, np.inf, -0.0], "f4"))
    many = rng.random(2000)
    make(tmp_path / "e.zarr", many, chunks=(700,))
    assert "has no value in float32" in zarrc("reencode", "--dtype=float32", tmp_path / "e.zarr", tmp_path / "f.zarr", code=2).err
    zarrc("reencode", "--force", "--dtype=float32", "--rounding=nearest-even", tmp_path / "e.zarr", tmp_path / "f.zarr")
    same(tmp_path / "f.zarr", many.astype("f4"))
    big = np.array([2 ** 53 + 1], "i8")
    make(tmp_path / "g.zarr", big, chunks=(1,))
    assert "9007199254740993 has no value in float64" in zarrc("reencode", "--dtype=float64", tmp_path / "g.zarr", tmp_path / "h.zarr", code=2).err


def test_dtype_errors_name_the_place(zarrc, tmp_path, rng):
    """In shards that --mem makes it write in parts, too. The destination can be resumed by the same rules only."""
    values = rng.integers(0, 100, (200, 300)).astype("f8")
    values[123, 250] = 300.25
    make(tmp_path / "a.zarr", values, chunks=(50, 60))
    source, target = f"{tmp_path / 'a.zarr'}[20:190, ::-1]", tmp_path / "b.zarr"
    words = ["reencode", "--chunks=10,10", "--dtype=uint8", source, target]
    assert "a.zarr[20:190,::-1]: element [103, 49]: 300.25 has no value in uint8" in zarrc(*words, code=2).err
    assert "other options" in zarrc(*words, "--resume", "--out-of-range=clamp", code=5).err
    assert "need --dtype" in zarrc("reencode", tmp_path / "a.zarr", tmp_path / "e.zarr", "--rounding=exact", code=2).err
    values[123, 250] = 99
    zarr.open_array(tmp_path / "a.zarr")[...] = values
    zarrc(*words, "--resume", "--verify")
    same(target, values[20:190, ::-1].astype("u1"))
    for dtype in ("int16", "complex128", "bool", "string"):
        zarrc(*words[:2], "--shards=200,300", "--mem=1M", f"--dtype={dtype}", tmp_path / "a.zarr", tmp_path / f"{dtype}.zarr",
              code=0 if dtype == "int16" else 6)
    same(tmp_path / "int16.zarr", values.astype("i2"))


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_dtype_and_attributes(zarrc, tmp_path, zarr_format):
    """Values in CF attributes stay if the new type has them; else the command refuses."""
    def array(name, **attributes):
        return make(tmp_path / name, np.arange(6, dtype="i2"), chunks=(4,), zarr_format=zarr_format, attributes=attributes)
    array("a.zarr", valid_range=[0, 100], scale_factor=0.1, missing_value=-99, units="K")
    zarrc("reencode", "--dtype=float32", tmp_path / "a.zarr", tmp_path / "b.zarr")
    assert same(tmp_path / "b.zarr", np.arange(6, dtype="f4")).attrs.asdict() == {
        "valid_range": [0, 100], "scale_factor": 0.1, "missing_value": -99, "units": "K"}
    said = zarrc("reencode", "--dtype=uint8", tmp_path / "a.zarr", tmp_path / "c.zarr", code=2).err
    assert "attribute missing_value" in said and "-99" in said and not (tmp_path / "c.zarr").exists()
    zarrc("reencode", "--dtype=uint8", '--attributes={"units": "K"}', tmp_path / "a.zarr", tmp_path / "c.zarr")
    assert same(tmp_path / "c.zarr", np.arange(6, dtype="u1")).attrs.asdict() == {"units": "K"}
    for attributes in [{"valid_range": [0, 300]}, {"_Unsigned": "true"}, {"flag_values": [1, -2]}]:
        array("d.zarr", **attributes)
        assert next(iter(attributes)) in zarrc("reencode", "--dtype=uint8", tmp_path / "d.zarr", tmp_path / "e.zarr", code=2).err
        shutil.rmtree(tmp_path / "d.zarr")
    array("d.zarr", _FillValue=-5)
    done = zarrc("reencode", "--dtype=float32", tmp_path / "d.zarr", tmp_path / "e.zarr", code=None)
    assert done.code == (0 if zarr_format == 2 else 2), "xarray's form of it differs in v3"
    assert "exclude" in zarrc("reencode", "--dtype=f4", "--zarr-format=2", tmp_path / "d.zarr", tmp_path / "f.zarr", code=2).err


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_dtype_and_codecs_of_one_type(zarrc, tmp_path, zarr_format):
    """A filter that reads elements as a type of its own would garble others without an error."""
    values = np.arange(60, dtype="f8")
    filters = {2: numcodecs.FixedScaleOffset(offset=0, scale=10, dtype="<f8", astype="<i2"),
               3: zarr.codecs.numcodecs.FixedScaleOffset(offset=0, scale=10, dtype="<f8", astype="<i2")}
    make(tmp_path / "a.zarr", values, chunks=(20,), zarr_format=zarr_format, filters=[filters[zarr_format]])
    said = zarrc("reencode", "--dtype=int32", tmp_path / "a.zarr", tmp_path / "b.zarr", code=2).err
    assert "is not for int32" in said and "fixedscaleoffset" in said and not (tmp_path / "b.zarr").exists()
    zarrc("reencode", "--dtype=int32", "--codec=zstd", tmp_path / "a.zarr", tmp_path / "b.zarr")
    same(tmp_path / "b.zarr", values.astype("i4"))
    zarrc("reencode", "--dtype=float64", "--verify", tmp_path / "a.zarr", tmp_path / "c.zarr")


@pytest.mark.parametrize("dtype", ["nonsense", "bool"])
def test_dtype_that_no_number_can_become(zarrc, tmp_path, dtype):
    make(tmp_path / "a.zarr", np.arange(6), chunks=(4,))
    said = zarrc("reencode", f"--dtype={dtype}", tmp_path / "a.zarr", tmp_path / "b.zarr", code=6).err
    assert dtype in said and "fill" not in said


def test_dtype_without_zero(zarrc, tmp_path):
    """float8_e8m0fnu has powers of 2 only."""
    make(tmp_path / "a.zarr", np.array([1, 2, 64, 1], "i2"), chunks=(3,), fill_value=2)
    zarrc("reencode", "--dtype=float8_e8m0fnu", "--verify", tmp_path / "a.zarr", tmp_path / "b.zarr")
    zarrc("reencode", "--dtype=int16", "--verify", tmp_path / "b.zarr", tmp_path / "c.zarr")
    assert same(tmp_path / "c.zarr", np.array([1, 2, 64, 1], "i2")).fill_value == 2
