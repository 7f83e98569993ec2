/*
 * meta/array.c - an array's metadata as one struct for both formats. array_v2.c or
 * array_v3.c makes it; this file checks it as a whole and frees it.
 * Thread class: frozen once parsed.
 */
#include "meta_int.h"

/* Completes what was left to defaults, and checks the sizes again. */
static zarr_status complete_items(struct zr_array_meta *m, const struct zr_meta_env *env,
                                  zarr_error *err)
{
    zarr_chunk_spec chunk;
    bool completed = false;

    zr_array_meta_chunk(m, &chunk);
    ZR_CHECK(zr_chain_complete_stored(m->chain, &chunk, &completed, err));
    if (completed)
        return zr_meta_check_chain(m, env, err);
    return ZARR_OK;
}

zarr_status zr_array_meta_parse(struct zr_array_meta *out, const struct zr_meta_env *env,
                                int format, const struct zr_json *root,
                                const struct zr_json *attributes, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_array_meta m = {.format = format, .alloc = env->alloc, .document = root};

    *out = (struct zr_array_meta){0};
    if (format != 2 && format != 3)
        return zr_fail(err, ZARR_ERR_INVALID, "zarr_format must be 2 or 3, not %d",
                       format);
    ZR_TRY(zr_meta_format(root, format, err));
    if (format == 2)
        ZR_TRY(zr_meta_attributes(attributes, &m.attributes, err));
    ZR_TRY(format == 3 ? zr_array_v3_parse(&m, env, err)
                       : zr_array_v2_parse(&m, env, err));
    ZR_TRY(zr_meta_check_chain(&m, env, err));
    ZR_TRY(complete_items(&m, env, err));
    *out = m; /* moved */
    m = (struct zr_array_meta){0};
out:
    zr_array_meta_deinit(&m);
    return zr_meta_blame(env, st, err);
}

void zr_array_meta_deinit(struct zr_array_meta *m)
{
    if (!m)
        return;
    zr_chain_free(m->chain);
    zr_grid_deinit(&m->grid);
    zr_key_encoding_deinit(&m->keys);
    zr_free(m->alloc, m->dimension_names);
    zarr_dtype_release(m->dtype, m->fill);
    zr_free(m->alloc, m->fill);
    zr_free(m->alloc, m->leaves);
    zr_json_doc_deinit(&m->own);
    *m = (struct zr_array_meta){0};
}

void zr_array_meta_chunk(const struct zr_array_meta *m, zarr_chunk_spec *out)
{
    uint64_t origin;

    uint64_t unit[ZARR_MAX_RANK];

    *out = (zarr_chunk_spec){
        .struct_size = sizeof *out, .ndim = m->ndim, .dtype = m->dtype, .fill = m->fill};
    if (zr_chain_unit(m->chain, m->ndim, unit, NULL) != ZARR_OK)
        for (int32_t d = 0; d < m->ndim; d++)
            unit[d] = 1; /* resolving the chain reports the error */
    for (int32_t d = 0; d < m->ndim; d++) {
        if (m->grid.regular)
            out->shape[d] = m->grid.chunk_shape[d];
        else if (zr_grid_n_chunks(&m->grid, d) > 0)
            zr_grid_extent(&m->grid, d, 0, &origin, &out->shape[d]);
        else
            out->shape[d] = unit[d];
    }
}

zarr_status zr_array_meta_complete(struct zr_array_meta *m, zarr_error *err)
{
    zarr_chunk_spec chunk;

    zr_array_meta_chunk(m, &chunk);
    return zr_chain_complete(m->chain, &chunk, err);
}
