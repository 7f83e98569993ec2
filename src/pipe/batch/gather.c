/*
 * pipe/batch/gather.c - what a device does in lists when leaves are encoded: it
 * gathers the elements of all leaves over what was there before, compares them with the
 * fill value, and copies them to the host or from there. The elements of raw leaves go at
 * once to the memory from which they are stored: of the host, or of the device if the
 * store reaches it. Only the answers of the comparison come to the host, unless elements
 * do so anyway; then the host compares what it gets.
 * Thread class: on the worker context.
 */
#include "pipe/batch/batch_int.h"

bool zr_leaves_are_gathered(const struct zr_batch_leaves *l)
{
    const struct zr_program *p = l->p;

    return l->flow->device != 0 && (p->raw || p->decoded_device == l->flow->device) &&
           !p->padded && !p->variable;
}

/* ---- what was there before ------------------------------------------------------ */

/* Whether a leaf keeps elements that the caller does not write. */
static bool keeps_some(const struct zr_batch_leaves *l, const struct zr_leaf_write *lw)
{
    return !zr_leaf_is_covered(lw->proj, l->p->decoded_bytes / l->p->item_bytes);
}

static zarr_status old_one(void *arg, uint64_t i, const struct zr_work *w,
                           zarr_error *err)
{
    const struct zr_batch_leaves *l = arg;
    const struct zr_leaf_write *lw = &l->lw[i];

    if (!lw->old.handle || !keeps_some(l, lw))
        return ZARR_OK;
    return zr_leaf_before(w, lw, &lw->block, err);
}

/* Decodes the old values one by one. So those of raw leaves are copied, and damaged ones
 * are found. */
static zarr_status old_each(struct zr_batch_leaves *l,
                            const struct zr_batch_leaves *first, zarr_error *err)
{
    const struct zr_parallel_options opts = {
        .max_threads = l->threads, .grain = 1, .item_ns = 2000 + l->p->decoded_bytes};

    const zarr_status st = zr_workers_run(l->w, l->n, &opts, old_one, l, err);

    if (st != ZARR_OK && err && err->item < l->n)
        err->item += (uint64_t)(l->lw - first->lw);
    return st;
}

/* Whether old values are decoded together, with those of other programs. */
static bool decodes_together(const struct zr_batch_leaves *l)
{
    const struct zr_program *p = l->lw[0].level->decode;

    if (p->n == 0 || !zr_is_batched(l->w->io, p))
        return false;
    /* the value of a shard is on the host, even if the store could bring it here */
    for (uint32_t i = 0; i < l->n; i++)
        if (l->lw[i].old.handle && l->lw[i].old.device_type != p->fetch_device)
            return false;
    return true;
}

/* Adds the old values of one program, and to `leaf` which leaves they belong to. */
static void old_add(const struct zr_batch_leaves *l, struct zr_batch *to,
                    const struct zr_batch_leaves *first, uint32_t *leaf)
{
    to->p = l->lw[0].level->decode;
    for (uint32_t i = 0; i < l->n; i++) {
        const struct zr_leaf_write *lw = &l->lw[i];

        if (!lw->old.handle || !keeps_some(l, lw))
            continue;
        leaf[to->n] = (uint32_t)(lw - first->lw);
        to->item[to->n++] =
            (struct zr_batch_item){.into = lw->block, .encoded = lw->old, .cur = lw->old};
    }
}

/* Decodes old values into the blocks. */
static zarr_status old_together(struct zr_batch_leaves *l, uint32_t n, zarr_error *err)
{
    uint32_t all = 0, n_to = 0, n_old = 0;
    struct zr_batch *to = zr_arena_alloc(l->arena, n * sizeof *to);
    struct zr_batch_item *item = NULL;
    zarr_error e = ZARR_ERROR_INIT;
    uint32_t *leaf = NULL;
    zarr_status st = ZARR_OK;

    for (uint32_t k = 0; k < n; k++)
        all += l[k].n;
    item = zr_arena_alloc(l->arena, all * sizeof *item);
    leaf = zr_arena_alloc(l->arena, all * sizeof *leaf);
    if (!to || !item || !leaf)
        return zr_fail_memory(err, all * sizeof *item);
    for (uint32_t k = 0; k < n; k++) {
        if (!decodes_together(&l[k])) {
            ZR_TRY(old_each(&l[k], l, err));
            continue;
        }
        to[n_to] = (struct zr_batch){.item = item + n_old};
        old_add(&l[k], &to[n_to], l, leaf + n_old);
        n_old += to[n_to].n;
        n_to += to[n_to].n > 0;
    }
    if (n_old == 0)
        goto out;
    st = zr_batch_blocks(l->w, to, n_to, l->arena, &e);
    if (st != ZARR_ERR_CORRUPT) {
        e.item = e.item < n_old ? leaf[e.item] : UINT64_MAX;
        return zr_pass(err, st, &e);
    }
    st = ZARR_OK; /* perhaps it does not matter */
    for (uint32_t k = 0; k < n; k++)
        if (decodes_together(&l[k]))
            ZR_TRY(old_each(&l[k], l, err));
out:
    return st;
}

