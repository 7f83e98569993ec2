/*
 * unit/pipe/test_rounds.c - round trips of a read on a store with latency. The store
 * answers all operations that wait for it at once, after a pause, and counts how often it
 * did: that is the number of round trips. A read of shards takes one for the indexes and
 * one for the chunks, whatever the number of threads; a missing chunk is asked for once.
 * A write takes one for old values, if it needs any, and one for all new ones (two if the
 * store has locks of its own, and only some of the units need them).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <zarrc/plugin/plugin.h>
#include <zarrc/zarrc.h>

static zarr_error err;
#define assert_ok(call)                                                                  \
    do {                                                                                 \
        if ((call) != ZARR_OK)                                                           \
            fail_msg("%s: %s", #call, err.message);                                      \
    } while (0)

/* ---- a store with latency ----------------------------------------------- */

enum {
    MOST = 8192,
    PAUSE_NS = 10 * 1000 * 1000
};

struct waiting {
    zarr_store_op *op;
    void (*done)(void *arg, zarr_store_op *op, const zarr_error *e);
    void *arg;
};
struct distant {
    zarr_store *inner;
    uint32_t flags; /* its capabilities */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t more;
    struct waiting queue[MOST];
    uint32_t n;
    bool stop;
    const char *other_writer; /* after a GET of this key, its value is written again */
    /* counted */
    uint32_t rounds, n_ops, n_gets, most_at_once;
};

/* The other writer: stores the value that a GET has just read. */
static void write_again(struct distant *d, const zarr_store_op *get)
{
    zarr_store_op op = {.verb = ZARR_STORE_PUT, .key = get->key, .mem = get->mem};
    zarr_error e = ZARR_ERROR_INIT;

    if (!d->other_writer || get->verb != ZARR_STORE_GET ||
        strcmp(get->key, d->other_writer) != 0)
        return;
    d->other_writer = NULL;
    op.mem.bytes = op.length = get->done_bytes;
    assert_ok(zarr_store_run(d->inner, &op, &e));
}

static void *answer(void *arg)
{
    static struct waiting now[MOST];
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    struct distant *d = arg;

    for (;;) {
        uint32_t n = 0;

        pthread_mutex_lock(&d->mutex);
        while (d->n == 0 && !d->stop)
            pthread_cond_wait(&d->more, &d->mutex);
        pthread_mutex_unlock(&d->mutex);
        nanosleep(&pause, NULL); /* what comes meanwhile is in flight, too */
        pthread_mutex_lock(&d->mutex);
        n = d->n;
        memcpy(now, d->queue, n * sizeof *now);
        d->n = 0;
        d->rounds += n > 0;
        d->most_at_once = n > d->most_at_once ? n : d->most_at_once;
        if (n == 0 && d->stop) {
            pthread_mutex_unlock(&d->mutex);
            return NULL;
        }
        pthread_mutex_unlock(&d->mutex);
        for (uint32_t i = 0; i < n; i++) {
            zarr_error e = ZARR_ERROR_INIT;

            (void)zarr_store_run(d->inner, now[i].op, &e);
            write_again(d, now[i].op);
            now[i].done(now[i].arg, now[i].op, &e);
        }
    }
}

static void
distant_submit(void *self, zarr_store_op **ops, uint64_t n,
               void (*done)(void *arg, zarr_store_op *op, const zarr_error *e), void *arg)
{
    struct distant *d = self;

    pthread_mutex_lock(&d->mutex);
    assert_true(d->n + n <= MOST);
    for (uint64_t i = 0; i < n; i++) {
        assert_true(ops[i]->flags < 1u << 16); /* no flag of the library's own */
        d->n_ops++;
        d->n_gets += ops[i]->verb == ZARR_STORE_GET;
        d->queue[d->n++] = (struct waiting){ops[i], done, arg};
    }
    pthread_cond_signal(&d->more);
    pthread_mutex_unlock(&d->mutex);
}

