/*
 * pipe/registry.c - pipelines by name. Tables are copied, so a shorter one of an older
 * plug-in reads as NULL for the rest; a name that is taken is taken.
 * Thread class: solo while it is filled, frozen once sealed by its owner.
 */
#include "pipe/pipe_int.h"

static void pipeline_free(const zarr_allocator *alloc, void *value)
{
    struct zr_pipeline *p = value;

    if (p->vt.close != NULL)
        p->vt.close(p->self);
    zr_free(alloc, p);
}

void zr_pipeline_registry_init(struct zr_pipeline_registry *r,
                               const zarr_allocator *alloc)
{
    *r = (struct zr_pipeline_registry){.alloc = alloc};
    zr_map_init(&r->by_name, alloc, pipeline_free);
}

void zr_pipeline_registry_deinit(struct zr_pipeline_registry *r)
{
    zr_map_deinit(&r->by_name);
}

zarr_status zr_pipeline_register(struct zr_pipeline_registry *r,
                                 const zarr_pipeline_vtable *vtable, void *self,
                                 zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_pipeline *p = NULL;
    zarr_pipeline_vtable vt;

    ZR_TRY(zr_struct_read(&vt, sizeof vt, sizeof vt, vtable, ZR_TAIL_IGNORE,
                          "zarr_pipeline_vtable", err));
    ZR_TRY(zr_check_name("pipeline", vt.name, err));
    if (vt.read == NULL)
        ZR_TRY(zr_fail(err, ZARR_ERR_INVALID, "pipeline \"%s\" lacks read", vt.name));
    if (zr_map_get(&r->by_name, vt.name) != NULL)
        ZR_TRY(zr_fail(err, ZARR_ERR_EXISTS, "pipeline \"%s\" is registered already",
                       vt.name));
    if (vt.write == NULL)
        vt.write = zr_pipeline_waves.write;
    p = zr_malloc(r->alloc, sizeof *p);
    if (p == NULL)
        ZR_TRY(zr_fail_memory(err, sizeof *p));
    *p = (struct zr_pipeline){.name = vt.name, .vt = vt, .self = self};
    ZR_TRY(zr_map_put(&r->by_name, vt.name, p, err));
    p = NULL; /* moved */
out:
    zr_free(r->alloc, p);
    return st;
}

const struct zr_pipeline *zr_pipeline_find(const struct zr_pipeline_registry *r,
                                           const char *name)
{
    return zr_map_get(&r->by_name, name);
}
