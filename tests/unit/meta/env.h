/*
 * unit/meta/env.h - the core's registries for the tests and fuzz targets of metadata,
 * and a document made from a base text by changing members.
 */
#ifndef ZR_TESTS_META_ENV_H
#define ZR_TESTS_META_ENV_H

#include <string.h>

#include "codecs/codecs.h"
#include "meta/meta.h"

struct meta_world {
    struct zr_dtype_registry dtypes;
    struct zr_codec_registry codecs;
    struct zr_grid_registry grids;
    struct zr_meta_env env;
};

static inline zarr_status meta_world_open(struct meta_world *w,
                                          const zarr_allocator *alloc)
{
    zarr_status st = ZARR_OK;

    *w = (struct meta_world){0};
    ZR_TRY(zr_dtype_registry_init(&w->dtypes, alloc, NULL));
    zr_codec_registry_init(&w->codecs, &w->dtypes, alloc);
    ZR_TRY(zr_grid_registry_init(&w->grids, alloc, NULL));
    for (const zarr_dtype_vtable *const *v = zr_dtype_core; *v; v++)
        ZR_TRY(zr_dtype_register(&w->dtypes, *v, "core", NULL));
    for (const zarr_codec_spec_vtable *const *v = zr_chain_specs; *v; v++)
        ZR_TRY(zr_codec_spec_register(&w->codecs, *v, "core", NULL));
    for (const zarr_codec_spec_vtable *const *v = zr_codecs_specs; *v; v++)
        ZR_TRY(zr_codec_spec_register(&w->codecs, *v, "core", NULL));
    ZR_TRY(zr_grid_register(&w->grids, &zr_grid_regular, "core", NULL));
    ZR_TRY(zr_key_encoding_register(&w->grids, &zr_key_default, "core", NULL));
    ZR_TRY(zr_key_encoding_register(&w->grids, &zr_key_v2, "core", NULL));
    w->env = (struct zr_meta_env){.dtypes = &w->dtypes,
                                  .codecs = &w->codecs,
                                  .grids = &w->grids,
                                  .alloc = alloc,
                                  .stored = true};
out:
    return st;
}

static inline void meta_world_close(struct meta_world *w)
{
    zr_codec_registry_deinit(&w->codecs);
    zr_grid_registry_deinit(&w->grids);
    zr_dtype_registry_deinit(&w->dtypes);
}

#endif
