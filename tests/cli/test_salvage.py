"""Damage of many kinds in many stores: --skip-damaged reads the rest, verify --repair mends it, and every other object keeps its
bytes."""
import json
import os
import re
import shutil
import struct
import subprocess
import zipfile
from dataclasses import dataclass, field

import numcodecs
import numpy as np
import pytest
import s3_server
import zarr
from conftest import PROGRAM
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, ZstdCodec

LOST = 8


def files(top):
    return {str(p.relative_to(top)): p.read_bytes() for p in top.rglob("*") if p.is_file()}


# ---- damage of one object: functions of its bytes, or of its path ----

def truncate(data):
    return data[:len(data) // 2]


def header(data):
    return b"\xff" * 4 + data[4:]


def sizes(data):
    return data[:4] + b"\xff" * 4 + data[8:]


def flip(at):
    return lambda data: data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]


def zeros(data):
    return bytes(len(data))


def garbage(data):
    return np.random.default_rng(1).bytes(len(data))


def long(data):
    return data + b"\0"


def empty(data):
    return b""


def entry(i, offset, length, n=4, check=False):
    """Replaces an entry of the index of a shard, which is at the end. check: makes its checksum again."""
    def change(data):
        begin = len(data) - 16 * n - 4 * check
        at = begin + 16 * i
        old = struct.unpack_from("<QQ", data, at)
        new = struct.pack("<QQ", *(o if v is None else v for o, v in zip(old, (offset, length))))
        data = data[:at] + new + data[at + 16:]
        return data[:begin] + bytes(numcodecs.CRC32C(location="end").encode(data[begin:-4])) if check else data
    return change


def inner_shard(i, damage):
    """Damages one of the two shards of 64 bytes in a shard, which follow each other."""
    return lambda data: data[:64 * i] + damage(data[64 * i:64 * i + 64]) + data[64 * i + 64:]


def tail(data):
    return data[:-8] + b"\x55" * 8


def folder(path):
    path.unlink()
    path.mkdir()


def link(path):
    path.unlink()
    path.symlink_to("nowhere")


@dataclass
class Case:
    name: str
    damage: object
    keys: tuple = ("0/0",)  # of blocks, as the chunk grid counts
    shape: tuple = (8, 8)
    dtype: str = "i4"
    fill: object = 0
    is_path: bool = False  # damage takes the path
    n_lost: int = 16  # elements
    options: dict = field(default_factory=lambda: {"chunks": (4, 4), "compressors": None})


def v2(**more):
    return {"chunks": (4, 4), "chunk_key_encoding": {"name": "v2", "separator": "."}, **more}


def make_shards(*inner, **more):
    return {"chunks": (4, 4), "compressors": None,
            "serializer": ShardingCodec(chunk_shape=(2, 2), codecs=[BytesCodec(), *inner], **more)}


NESTED = {"chunks": (4, 4), "compressors": None, "serializer": ShardingCodec(
    chunk_shape=(4, 2), codecs=[ShardingCodec(chunk_shape=(2, 2), codecs=[BytesCodec(), Crc32cCodec()])])}
PLAIN = [BytesCodec()]
NESTED_PLAIN = {"chunks": (4, 4), "compressors": None, "serializer": ShardingCodec(chunk_shape=(4, 2), index_codecs=PLAIN, codecs=[
    ShardingCodec(chunk_shape=(2, 2), codecs=[BytesCodec()], index_codecs=PLAIN)])}
