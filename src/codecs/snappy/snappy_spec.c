/*
 * codecs/snappy/snappy_spec.c - snappy: one block of Google's Snappy
 * (format_description.txt of its library), not the framing format. It has no members. The
 * bound of the output is the library's formula, written out. A test compares it with the
 * library's function. Thread class: plain functions.
 */
#include "codecs/codecs_int.h"

/* A block has its decoded length in 32 bits. snappy_max_compressed_length() adds a sixth,
 * because a literal of 60 bytes costs one more, and 32 bytes for the header. */
static zarr_status snappy_resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                                  zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    ZR_UNUSED(fill_out);
    if (in->exact && in->n_bytes > UINT32_MAX) /* a bound need not be reached */
        return zr_fail(err, ZARR_ERR_INVALID,
                       "snappy: chunks have at most 4294967295 bytes, not %" PRIu64,
                       in->n_bytes);
    return zr_spec_compressed(spec, in, out, in->n_bytes / 6 + 32, err);
}

const zarr_codec_spec_vtable zr_spec_snappy = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_EXPERIMENTAL,
    .name = "snappy",
    .kind = ZARR_CODEC_BYTES_BYTES,
    .canonical = zr_conf_none,
    .resolve = snappy_resolve,
};
