/*
 * unit/ctx/test_context.c - contexts: option structs of every size, the environment,
 * limits, registering and sealing, lists, data types and memory for applications, and
 * creation with the k-th allocation failing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../sanitizers.h"
#include "../json/fail_alloc.h"
#include "ctx/ctx.h"
#include "fakedev/fakedev.h"
#include <sys/wait.h>
#include <unistd.h>

static zarr_error terr;

#define assert_ok(call)                                                                  \
    do {                                                                                 \
        if ((call) != ZARR_OK)                                                           \
            fail_msg("%s: %s", #call, terr.message);                                     \
    } while (0)
#define assert_status(call, want) assert_int_equal(call, want)

static const char *const variables[] = {
    "ZARRC_THREADS",      "ZARRC_MEMORY_BYTES", "ZARRC_PIPELINE",
    "ZARRC_CODEC_PREF",   "ZARRC_LOG_LEVEL",    "ZARRC_DEVICE_BYTES",
    "ZARRC_PINNED_BYTES", "ZARRC_ALLOCATORS",   "ZARRC_DEVICE"};

static int clear_environment(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        unsetenv(variables[i]);
    return 0;
}

static void test_defaults(void **state)
{
    zarr_context *ctx = NULL;
    zarr_limits limits, usual;

    (void)state;
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    zarr_context_limits(ctx, &limits);
    zarr_limits_default(&usual);
    assert_int_equal(limits.variable_chunk_bytes, 256 << 20);
    usual.variable_chunk_bytes = limits.variable_chunk_bytes;
    assert_memory_equal(&limits, &usual, sizeof limits);
    assert_true(ctx->budget.total >= UINT64_C(256) << 20);
    assert_int_equal(ctx->engine.wave_bytes, 64 << 20);
    assert_int_equal(ctx->engine.n_threads, zarr_core_count());
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
    o.n_threads = 3;
    o.memory_bytes = 1000;
    o.wave_bytes = 77;
    o.pipeline = "serial";
    o.codec_preference = "zstd=cpu.libzstd";
    assert_ok(zarr_context_create(&ctx, &o, &terr));
    assert_int_equal(ctx->limits.rank, 3);
    assert_int_equal(ctx->limits.json_depth, 64);
    assert_int_equal(ctx->engine.n_threads, 3);
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

static uint64_t pool_budget(zarr_context *ctx, bool pinned)
{
    uint64_t bytes = 0;

    assert_ok(zr_pool_budget(ctx->pool, ZARR_DEVICE_EXT, 0, pinned, &bytes, &terr));
    return bytes;
}

/* Budgets of a device: the options, then the environment, then what the device says. */
static void test_budgets(void **state)
{
    zarr_context_options o = {.struct_size = sizeof o, .memory_bytes = 64 << 20};

    (void)state;
    for (int k = 0; k < 4; k++) {
        zarr_context *ctx = NULL;
        void *dev = zarr_fakedev_create();

        zarr_fakedev_budget(dev, 8 << 20, 0);
        if (k == 1) {
            setenv("ZARRC_DEVICE_BYTES", "3M", 1);
            setenv("ZARRC_PINNED_BYTES", "64K", 1);
        }
        o.device_bytes = k == 2 ? 5 << 20 : 0;
        o.pinned_bytes = k == 2 ? 6 << 20 : 0;
        o.memory_bytes = k == 3 ? 16 << 20 : 64 << 20;
        assert_ok(zarr_context_create(&ctx, &o, &terr));
        assert_ok(zarr_context_register_memory(ctx, zarr_fakedev_vtable_late(), dev,
                                               "test", &terr));
        assert_int_equal(pool_budget(ctx, false), (k == 1 ? 3 : k == 2 ? 5 : 8) << 20);
        assert_int_equal(pool_budget(ctx, true), k == 1   ? 64 << 10
                                                 : k == 2 ? 6 << 20
                                                 : k == 3 ? 4 << 20
                                                          : 8 << 20);
        zarr_context_free(ctx);
        clear_environment(NULL);
    }
}

