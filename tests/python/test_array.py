"""What an array can do besides indexing: changes, attributes, what it says of itself, and what other
libraries ask of it."""
import asyncio
import operator
import os
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

import zarrc
from zarrc import _edges, errors


def test_resize_and_append(store, numbers):
    array = zarrc.create_array(store, name="a", data=numbers, chunks=(16, 16))
    array.resize((50, 40))
    array.resize((60, 40))
    assert (array[:50] == numbers[:50]).all() and not array[50:].any()
    assert array.append(numbers[:5]) == (65, 40) == array.shape
    assert (array[60:] == numbers[:5]).all()
    assert array.append(numbers[:, :3].astype(">i8")[:1].repeat(65, 0), axis=-1) == (65, 43)
    array.append(np.zeros((0, 43)))
    for wrong in (np.zeros(40), np.zeros((2, 9))):
        with pytest.raises(ValueError):
            array.append(wrong)
    for wrong in ((3,), (-1, 40), (1, 2, 3)):
        with pytest.raises(ValueError):
            array.resize(wrong)
    text = zarrc.create_array(store, name="t", shape=0, dtype=str, chunks=4)
    assert text.append(["a", "b"]) == (2,) and text.append(np.array(["c"])) == (3,)
    assert text[:].tolist() == ["a", "b", "c"]
    text.resize(2)
    assert text.shape == (2,)


def test_trust(path, numbers):
    zarrc.create_array(path, data=numbers, chunks=(16, 16))
    for word in ("verified", "full", "none"):
        array = zarrc.open(path, trust=word)
        assert array.config.trust == word and (array[:] == numbers).all()
        assert pickle.loads(pickle.dumps(array)).config.trust == word
        assert zarrc.open_array(path, config={"trust": word}).config == array.config
        with zarrc.config.set(trust=word):
            assert zarrc.open_array(path).config.trust is None and (zarrc.open(path)[:] == numbers).all()
    assert array.with_config({"write_empty_chunks": True}).config.trust == "none"
    with pytest.raises(ValueError, match="verified, full, none"):
        zarrc.open_array(path, trust="some")
    with pytest.raises(ValueError, match="trust"):
        zarrc.config.set(trust="some")


# ---- controls: the call comes first, then the array, the setting and the environment ----


def count_waves(call, **controls):
    stats = zarrc.Stats()
    call(stats=stats, **controls)
    return stats.waves


def test_waves_of_each_level(path):
    """16 chunks of 100 bytes: explain() and the counters of calls agree at each level."""
    data = np.arange(1600, dtype="u1")
    zarrc.create_array(path, data=data, chunks=100)
    text = pathlib.Path(path, "zarr.json").read_bytes()

    def see(z, **controls):
        plan = z.explain(**controls)
        assert plan.wave_bytes == plan["wave_bytes"] and f"{plan.waves} of at most {plan.wave_bytes} bytes" in repr(plan)
        assert count_waves(z.read, **controls) == plan.waves
        assert count_waves(lambda **given: z.read_many([...], **given), **controls) == plan.waves
        return plan.waves

    z = zarrc.open_array(path)
    assert see(z) == 1 and see(z, wave_bytes=400) == 4 and see(z, wave_bytes=None) == 1 and see(z) == 1
    with zarrc.config.set(wave_bytes="800"):
        other = zarrc.open_array(path)
    assert see(other) == 2 and see(other, wave_bytes=100) == 16 and see(z) == 1
    third = other.with_config({"wave_bytes": 200})
    assert see(third) == 8 and see(third, wave_bytes="1K") == 2 and third.config.wave_bytes == 200 and see(other) == 2
    assert see(pickle.loads(pickle.dumps(third))) == 8
    assert count_waves(lambda **given: third.write(..., data, **given)) == 8
    assert count_waves(lambda **given: third.write(..., data, **given), wave_bytes=400) == 4
    stats = zarrc.Stats()
    assert "nothing" in repr(stats)
    assert (third.read(stats=stats) == data).all() and (third[...] == data).all()
    assert stats["bytes_decoded"] == stats.bytes_decoded == 1600 and "waves" in repr(stats) and "copies_up" not in repr(stats)
    with pytest.raises(AttributeError):
        stats.wave
    assert pathlib.Path(path, "zarr.json").read_bytes() == text and "wave" not in str(third.metadata.to_dict())


