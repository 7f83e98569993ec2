"""zarrc diff: exit code 0 if equal, 1 if different, another code if the comparison fails."""
import json

import numpy as np
import pytest
import zarr


def make(path, values, **options):
    array = zarr.create_array(str(path), shape=values.shape, dtype=values.dtype, overwrite=True,
                              **options)
    array[...] = values
    return path


@pytest.fixture
def pair(tmp_path):
    def build(a, b, **options):
        return (make(tmp_path / "a.zarr", np.asarray(a), chunks=np.shape(a) or "auto"),
                make(tmp_path / "b.zarr", np.asarray(b), **options))
    return build


def test_equal_in_other_chunks(zarrc, tmp_path, rng):
    values = rng.random((50, 60))
    a = make(tmp_path / "a.zarr", values, chunks=(10, 10))
    b = make(tmp_path / "b.zarr", values, chunks=(7, 30), shards=(14, 60), dimension_names=None)
    done = zarrc("diff", a, b)
    assert done.out == b"" and done.err == ""
    printed = zarrc("diff", "--storage", a, b, code=1).text
    assert "chunks: (10, 10) | (7, 30)" in printed
    assert zarrc("diff", "--json", a, b).json["equal"] is True


def test_elements(zarrc, pair):
    a = np.arange(20.0).reshape(4, 5)
    b = a.copy()
    b[1, 2] += 0.5
    b[3, 4] -= 2
    a, b = pair(a, b)
    printed = zarrc("diff", a, b, code=1).text
    assert "  [1, 2]: 7.0 | 7.5\n" in printed
    assert "  2 of 20 elements differ, by 2 at most, at (3, 4)\n" in printed
    node = zarrc("diff", "--json", a, b, code=1).json["nodes"][0]
    assert node["elements"][1] == {"index": [3, 4], "a": 19.0, "b": 17.0}
    assert node["elements_different"] == 2 and node["largest_difference"] == 2
    assert zarrc("diff", "-q", a, b, code=1).out == b""
    assert zarrc("diff", "--show=1", a, b, code=1).text.count("[") == 1
    assert zarrc("diff", "--show=0", a, b, code=1).text.count("[") == zarrc("diff", "-N9999", a, b, code=1).text.count("[") > 1
    zarrc("diff", "--atol=2", a, b)
    zarrc("diff", "--atol=1.9", a, b, code=1)
    zarrc("diff", "--rtol=0.2", a, b)
    zarrc("diff", "--rtol=-1", a, b, code=2)


def test_one_type_by_two_names(zarrc, tmp_path):
    """v2 has one name for raw bytes and v3 has two, of which new arrays get one. The elements are the same."""
    values = np.array([b"abc", b"\0\0\0", b"\xff\0\1"], "V3")
    a = make(tmp_path / "a.zarr", values, fill_value=np.void(b"\1\2\3"))
    zarrc("reencode", "--zarr-format=2", a, tmp_path / "b.zarr")
    zarrc("create", "--shape=3", "--chunks=3", "-t", "r24", "--fill=[1,2,3]", "--codec=zstd", tmp_path / "c.zarr")
    zarrc("import", "--format=elements", "-", f"{tmp_path}/c.zarr[...]", input=b'"YWJj"\n"AAAA"\n"/wAB"')
    b, c = tmp_path / "b.zarr", tmp_path / "c.zarr"
    assert zarrc("diff", a, b).out == zarrc("diff", a, c).out == b""
    assert "data type: raw_bytes[3] | r24" in zarrc("diff", "--storage", a, c, code=1).text
    zarrc("import", "--format=elements", "-", f"{c}[:1]", input=b'"AAAA"')
    assert "fill value" not in zarrc("diff", a, c, code=1).text
    zarrc("create", "--force", "--like", c, "--fill=[1,2,4]", b)
    assert 'fill value: "AQID" | "AQIE"' in zarrc("diff", a, b, code=1).text


@pytest.mark.parametrize("dtype", [
    "<f4", "<U3", "|S3", ">M8[s]", "<m8", [["a", "<i2"], ["t", "<M8[D]", [2]],
                                          ["in", [["u", "|u1"], ["d", "<m8[s]"]]]]])
def test_null_is_the_default(zarrc, tmp_path, dtype):
    a, b = tmp_path / "a.zarr", tmp_path / "b.zarr"
    zarrc("create", "--zarr-format=2", "--shape=3", "-t", dtype if isinstance(dtype, str) else
          json.dumps(dtype), a)
    zarrc("create", "--like", a, b)
    document = json.loads((a / ".zarray").read_text())
    (a / ".zarray").write_text(json.dumps({**document, "fill_value": None}))
    assert zarrc("diff", a, b).out == b""
    assert zarrc("cat", a).out == zarrc("cat", b).out


