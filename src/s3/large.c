/*
 * s3/large.c - values that the store itself divides: a PUT above 64 MiB goes up in parts,
 * several at once, whose bytes stay where the caller has them. A COPY is made by the
 * service: in one request up to 512 MiB, else in parts, all of one version of the source.
 * A service may send nothing while it copies, so one request does not last long.
 *
 * Each operation is one block, freed before its done().
 * Thread class: shared; moves from its thread to reactors.
 */
#include "s3/s3_int.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    UPLOADS_AT_ONCE = 16, /* parts on their way */
    COPY_AGAIN = 3
};
#define COPY_PART_BYTES (UINT64_C(512) << 20)

struct s3_large {
    struct zr_s3_request request; /* first: of a COPY, for all but its upload */
    struct zr_s3_store *store;
    struct zr_s3_upload *upload;
    zarr_store_op *op;
    zr_s3_done_fn *done;
    void *arg;
    const uint8_t *body; /* NULL: a COPY */
    uint8_t *hashes;     /* of the parts of the body, since reactors send them */
    uint64_t bytes, part_bytes, n_parts;
    atomic_uint n_holders; /* parts on their way, and who starts some */
    /* under the upload's mutex */
    uint64_t next;
    zarr_status st;
    zarr_error err;
    /* a COPY */
    struct zr_s3_store *from;
    struct zr_str source; /* a line */
    char source_is[sizeof "x-amz-copy-source-if-match: " + ZR_HTTP_ETAG_ROOM];
    const char *lines[3];
    zarr_store_version version; /* of the source */
    uint32_t n_again, n_looks;
    bool may_be_done; /* the copy may be there already, and changed since */
};

/* ---- the end ---- */

static void large_free(struct s3_large *l)
{
    const zarr_allocator *alloc = l->store->reader.env.alloc;

    zr_s3_upload_free(l->upload);
    zr_s3_request_deinit(&l->request);
    zr_str_deinit(&l->source);
    zr_free(alloc, l->hashes);
    zr_free(alloc, l);
}

/* Ends the operation. The store may be gone afterwards. err: not of l. */
static void large_op_end(struct s3_large *l, zarr_status st, zarr_error *err)
{
    zarr_store_op *const op = l->op;
    zr_s3_done_fn *const done = l->done;
    void *const arg = l->arg;

    if (st == ZARR_OK)
        op->done_bytes = op->object_bytes = l->bytes;
    large_free(l);
    zr_s3_op_end(op, st, err, done, arg);
}

static void take_large_version(const struct s3_large *l,
                               const zarr_store_version *version)
{
    if (l->op->flags & ZARR_STORE_OP_WANT_VERSION)
        l->op->version = *version;
}

static void copy_look_done(struct zr_s3_request *r, zarr_status st,
                           const zarr_error *said);
static void copy_look(struct s3_large *l,
                      void (*done)(struct zr_s3_request *r, zarr_status st,
                                   const zarr_error *err));

/* Ends the operation, unless it is the COPY of any version of a source that was changed
 * meanwhile: the new one is copied then. */
static void large_end_or_again(struct s3_large *l, zarr_status st, zarr_error *err)
{
    if (l->body || st != ZARR_ERR_CONFLICT || l->may_be_done ||
        !zr_store_version_is_none(&l->op->source->version) ||
        l->n_looks++ >= COPY_AGAIN) {
        large_op_end(l, st, err);
        return;
    }
    zr_s3_upload_free(l->upload);
    l->upload = NULL;
    l->next = 0;
    l->st = ZARR_OK;
    copy_look(l, copy_look_done);
}

/* `clean` aborts what is left. */
static void large_aborted(struct zr_s3_upload *u, zarr_status st, zarr_error *said)
{
    struct s3_large *l = u->user;
    zarr_error err = l->err;

    ZR_UNUSED(st, said);
    large_end_or_again(l, l->st, &err);
}

/* Ends an operation that failed. A caller that cancels does not wait for the abort. */
static void large_fail(struct s3_large *l, zarr_status st, const zarr_error *why)
{
    struct zr_s3_upload *u = l->upload;
    zarr_error err = *why;

    if (!u || u->query.bytes == 0 || st == ZARR_ERR_CANCELLED ||
        zr_is_cancelled(l->op->cancel)) {
        large_op_end(l, st, &err);
        return;
    }
    l->st = st;
    l->err = err;
    u->ended = large_aborted;
    zr_s3_upload_abort(u);
}

