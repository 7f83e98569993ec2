"""Text of variable length: cat, reencode, diff, verify, create, and refusals."""
import csv
import io
import json

import numpy as np
import pytest
import zarr

WORDS = np.array([["", "a", "größe", "x" * 300], ["日本", "\"q\"\n", "\0z", "end"]], dtype=object)


@pytest.fixture(params=[(2, "C", None), (2, "F", None), (3, "C", None), (3, "C", (2, 4))], ids=str)
def strings(request, tmp_path):
    version, order, shards = request.param
    extra = {"order": order} if version == 2 else {"shards": shards}
    made = zarr.create_array(tmp_path / "s", shape=(2, 4), chunks=(1, 2), dtype=str,
                             zarr_format=version, fill_value="f", **extra)
    made[...] = WORDS
    return tmp_path / "s"


def test_cat(zarrc, strings):
    assert zarrc("cat", "--format=json", strings).json == WORDS.tolist()
    assert zarrc("cat", "--format=elements", f"{strings}[1,1:3]").text == '"\\"q\\"\\u000a"\n"\\u0000z"\n'
    assert zarrc("cat", "--format=csv", f"{strings}[1]").text == '日本\n"""q""\\x0a"\n\\x00z\nend\n'
    for form in ["raw", "npy"]:
        assert "--format=elements" in zarrc("cat", f"--format={form}", strings, code=None).err


def test_reencode_and_diff(zarrc, strings, tmp_path):
    out = tmp_path / "out"
    zarrc("reencode", strings, out, "--verify")
    assert zarr.open_array(out, mode="r")[...].tolist() == WORDS.tolist()
    assert zarrc("diff", strings, out).code == 0
    zarrc("verify", out)
    changed = zarr.open_array(out)
    changed[0, 1] = "b"
    assert zarrc("diff", strings, out, code=None).code != 0


def test_create(zarrc, tmp_path):
    zarrc("create", tmp_path / "n", "--dtype", "string", "--shape", "5", "--chunks", "2",
          "--fill", '"hi"')
    made = zarr.open_array(tmp_path / "n")
    made[1] = "größer"
    assert zarrc("cat", "--format=json", tmp_path / "n").json == ["hi", "größer", "hi", "hi", "hi"]


# ---- v2's other object codecs

def make_ragged(folder):
    folder.mkdir()
    (folder / ".zarray").write_text(json.dumps({
        "zarr_format": 2, "shape": [3], "chunks": [2], "dtype": "|O", "compressor": None, "fill_value": 0,
        "order": "C", "filters": [{"id": "vlen-array", "dtype": ">i2"}]}))
    (folder / "0").write_bytes(b"\2\0\0\0" b"\4\0\0\0\0\1\xff\xfe" b"\0\0\0\0")
    return folder


def test_lists(zarrc, tmp_path):
    lists = make_ragged(tmp_path / "l")
    assert zarrc("cat", "--format=elements", lists).text == "[1,-2]\n[]\n[]\n"
    assert zarrc("cat", "--format=json", lists).json == [[1, -2], [], []]
    assert "[1,-2]" in zarrc("cat", lists).text
    assert "vlen-array[int16]" in zarrc("info", lists).text
    assert zarrc("verify", lists).code == 0
    assert "--format=elements" in zarrc("cat", "--format=raw", lists, code=None).err


def test_lists_reencode(zarrc, tmp_path):
    lists, out = make_ragged(tmp_path / "l"), tmp_path / "o"
    zarrc("reencode", lists, out, "--chunks", "3", "--verify")
    assert zarrc("cat", "--format=json", out).json == [[1, -2], [], []]
    assert zarrc("diff", lists, out).code == 0


@pytest.mark.parametrize("filters", [[{"id": "json2"}], [{"id": "msgpack2"}],
                                     [{"id": "categorize", "labels": ["a", "ü"], "dtype": "|O"}]], ids=str)
def test_text_filters(zarrc, tmp_path, filters):
    folder = tmp_path / "t"
    folder.mkdir()
    chunk = {"json2": b'["a","\\u00fc",0,"|O",[3]]', "msgpack2": b"\x95\xa1a\xa2\xc3\xbc\xc0\xa2|O\x91\3",
             "categorize": b"\1\2\0"}[filters[0]["id"]]
    (folder / ".zarray").write_text(json.dumps({
        "zarr_format": 2, "shape": [3], "chunks": [3], "dtype": "|O", "compressor": None, "fill_value": None,
        "order": "C", "filters": filters}))
    (folder / "0").write_bytes(chunk)
    last = {"json2": " 0", "msgpack2": " null", "categorize": ""}[filters[0]["id"]]  # a blank: not text
    assert zarrc("cat", "--format=json", folder).json == ["a", "ü", last]


@pytest.mark.parametrize("dtype, shape", [("string", "3"), ("string", "3,1"), ("string", "1,3"), ("U2", "3"), ("S2", "3,1")])
def test_csv_of_empty_text(zarrc, tmp_path, dtype, shape):
    """csv readers skip an empty line, so empty text is written in quotes."""
    zarrc("create", f"--shape={shape}", f"--dtype={dtype}", tmp_path / "x")
    text = zarrc("cat", "--format=csv", tmp_path / "x").text
    rows = list(csv.reader(io.StringIO(text)))
    assert rows == ([["", "", ""]] if shape == "1,3" else [[""]] * 3)
