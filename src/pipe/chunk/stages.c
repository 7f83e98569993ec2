/*
 * pipe/chunk/stages.c - runs one chunk through the stages of its program. Decoding goes
 * from the first stage to the last, encoding the other way. The outputs of stages are in
 * two scratch blocks in turn, the last one where the caller wants it. Sizes come from the
 * program, that is from metadata, never from encoded bytes. A chunk that a stage does not
 * take goes to its fallback, which works on host memory. A stage on a device is asked
 * before the chunk is copied there. A chunk that is too large for the device goes through
 * all stages in host memory.
 * Thread class: on the worker context.
 */
#include "pipe/chunk/chunk_int.h"

/* One stage of one chunk. */
struct coding_step {
    const struct zr_stage *stage;
    zarr_memory src, dst;
    uint64_t used; /* out: number of bytes at dst */
    bool elements; /* the copy moves the chunk's elements, not encoded bytes */
    /* the rest is for codecs */
    const struct zr_stage *by; /* stage, or a fallback of it */
    zarr_codec_job job;        /* the job for `by`; for a fallback, in host memory */
    struct zr_stage_call call;
};

static zarr_status run_copy(const struct zr_work *w, const zarr_memory *src,
                            const zarr_memory *dst, bool elements, zarr_error *err)
{
    if (elements &&
        zr_io_is_host(w->io, src->device_type) != zr_io_is_host(w->io, dst->device_type))
        w->worker->stats.copies_decoded_host++;
    return zr_mem_copy_bytes(w->io->engine->memory, dst, src, src->bytes,
                             &w->worker->copies, err);
}

bool zr_stage_takes_at(const struct zr_io *io, const struct zr_stage *s,
                       const zarr_memory *encoded)
{
    return s->kind != ZR_STAGE_CODEC || s->impl->vt.alignment <= 1 ||
           encoded->offset % s->impl->vt.alignment == 0 ||
           zr_io_is_host(io, encoded->device_type);
}

zarr_status zr_bring_encoded(const struct zr_work *w, const struct zr_stage *s,
                             zarr_memory *encoded, zarr_error *err)
{
    const zarr_memory from = *encoded;

    if (s->kind == ZR_STAGE_COPY ||
        (from.device_type == s->in_device && zr_stage_takes_at(w->io, s, &from)))
        return ZARR_OK;
    ZR_CHECK(
        zr_worker_scratch(w, ZR_SCRATCH_BRING, s->in_device, from.bytes, encoded, err));
    return run_copy(w, &from, encoded, false, err);
}

static zarr_status check_decoded(const struct zr_program *p, const zarr_memory *m,
                                 zarr_error *err)
{
    if (m->bytes == p->decoded_bytes)
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_CORRUPT,
                   "chunk has %" PRIu64
                   " bytes where its shape and data type need %" PRIu64,
                   m->bytes, p->decoded_bytes);
}

/* Whether the next stage is known not to take the chunk. */
static bool coding_skips(const struct zr_coding *c)
{
    return c->done < ZR_CODING_SKIPS && (c->skip >> c->done & 1) != 0;
}

/* Sets the next stage, its input and the place of its output: `dst`, or one of two
 * scratch blocks in turn if dst is NULL. A stage that left the chunk where it was took no
 * turn: the input is in the block of the stage before it. */
static zarr_status coding_open(struct coding_step *s, const struct zr_work *w,
                               struct zr_coding *c, const zarr_memory *dst,
                               zarr_error *err)
{
    const struct zr_program *p = c->p;
    const uint32_t k = c->done;
    const struct zr_stage *stage = &p->stage[p->encode ? p->n - 1 - k : k];
    const bool copy = stage->kind == ZR_STAGE_COPY;
    const int32_t device = w->on_host  ? ZARR_DEVICE_CPU
                           : p->encode ? stage->in_device
                                       : stage->out_device;
    const uint64_t bytes = p->encode ? stage->in_bytes : stage->out_bytes;

    if (k == 0 && !p->encode && !coding_skips(c) && !w->on_host)
        ZR_CHECK(zr_bring_encoded(w, stage, &c->cur, err));
    *s = (struct coding_step){.stage = stage, .src = c->cur};
    s->elements = p->encode ? k == 0 : k + 1 == p->n;
    if (dst && dst->handle)
        s->dst = *dst;
    else
        ZR_CHECK(
            zr_worker_scratch(w, (k + c->n_stayed) % 2 == 0 ? ZR_SCRATCH_A : ZR_SCRATCH_B,
                              device, copy ? s->src.bytes : bytes, &s->dst, err));
    if (copy && s->dst.bytes < s->src.bytes)
        return p->encode ? zr_internal(err) : check_decoded(p, &s->src, err);
    return ZARR_OK;
}

