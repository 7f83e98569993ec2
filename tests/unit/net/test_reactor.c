/*
 * unit/net/test_reactor.c - the threads that carry out requests: how soon they notice a
 * cancellation, how they share slots and memory, what they leave to a forked child, and
 * how several of them end when the process exits.
 */
#include "unit/net/net_test.h"

#include "../../sanitizers.h"
#include "net/curl_int.h"
#include <sys/resource.h>
#include <unistd.h>

enum {
    REACTORS = 6,
    MANY = 200
};

static const char *server, *other;
static uint32_t descriptors; /* before there was a client */

static struct zr_net *open_client(uint32_t concurrency)
{
    struct zr_net_options o = test_options();

    o.stall_s = 60;
    o.concurrency = concurrency;
    return test_client(&o);
}

static struct zr_net_engine_stats engine_stats(void)
{
    struct zr_net_engine_stats s;

    zr_net_engine_stats_get(&s);
    return s;
}

/* Reactors beyond the first one start as load grows: here they have it. */
static void start_reactors(void)
{
    zr_net_engine.max_reactors = REACTORS;
    while (engine_stats().reactors < REACTORS) {
        for (uint32_t i = 0; i < engine_stats().reactors; i++)
            atomic_store(&zr_net_engine.reactor[i].busy, 1000);
        assert_int_equal(zr_net_engine_grow(NULL), ZARR_OK);
    }
}

/* ---- exit and fork ---- */

static struct flight exit_flight;

/* Runs after the reactors have ended. */
static void check_exit(void)
{
    if (atomic_load(&exit_flight.left) > 0)
        _exit(1);
}

/* Requests of a reactor that has ended do not stay with it, and none is given to it. Each
 * one ends. The first test: the child has libcurl for itself. */
static void test_exit(void **state)
{
    (void)state;
    SKIP_WITHOUT_THREADED_FORK();
    for (int i = 0; i < 10; i++) {
        const pid_t child = fork();

        if (child == 0) {
            struct zr_net *net;

            (void)atexit(check_exit);
            net = open_client(0);
            start_reactors();
            (void)flight_start(net, &exit_flight, server, 2 * MANY,
                               i % 2 ? "latency=2" : "id=exit&status=503&times=100");
            (void)usleep((unsigned)(20000 + i * 2000));
            exit(0);
        }
        expect_child(child);
    }
}

/* The child has no descriptor of libcurl: neither sockets nor those of its wake-ups. */
static void test_fork(void **state)
{
    struct zr_net *net;
    struct flight f;
    struct piece *p;
    pid_t child;

    (void)state;
    SKIP_WITHOUT_THREADED_FORK();
    net = open_client(0);
    start_reactors();
    p = flight_start(net, &f, server, MANY, "latency=100");
    child = fork();
    if (child == 0)
        _exit(count_entries("/proc/self/fd") == descriptors ? 0 : 1);
    expect_child(child);
    flight_wait(&f, p);
    assert_int_equal(atomic_load(&f.n_ok), MANY);
    zr_net_free(net);
}

/* ---- cancellation ---- */

struct relay {
    struct zr_net *net;
    struct zr_net_request r;
    struct zr_event first, go, last;
    zarr_status st;
    char url[200];
};

static void relay_init(struct relay *l, const char *path)
{
    *l = (struct relay){.net = open_client(0)};
    zr_event_init(&l->first);
    zr_event_init(&l->go);
    zr_event_init(&l->last);
    (void)snprintf(l->url, sizeof l->url, "%s%s", server, path);
    l->r = (struct zr_net_request){.method = "GET", .url = l->url, .tag = l, .user = l};
}

static void relay_deinit(struct relay *l)
{
    zr_net_request_deinit(&l->r);
    zr_event_deinit(&l->first);
    zr_event_deinit(&l->go);
    zr_event_deinit(&l->last);
    check_is_idle();
    zr_net_free(l->net);
}

