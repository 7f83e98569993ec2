/*
 * node/erase.c - erases a node that is overwritten, also a broken one or the remains of
 * an array, but never files that do not belong to Zarr.
 * Thread class: plain functions.
 */
#include "node/node_int.h"

#include <string.h>

bool zr_key_is_left_over(const char *key)
{
    bool digits = false;

    if (zr_streq(key, ZR_DOC_ATTRS) || zr_streq(key, ZR_DOC_CONSOLIDATED) ||
        zr_streq(key, ZR_DOC_LEFTOVERS) || zr_streq(key, ZR_DOC_JOB) ||
        zr_streq(key, "c"))
        return true;
    if (key[0] == 'c' && (key[1] == '/' || key[1] == '.'))
        key += 2;
    for (; *key; key++) {
        if (*key >= '0' && *key <= '9')
            digits = true;
        else if ((*key == '/' || *key == '.') && digits)
            digits = false;
        else
            return false;
    }
    return digits;
}

struct foreign {
    size_t skip; /* length of the path and its slash */
    struct zr_str name;
};

static int find_foreign(void *user, const zarr_store_item *item)
{
    struct foreign *f = user;

    if (strlen(item->key) <= f->skip || zr_key_is_left_over(item->key + f->skip))
        return 0;
    zr_str_puts(&f->name, item->key + f->skip);
    return 1;
}

zarr_status zr_prefix_may_go(zarr_store *store, const char *path,
                             const zarr_cancel *cancel, zarr_error *err)
{
    struct foreign f = {.skip = *path ? strlen(path) + 1 : 0};
    zarr_status st = ZARR_OK;

    zr_str_init(&f.name, zr_store_context(store)->alloc);
    if (!zr_store_can(store, ZARR_STORE_CAP_LIST))
        goto out;
    ZR_TRY(
        zarr_store_list(store, path, ZARR_LIST_RECURSIVE, find_foreign, &f, cancel, err));
    ZR_TRY(zr_str_status(&f.name, err));
    if (f.name.bytes)
        st =
            zr_fail(err, ZARR_ERR_EXISTS,
                    "there is no array or group to replace, but other keys (\"%.200s\"), "
                    "which are not deleted",
                    zr_str_text(&f.name));
out:
    zr_str_deinit(&f.name);
    return st;
}

zarr_status zr_node_may_go(zarr_store *store, const char *path, bool *is_node,
                           const zarr_cancel *cancel, zarr_error *err)
{
    const struct zr_find where = {.store = store, .path = path, .cancel = cancel};
    struct zr_found found;
    zarr_error e = {0};
    zarr_status st = ZARR_OK;

    zr_found_init(&found, zr_store_context(store)->alloc);
    st = zr_node_find(&found, &where, &e);
    *is_node = found.format != 0; /* a broken node can be replaced, too */
    zr_found_deinit(&found);
    if (*is_node)
        return ZARR_OK;
    if (st != ZARR_ERR_NOT_FOUND)
        return zr_pass(err, st, &e);
    st = zr_doc_is_there(store, path, ZR_DOC_JOB, is_node, cancel, err);
    return st != ZARR_OK || *is_node ? st : zr_prefix_may_go(store, path, cancel, err);
}

/* The documents that go first. */
static const char *const first_names[] = {ZR_DOC_CONSOLIDATED, ZR_DOC_V3, ZR_DOC_ARRAY,
                                          ZR_DOC_GROUP};

static bool goes_first(const char *key)
{
    for (size_t i = 0; i < ZR_COUNT(first_names); i++)
        if (zr_streq(zr_path_name(key), first_names[i]))
            return true;
    return false;
}

/* Makes the erase of a move's source conditional. */
static void expect_source_version(const struct zr_erase_watch *w, zarr_store_op *op)
{
    if (w->find_source_version && w->find_source_version(w->move, op->key, &op->version))
        op->flags |= ZARR_STORE_OP_IF_VERSION;
}

