/*
 * unit/json/fail_alloc.h - an allocator whose n-th call fails, once or for
 * ever, and that counts what is still held. Used by the tests of the pure
 * rooms: run a scenario with n = 1, 2, ... until nothing failed.
 */
#ifndef ZR_TESTS_FAIL_ALLOC_H
#define ZR_TESTS_FAIL_ALLOC_H

#include <stdlib.h>

#include <zarrc/context.h>

struct fail_alloc {
    zarr_allocator alloc;
    size_t calls, fail_at, held; /* fail_at 0: never */
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

    f->held += p != NULL && block == NULL;
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

#endif
