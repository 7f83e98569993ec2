/*
 * impl/stage.c - runs a codec stage and checks its input and output. An input whose size
 * metadata rules out is CORRUPT, and the codec never gets it. A decoded output of another
 * size than metadata says is CORRUPT; an output larger than its room is a bug of the
 * implementation. Every failure gets a valid status and a text, whatever the
 * implementation returned. Thread states are opened on first use, in a table by
 * implementation.
 * Thread class: a table belongs to one thread at a time.
 */
#include "impl/impl_int.h"

bool zr_stage_accepts(const struct zr_stage *s, const zarr_codec_job *job)
{
    return !s->impl->vt.accepts || s->impl->vt.accepts(s->self, job);
}

bool zr_stage_is_async(const struct zr_stage *s)
{
    return s->kind == ZR_STAGE_CODEC && (s->impl->vt.caps & ZARR_CODEC_ASYNC);
}

bool zr_stage_declines(const struct zr_stage *s, zarr_status st)
{
    return s->fallback && (st == ZARR_ERR_UNSUPPORTED || st == ZARR_ERR_NO_MEMORY ||
                           st == ZARR_ERR_DEVICE);
}

zarr_status zr_stage_tell_tried(const struct zr_stage *s, const struct zr_stage *by,
                                zarr_status st, zarr_error *err)
{
    if (st == ZARR_OK || s == by)
        return st;
    (void)zr_stage_tell_tried(s->fallback, by, st, err);
    return zr_prefix(err, st, "\"%s\" did not take the chunk", s->impl->vt.impl);
}

uint64_t zr_stage_scratch(const struct zr_stage *s, uint64_t n)
{
    return s->impl->vt.scratch ? s->impl->vt.scratch(s->self, n, s->out_bytes) : 0;
}

zarr_status zr_impl_fail(const struct zr_impl *impl, struct zr_foreign *f, zarr_status st,
                         bool cancelled)
{
    return zr_foreign_fail(f, st, cancelled, "codec \"%s\": \"%s\" of %s", impl->vt.codec,
                           impl->vt.impl, impl->entry.origin);
}

/* INTERNAL; the text names the origin of the implementation that has the bug. */
static zarr_status stage_broke(const struct zr_stage *s, const char *how, uint64_t n,
                               uint64_t expected, zarr_error *err)
{
    const zarr_codec_impl_vtable *v = &s->impl->vt;

    if (zr_streq(s->impl->entry.origin, "core"))
        return zr_fail(err, ZARR_ERR_INTERNAL,
                       "%s: %s %s: %" PRIu64 " bytes, not %" PRIu64, v->codec, v->impl,
                       how, n, expected);
    return zr_fail(err, ZARR_ERR_INTERNAL,
                   "codec \"%s\": \"%s\" of %s " ZR_BROKE ": it %s: %" PRIu64
                   " bytes, not %" PRIu64,
                   v->codec, v->impl, s->impl->entry.origin, how, n, expected);
}

static zarr_status stage_thread_state(const struct zr_stage *s,
                                      struct zr_thread_states *ts, void **out,
                                      zarr_error *err)
{
    zarr_status st = ZARR_OK;
    const struct zr_impl *impl = s->impl;
    struct zr_foreign call;
    size_t cap = ts->n;

    *out = NULL;
    if (!impl->vt.thread_open)
        return ZARR_OK;
    if (impl->id >= ts->n) {
        ZR_TRY(zr_grow(ts->alloc, &ts->state, &cap, (size_t)impl->id + 1, sizeof(void *),
                       err));
        for (; ts->n < cap; ts->n++)
            ts->state[ts->n] = NULL;
    }
    if (!ts->state[impl->id])
        st = impl->vt.thread_open(s->self, &ts->state[impl->id],
                                  zr_foreign_begin(&call, err));
    if (st != ZARR_OK)
        ZR_TRY(zr_impl_fail(impl, &call, st, false));
    *out = ts->state[impl->id];
out:
    return st;
}

static void stack_close(struct zr_buffer_stack *s, const struct zr_thread_states *ts)
{
    for (size_t i = 0; i < s->n; i++)
        zr_buffer_free(&s->buffer[i], ts);
    zr_free(ts->alloc, s->buffer);
    *s = (struct zr_buffer_stack){0};
}

