/*
 * sched/sched.h - the door of the room that shares out time and memory: the
 * process's one thread pool (parallel loops and asynchronous tasks), waiting
 * (events) and the byte budget. It knows nothing of Zarr.
 *
 * The pool starts with the first need, is shared by all contexts, and grows up
 * to what its callers ask for. A parallel loop's caller always takes part, so a
 * loop inside a loop, or a pool that is busy elsewhere, can be slow but never
 * stuck. In a forked child the pool is empty and starts anew at the next need;
 * tasks and loops of the parent's other threads do not exist there.
 * zr_fork_generation() and zr_thread_slot() are in base/base.h.
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
    uint32_t max_threads; /* the caller's included; 0: all CPUs; at most ZR_MAX_THREADS */
    uint32_t grain;       /* items a thread takes at once; 0: chosen from n */
    uint64_t item_ns; /* about how long an item takes: keeps short loops on the caller's
                         thread, where waking another costs more; 0: long */
    const atomic_bool *cancel; /* when set no further item is started; NULL: never */
};

/* How many worker numbers such a loop may use, at least 1. */
uint32_t zr_parallel_workers(uint64_t n, const struct zr_parallel_options *opts);

/* Calls fn for i = 0 .. n-1 on several threads and returns when all have ended. Items are
 * started in rising order. After a failure none above the failed one is started, all
 * below complete, so the status is that of the lowest failing item, the same in every
 * run, and err->item says which. CANCELLED when the flag kept an item from starting and
 * none failed, and in a child forked by an item. opts NULL: defaults. */
zarr_status zr_parallel_run(uint64_t n, const struct zr_parallel_options *opts,
                            zr_item_fn fn, void *arg, zarr_error *err);

/* The same with only max_threads given. */
zarr_status zr_parallel_for(uint64_t n, uint32_t max_threads, zr_item_fn fn, void *arg,
                            zarr_error *err);

/* ---- tasks --------------------------------------------------------------- */

/* Runs once on a thread of the pool. The caller owns the memory, until fn is called: fn
 * may free it. Thread class: solo. */
struct zr_task {
    void (*fn)(void *arg);
    void *arg;
    struct zr_task *next; /* the pool's */
};

/* Tasks start in the order of submission. Fails, with nothing started, when the pool has
 * no thread and gets none. While the process exits the task runs inside this call. */
zarr_status zr_task_submit(struct zr_task *t, zarr_error *err);

/* Round a long wait inside a task or loop item (a slow store, another task's result):
 * lets the pool put another thread in this one's place. The waits of this door do it
 * themselves. Outside the pool's threads these do nothing. Pairs may nest. */
void zr_block_begin(void);
void zr_block_end(void);

/* ---- the pool ------------------------------------------------------------ */

/* Lets the pool run this many threads at once (it starts with zr_cpu_count()); never
 * fewer again. */
void zr_pool_want(uint32_t n_threads);

struct zr_pool_stats {
    uint32_t n_threads; /* started and not ended */
    uint32_t n_idle;    /* of them without work */
    uint32_t n_blocked; /* of them between zr_block_begin and zr_block_end */
    uint32_t n_wanted;  /* how many may work at once */
    uint64_t n_tasks;   /* waiting for a thread */
};
void zr_pool_stats_get(struct zr_pool_stats *out);

/* ---- events -------------------------------------------------------------- */

/* Is set once; then every wait returns at once. A thread that saw it set may deinit it.
 * In a forked child an event of the parent that was not set never will be: waits return
 * false at once. */
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
/* deadline_ns on zr_now_ns()'s clock, UINT64_MAX: none. True: it is set. */
bool zr_event_wait(struct zr_event *e, uint64_t deadline_ns);

/* ---- byte budget ------------------------------------------------------------- */

/* Bytes that may be in flight at once. First come, first served: a large request is not
 * overtaken for ever by small ones. A request above the total is granted when nothing
 * else is in use. Do not wait for more while holding some: two such holders could wait
 * for each other (zr_budget_try is fine). In a forked child the budget is whole again,
 * and bytes taken before the fork must not be given back. Does not move in memory between
 * init and deinit. */
struct zr_budget {
    zr_mutex mutex;
    struct zr_budget_waiter *first, *last;
    uint64_t total, now, peak; /* bytes */
    struct zr_fork_hook hook;
};
struct zr_budget_stats {
    uint64_t total, now, peak; /* bytes */
    uint32_t n_waiting;
};
void zr_budget_init(struct zr_budget *b, uint64_t total_bytes);
void zr_budget_deinit(struct zr_budget *b); /* no thread may be waiting */
/* Waits until the bytes are granted. CANCELLED: *cancel was seen set (looked at every 10
 * ms; NULL: never); LIMIT: deadline_ns (zr_now_ns()'s clock, UINT64_MAX: none) passed. */
zarr_status zr_budget_take(struct zr_budget *b, uint64_t bytes, uint64_t deadline_ns,
                           const atomic_bool *cancel, zarr_error *err);
bool zr_budget_try(struct zr_budget *b,
                   uint64_t bytes); /* false also while others wait */
void zr_budget_give(struct zr_budget *b, uint64_t bytes);
void zr_budget_stats_get(struct zr_budget *b, struct zr_budget_stats *out);

#endif
