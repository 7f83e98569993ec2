/*
 * unit/array/test_dlpack.c - tensors of DLPack to zarr_tensor and back: both structs,
 * strides, offsets, lanes, packed elements, flags, and what another program may get
 * wrong.
 */
#include "support/foreign/dlpack.h"

#include <zarrc/dlpack.h>
#include <zarrc/plugin/dtype.h>
#include <zarrc/zarrc.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include <cmocka.h>

static zarr_context *ctx;
static zarr_error terr;

static int set_up(void **state)
{
    (void)state;
    return zarr_context_create(&ctx, NULL, &terr) == ZARR_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    zarr_context_free(ctx);
    return 0;
}

static char memory[4096];

static DLManagedTensorVersioned make_versioned(uint8_t code, uint8_t bits, int32_t ndim,
                                               int64_t *shape, int64_t *strides)
{
    return (DLManagedTensorVersioned){
        .version = {1, 0},
        .dl_tensor = {.data = memory,
                      .device = {.device_type = kDLCPU, .device_id = 0},
                      .ndim = ndim,
                      .dtype = {code, bits, 1},
                      .shape = shape,
                      .strides = strides}};
}

static void in_both(void **state)
{
    int64_t shape[2] = {3, 5}, strides[2] = {-10, 2};
    DLManagedTensorVersioned v = make_versioned(ZARR_DLPACK_INT, 32, 2, shape, strides);
    DLManagedTensor old = {.dl_tensor = v.dl_tensor};
    zarr_dlpack_view view = ZARR_DLPACK_VIEW_INIT;

    (void)state;
    v.flags = DLPACK_FLAG_BITMASK_READ_ONLY | DLPACK_FLAG_BITMASK_IS_COPIED;
    v.dl_tensor.byte_offset = 120;
    v.dl_tensor.device = (DLDevice){kDLCUDA, 3};
    assert_int_equal(zarr_tensor_from_dlpack(&view, ctx, &v, &terr), ZARR_OK);
    assert_int_equal(view.flags, ZARR_DLPACK_READ_ONLY | ZARR_DLPACK_COPIED);
    assert_int_equal(view.tensor.device_type, ZARR_DEVICE_CUDA);
    assert_int_equal(view.tensor.device_id, 3);
    assert_string_equal(zarr_dtype_name(view.tensor.dtype), "int32");
    assert_ptr_equal(view.tensor.data, memory);
    assert_int_equal(view.tensor.byte_offset, 120);
    assert_int_equal(view.tensor.data_bytes, 0);
    assert_ptr_equal(view.tensor.shape, view.shape);
    assert_ptr_equal(view.tensor.strides, view.strides);
    assert_int_equal(view.shape[1], 5);
    assert_true(view.strides[0] == -40 && view.strides[1] == 8);
    /* without strides, and with those of C order */
    old.dl_tensor.strides = NULL;
    assert_int_equal(zarr_tensor_from_dlpack_unversioned(&view, ctx, &old, &terr),
                     ZARR_OK);
    assert_null(view.tensor.strides);
    assert_int_equal(view.flags, 0);
    strides[0] = 5;
    strides[1] = 1;
    old.dl_tensor.strides = strides;
    assert_int_equal(zarr_tensor_from_dlpack_unversioned(&view, ctx, &old, &terr),
                     ZARR_OK);
    assert_null(view.tensor.strides);
    old.dl_tensor.ndim = 0;
    old.dl_tensor.shape = old.dl_tensor.strides = NULL;
    assert_int_equal(zarr_tensor_from_dlpack_unversioned(&view, ctx, &old, &terr),
                     ZARR_OK);
    assert_int_equal(view.tensor.ndim, 0);
}

