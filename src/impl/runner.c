/*
 * impl/runner.c - runs the chains nested in a codec's configuration for the codec's
 * implementation. A runner is bound once, with that implementation, and threads share it.
 * It uses the codec contexts and buffers of the calling thread, which it finds through
 * the implementation's exec. Buffers are a stack: the result of a runner stays until the
 * stage that called it returns. A stage only decodes or only encodes, and so do the
 * runners of its implementation. The program for that direction is made with the runner,
 * the other one on first use. Making both at once would make two programs of each nested
 * runner, four of those inside, and so on. Recursion: through nested runners.
 * ZR_SUB_DEPTH and limits.shard_depth bound the nesting in metadata. Thread class:
 * frozen; a program that is made later is published once.
 */
#include "impl/impl_int.h"

#include <string.h>

struct zarr_codec_runner {
    _Atomic(struct zr_program *) program[2]; /* decodes, encodes; NULL: not made yet */
    struct zarr_codec_runner *self;          /* not const: takes a program made later */
    struct zr_chain chain;                   /* codecs borrowed from the specification */
    const struct zr_impl_registry *impls;
    struct zr_chain_reps reps;
    const char *name, *member;
    uint32_t trust; /* ZARR_TRUST_* */
    const zarr_allocator *alloc;
};

void zarr_codec_runner_close(zarr_codec_runner *runner)
{
    if (!runner)
        return;
    for (int encode = 0; encode < 2; encode++)
        zr_program_free(
            atomic_load_explicit(&runner->program[encode], memory_order_relaxed));
    zr_chain_reps_deinit(&runner->reps);
    zr_free(runner->alloc, runner);
}

/* Makes the program if it is missing. If two threads make it, one frees its own again. */
static zarr_status runner_program(const zarr_codec_runner *r, bool encode,
                                  const struct zr_program **out, zarr_error *err)
{
    _Atomic(struct zr_program *) *place = &r->self->program[encode];
    struct zr_program *there = atomic_load_explicit(place, memory_order_acquire);
    const struct zr_placement_options opts = {
        .target_device = ZARR_DEVICE_CPU, .encode = encode, .trust = r->trust};
    struct zr_program *made = NULL;

    if (!there) {
        ZR_CHECK(zr_program_make_plain(&made, r->impls, &r->chain, &r->reps, &opts,
                                       r->alloc, err));
        if (atomic_compare_exchange_strong_explicit(
                place, &there, made, memory_order_acq_rel, memory_order_acquire))
            there = made;
        else
            zr_program_free(made);
    }
    *out = there;
    return ZARR_OK;
}

/* If both directions are wanted, one may be UNSUPPORTED: the error comes on its use. */
static zarr_status runner_bind(const zarr_codec_runner *r, enum zr_direction direction,
                               zarr_error *err)
{
    const struct zr_program *p = NULL;
    zarr_status decodes = ZARR_OK, st = ZARR_OK;

    if (direction != ZR_DIRECTION_BOTH)
        return runner_program(r, direction == ZR_DIRECTION_ENCODE, &p, err);
    decodes = runner_program(r, false, &p, err);
    if (decodes != ZARR_OK && decodes != ZARR_ERR_UNSUPPORTED)
        return decodes;
    st = runner_program(r, true, &p, decodes == ZARR_OK ? NULL : err);
    return st == ZARR_ERR_UNSUPPORTED && decodes == ZARR_OK ? ZARR_OK : st;
}

zarr_status zr_runner_open_chain(zarr_codec_runner **out, const zarr_codec_spec *spec,
                                 const char *member, const struct zr_chain *chain,
                                 const zarr_chunk_spec *decoded, zarr_error *err)
{
    const zarr_limits limits = {.chunk_bytes = spec->most_bytes,
                                .chunks_per_shard = spec->most_chunks};
    zarr_codec_runner *r = NULL;
    zarr_status st = ZARR_OK;

    *out = NULL;
    if (!spec->registry || !spec->registry->impls)
        return zr_internal(err);
    r = zr_calloc(spec->alloc, 1, sizeof *r);
    if (!r)
        return zr_fail_memory(err, sizeof *r);
    r->alloc = spec->alloc;
    r->self = r;
    r->chain = *chain;
    r->impls = spec->registry->impls;
    r->name = zarr_codec_spec_name(spec);
    r->member = member;
    r->trust = spec->trust;
    st = zr_chain_resolve_any(&r->reps, chain, decoded, decoded->dtype && !decoded->exact,
                              &limits, r->alloc, err);
    if (st != ZARR_OK)
        ZR_TRY(zr_prefix(err, st, "%s", r->name)); /* the text names the member */
    st = runner_bind(r, spec->direction, err);
    if (st != ZARR_OK)
        ZR_TRY(zr_prefix(err, st, "%s: %s", r->name, member));
    *out = r; /* moved */
    r = NULL;
out:
    zarr_codec_runner_close(r);
    return st;
}

