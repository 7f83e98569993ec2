/*
 * impl/bind.c - the stages of a program: each codec is bound to the implementation that
 * place.c chose. If an implementation refuses to bind (UNSUPPORTED), it is excluded and
 * the path is searched again. A stage has a chain of fallbacks on the host, all other
 * implementations of its codec, for the chunks that it does not take. An implementation
 * may wrap the next one, which is a stage of its own inside.
 * Thread class: frozen once made.
 */
#include "impl/impl_int.h"

uint64_t zr_stage_rep_bytes(const zarr_chunk_spec *rep, bool encode)
{
    uint64_t room = rep->n_bytes;

    if (rep->exact || encode)
        return room;
    if (!zr_add(room, room / 8 + 65536, &room))
        room = UINT64_MAX;
    return room;
}

static void stage_measure(struct zr_stage *s, const zarr_chunk_spec *encoded,
                          const zarr_chunk_spec *decoded, bool encode)
{
    s->in_bytes = zr_stage_rep_bytes(encoded, encode);
    s->out_bytes = zr_stage_rep_bytes(decoded, encode);
    s->in_exact = encoded->exact != 0;
    s->out_exact = decoded->exact != 0;
    s->out_item = decoded->dtype ? (uint32_t)zarr_dtype_item_bytes(decoded->dtype) : 0;
}

static void stage_close(struct zr_stage *s)
{
    if (s->impl && s->self && s->impl->vt.close)
        s->impl->vt.close(s->self);
    s->self = NULL;
    zr_spec_drop_shard_config(&s->spec);
}

/* What bind() is called for: `inner` of its binding, from which the next one is found. */
struct binding_place {
    const struct zr_place *p;
    const struct zr_stage *stage;
    uint32_t at;
};

static zarr_status stage_bind(struct zr_stage *s, const struct zr_place *p, uint32_t at,
                              const struct zr_impl *impl, zarr_error *err)
{
    const struct zr_place_link *link = &p->links[at];
    const struct binding_place inner = {.p = p, .stage = s, .at = at};
    const bool encode = p->opts->encode;
    const zarr_codec_binding to = {.struct_size = sizeof to,
                                   .encode = encode,
                                   .decoded = link->decoded,
                                   .encoded = link->encoded,
                                   .decoded_type = s->out_device,
                                   .encoded_type = s->in_device,
                                   .impl = impl->vt.impl,
                                   .inner = &inner};
    struct zr_foreign said;
    zarr_status st = ZARR_OK;

    s->kind = ZR_STAGE_CODEC;
    s->impl = impl;
    s->spec = *link->spec;
    s->spec.direction = encode ? ZR_DIRECTION_ENCODE : ZR_DIRECTION_DECODE;
    s->spec.trust = zr_place_trust(p, at);
    stage_measure(s, link->encoded, link->decoded, encode);
    if (!impl->vt.bind)
        return ZARR_OK;
    ZR_TRY(zr_spec_own_shard_config(&s->spec, err));
    st = impl->vt.bind(&s->self, &s->spec, &to, zr_foreign_begin(&said, err));
    if (st != ZARR_OK)
        st = zr_impl_fail(impl, &said, st, false);
out:
    if (st != ZARR_OK)
        zr_spec_drop_shard_config(&s->spec);
    return st;
}

/* The cheapest host implementation that is not in the chain of fallbacks yet. */
static const struct zr_impl *stage_next_host(const struct zr_place *p, uint32_t link,
                                             const struct zr_stage *head)
{
    const struct zr_impl *best = NULL;
    int64_t best_cost = INT64_MAX;

    for (size_t k = 0; k < zr_impl_count(p->impls); k++) {
        const struct zr_impl *impl = zr_impl_at(p->impls, k);
        int64_t cost = 0;
        bool taken = false;

        for (const struct zr_stage *s = head; s; s = s->fallback)
            taken |= s->impl == impl;
        if (!taken &&
            zr_place_is_usable(p, link, impl, ZARR_DEVICE_CPU, ZARR_DEVICE_CPU, &cost) &&
            cost < best_cost) {
            best = impl;
            best_cost = cost;
        }
    }
    return best;
}

static zarr_status stage_add_fallbacks(const struct zr_place *p, uint32_t link,
                                       struct zr_stage *head, bool *excluded,
                                       zarr_error *err)
{
    struct zr_stage *last = head;

    for (;;) {
        const struct zr_impl *impl = stage_next_host(p, link, head);
        struct zr_stage *next = NULL;
        zarr_error own = ZARR_ERROR_INIT;
        zarr_status st = ZARR_OK;

        if (!impl)
            return ZARR_OK;
        next = zr_calloc(p->alloc, 1, sizeof *next);
        if (!next)
            return zr_fail_memory(err, sizeof *next);
        next->in_device = next->out_device = ZARR_DEVICE_CPU;
        st = stage_bind(next, p, link, impl, &own);
        if (st == ZARR_OK) {
            last->fallback = next; /* moved */
            last = next;
            continue;
        }
        zr_free(p->alloc, next);
        if (st != ZARR_ERR_UNSUPPORTED)
            return zr_prefix(err, zr_pass(err, st, &own),
                             "codec \"%s\": \"%s\" did not bind",
                             zarr_codec_spec_name(p->links[link].spec), impl->vt.impl);
        excluded[link * zr_impl_count(p->impls) + impl->id] = true;
    }
}

