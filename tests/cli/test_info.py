"""info, ls, tree, attrs, explain."""
import json
import os
import re
import shutil
import zipfile

import numpy as np
import pytest
import zarr


def count_files(folder):
    """Files and allocated bytes below a folder, without locks."""
    files = [p for p in folder.rglob("*") if p.is_file() and not p.name.startswith("__lock")]
    return {"files": len(files), "allocated_bytes": sum(p.stat().st_blocks * 512 for p in files)}


@pytest.fixture(params=[2, 3])
def store(request, tmp_path):
    root = zarr.open_group(tmp_path / "x.zarr", mode="w", zarr_format=request.param,
                           attributes={"title": "root"})
    group = root.create_group("model")
    temp = group.create_array("temp", shape=(10, 20), chunks=(5, 5), dtype="f4", fill_value=-1,
                              attributes={"units": "K", "nested": {"a": [1, 2, None]}})
    temp[:5, :10] = 1
    root.create_array("aux", shape=(3,), dtype="u1")
    return tmp_path / "x.zarr", request.param


def test_info_array(zarrc, store):
    path, version = store
    info = zarrc("info", "--json", "--stats", path / "model/temp").json
    assert info["kind"] == "array" and info["zarr_format"] == version
    assert info["shape"] == [10, 20] and info["chunks"] == [5, 5] and info["shards"] is None
    assert info["data_type"] == "float32" and info["item_bytes"] == 4
    assert info["fill_value"] == -1 and info["bytes"] == 800
    assert info["attributes"] == {"units": "K", "nested": {"a": [1, 2, None]}}
    assert info["stored"]["objects"] == 2 and info["stored"]["objects_possible"] == 8
    keys = [p for p in (path / "model/temp").rglob("*")
            if p.is_file() and not p.name.startswith((".z", "zarr.json"))]
    assert info["stored"]["bytes"] == sum(os.path.getsize(p) for p in keys)
    text = zarrc("info", "--stats", path / "model/temp").text
    for part in (f"Zarr v{version}", "(10, 20)", "float32", "(5, 5)", "8 of them", 'units: "K"',
                 'nested: {"a": [1, 2, null]}', "2 of 8 objects"):
        assert part in text
    assert json.loads(zarrc("info", "--metadata", path / "model/temp").out)["shape"] == [10, 20]


def test_info_sharded(zarrc, tmp_path):
    zarr.create_array(tmp_path / "a", shape=(16, 16), chunks=(2, 2), shards=(8, 8), dtype="i4")
    info = zarrc("info", "--json", tmp_path / "a").json
    assert info["chunks"] == [2, 2] and info["shards"] == [8, 8]
    text = zarrc("info", tmp_path / "a").text
    assert "sharding_indexed, index: bytes" in text and "shards       (8, 8)  4 of them" in text


def test_info_shards_decoded_whole(zarrc, tmp_path):
    """Such a shard has no inner chunks that can be read alone. Their shape is in the line of the codec."""
    zarr.create_array(tmp_path / "a", shape=(16, 16), chunks=(2, 4), shards=(8, 8), dtype="i4")
    document = json.loads((tmp_path / "a/zarr.json").read_text())
    document["codecs"].insert(0, {"name": "reshape", "configuration": {"shape": [[0], [1]]}})
    (tmp_path / "a/zarr.json").write_text(json.dumps(document))
    text = zarrc("info", tmp_path / "a").text
    assert "sharding_indexed, chunks (2, 4), index: bytes" in text and "(8, 8)" in text
    assert zarrc("info", "--json", tmp_path / "a").json["shards"] is None


def test_info_group(zarrc, store):
    path, version = store
    info = zarrc("info", "--json", path).json
    assert info["kind"] == "group" and info["attributes"] == {"title": "root"}
    assert info["children"] == [{"name": "aux", "kind": "array"}, {"name": "model", "kind": "group"}]
    assert info["consolidated"] is False
    text = zarrc("info", path).text
    assert "aux" in text and "model" in text and 'title: "root"' in text


def test_ls(zarrc, store):
    path, version = store
    assert zarrc("ls", path).text == "aux\nmodel/\n"
    assert zarrc("ls", "-R", path).text == "aux\nmodel/\nmodel/temp\n"
    assert zarrc("ls", "-R", path / "model").text == "temp\n"
    assert zarrc("ls", path / "model/temp").text == "temp\n"
    nodes = zarrc("ls", "-R", "--json", path).json["nodes"]
    assert [n["path"] for n in nodes] == ["aux", "model", "model/temp"]
    temp = nodes[-1]
    assert temp["shape"] == [10, 20] and temp["chunks"] == [5, 5] and temp["depth"] == 2
    assert temp["data_type"] == ("float32" if version == 3 else "<f4")
    assert "[10, 20] in [5, 5]" in zarrc("ls", "-lR", path).text


