"""Groups, the functions of the package, modes, and stores."""
import collections
import gc
import os
import pathlib
import pickle

import numpy as np
import pytest

import zarrc
from zarrc import errors


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_members_are_opened_as_one_is(path, zarr_format):
    """A listing opens arrays of format 3 with the documents that it has read."""
    root = zarrc.create_group(path, zarr_format=zarr_format)
    group = root.create_group("in")
    for i in range(3):
        array = group.create_array(f"a{i}", shape=(4, 2), chunks=(2, 2), dtype="i4", fill_value=7, attributes={"n": i})
        array[:2] = i
    group.create_group("sub").create_array("deep", data=np.arange(3))
    for reader in (zarrc.open_group(path, path="in", mode="r"), zarrc.open_group(path)["in"]):
        members = dict(reader.members(None))
        assert list(members) == ["a0", "a1", "a2", "sub", "sub/deep"]
        for name, found in members.items():
            assert found == reader[name] and found.path == f"in/{name}" and dict(found.attrs) == dict(reader[name].attrs)
        assert [array[...].tolist() for _, array in reader.arrays()] == [[[i, i]] * 2 + [[7, 7]] * 2 for i in range(3)]
    dict(zarrc.open_group(path)["in"].arrays())["a1"][3] = 9
    assert group["a1"][2:].tolist() == [[7, 7], [9, 9]]
    found = dict(group.arrays())["a2"]
    zarrc.open_array(path, path="in/a2").resize((1, 2))
    with pytest.raises(zarrc.errors.ConflictError):  # as of each other handle
        found[...]
    assert found.refresh() and found.shape == (1, 2)
    del group["a2"]
    with pytest.raises(zarrc.errors.NotFoundError):
        found.refresh()
    found = [array for _, array in zarrc.open_group(path, path="in", config={"read_missing_chunks": False}).arrays()]
    with pytest.raises(zarrc.errors.NotFoundError):
        found[0][...]


def test_members(store):
    group = zarrc.open_group(store)
    a = group.create_array("a", shape=3, dtype="i4")
    c = group.create_group("b").create_array("c", shape=2, dtype="f4")
    assert sorted(group) == ["a", "b"] and len(group) == 2 and group.nmembers(None) == 3
    assert list(group.array_keys()) == ["a"] and list(group.group_keys()) == ["b"]
    assert [name for name, _ in group.members(None)] == ["a", "b", "b/c"]
    assert group["b/c"] == c == group["b"]["c"] == group.get_group("b").get_array("c") and group.get("x", 5) == 5
    assert "b/c" in group and "x" not in group and 3 not in group
    assert next(group.array_values()) == a and next(group.groups())[1].name == "/b"
    for name in ("x", "a/x"):
        with pytest.raises(KeyError):
            group[name]
    with pytest.raises(errors.ArrayNotFoundError):
        group.get_array("b")
    with pytest.raises(FileNotFoundError):
        group.get_group("a")
    del group["b"]
    assert list(group) == ["a"]
    with pytest.raises(TypeError):
        group[1]
    for negative in (lambda: group.members(-1), lambda: group.nmembers(max_depth=-1), lambda: group.tree(level=-1)):
        with pytest.raises(ValueError, match="negative"):
            negative()
    with pytest.raises(KeyError):
        del group["b"]
    group["n"] = np.arange(4)
    group["n"] = [[1, 2]]
    assert group["n"].shape == (1, 2)
    group.move("n", "m/n")
    assert sorted(group) == ["a", "m"] and group["m/n"][0, 1] == 2
    assert group.info_complete().items()["No. arrays"] == 2 and group.refresh() == group


