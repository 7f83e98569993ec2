/*
 * port/codecs.c - the list of all codecs.
 */
#include "port_int.h"

const zarr_host *port_host;

zarr_status port_register_codecs(zarr_context *ctx, zarr_error *err)
{
    static const zarr_codec_impl_vtable *const all[] = {&port_lz4,
                                                        &port_snappy,
                                                        &port_zstd,
                                                        &port_shuffle,
                                                        &port_blosc,
                                                        &port_blosc_zstd,
                                                        &port_blosc_foreign,
                                                        &port_blosc_device,
                                                        &port_crc32c,
                                                        &port_crc32,
                                                        &port_adler32,
                                                        &port_fletcher32,
                                                        &port_jenkins_lookup3,
                                                        &port_delta,
                                                        &port_delta_array,
                                                        &port_fixedscaleoffset,
                                                        &port_fixedscaleoffset_array,
                                                        &port_quantize,
                                                        &port_quantize_array,
                                                        &port_astype,
                                                        &port_astype_array,
                                                        &port_packbits,
                                                        &port_packbits_array};
    zarr_status st = ZARR_OK;

    for (size_t i = 0; i < sizeof all / sizeof all[0] && st == ZARR_OK; i++)
        st = port_host->register_codec_impl(ctx, all[i], err);
    return st;
}
