/*
 * pipe/batch/encode.c - encodes leaves together, by programs with an implementation that
 * takes batches (ZARR_CODEC_BATCH), and for elements that come from a device. Gathering
 * elements and comparing them with the fill value are parallel loops over the leaves;
 * gather.c has what a device does in lists, for raw leaves, too. encode_stages.c has the
 * stages. Chunks without a shard come from write/encode_units.c, others from
 * write/shard_leaves.c.
 * Thread class: on the worker context; helpers take worker contexts.
 */
#include "pipe/batch/batch_int.h"

enum {
    GUESS_MOST = 8 /* one of so many leaves may be empty */
};

/* ---- elements ------------------------------------------------------------------- */

/* Whether a chunk's elements must be gathered into a block instead of read from the
 * caller's memory. */
static bool leaf_needs_block(const struct zr_io *io, const struct zr_leaf_write *lw)
{
    const struct zr_program *p = lw->level->encode;
    struct zr_target t;
    zarr_memory at;

    zr_target_borrow(&t, lw->proj);
    return p->padded || !lw->proj->full || !zr_target_is_direct(io, p, &t, &at);
}

bool zr_leaf_needs_room(const struct zr_io *io, const struct zr_leaf_write *lw)
{
    return !lw->level->encode->raw || leaf_needs_block(io, lw);
}

/* A program that begins with a copy to the host uses the copy that was compared with the
 * fill value. */
static bool leaves_need_host(const struct zr_batch_leaves *l)
{
    return l->w->io->skip_empty && l->p->n > 0 &&
           l->p->stage[l->p->n - 1].kind == ZR_STAGE_COPY &&
           !zr_io_is_host(l->w->io, l->p->decoded_device);
}

static zarr_status element_rooms(struct zr_batch_leaves *l, zarr_error *err)
{
    const uint64_t bytes = l->p->decoded_bytes;
    uint64_t step = bytes, host_step = bytes, n = 0;

    for (uint32_t i = 0; i < l->n && !l->p->raw; i++)
        n += leaf_needs_block(l->w->io, &l->lw[i]);
    if (n > 0)
        ZR_CHECK(
            zr_take_slices(l->w->io, l->p->decoded_device, &step, n, &l->block, err));
    if (leaves_need_host(l))
        ZR_CHECK(
            zr_take_slices(l->w->io, ZARR_DEVICE_CPU, &host_step, l->n, &l->host, err));
    n = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        struct zr_leaf_write *lw = &l->lw[i];

        lw->block = lw->host = (zarr_memory){0};
        if (l->p->raw && lw->room.handle &&
            !zr_mem_slice(&lw->room, 0, bytes, &lw->block))
            return zr_internal(err); /* the elements are what is stored */
        if (l->block.handle && leaf_needs_block(l->w->io, lw) &&
            !zr_mem_slice(&l->block, n++ * step, bytes, &lw->block))
            return zr_internal(err);
        if (l->host.handle && !zr_mem_slice(&l->host, i * host_step, bytes, &lw->host))
            return zr_internal(err);
    }
    return ZARR_OK;
}

static zarr_status prepare_one(void *arg, uint64_t i, const struct zr_work *w,
                               zarr_error *err)
{
    struct zr_batch_leaves *l = arg;
    struct zr_leaf_write *lw = &l->lw[i];
    zarr_memory elements = {0}, host = {0};
    zarr_status st = ZARR_OK;

    st = zr_leaf_prepare(w, lw, &elements, &host, err);
    zr_worker_trim(w->worker);
    ZR_TRY(st);
    l->leaf[i] =
        (struct zr_batch_leaf){.lw = lw, .cur = lw->host.handle ? host : elements};
out:
    return st;
}

/* ---- rooms ----------------------------------------------------------------------- */

bool zr_leaf_rooms_can_wait(const struct zr_io *io, const struct zr_level *lv)
{
    const struct zr_program *p = lv->encode;

    /* none: this build cannot write these codecs, and the first leaf says so */
    return p && p->n > 1 && !p->raw && p->stage[0].kind == ZR_STAGE_COPY &&
           zr_io_is_host(io, p->stage[0].in_device) &&
           !zr_io_is_host(io, p->stage[0].out_device);
}

