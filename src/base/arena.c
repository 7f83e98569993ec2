/*
 * base/arena.c - many small blocks that are freed together: the nodes of a parsed
 * document, the texts of a listing. An arena is a list of blocks. Pieces are cut from the
 * newest block, and each new block is twice as large, up to 1 MiB. A piece too large for
 * that gets a block of its own, placed after the newest, so that the room left in the
 * newest is not lost. A reset keeps the largest block for the next use.
 * Thread class: solo.
 */
#include "base/base.h"

#include <string.h>

enum {
    ARENA_FIRST_BYTES = 4096,
    ARENA_MAX_BYTES = 1 << 20,
    ARENA_ALIGN = 16
};

struct zr_arena_block {
    struct zr_arena_block *next;
    size_t bytes, used; /* size of the payload, which begins at the next multiple of 16 */
};

void zr_arena_init(struct zr_arena *a, const zarr_allocator *alloc)
{
    *a = (struct zr_arena){.next_bytes = ARENA_FIRST_BYTES, .alloc = alloc};
}

void zr_arena_deinit(struct zr_arena *a)
{
    struct zr_arena_block *b = a->head;

    while (b) {
        struct zr_arena_block *next = b->next;

        zr_free(a->alloc, b);
        b = next;
    }
    zr_arena_init(a, a->alloc);
}

void zr_arena_wipe(struct zr_arena *a)
{
    for (struct zr_arena_block *b = a->head; b; b = b->next)
        zr_wipe(b + 1, b->bytes + ARENA_ALIGN - 1);
}

void zr_arena_reset(struct zr_arena *a)
{
    struct zr_arena_block *b = a->head, *largest = NULL;

    while (b) {
        struct zr_arena_block *next = b->next;

        if (!largest || b->bytes > largest->bytes) {
            zr_free(a->alloc, largest);
            largest = b;
        } else {
            zr_free(a->alloc, b);
        }
        b = next;
    }
    if (largest) {
        largest->next = NULL;
        largest->used = 0;
    }
    a->head = largest;
    a->used_bytes = 0;
}

/* Adds a block with room for `bytes` (a multiple of 16). NULL: no memory. */
static struct zr_arena_block *arena_add(struct zr_arena *a, size_t bytes)
{
    const bool is_own = a->head && bytes > a->next_bytes / 4; /* placed after the head */
    struct zr_arena_block *b, **place = is_own ? &a->head->next : &a->head;
    size_t total;

    if (!is_own)
        bytes = ZR_MAX(a->next_bytes, bytes);
    if (!zr_add(bytes, sizeof *b + ARENA_ALIGN - 1, &total))
        return NULL;
    b = zr_malloc(a->alloc, total);
    if (!b)
        return NULL;
    *b = (struct zr_arena_block){.next = *place, .bytes = bytes};
    *place = b;
    if (!is_own)
        a->next_bytes = ZR_MIN(a->next_bytes * 2, (size_t)ARENA_MAX_BYTES);
    return b;
}

void zr_arena_expect(struct zr_arena *a, size_t bytes)
{
    if (!a->head && bytes <= ARENA_MAX_BYTES)
        a->next_bytes = bytes + (size_t)2 * ARENA_ALIGN;
}

void *zr_arena_alloc(struct zr_arena *a, size_t bytes)
{
    struct zr_arena_block *b = a->head;
    size_t rounded;
    char *p;

    if (!zr_add(ZR_MAX(bytes, (size_t)1), ARENA_ALIGN - 1, &rounded))
        return NULL;
    rounded -= rounded % ARENA_ALIGN;
    if (!b || b->bytes - b->used < rounded)
        b = arena_add(a, rounded);
    if (!b)
        return NULL;
    p = (char *)(b + 1);
    p += (ARENA_ALIGN - (uintptr_t)p % ARENA_ALIGN) % ARENA_ALIGN + b->used;
    b->used += rounded;
    a->used_bytes += rounded;
    return p;
}

char *zr_arena_strndup(struct zr_arena *a, const char *s, size_t n)
{
    char *copy = n < SIZE_MAX ? zr_arena_alloc(a, n + 1) : NULL;

    if (copy) {
        if (n)
            memcpy(copy, s, n);
        copy[n] = '\0';
    }
    return copy;
}
