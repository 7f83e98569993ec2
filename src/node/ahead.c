/*
 * node/ahead.c - the documents of a v2 group in one journey, for stores that are far
 * away. What cannot be had so is asked for again, one by one, and fails then if it must.
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

void zr_docs_ahead_fetch(struct zr_docs_ahead *a, zarr_store *store, const char *path,
                         bool consolidated)
{
    static const char *const names[] = {ZR_DOC_GROUP, ZR_DOC_ATTRS, ZR_DOC_CONSOLIDATED};
    const size_t n = consolidated ? 3 : 2;
    zarr_store_op op[ZR_DOCS_AHEAD];

    *a = (struct zr_docs_ahead){.store = store, .n = n};
    for (size_t i = 0; i < n; i++)
        a->doc[i].name = names[i];
    if (ahead_begin(a, path, NULL) != ZARR_OK)
        return;
    for (size_t i = 0; i < n; i++)
        op[i] = (zarr_store_op){.verb = ZARR_STORE_GET,
                                .flags = ZARR_STORE_OP_DOCUMENT,
                                .key = zr_str_text(&a->doc[i].key),
                                .length = ZARR_STORE_TO_END,
                                .mem = zr_mem_of_host(a->doc[i].text, a->doc[i].room)};
    (void)zr_store_run(store, op, n, NULL);
    for (size_t i = 0; i < n; i++) {
        struct zr_doc_ahead *d = &a->doc[i];

        d->bytes = (size_t)op[i].done_bytes;
        d->is_there = op[i].status == ZARR_OK && (op[i].object_bytes == UINT64_MAX ||
                                                  op[i].object_bytes <= d->bytes);
        d->is_known = d->is_there || op[i].status == ZARR_ERR_NOT_FOUND;
    }
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
