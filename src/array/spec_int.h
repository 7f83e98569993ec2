/*
 * array/spec_int.h - between spec.c, spec_codecs.c and create.c: a wish
 * for an array on its way to a metadata document.
 */
#ifndef ZR_ARRAY_SPEC_INT_H
#define ZR_ARRAY_SPEC_INT_H

#include "array/array_int.h"

/* Reads a caller's spec. */
zarr_status zr_spec_read(zarr_array_spec *out, const zarr_array_spec *spec,
                         zarr_error *err);
/* A caller's spec with everything that it leaves to the array spec->like. */
struct zr_spec_like {
    zarr_array_spec spec;         /* like: NULL */
    struct zr_array_state *model; /* counted */
    const struct zr_json *root;   /* the model's document, in doc */
    struct zr_order order;        /* v2: of the stored elements */
    struct zr_json_doc doc;       /* holds the texts */
    const char *no_name;          /* the names of a scalar */
};
zarr_status zr_spec_like_make(struct zr_spec_like *l, const zarr_context *ctx,
                              const zarr_array_spec *changes, zarr_error *err);
void zr_spec_like_deinit(struct zr_spec_like *l);
/* JSON as text that lives as long as l. */
zarr_status zr_spec_like_text(struct zr_spec_like *l, const struct zr_json *v,
                              const char **out, zarr_error *err);
/* Sets codecs, index_codecs, and what goes with them: v2's order and byte order, the
 * grid if shards stay as they are. */
zarr_status zr_spec_like_codecs(struct zr_spec_like *l, const zarr_context *ctx,
                                const zarr_array_spec *changes, zarr_error *err);
/* The document that it asks for in parsed, v2 attributes in attrs (root NULL: none);
 * *format is told. */
zarr_status zr_spec_document(struct zr_parsed *parsed, struct zr_parsed *attrs,
                             int32_t *format, const zarr_context *ctx,
                             const zarr_array_spec *spec, zarr_error *err);

struct zr_spec_codecs {
    const zarr_context *ctx;
    struct zr_json_doc *doc;
    const zarr_array_spec *spec;
    const zarr_dtype *dtype;
    const char *endian;          /* "little" or "big" */
    const uint64_t *chunk_shape; /* with shards: of the inner chunks */
};
/* v3: the whole list, shards included. *out belongs to doc. */
zarr_status zr_spec_codecs_v3(struct zr_json **out, const struct zr_spec_codecs *c,
                              zarr_error *err);
/* v2: sets "filters" and "compressor" of a .zarray. */
zarr_status zr_spec_codecs_v2(struct zr_json *root, const struct zr_spec_codecs *c,
                              zarr_error *err);
/* v2: takes `bytes` and `transpose` out of them, into "dtype" and "order". */
zarr_status zr_spec_fold_v2(struct zr_json *root, const struct zr_spec_codecs *c,
                            zarr_error *err);
/* JSON text of a member of the spec, copied into doc; INVALID names the member. */
zarr_status zr_spec_json(struct zr_json **out, const zarr_context *ctx,
                         struct zr_json_doc *doc, const char *text, const char *member,
                         zarr_error *err);
/* Whether it asks for shards. */
static inline bool zr_spec_sharded(const zarr_array_spec *s)
{
    return s->shard_shape || (s->chunk_grid && s->chunk_shape);
}
struct zr_json *zr_spec_numbers(struct zr_json_doc *doc, const uint64_t *v, int32_t n);

void zr_chunk_guess(uint64_t *chunk, int32_t ndim, const uint64_t *shape,
                    uint64_t item_bytes);
void zr_chunk_guess_in_shard(uint64_t *chunk, int32_t ndim, const uint64_t *shard,
                             uint64_t item_bytes);

#endif
