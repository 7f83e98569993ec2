/*
 * node/doc_write.c - changes metadata documents, writes them whole and erases them. A
 * change reads, edits and writes while it holds the key's lock. If a store cannot lock
 * but can compare versions, the write is conditional, and the change is tried again
 * after a while if another writer was faster. A new document is written so on a store
 * that can only make new keys. Otherwise only writers through the same handle are kept
 * out. Thread class: updates may run from many threads.
 */
#include "node/node_int.h"

static zarr_status doc_put(const struct zr_doc_place *place, const struct zr_str *text,
                           zarr_store_op *op, zarr_error *err)
{
    ZR_CHECK(zr_str_status(text, err));
    if (text->bytes > place->limit)
        return zr_fail_limit(err, place->limit_name, place->limit,
                             "the document has %zu bytes", text->bytes);
    if (op->verb != ZARR_STORE_ERASE)
        op->verb = ZARR_STORE_PUT;
    op->flags |= ZARR_STORE_OP_DOCUMENT;
    op->key = zr_str_text(&place->key);
    op->cancel = place->cancel;
    /* The store only reads the source of a PUT. */
    op->mem = zr_mem_of_host((void *)(uintptr_t)zr_str_text(text), text->bytes);
    return zr_store_run_one(place->src->store, op, err);
}

bool zr_doc_new_by_put(const zarr_store *s)
{
    return !zr_store_can(s, ZARR_STORE_CAP_LOCK) &&
           zr_store_can(s, ZARR_STORE_CAP_PUT_NEW);
}

static zarr_status update_once(const struct zr_doc_place *place,
                               const struct zr_doc_edit *edit, void *lock,
                               bool *overtaken, zarr_error *err)
{
    const zarr_allocator *alloc = zr_store_context(place->src->store)->alloc;
    /* also with a lock: the document may have been moved away meanwhile */
    const bool versions = zr_store_can(place->src->store, ZARR_STORE_CAP_PUT_IF_VERSION);
    const char *key = zr_str_text(&place->key);
    zarr_store_op op = {.lock = lock, .flags = ZARR_STORE_OP_LOCKED};
    zarr_status st = ZARR_OK;
    struct zr_str text;
    struct zr_doc old;

    zr_doc_init(&old, alloc);
    zr_str_init(&text, alloc);
    st = zr_doc_read_at(&old, place, versions ? ZARR_STORE_OP_WANT_VERSION : 0, err);
    *overtaken = st == ZARR_ERR_CONFLICT;
    if (st == ZARR_ERR_NOT_FOUND)
        st = edit->may_be_new ? ZARR_OK : zr_fail(err, st, "there is no %s", key);
    else if (st == ZARR_OK && edit->must_be_new)
        st = zr_fail(err, ZARR_ERR_EXISTS, "%s exists already", key);
    else if (st == ZARR_OK)
        old.found = true;
    if (old.found && zr_store_is_by_version(place->src->store))
        st = zr_store_check_version(place->src->store, key, &old.version, err);
    if (st != ZARR_OK)
        goto out;
    ZR_TRY(edit->fn(edit->arg, old.found ? &old : NULL, &text, err));
    if (text.bytes == 0 && !text.failed) /* nothing to change */
        goto out;
    if (old.found ? versions : zr_doc_new_by_put(place->src->store)) {
        op.flags |= ZARR_STORE_OP_IF_VERSION;
        op.version = old.version;
    }
    if (edit->erase && *edit->erase &&
        (!(op.flags & ZARR_STORE_OP_IF_VERSION) ||
         zr_store_can(place->src->store, ZARR_STORE_CAP_ERASE_IF_VERSION)))
        op.verb = ZARR_STORE_ERASE;
    st = doc_put(place, &text, &op, err);
    *overtaken = st == ZARR_ERR_CONFLICT;
    if (op.verb == ZARR_STORE_ERASE && st == ZARR_ERR_NOT_FOUND)
        st = ZARR_OK; /* another writer was faster, with the same */
    ZR_TRY(st);
    if (edit->commit)
        st = edit->commit(edit->arg, err);
    /* the text is written, so the update must not be repeated */
    if (st == ZARR_ERR_CONFLICT)
        st = zr_internal(err);
out:
    zr_str_deinit(&text);
    zr_doc_deinit(&old);
    return st;
}

zarr_status zr_doc_update(const struct zr_doc_source *src, const struct zr_doc_edit *edit,
                          zarr_error *err)
{
    struct zr_doc_place place;
    struct zr_backoff wait;
    const char *key = NULL;
    zarr_status st = zr_doc_place_open(&place, src, err);

    if (st != ZARR_OK)
        goto out;
    place.cancel = edit->cancel;
    key = zr_str_text(&place.key);
    zr_backoff_init(&wait, src->store, key, edit->cancel);
    for (bool overtaken = true; overtaken && st == ZARR_OK;) {
        void *lock = NULL;

        overtaken = false;
        st = zr_store_lock(src->store, key, edit->cancel, &lock, err);
        if (st == ZARR_OK)
            st = update_once(&place, edit, lock, &overtaken, err);
        zr_store_unlock(src->store, lock);
        if (overtaken)
            st = zr_backoff_wait(&wait, st, err);
    }
out:
    zr_str_deinit(&place.key);
    return st;
}

static zarr_status put_given_text(void *arg, const struct zr_doc *old,
                                  struct zr_str *text, zarr_error *err)
{
    const struct zr_str *given = arg;

    ZR_UNUSED(old);
    zr_str_append(text, zr_str_text(given), given->bytes);
    return zr_str_status(given, err); /* a text cut short must not be written */
}

zarr_status zr_doc_write(zarr_store *store, const char *path, const char *name,
                         const struct zr_str *text, bool replace,
                         const zarr_cancel *cancel, zarr_error *err)
{
    const struct zr_doc_source src = {.store = store, .path = path, .name = name};
    const struct zr_doc_edit edit = {.fn = put_given_text,
                                     .arg = (void *)(uintptr_t)text, /* is only read */
                                     .may_be_new = true,
                                     .must_be_new = !replace,
                                     .cancel = cancel};

    return zr_doc_update(&src, &edit, err);
}

zarr_status zr_doc_erase(zarr_store *store, const char *path, const char *name,
                         bool guarded, const zarr_cancel *cancel, zarr_error *err)
{
    zarr_store_op op = {.verb = ZARR_STORE_ERASE,
                        .flags =
                            ZARR_STORE_OP_DOCUMENT | (guarded ? ZR_STORE_OP_GUARDED : 0),
                        .cancel = cancel};
    zarr_error e = {0};
    struct zr_str key;
    zarr_status st = ZARR_OK;

    zr_str_init(&key, zr_store_context(store)->alloc);
    ZR_TRY(zr_path_key(&key, path, name, err));
    op.key = zr_str_text(&key);
    st = zr_store_run_one(store, &op, &e);
    st = st == ZARR_ERR_NOT_FOUND ? ZARR_OK : zr_pass(err, st, &e);
out:
    zr_str_deinit(&key);
    return st;
}
