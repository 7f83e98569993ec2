"""Text and bytes of any length, exchanged with zarr-python in both directions: v2 and v3, sharded,
every order and pipeline, empty and long elements, rank 0 and arrays without elements."""
import json

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

import peers
from zarrc_selection import Selection

PIPELINES = ["waves", "serial"]
CASES = [(2, "C", None), (2, "F", None), (3, "C", None), (3, "F", None), (3, "C", "shards")]


def encode_texts(items):
    return [v.encode() if isinstance(v, str) else v for v in items]


def make(path, kind, shape, case, fill):
    """An array by zarr-python; kind is "text" or "bytes"."""
    version, order, shards = case
    chunks = tuple(max(1, min(n, 2)) for n in shape)
    extra = {"shards": tuple(2 * n for n in chunks)} if shards else {}
    if version == 2:
        extra["order"] = order
    elif order == "F" and shape:
        extra["filters"] = [zarr.codecs.TransposeCodec(order=tuple(range(len(shape)))[::-1])]
    dtype = zarr.dtype.VariableLengthUTF8() if kind == "text" else zarr.dtype.VariableLengthBytes()
    return zarr.create_array(path, shape=shape, chunks=chunks, dtype=dtype, zarr_format=version,
                             fill_value=fill, **extra)


def values(rng, kind, n):
    lengths = rng.choice([0, 1, 2, 7, 300, 5000], n, p=[.2, .2, .2, .2, .15, .05])
    if kind == "bytes":
        return [rng.bytes(int(k)) for k in lengths]
    letters = list("abc xyz\n\0\"\\äß€漢😀")
    return ["".join(rng.choice(letters, int(k))) for k in lengths]


def box(items, shape):
    out = np.empty(len(items), dtype=object)
    out[:] = items
    return out.reshape(shape)


@pytest.mark.parametrize("kind", ["text", "bytes"])
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("shape", [(7,), (3, 5), (), (0,), (4, 0), (2, 3, 3)], ids=str)
@pytest.mark.filterwarnings("ignore")
def test_both_ways(context, rng, tmp_path, kind, case, shape):
    if case[2] and shape == ():
        pytest.skip("zarr-python makes no shards without a dimension")
    if case[1] == "F" and case[0] == 3 and not peers.ZARR_AT_LEAST_3_3:
        pytest.skip(f"zarr-python {zarr.__version__} mixes up texts of order F")
    fill = "fü" if kind == "text" else b"\0f"
    n = int(np.prod(shape))
    theirs = make(tmp_path / "theirs", kind, shape, case, fill)
    store = context.store(str(tmp_path / "theirs"))
    assert store.open().read_vlen() == encode_texts([fill] * n)
    data = values(rng, kind, n)
    if shape or kind == "text":  # zarr-python cannot write a single element of bytes
        theirs[...] = box(data, shape) if shape else data[0]
        for pipeline in PIPELINES:
            assert store.open().read_vlen(pipeline=pipeline) == encode_texts(data)
        assert store.open().verify() == []

    make(tmp_path / "ours", kind, shape, case, fill)
    store = context.store(str(tmp_path / "ours"))
    for pipeline in PIPELINES:
        data = values(rng, kind, n)
        store.open().write_vlen(encode_texts(data), pipeline=pipeline)
        back = zarr.open_array(tmp_path / "ours", mode="r")[...]
        assert list(np.asarray(back, dtype=object).ravel()) == data
        assert store.open().read_vlen() == encode_texts(data)


@pytest.mark.parametrize("data_type", ["string", "bytes"])
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.filterwarnings("ignore")
def test_created_here(context, rng, tmp_path, data_type, version):
    kind = "text" if data_type == "string" else "bytes"
    fill = "fü" if kind == "text" else "AGY="
    store = context.store(str(tmp_path / "x"), create=True)
    array = store.create(shape=(3, 4), chunks=(2, 2), dtype=data_type, fill_value=fill,
                         zarr_format=version)
    made = zarr.open_array(tmp_path / "x")
    assert list(np.asarray(made[...], dtype=object).ravel()) == ["fü" if kind == "text" else b"\0f"] * 12
    data = values(rng, kind, 12)
    array.write_vlen(encode_texts(data))
    assert list(np.asarray(made[...], dtype=object).ravel()) == data
    made[1:2, 2:3] = box(data[:1], (1, 1))
    data[6] = data[0]
    assert array.read_vlen() == encode_texts(data)


@settings(max_examples=60, deadline=None)
@given(items=st.lists(st.text(max_size=40), min_size=1, max_size=30),
       part=st.lists(st.text(max_size=9), max_size=30), at=st.integers(0, 29),
       chunk=st.integers(1, 9), shard=st.booleans(), pipeline=st.sampled_from(PIPELINES))
def test_like_a_list(context, items, part, at, chunk, shard, pipeline):
    """Any writes, against a list."""
    items = [v.encode("utf-8", "replace") for v in items]
    part = [v.encode("utf-8", "replace") for v in part][:max(0, len(items) - at)]
    extra = {"shards": (3 * chunk,)} if shard else {}
    array = context.store("memory:").create(shape=(len(items),), chunks=(chunk,),
                                            dtype="string", **extra)
    array.write_vlen(items, pipeline=pipeline)
    if part:
        array.write_vlen(part, Selection.box((len(items),), (at,), (len(part),)), pipeline=pipeline)
        items[at:at + len(part)] = part
    assert array.read_vlen(pipeline=pipeline) == items
    assert array.verify() == []
