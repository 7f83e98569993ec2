/*
 * dtype/registry.c - the tables of one context and the names they answer to. A
 * name, alias or v2 type belongs to whoever registered it first, so that a core
 * type cannot be taken over. Types without configuration are made here, once;
 * members of families are made on demand (make.c). Thread class: filled by one
 * thread, then sealed.
 */
#include "dtype_int.h"

#include <stdio.h>
#include <string.h>

const zarr_dtype_vtable *const zr_dtype_core[] = {
    &zr_dtype_bool,
    &zr_dtype_int8,
    &zr_dtype_int16,
    &zr_dtype_int32,
    &zr_dtype_int64,
    &zr_dtype_uint8,
    &zr_dtype_uint16,
    &zr_dtype_uint32,
    &zr_dtype_uint64,
    &zr_dtype_float16,
    &zr_dtype_float32,
    &zr_dtype_float64,
    &zr_dtype_complex64,
    &zr_dtype_complex128,
    &zr_dtype_raw,
    &zr_dtype_null_terminated,
    &zr_dtype_utf32,
    &zr_dtype_datetime64,
    &zr_dtype_timedelta64,
    &zr_dtype_struct,
    NULL,
};

static void free_made(const zarr_allocator *alloc, void *value)
{
    ZR_UNUSED(alloc);
    zr_dtype_unmake(value);
}

zarr_status zr_dtype_registry_init(struct zr_dtype_registry *r,
                                   const zarr_allocator *alloc, zarr_error *err)
{
    ZR_UNUSED(err);
    *r = (struct zr_dtype_registry){.alloc = alloc};
    zr_map_init(&r->v3, alloc, NULL);
    zr_map_init(&r->v2, alloc, NULL);
    zr_map_init(&r->locked.made, alloc, free_made);
    zr_mutex_init(&r->locked.mutex);
    return ZARR_OK;
}

static void free_entry(const zarr_allocator *alloc, struct zr_dtype_entry *e)
{
    if (!e)
        return;
    zr_dtype_unmake(e->fixed);
    zr_free(alloc, e->origin);
    zr_free(alloc, e);
}

void zr_dtype_registry_deinit(struct zr_dtype_registry *r)
{
    if (!r)
        return;
    zr_map_deinit(&r->locked.made);
    zr_map_deinit(&r->v3);
    zr_map_deinit(&r->v2);
    while (r->n > 0) /* types made of types were registered behind them */
        free_entry(r->alloc, r->entries[--r->n]);
    zr_free(r->alloc, r->entries);
    zr_mutex_deinit(&r->locked.mutex);
    r->entries = NULL;
    r->cap = 0;
}

static zarr_status check_free(const struct zr_map *names, const char *name,
                              zarr_error *err)
{
    const struct zr_dtype_entry *old = name ? zr_map_get(names, name) : NULL;

    if (!old)
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_EXISTS, "data type \"%s\" is taken by %s", name,
                   old->origin);
}

static zarr_status check_table(const struct zr_dtype_registry *r,
                               const zarr_dtype_vtable *v, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if ((!v->name && !v->v2) || !v->parse || !v->fill_parse || !v->fill_print ||
        ((v->flags & ZARR_DTYPE_FAMILY) && (!v->write || (v->v2 && !v->parse_v2)))) {
        st = zr_fail(
            err, ZARR_ERR_INVALID,
            "data type \"%s\": the table needs a name, parse, fill_parse, fill_print, "
            "and write for a family",
            v->name ? v->name
            : v->v2 ? v->v2
                    : "");
        goto out;
    }
    ZR_TRY(check_free(&r->v3, v->name, err));
    ZR_TRY(check_free(&r->v2, v->v2, err));
    for (const char *const *alias = v->aliases; alias && *alias; alias++)
        ZR_TRY(check_free(&r->v3, *alias, err));
out:
    return st;
}

static void forget_names(struct zr_dtype_registry *r, const zarr_dtype_vtable *v)
{
    if (v->name)
        zr_map_remove(&r->v3, v->name);
    if (v->v2)
        zr_map_remove(&r->v2, v->v2);
    for (const char *const *alias = v->aliases; alias && *alias; alias++)
        zr_map_remove(&r->v3, *alias);
}

