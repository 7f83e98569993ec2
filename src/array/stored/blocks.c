/*
 * array/stored/blocks.c - an array's stored objects: keys, encoded bytes in and out,
 * lists. An object is the bytes under one key: a chunk, or a shard with many. shards.c
 * looks into shards through their indexes. Thread class: plain functions.
 */
#include "array/io/io_int.h"
#include "array/stored/stored_int.h"

#include <string.h>

static zarr_status check_chunk(const struct zr_array_state *s, const uint64_t *chunk,
                               zarr_error *err)
{
    for (int32_t d = 0; d < s->meta.ndim; d++) {
        const uint64_t n = zr_grid_n_chunks(&s->meta.grid, d);

        if (chunk[d] >= n)
            return zr_fail(err, ZARR_ERR_INVALID,
                           "dimension %" PRId32 ": chunk %" PRIu64
                           " is not below %" PRIu64,
                           d, chunk[d], n);
    }
    return ZARR_OK;
}

static zarr_status block_extent(const struct zr_array_state *s, const uint64_t *block,
                                uint64_t *origin, uint64_t *shape, zarr_error *err)
{
    const zarr_status st = check_chunk(s, block, err);

    for (int32_t d = 0; st == ZARR_OK && d < s->meta.ndim; d++) {
        uint64_t at = 0, size = 0;

        zr_grid_extent(&s->meta.grid, d, block[d], &at, &size);
        if (origin)
            origin[d] = at;
        if (shape)
            shape[d] = size;
    }
    return st;
}

zarr_status zarr_array_block_extent(const zarr_array *array, const uint64_t *block,
                                    uint64_t *origin, uint64_t *shape, zarr_error *err)
{
    ZR_NEED(array, err);
    struct zr_array_state *s = zr_array_state_get(array);
    const zarr_status st = block_extent(s, block, origin, shape, err);

    zr_path_prefix(err, st, array->h.path);
    zr_array_state_free(s);
    return st;
}

void zarr_array_block_counts(const zarr_array *array, uint64_t *counts)
{
    if (!array)
        return;
    struct zr_array_state *s = zr_array_state_get(array);

    for (int32_t d = 0; d < s->meta.ndim; d++)
        counts[d] = zr_grid_n_chunks(&s->meta.grid, d);
    zr_array_state_free(s);
}

/* Every shard begins at a multiple of the chunk's shape, so that chunks of shards have a
 * regular grid even if the shards differ in shape. */
void zarr_array_chunk_counts(const zarr_array *array, uint64_t *counts)
{
    if (!array)
        return;
    struct zr_array_state *s = zr_array_state_get(array);

    for (int32_t d = 0; d < s->meta.ndim; d++)
        counts[d] = s->sharded ? zr_ceil_div_u64(s->meta.shape[d], s->leaf_shape[d])
                               : zr_grid_n_chunks(&s->meta.grid, d);
    zr_array_state_free(s);
}

/* zarr_array_chunk_extent() of an array with shards. */
static zarr_status shard_chunk_extent(const struct zr_array_state *s,
                                      const uint64_t *chunk, uint64_t *origin,
                                      uint64_t *shape, zarr_error *err)
{
    for (int32_t d = 0; d < s->meta.ndim; d++) {
        const uint64_t n = zr_ceil_div_u64(s->meta.shape[d], s->leaf_shape[d]);

        if (chunk[d] >= n)
            return zr_fail(err, ZARR_ERR_INVALID,
                           "dimension %" PRId32 ": there is no chunk %" PRIu64
                           "; the array has %" PRIu64,
                           d, chunk[d], n);
        if (origin)
            origin[d] = chunk[d] * s->leaf_shape[d];
        if (shape)
            shape[d] = s->leaf_shape[d];
    }
    return ZARR_OK;
}

zarr_status zarr_array_chunk_extent(const zarr_array *array, const uint64_t *chunk,
                                    uint64_t *origin, uint64_t *shape, zarr_error *err)
{
    ZR_NEED(array, err);
    struct zr_array_state *s = zr_array_state_get(array);
    zarr_status st;

    if (s->sharded)
        st = shard_chunk_extent(s, chunk, origin, shape, err);
    else
        st = block_extent(s, chunk, origin, shape, err);
    zr_path_prefix(err, st, array->h.path);
    zr_array_state_free(s);
    return st;
}

