/*
 * pipe/chunk/chunk.h - the door of one chunk: fetches it, runs its program, and copies
 * elements between a block and the caller's tensor; also the index of one shard and the
 * codecs around it.
 * Thread class: on the worker context.
 */
#ifndef ZR_PIPE_CHUNK_H
#define ZR_PIPE_CHUNK_H

#include "pipe/chunk/index_cache.h"
#include "pipe/chunk/leaves.h"
#include "pipe/chunk/segment.h"
#include "pipe/request/request.h"

/* A GET of a whole object of unknown length into a scratch slot. */
struct zr_fetch {
    const char *key;
    enum zr_scratch_slot slot;
    int32_t device_type; /* memory kind of the scratch; 0: host */
    /* likely upper bound; a longer object than `most` is refused */
    uint64_t expect, most;
    /* refuse a longer object with LIMIT instead of CORRUPT */
    bool gaps;
    zarr_store_version *version; /* out; NULL: not wanted */
};
zarr_status zr_fetch_object(const struct zr_work *w, const struct zr_fetch *f,
                            zarr_memory *out, zarr_error *err);
/* Returns the most bytes that an encoded object of this level may have. gaps: it may have
 * dead bytes, up to chunk_bytes in all, because it is fetched whole. */
uint64_t zr_encoded_most(const struct zr_io *io, uint64_t encoded_bound, bool exact,
                         bool gaps);
/* The same for a shard that is fetched whole, which may have dead bytes between its
 * chunks if no codec follows it; and for the output of a program. */
uint64_t zr_shard_most(const struct zr_io *io, const struct zr_level *lv);
uint64_t zr_program_most(const struct zr_io *io, const struct zr_program *p);
/* What encoded bytes beyond these bounds are: CORRUPT; but LIMIT if a limit of the
 * context is the bound, because they may be sound. */
zarr_status zr_excess(const struct zr_io *io);
/* A GET of a known number of bytes. */
struct zr_get {
    const char *key;
    struct zr_store_pin *pin; /* the version to read; NULL: any */
    uint64_t offset;          /* or ZARR_STORE_SUFFIX */
    zarr_memory dst;          /* is filled completely; fewer bytes are CORRUPT */
    /* length that the object must have if the store reports it; 0: any */
    uint64_t object_bytes;
    /* "chunk" or "shard" if the object was there a moment ago: NOT_FOUND becomes
     * CONFLICT. NULL: NOT_FOUND stays */
    const char *known;
    const zarr_store_version *version; /* that the object must have; NULL: any */
    bool counted;  /* an earlier GET of the same chunk was counted already */
    bool is_index; /* the range is the index of a shard */
    /* out, for the GET of a shard's index: the shard's length; else NULL */
    uint64_t *shard_bytes;
};
zarr_status zr_get(const struct zr_work *w, const struct zr_get *g, zarr_error *err);
/* Returns the pin of the object that contains a shard. */
struct zr_store_pin *zr_shard_pin(const struct zr_shard *s);
enum {
    ZR_CODING_SKIPS = 64
};
/* A chunk on its way through the stages of a program that is not unsized. */
struct zr_coding {
    const struct zr_program *p;
    zarr_memory cur; /* the chunk after the stages done */
    /* number of stages; decoding counts from the first, encoding from the last */
    uint32_t done;
    /* bit k: stage number k, counted as `done`, has a fallback and does not take this
     * chunk */
    uint64_t skip;
    uint32_t n_stayed; /* stages that left the chunk where it was */
};
/* Runs stages until `until` are done. The last of these puts its output at dst, or into
 * scratch if dst is NULL or has no handle. */
zarr_status zr_stages_run(const struct zr_work *w, struct zr_coding *c, uint32_t until,
                          const zarr_memory *dst, zarr_error *err);
/* Whether a chunk in host memory is better not copied by stage number `copy`: the codec
 * after it is on a device, and refuses the chunk. */
bool zr_stays_on_host(const struct zr_io *io, const struct zr_program *p, uint32_t copy,
                      const zarr_memory *encoded);
/* Ends the decoding of a chunk: counts it, checks its length, and gives padded elements
 * the form that memory has. src: the output of the last stage. */
