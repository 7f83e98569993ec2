/*
 * tests/unit/mem/test_view.c - checking a caller's tensor: every reason for refusal,
 * extents with strides of both signs, and the test for overlapping elements compared
 * with trying all pairs.
 */
#include "unit/mem/mem_test.h"

static struct zr_memory_registry registry;
static uint8_t memory[4096];

static int view_setup(void **state)
{
    ZR_UNUSED(state);
    return zr_memory_registry_init(&registry, NULL, NULL);
}

static int view_teardown(void **state)
{
    ZR_UNUSED(state);
    zr_memory_registry_deinit(&registry);
    return 0;
}

/* A destination with items of 4 bytes, unit 4. */
static zarr_status make_view(struct zr_view *v, const zarr_tensor *t, int32_t ndim,
                             const uint64_t *shape)
{
    const struct zr_view_want want = {ndim, shape, 4, 4, ZR_VIEW_DESTINATION};

    return zr_view_from_tensor(v, &registry, t, &want, NULL);
}

static zarr_status make_source_view(struct zr_view *v, const zarr_tensor *t, int32_t ndim,
                                    const uint64_t *shape, uint32_t item, uint32_t unit)
{
    const struct zr_view_want want = {ndim, shape, item, unit, ZR_VIEW_SOURCE};

    return zr_view_from_tensor(v, &registry, t, &want, NULL);
}

static void c_order_by_default(void **state)
{
    const uint64_t shape[] = {3, 1, 5};
    const uint64_t want[] = {3, 1, 5};
    struct zr_view v;
    zarr_tensor t;

    ZR_UNUSED(state);
    zarr_tensor_host(&t, NULL, memory, 60, 3, shape);
    assert_int_equal(make_view(&v, &t, 3, want), ZARR_OK);
    assert_int_equal(v.stride[0], 20);
    assert_int_equal(v.stride[2], 4);
    assert_int_equal(v.base.offset, 0);
    assert_int_equal(v.base.bytes, 60);
    assert_int_equal(v.swap_bytes, 0);
    assert_true(zr_view_is_contiguous(&v));
    t.data_bytes = 59;
    assert_int_equal(make_view(&v, &t, 3, want), ZARR_ERR_INVALID);
    t.byte_offset = 4;
    t.data_bytes = 63;
    assert_int_equal(make_view(&v, &t, 3, want), ZARR_ERR_INVALID);
    t.data_bytes = 64;
    assert_int_equal(make_view(&v, &t, 3, want), ZARR_OK);
    t.data_bytes = 0; /* 0: unknown */
    assert_int_equal(make_view(&v, &t, 3, want), ZARR_OK);
    assert_int_equal(v.base.bytes, 64);
}

static void form_is_checked(void **state)
{
    const uint64_t shape[] = {2, 2}, larger[] = {2, UINT64_MAX};
    const uint64_t want[] = {2, 2};
    struct zr_view v;
    zarr_tensor t, bad;

    ZR_UNUSED(state);
    zarr_tensor_host(&t, NULL, memory, 16, 2, shape);
    assert_int_equal(make_view(&v, NULL, 2, want), ZARR_ERR_INVALID);
    assert_int_equal(make_view(&v, &t, 1, want), ZARR_ERR_INVALID);
    bad = t;
    bad.struct_size = 0;
    assert_int_equal(make_view(&v, &bad, 2, want), ZARR_ERR_ABI);
    bad = t;
    bad.flags = 1;
    assert_int_equal(make_view(&v, &bad, 2, want), ZARR_ERR_UNSUPPORTED);
    bad = t;
    bad.byte_order = 3;
    assert_int_equal(make_view(&v, &bad, 2, want), ZARR_ERR_INVALID);
    bad = t;
    bad.shape = NULL;
    assert_int_equal(make_view(&v, &bad, 2, want), ZARR_ERR_INVALID);
    bad = t;
    bad.shape = larger;
    assert_int_equal(make_view(&v, &bad, 2, want), ZARR_ERR_INVALID);
    bad = t;
    bad.data = NULL;
    assert_int_equal(make_view(&v, &bad, 2, want), ZARR_ERR_INVALID);
    bad = t;
    bad.device_type = ZARR_DEVICE_CUDA;
    assert_int_equal(make_view(&v, &bad, 2, want), ZARR_ERR_UNSUPPORTED);
    bad.device_type = -1;
    assert_int_equal(make_view(&v, &bad, 2, want), ZARR_ERR_UNSUPPORTED);
    bad.device_type = INT32_MAX;
    assert_int_equal(make_view(&v, &bad, 2, want), ZARR_ERR_UNSUPPORTED);
    bad = t;
    bad.ndim = 65;
    assert_int_equal(make_view(&v, &bad, 65, want), ZARR_ERR_INVALID);
}

