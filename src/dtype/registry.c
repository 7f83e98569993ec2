/*
 * dtype/registry.c - the tables of one context and the names they answer to. A
 * name, alias, v2, NumPy or DLPack type belongs to whoever registered it first, in
 * every spelling that look-ups understand, so that a core type cannot be taken over;
 * only raw bytes of a size ("V4") may be the v2 or NumPy form of many. Types without
 * configuration are made here, once; members of families are made on demand (make.c).
 * Thread class: filled and read by one thread at a time, which its owner sees to, then
 * sealed. Entries stay where they are while more come.
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

zarr_status zr_dtype_registry_init(struct zr_dtype_registry *r,
                                   const zarr_allocator *alloc, zarr_error *err)
{
    ZR_UNUSED(err);
    *r = (struct zr_dtype_registry){.alloc = alloc};
    zr_map_init(&r->v3, alloc, NULL);
    zr_map_init(&r->v2, alloc, NULL);
    zr_map_init(&r->numpy, alloc, NULL);
    zr_map_init(&r->locked.made, alloc, free_made);
    zr_mutex_init(&r->locked.mutex);
    r->fork = (struct zr_fork_hook){.mutex = &r->locked.mutex};
    zr_fork_hook_add(&r->fork);
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
    zr_map_deinit(&r->numpy);
    while (r->n > 0) /* types made of types were registered behind them */
        free_entry(r->alloc, r->entries[--r->n]);
    zr_free(r->alloc, r->entries);
    zr_fork_hook_remove(&r->fork);
    zr_mutex_deinit(&r->locked.mutex);
    r->entries = NULL;
    r->cap = 0;
}

bool zr_is_typestr(const char *type)
{
    return type[0] && strchr("biufcmMSUV", type[0]) &&
           (type[1] == '\0' || (type[1] >= '0' && type[1] <= '9'));
}

bool zr_is_raw_form(const char *type)
{
    return type && type[0] == 'V' && type[1] >= '0' && type[1] <= '9';
}

/* A newcomer: its table, and who registers it. */
struct claim {
    const zarr_dtype_vtable *vt;
    const char *origin;
};

static const char *table_name(const zarr_dtype_vtable *vt)
{
    return vt->name ? vt->name : vt->v2 ? vt->v2 : "";
}

static zarr_status taken(const struct claim *c, const char *what, const char *name,
                         const struct zr_dtype_entry *old, zarr_error *err)
{
    if (!old)
        return ZARR_OK;
    return zr_fail(
        err, ZARR_ERR_EXISTS,
        "data type \"%.64s\" of %s: the %s \"%.64s\" is taken by %s's \"%.64s\"",
        table_name(c->vt), c->origin, what, name, old->origin, table_name(&old->vt));
}

/* Names stand in JSON, in lists with blanks between them, and in texts that look-ups take
 * apart: printable ASCII, and no first character that means something else. A family of
 * v2 may go by "[". */
static zarr_status check_spelling(const struct claim *c, const char *what,
                                  const char *name, zarr_error *err)
{
    const char *p = name;

    while (*p > ' ' && *p < 0x7F && *p != '"' && *p != '\\')
        p++;
    if (p > name && !*p && !strchr("<>|={", *name) &&
        (*name != '[' || zr_streq(name, c->vt->v2)))
        return ZARR_OK;
    return zr_fail(
        err, ZARR_ERR_INVALID,
        "data type of %s: the %s must be printable ASCII without blanks, \" and "
        "\\, and not begin with one of <>|=[{",
        c->origin, what);
}

/* Whose v2 type that is, with or without a byte order in front. */
static const struct zr_dtype_entry *owner_of_v2(const struct zr_dtype_registry *r,
                                                const char *type)
{
    const char *bare = type[0] && strchr("<>|=", type[0]) ? type + 1 : type;
    const struct zr_dtype_entry *old = zr_map_get(&r->v2, bare);

    return old ? old : zr_family_of_v2(r, bare);
}

/* "r24" is a member of a family. */
static const struct zr_dtype_entry *owner_of_v3(const struct zr_dtype_registry *r,
                                                const char *name)
{
    const struct zr_dtype_entry *old = zr_map_get(&r->v3, name);

    return old ? old : zr_family_of(r, name);
}

