/*
 * node/make.c - what making any node needs: nothing at its path, groups as its parents,
 * and its document. A parent's document is written only if there is none of either
 * format. A v2 group is left alone when a v3 node is made below it, because a zarr.json
 * beside its .zgroup would hide it.
 * Thread class: plain functions.
 */
#include "node/node_int.h"

#include <string.h>

zarr_status zr_group_text(struct zr_str *out, int32_t format,
                          const struct zr_json *attributes, const zarr_allocator *alloc,
                          zarr_error *err)
{
    const struct zr_group_meta meta = {.format = format, .attributes = attributes};
    struct zr_json *root = NULL;
    struct zr_json_doc doc;
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&doc, alloc);
    ZR_TRY(zr_group_meta_write(&meta, &doc, &root, err));
    zr_json_write(root, ZR_META_INDENT, out);
    ZR_TRY(zr_str_status(out, err));
out:
    zr_json_doc_deinit(&doc);
    return st;
}

struct node_writing {
    zarr_store *store;
    const struct zr_new_node *node;
};

/* Replaces or erases old attributes at this path: they belonged to a node that is
 * gone. */
static zarr_status write_attributes(const struct node_writing *w, zarr_error *err)
{
    const struct zr_new_node *node = w->node;
    struct zr_str text;
    zarr_status st = ZARR_OK;

    if (zr_json_count(node->attrs) == 0)
        return zr_doc_erase(w->store, node->path, ZR_DOC_ATTRS, false, err);
    zr_str_init(&text, zr_store_context(w->store)->alloc);
    zr_json_write(node->attrs, ZR_META_INDENT, &text);
    st = zr_doc_write(w->store, node->path, ZR_DOC_ATTRS, &text, true, err);
    zr_str_deinit(&text);
    return st;
}

/* Called under the lock of the document, which does not exist yet. It takes the lock of
 * .zattrs inside; no holder of that lock waits for another one. */
static zarr_status edit_new_node(void *arg, const struct zr_doc *old, struct zr_str *text,
                                 zarr_error *err)
{
    const struct node_writing *w = arg;
    zarr_status st = ZARR_OK;

    ZR_UNUSED(old);
    if (w->node->format == 2 && !zr_doc_new_by_put(w->store))
        ZR_TRY(write_attributes(w, err));
    zr_str_append(text, zr_str_text(w->node->text), w->node->text->bytes);
out:
    return st;
}

/* Without locks, writing the document decides which writer wins, so the attributes follow
 * it. */
static zarr_status commit_new_node(void *arg, zarr_error *err)
{
    const struct node_writing *w = arg;

    return w->node->format == 2 && zr_doc_new_by_put(w->store) ? write_attributes(w, err)
                                                               : ZARR_OK;
}

zarr_status zr_node_write(zarr_store *store, const struct zr_new_node *node,
                          zarr_error *err)
{
    struct node_writing w = {store, node};
    const struct zr_doc_edit edit = {.fn = edit_new_node,
                                     .arg = &w,
                                     .may_be_new = true,
                                     .must_be_new = true,
                                     .commit = commit_new_node};
    const struct zr_doc_source src = {.store = store,
                                      .path = node->path,
                                      .name = zr_doc_name(node->kind, node->format)};

    return zr_doc_update(&src, &edit, err);
}

static zarr_status parent_is_missing(zarr_store *store, const char *path, bool *missing,
                                     zarr_error *err)
{
    struct zr_find where = {.store = store, .path = path};
    struct zr_found found;
    zarr_status st = ZARR_OK;

    zr_found_init(&found, zr_store_context(store)->alloc);
    st = zr_node_find(&found, &where, err);
    *missing = st == ZARR_ERR_NOT_FOUND;
    if (*missing)
        st = ZARR_OK;
    else if (st != ZARR_OK)
        zr_path_prefix(err, st, path);
    else if (found.kind == ZARR_NODE_ARRAY)
        st = zr_fail(err, ZARR_ERR_INVALID, "/%s is an array: no node can be below it",
                     path);
    zr_found_deinit(&found);
    return st;
}

