/*
 * net/libcurl.c - loads libcurl, which is not linked: a program that opens no URL does
 * not load it, nor the TLS library below it. libcurl stays loaded until the process ends.
 *
 * Thread class: shared.
 */
#include "net/curl_int.h"

#include <stddef.h>

struct zr_net_curl zr_curl;

static struct {
    zr_once once;
    zarr_status st;
    zarr_error err;
} curl_load = {.once = ZR_ONCE_INIT};

#ifdef ZR_LINK_CURL
static zarr_status curl_fill(zarr_error *err)
{
    ZR_UNUSED(err);
#    define ZR_NET_MEMBER(type, name, arguments) zr_curl.name = curl_##name;
    ZR_NET_CURL(ZR_NET_MEMBER)
#    undef ZR_NET_MEMBER
    return ZARR_OK;
}
#else
static zarr_status curl_fill(zarr_error *err)
{
    static const struct zr_net_symbol symbols[] = {
#    define ZR_NET_MEMBER(type, name, arguments)                                         \
        {"curl_" #name, offsetof(struct zr_net_curl, name)},
        ZR_NET_CURL(ZR_NET_MEMBER)
#    undef ZR_NET_MEMBER
    };
    static const char *const files[] = {
#    ifdef __APPLE__
        "libcurl.4.dylib",
#    else
        "libcurl.so.4", "libcurl-gnutls.so.4",
#    endif
        NULL};

    return zr_net_load_library(&zr_curl, files, symbols, ZR_COUNT(symbols),
                               "http and https need libcurl", err);
}
#endif

static void curl_load_once(void)
{
    const curl_version_info_data *info;
    zarr_error *const err = &curl_load.err;
    zarr_status st = ZARR_OK;

    ZR_TRY(curl_fill(err));
    info = zr_curl.version_info(CURLVERSION_NOW);
    zr_curl.version = info->version_num;
    if (zr_curl.version < 0x074C00)
        ZR_FAIL(err, ZARR_ERR_UNSUPPORTED,
                "http and https need libcurl 7.76 or newer, this is %s", info->version);
    if (!(info->features & CURL_VERSION_ASYNCHDNS))
        ZR_FAIL(err, ZARR_ERR_UNSUPPORTED,
                "this libcurl stops all requests while it looks up a name: it lacks "
                "AsynchDNS");
    if (zr_curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        ZR_FAIL(err, ZARR_ERR_UNSUPPORTED, "libcurl cannot be initialised");
out:
    curl_load.st = st;
}

zarr_status zr_net_curl_load(zarr_error *err)
{
    zr_call_once(&curl_load.once, curl_load_once);
    return zr_pass(err, curl_load.st, &curl_load.err);
}