/* Look-ups take a v2 type wherever they take a name. */
static zarr_status check_name(const struct zr_dtype_registry *r, const struct claim *c,
                              const char *name, zarr_error *err)
{
    const struct zr_dtype_entry *old = NULL;
    zarr_status st = ZARR_OK;

    if (!name)
        return ZARR_OK;
    old = owner_of_v3(r, name);
    ZR_TRY(taken(c, "name", name, old ? old : owner_of_v2(r, name), err));
    st = check_spelling(c, "name", name, err);
out:
    return st;
}

/* What all types of a size share has no owner. A name of another type would be found in
 * the fields of a struct. */
static zarr_status check_v2(const struct zr_dtype_registry *r, const struct claim *c,
                            zarr_error *err)
{
    const char *type = c->vt->v2;
    const struct zr_dtype_entry *old = NULL;
    zarr_status st = ZARR_OK;

    if (!type || zr_is_raw_form(type))
        return ZARR_OK;
    old = owner_of_v2(r, type);
    ZR_TRY(taken(c, "v2 type", type, old ? old : owner_of_v3(r, type), err));
    st = check_spelling(c, "v2 type", type, err);
out:
    return st;
}

/* NumPy's own names for core types, "float32" and "datetime64[us]", are in no map. */
static zarr_status check_numpy(struct zr_dtype_registry *r, const struct claim *c,
                               zarr_error *err)
{
    const char *type = c->vt->numpy;
    const zarr_dtype *old = NULL;
    zarr_status st = ZARR_OK;

    if (!type || zr_is_raw_form(type))
        return ZARR_OK;
    if (*type)
        st = zr_dtype_from_numpy(r, type, &old, NULL, NULL);
    if (st == ZARR_ERR_NO_MEMORY)
        ZR_TRY(zr_fail_memory(err, strlen(type)));
    ZR_TRY(taken(c, "NumPy type", type, old ? old->entry : NULL, err));
    if (!(c->vt->flags & ZARR_DTYPE_FAMILY)) /* of a family it is the v2 type */
        st = check_spelling(c, "NumPy type", type, err);
out:
    return st;
}

/* The types that were there first, in all their spellings, are no member of a new family.
 */
static zarr_status check_member(const struct claim *c, const char *name,
                                const struct zr_dtype_entry *old, zarr_error *err)
{
    bool takes = name && zr_family_takes_v2(c->vt, name);

    if (!name || zr_is_raw_form(name))
        return ZARR_OK;
    takes = takes || (c->vt->name && zr_family_takes(c->vt, c->vt->name, name));
    for (const char *const *own = c->vt->aliases; own && *own && !takes; own++)
        takes = zr_family_takes(c->vt, *own, name);
    return takes ? taken(c, "member", name, old, err) : ZARR_OK;
}

static zarr_status check_family(const struct zr_dtype_registry *r, const struct claim *c,
                                zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (size_t i = 0; i < r->n && (c->vt->flags & ZARR_DTYPE_FAMILY); i++) {
        const struct zr_dtype_entry *old = r->entries[i];

        ZR_TRY(check_member(c, old->vt.name, old, err));
        ZR_TRY(check_member(c, old->vt.v2, old, err));
        ZR_TRY(check_member(c, old->vt.numpy, old, err));
        for (const char *const *alias = old->vt.aliases; alias && *alias; alias++)
            ZR_TRY(check_member(c, *alias, old, err));
    }
out:
    return st;
}

static zarr_status check_dlpack(const struct zr_dtype_registry *r, const struct claim *c,
                                const struct zarr_dtype *t, zarr_error *err)
{
    const zarr_dtype *old = NULL;
    char numbers[32];

    if (!t || t->info.dlpack_bits == 0 ||
        zr_dtype_from_dlpack(r, t->info.dlpack_code, t->info.dlpack_bits,
                             t->info.dlpack_lanes, &old, NULL) != ZARR_OK)
        return ZARR_OK;
    snprintf(numbers, sizeof numbers, "%u,%u,%u", t->info.dlpack_code,
             t->info.dlpack_bits, t->info.dlpack_lanes);
    return taken(c, "DLPack type", numbers, old->entry, err);
}

