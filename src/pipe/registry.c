/*
 * pipe/registry.c - pipelines by name.
 * Thread class: solo while it is filled, frozen once sealed by its owner.
 */
#include "pipe/pipe_int.h"

static void pipeline_close(struct zr_registered *e)
{
    struct zr_pipeline *p = (void *)e;

    if (p->vt.close)
        p->vt.close(p->self);
}

void zr_pipeline_registry_init(struct zr_registry *r, const zarr_allocator *alloc)
{
    zr_registry_init(r, "pipeline", alloc, pipeline_close);
}

zarr_status zr_pipeline_register(struct zr_registry *r,
                                 const zarr_pipeline_vtable *vtable, void *self,
                                 const char *origin, zarr_error *err)
{
    struct zr_pipeline p = {.self = self};

    ZR_CHECK(zr_struct_read(&p.vt, sizeof p.vt,
                            ZR_SIZE_THROUGH(zarr_pipeline_vtable, close), vtable,
                            ZR_TAIL_IGNORE, "zarr_pipeline_vtable", err));
    ZR_CHECK(zr_check_name("pipeline", p.vt.name, err));
    if (!p.vt.read)
        return zr_fail(err, ZARR_ERR_INVALID, "pipeline \"%s\" lacks read", p.vt.name);
    if (p.vt.flags & ~(uint32_t)(ZARR_PIPELINE_PLAIN | ZARR_PIPELINE_AT_ONCE))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "pipeline \"%s\" has unknown flags 0x%" PRIx32, p.vt.name,
                       p.vt.flags);
    p.is_foreign = !zr_streq(origin, "core");
    p.has_foreign_write = p.is_foreign && p.vt.write;
    if (!p.vt.write)
        p.vt.write = zr_pipeline_waves.write;
    p.name = p.vt.name;
    p.entry = (struct zr_registered){.name = p.name, .origin = origin};
    return zr_registry_add(r, &p.entry, sizeof p, NULL, err);
}

const struct zr_pipeline *zr_pipeline_find(const struct zr_registry *r, const char *name)
{
    return (const void *)zr_registry_find(r, name);
}