def test_require(store):
    group = zarrc.open_group(store)
    one, two = group.require_groups("x", "x/y")
    assert group.require_group("x") == one and two.name == "/x/y"
    array = group.require_array("a", shape=3, dtype="i4")
    assert group.require_array("a", shape=(3,), dtype="f8") == array  # of i4, which can be cast to f8
    text = group.require_array("t", shape=2, dtype="string")
    assert group.require_array("t", shape=2, dtype=text.dtype, exact=True) == text == group.require_array("t", shape=2, dtype="string")
    for wrong in (dict(shape=4, dtype="i4"), dict(shape=3, dtype="i2"), dict(shape=3, dtype="f8", exact=True)):
        with pytest.raises(TypeError):
            group.require_array("a", **wrong)
    with pytest.raises(TypeError):
        group.require_group("a")
    with pytest.raises(TypeError):
        group.require_array("x", shape=1)
    with pytest.raises(ValueError):
        group.create_array("a", shape=1, dtype="i1")
    with pytest.raises(errors.ContainsArrayError):
        group.create_group("a")
    with pytest.raises(errors.ContainsGroupError):
        group.create_array("x", shape=1, dtype="i1")
    assert group.create_group("a", overwrite=True).nmembers() == 0
    for make, value in ((group.zeros, 0), (group.ones, 1), (group.empty, 0)):
        found = make(name=make.__name__, shape=(2, 2), dtype="i2")
        assert (found[...] == value).all()
    assert group.full(name="f", shape=2, fill_value=7)[1] == 7 and group.full_like(name="g", data=np.zeros(3), fill_value=2)[0] == 2


def test_files_are_no_stores(tmp_path):
    for text, hint in ((b"PK\x03\x04", "x is a zip file, .*zip:PATH"), (b"PK", "x is not a Zarr store"),
                       (b'{"version": 1, "refs": {}}', "x is a kerchunk file of references, not a Zarr store: fsspec")):
        (tmp_path / "x").write_bytes(text)
        for mode in ("r", "r+", "a", "w", "w-"):
            for opened in (zarrc.open, zarrc.open_array, zarrc.open_group):
                for place in (tmp_path / "x", tmp_path / "x/a", f"file://{tmp_path}/x"):
                    with pytest.raises(ValueError, match=hint):
                        opened(place, mode=mode, **({"shape": 1, "dtype": "i1"} if opened is zarrc.open_array else {}))
        assert (tmp_path / "x").read_bytes() == text


def test_paths_that_are_not_utf8(tmp_path, numbers):
    """Names of the system are bytes; Python has them as os.fsdecode() does."""
    place = os.path.join(os.fspath(tmp_path), os.fsdecode(b"n\xe4me.zarr"))
    with pytest.raises(errors.NodeNotFoundError):
        zarrc.open(place, mode="r")
    zarrc.create_array(place, name="a", data=numbers, chunks=(16, 16))
    array = zarrc.open_group(pathlib.Path(place), mode="r")["a"]
    assert os.fsencode(array.store.url).endswith(b"/n\xe4me.zarr") and (array[...] == numbers).all()
    assert (pickle.loads(pickle.dumps(array))[...] == numbers).all()
    (chunk,) = pathlib.Path(place).glob("a/c/0/0")
    chunk.write_bytes(b"damage")
    with pytest.raises(errors.CorruptError) as failure:
        array[0, 0]
    assert failure.value.store == "file://" + place and failure.value.key == "a/c/0/0"


def test_tree(store):
    group = zarrc.open_group(store)
    group.create_array("a/b/c", shape=(3, 4), dtype="i4")
    group.create_group("a/d")
    group.create_array("e", shape=(), dtype="f4")
    assert repr(group.tree()) == "/\n├── a\n│   ├── b\n│   │   └── c (3, 4) int32\n│   └── d\n└── e () float32"
    assert repr(zarrc.tree(group, level=0)) == "/\n├── a\n└── e () float32"
    assert repr(group.tree(plain=True)) == repr(group.tree())
    assert "<pre" in group._repr_html_() and "<Group " in repr(group)
    assert repr(zarrc.tree(group.store, level=1)) == repr(group.tree(level=1))


