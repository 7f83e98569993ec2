/*
 * array/create/spec.c - makes a metadata document as JSON, in either format, from a spec
 * (zarr_array_spec). It only writes out what the caller left to defaults. The parser that
 * reads stored documents then checks the result, so nothing can be created that cannot be
 * opened.
 * Thread class: plain functions.
 */
#include "array/create/spec_int.h"

#include <string.h>

zarr_status zr_spec_json(struct zr_json **out, const zarr_context *ctx,
                         struct zr_json_doc *doc, const char *text, const char *member,
                         zarr_error *err)
{
    struct zr_json_doc parsed;
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&parsed, ctx->alloc);
    st = zr_json_parse(&parsed, text, strlen(text), &ctx->limits, err);
    if (st != ZARR_OK) {
        st = zr_prefix(err, st == ZARR_ERR_CORRUPT ? ZARR_ERR_INVALID : st, "%s", member);
        goto out;
    }
    *out = zr_json_copy(doc, parsed.root);
    if (!*out)
        ZR_FAIL_MEMORY(err, strlen(text));
out:
    zr_json_doc_deinit(&parsed);
    return st;
}

struct zr_json *zr_spec_numbers(struct zr_json_doc *doc, const uint64_t *v, int32_t n)
{
    struct zr_json *list = zr_json_new(doc, ZR_JSON_ARRAY);

    for (int32_t i = 0; i < n; i++)
        zr_json_append(doc, list, zr_json_new_u64(doc, v[i]));
    return list;
}

/* ---- its parts ---------------------------------------------------------- */

struct spec_work {
    const zarr_context *ctx;
    const zarr_array_spec *spec;
    struct zr_json_doc *doc;
    struct zr_json *root;
    const zarr_dtype *dtype;
    uint32_t byte_order; /* LITTLE or BIG; v2 also MIXED */
    int32_t format;
    bool for_device;
    uint64_t chunk[ZARR_MAX_RANK]; /* shape of a chunk */
};

/* In v2 each field of a struct may have its own order; v3 has one order for all. */
static zarr_status spec_order(const struct spec_work *w, uint32_t *order,
                              struct zr_str *leaves, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_json_doc doc;

    zr_json_doc_init(&doc, w->ctx->alloc);
    if (w->spec->data_type[0] != '[')
        goto out;
    ZR_TRY(
        zr_json_parse(&doc, w->spec->data_type, strlen(w->spec->data_type), NULL, err));
    ZR_TRY(zr_dtype_v2_order(w->dtype, doc.root, order, leaves, err));
    if (*order == ZR_ORDER_MIXED && w->format == 3)
        *order = ZARR_ORDER_LITTLE;
out:
    zr_json_doc_deinit(&doc);
    return st;
}

static zarr_status spec_dtype(struct spec_work *w, zarr_error *err)
{
    zarr_context *ctx =
        (zarr_context *)(uintptr_t)w->ctx; /* types are interned under a lock */
    struct zr_order order = {0};
    struct zr_json *v = NULL;
    struct zr_str leaves;
    zarr_status st = ZARR_OK;

    zr_str_init(&leaves, ctx->alloc);
    ZR_TRY(zr_dtype_find_any(&ctx->dtypes, w->spec->data_type, &w->dtype, &w->byte_order,
                             err));
    ZR_TRY(spec_order(w, &w->byte_order, &leaves, err));
    if (w->byte_order == ZR_ORDER_NATIVE)
        w->byte_order = ZARR_ORDER_LITTLE;
    order = (struct zr_order){w->byte_order, zr_str_text(&leaves)};
    v = w->format == 3 ? zr_dtype_write_v3(w->dtype, w->doc)
                       : zr_dtype_write_v2(w->dtype, &order, w->doc);
    if (!v && zr_json_is_ok(w->doc))
        ZR_FAIL(err, ZARR_ERR_UNSUPPORTED, "data type \"%s\" does not exist in v%" PRId32,
                w->spec->data_type, w->format);
    zr_json_set(w->doc, w->root, w->format == 3 ? "data_type" : "dtype", v);
out:
    zr_str_deinit(&leaves);
    return st;
}

