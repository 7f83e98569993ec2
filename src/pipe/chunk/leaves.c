/*
 * pipe/chunk/leaves.c - encodes one leaf chunk: makes its new elements, finds out whether
 * they all equal the fill value, and runs its program backward. Chunks without a shard
 * come from units.c, those of a shard from shard_write.c. If the caller overwrites every
 * element inside the shape, a damaged old value is ignored.
 * Thread class: on the worker context.
 */
#include "pipe/chunk/chunk_int.h"

zarr_status zr_leaf_before(const struct zr_work *w, const struct zr_leaf_write *lw,
                           const zarr_memory *block, zarr_error *err)
{
    const struct zr_program *p = lw->level->decode;
    zarr_memory got = *block;
    zarr_error e = {0};
    zarr_status st = ZARR_ERR_NOT_FOUND;

    if (lw->old.handle) {
        const bool direct =
            p->n > 0 && p->decoded_device == block->device_type && !w->on_host;

        st = zr_chunk_decode(w, p, &lw->old, direct ? block : NULL, &got, &e);
    }
    if (st == ZARR_ERR_NOT_FOUND || (st == ZARR_ERR_CORRUPT && lw->proj->whole))
        return zr_fill_block(w, lw->missing ? lw->missing : lw->level, lw->level->encode,
                             block, err);
    if (st == ZARR_OK && (got.handle != block->handle || got.offset != block->offset))
        return zr_mem_copy_bytes(w->io->engine->memory, block, &got, got.bytes,
                                 &w->worker->copies, err);
    if (st != ZARR_OK && err)
        *err = e;
    return st;
}

/* Whether the caller's elements may be stored unchanged, padding bits included. */
static zarr_status elements_as_is(const struct zr_work *w, const struct zr_program *p,
                                  const zarr_memory *elements, bool *out, zarr_error *err)
{
    void *ptr = NULL;
    zarr_status st = ZARR_OK;

    *out = true;
    if (!p->padded)
        return ZARR_OK;
    ZR_TRY(zr_mem_host_ptr(w->io->engine->memory, elements, p->decoded_bytes, &ptr, err));
    *out = zr_program_is_padded_well(p, ptr, p->decoded_bytes);
out:
    return st;
}

bool zr_leaf_is_covered(const struct zr_projection *proj, uint64_t n)
{
    if (!proj->next)
        return proj->full && proj->n_items == n;
    for (int32_t d = 0; d < proj->ndim; d++)
        if (proj->valid[d] != proj->shape[d])
            return false;
    return proj->full;
}

/* Finds the chunk's elements as they are stored: the caller's memory if it has them so,
 * else a block. */
static zarr_status leaf_elements(const struct zr_work *w, const struct zr_leaf_write *lw,
                                 zarr_memory *out, zarr_error *err)
{
    const struct zr_program *p = lw->level->encode;
    struct zr_target t;
    const bool full = zr_leaf_is_covered(lw->proj, p->decoded_bytes / p->item_bytes);
    zarr_status st = ZARR_OK;

    w->worker->stats.elements += zr_projection_items(lw->proj);
    zr_target_borrow(&t, lw->proj);
    if (lw->proj->full && !w->on_host && zr_target_is_direct(w->io, p, &t, out)) {
        bool as_is = true;

        ZR_TRY(elements_as_is(w, p, out, &as_is, err));
        if (as_is) {
            w->worker->stats.chunks_direct++;
            return ZARR_OK;
        }
    }
    *out = lw->block;
    if (!out->handle)
        ZR_TRY(zr_worker_scratch(w, ZR_SCRATCH_BLOCK,
                                 w->on_host ? ZARR_DEVICE_CPU : p->decoded_device,
                                 p->decoded_bytes, out, err));
    if (!full)
        ZR_TRY(zr_leaf_before(w, lw, out, err));
    for (const struct zr_projection *q = lw->proj; q; q = q->next) {
        zr_target_borrow(&t, q); /* where parts overlap, the last one counts */
        ZR_TRY(zr_gather_target(w, p, &t, out, err));
    }
    if (p->padded) {
        void *elements = NULL;

        ZR_TRY(zr_mem_host_ptr(w->io->engine->memory, out, p->decoded_bytes, &elements,
                               err));
        ZR_TRY(zr_program_pad(p, elements, p->decoded_bytes, err));
    }
out:
    return st;
}

