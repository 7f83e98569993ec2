/*
 * array/create/spec_int.h - what spec.c, spec_codecs.c and create.c share: a caller's
 * spec on its way to a metadata document.
 */
#ifndef ZR_ARRAY_SPEC_INT_H
#define ZR_ARRAY_SPEC_INT_H

#include "array/array_int.h"

/* Copies and checks a caller's spec. */
zarr_status zr_spec_read(zarr_array_spec *out, const zarr_array_spec *spec,
                         zarr_error *err);
/* A caller's spec, completed with what the array spec->like has. */
struct zr_spec_like {
    zarr_array_spec spec;         /* its member `like` is NULL */
    struct zr_array_state *model; /* counted */
    const struct zr_json *root;   /* the model's document, in doc */
    struct zr_order order;        /* v2: byte order of the stored elements */
    struct zr_json_doc doc;       /* owns the texts and the document */
    const char *no_name;          /* dimension names of a scalar: an empty list */
};
zarr_status zr_spec_like_make(struct zr_spec_like *l, const zarr_context *ctx,
                              const zarr_array_spec *changes, zarr_error *err);
void zr_spec_like_deinit(struct zr_spec_like *l);
/* Writes JSON as text that lives as long as l. */
zarr_status zr_spec_like_text(struct zr_spec_like *l, const struct zr_json *v,
                              const char **out, zarr_error *err);
/* Sets codecs and index_codecs, and from them v2's order and byte order, and the grid if
 * shards stay as they are. */
zarr_status zr_spec_like_codecs(struct zr_spec_like *l, const zarr_context *ctx,
                                const zarr_array_spec *changes, zarr_error *err);
/* Makes the document that the spec asks for in `parsed`, and v2 attributes in `attrs`
 * (root NULL: none). Sets *format. With `for_device` a spec without codecs gets those
 * that devices are fast at. */
zarr_status zr_spec_document(struct zr_parsed *parsed, struct zr_parsed *attrs,
                             int32_t *format, const zarr_context *ctx,
                             const zarr_array_spec *spec, bool for_device,
                             zarr_error *err);

struct zr_spec_codecs {
    const zarr_context *ctx;
    struct zr_json_doc *doc;
    const zarr_array_spec *spec;
    const zarr_dtype *dtype;
    const char *endian;          /* "little" or "big" */
    const uint64_t *chunk_shape; /* of chunks, not of shards */
    bool for_device;
};
/* v3: makes the whole list, shards included. *out belongs to doc. */
zarr_status zr_spec_codecs_v3(struct zr_json **out, const struct zr_spec_codecs *c,
                              zarr_error *err);
/* v2: sets "filters" and "compressor" of a .zarray. */
zarr_status zr_spec_codecs_v2(struct zr_json *root, const struct zr_spec_codecs *c,
                              zarr_error *err);
/* v2: moves `bytes` and `transpose` from filters and compressor into "dtype" and
 * "order". */
zarr_status zr_spec_fold_v2(struct zr_json *root, const struct zr_spec_codecs *c,
                            zarr_error *err);
/* Parses the JSON text of a member of the spec into doc. INVALID names the member. */
zarr_status zr_spec_json(struct zr_json **out, const zarr_context *ctx,
                         struct zr_json_doc *doc, const char *text, const char *member,
                         zarr_error *err);
/* Whether the spec asks for shards. */
static inline bool zr_spec_is_sharded(const zarr_array_spec *s)
{
    return s->shard_shape || (s->chunk_grid && s->chunk_shape);
}
struct zr_json *zr_spec_numbers(struct zr_json_doc *doc, const uint64_t *v, int32_t n);

#endif