/* The documents of one node in the order in which they are erased, and the attributes of
 * v2, which are erased later. The locks are those of a move. */
enum {
    ATTRS = ZR_COUNT(first_names)
};
struct documents {
    zarr_store *store;
    struct zr_str key[ATTRS + 1];
    void *lock[ATTRS + 1];
};

static zarr_status name_documents(struct documents *d, zarr_store *store,
                                  const char *path, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    *d = (struct documents){.store = store};
    for (size_t i = 0; i <= ATTRS; i++)
        zr_str_init(&d->key[i], zr_store_context(store)->alloc);
    for (size_t i = 0; i <= ATTRS && st == ZARR_OK; i++) {
        st =
            zr_path_key(&d->key[i], path, i < ATTRS ? first_names[i] : ZR_DOC_ATTRS, err);
    }
    return st;
}

static void free_documents(struct documents *d)
{
    for (size_t i = ATTRS + 1; i-- > 0;) {
        zr_store_unlock(d->store, d->lock[i]);
        zr_str_deinit(&d->key[i]);
    }
}

/* Locks document i if a move has copied it; CONFLICT: it has changed since. *there: it
 * was copied and is there; an earlier call for the node may have erased it. */
static zarr_status lock_document(struct documents *d, size_t i,
                                 const struct zr_erase_watch *w, bool *there,
                                 zarr_error *err)
{
    zarr_store_op look = {.verb = ZARR_STORE_STAT,
                          .flags = ZARR_STORE_OP_DOCUMENT | ZARR_STORE_OP_WANT_VERSION,
                          .key = zr_str_text(&d->key[i]),
                          .cancel = w->cancel};
    zarr_store_version copied = {{0}};
    zarr_error e = {0};
    zarr_status st = ZARR_OK;

    *there = false;
    if (!w->find_source_version(w->move, look.key, &copied) ||
        zr_store_version_is_none(&copied))
        return ZARR_OK;
    ZR_TRY(zr_store_lock(d->store, look.key, w->cancel, &d->lock[i], err));
    st = zr_store_run_one(d->store, &look, &e);
    *there = st == ZARR_OK;
    ZR_TRY(st == ZARR_ERR_NOT_FOUND ? ZARR_OK : zr_pass(err, st, &e));
    st = ZARR_OK;
    if ((*there || i == ATTRS) && !zr_store_version_equal(&look.version, &copied))
        st = zr_fail(err, ZARR_ERR_CONFLICT, "%s: changed meanwhile", look.key);
out:
    return st;
}

/* A move must erase all documents of a node or none: a repeated move copies what is left.
 * So all are locked and compared with what was copied, before the first is erased. With
 * documents of v2 the attributes are, too. Locks are taken in the order of a call that
 * makes a node, the attributes last: two calls that take two locks in different order
 * would wait for each other. */
static zarr_status lock_documents(struct documents *d, const struct zr_erase_watch *w,
                                  zarr_error *err)
{
    bool is_v2 = false, there = false;

    if (!w->find_source_version)
        return ZARR_OK;
    for (size_t i = 0; i < ATTRS; i++) {
        ZR_CHECK(lock_document(d, i, w, &there, err));
        is_v2 = is_v2 || (there && !zr_streq(first_names[i], ZR_DOC_V3) &&
                          !zr_streq(first_names[i], ZR_DOC_CONSOLIDATED));
    }
    if (is_v2)
        ZR_CHECK(lock_document(d, ATTRS, w, &there, err));
    return ZARR_OK;
}

/* Erases what a reader can open: the documents of a node, after consolidated metadata
 * beside them. Adds the number of documents to *n. */