CASES = [
    Case("truncated", truncate),
    Case("too long", long, dtype="f8", fill=1.5),
    Case("empty", empty, options={"chunks": (4, 4), "compressors": BloscCodec()}),
    Case("header of zstd", header, options={"chunks": (4, 4), "compressors": ZstdCodec()}),
    Case("bit with checksum", flip(5), ("1/0",), dtype="f4", fill="NaN", options={"chunks": (4, 4), "compressors": Crc32cCodec()}),
    Case("bit of gzip", flip(1), dtype="c16", options={"chunks": (4, 4), "compressors": GzipCodec()}),
    Case("zeros", zeros, dtype="u1", options={"chunks": (4, 4), "compressors": GzipCodec()}),
    Case("border chunk", garbage, ("1/1",), (6, 7), "f8", 0, n_lost=6, options={"chunks": (4, 4), "compressors": ZstdCodec()}),
    Case("v2, truncated zlib", truncate, dtype="<f4", options=v2(compressors=numcodecs.Zlib(1))),
    Case("v2, sizes of blosc", sizes, dtype="<i8", options=v2(compressors=numcodecs.Blosc())),
    Case("v2, big-endian in F order", truncate, ("1/1",), dtype=">i4", options=v2(compressors=None, order="F")),
    Case("v2, no fill value", long, dtype="<u2", fill=None, options=v2(compressors=None)),
    Case("v2, times", garbage, dtype="<M8[s]", options=v2(compressors=numcodecs.Zstd())),
    Case("v2, structs", truncate, dtype=[("x", "<f4"), ("n", "<i2")], options=v2(compressors=None)),
    Case("strings", garbage, dtype="string", fill="none", options={"chunks": (4, 4), "compressors": ZstdCodec()}),
    Case("index of a shard", tail, ("0/1",), options=make_shards(ZstdCodec())),
    Case("offset outside of the shard", entry(1, 1 << 40, None), n_lost=4, options=make_shards(ZstdCodec(), index_codecs=PLAIN)),
    Case("absurd length", entry(2, None, 1 << 60), n_lost=4, options=make_shards(ZstdCodec(), index_codecs=PLAIN)),
    Case("half of the mark of a missing chunk", entry(0, (1 << 64) - 1, None), ("0/1",), dtype="f8", n_lost=4,
         options=make_shards(ZstdCodec(), index_codecs=PLAIN)),
    Case("entry in the index, with a checksum", entry(3, 70, 16, check=True), n_lost=4, options=make_shards()),
    Case("two bad entries", lambda data: entry(0, 1 << 40, None)(entry(3, None, (1 << 64) - 1)(data)), n_lost=8,
         options=make_shards(ZstdCodec(), index_codecs=PLAIN)),
    Case("all entries bad", lambda data: data[:-64] + b"\x55" * 64, n_lost=16, options=make_shards(index_codecs=PLAIN)),
    Case("bad entries of a border shard", lambda data: entry(0, 1 << 40, 4)(entry(3, 1 << 40, 4)(data)), ("1/1",), (5, 5), n_lost=1,
         options=make_shards(index_codecs=PLAIN)),
    Case("bad entries in and outside of the shape", lambda data: entry(0, 1 << 40, 4)(entry(1, 1 << 40, 4)(data)), ("1/1",), (7, 5), n_lost=2,
         options=make_shards(index_codecs=PLAIN)),
    Case("bad entry beside a damaged chunk", lambda data: entry(2, 1 << 40, None)(flip(1)(data)), n_lost=8,
         options=make_shards(Crc32cCodec(), index_codecs=PLAIN)),
    Case("bad entry of a nested shard", entry(1, 1 << 40, None, n=2), n_lost=8, options=NESTED_PLAIN),
    Case("bad entries in a nested shard", lambda data: inner_shard(0, entry(1, 1 << 40, None, n=2))(inner_shard(1, entry(0, 3, 1 << 40, n=2))(data)),
         n_lost=8, options=NESTED_PLAIN),
    Case("chunks that overlap", entry(1, 3, 7), n_lost=4, options=make_shards(Crc32cCodec(), index_codecs=PLAIN)),
    Case("chunk of a shard", flip(7), dtype="f4", n_lost=4, options=make_shards(Crc32cCodec())),
    Case("chunk of a border shard", flip(3), ("1/1",), (5, 5), dtype="f8", n_lost=1, options=make_shards(Crc32cCodec())),
    Case("shard with its index first", truncate, options=make_shards(Crc32cCodec(), index_location="start")),
    Case("chunk of a nested shard", flip(2), fill=-3, n_lost=4, options=NESTED),
    Case("index of a nested shard", flip(45), n_lost=8, options=NESTED),
    Case("shard of strings", header, dtype="string", fill="none", n_lost=4, options=make_shards(Crc32cCodec()) | {
        "serializer": ShardingCodec(chunk_shape=(2, 2), codecs=[zarr.codecs.VLenUTF8Codec(), Crc32cCodec()])}),
    Case("two blocks", truncate, ("0/0", "1/1"), n_lost=32),
    Case("folder", folder, is_path=True),
    Case("broken link", link, is_path=True),
    Case("scalar", long, ("",), (), n_lost=1, options={"chunks": (), "compressors": None}),
]


def is_v2(case):
    return "chunk_key_encoding" in case.options


def key(case, at):
    return f"a/{at.replace('/', '.')}" if is_v2(case) else f"a/c/{at}".rstrip("/")


def values(case):
    n = int(np.prod(case.shape))
    if case.dtype == "string":
        return np.array([f"text {i}" for i in range(1, n + 1)], dtype=object).reshape(case.shape)
    if isinstance(case.dtype, list):
        return np.array([(i, i) for i in range(1, n + 1)], dtype=case.dtype).reshape(case.shape)
    return np.arange(1, n + 1).astype(case.dtype).reshape(case.shape)


@pytest.fixture
def damage_case(request, tmp_path):
    """The case, a damaged store with a second array, the store as it was, and what is broken in it."""
    case = request.param
    fill = {"fill_value": case.fill if case.dtype != "<M8[s]" else np.datetime64(7, "s")} if not isinstance(case.dtype, list) else {}
    store, sound = tmp_path / "x.zarr", tmp_path / "sound.zarr"
    top = zarr.create_group(str(store), zarr_format=2 if is_v2(case) else 3)
    for name in "ab":
        array = top.create_array(name, shape=case.shape, dtype="string" if case.dtype == "string" else case.dtype, **fill, **case.options)
        array[...] = values(case)
    shutil.copytree(store, sound)
    for at in case.keys:
        path = store / key(case, at)
        if case.is_path:
            case.damage(path)
        else:
            path.write_bytes(case.damage(path.read_bytes()))
    return case, store, sound, {key(case, at) for at in case.keys}


def elements(zarrc, place, *options, code=0):
    done = zarrc("cat", "--json", *options, place, code=code)
    text = np.array([json.dumps(e, sort_keys=True) for e in done.text and flat(done.json["data"], done.json["shape"])])
    return text, done


def flat(data, shape):
    stack = [data]
    for _ in shape:
        stack = [e for row in stack for e in row]
    return stack


