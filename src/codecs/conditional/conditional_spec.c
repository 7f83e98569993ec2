/*
 * codecs/conditional/conditional_spec.c - `conditional`: bytes->bytes codecs that each
 * chunk applies or skips. Each chunk has a header of header_bits, lowest bit first, with
 * a bit for each codec. The bits without a codec are for codecs that a later writer adds.
 * Thread class: plain functions.
 */
#include "codecs/codecs_int.h"

enum {
    COND_BITS_MAX = 32768
};

static zarr_status cond_canonical(const zarr_codec_spec *raw, int format, char *text,
                                  size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const known[] = {"codecs", "header_bits", NULL};
    int array = 0;
    const int64_t n = zarr_codec_spec_chain_codecs(raw, "codecs", &array);
    int64_t bits = (n + 7) / 8 * 8;
    struct zr_conf_text t;

    ZR_CHECK(zr_conf_check_members(raw, format, known, err));
    if (n < 0)
        return zr_fail(err, ZARR_ERR_INVALID, "conditional: codecs are missing");
    if (array)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "conditional: codecs must be bytes->bytes codecs only");
    ZR_CHECK(zr_conf_i64(raw, "header_bits", 0, COND_BITS_MAX, &bits, err));
    if (bits % 8 || bits < n)
        ZR_CHECK(zr_conf_refuse(raw, "header_bits",
                                "a multiple of 8, and a bit for each of the codecs",
                                err));
    zr_conf_open(&t, text, cap);
    zr_conf_put_raw(&t, "\"codecs\":");
    zr_conf_put_raw(&t, zarr_codec_spec_chain_json(raw, "codecs"));
    zr_conf_put_raw(&t, ",");
    t.any = false;
    zr_conf_put_i64(&t, "header_bits", bits);
    zr_conf_close(&t, text_bytes);
    return ZARR_OK;
}

/* The bound covers other writers. They may apply all codecs, even if the chunk grows. */
static zarr_status cond_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    zarr_chunk_spec plain = {.struct_size = sizeof plain,
                             .n_bytes = in->n_bytes,
                             .item_bytes_hint = in->item_bytes_hint};
    zarr_chunk_spec all = {0};
    int64_t bits = 0;

    ZR_UNUSED(fill_out);
    (void)zarr_codec_spec_i64(spec, "header_bits", &bits);
    ZR_CHECK(zarr_codec_spec_chain_resolve(spec, "codecs", &plain, &all, err));
    out->exact = 0;
    out->item_bytes_hint = 1;
    out->n_bytes = UINT64_MAX;
    if (all.n_bytes != UINT64_MAX)
        return zr_spec_set_bound(out, "conditional", ZR_MAX(in->n_bytes, all.n_bytes),
                                 (uint64_t)bits / 8, err);
    return ZARR_OK;
}

static zarr_status cond_chain_input(const zarr_codec_spec *spec, const char *member,
                                    const zarr_chunk_spec *in, zarr_chunk_spec *out,
                                    zarr_error *err)
{
    ZR_UNUSED(spec, member, err);
    out->n_bytes = in->n_bytes;
    out->item_bytes_hint = in->item_bytes_hint;
    return ZARR_OK;
}

static const char *const cond_chains[] = {"codecs", NULL};
const zarr_codec_spec_vtable zr_spec_conditional = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_V3,
    .name = "conditional",
    .kind = ZARR_CODEC_BYTES_BYTES,
    .canonical = cond_canonical,
    .resolve = cond_resolve,
    .chains = cond_chains,
    .chain_input = cond_chain_input,
};
