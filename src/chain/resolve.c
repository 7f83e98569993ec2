/*
 * chain/resolve.c - computes how a chunk passes through a chain: shape, data type, fill
 * value and size of every representation. This is checked once for each chunk shape, and
 * the rooms above rely on it. All sizes are products checked in 64 bits. A decoded chunk
 * over limits.chunk_bytes is refused here. If a shard's chunks are read alone, they
 * are measured instead of the shard.
 * Thread class: plain functions; the result belongs to the caller.
 */
#include "chain/chain_int.h"

#include <string.h>

enum {
    ENCODED_FACTOR = 4, /* bound of an encoded chunk: so many times limits.chunk_bytes, */
    ENCODED_SLACK = 64 * 1024 * 1024 /* plus this, for small limits */
};

void zr_chain_reps_deinit(struct zr_chain_reps *reps)
{
    if (!reps)
        return;
    zr_free(reps->alloc, reps->rep);
    zr_free(reps->alloc, reps->fills);
    *reps = (struct zr_chain_reps){0};
}

/* Computes the size of an array representation, and its item size as the hint for later
 * codecs. */
static zarr_status rep_measure(zarr_chunk_spec *rep, bool varies, zarr_error *err)
{
    const uint64_t item_bytes = zarr_dtype_item_bytes(rep->dtype);

    if (!zr_product_u64(rep->shape, (size_t)rep->ndim, &rep->n_bytes) ||
        !zr_mul(rep->n_bytes, item_bytes, &rep->n_bytes))
        return zr_fail(err, ZARR_ERR_LIMIT, "a chunk's bytes do not fit 64 bits");
    rep->exact = !varies;
    rep->item_bytes_hint =
        item_bytes && item_bytes <= UINT32_MAX ? (uint32_t)item_bytes : 1;
    return ZARR_OK;
}

/* Gives the output of a codec whose specification has no resolve(). */
static zarr_status rep_default(zarr_chunk_spec *out, const struct zarr_codec_spec *s,
                               const zarr_chunk_spec *in, zarr_error *err)
{
    if (s->vt->kind == ZARR_CODEC_ARRAY_ARRAY) {
        out->fill = in->fill;
        return ZARR_OK;
    }
    out->exact = 0;
    out->item_bytes_hint = 1;
    return zr_spec_set_bound(out, s->vt->name, in->n_bytes, in->n_bytes / 8 + 65536, err);
}

static zarr_status rep_ask(zarr_chunk_spec *out, void *fill,
                           const struct zarr_codec_spec *s, const zarr_chunk_spec *in,
                           zarr_error *err)
{
    struct zr_foreign said;
    zarr_status st = ZARR_OK;

    if (!s->vt->resolve)
        return rep_default(out, s, in, err);
    st = s->vt->resolve(s, in, out, fill, zr_foreign_begin(&said, err));
    return st == ZARR_OK ? ZARR_OK : zr_spec_fail(s, &said, st);
}

static zarr_status rep_check(zarr_chunk_spec *out, const struct zarr_codec_spec *s,
                             uint64_t fill_bytes, bool varies, zarr_error *err)
{
    out->struct_size = sizeof *out;
    if (s->vt->kind == ZARR_CODEC_ARRAY_ARRAY) {
        if (out->ndim < 0 || out->ndim > ZARR_MAX_RANK || !out->dtype ||
            zarr_dtype_item_bytes(out->dtype) > fill_bytes)
            return zr_spec_broke(s, "resolve() gives no valid array", err);
        return rep_measure(out, varies, err);
    }
    out->fill = NULL; /* bytes have no fill value and no shape */
    out->dtype = NULL;
    out->ndim = 0;
    memset(out->shape, 0, sizeof out->shape);
    return ZARR_OK;
}