def test_pipeline_and_trust_of_each_level(path):
    zarrc.create_array(path, data=np.arange(100), chunks=10)
    with zarrc.config.set(pipeline="serial", trust="none"):
        z = zarrc.open_array(path)
    other = z.with_config({"pipeline": "waves", "trust": "full"})
    found = [(one.explain(**controls).pipeline, one.explain(**controls).trust)
             for one in (zarrc.open_array(path), z, other) for controls in ({}, {"pipeline": "serial", "trust": "verified"})]
    called = ("serial", "verified")
    assert found == [("waves", "verified"), called, ("serial", "none"), called, ("waves", "full"), called]
    with pytest.raises(ValueError, match="nope"):
        z.read(pipeline="nope")


def test_codec_preference_of_each_level(path):
    """A list that has no implementation is refused, and the message has it; so a level that comes first hides those below."""
    zarrc.create_array(path, data=np.arange(100), chunks=10)
    with pytest.raises(ValueError, match='of "zstd" is named "nope"'):
        zarrc.open_array(path, config={"codec_preference": "zstd=nope"})
    z = zarrc.open_array(path, config={"codec_preference": "zstd=cpu.libzstd"})
    assert "cpu.libzstd" in repr(z.explain())
    for call in (z.read, z.explain, lambda **given: z.write(0, 1, **given)):
        with pytest.raises(ValueError, match='of "zstd" is named "nope"'):
            call(codec_preference="zstd=nope")
    with pytest.raises(ValueError, match="nocodec"), zarrc.config.set(codec_preference="nocodec=cpu"):
        zarrc.open_array(path)


def test_memory_of_each_level(path):
    zarrc.create_array(path, shape=1 << 20, dtype="u1", chunks=1 << 20)[...] = 3
    z = zarrc.open_array(path, config={"memory_bytes": "64K"})
    assert z.config.memory_bytes == 65536
    with pytest.raises(errors.LimitError):
        z[...]
    assert (z.read(memory_bytes="64M") == 3).all() and (zarrc.open_array(path)[...] == 3).all()
    with pytest.raises(errors.LimitError):
        zarrc.open_array(path).read(memory_bytes=65536)
    with zarrc.config.set(memory_bytes="64K"), pytest.raises(errors.LimitError):
        zarrc.open_array(path)[...]


def test_coalescing_of_each_level(path):
    """Each second of the 32 chunks of a shard. One thread joins four of them by default."""
    zarrc.create_array(path, data=np.arange(320, dtype="u1"), chunks=10, shards=320)

    def count_ranges(z, **controls):
        stats = zarrc.Stats()
        assert z.read(slice(None, None, 20), stats=stats, max_threads=1, **controls).tolist() == [i % 256 for i in range(0, 320, 20)]
        return stats.store_ranges - stats.index_reads

    z = zarrc.open_array(path)
    assert count_ranges(z) == 4 and count_ranges(z, coalesce_gap=1) == 16 and count_ranges(z, coalesce_bytes=1) == 16
    with zarrc.config.set(coalesce_gap=1):
        z = zarrc.open_array(path)
    assert z.config.coalesce_gap == 1 and count_ranges(z) == 16 and count_ranges(z, coalesce_gap="1K") == 4
    assert count_ranges(z.with_config({"coalesce_gap": 1000})) == 4
    assert count_ranges(zarrc.open_array(path, config={"coalesce_bytes": 1})) == 16


