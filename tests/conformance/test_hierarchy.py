"""Groups, attributes, consolidated metadata and changing shapes, compared with zarr-python's."""
import json
import os
import pathlib
import re
import warnings

import numpy as np
import pytest
import zarr

import cases
import peers
from zarrc_abi import ZarrcError
from zarrc_dict import DictStore
from zarrc_selection import Selection

warnings.filterwarnings("ignore", category=UserWarning, module="zarr")
ATTRIBUTES = {"text": "h\u00e9llo \U0001f600", "n": 2**53 + 1, "x": -0.5, "deep": {"a": [1, None, True]},
              "empty": {}, "": "no name"}


def zarr_tree(group):
    """{path: (kind, attributes, shape)} as zarr-python sees it."""
    found = {}
    for path, node in group.members(max_depth=None):
        kind = "array" if isinstance(node, zarr.Array) else "group"
        found[path] = (kind, dict(node.attrs), getattr(node, "shape", None))
    return found


def our_tree(store, group):
    found = {}
    for path, kind, _, _ in group.walk():
        node = store.open(path) if kind == "array" else store.group(path)
        found[path] = (kind, node.attributes, node.shape if kind == "array" else None)
    return found


def build_ours(store, form):
    store.create_group("", zarr_format=form, attributes=ATTRIBUTES)
    store.create_group("a/b", zarr_format=form)
    store.create("a/data", (4, 5), "int16", zarr_format=form, chunks=(2, 2), attributes={"k": 1})
    store.create("top", (), "float64", zarr_format=form)
    store.create("z/y/x", (0,), "uint8", zarr_format=form, chunks=(3,))


@pytest.mark.parametrize("form", [2, 3])
def test_ours_seen_by_zarr_python(context, tmp_path, form):
    store = context.store(str(tmp_path))
    build_ours(store, form)
    group = zarr.open_group(str(tmp_path), mode="r", use_consolidated=False)
    assert dict(group.attrs) == ATTRIBUTES
    assert zarr_tree(group) == our_tree(store, store.group())
    assert set(zarr_tree(group)) == {"a", "a/b", "a/data", "top", "z", "z/y", "z/y/x"}
    group = store.group("a")
    group.set_attribute("new", [1.5, "\u20ac"])
    group.merge_attributes({"other": None})
    assert dict(zarr.open_group(str(tmp_path), path="a", mode="r").attrs) == {
        "new": [1.5, "\u20ac"], "other": None}
    group.delete_attribute("new")
    group.merge_attributes({"only": 1}, replace=True)
    assert dict(zarr.open_group(str(tmp_path), path="a", mode="r").attrs) == {"only": 1}
    with pytest.raises(ZarrcError, match="NOT_FOUND"):
        group.delete_attribute("new")


@pytest.mark.parametrize("form", [2, 3])
def test_theirs_seen_by_us(context, tmp_path, form):
    root = zarr.create_group(str(tmp_path), zarr_format=form, attributes=ATTRIBUTES)
    root.create_group("a/b", attributes={"deep": True})
    root.create_array("a/data", shape=(4, 5), chunks=(2, 2), dtype="i2", attributes={"k": 1})
    root.create_array("top", shape=(), dtype="f8")
    store = context.store(str(tmp_path))
    group = store.group()
    assert group.zarr_format == form and group.attributes == ATTRIBUTES
    assert our_tree(store, group) == zarr_tree(root)
    assert [row[0] for row in group.list()] == ["a", "top"]
    root["a/data"].attrs["seen"] = "yes"
    assert store.open("a/data").attributes == {"k": 1, "seen": "yes"}


@pytest.mark.parametrize("form", [2, 3])
def test_consolidated_by_us(context, tmp_path, form):
    store = context.store(str(tmp_path))
    build_ours(store, form)
    plain = zarr_tree(zarr.open_group(str(tmp_path), mode="r", use_consolidated=False))
    store.consolidate()
    assert store.consolidated_check() == []
    group = zarr.open_consolidated(str(tmp_path), mode="r")
    assert zarr_tree(group) == plain and dict(group.attrs) == ATTRIBUTES
    ours = store.group()
    assert ours.is_consolidated and our_tree(store, ours) == plain
    assert ours.open_array("a/data").shape == (4, 5)
    # It is a copy: a change beside it is not seen through it, and is found by the check.
    store.open("a/data").set_attribute("k", 2)
    assert ours.open_array("a/data").attributes == {"k": 1}
    assert [where for where, _ in store.consolidated_check()] == ["a/data"]


