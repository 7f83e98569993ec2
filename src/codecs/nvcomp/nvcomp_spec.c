/*
 * codecs/nvcomp/nvcomp_spec.c - `nvcomp_batch`, a compressor of v2 that KvikIO registered
 * until its version 25.08. A chunk is one stream of the member `algorithm`: a block of
 * LZ4, a frame of zstd, deflate without a header, a block of Snappy, or GDeflate. Before
 * a block of LZ4 comes the decoded length in four little-endian bytes, as in numcodecs'
 * lz4, unless `options` has "has_header": false.
 *
 * The canonical configuration has `has_header` beside `options`, so that implementations
 * need not look into `options`. Thread class: plain functions.
 */
#include "codecs/codecs_int.h"
#include "codecs/nvcomp/nvcomp.h"

const char *const zr_nvcomp_algorithms[] = {"lz4",    "zstd",     "deflate",
                                            "snappy", "gdeflate", NULL};

/* What KvikIO takes in `options`. */
static const char *const nvcomp_options[ZR_NVCOMP_COUNT][3] = {
    [ZR_NVCOMP_LZ4] = {"data_type", "has_header"},
    [ZR_NVCOMP_DEFLATE] = {"algo"},
    [ZR_NVCOMP_GDEFLATE] = {"algo"},
};

/* The name is in small letters; KvikIO takes capitals, too. */
static bool nvcomp_is(const char *text, const char *name)
{
    for (; *text && *name; text++, name++)
        if (*text != *name && (*text < 'A' || *text > 'Z' || *text - 'A' + 'a' != *name))
            return false;
    return *text == *name;
}

static zarr_status nvcomp_algorithm(const zarr_codec_spec *raw, int *out, zarr_error *err)
{
    const char *text = zarr_codec_spec_text(raw, "algorithm");

    if (!zr_conf_has(raw, "algorithm"))
        return zr_fail(err, ZARR_ERR_INVALID, "nvcomp_batch: algorithm is missing");
    for (*out = 0; *out < ZR_NVCOMP_COUNT; (*out)++)
        if (text && nvcomp_is(text, zr_nvcomp_algorithms[*out]))
            return ZARR_OK;
    return zr_conf_refuse(raw, "algorithm",
                          "\"lz4\", \"zstd\", \"deflate\", \"snappy\" or \"gdeflate\"",
                          err);
}

static bool nvcomp_knows(int algorithm, const char *option)
{
    for (size_t i = 0; nvcomp_options[algorithm][i]; i++)
        if (zr_streq(option, nvcomp_options[algorithm][i]))
            return true;
    return false;
}

/* An option that is not known may change the stream. */
static zarr_status nvcomp_read_options(const zarr_codec_spec *raw, int algorithm,
                                       bool *header, zarr_error *err)
{
    const struct zr_json *options = zr_conf_value(raw, "options");
    const struct zr_json *says = NULL;

    *header = algorithm == ZR_NVCOMP_LZ4;
    if (!zr_conf_has(raw, "options"))
        return ZARR_OK;
    if (!zr_json_is(options, ZR_JSON_OBJECT))
        return zr_conf_refuse(raw, "options", "an object", err);
    for (const struct zr_json *v = options->u.children.first; v; v = v->next)
        if (!nvcomp_knows(algorithm, v->key))
            return zr_conf_refuse(
                raw, "options", "an object with the options of KvikIO's algorithm", err);
    says = zr_json_get(options, "has_header");
    if (says && !zr_json_bool(says, header))
        return zr_conf_refuse(raw, "options", "an object whose has_header is a boolean",
                              err);
    return ZARR_OK;
}

static void nvcomp_put(struct zr_conf_text *t, const zarr_codec_spec *raw, int algorithm)
{
    zr_conf_put_word(t, "algorithm", zr_nvcomp_algorithms[algorithm]);
    if (zr_conf_has(raw, "options"))
        zr_conf_put_json(t, raw, "options");
    else
        zr_conf_put_raw(t, ",\"options\":{}");
}

static zarr_status nvcomp_canonical(const zarr_codec_spec *raw, int format, char *text,
                                    size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const known[] = {"algorithm", "options", "has_header", NULL};
    struct zr_conf_text t;
    int algorithm = 0, again = 0;
    bool header = false;

    ZR_CHECK(zr_conf_check_members(raw, format, known, err));
    ZR_CHECK(nvcomp_algorithm(raw, &algorithm, err));
    ZR_CHECK(nvcomp_read_options(raw, algorithm, &header, err));
    again = header; /* in a configuration that is canonical already */
    ZR_CHECK(zr_conf_bool(raw, "has_header", &again, err));
    if (again != header)
        ZR_CHECK(zr_conf_refuse(raw, "has_header", "in options", err));
    zr_conf_open(&t, text, cap);
    nvcomp_put(&t, raw, algorithm);
    zr_conf_put_bool(&t, "has_header", header);
    return zr_conf_end(&t, text_bytes, err);
}

/* As KvikIO writes it. */
static zarr_status nvcomp_spell(const zarr_codec_spec *spec, zarr_codec_spelling *how,
                                char *text, size_t cap, size_t *text_bytes,
                                zarr_error *err)
{
    struct zr_conf_text t;
    int algorithm = 0;

    *text_bytes = 0;
    if (how->format == 3) /* only shown */
        return ZARR_OK;
    ZR_CHECK(nvcomp_algorithm(spec, &algorithm, err));
    zr_conf_open(&t, text, cap);
    nvcomp_put(&t, spec, algorithm);
    return zr_conf_end(&t, text_bytes, err);
}

/* Snappy grows most, by a sixth and 32 bytes. GPUs may give more than the libraries of
 * CPUs: some 64 KiB are left for them. */
static zarr_status nvcomp_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                  zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    static const uint64_t most[ZR_NVCOMP_COUNT] = {/* lengths have 32 bits */
                                                   [ZR_NVCOMP_LZ4] = 0x7E000000,
                                                   [ZR_NVCOMP_SNAPPY] = UINT32_MAX};
    int k = 0;

    ZR_UNUSED(fill_out);
    if (nvcomp_algorithm(spec, &k, err) != ZARR_OK)
        return ZARR_ERR_INVALID;
    if (most[k] && in->exact && in->n_bytes > most[k]) /* a bound need not be reached */
        return zr_fail(err, ZARR_ERR_INVALID,
                       "nvcomp_batch: chunks of %s have at most %" PRIu64
                       " bytes, not %" PRIu64,
                       zr_nvcomp_algorithms[k], most[k], in->n_bytes);
    return zr_spec_compressed(spec, in, out, in->n_bytes / 6 + (64 << 10), err);
}

const zarr_codec_spec_vtable zr_spec_nvcomp_batch = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_V2 | ZARR_CODEC_SPEC_EXPERIMENTAL,
    .name = "nvcomp_batch",
    .kind = ZARR_CODEC_BYTES_BYTES,
    .canonical = nvcomp_canonical,
    .resolve = nvcomp_resolve,
    .spell = nvcomp_spell,
};
