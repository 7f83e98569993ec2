"""Import and append of elements in text formats, of .npy files with padding between fields, and of
fixed-length text into arrays of variable length."""
import io
import json

import numpy as np
import pytest
import zarr
from numpy.lib import recfunctions

from test_import import npy

WORDS = ["", "größe", "a \"q\" \\ b", "日本 \U0001f600", "x" * 300, "tab\there"]


def test_lines(zarrc, tmp_path):
    text = "".join(w + "\n" for w in WORDS)
    zarrc("import", "--format=lines", "-", tmp_path / "s", "--chunks=4", input=text.encode())
    assert zarr.open_array(tmp_path / "s", mode="r")[:].tolist() == WORDS
    # Into a region, which gives the shape. The last line has no newline.
    zarrc("create", tmp_path / "t", "--dtype=string", "--shape=3,4", "--chunks=2,2", "--zarr-format=2")
    zarrc("import", "--format=lines", "-", f"{tmp_path / 't'}[1:,2:]", input=b"a\nb\n\nd")
    assert zarr.open_array(tmp_path / "t", mode="r")[1:, 2:].tolist() == [["a", "b"], ["", "d"]]
    assert "3 elements, not 4" in zarrc("import", "--format=lines", "-", f"{tmp_path / 't'}[1:,2:]",
                                        input=b"a\nb\nc\n", code=2).err
    # Other types: one value per line; text of fixed length is taken literally.
    zarrc("import", "--format=lines", "--dtype=float32", "--shape=2,2", "-", tmp_path / "f",
          input=b'1\n-2.5\n"NaN"\n3e4\n')
    assert np.array_equal(zarr.open_array(tmp_path / "f", mode="r")[:],
                          np.array([[1, -2.5], [np.nan, 3e4]], "f4"), equal_nan=True)
    for dtype in ("<U5", "|S5"):
        zarrc("import", "--format=lines", "--dtype", dtype, "-", tmp_path / dtype[1], input=b"ab\n\ncde\n")
        assert zarr.open_array(tmp_path / dtype[1], mode="r")[:].astype(str).tolist() == ["ab", "", "cde"]
    zarrc("import", "--format=lines", "--dtype=variable_length_bytes", "-", tmp_path / "v",
          input=b"\xff\n\nx\n")
    assert zarrc("cat", "--format=json", tmp_path / "v").json == ["/w==", "", "eA=="]
    assert "UTF-8" in zarrc("import", "--format=lines", "-", tmp_path / "n", input=b"a\n\xff\n", code=4).err
    assert "NUL" in zarrc("import", "--format=lines", "-", tmp_path / "n", input=b"a\0\n", code=4).err
    assert not (tmp_path / "n").exists()


@pytest.mark.parametrize("dtype, shape", [("string", (2, 3)), ("int16", (4,)), ("float64", (2, 1, 2)),
                                          ("complex64", (2, 2)), ("bool", (3,)), ("<M8[s]", (2,)),
                                          ("uint8", ()), ("string", (0,)), ("int8", (2, 0)),
                                          ([["a", "<i4"], ["b", "|S3"]], (2, 2))])
def test_what_cat_writes(zarrc, tmp_path, dtype, shape):
    """import reads the json and elements that cat writes."""
    spelled = json.dumps(dtype) if isinstance(dtype, list) else dtype
    fill = {"int16": "-7", "float64": "1.5e-300", "complex64": '[1.5,"NaN"]', "bool": "true", "<M8[s]": "12345",
            "uint8": "200", "string": '"f"', "int8": "1"}.get(spelled, '{"a": -2, "b": "YWIA"}')
    zarrc("create", tmp_path / "a", "--dtype", spelled, "--fill", fill, "--shape", ",".join(map(str, shape)))
    n = int(np.prod(shape))
    if dtype == "string":
        (tmp_path / "in").write_text(json.dumps(np.array((WORDS * n)[:n], object).reshape(shape).tolist()))
        zarrc("import", "--format=json", tmp_path / "in", f"{tmp_path / 'a'}[...]")
    for form in ("json", "elements"):
        text = zarrc("cat", f"--format={form}", tmp_path / "a").out
        more = [] if form == "json" else ["--shape", ",".join(map(str, shape))]
        zarrc("import", f"--format={form}", "--dtype", spelled, *more, "-", tmp_path / form, input=text)
        assert zarrc("cat", f"--format={form}", tmp_path / form).out == text
        assert zarrc("info", "--json", tmp_path / form).json["shape"] == list(shape)


@pytest.mark.parametrize("text", ["", "[", "[1,2", "[1,,2]", "[1,2]]", "[[1],[2,3]]", "[[1],2]", "[1]x",
                                  '{"a":1}', '["a",]', "nul", '["a]', "[1.5]", "[300]", "[,1]", "[[]1]"])
