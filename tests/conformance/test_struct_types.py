"""Struct types: v2 lists of fields, each with its byte order, and v3 struct and structured, in
both directions with zarr-python, field by field with tensorstore, and single fields with every
kind of indexing compared with NumPy."""
import base64
import json
import warnings
from importlib.metadata import version

import numpy as np
import pytest
import tensorstore

import cases
import peers
from both_ways import WAYS
from zarrc_abi import PLUGIN, ZarrcError
from zarrc_selection import Selection

# NumPy's descr with the orders that v2 stores; what zarr-python opens (no subarrays)
PLAIN = {
    "little": [("a", "<i4"), ("b", "<f8"), ("c", "|u1")],
    "big": [("a", ">i4"), ("b", ">f8"), ("c", "|u1")],
    "mixed": [("a", ">i4"), ("b", "<f8"), ("c", "|u1"), ("d", ">u2"), ("e", "<c8")],
    "bytes": [("a", "|u1"), ("s", "|S3"), ("z", "|b1")],
    "texts": [("u", ">U2"), ("t", "<M8[10us]"), ("d", ">m8[s]"), ("h", "<f2")],
    "nested": [("n", [("x", ">f4"), ("m", [("y", "<i2"), ("z", "|i1")])]), ("k", "<u8")],
    "one": [("only", ">f4")],
    "names": [("\u00e4 \"q\"", "<i2"), ("a.b", ">i2"), ("a", [("b", "|u1")])],
}
SUBARRAYS = {
    "subarray": [("a", ">i2", (2, 3)), ("b", "|u1", (4,)), ("c", "<f8")],
    "nested-subarray": [("n", [("x", "<i2"), ("y", ">f4", (2,))], (3,)), ("k", "|u1")],
    "same-order": [("a", ">f4", (2,)), ("b", ">f4")],
}
ALL = {**PLAIN, **SUBARRAYS}


def v2_dtype(descr):
    out = []
    for name, kind, *shape in descr:
        item = [name, kind if isinstance(kind, str) else v2_dtype(kind)]
        out.append(item + ([list(shape[0])] if shape else []))
    return out


def native(dtype):
    return np.dtype(dtype).newbyteorder("=")


def random_struct(rng, shape, dtype):
    out = np.zeros(shape, dtype)
    for name in dtype.names:
        kind = dtype[name]
        base, sub = kind.subdtype or (kind, ())
        if base.names:
            out[name] = random_struct(rng, (*shape, *sub), base)
        else:
            out[name] = cases.random_data(rng, (*shape, *sub), base)
    return out


def random_fill(rng, dtype):
    return random_struct(rng, (1,), np.dtype(dtype))


def same(got, expected):
    """Bit for bit, whatever NumPy thinks of NaN."""
    expected = expected.astype(native(expected.dtype))
    assert got.dtype == expected.dtype, (got.dtype, expected.dtype)
    assert got.shape == expected.shape
    assert got.tobytes() == expected.tobytes()


def read_every_way(array, expected):
    for memory, pipeline in WAYS:
        same(array.read(native(expected.dtype), memory=memory, pipeline=pipeline), expected)


def python(folder, mode="r"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return peers.open_zarr(peers.PYTHON, folder, mode)


COMPRESSED = {"none": None, "zstd": {"id": "zstd", "level": 1},
              "blosc": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}}


