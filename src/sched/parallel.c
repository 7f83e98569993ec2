/*
 * sched/parallel.c - one loop on several threads. There is no queue of items: a counter
 * holds the first item that no thread has taken, and each thread takes a grain of
 * neighbours, because what these write may share lines of the cache. The last grains are
 * smaller, so that all threads end at about the same time. Items start in rising order,
 * which makes the result exact: when item k fails, every item below k was taken before it
 * and will complete, none above need start, and the lowest failure is the same in every
 * run, whatever the threads did. A loop of one item or one thread runs on the calling
 * thread, without a lock, an atomic or another thread. So does a loop whose caller says
 * that it takes less time than waking a thread.
 * Thread class: shared.
 */
#include "sched/pool_int.h"

#define PARALLEL_WAKE_NS                                                                 \
    UINT64_C(100000) /* work that makes one more thread worth waking */

enum {
    PARALLEL_GRAIN_MAX =
        64, /* an atomic costs about 50 ns contended: small beside 64 items */
    PARALLEL_GRAINS_EACH =
        8, /* grains per thread at least: items may differ in how long they take */
    PARALLEL_LEFT_EACH = 2 /* grains per thread into which what is left is cut */
};

uint32_t zr_parallel_workers(uint64_t n, const struct zr_parallel_options *opts)
{
    uint64_t workers = opts && opts->max_threads ? opts->max_threads : zr_cpu_count();
    uint64_t work_ns;

    workers = ZR_MIN(workers, (uint64_t)ZR_MAX_THREADS);
    if (opts && opts->item_ns && zr_mul(n, opts->item_ns, &work_ns))
        workers = ZR_MIN(workers, work_ns / PARALLEL_WAKE_NS);
    workers = ZR_MIN(workers, n);
    return (uint32_t)ZR_MAX(workers, (uint64_t)1);
}

bool zr_job_is_open(const struct zr_job *job)
{
    const uint64_t next = atomic_load_explicit(&job->next, memory_order_relaxed);

    return next < job->n &&
           next <= atomic_load_explicit(&job->first_bad, memory_order_relaxed) &&
           !atomic_load_explicit(&job->cancelled, memory_order_relaxed);
}

/* Records a failure; the lowest item wins. */
static void job_fail(struct zr_job *job, uint64_t i, zarr_status status,
                     const zarr_error *err)
{
    zr_pool_lock();
    if (i < atomic_load_explicit(&job->first_bad, memory_order_relaxed)) {
        atomic_store_explicit(&job->first_bad, i, memory_order_relaxed);
        job->locked.status = status;
        job->locked.err = *err;
    }
    zr_pool_unlock();
}

/* Whether to start item i. */
static bool job_may_start(struct zr_job *job, uint64_t i)
{
    if (i > atomic_load_explicit(&job->first_bad, memory_order_relaxed))
        return false;
    if (zr_is_cancelled(job->cancel)) {
        atomic_store_explicit(&job->cancelled, true, memory_order_relaxed);
        return false;
    }
    return true;
}

/* Items that a thread takes at once if `left` have not been taken. */
static uint64_t job_grain(const struct zr_job *job, uint64_t left)
{
    const uint64_t share = left / ((uint64_t)job->max_workers * PARALLEL_LEFT_EACH);

    if (job->keeps_grain)
        return ZR_MIN(left, (uint64_t)job->grain);
    return ZR_MAX(ZR_MIN(share, (uint64_t)job->grain), (uint64_t)1);
}

/* Takes items [*begin, *end). Returns false if none is left. */
static bool job_take(struct zr_job *job, uint64_t *begin, uint64_t *end)
{
    uint64_t i = atomic_load_explicit(&job->next, memory_order_relaxed);

    do {
        if (i >= job->n)
            return false;
        *begin = i;
        *end = i + job_grain(job, job->n - i);
    } while (!atomic_compare_exchange_weak_explicit(
        &job->next, &i, *end, memory_order_relaxed, memory_order_relaxed));
    return true;
}