def test_wrong_json(zarrc, tmp_path, text):
    failed = zarrc("import", "--format=json", "--dtype=int8", "-", tmp_path / "x", input=text.encode(), code=4)
    assert failed.err.startswith("zarrc: ") and not (tmp_path / "x").exists()


def test_append(zarrc, tmp_path):
    (tmp_path / "l").write_text("a\nb\n")
    zarrc("import", "--format=lines", tmp_path / "l", tmp_path / "s", "--chunks=3")
    zarrc("append", "--format=lines", tmp_path / "s", tmp_path / "l")
    zarrc("append", "--format=elements", tmp_path / "s", "-", input=b'"c\\u00e9"\n\n"d"\n')
    zarrc("append", "--format=json", tmp_path / "s", "-", input=b'["e"]')
    assert zarr.open_array(tmp_path / "s", mode="r")[:].tolist() == ["a", "b", "a", "b", "cé", "d", "e"]
    assert "--format=lines" in zarrc("append", tmp_path / "s", tmp_path / "l", code=6).err
    zarrc("create", tmp_path / "n", "--dtype=int32", "--shape=1,2")
    zarrc("append", "--format=json", tmp_path / "n", "-", input=b"[[1,2],[3,4]]")
    zarrc("append", "--format=json", tmp_path / "n", "-", input=b"[5,6]")  # one step
    assert zarr.open_array(tmp_path / "n", mode="r")[:].tolist() == [[0, 0], [1, 2], [3, 4], [5, 6]]
    zarrc("append", "--format=json", tmp_path / "n", "-", input=b"[[1,2,3]]", code=2)


def test_nodes_of_text(zarrc, tmp_path):
    """cp, mv, diff, verify and export work on text of variable length."""
    zarrc("import", "--format=json", "-", tmp_path / "s", input=json.dumps(WORDS).encode())
    zarrc("cp", tmp_path / "s", tmp_path / "c")
    zarrc("mv", tmp_path / "c", tmp_path / "m")
    zarrc("diff", tmp_path / "s", tmp_path / "m")
    zarrc("verify", tmp_path / "m")
    zarrc("export", "--format=json", tmp_path / "m", tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text()) == WORDS
    # A .npy of objects would be a pickle. It is refused, and the error names the other formats.
    assert "--format=elements" in zarrc("export", tmp_path / "m", tmp_path / "out.npy", code=6).err
    assert not (tmp_path / "out.npy").exists()


def test_fixed_into_any_length(zarrc, tmp_path):
    words = np.array([["", "größe", "x"], ["日本", "\U0001f600", "end"]])
    zarrc("create", tmp_path / "s", "--dtype=string", "--shape=2,3", "--chunks=1,2")
    for order in "CF":
        zarrc("import", "-", f"{tmp_path / 's'}[...]", input=npy(np.asarray(words, order=order)))
        assert zarr.open_array(tmp_path / "s", mode="r")[:].tolist() == words.tolist()
    zarrc("create", tmp_path / "b", "--dtype=variable_length_bytes", "--shape=3")
    zarrc("import", "-", f"{tmp_path / 'b'}[...]", input=npy(np.array([b"", b"a\0b", b"\xff"])))
    assert zarrc("cat", "--format=json", tmp_path / "b").json == ["", "YQBi", "/w=="]
    zarrc("import", "-", f"{tmp_path / 's'}[...]", input=npy(words[::-1].astype(">U5")))
    assert zarr.open_array(tmp_path / "s", mode="r")[:].tolist() == words[::-1].tolist()


INNER = np.dtype([("p", "u1"), ("q", ">i4")], align=True)
PADDED = [np.dtype([("x", "i1"), ("y", "f8")], align=True),
          np.dtype([("x", ">i2"), ("y", "<f8"), ("z", "S3")], align=True),
          np.dtype([("x", "i1"), ("n", INNER, (2,)), ("y", "f8", (2,)), ("z", "u1")], align=True),
          np.dtype({"names": ["a"], "formats": ["i4"], "offsets": [4], "itemsize": 8}),
          np.dtype({"names": ["a"], "formats": [">i4"], "offsets": [0], "itemsize": 8})]


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", PADDED, ids=range(5))
def test_padding_between_fields(zarrc, tmp_path, rng, dtype, order):
    data = np.frombuffer(rng.integers(0, 60, 12 * dtype.itemsize, "u1").tobytes(), dtype).reshape(3, 4)
    packed = np.dtype(strip(dtype))
    zarrc("import", "-", tmp_path / "a", "--chunks=2,3", "--zarr-format=2",
          input=npy(np.asarray(data, order=order)))
    got = np.load(io.BytesIO(zarrc("cat", "--format=npy", tmp_path / "a").out))
    assert got.dtype.newbyteorder("=") == packed.newbyteorder("=")
    assert got.tobytes() == recfunctions.repack_fields(data, recurse=True).astype(got.dtype).tobytes()
    (tmp_path / "d.npy").write_bytes(npy(data))
    failed = zarrc("append", tmp_path / "a", tmp_path / "d.npy", code=6).err.replace(str(tmp_path), "")
    assert ("big-endian" if ">" in str(dtype) else "between its fields") in failed or dtype.names == ("a",)


