/*
 * array/io/io.c - the public calls that read and write. A call takes the array's current
 * state and keeps it until the request is done. Errors of arguments have the array's path
 * in front; errors of chunks come from the pipe with the chunk's key.
 * Thread class: plain functions.
 */
#include "array/io/io_int.h"

#include <string.h>

/* ---- blocking ----------------------------------------------------------- */

zarr_status zr_io_call_run(struct zr_io_call *c, const zarr_selection *sel,
                           const zarr_tensor *tensor, const zarr_io_options *opts,
                           bool write, zarr_error *err)
{
    zarr_status st = zr_io_prepare(c, sel, tensor, opts, write, err);

    if (st != ZARR_OK)
        zr_path_prefix(err, st, c->array->h.path);
    else if (c->io.at_once && !write)
        st = zr_io_try(&c->io, c->opts.stats, err);
    else
        st = zr_io_run(&c->io, c->opts.stats, err);
    zr_io_call_deinit(c);
    return st;
}

zarr_status zarr_array_read(zarr_array *array, const zarr_selection *selection,
                            const zarr_tensor *dst, const zarr_io_options *opts,
                            zarr_error *err)
{
    ZR_NEED(array, err);
    struct zr_io_call c = {.array = array, .state = zr_array_state_get(array)};
    const zarr_status st = zr_io_call_run(&c, selection, dst, opts, false, err);

    zr_array_state_free(c.state);
    return st;
}

zarr_status zarr_array_write(zarr_array *array, const zarr_selection *selection,
                             const zarr_tensor *src, const zarr_io_options *opts,
                             zarr_error *err)
{
    ZR_NEED(array, err);
    struct zr_io_call c = {.array = array, .state = zr_array_state_get(array)};
    const zarr_status st = zr_io_call_run(&c, selection, src, opts, true, err);

    zr_array_state_free(c.state);
    return st;
}

/* ---- submitted ---------------------------------------------------------- */

/* The result is kept until the request is freed. The last progress call of a request has
 * its final counters. */
static void submitted_progress(void *user, const zarr_stats *so_far)
{
    struct zr_io_call *c = user;
    zarr_stats *stats = c->opts.stats;

    if (stats) {
        const uint32_t bytes = stats->struct_size;

        memcpy(stats, so_far, ZR_MIN((size_t)bytes, sizeof *so_far));
        stats->struct_size = bytes;
    }
    if (c->opts.progress)
        c->opts.progress(c->opts.progress_user, so_far);
}

zarr_status zr_io_call_new(struct zr_io_call **out, zarr_array *array, zarr_error *err)
{
    struct zr_io_call *c = zr_calloc(array->h.ctx->alloc, 1, sizeof *c);

    *out = c;
    if (!c)
        return zr_fail_memory(err, sizeof *c);
    c->array = zarr_array_ref(array);
    c->state = zr_array_state_get(array);
    return ZARR_OK;
}

void zr_io_call_free(struct zr_io_call *c)
{
    zarr_array *array = c->array;

    zr_io_call_deinit(c);
    zarr_cancel_free(c->owned_cancel);
    zr_array_state_free(c->state);
    zr_free(array->h.ctx->alloc, c);
    zarr_array_free(array);
}

static void release_submitted(void *owner)
{
    zr_io_call_free(owner);
}

zarr_status zr_io_call_submit(zarr_request **out, struct zr_io_call *c, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (c->opts.cancel)
        c->owned_cancel = zr_cancel_ref(c->opts.cancel);
    if (c->opts.stats || c->opts.progress) {
        c->io.progress = submitted_progress;
        c->io.progress_user = c;
    }
    st = zr_io_submit(out, &c->io, release_submitted, c, err);
    if (st != ZARR_OK)
        zr_io_call_free(c);
    return st;
}

static zarr_status submit_io(zarr_request **out, zarr_array *array,
                             const zarr_selection *sel, const zarr_tensor *tensor,
                             const zarr_io_options *opts, bool write, zarr_error *err)
{
    struct zr_io_call *c = NULL;
    zarr_status st = ZARR_OK;

    *out = NULL;
    ZR_TRY(zr_io_call_new(&c, array, err));
    st = zr_io_prepare(c, sel, tensor, opts, write, err);
    if (st != ZARR_OK) {
        zr_path_prefix(err, st, array->h.path);
        zr_io_call_free(c);
        goto out;
    }
    ZR_TRY(zr_io_call_submit(out, c, err));
out:
    return st;
}

zarr_status zarr_array_read_submit(zarr_request **out, zarr_array *array,
                                   const zarr_selection *selection,
                                   const zarr_tensor *dst, const zarr_io_options *opts,
                                   zarr_error *err)
{
    *out = NULL;
    ZR_NEED(array, err);
    return submit_io(out, array, selection, dst, opts, false, err);
}

zarr_status zarr_array_write_submit(zarr_request **out, zarr_array *array,
                                    const zarr_selection *selection,
                                    const zarr_tensor *src, const zarr_io_options *opts,
                                    zarr_error *err)
{
    *out = NULL;
    ZR_NEED(array, err);
    return submit_io(out, array, selection, src, opts, true, err);
}
