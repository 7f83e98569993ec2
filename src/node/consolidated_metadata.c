/*
 * node/consolidated_metadata.c - keeps consolidated metadata right when one node, or a
 * subtree, changes. Its entries go before the node is deleted, replaced or renamed, and
 * are written again from the documents of the store afterwards. So a call that is
 * interrupted may leave a node that is not listed, and never an entry of a node that is
 * gone. Entries change under the lock of the document that has them: of two changes at
 * the same time, the later update reads the later documents. Thread class: plain
 * functions.
 */
#include "node/node.h"

#include <string.h>

struct updating {
    zarr_store *store;
    const zarr_context *ctx;
    const char *path;  /* of the changed node */
    const char *group; /* path of the group whose consolidated metadata is updated */
    int32_t format;
    bool below, remove; /* remove: the entries go, and no node is read */
    uint64_t most;      /* restores what a removal took from so many groups; 0: all */
    const zarr_cancel *cancel;
};

/* A path relative to the group. */
static const char *relative_path(const struct updating *u, const char *path)
{
    const size_t n = strlen(u->group);

    return n == 0 ? path : path[n] == '/' ? path + n + 1 : path + n;
}

/* Nodes with paths relative to the group. The caller frees *nodes, and *text, which has
 * the paths. */
static zarr_status make_nodes(const struct zr_subtree *g, const char *top,
                              struct zr_meta_node **nodes, struct zr_arena *text,
                              zarr_error *err)
{
    struct zr_str path;
    zarr_status st = ZARR_OK;

    zr_str_init(&path, g->alloc);
    *nodes = zr_calloc(g->alloc, ZR_MAX(g->n, (size_t)1), sizeof **nodes);
    if (!*nodes)
        ZR_FAIL_MEMORY(err, g->n * sizeof **nodes);
    for (size_t i = 0; i < g->n; i++) {
        struct zr_meta_node *node = &(*nodes)[i];

        ZR_TRY(zr_path_key(&path, top, g->node[i].path, err));
        node->path = zr_arena_strndup(text, zr_str_text(&path), path.bytes);
        if (!node->path)
            ZR_FAIL_MEMORY(err, path.bytes);
        node->document = g->node[i].parsed->json.root;
        node->attributes = g->node[i].attrs ? g->node[i].attrs->json.root : NULL;
    }
out:
    zr_str_deinit(&path);
    return st;
}

/* Reads the node at path, and what is below it, and puts them into the map. */
static zarr_status patch_node(const struct updating *u, const char *path, bool below,
                              struct zr_json_doc *doc, struct zr_json *map,
                              zarr_error *err)
{
    const char *relative = relative_path(u, path);
    struct zr_meta_node *nodes = NULL;
    struct zr_subtree subtree = {0};
    struct zr_arena text;
    zarr_status st = ZARR_OK;

    zr_arena_init(&text, u->ctx->alloc);
    if (!u->remove) {
        ZR_TRY(zr_subtree_read_node(&subtree, u->store, path, u->format, u->cancel, below,
                                    err));
        ZR_TRY(make_nodes(&subtree, relative, &nodes, &text, err));
    }
    zr_consolidated_patch(doc, map, u->format, relative, below, nodes, subtree.n);
    if (!zr_json_is_ok(doc))
        ZR_FAIL_MEMORY(err, doc->arena.used_bytes);
out:
    zr_free(u->ctx->alloc, nodes);
    zr_subtree_deinit(&subtree);
    zr_arena_deinit(&text);
    return st;
}

static zarr_status has_entry(const struct updating *u, const char *path,
                             const struct zr_json *map, bool *has, zarr_error *err)
{
    struct zr_str key;
    zarr_status st = ZARR_OK;

    zr_str_init(&key, u->ctx->alloc);
    ZR_TRY(zr_path_key(&key, relative_path(u, path), u->format == 2 ? ZR_DOC_GROUP : "",
                       err));
    *has = zr_json_get(map, zr_str_text(&key)) != NULL;
out:
    zr_str_deinit(&key);
    return st;
}

/* A new node may have new groups above it, which no call names. */
static zarr_status patch_parents(const struct updating *u, struct zr_json_doc *doc,
                                 struct zr_json *map, zarr_error *err)
{
    char *path = zr_strdup(u->ctx->alloc, u->path);
    const size_t top = strlen(u->group);
    bool has = false;
    zarr_status st = ZARR_OK;

    if (!path)
        return zr_fail_memory(err, strlen(u->path));
    while (!has) {
        path[zr_path_parent_bytes(path)] = '\0';
        if (strlen(path) <= top)
            break;
        ZR_TRY(has_entry(u, path, map, &has, err));
        if (!has)
            ZR_TRY(patch_node(u, path, false, doc, map, err));
    }
out:
    zr_free(u->ctx->alloc, path);
    return st;
}

/* Finds the map of entries in the group's zarr.json or .zmetadata. *map: NULL if the
 * group has no consolidated metadata. */
