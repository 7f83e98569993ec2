/*
 * tree/member.c - opening an array as a member of its group: through the group's
 * consolidated metadata without a request, else as any array.
 * Thread class: plain functions.
 */
#include "tree/tree.h"

/* Out of its group's consolidated metadata: no request. */
static zarr_status open_array_entry(zarr_array **out, const zarr_group *group,
                                    struct zr_child_path *child,
                                    const zarr_array_open_options *o, zarr_error *err)
{
    const struct zr_entry *e = child->entry;
    const struct zr_array_source src = {.format = e->format,
                                        .parsed = child->state->cons->parsed,
                                        .root = e->doc,
                                        .attrs = e->attrs};
    struct zr_array_state *state = NULL;
    zarr_array *a = NULL;
    char *path = child->path;
    zarr_status st = ZARR_OK;

    child->path = NULL; /* moved */
    ZR_TRY(zr_array_new(&a, group->h.store, path, o, err));
    if (e->kind != ZARR_NODE_ARRAY)
        st = zr_fail(err, ZARR_ERR_NOT_FOUND, "there is no array but a %s",
                     zr_kind_text(e->kind));
    if (st == ZARR_OK)
        st = zr_array_state_new(&state, group->h.ctx, &src, err);
    if (st == ZARR_OK)
        st = zr_array_adopt(a, state, err);
    if (st != ZARR_OK) {
        zr_path_prefix(err, st, a->h.path);
        goto out;
    }
    *out = a; /* moved */
    a = NULL;
out:
    zarr_array_free(a);
    return st;
}

zarr_status zarr_group_open_array(zarr_array **out, zarr_group *group, const char *path,
                                  const zarr_array_open_options *opts, zarr_error *err)
{
    struct zr_child_path child = {0};
    zarr_array_open_options o;
    zarr_status st = ZARR_OK;

    *out = NULL;
    ZR_TRY(zr_array_options_read(&o, opts, err));
    ZR_TRY(zr_child_find(&child, group, path, o.consolidated, err));
    if (child.entry && (o.zarr_format == 0 || o.zarr_format == child.entry->format))
        ZR_TRY(open_array_entry(out, group, &child, &o, err));
    else
        ZR_TRY(zarr_array_open(out, group->h.store, child.path, opts, err));
out:
    zr_child_release(&child, group->h.ctx->alloc);
    return st;
}