static zarr_status spec_fill(struct spec_work *w, zarr_error *err)
{
    const uint64_t bytes = zarr_dtype_item_bytes(w->dtype);
    struct zr_json *v = NULL;
    void *element = NULL;
    zarr_status st = ZARR_OK;

    if (w->spec->fill_value) {
        ZR_TRY(zr_spec_json(&v, w->ctx, w->doc, w->spec->fill_value, "fill_value", err));
    } else {
        element = zr_calloc(w->ctx->alloc, ZR_MAX((size_t)bytes, 1), 1);
        if (!element)
            ZR_FAIL_MEMORY(err, bytes);
        zr_dtype_fill_default(w->dtype, element);
        ZR_TRY(zr_dtype_fill_write(w->dtype, element, w->format, w->doc, &v, err));
    }
    zr_json_set(w->doc, w->root, "fill_value", v);
out:
    zr_free(w->ctx->alloc, element);
    return st;
}

/* The chunk shape if the caller gives none: about 1 MiB decoded, with edges that are
 * powers of two or the whole dimension. The longest edge is halved until the chunk is
 * small enough, so chunks tend to cubes and serve slices in any direction. */
enum {
    GUESS_BYTES = 1 << 20
};

/* Returns the smallest power of two that is at least n; at most 2^62. */
static uint64_t power_above(uint64_t n)
{
    uint64_t p = 1;

    while (p < n && p < UINT64_C(1) << 62)
        p *= 2;
    return p;
}

static bool fits_guess(const uint64_t *edge, int32_t ndim, uint64_t item_bytes)
{
    uint64_t n = 0;

    return zr_product_u64(edge, (size_t)ndim, &n) &&
           zr_mul(n, ZR_MAX(item_bytes, 1), &n) && n <= GUESS_BYTES;
}

static void guess_chunk(uint64_t *chunk, int32_t ndim, const uint64_t *shape,
                        uint64_t item_bytes)
{
    for (int32_t d = 0; d < ndim; d++)
        chunk[d] = shape[d] ? shape[d] : 1;
    while (!fits_guess(chunk, ndim, item_bytes)) {
        int32_t longest = 0;

        for (int32_t d = 1; d < ndim; d++)
            if (chunk[d] > chunk[longest])
                longest = d;
        if (chunk[longest] == 1)
            return;
        chunk[longest] = power_above(chunk[longest]) / 2;
    }
}

/* The edges must divide the shard's, so only even edges are halved. */
static void guess_chunk_in_shard(uint64_t *chunk, int32_t ndim, const uint64_t *shard,
                                 uint64_t item_bytes)
{
    for (int32_t d = 0; d < ndim; d++)
        chunk[d] = shard[d];
    while (!fits_guess(chunk, ndim, item_bytes)) {
        int32_t longest = -1;

        for (int32_t d = 0; d < ndim; d++)
            if (chunk[d] % 2 == 0 && chunk[d] > 1 &&
                (longest < 0 || chunk[d] > chunk[longest]))
                longest = d;
        if (longest < 0)
            return;
        chunk[longest] /= 2;
    }
}

static void spec_chunk_shape(struct spec_work *w)
{
    const zarr_array_spec *s = w->spec;
    const uint64_t bytes = zarr_dtype_item_bytes(w->dtype);

    if (s->chunk_shape)
        memcpy(w->chunk, s->chunk_shape, (size_t)s->ndim * sizeof *w->chunk);
    else if (s->shard_shape)
        guess_chunk_in_shard(w->chunk, s->ndim, s->shard_shape, bytes);
    else
        guess_chunk(w->chunk, s->ndim, s->shape, bytes);
}

