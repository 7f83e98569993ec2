/*
 * pipe/chunk/index.c - encodes and decodes the index of a shard: a small array of uint64,
 * which goes through its own chain like any chunk; and the decoded indexes of one array,
 * by object key (and offset, for nested shards). These are bounded in bytes; the least
 * recently used is dropped first. Entries are frozen and counted. The caller compares the
 * object's version to learn whether an entry is current.
 * Thread class: on the worker context; the cache is shared (one lock).
 */
#include "pipe/chunk/chunk_int.h"

#include <string.h>

/* The index as an array in host memory, so that the steps of a chunk apply: a view of the
 * pairs and what goes with it. */
struct index_work {
    struct zr_io io;
    struct zr_layout layout;
    struct zr_piece pieces[ZARR_MAX_RANK];
    struct zr_target whole;
    struct zr_work work;
};

/* pairs: may be set later, in x->io.view. */
static void index_work_init(struct index_work *x, const struct zr_work *w,
                            const struct zr_level *lv, uint64_t *pairs)
{
    const struct zr_level *ix = lv->index;

    x->io = *w->io;
    x->io.parts = NULL;
    x->io.field.on = false;
    x->layout = (struct zr_layout){.item_bytes = 8, .swap_unit = 8};
    x->io.layout = &x->layout;
    x->work = (struct zr_work){.io = &x->io, .rq = w->rq, .worker = w->worker};
    zr_target_whole(&x->whole, x->pieces, ix->ndim, ix->shape);
    zr_view_contiguous(&x->io.view, zr_mem_of_host(pairs, lv->n_inner_all * 16), ix->ndim,
                       ix->shape, 8, 0);
}

/* Whether the decoded index is already in `own` as the pairs are in memory. */
static bool is_in_place(const struct zr_program *p, const zarr_memory *block,
                        const uint64_t *own)
{
    bool same = own && block->handle == own && p->swap_bytes <= 1 &&
                block->bytes == p->decoded_bytes;

    for (int32_t d = 0; d < p->ndim; d++)
        same = same && p->order[d] == d;
    return same;
}

/* *own: where encoded is, or NULL; it becomes *out if the pairs can be decoded there. */
static zarr_status decode_pairs(const struct zr_work *w, const struct zr_level *lv,
                                const zarr_memory *encoded, uint64_t **own,
                                uint64_t **out, zarr_error *err)
{
    const struct zr_program *p = lv->index->decode;
    const zarr_allocator *alloc = w->io->engine->alloc;
    const uint64_t bytes = lv->n_inner_all * 16;
    struct index_work x;
    zarr_memory block = {0};
    uint64_t *pairs = NULL;
    zarr_status st = ZARR_OK;

    index_work_init(&x, w, lv, NULL);
    ZR_TRY(zr_chunk_decode(&x.work, p, encoded, NULL, &block, err));
    if (is_in_place(p, &block, *own)) {
        pairs = *own;
        *own = NULL;
        memmove(pairs, (const char *)pairs + block.offset, (size_t)bytes);
    } else {
        pairs = zr_malloc(alloc, (size_t)bytes);
        if (!pairs)
            ZR_FAIL_MEMORY(err, bytes);
        x.io.view.base.handle = pairs;
        ZR_TRY(zr_scatter_target(&x.work, p, &x.whole, &block, err));
    }
    *out = pairs;
    pairs = NULL;
out:
    zr_free(alloc, pairs);
    return st;
}

zarr_status zr_index_memory(const struct zr_work *w, const struct zr_level *lv,
                            uint64_t **own, zarr_memory *out, zarr_error *err)
{
    const uint64_t bytes = ZR_MAX(lv->index_bytes, lv->n_inner_all * 16);

    *own = zr_malloc(w->io->engine->alloc, (size_t)bytes);
    if (!*own)
        return zr_fail_memory(err, bytes);
    *out = zr_mem_of_host(*own, lv->index_bytes);
    return ZARR_OK;
}

zarr_status zr_index_encode(const struct zr_work *w, const struct zr_level *lv,
                            uint64_t *pairs, const zarr_memory *dst, zarr_error *err)
{
    const struct zr_program *p = lv->index->encode;
    struct index_work x;
    zarr_memory block = {0}, out = {0};

    index_work_init(&x, w, lv, pairs);
    ZR_CHECK(zr_worker_scratch(w, ZR_SCRATCH_INDEX, ZARR_DEVICE_CPU, p->decoded_bytes,
                               &block, err));
    ZR_CHECK(zr_gather_target(&x.work, p, &x.whole, &block, err));
    ZR_CHECK(zr_chunk_encode(&x.work, p, &block, dst, &out, err));
    if (out.bytes != lv->index_bytes)
        ZR_CHECK(zr_internal(err));
    return ZARR_OK;
}

zarr_status zr_index_parse(const struct zr_work *w, const struct zr_level *lv,
                           const struct zr_index_value *value,
                           struct zr_shard_index **out, zarr_error *err)
{
    const zarr_allocator *alloc = w->io->engine->alloc;
    struct zr_shard_pairs in = {.n = lv->n_inner_all, .shard_bytes = value->shard_bytes};
    uint64_t *own = value->own, *pairs = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(decode_pairs(w, lv, &value->encoded, &own, &pairs, err));
    if (!lv->shard->index_at_end || in.shard_bytes != UINT64_MAX) {
        in.index_bytes = lv->index_bytes;
        in.index_offset = lv->shard->index_at_end ? in.shard_bytes - lv->index_bytes : 0;
    }
    ZR_TRY(zr_shard_index_make(out, pairs, &in, alloc, err));
out:
    zr_free(alloc, own);
    return st == ZARR_OK ? st : zr_prefix(err, st, "shard index");
}

