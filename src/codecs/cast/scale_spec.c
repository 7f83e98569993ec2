/*
 * codecs/cast/scale_spec.c - `scale_offset`: encodes (in - offset) * scale and decodes
 * in / scale + offset. Every step is done in the elements' own type. Floats are rounded
 * after each operation. A result of integers that is not exact is an error. Both numbers
 * are spelled like fill values of that type. The fill value is encoded in the same way.
 * Thread class: plain functions.
 */
#include "codecs/cast/cast.h"

#include <string.h>

static zarr_status scale_canonical(const zarr_codec_spec *raw, int format, char *text,
                                   size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const known[] = {"offset", "scale", NULL};
    struct zr_conf_text t;
    char excerpt[64];

    ZR_CHECK(zr_conf_check_members(raw, format, known, err));
    zr_conf_open(&t, text, cap);
    for (size_t i = 0; known[i]; i++) {
        const struct zr_json *v = zr_conf_value(raw, known[i]);

        if (v && v->type != ZR_JSON_NULL && v->type != ZR_JSON_NUMBER &&
            v->type != ZR_JSON_STRING)
            return zr_fail(err, ZARR_ERR_INVALID,
                           "scale_offset: %s is %s, must be a number as fill_value "
                           "spells it",
                           known[i], zr_json_excerpt(v, excerpt, sizeof excerpt));
        zr_conf_put_json(&t, raw, known[i]);
    }
    return zr_conf_end(&t, text_bytes, err);
}

/* ---- numbers --------------------------------------------------------------------- */

static zarr_status affine_member(const zarr_codec_spec *spec, const zarr_dtype *dtype,
                                 const struct zr_number *n, const char *member,
                                 uint64_t otherwise, uint64_t *bits, zarr_error *err)
{
    const struct zr_scalar v = {.c = otherwise};
    uint8_t element[8] = {0};
    zarr_status st = ZARR_OK;

    if (!zr_conf_has(spec, member)) {
        (void)zr_scalar_cast(&v, n, ZR_ROUND_EVEN, ZR_RANGE_CLAMP, bits);
        return ZARR_OK;
    }
    st = zr_dtype_fill_parse(dtype, zr_conf_value(spec, member), 3, element, err);
    if (st != ZARR_OK)
        return zr_prefix(err, st, "scale_offset: %s", member);
    *bits = zr_number_bits(n, element);
    return ZARR_OK;
}

zarr_status zr_affine_open(struct zr_affine *a, const zarr_codec_spec *spec,
                           const zarr_dtype *dtype, zarr_error *err)
{
    struct zr_scalar v;
    uint64_t offset = 0, scale = 0;

    *a = (struct zr_affine){0};
    if (!zr_number_from_dtype(dtype, &a->number) || a->number.parts != 1 ||
        (a->number.real && !a->number.real->sign))
        ZR_CHECK(
            zr_spec_refuse_dtype(spec, dtype, "integers and floats with a zero", err));
    ZR_CHECK(affine_member(spec, dtype, &a->number, "offset", 0, &offset, err));
    ZR_CHECK(affine_member(spec, dtype, &a->number, "scale", 1, &scale, err));
    v = zr_scalar_from_bits(&a->number, offset);
    a->offset = zr_scalar_f64(&v);
    a->whole_offset = v.minus ? ~v.c + 1 : v.c;
    v = zr_scalar_from_bits(&a->number, scale);
    a->scale = zr_scalar_f64(&v);
    a->whole_scale = v.minus ? ~v.c + 1 : v.c;
    if (v.kind == ZR_SCALAR_FINITE && v.c == 0)
        return zr_fail(err, ZARR_ERR_INVALID, "scale_offset: scale is 0");
    return ZARR_OK;
}

/* Whether a signed integer of this width can hold v. */
static bool affine_fits(const struct zr_number *n, int64_t v)
{
    return n->bits == 64 ||
           (v >= -((int64_t)1 << (n->bits - 1)) && v < (int64_t)1 << (n->bits - 1));
}

