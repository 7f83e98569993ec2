/*
 * tree/reencode.c - zarr_node_reencode(): plans all documents, checks that buffers
 * suffice and what is at the destination, writes every array, compares on request, and
 * publishes the documents. Nothing is deleted or written before the last check has
 * passed.
 * Thread class: plain function.
 */
#include "array/array.h"
#include "tree/reencode_int.h"

#include <string.h>

enum {
    REENCODE_FLAGS = ZARR_REENCODE_RESUME | ZARR_REENCODE_OVERWRITE |
                     ZARR_REENCODE_VERIFY | ZARR_REENCODE_KEEP_FILL |
                     ZARR_REENCODE_MISSING_ERROR | ZARR_REENCODE_CONSOLIDATED
};

void zr_reencode_progress(const struct zr_reencode *r, const char *path,
                          uint64_t under_way)
{
    const zarr_reencode_result *s = &r->result;
    const zarr_progress now = {
        .struct_size = sizeof now,
        .flags = r->comparing ? ZARR_PROGRESS_COMPARING : 0,
        .path = path,
        .objects_done = s->objects_written,
        .bytes_done = ZR_MIN(zr_add_cap(r->done_bytes, under_way), s->bytes),
        .bytes_total = s->bytes,
        .bytes_skipped = r->comparing ? 0 : zr_add_cap(s->bytes_skipped, s->bytes_empty)};

    if (r->opts.progress)
        r->opts.progress(r->opts.progress_user, &now);
}

/* ---- every array ------------------------------------------------------- */

/* The destination was planned for the source as it was then. */
static zarr_status reencode_same_shape(const struct zr_reencode *r,
                                       const struct zr_reencode_pair *pair,
                                       zarr_error *err)
{
    const uint64_t *src = zarr_array_shape(pair->src), *dst = zarr_array_shape(pair->dst);
    const int32_t ndim = zarr_array_ndim(pair->dst);

    if (zarr_array_ndim(pair->src) == ndim &&
        (r->opts.read || memcmp(src, dst, (size_t)ndim * sizeof *src) == 0))
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_CONFLICT,
                   "/%s: another writer resized it while it was re-encoded", pair->path);
}

typedef zarr_status (*reencode_step)(struct zr_reencode *r,
                                     const struct zr_reencode_pair *pair,
                                     zarr_error *err);

static zarr_status each_pair(struct zr_reencode *r, const char *below, reencode_step fn,
                             zarr_error *err)
{
    zarr_array_open_options opts = ZARR_ARRAY_OPEN_OPTIONS_INIT;
    zarr_array_open_options from = ZARR_ARRAY_OPEN_OPTIONS_INIT;
    struct zr_reencode_pair pair = {0};
    struct zr_str src, dst;
    zarr_status st = ZARR_OK;

    zr_str_init(&src, r->ctx->alloc);
    zr_str_init(&dst, r->ctx->alloc);
    ZR_TRY(zr_path_key(&src, r->src_path, below, err));
    ZR_TRY(zr_path_key(&dst, r->dst_path, below, err));
    opts.chunk_store = r->dst;
    from.cancel = r->opts.cancel;
    pair.path = zr_str_text(&src);
    if (r->opts.flags & ZARR_REENCODE_MISSING_ERROR)
        from.missing_chunks = ZARR_MISSING_ERROR;
    ZR_TRY(zarr_array_open(&pair.src, r->src, pair.path, &from, err));
    ZR_TRY(zarr_array_open(&pair.dst, r->target, zr_str_text(&dst), &opts, err));
    ZR_TRY(reencode_same_shape(r, &pair, err));
    pair.grid = zr_array_grid(pair.dst);
    ZR_TRY(fn(r, &pair, err));
out:
    zarr_array_free(pair.src);
    zarr_array_free(pair.dst);
    zr_str_deinit(&src);
    zr_str_deinit(&dst);
    return st;
}

static zarr_status each_array(struct zr_reencode *r, reencode_step fn, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (size_t i = 0; i < r->nodes.n && st == ZARR_OK; i++)
        if (r->nodes.item[i].kind == ZARR_NODE_ARRAY)
            st = each_pair(r, r->nodes.item[i].path, fn, err);
    return st;
}

/* Checks that the buffers suffice, before anything is deleted or written. */
static zarr_status check_buffers(struct zr_reencode *r,
                                 const struct zr_reencode_pair *pair, zarr_error *err)
{
    struct zr_reencode_shape shape = {.n_buffers = 0};
    uint64_t need = 0;
    zarr_status st =
        zr_array_memory_check(pair->src, ZARR_DEVICE_CPU, NULL, false, &need, err);

    if (st == ZARR_OK ||
        st == ZARR_ERR_LIMIT) /* which names the larger need of the two */
        st = zr_array_memory_check(pair->dst, ZARR_DEVICE_CPU, NULL, true, &need, err);
    ZR_TRY(st);
    st = zr_reencode_shape(r, pair, &shape, err);
out:
    return st;
}

/* ---- the call ---------------------------------------------------------- */

