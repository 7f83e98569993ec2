/*
 * s3/place.c - the URLs of a bucket: of AWS in a region, or of an endpoint, with the
 * bucket in the host's name (virtual-host style) or in the path. A server may correct the
 * region, once. It never names a host. Thread class: shared.
 */
#include "s3/s3_int.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

bool zr_s3_is_loopback(const char *host)
{
    uint8_t address[4];

    if (strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0)
        return true;
    return inet_pton(AF_INET, host, address) == 1 && address[0] == 127;
}

static bool is_region(const char *text)
{
    const size_t n = strlen(text);

    return n > 0 && n < ZR_S3_REGION_ROOM &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == n;
}

/* Appends the URL of the bucket, with a slash at the end. */
static void put_bucket(struct zr_str *out, const struct zr_s3_store *s,
                       const char *region)
{
    const char *const bucket = s->url.host;
    const char *const in_host = s->is_path_style ? "" : bucket;
    const char *const dot = s->is_path_style ? "" : ".";

    if (!s->endpoint.host) {
        zr_str_printf(out, "https://%s%ss3.%s.amazonaws.com%s/", in_host, dot, region,
                      zr_starts_with(region, "cn-") ? ".cn" : "");
    } else {
        zr_str_printf(out, "%s://%s%s%s:%" PRIu32 "%s", s->endpoint.scheme, in_host, dot,
                      s->endpoint.host, s->endpoint.port, s->endpoint.path);
        if (!zr_ends_with(s->endpoint.path, "/"))
            zr_str_putc(out, '/');
    }
    if (s->is_path_style)
        zr_str_printf(out, "%s/", bucket);
}

zarr_status zr_s3_place_init(struct zr_s3_place *out, const struct zr_s3_store *s,
                             const char *region, zarr_error *err)
{
    struct zr_str text;
    zarr_status st = ZARR_OK;

    *out = (struct zr_s3_place){.region = ""};
    if (!is_region(region))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "the region is no name of letters, digits and '-'");
    (void)snprintf(out->region, sizeof out->region, "%s", region);
    zr_str_init(&text, s->reader.env.alloc);
    put_bucket(&text, s, region);
    ZR_TRY(zr_str_status(&text, err));
    ZR_TRY(zr_url_parse(&out->bucket, text.alloc, zr_str_text(&text), err));
    zr_s3_encode(&text, zr_str_text(&s->prefix), true);
    ZR_TRY(zr_str_status(&text, err));
    st = zr_url_parse(&out->root, text.alloc, zr_str_text(&text), err);
out:
    zr_str_deinit(&text);
    if (st != ZARR_OK)
        zr_s3_place_deinit(out);
    return st;
}

void zr_s3_place_deinit(struct zr_s3_place *p)
{
    zr_url_deinit(&p->root);
    zr_url_deinit(&p->bucket);
}

const struct zr_s3_place *zr_s3_place_get(const struct zr_s3_store *s)
{
    return &s->place[atomic_load(&s->at)];
}

const char *zr_s3_place_region(const struct zr_s3_store *s, const char *host)
{
    const unsigned at = atomic_load(&s->at);

    return s->place[at == 1 && strcmp(s->place[1].bucket.host, host) == 0].region;
}

bool zr_s3_place_correct(struct zr_s3_store *s, const char *region)
{
    bool is_new;

    if (!is_region(region))
        return false;
    zr_mutex_lock(&s->mutex);
    is_new = atomic_load(&s->at) == 0 && strcmp(s->place[0].region, region) != 0;
    if (is_new && zr_s3_place_init(&s->place[1], s, region, NULL) == ZARR_OK)
        atomic_store(&s->at, 1);
    zr_mutex_unlock(&s->mutex);
    return atomic_load(&s->at) == 1 && strcmp(s->place[1].region, region) == 0;
}
