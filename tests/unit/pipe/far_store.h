/*
 * unit/pipe/far_store.h - a store with latency, for tests. It answers all operations that
 * wait for it at once, after a pause, and counts how often it did: that is the number of
 * round trips. Also arrays of each kind in it.
 */
#ifndef ZR_FAR_STORE_H
#define ZR_FAR_STORE_H

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

#include "tuning.h"
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
    bool stop, hurries;       /* hurries: no latency, while nothing is counted */
    const char *other_writer; /* after a GET of this key, its value is written again */
    /* counted */
    uint32_t rounds, n_ops, n_gets, most_at_once;
    /* chunks that are read, and blocks of memory that they come to: neighbours share them
     */
    uint32_t n_chunks, n_blocks;
    const void *block;
    /* the first GETs of chunks fail; the blocks of memory that chunks come to, in order
     */
    uint32_t n_failing, n_seen;
    const void *seen[8];
};

/* The other writer: stores the value that a GET has just read. */
static inline void write_again(struct distant *d, const zarr_store_op *get)
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

static inline bool is_chunk_get(const zarr_store_op *op)
{
    return op->verb == ZARR_STORE_GET &&
           (op->flags & ZARR_STORE_OP_KIND) == ZARR_STORE_OP_CHUNK;
}

static inline bool fails(struct distant *d, const zarr_store_op *op)
{
    if (d->n_failing == 0 || !is_chunk_get(op))
        return false;
    d->n_failing--;
    return true;
}

static inline void *answer(void *arg)
{
    static struct waiting now[MOST];
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    struct distant *d = arg;

    for (;;) {
        uint32_t n = 0;
        bool hurries;

        pthread_mutex_lock(&d->mutex);
        while (d->n == 0 && !d->stop)
            pthread_cond_wait(&d->more, &d->mutex);
        hurries = d->hurries;
        pthread_mutex_unlock(&d->mutex);
        if (!hurries)
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

            if (fails(d, now[i].op)) {
                now[i].op->status = e.code = ZARR_ERR_IO;
                now[i].done(now[i].arg, now[i].op, &e);
                continue;
            }
            (void)zarr_store_run(d->inner, now[i].op, &e);
            write_again(d, now[i].op);
            now[i].done(now[i].arg, now[i].op, &e);
        }
    }
}

static inline void count_blocks(struct distant *d, const zarr_store_op *op)
{
    if (!is_chunk_get(op))
        return;
    d->n_chunks++;
    if (d->n_seen < sizeof d->seen / sizeof *d->seen)
        d->seen[d->n_seen++] = op->mem.handle;
    d->n_blocks += op->mem.handle != d->block;
    d->block = op->mem.handle;
}

static inline void
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
        count_blocks(d, ops[i]);
        d->queue[d->n++] = (struct waiting){ops[i], done, arg};
    }
    pthread_cond_signal(&d->more);
    pthread_mutex_unlock(&d->mutex);
}

static inline void distant_caps(void *self, zarr_store_caps *out)
{
    const struct distant *d = self;

    out->flags = d->flags;
}

static inline zarr_status distant_lock(void *self, const char *key,
                                       const zarr_cancel *cancel, void **lock,
                                       zarr_error *e)
{
    return zarr_store_lock(lock, ((struct distant *)self)->inner, key, cancel, e);
}

static inline void distant_unlock(void *self, void *lock)
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
static inline void trace(void *user, uint32_t level, const char *text)
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
static const uint64_t whole[] = {N, N};

static inline zarr_tensor whole_tensor(int32_t *data)
{
    zarr_tensor t;

    zarr_tensor_host(&t, NULL, data, sizeof elements, 2, whole);
    return t;
}

static inline void open_stores_with(uint32_t caps, const zarr_context_options *o)
{
    assert_ok(zarr_context_create(&ctx, o, &err));
    assert_ok(zarr_store_open(&memory, ctx, "memory:", NULL, &err));
    memset(&d, 0, sizeof d);
    d.inner = memory;
    d.flags = caps;
    pthread_mutex_init(&d.mutex, NULL);
    pthread_cond_init(&d.more, NULL);
    assert_int_equal(pthread_create(&d.thread, NULL, answer, &d), 0);
    assert_ok(zarr_store_open_custom(&far, ctx, &distant_vtable, &d, NULL, &err));
}

static inline void open_stores(uint32_t caps)
{
    zarr_context_options o = {.struct_size = sizeof o,
                              .max_threads = 2,
                              .log = trace,
                              .log_level = ZARR_LOG_TRACE};

    open_stores_with(caps, &o);
}

static inline void close_stores(void)
{
    zarr_store_free(far);
    pthread_mutex_lock(&d.mutex);
    d.stop = d.hurries = true;
    pthread_cond_signal(&d.more);
    pthread_mutex_unlock(&d.mutex);
    pthread_join(d.thread, NULL);
    zarr_store_free(memory);
    zarr_context_free(ctx);
}

static inline void set_hurries(bool hurries)
{
    pthread_mutex_lock(&d.mutex);
    d.hurries = hurries;
    pthread_mutex_unlock(&d.mutex);
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

static inline zarr_array *make_array(enum kind kind)
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
    zarr_tensor t = whole_tensor(elements);

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
    set_hurries(true);
    assert_ok(zarr_array_open(&b, far, "a", NULL, &err));
    set_hurries(false);
    zarr_array_free(a);
    d.rounds = d.n_ops = d.n_gets = d.most_at_once = 0;
    return b;
}

#endif