@peers.needs_structs
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("compressor", COMPRESSED)
@pytest.mark.parametrize("name", ALL)
def test_v2(context, rng, tmp_path, name, compressor, order):
    """The same array by zarr-python and by us, read by both; ours by all ways."""
    stored = np.dtype(ALL[name])
    fill = random_fill(rng, stored)
    data = random_struct(rng, (7, 5), stored)
    data[4:, 3:] = fill[0]
    document = cases.document_v2(v2_dtype(ALL[name]), base64.b64encode(fill.tobytes()).decode(), (7, 5),
                                 (4, 3), order, COMPRESSED[compressor])
    speaks = name in PLAIN and (name != "texts" or compressor == "none")  # numcodecs take no times
    if speaks:
        cases.put_document(tmp_path / "python", document)
        python(tmp_path / "python", "r+")[...] = data
        read_every_way(context.store(str(tmp_path / "python")).open(), data)
    dumps = []
    for turn, (memory, pipeline) in enumerate(WAYS):
        store = context.store(str(tmp_path / f"ours{turn}"), create=True)
        array = store.create(document=document)
        written = json.loads((tmp_path / f"ours{turn}" / ".zarray").read_text())
        assert written["dtype"] == document["dtype"]
        assert written["fill_value"] == document["fill_value"]
        array.write(data.astype(native(stored)), memory=memory, pipeline=pipeline)
        read_every_way(array, data)
        dumps.append(store.dump())
    if not PLUGIN:  # whose encoders may give other bytes
        assert all(dump == dumps[0] for dump in dumps)
    if speaks:
        opened = python(tmp_path / "ours0")
        same(opened[...].astype(native(stored)), data)
        assert opened.fill_value.astype(native(stored)).tobytes() == fill.astype(native(stored)).tobytes()
    if compressor == "none" and order == "C":  # the bytes themselves are NumPy's
        chunk = np.full((4, 3), fill[0])
        chunk[:4, :3] = data[:4, :3]
        assert dumps[0]["0.0"] == chunk.tobytes()


def v3_type(descr, old=False):
    """What zarr-python calls it."""
    names = {"|u1": "uint8", "|i1": "int8", "i2": "int16", "i4": "int32", "f4": "float32", "f8": "float64",
             "u2": "uint16", "u8": "uint64", "c8": "complex64", "f2": "float16", "|b1": "bool"}
    fields = []
    for name, kind in descr:
        if not isinstance(kind, str):
            kind = v3_type(kind, old)
        elif kind[1] in "Mm":
            unit, scale = ("us", 10) if "10us" in kind else ("s", 1)
            kind = {"name": f"numpy.{'datetime' if kind[1] == 'M' else 'timedelta'}64",
                    "configuration": {"unit": unit, "scale_factor": scale}}
        elif kind[1] in "SUV":
            length = {"S": "null_terminated_bytes", "U": "fixed_length_utf32", "V": "raw_bytes"}[kind[1]]
            kind = {"name": length, "configuration": {
                "length_bytes": int(kind[2:]) * (4 if kind[1] == "U" else 1)}}
        else:
            kind = names.get(kind) or names[kind[1:]]
        fields.append([name, kind] if old else {"name": name, "data_type": kind})
    return {"name": "structured" if old else "struct", "configuration": {"fields": fields}}


CHAINS = {
    "little": [cases.LITTLE], "big": [cases.BIG], "zstd": [cases.BIG, cases.zstd()],
    "transposed": [cases.transpose(1, 0), cases.BIG, cases.gzip()],
    "shards": [cases.sharding((2, 3), [cases.LITTLE, cases.zstd()])],
    "shards-big": [cases.sharding((2, 3), [cases.BIG])],
}


def json_value(dtype, value):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from zarr.core.dtype import get_data_type_from_native_dtype
        return get_data_type_from_native_dtype(dtype).to_json_scalar(value, zarr_format=3)


@peers.needs_structs
@pytest.mark.parametrize("old", [False, True], ids=["struct", "structured"])
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("name", PLAIN)
def test_v3(context, rng, tmp_path, name, chain, old):
    dtype = native(PLAIN[name])
    fill = np.zeros(1, dtype) if name in ("bytes", "mixed", "texts") else random_fill(rng, dtype)
    fill = np.zeros(1, dtype) if "nan" in str(fill).lower() else fill
    data = random_struct(rng, (7, 6), dtype)
    data[4:, 3:] = fill[0]
    codecs = CHAINS[chain]
    if name == "bytes" and chain == "little":
        codecs = [cases.PLAIN]
    document = cases.document_v3(v3_type(PLAIN[name], old), json_value(dtype, fill[0]), codecs, (7, 6),
                                 (4, 3) if "shards" not in chain else (4, 6))
    cases.put_document(tmp_path / "python", document)
    python(tmp_path / "python", "r+")[...] = data
    read_every_way(context.store(str(tmp_path / "python")).open(), data)
    store = context.store(str(tmp_path / "ours"), create=True)
    array = store.create(document=document)
    array.write(data)
    read_every_way(array, data)
    written = json.loads((tmp_path / "ours" / "zarr.json").read_text())
    assert written["data_type"] == v3_type_canonical(document["data_type"])
    same(python(tmp_path / "ours")[...].astype(dtype), data)