/* Checks the output against the flags, by which the plan and the program skip codecs. */
static zarr_status rep_flags(const zarr_chunk_spec *out, const struct zarr_codec_spec *s,
                             const zarr_chunk_spec *in, zarr_error *err)
{
    const uint32_t same = ZARR_CODEC_SPEC_RESHAPES | ZARR_CODEC_SPEC_DECODES_NOTHING;
    const bool shape =
        !(s->vt->flags & (ZARR_CODEC_SPEC_DECODES_NOTHING | ZARR_CODEC_SPEC_ELEMENTWISE |
                          ZARR_CODEC_SPEC_KEEPS_SHAPE)) ||
        (out->ndim == in->ndim &&
         memcmp(out->shape, in->shape, sizeof *in->shape * ZARR_MAX_RANK) == 0);

    if (!(s->vt->flags & same) && shape)
        return ZARR_OK;
    if (out->n_bytes != in->n_bytes || out->exact != in->exact || !shape ||
        !out->dtype != !in->dtype ||
        (in->dtype && !zarr_dtype_equal(out->dtype, in->dtype)))
        return zr_spec_broke(s, "resolve() changes a fact that its flags promise to keep",
                             err);
    return ZARR_OK;
}

static zarr_status reps_open(struct zr_chain_reps *out, uint32_t n,
                             const zarr_chunk_spec *chunk, bool varies, zarr_error *err)
{
    const uint64_t item_bytes = chunk->dtype ? zarr_dtype_item_bytes(chunk->dtype) : 0;
    size_t rep_bytes;

    out->n = n;
    out->fill_bytes = ZR_MAX(item_bytes, (uint64_t)ZR_FILL_BYTES);
    if (zr_mul((size_t)n + 1, sizeof *out->rep, &rep_bytes))
        out->rep =
            zr_malloc(out->alloc, rep_bytes); /* each is copied from the one before */
    out->fills = zr_calloc(out->alloc, (size_t)n + 1, (size_t)out->fill_bytes);
    if (!out->rep || !out->fills)
        return zr_fail_memory(err, out->fill_bytes);
    out->rep[0] = *chunk;
    out->rep[0].struct_size = sizeof *out->rep;
    if (chunk->fill) {
        memcpy(out->fills, chunk->fill, (size_t)item_bytes);
        out->rep[0].fill = out->fills;
    }
    if (chunk->dtype)
        ZR_CHECK(rep_measure(&out->rep[0], varies, err));
    out->unsized = chunk->dtype && zarr_dtype_variable(chunk->dtype);
    return ZARR_OK;
}

/* Gives the bound of an encoded chunk if chunks are bounded by `base`. False: no
 * bound. */
static bool find_encoded_most(uint64_t base, uint64_t *most)
{
    return zr_mul(base, ENCODED_FACTOR, most) && zr_add(*most, ENCODED_SLACK, most);
}

/* Whether codec i is a shard whose chunks are read alone: no stage gets all of it
 * at once. */
static bool shard_is_cut(const struct zr_chain *chain, uint32_t i)
{
    return chain->codec[i].structure.shard && i + 1 == chain->n &&
           !zr_chain_whole_shard(chain);
}

/* Bounds a shard that is decoded whole, or is inside other codecs, like a chunk. The sum
 * of the bounds of many small chunks may be many times their real size: do not
 * allocate by it. */
static void reps_bound_shard(struct zr_chain_reps *reps, uint32_t i,
                             const struct zr_chain *chain, const zarr_limits *limits)
{
    zarr_chunk_spec *out = &reps->rep[i + 1];
    uint64_t most = 0;

    if (shard_is_cut(chain, i))
        return;
    if (reps->unsized)
        out->n_bytes = ZR_MIN(out->n_bytes, limits->chunk_bytes);
    else if (find_encoded_most(limits->chunk_bytes, &most) && out->n_bytes > most) {
        out->n_bytes = most;
        reps->unsized = true;
    }
}

