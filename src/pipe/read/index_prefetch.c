/*
 * pipe/read/index_prefetch.c - fetches the indexes of a wave's shards at once, if the
 * store is not read on the decoding thread: one round trip for all of them instead of one
 * for each. An index that could not be fetched is left to open.c, which handles every
 * case and reports the error. Shards that are fetched whole, because codecs follow them,
 * are left to it, too. Thread class: on the thread that holds the plan.
 */
#include "pipe/read/read_int.h"

#include <string.h>

/* Whether the index of a shard has a place that is known now. */
static bool has_place(const struct zr_open *o)
{
    return !o->lv->bytes_decode &&
           (!o->parent ||
            (!o->parent->buffer.handle && o->bytes >= o->lv->index_bytes &&
             zr_shard_index_check(o->parent->index, o->entry, NULL) == ZARR_OK));
}

static zarr_status ahead_op(const struct zr_io *io, struct zarr_request *rq,
                            const struct zr_open *o, struct zr_ahead *a, zarr_error *err)
{
    const struct zr_level *lv = o->lv;
    struct zr_store_pin *pin = o->parent ? zr_shard_pin(o->parent) : a->pin;
    uint64_t offset = lv->shard->index_at_end ? ZARR_STORE_SUFFIX : 0;

    if (o->parent)
        offset = o->offset + (lv->shard->index_at_end ? o->bytes - lv->index_bytes : 0);
    a->op = (zarr_store_op){.verb = ZARR_STORE_GET,
                            .flags = ZARR_STORE_OP_INDEX | ZR_STORE_OP_PINNED,
                            .key = pin->key,
                            .lock = pin,
                            .offset = offset,
                            .length = lv->index_bytes,
                            .mem = {.device_type = ZARR_DEVICE_CPU},
                            .object_bytes = UINT64_MAX,
                            .status = ZARR_ERR_INTERNAL,
                            .cancel = &rq->cancel};
    if (zr_store_lend(io->store, &a->op))
        return ZARR_OK;
    ZR_CHECK(zr_pool_take(io->engine->pool, ZARR_DEVICE_CPU, 0,
                          ZR_MAX(lv->index_bytes, UINT64_C(64)), &a->block, err));
    a->op.mem = a->block;
    a->op.mem.bytes = lv->index_bytes;
    return ZARR_OK;
}

/* Pins an object. *ok false: open.c does it, and finds out what is wrong, or that the
 * index is cached. */
static zarr_status pin_object(const struct zr_io *io, const struct zr_open *o,
                              struct zr_store_pin **out, bool *ok, zarr_error *err)
{
    struct zr_store_pin *pin = zr_calloc(io->engine->alloc, 1, sizeof *pin);

    *ok = false;
    if (!pin)
        return zr_fail_memory(err, sizeof *pin);
    if (zr_store_pin_init(pin, io->store, o->key, NULL) == ZARR_OK &&
        zr_store_version_is_none(&pin->version)) {
        *out = pin;
        *ok = true;
        return ZARR_OK;
    }
    zr_store_pin_deinit(pin);
    zr_free(io->engine->alloc, pin);
    return ZARR_OK;
}

/* Makes the operations. They are neighbours in *op, in the order of the wave. */
static zarr_status make_ahead(const struct zr_io *io, struct zarr_request *rq,
                              struct zr_wave *w, struct zr_ahead *all, uint32_t *n,
                              zarr_error *err)
{
    for (uint32_t i = 0; i < w->n_opens; i++) {
        struct zr_open *o = &w->open[i];
        struct zr_ahead *a = &all[*n];
        bool ok = true;

        if (!has_place(o))
            continue;
        if (!o->parent)
            ZR_CHECK(pin_object(io, o, &a->pin, &ok, err));
        if (!ok)
            continue;
        o->ahead = a;
        ++*n;
        ZR_CHECK(ahead_op(io, rq, o, a, err));
    }
    return ZARR_OK;
}

zarr_status zr_opens_ahead(const struct zr_io *io, struct zarr_request *rq,
                           struct zr_wave *w, zarr_error *err)
{
    const size_t room = (size_t)w->n_opens + 1;
    struct zr_ahead *all = NULL;
    zarr_store_op *op = NULL;
    uint32_t n = 0;

    all = zr_arena_alloc(&w->arena, room * sizeof *all);
    op = zr_arena_alloc(&w->arena, room * sizeof *op);
    if (!all || !op)
        return zr_fail_memory(err, room * sizeof *all);
    memset(all, 0, room * sizeof *all);
    ZR_CHECK(make_ahead(io, rq, w, all, &n, err));
    for (uint32_t i = 0; i < n; i++)
        op[i] = all[i].op;
    ZR_CHECK(zr_ops_run(io, rq, op, n, NULL, &w->arena, err));
    for (uint32_t i = 0; i < n; i++)
        all[i].op = op[i];
    return ZARR_OK;
}

void zr_opens_ahead_end(const struct zr_io *io, struct zr_wave *w)
{
    for (uint32_t i = 0; i < w->n_opens; i++) {
        struct zr_ahead *a = w->open[i].ahead;

        if (!a)
            continue;
        zr_pool_give(io->engine->pool, &a->block);
        if (a->pin) {
            zr_store_pin_deinit(a->pin);
            zr_free(io->engine->alloc, a->pin);
        }
        w->open[i].ahead = NULL;
    }
}
