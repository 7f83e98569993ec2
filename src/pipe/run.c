/*
 * pipe/run.c - one run of a data wave on one thread: fetch its range, and for
 * each of its chunks decode and scatter. The shortcuts live here: stored
 * elements that are wanted as they are go from the store into the caller's
 * memory, a part of an uncompressed chunk is read as ranges, the last decoder
 * writes into the destination where the layouts agree, or where it knows strides
 * (strided.c). `serial` turns them off.
 * Thread class: on the worker context.
 */
#include "pipe/pipe_int.h"

#include <stdio.h>
#include <string.h>

enum {
    RANGE_COST = 32 * 1024
}; /* one more request costs as much as so many bytes */

zarr_status zr_item_prefix(const struct zr_run *run, const struct zr_item *item,
                           zarr_status st, zarr_error *err)
{
    char at[160] = "";
    size_t n = 0;

    const char *name = run->key != NULL ? run->key : "";

    if (st == ZARR_OK || err == NULL)
        return st;
    if (run->shard != NULL && item != NULL) {
        name = run->shard->key;
        for (int32_t d = 0; d < item->target.ndim && n + 24 < sizeof(at); d++) {
            int k = snprintf(at + n, sizeof(at) - n, "%s%" PRIu64,
                             d == 0 ? " inner chunk [" : ",", item->target.chunk[d]);
            n += k > 0 ? (size_t)k : 0;
        }
        if (n + 2 < sizeof(at) && n > 0)
            memcpy(at + n, "]", 2);
    }
    return zr_prefix(err, st, "%s%s", name, at);
}

zarr_status zr_item_fill(const struct zr_work *w, const struct zr_item *item,
                         zarr_error *err)
{
    w->worker->stats.chunks_missing += item->n_chunks;
    w->worker->stats.chunks_done += item->n_chunks;
    w->worker->stats.elements += item->target.n_items;
    if (w->io->missing_error)
        return zr_fail(err, ZARR_ERR_NOT_FOUND, "the chunk is missing");
    return zr_fill_target(w, &w->io->layout->level[item->fill_level], &item->target, err);
}

static void count_item(const struct zr_work *w, const struct zr_item *item, bool direct)
{
    w->worker->stats.chunks_done++;
    w->worker->stats.chunks_direct += direct;
    w->worker->stats.elements += item->target.n_items;
}

/* ---- parts of uncompressed chunks ------------------------------------------------- */

/* Several ranges of a chunk are of one version of it: through the shard's pin or the
 * chunk's own. block: room for the whole chunk. */
static zarr_status read_spans(const struct zr_work *w, const struct zr_run *run,
                              struct zr_store_pin *pin, const struct zr_spans *s,
                              const zarr_mem *block, zarr_error *err)
{
    const uint64_t base = run->item[0]->offset;
    uint64_t at[ZARR_MAX_RANK] = {0};
    zarr_status st = ZARR_OK;

    for (uint64_t r = 0; r < s->n_reads && st == ZARR_OK; r++) {
        const uint64_t offset = zr_spans_next(s, at);
        zarr_mem dst;

        if (!zr_mem_slice(block, offset, s->read_bytes, &dst))
            return zr_internal(err);
        if (run->shard != NULL)
            st = zr_fetch_range(w, run->key, run->shard, base + offset, &dst, err);
        else
            st = zr_fetch_part(w, run->key, pin, block->bytes, offset, &dst, err);
        if (st == ZARR_OK)
            st = zr_block_unpad(w, run->level->decode, &dst, err);
        if (st == ZARR_ERR_NOT_FOUND && r > 0) /* it was there a moment ago */
            st = zr_fail(err, ZARR_ERR_CONFLICT,
                         "the chunk was deleted while it was read");
    }
    return st;
}

/* Reads only what is wanted of an uncompressed chunk into its places in a block. *done
 * false: not worth it. */
