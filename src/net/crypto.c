/*
 * net/crypto.c - SHA-256 and HMAC by libcrypto, which is not linked: only signed requests
 * need it. libcrypto stays loaded until the process ends.
 *
 * Thread class: shared.
 */
#include "net/net_int.h"

#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stddef.h>

/* X(type of the result, name, arguments) */
#define CRYPTO_FUNCTIONS(X)                                                              \
    X(int, OPENSSL_init_crypto, (uint64_t, const OPENSSL_INIT_SETTINGS *))               \
    X(const EVP_MD *, EVP_sha256, (void))                                                \
    X(int, EVP_Digest,                                                                   \
      (const void *, size_t, unsigned char *, unsigned int *, const EVP_MD *, ENGINE *)) \
    X(unsigned char *, HMAC,                                                             \
      (const EVP_MD *, const void *, int, const unsigned char *, size_t,                 \
       unsigned char *, unsigned int *))

struct crypto_table {
#define CRYPTO_MEMBER(type, name, arguments) type(*name) arguments;
    CRYPTO_FUNCTIONS(CRYPTO_MEMBER)
#undef CRYPTO_MEMBER
};
static struct crypto_table crypto; /* after crypto_load */

static struct {
    zr_once once;
    zarr_status st;
    zarr_error err;
} crypto_load = {.once = ZR_ONCE_INIT};

/* ---- loading ---- */

#ifdef ZR_LINK_CURL /* what is linked statically cannot load it either */
static zarr_status crypto_fill(zarr_error *err)
{
    ZR_UNUSED(err);
#    define CRYPTO_MEMBER(type, name, arguments) crypto.name = name;
    CRYPTO_FUNCTIONS(CRYPTO_MEMBER)
#    undef CRYPTO_MEMBER
    return ZARR_OK;
}
#else
static zarr_status crypto_fill(zarr_error *err)
{
    static const struct zr_net_symbol symbols[] = {
#    define CRYPTO_MEMBER(type, name, arguments)                                         \
        {#name, offsetof(struct crypto_table, name)},
        CRYPTO_FUNCTIONS(CRYPTO_MEMBER)
#    undef CRYPTO_MEMBER
    };
    static const char *const files[] = {
#    ifdef __APPLE__
        "libcrypto.3.dylib",
#    else
        "libcrypto.so.3", "libcrypto.so.1.1",
#    endif
        NULL};

    return zr_net_load_library(&crypto, files, symbols, ZR_COUNT(symbols),
                               "signed requests need libcrypto", err);
}
#endif

/* Its exit handler would run while reactors still sign, so it gets none. */
static void crypto_load_once(void)
{
    crypto_load.st = crypto_fill(&crypto_load.err);
    if (crypto_load.st == ZARR_OK &&
        crypto.OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL) != 1)
        crypto_load.st = zr_fail(&crypto_load.err, ZARR_ERR_UNSUPPORTED,
                                 "libcrypto cannot be initialised");
}

zarr_status zr_crypto_load(zarr_error *err)
{
    zr_call_once(&crypto_load.once, crypto_load_once);
    return zr_pass(err, crypto_load.st, &crypto_load.err);
}

/* ---- functions ---- */

static zarr_status crypto_check(bool is_done, zarr_error *err)
{
    return is_done ? ZARR_OK
                   : zr_fail(err, ZARR_ERR_INTERNAL, "libcrypto computes no SHA-256");
}

zarr_status zr_sha256(uint8_t out[ZR_SHA256_BYTES], const void *bytes, size_t n,
                      zarr_error *err)
{
    return crypto_check(crypto.EVP_Digest(n > 0 ? bytes : "", n, out, NULL,
                                          crypto.EVP_sha256(), NULL) == 1,
                        err);
}

zarr_status zr_hmac_sha256(uint8_t out[ZR_SHA256_BYTES], const void *key,
                           size_t key_bytes, const void *bytes, size_t n, zarr_error *err)
{
    return crypto_check(
        key_bytes <= INT_MAX &&
            crypto.HMAC(crypto.EVP_sha256(), key, (int)key_bytes, bytes, n, out, NULL),
        err);
}
