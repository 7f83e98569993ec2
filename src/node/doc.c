/*
 * node/doc.c - reads metadata documents as bytes, with one GET. Most documents fit the
 * buffer inside struct zr_doc, so opening an array allocates nothing for its text.
 * Thread class: solo.
 */
#include "node/node_int.h"

enum {
    DOC_READS = 8 /* attempts if the document grows while it is read */
};

void zr_doc_init(struct zr_doc *d, const zarr_allocator *alloc)
{
    d->small[0] = '\0';
    d->text = d->small;
    d->bytes = 0;
    d->found = false;
    d->big = NULL;
    d->big_bytes = 0;
    d->version = (zarr_store_version){0};
    d->alloc = alloc;
}

void zr_doc_deinit(struct zr_doc *d)
{
    zr_free(d->alloc, d->big);
    zr_doc_init(d, d->alloc);
}

zarr_status zr_doc_place_open(struct zr_doc_place *place, const struct zr_doc_source *src,
                              zarr_error *err)
{
    const zarr_context *ctx = zr_store_context(src->store);
    const zarr_limits *limits = &ctx->limits;

    *place = (struct zr_doc_place){
        .src = src,
        .cancel = src->cancel,
        .limit = src->large ? limits->consolidated_bytes : limits->metadata_bytes,
        .limit_name = src->large ? "consolidated_bytes" : "metadata_bytes"};
    zr_str_init(&place->key, ctx->alloc);
    return zr_path_key(&place->key, src->path, src->name, err);
}

static zarr_status doc_room(struct zr_doc *d, uint64_t need,
                            const struct zr_doc_place *place, zarr_error *err)
{
    void *p = NULL;
    size_t bytes = 0;

    if (need > place->limit)
        return zr_fail_limit(err, place->limit_name, place->limit,
                             "the document has %" PRIu64 " bytes", need);
    if (!zr_fits(need, &bytes) || !zr_add(bytes, 1, &bytes))
        return zr_fail_memory(err, need);
    p = zr_realloc(d->alloc, d->big, bytes);
    if (!p)
        return zr_fail_memory(err, need);
    d->big = p;
    d->big_bytes = bytes;
    return ZARR_OK;
}

static void doc_op(struct zr_doc *d, const char *key, uint32_t flags, zarr_store_op *op)
{
    *op = (zarr_store_op){
        .verb = ZARR_STORE_GET,
        .flags = flags | ZARR_STORE_OP_DOCUMENT,
        .key = key,
        .length = ZARR_STORE_TO_END,
        .mem = d->big ? zr_mem_of_host(d->big, d->big_bytes - 1)
                      : zr_mem_of_host(d->small, sizeof d->small - 1),
    };
}

static void doc_take(struct zr_doc *d, const zarr_store_op *op)
{
    char *text = d->big ? d->big : d->small;

    d->bytes = (size_t)op->done_bytes;
    text[d->bytes] = '\0';
    d->text = text;
    d->version = op->version;
}

static zarr_status doc_read(struct zr_doc *d, const struct zr_doc_place *place,
                            uint32_t flags, zarr_error *err)
{
    const uint64_t far = place->src->large ? ZR_DOC_FAR_LARGE : ZR_DOC_FAR;
    zarr_status st = ZARR_OK;
    zarr_store_op op;

    if (!d->big && !zr_store_can(place->src->store, ZARR_STORE_CAP_FAST_GET))
        ZR_TRY(doc_room(d, ZR_MIN(far, place->limit), place, err));
    for (int i = 0; i < DOC_READS; i++) {
        doc_op(d, zr_str_text(&place->key), flags, &op);
        op.cancel = place->cancel;
        st = zr_store_run_one(place->src->store, &op, err);
        if (st == ZARR_ERR_NOT_FOUND && i > 0)
            st = zr_fail(err, ZARR_ERR_CONFLICT,
                         "the document was deleted while it was read");
        ZR_TRY(st);
        if (op.object_bytes == UINT64_MAX || op.object_bytes <= op.done_bytes) {
            if (op.done_bytes > place->limit)
                ZR_TRY(doc_room(d, op.done_bytes, place, err));
            doc_take(d, &op);
            goto out;
        }
        ZR_TRY(doc_room(d, op.object_bytes, place, err));
    }
    st = zr_fail(err, ZARR_ERR_CONFLICT, "the document changes while it is read");
out:
    return st;
}

