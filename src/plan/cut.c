/*
 * plan/cut.c - cuts the items of a wave into segments: what one thread fetches with one
 * request and then decodes chunk by chunk. Items of one shard are sorted by offset and
 * joined while the holes between them and the whole range stay small. Whole objects get a
 * segment each. Missing items are put together.
 * Thread class: solo, part of a plan.
 */
#include "plan/plan_int.h"

#include <stdlib.h>
#include <string.h>

enum {
    MISSING_PER_SEGMENT = 64
};

static int by_offset(const void *a, const void *b)
{
    const struct zr_item *x = *(struct zr_item *const *)a,
                         *y = *(struct zr_item *const *)b;

    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static bool items_are_sorted(struct zr_item *const *item, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        if (item[i]->offset < item[i - 1]->offset)
            return false;
    return true;
}

/* Whether an uncompressed chunk is fetched in ranges rather than joined with others: what
 * is not wanted of it would be a hole. */
static bool is_wanted_in_part(const struct zr_plan_args *a, const struct zr_segment *from,
                              const struct zr_item *item)
{
    const struct zr_program *p = from->level->decode;
    const uint64_t all = p->decoded_bytes / p->item_bytes;

    return a->part_hole != 0 && p->raw && !item->target.many &&
           item->target.n_items * 2 <= all &&
           (all - item->target.n_items) * p->item_bytes > a->part_hole;
}

/* *gaps: bytes of holes that are left. */
static void cut_present(struct zr_wave *w, const struct zr_plan_args *a,
                        const struct zr_segment *from, uint32_t most, uint64_t *gaps)
{
    struct zr_item **item = from->item;
    uint32_t n = from->n_items, i = 0, k;

    if (!items_are_sorted(item, n))
        qsort(item, n, sizeof(struct zr_item *), by_offset);
    for (; i < n; i = k) {
        struct zr_segment *s = &w->segment[w->n_segments++];
        struct zr_range r = {item[i]->offset, item[i]->offset + item[i]->bytes};
        const bool apart = a->apart || is_wanted_in_part(a, from, item[i]);

        for (k = i + 1; k < n && k - i < most; k++)
            if (apart || is_wanted_in_part(a, from, item[k]) ||
                !zr_range_join(a, &r, item[k]->offset, item[k]->bytes, gaps))
                break;
        *s = *from;
        s->item = item + i;
        s->n_items = k - i;
        s->offset = r.start;
        s->bytes = r.end - r.start;
    }
}

static void cut_missing(struct zr_wave *w, const struct zr_segment *from)
{
    for (uint32_t i = 0; i < from->n_items; i += MISSING_PER_SEGMENT) {
        struct zr_segment *r = &w->segment[w->n_segments++];

        *r = *from;
        r->item = from->item + i;
        r->n_items = ZR_MIN((uint32_t)MISSING_PER_SEGMENT, from->n_items - i);
        r->bytes = ZR_ITEM_MISSING;
    }
}

/* Moves the missing items of a group after the others. Returns how many are present. */
static uint32_t missing_last(struct zr_item **item, uint32_t n)
{
    uint32_t present = 0;

    for (uint32_t i = 0; i < n; i++) {
        struct zr_item *it = item[i];

        if (it->bytes == ZR_ITEM_MISSING)
            continue;
        item[i] = item[present];
        item[present++] = it;
    }
    return present;
}

zarr_status zr_wave_cut(struct zr_wave *w, const struct zr_plan_args *a, zarr_error *err)
{
    struct zr_segment *group = w->segment; /* on entry: one group of items per source */
    uint32_t n_groups = w->n_segments;
    uint32_t workers = ZR_MAX(a->threads, 1u);
    uint64_t gaps = a->wave_gaps != 0 ? a->wave_gaps : UINT64_MAX;
    uint32_t most = a->plain ? 1 : ZR_MAX(w->n_items / (workers * 4), 1u);
    struct zr_segment *segment =
        zr_arena_alloc(&w->arena, ((size_t)w->n_items + 1) * sizeof *w->segment);

    if (!segment)
        return zr_fail_memory(err, w->n_items * sizeof *w->segment);
    w->segment = segment;
    w->n_segments = 0;
    for (uint32_t g = 0; g < n_groups; g++) {
        struct zr_segment cut = group[g];
        uint32_t present = 0;

        if (!cut.shard) { /* a whole object: one item */
            w->segment[w->n_segments++] = cut;
            continue;
        }
        present = missing_last(cut.item, cut.n_items);
        cut.n_items = present;
        cut_present(w, a, &cut, most, &gaps);
        cut.item = group[g].item + present;
        cut.n_items = group[g].n_items - present;
        cut_missing(w, &cut);
    }
    return ZARR_OK;
}
