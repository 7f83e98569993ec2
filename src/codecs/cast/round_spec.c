/*
 * codecs/cast/round_spec.c - `bitround`: keeps fewer significant bits. Decoding changes
 * nothing, so the fill value does not change. The codec of v3 is array->array. numcodecs'
 * filter of v2 takes floats and gives their bits as integers to the next codec. What v3
 * names numcodecs.bitround is encoded as numcodecs does, because zarr-python decodes
 * integers of that codec to other values. Thread class: plain functions.
 */
#include "codecs/cast/cast.h"

static zarr_status round_canonical(const zarr_codec_spec *raw, int format, char *text,
                                   size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const known[] = {"keepbits", NULL};
    struct zr_conf_text t;
    int64_t keepbits = -1;

    ZR_CHECK(zr_conf_check_members(raw, format, known, err));
    ZR_CHECK(zr_conf_encoder_i64(raw, "keepbits", 0, INT32_MAX, &keepbits, err));
    if (keepbits < 0 && zr_conf_is_stored(raw))
        keepbits = INT32_MAX; /* rounds nothing */
    if (keepbits < 0)
        return zr_fail(err, ZARR_ERR_INVALID, "%s: keepbits is missing",
                       zarr_codec_spec_name(raw));
    zr_conf_open(&t, text, cap);
    zr_conf_put_i64(&t, "keepbits", keepbits);
    zr_conf_close(&t, text_bytes);
    return ZARR_OK;
}

bool zr_round_from_dtype(const zarr_dtype *dtype, struct zr_round *out)
{
    const uint32_t kind = zarr_dtype_kind(dtype);
    struct zr_number n;

    *out = (struct zr_round){0};
    if (kind == ZARR_KIND_DATETIME || kind == ZARR_KIND_TIMEDELTA) {
        *out = (struct zr_round){.unit_bytes = 8, .parts = 1};
        return true;
    }
    if (!zr_number_from_dtype(dtype, &n) || n.bits < 8)
        return false;
    if (n.real && (!zr_number_is_ieee(&n) || n.bits < 16))
        return false;
    *out = (struct zr_round){.unit_bytes = n.bytes,
                             .parts = n.parts,
                             .fraction_bits = n.real ? n.real->fraction_bits : 0,
                             .real = n.real != NULL};
    return true;
}

bool zr_round_is_numcodecs(const zarr_codec_spec *spec)
{
    return zr_spec_is_prefixed(spec) ||
           (zr_spec_input(spec)->flags & ZARR_INPUT_V2_FILTER);
}

zarr_status zr_round_numcodecs(const zarr_codec_spec *spec, const zarr_dtype *dtype,
                               zarr_status code, zarr_error *err)
{
    struct zr_round round;
    int64_t keep = 0;

    (void)zarr_codec_spec_i64(spec, "keepbits", &keep);
    if (zarr_dtype_kind(dtype) != ZARR_KIND_FLOAT || !zr_round_from_dtype(dtype, &round))
        return zr_spec_refuse_dtype(spec, dtype,
                                    "floats of 16 to 64 bits, as in numcodecs", err);
    if (keep > round.fraction_bits)
        return zr_fail(err, code,
                       "bitround: keepbits is %" PRId64
                       ", must be at most %d for elements of type %s, as in numcodecs",
                       keep, round.fraction_bits, zr_dtype_label(dtype));
    return ZARR_OK;
}

static zarr_status round_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                 zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    struct zr_round round;

    const uint32_t flags = zr_spec_input(spec)->flags;
    const bool v2 = flags & ZARR_INPUT_V2_FILTER,
               transposed = flags & ZARR_INPUT_TRANSPOSED;
    uint32_t long_dims = 0;

    ZR_UNUSED(fill_out);
    for (int32_t i = 0; i < in->ndim; i++)
        long_dims += in->shape[i] > 1;
    if (v2 && transposed && long_dims > 1)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "bitround: with order F and before a codec that takes an array, "
                       "zarr-python reads other elements than it wrote");
    out->fill = in->fill;
    if (zr_conf_is_stored(spec)) /* decoding changes nothing */
        return ZARR_OK;
    if (zr_round_is_numcodecs(spec))
        return zr_round_numcodecs(spec, in->dtype, ZARR_ERR_INVALID, err);
    if (!zr_round_from_dtype(in->dtype, &round))
        return zr_spec_refuse_dtype(spec, in->dtype,
                                    "integers, times, and floats of 16 to 64 bits", err);
    return ZARR_OK;
}

