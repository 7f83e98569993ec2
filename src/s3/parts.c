/*
 * s3/parts.c - the parts of an upload, the functions of a store for values in parts, and
 * a trial of whether the service keeps conditions of completions.
 *
 * An upload that is not completed stays at the service until it is aborted. A caller that
 * cancels does not wait for that, and others do not wait long: `clean` aborts the rest.
 *
 * Thread class: shared; moves to reactors.
 */
#include "s3/s3_int.h"

#include "sched/sched.h"

#include <stdio.h>
#include <string.h>

enum {
    UPLOAD_PART_AGAIN = 3
};

/* ---- parts ---- */

void zr_s3_part_free(struct zr_s3_part *p)
{
    const zarr_allocator *alloc = p->upload->store->reader.env.alloc;

    zr_s3_request_deinit(&p->request);
    zr_str_deinit(&p->query);
    zr_free(alloc, p);
}

bool zr_s3_cannot_copy(const struct zr_s3_request *r, const char *code)
{
    const uint32_t status = r->net.answer.status;

    return status == 400 || status == 405 || status == 501 ||
           zr_streq(code, "NotImplemented") || zr_streq(code, "MethodNotAllowed");
}

/* The ETag of a part, in *etag. A copy tells it, or its failure, in the body. */
static zarr_status judge_part(const struct zr_s3_part *p, struct zr_s3_result *result,
                              const char **etag, zarr_error *err)
{
    const struct zr_s3_request *r = &p->request;
    const char *code = r->fault.code;

    *etag = r->net.answer.etag;
    if (zr_s3_has_succeeded(r) && !p->body) {
        if (zr_s3_result_read(result, r, "CopyPartResult", err) != ZARR_OK)
            return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                           "the service cannot copy this value");
        *etag = result->etag.bytes > 0 ? zr_str_text(&result->etag) : NULL;
        code = result->code;
    }
    if (zr_streq(code, "NoSuchUpload"))
        return zr_fail(err, ZARR_ERR_CONFLICT,
                       "the service has lost the parts of the value");
    if (!p->body && (zr_s3_is_conflict(code) || r->net.answer.status == 412 ||
                     zr_streq(code, "NoSuchKey")))
        return zr_fail(err, ZARR_ERR_CONFLICT,
                       "the source was changed while it was copied");
    if (!p->body && zr_s3_cannot_copy(r, code))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "the service cannot copy this value");
    if (!zr_s3_has_succeeded(r))
        return zr_s3_request_fail(r, err);
    if (*code)
        return zr_fail(err, ZARR_ERR_IO, "the service cannot copy a part: code %s", code);
    if (!*etag || !zr_is_plain_line(*etag))
        return zr_fail(err, ZARR_ERR_IO, "the service tells no ETag of a part");
    return ZARR_OK;
}

static zarr_status note_uploaded_part(const struct zr_s3_part *p, const char *etag,
                                      zarr_error *err)
{
    struct zr_s3_upload *u = p->upload;
    const zarr_allocator *alloc = u->store->reader.env.alloc;
    const size_t n = strlen(etag) + 1;
    const char *checksum = strchr(p->request.checksum, ' ');
    struct zr_s3_part_tags *tags = zr_calloc(alloc, 1, sizeof *tags + n);
    const struct zr_value_part part = {
        .number = p->number, .offset = p->offset, .bytes = p->bytes, .value = tags};
    void *old = NULL; /* of a part that is sent a second time */
    zarr_status st;

    if (!tags)
        return zr_fail_memory(err, sizeof *tags + n);
    memcpy(tags->etag, etag, n);
    if (checksum)
        (void)snprintf(tags->checksum, sizeof tags->checksum, "%s", checksum + 1);
    zr_mutex_lock(&u->mutex);
    st = zr_part_list_put(&u->list, alloc, &part, &old, err);
    zr_mutex_unlock(&u->mutex);
    zr_free(alloc, st == ZARR_OK ? old : tags);
    return st;
}

