/*
 * chain/structure.c - the two array codecs that the machinery knows: `transpose` permutes
 * dimensions, and `bytes` lays elements out in C order with a stated byte order. Neither
 * runs as a step if it can be a fact of the copy that ends a read (impl/placement).
 * v3 requires `endian` for elements of several bytes. Old writers of structs may omit it,
 * which means little (zr_chain_complete_order()). Old drafts spell the order of a
 * transpose "C" or "F", for any rank. Thread class: plain functions.
 */
#include "chain/chain_int.h"

#include <stdio.h>
#include <string.h>

/* Whether the text has one letter for each field of a v2 struct, as "<><". */
static bool bytes_is_mixed(const char *text)
{
    return text && *text && text[strspn(text, "<>")] == '\0';
}

static zarr_status bytes_canonical(const zarr_codec_spec *raw, int format, char *text,
                                   size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const known[] = {"endian", NULL};
    static const char *const words[] = {"little", "big", NULL};
    const char *leaves = zarr_codec_spec_text(raw, "endian");
    struct zr_conf_text t;
    int endian = -1;

    ZR_CHECK(zr_conf_check_members(raw, format, known, err));
    if (format == 2 && bytes_is_mixed(leaves))
        endian = 2;
    else
        ZR_CHECK(zr_conf_word(raw, "endian", words, &endian, err));
    zr_conf_open(&t, text, cap);
    if (endian >= 0)
        zr_conf_put_word(&t, "endian", endian == 2 ? leaves : words[endian]);
    zr_conf_close(&t, text_bytes);
    return ZARR_OK;
}

static zarr_status bytes_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                 zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    const char *name = zarr_dtype_name(in->dtype);

    ZR_UNUSED(fill_out);
    if (!name)
        name = zarr_dtype_v2(in->dtype);
    if (zarr_dtype_underlying(in->dtype))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "codec bytes does not take data type %s, whose elements may be "
                       "missing: use codec \"%s\"",
                       name ? name : "?", zarr_dtype_codec(in->dtype));
    if (zarr_dtype_variable(in->dtype))
        return zr_spec_refuse_dtype(spec, in->dtype, "types of fixed size", err);
    if (spec->structure.stored.order == ZR_ORDER_NATIVE && zr_dtype_has_order(in->dtype))
        return zr_fail(err, ZARR_ERR_INVALID, "bytes: endian is required for type %s",
                       name ? name : "?");
    if (spec->structure.stored.order == ZR_ORDER_MIXED &&
        !zr_dtype_leaves_fit(in->dtype, spec->structure.stored.leaves))
        return zr_fail(err, ZARR_ERR_INVALID, "bytes: endian does not fit type %s",
                       name ? name : "?");
    out->n_bytes = in->n_bytes;
    out->item_bytes_hint = in->item_bytes_hint;
    return ZARR_OK;
}

/* Drops `endian` if elements have one byte or no order. */
static zarr_status bytes_complete(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                  const zarr_chunk_spec *array, char *text, size_t cap,
                                  size_t *text_bytes, zarr_error *err)
{
    struct zr_conf_text t;

    ZR_UNUSED(spec, array, err);
    *text_bytes = 0;
    if (zr_dtype_has_order(in->dtype))
        return ZARR_OK;
    zr_conf_open(&t, text, cap);
    zr_conf_close(&t, text_bytes);
    return ZARR_OK;
}

static const char *const bytes_aliases[] = {"endian", NULL};
const zarr_codec_spec_vtable zr_spec_bytes = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_V3, /* v2: dtype */
    .name = "bytes",
    .aliases = bytes_aliases,
    .kind = ZARR_CODEC_ARRAY_BYTES,
    .canonical = bytes_canonical,
    .resolve = bytes_resolve,
    .complete = bytes_complete,
};

/* ---- transpose ------------------------------------------------------------- */

static bool order_is_permutation(const int64_t *order, int64_t n)
{
    uint64_t seen = 0;

    for (int64_t i = 0; i < n; i++) {
        if (order[i] < 0 || order[i] >= n || (seen >> order[i] & 1))
            return false;
        seen |= (uint64_t)1 << order[i];
    }
    return true;
}

