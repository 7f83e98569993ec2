"""Processes that open, create or replace one node at the same moment."""
import multiprocessing
import os
from collections import Counter

import numpy as np
import pytest

import zarrc

N, ROUNDS = 4, 4
FORK = multiprocessing.get_context("fork")


def work(call, folder, i, barrier, out):
    seen = []
    for n in range(ROUNDS):
        barrier.wait(60)
        try:
            call(f"{folder}/{n}.zarr", i)
            seen.append("done")
        except Exception as problem:
            seen.append(f"{type(problem).__name__}: {problem}" if not isinstance(problem, zarrc.errors.ExistsError)
                        else type(problem).__name__)
    out.put(seen)


def at_once(tmp_path, call):
    """How often each outcome was seen, for each round: call(path, i) in N processes."""
    barrier, out = FORK.Barrier(N), FORK.Queue()
    workers = [FORK.Process(target=work, args=(call, str(tmp_path), i, barrier, out)) for i in range(N)]
    for worker in workers:
        worker.start()
    found = [out.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join()
    return [Counter(one) for one in zip(*found)]


def paths(tmp_path):
    return [f"{tmp_path}/{n}.zarr" for n in range(ROUNDS)]


def documents(path):
    return [name for name in (".zarray", ".zgroup", "zarr.json") if os.path.exists(f"{path}/{name}")]


SHAPE = {"shape": (5,), "dtype": "i4"}
OPENING = {
    "open_group": lambda path, f: zarrc.open_group(path, mode="a", zarr_format=f),
    "open_array": lambda path, f: zarrc.open_array(path, mode="a", zarr_format=f, **SHAPE),
    "open": lambda path, f: zarrc.open(path, mode="a", zarr_format=f, **SHAPE),
    "group": lambda path, f: zarrc.group(path, zarr_format=f),
    "require_group": lambda path, f: zarrc.group(path, zarr_format=f).require_group("s/t"),
    "require_array": lambda path, f: zarrc.group(path, zarr_format=f).require_array("s/t", **SHAPE),
    "if_missing": lambda path, f: zarrc.create_array(path, if_missing=True, zarr_format=f, **SHAPE),
    "open_like": lambda path, f: zarrc.open_like(zarrc.zeros((5,), zarr_format=f), "", store=path),
}


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("name", OPENING)
def test_all_get_the_node(tmp_path, name, zarr_format):
    for seen in at_once(tmp_path, lambda path, i: OPENING[name](path, zarr_format)):
        assert seen == {"done": N}
    for path in paths(tmp_path):
        assert len(documents(path)) == 1


CREATING = {
    "open_group": lambda path, f: zarrc.open_group(path, mode="w-", zarr_format=f),
    "open_array": lambda path, f: zarrc.open_array(path, mode="w-", zarr_format=f, **SHAPE),
    "create_group": lambda path, f: zarrc.create_group(path, zarr_format=f),
    "create_array": lambda path, f: zarrc.create_array(path, zarr_format=f, **SHAPE),
}


@pytest.mark.parametrize("name", [*CREATING, "any"])
@pytest.mark.parametrize("zarr_format", [2, 3, "both"])
def test_one_creates_it(tmp_path, name, zarr_format):
    calls = list(CREATING.values()) if name == "any" else [CREATING[name]]
    formats = (2, 3) if zarr_format == "both" else (zarr_format,)
    for seen in at_once(tmp_path, lambda path, i: calls[i % len(calls)](path, formats[i % len(formats)])):
        assert seen["done"] == 1
        assert seen["ContainsArrayError"] + seen["ContainsGroupError"] == N - 1
    for path in paths(tmp_path):
        assert len(documents(path)) == 1


def replace(path, i):
    zarrc.create_array(path, name="a/b", data=np.full(6 + i, i + 1, "i4"), chunks=1, attributes={"by": i}, overwrite=True,
                       zarr_format=2 + i % 2)


def test_replaced_as_a_whole(tmp_path):
    """Document, attributes and chunks are those of one caller, which no other disturbs."""
    for seen in at_once(tmp_path, replace):
        assert seen == {"done": N}
    for path in paths(tmp_path):
        z = zarrc.open_array(path, path="a/b", mode="r")
        by = z.attrs["by"]
        assert z.zarr_format == 2 + by % 2
        assert np.array_equal(z[...], np.full(6 + by, by + 1))
        assert len(list(z.store.list_prefix("a/b"))) == 6 + by + (1 if z.zarr_format == 3 else 2)
        assert len(documents(f"{path}/a/b")) == len(documents(f"{path}/a")) == len(documents(path)) == 1


@pytest.mark.parametrize("call", [
    lambda path, i: zarrc.open_group(path, mode="w", attributes={"by": i}),
    lambda path, i: zarrc.open_array(path, mode="w", attributes={"by": i}, **SHAPE),
    lambda path, i: zarrc.create_group(path, overwrite=True, attributes={"by": i}),
], ids=["open_group", "open_array", "create_group"])
def test_no_caller_of_w_fails(tmp_path, call):
    for seen in at_once(tmp_path, call):
        assert seen == {"done": N}


def test_saved_group_is_of_one(tmp_path):
    for seen in at_once(tmp_path, lambda path, i: zarrc.save(path, **{f"x{i}": np.full(4, i), "y": np.full(4, i)})):
        assert seen == {"done": N}
    for path in paths(tmp_path):
        g = zarrc.open_group(path, mode="r")
        by = int(g["y"][0])
        assert sorted(g.keys()) == [f"x{by}", "y"]
        assert np.array_equal(g["y"][...], np.full(4, by))


def test_parents_of_several(tmp_path):
    for seen in at_once(tmp_path, lambda path, i: zarrc.create_array(path, name=f"p/q/{i}", zarr_format=2 + i % 2, **SHAPE)):
        assert seen == {"done": N}
    for path in paths(tmp_path):
        assert [len(documents(f"{path}/{at}")) for at in ("", "p", "p/q")] == [1, 1, 1]
        assert len(dict(zarrc.open_group(path, path="p/q", mode="r").members())) == N
