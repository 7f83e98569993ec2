/*
 * pipe/write/batch_shards.c - makes the new values of several shards together. Their
 * leaves are encoded in one batch, or in few if there are many, whatever shard they
 * belong to; each is then appended to its own (shard_value.c). Nested shards are one
 * group of the same kind, one level deeper, at most limits.shard_depth deep. Thread
 * class: on the worker context; helpers take contexts of their own.
 */
#include "pipe/write/shard_int.h"

enum {
    LEAVES_MOST = 4096
};

/* Inner chunks of several shards that are encoded at once. */
struct shard_group {
    const struct zr_work *w;
    const struct zr_level *in; /* level of the inner chunks */
    struct zr_shard_writer *writer;
    uint32_t *owner; /* by inner chunk: the writer */
    struct zr_projection *proj;
    struct zr_leaf_write *leaf; /* one of these */
    struct zr_shard_write *sub;
    uint32_t n, most, threads;
    bool wait;           /* leaves get their rooms late, in their shards if possible */
    bool known;          /* leaves have their rooms in their shards from the beginning */
    bool reserved;       /* those of this batch have them in their shards */
    zarr_memory slots;   /* rooms outside of shards */
    uint64_t slot_bytes; /* distance between two */
    struct zr_arena lists;
    uint64_t failed;   /* the shard */
    uint32_t reserves; /* the shard that was given rooms last */
};

static void give_subs(struct shard_group *g)
{
    for (uint32_t i = 0; g->sub && i < g->n; i++)
        zr_pool_give(g->w->io->engine->pool, &g->sub[i].block);
}

/* ---- encoding ------------------------------------------------------------------- */

static struct zr_inner_result inner_result(const struct shard_group *g, uint32_t i)
{
    if (g->sub)
        return (struct zr_inner_result){
            .out = g->sub[i].out, .empty = g->sub[i].empty, .filled = g->sub[i].filled};
    return (struct zr_inner_result){
        .out = g->leaf[i].out, .empty = g->leaf[i].empty, .filled = g->leaf[i].filled};
}

static zarr_status make_inner(struct shard_group *g, uint32_t i, zarr_error *err)
{
    const struct zr_shard_writer *s = &g->writer[g->owner[i]];
    zarr_memory room;

    if (g->sub)
        return zr_shard_begin_nested(s, s->w, &g->proj[i], &g->sub[i], err);
    if (g->wait || g->known)
        room = (zarr_memory){0};
    else if (!zr_mem_slice(&g->slots, i * g->slot_bytes, g->in->encoded_bound, &room))
        return zr_internal(err);
    return zr_shard_leaf(s, s->w, &g->proj[i], &room, &g->leaf[i], err);
}

static zarr_status take_slots(struct shard_group *g, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (g->slots.handle)
        return ZARR_OK;
    g->slot_bytes = g->in->encoded_bound;
    ZR_TRY(zr_take_slices(g->w->io, g->in->encode->fetch_device, &g->slot_bytes, g->most,
                          &g->slots, err));
out:
    return st;
}

/* For struct zr_leaf_rooms: in the shards if the lengths are known, else in slots. */
static zarr_status late_leaf_rooms(void *arg, bool in_place, zarr_error *err)
{
    struct shard_group *g = arg;
    zarr_status st = ZARR_OK;

    g->reserved = in_place;
    if (!in_place)
        ZR_TRY(take_slots(g, err));
    for (uint32_t i = 0; i < g->n && in_place; i++) {
        const struct zr_inner_result r = inner_result(g, i);

        g->reserves = g->owner[i];
        ZR_TRY(zr_shard_reserve(&g->writer[g->owner[i]], &g->proj[i], &r, err));
    }
    for (uint32_t i = 0; i < g->n; i++) {
        struct zr_leaf_write *lw = &g->leaf[i];

        if (lw->empty)
            continue;
        if (in_place
                ? !zr_shard_find_reserved(&g->writer[g->owner[i]], &g->proj[i], &lw->room)
                : !zr_mem_slice(&g->slots, i * g->slot_bytes, g->in->encoded_bound,
                                &lw->room))
            return zr_internal(err);
    }
out:
    if (st != ZARR_OK && err)
        err->item = UINT64_MAX;
    return st;
}