void zr_program_drop_stages(struct zr_program *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        struct zr_stage *next = p->stage[i].fallback;

        stage_close(&p->stage[i]);
        while (next) {
            struct zr_stage *s = next;

            next = s->fallback;
            stage_close(s);
            zr_free(p->alloc, s);
        }
    }
    zr_free(p->alloc, p->stage);
    p->stage = NULL;
    p->n = 0;
}

static void stage_copy(struct zr_stage *s, const struct zr_place *place,
                       const struct zr_step *step)
{
    const bool first = step->link < place->n_links;
    const zarr_chunk_spec *rep = first ? place->links[step->link].encoded
                                       : place->links[place->n_links - 1].decoded;

    s->kind = ZR_STAGE_COPY;
    stage_measure(s, rep, rep, place->opts->encode);
}

/* Binds the implementations that place.c chose. *refused: one did not bind and is now
 * excluded, so the caller must place again. */
static zarr_status program_bind(struct zr_program *p, const struct zr_place *place,
                                const struct zr_step *steps, uint32_t n, bool *excluded,
                                bool *refused, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    *refused = false;
    p->stage = zr_calloc(p->alloc, ZR_MAX(n, 1U), sizeof *p->stage);
    if (!p->stage)
        return zr_fail_memory(err, n * sizeof *p->stage);
    for (uint32_t i = 0; i < n; i++) {
        struct zr_stage *s = &p->stage[i];

        s->in_device = steps[i].in_device;
        s->out_device = steps[i].out_device;
        if (!steps[i].impl) {
            stage_copy(s, place, &steps[i]);
            p->n = i + 1;
            continue;
        }
        st = stage_bind(s, place, steps[i].link, steps[i].impl, err);
        if (st == ZARR_ERR_UNSUPPORTED) {
            excluded[steps[i].link * zr_impl_count(place->impls) + steps[i].impl->id] =
                true;
            *refused = true;
        }
        if (st != ZARR_OK)
            goto out;
        p->n = i + 1;
        ZR_TRY(stage_add_fallbacks(place, steps[i].link, s, excluded, err));
    }
out:
    return st;
}

zarr_status zr_program_place(struct zr_program *p, const struct zr_place *place,
                             bool *excluded, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_step *steps = NULL;
    uint32_t n = 0;
    bool refused = false;

    steps = zr_calloc(p->alloc, 3 * (size_t)place->n_links + 1, sizeof *steps);
    if (!steps)
        return zr_fail_memory(err, (3 * (uint64_t)place->n_links + 1) * sizeof *steps);
    do { /* ends: every round but the last excludes one more implementation of a link */
        const bool again = refused;

        zr_program_drop_stages(p);
        st = zr_place_path(place, steps, &n, again ? NULL : err);
        if (again && st == ZARR_ERR_UNSUPPORTED)
            break; /* err already says why the last implementation refused */
        if (st != ZARR_OK)
            goto out;
        st = program_bind(p, place, steps, n, excluded, &refused, err);
    } while (refused);
out:
    zr_free(p->alloc, steps);
    if (st == ZARR_ERR_UNSUPPORTED && refused && zr_place_distrusts_any(place))
        (void)zr_prefix(err, st,
                        "the option trust excludes implementations that do not check "
                        "their input");
    return st;
}

/* ---- the implementation that another one wraps ----------------------------------- */

struct zarr_codec_next {
    struct zr_stage stage;
    bool encode;
    const zarr_allocator *alloc;
};

/* Whether the wrapper's input suits the implementation. One that looks at its input gets
 * it in host memory only. */
static bool next_fits(const struct zr_stage *wrapper, const struct zr_impl *impl)
{
    return impl->vt.alignment <= ZR_MAX(wrapper->impl->vt.alignment, 1U) &&
           (!(impl->vt.caps & ZARR_CODEC_LOOKS) || wrapper->in_device == ZARR_DEVICE_CPU);
}

/* The best implementation after one that has this cost and id; *cost and *id become its
 * own. So a wrapper in a wrapper goes on, and none comes twice. */
