/*
 * node/doc.c - metadata documents as bytes: read with one GET, written whole,
 * changed under the store's lock. Most documents fit the buffer inside
 * struct zr_doc, so that opening an array allocates nothing for its text.
 * A change is read, edit, write while holding the key's lock; where a store
 * cannot lock but can compare versions, the write is conditional and the whole
 * is tried again when somebody else was faster. A store that can do neither
 * keeps out only writers through the same handle: it cannot be given more.
 * Thread class: a document is solo; updates may run from many threads.
 */
#include "node/node.h"

enum {
    DOC_READS = 8,   /* a document that grows while it is read */
    DOC_RETRIES = 64 /* conflicts in a row */
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

/* A document's source, with what is worked out from it. */
struct doc_place {
    const struct zr_doc_source *src;
    struct zr_str key;
    uint64_t limit;
    const char *knob; /* of zarr_limits */
};

/* place->key is initialised, also when this fails. */
static zarr_status doc_place_open(struct doc_place *place,
                                  const struct zr_doc_source *src, zarr_error *err)
{
    const zarr_context *ctx = zr_store_context(src->store);
    const zarr_limits *limits = &ctx->limits;

    *place = (struct doc_place){
        .src = src,
        .limit = src->large ? limits->consolidated_bytes : limits->metadata_bytes,
        .knob = src->large ? "consolidated_bytes" : "metadata_bytes"};
    zr_str_init(&place->key, ctx->alloc);
    zr_path_key(&place->key, src->path, src->name);
    return zr_str_status(&place->key, err);
}

static zarr_status doc_room(struct zr_doc *d, uint64_t need,
                            const struct doc_place *place, zarr_error *err)
{
    void *p = NULL;
    size_t bytes = 0;

    if (need > place->limit)
        return zr_fail(err, ZARR_ERR_LIMIT,
                       "%" PRIu64 " bytes are over the limit %s (%" PRIu64 ")", need,
                       place->knob, place->limit);
    if (!zr_to_size(need, &bytes) || !zr_add_size(bytes, 1, &bytes))
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
        .flags = flags,
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

static zarr_status doc_read(struct zr_doc *d, const struct doc_place *place,
                            uint32_t flags, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    zarr_store_op op;

    for (int i = 0; i < DOC_READS; i++) {
        doc_op(d, zr_str_text(&place->key), flags, &op);
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

/* A missing document is often no failure: it leaves err alone. */
static zarr_status doc_read_if_there(struct zr_doc *d, const struct doc_place *place,
                                     uint32_t flags, zarr_error *err)
{
    zarr_error e = {0};
    const zarr_status st = doc_read(d, place, flags, &e);

    return st == ZARR_ERR_NOT_FOUND ? st : zr_pass(err, st, &e);
}

zarr_status zr_doc_get(struct zr_doc *d, const struct zr_doc_source *src, zarr_error *err)
{
    struct doc_place place;
    zarr_status st = doc_place_open(&place, src, err);

    if (st == ZARR_OK)
        st = doc_read_if_there(d, &place, 0, err);
    zr_str_deinit(&place.key);
    return st;
}

zarr_status zr_doc_parse(struct zr_json_doc *json, const struct zr_doc *d,
                         const zarr_limits *limits, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_json_parse(json, d->text, d->bytes, limits, err));
    if (!zr_json_is(json->root, ZR_JSON_OBJECT))
        ZR_TRY(zr_fail(err, ZARR_ERR_CORRUPT, "the document is no JSON object but a %s",
                       zr_json_type_text(json->root)));
out:
    return st;
}

/* ---- writing ------------------------------------------------------------ */

static zarr_status doc_put(const struct doc_place *place, const struct zr_str *text,
                           zarr_store_op *op, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_str_status(text, err));
    if (text->bytes > place->limit)
        ZR_TRY(zr_fail(err, ZARR_ERR_LIMIT,
                       "%zu bytes are over the limit %s (%" PRIu64 ")", text->bytes,
                       place->knob, place->limit));
    op->verb = ZARR_STORE_PUT;
    op->key = zr_str_text(&place->key);
    /* Sources of a PUT are only read. */
    op->mem = zr_mem_of_host((void *)(uintptr_t)zr_str_text(text), text->bytes);
    ZR_TRY(zr_store_run_one(place->src->store, op, err));
out:
    return st;
}

bool zr_doc_by_version(const zarr_store *s)
{
    return !zr_store_can(s, ZARR_STORE_CAP_LOCK) &&
           zr_store_can(s, ZARR_STORE_CAP_CONDITIONAL);
}

static zarr_status update_once(const struct doc_place *place,
                               const struct zr_doc_edit *edit, void *lock,
                               zarr_error *err)
{
    const zarr_allocator *alloc = zr_store_context(place->src->store)->alloc;
    const bool versions = zr_doc_by_version(place->src->store);
    const char *key = zr_str_text(&place->key);
    zarr_store_op op = {.lock = lock, .flags = ZARR_STORE_OP_LOCKED};
    zarr_status st = ZARR_OK;
    struct zr_str text;
    struct zr_doc old;

    zr_doc_init(&old, alloc);
    zr_str_init(&text, alloc);
    st = doc_read_if_there(&old, place, versions ? ZARR_STORE_OP_WANT_VERSION : 0, err);
    if (st == ZARR_ERR_NOT_FOUND)
        st = edit->may_be_new ? ZARR_OK : zr_fail(err, st, "there is no %s", key);
    else if (st == ZARR_OK && edit->must_be_new)
        st = zr_fail(err, ZARR_ERR_EXISTS, "%s exists already", key);
    else if (st == ZARR_OK)
        old.found = true;
    if (st != ZARR_OK)
        goto out;
    ZR_TRY(edit->fn(edit->arg, old.found ? &old : NULL, &text, err));
    if (text.bytes == 0 && !text.failed) /* nothing to change */
        goto out;
    if (versions) {
        op.flags |= ZARR_STORE_OP_IF_VERSION;
        op.version = old.version;
    }
    ZR_TRY(doc_put(place, &text, &op, err));
    if (edit->commit)
        st = edit->commit(edit->arg, err);
    if (st == ZARR_ERR_CONFLICT) /* it is written: not to be tried again */
        st = zr_internal(err);
out:
    zr_str_deinit(&text);
    zr_doc_deinit(&old);
    return st;
}

zarr_status zr_doc_update(const struct zr_doc_source *src, const struct zr_doc_edit *edit,
                          zarr_error *err)
{
    struct doc_place place;
    zarr_status st = doc_place_open(&place, src, err);

    if (st == ZARR_OK)
        st = ZARR_ERR_CONFLICT;
    for (int i = 0; i < DOC_RETRIES && st == ZARR_ERR_CONFLICT; i++) {
        void *lock = NULL;

        st = zr_store_lock(src->store, zr_str_text(&place.key), &lock, err);
        if (st == ZARR_OK)
            st = update_once(&place, edit, lock, err);
        zr_store_unlock(src->store, lock);
        if (edit->give_up && *edit->give_up)
            break;
    }
    zr_str_deinit(&place.key);
    return st;
}

struct put_text {
    const char *text;
    size_t bytes;
};

static zarr_status put_given_text(void *arg, const struct zr_doc *old,
                                  struct zr_str *text, zarr_error *err)
{
    const struct put_text *p = arg;

    ZR_UNUSED(old);
    ZR_UNUSED(err);
    zr_str_append(text, p->text, p->bytes);
    return ZARR_OK;
}

zarr_status zr_doc_create(const struct zr_doc_source *src, const char *text, size_t bytes,
                          bool replace, zarr_error *err)
{
    struct put_text p = {text, bytes};
    const struct zr_doc_edit edit = {
        .fn = put_given_text, .arg = &p, .may_be_new = true, .must_be_new = !replace};

    return zr_doc_update(src, &edit, err);
}

zarr_status zr_key_is_there(zarr_store *store, const char *key, bool *there,
                            zarr_error *err)
{
    zarr_store_op op = {.verb = ZARR_STORE_STAT, .key = key};
    zarr_error e = {0};
    const zarr_status st = zr_store_run_one(store, &op, &e);

    *there = st == ZARR_OK;
    return st == ZARR_ERR_NOT_FOUND ? ZARR_OK : zr_pass(err, st, &e);
}

zarr_status zr_doc_is_there(zarr_store *store, const char *path, const char *name,
                            bool *there, zarr_error *err)
{
    struct zr_str key;
    zarr_status st = ZARR_OK;

    zr_str_init(&key, zr_store_context(store)->alloc);
    zr_path_key(&key, path, name);
    ZR_TRY(zr_str_status(&key, err));
    st = zr_key_is_there(store, zr_str_text(&key), there, err);
out:
    zr_str_deinit(&key);
    return st;
}
