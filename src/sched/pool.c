/*
 * sched/pool.c - the thread pool of the process. All its state is one static struct
 * behind one lock, which is never held while foreign code runs.
 *
 * Waking threads. A sleeping thread needs about 70 us to wake, so an idle one first spins
 * a little. A thread that brings work leaves a token for each thread that it wants. A
 * waiting thread, spinning or asleep, takes a token and looks for work. A sleeper is
 * signalled only if there are more tokens than spinners. One call wakes at most
 * POOL_CALL_MAX threads. Each thread that joins a loop calls more while items are left,
 * so a short loop wakes few.
 *
 * Number of threads. At most n_wanted threads work at once. A thread that blocks makes
 * room for another one, up to ZR_MAX_THREADS in all, so tasks may wait for each other.
 * Threads above n_wanted that stay idle end after a while.
 *
 * Fork. The fork holds the lock, so the child finds the state consistent, resets it and
 * starts with no threads. A thread of the pool that itself forked sees the new generation
 * when its task or loop returns, and ends.
 *
 * Exit. When the process exits, idle threads stop working for ever, but they do not end:
 * that would call destructors which other libraries gave the thread, such as a driver or
 * a profiler, and those libraries may have freed their own data by then. Busy threads get
 * a moment to stop; then the process ends while they run. When the library is unloaded
 * instead, which zr_pool_stay() rules out, its threads end and are joined.
 *
 * Thread class: shared.
 */
#include "sched/pool_int.h"

#include <string.h>

#define POOL_SPIN_NS UINT64_C(10000)
#define POOL_TAIL_SPIN_NS                                                                \
    UINT64_C(20000) /* for the caller, which waits for the last items of the others */
#define POOL_LINGER_NS UINT64_C(2000000000)
#define POOL_EXIT_NS   UINT64_C(200000000)

enum pool_thread_state {
    POOL_FREE = 0,
    POOL_STARTING, /* counted, but its handle is not set yet */
    POOL_RUNNING,
};

struct pool_thread {
    zr_thread thread;
    enum pool_thread_state state;
    bool ended;           /* will not use the pool again: may be joined once RUNNING, */
    bool parked;          /* unless it never returns */
    uint32_t block_depth; /* the thread's own */
};

struct pool_state {
    bool ready, closed;
    zr_cond idle, ended;
    struct zr_job *first_job, *last_job;
    struct zr_task *first_task, *last_task;
    uint64_t n_tasks;
    uint32_t n_wanted;
    uint32_t n_threads, n_active, n_blocked; /* active: working, not blocked */
    uint32_t n_waiting, n_sleeping;          /* waiting: idle, spinning or sleeping */
    uint64_t spin_ns;
    struct pool_thread threads[ZR_MAX_THREADS];
};

static struct {
    zr_mutex mutex;
    atomic_uint tokens; /* changed under the lock; spinners look without it */
    atomic_bool stays;  /* set once */
    struct pool_state locked;
} the_pool = {.mutex = ZR_MUTEX_INIT};

static _Thread_local struct pool_thread *pool_self; /* NULL: not a thread of the pool */

void zr_pool_lock(void)
{
    zr_mutex_lock(&the_pool.mutex);
}

void zr_pool_unlock(void)
{
    zr_mutex_unlock(&the_pool.mutex);
}

static void pool_ready_locked(void)
{
    struct pool_state *p = &the_pool.locked;

    if (p->ready)
        return;
    zr_cond_init(&p->idle);
    zr_cond_init(&p->ended);
    p->n_wanted = ZR_MIN(zr_cpu_count(), (uint32_t)ZR_MAX_THREADS);
    p->spin_ns = p->n_wanted > 1 ? POOL_SPIN_NS : 0;
    p->ready = true;
}

static void pool_in_child(void *unused)
{
    ZR_UNUSED(unused);
    memset(&the_pool.locked, 0, sizeof the_pool.locked);
    atomic_store(&the_pool.tokens, 0);
    pool_self = NULL;
}

static void pool_install(void)
{
    static struct zr_fork_hook hook = {.mutex = &the_pool.mutex, .child = pool_in_child};

    zr_fork_hook_add(&hook);
}

void zr_pool_setup(void)
{
    static zr_once once = ZR_ONCE_INIT;

    zr_call_once(&once, pool_install);
    zr_pool_lock();
    pool_ready_locked();
    zr_pool_unlock();
}

bool zr_pool_is_closed_locked(void)
{
    return the_pool.locked.closed;
}

