/*
 * array/create/spec_codecs.c - the codecs of a new array as its document lists them: the
 * default, or the caller's JSON completed with what it leaves out: `bytes` if no codec
 * turns elements into bytes, the byte order of each `bytes`, a transpose in front for
 * order F, and a sharding codec with its index codecs around them. `meta` and `chain`
 * check the result.
 * Thread class: plain functions.
 */
#include "array/create/spec_int.h"

static struct zr_json *named_codec(struct zr_json_doc *doc, const char *name,
                                   struct zr_json *config)
{
    struct zr_json *codec = zr_json_new(doc, ZR_JSON_OBJECT);

    zr_json_set(doc, codec, "name", zr_json_new_text(doc, name));
    if (config)
        zr_json_set(doc, codec, "configuration", config);
    return codec;
}

static struct zr_json *endian_codec(struct zr_json_doc *doc, const char *endian)
{
    struct zr_json *config = zr_json_new(doc, ZR_JSON_OBJECT);

    zr_json_set(doc, config, "endian", zr_json_new_text(doc, endian));
    return named_codec(doc, "bytes", config);
}

static struct zr_json *type_codec(const struct zr_spec_codecs *c, const zarr_dtype *dtype)
{
    const char *name = zarr_dtype_codec(dtype);

    return zr_streq(name, "bytes") ? endian_codec(c->doc, c->endian)
                                   : named_codec(c->doc, name, NULL);
}

/* Made from the inside out: each level of an optional type has its own codec. */
static struct zr_json *optional_codec(const struct zr_spec_codecs *c,
                                      const zarr_dtype *dtype)
{
    const zarr_dtype *value = dtype, *outer = NULL;
    struct zr_json *codec = NULL;

    while (zarr_dtype_underlying(value))
        value = zarr_dtype_underlying(value);
    for (codec = type_codec(c, value); value != dtype; value = outer) {
        struct zr_json *config = zr_json_new(c->doc, ZR_JSON_OBJECT);
        struct zr_json *mask = zr_json_new(c->doc, ZR_JSON_ARRAY);
        struct zr_json *data = zr_json_new(c->doc, ZR_JSON_ARRAY);

        for (outer = dtype; zarr_dtype_underlying(outer) != value;)
            outer = zarr_dtype_underlying(outer);
        zr_json_append(c->doc, mask, named_codec(c->doc, "packbits", NULL));
        zr_json_append(c->doc, data, codec);
        zr_json_set(c->doc, config, "mask_codecs", mask);
        zr_json_set(c->doc, config, "data_codecs", data);
        codec = named_codec(c->doc, zarr_dtype_codec(outer), config);
    }
    return codec;
}

static struct zr_json *bytes_codec(const struct zr_spec_codecs *c)
{
    return zarr_dtype_underlying(c->dtype) ? optional_codec(c, c->dtype)
                                           : type_codec(c, c->dtype);
}

static struct zr_json *zstd_codec(struct zr_json_doc *doc)
{
    struct zr_json *config = zr_json_new(doc, ZR_JSON_OBJECT);

    zr_json_set(doc, config, "level", zr_json_new_u64(doc, 0));
    zr_json_set(doc, config, "checksum", zr_json_new_bool(doc, false));
    return named_codec(doc, "zstd", config);
}

static struct zr_json *blosc_codec(struct zr_json_doc *doc)
{
    struct zr_json *config = zr_json_new(doc, ZR_JSON_OBJECT);

    zr_json_set(doc, config, "cname", zr_json_new_text(doc, "lz4"));
    zr_json_set(doc, config, "clevel", zr_json_new_u64(doc, 5));
    zr_json_set(doc, config, "shuffle", zr_json_new_text(doc, "shuffle"));
    return named_codec(doc, "blosc", config);
}

/* Whether chunks are compressed by what devices decode and encode fast. */
static bool is_compressed_for_device(const struct zr_spec_codecs *c)
{
    return c->for_device && zr_streq(zarr_dtype_codec(c->dtype), "bytes");
}

/* Reverses the dimensions: column-major chunks. */
static struct zr_json *transpose_codec(struct zr_json_doc *doc, int32_t ndim)
{
    struct zr_json *config = zr_json_new(doc, ZR_JSON_OBJECT);
    struct zr_json *order = zr_json_new(doc, ZR_JSON_ARRAY);

    for (int32_t d = ndim - 1; d >= 0; d--)
        zr_json_append(doc, order, zr_json_new_u64(doc, (uint64_t)d));
    zr_json_set(doc, config, "order", order);
    return named_codec(doc, "transpose", config);
}

/* The kind under which the core or a plug-in registered this name; 0: unknown, which
 * `meta` reports. */