static zarr_status find_map(const struct updating *u, const struct zr_json *root,
                            const struct zr_json **map, zarr_error *err)
{
    return zr_consolidated_map(
        map, u->format,
        u->format == 3 ? zr_json_get(root, "consolidated_metadata") : root, err);
}

/* Whether the document is still what it was. Then it is not written: a copy of a group
 * keeps its bytes. */
static zarr_status is_unchanged(const struct updating *u, const struct zr_doc *old,
                                const struct zr_json *root, bool *same, zarr_error *err)
{
    struct zr_json_doc before;
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&before, u->ctx->alloc);
    ZR_TRY(zr_doc_parse(&before, old, &u->ctx->limits, err));
    zr_json_quote_tokens(before.root);
    *same = zr_json_equal(before.root, root);
out:
    zr_json_doc_deinit(&before);
    return st;
}

static zarr_status edit_entries(void *arg, const struct zr_doc *old, struct zr_str *text,
                                zarr_error *err)
{
    const struct updating *u = arg;
    const struct zr_json *found = NULL;
    struct zr_json *map = NULL;
    struct zr_json_doc doc;
    bool same = false;
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&doc, u->ctx->alloc);
    ZR_TRY(zr_doc_parse(&doc, old, &u->ctx->limits, err));
    ZR_TRY(find_map(u, doc.root, &found, err));
    if (!found) /* another writer removed it */
        goto out;
    map = (struct zr_json *)(uintptr_t)found; /* doc owns it */
    ZR_TRY(patch_node(u, u->path, u->below, &doc, map, err));
    if (!u->remove)
        ZR_TRY(patch_parents(u, &doc, map, err));
    zr_json_quote_tokens(doc.root);
    ZR_TRY(is_unchanged(u, old, doc.root, &same, err));
    if (same)
        goto out;
    zr_json_write(doc.root, u->format == 3 ? ZR_META_INDENT : 0, text);
out:
    zr_json_doc_deinit(&doc);
    return st;
}

static zarr_status has_entries(const struct updating *u, const struct zr_doc_source *src,
                               bool *has, zarr_error *err)
{
    const struct zr_json *map = NULL;
    struct zr_json_doc json;
    struct zr_doc doc;
    zarr_status st = ZARR_OK;

    zr_doc_init(&doc, u->ctx->alloc);
    zr_json_doc_init(&json, u->ctx->alloc);
    st = zr_doc_get(&doc, src, err);
    if (st == ZARR_ERR_NOT_FOUND) {
        st = ZARR_OK;
        goto out;
    }
    ZR_TRY(st);
    ZR_TRY(zr_doc_parse(&json, &doc, &u->ctx->limits, err));
    ZR_TRY(find_map(u, json.root, &map, err));
out:
    *has = map != NULL;
    zr_json_doc_deinit(&json);
    zr_doc_deinit(&doc);
    return st;
}

/* Whether the entries are right already, as far as one can tell without the lock. */
static bool is_up_to_date(const struct updating *u, const struct zr_doc_source *src)
{
    struct zr_str text;
    struct zr_doc doc;
    zarr_status st;

    zr_doc_init(&doc, u->ctx->alloc);
    zr_str_init(&text, u->ctx->alloc);
    st = zr_doc_get(&doc, src, NULL);
    if (st == ZARR_OK)
        st = edit_entries((void *)(uintptr_t)u, &doc, &text, NULL);
    if (st == ZARR_OK && (text.failed || text.bytes > 0))
        st = ZARR_ERR_CONFLICT;
    zr_str_deinit(&text);
    zr_doc_deinit(&doc);
    return st == ZARR_OK;
}

static zarr_status update_group(const struct updating *u, uint64_t *n_updated,
                                zarr_error *err)
{
    const struct zr_doc_edit edit = {.fn = edit_entries,
                                     .arg = (void *)(uintptr_t)u, /* is only read */
                                     .cancel = u->cancel};
    const struct zr_doc_source src = {
        .store = u->store,
        .path = u->group,
        .name = u->format == 3 ? ZR_DOC_V3 : ZR_DOC_CONSOLIDATED,
        .large = true,
        .cancel = u->cancel,
    };
    bool has = false;
    zarr_status st = ZARR_OK;

    if (u->most > 0 && *n_updated == u->most)
        return ZARR_OK;
    st = has_entries(u, &src, &has, err);
    if (st == ZARR_OK && has)
        st = zr_doc_update(&src, &edit, err);
    if (zr_is_store_failure(st) &&
        is_up_to_date(u, &src)) /* in a store that is read-only */
        st = ZARR_OK;
    if (st == ZARR_OK)
        *n_updated += has;
    else
        zr_doc_prefix(err, st, u->group, src.name);
    return st;
}

/* The group at the path itself has entries of itself in v2 only. */
static zarr_status update_both(struct updating *u, uint64_t *n_updated, zarr_error *err)
{
    const bool itself = zr_streq(u->group, u->path);

    if (itself && (u->remove || u->most > 0)) /* its own metadata goes with it */
        return ZARR_OK;
    if (!itself) {
        u->format = 3;
        ZR_CHECK(update_group(u, n_updated, err));
    }
    u->format = 2;
    return update_group(u, n_updated, err);
}