static void part_start(struct zr_s3_part *p);

static void part_done(struct zr_s3_request *r, zarr_status st, const zarr_error *said)
{
    struct zr_s3_part *p = (struct zr_s3_part *)(void *)r;
    struct zr_s3_result result = {.depth = 0};
    const char *etag = NULL;
    zarr_error err = {0};

    if (st == ZARR_OK)
        st = judge_part(p, &result, &etag, &err);
    else
        (void)zr_pass(&err, st, said);
    if (st == ZARR_ERR_IO && *result.code && p->n_again++ < UPLOAD_PART_AGAIN) {
        zr_s3_result_deinit(&result);
        part_start(p);
        return;
    }
    if (st == ZARR_OK)
        st = etag ? note_uploaded_part(p, etag, &err) : zr_internal(&err);
    if (st == ZARR_ERR_CANCELLED)
        atomic_store(&p->upload->was_cancelled, true);
    zr_s3_result_deinit(&result);
    p->ended(p, st, &err);
}

static void part_start(struct zr_s3_part *p)
{
    zr_s3_request_deinit(&p->request);
    p->request = (struct zr_s3_request){.store = p->upload->store,
                                        .method = "PUT",
                                        .key = p->upload->key,
                                        .query = zr_str_text(&p->query),
                                        .lines = p->lines,
                                        .body = p->body,
                                        .body_bytes = p->body ? (size_t)p->bytes : 0,
                                        .body_hash = p->hash,
                                        .is_repeatable = true,
                                        .is_long = !p->body,
                                        .max_bytes = ZR_S3_ANSWER_MOST,
                                        .cancel = p->cancel,
                                        .tag = p->tag,
                                        .done = part_done};
    zr_s3_send(&p->request);
}

void zr_s3_part_send(struct zr_s3_part *p)
{
    zarr_error err = {0};
    zarr_status st;

    zr_str_init(&p->query, p->upload->store->reader.env.alloc);
    zr_str_printf(&p->query, "partNumber=%" PRIu64 "&%s", p->number,
                  zr_str_text(&p->upload->query));
    st = zr_str_status(&p->query, &err);
    if (st == ZARR_OK && (p->number > ZR_S3_PARTS_MOST || p->bytes > ZR_S3_PART_MOST))
        st = zr_fail(&err, ZARR_ERR_LIMIT,
                     "part %" PRIu64 " of %" PRIu64
                     " bytes: S3 takes 10000 parts of 5 GiB at most",
                     p->number, p->bytes);
    if (st != ZARR_OK) {
        p->ended(p, st, &err);
        return;
    }
    if (!p->body) {
        (void)snprintf(p->range, sizeof p->range,
                       "x-amz-copy-source-range: bytes=%" PRIu64 "-%" PRIu64, p->offset,
                       p->offset + p->bytes - 1);
        p->lines[0] = p->source;
        p->lines[1] = p->source_is;
        p->lines[2] = p->range;
    }
    part_start(p);
}

/* ---- a trial ---- */

static void wait_ended(struct zr_s3_upload *u, zarr_status st, zarr_error *err)
{
    zr_outcome_set(u->user, st, err);
}

static void wait_part_ended(struct zr_s3_part *p, zarr_status st, zarr_error *err)
{
    struct zr_s3_upload *u = p->upload;

    zr_s3_part_free(p);
    wait_ended(u, st, err);
}

