/*
 * pipe/chunk/index_cache.h - decoded shard indexes of one array. The part of chunk.h that
 * rooms outside of pipe see, too.
 * Thread class: shared.
 */
#ifndef ZR_PIPE_INDEX_CACHE_H
#define ZR_PIPE_INDEX_CACHE_H

#include "base/base.h"
#include "plan/plan.h"

/* Decoded shard indexes of one array, shared between requests, bounded in bytes. Its user
 * compares the version of the object to find out that an index is stale. */
struct zr_index_cache;
zarr_status zr_index_cache_create(struct zr_index_cache **out,
                                  const zarr_allocator *alloc, uint64_t max_bytes,
                                  zarr_error *err);
void zr_index_cache_free(struct zr_index_cache *c);
/* Returns a counted index, or NULL. cache may be NULL. */
struct zr_shard_index *zr_index_cache_get(struct zr_index_cache *c, const char *key);
void zr_index_cache_put(struct zr_index_cache *c, const char *key,
                        struct zr_shard_index *index);
/* key NULL: drops all. */
void zr_index_cache_drop(struct zr_index_cache *c, const char *key);

#endif
