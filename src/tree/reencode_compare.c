/*
 * tree/reencode_compare.c - reads source and destination of a re-encoded array and
 * compares every bit.
 * Thread class: the caller's thread.
 */
#include "tree/reencode_int.h"

#include <string.h>

struct rereading {
    struct zr_reencode *r;
    const struct zr_reencode_pair *pair;
    struct zr_reencode_shape s;
    void *data[2];
    zarr_heap *heap[2]; /* for elements of variable length, else NULL */
};

static bool same_elements(const struct rereading *c)
{
    const zarr_dtype *type = zarr_array_dtype(c->pair->dst);
    const uint8_t *a = c->data[0], *b = c->data[1];
    const uint64_t n = c->s.boxes.n_items, bytes = c->s.item_bytes;

    if (!zarr_dtype_variable(type))
        return memcmp(a, b, (size_t)(n * bytes)) == 0;
    for (uint64_t i = 0; i < n; i++, a += bytes, b += bytes)
        if (zarr_dtype_compare(type, a, b) != 0)
            return false;
    return true;
}

static zarr_status reread_side(struct rereading *c, int side, zarr_error *err)
{
    const struct zr_box_walk *b = &c->s.boxes;
    zarr_array *array = side ? c->pair->dst : c->pair->src;
    zarr_io_options io = ZARR_IO_OPTIONS_INIT;
    zarr_selection *selection = NULL;
    zarr_tensor tensor;
    zarr_status st = ZARR_OK;

    zarr_tensor_host(&tensor, NULL, c->data[side], b->n_items * c->s.item_bytes, b->ndim,
                     b->count);
    ZR_TRY(zarr_selection_box(&selection, b->ndim, b->shape, b->start, b->count, err));
    if (zarr_dtype_variable(zarr_array_dtype(array))) {
        if (!c->heap[side])
            ZR_TRY(zarr_heap_create(&c->heap[side], c->r->ctx, 0, err));
        zarr_heap_clear(c->heap[side]);
    }
    io.heap = c->heap[side];
    io.cancel = c->r->opts.cancel;
    if (!side && c->r->opts.read) {
        tensor.dtype = zarr_array_dtype(c->pair->dst);
        st = c->r->opts.read(c->r->opts.read_user, array, b->start, &tensor, &io, err);
    } else {
        st = zarr_array_read(array, selection, &tensor, &io, err);
    }
out:
    zarr_selection_free(selection);
    return st;
}

static zarr_status they_differ(struct rereading *c, zarr_error *err)
{
    const struct zr_box_walk *b = &c->s.boxes;
    struct zr_str at;
    zarr_status st;

    zr_str_init(&at, c->r->ctx->alloc);
    for (int32_t d = 0; d < b->ndim; d++)
        zr_str_printf(&at, "%s%" PRIu64, d ? ", " : "", b->start[d]);
    c->r->result.differs = 1;
    st = zr_fail(err, ZARR_ERR_CORRUPT,
                 "/%s: elements of the destination differ in the box that begins at [%s]",
                 c->pair->path, zr_str_text(&at));
    zr_str_deinit(&at);
    return st;
}

static zarr_status reread_box(struct rereading *c, zarr_error *err)
{
    struct zr_reencode *r = c->r;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_cancel_check(r->opts.cancel, err));
    for (int side = 0; side < 2; side++)
        ZR_TRY(reread_side(c, side, err));
    if (!same_elements(c))
        ZR_TRY(they_differ(c, err));
    r->done_bytes = zr_add_cap(r->done_bytes, c->s.boxes.n_items * c->s.item_bytes);
    zr_reencode_progress(r, c->pair->path, 0);
out:
    return st;
}

/* Boxes in which neither has stored chunks have the fill value in both. */
static zarr_status reread_boxes(struct rereading *c, zarr_error *err)
{
    struct zr_coord_set stored = {0};
    bool sparse = false;
    zarr_status st = ZARR_OK;

    if (!c->s.in_parts) /* else a stored shard is in several boxes */
        ZR_TRY(
            zr_reencode_sparse(c->r, c->pair, &c->s.boxes, true, &stored, &sparse, err));
    for (size_t i = 0; sparse && i < stored.n; i++) {
        zr_box_walk_at(&c->s.boxes, zr_coord_set_item(&stored, i));
        ZR_TRY(reread_box(c, err));
    }
    while (!sparse && zr_box_walk_next(&c->s.boxes))
        ZR_TRY(reread_box(c, err));
out:
    zr_coord_set_deinit(&stored);
    return st;
}

zarr_status zr_reencode_compare(struct zr_reencode *r,
                                const struct zr_reencode_pair *pair, zarr_error *err)
{
    struct rereading c = {.r = r, .pair = pair};
    const zarr_allocator *alloc = r->ctx->alloc;
    const uint64_t before = r->done_bytes;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_reencode_shape(r, pair, &c.s, err));
    if (c.s.boxes.done)
        goto out;
    for (int side = 0; side < 2; side++)
        ZR_TRY(zr_reencode_buffer(r, &c.s, &c.data[side], err));
    ZR_TRY(reread_boxes(&c, err));
    ZR_TRY(zarr_array_recheck(pair->src, r->opts.cancel, err));
    r->done_bytes = zr_add_cap(before, zr_decoded_bytes(pair->dst));
out:
    for (int side = 0; side < 2; side++) {
        zarr_heap_free(c.heap[side]);
        zr_free(alloc, c.data[side]);
    }
    return st;
}
