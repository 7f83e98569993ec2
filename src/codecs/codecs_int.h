/*
 * codecs/codecs_int.h - shared inside the room: only the names of all tables. The header
 * of a family is in its folder, and no family includes the header of another.
 */
#ifndef ZR_CODECS_INT_H
#define ZR_CODECS_INT_H

#include "codecs/codecs.h"

/* clang-format off */
/* zr_spec_<name>, in the order of registration. If a filter of numcodecs is two
 * specifications, the array->array one comes first, because it has the name in v3. */
#define ZR_CODECS_SPECS(X) \
    X(gzip) X(zlib) X(zstd) X(lz4) X(blosc) X(crc32c) X(shuffle) X(delta_array)          \
    X(delta) X(bz2) X(lzma) X(snappy) X(base64) X(crc32) X(adler32) X(fletcher32)                  \
    X(jenkins_lookup3) X(packbits_bits) X(packbits_array) X(packbits_v2) X(zfp_bare)     \
    X(zfpy) X(pcodec) X(gdeflate) X(fixedscaleoffset_array) X(fixedscaleoffset)          \
    X(quantize_array) X(quantize) X(astype_array) X(astype) X(bitround) X(bitround_v2)   \
    X(reshape) X(squeeze) X(cast_value) X(scale_offset) X(vlen_utf8) X(vlen_bytes)       \
    X(optional) X(zarrs_optional) X(n5_default) X(conditional) X(zarrs_vlen)             \
    X(vlen_v2) X(vlen_array) X(text_json) X(text_msgpack) X(categorized)                 \
    X(nvcomp_batch)

/* zr_cpu_<name>, in every build. */
#define ZR_CODECS_IMPLS(X) \
    X(zstd) X(gzip) X(zlib) X(lz4) X(blosc) X(crc32c) X(shuffle) X(delta)                \
    X(delta_array) X(vlen_utf8) X(vlen_bytes) X(optional) X(zarrs_optional)              \
    X(n5_default) X(conditional) X(zarrs_vlen) X(vlen_v2) X(vlen_array) X(json2)         \
    X(msgpack2) X(categorize) X(base64) X(crc32) X(adler32) X(fletcher32)                \
    X(jenkins_lookup3) X(packbits) X(packbits_array) X(fixedscaleoffset)                 \
    X(fixedscaleoffset_array) X(quantize) X(quantize_array) X(astype) X(astype_array)    \
    X(bitround) X(cast_value) X(scale_offset) X(nvcomp_batch)

/* Those that need an optional library: see codecs.c. */
#define ZR_CODECS_OPTIONAL(X) X(bz2) X(lzma) X(snappy) X(zfp) X(zfpy)
/* clang-format on */

#define ZR_DECLARE_SPEC(name) extern const zarr_codec_spec_vtable zr_spec_##name;
#define ZR_DECLARE_IMPL(name) extern const zarr_codec_impl_vtable zr_cpu_##name;
ZR_CODECS_SPECS(ZR_DECLARE_SPEC)
ZR_CODECS_IMPLS(ZR_DECLARE_IMPL)
ZR_CODECS_OPTIONAL(ZR_DECLARE_IMPL)

#endif