/* ---- parts ---- */

static void large_completed(struct zr_s3_upload *u, zarr_status st, zarr_error *said)
{
    struct s3_large *l = u->user;
    zarr_error err = *said;

    if (st != ZARR_OK) {
        large_fail(l, st, &err);
        return;
    }
    take_large_version(l, &u->version);
    large_op_end(l, ZARR_OK, &err);
}

static void large_complete(struct s3_large *l)
{
    const zarr_store_op *op = l->op;

    l->may_be_done = true;
    l->upload->ended = large_completed;
    zr_s3_upload_complete(l->upload,
                          op->flags & ZARR_STORE_OP_IF_VERSION ? &op->version : NULL);
}

static void copy_look_again(struct s3_large *l);

/* Gives a hold back. The last one goes on. */
static void large_release(struct s3_large *l)
{
    if (atomic_fetch_sub(&l->n_holders, 1) > 1)
        return;
    if (l->st != ZARR_OK)
        large_fail(l, l->st, &l->err);
    else if (l->body)
        large_complete(l);
    else
        copy_look_again(l);
}

static void large_part_ended(struct zr_s3_part *p, zarr_status st, zarr_error *err);

static uint8_t *hash_at(const struct s3_large *l, uint64_t part)
{
    return l->hashes + (size_t)part * ZR_SHA256_BYTES;
}

/* Makes the next part, and holds for it. NULL: there is none, or one has failed. */
static struct zr_s3_part *large_next(struct s3_large *l)
{
    struct zr_s3_part *p = NULL;
    uint64_t at;

    zr_mutex_lock(&l->upload->mutex);
    if (l->st == ZARR_OK && l->next < l->n_parts) {
        p = zr_calloc(l->store->reader.env.alloc, 1, sizeof *p);
        if (!p)
            l->st = zr_fail_memory(&l->err, sizeof *p);
    }
    if (p) {
        at = l->next++ * l->part_bytes;
        *p = (struct zr_s3_part){.upload = l->upload,
                                 .number = l->next,
                                 .offset = at,
                                 .bytes = ZR_MIN(l->part_bytes, l->bytes - at),
                                 .body = l->body ? l->body + at : NULL,
                                 .hash = l->body ? hash_at(l, l->next - 1) : NULL,
                                 .source = zr_str_text(&l->source),
                                 .source_is = l->source_is,
                                 .cancel = l->op->cancel,
                                 .tag = l->arg,
                                 .ended = large_part_ended,
                                 .user = l};
        atomic_fetch_add(&l->n_holders, 1);
    }
    zr_mutex_unlock(&l->upload->mutex);
    return p;
}

static void large_part_ended(struct zr_s3_part *p, zarr_status st, zarr_error *err)
{
    struct s3_large *l = p->user;

    zr_s3_part_free(p);
    if (st != ZARR_OK) {
        zr_mutex_lock(&l->upload->mutex);
        if (l->st == ZARR_OK) {
            l->st = st;
            l->err = *err;
        }
        zr_mutex_unlock(&l->upload->mutex);
    }
    p = large_next(l);
    if (p)
        zr_s3_part_send(p);
    large_release(l);
}

static zarr_status fail_uncopied(zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_UNSUPPORTED, "the service cannot copy this value");
}

static void large_begun(struct zr_s3_upload *u, zarr_status st, zarr_error *said)
{
    struct s3_large *l = u->user;
    zarr_error err = *said;
    struct zr_s3_part *p;

    if (st != ZARR_OK) {
        if (!l->body && st != ZARR_ERR_CANCELLED) /* a read or a write says why */
            st = fail_uncopied(&err);
        large_fail(l, st, &err);
        return;
    }
    atomic_init(&l->n_holders, 1);
    for (int i = 0; i < UPLOADS_AT_ONCE && (p = large_next(l)); i++)
        zr_s3_part_send(p);
    large_release(l);
}