static void lanes_and_packed(void **state)
{
    int64_t shape[ZARR_MAX_RANK] = {3, 6}, strides[2] = {8, 1};
    DLManagedTensorVersioned v = make_versioned(ZARR_DLPACK_FLOAT, 32, 2, shape, NULL);
    zarr_dlpack_view view = ZARR_DLPACK_VIEW_INIT;

    (void)state;
    v.dl_tensor.dtype.lanes = 4; /* no type has them: a dimension more */
    assert_int_equal(zarr_tensor_from_dlpack(&view, ctx, &v, &terr), ZARR_OK);
    assert_int_equal(view.tensor.ndim, 3);
    assert_true(view.shape[0] == 3 && view.shape[1] == 6 && view.shape[2] == 4);
    assert_null(view.tensor.strides);
    v.dl_tensor.strides = strides; /* in elements of four lanes */
    assert_int_equal(zarr_tensor_from_dlpack(&view, ctx, &v, &terr), ZARR_OK);
    assert_true(view.strides[0] == 128 && view.strides[1] == 16 && view.strides[2] == 4);
    v.dl_tensor.dtype.lanes = 0;
    assert_int_equal(zarr_tensor_from_dlpack(&view, ctx, &v, &terr), ZARR_ERR_INVALID);
    v.dl_tensor.dtype.lanes = 2;
    v.dl_tensor.strides = NULL;
    v.dl_tensor.ndim = ZARR_MAX_RANK;
    memset(shape, 0, sizeof shape);
    assert_int_equal(zarr_tensor_from_dlpack(&view, ctx, &v, &terr), ZARR_ERR_INVALID);
    /* PyTorch's float4_e2m1fn_x2 */
    v.dl_tensor.ndim = 2;
    shape[0] = 3;
    shape[1] = 6;
    v.dl_tensor.dtype = (DLDataType){ZARR_DLPACK_FLOAT4_E2M1FN, 4, 2};
    assert_int_equal(zarr_tensor_from_dlpack(&view, ctx, &v, &terr), ZARR_OK);
    assert_int_equal(view.tensor.flags, ZARR_TENSOR_PACKED);
    assert_int_equal(view.shape[2], 2);
    assert_string_equal(zarr_dtype_name(view.tensor.dtype), "float4_e2m1fn");
    /* rows of packed elements: at bytes, not at bytes, and one byte each */
    v.dl_tensor.dtype = (DLDataType){ZARR_DLPACK_INT, 4, 1};
    v.dl_tensor.strides = strides;
    assert_int_equal(zarr_tensor_from_dlpack(&view, ctx, &v, &terr), ZARR_OK);
    assert_true(view.strides[0] == 4 && view.strides[1] == 1);
    strides[0] = 7;
    assert_int_equal(zarr_tensor_from_dlpack(&view, ctx, &v, &terr),
                     ZARR_ERR_UNSUPPORTED);
    strides[0] = 8;
    strides[1] = 2;
    assert_int_equal(zarr_tensor_from_dlpack(&view, ctx, &v, &terr),
                     ZARR_ERR_UNSUPPORTED);
    /* three lanes of four bits: an element after the other is at no byte, if not all
     * are packed without gaps */
    v.dl_tensor.dtype.lanes = 3;
    strides[1] = 1;
    assert_int_equal(zarr_tensor_from_dlpack(&view, ctx, &v, &terr),
                     ZARR_ERR_UNSUPPORTED);
    strides[1] = 2;
    strides[0] = 16;
    assert_int_equal(zarr_tensor_from_dlpack(&view, ctx, &v, &terr), ZARR_OK);
    assert_true(view.strides[0] == 24 && view.strides[1] == 3 && view.strides[2] == 1);
    strides[0] = 6;
    strides[1] = 1;
    assert_int_equal(zarr_tensor_from_dlpack(&view, ctx, &v, &terr), ZARR_OK);
    assert_null(view.tensor.strides);
    v.dl_tensor.dtype.lanes = 1;
    strides[1] = 2;
    v.flags = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
    strides[0] = 7;
    assert_int_equal(zarr_tensor_from_dlpack(&view, ctx, &v, &terr), ZARR_OK);
    assert_int_equal(view.tensor.flags, 0);
    assert_true(view.strides[0] == 7 && view.strides[1] == 2);
}

static void hostile(void **state)
{
    int64_t shape[2] = {3, 5}, strides[2] = {INT64_MAX / 2, 1};
    const DLManagedTensorVersioned good =
        make_versioned(ZARR_DLPACK_INT, 32, 2, shape, NULL);
    zarr_dlpack_view view = ZARR_DLPACK_VIEW_INIT;

    (void)state;
    for (int i = 0; i < 16; i++) {
        DLManagedTensorVersioned v = good;
        const bool unsupported = i == 0 || i == 1;

        memset(&terr, 0, sizeof terr);
        shape[0] = 3;
        shape[1] = 5;
        v.version.major = i == 0 ? 2 : 1;
        v.dl_tensor.dtype.bits = i == 1 ? 33 : 32;
        v.dl_tensor.ndim = i == 2   ? -1
                           : i == 3 ? ZARR_MAX_RANK + 1
                           : i == 4 ? INT32_MAX
                                    : 2;
        v.dl_tensor.shape = i == 5 ? NULL : shape;
        shape[1] = i == 6 ? -1 : i == 7 || i == 8 ? INT64_MAX : 5;
        shape[0] = i == 8 ? 1 : 3;
        v.dl_tensor.data = i == 9 ? NULL : memory;
        v.dl_tensor.byte_offset = i == 10 ? UINT64_MAX : 0;
        v.dl_tensor.strides = i == 11 || i == 12 ? strides : NULL;
        strides[0] = i == 11 ? INT64_MAX / 2 : INT64_MAX / 8;
        if (i >= 13)
            v.dl_tensor.device.device_type = (DLDeviceType)(13 - i); /* 0, -1, -2 */
        assert_int_equal(zarr_tensor_from_dlpack(&view, ctx, &v, &terr),
                         unsupported ? ZARR_ERR_UNSUPPORTED : ZARR_ERR_INVALID);
        assert_non_null(strstr(terr.message, "DLPack"));
    }
    assert_int_equal(zarr_tensor_from_dlpack(&view, ctx, NULL, &terr), ZARR_ERR_INVALID);
    assert_int_equal(zarr_tensor_from_dlpack(&view, NULL, &good, &terr),
                     ZARR_ERR_INVALID);
    assert_int_equal(zarr_tensor_from_dlpack(NULL, ctx, &good, &terr), ZARR_ERR_INVALID);
    view.struct_size = 8;
    assert_int_equal(zarr_tensor_from_dlpack(&view, ctx, &good, &terr), ZARR_ERR_ABI);
}

