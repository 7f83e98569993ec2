/*
 * pipe/body.c - the bytes->bytes codecs around a shard, which make one block of all of
 * it: backward when the shard is written, forward when it is taken whole. Thread class:
 * on the worker context.
 */
#include "pipe/pipe_int.h"

zarr_status zr_body_encode(const struct zr_work *w, const struct zr_level *lv,
                           const zarr_mem *value, zarr_mem *block, zarr_mem *out,
                           zarr_error *err)
{
    const struct zr_program *p = lv->bytes_encode;
    struct zr_pool *pool = w->io->engine->pool;
    zarr_mem cur = *value;
    zarr_status st = ZARR_OK;

    *block = *out = (zarr_mem){0};
    for (uint32_t k = 0; k < p->n; k++) {
        const struct zr_stage *s = &p->stage[p->n - 1 - k];
        zarr_mem next = {0};
        uint64_t used = 0, room = 0;

        /* A former value that kept foreign bytes may be longer than the bound: room by
         * what is there. */
        if (!zr_add_u64(cur.bytes, cur.bytes / 8 + 65536, &room))
            ZR_TRY(zr_fail(err, ZARR_ERR_LIMIT, "the shard grows beyond 64 bits"));
        if (p->loose)
            ZR_TRY(zr_spec_bound(&s->spec, cur.bytes, &room, err));
        else
            room = ZR_MAX(s->in_bytes, room);
        ZR_TRY(zr_pool_take(pool, s->in_device, 0, room, &next, err));
        st = zr_stage_step(w, s, &cur, &next, &used, true, err);
        zr_pool_give(pool, block);
        *block = next;
        ZR_TRY(st);
        cur = next;
        cur.bytes = used;
    }
    *out = cur;
out:
    if (st != ZARR_OK)
        zr_pool_give(pool, block);
    return st;
}

/* Of a length that only the decoder knows; then to a block that stays. */
static zarr_status body_decode_loose(const struct zr_work *w, const struct zr_program *p,
                                     const zarr_mem *encoded, zarr_mem *block,
                                     zarr_mem *out, zarr_error *err)
{
    zarr_mem got = {0};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_decode_grown(w, p, encoded, NULL, &got, err));
    ZR_TRY(zr_pool_take(w->io->engine->pool, ZARR_DEVICE_CPU, 0,
                        ZR_MAX(got.bytes, UINT64_C(64)), block, err));
    *out = *block;
    out->bytes = got.bytes;
    if (got.bytes != 0)
        ZR_TRY(zr_mem_copy_run(w->io->engine->memory, out, &got, got.bytes,
                               &w->worker->copies, err));
out:
    zr_worker_settle(w->worker);
    if (st != ZARR_OK)
        zr_pool_give(w->io->engine->pool, block);
    return st;
}

zarr_status zr_body_decode(const struct zr_work *w, const struct zr_level *lv,
                           const zarr_mem *encoded, zarr_mem *block, zarr_mem *out,
                           zarr_error *err)
{
    const struct zr_program *p = lv->bytes_decode;
    zarr_mem cur = *encoded, next = {0};
    zarr_status st = ZARR_OK;

    *block = *out = (zarr_mem){0};
    if (p->loose)
        return body_decode_loose(w, p, encoded, block, out, err);
    for (uint32_t i = 0; i < p->n; i++) {
        const struct zr_stage *s = &p->stage[i];
        uint64_t used = 0, room = s->kind == ZR_STAGE_COPY ? cur.bytes : s->out_bytes;

        if (i + 1 == p->n) {
            ZR_TRY(zr_pool_take(w->io->engine->pool, s->out_device, 0, room, block, err));
            next = *block;
        } else {
            ZR_TRY(zr_worker_scratch(w->worker, i % 2 == 0 ? ZR_SCRATCH_A : ZR_SCRATCH_B,
                                     s->out_device, 0, room, &next, err));
        }
        next.bytes = room;
        ZR_TRY(zr_stage_step(w, s, &cur, &next, &used, false, err));
        cur = next;
        cur.bytes = used;
    }
    *out = cur;
out:
    if (st != ZARR_OK)
        zr_pool_give(w->io->engine->pool, block);
    return st;
}