zarr_status zarr_array_block_locate(const zarr_array *array, const uint64_t *at,
                                    uint64_t *chunk, zarr_error *err)
{
    ZR_NEED(array, err);
    struct zr_array_state *s = zr_array_state_get(array);
    zarr_status st = ZARR_OK;

    for (int32_t d = 0; st == ZARR_OK && d < s->meta.ndim; d++) {
        if (at[d] >= s->meta.shape[d])
            st = zr_fail(err, ZARR_ERR_INVALID,
                         "dimension %" PRId32 ": element %" PRIu64
                         " is not below %" PRIu64,
                         d, at[d], s->meta.shape[d]);
        else
            chunk[d] = zr_grid_locate(&s->meta.grid, d, at[d]);
    }
    zr_path_prefix(err, st, array->h.path);
    zr_array_state_free(s);
    return st;
}

void zarr_array_block_largest(const zarr_array *array, uint64_t *shape)
{
    if (!array)
        return;
    struct zr_array_state *s = zr_array_state_get(array);

    zr_grid_largest(&s->meta.grid, shape);
    zr_array_state_free(s);
}

zarr_status zarr_array_select_blocks(zarr_selection **out, const zarr_array *array,
                                     int32_t n_dims, const zarr_dim_selection *dims,
                                     zarr_error *err)
{
    *out = NULL;
    ZR_NEED(array, err);
    struct zr_array_state *s = zr_array_state_get(array);
    zarr_status st = zr_select_blocks(out, &s->meta.grid, n_dims, dims, err);

    zr_path_prefix(err, st, array->h.path);
    zr_array_state_free(s);
    return st;
}

/* As zr_array_recheck() on the handle's state. */
static zarr_status check_there(zarr_array *a, const zarr_cancel *cancel, zarr_error *err)
{
    struct zr_array_state *s = zr_array_state_get(a);
    const zarr_status st = zr_array_recheck(a, s, cancel, err);

    zr_array_state_free(s);
    return zr_path_prefix(err, st, a->h.path);
}

/* Makes the key of a chunk inside the grid. Initialises out. */
static zarr_status checked_key(const zarr_array *a, const uint64_t *chunk,
                               struct zr_str *out, zarr_error *err)
{
    struct zr_array_state *s = zr_array_state_get(a);
    zarr_status st = ZARR_OK;

    zr_str_init(out, a->h.ctx->alloc);
    ZR_TRY(check_chunk(s, chunk, err));
    ZR_TRY(zr_array_key(a, s, chunk, out, err));
out:
    zr_path_prefix(err, st, a->h.path);
    zr_array_state_free(s);
    return st;
}

zarr_status zarr_array_block_key(const zarr_array *array, const uint64_t *chunk,
                                 char *text, size_t cap, size_t *text_bytes,
                                 zarr_error *err)
{
    ZR_NEED(array, err);
    const struct zr_text_out to = {text, cap, text_bytes};
    struct zr_str key;
    zarr_status st = checked_key(array, chunk, &key, err);

    if (st == ZARR_OK)
        st = zr_text_give(zr_str_text(&key), key.bytes, &to, err);
    zr_str_deinit(&key);
    return st;
}

zarr_status zarr_array_block_of_key(const zarr_array *array, const char *key,
                                    uint64_t *chunk, zarr_error *err)
{
    ZR_NEED(array, err);
    const char *path = array->h.path;
    const size_t skip = *path ? strlen(path) + 1 : 0;
    uint64_t at[ZARR_MAX_RANK];
    struct zr_array_state *s = zr_array_state_get(array);
    zarr_status st = ZARR_OK;

    if (!key || strlen(key) <= skip || !zr_key_is_below(key, path) ||
        !zr_key_encoding_chunk(&s->meta.keys, s->meta.ndim, key + skip, at))
        st = zr_fail(err, ZARR_ERR_INVALID, "\"%.200s\" is not the key of a chunk",
                     key ? key : "");
    else
        st = check_chunk(s, at, err);
    if (st == ZARR_OK)
        memcpy(chunk, at, (size_t)s->meta.ndim * sizeof *at);
    else
        zr_path_prefix(err, st, path);
    zr_array_state_free(s);
    return st;
}

zarr_status zarr_array_block_read_encoded(zarr_array *array, const uint64_t *chunk,
                                          void *data, uint64_t *bytes,
                                          const zarr_cancel *cancel, zarr_error *err)
{
    ZR_NEED(array, err);
    const uint64_t room = *bytes;
    zarr_store_op op = {.verb = ZARR_STORE_GET,
                        .flags = ZARR_STORE_OP_CHUNK,
                        .length = room,
                        .cancel = cancel,
                        .mem = zr_mem_of_host(data, room)};
    struct zr_str key;
    zarr_status st = checked_key(array, chunk, &key, err);

    if (st != ZARR_OK)
        goto out;
    op.key = zr_str_text(&key);
    ZR_TRY(zr_store_get(array->chunk_store, &op, err));
    *bytes = op.done_bytes;
    if (op.object_bytes > room) {
        *bytes = op.object_bytes;
        st =
            zr_fail(err, ZARR_ERR_LIMIT, "%s: %" PRIu64 " bytes do not fit into %" PRIu64,
                    op.key, op.object_bytes, room);
    }
out:
    zr_str_deinit(&key);
    return st;
}

