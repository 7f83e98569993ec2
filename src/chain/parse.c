/*
 * chain/parse.c - parses a JSON list of codecs into a chain. Accepts objects {name,
 * configuration} and bare names in v3, {id, members...} in v2. Refuses unregistered names
 * even if "must_understand" is false, because undecoded bytes are not data. Also refuses
 * links out of order, and more links than the limits allow, nested chains included.
 * Old drafts of v3 had no array->bytes codec. If the caller allows that, the parser
 * inserts `bytes` without a byte order. Elements of several bytes then refuse it, so the
 * library never guesses an order.
 * Recursion: a shard's chains are lists again; limits.shard_depth bounds them.
 */
#include "chain/chain_int.h"

#include <string.h>

void zr_codec_limits(zarr_limits *out, const zarr_limits *limits)
{
    zarr_limits def;

    zr_limits_default(&def);
    *out = limits ? *limits : def;
    if (!out->rank || out->rank > ZARR_MAX_RANK)
        out->rank = def.rank;
    if (!out->codecs)
        out->codecs = def.codecs;
    if (!out->shard_depth)
        out->shard_depth = def.shard_depth;
    if (!out->chunks_per_shard)
        out->chunks_per_shard = def.chunks_per_shard;
    if (!out->chunk_bytes)
        out->chunk_bytes = ZR_CHUNK_BYTES_LEAST;
}

const char *zr_chunk_limit_name(const zarr_dtype *dtype)
{
    return dtype && zarr_dtype_variable(dtype) ? "variable_chunk_bytes" : "chunk_bytes";
}

void zr_chunk_limits(zarr_limits *out, const zarr_limits *limits, const zarr_dtype *dtype)
{
    zr_codec_limits(out, limits);
    if (dtype && zarr_dtype_variable(dtype) && out->variable_chunk_bytes != 0)
        out->chunk_bytes = out->variable_chunk_bytes;
}

void zr_chain_free(struct zr_chain *chain)
{
    if (!chain)
        return;
    for (uint32_t i = 0; i < chain->n; i++)
        zr_link_deinit(&chain->codec[i]);
    zr_free(chain->alloc, chain->codec);
    zr_free(chain->alloc, chain);
}

/* ---- one link ------------------------------------------------------------------ */

zarr_status zr_link_prefix(zarr_error *err, zarr_status st,
                           const struct zarr_codec_spec *s)
{
    if (s->place.at < 0)
        return zr_prefix(err, st, "%s", s->place.field);
    return zr_prefix(err, st, "%s[%" PRId32 "]", s->place.field, s->place.at);
}

static zarr_status link_unknown(const char *name, zarr_error *err)
{
    const char *id = zr_starts_with(name, "numcodecs.") ? strchr(name, '.') + 1 : name;

    if (zr_refusal_find(zr_codec_refused, "codec", id))
        return zr_fail_refused(err, zr_codec_refused, "codec", id);
    return zr_fail(err, ZARR_ERR_UNSUPPORTED, "codec \"%s\" is unknown", name);
}

/* Refuses the two codecs that "order" and "dtype" replace in v2. */
static zarr_status link_only_v3(const zarr_codec_spec_vtable *v, const char *name,
                                zarr_error *err)
{
    const enum zr_structure_kind kind = zr_codec_spec_structure(v);
    const char *instead = kind == ZR_STRUCTURE_BYTES ? ": the byte order is in dtype"
                          : kind == ZR_STRUCTURE_TRANSPOSE ? ": v2 has order \"F\" only"
                                                           : "";

    return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                   "codec \"%s\" is unknown in Zarr v2: only v3 has it%s", name, instead);
}

/* `ours`: zarrc names the codec, not a document. */
static zarr_status link_find(const zarr_codec_spec_vtable **out, const struct zr_parse *p,
                             const char *name, bool ours, zarr_error *err)
{
    const zarr_codec_spec_vtable *v = p->format == 2 && !ours
                                          ? zr_codec_spec_lookup_v2(p->registry, name)
                                          : zr_codec_spec_lookup(p->registry, name);

    if (!v && p->format == 2 && zr_codec_spec_lookup(p->registry, name))
        return link_only_v3(zr_codec_spec_lookup(p->registry, name), name, err);
    if (v && p->format == 3 && zr_streq(v->name, name) &&
        (v->flags & ZARR_CODEC_SPEC_NUMCODECS))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "codec \"%s\" is unknown in Zarr v3, where it is \"numcodecs.%s\"",
                       name, name);
    if (!v && p->format == 3 && zr_codec_spec_lookup_v2(p->registry, name))
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "codec \"%s\" is unknown in Zarr v3: only v2 has it", name);
    if (!v)
        return link_unknown(name, err);
    *out = v;
    return ZARR_OK;
}