/* Updates the groups at and above `from`, which is the path or above it. */
static zarr_status update_above(struct updating *u, const char *from, uint64_t *n_updated,
                                zarr_error *err)
{
    char *group = zr_strdup(u->ctx->alloc, from);
    bool more = true;
    zarr_status st = ZARR_OK;

    if (!group)
        return zr_fail_memory(err, strlen(from));
    u->group = group;
    while (more) {
        ZR_TRY(zr_cancel_check(u->cancel, err));
        ZR_TRY(update_both(u, n_updated, err));
        more = *group != '\0';
        group[zr_path_parent_bytes(group)] = '\0';
    }
out:
    zr_free(u->ctx->alloc, group);
    return st;
}

/* Updates the groups of the hierarchy that are above the root of the store. */
static zarr_status update_outside(const struct updating *inside, uint64_t *n_updated,
                                  zarr_error *err)
{
    const zarr_allocator *alloc = inside->ctx->alloc;
    struct updating u = *inside;
    zarr_store *root = NULL;
    char *top = NULL; /* path of the store's root, then of the group above it */
    struct zr_str path;
    zarr_status st = ZARR_OK;

    zr_str_init(&path, alloc);
    ZR_TRY(zr_ctx_open_above(&root, &top, u.store, err));
    if (!root)
        goto out;
    ZR_TRY(zr_path_key(&path, top, u.path, err));
    top[zr_path_parent_bytes(top)] = '\0';
    u.store = root;
    u.path = zr_str_text(&path);
    st = update_above(&u, top, n_updated, err);
out:
    zr_str_deinit(&path);
    zr_free(alloc, top);
    zarr_store_free(root);
    return st;
}

static zarr_status update_all(struct updating *u, uint64_t *n_updated, zarr_error *err)
{
    ZR_CHECK(update_above(u, u->path, n_updated, err));
    return update_outside(u, n_updated, err);
}

static zarr_status restore_entries(zarr_store *store, const char *path, uint64_t most,
                                   zarr_error *err)
{
    struct updating u = {.store = store,
                         .ctx = zr_store_context(store),
                         .path = path,
                         .below = true,
                         .most = most};
    uint64_t n = 0;

    return update_all(&u, &n, err);
}

zarr_status zr_consolidated_remove(zarr_store *store, const char *path,
                                   const zarr_cancel *cancel, zarr_error *err)
{
    struct updating u = {.store = store,
                         .ctx = zr_store_context(store),
                         .path = path,
                         .below = true,
                         .remove = true,
                         .cancel = cancel};
    uint64_t n = 0;
    const zarr_status st = update_all(&u, &n, err);

    if (st != ZARR_OK && n > 0)
        (void)restore_entries(store, path, n, NULL);
    zr_prefix(err, st, "consolidated metadata would list a node that is gone");
    return st;
}

zarr_status zr_consolidated_restore(zarr_store *store, const char *path, zarr_error *err)
{
    return restore_entries(store, path, 0, err);
}

zarr_status zarr_group_consolidated_update(zarr_store *store, const char *path,
                                           uint64_t *n_updated,
                                           const zarr_consolidate_options *opts,
                                           zarr_error *err)
{
    ZR_NEED(store, err);
    struct updating u = {.store = store, .ctx = zr_store_context(store)};
    zarr_consolidate_options o;
    uint64_t n = 0;
    char *normal = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_consolidate_options_read(
        &o, opts, ZARR_CONSOLIDATED_BELOW | ZARR_CONSOLIDATED_REMOVE, false, err));
    u.remove = (o.flags & ZARR_CONSOLIDATED_REMOVE) != 0;
    u.below = u.remove || (o.flags & ZARR_CONSOLIDATED_BELOW) != 0;
    u.cancel = o.cancel;
    ZR_TRY(zr_path_normal(&normal, u.ctx->alloc, path, &u.ctx->limits, err));
    u.path = normal;
    st = update_all(&u, &n, err);
out:
    if (n_updated)
        *n_updated = n;
    zr_free(u.ctx->alloc, normal);
    return st;
}

zarr_status zr_consolidate_options_read(zarr_consolidate_options *o,
                                        const zarr_consolidate_options *opts,
                                        uint32_t flags, bool key, zarr_error *err)
{
    zarr_status st = zr_struct_read(o, sizeof *o, 2 * sizeof(uint32_t), opts,
                                    ZR_TAIL_REFUSE, "zarr_consolidate_options", err);

    if (st == ZARR_OK)
        st = zr_flags_check(o->flags, flags, "consolidate options", err);
    if (st == ZARR_OK && o->key && !key)
        st = zr_fail(err, ZARR_ERR_INVALID,
                     "consolidate options: this call takes no `key`");
    return st;
}
