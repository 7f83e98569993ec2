/*
 * unit/ctx/test_context.c - contexts: option structs of every size, the environment,
 * limits, and secrets of stores in freed memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ctx/ctx.h"
#include "unit/ctx/ctx_test.h"
#include "unit/json/fail_alloc.h"

static void test_defaults(void **state)
{
    zarr_context *ctx = NULL;
    zarr_limits limits, usual;

    (void)state;
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    zarr_context_limits(ctx, &limits);
    zr_limits_default(&usual);
    assert_int_equal(limits.chunk_bytes,
                     ZR_MAX(ctx->budget.total / 2, UINT64_C(2) << 30));
    assert_int_equal(limits.variable_chunk_bytes,
                     ZR_MAX(ctx->budget.total / 2, UINT64_C(256) << 20));
    usual.chunk_bytes = limits.chunk_bytes;
    usual.variable_chunk_bytes = limits.variable_chunk_bytes;
    assert_memory_equal(&limits, &usual, sizeof limits);
    assert_true(ctx->budget.total >= UINT64_C(256) << 20);
    assert_int_equal(ctx->engine.wave_bytes, 64 << 20);
    assert_int_equal(ctx->engine.max_threads, zarr_core_count());
    assert_in_range(zarr_core_count(), 1, zr_cpu_count());
    assert_string_equal(ctx->pipeline->name, "waves");
    assert_string_equal(zarr_dtype_name(ctx->uint64), "uint64");
    zarr_context_trim(ctx);
    zarr_context_free(zarr_context_ref(ctx));
    zarr_context_free(ctx);
    zarr_context_free(NULL);
}

static void test_options(void **state)
{
    struct {
        zarr_context_options o;
        uint64_t more;
    } newer = {.o = {.struct_size = sizeof newer}};
    zarr_limits limits = {.struct_size = sizeof limits, .rank = 3};
    zarr_allocator half = {.alloc = fail_alloc_alloc};
    zarr_context_options o = {.struct_size = sizeof o};
    zarr_context *ctx = NULL;

    (void)state;
    o.limits = &limits;
    o.max_threads = 3;
    o.memory_bytes = 1000;
    o.wave_bytes = 77;
    o.pipeline = "serial";
    o.codec_preference = "zstd=cpu.libzstd";
    assert_ok(zarr_context_create(&ctx, &o, &terr));
    assert_int_equal(ctx->limits.rank, 3);
    assert_int_equal(ctx->limits.json_depth, 1000);
    assert_int_equal(ctx->limits.variable_chunk_bytes, 1000);
    assert_int_equal(ctx->engine.max_threads, 3);
    assert_int_equal(ctx->budget.total, 1000);
    assert_int_equal(ctx->engine.wave_bytes, 77);
    assert_string_equal(ctx->pipeline->name, "serial");
    assert_string_equal(ctx->codec_preference, "zstd=cpu.libzstd");
    zarr_context_free(ctx);

    o = (zarr_context_options){.struct_size = 8}; /* an older caller */
    o.pipeline = "behind the end that was told";
    assert_ok(zarr_context_create(&ctx, &o, &terr));
    zarr_context_free(ctx);
    assert_ok(zarr_context_create(&ctx, &newer.o, &terr));
    zarr_context_free(ctx);
    newer.more = 1;
    assert_status(zarr_context_create(&ctx, &newer.o, &terr), ZARR_ERR_UNSUPPORTED);
    assert_null(ctx);
    o.struct_size = 0;
    assert_status(zarr_context_create(&ctx, &o, &terr), ZARR_ERR_ABI);
    o = (zarr_context_options){.struct_size = sizeof o, .flags = 1};
    assert_status(zarr_context_create(&ctx, &o, &terr), ZARR_ERR_UNSUPPORTED);
    o = (zarr_context_options){.struct_size = sizeof o, .log_level = 6};
    assert_status(zarr_context_create(&ctx, &o, &terr), ZARR_ERR_INVALID);
    o = (zarr_context_options){.struct_size = sizeof o, .allocator = &half};
    assert_status(zarr_context_create(&ctx, &o, &terr), ZARR_ERR_INVALID);
    o = (zarr_context_options){.struct_size = sizeof o, .pipeline = "nope"};
    assert_status(zarr_context_create(&ctx, &o, &terr), ZARR_ERR_UNSUPPORTED);
    assert_non_null(strstr(terr.message, "nope"));
    limits.flags = 2;
    o = (zarr_context_options){.struct_size = sizeof o, .limits = &limits};
    assert_status(zarr_context_create(&ctx, &o, &terr), ZARR_ERR_UNSUPPORTED);
}

