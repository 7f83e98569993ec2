"""The limit --mem is kept, or refused before the work starts. Peak memory and bytes written are counted."""
import json
import os
import re
import subprocess

import numcodecs
import numpy as np
import pytest
import zarr

from conftest import PROGRAM, peak

MIB = 1 << 20
SIZE = 96 * MIB
SHAPE = (96, 1024, 1024)


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    path = tmp_path_factory.mktemp("memory") / "r.raw"
    np.random.default_rng(7).integers(0, 256, SIZE, dtype="u1").tofile(path)
    return path


def read_written():
    """Bytes that this process and the children that it waited for have written."""
    with open("/proc/self/io") as io:
        return int(dict(line.split(": ") for line in io.read().splitlines())["wchar"])


def count_written(*arguments, limit=None):
    """Bytes that zarrc hands to write calls. limit: RLIMIT_AS."""
    import resource

    def narrow():
        if limit:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    # glibc reserves 64 MiB of addresses for the arena of each thread
    before = read_written()
    subprocess.run([PROGRAM, *map(str, arguments)], preexec_fn=narrow, env={**os.environ, "MALLOC_ARENA_MAX": "1"}, check=True)
    n = read_written() - before
    assert n > SIZE // 2
    return n


IMPORT = ["import", "-q", "--mem=16M", "-j2", "-t", "uint8", "--shape=96,1024,1024"]
ONE_SHARD = ["--shards=96,1024,1024", "--chunks=32,64,64", "-C", "none"]


def test_import_into_a_large_shard(zarrc, tmp_path, raw):
    a = tmp_path / "x.zarr"
    assert count_written(*IMPORT, raw, a, *ONE_SHARD, limit=200 * MIB) < 1.05 * SIZE
    assert (zarr.open_array(a)[:].ravel() == np.fromfile(raw, "u1")).all()
    nothing = peak("version")
    assert peak(*IMPORT, "--force", raw, a, *ONE_SHARD) - nothing < 32 * 1024


def test_fortran_order_into_a_large_shard(zarrc, tmp_path):
    data = np.asfortranarray(np.random.default_rng(1).integers(0, 1000, (64, 96, 128), dtype="i4"))
    np.save(tmp_path / "f.npy", data)
    zarrc("import", "-q", "--mem=1M", tmp_path / "f.npy", tmp_path / "x.zarr", "--shards=64,96,128", "--chunks=8,32,16")
    assert (zarr.open_array(tmp_path / "x.zarr")[:] == data).all()


def test_reencode_into_large_shards(zarrc, tmp_path, raw):
    a, b = tmp_path / "x.zarr", tmp_path / "y.zarr"
    zarrc(*IMPORT, raw, a, "--chunks=32,64,64", "-C", "none")
    command = ["reencode", "-q", "--mem=16M", "-j2", a, b, "--shards=96,1024,512", "--chunks=32,64,64"]
    assert count_written(*command, limit=200 * MIB) < 1.05 * SIZE
    assert (zarr.open_array(b)[:].ravel() == np.fromfile(raw, "u1")).all()
    nothing = peak("version")
    assert peak(*command, "--force", "--verify") - nothing < 40 * 1024


def test_copy_of_large_shards(zarrc, tmp_path, raw):
    a, b = tmp_path / "x.zarr", tmp_path / "y.zarr"
    zarrc(*IMPORT, raw, a, *ONE_SHARD)
    nothing = peak("version")
    assert peak("cp", "-q", "--mem=16M", a, b) - nothing < 24 * 1024
    assert (b / "c/0/0/0").read_bytes() == (a / "c/0/0/0").read_bytes()
    assert not list(b.rglob("*.__lock"))


def test_append_to_a_large_shard(zarrc, tmp_path, raw):
    """The old chunks of the shard are copied one by one."""
    a = tmp_path / "x.zarr"
    zarrc(*IMPORT, raw, a, "--shards=128,1024,1024", "--chunks=32,64,64", "-C", "none")
    new = np.arange(1024 * 1024, dtype="u1").reshape(1, 1024, 1024)
    np.save(tmp_path / "new.npy", new)
    nothing = peak("version")
    assert peak("append", "-q", "--mem=16M", "-j2", a, tmp_path / "new.npy") - nothing < 48 * 1024
    found = zarr.open_array(a)
    assert found.shape == (97, 1024, 1024) and (found[96] == new[0]).all()
    assert (found[:96].ravel() == np.fromfile(raw, "u1")).all()


