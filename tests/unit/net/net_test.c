#include "unit/net/net_test.h"

struct zr_net_options test_options(void)
{
    return (struct zr_net_options){.backoff_ms = 1, .stall_s = 1, .connect_ms = 5000};
}

struct zr_net *test_client(const struct zr_net_options *opts)
{
    const struct zr_net_options usual = test_options();
    struct zr_net *net = NULL;
    zarr_error err = {0};

    if (zr_net_open(&net, opts ? opts : &usual, &err) != ZARR_OK)
        fail_msg("%s", err.message);
    return net;
}

uint8_t test_byte(uint64_t i)
{
    i %= 65536;
    return (uint8_t)(i * 131 + (i >> 8));
}

void trial_init(struct trial *t, const char *server, const char *fmt, ...)
{
    va_list args;
    size_t n;

    t->r = (struct zr_net_request){.method = "GET", .url = t->url};
    t->buffer = (struct zr_net_buffer){.bytes = t->bytes, .cap = sizeof t->bytes};
    zr_net_buffer_sink(&t->r.sink, &t->buffer);
    n = (size_t)snprintf(t->url, sizeof t->url, "%s", server);
    va_start(args, fmt);
    (void)vsnprintf(t->url + n, sizeof t->url - n, fmt, args);
    va_end(args);
}

zarr_status trial_run(struct trial *t, struct zr_net *net)
{
    t->err = (zarr_error){0};
    t->st = zr_net_run(net, &t->r, &t->err);
    assert_true(t->st == ZARR_OK || t->err.message[0]);
    return t->st;
}

void trial_check(const struct trial *t, uint64_t first, size_t n)
{
    assert_int_equal(t->buffer.n, n);
    for (size_t i = 0; i < n; i++)
        if (t->bytes[i] != test_byte(first + i))
            fail_msg("byte %zu is wrong", i);
}

uint64_t server_count(struct zr_net *net, const char *name)
{
    struct trial *t = calloc(1, sizeof *t);
    char key[64];
    const char *at;
    uint64_t n = 0;

    trial_init(t, server_url("ZR_SERVER"), "/_stats");
    assert_int_equal(trial_run(t, net), ZARR_OK);
    t->bytes[t->buffer.n] = '\0';
    (void)snprintf(key, sizeof key, "\"%s\": ", name);
    at = strstr((const char *)t->bytes, key);
    if (at)
        n = strtoull(at + strlen(key), NULL, 10);
    zr_net_request_deinit(&t->r);
    free(t);
    return n;
}

const char *server_url(const char *name)
{
    const char *url = getenv(name);

    if (!url)
        skip();
    return url;
}
