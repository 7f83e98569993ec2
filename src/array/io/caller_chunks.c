/*
 * array/io/caller_chunks.c - reads and writes with encoded chunks of the caller. The
 * batch becomes a store of lent values (store/memory/lent_values.c), which finds them by
 * the keys that the chunks have in a store, so errors name them. The chunks take the same
 * way as those of a store; the pipe reads them in place. Encoded blocks go to the
 * caller's function instead of the store. Thread class: plain functions.
 */
#include "array/io/io_int.h"
#include "array/stored/stored_int.h"

#include <zarrc/chunks.h>

#include <string.h>

/* ---- the batch ---------------------------------------------------------- */

/*
 * A batch as values of a store. They are found by the coordinates that a key gives, so no
 * keys are made for them. A slot has the number of a value plus 1; 0: free. If the batch
 * has a good part of the grid, each chunk of the grid has its slot. Otherwise the table
 * has open addressing.
 */
struct given_chunks {
    const zarr_array *array;
    const struct zr_array_state *state;
    const zarr_allocator *alloc;
    const uint64_t *chunks;      /* of the batch; borrowed */
    struct zr_lent_value *value; /* owned */
    uint32_t *slot;              /* owned */
    uint64_t n_slots;
    bool is_grid;                   /* slots by number in the grid, */
    uint64_t extent[ZARR_MAX_RANK]; /* which has so many chunks */
    size_t skip;                    /* bytes of a key before the chunk's part */
    zarr_store *store;
};

enum {
    GIVEN_SPARSE = 4 /* chunks of the grid for each of a batch */
};

static void given_deinit(struct given_chunks *g)
{
    zarr_store_free(g->store);
    zr_free(g->alloc, g->value);
    zr_free(g->alloc, g->slot);
}

static zarr_status check_given(const struct given_chunks *g, const uint64_t *chunk,
                               uint64_t i, zarr_error *err)
{
    for (int32_t d = 0; d < g->state->meta.ndim; d++)
        if (chunk[d] >= g->extent[d])
            return zr_fail(err, ZARR_ERR_INVALID,
                           "chunk %" PRIu64 " of the batch: coordinate %" PRIu64
                           " of dimension %" PRId32 " is outside of the grid",
                           i, chunk[d], d);
    return ZARR_OK;
}

static struct zr_lent_value batch_value(const zarr_block_batch *b, uint64_t i)
{
    struct zr_lent_value v = {.mem = b->bytes[i]};

    v.status = b->status ? b->status[i] : ZARR_OK;
    if (v.mem.device_type == 0)
        v.mem.device_type = ZARR_DEVICE_CPU;
    if (v.status == ZARR_OK && !v.mem.handle)
        v.status = ZARR_ERR_NOT_FOUND;
    return v;
}

/* The slot of a chunk inside of the grid: its value's, or a free one. */
static uint32_t *given_slot(const struct given_chunks *g, const uint64_t *chunk)
{
    const size_t ndim = (size_t)g->state->meta.ndim, bytes = ndim * sizeof *chunk;
    uint64_t at = 0;

    if (g->is_grid) {
        for (size_t d = 0; d < ndim; d++)
            at = at * g->extent[d] + chunk[d];
        return &g->slot[at];
    }
    at = zr_map_hash((const char *)chunk, bytes) & (g->n_slots - 1);
    while (g->slot[at] != 0 &&
           memcmp(g->chunks + (g->slot[at] - 1) * ndim, chunk, bytes) != 0)
        at = (at + 1) & (g->n_slots - 1);
    return &g->slot[at];
}

/* For zr_lent.find. */
static bool given_find(const void *arg, const char *key, uint64_t *i)
{
    const struct given_chunks *g = arg;
    const struct zr_array_meta *m = &g->state->meta;
    uint64_t chunk[ZARR_MAX_RANK];

    if (!g->slot || strlen(key) <= g->skip ||
        !zr_key_encoding_chunk(&m->keys, m->ndim, key + g->skip, chunk))
        return false;
    for (int32_t d = 0; d < m->ndim; d++)
        if (chunk[d] >= g->extent[d])
            return false;
    *i = *given_slot(g, chunk);
    return (*i)-- != 0;
}

