"""asyncio: many requests at once, without threads of their own, and what cancels them."""
import asyncio
import gc
import os
import threading
import time

import numpy as np
import pytest

import zarrc
from zarrc import _aio, _core


def test_many_requests(store, numbers):
    array = zarrc.create_array(store, name="a", data=numbers, chunks=(7, 7)).async_array

    async def work():
        before = threading.active_count(), len(os.listdir("/proc/self/fd"))
        found = await asyncio.gather(*[array.getitem((i % 60, slice(None, None, -1))) for i in range(500)])
        after = threading.active_count(), len(os.listdir("/proc/self/fd"))
        assert after[0] == before[0] and after[1] <= before[1] + 3  # a pipe, not a descriptor a request
        return found

    for i, row in enumerate(asyncio.run(work())):
        assert (row == numbers[i % 60, ::-1]).all()


@pytest.mark.parametrize("codec", [None, "auto"])
def test_small_reads_are_done_at_once(path, numbers, codec):
    """The call that submits a small read carries it out, if nothing must be waited for."""
    store = zarrc.open_store("memory:")
    array = zarrc.create_array(store, name="a", data=numbers, chunks=(10, 10), compressors=codec)
    theirs = zarrc.create_array({}, name="a", data=numbers, chunks=(10, 10), compressors=codec)
    out, queue = np.zeros((10, 10), numbers.dtype), _core.new_queue()
    one = array._submit(queue, 0, array._select((slice(10), slice(10)), False), out, 0, None)
    assert one.is_done() and one.wait() == 0 and (out == numbers[:10, :10]).all()
    whole = np.zeros_like(numbers)
    others = [array._submit(queue, 0, None, whole, 0, None), array._submit(queue, 1, None, numbers, 0, None),
              theirs._submit(queue, 0, theirs._select((slice(10), slice(10)), False), np.zeros_like(out), 0, None)]
    assert not others[1].is_done()  # a write
    for request in others:
        request.wait()
    told = [request for request in others if not request.is_done()]  # the pool may be as fast
    while told:
        for request in queue.take():
            told.remove(request)
    assert not _core.flights()
    store.set("a/c/0/0", b"damage")
    failed = array._submit(queue, 0, array._select((slice(10), slice(10)), False), out, 0, None)
    assert failed.is_done()
    with pytest.raises(zarrc.errors.CorruptError, match="a/c/0/0"):
        failed.wait()

    async def work():
        with pytest.raises(zarrc.errors.CorruptError, match="a/c/0/0"):
            await array.async_array.getitem((0, 0))
        assert await array.async_array.getitem((10, 10)) == numbers[10, 10]

    asyncio.run(work())


def test_small_reads_let_other_tasks_run(numbers):
    array = zarrc.create_array("memory:", data=numbers, chunks=(10, 10)).async_array

    async def work():
        async def other():
            seen.append(1)

        seen, task = [], asyncio.create_task(other())
        for i in range(100):
            assert await array.getitem((i % 60, 0)) == numbers[i % 60, 0]
        assert seen and task.done()

    asyncio.run(work())


def test_writes(store):
    async def work():
        array = zarrc.create_array(store, name="a", shape=(20, 4), dtype="i4", chunks=(3, 3)).async_array
        await asyncio.gather(*[array.setitem(i, i) for i in range(20)])
        await array.set_orthogonal_selection(([1, 2], [0, 3]), [[7, 8], [9, 10]])
        await array.set_coordinate_selection(([5], [1]), -1)
        assert await array.append(np.ones((2, 4))) == (22, 4)
        assert (await array.get_block_selection((0, 0))).shape == (3, 3)
        assert (await array.get_mask_selection(np.ones((22, 4), bool))).shape == (88,)
        out = np.zeros((22, 4), ">i4")
        assert await array.get_basic_selection(out=out) is out
        await array.resize((6, 4))
        await array.update_attributes({"a": 1})
        assert array.attrs["a"] == 1 and array.shape == (6, 4)
        assert await array.nchunks_initialized() == 4
        assert array.chunks == (3, 3) and isinstance(await array.nbytes_stored(), int)
        with pytest.raises(IndexError):
            await array.getitem(99)
        with pytest.raises(AttributeError):
            array.nonsense
        return out

    out = asyncio.run(work())
    assert out[1].tolist() == [7, 1, 1, 8] and out[5, 1] == -1 and out[21, 0] == 1


