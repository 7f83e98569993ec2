/*
 * pipe/inspect.c - looks at stored chunks one by one: opens a shard by key or an inner
 * shard by its entry, and decodes a chunk only to learn whether it can be decoded. Used
 * by chunk lists and verify. What a call has in memory is taken from the budget, as a
 * read does it.
 * Thread class: any thread; each call takes a worker context.
 */
#include "pipe/pipe_int.h"

#include <string.h>

/* A request that only provides the steps with counters and cancellation. */
static void inspect_begin(struct zarr_request *rq, const struct zr_io *io)
{
    zr_request_init(rq, io, io->cancel);
}

static void inspect_end(struct zarr_request *rq, struct zr_worker *worker)
{
    if (worker) {
        zr_request_merge(rq, worker);
        zr_worker_give(worker);
    }
    zr_mutex_deinit(&rq->locked.mutex);
}

static zarr_status open_with(const struct zr_io *io, struct zr_open *o,
                             struct zr_shard **out, zarr_error *err)
{
    struct zarr_request rq;
    struct zr_work w = {.io = io, .rq = &rq};
    zarr_status st = ZARR_OK;

    inspect_begin(&rq, io);
    ZR_TRY(zr_opens_hold(&rq, o, 1, err));
    ZR_TRY(zr_worker_take(io->engine, &w.rq->cancel, &w.worker, err));
    ZR_TRY(zr_open_exec(&w, o, err));
    *out = o->shard;
out:
    zr_opens_let_go(o, 1);
    inspect_end(&rq, w.worker);
    return st;
}

zarr_status zr_shard_open_object(const struct zr_io *io, const struct zr_level *lv,
                                 const char *key, struct zr_shard **out, zarr_error *err)
{
    struct zr_open o = {.key = key, .lv = lv};

    return open_with(io, &o, out, err);
}

zarr_status zr_shard_open_inner(const struct zr_io *io, struct zr_shard *parent,
                                uint64_t entry, uint32_t level, struct zr_shard **out,
                                zarr_error *err)
{
    struct zr_open o = {.key = parent->key,
                        .parent = parent,
                        .level = level,
                        .lv = &io->layout->level[level]};

    o.offset = parent->base + parent->index->entry[2 * entry];
    o.bytes = parent->index->entry[2 * entry + 1];
    return open_with(io, &o, out, err);
}

static zarr_status check_fetch(const struct zr_work *w, const struct zr_level *lv,
                               const struct zr_open *at, zarr_mem *encoded,
                               zarr_error *err)
{
    const struct zr_program *p = lv->decode;
    uint64_t most = zr_program_most(w->io, p);
    zarr_status st = ZARR_OK;

    if (!at->parent) {
        struct zr_fetch f = {.key = at->key,
                             .slot = ZR_SCRATCH_FETCH,
                             .device_type = p->fetch_device,
                             .expect = p->encoded_bound,
                             .most = most,
                             .gaps = p->gaps};

        return zr_fetch_object(w, &f, encoded, err);
    }
    if (at->bytes > most)
        return zr_fail(err, zr_excess(w->io),
                       "the shard index gives %" PRIu64
                       " bytes, but the chunk can have at most %" PRIu64,
                       at->bytes, most);
    if (at->parent->buffer.handle)
        return zr_mem_slice(&at->parent->buffer, at->offset, at->bytes, encoded)
                   ? ZARR_OK
                   : zr_internal(err);
    ZR_TRY(
        zr_worker_scratch(w, ZR_SCRATCH_FETCH, ZARR_DEVICE_CPU, at->bytes, encoded, err));
    ZR_TRY(zr_get(w,
                  &(struct zr_get){.key = at->key,
                                   .pin = zr_shard_pin(at->parent),
                                   .offset = at->offset,
                                   .dst = *encoded,
                                   .known = "shard"},
                  err));
out:
    return st;
}

/* What a chunk has in memory: as it is stored, unless it is in a buffer, and decoded. */
static struct zr_need check_need(const struct zr_io *io, const struct zr_program *p,
                                 const struct zr_open *at)
{
    uint64_t encoded = p->encoded_bound;

    if (at->parent)
        encoded = at->parent->buffer.handle
                      ? 0
                      : ZR_MIN(at->bytes, zr_program_most(io, p)); /* more is not read */
    return (struct zr_need){.host = zr_add_cap(encoded, p->decoded_bytes)};
}

zarr_status zr_chunk_check(const struct zr_io *io, const struct zr_level *lv,
                           const char *key, struct zr_shard *shard, uint64_t entry,
                           zarr_error *err)
{
    struct zr_open at = {.key = key, .parent = shard};
    struct zarr_request rq;
    struct zr_work w = {.io = io, .rq = &rq};
    struct zr_need need = {0, 0};
    zarr_mem encoded = {0}, block = {0};
    zarr_status st = ZARR_OK;

    if (shard) {
        at.offset = shard->base + shard->index->entry[2 * entry];
        at.bytes = shard->index->entry[2 * entry + 1];
    }
    inspect_begin(&rq, io);
    ZR_TRY(zr_worker_take(io->engine, &w.rq->cancel, &w.worker, err));
    need = check_need(io, lv->decode, &at);
    st = zr_request_take(&rq, need, err);
    if (st != ZARR_OK)
        need.host = 0;
    ZR_TRY(st);
    ZR_TRY(check_fetch(&w, lv, &at, &encoded, err));
    ZR_TRY(zr_chunk_decode(&w, lv->decode, &encoded, NULL, &block, err));
out:
    zr_request_give(&rq, need);
    inspect_end(&rq, w.worker);
    return st;
}

bool zr_is_fill(const struct zr_layout *layout, const void *elements, uint64_t n)
{
    return zr_elements_equal(elements, n, layout->fill, layout->item_bytes,
                             layout->variable);
}