static void distant_caps(void *self, zarr_store_caps *out)
{
    const struct distant *d = self;

    out->flags = d->flags;
}

static zarr_status distant_lock(void *self, const char *key, const zarr_cancel *cancel,
                                void **lock, zarr_error *e)
{
    return zarr_store_lock(((struct distant *)self)->inner, key, cancel, lock, e);
}

static void distant_unlock(void *self, void *lock)
{
    zarr_store_unlock(((struct distant *)self)->inner, lock);
}

static const zarr_store_vtable distant_vtable = {.struct_size = sizeof distant_vtable,
                                                 .name = "distant",
                                                 .caps = distant_caps,
                                                 .submit = distant_submit,
                                                 .lock = distant_lock,
                                                 .unlock = distant_unlock};

/* ---- arrays ------------------------------------------------------------- */

static zarr_context *ctx;
static pthread_mutex_t trace_mutex = PTHREAD_MUTEX_INITIALIZER;
static char traced[4096]; /* the last line */

/* Two requests may call it at once. */
static void trace(void *user, uint32_t level, const char *text)
{
    (void)user;
    if (level != ZARR_LOG_TRACE)
        return;
    pthread_mutex_lock(&trace_mutex);
    snprintf(traced, sizeof traced, "%s", text);
    pthread_mutex_unlock(&trace_mutex);
}

static zarr_store *memory, *far;
static struct distant d;

enum {
    N = 256 /* elements along a dimension */
};
static int32_t elements[N * N], got[N * N];
static const int64_t whole[] = {N, N};

static zarr_tensor tensor_of(int32_t *data)
{
    zarr_tensor t;

    zarr_tensor_host(&t, data, sizeof elements, 2, whole);
    return t;
}

static void open_stores(uint32_t caps)
{
    zarr_context_options o = {.struct_size = sizeof o,
                              .n_threads = 2,
                              .log = trace,
                              .log_level = ZARR_LOG_TRACE};

    assert_ok(zarr_context_create(&ctx, &o, &err));
    assert_ok(zarr_store_open(&memory, ctx, "memory:", NULL, &err));
    memset(&d, 0, sizeof d);
    d.inner = memory;
    d.flags = caps;
    pthread_mutex_init(&d.mutex, NULL);
    pthread_cond_init(&d.more, NULL);
    assert_int_equal(pthread_create(&d.thread, NULL, answer, &d), 0);
    assert_ok(zarr_store_open_custom(&far, ctx, &distant_vtable, &d, NULL, &err));
}

static void close_stores(void)
{
    zarr_store_free(far);
    pthread_mutex_lock(&d.mutex);
    d.stop = true;
    pthread_cond_signal(&d.more);
    pthread_mutex_unlock(&d.mutex);
    pthread_join(d.thread, NULL);
    zarr_store_free(memory);
    zarr_context_free(ctx);
}

/* 16 shards of 64 inner chunks; with nested: of 8, each with 8 chunks. Without shards:
 * 1,024 chunks. */
enum kind {
    CHUNKS,
    SHARDS,
    SHARDS_AT_START,
    NESTED,
    N_KINDS
};

static zarr_array *make_array(enum kind kind)
{
    static const char nested[] =
        "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[32,16],"
        "\"codecs\":[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":"
        "[8,8],\"codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
        "],\"index_codecs\":[{\"name\":\"bytes\",\"configuration\":{\"endian\":"
        "\"little\"}}]}}],\"index_codecs\":[{\"name\":\"bytes\",\"configuration\":{"
        "\"endian\":\"little\"}}]}}]";
    const uint64_t shape[] = {N, N}, chunk[] = {8, 8}, shard[] = {64, 64};
    zarr_array_spec spec = {.struct_size = sizeof spec,
                            .ndim = 2,
                            .shape = shape,
                            .chunk_shape = kind == NESTED ? shard : chunk,
                            .data_type = "int32"};
    zarr_array *a = NULL, *b = NULL;
    zarr_tensor t = tensor_of(elements);

    if (kind == SHARDS || kind == SHARDS_AT_START)
        spec.shard_shape = shard;
    if (kind == SHARDS_AT_START)
        spec.flags = ZARR_SPEC_INDEX_AT_START;
    if (kind == NESTED)
        spec.codecs = nested;
    for (size_t i = 0; i < (size_t)N * N; i++)
        elements[i] = (int32_t)i + 1;
    assert_ok(zarr_array_create(&a, memory, "a", &spec, NULL, &err));
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &err));
    assert_ok(zarr_array_open(&b, far, "a", NULL, &err));
    zarr_array_free(a);
    d.rounds = d.n_ops = d.n_gets = d.most_at_once = 0;
    return b;
}

