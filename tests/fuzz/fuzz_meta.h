/*
 * fuzz/fuzz_meta.h - what the targets of metadata do with a document: read it,
 * write it, read that again, write it again (the same text: the canonical form
 * is a fixed point), and convert it. A document that was accepted must survive
 * all of this.
 */
#ifndef ZR_TESTS_FUZZ_META_H
#define ZR_TESTS_FUZZ_META_H

#include <stdlib.h>
#include <string.h>

#include "unit/meta/env.h"

static struct meta_world fuzz_world;
static zarr_limits fuzz_limits;

static inline void fuzz_must(bool ok)
{
    if (!ok)
        abort();
}

static inline void fuzz_meta_open(void)
{
    fuzz_must(meta_world_open(&fuzz_world, NULL) == ZARR_OK);
    zarr_limits_untrusted(&fuzz_limits);
    fuzz_world.env.limits = &fuzz_limits;
}

static inline void fuzz_write(const struct zr_array_meta *m, struct zr_json_doc *doc,
                              struct zr_str *text)
{
    zr_str_init(text, NULL);
    fuzz_must(zr_array_meta_write(m, doc, &doc->root, NULL) == ZARR_OK);
    zr_json_write(doc->root, ZR_META_INDENT, text);
    fuzz_must(!text->failed);
}

static inline void fuzz_use(const struct zr_array_meta *m)
{
    uint64_t chunk[ZARR_MAX_RANK] = {0}, back[ZARR_MAX_RANK];
    zarr_chunk_spec spec;
    struct zr_str key;

    zr_str_init(&key, NULL);
    zr_array_meta_chunk(m, &spec);
    for (int32_t d = 0; d < m->ndim; d++)
        chunk[d] = m->shape[d];
    zr_key_encoding_key(&m->keys, m->ndim, chunk, &key);
    fuzz_must(zr_key_encoding_chunk(&m->keys, m->ndim, zr_str_text(&key), back));
    fuzz_must(memcmp(chunk, back, (size_t)m->ndim * sizeof *chunk) == 0);
    zr_str_deinit(&key);
}

static inline void fuzz_array(int format, const struct zr_json *root,
                              const struct zr_json *attributes)
{
    struct zr_array_meta m, again, other;
    struct zr_json_doc doc, doc2;
    struct zr_str text, text2;
    zarr_status st = ZARR_OK;
    zarr_error err;

    if (zr_array_meta_parse(&m, &fuzz_world.env, format, root, attributes, &err) !=
        ZARR_OK)
        return;
    zr_json_doc_init(&doc, NULL);
    zr_json_doc_init(&doc2, NULL);
    fuzz_use(&m);
    fuzz_write(&m, &doc, &text);
    if (zr_array_meta_parse(&again, &fuzz_world.env, format, doc.root, attributes, &err))
        abort();
    fuzz_write(&again, &doc2, &text2);
    fuzz_must(strcmp(zr_str_text(&text), zr_str_text(&text2)) == 0);
    st = zr_array_meta_convert(&other, &fuzz_world.env, &m, 5 - format, &err);
    if (st == ZARR_OK)
        fuzz_use(&other);
    else /* what we write ourselves is never wrong; it may be more than the other can say
          */
        fuzz_must(st == ZARR_ERR_UNSUPPORTED || st == ZARR_ERR_LIMIT);
    zr_array_meta_deinit(&other);
    zr_array_meta_deinit(&again);
    zr_array_meta_deinit(&m);
    zr_str_deinit(&text);
    zr_str_deinit(&text2);
    zr_json_doc_deinit(&doc);
    zr_json_doc_deinit(&doc2);
}

static inline void fuzz_group(int format, const struct zr_json *root,
                              struct zr_group_meta *m)
{
    struct zr_json_doc doc;
    struct zr_json *out = NULL;
    struct zr_group_meta again;

    if (zr_group_meta_parse(m, &fuzz_world.env, format, root, NULL, NULL) != ZARR_OK) {
        *m = (struct zr_group_meta){0};
        return;
    }
    zr_json_doc_init(&doc, NULL);
    fuzz_must(zr_group_meta_write(m, &doc, &out, NULL) == ZARR_OK);
    fuzz_must(zr_group_meta_parse(&again, &fuzz_world.env, format, out, NULL, NULL) ==
              ZARR_OK);
    zr_json_doc_deinit(&doc);
}

static inline bool fuzz_parse(struct zr_json_doc *doc, const uint8_t *data, size_t size)
{
    zr_json_doc_init(doc, NULL);
    return zr_json_parse(doc, (const char *)data, size, &fuzz_limits, NULL) == ZARR_OK;
}

#endif
