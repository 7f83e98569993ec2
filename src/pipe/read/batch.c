/*
 * pipe/read/batch.c - decodes the chunks of a wave together, for programs with an
 * implementation that takes batches (ZARR_CODEC_BATCH), and for elements that go to a
 * device: one level after the other (batch/decode.c). Segments that were not fetched
 * in advance (missing, short, or otherwise unusual) are read one by one in the ordinary
 * way. Thread class: one wave; helpers take worker contexts.
 */
#include "pipe/read/read.h"

#include <string.h>

/* ---- who takes part ---------------------------------------------------- */

struct batch_wave {
    const struct zr_io *io;
    struct zarr_request *rq;
    struct zr_wave *wave;
    const zarr_memory *fetched;
    struct zr_flow flow;
    struct zr_batch *batch; /* of each level whose segments were fetched */
    uint32_t n;
    bool filling; /* missing items are filled in a list, */
    bool fills;   /* which is still to be done */
};

static zarr_status run_segments(struct batch_wave *w, zr_work_fn fn, zarr_error *err)
{
    return zr_batch_parallel(w->io, w->rq, w->wave->n_segments, fn, w, err);
}

static zarr_status read_ordinary_segment(void *arg, uint64_t i, const struct zr_work *w,
                                         zarr_error *err)
{
    struct batch_wave *l = arg;

    if (l->fetched[i].handle ||
        (l->fills && l->wave->segment[i].bytes == ZR_ITEM_MISSING))
        return ZARR_OK;
    return zr_parts_read(w, &l->wave->segment[i], NULL, err);
}

static zarr_status collect_segment(struct zr_batch *l, const struct zr_segment *segment,
                                   const zarr_memory *bytes, zarr_error *err)
{
    for (uint32_t k = 0; k < segment->n_items; k++) {
        struct zr_batch_item *it = &l->item[l->n];
        const struct zr_item *item = segment->item[k];

        *it = (struct zr_batch_item){.segment = segment, .item = item, .cur = *bytes};
        if (segment->bytes != UINT64_MAX &&
            !zr_mem_slice(bytes, item->offset - segment->offset, item->bytes, &it->cur))
            return zr_internal(err);
        it->encoded = it->cur;
        l->n++;
    }
    return ZARR_OK;
}

/* Finds the levels of the segments that were fetched: one, unless chunks differ in
 * shape. */
static zarr_status collect_levels(struct batch_wave *w, zarr_error *err)
{
    struct zr_wave *wave = w->wave;
    const struct zr_level **level = zr_arena_alloc(
        &wave->arena, ((size_t)wave->n_segments + 1) * sizeof(struct zr_level *));

    if (!level)
        return zr_fail_memory(err, wave->n_segments * sizeof(struct zr_level *));
    for (uint32_t i = 0; i < wave->n_segments; i++) {
        uint32_t k = 0;

        if (!w->fetched[i].handle)
            continue;
        while (k < w->n && level[k] != wave->segment[i].level)
            k++;
        if (k == w->n)
            level[w->n++] = wave->segment[i].level;
    }
    w->batch = zr_arena_alloc(&wave->arena, ((size_t)w->n + 1) * sizeof *w->batch);
    if (!w->batch) {
        const uint32_t n = w->n;

        w->n = 0;
        return zr_fail_memory(err, (n + 1) * sizeof *w->batch);
    }
    /* without any, missing items are filled all the same */
    for (uint32_t k = 0; k <= w->n; k++)
        w->batch[k] = (struct zr_batch){.io = w->io,
                                        .rq = w->rq,
                                        .wave = wave,
                                        .arena = &wave->arena,
                                        .level = k < w->n ? level[k] : NULL,
                                        .flow = &w->flow,
                                        .fills = &w->fills};
    return ZARR_OK;
}