static zarr_status read_partial(const struct zr_work *w, const struct zr_program *p,
                                const struct zr_run *run, const struct zr_item *item,
                                zarr_mem *block, bool *done, zarr_error *err)
{
    struct zr_spans s = {0};
    struct zr_store_pin pin = {0}, *held = NULL;
    zarr_status st = ZARR_OK;
    int32_t id = p->fetch_device == ZARR_DEVICE_CPU ? 0 : w->io->view.base.device_id;

    *done = false;
    if (w->io->no_direct || item->target.kind != ZR_PROJ_DIMS ||
        !item->target.arithmetic || !zr_store_can(w->io->store, ZARR_STORE_CAP_RANGES) ||
        item->target.n_items * 2 > p->decoded_bytes / p->item_bytes ||
        zr_spans_choose(p, &item->target, RANGE_COST, &s) >= p->decoded_bytes)
        return ZARR_OK;
    ZR_TRY(zr_worker_scratch(w->worker, ZR_SCRATCH_A, p->fetch_device, id,
                             p->decoded_bytes, block, err));
    if (run->shard == NULL && s.n_reads > 1) {
        ZR_TRY(zr_store_pin_init(&pin, w->io->store, run->key, err));
        held = &pin;
    }
    if (pin.object_bytes != UINT64_MAX && held != NULL &&
        pin.object_bytes != p->decoded_bytes)
        goto out; /* the general way says what is wrong */
    ZR_TRY(read_spans(w, run, held, &s, block, err));
    w->worker->stats.chunks_partial++;
    w->worker->stats.bytes_decoded += s.n_reads * s.read_bytes;
    *done = true;
out:
    zr_store_pin_deinit(&pin);
    return st;
}

/* ---- one chunk ------------------------------------------------------------------------
 */

zarr_status zr_item_finish(const struct zr_work *w, const struct zr_run *run,
                           const struct zr_item *item, const zarr_mem *block, bool direct,
                           zarr_error *err)
{
    count_item(w, item, direct);
    if (direct)
        return ZARR_OK;
    return zr_scatter_target(w, run->level->decode, &item->target, block, err);
}

static zarr_status decode_item(const struct zr_work *w, const struct zr_run *run,
                               const struct zr_item *item, const zarr_mem *encoded,
                               zarr_error *err)
{
    const struct zr_program *p = run->level->decode;
    struct zr_coding c = {.p = p, .cur = *encoded};
    zarr_mem at = {0};
    /* elements of variable length point into scratch until they are moved */
    bool direct = p->n > 0 && !w->io->layout->variable &&
                  zr_target_direct(w->io, p, &item->target, &at);
    bool done = false;
    zarr_status st = ZARR_OK;

    if (!direct && !p->loose)
        ZR_TRY(zr_decode_part(w, p, item, encoded, &c.cur, &done, err));
    if (!direct && !done) {
        ZR_TRY(zr_decode_strided(w, &c, &item->target, &direct, err));
        done = direct;
    }
    if (!done) {
        if (p->loose)
            ZR_TRY(zr_decode_loose(w, p, encoded, &at, &c.cur, err));
        else
            ZR_TRY(zr_stages_run(w, &c, p->n, &at, err));
        ZR_TRY(zr_decode_end(w, p, encoded, &c.cur, err));
    }
    ZR_TRY(zr_item_finish(w, run, item, &c.cur, direct, err));
out:
    return st;
}

static zarr_status read_slabs(const struct zr_work *w, const struct zr_run *run,
                              bool *done, zarr_error *err)
{
    struct zr_slabs s;
    zarr_status st = ZARR_OK;

    *done = false;
    if (!zr_slabs_fit(w->io, run))
        return ZARR_OK;
    ZR_TRY(zr_slabs_open(&s, w->io, run, err));
    *done = s.n > 0;
    for (uint64_t i = 0; i < s.n; i++)
        ZR_TRY(zr_slabs_one(w, &s, i, err));
out:
    zr_slabs_close(&s);
    return st;
}

