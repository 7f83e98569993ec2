/*
 * group/open.c - group handles: opens groups and their children, checks options. If a
 * group has consolidated metadata, everything below it is looked up in that one document,
 * also by groups opened through it. The opener chooses: AUTO uses consolidated metadata
 * if it exists and is valid, MUST requires it, NEVER asks the store each time.
 * Thread class: frozen, except for the state pointer (handle.c).
 */
#include "group/group_int.h"

#include <string.h>

/* ---- opening ------------------------------------------------------------ */

void zarr_group_free(zarr_group *group)
{
    zarr_allocator copy;
    const zarr_allocator *alloc;

    if (!group)
        return;
    copy = group->h.ctx->allocator_copy;
    alloc = group->h.ctx->alloc ? &copy : NULL;
    zr_group_state_free(group->state);
    zr_free(alloc, group->consolidated_key);
    zr_handle_deinit(&group->h);
    zr_free(alloc, group);
}

static zarr_status group_new(zarr_group **out, zarr_store *store, const char *path,
                             const zarr_group_open_options *o, zarr_error *err)
{
    const zarr_context *ctx = zr_store_context(store);
    zarr_group *g = NULL;
    char *normal = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_path_normal(&normal, ctx->alloc, path, &ctx->limits, err));
    g = zr_calloc(ctx->alloc, 1, sizeof *g);
    if (!g) {
        zr_free(ctx->alloc, normal);
        ZR_FAIL_MEMORY(err, sizeof *g);
    }
    zr_handle_init(&g->h, store, normal);
    g->consolidated = o->consolidated;
    if (o->consolidated_key) {
        g->consolidated_key = zr_strdup(ctx->alloc, o->consolidated_key);
        if (!g->consolidated_key)
            ZR_FAIL_MEMORY(err, strlen(o->consolidated_key));
    }
    *out = g; /* moved */
    g = NULL;
out:
    zarr_group_free(g);
    return st;
}

zarr_status zr_group_options_read(zarr_group_open_options *o,
                                  const zarr_group_open_options *opts, zarr_error *err)
{
    ZR_CHECK(zr_struct_read(o, sizeof *o, 2 * sizeof(uint32_t), opts, ZR_TAIL_REFUSE,
                            "zarr_group_open_options", err));
    ZR_CHECK(zr_flags_check(o->flags, 0, "group options", err));
    ZR_CHECK(zr_format_check(o->zarr_format, err));
    if (o->consolidated > ZARR_CONSOLIDATED_NEVER)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "%" PRIu32 " is not one of ZARR_CONSOLIDATED_*", o->consolidated);
    return ZARR_OK;
}

static zarr_status load_found_group(zarr_group *g, struct zr_found *found, int32_t format,
                                    zarr_error *err)
{
    const struct zr_find where = {
        .store = g->h.store, .path = g->h.path, .cancel = found->cancel};
    const struct zr_meta_env env = zr_meta_env_make(g->h.ctx, true);
    struct zr_parsed *attrs = NULL;
    zarr_status st = ZARR_OK;

    if (found->kind != ZARR_NODE_GROUP)
        ZR_FAIL(err, ZARR_ERR_NOT_FOUND, "there is an array, not a group");
    ZR_TRY(zr_group_state_new(&g->state, &env, found->format, found->parsed,
                              found->parsed->json.root, err));
    if (found->format == 2) {
        ZR_TRY(zr_attrs_read(&attrs, &where, &found->ahead, err));
        zr_group_state_attrs(g->state, attrs, attrs ? attrs->json.root : NULL);
    }
    ZR_TRY(zr_group_find_consolidated(g->state, g, found, err));
    if (found->format == 3 && format == 0)
        zr_warn_hidden(g->h.store, g->h.path, ZARR_NODE_GROUP);
out:
    zr_parsed_free(attrs);
    return st;
}

uint32_t zr_group_v2_documents(const zarr_group_open_options *o)
{
    const bool consolidated =
        o->consolidated != ZARR_CONSOLIDATED_NEVER && !o->consolidated_key;

    return ZR_V2_GROUP | ZR_V2_ATTRS | (consolidated ? ZR_V2_CONSOLIDATED : 0);
}

static zarr_status load_group(zarr_group *g, const struct zr_find *how, zarr_error *err)
{
    struct zr_find where = *how;
    struct zr_found found;
    zarr_status st = ZARR_OK;

    where.path = g->h.path;
    zr_found_init(&found, g->h.ctx->alloc);
    st = zr_node_find(&found, &where, err);
    if (st == ZARR_ERR_NOT_FOUND)
        zr_fail_no_node(g->h.store, g->h.path, "group", err);
    if (st == ZARR_OK)
        st = load_found_group(g, &found, where.format, err);
    zr_found_deinit(&found);
    return st;
}

/* Ends an open call, whose status so far is st. g is moved. */
static zarr_status end_group_open(zarr_group **out, zarr_group *g, zarr_status st,
                                  zarr_error *err)
{
    if (st == ZARR_OK) {
        *out = g;
        return st;
    }
    zr_path_prefix(err, st, g->h.path);
    zarr_group_free(g);
    return st;
}

/* first: as in struct zr_find. */
static zarr_status open_group_first(zarr_group **out, zarr_store *store, const char *path,
                                    int32_t first, const zarr_group_open_options *opts,
                                    zarr_error *err)
{
    struct zr_find how = {.store = store, .first = first};
    zarr_group_open_options o;
    zarr_group *g = NULL;

    ZR_CHECK(zr_group_options_read(&o, opts, err));
    ZR_CHECK(group_new(&g, store, path, &o, err));
    how.format = o.zarr_format;
    how.cancel = o.cancel;
    how.v2 = zr_group_v2_documents(&o);
    return end_group_open(out, g, load_group(g, &how, err), err);
    return ZARR_OK;
}

