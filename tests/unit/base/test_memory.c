/*
 * unit/base/test_memory.c - allocation, growing arrays, pages, arenas, checked
 * arithmetic.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "unit/json/fail_alloc.h"

static void arithmetic_edges(void **state)
{
    static const struct {
        uint64_t v[4];
        size_t n;
        bool fits;
        uint64_t want;
    } products[] = {
        {{0}, 0, true, 1},
        {{7}, 1, true, 7},
        {{UINT64_MAX, 1}, 2, true, UINT64_MAX},
        {{UINT64_MAX, 2}, 2, false, 0},
        {{UINT64_C(1) << 32, UINT64_C(1) << 32}, 2, false, 0},
        {{UINT64_C(1) << 32, (UINT64_C(1) << 32) - 1},
         2,
         true,
         (UINT64_C(1) << 32) * ((UINT64_C(1) << 32) - 1)},
        {{UINT64_MAX, UINT64_MAX, 0}, 3, true, 0},
        {{0, UINT64_MAX, UINT64_MAX}, 3, true, 0},
        {{65536, 65536, 65536, 65536}, 4, false, 0},
    };
    uint64_t u = 0;
    int64_t i = 0;
    size_t s = 0;

    (void)state;
    for (size_t k = 0; k < ZR_COUNT(products); k++) {
        uint64_t r = 42;

        assert_int_equal(zr_product_u64(products[k].v, products[k].n, &r),
                         products[k].fits);
        assert_int_equal(r, products[k].fits ? products[k].want : 42);
    }
    assert_true(zr_add(UINT64_MAX - 1, 1, &u) && u == UINT64_MAX);
    assert_false(zr_add(UINT64_MAX, 1, &u));
    assert_false(zr_mul(UINT64_C(1) << 63, 2, &u));
    assert_false(zr_add(INT64_MAX, 1, &i));
    assert_false(zr_add(INT64_MIN, -1, &i));
    assert_false(zr_mul(INT64_MIN, -1, &i));
    assert_true(zr_mul(INT64_MIN, 1, &i) && i == INT64_MIN);
    assert_false(zr_add(SIZE_MAX, 1, &s));
    assert_false(zr_mul(SIZE_MAX, 2, &s));
    assert_int_equal(zr_fits(UINT64_MAX, &s), sizeof(size_t) == 8);
    assert_false(zr_fits((uint64_t)INT64_MAX + 1, &i));
    assert_true(zr_fits((uint64_t)INT64_MAX, &i) && i == INT64_MAX);
    assert_int_equal(zr_ceil_div_u64(UINT64_MAX, UINT64_MAX), 1);
    assert_int_equal(zr_ceil_div_u64(UINT64_MAX, 2), UINT64_C(1) << 63);
    assert_int_equal(zr_ceil_div_u64(0, 3), 0);
}

static void allocation(void **state)
{
    struct fail_alloc f;
    const zarr_allocator *both[] = {NULL, &f.alloc};

    (void)state;
    fail_alloc_init(&f, 0, 0);
    for (size_t i = 0; i < 2; i++) {
        const zarr_allocator *a = both[i];
        unsigned char *p = zr_malloc(a, 0), *q = zr_calloc(a, 100, 7);
        char *s = zr_strdup(a, "abc"), *t = zr_strndup(a, "abcdef", 2),
             *u = zr_strndup(a, "ab", 9);

        assert_true(p && q && s && t && u);
        for (size_t k = 0; k < 700; k++)
            assert_int_equal(q[k], 0);
        assert_string_equal(s, "abc");
        assert_string_equal(t, "ab");
        assert_string_equal(u, "ab");
        assert_null(zr_calloc(a, SIZE_MAX / 2, 3));
        p = zr_realloc(a, p, 0);
        assert_non_null(p);
        zr_free(a, p);
        zr_free(a, q);
        zr_free(a, s);
        zr_free(a, t);
        zr_free(a, u);
        zr_free(a, NULL);
    }
    assert_int_equal(f.held, 0);
}

static void grow_vector(void **state)
{
    struct fail_alloc f;
    uint32_t *v = NULL;
    size_t cap = 0;
    zarr_error err;

    (void)state;
    fail_alloc_init(&f, 0, 0);
    for (uint32_t i = 0; i < 10000; i++) {
        assert_int_equal(zr_grow(&f.alloc, &v, &cap, i + 1, sizeof *v, &err), ZARR_OK);
        v[i] = i;
    }
    assert_true(cap >= 10000 && f.calls < 20); /* amortised */
    for (uint32_t i = 0; i < 10000; i++)
        assert_int_equal(v[i], i);
    assert_int_equal(zr_grow(&f.alloc, &v, &cap, SIZE_MAX / 2, sizeof *v, &err),
                     ZARR_ERR_NO_MEMORY);
    assert_int_equal(zr_grow(&f.alloc, &v, &cap, SIZE_MAX, 1, &err), ZARR_ERR_NO_MEMORY);
    f.fail_at = f.calls + 1;
    assert_int_equal(zr_grow(&f.alloc, &v, &cap, cap + 1, sizeof *v, &err),
                     ZARR_ERR_NO_MEMORY);
    assert_int_equal(v[9999], 9999); /* the old array stays valid */
    zr_free(&f.alloc, v);
    assert_int_equal(f.held, 0);
}

