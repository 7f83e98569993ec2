/*
 * pipe/request/flights.c - several waves of one request in flight: the caller's thread
 * and a few helpers each pull the next wave and carry it out, so that one is fetched or
 * stored while others are decoded or encoded. Helpers are tasks that may start late or
 * never, so no request waits for a busy pool.
 *
 * Code that a thread calls may fork, for example the progress function. The child has no
 * other thread of the request, and the lock may be held for ever there. So it takes no
 * lock, pulls no more waves, waits for no one, and leaves alone what helpers use.
 * Thread class: one struct per request, with locks inside.
 */
#include "pipe/request/request.h"

struct flight_helper {
    struct zr_task task;
    struct zr_flights *flights;
};

void zr_flights_init(struct zr_flights *f, void (*pull)(struct zr_flights *f))
{
    atomic_init(&f->refs, 1);
    f->fork_generation = zr_fork_generation();
    f->pull = pull;
    zr_mutex_init(&f->locked.mutex);
    zr_cond_init(&f->locked.idle);
}

void zr_flights_unref(struct zr_flights *f)
{
    if (atomic_fetch_sub(&f->refs, 1) != 1)
        return;
    zr_cond_deinit(&f->locked.idle);
    zr_mutex_deinit(&f->locked.mutex);
    if (!f->is_callers)
        zr_free(NULL, f);
}

/* Its holder may be opening shards, which can take long; the wait counts as blocked in
 * the pool. */
bool zr_flights_lock(struct zr_flights *f)
{
    if (zr_has_forked(f->fork_generation))
        return false;
    if (zr_mutex_try(&f->locked.mutex))
        return true;
    zr_block_begin();
    zr_mutex_lock(&f->locked.mutex);
    zr_block_end();
    return true;
}

void zr_flights_fail(struct zr_flights *f, zarr_status st, const zarr_error *err,
                     uint64_t ordinal)
{
    if (f->locked.status == ZARR_OK || ordinal < f->locked.failed_at) {
        f->locked.status = st;
        f->locked.failed_at = ordinal;
        f->locked.error = *err;
    }
    f->locked.closed = true;
}

static void flight_task(void *arg)
{
    struct flight_helper *h = arg;
    struct zr_flights *f = h->flights;
    bool late = false;

    (void)zr_flights_lock(f);
    late = f->locked.closed;
    f->locked.n_active += !late;
    zr_mutex_unlock(&f->locked.mutex);
    zr_free(NULL, h);
    if (!late) { /* the caller waits for this helper, so what it borrows is valid */
        f->pull(f);
        if (!zr_flights_lock(f))
            return;
        if (--f->locked.n_active == 0)
            zr_cond_broadcast(&f->locked.idle);
        zr_mutex_unlock(&f->locked.mutex);
    }
    zr_flights_unref(f);
}

static void start_helper(struct zr_flights *f)
{
    struct flight_helper *h = zr_calloc(NULL, 1, sizeof *h);

    if (!h)
        return; /* fewer waves in flight: slower, not wrong */
    h->flights = f;
    h->task = (struct zr_task){.fn = flight_task, .arg = h};
    atomic_fetch_add(&f->refs, 1);
    if (zr_task_submit(&h->task, NULL) == ZARR_OK)
        return;
    atomic_fetch_sub(&f->refs, 1);
    zr_free(NULL, h);
}

void zr_flights_start(struct zr_flights *f, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        start_helper(f);
}

zarr_status zr_flights_end(struct zr_flights *f, zarr_error *err)
{
    zr_block_begin(); /* helpers wait for tasks, which need threads of the pool */
    if (!zr_flights_lock(f)) {
        zr_block_end();
        return zr_request_inherited(err);
    }
    f->locked.closed = true;
    while (f->locked.n_active > 0)
        zr_cond_wait(&f->locked.idle, &f->locked.mutex);
    zr_mutex_unlock(&f->locked.mutex);
    zr_block_end();
    if (f->locked.status != ZARR_OK && err)
        *err = f->locked.error;
    return f->locked.status;
}
