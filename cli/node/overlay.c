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
    zarr_store *base, *values; /* values: those that changed; one of no bytes is erased */
};

static bool has_changed(const struct cli_overlay *o, const char *key,
                        zarr_store_value *out)
{
    *out = (zarr_store_value)ZARR_STORE_VALUE_INIT;
    return zarr_store_stat(o->values, key, out, NULL, NULL) == ZARR_OK;
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
    zarr_store_value value;
    const bool changed = has_changed(o, op->key, &value);

    if (op->verb == ZARR_STORE_ERASE) {
        op->status = zarr_store_put(o->values, op->key, "", 0, op->cancel, err);
    } else if (op->verb != ZARR_STORE_PUT && changed && value.bytes == 0) {
        op->status = ZARR_ERR_NOT_FOUND;
        if (err)
            *err = (zarr_error){.code = op->status, .message = "no such key"};
    } else {
        op->status = zarr_store_run(
            changed || op->verb == ZARR_STORE_PUT ? o->values : o->base, op, err);
    }
}

/* Only values of the base are ever changed, or documents that are read by their names. */
static zarr_status overlay_list(void *self, const char *prefix, uint32_t how,
                                zarr_store_list_fn fn, void *user,
                                const zarr_cancel *cancel, zarr_error *err)
{
    const struct cli_overlay *o = self;

    return zarr_store_list(o->base, prefix, how, fn, user, cancel, err);
}

static void overlay_close(void *self)
{
    struct cli_overlay *o = self;

    zarr_store_free(o->base);
    zarr_store_free(o->values);
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
                                            .close = overlay_close};
    zarr_context *ctx = zarr_store_context(base);
    struct cli_overlay *o = cli_alloc(sizeof *o);
    zarr_status st;

    o->base = zarr_store_ref(base);
    st = zarr_store_open(&o->values, ctx, "memory:", NULL, err);
    if (st) {
        overlay_close(o);
        return st;
    }
    *overlay = o;
    return zarr_store_open_custom(out, ctx, &table, o, NULL, err);
}

/* ---- the change of one key in the base ---- */

/* expected: the version to replace, all zero: none, NULL: whatever is there. */
static zarr_status erase_key(const struct cli_overlay *o, const char *key,
                             const zarr_store_version *expected, zarr_error *err)
{
    zarr_store_op op = {.verb = ZARR_STORE_ERASE,
                        .flags = expected ? ZARR_STORE_OP_IF_VERSION : 0,
                        .key = key,
                        .object_bytes = UINT64_MAX,
                        .cancel = cli_cancel};
    zarr_status st;

    if (expected)
        op.version = *expected;
    st = zarr_store_run(o->base, &op, err);
    return st == ZARR_ERR_NOT_FOUND ? ZARR_OK : st;
}

static zarr_status put_key(const struct cli_overlay *o, const char *key, uint64_t bytes,
                           const zarr_store_version *expected, zarr_error *err)
{
    zarr_memory mem = {.device_type = ZARR_DEVICE_CPU, .bytes = bytes};
    zarr_status st;

    mem.handle = cli_alloc((size_t)bytes);
    st = zarr_store_get(o->values, key, 0, mem.handle, &bytes, NULL, err);
    if (!st)
        st = zarr_store_write(o->base, key, &mem, expected, NULL, cli_cancel, err);
    free(mem.handle);
    return st;
}

char *cli_value_read(zarr_store *store, const char *key, zarr_store_value *value,
                     zarr_error *err)
{
    zarr_memory mem = {.device_type = ZARR_DEVICE_CPU, .bytes = 1 << 16};
    char *text = NULL;
    zarr_status st;

    do { /* not by the length of a stat: the value may have another length then */
        free(text);
        mem.bytes *= 4;
        mem.handle = text = cli_alloc((size_t)mem.bytes + 1);
        *value = (zarr_store_value)ZARR_STORE_VALUE_INIT;
        st = zarr_store_read(store, key, 0, &mem, value, cli_cancel, err);
    } while (!st && value->done_bytes == mem.bytes && mem.bytes < 1 << 28);
    if (!st && value->done_bytes == mem.bytes)
        st = cli_set_error(err, ZARR_ERR_LIMIT, "%s: is longer than 256 MiB", key);
    text[st ? 0 : value->done_bytes] = '\0';
    if (!st && strlen(text) < value->done_bytes)
        st = cli_set_error(err, ZARR_ERR_CORRUPT, "%s: has a byte of zero", key);
    if (st) {
        free(text);
        text = NULL;
    }
    return text;
}

void cli_value_see(zarr_store *store, const char *key, zarr_store_value *out)
{
    *out = (zarr_store_value)ZARR_STORE_VALUE_INIT;
    if (zarr_store_stat(store, key, out, cli_cancel, NULL) != ZARR_OK)
        *out = (zarr_store_value){.struct_size = sizeof *out, .bytes = UINT64_MAX};
}

zarr_status cli_overlay_commit(const struct cli_overlay *o, const char *key,
                               const zarr_store_value *seen, zarr_error *err)
{
    const zarr_store_version *expected = &seen->version; /* without a version: conflict */
    zarr_store_value value, now = ZARR_STORE_VALUE_INIT;
    zarr_status st;

    if (!has_changed(o, key, &value))
        return ZARR_OK;
    if (seen->bytes == UINT64_MAX) { /* missing, or a link or a folder in its place */
        st = zarr_store_stat(o->base, key, &now, cli_cancel, err);
        if (!st)
            return cli_set_error(err, ZARR_ERR_CONFLICT, "%s: was written meanwhile",
                                 key);
        if (st != ZARR_ERR_NOT_FOUND && !cli_is_damage(st, err))
            return st;
        if (st != ZARR_ERR_NOT_FOUND)
            expected = NULL;
    }
    return value.bytes ? put_key(o, key, value.bytes, expected, err)
                       : erase_key(o, key, expected, err);
}
