/*
 * codecs/packbits/packbits_spec.c - three codecs that pack elements into bits. The
 * registry's `packbits` is array->bytes, takes any number and stores the lowest bit
 * first. numcodecs' filter of v2 takes one byte for each bool. It stores the highest bit
 * first, after a byte that counts the padding bits. v3's "numcodecs.packbits" does the
 * same between arrays. All have exact sizes. The text and the schema of the registry
 * spell the members of `packbits` differently. Both spellings are read. The text's is
 * written. Thread class: plain functions.
 */
#include "codecs/packbits/packbits.h"

/* ---- packbits ----------------------------------------------------------------- */

/* The words of the registry's text, then those of its schema for the last two. */
static const char *const packbits_paddings[] = {"none",       "first_byte", "last_byte",
                                                "start_byte", "end_byte",   NULL};

/* Reads a member that has two names. *bit is -1 if it is absent. */
static zarr_status packbits_bit(const zarr_codec_spec *raw, const char *name,
                                const char *other, int64_t *bit, zarr_error *err)
{
    *bit = -1;
    if (zr_conf_has(raw, name) && zr_conf_has(raw, other))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "packbits: %s and %s name the same member: give only one of them",
                       name, other);
    ZR_CHECK(zr_conf_i64(raw, name, 0, 63, bit, err));
    return zr_conf_i64(raw, other, 0, 63, bit, err);
}

static zarr_status packbits_canonical(const zarr_codec_spec *raw, int format, char *text,
                                      size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const known[] = {"padding_encoding", "first_bit", "last_bit",
                                        "start_bit",        "end_bit",   NULL};
    struct zr_conf_text t;
    int64_t first = -1, last = -1;
    int padding = 0;

    ZR_CHECK(zr_conf_check_members(raw, format, known, err));
    ZR_CHECK(zr_conf_word(raw, "padding_encoding", packbits_paddings, &padding, err));
    ZR_CHECK(packbits_bit(raw, "first_bit", "start_bit", &first, err));
    ZR_CHECK(packbits_bit(raw, "last_bit", "end_bit", &last, err));
    if (last >= 0 && last < first)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "packbits: last_bit is %" PRId64
                       ", must not be less than first_bit, %" PRId64,
                       last, first);
    zr_conf_open(&t, text, cap);
    zr_conf_put_word(&t, "padding_encoding",
                     packbits_paddings[padding > 2 ? padding - 2 : padding]);
    if (first >= 0)
        zr_conf_put_i64(&t, "first_bit", first);
    if (last >= 0)
        zr_conf_put_i64(&t, "last_bit", last);
    zr_conf_close(&t, text_bytes);
    return ZARR_OK;
}

/* True for bools, numbers, and times, which are integers inside. */
static bool packbits_takes(const zarr_dtype *dtype)
{
    switch (zarr_dtype_kind(dtype)) {
    case ZARR_KIND_BOOL:
    case ZARR_KIND_INT:
    case ZARR_KIND_UINT:
    case ZARR_KIND_FLOAT:
    case ZARR_KIND_COMPLEX:
    case ZARR_KIND_DATETIME:
    case ZARR_KIND_TIMEDELTA:
        return true;
    default:
        return false;
    }
}

zarr_status zr_spec_packbits(const zarr_codec_spec *spec, const zarr_dtype *dtype,
                             struct zr_packbits *out, zarr_error *err)
{
    const char *name = zarr_dtype_name(dtype);
    const char *padding = zarr_codec_spec_text(spec, "padding_encoding");
    int64_t first = 0, last = 0;

    if (!packbits_takes(dtype))
        return zr_spec_refuse_dtype(spec, dtype, "bools, numbers and times", err);
    *out = (struct zr_packbits){.components = zarr_dtype_components(dtype),
                                .bits = (uint32_t)zarr_dtype_component_bits(dtype)};
    out->bytes = (uint32_t)zarr_dtype_item_bytes(dtype) / out->components;
    if (!out->bits || out->bits > 64 || out->bytes > 8)
        return zr_spec_refuse_dtype(spec, dtype, "components of at most 64 bits", err);
    out->boolean = zarr_dtype_kind(dtype) == ZARR_KIND_BOOL;
    out->is_signed = zarr_dtype_kind(dtype) == ZARR_KIND_INT ||
                     zarr_dtype_kind(dtype) == ZARR_KIND_DATETIME ||
                     zarr_dtype_kind(dtype) == ZARR_KIND_TIMEDELTA;
    last = out->bits - 1;
    (void)zarr_codec_spec_i64(spec, "first_bit", &first);
    (void)zarr_codec_spec_i64(spec, "last_bit", &last);
    if (last >= out->bits)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "packbits: last_bit is %" PRId64
                       ", but a component of %s has %" PRIu32 " bits",
                       last, name ? name : "?", out->bits);
    if (first > last)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "packbits: first_bit is %" PRId64
                       ", but a component of %s has %" PRIu32 " bits",
                       first, name ? name : "?", out->bits);
    out->first = (uint32_t)first;
    out->kept = (uint32_t)(last - first) + 1;
    out->padding_first = padding && zr_streq(padding, "first_byte");
    out->padding_last = padding && zr_streq(padding, "last_byte");
    return ZARR_OK;
}

