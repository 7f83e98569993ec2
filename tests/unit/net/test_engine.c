/*
 * unit/net/test_engine.c - the engine below many requests: limits of hosts, pauses,
 * cancellation, forks and exit with requests in flight, and thousands of requests with
 * faults, after which no socket, thread or memory is left. ZR_NET_SOAK: how many.
 */
#include "unit/net/net_test.h"

#include "../../sanitizers.h"
#include "net/curl_int.h"
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    FLIGHT = 64,
    SOAK_BYTES = 70000
};

static const char *server;

/* ---- many requests at once ---- */

static void test_many(void **state)
{
    struct zr_net *net = test_client(NULL);
    struct zr_net_stats before, stats;
    uint64_t connections;
    struct flight f;
    struct piece *p;

    (void)state;
    connections = server_count(net, "connections");
    zr_net_stats_get(net, &before);
    p = flight_start(net, &f, server, 500, "");
    flight_wait(&f, p);
    assert_int_equal(atomic_load(&f.n_ok), 500);
    check_is_idle();
    zr_net_stats_get(net, &stats);
    assert_int_equal(stats.requests - before.requests, 500);
    assert_true(stats.in_bytes - before.in_bytes >= UINT64_C(500) * 16384);
    assert_true(server_count(net, "connections") - connections <= ZR_NET_CONCURRENCY_MAX);
    zr_net_free(net);
}

static void test_cancel(void **state)
{
    struct zr_net *net = test_client(NULL);
    struct flight f, g;
    struct piece *p, *q;
    const uint64_t begin = zr_now_ns();

    (void)state;
    p = flight_start(net, &f, server, 200, "latency=60000"); /* more than run at once */
    q = flight_start(net, &g, server, 1, "latency=300");     /* less than the stall */
    zr_net_cancel(net, &f);
    flight_wait(&f, p);
    assert_int_equal(atomic_load(&f.n_cancelled), 200);
    flight_wait(&g, q); /* another tag */
    assert_int_equal(atomic_load(&g.n_ok), 1);
    assert_true(zr_now_ns() - begin < 20 * SECOND);
    check_is_idle();
    zr_net_free(net);
}

static void test_cancel_object(void **state)
{
    struct zr_net *net = test_client(NULL);
    struct trial *t = calloc(1, sizeof *t);
    zarr_cancel cancel;

    (void)state;
    zr_cancel_init(&cancel, NULL);
    atomic_store(&cancel.set, true);
    trial_init(t, server, "/9?latency=60000");
    t->r.cancel = &cancel;
    assert_int_equal(trial_run(t, net), ZARR_ERR_CANCELLED);
    zr_net_request_deinit(&t->r);
    zr_attempt_begin();
    trial_init(t, server, "/9");
    assert_int_equal(trial_run(t, net), ZARR_ERR_CANCELLED);
    assert_false(zr_attempt_end());
    zr_net_request_deinit(&t->r);
    free(t);
    zr_net_free(net);
}

/* A request that waits for a slot ends, too, if its object is set. */
static void test_cancel_in_queue(void **state)
{
    struct zr_net_options o = test_options();
    struct zr_net *net;
    struct trial *t = calloc(1, sizeof *t);
    struct flight f;
    struct piece *p;
    zarr_cancel cancel;

    (void)state;
    o.concurrency = 1;
    net = test_client(&o);
    server = getenv("ZR_SERVER_2"); /* where no test has raised the limit */
    p = flight_start(net, &f, server, 3, "latency=60000");
    zr_cancel_init(&cancel, NULL);
    atomic_store(&cancel.set, true);
    trial_init(t, server, "/9");
    t->r.cancel = &cancel;
    assert_int_equal(trial_run(t, net), ZARR_ERR_CANCELLED);
    zr_net_request_deinit(&t->r);
    zr_net_cancel(net, &f);
    flight_wait(&f, p);
    server = getenv("ZR_SERVER");
    check_is_idle();
    free(t);
    zr_net_free(net);
}

struct hold {
    unsigned looks; /* that it waits for */
    zarr_cancel *cancel;
    struct zr_net *net; /* whose requests with this tag the last look cancels */
};

