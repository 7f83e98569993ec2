/*
 * plan/shard.c - the index of one shard, whose entries `chain` checks when they are
 * used; and shards during one request. No I/O.
 * Thread class: indexes are frozen once parsed, shards once opened; both are counted.
 */
#include "plan/plan.h"

#include <string.h>

zarr_status zr_shard_index_make(struct zr_shard_index **out, uint64_t *pairs,
                                const struct zr_shard_pairs *in,
                                const zarr_allocator *alloc, zarr_error *err)
{
    struct zr_shard_index *x = zr_calloc(alloc, 1, sizeof *x);

    if (!x) {
        zr_free(alloc, pairs);
        return zr_fail_memory(err, sizeof *x);
    }
    atomic_init(&x->refs, 1);
    x->alloc = alloc;
    x->n = in->n;
    x->missing = pairs == NULL;
    x->entry = pairs;
    x->bounds = *in;
    x->bounds.pairs = pairs;
    x->end = ZR_MIN(in->shard_bytes, (uint64_t)INT64_MAX); /* also if it is not known */
    if (in->index_bytes && in->index_offset)
        x->end = ZR_MIN(x->end, in->index_offset); /* a store may tell any length */
    else
        x->begin = in->index_bytes;
    *out = x;
    return ZARR_OK;
}

struct zr_shard_index *zr_shard_index_ref(struct zr_shard_index *x)
{
    atomic_fetch_add(&x->refs, 1);
    return x;
}

void zr_shard_index_free(struct zr_shard_index *x)
{
    if (!x || atomic_fetch_sub(&x->refs, 1) != 1)
        return;
    zr_free(x->alloc, x->entry);
    zr_free(x->alloc, x);
}

struct zr_shard *zr_shard_new(const zarr_allocator *alloc, const char *key, int32_t ndim,
                              const uint64_t *origin)
{
    const size_t key_bytes = strlen(key) + 1;
    const size_t origin_bytes = origin ? (size_t)ndim * sizeof *origin : 0;
    struct zr_shard *s = zr_calloc(alloc, 1, sizeof *s + origin_bytes + key_bytes);

    if (!s)
        return NULL;
    atomic_init(&s->refs, 1);
    s->alloc = alloc;
    if (origin)
        s->origin = memcpy(s + 1, origin, origin_bytes);
    s->key = memcpy((char *)(s + 1) + origin_bytes, key, key_bytes);
    return s;
}

struct zr_shard *zr_shard_ref(struct zr_shard *s)
{
    atomic_fetch_add(&s->refs, 1);
    return s;
}

void zr_shard_free(struct zr_shard *s)
{
    /* A loop instead of recursion: freeing a nested shard releases its parent. */
    while (s && atomic_fetch_sub(&s->refs, 1) == 1) {
        struct zr_shard *parent = s->parent;

        if (s->release)
            s->release(s);
        zr_shard_index_free(s->index);
        zr_free(s->alloc, s);
        s = parent;
    }
}
