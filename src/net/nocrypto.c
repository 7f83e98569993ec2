/*
 * net/nocrypto.c - a build without libcrypto's headers signs no request.
 *
 * Thread class: plain functions.
 */
#include "net/crypto.h"

zarr_status zr_crypto_load(zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                   "signed requests are not supported: this build lacks libcrypto");
}

zarr_status zr_sha256(uint8_t out[ZR_SHA256_BYTES], const void *bytes, size_t n,
                      zarr_error *err)
{
    ZR_UNUSED(out, bytes, n);
    return zr_crypto_load(err);
}

zarr_status zr_hmac_sha256(uint8_t out[ZR_SHA256_BYTES], const void *key,
                           size_t key_bytes, const void *bytes, size_t n, zarr_error *err)
{
    ZR_UNUSED(key, key_bytes);
    return zr_sha256(out, bytes, n, err);
}