/* Reads the members of {name, configuration, must_understand}. *config NULL: none. */
static zarr_status link_open_v3(struct zarr_codec_spec *s, const struct zr_json *item,
                                const char **name, const struct zr_json **config,
                                zarr_error *err)
{
    const struct zr_json *understand = NULL;
    char text[64];

    if (zr_json_is(item, ZR_JSON_STRING)) {
        *name = zr_json_string(item);
        return *name ? ZARR_OK : zr_fail(err, ZARR_ERR_INVALID, "name contains a NUL");
    }
    if (!zr_json_is(item, ZR_JSON_OBJECT))
        return zr_fail(err, ZARR_ERR_INVALID, "a codec is an object or a name, not %s",
                       zr_json_excerpt(item, text, sizeof text));
    *name = zr_json_string(zr_json_get(item, "name"));
    if (!*name)
        return zr_fail(err, ZARR_ERR_INVALID, "name is missing or not a string");
    for (const struct zr_json *m = item->u.children.first; m; m = m->next)
        if (!zr_json_has_key(m, "name") && !zr_json_has_key(m, "configuration") &&
            !zr_json_has_key(m, "must_understand"))
            return zr_fail(err, ZARR_ERR_INVALID, "codec \"%s\": unknown member \"%s\"",
                           *name, m->key);
    understand = zr_json_get(item, "must_understand");
    if (understand && !zr_json_bool(understand, &s->must_understand))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "codec \"%s\": must_understand is not a bool", *name);
    *config = zr_json_get(item, "configuration");
    if (*config && (*config)->type == ZR_JSON_NULL)
        *config = NULL;
    if (*config && (*config)->type != ZR_JSON_OBJECT)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "codec \"%s\": configuration is %s, must be an object", *name,
                       zr_json_excerpt(*config, text, sizeof text));
    return ZARR_OK;
}

/* Reads the members of {id, ...}. *config is a copy without "id", made in `doc`. */
static zarr_status link_open_v2(struct zr_json_doc *doc, const struct zr_json *item,
                                const char **name, const struct zr_json **config,
                                zarr_error *err)
{
    struct zr_json *members = NULL;
    char text[64];

    if (!zr_json_is(item, ZR_JSON_OBJECT))
        return zr_fail(err, ZARR_ERR_INVALID, "a codec is an object, not %s",
                       zr_json_excerpt(item, text, sizeof text));
    *name = zr_json_string(zr_json_get(item, "id"));
    if (!*name)
        return zr_fail(err, ZARR_ERR_INVALID, "id is missing or not a string");
    members = zr_json_copy(doc, item);
    if (!members || !zr_json_is_ok(doc))
        return zr_fail_memory(err, 0);
    (void)zr_json_remove(members, "id");
    *config = members;
    return ZARR_OK;
}

/* Whether this list may name the two codecs that a v2 document replaces by "order" and
 * "dtype". The lists that the reader makes do, and so do lists inside other codecs, which
 * have no "order" and "dtype". */
static bool link_is_ours(const struct zarr_codec_spec *s, const struct zr_parse *p,
                         const char *name)
{
    return p->format == 2 && (s->place.ours || !p->places || p->sub) &&
           (zr_streq(name, zr_spec_bytes.name) || zr_streq(name, zr_spec_transpose.name));
}

/* Whether a list inside a v2 codec names its item as v3 does. v2 metadata has no rule for
 * such lists, so both spellings are read. */
static bool link_is_named(const struct zr_parse *p, const struct zr_json *item)
{
    return p->sub && !zr_json_get(item, "id") &&
           (zr_json_is(item, ZR_JSON_STRING) || zr_json_get(item, "name"));
}