static bool must_wait(void *user)
{
    struct hold *h = user;

    if (h->looks == 0)
        return false;
    if (--h->looks > 0)
        return true;
    if (h->cancel)
        atomic_store(&h->cancel->set, true);
    if (h->net)
        zr_net_cancel(h->net, h);
    return h->cancel || h->net;
}

static void expect_hold(struct zr_net *net, struct hold h, uint32_t flags, zarr_status st)
{
    struct zr_net_stats before, after;
    struct trial *t = calloc(1, sizeof *t);

    zr_net_stats_get(net, &before);
    trial_init(t, server, "/9");
    t->r.flags = flags;
    t->r.cancel = h.cancel;
    t->r.must_wait = must_wait;
    t->r.header_user = &h;
    t->r.tag = &h;
    assert_int_equal(trial_run(t, net), st);
    zr_net_stats_get(net, &after);
    assert_int_equal(zr_net_count_tries(&t->r), st == ZARR_OK ? 1 : 0);
    assert_int_equal(after.requests - before.requests, st == ZARR_OK ? 1 : 0);
    zr_net_request_deinit(&t->r);
    free(t);
}

/* A request that must wait sends nothing, and ends by a cancellation or its time. */
static void test_hold(void **state)
{
    struct zr_net *net = test_client(NULL);
    zarr_cancel cancel;

    (void)state;
    zr_cancel_init(&cancel, NULL);
    expect_hold(net, (struct hold){.looks = 4}, 0, ZARR_OK);
    expect_hold(net, (struct hold){.looks = 3, .cancel = &cancel}, 0, ZARR_ERR_CANCELLED);
    expect_hold(net, (struct hold){.looks = 3, .net = net}, 0, ZARR_ERR_CANCELLED);
    expect_hold(net, (struct hold){.looks = UINT32_MAX}, ZR_NET_IS_SHORT,
                ZARR_ERR_CANCELLED);
    check_is_idle();
    zr_net_free(net);
}

/* ---- limits of a host ---- */

static uint32_t learn(struct zr_net_host *h, int n, uint64_t bytes, uint64_t ns,
                      uint64_t *now)
{
    struct zr_net_transfer waits = {0};

    zr_net_list_add(&h->queue, &waits);
    for (int i = 0; i < n; i++) {
        *now += ns;
        zr_net_host_learn(h, bytes, false, *now);
    }
    zr_net_list_remove(&waits);
    return h->limit;
}

static void test_host(void **state)
{
    struct zr_net_host h = {0};
    uint64_t now = SECOND;
    uint32_t limit;

    (void)state;
    zr_net_host_reset(&h, 32);
    /* latency only: an answer takes 30 ms / limit */
    for (int i = 0; i < 4; i++)
        (void)learn(&h, (int)h.limit, 65536, 30000000 / h.limit, &now);
    assert_int_equal(h.limit, 256);
    /* no more bandwidth: it stays */
    zr_net_host_reset(&h, 32);
    limit = learn(&h, 1000, 65536, 1000000, &now);
    assert_true(limit >= 32 && limit < 160);
    assert_int_equal(learn(&h, 1000, 65536, 1000000, &now), limit);
    /* too much to do: half, once for all answers of that moment */
    for (int i = 0; i < 10; i++)
        zr_net_host_learn(&h, 0, true, now);
    assert_int_equal(h.limit, limit / 2);
    (void)learn(&h, 1, 1, 3 * SECOND, &now);
    assert_true(learn(&h, 500, 65536, 100000, &now) > limit / 2);
    /* few requests: it does not grow */
    zr_net_host_reset(&h, 32);
    for (int i = 0; i < 1000; i++)
        zr_net_host_learn(&h, 65536, false, now += 1000);
    assert_int_equal(h.limit, 32);
}

static void test_overload(void **state)
{
    struct zr_net *net = test_client(NULL);
    struct flight f;
    struct piece *p;

    (void)state;
    p = flight_start(net, &f, server, 300, "id=overload&times=100&status=503");
    flight_wait(&f, p);
    assert_int_equal(atomic_load(&f.n_ok), 300);
    check_is_idle();
    zr_net_free(net);
}

/* ---- pauses before a repetition ---- */

/* The pause before a try is random, below a bound that doubles, and not shorter than what
 * the server asks for. */
