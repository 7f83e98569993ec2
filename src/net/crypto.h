/*
 * net/crypto.h - a part of the door: SHA-256 and HMAC of libcrypto, which the first
 * zr_crypto_load() loads.
 */
#ifndef ZR_NET_CRYPTO_H
#define ZR_NET_CRYPTO_H

#include "base/base.h"

enum {
    ZR_SHA256_BYTES = 32
};

/* Call it before the others. UNSUPPORTED: there is no libcrypto, or this build lacks it.
 */
zarr_status zr_crypto_load(zarr_error *err);
/* Both return INTERNAL if libcrypto refuses, as for want of memory. bytes may be NULL if
 * n is 0. */
zarr_status zr_sha256(uint8_t out[ZR_SHA256_BYTES], const void *bytes, size_t n,
                      zarr_error *err);
zarr_status zr_hmac_sha256(uint8_t out[ZR_SHA256_BYTES], const void *key,
                           size_t key_bytes, const void *bytes, size_t n,
                           zarr_error *err);

#endif
