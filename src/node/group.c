/*
 * node/group.c - group handles: open, look at, change attributes, open
 * children. A group that has consolidated metadata answers for everything
 * below it from that one document; so do the groups opened through it. Whether
 * that is used is the opener's choice: AUTO takes it where it is there and in
 * order, MUST insists, NEVER asks the store each time.
 * Thread class: frozen, but for the state pointer (handle.c).
 */
#include "node/node_int.h"

#include <string.h>

enum {
    GROUP_INDENT = 2
};

/* ---- states ----------------------------------------------------------------------- */

static struct zr_group_state *group_state_ref(struct zr_group_state *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void zr_group_state_free(struct zr_group_state *s)
{
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    zr_tree_free(s->tree);
    zr_tree_free(s->attrs_tree);
    zr_consolidated_free(s->cons);
    zr_free(s->alloc, s->prefix);
    zr_free(s->alloc, atomic_load(&s->document));
    zr_free(s->alloc, atomic_load(&s->attributes));
    zr_free(s->alloc, s);
}

struct zr_group_state *zr_group_state_get(const zarr_group *group)
{
    zarr_group *g =
        (zarr_group *)(uintptr_t)group; /* the lock is no part of what is frozen */
    struct zr_group_state *s;

    zr_mutex_lock(&g->h.mutex);
    s = group_state_ref(g->state);
    zr_mutex_unlock(&g->h.mutex);
    return s;
}

static void group_state_swap(zarr_group *group, struct zr_group_state *s)
{
    struct zr_group_state *old;

    zr_mutex_lock(&group->h.mutex);
    old = group->state;
    group->state = s;
    zr_mutex_unlock(&group->h.mutex);
    zr_group_state_free(old);
}

/* A group whose consolidated metadata is nonsense is still a group: judged without it. */
static zarr_status check_bare_group(struct zr_group_meta *out,
                                    const struct zr_meta_env *env,
                                    const struct zr_json *root, zarr_error *err)
{
    struct zr_json *bare = NULL;
    struct zr_json_doc doc;
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&doc, env->alloc);
    bare = zr_json_new(&doc, ZR_JSON_OBJECT);
    for (const struct zr_json *v = root->u.kids.first; v; v = v->next)
        if (!zr_streq(v->key, "consolidated_metadata"))
            zr_json_add(&doc, bare, v->key, v->key_bytes, zr_json_copy(&doc, v));
    if (!zr_json_ok(&doc))
        ZR_TRY(zr_fail_memory(err, doc.arena.used_bytes));
    ZR_TRY(zr_group_meta_parse(out, env, 3, bare, NULL, err));
    out->attributes = out->attributes ? zr_json_get(root, "attributes") : NULL;
    out->document = root;
out:
    zr_json_doc_deinit(&doc);
    return st;
}

static zarr_status check_group(struct zr_group_meta *out, const struct zr_meta_env *env,
                               int32_t format, const struct zr_json *root,
                               zarr_error *err)
{
    zarr_error e = {0};
    zarr_status st = zr_group_meta_parse(out, env, format, root, NULL, &e);

    if (st != ZARR_OK && format == 3 && zr_json_get(root, "consolidated_metadata"))
        return check_bare_group(out, env, root, err);
    if (st != ZARR_OK && err)
        *err = e;
    return st;
}

/* From a document; attrs_tree may be NULL. References what it keeps. */
static zarr_status group_state_new(struct zr_group_state **out,
                                   const struct zr_meta_env *env, int32_t format,
                                   struct zr_tree *tree, const struct zr_json *root,
                                   zarr_error *err)
{
    const zarr_allocator *alloc = tree->alloc;
    struct zr_group_state *s = NULL;
    struct zr_group_meta meta;
    zarr_status st = ZARR_OK;

    ZR_TRY(check_group(&meta, env, format, root, err));
    s = zr_calloc(alloc, 1, sizeof *s);
    if (!s)
        ZR_TRY(zr_fail_memory(err, sizeof *s));
    atomic_init(&s->refs, 1);
    s->alloc = alloc;
    s->format = format;
    s->tree = zr_tree_ref(tree);
    s->root = root;
    s->attrs = meta.attributes;
    s->prefix = zr_strdup(alloc, "");
    if (!s->prefix)
        ZR_TRY(zr_fail_memory(err, 1));
    *out = s; /* moved */
    s = NULL;
out:
    zr_group_state_free(s);
    return st;
}

