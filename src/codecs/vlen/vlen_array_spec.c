/*
 * codecs/vlen/vlen_array_spec.c - numcodecs' vlen-array: elements are lists whose items
 * have one data type. It exists only in v2, as the first filter. meta/array_v2.c puts
 * that filter in the place that array->bytes codecs have in v3. Thread class: plain
 * functions.
 */
#include "codecs/vlen/vlen.h"

zarr_status zr_spec_read_ragged(const zarr_codec_spec *spec, struct zr_ragged *out,
                                zarr_error *err)
{
    const char *text = zarr_codec_spec_text(spec, "dtype");
    uint32_t order = ZR_ORDER_NATIVE;
    zarr_status st = ZARR_OK;

    *out = (struct zr_ragged){0};
    if (!text)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "vlen-array: dtype must be a NumPy type such as \"<i4\"");
    st = zr_conf_dtype(spec, "dtype", &out->item, &order, err);
    if (st != ZARR_OK)
        return zr_prefix(err, st, "vlen-array: dtype");
    if (zarr_dtype_variable(out->item))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "vlen-array: items of variable length (%.64s)", text);
    /* A name without a byte order is little-endian, so that all machines read a store
     * alike. */
    out->stored.order = order == ZARR_ORDER_BIG ? ZARR_ORDER_BIG : ZARR_ORDER_LITTLE;
    return ZARR_OK;
}

static zarr_status ragged_canonical(const zarr_codec_spec *raw, int format, char *text,
                                    size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const known[] = {"dtype", NULL};
    struct zr_ragged ignored;
    struct zr_conf_text t;

    ZR_CHECK(zr_conf_check_members(raw, format, known, err));
    ZR_CHECK(zr_spec_read_ragged(raw, &ignored, err));
    zr_conf_open(&t, text, cap);
    zr_conf_put_json(&t, raw, "dtype");
    return zr_conf_end(&t, text_bytes, err);
}

static zarr_status ragged_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                  zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    const zarr_dtype *item = zarr_dtype_item(in->dtype);
    struct zr_ragged ragged;

    ZR_UNUSED(fill_out);
    ZR_CHECK(zr_spec_read_ragged(spec, &ragged, err));
    if (!item || !zarr_dtype_equal(item, ragged.item))
        return zr_spec_refuse_dtype(spec, in->dtype, "lists of its dtype", err);
    if (in->n_bytes / sizeof(zarr_vlen) > UINT32_MAX)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "vlen-array: chunks of %" PRIu64
                       " elements, at most 2^32 - 1 are possible",
                       in->n_bytes / (uint64_t)sizeof(zarr_vlen));
    out->n_bytes = UINT64_MAX;
    out->exact = 0;
    out->item_bytes_hint = 1;
    return ZARR_OK;
}

const zarr_codec_spec_vtable zr_spec_vlen_array = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_V2,
    .name = "vlen-array",
    .kind = ZARR_CODEC_ARRAY_BYTES,
    .canonical = ragged_canonical,
    .resolve = ragged_resolve,
};