/* A longer struct of a newer caller is accepted while its new members are zero. */
static void newer_struct(void **state)
{
    const uint64_t shape[] = {4};
    const uint64_t want[] = {4};
    struct {
        zarr_tensor t;
        uint64_t wish;
    } newer = {0};
    struct zr_view v;

    ZR_UNUSED(state);
    zarr_tensor_host(&newer.t, NULL, memory, 16, 1, shape);
    newer.t.struct_size = sizeof newer;
    assert_int_equal(make_view(&v, &newer.t, 1, want), ZARR_OK);
    newer.wish = 1;
    assert_int_equal(make_view(&v, &newer.t, 1, want), ZARR_ERR_UNSUPPORTED);
}

static void scalars_and_empty(void **state)
{
    const uint64_t shape[] = {3, 0, INT64_MAX};
    const uint64_t want[] = {3, 0, INT64_MAX};
    struct zr_view v;
    zarr_tensor t;

    ZR_UNUSED(state);
    zarr_tensor_host(&t, NULL, memory, 4, 0, NULL);
    assert_int_equal(make_view(&v, &t, 0, NULL), ZARR_OK);
    assert_true(zr_view_is_contiguous(&v));
    t.data_bytes = 3;
    assert_int_equal(make_view(&v, &t, 0, NULL), ZARR_ERR_INVALID);
    zarr_tensor_host(&t, NULL, NULL, 0, 3, shape);
    assert_int_equal(make_view(&v, &t, 3, want), ZARR_OK);
    assert_true(zr_view_is_contiguous(&v));
}

static void reverse_strides(void **state)
{
    const uint64_t shape[] = {10};
    const int64_t strides[] = {-4};
    const uint64_t want[] = {10};
    struct zr_view v;
    zarr_tensor t;

    ZR_UNUSED(state);
    zarr_tensor_host(&t, NULL, memory, 40, 1, shape);
    t.strides = strides;
    t.byte_offset = 36;
    assert_int_equal(make_view(&v, &t, 1, want), ZARR_OK);
    assert_int_equal(v.base.offset, 36);
    t.byte_offset = 35;
    assert_int_equal(make_view(&v, &t, 1, want), ZARR_ERR_INVALID);
    /* Unknown extent: data points at the first element, the others lie below it. */
    zarr_tensor_host(&t, NULL, memory + 36, 0, 1, shape);
    t.strides = strides;
    assert_int_equal(make_view(&v, &t, 1, want), ZARR_OK);
    assert_ptr_equal(v.base.handle, memory);
    assert_int_equal(v.base.offset, 36);
    assert_int_equal(v.base.bytes, 40);
    assert_false(zr_view_is_contiguous(&v));
    t.data = (void *)(uintptr_t)30; /* nothing lies below zero */
    assert_int_equal(make_view(&v, &t, 1, want), ZARR_ERR_INVALID);
}