/* The fallback works on host memory: copies its input there, and takes room for its
 * output. */
static zarr_status coding_to_host(struct coding_step *s, const struct zr_work *w,
                                  bool encode, zarr_error *err)
{
    if (!zr_io_is_host(w->io, s->src.device_type)) {
        ZR_CHECK(zr_worker_scratch(w, ZR_SCRATCH_FALL_IN, ZARR_DEVICE_CPU, s->src.bytes,
                                   &s->job.src, err));
        ZR_CHECK(run_copy(w, &s->src, &s->job.src, encode && s->elements, err));
    }
    if (!zr_io_is_host(w->io, s->dst.device_type))
        ZR_CHECK(zr_worker_scratch(w, ZR_SCRATCH_FALL_OUT, ZARR_DEVICE_CPU, s->dst.bytes,
                                   &s->job.dst, err));
    return ZARR_OK;
}

/* Goes on to the first implementation that works in host memory. */
static zarr_status coding_choose_host(struct coding_step *s, const struct zr_work *w,
                                      zarr_error *err)
{
    const struct zr_io *io = w->io;

    while (s->by &&
           !(zr_io_is_host(io, s->by->in_device) && zr_io_is_host(io, s->by->out_device)))
        s->by = s->by->fallback;
    if (s->by)
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_NO_MEMORY,
                   "codec \"%s\" has no implementation for the CPU",
                   zarr_codec_spec_name(&s->stage->spec));
}

/* Chooses the implementation: the stage's, or the first fallback that takes the chunk. */
static zarr_status coding_choose(struct coding_step *s, const struct zr_work *w,
                                 const struct zr_coding *c, zarr_error *err)
{
    const zarr_codec_job job = {.src = s->src, .dst = s->dst};
    const struct zr_stage *by = s->stage;

    if (by->fallback && coding_skips(c))
        by = by->fallback;
    while (!c->p->encode && by->fallback && !zr_stage_has_looked(by) &&
           !zr_stage_accepts(by, &job))
        by = by->fallback;
    s->by = by;
    return w->on_host ? coding_choose_host(s, w, err) : ZARR_OK;
}

zarr_status zr_take_stage_scratch(const struct zr_work *w, const struct zr_stage *s,
                                  int32_t device, zarr_memory *out, zarr_error *err)
{
    const uint64_t bytes = zr_stage_scratch(s, 1);

    return bytes > 0 ? zr_worker_scratch(w, ZR_SCRATCH_CODEC, device, bytes, out, err)
                     : ZARR_OK;
}

/* Takes the memory that the implementation needs. */
static zarr_status coding_begin(struct coding_step *s, const struct zr_work *w,
                                bool encode, zarr_error *err)
{
    const struct zr_stage *by = s->by;
    struct zr_worker *worker = w->worker;
    const int32_t device = encode ? by->in_device : by->out_device;

    worker->starved = false;
    s->job = (zarr_codec_job){.src = s->src, .dst = s->dst};
    s->call = (struct zr_stage_call){.jobs = &s->job, .n = 1, .ts = &worker->states};
    if (by != s->stage)
        ZR_CHECK(coding_to_host(s, w, encode, err));
    ZR_CHECK(zr_take_stage_scratch(w, by, device, &s->call.scratch, err));
    worker->encodes = encode;
    return ZARR_OK;
}

/* Returns true if the step must be repeated: chains inside the codec found no room and
 * have it now, or the next implementation gets the chunk. Otherwise *st is the result. */
static bool coding_again(struct coding_step *s, const struct zr_work *w, zarr_status *st,
                         zarr_error *err)
{
    struct zr_worker *worker = w->worker;

    worker->encodes = false;
    if (*st == ZARR_OK)
        return false;
    if (worker->starved) {
        *st = zr_worker_alone(worker, &w->rq->cancel, err);
        return *st == ZARR_OK;
    }
    if (!zr_stage_declines(s->by, *st))
        return false;
    s->by = s->by->fallback;
    return true;
}

