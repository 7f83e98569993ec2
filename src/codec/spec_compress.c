/*
 * codec/spec_compress.c - the compressors gzip, zlib, zstd, lz4 and bz2: their
 * configuration and the longest output that a writer can get. The formulas are
 * the libraries' own, written out, because this room knows no library; a test of
 * room impl holds them against the real functions.
 * Levels: v3 requires them, numcodecs has defaults; a missing level reads as the
 * default of the writer that leaves it out.
 * Thread class: plain functions.
 */
#include "codec/codec_int.h"

zarr_status zr_spec_grow(zarr_chunk_spec *out, const char *codec, uint64_t n_bytes,
                         uint64_t extra, zarr_error *err)
{
    if (!zr_add_u64(n_bytes, extra, &out->n_bytes))
        return zr_fail(err, ZARR_ERR_LIMIT,
                       "%s: a chunk of %" PRIu64 " bytes is too large", codec, n_bytes);
    return ZARR_OK;
}

/* ---- gzip and zlib ----------------------------------------------------------- */

static zarr_status level_canonical(const zarr_codec_spec *raw, int format, int64_t lowest,
                                   int64_t level, struct zr_conf_text *t, zarr_error *err)
{
    static const char *const known[] = {"level", NULL};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_conf_known(raw, format, known, err));
    ZR_TRY(zr_conf_i64(raw, "level", lowest, 9, &level, err));
    zr_conf_put_i64(t, "level", level);
out:
    return st;
}

static zarr_status gzip_canonical(const zarr_codec_spec *raw, int format, char *text,
                                  size_t cap, size_t *text_bytes, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_conf_text t;

    zr_conf_open(&t, text, cap);
    ZR_TRY(
        level_canonical(raw, format, format == 3 ? 0 : -1, format == 3 ? 5 : 1, &t, err));
    zr_conf_close(&t, text_bytes);
out:
    return st;
}

static zarr_status zlib_canonical(const zarr_codec_spec *raw, int format, char *text,
                                  size_t cap, size_t *text_bytes, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_conf_text t;

    zr_conf_open(&t, text, cap);
    ZR_TRY(level_canonical(raw, format, -1, 1, &t, err));
    zr_conf_close(&t, text_bytes);
out:
    return st;
}

/* Deflate at worst stores: 5 bytes for each block, and libdeflate's blocks have 5000
 * bytes at least, but for the last (its bound says so), and it wants 8 more bytes of room
 * (OUTPUT_END_PADDING). gzip adds a header of 10 and a trailer of 8 bytes, zlib 2 and 4:
 * 18 does for both. */
static zarr_status deflate_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                   zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    ZR_UNUSED(fill_out);
    out->exact = 0;
    out->item_bytes_hint = 1;
    return zr_spec_grow(out, spec->vt->name, in->n_bytes,
                        5 * (in->n_bytes / 5000 + 1) + 9 + 18, err);
}

/* v2 may leave the level to zlib by -1; v3 has 0 to 9 (Z_DEFAULT_COMPRESSION is 6). */
static zarr_status gzip_spell(const zarr_codec_spec *spec, zarr_codec_spelling *how,
                              char *text, size_t cap, size_t *text_bytes, zarr_error *err)
{
    struct zr_conf_text t;
    int64_t level = 0;

    ZR_UNUSED(err);
    *text_bytes = 0;
    if (how->format == 2 || zarr_codec_spec_i64(spec, "level", &level) != 0 || level >= 0)
        return ZARR_OK;
    zr_conf_open(&t, text, cap);
    zr_conf_put_i64(&t, "level", 6);
    zr_conf_close(&t, text_bytes);
    return ZARR_OK;
}

static const char *const gzip_aliases[] = {"numcodecs.gzip", NULL};
const zarr_codec_spec_vtable zr_spec_gzip = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .name = "gzip",
    .aliases = gzip_aliases,
    .kind = ZARR_CODEC_BYTES_BYTES,
    .canonical = gzip_canonical,
    .resolve = deflate_resolve,
    .spell = gzip_spell,
};
const zarr_codec_spec_vtable zr_spec_zlib = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_NUMCODECS,
    .name = "zlib",
    .kind = ZARR_CODEC_BYTES_BYTES,
    .canonical = zlib_canonical,
    .resolve = deflate_resolve,
};

