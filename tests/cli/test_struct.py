"""Arrays of structs: import from NumPy and export, access to one field, conversion between the formats."""
import json

import numpy as np
import pytest
import zarr

import peers
from test_import import npy

TYPE = np.dtype([("a", ">i4"), ("b", "<f8"), ("n", [("x", ">f4"), ("y", "|S3")]), ("q'\\\u00e4", "|u1")])
WITH_SUBARRAY = np.dtype([("s", ">i2", (2, 3)), ("m", [("z", "<u2")], (2,)), ("k", "|i1")])


def sample(dtype, shape=(5, 4)):
    data = np.zeros(shape, dtype)
    for at, name in enumerate(dtype.names):
        base = dtype[name].subdtype[0] if dtype[name].subdtype else dtype[name]
        if base.names:
            for inner in base.names:
                if base[inner].kind != "S":
                    data[name][inner] = np.arange(data[name][inner].size).reshape(data[name][inner].shape) - at
        else:
            data[name] = np.arange(data[name].size).reshape(data[name].shape) % 100 + at
    if "n" in dtype.names:
        data["n"]["y"] = b"hi"
    return data


def equal(got, data):
    native = data.astype(data.dtype.newbyteorder("="))
    return got.dtype == native.dtype and got.tobytes() == native.tobytes()


def load(zarrc, tmp_path, node, *options):
    zarrc("export", "--force", *options, node, tmp_path / "out.npy")
    return np.load(tmp_path / "out.npy")


@peers.needs_structs
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("target", ["2", "3"])
@pytest.mark.parametrize("how", ["file", "pipe"])
def test_npy(zarrc, tmp_path, target, order, how):
    data = np.asarray(sample(TYPE), order=order)
    (tmp_path / "d.npy").write_bytes(npy(data, (3, 0)))
    source = tmp_path / "d.npy" if how == "file" else "-"
    zarrc("import", source, tmp_path / "x.zarr", f"--zarr-format={target}", "--chunks=2,3",
          input=npy(data, (3, 0)) if how == "pipe" else b"")
    assert equal(load(zarrc, tmp_path, tmp_path / "x.zarr"), data)
    assert equal(np.asarray(zarr.open(str(tmp_path / "x.zarr"))[...]).astype(TYPE.newbyteorder("=")), data)


def test_subarrays(zarrc, tmp_path):
    data = sample(WITH_SUBARRAY)
    np.save(tmp_path / "d.npy", data)
    failed = zarrc("import", tmp_path / "d.npy", tmp_path / "three.zarr", code=6)
    assert "v3" in failed.err and not (tmp_path / "three.zarr").exists()
    zarrc("import", tmp_path / "d.npy", tmp_path / "x.zarr", "--zarr-format=2", "--chunks=2,3")
    assert equal(load(zarrc, tmp_path, tmp_path / "x.zarr"), data)
    for field in ("s", "m", "k"):
        assert equal(load(zarrc, tmp_path, tmp_path / "x.zarr", f"--field={field}"), data[field])
    assert equal(load(zarrc, tmp_path, tmp_path / "x.zarr", "--field=m.z"), data["m"]["z"])
    shown = zarrc("cat", "--field=s", "--format=json", f"{tmp_path / 'x.zarr'}[1,:2]").json
    assert shown == data["s"][1, :2].tolist()


@pytest.mark.parametrize("field, advice, region", [
    ("s", "Choose an element: NODE[0,0]. Or --format=json.", "[0,0]"),
    ("m.z", "Choose a row: NODE[0,:]. Or --format=json.", "[0,:]"),
])
def test_csv_of_subarrays(zarrc, tmp_path, field, advice, region):
    data = sample(WITH_SUBARRAY)
    np.save(tmp_path / "d.npy", data)
    zarrc("import", tmp_path / "d.npy", tmp_path / "x.zarr", "--zarr-format=2", "--chunks=2,3")
    refused = zarrc("cat", "--format=csv", f"--field={field}", tmp_path / "x.zarr", code=2).err
    assert f"field {field}, a subarray" in refused and advice in refused
    text = zarrc("cat", "--format=csv", f"--field={field}", f"{tmp_path / 'x.zarr'}{region}").text
    want = data["s"][0, 0] if field == "s" else data["m"]["z"][0]
    assert [[int(v) for v in line.split(",")] for line in text.splitlines()] == want.tolist()


