/*
 * mem/fill.c - fills a strided box with the pattern of one element. It writes rows from a
 * small block that contains the pattern many times. A pattern of equal bytes, as most
 * fill values have, is a memset. The block stays in the first-level cache, so both run at
 * the speed of the stores.
 * Thread class: plain functions.
 */
#include "mem/kernel_int.h"
#include "mem/mem_int.h"

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

void zr_strided_fill(struct zr_strided *s, const void *pattern, uint32_t item_bytes)
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
