/*
 * pipe/lockstep.c - carries out a wave in lock step, for programs with an implementation
 * that takes batches (ZARR_CODEC_BATCH), and for elements that go to a device: one level
 * after the other (lockstep_decode.c). Segments that were not fetched in advance
 * (missing, short, or otherwise unusual) are read one by one in the ordinary way.
 * Thread class: one wave; helpers take worker contexts.
 */
#include "pipe/lockstep_int.h"

#include <string.h>

/* Whether an implementation of the program takes batches. */
static bool wants_lockstep(const struct zr_program *p)
{
    if (!p || p->unsized) /* only decoding tells the size of each chunk */
        return false;
    for (uint32_t i = 0; i < p->n; i++)
        if (p->stage[i].kind == ZR_STAGE_CODEC &&
            (p->stage[i].impl->vt.caps & ZARR_CODEC_BATCH) != 0)
            return true;
    return false;
}

bool zr_goes_lockstep(const struct zr_io *io, const struct zr_program *p)
{
    /* a failure must be that of single chunks; on a device, see read_parts() and
     * zr_units_lockstep() */
    if (io->parts && zr_io_is_host(io, io->view.base.device_type))
        return false;
    if (wants_lockstep(p))
        return true;
    if (!p || p->unsized || p->variable || p->padded ||
        zr_io_is_host(io, io->view.base.device_type))
        return false;
    /* raw chunks of a store that reaches the device go there without us */
    return !p->raw || zr_io_is_host(io, p->fetch_device);
}

/* ---- who takes part ---------------------------------------------------- */

static zarr_status read_ordinary_segment(void *arg, uint64_t i, const struct zr_work *w,
                                         zarr_error *err)
{
    struct zr_lockstep *l = arg;

    if (l->fetched[i].handle ||
        (l->fills && l->wave->segment[i].bytes == ZR_ITEM_MISSING))
        return ZARR_OK;
    return zr_parts_read(w, &l->wave->segment[i], NULL, err);
}

static zarr_status collect_segment(struct zr_lockstep *l,
                                   const struct zr_segment *segment,
                                   const zarr_mem *bytes, zarr_error *err)
{
    for (uint32_t k = 0; k < segment->n_items; k++) {
        struct zr_lock_item *it = &l->item[l->n];
        const struct zr_item *item = segment->item[k];

        *it = (struct zr_lock_item){.segment = segment, .item = item, .cur = *bytes};
        if (segment->bytes != UINT64_MAX &&
            !zr_mem_slice(bytes, item->offset - segment->offset, item->bytes, &it->cur))
            return zr_internal(err);
        it->encoded = it->cur;
        l->n++;
    }
    return ZARR_OK;
}

static zarr_status collect_room(struct zr_lockstep *l, zarr_error *err)
{
    struct zr_arena *arena = l->arena;
    uint32_t most = l->wave->n_items;

    l->item = zr_arena_alloc(arena, (most + 1) * sizeof *l->item);
    l->level = zr_arena_alloc(arena, ((size_t)l->wave->n_segments + 1) *
                                         sizeof(struct zr_level *));
    if (!l->item || !l->level)
        return zr_fail_memory(err, most * sizeof *l->item);
    return ZARR_OK;
}

/* Collects the levels of the segments that were fetched: one, unless chunks differ in
 * shape. */
static void collect_levels(struct zr_lockstep *l)
{
    for (uint32_t i = 0; i < l->wave->n_segments; i++) {
        const struct zr_level *lv = l->wave->segment[i].level;
        uint32_t k = 0;

        if (!l->fetched[i].handle)
            continue;
        while (k < l->n_levels && l->level[k] != lv)
            k++;
        if (k == l->n_levels)
            l->level[l->n_levels++] = lv;
    }
}

static zarr_status collect(struct zr_lockstep *l, const struct zr_level *lv,
                           zarr_error *err)
{
    zarr_status st = ZARR_OK;

    l->n = 0;
    l->p = lv->decode;
    l->end = *lv->decode;
    if (l->flow.device != 0)
        l->end.decoded_device = l->flow.device;
    for (uint32_t i = 0; i < l->wave->n_segments; i++)
        if (l->fetched[i].handle && l->wave->segment[i].level == lv)
            ZR_TRY(collect_segment(l, &l->wave->segment[i], &l->fetched[i], err));
out:
    return st;
}

static zarr_status run_level(struct zr_lockstep *l, const struct zr_level *lv,
                             zarr_error *err)
{
    zarr_status st = ZARR_OK;

    ZR_TRY(collect(l, lv, err));
    ZR_TRY(zr_lock_run(l, err));
out:
    return st;
}

static zarr_status run_levels(struct zr_lockstep *l, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (uint32_t k = 0; k < l->n_levels; k++)
        ZR_TRY(run_level(l, l->level[k], err));
    ZR_TRY(zr_lock_fill(l, err)); /* no chunk was there */
    ZR_TRY(zr_flow_wait(&l->flow, err));
out:
    return st;
}

static zarr_status part_segment(void *arg, uint64_t i, const struct zr_work *w,
                                zarr_error *err)
{
    struct zr_lockstep *l = arg;
    const struct zr_segment *segment = &l->wave->segment[i];

    if (l->fetched[i].handle)
        return zr_parts_read(w, segment, &l->fetched[i], err);
    return l->filling && segment->bytes == ZR_ITEM_MISSING
               ? zr_parts_read(w, segment, NULL, err)
               : ZARR_OK;
}

/* The wave of a request with parts. If a chunk fails, all are read again one by one, to
 * find the parts that fail with it. */
static zarr_status read_parts(struct zr_lockstep *l, zarr_error *err)
{
    zarr_stats before;
    zarr_error e = ZARR_ERROR_INIT;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_flow_worker(&l->flow, err));
    before = l->flow.w.worker->stats;
    st = run_levels(l, &e);
    if (st == ZARR_OK || !zr_parts_take(l->rq, st))
        return zr_pass(err, st, &e);
    (void)zr_flow_wait(&l->flow, NULL);
    zr_forget_chunks(&l->flow.w.worker->stats, &before);
    st = zr_lock_parallel(l, l->wave->n_segments, part_segment, l, err);
out:
    return st;
}

zarr_status zr_lockstep_exec(const struct zr_io *io, struct zarr_request *rq,
                             struct zr_wave *wave, const zarr_mem *fetched,
                             zarr_error *err)
{
    const struct zr_work w = {.io = io, .rq = rq};
    struct zr_lockstep l = {
        .io = io, .rq = rq, .wave = wave, .fetched = fetched, .arena = &wave->arena};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_flow_begin(&l.flow, &w, io->view.base.device_type, &wave->arena, err));
    l.flow.declined = zr_lock_declined;
    l.flow.declined_arg = &l;
    /* else one by one, so that the first missing chunk is reported */
    l.fills = l.flow.device != 0 && !io->missing_error && !io->field.on &&
              !io->layout->variable;
    l.filling = l.fills;
    ZR_TRY(zr_lock_parallel(&l, wave->n_segments, read_ordinary_segment, &l, err));
    ZR_TRY(collect_room(&l, err));
    collect_levels(&l);
    ZR_TRY(io->parts ? read_parts(&l, err) : run_levels(&l, err));
out:
    zr_flow_end(&l.flow);
    zr_lock_end(&l);
    return st;
}