def test_environment_of_controls(path):
    """Each variable has the name of its setting, and comes last."""
    zarrc.create_array(path, data=np.arange(320, dtype="u1"), chunks=10, shards=320)
    code = f"""
import zarrc
z = zarrc.open_array({str(path)!r})
plan, stats = z.explain(), zarrc.Stats()
z.read(slice(None, None, 20), stats=stats, max_threads=1)
print(plan.waves, plan.pipeline, plan.trust, stats.store_ranges - stats.index_reads, zarrc.config["wave_bytes"], zarrc.config["coalesce_gap"])
with zarrc.config.set(wave_bytes=1000, trust="none", coalesce_gap=1000, codec_preference="zstd=cpu"):
    z = zarrc.open_array({str(path)!r})
plan, stats = z.explain(), zarrc.Stats()
z.read(slice(None, None, 20), stats=stats, max_threads=1)
print(plan.waves, plan.pipeline, plan.trust, stats.store_ranges - stats.index_reads, z.explain(wave_bytes=10).waves)
"""
    environment = {"ZARRC_WAVE_BYTES": "40", "ZARRC_TRUST": "full", "ZARRC_COALESCE_GAP": "1", "ZARRC_COALESCE_BYTES": "1K"}
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["8 waves full 16 40 1", "1 waves none 4 32"], done.stdout + done.stderr
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "ZARRC_PIPELINE": "serial"}, capture_output=True, text=True)
    assert done.stdout.splitlines()[0].split()[1] == "serial", done.stdout + done.stderr
    for name in ("ZARRC_COALESCE_GAP", "ZARRC_WAVE_BYTES", "ZARRC_CODEC_PREFERENCE"):
        done = subprocess.run([sys.executable, "-c", code], env={**os.environ, name: "wide=cpu"}, capture_output=True, text=True)
        assert "wide" in done.stderr and (name in done.stderr or name == "ZARRC_CODEC_PREFERENCE")


def test_unknown_controls(path):
    z = zarrc.create_array(path, data=np.arange(4))
    for call in (z.read, z.explain, lambda **given: z.write(0, 1, **given), lambda **given: z.read_many([0], **given), lambda **given: z.append([1], **given)):
        with pytest.raises(TypeError, match="wave_byte; similar names are wave_bytes"):
            call(wave_byte=1)
    with pytest.raises(TypeError, match="similar names are coalesce_gap"):
        zarrc.open_array(path, config={"coalesce_gaps": 1})
    with pytest.raises(KeyError, match="similar names are wave_bytes"):
        zarrc.config.set(wavebytes=1)
    for name, values in {"wave_bytes": (-1, 1.5, "much", 1 << 64), "pipeline": (1, ""), "trust": ("some", 1), "coalesce_gap": ("x",), "codec_preference": (3,)}.items():
        for value in values:
            for call in (lambda **given: zarrc.config.set(**given), lambda **given: zarrc.ArrayConfig(**given), z.read):
                with pytest.raises(ValueError, match=name):
                    call(**{name: value})
    assert z.shape == (4,) and z[0] == 0


def test_two_handles(path, numbers):
    one = zarrc.create_array(path, data=numbers)
    two = zarrc.open_array(path)
    one.resize((10, 40))
    one.attrs["x"] = 1
    assert two.shape == (60, 40) and two.refresh() and two.shape == (10, 40) and two.attrs["x"] == 1
    assert not two.refresh()


def test_attributes(store):
    for node in (zarrc.create_array(store, name="a", shape=1, dtype="i1"), zarrc.open_group(store, path="g", mode="w")):
        attrs = node.attrs
        attrs["a"] = [1, {"b": None}]
        attrs["n"] = np.float32(2.5)
        attrs["v"] = np.arange(3)
        attrs.update(c="ü", d=False)
        assert dict(attrs) == attrs.asdict() == {"a": [1, {"b": None}], "n": 2.5, "v": [0, 1, 2], "c": "ü", "d": False}
        del attrs["a"]
        assert "a" not in attrs and len(attrs) == 4
        with pytest.raises(KeyError):
            del attrs["a"]
        with pytest.raises(KeyError):
            attrs["a"]
        with pytest.raises(TypeError, match="JSON"):
            attrs["x"] = object()
        assert node.update_attributes({"e": 1}) is node and attrs["e"] == 1
        attrs.put({"only": 1})
        assert dict(attrs) == {"only": 1}
        attrs.setdefault("s", []).append(1)
        assert attrs["s"] == []  # values are copies


def test_info(store, numbers):
    array = zarrc.create_array(store, name="a", data=numbers, chunks=(10, 10), shards=(20, 20), attributes={"u": "m"})
    info = array.info.items()
    assert info["Shape"] == (60, 40) and info["Chunk shape"] == (10, 10) and info["Shard shape"] == (20, 20)
    assert info["Data type"] == np.dtype("int32") and "zstd" in repr(array.info)
    whole = array.info_complete()
    assert whole.items()["Shards Initialized"] == 6
    assert array.nchunks_initialized == array.nchunks == 24
    for shown in (whole, array):
        html = shown._repr_html_()
        assert "<table" in html and "(60, 40)" in html and "<script" not in html
    assert "shape=(60, 40) dtype=int32" in repr(array)
    assert array.metadata["shape"] == [60, 40] and array.metadata.node_type == "array"
    assert array.metadata.to_dict()["attributes"] == {"u": "m"}