static void relay_last(struct zr_net_request *r, zarr_status st, const zarr_error *err)
{
    struct relay *l = r->user;

    (void)err;
    l->st = st;
    zr_event_set(&l->last);
}

static void relay_cancel(struct zr_net_request *r, zarr_status st, const zarr_error *err)
{
    struct relay *l = r->user;

    (void)err;
    l->st = st;
    zr_net_cancel(l->net, l->url);
    zr_event_set(&l->last);
}

/* A cancellation that comes during a turn of the reactor is seen before it sleeps. */
static void test_cancel_soon(void **state)
{
    uint64_t best = UINT64_MAX;

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct relay waits, l;
        uint64_t begin;

        relay_init(&waits, "/9?latency=60000");
        waits.r.tag = l.url;
        waits.r.done = relay_last;
        relay_init(&l, "/9?latency=300");
        l.r.done = relay_cancel;
        begin = zr_now_ns();
        zr_net_submit(waits.net, &waits.r);
        zr_net_free(l.net);
        l.net = waits.net;
        zr_net_submit(l.net, &l.r);
        assert_true(zr_event_wait(&waits.last, begin + 20 * SECOND));
        assert_int_equal(waits.st, ZARR_ERR_CANCELLED);
        assert_true(zr_event_wait(&l.last, begin + 20 * SECOND));
        best = ZR_MIN(best, zr_now_ns() - begin);
        l.net = NULL;
        relay_deinit(&l);
        relay_deinit(&waits);
    }
    assert_true(best < SECOND * 8 / 10);
}

/* Also during the pause that a server asks for. */
static void test_cancel_pause(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct relay l;
        zarr_cancel cancel;

        relay_init(&l, "/9?status=503&retry_after=100");
        zr_cancel_init(&cancel, NULL);
        l.r.cancel = &cancel;
        l.r.done = relay_last;
        zr_net_submit(l.net, &l.r);
        for (int k = 0; engine_stats().waiting == 0; k++) {
            assert_true(k < 2000);
            (void)usleep(5000);
        }
        if (i == 0)
            zr_net_cancel(l.net, &l);
        else
            atomic_store(&cancel.set, true);
        assert_true(zr_event_wait(&l.last, zr_now_ns() + 20 * SECOND));
        assert_int_equal(l.st, ZARR_ERR_CANCELLED);
        relay_deinit(&l);
    }
}

/* As a store does whose operation takes two requests. */
static void relay_first(struct zr_net_request *r, zarr_status st, const zarr_error *err)
{
    struct relay *l = r->user;

    (void)err;
    l->st = st;
    zr_event_set(&l->first);
    (void)zr_event_wait(&l->go, UINT64_MAX);
    zr_net_request_deinit(r);
    (void)snprintf(l->url, sizeof l->url, "%s/9?latency=60000", server);
    r->done = relay_last;
    zr_net_submit(l->net, r);
}

/* A tag that is cancelled in done() is cancelled for the request that follows there. */
static void test_cancel_between(void **state)
{
    struct relay l;

    (void)state;
    relay_init(&l, "/9");
    l.r.done = relay_first;
    zr_net_submit(l.net, &l.r);
    assert_true(zr_event_wait(&l.first, zr_now_ns() + 60 * SECOND));
    assert_int_equal(l.st, ZARR_OK);
    zr_net_cancel(l.net, &l);
    zr_event_set(&l.go);
    assert_true(zr_event_wait(&l.last, zr_now_ns() + 30 * SECOND));
    assert_int_equal(l.st, ZARR_ERR_CANCELLED);
    relay_deinit(&l);
}

/* ---- slots, load, memory ---- */

static void set_max_active(uint32_t n)
{
    zr_mutex_lock(&zr_net_engine.mutex);
    zr_net_engine.max_active = n;
    zr_mutex_unlock(&zr_net_engine.mutex);
}