def lost_mask(case, regions):
    mask = np.zeros(case.shape, bool)
    for region in regions:
        mask[tuple(slice(*map(int, r.split(":"))) for r in region.split(",") if r)] = True
    return mask.reshape(-1)


def cases(function):
    return pytest.mark.parametrize("damage_case", CASES, indirect=True, ids=lambda c: c.name)(function)


@cases
def test_cat(zarrc, damage_case):
    case, store, sound, _ = damage_case
    before, old = files(store), elements(zarrc, sound / "a")[0]
    error = zarrc("cat", store / "a", code=None)
    assert error.code in (3, 4)
    for word in ("nan", "fill"):
        now, done = elements(zarrc, store / "a", "--skip-damaged", f"--lost={word}", code=LOST)
        told = [json.loads(line)["lost"] for line in done.err.splitlines()]
        mask = lost_mask(case, [t["region"] for t in told])
        assert mask.sum() == case.n_lost and all(t["reason"] and t["node"].endswith(":/a") for t in told)
        assert (now == old)[~mask].all()
        assert len(set(now[mask])) == 1 and (now != old)[mask].all()
        if case.dtype == "string":
            assert now[mask][0] == '"none"'
        if word == "nan" and np.dtype(case.dtype if case.dtype != "string" else "O").kind in "fc":
            assert "NaN" in now[mask][0]
    assert files(store) == before
    text = zarrc("cat", "--skip-damaged", store / "a", code=LOST)
    assert text.err.count("is lost: ") == len(told)
    assert zarrc("cat", "--skip-damaged", sound / "a").err == ""


@cases
def test_delete(zarrc, damage_case):
    case, store, sound, keys = damage_case
    before, old = files(store), elements(zarrc, sound / "a")[0]
    plan = zarrc("verify", "--json", "--repair=delete", store, code=1).json
    assert files(store) == before
    assert {r["key"] for r in plan["repairs"]} == keys and not any(r["done"] or r["reason"] for r in plan["repairs"])
    assert (plan["valid"], plan["n_faults_left"]) == (False, plan["n_faults"])
    done = zarrc("verify", "--json", "--repair=delete", "--yes", store).json
    planned, repaired = (sorted((r["key"], r["action"], r["regions"]) for r in j["repairs"]) for j in (plan, done))
    assert repaired == planned
    assert {r["key"] for r in done["repairs"]} == keys and all(r["done"] for r in done["repairs"])
    assert (done["valid"], done["n_faults_left"], done["n_faults"]) == (True, 0, plan["n_faults"])
    mask = lost_mask(case, [region for r in done["repairs"] for region in r["regions"]])
    assert mask.sum() == case.n_lost
    zarrc("verify", store)
    now = elements(zarrc, store / "a")[0]
    assert (now == old)[~mask].all() and (now != old)[mask].all()
    after = files(store)
    assert {k: v for k, v in after.items() if k not in keys} == {k: v for k, v in before.items() if k not in keys}
    zarrc("verify", "--repair=delete", "--yes", store)
    assert files(store) == after


@cases
def test_from(zarrc, damage_case):
    case, store, sound, keys = damage_case
    before, good = files(store), files(sound)
    zarrc("verify", f"--repair=from:{sound}", store, code=1)
    assert files(store) == before
    done = zarrc("verify", "--json", f"--repair=from:{sound}", "--yes", store).json
    assert all(r["done"] and r["action"] == "copy" for r in done["repairs"])
    zarrc("verify", store)
    assert (elements(zarrc, store / "a")[0] == elements(zarrc, sound / "a")[0]).all()
    after = files(store)
    assert {k: v for k, v in after.items() if k not in keys} == {k: v for k, v in before.items() if k not in keys}
    if case.n_lost in (16, 32) and case.name not in ("all entries bad", "shard with its index first"):  # whole blocks
        assert after == good


@cases
def test_reencode_and_export(zarrc, damage_case, tmp_path):
    case, store, sound, _ = damage_case
    before, new = files(store), tmp_path / "new.zarr"
    kept = [] if case.shape == () else ["--chunks=3,3", "--shards=none"]
    done = zarrc("reencode", "--skip-damaged", *kept, store, new, code=LOST)
    assert "is lost: " in done.err and files(store) == before
    expected = elements(zarrc, store / "a", "--skip-damaged", "--lost=fill", code=LOST)[0]
    assert (elements(zarrc, new / "a")[0] == expected).all()
    assert (elements(zarrc, new / "b")[0] == elements(zarrc, sound / "b")[0]).all()
    zarrc("reencode", "--resume", "--skip-damaged", *kept, store, new, code=LOST)
    zarrc("export", "--skip-damaged", "--lost=fill", "--format=json", store / "a", tmp_path / "a.json", code=LOST)
    assert json.loads((tmp_path / "a.json").read_text()) == zarrc("cat", "--json", new / "a").json["data"]


