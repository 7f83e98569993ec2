/*
 * store/public.c - zarr_store_*() for applications, and listing, which upper rooms use
 * through the same functions. The functions take one key and host memory, and are done
 * when they return. Messages begin with the store's URL, because no upper room adds one
 * here. Each key that a foreign store lists is checked, because callers use keys as
 * paths.
 * Thread class: any thread.
 */
#include "store/store_int.h"

#include "sched/sched.h"

#include <string.h>

static zarr_status public_run(zarr_store *store, zarr_store_op *op, zarr_error *err)
{
    zarr_status st;

    op->flags |= op->key ? zr_key_kind(op->key) : 0;
    st = zr_store_run_one(store, op, err);
    return zr_store_end(store, op->key, st, err);
}

zarr_status zr_store_get(zarr_store *s, zarr_store_op *op, zarr_error *err)
{
    zarr_store_op stat = {.verb = ZARR_STORE_STAT,
                          .flags = op->flags,
                          .key = op->key,
                          .cancel = op->cancel};
    zarr_status st = public_run(s, op, err);

    if (st != ZARR_OK || op->object_bytes != UINT64_MAX)
        return st;
    st = public_run(s, &stat, err);
    op->object_bytes = stat.object_bytes;
    return st;
}

zarr_status zarr_store_get(zarr_store *store, const char *key, uint64_t offset,
                           void *data, uint64_t *bytes, const zarr_cancel *cancel,
                           zarr_error *err)
{
    zarr_store_op op = {.verb = ZARR_STORE_GET,
                        .key = key,
                        .offset = offset,
                        .length = *bytes,
                        .cancel = cancel};
    zarr_status st;

    ZR_NEED(store, err);
    if (offset == ZARR_STORE_SUFFIX)
        return zr_fail(err, ZARR_ERR_INVALID, "offset is too large");
    op.mem = zr_mem_of_host(data, *bytes);
    st = public_run(store, &op, err);
    if (st == ZARR_OK)
        *bytes = op.done_bytes;
    return st;
}

zarr_status zarr_store_put(zarr_store *store, const char *key, const void *data,
                           uint64_t bytes, const zarr_cancel *cancel, zarr_error *err)
{
    zarr_store_op op = {
        .verb = ZARR_STORE_PUT, .key = key, .length = bytes, .cancel = cancel};

    ZR_NEED(store, err);
    op.mem = zr_mem_of_host((void *)(uintptr_t)data, bytes); /* a PUT only reads */
    return public_run(store, &op, err);
}

zarr_status zarr_store_erase(zarr_store *store, const char *key,
                             const zarr_cancel *cancel, zarr_error *err)
{
    zarr_store_op op = {.verb = ZARR_STORE_ERASE, .key = key, .cancel = cancel};

    ZR_NEED(store, err);
    return public_run(store, &op, err);
}

/* ---- the whole store ---- */

zarr_context *zarr_store_context(const zarr_store *store)
{
    return store ? store->env.ctx : NULL;
}

zarr_status zr_store_flush(zarr_store *s, const zarr_cancel *cancel, zarr_error *err)
{
    struct zr_foreign call;
    zarr_status st = zr_cancel_check(cancel, err);

    if (st == ZARR_OK && s->vt.flush && !s->read_only)
        st = zr_store_call_end(
            s, &call, s->vt.flush(s->self, cancel, zr_store_call_begin(s, &call, err)),
            ZARR_OPERATION_FLUSH, err);
    return st == ZARR_OK ? st : zr_prefix(err, st, "%s", s->url);
}

zarr_status zr_store_flush_before(zarr_store *s, const zarr_cancel *cancel,
                                  zarr_error *err)
{
    return zr_store_can(s, ZARR_STORE_CAP_ATOMIC_FLUSH) ? ZARR_OK
                                                        : zr_store_flush(s, cancel, err);
}

zarr_status zarr_store_flush(zarr_store *store, const zarr_cancel *cancel,
                             zarr_error *err)
{
    ZR_NEED(store, err);
    return zr_store_flush(store, cancel, err);
}

/* ---- listing ---- */

struct public_listing {
    const zarr_store *store;
    const char *prefix;
    zarr_store_list_fn fn;
    void *user;
    uint64_t n;
    const zarr_cancel *cancel;
    zarr_status status;
    zarr_error *err;
    bool ended; /* a store may go on all the same */
};

static int public_list_row(void *user, const zarr_store_item *item)
{
    struct public_listing *x = user;
    uint64_t limit = x->store->env.limits.listing_keys;

    if (x->ended)
        return 1;
    x->status = zr_cancel_check(x->cancel, x->err);
    if (x->status != ZARR_OK)
        x->ended = true;
    else if (!item->key ||
             zr_key_validate(item->key, strlen(item->key), NULL) != ZARR_OK ||
             !zr_key_is_below(item->key, x->prefix))
        x->status =
            zr_fail(x->err, ZARR_ERR_CORRUPT, "the %s store listed \"%s\" below \"%s\"",
                    x->store->name, item->key ? item->key : "", x->prefix);
    else if (++x->n > limit)
        x->status = zr_fail_limit(x->err, "listing_keys", limit,
                                  "more than %" PRIu64 " keys in a listing", limit);
    else if (x->fn(x->user, item) == 0)
        return 0;
    x->ended = true;
    return 1;
}