static uint32_t codec_kind(const zarr_context *ctx, const struct zr_json *codec)
{
    const char *name = zr_json_string(codec);
    const zarr_codec_spec_vtable *vt = NULL;

    if (!name)
        name = zr_json_string(zr_json_get(codec, "name"));
    if (name)
        vt = zr_codec_spec_lookup(&ctx->codecs, name);
    return vt ? vt->kind : 0;
}

/* ---- byte orders that the caller leaves out -------------------------------- */

enum {
    COMPLETE_DEPTH = 100 /* deeper lists are left as they are: parsing refuses them */
};

static void complete_endian(const struct zr_spec_codecs *c, struct zr_json *list,
                            const char *endian, unsigned depth);

/* Completes the lists of codecs in a configuration. Indexes of shards and of other codecs
 * are little-endian by default, whatever the elements are. */
static void complete_config(const struct zr_spec_codecs *c, const struct zr_json *config,
                            const char *endian, unsigned depth)
{
    struct zr_json *m =
        config && zr_json_is(config, ZR_JSON_OBJECT) ? config->u.children.first : NULL;

    for (; m; m = m->next)
        if (zr_json_is(m, ZR_JSON_ARRAY) && codec_kind(c->ctx, m->u.children.first))
            complete_endian(c, m, zr_streq(m->key, "index_codecs") ? "little" : endian,
                            depth + 1);
}

static bool is_bytes(const struct zr_spec_codecs *c, const struct zr_json *codec)
{
    const char *name = zr_json_string(codec);
    const zarr_codec_spec_vtable *vt = NULL;

    if (!name)
        name = zr_json_string(zr_json_get(codec, "name"));
    if (name)
        vt = zr_codec_spec_lookup(&c->ctx->codecs, name);
    return vt && zr_streq(vt->name, "bytes");
}

/* Gives each `bytes` of the list a byte order, unless it has one. Writing the chain drops
 * it again if elements have no byte order. `list` belongs to c->doc.
 * Recursion: through codecs inside codecs, at most COMPLETE_DEPTH deep. */
static void complete_endian(const struct zr_spec_codecs *c, struct zr_json *list,
                            const char *endian, unsigned depth)
{
    for (struct zr_json *v = list->u.children.first; v && depth < COMPLETE_DEPTH;
         v = v->next) {
        struct zr_json *config =
            zr_json_is(v, ZR_JSON_OBJECT)
                ? (struct zr_json *)(uintptr_t)zr_json_get(v, "configuration")
                : NULL;

        if (!is_bytes(c, v)) {
            complete_config(c, config, endian, depth);
        } else if (zr_json_is(v, ZR_JSON_STRING)) {
            const struct zr_json *made = endian_codec(c->doc, endian);

            if (made) {
                v->type = made->type;
                v->u = made->u;
            }
        } else if (!config) {
            config = zr_json_new(c->doc, ZR_JSON_OBJECT);
            zr_json_set(c->doc, config, "endian", zr_json_new_text(c->doc, endian));
            zr_json_set(c->doc, v, "configuration", config);
        } else if (zr_json_is(config, ZR_JSON_OBJECT) && !zr_json_get(config, "endian")) {
            zr_json_set(c->doc, config, "endian", zr_json_new_text(c->doc, endian));
        }
    }
}

/* Returns the caller's list; adds `bytes` after the array->array codecs if it has no
 * array->bytes codec. */
static struct zr_json *complete_list(const struct zr_spec_codecs *c,
                                     const struct zr_json *given)
{
    struct zr_json *list = zr_json_new(c->doc, ZR_JSON_ARRAY);
    bool has_bytes = false;

    if (c->spec->order == 'F' && c->spec->ndim > 1)
        zr_json_append(c->doc, list, transpose_codec(c->doc, c->spec->ndim));
    for (const struct zr_json *v = given->u.children.first; v; v = v->next)
        has_bytes |= codec_kind(c->ctx, v) == ZARR_CODEC_ARRAY_BYTES;
    for (const struct zr_json *v = given->u.children.first; v; v = v->next) {
        if (!has_bytes && codec_kind(c->ctx, v) == ZARR_CODEC_BYTES_BYTES) {
            zr_json_append(c->doc, list, bytes_codec(c));
            has_bytes = true;
        }
        zr_json_append(c->doc, list, zr_json_copy(c->doc, v));
    }
    if (!has_bytes)
        zr_json_append(c->doc, list, bytes_codec(c));
    if (zr_json_is_ok(c->doc))
        complete_endian(c, list, c->endian, 0);
    return list;
}

/* Whether a chain, or the filters of v2, have the checksum. member: of its name. */
static bool has_crc32c(const struct zr_json *list, const char *member)
{
    bool found = false;

    for (const struct zr_json *v = list->u.children.first; v && !found; v = v->next)
        found = zr_json_is_text(v, "crc32c") ||
                zr_json_is_text(zr_json_get(v, member), "crc32c") ||
                zr_json_is_text(zr_json_get(v, member), "numcodecs.crc32c");
    return found;
}

