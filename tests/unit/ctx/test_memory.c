/*
 * unit/ctx/test_memory.c - memory of a context: budgets of a device, pointers told apart,
 * allocators of an application, data types and blocks for applications.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fakedev/fakedev.h"
#include "unit/ctx/ctx_test.h"

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
    zarr_memory mem[3], pinned = {0};
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
    assert_ok(zarr_memory_alloc(&mem[0], ctx, ZARR_DEVICE_EXT, 3, 1000, &terr));
    assert_ok(zarr_memory_alloc(&mem[1], ctx, ZARR_DEVICE_CUDA, 5, 1000, &terr));
    assert_ok(zarr_memory_alloc(&mem[2], ctx, ZARR_DEVICE_OPENCL, 0, 1000, &terr));
    assert_ok(other.host_alloc(dev[1], 5, 1000, &pinned, &terr));
    zarr_memory_classify(ctx, (char *)mem[0].handle + 999, &type, &id);
    assert_int_equal(type, ZARR_DEVICE_EXT);
    assert_int_equal(id, 3);
    zarr_memory_classify(ctx, mem[1].handle, &type, &id);
    assert_int_equal(type, ZARR_DEVICE_CUDA);
    assert_int_equal(id, 5);
    zarr_memory_classify(ctx, pinned.handle, &type, &id);
    assert_int_equal(type, ZARR_DEVICE_CUDA_HOST);
    const void *const host[] = {&here, NULL, mem[2].handle};
    for (size_t i = 0; i < 3; i++) {
        zarr_memory_classify(ctx, host[i], &type, &id);
        assert_int_equal(type, ZARR_DEVICE_CPU);
        assert_int_equal(id, 0);
    }
    other.host_free(dev[1], &pinned);
    for (size_t i = 0; i < 3; i++)
        zarr_memory_free(ctx, &mem[i]);
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
        zarr_memory a, b, c;
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
        assert_status(zarr_memory_alloc_from(&a, ctx, "none", 0, 10, &terr),
                      ZARR_ERR_UNSUPPORTED);
        assert_status(zarr_memory_alloc_from(&a, ctx, NULL, 0, 10, &terr),
                      ZARR_ERR_UNSUPPORTED);
        assert_ok(zarr_memory_alloc(&a, ctx, ZARR_DEVICE_EXT, 0, 100, &terr));
        assert_int_equal(live_blocks(dev[allocates[k]]), 1);
        assert_ok(zarr_memory_alloc_from(&b, ctx, "pool", 0, 100, &terr));
        assert_ok(zarr_memory_alloc_from(&c, ctx, "fake", 0, 100, &terr));
        assert_int_equal(live_blocks(dev[1]), allocates[k] == 1 ? 2 : 1);
        assert_int_equal(b.device_type, ZARR_DEVICE_EXT);
        zarr_memory_free(ctx, &a); /* each goes to the one that allocated it */
        zarr_memory_free(ctx, &c);
        zarr_memory_free(ctx, &b);
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
        assert_ok(zarr_store_put(store, "a", "abc", 3, NULL, &terr));
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
    zarr_memory m = {0};

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
    assert_status(zarr_memory_alloc(&m, ctx, ZARR_DEVICE_EXT, 0, 10, &terr),
                  ZARR_ERR_UNSUPPORTED);
    assert_ok(zarr_memory_alloc_from(&m, ctx, "fake-late", 0, 10, &terr));
    zarr_memory_free(ctx, &m);
    zarr_context_free(ctx);
}

static void test_dtypes_and_memory(void **state)
{
    zarr_context *ctx = NULL;
    const zarr_dtype *a = NULL, *b = NULL;
    zarr_memory m = {0}, n = {0};

    (void)state;
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    assert_ok(zarr_dtype_find(&a, ctx, "<f4", &terr));
    assert_ok(zarr_dtype_from_dlpack(&b, ctx, 2, 32, 1, &terr));
    assert_ptr_equal(a, b);
    assert_status(zarr_dtype_find(&b, ctx, "nope", &terr), ZARR_ERR_UNSUPPORTED);
    assert_null(b);
    assert_status(zarr_dtype_find(&b, ctx, NULL, &terr), ZARR_ERR_INVALID);

    assert_ok(zarr_memory_alloc(&m, ctx, ZARR_DEVICE_CPU, 0, 100, &terr));
    assert_ok(zarr_memory_alloc(&n, ctx, 0, 0, 50, &terr));
    assert_int_equal((uintptr_t)m.handle % 64, 0);
    memset(m.handle, 7, 100);
    assert_ok(zarr_memory_copy(ctx, &n, &m, 50, &terr));
    assert_int_equal(((uint8_t *)n.handle)[49], 7);
    assert_status(zarr_memory_copy(ctx, &n, &m, 100000, &terr), ZARR_ERR_INVALID);
    zarr_memory_free(ctx, &m);
    assert_null(m.handle);
    zarr_memory_free(ctx, &m);
    zarr_memory_free(ctx, &n);
    assert_status(zarr_memory_alloc(&m, ctx, ZARR_DEVICE_CUDA, 0, 1, &terr),
                  ZARR_ERR_UNSUPPORTED);
    assert_non_null(strstr(terr.message, "device type 2 (cuda)"));
    assert_non_null(strstr(terr.message, "ZARRC_PLUGINS"));
    zarr_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_budgets),           cmocka_unit_test(test_allocators),
        cmocka_unit_test(test_allocator_alone),   cmocka_unit_test(test_classify),
        cmocka_unit_test(test_dtypes_and_memory),
    };

    return cmocka_run_group_tests(tests, clear_environment, NULL);
}
