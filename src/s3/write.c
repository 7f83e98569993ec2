/*
 * s3/write.c - PUT and ERASE. Each PUT has a random id in the metadata of its object. If
 * the answer is lost, or may be one to a repetition, a HEAD tells by the id whether the
 * value is the one of this PUT. If that HEAD fails, too, the error says that the outcome
 * is unknown: it is no CONFLICT.
 * Thread class: shared; a write is solo, and moves from its thread to reactors.
 */
#include "s3/s3_int.h"

#include <stdio.h>
#include <string.h>

enum {
    WRITE_LINES = 3
};

struct s3_write {
    struct zr_s3_request request; /* first */
    zarr_store_op *op;
    zr_s3_done_fn *done;
    void *arg;
    bool is_conditional;
    struct zr_s3_write_id id;
    char condition[ZR_S3_CONDITION_ROOM];
    const char *lines[WRITE_LINES];
    zarr_status st; /* of a PUT whose outcome is asked for */
    zarr_error err;
};

static void write_free(struct s3_write *w)
{
    const zarr_allocator *alloc = w->request.store->reader.env.alloc;

    zr_s3_request_deinit(&w->request);
    zr_free(alloc, w);
}

void zr_s3_op_end(zarr_store_op *op, zarr_status st, zarr_error *err, zr_s3_done_fn *done,
                  void *arg)
{
    if (st != ZARR_OK && !strstr(err->message, op->key))
        zr_prefix_key(err, st, op->key);
    op->status = st;
    op->os_code = st == ZARR_OK ? 0 : err->os_code;
    done(arg, op, st == ZARR_OK ? NULL : err);
}

static void write_end(struct s3_write *w, zarr_status st, zarr_error *err)
{
    zarr_store_op *const op = w->op;
    zr_s3_done_fn *const done = w->done;
    void *const arg = w->arg;

    if (st == ZARR_OK && op->verb == ZARR_STORE_PUT)
        op->done_bytes = op->object_bytes = op->mem.bytes;
    write_free(w);
    zr_s3_op_end(op, st, err, done, arg);
}

/* ---- what answers mean ---- */

/* The failure that the answer to a PUT or DELETE is. */
static zarr_status write_refusal(const struct s3_write *w, zarr_error *err)
{
    const struct zr_s3_request *r = &w->request;
    const uint32_t status = r->net.answer.status;
    const bool is_missing = status == 404 && zr_streq(r->fault.code, "NoSuchKey");
    const bool is_put = w->op->verb == ZARR_STORE_PUT;

    if (is_missing && !is_put)
        return zr_fail(err, ZARR_ERR_NOT_FOUND, "no such key (HTTP 404)");
    if (w->is_conditional && (is_missing || status == 412 || status == 409))
        return zr_fail(err, ZARR_ERR_CONFLICT, "%s (HTTP %" PRIu32 ")",
                       zr_store_version_is_none(&w->op->version)
                           ? "exists already"
                           : "was changed meanwhile",
                       status);
    if (w->is_conditional && status == 501)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "the server refuses conditions of writes (HTTP 501)");
    return zr_s3_request_fail(r, err);
}

/* Whether a PUT that has failed may have been carried out: there is no answer, or one of
 * a server in trouble, or one to a repetition. */
static bool write_is_doubtful(const struct s3_write *w, bool has_answer, zarr_status st)
{
    const uint32_t status = w->request.net.answer.status, n_sent = w->request.n_sent;

    if (w->op->verb != ZARR_STORE_PUT || n_sent == 0)
        return false;
    if (!has_answer)
        return st == ZARR_ERR_IO || st == ZARR_ERR_LIMIT || st == ZARR_ERR_NO_MEMORY ||
               (n_sent > 1 && st != ZARR_ERR_CANCELLED);
    return n_sent > 1 || (status >= 500 && status != 501);
}

/* ---- what became of a PUT ---- */

static void take_version(const struct s3_write *w)
{
    if (w->op->flags & ZARR_STORE_OP_WANT_VERSION)
        zr_http_version_make(&w->op->version, &w->request.net.answer);
}

