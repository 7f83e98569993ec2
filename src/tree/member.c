/*
 * tree/member.c - opens an array as a member of its group: through the group's
 * consolidated metadata without a request, otherwise like any array.
 * Thread class: plain function.
 */
#include "array/array.h"
#include "group/group.h"

zarr_status zarr_group_open_array(zarr_array **out, zarr_group *group, const char *path,
                                  const zarr_array_open_options *opts, zarr_error *err)
{
    *out = NULL;
    ZR_NEED(group, err);
    zarr_store *store = zarr_group_store(group);
    struct zr_child_path child = {0};
    zarr_array_open_options o;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_array_options_read(&o, opts, 0, err));
    ZR_TRY(zr_child_find(&child, group, path, o.consolidated, err));
    if (child.entry && (o.zarr_format == 0 || o.zarr_format == child.entry->format)) {
        char *full = child.path;

        child.path = NULL; /* moved */
        ZR_TRY(zr_array_open_entry(out, store, full, child.cons->parsed, child.entry, &o,
                                   err));
    } else {
        ZR_TRY(zarr_array_open(out, store, child.path, opts, err));
    }
out:
    zr_child_release(&child, zr_store_context(store)->alloc);
    return st;
}