/* When all slots of the process are taken, hosts take turns. */
static void test_turns(void **state)
{
    struct zr_net *net = open_client(0);
    const uint32_t before = zr_net_engine.max_active;
    struct flight f, g;
    struct piece *p, *q;

    (void)state;
    set_max_active(4);
    p = flight_start(net, &f, server, MANY, "latency=20");
    q = flight_start(net, &g, other, 3, "");
    flight_wait(&g, q);
    assert_int_equal(atomic_load(&g.n_ok), 3);
    assert_true(atomic_load(&f.left) > MANY / 2);
    set_max_active(before);
    flight_wait(&f, p);
    assert_int_equal(atomic_load(&f.n_ok), MANY);
    zr_net_free(net);
}

/* The last client of a host that has the option decides. */
static void test_concurrency(void **state)
{
    static const uint32_t limits[] = {3, 40, 0, 5};
    struct zr_net *net;
    struct flight f;
    struct piece *p;

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(limits); i++) {
        net = open_client(limits[i]);
        p = flight_start(net, &f, other, 100, "latency=60000");
        assert_int_equal(engine_stats().active, limits[i] ? limits[i] : limits[i - 1]);
        zr_net_cancel(net, &f);
        flight_wait(&f, p);
        zr_net_free(net);
    }
}

static void set_busy(uint32_t first, uint32_t n, unsigned busy)
{
    for (uint32_t i = first; i < n; i++)
        atomic_store(&zr_net_engine.reactor[i].busy, busy);
}

/* One reactor at first, one more when all that there are have too much to do, and no more
 * than cores. */
static int grow_in_child(void)
{
    struct zr_net *net;
    struct flight f;
    uint32_t most;

    net = open_client(0);
    most = zr_net_engine.max_reactors;
    if (most < 1 || most > zr_cpu_count() || engine_stats().reactors != 0)
        return 1;
    flight_wait(&f, flight_start(net, &f, server, 1, ""));
    if (engine_stats().reactors != 1)
        return 2;
    zr_net_engine.max_reactors = REACTORS;
    for (uint32_t n = 1; n < REACTORS; n++) {
        set_busy(0, n, 1000);
        set_busy(n - 1, n, 0); /* one that has time */
        if (zr_net_engine_grow(NULL) != ZARR_OK || engine_stats().reactors != n)
            return 3;
        while (engine_stats().reactors == n) { /* a new one sets it to 0 once */
            set_busy(0, n, 1000);
            if (zr_net_engine_grow(NULL) != ZARR_OK)
                return 4;
        }
        if (engine_stats().reactors != n + 1)
            return 5;
    }
    set_busy(0, REACTORS, 1000);
    if (zr_net_engine_grow(NULL) != ZARR_OK || engine_stats().reactors != REACTORS)
        return 6;
    zr_net_free(net);
    return 0;
}

static void test_growth(void **state)
{
    pid_t child;

    (void)state;
    SKIP_WITHOUT_THREADED_FORK();
    child = fork();
    if (child == 0)
        exit(grow_in_child());
    expect_child(child);
}

/* Requests use at most half of the descriptors that the process may open. */
static int send_with_few_descriptors(void)
{
    const struct rlimit few = {80, 80};
    struct zr_net *net;
    struct flight f;
    struct piece *p;
    uint32_t most;

    if (setrlimit(RLIMIT_NOFILE, &few) != 0)
        return 1;
    net = open_client(ZR_NET_CONCURRENCY_MAX);
    p = flight_start(net, &f, server, MANY, "latency=60000");
    most = engine_stats().active;
    if (most != 40 || engine_stats().queued != MANY - 40)
        return 2;
    zr_net_cancel(net, &f);
    flight_wait(&f, p);
    flight_wait(&f, flight_start(net, &f, server, MANY, ""));
    if (atomic_load(&f.n_ok) != MANY)
        return 3;
    zr_net_free(net);
    return 0;
}

