/*
 * base/pages.c - whole pages from the system. Touching new memory in 4 KiB pages costs
 * more than decoding into it. So blocks of 4 MiB and more are aligned to 2 MiB, rounded
 * up to whole 2 MiB pages and marked for huge pages. The rounded size depends only on the
 * size, so zr_pages_free() can compute it again. Recent kernels align such mappings
 * themselves: the first try is a plain mapping, and only if it is not aligned a larger
 * one is made and trimmed. Kernels need not follow the advice: a kernel without huge
 * pages gives ordinary ones.
 * Thread class: plain functions.
 */
#include "base/base.h"

#include <sys/mman.h>
#include <unistd.h>

#define PAGES_HUGE_BYTES ((size_t)2 << 20)
#define PAGES_LARGE_BYTES                                                                \
    ((size_t)4 << 20) /* huge pages are worth it from this size on */

/* False when the rounded size does not fit. */
static bool pages_round(size_t bytes, size_t *rounded)
{
    const size_t unit =
        bytes >= PAGES_LARGE_BYTES ? PAGES_HUGE_BYTES : (size_t)sysconf(_SC_PAGESIZE);
    size_t sum;

    bytes += bytes == 0;
    if (!zr_add(bytes, unit - 1, &sum))
        return false;
    *rounded = sum / unit * unit;
    return true;
}

static void *pages_map(size_t bytes)
{
    void *p =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

/* Bytes from p up to the next 2 MiB border. */
static size_t pages_gap(const void *p)
{
    return (PAGES_HUGE_BYTES - (uintptr_t)p % PAGES_HUGE_BYTES) % PAGES_HUGE_BYTES;
}

static void *pages_map_aligned(size_t bytes)
{
    size_t with_slack, gap;
    char *p = pages_map(bytes);

    if (!p || pages_gap(p) == 0)
        return p;
    munmap(p, bytes);
    if (!zr_add(bytes, PAGES_HUGE_BYTES, &with_slack))
        return NULL;
    p = pages_map(with_slack);
    if (!p)
        return NULL;
    gap = pages_gap(p);
    if (gap)
        munmap(p, gap);
    if (PAGES_HUGE_BYTES - gap)
        munmap(p + gap + bytes, PAGES_HUGE_BYTES - gap);
    return p + gap;
}

void *zr_pages_alloc(size_t bytes)
{
    size_t rounded;
    void *p;

    if (!pages_round(bytes, &rounded))
        return NULL;
    if (rounded < PAGES_LARGE_BYTES)
        return pages_map(rounded);
    p = pages_map_aligned(rounded);
    if (p)
        zr_pages_advise(p, rounded);
    return p;
}

void zr_pages_free(void *p, size_t bytes)
{
    size_t rounded;

    if (p && pages_round(bytes, &rounded))
        munmap(p, rounded);
}

void zr_pages_advise(void *p, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    const size_t gap = p ? pages_gap(p) : 0;
    size_t interior;

    if (!p || bytes < gap)
        return;
    interior = (bytes - gap) / PAGES_HUGE_BYTES * PAGES_HUGE_BYTES;
    if (interior >= PAGES_LARGE_BYTES)
        (void)madvise((char *)p + gap, interior, MADV_HUGEPAGE);
#else
    ZR_UNUSED(p, bytes);
#endif
}
