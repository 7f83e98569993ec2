/*
 * pipe/chunk/leaves.h - encodes one chunk of a write.
 * Thread class: on the worker context.
 */
#ifndef ZR_PIPE_LEAVES_H
#define ZR_PIPE_LEAVES_H

#include "pipe/request/request.h"

/* One leaf chunk to encode. */
struct zr_leaf_write {
    const struct zr_level *level;
    const struct zr_projection *proj;
    /* the level whose fill value it has if there is no old value; NULL: its own */
    const struct zr_level *missing;
    /* Its old encoded bytes; handle NULL: none. If proj->whole, an old value that cannot
     * be decoded is ignored. */
    zarr_memory old;
    /* from zr_leaf_room(), or host memory if encoding ends there; handle NULL: struct
     * zr_leaf_rooms sets it */
    zarr_memory room;
    /* for its elements, and for a copy of them on the host; handle NULL: scratch */
    zarr_memory block, host;
    /* out: in room, or the caller's own memory if it can be stored unchanged */
    zarr_memory out;
    bool must_stay; /* it is stored also if it equals the fill value */
    /* out: it equals the fill value of its level, and such chunks are not stored */
    bool empty;
    bool filled; /* out: it equals the array's fill value */
    bool direct; /* out: its elements were not copied (only zr_leaf_prepare() and
                    zr_leaf_encode() set it) */
    /* a pool block that the caller gives back; handle NULL: none */
    zarr_memory kept;
};
zarr_status zr_leaf_encode(const struct zr_work *w, struct zr_leaf_write *lw,
                           zarr_error *err);
/* After zr_leaf_encode(): moves bytes out of the worker's memory, which its next chunk
 * uses, to `room`, or to `kept` if there is no room or if buffers grow. */
zarr_status zr_leaf_keep(const struct zr_work *w, struct zr_leaf_write *lw,
                         zarr_error *err);
/* Whether the caller has each of the n elements of a chunk, those outside of the array's
 * shape included. */
bool zr_leaf_is_covered(const struct zr_projection *proj, uint64_t n);
/* Puts the chunk's old elements, or the fill value, into a block. */
zarr_status zr_leaf_before(const struct zr_work *w, const struct zr_leaf_write *lw,
                           const zarr_memory *block, zarr_error *err);
/* The first half of encoding: makes the elements as they are stored, copies them to *host
 * if the CPU cannot read them, and sets lw->empty. */
zarr_status zr_leaf_prepare(const struct zr_work *w, struct zr_leaf_write *lw,
                            zarr_memory *elements, zarr_memory *host, zarr_error *err);
/* Compares elements in host memory with the fill value, sets lw->empty and lw->filled,
 * and counts an empty leaf. */
zarr_status zr_leaf_compare(const struct zr_work *w, struct zr_leaf_write *lw,
                            const zarr_memory *elements, zarr_error *err);
/* The same with answers that are known. equal: its elements equal the
 * fill value of its level. filled: they equal that of the array. */
static inline void zr_leaf_note_answer(const struct zr_work *w, struct zr_leaf_write *lw,
                                       bool equal, bool filled)
{
    lw->empty = equal && !lw->must_stay;
    lw->filled = filled;
    w->worker->stats.chunks_missing += lw->empty;
}
/* Elements of n leaves of one level, in memory that the CPU cannot read, and the answers
 * for zr_leaf_note_answer(): two arrays if level->own_fill, else `filled` is `equal`. */
struct zr_leaf_answers {
    const zarr_memory *elements;
    uint64_t n;
    uint8_t *equal, *filled;
};
/* Compares them where they are. The answers are valid after zr_stream_sync(), or on
 * return if `stream` is NULL. */
zarr_status zr_leaves_ask(const struct zr_work *w, const struct zr_level *lv,
                          const struct zr_leaf_answers *a, struct zr_stream *stream,
                          zarr_error *err);
/* Takes scratch for the encoded chunk that becomes an object, in the memory that its
 * program ends in. Takes nothing if buffers grow. */
zarr_status zr_leaf_room(const struct zr_work *w, const struct zr_level *lv,
                         zarr_memory *out, zarr_error *err);

#endif