def test_formats(zarrc, tmp_path):
    data = sample(TYPE, (3,))
    np.save(tmp_path / "d.npy", data)
    zarrc("import", tmp_path / "d.npy", tmp_path / "x.zarr")
    lines = zarrc("cat", "--format=elements", tmp_path / "x.zarr").text.splitlines()
    assert [json.loads(line)["a"] for line in lines] == data["a"].tolist()
    assert json.loads(lines[0]) == {"a": 0, "b": 1.0, "n": {"x": -2.0, "y": "aGkA"}, "q'\\\u00e4": 3}
    assert zarrc("cat", "--format=json", tmp_path / "x.zarr").json == [json.loads(line) for line in lines]
    assert zarrc("cat", "--format=text", tmp_path / "x.zarr").text.splitlines()[0].strip() == lines[0]
    assert zarrc("cat", "--format=csv", "--field=n.x", tmp_path / "x.zarr").text == "-2.0\n-1.0\n0.0\n"
    raw = zarrc("cat", "--format=raw", tmp_path / "x.zarr").out
    assert equal(np.frombuffer(raw, TYPE.newbyteorder("<")), data)
    failed = zarrc("cat", "--field=n.z", tmp_path / "x.zarr", code=3)
    assert "the fields are x, y" in failed.err


def test_info(zarrc, tmp_path):
    zarrc("create", tmp_path / "x.zarr", "--shape=4", "--zarr-format=2",
          '--dtype=[["a",">i4",[2,3]],["n",[["x","<f8"]]]]')
    text = zarrc("info", tmp_path / "x.zarr").text
    assert "struct of 32 bytes" in text and "a: int32 (2, 3), byte 0" in text and "  x: float64, byte 0" in text
    fields = zarrc("info", "--json", tmp_path / "x.zarr").json["fields"]
    assert fields[0] == {"name": "a", "data_type": "int32", "offset": 0, "shape": [2, 3]}
    assert fields[1]["fields"] == [{"name": "x", "data_type": "float64", "offset": 0, "shape": []}]


@peers.needs_structs
def test_between_formats(zarrc, tmp_path):
    """Converts a v2 array whose fields differ in byte order to v3 and back."""
    data = sample(TYPE, (7,))
    np.save(tmp_path / "d.npy", data)
    types = '[["a",">i4"],["b","<f8"],["n",[["x",">f4"],["y","|S3"]]],["q\'\\\\\u00e4","|u1"]]'
    zarrc("create", tmp_path / "two.zarr", "--shape=7", "--chunks=3", "--zarr-format=2", f"--dtype={types}")
    zarrc("import", tmp_path / "d.npy", f"{tmp_path / 'two.zarr'}[...]")
    assert json.loads((tmp_path / "two.zarr/.zarray").read_text())["dtype"] == json.loads(types)
    zarrc("reencode", tmp_path / "two.zarr", tmp_path / "three.zarr", "--zarr-format=3")
    zarrc("diff", tmp_path / "two.zarr", tmp_path / "three.zarr")
    for name in ("two.zarr", "three.zarr"):
        opened = zarr.open(str(tmp_path / name))[...]
        assert equal(opened.astype(TYPE.newbyteorder("=")), data)
    zarrc("reencode", tmp_path / "three.zarr", tmp_path / "again.zarr", "--zarr-format=2")
    zarrc("diff", tmp_path / "two.zarr", tmp_path / "again.zarr")
    zarrc("create", "--like", tmp_path / "two.zarr", tmp_path / "like.zarr")
    assert json.loads((tmp_path / "like.zarr/.zarray").read_text())["dtype"] == json.loads(types)
    data["b"][4] = 77
    np.save(tmp_path / "d.npy", data)
    zarrc("import", tmp_path / "d.npy", f"{tmp_path / 'again.zarr'}[...]")
    different = zarrc("diff", tmp_path / "two.zarr", tmp_path / "again.zarr", code=1).text
    assert "[4]" in different and "77.0" in different


def test_raw(zarrc, tmp_path):
    data = sample(np.dtype([("a", ">i4"), ("b", "<f8")]), (6,))
    data.tofile(tmp_path / "mixed.raw")
    zarrc("import", '--dtype=[["a",">i4"],["b","<f8"]]', "--shape=6", tmp_path / "mixed.raw", tmp_path / "x.zarr")
    assert equal(load(zarrc, tmp_path, tmp_path / "x.zarr"), data)
    data.astype(data.dtype.newbyteorder(">")).tofile(tmp_path / "big.raw")
    zarrc("import", '--dtype=[["a","<i4"],["b","<f8"]]', "--byte-order=big", "--shape=6", tmp_path / "big.raw",
          tmp_path / "y.zarr")
    zarrc("diff", tmp_path / "x.zarr", tmp_path / "y.zarr")


def test_append(zarrc, tmp_path):
    data = sample(np.dtype([("a", "<i4"), ("b", "<f8")]), (6,))
    np.save(tmp_path / "d.npy", data)
    zarrc("import", tmp_path / "d.npy", tmp_path / "x.zarr")
    zarrc("append", tmp_path / "x.zarr", tmp_path / "d.npy")
    assert equal(load(zarrc, tmp_path, tmp_path / "x.zarr"), np.concatenate([data, data]))
    np.save(tmp_path / "big.npy", data.astype(data.dtype.newbyteorder(">")))
    assert "big-endian" in zarrc("append", tmp_path / "x.zarr", tmp_path / "big.npy", code=6).err