def strip(dtype):
    """The same fields without padding."""
    out = []
    for name in dtype.names:
        base, shape = dtype[name].subdtype or (dtype[name], ())
        out.append((name, strip(base) if base.names else base, shape))
    return out


def test_field_without_a_name(zarrc, tmp_path):
    header = b"{'descr': [('', '<i4'), ('b', '<i4')], 'fortran_order': False, 'shape': (2,), }".ljust(117) + b"\n"
    data = b"\x93NUMPY\1\0" + bytes([118, 0]) + header + bytes(16)
    assert "without a name" in zarrc("import", "-", tmp_path / "x", input=data, code=6).err


EVERY = ["int16", "int4", "string", "bytes", "complex64", "optional[int16]", "optional[optional[complex64]]",
         "numpy.datetime64[s]", "r24", '[["a","<i2"]]']


@pytest.mark.parametrize("dtype", EVERY)
@pytest.mark.parametrize("shape", ["0", "0,3", "2,0", "2,0,3", ""])
def test_what_cat_writes_of_nothing(zarrc, tmp_path, dtype, shape):
    """The nested lists end at an empty dimension."""
    zarrc("create", f"--shape={shape}", "--dtype", dtype, tmp_path / "a")
    text = zarrc("cat", "--format=json", tmp_path / "a").out
    zarrc("import", "--format=json", "-", f"{tmp_path / 'a'}[...]", input=text)
    zarrc("import", "--format=json", f"--shape={shape}", "--dtype", dtype, "-", tmp_path / "b", input=text)
    assert zarrc("diff", "--data", tmp_path / "a", tmp_path / "b").out == b""
    if shape:
        zarrc("import", "--format=json", "-", f"{tmp_path / 'a'}[...]", input=b"[[[[]]]]", code=None)


@pytest.mark.parametrize("dtype, shape, text", [
    ("optional[optional[int16]]", "2", "[[null], [[5]]]"), ("optional[optional[int16]]", "3", "[null, [null], [[5]]]"),
    ("optional[optional[int16]]", "1", "[[null]]"), ("optional[optional[int16]]", "1,1", "[[null]]"),
    ("optional[optional[int16]]", "2", "[[null], [null]]"), ("optional[optional[int16]]", "1,2", "[[null, [[1]]]]"),
    ("optional[complex64]", "2", "[null, [[1.0,2.0]]]"), ("optional[string]", "1,2", '[[null, ["null"]]]'),
    ("optional[int16]", "", "null"), ("optional[optional[int16]]", "", "[null]"), ("complex64", "", "[1.0,2.0]")])
def test_lists_that_are_elements(zarrc, tmp_path, dtype, shape, text):
    zarrc("create", f"--shape={shape}", "--dtype", dtype, tmp_path / "a")
    zarrc("import", "--format=json", "-", f"{tmp_path / 'a'}[...]", input=text.encode())
    assert "".join(zarrc("cat", "--format=json", tmp_path / "a").text.split()) == text.replace(" ", "")
    zarrc("import", "--format=json", f"--shape={shape}", "--dtype", dtype, "-", tmp_path / "b", input=text.encode())
    assert zarrc("diff", tmp_path / "a", tmp_path / "b").out == b""


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("extra", [[], ["--zarr-format=2"]])
def test_npy_text_becomes_strings(zarrc, tmp_path, order, extra):
    """Text of either byte order is imported into an existing array or a new one."""
    values = np.array([["zwölf", ""], ["\U0001d11e\0x", "a"]], f"{order}U6")
    zarrc("create", "--shape=2,2", "--dtype=string", *extra, tmp_path / "a")
    zarrc("import", "-", f"{tmp_path / 'a'}[...]", input=npy(values))
    zarrc("import", "--format=npy", "--dtype=string", *extra, "-", tmp_path / "b", input=npy(values))
    assert zarrc("diff", tmp_path / "a", tmp_path / "b").out == b""
    assert json.loads(zarrc("cat", "--format=json", tmp_path / "b").out) == values.tolist()
    zarrc("import", "--format=npy", "--dtype=bytes", "-", tmp_path / "c", input=npy(np.array([b"a\xff", b""], "S3")))
    assert json.loads(zarrc("cat", "--format=json", tmp_path / "c").out) == ["Yf8=", ""]
    failed = zarrc("import", "--format=npy", "--dtype=string", "-", tmp_path / "d", input=npy(np.arange(3)), code=None)
    assert failed.code and not (tmp_path / "d").exists()
