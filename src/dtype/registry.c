/*
 * dtype/registry.c - the tables of one context and their names (claims.c decides which
 * names a table may have). Types without configuration are made here, once. Members of
 * families are made on demand (make.c).
 * Thread class: filled and read by one thread at a time, which its owner ensures, then
 * sealed. Entries keep their addresses while others are added.
 */
#include "dtype_int.h"

#include <stdio.h>
#include <string.h>

#define REALS_OF_FIVE(i)                                                                 \
    &zr_dtype_reals[i], &zr_dtype_reals[(i) + 1], &zr_dtype_reals[(i) + 2],              \
        &zr_dtype_reals[(i) + 3], &zr_dtype_reals[(i) + 4]

const zarr_dtype_vtable *const zr_dtype_core[] = {
    &zr_dtype_bool,        &zr_dtype_int2,
    &zr_dtype_int4,        &zr_dtype_int8,
    &zr_dtype_int16,       &zr_dtype_int32,
    &zr_dtype_int64,       &zr_dtype_uint2,
    &zr_dtype_uint4,       &zr_dtype_uint8,
    &zr_dtype_uint16,      &zr_dtype_uint32,
    &zr_dtype_uint64,      REALS_OF_FIVE(0),
    REALS_OF_FIVE(5),      REALS_OF_FIVE(10),
    REALS_OF_FIVE(15),     REALS_OF_FIVE(20),
    &zr_dtype_reals[25],   &zr_dtype_reals[26],
    &zr_dtype_reals[27],   &zr_dtype_reals[28],
    &zr_dtype_raw,         &zr_dtype_null_terminated,
    &zr_dtype_utf32,       &zr_dtype_datetime64,
    &zr_dtype_timedelta64, &zr_dtype_struct,
    &zr_dtype_string,      &zr_dtype_vbytes,
    &zr_dtype_optional,    &zr_dtype_zarrs_optional,
    &zr_dtype_ragged,      NULL,
};
_Static_assert(ZR_DTYPE_REALS == 29, "each is listed above");

static void free_made(const zarr_allocator *alloc, void *value)
{
    ZR_UNUSED(alloc);
    zr_dtype_unmake(value);
}

static void close_entry(struct zr_registered *e)
{
    zr_dtype_unmake(((struct zr_dtype_entry *)(void *)e)->fixed);
}

zarr_status zr_dtype_registry_init(struct zr_dtype_registry *r,
                                   const zarr_allocator *alloc, zarr_error *err)
{
    ZR_UNUSED(err);
    *r = (struct zr_dtype_registry){.alloc = alloc};
    zr_registry_init(&r->types, "data type", alloc, close_entry);
    zr_map_init(&r->v2, alloc, NULL);
    zr_map_init(&r->numpy, alloc, NULL);
    zr_map_init(&r->locked.made, alloc, free_made);
    zr_mutex_init(&r->locked.mutex);
    r->fork = (struct zr_fork_hook){.mutex = &r->locked.mutex};
    zr_fork_hook_add(&r->fork);
    return ZARR_OK;
}

void zr_dtype_registry_deinit(struct zr_dtype_registry *r)
{
    if (!r)
        return;
    zr_map_deinit(&r->locked.made);
    zr_map_deinit(&r->v2);
    zr_map_deinit(&r->numpy);
    zr_registry_deinit(&r->types);
    zr_fork_hook_remove(&r->fork);
    zr_mutex_deinit(&r->locked.mutex);
}

static void forget_spellings(struct zr_dtype_registry *r, const zarr_dtype_vtable *v)
{
    if (v->v2)
        zr_map_remove(&r->v2, v->v2);
    if (v->numpy && !zr_is_shared_form(v->numpy))
        zr_map_remove(&r->numpy, v->numpy);
    for (const char *const *alias = v->numpy_aliases; alias && *alias; alias++)
        zr_map_remove(&r->numpy, *alias);
}

static zarr_status learn_spellings(struct zr_dtype_registry *r, struct zr_dtype_entry *e,
                                   zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (e->vt.v2 && !zr_is_raw_form(e->vt.v2))
        ZR_TRY(zr_map_put(&r->v2, e->vt.v2, e, err));
    if (e->vt.numpy && !zr_is_shared_form(e->vt.numpy))
        ZR_TRY(zr_map_put(&r->numpy, e->vt.numpy, e, err));
    for (const char *const *alias = e->vt.numpy_aliases; alias && *alias; alias++)
        ZR_TRY(zr_map_put(&r->numpy, *alias, e, err));
    ZR_TRY(zr_registry_put(&r->types, &e->entry, e->vt.aliases, err));
out:
    if (st != ZARR_OK)
        forget_spellings(r, &e->vt);
    return st;
}