static zarr_status collect(struct batch_wave *w, zarr_error *err)
{
    struct zr_wave *wave = w->wave;
    struct zr_batch_item *item =
        zr_arena_alloc(&wave->arena, ((size_t)wave->n_items + 1) * sizeof *item);

    if (!item)
        return zr_fail_memory(err, wave->n_items * sizeof *item);
    ZR_CHECK(collect_levels(w, err));
    for (uint32_t k = 0; k < w->n; k++) {
        struct zr_batch *l = &w->batch[k];

        l->item = item;
        l->p = l->level->decode;
        l->end = *l->p;
        if (w->flow.device != 0)
            l->end.decoded_device = w->flow.device;
        for (uint32_t i = 0; i < wave->n_segments; i++)
            if (w->fetched[i].handle && wave->segment[i].level == l->level)
                ZR_CHECK(collect_segment(l, &wave->segment[i], &w->fetched[i], err));
        item += l->n;
    }
    return ZARR_OK;
}

/* How many programs from the first one go together: for a device as many as what the wave
 * took has room for, which is all unless their codecs want much scratch memory a call. */
static uint32_t batches_together(const struct batch_wave *w, uint32_t first,
                                 uint64_t room)
{
    uint64_t sum = 0;
    uint32_t n = 0;

    if (w->flow.device == 0)
        return 1;
    for (; first + n < w->n; n++) {
        const struct zr_batch *l = &w->batch[first + n];

        sum = zr_add_cap(sum, zr_device_need(w->io, l->level, false, false, l->n));
        if (n > 0 && sum > room)
            break;
    }
    return n;
}

static zarr_status run_levels(struct batch_wave *w, zarr_error *err)
{
    const uint64_t room = zr_wave_on_device(w->io, w->wave, w->wave->n_items);
    uint32_t n = 0;

    for (uint32_t k = 0; k < w->n; k += n) {
        n = batches_together(w, k, room);
        ZR_CHECK(zr_batch_run(&w->batch[k], n, err));
        for (uint32_t i = k; i < k + n; i++)
            zr_batch_end(&w->batch[i]);
    }
    ZR_CHECK(zr_batch_fill(&w->batch[w->n], err)); /* no chunk was there */
    return zr_flow_wait(&w->flow, err);
}

static zarr_status part_segment(void *arg, uint64_t i, const struct zr_work *w,
                                zarr_error *err)
{
    struct batch_wave *l = arg;
    const struct zr_segment *segment = &l->wave->segment[i];

    if (l->fetched[i].handle)
        return zr_parts_read(w, segment, &l->fetched[i], err);
    return l->filling && segment->bytes == ZR_ITEM_MISSING
               ? zr_parts_read(w, segment, NULL, err)
               : ZARR_OK;
}

/* The wave of a request with parts. If a chunk fails, all are read again one by one, to
 * find the parts that fail with it. */
static zarr_status read_parts(struct batch_wave *w, zarr_error *err)
{
    zarr_stats before;
    zarr_error e = ZARR_ERROR_INIT;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_flow_worker(&w->flow, err));
    before = w->flow.w.worker->stats;
    st = run_levels(w, &e);
    if (st == ZARR_OK || !zr_parts_take(w->rq, st))
        return zr_pass(err, st, &e);
    (void)zr_flow_wait(&w->flow, NULL);
    zr_forget_chunks(&w->flow.w.worker->stats, &before);
    st = run_segments(w, part_segment, err);
out:
    return st;
}

zarr_status zr_read_batch(const struct zr_io *io, struct zarr_request *rq,
                          struct zr_wave *wave, const zarr_memory *fetched,
                          zarr_error *err)
{
    const struct zr_work w = {.io = io, .rq = rq};
    struct batch_wave l = {.io = io, .rq = rq, .wave = wave, .fetched = fetched};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_flow_begin(&l.flow, &w, io->view.base.device_type, &wave->arena, err));
    l.flow.declined = zr_batch_note_declined;
    /* else one by one, so that the first missing chunk is reported */
    l.fills = l.flow.device != 0 && !io->missing_error && !io->field.on &&
              !io->layout->variable;
    l.filling = l.fills;
    ZR_TRY(run_segments(&l, read_ordinary_segment, err));
    ZR_TRY(collect(&l, err));
    ZR_TRY(io->parts ? read_parts(&l, err) : run_levels(&l, err));
out:
    zr_flow_end(&l.flow);
    for (uint32_t k = 0; k < l.n; k++)
        zr_batch_end(&l.batch[k]);
    return st;
}
