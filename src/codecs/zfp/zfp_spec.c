/*
 * codecs/zfp/zfp_spec.c - two array->bytes codecs. The registry's `zfp` stores a bare
 * stream. numcodecs' `zfpy`, in v2 and v3, stores zfp's header and then the stream. zfp
 * compresses fields of 1 to 4 dimensions of int32, int64, float and double. Narrower
 * numbers are promoted as the registry says. Unsigned numbers of 32 and 64 bits are
 * stored as signed ones without a change, so they must not use their highest bit (zarrs
 * clamps such numbers). zfpy's header describes the output of numcodecs' filters before
 * it, which may have one dimension or be integers (chain/v2_filters.c). The bound of the
 * output is the library's formula, written out, because specifications do not include the
 * library. A test compares it with the library's function. Thread class: plain functions.
 */
#include "codecs/zfp/zfp_field.h"

#include <math.h>
#include <string.h>

enum {
    ZFP_MAX_BITS_OF_BLOCK = 16658,
    ZFP_MAX_PLANES = 64,
    ZFP_MIN_EXPONENT = -1074,
    ZFP_HEADER_BITS = 148
};

/* ---- configurations -------------------------------------------------------------- */

static const char *const zfp_modes[] = {
    "", "expert", "fixed_rate", "fixed_precision", "fixed_accuracy", "reversible", NULL};

static zarr_status zfp_need(const zarr_codec_spec *raw, const char *member,
                            const char *mode, zarr_error *err)
{
    if (zr_conf_has(raw, member))
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_INVALID, "%s: %s is required by mode \"%s\"",
                   zarr_codec_spec_name(raw), member, mode);
}

/* Checks that the member is a finite number above 0, or at least 0 if `zero_too`, and
 * writes it to the canonical form. */
static zarr_status zfp_real(const zarr_codec_spec *raw, const char *member, bool zero_too,
                            struct zr_conf_text *t, zarr_error *err)
{
    double v = -1;

    if (zarr_codec_spec_f64(raw, member, &v) != 0 || !isfinite(v) ||
        !(zero_too ? v >= 0 : v > 0))
        return zr_conf_refuse(
            raw, member,
            zero_too ? "a finite number, not below 0" : "a finite number above 0", err);
    zr_conf_put_f64(t, member, v);
    return ZARR_OK;
}

static zarr_status zfp_expert(const zarr_codec_spec *raw, struct zr_conf_text *t,
                              zarr_error *err)
{
    static const struct {
        const char *name;
        int64_t lo, hi;
    } members[] = {{"minbits", 0, ZFP_MAX_BITS_OF_BLOCK},
                   {"maxbits", 1, UINT32_MAX},
                   {"maxprec", 1, ZFP_MAX_PLANES},
                   {"minexp", INT32_MIN, INT32_MAX}};
    int64_t v[ZR_COUNT(members)] = {0};

    for (size_t i = 0; i < ZR_COUNT(members); i++) {
        ZR_CHECK(zfp_need(raw, members[i].name, "expert", err));
        ZR_CHECK(
            zr_conf_i64(raw, members[i].name, members[i].lo, members[i].hi, &v[i], err));
        zr_conf_put_i64(t, members[i].name, v[i]);
    }
    if (v[0] > v[1])
        return zr_conf_refuse(raw, "minbits", "at most maxbits", err);
    return ZARR_OK;
}

