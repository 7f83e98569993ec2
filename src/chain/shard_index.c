/*
 * chain/shard_index.c - checks an entry of the index of a shard: a pair of offset and
 * length inside the shard's value. All ones means missing: the fill value (zarr-specs,
 * sharding-indexed, "Binary shard format"). The index's own chain has decoded it into
 * host byte order. No number in it is trusted before it is known to be inside the value.
 * A bad entry is an error of its chunk only: the others can be read.
 * Shards that are read in parts (plan, pipe) and shards that are decoded whole (impl)
 * share this check.
 * Thread class: plain functions.
 */
#include "chain/chain_int.h"

zarr_status zr_shard_pair_check(const struct zr_shard_pairs *in, uint64_t i,
                                zarr_error *err)
{
    const uint64_t most = ZR_MIN(in->shard_bytes, (uint64_t)INT64_MAX);
    uint64_t offset = in->pairs[2 * i], bytes = in->pairs[2 * i + 1], end = 0;

    if (ZR_PAIR_IS_MISSING(&in->pairs[2 * i]))
        return ZARR_OK;
    /* An entry with only one half of the mark is corrupt and not missing, even if the
     * value's length is unknown. */
    if (offset == ZR_INDEX_MISSING || !zr_add(offset, bytes, &end) || end > most)
        return zr_fail(err, ZARR_ERR_CORRUPT,
                       "shard index entry %" PRIu64 " (offset %" PRIu64 ", %" PRIu64
                       " bytes) lies outside the shard of %" PRIu64 " bytes",
                       i, offset, bytes, in->shard_bytes);
    /* If the place of the index is unknown (index_bytes 0), nothing can overlap it. */
    if (bytes != 0 && in->index_bytes != 0 &&
        offset < in->index_offset + in->index_bytes && in->index_offset < end)
        return zr_fail(err, ZARR_ERR_CORRUPT,
                       "shard index entry %" PRIu64 " (offset %" PRIu64 ", %" PRIu64
                       " bytes) overlaps the index",
                       i, offset, bytes);
    return ZARR_OK;
}

zarr_status zr_shard_index_at(const struct zr_shard_spec *s, uint64_t shard_bytes,
                              uint64_t index_bytes, uint64_t *at, zarr_error *err)
{
    if (shard_bytes < index_bytes)
        return zr_fail(err, ZARR_ERR_CORRUPT,
                       "a shard of %" PRIu64 " bytes cannot hold its index of %" PRIu64,
                       shard_bytes, index_bytes);
    *at = s->index_at_end ? shard_bytes - index_bytes : 0;
    return ZARR_OK;
}