@pytest.mark.parametrize("a, b, options, code", [
    ([np.nan, 1], [np.nan, 1], [], 0),
    ([np.nan, 1], [np.nan, 1], ["--nan-differs"], 1),
    ([np.nan, 1], [2, 1], ["--atol=9"], 1),
    ([np.inf, 1], [np.inf, 1], ["--atol=0"], 0),
    ([np.inf, 1], [-np.inf, 1], ["--atol=9"], 1),
    ([0.0], [-0.0], [], 1),
    ([0.0], [-0.0], ["--atol=0"], 0),
    ([1 + 2j], [1 + 2.5j], ["--atol=0.5"], 0),
    ([1 + 2j], [1 + 2.5j], [], 1),
])
def test_special(zarrc, pair, a, b, options, code):
    zarrc("diff", *options, *pair(np.array(a), np.array(b)), code=code)


def test_big_integers_are_exact(zarrc, pair):
    a = np.array([2**63 - 1, -2**63, 5], "i8")
    zarrc("diff", "--atol=0.5", *pair(a, a - np.array([1, 0, 0])), code=1)
    printed = zarrc("diff", *pair(a, a - np.array([1, 0, 0])), code=1).text
    assert "9223372036854775807 | 9223372036854775806" in printed
    u = np.array([2**64 - 1], "u8")
    printed = zarrc("diff", *pair(u, u - np.uint64(1)), code=1).text
    assert "by 1 at most" in printed


@pytest.mark.parametrize("dtype", ["b1", "i1", "u2", "f2", "f4", "M8[s]", "U2", "S3"])
def test_types(zarrc, tmp_path, dtype):
    a = np.array([0, 1, 0, 1]).astype("i8").astype(dtype)
    b = a.copy()
    b[2] = a[1]
    for name, values in (("a", a), ("b", b)):
        make(tmp_path / f"{name}.zarr", values, zarr_format=2)
    zarrc("diff", tmp_path / "a.zarr", tmp_path / "a.zarr")
    assert "1 of 4 elements differ" in zarrc("diff", tmp_path / "a.zarr", tmp_path / "b.zarr",
                                             code=1).text


def test_properties(zarrc, tmp_path):
    values = np.arange(6.0)
    a = make(tmp_path / "a.zarr", values, attributes={"u": "m", "same": 1, "gone": 1})
    b = make(tmp_path / "b.zarr", values, attributes={"u": "km", "same": 1, "new": []},
             fill_value=3, dimension_names=["x"])
    printed = zarrc("diff", a, b, code=1).text
    for line in ('attribute u: "m" | "km"', "attribute gone: 1 | (none)",
                 "attribute new: (none) | []", "fill value: 0.0 | 3.0",
                 "name of dimension 0: (none) | x"):
        assert f"  {line}\n" in printed, printed
    assert "same" not in printed
    zarrc("diff", "--data", a, b)
    c = make(tmp_path / "c.zarr", values.astype("f4"))
    assert "data type: float64 | float32" in zarrc("diff", a, c, code=1).text
    d = make(tmp_path / "d.zarr", values[:5])
    assert "shape: (6,) | (5,)" in zarrc("diff", a, d, code=1).text
    zarrc("diff", f"{a}[1:3]", f"{d}[1:3]", "--data")
    zarrc("diff", f"{a}[1:3]", f"{d}[2:4]", "--data", code=1)


def test_groups(zarrc, tmp_path):
    for name in "ab":
        top = zarr.create_group(str(tmp_path / f"{name}.zarr"), attributes={"v": 1})
        top.create_array("same", shape=(3,), dtype="i4")[:] = 1
        top.create_array("other", shape=(3,), dtype="i4")[:] = [1, 2, ord(name)]
        top.create_group(f"only-{name}")
        top.create_group("same-group")
    top.create_group("kind")
    zarr.open_group(str(tmp_path / "a.zarr")).create_array("kind", shape=(1,), dtype="i1")
    printed = zarrc("diff", tmp_path / "a.zarr", tmp_path / "b.zarr", code=1).text
    assert "a.zarr:/only-a\n" in printed and "b.zarr:/only-b\n" in printed
    assert "kind: array | group" in printed and "[2]: 97 | 98" in printed and "same" not in printed
    done = zarrc("diff", "--json", tmp_path / "a.zarr", tmp_path / "b.zarr", code=1).json
    assert done["nodes_different"] == 4
    assert {"path": "only-b", "only_in": "b"} in done["nodes"]
    zarrc("diff", tmp_path / "a.zarr", tmp_path / "a.zarr")


