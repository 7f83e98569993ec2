#include "unit/net/net_test.h"

#include <dirent.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CHILD_SECONDS = 20
};

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

    if (!url) {
        print_message("skipped: the server has no %s\n", name);
        skip();
    }
    return url;
}

int skip_without_server(void **state)
{
    (void)state;
    if (getenv("ZR_SERVER") && getenv("ZR_SERVER_2"))
        return 0;
    printf("skipped: tests/support/scripted_server.py starts this program\n");
    exit(77);
}

/* ---- many requests at once ---- */

static void piece_done(struct zr_net_request *r, zarr_status st, const zarr_error *err)
{
    struct piece *p = r->user;
    struct flight *f = p->flight;
    bool ok = st == ZARR_OK && r->answer.status == 206 && p->buffer.n == sizeof p->bytes;

    (void)err;
    for (size_t i = 0; ok && i < sizeof p->bytes; i++)
        ok = p->bytes[i] == test_byte(p->first + i);
    atomic_fetch_add(&f->n_ok, ok);
    atomic_fetch_add(&f->n_cancelled, st == ZARR_ERR_CANCELLED);
    zr_net_request_deinit(r);
    if (atomic_fetch_sub(&f->left, 1) == 1)
        zr_event_set(&f->all);
}

struct piece *flight_start(struct zr_net *net, struct flight *f, const char *server,
                           uint32_t n, const char *query)
{
    struct piece *p = calloc(n, sizeof *p);

    assert_non_null(p);
    zr_event_init(&f->all);
    atomic_init(&f->left, n);
    atomic_init(&f->n_ok, 0);
    atomic_init(&f->n_cancelled, 0);
    for (uint32_t i = 0; i < n; i++) {
        p[i].flight = f;
        p[i].first = i * UINT64_C(20000);
        p[i].buffer = (struct zr_net_buffer){.bytes = p[i].bytes, .cap = 16384};
        (void)snprintf(p[i].url, sizeof p[i].url, "%s/100000000?%s", server, query);
        p[i].r = (struct zr_net_request){.method = "GET",
                                         .url = p[i].url,
                                         .flags = ZR_NET_RANGE,
                                         .range_first = p[i].first,
                                         .range_bytes = 16384,
                                         .tag = f,
                                         .done = piece_done,
                                         .user = &p[i]};
        zr_net_buffer_sink(&p[i].r.sink, &p[i].buffer);
        zr_net_submit(net, &p[i].r);
    }
    return p;
}

void flight_wait(struct flight *f, struct piece *p)
{
    assert_true(zr_event_wait(&f->all, zr_now_ns() + 60 * SECOND));
    zr_event_deinit(&f->all);
    free(p);
}

void check_is_idle(void)
{
    struct zr_net_engine_stats s;

    zr_net_engine_stats_get(&s);
    assert_int_equal(s.active + s.queued + s.waiting, 0);
}

/* ---- the process ---- */

void expect_child(pid_t child)
{
    int status = -1;

    assert_true(child > 0);
    for (int i = 0; i < CHILD_SECONDS * 100; i++) {
        if (waitpid(child, &status, WNOHANG) == child) {
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
            return;
        }
        (void)usleep(10000);
    }
    (void)kill(child, SIGKILL);
    fail_msg("the child hangs");
}

uint32_t count_entries(const char *folder)
{
    DIR *d = opendir(folder);
    uint32_t n = 0;

    assert_non_null(d);
    while (readdir(d))
        n++;
    (void)closedir(d);
    return n;
}

uint64_t memory_in_use(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return 0;
#else
    const struct mallinfo2 m = mallinfo2();

    return m.uordblks + m.hblkhd;
#endif
}
