"""Zip archives that other programs wrote: each array has the values that zarr-python reads from the same nodes."""
import io
import os
import pathlib
import shutil
import subprocess
import time
import zipfile

import numpy as np
import pytest
import zarr

from zarrc_abi import ZarrcError

DOCUMENT = b'{"zarr_format":3,"node_type":"group","attributes":{}}'


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A folder with groups of both formats, and what zarr-python reads of each array."""
    root, rng = tmp_path_factory.mktemp("tree"), np.random.default_rng(7)
    values = {}
    for zarr_format in (2, 3):
        group = zarr.create_group(root / f"v{zarr_format}.zarr", zarr_format=zarr_format)
        for name, shape, chunks, dtype in (("temp", (40, 60), (10, 20), "f4"), ("deep/in/it", (100,), (30,), "u2"), ("one", (), (), "i8"),
                                           ("bäume", (6,), (2,), "u1")):
            more = {"shards": tuple(2 * n for n in chunks)} if zarr_format == 3 and name == "temp" else {}
            array = group.create_array(name, shape=shape, chunks=chunks, dtype=dtype, fill_value=3, **more)
            array[...] = (rng.random(shape) * 200).astype(dtype)
            values[zarr_format, name] = array[...]
        group.create_array("empty", shape=(50,), chunks=(5,), dtype="i4", fill_value=9)
        values[zarr_format, "empty"] = np.full(50, 9, "i4")
    return root, values


def files(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def by_zipfile(folder, path, compression=zipfile.ZIP_STORED, above="", prefix=b"", comment=b"", forced=False):
    path.write_bytes(prefix)
    with zipfile.ZipFile(path, "a" if prefix else "w", compression) as archive:
        for name in files(folder):
            with archive.open(above + name, "w", force_zip64=forced) as member:
                member.write((folder / name).read_bytes())
        archive.comment = comment


class Stream(io.RawIOBase):
    """A pipe: zipfile writes sizes after the data."""

    def __init__(self, path):
        self.file = open(path, "wb")

    def writable(self):
        return True

    def write(self, data):
        return self.file.write(data)

    def close(self):
        self.file.close()
        super().close()


def by_stream(folder, path):
    stream = Stream(path)
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in files(folder):
            archive.write(folder / name, name)
    stream.close()


def by_zip_store(folder, path):
    with zarr.storage.ZipStore(path, mode="w") as store:
        old = zarr.open_group(folder, mode="r")
        new = zarr.create_group(store, zarr_format=old.metadata.zarr_format)
        for name in ("temp", "deep/in/it", "one", "bäume", "empty"):
            array = old[name]
            new.create_array(name, data=array[...] if name != "empty" else None, fill_value=array.fill_value, chunks=array.chunks,
                             **({"shape": array.shape, "dtype": array.dtype} if name == "empty" else {}),
                             **({"shards": array.shards} if array.shards else {}))


def tool(program, *arguments, cwd, **options):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is missing: scripts/setup installs it")
    return subprocess.run([program, *map(str, arguments)], cwd=cwd, check=True, capture_output=True, stdin=subprocess.DEVNULL, **options)


def by_info_zip(folder, path, *options):
    tool("zip", "-r", "-q", *options, path, ".", cwd=folder)


def by_info_zip_stream(folder, path):
    path.write_bytes(tool("zip", "-r", "-q", "-", ".", cwd=folder).stdout)


def by_info_zip_above(folder, path):
    tool("zip", "-r", "-q", "-0", path, folder.name, cwd=folder.parent)


def by_seven_zip(folder, path, *options):
    tool("7z", "a", "-tzip", *options, path, ".", cwd=folder)


def by_libzip(folder, path):
    tool("ziptool", "-n", path, *(word for name in files(folder) for word in ("add_file", name, folder / name, 0, 0)), cwd=folder)


WRITERS = {
    "zipfile": by_zipfile,
    "zipfile deflated": lambda f, p: by_zipfile(f, p, zipfile.ZIP_DEFLATED),
    "zipfile zip64": lambda f, p: by_zipfile(f, p, forced=True),
    "zipfile comment": lambda f, p: by_zipfile(f, p, comment=b"PK\5\6 comment" * 5000),
    "zipfile short comment": lambda f, p: by_zipfile(f, p, comment=b"a comment"),
    "zipfile prefix": lambda f, p: by_zipfile(f, p, prefix=b"#!/bin/sh\n" * 99),
    "zipfile folder": lambda f, p: by_zipfile(f, p, above="a/b c.zarr/"),
    "zipfile stream": by_stream,
    "ZipStore": by_zip_store,
    "zip": by_info_zip,
    "zip -0": lambda f, p: by_info_zip(f, p, "-0"),
    "zip -0 without extra fields": lambda f, p: by_info_zip(f, p, "-0", "-X"),
    "zip zip64": lambda f, p: by_info_zip(f, p, "-0", "-fz"),
    "zip stream": by_info_zip_stream,
    "zip folder": by_info_zip_above,
    "7z": by_seven_zip,
    "7z stored": lambda f, p: by_seven_zip(f, p, "-mx=0"),
    "libzip": by_libzip,
}


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("writer", WRITERS)
def test_every_writer(context, tree, tmp_path, writer, zarr_format):
    root, values = tree
    path = tmp_path / "x.zarr.zip"
    WRITERS[writer](root / f"v{zarr_format}.zarr", path)
    store = context.store(str(path))
    for name in ("temp", "deep/in/it", "one", "bäume", "empty"):
        value = values[zarr_format, name]
        for _ in range(2):  # the second read has what the first one learned
            assert np.array_equal(store.open(name).read(value.dtype.str), value), name
    if writer != "ZipStore":
        folder = root / f"v{zarr_format}.zarr"
        assert sorted(store.keys()) == files(folder)
        assert all(store.get(name) == (folder / name).read_bytes() for name in files(folder))


@pytest.mark.parametrize("writer", ["zipfile", "zipfile deflated", "ZipStore", "7z", "libzip"])
def test_zarr_python_agrees(context, tree, tmp_path, writer):
    """What ZipStore reads of the same file."""
    for zarr_format in (2, 3):
        path = tmp_path / f"{zarr_format}.zip"
        WRITERS[writer](tree[0] / f"v{zarr_format}.zarr", path)
        with zarr.storage.ZipStore(path, mode="r") as theirs:
            group = zarr.open_group(theirs, mode="r")
            for name in ("temp", "deep/in/it", "one", "bäume", "empty"):
                value = group[name][...]
                assert np.array_equal(context.store(str(path)).open(name).read(value.dtype.str), value), name


def test_many_members(context, tmp_path):
    """More members than the end record can count, of which a quarter was written twice."""
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("zarr.json", DOCUMENT)
        for i in range(70_000):
            archive.writestr(f"c/{i // 300}/{i % 300}", b"%d" % i)
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "a") as archive:
        for i in range(0, 70_000, 1000):
            archive.writestr(f"c/{i // 300}/{i % 300}", b"new %d" % i)
    store = context.store(str(path))
    assert len(store.keys()) == 70_001 and len(store.keys("c/7")) == 300
    for i in range(0, 70_000, 500):
        assert store.get(f"c/{i // 300}/{i % 300}") == (b"new %d" if i % 1000 == 0 else b"%d") % i


def test_the_time_to_open(context, tmp_path):
    """CPU time, in the same run: 40 times less than zipfile takes, and a fifth is enough."""
    path, seconds = tmp_path / "x.zip", {}
    with zipfile.ZipFile(path, "w") as archive:
        for i in range(100_000):
            archive.writestr(f"c/{i // 300}/{i % 300}", b"x")

    def by_python():
        with zipfile.ZipFile(path) as archive:
            return archive.read("c/7/7")

    for name, read in (("zarrc", lambda: context.store(str(path)).get("c/7/7")), ("zipfile", by_python)):
        for _ in range(3):
            begin = time.process_time()
            assert read() == b"x"
            seconds.setdefault(name, []).append(time.process_time() - begin)
    assert min(seconds["zarrc"]) <= min(seconds["zipfile"]) / 5, seconds


def test_names_as_zipfile_reads_them(context, tmp_path):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("ascii", "b\u00e4ume/\u65e5\u672c", "a b/c"):
            archive.writestr(name, name)
    data = path.read_bytes().replace("bäume/日本".encode(), bytes(range(128, 128 + 13)))
    old = data.replace(b"\x00\x08\x00\x00", b"\x00\x00\x00\x00")  # without the flag of UTF-8
    for content in (path.read_bytes(), old):
        path.write_bytes(content)
        with zipfile.ZipFile(path) as archive:
            assert sorted(context.store(str(path)).keys()) == sorted(archive.namelist())


def test_members_that_cannot_be_read(context, tmp_path):
    for name in ("good", "locked", "packed"):
        (tmp_path / name).write_bytes(b"value " * 100)
    path = tmp_path / "x.zip"
    tool("7z", "a", "-tzip", "-mm=BZip2", path, "packed", cwd=tmp_path)
    tool("7z", "a", "-tzip", "-psecret", "-mem=AES256", path, "locked", cwd=tmp_path)
    tool("7z", "a", "-tzip", path, "good", cwd=tmp_path)
    store = context.store(str(path))
    assert sorted(store.keys()) == ["good", "locked", "packed"]
    assert store.get("good") == b"value " * 100
    for name, text in (("locked", "encrypted"), ("packed", "bzip2")):
        with pytest.raises(ZarrcError, match=f"{name}: member of x.zip: .*{text}"):
            store.get(name)


def test_symbolic_link_to_an_archive(context, tree, tmp_path):
    by_zipfile(tree[0] / "v3.zarr", tmp_path / "real")
    (tmp_path / "links").mkdir()
    os.symlink(tmp_path / "real", tmp_path / "links" / "x.zip")
    assert "zarr.json" in context.store(str(tmp_path / "links" / "x.zip")).keys()
    assert "zarr.json" in context.store(f"zip:{pathlib.Path(tmp_path, 'real')}").keys()


# ---- archives that zarrc writes ----

def fill(store, values, zarr_format):
    """Writes the arrays of `tree` into a store of zarrc: each chunk by a PUT, and some documents twice."""
    for (wanted, name), value in values.items():
        if wanted == zarr_format:
            store.create(name, value.shape, value.dtype.name, chunks=[max(1, n // 3) for n in value.shape], zarr_format=zarr_format,
                         attributes='{"unit": "K"}').write(value)
    store.put("note.txt", b"first")
    store.put("note.txt", "zweite Fassung ü".encode())
    store.flush()


def check_by_others(path):
    for line in (["unzip", "-tqq", path], ["7z", "t", path], ["ziptool", path, "get_num_entries", 0]):
        if shutil.which(line[0]):
            done = subprocess.run([str(word) for word in line], capture_output=True, text=True, stdin=subprocess.DEVNULL)
            assert done.returncode == 0, done.stdout + done.stderr


def check_members(path, names):
    """Every other program finds a sound archive."""
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert set(names) <= set(archive.namelist()) and len(set(archive.namelist())) == len(archive.namelist())
        assert archive.read("note.txt") == "zweite Fassung ü".encode()
        for info in archive.infolist():
            assert info.create_system == 3 and info.external_attr >> 16 == 0o100644 and 2020 <= info.date_time[0] < 2100
    check_by_others(path)


@pytest.mark.parametrize("config", [None, '{"zip_update": "copy"}'])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_other_programs_read(context, tree, tmp_path, zarr_format, config):
    path = tmp_path / "new.zarr.zip"
    store = context.store(str(path), create=True, config=config and config.encode())
    fill(store, tree[1], zarr_format)
    check_members(path, ["note.txt"])
    keys = set(store.keys())
    store.put("later", b"in a second session")
    store.flush()
    check_members(path, keys | {"later"})
    with zarr.storage.ZipStore(path, mode="r") as theirs:
        for (wanted, name), value in tree[1].items():
            if wanted == zarr_format:
                array = zarr.open_array(theirs, path=name, mode="r")
                assert np.array_equal(array[...], value) and dict(array.attrs) == {"unit": "K"}


@pytest.mark.parametrize("writer", ["zipfile", "zipfile deflated", "zipfile zip64", "zipfile short comment", "zipfile prefix", "zipfile folder",
                                    "zipfile stream", "ZipStore", "zip", "7z", "libzip"])
def test_appends_to_every_writer(context, tree, tmp_path, writer):
    """What the other program stored stays, byte for byte, and both programs go on."""
    root, values = tree
    path = tmp_path / "x.zarr.zip"
    WRITERS[writer](root / "v3.zarr", path)
    old = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        infos = {info.filename: (info.date_time, info.extra, info.comment, info.external_attr, info.CRC) for info in archive.infolist()}
        comment = archive.comment
    store = context.store(str(path))
    store.put("note.txt", b"first")
    store.put("note.txt", "zweite Fassung ü".encode())
    store.erase("one/zarr.json")
    store.flush()
    assert path.read_bytes()[:len(old)] == old
    above = "a/b c.zarr/" if writer == "zipfile folder" else ""
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None and archive.comment == comment
        del infos[f"{above}one/zarr.json"]
        assert {info.filename: (info.date_time, info.extra, info.comment, info.external_attr, info.CRC) for info in archive.infolist()
                if info.filename != f"{above}note.txt"} == infos
        assert archive.read(f"{above}note.txt").startswith(b"zweite")
    for name in ("temp", "deep/in/it", "bäume", "empty"):
        value = values[3, name]
        assert np.array_equal(store.open(name).read(value.dtype.str), value), name
    store.repack()
    assert len(path.read_bytes()) < len(old) + 4096 and store.repack() == path.stat().st_size
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None and archive.comment == comment
        assert {info.filename: (info.date_time, info.extra, info.comment, info.external_attr, info.CRC) for info in archive.infolist()
                if info.filename != f"{above}note.txt"} == infos
    check_by_others(path)
    for name in ("temp", "deep/in/it", "bäume", "empty"):
        value = values[3, name]
        assert np.array_equal(store.open(name).read(value.dtype.str), value), name
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(f"{above}theirs", "x")
    assert store.get("theirs") == b"x" and store.get("note.txt").startswith(b"zweite")
    store.put("ours", b"y")
    store.flush()
    with zipfile.ZipFile(path) as archive:
        assert archive.read(f"{above}theirs") == b"x" and archive.read(f"{above}ours") == b"y"


def test_two_processes(context, tmp_path):
    """A second program waits until the first one is idle or flushes."""
    path = tmp_path / "x.zip"
    store = context.store(str(path), create=True)
    store.put("a", b"1")
    store.flush()
    program = [os.environ["ZARRC"], "create", f"{path}/n", "--shape=3", "-t", "int8"]
    store.put("b", b"2")
    done = subprocess.run(program, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert store.get("b") == b"2" and "n/zarr.json" in store.keys()
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None and {"a", "b", "n/zarr.json"} <= set(archive.namelist())