/* Stored elements, uncompressed: into place, in parts, or whole. *done false: go the
 * general way. */
static zarr_status read_raw(const struct zr_work *w, const struct zr_run *run, bool *done,
                            zarr_error *err)
{
    const struct zr_program *p = run->level->decode;
    const struct zr_item *item = run->item[0];
    zarr_mem at;
    zarr_status st = ZARR_OK;

    *done = false;
    if (!p->raw || run->n_items != 1 || run->key == NULL)
        return ZARR_OK;
    if (item->bytes != UINT64_MAX && item->bytes != p->decoded_bytes)
        return ZARR_OK; /* the general way says what is wrong */
    if (p->fetch_device == w->io->view.base.device_type &&
        zr_target_direct(w->io, p, &item->target, &at)) {
        if (item->bytes == UINT64_MAX)
            ZR_TRY(zr_fetch_exact(w, run->key, &at, err));
        else
            ZR_TRY(zr_fetch_range(w, run->key, run->shard, item->offset, &at, err));
        ZR_TRY(zr_block_unpad(w, p, &at, err));
        w->worker->stats.bytes_decoded += p->decoded_bytes;
        count_item(w, item, true);
        *done = true;
    } else {
        ZR_TRY(read_partial(w, p, run, item, &at, done, err));
        if (*done) {
            count_item(w, item, false);
            ZR_TRY(zr_scatter_target(w, p, &item->target, &at, err));
        }
    }
out:
    return st;
}

static zarr_status run_object(const struct zr_work *w, const struct zr_run *run,
                              zarr_mem *out, zarr_error *err)
{
    const struct zr_program *p = run->level->decode;
    struct zr_fetch f = {.key = run->key,
                         .slot = ZR_SCRATCH_FETCH,
                         .device_type = p->fetch_device,
                         .expect = p->encoded_bound,
                         .most = zr_program_most(w->io, p),
                         .gaps = p->gaps};

    return zr_fetch_object(w, &f, out, err);
}

static zarr_status run_whole(const struct zr_work *w, const struct zr_run *run,
                             const zarr_mem *fetched, zarr_error *err)
{
    zarr_mem encoded = {0};
    bool done = false;
    zarr_status st = ZARR_OK;

    if (fetched != NULL) {
        encoded = *fetched;
    } else {
        st = read_slabs(w, run, &done, err);
        if (st == ZARR_OK && !done)
            st = read_raw(w, run, &done, err);
        if (st == ZARR_OK && !done)
            st = run_object(w, run, &encoded, err);
        if (st == ZARR_ERR_NOT_FOUND) { /* the store says so: the fill value */
            st = zr_item_fill(w, run->item[0], err);
            done = true;
        }
        ZR_TRY(st);
    }
    if (!done) /* a decoder that says NOT_FOUND does not make the chunk missing */
        ZR_TRY(decode_item(w, run, run->item[0], &encoded, err));
out:
    return zr_item_prefix(run, run->item[0], st, err);
}

static zarr_status run_source(const struct zr_work *w, const struct zr_run *run,
                              zarr_mem *out, zarr_error *err)
{
    int32_t device = run->level->decode->fetch_device;
    int32_t id = device == ZARR_DEVICE_CPU ? 0 : w->io->view.base.device_id;
    zarr_status st = ZARR_OK;

    if (run->key == NULL) {
        if (!zr_mem_slice(&run->shard->buffer, run->offset, run->bytes, out))
            return zr_internal(err);
        return ZARR_OK;
    }
    ZR_TRY(
        zr_worker_scratch(w->worker, ZR_SCRATCH_FETCH, device, id, run->bytes, out, err));
    ZR_TRY(zr_fetch_range(w, run->key, run->shard, run->offset, out, err));
out:
    return st;
}

