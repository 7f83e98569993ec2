"""Tensors of DLPack in and out, with those of NumPy and of a library that NumPy knows nothing of."""
import gc
import sys

import numpy as np
import pytest

import zarrc


class Foreign:
    """A tensor that speaks DLPack only, as torch's of bfloat16."""

    def __init__(self, array, tensor=None):
        self.array, self.tensor = array, tensor

    def __dlpack__(self, **options):
        return (self.tensor or self.array).__dlpack__(**options)

    def __dlpack_device__(self):
        return 1, 0


def test_out(numbers):
    array = zarrc.create_array(None, data=numbers, chunks=(16, 16))
    assert (np.from_dlpack(array) == numbers).all()
    part = array.tensor((slice(1, 9), slice(None, None, -2)))
    found = np.from_dlpack(part)
    assert (found == numbers[1:9, ::-2]).all() and np.shares_memory(found, part.array)
    for options in ({}, {"max_version": (0, 8)}, {"max_version": (1, 0)}, {"copy": True}, {"dl_device": (1, 0)}):
        part.__dlpack__(**options)  # dropped: nothing leaks, see below
    with pytest.raises(BufferError):
        part.__dlpack__(dl_device=(2, 0))
    with pytest.raises(ValueError):
        zarrc.create_array(None, shape=2, dtype="datetime64[s]").__dlpack__()


def test_in(numbers):
    array = zarrc.create_array(None, data=numbers, chunks=(16, 16))
    target = np.zeros((60, 20), "int32")
    tensor = Foreign(target)
    assert array.read((slice(None), slice(0, 20)), out=tensor) is tensor
    assert (target == numbers[:, :20]).all()
    array[:2] = Foreign(np.full((2, 40), 7, "int32"))
    array[3] = Foreign(np.full((1,), 9, "int32"))
    assert (array[:2] == 7).all() and (array[3] == 9).all()
    for wrong in (np.zeros((60, 20), "int64"), np.zeros((3, 3), "int32")):
        with pytest.raises(ValueError):
            array.read((slice(None), slice(0, 20)), out=Foreign(wrong))


def test_small_floats():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    data = np.arange(12).reshape(3, 4).astype(ml_dtypes.bfloat16)
    array = zarrc.create_array(None, data=data, chunks=2)
    other = zarrc.create_array(None, shape=(3, 4), dtype="bfloat16", chunks=3)
    other[...] = Foreign(None, array.tensor())
    assert (other[...] == data).all()


def test_torch():
    torch = pytest.importorskip("torch", reason="torch is not among the packages of the tests")
    data = np.arange(12).reshape(3, 4)
    array = zarrc.create_array(None, shape=data.shape, dtype="bfloat16", chunks=2)
    array[...] = data
    assert torch.from_dlpack(array).to(torch.float64).tolist() == data.tolist()


def test_memory_is_freed(numbers):
    array = zarrc.create_array(None, data=numbers)
    part = array.tensor()
    before = sys.getrefcount(part.array)
    for _ in range(100):
        np.from_dlpack(part), part.__dlpack__(), part.__dlpack__(max_version=(1, 0))
    gc.collect()
    after = sys.getrefcount(part.array)
    assert after == before
