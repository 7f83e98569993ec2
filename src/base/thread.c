/*
 * base/thread.c - threads, locks and conditions: the only file that calls pthread_*. It
 * is thin on purpose, because a port to another system replaces it. Condition variables
 * wait on the monotonic clock, so a step of the wall clock neither ends nor prolongs a
 * wait. A mutex call can only fail because of a bug of ours, so results are not returned.
 * Threads started here block every signal except those that a fault in them raises: the
 * application's handlers run on the application's threads.
 * Thread class: shared.
 */
#include "base/base.h"

#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

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

    if (sched_getaffinity(0, sizeof set, &set.aligned) == 0) {
        const int count = CPU_COUNT_S(sizeof set, &set.aligned);

        if (count > 0)
            return (uint32_t)count;
    }
#endif
    n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (uint32_t)n : 1;
}
