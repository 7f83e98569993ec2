/*
 * pipe/batch/encode_stages.c - takes the leaves of one program through one stage: in a
 * batch of the implementation, in lists (gather.c), or in a parallel loop. Leaves that an
 * implementation declines are encoded alone at the end. encode.c calls this for each
 * stage.
 * Thread class: on the worker context; helpers take worker contexts.
 */
#include "pipe/batch/batch_int.h"

zarr_status zr_leaves_each(struct zr_batch_leaves *l, uint64_t n, zr_work_fn fn,
                           zarr_error *err)
{
    const struct zr_parallel_options opts = {
        .max_threads = l->threads, .grain = 1, .item_ns = 2000 + l->p->decoded_bytes};

    return zr_workers_run(l->w, n, &opts, fn, l, err);
}

/* Number of the current stage, counted as encoding goes. */
static uint32_t stage_number(const struct zr_batch_leaves *l, const struct zr_stage *s)
{
    return l->p->n - 1 - (uint32_t)(s - l->p->stage);
}

static zarr_status leaf_rooms(struct zr_batch_leaves *l, uint32_t k, zarr_error *err)
{
    const bool last = k + 1 == l->p->n;
    zarr_memory *slab = &l->slab[k % 2];
    uint64_t most = 0, step = 0;

    if (l->stage->kind != ZR_STAGE_COPY)
        most = l->stage->in_bytes;
    for (uint32_t i = 0; i < l->n_left && l->stage->kind == ZR_STAGE_COPY; i++)
        most = ZR_MAX(most, l->leaf[i].cur.bytes);
    step = most;
    if (!last) {
        ZR_CHECK(zr_flow_hold(l->flow, slab, err));
        ZR_CHECK(
            zr_take_slices(l->w->io, l->stage->in_device, &step, l->n_left, slab, err));
    }
    for (uint32_t i = 0; i < l->n_left; i++) {
        struct zr_batch_leaf *leaf = &l->leaf[i];

        if (last)
            leaf->next = leaf->lw->room;
        else if (!zr_mem_slice(slab, i * step, most, &leaf->next))
            return zr_internal(err);
    }
    return ZARR_OK;
}

static zarr_status single_one(void *arg, uint64_t i, const struct zr_work *w,
                              zarr_error *err)
{
    struct zr_batch_leaves *l = arg;
    struct zr_batch_leaf *leaf = &l->leaf[i];
    const uint32_t k = stage_number(l, l->stage);
    struct zr_coding c = {.p = l->p, .cur = leaf->cur, .done = k};
    zarr_status st = ZARR_OK;

    if (leaf->again)
        return ZARR_OK;
    w->worker->states.keep_empty = !w->io->skip_empty;
    st = zr_stages_run(w, &c, k + 1, &leaf->next, err);
    leaf->cur = c.cur;
    return st;
}

/* What each job belongs to, and the jobs: the leaves that were not declined. */
static zarr_status batch_of_leaves(struct zr_batch_leaves *l, zarr_codec_job **jobs,
                                   uint32_t **owner, uint32_t *n, zarr_error *err)
{
    *jobs = zr_arena_alloc(l->arena, (size_t)l->n_left * sizeof **jobs);
    *owner = zr_arena_alloc(l->arena, (size_t)l->n_left * sizeof **owner);
    *n = 0;
    if (!*jobs || !*owner)
        return zr_fail_memory(err, l->n_left * (sizeof **jobs + sizeof **owner));
    for (uint32_t i = 0; i < l->n_left; i++) {
        if (l->leaf[i].again)
            continue;
        (*jobs)[*n] = (zarr_codec_job){.src = l->leaf[i].cur, .dst = l->leaf[i].next};
        (*owner)[(*n)++] = i;
    }
    return ZARR_OK;
}

/* Begins to encode a batch. */
static zarr_status batch_begin(struct zr_batch_leaves *l, zarr_error *err)
{
    zarr_codec_job *jobs = NULL;
    uint32_t *owner = NULL, n = 0;

    ZR_CHECK(batch_of_leaves(l, &jobs, &owner, &n, err));
    l->w->worker->states.keep_empty = !l->w->io->skip_empty;
    l->batch = (struct zr_flow_jobs){.job = jobs, .of = l, .owner = owner, .n = n};
    if (n > 0)
        ZR_CHECK(zr_flow_run(l->flow, l->stage, &l->batch, err));
    return ZARR_OK;
}

void zr_leaf_stage_end(struct zr_batch_leaves *l)
{
    for (uint32_t i = 0; i < l->batch.n; i++) {
        struct zr_batch_leaf *leaf = &l->leaf[l->batch.owner[i]];

        if (leaf->again) /* it has no output */
            continue;
        leaf->cur = leaf->next;
        leaf->cur.bytes = l->batch.job[i].dst_used;
    }
    l->batch.n = 0;
}

bool zr_stage_takes_batches(const struct zr_stage *s)
{
    return s->kind == ZR_STAGE_CODEC && (s->impl->vt.caps & ZARR_CODEC_BATCH) != 0;
}

zarr_status zr_leaf_stage_begin(struct zr_batch_leaves *l, uint32_t k, zarr_error *err)
{
    l->stage = &l->p->stage[l->p->n - 1 - k];
    if (l->stage->kind == ZR_STAGE_COPY && k == 0 && l->host.handle)
        return ZARR_OK; /* the comparison made that copy */
    ZR_CHECK(leaf_rooms(l, k, err));
    if (l->stage->kind == ZR_STAGE_COPY && l->flow->device != 0)
        return zr_leaves_copy(l, err);
    if (zr_stage_takes_batches(l->stage))
        return batch_begin(l, err);
    ZR_CHECK(zr_flow_wait(l->flow, err));
    return zr_leaves_each(l, l->n_left, single_one, err);
}

/* ---- leaves that were declined -------------------------------------------------- */

void zr_leaf_note_declined(void *of, uint32_t owner, const struct zr_stage *s)
{
    struct zr_batch_leaves *l = of;
    const uint32_t k = s ? stage_number(l, s) : ZR_CODING_SKIPS;

    l->leaf[owner].again = true;
    if (k < ZR_CODING_SKIPS)
        l->leaf[owner].skip |= UINT64_C(1) << k;
}

static zarr_status encode_again(void *arg, uint64_t i, const struct zr_work *w,
                                zarr_error *err)
{
    struct zr_batch_leaves *l = arg;
    struct zr_batch_leaf *leaf = &l->leaf[i];
    struct zr_coding c = {.p = l->p, .cur = leaf->elements, .skip = leaf->skip};
    zarr_status st = ZARR_OK;

    if (!leaf->again)
        return ZARR_OK;
    c.done = l->host.handle ? 1 : 0; /* its elements were copied already */
    w->worker->states.keep_empty = !w->io->skip_empty;
    st = zr_stages_run(w, &c, l->p->n, &leaf->lw->room, err);
    leaf->cur = c.cur;
    return st;
}

zarr_status zr_leaves_again(struct zr_batch_leaves *l, zarr_error *err)
{
    return zr_leaves_each(l, l->n_left, encode_again, err);
}