def test_modes(path):
    for mode in ("r", "r+"):
        for opener in (zarrc.open, zarrc.open_array, zarrc.open_group):
            with pytest.raises(FileNotFoundError):
                opener(path, mode=mode)
    array = zarrc.open(path, mode="w", shape=4, dtype="i4")
    array[:] = 1
    for mode in ("a", "r+", None):
        assert zarrc.open(path, mode=mode) == array
    assert zarrc.open(path, mode="a", shape=9)[:].tolist() == [1] * 4
    for opener in (zarrc.open, zarrc.open_array):
        with pytest.raises(errors.ContainsArrayError):
            opener(path, mode="w-", shape=4)
    assert zarrc.open(path, mode="r").read_only
    assert not zarrc.open_array(path, mode="w", shape=4)[:].any()
    assert isinstance(zarrc.open(path, mode="w"), zarrc.Group)
    assert isinstance(zarrc.open(path), zarrc.Group)
    with pytest.raises(ValueError, match="mode"):
        zarrc.open(path, mode="rw")
    with pytest.raises(errors.ArrayNotFoundError):
        zarrc.open_array(path)
    with pytest.raises(errors.GroupNotFoundError):
        zarrc.open_group(path, path="x", mode="r+")


def test_nothing_is_made_by_a_failed_open(tmp_path):
    with pytest.raises(FileNotFoundError):
        zarrc.open_array(tmp_path / "typo.zarr")
    assert not list(tmp_path.iterdir())


def test_creators(store):
    for i, (make, value) in enumerate([(zarrc.zeros, 0), (zarrc.ones, 1), (zarrc.empty, 0)]):
        array = make((2, 3), store=store, path=f"n{i}", chunks=(1, 3), dtype="i2")
        assert array.shape == (2, 3) and array.chunks == (1, 3) and (array[...] == value).all()
    assert zarrc.full(3, 7.5).fill_value == 7.5 and zarrc.array([1, 2, 3], chunks=2)[:].tolist() == [1, 2, 3]
    like = zarrc.ones_like(zarrc.zeros((4, 4), chunks=2, dtype="f4"))
    assert like.chunks == (2, 2) and like.dtype == np.float32 and like[0, 0] == 1
    assert zarrc.open_like(like, "copy", store=store).shape == (4, 4)
    assert zarrc.create((4,), dtype="i4", zarr_format=2, compressor=None, dimension_separator="/").compressors == ()
    assert zarrc.create((4,), codecs=["bytes", {"name": "gzip", "configuration": {"level": 1}}]).compressors[0].name == "gzip"
    for wrong in (dict(synchronizer=1), dict(shape=3), dict(shape=3, dtype="i4", order="X"), dict(data=[1], dtype="i4")):
        with pytest.raises((TypeError, ValueError)):
            (zarrc.open_array if "synchronizer" in wrong else zarrc.create_array)(None, **wrong)
    missing = zarrc.create_array(store, name="m", shape=3, dtype="i4", if_missing=True)
    missing[:] = 5
    assert zarrc.create_array(store, name="m", shape=3, dtype="i4", if_missing=True)[0] == 5


def test_save_and_load(path):
    zarrc.save(path, np.arange(3))
    assert zarrc.load(path).tolist() == [0, 1, 2]
    zarrc.save(path, np.arange(3), np.arange(4), x=np.ones(2))
    found = zarrc.load(path)
    assert sorted(found) == ["arr_0", "arr_1", "x"] and found["x"].tolist() == [1, 1]
    with pytest.raises(ValueError):
        zarrc.save(path)


def test_copies(tmp_path, store):
    path = tmp_path / "source.zarr"
    source = zarrc.open_group(path)
    source.create_array("a/b", data=np.arange(5), attributes={"u": 1})
    dest = zarrc.open_group(store, path="d")
    copy = zarrc.copy(source["a"], dest)
    assert copy["b"][:].tolist() == [0, 1, 2, 3, 4] and copy["b"].attrs["u"] == 1
    with pytest.raises(errors.ExistsError):
        zarrc.copy_all(source, dest)
    zarrc.copy_all(source, dest, if_exists="replace")
    other = zarrc.open_store("memory:")
    zarrc.copy_store(path, other)
    assert zarrc.open_group(other)["a/b"].shape == (5,)


