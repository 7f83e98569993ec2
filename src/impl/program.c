/*
 * impl/program.c - makes a program of a chain for one chunk shape. Leading transposes,
 * and the byte order of `bytes`, become facts that the copy between chunk and tensor
 * applies at no extra cost. The other codecs become stages (bind.c).
 *
 * A stage swaps the bytes of structs that have another byte order than this machine's,
 * because their fields differ in size. If an array->array codec computes, all codecs
 * after it are stages too, because no copy there could apply their swap or permutation.
 * Codecs that only change the shape are not stages. When decoding, codecs whose decoding
 * changes nothing are not stages. Unused bits (bool, int4) are a fact if elements end in
 * host memory, and a stage elsewhere.
 * Thread class: frozen once made.
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
        s->structure.stored.order == ZR_ORDER_NATIVE || unit < 2)
        return 0;
    return big == ZR_HOST_IS_LITTLE ? unit : 0;
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

    p->ndim = elements->ndim;
    for (int32_t i = 0; i < p->ndim; i++)
        p->order[i] = (uint8_t)i;
    for (uint32_t k = 0; k < cut.first; k++) {
        ZR_CHECK(zr_spec_order(&chain->codec[k], p->ndim, step, err));
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
    return ZARR_OK;
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

/* ---- filling ---------------------------------------------------------------------- */

static bool store_reaches(const struct zr_placement_options *opts, int32_t device)
{
    for (uint32_t i = 0; i < opts->n_store_devices; i++)
        if (opts->store_devices[i] == device)
            return true;
    return false;
}

/* What decided where a stage works: a measurement of its implementation, or of one that
 * the CPU was faster than. */
static const struct zr_measured *find_measurement(const struct zr_place *place,
                                                  uint32_t link, const struct zr_stage *s)
{
    const bool on_host =
        s->in_device == ZARR_DEVICE_CPU && s->out_device == ZARR_DEVICE_CPU;
    const struct zr_measured *m =
        zr_place_find_measurement(place, link, on_host ? NULL : s->impl);

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

    if (!links || !excluded)
        ZR_FAIL_MEMORY(err, (uint64_t)chain->n * sizeof *links);
    p->encoded_bound = zr_stage_rep_bytes(stored, p->encode);
    p->encoded_exact = stored->exact != 0;
    p->encoded_most = p->encoded_bound;
    p->unsized = reps->unsized;
    p->variable = zarr_dtype_variable(reps->rep[0].dtype) != 0;
    p->gaps = chain->n && chain->codec[chain->n - 1].structure.shard;
    if (p->unsized && zr_mul(p->decoded_bytes, 2, &guess) && zr_add(guess, 4096, &guess))
        p->encoded_bound = ZR_MIN(guess, p->encoded_most);
    if (place->opts->target_device != ZARR_DEVICE_CPU)
        place->costs = zr_impl_costs(place->impls);
    place->links = links;
    place->n_links = program_links(links, chain, reps, cut, p->encode);
    place->excluded = excluded;
    if (place->n_links) {
        ZR_TRY(zr_program_place(p, place, excluded, err));
        ZR_TRY(zr_program_distrust(p, place, err));
        for (uint32_t i = 0, link = 0; i < p->n; i++) {
            struct zr_stage *s = &p->stage[i];

            if (s->kind != ZR_STAGE_CODEC)
                continue;
            s->measured = find_measurement(place, link++, s);
            zr_preference_tell(place->opts, place->impls, &s->spec, s->impl);
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

void zr_program_free(struct zr_program *p)
{
    if (!p)
        return;
    zr_program_drop_stages(p);
    zr_free(p->alloc, p);
}

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

static void find_direct_routes(struct zr_program *p)
{
    const struct zr_stage *last = p->n > 0 ? &p->stage[p->n - 1] : NULL;
    const bool can =
        last && last->kind == ZR_STAGE_CODEC && last->out_exact && !p->unsized;

    p->decodes_ranges = can && p->n == 1 && last->impl->vt.partial;
    p->decodes_strided = can && !p->padded && last->impl->vt.strided &&
                         last->out_bytes >= last->impl->vt.strided_least;
    p->has_routes = p->decodes_ranges || p->decodes_strided;
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
    if (!p->encode)
        find_direct_routes(p);
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

    if (opts->encode)
        ZR_CHECK(zr_filters_encode(chain, reps->rep[chain->a2b].dtype, err));
    if (reps->unsized) { /* buffers that grow are the host's (unsized_program.c) */
        host.target_device = ZARR_DEVICE_CPU;
        host.n_store_devices = 0;
        place.opts = &host;
    }

    cut.pads = !cut.computes && codec_is(&chain->codec[chain->a2b], ZR_STRUCTURE_BYTES) &&
               device_is_hosts(place.opts->target_device);
    ZR_CHECK(program_try(&p, &place, chain, reps, cut, err));
    if (p->padded && !device_is_hosts(p->decoded_device)) {
        zr_program_free(p);
        p = NULL;
        cut.pads = false;
        ZR_CHECK(program_try(&p, &place, chain, reps, cut, err));
    }
    *out = p;
    return ZARR_OK;
}

/* A program of the codecs from `cut` on, whose decoded side is bytes. */
static zarr_status program_make_from(struct zr_program **out, struct zr_place *place,
                                     const struct zr_chain *chain,
                                     const struct zr_chain_reps *reps,
                                     struct program_cut cut, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_program *p = NULL;

    ZR_TRY(program_new(&p, place->opts, place->alloc, err));
    p->item_bytes = 1;
    p->decoded_bytes = zr_stage_rep_bytes(&reps->rep[cut.first], place->opts->encode);
    p->decoded_exact = reps->rep[cut.first].exact != 0;
    ZR_TRY(program_fill(p, place, chain, reps, cut, err));
    *out = p; /* moved */
    p = NULL;
out:
    zr_program_free(p);
    return st;
}

zarr_status zr_program_make_bytes(struct zr_program **out,
                                  const struct zr_impl_registry *impls,
                                  const struct zr_chain *chain,
                                  const struct zr_chain_reps *reps,
                                  const struct zr_placement_options *opts,
                                  const zarr_allocator *alloc, zarr_error *err)
{
    struct zr_place place = {.impls = impls, .opts = opts, .alloc = alloc};

    return program_make_from(out, &place, chain, reps,
                             (struct program_cut){.first = chain->a2b + 1}, err);
}

zarr_status zr_program_make_plain(struct zr_program **out,
                                  const struct zr_impl_registry *impls,
                                  const struct zr_chain *chain,
                                  const struct zr_chain_reps *reps,
                                  const struct zr_placement_options *opts,
                                  const zarr_allocator *alloc, zarr_error *err)
{
    struct zr_place place = {.impls = impls, .opts = opts, .alloc = alloc};

    return program_make_from(out, &place, chain, reps,
                             (struct program_cut){.computes = true}, err);
}
