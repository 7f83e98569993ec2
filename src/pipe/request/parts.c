/*
 * pipe/request/parts.c - several selections in one request. The plan gives each chunk
 * once, with a target for each part that touches it. A chunk that fails is the failure of
 * these parts only, and the request goes on. Of the failures of a part, the one of its
 * first chunk counts, whatever the number of threads. Thread class: on the worker
 * context; parts are under the request's lock.
 */
#include "pipe/pipe_int.h"

uint64_t zr_io_elements(const struct zr_io *io)
{
    const struct zr_grid *grid = io->layout->grid;
    uint64_t n = 0;

    for (uint32_t i = 0; i < io->n_parts; i++)
        if (!zr_add_u64(n, zarr_selection_n_items(io->parts[i].selection), &n))
            return UINT64_MAX;
    if (io->parts)
        return n;
    if (io->selection)
        return zarr_selection_n_items(io->selection);
    return zr_product_u64(grid->shape, (size_t)grid->ndim, &n) ? n : UINT64_MAX;
}

zarr_status zr_io_project(struct zr_projector **out, const struct zr_io *io,
                          zarr_selection **all, zarr_error *err)
{
    const struct zr_grid *grid = io->layout->grid;
    struct zr_plan_args args = {.selection = io->selection,
                                .selections = io->selections,
                                .n_selections = io->n_parts};
    zarr_status st = ZARR_OK;

    if (!io->parts && !io->selection) {
        ZR_TRY(zarr_selection_all(all, grid->ndim, grid->shape, err));
        args.selection = *all;
    }
    ZR_TRY(zr_plan_project(out, &args, grid, io->engine->alloc, err));
out:
    return st;
}

/* ---- failures -------------------------------------------------------------- */

void zr_parts_begin(struct zarr_request *rq)
{
    for (uint32_t i = 0; i < rq->io.n_parts; i++)
        rq->io.parts[i].status = ZARR_OK;
}

/* A shard that was replaced meanwhile makes the whole read begin again, a few times. */
bool zr_parts_take(const struct zarr_request *rq, zarr_status st)
{
    return rq->io.parts && st != ZARR_OK && st != ZARR_ERR_CANCELLED &&
           (st != ZARR_ERR_CONFLICT || rq->last_try);
}

static void part_fails(struct zarr_request *rq, uint32_t i, zarr_status st,
                       const zarr_error *err, uint64_t ordinal)
{
    struct zr_part *part = &rq->io.parts[i];

    zr_request_lock(rq);
    if (part->status == ZARR_OK || ordinal < part->ordinal) {
        part->status = st;
        part->ordinal = ordinal;
        part->error = *err;
    }
    zr_request_unlock(rq);
}

static void projections_fail(struct zarr_request *rq, const struct zr_projection *p,
                             zarr_status st, const zarr_error *err, uint64_t ordinal)
{
    for (; p; p = p->next)
        part_fails(rq, p->part, st, err, ordinal);
}

zarr_status zr_parts_status(const struct zarr_request *rq, zarr_error *err)
{
    for (uint32_t i = 0; i < rq->io.n_parts; i++) {
        const struct zr_part *part = &rq->io.parts[i];

        if (part->status == ZARR_OK)
            continue;
        *err = part->error;
        err->item = i;
        return part->status;
    }
    return ZARR_OK;
}

void zr_parts_fail_all(struct zarr_request *rq, zarr_status st, const zarr_error *err)
{
    for (uint32_t i = 0; i < rq->io.n_parts; i++)
        part_fails(rq, i, st, err, UINT64_MAX);
}

void zr_parts_tell(const struct zarr_request *rq)
{
    for (uint32_t i = 0; i < rq->io.n_parts; i++) {
        struct zr_part *part = &rq->io.parts[i];

        *part->status_to = part->status;
        if (part->status == ZARR_OK || !part->error_to)
            continue;
        zr_error_mark_path(&part->error, rq->io.prefix);
        *part->error_to = part->error;
    }
}

/* ---- reads ----------------------------------------------------------------- */

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
    if (segment->bytes < ZR_ITEM_MISSING) {
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
        part_fails(w->rq, t->part, st, &e, item->ordinal);
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
    projections_fail(w->rq, o->proj, st, &e, o->ordinal);
    o->shard = zr_shard_new(alloc, o->key, o->lv->ndim, o->origin);
    if (!o->shard)
        return zr_fail_memory(err, sizeof *o->shard);
    return zr_shard_index_make(&o->shard->index, NULL, &none, alloc, err);
}

/* ---- writes ---------------------------------------------------------------- */

zarr_status zr_parts_write(const struct zr_work *w, const struct zr_projection *proj,
                           uint32_t threads, zarr_error *err)
{
    const struct zr_grid *grid = w->io->layout->grid;
    zarr_error e = ZARR_ERROR_INIT;
    uint64_t ordinal = 0;
    zarr_status st = ZARR_OK;

    if (!w->io->parts)
        return zr_unit_write(w, proj, threads, err);
    st = zr_unit_write(w, proj, threads, &e);
    if (st == ZARR_OK || !zr_parts_take(w->rq, st))
        return zr_pass(err, st, &e);
    for (int32_t d = 0; d < grid->ndim; d++)
        if (!zr_mul_u64(ordinal, zr_grid_n_chunks(grid, d), &ordinal) ||
            !zr_add_u64(ordinal, proj->chunk[d], &ordinal))
            ordinal = UINT64_MAX - 1;
    projections_fail(w->rq, proj, st, &e, ordinal);
    return ZARR_OK;
}
