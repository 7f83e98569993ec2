/*
 * codec/complete.c - what only the array can tell, settled before a chain is written:
 * blosc's item size and shuffle, the dimensions of a transpose spelled by a letter,
 * whether elements have a byte order, the types of filters. In chains inside shards and
 * other codecs, too: each is resolved for what it gets there.
 * Thread class: solo, before the chain is shared.
 * Recursion: through chains inside codecs, whose depth the parser has bounded.
 */
#include "codec/codec_int.h"

enum complete_what {
    COMPLETE_ALL,  /* for writing */
    COMPLETE_ITEMS /* what reading needs: the item size that a shuffle means */
};

static zarr_status complete_chain(struct zr_chain *chain, const zarr_chunk_spec *chunk,
                                  bool varies, enum complete_what what, zarr_error *err);

static char *complete_text(const struct zarr_codec_spec *s, const struct zr_conf_text *t,
                           const char *text)
{
    return t->bytes < t->cap ? zr_strndup(s->alloc, text, t->bytes) : NULL;
}

static zarr_status complete_blosc(struct zarr_codec_spec *s, const zarr_chunk_spec *in,
                                  zarr_error *err)
{
    const char *cname = zarr_codec_spec_text(s, "cname");
    const char *shuffle = zarr_codec_spec_text(s, "shuffle");
    int64_t typesize = in->item_bytes_hint ? in->item_bytes_hint : 1, clevel = 0,
            blocksize = 0;
    struct zr_conf_text t;
    char text[256], *json = NULL;
    size_t bytes = 0;

    (void)zarr_codec_spec_i64(s, "typesize", &typesize);
    (void)zarr_codec_spec_i64(s, "clevel", &clevel);
    (void)zarr_codec_spec_i64(s, "blocksize", &blocksize);
    if (zr_streq(shuffle, "auto"))
        shuffle = typesize == 1 ? "bitshuffle" : "shuffle";
    zr_conf_open(&t, text, sizeof text);
    zr_conf_put_i64(&t, "typesize", typesize);
    zr_conf_put_word(&t, "cname", cname);
    zr_conf_put_i64(&t, "clevel", clevel);
    zr_conf_put_word(&t, "shuffle", shuffle);
    zr_conf_put_i64(&t, "blocksize", blocksize);
    zr_conf_close(&t, &bytes);
    json = complete_text(s, &t, text);
    return json ? zr_link_settle(s, json, err) : zr_fail_memory(err, bytes);
}

static zarr_status complete_transpose(struct zarr_codec_spec *s,
                                      const zarr_chunk_spec *in, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    uint8_t order[ZARR_MAX_RANK] = {0};
    struct zr_str text;
    char *json = NULL;

    zr_str_init(&text, s->alloc);
    ZR_TRY(zr_spec_order(s, in->ndim, order, err));
    zr_str_puts(&text, "{\"order\":[");
    for (int32_t i = 0; i < in->ndim; i++)
        zr_str_printf(&text, "%s%d", i ? "," : "", order[i]);
    zr_str_puts(&text, "]}");
    ZR_TRY(zr_str_status(&text, err));
    json = zr_str_take(&text);
    st = json ? zr_link_settle(s, json, err) : zr_fail_memory(err, text.bytes);
out:
    zr_str_deinit(&text);
    return st;
}

static zarr_status complete_bytes(struct zarr_codec_spec *s, const zarr_chunk_spec *in,
                                  zarr_error *err)
{
    char *json = NULL;

    if (zr_dtype_has_order(in->dtype))
        return ZARR_OK;
    json = zr_strdup(s->alloc, "{}");
    return json ? zr_link_settle(s, json, err) : zr_fail_memory(err, 3);
}

/* `array`: what became bytes; without a data type, bytes inside another codec, of which
 * only the hint is known. */
