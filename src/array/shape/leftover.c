/*
 * array/shape/leftover.c - the record of leftovers. A shrink and an append change the
 * document and chunks, which no store does in one step. Before the first change they
 * write a small object next to the document, .zarrc-leftovers. It says up to which shape
 * elements may be stored outside of the array's shape. They remove it when nothing is
 * left there. If they are killed, or fail, the record stays, and the next resize clears
 * these elements before a larger shape would show them. So a grow without leftovers costs
 * one look-up. Thread class: plain functions, called under the lock of the array's shape.
 */
#include "array/shape/shape_int.h"
#include "array/stored/stored_int.h"

#include <string.h>

enum {
    RECORD_VERSION = 1
};
static const char version_member[] = "zarrc_leftovers", extent_member[] = "extent";

/* Whether the text is a record for this rank. A text that is not may come from a later
 * version, or from an array that another program replaced. */
static zarr_status parse_record(struct zr_leftover *out, const zarr_array *a,
                                const struct zr_doc *doc, int32_t ndim, zarr_error *err)
{
    uint64_t version = 0;
    bool some = ndim == 0;
    const struct zr_json *v = NULL;
    struct zr_json_doc json;
    zarr_error e = {0};
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&json, a->h.ctx->alloc);
    st = zr_doc_parse(&json, doc, &a->h.ctx->limits, &e);
    if (st == ZARR_ERR_NO_MEMORY)
        ZR_TRY(zr_pass(err, st, &e));
    v = st == ZARR_OK ? zr_json_get(json.root, extent_member) : NULL;
    out->known = st == ZARR_OK &&
                 zr_json_u64(zr_json_get(json.root, version_member), &version) &&
                 version == RECORD_VERSION && zr_json_is(v, ZR_JSON_ARRAY) &&
                 zr_json_count(v) == (size_t)ndim;
    v = out->known ? v->u.children.first : NULL;
    for (int32_t d = 0; v && d < ndim; d++, v = v->next) {
        out->known = zr_json_u64(v, &out->extent[d]) && out->known;
        some = some || out->extent[d] > 0;
    }
    if (out->known && !some) /* drop_record() could not erase it */
        *out = (struct zr_leftover){0};
    st = ZARR_OK;
out:
    zr_json_doc_deinit(&json);
    return st;
}

static struct zr_doc_source record_source(const zarr_array *a)
{
    return (struct zr_doc_source){
        .store = a->h.store, .path = a->h.path, .name = ZR_DOC_LEFTOVERS};
}

zarr_status zr_leftover_read(struct zr_leftover *out, const zarr_array *a, int32_t ndim,
                             const zarr_cancel *cancel, zarr_error *err)
{
    struct zr_doc_source src = record_source(a);
    struct zr_doc doc;
    zarr_error e = {0};
    zarr_status st = ZARR_OK;

    *out = (struct zr_leftover){0};
    src.cancel = cancel;
    zr_doc_init(&doc, a->h.ctx->alloc);
    st = zr_doc_get(&doc, &src, &e);
    if (st == ZARR_ERR_NOT_FOUND) {
        st = ZARR_OK;
        goto out;
    }
    out->found = st == ZARR_OK || st == ZARR_ERR_LIMIT;
    if (st == ZARR_OK)
        ZR_TRY(parse_record(out, a, &doc, ndim, err));
    else if (out->found)
        st = ZARR_OK;
    else
        zr_doc_prefix(err, zr_pass(err, st, &e), a->h.path, ZR_DOC_LEFTOVERS);
out:
    zr_doc_deinit(&doc);
    return st;
}

bool zr_leftover_covers(const struct zr_leftover *r, int32_t ndim, const uint64_t *shape)
{
    bool covers = r->found;

    for (int32_t d = 0; d < ndim && r->known; d++)
        covers = covers && r->extent[d] >= shape[d];
    return covers;
}

bool zr_leftover_is_within(const struct zr_leftover *r, int32_t ndim,
                           const uint64_t *shape)
{
    bool within = !r->found || r->known;

    for (int32_t d = 0; d < ndim && r->known; d++)
        within = within && r->extent[d] <= shape[d];
    return within;
}

/* ---- writing ------------------------------------------------------------ */

struct noting {
    struct zr_leftover *out;
    const zarr_array *a;
    const uint64_t *shape;
    int32_t ndim;
};

static void print_record(struct zr_str *text, const uint64_t *extent, int32_t ndim)
{
    zr_str_printf(text, "{\"%s\": %d, \"%s\": [", version_member, RECORD_VERSION,
                  extent_member);
    for (int32_t d = 0; d < ndim; d++)
        zr_str_printf(text, "%s%" PRIu64, d > 0 ? ", " : "", extent[d]);
    zr_str_puts(text, "]}\n");
}

/* A record that cannot be read stays: it allows all elements. */
static zarr_status edit_record(void *arg, const struct zr_doc *old, struct zr_str *text,
                               zarr_error *err)
{
    const struct noting *n = arg;
    struct zr_leftover *r = n->out;

    *r = (struct zr_leftover){.found = old != NULL};
    if (old)
        ZR_CHECK(parse_record(r, n->a, old, n->ndim, err));
    if (zr_leftover_covers(r, n->ndim, n->shape))
        return ZARR_OK;
    r->found = r->known = true;
    for (int32_t d = 0; d < n->ndim; d++)
        r->extent[d] = ZR_MAX(r->extent[d], n->shape[d]);
    print_record(text, r->extent, n->ndim);
    return ZARR_OK;
}

