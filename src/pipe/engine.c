/*
 * pipe/engine.c - what requests of one context share: idle worker kits. A kit
 * is a worker's codec contexts, scratch blocks and counters; a worker takes
 * one for the length of a loop, so a chunk costs no allocation and no lock in
 * the steady state, and an idle thread holds nothing.
 * Thread class: engine shared; a kit is its taker's alone.
 */
#include "pipe/pipe_int.h"

#include <string.h>

enum {
    KIT_KEEPS_BYTES = 1024 * 1024 /* of a scratch block, while nobody uses the kit */
};
#define KIT_ALONE_NS UINT64_C(30000000000) /* longer than any chunk takes */

zarr_status zr_engine_init(struct zr_engine *e, zarr_error *err)
{
    ZR_UNUSED(err);
    zr_budget_init(&e->grown, e->budget->total);
    zr_mutex_init(&e->kits.mutex);
    e->kits.free = NULL;
    e->fork = (struct zr_fork_hook){.mutex = &e->kits.mutex};
    zr_fork_hook_add(&e->fork);
    return ZARR_OK;
}

static void kit_free(struct zr_kit *kit)
{
    for (uint32_t i = 0; i < ZR_SCRATCH_SLOTS; i++)
        zr_pool_give(kit->engine->pool, &kit->scratch[i]);
    for (size_t i = 0; i < ZR_COUNT(kit->decode_buffer); i++) {
        zr_buffer_free(&kit->decode_buffer[i], &kit->states);
        zr_buffer_free(&kit->encode_buffer[i], &kit->states);
    }
    zr_thread_states_close(kit->engine->impls, &kit->states);
    zr_str_deinit(&kit->key);
    zr_free(kit->engine->alloc, kit);
}

static void free_kits(struct zr_engine *e)
{
    struct zr_kit *kit = NULL, *next = NULL;

    zr_mutex_lock(&e->kits.mutex);
    kit = e->kits.free;
    e->kits.free = NULL;
    zr_mutex_unlock(&e->kits.mutex);
    for (; kit != NULL; kit = next) {
        next = kit->next;
        kit_free(kit);
    }
}

void zr_engine_deinit(struct zr_engine *e)
{
    free_kits(e);
    zr_fork_hook_remove(&e->fork);
    zr_mutex_deinit(&e->kits.mutex);
    zr_budget_deinit(&e->grown);
}

void zr_engine_trim(struct zr_engine *e)
{
    free_kits(e);
    zr_pool_trim(e->pool);
}

/* ---- buffers that grow
 * ----------------------------------------------------------------- What an encoded chunk
 * grows to nobody knows before, so it is not in what its run took from the budget. It is
 * counted in a budget of its own: whoever finds no room there gives all of it back, waits
 * until nobody else has any, and begins the chunk anew. So nobody waits for it who holds
 * some, and whoever holds some waits for nothing else: it is given back with the end of
 * the chunk.
 */

static zarr_status grant_take(void *arg, uint64_t bytes, zarr_error *err)
{
    struct zr_kit *kit = arg;
    struct zr_budget *grown = &kit->engine->grown;

    if (kit->encodes || kit->alone)
        return ZARR_OK;
    if (!zr_budget_try(grown, bytes)) {
        kit->starved = true;
        return zr_fail(err, ZARR_ERR_LIMIT,
                       "no room for %" PRIu64
                       " bytes beside other chunks (the context's memory_bytes)",
                       bytes);
    }
    kit->granted += bytes;
    return ZARR_OK;
}

void zr_kit_settle(struct zr_kit *kit)
{
    for (size_t i = 0; i < ZR_COUNT(kit->decode_buffer); i++)
        zr_buffer_settle(&kit->decode_buffer[i], &kit->states);
    zr_thread_states_settle(&kit->states, false);
    if (kit->granted > 0)
        zr_budget_give(&kit->engine->grown, kit->granted);
    kit->granted = 0;
    kit->alone = kit->starved = false;
}

zarr_status zr_kit_alone(struct zr_kit *kit, const atomic_bool *cancel, zarr_error *err)
{
    struct zr_budget *grown = &kit->engine->grown;
    const uint64_t all = ZR_MAX(grown->total, UINT64_C(1));
    zarr_status st = ZARR_OK;

    zr_kit_settle(kit);
    ZR_TRY(zr_budget_take(grown, all, zr_now_ns() + KIT_ALONE_NS, cancel, err));
    kit->granted = all;
    kit->alone = true;
out:
    return st;
}

