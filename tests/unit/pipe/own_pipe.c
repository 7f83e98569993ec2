/* unit/pipe/own_pipe.c - see own_pipe.h. */
#include "own_pipe.h"

#include <sched.h>

struct own_flow {
    zarr_request *request;
    const zarr_pipeline_steps *steps;
    zarr_pipeline_wave *wave;
    const zarr_pipeline_blocks *units;
};
struct own_counts own_n;
bool own_reserves;

static void own_expect(bool met)
{
    if (!met)
        atomic_fetch_add(&own_n.wrong, 1);
}

static zarr_status own_open(void *arg, uint64_t i, zarr_pipeline_worker *worker,
                            zarr_error *err)
{
    const struct own_flow *f = arg;

    return f->steps->open(worker, f->wave, (uint32_t)i, err);
}

/* Bytes of host memory for a segment: some more than it needs. */
static uint64_t segment_bytes(const struct own_flow *f, uint32_t r)
{
    zarr_pipeline_item item;

    if (!own_reserves)
        return 0;
    f->steps->item_get(f->wave, r, 0, &item);
    return 2 * item.chunk_bytes + 64;
}

static zarr_status segment_steps(const struct own_flow *f, uint32_t r,
                                 zarr_pipeline_worker *worker, zarr_error *err);

/* A reservation is given back in two parts. */
static zarr_status own_segment(void *arg, uint64_t i, zarr_pipeline_worker *worker,
                               zarr_error *err)
{
    const struct own_flow *f = arg;
    const uint64_t bytes = segment_bytes(f, (uint32_t)i);
    zarr_status st = f->steps->reserve(f->request, bytes, err);

    if (st != ZARR_OK)
        return st;
    st = segment_steps(f, (uint32_t)i, worker, err);
    f->steps->release(f->request, bytes / 3);
    f->steps->release(f->request, bytes - bytes / 3);
    return st;
}

static zarr_status segment_steps(const struct own_flow *f, uint32_t r,
                                 zarr_pipeline_worker *worker, zarr_error *err)
{
    const zarr_pipeline_steps *s = f->steps;
    zarr_pipeline_segment segment;
    zarr_memory got = {0}, block = {0};
    bool missing;
    zarr_status st = ZARR_OK;

    s->segment_get(f->wave, r, &segment);
    missing = segment.bytes == ZARR_PIPELINE_MISSING;
    if (!missing) {
        st = s->fetch(worker, f->wave, r, &got, err);
        if (st == ZARR_OK)
            own_expect(got.device_type == segment.device_type);
        missing = st == ZARR_ERR_NOT_FOUND;
        atomic_fetch_add(&own_n.fetched, 1);
    }
    if (missing)
        st = ZARR_OK;
    for (uint32_t k = 0; k < segment.n_items && st == ZARR_OK; k++) {
        zarr_pipeline_item item;

        s->item_get(f->wave, r, k, &item);
        if (missing || item.bytes == ZARR_PIPELINE_MISSING) {
            st = s->fill(worker, f->wave, r, k, err);
            continue;
        }
        st = s->decode(worker, f->wave, r, k, &got, &block, err);
        if (st != ZARR_OK)
            break;
        own_expect(block.device_type == item.device_type);
        own_expect(block.bytes == item.chunk_bytes);
        if (own_reserves)
            sched_yield(); /* others want blocks, too */
        st = s->scatter(worker, f->wave, r, k, &block, err);
    }
    /* as a decoder of its own may, which works in place */
    if (segment.key && got.handle && got.device_type == ZARR_DEVICE_CPU)
        memset((char *)got.handle + got.offset, 0x77, (size_t)got.bytes);
    return st;
}

static zarr_status own_read(void *self, zarr_request *request,
                            const zarr_pipeline_steps *steps, zarr_error *err)
{
    struct own_flow f = {request, steps, NULL, NULL};
    zarr_pipeline_plan *plan = NULL;
    uint32_t kind = ZARR_WAVE_MORE, n_opens = 0, n_segments = 0;
    zarr_status st = steps->plan_open(&plan, request, NULL, err);

    atomic_fetch_add(&((struct own_counts *)self)->reads, 1);
    if (st == ZARR_OK)
        st = steps->wave_open(&f.wave, plan, err);
    while (st == ZARR_OK && !steps->cancelled(request)) {
        st = steps->next(plan, f.wave, &kind, err);
        if (st != ZARR_OK || kind != ZARR_WAVE_MORE)
            break;
        steps->wave_counts(f.wave, &n_opens, &n_segments);
        if (n_opens > 0) {
            st = steps->parallel(request, n_opens, own_open, &f, err);
            st = st == ZARR_OK ? steps->resume(plan, f.wave, err) : st;
        }
        if (st == ZARR_OK)
            st = steps->parallel(request, n_segments, own_segment, &f, err);
    }
    steps->wave_close(f.wave);
    steps->plan_close(plan);
    return st;
}

static zarr_status unit_steps(const struct own_flow *f, uint32_t i,
                              zarr_pipeline_worker *worker, zarr_error *err)
{
    zarr_memory bytes = {0};
    int empty = 0;
    zarr_status st = f->steps->encode(worker, f->units, i, &bytes, &empty, err);

    if (st != ZARR_OK)
        return st;
    return f->steps->put(worker, f->units, i, empty ? NULL : &bytes, err);
}

static zarr_status own_unit(void *arg, uint64_t i, zarr_pipeline_worker *worker,
                            zarr_error *err)
{
    const struct own_flow *f = arg;
    zarr_pipeline_block unit;
    const uint64_t bytes = own_reserves ? 4096 : 0;
    zarr_status st;

    f->steps->block_get(f->units, (uint32_t)i, &unit);
    if (!unit.simple)
        return f->steps->write(worker, f->units, (uint32_t)i, 1, err);
    atomic_fetch_add(&own_n.encoded, 1);
    st = f->steps->reserve(f->request, bytes, err);
    if (st != ZARR_OK)
        return st;
    st = unit_steps(f, (uint32_t)i, worker, err);
    f->steps->release(f->request, bytes);
    return st;
}

static zarr_status own_write(void *self, zarr_request *request,
                             const zarr_pipeline_steps *steps, zarr_error *err)
{
    struct own_flow f = {request, steps, NULL, NULL};
    zarr_pipeline_blocks *units = NULL;
    uint32_t n = 0;
    zarr_status st = steps->blocks_open(&units, request, err);

    atomic_fetch_add(&((struct own_counts *)self)->writes, 1);
    f.units = units;
    while (st == ZARR_OK && !steps->cancelled(request)) {
        st = steps->blocks_next(units, 3, &n, err);
        if (st != ZARR_OK || n == 0)
            break;
        st = steps->parallel(request, n, own_unit, &f, err);
    }
    steps->blocks_close(units);
    return st;
}

const zarr_pipeline_vtable own_pipe = {.struct_size = sizeof own_pipe,
                                       .name = "test.own",
                                       .read = own_read,
                                       .write = own_write};
