/*
 * pipe/lockstep_gather.c - what a device does in lists when leaves are encoded: it
 * gathers the elements of all leaves, compares them with the fill value, and copies them
 * to the host or from there. Only the answers of the comparison come to the host, unless
 * the codecs work there anyway; then the host compares what it gets.
 * Thread class: on the worker context.
 */
#include "pipe/lockstep_int.h"

bool zr_leaf_is_gathered(const struct zr_lock_leaves *l, const struct zr_leaf_write *lw)
{
    const struct zr_program *p = l->p;

    return l->flow.device != 0 && p->decoded_device == l->flow.device && !p->padded &&
           lw->proj->full && lw->proj->n_items == p->decoded_bytes / p->item_bytes;
}

/* ---- elements ------------------------------------------------------------------- */

static zarr_status gather_one(struct zr_lock_leaves *l, uint32_t i,
                              struct zr_box_list *list, zarr_error *err)
{
    zarr_stats *stats = &l->w->worker->stats;
    struct zr_leaf_write *lw = &l->lw[i];
    struct zr_lock_leaf *leaf = &l->leaf[i];
    struct zr_target t;

    zr_target_borrow(&t, lw->proj);
    *leaf = (struct zr_lock_leaf){.lw = lw, .cur = lw->block};
    lw->empty = lw->filled = false;
    stats->elements += t.n_items;
    stats->chunks_done++;
    if (!lw->block.handle) {
        stats->chunks_direct++;
        return zr_target_direct(l->w->io, l->p, &t, &leaf->cur) ? ZARR_OK
                                                                : zr_internal(err);
    }
    return zr_box_list_target(list, l->p, &t, &lw->block, err);
}

static zarr_status gather_all(struct zr_lock_leaves *l, uint32_t *n, zarr_error *err)
{
    struct zr_box_list list = {0};
    zarr_status st = ZARR_OK;

    *n = 0;
    ZR_TRY(zr_box_list_open(&list, &l->flow, true, err));
    for (uint32_t i = 0; i < l->n; i++) {
        if (!zr_leaf_is_gathered(l, &l->lw[i]))
            continue;
        ZR_TRY(gather_one(l, i, &list, err));
        ++*n;
    }
    ZR_TRY(zr_box_list_send(&list, err));
out:
    zr_box_list_close(&list);
    return st;
}

/* ---- copies --------------------------------------------------------------------- */

/* Queues copies of n runs. */
static zarr_status copy_runs(struct zr_lock_leaves *l, const zarr_mem *dst,
                             const zarr_mem *src, uint32_t n, zarr_error *err)
{
    return zr_mem_copy_list(l->w->io->engine->memory, dst, src, n, &l->flow.stream,
                            &l->w->worker->copies, err);
}

static zarr_status runs_of(struct zr_lock_leaves *l, zarr_mem **dst, zarr_mem **src,
                           zarr_error *err)
{
    *dst = zr_arena_alloc(&l->arena, l->n * sizeof **dst);
    *src = zr_arena_alloc(&l->arena, l->n * sizeof **src);
    return *dst && *src ? ZARR_OK : zr_fail_memory(err, l->n * sizeof **dst);
}

zarr_status zr_leaves_copy(struct zr_lock_leaves *l, zarr_error *err)
{
    zarr_stats *stats = &l->w->worker->stats;
    const bool elements = l->stage == &l->p->stage[l->p->n - 1];
    zarr_mem *dst = NULL, *src = NULL;
    zarr_status st = ZARR_OK;
    uint32_t n = 0;

    ZR_TRY(runs_of(l, &dst, &src, err));
    for (uint32_t i = 0; i < l->n_left; i++) {
        struct zr_lock_leaf *leaf = &l->leaf[i];

        if (leaf->again)
            continue;
        if (leaf->next.bytes < leaf->cur.bytes)
            ZR_TRY(zr_internal(err));
        leaf->next.bytes = leaf->cur.bytes;
        dst[n] = leaf->next;
        src[n++] = leaf->cur;
        leaf->cur = leaf->next;
    }
    stats->copies_decoded_host += elements ? n : 0;
    ZR_TRY(copy_runs(l, dst, src, n, err));
out:
    if (st != ZARR_OK && err)
        err->item = UINT64_MAX;
    return st;
}