bool zr_leaf_length_is_known(const struct zr_io *io, const struct zr_level *lv)
{
    const struct zr_program *p = lv->encode;

    return p && p->raw && p->encoded_exact && p->encoded_bound == p->decoded_bytes &&
           !zr_io_is_host(io, io->view.base.device_type);
}

/* The leaves of n programs get their rooms. If none is to be encoded again, their lengths
 * are known. */
static zarr_status late_rooms(const struct zr_batch_leaves *l, uint32_t n,
                              const struct zr_leaf_rooms *rooms, zarr_error *err)
{
    const bool in_place = l->p->stage[0].kind == ZR_STAGE_COPY && !l->flow->any_declined;

    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < l[k].n_left; i++)
            l[k].leaf[i].lw->out = l[k].leaf[i].cur;
    return rooms->take(rooms->arg, in_place, err);
}

/* ---- which leaves are encoded ----------------------------------------------------- */

/* The leaves that are encoded: those that are not empty, as far as that is known. */
static void take_left(struct zr_batch_leaves *l)
{
    for (uint32_t i = 0; i < l->n; i++) {
        if (l->lw[i].empty)
            continue;
        l->leaf[l->n_left] = l->leaf[i];
        l->leaf[l->n_left].elements = l->leaf[i].cur;
        l->n_left++;
    }
}

/* Whether the first codec begins before the comparison has said which leaves are empty.
 * It saves a wait, and costs the encoding of these leaves; so not once a request has met
 * many. */
static bool leaves_guess(const struct zr_batch_leaves *l)
{
    const struct zr_stage *s = l->p->n > 0 ? &l->p->stage[l->p->n - 1] : NULL;
    struct zarr_request *rq = l->w->rq;
    uint64_t done = l->w->worker->stats.chunks_done,
             empty = l->w->worker->stats.chunks_missing;

    if (!s || s->kind != ZR_STAGE_CODEC || !zr_stage_is_async(s) ||
        !(s->impl->vt.caps & ZARR_CODEC_BATCH) || s->in_device != l->flow->device ||
        !l->flow->stream.handle)
        return false;
    zr_request_lock(rq);
    done += rq->locked.stats.chunks_done;
    empty += rq->locked.stats.chunks_missing;
    zr_request_unlock(rq);
    return empty <= done / GUESS_MOST;
}

/* Leaves that are empty take no part any more. */
static void drop_guessed(struct zr_batch_leaves *l)
{
    uint32_t n = 0;

    zr_leaves_note_answers(l);
    for (uint32_t i = 0; i < l->n_left; i++)
        if (!l->leaf[i].lw->empty)
            l->leaf[n++] = l->leaf[i];
    l->n_left = n;
}

/* ---- leaves of several programs ------------------------------------------------- */

struct leaf_group {
    const struct zr_work *w;
    const struct zr_leaf_rooms *rooms; /* NULL: all have room */
    struct zr_batch_leaves *of;        /* by program: those that follow each other */
    uint32_t n, stages;
    struct zr_batch_leaf *leaf; /* of all */
    struct zr_flow flow;
    struct zr_arena arena;
};

/* The leaf that failed, counted from the first of all. It is one of l->leaf, or of the
 * flow's call that failed. */
static zarr_status leaf_find_failed(const struct leaf_group *g,
                                    const struct zr_batch_leaves *l, zarr_status st,
                                    zarr_error *err)
{
    if (st == ZARR_OK || !err)
        return st;
    if (g->flow.failed)
        l = g->flow.failed;
    err->item = err->item < l->n_left ? (uint64_t)(l->leaf[err->item].lw - g->of->lw)
                                      : UINT64_MAX;
    return st;
}

/* Stage k of all programs. Those that the device encodes wait once. */
static zarr_status one_stage(struct leaf_group *g, uint32_t k, zarr_error *err)
{
    bool any = false, batches = false;
    zarr_status st = ZARR_OK;

    for (uint32_t i = 0; i < g->n; i++)
        any |= g->of[i].n_left > 0;
    if (any && k + 1 == g->stages && g->rooms) {
        st = late_rooms(g->of, g->n, g->rooms, err);
        if (st != ZARR_OK && err)
            err->item = UINT64_MAX;
        ZR_TRY(st);
    }
    for (uint32_t i = 0; i < g->n; i++) {
        struct zr_batch_leaves *l = &g->of[i];

        if (l->n_left == 0)
            continue;
        ZR_TRY(leaf_find_failed(g, l, zr_leaf_stage_begin(l, k, err), err));
        batches |= zr_stage_takes_batches(l->stage);
    }
    if (batches)
        ZR_TRY(leaf_find_failed(g, g->of, zr_flow_wait(&g->flow, err), err));
    for (uint32_t i = 0; i < g->n; i++)
        zr_leaf_stage_end(&g->of[i]);
out:
    return st;
}

