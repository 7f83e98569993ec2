/*
 * pipe/write/shard_write.c - makes the new values of shards of one level. Their inner
 * chunks that change are encoded a batch at a time, whatever shard they belong to: stage
 * by stage if their program does that (batch/encode.c), else in a parallel loop. Each is
 * then appended to its own shard (shard_value.c). Nested shards are a group of the same
 * kind, one level deeper, at most limits.shard_depth deep. So no loop is inside of
 * another. Thread class: on the worker context; helpers take contexts of their own.
 */
#include "pipe/write/shard_int.h"

enum {
    BATCH_BYTES = 32 * 1024 * 1024,
    INNERS_MOST = 64,  /* that a loop encodes at once */
    LEAVES_MOST = 4096 /* of a device that are encoded at once */
};

/* ---- one inner chunk ------------------------------------------------------------ */

zarr_status zr_group_slots(struct zr_shard_group *g, zarr_error *err)
{
    const struct zr_io *io = g->w->io;
    uint64_t bytes = 0;

    if (g->slots.handle || g->in->unsized)
        return ZARR_OK;
    g->slot_bytes = g->in->encoded_bound;
    if (g->together)
        return zr_take_slices(io, g->in->encode->fetch_device, &g->slot_bytes, g->most,
                              &g->slots, err);
    if (!zr_mul(g->slot_bytes, g->most, &bytes))
        return zr_fail(err, ZARR_ERR_LIMIT, "the chunks are too large");
    return zr_pool_take(io->engine->pool, ZARR_DEVICE_CPU, 0, bytes, &g->slots, err);
}

static zarr_status make_inner(const struct zr_shard_group *g, const struct zr_work *w,
                              uint32_t i, zarr_error *err)
{
    const struct zr_shard_writer *s = &g->writer[g->owner[i]];
    const struct zr_projection *proj = &g->proj[i];
    zarr_memory room = {0};

    if (g->sub) {
        g->sub[i] = (struct zr_shard_write){
            .level = s->sw->level + 1, .lv = s->in, .missing = s->missing, .proj = proj};
        return zr_shard_old_inner(s, w, proj, &g->sub[i].old, err);
    }
    if (g->slots.handle &&
        !zr_mem_slice(&g->slots, i * g->slot_bytes, g->in->encoded_bound, &room))
        return zr_internal(err);
    g->leaf[i] = (struct zr_leaf_write){
        .level = s->in, .proj = proj, .missing = s->missing, .room = room};
    return zr_shard_old_inner(s, w, proj, &g->leaf[i].old, err);
}

/* Of a parallel loop over the leaves. */
static zarr_status encode_inner(void *arg, uint64_t i, const struct zr_work *w,
                                zarr_error *err)
{
    struct zr_shard_group *g = arg;
    struct zr_leaf_write *lw = &g->leaf[i];
    zarr_status st = ZARR_OK;

    ZR_TRY(make_inner(g, w, (uint32_t)i, err));
    ZR_TRY(zr_leaf_encode(w, lw, err));
    ZR_TRY(zr_leaf_keep(w, lw, err));
out:
    zr_worker_trim(w->worker);
    return st;
}

/* ---- batches -------------------------------------------------------------------- */

/* Calls fn for each shard, in parallel. err is not NULL. */
static zarr_status each_shard(struct zr_shard_group *g, zr_work_fn fn, zarr_error *err)
{
    const struct zr_level *lv = g->sw->lv;
    const struct zr_parallel_options opts = {
        .max_threads = g->threads,
        .grain = 1,
        .item_ns = lv->bytes_encode ? lv->encoded_bound : lv->encoded_bound / 8};
    zarr_status st = ZARR_OK;

    if (g->n_shards == 1)
        return fn(g, 0, g->w, err);
    st = zr_workers_run(g->w, g->n_shards, &opts, fn, g, err);
    if (st != ZARR_OK)
        g->failed = err->item;
    return st;
}

