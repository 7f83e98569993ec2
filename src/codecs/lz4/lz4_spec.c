/*
 * codecs/lz4/lz4_spec.c - numcodecs' lz4. The bound of the output is the library's
 * formula, written out, because specifications do not include the library. A test
 * compares it with the library's function. Thread class: plain functions.
 */
#include "codecs/codecs_int.h"

static zarr_status lz4_canonical(const zarr_codec_spec *raw, int format, char *text,
                                 size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const known[] = {"acceleration", NULL};
    struct zr_conf_text t;
    int64_t acceleration = 1;

    ZR_CHECK(zr_conf_check_members(raw, format, known, err));
    ZR_CHECK(zr_conf_encoder_i64(raw, "acceleration", INT32_MIN, INT32_MAX, &acceleration,
                                 err));
    zr_conf_open(&t, text, cap);
    zr_conf_put_i64(&t, "acceleration", acceleration);
    zr_conf_close(&t, text_bytes);
    return ZARR_OK;
}

/* LZ4_COMPRESSBOUND() adds one length byte for each 255 literals, and 16 bytes. The
 * decoded length before the block has four bytes. LZ4_MAX_INPUT_SIZE is 0x7E000000. */
static zarr_status lz4_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                               zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    ZR_UNUSED(fill_out);
    if (in->exact && in->n_bytes > 0x7E000000) /* a bound need not be reached */
        return zr_fail(err, ZARR_ERR_INVALID,
                       "lz4: chunks have at most 2113929216 bytes, not %" PRIu64,
                       in->n_bytes);
    return zr_spec_compressed(spec, in, out, in->n_bytes / 255 + 16 + 4, err);
}

const zarr_codec_spec_vtable zr_spec_lz4 = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_NUMCODECS,
    .name = "lz4",
    .kind = ZARR_CODEC_BYTES_BYTES,
    .canonical = lz4_canonical,
    .resolve = lz4_resolve,
};
