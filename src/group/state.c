/*
 * group/state.c - a group as its documents describe it at one moment, with its
 * consolidated metadata if it has some and the opener wants it. A changed attribute makes
 * a new state.
 * Thread class: frozen, counted.
 */
#include "group/group_int.h"

static struct zr_group_state *group_state_ref(struct zr_group_state *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void zr_group_state_free(struct zr_group_state *s)
{
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    zr_parsed_free(s->parsed);
    zr_parsed_free(s->attrs_parsed);
    zr_consolidated_free(s->cons);
    zr_free(s->alloc, s->prefix);
    zr_free(s->alloc, s);
}

struct zr_group_state *zr_group_state_get(const zarr_group *group)
{
    zarr_group *g = (zarr_group *)(uintptr_t)group; /* only the lock is written */
    struct zr_group_state *s;

    zr_mutex_lock(&g->h.mutex);
    s = group_state_ref(g->state);
    zr_mutex_unlock(&g->h.mutex);
    return s;
}

void zr_group_state_swap(zarr_group *group, struct zr_group_state *s)
{
    struct zr_group_state *old;

    zr_mutex_lock(&group->h.mutex);
    old = group->state;
    group->state = s;
    zr_mutex_unlock(&group->h.mutex);
    zr_group_state_free(old);
}

/* A group with invalid consolidated metadata is still a group: checks the document
 * without it. */
static zarr_status check_bare_group(struct zr_group_meta *out,
                                    const struct zr_meta_env *env,
                                    const struct zr_json *root, zarr_error *err)
{
    struct zr_json *bare = NULL;
    struct zr_json_doc doc;
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&doc, env->alloc);
    bare = zr_json_new(&doc, ZR_JSON_OBJECT);
    for (const struct zr_json *v = root->u.children.first; v; v = v->next)
        if (!zr_streq(v->key, "consolidated_metadata"))
            zr_json_add(&doc, bare, v->key, v->key_bytes, zr_json_copy(&doc, v));
    if (!zr_json_is_ok(&doc))
        ZR_FAIL_MEMORY(err, doc.arena.used_bytes);
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
    return zr_pass(err, st, &e);
}

/* Makes a state from a document, and takes references. attrs_parsed may be NULL. */
zarr_status zr_group_state_new(struct zr_group_state **out, const struct zr_meta_env *env,
                               int32_t format, struct zr_parsed *parsed,
                               const struct zr_json *root, zarr_error *err)
{
    const zarr_allocator *alloc = parsed->alloc;
    struct zr_group_state *s = NULL;
    struct zr_group_meta meta;
    zarr_status st = ZARR_OK;

    ZR_TRY(check_group(&meta, env, format, root, err));
    s = zr_calloc(alloc, 1, sizeof *s);
    if (!s)
        ZR_FAIL_MEMORY(err, sizeof *s);
    atomic_init(&s->refs, 1);
    s->alloc = alloc;
    s->format = format;
    s->parsed = zr_parsed_ref(parsed);
    s->root = root;
    s->attrs = meta.attributes;
    s->prefix = zr_strdup(alloc, "");
    if (!s->prefix)
        ZR_FAIL_MEMORY(err, 1);
    *out = s; /* moved */
    s = NULL;
out:
    zr_group_state_free(s);
    return st;
}

void zr_group_state_attrs(struct zr_group_state *s, struct zr_parsed *attrs_parsed,
                          const struct zr_json *attrs)
{
    s->attrs_parsed = zr_parsed_ref(attrs_parsed);
    s->attrs = attrs;
}

/* ---- consolidated metadata of an opened group --------------------------- */

static zarr_status consolidated_of_v3(struct zr_group_state *s, const zarr_limits *limits,
                                      zarr_error *err)
{
    const struct zr_json *map = NULL;

    ZR_CHECK(
        zr_consolidated_map(&map, 3, zr_json_get(s->root, "consolidated_metadata"), err));
    if (map)
        ZR_CHECK(zr_consolidated_parse(&s->cons, s->parsed, map, 3, limits, err));
    return ZARR_OK;
}

static zarr_status consolidated_of_v2(struct zr_group_state *s, const zarr_group *g,
                                      struct zr_found *found, zarr_error *err)
{
    const char *name = g->consolidated_key ? g->consolidated_key : ZR_DOC_CONSOLIDATED;
    const zarr_limits *limits = &g->h.ctx->limits;
    const struct zr_doc_source src = {.store = g->h.store,
                                      .path = g->h.path,
                                      .name = name,
                                      .large = true,
                                      .ahead = &found->ahead,
                                      .cancel = found->cancel};
    struct zr_parsed *parsed = NULL;
    const struct zr_json *map = NULL;
    struct zr_doc doc;
    bool there = false;
    zarr_status st = ZARR_OK;

    zr_doc_init(&doc, s->alloc);
    ZR_TRY(zr_doc_get_beside(&doc, &src, &there, err));
    if (!there)
        goto out;
    st = zr_parsed_read(&parsed, &doc, g->h.ctx, err);
    if (st == ZARR_OK)
        st = zr_consolidated_map(&map, 2, parsed->json.root, err);
    if (st == ZARR_OK && map)
        st = zr_consolidated_parse(&s->cons, parsed, map, 2, limits, err);
    zr_prefix(err, st, "%s", name);
out:
    zr_parsed_free(parsed);
    zr_doc_deinit(&doc);
    return st;
}

zarr_status zr_group_find_consolidated(struct zr_group_state *s, const zarr_group *g,
                                       struct zr_found *found, zarr_error *err)
{
    const bool must = g->consolidated == ZARR_CONSOLIDATED_MUST;
    zarr_error e = {0};
    zarr_status st = ZARR_OK;

    if (g->consolidated == ZARR_CONSOLIDATED_NEVER)
        return ZARR_OK;
    st = s->format == 3 ? consolidated_of_v3(s, &g->h.ctx->limits, &e)
                        : consolidated_of_v2(s, g, found, &e);
    /* stored documents are CORRUPT; INVALID is for arguments */
    if (st == ZARR_ERR_INVALID)
        st = e.code = ZARR_ERR_CORRUPT;
    if (!must &&
        (st == ZARR_ERR_CORRUPT || st == ZARR_ERR_UNSUPPORTED || st == ZARR_ERR_LIMIT)) {
        zr_log(&g->h.ctx->log, ZARR_LOG_WARN, "/%s: not used: %s", g->h.path, e.message);
        st = ZARR_OK;
    }
    zr_pass(err, st, &e);
    if (st == ZARR_OK && must && !s->cons)
        st = zr_fail(err, ZARR_ERR_NOT_FOUND, "there is no consolidated metadata");
    return st;
}
