/*
 * group/create.c - makes groups: first the parents, then the group's document together
 * with its attributes (v2).
 * Thread class: plain functions.
 */
#include "group/group_int.h"

struct group_making {
    struct zr_making making;
    zarr_store *store;
    const char *path;
    int32_t format, asked; /* asked: by the caller; 0: either */
    uint32_t flags;
    const struct zr_json *attrs;
};

static zarr_status write_group(struct group_making *m, bool *overtaken, zarr_error *err)
{
    struct zr_new_node node = {
        .path = m->path, .kind = ZARR_NODE_GROUP, .format = m->format, .attrs = m->attrs};
    bool is_node = false;
    struct zr_str text;
    zarr_status st = ZARR_OK;

    *overtaken = false;
    zr_str_init(&text, zr_store_context(m->store)->alloc);
    ZR_TRY(zr_group_text(&text, m->format, m->attrs, zr_store_context(m->store)->alloc,
                         err));
    if (m->making.overwrite) {
        ZR_TRY(zr_node_may_go(m->store, m->path, &is_node, m->making.cancel, err));
        ZR_TRY(zr_node_erase_old(m->store, m->path, is_node,
                                 (m->flags & ZARR_GROUP_CONSOLIDATED) != 0,
                                 m->making.cancel, err));
    } else {
        ZR_TRY(zr_job_must_not_be(m->store, m->path, m->making.cancel, err));
    }
    node.text = &text;
    st = zr_making_write(&m->making, &node, err);
    *overtaken = st == ZARR_ERR_EXISTS;
out:
    zr_str_deinit(&text);
    return st;
}

static zarr_status read_group_spec(zarr_group_spec *out, const zarr_group_spec *spec,
                                   zarr_error *err)
{
    const uint32_t known = ZARR_GROUP_OVERWRITE | ZARR_GROUP_NO_PARENTS |
                           ZARR_GROUP_IF_MISSING | ZARR_GROUP_CLAIM |
                           ZARR_GROUP_CONSOLIDATED;

    ZR_CHECK(zr_struct_read(out, sizeof *out, 2 * sizeof(uint32_t), spec, ZR_TAIL_REFUSE,
                            "zarr_group_spec", err));
    ZR_CHECK(zr_flags_check(out->flags, known, "group", err));
    return zr_format_check(out->zarr_format, err);
}

/* Opens the group that made the creation fail. Its format counts only if the caller asked
 * for one. */
static zarr_status group_open_existing(zarr_group **out, const struct group_making *m,
                                       const zarr_group_open_options *o, zarr_error *err)
{
    zarr_error no_group = {0};
    zarr_status st = zarr_group_open(out, m->store, m->path, o, &no_group);

    if (st == ZARR_ERR_NOT_FOUND)
        return zr_fail(err, ZARR_ERR_EXISTS, "/%s: there is an array already", m->path);
    if (st == ZARR_OK && m->asked && zarr_group_zarr_format(*out) != m->asked)
        return zr_fail(err, ZARR_ERR_EXISTS,
                       "/%s: there is a group already, of format %" PRId32, m->path,
                       zarr_group_zarr_format(*out));
    return zr_pass(err, st, &no_group);
}

/* *overtaken: in a store without locks, another call made or deleted the group
 * meanwhile. */
static zarr_status group_write_and_open(zarr_group **out, struct group_making *m,
                                        const zarr_group_open_options *o, bool *overtaken,
                                        zarr_error *err)
{
    zarr_status st = write_group(m, overtaken, err);

    if (st != ZARR_OK)
        return zr_path_prefix(err, st, m->path);
    st = zarr_group_open(out, m->store, m->path, o, err);
    *overtaken = st == ZARR_ERR_NOT_FOUND;
    return st;
}

static zarr_status group_create_and_open(zarr_group **out, struct group_making *m,
                                         const zarr_group_open_options *o,
                                         zarr_error *err)
{
    const zarr_limits *limits = &zr_store_context(m->store)->limits;
    struct zr_backoff wait;
    bool overtaken = true;
    zarr_error e = {0};
    zarr_status st = zr_path_check_new(m->path, m->format, limits, &e);

    if (st == ZARR_OK)
        st = zr_making_begin(&m->making, &e);
    if (st != ZARR_OK)
        zr_path_prefix(&e, st, m->path);
    zr_backoff_init(&wait, m->store, m->path, m->making.cancel);
    while (st == ZARR_OK && overtaken) {
        st = group_write_and_open(out, m, o, &overtaken, &e);
        overtaken = overtaken && m->making.overwrite;
        if (overtaken) /* by a call that replaces the same node without locks */
            st = zr_backoff_wait(&wait, st, &e);
    }
    if (st == ZARR_ERR_EXISTS && m->flags & ZARR_GROUP_IF_MISSING)
        st = group_open_existing(out, m, o, err);
    else
        zr_pass(err, st, &e);
    if (st != ZARR_OK) {
        zarr_group_free(*out);
        *out = NULL;
    } else if (m->making.is_filled && m->making.has_begun) {
        zr_handle_claim(&(*out)->h, &m->making.claim);
    }
    return st;
}

zarr_status zarr_group_create(zarr_group **out, zarr_store *store, const char *path,
                              const zarr_group_spec *spec,
                              const zarr_group_open_options *opts, zarr_error *err)
{
    *out = NULL;
    ZR_NEED(store, err);
    const zarr_context *ctx = zr_store_context(store);
    struct group_making m = {.store = store};
    zarr_group_open_options o;
    zarr_group_spec s;
    struct zr_json_doc attrs;
    char *normal = NULL;
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&attrs, ctx->alloc);
    ZR_TRY(read_group_spec(&s, spec, err));
    ZR_TRY(zr_group_options_read(&o, opts, err));
    o.zarr_format = 0;
    m.flags = s.flags;
    m.asked = s.zarr_format;
    m.format = s.zarr_format ? s.zarr_format : 3;
    ZR_TRY(zr_attributes_parse(&attrs, s.attributes, &ctx->limits, err));
    ZR_TRY(zr_path_normal(&normal, ctx->alloc, path, &ctx->limits, err));
    m.path = normal;
    m.attrs = attrs.root;
    m.making = (struct zr_making){.store = store,
                                  .path = normal,
                                  .format = m.format,
                                  .overwrite = s.flags & ZARR_GROUP_OVERWRITE,
                                  .has_parents = !(s.flags & ZARR_GROUP_NO_PARENTS),
                                  .is_filled = s.flags & ZARR_GROUP_CLAIM,
                                  .cancel = s.cancel};
    ZR_TRY(group_create_and_open(out, &m, &o, err));
out:
    zr_making_end(&m.making);
    zr_json_doc_deinit(&attrs);
    zr_free(ctx->alloc, normal);
    return st;
}

zarr_status zarr_group_release_claim(zarr_group *group, int is_complete,
                                     const zarr_cancel *cancel, zarr_error *err)
{
    ZR_NEED(group, err);
    return zr_handle_release_claim(&group->h, is_complete, cancel, err);
}
