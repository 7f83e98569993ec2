/*
 * chain/sub.c - chains in the configuration of a codec. They are parsed with the codec
 * and written in canonical form for its canonical(). Plug-ins read them through getters.
 * impl/runner.c runs them.
 * Thread class: solo while parsed, then frozen.
 * Recursion: every level of nesting is a codec, and limits.codecs bounds their number.
 */
#include "chain/chain_int.h"

const struct zr_sub_chain *zr_spec_sub(const zarr_codec_spec *spec, const char *member)
{
    for (uint32_t i = 0; i < spec->n_sub; i++)
        if (zr_streq(spec->sub[i].member, member))
            return &spec->sub[i];
    return NULL;
}

void zr_sub_free(struct zarr_codec_spec *s)
{
    for (uint32_t i = 0; i < s->n_sub; i++) {
        zr_chain_free(s->sub[i].chain);
        zr_free(s->alloc, s->sub[i].json);
    }
    zr_free(s->alloc, s->sub);
    s->sub = NULL;
    s->n_sub = 0;
}

/* ---- parsing --------------------------------------------------------------------- */

zarr_status zr_sub_print(struct zr_sub_chain *sub, int format,
                         const zarr_allocator *alloc, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_json_doc doc;
    struct zr_json *list = NULL;
    struct zr_str text;

    zr_json_doc_init(&doc, alloc);
    zr_str_init(&text, alloc);
    list = zr_chain_write(&doc, sub->chain, format);
    if (!list)
        ZR_FAIL_MEMORY(err, 0);
    zr_json_write(list, 0, &text);
    ZR_TRY(zr_str_status(&text, err));
    zr_free(alloc, sub->json);
    sub->json = zr_str_take(&text);
    if (!sub->json)
        st = zr_fail_memory(err, text.bytes);
out:
    zr_str_deinit(&text);
    zr_json_doc_deinit(&doc);
    return st;
}

static zarr_status sub_parse_one(struct zarr_codec_spec *s, struct zr_parse *p,
                                 const char *member, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    const struct zr_json *list = zr_json_get(s->members, member);
    struct zr_sub_chain *sub = &s->sub[s->n_sub];

    if (!list || list->type == ZR_JSON_NULL)
        return ZARR_OK;
    if (p->sub == ZR_SUB_DEPTH)
        return zr_fail(err, ZARR_ERR_LIMIT,
                       "%s: codecs are nested in codecs more than %d deep", member,
                       ZR_SUB_DEPTH);
    sub->member = member;
    s->n_sub++;
    p->sub++;
    st = zr_chain_parse_list(&sub->chain, p, member, list, err);
    p->sub--;
    ZR_TRY(st);
    ZR_TRY(zr_sub_print(sub, p->format, p->alloc, err));
out:
    return st;
}

zarr_status zr_sub_parse(struct zarr_codec_spec *s, struct zr_parse *p, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    size_t n = 0;

    while (s->vt->chains && s->vt->chains[n])
        n++;
    if (!n)
        return ZARR_OK;
    s->sub = zr_calloc(s->alloc, n, sizeof *s->sub);
    if (!s->sub)
        return zr_fail_memory(err, n * sizeof *s->sub);
    for (size_t i = 0; i < n && st == ZARR_OK; i++)
        st = sub_parse_one(s, p, s->vt->chains[i], err);
    return zr_prefix(err, st, "%s", s->vt->name);
}

/* ---- what plug-ins ask ------------------------------------------------------------- */

const char *zarr_codec_spec_chain_json(const zarr_codec_spec *spec, const char *member)
{
    if (!spec)
        return NULL;
    const struct zr_sub_chain *sub = zr_spec_sub(spec, member);

    return sub ? sub->json : NULL;
}

int64_t zarr_codec_spec_chain_codecs(const zarr_codec_spec *spec, const char *member,
                                     int *array)
{
    const struct zr_sub_chain *sub = spec ? zr_spec_sub(spec, member) : NULL;

    if (!sub)
        return -1;
    if (array)
        *array = sub->chain->a2b < sub->chain->n;
    return sub->chain->n;
}

const char *zr_spec_chain_name(const zarr_codec_spec *spec, const char *member,
                               uint64_t i)
{
    const struct zr_sub_chain *sub = zr_spec_sub(spec, member);

    return sub && i < sub->chain->n ? sub->chain->codec[i].vt->name : NULL;
}

zarr_status zr_spec_chain_layout(const zarr_codec_spec *spec, const char *member,
                                 int32_t ndim, struct zr_chain_layout *out,
                                 zarr_error *err)
{
    const struct zr_sub_chain *sub = zr_spec_sub(spec, member);
    const struct zarr_codec_spec *codec = sub ? sub->chain->codec : NULL;

    *out = (struct zr_chain_layout){0};
    if (!codec || sub->chain->n < 2 ||
        codec[0].structure.kind != ZR_STRUCTURE_TRANSPOSE ||
        codec[1].structure.kind != ZR_STRUCTURE_BYTES)
        return zr_internal(err);
    out->byte_order = codec[1].structure.stored.order;
    return zr_spec_order(&codec[0], ndim, out->order, err);
}

zarr_status zarr_codec_spec_chain_resolve(const zarr_codec_spec *spec, const char *member,
                                          const zarr_chunk_spec *in, zarr_chunk_spec *out,
                                          zarr_error *err)
{
    ZR_NEED(spec, err);
    const struct zr_sub_chain *sub = zr_spec_sub(spec, member);
    const zarr_limits limits = {.chunk_bytes = spec->most_bytes,
                                .chunks_per_shard = spec->most_chunks};
    struct zr_chain_reps reps = {0};
    zarr_status st = ZARR_OK;

    if (!sub)
        return zr_fail(err, ZARR_ERR_INVALID, "%s: %s is missing", spec->vt->name,
                       member);
    st = zr_chain_resolve_any(&reps, sub->chain, in, in->dtype && !in->exact, &limits,
                              spec->alloc, err);
    if (st == ZARR_OK) {
        *out = reps.rep[reps.n];
        out->fill = NULL;
        if (reps.unsized)
            out->n_bytes = UINT64_MAX;
    }
    zr_chain_reps_deinit(&reps);
    return zr_prefix(err, st, "%s", spec->vt->name);
}
