/*
 * tree/copy_mark.c - copies that would change the meaning of an array. netCDF-C marks
 * only the root of a hierarchy, and this mark decides what shuffle without a size means
 * (array/handle/origin.c). Objects are copied byte for byte. So an array with such a
 * shuffle is copied neither out of a hierarchy of netCDF-C nor into one: its elements
 * would come out scrambled. Thread class: plain functions.
 */
#include "array/array.h"
#include "tree/copy_int.h"

#include <string.h>

zarr_status zr_copy_find_mark(struct zr_copy *c, zarr_error *err)
{
    bool copied = false, source = false, target = false;

    ZR_CHECK(zr_origin_mark_at(c->src, c->src_path, &copied, c->opts.cancel, err));
    if (copied)
        return ZARR_OK;
    ZR_CHECK(zr_origin_mark_above(c->src, c->src_path, &source, c->opts.cancel, err));
    ZR_CHECK(zr_origin_mark_above(c->dst, c->dst_path, &target, c->opts.cancel, err));
    c->changes_mark = source != target;
    return ZARR_OK;
}

/* Sets *depends false for what is no array that opens: it is copied as it is. */
static zarr_status depends_on_mark(const struct zr_copy *c, const char *path,
                                   bool *depends, zarr_error *err)
{
    const struct zr_find where = {.store = c->src,
                                  .path = path,
                                  .format = 2,
                                  .array = true,
                                  .cancel = c->opts.cancel};
    const struct zr_meta_env env = zr_meta_env_make(c->ctx, true);
    struct zr_parsed *attrs = NULL;
    struct zr_array_meta meta = {0};
    struct zr_found found;
    bool zero = false;
    zarr_status st = ZARR_OK;

    *depends = false;
    zr_found_init(&found, c->ctx->alloc);
    ZR_TRY(zr_node_find(&found, &where, err));
    if (found.kind != ZARR_NODE_ARRAY)
        goto out;
    ZR_TRY(zr_attrs_read(&attrs, &where, NULL, err));
    ZR_TRY(zr_array_meta_parse(&meta, &env, 2, found.parsed->json.root,
                               attrs ? attrs->json.root : NULL, err));
    *depends = zr_array_meta_shuffle_is_unclear(&meta, &zero);
out:
    zr_array_meta_deinit(&meta);
    zr_parsed_free(attrs);
    zr_found_deinit(&found);
    return st == ZARR_ERR_CORRUPT || st == ZARR_ERR_UNSUPPORTED ? ZARR_OK : st;
}

zarr_status zr_copy_check_mark(const struct zr_copy *c, const char *key, zarr_error *err)
{
    char *path = zr_strndup(c->ctx->alloc, key, zr_path_parent_bytes(key));
    bool depends = false;
    zarr_status st = ZARR_OK;

    if (!path)
        return zr_fail_memory(err, strlen(key));
    st = depends_on_mark(c, path, &depends, err);
    if (st == ZARR_OK && depends)
        st = zr_fail(err, ZARR_ERR_UNSUPPORTED,
                     "/%s: shuffle has elementsize 0 or none: what that means depends on "
                     "the attribute _NCProperties of a group above, which either the "
                     "source or the destination lacks: re-encode the array",
                     path);
    zr_free(c->ctx->alloc, path);
    return st;
}
