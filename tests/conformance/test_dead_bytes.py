"""Shards with bytes that no entry of their index means (format.md 4.2: gaps are legal; writers that
append what they change leave them): read, verified and written in part, whole, nested, behind
codecs in front and around, by both pipelines. A shard inside a codec that compresses is decoded
to memory whose size follows from metadata, so it may have few of them."""
import gzip
import json

import numpy as np
import pytest
import zarr

import cases
from cases import LITTLE, sharding, transpose
from zarrc_abi import Limits, ZarrcError
from zarrc_ctypes import Context
from zarrc_selection import Selection

WANT = np.arange(16, dtype="<i4").reshape(4, 4)
CORNERS = [(0, 0), (0, 2), (2, 0), (2, 2)]


def shard(values, gap, location, backward=False):
    """4 x 4 elements as four raw chunks with a gap in front of the first and behind each."""
    base = 64 if location == "start" else 0
    body, entries = b"\xaa" * gap, {}
    for row, column in CORNERS[::-1] if backward else CORNERS:
        entries[row, column] = (base + len(body), 16)
        body += values[row:row + 2, column:column + 2].tobytes() + b"\xbb" * gap
    index = b"".join(np.array(entries[corner], "<u8").tobytes() for corner in CORNERS)
    return index + body if location == "start" else body + index


def outermost(value, location):
    index = np.array([16 if location == "start" else 0, len(value)], "<u8").tobytes()
    return index + value if location == "start" else value + index


INNER = {where: sharding((2, 2), [LITTLE], [LITTLE], where) for where in ["start", "end"]}
GZIP = cases.gzip(1)
LAYOUTS = {
    "plain": lambda where: ([INNER[where]], WANT, bytes),
    "turned": lambda where: ([transpose(1, 0), INNER[where]], WANT.T, bytes),
    "delta": lambda where: ([{"name": "numcodecs.delta", "configuration": {"dtype": "<i4"}}, INNER[where]],
                            np.diff(WANT.ravel(), prepend=np.int32(0)).astype("<i4").reshape(4, 4), bytes),
    "gzip": lambda where: ([INNER[where], GZIP], WANT, gzip.compress),
    "nested": lambda where: ([sharding((4, 4), [INNER[where]], [LITTLE], where)], WANT,
                             lambda value: outermost(value, where)),
    "nested gzip": lambda where: ([sharding((4, 4), [INNER[where], GZIP], [LITTLE], where)], WANT,
                                  lambda value: outermost(gzip.compress(value), where)),
}


CASES = [(name, gap) for name in LAYOUTS for gap in [1, 1000, 30_000, 3_000_000] if gap <= 1000 or "gzip" not in name]


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("name,gap", CASES)
def test_gaps(context, tmp_path, name, location, gap):
    codecs, inner, wrap = LAYOUTS[name](location)
    document = cases.document_v3("int32", 0, codecs, (4, 4), (4, 4))
    store = context.store(f"file://{tmp_path}", create=True)
    store.put("a/zarr.json", json.dumps(document).encode())
    for backward in [False, True]:
        value = wrap(shard(np.ascontiguousarray(inner), gap, location, backward))
        store.put("a/c/0/0", value)
        array = store.open("a")
        for pipeline in ["waves", "serial"]:
            assert (array.read("<i4", pipeline=pipeline) == WANT).all()
            part = array.read("<i4", Selection.box((4, 4), (1, 1), (3, 1)), pipeline=pipeline)
            assert (part == WANT[1:, 1:2]).all()
        assert all(status == "OK" for status, *_ in array.verify())
        if name != "delta":  # as far as this zarr-python can
            assert (zarr.open_array(tmp_path / "a", mode="r")[...] == WANT).all()
        for pipeline in ["waves", "serial"]:
            store.put("a/c/0/0", value)
            array.write(np.array([[99]], "<i4"), Selection.box((4, 4), (2, 1), (1, 1)), pipeline=pipeline)
            changed = WANT.copy()
            changed[2, 1] = 99
            assert (array.read("<i4") == changed).all()
            if name != "delta":
                assert (zarr.open_array(tmp_path / "a", mode="r")[...] == changed).all()
        array.close()


@pytest.mark.parametrize("name", ["gzip", "nested gzip"])
def test_too_many_to_decode(context, name):
    codecs, inner, wrap = LAYOUTS[name]("end")
    store = context.store("memory:")
    store.put("a/zarr.json", json.dumps(cases.document_v3("int32", 0, codecs, (4, 4), (4, 4))).encode())
    store.put("a/c/0/0", wrap(shard(inner, 3_000_000, "end")))
    with pytest.raises(ZarrcError) as failed:
        store.open("a").read("<i4")
    assert failed.value.code == "CORRUPT" and "a/c/0/0" in failed.value.message


def test_bound():
    """What has to be taken whole is bounded by a limit, which the error names; nothing is lost."""
    narrow = Context(limits=Limits(chunk_bytes=1 << 16))
    store = narrow.store("memory:")
    document = cases.document_v3("int32", 0, [INNER["end"]], (3, 4), (4, 4))
    value = shard(WANT, 1 << 20, "end")
    store.put("a/zarr.json", json.dumps(document).encode())
    store.put("a/c/0/0", value)
    array = store.open("a")
    assert (array.read("<i4") == WANT[:3]).all()
    for chosen in [Selection.box((3, 4), (0, 0), (1, 1)), Selection.box((3, 4), (0, 0), (3, 4))]:
        with pytest.raises(ZarrcError) as failed:
            array.write(np.zeros(chosen.shape, "<i4"), chosen)
        assert failed.value.code == "LIMIT" and "a/c/0/0: a shard of " in failed.value.message
        assert "chunk_bytes" in failed.value.message
    assert store.get("a/c/0/0") == value