/* A length of 0 does not excuse others whose product is in no memory. */
static void empty_and_huge(void **state)
{
    int64_t shape[3] = {0, INT64_MAX, INT64_MAX}, strides[3] = {1, INT64_MAX, 1};
    uint64_t own_shape[3];
    DLManagedTensorVersioned v = make_versioned(ZARR_DLPACK_INT, 32, 3, shape, strides),
                             *out;
    zarr_dlpack_view view = ZARR_DLPACK_VIEW_INIT;
    zarr_tensor t = ZARR_TENSOR_INIT;

    (void)state;
    for (int zero = 0; zero < 3; zero++) {
        for (int d = 0; d < 3; d++)
            own_shape[d] = (uint64_t)(shape[d] = d == zero ? 0 : INT64_MAX);
        assert_int_equal(zarr_tensor_from_dlpack(&view, ctx, &v, &terr),
                         ZARR_ERR_INVALID);
        zarr_tensor_host(&t, NULL, memory, sizeof memory, 3, own_shape);
        assert_int_equal(zarr_dtype_find(&t.dtype, ctx, "int32", &terr), ZARR_OK);
        assert_int_equal(zarr_tensor_to_dlpack(&out, ctx, &t, 0, NULL, NULL, &terr),
                         ZARR_ERR_INVALID);
        assert_null(out);
    }
    shape[0] = shape[1] = 3;
    v.dl_tensor.data = NULL;
    assert_int_equal(zarr_tensor_from_dlpack(&view, ctx, &v, &terr), ZARR_OK);
    assert_int_equal(view.shape[2], 0);
}

static void count_release(void *user)
{
    ++*(int *)user;
}

static const zarr_dtype *type(const char *name)
{
    const zarr_dtype *t = NULL;

    assert_int_equal(zarr_dtype_find(&t, ctx, name, &terr), ZARR_OK);
    return t;
}