zarr_status zarr_group_open(zarr_group **out, zarr_store *store, const char *path,
                            const zarr_group_open_options *opts, zarr_error *err)
{
    *out = NULL;
    ZR_NEED(store, err);
    return open_group_first(out, store, path, 0, opts, err);
}

zarr_status zr_group_open_found(zarr_group **out, zarr_store *store, const char *path,
                                struct zr_found *found, const zarr_group_open_options *o,
                                zarr_error *err)
{
    zarr_group *g = NULL;

    ZR_CHECK(group_new(&g, store, path, o, err));
    return end_group_open(out, g, load_found_group(g, found, o->zarr_format, err), err);
    return ZARR_OK;
}

/* Opens a group from its parent's consolidated metadata, without a request. */
static zarr_status open_group_entry(zarr_group **out, const zarr_group *parent,
                                    const struct zr_child_path *child,
                                    const zarr_group_open_options *o, zarr_error *err)
{
    const struct zr_entry *e = child->entry;
    const struct zr_meta_env env = zr_meta_env_make(parent->h.ctx, true);
    struct zr_consolidated *cons = child->cons;
    zarr_group *g = NULL;
    char *prefix = NULL;
    zarr_status st = ZARR_OK;

    if (e->kind != ZARR_NODE_GROUP)
        ZR_FAIL(err, ZARR_ERR_NOT_FOUND, "/%s: there is an %s, not a group", child->path,
                zr_kind_text(e->kind));
    ZR_TRY(group_new(&g, parent->h.store, child->path, o, err));
    ZR_TRY(zr_group_state_new(&g->state, &env, e->format, cons->parsed, e->doc, err));
    if (e->format == 2)
        zr_group_state_attrs(g->state, cons->parsed, e->attrs);
    prefix = zr_strdup(parent->h.ctx->alloc, e->path);
    if (!prefix)
        ZR_FAIL_MEMORY(err, strlen(e->path));
    zr_free(parent->h.ctx->alloc, g->state->prefix);
    g->state->prefix = prefix;
    g->state->cons = zr_consolidated_ref(cons);
    *out = g; /* moved */
    g = NULL;
out:
    zarr_group_free(g);
    return st;
}

const char *zr_group_consolidated_key(const zarr_group *group)
{
    return group->consolidated_key;
}

/* ---- children ----------------------------------------------------------- */

void zr_child_release(struct zr_child_path *c, const zarr_allocator *alloc)
{
    zr_free(alloc, c->path);
    zr_consolidated_free(c->cons);
    *c = (struct zr_child_path){0};
}

zarr_status zr_child_find(struct zr_child_path *out, const zarr_group *group,
                          const char *path, uint32_t consolidated, zarr_error *err)
{
    const zarr_context *ctx = group->h.ctx;
    struct zr_group_state *s = zr_group_state_get(group);
    struct zr_str full, inner;
    zarr_status st = ZARR_OK;

    *out = (struct zr_child_path){0};
    zr_str_init(&full, ctx->alloc);
    zr_str_init(&inner, ctx->alloc);
    zr_str_puts(&full, group->h.path);
    ZR_TRY(zr_path_append(&full, path, &ctx->limits, err));
    if (s->cons && consolidated != ZARR_CONSOLIDATED_NEVER) {
        zr_str_puts(&inner, s->prefix);
        ZR_TRY(zr_path_append(&inner, path, &ctx->limits, err));
        out->cons = zr_consolidated_ref(s->cons);
        out->entry = zr_consolidated_find(s->cons, zr_str_text(&inner));
        if (!out->entry && inner.bytes > 0)
            ZR_FAIL(err, ZARR_ERR_NOT_FOUND,
                    "/%s: the consolidated metadata of its group has no such node",
                    zr_str_text(&full));
    } else if (consolidated == ZARR_CONSOLIDATED_MUST) {
        ZR_FAIL(err, ZARR_ERR_NOT_FOUND, "/%s: its group has no consolidated metadata",
                zr_str_text(&full));
    }
    ZR_TRY(zr_str_status(&full, err));
    out->first = s->format;
    out->path = full.bytes ? zr_str_take(&full) : zr_strdup(ctx->alloc, "");
    if (!out->path)
        ZR_FAIL_MEMORY(err, 1);
out:
    zr_str_deinit(&full);
    zr_str_deinit(&inner);
    zr_group_state_free(s);
    if (st != ZARR_OK)
        zr_child_release(out, ctx->alloc);
    return st;
}

zarr_status zarr_group_open_group(zarr_group **out, zarr_group *group, const char *path,
                                  const zarr_group_open_options *opts, zarr_error *err)
{
    struct zr_child_path child = {0};
    zarr_group_open_options o;
    zarr_status st = ZARR_OK;

    *out = NULL;
    ZR_NEED(group, err);
    ZR_TRY(zr_group_options_read(&o, opts, err));
    ZR_TRY(zr_child_find(&child, group, path, o.consolidated, err));
    if (child.entry)
        ZR_TRY(open_group_entry(out, group, &child, &o, err));
    else
        ZR_TRY(open_group_first(out, group->h.store, child.path, child.first, opts, err));
out:
    zr_child_release(&child, group->h.ctx->alloc);
    return st;
}