/* Ends a codec's step. A fallback's output goes where the stage's belongs. */
static zarr_status coding_end(struct coding_step *s, const struct zr_work *w, bool encode,
                              zarr_status st, zarr_error *err)
{
    w->worker->stats.chunks_fallback += s->by != s->stage;
    s->used = s->job.dst_used;
    if (st == ZARR_OK && s->by != s->stage && !zr_io_is_host(w->io, s->dst.device_type)) {
        s->job.dst.bytes = s->used;
        st = run_copy(w, &s->job.dst, &s->dst, !encode && s->elements, err);
    }
    return st == ZARR_OK ? st : zr_stage_tell_tried(s->stage, s->by, st, err);
}

bool zr_stays_on_host(const struct zr_io *io, const struct zr_program *p, uint32_t copy,
                      const zarr_memory *encoded)
{
    const struct zr_stage *next = &p->stage[copy + 1];
    const zarr_codec_job job = {.src = *encoded};

    return !p->encode && copy + 1 < ZR_MIN(p->n, (uint32_t)ZR_CODING_SKIPS) &&
           next->kind == ZR_STAGE_CODEC && next->fallback &&
           zr_io_is_host(io, encoded->device_type) && !zr_stage_accepts(next, &job);
}

/* Decodes the next stage where its input is, if the stage can. */
static zarr_status coding_within(const struct zr_work *w, struct zr_coding *c, bool *done,
                                 zarr_error *err)
{
    const struct zr_stage *stage = &c->p->stage[c->done];
    zarr_codec_job job = {.src = c->cur};
    zarr_memory scratch = {0};
    zarr_status st = ZARR_OK;

    *done = false;
    if (!zr_stage_accepts(stage, &job))
        return ZARR_OK;
    if (c->done == 0)
        ZR_TRY(zr_bring_encoded(w, stage, &job.src, err));
    ZR_TRY(zr_take_stage_scratch(w, stage, stage->out_device, &scratch, err));
    st = zr_stage_within(stage, &job, &w->worker->states, scratch, err);
    *done = st == ZARR_OK;
    if (*done) {
        c->cur = job.dst;
        c->n_stayed++;
    } else if (st == ZARR_ERR_UNSUPPORTED || zr_stage_declines(stage, st)) {
        st = ZARR_OK; /* decode() gets it */
        if (err)
            zr_error_clear(err);
    }
out:
    return st;
}

/* Whether the next stage may leave the chunk inside of its input, which is on the host.
 * Elements that are changed in place need a block of their own. */
static bool coding_stays_inside(const struct zr_work *w, const struct zr_coding *c,
                                uint32_t until, const zarr_memory *dst)
{
    const struct zr_program *p = c->p;
    const struct zr_stage *s = &p->stage[c->done];

    if (p->encode || w->io->no_direct || s->kind != ZR_STAGE_CODEC ||
        !s->impl->vt.within || coding_skips(c))
        return false;
    if (s->in_device != s->out_device || !zr_io_is_host(w->io, s->out_device) ||
        !zr_io_is_host(w->io, c->cur.device_type))
        return false;
    if (c->done + 1 == p->n && (p->padded || w->own_block))
        return false;
    return !(dst && dst->handle && c->done + 1 == until);
}

zarr_status zr_stages_run(const struct zr_work *w, struct zr_coding *c, uint32_t until,
                          const zarr_memory *dst, zarr_error *err)
{
    const bool encode = c->p->encode;
    struct coding_step s;
    bool done = false;
    zarr_status st = ZARR_OK;

    for (; c->done < until; c->done++) {
        const bool copy =
            c->p->stage[encode ? c->p->n - 1 - c->done : c->done].kind == ZR_STAGE_COPY;
        /* a copy to a device whose codec refuses the chunk */
        const bool stays =
            copy && !w->on_host && zr_stays_on_host(w->io, c->p, c->done, &c->cur);

        if (stays)
            c->skip |= UINT64_C(1) << (c->done + 1);
        if (stays || (copy && w->on_host)) {
            c->n_stayed++;
            continue;
        }
        if (coding_stays_inside(w, c, until, dst)) {
            ZR_TRY(coding_within(w, c, &done, err));
            if (done)
                continue;
        }
        ZR_TRY(coding_open(&s, w, c, c->done + 1 == until ? dst : NULL, err));
        if (copy) {
            ZR_TRY(run_copy(w, &s.src, &s.dst, s.elements, err));
            s.used = s.src.bytes;
        } else {
            ZR_TRY(coding_choose(&s, w, c, err));
            do {
                st = coding_begin(&s, w, encode, err);
                if (st == ZARR_OK)
                    st = zr_stage_run(s.by, &s.call, encode, err);
                zr_worker_count_call(w->worker, &s.call);
            } while (coding_again(&s, w, &st, err));
            ZR_TRY(coding_end(&s, w, encode, st, err));
        }
        c->cur = s.dst;
        c->cur.bytes = s.used;
    }
out:
    return st;
}

