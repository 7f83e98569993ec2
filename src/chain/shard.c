/*
 * chain/shard.c - the specification of `sharding_indexed`: a grid of chunks in one
 * value, with an index of (offset, length) pairs before or after them. The configuration
 * contains two chains, so this file parses it instead of a flat canonical(). The shape
 * of the chunks refers to the array as this codec sees it, after any transpose, and must
 * divide its shape.
 * The index has an entry of 16 bytes for each chunk and goes through its own chain.
 * The output of that chain must have a fixed size, because the index is read before its
 * length could be known. Thread class: frozen once parsed.
 */
#include "chain/chain_int.h"

void zr_shard_spec_free(struct zr_shard_spec *shard, const zarr_allocator *alloc)
{
    if (!shard)
        return;
    zr_chain_free(shard->inner);
    zr_chain_free(shard->index);
    zr_free(alloc, shard);
}

/* ---- parsing --------------------------------------------------------------------- */

static zarr_status shard_parse_shape(struct zr_shard_spec *shard,
                                     const zarr_codec_spec *raw,
                                     const zarr_limits *limits, zarr_error *err)
{
    const struct zr_json *list = zr_json_get(raw->members, "chunk_shape");
    char text[64];
    int32_t n = 0;

    if (!zr_json_is(list, ZR_JSON_ARRAY))
        return zr_conf_refuse(raw, "chunk_shape", "a list of sizes", err);
    if (zr_json_count(list) > limits->rank)
        return zr_fail_limit(err, "rank", limits->rank,
                             "sharding_indexed: chunk_shape has %zu dimensions",
                             zr_json_count(list));
    for (const struct zr_json *v = list->u.children.first; v; v = v->next, n++)
        if (!zr_json_u64(v, &shard->chunk_shape[n]) || !shard->chunk_shape[n])
            return zr_fail(err, ZARR_ERR_INVALID,
                           "sharding_indexed: chunk_shape[%" PRId32
                           "] is %s, must be a positive integer",
                           n, zr_json_excerpt(v, text, sizeof text));
    shard->ndim = n;
    return ZARR_OK;
}

/* Refuses shards in the chain of an index, whose output size varies. */
static zarr_status shard_check_index(const struct zr_chain *index, zarr_error *err)
{
    if (index->codec[index->a2b].structure.shard)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "sharding_indexed: index_codecs: an index cannot be sharded");
    return ZARR_OK;
}

static zarr_status shard_parse_chains(struct zr_shard_spec *shard,
                                      const zarr_codec_spec *raw, struct zr_parse *p,
                                      zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (p->depth >= p->limits.shard_depth)
        return zr_fail_limit(err, "shard_depth", p->limits.shard_depth,
                             "shards nested deeper than %" PRIu32, p->limits.shard_depth);
    p->depth++;
    ZR_TRY(zr_chain_parse_list(&shard->inner, p, "codecs",
                               zr_json_get(raw->members, "codecs"), err));
    ZR_TRY(zr_chain_parse_list(&shard->index, p, "index_codecs",
                               zr_json_get(raw->members, "index_codecs"), err));
    p->depth--;
out:
    return st == ZARR_OK ? ZARR_OK : zr_prefix(err, st, "sharding_indexed");
}

zarr_status zr_shard_spec_parse(struct zarr_codec_spec *s, struct zr_parse *p,
                                zarr_error *err)
{
    static const char *const known[] = {"chunk_shape", "codecs", "index_codecs",
                                        "index_location", NULL};
    static const char *const words[] = {"start", "end", NULL};
    struct zr_shard_spec *shard = zr_calloc(s->alloc, 1, sizeof *shard);
    zarr_status st = ZARR_OK;
    int location = 1;

    if (!shard)
        return zr_fail_memory(err, sizeof *shard);
    s->structure.shard = shard; /* the link owns it now */
    ZR_TRY(zr_conf_check_members(s, 3, known, err));
    ZR_TRY(shard_parse_shape(shard, s, &p->limits, err));
    ZR_TRY(zr_conf_word(s, "index_location", words, &location, err));
    shard->index_at_end = location == 1;
    ZR_TRY(zr_dtype_find(s->dtypes, "uint64", &shard->index_dtype, NULL, err));
    ZR_TRY(shard_parse_chains(shard, s, p, err));
    ZR_TRY(shard_check_index(shard->index, err));
    s->structure.kind = ZR_STRUCTURE_SHARD;
    s->members = NULL; /* see zr_spec_own_shard_config() */
out:
    return st;
}

