/*
 * base/memory.h - a part of the door: allocation, and arenas. Only this room calls
 * malloc().
 */
#ifndef ZR_BASE_MEMORY_H
#define ZR_BASE_MEMORY_H

#include <stddef.h>

#include <zarrc/context.h>
#include <zarrc/error.h>

/* ---- allocation ------------------------------------------------------ */

/* If the allocator is NULL, malloc is used. Sizes of 0 give a valid pointer. The caller
 * checks for NULL. */
void *zr_malloc(const zarr_allocator *a, size_t bytes);
void *zr_calloc(const zarr_allocator *a, size_t n, size_t bytes); /* product checked */
void *zr_realloc(const zarr_allocator *a, void *p, size_t bytes);
void zr_free(const zarr_allocator *a, void *p);
/* The allocator, or one that uses malloc: for code that may not be the library's. */
const zarr_allocator *zr_allocator_or_plain(const zarr_allocator *a);
char *zr_strdup(const zarr_allocator *a, const char *s);
char *zr_strndup(const zarr_allocator *a, const char *s, size_t n);
/* Grows *p to hold at least `need` items (amortised doubling, product checked). */
zarr_status zr_grow(const zarr_allocator *a, void *p_ptr, size_t *cap, size_t need,
                    size_t item_bytes, zarr_error *err);
/* Allocates zeroed pages from the system; blocks of 4 MiB or more are aligned to 2 MiB
 * and use huge pages. Returns NULL if there is no memory. For pools and arenas.
 * zr_pages_free() takes the same `bytes`; NULL is allowed. */
void *zr_pages_alloc(size_t bytes);
void zr_pages_free(void *p, size_t bytes);
/* Asks for huge pages in the aligned part of a block that the library does not own (a
 * caller's fresh output). Does nothing below 4 MiB; never fails. */
void zr_pages_advise(void *p, size_t bytes);

/* ---- arena: many small blocks, freed at once -------------------------- */

struct zr_arena {
    struct zr_arena_block *head;
    size_t next_bytes, used_bytes; /* used: given out since init or reset */
    const zarr_allocator *alloc;
};
void zr_arena_init(struct zr_arena *a, const zarr_allocator *alloc);
void zr_arena_deinit(struct zr_arena *a);
void zr_arena_wipe(struct zr_arena *a);  /* before deinit: overwrites all that it has */
void zr_arena_reset(struct zr_arena *a); /* keeps the largest block */
void *zr_arena_alloc(struct zr_arena *a,
                     size_t bytes); /* 16-byte aligned; NULL: no memory */
char *zr_arena_strndup(struct zr_arena *a, const char *s, size_t n);
/* Makes the first block of an empty arena as large as two pieces that need so many bytes
 * in all. Does nothing for another arena. */
void zr_arena_expect(struct zr_arena *a, size_t bytes);

#endif
