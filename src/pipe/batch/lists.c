/*
 * pipe/batch/lists.c - the copies of a wave that goes to a device: one list for
 * all encoded chunks, and one for the boxes of all elements. Chunks that were fetched in
 * one range are copied as one. Thread class: one wave.
 */
#include "pipe/batch/batch_int.h"

enum {
    NEAR_BYTES = 4096 /* runs with a shorter hole between them are copied at once */
};

/* ---- runs ----------------------------------------------------------------------- */

/* Where the next chunk goes in a slab. */
struct places {
    const struct zr_batch_item *before;
    uint64_t first; /* offset of the first chunk of this run in its source */
    uint64_t at;    /* and in the slab */
    uint64_t end;   /* of all that has a place */
    bool aligned;
};

/* The offset of a chunk in the slab. It keeps its distance to neighbours in the same
 * block. */
static uint64_t place_next(struct places *p, const struct zr_batch_item *it)
{
    const struct zr_batch_item *b = p->before;
    uint64_t at;

    if (p->aligned || !b || b->cur.handle != it->cur.handle ||
        it->cur.offset < b->cur.offset + b->cur.bytes ||
        it->cur.offset - (b->cur.offset + b->cur.bytes) > NEAR_BYTES) {
        p->at =
            (p->end + ZR_CHUNK_ALIGNMENT - 1) / ZR_CHUNK_ALIGNMENT * ZR_CHUNK_ALIGNMENT;
        p->first = it->cur.offset;
    }
    p->before = it;
    at = p->at + (it->cur.offset - p->first);
    p->end = at + it->cur.bytes;
    return at;
}

/* Whether a chunk does not take part in the copy that leads to stage `next`. */
static bool copy_leaves(const struct zr_batch_item *it, uint32_t next)
{
    return it->again || zr_batch_skips(it, next);
}

/* Sets `next` of all items that are copied, in the caller's memory or in a new slab. */
static zarr_status copy_rooms(struct zr_batch *l, uint32_t i, int32_t device,
                              zarr_memory *slab, bool aligned, zarr_error *err)
{
    struct places p = {.aligned = aligned};
    uint64_t bytes;

    for (uint32_t k = 0; k < l->n; k++) {
        struct zr_batch_item *it = &l->item[k];

        if (i < l->p->n && zr_stays_on_host(l->io, l->p, i, &it->cur))
            zr_batch_skip(it, i + 1);
        if (copy_leaves(it, i + 1))
            continue;
        it->direct = i + 1 >= l->p->n && zr_batch_is_direct(l, it, &l->end) &&
                     it->next.bytes == it->cur.bytes;
        if (!it->direct)
            (void)place_next(&p, it);
    }
    bytes = ZR_MAX(p.end, 1u);
    ZR_CHECK(zr_batch_slab(l, device, &bytes, 1, slab, err));
    p = (struct places){.aligned = aligned};
    for (uint32_t k = 0; k < l->n; k++) {
        struct zr_batch_item *it = &l->item[k];

        if (!copy_leaves(it, i + 1) && !it->direct &&
            !zr_mem_slice(slab, place_next(&p, it), it->cur.bytes, &it->next))
            return zr_internal(err);
    }
    return ZARR_OK;
}

/* Whether a run can be longer by the chunk after it: both sides go on at the same
 * distance, and nothing of the caller's is between. */
static bool can_extend_run(const zarr_memory *dst, const zarr_memory *src,
                           const struct zr_batch_item *it, bool direct)
{
    const uint64_t end = src->offset + src->bytes;

    return dst->handle == it->next.handle && src->handle == it->cur.handle &&
           it->cur.offset >= end && it->cur.offset - end <= (direct ? 0 : NEAR_BYTES) &&
           it->next.offset - dst->offset == it->cur.offset - src->offset;
}

static uint32_t make_runs(const struct zr_batch *l, uint32_t i, zarr_memory *dst,
                          zarr_memory *src)
{
    bool direct = false;
    uint32_t n = 0;

    for (uint32_t k = 0; k < l->n; k++) {
        const struct zr_batch_item *it = &l->item[k];

        if (it->cur.bytes == 0 || copy_leaves(it, i + 1))
            continue;
        if (n > 0 && can_extend_run(&dst[n - 1], &src[n - 1], it, direct || it->direct)) {
            src[n - 1].bytes = it->cur.offset + it->cur.bytes - src[n - 1].offset;
            dst[n - 1].bytes = src[n - 1].bytes;
        } else {
            src[n] = it->cur;
            dst[n] = it->next;
            dst[n++].bytes = it->cur.bytes;
        }
        direct = it->direct;
    }
    return n;
}

/* Which copy of a program comes at stage i; UINT32_MAX: none. */
static uint32_t copy_at(const struct zr_batch *l, uint32_t i)
{
    if (i == ZR_BATCH_END)
        return l->n > 0 && l->end.decoded_device != l->p->decoded_device ? l->p->n
                                                                         : UINT32_MAX;
    return i < l->p->n && l->p->stage[i].kind == ZR_STAGE_COPY ? i : UINT32_MAX;
}