static zarr_status complete_shuffle(struct zarr_codec_spec *s,
                                    const zarr_chunk_spec *array, zarr_error *err)
{
    struct zr_conf_text t;
    char text[64], *json = NULL;
    size_t bytes = 0;
    zarr_status st = ZARR_OK;

    if (array->dtype && zarr_dtype_variable(array->dtype)) {
        st = zr_fail(err, ZARR_ERR_UNSUPPORTED,
                     "shuffle: elementsize is missing, and elements of type %s have no "
                     "fixed size",
                     zr_spec_type_name(array->dtype));
        return zr_link_prefix(err, st, s);
    }
    zr_conf_open(&t, text, sizeof text);
    zr_conf_put_i64(&t, "elementsize",
                    array->dtype ? (int64_t)zarr_dtype_item_bytes(array->dtype)
                                 : ZR_MAX((int64_t)array->item_bytes_hint, (int64_t)1));
    zr_conf_close(&t, &bytes);
    json = complete_text(s, &t, text);
    return json ? zr_link_settle(s, json, err) : zr_fail_memory(err, bytes);
}

static zarr_status complete_shard(struct zarr_codec_spec *s, const zarr_chunk_spec *in,
                                  enum complete_what what, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    zarr_chunk_spec inner = *in;
    zarr_chunk_spec table = {.struct_size = sizeof table,
                             .ndim = in->ndim + 1,
                             .dtype = s->shard->index_dtype};

    for (int32_t i = 0; i < in->ndim; i++) {
        inner.shape[i] = s->shard->chunk_shape[i];
        table.shape[i] = in->shape[i] / s->shard->chunk_shape[i];
    }
    table.shape[in->ndim] = 2; /* resolve has refused a rank without room for this */
    ZR_TRY(complete_chain(s->shard->inner, &inner, false, what, err));
    ZR_TRY(complete_chain(s->shard->index, &table, false, what, err));
    ZR_TRY(zr_shard_spec_settle(s, err));
out:
    return st;
}

/* The array, or the bytes, that a chain inside this codec gets. False: only its
 * implementation knows that. */
static bool complete_inner(const struct zarr_codec_spec *s, const char *member,
                           const zarr_chunk_spec *in, zarr_chunk_spec *out,
                           zarr_status *st, zarr_error *err)
{
    zarr_chunk_spec other = {0};

    if (s->vt->resolve == zr_spec_optional.resolve) {
        *st = zr_streq(member, "mask_codecs")
                  ? zr_spec_optional_parts(s, in, out, &other, err)
                  : zr_spec_optional_parts(s, in, &other, out, err);
    } else if (s->vt->resolve == zr_spec_zarrs_vlen.resolve) {
        *st = zr_streq(member, "index_codecs")
                  ? zr_spec_vlen_parts(s, in, out, &other, err)
                  : zr_spec_vlen_parts(s, in, &other, out, err);
    } else if (s->vt->resolve == zr_spec_n5_default.resolve) {
        *out = *in;
    } else if (s->vt->resolve == zr_spec_conditional.resolve) {
        *out = (zarr_chunk_spec){.struct_size = sizeof *out,
                                 .n_bytes = in->n_bytes,
                                 .item_bytes_hint = in->item_bytes_hint};
    } else {
        return false;
    }
    return true;
}

static bool chain_lacks_items(const struct zr_chain *chain)
{
    for (uint32_t i = 0; i < chain->n; i++) {
        const struct zarr_codec_spec *s = &chain->codec[i];

        if (zr_spec_lacks_items(s) || (s->shard && (chain_lacks_items(s->shard->inner) ||
                                                    chain_lacks_items(s->shard->index))))
            return true;
        for (uint32_t k = 0; k < s->n_sub; k++)
            if (chain_lacks_items(s->sub[k].chain))
                return true;
    }
    return false;
}

/* A plug-in's codec: chains inside must say all that reading needs. */
static zarr_status complete_nothing(const struct zarr_codec_spec *s, zarr_error *err)
{
    for (uint32_t k = 0; k < s->n_sub; k++)
        if (chain_lacks_items(s->sub[k].chain))
            return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                           "%s: %s: shuffle: elementsize is missing", s->vt->name,
                           s->sub[k].member);
    return ZARR_OK;
}