def test_text(store):
    async def work():
        array = zarrc.create_array(store, name="a", shape=3, dtype=str).async_array
        await array.setitem(slice(None), ["a", "b", "c"])
        return (await array.getitem(slice(None, None, -1))).tolist(), await array.getitem(1)

    assert asyncio.run(work()) == (["c", "b", "a"], "b")


def test_errors(path, numbers):
    array = zarrc.create_array(path, data=numbers, chunks=(10, 10), config={"read_missing_chunks": False})
    array.store.delete("c/0/0")

    async def work():
        results = await asyncio.gather(*[array.async_array.getitem((slice(i, i + 10), 0)) for i in (0, 10)],
                                       return_exceptions=True)
        assert isinstance(results[0], zarrc.errors.ChunkNotFoundError) and results[0].chunk == (0, 0)
        assert (results[1] == numbers[10:20, 0]).all()

    asyncio.run(work())


def test_cancel(path):
    array = zarrc.create_array(path, shape=(400, 400), dtype="f8", chunks=(4, 4))
    data = np.random.default_rng(0).random((400, 400))

    async def work():
        task = asyncio.create_task(array.async_array.setitem(..., data))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)
        await array.async_array.setitem(0, 1.0)  # the loop goes on

    asyncio.run(work())
    assert (array[0] == 1).all()


def test_groups(path):
    async def work():
        group = await zarrc.open_async(path, mode="w")
        array = await group.create_array("a/b", shape=3, dtype="i4")
        await array.setitem(1, 5)
        assert await group.contains("a") and await group.nmembers(None) == 2
        assert (await (await group.getitem("a/b")).getitem(1)) == 5
        assert [path async for path, _ in group.members(None)] == ["a", "a/b"]
        assert [name async for name in group.keys()] == ["a"]
        assert (await zarrc.open_async(path + "/a/b", mode="r")).metadata == array.metadata
        await group.delitem("a")
        assert await group.get("a") is None and group.name == "/"

    asyncio.run(work())


def test_indexers(store, numbers):
    array = zarrc.create_array(store, name="a", data=numbers, chunks=(7, 7)).async_array
    mask = numbers % 3 == 0

    async def work():
        assert (await array.oindex.getitem(([1, 5], slice(2, 9, 3))) == numbers[[1, 5], 2:9:3]).all()
        assert (await array.vindex.getitem(([1, 5], [2, 3])) == numbers[[1, 5], [2, 3]]).all()
        assert (await array.vindex.getitem(mask) == numbers[mask]).all()
        assert array.with_config({"order": "F"}).order == "F"
        with pytest.raises(IndexError):
            await array.vindex.getitem((slice(3), 1))

    asyncio.run(work())


def test_twins_of_groups(path):
    """What a group does, awaited or iterated over."""
    async def work():
        group = await zarrc.open_async(path, mode="w")
        await group.setitem("a", np.arange(4))
        first, second = await group.require_groups("g", "h")
        assert isinstance(first, zarrc.AsyncGroup) and second.name == "/h"
        ones = await group.ones(name="g/ones", shape=3)
        assert isinstance(ones, zarrc.AsyncArray) and (await ones.getitem(...)).tolist() == [1, 1, 1]
        assert (await (await group.zeros_like(name="z", data=ones.array)).getitem(0)) == 0
        assert (await group.require_array("a", shape=(4,))).shape == (4,) and (await group.get_array("a")).ndim == 1
        assert (await group.get_group("g")).path == "g"
        assert [name async for name in group.array_keys()] == ["a", "z"]
        assert [name async for name in group.group_keys()] == ["g", "h"]
        assert [name async for name, node in group.arrays() if isinstance(node, zarrc.AsyncArray)] == ["a", "z"]
        assert [node.path async for node in group.group_values()] == ["g", "h"]
        assert [node.path async for node in group.array_values()] == ["a", "z"]
        assert [name async for name, _ in group.groups()] == ["g", "h"]
        made = {name: node async for name, node in group.create_hierarchy({"h/i": {"zarr_format": 3, "node_type": "group"}})}
        assert isinstance(made["h/i"], zarrc.AsyncGroup)
        await group.move("g", "h/g")
        assert await group.contains("h/g/ones") and "ones" in str(await group.tree())
        assert (await group.info_complete()).items()["No. arrays"] == 3

    asyncio.run(work())


def test_attributes_of_a_group(store):
    group = zarrc.create_group(store)
    assert asyncio.run(group.update_attributes_async({"a": 1})) is group and group.attrs["a"] == 1


