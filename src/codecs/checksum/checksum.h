/*
 * codecs/checksum/checksum.h - checksums of bytes. Knows no chunks and no jobs.
 */
#ifndef ZR_CHECKSUM_FAMILY_H
#define ZR_CHECKSUM_FAMILY_H

#include "codecs/codecs_int.h"

/* jenkins_lookup3: the most bytes in `prefix`. */
#define ZR_JENKINS_PREFIX_MAX 64

/* CRC-32C (Castagnoli, RFC 3720 B.4) of bytes. Continues from crc; 0 starts. */
uint32_t zr_crc32c(uint32_t crc, const void *bytes, size_t n);
#if defined(__x86_64__)
uint32_t zr_crc32c_sse42(uint32_t crc, const uint8_t *p, size_t n);
uint32_t zr_crc32c_pclmul(uint32_t crc, const uint8_t *p, size_t n);
#endif
/* The version without special instructions. Tests compare the others with it. */
uint32_t zr_crc32c_table(uint32_t crc, const uint8_t *p, size_t n);

/* HDF5's Fletcher sum. */
uint32_t zr_fletcher32(const uint8_t *p, size_t n);
/* Bob Jenkins' lookup3 of the prefix and then of p. An empty prefix may be NULL. */
uint32_t zr_jenkins_lookup3(uint32_t initval, const uint8_t *prefix, size_t prefix_bytes,
                            const uint8_t *p, size_t n);

#endif