static const struct zr_impl *next_after(const struct binding_place *b, int64_t *cost,
                                        int64_t *id)
{
    const struct zr_stage *w = b->stage;
    const struct zr_impl *best = NULL;
    int64_t best_cost = INT64_MAX;

    for (size_t k = 0; k < zr_impl_count(b->p->impls); k++) {
        const struct zr_impl *impl = zr_impl_at(b->p->impls, k);
        int64_t own = 0;

        if (!next_fits(w, impl) ||
            !zr_place_is_usable(b->p, b->at, impl, w->in_device, w->out_device, &own))
            continue;
        if ((own > *cost || (own == *cost && impl->id > *id)) && own < best_cost) {
            best = impl;
            best_cost = own;
        }
    }
    if (best) {
        *cost = best_cost;
        *id = best->id;
    }
    return best;
}

zarr_status zarr_codec_next_open(zarr_codec_next **out, const zarr_codec_binding *to,
                                 zarr_error *err)
{
    *out = NULL;
    ZR_NEED(to, err);
    const struct binding_place *b = to->inner;
    const zarr_allocator *alloc = b->p->alloc;
    const struct zr_impl *own = b->stage->impl, *impl;
    int64_t cost = 0, id = own->id;
    zarr_codec_next *next = zr_calloc(alloc, 1, sizeof *next);
    zarr_status st = ZARR_OK;

    if (!next)
        return zr_fail_memory(err, sizeof *next);
    next->alloc = alloc;
    next->encode = b->p->opts->encode;
    if (!zr_place_is_usable(b->p, b->at, own, b->stage->in_device, b->stage->out_device,
                            &cost))
        ZR_TRY(zr_internal(err));
    do {
        impl = next_after(b, &cost, &id);
        if (!impl)
            ZR_FAIL(err, ZARR_ERR_UNSUPPORTED,
                    "codec \"%s\": no implementation comes after \"%s\"", own->vt.codec,
                    own->vt.impl);
        next->stage.in_device = b->stage->in_device;
        next->stage.out_device = b->stage->out_device;
        st = stage_bind(&next->stage, b->p, b->at, impl, err);
    } while (st == ZARR_ERR_UNSUPPORTED);
    if (st == ZARR_OK) {
        *out = next; /* moved */
        next = NULL;
    }
out:
    if (next)
        zr_free(alloc, next);
    return st;
}

const char *zarr_codec_next_name(const zarr_codec_next *next)
{
    return next ? next->stage.impl->vt.impl : NULL;
}

uint64_t zarr_codec_next_scratch(const zarr_codec_next *next, uint64_t n,
                                 uint64_t max_out)
{
    const zarr_codec_impl_vtable *v = next ? &next->stage.impl->vt : NULL;

    return v && v->scratch ? v->scratch(next->stage.self, n, max_out) : 0;
}

/* Runs jobs in one call. A call that failed as a whole gives each of them its status. */
static zarr_status next_call(const zarr_codec_next *next, zarr_codec_exec *exec,
                             zarr_codec_job *jobs, uint64_t n, zarr_error *err)
{
    struct zr_stage_call call = {
        .jobs = jobs, .n = n, .ts = exec->inner, .scratch = exec->scratch};
    const zarr_status st = zr_stage_run(&next->stage, &call, next->encode, err);
    bool failed = false;

    exec->up_bytes += call.up_bytes;
    exec->up_copies += call.up_copies;
    exec->down_bytes += call.down_bytes;
    exec->down_copies += call.down_copies;
    for (uint64_t i = 0; i < n; i++)
        failed |= jobs[i].status != ZARR_OK;
    for (uint64_t i = 0; i < n && st != ZARR_OK && !failed; i++)
        jobs[i].status = st;
    return st;
}

zarr_status zarr_codec_next_run(const zarr_codec_next *next, zarr_codec_exec *exec,
                                zarr_codec_job *jobs, uint64_t n, zarr_error *err)
{
    ZR_NEED(next, err);
    const struct zr_stage *s = &next->stage;
    bool together = s->impl->vt.caps & ZARR_CODEC_BATCH;
    zarr_status first = ZARR_OK;

    for (uint64_t i = 0; i < n && !next->encode; i++)
        together = together && zr_stage_accepts(s, &jobs[i]);
    if (together && n > 0)
        return next_call(next, exec, jobs, n, err);
    for (uint64_t i = 0; i < n; i++) {
        zarr_error *text = first == ZARR_OK ? err : NULL;

        if (next->encode || zr_stage_accepts(s, &jobs[i]))
            (void)next_call(next, exec, &jobs[i], 1, text);
        else
            jobs[i].status = zr_fail(text, ZARR_ERR_UNSUPPORTED,
                                     "codec \"%s\": \"%s\" does not take the chunk",
                                     s->impl->vt.codec, s->impl->vt.impl);
        if (first == ZARR_OK && jobs[i].status != ZARR_OK) {
            first = jobs[i].status;
            if (err)
                err->item = i;
        }
    }
    return first;
}

void zarr_codec_next_close(zarr_codec_next *next)
{
    if (!next)
        return;
    stage_close(&next->stage);
    zr_free(next->alloc, next);
}
