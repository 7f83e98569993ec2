/*
 * chain/write.c - writes a chain as JSON, complete and canonical, as zarr-python does: v3
 * objects of name and configuration (omitted if empty), v2 objects of id and members in
 * numcodecs' spelling. complete.c has already filled in the members that depend on the
 * array. Each codec's spell() gives the members as a format spells them. In v3, v2
 * filters move before `bytes`, under a name with a prefix.
 * Thread class: reads a frozen chain.
 * Recursion: through nested chains, whose depth the parser has bounded.
 */
#include "chain/chain_int.h"

#include <string.h>

/* ---- one codec ------------------------------------------------------------------- */

/* Parses the text of spell() to a tree in `doc`. NULL: spell() gave no text or failed. */
static struct zr_json *write_spelled(struct zr_json_doc *doc,
                                     const struct zarr_codec_spec *s,
                                     zarr_codec_spelling *how)
{
    struct zr_spec_question q = {.spelling = how};
    struct zr_json *out = NULL;
    struct zr_json_doc own;
    char *text = NULL;

    if (zr_spec_ask(s, &q, &text, NULL) != ZARR_OK) {
        doc->failed = true;
        return NULL;
    }
    if (!text)
        return NULL;
    zr_json_doc_init(&own, s->alloc);
    if (zr_json_parse(&own, text, strlen(text), NULL, NULL) == ZARR_OK &&
        zr_json_is(own.root, ZR_JSON_OBJECT))
        out = zr_json_copy(doc, own.root);
    else
        doc->failed = true;
    zr_json_doc_deinit(&own);
    zr_free(s->alloc, text);
    return out;
}

static struct zr_json *write_shard_spec(struct zr_json_doc *doc,
                                        const struct zr_shard_spec *shard)
{
    struct zr_json *out = zr_json_new(doc, ZR_JSON_OBJECT);
    struct zr_json *shape = zr_json_new(doc, ZR_JSON_ARRAY);

    for (int32_t i = 0; i < shard->ndim; i++)
        zr_json_append(doc, shape, zr_json_new_u64(doc, shard->chunk_shape[i]));
    zr_json_set(doc, out, "chunk_shape", shape);
    zr_json_set(doc, out, "codecs", zr_chain_write(doc, shard->inner, 3));
    zr_json_set(doc, out, "index_codecs", zr_chain_write(doc, shard->index, 3));
    zr_json_set(doc, out, "index_location",
                zr_json_new_text(doc, shard->index_at_end ? "end" : "start"));
    return out;
}

/* Gives the configuration of a codec in this spelling, nested chains included. */
static struct zr_json *write_members(struct zr_json_doc *doc,
                                     const struct zarr_codec_spec *s,
                                     zarr_codec_spelling *how)
{
    struct zr_json *out = NULL;

    if (s->structure.shard)
        return write_shard_spec(doc, s->structure.shard);
    if (s->vt->spell)
        out = write_spelled(doc, s, how);
    if (!out)
        out = zr_json_copy(doc, s->members);
    for (uint32_t i = 0; i < s->n_sub; i++)
        if (zr_json_get(out, s->sub[i].member))
            zr_json_set(doc, out, s->sub[i].member,
                        zr_chain_write(doc, s->sub[i].chain, how->format));
    return out;
}

static bool chain_is_big(const struct zr_chain *chain)
{
    return chain->a2b < chain->n &&
           chain->codec[chain->a2b].structure.stored.order == ZARR_ORDER_BIG;
}

static struct zr_json *write_link_v2(struct zr_json_doc *doc,
                                     const struct zr_chain *chain, uint32_t i)
{
    const struct zarr_codec_spec *s = &chain->codec[i];
    struct zr_json *out = zr_json_new(doc, ZR_JSON_OBJECT);
    zarr_codec_spelling how = {.struct_size = sizeof how,
                               .format = 2,
                               .flags =
                                   chain_is_big(chain) ? ZARR_SPELLING_BIG_ENDIAN : 0};
    const struct zr_json *members = write_members(doc, s, &how);

    zr_json_set(doc, out, "id", zr_json_new_text(doc, s->vt->name));
    for (const struct zr_json *m = members ? members->u.children.first : NULL; m;
         m = m->next)
        zr_json_set(doc, out, m->key, zr_json_copy(doc, m));
    return out;
}

/* Whether the name in v3 begins with "numcodecs.". The name of a v2 filter with its own
 * table for v2 also does. */