def test_interrupted_copy(store):
    """The message names what continues it."""
    group = zarrc.open_group(store)
    source = group.create_array("a", data=np.arange(5))
    group.store.set("n/.zarrc-job", b'{"zarrc_job": 1, "command": "cp"}')
    with pytest.raises(errors.ExistsError, match="if_exists='skip' continues an interrupted copy"):
        zarrc.copy(source, group, "n")
    assert zarrc.copy(source, group, "n", if_exists="skip")[:].tolist() == [0, 1, 2, 3, 4]
    assert group.store.get("n/.zarrc-job") is None


def test_hierarchy(store):
    nodes = {"g/a": {"zarr_format": 3, "node_type": "array", "shape": [2], "data_type": "int8", "fill_value": 3,
                     "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
                     "chunk_key_encoding": {"name": "default"}, "codecs": ["bytes"], "attributes": {"x": 1}},
             "g": {"zarr_format": 3, "node_type": "group", "attributes": {"y": 2}}}
    made = dict(zarrc.create_hierarchy(store=store, nodes=nodes))
    assert list(made) == ["", "g", "g/a"] and made["g"].attrs["y"] == 2 and made["g/a"][:].tolist() == [3, 3]


def test_stores(tmp_path, path):
    with zarrc.open_store(path) as store:
        store.set("k/a", b"12345")
        store.set_if_not_exists("k/a", b"no")
        store.set_if_not_exists("k/b", memoryview(b"67"))
        assert store.get("k/a") == b"12345" and store.get("k/a", 1, 2) == b"23" and store.get("k/a", 3) == b"45"
        assert store.get("k/a", 9) == b"" and store.get("none") is None and store.getsize("k/b") == 2
        assert sorted(store.list()) == ["k/a", "k/b"] and list(store.list_dir("")) == ["k"] and "k/a" in store
        store.delete("k/a")
        store.delete("k/a")
        store.delete_dir("k")
        assert not list(store.list()) and store.kind == "local" and not store.read_only
        with pytest.raises(FileNotFoundError):
            store.getsize("k/a")
        with pytest.raises(ValueError):
            store.get("../x")
    assert zarrc.open_store(f"file://{path}") == zarrc.open_store(path) != zarrc.open_store(tmp_path)
    assert zarrc.open_store(f"local://{path}") == zarrc.open_store(path) and not os.path.exists("local:")
    one = zarrc.open_store("memory://shared")
    one.set("a", b"1")
    one.set("\x01", b"")
    assert sorted(one.list()) == ["\x01", "a"]
    one.delete("\x01")
    assert zarrc.open_store("memory://shared").get("a") == b"1" and zarrc.open_store("memory:").get("a") is None
    array = zarrc.create_array("memory://shared/x/y", shape=1, dtype="i1")
    assert array.path == "x/y" and array.store == one
    del one, array
    gc.collect()
    assert zarrc.open_store("memory://shared").get("a") == b"1"  # as fsspec's, it outlives its users
    zarrc.delete_memory("shared")
    assert zarrc.open_store("memory://shared").get("a") is None
    zarrc.delete_memory("shared")
    with pytest.raises(zarrc.errors.NotFoundError, match="memory://shared"):
        zarrc.delete_memory("shared")
    for wrong in ("nonsense://x", "file://host/x", "local://host/x"):  # obstore opens s3:
        with pytest.raises((ValueError, ImportError)):  # what opens URLs may be missing
            zarrc.open_store(wrong)
    with pytest.raises(TypeError):
        zarrc.open_store(3)
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError):
        zarrc.open_store(tmp_path / "file")


class ReplacedMapping(collections.UserDict):
    """A mapping in which another writer replaces a value after each look at it."""

    def __init__(self, values):
        super().__init__({"k": values[0]})
        self.values_to_come = iter(values[1:])

    def __getitem__(self, key):
        found = super().__getitem__(key)
        self.data[key] = next(self.values_to_come, found)
        return found


