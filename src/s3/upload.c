/*
 * s3/upload.c - a value that goes up in parts: the upload, and its completion.
 *
 * A completion may be carried out although its answer is lost, or says in a 200 that it
 * failed. So the upload gives its object a random id. After a doubtful answer a HEAD
 * tells whether the object is this one.
 *
 * Thread class: shared; an upload is solo, except its parts, and moves to reactors.
 */
#include "s3/s3_int.h"

#include <stdio.h>
#include <string.h>

enum {
    COMPLETE_AGAIN = 3,
    UPLOAD_ETAG_MOST = 1024 /* without quotes */
};

/* ---- answers ---- */

struct result_reading {
    struct zr_s3_result *out;
    const char *root;
};

static zarr_status result_begin(void *user, const char *name, zarr_error *err)
{
    const struct result_reading *reading = user;
    const char *const local = zr_s3_local_name(name);

    if (reading->out->depth++ > 0)
        return ZARR_OK;
    reading->out->is_root = zr_streq(local, reading->root);
    if (zr_streq(local, "Error"))
        memcpy(reading->out->code, "?", 2); /* until it tells its code */
    else if (!reading->out->is_root)
        return zr_fail(err, ZARR_ERR_CORRUPT, "it is no %s", reading->root);
    return ZARR_OK;
}

static zarr_status result_end(void *user, const char *name, const char *text,
                              zarr_error *err)
{
    const struct result_reading *reading = user;
    struct zr_s3_result *out = reading->out;
    const char *const local = zr_s3_local_name(name);

    if (--out->depth != 1 || !text)
        return ZARR_OK;
    if (*out->code && zr_streq(local, "Code") && zr_is_plain_line(text))
        (void)snprintf(out->code, sizeof out->code, "%s", text);
    if (zr_streq(local, "UploadId"))
        zr_str_puts(&out->id, text);
    if (zr_streq(local, "ETag"))
        zr_str_puts(&out->etag, text);
    return out->id.failed ? zr_str_status(&out->id, err) : zr_str_status(&out->etag, err);
}

void zr_s3_result_deinit(struct zr_s3_result *out)
{
    zr_str_deinit(&out->id);
    zr_str_deinit(&out->etag);
}

zarr_status zr_s3_result_read(struct zr_s3_result *out, const struct zr_s3_request *r,
                              const char *root, zarr_error *err)
{
    const zarr_allocator *alloc = r->store->reader.env.alloc;
    struct result_reading reading = {out, root};
    const struct zr_xml_sink sink = {result_begin, result_end, &reading};
    const char *text = zr_str_text(&r->answer);
    const size_t blanks = strspn(text, " \t\r\n"); /* keep the connection alive */
    zarr_status st;

    *out = (struct zr_s3_result){.depth = 0};
    zr_str_init(&out->id, alloc);
    zr_str_init(&out->etag, alloc);
    st = zr_xml_read(&sink, alloc, text + blanks, r->answer.bytes - blanks, err);
    return st == ZARR_OK ? st : zr_prefix(err, st, "the answer to %s", r->method);
}

bool zr_s3_is_conflict(const char *code)
{
    return zr_streq(code, "PreconditionFailed") ||
           zr_streq(code, "ConditionalRequestConflict");
}

void zr_s3_put_xml(struct zr_str *out, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '&':
            zr_str_puts(out, "&amp;");
            break;
        case '<':
            zr_str_puts(out, "&lt;");
            break;
        case '>':
            zr_str_puts(out, "&gt;");
            break;
        default:
            zr_str_putc(out, *text);
        }
}

/* ---- what tells one write from another ---- */

void zr_s3_write_id_make(struct zr_s3_write_id *id)
{
    (void)snprintf(id->text, sizeof id->text, "%016" PRIx64 "%016" PRIx64,
                   zr_random_u64(), zr_random_u64());
    (void)snprintf(id->line, sizeof id->line, ZR_S3_WRITE_ID ": %s", id->text);
}

bool zr_s3_write_id_fits(const struct zr_s3_write_id *id, const struct zr_net_answer *a)
{
    const char *found = zr_net_answer_header(a, ZR_S3_WRITE_ID);

    return found && zr_streq(found, id->text);
}

