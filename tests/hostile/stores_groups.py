"""Cases for stores.py: groups, consolidated metadata, names, rings of links, deep folders."""
import json
import os

from stores import CORRUPT, GROUP, INVALID, IO, NOT_FOUND, V2, V3, add, v2, v3


def consolidate(metadata, kind="inline", **more):
    """A v3 root with these consolidated children; the array "a" itself is sound."""
    return lambda: dict(v3(), **{"zarr.json": json.dumps(
        {"zarr_format": 3, "node_type": "group", "attributes": {}, "consolidated_metadata":
         {"kind": kind, "must_understand": False, "metadata": metadata}, **more}).encode()})


def zmetadata(metadata, **more):
    return lambda: dict(v2(), **{".zmetadata": json.dumps(
        {"zarr_consolidated_format": 1, "metadata": metadata, **more}).encode()})


def break_consolidated(name, files, group=None, **steps):
    """Broken consolidated metadata: the array can still be read by its own path."""
    add(name, files, values={"read": "7"}, **({"group": group} if group else {}), **steps)


ARRAY = dict(V3)
for _i, _path in enumerate(["../out", "a/../../out", "/etc/passwd", "a//b", ".", "..", "a/./b", "",
                            "a\0b", "a/", "\\..\\x", "x" * 100000]):
    break_consolidated(f"consolidated_path_{_i}", consolidate({_path: ARRAY}), group=None, list=None, walk=None,
           child=None, check=None)
for _i, _key in enumerate(["../.zarray", "/.zarray", "a/../b/.zarray", "a/.zarray/.zarray", "a", ""]):
    break_consolidated(f"zmetadata_key_{_i}", zmetadata({".zgroup": {"zarr_format": 2}, _key: V2}), group=None,
           list=None, walk=None, child=None, check=None)
break_consolidated("consolidated_lies", consolidate({"a": dict(ARRAY, shape=[400, 400])}))
break_consolidated("consolidated_ghost", consolidate({"ghost": ARRAY}), child=(NOT_FOUND, "a"))
break_consolidated("consolidated_child_broken", consolidate({"a": dict(ARRAY, shape="x")}), list=None, walk=None,
       child=(CORRUPT, "shape"))
break_consolidated("consolidated_child_null", consolidate({"a": None}), list=None, walk=None, child=None)
break_consolidated("consolidated_not_object", consolidate([1, 2]), group=None, list=None, walk=None, child=None,
       check=None)
break_consolidated("consolidated_kind", consolidate({"a": ARRAY}, kind="elsewhere"), group=None, list=None,
       walk=None, child=None, check=None)
break_consolidated("consolidated_child_below_array", consolidate({"a": ARRAY, "a/b": ARRAY}), list=None,
       walk=None, check=None)
break_consolidated("consolidated_100000", consolidate({f"n{i}": {"zarr_format": 3, "node_type": "group"}
                                            for i in range(100000)}), child=(NOT_FOUND, "a"))
break_consolidated("consolidated_deep_path", consolidate({"/".join(["d"] * 20000): ARRAY}), group=None, list=None,
       walk=None, child=None, check=None)
break_consolidated("group_broken", lambda: dict(v3(), **{"zarr.json": b"{"}), group=(CORRUPT, "zarr.json"),
       check=(CORRUPT, "zarr.json"))
break_consolidated("group_is_fifo", lambda: {k: v for k, v in v3().items() if k != "zarr.json"},
       group=(IO, "zarr.json"), check=(IO, "zarr.json"),
       prepare=lambda root: os.mkfifo(f"{root}/zarr.json"))
break_consolidated("zmetadata_broken", lambda: dict(v2(), **{".zmetadata": b"[[["}), group=None, list=None,
       walk=None, child=None, check=None)
break_consolidated("children_broken", lambda: dict(v3(), **{"b/zarr.json": b"{", "c/zarr.json": b"",
                                                "d/zarr.json": b'{"zarr_format": 3}'}))
break_consolidated("children_deep", lambda: v3(), walk=(INVALID, "dddd"), prepare=lambda root: deep_folders(root))
break_consolidated("group_below_array", lambda: dict(v3(), **{"a/inner/zarr.json": GROUP}))
break_consolidated("names_odd", lambda: dict(v3(), **{f"{name}/zarr.json": GROUP for name in
                                          ("__x", "...", "a b", "\u00e9", "x" * 250)}))
break_consolidated("names_not_utf8", lambda: v3(), list=None, walk=None,
       prepare=lambda root: os.mkdir(os.fsencode(root) + b"/\xff\xfe"))
break_consolidated("groups_in_a_ring", lambda: dict(v3(), **{"d/zarr.json": GROUP}), walk=(IO, "d/ring"),
       check=None, prepare=lambda root: os.symlink("..", f"{root}/d/ring"))
break_consolidated("folders_in_a_ring", lambda: v3(), list=None, walk=None, chunks=(IO, "a/ring"), verify=(IO, "a/ring"),
       prepare=lambda root: os.symlink("..", f"{root}/a/ring"))


def deep_folders(root):
    folder = os.open(root, os.O_RDONLY)
    for _ in range(600):
        os.mkdir("d" * 20, dir_fd=folder)
        deeper = os.open("d" * 20, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = deeper
        with open(os.open("zarr.json", os.O_WRONLY | os.O_CREAT, dir_fd=folder), "wb") as file:
            file.write(GROUP)
    os.close(folder)
