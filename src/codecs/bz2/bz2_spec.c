/*
 * codecs/bz2/bz2_spec.c - bz2. The bound of the output is the library's formula, written
 * out, because specifications do not include the library. A test compares it with the
 * library's function.
 * Thread class: plain functions.
 */
#include "codecs/codecs_int.h"

static zarr_status bz2_canonical(const zarr_codec_spec *raw, int format, char *text,
                                 size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const known[] = {"level", NULL};
    struct zr_conf_text t;
    int64_t level = 1;

    ZR_CHECK(zr_conf_check_members(raw, format, known, err));
    ZR_CHECK(zr_conf_encoder_i64(raw, "level", 1, 9, &level, err));
    zr_conf_open(&t, text, cap);
    zr_conf_put_i64(&t, "level", level);
    zr_conf_close(&t, text_bytes);
    return ZARR_OK;
}

/* The bound in bzip2's manual: one percent more than the input, plus 600 bytes. */
static zarr_status bz2_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                               zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    ZR_UNUSED(fill_out);
    return zr_spec_compressed(spec, in, out, in->n_bytes / 100 + 1 + 600, err);
}

static const char *const bz2_aliases[] = {"https://codec.zarrs.dev/bytes_to_bytes/bz2",
                                          NULL};
const zarr_codec_spec_vtable zr_spec_bz2 = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_NUMCODECS,
    .name = "bz2",
    .aliases = bz2_aliases,
    .kind = ZARR_CODEC_BYTES_BYTES,
    .canonical = bz2_canonical,
    .resolve = bz2_resolve,
};