static void transpose_put_list(struct zr_conf_text *t, const int64_t *order, int64_t n)
{
    zr_conf_put_raw(t, "\"order\":[");
    for (int64_t i = 0; i < n; i++) {
        char digits[8];

        (void)snprintf(digits, sizeof digits, "%s%d", i ? "," : "", (int)order[i]);
        zr_conf_put_raw(t, digits);
    }
    zr_conf_put_raw(t, "]");
}

static zarr_status transpose_put(struct zr_conf_text *t, const zarr_codec_spec *raw,
                                 zarr_error *err)
{
    int64_t order[ZARR_MAX_RANK];
    const int64_t n = zarr_codec_spec_i64s(raw, "order", order, ZARR_MAX_RANK);
    const char *letter = zarr_codec_spec_text(raw, "order");

    if (letter && (zr_streq(letter, "C") || zr_streq(letter, "F"))) {
        zr_conf_put_word(t, "order", letter);
        return ZARR_OK;
    }
    if (n < 0 || n > ZARR_MAX_RANK || !order_is_permutation(order, n))
        return zr_conf_refuse(raw, "order", "a permutation of 0, 1, ... up to the rank",
                              err);
    transpose_put_list(t, order, n);
    return ZARR_OK;
}

static zarr_status transpose_canonical(const zarr_codec_spec *raw, int format, char *text,
                                       size_t cap, size_t *text_bytes, zarr_error *err)
{
    static const char *const known[] = {"order", NULL};
    struct zr_conf_text t;

    ZR_CHECK(zr_conf_check_members(raw, format, known, err));
    zr_conf_open(&t, text, cap);
    ZR_CHECK(transpose_put(&t, raw, err));
    zr_conf_close(&t, text_bytes);
    return ZARR_OK;
}

zarr_status zr_spec_order(const zarr_codec_spec *spec, int32_t ndim, uint8_t *order,
                          zarr_error *err)
{
    const bool letter = spec->structure.n_order < 0;

    if (!letter && spec->structure.n_order != ndim)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "transpose: order has %" PRId32 " entries, the array has %" PRId32
                       " dimensions",
                       spec->structure.n_order, ndim);
    for (int32_t i = 0; i < ndim; i++)
        order[i] = !letter                                 ? spec->structure.order[i]
                   : spec->structure.n_order == ZR_ORDER_F ? (uint8_t)(ndim - 1 - i)
                                                           : (uint8_t)i;
    return ZARR_OK;
}

static zarr_status transpose_resolve(const zarr_codec_spec *spec,
                                     const zarr_chunk_spec *in, zarr_chunk_spec *out,
                                     void *fill_out, zarr_error *err)
{
    uint8_t order[ZARR_MAX_RANK] = {0};

    ZR_UNUSED(fill_out);
    ZR_CHECK(zr_spec_order(spec, in->ndim, order, err));
    for (int32_t i = 0; i < in->ndim; i++)
        out->shape[i] = in->shape[order[i]];
    out->fill = in->fill;
    return ZARR_OK;
}

/* Replaces a letter by the dimensions of this array. */
static zarr_status transpose_complete(const zarr_codec_spec *spec,
                                      const zarr_chunk_spec *in,
                                      const zarr_chunk_spec *array, char *text,
                                      size_t cap, size_t *text_bytes, zarr_error *err)
{
    uint8_t order[ZARR_MAX_RANK] = {0};
    int64_t list[ZARR_MAX_RANK] = {0};
    struct zr_conf_text t;

    ZR_UNUSED(array);
    *text_bytes = 0;
    if (spec->structure.n_order >= 0)
        return ZARR_OK;
    ZR_CHECK(zr_spec_order(spec, in->ndim, order, err));
    for (int32_t i = 0; i < in->ndim; i++)
        list[i] = order[i];
    zr_conf_open(&t, text, cap);
    transpose_put_list(&t, list, in->ndim);
    zr_conf_close(&t, text_bytes);
    return ZARR_OK;
}

const zarr_codec_spec_vtable zr_spec_transpose = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_V3, /* v2: order */
    .name = "transpose",
    .kind = ZARR_CODEC_ARRAY_ARRAY,
    .canonical = transpose_canonical,
    .resolve = transpose_resolve,
    .complete = transpose_complete,
};