static void test_pauses(void **state)
{
    struct zr_net_request r = {.method = "GET", .url = "http://h/x"};
    struct zr_net_options o = test_options();
    struct zr_net_transfer *p;
    struct zr_net *one;

    (void)state;
    o.backoff_ms = 100;
    one = test_client(&o);
    assert_int_equal(zr_net_transfer_create(&p, one, &r, NULL), ZARR_OK);
    p->easy = zr_curl.easy_init();
    for (uint32_t tries = 1; tries <= 9; tries++) {
        const uint64_t bound = UINT64_C(100000000) << (tries - 1);
        const uint64_t most = ZR_MIN(bound, ZR_NET_BACKOFF_MAX_MS * UINT64_C(1000000));
        uint64_t least = UINT64_MAX;

        for (int i = 0; i < 200; i++) {
            const uint64_t before = zr_now_ns();
            const uint64_t asked = i == 0 ? 7 * SECOND : 0;

            zr_net_answer_reset(&r.answer, NULL);
            r.answer.status = 503;
            r.answer.retry_after_s = asked ? 7 : UINT64_MAX;
            p->phase = ZR_NET_DROP;
            p->tries = tries;
            assert_int_equal(zr_net_decide(p, CURLE_OK), ZR_NET_REPEAT);
            assert_true(p->due_ns >= before + asked);
            assert_true(p->due_ns <= zr_now_ns() + asked + most);
            if (i > 0)
                least = ZR_MIN(least, p->due_ns - before);
        }
        assert_true(least < most / 2); /* else once in 2^199 runs */
    }
    zr_curl.easy_cleanup(p->easy);
    zr_net_transfer_free(p);
    zr_net_answer_deinit(&r.answer);
    zr_net_free(one);
}

/* The pauses that a server asks for have a bound, all together. */
static void test_long_pauses(void **state)
{
    struct zr_net_request r = {.method = "GET", .url = "http://h/x"};
    struct zr_net *net = test_client(NULL);
    struct zr_net_transfer *p;

    (void)state;
    assert_int_equal(zr_net_transfer_create(&p, net, &r, NULL), ZARR_OK);
    p->easy = zr_curl.easy_init();
    for (int i = 0; i < 3; i++) {
        zr_net_answer_reset(&r.answer, NULL);
        r.answer.status = 503;
        r.answer.retry_after_s = 140;
        p->phase = ZR_NET_DROP;
        assert_int_equal(zr_net_decide(p, CURLE_OK), i < 2 ? ZR_NET_REPEAT : ZR_NET_END);
    }
    zr_curl.easy_cleanup(p->easy);
    zr_net_transfer_free(p);
    zr_net_answer_deinit(&r.answer);
    zr_net_free(net);
}

/* ---- forks and exit ---- */

/* The first test: no client was made before, so the child has all libraries for itself.
 */
static void test_exit(void **state)
{
    pid_t child;

    (void)state;
    SKIP_WITHOUT_THREADED_FORK();
    child = fork();
    if (child == 0) {
        struct flight f;

        (void)flight_start(test_client(NULL), &f, server, 100, "latency=60000");
        (void)usleep(50000);
        exit(0);
    }
    expect_child(child);
}

/* Open sockets of IPv4, which are those of requests. */
static int count_connections(void)
{
    int n = 0;

    for (int fd = 0; fd < 4096; fd++) {
        struct sockaddr_storage a = {0};
        socklen_t bytes = sizeof a;

        n +=
            getsockname(fd, (struct sockaddr *)&a, &bytes) == 0 && a.ss_family == AF_INET;
    }
    return n;
}

static int child_main(struct zr_net *net, struct flight *f, const char *from)
{
    struct zr_net_engine_stats s;
    struct trial *t = calloc(1, sizeof *t);

    zr_net_engine_stats_get(&s);
    if (!t || s.reactors || s.active || s.queued || s.sockets)
        return 1;
    if (count_connections() > 0)
        return 4;
    if (zr_event_wait(&f->all, UINT64_MAX)) /* the parent's requests are not here */
        return 2;
    trial_init(t, from, "/1000");
    if (zr_net_run(net, &t->r, &t->err) != ZARR_OK || t->buffer.n != 1000)
        return 3;
    zr_net_request_deinit(&t->r);
    free(t);
    return 0;
}