def test_broken_node_is_shown(zarrc, store):
    path, version = store
    (path / "model/temp" / ("zarr.json" if version == 3 else ".zarray")).write_text("{")
    nodes = zarrc("ls", "-R", "--json", path).json["nodes"]
    assert nodes[-1]["kind"] == "broken"
    assert "(broken)" in zarrc("tree", path).text
    zarrc("info", path / "model/temp", code=4)


def test_tree(zarrc, store):
    path, _ = store
    lines = zarrc("tree", path).text.splitlines()
    assert lines[1].startswith("├── aux") and lines[2] == "└── model/"
    assert lines[3].startswith("    └── temp")
    zarrc("tree", "--ascii", path).text.encode("ascii")


def test_attrs(zarrc, store):
    path, _ = store
    node = path / "model/temp"
    assert zarrc("attrs", node).text == 'units: "K"\nnested: {"a": [1, 2, null]}\n'
    assert zarrc("attrs", "list", "--json", node).json["attributes"]["units"] == "K"
    assert zarrc("attrs", "get", node, "units").text == '"K"\n'
    assert zarrc("attrs", "get", "--text", node, "units").text == "K\n"
    assert zarrc("attrs", "get", "--json", node, "nested").json["value"] == {"a": [1, 2, None]}
    zarrc("attrs", "set", node, "range", "[0, 1.5]")
    zarrc("attrs", "set", "--text", node, "name", 'ä "quoted"')
    assert dict(zarr.open_array(node).attrs) == {
        "units": "K", "nested": {"a": [1, 2, None]}, "range": [0, 1.5], "name": 'ä "quoted"'}
    zarrc("attrs", "del", node, "units", "range")
    assert set(zarr.open_array(node).attrs) == {"nested", "name"}
    zarrc("attrs", "merge", node, '{"name": null, "x": 1}')
    assert dict(zarr.open_array(node).attrs)["x"] == 1
    zarrc("attrs", "merge", "--replace", node, "-", input=b'{"only": true}')
    assert dict(zarr.open_array(node).attrs) == {"only": True}


def test_attrs_of_group(zarrc, store):
    path, _ = store
    done = zarrc("attrs", "set", "--json", path, "n", "3").json
    assert done["attributes"] == {"title": "root", "n": 3}
    assert dict(zarr.open_group(path).attrs) == {"title": "root", "n": 3}
    zarrc("attrs", "del", path, "title")
    assert dict(zarr.open_group(path).attrs) == {"n": 3}


def test_attrs_errors(zarrc, store):
    path, _ = store
    before = dict(zarr.open_group(path).attrs)
    assert "--text" in zarrc("attrs", "set", path, "a", "word", code=2).err
    assert 'Did you mean "title"?' in zarrc("attrs", "get", path, "titlee", code=3).err
    zarrc("attrs", "del", path, "nothing", code=3)
    zarrc("attrs", "merge", path, "[1]", code=2)
    zarrc("attrs", "merge", path, "@/nonexistent", code=3)
    assert "did you mean list" in zarrc("attrs", "lst", path, code=2).err
    assert "wrong number of operands" in zarrc("attrs", "set", path, "a", code=2).err
    assert dict(zarr.open_group(path).attrs) == before


def crc(index=False):
    return {"kind": "codec", **({"of_index": True} if index else {}), "level": 0, "from_device": 1,
            "to_device": 1, "codec": "crc32c", "implementations": ["cpu.zarrc"]}


def codec(name, implementation, level=0):
    return {"kind": "codec", "level": level, "from_device": 1, "to_device": 1, "codec": name,
            "implementations": [implementation]}


SWAP = {"kind": "swap", "level": 0, "from_device": 1, "to_device": 1, "swap_bytes": 4}
INDEX = {"kind": "index", "of_index": True, "level": 0, "from_device": 1, "to_device": 1, "index_chunks": 4}


def tensor(level=0):
    return {"kind": "tensor", "level": level, "from_device": 1, "to_device": 1}