static void test_few_descriptors(void **state)
{
    pid_t child;

    (void)state;
    SKIP_WITHOUT_THREADED_FORK();
    child = fork();
    if (child == 0)
        exit(send_with_few_descriptors());
    expect_child(child);
}

/* A reactor that sleeps is not busy. */
static void test_busy(void **state)
{
    struct zr_net *net = open_client(0);
    struct flight f;

    (void)state;
    flight_wait(&f, flight_start(net, &f, server, 1, ""));
    for (uint32_t i = 0; i < engine_stats().reactors; i++)
        atomic_store(&zr_net_engine.reactor[i].busy, 1000);
    flight_wait(&f, flight_start(net, &f, server, MANY, ""));
    (void)usleep(300000);
    for (uint32_t i = 0; i < engine_stats().reactors; i++)
        assert_true(atomic_load(&zr_net_engine.reactor[i].busy) < 100);
    zr_net_free(net);
}

static void count_done(struct zr_net_request *r, zarr_status st, const zarr_error *err)
{
    struct flight *f = r->user;

    (void)err;
    atomic_fetch_add(&f->n_cancelled, st == ZARR_ERR_CANCELLED);
    if (atomic_fetch_sub(&f->left, 1) == 1)
        zr_event_set(&f->all);
}

/* libcurl has a receive buffer for each request, and the length of an answer is not known
 * before: all of them together stay within a bound. */
static void test_buffers(void **state)
{
    struct zr_net *net = open_client(ZR_NET_CONCURRENCY_MAX);
    struct zr_net_request *r = calloc(MANY, sizeof *r);
    struct flight f;
    uint64_t before;
    char url[200];

    (void)state;
    assert_non_null(r);
    (void)snprintf(url, sizeof url, "%s/9?latency=60000", other);
    for (int round = 0; round < 2; round++) { /* 0: handles and sockets are made */
        before = memory_in_use();
        zr_event_init(&f.all);
        atomic_store(&f.left, MANY);
        atomic_store(&f.n_cancelled, 0);
        for (int i = 0; i < MANY; i++) {
            r[i] = (struct zr_net_request){
                .method = "GET", .url = url, .tag = &f, .done = count_done, .user = &f};
            zr_net_submit(net, &r[i]);
        }
        for (int i = 0; engine_stats().sockets < MANY; i++) {
            assert_true(i < 2000);
            (void)usleep(5000);
        }
        (void)usleep(100000);
        if (memory_in_use() > before + (48 << 20))
            fail_msg("%" PRIu64 " bytes more", memory_in_use() - before);
        zr_net_cancel(net, &f);
        assert_true(zr_event_wait(&f.all, zr_now_ns() + 60 * SECOND));
        assert_int_equal(atomic_load(&f.n_cancelled), MANY);
        zr_event_deinit(&f.all);
        for (int i = 0; i < MANY; i++)
            zr_net_request_deinit(&r[i]);
    }
    if (memory_in_use() > before + (8 << 20))
        fail_msg("%" PRIu64 " bytes stay", memory_in_use() - before);
    free(r);
    zr_net_free(net);
}

static int setup(void **state)
{
    (void)skip_without_server(state);
    server = getenv("ZR_SERVER");
    other = getenv("ZR_SERVER_2");
    descriptors = count_entries("/proc/self/fd");
    return 0;
}

int main(void)
{
    /* the first ones have one reactor */
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_exit),
                                       cmocka_unit_test(test_growth),
                                       cmocka_unit_test(test_few_descriptors),
                                       cmocka_unit_test(test_cancel_soon),
                                       cmocka_unit_test(test_cancel_pause),
                                       cmocka_unit_test(test_cancel_between),
                                       cmocka_unit_test(test_fork),
                                       cmocka_unit_test(test_turns),
                                       cmocka_unit_test(test_concurrency),
                                       cmocka_unit_test(test_busy),
                                       cmocka_unit_test(test_buffers)};

    return cmocka_run_group_tests(tests, setup, NULL);
}