static void test_environment(void **state)
{
    zarr_context_options o = {.struct_size = sizeof o};
    static const char *const bad[][2] = {
        {"ZARRC_MAX_THREADS", "many"},
        {"ZARRC_MEMORY_BYTES", "-1"},
        {"ZARRC_MEMORY_BYTES", "K"},
        {"ZARRC_MEMORY_BYTES", "99999999T99"},
        {"ZARRC_WAVE_BYTES", "much"},
        {"ZARRC_DEVICE_BYTES", "much"},
        {"ZARRC_PINNED_BYTES", "1X"},
        {"ZARRC_LOG_LEVEL", "loud"},
        {"ZARRC_PIPELINE", "nope"},
        {"ZARRC_MEMORY_BYTES", "99999999999T"},
        {"ZARRC_MEMORY", "gpu"},
        {"ZARRC_MEMORY", "cuda:"},
        {"ZARRC_MEMORY", "cuda:-1"},
        {"ZARRC_MEMORY", "cuda:0:0"},
        {"ZARRC_MEMORY", ":0"},
        {"ZARRC_MEMORY", "0"},
        {"ZARRC_MEMORY", "0:1"},
        {"ZARRC_MEMORY", "-2"},
        {"ZARRC_MEMORY", "cudA:0"},
        {"ZARRC_MEMORY", "4294967297"},
        {"ZARRC_MEMORY", "cuda:4294967296"},
        {"ZARRC_MEMORY", "cuda:99999999999999999999"},
    };
    zarr_context *ctx = NULL;

    (void)state;
    setenv("ZARRC_MAX_THREADS", "5", 1);
    setenv("ZARRC_MEMORY_BYTES", "3M", 1);
    setenv("ZARRC_WAVE_BYTES", "64K", 1);
    setenv("ZARRC_PIPELINE", "serial", 1);
    setenv("ZARRC_CODEC_PREFERENCE", "gzip=x", 1);
    setenv("ZARRC_LOG_LEVEL", "debug", 1);
    setenv("ZARRC_MEMORY", "cuda:3", 1);
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    assert_int_equal(ctx->device_type, ZARR_DEVICE_CUDA);
    assert_int_equal(ctx->device_id, 3);
    assert_int_equal(ctx->engine.max_threads, 5);
    assert_int_equal(ctx->budget.total, 3 << 20);
    assert_int_equal(ctx->engine.wave_bytes, 64 << 10);
    assert_string_equal(ctx->pipeline->name, "serial");
    assert_string_equal(ctx->codec_preference, "gzip=x");
    assert_int_equal(ctx->log.level, ZARR_LOG_DEBUG);
    zarr_context_free(ctx);
    o.max_threads = 1; /* options override the environment */
    o.log_level = ZARR_LOG_ERROR;
    o.device_type = ZARR_DEVICE_CPU;
    assert_ok(zarr_context_create(&ctx, &o, &terr));
    assert_int_equal(ctx->device_type, ZARR_DEVICE_CPU);
    assert_int_equal(ctx->device_id, 0);
    assert_int_equal(ctx->engine.max_threads, 1);
    assert_int_equal(ctx->log.level, ZARR_LOG_ERROR);
    zarr_context_free(ctx);
    clear_environment(NULL);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        setenv(bad[i][0], bad[i][1], 1);
        assert_int_not_equal(zarr_context_create(&ctx, NULL, &terr), ZARR_OK);
        if (strcmp(bad[i][0], "ZARRC_PIPELINE") != 0)
            assert_non_null(strstr(terr.message, bad[i][0]));
        unsetenv(bad[i][0]);
    }
    o.device_type = -1;
    assert_status(zarr_context_create(&ctx, &o, &terr), ZARR_ERR_INVALID);
    o.device_type = ZARR_DEVICE_CUDA;
    o.device_id = -1;
    assert_status(zarr_context_create(&ctx, &o, &terr), ZARR_ERR_INVALID);
    setenv("ZARRC_LOG_LEVEL", "2", 1);
    setenv("ZARRC_MEMORY", "12", 1);
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    assert_int_equal(ctx->device_type, ZARR_DEVICE_EXT);
    assert_int_equal(ctx->device_id, 0);
    assert_int_equal(ctx->log.level, ZARR_LOG_WARN);
    zarr_context_free(ctx);
    clear_environment(NULL);
}

/* The byte order of a name goes beside the type, for a tensor. */
static void test_orders(void **state)
{
    const zarr_dtype *big = NULL, *plain = NULL;
    uint32_t order = 99;
    zarr_context *ctx = NULL;

    (void)state;
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    assert_ok(zarr_dtype_find_order(&big, ctx, ">i2", &order, &terr));
    assert_int_equal(order, ZARR_ORDER_BIG);
    assert_ok(zarr_dtype_find_order(&plain, ctx, "int16", &order, &terr));
    assert_int_equal(order, ZR_ORDER_NATIVE);
    assert_ptr_equal(big, plain);
    assert_status(zarr_dtype_find_order(&big, ctx, "<i3", &order, &terr),
                  ZARR_ERR_UNSUPPORTED);
    zarr_context_free(ctx);
}