static zarr_status given_room(struct given_chunks *g, uint64_t n_chunks, zarr_error *err)
{
    const struct zr_array_meta *m = &g->state->meta;
    uint64_t all = 1;
    size_t n = 0, n_slots = 0, bytes = 0;

    if (n_chunks >= UINT32_MAX / GIVEN_SPARSE)
        return zr_fail(err, ZARR_ERR_LIMIT, "%" PRIu64 " chunks are too many", n_chunks);
    g->is_grid = true;
    for (int32_t d = 0; d < m->ndim; d++) {
        g->extent[d] = zr_grid_n_chunks(&m->grid, d);
        g->is_grid &= zr_mul(all, g->extent[d], &all);
    }
    g->is_grid &= all <= n_chunks * GIVEN_SPARSE;
    for (g->n_slots = 2; !g->is_grid && g->n_slots < 2 * n_chunks;)
        g->n_slots *= 2;
    if (g->is_grid)
        g->n_slots = ZR_MAX(all, UINT64_C(1));
    if (!zr_fits(n_chunks, &n) || !zr_mul(n, sizeof *g->value, &bytes) ||
        !zr_fits(g->n_slots, &n_slots))
        return zr_fail_memory(err, n_chunks);
    g->value = zr_malloc(g->alloc, bytes);
    g->slot = zr_calloc(g->alloc, n_slots, sizeof *g->slot);
    return g->value && g->slot ? ZARR_OK : zr_fail_memory(err, bytes);
}

static zarr_status given_twice(const struct given_chunks *g, const uint64_t *chunk,
                               zarr_error *err)
{
    struct zr_str key;
    zarr_status st = ZARR_OK;

    zr_str_init(&key, g->alloc);
    ZR_TRY(zr_array_key(g->array, g->state, chunk, &key, err));
    st = zr_fail(err, ZARR_ERR_INVALID, "%s: given twice", zr_str_text(&key));
out:
    zr_str_deinit(&key);
    return st;
}

static zarr_status make_values(struct given_chunks *g, const zarr_block_batch *b,
                               zarr_error *err)
{
    static const uint64_t no_dims[ZARR_MAX_RANK];
    const size_t ndim = (size_t)g->state->meta.ndim;

    g->chunks = b->blocks ? b->blocks : no_dims;
    g->skip = *g->array->h.path ? strlen(g->array->h.path) + 1 : 0;
    if (b->n_blocks == 0)
        return ZARR_OK;
    ZR_CHECK(given_room(g, b->n_blocks, err));
    for (uint64_t i = 0; i < b->n_blocks; i++) {
        const uint64_t *chunk = g->chunks + i * ndim;
        uint32_t *slot = NULL;

        ZR_CHECK(check_given(g, chunk, i, err));
        slot = given_slot(g, chunk);
        if (*slot != 0)
            ZR_CHECK(given_twice(g, chunk, err));
        *slot = (uint32_t)i + 1;
        g->value[i] = batch_value(b, i);
    }
    return ZARR_OK;
}

static zarr_status read_batch(zarr_block_batch *b, const zarr_block_batch *batch,
                              int32_t ndim, zarr_error *err)
{
    ZR_CHECK(zr_struct_read(b, sizeof *b, ZR_SIZE_THROUGH(zarr_block_batch, status),
                            batch, ZR_TAIL_REFUSE, "zarr_block_batch", err));
    if (b->flags)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "zarr_block_batch: unknown flags");
    if (b->n_blocks > 0 && (!b->bytes || (!b->blocks && ndim > 0)))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "zarr_block_batch: %" PRIu64 " chunks without chunks or bytes",
                       b->n_blocks);
    return ZARR_OK;
}

/* batch NULL: no chunks. *device_type: the memory of the first chunk that is there, or
 * unchanged. */
static zarr_status given_init(struct given_chunks *g, struct zr_io_call *c,
                              const zarr_block_batch *batch, int32_t *device_type,
                              zarr_error *err)
{
    struct zr_lent lent = {.find = given_find,
                           .arg = g,
                           .absent = ZARR_ERR_INVALID,
                           .absent_text = "the batch does not have this chunk"};
    zarr_block_batch b = ZARR_BLOCK_BATCH_INIT;

    if (batch)
        ZR_CHECK(read_batch(&b, batch, c->state->meta.ndim, err));
    ZR_CHECK(make_values(g, &b, err));
    lent.value = g->value;
    lent.n = b.n_blocks;
    for (uint64_t i = lent.n; i-- > 0;)
        if (lent.value[i].status == ZARR_OK)
            *device_type = lent.value[i].mem.device_type;
    return zr_ctx_open_lent(&g->store, c->array->h.ctx, &lent, err);
}

/* ---- the calls ---------------------------------------------------------- */

struct given_sink {
    zarr_block_sink to;
    zarr_context *ctx;
};

