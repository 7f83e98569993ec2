/*
 * pipe/stages.c - one chunk through its program. Decoding walks the stages forward
 * into scratch blocks in turn, the last one straight into the destination where the
 * layouts agree; encoding walks them backward. Sizes come from the program,
 * that is from metadata, never from a stream.
 * Thread class: on the worker context.
 */
#include "pipe/pipe_int.h"

#include <string.h>

/* The fallback works on host memory: copies in and out where the stage lies elsewhere. */
static zarr_status run_fallback(const struct zr_work *w, const struct zr_stage *s,
                                zarr_codec_job *job, bool encode, zarr_error *err)
{
    const struct zr_memory_registry *mem = w->io->engine->memory;
    zarr_codec_job host = *job;
    zarr_status st = ZARR_OK;

    w->worker->stats.chunks_fallback++;
    if (!zr_io_is_host(w->io, job->src.device_type)) {
        ZR_TRY(zr_worker_scratch(w->worker, ZR_SCRATCH_FALL_IN, ZARR_DEVICE_CPU, 0,
                                 job->src.bytes, &host.src, err));
        ZR_TRY(zr_mem_copy_run(mem, &host.src, &job->src, job->src.bytes,
                               &w->worker->copies, err));
    }
    if (!zr_io_is_host(w->io, job->dst.device_type))
        ZR_TRY(zr_worker_scratch(w->worker, ZR_SCRATCH_FALL_OUT, ZARR_DEVICE_CPU, 0,
                                 job->dst.bytes, &host.dst, err));
    st = encode ? zr_stage_encode(s, &host, &w->worker->states, (zarr_mem){0}, err)
                : zr_stage_decode(s, &host, &w->worker->states, (zarr_mem){0}, err);
    job->status = st;
    job->dst_used = host.dst_used;
    ZR_TRY(st);
    if (!zr_io_is_host(w->io, job->dst.device_type))
        ZR_TRY(zr_mem_copy_run(mem, &job->dst, &host.dst, host.dst_used,
                               &w->worker->copies, err));
out:
    return st;
}

static zarr_status stage_run(const struct zr_work *w, const struct zr_stage *s,
                             zarr_codec_job *job, bool encode, zarr_error *err)
{
    zarr_mem scratch = {0};
    uint64_t need = zr_stage_scratch(s, 1);
    int32_t device = encode ? s->in_device : s->out_device;
    int32_t id = zr_io_device_id(w->io, device);
    zarr_status st = ZARR_OK;

    if (!encode && s->fallback != NULL && !zr_stage_accepts(s, job)) {
        const struct zr_stage *f = s->fallback;

        while (f->fallback != NULL && !zr_stage_accepts(f, job))
            f = f->fallback;
        return run_fallback(w, f, job, encode, err);
    }
    if (need > 0)
        ZR_TRY(zr_worker_scratch(w->worker, ZR_SCRATCH_CODEC, device, id, need, &scratch,
                                 err));
    st = encode ? zr_stage_encode(s, job, &w->worker->states, scratch, err)
                : zr_stage_decode(s, job, &w->worker->states, scratch, err);
out:
    return st;
}

zarr_status zr_stage_one(const struct zr_work *w, const struct zr_stage *s,
                         zarr_codec_job *job, bool encode, zarr_error *err)
{
    const zarr_codec_job begun = *job;
    struct zr_worker *worker = w->worker;
    zarr_status st = ZARR_OK;

    worker->encodes = encode;
    worker->starved = false;
    st = stage_run(w, s, job, encode, err);
    if (st != ZARR_OK && worker->starved) { /* chains inside the codec */
        *job = begun;
        ZR_TRY(zr_worker_alone(worker, &w->rq->cancel, err));
        st = stage_run(w, s, job, encode, err);
    }
out:
    worker->encodes = false;
    return st;
}

static zarr_status run_codec(const struct zr_work *w, const struct zr_stage *s,
                             const zarr_mem *src, const zarr_mem *dst, uint64_t *used,
                             bool encode, zarr_error *err)
{
    zarr_codec_job job = {.src = *src, .dst = *dst};
    zarr_status st = zr_stage_one(w, s, &job, encode, err);

    *used = job.dst_used;
    return st;
}

