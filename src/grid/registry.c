/*
 * grid/registry.c - the names of chunk grids and chunk key encodings, as in metadata, and
 * their vtables.
 * Thread class: solo while filled, then frozen.
 */
#include "grid/grid_int.h"

zarr_status zr_grid_registry_init(struct zr_grid_registry *r, const zarr_allocator *alloc,
                                  zarr_error *err)
{
    ZR_UNUSED(err);
    *r = (struct zr_grid_registry){.alloc = alloc};
    zr_registry_init(&r->grids, "chunk grid", alloc, NULL);
    zr_registry_init(&r->encodings, "chunk key encoding", alloc, NULL);
    return ZARR_OK;
}

void zr_grid_registry_deinit(struct zr_grid_registry *r)
{
    zr_registry_deinit(&r->grids);
    zr_registry_deinit(&r->encodings);
}

zarr_status zr_grid_register(struct zr_grid_registry *r, const zarr_grid_vtable *v,
                             const char *origin, zarr_error *err)
{
    struct zr_grid_entry e = {.entry.origin = origin};

    ZR_CHECK(zr_struct_read(&e.vt, sizeof e.vt, offsetof(zarr_grid_vtable, n_equal), v,
                            ZR_TAIL_IGNORE, "zarr_grid_vtable", err));
    if (!e.vt.parse || !e.vt.canonical || !e.vt.n_chunks || !e.vt.locate || !e.vt.extent)
        return zr_fail(err, ZARR_ERR_INVALID, "chunk grid \"%s\" lacks a function",
                       e.vt.name ? e.vt.name : "");
    e.entry.name = e.vt.name ? e.vt.name : "";
    return zr_registry_add(&r->grids, &e.entry, sizeof e, NULL, err);
}

zarr_status zr_key_encoding_register(struct zr_grid_registry *r,
                                     const zarr_key_encoding_vtable *v,
                                     const char *origin, zarr_error *err)
{
    struct zr_key_encoding_entry e = {.entry.origin = origin,
                                      .separator = v == &zr_key_default ? '/'
                                                   : v == &zr_key_v2    ? '.'
                                                                        : 0};

    ZR_CHECK(zr_struct_read(&e.vt, sizeof e.vt,
                            ZR_SIZE_THROUGH(zarr_key_encoding_vtable, free), v,
                            ZR_TAIL_IGNORE, "zarr_key_encoding_vtable", err));
    if (!e.vt.parse || !e.vt.canonical || !e.vt.key || !e.vt.chunk)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "chunk key encoding \"%s\" lacks a function",
                       e.vt.name ? e.vt.name : "");
    e.entry.name = e.vt.name ? e.vt.name : "";
    return zr_registry_add(&r->encodings, &e.entry, sizeof e, NULL, err);
}