zarr_status zr_s3_put_condition(char out[ZR_S3_CONDITION_ROOM],
                                const zarr_store_version *expected, zarr_error *err)
{
    char etag[ZR_HTTP_ETAG_ROOM];

    if (zr_http_version_etag(expected, etag))
        (void)snprintf(out, ZR_S3_CONDITION_ROOM, "If-Match: %s", etag);
    else if (!zr_store_version_is_none(expected))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "the ETag of its value is too long for a condition");
    else
        (void)snprintf(out, ZR_S3_CONDITION_ROOM, "If-None-Match: *");
    return ZARR_OK;
}

void zr_s3_make_version(zarr_store_version *out, const char *etag)
{
    char quoted[UPLOAD_ETAG_MOST];
    struct zr_net_answer a = {.etag = etag};

    *out = (zarr_store_version){{0}};
    if (!*etag || zr_starts_with(etag, "W/"))
        return;
    if (*etag != '"') {
        if (snprintf(quoted, sizeof quoted, "\"%s\"", etag) >= UPLOAD_ETAG_MOST)
            return;
        a.etag = quoted;
    }
    zr_http_version_make(out, &a);
}

/* ---- the upload ---- */

zarr_status zr_s3_upload_make(struct zr_s3_upload **out, struct zr_s3_store *s,
                              const char *key, zarr_error *err)
{
    const zarr_allocator *alloc = s->reader.env.alloc;
    const size_t n = strlen(key) + 1;
    struct zr_s3_upload *u = zr_calloc(alloc, 1, sizeof *u + n);

    if (!u)
        return zr_fail_memory(err, sizeof *u + n);
    u->store = s;
    u->generation = zr_fork_generation();
    u->has_checksums = s->checksums;
    zr_str_init(&u->query, alloc);
    zr_str_init(&u->body, alloc);
    zr_s3_write_id_make(&u->id);
    zr_mutex_init(&u->mutex);
    memcpy(u->key, key, n);
    *out = u;
    return ZARR_OK;
}

void zr_s3_upload_free(struct zr_s3_upload *u)
{
    const zarr_allocator *alloc;

    if (!u)
        return;
    alloc = u->store->reader.env.alloc;
    for (size_t i = 0; i < u->list.n; i++)
        zr_free(alloc, u->list.part[i].value);
    zr_free(alloc, u->list.part);
    zr_s3_request_deinit(&u->request);
    zr_str_deinit(&u->query);
    zr_str_deinit(&u->body);
    zr_mutex_deinit(&u->mutex);
    zr_free(alloc, u);
}

/* Prepares the next request of an upload. */
static struct zr_s3_request *upload_request(struct zr_s3_upload *u, const char *method,
                                            const char *query)
{
    zr_s3_request_deinit(&u->request);
    u->request = (struct zr_s3_request){.store = u->store,
                                        .method = method,
                                        .key = u->key,
                                        .query = query,
                                        .lines = u->lines,
                                        .is_repeatable = true,
                                        .has_no_checksum = true,
                                        .max_bytes = ZR_S3_ANSWER_MOST,
                                        .cancel = u->cancel,
                                        .tag = u->tag};
    memset(u->lines, 0, sizeof u->lines);
    return &u->request;
}

bool zr_s3_has_succeeded(const struct zr_s3_request *r)
{
    return r->net.answer.status / 100 == 2;
}

static struct zr_s3_request *prepare_begin(struct zr_s3_upload *u)
{
    struct zr_s3_request *r = upload_request(u, "POST", "uploads=");

    r->body = "";
    r->makes_object = true;
    u->lines[0] = u->id.line;
    u->lines[1] = u->has_checksums ? "x-amz-checksum-algorithm: SHA256" : NULL;
    return r;
}

static zarr_status judge_begin(struct zr_s3_upload *u, zarr_error *err)
{
    const struct zr_s3_request *r = &u->request;
    struct zr_s3_result result;
    zarr_status st = ZARR_OK;

    if (!zr_s3_has_succeeded(r))
        return zr_s3_request_fail(r, err);
    ZR_TRY(zr_s3_result_read(&result, r, "InitiateMultipartUploadResult", err));
    if (result.id.bytes == 0)
        ZR_FAIL(err, ZARR_ERR_IO, "the service begins no upload: code %s", result.code);
    zr_str_puts(&u->query, "uploadId=");
    zr_s3_encode(&u->query, zr_str_text(&result.id), false);
    st = zr_str_status(&u->query, err);
out:
    zr_s3_result_deinit(&result);
    return st;
}

