/*
 * s3/list.c - listings by ListObjectsV2, page by page: one of at most 16 MiB is in
 * memory. Keys come from the server, so each must be below the prefix that was asked for.
 * Thread class: shared; a listing is solo.
 */
#include "s3/s3_int.h"

#include <string.h>

enum {
    LIST_BYTES_MOST = 16 << 20
};

/* A row; its key is in l->keys. */
struct s3_row {
    size_t key;
    uint64_t bytes;
    int64_t modified_s;
    bool is_prefix;
};

struct s3_listing {
    struct zr_s3_store *store;
    bool is_deep, is_ended;
    bool is_of_debris; /* gives what killed processes left, and no other keys */
    uint64_t min_age_s;
    int64_t now_s; /* by the server's clock */
    zarr_store_list_fn fn;
    void *user;
    const zarr_cancel *cancel;
    struct zr_str prefix; /* with that of the store */
    struct zr_str query, key;
    struct zr_str token; /* of the page */
    /* what a page says */
    struct zr_str next;       /* token of the page after it */
    struct zr_str keys, name; /* name: of this row, as it came */
    struct s3_row *rows;
    size_t n_rows, cap_rows;
    uint64_t bytes; /* of this row */
    int64_t modified_s;
    bool is_list, is_truncated, is_escaped, in_row;
    unsigned n_ends; /* how often it says whether it is truncated */
    /* a page's token, and when to take another one: it finds tokens that go in a circle
     */
    struct zr_str kept;
    uint64_t n_pages, next_kept;
};

/* ---- pages ---- */

static zarr_status page_element(void *user, const char *name, zarr_error *err)
{
    struct s3_listing *l = user;
    const char *const local = zr_s3_local_name(name);

    if (!l->is_list && !zr_streq(local, "ListBucketResult"))
        return zr_fail(err, ZARR_ERR_CORRUPT, "it is no ListBucketResult");
    l->is_list = true;
    if (zr_streq(local, "Contents") || zr_streq(local, "CommonPrefixes")) {
        l->in_row = true;
        l->bytes = UINT64_MAX;
        l->modified_s = INT64_MAX;
        zr_str_clear(&l->name);
    }
    return ZARR_OK;
}

static zarr_status add_listed_row(struct s3_listing *l, bool is_prefix, zarr_error *err)
{
    zarr_status st = zr_grow(l->keys.alloc, &l->rows, &l->cap_rows, l->n_rows + 1,
                             sizeof *l->rows, err);

    if (st != ZARR_OK)
        return st;
    l->in_row = false;
    l->rows[l->n_rows++] =
        (struct s3_row){l->keys.bytes, l->bytes, l->modified_s, is_prefix};
    zr_str_append(&l->keys, zr_str_text(&l->name), l->name.bytes + 1);
    return zr_str_status(&l->keys, err);
}

static zarr_status page_text(void *user, const char *name, const char *text,
                             zarr_error *err)
{
    struct s3_listing *l = user;
    const char *const local = zr_s3_local_name(name);

    if (zr_streq(local, "Contents") || zr_streq(local, "CommonPrefixes"))
        return add_listed_row(l, *local == 'C' && local[2] == 'm', err);
    if (!text)
        return ZARR_OK;
    if (l->in_row && (zr_streq(local, "Key") || zr_streq(local, "Prefix"))) {
        zr_str_clear(&l->name);
        zr_str_puts(&l->name, text);
    } else if (l->in_row && zr_streq(local, "Size")) {
        if (!zr_parse_u64(text, strlen(text), &l->bytes))
            return zr_fail(err, ZARR_ERR_CORRUPT, "it has a wrong size");
    } else if (l->in_row && zr_streq(local, "LastModified")) {
        if (!zr_s3_parse_time(text, &l->modified_s))
            l->modified_s = INT64_MAX; /* it is never old */
    } else if (zr_streq(local, "IsTruncated")) {
        l->is_truncated = zr_streq(text, "true");
        if ((!l->is_truncated && !zr_streq(text, "false")) || l->n_ends++ > 0)
            return zr_fail(err, ZARR_ERR_CORRUPT, "it has a wrong IsTruncated");
    } else if (zr_streq(local, "EncodingType")) {
        l->is_escaped = zr_streq(text, "url");
    } else if (zr_streq(local, "NextContinuationToken")) {
        zr_str_clear(&l->next);
        zr_str_puts(&l->next, text);
    }
    return zr_str_status(&l->name, err);
}

static void put_page_query(struct s3_listing *l)
{
    zr_str_clear(&l->query);
    zr_str_puts(&l->query, "list-type=2&encoding-type=url&prefix=");
    zr_s3_encode(&l->query, zr_str_text(&l->prefix), false);
    if (!l->is_deep)
        zr_str_puts(&l->query, "&delimiter=%2F");
    if (l->token.bytes > 0) {
        zr_str_puts(&l->query, "&continuation-token=");
        zr_s3_encode(&l->query, zr_str_text(&l->token), false);
    }
}