/* A child that ended the TLS sessions of its copies would break the parent's connections,
 * so that requests are repeated. */
static void check_forks(const char *from)
{
    struct zr_net_options o = test_options();
    struct zr_net_stats stats;
    struct zr_net *net;
    struct flight f;
    struct piece *p;

    o.ca_file = getenv("ZR_SERVER_CA");
    net = test_client(&o);
    for (int i = 0; i < 5; i++) {
        pid_t child;

        p = flight_start(net, &f, from, 300, i % 2 ? "latency=50" : "");
        if (i > 0)
            assert_true(count_connections() > 0); /* of the flight before */
        child = fork();
        if (child == 0)
            _exit(child_main(net, &f, from));
        expect_child(child);
        flight_wait(&f, p);
        assert_int_equal(atomic_load(&f.n_ok), 300);
    }
    zr_net_stats_get(net, &stats);
    assert_int_equal(stats.retries, 0);
    check_is_idle();
    zr_net_free(net);
}

static void test_fork(void **state)
{
    (void)state;
    SKIP_WITHOUT_THREADED_FORK();
    check_forks(server);
    check_forks(server_url("ZR_SERVER_TLS"));
}

/* ---- addresses ---- */

/* After a public address, a redirect opens no connection to one that is not, and uses
 * none that is open. */
static void test_untrusted(void **state)
{
    static const struct sockaddr_in loopback = {.sin_family = AF_INET,
                                                .sin_addr.s_addr = 0x0100007F};
    struct zr_net *net = test_client(NULL);
    struct zr_net_request r = {.method = "GET", .url = "http://h/x"};
    struct curl_sockaddr a = {
        .family = AF_INET, .socktype = SOCK_STREAM, .addrlen = sizeof loopback};
    struct zr_net_transfer *t;
    char private[] = "10.0.0.1", public[] = "8.8.8.8";
    int fd;

    (void)state;
    memcpy(&a.addr, &loopback, sizeof loopback);
    assert_int_equal(zr_net_transfer_create(&t, net, &r, NULL), ZARR_OK);
    fd = zr_net_on_open(t, CURLSOCKTYPE_IPCXN, &a);
    assert_true(fd >= 0);
    assert_int_equal(zr_net_on_close(NULL, fd), 0);
    assert_int_equal(zr_net_on_request(t, private, private, 80, 80), CURL_PREREQFUNC_OK);
    t->was_public = true;
    assert_int_equal(zr_net_on_open(t, CURLSOCKTYPE_IPCXN, &a), CURL_SOCKET_BAD);
    assert_int_equal(t->st, ZARR_ERR_IO);
    t->st = ZARR_OK;
    assert_int_equal(zr_net_on_request(t, public, public, 80, 80), CURL_PREREQFUNC_OK);
    assert_int_equal(zr_net_on_request(t, private, private, 80, 80),
                     CURL_PREREQFUNC_ABORT);
    zr_net_transfer_free(t);
    zr_net_free(net);
}

/* ---- many requests with faults ---- */

struct soak {
    struct zr_net *net;
    struct zr_event all;
    atomic_uint left, started, wrong;
    uint32_t n;
};
struct soldier {
    struct soak *soak;
    struct zr_net_request r;
    struct zr_net_buffer buffer;
    uint64_t first, bytes;
    bool may_fail;
    char url[200];
    uint8_t data[SOAK_BYTES];
};

static const char *const soak_faults[] = {"status=503",        "status=429&retry_after=0",
                                          "reset=-1",          "reset=100",
                                          "close=5000",        "lost=1",
                                          "status=500",        "latency=20",
                                          "chunked=1",         "to=%2F1000000",
                                          "informs=2",         "rate=5000000",
                                          "encoding=x",        "whole=1",
                                          "endless=1",         "headers=300",
                                          "range=bytes+1-2/3", "length=70001",
                                          "stall=5000"};

static void soldier_next(struct soldier *s);

static void soldier_done(struct zr_net_request *r, zarr_status st, const zarr_error *err)
{
    struct soldier *s = r->user;
    bool ok = st == ZARR_OK && r->answer.status == 206 && s->buffer.n == s->bytes;

    (void)err;
    for (size_t i = 0; ok && i < s->bytes; i++)
        ok = s->data[i] == test_byte(s->first + i);
    if (!ok && !(s->may_fail && (st == ZARR_ERR_IO || r->answer.status == 200)))
        atomic_fetch_add(&s->soak->wrong, 1);
    zr_net_request_deinit(r);
    soldier_next(s);
}