static zarr_status zfp_canonical(const zarr_codec_spec *raw, int format, char *text,
                                 size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const known[][6] = {
        [ZR_ZFP_EXPERT] = {"mode", "minbits", "maxbits", "maxprec", "minexp"},
        [ZR_ZFP_RATE] = {"mode", "rate"},
        [ZR_ZFP_PRECISION] = {"mode", "precision"},
        [ZR_ZFP_ACCURACY] = {"mode", "tolerance"},
        [ZR_ZFP_REVERSIBLE] = {"mode"},
    };
    struct zr_conf_text t;
    int64_t precision = 0;
    int mode = 0;

    if (!zr_conf_has(raw, "mode"))
        return zr_fail(err, ZARR_ERR_INVALID, "zfp: mode is required");
    ZR_CHECK(zr_conf_word(raw, "mode", zfp_modes + 1, &mode, err));
    mode++;
    ZR_CHECK(zr_conf_check_members(raw, format, known[mode], err));
    zr_conf_open(&t, text, cap);
    zr_conf_put_word(&t, "mode", zfp_modes[mode]);
    if (mode == ZR_ZFP_EXPERT) {
        ZR_CHECK(zfp_expert(raw, &t, err));
    } else if (mode == ZR_ZFP_RATE) {
        ZR_CHECK(zfp_need(raw, "rate", zfp_modes[mode], err));
        ZR_CHECK(zfp_real(raw, "rate", false, &t, err));
    } else if (mode == ZR_ZFP_ACCURACY) {
        ZR_CHECK(zfp_need(raw, "tolerance", zfp_modes[mode], err));
        ZR_CHECK(zfp_real(raw, "tolerance", true, &t, err));
    } else if (mode == ZR_ZFP_PRECISION) {
        ZR_CHECK(zfp_need(raw, "precision", zfp_modes[mode], err));
        ZR_CHECK(zr_conf_i64(raw, "precision", 0, UINT32_MAX, &precision, err));
        zr_conf_put_i64(&t, "precision", precision);
    }
    zr_conf_close(&t, text_bytes);
    return ZARR_OK;
}

/* Copies a parameter of zfpy. -1 stands for an absent one. */
static zarr_status zfpy_number(const zarr_codec_spec *raw, const char *member,
                               struct zr_conf_text *t, zarr_error *err)
{
    double v = -1;

    if (zr_conf_has(raw, member) &&
        (zarr_codec_spec_f64(raw, member, &v) != 0 || !isfinite(v))) {
        if (!zr_conf_is_stored(raw))
            return zr_conf_refuse(raw, member, "a finite number", err);
        v = -1; /* the header of a chunk tells what decoding needs */
    }
    if (v == floor(v) && fabs(v) < 1e9)
        zr_conf_put_i64(t, member, (int64_t)v);
    else
        zr_conf_put_f64(t, member, v);
    return ZARR_OK;
}

/* `compression_kwargs` repeats the other members. numcodecs writes it and ignores it when
 * it reads. */
static zarr_status zfpy_canonical(const zarr_codec_spec *raw, int format, char *text,
                                  size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const known[] = {"mode",      "tolerance",          "rate",
                                        "precision", "compression_kwargs", NULL};
    struct zr_conf_text t;
    int64_t mode = ZR_ZFP_ACCURACY;
    double rate = 0;

    ZR_CHECK(zr_conf_check_members(raw, format, known, err));
    ZR_CHECK(
        zr_conf_encoder_i64(raw, "mode", ZR_ZFP_EXPERT, ZR_ZFP_REVERSIBLE, &mode, err));
    if (zr_conf_is_stored(raw) && mode == ZR_ZFP_RATE &&
        zarr_codec_spec_f64(raw, "rate", &rate) == 0 &&
        rate > ZFP_MAX_BITS_OF_BLOCK / 4.0)
        mode = ZR_ZFP_REVERSIBLE; /* a rate that blocks of no rank can have */
    zr_conf_open(&t, text, cap);
    zr_conf_put_i64(&t, "mode", mode);
    ZR_CHECK(zfpy_number(raw, "tolerance", &t, err));
    ZR_CHECK(zfpy_number(raw, "rate", &t, err));
    ZR_CHECK(zfpy_number(raw, "precision", &t, err));
    zr_conf_close(&t, text_bytes);
    return ZARR_OK;
}

/* ---- the field -------------------------------------------------------------- */

/* numcodecs' bitround before this codec gives floats as integers, if it rounds at all. */
static bool zfp_gets_bits(const zarr_codec_spec *spec, const zarr_dtype *dtype)
{
    const uint64_t bits = zarr_dtype_component_bits(dtype);
    const int32_t keep = zr_spec_input(spec)->keepbits;

    return keep >= 0 && zarr_dtype_kind(dtype) == ZARR_KIND_FLOAT &&
           ((bits == 32 && keep < 23) || (bits == 64 && keep < 52));
}

static zarr_status zfp_choose_scalar(const zarr_codec_spec *spec, const zarr_dtype *dtype,
                                     struct zr_zfp *z, zarr_error *err)
{
    const uint32_t kind = zarr_dtype_kind(dtype);
    const uint64_t bits = zarr_dtype_component_bits(dtype);
    struct zr_number n;