def test_codecs(store):
    array = zarrc.create_array(store, name="a", shape=(4, 4), dtype="f4", filters=[{"name": "transpose", "configuration": {"order": [1, 0]}}],
                               compressors=[zarrc.Codec("gzip", {"level": 2}), "crc32c"])
    assert [codec.name for codec in array.filters] == ["transpose"] and array.serializer.name == "bytes"
    assert [codec.name for codec in array.compressors] == ["gzip", "crc32c"] and array.compressors[0].configuration == {"level": 2}
    again = zarrc.create_array(store, name="b", shape=(4, 4), dtype="f4", filters=array.filters, serializer=array.serializer,
                               compressors=array.compressors)
    assert again.metadata["codecs"] == array.metadata["codecs"]
    with pytest.raises(TypeError, match="format 2"):
        array.compressor
    old = zarrc.create_array(store, name="c", shape=4, dtype="f4", zarr_format=2, compressors={"id": "gzip", "level": 1})
    assert old.compressor == zarrc.Codec("gzip", {"level": 1}) and old.filters == ()


@pytest.mark.parametrize("chunks", [([2, 4], [3, 3, 3]), [[2, 4], [3, 3, 3]]], ids=["tuple", "list"])
def test_chunks_that_differ(store, chunks):
    array = zarrc.create_array(store, name="a", shape=(6, 9), dtype="i4", chunks=chunks)
    array[...] = np.arange(54).reshape(6, 9)
    assert array.read_chunk_sizes == ((2, 4), (3, 3, 3)) and array.nchunks == 6
    assert array[3, 4] == 31
    with pytest.raises(NotImplementedError):
        array.chunks


@pytest.mark.parametrize("given,expected", [(5, (5, 5)), ((5,), (5, 20)), ((None, 4), (10, 4)), ((-1, 4), (10, 4)), (False, (10, 20))])
def test_chunks_as_given(given, expected):
    assert zarrc.create_array(None, shape=(10, 20), dtype="i1", chunks=given).chunks == expected


@pytest.mark.parametrize("config", [{"order": "F"}, zarrc.ArrayConfig(order="F")])
def test_write_empty_chunks_beside_config(config):
    """Both forms of a config keep their other options."""
    found = zarrc.create(3, write_empty_chunks=True, config=config).config
    assert found.write_empty_chunks and found.order == "F"


def test_config(path, numbers):
    array = zarrc.create_array(path, shape=(4,), dtype="i4", chunks=2, config={"write_empty_chunks": True})
    array[:] = 0
    assert array.nchunks_initialized == 2
    other = array.with_config({"write_empty_chunks": False})
    other[:2] = 0
    assert array.nchunks_initialized == 1 and other.config.order == "C"
    strict = zarrc.open_array(path, config={"read_missing_chunks": False})
    assert strict[2:].tolist() == [0, 0]
    with pytest.raises(zarrc.errors.ChunkNotFoundError) as caught:
        strict[:]
    assert caught.value.chunk == (0,) and caught.value.key.endswith("c/0")
    with pytest.raises(TypeError, match="unknown"):
        zarrc.open_array(path, config={"nonsense": 1})


def test_other_libraries(path, numbers):
    array = zarrc.create_array(path, data=numbers, chunks=(16, 16))
    assert (np.asarray(array) == numbers).all() and np.asarray(array, "f4").dtype == np.float32
    assert (np.from_dlpack(array) == numbers).all() and array.__dlpack_device__() == (1, 0)
    assert len(array) == 60 and operator.length_hint(array) == 60
    assert [row.tolist() for row in array] == numbers.tolist()
    token = array.__dask_tokenize__()
    assert token == zarrc.open_array(path).__dask_tokenize__() != zarrc.open_array(path, config={"order": "F"}).__dask_tokenize__()
    with pytest.raises(ValueError, match="copy"):
        np.array(array, copy=False)
    with pytest.raises(TypeError, match="hash"):
        hash(array)
    with zarrc.open_array(path) as same:
        assert same == array