/* Completes under a condition that holds or not. *is_right: the service did the same. */
static zarr_status try_completion(struct zr_s3_upload *u, const char *etag, bool holds,
                                  bool *is_right, zarr_error *err)
{
    struct zr_outcome outcome;
    zarr_store_version version;
    zarr_error why = {0};
    zarr_status st;

    zr_s3_make_version(&version, etag);
    zr_outcome_init(&outcome);
    u->user = &outcome;
    u->ended = wait_ended;
    zr_s3_upload_complete(u, &version);
    st = zr_outcome_wait(&outcome, &why);
    *is_right = st == (holds ? ZARR_OK : ZARR_ERR_CONFLICT);
    if (st == ZARR_ERR_CONFLICT || st == ZARR_ERR_UNSUPPORTED)
        return ZARR_OK;
    return zr_pass(err, st, &why);
}

static zarr_status try_part(struct zr_s3_upload *u, zarr_error *err)
{
    struct zr_s3_part *p = zr_calloc(u->store->reader.env.alloc, 1, sizeof *p);
    struct zr_outcome outcome;

    if (!p)
        return zr_fail_memory(err, sizeof *p);
    *p = (struct zr_s3_part){.upload = u,
                             .number = 1,
                             .bytes = 1,
                             .body = "p",
                             .cancel = u->cancel,
                             .tag = u->tag,
                             .ended = wait_part_ended};
    zr_outcome_init(&outcome);
    u->user = &outcome;
    zr_s3_part_send(p);
    return zr_outcome_wait(&outcome, err);
}

static void abort_ended(struct zr_s3_upload *u, zarr_status st, zarr_error *err)
{
    ZR_UNUSED(st, err);
    zr_event_set(u->user);
}

/* Aborts, and waits up to 3 s. Not on a reactor. */
static void abort_now(struct zr_s3_upload *u)
{
    struct zr_event event;

    zr_event_init(&event);
    u->tag = u;
    u->ended = abort_ended;
    u->user = &event;
    zr_s3_upload_abort(u);
    (void)zr_event_wait(&event, UINT64_MAX);
    zr_event_deinit(&event);
}

zarr_status zr_s3_try_upload(struct zr_s3_store *s, const struct zr_s3_trial *trial,
                             enum zr_s3_verdict *out, zarr_error *err)
{
    static const char wrong[] = "\"00000000000000000000000000000000\"";
    struct zr_s3_upload *u = NULL;
    zarr_status st = zr_s3_upload_make(&u, s, trial->key, err);
    bool is_right = false;

    *out = ZR_S3_IGNORES;
    if (st != ZARR_OK || !*trial->etag)
        goto out;
    u->cancel = trial->cancel;
    u->tag = trial->tag;
    ZR_TRY(zr_s3_upload_begin_now(u, err));
    ZR_TRY(try_part(u, err));
    ZR_TRY(try_completion(u, wrong, false, &is_right, err));
    if (!is_right)
        goto out;
    ZR_TRY(try_completion(u, "", false, &is_right, err));
    if (is_right)
        ZR_TRY(try_completion(u, trial->etag, true, &is_right, err));
    *out = is_right ? ZR_S3_KEEPS : ZR_S3_DOUBTFUL;
out:
    if (st != ZARR_ERR_CANCELLED && u && u->query.bytes > 0 && !u->is_committed)
        abort_now(u);
    if (u && !zr_has_forked(u->generation))
        zr_s3_upload_free(u);
    return st;
}

/* ---- functions of the store ---- */

zarr_status zr_s3_begin_parts(void *self, const char *key, void *lock,
                              const zarr_cancel *cancel, void **parts, zarr_error *err)
{
    struct zr_s3_upload *u = NULL;
    zarr_status st = zr_s3_check_key(key, err);

    ZR_UNUSED(lock);
    if (st == ZARR_OK)
        st = zr_s3_upload_make(&u, self, key, err);
    if (st != ZARR_OK)
        return st;
    u->cancel = cancel;
    u->tag = u;
    st = zr_s3_upload_begin_now(u, err);
    if (st == ZARR_OK)
        *parts = u;
    else
        zr_s3_upload_free(u);
    return st == ZARR_OK ? st : zr_prefix_key(err, st, key);
}

