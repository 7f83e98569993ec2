/*
 * fuzz/fuzz_net.c - any lines as the header of an answer, and any text as a redirect: the
 * parsers of what servers send. The first byte chooses a range that was asked for. A text
 * that begins with '<' is a WebDAV server's listing of a folder, one with '[' that of
 * nginx.
 */
#include <string.h>

#include "fuzz.h"
#include "http/http_int.h"
#include "net/net_int.h"

static void fuzz_check(int ok)
{
    if (!ok)
        __builtin_trap();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return 0;
}

static void fuzz_location(const char *location)
{
    struct zr_url from, to;
    zarr_error err = {0};

    fuzz_check(zr_url_parse(&from, NULL, "https://h/a/b?c", NULL) == ZARR_OK);
    if (zr_net_location(&to, &from, location, &err) == ZARR_OK) {
        fuzz_check(strcmp(to.scheme, "https") == 0 && *to.host && *to.path == '/');
        fuzz_check(zr_net_is_same_origin(&to, &to));
    } else {
        fuzz_check(err.message[0] != '\0');
    }
    zr_url_deinit(&to);
    zr_url_deinit(&from);
}

static void fuzz_facts(const struct zr_net_answer *a, uint8_t range)
{
    const char *const location = zr_net_answer_header(a, "Location");
    const uint64_t first = range & 15, bytes = 1 + (range >> 4);

    fuzz_check(a->status == 0 || (a->status >= 100 && a->status <= 599));
    fuzz_check(!a->etag || *a->etag);
    if (a->is_range)
        fuzz_check(
            a->status == 206 && a->range_bytes > 0 &&
            (a->total == UINT64_MAX || a->range_first + a->range_bytes <= a->total));
    if (zr_net_answer_check_range(a, ZR_NET_RANGE, first, bytes, NULL) == ZARR_OK &&
        a->is_range)
        fuzz_check(a->range_first == first && a->range_bytes <= bytes);
    (void)zr_net_answer_check_range(a, ZR_NET_SUFFIX, first, bytes, NULL);
    if (location)
        fuzz_location(location);
}

static zarr_status fuzz_member(void *user, const char *name, bool is_folder,
                               uint64_t bytes, zarr_error *err)
{
    (void)is_folder;
    (void)bytes;
    (void)err;
    fuzz_check(*(bool *)user || (*name && !strchr(name, '/')));
    return ZARR_OK;
}

static void fuzz_listing(const char *text, size_t n)
{
    struct zr_url folder;
    bool is_index = *text == '['; /* the store checks its names */
    zarr_limits limits;
    const struct zr_http_page page = {
        .limits = &limits, .folder = &folder, .fn = fuzz_member, .user = &is_index};
    zarr_error err = {0};

    fuzz_check(zr_url_parse(&folder, NULL, "http://h/x/", NULL) == ZARR_OK);
    zr_limits_default(&limits);
    if ((is_index ? zr_http_index_read : zr_http_dav_read)(&page, text, n, &err) !=
        ZARR_OK)
        fuzz_check(err.message[0] != '\0');
    zr_url_deinit(&folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data + 1, *end;
    struct zr_net_answer a = {0};
    zarr_error err = {0};
    zarr_status st = ZARR_OK;

    if (size == 0)
        return 0;
    if (data[0] == '<' || data[0] == '[') {
        fuzz_listing((const char *)data, size);
        return 0;
    }
    zr_net_answer_reset(&a, NULL);
    for (size_t left = size - 1, n; left > 0 && st == ZARR_OK; left -= n, text += n) {
        end = memchr(text, '\n', left);
        n = end ? (size_t)(end + 1 - text) : left;
        st = zr_net_answer_add(&a, text, n, &err);
    }
    if (st == ZARR_OK)
        st = zr_net_answer_finish(&a, &err);
    if (st == ZARR_OK)
        fuzz_facts(&a, data[0]);
    else
        fuzz_check(err.message[0] != '\0');
    zr_net_answer_deinit(&a);
    return 0;
}
