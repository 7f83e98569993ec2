/*
 * sanitizers.h - tests that are skipped, or try fewer cases, in programs built with a
 * sanitizer or run by an emulator (scripts/s390x sets ZARR_TEST_EMULATED).
 */
#ifndef ZR_TESTS_SANITIZERS_H
#define ZR_TESTS_SANITIZERS_H

#include <stdlib.h>

#ifdef __has_feature
#    if __has_feature(thread_sanitizer) && !defined(__SANITIZE_THREAD__)
#        define __SANITIZE_THREAD__ 1 /* the macro that gcc defines */
#    endif
#    if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#        define __SANITIZE_ADDRESS__ 1
#    endif
#endif

/* NULL, or the reason why a child of a process with threads cannot be used. The
 * allocator of gcc 12's libasan has locks and no fork hook: a lock that a thread held
 * stays locked in the child, and the next thread of the child hangs in it. */
#if defined(__SANITIZE_THREAD__)
#    define ZR_NO_THREADED_FORK "the thread sanitizer allows no threads in a child"
#elif defined(__SANITIZE_ADDRESS__)
#    define ZR_NO_THREADED_FORK                                                          \
        "the address sanitizer's allocator may stay locked in a child of a process "     \
        "with threads"
#else
#    define ZR_NO_THREADED_FORK ((const char *)0)
#endif

/* Some tests repeat a call and let the k-th allocation fail, for each k. The steps from
 * one k to the next: ZR_FAIL_STEP takes every k, ZR_FAIL_SAMPLES every small k and
 * samples of the rest. The thread sanitizer gets samples only, because the failing paths
 * are the business of plain builds and the address sanitizer. ZARR_TEST_FEW=1, which
 * `make test` sets, gives all builds samples. */
#if defined(__SANITIZE_THREAD__)
#    define ZR_FAIL_STEP(k)    (1 + (k) / 4)
#    define ZR_FAIL_SAMPLES(k) ZR_FAIL_STEP(k)
#elif defined(__SANITIZE_ADDRESS__)
#    define ZR_FAIL_STEP(k)    (getenv("ZARR_TEST_FEW") ? 1 + (k) / 4 : 1)
#    define ZR_FAIL_SAMPLES(k) (1 + (k) / 32)
#else
#    define ZR_FAIL_STEP(k)    (getenv("ZARR_TEST_FEW") ? 1 + (k) / 4 : 1)
#    define ZR_FAIL_SAMPLES(k) (1 + (k) / 64)
#endif

/* Some tests go through all combinations of chains, options and answers of a device. The
 * steps from one to the next: the thread sanitizer, which takes ten times as long, and
 * ZARR_TEST_FEW=1 try one of seven. No list of cases has a multiple of seven, so that
 * each of its members is tried. */
#if defined(__SANITIZE_THREAD__)
#    define ZR_CASE_STEP 7
#else
#    define ZR_CASE_STEP (getenv("ZARR_TEST_FEW") ? 7 : 1)
#endif

/* Skips a cmocka test that forks beside other threads. */
#define SKIP_WITHOUT_THREADED_FORK()                                                     \
    do {                                                                                 \
        if (ZR_NO_THREADED_FORK) {                                                       \
            print_message("skipped: %s\n", ZR_NO_THREADED_FORK);                         \
            skip();                                                                      \
        }                                                                                \
        if (getenv("ZARR_TEST_EMULATED")) {                                              \
            print_message("skipped: children of threads crash in qemu's user mode\n");   \
            skip();                                                                      \
        }                                                                                \
    } while (0)

#endif
