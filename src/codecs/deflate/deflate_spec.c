/*
 * codecs/deflate/deflate_spec.c - gzip and zlib. v3 requires a level. numcodecs has
 * defaults: a missing level is the default of the writer that omits it. The bound of the
 * output is the library's formula, written out, because specifications do not include the
 * library. A test compares it with the library's function. Thread class: plain functions.
 */
#include "codecs/codecs_int.h"

/* numcodecs may leave the level to zlib by -1, which is 6 (Z_DEFAULT_COMPRESSION). v3 and
 * TensorStore have 0 to 9. */
static zarr_status level_canonical(const zarr_codec_spec *raw, int format, int64_t lowest,
                                   int64_t level, struct zr_conf_text *t, zarr_error *err)
{
    static const char *const known[] = {"level", NULL};

    ZR_CHECK(zr_conf_check_members(raw, format, known, err));
    ZR_CHECK(zr_conf_encoder_i64(raw, "level", lowest, 9, &level, err));
    zr_conf_put_i64(t, "level", level < 0 ? 6 : level);
    return ZARR_OK;
}

static zarr_status gzip_canonical(const zarr_codec_spec *raw, int format, char *text,
                                  size_t cap, size_t *text_bytes, zarr_error *err)
{
    struct zr_conf_text t;

    zr_conf_open(&t, text, cap);
    ZR_CHECK(
        level_canonical(raw, format, format == 3 ? 0 : -1, format == 3 ? 5 : 1, &t, err));
    zr_conf_close(&t, text_bytes);
    return ZARR_OK;
}

static zarr_status zlib_canonical(const zarr_codec_spec *raw, int format, char *text,
                                  size_t cap, size_t *text_bytes, zarr_error *err)
{
    struct zr_conf_text t;

    zr_conf_open(&t, text, cap);
    ZR_CHECK(level_canonical(raw, format, -1, 1, &t, err));
    zr_conf_close(&t, text_bytes);
    return ZARR_OK;
}

/* In the worst case deflate stores all blocks, at 5 bytes each. libdeflate's blocks,
 * except the last, have at least 5000 bytes (its bound says so), and it needs 8 more
 * bytes of room (OUTPUT_END_PADDING). gzip adds a header of 10 and a trailer of 8 bytes,
 * zlib 2 and 4. 18 bytes are enough for both. */
static zarr_status deflate_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                   zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    ZR_UNUSED(fill_out);
    return zr_spec_compressed(spec, in, out, 5 * (in->n_bytes / 5000 + 1) + 9 + 18, err);
}

static const char *const gzip_aliases[] = {"numcodecs.gzip", NULL};
const zarr_codec_spec_vtable zr_spec_gzip = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .name = "gzip",
    .aliases = gzip_aliases,
    .kind = ZARR_CODEC_BYTES_BYTES,
    .canonical = gzip_canonical,
    .resolve = deflate_resolve,
};
const zarr_codec_spec_vtable zr_spec_zlib = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_NUMCODECS,
    .name = "zlib",
    .kind = ZARR_CODEC_BYTES_BYTES,
    .canonical = zlib_canonical,
    .resolve = deflate_resolve,
};