/* Prefixes an error of the list as a whole, not of one of its items. */
static zarr_status chain_prefix(zarr_error *err, zarr_status st,
                                const struct zr_chain *chain)
{
    return chain->label ? zr_prefix(err, st, "%s", chain->label) : st;
}

static zarr_status reps_step(struct zr_chain_reps *reps, uint32_t i,
                             const struct zr_chain *chain, const zarr_limits *limits,
                             zarr_error *err)
{
    const struct zarr_codec_spec *s = &chain->codec[i];
    zarr_chunk_spec *out = &reps->rep[i + 1];
    uint8_t *fill = reps->fills + ((size_t)i + 1) * reps->fill_bytes;

    *out = reps->rep[i];
    out->fill = NULL;
    if (s->structure.shard)
        ZR_CHECK(zr_shard_spec_resolve(s, reps, i, limits, err));
    else
        ZR_CHECK(rep_ask(out, fill, s, &reps->rep[i], err));
    ZR_CHECK(rep_check(out, s, reps->fill_bytes, !reps->rep[i].exact, err));
    ZR_CHECK(rep_flags(out, s, &reps->rep[i], err));
    if (s->vt->kind != ZARR_CODEC_ARRAY_ARRAY && out->n_bytes == UINT64_MAX) {
        out->n_bytes = ZR_MIN(limits->chunk_bytes, (uint64_t)ZR_UNSIZED_BYTES);
        out->exact = 0;
        reps->unsized = true;
    }
    if (s->structure.shard)
        reps_bound_shard(reps, i, chain, limits);
    if (out->fill && out->dtype && out->fill != fill) {
        memcpy(fill, out->fill, (size_t)zarr_dtype_item_bytes(out->dtype));
        out->fill = fill;
    }
    return ZARR_OK;
}

/* Checks the bounds of encoded sizes. Some codecs' output is many times their input
 * (zfp's expert mode, base64 upon base64), and buffers have that size or may grow to
 * it. */
static zarr_status check_encoded(const struct zr_chain *chain, struct zr_chain_reps *reps,
                                 const zarr_limits *limits, zarr_error *err)
{
    /* The outer chain has already measured the bytes that it passes to this one. */
    const uint64_t base = ZR_MAX(limits->chunk_bytes, reps->rep[0].n_bytes);
    const bool cut = chain->a2b < chain->n && chain->codec[chain->a2b].structure.shard &&
                     !zr_chain_whole_shard(chain);
    /* A chain inside a codec, if only a limit bounds its input. */
    const bool unmeasured = !reps->rep[0].dtype && !reps->rep[0].exact;
    uint64_t most = 0;
    zarr_status st;

    if (!find_encoded_most(base, &most))
        return ZARR_OK;
    /* Codecs before a cut shard are applied to its chunks. */
    for (uint32_t i = cut ? chain->a2b : 0; i < chain->n; i++) {
        zarr_chunk_spec *rep = &reps->rep[i + 1];

        if (rep->n_bytes <= most || shard_is_cut(chain, i))
            continue;
        if (rep->dtype || !(reps->unsized || unmeasured)) {
            st = zr_fail_limit(
                err, zr_chunk_limit_name(reps->rep[0].dtype), base,
                "%s: a chunk of up to %" PRIu64 " encoded bytes, over %d times the limit",
                zarr_codec_spec_name(&chain->codec[i]), rep->n_bytes, ENCODED_FACTOR);
            return zr_link_prefix(err, st, &chain->codec[i]);
        }
        rep->n_bytes = most;
        reps->unsized = true;
    }
    return ZARR_OK;
}

static zarr_status resolve_check(const struct zr_chain *chain,
                                 const zarr_chunk_spec *chunk, bool varies,
                                 const zarr_limits *lim, zarr_error *err)
{
    if (chunk->ndim < 0 || (uint32_t)chunk->ndim > lim->rank)
        return zr_fail_limit(err, "rank", lim->rank, "chunk of %" PRId32 " dimensions",
                             chunk->ndim);
    if (varies && chunk->ndim != 1)
        return zr_internal(err);
    if (chunk->dtype && chain->a2b >= chain->n)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "an array->bytes codec such as \"bytes\" is missing");
    if (!chunk->dtype && chain->a2b < chain->n)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "\"%s\" takes an array, only bytes->bytes codecs can be here",
                       chain->codec[0].vt->name);
    return ZARR_OK;
}

