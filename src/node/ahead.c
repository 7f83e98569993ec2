/*
 * node/ahead.c - the documents of a v2 node in one journey, for stores that are far away.
 * What cannot be had so is asked for again, one by one, and fails then if it must.
 * Thread class: solo.
 */
#include "node/node_int.h"

static uint64_t ahead_room(const zarr_store *store, const char *name)
{
    const zarr_limits *limits = &zr_store_context(store)->limits;

    return zr_streq(name, ZR_DOC_CONSOLIDATED)
               ? ZR_MIN(limits->consolidated_bytes, (uint64_t)ZR_DOC_FAR_LARGE)
               : ZR_MIN(limits->metadata_bytes, (uint64_t)ZR_DOC_FAR);
}

static zarr_status ahead_begin(struct zr_docs_ahead *a, const char *path, zarr_error *err)
{
    const zarr_allocator *alloc = zr_store_context(a->store)->alloc;
    zarr_status st = ZARR_OK;

    for (size_t i = 0; i < a->n; i++) {
        struct zr_doc_ahead *d = &a->doc[i];
        const uint64_t room = ahead_room(a->store, d->name);

        zr_str_init(&d->key, alloc);
        zr_path_key(&d->key, path, d->name);
        ZR_TRY(zr_str_status(&d->key, err));
        d->text = zr_malloc(alloc, (size_t)room + 1);
        if (!d->text)
            ZR_FAIL_MEMORY(err, room);
        d->room = (size_t)room;
    }
out:
    return st;
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

void zr_docs_ahead_fetch(struct zr_docs_ahead *a, const struct zr_find *where)
{
    static const char *const names[] = {ZR_DOC_ARRAY, ZR_DOC_GROUP, ZR_DOC_ATTRS,
                                        ZR_DOC_CONSOLIDATED};
    zarr_store_op op[ZR_DOCS_AHEAD];
    zarr_error e = {0};

    a->store = where->store;
    for (size_t i = 0; i < ZR_COUNT(names); i++)
        if (where->v2 & UINT32_C(1) << i)
            a->doc[a->n++] = (struct zr_doc_ahead){.name = names[i]};
    if (ahead_begin(a, where->path, NULL) != ZARR_OK)
        return;
    for (size_t i = 0; i < a->n; i++)
        op[i] = (zarr_store_op){.verb = ZARR_STORE_GET,
                                .status = ZARR_ERR_NO_MEMORY, /* if it is never sent */
                                .flags = ZARR_STORE_OP_DOCUMENT,
                                .key = zr_str_text(&a->doc[i].key),
                                .length = ZARR_STORE_TO_END,
                                .mem = zr_mem_of_host(a->doc[i].text, a->doc[i].room),
                                .cancel = where->cancel};
    (void)zr_store_run(where->store, op, a->n, &e);
    for (size_t i = 0; i < a->n; i++)
        doc_arrive(&a->doc[i], &op[i], zr_store_hides(e.code, &e));
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
