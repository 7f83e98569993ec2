/*
 * unit/dtype/dtype_test.h - the core's data types in a registry of the program, as the
 * set-up of its tests, and one of them by name.
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

static inline int set_up(void **state)
{
    (void)state;
    if (zr_dtype_registry_init(&registry, NULL, NULL) != ZARR_OK)
        return -1;
    for (const zarr_dtype_vtable *const *v = zr_dtype_core; *v; v++)
        if (zr_dtype_register(&registry, *v, "core", NULL) != ZARR_OK)
            return -1;
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    zr_dtype_registry_deinit(&registry);
    return 0;
}

static inline const zarr_dtype *type_of(const char *name)
{
    const zarr_dtype *t = NULL;
    zarr_error err = {0};

    if (zr_dtype_find(&registry, name, &t, NULL, &err) != ZARR_OK)
        fail_msg("%s: %s", name, err.message);
    return t;
}

#endif
