/*
 * node/handle.c - what arrays and groups have in common: owners, a lock for the
 * one pointer that a handle changes, and texts that are made when somebody
 * asks. The lock is held for a few instructions; it is hooked into fork all
 * the same, so that a handle works in a child whenever the parent forked.
 * Thread class: shared.
 */
#include "node/node_int.h"

enum {
    HANDLE_FORK_RANK = 1000 /* outermost: nothing is locked before it */
};

void zr_handle_init(struct zr_handle *h, zarr_store *store, char *path)
{
    atomic_init(&h->refs, 1);
    h->store = zarr_store_ref(store);
    h->ctx = zarr_context_ref(zr_store_context(store));
    h->path = path;
    zr_mutex_init(&h->mutex);
    h->fork = (struct zr_fork_hook){.mutex = &h->mutex, .rank = HANDLE_FORK_RANK};
    zr_fork_hook_add(&h->fork);
}

void zr_handle_deinit(struct zr_handle *h)
{
    zr_fork_hook_remove(&h->fork);
    zr_mutex_deinit(&h->mutex);
    zr_free(h->ctx->alloc, h->path);
    zarr_store_free(h->store);
    zarr_context_free(h->ctx);
}

const char *zr_lazy_put(zr_lazy_text *slot, char *text, const zarr_allocator *alloc)
{
    char *there = NULL;

    if (!text)
        return NULL;
    if (atomic_compare_exchange_strong(slot, &there, text))
        return text;
    zr_free(alloc, text); /* another thread was faster */
    return there;
}

const char *zr_lazy_json(zr_lazy_text *slot, const struct zr_json *v, unsigned indent,
                         const zarr_allocator *alloc)
{
    const char *there = atomic_load(slot);
    struct zr_str text;

    if (there)
        return there;
    zr_str_init(&text, alloc);
    if (v)
        zr_json_write(v, indent, &text);
    else
        zr_str_puts(&text, "{}");
    there = zr_lazy_put(slot, zr_str_take(&text), alloc);
    zr_str_deinit(&text);
    return there;
}

static bool object_is_there(zarr_store *store, const char *path, const char *name)
{
    zarr_store_op op = {.verb = ZARR_STORE_STAT};
    zarr_status st = ZARR_ERR_NO_MEMORY;
    struct zr_str key;

    zr_str_init(&key, zr_store_context(store)->alloc);
    zr_path_key(&key, path, name);
    op.key = zr_str_text(&key);
    if (!key.failed)
        st = zr_store_run_one(store, &op, NULL);
    zr_str_deinit(&key);
    return st == ZARR_OK;
}

/* Two more requests: only for those who listen, and only where they cost microseconds. */
void zr_warn_hidden(zarr_store *store, const char *path)
{
    const struct zr_log *log = &zr_store_context(store)->log;

    if (!log->fn || log->level < ZARR_LOG_WARN ||
        !zr_store_can(store, ZARR_STORE_CAP_FAST_GET))
        return;
    if (object_is_there(store, path, ZR_DOC_ARRAY) ||
        object_is_there(store, path, ZR_DOC_GROUP))
        zr_log(log, ZARR_LOG_WARN, "/%s: has v2 and v3 metadata; the v3 metadata is used",
               path);
}
