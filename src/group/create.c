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
        /* nothing is deleted for a group that is then refused */
        if (!(m->flags & ZARR_GROUP_NO_PARENTS))
            ZR_TRY(zr_parents_check(m->store, m->path, err));
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

static zarr_status read_group_spec(zarr_group_spec *out, const zarr_group_spec *spec,
                                   zarr_error *err)
{
    const uint32_t known =
        ZARR_GROUP_OVERWRITE | ZARR_GROUP_NO_PARENTS | ZARR_GROUP_IF_MISSING;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_struct_read(out, sizeof *out, 2 * sizeof(uint32_t), spec, ZR_TAIL_REFUSE,
                          "zarr_group_spec", err));
    if (out->flags & ~known)
        ZR_TRY(zr_fail(err, ZARR_ERR_UNSUPPORTED, "group: unknown flags 0x%" PRIx32,
                       out->flags));
    ZR_TRY(zr_format_check(out->zarr_format, err));
out:
    return st;
}

/* Opens what is at the path now. Its format counts only if the caller asked for one. */
static zarr_status open_made(zarr_group **out, const struct group_making *m,
                             const zarr_group_open_options *opts, int32_t asked,
                             zarr_error *err)
{
    zarr_group_open_options o = *opts;
    zarr_error no_group = {0};
    zarr_status st;

    o.zarr_format = 0;
    st = zarr_group_open(out, m->store, m->path, &o, &no_group);
    if (!(m->flags & ZARR_GROUP_IF_MISSING))
        return zr_pass(err, st, &no_group);
    if (st == ZARR_ERR_NOT_FOUND)
        return zr_fail(err, ZARR_ERR_EXISTS, "/%s: there is an array already", m->path);
    if (st == ZARR_OK && asked && zarr_group_zarr_format(*out) != asked) {
        st = zr_fail(err, ZARR_ERR_EXISTS,
                     "/%s: there is a group already, of format %" PRId32, m->path,
                     zarr_group_zarr_format(*out));
        zarr_group_free(*out);
        *out = NULL;
        return st;
    }
    return zr_pass(err, st, &no_group);
}

zarr_status zarr_group_create(zarr_group **out, zarr_store *store, const char *path,
                              const zarr_group_spec *spec,
                              const zarr_group_open_options *opts, zarr_error *err)
{
    const zarr_context *ctx = zr_store_context(store);
    struct group_making m = {.store = store};
    zarr_group_open_options o;
    zarr_group_spec s;
    struct zr_json_doc attrs;
    char *normal = NULL;
    zarr_status st = ZARR_OK;

    *out = NULL;
    zr_json_doc_init(&attrs, ctx->alloc);
    ZR_TRY(read_group_spec(&s, spec, err));
    ZR_TRY(zr_group_options_read(&o, opts, err));
    m.flags = s.flags;
    m.format = s.zarr_format ? s.zarr_format : 3;
    ZR_TRY(zr_attributes_parse(&attrs, s.attributes, &ctx->limits, err));
    ZR_TRY(zr_path_normal(&normal, ctx->alloc, path, &ctx->limits, err));
    m.path = normal;
    m.attrs = attrs.root;
    st = create_group(&m, err);
    if (st != ZARR_OK) {
        zr_path_prefix(err, st, normal);
        goto out;
    }
    ZR_TRY(open_made(out, &m, &o, s.zarr_format, err));
out:
    zr_json_doc_deinit(&attrs);
    zr_free(ctx->alloc, normal);
    return st;
}
