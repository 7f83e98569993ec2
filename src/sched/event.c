/*
 * sched/event.c - waiting for one thing. An event is set once. The waiter may free it as
 * soon as its wait returns: the setter does everything under the lock, and the waiter
 * takes the lock once more before it returns. Waits spin a few microseconds first,
 * because many answers are nearly there. A thread of the pool that then sleeps lets
 * another one work (zr_block_begin). Events inherited through fork belong to threads that
 * do not exist. Waits on them end at once, without touching a lock that may be held for
 * ever.
 * Thread class: shared.
 */
#include "sched/sched.h"

#define EVENT_SPIN_NS UINT64_C(5000)

void zr_event_init(struct zr_event *e)
{
    zr_mutex_init(&e->mutex);
    zr_cond_init(&e->cond);
    atomic_init(&e->set, false);
    e->generation = zr_fork_generation();
}

void zr_event_deinit(struct zr_event *e)
{
    if (zr_has_forked(e->generation))
        return; /* the count includes waiters that vanished in the fork */
    zr_cond_deinit(&e->cond);
    zr_mutex_deinit(&e->mutex);
}

void zr_event_set(struct zr_event *e)
{
    if (zr_has_forked(e->generation)) {
        atomic_store(&e->set, true);
        return;
    }
    zr_mutex_lock(&e->mutex);
    atomic_store(&e->set, true);
    zr_cond_broadcast(&e->cond);
    zr_mutex_unlock(&e->mutex);
}

bool zr_event_is_set(struct zr_event *e)
{
    if (!atomic_load(&e->set))
        return false;
    if (!zr_has_forked(e->generation)) {
        zr_mutex_lock(&e->mutex); /* until the setter has left the lock */
        zr_mutex_unlock(&e->mutex);
    }
    return true;
}

static void event_spin(const atomic_bool *set, uint64_t deadline_ns)
{
    const uint64_t end = ZR_MIN(deadline_ns, zr_now_ns() + EVENT_SPIN_NS);

    while (!atomic_load_explicit(set, memory_order_relaxed) && zr_now_ns() < end)
        for (int i = 0; i < 16; i++)
            zr_cpu_relax();
}

bool zr_event_wait(struct zr_event *e, uint64_t deadline_ns)
{
    bool in_time = true, set;

    if (zr_event_is_set(e) || deadline_ns == 0 || zr_has_forked(e->generation))
        return zr_event_is_set(e);
    event_spin(&e->set, deadline_ns);
    if (zr_event_is_set(e))
        return true;

    zr_block_begin();
    zr_mutex_lock(&e->mutex);
    while (!atomic_load(&e->set) && in_time)
        in_time = zr_cond_wait_until(&e->cond, &e->mutex, deadline_ns);
    set = atomic_load(&e->set);
    zr_mutex_unlock(&e->mutex);
    zr_block_end();
    return set;
}

/* ---- outcomes ---------------------------------------------------------------------- */

void zr_outcome_init(struct zr_outcome *o)
{
    *o = (struct zr_outcome){.st = ZARR_OK};
    zr_event_init(&o->event);
}

void zr_outcome_set(struct zr_outcome *o, zarr_status st, const zarr_error *err)
{
    o->st = zr_pass(&o->err, st, err);
    zr_event_set(&o->event);
}

zarr_status zr_outcome_wait(struct zr_outcome *o, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (zr_event_wait(&o->event, UINT64_MAX))
        st = zr_pass(err, o->st, &o->err);
    else
        st = zr_fail(err, ZARR_ERR_CANCELLED, "the process was forked during a request");
    zr_event_deinit(&o->event);
    return st;
}