/* ---- sizes ------------------------------------------------------------------------- */

/* Describes the index of a grid of chunks as a chunk of its own. */
static zarr_status shard_table(const struct zr_shard_spec *s, const uint64_t *grid,
                               zarr_chunk_spec *out, zarr_error *err)
{
    *out = (zarr_chunk_spec){.struct_size = sizeof *out, .ndim = s->ndim + 1, .exact = 1};
    if (out->ndim > ZARR_MAX_RANK)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "sharding_indexed: at most %d dimensions can be sharded",
                       ZARR_MAX_RANK - 1);
    for (int32_t i = 0; i < s->ndim; i++)
        out->shape[i] = grid[i];
    out->shape[s->ndim] = 2;
    out->dtype = s->index_dtype;
    return ZARR_OK;
}

static zarr_status shard_index_resolve(const struct zr_shard_spec *s,
                                       const zarr_chunk_spec *table, uint64_t *out,
                                       zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_chain_reps reps = {0};
    zarr_limits limits = {.chunk_bytes = UINT64_MAX};
    const struct zarr_codec_spec *lossy = NULL;

    ZR_TRY(zr_chain_resolve(&reps, s->index, table, &limits, s->index->alloc, err));
    lossy = zr_chain_lossy(s->index, &reps);
    if (lossy)
        ZR_FAIL(err, ZARR_ERR_INVALID,
                "index_codecs: %s loses values: the index would point to "
                "other chunks",
                zarr_codec_spec_name(lossy));
    if (!reps.rep[reps.n].exact)
        ZR_FAIL(err, ZARR_ERR_INVALID,
                "index_codecs: the size of the encoded index is not fixed");
    *out = reps.rep[reps.n].n_bytes;
out:
    zr_chain_reps_deinit(&reps);
    return zr_prefix(err, st, "sharding_indexed");
}

static zarr_status shard_grid(const struct zr_shard_spec *s, const zarr_chunk_spec *in,
                              uint64_t most, struct zr_shard_inner_specs *out,
                              zarr_error *err)
{
    if (s->ndim != in->ndim)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "sharding_indexed: chunk_shape has %" PRId32
                       " dimensions, the shard %" PRId32,
                       s->ndim, in->ndim);
    for (int32_t i = 0; i < s->ndim; i++) {
        if (in->shape[i] % s->chunk_shape[i])
            return zr_fail(err, ZARR_ERR_INVALID,
                           "sharding_indexed: chunk_shape[%" PRId32 "] %" PRIu64
                           " does not divide the shard's %" PRIu64,
                           i, s->chunk_shape[i], in->shape[i]);
        out->grid[i] = in->shape[i] / s->chunk_shape[i];
    }
    if (!zr_product_u64(out->grid, (size_t)s->ndim, &out->n_chunks) ||
        out->n_chunks > most)
        return zr_fail_limit(err, "chunks_per_shard", most,
                             "sharding_indexed: more than %" PRIu64 " chunks in a shard",
                             most);
    return ZARR_OK;
}

zarr_status zr_shard_inner_specs(const struct zr_shard_spec *s,
                                 const zarr_chunk_spec *shard, uint64_t most,
                                 struct zr_shard_inner_specs *out, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    *out = (struct zr_shard_inner_specs){.n_chunks = 0};
    ZR_TRY(shard_grid(s, shard, most, out, err));
    ZR_TRY(shard_table(s, out->grid, &out->index, err));
    out->chunk = *shard;
    for (int32_t i = 0; i < shard->ndim; i++)
        out->chunk.shape[i] = s->chunk_shape[i];
out:
    return st;
}

