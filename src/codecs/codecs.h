/*
 * codecs/codecs.h - the door of the core's codecs. Each family has a folder, with the
 * specification of a codec beside its implementation. Only ctx/builtin.c registers these
 * codecs, as it would register those of a plug-in. transpose, bytes and sharding_indexed
 * are in chain and impl, because they are the structure of chains.
 * Thread class: tables, frozen.
 */
#ifndef ZR_CODECS_H
#define ZR_CODECS_H

#include "chain/chain.h"
#include "impl/impl.h"

/* NULL-terminated. */
extern const zarr_codec_spec_vtable *const zr_codecs_specs[];
extern const zarr_codec_impl_vtable *const zr_codecs_impls[];
/* The implementations that this build lacks, for zr_impl_registry. */
extern const struct zr_impl_absence zr_codecs_absent[];

/* Returns the version of the library that an implementation of the core is named after.
 * Static. NULL: it has none, or is the library's own. */
const char *zr_codecs_library_version(const char *impl);

/* The two compressions of members of zip archives, and their checksum. The room that
 * reads archives has no other way to the libraries. Each decodes all of src to exactly
 * dst_bytes, else CORRUPT. Any thread. */
zarr_status zr_codecs_inflate(uint8_t *dst, size_t dst_bytes, const uint8_t *src,
                              size_t src_bytes, zarr_error *err); /* deflate, no header */
zarr_status zr_codecs_unzstd(uint8_t *dst, size_t dst_bytes, const uint8_t *src,
                             size_t src_bytes, zarr_error *err);
/* before: the CRC-32 of the bytes before these; 0: there are none. */
uint32_t zr_codecs_crc32(uint32_t before, const void *bytes, size_t n);

/* Converts n numbers, parts of complex numbers one by one, as the codec cast_value does.
 * dst may overlap src if no number of dst ends behind the one that it is made from.
 * INVALID: a number has no equal in the type `to`. */
zarr_status zr_codecs_cast(uint8_t *dst, const struct zr_number *to, const uint8_t *src,
                           const struct zr_number *from, size_t n,
                           const zarr_allocator *alloc, zarr_error *err);

#endif