static zarr_status learn_names(struct zr_dtype_registry *r, struct zr_dtype_entry *e,
                               zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (e->vt.name)
        ZR_TRY(zr_map_put(&r->v3, e->vt.name, e, err));
    if (e->vt.v2)
        ZR_TRY(zr_map_put(&r->v2, e->vt.v2, e, err));
    for (const char *const *alias = e->vt.aliases; alias && *alias; alias++)
        ZR_TRY(zr_map_put(&r->v3, *alias, e, err));
out:
    if (st != ZARR_OK)
        forget_names(r, &e->vt);
    return st;
}

zarr_status zr_dtype_register(struct zr_dtype_registry *r, const zarr_dtype_vtable *v,
                              const char *origin, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    zarr_dtype_vtable vt;
    struct zr_dtype_entry *e = NULL;

    ZR_TRY(zr_struct_read(&vt, sizeof vt, sizeof vt, v, ZR_TAIL_IGNORE,
                          "zarr_dtype_vtable", err));
    ZR_TRY(check_table(r, &vt, err));
    ZR_TRY(zr_grow(r->alloc, &r->entries, &r->cap, r->n + 1, sizeof *r->entries, err));
    e = zr_calloc(r->alloc, 1, sizeof *e);
    if (e)
        e->origin = zr_strdup(r->alloc, origin ? origin : "");
    if (!e || !e->origin) {
        st = zr_fail_memory(err, sizeof *e);
        goto out;
    }
    e->vt = vt;
    if (!(vt.flags & ZARR_DTYPE_FAMILY))
        ZR_TRY(
            zr_dtype_make(&e->fixed, r, e, vt.name ? vt.name : vt.v2, NULL, NULL, err));
    ZR_TRY(learn_names(r, e, err));
    r->entries[r->n++] = e;
    e = NULL;
out:
    free_entry(r->alloc, e);
    return st;
}

static void describe(const struct zr_dtype_entry *e, char *text, size_t cap)
{
    const struct zarr_dtype *t = e->fixed;

    if (t)
        snprintf(text, cap, "%" PRIu64 " bytes%s%s%s", t->info.item_bytes,
                 t->v2 ? ", v2 " : "", t->v2 ? t->v2 : "",
                 t->info.flags & ZARR_DTYPE_EXPERIMENTAL ? ", experimental" : "");
    else
        snprintf(text, cap, "family%s%s", e->vt.v2 ? ", v2 " : "",
                 e->vt.v2 ? e->vt.v2 : "");
}

/* A family is what its table says; of a single type its object knows. */
static bool experimental(const struct zr_dtype_entry *e)
{
    return ((e->fixed ? e->fixed->info.flags : e->vt.flags) & ZARR_DTYPE_EXPERIMENTAL) !=
           0;
}

int zr_dtype_list(const struct zr_dtype_registry *r,
                  int (*fn)(void *user, const zarr_registry_item *item), void *user)
{
    int stop = 0;

    for (size_t i = 0; i < r->n && !stop; i++) {
        const struct zr_dtype_entry *e = r->entries[i];
        const bool family = (e->vt.flags & ZARR_DTYPE_FAMILY) != 0;
        char detail[128], name[64], aliases[128] = "";
        zarr_registry_item item = {
            .struct_size = sizeof item,
            .registry = ZARR_REGISTRY_DTYPE,
            .name = name,
            .origin = e->origin,
            .detail = detail,
            .flags = (family ? ZARR_ITEM_FAMILY : 0) |
                     (experimental(e) ? ZARR_ITEM_EXPERIMENTAL : 0),
            .v3 = e->vt.name ? e->vt.name : "",
            .v2 = e->vt.v2 ? e->vt.v2 : "",
            .aliases = aliases,
            .of = "",
            .capabilities = "",
        };

        snprintf(name, sizeof name, "%s%s", e->vt.name ? e->vt.name : e->vt.v2,
                 e->vt.flags & ZARR_DTYPE_NUMBERED ? "<N>" : "");
        describe(e, detail, sizeof detail);
        for (const char *const *alias = e->vt.aliases; alias && *alias; alias++) {
            const size_t n = strlen(aliases);

            snprintf(aliases + n, sizeof aliases - n, "%s%s", n ? " " : "", *alias);
        }
        stop = fn(user, &item);
    }
    return stop;
}
