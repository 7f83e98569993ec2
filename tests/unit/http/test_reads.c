/*
 * unit/http/test_reads.c - reads of one submit(): how many requests they are, that each
 * gets its bytes whatever the server does, and that a fault of a request is one of all
 * its reads. The query of the URL makes the faults (tests/support/scripted_server.py).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <pthread.h>

#include "../../sanitizers.h"
#include "http/http.h"
#include "sched/sched.h"

#define KEY   "1000000"
#define TOTAL UINT64_C(1000000) /* bytes of the value of KEY */
enum {
    READS = 10,
    STEP = 5000,
    PART = 3000
};

static struct zr_memory_registry memory;
static struct zr_store_env env;
static const char *server;
static zarr_store *store;
static zarr_error err;

static struct {
    zarr_store_op op[READS], *ops[READS];
    uint8_t bytes[READS][PART];
    atomic_uint left;
    struct zr_event all;
    char message[ZARR_ERROR_MESSAGE_BYTES];
} reads;

static int setup(void **state)
{
    (void)state;
    server = getenv("ZR_SERVER");
    if (!server) {
        printf("skipped: tests/support/scripted_server.py starts this program\n");
        exit(77);
    }
    assert_int_equal(zr_memory_registry_init(&memory, NULL, &err), ZARR_OK);
    env.memory = &memory;
    zr_limits_default(&env.limits);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    zr_memory_registry_deinit(&memory);
    return 0;
}

/* ---- a store whose requests have this query ---- */

static void open_store(const char *query)
{
    const zarr_store_options opts = {.struct_size = sizeof opts,
                                     .flags = ZARR_STORE_READ_ONLY};
    char url[200];
    void *self = NULL;

    (void)snprintf(url, sizeof url, "%s/?%s", server, query);
    if (zr_http_open(&self, &env, url, "{\"tries\": 3}", &err) != ZARR_OK)
        fail_msg("%s", err.message);
    assert_int_equal(
        zr_store_open_custom_url(&store, &env, &zr_http_vtable, self, url, &opts, &err),
        ZARR_OK);
}

static zarr_store_counters counted;

static uint64_t close_store(void)
{
    counted = (zarr_store_counters){.struct_size = sizeof counted};
    zarr_store_read_counters(store, &counted);
    zarr_store_free(store);
    return counted.requests;
}

/* ---- reads ---- */

static void set_read(size_t i, uint64_t offset, uint64_t length)
{
    memset(reads.bytes[i], 0xEE, PART);
    reads.ops[i] = &reads.op[i];
    reads.op[i] = (zarr_store_op){
        .verb = ZARR_STORE_GET,
        .key = KEY,
        .offset = offset,
        .length = length,
        .mem = {.device_type = ZARR_DEVICE_CPU, .handle = reads.bytes[i], .bytes = PART}};
}

/* Near ranges, which are one request. */
static void set_reads(void)
{
    for (size_t i = 0; i < READS; i++)
        set_read(i, 1000 + i * STEP, PART);
}

static void one_done(void *arg, zarr_store_op *op, const zarr_error *said)
{
    (void)arg;
    assert_true(op->status == ZARR_OK || said);
    if (said)
        (void)snprintf(reads.message, sizeof reads.message, "%s", said->message);
    if (atomic_fetch_sub(&reads.left, 1) == 1)
        zr_event_set(&reads.all);
}

static void submit(size_t n)
{
    atomic_store(&reads.left, (unsigned)n);
    zr_event_init(&reads.all);
    zarr_store_submit(store, reads.ops, n, one_done, &reads);
}

static void wait_for_all(void)
{
    assert_true(zr_event_wait(&reads.all, UINT64_MAX));
    zr_event_deinit(&reads.all);
}

static void run(size_t n)
{
    submit(n);
    wait_for_all();
}

/* The read has all bytes of its range, and no other byte of its memory is changed. */
static void check_read(size_t i)
{
    const zarr_store_op *op = &reads.op[i];
    const uint64_t from =
        op->offset == ZARR_STORE_SUFFIX ? TOTAL - op->length : op->offset;
    const uint64_t room = from < TOTAL ? TOTAL - from : 0;
    const uint64_t n = ZR_MIN(ZR_MIN(op->length, (uint64_t)PART), room);

    if (op->status != ZARR_OK || op->done_bytes != n)
        fail_msg("read %zu: %s, %" PRIu64 " bytes; %s", i, zarr_status_text(op->status),
                 op->done_bytes, reads.message);
    if (n < op->length)
        assert_int_equal(op->object_bytes, TOTAL);
    for (uint64_t b = 0; b < PART; b++) {
        const uint64_t at = (from + b) % 65536;

        if (reads.bytes[i][b] != (b < n ? (uint8_t)(at * 131 + (at >> 8)) : 0xEE))
            fail_msg("read %zu: byte %" PRIu64 " is wrong", i, b);
    }
}

