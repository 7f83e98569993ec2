/*
 * unit/mem/test_heap.c - blocks of a heap: alignment, side by side in few allocations,
 * large heaps on pages of their own, the limit, failing allocators, and many threads,
 * also such as make a slab at the same moment.
 */
#include "unit/mem/mem_test.h"

#include <limits.h>
#include <pthread.h>
#include <time.h>

struct counted {
    long calls, live, fail_from;
    size_t bytes;
};

static void *counted_alloc(void *user, size_t bytes)
{
    struct counted *c = user;

    if (++c->calls >= c->fail_from)
        return NULL;
    c->live++;
    c->bytes += bytes;
    return malloc(bytes);
}

static void *counted_realloc(void *user, void *block, size_t bytes)
{
    (void)user;
    return realloc(block, bytes);
}

static void counted_free(void *user, void *block)
{
    struct counted *c = user;

    c->live -= block != NULL;
    free(block);
}

/* A heap whose allocations are counted, and fail from that one on. */
static void counted_heap(struct zr_heap *h, zarr_allocator *alloc, struct counted *c,
                         uint64_t most, long fail_from)
{
    *c = (struct counted){.fail_from = fail_from};
    *alloc = (zarr_allocator){c, counted_alloc, counted_realloc, counted_free};
    zr_heap_init(h, most, alloc);
}

static void side_by_side(void **state)
{
    enum {
        BLOCKS = 1000
    };
    struct counted c;
    zarr_allocator alloc;
    struct rnd r = {rnd_seed(7)};
    uint8_t *block[BLOCKS];
    size_t bytes[BLOCKS], sum = 0;
    struct zr_heap h;
    void *p = NULL;

    (void)state;
    counted_heap(&h, &alloc, &c, UINT64_MAX, LONG_MAX);
    for (size_t i = 0; i < BLOCKS; i++) {
        bytes[i] = (size_t)rnd_below(&r, 5000);
        assert_int_equal(zr_heap_alloc(&h, bytes[i], &p, NULL), ZARR_OK);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 0);
        block[i] = p;
        memset(p, (int)(i % 251), bytes[i]);
        sum += bytes[i];
        assert_int_equal(zr_heap_bytes(&h), sum);
    }
    for (size_t i = 0; i < BLOCKS; i++)
        for (size_t k = 0; k < bytes[i]; k++)
            assert_int_equal(block[i][k], i % 251);
    assert_true(c.calls < 30);
    assert_true(c.bytes < 2 * sum + BLOCKS * 16);
    zr_heap_clear(&h);
    assert_int_equal(c.live, 0);
    assert_int_equal(zr_heap_bytes(&h), 0);
    assert_int_equal(zr_heap_alloc(&h, 0, &p, NULL), ZARR_OK);
    assert_non_null(p);
    zr_heap_clear(&h);
    assert_int_equal(c.live, 0);
}

/* The block that a single read needs is not made larger. */
static void the_first(void **state)
{
    struct counted c;
    zarr_allocator alloc;
    struct zr_heap h;
    void *p = NULL;

    (void)state;
    counted_heap(&h, &alloc, &c, UINT64_MAX, LONG_MAX);
    assert_int_equal(zr_heap_alloc(&h, 1 << 20, &p, NULL), ZARR_OK);
    assert_true(c.bytes <= (1 << 20) + 64);
    zr_heap_clear(&h);
}

static void on_pages(void **state)
{
    const size_t each = 1000 * 1000 + 8;
    uint8_t *block[100];
    struct zr_heap h;
    void *p = NULL;

    (void)state;
    zr_heap_init(&h, UINT64_MAX, NULL);
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(zr_heap_alloc(&h, each, &p, NULL), ZARR_OK);
        block[i] = p;
        block[i][0] = (uint8_t)i;
        block[i][each - 1] = (uint8_t)(i + 100);
    }
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(block[i][0], i);
        assert_int_equal(block[i][each - 1], i + 100);
    }
    zr_heap_clear(&h);
}

