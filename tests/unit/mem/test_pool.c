/*
 * tests/unit/mem/test_pool.c - pooled blocks: the newest is reused first, size classes,
 * the cap and the order of eviction, device blocks, no allocation in the steady state,
 * failing allocators, and many threads.
 */
#include "unit/mem/mem_test.h"

#include <limits.h>

#include "fakedev/fakedev.h"

/* Fails each call whose number (from 1) is at least fail_from. */
struct failing {
    atomic_long calls, live;
    long fail_from;
};

static void *failing_alloc(void *user, size_t bytes)
{
    struct failing *f = user;

    if (atomic_fetch_add(&f->calls, 1) + 1 >= f->fail_from)
        return NULL;
    atomic_fetch_add(&f->live, 1);
    return malloc(bytes);
}

static void *failing_realloc(void *user, void *block, size_t bytes)
{
    struct failing *f = user;

    if (atomic_fetch_add(&f->calls, 1) + 1 >= f->fail_from)
        return NULL;
    if (!block)
        atomic_fetch_add(&f->live, 1);
    return realloc(block, bytes);
}

static void failing_free(void *user, void *block)
{
    struct failing *f = user;

    if (block)
        atomic_fetch_sub(&f->live, 1);
    free(block);
}

struct bench {
    struct failing f;
    zarr_allocator alloc;
    struct zr_memory_registry r;
    struct zr_pool *pool;
    void *dev;
};

static void bench_open(struct bench *b, uint64_t keep_bytes)
{
    memset(b, 0, sizeof *b);
    b->f.fail_from = LONG_MAX;
    b->alloc = (zarr_allocator){&b->f, failing_alloc, failing_realloc, failing_free};
    b->dev = zarr_fakedev_create();
    assert_int_equal(zr_memory_registry_init(&b->r, &b->alloc, NULL), ZARR_OK);
    assert_int_equal(
        zr_memory_register(&b->r, zarr_fakedev_vtable(), b->dev, "test", NULL), ZARR_OK);
    assert_int_equal(zr_pool_create(&b->pool, &b->r, &b->alloc, keep_bytes, NULL),
                     ZARR_OK);
}

static void bench_close(struct bench *b)
{
    zr_pool_free(b->pool);
    zr_memory_registry_deinit(&b->r);
    assert_int_equal(b->f.live, 0);
}

static zarr_memory take(struct bench *b, int32_t type, uint64_t bytes)
{
    zarr_memory m;

    assert_int_equal(zr_pool_take(b->pool, type, 0, bytes, &m, NULL), ZARR_OK);
    assert_true(m.bytes >= bytes);
    assert_true(m.bytes <= (bytes < 64 ? 64 : bytes + bytes / 4));
    return m;
}

static void newest_first_without_malloc(void **state)
{
    struct bench b;
    zarr_memory x, y, z;
    void *first, *second;
    long calls;

    ZR_UNUSED(state);
    bench_open(&b, 1 << 20);
    x = take(&b, ZARR_DEVICE_CPU, 1000);
    y = take(&b, ZARR_DEVICE_CPU, 896); /* another size class */
    assert_int_equal((uintptr_t)x.handle % 64, 0);
    first = x.handle;
    second = y.handle;
    zr_pool_give(b.pool, &x);
    assert_null(x.handle);
    zr_pool_give(b.pool, &x); /* the class is empty */
    zr_pool_give(b.pool, &y);
    calls = b.f.calls;
    for (int n = 0; n < 10; n++) {
        x = take(&b, ZARR_DEVICE_CPU, 1000);
        assert_ptr_equal(x.handle, first);
        y = take(&b, ZARR_DEVICE_CPU, 896);
        assert_ptr_equal(y.handle, second);
        zr_pool_give(b.pool, &y);
        zr_pool_give(b.pool, &x);
    }
    assert_int_equal(b.f.calls, calls);
    x = take(&b, ZARR_DEVICE_CPU, 1000);
    z = take(&b, ZARR_DEVICE_CPU, 1024); /* the same class, but x is in use */
    assert_ptr_not_equal(z.handle, first);
    second = z.handle;
    zr_pool_give(b.pool, &x);
    zr_pool_give(b.pool, &z);
    z = take(&b, ZARR_DEVICE_CPU, 1000);
    assert_ptr_equal(z.handle, second); /* the newest */
    zr_pool_give(b.pool, &z);
    bench_close(&b);
}