static zarr_status read_page(struct s3_listing *l, const struct zr_str *body,
                             zarr_error *err)
{
    const struct zr_xml_sink sink = {page_element, page_text, l};
    zarr_status st = ZARR_OK;

    l->n_rows = 0;
    l->n_ends = 0;
    l->is_list = l->is_truncated = l->is_escaped = l->in_row = false;
    zr_str_clear(&l->keys);
    zr_str_clear(&l->next);
    ZR_TRY(zr_xml_read(&sink, l->keys.alloc, zr_str_text(body), body->bytes, err));
    ZR_TRY(zr_str_status(&l->next, err));
    if (l->n_ends == 0)
        ZR_FAIL(err, ZARR_ERR_CORRUPT, "it does not say whether it is all");
    if (l->is_truncated && l->next.bytes == 0)
        ZR_FAIL(err, ZARR_ERR_CORRUPT, "it is a part, without the token of the next one");
    if (l->is_truncated && (zr_streq(zr_str_text(&l->next), zr_str_text(&l->token)) ||
                            zr_streq(zr_str_text(&l->next), zr_str_text(&l->kept))))
        ZR_FAIL(err, ZARR_ERR_CORRUPT, "it repeats the token of a page before");
    if (++l->n_pages >= l->next_kept) {
        l->next_kept = 2 * l->n_pages;
        zr_str_clear(&l->kept);
        zr_str_puts(&l->kept, zr_str_text(&l->next));
        st = zr_str_status(&l->kept, err);
    }
    atomic_store(&l->store->reader.has_found, true); /* the bucket is there */
out:
    return st;
}

/* Fetches and reads a page. */
static zarr_status fetch_keys(struct s3_listing *l, zarr_error *err)
{
    struct zr_s3_request r = {.store = l->store,
                              .method = "GET",
                              .is_repeatable = true,
                              .max_bytes = LIST_BYTES_MOST,
                              .cancel = l->cancel};
    zarr_status st = ZARR_OK;

    put_page_query(l);
    ZR_TRY(zr_str_status(&l->query, err));
    r.query = zr_str_text(&l->query);
    ZR_TRY(zr_s3_call(&r, err));
    if (r.net.answer.status != 200)
        ZR_LEAVE(zr_s3_request_fail(&r, err));
    st = read_page(l, &r.answer, err);
    zr_prefix(err, st, "the service's listing");
out:
    zr_s3_request_deinit(&r);
    return st;
}

/* ---- rows ---- */

bool zr_s3_decode_key(struct zr_str *out, const char *text, bool is_escaped)
{
    struct zr_str blanks;
    bool is_right = true;

    if (!is_escaped) {
        zr_str_puts(out, text);
        return true;
    }
    zr_str_init(&blanks, out->alloc);
    for (; *text; text++)
        zr_str_putc(&blanks, *text == '+' ? ' ' : *text);
    is_right = zr_url_decode(out, zr_str_text(&blanks), blanks.bytes);
    out->failed = out->failed || blanks.failed;
    zr_str_deinit(&blanks);
    return is_right;
}

/* Whether the listing has the row. Keys of lock files came with a hierarchy that another
 * program copied file by file. They are keys, too, so that a delete of the hierarchy
 * erases them. */
static bool is_wanted(const struct s3_listing *l, const struct s3_row *row,
                      const char *key)
{
    const char *const slash = strrchr(key, '/');
    const bool is_probe = zr_starts_with(slash ? slash + 1 : key, ZR_S3_PROBE_NAME);

    return l->is_of_debris
               ? !row->is_prefix && (is_probe || zr_ends_with(key, ZR_LOCK_SUFFIX))
               : !is_probe;
}

/* Seconds since a value was written; 0 if that is not told. */
static uint64_t row_age(const struct s3_listing *l, const struct s3_row *row)
{
    return row->modified_s < l->now_s ? (uint64_t)(l->now_s - row->modified_s) : 0;
}

