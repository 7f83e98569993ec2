/*
 * sched/attempt.c - work that must not wait. Its thread tries whether the work can be
 * done at once. What would wait for a disk, another thread or memory fails instead, and
 * the whole work is done again elsewhere. Each thread knows only its own attempt.
 * Thread class: shared.
 */
#include "sched/sched.h"

static _Thread_local struct {
    bool runs, has_failed;
} attempt;

void zr_attempt_begin(void)
{
    attempt.runs = true;
    attempt.has_failed = false;
}

bool zr_attempt_end(void)
{
    attempt.runs = false;
    return !attempt.has_failed;
}

bool zr_attempt_runs(void)
{
    return attempt.runs;
}

zarr_status zr_attempt_fail(zarr_error *err)
{
    attempt.has_failed = true;
    return zr_fail(err, ZARR_ERR_CANCELLED, "this would have to wait");
}
