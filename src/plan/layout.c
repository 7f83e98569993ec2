/*
 * plan/layout.c - prepares an array for one kind of memory: takes its chain apart into
 * levels. Level 0 is the block of the grid. If its array->bytes codec is
 * sharding_indexed, level 1 is what the shard holds, and so on down to the chunk. A shard
 * that must be decoded whole is a chunk. A level knows its shape in the order
 * of dimensions that its own chain is given (after the transposes of the levels above),
 * the permutation before its sharding codec, and the programs that turn bytes into
 * elements and back. If blocks differ in shape, level 0 fits the largest chunk, or
 * the smallest if the largest exceeds a limit. Levels for other shapes are made when a
 * request meets them (variants.c). Levels inside of a shard never differ in shape.
 * Thread class: frozen once made.
 */
#include "plan/plan_int.h"

#include <string.h>

struct level_maker {
    const struct zr_layout *layout;
    const struct zr_layout_args *args;
    const zarr_allocator *alloc;
    zarr_error *err;
    /* inner: these chunks are in a shard, so they are encoded to host memory, and the
     * store does not see them alone. buffered: the shard is decoded first, so they are
     * also decoded from host memory. checked: a checksum around it is checked first. */
    bool inner, buffered, checked;
};

/*
 * Composes the transposes before the sharding codec. Elementwise codecs there belong to
 * the chunks (elementwise.c). zr_chain_whole_shard() excludes any other codec.
 */
static zarr_status level_order(struct zr_level *lv, zarr_error *err)
{
    for (int32_t d = 0; d < lv->ndim; d++)
        lv->order[d] = (uint8_t)d;
    for (uint32_t c = 0; c < lv->chain->a2b; c++) {
        const struct zarr_codec_spec *spec = &lv->chain->codec[c];
        uint8_t step[ZARR_MAX_RANK], next[ZARR_MAX_RANK];

        if (zr_codec_commutes(spec))
            continue;
        ZR_CHECK(zr_spec_order(spec, lv->ndim, step, err));
        for (int32_t d = 0; d < lv->ndim; d++)
            next[d] = lv->order[step[d]];
        memcpy(lv->order, next, (size_t)lv->ndim);
    }
    for (int32_t d = 0; d < lv->ndim; d++)
        lv->permuted |= lv->order[d] != d;
    return ZARR_OK;
}

/* Whether chunks of this chain are shards with a level inside. A shard that is decoded
 * whole is a chunk, and sharding_indexed a stage of its program. */
static bool inner_levels(const struct zr_chain *chain)
{
    return chain->codec[chain->a2b].structure.shard && !zr_chain_whole_shard(chain);
}

static void placement_fill(const struct level_maker *m, bool encode, bool host_only,
                           struct zr_placement_options *out)
{
    const bool host_bytes = host_only || (encode ? m->inner : m->buffered);

    *out = (struct zr_placement_options){
        .target_device = host_only ? ZARR_DEVICE_CPU : m->args->device_type,
        .store_devices = host_bytes ? NULL : m->args->store_devices,
        .n_store_devices = host_bytes ? 0 : m->args->n_store_devices,
        .preference = m->args->preference,
        .log = m->args->log,
        .encode = encode,
        .trust = m->args->trust,
        .trust_told = m->args->trust_told,
    };
    if (m->checked && m->args->trust == ZARR_TRUST_VERIFIED)
        out->trust = ZARR_TRUST_FULL;
}

