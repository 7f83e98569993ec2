/*
 * unit/json/fail_alloc.h - an allocator whose n-th call fails, once or with all later
 * ones, and that counts the blocks in use. Run a scenario with n = 1, 2, ... until no
 * call fails.
 */
#ifndef ZR_TESTS_FAIL_ALLOC_H
#define ZR_TESTS_FAIL_ALLOC_H

#include <stdlib.h>

#include <zarrc/context.h>

struct fail_alloc {
    zarr_allocator alloc;
    size_t calls, fail_at, held; /* fail_at 0: no call fails */
    int for_ever, failed;
};

static inline int fail_alloc_now(struct fail_alloc *f)
{
    f->calls++;
    if (f->fail_at == 0 || (f->for_ever ? f->calls < f->fail_at : f->calls != f->fail_at))
        return 0;
    f->failed = 1;
    return 1;
}

static inline void *fail_alloc_alloc(void *user, size_t bytes)
{
    struct fail_alloc *f = user;
    void *p = fail_alloc_now(f) ? NULL : malloc(bytes ? bytes : 1);

    f->held += p != NULL;
    return p;
}

static inline void *fail_alloc_realloc(void *user, void *block, size_t bytes)
{
    struct fail_alloc *f = user;
    void *p = fail_alloc_now(f) ? NULL : realloc(block, bytes ? bytes : 1);

    f->held += p && !block;
    return p;
}

static inline void fail_alloc_free(void *user, void *block)
{
    struct fail_alloc *f = user;

    f->held -= block != NULL;
    free(block);
}

static inline void fail_alloc_init(struct fail_alloc *f, size_t fail_at, int for_ever)
{
    *f = (struct fail_alloc){.fail_at = fail_at, .for_ever = for_ever};
    f->alloc = (zarr_allocator){f, fail_alloc_alloc, fail_alloc_realloc, fail_alloc_free};
}

/* Runs scenario() with each n-th call failing, once and then with all later ones. It
 * must leak nothing and return NO_MEMORY. least: the least number of allocations that it
 * makes. */
static inline void fail_alloc_every(zarr_status (*scenario)(const zarr_allocator *),
                                    size_t least)
{
    for (int for_ever = 0; for_ever < 2; for_ever++)
        for (size_t n = 1;; n++) {
            struct fail_alloc f;
            zarr_status st;

            fail_alloc_init(&f, n, for_ever);
            st = scenario(&f.alloc);
            if (f.held != 0)
                fail_msg("allocation %zu failed: %zu blocks lost", n, f.held);
            if (!f.failed) {
                assert_int_equal(st, ZARR_OK);
                assert_true(n > least);
                break;
            }
            if (st != ZARR_ERR_NO_MEMORY)
                fail_msg("allocation %zu failed, status %d", n, st);
        }
}

#endif