/* ---- secrets of stores ---------------------------------------------------------- */

#define HUSH   "hushhush"
#define SECRET HUSH HUSH HUSH HUSH HUSH HUSH HUSH HUSH HUSH HUSH HUSH HUSH

enum {
    HEAD_BYTES = 64 /* before each block, with its size */
};

/* Freed blocks that have a part of a secret, and those that had one when they moved. */
static atomic_int n_leaks;

static void search_block(const char *block)
{
    const size_t n = *(const size_t *)(const void *)(block - HEAD_BYTES);

    for (size_t i = 0; i + strlen(HUSH) <= n; i++)
        if (memcmp(block + i, HUSH, strlen(HUSH)) == 0) {
            atomic_fetch_add(&n_leaks, 1);
            return;
        }
}

static void *search_alloc(void *user, size_t bytes)
{
    char *p = calloc(1, bytes + HEAD_BYTES);

    (void)user;
    if (!p)
        return NULL;
    *(size_t *)(void *)p = bytes;
    return p + HEAD_BYTES;
}

static void search_free(void *user, void *block)
{
    (void)user;
    if (!block)
        return;
    search_block(block);
    free((char *)block - HEAD_BYTES);
}

static void *search_realloc(void *user, void *block, size_t bytes)
{
    char *p = search_alloc(user, bytes);

    if (p && block) {
        const size_t had = *(const size_t *)(const void *)((char *)block - HEAD_BYTES);

        memcpy(p, block, ZR_MIN(had, bytes));
        search_free(user, block);
    }
    return p;
}

/* Whether the store opens or not, no freed memory has a part of a secret. */
static void test_secrets(void **state)
{
    static const struct {
        const char *url, *config;
    } rows[] = {
        {"http://me:" SECRET "@127.0.0.1:1/x?sig=" SECRET, NULL},
        {"http://127.0.0.1:1/x", "{\"bearer_token\": \"" SECRET "\"}"},
        {"http://127.0.0.1:1/x", "{\"user\": \"me\", \"password\": \"" SECRET "\"}"},
        {"http://127.0.0.1:1/x", "{\"headers\": {\"X-Key\": \"" SECRET "\"}}"},
        {"http://127.0.0.1:1/x", "{\"proxy\": \"http://me:" SECRET "@127.0.0.1:1\"}"},
        {"http://127.0.0.1:1/x", "{\"password\": \"" SECRET "\", \"odd\": 1}"},
        {"http://127.0.0.1:1/x", "{\"bearer_token\": \"" SECRET "\""},
        {"zip:http://127.0.0.1:1/x.zip",
         "{\"bearer_token\": \"" SECRET "\", \"zip_update\": \"append\", \"tries\": 1}"},
        {"s3://b/p",
         "{\"access_key_id\": \"" SECRET "\", \"secret_access_key\": \"" SECRET
         "\", \"session_token\": \"" SECRET "\", \"region\": \"r\"}"},
        {"s3://b/p", "{\"secret_access_key\": \"" SECRET "\"}"},
        {"memory:", "{\"password\": \"" SECRET "\"}"},
        {"no-such-kind:x", "{\"password\": \"" SECRET "\"}"},
    };
    zarr_allocator search = {
        .alloc = search_alloc, .realloc = search_realloc, .free = search_free};
    zarr_context_options o = {.struct_size = sizeof o, .allocator = &search};
    zarr_context *ctx = NULL;
    int n_open = 0;

    (void)state;
    search_free(NULL, strcpy(search_alloc(NULL, sizeof "a " SECRET), "a " SECRET));
    assert_int_equal(atomic_exchange(&n_leaks, 0), 1); /* it finds one */
    assert_ok(zarr_context_create(&ctx, &o, &terr));
    for (size_t i = 0; i < ZR_COUNT(rows); i++) {
        zarr_store_options so = {.struct_size = sizeof so,
                                 .flags = ZARR_STORE_READ_ONLY,
                                 .config = rows[i].config};
        zarr_store *s = NULL;
        zarr_error e = {0};

        n_open += zarr_store_open(&s, ctx, rows[i].url, &so, &e) == ZARR_OK;
        assert_null(strstr(e.message, HUSH));
        zarr_store_free(s);
        if (atomic_load(&n_leaks) != 0)
            fail_msg("row %zu: %d blocks (%s)", i, atomic_load(&n_leaks), e.message);
    }
    zarr_context_free(ctx);
    assert_int_equal(atomic_load(&n_leaks), 0);
    print_message("%d stores were open\n", n_open); /* without libcurl none */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),    cmocka_unit_test(test_options),
        cmocka_unit_test(test_environment), cmocka_unit_test(test_orders),
        cmocka_unit_test(test_secrets),
    };

    return cmocka_run_group_tests(tests, clear_environment, NULL);
}
