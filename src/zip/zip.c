/*
 * zip/zip.c - the functions of the store, and its opening. No value changes while the
 * store is open: an archive that changed fails each read.
 * Thread class: shared.
 */
#include "zip/zip_int.h"

#include <string.h>

/* The end record with the longest comment, and the zip64 records before it. */
enum {
    TAIL_BYTES = 65536 + 128
};

static void zip_close(void *self)
{
    struct zr_zip_store *z = self;
    const zarr_allocator *alloc = z->archive.env.alloc;

    zr_zip_values_deinit(&z->values);
    zr_zip_table_deinit(&z->table);
    zarr_store_free(z->archive.store);
    zr_free(alloc, z->archive.key);
    zr_free(alloc, z);
}

static void zip_caps(void *self, zarr_store_caps *out)
{
    const uint32_t passed = ZARR_STORE_CAP_FAST_GET | ZARR_STORE_CAP_COALESCES;
    const struct zr_zip_store *z = self;

    out->flags = ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX | ZARR_STORE_CAP_LIST |
                 ZARR_STORE_CAP_IMMUTABLE | (z->archive.caps.flags & passed);
    out->parallel = z->archive.caps.parallel;
    out->device_types = z->device_types;
    out->n_device_types = z->n_device_types;
}

zarr_status zr_zip_run_one(struct zr_zip_store *z, zarr_store_op *op,
                           const struct zr_zip_ahead *ahead, zarr_error *err)
{
    struct zr_zip_member *m = NULL;

    if (op->verb != ZARR_STORE_GET && op->verb != ZARR_STORE_STAT)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "%s: a zip store writes nothing",
                       op->key);
    m = zr_zip_table_find(&z->table, op->key);
    if (!m)
        return zr_fail(err, ZARR_ERR_NOT_FOUND, "%s: no such key", op->key);
    if (op->verb == ZARR_STORE_GET)
        return zr_zip_get(z, m, op, ahead, err);
    op->object_bytes = m->bytes;
    return ZARR_OK;
}

static void zip_run(void *self, zarr_store_op *op, zarr_error *err)
{
    op->status = zr_zip_run_one(self, op, NULL, err);
    op->os_code = op->status != ZARR_OK && err ? err->os_code : 0;
}

static zarr_status zip_list(void *self, const char *prefix, uint32_t how,
                            zarr_store_list_fn fn, void *user, const zarr_cancel *cancel,
                            zarr_error *err)
{
    struct zr_zip_store *z = self;

    ZR_UNUSED(cancel); /* the library looks at it between the rows */
    if (how == ZARR_LIST_DEBRIS)
        return ZARR_OK;
    return zr_zip_table_list(&z->table, prefix, how != ZARR_LIST_DIRECTORY, fn, user,
                             err);
}

/* Members are below the key of the archive. */
struct zip_telling {
    const struct zr_zip_store *store;
    zarr_store_place_fn fn;
    void *user;
};

static void zip_tell(void *user, const zarr_store_place *place)
{
    const struct zip_telling *t = user;
    const struct zr_zip_archive *a = &t->store->archive;
    const char *prefix = place->prefix ? place->prefix : "";
    zarr_store_place inner = *place;
    struct zr_str joined;

    zr_str_init(&joined, a->env.alloc);
    zr_str_printf(&joined, "%s%s%s", prefix,
                  *prefix && !zr_ends_with(prefix, "/") ? "/" : "", a->key);
    inner.prefix = zr_str_text(&joined);
    if (!joined.failed)
        t->fn(t->user, &inner);
    zr_str_deinit(&joined);
}

static void zip_place(void *self, zarr_store_place_fn fn, void *user)
{
    const struct zr_zip_store *z = self;
    struct zip_telling t = {z, fn, user};

    zarr_store_tell_place(z->archive.store, zip_tell, &t);
}

static void zip_count(void *self, zarr_store_counters *out)
{
    const struct zr_zip_store *z = self;

    zarr_store_read_counters(z->archive.store, out);
}

const zarr_store_vtable zr_zip_vtable = {
    .struct_size = sizeof(zarr_store_vtable),
    .name = "zip",
    .caps = zip_caps,
    .run = zip_run,
    .submit = zr_zip_submit,
    .list = zip_list,
    .close = zip_close,
    .place = zip_place,
    .count = zip_count,
};

static void log_ignored(const struct zr_zip_store *z)
{
    const struct zr_zip_table *t = &z->table;

    if (t->n_ignored > 0)
        zr_log(&z->archive.env.log, ZARR_LOG_WARN,
               "%s: %zu members are ignored, because their names are no keys: \"%s\" is "
               "the first of them",
               z->archive.key, t->n_ignored,
               zr_zip_table_name(t, &t->member[t->ignored]));
}

zarr_status zr_zip_open(void **self, const struct zr_store_env *env, zarr_store *store,
                        const char *key, const zarr_cancel *cancel, zarr_error *err)
{
    struct zr_zip_store *z = zr_calloc(env->alloc, 1, sizeof *z);
    uint8_t *tail = NULL;
    size_t n = 0;
    zarr_status st = ZARR_OK;

    if (!z)
        return zr_fail_memory(err, sizeof *z);
    z->archive.env = *env;
    z->archive.store = zarr_store_ref(store);
    z->archive.cancel = cancel;
    z->archive.caps.struct_size = sizeof z->archive.caps;
    zarr_store_capabilities(store, &z->archive.caps);
    for (int32_t kind = 1; kind < ZR_ZIP_KINDS; kind++)
        if (zr_device_is_host(env->memory, kind))
            z->device_types[z->n_device_types++] = kind;
    zr_zip_table_init(&z->table, env);
    zr_zip_values_init(&z->values, env->alloc);
    z->archive.key = zr_strdup(env->alloc, key);
    tail = zr_malloc(env->alloc, TAIL_BYTES);
    if (!z->archive.key || !tail)
        ZR_FAIL_MEMORY(err, TAIL_BYTES);
    ZR_TRY(zr_zip_read_tail(&z->archive, tail, TAIL_BYTES, &n, err));
    ZR_TRY(zr_zip_directory_read(&z->archive, &z->table, tail, n, err));
    log_ignored(z);
    z->archive.cancel = NULL;
    *self = z;
    z = NULL;
out:
    zr_free(env->alloc, tail);
    if (z)
        zip_close(z);
    return st;
}
