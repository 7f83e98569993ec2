"""Arrays of optional types: created, filled with raw items, printed and compared."""
import json
import struct

import pytest


def document(path):
    return json.loads((path / "zarr.json").read_text())


def raw(items):
    return b"".join(struct.pack("<hB", v or 0, v is not None) for v in items)


@pytest.mark.parametrize("name", ["optional", "zarrs.optional"])
def test_create(zarrc, tmp_path, name):
    zarrc("create", tmp_path / "x", "--shape=4,4", "--chunks=2,2", f"--dtype={name}[{name}[int16]]", "--fill=[null]")
    doc = document(tmp_path / "x")
    inner = {"name": name, "configuration": {"name": "int16", "configuration": {}}}
    assert doc["data_type"] == {"name": name, "configuration": inner}
    assert doc["fill_value"] == [None]
    codec = doc["codecs"][0]
    assert codec["name"] == name and codec["configuration"]["data_codecs"][0]["name"] == name
    assert zarrc("cat", "--format=elements", tmp_path / "x").text.split() == ["[null]"] * 16
    info = zarrc("--json", "info", tmp_path / "x").json
    assert json.dumps(inner) in json.dumps(info)


@pytest.mark.parametrize("extra", [[], ["--shards=4,4"], ["--codec=none"]])
def test_import(zarrc, tmp_path, extra):
    items = [None if i % 3 == 1 else i * 7 - 20 for i in range(20)]
    zarrc("create", tmp_path / "x", "--shape=4,5", "--chunks=2,2", "--dtype=optional[int16]", "--fill=null",
          *[e for e in extra if e != "--shards=4,4"], *[e.replace("4,4", "4,6") for e in extra if "shards" in e])
    (tmp_path / "d.raw").write_bytes(raw(items))
    zarrc("import", "--force", "--dtype=optional[int16]", "--shape=4,5", tmp_path / "d.raw", tmp_path / "x")
    shown = zarrc("cat", "--format=elements", tmp_path / "x").text.split()
    assert shown == ["null" if v is None else f"[{v}]" for v in items]
    assert zarrc("cat", "--format=raw", tmp_path / "x").out == raw(items)
    zarrc("cp", tmp_path / "x", tmp_path / "y")
    zarrc("diff", tmp_path / "x", tmp_path / "y")
    (tmp_path / "e.raw").write_bytes(raw([None if v == 1 else v for v in items]))
    zarrc("import", "--force", "--dtype=optional[int16]", "--shape=4,5", tmp_path / "e.raw", tmp_path / "y")
    assert "null" in zarrc("diff", tmp_path / "x", tmp_path / "y", code=1).text


def test_refused(zarrc, tmp_path):
    make = ["create", tmp_path / "x", "--shape=4"]
    assert "null or a list of one value" in zarrc(*make, "--dtype=optional[int16]", "--fill=5", code=2).err
    assert "optional" in zarrc(*make, "--dtype=optional", code=2).err
    assert "nested" in zarrc(*make, "--dtype=" + "optional[" * 20 + "int8" + "]" * 20, code=None).err
    assert not (tmp_path / "x").exists()


def test_text(zarrc, tmp_path):
    """cat and reencode read optional text. Raw files cannot contain it."""
    zarrc("create", tmp_path / "x", "--shape=5", "--chunks=2", "--dtype=optional[string]", '--fill=["a b"]')
    doc = document(tmp_path / "x")
    assert doc["codecs"][0]["configuration"]["data_codecs"] == [{"name": "vlen-utf8"}]
    # The chunk of [null, "hi"], written by hand. It has no compressor.
    doc["codecs"] = doc["codecs"][:1]
    (tmp_path / "x/zarr.json").write_text(json.dumps(doc))
    data = struct.pack("<II", 1, 2) + b"hi"
    (tmp_path / "x/c").mkdir()
    (tmp_path / "x/c/1").write_bytes(struct.pack("<QQ", 1, len(data)) + b"\2" + data)
    want = [["a b"], ["a b"], None, ["hi"], ["a b"]]
    assert [json.loads(v) for v in zarrc("cat", "--format=elements", tmp_path / "x").text.splitlines()] == want
    assert zarrc("cat", "--format=json", tmp_path / "x").json == want
    assert "null" in zarrc("cat", "--format=text", tmp_path / "x").text
    zarrc("reencode", tmp_path / "x", tmp_path / "y", "--chunks=5", "--codec=zstd:3", "--verify")
    assert zarrc("cat", "--format=json", tmp_path / "y").json == want
    zarrc("diff", tmp_path / "x", tmp_path / "y", code=None)
    assert zarrc("cat", "--format=raw", tmp_path / "x", code=6).err
    assert zarrc("reencode", tmp_path / "x", tmp_path / "two", "--zarr-format=2", code=None).code not in (0, -11)


@pytest.mark.parametrize("kind,items", [
    ("optional[int16]", [[5], None, [7]]), ("optional[int16]", [None, [5]]), ("optional[int16]", [[[5], None], [None, [6]]]),
    ("optional[complex64]", [[[1.5, 2.0]], None]), ("optional[string]", [["a"], None, [""]]),
    ("optional[optional[int16]]", [[[5]], None, [None]]),
])
def test_json(zarrc, tmp_path, kind, items):
    (tmp_path / "d.json").write_text(json.dumps(items))
    zarrc("import", f"--dtype={kind}", "--format=json", tmp_path / "d.json", tmp_path / "x")
    assert zarrc("cat", "--format=json", tmp_path / "x").json == items


@pytest.mark.parametrize("dtype, values", [("optional[int16]", "[[5], null, [4], null]"),
                                           ("optional[optional[float32]]", "[[[5.0]], null, [[4.0]], [null]]")])
def test_plot(zarrc, tmp_path, dtype, values):
    """Missing elements are drawn like NaN."""
    zarrc("import", "--format=json", "--dtype", dtype, "-", tmp_path / "x", input=values.encode())
    drawn = zarrc("plot", "--json", "-o", tmp_path / "x.png", tmp_path / "x").json
    assert (drawn["min"], drawn["max"], drawn["missing"]) == (4, 5, 2)
    zarrc("create", "--shape=3", "--dtype=optional[string]", tmp_path / "s")
    zarrc("plot", "-o", tmp_path / "s.png", tmp_path / "s", code=6)
