"""Counts copies: elements that must be copied are copied once, and only copies that need the host
go through it."""
import numpy as np
import pytest

import cases
import s3_server
from cases import BIG, LITTLE, sharding, transpose, zstd
from zarrc_abi import FAKE, Stats, ZarrcError
from zarrc_selection import Selection

WRITE_EMPTY = 2
DATA = np.arange(16 * 24, dtype="i4").reshape(16, 24)


def make(context, codecs, memory, chunks=(4, 24)):
    store = context.store("memory:", device_type=FAKE if memory == "fake" else 0)
    document = cases.document_v3("int32", 0, codecs, DATA.shape, chunks)
    return store.create(document=document)


def read(array, memory, selection=None, **options):
    stats = Stats()
    got = array.read("i4", selection, memory=memory, stats=stats, **options)
    return got, stats


def write(array, memory, data=DATA, selection=None, **options):
    stats = Stats()
    array.write(data, selection, memory=memory, stats=stats, **options)
    return stats


@pytest.mark.parametrize("chunks", [(4, 24), (4, 6), (5, 7)])
def test_device_to_device(context, chunks):
    """Values on the device, uncompressed, destination on the device: the host sees nothing."""
    array = make(context, [LITTLE], "fake", chunks)
    stats = write(array, "fake", empty_chunks=WRITE_EMPTY)
    assert stats.copies_decoded_host == stats.copies_down == stats.copies_up == 0, stats
    got, stats = read(array, "fake")
    assert (got == DATA).all()
    assert stats.copies_decoded_host == stats.copies_down == stats.copies_up == 0, stats
    assert stats.copies_host == 0, stats
    part = Selection.dims(DATA.shape, slice(1, 9), slice(3, None, 2))
    got, stats = read(array, "fake", part)
    assert (got == DATA[1:9, 3::2]).all()
    assert stats.copies_decoded_host == stats.copies_down == stats.copies_up == 0, stats


def test_device_byte_order_and_transpose(context):
    """Byte order and permutation are carried out by the strided copy, on the device too."""
    array = make(context, [transpose(1, 0), BIG], "fake")
    stats = write(array, "fake", empty_chunks=WRITE_EMPTY)
    assert stats.copies_decoded_host == stats.copies_down == stats.copies_up == 0, stats
    got, stats = read(array, "fake")
    assert (got == DATA).all()
    assert stats.copies_decoded_host == stats.copies_down == stats.copies_up == 0, stats


def test_device_shards(context):
    """Inner chunks of uncompressed shards; only the index goes through the host."""
    array = make(context, [sharding((2, 6), [LITTLE])], "fake", (8, 12))
    write(array, "fake")
    got, stats = read(array, "fake")
    assert (got == DATA).all()
    assert stats.copies_decoded_host == 0, stats


def test_host_whole_chunks_are_direct(context):
    array = make(context, [LITTLE], "host")
    stats = write(array, "host")
    assert stats.chunks_direct == stats.chunks_total == 4 and stats.copies_host == 0, stats
    got, stats = read(array, "host")
    assert (got == DATA).all()
    assert stats.chunks_direct == stats.chunks_total == 4 and stats.copies_host == 0, stats


def test_host_whole_chunks_are_decoded_in_place(context):
    array = make(context, [LITTLE, zstd()], "host")
    stats = write(array, "host")
    assert stats.chunks_direct == 4 and stats.copies_host == 0, stats
    got, stats = read(array, "host")
    assert (got == DATA).all()
    assert stats.chunks_direct == 4 and stats.copies_host == 0, stats
    got, stats = read(array, "host", pipeline="serial")  # without short cuts
    assert (got == DATA).all()
    assert stats.chunks_direct == 0 and stats.copies_host >= 4, stats


def test_host_strided_is_one_copy(context):
    array = make(context, [LITTLE, zstd()], "host", (4, 6))
    write(array, "host")
    got, stats = read(array, "host")
    assert (got == DATA).all()
    assert stats.chunks_direct == 0 and stats.bytes_host == DATA.nbytes, stats


@pytest.mark.parametrize("store", ["host", "fake"])
def test_cpu_codecs_for_a_device(context, store):
    """zstd runs on the host; each decoded byte goes up once, not twice."""
    array = make(context, [LITTLE, zstd()], store)
    stats = write(array, "fake")
    assert stats.bytes_down == DATA.nbytes and stats.copies_decoded_host == 4, stats
    got, stats = read(array, "fake")
    assert (got == DATA).all()
    assert stats.bytes_up == DATA.nbytes, stats
    assert stats.copies_decoded_host == 4, stats
    if store == "host":
        assert stats.copies_down == 0, stats


def test_host_values_to_device(context):
    array = make(context, [LITTLE], "host")
    write(array, "host")
    before = context.counters()
    got, stats = read(array, "fake")
    assert (got == DATA).all()
    assert stats.copies_down == stats.copies_host == 0, stats
    after = context.counters()
    assert after.bytes_up - before.bytes_up == DATA.nbytes  # the store moves them itself
    assert after.bytes_down == before.bytes_down


