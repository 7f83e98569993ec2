/*
 * s3/clean.c - lists and aborts uploads that were not completed: those of killed
 * processes, and those whose abort failed. The service tells when an upload began, and
 * nothing of who began it. So the age alone decides, by the server's clock.
 * Thread class: shared; a call is solo.
 */
#include "s3/s3_int.h"

#include <string.h>

enum {
    CLEAN_BYTES_MOST = 16 << 20,
    CLEAN_ID_MOST = 8192
};

/* An upload of a page; its texts are in c->texts. */
struct clean_row {
    size_t key, id;
    int64_t begun_s; /* INT64_MAX: not told */
};

struct s3_clean {
    struct zr_s3_store *store;
    const zarr_cancel *cancel;
    uint64_t min_age_s, n_removed;
    zarr_store_list_fn fn; /* gets each upload, and none is aborted; NULL: they are */
    void *user;
    bool is_ended; /* fn wants no more */
    struct zr_str prefix, query, key;
    struct zr_str next_key, next_id; /* markers of the page that follows */
    /* a pair of markers, and when to take another one: it finds circles */
    struct zr_str kept;
    uint64_t n_pages, next_kept;
    /* a page */
    struct zr_str texts, row_key, row_id;
    struct clean_row *row;
    size_t n, cap;
    int64_t begun_s;
    bool is_list, is_truncated, is_escaped, in_row;
};

static zarr_status clean_begin(void *user, const char *name, zarr_error *err)
{
    struct s3_clean *c = user;
    const char *const local = zr_s3_local_name(name);

    if (!c->is_list && !zr_streq(local, "ListMultipartUploadsResult"))
        return zr_fail(err, ZARR_ERR_CORRUPT, "it is no ListMultipartUploadsResult");
    c->is_list = true;
    if (zr_streq(local, "Upload")) {
        c->in_row = true;
        c->begun_s = INT64_MAX;
        zr_str_clear(&c->row_key);
        zr_str_clear(&c->row_id);
    }
    return ZARR_OK;
}

static zarr_status add_upload(struct s3_clean *c, zarr_error *err)
{
    zarr_status st =
        zr_grow(c->texts.alloc, &c->row, &c->cap, c->n + 1, sizeof *c->row, err);

    if (st != ZARR_OK)
        return st;
    c->in_row = false;
    c->row[c->n].key = c->texts.bytes;
    zr_str_append(&c->texts, zr_str_text(&c->row_key), c->row_key.bytes + 1);
    c->row[c->n].id = c->texts.bytes;
    zr_str_append(&c->texts, zr_str_text(&c->row_id), c->row_id.bytes + 1);
    c->row[c->n++].begun_s = c->begun_s;
    return zr_str_status(&c->texts, err);
}

static zarr_status set_text(struct zr_str *out, const char *text, zarr_error *err)
{
    zr_str_clear(out);
    zr_str_puts(out, text);
    return zr_str_status(out, err);
}

static zarr_status clean_end(void *user, const char *name, const char *text,
                             zarr_error *err)
{
    struct s3_clean *c = user;
    const char *const local = zr_s3_local_name(name);

    if (zr_streq(local, "Upload"))
        return add_upload(c, err);
    if (!text)
        return ZARR_OK;
    if (c->in_row && zr_streq(local, "Key"))
        return set_text(&c->row_key, text, err);
    if (c->in_row && zr_streq(local, "UploadId"))
        return set_text(&c->row_id, text, err);
    if (c->in_row && zr_streq(local, "Initiated") && !zr_s3_parse_time(text, &c->begun_s))
        return zr_fail(err, ZARR_ERR_CORRUPT, "it has a malformed time");
    if (zr_streq(local, "NextKeyMarker"))
        return set_text(&c->next_key, text, err);
    if (zr_streq(local, "NextUploadIdMarker"))
        return set_text(&c->next_id, text, err);
    if (zr_streq(local, "EncodingType"))
        c->is_escaped = zr_streq(text, "url");
    if (zr_streq(local, "IsTruncated"))
        c->is_truncated = zr_streq(text, "true");
    return ZARR_OK;
}

