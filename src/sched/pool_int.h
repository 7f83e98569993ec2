/*
 * sched/pool_int.h - inside sched only: what parallel.c and task.c need of the
 * pool. A job is one parallel loop; it lives on its caller's stack, and pool
 * threads may touch it only between joining and leaving it, both under the
 * pool's lock.
 */
#ifndef ZR_POOL_INT_H
#define ZR_POOL_INT_H

#include "sched/sched.h"

enum {
    POOL_CACHE_LINE = 64,
    POOL_CALL_MAX = 2 /* threads that one thread calls at once: these call more */
};

struct zr_job {
    zr_item_fn fn;
    void *arg;
    uint64_t n;
    uint32_t grain, max_workers;
    bool keeps_grain; /* else the last grains are smaller */
    const zarr_cancel *cancel;
    uint64_t generation;
    bool want_text; /* the caller has a zarr_error */

    struct {
        struct zr_job *prev, *next;
        uint32_t n_joined;  /* worker numbers given out; the caller has 0 */
        bool waiting;       /* the caller sleeps on `done` */
        zr_cond done;       /* only while waiting */
        zarr_status status; /* of the lowest failed item so far */
        zarr_error err;
    } locked; /* by the pool's lock */

    /* On separate cache lines by distance, not by alignment: a job is on the stack, and
     * gcc 12 puts over-aligned locals at wrong addresses when ASan checks uses after
     * return. */
    char pad_before[POOL_CACHE_LINE];
    atomic_uint_fast64_t next; /* first item not yet taken */
    char pad_behind[POOL_CACHE_LINE];
    atomic_uint_fast64_t first_bad; /* lowest failed item; n: none */
    atomic_bool cancelled;          /* *cancel kept an item from being started */
    atomic_uint
        n_inside; /* pool threads between join and leave; changed under the lock */
};

/* Works on the job until no item is left to take. */
void zr_job_work(struct zr_job *job, uint32_t worker);
bool zr_job_is_open(const struct zr_job *job);

/* Threads to start and to wake: chosen under the lock, called after it. A thread that is
 * woken before would only wait for the lock. */
struct zr_pool_starts {
    uint32_t n, n_sleepers;
    uint32_t index[POOL_CALL_MAX];
};

void zr_pool_setup(void); /* call it before the first lock */
void zr_pool_lock(void);
void zr_pool_unlock(void);
/* Notes up to `wanted` idle threads to wake, or new ones to start. Call it with the lock
 * held. */
void zr_pool_call_locked(uint32_t wanted, struct zr_pool_starts *starts);
/* Wakes and starts the noted threads; false if one could not be started. Call it without
 * the lock. */
bool zr_pool_start(const struct zr_pool_starts *starts);
bool zr_pool_is_closed_locked(void);
bool zr_pool_stays(void); /* whether zr_pool_stay() was called */
/* How many threads may take a new task. */
uint32_t zr_pool_count_alive_locked(void);
void zr_pool_put_task_locked(struct zr_task *t);
bool zr_pool_drop_task_locked(struct zr_task *t); /* false: it was taken already */

/* open makes the job visible to other threads and calls some; close waits for those
 * inside. */
void zr_pool_open_job(struct zr_job *job);
void zr_pool_close_job(struct zr_job *job);

#endif