def v3_type_canonical(kind):
    """structured is written as struct, raw_bytes as r<N>."""
    if isinstance(kind, str):
        return kind
    if kind["name"] == "raw_bytes":
        return f"r{8 * kind['configuration']['length_bytes']}"
    if kind["name"] not in ("struct", "structured"):
        return kind
    fields = [f if isinstance(f, dict) else {"name": f[0], "data_type": f[1]}
              for f in kind["configuration"]["fields"]]
    return {"name": "struct", "configuration": {"fields": [
        {"name": f["name"], "data_type": v3_type_canonical(f["data_type"])} for f in fields]}}


@peers.needs_structs
def test_endian_required(context, tmp_path):
    """structured goes without, which means little; struct does not, and says so."""
    fields = [("a", "<i4"), ("b", "|u1")]
    data = np.array([(1, 2), (-3, 4)], fields)
    for at, codecs in enumerate([[cases.PLAIN], [cases.sharding((1,), [cases.PLAIN])]]):
        old = cases.document_v3(v3_type(fields, True), {"a": 0, "b": 0}, codecs, (2,), (2,))
        cases.put_document(tmp_path / f"old{at}", old)
        python(tmp_path / f"old{at}", "r+")[...] = data
        array = context.store(str(tmp_path / f"old{at}")).open()
        same(array.read(native(fields)), data)
        assert '"endian"' in array.metadata
        new = {**old, "data_type": v3_type(fields)}
        cases.put_document(tmp_path / f"new{at}", new)
        with pytest.raises(ZarrcError, match="endian is required"):
            context.store(str(tmp_path / f"new{at}")).open()


def test_legacy_fill(context, rng, tmp_path):
    """Base64 of the packed record is little-endian, in arrays of either order."""
    fields = [("a", "<i4"), ("b", "<f8")]
    fill = np.array([(77, 1.5)], fields)
    for codec in (cases.LITTLE, cases.BIG):
        place = tmp_path / codec["configuration"]["endian"]
        cases.put_document(place, cases.document_v3(
            v3_type(fields, True), base64.b64encode(fill.tobytes()).decode(), [codec], (3,), (2,)))
        same(python(place)[...].astype(native(fields)), np.repeat(fill, 3))
        array = context.store(str(place)).open()
        read_every_way(array, np.repeat(fill, 3))
        assert json.loads(array.metadata)["fill_value"] == {"a": 77, "b": 1.5}


@pytest.mark.parametrize("value", [0, None])
def test_v2_no_fill(context, tmp_path, value):
    cases.put_document(tmp_path, cases.document_v2(v2_dtype(PLAIN["mixed"]), value, (3,), (2,)))
    array = context.store(str(tmp_path)).open()
    read_every_way(array, np.zeros(3, native(PLAIN["mixed"])))
    array.write(np.ones(3, native(PLAIN["mixed"])))
    assert json.loads((tmp_path / ".zarray").read_text())["fill_value"] == value


def tensorstore_field(folder, field, **options):
    driver = "zarr3" if (folder / "zarr.json").exists() else "zarr"
    return tensorstore.open({"driver": driver, "kvstore": {"driver": "file", "path": f"{folder}/"},
                             "field": field}, **options).result()


keeps_fields = pytest.mark.skipif(tuple(map(int, version("tensorstore").split(".")[:3])) < (0, 1, 86),
                                  reason="tensorstore before 0.1.86 loses the other fields when it writes one")


