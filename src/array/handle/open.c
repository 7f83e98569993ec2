/*
 * array/handle/open.c - opens arrays: one GET for a v3 array (zarr.json); after its miss
 * two more for a v2 array (.zarray, .zattrs), sent together to a store that is far away;
 * none through consolidated metadata. Opening
 * asks the store nothing that the documents do not require and prepares nothing that a
 * first read may not need: layouts are made later.
 * Thread class: handles are frozen, except for the state pointer (state.c).
 */
#include "array/array_int.h"

#include <string.h>

enum {
    ARRAY_INDEX_CACHE_MAX = 64 << 20,
    ARRAY_INDEX_CACHE_PART = 16 /* a cache gets 1/16 of the byte budget */
};

static zarr_status check_choice(uint32_t value, uint32_t most, const char *name,
                                zarr_error *err)
{
    if (value > most)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "array options: %s %" PRIu32 " is not one of its values", name,
                       value);
    return ZARR_OK;
}

zarr_status zr_array_options_read(zarr_array_open_options *o,
                                  const zarr_array_open_options *opts, uint32_t flags,
                                  zarr_error *err)
{
    ZR_CHECK(zr_struct_read(o, sizeof *o, 2 * sizeof(uint32_t), opts, ZR_TAIL_REFUSE,
                            "zarr_array_open_options", err));
    if (o->flags & ~flags)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "array options: flags 0x%" PRIx32 " are not known here",
                       o->flags & ~flags);
    ZR_CHECK(zr_format_check(o->zarr_format, err));
    ZR_CHECK(check_choice(o->consolidated, ZARR_CONSOLIDATED_NEVER, "consolidated", err));
    ZR_CHECK(check_choice(o->empty_chunks, ZARR_EMPTY_CHUNKS_WRITE, "empty_chunks", err));
    ZR_CHECK(check_choice(o->missing_chunks, ZARR_MISSING_ERROR, "missing_chunks", err));
    ZR_CHECK(check_choice(o->trust, ZARR_TRUST_NONE, "trust", err));
    ZR_CHECK(check_choice(o->reserved, 0, "reserved", err));
    if (o->device_type < 0 || o->device_id < 0)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "array options: no device has the type %" PRId32
                       " and the number %" PRId32,
                       o->device_type, o->device_id);
    return ZARR_OK;
}

static void array_destroy(zarr_array *a)
{
    const zarr_allocator copy = a->h.ctx->allocator_copy;
    const zarr_allocator *alloc = a->h.ctx->alloc ? &copy : NULL;

    zr_index_cache_free(a->indexes);
    zr_array_state_free(a->state);
    zarr_store_free(a->chunk_store);
    zr_free(alloc, a->codec_preference);
    zr_handle_deinit(&a->h);
    zr_free(alloc, a);
}

void zr_array_default_memory(const zarr_store *chunks, const zarr_array_open_options *o,
                             int32_t *device_type, int32_t *device_id)
{
    const zarr_context *ctx = zr_store_context(chunks);

    *device_type = o->device_type;
    *device_id = o->device_id;
    if (o->device_type == 0 && !zr_store_default_memory(chunks, device_type, device_id)) {
        *device_type = ctx->device_type;
        *device_id = ctx->device_id;
    }
}

zarr_status zr_array_new(zarr_array **out, zarr_store *store, char *path,
                         const zarr_array_open_options *o, zarr_error *err)
{
    const zarr_context *ctx = zr_store_context(store);
    zarr_array *a = zr_calloc(ctx->alloc, 1, sizeof *a);
    zarr_status st = ZARR_OK;

    if (!a) {
        zr_free(ctx->alloc, path);
        return zr_fail_memory(err, sizeof *a);
    }
    zr_handle_init(&a->h, store, path);
    a->chunk_store =
        zarr_store_ref(zr_store_of_chunks(o->chunk_store ? o->chunk_store : store));
    a->device_by_default = o->device_type == 0;
    zr_array_default_memory(o->chunk_store ? o->chunk_store : store, o, &a->device_type,
                            &a->device_id);
    a->empty_chunks = o->empty_chunks ? o->empty_chunks : ZARR_EMPTY_CHUNKS_SKIP;
    a->may_go = !zr_store_can(store, ZARR_STORE_CAP_IMMUTABLE);
    a->may_probe = true;
    atomic_init(&a->has_document, true);
    atomic_init(&a->keys_seen, false);
    a->trust = o->trust;
    a->missing_chunks = o->missing_chunks ? o->missing_chunks : ZARR_MISSING_FILL;
    ZR_TRY(zr_ctx_pipeline(ctx, o->pipeline, &a->pipeline, err));
    ZR_TRY(zr_ctx_preference(ctx, o->codec_preference, err));
    if (o->codec_preference) {
        a->codec_preference = zr_strdup(ctx->alloc, o->codec_preference);
        if (!a->codec_preference)
            ZR_FAIL_MEMORY(err, strlen(o->codec_preference));
    }
    *out = a; /* moved */
    a = NULL;
out:
    if (a)
        array_destroy(a);
    return st;
}