/* Decodes the old values into the blocks, and fills the blocks of leaves that have
 * none. */
static zarr_status blocks_before(struct zr_batch_leaves *l, uint32_t n, zarr_error *err)
{
    struct zr_box_list list = {0};
    uint32_t n_old = 0;
    zarr_status st = ZARR_OK;

    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < l[k].n; i++) {
            const struct zr_leaf_write *lw = &l[k].lw[i];

            if (!keeps_some(&l[k], lw))
                continue;
            if (lw->old.handle) {
                n_old++;
                continue;
            }
            if (!list.flow)
                ZR_TRY(zr_box_list_open(&list, l->flow, false, err));
            ZR_TRY(zr_box_list_block(&list, lw->missing ? lw->missing : lw->level, l[k].p,
                                     &lw->block, err));
        }
    if (list.flow)
        ZR_TRY(zr_box_list_send(&list, err));
    if (n_old > 0)
        ZR_TRY(old_together(l, n, err));
out:
    zr_box_list_close(&list);
    return st;
}

/* ---- elements ------------------------------------------------------------------- */

/* Counts a leaf. One that has no block is in the tensor as it is. */
static zarr_status gather_begin(struct zr_batch_leaves *l, uint32_t i, zarr_error *err)
{
    zarr_stats *stats = &l->w->worker->stats;
    struct zr_leaf_write *lw = &l->lw[i];
    struct zr_batch_leaf *leaf = &l->leaf[i];
    struct zr_target t;

    *leaf = (struct zr_batch_leaf){.lw = lw, .cur = lw->block};
    lw->empty = lw->filled = false;
    stats->elements += zr_projection_items(lw->proj);
    stats->chunks_done++;
    if (lw->block.handle)
        return ZARR_OK;
    stats->chunks_direct++;
    zr_target_borrow(&t, lw->proj);
    return zr_target_is_direct(l->w->io, l->p, &t, &leaf->cur) ? ZARR_OK
                                                               : zr_internal(err);
}

/* Adds the boxes of one rank. `ranks` NULL: the leaf has elements of one part, of rank
 * 0. */
static zarr_status gather_rank(struct zr_batch_leaves *l, const struct zr_leaf_write *lw,
                               const uint32_t *ranks, uint32_t rank,
                               struct zr_box_list *list, zarr_error *err)
{
    struct zr_target t;
    uint32_t k = 0;

    for (const struct zr_projection *q = lw->proj; q; q = q->next, k++) {
        if ((ranks ? ranks[k] : 0) != rank)
            continue;
        zr_target_borrow(&t, q);
        if (!zr_target_last(&t, l->arena))
            return zr_fail_memory(err, t.n_items);
        ZR_CHECK(zr_box_list_target(list, l->p, &t, &lw->block, err));
    }
    return ZARR_OK;
}

/* Counts the leaves, and finds which parts of each overlap. Returns the most ranks. */
static zarr_status gather_ranks(struct zr_batch_leaves *l, uint32_t ***ranks,
                                uint32_t *most, zarr_error *err)
{
    uint32_t n = 1;

    *ranks = zr_arena_alloc(l->arena, l->n * sizeof(uint32_t *));
    if (!*ranks)
        return zr_fail_memory(err, l->n * sizeof(uint32_t *));
    for (uint32_t i = 0; i < l->n; i++) {
        ZR_CHECK(gather_begin(l, i, err));
        if (!zr_projection_ranks(l->lw[i].proj, &(*ranks)[i], &n, l->arena))
            return zr_fail_memory(err, n);
        *most = ZR_MAX(*most, n);
    }
    return ZARR_OK;
}

/* The boxes of one list do not overlap: where parts do, the later one is in a later
 * list. */
static zarr_status gather_all(struct zr_batch_leaves *l, uint32_t n, zarr_error *err)
{
    uint32_t ***ranks = zr_arena_alloc(l->arena, n * sizeof(uint32_t **));
    struct zr_box_list list = {0};
    uint32_t most = 1;
    zarr_status st = ZARR_OK;

    if (!ranks)
        return zr_fail_memory(err, n * sizeof(uint32_t **));
    for (uint32_t k = 0; k < n; k++)
        ZR_TRY(gather_ranks(&l[k], &ranks[k], &most, err));
    ZR_TRY(zr_box_list_open(&list, l->flow, true, err));
    for (uint32_t rank = 0; rank < most; rank++) {
        for (uint32_t k = 0; k < n; k++)
            for (uint32_t i = 0; i < l[k].n; i++)
                if (l[k].lw[i].block.handle)
                    ZR_TRY(
                        gather_rank(&l[k], &l[k].lw[i], ranks[k][i], rank, &list, err));
        ZR_TRY(zr_box_list_send(&list, err));
    }
out:
    zr_box_list_close(&list);
    return st;
}

/* ---- copies --------------------------------------------------------------------- */

