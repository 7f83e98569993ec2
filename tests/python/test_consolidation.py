"""Consolidated metadata follows every change of the package (the setting `consolidate`)."""
import asyncio
import os
import warnings

import numpy as np
import pytest
import zarr
import zarrc
from zarrc.errors import ZarrcWarning


def list_consolidated(path, zarr_format):
    """(shape, attributes) of the nodes that zarr-python finds in consolidated metadata."""
    found = zarr.open_group(path, mode="r", zarr_format=zarr_format, use_consolidated=True)
    return {name: (getattr(node, "shape", None), dict(node.attrs)) for name, node in found.members(max_depth=None)}


def list_documents(path, zarr_format):
    """The same as the documents of the nodes say it."""
    found = zarrc.open_group(path, mode="r", zarr_format=zarr_format, use_consolidated=False)
    return {name: (getattr(node, "shape", None), dict(node.attrs)) for name, node in found.members(max_depth=None)}


@pytest.fixture(params=[2, 3])
def hierarchy(tmp_path, request):
    """A hierarchy with consolidated metadata at its root and in a group."""
    path = tmp_path / "x.zarr"
    top = zarrc.create_group(path, zarr_format=request.param, attributes={"t": 1})
    top.create_array("a", data=np.arange(4), attributes={"u": 1})
    top.create_group("g", attributes={"v": 1}).create_array("b", data=np.arange(6), chunks=2)
    zarrc.consolidate_metadata(path, "g")
    zarrc.consolidate_metadata(path)
    return path, request.param


CHANGES = {
    "create array": lambda g: g.create_array("new", data=np.arange(3)),
    "create nested array": lambda g: g.create_array("g/deep/er/new", shape=3, dtype="i4"),
    "create group": lambda g: g.create_group("h", attributes={"w": 1}),
    "require": lambda g: (g.require_group("h/i"), g.require_array("h/j", shape=3)),
    "delete array": lambda g: g.__delitem__("a"),
    "delete group": lambda g: g.__delitem__("g"),
    "resize": lambda g: g["g/b"].resize(9),
    "shrink": lambda g: g["g/b"].resize(3),
    "append": lambda g: g["g/b"].append(np.arange(2)),
    "append later": lambda g: asyncio.run(g["g/b"].async_array.append(np.arange(2))),
    "attributes": lambda g: g["g/b"].attrs.update(k=2),
    "delete attribute": lambda g: g["a"].attrs.__delitem__("u"),
    "attributes of group": lambda g: g["g"].update_attributes({"k": [1]}),
    "overwrite array": lambda g: g.create_array("a", shape=(7,), dtype="f4", overwrite=True),
    "overwrite group": lambda g: g.create_group("g", overwrite=True),
    "set": lambda g: g.__setitem__("a", np.arange(8)),
    "move": lambda g: g.move("g", "h"),
    "copy": lambda g: zarrc.copy(g["g"], g, "h"),
    "hierarchy": lambda g: list(zarrc.create_hierarchy(store=g, nodes={"h/i": {"zarr_format": g.zarr_format, "node_type": "group"}})),
}


@pytest.mark.parametrize("through", [False, True])
@pytest.mark.parametrize("name", CHANGES)
def test_follows(hierarchy, name, through):
    path, zarr_format = hierarchy
    CHANGES[name](zarrc.open_group(path, mode="r+", use_consolidated=through))
    found = list_documents(path, zarr_format)
    assert list_consolidated(path, zarr_format) == found
    if "g" in found and zarrc.open_group(path / "g", mode="r")._is_consolidated:
        assert list_consolidated(path / "g", zarr_format) == list_documents(path / "g", zarr_format)


@pytest.mark.parametrize("name", CHANGES)
def test_setting_false(hierarchy, name):
    path, zarr_format = hierarchy
    before = list_consolidated(path, zarr_format)
    with zarrc.config.set(consolidate=False):
        CHANGES[name](zarrc.open_group(path, mode="r+", use_consolidated=False))
    assert list_consolidated(path, zarr_format) == before != list_documents(path, zarr_format)


@pytest.mark.parametrize("name", CHANGES)
def test_setting_end(hierarchy, name):
    path, zarr_format = hierarchy
    with zarrc.config.set(consolidate="end"):
        CHANGES[name](zarrc.open_group(path, mode="r+", use_consolidated=False))
        missing = set(list_consolidated(path, zarr_format)) - set(list_documents(path, zarr_format))
        assert not missing  # what is gone is not listed, even before the end
    found = list_documents(path, zarr_format)
    assert list_consolidated(path, zarr_format) == found
    if "g" in found and zarrc.open_group(path / "g", mode="r")._is_consolidated:
        assert list_consolidated(path / "g", zarr_format) == list_documents(path / "g", zarr_format)


def writes(path, zarr_format):
    name = path / ("zarr.json" if zarr_format == 3 else ".zmetadata")
    return os.stat(name).st_ino


def test_end_joins_changes(hierarchy):
    path, zarr_format = hierarchy
    before = writes(path, zarr_format)
    with zarrc.config.set(consolidate="end"):
        group = zarrc.open_group(path, mode="r+")
        for i in range(5):
            group.create_array(f"n{i}", data=np.arange(i + 1))
            zarrc.open_array(path / "a", mode="r+").attrs["i"] = i
        assert writes(path, zarr_format) == before
    found = list_consolidated(path, zarr_format)
    assert found == list_documents(path, zarr_format) and found["n4"][0] == (5,) and found["a"][1]["i"] == 4


def test_end_of_a_block_that_fails(hierarchy):
    path, zarr_format = hierarchy
    with pytest.raises(ZeroDivisionError), zarrc.config.set(consolidate="end"):
        zarrc.open_group(path, mode="r+").create_group("h")
        1 / 0
    assert "h" in list_consolidated(path, zarr_format)


