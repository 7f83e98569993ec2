"""Cases for stores.py: shards whose index or inner chunks lie."""
import struct

from stores import (BYTES, CHUNK, CORRUPT, CRC, GZIP, LIMIT, OK, STRICT, UNSUPPORTED, ZSTD, add, codec, crc32c, grid,
                    gzip_bomb, v3, whole, zstd_bomb)
from stores_metadata import meta

MISSING = (2**64 - 1, 2**64 - 1)


def shard_codecs(codecs=(BYTES,), index=(BYTES, CRC), inner=(1, 2), where="end"):
    return [codec("sharding_indexed", chunk_shape=list(inner), codecs=list(codecs),
                  index_codecs=list(index), index_location=where)]


def shard(data, *entries, crc=True, index_first=False):
    index = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    index += crc32c(index) if crc else b""
    return index + data if index_first else data + index


def shards(name, value, word="a/c/0/0", status=CORRUPT, more=None, codecs=None, **steps):
    """Shards of 2 x 2 with inner chunks of 1 x 2, 4 bytes each."""
    add(name, lambda: v3(whole(value() if callable(value) else value), codecs=codecs or shard_codecs()),
        data=(status, word) if status else None, values={"last": "7", **(more or {})},
        **{"chunks": (status, word) if status else (OK, ""), **steps})


shards("shard_empty", b"")
shards("shard_1_byte", b"x")
shards("shard_shorter_than_index", bytes(35))
shards("shard_index_crc", shard(CHUNK, (0, 4), (4, 4), crc=False) + bytes(4))
shards("shard_index_of_other_length", lambda: shard(CHUNK, (0, 4), (4, 4), (0, 4)))
shards("shard_offset_beyond", lambda: shard(CHUNK, (1000, 4), (4, 4)))
shards("shard_offset_wraps", lambda: shard(CHUNK, (2**64 - 4, 8), (4, 4)))
shards("shard_offset_2_63", lambda: shard(CHUNK, (2**63, 4), (4, 4)))
shards("shard_length_wraps", lambda: shard(CHUNK, (4, 2**64 - 4), (4, 4)))
shards("shard_length_2_64", lambda: shard(CHUNK, (0, 2**64 - 1), (4, 4)))
shards("shard_offset_missing_only", lambda: shard(CHUNK, (2**64 - 1, 4), (4, 4)))
shards("shard_length_beyond", lambda: shard(CHUNK, (0, 5 + 36 + 4), (4, 4)))
shards("shard_entry_in_index", lambda: shard(CHUNK, (8, 4), (4, 4)))
shards("shard_entry_meets_index", lambda: shard(CHUNK, (6, 4), (0, 4)))
shards("shard_entry_in_first_index",
       lambda: shard(CHUNK, (0, 4), (36, 4), index_first=True), codecs=shard_codecs(where="start"))
shards("shard_overlap_whole", lambda: shard(CHUNK, (0, 8), (0, 4)), chunks=(OK, ""))
shards("shard_overlap", lambda: shard(CHUNK, (0, 4), (2, 4)), status=None, more={"first": "1"})
shards("shard_inner_short", lambda: shard(CHUNK, (0, 3), (4, 4)), chunks=(OK, ""))
shards("shard_inner_long", lambda: shard(CHUNK + b"x", (0, 5), (5, 4)), chunks=(OK, ""))
shards("shard_inner_zero", lambda: shard(CHUNK, (0, 0), (4, 4)), chunks=(OK, ""))
shards("shard_inner_bomb", lambda: shard(gzip_bomb(), (0, len(gzip_bomb())), MISSING),
       codecs=shard_codecs([BYTES, GZIP]), chunks=(OK, ""))
shards("shard_inner_crc", lambda: shard(CHUNK + crc32c(CHUNK[:4])[::-1], (0, 8), MISSING),
       codecs=shard_codecs([BYTES, CRC]), chunks=(OK, ""))
shards("shard_same_bytes_twice", lambda: shard(CHUNK[:4], (0, 4), (0, 4)), status=None,
       more={"first": "1"})
shards("shard_gap", lambda: shard(b"gap!" + CHUNK, (4, 4), (8, 4)), status=None, more={"first": "1"})
shards("shard_all_missing", lambda: shard(b"", MISSING, MISSING), status=None, more={"read": "7"})
shards("shard_trailing_byte", lambda: shard(CHUNK, (0, 4), (4, 4)) + b"x")
shards("shard_index_first_lies", lambda: b"x" + shard(CHUNK, (0, 4), (4, 4), index_first=True),
       codecs=shard_codecs(where="start"))