static void soldier_next(struct soldier *s)
{
    struct soak *k = s->soak;
    const uint32_t i = atomic_fetch_add(&k->started, 1);
    const uint64_t dice = i * UINT64_C(2654435761) % 1000003;
    const char *fault = dice % 3 ? "" : soak_faults[dice / 3 % ZR_COUNT(soak_faults)];

    if (strncmp(fault, "stall", 5) == 0 && i % 512)
        fault = ""; /* it costs seconds */
    if (i >= k->n) {
        if (atomic_fetch_sub(&k->left, 1) == 1)
            zr_event_set(&k->all);
        return;
    }
    s->first = dice % 900000;
    s->bytes = 1 + dice * 7 % SOAK_BYTES;
    s->may_fail = *fault && strstr("encoding=x whole=1 endless=1 headers=300 "
                                   "range=bytes+1-2/3 length=70001",
                                   fault);
    (void)snprintf(s->url, sizeof s->url, "%s/1000000?id=soak%u&times=2&%s", server, i,
                   fault);
    s->buffer = (struct zr_net_buffer){.bytes = s->data, .cap = sizeof s->data};
    s->r = (struct zr_net_request){.method = "GET",
                                   .url = s->url,
                                   .flags = ZR_NET_RANGE,
                                   .range_first = s->first,
                                   .range_bytes = s->bytes,
                                   .done = soldier_done,
                                   .user = s};
    zr_net_buffer_sink(&s->r.sink, &s->buffer);
    zr_net_submit(k->net, &s->r);
}

static void soak(struct zr_net *net, uint32_t n)
{
    struct soldier *s = calloc(FLIGHT, sizeof *s);
    struct soak k = {.net = net, .n = n};

    assert_non_null(s);
    zr_event_init(&k.all);
    atomic_store(&k.left, FLIGHT);
    for (int i = 0; i < FLIGHT; i++) {
        s[i].soak = &k;
        soldier_next(&s[i]);
    }
    assert_true(zr_event_wait(&k.all, UINT64_MAX));
    zr_event_deinit(&k.all);
    assert_int_equal(atomic_load(&k.wrong), 0);
    free(s);
}

static void test_soak(void **state)
{
    const char *const wanted = getenv("ZR_NET_SOAK");
    const uint32_t n = wanted ? (uint32_t)strtoul(wanted, NULL, 10) : 2000;
    struct zr_net *net = test_client(NULL);
    struct zr_net_engine_stats stats;
    uint64_t memory;

    (void)state;
    soak(net, n / 4); /* connections and caches are there afterwards */
    memory = memory_in_use();
    soak(net, n - n / 4);
    check_is_idle();
    if (memory_in_use() > memory + (4 << 20))
        fail_msg("%" PRIu64 " bytes more", memory_in_use() - memory);
    zr_net_engine_stats_get(&stats);
    /* the tests before used two servers, and their connections are kept */
    assert_true(stats.sockets <= 2 * ZR_NET_CONCURRENCY_MAX);
    /* with those of libcurl's wake-ups and of the test itself */
    assert_true(count_entries("/proc/self/fd") <=
                stats.sockets + 2 * stats.reactors + 20);
    assert_true(count_entries("/proc/self/task") <=
                stats.reactors + 2 + zr_cpu_count() + 2);
    zr_net_free(net);
}

static int setup(void **state)
{
    server = getenv("ZR_SERVER");
    return skip_without_server(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exit),          cmocka_unit_test(test_fork),
        cmocka_unit_test(test_many),          cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_cancel_object), cmocka_unit_test(test_cancel_in_queue),
        cmocka_unit_test(test_pauses),        cmocka_unit_test(test_long_pauses),
        cmocka_unit_test(test_host),          cmocka_unit_test(test_overload),
        cmocka_unit_test(test_untrusted),     cmocka_unit_test(test_hold),
        cmocka_unit_test(test_soak)};

    return cmocka_run_group_tests(tests, setup, NULL);
}