static void check_reads(size_t n)
{
    for (size_t i = 0; i < n; i++)
        check_read(i);
}

/* ---- tests ---- */

enum {
    OPENERS = 8
};
static pthread_barrier_t openers;

struct opener {
    pthread_t thread;
    zarr_status st;
    uint8_t bytes[PART];
    zarr_error err;
};

static void *open_and_read(void *arg)
{
    const zarr_store_options opts = {.struct_size = sizeof opts,
                                     .flags = ZARR_STORE_READ_ONLY};
    struct opener *o = arg;
    zarr_store_op op = {.verb = ZARR_STORE_GET,
                        .key = KEY,
                        .offset = 7,
                        .length = PART,
                        .mem = {ZARR_DEVICE_CPU, 0, o->bytes, 0, PART}};
    zarr_store *own = NULL;
    void *self = NULL;

    (void)pthread_barrier_wait(&openers);
    o->st = zr_http_open(&self, &env, server, NULL, &o->err);
    if (o->st == ZARR_OK)
        o->st = zr_store_open_custom_url(&own, &env, &zr_http_vtable, self, server, &opts,
                                         &o->err);
    if (o->st == ZARR_OK)
        o->st = zr_store_run_one(own, &op, &o->err);
    zarr_store_free(own);
    return NULL;
}

/* The first test: libcurl is loaded and initialised while several threads open their
 * first URL at once. */
static void test_first_urls_at_once(void **state)
{
    static struct opener o[OPENERS];

    (void)state;
#ifdef __linux__
    assert_null(dlopen("libcurl.so.4", RTLD_NOW | RTLD_NOLOAD));
#endif
    assert_int_equal(pthread_barrier_init(&openers, NULL, OPENERS), 0);
    for (size_t i = 0; i < OPENERS; i++)
        assert_int_equal(pthread_create(&o[i].thread, NULL, open_and_read, &o[i]), 0);
    for (size_t i = 0; i < OPENERS; i++) {
        assert_int_equal(pthread_join(o[i].thread, NULL), 0);
        if (o[i].st != ZARR_OK)
            fail_msg("%s", o[i].err.message);
        for (uint64_t b = 0; b < PART; b++)
            assert_int_equal(o[i].bytes[b], (uint8_t)((7 + b) * 131 + ((7 + b) >> 8)));
    }
    (void)pthread_barrier_destroy(&openers);
}

static void test_near_reads_are_one_request(void **state)
{
    /* what the server does, and how many requests follow */
    static const struct {
        const char *query;
        uint64_t requests;
    } row[] = {
        {"", 1},
        {"chunked=1", 1},
        {"whole=1", 1},
        {"whole=1&chunked=1", 1},
        {"id=a&times=1&reset=9000", 2}, /* all bytes come again */
        {"id=b&times=2&close=20000", 3},
        {"id=c&times=1&reset=-1", 2},
        {"id=d&times=1&status=503", 2},
        {"id=e&times=1&whole=1&chunked=1&reset=30000", 2},
    };

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(row); i++) {
        uint64_t requests;

        open_store(row[i].query);
        set_reads();
        run(READS);
        check_reads(READS);
        requests = close_store();
        if (requests != row[i].requests)
            fail_msg("%s: %" PRIu64 " requests", row[i].query, requests);
        assert_int_equal(counted.retries, requests - 1);
        /* libcurl does not count the piece in which it stops */
        assert_in_range(counted.bytes_received, (READS - 1) * STEP, requests * TOTAL);
        assert_in_range(counted.bytes_sent, 1, requests * 1000);
    }
}

/* A fork waits for the locks of the engine. */
static void log_and_fork(void *user, uint32_t level, const char *text)
{
    unsigned *n = user;
    const pid_t child = fork();

    if (child == 0)
        _exit(0);
    (void)waitpid(child, NULL, 0);
    *n += level == ZARR_LOG_WARN && strstr(text, "ignores ranges");
}