static bool table_is_whole(const zarr_dtype_vtable *v)
{
    const bool family = (v->flags & ZARR_DTYPE_FAMILY) != 0;

    if ((!v->name && !v->v2) || !v->parse || !v->fill_parse || !v->fill_print)
        return false;
    if (family && (!v->write || (v->v2 && !v->parse_v2)))
        return false;
    return !family || !v->numpy || zr_streq(v->numpy, v->v2);
}

static zarr_status check_table(struct zr_dtype_registry *r, const struct claim *c,
                               zarr_error *err)
{
    const zarr_dtype_vtable *v = c->vt;
    zarr_status st = ZARR_OK;

    if (!table_is_whole(v)) {
        st = zr_fail(
            err, ZARR_ERR_INVALID,
            "data type \"%.64s\" of %s: the table needs a name, parse, fill_parse, "
            "fill_print, and for a family write, parse_v2 and the same letter for NumPy",
            table_name(v), c->origin);
        goto out;
    }
    ZR_TRY(check_name(r, c, v->name, err));
    for (const char *const *alias = v->aliases; alias && *alias; alias++)
        ZR_TRY(check_name(r, c, *alias, err));
    ZR_TRY(check_v2(r, c, err));
    ZR_TRY(check_numpy(r, c, err));
    ZR_TRY(check_family(r, c, err));
out:
    return st;
}

static void forget_names(struct zr_dtype_registry *r, const zarr_dtype_vtable *v)
{
    if (v->name)
        zr_map_remove(&r->v3, v->name);
    if (v->v2)
        zr_map_remove(&r->v2, v->v2);
    if (v->numpy)
        zr_map_remove(&r->numpy, v->numpy);
    for (const char *const *alias = v->aliases; alias && *alias; alias++)
        zr_map_remove(&r->v3, *alias);
}

static zarr_status learn_names(struct zr_dtype_registry *r, struct zr_dtype_entry *e,
                               zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (e->vt.name)
        ZR_TRY(zr_map_put(&r->v3, e->vt.name, e, err));
    if (e->vt.v2 && !zr_is_raw_form(e->vt.v2))
        ZR_TRY(zr_map_put(&r->v2, e->vt.v2, e, err));
    if (e->vt.numpy && !zr_is_raw_form(e->vt.numpy))
        ZR_TRY(zr_map_put(&r->numpy, e->vt.numpy, e, err));
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
    struct claim claim = {.vt = &vt, .origin = origin ? origin : ""};
    struct zr_dtype_entry *e = NULL;

    ZR_TRY(zr_struct_read(&vt, sizeof vt, offsetof(zarr_dtype_vtable, numpy), v,
                          ZR_TAIL_IGNORE, "zarr_dtype_vtable", err));
    ZR_TRY(check_table(r, &claim, err));
    ZR_TRY(zr_grow(r->alloc, &r->entries, &r->cap, r->n + 1, sizeof *r->entries, err));
    e = zr_calloc(r->alloc, 1, sizeof *e);
    if (e)
        e->origin = zr_strdup(r->alloc, claim.origin);
    if (!e || !e->origin) {
        st = zr_fail_memory(err, sizeof *e);
        goto out;
    }
    e->vt = vt;
    if (!(vt.flags & ZARR_DTYPE_FAMILY))
        ZR_TRY(
            zr_dtype_make(&e->fixed, r, e, vt.name ? vt.name : vt.v2, NULL, NULL, err));
    ZR_TRY(check_dlpack(r, &claim, e->fixed, err));
    ZR_TRY(learn_names(r, e, err));
    r->entries[r->n++] = e;
    e = NULL;
out:
    free_entry(r->alloc, e);
    return st;
}

/* A family is what its table says; of a single type its object knows. */
static bool experimental(const struct zr_dtype_entry *e)
{
    return ((e->fixed ? e->fixed->info.flags : e->vt.flags) & ZARR_DTYPE_EXPERIMENTAL) !=
           0;
}

/* Its name in v2: a family's letter, bare where an order goes in front; text and bytes,
 * whose filter says which they are, have only the object's. */
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
    const struct zr_dtype_entry *e = i < r->n ? r->entries[i] : NULL;

    if (!e)
        return false;
    row->aliases[0] = '\0';
    row->item = (zarr_registry_item){
        .struct_size = sizeof row->item,
        .registry = ZARR_REGISTRY_DTYPE,
        .name = row->name,
        .origin = e->origin,
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
