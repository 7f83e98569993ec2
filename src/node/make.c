/*
 * node/make.c - what making any node needs: nothing at its path, the right to make it,
 * groups as its parents, and its document. A parent's document is written only if there
 * is none of either format. A v2 group is left alone when a v3 node is made below it,
 * because a zarr.json beside its .zgroup would hide it. Thread class: plain functions.
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
    const zarr_cancel *cancel; /* until the document is there */
};

/* Replaces or erases old attributes at this path: they belonged to a node that is
 * gone. */
static zarr_status write_attributes(const struct node_writing *w,
                                    const zarr_cancel *cancel, zarr_error *err)
{
    const struct zr_new_node *node = w->node;
    struct zr_str text;
    zarr_status st = ZARR_OK;

    if (zr_json_count(node->attrs) == 0)
        return zr_doc_erase(w->store, node->path, ZR_DOC_ATTRS, false, cancel, err);
    zr_str_init(&text, zr_store_context(w->store)->alloc);
    zr_json_write(node->attrs, ZR_META_INDENT, &text);
    st = zr_doc_write(w->store, node->path, ZR_DOC_ATTRS, &text, true, cancel, err);
    zr_str_deinit(&text);
    return st;
}

/* Called under the lock of the document, which does not exist yet. It takes the lock of
 * .zattrs inside. Every call that needs both takes them in this order. */
static zarr_status edit_new_node(void *arg, const struct zr_doc *old, struct zr_str *text,
                                 zarr_error *err)
{
    const struct node_writing *w = arg;

    ZR_UNUSED(old);
    if (w->node->format == 2 && !zr_doc_new_by_put(w->store))
        ZR_CHECK(write_attributes(w, w->cancel, err));
    zr_str_append(text, zr_str_text(w->node->text), w->node->text->bytes);
    return ZARR_OK;
}

/* Without locks, writing the document decides which writer wins, so the attributes follow
 * it. */
static zarr_status commit_new_node(void *arg, zarr_error *err)
{
    const struct node_writing *w = arg;

    return w->node->format == 2 && zr_doc_new_by_put(w->store)
               ? write_attributes(w, NULL, err)
               : ZARR_OK;
}

/* Writes the document and, for v2, the attributes with it: an existing .zattrs is
 * replaced, or erased if there are no attributes. If several threads make one node, one
 * wins, with its attributes. EXISTS if the document exists. */
static zarr_status write_new_node(const struct zr_making *m,
                                  const struct zr_new_node *node, zarr_error *err)
{
    struct node_writing w = {m->store, node, m->cancel};
    const struct zr_doc_edit edit = {.fn = edit_new_node,
                                     .arg = &w,
                                     .may_be_new = true,
                                     .must_be_new = true,
                                     .commit = commit_new_node,
                                     .cancel = m->cancel};
    const struct zr_doc_source src = {.store = m->store,
                                      .path = node->path,
                                      .name = zr_doc_name(node->kind, node->format)};

    return zr_doc_update(&src, &edit, err);
}

