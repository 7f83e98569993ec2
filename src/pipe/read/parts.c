/*
 * pipe/read/parts.c - reads of a request with several selections. A segment or shard that
 * fails is the failure of the parts that touch it.
 * Thread class: on the worker context.
 */
#include "pipe/read/read.h"

/* Reads one item of a segment that failed as a whole. */
static zarr_status read_one_item(const struct zr_work *w,
                                 const struct zr_segment *segment, uint32_t i,
                                 const zarr_memory *fetched, zarr_error *err)
{
    struct zr_item *item = segment->item[i];
    struct zr_segment one = *segment;
    zarr_memory bytes = {0};
    zarr_error e = ZARR_ERROR_INIT;
    zarr_status st = ZARR_OK;

    one.item = &item;
    one.n_items = 1;
    if (segment->n_items > 1) {
        one.offset = item->offset;
        one.bytes = item->bytes;
        if (fetched &&
            !zr_mem_slice(fetched, item->offset - segment->offset, item->bytes, &bytes))
            return zr_internal(err);
        fetched = fetched ? &bytes : NULL;
    }
    st = zr_segment_read(w, &one, fetched, &e);
    if (st == ZARR_OK)
        return st;
    if (!zr_parts_take(w->rq, st))
        return zr_pass(err, st, &e);
    for (const struct zr_target *t = &item->target; t; t = t->next)
        zr_part_fail(w->rq, t->part, st, &e, item->ordinal);
    return ZARR_OK;
}

zarr_status zr_parts_read(const struct zr_work *w, const struct zr_segment *segment,
                          const zarr_memory *fetched, zarr_error *err)
{
    zarr_stats before;
    zarr_error e = ZARR_ERROR_INIT;
    zarr_status st = ZARR_OK;

    if (!w->io->parts)
        return zr_segment_read(w, segment, fetched, err);
    if (segment->n_items == 1)
        return read_one_item(w, segment, 0, fetched, err);
    before = w->worker->stats;
    st = zr_segment_read(w, segment, fetched, &e);
    if (st == ZARR_OK || !zr_parts_take(w->rq, st))
        return zr_pass(err, st, &e);
    zr_forget_chunks(&w->worker->stats, &before);
    st = ZARR_OK;
    for (uint32_t i = 0; i < segment->n_items; i++)
        ZR_TRY(read_one_item(w, segment, i, fetched, err));
out:
    return st;
}

/* The parts that want a shard which cannot be opened have failed. For the plan it is
 * missing. */
zarr_status zr_parts_open(const struct zr_work *w, struct zr_open *o, zarr_error *err)
{
    const struct zr_shard_pairs none = {.n = o->lv->n_inner_all};
    const zarr_allocator *alloc = w->io->engine->alloc;
    zarr_error e = ZARR_ERROR_INIT;
    zarr_status st = ZARR_OK;

    if (!w->io->parts)
        return zr_open_exec(w, o, err);
    st = zr_open_exec(w, o, &e);
    if (st == ZARR_OK || !zr_parts_take(w->rq, st))
        return zr_pass(err, st, &e);
    zr_parts_fail(w->rq, o->proj, st, &e, o->ordinal);
    o->shard = zr_shard_new(alloc, o->key, o->lv->ndim, o->origin);
    if (!o->shard)
        return zr_fail_memory(err, sizeof *o->shard);
    return zr_shard_index_make(&o->shard->index, NULL, &none, alloc, err);
}