static zarr_status run_copy(const struct zr_work *w, const zarr_mem *src,
                            const zarr_mem *dst, bool decoded, zarr_error *err)
{
    if (decoded && (zr_io_is_host(w->io, src->device_type) !=
                    zr_io_is_host(w->io, dst->device_type)))
        w->worker->stats.copies_decoded_host++;
    return zr_mem_copy_run(w->io->engine->memory, dst, src, src->bytes,
                           &w->worker->copies, err);
}

zarr_status zr_stage_step(const struct zr_work *w, const struct zr_stage *s,
                          const zarr_mem *src, const zarr_mem *dst, uint64_t *used,
                          bool encode, zarr_error *err)
{
    if (s->kind != ZR_STAGE_COPY)
        return run_codec(w, s, src, dst, used, encode, err);
    if (dst->bytes < src->bytes)
        return zr_internal(err);
    *used = src->bytes;
    return run_copy(w, src, dst, false, err);
}

/* Where stage i of n puts its output: the last one at `last` when given, the others in
 * turn. */
static zarr_status stage_room(const struct zr_work *w, uint32_t i, uint64_t bytes,
                              int32_t device, zarr_mem *out, zarr_error *err)
{
    int32_t id = zr_io_device_id(w->io, device);

    return zr_worker_scratch(w->worker, i % 2 == 0 ? ZR_SCRATCH_A : ZR_SCRATCH_B, device,
                             id, bytes, out, err);
}

/* Encoded bytes where stage s takes them: an inner chunk's in a former shard, and what a
 * pipeline has fetched, may lie elsewhere. */
zarr_status zr_bring_encoded(const struct zr_work *w, const struct zr_stage *s,
                             zarr_mem *encoded, zarr_error *err)
{
    const zarr_mem from = *encoded;
    int32_t id = zr_io_device_id(w->io, s->in_device);
    zarr_status st = ZARR_OK;

    if (s->kind == ZR_STAGE_COPY || from.device_type == s->in_device)
        return ZARR_OK;
    ZR_TRY(zr_worker_scratch(w->worker, ZR_SCRATCH_BRING, s->in_device, id, from.bytes,
                             encoded, err));
    ZR_TRY(run_copy(w, &from, encoded, false, err));
out:
    return st;
}

static zarr_status check_decoded(const struct zr_program *p, const zarr_mem *m,
                                 zarr_error *err)
{
    if (m->bytes == p->decoded_bytes)
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_CORRUPT,
                   "chunk has %" PRIu64
                   " bytes where its shape and data type need %" PRIu64,
                   m->bytes, p->decoded_bytes);
}

zarr_status zr_block_unpad(const struct zr_work *w, const struct zr_program *p,
                           const zarr_mem *block, zarr_error *err)
{
    void *elements = NULL;
    zarr_status st = ZARR_OK;

    if (p->padded == NULL)
        return ZARR_OK;
    ZR_TRY(zr_mem_host_ptr(w->io->engine->memory, block, block->bytes, &elements, err));
    zr_program_unpad(p, elements, block->bytes);
out:
    return st;
}

/* What was decoded, where it is; in memory that is not this worker's, a copy of it. */
static zarr_status decoded_unpad(const struct zr_work *w, const struct zr_program *p,
                                 const zarr_mem *src, zarr_mem *out, zarr_error *err)
{
    const zarr_mem from = *out;
    zarr_status st = ZARR_OK;

    if (p->padded == NULL)
        return ZARR_OK;
    if (from.handle == src->handle &&
        from.handle != w->worker->scratch[ZR_SCRATCH_FETCH].handle) {
        ZR_TRY(zr_worker_scratch(w->worker, ZR_SCRATCH_A, ZARR_DEVICE_CPU, 0, from.bytes,
                                 out, err));
        out->bytes = from.bytes;
        ZR_TRY(run_copy(w, &from, out, true, err));
    }
    ZR_TRY(zr_block_unpad(w, p, out, err));
out:
    return st;
}