def value_that_works(failed):
    return re.search(r"Try: (--mem=\d+M)", failed.err)[1]


def test_refused_before_the_work(zarrc, tmp_path, raw):
    """One chunk is larger than the limit: nothing is written, and the message has a value that works."""
    a, b = tmp_path / "x.zarr", tmp_path / "y.zarr"
    failed = zarrc(*IMPORT, raw, a, "--chunks=96,1024,1024", "-C", "none", code=4)
    assert "one chunk needs " in failed.err and not a.exists()
    zarrc("import", "-q", value_that_works(failed), "-t", "uint8", "--shape=96,1024,1024", raw, a, "--chunks=96,1024,1024", "-C", "none")
    failed = zarrc("reencode", "--mem=16M", a, b, "--chunks=96,1024,1024", code=4)
    assert not b.exists()
    zarrc("reencode", value_that_works(failed), a, b, "--chunks=96,1024,1024")
    assert (zarr.open_array(b)[:].ravel() == np.fromfile(raw, "u1")).all()


def test_a_row_of_a_large_chunk(zarrc, tmp_path):
    """Of an uncompressed chunk of 1.5 GiB, only what a read needs is in memory. So is it if the chunk is too short."""
    a = tmp_path / "x.zarr"
    zarrc("create", "-q", a, "-t", "uint8", "--shape=1536,1048576", "--chunks=1536,1048576", "-C", "none")
    (a / "c/0").mkdir(parents=True)
    with open(a / "c/0/0", "wb") as chunk:
        chunk.truncate(1536 * MIB)
        chunk.seek(1000 * MIB + 5)
        chunk.write(b"abc")
    nothing = peak("version")
    for mem, where in (("8M", "1000,:10"), ("8M", "1000"), ("64M", "999:1010,5:8"), ("1G", "100:300:50,:9"), ("64M", "1011:1000:-3,5:9")):
        assert peak("cat", "-Fraw", f"--mem={mem}", f"{a}[{where}]", out=tmp_path / "out") - nothing < 24 * 1024
        if where == "1000,:10":
            assert (tmp_path / "out").read_bytes() == b"\0\0\0\0\0abc\0\0"
    failed = zarrc("cat", "--mem=1G", f"{a}[:,5]", code=4)
    assert value_that_works(failed)
    os.truncate(a / "c/0/0", 1500 * MIB)
    failed = zarrc("cat", "--mem=64M", f"{a}[1000]", code=4)
    assert "chunk has 1572864000 bytes where its shape and data type need 1610612736" in failed.err
    failed = zarrc("export", "--mem=64M", f"{a}[:1000]", tmp_path / "o.npy", code=4)
    assert "chunk has 1572864000 bytes" in failed.err


def test_refused_of_a_pipe(zarrc, tmp_path):
    """Boxes of a pipe would write a shard several times."""
    data = os.urandom(4 * MIB)
    command = ["import", "-Fraw", "-t", "uint8", "--shape=64,256,256", "-", tmp_path / "x.zarr", "--shards=64,256,256", "--chunks=32,64,64"]
    failed = zarrc(*command, "--mem=2M", input=data, code=4)
    assert "of a pipe" in failed.err and not (tmp_path / "x.zarr").exists()
    zarrc(*command, value_that_works(failed), input=data)
    assert zarr.open_array(tmp_path / "x.zarr")[:].tobytes() == data


def test_refused_by_every_command(zarrc, tmp_path):
    """Commands that read or write an array whose chunks --mem does not permit change nothing, and tell what they need."""
    a, b, rows = tmp_path / "a.zarr", tmp_path / "b.zarr", tmp_path / "rows.npy"
    data = np.arange(2 ** 19, dtype="i4").reshape(512, 1024)
    np.save(rows, data)
    zarrc("import", "-q", rows, a, "--chunks=512,1024")
    zarrc("cp", a, b)
    for command in (["cat", "-Fraw", a], ["export", "--force", a, tmp_path / "o.npy"], ["append", a, rows], ["resize", a, "300,1000"],
                    ["import", rows, f"{a}[...]"], ["reencode", "--chunks=64,64", a, tmp_path / "c.zarr"]):
        failed = zarrc(*command, "--mem=2M", code=4)
        assert not (tmp_path / "c.zarr").exists()
        zarrc("diff", "--data", a, b)
        if command[0] not in ("append", "resize"):
            zarrc(*command, value_that_works(failed))
    zarrc("resize", a, "300,1000", value_that_works(zarrc("resize", a, "300,1000", "--mem=2M", code=4)))
    assert (zarr.open_array(a)[:] == data[:300, :1000]).all()


