/*
 * tree/delete.c - deletes a node with everything below it.
 * Thread class: plain function.
 */
#include "tree/tree.h"

#include <string.h>

static int note_item(void *user, const zarr_store_item *item)
{
    ZR_UNUSED(item);
    *(bool *)user = true;
    return 1;
}

/* Whether a failed delete left this: no document, but keys below, and not inside an
 * array. */
static zarr_status left_behind(zarr_store *store, char *path, bool *yes,
                               const zarr_cancel *cancel, zarr_error *err)
{
    uint32_t kind = ZARR_NODE_NONE;
    int32_t format = 0;
    zarr_status st = ZARR_OK;

    *yes = false;
    ZR_TRY(
        zarr_store_list(store, path, ZARR_LIST_DIRECTORY, note_item, yes, cancel, err));
    for (size_t i = strlen(path); *yes && i-- > 0;) {
        if (path[i] != '/')
            continue;
        path[i] = '\0';
        st = zarr_node_probe(store, path, &kind, &format, cancel, err);
        path[i] = '/';
        if (st != ZARR_OK)
            goto out;
        *yes = kind != ZARR_NODE_ARRAY;
    }
out:
    return st;
}

zarr_status zarr_node_delete_watched(zarr_store *store, const char *path,
                                     const zarr_delete_options *opts, zarr_error *err)
{
    ZR_NEED(store, err);
    zarr_delete_options o;
    struct zr_erase_watch watch;
    struct zr_claim claim = {0};
    bool found = true;
    const zarr_context *ctx = zr_store_context(store);
    uint32_t kind = ZARR_NODE_NONE;
    int32_t format = 0;
    char *normal = NULL;
    zarr_error e = {0};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_struct_read(&o, sizeof o, 2 * sizeof(uint32_t), opts, ZR_TAIL_REFUSE,
                          "zarr_delete_options", err));
    ZR_TRY(zr_flags_check(o.flags, ZARR_DELETE_CONSOLIDATED, "delete options", err));
    watch = (struct zr_erase_watch){.progress = o.progress,
                                    .user = o.progress_user,
                                    .cancel = o.cancel,
                                    .consolidated = o.flags != 0};
    ZR_TRY(zr_path_normal(&normal, ctx->alloc, path, &ctx->limits, err));
    /* A broken node can be deleted. If the store cannot tell what is there, nothing is
     * deleted. */
    st = zarr_node_probe(store, normal, &kind, &format, o.cancel, &e);
    if (format == 0)
        ZR_TRY(zr_pass(err, st, &e));
    if (format == 0)
        ZR_TRY(left_behind(store, normal, &found, o.cancel, err));
    if (!found)
        ZR_TRY(
            zr_fail(err, ZARR_ERR_NOT_FOUND, "/%s: there is no array or group", normal));
    ZR_TRY(zr_claim_to_erase(&claim, store, normal, o.cancel, err));
    st = zr_node_erase_watched(store, normal, &watch, err);
    if (st != ZARR_OK)
        zr_path_prefix(err, st, normal);
out:
    zr_claim_give(&claim);
    zr_free(ctx->alloc, normal);
    return st;
}

zarr_status zarr_node_delete(zarr_store *store, const char *path, zarr_error *err)
{
    ZR_NEED(store, err);
    return zarr_node_delete_watched(store, path, NULL, err);
}
