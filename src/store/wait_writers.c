/*
 * store/wait_writers.c - waits until no caller writes a key, or any key below a prefix. A
 * delete that gave up at the lock of a chunk would leave a part of the node.
 * Locks that are files show who is at work. Other locks are held for one write at most.
 * Thread class: any thread.
 */
#include "store/store_int.h"

#include <string.h>

struct writer_wait {
    zarr_store *s;
    const zarr_cancel *cancel;
    struct zr_str key;
    zarr_status st;
    zarr_error *err;
};

static int wait_for_lock(void *user, const zarr_store_item *item)
{
    static const size_t suffix_bytes = sizeof ZR_LOCK_SUFFIX - 1;
    struct writer_wait *w = user;
    void *lock = NULL;

    /* the caller may hold a claim, and claims of others are no writes */
    if (!zr_ends_with(item->key, ZR_LOCK_SUFFIX) ||
        zr_ends_with(item->key, ZR_CLAIM_SUFFIX ZR_LOCK_SUFFIX))
        return 0;
    zr_str_clear(&w->key);
    zr_str_append(&w->key, item->key, strlen(item->key) - suffix_bytes);
    w->st = zr_str_status(&w->key, w->err);
    if (w->st == ZARR_OK && w->s->native)
        w->st = zr_store_wait_for_writer(w->s, zr_str_text(&w->key), w->cancel, w->err);
    else if (w->st == ZARR_OK)
        w->st = zr_store_lock(w->s, zr_str_text(&w->key), w->cancel, &lock, w->err);
    zr_store_unlock(w->s, lock);
    return w->st != ZARR_OK;
}

zarr_status zr_store_wait_for_writer(zarr_store *s, const char *key,
                                     const zarr_cancel *cancel, zarr_error *err)
{
    const zarr_store *part = zr_store_of_key(s, key);
    zarr_status st = ZARR_OK;

    if (!part->native || !part->native->wait_for_writer)
        return ZARR_OK;
    ZR_TRY(zr_cancel_check(cancel, err));
    st = part->native->wait_for_writer(part->self, key, cancel, err);
    if (st != ZARR_OK && err) {
        zr_error_mark(err, ZARR_ERROR_KEY, 0, key);
        zr_error_operation(err, ZARR_OPERATION_LOCK);
    }
out:
    return st;
}

zarr_status zr_store_wait_for_writers(zarr_store *s, const char *prefix,
                                      const zarr_cancel *cancel, zarr_error *err)
{
    struct writer_wait w = {.s = s, .cancel = cancel, .err = err};
    zarr_status st;

    if (!zr_store_can(s, ZARR_STORE_CAP_LOCK) && !(s->native && s->native->part))
        return ZARR_OK; /* no lock is listed */
    zr_str_init(&w.key, s->env.alloc);
    st = zr_store_list(s, prefix, ZARR_LIST_DEBRIS, wait_for_lock, &w, cancel, err);
    zr_str_deinit(&w.key);
    return st == ZARR_OK ? w.st : st;
}