def wholes(name, value, word="a/c/0/0", status=CORRUPT, before="reshape", codecs=None, **steps):
    """The same after a codec that needs all of the shard, so that reading the chunk reads the index."""
    before = codec("reshape", shape=[2, 2]) if before == "reshape" else codec("numcodecs.delta", dtype="<u2")
    add(name, lambda: v3(whole(value() if callable(value) else value), codecs=[before, *(codecs or shard_codecs())]),
        data=(status, word) if status else None, chunks=(OK, ""), values={"last": "7", **steps.pop("more", {})}, **steps)


wholes("whole_empty", b"")
wholes("whole_shorter_than_index", bytes(35), before="delta")
wholes("whole_index_crc", shard(CHUNK, (0, 4), (4, 4), crc=False) + bytes(4))
wholes("whole_offset_wraps", lambda: shard(CHUNK, (2**64 - 4, 8), (4, 4)))
wholes("whole_length_2_64", lambda: shard(CHUNK, (0, 2**64 - 1), (4, 4)), before="delta")
wholes("whole_offset_missing_only", lambda: shard(CHUNK, (2**64 - 1, 4), (4, 4)))
wholes("whole_length_beyond", lambda: shard(CHUNK, (0, 5 + 36 + 4), (4, 4)))
wholes("whole_entry_meets_index", lambda: shard(CHUNK, (6, 4), (0, 4)))
wholes("whole_entry_in_first_index",
       lambda: shard(CHUNK, (0, 4), (36, 4), index_first=True), codecs=shard_codecs(where="start"))
wholes("whole_inner_short", lambda: shard(CHUNK, (0, 3), (4, 4)), "chunk [0,0] of the shard")
wholes("whole_inner_bomb", lambda: shard(zstd_bomb(), MISSING, (0, len(zstd_bomb()))), "chunk [1,0] of the shard",
       codecs=shard_codecs([BYTES, ZSTD]), before="delta")
wholes("whole_same_bytes_twice", lambda: shard(CHUNK[:4], (0, 4), (0, 4)), status=None, more={"first": "1"})
wholes("whole_all_missing", lambda: shard(b"", MISSING, MISSING), status=None, more={"first": "7"})
wholes("whole_nested_lies", lambda: shard(shard(CHUNK, (2**64 - 4, 8), (4, 4)), (0, 44)),
       codecs=shard_codecs(shard_codecs(), inner=(2, 2)))
meta("whole_shape_not_divided", CORRUPT, "chunk_shape",
     codecs=[codec("reshape", shape=[4]), *shard_codecs(inner=(3,))])
meta("whole_index_sharded", CORRUPT, "index_codecs",
     codecs=[codec("reshape", shape=[2, 2]), *shard_codecs(index=shard_codecs())])
meta("shard_index_codecs_gzip", CORRUPT, "index_codecs", codecs=shard_codecs(index=[BYTES, GZIP]))
meta("shard_index_codecs_empty", CORRUPT, "index_codecs", codecs=shard_codecs(index=[]))
meta("shard_index_sharded", CORRUPT, "index_codecs", codecs=shard_codecs(index=shard_codecs()))
# Inner chunks that cannot be written.
add("shard_bitround_bool", lambda: v3(codecs=shard_codecs([codec("bitround", keepbits=3), codec("bytes")]), data_type="bool", fill_value=True),
    open=(STRICT, "only integers, times"), write=(UNSUPPORTED, "not write them"))
# With a lossy codec, an index would point to other chunks.
LOSSY = {
    "packbits": [codec("packbits", last_bit=3)], "packbits_62": [codec("packbits", first_bit=1)],
    "bitround": [codec("bitround", keepbits=63), BYTES],
    "cast": [codec("cast_value", data_type="uint8", out_of_range="clamp"), codec("bytes")],
    "cast_signed": [codec("cast_value", data_type="int64", out_of_range="wrap"), BYTES],
    "scale": [codec("scale_offset", offset=1), BYTES],
    "fixedscaleoffset": [codec("numcodecs.fixedscaleoffset", scale=1, offset=0, dtype="<u8", astype="<u8"), BYTES],
    "astype": [codec("numcodecs.astype", encode_dtype="<u4", decode_dtype="<u8"), BYTES],
    "astype_float": [codec("numcodecs.astype", encode_dtype="<f8", decode_dtype="<u8"), BYTES],
    "delta": [codec("numcodecs.delta", dtype="<u8", astype="<u4"), BYTES],
    "quantize": [codec("cast_value", data_type="float64"),
                 codec("numcodecs.quantize", digits=1, dtype="<f8"), BYTES],
    "reshaped": [codec("reshape", shape=[-1]), codec("packbits", last_bit=62)],
}
for _name, _index in LOSSY.items():
    meta(f"shard_index_{_name}", CORRUPT, "loses values", codecs=shard_codecs(index=_index))
    meta(f"whole_index_{_name}", CORRUPT, "loses values",
         codecs=[codec("reshape", shape=[2, 2]), *shard_codecs(index=_index)])
