/*
 * array/shape/publish.c - publishes another shape: the edit of an array's document for
 * resize and append. The document is read again under its lock, so all other changes in
 * it stay. Only "shape" is replaced (and the grid if it lists edges), and the result is
 * parsed before it is written. Thread class: changes may run from many threads.
 */
#include "array/shape/shape_int.h"
#include "array/stored/stored_int.h"

/* A chunk's edge may be 0 while the array's length is 0, but not once it grows. */
static void set_chunks(const struct zr_grid *grid, struct zr_json *list,
                       struct zr_json_doc *json)
{
    struct zr_json *v = zr_json_is(list, ZR_JSON_ARRAY) ? list->u.children.first : NULL;
    uint64_t length = 0;

    for (int32_t d = 0; v && d < grid->ndim; d++, v = v->next) {
        const struct zr_json *one = NULL;

        if (!zr_json_u64(v, &length) || length != 0)
            continue;
        one = zr_json_new_u64(json, grid->chunk_shape[d]);
        if (one)
            v->u.text = one->u.text;
    }
}

/* Where a grid must reach for the new shape: in a dimension that grows up to a whole
 * chunk, so that a shard added at its end has room for it. */
static zarr_status compute_reach(uint64_t *out, const struct zr_grid *grid,
                                 const struct zr_shape_change *c, zarr_error *err)
{
    uint64_t unit[ZARR_MAX_RANK];

    ZR_CHECK(zr_chain_unit(c->before->meta.chain, grid->ndim, unit, err));
    for (int32_t d = 0; d < grid->ndim; d++) {
        uint64_t n = zr_ceil_div_u64(c->shape[d], unit[d]);

        out[d] = c->shape[d];
        if (c->shape[d] > grid->shape[d] && zr_mul(n, unit[d], &n) && n <= INT64_MAX)
            out[d] = n;
    }
    return ZARR_OK;
}

/* Grids that list their edges may need more of them for a larger shape. */
static zarr_status set_grid(const struct zr_grid *grid, const struct zr_shape_change *c,
                            struct zr_json_doc *json, zarr_error *err)
{
    const zarr_limits *limits = &c->array->h.ctx->limits;
    struct zr_json *v = zr_json_get(json->root, "chunk_grid");
    uint64_t reach[ZARR_MAX_RANK];
    struct zr_json_doc config;
    struct zr_str text;
    zarr_status st = ZARR_OK;

    if (grid->regular)
        set_chunks(grid,
                   c->before->meta.format == 2
                       ? zr_json_get(json->root, "chunks")
                       : zr_json_get(zr_json_get(v, "configuration"), "chunk_shape"),
                   json);
    if (!grid->vt || !grid->vt->resize || !zr_json_is(v, ZR_JSON_OBJECT))
        return ZARR_OK;
    zr_str_init(&text, c->array->h.ctx->alloc);
    zr_json_doc_init(&config, c->array->h.ctx->alloc);
    ZR_TRY(compute_reach(reach, grid, c, err));
    ZR_TRY(zr_grid_write_resized(grid, reach, &text, err));
    ZR_TRY(zr_json_parse(&config, zr_str_text(&text), text.bytes, limits, err));
    /* the document may call it "regular" (meta/array_v3.c) */
    zr_json_set(json, v, "name", zr_json_new_text(json, zr_grid_name(grid)));
    zr_json_set(json, v, "configuration", zr_json_copy(json, config.root));
out:
    zr_json_doc_deinit(&config);
    zr_str_deinit(&text);
    return st;
}

uint64_t zr_largest_chunk_bytes(const struct zr_grid *grid, const zarr_dtype *dtype)
{
    uint64_t shape[ZARR_MAX_RANK], bytes = 0;

    zr_grid_largest(grid, shape);
    return zr_product_u64(shape, (size_t)grid->ndim, &bytes) &&
                   zr_mul(bytes, zarr_dtype_item_bytes(dtype), &bytes)
               ? bytes
               : UINT64_MAX;
}

/* Growing may add a chunk that exceeds the limit, which no reader could read. Chunks that
 * were as large before are accepted. */
static zarr_status check_largest(const struct zr_shape_change *c,
                                 const struct zr_grid *before,
                                 const struct zr_array_meta *now, zarr_error *err)
{
    const uint64_t most = c->before->limits.chunk_bytes;
    const struct zr_chain *chain = now->chain;
    uint64_t bytes = 0;

    if (now->grid.regular || (chain->codec[chain->a2b].structure.shard &&
                              chain->a2b + 1 == chain->n && !zr_chain_whole_shard(chain)))
        return ZARR_OK;
    bytes = zr_largest_chunk_bytes(&now->grid, now->dtype);
    if (bytes <= most || bytes <= zr_largest_chunk_bytes(before, now->dtype))
        return ZARR_OK;
    return zr_fail_limit(err, zr_chunk_limit_name(now->dtype), most,
                         "this shape needs a chunk of %" PRIu64 " bytes", bytes);
}

/* Makes the state that the changed document (v2: .zarray) describes. Changes the
 * document; the caller gives its grid. */