zarr_status zr_leftover_note(struct zr_leftover *out, const zarr_array *a, int32_t ndim,
                             const uint64_t *shape, zarr_error *err)
{
    const struct zr_doc_source src = record_source(a);
    struct noting n = {.out = out, .a = a, .shape = shape, .ndim = ndim};
    const struct zr_doc_edit edit = {.fn = edit_record, .arg = &n, .may_be_new = true};

    return zr_doc_update(&src, &edit, err);
}

struct dropping {
    const zarr_array *a;
    const struct zr_leftover *done;
    int32_t ndim;
    bool erase;
};

/* A record that says more than what was done is of another call. */
static zarr_status edit_drop(void *arg, const struct zr_doc *old, struct zr_str *text,
                             zarr_error *err)
{
    static const uint64_t nothing[ZARR_MAX_RANK];
    struct dropping *x = arg;
    struct zr_leftover now;

    x->erase = false;
    if (!old)
        return ZARR_OK;
    now = (struct zr_leftover){.found = true};
    ZR_CHECK(parse_record(&now, x->a, old, x->ndim, err));
    x->erase = now.found && (now.known && x->done->known
                                 ? zr_leftover_is_within(&now, x->ndim, x->done->extent)
                                 : now.known == x->done->known);
    if (x->erase)
        print_record(text, nothing, x->ndim);
    return ZARR_OK;
}

/* Removes the record after what it allows was done. If only versions keep two calls
 * apart, the record of another call, which came meanwhile, stays. */
static zarr_status drop_record(const zarr_array *a, const struct zr_leftover *done,
                               int32_t ndim, zarr_error *err)
{
    const struct zr_doc_source src = record_source(a);
    struct dropping x = {.a = a, .done = done, .ndim = ndim};
    const struct zr_doc_edit edit = {
        .fn = edit_drop, .arg = &x, .may_be_new = true, .erase = &x.erase};

    if (!zr_store_is_by_version(a->h.store))
        return zr_doc_erase(a->h.store, a->h.path, ZR_DOC_LEFTOVERS, true, NULL, err);
    return zr_doc_update(&src, &edit, err);
}

void zr_leftover_drop(const zarr_array *a, const struct zr_leftover *done, int32_t ndim)
{
    zarr_error e = {0};

    if (drop_record(a, done, ndim, &e) != ZARR_OK)
        zr_log(&a->h.ctx->log, ZARR_LOG_WARN, "/%s: %s is not needed, but stays: %s",
               a->h.path, ZR_DOC_LEFTOVERS, e.message);
}

/* ---- clearing ----------------------------------------------------------- */

zarr_status zr_outside_clear(const zarr_array *a, struct zr_array_state *now,
                             const zarr_cancel *cancel, zarr_error *err)
{
    struct zr_trim_job job = {.a = a,
                              .shape = now->meta.shape,
                              .everything = true,
                              .look_first = true,
                              .keep_lossy = true,
                              .cancel = cancel};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_outside_state(&job.old, a, now, NULL, err));
    st = zr_array_trim(&job, err);
out:
    zr_array_state_free(job.old);
    return st;
}

/* Clears up to the shape of the record, or everything if the shape is not known or the
 * grid does not reach there. */
static zarr_status clear_extent(const zarr_array *a, struct zr_array_state *now,
                                const struct zr_leftover *r, const zarr_cancel *cancel,
                                zarr_error *err)
{
    struct zr_trim_job job = {
        .a = a, .shape = now->meta.shape, .look_first = true, .cancel = cancel};
    uint64_t shape[ZARR_MAX_RANK];
    zarr_error e = {0};
    zarr_status st = ZARR_OK;

    for (int32_t d = 0; d < now->meta.ndim; d++)
        shape[d] = ZR_MAX(now->meta.shape[d], r->extent[d]);
    if (r->known)
        st = zr_outside_state(&job.old, a, now, shape, &e);
    if (st == ZARR_ERR_NO_MEMORY || zr_is_store_failure(st))
        ZR_TRY(zr_pass(err, st, &e));
    if (!job.old) {
        if (!zr_store_can(a->chunk_store, ZARR_STORE_CAP_LIST))
            ZR_FAIL(err, ZARR_ERR_UNSUPPORTED,
                    "it says that elements outside of the shape may be left over, "
                    "but not up to where, and the store of the chunks cannot "
                    "list");
        job.everything = true;
        ZR_TRY(zr_outside_state(&job.old, a, now, NULL, err));
    }
    ZR_TRY(zr_array_trim(&job, err));
out:
    zr_array_state_free(job.old);
    return st;
}

zarr_status zr_leftover_clear(const zarr_array *a, struct zr_array_state *now,
                              const struct zr_leftover *r, const zarr_cancel *cancel,
                              zarr_error *err)
{
    zarr_status st = clear_extent(a, now, r, cancel, err);

    /* A larger shape may reach the disk at once. A flush also covers what an earlier try
     * cleared, which this one left alone. */
    if (st == ZARR_OK)
        st = zr_store_flush(a->chunk_store, cancel, err);
    if (st == ZARR_OK)
        st = drop_record(a, r, now->meta.ndim, err);
    zr_prefix(err, st, "%s: clearing what an interrupted resize or append left failed",
              ZR_DOC_LEFTOVERS);
    return st;
}