static void want_threads_locked(uint32_t n_threads)
{
    struct pool_state *p = &the_pool.locked;

    p->n_wanted = ZR_MAX(p->n_wanted, ZR_MIN(n_threads, (uint32_t)ZR_MAX_THREADS));
}

uint32_t zr_pool_count_alive_locked(void)
{
    return the_pool.locked.n_threads - the_pool.locked.n_blocked;
}

/* ---- threads: calling, waiting, ending ------------------------------------ */

static bool pool_reserve_locked(struct zr_pool_starts *starts)
{
    struct pool_state *p = &the_pool.locked;
    uint32_t i = 0;

    if (starts->n == POOL_CALL_MAX || zr_pool_count_alive_locked() >= p->n_wanted)
        return false;
    while (i < ZR_MAX_THREADS && p->threads[i].state != POOL_FREE &&
           !(p->threads[i].state == POOL_RUNNING && p->threads[i].ended))
        i++;
    if (i == ZR_MAX_THREADS)
        return false;
    p->n_threads++;
    if (p->threads[i].state == POOL_FREE)
        p->threads[i].state = POOL_STARTING;
    else
        p->threads[i].ended = false; /* RUNNING: must be joined first, and only we can */
    starts->index[starts->n++] = i;
    return true;
}

void zr_pool_call_locked(uint32_t wanted, struct zr_pool_starts *starts)
{
    struct pool_state *p = &the_pool.locked;

    wanted = ZR_MIN(wanted, (uint32_t)POOL_CALL_MAX);
    for (; wanted > 0 && !p->closed; wanted--) {
        const uint32_t tokens = atomic_load(&the_pool.tokens);

        if (p->n_waiting > tokens) {
            atomic_store(&the_pool.tokens, tokens + 1);
            starts->n_sleepers += tokens + 1 > p->n_waiting - p->n_sleeping;
        } else if (!pool_reserve_locked(starts)) {
            return;
        }
    }
}

static void *pool_thread_main(void *arg);

bool zr_pool_start(const struct zr_pool_starts *starts)
{
    bool all = true;

    for (uint32_t i = 0; i < starts->n_sleepers; i++)
        zr_cond_signal(&the_pool.locked.idle);
    for (uint32_t i = 0; i < starts->n; i++) {
        struct pool_thread *t = &the_pool.locked.threads[starts->index[i]];
        const bool was_running =
            t->state == POOL_RUNNING; /* reserved: no other thread uses it */
        bool started;

        if (was_running)
            zr_thread_join(&t->thread);
        started = zr_thread_start(&t->thread, pool_thread_main, t, NULL) == ZARR_OK;
        zr_pool_lock();
        t->state = started ? POOL_RUNNING : POOL_FREE;
        if (!started)
            the_pool.locked.n_threads--;
        zr_pool_unlock();
        all = all && started;
    }
    return all;
}

static void pool_spin(void)
{
    const uint64_t end = zr_now_ns() + the_pool.locked.spin_ns; /* constant since setup */

    while (atomic_load_explicit(&the_pool.tokens, memory_order_relaxed) == 0) {
        for (int i = 0; i < 16; i++)
            zr_cpu_relax();
        if (zr_now_ns() >= end)
            return;
    }
}

/* Waits until called; false: this thread must end. */
static bool pool_wait_locked(void)
{
    struct pool_state *p = &the_pool.locked;
    bool in_time = true;

    p->n_waiting++;
    if (atomic_load(&the_pool.tokens) == 0 && p->spin_ns && !p->closed) {
        zr_pool_unlock();
        pool_spin();
        zr_pool_lock();
    }
    while (in_time && atomic_load(&the_pool.tokens) == 0 && !p->closed) {
        const bool surplus = zr_pool_count_alive_locked() > p->n_wanted;

        p->n_sleeping++;
        in_time = zr_cond_wait_until(&p->idle, &the_pool.mutex,
                                     surplus ? zr_now_ns() + POOL_LINGER_NS : UINT64_MAX);
        p->n_sleeping--;
    }
    p->n_waiting--;
    if (atomic_load(&the_pool.tokens) > 0) {
        atomic_fetch_sub(&the_pool.tokens, 1);
        return true;
    }
    return !p->closed && zr_pool_count_alive_locked() <= p->n_wanted;
}

/* ---- work ------------------------------------------------------------------- */