/* Backends are asked in turn; a pointer that none knows is host memory. */
static void test_classify(void **state)
{
    zarr_memory_vtable other = *zarr_fakedev_vtable_late();
    zarr_memory_vtable mute = *zarr_fakedev_vtable();
    void *dev[3] = {zarr_fakedev_create(), zarr_fakedev_create(), zarr_fakedev_create()};
    zarr_context *ctx = NULL;
    zarr_mem mem[3], pinned = {0};
    int32_t type = 7, id = 7, here = 0;

    (void)state;
    other.device_type = ZARR_DEVICE_CUDA;
    other.name = "other";
    mute.device_type = ZARR_DEVICE_OPENCL; /* has no classify() */
    zarr_fakedev_set_type(dev[1], ZARR_DEVICE_CUDA);
    zarr_fakedev_set_type(dev[2], ZARR_DEVICE_OPENCL);
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    assert_ok(zarr_context_register_memory(ctx, zarr_fakedev_vtable_late(), dev[0],
                                           "test", &terr));
    assert_ok(zarr_context_register_memory(ctx, &other, dev[1], "test", &terr));
    assert_ok(zarr_context_register_memory(ctx, &mute, dev[2], "test", &terr));
    assert_ok(zarr_mem_alloc(ctx, ZARR_DEVICE_EXT, 3, 1000, &mem[0], &terr));
    assert_ok(zarr_mem_alloc(ctx, ZARR_DEVICE_CUDA, 5, 1000, &mem[1], &terr));
    assert_ok(zarr_mem_alloc(ctx, ZARR_DEVICE_OPENCL, 0, 1000, &mem[2], &terr));
    assert_ok(other.host_alloc(dev[1], 5, 1000, &pinned, &terr));
    zarr_mem_classify(ctx, (char *)mem[0].handle + 999, &type, &id);
    assert_int_equal(type, ZARR_DEVICE_EXT);
    assert_int_equal(id, 3);
    zarr_mem_classify(ctx, mem[1].handle, &type, &id);
    assert_int_equal(type, ZARR_DEVICE_CUDA);
    assert_int_equal(id, 5);
    zarr_mem_classify(ctx, pinned.handle, &type, &id);
    assert_int_equal(type, ZARR_DEVICE_CUDA_HOST);
    const void *const host[] = {&here, NULL, mem[2].handle};
    for (size_t i = 0; i < 3; i++) {
        zarr_mem_classify(ctx, host[i], &type, &id);
        assert_int_equal(type, ZARR_DEVICE_CPU);
        assert_int_equal(id, 0);
    }
    other.host_free(dev[1], &pinned);
    for (size_t i = 0; i < 3; i++)
        zarr_mem_free(ctx, &mem[i]);
    zarr_context_free(ctx);
}

static uint64_t live_blocks(void *dev)
{
    zarr_fakedev_counters c;

    zarr_fakedev_count(dev, &c);
    return c.live_blocks;
}

static void keep_warning(void *user, uint32_t level, const char *text)
{
    if (level == ZARR_LOG_WARN)
        snprintf(user, 200, "%s", text);
}