static bool write_has_prefix(const struct zarr_codec_spec *s)
{
    const uint32_t flags = s->vt->flags;

    return (flags & ZARR_CODEC_SPEC_NUMCODECS) ||
           ((flags & ZARR_CODEC_SPEC_KEEPS_PREFIX) && s->prefixed) ||
           ((flags & ZARR_CODEC_SPEC_V2) && zr_spec_is_filter(s));
}

/* zarr-python requires a configuration for numcodecs' codecs, even an empty one. */
static struct zr_json *write_link_v3(struct zr_json_doc *doc,
                                     const struct zarr_codec_spec *s, bool moved)
{
    struct zr_json *out = zr_json_new(doc, ZR_JSON_OBJECT);
    zarr_codec_spelling how = {
        .struct_size = sizeof how,
        .format = 3,
        .flags = moved && zr_spec_is_filter(s) ? ZARR_SPELLING_BETWEEN_ARRAYS : 0,
        .prefix = write_has_prefix(s)};
    struct zr_json *members = write_members(doc, s, &how);
    struct zr_str name;

    zr_str_init(&name, s->alloc);
    zr_str_printf(&name, "%s%s", how.prefix ? "numcodecs." : "", s->vt->name);
    doc->failed |= name.failed;
    zr_json_set(doc, out, "name", zr_json_new_text(doc, zr_str_text(&name)));
    if (zr_json_count(members) || zr_starts_with(zr_str_text(&name), "numcodecs."))
        zr_json_set(doc, out, "configuration", members);
    zr_str_deinit(&name);
    return out;
}

/* ---- v2 filters in v3 --------------------------------------------------- */

/* The v2 filters right after `bytes` that v3 has between arrays, before `bytes`. */
struct write_run {
    uint32_t n;
    uint32_t item_bytes; /* of the output; 0: as of the input */
    bool big;
};

/* Counts these filters. Between arrays there is no byte order, so each must name its
 * input's. */
static struct write_run write_find_run(const struct zr_chain *chain)
{
    const struct zarr_codec_spec *behind = &chain->codec[chain->a2b + 1];
    struct write_run run = {.big = chain_is_big(chain)};
    zarr_codec_elements e;

    for (; chain->a2b + 1 + run.n < chain->n; run.n++) {
        if (!zr_spec_is_filter(&behind[run.n]) ||
            zr_spec_elements(&behind[run.n], NULL, &e, NULL) != ZARR_OK)
            break;
        if ((e.takes[0] == '<' && run.big) || (e.takes[0] == '>' && !run.big))
            break;
        if (!e.gives[0])
            continue;
        run.item_bytes = zr_numpy_item_bytes(e.gives);
        run.big = e.gives[0] == '>';
    }
    return run;
}

zarr_status zr_chain_has_form(const struct zr_chain *chain, int format, zarr_error *err)
{
    const uint32_t n = format == 3 ? write_find_run(chain).n : 0;

    if (format == 2 && chain->codec[chain->a2b].structure.shard)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "Zarr v2 has no shards");
    for (uint32_t i = chain->a2b + n + 1; format == 3 && i < chain->n; i++)
        if (zr_spec_is_filter(&chain->codec[i]))
            return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                           "Zarr v3 cannot express the filter \"%s\" here: such filters "
                           "must come first and name the byte order of their input",
                           chain->codec[i].vt->name);
    return ZARR_OK;
}

/* Writes `bytes` after the moved filters, with the byte order of their output. */
static struct zr_json *write_bytes_v3(struct zr_json_doc *doc,
                                      const struct zarr_codec_spec *s,
                                      const struct write_run *run)
{
    struct zr_json *out = write_link_v3(doc, s, true);
    struct zr_json *config = zr_json_get(out, "configuration");

    if (run->item_bytes == 1) {
        zr_json_remove(out, "configuration");
    } else if (run->item_bytes > 1) {
        if (!config) {
            zr_json_set(doc, out, "configuration", zr_json_new(doc, ZR_JSON_OBJECT));
            config = zr_json_get(out, "configuration");
        }
        zr_json_set(doc, config, "endian",
                    zr_json_new_text(doc, run->big ? "big" : "little"));
    }
    return out;
}

