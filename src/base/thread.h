/*
 * base/thread.h - a part of the door: threads, locks, cancellation, and what a fork does
 * to them. Only this room calls pthread_*().
 */
#ifndef ZR_BASE_THREAD_H
#define ZR_BASE_THREAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <zarrc/cancel.h>
#include <zarrc/error.h>

/* ---- threads ----------------------------------------------------------- */

typedef pthread_mutex_t zr_mutex;
typedef pthread_cond_t zr_cond; /* always on the monotonic clock: zr_cond_init() it */
#define ZR_MUTEX_INIT PTHREAD_MUTEX_INITIALIZER
void zr_mutex_init(zr_mutex *m);
void zr_mutex_deinit(zr_mutex *m);
void zr_mutex_lock(zr_mutex *m);
bool zr_mutex_try(zr_mutex *m); /* false: another thread holds it */
void zr_mutex_unlock(zr_mutex *m);
void zr_cond_init(zr_cond *c);
void zr_cond_deinit(zr_cond *c);
void zr_cond_wait(zr_cond *c, zr_mutex *m);
/* deadline_ns is a time of zr_now_ns(); UINT64_MAX: none. Returns false after the
 * deadline. */
bool zr_cond_wait_until(zr_cond *c, zr_mutex *m, uint64_t deadline_ns);
void zr_cond_signal(zr_cond *c);
void zr_cond_broadcast(zr_cond *c);
typedef struct zr_thread {
    pthread_t id;
} zr_thread;
/* Threads started here block signals: the library never handles those of the
 * application. */
zarr_status zr_thread_start(zr_thread *t, void *(*fn)(void *), void *arg,
                            zarr_error *err);
void zr_thread_join(zr_thread *t);
_Noreturn void zr_thread_park(void); /* sleeps until the process ends */
zr_thread zr_thread_self(void);
bool zr_thread_is_self(const zr_thread *t); /* t: of a thread that still runs */
typedef pthread_once_t zr_once;
#define ZR_ONCE_INIT PTHREAD_ONCE_INIT
void zr_call_once(zr_once *once, void (*fn)(void));
static inline void zr_cpu_relax(void) /* call it inside a short spin loop */
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/* ---- cancellation ------------------------------------------------------- */

/* The public object; a request has one of its own, whose `outer` is the caller's. */
struct zarr_cancel {
    atomic_bool set;
    atomic_uint refs;
    const struct zarr_cancel *outer; /* setting it sets this one, too; borrowed; NULL */
};
void zr_cancel_init(zarr_cancel *c, const zarr_cancel *outer);
/* Adds an owner, for a request that runs on its own. NULL: NULL. */
zarr_cancel *zr_cancel_ref(zarr_cancel *cancel);
/* Whether the object, or one outside of it, is set. NULL: no. */
bool zr_is_cancelled(const zarr_cancel *c);
/* CANCELLED if it is. */
zarr_status zr_cancel_check(const zarr_cancel *cancel, zarr_error *err);

/* ---- fork ---------------------------------------------------------------- */

/* The number of forks since the library was loaded: one more in a forked child than in
 * its parent. An object that stores the number can detect that it was inherited. */
uint64_t zr_fork_generation(void);
/* Whether this process was forked after zr_fork_generation() returned `generation`. */
bool zr_has_forked(uint64_t generation);
/* Keeps a long-lived object usable in a forked child. The fork holds `mutex`, so the
 * object is consistent in the child. There, before the mutex is released, child(arg)
 * resets what belonged to threads that only the parent has. (child may be NULL. It
 * initializes its conditions again and does not destroy them.) If two such locks are
 * nested, the outer one has the higher rank. The caller owns the memory. Add and remove
 * with no lock held. Adding twice is allowed. */
struct zr_fork_hook {
    zr_mutex *mutex;
    void (*child)(void *arg);
    void *arg;
    uint32_t rank;
    bool linked;
    struct zr_fork_hook *prev, *next;
};
void zr_fork_hook_add(struct zr_fork_hook *hook);
void zr_fork_hook_remove(struct zr_fork_hook *hook);

#endif
