"""Locations of nodes: roots found in parent folders, explicit roots, regions, suggestions."""
import json
import os

import numpy as np
import pytest
import zarr


@pytest.fixture(params=[2, 3])
def tree(request, tmp_path):
    root = zarr.open_group(tmp_path / "x.zarr", mode="w", zarr_format=request.param)
    group = root.create_group("g")
    array = group.create_array("temp", shape=(4, 6), chunks=(2, 3), dtype="i4")
    array[...] = np.arange(24).reshape(4, 6)
    group.attrs["title"] = "a group"
    return tmp_path


@pytest.mark.parametrize("text, shown", [
    ("x.zarr/g/temp", "x.zarr:/g/temp"), ("x.zarr/g/temp/", "x.zarr:/g/temp"),
    ("./x.zarr/g/temp", "./x.zarr:/g/temp"), ("x.zarr:/g/temp", "x.zarr:/g/temp"),
    ("x.zarr/g:/temp", "x.zarr/g:/temp"), ("x.zarr//g//temp", None),
])
def test_same_node(zarrc, tree, text, shown):
    info = zarrc("info", "--json", text, cwd=tree).json
    assert info["kind"] == "array" and info["shape"] == [4, 6]
    if shown:
        assert info["node"] == shown


def test_file_url_and_absolute(zarrc, tree):
    for text in [f"file://{tree}/x.zarr/g/temp", f"{tree}/x.zarr/g/temp", f"{tree}/x.zarr:/g/temp",
                 f"file://{tree}/x.zarr:/g/temp"]:
        assert zarrc("info", "--json", text).json["path"] == "g/temp"


def test_rm_force_by_url(zarrc, tree):
    zarrc("rm", "-f", f"file://{tree}/x.zarr/g/temp")
    assert not (tree / "x.zarr/g/temp").exists()
    zarrc("rm", "-f", f"file://{tree}/x.zarr/g/temp", f"{tree}/none.zarr:/a", f"file://{tree}/none.zarr/a")
    zarrc("rm", "-f", "nosuch://x/y", code=6)  # --force ignores a missing node, but not a store that cannot be opened


def test_from_inside(zarrc, tree):
    inside = tree / "x.zarr" / "g"
    assert zarrc("info", "--json", "temp", cwd=inside).json["shape"] == [4, 6]
    assert zarrc("info", "--json", ".", cwd=inside).json["attributes"] == {"title": "a group"}
    assert zarrc("info", "--json", "../g/temp", cwd=inside).json["shape"] == [4, 6]
    assert zarrc("ls", cwd=inside).text == "temp\n"


def test_array_in_plain_folder(zarrc, tmp_path):
    zarr.save_array(tmp_path / "plain", np.arange(3))
    assert zarrc("cat", tmp_path / "plain").text == "0\n1\n2\n"


def test_did_you_mean(zarrc, tree):
    err = zarrc("info", "x.zarr/g/tmep", code=3, cwd=tree).err
    assert "there is no Zarr array or group at x.zarr:/g/tmep" in err
    assert 'Did you mean "g/temp"?' in err


def test_node_that_only_consolidated_metadata_names(zarrc, tmp_path):
    for group in ("", "/g", "/g/h"):
        zarrc("create", "--group", f"{tmp_path}/a b.zarr{group}")
    zarrc("consolidate", tmp_path / "a b.zarr")
    (tmp_path / "a b.zarr/g/h/zarr.json").unlink()
    (tmp_path / "a b.zarr/g/zarr.json").unlink()
    err = zarrc("info", tmp_path / "a b.zarr/g", code=3).err
    assert "Did you mean" not in err and f"zarrc consolidate '{tmp_path}/a b.zarr' writes it anew" in err


def test_kinds(zarrc, tree):
    assert "is a group, cat needs an array" in zarrc("cat", "x.zarr/g", code=2, cwd=tree).err
    assert "takes no region" in zarrc("info", "x.zarr/g/temp[0]", code=2, cwd=tree).err
    assert "needs an array" in zarrc("explain", "x.zarr:/g[0]", code=2, cwd=tree).err