void zr_thread_states_close(const struct zr_impl_registry *r, struct zr_thread_states *ts)
{
    for (size_t i = 0; i < ts->n && i < zr_impl_count(r); i++)
        if (ts->state[i] && zr_impl_at(r, i)->vt.thread_close)
            zr_impl_at(r, i)->vt.thread_close(ts->state[i]);
    zr_free(ts->alloc, ts->state);
    ts->state = NULL;
    ts->n = 0;
    stack_close(&ts->decode, ts);
    stack_close(&ts->encode, ts);
}

void zr_thread_states_trim(struct zr_thread_states *ts, bool encode)
{
    const struct zr_buffer_stack *s = encode ? &ts->encode : &ts->decode;

    for (size_t i = 0; i < s->n && !s->top; i++)
        zr_buffer_trim(&s->buffer[i], ts);
}

/* Checks the job's input. A decoder gets at most the room that metadata says, even if the
 * block is larger. */
static zarr_status stage_check_in(const struct zr_stage *s, zarr_codec_job *job,
                                  bool encode, zarr_error *err)
{
    if (encode)
        return s->out_exact && job->src.bytes != s->out_bytes ? zr_internal(err)
                                                              : ZARR_OK;
    if (s->in_exact && job->src.bytes != s->in_bytes)
        return zr_fail(err, ZARR_ERR_CORRUPT,
                       "%s: %" PRIu64 " encoded bytes, expected %" PRIu64,
                       zarr_codec_spec_name(&s->spec), job->src.bytes, s->in_bytes);
    if (s->out_exact && job->dst.bytes < s->out_bytes)
        return zr_internal(err);
    job->dst.bytes = ZR_MIN(job->dst.bytes, s->out_bytes);
    return ZARR_OK;
}

static zarr_status stage_check_out(const struct zr_stage *s, const zarr_codec_job *job,
                                   bool encode, zarr_error *err)
{
    if (job->dst_used > job->dst.bytes)
        return stage_broke(s, "says that it gave more than there was room for",
                           job->dst_used, job->dst.bytes, err);
    if (encode && s->in_exact && job->dst_used != s->in_bytes)
        return stage_broke(s, "did not give the length that its specification promises",
                           job->dst_used, s->in_bytes, err);
    if (!encode && s->out_exact && job->dst_used != s->out_bytes)
        return zr_fail(err, ZARR_ERR_CORRUPT, "%s: %" PRIu64 " bytes, expected %" PRIu64,
                       zarr_codec_spec_name(&s->spec), job->dst_used, s->out_bytes);
    return ZARR_OK;
}

static void stage_tell(zarr_error *err, bool encode)
{
    zr_error_operation(err, encode ? ZARR_OPERATION_ENCODE : ZARR_OPERATION_DECODE);
}

static zarr_status stage_first_failure(const struct zr_stage_call *call, bool encode,
                                       zarr_error *err)
{
    stage_tell(err, encode);
    for (uint64_t i = 0; i < call->n; i++)
        if (call->jobs[i].status != ZARR_OK) {
            if (err)
                err->item = i;
            return call->jobs[i].status;
        }
    return ZARR_OK;
}

/* Checks the outputs of the jobs that did not fail, beside others that did. */
static void stage_check_rest(const struct zr_stage *s, const struct zr_stage_call *call,
                             bool encode)
{
    if (call->pending && encode) /* settle() knows how long they are */
        return;
    for (uint64_t i = 0; i < call->n; i++)
        if (call->jobs[i].status == ZARR_OK)
            call->jobs[i].status = stage_check_out(s, &call->jobs[i], encode, NULL);
}

/* The implementation may return any status or no text. This gives every job that failed a
 * valid status, and the error a text. */
static zarr_status stage_fail(const struct zr_stage *s, const struct zr_stage_call *call,
                              bool encode, struct zr_foreign *said, zarr_status st)
{
    const bool cancelled = zr_is_cancelled(call->ts->cancel);
    uint64_t first = call->n;

    for (uint64_t i = call->n; i-- > 0;)
        if (call->jobs[i].status != ZARR_OK)
            first = i;
    if (st == ZARR_OK)
        st = call->jobs[first].status;
    st = zr_impl_fail(s->impl, said, st, cancelled);
    stage_tell(said->err, encode);
    for (uint64_t i = first; i < call->n; i++)
        if (call->jobs[i].status != ZARR_OK)
            call->jobs[i].status = zr_foreign_status(call->jobs[i].status, cancelled);
    if (said->err && (first < call->n || call->n > 1)) /* UINT64_MAX: no single one */
        said->err->item = first < call->n ? first : UINT64_MAX;
    if (first < call->n)
        stage_check_rest(s, call, encode);
    return st;
}

