/*
 * array/create/spec_like.c - a spec that names another array: what the caller leaves open
 * is taken from that array, in the form of a spec. The complete spec then takes the usual
 * path. Codecs are in spec_like_codecs.c.
 * A new array of the other format keeps the missing value that xarray knows (meta).
 * Thread class: plain functions. The other array (the model) may be in use and may change
 * meanwhile; one state of it is read.
 */
#include "array/create/spec_int.h"

#include <string.h>

zarr_status zr_spec_like_text(struct zr_spec_like *l, const struct zr_json *v,
                              const char **out, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_str text;

    zr_str_init(&text, l->doc.arena.alloc);
    zr_json_write(v, 0, &text);
    ZR_TRY(zr_str_status(&text, err));
    *out = zr_arena_strndup(&l->doc.arena, zr_str_text(&text), text.bytes);
    if (!*out)
        st = zr_fail_memory(err, text.bytes);
out:
    zr_str_deinit(&text);
    return st;
}

static const struct zr_array_meta *model_meta(const struct zr_spec_like *l)
{
    return &l->model->meta;
}

/* ---- shape and grid --------------------------------------------------------------- */

static zarr_status like_shape(struct zr_spec_like *l, const zarr_array_spec *changes,
                              zarr_error *err)
{
    const struct zr_array_meta *m = model_meta(l);
    const bool given = changes->shape || changes->chunk_shape || changes->shard_shape ||
                       changes->dimension_names;

    if (given && changes->ndim != m->ndim)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "ndim is %" PRId32
                       ", the array that the new one is like has %" PRId32 " dimensions",
                       changes->ndim, m->ndim);
    l->spec.ndim = m->ndim;
    if (!l->spec.shape)
        l->spec.shape = m->shape;
    return ZARR_OK;
}

/* Takes the model's chunks, and its shards around them or around the chunks that are
 * given. */
static zarr_status like_grid(struct zr_spec_like *l, const zarr_array_spec *changes,
                             zarr_error *err)
{
    const struct zr_array_meta *m = model_meta(l);
    const bool sharded = l->model->sharded;
    const bool keep = sharded && !(changes->flags & ZARR_SPEC_NO_SHARDS);
    struct zr_json *grid = NULL;

    if (changes->chunk_grid)
        return ZARR_OK;
    if (!changes->chunk_shape && (m->grid.regular || sharded))
        l->spec.chunk_shape = l->model->leaf_shape;
    if (changes->shard_shape || (l->spec.chunk_shape && !keep))
        return ZARR_OK;
    if (l->spec.zarr_format == 2)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       keep ? "v2 arrays have no shards"
                            : "v2 arrays have no chunks that differ in shape");
    if (m->grid.regular) {
        l->spec.shard_shape = m->grid.chunk_shape;
        return ZARR_OK;
    }
    ZR_CHECK(zr_array_meta_grid(m, &l->doc, &grid, err));
    return zr_spec_like_text(l, grid, &l->spec.chunk_grid, err);
}

/* ---- elements --------------------------------------------------------------------- */

static const char *dtype_any_name(const zarr_dtype *dtype)
{
    const char *name = zarr_dtype_name(dtype);

    return name ? name : zarr_dtype_v2(dtype);
}

/* v2 has the byte order in the data type. For a type without one, the name suffices. */
static zarr_status like_dtype(struct zr_spec_like *l, zarr_error *err)
{
    const zarr_dtype *dtype = model_meta(l)->dtype;
    struct zr_json *v = NULL;

    if (l->spec.data_type)
        return ZARR_OK;
    l->spec.data_type = dtype_any_name(dtype);
    if (l->spec.zarr_format != 2 || !zr_dtype_has_order(dtype))
        return ZARR_OK;
    v = zr_dtype_write_v2(dtype, &l->order, &l->doc);
    if (!v) /* creating the array reports that v2 has no such type */
        return zr_json_is_ok(&l->doc) ? ZARR_OK : zr_fail_memory(err, 1);
    if (zr_json_string(v)) {
        l->spec.data_type = zr_json_string(v);
        return ZARR_OK;
    }
    return zr_spec_like_text(l, v, &l->spec.data_type, err);
}

