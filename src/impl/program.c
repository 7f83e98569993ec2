/*
 * impl/program.c - makes a program of a chain for one chunk shape. Leading transposes,
 * and the byte order of `bytes`, become facts that the copy between chunk and tensor
 * applies at no extra cost. The other codecs become stages where place.c put them, each
 * bound to its implementation. If an implementation refuses to bind (UNSUPPORTED), it is
 * excluded and the path is searched again.
 *
 * A stage swaps the bytes of structs that have another byte order than this machine's,
 * because their fields differ in size. If an array->array codec computes, all codecs
 * after it are stages too, because no copy there could apply their swap or permutation.
 * Codecs that only change the shape are not stages. When decoding, codecs whose decoding
 * changes nothing are not stages. Unused bits (bool, int4) are a fact if elements end in
 * host memory, and a stage elsewhere.
 *
 * A stage has a chain of fallbacks on the host, all other implementations of its codec,
 * for the chunks that it does not take. Thread class: frozen once made.
 */
#include "impl/impl_int.h"

#include <string.h>

/* ---- taking the chain apart ------------------------------------------------------ */

struct program_cut {
    uint32_t first; /* the codecs before it are permutations that the copy applies */
    bool computes;  /* an array->array codec is a stage */
    bool pads;      /* the caller sets unused bits: zr_program_pad(), _unpad() */
};

static bool codec_is(const struct zarr_codec_spec *s, enum zr_structure_kind kind)
{
    return s->structure.kind == kind;
}

static struct program_cut program_cut(const struct zr_chain *chain)
{
    struct program_cut cut = {.first = chain->a2b};

    for (uint32_t i = 0; i < chain->a2b; i++) {
        if (cut.first == chain->a2b && codec_is(&chain->codec[i], ZR_STRUCTURE_TRANSPOSE))
            continue;
        cut.first = ZR_MIN(cut.first, i);
        cut.computes |= !(chain->codec[i].vt->flags & ZARR_CODEC_SPEC_RESHAPES);
    }
    return cut;
}

static uint32_t program_swap(const struct zarr_codec_spec *s, const zarr_dtype *dtype)
{
    const bool big = s->structure.stored.order == ZARR_ORDER_BIG;
    const uint32_t unit = zarr_dtype_swap_bytes(dtype);

    if (!codec_is(s, ZR_STRUCTURE_BYTES) ||
        s->structure.stored.order == ZARR_ORDER_NATIVE || unit < 2)
        return 0;
    return big == zr_host_is_little() ? unit : 0;
}

/* The copy at the end can swap elements of one unit, but not the fields of a struct, and
 * it does not change unused bits. */
static bool bytes_is_stage(const struct zarr_codec_spec *s, const zarr_dtype *dtype,
                           struct program_cut cut)
{
    return (!cut.pads && zr_dtype_is_padded(dtype)) ||
           (zr_dtype_is_swapped(dtype, &s->structure.stored) &&
            (cut.computes || zarr_dtype_kind(dtype) == ZARR_KIND_STRUCT));
}

static zarr_status program_shape(struct zr_program *p, const struct zr_chain *chain,
                                 const struct zr_chain_reps *reps, struct program_cut cut,
                                 zarr_error *err)
{
    const zarr_chunk_spec *elements = &reps->rep[cut.first];
    uint8_t order[ZARR_MAX_RANK], step[ZARR_MAX_RANK];
    zarr_status st = ZARR_OK;

    p->ndim = elements->ndim;
    for (int32_t i = 0; i < p->ndim; i++)
        p->order[i] = (uint8_t)i;
    for (uint32_t k = 0; k < cut.first; k++) {
        ZR_TRY(zr_spec_order(&chain->codec[k], p->ndim, step, err));
        for (int32_t i = 0; i < p->ndim; i++)
            order[i] = p->order[step[i]];
        memcpy(p->order, order, sizeof p->order[0] * (size_t)p->ndim);
    }
    memcpy(p->stored_shape, elements->shape, sizeof p->stored_shape);
    p->item_bytes = (uint32_t)zarr_dtype_item_bytes(elements->dtype);
    if (!cut.computes)
        p->swap_bytes = program_swap(&chain->codec[chain->a2b], elements->dtype);
    p->decoded_bytes = elements->n_bytes;
    p->decoded_exact = true;
    if (cut.pads && zr_dtype_is_padded(elements->dtype) &&
        !bytes_is_stage(&chain->codec[chain->a2b], elements->dtype, cut))
        p->padded = elements->dtype;
out:
    return st;
}