@keeps_fields
@pytest.mark.parametrize("name", ["little", "big", "mixed", "subarray", "same-order"])
def test_tensorstore_v2(context, rng, tmp_path, name):
    """It opens one field at a time, subarrays too."""
    stored = np.dtype(ALL[name])
    data = random_struct(rng, (7, 5), stored)
    document = cases.document_v2(v2_dtype(ALL[name]), None, (7, 5), (4, 3))
    store = context.store(str(tmp_path), create=True)
    array = store.create(document=document)
    array.write(data.astype(native(stored)))
    for field in stored.names:
        expected = data[field]
        got = tensorstore_field(tmp_path, field)
        cases.same_bits(got.read().result(), expected)
        ours = array.read_into(np.empty(expected.shape, expected.dtype.newbyteorder("=")), field=field)
        cases.same_bits(ours, expected)
        replaced = cases.random_data(rng, expected.shape, expected.dtype)
        got.write(replaced).result()
        data[field] = replaced
        read_every_way(array, data)


@pytest.mark.parametrize("fields", [
    [["a", "bfloat16"], ["b", "<i2"]], [["a", "bfloat16"], ["b", ">f4"]],
    [["b", ">u2"], ["a", "bfloat16", [3]]], [["a", "bfloat16"]]])
@pytest.mark.parametrize("writer", ["ours", "theirs"])
def test_tensorstore_bfloat16(context, tmp_path, fields, writer):
    """A field that v2 calls by a name has no byte order in it: little-endian."""
    store = context.store(str(tmp_path), create=True)
    if writer == "ours":
        store.create(document=cases.document_v2(fields, None, (4,), (3,)))
    for n, (field, kind, *shape) in enumerate(fields):
        theirs = tensorstore.open(
            {"driver": "zarr", "kvstore": {"driver": "file", "path": f"{tmp_path}/"}, "field": field,
             "metadata": {"dtype": fields, "shape": [4], "chunks": [3], "compressor": None, "fill_value": None}},
            create=writer == "theirs" and n == 0, open=True).result()
        values = np.arange(-2, theirs.size - 2).reshape(theirs.shape).astype(theirs.dtype.numpy_dtype)
        if writer == "theirs":
            theirs.write(values).result()
        else:
            store.open().write(values.astype(values.dtype.newbyteorder("=")), field=field)
        got = store.open().read_into(np.empty_like(values), field=field)
        assert got.tobytes() == values.tobytes()
        assert theirs.read().result().tobytes() == values.tobytes()
    assert json.loads((tmp_path / ".zarray").read_text())["dtype"] == fields
    array = store.open()
    array.resize((6,))  # written again
    assert json.loads((tmp_path / ".zarray").read_text())["dtype"] == fields
    context.store(str(tmp_path / "copy"), create=True).create(document=json.loads((tmp_path / ".zarray").read_text()))
    assert json.loads((tmp_path / "copy/.zarray").read_text())["dtype"] == fields


def test_padding_without_a_name(context, rng, tmp_path):
    """The descr of an aligned struct, as zarr-python 2.18 and 3.0 write it."""
    fields = [["a", "<i2"], ["", "|V2"], ["b", "<i4"], ["c", "|u1"], ["", "|V3"]]
    (tmp_path / ".zarray").write_text(json.dumps(cases.document_v2(fields, None, (3,), (2,))))
    stored = random_struct(rng, (3,), np.dtype([(n or f"f{i}", k) for i, (n, k) in enumerate(fields)]))
    (tmp_path / "0").write_bytes(stored[:2].tobytes())
    (tmp_path / "1").write_bytes(stored[2:].tobytes() + bytes(12))
    array = context.store(str(tmp_path)).open()
    same(array.read(stored.dtype), stored)
    same(python(tmp_path)[:], stored)
    array.resize((4,))
    assert json.loads((tmp_path / ".zarray").read_text())["dtype"] == fields  # as it was


@keeps_fields
@pytest.mark.parametrize("chain", ["little", "big", "zstd"])
def test_tensorstore_v3(context, rng, tmp_path, chain):
    fields = [("a", "<i4"), ("b", "<f8"), ("c", "|u1")]
    data = random_struct(rng, (7, 6), np.dtype(fields))
    document = cases.document_v3(v3_type(fields), {"a": 1, "b": 2.5, "c": 3}, CHAINS[chain], (7, 6), (4, 3))
    array = context.store(str(tmp_path), create=True).create(document=document)
    array.write(data)
    for field in ("a", "b", "c"):
        got = tensorstore_field(tmp_path, field)
        cases.same_bits(got.read().result(), data[field])
        replaced = cases.random_data(rng, data[field].shape, data[field].dtype)
        got.write(replaced).result()
        data[field] = replaced
        read_every_way(array, data)


