/*
 * impl/unsized_program.c - runs a program on host memory when metadata does not bound the
 * sizes: elements of variable length, and chains inside codecs. A decoder gets the room
 * that the encoded header announces, as far as the size of its input makes that
 * plausible. If the room is too small, the decoder is called again with four times as
 * much, up to the bound of its stage. An encoder gets the room that its specification
 * promises for the input. Thread class: the caller's buffers and thread states; one
 * thread.
 */
#include "impl/impl_int.h"

#include <string.h>

enum {
    GROW_LEAST = 4096,   /* room that any input gets */
    GROW_EXPLAINS = 256, /* decoded bytes that one encoded byte may announce */
    GROW_FACTOR = 4,
    GROW_ARRAY = 16 /* no array->array codec makes an element so many times larger */
};

void zr_buffer_free(struct zr_buffer *b, const struct zr_thread_states *ts)
{
    zr_free(ts->alloc, b->p);
    *b = (struct zr_buffer){0};
}

void zr_buffer_trim(struct zr_buffer *b, const struct zr_thread_states *ts)
{
    if (b->bytes > ZR_BUFFER_KEEPS)
        zr_buffer_free(b, ts);
}

zarr_status zr_buffer_need(struct zr_buffer *b, uint64_t bytes,
                           const struct zr_thread_states *ts, zarr_error *err)
{
    size_t want = 0;

    if (bytes <= b->bytes && b->p)
        return ZARR_OK;
    if (!zr_fits(ZR_MAX(bytes, (uint64_t)GROW_LEAST), &want))
        return zr_fail(err, ZARR_ERR_LIMIT,
                       "a chunk does not fit this machine's addresses");
    zr_buffer_free(b, ts);
    if (ts->grant && want > ZR_BUFFER_KEEPS)
        ZR_CHECK(ts->grant->take(ts->grant->arg, want, err));
    b->p = zr_malloc(ts->alloc, want);
    if (!b->p)
        return zr_fail_memory(err, want);
    b->bytes = want;
    return ZARR_OK;
}

/* One stage, and where it writes: the caller's dst, or a buffer. */
struct unsized_step {
    const struct zr_program *p;
    const struct zr_stage *stage;
    struct zr_unsized *g;
    const zarr_memory *dst; /* NULL: buffer */
    struct zr_buffer *buffer;
    uint64_t most; /* output bytes: with more, the last stage's would not fit its room */
    bool known;    /* the output has exactly that, unless the chunk is damaged */
    bool encode;
};

/* Runs the step by one implementation. */
static zarr_status step_call_by(const struct unsized_step *s,
                                const struct zr_stage *stage, zarr_codec_job *job,
                                zarr_error *err)
{
    struct zr_stage_call call = {.jobs = job, .n = 1, .ts = s->g->ts};
    uint64_t need = 0;

    if (stage->impl->vt.scratch)
        need = stage->impl->vt.scratch(stage->self, 1,
                                       s->encode ? job->src.bytes : job->dst.bytes);
    if (need) {
        ZR_CHECK(zr_buffer_need(&s->g->buffer[2], need, s->g->ts, err));
        call.scratch = zr_mem_of_host(s->g->buffer[2].p, need);
    }
    return zr_stage_run(stage, &call, s->encode, err);
}

/* Runs the step by the first implementation that takes the chunk. */
static zarr_status step_call(const struct unsized_step *s, zarr_codec_job *job,
                             zarr_error *err)
{
    const struct zr_stage *by = s->stage;
    const zarr_codec_job whole = *job;
    zarr_status st = ZARR_ERR_UNSUPPORTED;

    for (const struct zr_stage *next = by; next; next = next->fallback) {
        by = next;
        if (!s->encode && by->fallback && !zr_stage_accepts(by, job))
            continue;
        *job = whole;
        st = step_call_by(s, by, job, err);
        if (!zr_stage_declines(by, st))
            break;
    }
    return zr_stage_tell_tried(s->stage, by, st, err);
}

static uint64_t step_hint(const struct unsized_step *s, const zarr_codec_job *job)
{
    const zarr_codec_impl_vtable *v = &s->stage->impl->vt;

    return v->size_hint ? v->size_hint(s->stage->self, job, s->encode) : 0;
}

static uint64_t times(uint64_t n, uint64_t factor)
{
    uint64_t out = 0;

    return zr_mul(n, factor, &out) ? out : UINT64_MAX;
}