def test_a_region_reads_only_itself(zarrc, tmp_path):
    """Damage elsewhere is neither read nor told; the chunks of the region that are lost are missing."""
    group = zarr.create_group(tmp_path / "g.zarr")
    for name in "ab":
        group.create_array(name, shape=(40, 6), chunks=(10, 6), dtype="i2", dimension_names=("y", "x"), fill_value=-1)[:] = \
            np.arange(240).reshape(40, 6)
    for key in ("a/c/0/0", "a/c/3/0", "b/c/1/0"):
        path = tmp_path / "g.zarr" / key
        path.write_bytes(garbage(path.read_bytes()))
    zarrc("reencode", "--skip-damaged", f"{tmp_path / 'g.zarr/a'}[10:30]", tmp_path / "1.zarr")
    assert (zarr.open_array(tmp_path / "1.zarr")[:] == np.arange(60, 180).reshape(20, 6)).all()
    done = zarrc("reencode", "--skip-damaged", "--verify", f"{tmp_path / 'g.zarr'}[y=5:15]", tmp_path / "2.zarr", code=LOST)
    assert re.findall(r"\S+\[\S+\] is lost", done.err) == [f"{tmp_path}/g.zarr:/a[0:10,0:6] is lost", f"{tmp_path}/g.zarr:/b[10:20,0:6] is lost"]
    for name, lost in [("a", slice(0, 5)), ("b", slice(5, 10))]:
        expected = np.arange(30, 90).reshape(10, 6)
        expected[lost] = -1
        assert (zarr.open_array(tmp_path / "2.zarr" / name)[:] == expected).all()
    done = zarrc("reencode", "--skip-damaged", "--dtype=float64", tmp_path / "g.zarr/a", tmp_path / "3.zarr", code=LOST)
    assert done.err.count("is lost") == 2 and (zarr.open_array(tmp_path / "3.zarr")[10:30] == np.arange(60, 180).reshape(20, 6)).all()


@pytest.mark.parametrize("damage, options, good, beside, bad", [
    (entry(1, 1 << 40, None), make_shards(ZstdCodec(), index_codecs=PLAIN), ("0:2,0:2", "2:4,0:4"), "0:2,0:2", "0:2,2:4"),
    (entry(1, None, 1 << 40, n=2), NESTED_PLAIN, ("0:4,0:2",), "0:2,0:2", "0:4,2:4"),
    (inner_shard(1, entry(0, 1 << 40, None, n=2)), NESTED_PLAIN, ("0:4,0:2", "2:4,0:4"), "2:4,2:4", "0:2,2:4")], ids=["shard", "nested shard", "in a nested shard"])
def test_one_bad_entry(zarrc, tmp_path, damage, options, good, beside, bad):
    """The other chunks of the shard are read. A write refuses to lose the bad one, unless it replaces it."""
    store = tmp_path / "x.zarr"
    array = zarr.create_array(store, shape=(4, 4), dtype="i4", **options)
    array[...] = np.arange(1, 17).reshape(4, 4)
    (store / "c/0/0").write_bytes(damage((store / "c/0/0").read_bytes()))
    damaged = files(store)

    def put(region, code):
        n = lost_mask(Case("", None, shape=(4, 4)), [region]).sum()
        return zarrc("import", "-q", "-", f"{store}[{region}]", "-t", "int32", "--format=raw", input=np.full(n, 7, "i4").tobytes(), code=code)

    for region in good:
        rows, columns = (slice(*map(int, r.split(":"))) for r in region.split(","))
        assert zarrc("cat", "--json", f"{store}[{region}]").json["data"] == array[rows, columns].tolist()
    for failed in (zarrc("cat", f"{store}[{bad}]", code=None), put(beside, None), put(bad[:-1] + "3", None), zarrc("verify", store, code=1)):
        assert "shard index entry" in failed.err + failed.text and "c/0/0" in failed.err + failed.text and failed.code in (1, 4)
    assert files(store) == damaged
    put(bad, 0)
    zarrc("verify", store)
    expected = np.where(lost_mask(Case("", None, shape=(4, 4)), [bad]).reshape(4, 4), 7, np.arange(1, 17).reshape(4, 4))
    assert (zarr.open_array(store, mode="r")[...] == expected).all()


# ---- metadata ----

def rewrite(name, text):
    return lambda store: (store / name).write_text(text)


def remove(name):
    return lambda store: (store / name).unlink()


def forget_entry(store):
    """Consolidated metadata that lacks a node and has an old one."""
    path = store / ("zarr.json" if (store / "zarr.json").exists() else ".zmetadata")
    text = json.loads(path.read_text())
    entries = text["consolidated_metadata"]["metadata"] if path.name == "zarr.json" else text["metadata"]
    for name in [k for k in entries if k.startswith("g/a") or k == "g/a"]:
        del entries[name]
    for name in [k for k in entries if k.split("/")[0] == "b" and not k.endswith(".zattrs")]:
        entries[name]["shape"] = [99]
    path.write_text(json.dumps(text))


METADATA = {  # name: (format, damage, how it is repaired)
    "broken document": (3, rewrite("g/a/zarr.json", "{"), ("consolidated", "from")),
    "empty document": (3, rewrite("b/zarr.json", ""), ("consolidated", "from")),
    "document of a group": (3, rewrite("g/zarr.json", "[]"), ("consolidated", "from")),
    "missing document": (3, remove("g/a/zarr.json"), ("consolidated", "from")),
    "missing document of a group": (3, remove("g/zarr.json"), ("consolidated", "from")),
    "stale consolidated metadata": (3, forget_entry, ("consolidated",)),
    "consolidated metadata of another form": (
        3, lambda s: (s / "zarr.json").write_text((s / "zarr.json").read_text().replace('"metadata":', '"metadat":')), ("consolidated",)),
    "v2, broken .zarray": (2, rewrite("g/a/.zarray", "{]"), ("consolidated", "from")),
    "v2, broken .zattrs": (2, rewrite("g/a/.zattrs", "x"), ("consolidated", "from")),
    "v2, missing .zarray": (2, remove("b/.zarray"), ("consolidated", "from")),
    "v2, broken .zgroup": (2, rewrite("g/.zgroup", "\x00"), ("consolidated", "from")),
    "v2, stale .zmetadata": (2, forget_entry, ("consolidated",)),
    "v2, broken .zmetadata": (2, rewrite(".zmetadata", "{"), ("consolidated",)),
}