static void begin_done(struct zr_s3_request *r, zarr_status st, const zarr_error *said)
{
    struct zr_s3_upload *u = (struct zr_s3_upload *)(void *)r;
    zarr_error err = {0};

    st = st == ZARR_OK ? judge_begin(u, &err) : zr_pass(&err, st, said);
    u->ended(u, st, &err);
}

void zr_s3_upload_begin(struct zr_s3_upload *u)
{
    struct zr_s3_request *r = prepare_begin(u);

    r->done = begin_done;
    zr_s3_send(r);
}

zarr_status zr_s3_upload_begin_now(struct zr_s3_upload *u, zarr_error *err)
{
    const zarr_status st = zr_s3_call(prepare_begin(u), err);

    return st == ZARR_OK ? judge_begin(u, err) : st;
}

static void abort_done(struct zr_s3_request *r, zarr_status st, const zarr_error *said)
{
    struct zr_s3_upload *u = (struct zr_s3_upload *)(void *)r;
    zarr_error err = {0};

    if (st == ZARR_OK && !zr_s3_has_succeeded(r) && r->net.answer.status != 404)
        st = zr_s3_request_fail(r, &err);
    else
        (void)zr_pass(&err, st, said);
    if (st != ZARR_OK)
        zr_log(&u->store->reader.env.log, ZARR_LOG_DEBUG,
               "S3: %s: an upload is left to clean: %s", u->key, err.message);
    u->ended(u, st, &err);
}

void zr_s3_upload_abort(struct zr_s3_upload *u)
{
    struct zr_s3_request *r = upload_request(u, "DELETE", zr_str_text(&u->query));

    r->is_repeatable = false;
    r->is_short = true;
    r->done = abort_done;
    zr_s3_send(r);
}

/* ---- the completion ---- */

/* What became of a completion, from its answer. *is_sure: no HEAD is needed. */
static zarr_status judge_completion(struct zr_s3_upload *u, bool *is_sure,
                                    zarr_error *err)
{
    const struct zr_s3_request *r = &u->request;
    const uint32_t status = r->net.answer.status;
    const char *code = r->fault.code;
    const bool is_first = r->n_sent == 1 && !u->is_doubtful;
    struct zr_s3_result result = {.depth = 0};
    zarr_status st = ZARR_OK;

    *is_sure = is_first && status / 100 == 4 && status != 408 && status != 429;
    if (zr_s3_has_succeeded(r)) {
        ZR_TRY(zr_s3_result_read(&result, r, "CompleteMultipartUploadResult", err));
        code = result.code;
        u->can_repeat = zr_streq(code, "InternalError") || zr_streq(code, "SlowDown");
        *is_sure =
            result.is_root ||
            (is_first && (zr_s3_is_conflict(code) || zr_streq(code, "NoSuchUpload")));
        if (result.is_root) {
            zr_s3_make_version(&u->version, zr_str_text(&result.etag));
            goto out;
        }
    }
    if (zr_streq(code, "NoSuchUpload"))
        ZR_FAIL(err, ZARR_ERR_CONFLICT, "the service has lost the parts of the value");
    if (u->is_conditional && (zr_s3_is_conflict(code) || status == 412 || status == 409 ||
                              zr_streq(code, "NoSuchKey")))
        ZR_FAIL(err, ZARR_ERR_CONFLICT, "was changed meanwhile (HTTP %" PRIu32 ")",
                status);
    if (u->is_conditional && (status == 501 || zr_streq(code, "NotImplemented")))
        ZR_FAIL(err, ZARR_ERR_UNSUPPORTED,
                "the service refuses conditions of uploads in parts");
    if (zr_s3_has_succeeded(r))
        ZR_FAIL(err, ZARR_ERR_IO, "the service cannot join the parts: code %s", code);
    st = zr_s3_request_fail(r, err);
out:
    zr_s3_result_deinit(&result);
    return st;
}