def test_consolidated_without_empty_members(context, tmp_path):
    """As zarrs writes it; what is not empty does count."""
    store = context.store(str(tmp_path), create=True)
    store.create_group("", 3)
    store.create_group("g", 3)
    store.create("x", (4,), "int8", attributes={})
    store.consolidate()
    root = json.loads((tmp_path / "zarr.json").read_text())
    inner = root["consolidated_metadata"]["metadata"]
    for path, member in (("g", "attributes"), ("x", "attributes"), ("x", "storage_transformers")):
        inner[path].pop(member, None)
    (tmp_path / "zarr.json").write_text(json.dumps(root))
    assert store.consolidated_check() == []
    store.group("g").set_attribute("k", 1)
    assert [where for where, _ in store.consolidated_check()] == ["g"]


@pytest.mark.parametrize("form", [2, 3])
def test_consolidated_by_zarr_python(context, tmp_path, form):
    root = zarr.create_group(str(tmp_path), zarr_format=form, attributes={"r": 1})
    root.create_group("a/b", attributes={"deep": True})
    root.create_array("a/data", shape=(4, 5), chunks=(2, 2), dtype="i2", attributes={"k": 1})
    zarr.consolidate_metadata(str(tmp_path))
    store = context.store(str(tmp_path))
    group = store.group(consolidated=1)
    assert group.is_consolidated and store.consolidated_check() == []
    assert [row[:3] for row in group.walk()] == [
        ("a", "group", form), ("a/b", "group", form), ("a/data", "array", form)]
    for folder in ("a/b", "a/data"):  # answered without looking
        for file in (tmp_path / folder).iterdir():
            if file.is_file():
                file.unlink()
    assert group.open_array("a/data").attributes == {"k": 1}
    assert group.open_group("a/b").attributes == {"deep": True}
    never = store.group(consolidated=2)
    with pytest.raises(ZarrcError, match="NOT_FOUND"):
        never.open_array("a/data")


@pytest.mark.parametrize("form", [2, 3])
def test_consolidated_bare_nan(context, tmp_path, form):
    """zarr-python writes bare NaN; our copy is JSON, and still no difference. Theirs neither."""
    root = zarr.create_group(str(tmp_path), zarr_format=form, attributes={"r": float("inf")})
    root.create_array("a", shape=(4,), dtype="f4", fill_value=float("nan"),
                      attributes={"missing_value": float("nan"), "l": [-float("inf"), {"n": float("nan")}]})
    root.create_group("g", attributes={"x": float("nan")})
    zarr.consolidate_metadata(str(tmp_path))
    store = context.store(str(tmp_path))
    assert store.consolidated_check() == []
    store.consolidate()
    assert store.consolidated_check() == []

    def refuse(token):
        raise AssertionError(token)
    text = (tmp_path / (".zmetadata" if form == 2 else "zarr.json")).read_text()
    where = json.loads(text, parse_constant=refuse)
    assert '"NaN"' in json.dumps(where)
    array = store.open("a")
    array.set_attribute("missing_value", "other")
    assert [path for path, _ in store.consolidated_check()] == ["a"]
    assert not array.refresh()  # no other handle changed it
    array.resize((6,))
    assert not array.refresh()
    made = store.create("m", (2,), "int8", zarr_format=form, attributes={"x": float("nan")})
    assert not made.refresh()


@pytest.mark.parametrize("form", [2, 3])
def test_consolidated_text_round_trip(context, tmp_path, form):
    """Consolidating what zarr-python consolidated gives the same members."""
    root = zarr.create_group(str(tmp_path), zarr_format=form)
    root.create_array("b/data", shape=(4,), chunks=(2,), dtype="f4", fill_value=float("nan"))
    root.create_group("B")
    zarr.consolidate_metadata(str(tmp_path))
    name = ".zmetadata" if form == 2 else "zarr.json"
    theirs = json.loads((tmp_path / name).read_text())
    context.store(str(tmp_path)).consolidate()
    ours = json.loads((tmp_path / name).read_text())
    where = (lambda d: d["metadata"]) if form == 2 else (lambda d: d["consolidated_metadata"]["metadata"])
    assert set(where(ours)) - {"B/.zattrs", "b/.zattrs", ".zattrs", "b/data/.zattrs"} == \
        set(where(theirs)) - {"B/.zattrs", "b/.zattrs", ".zattrs", "b/data/.zattrs"}