zarr_status zr_chain_resolve(struct zr_chain_reps *out, const struct zr_chain *chain,
                             const zarr_chunk_spec *chunk, const zarr_limits *limits,
                             const zarr_allocator *alloc, zarr_error *err)
{
    if (!chunk->dtype)
        return zr_internal(err);
    return zr_chain_resolve_any(out, chain, chunk, false, limits, alloc, err);
}

zarr_status zr_chain_resolve_any(struct zr_chain_reps *out, const struct zr_chain *chain,
                                 const zarr_chunk_spec *chunk, bool varies,
                                 const zarr_limits *limits, const zarr_allocator *alloc,
                                 zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_chain_reps reps = {.alloc = alloc};
    zarr_limits lim;

    zr_codec_limits(&lim, limits);
    st = resolve_check(chain, chunk, varies, &lim, err);
    if (st == ZARR_OK)
        st = reps_open(&reps, chain->n, chunk, varies, err);
    if (st != ZARR_OK) {
        (void)chain_prefix(err, st, chain);
        goto out;
    }
    if (chain->a2b < chain->n &&
        (!chain->codec[chain->a2b].structure.shard || zr_chain_whole_shard(chain)) &&
        reps.rep[0].n_bytes > lim.chunk_bytes) {
        st = zr_fail_limit(err, zr_chunk_limit_name(chunk->dtype), lim.chunk_bytes,
                           "a chunk of %" PRIu64 " bytes", reps.rep[0].n_bytes);
        st = chain_prefix(err, st, chain);
        goto out;
    }
    for (uint32_t i = 0; i < chain->n; i++) {
        st = reps_step(&reps, i, chain, &lim, err);
        if (st != ZARR_OK)
            ZR_TRY(zr_link_prefix(err, st, &chain->codec[i]));
    }
    ZR_TRY(check_encoded(chain, &reps, &lim, err));
    ZR_TRY(zr_filters_check(chain, reps.rep[chain->a2b].dtype, err));
    *out = reps; /* moved */
    reps = (struct zr_chain_reps){0};
out:
    zr_chain_reps_deinit(&reps);
    return st;
}

bool zr_chain_packs(const struct zr_chain *chain, const zarr_dtype *dtype)
{
    const zarr_chunk_spec in = {.struct_size = sizeof in, .dtype = dtype};
    const struct zarr_codec_spec *s = chain->n > 0 ? &chain->codec[0] : NULL;

    return s && chain->a2b == 0 && s->vt->packs && s->vt->packs(s, &in);
}

const struct zarr_codec_spec *zr_chain_lossy(const struct zr_chain *chain,
                                             const struct zr_chain_reps *reps)
{
    for (uint32_t i = 0; i < chain->n; i++)
        if (chain->codec[i].vt->lossy &&
            chain->codec[i].vt->lossy(&chain->codec[i], &reps->rep[i]))
            return &chain->codec[i];
    return NULL;
}

zarr_status zr_spec_bound(const zarr_codec_spec *spec, uint64_t n_bytes,
                          uint64_t *encoded, zarr_error *err)
{
    const zarr_chunk_spec in = {
        .struct_size = sizeof in, .n_bytes = n_bytes, .exact = 1, .item_bytes_hint = 1};
    zarr_chunk_spec out = in;
    uint64_t fill[ZR_FILL_BYTES / sizeof(uint64_t)]; /* for resolve(); not read here */

    ZR_CHECK(rep_ask(&out, fill, spec, &in, err));
    *encoded = out.n_bytes;
    return ZARR_OK;
}