static zarr_status erase_documents(zarr_store *store, const char *path,
                                   const struct zr_erase_watch *w, uint64_t *n,
                                   zarr_error *err)
{
    struct documents d;
    zarr_status st = name_documents(&d, store, path, err);

    ZR_TRY(st);
    ZR_TRY(lock_documents(&d, w, err));
    for (size_t i = 0; i < ATTRS; i++) {
        zarr_store_op op = {.verb = ZARR_STORE_ERASE,
                            .flags = ZARR_STORE_OP_DOCUMENT,
                            .key = zr_str_text(&d.key[i]),
                            .lock = d.lock[i],
                            .cancel = w->cancel};
        zarr_error e = {0};

        if (op.lock)
            op.flags |= ZARR_STORE_OP_LOCKED;
        expect_source_version(w, &op);
        st = zr_store_run_one(store, &op, &e);
        *n += st == ZARR_OK;
        ZR_TRY(st == ZARR_ERR_NOT_FOUND ? ZARR_OK : zr_pass(err, st, &e));
        st = ZARR_OK;
    }
out:
    free_documents(&d);
    return st;
}

/* ---- erasing step by step -------------------------------------------------- */

enum {
    ERASE_BATCH = 1000, /* as many as a service erases in one request */
    ERASE_KEYS = 65536  /* keys of one folder in memory at once */
};

struct stepwise {
    zarr_store *store;
    const struct zr_erase_watch *watch;
    const char *job; /* key of the job object */
    uint64_t n_done;
    struct zr_names folders; /* still to do */
    zarr_store_op *op;       /* ERASE_BATCH of them */
};

struct erase_listing {
    struct zr_names *keys, *folders;
    const char *job;
    size_t inner;  /* the keys have numbers alone from here on; 0: folder by folder */
    bool is_other; /* one has not */
    bool has_documents;
    const zarr_cancel *cancel;
    zarr_status st;
    zarr_error *err;
};

static zarr_status note_key(struct zr_names *names, const char *key, zarr_error *err)
{
    const size_t bytes = strlen(key);
    char *copy = NULL;

    ZR_CHECK(zr_grow(names->alloc, &names->item, &names->cap, names->n + 1,
                     sizeof *names->item, err));
    copy = zr_arena_strndup(&names->arena, key, bytes);
    if (!copy)
        return zr_fail_memory(err, bytes + 1);
    names->item[names->n++] = copy;
    return ZARR_OK;
}

static int erase_listed(void *user, const zarr_store_item *item)
{
    struct erase_listing *l = user;

    l->is_other =
        l->inner > 0 &&
        item->key[l->inner + strspn(item->key + l->inner, "0123456789/")] != '\0';
    l->st = zr_cancel_check(l->cancel, l->err);
    if (l->st == ZARR_OK && !l->is_other && !zr_streq(item->key, l->job)) {
        l->st = note_key(item->is_prefix ? l->folders : l->keys, item->key, l->err);
        l->has_documents = l->has_documents || goes_first(item->key);
    }
    return l->st != ZARR_OK || l->is_other || l->keys->n == ERASE_KEYS;
}

/* *any becomes true if one of the keys was there. */
static zarr_status erase_keys(struct stepwise *s, const struct zr_names *keys, bool *any,
                              zarr_error *err)
{
    const struct zr_erase_watch *w = s->watch;
    zarr_store_op *const op = s->op;

    for (size_t i = 0; i < keys->n; i += ERASE_BATCH) {
        const size_t n = ZR_MIN(keys->n - i, (size_t)ERASE_BATCH);

        ZR_CHECK(zr_cancel_check(w->cancel, err));
        for (size_t k = 0; k < n; k++) {
            op[k] = (zarr_store_op){.verb = ZARR_STORE_ERASE,
                                    .flags = zr_key_kind(keys->item[i + k]),
                                    .key = keys->item[i + k],
                                    .cancel = w->cancel};
            expect_source_version(w, &op[k]);
            if (goes_first(op[k].key)) /* erase_documents() erased it: none is left */
                op[k].version = (zarr_store_version){{0}};
        }
        ZR_CHECK(zr_store_run(s->store, op, n, err));
        for (size_t k = 0; k < n; k++)
            *any = *any || op[k].status == ZARR_OK;
        s->n_done += n;
        if (w->progress)
            w->progress(w->user, s->n_done);
    }
    return ZARR_OK;
}