/* One for each level of indexes, and one for the chunks. */
static const uint32_t rounds[N_KINDS] = {1, 2, 2, 3};

static void read_whole(zarr_array *a, uint32_t threads)
{
    zarr_io_options o = {.struct_size = sizeof o, .max_threads = threads};
    zarr_tensor t = tensor_of(got);

    memset(got, 0, sizeof got);
    d.rounds = d.n_ops = d.n_gets = 0;
    assert_ok(zarr_array_read(a, NULL, &t, &o, &err));
}

static void test_rounds(void **state)
{
    static const uint32_t all_caps[] = {ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX,
                                        ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX |
                                            ZARR_STORE_CAP_CONDITIONAL};
    static const uint32_t gets[N_KINDS] = {1024, 32, 32, 16 + 16 * 8 + 16};

    (void)state;
    for (size_t c = 0; c < 2; c++)
        for (int kind = 0; kind < N_KINDS; kind++)
            for (uint32_t threads = 1; threads <= 2; threads++) {
                zarr_array *a = NULL;

                open_stores(all_caps[c]);
                a = make_array((enum kind)kind);
                read_whole(a, threads);
                assert_memory_equal(got, elements, sizeof got);
                assert_int_equal(d.rounds, rounds[kind]);
                assert_int_equal(d.n_gets, gets[kind]);
                assert_int_equal(d.n_ops, d.n_gets);
                zarr_array_free(a);
                close_stores();
            }
}

/* A read of parts of all shards, and four crops in one request, take as few. */
static void test_partial(void **state)
{
    static int32_t crop[4][100 * 90];
    const int64_t crop_shape[] = {100, 90};
    const uint64_t n[] = {100, 90};

    (void)state;
    for (int kind = 0; kind < N_KINDS; kind++) {
        const int64_t some[] = {N / 16, N / 16};
        zarr_selection *sel = NULL, *box[4];
        zarr_io_part part[4] = {{0}};
        zarr_tensor t, crops[4];
        zarr_array *a = NULL;

        open_stores(ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX);
        a = make_array((enum kind)kind);
        assert_ok(
            zarr_selection_parse(&sel, 2, zarr_array_shape(a), "5::16, 3::16", &err));
        zarr_tensor_host(&t, got, sizeof got, 2, some);
        assert_ok(zarr_array_read(a, sel, &t, NULL, &err));
        assert_int_equal(d.rounds, rounds[kind]);
        for (int i = 0; i < 256; i++)
            assert_int_equal(got[i], elements[(i / 16 * 16 + 5) * N + i % 16 * 16 + 3]);
        zarr_selection_free(sel);
        d.rounds = d.n_gets = 0;
        for (int i = 0; i < 4; i++) {
            const uint64_t at[] = {30 * (uint64_t)i, 50 * (uint64_t)i};

            assert_ok(zarr_selection_box(&box[i], 2, zarr_array_shape(a), at, n, &err));
            zarr_tensor_host(&crops[i], crop[i], sizeof crop[i], 2, crop_shape);
            part[i] = (zarr_io_part){.selection = box[i], .tensor = &crops[i]};
        }
        assert_ok(zarr_array_read_many(a, part, 4, NULL, &err));
        assert_int_equal(d.rounds, rounds[kind]);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(crop[i][0], elements[30 * i * N + 50 * i]);
            assert_int_equal(crop[i][8999], elements[(30 * i + 99) * N + 50 * i + 89]);
            zarr_selection_free(box[i]);
        }
        zarr_array_free(a);
        close_stores();
    }
}

