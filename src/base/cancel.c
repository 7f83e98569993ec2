/*
 * base/cancel.c - the object by which a caller stops its calls. Setting it is one atomic
 * store, so that a signal handler may do it; calls look at it between their steps.
 * Thread class: shared.
 */
#include "base/base.h"

zarr_status zarr_cancel_create(zarr_cancel **out, zarr_error *err)
{
    zarr_cancel *c = zr_calloc(NULL, 1, sizeof *c);

    *out = c;
    if (!c)
        return zr_fail_memory(err, sizeof *c);
    zr_cancel_init(c, NULL);
    return ZARR_OK;
}

void zr_cancel_init(zarr_cancel *c, const zarr_cancel *outer)
{
    atomic_init(&c->set, false);
    atomic_init(&c->refs, 1);
    c->outer = outer;
}

zarr_cancel *zr_cancel_ref(zarr_cancel *cancel)
{
    if (!cancel)
        return NULL;
    atomic_fetch_add(&cancel->refs, 1);
    return cancel;
}

void zarr_cancel_free(zarr_cancel *cancel)
{
    if (cancel && atomic_fetch_sub(&cancel->refs, 1) == 1)
        zr_free(NULL, cancel);
}

void zarr_cancel_set(zarr_cancel *cancel)
{
    if (cancel)
        atomic_store(&cancel->set, true);
}

void zarr_cancel_reset(zarr_cancel *cancel)
{
    if (cancel)
        atomic_store(&cancel->set, false);
}

int zarr_cancel_is_set(const zarr_cancel *cancel)
{
    return zr_is_cancelled(cancel);
}

zarr_status zr_cancel_check(const zarr_cancel *cancel, zarr_error *err)
{
    if (!zr_is_cancelled(cancel))
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_CANCELLED, "the call was cancelled");
}
