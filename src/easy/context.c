/*
 * easy/context.c - the default context of the process. It is made when it is first needed
 * and never freed. There is no lock: threads that race for it each make one, and all but
 * the first free theirs. So a child process, forked at any moment, finds none or a
 * complete one.
 * Thread class: shared.
 */
#include "easy/easy_int.h"

static _Atomic(zarr_context *) default_context;

zarr_status zr_context_or_default(zarr_context **out, zarr_context *ctx, zarr_error *err)
{
    zarr_context *first = NULL;
    zarr_status st = ZARR_OK;

    *out = ctx ? ctx : atomic_load(&default_context);
    if (*out)
        return ZARR_OK;
    ZR_TRY(zarr_context_create(out, NULL, err));
    if (!atomic_compare_exchange_strong(&default_context, &first, *out)) {
        zarr_context_free(*out);
        *out = first;
    }
out:
    return st;
}