/* Leaves whose lengths are known have rooms in their shards, as if none were empty. */
static zarr_status early_leaf_rooms(struct shard_group *g, zarr_error *err)
{
    for (uint32_t i = 0; i < g->n; i++) {
        g->leaf[i].out.bytes = g->in->encoded_bound;
        g->leaf[i].filled = true;
    }
    return late_leaf_rooms(g, true, err);
}

/* Takes back the rooms of the leaves that turned out to be empty. */
static zarr_status early_answers(struct shard_group *g, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (uint32_t i = 0; i < g->n; i++) {
        const struct zr_inner_result r = inner_result(g, i);

        g->reserves = g->owner[i];
        zr_shard_note_answer(&g->writer[g->owner[i]], &g->proj[i], &r);
        if (i + 1 == g->n || g->owner[i + 1] != g->owner[i])
            ZR_TRY(zr_shard_close_gaps(&g->writer[g->owner[i]], err));
    }
out:
    if (st != ZARR_OK && err)
        err->item = UINT64_MAX;
    return st;
}

static zarr_status encode_inners(struct shard_group *g, zarr_error *err)
{
    const struct zr_leaf_rooms rooms = {.take = late_leaf_rooms, .arg = g};
    zarr_status st = ZARR_OK;

    g->reserved = false;
    g->reserves = g->owner[0];
    if (g->sub)
        return zr_shards_write(g->w, g->sub, g->n, err);
    if (g->known)
        ZR_TRY(early_leaf_rooms(g, err));
    ZR_TRY(
        zr_leaves_encode(g->w, g->leaf, g->n, g->threads, g->wait ? &rooms : NULL, err));
    if (g->known)
        ZR_TRY(early_answers(g, err));
out:
    return st;
}

static zarr_status encode_group(struct shard_group *g, zarr_error *err)
{
    zarr_error e = ZARR_ERROR_INIT;
    zarr_status st = ZARR_OK;

    for (uint32_t i = 0; i < g->n; i++) {
        g->failed = g->owner[i];
        ZR_TRY(make_inner(g, i, err));
    }
    if (g->n == 0)
        return ZARR_OK;
    st = encode_inners(g, &e);
    if (st != ZARR_OK)
        g->failed = e.item < g->n ? g->owner[e.item] : g->reserves;
    ZR_TRY(zr_pass(err, st, &e));
    for (uint32_t i = 0; i < g->n && !g->reserved; i++) {
        const struct zr_inner_result r = inner_result(g, i);

        g->failed = g->owner[i];
        ZR_TRY(zr_shard_append(&g->writer[g->owner[i]], &g->proj[i], &r, err));
    }
    give_subs(g);
    g->n = 0;
    zr_arena_reset(&g->lists);
out:
    return st;
}

/* Adds the inner chunks of shard k that change. */
static zarr_status add_shard(struct shard_group *g, uint32_t k, zarr_error *err)
{
    struct zr_projector *p = NULL;
    struct zr_projection proj;
    zarr_status st = ZARR_OK;

    g->failed = k;
    ZR_TRY(zr_shard_project(&g->writer[k], &p, err));
    while (zr_next_unit(g->w->io, p, &proj)) {
        if (g->n == g->most)
            ZR_TRY(encode_group(g, err));
        g->failed = k;
        g->owner[g->n] = k;
        if (!zr_projection_keep(&g->proj[g->n], &proj, &g->lists))
            ZR_FAIL_MEMORY(err, sizeof proj);
        g->n++;
    }
out:
    zr_project_free(p);
    return st;
}

/* ---- the group ------------------------------------------------------------------ */

