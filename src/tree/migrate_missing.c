/*
 * tree/migrate_missing.c - keeps the missing value of an array through a migration. A new
 * fill value would change the elements of missing chunks, which a migration does not
 * write, so it is refused unless all chunks are stored.
 * Thread class: plain functions.
 */
#include "array/array.h"
#include "tree/migrate_int.h"

static int count_chunk(void *user, const zarr_block_info *chunk)
{
    uint64_t *n = user;

    ZR_UNUSED(chunk);
    ++*n;
    return 0;
}

/* *all is false if the store cannot list chunks. */
static zarr_status all_chunks_stored(const struct zr_migration *m, zarr_array *array,
                                     bool *all, zarr_error *err)
{
    const zarr_io_options io = {.struct_size = sizeof io, .cancel = m->opts.cancel};
    uint64_t counts[ZARR_MAX_RANK], n = 0;
    zarr_error why = {0};
    zarr_status st;

    zarr_array_block_counts(array, counts);
    st = zarr_array_list_blocks(array, ZARR_BLOCKS_STORED, count_chunk, &n, &io, &why);
    *all = n == zr_product_cap(counts, (size_t)zarr_array_ndim(array));
    if (st == ZARR_ERR_UNSUPPORTED) {
        *all = false;
        st = ZARR_OK;
    }
    return st == ZARR_OK ? zr_migration_check_cancel(m, err) : zr_pass(err, st, &why);
}

static zarr_status refuse(zarr_array *array, const struct zr_json *fill, zarr_error *err)
{
    const zarr_allocator *alloc = zr_store_context(zarr_array_store(array))->alloc;
    struct zr_str was, is;
    zarr_status st = ZARR_OK;

    zr_str_init(&was, alloc);
    zr_str_init(&is, alloc);
    ZR_TRY(zr_array_fill_text(&was, array, zarr_array_dtype(array), err));
    zr_json_write(fill, 0, &is);
    ZR_TRY(zr_str_status(&is, err));
    st = zr_fail(err, ZARR_ERR_UNSUPPORTED,
                 "fill_value: xarray takes it for the missing value in Zarr v2, so %.80s "
                 "must become %.80s, which changes the elements of missing chunks: "
                 "re-encode the array, or keep the fill value",
                 zr_str_text(&was), zr_str_text(&is));
out:
    zr_str_deinit(&is);
    zr_str_deinit(&was);
    return st;
}

zarr_status zr_migration_keep_missing(struct zr_migration *m, struct zr_migrated *node,
                                      zarr_array *array, zarr_error *err)
{
    struct zr_missing_change change;
    bool all = true;

    if (m->opts.flags & ZARR_MIGRATE_KEEP_FILL)
        return ZARR_OK;
    ZR_CHECK(zr_array_missing_plan(&change, array, m->to, &m->made, err));
    if (change.elements)
        ZR_CHECK(all_chunks_stored(m, array, &all, err));
    if (!all)
        ZR_CHECK(refuse(array, change.fill, err));
    zr_missing_apply(&change, &m->made, node->document.root, node->attributes.root);
    node->lost = change.warning;
    return ZARR_OK;
}
