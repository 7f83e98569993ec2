/*
 * node/subtree.c - reads every node below a group with its parsed documents, for calls
 * that need the whole subtree at once: writing consolidated metadata, and comparing it
 * with the store. Consolidated metadata must be complete to be useful, so a broken node
 * is an error.
 * Thread class: solo.
 */
#include "node/node.h"

#include <string.h>

void zr_subtree_deinit(struct zr_subtree *g)
{
    for (size_t i = 0; i < g->n; i++) {
        zr_parsed_free(g->node[i].parsed);
        zr_parsed_free(g->node[i].attrs);
    }
    zr_free(g->alloc, g->node);
    zr_arena_deinit(&g->arena);
    *g = (struct zr_subtree){0};
}

static zarr_status add_node(struct zr_subtree *g, const char *path,
                            const struct zr_found *f, zarr_error *err)
{
    struct zr_subtree_node *node = NULL;

    ZR_CHECK(zr_grow(g->alloc, &g->node, &g->cap, g->n + 1, sizeof *g->node, err));
    node = &g->node[g->n];
    *node = (struct zr_subtree_node){.kind = f->kind};
    node->path = zr_arena_strndup(&g->arena, path, strlen(path));
    if (!node->path)
        return zr_fail_memory(err, strlen(path));
    node->parsed = zr_parsed_ref(f->parsed);
    g->n++;
    return ZARR_OK;
}

/* Adds the children of node i that have its format. Groups among them are read later. */
static zarr_status read_children(struct zr_subtree *g, zarr_store *store, const char *top,
                                 size_t i, zarr_error *err)
{
    const struct zr_child *child = NULL;
    struct zr_children children = {0};
    struct zr_str path, full;
    zarr_status st = ZARR_OK;

    zr_str_init(&path, g->alloc);
    zr_str_init(&full, g->alloc);
    ZR_TRY(zr_path_key(&full, top, g->node[i].path, err));
    ZR_TRY(
        zr_children_open(&children, store, zr_str_text(&full), g->format, &g->seen, err));
    for (;;) {
        ZR_TRY(zr_children_next(&children, &child, err));
        if (!child)
            break;
        ZR_TRY(zr_pass(err, child->st, &child->err));
        if (child->found.format != g->format)
            continue;
        ZR_TRY(zr_path_key(&path, g->node[i].path, child->name, err));
        ZR_TRY(add_node(g, zr_str_text(&path), &child->found, err));
    }
out:
    zr_children_close(&children);
    zr_str_deinit(&path);
    zr_str_deinit(&full);
    return st;
}

static zarr_status read_attributes(struct zr_subtree *g, zarr_store *store,
                                   const char *top, zarr_error *err)
{
    struct zr_find where = {.store = store, .cancel = g->seen.cancel};
    struct zr_str full;
    zarr_status st = ZARR_OK;

    zr_str_init(&full, g->alloc);
    for (size_t i = 0; i < g->n; i++) {
        ZR_TRY(zr_cancel_check(g->seen.cancel, err));
        ZR_TRY(zr_path_key(&full, top, g->node[i].path, err));
        if (g->seen.wait_for_writers)
            ZR_TRY(zr_doc_wait_for_writer(store, zr_str_text(&full), ZR_DOC_ATTRS,
                                          g->seen.cancel, err));
        where.path = zr_str_text(&full);
        ZR_TRY(zr_attrs_read(&g->node[i].attrs, &where, NULL, err));
    }
out:
    zr_str_deinit(&full);
    return st;
}

/* Reads what is below the first node, and the attributes of all. */
static zarr_status read_rest(struct zr_subtree *g, zarr_store *store, const char *path,
                             bool below, zarr_error *err)
{
    for (size_t i = 0; below && i < g->n; i++)
        if (g->node[i].kind == ZARR_NODE_GROUP)
            ZR_CHECK(read_children(g, store, path, i, err));
    if (g->format == 2)
        ZR_CHECK(read_attributes(g, store, path, err));
    return ZARR_OK;
}

static void subtree_init(struct zr_subtree *g, const zarr_allocator *alloc,
                         bool wait_for_writers, const zarr_cancel *cancel)
{
    *g = (struct zr_subtree){
        .alloc = alloc, .seen = {.cancel = cancel, .wait_for_writers = wait_for_writers}};
    zr_arena_init(&g->arena, alloc);
}

zarr_status zr_subtree_read_node(struct zr_subtree *out, zarr_store *store,
                                 const char *path, int32_t format,
                                 const zarr_cancel *cancel, bool below, zarr_error *err)
{
    const struct zr_find where = {.store = store,
                                  .path = path,
                                  .format = format,
                                  .wait_for_writers = below,
                                  .cancel = cancel};
    struct zr_found found;
    zarr_status st = ZARR_OK;

    subtree_init(out, zr_store_context(store)->alloc, below, cancel);
    zr_found_init(&found, out->alloc);
    out->format = format;
    st = zr_node_find(&found, &where, err);
    if (st == ZARR_ERR_NOT_FOUND) {
        st = ZARR_OK;
        goto out;
    }
    if (st == ZARR_OK)
        st = add_node(out, "", &found, err);
    if (st == ZARR_OK)
        st = read_rest(out, store, path, below, err);
    zr_path_prefix(err, st, path);
out:
    zr_found_deinit(&found);
    return st;
}

zarr_status zr_subtree_read(struct zr_subtree *out, zarr_store *store, const char *path,
                            int32_t format, bool wait_for_writers,
                            const zarr_cancel *cancel, zarr_error *err)
{
    const struct zr_find where = {
        .store = store, .path = path, .format = format, .cancel = cancel};
    struct zr_found found;
    zarr_status st = ZARR_OK;

    subtree_init(out, zr_store_context(store)->alloc, wait_for_writers, cancel);
    zr_found_init(&found, out->alloc);
    st = zr_node_find(&found, &where, err);
    if (st == ZARR_ERR_NOT_FOUND || (st == ZARR_OK && found.kind != ZARR_NODE_GROUP))
        st = zr_fail(err, ZARR_ERR_NOT_FOUND, "there is no group");
    if (st != ZARR_OK) {
        zr_path_prefix(err, st, path);
        goto out;
    }
    out->format = found.format;
    ZR_TRY(add_node(out, "", &found, err));
    ZR_TRY(read_rest(out, store, path, true, err));
out:
    zr_found_deinit(&found);
    return st;
}