def test_names_with_brackets(zarrc, tmp_path):
    zarr.save_array(tmp_path / "a[1]", np.arange(3))
    assert zarrc("info", "--json", tmp_path / "a[1]").json["shape"] == [3]
    assert zarrc("cat", f"{tmp_path}/a[1][2]").text == "2\n"


def test_missing(zarrc, tmp_path):
    assert "the directory does not exist" in zarrc("info", tmp_path / "none.zarr", code=3).err
    (tmp_path / "file").write_text("no store")
    assert "Not a directory" in zarrc("info", tmp_path / "file", code=2).err
    (tmp_path / "empty").mkdir()
    assert "there is no Zarr array or group" in zarrc("info", tmp_path / "empty", code=3).err


def test_new_hierarchy_is_rooted_at_dot_zarr(zarrc, tmp_path):
    zarrc("create", "sub/new.zarr/a/b", "--shape=2", "--dtype=i1", cwd=tmp_path)
    assert (tmp_path / "sub/new.zarr/zarr.json").exists()
    assert zarr.open_group(tmp_path / "sub/new.zarr")["a/b"].shape == (2,)
    zarrc("create", "bare/a", "--shape=2", "--dtype=i1", cwd=tmp_path)
    assert (tmp_path / "bare/a/zarr.json").exists() and not (tmp_path / "bare/zarr.json").exists()


def test_failed_create_leaves_nothing(zarrc, tmp_path):
    zarrc("create", "x.zarr", "--shape=2", "--dtype=nonsense", code=6, cwd=tmp_path)
    assert os.listdir(tmp_path) == []


def fails_half_way(zarrc, tmp_path, *options, **more):
    """Runs an import that fails after it has written some of the data."""
    np.save(tmp_path / "big.npy", np.arange(3000, dtype="i8"))
    half = (tmp_path / "big.npy").read_bytes()[:9000]
    return zarrc("import", "-", *options, "--chunks=100", "--codec=none", input=half, **more)