/* Missing chunks and shards cost no second request, but one look at the document. */
static void test_missing(void **state)
{
    (void)state;
    for (int kind = 0; kind < N_KINDS; kind++) {
        const uint64_t missing[][2] = {{0, 0}, {3, 2}, {1, 3}};
        zarr_array *a = NULL, *b = NULL;

        open_stores(ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX);
        a = make_array((enum kind)kind);
        assert_ok(zarr_array_open(&b, memory, "a", NULL, &err));
        for (size_t i = 0; i < 3; i++)
            assert_ok(zarr_array_chunk_erase(b, missing[i], &err));
        read_whole(a, 2);
        assert_int_equal(got[0], 0);
        assert_int_equal(got[N * N - 1], N * N);
        assert_int_equal(d.rounds, rounds[kind] + 1);
        if (kind == CHUNKS)
            assert_int_equal(d.n_gets, 1024 + 1);
        if (kind == SHARDS)
            assert_int_equal(d.n_gets, 16 + 13 + 1);
        zarr_array_free(b);
        zarr_array_free(a);
        close_stores();
    }
}

/* A write sends the PUTs of many units at once, between two looks at the document. */
static void test_write(void **state)
{
    (void)state;
    for (int kind = 0; kind < N_KINDS; kind++) {
        zarr_io_options o = {.struct_size = sizeof o, .max_threads = 2};
        zarr_tensor t = tensor_of(elements);
        zarr_array *a = NULL, *b = NULL;

        open_stores(ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX | ZARR_STORE_CAP_WRITE);
        a = make_array((enum kind)kind);
        for (size_t i = 0; i < (size_t)N * N; i++)
            elements[i] = kind + (int32_t)i / 64 * 64; /* the first chunks are empty */
        assert_ok(zarr_array_write(a, NULL, &t, &o, &err));
        assert_int_equal(d.rounds, 3);
        assert_non_null(strstr(traced, "a: wave 1 of a write: "));
        assert_non_null(strstr(traced, kind == CHUNKS ? " 1024 units" : " 16 units"));
        assert_ptr_equal(zarr_array_context(a), ctx);
        assert_ptr_equal(zarr_store_context(far), ctx);
        assert_int_equal(d.n_ops, (kind == CHUNKS ? 1024 : 16) + 2);
        assert_ok(zarr_array_open(&b, memory, "a", NULL, &err));
        t = tensor_of(got);
        assert_ok(zarr_array_read(b, NULL, &t, NULL, &err));
        assert_memory_equal(got, elements, sizeof got);
        zarr_array_free(b);
        zarr_array_free(a);
        close_stores();
    }
}

/* ---- units that are written in part ----------------------------------------------- */

static const uint32_t part_caps[] = {
    ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX | ZARR_STORE_CAP_WRITE,
    ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX | ZARR_STORE_CAP_WRITE |
        ZARR_STORE_CAP_CONDITIONAL,
};

/* Every other column: all units are written in part. */
static zarr_selection *columns(const zarr_array *a, uint64_t first)
{
    zarr_selection *sel = NULL;

    assert_ok(zarr_selection_parse(&sel, 2, zarr_array_shape(a),
                                   first ? ":, 1::2" : ":, ::2", &err));
    return sel;
}

static int32_t half[N * N / 2];
static const int64_t half_shape[] = {N, N / 2};

static zarr_tensor half_tensor(void)
{
    zarr_tensor t;

    zarr_tensor_host(&t, half, sizeof half, 2, half_shape);
    return t;
}

