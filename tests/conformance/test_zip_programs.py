"""Zip archives that other programs wrote: each array has the values that zarr-python reads from the same nodes."""
import base64
import io
import json
import os
import pathlib
import shutil
import struct
import subprocess
import time
import zipfile
import zlib

import numpy as np
import pytest
import zarr

from zarrc_abi import ZarrcError

# What ome-zarr 0.21.0 wrote into a ZipStore: write_image() of uint8 elements 0 to 23 of the shape (1, 4, 6), with FormatV05,
# scale_factors=[2] and chunks of (1, 2, 6). tests/real has larger ones. Compressed, as base85.
OME_ZARR = (
    "c-rk)y>AmS6u&f0+J-iiHZ2=OMnVjsxwN$6Lo7^4T{^I#D01(d<mlxtI{T`mRT#>~z<~G<Kw_!Hgw&OR4QBoVHa3u80b%=kU(Q{cL=mXco#dR)@BQ9;wtx1Ey|bO"
    "3E=cV8MxItrK3;wMfYw==qvZfv*4h(n8i%=J5kNvLZPz9UgS*AUUWv6ajauEbT9DAj4c=y$Dyorg8_^cfuuQuRa=o39qpzP%j*q4!iIsWUhUIeD7j8n1e@s7$#Y&"
    "04ZaJ?l`dj6mR7jxb$<_>V8}N3eX&ZaBhNY=2QVs$JY;iRUHEbPPz_A4s)2M3=+k!+h4Nu#%5so7e3wzf6>egwk%HKWu+Y3aphq^UnD5k0zjsA#KREM@s&Ws47Hl"
    "(el#Xw~sc&cl<UfYMd&1}k!b2<?U_M-O;xsG?cY%U!;rD&A{OjJ<v#v~>*D$>zD(p}Hq5F%v{+b!B$hdM^5lAag2GmBBYQneN`F!fSnk@$T8iaShQx6%Qgr8C(`<"
    "<J2FOa~G+sK|l_W*B5~H&v0V$9G=53UReE3|CLNv5{~!;p)HR>gVe}w^wMLm7KG$DrLD`Da$wBmwy-MA*Jv_{^H`LrRBoP>g6!_`@5UhBEWJ0ETyK>)0ynd>|E|b"
    "82qKP`Z5Hr^ns_dvs92@T%x~W@Rj_Jlu7I65P8QLNRv;wM}d7hAkH)cd2Lgq+n7nJu>D+L&Poz1lZeWrW{a*M4J%L&kR`}yuEh2Wj7V5R)Z&_LNSe$CmO)9BDW+-"
    "Bl?(}b<Z_2Eh<>wCrnw1ska)m-9-P(AMNt;{F0>|>MixZ0SNqy}rO~>;*N^V(2$3BLD#Ue1j*EJbV7Tt&25AVLji*87oY7!?fZ$xxU^7-Q2^s{xszFCy9@JViSA;"
    "qSU<VDck+=qwege5er!=8q(BwH1GhMsgc)Pd_6*QjJ&S+M1Q3KnH`Aalr=6FV4-~WG^Bbn^8*GiIIlkA#g*Ce}+n_VZFIZ{)Fbo?Eh`@Bg>!Av5;#2YmqrV00JB2"
    "v8H@R2L&@NI{P6i=Hz@<S$g_7rjALDR?m$pnv`B2GMG`nY@9;E7YjiN{MH*U1hTQt|xf!}2o&U}Ez3VGkEVuuN9s0nJIj=-eJHv#-CwwrWQ")
# What Java's users write: each size follows its data.
JAVA = """
import java.io.*;
import java.nio.file.*;
import java.util.zip.*;
class Zip {
    public static void main(String[] names) throws Exception {
        try (ZipOutputStream out = new ZipOutputStream(new FileOutputStream(names[0]))) {
            for (int i = 1; i < names.length; i++) {
                ZipEntry entry = new ZipEntry(names[i]);
                entry.setTimeLocal(java.time.LocalDateTime.of(2026, 1, 1, 0, 0));
                out.putNextEntry(entry);
                Files.copy(Path.of(names[i]), out);
                out.closeEntry();
            }
        }
    }
}
"""
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