void zr_job_work(struct zr_job *job, uint32_t worker)
{
    uint64_t i = 0, end = 0; /* those that this thread took */
    zarr_error err;
    zarr_status st;

    for (;; i++) {
        if (i == end && (!zr_job_is_open(job) || !job_take(job, &i, &end)))
            return;
        if (!job_may_start(job, i))
            return;
        err.code = ZARR_OK;
        st = job->fn(job->arg, i, worker, job->want_text ? &err : NULL);
        if (zr_has_forked(job->generation))
            return; /* this is the child of an item that forked */
        if (st != ZARR_OK) {
            if (err.code == ZARR_OK) /* the item gave no text */
                zr_fail(&err, st, "%s", zarr_status_text(st));
            job_fail(job, i, st, &err);
            return;
        }
    }
}

static zarr_status parallel_fail_cancelled(zarr_error *err, bool forked)
{
    return zr_fail(err, ZARR_ERR_CANCELLED,
                   forked ? "inherited through fork" : "cancelled");
}

static zarr_status parallel_inline(uint64_t n, const zarr_cancel *cancel, zr_item_fn fn,
                                   void *arg, zarr_error *err)
{
    const uint64_t generation = zr_fork_generation();

    for (uint64_t i = 0; i < n; i++) {
        zarr_status st;

        if (zr_is_cancelled(cancel))
            return parallel_fail_cancelled(err, false);
        st = fn(arg, i, 0, err);
        if (zr_has_forked(generation))
            return parallel_fail_cancelled(err, true);
        if (st != ZARR_OK) {
            if (err)
                err->item = i;
            return st;
        }
    }
    return ZARR_OK;
}

static zarr_status parallel_result(const struct zr_job *job, zarr_error *err)
{
    const uint64_t bad = atomic_load(&job->first_bad);

    if (bad < job->n) {
        if (err) {
            *err = job->locked.err;
            err->item = bad;
        }
        return job->locked.status;
    }
    if (atomic_load(&job->cancelled))
        return parallel_fail_cancelled(err, false);
    return ZARR_OK;
}

zarr_status zr_parallel_run(uint64_t n, const struct zr_parallel_options *opts,
                            zr_item_fn fn, void *arg, zarr_error *err)
{
    const struct zr_parallel_options defaults = {0}, *o = opts ? opts : &defaults;
    const uint32_t workers = zr_parallel_workers(n, o);
    uint64_t grain;

    if (n > INT64_MAX) /* so that the counter cannot wrap */
        return zr_internal(err);
    if (workers == 1)
        return parallel_inline(n, o->cancel, fn, arg, err);

    grain = o->grain ? o->grain : n / ((uint64_t)workers * PARALLEL_GRAINS_EACH);
    grain = ZR_MAX((uint64_t)1,
                   o->grain ? grain : ZR_MIN(grain, (uint64_t)PARALLEL_GRAIN_MAX));
    struct zr_job job = {.fn = fn,
                         .arg = arg,
                         .n = n,
                         .grain = (uint32_t)grain,
                         .keeps_grain = o->grain != 0,
                         .max_workers = workers,
                         .cancel = o->cancel,
                         .generation = zr_fork_generation(),
                         .want_text = err != NULL};
    job.locked.n_joined = 1;
    atomic_init(&job.next, 0);
    atomic_init(&job.first_bad, n);
    atomic_init(&job.cancelled, false);
    atomic_init(&job.n_inside, 0);

    zr_pool_open_job(&job);
    zr_job_work(&job, 0);
    if (zr_has_forked(job.generation))
        return parallel_fail_cancelled(err, true);
    zr_pool_close_job(&job);
    return parallel_result(&job, err);
}

zarr_status zr_parallel_for(uint64_t n, uint32_t max_threads, zr_item_fn fn, void *arg,
                            zarr_error *err)
{
    const struct zr_parallel_options opts = {.max_threads = max_threads};

    return zr_parallel_run(n, &opts, fn, arg, err);
}