static zarr_status make_leaf(const struct level_maker *m, struct zr_level *lv,
                             bool host_only)
{
    zarr_status st = ZARR_OK;
    struct zr_placement_options opts;
    zarr_error refusal = {0};

    placement_fill(m, false, host_only, &opts);
    ZR_TRY(zr_program_make(&lv->decode, m->args->impls, lv->chain, &lv->reps, &opts,
                           m->alloc, m->err));
    placement_fill(m, true, host_only, &opts);
    /* A chain that this build can only decode is still readable. A write reports the
     * missing encoder. */
    st = zr_program_make(&lv->encode, m->args->impls, lv->chain, &lv->reps, &opts,
                         m->alloc, &refusal);
    if (st == ZARR_ERR_UNSUPPORTED)
        st = ZARR_OK;
    else if (st != ZARR_OK && m->err)
        *m->err = refusal;
    lv->decoded_bytes = lv->decode->decoded_bytes;
    lv->encoded_bound = lv->decode->encoded_bound;
    lv->encoded_most = lv->decode->encoded_most;
    lv->unsized = lv->decode->unsized;
out:
    return st;
}

static zarr_status make_index(const struct level_maker *m, struct zr_level *lv)
{
    zarr_chunk_spec spec = {.struct_size = sizeof spec};
    struct zr_level *ix = NULL;

    if (lv->ndim >= ZARR_MAX_RANK)
        return zr_fail(m->err, ZARR_ERR_LIMIT, "sharded arrays have at most rank %d",
                       ZARR_MAX_RANK - 1);
    ix = zr_calloc(m->alloc, 1, sizeof *ix);
    if (!ix)
        return zr_fail_memory(m->err, sizeof *ix);
    lv->index = ix;
    ix->chain = lv->shard->index;
    ix->ndim = lv->ndim + 1;
    memcpy(ix->shape, lv->n_inner, (size_t)lv->ndim * sizeof(uint64_t));
    ix->shape[lv->ndim] = 2;
    for (int32_t d = 0; d < ix->ndim; d++)
        ix->to_array[d] = (uint8_t)d;
    memcpy(ix->array_shape, ix->shape, sizeof ix->shape);
    spec.ndim = ix->ndim;
    memcpy(spec.shape, ix->shape, sizeof spec.shape);
    spec.dtype = m->args->index_dtype;
    if (!zr_mul(lv->n_inner_all, 2 * sizeof(uint64_t), &spec.n_bytes))
        return zr_fail(m->err, ZARR_ERR_LIMIT, "a shard index of %" PRIu64 " chunks",
                       lv->n_inner_all);
    spec.exact = 1;
    ZR_CHECK(
        zr_chain_resolve(&ix->reps, ix->chain, &spec, m->args->limits, m->alloc, m->err));
    ZR_CHECK(make_leaf(m, ix, true));
    if (!ix->encode)
        return zr_fail(m->err, ZARR_ERR_UNSUPPORTED,
                       "shard index codecs cannot be written");
    if (!ix->decode->encoded_exact)
        return zr_fail(m->err, ZARR_ERR_INVALID,
                       "index_codecs must have a fixed encoded size");
    lv->index_bytes = ix->decode->encoded_bound;
    return ZARR_OK;
}

static zarr_status shard_shape(const struct level_maker *m, struct zr_level *lv)
{
    uint64_t n = 1;

    for (int32_t d = 0; d < lv->ndim; d++) {
        uint64_t outer = lv->shape[lv->order[d]], inner = lv->shard->chunk_shape[d];

        if (inner == 0 || outer % inner != 0)
            return zr_fail(m->err, ZARR_ERR_INVALID,
                           "chunk edge %" PRIu64 " does not divide the shard's %" PRIu64
                           " in dimension %d",
                           inner, outer, (int)d);
        lv->inner_shape[d] = inner;
        lv->n_inner[d] = outer / inner;
        if (!zr_mul(n, lv->n_inner[d], &n) || n > m->args->limits->chunks_per_shard)
            return zr_fail_limit(m->err, "chunks_per_shard",
                                 m->args->limits->chunks_per_shard,
                                 "a shard of more than %" PRIu64 " chunks",
                                 m->args->limits->chunks_per_shard);
    }
    lv->n_inner_all = n;
    return ZARR_OK;
}