static zarr_status load_found_array(struct zr_array_state **out, const zarr_array *a,
                                    struct zr_found *found, int32_t format,
                                    zarr_error *err)
{
    const struct zr_find where = {
        .store = a->h.store, .path = a->h.path, .cancel = found->cancel};
    struct zr_array_source src = {0};
    struct zr_parsed *attrs = NULL;
    zarr_status st = ZARR_OK;

    if (found->kind != ZARR_NODE_ARRAY)
        ZR_FAIL(err, ZARR_ERR_NOT_FOUND, "there is a group, not an array");
    if (found->format == 2)
        ZR_TRY(zr_attrs_read(&attrs, &where, &found->ahead, err));
    src = zr_array_source_make(found->format, found->parsed, attrs, NULL);
    ZR_TRY(zr_origin_state(out, a, &src, found->cancel, err));
    if (found->format == 3 && format == 0)
        zr_warn_hidden(a->h.store, a->h.path, ZARR_NODE_ARRAY);
out:
    zr_parsed_free(attrs);
    return st;
}

static zarr_status load_array(struct zr_array_state **out, const zarr_array *a,
                              const struct zr_find *how, zarr_error *err)
{
    struct zr_find where = *how;
    struct zr_found found;
    zarr_status st = ZARR_OK;

    *out = NULL;
    where.store = a->h.store;
    where.path = a->h.path;
    where.array = true;
    where.v2 = ZR_V2_ARRAY | ZR_V2_ATTRS;
    zr_found_init(&found, a->h.ctx->alloc);
    st = zr_node_find(&found, &where, err);
    if (st == ZARR_ERR_NOT_FOUND)
        zr_fail_no_node(a->h.store, a->h.path, "array", err);
    if (st == ZARR_OK)
        st = load_found_array(out, a, &found, where.format, err);
    zr_found_deinit(&found);
    return st;
}

zarr_status zr_array_load(struct zr_array_state **out, const zarr_array *a,
                          int32_t format, const zarr_cancel *cancel, zarr_error *err)
{
    const struct zr_find how = {.format = format, .cancel = cancel};

    return load_array(out, a, &how, err);
}

zarr_status zr_array_adopt(zarr_array *a, struct zr_array_state *s,
                           const zarr_cancel *cancel, zarr_error *err)
{
    const uint64_t part = a->h.ctx->budget.total / ARRAY_INDEX_CACHE_PART;

    a->state = s; /* the handle frees it from here on */
    if (a->may_probe) {
        ZR_CHECK(zr_separator_probe(a, s, cancel, err));
        zr_origin_warn(a, s);
    }
    if (s->sharded)
        ZR_CHECK(zr_index_cache_create(&a->indexes, a->h.ctx->alloc,
                                       ZR_MIN(part, (uint64_t)ARRAY_INDEX_CACHE_MAX),
                                       err));
    return ZARR_OK;
}

/* Ends an open call, whose status so far is st. a and state are moved. */
static zarr_status end_array_open(zarr_array **out, zarr_array *a,
                                  struct zr_array_state *state, zarr_status st,
                                  const zarr_cancel *cancel, zarr_error *err)
{
    if (st == ZARR_OK)
        st = zr_array_adopt(a, state, cancel, err);
    if (st == ZARR_OK) {
        *out = a;
        return st;
    }
    zr_path_prefix(err, st, a->h.path);
    zarr_array_free(a);
    return st;
}

zarr_status zr_array_open_first(zarr_array **out, zarr_store *store, const char *path,
                                int32_t first, const zarr_array_open_options *opts,
                                zarr_error *err)
{
    const zarr_context *ctx = zr_store_context(store);
    struct zr_find how = {.first = first};
    struct zr_array_state *state = NULL;
    zarr_array_open_options o;
    zarr_array *a = NULL;
    char *normal = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_array_options_read(&o, opts, 0, err));
    how.format = o.zarr_format;
    how.cancel = o.cancel;
    ZR_TRY(zr_path_normal(&normal, ctx->alloc, path, &ctx->limits, err));
    ZR_TRY(zr_array_new(&a, store, normal, &o, err));
    st = load_array(&state, a, &how, err);
    return end_array_open(out, a, state, st, o.cancel, err);
out:
    return st;
}