@pytest.mark.parametrize("codecs", [[LITTLE], [LITTLE, zstd()], [sharding((4, 8), [LITTLE, zstd()])]], ids=["raw", "zstd", "shards"])
def test_values_of_a_bucket_to_device(context, tmp_path, monkeypatch, codecs):
    """The CPU writes, the device reads: each byte goes up once, and no decoded one is copied on the host."""
    (tmp_path / s3_server.BUCKET).mkdir()
    with s3_server.start_service(tmp_path / s3_server.BUCKET) as server:
        for name, value in s3_server.make_variables(server.url).items():
            monkeypatch.setenv(name, value)
        try:
            store = context.store(f"s3://{s3_server.BUCKET}/x.zarr")
        except ZarrcError as problem:
            pytest.skip(str(problem))
        array = store.create(document=cases.document_v3("int32", 0, codecs, DATA.shape, (16, 8)))  # of 512 bytes
        write(array, "host")
        before = context.counters()
        got, stats = read(array, "fake")
        assert (got == DATA).all()
        after = context.counters()
        indexes = stats.index_reads * 4 * 16
        assert stats.bytes_host == indexes and stats.copies_down == 0, stats
        assert after.bytes_up - before.bytes_up == DATA.nbytes and after.bytes_down == before.bytes_down
        store.close()


def test_comparing_with_the_fill_value(context):
    """Finding chunks of nothing but the fill value costs one copy down of each chunk, at most."""
    array = make(context, [LITTLE], "fake")
    stats = write(array, "fake")
    assert stats.bytes_down <= DATA.nbytes and stats.copies_up == 0, stats
    stats = write(array, "fake", np.zeros_like(DATA))
    assert stats.chunks_missing == 4 and stats.bytes_down == DATA.nbytes, stats
    assert array.store.keys() == ["zarr.json"]


def test_missing_chunks_are_filled_on_the_device(context):
    array = make(context, [LITTLE, zstd()], "host")
    before = context.counters()
    got, stats = read(array, "fake")
    assert (got == 0).all() and stats.chunks_missing == 4
    assert stats.copies_up == stats.copies_decoded_host == 0, stats
    assert context.counters().fills > before.fills


def test_ranges_of_uncompressed_chunks(context, tmp_path):
    """A row of an uncompressed chunk is read, not the chunk."""
    data = np.arange(1000 * 1000, dtype="i4").reshape(1000, 1000)
    document = cases.document_v3("int32", 0, [LITTLE], data.shape, data.shape)
    array = context.store(str(tmp_path)).create(document=document)
    write(array, "host", data)
    for memory in ("host", "fake"):
        got, stats = read(array, memory, Selection.dims(data.shape, 500, slice(200, 900)))
        assert (got == data[500, 200:900]).all()
        assert stats.bytes_stored <= 4000 and stats.store_ranges >= 1, stats
        got, stats = read(array, memory, Selection.dims(data.shape, slice(500, 503), slice(200, 203)))
        assert (got == data[500:503, 200:203]).all()
        assert stats.bytes_stored <= 12000, stats


def test_inner_chunks_only(context, tmp_path):
    """One inner chunk of a shard: the index once, then its bytes alone; the index is kept."""
    store = context.store(str(tmp_path))
    document = cases.document_v3("int32", 0, [sharding((4, 6), [LITTLE, zstd()])], DATA.shape, (16, 24))
    array = store.create(document=document)
    write(array, "host")
    array = store.open()
    part = Selection.dims(DATA.shape, slice(4, 8), slice(6, 12))
    got, stats = read(array, "host", part)
    assert (got == DATA[4:8, 6:12]).all()
    assert stats.index_reads == 1 and stats.chunks_total == 1, stats
    assert stats.bytes_stored < 16 * 16 + 4 + 200, stats
    got, stats = read(array, "host", part)
    assert stats.index_reads == 0 and stats.index_hits == 1, stats


def test_metadata_knows_no_memory(context):
    """The same calls with values, tensors and default memory on the device or the host."""
    documents = set()
    for memory in ("host", "fake"):
        for default in (0, FAKE):
            store = context.store("memory:", device_type=FAKE if memory == "fake" else 0)
            array = store.create("a", (5, 6), "float32", chunks=(2, 3), shards=(4, 6), order="F",
                                 fill_value="NaN", attributes={"x": [1, None]},
                                 options={"device_type": default})
            array.write(np.ones((5, 6), "f4"), memory=memory)
            array.set_attribute("later", "y")
            array.append(np.ones((2, 6), "f4"), memory=memory)
            documents.add(tuple(sorted((k, v) for k, v in store.dump().items())))
    assert len(documents) == 1


def test_parts_of_one_array_by_host_and_device(context):
    """Mixed writers: equal bytes to one writer's."""
    one, mixed = make(context, [LITTLE, zstd()], "host"), make(context, [LITTLE, zstd()], "host")
    write(one, "host")
    for row in range(0, 16, 3):
        part = Selection.dims(DATA.shape, slice(row, row + 3))
        write(mixed, "fake" if row % 2 else "host", np.ascontiguousarray(DATA[row:row + 3]), part)
    assert mixed.store.dump() == one.store.dump()


def test_explain_agrees(context):
    """explain names the copies before they happen."""
    array = make(context, [LITTLE, zstd()], "host")
    text = array.explain(view=np.empty(DATA.shape, "i4"), memory="fake")
    assert "zstd@cpu.libzstd" in text
    plan = array.explain(as_json=True, view=np.empty(DATA.shape, "i4"), memory="fake")
    assert plan["device_type"] == 12 and plan["copy"] == "between" or any(
        step["kind"] == "copy" and step["to_device"] == 12 for step in plan["steps"]), plan
    assert array.store.keys() == ["zarr.json"]
