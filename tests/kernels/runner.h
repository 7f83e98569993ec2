/*
 * tests/kernels/runner.h - runs a kernel on a target: as its twin in host C, as a
 * team in host C, by OpenCL, or by CUDA. Also random bytes, and blocks of exactly the
 * right size.
 */
#ifndef TESTS_KERNELS_RUNNER_H
#define TESTS_KERNELS_RUNNER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* ---- targets -------------------- */

struct opencl;
struct cuda;
struct target {
    const char *name;
    uint32_t lanes; /* work items of a stream */
    int team;       /* kernels of teams as fibers, and of other kernels the twins */
    struct opencl *opencl;
    struct cuda *cuda; /* all of them 0: the twins */
};
/* The twins; k_decode()'s team, where there are fibers; then, where there is a device,
 * OpenCL with one lane and with LANES, and CUDA. The program fails without the target
 * that KERNELS_NEED=opencl or =cuda names. KERNELS_ONLY names the one target that is
 * tested, and KERNELS_TEST the tests, with * and ?. */
enum {
    LANES = 32, /* also of CUDA: a warp */
    TARGETS_MOST = 5
};
/* Whether a target is compared with the twins. */
static inline int on_device(const struct target *t)
{
    return t->team || t->opencl || t->cuda;
}
size_t targets_open(struct target *targets);
void targets_close(struct target *targets, size_t n);

/* An argument: bytes that the kernel sees as a buffer, or a number. */
struct argument {
    void *bytes; /* NULL: a number */
    uint64_t n;  /* of bytes, or the number */
    int is_u32;
};
#define BUFFER(p, n)  ((struct argument){(void *)(uintptr_t)(p), (n), 0})
#define NUMBER(n)     ((struct argument){NULL, (n), 0})
#define NUMBER_U32(n) ((struct argument){NULL, (n), 1})
enum {
    ARGUMENTS_MOST = 8
};
/* Runs `items` work items, or with `streamed` as many streams. Buffers come back with
 * what the kernel wrote. A kernel of this name must be in the table of twins.c. */
void launch(const struct target *t, const char *kernel, uint64_t items, int streamed,
            const struct argument arguments[ARGUMENTS_MOST]);
#define LAUNCH(t, kernel, items, ...)                                                    \
    launch(t, kernel, items, 0, (const struct argument[ARGUMENTS_MOST]){__VA_ARGS__})
#define LAUNCH_STREAMS(t, kernel, streams, ...)                                          \
    launch(t, kernel, streams, 1, (const struct argument[ARGUMENTS_MOST]){__VA_ARGS__})

/* The first argument that is the same buffer as argument i. */
static inline int first_argument(const struct argument *arguments, int i)
{
    int k = 0;

    while (arguments[k].bytes != arguments[i].bytes)
        k++;
    return k;
}

/* team.c; 0: no fibers, or not a kernel with a team */
int team_open(void);
void team_close(void);
int team_launch(const char *kernel, uint64_t streams,
                const struct argument arguments[ARGUMENTS_MOST]);
/* opencl.c; NULL: no device, or a build without OpenCL */
struct opencl *opencl_open(uint32_t lanes);
void opencl_close(struct opencl *o);
void opencl_launch(struct opencl *o, const char *kernel, uint64_t items, uint32_t group,
                   const struct argument arguments[ARGUMENTS_MOST]);
/* cuda.c; NULL: no device */
struct cuda *cuda_open(void);
void cuda_close(struct cuda *c);
void cuda_launch(struct cuda *c, const char *kernel, uint64_t items, uint32_t group,
                 const struct argument arguments[ARGUMENTS_MOST]);

/* The targets of a program; cmocka's state of each test is one of them. */
int run_on_targets(const char *name, const struct CMUnitTest *tests, size_t n);

/* ---- bytes -------------------- */

static inline uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed * UINT64_C(0x2545F4914F6CDD1D);
}
static inline uint64_t below(uint64_t *seed, uint64_t end)
{
    return end ? (next_random(seed) >> 20) % end : 0;
}
/* How many cases to draw: n, or few in a slow checker (ZARR_TEST_FEW=1). */
static inline int draws(int n)
{
    const int few = n / 50 > 1 ? n / 50 : 1;

    return getenv("ZARR_TEST_FEW") ? few : n;
}
/* Of a target: fibers are slow. */
static inline int draws_on(const struct target *t, int n)
{
    return t->team ? draws(n > 8 ? n / 8 : 1) : draws(n);
}
/* A block of n bytes and not more, for the address sanitizer; n may be 0. */
static inline void *block(size_t n)
{
    void *p = malloc(n ? n : 1);

    assert_non_null(p);
    return p;
}
/* Bytes that compress: small numbers of `item` bytes with runs and copies among them. */
void fill_numbers(uint8_t *p, size_t n, size_t item, uint64_t *seed);
void fill_random(uint8_t *p, size_t n, uint64_t *seed);

#endif