static zarr_status stage_check_all(const struct zr_stage *s,
                                   const struct zr_stage_call *call, bool encode,
                                   struct zr_foreign *said)
{
    for (uint64_t i = 0; i < call->n; i++) {
        if (call->jobs[i].status != ZARR_OK)
            return stage_fail(s, call, encode, said, ZARR_OK);
        call->jobs[i].status = stage_check_out(s, &call->jobs[i], encode, said->err);
        if (call->jobs[i].status == ZARR_OK)
            continue;
        stage_check_rest(s, call, encode);
        return stage_first_failure(call, encode, said->err);
    }
    return ZARR_OK;
}

static void stage_note(struct zr_stage_call *call, const zarr_codec_exec *exec)
{
    call->pending = exec->stream ? exec->pending : NULL;
    call->up_bytes += exec->up_bytes;
    call->up_copies += exec->up_copies;
    call->down_bytes += exec->down_bytes;
    call->down_copies += exec->down_copies;
}

zarr_status zr_stage_run(const struct zr_stage *s, struct zr_stage_call *call,
                         bool encode, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    const zarr_codec_impl_vtable *v = &s->impl->vt;
    struct zr_buffer_stack *stack = encode ? &call->ts->encode : &call->ts->decode;
    const size_t top = stack->top;
    struct zr_foreign said;
    zarr_codec_exec exec = {.struct_size = sizeof exec,
                            .stream = call->stream,
                            .scratch = call->scratch,
                            .inner = call->ts};

    for (uint64_t i = 0; i < call->n; i++) {
        call->jobs[i].status = ZARR_OK;
        call->jobs[i].flags = 0;
    }
    ZR_TRY(stage_thread_state(s, call->ts, &exec.thread_state, err));
    for (uint64_t i = 0; i < call->n; i++) {
        call->jobs[i].status = stage_check_in(s, &call->jobs[i], encode, err);
        if (call->jobs[i].status == ZARR_OK)
            continue;
        st = stage_first_failure(call, encode, err);
        for (uint64_t k = 0; k < call->n; k++) /* the codec does none of them */
            call->jobs[k].status = st;
        return st;
    }
    st = (encode ? v->encode : v->decode)(s->self, call->jobs, call->n, &exec,
                                          zr_foreign_begin(&said, err));
    stack->top = top; /* the results of its runners are no longer needed */
    stage_note(call, &exec);
    if (st != ZARR_OK && call->n == 1)
        call->jobs[0].flags |= exec.flags & ZARR_CODEC_JOB_NO_ROOM;
    if (st != ZARR_OK)
        return stage_fail(s, call, encode, &said, st);
    if (!call->pending || !encode) /* else settle() knows how long the output is */
        st = stage_check_all(s, call, encode, &said);
out:
    return st;
}

zarr_status zr_stage_end(const struct zr_stage *s, struct zr_stage_call *call,
                         bool encode, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_foreign said;
    zarr_codec_exec exec = {.struct_size = sizeof exec,
                            .stream = call->stream,
                            .scratch = call->scratch,
                            .inner = call->ts,
                            .pending = call->pending};

    ZR_TRY(stage_thread_state(s, call->ts, &exec.thread_state, err));
    st = s->impl->vt.settle(s->self, call->jobs, call->n, &exec,
                            zr_foreign_begin(&said, err));
    exec.pending = NULL;
    stage_note(call, &exec);
    if (st != ZARR_OK)
        return stage_fail(s, call, encode, &said, st);
    st = stage_check_all(s, call, encode, &said);
out:
    return st;
}