zarr_status zr_doc_read_at(struct zr_doc *d, const struct zr_doc_place *place,
                           uint32_t flags, zarr_error *err)
{
    zarr_error e = {0};
    const zarr_status st = doc_read(d, place, flags, &e);

    return st == ZARR_OK || st == ZARR_ERR_NOT_FOUND ? st : zr_pass(err, st, &e);
}

zarr_status zr_doc_get(struct zr_doc *d, const struct zr_doc_source *src, zarr_error *err)
{
    struct zr_doc_place place;
    zarr_status st = ZARR_OK;

    if (src->ahead && src->ahead->n > 0 &&
        zr_docs_ahead_take(src->ahead, d, src->name, &st))
        return st;
    st = zr_doc_place_open(&place, src, err);
    if (st == ZARR_OK)
        st = zr_doc_read_at(d, &place, src->want_version ? ZARR_STORE_OP_WANT_VERSION : 0,
                            err);
    zr_str_deinit(&place.key);
    return st;
}

zarr_status zr_doc_get_beside(struct zr_doc *d, const struct zr_doc_source *src,
                              bool *there, zarr_error *err)
{
    zarr_error e = {0};
    const zarr_status st = zr_doc_get(d, src, &e);

    *there = st == ZARR_OK;
    return st == ZARR_ERR_NOT_FOUND || zr_store_hides(st, &e) ? ZARR_OK
                                                              : zr_pass(err, st, &e);
}

zarr_status zr_doc_wait_for_writer(zarr_store *store, const char *path, const char *name,
                                   const zarr_cancel *cancel, zarr_error *err)
{
    struct zr_str key;
    zarr_status st = ZARR_OK;

    zr_str_init(&key, zr_store_context(store)->alloc);
    ZR_TRY(zr_path_key(&key, path, name, err));
    st = zr_store_wait_for_writer(store, zr_str_text(&key), cancel, err);
out:
    zr_str_deinit(&key);
    return st;
}

zarr_status zr_doc_parse(struct zr_json_doc *json, const struct zr_doc *d,
                         const zarr_limits *limits, zarr_error *err)
{
    ZR_CHECK(zr_json_parse(json, d->text, d->bytes, limits, err));
    if (!zr_json_is(json->root, ZR_JSON_OBJECT))
        return zr_fail(err, ZARR_ERR_CORRUPT,
                       "the document is not a JSON object but a %s",
                       zr_json_type_text(json->root));
    if (json->nan_tokens)
        zr_meta_keep_tokens(json->root);
    return ZARR_OK;
}

zarr_status zr_key_is_there(zarr_store *store, const char *key, uint32_t kind,
                            bool *there, const zarr_cancel *cancel, zarr_error *err)
{
    zarr_store_op op = {
        .verb = ZARR_STORE_STAT, .flags = kind, .key = key, .cancel = cancel};
    zarr_error e = {0};
    const zarr_status st = zr_store_run_one(store, &op, &e);

    *there = st == ZARR_OK;
    return st == ZARR_ERR_NOT_FOUND ? ZARR_OK : zr_pass(err, st, &e);
}

zarr_status zr_doc_is_there(zarr_store *store, const char *path, const char *name,
                            bool *there, const zarr_cancel *cancel, zarr_error *err)
{
    struct zr_str key;
    zarr_status st = ZARR_OK;

    zr_str_init(&key, zr_store_context(store)->alloc);
    ZR_TRY(zr_path_key(&key, path, name, err));
    st = zr_key_is_there(store, zr_str_text(&key), zr_key_kind(name), there, cancel, err);
out:
    zr_str_deinit(&key);
    return st;
}