static zarr_status check_chunk_bytes(const struct level_maker *m,
                                     const struct zr_level *lv)
{
    if (lv->reps.rep[0].n_bytes > m->args->limits->chunk_bytes)
        return zr_fail_limit(m->err, zr_chunk_limit_name(m->args->dtype),
                             m->args->limits->chunk_bytes, "a chunk of %" PRIu64 " bytes",
                             lv->reps.rep[0].n_bytes);
    return ZARR_OK;
}

static zarr_status make_shard(const struct level_maker *m, struct zr_level *lv)
{
    lv->shard = lv->chain->codec[lv->chain->a2b].structure.shard;
    ZR_CHECK(level_order(lv, m->err));
    ZR_CHECK(shard_shape(m, lv));
    ZR_CHECK(make_index(m, lv));
    if (lv->chain->n > lv->chain->a2b + 1) {
        struct zr_placement_options opts;

        /* Such a shard is decoded whole, so the limit of a chunk applies. */
        ZR_CHECK(check_chunk_bytes(m, lv));
        placement_fill(m, false, true, &opts);
        ZR_CHECK(zr_program_make_bytes(&lv->bytes_decode, m->args->impls, lv->chain,
                                       &lv->reps, &opts, m->alloc, m->err));
        placement_fill(m, true, true, &opts);
        ZR_CHECK(zr_program_make_bytes(&lv->bytes_encode, m->args->impls, lv->chain,
                                       &lv->reps, &opts, m->alloc, m->err));
    }
    lv->decoded_bytes = lv->reps.rep[0].n_bytes;
    lv->encoded_most = lv->encoded_bound = lv->reps.rep[lv->chain->n].n_bytes;
    lv->unsized = lv->reps.unsized;
    if (lv->unsized) {
        uint64_t guess = 0;

        if (zr_mul(lv->decoded_bytes, 2, &guess) &&
            zr_add(guess, lv->index_bytes + 65536, &guess))
            lv->encoded_bound = ZR_MIN(guess, lv->encoded_most);
    }
    return ZARR_OK;
}

/* Fill values do not depend on the shape: all variants share one copy. */
static void share_fills(const struct zr_level *from, struct zr_chain_reps *reps)
{
    const uint64_t bytes = (reps->n + UINT64_C(1)) * reps->fill_bytes;

    if (!from->reps.fills || from->reps.n != reps->n ||
        from->reps.fill_bytes != reps->fill_bytes ||
        memcmp(from->reps.fills, reps->fills, (size_t)bytes) != 0)
        return;
    for (uint32_t i = 0; i <= reps->n; i++)
        if (reps->rep[i].fill)
            reps->rep[i].fill = from->reps.fills + i * reps->fill_bytes;
    zr_free(reps->alloc, reps->fills);
    reps->fills = NULL;
}

static zarr_status make_level(const struct level_maker *m, struct zr_level *lv)
{
    zarr_chunk_spec spec = {.struct_size = sizeof spec};
    uint64_t elements = 0;

    spec.ndim = lv->ndim;
    memcpy(spec.shape, lv->shape, sizeof spec.shape);
    spec.dtype = m->args->dtype;
    spec.fill = m->layout->fill;
    spec.exact = 1;
    if (!zr_product_u64(lv->shape, (size_t)lv->ndim, &elements) ||
        !zr_mul(elements, m->layout->item_bytes, &spec.n_bytes))
        return zr_fail(m->err, ZARR_ERR_LIMIT,
                       "the chunk shape overflows 64 bits of bytes");
    ZR_CHECK(
        zr_chain_resolve(&lv->reps, lv->chain, &spec, m->args->limits, m->alloc, m->err));
    if (lv->variant)
        share_fills(&m->layout->level[0], &lv->reps);
    lv->is_shard = inner_levels(lv->chain);
    if (lv->is_shard) {
        ZR_CHECK(make_shard(m, lv));
    } else {
        ZR_CHECK(check_chunk_bytes(m, lv));
        ZR_CHECK(make_leaf(m, lv, false));
    }
    return ZARR_OK;
}