    z->item_bytes = (uint32_t)zarr_dtype_item_bytes(dtype);
    z->is_unsigned = kind == ZARR_KIND_UINT;
    if (z->header && zfp_gets_bits(spec, dtype)) {
        z->scalar = bits == 64 ? ZR_ZFP_INT64 : ZR_ZFP_INT32;
        z->bits_of_floats = true;
    } else if (kind == ZARR_KIND_FLOAT && bits == 64) {
        z->scalar = ZR_ZFP_DOUBLE;
    } else if (kind == ZARR_KIND_FLOAT && bits == 32) {
        z->scalar = ZR_ZFP_FLOAT;
    } else if (!z->header && kind == ZARR_KIND_FLOAT && zr_number_from_dtype(dtype, &n) &&
               n.bits < 32) {
        z->scalar = ZR_ZFP_FLOAT;
        z->real = n;
    } else if (kind == ZARR_KIND_INT || (!z->header && kind == ZARR_KIND_UINT)) {
        z->scalar = bits > 32 ? ZR_ZFP_INT64 : ZR_ZFP_INT32;
        z->bits = bits < 32 ? (uint32_t)bits : 0;
    } else if (kind == ZARR_KIND_DATETIME || kind == ZARR_KIND_TIMEDELTA) {
        z->scalar = ZR_ZFP_INT64;
    } else {
        return zr_spec_refuse_dtype(spec, dtype,
                                    "int32, int64, float32, float64 and types that "
                                    "are promoted to them",
                                    err);
    }
    if (z->header && z->bits)
        return zr_spec_refuse_dtype(spec, dtype, "int32, int64, float32 and float64",
                                    err);
    return ZARR_OK;
}

/* The shape that a header names. Some filters before this codec flatten the chunk. A
 * stored array can have a rank that zfp lacks only if its chunks are flattened. */
static zarr_status zfp_shape(const zarr_codec_spec *spec, const zarr_chunk_spec *array,
                             struct zr_zfp *z, zarr_error *err)
{
    const int32_t ndim = array->ndim;
    const bool no_rank = ndim > 4 || ndim == 0;
    const bool flat = z->header && ((zr_spec_input(spec)->flags & ZARR_INPUT_FLAT) ||
                                    (no_rank && zr_conf_is_stored(spec)));

    if (!flat && (ndim > 4 || (z->header && ndim == 0)))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "%s: chunks of %" PRId32 " dimensions; it has %s to 4",
                       zarr_codec_spec_name(spec), ndim, z->header ? "1" : "0");
    z->dims = ndim && !flat ? (uint32_t)ndim : 1;
    z->size[0] = 1;
    z->n_items = 1;
    for (int32_t i = 0; i < ndim; i++) {
        z->n_items *= array->shape[i]; /* cannot overflow: n_bytes fits 64 bits */
        if (!flat)
            z->size[i] = array->shape[i];
        else if (ndim <= 4)
            z->array_size[i] = array->shape[i];
    }
    if (flat)
        z->size[0] = z->n_items;
    if (flat && ndim <= 4)
        z->array_dims = (uint32_t)ndim;
    z->n_blocks = zr_zfp_blocks(z->size, z->dims);
    return ZARR_OK;
}

uint64_t zr_zfp_blocks(const uint64_t *size, uint32_t dims)
{
    uint64_t n = 1;

    for (uint32_t i = 0; i < dims; i++)
        n *= size[i] / 4 + (size[i] % 4 != 0);
    return n;
}

static uint32_t zfp_rate_bits(const struct zr_zfp *z)
{
    const double values = (double)(1U << (2 * z->dims));
    const double bits = floor(values * z->number + 0.5);
    const double least = z->scalar == ZR_ZFP_FLOAT    ? 9
                         : z->scalar == ZR_ZFP_DOUBLE ? 12
                                                      : 0;

    return bits < least        ? (uint32_t)least
           : bits > UINT32_MAX ? UINT32_MAX
                               : (uint32_t)bits;
}

/* To 1 bit a block at least, and as many as it can have at most. */
static void zfp_clamp_rate(struct zr_zfp *z)
{
    const double values = (double)(1U << (2 * z->dims));

    z->number = ZR_MAX(z->number, 1 / values);
    z->number = ZR_MIN(z->number, ZFP_MAX_BITS_OF_BLOCK / values);
}

