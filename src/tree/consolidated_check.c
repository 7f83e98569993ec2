/*
 * tree/consolidated_check.c - compares consolidated metadata with the documents that
 * the store has now. Thread class: plain functions.
 */
#include "group/group.h"
#include "tree/tree.h"

#include <stdlib.h>

struct checking {
    struct zr_subtree real;
    struct zr_consolidated *cons; /* counted */
    int (*fn)(void *user, const char *path, const char *what);
    void *user;
    bool stopped;
    const char *top; /* path of the group */
    struct zr_str path;
};

static void tell(struct checking *c, const char *path, const char *what)
{
    (void)zr_path_key(&c->path, c->top, path, NULL);
    if (!c->stopped && !c->path.failed)
        c->stopped = c->fn(c->user, zr_str_text(&c->path), what) != 0;
}

/* A node's own consolidated metadata differs by design. zarrs leaves out members that are
 * empty and optional. */
static bool is_compared(const struct zr_json *member)
{
    if (zr_streq(member->key, "attributes") ||
        zr_streq(member->key, "storage_transformers"))
        return zr_json_count(member) > 0;
    return !zr_streq(member->key, "consolidated_metadata");
}

bool zr_same_document(const struct zr_json *a, const struct zr_json *b)
{
    struct zr_json_lookup in_b = {.object = b};
    size_t n = 0, m = 0;
    bool same = true;

    for (const struct zr_json *v = a->u.children.first; v && same; v = v->next) {
        if (!is_compared(v))
            continue;
        same = zr_json_equal(v, zr_json_lookup_get(&in_b, v->key, v->key_bytes));
        n++;
    }
    zr_json_lookup_end(&in_b);
    for (const struct zr_json *v = b->u.children.first; v; v = v->next)
        m += is_compared(v);
    return same && n == m;
}

bool zr_same_attributes(const struct zr_json *a, const struct zr_json *b)
{
    if (zr_json_count(a) == 0 && zr_json_count(b) == 0)
        return true; /* no attributes equal {} */
    return a && b && zr_json_equal(a, b);
}

static int compare_by_path(const void *a, const void *b)
{
    return zr_path_compare(((const struct zr_subtree_node *)a)->path,
                           ((const struct zr_subtree_node *)b)->path);
}

static void compare_pair(struct checking *c, const struct zr_subtree_node *node,
                         const struct zr_entry *e)
{
    const struct zr_json *attrs = node->attrs ? node->attrs->json.root : NULL;

    if (node->kind != e->kind)
        tell(c, node->path, "is of another kind in the consolidated metadata");
    else if (!zr_same_document(node->parsed->json.root, e->doc))
        tell(c, node->path, "has another document in the consolidated metadata");
    else if (e->format == 2 && !zr_same_attributes(attrs, e->attrs))
        tell(c, node->path, "has other attributes in the consolidated metadata");
}

/* We write NaN as a string in consolidated metadata; zarr-python writes it bare. The
 * handle that is checked owns all these documents. */
static void quote_nodes(struct zr_subtree *g)
{
    for (size_t i = 0; i < g->n; i++) {
        zr_json_quote_tokens(g->node[i].parsed->json.root);
        if (g->node[i].attrs)
            zr_json_quote_tokens(g->node[i].attrs->json.root);
    }
}

/* Merges both lists, which are sorted. */
static void compare_lists(struct checking *c)
{
    struct zr_subtree *g = &c->real;
    size_t i = 1, j = 0; /* node 0 is the group itself */

    quote_nodes(g);
    qsort(g->node, g->n, sizeof *g->node, compare_by_path);
    while (!c->stopped && (i < g->n || j < c->cons->n)) {
        const int order = i == g->n ? 1
                          : j == c->cons->n
                              ? -1
                              : zr_path_compare(g->node[i].path, c->cons->entry[j].path);

        if (order < 0)
            tell(c, g->node[i++].path, "is missing in the consolidated metadata");
        else if (order > 0)
            tell(c, c->cons->entry[j++].path, "is in the consolidated metadata only");
        else
            compare_pair(c, &g->node[i++], &c->cons->entry[j++]);
    }
}

/* A store that cannot list: compares the nodes that the entries name. */
static zarr_status compare_named_nodes(struct checking *c, zarr_store *store,
                                       int32_t format, const zarr_cancel *cancel,
                                       zarr_error *err)
{
    struct zr_str full;
    zarr_status st = ZARR_OK;

    zr_str_init(&full, zr_store_context(store)->alloc);
    for (size_t i = 0; i < c->cons->n && !c->stopped && st == ZARR_OK; i++) {
        const struct zr_entry *e = &c->cons->entry[i];

        zr_subtree_deinit(&c->real);
        ZR_TRY(zr_path_key(&full, c->top, e->path, err));
        ZR_TRY(zr_subtree_read_node(&c->real, store, zr_str_text(&full), format, cancel,
                                    false, err));
        quote_nodes(&c->real);
        if (c->real.n == 0) {
            tell(c, e->path, "is in the consolidated metadata only");
            continue;
        }
        c->real.node[0].path = e->path;
        compare_pair(c, &c->real.node[0], e);
    }
out:
    zr_str_deinit(&full);
    return st;
}

zarr_status zarr_group_consolidated_check(
    zarr_group *group, int (*fn)(void *user, const char *path, const char *what),
    void *user, const zarr_consolidate_options *opts, zarr_error *err)
{
    ZR_NEED(group, err);
    zarr_store *store = zarr_group_store(group);
    zarr_group_open_options open = ZARR_GROUP_OPEN_OPTIONS_INIT;
    zarr_consolidate_options o;
    struct checking c = {.fn = fn, .user = user, .top = zarr_group_path(group)};
    zarr_group *now = NULL;
    zarr_error why = {0};
    zarr_status st = ZARR_OK;

    open.zarr_format = zarr_group_zarr_format(group);
    open.consolidated = ZARR_CONSOLIDATED_MUST;
    open.consolidated_key = zr_group_consolidated_key(group);
    zr_str_init(&c.path, zr_store_context(store)->alloc);
    ZR_TRY(zr_consolidate_options_read(&o, opts, 0, false, err));
    ZR_TRY(zr_cancel_check(o.cancel, err));
    open.cancel = o.cancel;
    ZR_TRY(zarr_group_open(&now, store, c.top, &open, err));
    c.cons = zr_group_consolidated(now);
    zr_json_quote_tokens(c.cons->parsed->json.root);
    st = zr_subtree_read(&c.real, store, c.top, open.zarr_format, false, o.cancel, &why);
    if (st == ZARR_ERR_UNSUPPORTED)
        ZR_TRY(compare_named_nodes(&c, store, open.zarr_format, o.cancel, err));
    else if (st == ZARR_OK)
        compare_lists(&c);
    else
        ZR_TRY(zr_pass(err, st, &why));
    ZR_TRY(zr_str_status(&c.path, err));
out:
    zr_str_deinit(&c.path);
    zr_subtree_deinit(&c.real);
    zr_consolidated_free(c.cons);
    zarr_group_free(now);
    return st;
}
