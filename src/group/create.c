/*
 * group/create.c - makes groups: first the parents, then the group's document together
 * with its attributes (v2).
 * Thread class: plain functions.
 */
#include "group/group_int.h"

struct group_making {
    zarr_store *store;
    const char *path;
    int32_t format;
    uint32_t flags;
    const struct zr_json *attrs;
};

static zarr_status write_group(const struct group_making *m, zarr_error *err)
{
    const zarr_allocator *alloc = zr_store_context(m->store)->alloc;
    struct zr_new_node node = {
        .path = m->path, .kind = ZARR_NODE_GROUP, .format = m->format, .attrs = m->attrs};
    bool is_node = false;
    struct zr_str text;
    zarr_status st = ZARR_OK;

    zr_str_init(&text, alloc);
    ZR_TRY(zr_group_text(&text, m->format, m->attrs, alloc, err));
    if (m->flags & ZARR_GROUP_OVERWRITE) {
        ZR_TRY(zr_node_may_go(m->store, m->path, &is_node, err));
        ZR_TRY(zr_node_erase_old(m->store, m->path, is_node, err));
    } else {
        ZR_TRY(zr_job_must_not_be(m->store, m->path, err));
    }
    if (!(m->flags & ZARR_GROUP_NO_PARENTS))
        ZR_TRY(zr_parents_create(m->store, m->path, m->format, err));
    node.text = &text;
    ZR_TRY(zr_node_write(m->store, &node, err));
out:
    zr_str_deinit(&text);
    return st;
}

static zarr_status create_group(const struct group_making *m, zarr_error *err)
{
    const zarr_context *ctx = zr_store_context(m->store);
    zarr_error e = {0};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_path_check_new(m->path, m->format, &ctx->limits, err));
    if (!(m->flags & ZARR_GROUP_OVERWRITE))
        st = zr_node_must_be_new(m->store, m->path, &e);
    if (st == ZARR_OK)
        st = write_group(m, &e);
    if (st == ZARR_ERR_EXISTS && m->flags & ZARR_GROUP_IF_MISSING)
        st = ZARR_OK; /* the open below tells whether it is a group */
    zr_pass(err, st, &e);
out:
    return st;
}

zarr_status zarr_group_create(zarr_group **out, zarr_store *store, const char *path,
                              int32_t zarr_format, const char *attributes, uint32_t flags,
                              zarr_error *err)
{
    const uint32_t known =
        ZARR_GROUP_OVERWRITE | ZARR_GROUP_NO_PARENTS | ZARR_GROUP_IF_MISSING;
    const zarr_context *ctx = zr_store_context(store);
    struct group_making m = {.store = store, .flags = flags};
    struct zr_json_doc attrs;
    zarr_error no_group = {0};
    char *normal = NULL;
    zarr_status st = ZARR_OK;

    *out = NULL;
    zr_json_doc_init(&attrs, ctx->alloc);
    ZR_TRY(zr_format_check(zarr_format, err));
    m.format = zarr_format ? zarr_format : 3;
    if (flags & ~known)
        ZR_TRY(
            zr_fail(err, ZARR_ERR_UNSUPPORTED, "group: unknown flags 0x%" PRIx32, flags));
    ZR_TRY(zr_attributes_parse(&attrs, attributes, &ctx->limits, err));
    ZR_TRY(zr_path_normal(&normal, ctx->alloc, path, &ctx->limits, err));
    m.path = normal;
    m.attrs = attrs.root;
    st = create_group(&m, err);
    if (st != ZARR_OK) {
        zr_path_prefix(err, st, normal);
        goto out;
    }
    st = zarr_group_open(out, store, normal, NULL, &no_group);
    if (st == ZARR_ERR_NOT_FOUND && flags & ZARR_GROUP_IF_MISSING)
        st =
            zr_fail(&no_group, ZARR_ERR_EXISTS, "/%s: there is an array already", normal);
    zr_pass(err, st, &no_group);
out:
    zr_json_doc_deinit(&attrs);
    zr_free(ctx->alloc, normal);
    return st;
}