def test_v2_and_v3_are_equal(zarrc, tmp_path, rng):
    values = rng.integers(0, 9, (20, 20))
    a = make(tmp_path / "a.zarr", values, zarr_format=2, order="F")
    b = make(tmp_path / "b.zarr", values, dimension_names=None)
    zarrc("diff", a, b)
    assert "format: 2 | 3" in zarrc("diff", "--storage", a, b, code=1).text


def test_memory_is_bounded(zarrc, tmp_path, rng):
    values = rng.integers(0, 9, (3000, 700))
    a = make(tmp_path / "a.zarr", values, chunks=(100, 700))
    values[2999, 699] += 1
    b = make(tmp_path / "b.zarr", values, chunks=(300, 100))
    printed = zarrc("diff", "--mem=4M", a, b, code=1).text
    assert "[2999, 699]" in printed and "1 of 2100000 elements" in printed


def test_memory_of_other_data_types(zarrc, tmp_path):
    """Arrays whose elements are not compared need no memory for a chunk."""
    a = make(tmp_path / "a.zarr", np.zeros((1000, 700)), chunks=(1000, 700))
    b = make(tmp_path / "b.zarr", np.zeros((1000, 700), "i4"), chunks=(1000, 700))
    assert "data type" in zarrc("diff", "--mem=1M", a, b, code=1).text


def test_failed_comparison(zarrc, tmp_path):
    a = make(tmp_path / "a.zarr", np.arange(100.0), chunks=(10,))
    zarrc("diff", a, tmp_path / "none.zarr", code=3)
    zarrc("diff", a, code=2)
    make(tmp_path / "b.zarr", np.arange(100.0), chunks=(10,))
    chunk = tmp_path / "b.zarr/c/3"
    chunk.write_bytes(chunk.read_bytes()[:7])
    assert "c/3" in zarrc("diff", a, tmp_path / "b.zarr", code=4).err


@pytest.mark.parametrize("shards", [None, (64, 64)])
def test_sparse_giants(zarrc, tmp_path, shards):
    """Chunks that neither array has stored are equal, and are not read: the arrays have 2^50 elements."""
    arrays = []
    for name in "ab":
        array = zarr.create_array(tmp_path / name, shape=(2 ** 30, 2 ** 20 + 5), dtype="i4",
                                  chunks=(32, 32), shards=shards, fill_value=7)
        array[2 ** 29:2 ** 29 + 3, 2 ** 20 + 1:] = 1
        arrays.append(array)
    result = zarrc("diff", "--json", tmp_path / "a", tmp_path / "b").json
    assert result["equal"]
    arrays[1][5, 6] = 9
    arrays[0][2 ** 29 + 1, 2 ** 20 + 4] = 4
    text = zarrc("diff", tmp_path / "a", tmp_path / "b", code=1).text
    assert f"[{2 ** 29 + 1}, {2 ** 20 + 4}]" in text.replace(",", ", ").replace("  ", " ") and "[5, 6]" in \
        text.replace(",", ", ").replace("  ", " ")
    zarrc("diff", "-q", tmp_path / "a", tmp_path / "b", code=1)
    arrays[1][5, 6] = 7  # a stored fill value equals a missing chunk
    arrays[0][2 ** 29 + 1, 2 ** 20 + 4] = 1
    zarrc("diff", tmp_path / "a", tmp_path / "b")


def giant(path, chunks, at, shape=(10 ** 6, 10 ** 6), **options):
    """An array of 10^12 elements with the value 1 at some places."""
    array = zarr.create_array(path, shape=shape, dtype="i4", chunks=chunks, **{"fill_value": 0, **options})
    for place in at:
        array[place] = 1
    return array


@pytest.mark.parametrize("chunks_b, options", [
    ((100, 70), {}), ((50, 50), {"shards": (20000, 10000)}), ((1, 5000), {}),
    ((3000, 2000), {"zarr_format": 2})])
