/*
 * pipe/request/shard_memory.c - requests that hold the values of shards while they read
 * the chunks in them. Such a value is in memory for long, and its request takes more of
 * the budget meanwhile, so no thread waits for it there (zr_budget_keep()). So that many
 * requests at once do not hold more than the budget, each waits here before it opens such
 * shards, for all of one wave at once.
 *
 * A request that holds shards may wait for shards nested in them. So each rank has bytes
 * of its own. The outermost level that has codecs around its shards has rank 0, the next
 * such level rank 1. While a plan has shards of one rank open, it waits for higher ranks
 * only. Waves in flight hold bytes, too, but wait for none. A value larger than all bytes
 * of its rank is held alone. Thread class: shared.
 */
#include "pipe/request/request.h"

bool zr_io_holds(const struct zr_io *io)
{
    for (uint32_t i = 0; i < io->layout->n_levels; i++)
        if (io->layout->level[i].bytes_decode)
            return true;
    return false;
}

void zr_holders_init(struct zr_holders *h, uint64_t total)
{
    for (size_t i = 0; i < ZR_COUNT(h->rank); i++)
        zr_budget_init(&h->rank[i], zr_held_most(total) >> i);
}

void zr_holders_deinit(struct zr_holders *h)
{
    for (size_t i = 0; i < ZR_COUNT(h->rank); i++)
        zr_budget_deinit(&h->rank[i]);
}

static size_t holder_rank(const struct zr_layout *l, uint32_t level)
{
    size_t rank = 0;

    for (uint32_t i = 0; i < level; i++)
        rank += l->level[i].bytes_decode != NULL;
    return rank;
}

zarr_status zr_opens_hold(struct zarr_request *rq, struct zr_open *open, uint32_t n_opens,
                          zarr_error *err)
{
    struct zr_holders *const from[] = {rq->has_own ? &rq->own_holders : NULL,
                                       &rq->io.engine->holders};
    uint64_t all = 0;
    size_t rank = 0;

    if (n_opens == 0 || !open[0].lv->bytes_decode)
        return ZARR_OK;
    rank = holder_rank(rq->io.layout, open[0].level);
    if (rank >= ZR_HOLDER_RANKS)
        return ZARR_OK;
    for (uint32_t i = 0; i < n_opens; i++) {
        open[i].held.bytes = zr_body_bytes(open[i].lv);
        all = zr_add_cap(all, open[i].held.bytes);
    }
    for (size_t n = 0; n < ZR_COUNT(from); n++) {
        struct zr_budget *b = from[n] ? &from[n]->rank[rank] : NULL;
        zarr_status st = ZARR_ERR_LIMIT;

        if (b && !rq->has_waited)
            st = zr_budget_take(b, all, ZR_HOLD_WAIT_NS, &rq->cancel, err);
        if (b && st == ZARR_ERR_LIMIT)
            rq->has_waited = true;
        for (uint32_t i = 0; i < n_opens && st == ZARR_OK; i++)
            open[i].held.of[n] = b;
        if (st != ZARR_OK && st != ZARR_ERR_LIMIT)
            return st;
        zr_error_clear(err);
    }
    return ZARR_OK;
}

void zr_held_shrink(struct zr_held *h, uint64_t bytes)
{
    if (bytes >= h->bytes)
        return;
    for (size_t i = 0; i < ZR_COUNT(h->of); i++)
        if (h->of[i])
            zr_budget_give(h->of[i], h->bytes - bytes);
    h->bytes = bytes;
}

void zr_opens_let_go(struct zr_open *open, uint32_t n_opens)
{
    for (uint32_t i = 0; i < n_opens; i++)
        zr_held_shrink(&open[i].held, 0);
}
