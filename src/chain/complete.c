/*
 * chain/complete.c - fills in the configuration that depends on the array, before a chain
 * is written. Calls complete() of each codec, with the codec's input and the data type
 * that became bytes. Does the same in chains inside shards and other codecs: each is
 * resolved for its own input. Opening a stored array completes only the codecs that
 * cannot be decoded otherwise.
 * Thread class: solo, before the chain is shared.
 * Recursion: through chains inside codecs, whose depth the parser has bounded.
 */
#include "chain/chain_int.h"

enum complete_what {
    COMPLETE_ALL,     /* for writing */
    COMPLETE_DECODING /* for reading */
};

static zarr_status complete_chain(struct zr_chain *chain, const zarr_chunk_spec *chunk,
                                  bool varies, enum complete_what what, zarr_error *err);

static bool spec_is_incomplete(const struct zarr_codec_spec *s)
{
    return s->vt->complete && s->vt->incomplete && s->vt->incomplete(s);
}

static zarr_status complete_own(struct zarr_codec_spec *s, const zarr_chunk_spec *in,
                                const zarr_chunk_spec *array, zarr_error *err)
{
    struct zr_spec_question q = {.in = in, .array = array};

    return s->vt->complete ? zr_link_ask_config(s, &q, err) : ZARR_OK;
}

static zarr_status complete_shard(struct zarr_codec_spec *s, const zarr_chunk_spec *in,
                                  enum complete_what what, zarr_error *err)
{
    const struct zr_shard_spec *shard = s->structure.shard;
    zarr_chunk_spec inner = *in;
    zarr_chunk_spec table = {
        .struct_size = sizeof table, .ndim = in->ndim + 1, .dtype = shard->index_dtype};

    for (int32_t i = 0; i < in->ndim; i++) {
        inner.shape[i] = shard->chunk_shape[i];
        table.shape[i] = in->shape[i] / shard->chunk_shape[i];
    }
    table.shape[in->ndim] = 2; /* resolve has refused ranks that leave no room for this */
    ZR_CHECK(complete_chain(shard->inner, &inner, false, what, err));
    return complete_chain(shard->index, &table, false, what, err);
}

/* Finds the first incomplete codec of the chain and its nested chains. */
static const struct zarr_codec_spec *find_incomplete(const struct zr_chain *chain)
{
    const struct zarr_codec_spec *found = NULL;

    for (uint32_t i = 0; i < chain->n && !found; i++) {
        const struct zarr_codec_spec *s = &chain->codec[i];

        if (spec_is_incomplete(s))
            return s;
        if (s->structure.shard) {
            found = find_incomplete(s->structure.shard->inner);
            if (!found)
                found = find_incomplete(s->structure.shard->index);
        }
        for (uint32_t k = 0; k < s->n_sub && !found; k++)
            found = find_incomplete(s->sub[k].chain);
    }
    return found;
}

/* Checks that chains inside a codec are complete if the codec does not give their
 * input. */
static zarr_status check_complete(const struct zarr_codec_spec *s, zarr_error *err)
{
    for (uint32_t k = 0; k < s->n_sub; k++) {
        const struct zarr_codec_spec *open = find_incomplete(s->sub[k].chain);

        if (open)
            return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                           "%s: %s: %s: a member is missing that depends on the array",
                           s->vt->name, s->sub[k].member, open->vt->name);
    }
    return ZARR_OK;
}

static zarr_status ask_chain_input(const struct zarr_codec_spec *s, const char *member,
                                   const zarr_chunk_spec *in, zarr_chunk_spec *out,
                                   zarr_error *err)
{
    struct zr_foreign said;
    zarr_status st;

    *out = (zarr_chunk_spec){.struct_size = sizeof *out};
    st = s->vt->chain_input(s, member, in, out, zr_foreign_begin(&said, err));
    return st == ZARR_OK ? ZARR_OK : zr_spec_fail(s, &said, st);
}

/* Completes the nested chains, then writes the text that contains them. */
static zarr_status complete_subs(struct zarr_codec_spec *s, const zarr_chunk_spec *in,
                                 enum complete_what what, zarr_error *err)
{
    const int format = s->v3 ? 3 : 2;

    if (!s->vt->chain_input)
        return check_complete(s, err);
    for (uint32_t i = 0; i < s->n_sub; i++) {
        zarr_chunk_spec inner;

        ZR_CHECK(ask_chain_input(s, s->sub[i].member, in, &inner, err));
        ZR_CHECK(complete_chain(s->sub[i].chain, &inner, inner.dtype && !inner.exact,
                                what, err));
        ZR_CHECK(zr_sub_print(&s->sub[i], format, s->alloc, err));
    }
    return zr_link_canonical(s, format, err);
}

static zarr_status complete_link(struct zarr_codec_spec *s, const zarr_chunk_spec *in,
                                 const zarr_chunk_spec *array, enum complete_what what,
                                 zarr_error *err)
{
    if (s->structure.shard)
        return complete_shard(s, in, what, err);
    if (s->n_sub)
        ZR_CHECK(complete_subs(s, in, what, err));
    if (spec_is_incomplete(s))
        return zr_link_prefix(err, complete_own(s, in, array, err), s);
    if (what == COMPLETE_ALL)
        return complete_own(s, in, array, err);
    return ZARR_OK;
}

/* `chunk` and `varies` are as for zr_chain_resolve_any(). */
static zarr_status complete_chain(struct zr_chain *chain, const zarr_chunk_spec *chunk,
                                  bool varies, enum complete_what what, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_chain_reps reps = {0};
    const zarr_limits limits = {.chunk_bytes = UINT64_MAX,
                                .chunks_per_shard = UINT64_MAX};
    const zarr_chunk_spec *array = NULL;

    ZR_TRY(zr_chain_resolve_any(&reps, chain, chunk, varies, &limits, chain->alloc, err));
    array = &reps.rep[chain->a2b < chain->n ? chain->a2b : 0];
    for (uint32_t i = 0; i < chain->n; i++)
        ZR_TRY(complete_link(&chain->codec[i], &reps.rep[i], array, what, err));
out:
    zr_chain_reps_deinit(&reps);
    return st;
}

zarr_status zr_chain_complete_stored(struct zr_chain *chain, const zarr_chunk_spec *chunk,
                                     bool *completed, zarr_error *err)
{
    *completed = find_incomplete(chain) != NULL;
    return *completed ? complete_chain(chain, chunk, false, COMPLETE_DECODING, err)
                      : ZARR_OK;
}

zarr_status zr_chain_complete(struct zr_chain *chain, const zarr_chunk_spec *chunk,
                              zarr_error *err)
{
    return chunk->dtype ? complete_chain(chain, chunk, false, COMPLETE_ALL, err)
                        : zr_internal(err);
}

zarr_status zr_chain_complete_order(struct zr_chain *chain, const zarr_dtype *dtype,
                                    zarr_error *err)
{
    struct zarr_codec_spec *s = &chain->codec[chain->a2b];
    zarr_status st = ZARR_OK;
    char *json = NULL;

    if (s->structure.shard) {
        st = zr_chain_complete_order(s->structure.shard->inner, dtype, err);
    } else if (s->structure.kind == ZR_STRUCTURE_BYTES &&
               s->structure.stored.order == ZR_ORDER_NATIVE &&
               zr_dtype_has_order(dtype)) {
        json = zr_strdup(s->alloc, "{\"endian\":\"little\"}");
        st = json ? zr_link_set_config(s, json, err) : zr_fail_memory(err, 20);
    }
    return st;
}
