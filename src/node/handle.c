/*
 * node/handle.c - what arrays and groups have in common: references to store and context,
 * a lock for the one pointer that a handle changes, and what callers have borrowed.
 * Threads share handles, and one may change an array while another still looks at its
 * shape. So whatever was lent lives as long as the handle. Only what a caller asked for
 * is kept; a loop of appends keeps nothing. The lock is held for a few instructions. It
 * has a fork hook all the same, so a handle works in a child at whatever moment the
 * parent forked.
 * Thread class: shared.
 */
#include "node/node.h"

#include <string.h>

enum {
    HANDLE_FORK_RANK = 1000 /* outermost: no other lock is taken before it */
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
    zr_claim_give(&h->claim);
    zr_fork_hook_remove(&h->fork);
    zr_mutex_deinit(&h->mutex);
    while (h->borrowed) {
        struct zr_borrowed *next = h->borrowed->next;

        zr_free(h->ctx->alloc, h->borrowed);
        h->borrowed = next;
    }
    zr_free(h->ctx->alloc, h->path);
    zarr_store_free(h->store);
    zarr_context_free(h->ctx);
}

void zr_handle_claim(struct zr_handle *h, struct zr_claim *claim)
{
    zr_mutex_lock(&h->mutex);
    h->claim = *claim;
    zr_mutex_unlock(&h->mutex);
    *claim = (struct zr_claim){0};
}

zarr_status zr_handle_release_claim(struct zr_handle *h, bool is_complete,
                                    const zarr_cancel *cancel, zarr_error *err)
{
    struct zr_claim claim;
    zarr_status st = ZARR_OK;

    zr_mutex_lock(&h->mutex);
    claim = h->claim;
    h->claim = (struct zr_claim){0};
    zr_mutex_unlock(&h->mutex);
    if (is_complete && claim.has_job)
        st = zr_job_erase(claim.store, h->path, cancel, err);
    zr_claim_give(&claim);
    return st;
}

const char *zr_handle_text(struct zr_handle *h, const char **slot)
{
    const char *there;

    zr_mutex_lock(&h->mutex);
    there = *slot;
    zr_mutex_unlock(&h->mutex);
    return there;
}

static const char *keep_text(struct zr_handle *h, const char **slot,
                             const struct zr_str *text)
{
    struct zr_borrowed *copy = NULL;
    const char *there = NULL;

    if (!text->failed)
        copy = zr_malloc(h->ctx->alloc, sizeof *copy + text->bytes + 1);
    if (!copy)
        return NULL;
    memcpy(copy + 1, zr_str_text(text), text->bytes + 1);
    zr_mutex_lock(&h->mutex);
    if (!*slot) { /* otherwise another thread was faster */
        *slot = (const char *)(copy + 1);
        copy->next = h->borrowed;
        h->borrowed = copy;
        copy = NULL;
    }
    there = *slot;
    zr_mutex_unlock(&h->mutex);
    zr_free(h->ctx->alloc, copy);
    return there;
}

const char *zr_handle_json(struct zr_handle *h, const char **slot,
                           const struct zr_json *v, unsigned indent)
{
    const char *there = zr_handle_text(h, slot);
    struct zr_str text;

    if (there)
        return there;
    zr_str_init(&text, h->ctx->alloc);
    if (v)
        zr_json_write(v, indent, &text);
    else
        zr_str_puts(&text, "{}");
    there = keep_text(h, slot, &text);
    zr_str_deinit(&text);
    return there;
}

/* This costs one more request, so it looks only if a log function is set and the store
 * answers in microseconds. */
void zr_warn_hidden(zarr_store *store, const char *path, uint32_t kind)
{
    const struct zr_log *log = &zr_store_context(store)->log;
    bool is_there = false;

    if (!log->fn || log->level < ZARR_LOG_WARN ||
        !zr_store_can(store, ZARR_STORE_CAP_FAST_GET))
        return;
    (void)zr_doc_is_there(store, path, zr_doc_name(kind, 2), &is_there, NULL, NULL);
    if (is_there)
        zr_log(log, ZARR_LOG_WARN, "/%s: has v2 and v3 metadata; the v3 metadata is used",
               path);
}
