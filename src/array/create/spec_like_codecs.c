/*
 * array/create/spec_like_codecs.c - the codecs of an array that is like another one,
 * taken from the model's chain in v3's form. If shards change, the new array gets the
 * chain of the model's innermost chunks, in the new shards or without shards; otherwise
 * the whole chain stays. v2 gets filters, compressor, and the byte order of the data
 * type. Thread class: plain functions.
 */
#include "array/create/spec_int.h"

/* ---- v3's list --------------------------------------------------------- */

/* Returns the configuration of the first sharding codec in a list, or NULL. */
static struct zr_json *find_sharding(const struct zr_json *list)
{
    for (struct zr_json *v = list ? list->u.children.first : NULL; v; v = v->next)
        if (zr_json_is_text(zr_json_get(v, "name"), "sharding_indexed"))
            return zr_json_get(v, "configuration");
    return NULL;
}

/* Appends the codecs of an innermost chunk. Codecs before shards work the same inside
 * them, and those after shards can. Recursion: as deep as the shards. */
static void add_inner(struct zr_json_doc *doc, struct zr_json *out,
                      const struct zr_json *list)
{
    for (const struct zr_json *v = list ? list->u.children.first : NULL; v; v = v->next) {
        if (zr_json_is_text(zr_json_get(v, "name"), "sharding_indexed"))
            add_inner(doc, out, zr_json_get(zr_json_get(v, "configuration"), "codecs"));
        else
            zr_json_append(doc, out, zr_json_copy(doc, v));
    }
}

/* Returns the list without the transposes at its beginning. */
static struct zr_json *without_order(struct zr_json_doc *doc, const struct zr_json *list)
{
    struct zr_json *out = zr_json_new(doc, ZR_JSON_ARRAY);
    bool front = true;

    for (const struct zr_json *v = list ? list->u.children.first : NULL; v; v = v->next) {
        front = front && zr_json_is_text(zr_json_get(v, "name"), "transpose");
        if (!front)
            zr_json_append(doc, out, zr_json_copy(doc, v));
    }
    return out;
}

/* Returns the list without numcodecs' bitround, whose encoder takes floats only although
 * any elements can be decoded: decoding changes nothing. *dropped: it was there.
 * Recursion: as deep as the shards. */
static struct zr_json *without_rounding(struct zr_json_doc *doc,
                                        const struct zr_json *list, bool *dropped)
{
    struct zr_json *out = zr_json_new(doc, ZR_JSON_ARRAY);

    for (const struct zr_json *v = list ? list->u.children.first : NULL; v; v = v->next) {
        struct zr_json *copy = NULL, *config = NULL;

        if (zr_json_is_text(zr_json_get(v, "name"), "numcodecs.bitround") ||
            zr_json_is_text(zr_json_get(v, "id"), "bitround")) {
            *dropped = true;
            continue;
        }
        copy = zr_json_copy(doc, v);
        config = zr_json_get(copy, "configuration");
        if (zr_json_is_text(zr_json_get(v, "name"), "sharding_indexed"))
            zr_json_set(doc, config, "codecs",
                        without_rounding(doc, zr_json_get(config, "codecs"), dropped));
        zr_json_append(doc, out, copy);
    }
    return out;
}

/* The same for elements that this encoder does not take. */
static const struct zr_json *encodable(struct zr_spec_like *l, const zarr_context *ctx,
                                       const struct zr_json *list)
{
    bool dropped = false;

    if (!list || zarr_dtype_kind(l->model->meta.dtype) == ZARR_KIND_FLOAT)
        return list;
    list = without_rounding(&l->doc, list, &dropped);
    if (dropped)
        zr_log(&ctx->log, ZARR_LOG_WARN,
               "the new array has no codec bitround, whose encoder in numcodecs does not "
               "take data type %s",
               zr_dtype_label(l->model->meta.dtype));
    return zr_json_count(list) ? list : NULL;
}

/* v3 has one byte order for all fields of a struct: if those of v2 differ, little-endian
 * is used. */
static void unmix(struct zr_json_doc *doc, const struct zr_json *list)
{
    for (const struct zr_json *v = list ? list->u.children.first : NULL; v; v = v->next)
        if (zr_json_is_text(zr_json_get(v, "name"), "bytes"))
            zr_json_set(doc, zr_json_get(v, "configuration"), "endian",
                        zr_json_new_text(doc, "little"));
}

static bool changes_shards(const zarr_array_spec *c)
{
    return c->chunk_shape || c->shard_shape || c->chunk_grid || c->codecs ||
           c->index_codecs || c->order ||
           c->flags & (ZARR_SPEC_NO_SHARDS | ZARR_SPEC_INDEX_AT_START);
}

/* Keeps the whole chain: the grid is that of the outermost shards, and a spec cannot
 * express more. */
static void keep_whole(struct zr_spec_like *l)
{
    const struct zr_array_meta *m = &l->model->meta;

    l->spec.chunk_shape = m->grid.regular ? m->grid.chunk_shape : NULL;
    l->spec.shard_shape = NULL;
}