static zarr_status write_parent(zarr_store *store, const char *path, int32_t format,
                                zarr_error *err)
{
    const zarr_allocator *alloc = zr_store_context(store)->alloc;
    struct zr_str text;
    const struct zr_new_node node = {
        .path = path, .kind = ZARR_NODE_GROUP, .text = &text, .format = format};
    zarr_error e = {0};
    zarr_status st = ZARR_OK;

    zr_str_init(&text, alloc);
    ZR_TRY(zr_group_text(&text, format, NULL, alloc, err));
    st = zr_node_write(store, &node, &e);
    /* another writer was faster */
    st = st == ZARR_ERR_EXISTS ? ZARR_OK : zr_pass(err, st, &e);
out:
    zr_str_deinit(&text);
    return st;
}

/* The parents of a path that have no metadata. */
struct missing_parents {
    char *path;  /* room for the longest of them */
    size_t *cut; /* the lengths of their paths, nearest first */
    size_t n, cap;
};

static void parents_deinit(struct missing_parents *m, const zarr_allocator *alloc)
{
    zr_free(alloc, m->cut);
    zr_free(alloc, m->path);
}

/* Looks from the nearest parent upwards until one exists. */
static zarr_status parents_find(struct missing_parents *m, zarr_store *store,
                                const char *path, zarr_error *err)
{
    const zarr_allocator *alloc = zr_store_context(store)->alloc;
    size_t end = strlen(path);
    bool missing = true;
    zarr_status st = ZARR_OK;

    m->path = zr_strdup(alloc, path);
    if (!m->path)
        ZR_TRY(zr_fail_memory(err, end + 1));
    while (end > 0 && missing) {
        end = zr_path_parent_bytes(m->path);
        m->path[end] = '\0';
        ZR_TRY(parent_is_missing(store, m->path, &missing, err));
        if (!missing)
            break;
        st = zr_job_must_not_be(store, m->path, err);
        if (st != ZARR_OK)
            ZR_TRY(zr_path_prefix(err, st, m->path));
        ZR_TRY(zr_grow(alloc, &m->cut, &m->cap, m->n + 1, sizeof *m->cut, err));
        m->cut[m->n++] = end;
    }
out:
    return st;
}

zarr_status zr_parents_check(zarr_store *store, const char *path, zarr_error *err)
{
    struct missing_parents m = {0};
    const zarr_status st = parents_find(&m, store, path, err);

    parents_deinit(&m, zr_store_context(store)->alloc);
    return st;
}

zarr_status zr_parents_create(zarr_store *store, const char *path, int32_t format,
                              zarr_error *err)
{
    struct missing_parents m = {0};
    zarr_status st = ZARR_OK;

    ZR_TRY(parents_find(&m, store, path, err));
    while (m.n > 0) {
        const size_t end = m.cut[--m.n];

        memcpy(m.path, path, end);
        m.path[end] = '\0';
        ZR_TRY(write_parent(store, m.path, format, err));
    }
out:
    parents_deinit(&m, zr_store_context(store)->alloc);
    return st;
}

zarr_status zr_node_must_be_new(zarr_store *store, const char *path, zarr_error *err)
{
    struct zr_find where = {.store = store, .path = path};
    struct zr_found found;
    zarr_status st = ZARR_OK;

    zr_found_init(&found, zr_store_context(store)->alloc);
    st = zr_node_find(&found, &where, err);
    if (st == ZARR_OK)
        st = zr_fail(err, ZARR_ERR_EXISTS, "there is a v%" PRId32 " %s already",
                     found.format, zr_kind_text(found.kind));
    else if (st == ZARR_ERR_NOT_FOUND)
        st = ZARR_OK;
    else if (found.format) /* an unreadable document counts as a node */
        st = zr_prefix(err, ZARR_ERR_EXISTS, "there is a broken node already");
    zr_found_deinit(&found);
    return st;
}
