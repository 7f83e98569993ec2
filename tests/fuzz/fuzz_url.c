/*
 * fuzz/fuzz_url.c - any text as a URL. What is accepted is normalised: parsed again, it
 * is the same. The URL of a key ends with that key. What is shown of a text has no user
 * info and no value of a parameter.
 */
#include "base/base.h"

#include <string.h>

#include "fuzz.h"

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

static void fuzz_parsed(const struct zr_url *u, const char *text)
{
    struct zr_str one, two;
    struct zr_url again;

    zr_str_init(&one, NULL);
    zr_str_init(&two, NULL);
    fuzz_check(u->path[0] == '/' && !strstr(u->path, "/../") && !strstr(u->path, "/./"));
    fuzz_check(!strpbrk(u->path, "?# \\") && !strpbrk(u->host, "/?#@\\"));
    zr_url_put_key(&one, u, NULL);
    fuzz_check(zr_url_parse(&again, NULL, zr_str_text(&one), NULL) == ZARR_OK);
    fuzz_check(strcmp(again.scheme, u->scheme) == 0 && strcmp(again.host, u->host) == 0 &&
               strcmp(again.path, u->path) == 0 && again.port == u->port &&
               zr_streq(again.query, u->query) && !again.user_info);
    zr_url_put_key(&two, &again, NULL);
    fuzz_check(strcmp(zr_str_text(&one), zr_str_text(&two)) == 0);
    zr_url_deinit(&again);
    zr_str_clear(&one);
    zr_url_put_key(&one, u, text);
    if (zr_url_parse(&again, NULL, zr_str_text(&one), NULL) == ZARR_OK) {
        fuzz_check(strcmp(again.host, u->host) == 0 && zr_streq(again.query, u->query));
        zr_url_deinit(&again);
    }
    zr_str_deinit(&one);
    zr_str_deinit(&two);
}

/* Each parameter has no value, or one that is hidden. */
static void fuzz_shown(const char *text)
{
    struct zr_str shown;
    const char *value;

    zr_str_init(&shown, NULL);
    zr_url_put_shown(&shown, text);
    if (zr_url_scheme_bytes(text) > 0) {
        value = strchr(zr_str_text(&shown), '?');
        while (value && (value = strchr(value + 1, '=')) != NULL)
            fuzz_check(strncmp(value, "=***", 4) == 0 || strchr("&;#", value[1]));
    }
    zr_str_deinit(&shown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[4096];
    struct zr_url u;
    zarr_error err = {0};
    zarr_status st;

    if (size >= sizeof text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    st = zr_url_parse(&u, NULL, text, &err);
    fuzz_check(st == ZARR_OK || (st == ZARR_ERR_INVALID && err.message[0]));
    if (st == ZARR_OK)
        fuzz_parsed(&u, text);
    zr_url_deinit(&u);
    fuzz_shown(text);
    return 0;
}