def same_documents(a, b):
    def parse(all_files):
        return {k: json.loads(v) if re.search(r"\.z\w+$|json$", k) else v for k, v in all_files.items()}
    return parse(a) == parse(b)


@pytest.mark.parametrize("how", ["consolidated", "from"])
@pytest.mark.parametrize("name", METADATA)
def test_metadata(zarrc, tmp_path, name, how):
    zarr_format, damage, hows = METADATA[name]
    store, sound = tmp_path / "x.zarr", tmp_path / "sound.zarr"
    for words in (["--group", store], ["--group", store / "g", "-a", '{"k": 1}'],
                  [store / "g/a", "--shape=6", "-t", "int32", "-c", "3", "-a", '{"units": "K"}'],
                  [store / "b", "--shape=4", "-t", "float64", "-c", "4", "-a", '{"units": "m"}']):
        zarrc("create", "-q", f"--zarr-format={zarr_format}", *words)
    zarrc("import", "-", store / "g/a[:]", "-t", "int32", "-q", "--format=raw", input=np.arange(6, dtype="i4").tobytes())
    zarrc("consolidate", "-q", store)
    shutil.copytree(store, sound)
    damage(store)
    before = files(store)
    changed = {k for k, v in files(sound).items() if before.get(k) != v}
    value = how if how == "consolidated" else f"from:{sound}"
    zarrc("verify", f"--repair={value}", store, code=1)
    assert files(store) == before
    if how not in hows:
        zarrc("verify", f"--repair={value}", "--yes", store, code=1)
        assert files(store) == before
        return
    done = zarrc("verify", "--json", f"--repair={value}", "--yes", store).json
    assert done["repairs"] and all(r["done"] for r in done["repairs"])
    assert zarrc("verify", "--json", store).json["n_faults"] == 0
    after = files(store)
    assert {k: v for k, v in after.items() if k not in changed} == {k: v for k, v in before.items() if k not in changed}
    assert same_documents(after, files(sound))


# ---- other stores, and what is no damage ----

@pytest.fixture
def two_stores(zarrc, tmp_path):
    """A store with a damaged block in one array and a damaged chunk of a shard in another, and the store as it was."""
    np.save(tmp_path / "a.npy", np.arange(256, dtype="i4").reshape(16, 16))
    store, sound = tmp_path / "data/x.zarr", tmp_path / "data/sound.zarr"
    zarrc("import", tmp_path / "a.npy", sound / "a", "-c", "4,4", "-s", "8,8", "-C", "crc32c")
    zarrc("import", tmp_path / "a.npy", sound / "b", "-c", "8,8", "-C", "gzip:1")
    shutil.copytree(sound, store)
    for name, change in (("a/c/1/1", flip(1)), ("b/c/0/1", truncate)):
        (store / name).write_bytes(change((store / name).read_bytes()))
    return store, sound


def check_repairs(zarrc, url, sound, *words, actions=("delete chunks", "delete"), **more):
    assert zarrc("cat", "--skip-damaged", f"{url}/a", code=LOST, **more).err.count("is lost") == 1
    done = zarrc("verify", "--json", "--repair=delete", url, code=1, **more).json
    assert [(r["action"], r["regions"]) for r in sorted(done["repairs"], key=lambda r: r["key"])] == [
        (actions[0], ["8:12,8:12"]), (actions[1], ["0:8,8:16"])]
    zarrc("verify", "-q", f"--repair=from:{sound}", "--yes", *words, url, **more)
    zarrc("verify", url, **more)
    zarrc("diff", url, sound, **more)


def test_zip(zarrc, two_stores, tmp_path):
    store, sound = two_stores
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for path in sorted(p for p in store.rglob("*") if p.is_file()):
            archive.write(path, path.relative_to(store))
    shutil.copy(tmp_path / "x.zip", tmp_path / "y.zip")
    check_repairs(zarrc, tmp_path / "x.zip", sound)
    zarrc("cp", sound, tmp_path / "sound.zip")
    check_repairs(zarrc, tmp_path / "y.zip", tmp_path / "sound.zip", "--store-option=zip_update=copy")