static zarr_status keep_index(struct zr_spec_like *l, const zarr_array_spec *changes,
                              const struct zr_json *shards, zarr_error *err)
{
    if (!l->spec.shard_shape && !(l->spec.chunk_grid && l->spec.chunk_shape))
        return ZARR_OK;
    if (zr_json_is_text(zr_json_get(shards, "index_location"), "start"))
        l->spec.flags |= ZARR_SPEC_INDEX_AT_START;
    if (changes->index_codecs)
        return ZARR_OK;
    return zr_spec_like_text(l, zr_json_get(shards, "index_codecs"),
                             &l->spec.index_codecs, err);
}

/* *out: the codecs of a chunk of the new array, or of a shard if the whole chain
 * stays. */
static zarr_status inner_list(struct zr_spec_like *l, const zarr_array_spec *changes,
                              struct zr_json **out, zarr_error *err)
{
    struct zr_json *list = NULL;
    const struct zr_json *shards = NULL;

    ZR_CHECK(zr_array_meta_codecs(&l->model->meta, &l->doc, &list, err));
    shards = l->model->sharded ? find_sharding(list) : NULL;
    if (shards && l->spec.zarr_format == 3 && !changes_shards(changes)) {
        keep_whole(l);
    } else if (shards) {
        ZR_CHECK(keep_index(l, changes, shards, err));
        *out = zr_json_new(&l->doc, ZR_JSON_ARRAY);
        add_inner(&l->doc, *out, list);
        list = *out;
    }
    *out = changes->order ? without_order(&l->doc, list) : list;
    return ZARR_OK;
}

/* ---- v2's members ------------------------------------------------------ */

static zarr_status put_v2(struct zr_spec_like *l, const struct zr_json *filters,
                          const struct zr_json *compressor, zarr_error *err)
{
    struct zr_json_doc *doc = &l->doc;
    struct zr_json *v = zr_json_new(doc, ZR_JSON_OBJECT);

    zr_json_set(doc, v, "filters",
                filters ? zr_json_copy(doc, filters) : zr_json_new(doc, ZR_JSON_NULL));
    zr_json_set(doc, v, "compressor",
                compressor ? zr_json_copy(doc, compressor)
                           : zr_json_new(doc, ZR_JSON_NULL));
    return zr_spec_like_text(l, v, &l->spec.codecs, err);
}

/* Converts a v3 chain. It is parsed separately, because what it leaves to the array must
 * be explicit in v2. */
static zarr_status chain_to_v2(struct zr_spec_like *l, const zarr_context *ctx,
                               const struct zr_json *list, struct zr_v2_codecs *out,
                               zarr_error *err)
{
    const struct zr_meta_env env = zr_meta_env_make(ctx, false);
    const struct zr_chain_parse_options how = {.format = 3, .limits = &ctx->limits};
    struct zr_chain *chain = NULL;
    zarr_chunk_spec chunk;
    zarr_status st = ZARR_OK;

    zr_array_meta_chunk(&l->model->meta, &chunk);
    ZR_TRY(zr_chain_parse(&chain, &ctx->codecs, list, &how, ctx->alloc, err));
    if (!chain->codec[chain->a2b].structure.shard) /* otherwise it is refused below */
        ZR_TRY(zr_chain_complete(chain, &chunk, err));
    ZR_TRY(zr_array_meta_codecs_v2(&l->model->meta, &env, chain, &l->doc, out, err));
out:
    zr_chain_free(chain);
    return st;
}

static const struct zr_json *codec_member(const struct zr_spec_like *l,
                                          const char *member)
{
    const struct zr_json *v = zr_json_get(l->root, member);

    return v && v->type != ZR_JSON_NULL ? v : NULL;
}

static zarr_status codecs_v2(struct zr_spec_like *l, const zarr_context *ctx,
                             const zarr_array_spec *changes, zarr_error *err)
{
    const struct zr_array_meta *m = &l->model->meta;
    /* not as the model's document spells them, which may be what a new one must not */
    struct zr_v2_codecs v2 = {.filters = codec_member(l, "filters"),
                              .compressor = codec_member(l, "compressor"),
                              .byte_order = m->byte_order,
                              .order = m->order};
    struct zr_json *list = NULL;

    if (m->format == 3) {
        v2 = (struct zr_v2_codecs){.byte_order = ZARR_ORDER_LITTLE};
        ZR_CHECK(inner_list(l, changes, &list, err));
        if (!changes->codecs)
            ZR_CHECK(chain_to_v2(l, ctx, encodable(l, ctx, list), &v2, err));
    } else if (!changes->codecs) {
        v2.filters = encodable(l, ctx, v2.filters);
    }
    l->order = (struct zr_order){v2.byte_order, m->leaves};
    if (!changes->order)
        l->spec.order = v2.order;
    if (changes->codecs)
        return ZARR_OK;
    return put_v2(l, v2.filters, v2.compressor, err);
}

zarr_status zr_spec_like_codecs(struct zr_spec_like *l, const zarr_context *ctx,
                                const zarr_array_spec *changes, zarr_error *err)
{
    struct zr_json *list = NULL;

    if (l->spec.zarr_format == 2)
        return codecs_v2(l, ctx, changes, err);
    if (!changes->codecs)
        ZR_CHECK(zr_array_meta_check_v3(&l->model->meta, &ctx->codecs, err));
    ZR_CHECK(inner_list(l, changes, &list, err));
    if (l->model->meta.byte_order == ZR_ORDER_MIXED)
        unmix(&l->doc, list);
    if (!changes->codecs)
        return zr_spec_like_text(l, encodable(l, ctx, list), &l->spec.codecs, err);
    return ZARR_OK;
}