/* Adds the runs of a program's chunks to a list, and returns their number in *n. */
static zarr_status add_runs(struct zr_batch *l, uint32_t i, zarr_memory *dst,
                            zarr_memory *src, uint32_t *n, zarr_error *err)
{
    const int32_t device = i < l->p->n ? l->p->stage[i].out_device : l->flow->device;
    bool aligned = false;

    /* the next codec looks at bytes that a copy brings from the device */
    if (i > 0 && i < l->p->n && l->p->stage[i - 1].kind == ZR_STAGE_COPY)
        ZR_CHECK(zr_batch_wait(l, err));
    aligned = i < l->p->n && zr_batch_next_is_aligned(l, i);
    ZR_CHECK(copy_rooms(l, i, device, &l->slab[i % 2], aligned, err));
    *n += make_runs(l, i, dst + *n, src + *n);
    return ZARR_OK;
}

/* Notes that the chunks are where the queued copies bring them. */
static void note_copied(struct zr_batch *l, uint32_t i)
{
    struct zr_worker *worker = l->flow->w.worker;

    zr_batch_note_queued(l);
    for (uint32_t k = 0; k < l->n; k++) {
        struct zr_batch_item *it = &l->item[k];

        if (copy_leaves(it, i + 1))
            continue;
        worker->stats.copies_decoded_host +=
            i + 1 >= l->p->n && zr_io_is_host(l->io, it->cur.device_type) !=
                                    zr_io_is_host(l->io, it->next.device_type);
        it->next.bytes = it->cur.bytes;
        it->cur = it->next;
    }
}

zarr_status zr_batch_copy(struct zr_batch *l, uint32_t n, uint32_t i, zarr_error *err)
{
    struct zr_flow *flow = l->flow;
    zarr_memory *dst = NULL, *src = NULL;
    uint32_t most = 0, runs = 0;
    zarr_status st = ZARR_OK;

    for (uint32_t k = 0; k < n; k++)
        most += copy_at(&l[k], i) != UINT32_MAX ? l[k].n : 0;
    if (most == 0)
        return ZARR_OK;
    dst = zr_arena_alloc(l->arena, most * sizeof *dst);
    src = zr_arena_alloc(l->arena, most * sizeof *src);
    if (!dst || !src)
        ZR_FAIL_MEMORY(err, most * sizeof *dst);
    ZR_TRY(zr_flow_worker(flow, err));
    for (uint32_t k = 0; k < n; k++)
        if (copy_at(&l[k], i) != UINT32_MAX)
            ZR_TRY(add_runs(&l[k], copy_at(&l[k], i), dst, src, &runs, err));
    ZR_TRY(zr_mem_copy_list(l->io->engine->memory, dst, src, runs, &flow->stream,
                            &flow->w.worker->copies, err));
    for (uint32_t k = 0; k < n; k++)
        if (copy_at(&l[k], i) != UINT32_MAX)
            note_copied(&l[k], copy_at(&l[k], i));
out:
    if (st != ZARR_OK && !flow->failed && err)
        err->item = UINT64_MAX;
    return zr_batch_name(l, st, err);
}

/* ---- boxes ---------------------------------------------------------------------- */

zarr_status zr_batch_scatter(struct zr_batch *l, uint32_t n, zarr_error *err)
{
    struct zr_box_list list = {0};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_flow_worker(l->flow, err));
    ZR_TRY(zr_box_list_open(&list, l->flow, false, err));
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < l[i].n; k++) {
            const struct zr_batch_item *it = &l[i].item[k];

            if (!it->direct && !it->again)
                ZR_TRY(
                    zr_box_list_target(&list, l[i].p, &it->item->target, &it->cur, err));
        }
    ZR_TRY(zr_box_list_send(&list, err));
out:
    if (st != ZARR_OK && err)
        err->item = UINT64_MAX;
    zr_box_list_close(&list);
    return st;
}

static zarr_status fill_segment(struct zr_batch *l, const struct zr_segment *segment,
                                struct zr_box_list *list, zarr_error *err)
{
    for (uint32_t k = 0; k < segment->n_items; k++) {
        const struct zr_item *item = segment->item[k];

        const zarr_status st = zr_item_count_missing(&l->flow->w, segment, item, err);

        if (st != ZARR_OK)
            return zr_item_prefix(segment, item, st, err);
        ZR_CHECK(zr_box_list_fill(list, &l->io->layout->level[item->fill_level],
                                  &item->target, err));
    }
    return ZARR_OK;
}

zarr_status zr_batch_fill(struct zr_batch *l, zarr_error *err)
{
    struct zr_box_list list = {0};
    zarr_status st = ZARR_OK;

    if (!l->fills || !*l->fills)
        return ZARR_OK;
    *l->fills = false;
    ZR_TRY(zr_flow_worker(l->flow, err));
    for (uint32_t i = 0; i < l->wave->n_segments; i++) {
        if (l->wave->segment[i].bytes != ZR_ITEM_MISSING)
            continue;
        if (!list.flow)
            ZR_TRY(zr_box_list_open(&list, l->flow, false, err));
        ZR_TRY(fill_segment(l, &l->wave->segment[i], &list, err));
    }
    if (list.flow)
        ZR_TRY(zr_box_list_send(&list, err));
out:
    if (st != ZARR_OK && err)
        err->item = UINT64_MAX;
    zr_box_list_close(&list);
    return st;
}