def test_bucket(zarrc, two_stores):
    store, sound = two_stores
    with s3_server.start_service(store.parent) as server:
        env = s3_server.make_variables(server.url)
        if zarrc("info", f"s3://{s3_server.BUCKET}/sound.zarr", env=env, code=None).code == 6:
            pytest.skip("this build has no S3")
        shutil.copytree(sound, store.parent / "kept.zarr")
        shutil.copytree(store, store.parent / "y.zarr")
        for how in ("delete", f"from:s3://{s3_server.BUCKET}/kept.zarr"):  # without conditions it might overwrite a newer object
            zarrc("verify", f"--repair={how}", "--yes", "--store-option=conditional=none", f"s3://{s3_server.BUCKET}/y.zarr", code=1, env=env)
        assert files(store.parent / "y.zarr") == files(store)
        check_repairs(zarrc, f"s3://{s3_server.BUCKET}/x.zarr", store.parent / "kept.zarr", actions=("fill", "fill"), env=env)
        zarrc("verify", "--repair=delete", "--yes", f"s3://{s3_server.BUCKET}/y.zarr", env=env)
    assert files(store) == files(sound)
    filled = store.parent / "y.zarr"  # S3 has no conditional erase
    assert files(filled).keys() == files(sound).keys()
    zarrc("verify", filled)
    assert (zarr.open_group(filled, mode="r")["b"][:8, 8:] == 0).all()


def test_a_permission_is_no_damage(zarrc, two_stores):
    store, _ = two_stores
    (store / "a/c/1/1").chmod(0)
    if os.access(store / "a/c/1/1", os.R_OK):
        pytest.skip("root reads every file")
    zarrc("cat", "--skip-damaged", store / "a", code=3)
    assert [r["key"] for r in zarrc("verify", "--json", "--repair=delete", store, code=1).json["repairs"]] == ["b/c/0/1"]


def test_another_array_in_the_other_store(zarrc, two_stores, tmp_path):
    store, sound = two_stores
    shutil.copytree(sound, tmp_path / "data/kept.zarr")
    zarrc("create", "--force", sound / "a", "--shape=16,17", "-t", "int32")
    (sound / "b/c/0/1").unlink()
    before = files(store)
    done = zarrc("verify", "--json", f"--repair=from:{sound}", "--yes", store, code=1).json
    assert {r["key"]: r["done"] for r in done["repairs"]} == {"a/c/1/1": False, "b/c/0/1": False}
    assert all(r["reason"] for r in done["repairs"]) and files(store) == before
    other = tmp_path / "other.zarr"  # other chunks, or another fill value, which missing chunks of a shard have
    zarrc("import", tmp_path / "a.npy", other / "a", "-c", "4,4", "-s", "8,8", "-C", "crc32c")
    edit(other / "a/zarr.json", lambda t: t.update(fill_value=7))
    zarrc("import", tmp_path / "a.npy", other / "b", "-c", "16,3", "-C", "gzip:1")
    scaled = tmp_path / "scaled.zarr"
    shutil.copytree(tmp_path / "data/kept.zarr", scaled)
    for name, value in (("a", {"scale_factor": 0.1}), ("b", {"units": "K"})):
        edit(scaled / name / "zarr.json", lambda t: t["attributes"].update(value))
    for place in (other, scaled):
        done = zarrc("verify", "--json", f"--repair=from:{place}", "--yes", store, code=1).json
        assert all("another shape" in r["reason"] for r in done["repairs"]) and files(store) == before


def test_a_folder_with_files_stays(zarrc, two_stores):
    store, _ = two_stores
    (store / "b/c/0/1").unlink()
    (store / "b/c/0/1").mkdir()
    (store / "b/c/0/1/keep").write_text("x")
    zarrc("verify", "--repair=delete", "--yes", store, code=1)
    assert (store / "b/c/0/1/keep").read_text() == "x"
    zarrc("verify", store / "a")


def test_every_damaged_chunk_of_a_box(zarrc, tmp_path):
    """All chunks but one are damaged, in a region with steps."""
    np.save(tmp_path / "a.npy", np.arange(400, dtype="f4").reshape(20, 20))
    zarrc("import", tmp_path / "a.npy", tmp_path / "x.zarr", "-c", "2,2", "-C", "crc32c")
    for path in (tmp_path / "x.zarr/c").rglob("*"):
        if path.is_file() and path.relative_to(tmp_path / "x.zarr/c").parts != ("1", "2"):
            path.write_bytes(b"")
    done = zarrc("cat", "--json", "--skip-damaged", f"{tmp_path}/x.zarr[::3,1::2]", code=LOST)
    rows = done.json["data"]
    assert rows[1][2] == 65.0 and sum(e == "NaN" for row in rows for e in row) == 69
    assert len(done.err.splitlines()) == 69


def edit(path, change):
    text = json.loads(path.read_text())
    change(text)
    path.write_text(json.dumps(text))


@pytest.mark.parametrize("name, change", [
    ("a/zarr.json", lambda t: t.update(zarr_format=4)), ("a/zarr.json", lambda t: t.update(node_type="table")),
    ("zarr.json", lambda t: t["consolidated_metadata"].update(kind="external"))], ids=["format", "node type", "consolidated metadata"])
def test_a_newer_version_is_no_damage(zarrc, two_stores, name, change):
    store, sound = two_stores
    shutil.rmtree(store)
    zarrc("consolidate", "-q", sound)
    shutil.copytree(sound, store)
    edit(store / name, lambda t: (t["attributes"].update(long="x" * 70000), change(t)))
    before = files(store)
    for how in ("consolidated", f"from:{sound}", "delete"):
        zarrc("verify", f"--repair={how}", "--yes", store, code=1)
        assert files(store) == before


