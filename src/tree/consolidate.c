/*
 * tree/consolidate.c - writes consolidated metadata in zarr-python's form, last and in
 * one piece: a reader sees the old document or the new one. By convention it is not kept
 * up to date. After a change the group has to be consolidated again, and
 * zarr_group_consolidated_check() finds what is out of date. Entries are sorted by depth,
 * then by name without regard to case (ASCII).
 * Thread class: plain functions.
 */
#include "group/group.h"
#include "tree/tree.h"

#include <stdlib.h>
#include <string.h>

static int fold_byte(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : (unsigned char)c;
}

static int compare_subtree_nodes(const void *a, const void *b)
{
    const char *p = ((const struct zr_subtree_node *)a)->path;
    const char *q = ((const struct zr_subtree_node *)b)->path;
    const size_t m = zr_path_depth(p), n = zr_path_depth(q);

    if (m != n)
        return m < n ? -1 : 1;
    for (size_t i = 0; p[i] || q[i]; i++)
        if (fold_byte(p[i]) != fold_byte(q[i]))
            return fold_byte(p[i]) < fold_byte(q[i]) ? -1 : 1;
    return strcmp(p, q);
}

struct consolidating {
    zarr_store *store;
    const zarr_context *ctx;
    const char *path;
    const zarr_consolidate_options *opts;
    int32_t format;
    struct zr_subtree nodes;
    bool has_nodes;            /* nodes must be released */
    struct zr_meta_node *meta; /* one per node, in order */
    bool own_key;              /* the caller gave the document's key */
    bool broken;               /* a node cannot be read: the error has its path */
};

static void forget_nodes(struct consolidating *c)
{
    zr_free(c->ctx->alloc, c->meta);
    c->meta = NULL;
    if (c->has_nodes)
        zr_subtree_deinit(&c->nodes);
    c->has_nodes = false;
}

static zarr_status list_nodes(struct consolidating *c, zarr_error *err)
{
    struct zr_subtree *g = &c->nodes;

    qsort(g->node, g->n, sizeof *g->node,
          compare_subtree_nodes); /* the group stays first */
    c->meta = zr_calloc(g->alloc, g->n, sizeof *c->meta);
    if (!c->meta)
        return zr_fail_memory(err, g->n * sizeof *c->meta);
    for (size_t i = 0; i < g->n; i++)
        c->meta[i] = (struct zr_meta_node){
            .path = g->node[i].path,
            .document = g->node[i].parsed->json.root,
            .attributes = g->node[i].attrs ? g->node[i].attrs->json.root : NULL,
        };
    return ZARR_OK;
}

/* Reads all nodes while the document is locked, or again if its version has changed.
 * Otherwise an entry that another process brought up to date meanwhile would become
 * old again. */
static zarr_status read_nodes(struct consolidating *c, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    forget_nodes(c);
    c->has_nodes = true;
    st = zr_subtree_read(&c->nodes, c->store, c->path, c->format, true, c->opts->cancel,
                         err);
    c->broken = st != ZARR_OK;
    return st == ZARR_OK ? list_nodes(c, err) : st;
}

/* Inserts it into the group's zarr.json as that is now. */
static zarr_status edit_consolidated_v3(void *arg, const struct zr_doc *old,
                                        struct zr_str *text, zarr_error *err)
{
    struct consolidating *c = arg;
    const struct zr_meta_env env = zr_meta_env_make(c->ctx, true);
    struct zr_json_doc in, made;
    struct zr_json *root = NULL;
    struct zr_group_meta meta;
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&in, c->ctx->alloc);
    zr_json_doc_init(&made, c->ctx->alloc);
    ZR_TRY(read_nodes(c, err));
    ZR_TRY(zr_doc_parse(&in, old, &c->ctx->limits, err));
    zr_json_set(&in, in.root, "consolidated_metadata",
                zr_consolidated_write_v3(&in, c->meta + 1, c->nodes.n - 1));
    if (!zr_json_is_ok(&in))
        ZR_FAIL_MEMORY(err, in.arena.used_bytes);
    ZR_TRY(zr_group_meta_parse(&meta, &env, 3, in.root, NULL, err));
    ZR_TRY(zr_group_meta_write(&meta, &made, &root, err));
    zr_json_write(root, ZR_META_INDENT, text);
out:
    zr_json_doc_deinit(&in);
    zr_json_doc_deinit(&made);
    return st;
}

/* If the caller gave the key, the object there may be something else. */
static zarr_status must_be_consolidated(const struct consolidating *c,
                                        const struct zr_doc *old, zarr_error *err)
{
    struct zr_json_doc doc;
    zarr_error e = {0};
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&doc, c->ctx->alloc);
    st = zr_doc_parse(&doc, old, &c->ctx->limits, &e);
    if (st == ZARR_ERR_NO_MEMORY)
        zr_pass(err, st, &e);
    else if (st != ZARR_OK || !zr_json_get(doc.root, "zarr_consolidated_format"))
        st = zr_fail(err, ZARR_ERR_EXISTS,
                     "the object there is not consolidated metadata: it is not replaced");
    zr_json_doc_deinit(&doc);
    return st;
}