/* Whether the new array has the model's data type. */
static zarr_status keeps_dtype(const struct zr_spec_like *l, const zarr_context *ctx,
                               const zarr_array_spec *changes, bool *keeps,
                               zarr_error *err)
{
    const zarr_dtype *dtype = model_meta(l)->dtype;

    *keeps = true;
    if (!changes->data_type)
        return ZARR_OK;
    ZR_CHECK(zr_dtype_find_any(&((zarr_context *)(uintptr_t)ctx)->dtypes,
                               changes->data_type, &dtype, NULL, err));
    *keeps = zarr_dtype_equal(dtype, model_meta(l)->dtype);
    return ZARR_OK;
}

static zarr_status like_fill(struct zr_spec_like *l, const zarr_context *ctx,
                             const zarr_array_spec *changes, zarr_error *err)
{
    const struct zr_array_meta *m = model_meta(l);
    struct zr_json *v = NULL;
    bool keeps = true;

    if (changes->fill_value)
        return ZARR_OK;
    ZR_CHECK(keeps_dtype(l, ctx, changes, &keeps, err));
    if (!keeps)
        return ZARR_OK;
    if (!m->fill_told) {
        l->spec.fill_value = l->spec.zarr_format == 2 ? "null" : NULL;
        return ZARR_OK;
    }
    if (l->spec.zarr_format == 2)
        ZR_CHECK(zr_dtype_fill_write_v2(m->dtype, m->fill, &l->order, &l->doc, &v, err));
    else
        ZR_CHECK(zr_dtype_fill_write(m->dtype, m->fill, 3, &l->doc, &v, err));
    return zr_spec_like_text(l, v, &l->spec.fill_value, err);
}

/* ---- keys, names, attributes ------------------------------------------------------- */

static void like_separator(struct zr_spec_like *l, const char *separator)
{
    if (separator && !l->spec.separator)
        l->spec.separator = *separator;
}

/* Two key encodings have a separator. If the caller chooses the other one, it keeps the
 * model's separator. */
static zarr_status like_keys(struct zr_spec_like *l, const zarr_array_spec *changes,
                             zarr_error *err)
{
    const struct zr_json *keys = zr_json_get(l->root, "chunk_key_encoding");
    const char *name = zr_json_string(zr_json_get(keys, "name"));
    const char *separator =
        zr_json_string(keys ? zr_json_get(zr_json_get(keys, "configuration"), "separator")
                            : zr_json_get(l->root, "dimension_separator"));
    const char *given = changes->key_encoding;

    if (l->spec.zarr_format != model_meta(l)->format)
        return ZARR_OK;
    if (given && !zr_streq(given, "default") && !zr_streq(given, "v2"))
        return ZARR_OK;
    if (given || !keys) {
        like_separator(l, separator);
        return ZARR_OK;
    }
    if (!zr_streq(name, "default") && !zr_streq(name, "v2"))
        return zr_spec_like_text(l, keys, &l->spec.key_encoding, err);
    l->spec.key_encoding = name;
    like_separator(l, separator);
    return ZARR_OK;
}

/* Plans what keeps the missing value in the other format, and takes its fill value. */
static zarr_status like_missing(struct zr_spec_like *l, const zarr_context *ctx,
                                const zarr_array_spec *changes,
                                struct zr_missing_change *change, zarr_error *err)
{
    const int32_t format = l->spec.zarr_format;
    bool keeps = true;