static void oldest_goes_first(void **state)
{
    struct bench b;
    zarr_memory m[4];
    void *kept;

    ZR_UNUSED(state);
    bench_open(&b, 3 * 4096);
    for (int k = 0; k < 4; k++)
        m[k] = take(&b, k % 2 ? ZARR_DEVICE_EXT : ZARR_DEVICE_CPU, 4096);
    kept = m[3].handle;
    for (int k = 0; k < 4; k++)
        zr_pool_give(b.pool, &m[k]);
    m[3] = take(&b, ZARR_DEVICE_EXT, 4096);
    assert_ptr_equal(m[3].handle, kept);
    zr_pool_give(b.pool, &m[3]);
    m[0] = take(&b, ZARR_DEVICE_CPU, 12289); /* never kept: larger than the cap */
    zr_pool_give(b.pool, &m[0]);
    m[0] = take(&b, ZARR_DEVICE_EXT, 12288); /* evicts all others */
    zr_pool_give(b.pool, &m[0]);
    {
        zarr_fakedev_counters c;
        zarr_fakedev_count(b.dev, &c);
        assert_int_equal(c.live_bytes, 12288);
        zr_pool_trim(b.pool);
        zarr_fakedev_count(b.dev, &c);
        assert_int_equal(c.live_bytes, 0);
        assert_int_equal(c.faults, 0);
    }
    bench_close(&b);
}

static void keeps_nothing_with_cap_zero(void **state)
{
    struct bench b;
    zarr_memory m;
    long live;

    ZR_UNUSED(state);
    bench_open(&b, 0);
    live = b.f.live;
    m = take(&b, ZARR_DEVICE_CPU, 5000);
    zr_pool_give(b.pool, &m);
    assert_int_equal(b.f.live, live);
    bench_close(&b);
}

static void without_memory(void **state)
{
    struct bench b;
    zarr_error err = {0};
    zarr_memory m, n;
    struct zr_pool *none;

    ZR_UNUSED(state);
    bench_open(&b, 1 << 20);
    m = take(&b, ZARR_DEVICE_CPU, 5000);
    b.f.fail_from = 0;
    assert_int_equal(zr_pool_create(&none, &b.r, &b.alloc, 1, &err), ZARR_ERR_NO_MEMORY);
    assert_null(none);
    assert_int_equal(zr_pool_take(b.pool, ZARR_DEVICE_CPU, 0, 5000, &n, &err),
                     ZARR_ERR_NO_MEMORY);
    zr_pool_give(b.pool, &m); /* no memory for a list node: the block is freed */
    assert_int_equal(zr_pool_take(b.pool, ZARR_DEVICE_CPU, 0, UINT64_MAX, &n, &err),
                     ZARR_ERR_NO_MEMORY);
    assert_int_equal(zr_pool_take(b.pool, ZARR_DEVICE_CUDA, 0, 1, &n, &err),
                     ZARR_ERR_UNSUPPORTED);
    bench_close(&b);
}

static void idle_blocks_make_room(void **state)
{
    struct bench b;
    zarr_fakedev_counters c;
    zarr_memory m;

    ZR_UNUSED(state);
    bench_open(&b, 1 << 20);
    m = take(&b, ZARR_DEVICE_EXT, 5000);
    zr_pool_give(b.pool, &m);
    zarr_fakedev_fail(b.dev, ZARR_FAKEDEV_ALLOC, 1, ZARR_ERR_NO_MEMORY);
    m = take(&b, ZARR_DEVICE_EXT, 50000); /* the second try succeeds after a trim */
    zarr_fakedev_count(b.dev, &c);
    assert_int_equal(c.live_blocks, 1);
    zr_pool_give(b.pool, &m);
    bench_close(&b);
}

/* ---- budgets and pinned memory ------------------------------------------------- */

static void late_open_with(struct bench *b, const zarr_memory_vtable *v,
                           uint64_t keep_bytes, uint64_t device_bytes,
                           uint64_t pinned_bytes)
{
    memset(b, 0, sizeof *b);
    b->f.fail_from = LONG_MAX;
    b->alloc = (zarr_allocator){&b->f, failing_alloc, failing_realloc, failing_free};
    b->dev = zarr_fakedev_create();
    zarr_fakedev_budget(b->dev, device_bytes, pinned_bytes);
    assert_int_equal(zr_memory_registry_init(&b->r, &b->alloc, NULL), ZARR_OK);
    assert_int_equal(zr_memory_register(&b->r, v, b->dev, "test", NULL), ZARR_OK);
    assert_int_equal(zr_pool_create(&b->pool, &b->r, &b->alloc, keep_bytes, NULL),
                     ZARR_OK);
}