static zarr_status edit_consolidated_v2(void *arg, const struct zr_doc *old,
                                        struct zr_str *text, zarr_error *err)
{
    struct consolidating *c = arg;
    struct zr_json *root = NULL;
    struct zr_json_doc made;
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&made, c->ctx->alloc);
    if (old && c->own_key)
        ZR_TRY(must_be_consolidated(c, old, err));
    ZR_TRY(read_nodes(c, err));
    root = zr_consolidated_write_v2(&made, c->meta, c->nodes.n);
    if (!root || !zr_json_is_ok(&made))
        ZR_FAIL_MEMORY(err, made.arena.used_bytes);
    zr_json_write(root, 0, text);
out:
    zr_json_doc_deinit(&made);
    return st;
}

static zarr_status write_consolidated(struct consolidating *c, zarr_error *err)
{
    const bool v3 = c->format == 3;
    const struct zr_doc_edit edit = {.fn =
                                         v3 ? edit_consolidated_v3 : edit_consolidated_v2,
                                     .arg = c,
                                     .may_be_new = !v3,
                                     .cancel = c->opts->cancel};
    const char *key = c->opts->key;
    const struct zr_doc_source src = {
        .store = c->store,
        .path = c->path,
        .name = v3    ? ZR_DOC_V3
                : key ? key
                      : ZR_DOC_CONSOLIDATED,
        .large = true,
    };

    return zr_doc_update(&src, &edit, err);
}

static zarr_status check_key(const char *key, zarr_error *err)
{
    static const char *const taken[] = {ZR_DOC_V3, ZR_DOC_ARRAY, ZR_DOC_GROUP,
                                        ZR_DOC_ATTRS};

    if (*key == '\0' || strchr(key, '/'))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "\"%.80s\" is not a name for consolidated metadata: it is in the "
                       "group itself",
                       key);
    for (size_t i = 0; i < ZR_COUNT(taken); i++)
        if (zr_streq(key, taken[i]))
            return zr_fail(err, ZARR_ERR_INVALID,
                           "%s is the name of another document: consolidated metadata "
                           "cannot have it",
                           key);
    return ZARR_OK;
}

/* Sets the format if the caller gave none. */
static zarr_status find_group(struct consolidating *c, int32_t format, zarr_error *err)
{
    const struct zr_find where = {
        .store = c->store, .path = c->path, .format = format, .cancel = c->opts->cancel};
    struct zr_found found;
    zarr_status st = ZARR_OK;

    zr_found_init(&found, c->ctx->alloc);
    st = zr_node_find(&found, &where, err);
    if (st == ZARR_ERR_NOT_FOUND || (st == ZARR_OK && found.kind != ZARR_NODE_GROUP))
        st = zr_fail(err, ZARR_ERR_NOT_FOUND, "there is no group");
    c->format = found.format;
    zr_found_deinit(&found);
    return st;
}

zarr_status zr_group_consolidate(zarr_store *store, const char *path,
                                 const zarr_consolidate_options *o, int32_t format,
                                 zarr_error *err)
{
    const char *key = o->key;
    struct consolidating c = {
        .store = store, .ctx = zr_store_context(store), .path = path, .opts = o};
    zarr_status st = find_group(&c, format, err);

    if (st != ZARR_OK) {
        zr_path_prefix(err, st, path);
        goto out;
    }
    if (key && c.format == 3)
        ZR_FAIL(err, ZARR_ERR_INVALID,
                "/%s: v3 has its consolidated metadata in zarr.json: no key can be given",
                path);
    if (key) {
        c.own_key = !zr_streq(key, ZR_DOC_CONSOLIDATED);
        st = check_key(key, err);
    }
    if (st == ZARR_OK)
        st = write_consolidated(&c, err);
    if (st != ZARR_OK && !c.broken)
        zr_path_prefix(err, st, path);
out:
    forget_nodes(&c);
    return st;
}

zarr_status zarr_group_consolidate(zarr_group *group,
                                   const zarr_consolidate_options *opts, zarr_error *err)
{
    ZR_NEED(group, err);
    const int32_t format = zarr_group_zarr_format(group);
    zarr_consolidate_options o;
    zarr_status st = zr_consolidate_options_read(&o, opts, 0, true, err);

    if (st == ZARR_OK && !o.key && format == 2)
        o.key = zr_group_consolidated_key(group);
    if (st == ZARR_OK)
        st = zr_group_consolidate(zarr_group_store(group), zarr_group_path(group), &o,
                                  format, err);
    return st;
}