/* Two pools of an application beside the backend that copies. */
static void test_allocators(void **state)
{
    static const char *const wanted[] = {NULL,         "",     "pool",
                                         "other;pool", "fake", "x;pool"};
    static const int allocates[] = {0, 0, 1, 2, 0, 1};

    (void)state;
    for (size_t k = 0; k < sizeof wanted / sizeof wanted[0]; k++) {
        char line[200] = "";
        zarr_context_options o = {.struct_size = sizeof o,
                                  .allocators = k == 3 ? NULL : wanted[k],
                                  .log = keep_warning,
                                  .log_user = line};
        zarr_memory_vtable v[3] = {*zarr_fakedev_vtable(), *zarr_fakedev_vtable_late(),
                                   *zarr_fakedev_vtable_late()};
        zarr_store_options so = {.struct_size = sizeof so,
                                 .device_type = ZARR_DEVICE_EXT};
        zarr_context *ctx = NULL;
        zarr_store *store = NULL;
        zarr_mem a, b, c;
        void *dev[3];
        uint64_t bytes = 0;

        if (k == 3)
            setenv("ZARRC_ALLOCATORS", wanted[k], 1);
        assert_ok(zarr_context_create(&ctx, &o, &terr));
        for (int i = 2; i >= 0; i--) {
            dev[i] = zarr_fakedev_create();
            zarr_fakedev_budget(dev[i], (uint64_t)(i + 1) << 20, 0);
            v[i].flags |= i ? ZARR_MEMORY_ALLOCATOR : 0;
            v[i].copy = i ? NULL : v[i].copy; /* never called */
            v[i].name = i == 0 ? "fake" : i == 1 ? "pool" : "other";
            assert_ok(zarr_context_register_memory(ctx, &v[i], dev[i], "test", &terr));
        }
        assert_status(zarr_mem_alloc_from(ctx, "none", 0, 10, &a, &terr),
                      ZARR_ERR_UNSUPPORTED);
        assert_status(zarr_mem_alloc_from(ctx, NULL, 0, 10, &a, &terr),
                      ZARR_ERR_UNSUPPORTED);
        assert_ok(zarr_mem_alloc(ctx, ZARR_DEVICE_EXT, 0, 100, &a, &terr));
        assert_int_equal(live_blocks(dev[allocates[k]]), 1);
        assert_ok(zarr_mem_alloc_from(ctx, "pool", 0, 100, &b, &terr));
        assert_ok(zarr_mem_alloc_from(ctx, "fake", 0, 100, &c, &terr));
        assert_int_equal(live_blocks(dev[1]), allocates[k] == 1 ? 2 : 1);
        assert_int_equal(b.device_type, ZARR_DEVICE_EXT);
        zarr_mem_free(ctx, &a); /* each goes to the one that allocated it */
        zarr_mem_free(ctx, &c);
        zarr_mem_free(ctx, &b);
        for (int i = 0; i < 3; i++)
            assert_int_equal(live_blocks(dev[i]), 0);
        assert_ok(zr_pool_take(ctx->pool, ZARR_DEVICE_EXT, 0, 100, &a, &terr));
        assert_int_equal(live_blocks(dev[allocates[k]]), 1);
        zr_pool_give(ctx->pool, &a);
        assert_ok(zr_pool_budget(ctx->pool, ZARR_DEVICE_EXT, 0, false, &bytes, &terr));
        if (allocates[k])
            assert_int_equal(bytes, (uint64_t)(allocates[k] + 1) << 20);
        zr_pool_trim(ctx->pool);
        assert_int_equal(live_blocks(dev[allocates[k]]), 0);
        assert_ok(zarr_store_open(&store, ctx, "memory:", &so, &terr));
        assert_ok(zarr_store_put(store, "a", "abc", 3, &terr));
        assert_int_equal(live_blocks(dev[allocates[k]]), 1);
        assert_string_equal(line,
                            k == 5 ? "allocators: there is no memory backend \"x\"" : "");
        zarr_store_free(store);
        zarr_context_free(ctx);
        clear_environment(NULL);
    }
}

/* An allocator alone makes no kind of memory, and host memory has none. */
static void test_allocator_alone(void **state)
{
    zarr_memory_vtable v = *zarr_fakedev_vtable_late();
    void *dev = zarr_fakedev_create();
    zarr_context *ctx = NULL;
    zarr_mem m = {0};

    (void)state;
    v.flags = ZARR_MEMORY_ALLOCATOR;
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    v.device_type = ZARR_DEVICE_CPU;
    assert_status(zarr_context_register_memory(ctx, &v, dev, "test", &terr),
                  ZARR_ERR_INVALID);
    v.device_type = ZARR_DEVICE_EXT;
    assert_ok(zarr_context_register_memory(ctx, &v, dev, "test", &terr));
    assert_status(zarr_context_register_memory(ctx, &v, dev, "test", &terr),
                  ZARR_ERR_EXISTS);
    assert_status(zarr_mem_alloc(ctx, ZARR_DEVICE_EXT, 0, 10, &m, &terr),
                  ZARR_ERR_UNSUPPORTED);
    assert_ok(zarr_mem_alloc_from(ctx, "fake-late", 0, 10, &m, &terr));
    zarr_mem_free(ctx, &m);
    zarr_context_free(ctx);
}