/* ---- comparing ------------------------------------------------------------------ */

static zarr_status compare_one(void *arg, uint64_t i, const struct zr_work *w,
                               zarr_error *err)
{
    struct zr_lock_leaves *l = arg;

    if (!zr_leaf_is_gathered(l, &l->lw[i]))
        return ZARR_OK;
    return zr_leaf_compare(w, &l->lw[i], &l->leaf[i].cur, err);
}

/* Copies all elements to the host, where encoding goes on, and compares them there. */
static zarr_status compare_on_host(struct zr_lock_leaves *l, zarr_error *err)
{
    const struct zr_parallel_options opts = {
        .max_threads = l->threads, .grain = 1, .item_ns = l->p->decoded_bytes / 16};
    zarr_mem *dst = NULL, *src = NULL;
    zarr_status st = ZARR_OK;
    uint32_t n = 0;

    ZR_TRY(runs_of(l, &dst, &src, err));
    for (uint32_t i = 0; i < l->n; i++) {
        if (!zr_leaf_is_gathered(l, &l->lw[i]))
            continue;
        dst[n] = l->lw[i].host;
        src[n++] = l->leaf[i].cur;
        l->leaf[i].cur = l->lw[i].host;
    }
    l->w->worker->stats.copies_decoded_host += n;
    ZR_TRY(copy_runs(l, dst, src, n, err));
    ZR_TRY(zr_flow_wait(&l->flow, err));
    ZR_TRY(zr_workers_run(l->w, l->n, &opts, compare_one, l, err));
out:
    return st;
}

/* Whether runs of elements are copies of a value, by a list on the device. */
static zarr_status ask_device(struct zr_lock_leaves *l, const zarr_mem *runs, uint32_t n,
                              const void *value, uint8_t *equal, zarr_error *err)
{
    const struct zr_equal_list list = {.src = runs,
                                       .n = n,
                                       .pattern = value,
                                       .item_bytes = l->p->item_bytes,
                                       .equal = equal};

    return zr_mem_equal_list(l->w->io->engine->memory, &list, &l->flow.stream,
                             &l->w->worker->copies, err);
}

static zarr_status compare_on_device(struct zr_lock_leaves *l, zarr_error *err)
{
    const struct zr_level *lv = l->lw[0].level;
    zarr_mem *runs = zr_arena_alloc(&l->arena, l->n * sizeof *runs);
    uint8_t *equal = zr_arena_alloc(&l->arena, 2 * (size_t)l->n);
    uint8_t *filled = lv->own_fill && equal ? equal + l->n : equal;
    zarr_status st = ZARR_OK;
    uint32_t n = 0;

    if (!runs || !equal)
        ZR_TRY(zr_fail_memory(err, l->n * sizeof *runs));
    for (uint32_t i = 0; i < l->n; i++)
        if (zr_leaf_is_gathered(l, &l->lw[i]))
            runs[n++] = l->leaf[i].cur;
    ZR_TRY(ask_device(l, runs, n, l->p->swap_bytes > 1 ? lv->fill_swapped : lv->fill,
                      equal, err));
    if (filled != equal)
        ZR_TRY(ask_device(l, runs, n, l->w->io->layout->fill, filled, err));
    ZR_TRY(zr_flow_wait(&l->flow, err));
    n = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        if (!zr_leaf_is_gathered(l, &l->lw[i]))
            continue;
        l->lw[i].empty = equal[n];
        l->lw[i].filled = filled[n++];
        l->w->worker->stats.chunks_missing += l->lw[i].empty;
    }
out:
    return st;
}

zarr_status zr_leaves_gather(struct zr_lock_leaves *l, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    uint32_t n = 0;

    if (l->flow.device == 0)
        return ZARR_OK;
    ZR_TRY(gather_all(l, &n, err));
    if (n == 0 || !l->w->io->skip_empty)
        goto out;
    ZR_TRY(l->host.handle ? compare_on_host(l, err) : compare_on_device(l, err));
out:
    if (st != ZARR_OK && err && err->item >= l->n)
        err->item = UINT64_MAX;
    return st;
}