static void group_state_attrs(struct zr_group_state *s, struct zr_tree *attrs_tree,
                              const struct zr_json *attrs)
{
    s->attrs_tree = zr_tree_ref(attrs_tree);
    s->attrs = attrs;
}

/* ---- consolidated metadata of an opened group ----------------------------------------
 */

static zarr_status consolidated_of_v3(struct zr_group_state *s, const zarr_limits *limits,
                                      zarr_error *err)
{
    const struct zr_json *map = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(
        zr_consolidated_map(&map, 3, zr_json_get(s->root, "consolidated_metadata"), err));
    if (map)
        ZR_TRY(zr_consolidated_parse(&s->cons, s->tree, map, 3, limits, err));
out:
    return st;
}

static zarr_status consolidated_of_v2(struct zr_group_state *s, const zarr_group *g,
                                      zarr_error *err)
{
    const char *name = g->consolidated_key ? g->consolidated_key : ZR_DOC_CONSOLIDATED;
    const zarr_limits *limits = &g->h.ctx->limits;
    struct zr_tree *tree = NULL;
    struct zr_doc_source src;
    struct zr_str key;
    const struct zr_json *map = NULL;
    struct zr_doc doc;
    zarr_status st = ZARR_OK;

    zr_doc_init(&doc, s->alloc);
    zr_str_init(&key, s->alloc);
    zr_path_key(&key, g->h.path, name);
    ZR_TRY(zr_str_status(&key, err));
    src = zr_doc_source(g->h.store, zr_str_text(&key));
    src.limit = limits->consolidated_bytes;
    src.knob = "consolidated_bytes";
    st = zr_doc_get(&doc, &src, err);
    if (st == ZARR_ERR_NOT_FOUND) {
        st = ZARR_OK;
        goto out;
    }
    if (st != ZARR_OK)
        goto out;
    ZR_TRY(zr_tree_new(&tree, s->alloc, err));
    st = zr_doc_parse(&tree->json, &doc, limits, err);
    if (st == ZARR_OK)
        st = zr_consolidated_map(&map, 2, tree->json.root, err);
    if (st == ZARR_OK && map)
        st = zr_consolidated_parse(&s->cons, tree, map, 2, limits, err);
    if (st != ZARR_OK)
        zr_prefix(err, st, "%s", name);
out:
    zr_tree_free(tree);
    zr_doc_deinit(&doc);
    zr_str_deinit(&key);
    return st;
}

static zarr_status find_consolidated(struct zr_group_state *s, const zarr_group *g,
                                     zarr_error *err)
{
    const bool must = g->consolidated == ZARR_CONSOLIDATED_MUST;
    zarr_error e = {0};
    zarr_status st = ZARR_OK;

    if (g->consolidated == ZARR_CONSOLIDATED_NEVER)
        return ZARR_OK;
    st = s->format == 3 ? consolidated_of_v3(s, &g->h.ctx->limits, &e)
                        : consolidated_of_v2(s, g, &e);
    if (st == ZARR_ERR_INVALID) /* it was stored, not asked for */
        st = e.code = ZARR_ERR_CORRUPT;
    if (!must &&
        (st == ZARR_ERR_CORRUPT || st == ZARR_ERR_UNSUPPORTED || st == ZARR_ERR_LIMIT)) {
        zr_log(&g->h.ctx->log, ZARR_LOG_WARN, "/%s: not used: %s", g->h.path, e.message);
        st = ZARR_OK;
    }
    if (st != ZARR_OK && err)
        *err = e;
    if (st == ZARR_OK && must && !s->cons)
        st = zr_fail(err, ZARR_ERR_NOT_FOUND, "there is no consolidated metadata");
    return st;
}

/* ---- opening
 * ---------------------------------------------------------------------------- */

static void group_destroy(zarr_group *g)
{
    const zarr_allocator copy = g->h.ctx->allocator_copy;
    const zarr_allocator *alloc = g->h.ctx->alloc ? &copy : NULL;

    zr_group_state_free(g->state);
    zr_free(alloc, g->consolidated_key);
    zr_handle_deinit(&g->h);
    zr_free(alloc, g);
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
        ZR_TRY(zr_fail_memory(err, sizeof *g));
    }
    zr_handle_init(&g->h, store, normal);
    g->consolidated = o->consolidated ? o->consolidated : ZARR_CONSOLIDATED_AUTO;
    if (o->consolidated_key) {
        g->consolidated_key = zr_strdup(ctx->alloc, o->consolidated_key);
        if (!g->consolidated_key)
            ZR_TRY(zr_fail_memory(err, strlen(o->consolidated_key)));
    }
    *out = g; /* moved */
    g = NULL;