static zarr_status packbits_resolve(const zarr_codec_spec *spec,
                                    const zarr_chunk_spec *in, zarr_chunk_spec *out,
                                    void *fill_out, zarr_error *err)
{
    struct zr_packbits p = {0};
    zarr_status st = ZARR_OK;
    uint64_t bits = 0;

    ZR_UNUSED(fill_out);
    ZR_TRY(zr_spec_packbits(spec, in->dtype, &p, err));
    out->exact = in->exact;
    out->item_bytes_hint = 1;
    if (!zr_mul(in->n_bytes / p.bytes, p.kept, &bits))
        st = zr_fail(err, ZARR_ERR_LIMIT,
                     "packbits: a chunk of %" PRIu64 " bytes is too large", in->n_bytes);
    out->n_bytes = bits / 8 + (bits % 8 != 0) + (p.padding_first || p.padding_last);
out:
    return st;
}

static int packbits_lossy(const zarr_codec_spec *spec, const zarr_chunk_spec *in)
{
    struct zr_packbits p = {0};

    return zr_spec_packbits(spec, in->dtype, &p, NULL) != ZARR_OK || p.kept < p.bits;
}

static int packbits_packs(const zarr_codec_spec *spec, const zarr_chunk_spec *in)
{
    struct zr_packbits p = {0};

    return zr_spec_packbits(spec, in->dtype, &p, NULL) == ZARR_OK && p.components == 1 &&
           p.bytes == 1 && p.kept == p.bits && !p.padding_first && !p.padding_last;
}

static const char *const packbits_aliases[] = {
    "https://codec.zarrs.dev/array_to_bytes/packbits", NULL};
const zarr_codec_spec_vtable zr_spec_packbits_bits = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_V3,
    .name = "packbits",
    .aliases = packbits_aliases,
    .kind = ZARR_CODEC_ARRAY_BYTES,
    .canonical = packbits_canonical,
    .resolve = packbits_resolve,
    .lossy = packbits_lossy,
    .packs = packbits_packs,
};

/* ---- numcodecs.packbits, between arrays ---------------------------------------- */

static zarr_status packbits_array_resolve(const zarr_codec_spec *spec,
                                          const zarr_chunk_spec *in, zarr_chunk_spec *out,
                                          void *fill_out, zarr_error *err)
{
    ZR_UNUSED(fill_out); /* packed bytes have no fill value */
    ZR_CHECK(zr_spec_needs_length(spec, in, err));
    if (zarr_dtype_kind(in->dtype) != ZARR_KIND_BOOL)
        return zr_spec_refuse_dtype(spec, in->dtype, "bool", err);
    ZR_CHECK(zarr_codec_spec_dtype(&out->dtype, spec, "uint8", err));
    out->ndim = 1;
    out->shape[0] = 1 + in->n_bytes / 8 + (in->n_bytes % 8 != 0);
    return ZARR_OK;
}

const zarr_codec_spec_vtable zr_spec_packbits_array = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_V3,
    .name = "numcodecs.packbits",
    .kind = ZARR_CODEC_ARRAY_ARRAY,
    .canonical = zr_conf_none,
    .resolve = packbits_array_resolve,
};

/* ---- numcodecs' filter over bytes ------------------------------------ */

static zarr_status packbits_v2_resolve(const zarr_codec_spec *spec,
                                       const zarr_chunk_spec *in, zarr_chunk_spec *out,
                                       void *fill_out, zarr_error *err)
{
    ZR_UNUSED(spec, fill_out, err);
    out->n_bytes = 1 + in->n_bytes / 8 + (in->n_bytes % 8 != 0);
    out->item_bytes_hint = 1;
    return ZARR_OK;
}

static zarr_status packbits_v2_elements(const zarr_codec_spec *spec, const char *in,
                                        zarr_codec_elements *out, zarr_error *err)
{
    const struct zr_number byte = zr_number_make(ZARR_KIND_UINT, 1);
    struct zr_number type;

    ZR_UNUSED(spec);
    if (in && (!zr_numpy_parse(in, &type) || type.kind != ZARR_KIND_BOOL))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "packbits: its input must be bools, the only type that it keeps");
    zr_numpy_print(&byte, out->gives);
    return ZARR_OK;
}

const zarr_codec_spec_vtable zr_spec_packbits_v2 = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_V2,
    .name = "packbits",
    .kind = ZARR_CODEC_BYTES_BYTES,
    .canonical = zr_conf_none,
    .resolve = packbits_v2_resolve,
    .elements = packbits_v2_elements,
};
