/*
 * mem/host.c - host memory as a backend like any other. Blocks of 4 MiB and more are
 * aligned to 2 MiB and ask for huge pages, because touching new 4 KiB pages costs more
 * than all decoding. They come directly from the system. If the application gave an
 * allocator, everything comes from it: such a block has room for the alignment, and the
 * allocator's own pointer just before its first byte. A block is freed with the same
 * zarr_memory, whose length tells where the block is from. Boxes are filled here, and
 * copied in strided_copy.c.
 * Thread class: as the allocator's.
 */
#include "mem/kernel_int.h"
#include "mem/mem_int.h"

#include <string.h>
#include <unistd.h>

/* ---- filling ------------------------------------------------------------------ */

/* The block has whole patterns and whole cache lines, so that pieces in a row stay
 * aligned. */
#define FILL_BLOCK_BYTES ((size_t)4096)
/* Longer patterns are copied one by one. */
#define FILL_PATTERN_BYTES ((size_t)1024)

struct fill_source {
    uint32_t item;   /* bytes of the pattern */
    size_t period;   /* length of whole patterns; of block[] */
    bool same_bytes; /* all bytes equal block[0] */
    bool nt;
    const uint8_t *pattern;
    _Alignas(64) uint8_t block[FILL_BLOCK_BYTES + FILL_PATTERN_BYTES];
};