static void limits(void **state)
{
    struct counted c;
    zarr_allocator alloc;
    struct zr_heap h;
    void *p = NULL;

    (void)state;
    counted_heap(&h, &alloc, &c, 100, 2);
    assert_int_equal(zr_heap_alloc(&h, 60, &p, NULL), ZARR_OK);
    assert_int_equal(zr_heap_alloc(&h, 41, &p, NULL), ZARR_ERR_LIMIT);
    assert_null(p);
    assert_int_equal(zr_heap_alloc(&h, UINT64_MAX, &p, NULL), ZARR_ERR_LIMIT);
    assert_int_equal(zr_heap_alloc(&h, 40, &p, NULL), ZARR_ERR_NO_MEMORY);
    assert_null(p);
    assert_int_equal(zr_heap_bytes(&h), 60);
    zr_heap_clear(&h);
    zr_heap_init(&h, UINT64_MAX, NULL);
    assert_int_equal(zr_heap_alloc(&h, UINT64_MAX - 3, &p, NULL), ZARR_ERR_NO_MEMORY);
    assert_int_equal(zr_heap_alloc(&h, UINT64_MAX / 4, &p, NULL), ZARR_ERR_NO_MEMORY);
    assert_int_equal(zr_heap_bytes(&h), 0);
    zr_heap_clear(&h);
    assert_int_equal(c.live, 0);
}

/* Slabs stay within the limit, too. Beyond it blocks are alone in their memory. */
static void slabs_within(void **state)
{
    struct counted c;
    zarr_allocator alloc;
    struct zr_heap h;
    void *p = NULL;

    (void)state;
    counted_heap(&h, &alloc, &c, 100000, LONG_MAX);
    assert_int_equal(zr_heap_alloc(&h, 60000, &p, NULL), ZARR_OK);
    for (int i = 0; i < 40; i++) {
        assert_int_equal(zr_heap_alloc(&h, 1000, &p, NULL), ZARR_OK);
        memset(p, 1, 1000);
        assert_true(c.bytes <= 100000 + 40 * 64);
    }
    assert_int_equal(zr_heap_alloc(&h, 1, &p, NULL), ZARR_ERR_LIMIT);
    assert_int_equal(zr_heap_bytes(&h), 100000);
    assert_true(c.calls < 6);
    zr_heap_clear(&h);
    assert_int_equal(c.live, 0);
}

/* A block for which the slab in use has no room, and that would fill most of the next,
 * does not end the use of that slab. */
static void keeps_the_slab(void **state)
{
    struct counted c;
    zarr_allocator alloc;
    struct zr_heap h;
    void *p = NULL;

    (void)state;
    counted_heap(&h, &alloc, &c, UINT64_MAX, LONG_MAX);
    assert_int_equal(zr_heap_alloc(&h, 100000, &p, NULL), ZARR_OK);
    assert_int_equal(zr_heap_alloc(&h, 16, &p, NULL), ZARR_OK);
    assert_int_equal(zr_heap_alloc(&h, 500000, &p, NULL), ZARR_OK);
    assert_int_equal(c.calls, 3);
    assert_int_equal(zr_heap_alloc(&h, 90000, &p, NULL), ZARR_OK);
    assert_int_equal(c.calls, 3);
    zr_heap_clear(&h);
    assert_int_equal(c.live, 0);
}

static void *small_alloc(void *user, size_t bytes)
{
    return bytes > 5000 ? NULL : counted_alloc(user, bytes);
}

/* Where there is no memory for a slab there may be some for the block. */
static void no_memory_for_a_slab(void **state)
{
    struct counted c = {.fail_from = LONG_MAX};
    const zarr_allocator alloc = {&c, small_alloc, counted_realloc, counted_free};
    struct zr_heap h;
    void *p = NULL;

    (void)state;
    zr_heap_init(&h, UINT64_MAX, &alloc);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(zr_heap_alloc(&h, 4000, &p, NULL), ZARR_OK);
        memset(p, 1, 4000);
    }
    assert_int_equal(zr_heap_alloc(&h, 6000, &p, NULL), ZARR_ERR_NO_MEMORY);
    assert_int_equal(zr_heap_bytes(&h), 40000);
    zr_heap_clear(&h);
    assert_int_equal(c.live, 0);
}