/* Moves a chunk to the memory that the sink wants. */
static zarr_status bring_chunk(const struct given_sink *s, zarr_memory *bytes,
                               zarr_memory *block, zarr_error *err)
{
    const zarr_memory from = *bytes;
    struct zr_copy_counters counters = {0};

    ZR_CHECK(zr_pool_take(s->ctx->pool, s->to.device_type, s->to.device_id,
                          ZR_MAX(from.bytes, UINT64_C(64)), block, err));
    *bytes = *block;
    bytes->bytes = from.bytes;
    return zr_mem_copy_bytes(&s->ctx->memory, bytes, &from, from.bytes, &counters, err);
}

static zarr_status sink_chunk(void *arg, const uint64_t *chunk, const zarr_memory *bytes,
                              zarr_error *err)
{
    const struct given_sink *s = arg;
    zarr_memory mem = bytes ? *bytes : (zarr_memory){0}, block = {0};
    struct zr_foreign call;
    zarr_status st = ZARR_OK;

    if (bytes && mem.device_type != s->to.device_type)
        ZR_TRY(bring_chunk(s, &mem, &block, err));
    st = s->to.fn(s->to.user, chunk, bytes ? &mem : NULL, zr_foreign_begin(&call, err));
    if (st != ZARR_OK)
        st = zr_foreign_fail(&call, st, false, "the sink of chunks");
out:
    zr_pool_give(s->ctx->pool, &block);
    return st;
}

static zarr_status read_sink(zarr_block_sink *s, const zarr_block_sink *sink,
                             zarr_error *err)
{
    if (!sink)
        return zr_fail(err, ZARR_ERR_INVALID, "no sink is given");
    ZR_CHECK(zr_struct_read(s, sizeof *s, ZR_SIZE_THROUGH(zarr_block_sink, device_id),
                            sink, ZR_TAIL_REFUSE, "zarr_block_sink", err));
    if (s->flags)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "zarr_block_sink: unknown flags");
    if (!s->fn)
        return zr_fail(err, ZARR_ERR_INVALID, "zarr_block_sink.fn is NULL");
    if (s->device_type == 0)
        s->device_type = ZARR_DEVICE_CPU;
    return ZARR_OK;
}

zarr_status zarr_array_decode(zarr_array *array, const zarr_selection *selection,
                              const zarr_tensor *dst, const zarr_block_batch *in,
                              const zarr_io_options *opts, zarr_error *err)
{
    ZR_NEED(array, err);
    struct zr_io_call c = {.array = array, .state = zr_array_state_get(array)};
    struct zr_io_given given = {.device_type = ZARR_DEVICE_CPU};
    struct given_chunks g = {
        .array = array, .state = c.state, .alloc = array->h.ctx->alloc};
    zarr_status st = ZARR_OK;

    if (!in)
        st = zr_fail(err, ZARR_ERR_INVALID, "no batch of chunks is given");
    if (st == ZARR_OK)
        st = given_init(&g, &c, in, &given.device_type, err);
    if (st != ZARR_OK) {
        zr_path_prefix(err, st, array->h.path);
        goto out;
    }
    given.store = g.store;
    c.given = &given;
    ZR_TRY(zr_io_call_run(&c, selection, dst, opts, false, err));
out:
    given_deinit(&g);
    zr_array_state_free(c.state);
    return st;
}

zarr_status zarr_array_encode(zarr_array *array, const zarr_selection *selection,
                              const zarr_tensor *src, const zarr_block_batch *old,
                              const zarr_block_sink *sink, const zarr_io_options *opts,
                              zarr_error *err)
{
    ZR_NEED(array, err);
    struct zr_io_call c = {.array = array, .state = zr_array_state_get(array)};
    struct given_sink to = {.to = ZARR_BLOCK_SINK_INIT, .ctx = array->h.ctx};
    struct zr_io_given given = {.sink = sink_chunk, .sink_arg = &to};
    struct given_chunks g = {
        .array = array, .state = c.state, .alloc = array->h.ctx->alloc};
    int32_t old_type = 0;
    zarr_status st = ZARR_OK;

    st = read_sink(&to.to, sink, err);
    if (st == ZARR_OK)
        st = given_init(&g, &c, old, &old_type, err);
    if (st != ZARR_OK) {
        zr_path_prefix(err, st, array->h.path);
        goto out;
    }
    given.store = g.store;
    given.device_type = to.to.device_type;
    c.given = &given;
    ZR_TRY(zr_io_call_run(&c, selection, src, opts, true, err));
out:
    given_deinit(&g);
    zr_array_state_free(c.state);
    return st;
}