/* Lists a folder. In a store without folders, what is below a folder "c" is listed at
 * once if it looks like chunks: there may be millions of folders. */
static zarr_status list_erased_folder(const struct stepwise *s, const char *path,
                                      struct erase_listing *l, zarr_error *err)
{
    const zarr_cancel *const cancel = s->watch->cancel;
    zarr_status st = ZARR_OK;

    l->is_other = false;
    l->inner = 0;
    if (!zr_store_is_own(s->store) && zr_streq(zr_path_name(path), "c")) {
        l->inner = strlen(path) + 1;
        ZR_TRY(zr_store_list(s->store, path, ZARR_LIST_RECURSIVE, erase_listed, l, cancel,
                             err));
        if (!l->is_other || l->st != ZARR_OK)
            return l->st;
        l->keys->n = 0;
        l->inner = 0;
    }
    st = zr_store_list(s->store, path, ZARR_LIST_DIRECTORY_UNLINKED, erase_listed, l,
                       cancel, err);
out:
    return st == ZARR_OK ? l->st : st;
}

/* Erases the objects of one folder and notes its folders. Chunks may be beside the
 * document of their array, which goes before them. A link is erased itself. */
static zarr_status erase_folder(struct stepwise *s, const char *path, zarr_error *err)
{
    struct zr_names keys;
    struct erase_listing l = {.keys = &keys,
                              .folders = &s->folders,
                              .job = s->job,
                              .cancel = s->watch->cancel,
                              .err = err};
    const size_t n_folders = s->folders.n;
    uint64_t n_documents = 0; /* they count with the other keys */
    bool link = false, more = true;
    zarr_status st = ZARR_OK;

    zr_names_init(&keys, zr_store_context(s->store)->alloc);
    ZR_TRY(zr_store_erase_link(s->store, path, &link, err));
    while (!link && more) {
        bool any = false;

        ZR_TRY(zr_cancel_check(s->watch->cancel, err));
        zr_names_deinit(&keys);
        s->folders.n = n_folders; /* the last listing has all of them */
        ZR_TRY(list_erased_folder(s, path, &l, err));
        more = keys.n == ERASE_KEYS;
        if (l.has_documents || more)
            ZR_TRY(erase_documents(s->store, path, s->watch, &n_documents, err));
        l.has_documents = false;
        ZR_TRY(erase_keys(s, &keys, &any, err));
        more = more && any;
    }
out:
    zr_names_deinit(&keys);
    return st;
}

/* Ends what is done before the first document goes. */
static const zarr_cancel *wait_cancel(const struct zr_erase_watch *watch)
{
    return watch->wait ? watch->wait : watch->cancel;
}

/* What must work before anything is deleted. If it fails, the node is as it was. */
static zarr_status prepare_erase(zarr_store *store, const char *path,
                                 const struct zr_erase_watch *watch, zarr_error *err)
{
    const zarr_cancel *wait = wait_cancel(watch);

    if (!zr_store_can(store, ZARR_STORE_CAP_LIST))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "stores of kind %s cannot list what is to be deleted",
                       zr_store_name(store));
    ZR_CHECK(zr_cancel_check(watch->cancel, err));
    ZR_CHECK(zr_store_wait_for_writers(store, path, wait, err));
    if (watch->consolidated)
        ZR_CHECK(zr_consolidated_remove(store, path, wait, err));
    return ZARR_OK;
}

/* A full disk must not prevent a delete, nor an old job object that cannot be read. */
static void put_delete_job(const struct stepwise *s, const char *path,
                           struct zr_job_found *old, const zarr_cancel *wait)
{
    struct zr_job_note job = {.command = s->watch->find_source_version ? "mv" : "rm",
                              .destination = s->watch->destination};