/* Runs a PUT or ERASE of a chunk. */
static zarr_status change_chunk(zarr_array *array, zarr_store_op *op, zarr_error *err)
{
    const zarr_status st = zr_store_run_one(array->chunk_store, op, err);

    if (st != ZARR_OK)
        return zr_prefix(err, st, "%s", zarr_store_url(array->chunk_store));
    zr_index_cache_drop(array->indexes, op->key);
    return ZARR_OK;
}

zarr_status zarr_array_block_write_encoded(zarr_array *array, const uint64_t *chunk,
                                           const void *data, uint64_t bytes,
                                           const zarr_cancel *cancel, zarr_error *err)
{
    ZR_NEED(array, err);
    zarr_store_op op = {.verb = ZARR_STORE_PUT,
                        .flags = ZARR_STORE_OP_CHUNK,
                        .length = bytes,
                        .cancel = cancel,
                        /* is only read */
                        .mem = zr_mem_of_host((void *)(uintptr_t)data, bytes)};
    struct zr_str key;
    zarr_status st = checked_key(array, chunk, &key, err);

    op.key = zr_str_text(&key);
    if (st == ZARR_OK)
        st = check_there(array, cancel, err);
    if (st == ZARR_OK)
        st = change_chunk(array, &op, err);
    if (st == ZARR_OK)
        st = check_there(array, cancel, err);
    zr_str_deinit(&key);
    return st;
}

zarr_status zarr_array_block_erase(zarr_array *array, const uint64_t *chunk,
                                   const zarr_cancel *cancel, zarr_error *err)
{
    ZR_NEED(array, err);
    zarr_store_op op = {
        .verb = ZARR_STORE_ERASE, .flags = ZARR_STORE_OP_CHUNK, .cancel = cancel};
    struct zr_str key;
    zarr_status st = checked_key(array, chunk, &key, err);

    op.key = zr_str_text(&key);
    if (st == ZARR_OK)
        st = check_there(array, cancel, err);
    if (st == ZARR_OK)
        st = change_chunk(array, &op, err);
    zr_str_deinit(&key);
    return st;
}

/* ---- lists -------------------------------------------------------------- */

/* Lists the stored objects of an array that is still there. */
static zarr_status list_objects(struct zr_stored *out, zarr_array *a,
                                struct zr_array_state *s, bool asks,
                                const zarr_cancel *cancel, zarr_error *err)
{
    ZR_CHECK(zr_stored_list(out, a, s, NULL, asks, cancel, err));
    ZR_CHECK(zr_array_recheck(a, s, cancel, err));
    if (out->n == 0)
        ZR_CHECK(zr_separator_check(a, s, cancel, err));
    return ZARR_OK;
}

struct chunk_listing {
    zarr_array *array;
    struct zr_array_state *state; /* counted */
    struct zr_stored stored;
    struct zr_str key;
    struct zr_io io;
    uint32_t what;
    bool asks; /* ZARR_BLOCKS_ASK */
    zarr_block_list_fn fn;
    void *user;
    const zarr_cancel *cancel;
    uint64_t chunk[ZARR_MAX_RANK];
    bool stopped;
};

static void emit_object(struct chunk_listing *l, const uint64_t *row)
{
    const zarr_block_info info = {
        .struct_size = sizeof info,
        .ndim = l->stored.ndim,
        .coordinates = row,
        .key = zr_str_text(&l->key),
        .bytes = row[l->stored.ndim],
    };

    l->stopped = l->fn(l->user, &info) != 0;
}

