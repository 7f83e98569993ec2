/*
 * chain/registry.c - finds specifications by name. "numcodecs.<id>" has no entry: a
 * look-up finds the specification with that id and the flag NUMCODECS. A filter that is a
 * codec between arrays in v3 has two specifications. The one for v3 is registered first
 * and owns the name.
 * Thread class: solo while it is filled, frozen once its owner seals it.
 */
#include "chain/chain_int.h"

#include <string.h>

#define CODEC_PREFIX "numcodecs."

struct codec_entry {
    struct zr_registered entry;
    zarr_codec_spec_vtable vt; /* look-ups return this */
    enum zr_structure_kind structure;
};

void zr_codec_registry_init(struct zr_codec_registry *r, struct zr_dtype_registry *dtypes,
                            const zarr_allocator *alloc)
{
    *r = (struct zr_codec_registry){.dtypes = dtypes, .alloc = alloc};
    zr_registry_init(&r->specs, "codec", alloc, NULL);
    zr_registry_init(&r->v2, "codec", alloc, NULL);
}

void zr_codec_registry_deinit(struct zr_codec_registry *r)
{
    if (!r)
        return;
    zr_registry_deinit(&r->v2);
    zr_registry_deinit(&r->specs);
}

static const struct codec_entry *
codec_entry_from_table(const zarr_codec_spec_vtable *registered)
{
    return (const void *)((const char *)(const void *)registered -
                          offsetof(struct codec_entry, vt));
}

const char *zr_codec_spec_origin(const zarr_codec_spec_vtable *registered)
{
    return codec_entry_from_table(registered)->entry.origin;
}

enum zr_structure_kind zr_codec_spec_structure(const zarr_codec_spec_vtable *registered)
{
    return codec_entry_from_table(registered)->structure;
}

/* Finds an entry by name, or also by alias. */
static const zarr_codec_spec_vtable *codec_find(const struct zr_registry *r,
                                                const char *name, bool alias)
{
    const struct codec_entry *e = (const void *)zr_registry_find(r, name);

    return e && (alias || zr_streq(e->entry.name, name)) ? &e->vt : NULL;
}

/* Compares the table itself: a plug-in's codec with the same functions is not the
 * core's. */
static enum zr_structure_kind codec_structure(const zarr_codec_spec_vtable *v)
{
    return v == &zr_spec_transpose  ? ZR_STRUCTURE_TRANSPOSE
           : v == &zr_spec_bytes    ? ZR_STRUCTURE_BYTES
           : v == &zr_spec_sharding ? ZR_STRUCTURE_SHARD
                                    : ZR_STRUCTURE_NONE;
}

static zarr_status codec_refuse_taken(const struct zr_codec_registry *r,
                                      const zarr_codec_spec_vtable *v, const char *alias,
                                      const zarr_codec_spec_vtable *had, zarr_error *err)
{
    return zr_registry_refuse_taken(
        &r->specs, v->name, alias, had ? &codec_entry_from_table(had)->entry : NULL, err);
}

/* Refuses a codec whose v3 name "numcodecs.<id>" is taken. Only a codec between arrays
 * may share it. */
static zarr_status codec_check_prefixed(const struct zr_codec_registry *r,
                                        const zarr_codec_spec_vtable *v, zarr_error *err)
{
    const zarr_codec_spec_vtable *had = NULL;
    zarr_status st = ZARR_OK;
    struct zr_str name;

    if (!(v->flags & ZARR_CODEC_SPEC_NUMCODECS) || (v->flags & ZARR_CODEC_SPEC_V2))
        return ZARR_OK;
    zr_str_init(&name, r->alloc);
    zr_str_printf(&name, "%s%s", CODEC_PREFIX, v->name);
    ZR_TRY(zr_str_status(&name, err));
    had = zr_codec_spec_lookup(r, zr_str_text(&name));
    if (!had || had->kind != ZARR_CODEC_ARRAY_ARRAY || v->kind != ZARR_CODEC_BYTES_BYTES)
        st = codec_refuse_taken(r, v, zr_str_text(&name), had, err);
out:
    zr_str_deinit(&name);
    return st;
}

static zarr_status codec_check(const struct zr_codec_registry *r,
                               const zarr_codec_spec_vtable *v, zarr_error *err)
{
    const bool v2 = (v->flags & ZARR_CODEC_SPEC_V2) != 0;

    ZR_CHECK(zr_check_name("codec", v->name, err));
    if (v->kind < ZARR_CODEC_ARRAY_ARRAY || v->kind > ZARR_CODEC_BYTES_BYTES)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "codec \"%s\": kind %" PRIu32 " is not known", v->name, v->kind);
    ZR_CHECK(codec_refuse_taken(r, v, NULL,
                                v2 ? zr_codec_spec_lookup_v2(r, v->name)
                                   : zr_codec_spec_lookup(r, v->name),
                                err));
    for (size_t i = 0; v->aliases && v->aliases[i]; i++) {
        ZR_CHECK(zr_check_name("alias of a codec", v->aliases[i], err));
        ZR_CHECK(codec_refuse_taken(r, v, v->aliases[i],
                                    zr_codec_spec_lookup(r, v->aliases[i]), err));
    }
    return codec_check_prefixed(r, v, err);
}

zarr_status zr_codec_spec_register(struct zr_codec_registry *r,
                                   const zarr_codec_spec_vtable *v, const char *origin,
                                   zarr_error *err)
{
    struct codec_entry e = {.entry.origin = origin, .structure = codec_structure(v)};

    if (!v)
        return zr_fail(err, ZARR_ERR_INVALID, "codec specification: no vtable");
    ZR_CHECK(zr_struct_read(&e.vt, sizeof e.vt, offsetof(zarr_codec_spec_vtable, chains),
                            v, ZR_TAIL_IGNORE, "zarr_codec_spec_vtable", err));
    ZR_CHECK(codec_check(r, &e.vt, err));
    e.entry.name = e.vt.name;
    return zr_registry_add(e.vt.flags & ZARR_CODEC_SPEC_V2 ? &r->v2 : &r->specs, &e.entry,
                           sizeof e, e.vt.aliases, err);
}

const zarr_codec_spec_vtable *zr_codec_spec_lookup(const struct zr_codec_registry *r,
                                                   const char *name)
{
    const zarr_codec_spec_vtable *v = codec_find(&r->specs, name, true);

    if (!v && !codec_find(&r->v2, name, false)) /* codecs only in v2 may have aliases */
        v = codec_find(&r->v2, name, true);
    if (!v && zr_starts_with(name, CODEC_PREFIX)) {
        v = codec_find(&r->specs, name + strlen(CODEC_PREFIX), false);
        v = v && (v->flags & ZARR_CODEC_SPEC_NUMCODECS) ? v : NULL;
    }
    return v;
}

const zarr_codec_spec_vtable *zr_codec_spec_lookup_v2(const struct zr_codec_registry *r,
                                                      const char *id)
{
    const zarr_codec_spec_vtable *v = codec_find(&r->v2, id, false);

    if (!v)
        v = codec_find(&r->specs, id, false);
    return v && !(v->flags & ZARR_CODEC_SPEC_V3) ? v : NULL;
}

bool zr_codec_spec_has(const struct zr_codec_registry *r, const char *name, bool v2)
{
    return codec_find(v2 ? &r->v2 : &r->specs, name, false) != NULL;
}

const zarr_codec_spec_vtable *const zr_chain_specs[] = {
    &zr_spec_bytes,
    &zr_spec_transpose,
    &zr_spec_sharding,
    NULL,
};
