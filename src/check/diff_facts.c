/*
 * check/diff_facts.c - compares two nodes property by property. How elements are stored
 * does not affect their values, so chunks, codecs and format count only if the caller
 * asks for it.
 * Thread class: plain functions.
 */
#include "array/array.h"
#include "check/check.h"

#include <string.h>

/* ---- properties ------------------------------------------------------------------- */

static void tell_texts(struct zr_diff_pair *p, zarr_difference d, const char *a,
                       const char *b)
{
    if (a == b || (a && b && zr_streq(a, b)))
        return;
    d.a = a;
    d.b = b;
    zr_diff_tell(p, &d);
}

static void tell_shapes(struct zr_diff_pair *p, uint32_t what, const uint64_t *a,
                        const uint64_t *b)
{
    zarr_difference d = {.what = what, .dim = -1, .shape_a = a, .shape_b = b};

    d.ndim_a = a ? zarr_array_ndim(p->array[0]) : 0;
    d.ndim_b = b ? zarr_array_ndim(p->array[1]) : 0;
    if (!a != !b || d.ndim_a != d.ndim_b ||
        (a && memcmp(a, b, (size_t)d.ndim_a * sizeof *a) != 0))
        zr_diff_tell(p, &d);
}

static const char *type_name(const zarr_dtype *type)
{
    const char *name = zarr_dtype_name(type);

    return name ? name : zarr_dtype_v2(type);
}

static zarr_status compare_fills(struct zr_diff_pair *p, const zarr_dtype *type,
                                 const zarr_dtype *other, zarr_error *err)
{
    const zarr_difference d = {
        .what = ZARR_DIFFERENCE_FILL_VALUE, .dim = -1, .is_json = 1};
    struct zr_str a, b;
    zarr_status st = ZARR_OK;

    zr_str_init(&a, p->d->ctx->alloc);
    zr_str_init(&b, p->d->ctx->alloc);
    ZR_TRY(zr_array_fill_text(&a, p->array[0], type, err));
    ZR_TRY(zr_array_fill_text(&b, p->array[1], other, err));
    tell_texts(p, d, zr_str_text(&a), zr_str_text(&b));
out:
    zr_str_deinit(&a);
    zr_str_deinit(&b);
    return st;
}

/* The formats have the missing value in two places, so it is compared apart from the fill
 * value and the attribute. */
static zarr_status compare_missing_values(struct zr_diff_pair *p, zarr_error *err)
{
    const zarr_difference d = {
        .what = ZARR_DIFFERENCE_MISSING_VALUE, .dim = -1, .is_json = 1};
    struct zr_json *value[2] = {NULL, NULL};
    bool variable[2] = {false, false};
    struct zr_json_doc doc;
    struct zr_str text[2];
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&doc, p->d->ctx->alloc);
    for (int i = 0; i < 2; i++)
        zr_str_init(&text[i], p->d->ctx->alloc);
    for (int i = 0; i < 2; i++) {
        ZR_TRY(zr_array_missing_value(&value[i], &variable[i], p->array[i], &doc, err));
        if (value[i])
            zr_json_write(value[i], 0, &text[i]);
        ZR_TRY(zr_str_status(&text[i], err));
    }
    p->missing_told =
        variable[0] && variable[1] &&
        zarr_array_zarr_format(p->array[0]) != zarr_array_zarr_format(p->array[1]);
    if (p->missing_told && !zr_json_equal(value[0], value[1]))
        tell_texts(p, d, value[0] ? zr_str_text(&text[0]) : NULL,
                   value[1] ? zr_str_text(&text[1]) : NULL);
out:
    for (int i = 0; i < 2; i++)
        zr_str_deinit(&text[i]);
    zr_json_doc_deinit(&doc);
    return st;
}

/* Reports a difference of two texts of handles. A NULL text means that memory was out. */
static zarr_status tell_promised(struct zr_diff_pair *p, uint32_t what, const char *a,
                                 const char *b, zarr_error *err)
{
    const zarr_difference d = {.what = what, .dim = -1, .is_json = 1};

    if (!a || !b)
        return zr_fail_memory(err, 1);
    tell_texts(p, d, a, b);
    return ZARR_OK;
}

static zarr_status compare_storage(struct zr_diff_pair *p, zarr_error *err)
{
    static const char *const formats[] = {"", "1", "2", "3"};
    const zarr_array *a = p->array[0], *b = p->array[1];
    const int32_t fa = zarr_array_zarr_format(a), fb = zarr_array_zarr_format(b);

    ZR_CHECK(
        tell_promised(p, ZARR_DIFFERENCE_FORMAT, formats[fa & 3], formats[fb & 3], err));
    tell_shapes(p, ZARR_DIFFERENCE_CHUNKS, zarr_array_chunk_shape(a),
                zarr_array_chunk_shape(b));
    tell_shapes(p, ZARR_DIFFERENCE_SHARDS, zarr_array_block_shape(a),
                zarr_array_block_shape(b));
    if (!zarr_array_block_shape(a) || !zarr_array_block_shape(b))
        ZR_CHECK(tell_promised(p, ZARR_DIFFERENCE_CHUNK_GRID, zarr_array_chunk_grid(a),
                               zarr_array_chunk_grid(b), err));
    return tell_promised(p, ZARR_DIFFERENCE_CODECS, zarr_array_codecs(a),
                         zarr_array_codecs(b), err);
}