/* Fetches a page. *now_s: the clock of the server. */
static zarr_status fetch_uploads(struct s3_clean *c, int64_t *now_s, zarr_error *err)
{
    const struct zr_xml_sink sink = {clean_begin, clean_end, c};
    struct zr_s3_request r = {.store = c->store,
                              .method = "GET",
                              .query = zr_str_text(&c->query),
                              .is_repeatable = true,
                              .max_bytes = CLEAN_BYTES_MOST,
                              .cancel = c->cancel};
    zarr_status st = ZARR_OK;

    c->n = 0;
    c->is_list = c->is_truncated = c->is_escaped = c->in_row = false;
    zr_str_clear(&c->texts);
    zr_str_clear(&c->next_key);
    zr_str_clear(&c->next_id);
    ZR_TRY(zr_s3_call(&r, err));
    if (r.net.answer.status == 501 || r.net.answer.status == 405)
        goto out; /* then there are no uploads */
    if (r.net.answer.status != 200)
        ZR_LEAVE(zr_s3_request_fail(&r, err));
    *now_s = r.net.answer.date_s ? r.net.answer.date_s
                                 : zr_wall_seconds() + atomic_load(&c->store->skew_s);
    st = zr_xml_read(&sink, c->texts.alloc, zr_str_text(&r.answer), r.answer.bytes, err);
out:
    zr_s3_request_deinit(&r);
    return st;
}

/* Whether a request with them aborts an upload: without an id it may erase the value. */
static bool can_abort(const char *key, const char *id)
{
    return *id && strlen(id) <= CLEAN_ID_MOST && zr_is_plain_line(id) &&
           zr_key_validate(key, strlen(key), NULL) == ZARR_OK;
}

/* Sends the abort, and counts it unless the upload is gone already. */
static zarr_status abort_upload(struct s3_clean *c, const char *key, const char *query,
                                zarr_error *err)
{
    struct zr_s3_request r = {.store = c->store,
                              .method = "DELETE",
                              .key = key,
                              .query = query,
                              .is_repeatable = true,
                              .cancel = c->cancel};
    zarr_status st = zr_s3_call(&r, err);

    if (st == ZARR_OK && r.net.answer.status / 100 == 2)
        c->n_removed++;
    else if (st == ZARR_OK && r.net.answer.status != 404)
        st = zr_s3_request_fail(&r, err);
    zr_s3_request_deinit(&r);
    return st;
}

/* Gives the row to the listing as "KEY?uploadId=ID". */
static zarr_status give_upload(struct s3_clean *c, const char *key, const char *query,
                               uint64_t age_s, zarr_error *err)
{
    zarr_store_item item = {.bytes = UINT64_MAX, .age_s = age_s};
    struct zr_str name;
    zarr_status st;

    zr_str_init(&name, c->texts.alloc);
    zr_str_printf(&name, "%s?%s", key, query);
    st = zr_str_status(&name, err);
    item.key = zr_key_validate(zr_str_text(&name), name.bytes, NULL) == ZARR_OK
                   ? zr_str_text(&name)
                   : key; /* too long */
    if (st == ZARR_OK)
        c->is_ended = c->fn(c->user, &item) != 0;
    zr_str_deinit(&name);
    return st;
}

static zarr_status clean_row(struct s3_clean *c, const struct clean_row *row,
                             uint64_t age_s, zarr_error *err)
{
    const char *const id = c->texts.ptr + row->id;
    const char *key;
    struct zr_str query;
    zarr_status st = ZARR_OK;

    zr_str_init(&query, c->texts.alloc);
    zr_str_clear(&c->key);
    if (!zr_s3_decode_key(&c->key, c->texts.ptr + row->key, c->is_escaped))
        ZR_FAIL(err, ZARR_ERR_CORRUPT, "it has a key with a malformed escape");
    ZR_TRY(zr_str_status(&c->key, err));
    if (!zr_starts_with(zr_str_text(&c->key), zr_str_text(&c->prefix)))
        ZR_FAIL(err, ZARR_ERR_CORRUPT, "it has a key outside of the prefix");
    zr_str_puts(&query, "uploadId=");
    zr_s3_encode(&query, id, false);
    ZR_TRY(zr_str_status(&query, err));
    key = zr_str_text(&c->key) + c->store->prefix.bytes;
    if (can_abort(key, id))
        st = c->fn ? give_upload(c, key, zr_str_text(&query), age_s, err)
                   : abort_upload(c, key, zr_str_text(&query), err);
out:
    zr_str_deinit(&query);
    return st;
}