static void test_a_warning_holds_no_lock(void **state)
{
    unsigned n = 0;

    (void)state;
    SKIP_WITHOUT_THREADED_FORK();
    env.log = (struct zr_log){log_and_fork, &n, ZARR_LOG_WARN};
    open_store("whole=1");
    env.log = (struct zr_log){0};
    for (int i = 0; i < 2; i++) {
        set_reads();
        run(READS);
        check_reads(READS);
    }
    assert_int_equal(n, 1);
    (void)close_store();
}

static void test_a_fault_is_one_of_all_reads(void **state)
{
    static const struct {
        const char *query;
        zarr_status st;
        const char *text;
    } row[] = {
        {"status=404", ZARR_ERR_NOT_FOUND, KEY ": the server answered HTTP 404"},
        {"status=403", ZARR_ERR_DENIED, "403 (Forbidden)"},
        {"id=f&times=1&status=416", ZARR_ERR_IO, "refuses a range"},
        {"status=503", ZARR_ERR_IO, "to each of 3 tries"},
        {"range=bytes%200-47999/1000000", ZARR_ERR_IO, "another range"},
        {"encoding=gzip", ZARR_ERR_IO, "gzip"},
        {"close=47000", ZARR_ERR_IO, KEY},
    };

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(row); i++) {
        open_store(row[i].query);
        set_reads();
        run(READS);
        for (size_t r = 0; r < READS; r++)
            if (reads.op[r].status != row[i].st || !strstr(reads.message, row[i].text))
                fail_msg("%s: %s, %s", row[i].query, zarr_status_text(reads.op[r].status),
                         reads.message);
        (void)close_store();
    }
}

static void test_places(void **state)
{
    (void)state;
    open_store("");
    set_read(0, TOTAL - 10, PART); /* ends after the value */
    set_read(1, TOTAL - PART - 10, PART);
    set_read(2, TOTAL, 5);
    set_read(3, TOTAL + 700, 5);
    set_read(4, TOTAL - PART, PART); /* overlaps with others */
    set_read(5, TOTAL - 100, 7);
    set_read(6, TOTAL - 100, 7);
    run(7);
    check_reads(7);
    assert_int_equal(close_store(), 1);

    open_store("");
    set_read(0, TOTAL + 5, 5); /* 416 */
    set_read(1, TOTAL + 900, 5);
    run(2);
    check_reads(2);
    assert_int_equal(close_store(), 1);

    open_store("");
    for (size_t i = 0; i < 4; i++) /* the longest has all of the others */
        set_read(i, ZARR_STORE_SUFFIX, 10 + i * 700);
    run(4);
    check_reads(4);
    assert_int_equal(close_store(), 1);

    open_store("");
    set_read(0, 0, ZARR_STORE_TO_END);
    set_read(1, 20, 30);
    run(2);
    check_reads(2);
    assert_int_equal(reads.op[0].object_bytes, TOTAL);
    assert_int_equal(close_store(), 1);
}

/* The length, if only the end of a body tells it. */
static void test_an_untold_length(void **state)
{
    static const char *const query[] = {"whole=1&chunked=1", "chunked=1"};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(query); i++) {
        open_store(query[i]);
        set_read(0, 0, ZARR_STORE_TO_END);
        set_read(1, 20, 30);
        set_read(2, 50000, 30);
        run(3);
        check_reads(3);
        assert_int_equal(reads.op[0].object_bytes, TOTAL);
        assert_int_equal(close_store(), 1);
    }
    open_store("whole=1&chunked=1");
    set_read(0, TOTAL - 5, 10);
    run(1);
    check_reads(1);
    set_read(0, ZARR_STORE_SUFFIX, 100); /* HEAD, which does not tell; no range does */
    run(1);
    assert_int_equal(reads.op[0].status, ZARR_ERR_UNSUPPORTED);
    (void)close_store();
}

static void test_far_reads_are_several_requests(void **state)
{
    (void)state;
    open_store("");
    set_read(0, 0, 5);
    reads.op[0].key = "9000000";
    set_read(1, 4000000, 5);
    reads.op[1].key = "9000000";
    set_read(2, 0, 5);
    run(3);
    assert_int_equal(close_store(), 3);
}

/* The largest block that the library has asked for. */
static _Atomic(size_t) largest;

static void count_block(size_t bytes)
{
    size_t was = atomic_load(&largest);

    while (bytes > was && !atomic_compare_exchange_weak(&largest, &was, bytes))
        continue;
}

