/*
 * array/io/shard_writer.c - the public calls that write one shard in parts. Each part is
 * an ordinary write of one box, which the pipe adds to the shard of the session. Thread
 * class: solo in the writer.
 */
#include "array/io/io_int.h"

#include <string.h>

struct zarr_shard_writer {
    zarr_array *array;            /* counted */
    struct zr_array_state *state; /* counted */
    struct zr_shard_session *session;
    zarr_io_options opts; /* what it points to is borrowed */
    uint64_t start[ZARR_MAX_RANK], count[ZARR_MAX_RANK]; /* the box to write */
    bool has_box;
};

uint64_t zr_array_part_bytes(const zarr_array *array)
{
    struct zr_array_state *s = zr_array_state_get(array);
    struct zr_io io = {0};
    uint64_t bytes = 0;

    if (zr_array_io(&io, array, s, ZARR_DEVICE_CPU, NULL, NULL) == ZARR_OK) {
        io.view.base.device_type = ZARR_DEVICE_CPU;
        bytes = zr_io_part_bytes(&io);
    }
    zr_array_state_free(s);
    return bytes;
}

static zarr_status writer_check(const struct zr_array_state *s, const struct zr_io *io,
                                const uint64_t *shard, zarr_error *err)
{
    for (int32_t d = 0; d < s->meta.ndim; d++)
        if (shard[d] >= zr_grid_n_chunks(&s->meta.grid, d))
            return zr_fail(err, ZARR_ERR_INVALID,
                           "shard %" PRIu64 " in dimension %" PRId32
                           ": the grid has %" PRIu64,
                           shard[d], d, zr_grid_n_chunks(&s->meta.grid, d));
    if (io->pipeline->is_foreign)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "the pipeline \"%s\" does not write shards in parts",
                       io->pipeline->name);
    return ZARR_OK;
}

zarr_status zarr_shard_writer_open(zarr_shard_writer **out, zarr_array *array,
                                   const uint64_t *shard, const zarr_io_options *opts,
                                   zarr_error *err)
{
    *out = NULL;
    ZR_NEED(array, err);
    const zarr_allocator *alloc = array->h.ctx->alloc;
    zarr_shard_writer *w = zr_calloc(alloc, 1, sizeof *w);
    struct zr_io io = {0};
    zarr_status st = ZARR_OK;

    if (!w)
        return zr_fail_memory(err, sizeof *w);
    w->array = zarr_array_ref(array);
    w->state = zr_array_state_get(array);
    ZR_TRY(zr_io_options_read(&w->opts, opts, err));
    ZR_TRY(zr_array_io(&io, array, w->state, ZARR_DEVICE_CPU, &w->opts, err));
    io.view.base.device_type = ZARR_DEVICE_CPU;
    io.write = true;
    ZR_TRY(writer_check(w->state, &io, shard, err));
    ZR_TRY(zr_shard_session_open(&w->session, &io, shard, err));
    *out = w;
    w = NULL;
out:
    zarr_shard_writer_free(w);
    return zr_path_prefix(err, st, array->h.path);
}

int zarr_shard_writer_next(zarr_shard_writer *w, uint64_t max_bytes, uint64_t *start,
                           uint64_t *count)
{
    if (!w)
        return 0;
    const size_t bytes = (size_t)w->state->meta.ndim * sizeof *start;

    if (w->has_box || !zr_shard_session_next(w->session, max_bytes, start, count))
        return 0;
    memcpy(w->start, start, bytes);
    memcpy(w->count, count, bytes);
    w->has_box = true;
    return 1;
}

zarr_status zarr_shard_writer_write(zarr_shard_writer *w, const zarr_tensor *src,
                                    zarr_error *err)
{
    ZR_NEED(w, err);
    struct zr_io_call c = {.array = w->array, .state = w->state, .session = w->session};
    const struct zr_array_meta *m = &w->state->meta;
    zarr_selection *box = NULL;
    zarr_status st = ZARR_OK;

    if (!w->has_box)
        return zr_fail(err, ZARR_ERR_INVALID,
                       "zarr_shard_writer_next() has given no box to write");
    w->has_box = false;
    st = zarr_selection_box(&box, m->ndim, m->shape, w->start, w->count, err);
    if (st == ZARR_OK)
        st = zr_io_call_run(&c, box, src, &w->opts, true, err);
    zarr_selection_free(box);
    return st;
}

void zarr_shard_writer_free(zarr_shard_writer *w)
{
    zarr_context *ctx = w ? zarr_context_ref(w->array->h.ctx) : NULL;

    if (!w)
        return;
    zr_shard_session_free(w->session);
    zr_array_state_free(w->state);
    zarr_array_free(w->array);
    zr_free(ctx->alloc, w);
    zarr_context_free(ctx);
}