/* Appends crc32c to the chain of the innermost chunks. */
static void add_checksum(const struct zr_spec_codecs *c, struct zr_json *list)
{
    struct zr_json *v = list->u.children.first;

    while (v) {
        const struct zr_json *inner =
            zr_json_is_text(zr_json_get(v, "name"), "sharding_indexed")
                ? zr_json_get(zr_json_get(v, "configuration"), "codecs")
                : NULL;

        v = v->next;
        if (inner && zr_json_is(inner, ZR_JSON_ARRAY)) {
            list = (struct zr_json *)(uintptr_t)inner; /* belongs to c->doc */
            v = list->u.children.first;
        }
    }
    if (!has_crc32c(list, "name"))
        zr_json_append(c->doc, list, named_codec(c->doc, "crc32c", NULL));
}

static void add_checksum_v2(const struct zr_spec_codecs *c, struct zr_json *root)
{
    const struct zr_json *filters = zr_json_get(root, "filters");
    struct zr_json *list = zr_json_new(c->doc, ZR_JSON_ARRAY);
    struct zr_json *v = zr_json_new(c->doc, ZR_JSON_OBJECT);

    if (zr_json_is(filters, ZR_JSON_ARRAY)) {
        if (has_crc32c(filters, "id"))
            return;
        for (v = filters->u.children.first; v; v = v->next)
            zr_json_append(c->doc, list, zr_json_copy(c->doc, v));
        v = zr_json_new(c->doc, ZR_JSON_OBJECT);
    }
    zr_json_set(c->doc, v, "id", zr_json_new_text(c->doc, "crc32c"));
    zr_json_append(c->doc, list, v);
    zr_json_set(c->doc, root, "filters", list);
}

static zarr_status chunk_codecs(struct zr_json **out, const struct zr_spec_codecs *c,
                                zarr_error *err)
{
    struct zr_json *given = zr_json_new(c->doc, ZR_JSON_ARRAY);

    if (c->spec->codecs)
        ZR_CHECK(zr_spec_json(&given, c->ctx, c->doc, c->spec->codecs, "codecs", err));
    else
        zr_json_append(c->doc, given,
                       is_compressed_for_device(c) ? blosc_codec(c->doc)
                                                   : zstd_codec(c->doc));
    if (!given)
        return zr_fail_memory(err, sizeof *given);
    if (!zr_json_is(given, ZR_JSON_ARRAY))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "codecs must be a JSON array, but have type %s",
                       zr_json_type_text(given));
    *out = complete_list(c, given);
    if (c->spec->flags & ZARR_SPEC_CHECKSUM && zr_json_is_ok(c->doc))
        add_checksum(c, *out);
    return ZARR_OK;
}

static zarr_status shard_index_codecs(struct zr_json **out,
                                      const struct zr_spec_codecs *c, zarr_error *err)
{
    if (c->spec->index_codecs) {
        zarr_status st =
            zr_spec_json(out, c->ctx, c->doc, c->spec->index_codecs, "index_codecs", err);

        if (st == ZARR_OK && zr_json_is(*out, ZR_JSON_ARRAY))
            complete_endian(c, *out, "little", 0);
        return st;
    }
    *out = zr_json_new(c->doc, ZR_JSON_ARRAY);
    zr_json_append(c->doc, *out, endian_codec(c->doc, "little"));
    zr_json_append(c->doc, *out, named_codec(c->doc, "crc32c", NULL));
    return ZARR_OK;
}

zarr_status zr_spec_codecs_v3(struct zr_json **out, const struct zr_spec_codecs *c,
                              zarr_error *err)
{
    const bool at_start = (c->spec->flags & ZARR_SPEC_INDEX_AT_START) != 0;
    struct zr_json *inner = NULL, *index = NULL, *config = NULL;

    ZR_CHECK(chunk_codecs(&inner, c, err));
    *out = inner;
    if (!zr_spec_is_sharded(c->spec))
        return ZARR_OK;
    ZR_CHECK(shard_index_codecs(&index, c, err));
    config = zr_json_new(c->doc, ZR_JSON_OBJECT);
    zr_json_set(c->doc, config, "chunk_shape",
                zr_spec_numbers(c->doc, c->chunk_shape, c->spec->ndim));
    zr_json_set(c->doc, config, "codecs", inner);
    zr_json_set(c->doc, config, "index_codecs", index);
    zr_json_set(c->doc, config, "index_location",
                zr_json_new_text(c->doc, at_start ? "start" : "end"));
    *out = zr_json_new(c->doc, ZR_JSON_ARRAY);
    zr_json_append(c->doc, *out, named_codec(c->doc, "sharding_indexed", config));
    return ZARR_OK;
}

