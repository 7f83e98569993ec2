"""Every codec in every kind of memory: elements that are written from there are stored as from host memory, and come back
there. docs/status/memory.md tells which of this was run, and where."""
import pathlib
from ctypes import byref, c_int32

import numpy as np
import pytest

import cases
from every_type import CHUNKS, CODECS_V2, SHAPE
from test_registry_rows import CODECS, document
from zarrc_abi import FAKE, KIND, PLUGIN, ZarrcError, lib
from zarrc_ctypes import Context
from zarrc_memory import NEAR, OWN, Tensor

PAGE = pathlib.Path(__file__).parents[2] / "docs/status/memory.md"
ROWS = [[cell.strip(" `") for cell in line.strip("| \n").split(" | ")]
        for line in PAGE.read_text().partition("\n## ")[0].splitlines() if line.startswith("| ")]
TABLE = {row[0]: dict(zip(ROWS[0][1:], row[1:])) for row in ROWS[1:]}
DEVICE = KIND or "fake"  # what "fake" is in this run
MEMORIES = {"host": "host", "pinned": "pinned", "managed": "managed", DEVICE: "fake"}


@pytest.fixture(scope="module")
def kinds():
    made = Context(max_threads=2)
    if KIND != "cuda":  # which has its own
        made.add_near()
    return made


def case(name):
    """(document, elements)"""
    if name in CODECS_V2:
        dtype, fill, filters, data = CODECS_V2[name]
        return cases.document_v2(dtype, fill, SHAPE, CHUNKS, filters=filters), data
    dtype, fill, codecs, data, *more = CODECS[name]
    return document(dtype, fill, codecs, *more), data


def row_name(name):
    return name.removesuffix(" of numbers")


def read_chunks(store):
    return {key: value for key, value in store.dump().items() if not key.startswith((".z", "zarr.json"))}


def test_every_codec_has_a_row():
    assert set(TABLE) == set(CODECS) | {row_name(name) for name in CODECS_V2}


@pytest.mark.parametrize("kind", MEMORIES)
@pytest.mark.parametrize("name", [*CODECS, *(name for name in CODECS_V2 if name not in CODECS)])
def test_kind(kinds, name, kind, record_property):
    made, data = case(name)
    if isinstance(data, list):  # elements of any length, which only host memory has
        if f"{name} of numbers" not in CODECS_V2:
            assert TABLE[name][kind] == ("CI" if kind == "host" else "-")
        return
    record_property("moved", True)  # for scripts/gpu-check
    stores = kinds.store(), kinds.store()
    arrays = [store.create(document=made) for store in stores]
    arrays[0].write(data)
    arrays[1].write(data, memory=MEMORIES[kind])
    assert read_chunks(stores[1]).keys() == read_chunks(stores[0]).keys() != set()
    if not PLUGIN:  # whose encoders may give other bytes
        assert read_chunks(stores[1]) == read_chunks(stores[0])
    cases.same_bits(arrays[1].read(data.dtype), data)
    for array in arrays:
        view = np.empty(data.shape, data.dtype)
        cases.same_bits(array.read_into(view, memory=MEMORIES[kind]), data)
        part = array.read_into(np.empty_like(data), memory=MEMORIES[kind], pipeline="serial")
        cases.same_bits(part, data)
    said = {"pinned": "stand-in", "managed": "stand-in", "cuda": ("ran on", "not run on a GPU yet")}  # cuda: in CI without a GPU
    assert TABLE[row_name(name)][kind].startswith(said.get(kind, "CI"))


if OWN:
    @pytest.mark.parametrize("kind", [*sorted(OWN), "cuda"])
    def test_the_driver_says_the_same_of_the_memory(kinds, kind):
        tensor, found, number = Tensor(np.arange(9), kinds, MEMORIES[kind]), c_int32(), c_int32()
        lib.zarr_memory_classify(kinds.pointer, tensor.struct.data, byref(found), byref(number))
        assert (found.value, number.value) == (NEAR.get(kind, FAKE), 0)


@pytest.mark.skipif(DEVICE != "fake", reason="one run of it is enough")
@pytest.mark.parametrize("name", [name for name in CODECS if isinstance(CODECS[name][3], list)])
def test_elements_of_any_length_stay_on_the_host(context, name):
    made, data = case(name)
    array = context.store().create(document=made)
    array.write_vlen(data)
    with pytest.raises(ZarrcError) as raised:
        array.read_into(np.empty(SHAPE, "V16"), memory="fake")
    assert raised.value.code == "UNSUPPORTED" and "in host memory only" in str(raised.value)