static zarr_status parent_is_missing(const struct zr_making *m, const char *path,
                                     bool *missing, zarr_error *err)
{
    const struct zr_find where = {.store = m->store, .path = path, .cancel = m->cancel};
    struct zr_found found;
    zarr_status st = ZARR_OK;

    zr_found_init(&found, zr_store_context(m->store)->alloc);
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

static zarr_status put_parent(const struct zr_making *m, const char *path,
                              zarr_error *err)
{
    const zarr_allocator *alloc = zr_store_context(m->store)->alloc;
    struct zr_str text;
    const struct zr_new_node node = {
        .path = path, .kind = ZARR_NODE_GROUP, .text = &text, .format = m->format};
    zarr_error e = {0};
    bool missing = false;
    zarr_status st = ZARR_OK;

    zr_str_init(&text, alloc);
    ZR_TRY(zr_group_text(&text, m->format, NULL, alloc, err));
    st = write_new_node(m, &node, &e);
    if (st == ZARR_ERR_EXISTS) /* a writer without locks was faster */
        st = parent_is_missing(m, path, &missing, err);
    else
        zr_pass(err, st, &e);
out:
    zr_str_deinit(&text);
    return st;
}

/* What an interrupted call left at the path of a parent refuses a node below it. A call
 * that is at work there is waited for. */
static zarr_status check_job(const struct zr_making *m, const char *path, bool *missing,
                             zarr_error *err)
{
    struct zr_claim claim = {0};
    zarr_status st = ZARR_OK;

    if (zr_job_must_not_be(m->store, path, m->cancel, NULL) == ZARR_OK)
        goto out;
    ZR_TRY(zr_claim_wait(&claim, m->store, path, m->cancel, err));
    ZR_TRY(parent_is_missing(m, path, missing, err));
    if (*missing)
        st = zr_job_must_not_be(m->store, path, m->cancel, err);
    zr_path_prefix(err, st, path);
out:
    zr_claim_give(&claim);
    return st;
}

/* Looks from the nearest parent upwards until one exists. */
static zarr_status find_parents(struct zr_making *m, zarr_error *err)
{
    const zarr_allocator *alloc = zr_store_context(m->store)->alloc;
    struct zr_parents *p = &m->missing;
    size_t end = strlen(m->path);
    bool missing = true;

    p->path = zr_strdup(alloc, m->path);
    if (!p->path)
        return zr_fail_memory(err, end + 1);
    while (end > 0 && missing) {
        end = zr_path_parent_bytes(p->path);
        p->path[end] = '\0';
        ZR_CHECK(parent_is_missing(m, p->path, &missing, err));
        if (missing)
            ZR_CHECK(check_job(m, p->path, &missing, err));
        if (!missing)
            break;
        ZR_CHECK(zr_grow(alloc, &p->cut, &p->cap, p->n + 1, sizeof *p->cut, err));
        p->cut[p->n++] = end;
    }
    return ZARR_OK;
}

zarr_status zr_making_begin(struct zr_making *m, zarr_error *err)
{
    if (!m->overwrite)
        ZR_CHECK(zr_node_must_be_new(m->store, m->path, m->cancel, err));
    if (m->has_parents)
        ZR_CHECK(find_parents(m, err));
    ZR_CHECK(zr_claim_wait(&m->claim, m->store, m->path, m->cancel, err));
    /* without locks, writing the document decides */
    if (!m->overwrite && zr_store_can(m->store, ZARR_STORE_CAP_LOCK))
        ZR_CHECK(zr_node_must_be_new(m->store, m->path, m->cancel, err));
    m->has_begun = true;
    return ZARR_OK;
}

/* The claims of a node and of its parents are taken upwards only, so that no two calls
 * wait for each other. */
static zarr_status make_parent(struct zr_making *m, const char *path, zarr_error *err)
{
    struct zr_claim claim = {0};
    bool missing = true;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_claim_wait(&claim, m->store, path, m->cancel, err));
    if (zr_store_can(m->store, ZARR_STORE_CAP_LOCK))
        ZR_TRY(parent_is_missing(m, path, &missing, err));
    if (missing)
        st = put_parent(m, path, err);
out:
    zr_claim_give(&claim);
    return st;
}

/* Makes groups of those parents that have no metadata. */
static zarr_status make_parents(struct zr_making *m, zarr_error *err)
{
    struct zr_parents *p = &m->missing;

    while (p->n > 0) {
        const size_t end = p->cut[--p->n];

        memcpy(p->path, m->path, end);
        p->path[end] = '\0';
        ZR_CHECK(make_parent(m, p->path, err));
    }
    return ZARR_OK;
}

zarr_status zr_making_write(struct zr_making *m, const struct zr_new_node *node,
                            zarr_error *err)
{
    const struct zr_job_note job = {.command = "create"};
    zarr_status st = ZARR_OK;

    ZR_TRY(make_parents(m, err));
    if (m->is_filled)
        ZR_TRY(zr_job_put(m->store, m->path, &job, true, m->cancel, err));
    m->claim.has_job = m->is_filled;
    st = write_new_node(m, node, err);
    /* a write that failed, such as one that was cancelled, may have been done */
    if (st != ZARR_OK && m->is_filled &&
        (st == ZARR_ERR_EXISTS
             ? zr_job_is_exclusive(m->store)
             : zr_node_must_be_new(m->store, m->path, m->cancel, NULL) == ZARR_OK))
        (void)zr_job_erase(m->store, m->path, m->cancel, NULL);
out:
    return st;
}

void zr_making_end(struct zr_making *m)
{
    if (!m->store)
        return;
    zr_claim_give(&m->claim);
    zr_free(zr_store_context(m->store)->alloc, m->missing.cut);
    zr_free(zr_store_context(m->store)->alloc, m->missing.path);
    m->missing = (struct zr_parents){0};
}

zarr_status zr_parents_check(zarr_store *store, const char *path,
                             const zarr_cancel *cancel, zarr_error *err)
{
    struct zr_making m = {.store = store, .path = path, .cancel = cancel};
    const zarr_status st = find_parents(&m, err);

    zr_making_end(&m);
    return st;
}

zarr_status zr_parents_create(zarr_store *store, const char *path, int32_t format,
                              const zarr_cancel *cancel, zarr_error *err)
{
    struct zr_making m = {
        .store = store, .path = path, .format = format, .cancel = cancel};
    zarr_status st = find_parents(&m, err);

    if (st == ZARR_OK)
        st = make_parents(&m, err);
    zr_making_end(&m);
    return st;
}

zarr_status zr_node_must_be_new(zarr_store *store, const char *path,
                                const zarr_cancel *cancel, zarr_error *err)
{
    const struct zr_find where = {.store = store, .path = path, .cancel = cancel};
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