static struct zr_json *named_config(struct zr_json_doc *doc, const char *name,
                                    const char *member, struct zr_json *value)
{
    struct zr_json *config = zr_json_new(doc, ZR_JSON_OBJECT);
    struct zr_json *v = zr_json_new(doc, ZR_JSON_OBJECT);

    zr_json_set(doc, config, member, value);
    zr_json_set(doc, v, "name", zr_json_new_text(doc, name));
    zr_json_set(doc, v, "configuration", config);
    return v;
}

static struct zr_json *spec_names(const struct spec_work *w)
{
    struct zr_json *list = zr_json_new(w->doc, ZR_JSON_ARRAY);

    for (int32_t d = 0; d < w->spec->ndim; d++) {
        const char *name = w->spec->dimension_names[d];

        zr_json_append(w->doc, list,
                       name ? zr_json_new_text(w->doc, name)
                            : zr_json_new(w->doc, ZR_JSON_NULL));
    }
    return list;
}

static zarr_status spec_attributes(struct zr_json **out, const struct spec_work *w,
                                   struct zr_json_doc *doc, zarr_error *err)
{
    *out = zr_json_new(doc, ZR_JSON_OBJECT);
    if (w->spec->attributes)
        ZR_CHECK(zr_spec_json(out, w->ctx, doc, w->spec->attributes, "attributes", err));
    if (*out && !zr_json_is(*out, ZR_JSON_OBJECT))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "attributes must be a JSON object, but have type %s",
                       zr_json_type_text(*out));
    return ZARR_OK;
}

static zarr_status spec_grid(struct zr_json **out, struct spec_work *w, zarr_error *err)
{
    const zarr_array_spec *s = w->spec;

    if (s->chunk_grid)
        return zr_spec_json(out, w->ctx, w->doc, s->chunk_grid, "chunk_grid", err);
    *out = named_config(
        w->doc, "regular", "chunk_shape",
        zr_spec_numbers(w->doc, s->shard_shape ? s->shard_shape : w->chunk, s->ndim));
    return ZARR_OK;
}

/* Key encodings other than the two of the specification may not know a separator, so they
 * get one only from the caller. */
static zarr_status spec_keys(struct zr_json **out, struct spec_work *w, zarr_error *err)
{
    const zarr_array_spec *s = w->spec;
    const char *name = s->key_encoding ? s->key_encoding : "default";
    const char separator[2] = {s->separator ? s->separator : '/', '\0'};

    if (*name == '{')
        return zr_spec_json(out, w->ctx, w->doc, name, "key_encoding", err);
    if (s->separator || zr_streq(name, "default") || zr_streq(name, "v2")) {
        *out =
            named_config(w->doc, name, "separator", zr_json_new_text(w->doc, separator));
        return ZARR_OK;
    }
    *out = zr_json_new(w->doc, ZR_JSON_OBJECT);
    zr_json_set(w->doc, *out, "name", zr_json_new_text(w->doc, name));
    return ZARR_OK;
}

/* ---- the documents ------------------------------------------------------ */

static zarr_status document_v3(struct spec_work *w, zarr_error *err)
{
    const zarr_array_spec *s = w->spec;
    const struct zr_spec_codecs codecs = {
        .ctx = w->ctx,
        .doc = w->doc,
        .spec = s,
        .dtype = w->dtype,
        .endian = w->byte_order == ZARR_ORDER_BIG ? "big" : "little",
        .chunk_shape = w->chunk,
        .for_device = w->for_device,
    };
    struct zr_json *v = NULL;

    zr_json_set(w->doc, w->root, "node_type", zr_json_new_text(w->doc, "array"));
    ZR_CHECK(spec_grid(&v, w, err));
    zr_json_set(w->doc, w->root, "chunk_grid", v);
    ZR_CHECK(spec_keys(&v, w, err));
    zr_json_set(w->doc, w->root, "chunk_key_encoding", v);
    ZR_CHECK(zr_spec_codecs_v3(&v, &codecs, err));
    zr_json_set(w->doc, w->root, "codecs", v);
    ZR_CHECK(spec_attributes(&v, w, w->doc, err));
    zr_json_set(w->doc, w->root, "attributes", v);
    if (s->dimension_names)
        zr_json_set(w->doc, w->root, "dimension_names", spec_names(w));
    return ZARR_OK;
}