@pytest.mark.parametrize("options, text, read, write, copy, copies", [
    (["-t", "i4", "--chunks=4", "--codec=none"], "host -> host -> local",
     [tensor()], [tensor()], "direct", "from the tensor where a chunk is contiguous"),
    (["-t", "i4", "--chunks=4", "--codec=bytes:big", "--codec=crc32c"],
     "host -> swap 4 -> crc32c@cpu.zarrc -> host -> local",
     [crc(), SWAP, tensor()], [tensor(), SWAP, crc()], "strided", "byte swap"),
    (["-t", "i4", "--chunks=4", "--codec=bytes:big"], "host -> swap 4 -> host -> local",
     [SWAP, tensor()], [tensor(), SWAP], "strided", "byte swap"),
    (["-t", "i4", "--chunks=2", "--shards=8", "--codec=zstd:3"],
     "host -> zstd@cpu.libzstd -> shard index of 4 chunks (crc32c@cpu.zarrc) -> host -> local",
     [INDEX, crc(True), codec("zstd", "cpu.libzstd", 1), tensor(1)],
     [tensor(1), codec("zstd", "cpu.libzstd", 1), INDEX, crc(True)], "direct",
     "from the tensor where a chunk is contiguous"),
    (["-t", "string", "--chunks=4", "--codec=zstd:3"],
     "host -> vlen-utf8@cpu.zarrc -> zstd@cpu.libzstd -> host -> local",
     [codec("zstd", "cpu.libzstd"), codec("vlen-utf8", "cpu.zarrc"), tensor()],
     [tensor(), codec("vlen-utf8", "cpu.zarrc"), codec("zstd", "cpu.libzstd")], "direct",
     "from the tensor where a chunk is contiguous"),
])
def test_explain_ways(zarrc, tmp_path, options, text, read, write, copy, copies):
    """Reads and writes have different steps."""
    zarrc("create", "x.zarr", "--shape=16", *options, cwd=tmp_path)
    plan = zarrc("explain", "--json", "x.zarr", cwd=tmp_path).json
    assert plan["steps"] == [{"kind": "store", "level": 0, "to_device": 1}, *read]
    plan = zarrc("explain", "--json", "--write", "x.zarr", cwd=tmp_path).json
    assert plan["steps"] == [*write, {"kind": "store", "level": 0, "from_device": 1}]
    assert plan["copy"] == copy and plan["elements"] == 16 and plan["device_type"] == 1
    shown = zarrc("explain", "--write", "x.zarr", cwd=tmp_path).text
    assert text in shown and copies in shown and "to store local" in shown


def test_explain(zarrc, store):
    path, _ = store
    plan = zarrc("explain", "--json", f"{path}/model/temp[0:5]").json
    assert plan["operation"] == "read"
    assert "chunks" in zarrc("explain", f"{path}/model/temp").text
    assert zarrc("explain", "--json", "--write", f"{path}/model/temp[0:7]").json["operation"] == "write"


def test_every_command_speaks_json(zarrc, store):
    path, _ = store
    for arguments in (["info", path], ["ls", path], ["tree", path], ["cat", path / "aux"],
                      ["attrs", path], ["explain", path / "aux"], ["list"], ["version"], ["help"],
                      ["completion", "bash"], ["create", path / "new", "--shape=1", "--dtype=i1"],
                      ["export", path / "aux", path.parent / "aux.npy"],
                      ["import", path.parent / "aux.npy", path / "again"]):
        assert isinstance(zarrc(*arguments, "--json").json, dict), arguments


def test_strange_names(zarrc, tmp_path):
    root = zarr.open_group(tmp_path / "x.zarr", mode="w")
    for name in ("ä", "with space", "quote'\"", "漢字"):
        root.create_array(name, shape=(2,), dtype="i1")
    names = [n["name"] for n in zarrc("ls", "--json", tmp_path / "x.zarr").json["nodes"]]
    assert sorted(names) == sorted(["ä", "with space", "quote'\"", "漢字"])
    for name in names:
        assert zarrc("cat", tmp_path / "x.zarr" / name).text == "0\n0\n"


def test_nested_dtype_object_in_ls(zarrc, tmp_path):
    zarr.create_array(tmp_path / "x.zarr/t", shape=(2,), dtype="M8[ms]")
    row = zarrc("ls", "--json", tmp_path / "x.zarr/t").json["nodes"][0]
    assert row["data_type"] == "numpy.datetime64"
    assert np.prod(row["shape"]) == 2