static zarr_status emit_inner(void *arg, const struct zr_inner_chunk *inner,
                              zarr_error *err)
{
    struct chunk_listing *l = arg;
    const struct zr_array_state *s = l->state;
    zarr_block_info info = {
        .struct_size = sizeof info,
        .ndim = s->meta.ndim,
        .coordinates = l->chunk,
        .key = zr_str_text(&l->key),
        .offset = inner->offset,
        .bytes = inner->bytes,
        .is_chunk = 1,
    };

    zarr_status st = ZARR_OK;

    if (l->stopped)
        return ZARR_OK;
    for (int32_t d = 0; d < s->meta.ndim; d++) {
        if (inner->origin[d] >= s->meta.shape[d])
            return ZARR_OK; /* padding of a shard at the array's border */
        l->chunk[d] = inner->origin[d] / s->leaf_shape[d];
    }
    st = zr_shard_index_check(inner->shard->index, inner->entry, err);
    if (st != ZARR_OK)
        return zr_prefix_key(err, st, info.key);
    l->stopped = l->fn(l->user, &info) != 0;
    return ZARR_OK;
}

static zarr_status emit_missing(void *arg, const uint64_t *chunk, bool *stop,
                                zarr_error *err)
{
    struct chunk_listing *l = arg;
    zarr_block_info info = {
        .struct_size = sizeof info, .ndim = l->stored.ndim, .coordinates = chunk};

    ZR_CHECK(zr_cancel_check(l->cancel, err));
    ZR_CHECK(zr_array_key(l->array, l->state, chunk, &l->key, err));
    info.key = zr_str_text(&l->key);
    *stop = l->fn(l->user, &info) != 0;
    return ZARR_OK;
}

static zarr_status list_chunks(struct chunk_listing *l, zarr_error *err)
{
    const bool inner = l->what == ZARR_BLOCKS_CHUNKS && l->state->sharded;
    const struct zr_inner_use use = {.fn = emit_inner, .arg = l};
    zarr_error e = {0};
    zarr_status st = ZARR_OK;

    st = list_objects(&l->stored, l->array, l->state, l->asks, l->cancel, err);
    if (st == ZARR_OK && inner)
        st = zr_array_io(&l->io, l->array, l->state, ZARR_DEVICE_CPU, NULL, err);
    if (st != ZARR_OK)
        ZR_TRY(zr_path_prefix(err, st, l->array->h.path));
    l->io.cancel = l->cancel;
    if (l->what == ZARR_BLOCKS_MISSING) {
        st = zr_stored_each_missing(&l->stored, &l->state->meta.grid, emit_missing, l,
                                    err);
        goto out;
    }
    for (size_t i = 0; i < l->stored.n && !l->stopped; i++) {
        const uint64_t *row = zr_stored_chunk(&l->stored, i);

        ZR_TRY(zr_cancel_check(l->cancel, err));
        ZR_TRY(zr_array_key(l->array, l->state, row, &l->key, err));
        if (!inner) {
            emit_object(l, row);
            continue;
        }
        st = zr_shard_walk(&l->io, l->state, row, zr_str_text(&l->key), &use, &e);
        if (st != ZARR_ERR_NOT_FOUND) /* erased meanwhile */
            ZR_TRY(zr_pass(err, st, &e));
        st = ZARR_OK;
    }
out:
    return st;
}

/* The stored chunks of one block, or the block itself if the array has no shards. */
static zarr_status list_one(struct chunk_listing *l, const uint64_t *block,
                            zarr_error *err)
{
    const struct zr_inner_use use = {.fn = emit_inner, .arg = l};
    const int32_t ndim = l->state->meta.ndim;
    zarr_store_op op = {
        .verb = ZARR_STORE_STAT, .flags = ZARR_STORE_OP_CHUNK, .cancel = l->cancel};
    uint64_t row[ZARR_MAX_RANK + 1];
    zarr_error e = {0};
    zarr_status st = ZARR_OK;

    ZR_TRY(check_chunk(l->state, block, err));
    ZR_TRY(zr_array_key(l->array, l->state, block, &l->key, err));
    if (l->state->sharded) {
        ZR_TRY(zr_array_io(&l->io, l->array, l->state, ZARR_DEVICE_CPU, NULL, err));
        l->io.cancel = l->cancel;
        st = zr_shard_walk(&l->io, l->state, block, zr_str_text(&l->key), &use, err);
        goto out;
    }
    op.key = zr_str_text(&l->key);
    st = zr_store_run_one(l->array->chunk_store, &op, &e);
    if (st == ZARR_ERR_NOT_FOUND)
        return ZARR_OK;
    ZR_TRY(zr_pass(err, st, &e));
    if (ndim > 0)
        memcpy(row, block, (size_t)ndim * sizeof *row);
    row[ndim] = op.object_bytes;
    l->stored.ndim = ndim;
    emit_object(l, row);
out:
    return st;
}