def test_sparse_giants_in_other_chunks(zarrc, tmp_path, chunks_b, options):
    """The stored chunks of both are compared, whatever their shapes, and each element once."""
    a, b = tmp_path / "a", tmp_path / "b"
    giant(a, (1000, 1000), [(5, 6), (400050, 17)])
    giant(b, **{"chunks": chunks_b, "at": [(5, 6), (400050, 17)], **options})
    done = zarrc("diff", "--json", "--data", a, b).json
    assert done["equal"]
    giant(b, **{"chunks": chunks_b, "at": [(5, 7), (400050, 17), (400051, 999999)], "overwrite": True, **options})
    node = zarrc("diff", "--json", "--data", a, b, code=1).json["nodes"][0]
    assert sorted(e["index"] for e in node["elements"]) == [[5, 6], [5, 7], [400051, 999999]]
    assert node["elements_different"] == 3 and node["elements_compared"] == 10 ** 12
    region = "[400000:900000, 10:999999]"
    node = zarrc("diff", "--json", "--data", f"{a}{region}", f"{b}{region}", code=None).json
    assert node["equal"]  # the difference is in the column beyond
    zarrc("diff", "-q", "--data", f"{a}[5]", f"{b}[5]", code=1)


def test_sparse_giants_with_other_fill_values(zarrc, tmp_path):
    giant(tmp_path / "a", (1000, 1000), [(0, 0), (0, 2), (999999, 999999)])
    giant(tmp_path / "b", (700, 1300), [(0, 0), (5000, 5000)], fill_value=3)
    node = zarrc("diff", "--json", "--data", tmp_path / "a", tmp_path / "b", code=1).json["nodes"][0]
    # equal: a and b are both 1 at [0, 0]
    assert node["elements_different"] == 10 ** 12 - 1 and len(node["elements"]) == 10
    assert node["elements"][0] == {"index": [0, 1], "a": 0, "b": 3}
    assert node["largest_difference"] == 3 and node["elements_compared"] == 10 ** 12
    zarrc("diff", "--data", "--atol=3", tmp_path / "a", tmp_path / "b")


@pytest.mark.parametrize("shards", [None, (20,)])
@pytest.mark.parametrize("mem", ["1M", "1G"])
def test_corrupt_chunks_are_passed(zarrc, tmp_path, shards, mem):
    """The other elements are compared and counted; the exit code is that of the damage."""
    values = np.arange(100.0)
    a = make(tmp_path / "a.zarr/x", values, chunks=(10,))
    other = values.copy()
    other[[1, 35, 99]] = -1
    b = make(tmp_path / "b.zarr/x", other, chunks=(5,), shards=shards)
    for name in "ab":
        zarrc("create", "--shape=3", "-t", "int8", tmp_path / f"{name}.zarr/y")
    zarrc("attrs", "set", tmp_path / "a.zarr/y", "only", "1")
    chunk = a / "c/3"
    chunk.write_bytes(chunk.read_bytes()[:7])
    found = zarrc("diff", f"--mem={mem}", tmp_path / "a.zarr", tmp_path / "b.zarr", code=4)
    assert "  unreadable: " in found.text and "  10 elements were not compared\n" in found.text
    assert "  2 of 90 elements differ" in found.text and "[35]" not in found.text
    assert "attribute only" in found.text and "cannot compare all of" in found.err and "c/3" in found.err
    found = zarrc("diff", "--json", tmp_path / "a.zarr", tmp_path / "b.zarr", code=4).json
    node = next(n for n in found["nodes"] if n["path"] == "x")
    assert node["unreadable"][0]["side"] == "a" and node["unreadable"][0]["index"] == [30]
    assert node["elements_unreadable"] == 10 and node["elements_compared"] == 90
    assert node["elements_different"] == 2 and found["nodes_different"] == 2 and not found["equal"]
    zarrc("diff", "-q", a, b, code=1)
    zarrc("diff", "-q", a, a, code=4)
    found = zarrc("diff", f"{b}[:60:2]", f"{a}[:60:2]", code=4).text
    assert "elements were not compared" in found


def test_unreadable_nodes_are_passed(zarrc, tmp_path):
    for name in "ab":
        zarrc("create", "--group", tmp_path / f"{name}.zarr")
        for array in "xyz":
            make(tmp_path / f"{name}.zarr/{array}", np.arange(4.0))
    (tmp_path / "a.zarr/y/zarr.json").write_text("{")
    (tmp_path / "b.zarr/y/zarr.json").write_text("{")
    zarrc("import", "--format=elements", "-", f"{tmp_path}/b.zarr/z[:1]", input=b"7")
    found = zarrc("diff", tmp_path / "a.zarr", tmp_path / "b.zarr", code=4).text
    assert "  unreadable: /y" in found and "  1 of 4 elements differ" in found


def test_corrupt_chunk_of_a_sparse_giant(zarrc, tmp_path):
    giant(tmp_path / "a", (1000, 1000), [(5, 6), (5000, 17)])
    giant(tmp_path / "b", (100, 100), [(5, 6), (5000, 17), (5000, 999)])
    (tmp_path / "a/c/5/0").write_bytes(b"no")
    node = zarrc("diff", "--json", tmp_path / "a", tmp_path / "b", code=4).json["nodes"][0]
    assert node["elements_unreadable"] == 10 ** 6 and node["elements_compared"] == 10 ** 12 - 10 ** 6
    assert "elements_different" in node and node["elements_different"] == 0


