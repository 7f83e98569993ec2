/*
 * array/create/limits.c - whether a new array fits limits: those of its own context,
 * which refuse it, and the defaults, about which the log gets a warning. A default that
 * depends on the reader's memory counts with its least value.
 * Thread class: plain functions.
 */
#include "array/array_int.h"

static zarr_status check_layout(const struct zr_array_state *s, const zarr_context *ctx,
                                const zarr_limits *limits, zarr_error *err)
{
    const struct zr_layout_args args = {.grid = &s->meta.grid,
                                        .chain = s->meta.chain,
                                        .keys = &s->meta.keys,
                                        .dtype = s->meta.dtype,
                                        .fill = s->meta.fill,
                                        .index_dtype = ctx->uint64,
                                        .impls = &ctx->impls,
                                        .limits = limits,
                                        .device_type = ZARR_DEVICE_CPU,
                                        .trust = ctx->trust};
    struct zr_layout *layout = NULL;
    const zarr_status st = zr_layout_make(&layout, &args, ctx->alloc, err);

    zr_layout_free(layout);
    return st == ZARR_ERR_LIMIT ? st : ZARR_OK; /* else reading says what is wrong */
}

zarr_status zr_array_fits(const struct zr_array_state *s, const zarr_context *ctx,
                          const zarr_limits *limits, zarr_error *err)
{
    const uint64_t largest = zr_largest_chunk_bytes(&s->meta.grid, s->meta.dtype);
    zarr_limits own;

    zr_chunk_limits(&own, limits, s->meta.dtype);
    if (!s->meta.grid.regular && !s->sharded && largest > own.chunk_bytes)
        return zr_fail_limit(err, zr_chunk_limit_name(s->meta.dtype), own.chunk_bytes,
                             "a chunk of %" PRIu64 " bytes", largest);
    return check_layout(s, ctx, &own, err);
}

void zr_array_warn_readers(const struct zr_array_state *s, const zarr_context *ctx,
                           const struct zr_str *text, const char *path)
{
    zarr_limits usual;
    struct zr_json_doc doc;
    zarr_error why = {0};
    zarr_status st = ZARR_OK;

    zr_limits_default(&usual);
    usual.chunk_bytes = ZR_CHUNK_BYTES_LEAST;
    usual.variable_chunk_bytes = ZR_VARIABLE_CHUNK_BYTES_LEAST;
    zr_json_doc_init(&doc, ctx->alloc);
    if (text->bytes > usual.metadata_bytes)
        st = zr_fail_limit(&why, "metadata_bytes", usual.metadata_bytes,
                           "the document has %zu bytes", text->bytes);
    if (st == ZARR_OK)
        st = zr_json_parse(&doc, zr_str_text(text), text->bytes, &usual, &why);
    if (st == ZARR_OK)
        st = zr_array_fits(s, ctx, &usual, &why);
    if (st == ZARR_ERR_LIMIT)
        zr_log(&ctx->log, ZARR_LOG_WARN,
               "/%s: a reader with default limits may refuse this array: %s", path,
               why.message);
    zr_json_doc_deinit(&doc);
}