def test_counts_that_no_number_holds(zarrc, tmp_path):
    big = str(2 ** 40)
    zarrc("create", "x.zarr", f"--shape={big},{big}", "-t", "i4", "--chunks=2,2", cwd=tmp_path)
    text = zarrc("info", "--stats", "x.zarr", cwd=tmp_path).text
    assert text.count("more than 2^64") == 3 and str(2 ** 64 - 1) not in text
    info = zarrc("info", "--stats", "--json", "x.zarr", cwd=tmp_path).json
    assert info["bytes"] is None and info["stored"]["objects_possible"] is None
    for way in [[], ["--write"]]:
        text = zarrc("explain", *way, "x.zarr", cwd=tmp_path).text
        assert text.count("more than 2^64") >= 3 and str(2 ** 64 - 1) not in text
        plan = zarrc("explain", "--json", *way, "x.zarr", cwd=tmp_path).json
        assert plan["blocks"] is None and plan["chunks"] is None and plan["waves"] is None


def test_hint_at_zarrc_list(zarrc, tmp_path):
    """An "unsupported" error names `zarrc list` only if another build could help."""
    zarrc("create", "t.zarr/s", "--zarr-format=2", "--shape=2", "-t", '[["a","<i4"],["b",">i4"]]',
          cwd=tmp_path)
    err = zarrc("migrate", "t.zarr", "--zarr-format=3", code=6, cwd=tmp_path).err
    assert "differ in byte order" in err and "zarrc list" not in err
    zarrc("create", "t.zarr/b", "--shape=4", "-t", "u1", "--codec=blosc:lz4", cwd=tmp_path)
    (tmp_path / "t.zarr/b/c").mkdir()
    (tmp_path / "t.zarr/b/c/0").write_bytes(b"\x05" + bytes(40))
    err = zarrc("cat", "t.zarr/b", code=6, cwd=tmp_path).err
    assert "Blosc 2" in err and "zarrc list" not in err
    err = zarrc("create", "t.zarr/n", "--shape=4", "-t", "u1", "--codec=nonsense", code=6,
                cwd=tmp_path).err
    assert "zarrc list" in err


# ---- several nodes, and sums

def test_several_nodes(zarrc, tmp_path):
    top = zarr.create_group(str(tmp_path / "x.zarr"))
    top.create_array("a", shape=(4,), chunks=(2,), dtype="i4")[:] = np.arange(4)
    top.create_array("g/b", shape=(6,), chunks=(2,), dtype="i2")
    a, g = tmp_path / "x.zarr/a", tmp_path / "x.zarr/g"
    both = zarrc("info", a, g).text
    assert both == zarrc("info", a).text + "\n" + zarrc("info", g).text
    found = zarrc("info", "--json", a, g).json
    assert found == [zarrc("info", "--json", a).json, zarrc("info", "--json", g).json]
    assert zarrc("ls", tmp_path / "x.zarr", g).text.split("\n")[1:3] == ["a", "g/"]
    assert [len(l["nodes"]) for l in zarrc("ls", "--json", tmp_path / "x.zarr", g, a).json] == [2, 1, 1]
    # a node that is missing does not keep the others from being shown
    done = zarrc("info", "--json", a, tmp_path / "x.zarr/none", g, code=3)
    assert [n["path"] for n in done.json] == ["a", "g"] and "none" in done.err
    assert zarrc("verify", "--json", a, tmp_path / "x.zarr/none", g, code=3).json[1]["arrays"] == 1
    (a / "c/0").write_bytes(b"damaged")
    done = zarrc("verify", "--json", g, a, g, code=1).json
    assert [n["valid"] for n in done] == [True, False, True]


def test_stats_of_groups(zarrc, tmp_path):
    top = zarr.create_group(str(tmp_path / "x.zarr"))
    top.create_array("a", shape=(4,), chunks=(2,), dtype="i4", compressors=None)[:] = np.arange(4)
    top.create_array("g/b", shape=(6,), chunks=(2,), dtype="i2", compressors=None)[:2] = 7
    stored = zarrc("info", "--json", "--stats", tmp_path / "x.zarr").json["stored"]
    assert stored == {"arrays": 2, "groups": 2, "broken": 0, "faults": [], "objects": 3, "objects_possible": 5,
                      "bytes": 20, "decoded_bytes": 28, **count_files(tmp_path / "x.zarr")}
    text = zarrc("info", "--stats", tmp_path / "x.zarr").text
    assert "2 arrays, 1 group\n" in text and "20 B in 3 objects, of 28 B decoded" in text
    assert "stored" not in zarrc("info", tmp_path / "x.zarr").text