zarr_status zr_runner_open_range(zarr_codec_runner **out, const zarr_codec_spec *spec,
                                 const char *member, uint32_t first, uint32_t n,
                                 const zarr_chunk_spec *decoded, zarr_error *err)
{
    const struct zr_sub_chain *sub = zr_spec_sub(spec, member);
    struct zr_chain part = {0};

    *out = NULL;
    if (!sub)
        return zr_fail(err, ZARR_ERR_INVALID, "%s: %s is missing",
                       zarr_codec_spec_name(spec), member);
    if (first > sub->chain->n || n > sub->chain->n - first)
        return zr_internal(err);
    part = (struct zr_chain){.codec = sub->chain->codec + first,
                             .n = n,
                             .a2b = n,
                             .label = sub->chain->label,
                             .alloc = sub->chain->alloc};
    if (sub->chain->a2b >= first && sub->chain->a2b - first < n)
        part.a2b = sub->chain->a2b - first;
    return zr_runner_open_chain(out, spec, sub->member, &part, decoded, err);
}

zarr_status zarr_codec_runner_open(zarr_codec_runner **out, const zarr_codec_spec *spec,
                                   const char *member, const zarr_chunk_spec *decoded,
                                   zarr_error *err)
{
    *out = NULL;
    ZR_NEED(spec, err);
    const struct zr_sub_chain *sub = zr_spec_sub(spec, member);

    return zr_runner_open_range(out, spec, member, 0, sub ? sub->chain->n : 0, decoded,
                                err);
}

uint64_t zr_runner_bound(const zarr_codec_runner *r)
{
    return r->reps.rep[r->reps.n].n_bytes;
}

/* ---- running --------------------------------------------------------------------- */

zarr_status zr_buffer_stack_push(struct zr_buffer_stack *s, size_t n,
                                 const zarr_allocator *alloc, zarr_error *err)
{
    size_t cap = s->n;

    if (s->top + n > s->n) {
        ZR_CHECK(zr_grow(alloc, &s->buffer, &cap, s->top + n, sizeof *s->buffer, err));
        memset(s->buffer + s->n, 0, (cap - s->n) * sizeof *s->buffer);
        s->n = cap;
    }
    s->top += n;
    return ZARR_OK;
}

zarr_status zr_exec_room(zarr_codec_exec *exec, bool encode, uint64_t bytes,
                         uint8_t **out, zarr_error *err)
{
    struct zr_thread_states *ts = exec->inner;
    struct zr_buffer_stack *s = encode ? &ts->encode : &ts->decode;

    ZR_CHECK(zr_buffer_stack_push(s, 1, ts->alloc, err));
    ZR_CHECK(zr_buffer_need(&s->buffer[s->top - 1], bytes, ts, err));
    *out = s->buffer[s->top - 1].p;
    return ZARR_OK;
}

/* While the stages run, nested runners may push buffers and so move the table. So this
 * function takes its buffers out of the table and puts them back. The buffer with the
 * result stays on the stack, and the others are free again. Decoding and encoding have
 * separate stacks, because decoded elements of variable length still point into the
 * decoder's buffers when they are encoded. */
static zarr_status runner_run(const struct zr_program *p, struct zr_thread_states *ts,
                              const zarr_memory *src, const uint64_t *most,
                              zarr_memory *dst, bool *no_room, zarr_error *err)
{
    struct zr_buffer own[ZR_UNSIZED_BUFFERS];
    struct zr_unsized g = {
        .ts = ts, .buffer = own, .bounded = most != NULL, .most = most ? *most : 0};
    struct zr_buffer_stack *stack = p->encode ? &ts->encode : &ts->decode;
    const size_t at = stack->top;
    const bool given = dst->handle != NULL;
    zarr_memory got = {0};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_buffer_stack_push(stack, ZR_UNSIZED_BUFFERS, ts->alloc, err));
    memcpy(own, &stack->buffer[at], sizeof own);
    memset(&stack->buffer[at], 0, sizeof own);
    st = p->encode ? zr_unsized_encode(p, &g, src, given ? dst : NULL, &got, err)
                   : zr_unsized_decode(p, &g, src, given ? dst : NULL, &got, err);
    for (int i = 1; i < ZR_UNSIZED_BUFFERS && !given; i++) {
        const struct zr_buffer b = own[0];

        if (!got.handle || own[i].p != got.handle)
            continue;
        own[0] = own[i]; /* the result goes to the bottom */
        own[i] = b;
    }
    memcpy(&stack->buffer[at], own, sizeof own);
    stack->top = given || st != ZARR_OK ? at : at + 1;
    *no_room = g.no_room;
    if (st == ZARR_OK)
        *dst = got;
out:
    return st;
}

