/*
 * tree/wait.c - waits for a request and looks at its counters meanwhile.
 * Thread class: plain function.
 */
#include "tree/tree.h"

zarr_status zr_request_end(zarr_request *request, const struct zr_waiting *w,
                           zarr_error *err)
{
    static const uint64_t poll_ns = 50000000;
    zarr_status st = ZARR_OK;
    int done = 0;

    while (!st && !done) {
        st =
            zarr_request_wait(request, w->look ? poll_ns : ZARR_WAIT_FOREVER, &done, err);
        if (!st && w->look) {
            zarr_stats now = ZARR_STATS_INIT;

            zarr_request_progress(request, &now);
            w->look(w->arg, &now, done != 0);
        }
    }
    zarr_request_free(request);
    return st;
}
