/*
 * grid/registry.c - names of chunk grids and chunk key encodings, as metadata
 * has them, and the vtables behind. The context fills one registry with the
 * built-ins first and then with what plug-ins bring; a name taken is taken.
 * Vtables are copied (a shorter one of an older plug-in gets a zero tail), so
 * that only the functions and the name must live as long as the plug-in.
 * Thread class: solo while filled, then frozen.
 */
#include "grid/grid_int.h"

static void free_vtable(const zarr_allocator *alloc, void *vtable)
{
    zr_free(alloc, vtable);
}

zarr_status zr_grid_registry_init(struct zr_grid_registry *r, const zarr_allocator *alloc,
                                  zarr_error *err)
{
    ZR_UNUSED(err);
    *r = (struct zr_grid_registry){.alloc = alloc};
    zr_map_init(&r->grids, alloc, free_vtable);
    zr_map_init(&r->encodings, alloc, free_vtable);
    return ZARR_OK;
}

void zr_grid_registry_deinit(struct zr_grid_registry *r)
{
    zr_map_deinit(&r->grids);
    zr_map_deinit(&r->encodings);
}

/* Puts a block that holds a vtable under its name; the block is moved when this succeeds.
 */
static zarr_status register_vtable(struct zr_map *map, const char *what, const char *name,
                                   void *vtable, zarr_error *err)
{
    zarr_status st = zr_check_name(what, name, err);

    if (st != ZARR_OK)
        return st;
    if (zr_map_get(map, name))
        return zr_fail(err, ZARR_ERR_EXISTS, "%s \"%s\" is registered already", what,
                       name);
    return zr_map_put(map, name, vtable, err);
}

zarr_status zr_grid_register(struct zr_grid_registry *r, const zarr_grid_vtable *v,
                             zarr_error *err)
{
    zarr_status st = ZARR_OK;
    zarr_grid_vtable *copy = zr_calloc(r->alloc, 1, sizeof(*copy));

    if (!copy)
        return zr_fail_memory(err, sizeof(*copy));
    ZR_TRY(zr_struct_read(copy, sizeof(*copy), offsetof(zarr_grid_vtable, run), v,
                          ZR_TAIL_IGNORE, "zarr_grid_vtable", err));
    if (!copy->parse || !copy->canonical || !copy->n_chunks || !copy->locate ||
        !copy->extent) {
        st = zr_fail(err, ZARR_ERR_INVALID, "chunk grid \"%s\" lacks a function",
                     copy->name ? copy->name : "");
        goto out;
    }
    ZR_TRY(register_vtable(&r->grids, "chunk grid", copy->name, copy, err));
    copy = NULL; /* moved */
out:
    zr_free(r->alloc, copy);
    return st;
}

zarr_status zr_key_encoding_register(struct zr_grid_registry *r,
                                     const zarr_key_encoding_vtable *v, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    zarr_key_encoding_vtable *copy = zr_calloc(r->alloc, 1, sizeof(*copy));

    if (!copy)
        return zr_fail_memory(err, sizeof(*copy));
    ZR_TRY(zr_struct_read(copy, sizeof(*copy), sizeof(*copy), v, ZR_TAIL_IGNORE,
                          "zarr_key_encoding_vtable", err));
    if (!copy->parse || !copy->canonical || !copy->key || !copy->chunk) {
        st = zr_fail(err, ZARR_ERR_INVALID, "chunk key encoding \"%s\" lacks a function",
                     copy->name ? copy->name : "");
        goto out;
    }
    ZR_TRY(register_vtable(&r->encodings, "chunk key encoding", copy->name, copy, err));
    copy = NULL; /* moved */
out:
    zr_free(r->alloc, copy);
    return st;
}