static zarr_status document_v2(struct spec_work *w, struct zr_parsed *attrs,
                               zarr_error *err)
{
    const zarr_array_spec *s = w->spec;
    const char separator[2] = {s->separator ? s->separator : '.', '\0'};
    const char order[2] = {s->order ? s->order : 'C', '\0'};
    const struct zr_spec_codecs codecs = {.ctx = w->ctx,
                                          .doc = w->doc,
                                          .spec = s,
                                          .dtype = w->dtype,
                                          .for_device = w->for_device};
    struct zr_json_doc *doc = w->doc;

    zr_json_set(doc, w->root, "chunks", zr_spec_numbers(doc, w->chunk, s->ndim));
    zr_json_set(doc, w->root, "order", zr_json_new_text(doc, order));
    zr_json_set(doc, w->root, "dimension_separator", zr_json_new_text(doc, separator));
    ZR_CHECK(zr_spec_codecs_v2(w->root, &codecs, err));
    ZR_CHECK(spec_attributes(&attrs->json.root, w, &attrs->json, err));
    if (s->dimension_names) {
        w->doc = &attrs->json;
        zr_json_set(w->doc, attrs->json.root, "_ARRAY_DIMENSIONS", spec_names(w));
        w->doc = doc;
    }
    return ZARR_OK;
}

/* Takes a whole document from the caller; checks only its format. */
static zarr_status given_document(struct spec_work *w, struct zr_parsed *attrs,
                                  int32_t *format, zarr_error *err)
{
    uint64_t told = 0;

    ZR_CHECK(
        zr_spec_json(&w->doc->root, w->ctx, w->doc, w->spec->document, "document", err));
    if (!zr_json_is(w->doc->root, ZR_JSON_OBJECT) ||
        !zr_json_u64(zr_json_get(w->doc->root, "zarr_format"), &told) ||
        (told != 2 && told != 3))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "document: it must be a JSON object with zarr_format 2 or 3");
    *format = (int32_t)told;
    if (w->spec->zarr_format && w->spec->zarr_format != *format)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "document: zarr_format is %" PRId32 ", asked for is %" PRId32,
                       *format, w->spec->zarr_format);
    if (w->spec->attributes && *format == 3)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "document: a zarr.json has its attributes inside");
    if (*format == 2)
        ZR_CHECK(spec_attributes(&attrs->json.root, w, &attrs->json, err));
    return ZARR_OK;
}

zarr_status zr_spec_document(struct zr_parsed *parsed, struct zr_parsed *attrs,
                             int32_t *format, const zarr_context *ctx,
                             const zarr_array_spec *spec, bool for_device,
                             zarr_error *err)
{
    struct spec_work w = {
        .ctx = ctx, .spec = spec, .doc = &parsed->json, .for_device = for_device};
    zarr_status st = ZARR_OK;

    if (spec->document) {
        st = given_document(&w, attrs, format, err);
        goto out;
    }
    *format = w.format = spec->zarr_format ? spec->zarr_format : 3;
    parsed->json.root = w.root = zr_json_new(w.doc, ZR_JSON_OBJECT);
    zr_json_set(w.doc, w.root, "zarr_format", zr_json_new_u64(w.doc, (uint64_t)w.format));
    zr_json_set(w.doc, w.root, "shape", zr_spec_numbers(w.doc, spec->shape, spec->ndim));
    ZR_TRY(spec_dtype(&w, err));
    spec_chunk_shape(&w);
    ZR_TRY(spec_fill(&w, err));
    if (w.format == 3)
        ZR_TRY(document_v3(&w, err));
    else
        ZR_TRY(document_v2(&w, attrs, err));
out:
    if (st == ZARR_OK && (!zr_json_is_ok(&parsed->json) || !zr_json_is_ok(&attrs->json)))
        st = zr_fail_memory(err, parsed->json.arena.used_bytes);
    return st;
}
