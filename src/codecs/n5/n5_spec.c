/*
 * codecs/n5/n5_spec.c - `n5_default`: blocks of N5 in its default mode. A block has a
 * big-endian header with its own shape, then the elements. They are big-endian, with the
 * first dimension fastest, and at most one compressor encodes them. The nested chain says
 * this in codecs of Zarr: a transpose that reverses all dimensions, `bytes`, and at most
 * one bytes->bytes codec. No other codec is permitted. Blocks at the array's border may
 * be cut or padded, so metadata does not bound the encoded size. Thread class: plain
 * functions.
 */
#include "codecs/codecs_int.h"

enum {
    N5_NDIM_MAX = 65535
};

static zarr_status n5_check_chain(const zarr_codec_spec *raw, zarr_error *err)
{
    const int64_t n = zarr_codec_spec_chain_codecs(raw, "codecs", NULL);
    const char *first = zr_spec_chain_name(raw, "codecs", 0);
    const char *second = zr_spec_chain_name(raw, "codecs", 1);

    if (n < 0)
        return zr_fail(err, ZARR_ERR_INVALID, "n5_default: codecs are missing");
    if (n < 2 || n > 3 || !zr_streq(first, "transpose") || !zr_streq(second, "bytes"))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "n5_default: codecs must be transpose, bytes and at most one "
                       "bytes->bytes codec");
    return ZARR_OK;
}

static zarr_status n5_canonical(const zarr_codec_spec *raw, int format, char *text,
                                size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const known[] = {"codecs", NULL};
    struct zr_conf_text t;

    ZR_CHECK(zr_conf_check_members(raw, format, known, err));
    ZR_CHECK(n5_check_chain(raw, err));
    zr_conf_open(&t, text, cap);
    zr_conf_put_raw(&t, "\"codecs\":");
    zr_conf_put_raw(&t, zarr_codec_spec_chain_json(raw, "codecs"));
    zr_conf_close(&t, text_bytes);
    return ZARR_OK;
}

/* The data types of N5: integers of 8 to 64 bits, floats of 32 and 64 bits. */
static bool n5_takes(const zarr_dtype *dtype)
{
    struct zr_number n;

    if (!zr_number_from_dtype(dtype, &n) || n.parts != 1 || n.bits != 8 * n.bytes)
        return false;
    return n.kind != ZARR_KIND_FLOAT ||
           (zr_number_is_ieee(&n) && (n.bits == 32 || n.bits == 64));
}

static zarr_status n5_check_array(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                  zarr_error *err)
{
    struct zr_chain_layout layout;

    if (!n5_takes(in->dtype))
        return zr_spec_refuse_dtype(
            spec, in->dtype, "N5's: integers of 8 to 64 bits, float32 and float64", err);
    ZR_CHECK(zr_spec_chain_layout(spec, "codecs", in->ndim, &layout, err));
    for (int32_t i = 0; i < in->ndim; i++) {
        if (layout.order[i] != in->ndim - 1 - i)
            return zr_fail(err, ZARR_ERR_INVALID,
                           "n5_default: the transpose must reverse all dimensions");
        if (in->shape[i] > UINT32_MAX)
            return zr_fail(err, ZARR_ERR_INVALID,
                           "n5_default: a chunk's edge of %" PRIu64
                           ", at most 2^32 - 1 is possible",
                           in->shape[i]);
    }
    if (zr_dtype_has_order(in->dtype) && layout.byte_order != ZARR_ORDER_BIG)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "n5_default: bytes: endian must be \"big\"");
    return ZARR_OK;
}

static zarr_status n5_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                              zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    zarr_chunk_spec inner = {0};

    ZR_UNUSED(fill_out);
    _Static_assert(ZARR_MAX_RANK <= N5_NDIM_MAX,
                   "the header counts dimensions in 16 bits");
    ZR_CHECK(zr_spec_needs_length(spec, in, err));
    ZR_CHECK(n5_check_array(spec, in, err));
    ZR_CHECK(zarr_codec_spec_chain_resolve(spec, "codecs", in, &inner, err));
    out->n_bytes = UINT64_MAX;
    out->exact = 0;
    out->item_bytes_hint = 1;
    return ZARR_OK;
}

static zarr_status n5_chain_input(const zarr_codec_spec *spec, const char *member,
                                  const zarr_chunk_spec *in, zarr_chunk_spec *out,
                                  zarr_error *err)
{
    ZR_UNUSED(spec, member, err);
    *out = *in;
    return ZARR_OK;
}

static const char *const n5_chains[] = {"codecs", NULL};
const zarr_codec_spec_vtable zr_spec_n5_default = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_V3,
    .name = "n5_default",
    .kind = ZARR_CODEC_ARRAY_BYTES,
    .canonical = n5_canonical,
    .resolve = n5_resolve,
    .chains = n5_chains,
    .chain_input = n5_chain_input,
};
