/*
 * array/given.c - reads and writes with encoded chunks of the caller. The batch becomes a
 * store of lent values (store/lent.c), whose keys are those that the chunks have in a
 * store, so errors name them. The chunks take the same way as those of a store; the pipe
 * reads them in place. Encoded units go to the caller's function instead of the store.
 * Thread class: plain functions.
 */
#include "array/io_int.h"

#include <zarrc/chunks.h>

#include <string.h>

/* ---- the batch ---------------------------------------------------------- */

/* A batch as values with keys. */
struct given_chunks {
    const zarr_allocator *alloc;
    struct zr_lent_value *value; /* owned */
    struct zr_str keys;          /* each ended by a NUL */
    zarr_store *store;
};

static void given_deinit(struct given_chunks *g)
{
    zarr_store_free(g->store);
    zr_free(g->alloc, g->value);
    zr_str_deinit(&g->keys);
}

static zarr_status check_given(const struct zr_array_meta *m, const uint64_t *chunk,
                               uint64_t i, zarr_error *err)
{
    for (int32_t d = 0; d < m->ndim; d++)
        if (chunk[d] >= zr_grid_n_chunks(&m->grid, d))
            return zr_fail(err, ZARR_ERR_INVALID,
                           "chunk %" PRIu64 " of the batch: coordinate %" PRIu64
                           " of dimension %" PRId32 " is outside of the grid",
                           i, chunk[d], d);
    return ZARR_OK;
}

static struct zr_lent_value value_of(const zarr_chunk_batch *b, uint64_t i)
{
    struct zr_lent_value v = {.mem = b->bytes[i]};

    v.status = b->status ? b->status[i] : ZARR_OK;
    if (v.mem.device_type == 0)
        v.mem.device_type = ZARR_DEVICE_CPU;
    if (v.status == ZARR_OK && !v.mem.handle)
        v.status = ZARR_ERR_NOT_FOUND;
    return v;
}

static zarr_status make_values(struct given_chunks *g, const zarr_array *a,
                               const struct zr_array_state *s, const zarr_chunk_batch *b,
                               zarr_error *err)
{
    const struct zr_array_meta *m = &s->meta;
    static const uint64_t no_dims[ZARR_MAX_RANK];
    const size_t ndim = (size_t)m->ndim;
    size_t n = 0, at = 0;
    zarr_status st = ZARR_OK;

    if (!zr_to_size(b->n_chunks, &n))
        ZR_TRY(zr_fail_memory(err, b->n_chunks));
    g->value = zr_calloc(g->alloc, ZR_MAX(n, 1), sizeof *g->value);
    if (!g->value)
        ZR_TRY(zr_fail_memory(err, n));
    for (size_t i = 0; i < n; i++) {
        const uint64_t *chunk = b->chunks ? b->chunks + i * ndim : no_dims;

        ZR_TRY(check_given(m, chunk, i, err));
        g->value[i] = value_of(b, i);
        zr_array_key_append(a, s, chunk, &g->keys);
        zr_str_putc(&g->keys, '\0');
    }
    ZR_TRY(zr_str_status(&g->keys, err));
    for (size_t i = 0; i < n; i++) {
        g->value[i].key = g->keys.ptr + at;
        at += strlen(g->value[i].key) + 1;
    }
out:
    return st;
}

static zarr_status read_batch(zarr_chunk_batch *b, const zarr_chunk_batch *batch,
                              int32_t ndim, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_struct_read(b, sizeof *b, ZR_SIZE_THROUGH(zarr_chunk_batch, status), batch,
                          ZR_TAIL_REFUSE, "zarr_chunk_batch", err));
    if (b->flags)
        ZR_TRY(zr_fail(err, ZARR_ERR_UNSUPPORTED, "zarr_chunk_batch: unknown flags"));
    if (b->n_chunks > 0 && (!b->bytes || (!b->chunks && ndim > 0)))
        ZR_TRY(zr_fail(err, ZARR_ERR_INVALID,
                       "zarr_chunk_batch: %" PRIu64 " chunks without chunks or bytes",
                       b->n_chunks));
out:
    return st;
}

/* batch NULL: no chunks. *device_type: the memory of the first chunk that is there, or
 * unchanged. */
