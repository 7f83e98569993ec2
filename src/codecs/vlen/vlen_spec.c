/*
 * codecs/vlen/vlen_spec.c - `vlen-utf8` and `vlen-bytes`. A chunk is the number of
 * elements, then the length and the bytes of each element. The numbers have 32 bits and
 * are little-endian. In v3 they are array->bytes codecs. In v2 they are the first filter,
 * which meta/array_v2.c puts in the place of `bytes`. zarrs has the same encoding for
 * both data types as `zarrs.vlen_v2`. Metadata does not bound the encoded size. Thread
 * class: plain functions.
 */
#include "codecs/vlen/vlen.h"

static zarr_status vlen_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                zarr_chunk_spec *out, uint32_t kind, zarr_error *err)
{
    if (zarr_dtype_kind(in->dtype) != kind)
        return zr_spec_refuse_dtype(
            spec, in->dtype,
            kind == ZARR_KIND_STRING ? "string" : "variable_length_bytes", err);
    if (in->n_bytes / sizeof(zarr_vlen) > UINT32_MAX)
        return zr_fail(
            err, ZARR_ERR_INVALID,
            "%s: chunks of %" PRIu64 " elements, at most 2^32 - 1 are possible",
            zarr_codec_spec_name(spec), in->n_bytes / (uint64_t)sizeof(zarr_vlen));
    out->n_bytes = UINT64_MAX;
    out->exact = 0;
    out->item_bytes_hint = 1;
    return ZARR_OK;
}

static zarr_status utf8_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    ZR_UNUSED(fill_out);
    return vlen_resolve(spec, in, out, ZARR_KIND_STRING, err);
}

static zarr_status vbytes_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                  zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    ZR_UNUSED(fill_out);
    return vlen_resolve(spec, in, out, ZARR_KIND_VBYTES, err);
}

static const char *const utf8_aliases[] = {
    "numcodecs.vlen-utf8", "https://codec.zarrs.dev/array_to_bytes/vlen_utf8", NULL};
const zarr_codec_spec_vtable zr_spec_vlen_utf8 = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .name = "vlen-utf8",
    .aliases = utf8_aliases,
    .kind = ZARR_CODEC_ARRAY_BYTES,
    .canonical = zr_conf_none,
    .resolve = utf8_resolve,
};

static const char *const vlen_bytes_aliases[] = {
    "numcodecs.vlen-bytes", "https://codec.zarrs.dev/array_to_bytes/vlen_bytes", NULL};
const zarr_codec_spec_vtable zr_spec_vlen_bytes = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .name = "vlen-bytes",
    .aliases = vlen_bytes_aliases,
    .kind = ZARR_CODEC_ARRAY_BYTES,
    .canonical = zr_conf_none,
    .resolve = vbytes_resolve,
};

static zarr_status vlen_v2_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                   zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    ZR_UNUSED(fill_out);
    return vlen_resolve(spec, in, out,
                        zarr_dtype_kind(in->dtype) == ZARR_KIND_STRING ? ZARR_KIND_STRING
                                                                       : ZARR_KIND_VBYTES,
                        err);
}

/* In v3, vlen-array is another name of this codec: v3 has no data type for lists. */
static const char *const vlen_v2_aliases[] = {
    "https://codec.zarrs.dev/array_to_bytes/vlen_v2", "vlen-array",
    "numcodecs.vlen-array", "https://codec.zarrs.dev/array_to_bytes/vlen_array", NULL};
const zarr_codec_spec_vtable zr_spec_vlen_v2 = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_V3 | ZARR_CODEC_SPEC_EXPERIMENTAL,
    .name = "zarrs.vlen_v2",
    .aliases = vlen_v2_aliases,
    .kind = ZARR_CODEC_ARRAY_BYTES,
    .canonical = zr_conf_none,
    .resolve = vlen_v2_resolve,
};