def test_stats_of_archives(zarrc, tmp_path):
    """Dead bytes are those of replaced members, and those between members."""
    top = zarr.create_group(str(tmp_path / "x.zarr"))
    top.create_array("a", shape=(4,), chunks=(4,), dtype="u1", compressors=None)[:] = 7
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted((tmp_path / "x.zarr").rglob("*")):
            archive.write(file, file.relative_to(tmp_path / "x.zarr"))
    assert "dead" not in zarrc("info", "--json", "--stats", path).json
    assert "dead" not in zarrc("info", "--stats", path).text
    extractor = tmp_path / "run.zip"
    extractor.write_bytes(b"#!/bin/sh\n" * 9)
    with zipfile.ZipFile(extractor, "a") as archive:  # offsets count the bytes in front of it
        for file in sorted((tmp_path / "x.zarr").rglob("*")):
            archive.write(file, file.relative_to(tmp_path / "x.zarr"))
    assert "dead" not in zarrc("info", "--json", "--stats", extractor).json
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("a/c/0", bytes([1, 2, 3, 4]))
    for node in (path, f"{path}/a"):
        dead = zarrc("info", "--json", "--stats", node).json["dead"]
        assert dead == {"values": 1, "bytes": 30 + len("a/c/0") + 4}
    assert "39 B of the archive, with 1 replaced or erased value\n" in zarrc("info", "--stats", path).text
    assert zarrc("cat", f"{path}/a").text.split() == ["1", "2", "3", "4"]


def test_stats_name_broken_nodes(zarrc, tmp_path):
    """Each node that cannot be counted is named, the others count, and the exit code is that of verify."""
    path = tmp_path / "x.zarr"
    top = zarr.create_group(str(path))
    for name in ("a", "b", "c", "d"):
        top.create_array(name, shape=(4,), chunks=(2,), dtype="i4", compressors=None)[:] = 1
    (path / "b/zarr.json").write_text("{")
    (path / "c/zarr.json").write_text((path / "c/zarr.json").read_text().replace("int32", "int33"))
    shutil.rmtree(path / "d/c")
    (path / "d/c").write_bytes(b"")  # hides all chunks
    done = zarrc("info", "--json", "--stats", path, code=1)
    stored = done.json["stored"]
    assert [(f["node"], f["code"]) for f in stored["faults"]] == [("b", "corrupt"), ("c", "unsupported"), ("d", "io")]
    assert (stored["broken"], stored["arrays"], stored["objects"], stored["bytes"]) == (3, 1, 2, 16)
    assert all(f["reason"].startswith(f"/{f['node']}: ") for f in stored["faults"])
    text = zarrc("info", "--stats", path, code=1).text
    assert text.count("  broken       /") == 3 and "1 array, 0 groups, and broken nodes:" in text
    zarrc("verify", path, code=1)


def test_stats_above_the_limits(zarrc, tmp_path):
    path = tmp_path / "x.zarr"
    zarr.create_group(str(path)).create_array("a", shape=(4,), dtype="f8", attributes={"text": "x" * 5000})
    for command in (["verify"], ["info", "--stats"]):
        zarrc(*command, "--limit=metadata_bytes=2K", path, code=4)
    assert zarrc("info", "--json", "--stats", "--limit=metadata_bytes=2K", path, code=4).json["stored"]["faults"][0]["code"] == "limit"


