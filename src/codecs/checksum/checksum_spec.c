/*
 * codecs/checksum/checksum_spec.c - codecs that add a checksum of four bytes: v3's
 * crc32c, and numcodecs' crc32, adler32, fletcher32 and jenkins_lookup3. All have exact
 * sizes. Each codec has a default place for the four bytes. "location" may name the other
 * one. The default is not written. Thread class: plain functions.
 */
#include "codecs/checksum/checksum.h"

#include <stdio.h>

static zarr_status checksum_location(const zarr_codec_spec *raw, int format, int habit,
                                     char *text, size_t cap, size_t *text_bytes,
                                     zarr_error *err)
{
    static const char *const none[] = {NULL}, *const known[] = {"location", NULL};
    static const char *const words[] = {"end", "start", NULL};
    struct zr_conf_text t;
    int location = habit;

    ZR_CHECK(zr_conf_check_members(raw, format, format == 3 ? none : known, err));
    ZR_CHECK(zr_conf_word(raw, "location", words, &location, err));
    zr_conf_open(&t, text, cap);
    if (location != habit)
        zr_conf_put_word(&t, "location", words[location]);
    zr_conf_close(&t, text_bytes);
    return ZARR_OK;
}

static zarr_status at_end_canonical(const zarr_codec_spec *raw, int format, char *text,
                                    size_t cap, size_t *text_bytes, zarr_error *err)
{
    return checksum_location(raw, format, 0, text, cap, text_bytes, err);
}

static zarr_status at_start_canonical(const zarr_codec_spec *raw, int format, char *text,
                                      size_t cap, size_t *text_bytes, zarr_error *err)
{
    return checksum_location(raw, format, 1, text, cap, text_bytes, err);
}

/* `prefix` is a list of numbers, one for each byte. numcodecs takes a prefix from
 * programs only and cannot write it to metadata. */
static zarr_status jenkins_prefix(const zarr_codec_spec *raw, struct zr_conf_text *t,
                                  zarr_error *err)
{
    int64_t prefix[ZR_JENKINS_PREFIX_MAX] = {0};
    char digits[8];
    int64_t n = 0;

    if (!zr_conf_has(raw, "prefix"))
        return ZARR_OK;
    n = zarr_codec_spec_i64s(raw, "prefix", prefix, ZR_JENKINS_PREFIX_MAX);
    if (n < 0 || n > ZR_JENKINS_PREFIX_MAX)
        return zr_conf_refuse(
            raw, "prefix",
            "null or a list of up to " ZR_DIGITS(ZR_JENKINS_PREFIX_MAX) " bytes", err);
    for (int64_t i = 0; i < n; i++)
        if (prefix[i] < 0 || prefix[i] > 255)
            return zr_fail(err, ZARR_ERR_INVALID,
                           "jenkins_lookup3: prefix[%" PRId64 "] is %" PRId64
                           ", must be an integer from 0 to 255",
                           i, prefix[i]);
    zr_conf_put_raw(t, ",\"prefix\":[");
    for (int64_t i = 0; i < n; i++) {
        (void)snprintf(digits, sizeof digits, "%s%d", i ? "," : "", (int)prefix[i]);
        zr_conf_put_raw(t, digits);
    }
    zr_conf_put_raw(t, "]");
    return ZARR_OK;
}

static zarr_status jenkins_canonical(const zarr_codec_spec *raw, int format, char *text,
                                     size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const known[] = {"initval", "prefix", NULL};
    struct zr_conf_text t;
    int64_t initval = 0;

    ZR_CHECK(zr_conf_check_members(raw, format, known, err));
    ZR_CHECK(zr_conf_i64(raw, "initval", 0, UINT32_MAX, &initval, err));
    zr_conf_open(&t, text, cap);
    zr_conf_put_i64(&t, "initval", initval);
    ZR_CHECK(jenkins_prefix(raw, &t, err));
    zr_conf_close(&t, text_bytes);
    return ZARR_OK;
}

static zarr_status checksum_resolve(const zarr_codec_spec *spec,
                                    const zarr_chunk_spec *in, zarr_chunk_spec *out,
                                    void *fill_out, zarr_error *err)
{
    ZR_UNUSED(fill_out);
    out->item_bytes_hint = 1;
    return zr_spec_set_bound(out, zarr_codec_spec_name(spec), in->n_bytes, 4, err);
}

/* v3's crc32c has no members. With a location it must be numcodecs' codec. */
static zarr_status crc32c_spell(const zarr_codec_spec *spec, zarr_codec_spelling *how,
                                char *text, size_t cap, size_t *text_bytes,
                                zarr_error *err)
{
    ZR_UNUSED(text, cap, err);
    *text_bytes = 0;
    how->prefix = zr_conf_has(spec, "location");
    return ZARR_OK;
}

#define CHECKSUM_VTABLE(id, spelled, prefixed, canon, spelling)                          \
    {                                                                                    \
        .struct_size = sizeof(zarr_codec_spec_vtable), .name = id,                       \
        .flags = ZARR_CODEC_SPEC_CHECKSUM | (prefixed), .aliases = (spelled),            \
        .kind = ZARR_CODEC_BYTES_BYTES, .canonical = (canon),                            \
        .resolve = checksum_resolve, .spell = (spelling),                                \
    }
static const char *const crc32c_aliases[] = {"numcodecs.crc32c", NULL};
static const char *const fletcher32_aliases[] = {
    "https://codec.zarrs.dev/bytes_to_bytes/fletcher32", NULL};
const zarr_codec_spec_vtable zr_spec_crc32c =
    CHECKSUM_VTABLE("crc32c", crc32c_aliases, 0, at_end_canonical, crc32c_spell);
const zarr_codec_spec_vtable zr_spec_crc32 =
    CHECKSUM_VTABLE("crc32", NULL, ZARR_CODEC_SPEC_NUMCODECS, at_start_canonical, NULL);
const zarr_codec_spec_vtable zr_spec_adler32 =
    CHECKSUM_VTABLE("adler32", NULL, ZARR_CODEC_SPEC_NUMCODECS, at_start_canonical, NULL);
const zarr_codec_spec_vtable zr_spec_fletcher32 = CHECKSUM_VTABLE(
    "fletcher32", fletcher32_aliases, ZARR_CODEC_SPEC_NUMCODECS, zr_conf_none, NULL);
const zarr_codec_spec_vtable zr_spec_jenkins_lookup3 = CHECKSUM_VTABLE(
    "jenkins_lookup3", NULL, ZARR_CODEC_SPEC_NUMCODECS, jenkins_canonical, NULL);