@pytest.mark.parametrize("part", [(), (2,), (0, 50), (2, 50)], ids=str)
def test_values_that_are_replaced_meanwhile(part):
    """What is read is of one value, and all of it."""
    start, length = (*part, 0, 1000)[:2] if len(part) != 1 else (part[0], 1000)
    for values in ([b"a" * 10, b"b" * 99], [b"a" * 10, b"b" * 99, b"c" * 200], [b"a" * 99, b"b" * 10]):
        wanted = [value[start:start + length] for value in values]
        assert zarrc.open_store(ReplacedMapping(values)).get("k", *part) in wanted[1:]
    with pytest.raises(errors.ConflictError, match="k: the value grew each time"):
        zarrc.open_store(ReplacedMapping([b"a" * n for n in range(10, 1000)])).get("k")


def test_parts_with_negative_numbers(store):
    store.set("k", b"0123456789")
    assert store.get("k", 3, 2) == b"34" and store.get("k", 20) == store.get("k", 3, 0) == b""
    for part in ((-1,), (-1, 3), (0, -1)):
        with pytest.raises(ValueError, match="negative"):
            store.get("k", *part)


def test_blocks_and_checksum(store, numbers):
    for shards in (None, (30, 20)):
        z = zarrc.create_array(store, shape=numbers.shape, dtype="int32", chunks=(15, 20), shards=shards, checksum=True,
                               overwrite=True)
        places = [block.coordinates for block in z.iter_blocks(stored=False)]
        assert not list(z.iter_blocks(stored=True)) and len(places) == (4 if shards else 8)
        z[:15, :20] = numbers[:15, :20]
        (block,) = z.iter_blocks(stored=True)
        assert block.coordinates == (0, 0) and block.key == "c/0/0" and block.nbytes == len(store.get(block.key))
        assert [b.coordinates for b in z.iter_blocks(stored=False)] == places[1:]
        assert z.compressors[-1].name == "crc32c"
        data = bytearray(store.get(block.key))
        data[3] ^= 1
        store.set(block.key, bytes(data))
        with pytest.raises(errors.CorruptError):
            z[:15, :20]
    g = zarrc.open_group(store, mode="w")
    assert g.create_array("a", shape=3, dtype="i4", checksum=True).compressors[-1].name == "crc32c"


def annex(base, inside):
    """A store whose files are symbolic links, as git-annex and DataLad make them: into `.git` beside the store, or in it."""
    zarrc.open_group(base / "x.zarr", mode="w").create_array("a", data=np.arange(8), chunks=(4,))
    objects = (base / "x.zarr" if inside else base) / ".git" / "annex"
    objects.mkdir(parents=True)
    files = [file for file in (base / "x.zarr").rglob("*") if file.is_file()]
    for i, file in enumerate(files):
        file.rename(objects / str(i))
        file.symlink_to(os.path.relpath(objects / str(i), file.parent))
    return base / "x.zarr"


def test_links_within_the_hierarchy(tmp_path):
    """An array that is opened by its own path has links into the hierarchy around it."""
    root = annex(tmp_path, inside=True)
    z = zarrc.open_array(root / "a", mode="r")
    assert z[:].tolist() == list(range(8)) and pickle.loads(pickle.dumps(z))[:].tolist() == list(range(8))
    assert zarrc.open_group(root, mode="r")["a"][:].tolist() == list(range(8))
    with zarrc.config.set({"symlinks": "deny"}), pytest.raises(zarrc.errors.StoreError, match=r"is not followed \(option symlinks\)"):
        zarrc.open_array(root / "a", mode="r")


def test_links_out_of_the_hierarchy(tmp_path):
    root = annex(tmp_path, inside=False)
    for place in (root, root / "a"):
        with pytest.raises(zarrc.errors.StoreError) as failed:
            zarrc.open(place, mode="r")
        target = os.readlink(place / "zarr.json")
        assert f'zarr.json to "{target}" leads out of the store (option symlinks)' in str(failed.value)
        assert "zarrc.config.set({'symlinks': 'follow'})" in str(failed.value)
    with zarrc.config.set({"symlinks": "follow"}):
        assert zarrc.open_array(root / "a", mode="r")[:].tolist() == list(range(8))
