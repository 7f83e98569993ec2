/*
 * unit/dtype/dtype_test.h - set-up for the tests of data types: a registry with the
 * core's types, and a look-up of one of them by name.
 */
#ifndef ZR_TESTS_DTYPE_TEST_H
#define ZR_TESTS_DTYPE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dtype/dtype.h"

static struct zr_dtype_registry registry;

static inline zarr_status fill_registry(struct zr_dtype_registry *r,
                                        const zarr_allocator *alloc)
{
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_dtype_registry_init(r, alloc, NULL));
    for (const zarr_dtype_vtable *const *v = zr_dtype_core; *v; v++)
        ZR_TRY(zr_dtype_register(r, *v, "core", NULL));
out:
    return st;
}

static inline int set_up(void **state)
{
    (void)state;
    return fill_registry(&registry, NULL) == ZARR_OK ? 0 : -1;
}

static inline int tear_down(void **state)
{
    (void)state;
    zr_dtype_registry_deinit(&registry);
    return 0;
}

static inline const zarr_dtype *find_type(const char *name)
{
    const zarr_dtype *t = NULL;
    zarr_error err = {0};

    if (zr_dtype_find(&registry, name, &t, NULL, &err) != ZARR_OK)
        fail_msg("%s: %s", name, err.message);
    return t;
}

#endif