zarr_status zr_shard_spec_resolve(const struct zarr_codec_spec *s,
                                  struct zr_chain_reps *around, uint32_t i_codec,
                                  const zarr_limits *limits, zarr_error *err)
{
    const zarr_chunk_spec *in = &around->rep[i_codec];
    zarr_chunk_spec *out = &around->rep[i_codec + 1];
    const zarr_allocator *alloc = around->alloc;
    zarr_status st = ZARR_OK;
    struct zr_chain_reps reps = {0};
    const struct zr_shard_spec *shard = s->structure.shard;
    struct zr_shard_inner_specs parts;
    uint64_t index_bytes = 0;

    ZR_TRY(zr_spec_needs_length(s, in, err));
    ZR_TRY(zr_shard_inner_specs(shard, in, limits->chunks_per_shard, &parts, err));
    ZR_TRY(shard_index_resolve(shard, &parts.index, &index_bytes, err));
    st = zr_chain_resolve(&reps, shard->inner, &parts.chunk, limits, alloc, err);
    if (st != ZARR_OK) {
        st = zr_prefix(err, st, "sharding_indexed");
        goto out;
    }
    out->exact = 0;
    out->item_bytes_hint = 1;
    around->unsized |= reps.unsized;
    if (!zr_mul(parts.n_chunks, reps.rep[reps.n].n_bytes, &out->n_bytes) ||
        !zr_add(out->n_bytes, index_bytes, &out->n_bytes))
        st = zr_fail(err, ZARR_ERR_LIMIT, "sharding_indexed: the shard is too large");
out:
    zr_chain_reps_deinit(&reps);
    return st;
}

/* Never called: parse.c and resolve.c read a shard themselves. */
static zarr_status shard_canonical(const zarr_codec_spec *raw, int format, char *text,
                                   size_t cap, size_t *text_bytes, zarr_error *err)
{
    ZR_UNUSED(raw, format, text, cap);
    ZR_UNUSED(text_bytes);
    return zr_internal(err);
}

const zarr_codec_spec_vtable zr_spec_sharding = {
    .struct_size = sizeof(zarr_codec_spec_vtable),
    .flags = ZARR_CODEC_SPEC_V3,
    .name = "sharding_indexed",
    .kind = ZARR_CODEC_ARRAY_BYTES,
    .canonical = shard_canonical,
};

const struct zarr_codec_spec *zr_chain_whole_shard(const struct zr_chain *chain)
{
    if (chain->a2b >= chain->n || !chain->codec[chain->a2b].structure.shard)
        return NULL;
    for (uint32_t i = 0; i < chain->a2b; i++)
        if (!(chain->codec[i].vt->flags & ZARR_CODEC_SPEC_ELEMENTWISE) &&
            chain->codec[i].structure.kind != ZR_STRUCTURE_TRANSPOSE)
            return &chain->codec[i];
    return NULL;
}

/* Whether a codec before the shard may change a chunk's shape in any way. The shard is
 * then decoded whole, and resolving each chunk decides which shapes fit. */
static bool unit_is_unknown(const struct zr_chain *chain)
{
    for (uint32_t i = 0; i < chain->a2b; i++)
        if (!(chain->codec[i].vt->flags &
              (ZARR_CODEC_SPEC_ELEMENTWISE | ZARR_CODEC_SPEC_KEEPS_SHAPE)) &&
            chain->codec[i].structure.kind != ZR_STRUCTURE_TRANSPOSE)
            return true;
    return false;
}

zarr_status zr_chain_unit(const struct zr_chain *chain, int32_t ndim, uint64_t *unit,
                          zarr_error *err)
{
    const struct zr_shard_spec *shard = chain->codec[chain->a2b].structure.shard;
    uint8_t to[ZARR_MAX_RANK] = {0}, order[ZARR_MAX_RANK], next[ZARR_MAX_RANK];
    zarr_status st = ZARR_OK;

    for (int32_t d = 0; d < ndim; d++) {
        to[d] = (uint8_t)d;
        unit[d] = 1;
    }
    if (shard && unit_is_unknown(chain))
        return ZARR_OK;
    for (uint32_t c = 0; shard && c < chain->a2b; c++) {
        if (chain->codec[c].structure.n_order == 0)
            continue;
        ZR_TRY(zr_spec_order(&chain->codec[c], ndim, order, err));
        for (int32_t d = 0; d < ndim; d++)
            next[d] = to[order[d]];
        for (int32_t d = 0; d < ndim; d++)
            to[d] = next[d];
    }
    for (int32_t d = 0; shard && d < ndim && d < shard->ndim; d++)
        unit[to[d]] = shard->chunk_shape[d];
out:
    return st;
}
