/*
 * unit/chain/chain_test.h - registries with the core's data types and codecs, and chains
 * made from text in one call. The tests of chain, impl and codecs and the fuzz targets
 * share it, so nothing in it asserts.
 */
#ifndef ZR_TESTS_CHAIN_TEST_H
#define ZR_TESTS_CHAIN_TEST_H

#include <stdio.h>
#include <string.h>

#include "codecs/codecs.h"

struct codec_env {
    struct zr_dtype_registry dtypes;
    struct zr_codec_registry codecs;
    const zarr_allocator *alloc;
    bool stored; /* chains come from a store */
};

static inline void codec_env_close(struct codec_env *e)
{
    zr_codec_registry_deinit(&e->codecs);
    zr_dtype_registry_deinit(&e->dtypes);
}

static inline zarr_status codec_env_open(struct codec_env *e, const zarr_allocator *alloc,
                                         zarr_error *err)
{
    zarr_status st = ZARR_OK;

    *e = (struct codec_env){.alloc = alloc};
    zr_codec_registry_init(&e->codecs, &e->dtypes, alloc);
    ZR_TRY(zr_dtype_registry_init(&e->dtypes, alloc, err));
    for (size_t i = 0; zr_dtype_core[i]; i++)
        ZR_TRY(zr_dtype_register(&e->dtypes, zr_dtype_core[i], "core", err));
    for (size_t i = 0; zr_chain_specs[i]; i++)
        ZR_TRY(zr_codec_spec_register(&e->codecs, zr_chain_specs[i], "core", err));
    for (size_t i = 0; zr_codecs_specs[i]; i++)
        ZR_TRY(zr_codec_spec_register(&e->codecs, zr_codecs_specs[i], "core", err));
out:
    if (st != ZARR_OK)
        codec_env_close(e);
    return st;
}

/* `limits` may be NULL. The text is copied to a buffer of its exact size, so that a
 * sanitizer detects a read past its end. */
static inline zarr_status codec_env_parse(struct zr_chain **out,
                                          const struct codec_env *e, int format,
                                          const char *text, const zarr_limits *limits,
                                          zarr_error *err)
{
    const struct zr_chain_parse_options opts = {
        .format = format, .limits = limits, .stored = e->stored};
    struct zr_json_doc doc;
    zarr_status st = ZARR_OK;

    *out = NULL;
    zr_json_doc_init(&doc, e->alloc);
    ZR_TRY(zr_json_parse(&doc, text, strlen(text), NULL, err));
    ZR_TRY(zr_chain_parse(out, &e->codecs, doc.root, &opts, e->alloc, err));
out:
    zr_json_doc_deinit(&doc);
    return st;
}

/* A 0 ends dims. */
static inline zarr_status codec_env_chunk(zarr_chunk_spec *out, struct codec_env *e,
                                          const char *dtype, const uint64_t *dims,
                                          zarr_error *err)
{
    *out = (zarr_chunk_spec){.struct_size = sizeof *out};
    while (dims[out->ndim]) {
        out->shape[out->ndim] = dims[out->ndim];
        out->ndim++;
    }
    return zr_dtype_find(&e->dtypes, dtype, &out->dtype, NULL, err);
}

/* Writes the chain as compact JSON into `text`. False if it cannot be written or does
 * not fit. */
static inline bool codec_env_write(const struct zr_chain *chain, int format, char *text,
                                   size_t cap)
{
    struct zr_json_doc doc;
    struct zr_json *v = NULL;
    struct zr_str s;
    bool ok = false;

    zr_json_doc_init(&doc, NULL);
    zr_str_init(&s, NULL);
    v = zr_chain_write(&doc, chain, format);
    if (v) {
        zr_json_write(v, 0, &s);
        ok = !s.failed && (size_t)snprintf(text, cap, "%s", zr_str_text(&s)) < cap;
    }
    zr_str_deinit(&s);
    zr_json_doc_deinit(&doc);
    return ok;
}

#endif