static void test_environment(void **state)
{
    zarr_context_options o = {.struct_size = sizeof o};
    static const char *const bad[][2] = {
        {"ZARRC_THREADS", "many"},
        {"ZARRC_MEMORY_BYTES", "-1"},
        {"ZARRC_MEMORY_BYTES", "K"},
        {"ZARRC_MEMORY_BYTES", "99999999T99"},
        {"ZARRC_DEVICE_BYTES", "much"},
        {"ZARRC_PINNED_BYTES", "1X"},
        {"ZARRC_LOG_LEVEL", "loud"},
        {"ZARRC_PIPELINE", "nope"},
        {"ZARRC_MEMORY_BYTES", "99999999999T"},
        {"ZARRC_DEVICE", "gpu"},
        {"ZARRC_DEVICE", "cuda:"},
        {"ZARRC_DEVICE", "cuda:x"},
        {"ZARRC_DEVICE", "cuda:-1"},
        {"ZARRC_DEVICE", "cuda:0:0"},
        {"ZARRC_DEVICE", ":0"},
        {"ZARRC_DEVICE", "0"},
        {"ZARRC_DEVICE", "0:1"},
        {"ZARRC_DEVICE", "-2"},
        {"ZARRC_DEVICE", "cudA:0"},
        {"ZARRC_DEVICE", "4294967297"},
        {"ZARRC_DEVICE", "cuda:4294967296"},
        {"ZARRC_DEVICE", "cuda:99999999999999999999"},
    };
    zarr_context *ctx = NULL;

    (void)state;
    setenv("ZARRC_THREADS", "5", 1);
    setenv("ZARRC_MEMORY_BYTES", "3M", 1);
    setenv("ZARRC_PIPELINE", "serial", 1);
    setenv("ZARRC_CODEC_PREF", "gzip=x", 1);
    setenv("ZARRC_LOG_LEVEL", "debug", 1);
    setenv("ZARRC_DEVICE", "cuda:3", 1);
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    assert_int_equal(ctx->device_type, ZARR_DEVICE_CUDA);
    assert_int_equal(ctx->device_id, 3);
    assert_int_equal(ctx->engine.n_threads, 5);
    assert_int_equal(ctx->budget.total, 3 << 20);
    assert_string_equal(ctx->pipeline->name, "serial");
    assert_string_equal(ctx->codec_preference, "gzip=x");
    assert_int_equal(ctx->log.level, ZARR_LOG_DEBUG);
    zarr_context_free(ctx);
    o.n_threads = 1; /* options override the environment */
    o.log_level = ZARR_LOG_ERROR;
    o.device_type = ZARR_DEVICE_CPU;
    assert_ok(zarr_context_create(&ctx, &o, &terr));
    assert_int_equal(ctx->device_type, ZARR_DEVICE_CPU);
    assert_int_equal(ctx->device_id, 0);
    assert_int_equal(ctx->engine.n_threads, 1);
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
    setenv("ZARRC_DEVICE", "12", 1);
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    assert_int_equal(ctx->device_type, ZARR_DEVICE_EXT);
    assert_int_equal(ctx->device_id, 0);
    assert_int_equal(ctx->log.level, ZARR_LOG_WARN);
    zarr_context_free(ctx);
    clear_environment(NULL);
}

/* ---- registering -------------------------------------------------------- */

static const zarr_codec_spec_vtable own_codec = {
    .struct_size = sizeof own_codec, .name = "test.own", .kind = ZARR_CODEC_BYTES_BYTES};

struct rows {
    int n, n_own;
    uint32_t last;
    char detail[200];
    int stop_at;
};

static int see_row(void *user, const zarr_registry_item *item)
{
    struct rows *r = user;

    assert_non_null(item->name);
    assert_non_null(item->origin);
    assert_non_null(item->detail);
    assert_true(item->registry >= r->last);
    r->last = item->registry;
    r->n++;
    r->n_own += strcmp(item->origin, "tests") == 0;
    if (strcmp(item->name, "cpu.libzstd") == 0 || strcmp(item->origin, "tests") == 0)
        snprintf(r->detail, sizeof r->detail, "%s", item->detail);
    if (strcmp(item->name, "cpu.libzstd") == 0) {
        assert_true(item->in_kinds & ZARR_MEMORY_BIT(ZARR_DEVICE_CPU));
        assert_true(item->out_kinds & ZARR_MEMORY_BIT(ZARR_DEVICE_CPU));
        assert_int_equal(item->priority, 0);
    }
    if (item->registry == ZARR_REGISTRY_MEMORY && strcmp(item->name, "host") == 0)
        assert_int_equal(item->device_type, ZARR_DEVICE_CPU);
    return r->n == r->stop_at;
}

/* ---- capabilities of an implementation -------------------------------------- */

static zarr_status can_many(void *self, zarr_codec_job *jobs, uint64_t n,
                            zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)jobs;
    (void)n;
    (void)exec;
    return zr_fail(err, ZARR_ERR_UNSUPPORTED, "never called");
}