void zr_pool_put_task_locked(struct zr_task *t)
{
    struct pool_state *p = &the_pool.locked;

    t->prev = p->last_task;
    t->next = NULL;
    t->is_queued = true;
    if (p->last_task)
        p->last_task->next = t;
    else
        p->first_task = t;
    p->last_task = t;
    p->n_tasks++;
}

bool zr_pool_drop_task_locked(struct zr_task *t)
{
    struct pool_state *p = &the_pool.locked;

    if (!t->is_queued)
        return false;
    if (t->prev)
        t->prev->next = t->next;
    else
        p->first_task = t->next;
    if (t->next)
        t->next->prev = t->prev;
    else
        p->last_task = t->prev;
    t->is_queued = false;
    p->n_tasks--;
    return true;
}

static struct zr_task *pool_pop_task_locked(void)
{
    struct zr_task *t = the_pool.locked.first_task;

    if (t)
        (void)zr_pool_drop_task_locked(t);
    return t;
}

/* Finds a loop that one more thread may join. */
static struct zr_job *pool_find_job_locked(void)
{
    struct zr_job *j = the_pool.locked.first_job;

    while (j && (j->locked.n_joined >= j->max_workers || !zr_job_is_open(j)))
        j = j->locked.next;
    return j;
}

static void pool_leave_job_locked(struct zr_job *job)
{
    if (atomic_fetch_sub(&job->n_inside, 1) == 1 && job->locked.waiting)
        zr_cond_signal(&job->locked.done);
}

/* Calls more threads; the caller of a loop and each thread that joined it do this. */
static void pool_call_for_job_locked(const struct zr_job *job,
                                     struct zr_pool_starts *starts)
{
    if (zr_job_is_open(job))
        zr_pool_call_locked(job->max_workers - job->locked.n_joined, starts);
}

/* Both functions unlock, work and lock again. False: this is now a forked child, and the
 * lock is not held. */
static bool pool_run_task(const struct zr_task *t, uint64_t generation)
{
    zr_pool_unlock();
    t->fn(t->arg);
    if (zr_has_forked(generation))
        return false;
    zr_pool_lock();
    return true;
}

static bool pool_run_job(struct zr_job *job, uint64_t generation)
{
    const uint32_t worker = job->locked.n_joined++;
    struct zr_pool_starts starts = {0};

    atomic_fetch_add(&job->n_inside, 1);
    pool_call_for_job_locked(job, &starts);
    zr_pool_unlock();
    zr_pool_start(&starts);
    zr_job_work(job, worker);
    if (zr_has_forked(generation))
        return false;
    zr_pool_lock();
    pool_leave_job_locked(job);
    return true;
}

/* Does one task or loop, if there is one and this thread may; sets *worked. False:
 * forked. */
static bool pool_work_once(uint64_t generation, bool *worked)
{
    struct pool_state *p = &the_pool.locked;
    struct zr_task *t = NULL;
    struct zr_job *job = NULL;
    bool here = true;

    *worked = false;
    if (p->n_active >= p->n_wanted)
        return true;
    t = pool_pop_task_locked();
    if (!t)
        job = pool_find_job_locked();
    if (!t && !job)
        return true;
    *worked = true;
    p->n_active++;
    here = t ? pool_run_task(t, generation) : pool_run_job(job, generation);
    if (here)
        p->n_active--;
    return here;
}

static void *pool_thread_main(void *arg)
{
    struct pool_thread *self = arg;
    uint64_t generation;
    bool worked, stay = true;

    pool_self = self;
    zr_pool_lock();
    generation = zr_fork_generation();
    self->block_depth = 0;
    while (stay && !the_pool.locked.closed) {
        if (!pool_work_once(generation, &worked))
            return NULL; /* this is the only thread of a forked child: none of this state
                            is valid */
        if (!worked)
            stay = pool_wait_locked();
    }
    self->parked = the_pool.locked.closed && atomic_load(&the_pool.stays);
    stay = self->parked;
    self->ended = true;
    the_pool.locked.n_threads--;
    zr_cond_signal(&the_pool.locked.ended);
    zr_pool_unlock();
    if (stay)
        zr_thread_park();
    return NULL;
}

/* ---- loops: see parallel.c ---------------------------------------------------- */

void zr_pool_open_job(struct zr_job *job)
{
    struct pool_state *p = &the_pool.locked;
    struct zr_pool_starts starts = {0};

    zr_pool_setup();
    zr_pool_lock();
    want_threads_locked(job->max_workers);
    job->locked.prev = p->last_job;
    if (p->last_job)
        p->last_job->locked.next = job;
    else
        p->first_job = job;
    p->last_job = job;
    pool_call_for_job_locked(job, &starts);
    zr_pool_unlock();
    zr_pool_start(&starts); /* without threads the caller does it all */
}