static zarr_status hash_parts(struct s3_large *l, zarr_error *err)
{
    l->hashes =
        zr_calloc(l->store->reader.env.alloc, (size_t)l->n_parts, ZR_SHA256_BYTES);
    if (!l->hashes)
        return zr_fail_memory(err, l->n_parts * ZR_SHA256_BYTES);
    for (uint64_t i = 0; i < l->n_parts; i++) {
        const uint64_t at = i * l->part_bytes;

        ZR_CHECK(zr_cancel_check(l->op->cancel, err));
        if (zr_net_scope_is_cancelled(l->store->reader.net, l->arg))
            return zr_fail(err, ZARR_ERR_CANCELLED, "cancelled");
        ZR_CHECK(zr_sha256(hash_at(l, i), l->body + at,
                           (size_t)ZR_MIN(l->part_bytes, l->bytes - at), err));
    }
    return ZARR_OK;
}

/* Begins the upload of l->bytes > 0. */
static void large_upload(struct s3_large *l, uint64_t least)
{
    const uint64_t mib = UINT64_C(1) << 20;
    zarr_error err = {0};
    zarr_status st = ZARR_OK;

    l->part_bytes = ZR_MAX(
        least, zr_ceil_div_u64(zr_ceil_div_u64(l->bytes, ZR_S3_PARTS_MOST), mib) * mib);
    l->n_parts = zr_ceil_div_u64(l->bytes, l->part_bytes);
    if (l->body)
        st = hash_parts(l, &err);
    if (st == ZARR_OK)
        st = zr_s3_upload_make(&l->upload, l->store, l->op->key, &err);
    if (st != ZARR_OK) {
        large_op_end(l, st, &err);
        return;
    }
    if (!l->body) /* of a copy the service knows the bytes */
        l->upload->has_checksums = false;
    l->upload->cancel = l->op->cancel;
    l->upload->tag = l->arg;
    l->upload->user = l;
    l->upload->ended = large_begun;
    zr_s3_upload_begin(l->upload);
}

static struct s3_large *large_make(struct zr_s3_store *s, zarr_store_op *op,
                                   zr_s3_done_fn *done, void *arg)
{
    struct s3_large *l = zr_calloc(s->reader.env.alloc, 1, sizeof *l);
    zarr_error err = {0};

    if (!l) {
        op->status = zr_fail_memory(&err, sizeof *l);
        done(arg, op, &err);
        return NULL;
    }
    l->store = s;
    l->op = op;
    l->done = done;
    l->arg = arg;
    zr_str_init(&l->source, s->reader.env.alloc);
    return l;
}

void zr_s3_put_large(struct zr_s3_store *s, zarr_store_op *op, zr_s3_done_fn *done,
                     void *arg)
{
    struct s3_large *l = large_make(s, op, done, arg);
    zarr_error err = {0};
    void *body = NULL;
    zarr_status st;

    if (!l)
        return;
    st = zr_mem_host_ptr(s->reader.env.memory, &op->mem, op->mem.bytes, &body, &err);
    l->body = body;
    l->bytes = op->mem.bytes;
    if (st == ZARR_OK)
        st = zr_s3_conditions_check(s, op, true, arg, &err);
    if (st == ZARR_ERR_UNSUPPORTED && l->body && l->bytes <= ZR_S3_PART_MOST) {
        large_free(l); /* in one request it may have a condition */
        zr_s3_write(s, op, done, arg);
    } else if (st == ZARR_OK) {
        large_upload(l, ZR_S3_PART_BYTES);
    } else {
        large_op_end(l, st, &err);
    }
}

/* ---- copies ---- */

/* Whether a service would read the source with the rights of the destination's requests,
 * and write the same headers. */
static bool is_same_service(struct zr_s3_store *s, struct zr_s3_store *from)
{
    struct zr_s3_key *a, *b;
    bool is_same = s->is_anonymous == from->is_anonymous &&
                   s->requester_pays == from->requester_pays &&
                   s->n_lines == from->n_lines &&
                   (s->endpoint.host != NULL) == (from->endpoint.host != NULL);

    if (s == from)
        return true;
    for (size_t i = 0; is_same && i < s->n_lines; i++)
        is_same = zr_streq(s->lines[i], from->lines[i]);
    if (is_same && s->endpoint.host)
        is_same = zr_streq(s->endpoint.scheme, from->endpoint.scheme) &&
                  zr_streq(s->endpoint.host, from->endpoint.host) &&
                  s->endpoint.port == from->endpoint.port &&
                  zr_streq(s->endpoint.path, from->endpoint.path);
    a = zr_s3_keys_get(&s->keys);
    b = zr_s3_keys_get(&from->keys);
    if (a || b)
        is_same =
            is_same && a && b && zr_streq(a->id, b->id) && zr_streq(a->secret, b->secret);
    zr_s3_key_free(a);
    zr_s3_key_free(b);
    return is_same;
}

