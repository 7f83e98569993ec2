/*
 * store/durable.c - makes a few keys durable without a flush of the whole store. A flush
 * of the local store is syncfs(), which waits for all dirty data of the file system: also
 * for those of other programs, which may take minutes. To sync each value and folder
 * waits for these alone, but costs one write of the journal each, some ms on a disk. So
 * up to SYNCS_MOST syncs are done one by one: that is a tenth of a second, or half of one
 * on a slow disk. For more, a flush is usually faster.
 *
 * Thread class: plain functions.
 */
#include "store/store_int.h"

#include <string.h>

enum {
    SYNCS_MOST = 32
};

void zr_durable_init(struct zr_durable *d, zarr_store *s)
{
    *d = (struct zr_durable){.store = s, .n_syncs = 1}; /* the root */
    zr_str_init(&d->keys, s->env.alloc);
    d->alone = s->native && s->native->sync_names && s->native->syncs_names(s->self);
}

void zr_durable_deinit(struct zr_durable *d)
{
    zr_str_deinit(&d->keys);
}

/* Its value, and the folders that the key before it is not in. */
static uint32_t count_syncs(const char *key, const char *before)
{
    uint32_t n = 1;

    for (size_t i = 0; key[i] != '\0'; i++)
        n += key[i] == '/' && (!before || strncmp(key, before, i + 1) != 0);
    return n;
}

bool zr_durable_add(struct zr_durable *d, const char *key)
{
    const char *before = d->n > 0 ? zr_str_text(&d->keys) + d->last : NULL;

    if (!d->alone)
        return false;
    d->n_syncs += count_syncs(key, before);
    d->last = d->keys.bytes;
    zr_str_append(&d->keys, key, strlen(key) + 1);
    d->n++;
    d->alone = d->n_syncs <= SYNCS_MOST && !d->keys.failed;
    return d->alone;
}

uint32_t zr_durable_flags(const struct zr_durable *d)
{
    return d->alone ? ZR_STORE_OP_SYNCED : 0;
}

zarr_status zr_durable_end(struct zr_durable *d, zarr_error *err)
{
    zarr_store *s = d->store;
    zarr_status st;

    if (!d->alone)
        return zarr_store_flush(s, NULL, err);
    st = s->native->sync_names(s->self, zr_str_text(&d->keys), d->n, err);
    if (st != ZARR_OK)
        zr_error_operation(err, ZARR_OPERATION_FLUSH);
    return st == ZARR_OK ? st : zr_prefix(err, st, "%s", s->url);
}
