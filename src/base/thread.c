/*
 * base/thread.c - threads, locks, conditions, cancellation, the time, and random numbers.
 * It is the only file that calls pthread_*, and thin on purpose, because a port to
 * another system replaces it.
 * - Condition variables wait on the monotonic clock, so a step of the wall clock neither
 *   ends nor prolongs a wait. The wall clock is for time stamps that people read.
 * - A mutex call can only fail because of a bug of ours, so results are not returned.
 * - Threads started here block every signal except those that a fault in them raises: the
 *   application's handlers run on the application's threads.
 * - Setting a cancel object is one atomic store, so that a signal handler may do it;
 *   calls look at it between their steps.
 * - Random numbers are for names of temporary files and keys of hash tables, not for
 *   secrets.
 * Thread class: shared.
 */
#include "base/base.h"

#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#    include <sys/random.h>
#endif

#define THREAD_NS_PER_S UINT64_C(1000000000)

void zr_mutex_init(zr_mutex *m)
{
    pthread_mutex_init(m, NULL);
}

void zr_mutex_deinit(zr_mutex *m)
{
    pthread_mutex_destroy(m);
}

void zr_mutex_lock(zr_mutex *m)
{
    pthread_mutex_lock(m);
}

bool zr_mutex_try(zr_mutex *m)
{
    return pthread_mutex_trylock(m) == 0;
}

void zr_mutex_unlock(zr_mutex *m)
{
    pthread_mutex_unlock(m);
}

void zr_cond_init(zr_cond *c)
{
#ifdef __APPLE__
    pthread_cond_init(c, NULL);
#else
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(c, &attr);
    pthread_condattr_destroy(&attr);
#endif
}

void zr_cond_deinit(zr_cond *c)
{
    pthread_cond_destroy(c);
}

void zr_cond_wait(zr_cond *c, zr_mutex *m)
{
    pthread_cond_wait(c, m);
}

bool zr_cond_wait_until(zr_cond *c, zr_mutex *m, uint64_t deadline_ns)
{
    struct timespec at;

    if (deadline_ns == UINT64_MAX) {
        pthread_cond_wait(c, m);
        return true;
    }
#ifdef __APPLE__
    const uint64_t now = zr_now_ns();

    deadline_ns = deadline_ns > now ? deadline_ns - now : 0;
#endif
    deadline_ns = ZR_MIN(deadline_ns,
                         INT32_MAX * THREAD_NS_PER_S); /* a 32-bit time_t can hold it */
    at.tv_sec = (time_t)(deadline_ns / THREAD_NS_PER_S);
    at.tv_nsec = (long)(deadline_ns % THREAD_NS_PER_S);
#ifdef __APPLE__
    return pthread_cond_timedwait_relative_np(c, m, &at) == 0;
#else
    return pthread_cond_timedwait(c, m, &at) == 0;
#endif
}

void zr_cond_signal(zr_cond *c)
{
    pthread_cond_signal(c);
}

void zr_cond_broadcast(zr_cond *c)
{
    pthread_cond_broadcast(c);
}

void zr_call_once(zr_once *once, void (*fn)(void))
{
    pthread_once(once, fn);
}

zarr_status zr_thread_start(zr_thread *t, void *(*fn)(void *), void *arg, zarr_error *err)
{
    sigset_t all, old;
    int rc;

    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&t->id, NULL, fn, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0)
        return zr_fail_os(err, ZARR_ERR_NO_MEMORY, rc, "cannot start a thread");
    return ZARR_OK;
}

void zr_thread_join(zr_thread *t)
{
    pthread_join(t->id, NULL);
}

void zr_thread_park(void)
{
    for (;;)
        (void)pause();
}

zr_thread zr_thread_self(void)
{
    return (zr_thread){pthread_self()};
}

bool zr_thread_is_self(const zr_thread *t)
{
    return pthread_equal(t->id, pthread_self()) != 0;
}

uint32_t zr_cpu_count(void)
{
    long n;
#ifdef __linux__
    enum {
        MAX_BYTES = 8192
    }; /* 65536 CPUs: the kernel refuses a set smaller than its own */
    union {
        unsigned char bytes[MAX_BYTES];
        cpu_set_t aligned;
    } set;

    /* The system call tells how many bytes it wrote. glibc's function clears the rest,
     * so all of them would have to be counted. */
    const long size = syscall(SYS_sched_getaffinity, 0, sizeof set, &set);
    const int count = size > 0 ? CPU_COUNT_S((size_t)size, &set.aligned) : 0;

    if (count > 0)
        return (uint32_t)count;
#endif
    n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (uint32_t)n : 1;
}

/* ---- cancellation ---- */

zarr_status zarr_cancel_create(zarr_cancel **out, zarr_error *err)
{
    zarr_cancel *c = zr_calloc(NULL, 1, sizeof *c);

    *out = c;
    if (!c)
        return zr_fail_memory(err, sizeof *c);
    zr_cancel_init(c, NULL);
    return ZARR_OK;
}

void zr_cancel_init(zarr_cancel *c, const zarr_cancel *outer)
{
    atomic_init(&c->set, false);
    atomic_init(&c->refs, 1);
    c->outer = outer;
}

zarr_cancel *zr_cancel_ref(zarr_cancel *cancel)
{
    if (!cancel)
        return NULL;
    atomic_fetch_add(&cancel->refs, 1);
    return cancel;
}

void zarr_cancel_free(zarr_cancel *cancel)
{
    if (cancel && atomic_fetch_sub(&cancel->refs, 1) == 1)
        zr_free(NULL, cancel);
}

void zarr_cancel_set(zarr_cancel *cancel)
{
    if (cancel)
        atomic_store(&cancel->set, true);
}

void zarr_cancel_reset(zarr_cancel *cancel)
{
    if (cancel)
        atomic_store(&cancel->set, false);
}

bool zr_is_cancelled(const zarr_cancel *c)
{
    for (; c; c = c->outer)
        if (atomic_load_explicit(&c->set, memory_order_relaxed))
            return true;
    return false;
}

int zarr_cancel_is_set(const zarr_cancel *cancel)
{
    return zr_is_cancelled(cancel);
}

zarr_status zr_cancel_check(const zarr_cancel *cancel, zarr_error *err)
{
    if (!zr_is_cancelled(cancel))
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_CANCELLED, "the call was cancelled");
}

/* ---- the time, and random numbers ---- */

uint64_t zr_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t zr_thread_cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

int64_t zr_wall_seconds(void)
{
    return (int64_t)time(NULL);
}

/* The finaliser of SplitMix64: every input bit moves every output bit. */
static uint64_t clock_stir(uint64_t v)
{
    v += UINT64_C(0x9E3779B97F4A7C15);
    v = (v ^ v >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    v = (v ^ v >> 27) * UINT64_C(0x94D049BB133111EB);
    return v ^ v >> 31;
}

/* If the kernel has no number ready, one is mixed from clock, process, address and a
 * counter, so that two processes, or a parent and its forked child, still differ. */
uint64_t zr_random_u64(void)
{
    static atomic_uint_fast64_t counter;
    uint64_t v = 0;

#ifdef __linux__
    if (getrandom(&v, sizeof v, GRND_NONBLOCK) == (ssize_t)sizeof v)
        return v;
#endif
    v = clock_stir(zr_now_ns() ^ (uint64_t)getpid() << 40);
    v = clock_stir(v ^ (uint64_t)(uintptr_t)&v);
    return clock_stir(v + atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed));
}