/* ---- threads ---------------------------------------------------------------------- */

enum {
    THREADS = 4,
    EACH = 20000
};
static struct zr_heap shared;

static void *take_many(void *arg)
{
    const uint8_t mark = *(const uint8_t *)arg;
    uint8_t **block = calloc(EACH, sizeof *block);
    const void *bad = NULL;

    for (size_t i = 0; block && i < EACH; i++) {
        void *p = NULL;

        if (zr_heap_alloc(&shared, i % 100 + 1, &p, NULL) != ZARR_OK)
            bad = &shared;
        block[i] = p;
        if (p)
            memset(p, mark, i % 100 + 1);
    }
    for (size_t i = 0; block && i < EACH; i++)
        for (size_t k = 0; block[i] && k < i % 100 + 1; k++)
            if (block[i][k] != mark)
                bad = &shared;
    if (!block)
        bad = &shared;
    free((void *)block);
    return (void *)(uintptr_t)bad;
}

static void threads(void **state)
{
    static const uint8_t marks[THREADS] = {1, 2, 3, 4};
    pthread_t t[THREADS];

    (void)state;
    zr_heap_init(&shared, UINT64_MAX, NULL);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(
            pthread_create(&t[i], NULL, take_many, (void *)(uintptr_t)&marks[i]), 0);
    for (size_t i = 0; i < THREADS; i++) {
        void *bad = NULL;

        assert_int_equal(pthread_join(t[i], &bad), 0);
        assert_null(bad);
    }
    zr_heap_clear(&shared);
}

/* An allocator that takes long, so that all threads want a slab meanwhile. */
static pthread_mutex_t slow_mutex = PTHREAD_MUTEX_INITIALIZER;
static long slow_live;

static void *slow_alloc(void *user, size_t bytes)
{
    const struct timespec pause = {.tv_nsec = 50000000};

    (void)user;
    nanosleep(&pause, NULL);
    pthread_mutex_lock(&slow_mutex);
    slow_live++;
    pthread_mutex_unlock(&slow_mutex);
    return malloc(bytes);
}

static void slow_free(void *user, void *block)
{
    (void)user;
    pthread_mutex_lock(&slow_mutex);
    slow_live -= block != NULL;
    pthread_mutex_unlock(&slow_mutex);
    free(block);
}

static void *take_one(void *arg)
{
    void *p = NULL;

    (void)arg;
    return zr_heap_alloc(&shared, 1000, &p, NULL) == ZARR_OK ? p : NULL;
}

/* One slab remains of those that threads make at the same moment. */
static void one_slab(void **state)
{
    const zarr_allocator alloc = {NULL, slow_alloc, counted_realloc, slow_free};
    pthread_t t[THREADS];
    void *p = NULL;

    (void)state;
    zr_heap_init(&shared, UINT64_MAX, &alloc);
    assert_int_equal(zr_heap_alloc(&shared, 100000, &p, NULL), ZARR_OK);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, take_one, NULL), 0);
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(t[i], &p), 0);
        assert_non_null(p);
        memset(p, 1, 1000);
    }
    assert_int_equal(slow_live, 2);
    zr_heap_clear(&shared);
    assert_int_equal(slow_live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(side_by_side),   cmocka_unit_test(the_first),
        cmocka_unit_test(on_pages),       cmocka_unit_test(limits),
        cmocka_unit_test(threads),        cmocka_unit_test(slabs_within),
        cmocka_unit_test(keeps_the_slab), cmocka_unit_test(no_memory_for_a_slab),
        cmocka_unit_test(one_slab),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