static void put_uploads_query(struct s3_clean *c)
{
    zr_str_clear(&c->query);
    zr_str_puts(&c->query, "uploads=&encoding-type=url&prefix=");
    zr_s3_encode(&c->query, zr_str_text(&c->prefix), false);
    if (c->next_key.bytes == 0)
        return;
    zr_str_clear(&c->key);
    if (!zr_s3_decode_key(&c->key, zr_str_text(&c->next_key), c->is_escaped))
        c->query.failed = true;
    zr_str_puts(&c->query, "&key-marker=");
    zr_s3_encode(&c->query, zr_str_text(&c->key), false);
    if (c->next_id.bytes == 0)
        return;
    zr_str_puts(&c->query, "&upload-id-marker=");
    zr_s3_encode(&c->query, zr_str_text(&c->next_id), false);
}

/* Prepares for the next page, whose markers must be new. */
static zarr_status turn_page(struct s3_clean *c, zarr_error *err)
{
    if (c->next_key.bytes == 0)
        return zr_fail(err, ZARR_ERR_CORRUPT, "it is a part, without a marker");
    put_uploads_query(c);
    if (zr_streq(zr_str_text(&c->query), zr_str_text(&c->kept)))
        return zr_fail(err, ZARR_ERR_CORRUPT, "it repeats the marker of a page before");
    if (++c->n_pages >= c->next_kept) {
        c->next_kept = 2 * c->n_pages;
        return set_text(&c->kept, zr_str_text(&c->query), err);
    }
    return zr_str_status(&c->query, err);
}

static zarr_status clean_pages(struct s3_clean *c, zarr_error *err)
{
    int64_t now_s = 0;

    put_uploads_query(c);
    do {
        ZR_CHECK(zr_str_status(&c->query, err));
        ZR_CHECK(zr_cancel_check(c->cancel, err));
        ZR_CHECK(fetch_uploads(c, &now_s, err));
        for (size_t i = 0; i < c->n && !c->is_ended; i++) {
            const struct clean_row *row = &c->row[i];
            const uint64_t age_s =
                row->begun_s < now_s ? (uint64_t)(now_s - row->begun_s) : 0;

            if (age_s >= c->min_age_s && row->begun_s <= now_s)
                ZR_CHECK(clean_row(c, row, age_s, err));
        }
        if (c->is_truncated && !c->is_ended)
            ZR_CHECK(turn_page(c, err));
    } while (c->is_truncated && !c->is_ended);
    return ZARR_OK;
}

static zarr_status clean_below(struct s3_clean *c, const char *prefix, zarr_error *err)
{
    const struct zr_s3_store *s = c->store;
    const zarr_allocator *alloc = s->reader.env.alloc;
    struct zr_str *const texts[] = {&c->prefix,   &c->query,   &c->key,
                                    &c->next_key, &c->next_id, &c->kept,
                                    &c->texts,    &c->row_key, &c->row_id};
    zarr_status st;

    for (size_t i = 0; i < ZR_COUNT(texts); i++)
        zr_str_init(texts[i], alloc);
    zr_str_printf(&c->prefix, "%s%s%s", zr_str_text(&s->prefix), prefix,
                  *prefix ? "/" : "");
    st = zr_str_status(&c->prefix, err);
    if (st == ZARR_OK)
        st = clean_pages(c, err);
    zr_prefix(err, st, "the service's list of uploads");
    for (size_t i = 0; i < ZR_COUNT(texts); i++)
        zr_str_deinit(texts[i]);
    zr_free(alloc, c->row);
    return st;
}

zarr_status zr_s3_clean_uploads(struct zr_s3_store *s, const char *prefix,
                                uint64_t min_age_s, uint64_t *n_removed,
                                const zarr_cancel *cancel, zarr_error *err)
{
    struct s3_clean c = {.store = s, .cancel = cancel, .min_age_s = min_age_s};
    const zarr_status st = clean_below(&c, prefix, err);

    *n_removed += c.n_removed;
    return st;
}

zarr_status zr_s3_list_uploads(struct zr_s3_store *s, const char *prefix,
                               zarr_store_list_fn fn, void *user,
                               const zarr_cancel *cancel, zarr_error *err)
{
    struct s3_clean c = {.store = s, .cancel = cancel, .fn = fn, .user = user};

    return clean_below(&c, prefix, err);
}
