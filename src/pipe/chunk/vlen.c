/*
 * pipe/chunk/vlen.c - elements of variable length. A decoded block of them points into
 * the encoded bytes, in the worker's buffers or in the store's memory. Only the elements
 * that are wanted are copied to the caller's heap, in one block per chunk. The encoded
 * size follows only from the elements, so their programs run with buffers that grow.
 * Decoders and encoders have separate buffers: in a read-modify-write, the new value is
 * encoded while its old elements still point into the decoder's. Thread class: on the
 * worker context.
 */
#include "pipe/chunk/chunk_int.h"

#include <string.h>

/* ---- unsized programs -------------------------------------------------- */

zarr_status zr_worker_decode_unsized(const struct zr_work *w, const struct zr_program *p,
                                     const zarr_memory *src, const zarr_memory *dst,
                                     zarr_memory *out, zarr_error *err)
{
    struct zr_worker *worker = w->worker;
    struct zr_unsized g = {.ts = &worker->states, .buffer = worker->decode_buffer};
    zarr_status st = ZARR_OK;

    worker->starved = false;
    st = zr_unsized_decode(p, &g, src, dst, out, err);
    if (st != ZARR_OK && worker->starved) {
        ZR_TRY(zr_worker_alone(worker, &w->rq->cancel, err));
        st = zr_unsized_decode(p, &g, src, dst, out, err);
    }
out:
    return st;
}

zarr_status zr_chunk_decode_unsized(const struct zr_work *w, const struct zr_program *p,
                                    const zarr_memory *src, const zarr_memory *last,
                                    zarr_memory *out, zarr_error *err)
{
    zarr_memory block = {0};

    if (last && last->handle)
        block = *last;
    else
        ZR_CHECK(zr_worker_scratch(w, ZR_SCRATCH_A, ZARR_DEVICE_CPU, p->decoded_bytes,
                                   &block, err));
    return zr_worker_decode_unsized(w, p, src, &block, out, err);
}

zarr_status zr_chunk_encode_unsized(const struct zr_work *w, const struct zr_program *p,
                                    const zarr_memory *src, zarr_memory *out,
                                    zarr_error *err)
{
    struct zr_unsized g = {.ts = &w->worker->states, .buffer = w->worker->encode_buffer};
    zarr_status st = ZARR_OK;

    w->worker->stats.bytes_decoded += src->bytes;
    w->worker->encodes = true;
    st = zr_unsized_encode(p, &g, src, NULL, out, err);
    w->worker->encodes = false;
    return st;
}

/* ---- elements ---------------------------------------------------------- */

struct vlen_boxes {
    const struct zr_work *w;
    uint8_t *to, *end; /* in the heap; NULL: only count */
    uint64_t bytes;    /* total counted */
};

static zarr_status side_address(const struct zr_work *w, const zarr_box_side *side,
                                uint8_t **out, zarr_error *err)
{
    zarr_memory at = side->mem;
    void *p = NULL;

    at.bytes = sizeof(zarr_vlen);
    ZR_CHECK(zr_mem_host_ptr(w->io->engine->memory, &at, sizeof(zarr_vlen), &p, err));
    *out = p;
    return ZARR_OK;
}

static zarr_status vlen_one(struct vlen_boxes *v, uint8_t *dst, const uint8_t *src,
                            zarr_error *err)
{
    zarr_vlen item;

    memcpy(&item, src, sizeof item);
    if (!v->to)
        return zr_add(v->bytes, item.bytes, &v->bytes)
                   ? ZARR_OK
                   : zr_fail(err, ZARR_ERR_LIMIT, "elements of more than 2^64 bytes");
    if (item.bytes > (uint64_t)(v->end - v->to))
        return zr_internal(err);
    if (item.bytes != 0)
        memcpy(v->to, item.data, (size_t)item.bytes);
    if (item.data) /* otherwise missing, or empty */
        item.data = v->to;
    v->to += item.bytes;
    memcpy(dst, &item, sizeof item);
    memcpy(dst + sizeof item, src + sizeof item,
           v->w->io->layout->item_bytes - sizeof item);
    return ZARR_OK;
}

/* Handles one box, element by element: dst is the view, src the chunk. */
static zarr_status vlen_box(void *arg, const zarr_box *box, zarr_error *err)
{
    struct vlen_boxes *v = arg;
    uint64_t at[ZARR_MAX_RANK] = {0};
    uint8_t *dst = NULL, *src = NULL;
    int32_t d = 0;

    for (int32_t i = 0; i < box->ndim; i++)
        if (box->shape[i] == 0)
            return ZARR_OK;
    ZR_CHECK(side_address(v->w, &box->dst, &dst, err));
    ZR_CHECK(side_address(v->w, &box->src, &src, err));
    do {
        ZR_CHECK(vlen_one(v, dst, src, err));
        for (d = box->ndim - 1; d >= 0; d--) {
            dst += box->dst.stride[d];
            src += box->src.stride[d];
            if (++at[d] < box->shape[d])
                break;
            dst -= box->dst.stride[d] * (int64_t)box->shape[d];
            src -= box->src.stride[d] * (int64_t)box->shape[d];
            at[d] = 0;
        }
    } while (d >= 0);
    return ZARR_OK;
}

static zarr_status vlen_room(const struct zr_work *w, uint64_t bytes, void **out,
                             zarr_error *err)
{
    if (!w->io->heap)
        return zr_internal(err);
    ZR_CHECK(zr_heap_alloc(w->io->heap, bytes, out, err));
    w->worker->stats.bytes_heap += bytes;
    return ZARR_OK;
}

zarr_status zr_vlen_scatter(const struct zr_work *w, const struct zr_program *p,
                            const struct zr_target *t, const zarr_memory *block,
                            zarr_error *err)
{
    const struct zr_boxes b = {.item_bytes = w->io->layout->item_bytes,
                               .swap_unit = w->io->layout->swap_unit,
                               .program = p,
                               .view = zr_target_view(w->io, t),
                               .chunk_mem = *block};
    struct vlen_boxes v = {.w = w};
    void *room = NULL;

    if (t->n_items == 0)
        return ZARR_OK;
    ZR_CHECK(zr_target_boxes(&b, t, vlen_box, &v, err));
    ZR_CHECK(vlen_room(w, v.bytes, &room, err));
    v.to = room;
    v.end = v.to + v.bytes;
    return zr_target_boxes(&b, t, vlen_box, &v, err);
}

zarr_status zr_vlen_fill(const struct zr_work *w, const struct zr_target *t,
                         struct zr_vlen_item *fill, zarr_error *err)
{
    const struct zr_layout *l = w->io->layout;
    void *room = NULL;

    if (l->item_bytes > sizeof *fill)
        return zr_internal(err);
    memcpy(fill, l->fill, l->item_bytes);
    if (t->n_items == 0)
        return ZARR_OK;
    ZR_CHECK(vlen_room(w, fill->item.bytes, &room, err));
    if (fill->item.bytes != 0)
        memcpy(room, fill->item.data, (size_t)fill->item.bytes);
    if (fill->item.data)
        fill->item.data = room;
    return ZARR_OK;
}
