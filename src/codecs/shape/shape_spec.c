/*
 * codecs/shape/shape_spec.c - codecs that give a chunk another shape and leave its
 * elements in C order: `reshape`, and zarrs' `squeeze`, which drops dimensions of size 1.
 * No byte moves, so they have no implementation. A size of reshape is a number, -1 (the
 * remaining size), or a list of input dimensions whose sizes are multiplied. These must
 * be at the position of the output dimension. Thread class: plain functions.
 */
#include "codecs/codecs_int.h"

#include <string.h>

/* ---- reshape: the configuration ------------------------------------------------ */

#define SHAPE_RULE "a positive integer, a list of input dimensions, or one -1"

static zarr_status shape_refuse(const struct zr_json *v, size_t i, const char *rule,
                                zarr_error *err)
{
    char text[64];

    return zr_fail(err, ZARR_ERR_INVALID, "reshape: shape[%zu] is %s, must be %s", i,
                   zr_json_excerpt(v, text, sizeof text), rule);
}

/* *last is the input dimension that was named last, or -1. */
static zarr_status shape_check_dims(const struct zr_json *v, size_t i, int64_t *last,
                                    zarr_error *err)
{
    for (const struct zr_json *d = v->u.children.first; d; d = d->next) {
        int64_t dim = 0;

        if (!zr_json_i64(d, &dim) || dim < 0 || dim >= ZARR_MAX_RANK)
            return shape_refuse(v, i, "a list of input dimensions", err);
        if (dim <= *last)
            return shape_refuse(v, i, "input dimensions in increasing order", err);
        *last = dim;
    }
    return ZARR_OK;
}

static zarr_status shape_check(const struct zr_json *shape, zarr_error *err)
{
    int64_t last = -1, size = 0;
    bool rest = false;
    size_t i = 0;
    char text[64];

    if (!zr_json_is(shape, ZR_JSON_ARRAY) || zr_json_count(shape) > ZARR_MAX_RANK)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "reshape: shape is %s, must be a list of at most %d sizes",
                       zr_json_excerpt(shape, text, sizeof text), ZARR_MAX_RANK);
    for (const struct zr_json *v = shape->u.children.first; v; v = v->next, i++) {
        if (v->type == ZR_JSON_ARRAY) {
            ZR_CHECK(shape_check_dims(v, i, &last, err));
            continue;
        }
        if (!zr_json_i64(v, &size) || size < -1 || size == 0 || (size < 0 && rest))
            ZR_CHECK(shape_refuse(v, i, SHAPE_RULE, err));
        rest |= size < 0;
    }
    return ZARR_OK;
}

static zarr_status reshape_canonical(const zarr_codec_spec *raw, int format, char *text,
                                     size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const known[] = {"shape", NULL};
    struct zr_conf_text t;

    ZR_CHECK(zr_conf_check_members(raw, format, known, err));
    ZR_CHECK(shape_check(zr_conf_value(raw, "shape"), err));
    zr_conf_open(&t, text, cap);
    zr_conf_put_json(&t, raw, "shape");
    return zr_conf_end(&t, text_bytes, err);
}

/* ---- reshape: the shape ----------------------------------------------------------- */

static zarr_status shape_too_large(zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_LIMIT, "reshape: the product of sizes is over 64 bits");
}

/* Reads the sizes that the configuration gives. *rest is the dimension whose size is -1,
 * or -1 if there is none. */
static zarr_status shape_read(const struct zr_json *shape, const zarr_chunk_spec *in,
                              zarr_chunk_spec *out, int32_t *rest, zarr_error *err)
{
    int32_t i = 0;

    *rest = -1;
    for (const struct zr_json *v = shape->u.children.first; v; v = v->next, i++) {
        int64_t size = 0;

        out->shape[i] = 1;
        if (v->type != ZR_JSON_ARRAY) {
            (void)zr_json_i64(v, &size);
            if (size < 0)
                *rest = i;
            else
                out->shape[i] = (uint64_t)size;
            continue;
        }
        for (const struct zr_json *d = v->u.children.first; d; d = d->next) {
            (void)zr_json_i64(d, &size);
            if (size >= in->ndim)
                return zr_fail(err, ZARR_ERR_INVALID,
                               "reshape: shape[%" PRId32 "] names dimension %" PRId64
                               " of an array of %" PRId32,
                               i, size, in->ndim);
            if (!zr_mul(out->shape[i], in->shape[size], &out->shape[i]))
                return shape_too_large(err);
        }
    }
    return ZARR_OK;
}