static bool drop_empty(struct leaf_group *g)
{
    bool dropped = false;

    g->flow.any_declined = false;
    for (uint32_t i = 0; i < g->n; i++) {
        struct zr_batch_leaves *l = &g->of[i];
        const uint32_t n = l->n_left;

        if (l->equal)
            drop_guessed(l);
        dropped |= l->n_left < n;
        for (uint32_t j = 0; j < l->n_left; j++)
            g->flow.any_declined |= l->leaf[j].again;
    }
    return dropped;
}

static void begin_again(struct leaf_group *g)
{
    g->flow.any_declined = false;
    g->flow.failed = NULL;
    for (uint32_t i = 0; i < g->n; i++) {
        g->of[i].batch.n = 0;
        for (uint32_t j = 0; j < g->of[i].n_left; j++) {
            struct zr_batch_leaf *leaf = &g->of[i].leaf[j];

            leaf->cur = leaf->elements;
            leaf->again = false;
            leaf->skip = 0;
        }
    }
}

/* The first stage. Where leaves guess, the comparison's answers come with the lengths of
 * all leaves, in one wait. If that fails, perhaps it is because of leaves that need not
 * be encoded. */
static zarr_status first_stage(struct leaf_group *g, zarr_error *err)
{
    bool guesses = false;
    zarr_error e = ZARR_ERROR_INIT;
    zarr_status st = ZARR_OK;

    for (uint32_t i = 0; i < g->n; i++)
        guesses |= g->of[i].equal != NULL;
    st = one_stage(g, 0, &e);
    if (!guesses)
        return zr_pass(err, st, &e);
    (void)zr_flow_wait(&g->flow, NULL); /* if it failed before it waited */
    if (g->flow.stream.failed)
        return zr_pass(err, st, &e);
    if (!drop_empty(g) || st == ZARR_OK)
        return zr_pass(err, st, &e);
    begin_again(g);
    return one_stage(g, 0, err);
}

static zarr_status encode_left(struct leaf_group *g, zarr_error *err)
{
    if (g->stages > 0)
        ZR_CHECK(first_stage(g, err));
    for (uint32_t k = 1; k < g->stages; k++)
        ZR_CHECK(one_stage(g, k, err));
    ZR_CHECK(leaf_find_failed(g, g->of, zr_flow_wait(&g->flow, err), err));
    for (uint32_t i = 0; i < g->n; i++) {
        struct zr_batch_leaves *l = &g->of[i];

        if (g->flow.any_declined && l->n_left > 0)
            ZR_CHECK(leaf_find_failed(g, l, zr_leaves_again(l, err), err));
        for (uint32_t j = 0; j < l->n_left; j++) {
            l->leaf[j].lw->out = l->leaf[j].cur;
            g->w->worker->stats.bytes_decoded += l->leaf[j].elements.bytes;
        }
    }
    return ZARR_OK;
}

/* The same while l->lw are in work. */
static zarr_status leaf_shift_item(const struct leaf_group *g,
                                   const struct zr_batch_leaves *l, zarr_status st,
                                   zarr_error *err)
{
    if (st != ZARR_OK && err && err->item < l->n)
        err->item += (uint64_t)(l->lw - g->of->lw);
    return st;
}