    *change = (struct zr_missing_change){.fill = NULL};
    if (format == model_meta(l)->format || changes->flags & ZARR_SPEC_KEEP_FILL ||
        changes->attributes)
        return ZARR_OK;
    ZR_CHECK(keeps_dtype(l, ctx, changes, &keeps, err));
    if (!keeps)
        return ZARR_OK;
    ZR_CHECK(zr_missing_plan(change, model_meta(l), format, &l->doc, err));
    if (format == 2 && changes->fill_value) /* the caller's, with the attribute */
        *change = (struct zr_missing_change){.fill = NULL};
    if (change->warning)
        zr_log(&ctx->log, ZARR_LOG_WARN, "/%s: %s", changes->like->h.path,
               change->warning);
    if (change->fill)
        ZR_CHECK(zr_spec_like_text(l, change->fill, &l->spec.fill_value, err));
    return ZARR_OK;
}

/* v2 keeps dimension names among the attributes, and xarray takes a scalar without them
 * for no variable. v3 has its own member for them. */
static zarr_status like_attributes(struct zr_spec_like *l, const zarr_array_spec *changes,
                                   const struct zr_missing_change *missing,
                                   zarr_error *err)
{
    const struct zr_array_meta *m = model_meta(l);
    const struct zr_json *names = zr_json_get(m->attributes, ZR_DIMENSIONS_ATTRIBUTE);
    struct zr_json *attributes = NULL;

    if (!changes->dimension_names && m->dimension_names)
        l->spec.dimension_names = m->dimension_names;
    if (!changes->dimension_names && m->format == 3 && l->spec.zarr_format == 2 &&
        m->ndim == 0 && !names)
        l->spec.dimension_names = &l->no_name;
    if (changes->attributes || (!m->attributes && !missing->attribute))
        return ZARR_OK;
    attributes = m->attributes ? zr_json_copy(&l->doc, m->attributes)
                               : zr_json_new(&l->doc, ZR_JSON_OBJECT);
    if (m->format == 2 && l->spec.zarr_format == 3 &&
        (l->spec.dimension_names ||
         (m->ndim == 0 && zr_json_is(names, ZR_JSON_ARRAY) && zr_json_count(names) == 0)))
        (void)zr_json_remove(attributes, ZR_DIMENSIONS_ATTRIBUTE);
    if (missing->drop)
        (void)zr_json_remove(attributes, ZR_MISSING_ATTRIBUTE);
    if (missing->attribute)
        zr_json_set(&l->doc, attributes, ZR_MISSING_ATTRIBUTE, missing->attribute);
    return zr_spec_like_text(l, attributes, &l->spec.attributes, err);
}

/* ---- the call ---------------------------------------------------------------------- */

void zr_spec_like_deinit(struct zr_spec_like *l)
{
    zr_json_doc_deinit(&l->doc);
    zr_array_state_free(l->model);
    *l = (struct zr_spec_like){.model = NULL};
}

zarr_status zr_spec_like_make(struct zr_spec_like *l, const zarr_context *ctx,
                              const zarr_array_spec *changes, zarr_error *err)
{
    struct zr_missing_change missing;
    struct zr_json *root = NULL;

    *l = (struct zr_spec_like){.spec = *changes,
                               .model = zr_array_state_get(changes->like)};
    zr_json_doc_init(&l->doc, ctx->alloc);
    l->spec.like = NULL;
    l->spec.flags &= ~(uint32_t)(ZARR_SPEC_NO_SHARDS | ZARR_SPEC_KEEP_FILL);
    if (!l->spec.zarr_format)
        l->spec.zarr_format = model_meta(l)->format;
    ZR_CHECK(zr_array_meta_write_canonical(model_meta(l), &l->doc, &root, err));
    l->root = root;
    ZR_CHECK(like_shape(l, changes, err));
    ZR_CHECK(like_grid(l, changes, err));
    ZR_CHECK(zr_spec_like_codecs(l, ctx, changes, err));
    ZR_CHECK(like_dtype(l, err));
    ZR_CHECK(like_fill(l, ctx, changes, err));
    ZR_CHECK(like_missing(l, ctx, changes, &missing, err));
    ZR_CHECK(like_keys(l, changes, err));
    ZR_CHECK(like_attributes(l, changes, &missing, err));
    if (!zr_json_is_ok(&l->doc))
        return zr_fail_memory(err, l->doc.arena.used_bytes);
    return ZARR_OK;
}