def test_pickle(path, numbers):
    group = zarrc.open_group(path)
    array = group.create_array("a", data=numbers, config={"write_empty_chunks": True})
    for node in (array, group, array.store, array.async_array, group.async_group):
        assert pickle.loads(pickle.dumps(node)) == node
    assert pickle.loads(pickle.dumps(array)).config.write_empty_chunks
    frozen = zarrc.open_array(path, path="a", mode="r")
    assert pickle.loads(pickle.dumps(frozen)).read_only
    with pytest.raises(TypeError, match="memory"):
        pickle.dumps(zarrc.create_array(None, shape=1, dtype="i1"))


def test_progress(store, numbers, monkeypatch):
    array = zarrc.create_array(store, name="a", data=numbers, chunks=(2, 2))
    seen = []
    assert (array.read(progress=lambda done, total: seen.append((done, total))) == numbers).all()
    array.write(..., numbers, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (600, 600) and all(done <= total for done, total in seen)

    class Bar:  # as tqdm's
        n, total = 0, None

        def update(self, n):
            self.n += n

        def __bool__(self):
            raise TypeError("bool() undefined when iterable == total == None")

    bar = Bar()
    array.read(slice(10), progress=bar)
    assert bar.n == bar.total == 100
    with pytest.raises(ZeroDivisionError):
        array.read(progress=lambda done, total: 1 / 0)
    with pytest.raises(TypeError, match="progress"):
        array.read(progress=3)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match="pip install tqdm"):
        array.read(progress=True)


def test_read_only(path, numbers):
    zarrc.create_array(path, data=numbers)
    memory = zarrc.open_store("memory:")
    zarrc.create_array(memory, data=numbers)
    for array in (zarrc.open_array(path, mode="r"), zarrc.open_array(memory, mode="r"), zarrc.open_array(memory.with_read_only())):
        assert array.read_only and (array[...] == numbers).all()
        for change in (lambda: array.__setitem__(0, 1), lambda: array.resize((1, 1)), lambda: array.append(numbers),
                       lambda: array.attrs.update(a=1), lambda: array.vindex.__setitem__(([0], [1]), 2), lambda: array.store.set("k", b"")):
            with pytest.raises(ValueError, match="read-only"):
                change()
    with pytest.raises(ValueError, match="read-only"):
        zarrc.open_array(memory.with_read_only(), mode="r+")
    assert not zarrc.open_array(memory).read_only


def test_elements_cannot_be_deleted(store):
    with pytest.raises(TypeError):
        del zarrc.create_array(store, name="a", shape=3, dtype="i1")[0]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_order_of_new_arrays(path, numbers, zarr_format):
    """With order "F" reads give what zarr-python gives: arrays in column-major order."""
    how = {"order": "F"} if zarr_format == 2 else {"config": {"order": "F"}}
    array = zarrc.create_array(path, data=numbers, chunks=(8, 8), zarr_format=zarr_format, **how)
    found = [array[...], array[3:9, 5:11], array[[1, 2]], array.oindex[[1, 2], 3:9], array.read(slice(2, 9)),
             asyncio.run(array.async_array.getitem(slice(1, 5)))]
    want = [numbers, numbers[3:9, 5:11], numbers[[1, 2]], numbers[[1, 2], 3:9], numbers[2:9], numbers[1:5]]
    for one, same in zip(found, want):
        assert one.flags.f_contiguous and not one.flags.c_contiguous and (one == same).all()
    again = zarrc.open_array(path) if zarr_format == 2 else array.with_config({"order": "C"})
    assert again[...].flags.f_contiguous == (zarr_format == 2)
    assert pickle.loads(pickle.dumps(array))[...].flags.f_contiguous


@pytest.mark.parametrize("dtype", ["u1", "i4", "f8", "c8", ">i2", "M8[s]", "?", "S3"])
def test_memory_of_the_same_type_takes_the_quick_way(store, dtype, monkeypatch):
    """Python does not look at keys of integers and slices, and at memory that NumPy would have made."""
    array = zarrc.create_array(store, name="a", shape=(6, 8), chunks=(4, 4), dtype=dtype, zarr_format=2)
    data = (np.arange(48) % 2).astype(dtype).reshape(6, 8)
    monkeypatch.setattr(zarrc.Array, "_set", None)
    monkeypatch.setattr("zarrc._indexing.read", None)
    array[...] = data
    array[2:4, 1] = data[0, :2]
    array[0] = data[0, 1:2]  # one element for all
    data[2:4, 1], data[0] = data[0, :2], data[0, 1]
    for key in (..., (slice(1, 5, 2), slice(None, None, -1)), 3):
        wanted = data[key]
        out = np.empty(wanted.shape, dtype)
        assert array.read(key, out=out) is out
        np.testing.assert_array_equal(out, wanted)
        turned = np.empty(wanted.shape, dtype, order="F")[::1]
        np.testing.assert_array_equal(array.read(key, out=turned), wanted)