static void zfp_expert_numbers(const zarr_codec_spec *spec, struct zr_zfp *z)
{
    int64_t v = 0;

    if (zarr_codec_spec_i64(spec, "minbits", &v) == 0)
        z->minbits = (uint32_t)v;
    if (zarr_codec_spec_i64(spec, "maxbits", &v) == 0)
        z->maxbits = (uint32_t)v;
    if (zarr_codec_spec_i64(spec, "maxprec", &v) == 0)
        z->maxprec = (uint32_t)v;
    if (zarr_codec_spec_i64(spec, "minexp", &v) == 0)
        z->minexp = (int32_t)v;
}

static void zfp_read_mode(const zarr_codec_spec *spec, struct zr_zfp *z)
{
    static const char *const members[] = {NULL,        NULL,        "rate",
                                          "precision", "tolerance", NULL};
    const char *word = zarr_codec_spec_text(spec, "mode");
    int64_t number = ZR_ZFP_ACCURACY;

    if (word)
        for (number = ZR_ZFP_EXPERT; !zr_streq(zfp_modes[number], word);)
            number++;
    else
        (void)zarr_codec_spec_i64(spec, "mode", &number);
    z->mode = (enum zr_zfp_mode)number;
    z->number = -1;
    if (members[number])
        (void)zarr_codec_spec_f64(spec, members[number], &z->number);
    if (z->header && members[number] && z->number < 0)
        z->mode = ZR_ZFP_REVERSIBLE; /* as in zfpy */
}

zarr_status zr_spec_zfp(const zarr_codec_spec *spec, const zarr_chunk_spec *array,
                        struct zr_zfp *out, zarr_error *err)
{
    struct zr_zfp *z = out;

    *z = (struct zr_zfp){.minbits = 1,
                         .maxbits = ZFP_MAX_BITS_OF_BLOCK,
                         .maxprec = ZFP_MAX_PLANES,
                         .minexp = ZFP_MIN_EXPONENT,
                         .header =
                             zr_streq(zarr_codec_spec_name(spec), zr_spec_zfpy.name)};
    ZR_CHECK(zfp_choose_scalar(spec, array->dtype, z, err));
    ZR_CHECK(zfp_shape(spec, array, z, err));
    zfp_read_mode(spec, z);
    if (z->mode == ZR_ZFP_EXPERT && !z->header)
        zfp_expert_numbers(spec, z);
    if (z->mode == ZR_ZFP_PRECISION && z->number >= 1 && z->number < ZFP_MAX_PLANES)
        z->maxprec = (uint32_t)z->number;
    if (z->mode == ZR_ZFP_RATE && z->header && zr_conf_is_stored(spec))
        zfp_clamp_rate(z);
    if (z->mode == ZR_ZFP_RATE)
        z->minbits = z->maxbits = zfp_rate_bits(z);
    if (z->mode == ZR_ZFP_RATE && (z->minbits > ZFP_MAX_BITS_OF_BLOCK || z->minbits == 0))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "%s: rate is %g: blocks of %" PRIu32 " bits, must have 1 to %d",
                       zarr_codec_spec_name(spec), z->number, z->minbits,
                       ZFP_MAX_BITS_OF_BLOCK);
    return ZARR_OK;
}

/* The most bits that a block can have. */
static uint64_t most_block_bits(const struct zr_zfp *z)
{
    /* bits before the bit planes of a block: in other modes, in reversible mode */
    static const uint8_t front[][2] = {[ZR_ZFP_INT32] = {0, 5},
                                       [ZR_ZFP_INT64] = {0, 6},
                                       [ZR_ZFP_FLOAT] = {9, 15},
                                       [ZR_ZFP_DOUBLE] = {12, 19}};
    const bool eight = z->scalar == ZR_ZFP_INT64 || z->scalar == ZR_ZFP_DOUBLE;
    const bool reversible =
        z->mode == ZR_ZFP_REVERSIBLE || z->minexp < ZFP_MIN_EXPONENT || z->header;
    const uint64_t values = UINT64_C(1) << (2 * z->dims);
    const uint32_t planes = eight ? 64 : 32;
    uint64_t bits = values * (z->header ? planes : ZR_MIN(z->maxprec, planes));

    bits += values - 1 + front[z->scalar][reversible];
    if (!z->header) /* a header may name another mode than the metadata */
        bits = ZR_MIN(bits, (uint64_t)z->maxbits);
    return ZR_MAX(bits, (uint64_t)z->minbits);
}