static zarr_status next_level(const struct level_maker *m, const struct zr_level *lv,
                              struct zr_level *in)
{
    in->ndim = lv->ndim;
    for (int32_t d = 0; d < lv->ndim; d++) {
        in->shape[d] = lv->inner_shape[d];
        in->to_array[d] = lv->to_array[lv->order[d]];
        in->array_shape[in->to_array[d]] = in->shape[d];
    }
    return zr_level_inner_chain(lv, in, m->alloc, m->err);
}

static uint32_t count_levels(const struct zr_chain *chain)
{
    uint32_t n = 1;

    while (inner_levels(chain)) {
        chain = chain->codec[chain->a2b].structure.shard->inner;
        n++;
    }
    return n;
}

static zarr_status make_outer(const struct level_maker *m, const uint64_t *shape,
                              struct zr_level *lv)
{
    lv->chain = m->args->chain;
    lv->fill = m->layout->fill;
    lv->fill_swapped = m->layout->fill_swapped;
    lv->ndim = m->args->grid->ndim;
    for (int32_t d = 0; d < lv->ndim; d++) {
        lv->shape[d] = lv->array_shape[d] = shape[d];
        lv->to_array[d] = (uint8_t)d;
    }
    return make_level(m, lv);
}

zarr_status zr_level_outer_make(const struct zr_layout *l,
                                const struct zr_layout_args *args, const uint64_t *shape,
                                struct zr_level *out, zarr_error *err)
{
    const struct level_maker m = {
        .layout = l, .args = args, .alloc = l->alloc, .err = err};

    return make_outer(&m, shape, out);
}

/* Shape of the largest or the smallest chunk. A dimension without chunks gets the
 * smallest edge that the chain accepts. */
static zarr_status extreme_shape(const struct level_maker *m, bool largest,
                                 uint64_t *shape)
{
    const struct zr_grid *grid = m->args->grid;
    uint64_t unit[ZARR_MAX_RANK];

    if (largest)
        zr_grid_largest(grid, shape);
    else
        zr_grid_smallest(grid, shape);
    if (grid->regular)
        return ZARR_OK;
    ZR_CHECK(zr_chain_unit(m->args->chain, grid->ndim, unit, m->err));
    for (int32_t d = 0; d < grid->ndim; d++)
        if (zr_grid_n_chunks(grid, d) == 0)
            shape[d] = unit[d];
    return ZARR_OK;
}

/* If the largest chunk exceeds a limit, smaller ones may still be readable. Then the
 * first level is that of the smallest chunk, and requests that touch too large chunks
 * fail. */
static zarr_status make_first(const struct level_maker *m, struct zr_layout *l)
{
    uint64_t shape[ZARR_MAX_RANK];
    zarr_status st = ZARR_OK;

    ZR_TRY(extreme_shape(m, true, shape));
    st = make_outer(m, shape, &l->level[0]);
    if (st == ZARR_ERR_LIMIT && !l->grid->regular) {
        zr_level_deinit(&l->level[0], m->alloc);
        memset(&l->level[0], 0, sizeof l->level[0]);
        l->smallest = true;
        ZR_TRY(extreme_shape(m, false, shape));
        st = make_outer(m, shape, &l->level[0]);
    }
out:
    return st;
}

/* Whether a codec around the shards of this chain is a checksum. */
static bool around_is_checked(const struct zr_chain *chain)
{
    for (uint32_t i = chain->a2b + 1; i < chain->n; i++)
        if (chain->codec[i].vt->flags & ZARR_CODEC_SPEC_CHECKSUM)
            return true;
    return false;
}