static void *count_alloc(void *user, size_t bytes)
{
    (void)user;
    count_block(bytes);
    return malloc(bytes);
}

static void *count_realloc(void *user, void *block, size_t bytes)
{
    (void)user;
    count_block(bytes);
    return realloc(block, bytes);
}

static void count_free(void *user, void *block)
{
    (void)user;
    free(block);
}

/* libcurl's callback copies to the memory of the operations: no block is as long as the
 * body. */
static void test_one_copy(void **state)
{
    static const zarr_allocator counting = {
        .alloc = count_alloc, .realloc = count_realloc, .free = count_free};
    static uint8_t body[TOTAL];

    (void)state;
    env.alloc = &counting;
    open_store("");
    atomic_store(&largest, 0);
    for (size_t i = 0; i < 2; i++) { /* one request for both */
        set_read(i, i * TOTAL / 2, TOTAL / 2);
        reads.op[i].mem.handle = body + i * TOTAL / 2;
        reads.op[i].mem.bytes = TOTAL / 2;
    }
    run(2);
    for (size_t i = 0; i < TOTAL; i++)
        if (body[i] != (uint8_t)(i % 65536 * 131 + (i % 65536 >> 8)))
            fail_msg("byte %zu is wrong", i);
    assert_int_equal(close_store(), 1);
    assert_in_range(atomic_load(&largest), 1, TOTAL / 20);
    env.alloc = NULL;
}

static void test_stat(void **state)
{
    (void)state;
    open_store("");
    for (size_t i = 0; i < 3; i++) {
        set_read(i, 0, 0);
        reads.op[i].verb = ZARR_STORE_STAT;
        reads.op[i].flags = ZARR_STORE_OP_WANT_VERSION;
    }
    reads.op[2].key = "7";
    run(1); /* the library tries what the store has */
    run(3); /* HEAD, of each value once */
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(reads.op[i].status, ZARR_OK);
        assert_int_equal(reads.op[i].object_bytes, i < 2 ? TOTAL : 7);
        assert_true(reads.op[i].version.bytes[0] > 0);
    }
    set_read(1, 10, 5); /* a read tells the length, too */
    reads.op[0].object_bytes = 0;
    run(2);
    check_read(1);
    assert_int_equal(reads.op[0].object_bytes, TOTAL);
    assert_int_equal(close_store(), 4);
}

static void test_versions(void **state)
{
    zarr_store_version v;

    (void)state;
    open_store("");
    set_reads();
    for (size_t i = 0; i < READS; i++)
        reads.op[i].flags = i == 3 ? ZARR_STORE_OP_WANT_VERSION : 0;
    run(READS);
    check_reads(READS);
    v = reads.op[3].version;
    assert_memory_equal(v.bytes, "\x09\"1000000\"", 10);
    set_reads();
    for (size_t i = 0; i < READS; i++) {
        reads.op[i].flags = ZARR_STORE_OP_IF_VERSION;
        reads.op[i].version = v;
    }
    reads.op[4].version.bytes[1 + 3] = '7'; /* of another value: a request of its own */
    run(READS);
    for (size_t i = 0; i < READS; i++)
        assert_int_equal(reads.op[i].status, i == 4 ? ZARR_ERR_CONFLICT : ZARR_OK);
    assert_int_equal(close_store(), 3);

    open_store("etag=count"); /* changes with each answer */
    set_reads();
    for (size_t i = 0; i < READS; i++) {
        reads.op[i].flags = ZARR_STORE_OP_IF_VERSION;
        reads.op[i].version = v;
    }
    run(READS);
    for (size_t i = 0; i < READS; i++)
        assert_int_equal(reads.op[i].status, ZARR_ERR_CONFLICT);
    (void)close_store();
}

static void test_cancel(void **state)
{
    (void)state;
    open_store("latency=60000");
    set_reads();
    submit(READS);
    zarr_store_cancel(store, &reads);
    wait_for_all();
    for (size_t i = 0; i < READS; i++)
        assert_int_equal(reads.op[i].status, ZARR_ERR_CANCELLED);
    (void)close_store();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_urls_at_once),
        cmocka_unit_test(test_near_reads_are_one_request),
        cmocka_unit_test(test_a_warning_holds_no_lock),
        cmocka_unit_test(test_a_fault_is_one_of_all_reads),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_an_untold_length),
        cmocka_unit_test(test_far_reads_are_several_requests),
        cmocka_unit_test(test_one_copy),
        cmocka_unit_test(test_stat),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_cancel),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
