/*
 * codecs/nolib/nolib_spec.c - codecs of other Zarr libraries for which no C library
 * exists: pcodec (numcodecs, zarrs) and gdeflate (zarrs). Their metadata is read, checked
 * and written, so that arrays can be listed and copied unchanged. To decode or encode
 * data, a plug-in must register an implementation (see zr_codecs_absent). Thread class:
 * plain functions.
 */
#include "codecs/codecs_int.h"

/* ---- pcodec ---------------------------------------------------------------------- */

static zarr_status pcodec_canonical(const zarr_codec_spec *raw, int format, char *text,
                                    size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const known[] = {"level",
                                        "mode_spec",
                                        "delta_spec",
                                        "paging_spec",
                                        "delta_encoding_order",
                                        "equal_pages_up_to",
                                        NULL};
    static const char *const modes[] = {"auto", "classic", NULL};
    static const char *const deltas[] = {"auto", "none", "try_consecutive",
                                         "try_lookback", NULL};
    static const char *const pagings[] = {"equal_pages_up_to", NULL};
    struct zr_conf_text t;
    int64_t level = 8, order = -1, pages = 262144;
    int mode = 0, delta = 0, paging = 0;

    ZR_CHECK(zr_conf_check_members(raw, format, known, err));
    ZR_CHECK(zr_conf_encoder_i64(raw, "level", 0, 12, &level, err));
    ZR_CHECK(zr_conf_encoder_word(raw, "mode_spec", modes, &mode, err));
    ZR_CHECK(zr_conf_encoder_word(raw, "delta_spec", deltas, &delta, err));
    ZR_CHECK(zr_conf_encoder_word(raw, "paging_spec", pagings, &paging, err));
    ZR_CHECK(zr_conf_encoder_i64(raw, "delta_encoding_order", 0, 7, &order, err));
    ZR_CHECK(zr_conf_encoder_i64(raw, "equal_pages_up_to", 1, INT64_MAX, &pages, err));
    zr_conf_open(&t, text, cap);
    zr_conf_put_i64(&t, "level", level);
    zr_conf_put_word(&t, "mode_spec", modes[mode]);
    zr_conf_put_word(&t, "delta_spec", deltas[delta]);
    zr_conf_put_word(&t, "paging_spec", pagings[paging]);
    if (order >= 0)
        zr_conf_put_i64(&t, "delta_encoding_order", order);
    else
        zr_conf_put_raw(&t, ",\"delta_encoding_order\":null");
    zr_conf_put_i64(&t, "equal_pages_up_to", pages);
    zr_conf_close(&t, text_bytes);
    return ZARR_OK;
}

static zarr_status pcodec_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                  zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    const uint32_t kind = zarr_dtype_kind(in->dtype);
    const uint64_t bits = zarr_dtype_item_bits(in->dtype);

    ZR_UNUSED(fill_out);
    if ((kind != ZARR_KIND_INT && kind != ZARR_KIND_UINT && kind != ZARR_KIND_FLOAT) ||
        (bits != 16 && bits != 32 && bits != 64))
        return zr_spec_refuse_dtype(spec, in->dtype, "numbers of 16, 32 or 64 bits", err);
    return zr_spec_compressed(spec, in, out, in->n_bytes / 8 + 65536, err);
}

static const char *const pcodec_aliases[] = {
    "https://codec.zarrs.dev/array_to_bytes/pcodec", NULL};
const zarr_codec_spec_vtable zr_spec_pcodec = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_NUMCODECS,
    .name = "pcodec",
    .aliases = pcodec_aliases,
    .kind = ZARR_CODEC_ARRAY_BYTES,
    .canonical = pcodec_canonical,
    .resolve = pcodec_resolve,
};

/* ---- zarrs.gdeflate ---------------------------------------------------------------- */

static zarr_status gdeflate_canonical(const zarr_codec_spec *raw, int format, char *text,
                                      size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const known[] = {"level", NULL};
    struct zr_conf_text t;
    int64_t level = 6;

    ZR_CHECK(zr_conf_check_members(raw, format, known, err));
    ZR_CHECK(zr_conf_encoder_i64(raw, "level", 0, 12, &level, err));
    zr_conf_open(&t, text, cap);
    zr_conf_put_i64(&t, "level", level);
    zr_conf_close(&t, text_bytes);
    return ZARR_OK;
}

static const char *const gdeflate_aliases[] = {
    "https://codec.zarrs.dev/bytes_to_bytes/gdeflate", NULL};
const zarr_codec_spec_vtable zr_spec_gdeflate = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_V3 | ZARR_CODEC_SPEC_EXPERIMENTAL,
    .name = "zarrs.gdeflate",
    .aliases = gdeflate_aliases,
    .kind = ZARR_CODEC_BYTES_BYTES,
    .canonical = gdeflate_canonical,
};