static size_t fill_gcd(size_t a, size_t b)
{
    while (b) {
        const size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The longest multiple of the pattern that fits, if possible also a multiple of a cache
 * line. */
static size_t fill_period(uint32_t item)
{
    const size_t both = item / fill_gcd(item, 64) * 64;

    return both <= FILL_BLOCK_BYTES ? FILL_BLOCK_BYTES / both * both
                                    : FILL_BLOCK_BYTES / item * item;
}

/* Makes a block for rows of `run` bytes. */
static void fill_prepare(struct fill_source *f, size_t run)
{
    size_t need;

    f->same_bytes = memcmp(f->pattern, f->pattern + 1, f->item - 1) == 0;
    if (f->item > FILL_PATTERN_BYTES)
        return;
    f->period = fill_period(f->item);
    need =
        f->period + f->item;  /* one more, because a piece may begin inside the pattern */
    need = ZR_MIN(need, run); /* short rows need no more */
    if (f->same_bytes) {
        memset(f->block, f->pattern[0], need);
        return;
    }
    memcpy(f->block, f->pattern, f->item);
    for (size_t have = f->item; have < need; have *= 2)
        memcpy(f->block + have, f->block, ZR_MIN(have, need - have));
}

static void fill_run_long_pattern(const struct fill_source *f, uint8_t *dst, size_t run)
{
    for (size_t at = 0; at < run; at += f->item)
        memcpy(dst + at, f->pattern, f->item);
}

static void fill_run(const struct fill_source *f, uint8_t *dst, size_t run)
{
    size_t head, at;

    if (f->item > FILL_PATTERN_BYTES) {
        fill_run_long_pattern(f, dst, run);
        return;
    }
    if (!f->nt && f->same_bytes) {
        memset(dst, f->pattern[0], run);
        return;
    }
    if (run <= f->period) {
        memcpy(dst, f->block, run);
        return;
    }
    head = (64 - (uintptr_t)dst % 64) % 64;
    memcpy(dst, f->block, head);
    for (at = head; at < run; at += f->period) {
        const size_t piece = ZR_MIN(run - at, f->period);
        const uint8_t *from = f->block + head % f->item;

        if (f->nt)
            zr_kernels()->line_nt(dst + at, from, piece);
        else
            memcpy(dst + at, from, piece);
    }
}

/* Rows of one element: the pattern is the source of an ordinary strided copy. */
static void fill_items(struct zr_strided *s, const void *pattern)
{
    s->src = pattern;
    for (uint32_t k = 0; k < s->ndim; k++)
        s->ss[k] = 0;
    zr_strided_copy(s);
}

/* Calls fill_run for every row. */
static void fill_rows(const struct fill_source *f, const struct zr_strided *s)
{
    uint64_t at[ZARR_MAX_RANK];
    uint8_t *dst = s->dst;
    uint32_t k;

    for (k = 0; k < s->ndim; k++)
        at[k] = 0;
    for (;;) {
        fill_run(f, dst, s->run);
        for (k = 0; k < s->ndim; k++) {
            if (++at[k] < s->n[k]) {
                dst += s->ds[k];
                break;
            }
            at[k] = 0;
            dst -= (int64_t)(s->n[k] - 1) * s->ds[k];
        }
        if (k >= s->ndim)
            return;
    }
}

/* Writes rows from a small block that contains the pattern many times. A pattern of equal
 * bytes, as most fill values have, is a memset. The block stays in the first-level cache,
 * so both run at the speed of the stores. s was made with src NULL; this call changes it.
 */
static void strided_fill(struct zr_strided *s, const void *pattern, uint32_t item_bytes)
{
    struct fill_source f;

    if (s->run == item_bytes && item_bytes <= 64) {
        fill_items(s, pattern);
        return;
    }
    f.pattern = pattern;
    f.item = item_bytes;
    f.nt = s->nt && s->run >= 64;
    fill_prepare(&f, s->run);
    fill_rows(&f, s);
    if (f.nt)
        zr_kernels()->fence();
}

/* ---- the backend -------------------------------------------------------------- */

static bool host_from_pages(const zarr_allocator *alloc, uint64_t bytes)
{
    return !alloc && bytes >= ZR_HOST_LARGE_BYTES;
}

/* Allocates more, aligns, and stores the allocator's pointer just before the block. */
static void *host_alloc_aligned(const zarr_allocator *alloc, size_t bytes)
{
    const size_t align =
        (size_t)(bytes >= ZR_HOST_LARGE_BYTES ? ZR_HOST_HUGE_BYTES : ZR_HOST_ALIGN_BYTES);
    size_t total;
    uint8_t *raw, *block;

    if (!zr_add(bytes, align + sizeof raw, &total))
        return NULL;
    raw = zr_malloc(alloc, total);
    if (!raw)
        return NULL;
    block = raw + sizeof raw;
    block += (align - (uintptr_t)block % align) % align;
    memcpy(block - sizeof raw, &raw, sizeof raw);
    if (align == ZR_HOST_HUGE_BYTES)
        zr_pages_advise(block, bytes);
    return block;
}

static zarr_status host_alloc(void *self, int32_t device_id, uint64_t bytes,
                              zarr_memory *out, zarr_error *err)
{
    const zarr_allocator *alloc = self;
    size_t n;
    void *p = NULL;

    if (zr_fits(bytes, &n))
        p = host_from_pages(alloc, bytes) ? zr_pages_alloc(n)
                                          : host_alloc_aligned(alloc, n);
    if (!p)
        return zr_fail_memory(err, bytes);
    *out = zr_mem_of_host(p, bytes);
    out->device_id = device_id;
    return ZARR_OK;
}

static void host_free(void *self, zarr_memory *mem)
{
    const zarr_allocator *alloc = self;

    if (mem->handle) {
        if (host_from_pages(alloc, mem->bytes)) {
            zr_pages_free(mem->handle, (size_t)mem->bytes);
        } else {
            void *raw;

            memcpy(&raw, (uint8_t *)mem->handle - sizeof raw, sizeof raw);
            zr_free(alloc, raw);
        }
    }
    *mem = (zarr_memory){0};
}

static zarr_status host_copy(void *self, const zarr_memory *dst, const zarr_memory *src,
                             uint64_t bytes, void *stream, zarr_error *err)
{
    ZR_UNUSED(self, stream);
    if (bytes > dst->bytes || bytes > src->bytes)
        return zr_internal(err);
    zr_host_copy(zr_mem_at(dst), zr_mem_at(src), (size_t)bytes);
    return ZARR_OK;
}

static zarr_status host_copy_box(void *self, const zarr_box *box, void *stream,
                                 zarr_error *err)
{
    ZR_UNUSED(self, stream, err);
    zr_host_box_copy(box);
    return ZARR_OK;
}

static zarr_status host_fill_box(void *self, const zarr_box *box, const void *pattern,
                                 void *stream, zarr_error *err)
{
    ZR_UNUSED(self, stream, err);
    zr_host_box_fill(box, pattern);
    return ZARR_OK;
}

static zarr_status host_describe(void *self, int32_t device_id, zarr_device_facts *out,
                                 zarr_error *err)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    const long idle = sysconf(_SC_AVPHYS_PAGES);

    ZR_UNUSED(self, device_id, err);
    if (page <= 0)
        return ZARR_OK;
    if (pages > 0)
        out->total_bytes =
            ZR_MIN((uint64_t)pages * (uint64_t)page, zr_cgroup_bytes(NULL));
    if (idle > 0)
        out->free_bytes = ZR_MIN((uint64_t)idle * (uint64_t)page, out->total_bytes);
    return ZARR_OK;
}

void zr_host_vtable(zarr_memory_vtable *out)
{
    *out = (zarr_memory_vtable){
        .struct_size = sizeof *out,
        .flags = ZARR_MEMORY_HOST_READ | ZARR_MEMORY_HOST_WRITE,
        .name = "host",
        .device_type = ZARR_DEVICE_CPU,
        .alignment = (uint32_t)ZR_HOST_ALIGN_BYTES,
        .alloc = host_alloc,
        .free = host_free,
        .copy = host_copy,
        .copy_box = host_copy_box,
        .fill_box = host_fill_box,
        .describe = host_describe,
    };
}

/* ---- with pointers ------------------------------------------------------------ */

void zr_host_box_copy(const zarr_box *box)
{
    struct zr_strided s;

    if (zr_strided_init(&s, box, zr_mem_at(&box->dst.mem), zr_mem_at(&box->src.mem))) {
        s.nt = box->dst.mem.bytes >= ZR_NT_EXTENT_BYTES;
        zr_strided_copy(&s);
    }
}

void zr_host_box_fill(const zarr_box *box, const void *pattern)
{
    struct zr_strided s;

    if (zr_strided_init(&s, box, zr_mem_at(&box->dst.mem), NULL)) {
        s.nt = box->dst.mem.bytes >= ZR_NT_EXTENT_BYTES;
        strided_fill(&s, pattern, box->item_bytes);
    }
}

void zr_host_copy(void *dst, const void *src, size_t bytes)
{
    const struct zr_kernels *k = zr_kernels();

    if (bytes < ZR_NT_EXTENT_BYTES) {
        if (bytes)
            k->line(dst, src, bytes);
    } else {
        k->line_nt(dst, src, bytes);
        k->fence();
    }
}