@peers.needs_zarr_3_3("asks again for groups without children")
def test_consolidated_v2_reads_as_theirs(context, tmp_path):
    """zarr-python writes members into .zmetadata that its .zgroup files do not have. Nothing
    misses them: groups below, empty ones too, are answered without a look at the store."""
    root = zarr.create_group(str(tmp_path), zarr_format=2, attributes={"t": 1})
    root.create_array("g/data", shape=(4,), dtype="f4", attributes={"k": 2})
    root.create_group("g/h")
    root.create_group("e")
    seen = []
    for who in ("theirs", "ours"):
        if who == "theirs":
            zarr.consolidate_metadata(str(tmp_path))
        else:
            context.store(str(tmp_path)).consolidate()
        entries = json.loads((tmp_path / ".zmetadata").read_text())["metadata"]
        for key, value in entries.items():
            more = set(value) - set(json.loads((tmp_path / key).read_text())) if who == "ours" or \
                not key.endswith(".zattrs") else set()
            assert more <= ({"consolidated_metadata"} if who == "theirs" else set()), key
        group = zarr.open_consolidated(str(tmp_path), mode="r", zarr_format=2)
        zarr.create_array(str(tmp_path / "e/late"), shape=(1,), dtype="i1", zarr_format=2, overwrite=True)
        seen.append([(name, dict(node.attrs), isinstance(node, zarr.Array) or
                      node.metadata.consolidated_metadata is not None, list(node.keys()) if
                      isinstance(node, zarr.Group) else node.shape)
                     for name, node in sorted(group.members(max_depth=None))])
        (tmp_path / "e/late/.zarray").unlink()
    assert seen[0] == seen[1] and all(entry[2] for entry in seen[0]) and len(seen[0]) == 4


@pytest.mark.parametrize("form", [2, 3])
@pytest.mark.parametrize("grow", ["resize", "append"])
def test_empty_chunks_grow(context, tmp_path, form, grow):
    """zarr-python 2, and 3.0 and 3.1 in v3, took an empty array's shape for its chunks."""
    document = (cases.document_v2("<i4", 0, (0, 3), (0, 3)) if form == 2 else
                cases.document_v3("int32", 0, [cases.LITTLE], (0, 3), (0, 3)))
    cases.put_document(tmp_path, document)
    array = context.store(str(tmp_path)).open()
    assert array.shape == (0, 3) and array.read("i4").shape == (0, 3)
    data = np.arange(6, dtype="i4").reshape(2, 3)
    if grow == "append":
        array.append(data)
    else:
        array.resize((2, 3))
        array.write(data)
    assert not array.refresh()
    theirs = zarr.open_array(str(tmp_path), mode="r")
    assert theirs.chunks == (1, 3) and (theirs[:] == data).all()
    assert (context.store(str(tmp_path)).open().read("i4") == data).all()


@pytest.mark.parametrize("form", [2, 3])
def test_resize_and_append_seen_by_zarr_python(context, tmp_path, form):
    store = context.store(str(tmp_path))
    array = store.create("a", (4, 5), "int32", zarr_format=form, chunks=(3, 2), fill_value=-1)
    model = np.arange(20, dtype="i4").reshape(4, 5)
    array.write(model)
    array.append(model[:2], 0)
    model = np.concatenate([model, model[:2]], 0)
    array.append(np.full((6, 1), 99, "i4"), 1, memory="fake")
    model = np.concatenate([model, np.full((6, 1), 99, "i4")], 1)
    assert (zarr.open_array(str(tmp_path / "a"), mode="r")[...] == model).all()
    array.resize((2, 7))
    assert not [k for k in store.keys("a") if cases_chunk_row(k, form) >= 1], store.keys("a")
    theirs = zarr.open_array(str(tmp_path / "a"), mode="r+")
    expected = np.full((2, 7), -1, "i4")
    expected[:, :6] = model[:2]
    assert (theirs[...] == expected).all()
    theirs.resize((5, 3))
    theirs.append(np.full((1, 3), 5, "i4"))
    theirs.attrs["units"] = "m"
    assert array.shape == (2, 7) and array.refresh() and array.shape == (6, 3)
    assert not array.refresh()
    assert array.attributes == {"units": "m"}
    assert (array.read("i4") == zarr.open_array(str(tmp_path / "a"), mode="r")[...]).all()


def cases_chunk_row(key, form):
    name = key.split("/", 1)[1]
    if name.startswith((".z", "zarr.json")):
        return -1
    return int(name.split(".")[0]) if form == 2 else int(name.split("/")[1])


def test_dimension_names(context, tmp_path):
    store = context.store(str(tmp_path))
    array = store.create("v3", (2, 3, 4), "uint8", dimension_names=["x", None, "z"])
    assert array.dimension_names == ["x", None, "z"]
    assert zarr.open_array(str(tmp_path / "v3"), mode="r").metadata.dimension_names == ("x", None, "z")
    zarr.create_array(str(tmp_path / "theirs"), shape=(2, 3), dtype="u1", dimension_names=["lat", "lon"])
    assert store.open("theirs").dimension_names == ["lat", "lon"]
    array = store.create("v2", (2, 3), "uint8", zarr_format=2, dimension_names=["a", "b"])
    assert array.dimension_names == ["a", "b"]
    assert zarr.open_array(str(tmp_path / "v2"), mode="r").attrs["_ARRAY_DIMENSIONS"] == ["a", "b"]