static zarr_status layout_levels(const struct level_maker *m, struct zr_layout *l)
{
    struct level_maker inner = *m;
    uint32_t n = count_levels(m->args->chain);

    l->level = zr_calloc(m->alloc, n, sizeof *l->level);
    if (!l->level)
        return zr_fail_memory(m->err, n * sizeof *l->level);
    l->n_levels = n;
    inner.inner = true;
    for (uint32_t i = 0; i < n; i++) {
        if (i == 0) {
            ZR_CHECK(make_first(m, l));
        } else {
            ZR_CHECK(next_level(m, &l->level[i - 1], &l->level[i]));
            inner.buffered |= l->level[i - 1].bytes_decode != NULL;
            inner.checked |= around_is_checked(l->level[i - 1].chain);
            ZR_CHECK(make_level(&inner, &l->level[i]));
            ZR_CHECK(zr_level_inner_fill(l, m->args, &l->level[i], m->err));
        }
    }
    if (!l->grid->regular)
        ZR_CHECK(zr_variants_make(&l->variants, m->args, m->alloc, m->err));
    return ZARR_OK;
}

static zarr_status swap_fill(struct zr_layout *l, zarr_error *err)
{
    l->fill_swapped = zr_calloc(l->alloc, 1, l->item_bytes > 0 ? l->item_bytes : 1);
    if (!l->fill_swapped)
        return zr_fail_memory(err, l->item_bytes);
    if (l->swap_unit > 1)
        zr_byteswap(l->fill_swapped, l->fill, l->item_bytes / l->swap_unit, l->swap_unit);
    else
        memcpy(l->fill_swapped, l->fill, l->item_bytes);
    return ZARR_OK;
}

zarr_status zr_layout_make(struct zr_layout **out, const struct zr_layout_args *args,
                           const zarr_allocator *alloc, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_layout *l = zr_calloc(alloc, 1, sizeof *l);
    struct level_maker m = {.layout = l, .args = args, .alloc = alloc, .err = err};

    if (!l)
        return zr_fail_memory(err, sizeof *l);
    l->alloc = alloc;
    l->grid = args->grid;
    l->keys = args->keys;
    l->dtype = args->dtype;
    l->device_type = args->device_type;
    l->item_bytes = (uint32_t)zarr_dtype_item_bytes(args->dtype);
    l->swap_unit = zarr_dtype_swap_bytes(args->dtype);
    l->variable = zarr_dtype_variable(args->dtype) != 0;
    l->fill = zr_calloc(alloc, 1, l->item_bytes > 0 ? l->item_bytes : 1);
    if (!l->fill)
        ZR_FAIL_MEMORY(err, l->item_bytes);
    if (args->fill)
        memcpy(l->fill, args->fill, l->item_bytes);
    ZR_TRY(swap_fill(l, err));
    ZR_TRY(layout_levels(&m, l));
    *out = l;
    l = NULL;
out:
    zr_layout_free(l);
    return st;
}

void zr_level_deinit(struct zr_level *lv, const zarr_allocator *alloc)
{
    zr_program_free(lv->decode);
    zr_program_free(lv->encode);
    zr_program_free(lv->bytes_decode);
    zr_program_free(lv->bytes_encode);
    zr_chain_reps_deinit(&lv->reps);
    zr_free(alloc, lv->own.codec);
    zr_free(alloc, lv->own_fill);
    if (lv->index) {
        /* the index has no shards, so recursion ends there */
        zr_level_deinit(lv->index, alloc);
        zr_free(alloc, lv->index);
    }
}

void zr_layout_free(struct zr_layout *l)
{
    if (!l)
        return;
    zr_variants_free(l->variants);
    for (uint32_t i = 0; i < l->n_levels; i++)
        zr_level_deinit(&l->level[i], l->alloc);
    zr_free(l->alloc, l->level);
    zr_free(l->alloc, l->fill);
    zr_free(l->alloc, l->fill_swapped);
    zr_free(l->alloc, l);
}

uint64_t zr_body_bytes(const struct zr_level *lv)
{
    const struct zr_program *p = lv->bytes_decode;

    return p->unsized || p->n == 0 ? lv->encoded_bound : p->stage[p->n - 1].out_bytes;
}

const uint64_t *zr_layout_leaf_shape(const struct zr_layout *l)
{
    return l->level[l->n_levels - 1].array_shape;
}