zarr_status zr_store_list(zarr_store *s, const char *prefix, uint32_t how,
                          zarr_store_list_fn fn, void *user, const zarr_cancel *cancel,
                          zarr_error *err)
{
    struct public_listing x = {.store = s,
                               .prefix = prefix,
                               .fn = fn,
                               .user = user,
                               .cancel = cancel,
                               .err = err};
    struct zr_foreign call;
    zarr_status st = ZARR_OK;

    if (!prefix || !fn || how > ZARR_LIST_FOLDERS)
        return zr_fail(err, ZARR_ERR_INVALID, "no prefix, no function, or unknown how");
    ZR_TRY(zr_key_validate_prefix(prefix, strlen(prefix), err));
    if (!zr_store_can(s, ZARR_STORE_CAP_LIST))
        ZR_FAIL(err, ZARR_ERR_UNSUPPORTED, "stores of kind %s cannot list", s->name);
    ZR_TRY(zr_cancel_check(cancel, err));
    if (s->native) {
        st = s->vt.list(s->self, prefix, how, fn, user, cancel, err);
        goto out;
    }
    /* keys of other stores are no links, and have no directories */
    if (how == ZARR_LIST_UNLINKED || how == ZARR_LIST_FOLDERS)
        how = ZARR_LIST_RECURSIVE;
    else if (how == ZARR_LIST_DIRECTORY_UNLINKED)
        how = ZARR_LIST_DIRECTORY;
    st = s->vt.list(s->self, prefix, how, public_list_row, &x, cancel,
                    zr_store_call_begin(s, &call, err));
    st = zr_store_call_end(s, &call, st, ZARR_OPERATION_LIST, err);
    if (st != ZARR_OK)
        ZR_TRY(zr_prefix(err, st, "%s/: cannot list", prefix));
    st = x.status;
out:
    if (st != ZARR_OK)
        zr_error_operation(err, ZARR_OPERATION_LIST);
    return st;
}

zarr_status zarr_store_list(zarr_store *store, const char *prefix, uint32_t how,
                            zarr_store_list_fn fn, void *user, const zarr_cancel *cancel,
                            zarr_error *err)
{
    ZR_NEED(store, err);
    zarr_status st = zr_store_list(store, prefix, how, fn, user, cancel, err);

    return st == ZARR_OK ? st : zr_prefix(err, st, "%s", store->url);
}

/* ---- removing ---- */

static zarr_status public_check_writable(const zarr_store *s, const char *prefix,
                                         zarr_error *err)
{
    if (s->read_only)
        return zr_fail(err, ZARR_ERR_INVALID, "the store is open read-only");
    if (!zr_store_can(s, ZARR_STORE_CAP_WRITE))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "stores of kind %s cannot write",
                       s->name);
    if (!prefix)
        return zr_fail(err, ZARR_ERR_INVALID, "no prefix");
    return zr_key_validate_prefix(prefix, strlen(prefix), err);
}

zarr_status zr_store_erase_link(zarr_store *s, const char *prefix, bool *was,
                                zarr_error *err)
{
    zarr_status st = public_check_writable(s, prefix, err);

    *was = false;
    if (st != ZARR_OK || !s->native || !s->native->erase_link)
        return st;
    return s->native->erase_link(s->self, prefix, was, err);
}

bool zr_store_is_by_link(const zarr_store *s)
{
    return s->native && s->native->by_link && s->native->by_link(s->self);
}

zarr_status zr_store_erase_prefix(zarr_store *s, const char *prefix,
                                  const zarr_cancel *cancel, zarr_error *err)
{
    zarr_status st = public_check_writable(s, prefix, err);
    struct zr_foreign call;

    if (st != ZARR_OK)
        return st;
    if (!s->vt.erase_prefix)
        return zr_erase_by_listing(s, prefix, cancel, err);
    st = s->vt.erase_prefix(s->self, prefix, cancel, zr_store_call_begin(s, &call, err));
    return zr_store_call_end(s, &call, st, ZARR_OPERATION_ERASE, err);
}

zarr_status zr_store_fail_new_key(const char *key, zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_CONFLICT, "%s: appeared while the node was erased", key);
}

struct new_key_look {
    const char *last;
    zarr_status st;
    zarr_error *err;
};

static int find_new_key(void *user, const zarr_store_item *item)
{
    struct new_key_look *l = user;

    if (!zr_streq(item->key, l->last))
        l->st = zr_store_fail_new_key(item->key, l->err);
    return l->st != ZARR_OK;
}

