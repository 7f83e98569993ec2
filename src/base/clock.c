/*
 * base/clock.c - the time, and random numbers. Durations and deadlines use the monotonic
 * clock, in nanoseconds since some moment. The wall clock is for time stamps that people
 * read. Random numbers come from the kernel. If the kernel has none ready, they are mixed
 * from clock, process, address and a counter, so that two processes, or a parent and its
 * forked child, still differ. They are for names of temporary files and keys of hash
 * tables, not for secrets.
 * Thread class: shared.
 */
#include "base/base.h"

#include <time.h>
#include <unistd.h>
#ifdef __linux__
#    include <sys/random.h>
#endif

uint64_t zr_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
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