static void extents_in_64_bits(void **state)
{
    static const int64_t far[] = {INT64_MAX, INT64_MIN, INT64_MAX / 4,
                                  -(INT64_C(1) << 61)};
    const uint64_t shape[] = {5}, huge[] = {INT64_MAX}, none[] = {1};
    const uint64_t want[] = {5}, want_huge[] = {INT64_MAX}, want_none[] = {1};
    struct zr_view v;
    zarr_tensor t;

    ZR_UNUSED(state);
    for (size_t k = 0; k < ZR_COUNT(far); k++) {
        for (int known = 0; known < 2; known++) {
            zarr_tensor_host(&t, NULL, memory, known ? UINT64_MAX : 0, 1, shape);
            t.strides = &far[k];
            t.byte_offset = k % 2 ? UINT64_C(1) << 63 : 0;
            assert_int_equal(make_view(&v, &t, 1, want), ZARR_ERR_INVALID);
        }
        zarr_tensor_host(&t, NULL, memory, 4, 1, none);
        t.strides = &far[k]; /* the stride of a dimension of length 1 is never used */
        assert_int_equal(make_view(&v, &t, 1, want_none), ZARR_OK);
        assert_int_equal(v.stride[0], 0);
    }
    zarr_tensor_host(&t, NULL, memory, UINT64_MAX, 1, huge);
    assert_int_equal(make_view(&v, &t, 1, want_huge), ZARR_ERR_INVALID);
    zarr_tensor_host(&t, NULL, memory, UINT64_MAX, 1, shape);
    t.byte_offset = UINT64_MAX - 8;
    assert_int_equal(make_view(&v, &t, 1, want), ZARR_ERR_INVALID);
    /* Beyond the address space. */
    zarr_tensor_host(&t, NULL, memory, UINT64_MAX / 2, 1, shape);
    t.byte_offset = 0;
    assert_int_equal(make_view(&v, &t, 1, want), ZARR_OK);
    t.data = (void *)(UINTPTR_MAX - 10);
    t.data_bytes = 0;
    assert_int_equal(make_view(&v, &t, 1, want), ZARR_ERR_INVALID);
}

static void byte_order(void **state)
{
    const uint32_t other = ZR_HOST_IS_LITTLE ? ZARR_ORDER_BIG : ZARR_ORDER_LITTLE;
    const uint64_t shape[] = {5};
    const uint64_t want[] = {5};
    struct zr_view v;
    zarr_tensor t;

    ZR_UNUSED(state);
    zarr_tensor_host(&t, NULL, memory, 80, 1, shape);
    t.byte_order = other;
    assert_int_equal(make_view(&v, &t, 1, want), ZARR_OK);
    assert_int_equal(v.swap_bytes, 4);
    assert_int_equal(make_source_view(&v, &t, 1, want, 16, 8), ZARR_OK);
    assert_int_equal(v.swap_bytes, 8);
    assert_int_equal(make_source_view(&v, &t, 1, want, 5, 1), ZARR_OK);
    assert_int_equal(v.swap_bytes, 0);
    t.byte_order = 3 - other;
    assert_int_equal(make_view(&v, &t, 1, want), ZARR_OK);
    assert_int_equal(v.swap_bytes, 0);
}

struct overlap_case {
    int32_t ndim;
    uint64_t shape[4];
    int64_t stride[4];
    bool ok;
};

static void overlapping_destinations(void **state)
{
    static const struct overlap_case cases[] = {
        {1, {8}, {4}, true},
        {1, {8}, {8}, true}, /* x[::2]; the real parts of a complex array */
        {1, {8}, {0}, false},
        {1, {1}, {0}, true},
        {1, {8}, {3}, false},       /* items of 4 bytes */
        {2, {4, 4}, {4, 16}, true}, /* Fortran order */
        {2, {4, 4}, {4, 4}, false}, /* sliding window */
        {2, {2, 3}, {12, 8}, true}, /* interleaved, not nested */
        {2, {3, 2}, {8, 12}, true},
        {2, {4, 2}, {8, 12}, true}, /* 0 8 16 24 and 12 20 28 36 */
        {2, {4, 2}, {8, 16}, false},
        {3, {2, 2, 2}, {4, 8, 12}, false}, /* 4 + 8 = 12 */
        {3, {2, 2, 2}, {4, 8, 16}, true},
        {2, {4, 4}, {-4, 16}, true},
        {2, {2, 3}, {-12, 8}, true},
    };

    ZR_UNUSED(state);
    for (size_t k = 0; k < ZR_COUNT(cases); k++) {
        const struct overlap_case *c = &cases[k];
        struct zr_view v;
        zarr_tensor t;
        uint64_t want[4];

        for (int32_t d = 0; d < c->ndim; d++)
            want[d] = c->shape[d];
        zarr_tensor_host(&t, NULL, memory + 2048, 0, c->ndim, c->shape);
        t.strides = c->stride;
        assert_int_equal(make_view(&v, &t, c->ndim, want),
                         c->ok ? ZARR_OK : ZARR_ERR_INVALID);
        assert_int_equal(make_source_view(&v, &t, c->ndim, want, 4, 4), ZARR_OK);
    }
}

