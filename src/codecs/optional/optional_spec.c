/*
 * codecs/optional/optional_spec.c - `optional` (zarrs: `zarrs.optional`), the codec of
 * the data type of that name. A chunk begins with two little-endian lengths of 64 bits.
 * The mask follows: an array of bool with the chunk's shape, encoded with mask_codecs,
 * that tells which elements have a value. Then come the values of these elements, an
 * array of one dimension, encoded with data_codecs. Thread class: plain functions.
 */
#include "codecs/optional/optional.h"

enum {
    OPTIONAL_HEAD = 16
};

/* INVALID unless the member is a whole chain. */
static zarr_status optional_chain(const zarr_codec_spec *raw, const char *member,
                                  const char **json, zarr_error *err)
{
    int array = 0;

    *json = zarr_codec_spec_chain_json(raw, member);
    if (*json && zarr_codec_spec_chain_codecs(raw, member, &array) >= 0 && !array)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "%s: %s: an array->bytes codec such as \"bytes\" is missing",
                       zarr_codec_spec_name(raw), member);
    if (!*json)
        return zr_fail(err, ZARR_ERR_INVALID, "%s: %s are missing",
                       zarr_codec_spec_name(raw), member);
    return ZARR_OK;
}

static zarr_status optional_canonical(const zarr_codec_spec *raw, int format, char *text,
                                      size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const known[] = {"mask_codecs", "data_codecs", NULL};
    const char *mask = NULL, *data = NULL;
    struct zr_conf_text t;

    ZR_CHECK(zr_conf_check_members(raw, format, known, err));
    ZR_CHECK(optional_chain(raw, "mask_codecs", &mask, err));
    ZR_CHECK(optional_chain(raw, "data_codecs", &data, err));
    zr_conf_open(&t, text, cap);
    zr_conf_put_raw(&t, "\"mask_codecs\":");
    zr_conf_put_raw(&t, mask);
    zr_conf_put_raw(&t, ",\"data_codecs\":");
    zr_conf_put_raw(&t, data);
    zr_conf_close(&t, text_bytes);
    return ZARR_OK;
}

zarr_status zr_spec_optional_inner(const zarr_codec_spec *spec,
                                   const zarr_chunk_spec *decoded, zarr_chunk_spec *mask,
                                   zarr_chunk_spec *data, zarr_error *err)
{
    const zarr_dtype *value = zarr_dtype_underlying(decoded->dtype);
    const uint64_t n = decoded->n_bytes / zarr_dtype_item_bytes(decoded->dtype);

    if (!value)
        return zr_spec_refuse_dtype(spec, decoded->dtype, "optional types", err);
    *mask = *decoded;
    mask->fill = NULL;
    mask->n_bytes = n;
    ZR_CHECK(zarr_codec_spec_dtype(&mask->dtype, spec, "bool", err));
    *data = (zarr_chunk_spec){.struct_size = sizeof *data,
                              .ndim = 1,
                              .shape = {n},
                              .dtype = value,
                              .n_bytes = n * zarr_dtype_item_bytes(value)};
    return ZARR_OK;
}

static zarr_status optional_resolve(const zarr_codec_spec *spec,
                                    const zarr_chunk_spec *in, zarr_chunk_spec *out,
                                    void *fill_out, zarr_error *err)
{
    zarr_chunk_spec mask = {0}, data = {0}, bits = {0}, values = {0};

    ZR_UNUSED(fill_out);
    ZR_CHECK(zr_spec_optional_inner(spec, in, &mask, &data, err));
    ZR_CHECK(zarr_codec_spec_chain_resolve(spec, "mask_codecs", &mask, &bits, err));
    ZR_CHECK(zarr_codec_spec_chain_resolve(spec, "data_codecs", &data, &values, err));
    out->exact = 0;
    out->item_bytes_hint = 1;
    out->n_bytes = UINT64_MAX;
    if (bits.n_bytes == UINT64_MAX || values.n_bytes == UINT64_MAX)
        return ZARR_OK;
    ZR_CHECK(zr_spec_set_bound(out, zarr_codec_spec_name(spec), bits.n_bytes,
                               OPTIONAL_HEAD, err));
    return zr_spec_set_bound(out, zarr_codec_spec_name(spec), out->n_bytes,
                             values.n_bytes, err);
}

static zarr_status optional_chain_input(const zarr_codec_spec *spec, const char *member,
                                        const zarr_chunk_spec *in, zarr_chunk_spec *out,
                                        zarr_error *err)
{
    zarr_chunk_spec other = {0};

    return zr_streq(member, "mask_codecs")
               ? zr_spec_optional_inner(spec, in, out, &other, err)
               : zr_spec_optional_inner(spec, in, &other, out, err);
}

static const char *const optional_chains[] = {"mask_codecs", "data_codecs", NULL};
#define OPTIONAL_VTABLE(n)                                                               \
    {                                                                                    \
        .struct_size = sizeof(zarr_codec_spec_vtable),                                   \
        .flags = ZARR_CODEC_SPEC_V3 | ZARR_CODEC_SPEC_EXPERIMENTAL, .name = n,           \
        .kind = ZARR_CODEC_ARRAY_BYTES, .canonical = optional_canonical,                 \
        .resolve = optional_resolve, .chains = optional_chains,                          \
        .chain_input = optional_chain_input,                                             \
    }
const zarr_codec_spec_vtable zr_spec_optional = OPTIONAL_VTABLE("optional");
const zarr_codec_spec_vtable zr_spec_zarrs_optional = OPTIONAL_VTABLE("zarrs.optional");