static zarr_status can_partial(void *self, zarr_codec_job *job,
                               const zarr_codec_range *ranges, uint64_t n,
                               zarr_codec_exec *exec, zarr_error *err)
{
    (void)ranges;
    return can_many(self, job, n, exec, err);
}

static zarr_status can_strided(void *self, zarr_codec_job *job,
                               const zarr_codec_strided *to, zarr_codec_exec *exec,
                               zarr_error *err)
{
    (void)to;
    return can_many(self, job, 1, exec, err);
}

static int see_can(void *user, const zarr_registry_item *item)
{
    if (strcmp(item->origin, "tests") == 0)
        snprintf(user, 80, "%s", item->capabilities);
    return 0;
}

static void test_can(void **state)
{
    zarr_codec_impl_vtable v = {.struct_size = sizeof v,
                                .caps = ZARR_CODEC_CAN_DECODE,
                                .codec = "zstd",
                                .impl = "test.can",
                                .in_kinds = 2,
                                .out_kinds = 2,
                                .decode = can_many,
                                .strided = can_strided};
    zarr_context *ctx = NULL;
    char can[80] = "";

    (void)state;
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    assert_ok(zarr_context_register_codec_impl(ctx, &v, "tests", &terr));
    assert_ok(zarr_context_list(ctx, ZARR_REGISTRY_CODEC_IMPL, see_can, can, &terr));
    assert_string_equal(can, "decode strided");
    v.impl = "test.more";
    v.caps |= ZARR_CODEC_BATCH | ZARR_CODEC_SAFE;
    v.partial = can_partial;
    assert_ok(zarr_context_register_codec_impl(ctx, &v, "tests", &terr));
    assert_ok(zarr_context_list(ctx, ZARR_REGISTRY_CODEC_IMPL, see_can, can, &terr));
    assert_string_equal(can, "decode batch partial strided safe");
    zarr_context_free(ctx);
}

static void test_register(void **state)
{
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_codec_spec_vtable taken = own_codec;
    struct rows all = {0}, codecs = {0}, some = {.stop_at = 3}, impls = {0};

    (void)state;
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    assert_ok(zarr_context_register_codec_spec(ctx, &own_codec, "tests", &terr));
    assert_status(zarr_context_register_codec_spec(ctx, &own_codec, "tests", &terr),
                  ZARR_ERR_EXISTS);
    taken.name = "zstd"; /* a name of the core */
    assert_status(zarr_context_register_codec_spec(ctx, &taken, "tests", &terr),
                  ZARR_ERR_EXISTS);
    assert_status(zarr_context_register_grid(ctx, &zr_grid_regular, "tests", &terr),
                  ZARR_ERR_EXISTS);
    assert_status(zarr_context_register_codec_spec(ctx, NULL, "tests", &terr),
                  ZARR_ERR_INVALID);
    taken.name = "test.more";
    assert_status(zarr_context_register_codec_spec(ctx, &taken, "", &terr),
                  ZARR_ERR_INVALID);
    assert_status(zarr_context_register_codec_spec(ctx, &taken, "core", &terr),
                  ZARR_ERR_INVALID);

    assert_ok(zarr_context_list(ctx, 0, see_row, &all, &terr));
    assert_int_equal(all.n_own, 1);
    assert_true(all.n > 40);
    assert_ok(zarr_context_list(ctx, ZARR_REGISTRY_CODEC, see_row, &codecs, &terr));
    assert_string_equal(codecs.detail, "bytes to bytes");
    assert_ok(zarr_context_list(ctx, ZARR_REGISTRY_CODEC_IMPL, see_row, &impls, &terr));
    assert_non_null(strstr(impls.detail, "zstd; priority 0; memory"));
    assert_ok(zarr_context_list(ctx, 0, see_row, &some, &terr));
    assert_int_equal(some.n, 3);
    assert_status(zarr_context_list(ctx, 99, see_row, &some, &terr), ZARR_ERR_INVALID);

    /* This call seals the context. */
    assert_ok(zarr_store_open(&store, ctx, "memory:", NULL, &terr));
    assert_status(zarr_context_register_codec_spec(ctx, &taken, "tests", &terr),
                  ZARR_ERR_INVALID);
    assert_non_null(strstr(terr.message, "sealed"));
    zarr_context_free(ctx); /* the store keeps it alive */
    zarr_store_free(store);
}