zarr_status zarr_array_open(zarr_array **out, zarr_store *store, const char *path,
                            const zarr_array_open_options *opts, zarr_error *err)
{
    *out = NULL;
    ZR_NEED(store, err);
    return zr_array_open_first(out, store, path, 0, opts, err);
}

zarr_status zr_array_open_found(zarr_array **out, zarr_store *store, char *path,
                                struct zr_found *found, const zarr_array_open_options *o,
                                zarr_error *err)
{
    struct zr_array_state *state = NULL;
    zarr_array *a = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_array_new(&a, store, path, o, err));
    st = load_found_array(&state, a, found, o->zarr_format, err);
    return end_array_open(out, a, state, st, o->cancel, err);
out:
    return st;
}

/* Consolidated metadata may describe an array that has no document of its own. A store
 * that answers in microseconds is asked at once; another one when a check first reads the
 * document, because opening must not cost a request. */
static zarr_status look_for_document(zarr_array *a, int32_t format,
                                     const zarr_cancel *cancel, zarr_error *err)
{
    bool there = false;
    zarr_status st = ZARR_OK;

    if (!a->may_go || !zr_store_can(a->h.store, ZARR_STORE_CAP_FAST_GET))
        return ZARR_OK;
    st = zr_doc_is_there(a->h.store, a->h.path, zr_doc_name(ZARR_NODE_ARRAY, format),
                         &there, cancel, err);
    atomic_store(&a->has_document, there);
    return st;
}

zarr_status zr_array_open_entry(zarr_array **out, zarr_store *store, char *path,
                                struct zr_parsed *parsed, const struct zr_entry *entry,
                                const zarr_array_open_options *o, zarr_error *err)
{
    const struct zr_array_source src = {.format = entry->format,
                                        .parsed = parsed,
                                        .root = entry->doc,
                                        .attrs = entry->attrs};
    struct zr_array_state *state = NULL;
    zarr_array *a = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_array_new(&a, store, path, o, err));
    atomic_store(&a->has_document, false);
    if (entry->kind != ZARR_NODE_ARRAY)
        st = zr_fail(err, ZARR_ERR_NOT_FOUND, "there is a %s, not an array",
                     zr_kind_text(entry->kind));
    if (st == ZARR_OK)
        st = zr_origin_state(&state, a, &src, o->cancel, err);
    if (st == ZARR_OK)
        st = zr_array_adopt(a, state, o->cancel, err);
    if (st == ZARR_OK)
        st = look_for_document(a, entry->format, o->cancel, err);
    if (st != ZARR_OK) {
        zr_path_prefix(err, st, a->h.path);
        goto out;
    }
    *out = a; /* moved */
    a = NULL;
out:
    zarr_array_free(a);
    return st;
}

zarr_array *zarr_array_ref(zarr_array *array)
{
    if (!array)
        return NULL;
    atomic_fetch_add_explicit(&array->h.refs, 1, memory_order_relaxed);
    return array;
}

void zarr_array_free(zarr_array *array)
{
    if (array && atomic_fetch_sub_explicit(&array->h.refs, 1, memory_order_acq_rel) == 1)
        array_destroy(array);
}

enum {
    REFRESH_TRIES = 16
};

/* The documents read may be older than the state that another thread put into the handle
 * meanwhile; then they are read again. If this keeps happening, the handle has a state at
 * least as new as this call, which is enough. */
zarr_status zarr_array_refresh(zarr_array *array, int *changed, const zarr_cancel *cancel,
                               zarr_error *err)
{
    ZR_NEED(array, err);
    struct zr_array_state *first = zr_array_state_get(array), *after = NULL;
    struct zr_array_state *before = zr_array_state_ref(first);
    bool done = false;
    zarr_status st = zr_array_may_change(array, err);

    if (st != ZARR_OK) {
        zr_path_prefix(err, st, array->h.path);
        goto out;
    }
    for (int i = 0; i < REFRESH_TRIES && !done; i++) {
        zr_array_state_free(after);
        zr_array_state_free(before);
        before = zr_array_state_get(array);
        st = zr_array_load(&after, array, before->meta.format, cancel, err);
        if (st == ZARR_OK)
            st = zr_separator_probe(array, after, cancel, err);
        if (st != ZARR_OK) {
            zr_path_prefix(err, st, array->h.path);
            goto out;
        }
        zr_array_state_ref(after); /* the handle's reference */
        done = zr_array_state_exchange(array, before, after);
        if (!done)
            zr_array_state_free(after);
    }
    if (changed)
        *changed = !zr_json_equal(first->root, after->root) ||
                   !zr_json_equal(first->attrs, after->attrs);
out:
    zr_array_state_free(after);
    zr_array_state_free(before);
    zr_array_state_free(first);
    return st;
}