static void pages(void **state)
{
    static const size_t sizes[] = {
        0, 1, 4096, 4097, (4 << 20) - 1, 4 << 20, (4 << 20) + 1, 9 << 20};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(sizes); i++) {
        unsigned char *p = zr_pages_alloc(sizes[i]);

        assert_non_null(p);
        if (sizes[i] >= 4 << 20)
            assert_int_equal((uintptr_t)p % (2 << 20), 0);
        for (size_t k = 0; k < sizes[i]; k += 4096)
            assert_int_equal(p[k], 0);
        if (sizes[i])
            memset(p, 1, sizes[i]);
        zr_pages_free(p, sizes[i]);
    }
    zr_pages_free(NULL, 4096);
    assert_null(zr_pages_alloc(SIZE_MAX));
    assert_null(zr_pages_alloc(SIZE_MAX - (2 << 20)));
    assert_null(zr_pages_alloc((size_t)1 << 62));
}

static void advice_never_harms(void **state)
{
    unsigned char *p = malloc(20 << 20);

    (void)state;
    assert_non_null(p);
    p[0] = 1;
    p[(20 << 20) - 1] = 2;
    zr_pages_advise(p, 20 << 20);
    zr_pages_advise(p + 12345, 7 << 20);
    zr_pages_advise(p + 1, 100);
    zr_pages_advise(p, 0);
    zr_pages_advise(NULL, 20 << 20);
    assert_int_equal(p[0], 1);
    assert_int_equal(p[(20 << 20) - 1], 2);
    free(p);
}

static zarr_status arena_scenario(struct fail_alloc *f, size_t *used)
{
    static const size_t sizes[] = {1,    15,  16,    17, 1000,    3000,
                                   5000, 100, 70000, 8,  3000000, 1};
    struct zr_arena a;
    zarr_status st = ZARR_OK;

    zr_arena_init(&a, &f->alloc);
    for (int round = 0; round < 3 && st == ZARR_OK; round++) {
        unsigned char *p[ZR_COUNT(sizes)];

        for (size_t i = 0; i < ZR_COUNT(sizes) && st == ZARR_OK; i++) {
            p[i] = zr_arena_alloc(&a, sizes[i]);
            if (!p[i]) {
                st = ZARR_ERR_NO_MEMORY;
                break;
            }
            assert_int_equal((uintptr_t)p[i] % 16, 0);
            memset(p[i], (int)i, sizes[i]);
        }
        for (size_t i = 0; i < ZR_COUNT(sizes) && st == ZARR_OK; i++)
            for (size_t k = 0; k < sizes[i]; k += 7)
                assert_int_equal(p[i][k], i);
        if (st == ZARR_OK) {
            *used = a.used_bytes;
            zr_arena_reset(&a);
        }
    }
    assert_int_equal(f->held > 1 && st == ZARR_OK, 0); /* a reset keeps one block */
    zr_arena_deinit(&a);
    return st;
}

static void arenas(void **state)
{
    struct fail_alloc f;
    zarr_status st = ZARR_ERR_NO_MEMORY;
    size_t used = 0, n = 1;

    (void)state;
    for (; st != ZARR_OK && n < 100; n++) {
        fail_alloc_init(&f, n, 0);
        st = arena_scenario(&f, &used);
        assert_int_equal(st == ZARR_OK, !f.failed);
        assert_int_equal(f.held, 0);
    }
    assert_int_equal(st, ZARR_OK);
    assert_true(n > 3);
    assert_true(used >= 3079153 && used < 3079153 + 12 * 16);
}

static void arena_texts_and_edges(void **state)
{
    struct zr_arena a;
    char *s;

    (void)state;
    zr_arena_init(&a, NULL);
    assert_null(zr_arena_alloc(&a, SIZE_MAX));
    assert_null(zr_arena_alloc(&a, SIZE_MAX - 16));
    assert_null(zr_arena_strndup(&a, "", SIZE_MAX));
    assert_non_null(zr_arena_alloc(&a, 0));
    assert_ptr_not_equal(zr_arena_alloc(&a, 0), zr_arena_alloc(&a, 0));
    s = zr_arena_strndup(&a, "a\0b", 3);
    assert_memory_equal(s, "a\0b", 4);
    s = zr_arena_strndup(&a, NULL, 0);
    assert_string_equal(s, "");
    zr_arena_reset(&a);
    zr_arena_deinit(&a);
    zr_arena_deinit(&a);
    assert_non_null(zr_arena_alloc(&a, 1)); /* usable again */
    zr_arena_deinit(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arithmetic_edges),      cmocka_unit_test(allocation),
        cmocka_unit_test(grow_vector),           cmocka_unit_test(pages),
        cmocka_unit_test(advice_never_harms),    cmocka_unit_test(arenas),
        cmocka_unit_test(arena_texts_and_edges),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