static void out_both(void **state)
{
    const uint64_t shape[2] = {3, 5};
    const int64_t strides[2] = {-24, 4};
    zarr_tensor t = ZARR_TENSOR_INIT;
    DLManagedTensorVersioned *v = NULL;
    DLManagedTensor *old = NULL;
    int released = 0;

    (void)state;
    zarr_tensor_host(&t, NULL, memory, sizeof memory, 2, shape);
    t.dtype = type("float32");
    t.strides = strides;
    t.byte_offset = 48;
    assert_int_equal(zarr_tensor_to_dlpack(&v, ctx, &t, ZARR_DLPACK_READ_ONLY,
                                           count_release, &released, &terr),
                     ZARR_OK);
    assert_int_equal(v->version.major, 1);
    assert_int_equal(v->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
    assert_ptr_equal(v->dl_tensor.data, memory);
    assert_int_equal(v->dl_tensor.device.device_type, kDLCPU);
    assert_int_equal(v->dl_tensor.ndim, 2);
    assert_int_equal(v->dl_tensor.dtype.code, ZARR_DLPACK_FLOAT);
    assert_int_equal(v->dl_tensor.dtype.bits, 32);
    assert_int_equal(v->dl_tensor.dtype.lanes, 1);
    assert_int_equal(v->dl_tensor.byte_offset, 48);
    assert_true(v->dl_tensor.shape[0] == 3 && v->dl_tensor.shape[1] == 5);
    assert_true(v->dl_tensor.strides[0] == -6 && v->dl_tensor.strides[1] == 1);
    assert_int_equal(released, 0);
    v->deleter(v);
    assert_int_equal(released, 1);
    t.strides = NULL; /* DLPack 1.2 wants strides always */
    assert_int_equal(
        zarr_tensor_to_dlpack_unversioned(&old, ctx, &t, count_release, &released, &terr),
        ZARR_OK);
    assert_true(old->dl_tensor.strides[0] == 5 && old->dl_tensor.strides[1] == 1);
    old->deleter(old);
    assert_int_equal(released, 2);
    assert_int_equal(zarr_tensor_to_dlpack(&v, ctx, &t, 0, NULL, NULL, &terr), ZARR_OK);
    v->deleter(v);
}

static void out_small(void **state)
{
    const uint64_t shape[2] = {3, 6};
    const int64_t strides[2] = {4, 1};
    zarr_tensor t = ZARR_TENSOR_INIT;
    zarr_dlpack_view view = ZARR_DLPACK_VIEW_INIT;
    DLManagedTensorVersioned *v = NULL;
    DLManagedTensor *old = NULL;

    (void)state;
    zarr_tensor_host(&t, NULL, memory, sizeof memory, 2, shape);
    t.dtype = type("int4");
    assert_int_equal(zarr_tensor_to_dlpack(&v, ctx, &t, 0, NULL, NULL, &terr), ZARR_OK);
    assert_int_equal(v->flags, DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED);
    assert_int_equal(v->dl_tensor.dtype.bits, 4);
    assert_int_equal(v->dl_tensor.strides[0], 6);
    v->deleter(v);
    assert_int_equal(zarr_tensor_to_dlpack_unversioned(&old, ctx, &t, NULL, NULL, &terr),
                     ZARR_ERR_UNSUPPORTED);
    assert_null(old);
    t.flags = ZARR_TENSOR_PACKED;
    t.strides = strides;
    assert_int_equal(zarr_tensor_to_dlpack_unversioned(&old, ctx, &t, NULL, NULL, &terr),
                     ZARR_OK);
    assert_true(old->dl_tensor.strides[0] == 8 && old->dl_tensor.strides[1] == 1);
    /* there and back */
    assert_int_equal(zarr_tensor_from_dlpack_unversioned(&view, ctx, old, &terr),
                     ZARR_OK);
    assert_int_equal(view.tensor.flags, ZARR_TENSOR_PACKED);
    assert_true(view.strides[0] == 4 && view.strides[1] == 1);
    old->deleter(old);
}

static void out_refused(void **state)
{
    const uint64_t shape[2] = {3, 5}, wrong[2] = {3, UINT64_C(1) << 63};
    const int64_t strides[2] = {6, 4};
    zarr_tensor good = ZARR_TENSOR_INIT;
    const bool little = *(const uint8_t *)&(const uint16_t){1} == 1;
    int released = 0;

    (void)state;
    zarr_tensor_host(&good, NULL, memory, sizeof memory, 2, shape);
    good.dtype = type("int32");
    for (int i = 0; i < 7; i++) {
        zarr_tensor t = good;
        DLManagedTensorVersioned *v = NULL;

        t.dtype = i == 0 ? NULL : i == 1 ? type("|S3") : t.dtype;
        t.strides = i == 2 ? strides : NULL;
        t.byte_order = i == 3 ? (little ? ZARR_ORDER_BIG : ZARR_ORDER_LITTLE) : 0;
        t.shape = i == 4 ? wrong : shape;
        t.flags = i == 5 ? ZARR_TENSOR_PACKED : 0;
        assert_int_equal(zarr_tensor_to_dlpack(&v, ctx, &t, i == 6 ? 8 : 0, count_release,
                                               &released, &terr),
                         i == 0 || i == 4 || i == 5 ? ZARR_ERR_INVALID
                                                    : ZARR_ERR_UNSUPPORTED);
        assert_null(v);
    }
    good.byte_order = little ? ZARR_ORDER_BIG : ZARR_ORDER_LITTLE;
    good.dtype = type("int8"); /* has no byte order */
    {
        DLManagedTensorVersioned *v = NULL;

        assert_int_equal(
            zarr_tensor_to_dlpack(&v, ctx, &good, 0, count_release, &released, &terr),
            ZARR_OK);
        assert_int_equal(released, 0);
        v->deleter(v);
    }
    assert_int_equal(released, 1);
    assert_int_equal(zarr_tensor_to_dlpack(NULL, ctx, &good, 0, NULL, NULL, &terr),
                     ZARR_ERR_INVALID);
    assert_int_equal(
        zarr_tensor_to_dlpack_unversioned(NULL, ctx, &good, NULL, NULL, &terr),
        ZARR_ERR_INVALID);
    {
        DLManagedTensorVersioned *v = NULL;

        assert_int_equal(zarr_tensor_to_dlpack(&v, NULL, &good, 0, NULL, NULL, &terr),
                         ZARR_ERR_INVALID);
        assert_int_equal(zarr_tensor_to_dlpack(&v, ctx, NULL, 0, NULL, NULL, &terr),
                         ZARR_ERR_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_both),     cmocka_unit_test(lanes_and_packed),
        cmocka_unit_test(hostile),     cmocka_unit_test(empty_and_huge),
        cmocka_unit_test(out_both),    cmocka_unit_test(out_small),
        cmocka_unit_test(out_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
