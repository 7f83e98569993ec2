/*
 * json/stack.c - the stack of a walk through a tree. The depth of a document has a limit
 * that the user can raise, so the stack grows on the heap.
 * Thread class: solo.
 */
#include "json_int.h"

#include <string.h>

void zr_json_stack_init(struct zr_json_stack *s, size_t width,
                        const zarr_allocator *alloc)
{
    s->alloc = alloc;
    s->width = width;
    s->depth = 0;
    s->cap = sizeof s->small / width;
    s->big = NULL;
}

void zr_json_stack_deinit(struct zr_json_stack *s)
{
    zr_free(s->alloc, s->big);
}

void *zr_json_stack_push(struct zr_json_stack *s)
{
    if (s->depth == s->cap) {
        size_t bytes, cap;
        void *big;

        if (!zr_mul(s->cap, 2, &cap) || !zr_mul(cap, s->width, &bytes))
            return NULL;
        big = zr_realloc(s->alloc, s->big, bytes);
        if (!big)
            return NULL;
        if (!s->big)
            memcpy(big, s->small, s->depth * s->width);
        s->big = big;
        s->cap = cap;
    }
    s->depth++;
    return zr_json_stack_top(s);
}