/* A key of the customer would have to be told for the source, too. */
static bool has_customer_key(const struct zr_s3_store *s)
{
    static const char name[] = "x-amz-server-side-encryption-customer-";

    for (size_t i = 0; i < s->n_lines; i++)
        if (strncasecmp(s->lines[i], name, strlen(name)) == 0)
            return true;
    return false;
}

static void copy_request(struct s3_large *l, const char *method)
{
    zr_s3_request_deinit(&l->request);
    l->request = (struct zr_s3_request){.store = l->store,
                                        .method = method,
                                        .key = l->op->key,
                                        .is_repeatable = true,
                                        .max_bytes = ZR_S3_ANSWER_MOST,
                                        .cancel = l->op->cancel,
                                        .tag = l->arg};
}

static void copy_look(struct s3_large *l,
                      void (*done)(struct zr_s3_request *r, zarr_status st,
                                   const zarr_error *err))
{
    const char *const key = l->op->source->key;

    copy_request(l, "HEAD");
    l->request.store = l->from;
    l->request.key = key;
    l->request.done = done;
    zr_s3_send(&l->request);
}

/* Judges the answer to a HEAD of the source. */
static zarr_status judge_source(const struct s3_large *l, zarr_store_version *version,
                                zarr_error *err)
{
    const struct zr_s3_request *r = &l->request;

    if (r->net.answer.status == 404 && atomic_load(&l->from->reader.has_found))
        return zr_fail(err, ZARR_ERR_NOT_FOUND, "%s: no such key (HTTP 404)",
                       l->op->source->key);
    if (r->net.answer.status != 200 || r->net.answer.length == UINT64_MAX)
        return fail_uncopied(err); /* a read says why */
    atomic_store(&l->from->reader.has_found, true);
    zr_http_version_make(version, &r->net.answer);
    return ZARR_OK;
}

static zarr_status fail_changed(zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_CONFLICT, "the source was changed while it was copied");
}

static void copy_look_again_done(struct zr_s3_request *r, zarr_status st,
                                 const zarr_error *said)
{
    struct s3_large *l = (struct s3_large *)(void *)r;
    zarr_store_version version = {{0}};
    zarr_error err = {0};

    st = st == ZARR_OK ? judge_source(l, &version, &err) : zr_pass(&err, st, said);
    if (st == ZARR_ERR_NOT_FOUND ||
        (st == ZARR_OK && (!zr_store_version_equal(&version, &l->version) ||
                           r->net.answer.length != l->bytes)))
        st = fail_changed(&err);
    if (st == ZARR_OK)
        large_complete(l);
    else
        large_fail(l, st, &err);
}

/* A service that ignores the conditions of parts may have mixed two versions. */
static void copy_look_again(struct s3_large *l)
{
    copy_look(l, copy_look_again_done);
}

static void copy_send(struct s3_large *l);

/* Judges the answer to a CopyObject. *again: the same may succeed. */
static zarr_status judge_copy(const struct s3_large *l, struct zr_s3_result *result,
                              bool *again, zarr_error *err)
{
    const struct zr_s3_request *r = &l->request;
    const uint32_t status = r->net.answer.status;
    const char *code = r->fault.code;

    if (status / 100 == 2) {
        if (zr_s3_result_read(result, r, "CopyObjectResult", err) != ZARR_OK)
            return fail_uncopied(err);
        code = result->code;
        if (!*code)
            return ZARR_OK;
    }
    if (zr_s3_is_conflict(code) || status == 412)
        return fail_changed(err);
    if (zr_streq(code, "NoSuchKey"))
        return zr_fail(err, ZARR_ERR_NOT_FOUND, "%s: no such key", l->op->source->key);
    if (zr_s3_cannot_copy(r, code))
        return fail_uncopied(err);
    if (status / 100 != 2)
        return zr_s3_request_fail(r, err);
    *again = true;
    return zr_fail(err, ZARR_ERR_IO, "the service cannot copy the value: code %s", code);
}

