/*
 * sched/task.c - work whose caller does not wait for it: asynchronous requests and
 * completions of stores. A task is two words and a link in the caller's own memory. The
 * pool keeps tasks in a queue, first in, first out. It looks there before it helps with
 * loops, because a loop also has its caller and a task only has the pool. A task that
 * waits for another one calls zr_block_begin, and the pool then runs the other one on one
 * more thread.
 * Thread class: shared.
 */
#include "sched/pool_int.h"

zarr_status zr_task_submit(struct zr_task *t, zarr_error *err)
{
    struct zr_pool_starts starts = {0};
    bool closed, dropped = false;

    zr_pool_setup();
    zr_pool_lock();
    closed = zr_pool_is_closed_locked();
    if (!closed) {
        zr_pool_put_task_locked(t);
        zr_pool_call_locked(1, &starts);
    }
    zr_pool_unlock();
    if (closed) { /* the process exits: no thread will come */
        t->fn(t->arg);
        return ZARR_OK;
    }

    if (!zr_pool_start(&starts)) {
        zr_pool_lock();
        dropped = zr_pool_count_alive_locked() == 0 && zr_pool_drop_task_locked(t);
        zr_pool_unlock();
    }
    if (dropped)
        return zr_fail(err, ZARR_ERR_NO_MEMORY, "cannot start a thread for a task");
    return ZARR_OK;
}

bool zr_task_withdraw(struct zr_task *t)
{
    bool dropped;

    zr_pool_lock();
    dropped = zr_pool_drop_task_locked(t);
    zr_pool_unlock();
    return dropped;
}
