/*
 * codecs/zstd/zstd_spec.c - zstd. A missing level is numcodecs' default. The bound of the
 * output is the library's formula, written out, because specifications do not include the
 * library. A test compares it with the library's function.
 * Thread class: plain functions.
 */
#include "codecs/codecs_int.h"

static zarr_status zstd_canonical(const zarr_codec_spec *raw, int format, char *text,
                                  size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const known[] = {"level", "checksum", NULL};
    struct zr_conf_text t;
    int64_t level = 0;
    int checksum = 0;

    ZR_CHECK(zr_conf_check_members(raw, format, known, err));
    ZR_CHECK(zr_conf_encoder_i64(raw, "level", -131072, 22, &level, err));
    ZR_CHECK(zr_conf_encoder_bool(raw, "checksum", &checksum, err));
    zr_conf_open(&t, text, cap);
    zr_conf_put_i64(&t, "level", level);
    zr_conf_put_bool(&t, "checksum", checksum);
    zr_conf_close(&t, text_bytes);
    return ZARR_OK;
}

/* ZSTD_COMPRESSBOUND() adds n / 256 bytes for block headers, and more for small input. */
static zarr_status zstd_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    const uint64_t n = in->n_bytes, small = 128 << 10;

    ZR_UNUSED(fill_out);
    return zr_spec_compressed(spec, in, out,
                              (n >> 8) + (n < small ? (small - n) >> 11 : 0), err);
}

/* v2 omits a false checksum, because numcodecs before 0.13 does not know the member. */
static zarr_status zstd_spell(const zarr_codec_spec *spec, zarr_codec_spelling *how,
                              char *text, size_t cap, size_t *text_bytes, zarr_error *err)
{
    struct zr_conf_text t;
    int64_t level = 0;
    int checksum = 0;

    ZR_UNUSED(err);
    *text_bytes = 0;
    (void)zarr_codec_spec_bool(spec, "checksum", &checksum);
    if (how->format == 3 || checksum)
        return ZARR_OK;
    (void)zarr_codec_spec_i64(spec, "level", &level);
    zr_conf_open(&t, text, cap);
    zr_conf_put_i64(&t, "level", level);
    zr_conf_close(&t, text_bytes);
    return ZARR_OK;
}

static const char *const zstd_aliases[] = {"numcodecs.zstd", NULL};
const zarr_codec_spec_vtable zr_spec_zstd = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .name = "zstd",
    .aliases = zstd_aliases,
    .kind = ZARR_CODEC_BYTES_BYTES,
    .canonical = zstd_canonical,
    .resolve = zstd_resolve,
    .spell = zstd_spell,
};