static void look_done(struct zr_s3_request *r, zarr_status st, const zarr_error *said)
{
    struct s3_write *w = (struct s3_write *)(void *)r;
    const uint32_t status = r->net.answer.status;
    zarr_error err = w->err;

    if (st == ZARR_ERR_CANCELLED) {
        err = *said;
        write_end(w, st, &err);
    } else if (st == ZARR_OK && status == 200 &&
               zr_s3_write_id_fits(&w->id, &r->net.answer)) {
        take_version(w);
        write_end(w, ZARR_OK, &err);
    } else if (st == ZARR_OK && (status == 200 || status == 404)) {
        write_end(w, w->st, &err);
    } else {
        zarr_error why = {0};

        if (st == ZARR_OK)
            (void)zr_s3_request_fail(r, &why);
        else
            why = *said;
        st = zr_fail(&err, ZARR_ERR_IO,
                     "it is unknown whether this write succeeded: %.150s; then: %.150s",
                     w->err.message, why.message);
        write_end(w, st, &err);
    }
}

/* Asks which write the object is from. */
static void write_look(struct s3_write *w)
{
    struct zr_s3_request *r = &w->request;

    zr_s3_request_deinit(r);
    *r = (struct zr_s3_request){.store = r->store,
                                .method = "HEAD",
                                .key = w->op->key,
                                .cancel = w->op->cancel,
                                .tag = w->arg,
                                .done = look_done};
    zr_s3_send(r);
}

/* ---- requests ---- */

static void write_done(struct zr_s3_request *r, zarr_status st, const zarr_error *said)
{
    struct s3_write *w = (struct s3_write *)(void *)r;
    zarr_error err = {0};

    if (said)
        err = *said;
    if (st == ZARR_OK && r->net.answer.status / 100 == 2) {
        take_version(w);
        write_end(w, ZARR_OK, &err);
        return;
    }
    if (st == ZARR_OK)
        st = write_refusal(w, &err);
    if (write_is_doubtful(w, !said, st)) {
        w->st = st;
        w->err = err;
        write_look(w);
    } else {
        write_end(w, st, &err);
    }
}

/* Fills the lines of a request. */
static zarr_status write_conditions(struct s3_write *w, zarr_error *err)
{
    const zarr_store_op *op = w->op;
    size_t n = 0;

    w->is_conditional = op->flags & ZARR_STORE_OP_IF_VERSION;
    if (op->verb == ZARR_STORE_PUT) {
        zr_s3_write_id_make(&w->id);
        w->lines[n++] = w->id.line;
    }
    if (!w->is_conditional)
        return ZARR_OK;
    w->lines[n] = w->condition;
    return zr_s3_put_condition(w->condition, &op->version, err);
}

static zarr_status write_memory(struct s3_write *w, zarr_error *err)
{
    const zarr_store_op *op = w->op;
    struct zr_s3_request *r = &w->request;
    void *bytes = NULL;
    zarr_status st = ZARR_OK;

    if (op->mem.bytes > 0)
        st = zr_mem_host_ptr(r->store->reader.env.memory, &op->mem, op->mem.bytes, &bytes,
                             err);
    if (st != ZARR_OK)
        return st;
    r->body = bytes ? bytes : "";
    return zr_fits(op->mem.bytes, &r->body_bytes) ? ZARR_OK
                                                  : zr_fail_memory(err, op->mem.bytes);
}

void zr_s3_write(struct zr_s3_store *s, zarr_store_op *op, zr_s3_done_fn *done, void *arg)
{
    const bool is_put = op->verb == ZARR_STORE_PUT;
    struct s3_write *w = zr_calloc(s->reader.env.alloc, 1, sizeof *w);
    zarr_error err = {0};
    zarr_status st;

    if (!w) {
        op->status = zr_fail_memory(&err, sizeof *w);
        done(arg, op, &err);
        return;
    }
    w->op = op;
    w->done = done;
    w->arg = arg;
    w->request =
        (struct zr_s3_request){.store = s,
                               .method = is_put ? "PUT" : "DELETE",
                               .key = op->key,
                               .lines = w->lines,
                               .is_repeatable = true,
                               .repeats_409 = !(op->flags & ZARR_STORE_OP_IF_VERSION),
                               .makes_object = is_put,
                               .cancel = op->cancel,
                               .tag = arg,
                               .done = write_done};
    st = write_conditions(w, &err);
    if (st == ZARR_OK && is_put)
        st = write_memory(w, &err);
    if (st == ZARR_OK) /* a server that is not known to keep conditions gets none */
        st = zr_s3_conditions_check(s, op, false, arg, &err);
    if (st == ZARR_OK)
        zr_s3_send(&w->request);
    else
        write_end(w, st, &err);
}