/* Whether a v2 filter or compressor turns elements into bytes. */
static bool makes_bytes(const zarr_context *ctx, const struct zr_json *v)
{
    const char *id = zr_json_string(zr_json_get(v, "id"));
    const zarr_codec_spec_vtable *vt =
        id ? zr_codec_spec_lookup_v2(&ctx->codecs, id) : NULL;

    return vt && vt->kind == ZARR_CODEC_ARRAY_BYTES;
}

static struct zr_json *default_compressor(const struct zr_spec_codecs *c)
{
    struct zr_json *v = zr_json_new(c->doc, ZR_JSON_OBJECT);

    if (!is_compressed_for_device(c)) {
        zr_json_set(c->doc, v, "id", zr_json_new_text(c->doc, "zstd"));
        zr_json_set(c->doc, v, "level", zr_json_new_u64(c->doc, 0));
        return v;
    }
    zr_json_set(c->doc, v, "id", zr_json_new_text(c->doc, "blosc"));
    zr_json_set(c->doc, v, "cname", zr_json_new_text(c->doc, "lz4"));
    zr_json_set(c->doc, v, "clevel", zr_json_new_u64(c->doc, 5));
    zr_json_set(c->doc, v, "shuffle", zr_json_new_u64(c->doc, 1));
    return v;
}

/* In v2 the first filter says how objects are stored. zarr-python does not open an array
 * whose compressor does. */
static void object_filter(struct zr_json *root, const struct zr_spec_codecs *c)
{
    const char *name = zarr_dtype_codec(c->dtype);
    const struct zr_json *compressor = zr_json_get(root, "compressor");
    const zarr_dtype *item = zarr_dtype_item(c->dtype);
    const struct zr_json *filters = zr_json_get(root, "filters"), *first = NULL;
    struct zr_json *list = NULL, *v = NULL;

    if (zr_streq(name, "bytes"))
        return;
    if (zr_json_is(filters, ZR_JSON_ARRAY))
        first = filters->u.children.first;
    if (makes_bytes(c->ctx, first))
        return;
    list = zr_json_new(c->doc, ZR_JSON_ARRAY);
    if (!first && makes_bytes(c->ctx, compressor)) {
        zr_json_append(c->doc, list, zr_json_copy(c->doc, compressor));
        zr_json_set(c->doc, root, "filters", list);
        zr_json_set(c->doc, root, "compressor", zr_json_new(c->doc, ZR_JSON_NULL));
        return;
    }
    v = zr_json_new(c->doc, ZR_JSON_OBJECT);
    zr_json_set(c->doc, v, "id", zr_json_new_text(c->doc, name));
    if (item)
        zr_json_set(c->doc, v, "dtype", zr_json_new_text(c->doc, zarr_dtype_v2(item)));
    zr_json_append(c->doc, list, v);
    for (; first; first = first->next)
        zr_json_append(c->doc, list, zr_json_copy(c->doc, first));
    zr_json_set(c->doc, root, "filters", list);
}

zarr_status zr_spec_codecs_v2(struct zr_json *root, const struct zr_spec_codecs *c,
                              zarr_error *err)
{
    struct zr_json *given = NULL, *v = NULL;
    zarr_status st = ZARR_OK;

    zr_json_set(c->doc, root, "filters", zr_json_new(c->doc, ZR_JSON_NULL));
    if (!c->spec->codecs) {
        zr_json_set(c->doc, root, "compressor", default_compressor(c));
        object_filter(root, c);
        goto out;
    }
    ZR_TRY(zr_spec_json(&given, c->ctx, c->doc, c->spec->codecs, "codecs", err));
    if (!zr_json_is(given, ZR_JSON_OBJECT))
        ZR_FAIL(err, ZARR_ERR_INVALID,
                "v2 codecs must be a JSON object {\"filters\": [...], \"compressor\": "
                "{...}}, but have type %s",
                zr_json_type_text(given));
    zr_json_set(c->doc, root, "compressor", zr_json_new(c->doc, ZR_JSON_NULL));
    for (v = given->u.children.first; v; v = v->next) {
        if (!zr_streq(v->key, "filters") && !zr_streq(v->key, "compressor"))
            ZR_FAIL(err, ZARR_ERR_INVALID, "v2 codecs have no member \"%s\"", v->key);
        zr_json_set(c->doc, root, v->key, zr_json_copy(c->doc, v));
    }
    ZR_TRY(zr_spec_fold_v2(root, c, err));
    object_filter(root, c);
out:
    if (st == ZARR_OK && c->spec->flags & ZARR_SPEC_CHECKSUM && zr_json_is_ok(c->doc))
        add_checksum_v2(c, root);
    return st;
}