@pytest.mark.parametrize("codec", ["json2", "msgpack2"])
def test_json_has_no_bare_numbers(zarrc, tmp_path, codec):
    """A fill value of these codecs may be a bare NaN, and attributes of other programs too. JSON has no such numbers."""
    def strict(text):
        return json.loads(text, parse_constant=lambda word: pytest.fail(f"a bare {word}"))
    document = {"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "|O", "compressor": None, "fill_value": float("nan"), "order": "C",
                "filters": [{"id": codec}]}
    (tmp_path / "document.json").write_text(json.dumps(document))
    made = zarrc("create", "--json", f"--document={tmp_path}/document.json", tmp_path / "x.zarr/a")
    assert strict(made.out)["metadata"]["fill_value"] == "NaN"
    attributes = '{"k": [NaN, -Infinity, Infinity, "NaN"], "NaN": NaN}'
    (tmp_path / "x.zarr/a/.zattrs").write_text(attributes)
    info = strict(zarrc("info", "--json", tmp_path / "x.zarr/a").out)
    assert info["metadata"]["fill_value"] == "NaN"
    assert info["attributes"] == {"k": ["NaN", "-Infinity", "Infinity", "NaN"], "NaN": "NaN"}
    assert strict(zarrc("attrs", "get", "--json", tmp_path / "x.zarr/a", "k").out)["value"] == info["attributes"]["k"]
    assert "NaN" in (tmp_path / "x.zarr/a/.zarray").read_text() and (tmp_path / "x.zarr/a/.zattrs").read_text() == attributes
    # the exception of the manual: the string would be another value
    zarrc("consolidate", tmp_path / "x.zarr")
    entries = (tmp_path / "x.zarr/.zmetadata").read_text()
    assert json.loads(entries)["metadata"]["a/.zarray"]["fill_value"] != "NaN"
    assert json.loads(entries)["metadata"]["a/.zattrs"] == info["attributes"]


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("command", ["info", "ls", "verify"])
def test_what_a_shell_expands(zarrc, tmp_path, command, zarr_format):
    """x.zarr/* has files of the group, and x.zarr/a/* only what is part of the array."""
    store = tmp_path / "x.zarr"
    form = f"--zarr-format={zarr_format}"
    zarrc("create", "--group", form, store)
    zarrc("create", form, store / "a", "--shape=4", "--chunks=2", "--dtype=int8")
    zarrc("create", "--group", form, store / "g")
    zarrc("import", "--format=json", "-", f"{store}/a[...]", input=b"[1, 2, 3, 4]")
    (store / "notes.txt").write_text("not Zarr")
    (store / "folder").mkdir()
    names = sorted(store / name for name in os.listdir(store) if name != "folder")
    done = zarrc(command, *names)
    for name in names:
        assert (f"{name} is part of {store}, not a node: skipped" in done.err) == name.is_file()
    assert len(zarrc(command, "--json", *names).json) == 2
    assert "skipped" not in zarrc(command, "-q", *names).err
    assert "no Zarr array or group" in zarrc(command, *names, store / "folder", code=3).err
    inside = [store / "a" / name for name in os.listdir(store / "a")]
    assert "no operand is an array or a group" in zarrc(command, *inside, code=3).err
    for part in (names[-1], *inside):
        assert "is part of" in zarrc(command, part, code=3).err


def test_files_of_a_node_and_of_members(zarrc, store):
    path, _ = store
    wanted = count_files(path / "model/temp")
    assert wanted["files"] > 2 and wanted["allocated_bytes"] > 0
    stored = zarrc("info", "--json", "--stats", path / "model/temp").json["stored"]
    assert {name: stored[name] for name in wanted} == wanted
    assert f"{wanted['files']} files, " in zarrc("info", "--stats", path / "model/temp").text
    for place in (path, path / "model"):
        info = zarrc("info", "--json", "--stats", place).json
        assert {name: info["stored"][name] for name in wanted} == count_files(place)
        for child in info["children"]:
            assert {name: child[name] for name in wanted} == count_files(place / child["name"])
    text = zarrc("info", "--stats", path).text
    assert re.search(r"model  \d+ files, .* allocated\n", text) and re.search(r"holds +\d+ files, ", text)
    assert "files" not in zarrc("info", "--json", path).json["children"][0]


def test_files_of_other_stores(zarrc, store, tmp_path):
    """Members of an archive are counted, and have no bytes of their own on a disk."""
    path, _ = store
    zarrc("cp", path, tmp_path / "x.zarr.zip")
    for place, wanted in ((tmp_path / "x.zarr.zip", path), (tmp_path / "x.zarr.zip/model/temp", path / "model/temp")):
        stored = zarrc("info", "--json", "--stats", place).json["stored"]
        assert stored["files"] == count_files(wanted)["files"] and stored["allocated_bytes"] is None
        assert "allocated" not in zarrc("info", "--stats", place).text


def test_members_with_names_that_begin_alike(zarrc, tmp_path):
    root = zarr.create_group(tmp_path / "x.zarr")
    for name, n in (("a", 1), ("ab", 3), ("abc", 2), ("b", 0)):
        root.create_array(name, shape=(4,), chunks=(1,), dtype="u1")[:n] = 1
    info = zarrc("info", "--json", "--stats", tmp_path / "x.zarr").json
    assert {child["name"]: child["files"] for child in info["children"]} == {"a": 2, "ab": 4, "abc": 3, "b": 1}
