/*
 * s3/erase.c - many ERASEs at once: DeleteObjects takes up to 1,000 keys. Only a key that
 * the answer names as deleted is gone. Each other one gets a request of its own, whose
 * answer tells why.
 * Thread class: shared; moves from its thread to a reactor.
 */
#include "s3/s3_int.h"

#include <stdlib.h>
#include <string.h>

enum {
    ERASE_MOST = 1000,
    ERASE_ANSWER_MOST = 16 << 20
};

struct erase_row {
    zarr_store_op *op;
    bool is_gone, has_failed; /* as the answer says; it may say both */
};

struct s3_erase {
    struct zr_s3_request request; /* first */
    struct zr_s3_store *store;
    zr_s3_done_fn *done;
    void *arg;
    struct zr_str body;
    /* of the answer */
    int depth;
    bool in_deleted, in_error;
    bool is_known;  /* this row has named a key of ours */
    bool has_stray; /* an error of a key that is none of ours */
    bool is_result;
    size_t n;
    struct erase_row row[]; /* by key */
};

static int compare_erased_rows(const void *a, const void *b)
{
    return strcmp(((const struct erase_row *)a)->op->key,
                  ((const struct erase_row *)b)->op->key);
}

/* ---- the answer ---- */

static zarr_status erase_element(void *user, const char *name, zarr_error *err)
{
    struct s3_erase *e = user;
    const char *const local = zr_s3_local_name(name);

    if (e->depth++ == 0)
        return zr_streq(local, "DeleteResult")
                   ? ZARR_OK
                   : zr_fail(err, ZARR_ERR_CORRUPT, "it is no DeleteResult");
    if (e->depth == 2) {
        e->in_deleted = zr_streq(local, "Deleted");
        e->in_error = zr_streq(local, "Error");
        e->is_known = false;
    }
    return ZARR_OK;
}