/* Chains inside, and then the text that holds them: all such codecs are v3's. */
static zarr_status complete_subs(struct zarr_codec_spec *s, const zarr_chunk_spec *in,
                                 enum complete_what what, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (uint32_t i = 0; i < s->n_sub; i++) {
        zarr_chunk_spec inner = {0};

        if (!complete_inner(s, s->sub[i].member, in, &inner, &st, err))
            return complete_nothing(s, err);
        ZR_TRY(st);
        ZR_TRY(complete_chain(s->sub[i].chain, &inner, inner.dtype && !inner.exact, what,
                              err));
        ZR_TRY(zr_sub_print(&s->sub[i], 3, s->alloc, err));
    }
    ZR_TRY(zr_link_canonical(s, 3, err));
out:
    return st;
}

static zarr_status complete_link(struct zarr_codec_spec *s, const zarr_chunk_spec *in,
                                 enum complete_what what, zarr_error *err)
{
    if (s->shard)
        return complete_shard(s, in, what, err);
    if (s->n_sub)
        return complete_subs(s, in, what, err);
    if (what == COMPLETE_ITEMS)
        return ZARR_OK;
    if (s->vt->canonical == zr_spec_blosc.canonical)
        return complete_blosc(s, in, err);
    if (s->vt->canonical == zr_spec_bytes.canonical)
        return complete_bytes(s, in, err);
    if (s->vt->resolve == zr_spec_delta_array.resolve)
        return zr_filter_complete(s, in, err);
    if (s->vt->canonical == zr_spec_transpose.canonical && s->n_order < 0)
        return complete_transpose(s, in, err);
    return ZARR_OK;
}

/* `chunk` and varies as for zr_chain_resolve_any(). */
static zarr_status complete_chain(struct zr_chain *chain, const zarr_chunk_spec *chunk,
                                  bool varies, enum complete_what what, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_chain_reps reps = {0};
    const zarr_limits limits = {.chunk_bytes = UINT64_MAX,
                                .chunks_per_shard = UINT64_MAX};

    ZR_TRY(zr_chain_resolve_any(&reps, chain, chunk, varies, &limits, chain->alloc, err));
    for (uint32_t i = 0; i < chain->n; i++)
        ZR_TRY(zr_spec_lacks_items(&chain->codec[i])
                   ? complete_shuffle(&chain->codec[i],
                                      &reps.rep[chain->a2b < chain->n ? chain->a2b : 0],
                                      err)
                   : complete_link(&chain->codec[i], &reps.rep[i], what, err));
out:
    zr_chain_reps_deinit(&reps);
    return st;
}

zarr_status zr_chain_settle_items(struct zr_chain *chain, const zarr_chunk_spec *chunk,
                                  bool *settled, zarr_error *err)
{
    *settled = chain_lacks_items(chain);
    return *settled ? complete_chain(chain, chunk, false, COMPLETE_ITEMS, err) : ZARR_OK;
}

zarr_status zr_chain_complete(struct zr_chain *chain, const zarr_chunk_spec *chunk,
                              zarr_error *err)
{
    return chunk->dtype ? complete_chain(chain, chunk, false, COMPLETE_ALL, err)
                        : zr_internal(err);
}

zarr_status zr_chain_settle_order(struct zr_chain *chain, const zarr_dtype *dtype,
                                  zarr_error *err)
{
    struct zarr_codec_spec *s = &chain->codec[chain->a2b];
    zarr_status st = ZARR_OK;
    char *json = NULL;

    if (s->shard) {
        ZR_TRY(zr_chain_settle_order(s->shard->inner, dtype, err));
        st = zr_shard_spec_settle(s, err);
    } else if (s->vt->canonical == zr_spec_bytes.canonical &&
               s->stored.order == ZARR_ORDER_NATIVE && zr_dtype_has_order(dtype)) {
        json = zr_strdup(s->alloc, "{\"endian\":\"little\"}");
        st = json ? zr_link_settle(s, json, err) : zr_fail_memory(err, 20);
    }
out:
    return st;
}