def fields(zarrc, tmp_path, name, change=None):
    dtype = np.dtype([("a", "<i4"), ("s", ">i2", (2, 3)), ("n", [("x", "<f8"), ("y", "S3")])])
    data = np.zeros((5, 4), dtype)
    data["a"] = np.arange(20).reshape(5, 4)
    data["s"] = np.arange(120).reshape(5, 4, 2, 3)
    data["n"]["x"] = np.arange(20).reshape(5, 4) / 4
    if change:
        change(data)
    np.save(tmp_path / "d.npy", data)
    zarrc("import", tmp_path / "d.npy", tmp_path / name, "--zarr-format=2", "--chunks=2,3")
    return tmp_path / name


def test_one_field(zarrc, tmp_path):
    def change(data):
        data["s"][3, 1, 1, 2] += 7
        data["n"]["x"][4, 0] += 0.5

    a, b = fields(zarrc, tmp_path, "a.zarr"), fields(zarrc, tmp_path, "b.zarr", change)
    zarrc("attrs", "set", b, "other", "1")
    zarrc("diff", a, b, code=1)
    zarrc("diff", "--field=a", a, b)
    zarrc("diff", "--field=n.y", a, b)
    found = zarrc("diff", "--json", "--field=s", a, b, code=1).json["nodes"][0]
    assert found["differences"] == [] and found["elements"] == [{"index": [3, 1, 1, 2], "a": 83, "b": 90}]
    assert found["elements_compared"] == 120 and found["elements_different"] == 1
    assert found["largest_difference"] == 7
    text = zarrc("diff", "--field=s", f"{a}[3]", f"{b}[3]", code=1).text
    assert "[1, 1, 2]: 83 | 90" in text and "1 of 24 elements differ" in text
    assert "[4, 0]: 4.0 | 4.5" in zarrc("diff", "--field=n.x", a, b, code=1).text
    zarrc("diff", "--field=n.x", "--atol=0.5", a, b)
    assert "nothing" in zarrc("diff", "--field=nothing", a, b, code=None).err


def test_one_field_of_two_types(zarrc, tmp_path):
    a = fields(zarrc, tmp_path, "a.zarr")
    other = np.zeros((5, 4), [("s", "<i2", (3, 2)), ("a", ">i4"), ("n", "<i2")])
    other["a"] = np.arange(20).reshape(5, 4)
    np.save(tmp_path / "d.npy", other)
    zarrc("import", tmp_path / "d.npy", tmp_path / "b.zarr", "--zarr-format=2", "--chunks=5,4")
    zarrc("diff", "--field=a", a, tmp_path / "b.zarr")  # another offset and another byte order
    assert "shape of the field: (2, 3) | (3, 2)" in zarrc("diff", "--field=s", a, tmp_path / "b.zarr", code=1).text
    assert "data type" in zarrc("diff", "--field=n", a, tmp_path / "b.zarr", code=1).text


def test_positions_in_regions(zarrc, tmp_path):
    zarr.save_array(tmp_path / "a.zarr", np.arange(12).reshape(3, 4))
    text = zarrc("diff", f"{tmp_path}/a.zarr[0]", f"{tmp_path}/a.zarr[1]", code=1).text
    assert "  [0]: 0 | 4\n" in text and "by 4 at most, at (0,)\n" in text


def test_missing_chunks_that_cannot_be_read_are_counted(zarrc, tmp_path):
    """Elements of missing chunks have one value, which `diff` counts for all of them, also if the limits refuse to read it."""
    zarrc("create", "-t", "string", "--shape=1000000000", "--chunks=1000000000", "--codec=none",
          "--limit=variable_chunk_bytes=1T", "--limit=chunk_bytes=1T", tmp_path / "a")
    node, = zarrc("diff", "--json", "--limit=variable_chunk_bytes=1M", tmp_path / "a", tmp_path / "a", code=4).json["nodes"]
    assert node["elements_unreadable"] == 1000000000 and "elements_compared" not in node


def test_long_texts_are_cut_between_characters(zarrc, pair):
    a, b = pair([1], [1])
    for n in range(3):
        for path, letter in ((a, "a"), (b, "b")):
            zarrc("attrs", "set", "--text", path, "name", "x" * n + "\u20ac" * 40 + letter)
        assert "\u20ac..." in zarrc("diff", a, b, code=1).text