/* Stage i of *cur, the last one to `last` where that is given. */
static zarr_status decode_one(const struct zr_work *w, const struct zr_program *p,
                              uint32_t i, const zarr_mem *last, zarr_mem *cur,
                              zarr_error *err)
{
    const struct zr_stage *s = &p->stage[i];
    uint64_t used = cur->bytes;
    zarr_mem next = {0};
    zarr_status st = ZARR_OK;

    if (i + 1 == p->n && last != NULL && last->handle != NULL)
        next = *last;
    else
        ZR_TRY(stage_room(w, i, s->kind == ZR_STAGE_COPY ? cur->bytes : s->out_bytes,
                          s->out_device, &next, err));
    if (s->kind == ZR_STAGE_COPY) {
        if (next.bytes < cur->bytes)
            ZR_TRY(check_decoded(p, cur, err));
        ZR_TRY(run_copy(w, cur, &next, i + 1 == p->n, err));
    } else {
        ZR_TRY(run_codec(w, s, cur, &next, &used, false, err));
    }
    *cur = next;
    cur->bytes = used;
out:
    return st;
}

zarr_status zr_decode_front(const struct zr_work *w, const struct zr_program *p,
                            const zarr_mem *src, zarr_mem *out, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    *out = *src;
    if (p->n > 0)
        st = zr_bring_encoded(w, &p->stage[0], out, err);
    for (uint32_t i = 0; i + 1 < p->n && st == ZARR_OK; i++)
        st = decode_one(w, p, i, NULL, out, err);
    return st;
}

zarr_status zr_decode_back(const struct zr_work *w, const struct zr_program *p,
                           const zarr_mem *src, const zarr_mem *last, zarr_mem *out,
                           zarr_error *err)
{
    zarr_mem cur = *src;
    zarr_status st = ZARR_OK;

    if (p->n > 0)
        ZR_TRY(decode_one(w, p, p->n - 1, last, &cur, err));
    w->worker->stats.bytes_decoded += cur.bytes;
    ZR_TRY(check_decoded(p, &cur, err));
    *out = cur;
out:
    return st;
}

zarr_status zr_decode_stages(const struct zr_work *w, const struct zr_program *p,
                             const zarr_mem *src, const zarr_mem *last, zarr_mem *out,
                             zarr_error *err)
{
    zarr_mem cur = {0};
    zarr_status st = ZARR_OK;

    if (p->loose) {
        ZR_TRY(zr_decode_loose(w, p, src, last, out, err));
        return decoded_unpad(w, p, src, out, err);
    }
    ZR_TRY(zr_decode_front(w, p, src, &cur, err));
    ZR_TRY(zr_decode_back(w, p, &cur, last, out, err));
    ZR_TRY(decoded_unpad(w, p, src, out, err));
out:
    return st;
}

zarr_status zr_encode_stages(const struct zr_work *w, const struct zr_program *p,
                             const zarr_mem *src, const zarr_mem *dst, uint64_t *used,
                             zarr_error *err)
{
    zarr_mem cur = *src, next = {0};
    zarr_status st = ZARR_OK;

    if (dst->device_type != p->fetch_device)
        ZR_TRY(zr_internal(err));
    w->worker->stats.bytes_decoded += src->bytes;
    for (uint32_t k = 0; k < p->n; k++) {
        uint32_t i = p->n - 1 - k;
        const struct zr_stage *s = &p->stage[i];
        uint64_t n = cur.bytes;

        if (i > 0 && s->kind == ZR_STAGE_COPY && cur.device_type == s->in_device)
            continue; /* the caller brought it here */
        if (i == 0)
            next = *dst;
        else
            ZR_TRY(stage_room(w, k, s->kind == ZR_STAGE_COPY ? cur.bytes : s->in_bytes,
                              s->in_device, &next, err));
        if (s->kind == ZR_STAGE_COPY) {
            if (next.bytes < cur.bytes)
                ZR_TRY(zr_internal(err));
            ZR_TRY(run_copy(w, &cur, &next, k == 0, err));
        } else {
            ZR_TRY(run_codec(w, s, &cur, &next, &n, true, err));
        }
        cur = next;
        cur.bytes = n;
    }
    if (p->n == 0) { /* raw: the elements are the bytes */
        if (dst->bytes < src->bytes)
            ZR_TRY(zr_internal(err));
        ZR_TRY(run_copy(w, src, dst, true, err));
    }
    *used = cur.bytes;
out:
    return st;
}