/* Begins a call for one chunk. */
static zarr_status stage_alone(const struct zr_stage *s, zarr_codec_job *job,
                               struct zr_thread_states *ts, zarr_memory scratch,
                               zarr_codec_exec *exec, zarr_error *err)
{
    zarr_status st;

    *exec =
        (zarr_codec_exec){.struct_size = sizeof *exec, .scratch = scratch, .inner = ts};
    job->status = ZARR_OK;
    job->flags = 0;
    st = stage_thread_state(s, ts, &exec->thread_state, err);
    return st == ZARR_OK ? stage_check_in(s, job, false, err) : st;
}

zarr_status zr_stage_partial(const struct zr_stage *s, zarr_codec_job *job,
                             const zarr_codec_range *ranges, uint64_t n,
                             struct zr_thread_states *ts, zarr_memory scratch,
                             zarr_error *err)
{
    zarr_status st = ZARR_OK;
    const size_t top = ts->decode.top;
    struct zr_foreign said;
    zarr_codec_exec exec;

    ZR_TRY(stage_alone(s, job, ts, scratch, &exec, err));
    st =
        s->impl->vt.partial(s->self, job, ranges, n, &exec, zr_foreign_begin(&said, err));
    ts->decode.top = top;
    if (st != ZARR_OK)
        st = zr_impl_fail(s->impl, &said, st, zr_is_cancelled(ts->cancel));
    else if (job->dst_used > job->dst.bytes)
        st = stage_broke(s, "says that it gave more than there was room for",
                         job->dst_used, job->dst.bytes, err);
    job->status = st;
out:
    if (st != ZARR_OK)
        stage_tell(err, false);
    return st;
}

static bool stage_is_part(const zarr_memory *part, const zarr_memory *all)
{
    return part->handle == all->handle && part->device_type == all->device_type &&
           part->device_id == all->device_id && part->offset >= all->offset &&
           part->bytes <= all->bytes &&
           part->offset - all->offset <= all->bytes - part->bytes;
}

zarr_status zr_stage_within(const struct zr_stage *s, zarr_codec_job *job,
                            struct zr_thread_states *ts, zarr_memory scratch,
                            zarr_error *err)
{
    zarr_status st = ZARR_OK;
    const size_t top = ts->decode.top;
    struct zr_foreign said;
    zarr_codec_exec exec;

    job->dst = (zarr_memory){.bytes = s->out_bytes};
    ZR_TRY(stage_alone(s, job, ts, scratch, &exec, err));
    st = s->impl->vt.within(s->self, job, &exec, zr_foreign_begin(&said, err));
    ts->decode.top = top;
    if (st != ZARR_OK)
        st = zr_impl_fail(s->impl, &said, st, zr_is_cancelled(ts->cancel));
    else if (!stage_is_part(&job->dst, &job->src) || job->dst_used != job->dst.bytes)
        st = stage_broke(s, "says that the decoded chunk is outside of the encoded one",
                         job->dst.bytes, job->src.bytes, err);
    else if (job->dst_used > s->out_bytes)
        st = zr_fail(err, ZARR_ERR_CORRUPT, "%s: more than %" PRIu64 " bytes",
                     zarr_codec_spec_name(&s->spec), s->out_bytes);
    else
        st = stage_check_out(s, job, false, err);
    job->status = st;
out:
    if (st != ZARR_OK)
        stage_tell(err, false);
    return st;
}

zarr_status zr_stage_decode_strided(const struct zr_stage *s, zarr_codec_job *job,
                                    const zarr_codec_strided *to,
                                    struct zr_thread_states *ts, zarr_memory scratch,
                                    zarr_error *err)
{
    zarr_status st = ZARR_OK;
    const size_t top = ts->decode.top;
    struct zr_foreign said;
    zarr_codec_exec exec;

    job->dst = (zarr_memory){.bytes = s->out_bytes};
    ZR_TRY(stage_alone(s, job, ts, scratch, &exec, err));
    st = s->impl->vt.strided(s->self, job, to, &exec, zr_foreign_begin(&said, err));
    ts->decode.top = top;
    if (st == ZARR_OK)
        st = stage_check_out(s, job, false, err);
    else if (st != ZARR_ERR_UNSUPPORTED) /* UNSUPPORTED: the caller decodes to a block */
        st = zr_impl_fail(s->impl, &said, st, zr_is_cancelled(ts->cancel));
    job->status = st;
out:
    if (st != ZARR_OK && st != ZARR_ERR_UNSUPPORTED)
        stage_tell(err, false);
    return st;
}