def test_memory_that_does_not_fit(store):
    array = zarrc.create_array(store, name="a", data=np.arange(12, dtype="i4").reshape(3, 4))
    fixed = np.empty((3, 4), "i4")
    fixed.flags.writeable = False
    for out in (np.empty((4, 3), "i4"), np.empty(12, "i4"), np.empty((3, 4), "i8"), fixed):
        with pytest.raises((TypeError, ValueError)):
            array.read(out=out)
    swapped = np.empty((3, 4), ">i4")
    assert array.read(out=swapped).tolist() == array[...].tolist()


class Column:
    """An array of another library, such as polars: NumPy does not know the name of its data type."""

    dtype, shape = "Int64 of theirs", (3,)

    def __array__(self, dtype=None, copy=None):
        return np.arange(3)


def test_data_of_other_libraries():
    z = zarrc.create_array({}, data=Column())
    assert z.dtype == np.arange(3).dtype and z[...].tolist() == [0, 1, 2]


class Texts(Column):
    """Of objects, behind a data type that NumPy does not know."""

    shape = (2,)

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return self.values


def test_an_array_as_a_value_is_read_once(path, monkeypatch):
    z = zarrc.create_array(None, data=np.arange(4.0))
    real, reads = zarrc.Array._numpy, []
    monkeypatch.setattr(zarrc.Array, "_numpy", lambda self, key: reads.append(1) or real(self, key))
    group, w = zarrc.open_group(path + ".g"), zarrc.create_array(path, data=np.arange(4.0))
    for call in (lambda: zarrc.save(path + ".s", z), lambda: w.append(z), lambda: w.__setitem__(slice(4), z), lambda: group.__setitem__("a", z),
                 lambda: zarrc.array(z), lambda: zarrc.array(z, dtype="f4"), lambda: zarrc.create_array(path + ".c", data=z),
                 lambda: zarrc.from_array(path + ".f", data=z)):
        reads.clear()
        call()
        assert len(reads) <= 1
    assert (w[4:] == z[...]).all() and (group["a"][:] == z[:]).all() and (zarrc.load(path + ".s") == z[:]).all()


@pytest.mark.parametrize("kind", [np.asarray, Texts])
@pytest.mark.parametrize("data", [["a", None], ["a", 1], [[1, 2], "a"]], ids=str)
def test_nothing_is_created_for_objects_that_are_no_text(path, data, kind):
    objects = np.empty(2, object)
    objects[:] = data
    with pytest.raises(TypeError, match="elements are text"):
        zarrc.create_array(path, data=kind(objects))
    with pytest.raises(FileNotFoundError):
        zarrc.open(path, mode="r")


def test_nothing_is_allocated_per_chunk(tmp_path):
    """Arrays of 2**50 chunks: only what has an entry for each chunk is refused."""
    z = zarrc.create_array(tmp_path / "x", shape=(2**60,), chunks=(2**10,), dtype="i1")
    z[0] = 1
    assert next(iter(z)) == 1 and 1 in z
    assert z.nchunks == 2**50 and "2**" not in repr(z) and str(z.info)
    for name in ("read_chunk_sizes", "write_chunk_sizes"):
        with pytest.raises(zarrc.errors.LimitError, match="1125899906842624"):
            getattr(z, name)


@pytest.mark.parametrize("edges, length, sizes", [
    (3, 10, [3, 3, 3, 1]), (3, 0, []), (0, 0, []), ([1, 2, 3], 6, [1, 2, 3]), ([[2, 3], 5], 10, [2, 2, 2, 4]),
    ([[2, 10**15], 5], 7, [2, 2, 2, 1])])
def test_cuts(edges, length, sizes):
    assert list(_edges.list_edges(length, edges)) == sizes and _edges.count_edges(length, edges) == len(sizes)