/* A refused name is reported with the reason, and no name is both refused and known. */
static int check_refused(void *user, const zarr_registry_item *item)
{
    zarr_context *ctx = user;
    const zarr_dtype *dtype = NULL;

    assert_int_equal(item->registry, ZARR_REGISTRY_REFUSED);
    assert_true(*item->name && *item->of && *item->detail);
    if (zr_streq(item->of, "data type")) {
        assert_status(zarr_dtype_find(ctx, item->name, &dtype, &terr),
                      ZARR_ERR_UNSUPPORTED);
        assert_non_null(strstr(terr.message, item->detail));
    } else if (zr_streq(item->of, "codec")) {
        assert_null(zr_codec_spec_lookup(&ctx->codecs, item->name));
    } else if (zr_streq(item->of, "chunk grid")) {
        assert_null(zr_registry_find(&ctx->grids.grids, item->name));
    } else if (zr_streq(item->of, "chunk key encoding")) {
        assert_null(zr_registry_find(&ctx->grids.encodings, item->name));
    } else if (!zr_streq(item->of, "member") &&   /* of a chunk grid or key encoding */
               !zr_streq(item->of, "elements")) { /* that no codec accepts */
        assert_string_equal(item->of, "storage transformer");
    }
    return 0;
}

static void test_refused(void **state)
{
    zarr_context *ctx = NULL;

    (void)state;
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    assert_ok(zarr_context_list(ctx, ZARR_REGISTRY_REFUSED, check_refused, ctx, &terr));
    zarr_context_free(ctx);
    assert_status(zr_fail_refused(&terr, zr_codec_refused, "codec", "imagecodecs_jpeg2k"),
                  ZARR_ERR_UNSUPPORTED);
    assert_non_null(strstr(terr.message, "\"imagecodecs_jpeg2k\" is refused: "));
    assert_status(zr_fail_refused(&terr, zr_codec_refused, "codec", "imagecodec"),
                  ZARR_ERR_UNSUPPORTED);
    assert_string_equal(terr.message, "codec \"imagecodec\" is not known");
}

static zarr_status own_type(zarr_dtype_info *info, const zarr_dtype_host *host,
                            const char *name, const char *json, zarr_error *err)
{
    (void)host;
    (void)name;
    (void)json;
    (void)err;
    info->item_bytes = 1;
    info->kind = ZARR_KIND_OTHER;
    return ZARR_OK;
}

/* A name is refused only until it is registered. */
static void test_refused_brought(void **state)
{
    zarr_dtype_vtable type = *zr_dtype_core[0];
    zarr_codec_spec_vtable codec = own_codec;
    zarr_grid_vtable grid = zr_grid_rectilinear;
    zarr_key_encoding_vtable keys = zr_key_v2;
    struct zr_key_encoding made = {0};
    zarr_context *ctx = NULL;
    const zarr_dtype *found = NULL;

    (void)state;
    type.name = "json";
    type.parse = own_type;
    type.v2 = NULL;
    type.aliases = NULL;
    type.numpy = NULL;
    type.flags = 0;
    codec.name = "lzw";
    grid.name = "rectangular";
    keys.name = "fanout";
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    assert_ok(zarr_context_register_dtype(ctx, &type, "tests", &terr));
    assert_ok(zarr_context_register_codec_spec(ctx, &codec, "tests", &terr));
    assert_ok(zarr_context_register_grid(ctx, &grid, "tests", &terr));
    assert_ok(zarr_context_register_key_encoding(ctx, &keys, "tests", &terr));
    assert_ok(zarr_dtype_find(ctx, "json", &found, &terr));
    assert_string_equal(zarr_dtype_name(found), "json");
    assert_string_equal(zr_codec_spec_lookup(&ctx->codecs, "lzw")->name, "lzw");
    assert_non_null(zr_registry_find(&ctx->grids.grids, "rectangular"));
    assert_ok(zr_key_encoding_parse(&made, &ctx->grids, "fanout", NULL, &terr));
    zr_key_encoding_deinit(&made);
    zarr_context_free(ctx);
}