/* The codecs from the last one down to cut.first that are stages, in decoding order. */
static uint32_t program_links(struct zr_place_link *links, const struct zr_chain *chain,
                              const struct zr_chain_reps *reps, struct program_cut cut,
                              bool encode)
{
    uint32_t n = 0;

    for (uint32_t i = chain->n; i-- > cut.first;) {
        const struct zarr_codec_spec *s = &chain->codec[i];

        if (codec_is(s, ZR_STRUCTURE_BYTES) &&
            !bytes_is_stage(s, reps->rep[i].dtype, cut))
            continue;
        if ((s->vt->flags & ZARR_CODEC_SPEC_RESHAPES) ||
            (!encode && (s->vt->flags & ZARR_CODEC_SPEC_DECODES_NOTHING)))
            continue;
        links[n++] = (struct zr_place_link){
            .spec = s, .encoded = &reps->rep[i + 1], .decoded = &reps->rep[i]};
    }
    return n;
}

/* ---- stages ---------------------------------------------------------------------- */

static uint64_t stage_rep_bytes(const zarr_chunk_spec *rep, bool encode)
{
    uint64_t room = rep->n_bytes;

    if (rep->exact || encode)
        return room;
    if (!zr_add_u64(room, room / 8 + 65536, &room))
        room = UINT64_MAX;
    return room;
}

static void stage_measure(struct zr_stage *s, const zarr_chunk_spec *encoded,
                          const zarr_chunk_spec *decoded, bool encode)
{
    s->in_bytes = stage_rep_bytes(encoded, encode);
    s->out_bytes = stage_rep_bytes(decoded, encode);
    s->in_exact = encoded->exact != 0;
    s->out_exact = decoded->exact != 0;
    s->out_item = decoded->dtype ? (uint32_t)zarr_dtype_item_bytes(decoded->dtype) : 0;
}

static void stage_close(struct zr_stage *s)
{
    if (s->impl && s->self && s->impl->vt.close)
        s->impl->vt.close(s->self);
    s->self = NULL;
}

static zarr_status stage_bind(struct zr_stage *s, const struct zr_place *p, uint32_t at,
                              const struct zr_impl *impl, zarr_error *err)
{
    const struct zr_place_link *link = &p->links[at];
    const bool encode = p->opts->encode;
    const zarr_codec_binding to = {.struct_size = sizeof to,
                                   .encode = encode,
                                   .decoded = link->decoded,
                                   .encoded = link->encoded,
                                   .decoded_type = s->out_device,
                                   .encoded_type = s->in_device};
    struct zr_foreign said;
    zarr_status st = ZARR_OK;

    s->kind = ZR_STAGE_CODEC;
    s->impl = impl;
    s->spec = *link->spec;
    s->spec.direction = encode ? ZR_DIRECTION_ENCODE : ZR_DIRECTION_DECODE;
    s->spec.trust = zr_place_trust(p, at);
    stage_measure(s, link->encoded, link->decoded, encode);
    if (impl->vt.bind)
        st = impl->vt.bind(&s->self, &s->spec, &to, zr_foreign_begin(&said, err));
    return st == ZARR_OK ? ZARR_OK : zr_impl_failed(impl, &said, st, false);
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
            zr_place_usable(p, link, impl, ZARR_DEVICE_CPU, ZARR_DEVICE_CPU, &cost) &&
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
        zarr_status st = ZARR_OK;

        if (!impl)
            return ZARR_OK;
        next = zr_calloc(p->alloc, 1, sizeof *next);
        if (!next)
            return zr_fail_memory(err, sizeof *next);
        next->in_device = next->out_device = ZARR_DEVICE_CPU;
        st = stage_bind(next, p, link, impl, NULL);
        if (st == ZARR_OK) {
            last->fallback = next; /* moved */
            last = next;
            continue;
        }
        zr_free(p->alloc, next);
        if (st != ZARR_ERR_UNSUPPORTED)
            return zr_fail(err, st, "codec \"%s\": \"%s\" did not bind",
                           zarr_codec_spec_name(p->links[link].spec), impl->vt.impl);
        excluded[link * zr_impl_count(p->impls) + impl->id] = true;
    }
}