static const char *limit_name(const struct zr_program *p)
{
    return p->variable ? "variable_chunk_bytes" : "chunk_bytes";
}

/* A damaged header cannot reserve more memory than the size of the input makes plausible.
 */
static zarr_status decode_room(const struct unsized_step *s, const zarr_codec_job *job,
                               uint64_t *room, zarr_error *err)
{
    const uint64_t bound = s->stage->out_bytes, hint = step_hint(s, job);
    const uint64_t explained =
        ZR_MAX(times(job->src.bytes, GROW_EXPLAINS), (uint64_t)GROW_LEAST);

    if (hint > bound && s->p->unsized)
        return zr_fail_limit(err, limit_name(s->p), bound,
                             "%s: the chunk says it has %" PRIu64 " bytes",
                             zarr_codec_spec_name(&s->stage->spec), hint);
    *room = hint ? ZR_MIN(hint, explained) : times(job->src.bytes, GROW_FACTOR);
    *room = ZR_MIN(ZR_MAX(*room, (uint64_t)GROW_LEAST), bound);
    return ZARR_OK;
}

static zarr_status encode_room(const struct unsized_step *s, const zarr_codec_job *job,
                               uint64_t *room, zarr_error *err)
{
    const struct zr_stage *stage = s->stage;

    *room = step_hint(s, job);
    if (*room)
        return ZARR_OK;
    *room = s->p->unsized ? UINT64_MAX : stage->in_bytes;
    if (stage->spec.vt->kind == ZARR_CODEC_BYTES_BYTES)
        ZR_CHECK(zr_spec_bound(&stage->spec, job->src.bytes, room, err));
    else if (!stage->out_exact) /* an array of any length: its bound is far too large */
        *room = ZR_MIN(ZR_MIN(*room, stage->in_bytes),
                       ZR_MAX(times(job->src.bytes, GROW_ARRAY), (uint64_t)GROW_LEAST));
    if (*room == UINT64_MAX)
        *room = ZR_MIN(ZR_MAX(times(job->src.bytes, GROW_FACTOR), (uint64_t)GROW_LEAST),
                       stage->in_bytes);
    return ZARR_OK;
}

static zarr_status step_fail_limit(const struct unsized_step *s, zarr_status st,
                                   zarr_error *err)
{
    const uint64_t most = s->encode ? s->stage->in_bytes : s->stage->out_bytes;

    if (!s->p->unsized)
        return st;
    return zr_fail_limit(err, limit_name(s->p), most,
                         "%s: a chunk of more than %" PRIu64 " bytes",
                         zarr_codec_spec_name(&s->stage->spec), most);
}

/* Runs the stage into a buffer, which grows up to the bound while its room is too small.
 */
static zarr_status step_enlarge(const struct unsized_step *s, zarr_codec_job *job,
                                zarr_error *err)
{
    const struct zr_stage *stage = s->stage;
    const bool exact = s->encode ? stage->in_exact : stage->out_exact;
    uint64_t room = s->encode ? stage->in_bytes : stage->out_bytes;
    const uint64_t bound = ZR_MIN(room, s->most);
    zarr_status st = ZARR_OK;

    if (s->known)
        room = s->most;
    else if (!exact)
        ZR_TRY(s->encode ? encode_room(s, job, &room, err)
                         : decode_room(s, job, &room, err));
    if (s->most < room)
        room = s->most;
    else if (room > bound && !(s->encode && !s->p->unsized))
        ZR_TRY(step_fail_limit(s, ZARR_ERR_LIMIT, err));
    for (;;) {
        ZR_TRY(zr_buffer_need(s->buffer, room, s->g->ts, err));
        job->dst = zr_mem_of_host(
            s->buffer->p, exact ? room : ZR_MIN((uint64_t)s->buffer->bytes, s->most));
        st = step_call(s, job, err);
        if (st == ZARR_OK || exact || !(job->flags & ZARR_CODEC_JOB_NO_ROOM))
            break;
        room = job->dst.bytes;
        if (room >= s->most) {
            s->g->no_room = true;
            break;
        }
        if (room >= bound) {
            st = step_fail_limit(s, st, err);
            break;
        }
        room = ZR_MIN(times(room, GROW_FACTOR), bound);
    }
out:
    return st;
}

/* If only the chunk tells the length of an array, array->array codecs still keep the
 * number of elements. So the stages before them must not make more elements than fit the
 * result, although a decoder could read its input as more. */
