/*
 * base/alloc.c - memory through the context's allocator, or malloc if there is none. Only
 * this file and pages.c take memory from the system. Nothing here aborts: every caller
 * checks for NULL. Size 0 is rounded up to 1, so NULL always means "no memory". A size
 * above PTRDIFF_MAX is refused before it reaches an allocator, because no array may be
 * that large. zr_grow() is the only growing array of the library: the array is a plain
 * pointer of its own type, with count and capacity next to it.
 * Thread class: as the allocator's; malloc is shared.
 */
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

/* glibc keeps freed blocks of such sizes in lists of the thread. malloc() takes a block
 * from there at once, calloc() not in every version. */
enum {
    SMALL_BYTES = 512
};

void *zr_malloc(const zarr_allocator *a, size_t bytes)
{
    bytes += bytes == 0;
    if (bytes > PTRDIFF_MAX)
        return NULL;
    return a ? a->alloc(a->user, bytes) : malloc(bytes);
}

void *zr_calloc(const zarr_allocator *a, size_t n, size_t bytes)
{
    size_t total;
    void *p;

    if (!zr_mul(n, bytes, &total) || total > PTRDIFF_MAX)
        return NULL;
    total += total == 0;
    if (!a && total > SMALL_BYTES)
        return calloc(1, total); /* fresh pages are known to be zero */
    p = a ? a->alloc(a->user, total) : malloc(total);
    if (p)
        memset(p, 0, total);
    return p;
}

void *zr_realloc(const zarr_allocator *a, void *p, size_t bytes)
{
    bytes += bytes == 0;
    if (bytes > PTRDIFF_MAX)
        return NULL;
    return a ? a->realloc(a->user, p, bytes) : realloc(p, bytes);
}

void zr_free(const zarr_allocator *a, void *p)
{
    if (!p)
        return;
    if (a)
        a->free(a->user, p);
    else
        free(p);
}

char *zr_strndup(const zarr_allocator *a, const char *s, size_t n)
{
    const size_t len = strnlen(s, n);
    char *copy = zr_malloc(a, len + 1);

    if (copy) {
        memcpy(copy, s, len);
        copy[len] = '\0';
    }
    return copy;
}

static void *plain_alloc(void *user, size_t bytes)
{
    ZR_UNUSED(user);
    return zr_malloc(NULL, bytes);
}

static void *plain_realloc(void *user, void *block, size_t bytes)
{
    ZR_UNUSED(user);
    return zr_realloc(NULL, block, bytes);
}

static void plain_free(void *user, void *block)
{
    ZR_UNUSED(user);
    zr_free(NULL, block);
}

const zarr_allocator *zr_allocator_or_plain(const zarr_allocator *a)
{
    static const zarr_allocator plain = {
        .alloc = plain_alloc, .realloc = plain_realloc, .free = plain_free};

    return a ? a : &plain;
}

char *zr_strdup(const zarr_allocator *a, const char *s)
{
    return zr_strndup(a, s, strlen(s));
}

zarr_status zr_grow(const zarr_allocator *a, void *p_ptr, size_t *cap, size_t need,
                    size_t item_bytes, zarr_error *err)
{
    size_t new_cap, bytes;
    void *p;

    if (need <= *cap)
        return ZARR_OK;
    if (!zr_mul(*cap, 2, &new_cap) || new_cap < need)
        new_cap = need;
    new_cap = ZR_MAX(new_cap, (size_t)8);
    if (!zr_mul(new_cap, item_bytes, &bytes)) {
        new_cap = need;
        if (!zr_mul(new_cap, item_bytes, &bytes))
            return zr_fail_memory(err, UINT64_MAX);
    }

    memcpy(&p, p_ptr,
           sizeof p); /* the caller's T *, read without aliasing it as void * */
    p = zr_realloc(a, p, bytes);
    if (!p)
        return zr_fail_memory(err, bytes);
    memcpy(p_ptr, &p, sizeof p);
    *cap = new_cap;
    return ZARR_OK;
}