static void program_drop_stages(struct zr_program *p)
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

void zr_program_free(struct zr_program *p)
{
    if (!p)
        return;
    program_drop_stages(p);
    zr_free(p->alloc, p);
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

/* Whether some codec has a decoder that is not trusted. */
static bool program_distrusts(const struct zr_place *place)
{
    for (uint32_t link = 0; link < place->n_links; link++)
        for (size_t k = 0; k < zr_impl_count(place->impls); k++)
            if (zr_place_distrusts(place, link, zr_impl_at(place->impls, k)))
                return true;
    return false;
}

/* Ends, because every round but the last excludes one more implementation of a link. */
static zarr_status program_place(struct zr_program *p, const struct zr_place *place,
                                 bool *excluded, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_step *steps = NULL;
    uint32_t n = 0;
    bool refused = false;

    steps = zr_calloc(p->alloc, 3 * (size_t)place->n_links + 1, sizeof *steps);
    if (!steps)
        return zr_fail_memory(err, (3 * (uint64_t)place->n_links + 1) * sizeof *steps);
    do {
        const bool again = refused;

        program_drop_stages(p);
        st = zr_place_path(place, steps, &n, again ? NULL : err);
        if (again && st == ZARR_ERR_UNSUPPORTED)
            break; /* err already says why the last implementation refused */
        if (st != ZARR_OK)
            goto out;
        st = program_bind(p, place, steps, n, excluded, &refused, err);
    } while (refused);
out:
    zr_free(p->alloc, steps);
    if (st == ZARR_ERR_UNSUPPORTED && refused && program_distrusts(place))
        (void)zr_prefix(err, st,
                        "the option trust excludes implementations that do not check "
                        "their input");
    return st;
}

/* ---- trust ----------------------------------------------------------------------- */

static void trust_tell(const struct zr_placement_options *opts, const struct zr_stage *s)
{
    if (!opts->log || !opts->trust_told || s->out_device != ZARR_DEVICE_CPU ||
        (s->distrusted->vt.out_kinds & ZARR_MEMORY_BIT(ZARR_DEVICE_CPU)) ||
        atomic_exchange(opts->trust_told, true))
        return;
    zr_log(opts->log, ZARR_LOG_WARN,
           "trust: \"%s\" of codec \"%s\" does not check its input, so \"%s\" decodes on "
           "the CPU. It is used for data with a checksum codec after \"%s\", or with "
           "ZARRC_TRUST=full if all data is to be trusted",
           s->distrusted->vt.impl, s->distrusted->vt.codec, s->impl->vt.impl,
           s->distrusted->vt.codec);
}

/* Places the chain once more as if all were trusted, and notes in each stage which
 * implementation it would have. */
static zarr_status program_distrust(struct zr_program *p, const struct zr_place *place,
                                    zarr_error *err)
{
    const size_t n = ((size_t)place->n_links + 1) * (zr_impl_count(place->impls) + 1);
    struct zr_placement_options opts = *place->opts;
    struct zr_place trusting = *place;
    struct zr_program q = {.alloc = p->alloc};
    zarr_error none = ZARR_ERROR_INIT;
    zarr_status st = ZARR_OK;
    uint32_t i = 0, k = 0;
    bool *excluded;

    if (!program_distrusts(place))
        return ZARR_OK;
    excluded = zr_calloc(p->alloc, n, 1);
    if (!excluded)
        return zr_fail_memory(err, n);
    opts.trust = ZARR_TRUST_FULL;
    trusting.opts = &opts;
    trusting.excluded = excluded;
    st = program_place(&q, &trusting, excluded, &none);
    for (; st == ZARR_OK && i < p->n; i++) { /* both have one stage for each link */
        if (p->stage[i].kind != ZR_STAGE_CODEC)
            continue;
        while (q.stage[k].kind != ZR_STAGE_CODEC)
            k++;
        if (q.stage[k].impl != p->stage[i].impl &&
            !(q.stage[k].impl->vt.caps & ZARR_CODEC_SAFE)) {
            p->stage[i].distrusted = q.stage[k].impl;
            p->distrusts = true;
            trust_tell(place->opts, &p->stage[i]);
        }
        k++;
    }
    program_drop_stages(&q);
    zr_free(p->alloc, excluded);
    return st == ZARR_ERR_NO_MEMORY ? zr_fail_memory(err, n) : ZARR_OK;
}

static bool store_reaches(const struct zr_placement_options *opts, int32_t device)
{
    for (uint32_t i = 0; i < opts->n_store_devices; i++)
        if (opts->store_devices[i] == device)
            return true;
    return false;
}

/* What decided where a stage works: a measurement of its implementation, or of one that
 * the CPU was faster than. */
static const struct zr_measured *program_measured(const struct zr_place *place,
                                                  uint32_t link, const struct zr_stage *s)
{
    const bool on_host =
        s->in_device == ZARR_DEVICE_CPU && s->out_device == ZARR_DEVICE_CPU;
    const struct zr_measured *m =
        zr_place_measured(place, link, on_host ? NULL : s->impl);

    return m && (m->host_ns < m->device_ns) == on_host ? m : NULL;
}

/* Adds the stages of the codecs from cut.first on. p has its shape already. */
static zarr_status program_fill(struct zr_program *p, struct zr_place *place,
                                const struct zr_chain *chain,
                                const struct zr_chain_reps *reps, struct program_cut cut,
                                zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_place_link *links =
        zr_calloc(p->alloc, (size_t)chain->n + 1, sizeof *links);
    bool *excluded = zr_calloc(
        p->alloc, ((size_t)chain->n + 1) * (zr_impl_count(place->impls) + 1), 1);
    const zarr_chunk_spec *stored = &reps->rep[reps->n];
    uint64_t guess = 0;

    if (!links || !excluded) {
        st = zr_fail_memory(err, (uint64_t)chain->n * sizeof *links);
        goto out;
    }
    p->encoded_bound = stage_rep_bytes(stored, p->encode);
    p->encoded_exact = stored->exact != 0;
    p->encoded_most = p->encoded_bound;
    p->unsized = reps->unsized;
    p->variable = zarr_dtype_variable(reps->rep[0].dtype) != 0;
    p->gaps = chain->n && chain->codec[chain->n - 1].structure.shard;
    if (p->unsized && zr_mul_u64(p->decoded_bytes, 2, &guess) &&
        zr_add_u64(guess, 4096, &guess))
        p->encoded_bound = ZR_MIN(guess, p->encoded_most);
    if (place->opts->target_device != ZARR_DEVICE_CPU)
        place->costs = zr_impl_costs(place->impls);
    place->links = links;
    place->n_links = program_links(links, chain, reps, cut, p->encode);
    place->excluded = excluded;
    ZR_TRY(zr_preference_check(place->opts->preference, err));
    if (place->n_links) {
        ZR_TRY(program_place(p, place, excluded, err));
        ZR_TRY(program_distrust(p, place, err));
        for (uint32_t i = 0, link = 0; i < p->n; i++) {
            struct zr_stage *s = &p->stage[i];

            if (s->kind != ZR_STAGE_CODEC)
                continue;
            s->measured = program_measured(place, link++, s);
            ZR_TRY(zr_preference_tell(place->opts, place->impls, &s->spec, s->impl, err));
        }
        p->fetch_device = p->stage[0].in_device;
        p->decoded_device = p->stage[p->n - 1].out_device;
        goto out;
    }
    p->raw = true;
    p->fetch_device = store_reaches(place->opts, place->opts->target_device)
                          ? place->opts->target_device
                          : ZARR_DEVICE_CPU;
    p->decoded_device = p->fetch_device;
out:
    zr_free(p->alloc, excluded);
    zr_free(p->alloc, links);
    return st;
}

/* ---- making ---------------------------------------------------------------------- */

static zarr_status program_new(struct zr_program **out,
                               const struct zr_placement_options *opts,
                               const zarr_allocator *alloc, zarr_error *err)
{
    struct zr_program *p = zr_calloc(alloc, 1, sizeof *p);

    if (!p)
        return zr_fail_memory(err, sizeof *p);
    p->alloc = alloc;
    p->encode = opts->encode;
    *out = p;
    return ZARR_OK;
}

static bool device_is_hosts(int32_t device)
{
    return device > 0 && device < 32 && (ZARR_MEMORY_BIT(device) & ZR_HOST_KINDS);
}

static zarr_status program_try(struct zr_program **out, struct zr_place *place,
                               const struct zr_chain *chain,
                               const struct zr_chain_reps *reps, struct program_cut cut,
                               zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_program *p = NULL;

    ZR_TRY(program_new(&p, place->opts, place->alloc, err));
    ZR_TRY(program_shape(p, chain, reps, cut, err));
    ZR_TRY(program_fill(p, place, chain, reps, cut, err));
    *out = p; /* moved */
    p = NULL;
out:
    zr_program_free(p);
    return st;
}

zarr_status zr_program_make(struct zr_program **out, const struct zr_impl_registry *impls,
                            const struct zr_chain *chain,
                            const struct zr_chain_reps *reps,
                            const struct zr_placement_options *opts,
                            const zarr_allocator *alloc, zarr_error *err)
{
    struct zr_placement_options host = *opts;
    struct zr_place place = {.impls = impls, .opts = opts, .alloc = alloc};
    struct program_cut cut = program_cut(chain);
    struct zr_program *p = NULL;
    zarr_status st = ZARR_OK;

    if (reps->unsized) { /* buffers that grow are the host's (unsized.c) */
        host.target_device = ZARR_DEVICE_CPU;
        host.n_store_devices = 0;
        place.opts = &host;
    }

    cut.pads = !cut.computes && codec_is(&chain->codec[chain->a2b], ZR_STRUCTURE_BYTES) &&
               device_is_hosts(place.opts->target_device);
    ZR_TRY(program_try(&p, &place, chain, reps, cut, err));
    if (p->padded && !device_is_hosts(p->decoded_device)) {
        zr_program_free(p);
        p = NULL;
        cut.pads = false;
        ZR_TRY(program_try(&p, &place, chain, reps, cut, err));
    }
    *out = p;
out:
    return st;
}

zarr_status zr_program_make_bytes(struct zr_program **out,
                                  const struct zr_impl_registry *impls,
                                  const struct zr_chain *chain,
                                  const struct zr_chain_reps *reps,
                                  const struct zr_placement_options *opts,
                                  const zarr_allocator *alloc, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_place place = {.impls = impls, .opts = opts, .alloc = alloc};
    const struct program_cut cut = {.first = chain->a2b + 1};
    struct zr_program *p = NULL;

    ZR_TRY(program_new(&p, opts, alloc, err));
    p->item_bytes = 1;
    p->decoded_bytes = stage_rep_bytes(&reps->rep[cut.first], opts->encode);
    p->decoded_exact = reps->rep[cut.first].exact != 0;
    ZR_TRY(program_fill(p, &place, chain, reps, cut, err));
    *out = p; /* moved */
    p = NULL;
out:
    zr_program_free(p);
    return st;
}

zarr_status zr_program_make_plain(struct zr_program **out,
                                  const struct zr_impl_registry *impls,
                                  const struct zr_chain *chain,
                                  const struct zr_chain_reps *reps,
                                  const struct zr_placement_options *opts,
                                  const zarr_allocator *alloc, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_place place = {.impls = impls, .opts = opts, .alloc = alloc};
    const struct program_cut cut = {.first = 0, .computes = true};
    struct zr_program *p = NULL;

    ZR_TRY(program_new(&p, opts, alloc, err));
    p->item_bytes = 1;
    p->decoded_bytes = stage_rep_bytes(&reps->rep[0], opts->encode);
    p->decoded_exact = reps->rep[0].exact != 0;
    ZR_TRY(program_fill(p, &place, chain, reps, cut, err));
    *out = p; /* moved */
    p = NULL;
out:
    zr_program_free(p);
    return st;
}