static void test_dtypes_and_memory(void **state)
{
    zarr_context *ctx = NULL;
    const zarr_dtype *a = NULL, *b = NULL;
    zarr_mem m = {0}, n = {0};

    (void)state;
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    assert_ok(zarr_dtype_find(ctx, "<f4", &a, &terr));
    assert_ok(zarr_dtype_from_dlpack(ctx, 2, 32, 1, &b, &terr));
    assert_ptr_equal(a, b);
    assert_status(zarr_dtype_find(ctx, "nope", &b, &terr), ZARR_ERR_UNSUPPORTED);
    assert_null(b);
    assert_status(zarr_dtype_find(ctx, NULL, &b, &terr), ZARR_ERR_INVALID);

    assert_ok(zarr_mem_alloc(ctx, ZARR_DEVICE_CPU, 0, 100, &m, &terr));
    assert_ok(zarr_mem_alloc(ctx, 0, 0, 50, &n, &terr));
    assert_int_equal((uintptr_t)m.handle % 64, 0);
    memset(m.handle, 7, 100);
    assert_ok(zarr_mem_copy(ctx, &n, &m, 50, &terr));
    assert_int_equal(((uint8_t *)n.handle)[49], 7);
    assert_status(zarr_mem_copy(ctx, &n, &m, 100000, &terr), ZARR_ERR_INVALID);
    zarr_mem_free(ctx, &m);
    assert_null(m.handle);
    zarr_mem_free(ctx, &m);
    zarr_mem_free(ctx, &n);
    assert_status(zarr_mem_alloc(ctx, ZARR_DEVICE_CUDA, 0, 1, &m, &terr),
                  ZARR_ERR_UNSUPPORTED);
    zarr_context_free(ctx);
}

static void test_failing_allocations(void **state)
{
    (void)state;
    for (int forever = 0; forever < 2; forever++)
        for (size_t k = 1;; k++) {
            struct fail_alloc f;
            zarr_context_options o = {.struct_size = sizeof o, .codec_preference = "a=b"};
            zarr_context *ctx = NULL;
            zarr_status st;

            fail_alloc_init(&f, k, forever);
            o.allocator = &f.alloc;
            st = zarr_context_create(&ctx, &o, &terr);
            if (st == ZARR_OK)
                st = zarr_context_register_codec_spec(ctx, &own_codec, "tests", &terr);
            zarr_context_free(ctx);
            assert_int_equal(f.held, 0);
            if (!f.failed) {
                assert_int_equal(st, ZARR_OK);
                assert_true(k > 20);
                break;
            }
            assert_int_equal(st, ZARR_ERR_NO_MEMORY);
        }
}

struct lister {
    zarr_context *ctx;
    uint32_t registry;
    atomic_bool stop;
    zr_thread thread;
};

static int ignore_row(void *user, const zarr_registry_item *item)
{
    (void)user;
    (void)item;
    return 0;
}

static void *list_all_the_time(void *arg)
{
    struct lister *l = arg;
    zarr_error err;

    while (!atomic_load(&l->stop))
        (void)!zarr_context_list(l->ctx, l->registry, ignore_row, NULL, &err);
    return NULL;
}

/* Forks while other threads list. The child inherits no held lock. Listing plug-ins does
 * nothing but lock, as long as none is loaded. */
static void test_fork(void **state)
{
    struct lister l[2] = {{.registry = 0}, {.registry = ZARR_REGISTRY_PLUGIN}};
    zarr_context *ctx = NULL;

    (void)state;
    SKIP_WITHOUT_THREADED_FORK();
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    for (int i = 0; i < 2; i++) {
        l[i].ctx = ctx;
        assert_int_equal(zr_thread_start(&l[i].thread, list_all_the_time, &l[i], NULL),
                         ZARR_OK);
    }
    for (int i = 0; i < 50; i++) {
        int status = 0;
        const pid_t pid = fork();

        if (pid == 0) {
            alarm(20);
            _exit(zarr_context_list(ctx, 0, ignore_row, NULL, &terr) != ZARR_OK);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
    for (int i = 0; i < 2; i++) {
        atomic_store(&l[i].stop, true);
        zr_thread_join(&l[i].thread);
    }
    zarr_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_budgets),
        cmocka_unit_test(test_allocators),
        cmocka_unit_test(test_allocator_alone),
        cmocka_unit_test(test_classify),
        cmocka_unit_test(test_can),
        cmocka_unit_test(test_register),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_refused_brought),
        cmocka_unit_test(test_dtypes_and_memory),
        cmocka_unit_test(test_failing_allocations),
        cmocka_unit_test(test_fork),
    };

    return cmocka_run_group_tests(tests, clear_environment, NULL);
}
