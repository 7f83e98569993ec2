#include "pipeline.h"

#include <zarrc/chunks.h>
#include <zarrc/blocks.h>

#include <string.h>

zarr_status pipeline_open(struct pipeline *p, zarr_context *ctx, const char *document,
                          const char *path, zarr_store *chunks, zarr_error *err)
{
    zarr_array_open_options opts = ZARR_ARRAY_OPEN_OPTIONS_INIT;

    opts.flags = ZARR_OPEN_GRID_SHAPE;
    *p = (struct pipeline){.ctx = ctx};
    return zarr_array_open_document(&p->array, ctx, document, NULL, path, chunks, &opts,
                                    err);
}

void pipeline_close(struct pipeline *p)
{
    zarr_array_free(p->array);
    p->array = NULL;
}

/* ---- the selection of a batch ------------------------------------------------ */

static zarr_status find_origin(const struct pipeline *p, const struct item *it,
                               uint64_t *origin, zarr_error *err)
{
    uint64_t chunk[RANK];
    zarr_status st = zarr_array_block_of_key(p->array, it->key, chunk, err);

    return st ? st : zarr_array_block_extent(p->array, chunk, origin, NULL, err);
}

zarr_status pipeline_selection(const struct pipeline *p, const struct item *batch,
                               unsigned n, zarr_selection **out, zarr_error *err)
{
    const struct item *first = &batch[0], *last = &batch[n - 1];
    zarr_dim_selection dims[RANK] = {{0}};
    uint64_t origin[RANK];
    zarr_status st = find_origin(p, first, origin, err);

    if (st)
        return st;
    for (int d = 0; d < RANK; d++) {
        const uint64_t start = origin[d] + first->chunk[d].start;
        const uint64_t count = last->out[d].stop, step = first->chunk[d].step;

        dims[d].kind = ZARR_DIM_SLICE;
        dims[d].start = (int64_t)start;
        dims[d].stop = (int64_t)(start + (count - 1) * step + 1);
        dims[d].step = (int64_t)step;
    }
    return zarr_selection_dims(out, RANK, zarr_array_shape(p->array), RANK, dims, err);
}

/* ---- values that the language fetched ---------------------------------------- */

/* The values of a batch as the library takes them. The byte strings are kept. */
struct lent {
    zarr_block_batch batch;
    uint64_t chunk[DICT_KEYS * RANK];
    zarr_memory bytes[DICT_KEYS];
    struct bytes *kept[DICT_KEYS];
};

static zarr_status lend_one(struct lent *l, const struct pipeline *p, struct bytes *value,
                            const struct item *it, zarr_error *err)
{
    const uint64_t i = l->batch.n_blocks;

    l->kept[i] = bytes_keep(value);
    l->bytes[i] = (zarr_memory){.device_type = ZARR_DEVICE_CPU};
    if (value) {
        l->bytes[i].handle = value->data;
        l->bytes[i].bytes = value->n;
    }
    l->batch.n_blocks = i + 1;
    return zarr_array_block_of_key(p->array, it->key, &l->chunk[i * RANK], err);
}

static void lend_begin(struct lent *l)
{
    l->batch = (zarr_block_batch)ZARR_BLOCK_BATCH_INIT;
    l->batch.blocks = l->chunk;
    l->batch.bytes = l->bytes;
}

static void lend_end(struct lent *l)
{
    for (uint64_t i = 0; i < l->batch.n_blocks; i++)
        bytes_drop(l->kept[i]);
}

zarr_status pipeline_read(const struct pipeline *p, struct dict *values,
                          const struct item *batch, unsigned n, const zarr_tensor *out,
                          bool *present, zarr_error *err)
{
    struct lent l;
    zarr_selection *selection = NULL;
    zarr_status st = pipeline_selection(p, batch, n, &selection, err);

    lend_begin(&l);
    for (unsigned i = 0; i < n && !st; i++) {
        struct bytes *value = dict_get(values, batch[i].key);

        present[i] = value != NULL;
        st = lend_one(&l, p, value, &batch[i], err);
    }
    if (!st) {
        host_unlock();
        st = zarr_array_decode(p->array, selection, out, &l.batch, NULL, err);
        host_lock();
    }
    lend_end(&l);
    zarr_selection_free(selection);
    return st;
}

/* What a write hands back: the library's threads take the lock. */
struct sink {
    const struct pipeline *p;
    struct dict *values;
};

static zarr_status sink_put(void *user, const uint64_t *chunk, const zarr_memory *bytes,
                            zarr_error *err)
{
    struct sink *s = user;
    char key[64];
    zarr_status st = zarr_array_block_key(s->p->array, chunk, key, sizeof key, NULL, err);

    if (st)
        return st;
    host_lock();
    dict_set(s->values, key,
             bytes ? bytes_new((char *)bytes->handle + bytes->offset, bytes->bytes)
                   : NULL);
    host_unlock();
    return ZARR_OK;
}

zarr_status pipeline_write(const struct pipeline *p, struct dict *values,
                           const struct item *batch, unsigned n,
                           const zarr_tensor *elements, zarr_error *err)
{
    struct lent old;
    struct sink s = {p, values};
    zarr_block_sink sink = ZARR_BLOCK_SINK_INIT;
    zarr_selection *selection = NULL;
    zarr_status st = pipeline_selection(p, batch, n, &selection, err);

    sink.fn = sink_put;
    sink.user = &s;
    lend_begin(&old);
    for (unsigned i = 0; i < n && !st; i++) /* of a complete one no element remains */
        st = lend_one(&old, p, batch[i].complete ? NULL : dict_get(values, batch[i].key),
                      &batch[i], err);
    if (!st) {
        host_unlock();
        st = zarr_array_encode(p->array, selection, elements, &old.batch, &sink, NULL,
                               err);
        host_lock();
    }
    lend_end(&old);
    zarr_selection_free(selection);
    return st;
}

/* ---- values that the library asks for ---------------------------------------- */

static void reading_done(void *arg)
{
    struct reading *r = arg;
    int done = 0;
    zarr_error err = ZARR_ERROR_INIT;
    zarr_status st;

    host_unlock();
    st = zarr_request_wait(r->request, 0, &done, &err);
    zarr_request_free(r->request);
    host_lock();
    MUST(done);
    zarr_selection_free(r->selection);
    r->then(r, st, &err);
}

zarr_status pipeline_read_soon(const struct pipeline *p, const struct item *batch,
                               unsigned n, const zarr_tensor *out, zarr_cancel *cancel,
                               struct reading *r, zarr_error *err)
{
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    zarr_status st = pipeline_selection(p, batch, n, &r->selection, err);
    int fd = -1;

    if (st)
        return st;
    opts.cancel = cancel;
    host_unlock();
    st = zarr_array_read_submit(&r->request, p->array, r->selection, out, &opts, err);
    if (!st)
        st = zarr_request_fd(r->request, &fd, err);
    host_lock();
    if (!st)
        loop_watch(fd, reading_done, r);
    return st;
}
