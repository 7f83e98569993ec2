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

    *out = true;
    if (!p->padded)
        return ZARR_OK;
    ZR_CHECK(
        zr_mem_host_ptr(w->io->engine->memory, elements, p->decoded_bytes, &ptr, err));
    *out = zr_program_is_padded_well(p, ptr, p->decoded_bytes);
    return ZARR_OK;
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

/* Where the elements of a leaf are as they are stored. */
struct leaf_elements {
    zarr_memory at;
    bool is_callers; /* in the caller's memory; else in a block, which is to be filled */
    bool needs_old;  /* the block gets the old elements before those of the caller */
};

static zarr_status find_elements(const struct zr_work *w, struct zr_leaf_write *lw,
                                 struct leaf_elements *e, zarr_error *err)
{
    const struct zr_program *p = lw->level->encode;
    struct zr_target t;

    *e = (struct leaf_elements){.is_callers = false};
    if (!p)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "this build can read these codecs, not write them");
    w->worker->states.keep_empty = !w->io->skip_empty;
    w->worker->stats.elements += zr_projection_items(lw->proj);
    zr_target_borrow(&t, lw->proj);
    if (lw->proj->full && !w->on_host && zr_target_is_direct(w->io, p, &t, &e->at))
        ZR_CHECK(elements_as_is(w, p, &e->at, &e->is_callers, err));
    w->worker->stats.chunks_direct += e->is_callers;
    lw->direct = e->is_callers;
    if (e->is_callers)
        return ZARR_OK;
    e->needs_old = !zr_leaf_is_covered(lw->proj, p->decoded_bytes / p->item_bytes);
    e->at = lw->block;
    if (!e->at.handle)
        ZR_CHECK(zr_worker_scratch(w, ZR_SCRATCH_BLOCK,
                                   w->on_host ? ZARR_DEVICE_CPU : p->decoded_device,
                                   p->decoded_bytes, &e->at, err));
    return ZARR_OK;
}

/* Copies the caller's elements to the block. */
static zarr_status gather_elements(const struct zr_work *w,
                                   const struct zr_leaf_write *lw,
                                   const zarr_memory *block, zarr_error *err)
{
    const struct zr_program *p = lw->level->encode;
    struct zr_target t;
    void *elements = NULL;

    for (const struct zr_projection *q = lw->proj; q; q = q->next) {
        zr_target_borrow(&t, q); /* where parts overlap, the last one counts */
        ZR_CHECK(zr_gather_target(w, p, &t, block, err));
    }
    if (!p->padded)
        return ZARR_OK;
    ZR_CHECK(
        zr_mem_host_ptr(w->io->engine->memory, block, p->decoded_bytes, &elements, err));
    return zr_program_pad(p, elements, p->decoded_bytes, err);
}

zarr_status zr_leaf_compare(const struct zr_work *w, struct zr_leaf_write *lw,
                            const zarr_memory *elements, zarr_error *err)
{
    const struct zr_layout *l = w->io->layout;
    const struct zr_level *lv = lw->level;
    const struct zr_program *p = lv->encode;
    const uint64_t n = p->decoded_bytes / p->item_bytes;
    void *ptr = NULL;

    ZR_CHECK(
        zr_mem_host_ptr(w->io->engine->memory, elements, p->decoded_bytes, &ptr, err));
    lw->empty = zr_elements_equal(ptr, n, p->swap_bytes > 1 ? lv->fill_swapped : lv->fill,
                                  p->item_bytes, l->variable);
    lw->filled = lw->empty;
    if (lv->own_fill) /* the programs of such levels end in native order */
        lw->filled = zr_all_equal(ptr, n, l->fill, p->item_bytes);
    lw->empty = lw->empty && !lw->must_stay;
    w->worker->stats.chunks_missing += lw->empty;
    return ZARR_OK;
}

zarr_status zr_leaves_ask(const struct zr_work *w, const struct zr_level *lv,
                          const struct zr_leaf_answers *a, struct zr_stream *stream,
                          zarr_error *err)
{
    const struct zr_program *p = lv->encode;
    struct zr_equal_list list = {.src = a->elements,
                                 .n = a->n,
                                 .pattern =
                                     p->swap_bytes > 1 ? lv->fill_swapped : lv->fill,
                                 .item_bytes = p->item_bytes,
                                 .equal = a->equal};

    ZR_CHECK(
        zr_mem_equal_list(w->io->engine->memory, &list, stream, &w->worker->copies, err));
    if (a->filled == a->equal)
        return ZARR_OK;
    list.pattern = w->io->layout->fill;
    list.equal = a->filled;
    return zr_mem_equal_list(w->io->engine->memory, &list, stream, &w->worker->copies,
                             err);
}

