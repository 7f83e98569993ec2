/*
 * node/parsed_document.c - a parsed document. It is counted, because several states share
 * one: those of a group, of its consolidated metadata, and of arrays opened through it.
 * Thread class: frozen once published.
 */
#include "node/node.h"

zarr_status zr_parsed_new(struct zr_parsed **out, const zarr_allocator *alloc,
                          zarr_error *err)
{
    struct zr_parsed *t = zr_calloc(alloc, 1, sizeof *t);

    *out = t;
    if (!t)
        return zr_fail_memory(err, sizeof *t);
    atomic_init(&t->refs, 1);
    t->alloc = alloc;
    zr_json_doc_init(&t->json, alloc);
    return ZARR_OK;
}

zarr_status zr_parsed_read(struct zr_parsed **out, const struct zr_doc *d,
                           const zarr_context *ctx, zarr_error *err)
{
    struct zr_parsed *parsed = NULL;
    zarr_status st = ZARR_OK;

    *out = NULL;
    ZR_TRY(zr_parsed_new(&parsed, ctx->alloc, err));
    ZR_TRY(zr_doc_parse(&parsed->json, d, &ctx->limits, err));
    *out = parsed; /* moved */
    parsed = NULL;
out:
    zr_parsed_free(parsed);
    return st;
}

struct zr_parsed *zr_parsed_ref(struct zr_parsed *t)
{
    if (t)
        atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

void zr_parsed_free(struct zr_parsed *t)
{
    if (!t || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1)
        return;
    zr_json_doc_deinit(&t->json);
    zr_free(t->alloc, t);
}
