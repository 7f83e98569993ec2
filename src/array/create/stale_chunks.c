/*
 * array/create/stale_chunks.c - finds chunks at the place of a new array: what is left of
 * an array that was deleted in part, or of a copy. They would be elements of the new
 * array. One level of the store is listed, and each prefix in which chunks can be, up to
 * its first key. Thread class: plain functions.
 */
#include "array/shape/shape_int.h"

#include <string.h>

struct taken_look {
    const struct zr_array_meta *meta;
    size_t skip;           /* length of the path and its slash */
    const char *below;     /* what follows a prefix in a key of chunks; NULL: no prefix */
    struct zr_str found;   /* key of a chunk */
    struct zr_str key;     /* scratch */
    struct zr_str folders; /* prefixes in which chunks can be, each followed by 0 */
};

static bool is_chunk_key(const struct taken_look *l, const char *key)
{
    uint64_t chunk[ZARR_MAX_RANK];

    return zr_key_encoding_chunk(&l->meta->keys, l->meta->ndim, key, chunk);
}

static int look_at_taken(void *user, const zarr_store_item *item)
{
    struct taken_look *l = user;

    if (strlen(item->key) <= l->skip)
        return 0;
    if (!item->is_prefix) {
        if (!is_chunk_key(l, item->key + l->skip))
            return 0;
        zr_str_puts(&l->found, item->key);
        return 1;
    }
    if (!l->below)
        return 0;
    zr_str_clear(&l->key);
    zr_str_puts(&l->key, item->key + l->skip);
    zr_str_puts(&l->key, l->below);
    if (l->key.failed || is_chunk_key(l, zr_str_text(&l->key)))
        zr_str_append(&l->folders, item->key, strlen(item->key) + 1);
    return 0;
}

static int look_at_first(void *user, const zarr_store_item *item)
{
    zr_str_puts(user, item->key);
    return 1;
}

/* A folder may be empty. */
static zarr_status look_into_folders(struct taken_look *l, zarr_store *store,
                                     const zarr_cancel *cancel, zarr_error *err)
{
    zarr_status st = zr_str_status(&l->folders, err);

    for (size_t at = 0; st == ZARR_OK && at < l->folders.bytes && l->found.bytes == 0;
         at += strlen(l->folders.ptr + at) + 1)
        st = zr_store_list(store, l->folders.ptr + at, ZARR_LIST_RECURSIVE, look_at_first,
                           &l->found, cancel, err);
    return st;
}

zarr_status zr_chunks_must_not_be(zarr_store *store, const char *path,
                                  const struct zr_array_meta *meta,
                                  const zarr_cancel *cancel, zarr_error *err)
{
    const zarr_allocator *alloc = zr_store_context(store)->alloc;
    const uint64_t zeros[ZARR_MAX_RANK] = {0};
    struct taken_look l = {.meta = meta, .skip = *path ? strlen(path) + 1 : 0};
    struct zr_str first;
    zarr_status st = ZARR_OK;

    zr_str_init(&first, alloc);
    zr_str_init(&l.found, alloc);
    zr_str_init(&l.key, alloc);
    zr_str_init(&l.folders, alloc);
    if (!zr_store_can(store, ZARR_STORE_CAP_LIST))
        goto out;
    zr_key_encoding_key(&meta->keys, meta->ndim, zeros, &first);
    ZR_TRY(zr_str_status(&first, err));
    l.below = strchr(zr_str_text(&first), '/');
    ZR_TRY(
        zr_store_list(store, path, ZARR_LIST_DIRECTORY, look_at_taken, &l, cancel, err));
    ZR_TRY(look_into_folders(&l, store, cancel, err));
    ZR_TRY(zr_str_status(&l.found, err));
    if (l.found.bytes > 0)
        st = zr_fail(err, ZARR_ERR_EXISTS,
                     "there is no array, but chunks that one left (%s): "
                     "zarr_node_delete() and ZARR_SPEC_OVERWRITE delete them",
                     zr_str_text(&l.found));
out:
    zr_str_deinit(&l.folders);
    zr_str_deinit(&l.key);
    zr_str_deinit(&l.found);
    zr_str_deinit(&first);
    return st;
}