static zarr_status link_parse(struct zarr_codec_spec *s, struct zr_parse *p,
                              const struct zr_json *item, zarr_error *err)
{
    static const struct zr_json empty = {.type = ZR_JSON_OBJECT};
    zarr_status st = ZARR_OK;
    struct zr_json_doc doc;
    const struct zr_json *config = NULL;
    const char *name = NULL;
    const bool v2 = p->format == 2 && !link_is_named(p, item);
    int spelling = v2 ? 2 : 3;
    bool prefixed = false;

    zr_json_doc_init(&doc, p->alloc);
    s->must_understand = true;
    s->v3 = p->format == 3;
    if (v2)
        ZR_TRY(link_open_v2(&doc, item, &name, &config, err));
    else
        ZR_TRY(link_open_v3(s, item, &name, &config, err));
    prefixed = zr_starts_with(name, "numcodecs.");
    if (prefixed)
        spelling = 2;
    if (prefixed && p->format == 2 && !v2)
        name += strlen("numcodecs.");
    ZR_TRY(link_find(&s->vt, p, name, link_is_ours(s, p, name), err));
    s->prefixed =
        prefixed && p->format == 3 && !zr_starts_with(s->vt->name, "numcodecs.");
    s->members = config ? config : &empty;
    if (zr_codec_spec_structure(s->vt) == ZR_STRUCTURE_SHARD)
        ZR_TRY(zr_shard_spec_parse(s, p, err));
    else {
        ZR_TRY(zr_sub_parse(s, p, err));
        ZR_TRY(zr_link_canonical(s, spelling, err));
    }
out:
    zr_json_doc_deinit(&doc);
    return st;
}

/* ---- the list --------------------------------------------------------------------- */

/* Checks the order: array->array codecs, one array->bytes codec, bytes->bytes codecs.
 * Sets chain->a2b. */
static zarr_status chain_check_order(struct zr_chain *chain, const char *label, bool sub,
                                     zarr_error *err)
{
    uint32_t n_a2b = 0, stage = ZARR_CODEC_ARRAY_ARRAY;
    zarr_status st;

    for (uint32_t i = 0; i < chain->n; i++) {
        const zarr_codec_spec_vtable *v = chain->codec[i].vt;

        if (v->kind == ZARR_CODEC_ARRAY_BYTES) {
            chain->a2b = i;
            n_a2b++;
        }
        if (v->kind < stage || n_a2b > 1) {
            st = zr_fail(err, ZARR_ERR_INVALID,
                         "\"%s\" takes an array, but bytes come before it", v->name);
            return zr_link_prefix(err, st, &chain->codec[i]);
        }
        if (v->kind == ZARR_CODEC_BYTES_BYTES && !n_a2b &&
            (!sub || chain->codec[0].vt->kind != ZARR_CODEC_BYTES_BYTES)) {
            st = zr_fail(err, ZARR_ERR_INVALID,
                         "\"%s\" takes bytes, but no array->bytes codec such as "
                         "\"bytes\" comes before it",
                         v->name);
            return zr_link_prefix(err, st, &chain->codec[i]);
        }
        stage = v->kind;
    }
    if (!n_a2b)
        chain->a2b = chain->n;
    if (!n_a2b && (!sub || (chain->n && stage != ZARR_CODEC_BYTES_BYTES)))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "%s: an array->bytes codec such as \"bytes\" is missing", label);
    return ZARR_OK;
}

static bool chain_lacks_bytes(const struct zr_chain *chain)
{
    for (uint32_t i = 0; i < chain->n; i++)
        if (chain->codec[i].vt->kind == ZARR_CODEC_ARRAY_BYTES)
            return false;
    return true;
}

