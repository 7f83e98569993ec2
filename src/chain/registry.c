/*
 * chain/registry.c - names to specifications. A vtable is copied when it is
 * registered, so a shorter one of an older plug-in reads as "NULL for the
 * rest"; its strings stay the plug-in's. Nothing replaces anything: a name or
 * alias that is taken is EXISTS, so the core's meanings are safe. "numcodecs.<id>" is
 * no entry: look-ups find the specification behind it, which has the flag NUMCODECS. A
 * filter that is a codec between arrays in v3 is two specifications, of which that of v3
 * comes first and has the name.
 * Thread class: solo while it is filled, frozen once sealed by its owner.
 */
#include "chain/chain_int.h"

#include <string.h>

#define CODEC_PREFIX "numcodecs."

/* What look-ups give is the first member. */
struct codec_entry {
    zarr_codec_spec_vtable vt;
    const char *origin;
    enum zr_structure_kind structure;
};

static void codec_entry_free(const zarr_allocator *alloc, void *value)
{
    zr_free(alloc, value);
}

void zr_codec_registry_init(struct zr_codec_registry *r, struct zr_dtype_registry *dtypes,
                            const zarr_allocator *alloc)
{
    *r = (struct zr_codec_registry){.dtypes = dtypes, .alloc = alloc};
    zr_map_init(&r->specs, alloc, codec_entry_free);
    zr_map_init(&r->aliases, alloc, NULL);
    zr_map_init(&r->v2, alloc, codec_entry_free);
}

void zr_codec_registry_deinit(struct zr_codec_registry *r)
{
    if (!r)
        return;
    zr_map_deinit(&r->v2);
    zr_map_deinit(&r->aliases);
    zr_map_deinit(&r->specs);
}

const char *zr_codec_spec_origin(const zarr_codec_spec_vtable *registered)
{
    return ((const struct codec_entry *)(const void *)registered)->origin;
}

enum zr_structure_kind zr_codec_spec_structure(const zarr_codec_spec_vtable *registered)
{
    return ((const struct codec_entry *)(const void *)registered)->structure;
}

/* By the table itself: a plug-in's codec of the same functions is not the core's. */
static enum zr_structure_kind codec_structure(const zarr_codec_spec_vtable *v)
{
    return v == &zr_spec_transpose  ? ZR_STRUCTURE_TRANSPOSE
           : v == &zr_spec_bytes    ? ZR_STRUCTURE_BYTES
           : v == &zr_spec_sharding ? ZR_STRUCTURE_SHARD
                                    : ZR_STRUCTURE_NONE;
}

static zarr_status codec_taken(const zarr_codec_spec_vtable *v, const char *name,
                               const zarr_codec_spec_vtable *had, zarr_error *err)
{
    if (!had)
        return ZARR_OK;
    if (name == v->name)
        return zr_fail(err, ZARR_ERR_EXISTS, "codec \"%s\" is registered already, by %s",
                       name, zr_codec_spec_origin(had));
    return zr_fail(err, ZARR_ERR_EXISTS, "codec \"%s\": alias \"%s\" is taken, by %s",
                   v->name, name, zr_codec_spec_origin(had));
}

/* The name that v3 has for a codec of numcodecs, unless a codec between arrays has it. */
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
        st = codec_taken(v, zr_str_text(&name), had, err);
out:
    zr_str_deinit(&name);
    return st;
}

static zarr_status codec_check(const struct zr_codec_registry *r,
                               const zarr_codec_spec_vtable *v, zarr_error *err)
{
    const bool v2 = (v->flags & ZARR_CODEC_SPEC_V2) != 0;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_check_name("codec", v->name, err));
    if (v->kind < ZARR_CODEC_ARRAY_ARRAY || v->kind > ZARR_CODEC_BYTES_BYTES)
        ZR_TRY(zr_fail(err, ZARR_ERR_INVALID,
                       "codec \"%s\": kind %" PRIu32 " is not known", v->name, v->kind));
    ZR_TRY(codec_taken(v, v->name,
                       v2 ? zr_codec_spec_lookup_v2(r, v->name)
                          : zr_codec_spec_lookup(r, v->name),
                       err));
    for (size_t i = 0; v->aliases && v->aliases[i]; i++) {
        ZR_TRY(zr_check_name("alias of a codec", v->aliases[i], err));
        ZR_TRY(
            codec_taken(v, v->aliases[i], zr_codec_spec_lookup(r, v->aliases[i]), err));
    }
    st = codec_check_prefixed(r, v, err);
out:
    return st;
}

zarr_status zr_codec_spec_register(struct zr_codec_registry *r,
                                   const zarr_codec_spec_vtable *v, const char *origin,
                                   zarr_error *err)
{
    zarr_status st = ZARR_OK;
    zarr_codec_spec_vtable read;
    struct codec_entry *entry = NULL;
    size_t n = 0;

    if (!v)
        return zr_fail(err, ZARR_ERR_INVALID, "codec specification: no vtable");
    ZR_TRY(zr_struct_read(&read, sizeof read, offsetof(zarr_codec_spec_vtable, chains), v,
                          ZR_TAIL_IGNORE, "zarr_codec_spec_vtable", err));
    ZR_TRY(codec_check(r, &read, err));
    entry = zr_malloc(r->alloc, sizeof *entry);
    if (!entry) {
        st = zr_fail_memory(err, sizeof *entry);
        goto out;
    }
    *entry = (struct codec_entry){
        .vt = read, .origin = origin, .structure = codec_structure(v)};
    for (; read.aliases && read.aliases[n]; n++)
        ZR_TRY(zr_map_put(&r->aliases, read.aliases[n], entry, err));
    ZR_TRY(zr_map_put((read.flags & ZARR_CODEC_SPEC_V2) ? &r->v2 : &r->specs, read.name,
                      entry, err));
    entry = NULL; /* moved */
out:
    for (size_t i = 0; entry && i < n; i++)
        (void)zr_map_remove(&r->aliases, read.aliases[i]);
    zr_free(r->alloc, entry);
    return st;
}

const zarr_codec_spec_vtable *zr_codec_spec_lookup(const struct zr_codec_registry *r,
                                                   const char *name)
{
    const zarr_codec_spec_vtable *v = zr_map_get(&r->specs, name);

    if (!v)
        v = zr_map_get(&r->aliases, name);
    if (!v && zr_starts_with(name, CODEC_PREFIX)) {
        v = zr_map_get(&r->specs, name + strlen(CODEC_PREFIX));
        v = v && (v->flags & ZARR_CODEC_SPEC_NUMCODECS) ? v : NULL;
    }
    return v;
}

const zarr_codec_spec_vtable *zr_codec_spec_lookup_v2(const struct zr_codec_registry *r,
                                                      const char *id)
{
    const zarr_codec_spec_vtable *v = zr_map_get(&r->v2, id);

    if (!v)
        v = zr_map_get(&r->specs, id);
    return v && !(v->flags & ZARR_CODEC_SPEC_V3) ? v : NULL;
}

bool zr_codec_spec_has(const struct zr_codec_registry *r, const char *name, bool v2)
{
    return zr_map_get(v2 ? &r->v2 : &r->specs, name) != NULL;
}

const zarr_codec_spec_vtable *const zr_chain_specs[] = {
    &zr_spec_bytes,
    &zr_spec_transpose,
    &zr_spec_sharding,
    NULL,
};