/* Appends the inner chunks of the batch that belong to shard k. */
static zarr_status append_inners(void *arg, uint64_t k, const struct zr_work *w,
                                 zarr_error *err)
{
    const struct zr_shard_group *g = arg;
    struct zr_shard_writer *s = &g->writer[k];
    struct zr_chunk_counts *sum = &g->sw[k].counts;
    zarr_status st = ZARR_OK;

    s->w = w;
    for (uint32_t i = s->first; i < s->end; i++) {
        if (g->leaf) {
            const struct zr_leaf_write *lw = &g->leaf[i];

            ZR_TRY(zr_shard_append(s, lw->proj, lw->empty ? NULL : &lw->out, lw->filled,
                                   err));
            sum->chunks_missing += lw->empty;
            sum->chunks_direct += lw->direct;
        } else {
            const struct zr_shard_write *sub = &g->sub[i];

            ZR_TRY(zr_shard_append(s, sub->proj, sub->empty ? NULL : &sub->out,
                                   sub->filled, err));
            sum->chunks_done += sub->counts.chunks_done;
            sum->chunks_missing += sub->counts.chunks_missing;
            sum->chunks_direct += sub->counts.chunks_direct;
        }
    }
    if (g->leaf)
        sum->chunks_done += s->end - s->first;
out:
    s->w = g->w;
    return st;
}

static void release_batch(struct zr_shard_group *g)
{
    struct zr_pool *pool = g->w->io->engine->pool;

    for (uint32_t i = 0; i < g->n; i++)
        zr_pool_give(pool, g->sub ? &g->sub[i].block : &g->leaf[i].kept);
    g->n = 0;
    zr_arena_reset(&g->lists);
}

/* Collects the next inner chunks that change, of one shard after the other. */
static zarr_status fill_batch(struct zr_shard_group *g, zarr_error *err)
{
    struct zr_projection proj;

    for (uint32_t k = 0; k < g->n_shards; k++)
        g->writer[k].first = g->writer[k].end = 0;
    while (g->n < g->most && g->next < g->n_shards) {
        struct zr_shard_writer *s = &g->writer[g->next];

        g->failed = g->next;
        if (!g->projector)
            ZR_CHECK(zr_project_open_inner(
                &g->projector, g->w->io->engine->alloc, s->sw->proj, s->lv->inner_shape,
                s->lv->permuted ? s->lv->order : NULL, s->sw->clip, err));
        if (!zr_next_unit(g->w->io, g->projector, &proj)) {
            zr_project_free(g->projector);
            g->projector = NULL;
            g->next++;
            continue;
        }
        if (!zr_projection_keep(&g->proj[g->n], &proj, &g->lists))
            return zr_fail_memory(err, sizeof proj);
        if (s->end == 0)
            s->first = g->n;
        g->owner[g->n++] = g->next;
        s->end = g->n;
    }
    return ZARR_OK;
}

/* Encodes the next inner chunks and appends them. err is not NULL. */
static zarr_status write_batch(struct zr_shard_group *g, zarr_error *err)
{
    const struct zr_parallel_options opts = {
        .max_threads = g->threads, .grain = 1, .item_ns = 2000 + g->in->decoded_bytes};
    const bool each = g->leaf && !g->together;
    zarr_status st = ZARR_OK;

    ZR_TRY(fill_batch(g, err));
    if (g->n == 0)
        goto out;
    g->reserved = false;
    g->reserves = g->owner[0];
    for (uint32_t i = 0; i < g->n && !each; i++) {
        g->failed = g->owner[i];
        ZR_TRY(make_inner(g, g->w, i, err));
    }
    if (each)
        st = zr_workers_run(g->w, g->n, &opts, encode_inner, g, err);
    else if (g->leaf)
        st = zr_group_encode_leaves(g, err);
    else
        st = zr_shards_write(g->w, g->sub, g->n, g->threads, err);
    if (st != ZARR_OK)
        g->failed = err->item < g->n ? g->owner[err->item] : g->reserves;
    ZR_TRY(st);
    if (!g->reserved)
        ZR_TRY(each_shard(g, append_inners, err));
    release_batch(g);
out:
    return st;
}

/* ---- the group ------------------------------------------------------------------ */

/* Number of inner chunks encoded before they are appended: at least two per thread, and
 * beyond that no more than fit a few MiB, `most` at most. */