/* ---- zstd ------------------------------------------------------------------------ */

static zarr_status zstd_canonical(const zarr_codec_spec *raw, int format, char *text,
                                  size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const known[] = {"level", "checksum", NULL};
    zarr_status st = ZARR_OK;
    struct zr_conf_text t;
    int64_t level = 0;
    int checksum = 0;

    ZR_TRY(zr_conf_known(raw, format, known, err));
    ZR_TRY(zr_conf_i64(raw, "level", -131072, 22, &level, err));
    ZR_TRY(zr_conf_bool(raw, "checksum", &checksum, err));
    zr_conf_open(&t, text, cap);
    zr_conf_put_i64(&t, "level", level);
    zr_conf_put_bool(&t, "checksum", checksum);
    zr_conf_close(&t, text_bytes);
out:
    return st;
}

/* ZSTD_COMPRESSBOUND(): an eighth of a thousandth-part for block headers, and more for
 * small input. */
static zarr_status zstd_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    const uint64_t n = in->n_bytes, small = 128 << 10;

    ZR_UNUSED(fill_out);
    out->exact = 0;
    out->item_bytes_hint = 1;
    return zr_spec_grow(out, spec->vt->name, n,
                        (n >> 8) + (n < small ? (small - n) >> 11 : 0), err);
}

/* v2 names the checksum only where there is one: numcodecs before 0.13 knows no such
 * member. */
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

/* ---- lz4 --------------------------------------------------------------------------- */

static zarr_status lz4_canonical(const zarr_codec_spec *raw, int format, char *text,
                                 size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const known[] = {"acceleration", NULL};
    zarr_status st = ZARR_OK;
    struct zr_conf_text t;
    int64_t acceleration = 1;

    ZR_TRY(zr_conf_known(raw, format, known, err));
    ZR_TRY(zr_conf_i64(raw, "acceleration", INT32_MIN, INT32_MAX, &acceleration, err));
    zr_conf_open(&t, text, cap);
    zr_conf_put_i64(&t, "acceleration", acceleration);
    zr_conf_close(&t, text_bytes);
out:
    return st;
}

/* LZ4_COMPRESSBOUND(): a length byte for each 255 literals, and 16; before it stands the
 * length as four bytes. LZ4_MAX_INPUT_SIZE is 0x7E000000. */
static zarr_status lz4_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                               zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    ZR_UNUSED(fill_out);
    if (in->exact && in->n_bytes > 0x7E000000) /* a bound is not reached */
        return zr_fail(err, ZARR_ERR_INVALID,
                       "lz4: chunks have at most 2113929216 bytes, not %" PRIu64,
                       in->n_bytes);
    out->exact = 0;
    out->item_bytes_hint = 1;
    return zr_spec_grow(out, spec->vt->name, in->n_bytes, in->n_bytes / 255 + 16 + 4,
                        err);
}

const zarr_codec_spec_vtable zr_spec_lz4 = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_NUMCODECS,
    .name = "lz4",
    .kind = ZARR_CODEC_BYTES_BYTES,
    .canonical = lz4_canonical,
    .resolve = lz4_resolve,
};

/* ---- bz2 --------------------------------------------------------------------------- */

static zarr_status bz2_canonical(const zarr_codec_spec *raw, int format, char *text,
                                 size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const known[] = {"level", NULL};
    zarr_status st = ZARR_OK;
    struct zr_conf_text t;
    int64_t level = 1;

    ZR_TRY(zr_conf_known(raw, format, known, err));
    ZR_TRY(zr_conf_i64(raw, "level", 1, 9, &level, err));
    zr_conf_open(&t, text, cap);
    zr_conf_put_i64(&t, "level", level);
    zr_conf_close(&t, text_bytes);
out:
    return st;
}

/* What its manual promises: a hundredth more, and 600 bytes. */
static zarr_status bz2_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                               zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    ZR_UNUSED(fill_out);
    out->exact = 0;
    out->item_bytes_hint = 1;
    return zr_spec_grow(out, spec->vt->name, in->n_bytes, in->n_bytes / 100 + 1 + 600,
                        err);
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