static zarr_status check_overlap(const struct zr_reencode *r, zarr_error *err)
{
    bool overlap = false;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_store_overlap(r->src, r->src_path, r->dst, r->dst_path, &overlap, err));
    if (overlap)
        st = zr_fail(err, ZARR_ERR_INVALID,
                     "/%s cannot be written to /%s: they are one place, or one is inside "
                     "the other",
                     r->src_path, r->dst_path);
out:
    return st;
}

static zarr_status reencode_elements(struct zr_reencode *r, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (r->result.state != ZARR_REENCODE_COMPLETE) {
        zr_reencode_progress(r, r->src_path, 0);
        ZR_TRY(each_array(r, zr_reencode_array, err));
    }
    if (r->opts.flags & ZARR_REENCODE_VERIFY) {
        r->comparing = true;
        r->done_bytes = 0;
        zr_reencode_progress(r, r->src_path, 0);
        ZR_TRY(each_array(r, zr_reencode_compare, err));
        r->result.verified = 1;
    }
out:
    return st;
}

static zarr_status reencode_run(struct zr_reencode *r, const char *src_path,
                                const char *dst_path, zarr_error *err)
{
    const zarr_limits *limits = &r->ctx->limits;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_path_normal(&r->src_path, r->ctx->alloc, src_path, limits, err));
    ZR_TRY(zr_path_normal(&r->dst_path, r->ctx->alloc, dst_path, limits, err));
    ZR_TRY(check_overlap(r, err));
    ZR_TRY(zr_nodes_find(&r->nodes, r->src, r->src_path, r->opts.cancel, err));
    ZR_TRY(zr_reencode_plan(r, err));
    ZR_TRY(each_array(r, check_buffers, err));
    ZR_TRY(zr_claim_take(&r->claim, r->dst, r->dst_path, r->opts.cancel, err));
    ZR_TRY(zr_reencode_begin(r, err));
    ZR_TRY(reencode_elements(r, err));
    ZR_TRY(zr_reencode_finish(r, err));
out:
    return st;
}

/* Reads the caller's changes. They may not change elements, and each array is like its
 * source. */
static zarr_status reencode_changes(struct zr_reencode *r, zarr_error *err)
{
    const uint32_t flags = ZARR_SPEC_INDEX_AT_START | ZARR_SPEC_NO_SHARDS;
    const zarr_array_spec *c = &r->changes;
    int32_t *format = &r->opts.zarr_format;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_struct_read(&r->changes, sizeof r->changes, 2 * sizeof(uint32_t),
                          r->opts.changes, ZR_TAIL_REFUSE, "zarr_array_spec", err));
    if (r->opts.changes && r->opts.make)
        ZR_FAIL(err, ZARR_ERR_INVALID,
                "reencode options: `changes` and `make` exclude each other");
    if (c->shape || c->data_type || c->document || c->like || c->flags & ~flags)
        ZR_FAIL(err, ZARR_ERR_INVALID,
                "reencode options: `changes` may not say shape, data_type, "
                "document, like, or how to create");
    if (*format && c->zarr_format && *format != c->zarr_format)
        ZR_FAIL(err, ZARR_ERR_INVALID,
                "reencode options: zarr_format is %" PRId32
                ", that of `changes` %" PRId32,
                *format, c->zarr_format);
    if (!*format)
        *format = c->zarr_format;
out:
    return st;
}

static zarr_status reencode_options(struct zr_reencode *r,
                                    const zarr_reencode_options *opts, zarr_error *err)
{
    const uint32_t both = ZARR_REENCODE_RESUME | ZARR_REENCODE_OVERWRITE;
    const int32_t *format = &r->opts.zarr_format;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_struct_read(&r->opts, sizeof r->opts, 2 * sizeof(uint32_t), opts,
                          ZR_TAIL_REFUSE, "zarr_reencode_options", err));
    ZR_TRY(zr_flags_check(r->opts.flags, REENCODE_FLAGS, "reencode options", err));
    if ((r->opts.flags & both) == both)
        ZR_FAIL(err, ZARR_ERR_INVALID,
                "reencode options: RESUME and OVERWRITE exclude each other");
    ZR_TRY(reencode_changes(r, err));
    if (*format != 0 && *format != 2 && *format != 3)
        ZR_FAIL(err, ZARR_ERR_INVALID, "reencode options: unknown format %" PRId32,
                *format);
out:
    return st;
}

zarr_status zarr_node_reencode(zarr_store *src, const char *src_path, zarr_store *dst,
                               const char *dst_path, zarr_reencode_result *result,
                               const zarr_reencode_options *opts, zarr_error *err)
{
    ZR_NEED(src, err);
    ZR_NEED(dst, err);
    struct zr_reencode r = {.src = src, .dst = dst, .ctx = zr_store_context(src)};
    zarr_status st = ZARR_OK;

    zr_str_init(&r.job, r.ctx->alloc);
    st = reencode_options(&r, opts, err);
    if (st == ZARR_OK)
        st = reencode_run(&r, src_path, dst_path, err);
    if (result)
        zr_struct_give(result, result->struct_size, &r.result, sizeof r.result);
    zr_claim_give(&r.claim);
    zr_str_deinit(&r.job);
    zarr_store_free(r.target);
    zr_nodes_free(&r.nodes);
    zr_free(r.ctx->alloc, r.src_path);
    zr_free(r.ctx->alloc, r.dst_path);
    return st;
}