def test_root_above_the_store(hierarchy):
    path, zarr_format = hierarchy
    inner = zarrc.open_group(path / "g", mode="r+", use_consolidated=False)
    inner["b"].resize(8)
    inner.create_array("c", data=np.arange(3), overwrite=True)
    assert list_consolidated(path, zarr_format) == list_documents(path, zarr_format)
    zarrc.open_array(path / "g/b", mode="r+").attrs["x"] = 1
    assert list_consolidated(path, zarr_format) == list_documents(path, zarr_format)
    del inner["c"]
    zarrc.create_array(path / "h", shape=3, dtype="i4", zarr_format=zarr_format)
    assert list_consolidated(path, zarr_format) == list_documents(path, zarr_format) and "h" in list_consolidated(path, zarr_format)
    with zarrc.config.set(consolidate="end"):
        inner.create_group("d")
        zarrc.open_array(path / "h", mode="r+").resize(5)
    assert list_consolidated(path, zarr_format) == list_documents(path, zarr_format)


def test_require_of_an_unlisted_node(hierarchy):
    """What a call leaves that is killed before it updates consolidated metadata."""
    path, zarr_format = hierarchy
    with zarrc.config.set(consolidate=False):
        zarrc.open_group(path, mode="r+").create_array("h/a", data=np.arange(3))
    assert zarrc.open_group(path, mode="r").require_group("h").name == "/h" and "h" not in list_consolidated(path, zarr_format)
    zarrc.open_group(path, mode="r+").require_group("h")
    assert list_consolidated(path, zarr_format) == list_documents(path, zarr_format)
    with zarrc.config.set(consolidate=False):
        zarrc.open_group(path, mode="r+").create_array("i/a", data=np.arange(3))
    zarrc.open_group(path, mode="r+").require_array("i/a", shape=3, dtype="i8")
    assert list_consolidated(path, zarr_format) == list_documents(path, zarr_format)


def test_memory_store():
    store = zarrc.open_store("memory:")
    zarrc.create_group(store)
    zarrc.consolidate_metadata(store)
    group = zarrc.open_group(store, mode="r+")
    group.create_array("a", shape=2, dtype="i1")
    assert list(zarrc.open_consolidated(store)) == ["a"]
    with zarrc.config.set(consolidate="end"):
        group.create_array("b", shape=2, dtype="i1")
    assert list(zarrc.open_consolidated(store)) == ["a", "b"]


def test_a_refused_call_changes_nothing(hierarchy):
    path, zarr_format = hierarchy
    with zarrc.config.set(consolidate=False):
        zarrc.open_group(path, mode="r+")["a"].attrs["k"] = 3
    before = list_consolidated(path, zarr_format)
    group = zarrc.open_group(path, mode="r+", use_consolidated=False)
    with pytest.raises(zarrc.errors.ContainsArrayError):
        group.create_array("a", shape=3, dtype="i4")
    with pytest.raises(KeyError):
        del group["nothing"]
    assert list_consolidated(path, zarr_format) == before


def test_no_consolidated_metadata_is_made(tmp_path):
    group = zarrc.create_group(tmp_path / "x.zarr")
    with zarrc.config.set(consolidate="end"):
        group.create_array("a", shape=2, dtype="i1")
    group.create_array("b", shape=2, dtype="i1")
    assert not zarrc.open_group(tmp_path / "x.zarr", mode="r")._is_consolidated


def test_damaged_metadata_above_is_a_warning(tmp_path):
    group = zarrc.create_group(tmp_path / "x.zarr", zarr_format=2)
    array = group.create_array("a", shape=2, dtype="i1")
    (tmp_path / "x.zarr/.zmetadata").write_text("{")
    with pytest.warns(ZarrcWarning, match=r"out of date.*\.zmetadata.*consolidate_metadata"):
        array.attrs["k"] = 1
    assert array.attrs["k"] == 1


@pytest.mark.parametrize("value", ["always", 2, None])
def test_setting(value):
    if value is None:
        with zarrc.config.set(consolidate=None):
            assert zarrc.config["consolidate"] is True
    else:
        with pytest.raises(ValueError, match="consolidate"):
            zarrc.config.set(consolidate=value)


@pytest.mark.parametrize("command,told", [("import", "zarrc import"), ("no such", "zarrc command"), (None, "zarrc command")])
def test_unfinished_array_is_a_warning(tmp_path, command, told):
    zarrc.create_array(tmp_path / "x.zarr/a", shape=2, dtype="i1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        zarrc.open_array(tmp_path / "x.zarr/a")
    (tmp_path / "x.zarr/a/.zarrc-job").write_text("{" if command is None else f'{{"zarrc_job": 1, "command": "{command}"}}')
    with pytest.warns(ZarrcWarning, match=f"x.zarr/a is incomplete: {told} was interrupted"):
        zarrc.open_array(tmp_path / "x.zarr/a")


def test_new_array_without_its_elements_is_unfinished(tmp_path):
    class BrokenArray:
        shape, dtype = (4,), np.dtype("i4")

        def __array__(self, dtype=None, copy=None):
            raise OSError("broken")

    at = tmp_path / "x.zarr/a"
    with pytest.raises(OSError, match="broken"):
        zarrc.create_array(at, data=BrokenArray())
    with pytest.warns(ZarrcWarning, match="a is incomplete: zarrc create was interrupted"):
        zarrc.open_array(at)
    assert (zarrc.create_array(at, data=np.arange(4), overwrite=True)[:] == np.arange(4)).all()
    assert sorted(entry.name for entry in at.iterdir()) == ["c", "zarr.json"]