static uint64_t step_most(const struct zr_program *p, const struct zr_unsized *g,
                          const struct zr_stage *stage, const zarr_memory *dst)
{
    const uint32_t item = p->stage[p->n - 1].out_item;

    if (p->encode || p->decoded_exact || !(dst || g->bounded) || !item ||
        !stage->out_item)
        return UINT64_MAX;
    return times((dst ? dst->bytes : g->most) / item, stage->out_item);
}

/* The buffer for the output of step k. Elements of variable length point into the input
 * of the array->bytes codec, so that input stays while later steps move the elements. */
static struct zr_buffer *step_buffer(const struct zr_program *p, struct zr_unsized *g,
                                     uint32_t k)
{
    uint32_t items = k;

    while (p->variable && !p->encode && items > 0 &&
           p->stage[items].spec.vt->kind == ZARR_CODEC_ARRAY_ARRAY)
        items--;
    return (k - items) % 2 ? &g->buffer[3] : &g->buffer[items % 2];
}

/* Copies *cur to dst, for a program without stages. */
static zarr_status copy_to(struct zr_unsized *g, const zarr_memory *dst, zarr_memory *cur,
                           zarr_error *err)
{
    const uint64_t bytes = cur->bytes;

    g->no_room = dst->bytes < bytes;
    if (g->no_room)
        return zr_fail(err, ZARR_ERR_CORRUPT,
                       "%" PRIu64 " bytes, there is room for %" PRIu64, bytes,
                       dst->bytes);
    if (bytes)
        memcpy((uint8_t *)dst->handle + dst->offset,
               (const uint8_t *)cur->handle + cur->offset, (size_t)bytes);
    *cur = *dst;
    cur->bytes = bytes;
    return ZARR_OK;
}

static zarr_status unsized_run(const struct zr_program *p, struct zr_unsized *g,
                               const zarr_memory *src, const zarr_memory *dst,
                               zarr_memory *out, zarr_error *err)
{
    zarr_memory cur = *src;
    zarr_status st = ZARR_OK;

    g->no_room = false;
    for (uint32_t k = 0; k < p->n; k++) {
        const struct zr_stage *stage = &p->stage[p->encode ? p->n - 1 - k : k];
        const uint64_t most = step_most(p, g, stage, dst);
        const struct unsized_step s = {.p = p,
                                       .stage = stage,
                                       .g = g,
                                       .dst = k + 1 == p->n ? dst : NULL,
                                       .buffer = step_buffer(p, g, k),
                                       .most = most,
                                       .known = dst && most != UINT64_MAX,
                                       .encode = p->encode};
        zarr_codec_job job = {.src = cur};

        if (stage->kind != ZR_STAGE_CODEC)
            ZR_TRY(zr_internal(err));
        if (s.dst) {
            job.dst = *dst;
            st = step_call(&s, &job, err);
            g->no_room = st != ZARR_OK && (job.flags & ZARR_CODEC_JOB_NO_ROOM);
        } else {
            st = step_enlarge(&s, &job, err);
        }
        ZR_TRY(st);
        cur = job.dst;
        cur.bytes = job.dst_used;
    }
    if (p->n == 0 && dst)
        ZR_TRY(copy_to(g, dst, &cur, err));
    *out = cur;
out:
    return st;
}

zarr_status zr_unsized_decode(const struct zr_program *p, struct zr_unsized *g,
                              const zarr_memory *src, const zarr_memory *dst,
                              zarr_memory *out, zarr_error *err)
{
    if (p->encode)
        return zr_internal(err);
    ZR_CHECK(unsized_run(p, g, src, dst, out, err));
    if (p->decoded_exact ? out->bytes != p->decoded_bytes : out->bytes > p->decoded_bytes)
        return zr_fail(err, ZARR_ERR_CORRUPT,
                       "chunk has %" PRIu64
                       " bytes where its shape and data type need %s%" PRIu64,
                       out->bytes, p->decoded_exact ? "" : "at most ", p->decoded_bytes);
    return ZARR_OK;
}

zarr_status zr_unsized_encode(const struct zr_program *p, struct zr_unsized *g,
                              const zarr_memory *src, const zarr_memory *dst,
                              zarr_memory *out, zarr_error *err)
{
    return p->encode ? unsized_run(p, g, src, dst, out, err) : zr_internal(err);
}