static void late_open(struct bench *b, uint64_t keep_bytes, uint64_t device_bytes,
                      uint64_t pinned_bytes, uint32_t without)
{
    zarr_memory_vtable v = *zarr_fakedev_vtable_late();

    v.limit = without & ZARR_FAKEDEV_LIMIT ? NULL : v.limit;
    v.host_alloc = without & ZARR_FAKEDEV_HOST ? NULL : v.host_alloc;
    late_open_with(b, &v, keep_bytes, device_bytes, pinned_bytes);
}

static uint64_t budget(struct bench *b, bool pinned)
{
    uint64_t bytes = 0;

    assert_int_equal(zr_pool_budget(b->pool, ZARR_DEVICE_EXT, 0, pinned, &bytes, NULL),
                     ZARR_OK);
    return bytes;
}

static zarr_memory take_staging(struct bench *b, uint64_t bytes)
{
    zarr_memory m;

    assert_int_equal(zr_pool_take_staging(b->pool, ZARR_DEVICE_EXT, 0, bytes, &m, NULL),
                     ZARR_OK);
    assert_int_equal(m.device_type, ZARR_DEVICE_CPU);
    assert_true(m.bytes >= bytes);
    memset(m.handle, 1, bytes);
    return m;
}

static void budgets_come_from_the_device(void **state)
{
    struct bench b;

    ZR_UNUSED(state);
    late_open(&b, 1 << 20, 5 << 20, 0, 0);
    assert_int_equal(budget(&b, false), 5 << 20);
    assert_int_equal(budget(&b, true), 1 << 20); /* also at most keep_bytes */
    bench_close(&b);
    late_open(&b, 9 << 20, 5 << 20, 0, 0);
    assert_int_equal(budget(&b, true), 5 << 20);
    bench_close(&b);
    late_open(&b, 9 << 20, 5 << 20, 0, 0);
    zr_pool_set_budgets(b.pool, 4096, 8192, 8192);
    assert_int_equal(budget(&b, false), 4096);
    assert_int_equal(budget(&b, true), 8192);
    bench_close(&b);
    late_open(&b, 9 << 20, 5 << 20, 0, ZARR_FAKEDEV_LIMIT | ZARR_FAKEDEV_HOST);
    assert_true(budget(&b, false) == UINT64_MAX);
    assert_true(budget(&b, true) == UINT64_MAX); /* ordinary host memory */
    bench_close(&b);
}

static void a_device_keeps_its_budget(void **state)
{
    zarr_fakedev_counters c;
    zarr_error err = {0};
    struct bench b;
    zarr_memory m[4], host;
    void *kept;

    ZR_UNUSED(state);
    late_open(&b, 4096, 3 * 4096, 0, 0);
    host = take(&b, ZARR_DEVICE_CPU, 4096);
    zr_pool_give(b.pool, &host);
    for (int k = 0; k < 3; k++)
        m[k] = take(&b, ZARR_DEVICE_EXT, 4096);
    assert_int_equal(zr_pool_take(b.pool, ZARR_DEVICE_EXT, 0, 64, &m[3], &err),
                     ZARR_ERR_NO_MEMORY);
    assert_non_null(strstr(err.message, "budget of 12288 bytes"));
    assert_null(m[3].handle);
    kept = m[2].handle;
    for (int k = 0; k < 3; k++)
        zr_pool_give(b.pool, &m[k]);
    m[0] = take(&b, ZARR_DEVICE_EXT, 4096); /* all are kept, beyond keep_bytes */
    assert_ptr_equal(m[0].handle, kept);
    zarr_fakedev_count(b.dev, &c);
    assert_int_equal(c.allocs, 3);
    m[1] = take(&b, ZARR_DEVICE_EXT, 8192); /* both idle blocks go */
    zarr_fakedev_count(b.dev, &c);
    assert_int_equal(c.peak_bytes, 3 * 4096);
    zr_pool_give(b.pool, &m[0]);
    zr_pool_give(b.pool, &m[1]);
    assert_int_equal(zr_pool_take(b.pool, ZARR_DEVICE_EXT, 0, 4 * 4096, &m[0], &err),
                     ZARR_ERR_NO_MEMORY); /* never fits: nothing is freed for it */
    zarr_fakedev_count(b.dev, &c);
    assert_int_equal(c.live_blocks, 2);
    zr_pool_trim(b.pool);
    zarr_fakedev_count(b.dev, &c);
    assert_int_equal(c.live_blocks, 0);
    bench_close(&b);
}