zarr_status zr_store_erase_rest(zarr_store *s, const char *prefix, const char *last,
                                const zarr_cancel *cancel, zarr_error *err)
{
    struct new_key_look l = {.last = last, .err = err};
    zarr_store_op op = {.verb = ZARR_STORE_ERASE,
                        .flags = zr_key_kind(last),
                        .key = last,
                        .cancel = cancel};
    zarr_error e = {0};
    zarr_status st = ZARR_OK;

    ZR_TRY(public_check_writable(s, prefix, err));
    if (s->native && s->native->erase_rest)
        return s->native->erase_rest(s->self, prefix, last, cancel, err);
    ZR_TRY(zr_store_list(s, prefix, ZARR_LIST_RECURSIVE, find_new_key, &l, cancel, err));
    ZR_TRY(l.st);
    st = zr_store_run_one(s, &op, &e);
    ZR_TRY(st == ZARR_ERR_NOT_FOUND ? ZARR_OK : zr_pass(err, st, &e));
    st = s->vt.erase_prefix ? zr_store_erase_prefix(s, prefix, cancel, err) : ZARR_OK;
out:
    return st;
}

zarr_status zr_store_rename(zarr_store *s, const char *from, const char *to,
                            const zarr_cancel *cancel, zarr_error *err)
{
    struct zr_foreign call;
    zarr_status st = ZARR_OK;

    ZR_TRY(public_check_writable(s, from, err));
    ZR_TRY(public_check_writable(s, to, err));
    ZR_TRY(zr_cancel_check(cancel, err));
    if (*from == '\0' || *to == '\0' || strcmp(from, to) == 0 ||
        zr_key_is_below(from, to) || zr_key_is_below(to, from))
        ZR_FAIL(err, ZARR_ERR_INVALID, "%s cannot be renamed to %s", from, to);
    if (!s->vt.rename)
        ZR_FAIL(err, ZARR_ERR_UNSUPPORTED, "stores of kind %s cannot rename", s->name);
    st = s->vt.rename(s->self, from, to, cancel, zr_store_call_begin(s, &call, err));
    st = zr_store_call_end(s, &call, st, ZARR_OPERATION_RENAME, err);
out:
    return st;
}

zarr_status zarr_store_erase_prefix(zarr_store *store, const char *prefix,
                                    const zarr_cancel *cancel, zarr_error *err)
{
    ZR_NEED(store, err);
    zarr_status st = zr_store_erase_prefix(store, prefix, cancel, err);

    return st == ZARR_OK ? st : zr_prefix(err, st, "%s", store->url);
}

zarr_status zarr_store_clean(zarr_store *store, const char *prefix, uint64_t min_age_s,
                             uint64_t *n_removed, const zarr_cancel *cancel,
                             zarr_error *err)
{
    ZR_NEED(store, err);
    zarr_status st = public_check_writable(store, prefix, err);
    struct zr_foreign call;
    uint64_t n = 0;

    if (st == ZARR_OK && store->vt.clean) {
        st = store->vt.clean(store->self, prefix, min_age_s, &n, cancel,
                             zr_store_call_begin(store, &call, err));
        st = zr_store_call_end(store, &call, st, ZARR_OPERATION_ERASE, err);
    }
    if (n_removed)
        *n_removed = n;
    return st == ZARR_OK ? st : zr_prefix(err, st, "%s", store->url);
}

zarr_status zarr_store_repack(zarr_store *store, uint32_t flags,
                              zarr_repack_result *result, const zarr_cancel *cancel,
                              zarr_error *err)
{
    union {
        zarr_repack_result result;
        unsigned char room[256]; /* a store that was compiled with a longer struct */
    } u = {.room = {0}};
    struct zr_foreign call;
    zarr_status st = ZARR_OK;

    ZR_NEED(store, err);
    if (flags & ~(uint32_t)ZARR_REPACK_LOOK)
        ZR_FAIL(err, ZARR_ERR_UNSUPPORTED, "unknown flags of zarr_store_repack()");
    if (!store->vt.repack)
        ZR_FAIL(err, ZARR_ERR_UNSUPPORTED,
                "a store of kind %s is no archive: there is nothing to repack",
                store->name);
    if (!(flags & ZARR_REPACK_LOOK))
        ZR_TRY(public_check_writable(store, "", err));
    u.result.struct_size = sizeof u.result;
    zr_block_begin();
    st = store->vt.repack(store->self, flags, &u.result, cancel,
                          zr_store_call_begin(store, &call, err));
    zr_block_end();
    st = zr_store_call_end(store, &call, st, ZARR_OPERATION_WRITE, err);
    u.result.struct_size = sizeof u.result;
    if (result)
        zr_struct_give(result, result->struct_size, &u.result, sizeof u.result);
out:
    return st == ZARR_OK ? st : zr_prefix(err, st, "%s", store->url);
}