static zarr_status give_row(struct s3_listing *l, const struct s3_row *row,
                            zarr_error *err)
{
    const size_t above = l->store->prefix.bytes;
    zarr_store_item item = {.bytes = row->is_prefix ? UINT64_MAX : row->bytes,
                            .is_prefix = row->is_prefix};

    zr_str_clear(&l->key);
    if (!zr_s3_decode_key(&l->key, l->keys.ptr + row->key, l->is_escaped))
        return zr_fail(err, ZARR_ERR_CORRUPT, "it has a key with a malformed escape");
    ZR_CHECK(zr_str_status(&l->key, err));
    if (!zr_starts_with(zr_str_text(&l->key), zr_str_text(&l->prefix)))
        return zr_fail(err, ZARR_ERR_CORRUPT, "it has a key outside of the prefix");
    if (row->is_prefix && l->key.bytes > 0 && l->key.ptr[l->key.bytes - 1] == '/')
        l->key.ptr[--l->key.bytes] = '\0';
    item.key = zr_str_text(&l->key) + above;
    /* markers of folders, and names that no key of a hierarchy has */
    if (l->key.bytes <= l->prefix.bytes || zr_ends_with(item.key, "/") ||
        zr_key_validate(item.key, strlen(item.key), NULL) != ZARR_OK ||
        !is_wanted(l, row, item.key))
        return ZARR_OK;
    if (l->is_of_debris)
        item.age_s = row_age(l, row);
    if (item.age_s < l->min_age_s)
        return ZARR_OK;
    l->is_ended = l->fn(l->user, &item) != 0;
    return ZARR_OK;
}

static zarr_status list_pages(struct s3_listing *l, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    do {
        ZR_TRY(zr_cancel_check(l->cancel, err));
        ZR_TRY(fetch_keys(l, err));
        for (size_t i = 0; st == ZARR_OK && i < l->n_rows && !l->is_ended; i++)
            st = give_row(l, &l->rows[i], err);
        if (st != ZARR_OK)
            ZR_LEAVE(zr_prefix(err, st, "the service's listing"));
        zr_str_clear(&l->token);
        zr_str_puts(&l->token, zr_str_text(&l->next));
        ZR_TRY(zr_str_status(&l->token, err));
    } while (l->is_truncated && !l->is_ended);
out:
    return st;
}

static zarr_status list_below(struct s3_listing *l, const char *prefix, zarr_error *err)
{
    struct zr_s3_store *s = l->store;
    const zarr_allocator *alloc = s->reader.env.alloc;
    struct zr_str *const texts[] = {&l->prefix, &l->query, &l->key,  &l->token,
                                    &l->next,   &l->keys,  &l->name, &l->kept};
    zarr_status st = ZARR_OK;

    for (size_t i = 0; i < ZR_COUNT(texts); i++)
        zr_str_init(texts[i], alloc);
    l->now_s = zr_wall_seconds() + atomic_load(&s->skew_s);
    zr_str_printf(&l->prefix, "%s%s%s", zr_str_text(&s->prefix), prefix,
                  *prefix ? "/" : "");
    ZR_TRY(zr_str_status(&l->prefix, err));
    st = list_pages(l, err);
out:
    for (size_t i = 0; i < ZR_COUNT(texts); i++)
        zr_str_deinit(texts[i]);
    zr_free(alloc, l->rows);
    return st;
}

zarr_status zr_s3_list(void *self, const char *prefix, uint32_t how,
                       zarr_store_list_fn fn, void *user, const zarr_cancel *cancel,
                       zarr_error *err)
{
    struct s3_listing l = {.store = self,
                           .is_deep = how != ZARR_LIST_DIRECTORY,
                           .is_of_debris = how == ZARR_LIST_DEBRIS,
                           .fn = fn,
                           .user = user,
                           .cancel = cancel};
    const zarr_status st = list_below(&l, prefix, err);

    return st == ZARR_OK && l.is_of_debris && !l.is_ended
               ? zr_s3_list_uploads(self, prefix, fn, user, cancel, err)
               : st;
}

/* ---- cleaning ---- */

struct s3_cleaning {
    struct zr_s3_store *s;
    const zarr_cancel *cancel;
    uint64_t n_removed;
    zarr_status st;
    zarr_error *err;
};

static int clean_key(void *user, const zarr_store_item *item)
{
    struct s3_cleaning *c = user;
    struct zr_s3_request r = {.store = c->s,
                              .method = "DELETE",
                              .key = item->key,
                              .is_repeatable = true,
                              .repeats_409 = true,
                              .cancel = c->cancel};

    c->st = zr_s3_call(&r, c->err);
    if (c->st == ZARR_OK && r.net.answer.status / 100 != 2)
        c->st = zr_s3_request_fail(&r, c->err);
    zr_s3_request_deinit(&r);
    c->n_removed += c->st == ZARR_OK;
    return c->st != ZARR_OK;
}

zarr_status zr_s3_clean(void *self, const char *prefix, uint64_t min_age_s,
                        uint64_t *n_removed, const zarr_cancel *cancel, zarr_error *err)
{
    struct zr_s3_store *s = self;
    struct s3_cleaning c = {.s = s, .cancel = cancel, .err = err};
    struct s3_listing l = {.store = s,
                           .is_deep = true,
                           .is_of_debris = true,
                           .min_age_s = min_age_s,
                           .fn = clean_key,
                           .user = &c,
                           .cancel = cancel};
    const zarr_status st = list_below(&l, prefix, err);

    *n_removed = c.n_removed;
    return st == ZARR_OK ? c.st : st;
}