/* Marks all bytes of the elements one by one. */
static bool overlaps_by_marking(int32_t ndim, const uint64_t *shape,
                                const int64_t *stride, uint32_t item)
{
    uint8_t seen[2048] = {0};
    uint64_t total = 1;

    for (int32_t k = 0; k < ndim; k++)
        total *= shape[k];
    for (uint64_t i = 0; i < total; i++) {
        int64_t at = 1024;
        uint64_t rest = i;

        for (int32_t k = 0; k < ndim; k++) {
            at += (int64_t)(rest % shape[k]) * stride[k];
            rest /= shape[k];
        }
        for (uint32_t j = 0; j < item; j++)
            if (seen[at + j]++)
                return true;
    }
    return false;
}

static void overlap_is_exact(void **state)
{
    const uint64_t seed = rnd_seed(20260103);
    struct rnd r = {seed};
    int yes = 0;

    ZR_UNUSED(state);
    print_message("seed %" PRIu64 "\n", seed);
    for (int n = 0; n < 20000; n++) {
        const int32_t ndim = (int32_t)rnd_below(&r, 5);
        const uint32_t item = 1 + (uint32_t)rnd_below(&r, 4);
        int64_t stride[4];
        uint64_t shape[4];
        struct zr_view_want want;
        struct zr_view v;
        zarr_tensor t;
        bool overlap;

        for (int32_t k = 0; k < ndim; k++) {
            shape[k] = 1 + rnd_below(&r, 5);
            stride[k] = (int64_t)rnd_below(&r, 119) - 59;
        }
        overlap = overlaps_by_marking(ndim, shape, stride, item);
        yes += overlap;
        zarr_tensor_host(&t, NULL, memory + 2048, 0, ndim, shape);
        t.strides = stride;
        want = (struct zr_view_want){ndim, shape, item, 0, ZR_VIEW_DESTINATION};
        if (zr_view_from_tensor(&v, &registry, &t, &want, NULL) !=
            (overlap ? ZARR_ERR_INVALID : ZARR_OK)) {
            print_error("seed %" PRIu64 " case %d\n", seed, n);
            fail();
        }
    }
    assert_in_range(yes, 2000, 18000);
}

/* Strides that make the test slow: it must end with either answer. */
static void overlap_effort_is_bounded(void **state)
{
    uint64_t shape[24];
    int64_t stride[24];
    uint64_t want[24];
    struct zr_view v;
    zarr_tensor t;

    ZR_UNUSED(state);
    for (int k = 0; k < 24; k++) {
        shape[k] = 2;
        want[k] = 2;
        stride[k] = (INT64_C(1) << 40) + (INT64_C(7919) << (k % 24));
    }
    zarr_tensor_host(&t, NULL, memory, INT64_MAX, 24, shape);
    t.strides = stride;
    assert_int_equal(make_view(&v, &t, 24, want), ZARR_ERR_INVALID);
}

static void contiguous_views(void **state)
{
    const uint64_t shape[] = {2, 3};
    zarr_memory mem = zr_mem_of_host(memory, 100);
    struct zr_view v;

    ZR_UNUSED(state);
    assert_true(zr_mem_slice(&mem, 40, 48, &mem));
    zr_view_contiguous(&v, mem, 2, shape, 8, 8);
    assert_int_equal(v.base.offset, 40);
    assert_int_equal(v.base.bytes, 88); /* bytes from the handle on */
    assert_int_equal(v.stride[0], 24);
    assert_int_equal(v.stride[1], 8);
    assert_int_equal(v.swap_bytes, 8);
    assert_true(zr_view_is_contiguous(&v));
    v.stride[0] = 25;
    assert_false(zr_view_is_contiguous(&v));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c_order_by_default), cmocka_unit_test(form_is_checked),
        cmocka_unit_test(newer_struct),       cmocka_unit_test(scalars_and_empty),
        cmocka_unit_test(reverse_strides),    cmocka_unit_test(extents_in_64_bits),
        cmocka_unit_test(byte_order),         cmocka_unit_test(overlapping_destinations),
        cmocka_unit_test(overlap_is_exact),   cmocka_unit_test(overlap_effort_is_bounded),
        cmocka_unit_test(contiguous_views),
    };

    return cmocka_run_group_tests_name("mem_view", tests, view_setup, view_teardown);
}