static uint32_t inner_batch(const struct zr_level *in, uint32_t threads, uint32_t most)
{
    uint64_t n = BATCH_BYTES / ZR_MAX(in->encoded_bound, UINT64_C(1));

    n = ZR_MAX(n, 2 * (uint64_t)ZR_MAX(threads, 1u));
    return (uint32_t)ZR_MIN(n, (uint64_t)most);
}

/* How many of all inner chunks of a device are encoded at once. */
static uint32_t most_of_device(const struct zr_io *io, const struct zr_level *in,
                               uint64_t all)
{
    const uint32_t threads = zr_io_threads(io);
    const uint64_t wave = zr_io_wave_bytes(io) / ZR_MAX(in->decoded_bytes, UINT64_C(1));
    uint64_t most = ZR_MIN(ZR_MAX(wave, (uint64_t)threads), (uint64_t)LEAVES_MOST);

    most = ZR_MIN(most, (uint64_t)(in->is_shard ? inner_batch(in, threads, LEAVES_MOST)
                                                : zr_device_most(io, in, true, true,
                                                                 zr_write_flights(io))));
    return (uint32_t)ZR_MIN(all, most);
}

uint64_t zr_shards_on_device(const struct zr_io *io, const struct zr_level *lv,
                             uint32_t n)
{
    const struct zr_layout *l = io->layout;
    const struct zr_level *leaf = &l->level[l->n_levels - 1];
    uint64_t all = zr_mul_cap(lv->n_inner_all, n);

    for (uint32_t i = 1; i + 1 < l->n_levels; i++)
        all = zr_mul_cap(all, l->level[i].n_inner_all);
    return zr_add_cap(zr_device_need(io, leaf, true, true, most_of_device(io, leaf, all)),
                      zr_shard_is_made_there(io, lv) ? zr_mul_cap(lv->encoded_bound, n)
                                                     : 0);
}

static uint32_t group_most(const struct zr_shard_group *g)
{
    const struct zr_io *io = g->w->io;
    const struct zr_shard_stream *stream = g->sw->stream;
    const uint64_t all = zr_mul_cap(g->sw->lv->n_inner_all, g->n_shards);
    uint32_t most = 0;

    if (g->together && !zr_io_is_host(io, io->view.base.device_type))
        return most_of_device(io, g->in, all);
    most = inner_batch(g->in, g->threads, INNERS_MOST);
    if (stream)
        most = ZR_MIN(most, stream->batch);
    if (stream && stream->old_bytes && g->in->is_shard)
        most = 1; /* old ones are read to the worker's scratch */
    return (uint32_t)ZR_MIN(all, (uint64_t)most);
}

/* Takes memory. `writer` is set if the caller has the only one. */
static zarr_status group_open(struct zr_shard_group *g, zarr_error *err)
{
    const struct zr_io *io = g->w->io;
    const struct zr_layout *l = io->layout;
    const zarr_allocator *alloc = io->engine->alloc;

    zr_arena_init(&g->lists, alloc);
    g->in = &l->level[g->sw->level + 1];
    /* `serial`, which tests compare others with, encodes one chunk after another */
    g->together = !io->no_direct && !g->w->on_host && !g->sw->stream &&
                  zr_is_batched(io, l->level[l->n_levels - 1].encode);
    g->most = group_most(g);
    g->proj = zr_malloc(alloc, g->most * sizeof *g->proj);
    g->owner = zr_calloc(alloc, g->most, sizeof *g->owner);
    if (!g->writer)
        g->writer =
            g->n_shards == 1 ? &g->one : zr_calloc(alloc, g->n_shards, sizeof *g->writer);
    if (g->in->is_shard)
        g->sub = zr_calloc(alloc, g->most, sizeof *g->sub);
    else
        g->leaf = zr_calloc(alloc, g->most, sizeof *g->leaf);
    if (!g->writer || !g->owner || !g->proj || (!g->sub && !g->leaf))
        return zr_fail_memory(err, g->most * sizeof *g->proj);
    g->wait = g->leaf && g->together && zr_leaf_rooms_can_wait(io, g->in);
    g->known = g->leaf && g->together && zr_leaf_length_is_known(io, g->in);
    if (g->leaf && !g->wait && !g->known)
        ZR_CHECK(zr_group_slots(g, err));
    return ZARR_OK;
}