/* Compares elements where they are, in memory that the CPU cannot read. */
static zarr_status compare_there(const struct zr_work *w, struct zr_leaf_write *lw,
                                 const zarr_memory *elements, zarr_error *err)
{
    uint8_t answer[2] = {0, 0};
    const struct zr_leaf_answers a = {.elements = elements,
                                      .n = 1,
                                      .equal = &answer[0],
                                      .filled = &answer[lw->level->own_fill ? 1 : 0]};

    ZR_CHECK(zr_leaves_ask(w, lw->level, &a, NULL, err));
    zr_leaf_note_answer(w, lw, *a.equal, *a.filled);
    return ZARR_OK;
}

/* Whether encoding begins with elements in host memory. */
static bool begins_on_host(const struct zr_work *w, const struct zr_program *p,
                           const zarr_memory *elements)
{
    return p->n == 0 ? !zr_store_device_direct(w->io->store, elements->device_type)
                     : p->stage[p->n - 1].kind == ZR_STAGE_COPY;
}

/* Fills the block, if there is one, and compares the elements with the fill value. If
 * encoding begins on the host, elements that the CPU cannot read are copied to *host
 * first; else only the answer comes to the host. */
static zarr_status take_elements(const struct zr_work *w, struct zr_leaf_write *lw,
                                 const struct leaf_elements *e, zarr_memory *host,
                                 zarr_error *err)
{
    const bool is_far =
        w->io->skip_empty && !zr_device_is_host(w->io->engine->memory, e->at.device_type);
    const bool stays = is_far && !begins_on_host(w, lw->level->encode, &e->at);

    if (!e->is_callers)
        ZR_CHECK(gather_elements(w, lw, &e->at, err));
    lw->empty = lw->filled = false;
    *host = e->at;
    if (is_far && !stays) {
        *host = lw->host;
        if (!host->handle)
            ZR_CHECK(zr_worker_scratch(w, ZR_SCRATCH_A, ZARR_DEVICE_CPU, e->at.bytes,
                                       host, err));
        w->worker->stats.copies_decoded_host++;
        ZR_CHECK(zr_mem_copy_bytes(w->io->engine->memory, host, &e->at, e->at.bytes,
                                   &w->worker->copies, err));
    }
    if (stays)
        ZR_CHECK(compare_there(w, lw, &e->at, err));
    else if (w->io->skip_empty)
        ZR_CHECK(zr_leaf_compare(w, lw, host, err));
    w->worker->stats.chunks_done++;
    return ZARR_OK;
}

zarr_status zr_leaf_prepare(const struct zr_work *w, struct zr_leaf_write *lw,
                            zarr_memory *elements, zarr_memory *host, zarr_error *err)
{
    struct leaf_elements e;

    ZR_CHECK(find_elements(w, lw, &e, err));
    *elements = e.at;
    if (e.needs_old)
        ZR_CHECK(zr_leaf_before(w, lw, elements, err));
    return take_elements(w, lw, &e, host, err);
}

/* Begins as zr_leaf_prepare(), which would be one more frame above a decoder. */
zarr_status zr_leaf_encode(const struct zr_work *w, struct zr_leaf_write *lw,
                           zarr_error *err)
{
    const struct zr_program *p = lw->level->encode;
    struct leaf_elements e;
    zarr_memory host = {0};

    ZR_CHECK(find_elements(w, lw, &e, err));
    if (e.needs_old)
        ZR_CHECK(zr_leaf_before(w, lw, &e.at, err));
    ZR_CHECK(take_elements(w, lw, &e, &host, err));
    if (lw->empty)
        return ZARR_OK;
    if (p->n == 0 && zr_store_device_direct(w->io->store, e.at.device_type)) {
        lw->out = e.at; /* stored unchanged */
        w->worker->stats.bytes_decoded += e.at.bytes;
        return ZARR_OK;
    }
    if (p->n == 0 || p->stage[p->n - 1].kind == ZR_STAGE_COPY)
        e.at = host; /* encoding starts from that copy */
    if (p->unsized)
        ZR_CHECK(zr_chunk_encode_unsized(w, p, &e.at, &lw->out, err));
    else
        ZR_CHECK(zr_chunk_encode(w, p, &e.at, &lw->room, &lw->out, err));
    return ZARR_OK;
}

zarr_status zr_leaf_keep(const struct zr_work *w, struct zr_leaf_write *lw,
                         zarr_error *err)
{
    const zarr_memory *scratch = w->worker->scratch;
    const void *at = lw->out.handle;
    zarr_memory from;
    bool to_pool = false;

    if (lw->empty || (!lw->level->unsized && at != scratch[ZR_SCRATCH_BLOCK].handle &&
                      at != scratch[ZR_SCRATCH_BODY].handle))
        return ZARR_OK;
    from = lw->out;
    to_pool = lw->level->unsized || !lw->room.handle;
    if (to_pool)
        ZR_CHECK(zr_pool_take(w->io->engine->pool, ZARR_DEVICE_CPU, 0,
                              ZR_MAX(from.bytes, UINT64_C(64)), &lw->kept, err));
    lw->out = to_pool ? lw->kept : lw->room;
    lw->out.bytes = from.bytes;
    return zr_mem_copy_bytes(w->io->engine->memory, &lw->out, &from, from.bytes,
                             &w->worker->copies, err);
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
