/*
 * node/overlay.c - a store that reads another one, the base, and keeps every change in
 * memory. Salvage and repair work on it: they see the base without its damage, and never
 * change it. cli_overlay_commit() then makes the change of one key in the base, in one
 * step. Not a cache: what was not changed is read from the base each time.
 */
#include "node/work.h"

#include <zarrc/plugin/store.h>

#include <stdlib.h>
#include <string.h>

struct cli_overlay {
    zarr_store *base, *values, *erased; /* erased: the keys that were erased */
};

static bool has_key(zarr_store *store, const char *key)
{
    zarr_store_value value = ZARR_STORE_VALUE_INIT;

    return zarr_store_stat(store, key, &value, NULL, NULL) == ZARR_OK;
}

static void overlay_caps(void *self, zarr_store_caps *out)
{
    const struct cli_overlay *o = self;
    zarr_store_caps base = ZARR_STORE_CAPS_INIT;

    zarr_store_capabilities(o->base, &base);
    out->flags = (base.flags & (ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX |
                                ZARR_STORE_CAP_LIST | ZARR_STORE_CAP_ATOMIC_PUT |
                                ZARR_STORE_CAP_VERSIONS | ZARR_STORE_CAP_FAST_GET)) |
                 ZARR_STORE_CAP_WRITE;
    out->parallel = base.parallel;
}

static void overlay_run(void *self, zarr_store_op *op, zarr_error *err)
{
    const struct cli_overlay *o = self;
    const zarr_store_op begun = *op;

    switch (op->verb) {
    case ZARR_STORE_GET:
    case ZARR_STORE_STAT:
        op->status = zarr_store_run(o->values, op, err);
        if (op->status != ZARR_ERR_NOT_FOUND || has_key(o->erased, op->key))
            return;
        *op = begun;
        op->status = zarr_store_run(o->base, op, err);
        return;
    case ZARR_STORE_PUT:
        op->status = zarr_store_run(o->values, op, err);
        if (op->status == ZARR_OK && has_key(o->erased, op->key))
            op->status = zarr_store_erase(o->erased, op->key, NULL, err);
        return;
    case ZARR_STORE_ERASE:
        op->status = zarr_store_put(o->erased, op->key, "", 0, op->cancel, err);
        if (op->status == ZARR_OK && has_key(o->values, op->key))
            op->status = zarr_store_erase(o->values, op->key, NULL, err);
        return;
    default:
        op->status = ZARR_ERR_UNSUPPORTED;
    }
}

struct overlay_listing {
    const struct cli_overlay *overlay;
    zarr_store_list_fn fn;
    void *user;
};

static int pass_item(void *user, const zarr_store_item *item)
{
    const struct overlay_listing *l = user;
    zarr_store_item copy = *item;

    if (!item->is_prefix && has_key(l->overlay->erased, item->key))
        return 0;
    if (!item->is_prefix && has_key(l->overlay->values, item->key))
        copy.bytes = UINT64_MAX;
    return l->fn(l->user, &copy);
}

/* Only keys of the base are ever changed, or documents that are read by their names. */
static zarr_status overlay_list(void *self, const char *prefix, uint32_t how,
                                zarr_store_list_fn fn, void *user,
                                const zarr_cancel *cancel, zarr_error *err)
{
    struct overlay_listing l = {self, fn, user};

    return zarr_store_list(l.overlay->base, prefix, how, pass_item, &l, cancel, err);
}

static void overlay_place(void *self, zarr_store_place_fn fn, void *user)
{
    zarr_store_tell_place(((struct cli_overlay *)self)->base, fn, user);
}

static void overlay_close(void *self)
{
    struct cli_overlay *o = self;

    zarr_store_free(o->base);
    zarr_store_free(o->values);
    zarr_store_free(o->erased);
    free(o);
}

zarr_status cli_overlay_open(struct cli_overlay **overlay, zarr_store **out,
                             zarr_store *base, zarr_error *err)
{
    static const zarr_store_vtable table = {.struct_size = sizeof table,
                                            .name = "overlay",
                                            .caps = overlay_caps,
                                            .run = overlay_run,
                                            .list = overlay_list,
                                            .place = overlay_place,
                                            .close = overlay_close};
    zarr_context *ctx = zarr_store_context(base);
    struct cli_overlay *o = cli_alloc(sizeof *o);
    zarr_status st;

    o->base = zarr_store_ref(base);
    st = zarr_store_open(&o->values, ctx, "memory:", NULL, err);
    if (!st)
        st = zarr_store_open(&o->erased, ctx, "memory:", NULL, err);
    if (st) {
        overlay_close(o);
        return st;
    }
    *overlay = o;
    return zarr_store_open_custom(out, ctx, &table, o, NULL, err);
}

/* ---- the change of one key in the base ---- */

static int any_item(void *user, const zarr_store_item *item)
{
    (void)item;
    *(bool *)user = true;
    return 1;
}

