/*
 * sched/budget.c - bytes that may be in flight at once. Waiters form a queue. Each is on
 * its own stack and has its own condition. Only the first waiter gets bytes. The thread
 * that gives bytes back makes the grant under the lock, so no wake-up is lost and no
 * waiter is overtaken. A request above the total would wait for ever, so it is granted
 * alone, when nothing else is in use but bytes that are kept. A waiter that gives up
 * (patience, cancel) leaves the queue, and those after it may go on. Fork: the fork holds
 * the lock; in the child nothing is in use and no thread waits. Thread class: shared.
 */
#include "sched/sched.h"

#define BUDGET_LOOK_NS                                                                   \
    UINT64_C(10000000) /* how often a waiter looks at its cancel flag and its patience   \
                        */

struct zr_budget_waiter {
    struct zr_budget_waiter *prev, *next;
    uint64_t bytes;
    bool granted;
    zr_cond cond;
};

static void budget_in_child(void *arg)
{
    struct zr_budget *b = arg;

    b->first = NULL;
    b->last = NULL;
    b->now = 0;
    b->kept = 0;
    b->peak = 0;
}

void zr_budget_init(struct zr_budget *b, uint64_t total_bytes)
{
    *b = (struct zr_budget){.total = total_bytes};
    zr_mutex_init(&b->mutex);
    b->hook =
        (struct zr_fork_hook){.mutex = &b->mutex, .child = budget_in_child, .arg = b};
    zr_fork_hook_add(&b->hook);
}

void zr_budget_deinit(struct zr_budget *b)
{
    zr_fork_hook_remove(&b->hook);
    zr_mutex_deinit(&b->mutex);
}

/* Adds the bytes if they fit. */
static bool budget_add_locked(struct zr_budget *b, uint64_t bytes)
{
    if (b->now != b->kept && (b->now > b->total || bytes > b->total - b->now))
        return false;
    b->now += bytes;
    b->peak = ZR_MAX(b->peak, b->now);
    return true;
}

static void budget_unlink_locked(struct zr_budget *b, struct zr_budget_waiter *w)
{
    if (w->prev)
        w->prev->next = w->next;
    else
        b->first = w->next;
    if (w->next)
        w->next->prev = w->prev;
    else
        b->last = w->prev;
}

static void budget_grant_locked(struct zr_budget *b)
{
    struct zr_budget_waiter *w;

    while ((w = b->first) && budget_add_locked(b, w->bytes)) {
        budget_unlink_locked(b, w);
        w->granted = true;
        zr_cond_signal(&w->cond);
    }
}

/* 0 bytes are there at once: who holds all that the first waiter waits for may take them.
 */
bool zr_budget_try(struct zr_budget *b, uint64_t bytes)
{
    bool fits;

    zr_mutex_lock(&b->mutex);
    fits = bytes == 0 || (!b->first && budget_add_locked(b, bytes));
    zr_mutex_unlock(&b->mutex);
    return fits;
}

/* Waits in the queue until granted, cancelled or too late. Of the time between two looks
 * little counts for the patience: the whole process may have been stopped, and then no
 * other request could give bytes back. */
static bool budget_queue_locked(struct zr_budget *b, uint64_t bytes, uint64_t patience_ns,
                                const zarr_cancel *cancel)
{
    struct zr_budget_waiter w = {.prev = b->last, .bytes = bytes};
    const bool looks = cancel || patience_ns < UINT64_MAX;
    uint64_t now_ns = zr_now_ns(), n_gives = b->n_gives, idle_ns = 0;

    zr_cond_init(&w.cond);
    if (b->last)
        b->last->next = &w;
    else
        b->first = &w;
    b->last = &w;
    budget_grant_locked(b);
    while (!w.granted && idle_ns < patience_ns && !zr_is_cancelled(cancel)) {
        const uint64_t before_ns = now_ns,
                       look_ns = ZR_MIN(BUDGET_LOOK_NS, patience_ns - idle_ns);

        zr_cond_wait_until(&w.cond, &b->mutex, looks ? now_ns + look_ns : UINT64_MAX);
        now_ns = zr_now_ns();
        idle_ns += ZR_MIN(now_ns - before_ns, 4 * BUDGET_LOOK_NS);
        if (b->n_gives != n_gives)
            idle_ns = 0;
        n_gives = b->n_gives;
    }
    if (!w.granted) {
        budget_unlink_locked(b, &w);
        budget_grant_locked(b);
    }
    zr_cond_deinit(&w.cond);
    return w.granted;
}

zarr_status zr_budget_take(struct zr_budget *b, uint64_t bytes, uint64_t patience_ns,
                           const zarr_cancel *cancel, zarr_error *err)
{
    bool granted;

    if (zr_is_cancelled(cancel))
        return zr_fail(err, ZARR_ERR_CANCELLED, "cancelled");
    if (zr_budget_try(b, bytes))
        return ZARR_OK;
    if (zr_attempt_runs())
        return zr_attempt_fail(err);

    zr_block_begin();
    zr_mutex_lock(&b->mutex);
    granted = budget_queue_locked(b, bytes, patience_ns, cancel);
    zr_mutex_unlock(&b->mutex);
    zr_block_end();
    if (granted)
        return ZARR_OK;
    if (zr_is_cancelled(cancel))
        return zr_fail(err, ZARR_ERR_CANCELLED, "cancelled while waiting for memory");
    return zr_fail_limit(err, "memory_bytes", b->total,
                         "no %" PRIu64 " bytes came free in time in the memory budget",
                         bytes);
}

void zr_budget_give(struct zr_budget *b, uint64_t bytes)
{
    zr_mutex_lock(&b->mutex);
    b->now -= ZR_MIN(bytes, b->now);
    b->n_gives++;
    budget_grant_locked(b);
    zr_mutex_unlock(&b->mutex);
}

void zr_budget_keep(struct zr_budget *b, uint64_t bytes, uint64_t taken)
{
    zr_mutex_lock(&b->mutex);
    b->now -= ZR_MIN(taken, b->now);
    b->now += bytes;
    b->peak = ZR_MAX(b->peak, b->now);
    b->kept += bytes;
    budget_grant_locked(b);
    zr_mutex_unlock(&b->mutex);
}

void zr_budget_give_kept(struct zr_budget *b, uint64_t bytes)
{
    zr_mutex_lock(&b->mutex);
    bytes = ZR_MIN(bytes, b->kept);
    b->kept -= bytes;
    b->now -= ZR_MIN(bytes, b->now);
    budget_grant_locked(b);
    zr_mutex_unlock(&b->mutex);
}

void zr_budget_stats_get(struct zr_budget *b, struct zr_budget_stats *out)
{
    zr_mutex_lock(&b->mutex);
    *out = (struct zr_budget_stats){.total = b->total, .now = b->now, .peak = b->peak};
    for (const struct zr_budget_waiter *w = b->first; w; w = w->next)
        out->n_waiting++;
    zr_mutex_unlock(&b->mutex);
}
