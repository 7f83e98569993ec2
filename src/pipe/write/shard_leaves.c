/*
 * pipe/write/shard_leaves.c - the leaves of shards that are encoded together, stage by
 * stage (batch/encode.c): where their bytes go. If their lengths are known before the
 * last stage, or even before the first, the bytes go to their places in the shards; else
 * to slots, and shard_write.c appends them.
 * Thread class: on the worker context.
 */
#include "pipe/write/shard_int.h"

#include <string.h>

/* For struct zr_leaf_rooms: in the shards if the lengths are known, else in slots. */
static zarr_status late_leaf_rooms(void *arg, bool in_place, zarr_error *err)
{
    struct zr_shard_group *g = arg;
    zarr_status st = ZARR_OK;

    g->reserved = in_place;
    if (!in_place)
        ZR_TRY(zr_group_slots(g, err));
    for (uint32_t i = 0; i < g->n && in_place; i++) {
        g->reserves = g->owner[i];
        ZR_TRY(zr_shard_reserve(&g->writer[g->owner[i]], &g->leaf[i], err));
    }
    for (uint32_t i = 0; i < g->n; i++) {
        struct zr_leaf_write *lw = &g->leaf[i];

        if (lw->empty)
            continue;
        if (in_place ? !zr_shard_find_reserved(&g->writer[g->owner[i]], lw)
                     : !zr_mem_slice(&g->slots, i * g->slot_bytes, g->in->encoded_bound,
                                     &lw->room))
            return zr_internal(err);
    }
out:
    if (st != ZARR_OK && err)
        err->item = UINT64_MAX;
    return st;
}

/* Leaves whose lengths are known have rooms in their shards, as if none were empty. */
static zarr_status early_leaf_rooms(struct zr_shard_group *g, zarr_error *err)
{
    for (uint32_t i = 0; i < g->n; i++) {
        g->leaf[i].out.bytes = g->in->encoded_bound;
        g->leaf[i].filled = true;
    }
    return late_leaf_rooms(g, true, err);
}

/* Moves bytes of the value to the front. On a device all chunks are new and have the same
 * length, so a chunk and its new place do not overlap. */
static zarr_status move_bytes(struct zr_shard_writer *s, uint64_t to, uint64_t from,
                              uint64_t bytes, zarr_error *err)
{
    const struct zr_memory_registry *memory = s->w->io->engine->memory;
    const zarr_memory *value = &s->sw->block;
    zarr_memory dst, src;
    void *at = NULL;

    if (zr_device_is_host(memory, value->device_type)) {
        ZR_CHECK(zr_mem_host_ptr(memory, value, from + bytes, &at, err));
        memmove((unsigned char *)at + to, (unsigned char *)at + from, (size_t)bytes);
        return ZARR_OK;
    }
    if (!zr_mem_slice(value, to, bytes, &dst) || !zr_mem_slice(value, from, bytes, &src))
        return zr_internal(err);
    return zr_mem_copy_bytes(memory, &dst, &src, bytes, &s->w->worker->copies, err);
}

/* Closes the gaps that empty leaves left: chunks follow each other in the value as in the
 * index. */
static zarr_status close_gaps(struct zr_shard_writer *s, zarr_error *err)
{
    if (s->gap == UINT64_MAX)
        return ZARR_OK;
    s->pos = s->gap;
    s->any = false;
    for (uint64_t id = 0; id < s->next; id++) {
        uint64_t *pair = &s->pairs[2 * id];

        s->any |= pair[0] != ZR_INDEX_MISSING;
        if (pair[0] == ZR_INDEX_MISSING || pair[0] < s->gap)
            continue;
        ZR_CHECK(move_bytes(s, s->pos, pair[0], pair[1], err));
        pair[0] = s->pos;
        s->pos += pair[1];
    }
    s->gap = UINT64_MAX;
    return ZARR_OK;
}

/* Takes back the rooms of the leaves that turned out to be empty. */
static zarr_status early_answers(struct zr_shard_group *g, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (uint32_t i = 0; i < g->n; i++) {
        g->reserves = g->owner[i];
        zr_shard_note_answer(&g->writer[g->owner[i]], &g->leaf[i]);
        if (i + 1 == g->n || g->owner[i + 1] != g->owner[i])
            ZR_TRY(close_gaps(&g->writer[g->owner[i]], err));
    }
out:
    if (st != ZARR_OK && err)
        err->item = UINT64_MAX;
    return st;
}

zarr_status zr_group_encode_leaves(struct zr_shard_group *g, zarr_error *err)
{
    const struct zr_leaf_rooms rooms = {.take = late_leaf_rooms, .arg = g};

    if (g->known)
        ZR_CHECK(early_leaf_rooms(g, err));
    ZR_CHECK(
        zr_leaves_encode(g->w, g->leaf, g->n, g->threads, g->wait ? &rooms : NULL, err));
    if (g->known)
        ZR_CHECK(early_answers(g, err));
    return ZARR_OK;
}