zarr_status zr_diff_arrays(struct zr_diff_pair *p, zarr_error *err)
{
    const zarr_array *a = p->array[0], *b = p->array[1];
    const zarr_dtype *type = zarr_array_dtype(a), *other = zarr_array_dtype(b);
    const bool same = zarr_dtype_equal(type, other); /* r24 equals raw_bytes[3] */
    const bool storage = (p->d->opts.flags & ZARR_DIFF_STORAGE) != 0;
    zarr_difference d = {.what = ZARR_DIFFERENCE_DATA_TYPE, .dim = -1};

    if (!same || storage)
        tell_texts(p, d, type_name(type), type_name(other));
    ZR_CHECK(compare_fills(p, type, same ? type : other, err));
    ZR_CHECK(compare_missing_values(p, err));
    d.what = ZARR_DIFFERENCE_DIMENSION_NAME;
    for (d.dim = 0;
         zarr_array_ndim(a) == zarr_array_ndim(b) && d.dim < zarr_array_ndim(a); d.dim++)
        tell_texts(p, d, zarr_array_dimension_name(a, d.dim),
                   zarr_array_dimension_name(b, d.dim));
    ZR_CHECK(
        zr_diff_attributes(p, zarr_array_attributes(a), zarr_array_attributes(b), err));
    if (storage)
        ZR_CHECK(compare_storage(p, err));
    return ZARR_OK;
}

/* ---- attributes -------------------------------------------------------------------- */

struct attribute_sides {
    struct zr_json_doc doc[2];
    struct zr_map member[2]; /* key -> value */
    struct zr_str text[2];
};

/* Whether this attribute has the dimension names of a v2 array, which are compared as
 * names, or a missing value that was compared. */
static bool is_compared_attribute(const struct zr_diff_pair *p, const char *key)
{
    return p->array[0] && (zr_streq(key, "_ARRAY_DIMENSIONS") ||
                           (p->missing_told && zr_streq(key, "_FillValue")));
}

static zarr_status parse_side(struct zr_diff_pair *p, struct attribute_sides *s, int side,
                              const char *text, zarr_error *err)
{
    zarr_limits limits = p->d->ctx->limits;

    if (!text)
        return zr_fail_memory(err, 1);
    ZR_CHECK(zr_json_parse(&s->doc[side], text, strlen(text), &limits, err));
    if (!zr_json_is(s->doc[side].root, ZR_JSON_OBJECT))
        return zr_internal(err);
    for (struct zr_json *v = s->doc[side].root->u.children.first; v; v = v->next)
        ZR_CHECK(zr_map_put_n(&s->member[side], v->key, v->key_bytes, v, err));
    return ZARR_OK;
}

static zarr_status compare_member(struct zr_diff_pair *p, struct attribute_sides *s,
                                  const struct zr_json *a, const struct zr_json *b,
                                  zarr_error *err)
{
    const struct zr_json *v[2] = {a, b};
    const zarr_difference d = {.what = ZARR_DIFFERENCE_ATTRIBUTE,
                               .name = a ? a->key : b->key,
                               .dim = -1,
                               .is_json = 1};

    if (is_compared_attribute(p, d.name))
        return ZARR_OK;
    for (int side = 0; side < 2; side++) {
        zr_str_clear(&s->text[side]);
        if (v[side])
            zr_json_write(v[side], 0, &s->text[side]);
        ZR_CHECK(zr_str_status(&s->text[side], err));
    }
    tell_texts(p, d, a ? zr_str_text(&s->text[0]) : NULL,
               b ? zr_str_text(&s->text[1]) : NULL);
    return ZARR_OK;
}

static zarr_status compare_members(struct zr_diff_pair *p, struct attribute_sides *s,
                                   zarr_error *err)
{
    const struct zr_json *v;

    for (v = s->doc[0].root->u.children.first; v; v = v->next)
        ZR_CHECK(compare_member(p, s, v,
                                zr_map_get_n(&s->member[1], v->key, v->key_bytes), err));
    for (v = s->doc[1].root->u.children.first; v; v = v->next)
        if (!zr_map_get_n(&s->member[0], v->key, v->key_bytes))
            ZR_CHECK(compare_member(p, s, NULL, v, err));
    return ZARR_OK;
}

zarr_status zr_diff_attributes(struct zr_diff_pair *p, const char *a, const char *b,
                               zarr_error *err)
{
    const zarr_allocator *alloc = p->d->ctx->alloc;
    struct attribute_sides s;
    zarr_status st = ZARR_OK;

    for (int side = 0; side < 2; side++) {
        zr_json_doc_init(&s.doc[side], alloc);
        zr_map_init(&s.member[side], alloc, NULL);
        zr_str_init(&s.text[side], alloc);
    }
    ZR_TRY(parse_side(p, &s, 0, a, err));
    ZR_TRY(parse_side(p, &s, 1, b, err));
    ZR_TRY(compare_members(p, &s, err));
out:
    for (int side = 0; side < 2; side++) {
        zr_str_deinit(&s.text[side]);
        zr_map_deinit(&s.member[side]);
        zr_json_doc_deinit(&s.doc[side]);
    }
    return st;
}
