/*
 * sched/sched.h - the door of the room that schedules: the process's thread pool
 * (parallel loops and asynchronous tasks), waiting (events) and the byte budget. It knows
 * nothing of Zarr. The pool starts when it is first needed. All contexts share it, and it
 * grows up to what its callers ask for. The caller of a parallel loop always takes part,
 * so a loop inside a loop, or beside a busy pool, can be slow but never gets stuck. In a
 * forked child the pool is empty and starts again when needed; tasks and loops of the
 * parent's other threads do not exist there. zr_fork_generation() is in
 * base/base.h.
 * Thread class: shared, unless an object says otherwise.
 */
#ifndef ZR_SCHED_H
#define ZR_SCHED_H

#include "base/base.h"

/* ---- parallel loops ------------------------------------------------------ */

/* Threads that may work on one loop, and in the pool. */
#define ZR_MAX_THREADS 256

/* One item. `worker` is a number below zr_parallel_workers(), never used by two threads
 * of the same loop at a time: for scratch memory. err may be NULL. */
typedef zarr_status (*zr_item_fn)(void *arg, uint64_t i, uint32_t worker,
                                  zarr_error *err);

struct zr_parallel_options {
    uint32_t
        max_threads;  /* with the calling thread; 0: all CPUs; at most ZR_MAX_THREADS */
    uint32_t grain;   /* items a thread takes at once; 0: chosen from n, with smaller
                         ones at the end */
    uint64_t item_ns; /* about how long an item takes; 0: long. Short loops stay on the
                         caller's thread if waking another one costs more */
    const zarr_cancel *cancel; /* once it is set, no further item is started; or NULL */
};

/* How many worker numbers such a loop may use; at least 1. */
uint32_t zr_parallel_workers(uint64_t n, const struct zr_parallel_options *opts);

/* Calls fn for i = 0 .. n-1 on several threads and returns after all have ended. Items
 * start in rising order. After a failure no item above the failed one is started, and all
 * below it complete. So the status is that of the lowest failing item, the same in every
 * run, and err->item is its index. CANCELLED if the flag kept an item from starting and
 * none failed, and in a child that an item forked. opts NULL: defaults. */
zarr_status zr_parallel_run(uint64_t n, const struct zr_parallel_options *opts,
                            zr_item_fn fn, void *arg, zarr_error *err);

/* The same, with max_threads as the only option. */
zarr_status zr_parallel_for(uint64_t n, uint32_t max_threads, zr_item_fn fn, void *arg,
                            zarr_error *err);

/* ---- tasks --------------------------------------------------------------- */

/* A task runs once, on a thread of the pool. The caller owns the memory until fn is
 * called; fn may free it. Thread class: solo. */
struct zr_task {
    void (*fn)(void *arg);
    void *arg;
    struct zr_task *prev, *next; /* the pool's, as is the next one */
    bool is_queued;
};

/* Tasks start in the order of submission. Fails, and starts nothing, if the pool has no
 * thread and cannot start one. While the process exits the task runs inside this call. */
zarr_status zr_task_submit(struct zr_task *t, zarr_error *err);
/* Takes back a task that was submitted and has not begun: it will not run. Returns false
 * if it has begun. Not in a forked child of the process that submitted it. */
bool zr_task_withdraw(struct zr_task *t);

/* Call these around a long wait inside a task or loop item (a slow store, the result of
 * another task). The pool may then use another thread instead. The waits in this header
 * do it themselves. On threads outside of the pool they do nothing. Pairs may nest. */
void zr_block_begin(void);
void zr_block_end(void);

/* ---- attempts ------------------------------------------------------------ */

/* Between begin and end, this thread must not wait. Code that would wait calls
 * zr_attempt_fail() instead, and returns its status. Attempts do not nest. */
void zr_attempt_begin(void);
bool zr_attempt_end(void); /* false: something failed because it would have waited */
bool zr_attempt_runs(void);
zarr_status zr_attempt_fail(zarr_error *err); /* returns CANCELLED */

/* ---- the pool ------------------------------------------------------------ */

/* Lets the pool run this many threads at once (at first zr_cpu_count()). The number never
 * falls. */
void zr_pool_want(uint32_t n_threads);
/* Says that the library stays mapped until the process ends. Threads of the pool then do
 * not end while the process exits. */
void zr_pool_stay(void);

struct zr_pool_stats {
    uint32_t n_threads; /* started and not ended */
    uint32_t n_idle;    /* of them without work */
    uint32_t n_blocked; /* of them between zr_block_begin and zr_block_end */
    uint32_t n_wanted;  /* how many may work at once */
    uint64_t n_tasks;   /* waiting for a thread */
};
void zr_pool_stats_get(struct zr_pool_stats *out);

/* ---- services -------------------------------------------------------------- */