/* What the array has after a write of `half` to every other column. */
static void check_half(uint64_t first)
{
    zarr_tensor t = tensor_of(got);
    zarr_array *b = NULL;

    assert_ok(zarr_array_open(&b, memory, "a", NULL, &err));
    assert_ok(zarr_array_read(b, NULL, &t, NULL, &err));
    for (size_t i = 0; i < (size_t)N * N; i++)
        assert_int_equal(got[i], i % 2 == first ? half[i / 2] : elements[i]);
    zarr_array_free(b);
}

/* All old values are read at once, and all new ones stored at once, between two looks at
 * the document. One chunk or shard is missing. */
static void test_write_part(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * (size_t)N_KINDS; i++) {
        const enum kind kind = (enum kind)(i / 2);
        const uint32_t n = kind == CHUNKS ? 1024 : 16;
        zarr_stats stats = ZARR_STATS_INIT;
        zarr_io_options o = {.struct_size = sizeof o, .max_threads = 2, .stats = &stats};
        zarr_tensor t = half_tensor();
        zarr_selection *sel = NULL;
        zarr_array *a = NULL, *b = NULL;
        const uint64_t gone[] = {1, 1};

        open_stores(part_caps[i % 2]);
        a = make_array(kind);
        assert_ok(zarr_array_open(&b, memory, "a", NULL, &err));
        assert_ok(zarr_array_chunk_erase(b, gone, &err));
        for (size_t r = 0, edge = kind == CHUNKS ? 8 : 64; r < edge; r++)
            memset(&elements[(edge + r) * N + edge], 0, edge * sizeof *elements);
        for (size_t k = 0; k < (size_t)N * N / 2; k++)
            half[k] = -(int32_t)k - 1;
        sel = columns(a, 1);
        assert_ok(zarr_array_write(a, sel, &t, &o, &err));
        assert_int_equal(d.rounds, 4);
        assert_int_equal(d.n_ops, 2 * n + 2);
        assert_int_equal(d.most_at_once, n);
        assert_int_equal(stats.elements, N * N / 2);
        assert_int_equal(stats.read_modify_writes, n);
        assert_int_equal(stats.chunks_done, 1024);
        check_half(1);
        zarr_selection_free(sel);
        zarr_array_free(b);
        zarr_array_free(a);
        close_stores();
    }
}

/* Some units are covered, others in part. That takes no round trip more, unless the store
 * has locks of its own. */
static void test_write_mixed(void **state)
{
    const uint32_t caps[] = {part_caps[0], part_caps[1],
                             part_caps[0] | ZARR_STORE_CAP_LOCK};

    (void)state;
    for (size_t i = 0; i < 3 * (size_t)N_KINDS; i++) {
        const enum kind kind = (enum kind)(i / 3);
        const bool own_locks = i % 3 == 2;
        const uint32_t n_part = kind == CHUNKS ? 32 : 4;
        const uint32_t n_all = kind == CHUNKS ? 1024 : 16;
        const int64_t size[] = {N - 3, N};
        zarr_stats stats = ZARR_STATS_INIT;
        zarr_io_options o = {.struct_size = sizeof o, .max_threads = 2, .stats = &stats};
        zarr_tensor t, all = tensor_of(got);
        zarr_selection *sel = NULL;
        zarr_array *a = NULL, *b = NULL;

        open_stores(caps[i % 3]);
        a = make_array(kind);
        for (size_t k = 3 * (size_t)N; k < (size_t)N * N; k++)
            elements[k] = -(int32_t)k;
        zarr_tensor_host(&t, elements + 3 * (size_t)N, (uint64_t)(N - 3) * N * 4, 2,
                         size);
        assert_ok(zarr_selection_parse(&sel, 2, zarr_array_shape(a), "3:", &err));
        assert_ok(zarr_array_write(a, sel, &t, &o, &err));
        assert_int_equal(d.rounds, own_locks ? 5 : 4);
        assert_int_equal(d.n_ops, n_part + n_all + 2);
        assert_int_equal(d.most_at_once, own_locks ? n_all - n_part : n_all);
        assert_int_equal(stats.read_modify_writes, n_part);
        assert_ok(zarr_array_open(&b, memory, "a", NULL, &err));
        assert_ok(zarr_array_read(b, NULL, &all, NULL, &err));
        assert_memory_equal(got, elements, sizeof got);
        zarr_selection_free(sel);
        zarr_array_free(b);
        zarr_array_free(a);
        close_stores();
    }
}