def test_diff_is_refused_before_the_work(zarrc, tmp_path):
    """diff names one value that is enough for all arrays, and compares nothing before it. Arrays that it does not read
    do not count."""
    for root in ("a", "b"):
        for name, n in (("small", 1024), ("large", 1024 * 1024), ("middle", 512 * 1024)):
            zarrc("create", f"{tmp_path}/{root}.zarr/{name}", "-t", "int32", f"--shape={n}", f"--chunks={n}")
    zarrc("create", tmp_path / "a.zarr/only", "-t", "int32", "--shape=9000000", "--chunks=9000000")
    zarrc("create", tmp_path / "a.zarr/other_shape", "-t", "int32", "--shape=9000000", "--chunks=9000000")
    zarrc("create", tmp_path / "b.zarr/other_shape", "-t", "int32", "--shape=9000001", "--chunks=9000001")
    failed = zarrc("diff", "--mem=2M", tmp_path / "a.zarr", tmp_path / "b.zarr", code=4)
    assert "/large: one chunk needs" in failed.err and failed.out == b""
    done = zarrc("diff", value_that_works(failed), tmp_path / "a.zarr", tmp_path / "b.zarr", code=1)
    assert b"only" in done.out and b"unreadable" not in done.out


def test_no_file_remains_without_memory(tmp_path):
    """The program exits where it finds no memory for its buffers. The file that it was to write goes, too."""
    import resource

    subprocess.run([PROGRAM, "create", "-q", tmp_path / "x.zarr", "-t", "float64", "--shape=400000000", "--chunks=1000000"], check=True)
    done = subprocess.run([PROGRAM, "export", "--mem=4G", tmp_path / "x.zarr", tmp_path / "x.npy"], capture_output=True, text=True,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (600 * MIB, 600 * MIB)))
    assert done.returncode != 0 and "cannot allocate" in done.stderr
    assert os.listdir(tmp_path) == ["x.zarr"]


def test_reencode_has_a_default(zarrc, tmp_path):
    """Without --mem, an eighth of the machine's memory counts as a limit, too."""
    zarrc("create", tmp_path / "a", "--shape=2,3,200000,200000", "--chunks=1,1,250,250", "-t", "u2")
    failed = zarrc("reencode", "--limit=chunk_bytes=1T", tmp_path / "a", tmp_path / "b", "--chunks=1,3,200000,200000", code=4)
    assert "one chunk needs " in failed.err and value_that_works(failed) and not (tmp_path / "b").exists()


@pytest.mark.parametrize("crc", [False, True])
@pytest.mark.parametrize("place", ["start", "end"])
def test_large_index(tmp_path, crc, place):
    """The index of a shard is in memory once. Here it has 2^22 inner chunks and 64 MiB, of which three chunks are stored."""
    n = 1 << 22
    zarr.create_array(tmp_path / "x.zarr", shape=(n,), dtype="u1", shards=(n,), chunks=(1,), compressors=None)
    path = tmp_path / "x.zarr/zarr.json"
    document = json.loads(path.read_text())
    configuration = document["codecs"][0]["configuration"]
    configuration["index_location"] = place
    if not crc:
        configuration["index_codecs"].pop()
    path.write_text(json.dumps(document))
    index = np.full((n, 2), 2**64 - 1, dtype="<u8")
    first = (16 * n + 4 * crc) * (place == "start")
    index[[0, 5, n - 1]] = [[first, 1], [first + 1, 1], [first + 2, 1]]
    encoded = bytes(numcodecs.CRC32C(location="end").encode(index) if crc else index)
    values = bytes([7, 8, 9])
    (tmp_path / "x.zarr/c").mkdir()
    (tmp_path / "x.zarr/c/0").write_bytes(encoded + values if place == "start" else values + encoded)
    assert peak("verify", "-q", tmp_path / "x.zarr") * 1024 < 1.5 * 16 * n
    assert peak("cat", "-q", f"{tmp_path}/x.zarr[5:6]", out=tmp_path / "out") * 1024 < 1.5 * 16 * n
    assert (tmp_path / "out").read_text().strip() == "8"