bool zr_affine_apply_signed(const struct zr_affine *a, bool encode, int64_t v,
                            int64_t *out)
{
    const int64_t offset = (int64_t)a->whole_offset, scale = (int64_t)a->whole_scale;

    if (encode)
        return !__builtin_sub_overflow(v, offset, &v) && affine_fits(&a->number, v) &&
               !__builtin_mul_overflow(v, scale, out) && affine_fits(&a->number, *out);
    if (scale == -1 ? v == INT64_MIN : v % scale != 0)
        return false;
    v /= scale;
    return affine_fits(&a->number, v) && !__builtin_add_overflow(v, offset, out) &&
           affine_fits(&a->number, *out);
}

bool zr_affine_apply_unsigned(const struct zr_affine *a, bool encode, uint64_t v,
                              uint64_t *out)
{
    const uint64_t most = UINT64_MAX >> (64 - a->number.bits);

    if (encode)
        return v >= a->whole_offset && zr_mul(v - a->whole_offset, a->whole_scale, out) &&
               *out <= most;
    return v % a->whole_scale == 0 && zr_add(v / a->whole_scale, a->whole_offset, out) &&
           *out <= most;
}

/* Rounds to the type's precision. Returns false if the type has no such number. */
static bool affine_round(const struct zr_number *n, double *d, uint64_t *bits)
{
    struct zr_scalar v = zr_scalar_of_f64(*d);

    if (zr_scalar_cast(&v, n, ZR_ROUND_EVEN,
                       zr_number_is_ieee(n) ? ZR_RANGE_CLAMP : ZR_RANGE_ERROR,
                       bits) != ZR_CAST_OK)
        return false;
    v = zr_scalar_from_bits(n, *bits);
    *d = zr_scalar_f64(&v);
    return true;
}

bool zr_affine_one(const struct zr_affine *a, bool encode, uint64_t bits, uint64_t *out)
{
    const struct zr_number *n = &a->number;
    const uint64_t mask = UINT64_MAX >> (64 - n->bits);
    struct zr_scalar v = zr_scalar_from_bits(n, bits);
    int64_t whole = 0;
    double d;

    if (n->kind == ZARR_KIND_UINT)
        return zr_affine_apply_unsigned(a, encode, bits, out);
    if (n->kind == ZARR_KIND_INT) {
        if (!zr_affine_apply_signed(a, encode, (int64_t)(v.minus ? ~v.c + 1 : v.c),
                                    &whole))
            return false;
        *out = (uint64_t)whole & mask;
        return true;
    }
    d = zr_scalar_f64(&v);
    d = encode ? d - a->offset : d / a->scale;
    if (!affine_round(n, &d, out))
        return false;
    d = encode ? d * a->scale : d + a->offset;
    return affine_round(n, &d, out);
}

/* ---- the representation ---------------------------------------------------------- */

static zarr_status scale_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                 zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    struct zr_affine a;
    uint64_t bits = 0;
    char text[64] = "";

    ZR_CHECK(zr_affine_open(&a, spec, in->dtype, err));
    if (!in->fill)
        return ZARR_OK;
    if (!zr_affine_one(&a, true, zr_number_bits(&a.number, in->fill), &bits)) {
        return zr_fail(
            err, ZARR_ERR_INVALID,
            "scale_offset: (fill_value %s - offset) * scale is not representable as %s",
            zr_dtype_fill_text(in->dtype, in->fill, text, sizeof text),
            zr_dtype_label(in->dtype));
    }
    zr_number_put(&a.number, fill_out, bits);
    out->fill = fill_out;
    return ZARR_OK;
}

static int scale_lossy(const zarr_codec_spec *spec, const zarr_chunk_spec *in)
{
    struct zr_affine a;

    if (zr_affine_open(&a, spec, in->dtype, NULL) != ZARR_OK)
        return 1;
    return a.number.kind == ZARR_KIND_FLOAT ? a.offset != 0 || a.scale != 1
                                            : a.whole_offset != 0 || a.whole_scale != 1;
}

const zarr_codec_spec_vtable zr_spec_scale_offset = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_V3 | ZARR_CODEC_SPEC_ELEMENTWISE,
    .name = "scale_offset",
    .kind = ZARR_CODEC_ARRAY_ARRAY,
    .canonical = scale_canonical,
    .resolve = scale_resolve,
    .lossy = scale_lossy,
};