def test_names_of_twins():
    """Every public name of zarr-python's AsyncArray and AsyncGroup is here, except constructors: `zarrc.open_async` opens both."""
    zarr = pytest.importorskip("zarr", reason="scripts/venv installs zarr")
    from zarrc import _aio
    for theirs, ours, plain in ((zarr.AsyncArray, zarrc.AsyncArray, _aio._PLAIN), (zarr.AsyncGroup, zarrc.AsyncGroup, _aio._PLAIN_GROUP)):
        public = {name for name in dir(theirs) if not name.startswith("_")}
        assert set(dir(ours.__new__(ours))) >= plain  # what a prompt completes
        assert public - set(dir(ours)) - plain <= {"from_dict", "from_store", "open", "create", "create_dataset", "require_dataset"}


def test_append_to_a_dimension_that_is_not_there(store):
    array = zarrc.create_array(store, name="a", shape=(2, 2), dtype="i4").async_array
    for axis in (2, -3):
        with pytest.raises(IndexError, match=f"axis {axis}"):
            asyncio.run(array.append(np.ones((2, 1), "i4"), axis))
    assert asyncio.run(array.append(np.ones((2, 1), "i4"), -1)) == (2, 3)


@pytest.mark.parametrize("how", ["cancelled", "closed"])
def test_requests_of_loops_that_were_closed(path, how):
    """No task takes the ends of their requests, which hold memory and descriptors."""
    array = zarrc.create_array(path, data=np.random.default_rng(0).random((300, 300)), chunks=(5, 5)).async_array

    async def work():
        if how == "closed":
            coroutine = array.getitem(...)
            coroutine.send(None)
            coroutine.close()
            return
        task = asyncio.create_task(array.getitem(...))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()

    async def last():
        return await array.getitem(0)

    before = len(os.listdir("/proc/self/fd"))
    for _ in range(8):
        asyncio.run(work())
    for _ in range(100):
        asyncio.run(last())
        gc.collect()
        if not _core.flights() and len(os.listdir("/proc/self/fd")) <= before + 4:
            return
        time.sleep(.1)
    raise AssertionError(f"{len(_core.flights())} requests stay")


def test_an_ndbuffer_is_filled(path):
    """As by zarr-python's methods, the array in it is returned."""
    NDBuffer = pytest.importorskip("zarr.buffer.cpu").NDBuffer
    z = zarrc.create_array(path, data=np.arange(20).reshape(4, 5), chunks=(2, 2))
    out = NDBuffer.create(shape=(2, 2), dtype="i8")
    found = asyncio.run(z.async_array.get_orthogonal_selection(([0, 3], [1, 2]), out=out))
    assert found is out.as_ndarray_like() and found.tolist() == [[1, 2], [16, 17]]


def test_arrays_of_a_class_need_no_thread(path, numbers, monkeypatch):
    """A read with like= is a request, as any other, so that a cancelled task ends it."""
    class Matrix(np.ndarray):
        pass

    async def refuse(*unused, **named):
        raise AssertionError("a thread")

    z = zarrc.create_array(path, data=numbers, chunks=(16, 16))
    texts = zarrc.create_array(None, data=np.array(["a", "b"]), like=Matrix)
    monkeypatch.setattr(_aio, "run_on_thread", refuse)
    for found in (asyncio.run(z.async_array.getitem(slice(3), like=Matrix)), asyncio.run(z.with_config({"like": Matrix}).async_array.getitem(slice(3)))):
        assert type(found) is Matrix and (found == numbers[:3]).all()
    assert asyncio.run(texts.async_array.getitem(...)).tolist() == ["a", "b"]


def test_controls_of_calls(store):
    """A call's own limit comes before that of the array."""
    data = np.arange(1 << 17, dtype="u1")
    a = zarrc.create_array(store, name="a", data=data, chunks=1 << 17).async_array
    limited = a.with_config({"memory_bytes": "64K"})
    calls = (lambda z, **controls: z.getitem(..., **controls), lambda z, **controls: z.setitem(..., data, **controls), lambda z, **controls: z.read_many([...], **controls),
             lambda z, **controls: z.append(data[:3], **controls))

    async def run():
        for call in calls:
            for z, controls in ((limited, {}), (a, {"memory_bytes": 65536})):
                with pytest.raises(zarrc.errors.LimitError):
                    await call(z, **controls)
            with pytest.raises(TypeError, match="similar names are memory_bytes"):
                await call(a, memory_byte=1)
            await call(limited, memory_bytes="64M")
        assert (await a.getitem(slice(1 << 17)) == data).all()

    asyncio.run(run())