meta("shard_index_zfp", CORRUPT, "index_codecs",
     codecs=shard_codecs(index=[codec("cast_value", data_type="int64", out_of_range="wrap"),
                           codec("zfp", mode="fixed_rate", rate=8)]))
meta("shard_index_location", CORRUPT, "index_location", codecs=shard_codecs(where="middle"))
meta("shard_shape_not_divided", CORRUPT, "chunk_shape", codecs=shard_codecs(inner=(3, 2)))
meta("shard_shape_larger", CORRUPT, "chunk_shape", codecs=shard_codecs(inner=(4, 4)))
meta("shard_shape_rank", CORRUPT, "chunk_shape", codecs=shard_codecs(inner=(2,)))
meta("shard_shape_zero", CORRUPT, "chunk_shape", codecs=shard_codecs(inner=(0, 2)))
meta("shard_no_codecs", CORRUPT, "codecs", codecs=[codec("sharding_indexed", chunk_shape=[1, 2])])
meta("shard_inner_unknown_codec", UNSUPPORTED, "snake_oil",
     codecs=shard_codecs([BYTES, codec("snake_oil")]))
meta("shard_too_many_chunks", LIMIT, "chunks_per_shard", shape=[2**20, 2**20],
     chunk_grid=grid(2**20, 2**20), codecs=shard_codecs(inner=(1, 1)))
meta("shard_chunks_wrap", LIMIT, "64 bits", shape=[2**40, 2**40],
     chunk_grid=grid(2**32, 2**32), codecs=shard_codecs(inner=(1, 1)))


def nest(depth):
    codecs = [BYTES]
    for _ in range(depth):
        codecs = shard_codecs(codecs, inner=(1, 1))
    return codecs


meta("shard_depth_5", LIMIT, "shard_depth", codecs=nest(5))
meta("shard_depth_30", LIMIT, "", codecs=nest(30))
add("shard_nested_lies", lambda: v3(whole(shard(shard(CHUNK, (2**64 - 4, 8), (4, 4)), (0, 44))),
                                    codecs=shard_codecs(shard_codecs(), inner=(2, 2))),
    data=(CORRUPT, "a/c/0/0"), chunks=(CORRUPT, "a/c/0/0"), values={"last": "7"})
add("shard_nested_outer_cuts_inner",
    lambda: v3(whole(shard(shard(CHUNK, (0, 4), (4, 4)), (0, 43))),
               codecs=shard_codecs(shard_codecs(), inner=(2, 2))),
    data=(CORRUPT, "a/c/0/0"), chunks=(CORRUPT, "a/c/0/0"), values={"last": "7"})
add("shard_nested_points_out",
    lambda: v3(whole(shard(shard(CHUNK, (0, 60), (4, 4)), (0, 44))),
               codecs=shard_codecs(shard_codecs(), inner=(2, 2))),
    data=(CORRUPT, "a/c/0/0"), chunks=(CORRUPT, "a/c/0/0"), values={"last": "7"})
add("shard_nested_ok",
    lambda: v3(whole(shard(shard(CHUNK, (0, 4), (4, 4)), (0, 44))),
               codecs=shard_codecs(shard_codecs(), inner=(2, 2))), values={"last": "7", "first": "1"})
add("shard_of_4m_chunks_cut",
    lambda: v3({"c/0/0": bytes(100000)}, shape=[2**11, 2**11], chunk_grid=grid(2**11, 2**11),
               codecs=shard_codecs(inner=(1, 1))),
    data=(CORRUPT, "a/c/0/0"), last=(CORRUPT, "a/c/0/0"), chunks=(CORRUPT, "a/c/0/0"))
