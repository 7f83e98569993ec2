/*
 * plan/shard.c - the table of inner chunks of one shard: n pairs, offset and
 * length inside the shard's value; all ones means missing, that is: the fill
 * value (zarr-specs, sharding-indexed, "Binary shard format"). The table
 * arrives decoded by its own chain, in host byte order. We check and unpack;
 * we never read a store and never trust a number before it is inside the value.
 * Thread class: indexes frozen once parsed; shards frozen once opened; both counted.
 */
#include "plan/plan.h"

#include <string.h>

static bool ranges_overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
    return a_bytes != 0 && b_bytes != 0 && a < b + b_bytes && b < a + a_bytes;
}

static zarr_status check_entry(const struct zr_shard_pairs *in, uint64_t i,
                               zarr_error *err)
{
    uint64_t offset = in->pairs[2 * i], bytes = in->pairs[2 * i + 1], end = 0;

    if (offset == ZR_INDEX_MISSING && bytes == ZR_INDEX_MISSING)
        return ZARR_OK;
    /* Half of the mark of a missing chunk is none, also where the value's length is not
     * known. */
    if (offset == ZR_INDEX_MISSING || !zr_add_u64(offset, bytes, &end) ||
        end > in->shard_bytes)
        return zr_fail(err, ZARR_ERR_CORRUPT,
                       "shard index entry %" PRIu64 " (offset %" PRIu64 ", %" PRIu64
                       " bytes) lies outside the shard of %" PRIu64 " bytes",
                       i, offset, bytes, in->shard_bytes);
    /* An index whose own place is not known (index_bytes 0) cannot be overlapped. */
    if (ranges_overlap(offset, bytes, in->index_offset, in->index_bytes))
        return zr_fail(err, ZARR_ERR_CORRUPT,
                       "shard index entry %" PRIu64 " (offset %" PRIu64 ", %" PRIu64
                       " bytes) overlaps the index",
                       i, offset, bytes);
    return ZARR_OK;
}

zarr_status zr_shard_index_parse(struct zr_shard_index **out,
                                 const struct zr_shard_pairs *in,
                                 const zarr_allocator *alloc, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_shard_index *x = zr_calloc(alloc, 1, sizeof(*x));

    if (x == NULL)
        return zr_fail_memory(err, sizeof(*x));
    atomic_init(&x->refs, 1);
    x->alloc = alloc;
    x->n = in->n;
    x->shard_bytes = in->shard_bytes;
    x->missing = in->pairs == NULL;
    if (!x->missing) {
        size_t bytes = 0;

        if (!zr_mul_size((size_t)in->n, 2 * sizeof(uint64_t), &bytes)) {
            st = zr_fail(err, ZARR_ERR_LIMIT, "shard index of %" PRIu64 " chunks", in->n);
            goto out;
        }
        x->entry = zr_malloc(alloc, bytes);
        if (x->entry == NULL) {
            st = zr_fail_memory(err, bytes);
            goto out;
        }
        for (uint64_t i = 0; i < in->n; i++)
            ZR_TRY(check_entry(in, i, err));
        memcpy(x->entry, in->pairs, bytes);
    }
    *out = x;
    x = NULL;
out:
    zr_shard_index_free(x);
    return st;
}

struct zr_shard_index *zr_shard_index_ref(struct zr_shard_index *x)
{
    atomic_fetch_add(&x->refs, 1);
    return x;
}

void zr_shard_index_free(struct zr_shard_index *x)
{
    if (x == NULL || atomic_fetch_sub(&x->refs, 1) != 1)
        return;
    zr_free(x->alloc, x->entry);
    zr_free(x->alloc, x);
}

struct zr_shard *zr_shard_new(const zarr_allocator *alloc, const char *key)
{
    struct zr_shard *s = zr_calloc(alloc, 1, sizeof(*s));

    if (s == NULL)
        return NULL;
    atomic_init(&s->refs, 1);
    s->alloc = alloc;
    s->key = zr_strdup(alloc, key);
    if (s->key == NULL) {
        zr_free(alloc, s);
        return NULL;
    }
    return s;
}

struct zr_shard *zr_shard_ref(struct zr_shard *s)
{
    atomic_fetch_add(&s->refs, 1);
    return s;
}

void zr_shard_free(struct zr_shard *s)
{
    /* A loop, not recursion: a nested shard gives up its parent in turn. */
    while (s != NULL && atomic_fetch_sub(&s->refs, 1) == 1) {
        struct zr_shard *parent = s->parent;

        if (s->release != NULL)
            s->release(s);
        zr_shard_index_free(s->index);
        zr_free(s->alloc, s->key);
        zr_free(s->alloc, s);
        s = parent;
    }
}