    if (zr_job_find(old, s->store, path, wait, NULL) == ZARR_OK && old->before.bytes > 0)
        job.before = zr_str_text(&old->before);
    (void)zr_job_put(s->store, path, &job, false, wait, NULL);
}

/* *may_stay: it failed and the node, or what changed of it, stays. */
static zarr_status erase_all(struct stepwise *s, const char *path, bool *may_stay,
                             zarr_error *err)
{
    zarr_store *store = s->store;
    const zarr_cancel *wait = wait_cancel(s->watch);
    struct zr_job_found old;
    zarr_status st = ZARR_OK;

    zr_job_found_init(&old, zr_store_context(store)->alloc);
    put_delete_job(s, path, &old, wait);
    st = zr_cancel_check(wait, err);
    if (st == ZARR_OK)
        st = erase_documents(store, path, s->watch, &s->n_done, err);
    *may_stay = st != ZARR_OK && s->n_done == 0;
    if (st == ZARR_OK)
        st = erase_folder(s, path, err);
    while (st == ZARR_OK && s->folders.n > 0)
        st = erase_folder(s, s->folders.item[--s->folders.n], err);
    if (st == ZARR_OK) /* folders, temporary files, job */
        st = s->watch->find_source_version
                 ? zr_store_erase_rest(store, path, s->job, s->watch->cancel, err)
                 : zr_store_erase_prefix(store, path, s->watch->cancel, err);
    *may_stay = *may_stay || st == ZARR_ERR_CONFLICT; /* a repeated move keeps a change */
    /* The job of an earlier delete stays: its documents may be gone. One that stays after
     * a conflict would let a repeated move delete the change. */
    if (*may_stay && (old.delete == ZR_JOB_NO_DELETE || st == ZARR_ERR_CONFLICT))
        (void)zr_job_restore(store, path, &old, st == ZARR_ERR_CONFLICT ? NULL : wait,
                             NULL);
    zr_job_found_deinit(&old);
    return st;
}

zarr_status zr_node_erase_watched(zarr_store *store, const char *path,
                                  const struct zr_erase_watch *watch, zarr_error *err)
{
    const zarr_allocator *alloc = zr_store_context(store)->alloc;
    struct stepwise s = {.store = store, .watch = watch};
    struct zr_str job;
    bool link = false, may_stay = true;
    zarr_status st = ZARR_OK;

    zr_names_init(&s.folders, alloc);
    zr_str_init(&job, alloc);
    s.op = zr_malloc(alloc, ERASE_BATCH * sizeof *s.op);
    if (!s.op)
        ZR_FAIL_MEMORY(err, ERASE_BATCH * sizeof *s.op);
    ZR_TRY(zr_path_key(&job, path, ZR_DOC_JOB, err));
    s.job = zr_str_text(&job);
    ZR_TRY(prepare_erase(store, path, watch, err));
    st = zr_store_erase_link(store, path, &link, err);
    if (st == ZARR_OK && !link)
        st = erase_all(&s, path, &may_stay, err);
    if (st != ZARR_OK && may_stay && watch->consolidated)
        (void)zr_consolidated_restore(store, path, NULL);
out:
    zr_free(alloc, s.op);
    zr_str_deinit(&job);
    zr_names_deinit(&s.folders);
    return st;
}

zarr_status zr_node_erase_old(zarr_store *store, const char *path, bool is_node,
                              bool consolidated, const zarr_cancel *wait, zarr_error *err)
{
    const struct zr_erase_watch watch = {.consolidated = consolidated, .wait = wait};

    if (is_node)
        return zr_node_erase_watched(store, path, &watch, err);
    /* without a document, chunks show no elements, and need no job object */
    if (consolidated)
        ZR_CHECK(zr_consolidated_remove(store, path, wait, err));
    return zr_store_erase_prefix(store, path, wait, err);
}