static zarr_status runner_call(const zarr_codec_runner *r, bool encode,
                               zarr_codec_exec *exec, const zarr_memory *src,
                               const uint64_t *most, zarr_memory *dst, zarr_error *err)
{
    const struct zr_program *p = NULL;
    bool no_room = false;
    zarr_status st = ZARR_OK;

    if (!exec->inner)
        return zr_internal(err);
    st = runner_program(r, encode, &p, err);
    if (st == ZARR_OK)
        st = runner_run(p, exec->inner, src, most, dst, &no_room, err);
    if (no_room)
        exec->flags |= ZARR_CODEC_JOB_NO_ROOM;
    return st == ZARR_OK ? ZARR_OK : zr_prefix(err, st, "%s: %s", r->name, r->member);
}

zarr_status zarr_codec_runner_decode(const zarr_codec_runner *runner,
                                     zarr_codec_exec *exec, const zarr_memory *src,
                                     zarr_memory *dst, zarr_error *err)
{
    ZR_NEED(runner, err);
    return runner_call(runner, false, exec, src, NULL, dst, err);
}

zarr_status zr_runner_decode_most(const zarr_codec_runner *r, zarr_codec_exec *exec,
                                  const zarr_memory *src, uint64_t most, zarr_memory *dst,
                                  zarr_error *err)
{
    *dst = (zarr_memory){0};
    return runner_call(r, false, exec, src, &most, dst, err);
}

zarr_status zarr_codec_runner_encode(const zarr_codec_runner *runner,
                                     zarr_codec_exec *exec, const zarr_memory *src,
                                     zarr_memory *dst, zarr_error *err)
{
    ZR_NEED(runner, err);
    return runner_call(runner, true, exec, src, NULL, dst, err);
}

zarr_status zr_runner_encode_at(const zarr_codec_runner *r, zarr_codec_exec *exec,
                                const zarr_memory *src, const struct zr_host_job *io,
                                size_t *at, zarr_error *err)
{
    struct zr_thread_states *ts = exec->inner;
    const size_t top = ts ? ts->encode.top : 0;
    zarr_memory got = {0};

    ZR_CHECK(zarr_codec_runner_encode(r, exec, src, &got, err));
    ts->encode.top = top;
    if (got.bytes > io->dst_bytes - *at)
        return zr_too_long(err, r->name, io->dst_bytes);
    if (got.bytes)
        memcpy(io->dst + *at, (const uint8_t *)got.handle + got.offset,
               (size_t)got.bytes);
    *at += (size_t)got.bytes;
    return ZARR_OK;
}

/* ---- runners one after another --------------------------------------------------- */

static struct zr_buffer_stack *row_stack(const struct zr_runner_row *row)
{
    struct zr_thread_states *ts = row->exec->inner;

    return row->encode ? &ts->encode : &ts->decode;
}

void zr_runner_row_open(struct zr_runner_row *row, zarr_codec_exec *exec, bool encode,
                        const zarr_memory *input)
{
    *row = (struct zr_runner_row){.input = *input, .exec = exec, .encode = encode};
    row->base = row->top = row_stack(row)->top;
}

zarr_status zr_runner_row_run(struct zr_runner_row *row, const zarr_codec_runner *r,
                              zarr_error *err)
{
    row->top = row_stack(row)->top;
    row->output = (zarr_memory){0};
    return runner_call(r, row->encode, row->exec, &row->input, NULL, &row->output, err);
}

void zr_runner_row_keep(struct zr_runner_row *row)
{
    struct zr_buffer_stack *s = row_stack(row);
    const struct zr_buffer last = s->buffer[s->top - 1];

    if (row->output.handle != last.p) { /* the runner has no stage: output is the input */
        s->top--;
    } else { /* the buffer of the previous input is free again */
        s->buffer[s->top - 1] = s->buffer[row->base];
        s->buffer[row->base] = last;
        s->top = row->base + 1;
    }
    row->input = row->output;
}

void zr_runner_row_drop(struct zr_runner_row *row)
{
    row_stack(row)->top = row->top;
}

bool zr_runner_is_lossy(const zarr_codec_runner *r)
{
    return zr_chain_lossy(&r->chain, &r->reps) != NULL;
}

zarr_status zr_runner_comes_back(const zarr_codec_runner *r, zarr_codec_exec *exec,
                                 const zarr_memory *encoded, const zarr_memory *decoded,
                                 bool *same, zarr_error *err)
{
    struct zr_thread_states *ts = exec->inner;
    const struct zr_buffer_stack kept = ts->decode;
    zarr_memory got = {0};
    zarr_status st = ZARR_OK;

    ts->decode = (struct zr_buffer_stack){0};
    ZR_TRY(zr_runner_decode_most(r, exec, encoded, decoded->bytes, &got, err));
    *same = got.bytes == decoded->bytes &&
            (got.bytes == 0 || memcmp((const uint8_t *)got.handle + got.offset,
                                      (const uint8_t *)decoded->handle + decoded->offset,
                                      (size_t)got.bytes) == 0);
out:
    for (size_t i = 0; i < ts->decode.n; i++)
        zr_buffer_free(&ts->decode.buffer[i], ts);
    zr_free(ts->alloc, ts->decode.buffer);
    ts->decode = kept;
    exec->flags &= ~(uint32_t)ZARR_CODEC_JOB_NO_ROOM;
    return st;
}