# ---- single fields ------------------------------------------------------------------------

def find_field(data, path):
    for step in path.split("."):
        data = data[step]
    return data


PATHS = {"mixed": ["a", "b", "c", "d", "e"], "nested": ["n", "n.x", "n.m", "n.m.y", "n.m.z", "k"],
         "subarray": ["a", "b", "c"], "nested-subarray": ["n", "n.x", "n.y", "k"], "texts": ["u", "t", "d", "h"]}
SELECTIONS = {
    "all": (lambda s: None, np.s_[...]),
    "slices": (lambda s: Selection.parse(s, "1:6:2,::-1"), np.s_[1:6:2, ::-1]),
    "index": (lambda s: Selection.parse(s, "3,1:"), np.s_[3, 1:]),
    "one": (lambda s: Selection.parse(s, "3,4"), np.s_[3, 4]),
    "lists": (lambda s: Selection.dims(s, [5, 0, 3, 0], [4, 1]), np.ix_([5, 0, 3, 0], [4, 1])),
    "points": (lambda s: Selection.points(s, [(0, 0), (6, 4), (3, 2), (3, 3)]), ([0, 6, 3, 3], [0, 4, 2, 3])),
    "points-2d": (lambda s: Selection.points(s, [(0, 0), (6, 4), (3, 2), (3, 3)], (2, 2)),
                  ([[0, 6], [3, 3]], [[0, 4], [2, 3]])),
}
def view_for(rng, data, turn):
    dtype = data.dtype.newbyteorder("=")
    swap = None if dtype.names is None else False
    return cases.layout(rng, data.shape, dtype, swap=swap, plain=turn == 0)


def make_fields(context, rng, name, kind):
    """An array of this struct with some chunks missing, and its content."""
    stored = np.dtype(ALL[name])
    fill = random_fill(rng, stored)
    data = random_struct(rng, (7, 5), stored)
    data[4:, 3:] = fill[0]
    text = base64.b64encode(fill.tobytes()).decode()
    if kind == "v2":
        document = cases.document_v2(v2_dtype(ALL[name]), text, (7, 5), (4, 3))
    elif kind == "v2-F-zstd":
        document = cases.document_v2(v2_dtype(ALL[name]), text, (7, 5), (4, 3), "F", {"id": "zstd", "level": 1})
    else:
        if name not in PLAIN:
            pytest.skip("v3 has no form for subarrays")
        fill[0] = np.zeros(1, stored)[0]
        data[4:, 3:] = fill[0]
        document = cases.document_v3(v3_type(ALL[name]), json_value(native(stored), fill[0].astype(native(stored))),
                                     [cases.sharding((2, 3), [cases.BIG, cases.zstd()])], (7, 5), (4, 6))
    array = context.store("memory:").create(document=document)
    array.write(data.astype(native(stored)))
    return array, data.astype(native(stored))


@pytest.mark.parametrize("kind", ["v2", "v2-F-zstd", "v3-shards"])
@pytest.mark.parametrize("how", SELECTIONS)
@pytest.mark.parametrize("name", PATHS)
def test_fields(context, rng, name, how, kind):
    """Each field alone, read and written, by every indexing and way; others are left alone."""
    array, data = make_fields(context, rng, name, kind)
    make, index = SELECTIONS[how]
    for path in PATHS[name]:
        for turn, (memory, pipeline) in enumerate(WAYS):
            selection = make((7, 5))
            whole = find_field(data, path)
            expected = np.asarray(whole[index], whole.dtype)  # 0-d texts lose their padding
            view = view_for(rng, expected, turn)
            array.read_into(view, selection, memory, pipeline=pipeline, field=path)
            same(np.array(view.astype(native(view.dtype))), expected)
            assert cases.gaps_intact(view)
            view[...] = random_like(rng, expected)
            array.write(view, selection, memory, pipeline=pipeline, field=path)
            find_field(data, path)[index] = view
            same(array.read(data.dtype), data)