static zarr_status state_of_shape(struct zr_array_state **out,
                                  const struct zr_shape_change *c,
                                  struct zr_parsed *parsed, const struct zr_grid *grid,
                                  zarr_error *err)
{
    const struct zr_array_state *before = c->before;
    struct zr_array_source src =
        zr_array_source_make(before->meta.format, parsed, NULL, &before->meta);
    struct zr_json_doc *json = &parsed->json;
    struct zr_json *shape = zr_json_new(json, ZR_JSON_ARRAY);
    struct zr_array_state *s = NULL;
    zarr_status st = ZARR_OK;

    *out = NULL;
    for (int32_t d = 0; d < before->meta.ndim; d++)
        zr_json_append(json, shape, zr_json_new_u64(json, c->shape[d]));
    ZR_TRY(set_grid(grid, c, json, err));
    zr_json_set(json, json->root, "shape", shape);
    if (!zr_json_is_ok(json))
        return zr_fail_memory(err, json->arena.used_bytes);
    if (before->meta.format == 2)
        zr_array_source_attrs(&src, before);
    st = zr_array_state_new(&s, c->array->h.ctx, &src, err);
    /* the stored document was valid, so the caller's shape is at fault */
    if (st == ZARR_ERR_CORRUPT) {
        st = ZARR_ERR_INVALID;
        if (err)
            err->code = st;
    }
    ZR_TRY(st);
    ZR_TRY(zr_grid_keeps(grid, &s->meta.grid, err));
    ZR_TRY(check_largest(c, grid, &s->meta, err));
    ZR_TRY(zr_separator_inherit(c->array, before, s, err));
    *out = s; /* moved */
    s = NULL;
out:
    zr_array_state_free(s);
    return st;
}

zarr_status zr_shape_derive(struct zr_array_state **out,
                            const struct zr_shape_change *change, zarr_error *err)
{
    struct zr_parsed *parsed = NULL;
    zarr_status st = ZARR_OK;

    *out = NULL;
    ZR_TRY(zr_parsed_new(&parsed, change->array->h.ctx->alloc, err));
    parsed->json.root = zr_json_copy(&parsed->json, change->before->root);
    if (!zr_json_is_ok(&parsed->json))
        ZR_FAIL_MEMORY(err, parsed->json.arena.used_bytes);
    ZR_TRY(state_of_shape(out, change, parsed, &change->before->meta.grid, err));
out:
    zr_parsed_free(parsed);
    return st;
}

struct shape_publishing {
    const struct zr_shape_change *change;
    struct zr_array_state *old, *after; /* of the stored document */
};

/* Another handle may have resized the array or replaced it. */
static zarr_status check_base_shape(struct shape_publishing *p, struct zr_parsed *parsed,
                                    zarr_error *err)
{
    const struct zr_shape_change *c = p->change;
    struct zr_array_source src =
        zr_array_source_make(c->before->meta.format, parsed, NULL, &c->before->meta);
    struct zr_array_state *now = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_array_state_new(&now, c->array->h.ctx, &src, err));
    ZR_TRY(zr_separator_inherit(c->array, c->before, now, err));
    if (now->meta.ndim != c->before->meta.ndim)
        st = zr_fail(err, ZARR_ERR_CONFLICT, "the array has another rank now");
    else if (c->same_base)
        st = zr_array_same_chunks(c->before, now, err);
    for (int32_t d = 0; st == ZARR_OK && c->same_base && d < now->meta.ndim; d++)
        if (now->meta.shape[d] != c->before->meta.shape[d])
            st = zr_fail(err, ZARR_ERR_CONFLICT, "another writer resized the array");
    if (st == ZARR_OK) {
        p->old = now; /* moved */
        now = NULL;
    }
out:
    zr_array_state_free(now);
    return st;
}

static zarr_status edit_shape(void *arg, const struct zr_doc *old, struct zr_str *text,
                              zarr_error *err)
{
    struct shape_publishing *p = arg;
    struct zr_parsed *parsed = NULL;
    zarr_status st = ZARR_OK;

    zr_array_state_free(p->old); /* of an attempt that met a conflict */
    zr_array_state_free(p->after);
    p->old = p->after = NULL;
    ZR_TRY(zr_parsed_read(&parsed, old, p->change->array->h.ctx, err));
    ZR_TRY(check_base_shape(p, parsed, err));
    if (p->change->judge)
        ZR_TRY(p->change->judge(p->change->judge_arg, p->old, err));
    ZR_TRY(state_of_shape(&p->after, p->change, parsed, &p->old->meta.grid, err));
    zr_json_quote_tokens(parsed->json.root); /* the handle keeps what the store has */
    zr_json_write(parsed->json.root, ZR_META_INDENT, text);
out:
    zr_parsed_free(parsed);
    return st;
}

static zarr_status commit_shape(void *arg, zarr_error *err)
{
    const struct shape_publishing *p = arg;

    return zr_array_state_commit(p->change->array, p->change->held, p->after,
                                 ZR_STATE_ARRAY, err);
}

zarr_status zr_shape_publish(struct zr_array_state **out,
                             const struct zr_shape_change *change, zarr_error *err)
{
    const zarr_array *a = change->array;
    struct shape_publishing p = {.change = change};
    const struct zr_doc_edit edit = {
        .fn = edit_shape, .arg = &p, .commit = commit_shape, .cancel = change->cancel};
    const struct zr_doc_source src = {
        .store = a->h.store,
        .path = a->h.path,
        .name = zr_doc_name(ZARR_NODE_ARRAY, change->before->meta.format),
    };
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_doc_update(&src, &edit, err));
    if (out) {
        *out = p.after; /* moved */
        p.after = NULL;
    }
    if (change->old) {
        *change->old = p.old; /* moved */
        p.old = NULL;
    }
out:
    zr_array_state_free(p.old);
    zr_array_state_free(p.after);
    return st;
}
