/*
 * unit/pipe/chunk/test_index_cache.c - the cache of shard indexes: what it keeps within
 * its bytes, and that the work for one entry does not grow with their number.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pipe/chunk/chunk.h"

#include <stdio.h>

static zarr_error terr;

enum {
    MISSING_BYTES = 64, /* what the cache counts for the index of a missing shard */
    MANY = 400000,
    ROOM = 300000
};

static void put(struct zr_index_cache *c, long i)
{
    const struct zr_shard_pairs none = {.n = 1};
    struct zr_shard_index *index = NULL;
    char key[32];

    snprintf(key, sizeof key, "c/%ld", i);
    assert_int_equal(zr_shard_index_make(&index, NULL, &none, NULL, &terr), ZARR_OK);
    zr_index_cache_put(c, key, index);
    zr_shard_index_free(index);
}

static bool has(struct zr_index_cache *c, long i)
{
    struct zr_shard_index *index;
    char key[32];

    snprintf(key, sizeof key, "c/%ld", i);
    index = zr_index_cache_get(c, key);
    zr_shard_index_free(index);
    return index;
}

static void test_least_recently_used_goes(void **state)
{
    struct zr_index_cache *c = NULL;

    (void)state;
    assert_int_equal(zr_index_cache_create(&c, NULL, (uint64_t)3 * MISSING_BYTES, &terr),
                     ZARR_OK);
    for (long i = 0; i < 3; i++)
        put(c, i);
    assert_true(has(c, 0)); /* now 1 is the oldest */
    put(c, 3);
    assert_false(has(c, 1));
    assert_true(has(c, 2) && has(c, 0) && has(c, 3)); /* now 2 is */
    put(c, 0);                                        /* replaces it */
    put(c, 4);
    assert_false(has(c, 2));
    zr_index_cache_drop(c, "c/3");
    zr_index_cache_drop(c, "c/3");
    put(c, 5);
    assert_true(has(c, 0) && has(c, 4) && has(c, 5));
    zr_index_cache_drop(c, NULL);
    assert_false(has(c, 0));
    put(c, 6);
    assert_true(has(c, 6));
    zr_index_cache_free(c);
}

/* With a search for the oldest entry at each put, this took minutes. */
static void test_many(void **state)
{
    struct zr_index_cache *c = NULL;
    char key[32];

    (void)state;
    assert_int_equal(
        zr_index_cache_create(&c, NULL, (uint64_t)ROOM * MISSING_BYTES, &terr), ZARR_OK);
    for (long i = 0; i < MANY; i++)
        put(c, i);
    assert_false(has(c, MANY - ROOM - 1));
    assert_true(has(c, MANY - ROOM));
    for (long i = 0; i < MANY; i++) { /* as writes do */
        snprintf(key, sizeof key, "c/%ld", i);
        zr_index_cache_drop(c, key);
    }
    assert_false(has(c, MANY - 1));
    zr_index_cache_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_least_recently_used_goes),
        cmocka_unit_test(test_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
