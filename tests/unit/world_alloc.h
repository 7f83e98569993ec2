/*
 * unit/world_alloc.h - the allocator of a `struct world`, which has been defined before:
 * it counts blocks in `n_blocks`. The allocation `fail_at`, counted from now, fails, with
 * `forever` all later ones, too; 0: none fails.
 */
#ifndef ZR_TESTS_WORLD_ALLOC_H
#define ZR_TESTS_WORLD_ALLOC_H

#include <stdbool.h>
#include <stdlib.h>

static bool world_refuses(struct world *w)
{
    const int_fast64_t at = atomic_load(&w->fail_at);

    if (at == 0)
        return false;
    if (at == 1 && w->forever)
        return true;
    return atomic_fetch_sub(&w->fail_at, 1) == 1;
}

static void *world_alloc(void *user, size_t bytes)
{
    struct world *w = user;
    void *p = world_refuses(w) ? NULL : malloc(bytes);

    if (p)
        atomic_fetch_add(&w->n_blocks, 1);
    return p;
}

static void *world_realloc(void *user, void *block, size_t bytes)
{
    struct world *w = user;
    void *p = world_refuses(w) ? NULL : realloc(block, bytes);

    if (p && !block)
        atomic_fetch_add(&w->n_blocks, 1);
    return p;
}

static void world_dealloc(void *user, void *block)
{
    struct world *w = user;

    if (block)
        atomic_fetch_sub(&w->n_blocks, 1);
    free(block);
}

#endif