static void pinned_blocks_are_reused(void **state)
{
    zarr_fakedev_late_counters c;
    struct bench b;
    zarr_memory m, n;
    void *was;

    ZR_UNUSED(state);
    late_open(&b, 3 * 4096, 0, 0, 0);
    m = take_staging(&b, 4096);
    n = take_staging(&b, 8192);
    was = m.handle;
    zr_pool_give(b.pool, &m);
    assert_null(m.handle);
    m = take_staging(&b, 4000);
    assert_ptr_equal(m.handle, was);
    zarr_fakedev_late_count(b.dev, &c);
    assert_int_equal(c.pinned_allocs, 2);
    {
        zarr_memory plain = take_staging(&b, 100); /* the budget is used up */
        int32_t type = 0, id = 0;

        assert_int_equal(
            zarr_fakedev_vtable_late()->classify(b.dev, plain.handle, &type, &id), 0);
        zr_pool_give(b.pool, &plain);
    }
    zr_pool_give(b.pool, &n);
    zr_pool_give(b.pool, &m);
    zarr_fakedev_late_count(b.dev, &c);
    assert_int_equal(c.pinned_blocks, 2);
    zr_pool_trim(b.pool);
    zarr_fakedev_late_count(b.dev, &c);
    assert_int_equal(c.pinned_blocks, 0);
    assert_int_equal(c.pinned_peak, 3 * 4096);
    bench_close(&b);
}

static void pinned_memory_may_be_missing(void **state)
{
    zarr_fakedev_late_counters c;
    zarr_error err = {0};
    struct bench b;
    zarr_memory m;

    ZR_UNUSED(state);
    late_open(&b, 1 << 20, 0, 0, ZARR_FAKEDEV_HOST);
    m = take_staging(&b, 5000);
    zr_pool_give(b.pool, &m);
    bench_close(&b);
    late_open(&b, 1 << 20, 0, 2000, 0); /* the machine has no more */
    m = take_staging(&b, 5000);
    zarr_fakedev_late_count(b.dev, &c);
    assert_int_equal(c.pinned_allocs, 0);
    zr_pool_give(b.pool, &m);
    zarr_fakedev_fail(b.dev, ZARR_FAKEDEV_HOST, 1, ZARR_ERR_DEVICE);
    m = take_staging(&b, 100); /* the second try succeeds after a trim */
    zarr_fakedev_late_count(b.dev, &c);
    assert_int_equal(c.pinned_allocs, 1);
    zr_pool_give(b.pool, &m);
    zr_pool_trim(b.pool);
    zarr_fakedev_decline(b.dev, ZARR_FAKEDEV_HOST); /* fails each time */
    assert_int_equal(zr_pool_take_staging(b.pool, ZARR_DEVICE_EXT, 0, 100, &m, &err),
                     ZARR_ERR_UNSUPPORTED);
    assert_null(m.handle);
    bench_close(&b);
    late_open(&b, 1 << 20, 1 << 20, 0, 0);
    zarr_fakedev_fail(b.dev, ZARR_FAKEDEV_LIMIT, 1, ZARR_ERR_DEVICE);
    assert_int_equal(zr_pool_take_staging(b.pool, ZARR_DEVICE_EXT, 0, 100, &m, &err),
                     ZARR_ERR_DEVICE);
    m = take_staging(&b, 100); /* asked again */
    zr_pool_give(b.pool, &m);
    m = take_staging(&b, 5000);
    b.f.fail_from = 0; /* the library has no memory; a block that is idle needs none */
    zr_pool_give(b.pool, &m);
    m = take_staging(&b, 5000);
    zr_pool_give(b.pool, &m);
    bench_close(&b);
}