static void pool_unlink_job_locked(struct zr_job *job)
{
    struct pool_state *p = &the_pool.locked;

    if (job->locked.prev)
        job->locked.prev->locked.next = job->locked.next;
    else
        p->first_job = job->locked.next;
    if (job->locked.next)
        job->locked.next->locked.prev = job->locked.prev;
    else
        p->last_job = job->locked.prev;
}

static void pool_spin_for_job(const struct zr_job *job)
{
    const uint64_t end = zr_now_ns() + POOL_TAIL_SPIN_NS;

    while (atomic_load_explicit(&job->n_inside, memory_order_relaxed) &&
           zr_now_ns() < end)
        for (int i = 0; i < 16; i++)
            zr_cpu_relax();
}

void zr_pool_close_job(struct zr_job *job)
{
    bool alone;

    zr_pool_lock();
    pool_unlink_job_locked(job);
    alone = atomic_load(&job->n_inside) == 0;
    zr_pool_unlock();
    if (alone)
        return;

    pool_spin_for_job(job);
    zr_pool_lock(); /* also after a spin: the thread that left last still held the lock */
    alone = atomic_load(&job->n_inside) == 0;
    zr_pool_unlock();
    if (alone)
        return;

    zr_block_begin();
    zr_pool_lock();
    zr_cond_init(&job->locked.done);
    job->locked.waiting = true;
    while (atomic_load(&job->n_inside))
        zr_cond_wait(&job->locked.done, &the_pool.mutex);
    zr_pool_unlock();
    zr_cond_deinit(&job->locked.done);
    zr_block_end();
}

/* ---- blocking, counting, exit ---------------------------------------------------- */

void zr_block_begin(void)
{
    struct pool_state *p = &the_pool.locked;
    struct zr_pool_starts starts = {0};

    if (!pool_self || pool_self->block_depth++ > 0)
        return;
    zr_pool_lock();
    p->n_active--;
    p->n_blocked++;
    if (p->first_task || pool_find_job_locked())
        zr_pool_call_locked(1, &starts);
    zr_pool_unlock();
    zr_pool_start(&starts);
}

void zr_block_end(void)
{
    if (!pool_self || --pool_self->block_depth > 0)
        return;
    zr_pool_lock();
    the_pool.locked.n_blocked--;
    the_pool.locked.n_active++;
    zr_pool_unlock();
}

void zr_pool_want(uint32_t n_threads)
{
    zr_pool_setup();
    zr_pool_lock();
    want_threads_locked(n_threads);
    zr_pool_unlock();
}

void zr_pool_stay(void)
{
    atomic_store(&the_pool.stays, true);
}

bool zr_pool_stays(void)
{
    return atomic_load(&the_pool.stays);
}

void zr_pool_stats_get(struct zr_pool_stats *out)
{
    const struct pool_state *p = &the_pool.locked;

    zr_pool_setup();
    zr_pool_lock();
    *out = (struct zr_pool_stats){.n_threads = p->n_threads,
                                  .n_idle = p->n_waiting,
                                  .n_blocked = p->n_blocked,
                                  .n_wanted = p->n_wanted,
                                  .n_tasks = p->n_tasks};
    zr_pool_unlock();
}

__attribute__((destructor)) static void pool_unload(void)
{
    struct pool_state *p = &the_pool.locked;
    const uint32_t own = pool_self != NULL; /* a task called exit() */
    const uint64_t end = zr_now_ns() + POOL_EXIT_NS;
    bool in_time = true;

    zr_pool_lock();
    p->closed = true;
    if (p->ready)
        zr_cond_broadcast(&p->idle);
    while (in_time && p->n_threads > own)
        in_time = zr_cond_wait_until(&p->ended, &the_pool.mutex, end);
    for (uint32_t i = 0; i < ZR_MAX_THREADS; i++) {
        if (p->threads[i].state != POOL_RUNNING || !p->threads[i].ended ||
            p->threads[i].parked)
            continue;
        p->threads[i].state = POOL_FREE;
        zr_pool_unlock(); /* it may still be leaving the lock */
        zr_thread_join(&p->threads[i].thread);
        zr_pool_lock();
    }
    zr_pool_unlock();
}