/* The most bytes that a stream can have, in whole words. */
static bool zfp_find_most(const struct zr_zfp *z, uint64_t *bytes)
{
    uint64_t bits = 0;

    if (!zr_mul(z->n_blocks, most_block_bits(z), &bits) ||
        !zr_add(bits, ZFP_HEADER_BITS + 63, &bits))
        return false;
    *bytes = bits / 64 * 8;
    return true;
}

/* The same field as one dimension, which any header may describe. */
static struct zr_zfp zfp_flat(const struct zr_zfp *z)
{
    struct zr_zfp flat = *z;

    flat.dims = 1;
    flat.size[0] = z->n_items;
    flat.n_blocks = zr_zfp_blocks(flat.size, 1);
    if (z->mode == ZR_ZFP_RATE)
        flat.minbits = flat.maxbits = zfp_rate_bits(&flat);
    return flat;
}

/* The same field as the headers of other writers may describe it. */
static struct zr_zfp zfp_other(const struct zr_zfp *z)
{
    struct zr_zfp other = *z;

    if (z->bits_of_floats)
        other.scalar = z->scalar == ZR_ZFP_INT64 ? ZR_ZFP_DOUBLE : ZR_ZFP_FLOAT;
    if (z->array_dims) {
        other.dims = z->array_dims;
        memcpy(other.size, z->array_size, sizeof other.size);
        other.n_blocks = zr_zfp_blocks(other.size, other.dims);
    }
    if (z->mode == ZR_ZFP_RATE)
        other.minbits = other.maxbits = zfp_rate_bits(&other);
    return other;
}

static zarr_status zfp_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                               zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    struct zr_zfp z, other, flat;
    zarr_status st = ZARR_OK;
    uint64_t bytes = 0, flat_bytes = 0;

    ZR_UNUSED(fill_out);
    ZR_TRY(zr_spec_needs_length(spec, in, err));
    ZR_TRY(zr_spec_zfp(spec, in, &z, err));
    other = zfp_other(&z);
    flat = z.header ? zfp_flat(&other) : other;
    out->exact = 0;
    out->item_bytes_hint = 1;
    if (!zfp_find_most(&z, &out->n_bytes) || !zfp_find_most(&other, &bytes) ||
        !zfp_find_most(&flat, &flat_bytes))
        st = zr_fail(err, ZARR_ERR_LIMIT, "%s: a chunk of %" PRIu64 " bytes is too large",
                     zarr_codec_spec_name(spec), in->n_bytes);
    out->n_bytes = ZR_MAX(out->n_bytes, ZR_MAX(bytes, flat_bytes));
out:
    return st;
}

static int zfp_lossy(const zarr_codec_spec *spec, const zarr_chunk_spec *in)
{
    struct zr_zfp z;

    return zr_spec_zfp(spec, in, &z, NULL) != ZARR_OK || z.mode != ZR_ZFP_REVERSIBLE;
}

static const char *const zfp_aliases[] = {"https://codec.zarrs.dev/array_to_bytes/zfp",
                                          "zarrs.zfp", NULL};
const zarr_codec_spec_vtable zr_spec_zfp_bare = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_V3,
    .name = "zfp",
    .aliases = zfp_aliases,
    .kind = ZARR_CODEC_ARRAY_BYTES,
    .canonical = zfp_canonical,
    .resolve = zfp_resolve,
    .lossy = zfp_lossy,
};
static const char *const zfpy_aliases[] = {"https://codec.zarrs.dev/array_to_bytes/zfpy",
                                           NULL};
const zarr_codec_spec_vtable zr_spec_zfpy = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_NUMCODECS,
    .name = "zfpy",
    .aliases = zfpy_aliases,
    .kind = ZARR_CODEC_ARRAY_BYTES,
    .canonical = zfpy_canonical,
    .resolve = zfp_resolve,
    .lossy = zfp_lossy,
};
