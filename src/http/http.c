/*
 * http/http.c - the functions of the store, and its opening.
 * Thread class: shared.
 */
#include "http/http_int.h"

#include <string.h>

/* Operations that the library may have in flight; the engine decides how many of them a
 * host gets. */
enum {
    PARALLEL = 256
};

static void http_close(void *self)
{
    struct zr_http_store *s = self;
    const zarr_allocator *alloc = s->env.alloc;

    zr_net_free(s->net);
    zr_url_deinit(&s->url);
    zr_free(alloc, s);
}

/* Versions are strong ETags. A server without them has values without versions. */
static void http_caps(void *self, zarr_store_caps *out)
{
    ZR_UNUSED(self);
    out->flags = ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX | ZARR_STORE_CAP_LIST |
                 ZARR_STORE_CAP_VERSIONS;
    out->parallel = PARALLEL;
}

/* Of two queries of one path a server may make two places, but hardly does: they are
 * credentials, or pick a version. */
static void http_place(void *self, zarr_store_place_fn fn, void *user)
{
    const struct zr_http_store *s = self;
    zarr_store_place place = {.struct_size = sizeof place, .scheme = s->url.scheme};
    const size_t scheme = strlen(s->url.scheme) + strlen("://");
    struct zr_str origin, path;

    zr_str_init(&origin, s->env.alloc);
    zr_str_init(&path, s->env.alloc);
    zr_url_put_origin(&origin, &s->url);
    if (zr_url_decode(&path, s->url.path, strlen(s->url.path)) && !origin.failed &&
        !path.failed) {
        place.endpoint = zr_str_text(&origin) + scheme;
        place.prefix = zr_str_text(&path);
        fn(user, &place);
    }
    zr_str_deinit(&origin);
    zr_str_deinit(&path);
}

static void http_count(void *self, zarr_store_counters *out)
{
    const struct zr_http_store *s = self;
    struct zr_net_stats stats;

    zr_net_stats_get(s->net, &stats);
    out->requests = stats.requests;
    out->retries = stats.retries;
    out->bytes_sent = stats.out_bytes;
    out->bytes_received = stats.in_bytes;
}

const zarr_store_vtable zr_http_vtable = {
    .struct_size = sizeof(zarr_store_vtable),
    .name = "http",
    .caps = http_caps,
    .submit = zr_http_submit,
    .cancel = zr_http_cancel,
    .list = zr_http_list,
    .place = http_place,
    .count = http_count,
    .close = http_close,
};

zarr_status zr_http_open(void **self, const struct zr_store_env *env, const char *url,
                         const char *config, zarr_error *err)
{
    struct zr_http_store *s = zr_calloc(env->alloc, 1, sizeof *s);
    struct zr_http_options o = {0};
    zarr_status st = ZARR_OK;

    if (!s)
        return zr_fail_memory(err, sizeof *s);
    s->env = *env;
    ZR_TRY(zr_url_parse(&s->url, env->alloc, url, err));
    ZR_TRY(zr_http_options_read(&o, config, s->url.user_info, env, err));
    s->denied_is_missing = o.denied_is_missing;
    ZR_TRY(zr_net_open(&s->net, &o.net, err));
    *self = s;
    s = NULL;
out:
    zr_http_options_deinit(&o);
    if (s)
        http_close(s);
    return st;
}
