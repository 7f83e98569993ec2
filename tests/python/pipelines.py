"""What the tests of the pipeline for zarr-python share: arrays and stores to read and write, and what must be the same."""
import warnings

import numpy as np
import pytest

import zarrc

zarr = pytest.importorskip("zarr")
from zarr.storage import LocalStore, MemoryStore, WrapperStore, ZipStore  # noqa: E402

from zarrc import _pipeline_stores  # noqa: E402

NAME = "zarrc.ZarrcCodecPipeline"
OWN = "zarr.core.codec_pipeline.BatchedCodecPipeline"
BUFFER, OWN_BUFFER = "zarrc.ZarrcNDBuffer", "zarr.buffer.cpu.NDBuffer"
IS_NEW = tuple(map(int, zarr.__version__.split(".")[:2])) >= (3, 2)


@pytest.fixture(autouse=True)
def enable_pipeline():
    """Every test begins with our pipeline, with counters at 0, and without a count of cores."""
    _pipeline_stores._counted = None
    with zarrc.enable():
        zarrc.pipeline_stats(reset=True)
        yield


def own():
    """zarr-python's own pipeline."""
    return zarr.config.set({"codec_pipeline.path": OWN})


def native_only():
    stats = zarrc.pipeline_stats(reset=True)
    assert stats["fallback_chunks"] == 0, stats["reasons"]
    assert stats["native_chunks"] > 0


def fell_back(reason):
    stats = zarrc.pipeline_stats(reset=True)
    assert any(reason in one for one in stats["reasons"]), stats


class Plain(WrapperStore):
    """A store of a class that zarrc does not know; it has the asynchronous calls only."""

    _supports_sync_io = False


def stores(tmp_path):
    return {"local": lambda: LocalStore(tmp_path / "x"), "memory": MemoryStore, "other": lambda: Plain(MemoryStore()),
            "zip": lambda: ZipStore(tmp_path / "x.zip", mode="w")}


FIXED = ["bool", "i1", "<i4", ">i4", "u8", "f2", "<f8", ">f8", "c16", "M8[s]", "m8[ms]", "S5", "U3", "V3",
         [("a", "<i4"), ("b", "f8")]]
FORMATS = {"v2": {"zarr_format": 2}, "v2-f": {"zarr_format": 2, "order": "F", "filters": None}, "v3": {"zarr_format": 3},
           "v3-shards": {"zarr_format": 3, "shards": (10, 8)}}


def make_array(store, dtype, form, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # types without a specification
        return zarr.create_array(store, name="a", shape=(23, 17), chunks=(5, 4), dtype=dtype, **{**FORMATS[form], **more})


def reopen(z):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return zarr.open_array(z.store, path=z.path, mode="r+", zarr_format=z.metadata.zarr_format)


def values(dtype, shape, seed=0):
    numbers = np.random.default_rng(seed).integers(0, 90, shape)
    if dtype.kind == "T" or dtype == object:
        return np.asarray(np.array(numbers.astype(str)), dtype)
    if dtype.fields:
        out = np.zeros(shape, dtype)
        out["a"] = numbers
        return out
    if dtype.kind == "V":
        return np.frombuffer(numbers.astype("u1").repeat(dtype.itemsize).tobytes(), dtype).reshape(shape)
    return numbers.astype(dtype)


BASIC = [np.s_[...], np.s_[3:9, 2], np.s_[::3, 1:], np.s_[1::7, ::6], np.s_[20:, 10:], np.s_[22, 16], np.s_[5:10, 4:8], np.s_[-3:]]
LISTS = [([1, 20, 3], slice(2, 9)), ([0, 5, 7, 22], [1, 16, 3]), (3, [1, 2, 9]), (slice(None, None, 4), [5, 5, 0]),
         ([2, 2, 21], 8)]


def same(a, b):
    assert np.asarray(a).dtype.kind == np.asarray(b).dtype.kind
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