static void *pool_worker(void *arg)
{
    struct bench *b = arg;
    struct rnd r = {(uint64_t)(uintptr_t)&b | 1};
    zarr_memory held[8] = {{0}};

    for (int n = 0; n < 3000; n++) {
        zarr_memory *m = &held[rnd_below(&r, ZR_COUNT(held))];

        if (m->handle) {
            if (m->device_type == ZARR_DEVICE_CPU && *(uint64_t *)m->handle != m->bytes)
                return (void *)1;
            zr_pool_give(b->pool, m);
        } else if (rnd_below(&r, 8) == 0) {
            if (zr_pool_take_staging(b->pool, ZARR_DEVICE_EXT, 0, rnd_below(&r, 9000), m,
                                     NULL) != ZARR_OK)
                return (void *)1;
            *(uint64_t *)m->handle = m->bytes;
        } else {
            if (zr_pool_take(b->pool,
                             rnd_below(&r, 20) ? ZARR_DEVICE_CPU : ZARR_DEVICE_EXT, 0,
                             64 + rnd_below(&r, 20000), m, NULL) != ZARR_OK)
                return (void *)1;
            if (m->device_type == ZARR_DEVICE_CPU)
                *(uint64_t *)m->handle = m->bytes;
        }
        if (rnd_below(&r, 1000) == 0)
            zr_pool_trim(b->pool);
    }
    for (size_t k = 0; k < ZR_COUNT(held); k++)
        zr_pool_give(b->pool, &held[k]);
    return NULL;
}

static void many_threads(void **state)
{
    struct bench b;
    pthread_t threads[4];
    void *bad = NULL;

    ZR_UNUSED(state);
    late_open(&b, 100000, 0, 0, 0);
    for (size_t k = 0; k < ZR_COUNT(threads); k++)
        assert_int_equal(pthread_create(&threads[k], NULL, pool_worker, &b), 0);
    for (size_t k = 0; k < ZR_COUNT(threads); k++) {
        void *result;
        pthread_join(threads[k], &result);
        bad = result ? result : bad;
    }
    assert_null(bad);
    bench_close(&b);
}

/* A device that frees a large block once it is told. */
static atomic_bool frees, may_free;

static void nap(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void slow_free(void *self, zarr_memory *mem)
{
    atomic_store(&frees, true);
    while (mem->bytes > 4096 && !atomic_load(&may_free))
        nap();
    zarr_fakedev_vtable_late()->free(self, mem);
}

struct taker {
    pthread_t thread;
    struct zr_pool *pool;
    uint64_t bytes;
    zarr_memory mem;
    zarr_status st;
};

static void *take_one(void *arg)
{
    struct taker *t = arg;

    t->st = zr_pool_take(t->pool, ZARR_DEVICE_EXT, 0, t->bytes, &t->mem, NULL);
    return NULL;
}

/* Two blocks fit where an idle one is, but the device has no room before it is freed. */
static void freed_blocks_are_waited_for(void **state)
{
    zarr_memory_vtable v = *zarr_fakedev_vtable_late();
    struct taker t[2] = {{.bytes = 1024}, {.bytes = 4096}};
    struct bench b;
    zarr_memory m;

    ZR_UNUSED(state);
    v.free = slow_free;
    late_open_with(&b, &v, 0, 8192, 0);
    m = take(&b, ZARR_DEVICE_EXT, 8192);
    zr_pool_give(b.pool, &m);
    for (size_t k = 0; k < ZR_COUNT(t); k++) {
        t[k].pool = b.pool;
        assert_int_equal(pthread_create(&t[k].thread, NULL, take_one, &t[k]), 0);
        while (!atomic_load(&frees))
            nap();
    }
    for (int k = 0; k < 20; k++)
        nap();
    atomic_store(&may_free, true);
    for (size_t k = 0; k < ZR_COUNT(t); k++) {
        assert_int_equal(pthread_join(t[k].thread, NULL), 0);
        assert_int_equal(t[k].st, ZARR_OK);
        zr_pool_give(b.pool, &t[k].mem);
    }
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(newest_first_without_malloc),
        cmocka_unit_test(oldest_goes_first),
        cmocka_unit_test(keeps_nothing_with_cap_zero),
        cmocka_unit_test(without_memory),
        cmocka_unit_test(idle_blocks_make_room),
        cmocka_unit_test(budgets_come_from_the_device),
        cmocka_unit_test(a_device_keeps_its_budget),
        cmocka_unit_test(pinned_blocks_are_reused),
        cmocka_unit_test(pinned_memory_may_be_missing),
        cmocka_unit_test(many_threads),
        cmocka_unit_test(freed_blocks_are_waited_for),
    };

    return cmocka_run_group_tests_name("mem_pool", tests, NULL, NULL);
}
