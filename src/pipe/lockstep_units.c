/*
 * pipe/lockstep_units.c - encodes outer chunks together (lockstep_encode.c), one object
 * of the store each, and puts them in a parallel loop. Units that need their old value
 * are written one by one (units.c), because each holds a lock and a thread that holds one
 * must not wait for other units.
 * Thread class: one thread per request; helpers take worker contexts.
 */
#include "pipe/pipe_int.h"

/* Units of one level, an object of the store each. */
struct objects {
    struct zr_work w;
    const struct zr_level *lv;
    struct zr_leaf_write *lw;
    uint32_t n;
    zarr_mem slab; /* their encoded bytes */
};

static zarr_status key_of(const struct zr_work *w, const struct zr_leaf_write *lw,
                          const char **key, zarr_error *err)
{
    const struct zr_plan_args where = {.layout = w->io->layout, .prefix = w->io->prefix};

    zr_plan_key(&where, lw->proj->chunk, &w->worker->key);
    *key = zr_str_text(&w->worker->key);
    return zr_str_status(&w->worker->key, err);
}

static zarr_status put_one(void *arg, uint64_t i, const struct zr_work *w,
                           zarr_error *err)
{
    struct objects *o = arg;
    const struct zr_leaf_write *lw = &o->lw[i];
    zarr_store_op op = {.verb = lw->empty ? ZARR_STORE_ERASE : ZARR_STORE_PUT,
                        .flags = ZARR_STORE_OP_CHUNK};
    zarr_status st = ZARR_OK;

    ZR_TRY(key_of(w, lw, &op.key, err));
    if (!lw->empty)
        op.mem = lw->out;
    op.length = op.mem.bytes;
    st = zr_put_unit(w, lw->proj->chunk, &op, err);
    st = zr_prefix_key(err, st, op.key);
out:
    return st;
}

static zarr_status put_all(struct objects *o, zarr_error *err)
{
    const struct zr_parallel_options opts = {.max_threads = zr_io_threads(o->w.io),
                                             .grain = 1,
                                             .item_ns = 20000 + o->lv->encoded_bound};

    return zr_workers_run(&o->w, o->n, &opts, put_one, o, err);
}

static zarr_status encode_all(struct objects *o, zarr_error *err)
{
    uint64_t step = o->lv->encoded_bound;
    zarr_error e = {0};
    const char *key = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(
        zr_take_slices(o->w.io, o->lv->encode->fetch_device, &step, o->n, &o->slab, err));
    for (uint32_t i = 0; i < o->n; i++)
        if (!zr_mem_slice(&o->slab, i * step, o->lv->encoded_bound, &o->lw[i].room))
            return zr_internal(err);
    st = zr_leaves_encode(&o->w, o->lw, o->n, zr_io_threads(o->w.io), &e);
    if (st == ZARR_OK)
        return ZARR_OK;
    if (err)
        *err = e;
    if (key_of(&o->w, &o->lw[e.item < o->n ? e.item : 0], &key, NULL) == ZARR_OK)
        st = zr_prefix_key(err, st, key);
out:
    return st;
}

/* Bytes for n units: elements and encoded bytes, and both once more between two
 * stages. */
static uint64_t objects_budget(const struct objects *o, uint32_t n)
{
    uint64_t sum = 0;

    if (!zr_add_u64(o->lv->decoded_bytes, o->lv->encoded_bound, &sum) ||
        !zr_mul_u64(sum, 2 * (uint64_t)n, &sum))
        return UINT64_MAX;
    return sum;
}

static zarr_status write_objects(struct objects *o, zarr_error *err)
{
    struct zr_engine *engine = o->w.io->engine;
    const uint64_t need = objects_budget(o, o->n);
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_worker_take(engine, &o->w.rq->cancel, &o->w.worker, err));
    st = zr_request_take(o->w.rq, need, err);
    if (st == ZARR_OK) {
        st = encode_all(o, err);
        if (st == ZARR_OK)
            st = put_all(o, err);
        zr_pool_give(engine->pool, &o->slab);
        zr_request_give(o->w.rq, need);
    }
    zr_request_merge(o->w.rq, o->w.worker);
    zr_worker_give(o->w.worker);
    if (o->w.io->progress)
        zr_request_report(o->w.rq);
out:
    return st;
}

/* The level of a unit that is written here; NULL: units.c writes it, and reports
 * errors. */
static const struct zr_level *own_level(const struct zr_io *io,
                                        const struct zr_projection *proj)
{
    const struct zr_level *lv = NULL;

    if (!proj->full || zr_layout_outer(io->layout, proj->shape, &lv, NULL) != ZARR_OK)
        return NULL;
    if (!lv->is_shard && zr_goes_lockstep(io, lv->encode))
        return lv;
    zr_level_give(lv);
    return NULL;
}

zarr_status zr_units_lockstep(const struct zr_io *io, struct zarr_request *rq,
                              const struct zr_projection *proj, uint32_t n, bool *done,
                              zarr_error *err)
{
    const zarr_allocator *alloc = io->engine->alloc;
    const struct zr_level *outer = &io->layout->level[0];
    struct zr_leaf_write *lw = NULL;
    const struct zr_level **lv = NULL;
    zarr_status st = ZARR_OK;

    if (outer->is_shard || !zr_goes_lockstep(io, outer->encode))
        return ZARR_OK;
    lw = zr_calloc(alloc, n, sizeof *lw);
    lv = zr_calloc(alloc, n, sizeof(struct zr_level *));
    if (!lw || !lv)
        ZR_TRY(zr_fail_memory(err, n * sizeof *lw));
    for (uint32_t i = 0; i < n; i++)
        lv[i] = own_level(io, &proj[i]);
    for (uint32_t i = 0; i < n; i++) {
        struct objects o = {.w = {.io = io, .rq = rq}, .lv = lv[i], .lw = lw};

        if (!lv[i] || done[i])
            continue;
        for (uint32_t k = i; k < n; k++) {
            if (lv[k] != lv[i] || done[k])
                continue;
            if (o.n > 0 && objects_budget(&o, o.n + 1) > zr_io_budget(io))
                break; /* belongs to the next round */
            lw[o.n++] = (struct zr_leaf_write){.level = lv[k], .proj = &proj[k]};
            done[k] = true;
        }
        ZR_TRY(write_objects(&o, err));
    }
out:
    for (uint32_t i = 0; lv && i < n; i++)
        zr_level_give(lv[i]);
    zr_free(alloc, lv);
    zr_free(alloc, lw);
    return st;
}