/* How many of all inner chunks of a level are encoded at once. */
static uint32_t group_most(const struct zr_io *io, const struct zr_level *in,
                           uint64_t all)
{
    const uint32_t threads = zr_io_threads(io);
    const uint64_t wave = zr_io_wave_bytes(io) / ZR_MAX(in->decoded_bytes, UINT64_C(1));
    uint64_t most = ZR_MIN(ZR_MAX(wave, (uint64_t)threads), (uint64_t)LEAVES_MOST);

    most = ZR_MIN(most, (uint64_t)(in->is_shard ? zr_inner_batch(in, threads, LEAVES_MOST)
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
    return zr_device_need(io, leaf, true, true, group_most(io, leaf, all));
}

static zarr_status group_room(struct shard_group *g, uint32_t n_shards,
                              const struct zr_level *lv, zarr_error *err)
{
    const zarr_allocator *alloc = g->w->io->engine->alloc;
    zarr_status st = ZARR_OK;

    g->most = group_most(g->w->io, g->in, zr_mul_cap(lv->n_inner_all, n_shards));
    g->writer = zr_calloc(alloc, n_shards, sizeof *g->writer);
    g->owner = zr_calloc(alloc, g->most, sizeof *g->owner);
    g->proj = zr_malloc(alloc, g->most * sizeof *g->proj);
    if (g->in->is_shard)
        g->sub = zr_calloc(alloc, g->most, sizeof *g->sub);
    else
        g->leaf = zr_calloc(alloc, g->most, sizeof *g->leaf);
    if (!g->writer || !g->owner || !g->proj || (!g->sub && !g->leaf))
        ZR_FAIL_MEMORY(err, g->most * sizeof *g->proj);
    g->wait = g->leaf && zr_leaf_rooms_can_wait(g->w->io, g->in);
    g->known = g->leaf && zr_leaf_length_is_known(g->w->io, g->in);
    if (g->leaf && !g->wait && !g->known)
        ZR_TRY(take_slots(g, err));
out:
    return st;
}

static void group_free(struct shard_group *g, uint32_t n_shards)
{
    const struct zr_engine *engine = g->w->io->engine;

    give_subs(g);
    for (uint32_t k = 0; g->writer && k < n_shards; k++)
        zr_shard_close(&g->writer[k]);
    zr_pool_give(engine->pool, &g->slots);
    zr_free(engine->alloc, g->writer);
    zr_free(engine->alloc, g->owner);
    zr_free(engine->alloc, g->proj);
    zr_free(engine->alloc, g->leaf);
    zr_free(engine->alloc, g->sub);
    zr_arena_deinit(&g->lists);
}

static zarr_status write_shards(const struct zr_work *w, struct zr_shard_write *sw,
                                uint32_t n, uint64_t *failed, zarr_error *err)
{
    struct shard_group g = {.w = w,
                            .in = &w->io->layout->level[sw[0].level + 1],
                            .threads = zr_io_threads(w->io)};
    zarr_status st = ZARR_OK;

    zr_arena_init(&g.lists, w->io->engine->alloc);
    ZR_TRY(group_room(&g, n, sw[0].lv, err));
    for (uint32_t k = 0; k < n; k++) {
        g.failed = k;
        ZR_TRY(zr_shard_begin(&g.writer[k], w, &sw[k], err));
        ZR_TRY(add_shard(&g, k, err));
    }
    ZR_TRY(encode_group(&g, err));
    for (uint32_t k = 0; k < n; k++) {
        g.failed = k;
        ZR_TRY(zr_shard_end(&g.writer[k], err));
    }
out:
    *failed = g.failed;
    group_free(&g, n);
    return st;
}

/* Whether a damaged old value is to be ignored. */
static bool may_ignore_old(const struct zr_shard_write *sw, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        if (sw[k].proj->whole && sw[k].old.handle)
            return true;
    return false;
}

zarr_status zr_shards_write(const struct zr_work *w, struct zr_shard_write *sw,
                            uint32_t n, zarr_error *err)
{
    const zarr_stats before = w->worker->stats;
    zarr_error e = ZARR_ERROR_INIT;
    uint64_t failed = 0;
    zarr_status st = write_shards(w, sw, n, &failed, &e);

    if (st != ZARR_ERR_CORRUPT || !may_ignore_old(sw, n)) {
        e.item = failed;
        return zr_pass(err, st, &e);
    }
    /* one by one, each as if it were alone */
    zr_forget_chunks(&w->worker->stats, &before);
    for (uint32_t k = 0; k < n; k++)
        zr_pool_give(w->io->engine->pool, &sw[k].block);
    for (uint32_t k = 0; k < n; k++) {
        st = zr_shard_write(w, &sw[k], err);
        if (st != ZARR_OK && err)
            err->item = k;
        ZR_TRY(st);
    }
out:
    return st;
}
