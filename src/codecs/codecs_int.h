/*
 * codecs/codecs_int.h - shared inside the room: the tables of every family, and nothing
 * else. A family's own header is in its folder; no family includes another's.
 */
#ifndef ZR_CODECS_INT_H
#define ZR_CODECS_INT_H

#include "codecs/codecs.h"

extern const zarr_codec_spec_vtable zr_spec_gzip, zr_spec_zlib, zr_spec_zstd, zr_spec_lz4,
    zr_spec_blosc, zr_spec_crc32c, zr_spec_shuffle, zr_spec_delta, zr_spec_delta_array,
    zr_spec_vlen_utf8, zr_spec_vlen_bytes, zr_spec_optional, zr_spec_zarrs_optional,
    zr_spec_n5_default, zr_spec_conditional, zr_spec_zarrs_vlen, zr_spec_vlen_v2;
extern const zarr_codec_spec_vtable zr_spec_bz2, zr_spec_lzma, zr_spec_base64,
    zr_spec_crc32, zr_spec_adler32, zr_spec_fletcher32, zr_spec_jenkins_lookup3,
    zr_spec_packbits_bits, zr_spec_packbits_array, zr_spec_packbits_v2, zr_spec_zfp_bare,
    zr_spec_zfpy, zr_spec_pcodec, zr_spec_gdeflate;
extern const zarr_codec_spec_vtable zr_spec_fixedscaleoffset,
    zr_spec_fixedscaleoffset_array, zr_spec_quantize, zr_spec_quantize_array,
    zr_spec_astype, zr_spec_astype_array, zr_spec_bitround, zr_spec_bitround_v2,
    zr_spec_reshape, zr_spec_squeeze, zr_spec_cast_value, zr_spec_scale_offset;
extern const zarr_codec_spec_vtable zr_spec_text_json, zr_spec_text_msgpack,
    zr_spec_vlen_array, zr_spec_categorized;

extern const zarr_codec_impl_vtable zr_cpu_zstd, zr_cpu_gzip, zr_cpu_zlib, zr_cpu_lz4,
    zr_cpu_blosc, zr_cpu_crc32c, zr_cpu_shuffle, zr_cpu_delta, zr_cpu_delta_array,
    zr_cpu_vlen_utf8, zr_cpu_vlen_bytes, zr_cpu_optional, zr_cpu_zarrs_optional,
    zr_cpu_n5_default, zr_cpu_conditional, zr_cpu_zarrs_vlen, zr_cpu_vlen_v2,
    zr_cpu_vlen_array, zr_cpu_json2, zr_cpu_msgpack2, zr_cpu_categorize;
extern const zarr_codec_impl_vtable zr_cpu_base64, zr_cpu_crc32, zr_cpu_adler32,
    zr_cpu_fletcher32, zr_cpu_jenkins_lookup3, zr_cpu_packbits, zr_cpu_packbits_array;
extern const zarr_codec_impl_vtable zr_cpu_fixedscaleoffset,
    zr_cpu_fixedscaleoffset_array, zr_cpu_quantize, zr_cpu_quantize_array, zr_cpu_astype,
    zr_cpu_astype_array, zr_cpu_bitround, zr_cpu_cast_value, zr_cpu_scale_offset;
/* With their libraries: ZR_HAVE_*. */
extern const zarr_codec_impl_vtable zr_cpu_bz2, zr_cpu_lzma, zr_cpu_zfp, zr_cpu_zfpy;

#endif
