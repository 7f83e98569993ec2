/*
 * node/job.c - the job object of a node: an interrupted call that copies, deletes or
 * re-encodes leaves it, so that the next one knows what it finds. It is written first
 * and erased last.
 * Thread class: plain functions.
 */
#include "node/node.h"

#include <errno.h>
#include <string.h>

enum {
    /* a longer name is cut, and a hash of all of it follows: names of files have 255
     * bytes, and the name of a temporary node begins with that of the node it replaces */
    CLAIM_NAME_BYTES = 200
};

static zarr_status job_key(struct zr_str *key, zarr_store *store, const char *path,
                           zarr_error *err)
{
    zr_str_init(key, zr_store_context(store)->alloc);
    return zr_path_key(key, path, ZR_DOC_JOB, err);
}

static zarr_status give_text(void *arg, const struct zr_doc *old, struct zr_str *text,
                             zarr_error *err)
{
    const struct zr_str *job = arg;

    ZR_UNUSED(old);
    zr_str_append(text, zr_str_text(job), job->bytes);
    return zr_str_status(job, err);
}

zarr_status zr_job_begin(zarr_store *store, const char *path, const struct zr_str *text,
                         const zarr_cancel *cancel, zarr_error *err)
{
    const struct zr_doc_source src = {
        .store = store, .path = path, .name = ZR_DOC_JOB, .large = true};
    const struct zr_doc_edit edit = {.fn = give_text,
                                     .arg = (void *)(uintptr_t)text, /* is only read */
                                     .may_be_new = true,
                                     .must_be_new = true,
                                     .cancel = cancel};
    zarr_status st = zr_doc_update(&src, &edit, err);

    if (st == ZARR_ERR_EXISTS)
        zr_fail(err, st, "/%s: another call is at work there, or was interrupted", path);
    return st;
}

bool zr_job_is_exclusive(const zarr_store *store)
{
    return zr_store_can(store, ZARR_STORE_CAP_LOCK) || zr_doc_new_by_put(store);
}

static void put_job_member(struct zr_str *text, const char *name, const char *value)
{
    if (!value)
        return;
    zr_str_printf(text, ", \"%s\": ", name);
    zr_json_write_string(text, value, strlen(value));
}

zarr_status zr_job_put(zarr_store *store, const char *path, const struct zr_job_note *job,
                       bool must_be_new, const zarr_cancel *cancel, zarr_error *err)
{
    struct zr_str key, text;
    zarr_status st = job_key(&key, store, path, err);

    zr_str_init(&text, zr_store_context(store)->alloc);
    if (st != ZARR_OK)
        goto out;
    zr_str_puts(&text, "{\"zarrc_job\": 1");
    put_job_member(&text, "command", job->command);
    put_job_member(&text, "source", job->source);
    put_job_member(&text, "destination", job->destination);
    put_job_member(&text, "before", job->before);
    zr_str_puts(&text, "}\n");
    ZR_TRY(zr_str_status(&text, err));
    if (must_be_new)
        st = zr_job_begin(store, path, &text, cancel, err);
    else
        st = zarr_store_put(store, zr_str_text(&key), zr_str_text(&text), text.bytes,
                            cancel, err);
    if (zr_is_store_failure(st)) /* not every store names the key */
        zr_prefix_key(err, st, zr_str_text(&key));
out:
    zr_str_deinit(&text);
    zr_str_deinit(&key);
    return st;
}

zarr_status zr_job_must_not_be(zarr_store *store, const char *path,
                               const zarr_cancel *cancel, zarr_error *err)
{
    bool there = false;

    ZR_CHECK(zr_doc_is_there(store, path, ZR_DOC_JOB, &there, cancel, err));
    if (there)
        return zr_fail(err, ZARR_ERR_EXISTS,
                       "there is no node, but what an interrupted call left (%s): "
                       "zarr_node_delete() removes it",
                       ZR_DOC_JOB);
    return ZARR_OK;
}

void zr_job_found_init(struct zr_job_found *f, const zarr_allocator *alloc)
{
    *f = (struct zr_job_found){.delete = ZR_JOB_NO_DELETE};
    zr_str_init(&f->destination, alloc);
    zr_str_init(&f->before, alloc);
}

void zr_job_found_deinit(struct zr_job_found *f)
{
    zr_str_deinit(&f->destination);
    zr_str_deinit(&f->before);
}

static void read_job(struct zr_job_found *out, const struct zr_json *root,
                     const struct zr_doc *doc)
{
    const struct zr_json *command = zr_json_get(root, "command");
    const char *destination = zr_json_string(zr_json_get(root, "destination"));
    const char *before = zr_json_string(zr_json_get(root, "before"));

    if (zr_json_is_text(command, "rm"))
        out->delete = ZR_JOB_DELETE;
    else if (zr_json_is_text(command, "mv") && !zr_json_get(root, "source"))
        out->delete = ZR_JOB_MOVE;
    if (out->delete == ZR_JOB_MOVE && destination)
        zr_str_puts(&out->destination, destination);
    if (out->delete == ZR_JOB_NO_DELETE)
        zr_str_puts(&out->before, doc->bytes ? doc->text : "{}");
    else if (before)
        zr_str_puts(&out->before, before);
}