def all_files(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture
def project(tmp_path):
    """A folder that is not a node. It contains other files and an array."""
    folder = tmp_path / "proj"
    (folder / "src").mkdir(parents=True)
    (folder / "src/main.c").write_text("code")
    zarr.save_array(folder / "plain", np.arange(3))
    return folder


@pytest.mark.parametrize("force, message", [([], "files"), (["--force"], "other keys")])
@pytest.mark.parametrize("where", [".", "src", "../proj"])
def test_new_arrays_leave_files_alone(zarrc, tmp_path, project, force, message, where):
    before = all_files(project)
    assert message in fails_half_way(zarrc, tmp_path, where, *force, code=5, cwd=project).err
    np.save(tmp_path / "whole.npy", np.arange(3))
    zarrc("import", tmp_path / "whole.npy", where, *force, code=5, cwd=project)
    zarrc("create", where, "--shape=2", "-t", "i1", *force, code=5, cwd=project)
    zarrc("create", where, "--shape=2", "-t", "i1", "--if-missing", *force, code=5, cwd=project)
    assert all_files(project) == before


def test_a_failed_import_takes_back_what_it_made(zarrc, tmp_path):
    for format in ["2", "3"]:
        fails_half_way(zarrc, tmp_path, "x.zarr/a", "--zarr-format", format, "--attributes={\"k\": 1}",
                       code=4, cwd=tmp_path)
        assert not (tmp_path / "x.zarr/a").exists()
    fails_half_way(zarrc, tmp_path, "bare", code=4, cwd=tmp_path)
    assert not (tmp_path / "bare").exists()


@pytest.mark.parametrize("location", ["x.zarr/a", "root.zarr", "x.zarr/g/a"])
def test_a_failed_import_keeps_what_it_replaces(zarrc, tmp_path, location):
    np.save(tmp_path / "old.npy", np.arange(7, dtype="i2"))
    zarrc("import", "old.npy", location, "--attributes={\"k\": 1}", "--chunks=2", cwd=tmp_path)
    before = all_files(tmp_path / location)
    for bad, code in (["--codec=nonsense"], 6), ([], 4):
        fails_half_way(zarrc, tmp_path, location, "--force", *bad, code=code, cwd=tmp_path)
        assert all_files(tmp_path / location) == before
    np.save(tmp_path / "new.npy", np.arange(5, dtype="u1"))
    zarrc("import", "new.npy", location, "--force", cwd=tmp_path)
    assert zarrc("cat", location, cwd=tmp_path).text.split() == list("01234")
    assert zarr.open_array(tmp_path / location, mode="r").dtype == "u1"
    assert not list(tmp_path.rglob("*zarrc-import*"))


@pytest.mark.parametrize("format, chunks", [("3", "c"), ("2", "")])
def test_old_chunks_are_not_read(zarrc, tmp_path, format, chunks):
    np.save(tmp_path / "old.npy", np.arange(10, dtype=">i4"))
    zarrc("import", "old.npy", "t.zarr/be", "--chunks=5", "--zarr-format", format, cwd=tmp_path)
    (tmp_path / "t.zarr/be" / ("zarr.json" if format == "3" else ".zarray")).unlink()
    create = ["create", "t.zarr/be", "--shape=10", "-t", "i4", "--chunks=5", "--zarr-format", format]
    result = zarrc(*create, code=5, cwd=tmp_path)
    assert "--force" in result.err and "be" in result.err
    zarrc("import", "old.npy", "t.zarr/be", code=5, cwd=tmp_path)
    zarrc(*create, "--force", cwd=tmp_path)
    assert zarrc("cat", "t.zarr/be", cwd=tmp_path).text.split() == ["0"] * 10
    assert not (tmp_path / "t.zarr/be" / chunks / "0").exists()


def test_groups_and_the_files_of_others(zarrc, tmp_path, project):
    result = zarrc("create", "-g", "proj/src", code=5, cwd=tmp_path)
    assert "files" in result.err and "--force" in result.err
    zarrc("create", "-g", "proj", cwd=tmp_path)  # the folder is an implicit group already, because it contains an array
    assert (project / "src/main.c").read_text() == "code"
    assert zarrc("ls", "proj", cwd=tmp_path).text == "plain\n"
    zarrc("create", "-g", "proj:/src", "--force", cwd=tmp_path)
    assert (project / "src/main.c").read_text() == "code"


def test_a_group_in_the_place_of_an_array(zarrc, tmp_path):
    zarrc("create", "t.zarr/f8", "--shape=2", "-t", "f8", cwd=tmp_path)
    for option in [[], ["--force"], ["--if-missing"]]:
        result = zarrc("create", "-g", "t.zarr/f8", *option, code=5, cwd=tmp_path)
        assert "is an array" in result.err and "zarrc rm" in result.err
    zarrc("create", "-g", "t.zarr", "--if-missing", cwd=tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", "{\"zarr_format\": 3, \"node_type\": \"x\"}"])
def test_broken_nodes_can_be_removed(zarrc, tmp_path, text):
    def put(name):
        zarrc("create", f"t.zarr/{name}", "--shape=4", "-t", "u1", "--force", cwd=tmp_path)
        (tmp_path / f"t.zarr/{name}/zarr.json").write_text(text)

    np.save(tmp_path / "new.npy", np.arange(4))
    put("a")
    zarrc("cat", "t.zarr/a", code=4, cwd=tmp_path)
    assert "broken" in zarrc("create", "t.zarr/a", "--shape=2", "-t", "i1", code=5, cwd=tmp_path).err
    assert "broken" in zarrc("import", "new.npy", "t.zarr/a", code=5, cwd=tmp_path).err
    assert "zarrc rm" in zarrc("create", "-g", "t.zarr/a", "--force", code=5, cwd=tmp_path).err
    zarrc("verify", "t.zarr/a", code=1, cwd=tmp_path)
    zarrc("cp", "t.zarr/a", "t.zarr/b", cwd=tmp_path)
    assert (tmp_path / "t.zarr/b/zarr.json").read_text() == text
    zarrc("mv", "t.zarr/b", "t.zarr/c", cwd=tmp_path)
    zarrc("cp", "t.zarr/a", "t.zarr/c", code=5, cwd=tmp_path)
    zarrc("cp", "t.zarr/a", "t.zarr/c", "--force", cwd=tmp_path)
    assert zarrc("rm", "--json", "t.zarr/c", cwd=tmp_path).json[0]["kind"] == "broken"
    assert not (tmp_path / "t.zarr/c").exists()
    zarrc("import", "new.npy", "t.zarr/a", "--force", cwd=tmp_path)
    assert zarrc("cat", "t.zarr/a", cwd=tmp_path).text.split() == list("0123")
    put("a")
    zarrc("info", "--json", "t.zarr/a", cwd=tmp_path, code=4)
    zarrc("rm", "t.zarr/a", cwd=tmp_path)
    zarrc("consolidate", "t.zarr", cwd=tmp_path)


def test_broken_groups_keep_their_children(zarrc, tmp_path):
    zarrc("create", "t.zarr/g/a", "--shape=2", "-t", "i1", cwd=tmp_path)
    (tmp_path / "t.zarr/g/zarr.json").write_text("{")
    np.save(tmp_path / "new.npy", np.arange(4))
    for command in [["create", "t.zarr/g", "--shape=2", "-t", "i1"], ["import", "new.npy", "t.zarr/g"],
                    ["create", "-g", "t.zarr/g"]]:
        assert "rm -r" in zarrc(*command, "--force", code=5, cwd=tmp_path).err
    assert "-r" in zarrc("rm", "t.zarr/g", code=2, cwd=tmp_path).err
    assert (tmp_path / "t.zarr/g/a/zarr.json").exists()
    zarrc("rm", "-r", "t.zarr/g", cwd=tmp_path)
    assert not (tmp_path / "t.zarr/g").exists()


def test_brackets_in_names_behind_an_explicit_root(zarrc, tmp_path):
    zarr.open_group(tmp_path / "t.zarr", mode="w").create_array("br[0]", data=np.arange(3))
    for text in ["t.zarr/br[0]", "t.zarr:/br[0]", f"{tmp_path}/t.zarr:/br[0]", "t.zarr://br[0]"]:
        assert zarrc("cat", text, cwd=tmp_path).text.split() == list("012")
        assert zarrc("cat", text + "[1]", cwd=tmp_path).text == "1\n"


def test_two_slashes_behind_the_root(zarrc, tree):
    assert zarrc("info", "--json", "x.zarr://g/temp", cwd=tree).json["path"] == "g/temp"
    assert zarrc("info", "--json", f"{tree}/x.zarr://g/temp").json["path"] == "g/temp"
    assert "no store for URLs" in zarrc("info", "ftp://x.zarr/g", code=None, cwd=tree).err


@pytest.mark.parametrize("link", ["c/0/0", "c/0", "c"])
@pytest.mark.parametrize("keys", ["default", "zarrs.default_suffix"])
def test_chunks_behind_a_link_out_of_the_store(zarrc, tmp_path, link, keys):
    """Such chunks cannot be read. That is an error: they are not treated as missing chunks."""
    source = tmp_path / "a"
    zarr.create_array(source, shape=(2 ** 20, 2 ** 20), dtype="i4", chunks=(32, 32), fill_value=7)[5, 6] = 9
    if keys != "default":
        document = json.loads((source / "zarr.json").read_text())
        document["chunk_key_encoding"] = {"name": keys, "configuration": {"suffix": ".tiff"}}
        (source / "zarr.json").write_text(json.dumps(document))
        (source / "c/0/0").rename(source / "c/0/0.tiff")
        link = link.replace("0/0", "0/0.tiff")
    (source / link).rename(tmp_path / "elsewhere")
    (source / link).symlink_to(tmp_path / "elsewhere")
    before = all_files(tmp_path)
    for command in (["cat", f"{source}[5,5:8]"], ["cp", source, tmp_path / "b"], ["mv", source, tmp_path / "b"],
                    ["reencode", source, tmp_path / "b"], ["diff", source, source], ["verify", source],
                    ["info", "--stats", source]):
        if command[0] == "mv":  # to another store, because mv inside a store renames the links as well
            (tmp_path / "t.zarr").mkdir(exist_ok=True)
            command[2] = f"{tmp_path}/t.zarr:/b"
        if command[0] == "verify":  # it is a fault of that object, and the rest is checked
            assert "leads out of the store" in zarrc(*command, code=1).text
        else:
            assert "leads out of the store" in zarrc(*command, code=3).err
        assert not (tmp_path / "b/zarr.json").exists() and not (tmp_path / "t.zarr/b/zarr.json").exists()
    assert {k: v for k, v in all_files(tmp_path).items() if k in before} == before
    zarrc("rm", source)
    assert (tmp_path / "elsewhere").exists() and not source.exists()


def test_strange_files_beside_chunks(zarrc, tmp_path):
    """Files that have no chunk's key are ignored."""
    source = tmp_path / "a"
    zarr.create_array(source, shape=(2 ** 20, 2 ** 20), dtype="i4", chunks=(32, 32), fill_value=7)[5, 6] = 9
    for name in ("c/99999999", "c/x", "c/0/x", "notes.txt"):
        (source / name).write_text("x")
    (source / "readme").symlink_to("/etc/hostname")
    zarrc("verify", source)
    assert zarrc("info", "--stats", "--json", source).json["stored"]["objects"] == 1
    zarrc("diff", source, source)
    (source / "readme").unlink()
    zarrc("reencode", "--chunks=64,64", source, tmp_path / "b")
    assert zarrc("cat", f"{tmp_path}/b[5,5:8]").text.split() == ["7", "9", "7"]


FOREIGN = {
    "netCDF": (b"CDF\x02\0\0\0\0", "ncdump"), "netCDF 5": (b"CDF\x05\0\0\0\0", "xarray"),
    "HDF5": (b"\x89HDF\r\n\x1a\n", "h5dump"), "HDF5 at 512": (bytes(512) + b"\x89HDF\r\n\x1a\n", "h5py"),
    "zip": (b"PK\x03\x04", "zip:PATH"), "TIFF": (b"II*\0", "tifffile"), "TIFF big": (b"MM\0+", "bioformats2raw"),
    "GRIB": (b"GRIB", "cfgrib"), "FITS": (b"SIMPLE  =", "astropy"), "gzip": (b"\x1f\x8b", "unpack"),
    "tar": (bytes(257) + b"ustar", "unpack"), "NumPy": (b"\x93NUMPY", "zarrc import"),
    "references": (b'{"version": 1, "refs": {}}', "kerchunk"),
    "references, old": (b'{\n  ".zgroup": "{}"}', "kerchunk"), "references, spaced": (b' {"refs": {}}', "kerchunk")}


@pytest.mark.parametrize("name", FOREIGN)
def test_files_of_other_formats(zarrc, tmp_path, name):
    """The message tells what the file is, and which program reads it."""
    begin, reader = FOREIGN[name]
    (tmp_path / "x.nc").write_bytes(begin + bytes(300))
    for command in (["info", "x.nc"], ["ls", "x.nc/temp"], ["cat", "x.nc:/temp"], ["cp", "x.nc", "y.zarr"],
                    ["create", "-g", "x.nc/g"], ["rm", "-f", "x.nc"], ["verify", f"file://{tmp_path}/x.nc/a"]):
        error = zarrc(*command, code=6, cwd=tmp_path).err
        assert name.split()[0].strip(",") in error and "not a Zarr store" in error and reader in error, command
    if name != "NumPy":
        error = zarrc("import", "x.nc", "y.zarr", code=6, cwd=tmp_path).err
        assert name.split()[0].strip(",") in error and "not a .npy file" in error and reader in error
    assert (tmp_path / "x.nc").read_bytes() == begin + bytes(300)
    assert zarrc("info", "--json", "x.nc", code=6, cwd=tmp_path).error["code"] == "unsupported"


def test_files_and_folders_that_are_not_stores(zarrc, tmp_path):
    (tmp_path / "text").write_text("hello")
    assert "Not a directory" in zarrc("info", "text/a", code=2, cwd=tmp_path).err
    (tmp_path / "x.n5").mkdir()
    (tmp_path / "x.n5/attributes.json").write_text('{"n5": "2.0.0"}')
    assert "N5" in zarrc("info", "x.n5", code=3, cwd=tmp_path).err
    for name in ("refs", "snapshots", "manifests"):
        (tmp_path / f"ice/{name}").mkdir(parents=True)
    assert "Icechunk" in zarrc("ls", "ice", code=3, cwd=tmp_path).err
    (tmp_path / "ice2/snapshots").mkdir(parents=True)
    (tmp_path / "ice2/repo").write_bytes(b"ICE")
    assert "Icechunk" in zarrc("ls", "ice2", code=3, cwd=tmp_path).err
    (tmp_path / "references").mkdir()
    (tmp_path / "references/.zmetadata").write_text('{"metadata": {}, "record_size": 1}')
    assert "kerchunk" in zarrc("ls", "references", code=3, cwd=tmp_path).err
    (tmp_path / "v1").mkdir()
    (tmp_path / "v1/meta").write_text('{"zarr_format": 1, "shape": [4]}')
    (tmp_path / "v1/attrs").write_text("{}")
    assert "Zarr v1" in zarrc("info", "v1", code=3, cwd=tmp_path).err


def fan(root, groups, to):
    """Groups g0, g1, ... with eight links each; `to(i, k)` is the group that link k of group i leads to."""
    zarr.open_group(root, mode="w")
    for i in range(groups):
        zarr.open_group(root / f"g{i}", mode="w")
    for i in range(groups):
        for k in range(8):
            if to(i, k) < groups:
                (root / f"g{i}/l{k}").symlink_to(f"../g{to(i, k)}")


@pytest.mark.parametrize("command", ["consolidate", "cp", "verify", "tree"])
def test_links_multiply_work(zarrc, tmp_path, command):
    """Links that make a few groups look like 8^8: a limit ends the walk, and an option raises it."""
    store, ring = tmp_path / "fan.zarr", tmp_path / "ring.zarr"
    fan(store, 9, lambda i, k: i + 1)
    fan(ring, 8, lambda i, k: k)
    out = [tmp_path / "out.zarr"] if command == "cp" else []
    failed = zarrc(command, "--limit=linked_directories=500", store, *out, code=4)
    assert "more than 500 directories behind symbolic links" in failed.err
    assert "limit linked_directories" in failed.err and "--limit=linked_directories=VALUE" in failed.err
    failed = zarrc(command, ring, *out, code=1 if command == "verify" else 3)  # verify goes on
    assert "g0/l0: this symbolic link leads to a directory above it" in failed.err + failed.out.decode()
    if command == "tree":  # g6 has 8 + 64 of them
        zarrc(command, "--limit=linked_directories=72", f"{store}/g6")
        zarrc(command, "--limit=linked_directories=71", f"{store}/g6", code=4)


def test_rm_follows_no_link(zarrc, tmp_path):
    ring = tmp_path / "ring.zarr"
    fan(ring, 8, lambda i, k: k)
    assert zarrc("rm", "-r", "--json", ring).json[0]["objects"] == 9 + 64
    assert not ring.exists()