zarr_status zr_index_from_value(const struct zr_work *w, const struct zr_level *lv,
                                const zarr_memory *value, struct zr_shard_index **out,
                                zarr_error *err)
{
    struct zr_index_value index = {.shard_bytes = value->bytes};
    uint64_t at = 0;

    ZR_CHECK(zr_shard_index_at(lv->shard, value->bytes, lv->index_bytes, &at, err));
    if (!zr_mem_slice(value, at, lv->index_bytes, &index.encoded))
        return zr_internal(err);
    return zr_index_parse(w, lv, &index, out, err);
}

/* ---- the cache --------------------------------------------------------------------- */

struct cached {
    struct zr_shard_index *index;
    struct cached *older, *newer; /* by their last use */
    uint64_t bytes;
    char key[];
};

struct zr_index_cache {
    const zarr_allocator *alloc;
    uint64_t max_bytes;
    struct {
        zr_mutex mutex;
        struct zr_map map; /* key -> struct cached */
        struct cached *oldest, *newest;
        uint64_t bytes;
    } locked;
    struct zr_fork_hook fork; /* keeps the map consistent in a forked child */
};

static void cached_free(const zarr_allocator *alloc, void *value)
{
    struct cached *c = value;

    zr_shard_index_free(c->index);
    zr_free(alloc, c);
}

zarr_status zr_index_cache_create(struct zr_index_cache **out,
                                  const zarr_allocator *alloc, uint64_t max_bytes,
                                  zarr_error *err)
{
    struct zr_index_cache *c = zr_calloc(alloc, 1, sizeof *c);

    if (!c)
        return zr_fail_memory(err, sizeof *c);
    c->alloc = alloc;
    c->max_bytes = max_bytes;
    zr_mutex_init(&c->locked.mutex);
    zr_map_init(&c->locked.map, alloc, cached_free);
    c->fork = (struct zr_fork_hook){.mutex = &c->locked.mutex};
    zr_fork_hook_add(&c->fork);
    *out = c;
    return ZARR_OK;
}

void zr_index_cache_free(struct zr_index_cache *c)
{
    if (!c)
        return;
    zr_fork_hook_remove(&c->fork);
    zr_map_deinit(&c->locked.map);
    zr_mutex_deinit(&c->locked.mutex);
    zr_free(c->alloc, c);
}

static void link_newest_locked(struct zr_index_cache *c, struct cached *e)
{
    e->older = c->locked.newest;
    e->newer = NULL;
    if (e->older)
        e->older->newer = e;
    else
        c->locked.oldest = e;
    c->locked.newest = e;
}

static void unlink_locked(struct zr_index_cache *c, const struct cached *e)
{
    if (e->older)
        e->older->newer = e->newer;
    else
        c->locked.oldest = e->newer;
    if (e->newer)
        e->newer->older = e->older;
    else
        c->locked.newest = e->older;
}

struct zr_shard_index *zr_index_cache_get(struct zr_index_cache *c, const char *key)
{
    struct cached *found = NULL;
    struct zr_shard_index *index = NULL;

    if (!c)
        return NULL;
    zr_mutex_lock(&c->locked.mutex);
    found = zr_map_get(&c->locked.map, key);
    if (found) {
        unlink_locked(c, found);
        link_newest_locked(c, found);
        index = zr_shard_index_ref(found->index);
    }
    zr_mutex_unlock(&c->locked.mutex);
    return index;
}

static void remove_locked(struct zr_index_cache *c, const char *key)
{
    const struct cached *found = zr_map_get(&c->locked.map, key);

    if (!found)
        return;
    c->locked.bytes -= found->bytes;
    unlink_locked(c, found);
    (void)zr_map_remove_unordered(&c->locked.map, key);
}

static void evict_locked(struct zr_index_cache *c)
{
    while (c->locked.bytes > c->max_bytes && c->locked.map.n > 1)
        remove_locked(c, c->locked.oldest->key);
}

void zr_index_cache_put(struct zr_index_cache *c, const char *key,
                        struct zr_shard_index *index)
{
    const size_t key_bytes = strlen(key) + 1;
    struct cached *fresh = NULL;

    if (!c)
        return;
    fresh = zr_calloc(c->alloc, 1, sizeof *fresh + key_bytes);
    if (!fresh)
        return; /* out of memory: not cached, no error */
    memcpy(fresh->key, key, key_bytes);
    fresh->index = zr_shard_index_ref(index);
    fresh->bytes = index->missing ? 64 : 64 + index->n * 16;
    zr_mutex_lock(&c->locked.mutex);
    remove_locked(c, key);
    if (zr_map_put(&c->locked.map, key, fresh, NULL) == ZARR_OK) {
        link_newest_locked(c, fresh);
        c->locked.bytes += fresh->bytes;
        evict_locked(c);
    } else {
        cached_free(c->alloc, fresh);
    }
    zr_mutex_unlock(&c->locked.mutex);
}

void zr_index_cache_drop(struct zr_index_cache *c, const char *key)
{
    if (!c)
        return;
    zr_mutex_lock(&c->locked.mutex);
    if (key) {
        remove_locked(c, key);
    } else {
        zr_map_deinit(&c->locked.map);
        zr_map_init(&c->locked.map, c->alloc, cached_free);
        c->locked.oldest = c->locked.newest = NULL;
        c->locked.bytes = 0;
    }
    zr_mutex_unlock(&c->locked.mutex);
}