def by_java(folder, path):
    if shutil.which("javac") is None:
        pytest.skip("javac is missing: the package openjdk-17-jdk-headless has it")
    source = path.with_name("Zip.java")
    source.write_text(JAVA)
    tool("java", source, path, *files(folder), cwd=folder, env={**os.environ, "LC_ALL": "C.UTF-8"})


def by_jar(folder, path):
    if shutil.which("jar") is None:
        pytest.skip("jar is missing: the package openjdk-17-jdk-headless has it")
    tool("jar", "--create", "--no-manifest", "--file", path, "-C", folder, ".", cwd=folder, env={**os.environ, "LC_ALL": "C.UTF-8"})


def as_java(folder, path):
    """The bytes of JAVA: writeLOC(), writeEXT(), writeCEN() and writeEND() of java.util.zip.ZipOutputStream (JDK 17)."""
    out, directory, n = b"", b"", files(folder)
    for name in n:
        data = (folder / name).read_bytes()
        packer = zlib.compressobj(wbits=-15)
        packed, at = packer.compress(data) + packer.flush(), len(out)
        common = struct.pack("<HHHHH", 20, 0x0808, 8, 0, 0x5C21)  # deflated, UTF-8, sizes later; midnight of 2026-01-01
        sizes = struct.pack("<III", zlib.crc32(data), len(packed), len(data))
        out += b"PK\3\4" + common + bytes(12) + struct.pack("<HH", len(name.encode()), 0) + name.encode() + packed + b"PK\7\10" + sizes
        directory += b"PK\1\2" + struct.pack("<H", 20) + common + sizes + struct.pack("<HHHHHII", len(name.encode()), 0, 0, 0, 0, 0, at) + name.encode()
    path.write_bytes(out + directory + b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, len(n), len(n), len(directory), len(out), 0))


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
    "java": by_java,
    "jar": by_jar,
    "as java": as_java,
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
    if writer == "java":
        as_java(root / f"v{zarr_format}.zarr", tmp_path / "same.zip")
        assert read_headers(path) == read_headers(tmp_path / "same.zip")
    if writer != "ZipStore":
        folder = root / f"v{zarr_format}.zarr"
        assert sorted(store.keys()) == files(folder)
        assert all(store.get(name) == (folder / name).read_bytes() for name in files(folder))


def read_headers(path):
    """Of each member, without the lengths of what was compressed: the local header, the descriptor, and the record."""
    found, data = [], path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            at = info.header_offset + 30 + len(info.filename.encode()) + struct.unpack_from("<H", data, info.header_offset + 28)[0]
            after = data[at + info.compress_size:]
            found.append((data[info.header_offset:at], after[:8], after[12:16], info.create_version, info.create_system, info.extra,
                          info.external_attr, info.internal_attr, info.CRC, info.file_size))
    return found


def test_ome_zarr(context, tmp_path):
    """The package writes the documents of the root several times: the last one counts."""
    path = tmp_path / "x.zarr.zip"
    path.write_bytes(zlib.decompress(base64.b85decode(OME_ZARR)))
    store, data = context.store(str(path)), np.arange(24, dtype="u1").reshape(1, 4, 6)
    assert len(json.loads(store.get("zarr.json"))["attributes"]["ome"]["multiscales"][0]["datasets"]) == 2
    assert np.array_equal(store.open("s0").read("|u1"), data)
    assert store.open("s1").read("|u1").tolist() == [[[4, 6, 8], [14, 16, 18]]]
    assert subprocess.run([os.environ["ZARRC"], "verify", path]).returncode == 0


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
                                    "zipfile stream", "ZipStore", "zip", "7z", "libzip", "as java"])
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