static void copy_done(struct zr_s3_request *r, zarr_status st, const zarr_error *said)
{
    struct s3_large *l = (struct s3_large *)(void *)r;
    struct zr_s3_result result = {.depth = 0};
    zarr_store_version version = {{0}};
    zarr_error err = {0};
    bool again = false;

    st = st == ZARR_OK ? judge_copy(l, &result, &again, &err) : zr_pass(&err, st, said);
    if (st == ZARR_OK) {
        zr_s3_make_version(&version, zr_str_text(&result.etag));
        take_large_version(l, &version);
    }
    zr_s3_result_deinit(&result);
    l->may_be_done = l->may_be_done || r->n_sent > 1;
    if (again && l->n_again++ < COPY_AGAIN)
        copy_send(l);
    else
        large_end_or_again(l, st, &err);
}

static void copy_send(struct s3_large *l)
{
    copy_request(l, "PUT");
    l->lines[0] = zr_str_text(&l->source);
    l->lines[1] = *l->source_is ? l->source_is : NULL;
    l->request.lines = l->lines;
    l->request.body = "";
    l->request.makes_object = l->request.has_no_checksum = l->request.is_long = true;
    l->request.done = copy_done;
    zr_s3_send(&l->request);
}

/* Takes version and length of the source. */
static zarr_status begin_copy(struct s3_large *l, zarr_error *err)
{
    const zarr_store_version *expected = &l->op->source->version;
    char etag[ZR_HTTP_ETAG_ROOM];
    zarr_status st = judge_source(l, &l->version, err);

    if (st != ZARR_OK)
        return st;
    if (!zr_store_version_is_none(expected) &&
        !zr_store_version_equal(expected, &l->version))
        return fail_changed(err);
    l->bytes = l->request.net.answer.length;
    *l->source_is = '\0';
    if (zr_http_version_etag(&l->version, etag))
        (void)snprintf(l->source_is, sizeof l->source_is,
                       "x-amz-copy-source-if-match: %s", etag);
    else if (l->bytes > ZR_S3_PART_MOST || !zr_store_version_is_none(expected))
        return fail_uncopied(err); /* parts of two versions would be mixed */
    return ZARR_OK;
}

static void copy_look_done(struct zr_s3_request *r, zarr_status st,
                           const zarr_error *said)
{
    struct s3_large *l = (struct s3_large *)(void *)r;
    zarr_error err = {0};

    st = st == ZARR_OK ? begin_copy(l, &err) : zr_pass(&err, st, said);
    if (st != ZARR_OK)
        large_op_end(l, st, &err);
    else if (l->bytes > COPY_PART_BYTES && *l->source_is)
        large_upload(l, COPY_PART_BYTES);
    else
        copy_send(l);
}

void zr_s3_copy(struct zr_s3_store *s, zarr_store_op *op, zr_s3_done_fn *done, void *arg)
{
    struct s3_large *l = large_make(s, op, done, arg);
    struct zr_s3_store *from = op->source->self;
    zarr_error err = {0};
    zarr_status st = ZARR_OK;

    if (!l)
        return;
    if ((op->flags & (ZARR_STORE_OP_IF_VERSION | ZARR_STORE_OP_IN_PARTS)) || !from ||
        has_customer_key(s))
        st = fail_uncopied(&err);
    if (st == ZARR_OK)
        st = zr_s3_keys_renew(&from->keys, op->cancel, &err);
    if (st == ZARR_OK && !is_same_service(s, from))
        st = fail_uncopied(&err);
    if (st == ZARR_OK) {
        l->from = from;
        zr_str_printf(&l->source, "x-amz-copy-source: /%s/", from->url.host);
        zr_s3_encode(&l->source, zr_str_text(&from->prefix), true);
        zr_s3_encode(&l->source, op->source->key, true);
        st = zr_str_status(&l->source, &err);
    }
    if (st == ZARR_OK)
        copy_look(l, copy_look_done);
    else
        large_op_end(l, st, &err);
}
