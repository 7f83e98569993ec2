"""zarr-python with our pipeline inside, against its own pipeline: the same elements, the same files, the
same errors. Here are the ways to select and what is not for the library; test_pipeline_*.py have the rest.
scripts/zarr-suite runs zarr-python's own tests."""
import asyncio
import pathlib
import warnings

import numpy as np
import pytest
from pipelines import (  # noqa: F401
    BASIC, FIXED, FORMATS, IS_NEW, LISTS, enable_pipeline, fell_back, make_array, native_only, reopen, own, same, stores, values, zarr,
)
from zarr.buffer.cpu import NDBuffer
from zarr.core.indexing import oindex, oindex_set
from zarr.storage import LocalStore, MemoryStore

import zarrc
from zarrc._array_engine import ZarrcHierarchyEngine

# Two data types with everything; each other one with a store and a form of its own.
CASES = [(kind, dtype, form) for dtype in ("<i4", ">f8") for kind in ("local", "memory", "other") for form in FORMATS]
CASES += [(("local", "memory")[i % 2], dtype, list(FORMATS)[i // 2 % 4]) for i, dtype in enumerate(FIXED)]


@pytest.mark.parametrize("kind, dtype, form", CASES, ids=str)
def test_every_selection(tmp_path, kind, dtype, form):
    """Read and written through ours; the end is what zarr-python's own pipeline reads."""
    z = make_array(stores(tmp_path)[kind](), dtype, form)
    ref = np.array(z[...])
    for key in BASIC:
        value = values(ref.dtype, np.shape(ref[key]))
        z[key] = value
        ref[key] = value
        same(z[key], ref[key])
        same(z[...], ref)
    for key in LISTS:
        if len(set(np.ravel(key[0]).tolist() if isinstance(key[0], list) else [])) in (0, np.size(key[0])) and key[1] != [5, 5, 0]:
            value = values(ref.dtype, oindex(ref, key).shape, 2)
            z.oindex[key] = value
            oindex_set(ref, key, value)
        same(z.oindex[key], oindex(ref, key))
    rows, columns = np.arange(22, -1, -3), np.arange(0, 16, 2)
    z.vindex[rows, columns] = values(ref.dtype, 8, 3)
    ref[rows, columns] = values(ref.dtype, 8, 3)
    same(z.vindex[rows, columns], ref[rows, columns])
    mask = np.random.default_rng(4).random(ref.shape) < .1
    z.vindex[mask] = values(ref.dtype, mask.sum(), 5)
    ref[mask] = values(ref.dtype, mask.sum(), 5)
    same(z.vindex[mask], ref[mask])
    height, width = z.shards or z.chunks
    same(z.blocks[1, 1], ref[height:2 * height, width:2 * width])
    native_only()
    if z.shards and ref.dtype.fields and not IS_NEW:
        return  # zarr-python 3.1 cannot read them: it hashes the fill value
    with own():
        same(reopen(z)[...], ref)


@pytest.mark.parametrize("form", ["v2", "v3", "v3-shards"])
@pytest.mark.parametrize("kind", ["local", "memory", "other"])
@pytest.mark.parametrize("dtype", ["text", "bytes"])
def test_elements_of_any_length(tmp_path, kind, form, dtype):
    if dtype == "bytes" and form == "v2":
        pytest.skip("zarr-python has no bytes of any length in format 2 without a filter that the test would name")
    z = make_array(stores(tmp_path)[kind](), str if dtype == "text" else "variable_length_bytes", form)
    ref = np.array(z[...])
    for key in BASIC:
        given = [f"\u00e9{i}" * (i % 5) for i in range(int(np.prod(np.shape(ref[key]))))]
        flat = np.empty(len(given), object)
        flat[:] = given if dtype == "text" else [one.encode() for one in given]
        value = flat.reshape(np.shape(ref[key])).astype(ref.dtype)
        z[key] = value
        ref[key] = value
        same(z[...], ref)
    same(z.oindex[[1, 20, 3], :], ref[[1, 20, 3]])
    native_only()
    with own():
        same(reopen(z)[...], ref)


@pytest.mark.parametrize("form", FORMATS)
def test_the_same_stored_bytes(form):
    """Chunks that are rewritten, and shards that are changed in part, are those of zarr-python."""
    written = []
    for context in (zarrc.enable, own):
        with context():
            store = MemoryStore()
            z = make_array(store, "i4", form, compressors=None)
            z[...] = np.arange(23 * 17).reshape(23, 17)
            z[7:13, 3:9] = 5
            z[20:, 15:] = np.arange(6).reshape(3, 2)
            z[:5, :4] = 0  # is erased
            written.append({key: value.to_bytes() for key, value in store._store_dict.items()})
    assert written[0] == written[1]


@pytest.mark.skipif(not IS_NEW, reason="zarr-python 3.1 has one order only")
@pytest.mark.parametrize("order", ["morton", "lexicographic", "colexicographic"])
def test_order_in_shards(order):
    written = []
    for context in (zarrc.enable, own):
        with context():
            store = MemoryStore()
            codec = zarr.codecs.ShardingCodec(chunk_shape=(2, 2), subchunk_write_order=order, codecs=[zarr.codecs.BytesCodec()])
            z = zarr.create_array(store, shape=(8, 8), chunks=(8, 8), dtype="i4", serializer=codec, compressors=None)
            z[...] = np.arange(1, 65).reshape(8, 8)
            z[1:5, 2:7] = 7
            written.append({key: value.to_bytes() for key, value in store._store_dict.items()})
    native_only()
    assert written[0] == written[1]


@pytest.mark.parametrize("kind", ["local", "memory"])
@pytest.mark.parametrize("form", ["v2", "v3", "v3-shards"])
def test_after_resize_and_append(tmp_path, kind, form):
    """zarr-python keeps the pipeline, whose metadata is then out of date."""
    z = make_array(stores(tmp_path)[kind](), "i4", form)
    ref = np.arange(23 * 17, dtype="i4").reshape(23, 17)
    z[...] = ref
    z.resize((40, 30))
    big = np.zeros((40, 30), "i4")
    big[:23, :17] = ref
    same(z[...], big)
    z[30:, 20:] = 9
    big[30:, 20:] = 9
    same(z[...], big)
    z.append(np.full((7, 30), 3, "i4"))
    same(z[...], np.concatenate([big, np.full((7, 30), 3, "i4")]))
    z.resize((11, 9))
    same(z[...], big[:11, :9])
    native_only()


@pytest.mark.parametrize("form", ["v3", "v3-shards"])
def test_cells_beyond_the_shape(form):
    """As zarr-python leaves them: an edge chunk that is written whole forgets them, a shard does not."""
    found = []
    for context in (zarrc.enable, own):
        with context():
            store = MemoryStore()
            z = make_array(store, "i4", form, shards=(10, 8) if "shards" in form else None)
            z[...] = 1
            z.resize((21, 13))
            z[...] = 2
            z[20, 2:5] = 3
            z.resize((23, 17))
            found.append(z[...])
    same(found[0], found[1])


@pytest.mark.parametrize("kind", ["local", "memory", "other"])
def test_no_dimensions(tmp_path, kind):
    z = zarr.create_array(stores(tmp_path)[kind](), name="a", shape=(), dtype="f8", fill_value=2.5)
    assert z[()] == 2.5
    z[...] = 7
    assert z[()] == 7 and np.asarray(z[...]) == 7
    native_only()


def test_memory_of_any_layout(tmp_path):
    z = make_array(LocalStore(tmp_path / "x"), ">i4", "v2")
    value = np.asfortranarray(np.arange(23 * 17, dtype="<i4").reshape(23, 17))
    before = value.copy()
    z[...] = value
    same(value, before)
    from zarr.core.buffer import default_buffer_prototype
    room = np.zeros((46, 34), "<i4")
    out = default_buffer_prototype().nd_buffer.from_ndarray_like(room[::2, ::-2])
    z.get_basic_selection(out=out)
    np.testing.assert_array_equal(room[::2, ::-2], value)
    assert not room[1::2].any()
    native_only()


def test_values_stay_the_caller_s():
    """A store that keeps what it gets must not see later changes of the value."""
    z = zarr.create_array(MemoryStore(), shape=(8,), chunks=(8,), dtype="i4", compressors=None, filters=None)
    value = np.arange(8, dtype="i4")
    z[...] = value
    value[:] = 0
    same(z[...], np.arange(8, dtype="i4"))


@pytest.mark.parametrize("kind", ["local", "memory", "other"])
def test_write_empty_chunks(tmp_path, kind):
    for wanted in (False, True):
        store = stores(tmp_path / str(wanted))[kind]()
        z = zarr.create_array(store, shape=(4,), chunks=(2,), dtype="f8", fill_value=0, config={"write_empty_chunks": wanted})
        z[...] = 0
        z[0:1] = 0
        assert z.nchunks_initialized == (2 if wanted else 0)
        z[...] = -0.0  # not the fill value, bit for bit
        assert z.nchunks_initialized == 2
    native_only()


@pytest.mark.skipif(not IS_NEW, reason="new in zarr-python 3.2")
@pytest.mark.parametrize("kind", ["local", "memory", "other"])
def test_missing_chunks_are_errors(tmp_path, kind):
    from zarr.errors import ChunkNotFoundError
    z = zarr.create_array(stores(tmp_path)[kind](), shape=(6,), chunks=(2,), dtype="i4", config={"read_missing_chunks": False})
    z[2:4] = 1
    same(z[2:4], np.array([1, 1], "i4"))
    with pytest.raises(ChunkNotFoundError) as problem:
        z[...]
    assert "2 chunk(s)" in str(problem.value) and "c/1'" not in str(problem.value)
    native_only()


@pytest.mark.parametrize("dtype", ["i4", "M8[s]", "U2"])
def test_null_as_fill_value(dtype):
    z = zarr.create(store=MemoryStore(), shape=(4,), chunks=(2,), dtype=dtype, fill_value=None, zarr_format=2)
    with own():
        same(z[...], reopen(z)[...])
    native_only()


def test_text_that_is_no_unicode(tmp_path):
    """Half of a surrogate pair as a fill value, which Python writes and the library refuses: zarr-python's own pipeline goes on."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a type without a specification
        z = zarr.create_array(tmp_path / "x", shape=(3,), chunks=(2,), dtype="U4", fill_value="a\udfc7")
    z[:2] = ["b", "c"]
    assert z[:].tolist() == ["b", "c", "a\udfc7"]
    fell_back("metadata without a document: UnicodeEncodeError")


def test_names_that_zarrc_refuses():
    """What a chunk does not depend on is not looked at."""
    z = zarr.create_array(MemoryStore(), shape=(6, 5), chunks=(2, 5), dtype="i4", dimension_names=["\x00", "b"])
    z[1:3] = 4
    assert z[...].sum() == 40
    native_only()


# ---- what is not for the library ----


def test_codecs_of_others():
    from zarr.codecs import BytesCodec

    class Mine(BytesCodec):
        pass

    z = zarr.create_array(MemoryStore(), shape=(4,), chunks=(2,), dtype="i4", serializer=Mine(), compressors=None)
    z[...] = 3
    same(z[...], np.full(4, 3, "i4"))
    fell_back("codec test_pipeline.test_codecs_of_others.<locals>.Mine")


def test_methods_that_are_replaced(monkeypatch):
    """A codec of zarr-python with another method is not the codec that we know."""
    monkeypatch.setattr(zarr.codecs.sharding._ShardIndex, "get_chunk_slice", lambda self, chunk_coords: None)
    z = make_array(MemoryStore(), "i4", "v3-shards", fill_value=-9)
    z[...] = 1
    assert z[0, 0] == -9
    fell_back("codec zarr.codecs.sharding.ShardingCodec with other methods")


def test_codecs_alone():
    """What zarr-python's ShardingCodec makes of us for its inner chunks."""
    from zarr.core.buffer import default_buffer_prototype
    cls = zarr.registry.get_pipeline_class()
    z = zarr.create_array(MemoryStore(), shape=(4,), chunks=(4,), dtype="i4")
    pipeline = cls.from_codecs(z.metadata.codecs)
    assert list(pipeline) == list(z.metadata.codecs)
    spec = zarr.core.array_spec.ArraySpec(
        shape=(4,), dtype=z.metadata.dtype, fill_value=0, config=z.config, prototype=default_buffer_prototype())
    pipeline = pipeline.evolve_from_array_spec(spec)
    array = default_buffer_prototype().nd_buffer.from_numpy_array(np.arange(4, dtype="i4"))
    encoded = list(asyncio.run(pipeline.encode([(array, spec)])))
    decoded = list(asyncio.run(pipeline.decode([(encoded[0], spec), (None, spec)])))
    same(decoded[0].as_numpy_array(), np.arange(4, dtype="i4"))
    assert decoded[1] is None
    assert zarrc.pipeline_stats()["batches"] == 0


@pytest.mark.parametrize("kind", ["local", "memory"])
def test_read_only_stores(tmp_path, kind):
    z = make_array(stores(tmp_path)[kind](), "i4", "v3")
    z[...] = 4
    found = []
    for context in (zarrc.enable, own):
        with context():
            mine = zarr.open_array(z.store.with_read_only(True), path="a", mode="r")
            same(mine[...], np.full((23, 17), 4, "i4"))
            with pytest.raises(ValueError) as problem:
                mine[...] = 1
            found.append(str(problem.value))
    assert found[0] == found[1]
    same(z[...], np.full((23, 17), 4, "i4"))


@pytest.mark.parametrize("more", [{}, {"shards": (4,)}], ids=["chunks", "shards"])
@pytest.mark.parametrize("dtype, keep, problem", [("i4", 3, TypeError), ("c8", 3, TypeError), ("f4", 24, ValueError)])
def test_bitround_as_numcodecs(tmp_path, dtype, keep, problem, more):
    """Integers were rounded, which numcodecs refuses. What is stored is read."""
    BitRound = pytest.importorskip("zarr.codecs.numcodecs").BitRound
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a codec without a specification
        z = zarr.create_array(LocalStore(tmp_path), shape=(4,), chunks=(2,), dtype=dtype, compressors=None,
                              filters=[BitRound(keepbits=keep)], **more)
    with pytest.raises(problem, match="bit-rounded|Keepbits too large"):
        z[...] = np.arange(4, dtype=dtype)
    assert not (tmp_path / "c").exists()
    if not more:
        (tmp_path / "c").mkdir()
        for i in range(2):
            (tmp_path / "c" / str(i)).write_bytes(np.full(2, 100 + i, dtype).tobytes())
        same(z[...], np.array([100, 100, 101, 101], dtype))


class OwnZstd(zarr.codecs.ZstdCodec):
    """A codec of another package: zarr-python's own pipeline does it."""


def test_fallback_of_nested_shards():
    """zarr-python's own pipeline looks whether buffers in nested shards are those of the setting `ndbuffer`."""
    Sharding, data = zarr.codecs.ShardingCodec, np.arange(256, dtype="i4").reshape(16, 16)
    inner = Sharding(chunk_shape=(2, 2), codecs=[zarr.codecs.BytesCodec(), OwnZstd()])
    with zarr.config.set({"ndbuffer": "zarrc.ZarrcNDBuffer"}):
        z = zarr.create_array({}, shape=data.shape, chunks=(8, 8), dtype="i4", compressors=None,
                              serializer=Sharding(chunk_shape=(4, 4), codecs=[inner]))
        z[...] = data
        same(z[1:5, 3], data[1:5, 3])
        same(z.oindex[[1, 5], [3, 9]], data[[1, 5]][:, [3, 9]])
        z.oindex[[1, 5], [3, 9]] = 7
        assert z[5, 9] == 7 and zarrc.pipeline_stats()["fallback_chunks"]
        assert zarrc.ZarrcNDBuffer == NDBuffer and NDBuffer == zarrc.ZarrcNDBuffer and len({zarrc.ZarrcNDBuffer, NDBuffer}) == 1
        assert type("Other", (zarrc.ZarrcNDBuffer,), {}) not in (NDBuffer, zarrc.ZarrcNDBuffer)
        assert not isinstance(NDBuffer.create(shape=(1,), dtype="i4"), zarrc.ZarrcNDBuffer)


@pytest.mark.parametrize("kind", ["local", "memory", "other"])
def test_batch_size_is_chunks_of_a_wave(tmp_path, kind, caplog):
    """zarr-python's batch_size above 1 counts the chunks of a wave; 1, its default, means the library's own waves."""
    def count_waves(call):
        caplog.clear()
        call()
        return len([one for one in caplog.messages if ": wave " in one])

    data = np.arange(1600, dtype="i2")
    with caplog.at_level(1, "zarrc"), zarrc.config.set(log_level="trace"):
        z = zarr.create_array(stores(tmp_path)[kind](), shape=data.shape, chunks=(100,), dtype="i2", overwrite=True)
        assert count_waves(lambda: z.__setitem__(..., data)) == 1
        for size in (4, 1):
            with zarr.config.set({"codec_pipeline.batch_size": size}):
                batched = reopen(z)
            for _ in range(4):  # the later ones are quick
                assert count_waves(lambda: same(batched[...], data)) == (4 if size == 4 else 1)
            assert count_waves(lambda: batched.__setitem__(..., data)) == (4 if size == 4 else 1)
    native_only()


# ---- engines: what may follow pipelines ----


class EngineArray:
    """A minimal stand-in for an array of zarr-python which hands whole selections to an engine."""

    class Request:
        def __init__(self, kind, selection):
            self.kind, self.selection = kind, selection

    def __init__(self, z, engines=None, is_async=False):
        self.engine = (engines or ZarrcHierarchyEngine(z.store)).array_engine(z.path, z.metadata)
        self.is_async = is_async

    def get(self, kind, selection, **given):
        request = self.Request(kind, selection)
        if self.is_async:
            return asyncio.run(self.engine.read_selection_async(request, **given))
        return self.engine.read_selection(request, **given)

    def set(self, kind, selection, value, **given):
        request = self.Request(kind, selection)
        if self.is_async:
            asyncio.run(self.engine.write_selection_async(request, value, **given))
        else:
            self.engine.write_selection(request, value, **given)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", ["local", "memory", "other"])
def test_engine(tmp_path, kind, form, is_async):
    z = make_array(stores(tmp_path)[kind](), "<i4", form)
    array, ref = EngineArray(z, is_async=is_async), np.array(z[...])
    for key in BASIC:
        ref[key] = value = values(ref.dtype, np.shape(ref[key]))
        array.set("basic", key, value)
        same(array.get("basic", key), ref[key])
    rows, columns = np.array([5, 1, 7]), np.array([0, 3, 9])
    array.set("orthogonal", (rows, slice(2, 8, 3)), -7)
    ref[rows, 2:8:3] = -7
    same(array.get("orthogonal", (rows, columns)), ref[np.ix_(rows, columns)])
    array.set("coordinate", (rows, columns), [1, 2, 3])
    ref[rows, columns] = [1, 2, 3]
    same(array.get("coordinate", (rows, columns)), ref[rows, columns])
    mask = ref % 3 == 0
    array.set("mask", mask, 4)
    same(array.get("mask", ~mask), ref[~mask])
    ref[mask] = 4
    height, width = z.shards or z.chunks
    same(array.get("block", (1, 1)), ref[height:2 * height, width:2 * width])
    out = NDBuffer.create(shape=ref.shape, dtype=ref.dtype, order="F", fill_value=0)
    array.get("basic", ..., out=out)
    same(out.as_numpy_array(), ref)
    with own():
        same(reopen(z)[...], ref)


def test_engine_follows_metadata(tmp_path):
    """The object counts: after a resize that only zarr-python knows, the engine is made anew."""
    z = zarr.create_array(MemoryStore(), shape=(4, 4), chunks=(2, 2), dtype=[("a", "i4"), ("b", "f8")], fill_value=(1, 2.5))
    array = EngineArray(z)
    array.set("basic", slice(2), 7, fields="a")
    assert (array.get("basic", 0, fields="a") == 7).all()
    array.is_async = True
    assert (array.get("basic", 3, fields="b") == 2.5).all()
    z.resize((6, 4))
    array.engine = array.engine.with_metadata(z.metadata)
    assert array.get("basic", ...).shape == (6, 4) and array.get("basic", 5)["a"].tolist() == [1] * 4
    with pytest.raises(ValueError, match="read-only"):
        EngineArray(zarr.open_array(z.store.with_read_only(True), mode="r")).set("basic", 0, 0)


def test_engine_refuses_other_codecs():
    z = zarr.create_array(MemoryStore(), shape=4, dtype="i4", compressors=type("Other", (zarr.codecs.GzipCodec,), {})())
    with pytest.raises(zarrc.errors.UnsupportedError, match="Other"):
        EngineArray(z)