/* Another writer replaces a chunk between the read of its old value and the PUT: that
 * unit is written once more, alone, from the value of the other writer. */
static void test_conflict(void **state)
{
    (void)state;
    for (int kind = 0; kind < N_KINDS; kind++) {
        zarr_stats stats = ZARR_STATS_INIT;
        zarr_io_options o = {.struct_size = sizeof o, .max_threads = 2, .stats = &stats};
        zarr_tensor t = half_tensor();
        zarr_selection *sel = NULL;
        zarr_array *a = NULL;

        open_stores(part_caps[1]);
        a = make_array((enum kind)kind);
        for (size_t k = 0; k < (size_t)N * N / 2; k++)
            half[k] = -(int32_t)k - 1;
        sel = columns(a, 0);
        d.other_writer = "a/c/2/1";
        assert_ok(zarr_array_write(a, sel, &t, &o, &err));
        assert_null(d.other_writer);
        /* the unit alone: a GET and a PUT more, after the PUT that met a conflict */
        assert_int_equal(d.rounds, 6);
        assert_int_equal(stats.elements, N * N / 2);
        assert_int_equal(stats.chunks_done, 1024);
        check_half(0);
        zarr_selection_free(sel);
        zarr_array_free(a);
        close_stores();
    }
}

/* Two requests change the same shards at once: no write of either is lost. */
static void test_two_writers(void **state)
{
    static int32_t other[N * N / 2];

    (void)state;
    for (size_t i = 2 * (size_t)SHARDS; i < 2 * (size_t)N_KINDS; i++) {
        zarr_tensor t[2] = {half_tensor(), half_tensor()};
        zarr_selection *sel[2];
        zarr_request *rq[2];
        zarr_array *a = NULL;

        t[1].data = other;
        open_stores(part_caps[i % 2]);
        a = make_array((enum kind)(i / 2));
        for (size_t k = 0; k < (size_t)N * N / 2; k++) {
            half[k] = -(int32_t)k - 1;
            elements[2 * k + 1] = other[k] = 7 * (int32_t)k;
        }
        for (int k = 0; k < 2; k++) {
            sel[k] = columns(a, (uint64_t)k);
            assert_ok(zarr_array_write_submit(&rq[k], a, sel[k], &t[k], NULL, &err));
        }
        for (int k = 0; k < 2; k++) {
            assert_ok(zarr_request_wait(rq[k], UINT64_MAX, NULL, &err));
            zarr_request_free(rq[k]);
            zarr_selection_free(sel[k]);
        }
        check_half(0);
        zarr_array_free(a);
        close_stores();
    }
}

/* Each of two requests covers chunks that the other writes in part: a PUT that waits for
 * a lock of the other must hold none. */
