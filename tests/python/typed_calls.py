"""Calls as users write them. mypy checks them: test_typing.py. It does not run."""
from pathlib import Path
from typing import Any

import numcodecs  # type: ignore[import-untyped,unused-ignore]
import numpy as np
import zarr
from zarr.codecs import BloscCodec, BytesCodec, ZstdCodec

import zarrc

# ---- stores ----
STORES = ("x.zarr", Path("x.zarr"), zarrc.open_store("memory://a"), zarrc.create_group(), {"zarr.json": b"{}"}, None)
for store in STORES:
    zarrc.open(store, mode="a", shape=(3, 4), dtype="f4")
zarrc.open_group(zarr.storage.MemoryStore())
zarrc.open_array(zarr.storage.LocalStore("x.zarr"))
zarrc.open_array(zarrc.ZarrcStore("x.zarr"), path="a")
zarrc.open(7)  # type: ignore[arg-type]
zarrc.open_array(store=[1])  # type: ignore[arg-type]

# ---- new arrays ----
zarrc.create_array("a", shape=5, dtype=np.float32, chunks=2, shards=4, fill_value=1.5)
zarrc.create_array("b", shape=np.zeros((3, 4)).shape, dtype=np.dtype("M8[s]"), chunks=(2, 2), fill_value=np.datetime64("NaT"))
zarrc.create_array("c", shape=[np.int64(3)], dtype="bfloat16", chunks=[[1, 2]], compressors="zstd", filters=None)
zarrc.create_array("d", data=[[1, 2], [3, 4]], compressors=[{"name": "gzip", "configuration": {"level": 1}}], config={"order": "F", "wave_bytes": 1})
zarrc.create_array("e", data=np.arange(3), compressors=ZstdCodec(level=3), serializer=BytesCodec(), dimension_names=["x"])
zarrc.create_array("f", data=np.arange(3), compressors=(BloscCodec(), zarrc.Codec("crc32c")), chunk_key_encoding="v2")
zarrc.create_array("g", shape=3, dtype=int, zarr_format=2, compressors=numcodecs.Zstd(), fill_value=None)
zarrc.create_array("h", shape=3, dtype=str, fill_value="", chunks="auto", shards="auto", config=zarrc.ArrayConfig(order="F"))
zarrc.create_array("i", shape=3, dtype=[("a", "f4"), ("b", "i2")], chunk_key_encoding={"name": "default", "separator": "."})
zarrc.create_array("j", shape="three", dtype="i4")  # type: ignore[arg-type]
zarrc.create_array("k", shape=3, dtype="i4", chunks=1.5)  # type: ignore[arg-type]
zarrc.create_array("l", shape=3, dtype="i4", compressors=9)  # type: ignore[arg-type]
zarrc.zeros((3, 4), store="z", dtype="i4")
zarrc.zeros(3, chunk=2)  # type: ignore[call-arg]
zarrc.full(3, 1.5, store="z", compressors="zstd", shards=2, overwrite=True)
zarrc.open("z", mode="w", shape=3, dtype="i4", checksum=True, synchronizer=None, chunk_store="chunks")
zarrc.open_array("z", mode="w", shape=3, chunks=1.5)  # type: ignore[arg-type]
zarrc.open_group("z", synchronizer=3)  # type: ignore[arg-type]
zarrc.save_array("z", np.arange(3), chunks=2, compressors=None)
zarrc.zeros_like(np.arange(3), store="z", path="a", shards=2)
group = zarrc.create_group()
group.create_array("a", shape=3, dtype="i4", chunks=2, compressors="zstd")
group.create_array("a", shape=3, dtype="i4", compressor="zstd")  # type: ignore[call-arg]
group.require_array("a", shape=3, dtype="i4", fill_value=1)
group.full(name="a", shape=3, fill_value=1, dtype="i4", zarr_format=2)
group.zeros_like(name="a", data=np.arange(3), shape=4)
zarrc.save("s", np.arange(3), more=[1, 2])
z = zarrc.from_array("m", data=zarrc.open_array("a"), chunks=(3,), compressors="keep")

# ---- elements ----
out = np.empty((2, 2), "f4")
rows = np.array([0, 2])
mask = np.ones((3, 4), bool)
z[0], z[-1, ::2], z[..., 1], z[[0, 2]], z[rows, 0], z[mask], z["field"]
z.read((slice(2), 1), out=out, fields=["a"], progress=lambda done, total: None, max_threads=2)
z.read(rows, device="cuda:0", progress=True)
z.read(rows, like="cupy", stats={})
z.read(rows, stats=zarrc.Stats(), wave_bytes="64M", trust="none", coalesce_gap=0)
z.read(wave_byte=1)  # type: ignore[call-arg]
z.write(0, 1, memory_bytes=[1])  # type: ignore[arg-type]
z.explain(rows, pipeline="serial")["waves"]
z.block_write_encoded(next(z.iter_blocks(rows, stored=True)).coordinates, b"")
z.iter_chunks(stored="x")  # type: ignore[arg-type]
z.read(meta_array=np.empty(0))
z.read_many([0, 1], like=np.ndarray)
z.read(like=3)  # type: ignore[arg-type]
zarrc.open("z", like=zarrc.DeviceTensor)
zarrc.create_array("n", shape=3, dtype="i4", like="torch", device="cuda:0")
zarrc.zeros(3, like=np), zarrc.zeros_like(out, like="jax"), group.ones(name="b", shape=3, like="jax")
zarrc.consolidate_metadata("x.zarr", like="cupy").get_array("a", like=np.ndarray)
z[0] = 1.5
z[rows, 1:] = out
z[{"a": 1}]  # type: ignore[index]
z.read(out="x")  # type: ignore[arg-type]
z.read(progress=3)  # type: ignore[arg-type]
z.read_many([0, slice(2), (rows, ...)], out=[out, out])
z.read_many([0, 1], out=out)
z.read_many(3)  # type: ignore[arg-type]
z.write(..., 1.5)
z.write((0, slice(None)), [1, 2], progress=print)
z.append(out)
z.append([[1.0, 2.0]], axis=1)
z.resize((3, 4))
z.resize(5)
z.oindex[[0, 2], :] = 1
z.vindex[rows, rows] = zarrc.open_array("a")
z.blocks[0, 1:3]
z.get_orthogonal_selection(([1, 2], slice(3)), out=out)
z.get_mask_selection(mask)
z.with_config({"order": "F"}).with_config(zarrc.ArrayConfig())

# ---- groups and settings ----
root = zarrc.open_group("x.zarr")
root["a"] = np.arange(3)
found: zarrc.Array | zarrc.Group | None = root.get("a")
other: zarrc.Array | zarrc.Group | int = root.get("a", 3)
root.get("a", like="cupy")
root.require_array("b", shape=(3,), dtype="f4").attrs["unit"] = {"name": "m", "factors": [1, 2.5]}
with zarrc.config.set({"max_threads": 2}, durability="each"):
    value: Any = zarrc.config.get("max_threads")