static zarr_status given_init(struct given_chunks *g, struct zr_io_call *c,
                              const zarr_chunk_batch *batch, int32_t *device_type,
                              zarr_error *err)
{
    const struct zr_array_state *s = c->state;
    struct zr_lent lent = {.absent = ZARR_ERR_INVALID,
                           .absent_text = "the batch does not have this chunk"};
    zarr_chunk_batch b = ZARR_CHUNK_BATCH_INIT;
    zarr_status st = ZARR_OK;

    if (batch)
        ZR_TRY(read_batch(&b, batch, s->meta.ndim, err));
    ZR_TRY(make_values(g, c->array, s, &b, err));
    lent.value = g->value;
    lent.n = b.n_chunks;
    for (uint64_t i = lent.n; i-- > 0;)
        if (lent.value[i].status == ZARR_OK)
            *device_type = lent.value[i].mem.device_type;
    ZR_TRY(zr_ctx_open_lent(&g->store, c->array->h.ctx, &lent, err));
out:
    return st;
}

/* ---- the calls ---------------------------------------------------------- */

struct given_sink {
    zarr_chunk_sink to;
    zarr_context *ctx;
};

/* Moves a chunk to the memory that the sink wants. */
static zarr_status bring_chunk(const struct given_sink *s, zarr_mem *bytes,
                               zarr_mem *block, zarr_error *err)
{
    const zarr_mem from = *bytes;
    struct zr_copy_counters counters = {0};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_pool_take(s->ctx->pool, s->to.device_type, s->to.device_id,
                        ZR_MAX(from.bytes, UINT64_C(64)), block, err));
    *bytes = *block;
    bytes->bytes = from.bytes;
    ZR_TRY(zr_mem_copy_bytes(&s->ctx->memory, bytes, &from, from.bytes, &counters, err));
out:
    return st;
}

static zarr_status sink_chunk(void *arg, const uint64_t *chunk, const zarr_mem *bytes,
                              zarr_error *err)
{
    const struct given_sink *s = arg;
    zarr_mem mem = bytes ? *bytes : (zarr_mem){0}, block = {0};
    struct zr_foreign call;
    zarr_status st = ZARR_OK;

    if (bytes && mem.device_type != s->to.device_type)
        ZR_TRY(bring_chunk(s, &mem, &block, err));
    st = s->to.fn(s->to.user, chunk, bytes ? &mem : NULL, zr_foreign_begin(&call, err));
    if (st != ZARR_OK)
        st = zr_foreign_failed(&call, st, false, "the sink of chunks");
out:
    zr_pool_give(s->ctx->pool, &block);
    return st;
}

static zarr_status read_sink(zarr_chunk_sink *s, const zarr_chunk_sink *sink,
                             zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (!sink)
        ZR_TRY(zr_fail(err, ZARR_ERR_INVALID, "no sink is given"));
    ZR_TRY(zr_struct_read(s, sizeof *s, ZR_SIZE_THROUGH(zarr_chunk_sink, device_id), sink,
                          ZR_TAIL_REFUSE, "zarr_chunk_sink", err));
    if (s->flags)
        ZR_TRY(zr_fail(err, ZARR_ERR_UNSUPPORTED, "zarr_chunk_sink: unknown flags"));
    if (!s->fn)
        ZR_TRY(zr_fail(err, ZARR_ERR_INVALID, "zarr_chunk_sink.fn is NULL"));
    if (s->device_type == 0)
        s->device_type = ZARR_DEVICE_CPU;
out:
    return st;
}

zarr_status zarr_array_decode(zarr_array *array, const zarr_selection *selection,
                              const zarr_tensor *dst, const zarr_chunk_batch *in,
                              const zarr_io_options *opts, zarr_error *err)
{
    struct zr_io_call c = {.array = array, .state = zr_array_state_get(array)};
    struct zr_io_given given = {.device_type = ZARR_DEVICE_CPU};
    struct given_chunks g = {.alloc = array->h.ctx->alloc};
    zarr_status st = ZARR_OK;

    zr_str_init(&g.keys, g.alloc);
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
                              const zarr_tensor *src, const zarr_chunk_batch *old,
                              const zarr_chunk_sink *sink, const zarr_io_options *opts,
                              zarr_error *err)
{
    struct zr_io_call c = {.array = array, .state = zr_array_state_get(array)};
    struct given_sink to = {.to = ZARR_CHUNK_SINK_INIT, .ctx = array->h.ctx};
    struct zr_io_given given = {.sink = sink_chunk, .sink_arg = &to};
    struct given_chunks g = {.alloc = array->h.ctx->alloc};
    int32_t old_type = 0;
    zarr_status st = ZARR_OK;

    zr_str_init(&g.keys, g.alloc);
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