static zarr_status check_item_bytes(const struct zr_work *w, const struct zr_program *p,
                                    const struct zr_item *item, zarr_error *err)
{
    uint64_t most = zr_program_most(w->io, p);

    if (item->bytes > most)
        return zr_fail(err, ZARR_ERR_CORRUPT,
                       "the shard index gives %" PRIu64
                       " bytes, the chunk can explain %" PRIu64 " (limit encoded_bytes)",
                       item->bytes, most);
    return ZARR_OK;
}

/* *item: the one that is wrong, else the first. */
static zarr_status check_run_bytes(const struct zr_work *w, const struct zr_run *run,
                                   const struct zr_item **item, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (uint32_t i = 0; i < run->n_items; i++) {
        *item = run->item[i];
        ZR_TRY(check_item_bytes(w, run->level->decode, *item, err));
    }
    *item = run->item[0];
out:
    return st;
}

static zarr_status run_range(const struct zr_work *w, const struct zr_run *run,
                             const zarr_mem *fetched, zarr_error *err)
{
    zarr_mem range = {0}, encoded = {0};
    const struct zr_item *item = NULL;
    bool done = false;
    zarr_status st = ZARR_OK;

    ZR_TRY(check_run_bytes(w, run, &item, err));
    if (fetched != NULL) {
        range = *fetched;
    } else {
        ZR_TRY(read_raw(w, run, &done, err));
        if (done)
            goto out;
        ZR_TRY(run_source(w, run, &range, err));
    }
    for (uint32_t i = 0; i < run->n_items; i++) {
        item = run->item[i];
        if (!zr_mem_slice(&range, item->offset - run->offset, item->bytes, &encoded))
            ZR_TRY(zr_internal(err));
        ZR_TRY(decode_item(w, run, item, &encoded, err));
    }
out:
    return zr_item_prefix(run, item, st, err);
}

static zarr_status run_missing(const struct zr_work *w, const struct zr_run *run,
                               zarr_error *err)
{
    for (uint32_t i = 0; i < run->n_items; i++) {
        zarr_status st = zr_item_fill(w, run->item[i], err);

        if (st != ZARR_OK)
            return zr_item_prefix(run, run->item[i], st, err);
    }
    return ZARR_OK;
}

static uint64_t run_budget(const struct zr_run *run)
{
    const struct zr_program *p = run->level->decode;
    uint64_t fetch = run->bytes == UINT64_MAX ? p->encoded_bound : run->bytes, sum = 0;

    return zr_add_u64(fetch, p->decoded_bytes, &sum) ? sum : UINT64_MAX;
}

zarr_status zr_run_exec(const struct zr_work *w, const struct zr_run *run,
                        const zarr_mem *fetched, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    uint64_t need = 0;

    if (run->bytes == ZR_ITEM_MISSING)
        return run_missing(w, run, err);
    if (!w->granted) {
        need = run_budget(run);
        ZR_TRY(
            zr_budget_take(w->io->engine->budget, need, UINT64_MAX, &w->rq->cancel, err));
    }
    if (run->bytes == UINT64_MAX)
        st = run_whole(w, run, fetched, err);
    else
        st = run_range(w, run, fetched, err);
    zr_worker_settle(w->worker);
    if (!w->granted)
        zr_budget_give(w->io->engine->budget, need);
out:
    return st;
}

zarr_status zr_run_fetch(const struct zr_work *w, const struct zr_run *run, zarr_mem *out,
                         zarr_error *err)
{
    const struct zr_item *item = NULL;
    zarr_status st = ZARR_OK;

    if (run->bytes == ZR_ITEM_MISSING)
        return zr_fail(err, ZARR_ERR_NOT_FOUND, "the chunk is missing");
    if (run->bytes == UINT64_MAX)
        return run_object(w, run, out, err);
    ZR_TRY(check_run_bytes(w, run, &item, err));
    ZR_TRY(run_source(w, run, out, err));
out:
    return st;
}