/* The parts of a parent process are its own. A cancelled caller waits for nothing. */
void zr_s3_end_parts(void *self, const char *key, void *parts)
{
    struct zr_s3_upload *u = parts;

    ZR_UNUSED(self, key);
    if (!u->is_committed && !atomic_load(&u->was_cancelled) &&
        !zr_has_forked(u->generation) && !zr_net_is_reactor() && !zr_attempt_runs()) {
        u->cancel = NULL;
        abort_now(u);
    }
    zr_s3_upload_free(u);
}

static zarr_status check_upload(const zarr_store_op *op, zarr_error *err)
{
    const struct zr_s3_upload *u = op->parts;

    if (zr_has_forked(u->generation))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "write with the parts of the parent process");
    if (strcmp(u->key, op->key) != 0)
        return zr_fail(err, ZARR_ERR_INVALID, "write with the parts of another key");
    return ZARR_OK;
}

static void put_part_ended(struct zr_s3_part *p, zarr_status st, zarr_error *err)
{
    zarr_store_op *const op = p->op;
    zr_s3_done_fn *const done = p->done;
    void *const arg = p->user;

    if (st == ZARR_OK)
        op->done_bytes = p->bytes;
    zr_s3_part_free(p);
    zr_s3_op_end(op, st, err, done, arg);
}

void zr_s3_put_part(struct zr_s3_store *s, zarr_store_op *op, zr_s3_done_fn *done,
                    void *arg)
{
    struct zr_s3_part *p = NULL;
    void *body = NULL;
    zarr_error err = {0};
    zarr_status st = check_upload(op, &err);

    if (st == ZARR_OK && op->mem.bytes > 0)
        st = zr_mem_host_ptr(s->reader.env.memory, &op->mem, op->mem.bytes, &body, &err);
    if (st == ZARR_OK && !(p = zr_calloc(s->reader.env.alloc, 1, sizeof *p)))
        st = zr_fail_memory(&err, sizeof *p);
    if (st != ZARR_OK) {
        zr_s3_op_end(op, st, &err, done, arg);
        return;
    }
    *p = (struct zr_s3_part){.upload = op->parts,
                             .number = op->part,
                             .offset = op->offset,
                             .bytes = op->mem.bytes,
                             .body = body ? body : "",
                             .cancel = op->cancel,
                             .tag = arg,
                             .ended = put_part_ended,
                             .user = arg,
                             .op = op,
                             .done = done};
    zr_s3_part_send(p);
}

static void commit_ended(struct zr_s3_upload *u, zarr_status st, zarr_error *err)
{
    if (st == ZARR_OK) {
        u->op->done_bytes = u->op->object_bytes = u->op->length;
        if (u->op->flags & ZARR_STORE_OP_WANT_VERSION)
            u->op->version = u->version;
    }
    zr_s3_op_end(u->op, st, err, u->done, u->arg); /* the upload may be gone */
}

void zr_s3_commit(struct zr_s3_store *s, zarr_store_op *op, zr_s3_done_fn *done,
                  void *arg)
{
    struct zr_s3_upload *u = op->parts;
    zarr_error err = {0};
    zarr_status st = check_upload(op, &err);

    if (st == ZARR_OK && !u->is_committed)
        st = zr_part_list_check(&u->list, op->key, op->length, &err);
    if (st == ZARR_OK && !u->is_committed)
        st = zr_s3_conditions_check(s, op, true, arg, &err);
    if (st != ZARR_OK) {
        zr_s3_op_end(op, st, &err, done, arg);
        return;
    }
    u->op = op;
    u->done = done;
    u->arg = arg;
    u->cancel = op->cancel;
    u->tag = arg;
    u->ended = commit_ended;
    if (u->is_committed)
        commit_ended(u, ZARR_OK, &err);
    else
        zr_s3_upload_complete(u,
                              op->flags & ZARR_STORE_OP_IF_VERSION ? &op->version : NULL);
}