@pytest.mark.parametrize("descr", ["[('a', '<i4'", "[('a', '<i4', (2,)), 7]", "[]", "[('a', '|O')]",
                                   "[('a', '<i4'), ('a', '<i4')]", "[(('t', 'a'), '<i4')]", "[('', '|V4')]"])
def test_hostile_npy(zarrc, tmp_path, descr):
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': (2,), }}".ljust(117) + "\n"
    (tmp_path / "d.npy").write_bytes(b"\x93NUMPY\1\0" + bytes([118, 0]) + header.encode() + bytes(64))
    failed = zarrc("import", tmp_path / "d.npy", tmp_path / "x.zarr", code=None)
    assert failed.code in (2, 4, 6), failed.err
    assert not (tmp_path / "x.zarr").exists()


def test_plot(zarrc, tmp_path):
    data = sample(WITH_SUBARRAY, (5, 4))
    np.save(tmp_path / "d.npy", data)
    zarrc("import", tmp_path / "d.npy", tmp_path / "x.zarr", "--zarr-format=2")
    assert "--field" in zarrc("plot", "-o", tmp_path / "p.png", tmp_path / "x.zarr", code=2).err
    assert "subarray" in zarrc("plot", "-o", tmp_path / "p.png", "--field=s", tmp_path / "x.zarr", code=6).err
    assert "Choose a field" in zarrc("plot", "-o", tmp_path / "p.png", "--field=s", tmp_path / "x.zarr", code=6).err
    zarrc("plot", "-o", tmp_path / "p.png", "--field=k", tmp_path / "x.zarr")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("order", ["C", "F"])
def test_import_of_one_field(zarrc, tmp_path, order):
    data = sample(WITH_SUBARRAY)
    np.save(tmp_path / "d.npy", data)
    path = tmp_path / "x.zarr"
    zarrc("import", tmp_path / "d.npy", path, "--zarr-format=2", "--chunks=2,3")
    new = np.asarray(data["k"] + 50, order=order).astype(">i1", order=order)
    np.save(tmp_path / "k.npy", new)
    zarrc("import", "--field=k", tmp_path / "k.npy", f"{path}[...]", "--mem=1MiB")
    data["k"] = new
    assert equal(load(zarrc, tmp_path, path), data)
    new = np.asarray(data["s"][1:4, ::2] - 1000, dtype=">i2", order=order)
    np.save(tmp_path / "s.npy", new)
    if order == "F":
        failed = zarrc("import", "--field=s", tmp_path / "s.npy", f"{path}[1:4,::2]", code=6)
        assert "Fortran" in failed.err
        return
    zarrc("import", "--field=s", tmp_path / "s.npy", f"{path}[1:4,::2]")
    data["s"][1:4, ::2] = new
    assert equal(load(zarrc, tmp_path, path), data)
    (tmp_path / "z.json").write_text(json.dumps((data["m"]["z"][2] + 1).tolist()))
    zarrc("import", "--field=m.z", tmp_path / "z.json", f"{path}[2]")
    data["m"]["z"][2] += 1
    assert equal(load(zarrc, tmp_path, path), data)
    raw = (data["s"][0] * 2).astype(">i2")
    zarrc("import", "--field=s", "--format=raw", "--byte-order=big", "-", f"{path}[0]", input=raw.tobytes())
    data["s"][0] = raw
    assert equal(load(zarrc, tmp_path, path), data)
    lines = "".join(f"{v}\n" for v in range(6))
    zarrc("import", "--field=s", "--format=elements", "-", f"{path}[4,3]", input=lines.encode())
    data["s"][4, 3] = np.arange(6).reshape(2, 3)
    assert equal(load(zarrc, tmp_path, path), data)


def test_import_of_one_field_refused(zarrc, tmp_path):
    data = sample(WITH_SUBARRAY)
    np.save(tmp_path / "d.npy", data)
    path = tmp_path / "x.zarr"
    zarrc("import", tmp_path / "d.npy", path, "--zarr-format=2")
    before = load(zarrc, tmp_path, path)
    np.save(tmp_path / "k.npy", data["k"])
    np.save(tmp_path / "f.npy", data["k"].astype("f8"))
    assert "[...]" in zarrc("import", "--field=k", tmp_path / "k.npy", path, code=2).err
    assert "[...]" in zarrc("import", "--field=k", tmp_path / "k.npy", tmp_path / "new.zarr", code=2).err
    assert not (tmp_path / "new.zarr").exists()
    error = zarrc("import", "--field=s", tmp_path / "k.npy", f"{path}[...]", code=2).err
    assert "the field of the region has (5, 4, 2, 3)" in error
    assert "float64" in zarrc("import", "--field=k", tmp_path / "f.npy", f"{path}[...]", code=2).err
    zarrc("import", "--field=none", tmp_path / "k.npy", f"{path}[...]", code=3)
    assert equal(load(zarrc, tmp_path, path), before)
