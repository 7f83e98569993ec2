/*
 * pipe/chunk/index_cache.c - decoded shard indexes of one array, by object key (and
 * offset, for nested shards). Bounded in bytes; the least recently used is dropped first.
 * Entries are frozen and counted. The caller compares the object's version to learn
 * whether an entry is current. Thread class: shared (one lock).
 */
#include "pipe/chunk/chunk_int.h"

#include <string.h>

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