static int round_lossy(const zarr_codec_spec *spec, const zarr_chunk_spec *in)
{
    struct zr_round round;
    int64_t keep = 0;

    (void)zarr_codec_spec_i64(spec, "keepbits", &keep);
    return !zr_round_from_dtype(in->dtype, &round) ||
           keep < (round.real ? round.fraction_bits : 8 * round.unit_bytes);
}

/* numcodecs' bitround gives integers to the codecs after it, and their configuration may
 * name these. */
static void round_pass(const zarr_codec_spec *spec, zarr_codec_input *input)
{
    int64_t keep = 0;

    if (zr_spec_is_prefixed(spec) && zarr_codec_spec_i64(spec, "keepbits", &keep) == 0 &&
        keep < 64)
        input->keepbits = (int32_t)keep;
}

static const char *const round_aliases[] = {
    "numcodecs.bitround", "https://codec.zarrs.dev/array_to_bytes/bitround",
    "https://codec.zarrs.dev/array_to_array/bitround", NULL};
const zarr_codec_spec_vtable zr_spec_bitround = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_V3 | ZARR_CODEC_SPEC_DECODES_NOTHING |
             ZARR_CODEC_SPEC_ELEMENTWISE | ZARR_CODEC_SPEC_KEEPS_PREFIX,
    .name = "bitround",
    .aliases = round_aliases,
    .kind = ZARR_CODEC_ARRAY_ARRAY,
    .canonical = round_canonical,
    .resolve = round_resolve,
    .lossy = round_lossy,
    .pass = round_pass,
};

/* ---- v2 ---------------------------------------------------------------------- */

static zarr_status round_v2_resolve(const zarr_codec_spec *spec,
                                    const zarr_chunk_spec *in, zarr_chunk_spec *out,
                                    void *fill_out, zarr_error *err)
{
    const uint32_t unit = in->item_bytes_hint;

    ZR_UNUSED(out, fill_out);
    if (!zr_conf_is_stored(spec) && in->exact && unit && in->n_bytes % unit)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "bitround: %" PRIu64
                       " bytes are not a whole number of elements of %" PRIu32,
                       in->n_bytes, unit);
    return ZARR_OK;
}

static zarr_status round_v2_elements(const zarr_codec_spec *spec, const char *in,
                                     zarr_codec_elements *out, zarr_error *err)
{
    struct zr_number type;
    int64_t keep = 0;

    if (!in)
        return ZARR_OK;
    if (!zr_numpy_parse(in, &type) || type.kind != ZARR_KIND_FLOAT || type.big)
        return zr_conf_is_stored(spec)
                   ? ZARR_OK
                   : zr_fail(err, ZARR_ERR_UNSUPPORTED,
                             "bitround: its input must be little-endian floats of 16 to "
                             "64 bits, as in numcodecs");
    (void)zarr_codec_spec_i64(spec, "keepbits", &keep);
    if (keep > type.real->fraction_bits && !zr_conf_is_stored(spec))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "bitround: keepbits is %" PRId64
                       ", must be at most %d for elements of type %s, as in numcodecs",
                       keep, type.real->fraction_bits, in);
    type = zr_number_make(ZARR_KIND_INT, type.bytes);
    type.big = false;
    zr_numpy_print(&type, out->gives);
    return ZARR_OK;
}

const zarr_codec_spec_vtable zr_spec_bitround_v2 = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_V2 | ZARR_CODEC_SPEC_DECODES_NOTHING,
    .name = "bitround",
    .kind = ZARR_CODEC_BYTES_BYTES,
    .canonical = round_canonical,
    .resolve = round_v2_resolve,
    .elements = round_v2_elements,
};