static void group_close(struct zr_shard_group *g)
{
    const struct zr_engine *engine = g->w->io->engine;

    release_batch(g);
    zr_project_free(g->projector);
    zr_pool_give(engine->pool, &g->slots);
    zr_free(engine->alloc, g->owner);
    zr_free(engine->alloc, g->proj);
    zr_free(engine->alloc, g->leaf);
    zr_free(engine->alloc, g->sub);
    zr_arena_deinit(&g->lists);
}

zarr_status zr_shard_inners(struct zr_shard_writer *s, uint32_t threads, zarr_error *err)
{
    struct zr_shard_group g = {
        .w = s->w, .sw = s->sw, .writer = s, .n_shards = 1, .threads = threads};
    zarr_error e = ZARR_ERROR_INIT;
    zarr_status st = group_open(&g, &e);

    while (st == ZARR_OK && g.next < g.n_shards)
        st = write_batch(&g, &e);
    group_close(&g);
    return zr_pass(err, st, &e);
}

/* ---- shards --------------------------------------------------------------------- */

static zarr_status begin_shard(void *arg, uint64_t k, const struct zr_work *w,
                               zarr_error *err)
{
    struct zr_shard_group *g = arg;
    const zarr_status st = zr_shard_begin(&g->writer[k], w, &g->sw[k], err);

    g->writer[k].w = g->w;
    return st;
}

static zarr_status end_shard(void *arg, uint64_t k, const struct zr_work *w,
                             zarr_error *err)
{
    struct zr_shard_group *g = arg;

    g->writer[k].w = w;
    return zr_shard_end(&g->writer[k], err);
}

/* Whether one of n shards can be made without its old value, which may be damaged: gives
 * back what was made of all. */
static bool can_drop_old(const struct zr_work *w, struct zr_shard_write *sw, uint32_t n,
                         const zarr_stats *before)
{
    bool can = false;

    for (uint32_t k = 0; k < n; k++)
        can |= sw[k].proj->whole &&
               (sw[k].old.handle || (sw[k].stream && sw[k].stream->old_bytes));
    for (uint32_t k = 0; can && k < n; k++)
        zr_pool_give(w->io->engine->pool, &sw[k].block);
    if (can)
        zr_forget_chunks(&w->worker->stats, before);
    return can;
}

/* After an old value was damaged: writes the only shard without it, and several one by
 * one. */
static zarr_status write_again(const struct zr_work *w, struct zr_shard_write *sw,
                               uint32_t n, uint32_t threads, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (n == 1) {
        sw->old = (zarr_memory){0};
        if (sw->stream)
            sw->stream->old_bytes = 0;
    }
    for (uint32_t k = 0; k < n; k++) {
        st = zr_shards_write(w, &sw[k], 1, threads, err);
        if (st != ZARR_OK && err)
            err->item = k;
        ZR_TRY(st);
    }
out:
    return st;
}

zarr_status zr_shards_write(const struct zr_work *w, struct zr_shard_write *sw,
                            uint32_t n, uint32_t threads, zarr_error *err)
{
    const zarr_stats before = w->worker->stats;
    struct zr_shard_group g = {.w = w, .sw = sw, .n_shards = n, .threads = threads};
    zarr_error e = ZARR_ERROR_INIT;
    zarr_status st = group_open(&g, &e);

    if (st == ZARR_OK)
        st = each_shard(&g, begin_shard, &e);
    while (st == ZARR_OK && g.next < n)
        st = write_batch(&g, &e);
    if (st == ZARR_OK)
        st = each_shard(&g, end_shard, &e);
    for (uint32_t k = 0; g.writer && k < n; k++)
        zr_shard_close(&g.writer[k]);
    if (g.writer != &g.one)
        zr_free(w->io->engine->alloc, g.writer);
    group_close(&g);
    if (st == ZARR_ERR_CORRUPT && can_drop_old(w, sw, n, &before))
        return write_again(w, sw, n, threads, err);
    e.item = g.failed;
    return zr_pass(err, st, &e);
}