/* Makes the elements, and finds out which leaves are empty, unless they guess. */
static zarr_status prepare_all(struct leaf_group *g, zarr_error *err)
{
    const bool gathered = zr_leaves_are_gathered(g->of);
    bool waits = false;
    zarr_status st = ZARR_OK;

    for (uint32_t i = 0; i < g->n; i++) {
        struct zr_batch_leaves *l = &g->of[i];

        l->guesses = gathered && leaves_guess(l);
        ZR_TRY(element_rooms(l, err));
        if (!gathered)
            ZR_TRY(leaf_shift_item(g, l, zr_leaves_each(l, l->n, prepare_one, err), err));
    }
    if (gathered)
        ZR_TRY(zr_leaves_gather(g->of, g->n, err));
    for (uint32_t i = 0; i < g->n && gathered && g->w->io->skip_empty; i++)
        waits |= !g->of[i].equal || !g->of[i].guesses;
    if (!waits)
        goto out;
    ZR_TRY(zr_flow_wait(&g->flow, err));
    for (uint32_t i = 0; i < g->n; i++) {
        struct zr_batch_leaves *l = &g->of[i];

        if (l->equal)
            zr_leaves_note_answers(l);
        ZR_TRY(leaf_shift_item(g, l, zr_leaves_compare(l, err), err));
    }
out:
    for (uint32_t i = 0; i < g->n && st == ZARR_OK; i++)
        take_left(&g->of[i]);
    return st;
}

/* Makes one of the leaves of each level: they follow each other. */
static zarr_status group_leaves(struct leaf_group *g, struct zr_leaf_write *lw,
                                uint32_t n, uint32_t threads, zarr_error *err)
{
    uint32_t levels = 1;

    for (uint32_t i = 1; i < n; i++)
        levels += lw[i].level != lw[i - 1].level;
    g->leaf = zr_calloc(g->w->io->engine->alloc, n, sizeof *g->leaf);
    g->of = zr_arena_alloc(&g->arena, levels * sizeof *g->of);
    if (!g->leaf || !g->of)
        return zr_fail_memory(err, n * sizeof *g->leaf);
    for (uint32_t i = 0; i < n; i++) {
        if (i == 0 || lw[i].level != lw[i - 1].level)
            g->of[g->n++] = (struct zr_batch_leaves){.w = g->w,
                                                     .p = lw[i].level->encode,
                                                     .lw = &lw[i],
                                                     .threads = threads,
                                                     .leaf = g->leaf + i,
                                                     .flow = &g->flow,
                                                     .arena = &g->arena};
        g->of[g->n - 1].n++;
    }
    g->stages = g->of->p->n;
    return ZARR_OK;
}

bool zr_leaves_join(const struct zr_level *a, const struct zr_level *b)
{
    const struct zr_program *p = a->encode, *q = b->encode;

    if (a == b)
        return true;
    if (!p || !q || p->n != q->n || p->raw != q->raw ||
        p->decoded_device != q->decoded_device || p->fetch_device != q->fetch_device)
        return false;
    for (uint32_t i = 0; i < p->n; i++)
        if (p->stage[i].kind != q->stage[i].kind ||
            p->stage[i].impl != q->stage[i].impl ||
            p->stage[i].in_device != q->stage[i].in_device ||
            p->stage[i].out_device != q->stage[i].out_device)
            return false;
    return true;
}

zarr_status zr_leaves_encode(const struct zr_work *w, struct zr_leaf_write *lw,
                             uint32_t n, uint32_t threads,
                             const struct zr_leaf_rooms *rooms, zarr_error *err)
{
    struct zr_pool *pool = w->io->engine->pool;
    const zarr_allocator *alloc = w->io->engine->alloc;
    struct leaf_group g = {.w = w, .rooms = rooms};
    zarr_status st = ZARR_OK;

    zr_arena_init(&g.arena, alloc);
    ZR_TRY(zr_flow_begin(&g.flow, w, w->io->view.base.device_type, &g.arena, err));
    g.flow.encode = true;
    g.flow.declined = zr_leaf_note_declined;
    ZR_TRY(group_leaves(&g, lw, n, threads, err));
    ZR_TRY(prepare_all(&g, err));
    ZR_TRY(encode_left(&g, err));
out:
    zr_flow_end(&g.flow);
    for (uint32_t i = 0; i < g.n; i++) {
        zr_pool_give(pool, &g.of[i].block);
        zr_pool_give(pool, &g.of[i].host);
        zr_pool_give(pool, &g.of[i].slab[0]);
        zr_pool_give(pool, &g.of[i].slab[1]);
    }
    zr_free(alloc, g.leaf);
    zr_arena_deinit(&g.arena);
    return st;
}
