/*
 * tree/member.c - opens an array as a member of its group: through the group's
 * consolidated metadata without a request, otherwise like any array. Opens a node of any
 * kind with the documents that tell the kind.
 * Thread class: plain functions.
 */
#include "array/array.h"
#include "group/group.h"
#include <zarrc/node.h>

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
        ZR_TRY(zr_array_open_first(out, store, child.path, child.first, opts, err));
    }
out:
    zr_child_release(&child, zr_store_context(store)->alloc);
    return st;
}

/* ---- nodes of any kind ---------------------------------------------------- */

/* The options of a handle of either kind. */
struct node_options {
    zarr_array_open_options array;
    zarr_group_open_options group;
    int32_t format;
};

static zarr_status node_options_read(struct node_options *o,
                                     const zarr_array_open_options *array,
                                     const zarr_group_open_options *group,
                                     zarr_error *err)
{
    ZR_CHECK(zr_array_options_read(&o->array, array, 0, err));
    ZR_CHECK(zr_group_options_read(&o->group, group, err));
    if (array && group && o->array.zarr_format != o->group.zarr_format)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "zarr_format is %" PRId32
                       " in the options of an array, and %" PRId32 " in those of a group",
                       o->array.zarr_format, o->group.zarr_format);
    o->format = array ? o->array.zarr_format : o->group.zarr_format;
    o->array.zarr_format = o->group.zarr_format = o->format;
    return ZARR_OK;
}

/* A document of an array is not as large as consolidated metadata may be. */
static zarr_status check_array_document(const struct zr_found *found,
                                        const zarr_context *ctx, zarr_error *err)
{
    const uint64_t most = ctx->limits.metadata_bytes;

    if (found->kind == ZARR_NODE_ARRAY && found->doc.bytes > most)
        return zr_fail_limit(err, "metadata_bytes", most, "the document has %zu bytes",
                             found->doc.bytes);
    return ZARR_OK;
}

/* first: as in struct zr_find. */
static zarr_status open_any_node(zarr_array **array, zarr_group **group,
                                 zarr_store *store, const char *path, int32_t first,
                                 const struct node_options *o, zarr_error *err)
{
    const zarr_context *ctx = zr_store_context(store);
    struct zr_find where = {.store = store,
                            .format = o->format,
                            .first = first,
                            .cancel = o->array.cancel ? o->array.cancel : o->group.cancel,
                            .v2 = ZR_V2_ARRAY | zr_group_v2_documents(&o->group)};
    struct zr_found found;
    char *normal = NULL;
    zarr_status st = ZARR_OK;

    zr_found_init(&found, ctx->alloc);
    ZR_TRY(zr_path_normal(&normal, ctx->alloc, path, &ctx->limits, err));
    where.path = normal;
    st = zr_node_find(&found, &where, err);
    if (st == ZARR_ERR_NOT_FOUND)
        zr_fail_no_node(store, normal, "array or group", err);
    if (st == ZARR_OK)
        st = check_array_document(&found, ctx, err);
    if (st != ZARR_OK) {
        zr_path_prefix(err, st, normal);
    } else if (found.kind == ZARR_NODE_ARRAY) {
        st = zr_array_open_found(array, store, normal, &found, &o->array, err);
        normal = NULL; /* moved */
    } else {
        st = zr_group_open_found(group, store, normal, &found, &o->group, err);
    }
out:
    zr_free(ctx->alloc, normal);
    zr_found_deinit(&found);
    return st;
}

zarr_status zarr_node_open(zarr_array **array, zarr_group **group, zarr_store *store,
                           const char *path, const zarr_array_open_options *array_opts,
                           const zarr_group_open_options *group_opts, zarr_error *err)
{
    struct node_options o;

    *array = NULL;
    *group = NULL;
    ZR_NEED(store, err);
    ZR_CHECK(node_options_read(&o, array_opts, group_opts, err));
    return open_any_node(array, group, store, path, 0, &o, err);
}

zarr_status zarr_group_open_node(zarr_array **array, zarr_group **group,
                                 zarr_group *parent, const char *path,
                                 const zarr_array_open_options *array_opts,
                                 const zarr_group_open_options *group_opts,
                                 zarr_error *err)
{
    struct zr_child_path child = {0};
    struct node_options o;
    zarr_status st = ZARR_OK;

    *array = NULL;
    *group = NULL;
    ZR_NEED(parent, err);
    zarr_store *store = zarr_group_store(parent);

    ZR_TRY(node_options_read(&o, array_opts, group_opts, err));
    if (group_opts)
        o.array.consolidated = o.group.consolidated;
    else
        o.group.consolidated = o.array.consolidated;
    ZR_TRY(zr_child_find(&child, parent, path, o.group.consolidated, err));
    if (!child.entry)
        ZR_TRY(open_any_node(array, group, store, child.path, child.first, &o, err));
    else if (child.entry->kind == ZARR_NODE_GROUP)
        ZR_TRY(zarr_group_open_group(group, parent, path, &o.group, err));
    else
        ZR_TRY(zarr_group_open_array(array, parent, path, &o.array, err));
out:
    zr_child_release(&child, zr_store_context(store)->alloc);
    return st;
}
