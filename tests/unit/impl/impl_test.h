/*
 * unit/impl/impl_test.h - chains of codecs in one call: text and data type in, program
 * out. Chunks go through it in blocks of exactly the right size, so that a sanitizer
 * detects accesses past the end. The fuzz targets share this file, so nothing in it
 * asserts.
 */
#ifndef ZR_TESTS_IMPL_TEST_H
#define ZR_TESTS_IMPL_TEST_H

#include <stdlib.h>

#include "unit/chain/chain_test.h"

struct impl_env {
    struct codec_env codec;
    struct zr_impl_registry impls;
    struct zr_thread_states threads;
};

static inline void impl_env_close(struct impl_env *e)
{
    zr_thread_states_close(&e->impls, &e->threads);
    zr_impl_registry_deinit(&e->impls);
    codec_env_close(&e->codec);
}

static inline zarr_status impl_env_open(struct impl_env *e, const zarr_allocator *alloc,
                                        zarr_error *err)
{
    zarr_status st = ZARR_OK;

    *e = (struct impl_env){.threads = {.alloc = alloc}};
    zr_impl_registry_init(&e->impls, alloc);
    ZR_TRY(codec_env_open(&e->codec, alloc, err));
    e->codec.codecs.impls = &e->impls;
    e->impls.absent = zr_codecs_absent;
    for (size_t i = 0; zr_impl_core[i] && st == ZARR_OK; i++)
        st = zr_impl_register(&e->impls, zr_impl_core[i], "core", err);
    for (size_t i = 0; zr_codecs_impls[i] && st == ZARR_OK; i++)
        st = zr_impl_register(&e->impls, zr_codecs_impls[i], "core", err);
    if (st != ZARR_OK)
        impl_env_close(e);
out:
    return st;
}

/* A chain for one chunk, and its programs for encoding and decoding. */
struct impl_chain {
    struct zr_chain *chain;
    struct zr_chain_reps reps;
    struct zr_program *decode, *encode;
};

static inline void impl_chain_close(struct impl_chain *c)
{
    zr_program_free(c->decode);
    zr_program_free(c->encode);
    zr_chain_reps_deinit(&c->reps);
    zr_chain_free(c->chain);
    *c = (struct impl_chain){0};
}

struct impl_chain_args {
    int format;
    const char *codecs, *dtype;
    const uint64_t *dims;  /* a 0 ends it */
    int32_t target_device; /* 0: the host */
    const char *preference;
};

static inline zarr_status impl_chain_open(struct impl_chain *c, struct impl_env *e,
                                          const struct impl_chain_args *args,
                                          zarr_error *err)
{
    const zarr_allocator *alloc = e->codec.alloc;
    struct zr_placement_options opts = {
        .target_device = args->target_device ? args->target_device : ZARR_DEVICE_CPU,
        .preference = args->preference};
    zarr_chunk_spec chunk;
    zarr_status st = ZARR_OK;

    *c = (struct impl_chain){0};
    ZR_TRY(codec_env_parse(&c->chain, &e->codec, args->format, args->codecs, NULL, err));
    ZR_TRY(codec_env_chunk(&chunk, &e->codec, args->dtype, args->dims, err));
    ZR_TRY(zr_chain_resolve(&c->reps, c->chain, &chunk, NULL, alloc, err));
    ZR_TRY(zr_program_make(&c->decode, &e->impls, c->chain, &c->reps, &opts, alloc, err));
    opts.encode = true;
    ZR_TRY(zr_program_make(&c->encode, &e->impls, c->chain, &c->reps, &opts, alloc, err));
out:
    if (st != ZARR_OK)
        impl_chain_close(c);
    return st;
}