zarr_status zr_job_find(struct zr_job_found *out, zarr_store *store, const char *path,
                        const zarr_cancel *cancel, zarr_error *err)
{
    const struct zr_doc_source src = {.store = store,
                                      .path = path,
                                      .name = ZR_DOC_JOB,
                                      .large = true,
                                      .cancel = cancel};
    const zarr_context *ctx = zr_store_context(store);
    struct zr_json_doc json;
    struct zr_doc doc;
    zarr_status st = ZARR_OK;

    zr_doc_init(&doc, ctx->alloc);
    zr_json_doc_init(&json, ctx->alloc);
    st = zr_doc_get(&doc, &src, err);
    if (st == ZARR_OK) {
        (void)!zr_doc_parse(&json, &doc, &ctx->limits, NULL);
        read_job(out, json.root, &doc);
        ZR_TRY(zr_str_status(&out->destination, err));
        ZR_TRY(zr_str_status(&out->before, err));
    }
out:
    zr_json_doc_deinit(&json);
    zr_doc_deinit(&doc);
    return st == ZARR_ERR_NOT_FOUND ? ZARR_OK : st;
}

zarr_status zr_job_restore(zarr_store *store, const char *path,
                           const struct zr_job_found *f, const zarr_cancel *cancel,
                           zarr_error *err)
{
    struct zr_str key;
    zarr_status st = ZARR_OK;

    if (f->before.bytes == 0)
        return zr_job_erase(store, path, cancel, err);
    st = job_key(&key, store, path, err);
    if (st == ZARR_OK)
        st = zarr_store_put(store, zr_str_text(&key), zr_str_text(&f->before),
                            f->before.bytes, cancel, err);
    zr_str_deinit(&key);
    return st;
}

zarr_status zr_job_erase(zarr_store *store, const char *path, const zarr_cancel *cancel,
                         zarr_error *err)
{
    struct zr_str key;
    zarr_error why = {0};
    zarr_status st = job_key(&key, store, path, err);

    if (st == ZARR_OK) {
        st = zarr_store_erase(store, zr_str_text(&key), cancel, &why);
        if (zr_is_store_failure(st))
            zr_prefix_key(&why, st, zr_str_text(&key));
        st = st == ZARR_ERR_NOT_FOUND ? ZARR_OK : zr_pass(err, st, &why);
    }
    zr_str_deinit(&key);
    return st;
}

/* ---- claims ---------------------------------------------------------------- */

/* FNV-1a with 64 bits: every process must give a node the same claim. */
static uint64_t claim_hash(const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return hash;
}

static zarr_status claim_key(struct zr_str *key, const char *path, zarr_error *err)
{
    const size_t parent = zr_path_parent_bytes(path), bytes = strlen(path);
    size_t begin = parent + (parent > 0), n;

    n = ZR_MIN(bytes - begin, (size_t)CLAIM_NAME_BYTES);
    while (begin + n < bytes && ((unsigned char)path[begin + n] & 0xc0) == 0x80)
        n--; /* not inside a character */
    zr_str_append(key, path, begin + n);
    if (begin + n < bytes)
        zr_str_printf(key, "-%016" PRIx64, claim_hash(path + begin));
    zr_str_puts(key, ZR_CLAIM_SUFFIX);
    return zr_str_status(key, err);
}

zarr_status zr_claim_take(struct zr_claim *claim, zarr_store *store, const char *path,
                          const zarr_cancel *cancel, zarr_error *err)
{
    zarr_error why = {0};
    struct zr_str key;
    zarr_status st = ZARR_OK;

    *claim = (struct zr_claim){.store = store};
    zr_str_init(&key, zr_store_context(store)->alloc);
    ZR_TRY(claim_key(&key, path, err));
    st = zr_store_lock_try(store, zr_str_text(&key), cancel, &claim->lock, &why);
    zr_pass(err, st, &why);
    if (st == ZARR_ERR_CONFLICT)
        zr_prefix(err, st, "/%s: another call is at work there", path);
out:
    zr_str_deinit(&key);
    return st;
}

zarr_status zr_claim_to_erase(struct zr_claim *claim, zarr_store *store, const char *path,
                              const zarr_cancel *cancel, zarr_error *err)
{
    zarr_error e = {0};
    const zarr_status st = zr_claim_take(claim, store, path, cancel, &e);

    return st == ZARR_ERR_CONFLICT ? zr_pass(err, st, &e) : ZARR_OK;
}

zarr_status zr_claim_node(struct zr_claim *claim, zarr_store *store, const char *path,
                          const zarr_cancel *cancel, zarr_error *err)
{
    uint32_t kind = ZARR_NODE_NONE;
    int32_t format = 0;
    bool has_job = false;

    (void)!zarr_node_probe(store, path, &kind, &format, cancel, NULL);
    if (format == 0)
        (void)zr_doc_is_there(store, path, ZR_DOC_JOB, &has_job, cancel, NULL);
    return format != 0 || has_job ? zr_claim_to_erase(claim, store, path, cancel, err)
                                  : ZARR_OK;
}

zarr_status zr_claim_wait(struct zr_claim *claim, zarr_store *store, const char *path,
                          const zarr_cancel *cancel, zarr_error *err)
{
    struct zr_str key;
    zarr_status st = ZARR_OK;

    *claim = (struct zr_claim){.store = store};
    zr_str_init(&key, zr_store_context(store)->alloc);
    ZR_TRY(claim_key(&key, path, err));
    st = zr_store_lock(store, zr_str_text(&key), cancel, &claim->lock, err);
out:
    zr_str_deinit(&key);
    return st;
}

void zr_claim_give(struct zr_claim *claim)
{
    if (claim->lock)
        zr_store_unlock(claim->store, claim->lock);
    claim->lock = NULL;
}