/* ---- whole chunks ------------------------------------------------------------ */

zarr_status zr_block_unpad(const struct zr_work *w, const struct zr_program *p,
                           const zarr_memory *block, zarr_error *err)
{
    void *elements = NULL;

    if (!p->padded)
        return ZARR_OK;
    ZR_CHECK(zr_mem_host_ptr(w->io->engine->memory, block, block->bytes, &elements, err));
    zr_program_unpad(p, elements, block->bytes);
    return ZARR_OK;
}

zarr_status zr_decode_end(const struct zr_work *w, const struct zr_program *p,
                          const zarr_memory *src, zarr_memory *out, zarr_error *err)
{
    const zarr_memory from = *out;

    w->worker->stats.bytes_decoded += out->bytes;
    w->worker->stats.chunks_distrusted += p->distrusts;
    if (!p->unsized) /* otherwise checked where the sizes are known */
        ZR_CHECK(check_decoded(p, out, err));
    if (!p->padded)
        return ZARR_OK;
    /* Memory that does not belong to this worker is left unchanged. */
    if (from.handle == src->handle &&
        from.handle != w->worker->scratch[ZR_SCRATCH_FETCH].handle) {
        ZR_CHECK(
            zr_worker_scratch(w, ZR_SCRATCH_A, ZARR_DEVICE_CPU, from.bytes, out, err));
        ZR_CHECK(run_copy(w, &from, out, true, err));
    }
    return zr_block_unpad(w, p, out, err);
}

zarr_status zr_chunk_decode(const struct zr_work *w, const struct zr_program *p,
                            const zarr_memory *src, const zarr_memory *dst,
                            zarr_memory *out, zarr_error *err)
{
    struct zr_coding c = {.p = p, .cur = *src};

    if (p->unsized)
        ZR_CHECK(zr_chunk_decode_unsized(w, p, src, dst, &c.cur, err));
    else
        ZR_CHECK(zr_stages_run(w, &c, p->n, dst, err));
    ZR_CHECK(zr_decode_end(w, p, src, &c.cur, err));
    *out = c.cur;
    return ZARR_OK;
}

zarr_status zr_chunk_encode(const struct zr_work *w, const struct zr_program *p,
                            const zarr_memory *src, const zarr_memory *dst,
                            zarr_memory *out, zarr_error *err)
{
    struct zr_coding c = {.p = p, .cur = *src};

    if (dst->device_type != (w->on_host ? ZARR_DEVICE_CPU : p->fetch_device))
        ZR_CHECK(zr_internal(err));
    w->worker->stats.bytes_decoded += src->bytes;
    if (p->n > 1 && p->stage[p->n - 1].kind == ZR_STAGE_COPY &&
        src->device_type == p->stage[p->n - 1].in_device)
        c.done = 1;  /* stage 0 is the copy, which the caller made */
    if (p->n == 0) { /* no stages: the stored bytes are the elements */
        if (dst->bytes < src->bytes)
            ZR_CHECK(zr_internal(err));
        ZR_CHECK(run_copy(w, src, dst, true, err));
        c.cur = *dst;
        c.cur.bytes = src->bytes;
    }
    ZR_CHECK(zr_stages_run(w, &c, p->n, dst, err));
    if (w->on_host && c.cur.handle != dst->handle) { /* the last stage was a copy */
        const zarr_memory from = c.cur;

        if (!zr_mem_slice(dst, 0, from.bytes, &c.cur))
            return zr_internal(err);
        ZR_CHECK(run_copy(w, &from, &c.cur, false, err));
    }
    *out = c.cur;
    return ZARR_OK;
}