/* A thread that serves until the process exits, beside the pool. The caller sets the
 * first three members and keeps the struct for ever. In a forked child there are no
 * services: it may start them again. Thread class: solo. */
struct zr_service {
    void (*serve)(void *arg); /* the thread; returns soon after stop() */
    void (*stop)(void *arg);  /* called when the process exits */
    void *arg;
    zr_thread thread; /* the rest is the service's own */
    bool ended;
    struct zr_service *next;
};
/* Call it after all libraries that serve() uses are initialised: exit handlers that are
 * installed before run after stop(). CANCELLED: the process exits. */
zarr_status zr_service_start(struct zr_service *s, zarr_error *err);

/* ---- events -------------------------------------------------------------- */

/* An event is set once; then every wait returns at once. A thread that saw it set may
 * deinit it. In a forked child an event of the parent that was not set is never set:
 * waits return false at once. */
struct zr_event {
    zr_mutex mutex;
    zr_cond cond;
    atomic_bool set;
    uint64_t generation;
};
void zr_event_init(struct zr_event *e);
void zr_event_deinit(struct zr_event *e);
void zr_event_set(struct zr_event *e);
bool zr_event_is_set(struct zr_event *e);
/* deadline_ns is a time of zr_now_ns(); UINT64_MAX: none. True: the event is set. */
bool zr_event_wait(struct zr_event *e, uint64_t deadline_ns);

/* A status that another thread sets once, and one thread waits for. */
struct zr_outcome {
    struct zr_event event;
    zarr_status st;
    zarr_error err;
};
void zr_outcome_init(struct zr_outcome *o);
void zr_outcome_set(struct zr_outcome *o, zarr_status st, const zarr_error *err);
/* Waits and ends the outcome. Returns its status, or CANCELLED in a forked child. */
zarr_status zr_outcome_wait(struct zr_outcome *o, zarr_error *err);

/* ---- events for event loops ---------------------------------------------- */

/* A descriptor that becomes readable once and stays so, for poll() and its kin. Thread
 * class: solo. */
struct zr_fd_event {
    int read_fd, write_fd; /* -1: not open; both may be one */
};
void zr_fd_event_init(struct zr_fd_event *e);
zarr_status zr_fd_event_open(struct zr_fd_event *e, zarr_error *err);
static inline bool zr_fd_event_is_open(const struct zr_fd_event *e)
{
    return e->read_fd >= 0;
}
void zr_fd_event_set(const struct zr_fd_event *e); /* does nothing if it is not open */
void zr_fd_event_close(struct zr_fd_event *e);     /* may be called on one not open */

/* ---- byte budget ------------------------------------------------------------- */

/* Bytes that may be in flight at once. First come, first served: small requests do not
 * overtake a large one for ever. A request above the total is granted when nothing else
 * is in use. Do not wait for more while holding some, because two such holders could wait
 * for each other (zr_budget_try is allowed). In a forked child the whole budget is free,
 * and bytes taken before the fork must not be given back. The struct must not move in
 * memory between init and deinit.
 *
 * Bytes can be kept: for long, while their holder waits for more. So no thread waits for
 * them. They leave less for all others, and where nothing but kept bytes is in use, the
 * first in the queue gets what it wants. */
struct zr_budget {
    zr_mutex mutex;
    struct zr_budget_waiter *first, *last;
    uint64_t total, now, peak; /* bytes */
    uint64_t kept;             /* of `now` */
    uint64_t n_gives;          /* how often bytes came back */
    struct zr_fork_hook hook;
};
struct zr_budget_stats {
    uint64_t total, now, peak; /* bytes */
    uint32_t n_waiting;
};
void zr_budget_init(struct zr_budget *b, uint64_t total_bytes);
void zr_budget_deinit(struct zr_budget *b); /* no thread may be waiting */
/* Waits until the bytes are granted; 0 bytes are at once. CANCELLED: cancel was set
 * (checked every 10 ms; NULL: never), or an attempt would have waited. LIMIT: nothing was
 * given back for patience_ns (UINT64_MAX: never). The time in which the process was
 * stopped is no part of them. */
zarr_status zr_budget_take(struct zr_budget *b, uint64_t bytes, uint64_t patience_ns,
                           const zarr_cancel *cancel, zarr_error *err);
bool zr_budget_try(struct zr_budget *b,
                   uint64_t bytes); /* also false while others wait */
void zr_budget_give(struct zr_budget *b, uint64_t bytes);
/* Keeps `bytes`, in place of `taken` ones that were taken before. Does not wait. */
void zr_budget_keep(struct zr_budget *b, uint64_t bytes, uint64_t taken);
void zr_budget_give_kept(struct zr_budget *b, uint64_t bytes);
void zr_budget_stats_get(struct zr_budget *b, struct zr_budget_stats *out);

#endif