zarr_status zr_dtype_register(struct zr_dtype_registry *r, const zarr_dtype_vtable *v,
                              const char *origin, zarr_error *err)
{
    struct zr_dtype_entry read = {.entry.origin = origin}, *e = NULL;
    zarr_dtype_vtable *vt = &read.vt;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_struct_read(vt, sizeof *vt, offsetof(zarr_dtype_vtable, numpy), v,
                          ZR_TAIL_IGNORE, "zarr_dtype_vtable", err));
    ZR_TRY(zr_dtype_check_table(r, vt, origin ? origin : "", err));
    read.entry.name = vt->name;
    e = (void *)zr_registry_make(&r->types, &read.entry, sizeof read, err);
    if (!e)
        return ZARR_ERR_NO_MEMORY;
    if (!(vt->flags & ZARR_DTYPE_FAMILY))
        ZR_TRY(zr_dtype_make(&e->fixed, r, e, vt->name ? vt->name : vt->v2, NULL, NULL,
                             err));
    ZR_TRY(learn_spellings(r, e, err));
    e = NULL; /* moved */
out:
    if (e)
        zr_registry_drop(&r->types, &e->entry);
    return st;
}

/* A family has this flag in its table, a single type in its object. */
static bool experimental(const struct zr_dtype_entry *e)
{
    return ((e->fixed ? e->fixed->info.flags : e->vt.flags) & ZARR_DTYPE_EXPERIMENTAL) !=
           0;
}

/* Gives the v2 name without byte order: a type, the letter of a family, or the name of a
 * type that only v2 has. Text and bytes, which a filter tells apart, have it in their
 * object only. */
static const char *name_in_v2(const struct zr_dtype_entry *e)
{
    if (e->vt.v2)
        return e->vt.v2;
    if ((e->vt.flags & ZARR_DTYPE_V2_ONLY) && e->vt.name)
        return e->vt.name;
    return e->fixed && e->fixed->v2 ? e->fixed->v2 : "";
}

static void describe(const struct zr_dtype_entry *e, char *text, size_t cap)
{
    const struct zarr_dtype *t = e->fixed;
    const char *v2 = t && t->v2 ? t->v2 : name_in_v2(e); /* with its byte order */
    char size[40] = "any length";

    if (!t)
        snprintf(size, sizeof size, "family");
    else if (!(t->info.flags & ZARR_DTYPE_VARIABLE))
        snprintf(size, sizeof size, "%" PRIu64 " byte%s", t->info.item_bytes,
                 t->info.item_bytes == 1 ? "" : "s");
    snprintf(text, cap, "%s%s%s%s", size, *v2 ? ", v2 " : "", v2,
             experimental(e) ? ", experimental" : "");
}

bool zr_dtype_row(const struct zr_dtype_registry *r, size_t i, struct zr_dtype_row *row)
{
    const struct zr_dtype_entry *e = i < r->types.n ? zr_dtype_entry_at(r, i) : NULL;

    if (!e)
        return false;
    row->aliases[0] = '\0';
    row->item = (zarr_registry_item){
        .struct_size = sizeof row->item,
        .registry = ZARR_REGISTRY_DTYPE,
        .name = row->name,
        .origin = e->entry.origin,
        .detail = row->detail,
        .flags = (e->vt.flags & ZARR_DTYPE_FAMILY ? ZARR_ITEM_FAMILY : 0) |
                 (experimental(e) ? ZARR_ITEM_EXPERIMENTAL : 0),
        .v3 = e->vt.name && !(e->vt.flags & ZARR_DTYPE_V2_ONLY) ? e->vt.name : "",
        .v2 = name_in_v2(e),
        .aliases = row->aliases,
        .of = "",
        .capabilities = "",
    };
    snprintf(row->name, sizeof row->name, "%s%s", e->vt.name ? e->vt.name : e->vt.v2,
             e->vt.flags & ZARR_DTYPE_NUMBERED ? "<N>" : "");
    describe(e, row->detail, sizeof row->detail);
    for (const char *const *alias = e->vt.aliases; alias && *alias; alias++) {
        const size_t n = strlen(row->aliases);

        snprintf(row->aliases + n, sizeof row->aliases - n, "%s%s", n ? " " : "", *alias);
    }
    return true;
}
