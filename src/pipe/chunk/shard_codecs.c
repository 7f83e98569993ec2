/*
 * pipe/chunk/shard_codecs.c - the bytes->bytes codecs around a shard, which turn all of
 * it into one block. They run backward when the shard is written and forward when it is
 * decoded whole. Thread class: on the worker context.
 */
#include "pipe/chunk/chunk_int.h"

zarr_status zr_body_encode(const struct zr_work *w, const struct zr_level *lv,
                           const zarr_memory *value, zarr_memory *block, zarr_memory *out,
                           zarr_error *err)
{
    const struct zr_program *p = lv->bytes_encode;
    struct zr_pool *pool = w->io->engine->pool;
    struct zr_coding c = {.p = p, .cur = *value};
    zarr_status st = ZARR_OK;

    *block = *out = (zarr_memory){0};
    while (c.done < p->n) {
        const struct zr_stage *s = &p->stage[p->n - 1 - c.done];
        zarr_memory next = {0};
        uint64_t room = 0;

        /* A shard that kept another writer's bytes may be longer than the bound, so the
         * room follows from its actual size. */
        if (!zr_add(c.cur.bytes, c.cur.bytes / 8 + 65536, &room))
            ZR_FAIL(err, ZARR_ERR_LIMIT, "the shard grows beyond 64 bits");
        if (p->unsized)
            ZR_TRY(zr_spec_bound(&s->spec, c.cur.bytes, &room, err));
        else
            room = ZR_MAX(s->in_bytes, room);
        ZR_TRY(zr_pool_take(pool, s->in_device, zr_io_device_id(w->io, s->in_device),
                            room, &next, err));
        st = zr_stages_run(w, &c, c.done + 1, &next, err);
        zr_pool_give(pool, block);
        *block = next;
        ZR_TRY(st);
    }
    *out = c.cur;
out:
    if (st != ZARR_OK)
        zr_pool_give(pool, block);
    return st;
}

/* Only the decoder knows the length. The result is copied to a block that outlives the
 * worker's buffer. */
static zarr_status body_decode_unsized(const struct zr_work *w,
                                       const struct zr_program *p,
                                       const zarr_memory *encoded, zarr_memory *block,
                                       zarr_memory *out, zarr_error *err)
{
    zarr_memory got = {0};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_worker_decode_unsized(w, p, encoded, NULL, &got, err));
    ZR_TRY(zr_pool_take(w->io->engine->pool, ZARR_DEVICE_CPU, 0,
                        ZR_MAX(got.bytes, UINT64_C(64)), block, err));
    *out = *block;
    out->bytes = got.bytes;
    if (got.bytes != 0)
        ZR_TRY(zr_mem_copy_bytes(w->io->engine->memory, out, &got, got.bytes,
                                 &w->worker->copies, err));
out:
    zr_worker_trim(w->worker);
    if (st != ZARR_OK)
        zr_pool_give(w->io->engine->pool, block);
    return st;
}

zarr_status zr_body_decode(const struct zr_work *w, const struct zr_level *lv,
                           const zarr_memory *encoded, zarr_memory *block,
                           zarr_memory *out, zarr_error *err)
{
    const struct zr_program *p = lv->bytes_decode;
    struct zr_coding c = {.p = p, .cur = *encoded};
    const struct zr_stage *last = p->n > 0 ? &p->stage[p->n - 1] : NULL;
    zarr_status st = ZARR_OK;

    *block = *out = (zarr_memory){0};
    if (p->unsized)
        return body_decode_unsized(w, p, encoded, block, out, err);
    if (last) {
        zarr_memory dst = {0};
        uint64_t room = last->out_bytes;

        ZR_TRY(zr_stages_run(w, &c, p->n - 1, NULL, err));
        if (last->kind == ZR_STAGE_COPY)
            room = c.cur.bytes;
        ZR_TRY(zr_pool_take(w->io->engine->pool, last->out_device,
                            zr_io_device_id(w->io, last->out_device), room, block, err));
        dst = *block;
        dst.bytes = room;
        ZR_TRY(zr_stages_run(w, &c, p->n, &dst, err));
    }
    *out = c.cur;
out:
    if (st != ZARR_OK)
        zr_pool_give(w->io->engine->pool, block);
    return st;
}