zarr_status zr_kit_take(struct zr_engine *e, const atomic_bool *cancel,
                        struct zr_kit **out, zarr_error *err)
{
    struct zr_kit *kit = NULL;

    zr_mutex_lock(&e->kits.mutex);
    kit = e->kits.free;
    if (kit != NULL)
        e->kits.free = kit->next;
    zr_mutex_unlock(&e->kits.mutex);
    if (kit == NULL) {
        kit = zr_calloc(e->alloc, 1, sizeof(*kit));
        if (kit == NULL)
            return zr_fail_memory(err, sizeof(*kit));
        kit->engine = e;
        kit->states.alloc = e->alloc;
        kit->grant = (struct zr_grant){.take = grant_take, .arg = kit};
        kit->states.grant = &kit->grant;
        zr_str_init(&kit->key, e->alloc);
    }
    kit->next = NULL;
    kit->states.cancel = cancel;
    *out = kit;
    return ZARR_OK;
}

void zr_kit_count(struct zr_kit *kit, const zarr_store_op *op)
{
    if (op->status == ZARR_OK)
        kit->stats.bytes_stored += op->done_bytes;
    kit->copies.copies_up += op->up_bytes != 0;
    kit->copies.bytes_up += op->up_bytes;
    kit->copies.copies_down += op->down_bytes != 0;
    kit->copies.bytes_down += op->down_bytes;
}

void zr_kit_give(struct zr_kit *kit)
{
    struct zr_engine *e = NULL;

    if (kit == NULL)
        return;
    e = kit->engine;
    kit->states.cancel = NULL;
    zr_kit_settle(kit);
    for (size_t i = 0; i < ZR_COUNT(kit->encode_buffer); i++)
        zr_buffer_settle(&kit->encode_buffer[i], &kit->states);
    zr_thread_states_settle(&kit->states, true);
    /* Large blocks wait in the pool, which keeps a bounded number of bytes. */
    for (uint32_t i = 0; i < ZR_SCRATCH_SLOTS; i++)
        if (kit->scratch[i].bytes > KIT_KEEPS_BYTES)
            zr_pool_give(e->pool, &kit->scratch[i]);
    zr_mutex_lock(&e->kits.mutex);
    kit->next = e->kits.free;
    e->kits.free = kit;
    zr_mutex_unlock(&e->kits.mutex);
}

zarr_status zr_kit_scratch(struct zr_kit *kit, enum zr_scratch_slot slot,
                           int32_t device_type, int32_t device_id, uint64_t bytes,
                           zarr_mem *out, zarr_error *err)
{
    zarr_mem *m = &kit->scratch[slot];

    if (m->handle == NULL || m->device_type != device_type || m->device_id != device_id ||
        m->bytes < bytes) {
        zarr_status st = ZARR_OK;

        zr_pool_give(kit->engine->pool, m);
        *m = (zarr_mem){0};
        st = zr_pool_take(kit->engine->pool, device_type, device_id,
                          ZR_MAX(bytes, UINT64_C(64)), m, err);
        if (st != ZARR_OK) {
            *m = (zarr_mem){0};
            return st;
        }
    }
    *out = *m;
    out->bytes = bytes;
    return ZARR_OK;
}

void zr_crew_init(struct zr_crew *c, struct zarr_request *rq, uint32_t n_workers)
{
    c->rq = rq;
    c->n = n_workers;
    memset(c->kit, 0, n_workers * sizeof(struct zr_kit *));
}

zarr_status zr_crew_kit(struct zr_crew *c, uint32_t worker, struct zr_kit **out,
                        zarr_error *err)
{
    if (c->kit[worker] == NULL) {
        zarr_status st =
            zr_kit_take(c->rq->io.engine, &c->rq->cancel, &c->kit[worker], err);

        if (st != ZARR_OK)
            return st;
    }
    *out = c->kit[worker];
    return ZARR_OK;
}

void zr_crew_deinit(struct zr_crew *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->kit[i] == NULL)
            continue;
        zr_request_merge(c->rq, c->kit[i]);
        zr_kit_give(c->kit[i]);
        c->kit[i] = NULL;
    }
}