/* Ends the completion. */
static void completion_end(struct zr_s3_upload *u, zarr_status st, zarr_error *err)
{
    u->is_committed = st == ZARR_OK;
    if (st == ZARR_ERR_CANCELLED)
        atomic_store(&u->was_cancelled, true);
    u->ended(u, st, err);
}

static void completion_send(struct zr_s3_upload *u);

static void upload_look_done(struct zr_s3_request *r, zarr_status st,
                             const zarr_error *said)
{
    struct zr_s3_upload *u = (struct zr_s3_upload *)(void *)r;
    const uint32_t status = r->net.answer.status;
    zarr_error err = u->err, why = {0};

    if (st == ZARR_OK && status == 200 && zr_s3_write_id_fits(&u->id, &r->net.answer)) {
        zr_http_version_make(&u->version, &r->net.answer);
        completion_end(u, ZARR_OK, &err);
    } else if (st == ZARR_OK && (status == 200 || status == 404)) {
        if (u->can_repeat && u->n_again++ < COMPLETE_AGAIN)
            completion_send(u);
        else
            completion_end(u, u->st, &err);
    } else if (st == ZARR_ERR_CANCELLED) {
        completion_end(u, zr_pass(&err, st, said), &err);
    } else {
        (void)(st == ZARR_OK ? zr_s3_request_fail(r, &why) : zr_pass(&why, st, said));
        st = zr_fail(&err, ZARR_ERR_IO,
                     "it is unknown whether this write succeeded: %.150s; then: %.150s",
                     u->err.message, why.message);
        completion_end(u, st, &err);
    }
}

static void complete_done(struct zr_s3_request *r, zarr_status st, const zarr_error *said)
{
    struct zr_s3_upload *u = (struct zr_s3_upload *)(void *)r;
    zarr_error err = {0};
    bool is_sure = r->n_sent == 0 || st == ZARR_ERR_CANCELLED;

    u->can_repeat = false;
    st = st == ZARR_OK ? judge_completion(u, &is_sure, &err) : zr_pass(&err, st, said);
    if (is_sure) {
        completion_end(u, st, &err);
        return;
    }
    u->is_doubtful = true;
    u->st = st;
    u->err = err;
    r = upload_request(u, "HEAD", NULL);
    r->done = upload_look_done;
    zr_s3_send(r);
}

static void put_completion(struct zr_s3_upload *u)
{
    zr_str_clear(&u->body);
    zr_str_puts(&u->body, "<CompleteMultipartUpload "
                          "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    for (size_t i = 0; i < u->list.n; i++) {
        const struct zr_s3_part_tags *tags = u->list.part[i].value;

        zr_str_printf(&u->body, "<Part><PartNumber>%" PRIu64 "</PartNumber><ETag>",
                      u->list.part[i].number);
        zr_s3_put_xml(&u->body, tags->etag);
        zr_str_puts(&u->body, "</ETag>");
        if (*tags->checksum)
            zr_str_printf(&u->body, "<ChecksumSHA256>%s</ChecksumSHA256>",
                          tags->checksum);
        zr_str_puts(&u->body, "</Part>");
    }
    zr_str_puts(&u->body, "</CompleteMultipartUpload>");
}

static void completion_send(struct zr_s3_upload *u)
{
    struct zr_s3_request *r = upload_request(u, "POST", zr_str_text(&u->query));

    u->lines[0] = u->is_conditional ? u->condition : NULL;
    r->body = u->body.ptr;
    r->body_bytes = u->body.bytes;
    r->is_long = true;
    r->done = complete_done;
    zr_s3_send(r);
}

void zr_s3_upload_complete(struct zr_s3_upload *u, const zarr_store_version *expected)
{
    zarr_error err = {0};
    zarr_status st;

    put_completion(u);
    u->is_conditional = expected != NULL;
    u->n_again = 0;
    st = zr_str_status(&u->body, &err);
    if (st == ZARR_OK && expected)
        st = zr_s3_put_condition(u->condition, expected, &err);
    if (st == ZARR_OK)
        completion_send(u);
    else
        completion_end(u, st, &err);
}
