/*
 * unit/array/test_dlpack_real.c - zarrc/dlpack.h with the real dlpack.h (Debian:
 * libdlpack-dev), included first.
 */
#include <dlpack/dlpack.h>

#include <zarrc/dlpack.h>
#include <zarrc/zarrc.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void there_and_back(void **state)
{
    static int16_t memory[6];
    const uint64_t shape[2] = {2, 3};
    zarr_context *ctx = NULL;
    zarr_error err = {0};
    zarr_tensor t = ZARR_TENSOR_INIT;
    zarr_dlpack_view view = ZARR_DLPACK_VIEW_INIT;
    DLManagedTensor *m = NULL;

    (void)state;
    assert_int_equal(zarr_context_create(&ctx, NULL, &err), ZARR_OK);
    zarr_tensor_host(&t, NULL, memory, sizeof memory, 2, shape);
    assert_int_equal(zarr_dtype_find(&t.dtype, ctx, "int16", &err), ZARR_OK);
    assert_int_equal(zarr_tensor_to_dlpack_unversioned(&m, ctx, &t, NULL, NULL, &err),
                     ZARR_OK);
    assert_ptr_equal(m->dl_tensor.data, memory);
    assert_int_equal(m->dl_tensor.device.device_type, kDLCPU);
    assert_int_equal(m->dl_tensor.dtype.code, kDLInt);
    assert_int_equal(m->dl_tensor.dtype.bits, 16);
    assert_int_equal(m->dl_tensor.shape[1], 3);
    assert_int_equal(m->dl_tensor.strides[0], 3);
    m->dl_tensor.strides[0] = -3;
    m->dl_tensor.byte_offset = 6;
    assert_int_equal(zarr_tensor_from_dlpack_unversioned(&view, ctx, m, &err), ZARR_OK);
    assert_int_equal(view.strides[0], -6);
    assert_int_equal(view.tensor.byte_offset, 6);
    m->deleter(m);
    zarr_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(there_and_back)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