/* Finds the operations of a key in the bucket. Returns whether there are some. */
static bool mark_key(struct s3_erase *e, const char *key)
{
    const char *const prefix = zr_str_text(&e->store->prefix);
    size_t low = 0, high = e->n, mid;

    if (!zr_starts_with(key, prefix))
        return false;
    key += strlen(prefix);
    while (low < high) {
        mid = low + (high - low) / 2;
        if (strcmp(e->row[mid].op->key, key) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    for (high = low; high < e->n && zr_streq(e->row[high].op->key, key); high++) {
        e->row[high].is_gone = e->in_deleted && !e->row[high].has_failed;
        e->row[high].has_failed = !e->row[high].is_gone;
    }
    return high > low;
}

static zarr_status erase_text(void *user, const char *name, const char *text,
                              zarr_error *err)
{
    struct s3_erase *e = user;

    ZR_UNUSED(err);
    if (e->depth == 3 && text && zr_streq(zr_s3_local_name(name), "Key") &&
        (e->in_deleted || e->in_error))
        e->is_known = mark_key(e, text);
    if (e->depth == 2 && e->in_error && !e->is_known)
        e->has_stray = true;
    if (e->depth == 1)
        e->is_result = true;
    e->depth--;
    return ZARR_OK;
}

/* ---- the end ---- */

static void erase_free(struct s3_erase *e)
{
    const zarr_allocator *alloc = e->store->reader.env.alloc;

    zr_s3_request_deinit(&e->request);
    zr_str_deinit(&e->body);
    zr_free(alloc, e);
}

/* How each operation ends. */
struct erase_outcome {
    struct zr_s3_store *store;
    zr_s3_done_fn *done;
    void *arg;
    zarr_status st; /* of those that are not gone; OK: each is erased by itself */
    zarr_error err;
};

static void end_erased_row(const struct erase_outcome *o, const struct erase_row *row)
{
    zarr_store_op *const op = row->op;
    zarr_error err = o->err;

    if (!row->is_gone && o->st == ZARR_OK) {
        zr_s3_write(o->store, op, o->done, o->arg);
        return;
    }
    op->status = row->is_gone ? ZARR_OK : o->st;
    op->os_code = row->is_gone ? 0 : err.os_code;
    if (!row->is_gone)
        zr_prefix_key(&err, o->st, op->key);
    o->done(o->arg, op, row->is_gone ? NULL : &err);
}

/* The last done() may free all, also the store: this block is freed before it. */
static void erase_end(struct s3_erase *e, zarr_status st, const zarr_error *err)
{
    struct erase_outcome o = {e->store, e->done, e->arg, st, {0}};
    const struct erase_row last = e->row[e->n - 1];

    if (st != ZARR_OK)
        o.err = *err;
    for (size_t i = 0; i + 1 < e->n; i++)
        end_erased_row(&o, &e->row[i]);
    erase_free(e);
    end_erased_row(&o, &last);
}

/* Whether the service erases no keys together, or only with a Content-MD5. */
static bool has_no_batches(const struct zr_s3_request *r)
{
    const uint32_t status = r->net.answer.status;
    const char *code = r->fault.code;

    return status == 501 || status == 405 || zr_streq(code, "MethodNotAllowed") ||
           zr_streq(code, "NotImplemented") ||
           (status == 400 &&
            (zr_streq(code, "InvalidRequest") || zr_streq(code, "MissingContentMD5")));
}

static void erase_done(struct zr_s3_request *r, zarr_status st, const zarr_error *said)
{
    struct s3_erase *e = (struct s3_erase *)(void *)r;
    const struct zr_xml_sink sink = {erase_element, erase_text, e};
    const uint32_t status = r->net.answer.status;
    zarr_error err = {0};

    if (st != ZARR_OK) {
        err = *said;
    } else if (status / 100 == 2) {
        if (zr_xml_read(&sink, e->body.alloc, zr_str_text(&r->answer), r->answer.bytes,
                        NULL) != ZARR_OK ||
            e->has_stray || !e->is_result)
            for (size_t i = 0; i < e->n; i++)
                e->row[i].is_gone = false;
    } else if (has_no_batches(r)) {
        atomic_store(&e->store->no_batches, true);
    } else {
        st = zr_s3_request_fail(r, &err);
    }
    erase_end(e, st, &err);
}

/* ---- the request ---- */

/* Whether XML can name the key. */
static bool is_xml(const char *key)
{
    for (const unsigned char *at = (const unsigned char *)key; *at; at++)
        if (*at < ' ' || (at[0] == 0xef && at[1] == 0xbf && at[2] >= 0xbe))
            return false;
    return true;
}

static void put_keys(struct s3_erase *e)
{
    zr_str_puts(&e->body, "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    for (size_t i = 0; i < e->n; i++) {
        if (i > 0 && zr_streq(e->row[i].op->key, e->row[i - 1].op->key))
            continue;
        zr_str_puts(&e->body, "<Object><Key>");
        zr_s3_put_xml(&e->body, zr_str_text(&e->store->prefix));
        zr_s3_put_xml(&e->body, e->row[i].op->key);
        zr_str_puts(&e->body, "</Key></Object>");
    }
    zr_str_puts(&e->body, "</Delete>");
}

static void erase_send(struct s3_erase *e)
{
    zarr_error err = {0};
    zarr_status st;

    qsort(e->row, e->n, sizeof e->row[0], compare_erased_rows);
    put_keys(e);
    st = zr_str_status(&e->body, &err);
    if (st != ZARR_OK) {
        erase_end(e, st, &err);
        return;
    }
    e->request = (struct zr_s3_request){.store = e->store,
                                        .method = "POST",
                                        .query = "delete=",
                                        .body = e->body.ptr,
                                        .body_bytes = e->body.bytes,
                                        .is_repeatable = true,
                                        .needs_checksum = true,
                                        .max_bytes = ERASE_ANSWER_MOST,
                                        .cancel = e->row[0].op->cancel,
                                        .tag = e->arg,
                                        .done = erase_done};
    zr_s3_send(&e->request);
}

static bool can_go_together(const struct zr_s3_store *s, const zarr_store_op *op)
{
    return op->verb == ZARR_STORE_ERASE && !(op->flags & ZARR_STORE_OP_IF_VERSION) &&
           !atomic_load(&s->no_batches) && is_xml(op->key) &&
           is_xml(zr_str_text(&s->prefix));
}

uint64_t zr_s3_erase_many(struct zr_s3_store *s, zarr_store_op **ops, uint64_t n,
                          zr_s3_done_fn *done, void *arg)
{
    const zarr_allocator *alloc = s->reader.env.alloc;
    struct s3_erase *e = NULL;
    size_t count = 0;

    while (count < n && count < ERASE_MOST && can_go_together(s, ops[count]) &&
           ops[count]->cancel == ops[0]->cancel)
        count++;
    if (count > 1)
        e = zr_calloc(alloc, 1, sizeof *e + count * sizeof e->row[0]);
    if (!e) { /* one alone, or no memory for many */
        zr_s3_write(s, ops[0], done, arg);
        return 1;
    }
    e->store = s;
    e->done = done;
    e->arg = arg;
    zr_str_init(&e->body, alloc);
    for (e->n = 0; e->n < count; e->n++)
        e->row[e->n].op = ops[e->n];
    erase_send(e);
    return count;
}