static void test_crossed_writers(void **state)
{
    static int32_t rows[2][12 * N];
    const int64_t size[] = {12, N};

    (void)state;
    alarm(60); /* instead of a deadlock */
    for (int round = 0; round < 6; round++) {
        zarr_tensor all = tensor_of(got);
        zarr_selection *sel[2];
        zarr_request *rq[2];
        zarr_array *a = NULL;

        open_stores(part_caps[round % 2]);
        a = make_array(CHUNKS);
        for (int k = 0; k < 2; k++) {
            zarr_tensor t;

            for (size_t i = 0; i < (size_t)12 * N; i++)
                rows[k][i] = -k - 1;
            zarr_tensor_host(&t, rows[k], sizeof rows[k], 2, size);
            assert_ok(zarr_selection_parse(&sel[k], 2, zarr_array_shape(a),
                                           k ? "4:16" : "0:12", &err));
            assert_ok(zarr_array_write_submit(&rq[k], a, sel[k], &t, NULL, &err));
        }
        for (int k = 0; k < 2; k++) {
            assert_ok(zarr_request_wait(rq[k], UINT64_MAX, NULL, &err));
            zarr_request_free(rq[k]);
            zarr_selection_free(sel[k]);
        }
        assert_ok(zarr_array_read(a, NULL, &all, NULL, &err));
        for (size_t i = 0; i < (size_t)16 * N; i++)
            assert_true(i < (size_t)4 * N    ? got[i] == -1
                        : i < (size_t)12 * N ? got[i] == -1 || got[i] == -2
                                             : got[i] == -2);
        zarr_array_free(a);
        close_stores();
    }
    alarm(0);
}

/* A damaged old value fails the write, and is not changed. */
static void test_damaged_old(void **state)
{
    const uint64_t chunk[] = {2, 1};

    (void)state;
    for (size_t i = 0; i < 2 * (size_t)N_KINDS; i++) {
        zarr_tensor t = half_tensor();
        zarr_selection *sel = NULL;
        zarr_array *a = NULL, *b = NULL;
        uint64_t n = 100;
        uint8_t bytes[100];

        open_stores(part_caps[i % 2]);
        a = make_array((enum kind)(i / 2));
        assert_ok(zarr_array_open(&b, memory, "a", NULL, &err));
        memset(bytes, 0x11, sizeof bytes);
        assert_ok(zarr_array_chunk_write_encoded(b, chunk, bytes, n, &err));
        sel = columns(a, 0);
        assert_int_equal(zarr_array_write(a, sel, &t, NULL, &err), ZARR_ERR_CORRUPT);
        assert_non_null(strstr(err.message, "a/c/2/1"));
        memset(bytes, 0, sizeof bytes);
        assert_ok(zarr_array_chunk_read_encoded(b, chunk, bytes, &n, &err));
        assert_int_equal(n, 100);
        assert_int_equal(bytes[0], 0x11);
        zarr_selection_free(sel);
        zarr_array_free(b);
        zarr_array_free(a);
        close_stores();
    }
}

/* A damaged index, and one that is cut off, give the same errors as without latency. */
static void test_damage(void **state)
{
    const uint64_t chunk[] = {1, 1};

    (void)state;
    for (int i = 0; i < 2; i++) {
        zarr_array *a = NULL, *b = NULL;
        zarr_tensor t = tensor_of(got);
        uint8_t bytes[32 * 1024];
        uint64_t n = sizeof bytes;

        open_stores(ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX);
        a = make_array(SHARDS);
        assert_ok(zarr_array_open(&b, memory, "a", NULL, &err));
        assert_ok(zarr_array_chunk_read_encoded(b, chunk, bytes, &n, &err));
        memset(bytes + n - 100, 0x11, 100);
        assert_ok(
            zarr_array_chunk_write_encoded(b, chunk, bytes, i == 0 ? n : 100, &err));
        assert_int_equal(zarr_array_read(a, NULL, &t, NULL, &err), ZARR_ERR_CORRUPT);
        assert_non_null(strstr(err.message, "a/c/1/1"));
        zarr_array_free(b);
        zarr_array_free(a);
        close_stores();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounds),          cmocka_unit_test(test_partial),
        cmocka_unit_test(test_missing),         cmocka_unit_test(test_write),
        cmocka_unit_test(test_damage),          cmocka_unit_test(test_write_part),
        cmocka_unit_test(test_conflict),        cmocka_unit_test(test_two_writers),
        cmocka_unit_test(test_crossed_writers), cmocka_unit_test(test_damaged_old),
        cmocka_unit_test(test_write_mixed),
    };

    return cmocka_run_group_tests_name("round trips", tests, NULL, NULL);
}
