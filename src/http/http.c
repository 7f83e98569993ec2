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

/* ---- long ETags ---- */

enum {
    ETAG_MOST = 4096, /* bytes of an ETag that is kept */
    ETAG_PROBES = 8   /* places that an ETag can have */
};

struct zr_http_long_etag {
    zarr_store_version version;
    char text[];
};

static size_t etag_place(const zarr_store_version *v, size_t probe)
{
    return (zr_map_hash((const char *)v->bytes, sizeof v->bytes) + probe) %
           ZR_HTTP_ETAGS_MOST;
}

const char *zr_http_etag_find(const struct zr_http_reader *reader,
                              const zarr_store_version *v)
{
    for (size_t i = 0; i < ETAG_PROBES; i++) {
        const struct zr_http_long_etag *e = atomic_load(&reader->etag[etag_place(v, i)]);

        if (e && zr_store_version_equal(&e->version, v))
            return e->text;
    }
    return NULL;
}

void zr_http_etag_keep(struct zr_http_reader *reader, const zarr_store_version *v,
                       const char *etag)
{
    const size_t n = strlen(etag) + 1;
    struct zr_http_long_etag *e, *none = NULL;

    if (!zr_http_version_is_hash(v) || n > ETAG_MOST || zr_http_etag_find(reader, v))
        return;
    e = zr_malloc(reader->env.alloc, sizeof *e + n);
    if (!e)
        return;
    e->version = *v;
    memcpy(e->text, etag, n);
    for (size_t i = 0; i < ETAG_PROBES; i++, none = NULL)
        if (atomic_compare_exchange_strong(&reader->etag[etag_place(v, i)], &none, e))
            return;
    zr_free(reader->env.alloc, e);
}

void zr_http_reader_deinit(struct zr_http_reader *reader)
{
    for (size_t i = 0; i < ZR_HTTP_ETAGS_MOST; i++)
        zr_free(reader->env.alloc, atomic_load(&reader->etag[i]));
}

/* ---- the store ---- */

static void http_close(void *self)
{
    struct zr_http_store *s = self;
    const zarr_allocator *alloc = s->reader.env.alloc;

    zr_net_free(s->reader.net);
    zr_http_reader_deinit(&s->reader);
    zr_url_deinit(&s->url);
    zr_free(alloc, s);
}

/* Versions are strong ETags. A server without them has values without versions. */
static void http_caps(void *self, zarr_store_caps *out)
{
    ZR_UNUSED(self);
    out->flags = ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX | ZARR_STORE_CAP_LIST |
                 ZARR_STORE_CAP_VERSIONS | ZARR_STORE_CAP_COALESCES;
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

    zr_str_init(&origin, s->reader.env.alloc);
    zr_str_init(&path, s->reader.env.alloc);
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

void zr_http_count(void *self, zarr_store_counters *out)
{
    const struct zr_http_reader *reader = self;
    struct zr_net_stats stats;

    zr_net_stats_get(reader->net, &stats);
    out->requests = stats.requests;
    out->retries = stats.retries;
    out->bytes_sent = stats.out_bytes;
    out->bytes_received = stats.in_bytes;
}

static void http_put_url(const struct zr_http_reader *reader, struct zr_str *out,
                         const char *key)
{
    zr_url_put_key(out, &((const struct zr_http_store *)(const void *)reader)->url, key);
}

static zarr_status http_refuse(struct zr_http_reader *reader,
                               const struct zr_net_request *r, const char *body,
                               size_t body_bytes, enum zr_http_next *next,
                               zarr_error *err)
{
    const struct zr_http_store *s = (const void *)reader;
    const zarr_status st = zr_net_fail_status(err, r);

    ZR_UNUSED(body, body_bytes);
    *next = ZR_HTTP_FAIL;
    if (st == ZARR_ERR_DENIED && r->answer.status == 403 && s->denied_is_missing)
        return zr_fail(err, ZARR_ERR_NOT_FOUND, "no such key (HTTP 403)");
    return st;
}

static const struct zr_http_protocol http_protocol = {.put_url = http_put_url,
                                                      .refuse = http_refuse};

const zarr_store_vtable zr_http_vtable = {
    .struct_size = sizeof(zarr_store_vtable),
    .name = "http",
    .caps = http_caps,
    .submit = zr_http_submit,
    .cancel = zr_http_cancel,
    .list = zr_http_list,
    .place = http_place,
    .count = zr_http_count,
    .close = http_close,
};

zarr_status zr_http_open(void **self, const struct zr_store_env *env, const char *url,
                         const char *config, zarr_error *err)
{
    struct zr_http_store *s = zr_calloc(env->alloc, 1, sizeof *s);
    struct zr_http_own_option denied = {"denied_is_missing", NULL, NULL};
    const struct zr_http_own_options own = {"an HTTP store", &denied, 1};
    struct zr_http_options o = {0};
    zarr_status st = ZARR_OK;

    if (!s)
        return zr_fail_memory(err, sizeof *s);
    s->reader.env = *env;
    s->reader.protocol = &http_protocol;
    denied.flag = &s->denied_is_missing;
    ZR_TRY(zr_url_parse(&s->url, env->alloc, url, err));
    ZR_TRY(zr_http_options_read(&o, &own, config, s->url.user_info, env, err));
    ZR_TRY(zr_net_open(&s->reader.net, &o.net, err));
    *self = s;
    s = NULL;
out:
    zr_http_options_deinit(&o);
    if (s)
        http_close(s);
    return st;
}