struct zr_json *zr_chain_write(struct zr_json_doc *doc, const struct zr_chain *chain,
                               int format)
{
    struct write_run run = {0};
    struct zr_json *out = NULL;

    if (zr_chain_has_form(chain, format, NULL) != ZARR_OK) {
        doc->failed = true; /* a wrong error is better than a document without codecs */
        return NULL;
    }
    if (format == 3)
        run = write_find_run(chain);
    out = zr_json_new(doc, ZR_JSON_ARRAY);
    for (uint32_t k = 0; k < chain->n; k++) {
        uint32_t i = k;

        if (k >= chain->a2b && k < chain->a2b + run.n)
            i = k + 1;
        else if (k == chain->a2b + run.n)
            i = chain->a2b;
        zr_json_append(doc, out,
                       format == 2       ? write_link_v2(doc, chain, i)
                       : i == chain->a2b ? write_bytes_v3(doc, &chain->codec[i], &run)
                                         : write_link_v3(doc, &chain->codec[i], true));
    }
    return zr_json_is_ok(doc) ? out : NULL;
}

struct zr_json *zr_chain_show(struct zr_json_doc *doc, const struct zr_chain *chain)
{
    const struct write_run none = {0};
    struct zr_json *out = NULL;

    if (zr_chain_has_form(chain, 3, NULL) == ZARR_OK)
        return zr_chain_write(doc, chain, 3);
    out = zr_json_new(doc, ZR_JSON_ARRAY);
    for (uint32_t i = 0; i < chain->n; i++)
        zr_json_append(doc, out,
                       i == chain->a2b ? write_bytes_v3(doc, &chain->codec[i], &none)
                                       : write_link_v3(doc, &chain->codec[i], false));
    return zr_json_is_ok(doc) ? out : NULL;
}

zarr_status zr_spec_own_shard_config(struct zarr_codec_spec *s, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_json_doc doc;
    struct zr_json *config = NULL;
    struct zr_str text;
    char *json = NULL;

    if (!s->structure.shard)
        return ZARR_OK;
    zr_json_doc_init(&doc, s->alloc);
    zr_str_init(&text, s->alloc);
    config = write_shard_spec(&doc, s->structure.shard);
    if (!config || !zr_json_is_ok(&doc))
        ZR_FAIL_MEMORY(err, 0);
    zr_json_write(config, 0, &text);
    ZR_TRY(zr_str_status(&text, err));
    json = zr_str_take(&text);
    st = json ? zr_link_set_config(s, json, err) : zr_fail_memory(err, text.bytes);
out:
    zr_str_deinit(&text);
    zr_json_doc_deinit(&doc);
    return st;
}

void zr_spec_drop_shard_config(struct zarr_codec_spec *s)
{
    if (!s->structure.shard || !s->json)
        return;
    zr_free(s->alloc, s->json);
    zr_json_doc_deinit(&s->config);
    s->json = NULL;
    s->members = NULL;
}

/* ---- fill values ------------------------------------------------------------- */

static zarr_status parse_fill(const struct zarr_codec_spec *s, const char *text,
                              struct zr_json_doc *doc, struct zr_json **out,
                              zarr_error *err)
{
    const size_t bytes = strlen(text);
    const zarr_limits limits = {
        .json_depth = UINT32_MAX, .json_tokens = bytes + 1, .string_bytes = bytes + 1};
    struct zr_json_doc parsed;
    zarr_status st = ZARR_OK;

    zr_json_doc_init(&parsed, s->alloc);
    st = zr_json_parse(&parsed, text, bytes, &limits, err);
    if (st == ZARR_ERR_CORRUPT)
        st = zr_spec_broke(s, "the fill value that it writes is not JSON", err);
    ZR_TRY(st);
    *out = zr_json_copy(doc, parsed.root);
    if (!*out)
        st = zr_fail_memory(err, bytes);
out:
    zr_json_doc_deinit(&parsed);
    return st;
}

zarr_status zr_chain_fill(const struct zr_chain *chain, const zarr_dtype *dtype,
                          const struct zr_json *v, bool to_metadata,
                          struct zr_json_doc *doc, struct zr_json **out, zarr_error *err)
{
    const struct zarr_codec_spec *s = &chain->codec[chain->a2b];
    struct zr_spec_question q = {.dtype = dtype, .to_metadata = to_metadata};
    zarr_status st = ZARR_OK;
    struct zr_str text;
    char *json = NULL;

    *out = NULL;
    if (!(to_metadata ? s->vt->fill_write : s->vt->fill_read))
        return ZARR_OK;
    zr_str_init(&text, s->alloc);
    zr_json_write_tokens(v, &text);
    ZR_TRY(zr_str_status(&text, err));
    q.fill = zr_str_text(&text);
    ZR_TRY(zr_spec_ask(s, &q, &json, err));
    if (json)
        st = parse_fill(s, json, doc, out, err);
out:
    zr_free(s->alloc, json);
    zr_str_deinit(&text);
    return st;
}