/* `block` NULL: all blocks. */
static zarr_status list_what(struct chunk_listing *l, const uint64_t *block,
                             const zarr_io_options *opts, zarr_error *err)
{
    zarr_io_options o;
    zarr_status st = zr_io_options_read(&o, opts, err);

    if (st == ZARR_OK)
        st = zr_io_no_stream(&o, err);
    if (st != ZARR_OK)
        return st;
    l->cancel = o.cancel;
    l->state = zr_array_state_get(l->array);
    zr_str_init(&l->key, l->array->h.ctx->alloc);
    if (l->what > ZARR_BLOCKS_MISSING)
        st = zr_fail(err, ZARR_ERR_INVALID, "%" PRIu32 " is not one of ZARR_BLOCKS_*",
                     l->what);
    else if (block)
        st = zr_path_prefix(err, list_one(l, block, err), l->array->h.path);
    else
        st = list_chunks(l, err);
    zr_str_deinit(&l->key);
    zr_stored_deinit(&l->stored);
    zr_array_state_free(l->state);
    return st;
}

zarr_status zarr_array_list_blocks(zarr_array *array, uint32_t what,
                                   zarr_block_list_fn fn, void *user,
                                   const zarr_io_options *opts, zarr_error *err)
{
    ZR_NEED(array, err);
    struct chunk_listing l = {.array = array,
                              .what = what & ~(uint32_t)ZARR_BLOCKS_ASK,
                              .asks = (what & ZARR_BLOCKS_ASK) != 0,
                              .fn = fn,
                              .user = user};

    return list_what(&l, NULL, opts, err);
}

zarr_status zarr_array_block_list_chunks(zarr_array *array, const uint64_t *block,
                                         zarr_block_list_fn fn, void *user,
                                         const zarr_io_options *opts, zarr_error *err)
{
    static const uint64_t origin; /* of an array without dimensions */
    ZR_NEED(array, err);
    struct chunk_listing l = {
        .array = array, .what = ZARR_BLOCKS_CHUNKS, .fn = fn, .user = user};

    return list_what(&l, block ? block : &origin, opts, err);
}

/* The length of an object that the listing did not tell; 0 if it was erased meanwhile. */
static zarr_status stored_object_bytes(const zarr_array *array,
                                       const struct zr_array_state *s,
                                       const uint64_t *chunk, struct zr_str *key,
                                       uint64_t *bytes, zarr_error *err)
{
    zarr_store_op op = {.verb = ZARR_STORE_STAT, .flags = ZARR_STORE_OP_CHUNK};
    zarr_error e = {0};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_array_key(array, s, chunk, key, err));
    op.key = zr_str_text(key);
    st = zr_store_run_one(array->chunk_store, &op, &e);
    *bytes = st == ZARR_OK ? op.object_bytes : 0;
    st = st == ZARR_ERR_NOT_FOUND ? ZARR_OK : zr_pass(err, st, &e);
out:
    return st;
}

static zarr_status stored_bytes(const zarr_array *array, const struct zr_array_state *s,
                                const struct zr_stored *stored, const zarr_cancel *cancel,
                                uint64_t *sum, zarr_error *err)
{
    struct zr_str key;
    zarr_status st = ZARR_OK;

    *sum = 0;
    zr_str_init(&key, array->h.ctx->alloc);
    for (size_t i = 0; i < stored->n; i++) {
        const uint64_t *row = zr_stored_chunk(stored, i);
        uint64_t bytes = row[stored->ndim];

        ZR_TRY(zr_cancel_check(cancel, err));
        if (bytes == UINT64_MAX)
            ZR_TRY(stored_object_bytes(array, s, row, &key, &bytes, err));
        *sum = zr_add_cap(*sum, bytes);
    }
out:
    zr_str_deinit(&key);
    return st;
}

zarr_status zarr_array_count_stored(zarr_array *array, uint64_t *n_objects,
                                    uint64_t *n_bytes, const zarr_io_options *opts,
                                    zarr_error *err)
{
    ZR_NEED(array, err);
    struct zr_array_state *s = zr_array_state_get(array);
    struct zr_stored stored = {0};
    zarr_io_options o;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_io_options_read(&o, opts, err));
    ZR_TRY(zr_io_no_stream(&o, err));
    st = list_objects(&stored, array, s, true, o.cancel, err);
    if (st == ZARR_OK && n_bytes)
        st = stored_bytes(array, s, &stored, o.cancel, n_bytes, err);
    if (st != ZARR_OK)
        ZR_TRY(zr_path_prefix(err, st, array->h.path));
    if (n_objects)
        *n_objects = stored.n;
out:
    zr_stored_deinit(&stored);
    zr_array_state_free(s);
    return st;
}