/* The caller has allocated room for one more link. */
static zarr_status chain_insert_bytes(struct zr_chain *chain, struct zr_parse *p,
                                      zarr_error *err)
{
    static const struct zr_json empty = {.type = ZR_JSON_OBJECT};
    struct zarr_codec_spec made = {.alloc = p->alloc,
                                   .dtypes = p->registry->dtypes,
                                   .registry = p->registry,
                                   .most_bytes = p->limits.chunk_bytes,
                                   .most_chunks = p->limits.chunks_per_shard,
                                   .must_understand = true,
                                   .stored = p->stored,
                                   .nczarr = p->nczarr,
                                   .place = {chain->label, -1, true}};
    zarr_status st = ZARR_OK;
    uint32_t at = 0;

    ZR_TRY(link_find(&made.vt, p, "bytes", true, err));
    made.members = &empty;
    ZR_TRY(zr_link_canonical(&made, p->format, err));
    while (at < chain->n && chain->codec[at].vt->kind == ZARR_CODEC_ARRAY_ARRAY)
        at++;
    memmove(&chain->codec[at + 1], &chain->codec[at], (chain->n - at) * sizeof made);
    chain->codec[at] = made; /* moved */
    chain->n++;
    made = (struct zarr_codec_spec){0};
out:
    zr_link_deinit(&made);
    return st;
}

zarr_status zr_chain_parse_list(struct zr_chain **out, struct zr_parse *p,
                                const char *label, const struct zr_json *codecs,
                                zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_chain *chain = NULL;
    char text[64];

    if (!zr_json_is(codecs, ZR_JSON_ARRAY))
        return zr_fail(err, ZARR_ERR_INVALID, "%s: a list is expected, not %s", label,
                       zr_json_excerpt(codecs, text, sizeof text));
    if (zr_json_count(codecs) > p->limits.codecs - p->n_codecs)
        return zr_fail_limit(err, "codecs", p->limits.codecs,
                             "%s: more than %" PRIu32 " codecs", label, p->limits.codecs);
    if (p->sub && p->sub + p->depth > ZR_SUB_DEPTH)
        return zr_fail(err, ZARR_ERR_LIMIT,
                       "%s: codecs and shards are nested in codecs more than %d deep",
                       label, ZR_SUB_DEPTH);
    p->n_codecs += (uint32_t)zr_json_count(codecs);

    chain = zr_calloc(p->alloc, 1, sizeof *chain);
    if (chain) {
        chain->alloc = p->alloc;
        chain->label = p->places && !p->sub && !p->depth ? NULL : label;
        chain->codec =
            zr_calloc(p->alloc, zr_json_count(codecs) + 1, sizeof *chain->codec);
    }
    if (!chain || !chain->codec)
        ZR_FAIL_MEMORY(err, sizeof *chain + sizeof *chain->codec);
    for (const struct zr_json *v = codecs->u.children.first; v; v = v->next) {
        struct zarr_codec_spec *s = &chain->codec[chain->n];

        s->alloc = p->alloc;
        s->dtypes = p->registry->dtypes;
        s->registry = p->registry;
        s->most_bytes = p->limits.chunk_bytes;
        s->most_chunks = p->limits.chunks_per_shard;
        s->stored = p->stored;
        s->nczarr = p->nczarr;
        s->place = chain->label ? (struct zr_chain_place){label, (int32_t)chain->n, false}
                                : p->places[chain->n];
        chain->n++;
        st = link_parse(s, p, v, err);
        if (st != ZARR_OK) {
            st = zr_link_prefix(err, st, s);
            goto out;
        }
    }
    if (p->allow_missing_bytes && !p->sub && chain_lacks_bytes(chain))
        ZR_TRY(chain_insert_bytes(chain, p, err));
    if (p->format == 2)
        ZR_TRY(zr_chain_place_v2_filters(chain, p, err));
    ZR_TRY(chain_check_order(chain, label, p->sub, err));
    zr_chain_note_inputs(chain);
    *out = chain; /* moved */
    chain = NULL;
out:
    zr_chain_free(chain);
    return st;
}

zarr_status zr_chain_parse(struct zr_chain **out, const struct zr_codec_registry *r,
                           const struct zr_json *codecs,
                           const struct zr_chain_parse_options *opts,
                           const zarr_allocator *alloc, zarr_error *err)
{
    struct zr_parse p = {.registry = r,
                         .alloc = alloc,
                         .format = opts->format,
                         .allow_missing_bytes = opts->allow_missing_bytes,
                         .stored = opts->stored,
                         .nczarr = opts->nczarr,
                         .places = opts->places};

    if (opts->format != 2 && opts->format != 3)
        return zr_internal(err);
    zr_codec_limits(&p.limits, opts->limits);
    return zr_chain_parse_list(out, &p, opts->places ? "filters" : "codecs", codecs, err);
}