/* INVALID unless the input dimensions in v are at the position of output dimension i. */
static zarr_status shape_check_place(const struct zr_json *v, int32_t i,
                                     const zarr_chunk_spec *in,
                                     const zarr_chunk_spec *out, zarr_error *err)
{
    int64_t first = 0, last = 0;
    uint64_t before_in = 1, before_out = 1, after_in = 1, after_out = 1;

    (void)zr_json_i64(v->u.children.first, &first);
    (void)zr_json_i64(v->u.children.last, &last);
    if (!zr_product_u64(in->shape, (size_t)first, &before_in) ||
        !zr_product_u64(out->shape, (size_t)i, &before_out) ||
        !zr_product_u64(in->shape + last + 1, (size_t)(in->ndim - last - 1), &after_in) ||
        !zr_product_u64(out->shape + i + 1, (size_t)(out->ndim - i - 1), &after_out))
        return shape_too_large(err);
    if (before_in != before_out || after_in != after_out)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "reshape: shape[%" PRId32
                       "] names input dimensions that do not lie there: %" PRIu64
                       " elements before them and %" PRIu64 " before it",
                       i, before_in, before_out);
    return ZARR_OK;
}

static zarr_status reshape_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                   zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    const struct zr_json *shape = zr_conf_value(spec, "shape");
    uint64_t have = 0, want = 0;
    int32_t rest = -1, i = 0;

    ZR_UNUSED(fill_out);
    out->ndim = (int32_t)zr_json_count(shape);
    memset(out->shape, 0, sizeof out->shape);
    ZR_CHECK(shape_read(shape, in, out, &rest, err));
    if (!zr_product_u64(in->shape, (size_t)in->ndim, &have) ||
        !zr_product_u64(out->shape, (size_t)out->ndim, &want))
        ZR_CHECK(shape_too_large(err));
    if (rest >= 0 && want && have % want == 0) {
        out->shape[rest] = have / want;
        want = have;
    }
    if (want != have || (rest >= 0 && out->shape[rest] == 0))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "reshape: shape makes %" PRIu64 " elements of a chunk of %" PRIu64,
                       want, have);
    for (const struct zr_json *v = shape->u.children.first; v; v = v->next, i++)
        if (v->type == ZR_JSON_ARRAY && v->u.children.first)
            ZR_CHECK(shape_check_place(v, i, in, out, err));
    out->fill = in->fill;
    return ZARR_OK;
}

const zarr_codec_spec_vtable zr_spec_reshape = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_V3 | ZARR_CODEC_SPEC_RESHAPES,
    .name = "reshape",
    .kind = ZARR_CODEC_ARRAY_ARRAY,
    .canonical = reshape_canonical,
    .resolve = reshape_resolve,
};

/* ---- squeeze ---------------------------------------------------------------------- */

/* Keeps one dimension of size 1 if there is no other dimension. */
static zarr_status squeeze_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                   zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    ZR_UNUSED(spec, fill_out, err);
    out->ndim = 0;
    memset(out->shape, 0, sizeof out->shape);
    for (int32_t i = 0; i < in->ndim; i++)
        if (in->shape[i] != 1)
            out->shape[out->ndim++] = in->shape[i];
    if (!out->ndim)
        out->shape[out->ndim++] = 1;
    out->fill = in->fill;
    return ZARR_OK;
}

static const char *const squeeze_aliases[] = {
    "https://codec.zarrs.dev/array_to_array/squeeze", NULL};
const zarr_codec_spec_vtable zr_spec_squeeze = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_V3 | ZARR_CODEC_SPEC_RESHAPES | ZARR_CODEC_SPEC_EXPERIMENTAL,
    .name = "zarrs.squeeze",
    .aliases = squeeze_aliases,
    .kind = ZARR_CODEC_ARRAY_ARRAY,
    .canonical = zr_conf_none,
    .resolve = squeeze_resolve,
};
