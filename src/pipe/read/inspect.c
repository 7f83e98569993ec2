/*
 * pipe/read/inspect.c - looks at stored chunks: opens a shard by key or an inner shard by
 * its entry, and decodes chunks only to learn whether they can be decoded. Used by chunk
 * lists and verify. What a call has in memory is taken from the budget, as a read does
 * it. Chunks are decoded in host memory, so no device has a part in it.
 * Thread class: any thread; each call takes a worker context.
 */
#include "pipe/read/read.h"

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
                        .entry = entry,
                        .level = level,
                        .lv = &io->layout->level[level]};

    o.offset = parent->base + parent->index->entry[2 * entry];
    o.bytes = parent->index->entry[2 * entry + 1];
    return open_with(io, &o, out, err);
}

zarr_status zr_chunk_check(const struct zr_io *io, const struct zr_level *lv,
                           const char *key, zarr_error *err)
{
    const struct zr_program *p = lv->decode;
    const struct zr_fetch f = {.key = key,
                               .slot = ZR_SCRATCH_FETCH,
                               .device_type = p->fetch_device,
                               .expect = p->encoded_bound,
                               .most = zr_program_most(io, p),
                               .gaps = p->gaps};
    const struct zr_need need = {.host = zr_add_cap(p->encoded_bound, p->decoded_bytes)};
    struct zarr_request rq;
    struct zr_work w = {.io = io, .rq = &rq};
    zarr_memory encoded = {0}, block = {0};
    zarr_status st = ZARR_OK;

    inspect_begin(&rq, io);
    ZR_TRY(zr_worker_take(io->engine, &rq.cancel, &w.worker, err));
    ZR_TRY(zr_request_take(&rq, need, err));
    st = zr_fetch_object(&w, &f, &encoded, err);
    if (st == ZARR_OK)
        st = zr_chunk_decode(&w, p, &encoded, NULL, &block, err);
    zr_request_give(&rq, need);
out:
    inspect_end(&rq, w.worker);
    return st;
}

/* ---- inner chunks ------------------------------------------------------------- */

/* Inner chunks of one shard from `entry` on: neighbours in the object, in the order of
 * their entries. */
struct neighbours {
    uint64_t entry, n;
    struct zr_segment segment; /* covers them */
};

/* Finds at most `most` neighbours, but at least one. Ends before a chunk that is too
 * long to be fetched. */
static void find_neighbours(const struct zr_io *io, uint64_t most, struct neighbours *c)
{
    struct zr_segment *s = &c->segment;
    const struct zr_shard_index *x = s->shard->index;
    const uint64_t *pair = x->entry + 2 * c->entry;
    const uint64_t longest = zr_program_most(io, s->level->decode);
    struct zr_range r = {pair[0], pair[0] + pair[1]};
    struct zr_plan_args cut;
    uint64_t gaps;

    zr_io_cut(io, &cut);
    /* each thread of verify has a range in memory */
    cut.segment_bytes = ZR_MIN(cut.segment_bytes, cut.wave_gaps);
    gaps = cut.segment_gap;
    c->n = 1;
    for (uint64_t i = c->entry + 1; i < x->n && c->n < most; i++) {
        const uint64_t *next = x->entry + 2 * i;

        if (zr_shard_index_lacks(x, i))
            continue;
        if (zr_shard_index_check(x, i, NULL) != ZARR_OK || next[1] > longest ||
            next[0] < r.start || !zr_range_join(&cut, &r, next[0], next[1], &gaps))
            break;
        c->n++;
    }
    s->offset = s->shard->base + r.start;
    s->bytes = r.end - r.start;
}

/* Fetches the range of the neighbours. If the object is at fault, tries again with half
 * as many: only the first chunk alone fails. */
static zarr_status fetch_neighbours(const struct zr_work *w, struct neighbours *c,
                                    struct zr_check *check, zarr_memory *range,
                                    zarr_error *err)
{
    zarr_error why = {0};
    zarr_status st = zr_segment_range(w, &c->segment, range, &why);

    while (c->n > 1 && (st == ZARR_ERR_CORRUPT || zr_store_blames_object(st, &why))) {
        check->most = c->n / 2;
        find_neighbours(w->io, check->most, c);
        zr_error_clear(&why);
        st = zr_segment_range(w, &c->segment, range, &why);
    }
    return zr_pass(err, st, &why);
}

/* Decodes one after the other. *n_sound: those before the first failure. */
static zarr_status decode_neighbours(const struct zr_work *w, const struct neighbours *c,
                                     const zarr_memory *range, uint64_t *n_sound,
                                     zarr_error *err)
{
    const struct zr_shard *shard = c->segment.shard;
    zarr_memory encoded = {0}, block = {0};

    for (uint64_t i = c->entry; *n_sound < c->n; i++) {
        const uint64_t *pair = shard->index->entry + 2 * i;

        if (zr_shard_index_lacks(shard->index, i))
            continue;
        if (!zr_mem_slice(range, shard->base + pair[0] - c->segment.offset, pair[1],
                          &encoded))
            return zr_internal(err);
        ZR_CHECK(zr_cancel_check(&w->rq->cancel, err));
        ZR_CHECK(
            zr_chunk_decode(w, c->segment.level->decode, &encoded, NULL, &block, err));
        zr_worker_trim(w->worker);
        ++*n_sound;
    }
    return ZARR_OK;
}

zarr_status zr_chunks_check(const struct zr_io *io, struct zr_shard *shard,
                            uint64_t entry, struct zr_check *check, zarr_error *err)
{
    const struct zr_level *lv = &io->layout->level[io->layout->n_levels - 1];
    const uint64_t bytes = shard->index->entry[2 * entry + 1],
                   most = zr_program_most(io, lv->decode);
    const char *key = shard->buffer.handle ? NULL : shard->key;
    struct neighbours c = {.entry = entry,
                           .segment = {.level = lv, .key = key, .shard = shard}};
    struct zarr_request rq;
    struct zr_work w = {.io = io, .rq = &rq};
    struct zr_need need = {.device = 0};
    zarr_memory range = {0};
    zarr_status st = ZARR_OK;

    check->n_sound = 0;
    ZR_CHECK(zr_shard_index_check(shard->index, entry, err));
    if (bytes > most)
        return zr_fail(err, zr_excess(io),
                       "the shard index gives %" PRIu64
                       " bytes, but the chunk can have at most %" PRIu64,
                       bytes, most);
    find_neighbours(io, check->most, &c);
    need.host = zr_add_cap(key ? c.segment.bytes : 0, lv->decode->decoded_bytes);
    inspect_begin(&rq, io);
    ZR_TRY(zr_worker_take(io->engine, &rq.cancel, &w.worker, err));
    ZR_TRY(zr_request_take(&rq, need, err));
    st = fetch_neighbours(&w, &c, check, &range, err);
    if (st == ZARR_OK)
        st = decode_neighbours(&w, &c, &range, &check->n_sound, err);
    zr_request_give(&rq, need);
    check->most = st == ZARR_OK ? zr_mul_cap(ZR_MAX(check->most, 1u), 2) : 1;
out:
    inspect_end(&rq, w.worker);
    return st;
}

bool zr_is_fill(const struct zr_layout *layout, const void *elements, uint64_t n)
{
    return zr_elements_equal(elements, n, layout->fill, layout->item_bytes,
                             layout->variable);
}