def test_both_formats_at_one_path(context, tmp_path):
    """Version 3 wins, and either can be asked for."""
    cases.put_document(tmp_path, cases.document_v2("<i4", 2, (3,), (3,)))
    cases.put_document(tmp_path, cases.document_v3("int32", 3, [cases.LITTLE], (3,), (3,)))
    store = context.store(str(tmp_path))
    assert store.probe("") == ("array", 3)
    assert store.open().zarr_format == 3 and store.open().read("i4").tolist() == [3, 3, 3]
    assert store.open(zarr_format=2).read("i4").tolist() == [2, 2, 2]
    assert peers.read(peers.PYTHON, tmp_path).tolist() == [3, 3, 3]


def test_metadata_and_chunks_in_two_stores(context):
    values, chunks = DictStore(), DictStore()
    store, chunk_store = context.custom(values), context.custom(chunks)
    array = store.create("a", (6,), "int32", chunks=(2,), options={"chunk_store": chunk_store})
    array.write(np.arange(6, dtype="i4"))
    assert set(values.values) == {"zarr.json", "a/zarr.json"}
    assert set(chunks.values) == {"a/c/0", "a/c/1", "a/c/2"}
    again = store.open("a", chunk_store=chunk_store)
    assert again.read("i4", memory="fake").tolist() == list(range(6))
    assert not store.failures and not chunk_store.failures


@pytest.mark.parametrize("lacking", ["nothing", "suffix", "ranges", "atomic"])
def test_store_of_python_functions(context, rng, lacking):
    """Missing capabilities of a store are emulated: it only gets operations that it supports."""
    from zarrc_dict import ATOMIC_PUT, LIST, LOCK, RANGES, SUFFIX, WRITE
    caps = {"nothing": RANGES | SUFFIX | ATOMIC_PUT | LOCK, "suffix": RANGES | ATOMIC_PUT, "ranges": ATOMIC_PUT,
            "atomic": 0}[lacking]
    values = DictStore(caps=caps | LIST | WRITE)
    store = context.custom(values)
    array = store.create("g/a", (9, 11), "int32", chunks=(2, 3), shards=(4, 6))
    data = cases.random_data(rng, (9, 11), "i4")
    array.write(data)
    array.write(data[3:5, 2:9] + 1, Selection.dims(data.shape, slice(3, 5), slice(2, 9)))
    data[3:5, 2:9] += 1
    again = store.open("g/a")
    assert (again.read("i4") == data).all()
    part = Selection.dims(data.shape, slice(None, None, -2), [0, 10, 3])
    assert (again.read("i4", part, memory="fake") == data[::-2, [0, 10, 3]]).all()
    assert [row[:2] for row in store.group("").walk()] == [("g", "group"), ("g/a", "array")]
    assert not store.failures, store.failures
    array.close(), again.close()


def test_copies_of_nodes(context, tmp_path):
    source, target = context.store(str(tmp_path)), context.store()
    build_ours(source, 3)
    source.open("a/data").write(np.ones((4, 5), "i2"))
    source.copy_node("a", target, "copied/a")
    assert {k[len("copied/"):]: v for k, v in target.dump("copied/a").items()} == source.dump("a")
    source.move_node("z", source, "moved/z")
    assert source.probe("z/y/x") == (None, 0) and source.probe("moved/z/y/x") == ("array", 3)
    source.delete_node("moved")
    assert source.keys("moved") == []
    assert [k for k in zarr.open_group(str(tmp_path), mode="r").group_keys()] == ["a"]


def test_urls_without_libcurl(context):
    """They are refused with one line, and local paths work: .ci/run runs this file with the preset minimal."""
    cache = pathlib.Path(os.environ["ZARRC_LIBRARY"]).parents[1] / "CMakeCache.txt"
    if not cache.exists() or not re.search("^ZARR_WITH_CURL:.*=OFF$", cache.read_text(), re.M):
        pytest.skip("this build has libcurl")
    for url in ("http://127.0.0.1:9/x.zarr", "https://u:SECRET@h/x.zip", "zip:http://h/x", "s3://b/x.zarr"):
        with pytest.raises(ZarrcError, match="not supported: this build lacks lib(curl|crypto)$") as caught:
            context.store(url)
        assert caught.value.code == "UNSUPPORTED" and "\n" not in caught.value.message and "SECRET" not in caught.value.message