@pytest.mark.parametrize("is_missing", [False, True])
def test_metadata_of_the_other_format(zarrc, tmp_path, is_missing):
    """zarr.json beside .zarray would hide the chunks of v2."""
    store, other = tmp_path / "x.zarr", tmp_path / "other.zarr"
    for place, number in ((store, 2), (other, 3)):
        array = zarr.create_group(place, zarr_format=number).create_array("a", shape=4, chunks=2, dtype="i4")
        array[:] = 1
    if is_missing:
        (store / "a/.zarray").unlink()
    else:
        (store / "a/.zattrs").write_text("x")
    before = files(store)
    zarrc("verify", f"--repair=from:{other}", "--yes", store, code=1)
    assert files(store) == before


def repair(zarrc, store, how, code=0):
    done = zarrc("verify", "--json", f"--repair={how}", "--yes", store, code=code).json
    return [(r["key"], r["action"], r["done"]) for r in done["repairs"]]


@pytest.mark.parametrize("is_empty", [False, True])
def test_the_last_copy_of_metadata_stays(zarrc, two_stores, is_empty):
    """A folder with chunks and other files, or nothing, is reported by nothing but the consolidated metadata."""
    store, sound = two_stores
    for place in two_stores:
        zarrc("consolidate", "-q", place)
    (store / "b/README").write_text("x")
    (store / "b/zarr.json").unlink()
    if is_empty:
        shutil.rmtree(store / "b")
    assert repair(zarrc, store, "consolidated", code=1) == [("b", "restore the metadata", True)]
    assert zarrc("info", "--json", store / "b").json["shape"] == [16, 16]
    assert (store / "zarr.json").read_text() == (sound / "zarr.json").read_text()


def test_a_last_copy_that_does_not_fit_stays(zarrc, two_stores):
    """It is not restored, and consolidating again would lose it, also after other repairs."""
    store, _ = two_stores
    zarrc("create", "-q", store / "n", "--shape=4", "-t", "int32")
    zarrc("consolidate", "-q", store)
    kept = (store / "zarr.json").read_text()
    (store / "n/zarr.json").write_text("{")
    (store / "b/zarr.json").unlink()
    for path in (store / "b/c").rglob("?"):
        if path.is_file():
            path.write_bytes(b"x")
    failed = ("b", "restore the metadata", False)
    assert repair(zarrc, store, "consolidated", code=1) == [("n", "restore the metadata", True), failed]
    assert repair(zarrc, store, "consolidated", code=1) == [failed]
    assert (store / "zarr.json").read_text() == kept


def test_all_members_of_a_group_come_back(zarrc, two_stores):
    """Those of extensions, too, but no copies of metadata below it: in consolidated metadata they are empty."""
    store, sound = two_stores
    zarrc("create", "-q", "--group", sound / "g", "-a", '{"k": 1}')
    zarrc("create", "-q", sound / "g/n", "--shape=4", "-t", "int32")
    edit(sound / "g/zarr.json", lambda t: t.update(extra={"name": "x", "must_understand": False}))
    shutil.rmtree(store)
    shutil.copytree(sound, store)
    for how in ("consolidated", f"from:{sound}"):
        for place in (sound / "g", store / "g", store):
            zarrc("consolidate", "-q", place)
        (store / "g/zarr.json").write_text("{")
        assert ("g", "restore the metadata", True) in repair(zarrc, store, how)
        new, old = (json.loads((p / "g/zarr.json").read_text()) for p in two_stores)
        assert new == {k: v for k, v in old.items() if k != "consolidated_metadata"}