out:
    if (g)
        group_destroy(g);
    return st;
}

static zarr_status read_group_options(zarr_group_open_options *o,
                                      const zarr_group_open_options *opts,
                                      zarr_error *err)
{
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_struct_read(o, sizeof *o, 2 * sizeof(uint32_t), opts, ZR_TAIL_REFUSE,
                          "zarr_group_open_options", err));
    if (o->flags)
        ZR_TRY(zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "group options: unknown flags 0x%" PRIx32, o->flags));
    if (o->zarr_format != 0 && o->zarr_format != 2 && o->zarr_format != 3)
        ZR_TRY(zr_fail(err, ZARR_ERR_INVALID,
                       "zarr_format %" PRId32 " is neither 2 nor 3", o->zarr_format));
    if (o->consolidated > ZARR_CONSOLIDATED_NEVER)
        ZR_TRY(zr_fail(err, ZARR_ERR_INVALID,
                       "%" PRIu32 " is none of ZARR_CONSOLIDATED_*", o->consolidated));
out:
    return st;
}

static zarr_status load_group(zarr_group *g, int32_t format, zarr_error *err)
{
    struct zr_find where = {.store = g->h.store,
                            .path = g->h.path,
                            .format = format,
                            .limit = g->h.ctx->limits.consolidated_bytes};
    const struct zr_meta_env env = zr_meta_env_of(g->h.ctx, true);
    struct zr_tree *attrs = NULL;
    struct zr_found found;
    zarr_status st = ZARR_OK;

    zr_found_init(&found, g->h.ctx->alloc);
    st = zr_node_find(&found, &where, err);
    if (st == ZARR_ERR_NOT_FOUND)
        zr_fail(err, st, "there is no group");
    if (st != ZARR_OK)
        goto out;
    if (found.kind != ZARR_NODE_GROUP)
        ZR_TRY(zr_fail(err, ZARR_ERR_NOT_FOUND, "there is no group but an array"));
    ZR_TRY(group_state_new(&g->state, &env, found.format, found.tree,
                           found.tree->json.root, err));
    if (found.format == 2) {
        ZR_TRY(zr_attrs_read(&attrs, g->h.store, g->h.path, err));
        group_state_attrs(g->state, attrs, attrs ? attrs->json.root : NULL);
    }
    ZR_TRY(find_consolidated(g->state, g, err));
    if (found.format == 3 && format == 0)
        zr_warn_hidden(g->h.store, g->h.path);
out:
    zr_tree_free(attrs);
    zr_found_deinit(&found);
    return st;
}

zarr_status zarr_group_open(zarr_group **out, zarr_store *store, const char *path,
                            const zarr_group_open_options *opts, zarr_error *err)
{
    zarr_group_open_options o;
    zarr_group *g = NULL;
    zarr_status st = ZARR_OK;

    *out = NULL;
    ZR_TRY(read_group_options(&o, opts, err));
    ZR_TRY(group_new(&g, store, path, &o, err));
    st = load_group(g, o.zarr_format, err);
    if (st != ZARR_OK) {
        zr_path_prefix(err, st, g->h.path);
        goto out;
    }
    *out = g; /* moved */
    g = NULL;
out:
    zarr_group_free(g);
    return st;
}

/* A group out of its parent's consolidated metadata: no request. */
static zarr_status open_group_entry(zarr_group **out, const zarr_group *parent,
                                    const struct zr_child_path *child,
                                    const zarr_group_open_options *o, zarr_error *err)
{
    const struct zr_entry *e = child->entry;
    const struct zr_meta_env env = zr_meta_env_of(parent->h.ctx, true);
    struct zr_consolidated *cons = child->state->cons;
    zarr_group *g = NULL;
    char *prefix = NULL;
    zarr_status st = ZARR_OK;

    if (e->kind != ZARR_NODE_GROUP)
        ZR_TRY(zr_fail(err, ZARR_ERR_NOT_FOUND, "/%s: there is no group but an %s",
                       child->path, zr_kind_text(e->kind)));
    ZR_TRY(group_new(&g, parent->h.store, child->path, o, err));
    ZR_TRY(group_state_new(&g->state, &env, e->format, cons->tree, e->doc, err));
    if (e->format == 2)
        group_state_attrs(g->state, cons->tree, e->attrs);
    prefix = zr_strdup(parent->h.ctx->alloc, e->path);
    if (!prefix)
        ZR_TRY(zr_fail_memory(err, strlen(e->path)));
    zr_free(parent->h.ctx->alloc, g->state->prefix);
    g->state->prefix = prefix;
    g->state->cons = zr_consolidated_ref(cons);
    *out = g; /* moved */
    g = NULL;
out:
    zarr_group_free(g);
    return st;
}