zarr_status zr_leaf_compare(const struct zr_work *w, struct zr_leaf_write *lw,
                            const zarr_memory *elements, zarr_error *err)
{
    const struct zr_layout *l = w->io->layout;
    const struct zr_level *lv = lw->level;
    const struct zr_program *p = lv->encode;
    const uint64_t n = p->decoded_bytes / p->item_bytes;
    void *ptr = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_mem_host_ptr(w->io->engine->memory, elements, p->decoded_bytes, &ptr, err));
    lw->empty = zr_elements_equal(ptr, n, p->swap_bytes > 1 ? lv->fill_swapped : lv->fill,
                                  p->item_bytes, l->variable);
    lw->filled = lw->empty;
    if (lv->own_fill) /* the programs of such levels end in native order */
        lw->filled = zr_all_equal(ptr, n, l->fill, p->item_bytes);
    w->worker->stats.chunks_missing += lw->empty;
out:
    return st;
}

/* Compares the elements with the fill value. Copies elements that the CPU cannot read to
 * *host, where encoding may continue. */
static zarr_status is_empty(const struct zr_work *w, struct zr_leaf_write *lw,
                            const zarr_memory *elements, zarr_memory *host,
                            zarr_error *err)
{
    zarr_status st = ZARR_OK;

    lw->empty = lw->filled = false;
    *host = *elements;
    if (!w->io->skip_empty)
        return ZARR_OK;
    if (!zr_device_is_host(w->io->engine->memory, elements->device_type)) {
        *host = lw->host;
        if (!host->handle)
            ZR_TRY(zr_worker_scratch(w, ZR_SCRATCH_A, ZARR_DEVICE_CPU, elements->bytes,
                                     host, err));
        w->worker->stats.copies_decoded_host++;
        ZR_TRY(zr_mem_copy_bytes(w->io->engine->memory, host, elements, elements->bytes,
                                 &w->worker->copies, err));
    }
    ZR_TRY(zr_leaf_compare(w, lw, host, err));
out:
    return st;
}

zarr_status zr_leaf_prepare(const struct zr_work *w, struct zr_leaf_write *lw,
                            zarr_memory *elements, zarr_memory *host, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (!lw->level->encode)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "this build can read these codecs, not write them");
    w->worker->states.keep_empty = !w->io->skip_empty;
    ZR_TRY(leaf_elements(w, lw, elements, err));
    ZR_TRY(is_empty(w, lw, elements, host, err));
    w->worker->stats.chunks_done++;
out:
    return st;
}

zarr_status zr_leaf_encode(const struct zr_work *w, struct zr_leaf_write *lw,
                           zarr_error *err)
{
    const struct zr_program *p = lw->level->encode;
    zarr_memory elements = {0}, host = {0};
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_leaf_prepare(w, lw, &elements, &host, err));
    if (lw->empty)
        goto out;
    if (p->n == 0 && zr_store_device_direct(w->io->store, elements.device_type)) {
        lw->out = elements; /* stored unchanged */
        w->worker->stats.bytes_decoded += elements.bytes;
        goto out;
    }
    if (p->n == 0 || p->stage[p->n - 1].kind == ZR_STAGE_COPY)
        elements = host; /* encoding starts from that copy */
    if (p->unsized)
        ZR_TRY(zr_chunk_encode_unsized(w, p, &elements, &lw->out, err));
    else
        ZR_TRY(zr_chunk_encode(w, p, &elements, &lw->room, &lw->out, err));
out:
    return st;
}

zarr_status zr_leaf_room(const struct zr_work *w, const struct zr_level *lv,
                         zarr_memory *out, zarr_error *err)
{
    int32_t device =
        lv->encode && !w->on_host ? lv->encode->fetch_device : ZARR_DEVICE_CPU;

    *out = (zarr_memory){0};
    if (lv->unsized || (lv->encode && lv->encode->n == 0 &&
                        zr_store_device_direct(w->io->store, device)))
        return ZARR_OK;
    return zr_worker_scratch(w, ZR_SCRATCH_BODY, device, lv->encoded_bound, out, err);
}
