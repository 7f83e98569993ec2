/*
 * codecs/base64/base64_spec.c - numcodecs' base64. Metadata gives its exact size.
 * Thread class: plain functions.
 */
#include "codecs/codecs_int.h"

static zarr_status base64_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                  zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    const uint64_t groups = in->n_bytes / 3 + (in->n_bytes % 3 != 0);

    ZR_UNUSED(fill_out);
    out->item_bytes_hint = 1;
    if (!zr_mul(groups, 4, &out->n_bytes))
        return zr_fail(err, ZARR_ERR_LIMIT,
                       "%s: a chunk of %" PRIu64 " bytes is too large",
                       zarr_codec_spec_name(spec), in->n_bytes);
    return ZARR_OK;
}

const zarr_codec_spec_vtable zr_spec_base64 = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_NUMCODECS,
    .name = "base64",
    .kind = ZARR_CODEC_BYTES_BYTES,
    .canonical = zr_conf_none,
    .resolve = base64_resolve,
};
