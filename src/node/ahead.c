/*
 * node/ahead.c - documents of one node or of several in one journey, for stores that are
 * far away. What cannot be had so is asked for again, one by one, and fails then if it
 * must. Thread class: solo.
 */
#include "node/node_int.h"

static uint64_t ahead_room(const zarr_store *store, const char *name)
{
    const zarr_limits *limits = &zr_store_context(store)->limits;

    return zr_streq(name, ZR_DOC_CONSOLIDATED)
               ? ZR_MIN(limits->consolidated_bytes, (uint64_t)ZR_DOC_FAR_LARGE)
               : ZR_MIN(limits->metadata_bytes, (uint64_t)ZR_DOC_FAR);
}

/* Adds a document to those of a node, or leaves it out if there is no memory. */
static struct zr_doc_ahead *ahead_add(struct zr_docs_ahead *a, const char *path,
                                      const char *name)
{
    const zarr_allocator *alloc = zr_store_context(a->store)->alloc;
    const uint64_t room = ahead_room(a->store, name);
    struct zr_doc_ahead *d = &a->doc[a->n++];

    *d = (struct zr_doc_ahead){.name = name, .room = (size_t)room};
    zr_str_init(&d->key, alloc);
    (void)zr_path_key(&d->key, path, name, NULL);
    d->text = zr_malloc(alloc, d->room + 1);
    return d->text && zr_str_status(&d->key, NULL) == ZARR_OK ? d : NULL;
}

/* hides: a service that refuses access to a document may not have it. That is the same
 * for one beside the document that makes the node, as zr_doc_get_beside() has it. */
static void doc_arrive(struct zr_doc_ahead *d, const zarr_store_op *op, bool hides)
{
    const bool is_beside =
        zr_streq(d->name, ZR_DOC_ATTRS) || zr_streq(d->name, ZR_DOC_CONSOLIDATED);

    d->bytes = (size_t)op->done_bytes;
    d->is_there = op->status == ZARR_OK &&
                  (op->object_bytes == UINT64_MAX || op->object_bytes <= d->bytes);
    d->is_known = d->is_there || op->status == ZARR_ERR_NOT_FOUND ||
                  (op->status == ZARR_ERR_DENIED && hides && is_beside);
}

void zr_docs_ahead_fetch(const struct zr_ahead_node *node, size_t n, zarr_store *store,
                         uint32_t which, const zarr_cancel *cancel)
{
    static const char *const names[ZR_DOCS_AHEAD] = {
        ZR_DOC_ARRAY, ZR_DOC_GROUP, ZR_DOC_ATTRS, ZR_DOC_CONSOLIDATED, ZR_DOC_V3};
    const zarr_allocator *alloc = zr_store_context(store)->alloc;
    zarr_store_op *op = zr_calloc(alloc, n, ZR_DOCS_AHEAD * sizeof *op);
    struct zr_doc_ahead **doc = zr_calloc(alloc, n, ZR_DOCS_AHEAD * sizeof *doc);
    zarr_error e = {0};
    size_t count = 0;

    for (size_t i = 0; op && doc && i < n; i++) {
        node[i].ahead->store = store;
        for (size_t j = 0; j < ZR_COUNT(names); j++)
            if (which & UINT32_C(1) << j &&
                (doc[count] = ahead_add(node[i].ahead, node[i].path, names[j])) != NULL)
                count++;
    }
    for (size_t i = 0; i < count; i++)
        op[i] = (zarr_store_op){.verb = ZARR_STORE_GET,
                                .status = ZARR_ERR_NO_MEMORY, /* if it is never sent */
                                .flags = ZARR_STORE_OP_DOCUMENT,
                                .key = zr_str_text(&doc[i]->key),
                                .length = ZARR_STORE_TO_END,
                                .mem = zr_mem_of_host(doc[i]->text, doc[i]->room),
                                .cancel = cancel};
    if (count > 0)
        (void)zr_store_run(store, op, count, &e);
    for (size_t i = 0; i < count; i++)
        doc_arrive(doc[i], &op[i], zr_store_hides(e.code, &e));
    zr_free(alloc, op);
    zr_free(alloc, doc);
}

bool zr_docs_ahead_has(const struct zr_docs_ahead *a, const char *name)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->doc[i].is_there && zr_streq(a->doc[i].name, name))
            return true;
    return false;
}

bool zr_docs_ahead_take(struct zr_docs_ahead *a, struct zr_doc *d, const char *name,
                        zarr_status *st)
{
    for (size_t i = 0; i < a->n; i++) {
        struct zr_doc_ahead *early = &a->doc[i];

        if (!early->is_known || !zr_streq(early->name, name))
            continue;
        early->is_known = false;
        *st = early->is_there ? ZARR_OK : ZARR_ERR_NOT_FOUND;
        if (!early->is_there)
            return true;
        zr_doc_deinit(d);
        d->big = early->text; /* moved */
        early->text = NULL;
        d->big_bytes = early->room + 1;
        d->bytes = early->bytes;
        d->big[d->bytes] = '\0';
        d->text = d->big;
        return true;
    }
    return false;
}

void zr_docs_ahead_deinit(struct zr_docs_ahead *a)
{
    for (size_t i = 0; i < a->n; i++) {
        zr_str_deinit(&a->doc[i].key);
        zr_free(zr_store_context(a->store)->alloc, a->doc[i].text);
    }
}