@pytest.mark.parametrize("is_missing", [False, True])
@pytest.mark.parametrize("name, change", [
    ("a", lambda s: (shutil.rmtree(s / "a/c"), (s / "a/zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}'))),
    ("g", lambda s: shutil.copy(s / "a/zarr.json", s / "g/zarr.json"))], ids=["group over chunks", "array over nodes"])
def test_metadata_of_another_kind_of_node(zarrc, two_stores, name, change, is_missing):
    store, sound = two_stores
    zarrc("create", "-q", "--group", sound / "g")
    zarrc("create", "-q", sound / "g/0", "--shape=4", "-t", "int32")
    shutil.rmtree(store)
    shutil.copytree(sound, store)
    change(sound)
    (store / name / "zarr.json").write_text("{")
    if is_missing:
        (store / name / "zarr.json").unlink()
    before = files(store)
    assert repair(zarrc, store, f"from:{sound}", code=0 if is_missing and name == "g" else 1) == [(name, "restore the metadata", False)]
    assert files(store) == before


def test_what_is_below_a_restored_group(zarrc, tmp_path):
    """One command repairs it, too."""
    store, sound = tmp_path / "x.zarr", tmp_path / "sound.zarr"
    array = zarr.create_group(sound).create_group("g").create_array("a", shape=4, chunks=2, dtype="i4", compressors=None)
    array[:] = 1
    shutil.copytree(sound, store)
    (store / "g/zarr.json").unlink()
    (store / "g/a/c/1").write_bytes(b"")
    plan = zarrc("verify", "--json", f"--repair=from:{sound}", store).json
    assert [r["action"] for r in plan["repairs"]] == ["restore the metadata"]
    done = zarrc("verify", "--json", f"--repair=from:{sound}", "--yes", store).json
    assert [(r["key"], r["action"]) for r in done["repairs"]] == [("g", "restore the metadata"), ("g/a/c/1", "copy")]
    assert files(store).keys() == files(sound).keys()
    zarrc("verify", store)


def test_metadata_that_does_not_fit_the_chunks(zarrc, two_stores):
    """With it, all chunks would look damaged."""
    store, sound = two_stores
    (store / "a/zarr.json").write_text("{")
    edit(sound / "a/zarr.json", lambda t: t.update(data_type="float64", fill_value=0.0))
    before = files(store)
    done = zarrc("verify", "--json", f"--repair=from:{sound}", "--yes", store / "a", code=1).json
    assert "cannot be decoded" in done["repairs"][0]["reason"] and files(store) == before


def test_chunks_outside_of_the_shape_stay(zarrc, two_stores):
    store, sound = two_stores
    for place in (store, sound):
        edit(place / "a/zarr.json", lambda t: t.update(shape=[12, 12]))
    zarrc("verify", "--repair=delete", "--yes", store / "a")
    for place in (store, sound):
        edit(place / "a/zarr.json", lambda t: t.update(shape=[16, 16]))
    now, old = (zarr.open_array(p / "a", mode="r")[...] for p in (store, sound))
    old[8:12, 8:12] = 0
    assert (now == old).all()


def test_what_is_broken_outside_of_the_shape_is_not_repaired(zarrc, tmp_path):
    """Nothing is lost by a bad entry there. The next write of the shard drops it."""
    array = zarr.create_array(tmp_path / "x.zarr", shape=(2, 4), dtype="i4", **make_shards(index_codecs=PLAIN))
    array[...] = np.arange(8).reshape(2, 4)
    shard = tmp_path / "x.zarr/c/0/0"
    shard.write_bytes(entry(3, 1 << 40, 4)(shard.read_bytes()))
    assert zarrc("cat", "--json", tmp_path / "x.zarr").json["data"] == array[...].tolist()
    done = zarrc("verify", "--json", "--repair=delete", "--yes", tmp_path / "x.zarr", code=1).json
    assert [(r["done"], "outside of its shape" in r["reason"]) for r in done["repairs"]] == [(False, True)] and done["n_faults_left"] == 1
    zarrc("import", "-q", "-", f"{tmp_path / 'x.zarr'}[0,0]", "-t", "int32", "--format=raw", input=np.int32(9).tobytes())
    zarrc("verify", tmp_path / "x.zarr")
    assert zarr.open_array(tmp_path / "x.zarr", mode="r")[...].tolist() == [[9, 1, 2, 3], [4, 5, 6, 7]]


def test_a_codec_without_nan(zarrc, tmp_path):
    array = zarr.create_array(tmp_path / "x.zarr", shape=4, chunks=2, dtype="f8", fill_value=-1, zarr_format=2, compressors=None,
                              filters=[numcodecs.AsType("<i4", "<f8")])
    array[:] = np.arange(1, 5)
    (tmp_path / "x.zarr/0").write_bytes(b"x")
    assert zarrc("cat", "--skip-damaged", tmp_path / "x.zarr", code=LOST).text.split() == ["-1.0", "-1.0", "3.0", "4.0"]


def test_a_read_error_may_be_of_the_network(zarrc, two_stores, tmp_path):
    """EIO: NFS has it after a timeout. The chunk may be sound."""
    store, _ = two_stores
    before, key = files(store), "b/c/1/1"
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    done = subprocess.run(["strace", "-f", "-o", tmp_path / "log", "-P", store / key, "-e", "inject=preadv2,pread64,read:error=EIO",
                           PROGRAM, "verify", "--json", "--repair=delete", "--yes", store / "b"], capture_output=True, text=True)
    if "ptrace" in done.stderr:
        pytest.skip("this machine permits no ptrace")
    repairs = {r["key"]: r["done"] for r in json.loads(done.stdout)["repairs"]}
    assert repairs == {"b/c/0/1": True, key: False}
    assert files(store) == {k: v for k, v in before.items() if k != "b/c/0/1"}


@pytest.mark.parametrize("words", [
    ["cat", "--lost=fill", "x"], ["cat", "--skip-damaged", "--missing-chunks=error", "x"], ["verify", "--yes", "x"],
    ["reencode", "--skip-damaged", "--missing-chunks=error", "x", "y"], ["verify", "--repair=from:", "x"], ["verify", "--repair=all", "x"]])
def test_usage(zarrc, words):
    zarrc(*words, code=2)


def test_delete_with_wrong_metadata(zarrc, tmp_path):
    """If nothing can be decoded, the metadata may be wrong: sound chunks stay."""
    z = zarr.create_array(tmp_path / "x.zarr/a", shape=(8,), chunks=(2,), dtype="i4", compressors=[zarr.codecs.ZstdCodec()])
    z[:] = np.arange(8)
    document = tmp_path / "x.zarr/a/zarr.json"
    sound, before = document.read_text(), files(tmp_path / "x.zarr/a/c")
    text = json.loads(sound)
    text["codecs"][-1] = {"name": "gzip", "configuration": {"level": 1}}
    document.write_text(json.dumps(text))
    done = zarrc("verify", "--json", "--repair=delete", "--yes", tmp_path / "x.zarr/a", code=1).json
    assert len(done["repairs"]) == 4 and all("metadata may be wrong" in r["reason"] and not r["done"] for r in done["repairs"])
    assert files(tmp_path / "x.zarr/a/c") == before
    document.write_text(sound)
    zarrc("verify", tmp_path / "x.zarr/a")