zarr_group *zarr_group_ref(zarr_group *group)
{
    atomic_fetch_add_explicit(&group->h.refs, 1, memory_order_relaxed);
    return group;
}

void zarr_group_free(zarr_group *group)
{
    if (group && atomic_fetch_sub_explicit(&group->h.refs, 1, memory_order_acq_rel) == 1)
        group_destroy(group);
}

/* ---- children
 * -------------------------------------------------------------------------------- */

void zr_child_release(struct zr_child_path *c, const zarr_allocator *alloc)
{
    zr_free(alloc, c->path);
    zr_group_state_free(c->state);
    *c = (struct zr_child_path){0};
}

zarr_status zr_child_find(struct zr_child_path *out, const zarr_group *group,
                          const char *path, uint32_t consolidated, zarr_error *err)
{
    const zarr_context *ctx = group->h.ctx;
    struct zr_str full, inner;
    zarr_status st = ZARR_OK;

    *out = (struct zr_child_path){.state = zr_group_state_get(group)};
    zr_str_init(&full, ctx->alloc);
    zr_str_init(&inner, ctx->alloc);
    zr_str_puts(&full, group->h.path);
    ZR_TRY(zr_path_append(&full, path, &ctx->limits, err));
    if (out->state->cons && consolidated != ZARR_CONSOLIDATED_NEVER) {
        zr_str_puts(&inner, out->state->prefix);
        ZR_TRY(zr_path_append(&inner, path, &ctx->limits, err));
        out->entry = zr_consolidated_find(out->state->cons, zr_str_text(&inner));
        if (!out->entry && inner.bytes > 0)
            ZR_TRY(zr_fail(err, ZARR_ERR_NOT_FOUND,
                           "/%s: the consolidated metadata of its group has no such node",
                           zr_str_text(&full)));
    } else if (consolidated == ZARR_CONSOLIDATED_MUST) {
        ZR_TRY(zr_fail(err, ZARR_ERR_NOT_FOUND,
                       "/%s: its group has no consolidated metadata",
                       zr_str_text(&full)));
    }
    ZR_TRY(zr_str_status(&full, err));
    out->path = full.bytes ? zr_str_take(&full) : zr_strdup(ctx->alloc, "");
    if (!out->path)
        ZR_TRY(zr_fail_memory(err, 1));
out:
    zr_str_deinit(&full);
    zr_str_deinit(&inner);
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
    ZR_TRY(read_group_options(&o, opts, err));
    ZR_TRY(zr_child_find(&child, group, path, o.consolidated, err));
    if (child.entry)
        ZR_TRY(open_group_entry(out, group, &child, &o, err));
    else
        ZR_TRY(zarr_group_open(out, group->h.store, child.path, opts, err));
out:
    zr_child_release(&child, group->h.ctx->alloc);
    return st;
}

/* ---- what it is
 * ---------------------------------------------------------------------------------- */

/* Borrowed from the handle: good until the handle is changed or freed. */
static struct zr_group_state *peek_state(const zarr_group *group)
{
    zarr_group *g = (zarr_group *)(uintptr_t)group;
    struct zr_group_state *s;

    zr_mutex_lock(&g->h.mutex);
    s = g->state;
    zr_mutex_unlock(&g->h.mutex);
    return s;
}

int32_t zarr_group_zarr_format(const zarr_group *group)
{
    return peek_state(group)->format;
}

const char *zarr_group_path(const zarr_group *group)
{
    return group->h.path;
}

int zarr_group_is_consolidated(const zarr_group *group)
{
    return peek_state(group)->cons != NULL;
}

const char *zarr_group_metadata(const zarr_group *group)
{
    struct zr_group_state *s = peek_state(group);

    return zr_lazy_json(&s->document, s->root, GROUP_INDENT, s->alloc);
}