/* The same for chunks whose size metadata does not tell. */
static inline zarr_status impl_run_loose(const struct zr_program *p, struct impl_env *e,
                                         const void *src, size_t src_bytes, uint8_t **out,
                                         size_t *n, zarr_error *err)
{
    struct zr_buffer buffer[ZR_UNSIZED_BUFFERS] = {{0}};
    struct zr_unsized g = {.ts = &e->threads, .buffer = buffer};
    uint8_t *exact = malloc(src_bytes ? src_bytes : 1);
    zarr_memory in = zr_mem_of_host(exact, src_bytes), got = {0};
    zarr_status st = exact ? ZARR_OK : ZARR_ERR_NO_MEMORY;

    if (exact && src_bytes)
        memcpy(exact, src, src_bytes);
    if (st == ZARR_OK)
        st = p->encode ? zr_unsized_encode(p, &g, &in, NULL, &got, err)
                       : zr_unsized_decode(p, &g, &in, NULL, &got, err);
    if (st == ZARR_OK && !(*out = malloc(got.bytes ? (size_t)got.bytes : 1)))
        st = ZARR_ERR_NO_MEMORY;
    if (st == ZARR_OK) {
        *n = (size_t)got.bytes;
        memcpy(*out, (const uint8_t *)got.handle + got.offset, *n);
    }
    for (size_t i = 0; i < ZR_COUNT(buffer); i++)
        zr_buffer_free(&buffer[i], &e->threads);
    free(exact);
    return st;
}

/* Runs one chunk through one codec stage. */
static inline zarr_status impl_run_stage(const struct zr_stage *s, bool encode,
                                         struct impl_env *e, zarr_codec_job *job,
                                         zarr_memory scratch, zarr_error *err)
{
    struct zr_stage_call call = {
        .jobs = job, .n = 1, .ts = &e->threads, .scratch = scratch};

    return zr_stage_run(s, &call, encode, err);
}

/* Runs one chunk through host stages. *out: malloc'd, *n bytes; NULL on failure. Copies
 * are plain. */
static inline zarr_status impl_run(const struct zr_program *p, struct impl_env *e,
                                   const void *src, size_t src_bytes, uint8_t **out,
                                   size_t *n, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    uint8_t *cur = NULL;
    size_t cur_bytes = src_bytes;

    *out = NULL;
    if (p->unsized)
        return impl_run_loose(p, e, src, src_bytes, out, n, err);
    cur = malloc(src_bytes ? src_bytes : 1);
    if (!cur)
        return ZARR_ERR_NO_MEMORY;
    memcpy(cur, src, src_bytes);
    for (uint32_t k = 0; k < p->n; k++) {
        const struct zr_stage *s = &p->stage[p->encode ? p->n - 1 - k : k];
        const size_t room = (size_t)(p->encode ? s->in_bytes : s->out_bytes);
        uint8_t *next = malloc(room ? room : 1);
        const size_t need = (size_t)zr_stage_scratch(s, 1);
        uint8_t *own = malloc(need ? need : 1);
        const zarr_memory scratch = need ? zr_mem_of_host(own, need) : (zarr_memory){0};
        zarr_codec_job job = {.src = zr_mem_of_host(cur, cur_bytes),
                              .dst = zr_mem_of_host(next, room)};

        if (!next || !own) {
            free(next);
            free(own);
            st = ZARR_ERR_NO_MEMORY;
            goto out;
        }
        st = impl_run_stage(s, p->encode, e, &job, scratch, err);
        free(own);
        free(cur);
        cur = next;
        cur_bytes = (size_t)job.dst_used;
        if (st != ZARR_OK)
            goto out;
    }
    if (!p->encode && !p->raw && cur_bytes != p->decoded_bytes)
        st = zr_internal(err);
out:
    if (st == ZARR_OK) {
        *out = cur;
        *n = cur_bytes;
    } else {
        free(cur);
    }
    return st;
}

/* xorshift: the same numbers on every machine. */
static inline uint64_t impl_random(uint64_t *seed)
{
    uint64_t x = *seed;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *seed = x;
}

/* 0: zeros, 1: a ramp of items, 2: noise, 3: runs with some noise. */
static inline void impl_pattern(uint8_t *p, size_t n, int kind)
{
    uint64_t seed = 0x9E3779B97F4A7C15u + n;

    for (size_t i = 0; i < n; i++) {
        const uint64_t r = impl_random(&seed);

        p[i] = kind == 0   ? 0
               : kind == 1 ? (uint8_t)(i % 4 == 0   ? i / 4
                                       : i % 4 == 1 ? i / 1024
                                                    : 0)
               : kind == 2 ? (uint8_t)(r >> 24)
                           : (uint8_t)(r % 64 == 0 ? r >> 24 : i / 300);
    }
}

#endif