/* Queues copies of n runs. */
static zarr_status copy_runs(struct zr_batch_leaves *l, const zarr_memory *dst,
                             const zarr_memory *src, uint32_t n, zarr_error *err)
{
    return zr_mem_copy_list(l->w->io->engine->memory, dst, src, n, &l->flow->stream,
                            &l->w->worker->copies, err);
}

static zarr_status alloc_runs(struct zr_batch_leaves *l, zarr_memory **dst,
                              zarr_memory **src, zarr_error *err)
{
    *dst = zr_arena_alloc(l->arena, l->n * sizeof **dst);
    *src = zr_arena_alloc(l->arena, l->n * sizeof **src);
    return *dst && *src ? ZARR_OK : zr_fail_memory(err, l->n * sizeof **dst);
}

zarr_status zr_leaves_copy(struct zr_batch_leaves *l, zarr_error *err)
{
    zarr_stats *stats = &l->w->worker->stats;
    const bool elements = l->stage == &l->p->stage[l->p->n - 1];
    zarr_memory *dst = NULL, *src = NULL;
    zarr_status st = ZARR_OK;
    uint32_t n = 0;

    ZR_TRY(alloc_runs(l, &dst, &src, err));
    for (uint32_t i = 0; i < l->n_left; i++) {
        struct zr_batch_leaf *leaf = &l->leaf[i];

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

/* Whether all elements come to the host: raw ones for a store that reaches no device, and
 * those of codecs that work there. Some of the shards of a batch may be on the device. */
static bool are_on_host(const struct zr_batch_leaves *l)
{
    uint32_t i = 0;

    while (i < l->n && zr_io_is_host(l->w->io, l->leaf[i].cur.device_type))
        i++;
    return i == l->n;
}

static zarr_status compare_one(void *arg, uint64_t i, const struct zr_work *w,
                               zarr_error *err)
{
    struct zr_batch_leaves *l = arg;

    return zr_leaf_compare(w, &l->lw[i], &l->leaf[i].cur, err);
}

/* Copies all elements to the host, where encoding goes on. */
static zarr_status copy_to_host(struct zr_batch_leaves *l, zarr_error *err)
{
    zarr_memory *dst = NULL, *src = NULL;

    ZR_CHECK(alloc_runs(l, &dst, &src, err));
    for (uint32_t i = 0; i < l->n; i++) {
        dst[i] = l->lw[i].host;
        src[i] = l->leaf[i].cur;
        l->leaf[i].cur = l->lw[i].host;
    }
    l->w->worker->stats.copies_decoded_host += l->n;
    return copy_runs(l, dst, src, l->n, err);
}

zarr_status zr_leaves_compare(struct zr_batch_leaves *l, zarr_error *err)
{
    const struct zr_parallel_options opts = {
        .max_threads = l->threads, .grain = 1, .item_ns = l->p->decoded_bytes / 16};

    if (!l->w->io->skip_empty || !are_on_host(l))
        return ZARR_OK;
    return zr_workers_run(l->w, l->n, &opts, compare_one, l, err);
}

void zr_leaves_note_answers(struct zr_batch_leaves *l)
{
    for (uint32_t i = 0; i < l->n; i++)
        zr_leaf_note_answer(l->w, &l->lw[i], l->equal[i], l->filled[i]);
    l->equal = l->filled = NULL;
}

/* Queues the comparison. Only the answers come to the host. */
static zarr_status compare_on_device(struct zr_batch_leaves *l, zarr_error *err)
{
    const struct zr_level *lv = l->lw[0].level;
    zarr_memory *runs = zr_arena_alloc(l->arena, l->n * sizeof *runs);
    uint8_t *equal = zr_arena_alloc(l->arena, 2 * (size_t)l->n);
    const struct zr_leaf_answers a = {.elements = runs,
                                      .n = l->n,
                                      .equal = equal,
                                      .filled =
                                          lv->own_fill && equal ? equal + l->n : equal};

    if (!runs || !equal)
        return zr_fail_memory(err, l->n * sizeof *runs);
    for (uint32_t i = 0; i < l->n; i++)
        runs[i] = l->leaf[i].cur;
    ZR_CHECK(zr_leaves_ask(l->w, lv, &a, &l->flow->stream, err));
    l->equal = a.equal;
    l->filled = a.filled;
    return ZARR_OK;
}

zarr_status zr_leaves_gather(struct zr_batch_leaves *l, uint32_t n, zarr_error *err)
{
    uint32_t all = 0;
    zarr_status st = ZARR_OK;

    for (uint32_t k = 0; k < n; k++)
        all += l[k].n;
    ZR_TRY(blocks_before(l, n, err));
    ZR_TRY(gather_all(l, n, err));
    for (uint32_t k = 0; k < n && l->w->io->skip_empty; k++)
        if (l[k].host.handle)
            ZR_TRY(copy_to_host(&l[k], err));
        else if (!are_on_host(&l[k]))
            ZR_TRY(compare_on_device(&l[k], err));
out:
    if (st != ZARR_OK && err && err->item >= all)
        err->item = UINT64_MAX;
    return st;
}