def random_like(rng, expected):
    if expected.dtype.names:
        return random_struct(rng, expected.shape, expected.dtype)
    return cases.random_data(rng, expected.shape, expected.dtype)


def test_field_of_missing_chunks(context, rng):
    """Written into chunks that were not there, a field has the fill value's others beside it."""
    descr = [("a", ">i2", (2, 3)), ("b", "<f4")]
    fill = np.array([([[1, 2, 3], [4, 5, 6]], 7.5)], descr)
    document = cases.document_v2(v2_dtype(descr), base64.b64encode(fill.tobytes()).decode(), (6, 4), (4, 4))
    array = context.store("memory:").create(document=document)
    for memory, pipeline in WAYS:
        view = cases.layout(rng, (6, 4, 2, 3), "<i2", swap=True)
        array.read_into(view, memory=memory, pipeline=pipeline, field="a")
        assert (view == fill[0]["a"]).all() and cases.gaps_intact(view)
        assert (array.read_into(np.empty((6, 4), "f4"), memory=memory, pipeline=pipeline, field="b") == 7.5).all()
    assert array.store.keys() == [".zarray"]
    array.write(np.full((6, 4), 7.5, "f4"), field="b")  # all chunks equal to the fill value
    assert array.store.keys() == [".zarray"]
    array.write(np.full((2, 4), 9, "f4"), Selection.parse((6, 4), "2:4"), field="b")
    whole = array.read(native(descr))
    assert (whole["a"] == fill[0]["a"]).all()
    assert (whole["b"][2:4] == 9).all() and (whole["b"][4:] == 7.5).all()


def test_field_of_chunks_that_differ(context, rng):
    """A rectilinear grid: every chunk has a shape of its own."""
    dtype = native(PLAIN["mixed"])
    document = cases.document_v3(v3_type(PLAIN["mixed"]), json_value(dtype, np.zeros(1, dtype)[0]),
                                 [cases.BIG, cases.zstd()], (7, 5), (4, 3))
    document["chunk_grid"] = {"name": "rectilinear", "configuration": {
        "kind": "inline", "chunk_shapes": [[2, 4, 3], [1, [2, 2]]]}}
    array = context.store("memory:").create(document=document)
    data = random_struct(rng, (7, 5), dtype)
    array.write(data)
    for memory, pipeline in WAYS:
        got = array.read_into(np.empty((6, 5), "f8"), Selection.parse((7, 5), "1:7"), memory, pipeline=pipeline,
                              field="b")
        cases.same_bits(got, data["b"][1:7])
        data["b"][1:7] = cases.random_data(rng, (6, 5), np.dtype("f8"))
        array.write(np.ascontiguousarray(data["b"][1:7]), Selection.parse((7, 5), "1:7"), memory,
                    pipeline=pipeline, field="b")
        same(array.read(dtype), data)


def test_field_refusals(context, rng):
    array, data = make_fields(context, rng, "nested-subarray", "v2")
    for field, says in (("x", "no field \"x\"; the fields are n, k"), ("n.z", "the fields are x, y"), ("k.a", "no field")):
        with pytest.raises(ZarrcError, match=says):
            array.read_into(np.empty((7, 5), "u1"), field=field)
    with pytest.raises(ZarrcError, match="expected 3") as caught:
        array.read_into(np.empty((7, 5), "i2"), field="n.x")
    assert caught.value.code == "INVALID"
    plain = context.store("memory:").create(shape=(3,), dtype="int16")
    with pytest.raises(ZarrcError, match="int16 has no fields"):
        plain.read_into(np.empty(3, "i2"), field="a")
    from ctypes import byref
    from zarrc_abi import call
    from zarrc_memory import Tensor, io_options
    for verb in ("read", "write"):  # single fields may be in the other order, whole structs not
        with pytest.raises(ZarrcError, match="byte order in memory") as caught:
            tensor = Tensor(np.empty((7, 5), data.dtype))
            tensor.struct.byte_order = 2
            call("zarr_array_" + verb, array.pointer, None, byref(tensor.struct), byref(io_options()))
        assert caught.value.code == "UNSUPPORTED"