/* Removes what is in the place of a value: a broken link, or an empty folder. */
static zarr_status remove_fault(const struct cli_overlay *o, const char *key,
                                zarr_error *err)
{
    bool any = false;
    zarr_status st = zarr_store_erase(o->base, key, cli_cancel, NULL);

    if (!st)
        return ZARR_OK;
    st = zarr_store_list(o->base, key, ZARR_LIST_UNLINKED, any_item, &any, cli_cancel,
                         err);

    if (!st && any) {
        *err = (zarr_error){.code = ZARR_ERR_EXISTS};
        snprintf(err->message, sizeof err->message,
                 "%s: a folder with files is in the place of the object", key);
        return ZARR_ERR_EXISTS;
    }
    return st ? st : zarr_store_erase_prefix(o->base, key, cli_cancel, err);
}

static zarr_status erase_key(const struct cli_overlay *o, const char *key,
                             const zarr_store_value *seen, zarr_error *err)
{
    zarr_store_op op = {.verb = ZARR_STORE_ERASE,
                        .flags = seen->has_version ? ZARR_STORE_OP_IF_VERSION : 0,
                        .key = key,
                        .version = seen->version,
                        .object_bytes = UINT64_MAX,
                        .cancel = cli_cancel};
    zarr_store_value now = ZARR_STORE_VALUE_INIT;
    zarr_status st = zarr_store_run(o->base, &op, err);

    /* such as S3: the time between the two requests is as short as it can be */
    if (st == ZARR_ERR_UNSUPPORTED &&
        zarr_store_stat(o->base, key, &now, cli_cancel, NULL) == ZARR_OK &&
        memcmp(&now.version, &seen->version, sizeof now.version) == 0)
        st = zarr_store_erase(o->base, key, cli_cancel, err);
    return st == ZARR_ERR_NOT_FOUND ? ZARR_OK : st;
}

/* version: the one to replace, all zero: none, NULL: whatever is there. */
static zarr_status put_key(const struct cli_overlay *o, const char *key, uint64_t bytes,
                           const zarr_store_version *version, zarr_error *err)
{
    zarr_memory mem = {.device_type = ZARR_DEVICE_CPU, .bytes = bytes};
    zarr_status st;

    mem.handle = cli_alloc((size_t)bytes + 1);
    st = zarr_store_get(o->values, key, 0, mem.handle, &bytes, NULL, err);
    if (!st)
        st = zarr_store_write(o->base, key, &mem, version, NULL, cli_cancel, err);
    free(mem.handle);
    return st;
}

/* The change of a key that had no value: it is missing, or something else is in its
 * place. put: the length of the new value, or NULL. */
static zarr_status commit_unseen(const struct cli_overlay *o, const char *key,
                                 const uint64_t *put, zarr_error *err)
{
    static const zarr_store_version none = {{0}};
    zarr_store_value now = ZARR_STORE_VALUE_INIT;
    zarr_status st = zarr_store_stat(o->base, key, &now, cli_cancel, err);

    if (st == ZARR_ERR_NOT_FOUND)
        return put ? put_key(o, key, *put, &none, err) : ZARR_OK;
    if (!st) {
        *err = (zarr_error){.code = ZARR_ERR_CONFLICT};
        snprintf(err->message, sizeof err->message, "%s: was written meanwhile", key);
        return ZARR_ERR_CONFLICT;
    }
    if (!cli_is_damage(st, err))
        return st;
    /* a link is replaced in one step, and a folder in two */
    if (put && put_key(o, key, *put, NULL, NULL) == ZARR_OK)
        return ZARR_OK;
    st = remove_fault(o, key, err);
    return st || !put ? st : put_key(o, key, *put, &none, err);
}

void cli_overlay_see(const struct cli_overlay *o, const char *key, zarr_store_value *out)
{
    *out = (zarr_store_value)ZARR_STORE_VALUE_INIT;
    if (zarr_store_stat(o->base, key, out, cli_cancel, NULL) == ZARR_OK)
        return;
    *out = (zarr_store_value)ZARR_STORE_VALUE_INIT;
    out->bytes = UINT64_MAX;
}

void cli_overlay_forget(struct cli_overlay *o, const char *key)
{
    if (has_key(o->values, key) && zarr_store_erase(o->values, key, NULL, NULL))
        return;
    if (has_key(o->erased, key) && zarr_store_erase(o->erased, key, NULL, NULL))
        return;
}

zarr_status cli_overlay_commit(struct cli_overlay *o, const char *key,
                               const zarr_store_value *seen, zarr_error *err)
{
    zarr_store_value value = ZARR_STORE_VALUE_INIT;
    const bool put = zarr_store_stat(o->values, key, &value, NULL, NULL) == ZARR_OK;
    zarr_status st;

    if (!put && !has_key(o->erased, key))
        return ZARR_OK;
    if (seen->bytes == UINT64_MAX)
        st = commit_unseen(o, key, put ? &value.bytes : NULL, err);
    else if (put)
        st = put_key(o, key, value.bytes, seen->has_version ? &seen->version : NULL, err);
    else
        st = erase_key(o, key, seen, err);
    if (!st)
        cli_overlay_forget(o, key);
    return st;
}