zarr_status zr_decode_end(const struct zr_work *w, const struct zr_program *p,
                          const zarr_memory *src, zarr_memory *out, zarr_error *err);
/* Decodes a chunk completely. dst: place for the elements (its bytes must be the decoded
 * size); NULL or without a handle: scratch. *out: where they are. */
zarr_status zr_chunk_decode(const struct zr_work *w, const struct zr_program *p,
                            const zarr_memory *src, const zarr_memory *dst,
                            zarr_memory *out, zarr_error *err);
/* Whether a decoder takes its input where it is. */
bool zr_stage_takes_at(const struct zr_io *io, const struct zr_stage *s,
                       const zarr_memory *encoded);
/* The box of a whole block. */
void zr_fill_box(zarr_box *box, const struct zr_layout *l, const struct zr_program *p,
                 const zarr_memory *block);
/* Gives padded elements of a block, just decoded or read, the form that memory has. The
 * block has any whole number of elements. */
zarr_status zr_block_unpad(const struct zr_work *w, const struct zr_program *p,
                           const zarr_memory *block, zarr_error *err);
/* Returns true if the target is the whole chunk and the view holds it in exactly the
 * program's layout; then *at is the place. */
bool zr_target_is_direct(const struct zr_io *io, const struct zr_program *p,
                         const struct zr_target *t, zarr_memory *at);
/* What zr_ops_run() notes and does when an operation ends. */
struct zr_ops_watch {
    /* Called when operation i ends, on any thread. In a forked child it is called with
     * `is_lost` for each operation: they do not end there. NULL: not wanted. */
    void (*ended)(void *arg, uint32_t i, bool is_lost);
    void *arg;
    /* out: the operation that failed, the first in order, and its error; UINT32_MAX: none
     */
    uint32_t failed;
    zarr_error error;
};
/* Runs n operations, several at once, and waits for all. Those whose status is OK already
 * are only counted. watch NULL: the caller looks at each status. NOT_FOUND is no failure,
 * nor is the CONFLICT of a write IF_VERSION. */
zarr_status zr_ops_run(const struct zr_io *io, struct zarr_request *rq, zarr_store_op *op,
                       uint32_t n, struct zr_ops_watch *watch, struct zr_arena *arena,
                       zarr_error *err);
/* Runs one store operation and counts it. */
zarr_status zr_store_op_run(const struct zr_work *w, zarr_store_op *op, zarr_error *err);

/* ---- shards: their index, and the codecs around them ------------------------------ */

/* An encoded index. own: the memory of zr_index_memory() that `encoded` is in, or NULL.
 */
struct zr_index_value {
    zarr_memory encoded;
    uint64_t *own;
    uint64_t shard_bytes; /* length of the shard's value; UINT64_MAX: unknown */
};
/* Gives memory for an encoded index, from the allocator. The index can be decoded there,
 * so that it is in memory only once. */
zarr_status zr_index_memory(const struct zr_work *w, const struct zr_level *lv,
                            uint64_t **own, zarr_memory *out, zarr_error *err);
/* Decodes and checks an encoded index. Takes over value->own, also if it fails. */
zarr_status zr_index_parse(const struct zr_work *w, const struct zr_level *lv,
                           const struct zr_index_value *value,
                           struct zr_shard_index **out, zarr_error *err);
/* Parses the index of a shard value held in host memory. */
zarr_status zr_index_from_value(const struct zr_work *w, const struct zr_level *lv,
                                const zarr_memory *value, struct zr_shard_index **out,
                                zarr_error *err);

/* Encodes n_inner_all pairs by the index chain. dst has level->index_bytes. */
zarr_status zr_index_encode(const struct zr_work *w, const struct zr_level *lv,
                            uint64_t *pairs, const zarr_memory *dst, zarr_error *err);
/* Run the codecs around a shard backward (encode) into a pool block, or forward (decode).
 * The caller gives *block back; the result is its first bytes. */
zarr_status zr_body_encode(const struct zr_work *w, const struct zr_level *lv,
                           const zarr_memory *value, zarr_memory *block, zarr_memory *out,
                           zarr_error *err);
zarr_status zr_body_decode(const struct zr_work *w, const struct zr_level *lv,
                           const zarr_memory *encoded, zarr_memory *block,
                           zarr_memory *out, zarr_error *err);
#endif