const char *zarr_group_attributes(const zarr_group *group)
{
    struct zr_group_state *s = peek_state(group);

    return zr_lazy_json(&s->attributes, s->attrs, GROUP_INDENT, s->alloc);
}

zarr_store *zarr_group_store(const zarr_group *group)
{
    return group->h.store;
}

/* ---- attributes
 * ----------------------------------------------------------------------------------------
 */

struct group_changing {
    zarr_group *group;
    struct zr_group_state *before, *after;
};

static zarr_status state_with_attributes(struct group_changing *c, struct zr_tree *tree,
                                         zarr_error *err)
{
    const struct zr_meta_env env = zr_meta_env_of(c->group->h.ctx, true);
    struct zr_group_state *b = c->before, *a = NULL;
    zarr_status st = ZARR_OK;

    if (b->format == 3) {
        ZR_TRY(group_state_new(&a, &env, 3, tree, tree->json.root, err));
    } else {
        ZR_TRY(group_state_new(&a, &env, 2, b->tree, b->root, err));
        group_state_attrs(a, tree, tree->json.root);
    }
    if (b->cons && (b->format == 2 || *b->prefix)) { /* it is not in this document */
        zr_free(a->alloc, a->prefix);
        a->prefix = zr_strdup(a->alloc, b->prefix);
        if (!a->prefix)
            ZR_TRY(zr_fail_memory(err, strlen(b->prefix)));
        a->cons = zr_consolidated_ref(b->cons);
    } else if (b->cons) {
        ZR_TRY(find_consolidated(a, c->group, err));
    }
    zr_group_state_free(c->after);
    c->after = a; /* moved */
    a = NULL;
out:
    zr_group_state_free(a);
    return st;
}

static zarr_status check_group_change(void *arg, struct zr_tree *tree, zarr_error *err)
{
    struct group_changing *c = arg;

    if (c->before->format == 3 &&
        !zr_json_is_text(zr_json_get(tree->json.root, "node_type"), "group"))
        return zr_fail(err, ZARR_ERR_CONFLICT, "it is no group any more");
    return state_with_attributes(c, tree, err);
}

static zarr_status change_group(zarr_group *group, struct zr_attrs_change *change,
                                zarr_error *err)
{
    struct group_changing c = {.group = group, .before = zr_group_state_get(group)};
    struct zr_tree *tree = NULL;
    zarr_status st = ZARR_OK;

    change->format = c.before->format;
    change->limit = change->format == 3 ? group->h.ctx->limits.consolidated_bytes : 0;
    change->check = check_group_change;
    change->arg = &c;
    st = zr_attrs_change(&tree, group->h.store, group->h.path, change, err);
    if (st == ZARR_OK) {
        group_state_swap(group, c.after);
        c.after = NULL;
    } else {
        zr_path_prefix(err, st, group->h.path);
    }
    zr_tree_free(tree);
    zr_group_state_free(c.after);
    zr_group_state_free(c.before);
    return st;
}

zarr_status zarr_group_attribute_get(const zarr_group *group, const char *name,
                                     char *text, size_t cap, size_t *text_bytes,
                                     zarr_error *err)
{
    const struct zr_text_out to = {text, cap, text_bytes};
    struct zr_group_state *s = zr_group_state_get(group);
    const zarr_status st = zr_attrs_get(s->attrs, name, &to, s->alloc, err);

    zr_group_state_free(s);
    return st == ZARR_OK ? st : zr_path_prefix(err, st, group->h.path);
}

zarr_status zarr_group_attribute_set(zarr_group *group, const char *name,
                                     const char *json, zarr_error *err)
{
    struct zr_attrs_change c = {.verb = ZR_ATTRS_SET, .name = name, .json = json};

    return change_group(group, &c, err);
}

zarr_status zarr_group_attribute_delete(zarr_group *group, const char *name,
                                        zarr_error *err)
{
    struct zr_attrs_change c = {.verb = ZR_ATTRS_DELETE, .name = name};

    return change_group(group, &c, err);
}

zarr_status zarr_group_attributes_merge(zarr_group *group, const char *json_object,
                                        int replace_all, zarr_error *err)
{
    struct zr_attrs_change c = {.verb = replace_all ? ZR_ATTRS_REPLACE : ZR_ATTRS_MERGE,
                                .json = json_object};

    return change_group(group, &c, err);
}
