/*
 * unit/pipe/pipe_test.h - helpers of the tests of pipelines: a context with a counting
 * allocator, int32 arrays with all kinds of chains, and a model of their elements in
 * plain memory.
 */
#ifndef ZR_PIPE_TEST_H
#define ZR_PIPE_TEST_H

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "ctx/ctx.h"
#include "tuning.h"
#include <zarrc/plugin/plugin.h>
#include <zarrc/zarrc.h>

#include "unit/assert_call.h"

struct pw {
    zarr_allocator alloc;
    atomic_int_fast64_t n_blocks, n_calls;
    atomic_uint_fast64_t n_bytes, peak_bytes; /* of blocks */
    atomic_int_fast64_t fail_in; /* this allocation, counted from now, fails; 0: none */
    zr_thread fails_on;          /* only allocations of this thread, if `fails_one` */
    bool fails_one;
    zarr_context *ctx;
    zarr_store *store;
};

static zarr_error terr;

/* Encodes and decodes host memory to the same bytes. */
static inline zarr_status pw_copy_same(void *self, zarr_codec_job *jobs, uint64_t n,
                                       zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)exec;
    (void)err;
    for (uint64_t i = 0; i < n; i++) {
        memcpy((char *)jobs[i].dst.handle + jobs[i].dst.offset,
               (char *)jobs[i].src.handle + jobs[i].src.offset, jobs[i].src.bytes);
        jobs[i].dst_used = jobs[i].src.bytes;
    }
    return ZARR_OK;
}

/* With codecs whose output has the size of their input. */
static inline zarr_status pw_resolve_same(const zarr_codec_spec *spec,
                                          const zarr_chunk_spec *in, zarr_chunk_spec *out,
                                          void *fill_out, zarr_error *err)
{
    (void)spec;
    (void)in;
    (void)out;
    (void)fill_out;
    (void)err;
    return ZARR_OK; /* has its old length */
}

static inline bool pw_fails(struct pw *w)
{
    atomic_fetch_add(&w->n_calls, 1);
    return atomic_load(&w->fail_in) > 0 &&
           (!w->fails_one || zr_thread_is_self(&w->fails_on)) &&
           atomic_fetch_sub(&w->fail_in, 1) == 1;
}

/* Counts the bytes of a block in place of those that it had before. */
static void pw_count(struct pw *w, void *block, size_t before)
{
    const uint64_t more = malloc_usable_size(block) - before;
    const uint64_t now = atomic_fetch_add(&w->n_bytes, more) + more;
    uint64_t peak = atomic_load(&w->peak_bytes);

    while (now > peak && !atomic_compare_exchange_weak(&w->peak_bytes, &peak, now))
        ;
}

static void *pw_alloc(void *user, size_t bytes)
{
    struct pw *w = user;

    void *block = pw_fails(w) ? NULL : malloc(bytes);

    atomic_fetch_add(&w->n_blocks, block != NULL);
    pw_count(w, block, 0);
    return block;
}

static void *pw_realloc(void *user, void *block, size_t bytes)
{
    struct pw *w = user;

    const size_t before = malloc_usable_size(block);
    void *moved = pw_fails(w) ? NULL : realloc(block, bytes);

    atomic_fetch_add(&w->n_blocks, !block && moved);
    if (moved)
        pw_count(w, moved, before);
    return moved;
}

static void pw_free(void *user, void *block)
{
    struct pw *w = user;

    atomic_fetch_sub(&w->n_bytes, malloc_usable_size(block));
    free(block);
    atomic_fetch_sub(&w->n_blocks, block != NULL); /* last: pw_close() waits for it */
}

static inline void pw_context_options(struct pw *w, zarr_context_options *opts)
{
    memset(w, 0, sizeof *w);
    w->alloc = (zarr_allocator){w, pw_alloc, pw_realloc, pw_free};
    opts->struct_size = sizeof *opts;
    opts->allocator = &w->alloc;
    assert_ok(zarr_context_create(&w->ctx, opts, &terr));
}

/* A chunk that needs more than `memory` is alone, as with the default of a context. */
static inline void pw_context_limits(struct pw *w, uint32_t threads, uint64_t memory,
                                     uint64_t wave, const zarr_limits *limits)
{
    zarr_context_options opts = {.max_threads = threads,
                                 .memory_bytes = memory,
                                 .wave_bytes = wave,
                                 .limits = limits};

    pw_context_options(w, &opts);
    w->ctx->engine.memory_limit = 0;
}

static inline void pw_context(struct pw *w, uint32_t threads, uint64_t memory,
                              uint64_t wave)
{
    pw_context_limits(w, threads, memory, wave, NULL);
}

static inline void pw_open(struct pw *w, uint32_t threads, uint64_t memory, uint64_t wave)
{
    pw_context(w, threads, memory, wave);
    assert_ok(zarr_store_open(&w->store, w->ctx, "memory:", NULL, &terr));
}

/* A thread that calls the functions of a request that is done frees it after them. */
static inline void pw_close(struct pw *w)
{
    const uint64_t end = zr_now_ns() + UINT64_C(20000000000);

    zarr_store_free(w->store);
    zarr_context_free(w->ctx);
    while (atomic_load(&w->n_blocks) > 0 && zr_now_ns() < end)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_int_equal(atomic_load(&w->n_blocks), 0);
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#    define BYTES "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#    define BIG   "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
#else /* the structure, and the bytes to swap */
#    define BYTES "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
#    define BIG   "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#endif
#define CRC  "{\"name\":\"crc32c\"}"
#define GZIP "{\"name\":\"gzip\",\"configuration\":{\"level\":1}}"
#define TURN "{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}"
#define SHARD(chunk, codecs, where)                                                      \
    "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":" chunk           \
    ",\"codecs\":[" codecs "],\"index_codecs\":[" BYTES "," CRC                          \
    "],\"index_location\":\"" where "\"}}"

static inline zarr_array *pw_array(zarr_store *store, const char *path,
                                   const char *codecs, const uint64_t *shape,
                                   const uint64_t *chunk)
{
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 2,
                                  .shape = shape,
                                  .chunk_shape = chunk,
                                  .data_type = "int32",
                                  .fill_value = "-1",
                                  .codecs = codecs};
    zarr_array *a = NULL;

    assert_ok(zarr_array_create(&a, store, path, &spec, NULL, &terr));
    return a;
}

static inline zarr_tensor pw_tensor(void *data, const uint64_t *shape, uint64_t bytes)
{
    return (zarr_tensor){.struct_size = sizeof(zarr_tensor),
                         .device_type = ZARR_DEVICE_CPU,
                         .ndim = 2,
                         .data = data,
                         .shape = shape,
                         .data_bytes = bytes};
}

/* Reads or writes the box at `at` of n x m elements. */
static inline zarr_status pw_box(zarr_array *a, const uint64_t *at, const uint64_t *n,
                                 int32_t *data, const zarr_io_options *opts, bool write)
{
    const uint64_t shape[2] = {(uint64_t)n[0], (uint64_t)n[1]};
    const zarr_tensor t = pw_tensor(data, shape, n[0] * n[1] * sizeof *data);
    zarr_selection *sel = NULL;
    zarr_status st;

    assert_ok(zarr_selection_box(&sel, 2, zarr_array_shape(a), at, n, &terr));
    st = write ? zarr_array_write(a, sel, &t, opts, &terr)
               : zarr_array_read(a, sel, &t, opts, &terr);
    zarr_selection_free(sel);
    return st;
}

#endif
