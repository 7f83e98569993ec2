/*
 * coalesce/coalesce.h - the door to merged reads, for stores that have
 * ZARR_STORE_CAP_COALESCES. Such a store gets all ranges of one submit() unmerged. This
 * room decides which of them one request fetches, from the latency and the bandwidth that
 * the store measured. The bytes of an answer may come in pieces of any size. They are
 * copied to the memory of the operations at once, and those between the ranges are
 * discarded: no answer is ever in memory as a whole. The room does no I/O.
 *
 * A store calls zr_joint_reads_make() in its submit(). For each request it calls
 * zr_joint_read_begin() when the headers of the answer are there, zr_joint_read_take()
 * for the bytes, and zr_joint_read_end() once.
 *
 * Thread class: a request is solo; several requests of one merge may be in several
 * threads. Estimates are shared.
 */
#ifndef ZR_COALESCE_H
#define ZR_COALESCE_H

#include <stdatomic.h>

#include "base/base.h"
#include "mem/mem.h"
#include <zarrc/plugin/store.h>

/* ---- what merging costs and saves --------------------------------------------- */

struct zr_joint_rules {
    uint64_t gap;   /* most bytes between two ranges of a request; they are discarded */
    uint64_t waste; /* of all gaps of a request: at most so many, or as many as it uses */
    uint64_t bytes; /* longest request, except for one operation that is longer alone */
};

/* Moving averages of what a store measures. Zeroed storage is an estimate without
 * samples. */
struct zr_estimate {
    atomic_uint_fast64_t latency_ns, bytes_per_s; /* 0: no sample yet */
};
/* Adds a request that took wait_ns until the first byte came, and transfer_ns from there
 * to the last of its bytes. Short transfers tell nothing of the bandwidth. */
void zr_estimate_add(struct zr_estimate *e, uint64_t wait_ns, uint64_t transfer_ns,
                     uint64_t bytes);
/* A gap may cost as much time as the request that it saves. But requests run side by
 * side, so a few ranges that are far from each other stay apart. */
void zr_estimate_rules(struct zr_estimate *e, struct zr_joint_rules *out);

/* ---- requests -------------------------------------------------------------------- */

/* An operation of a request. */
struct zr_joint_piece {
    zarr_store_op *op;
    uint8_t *to;       /* op->mem */
    uint64_t from, n;  /* the range of the value that goes there */
    bool needs_length; /* of the value, whatever its length is */
    struct zr_joint_piece *next;
};

/* Operations on one object that one request answers. A store reads the members up to n.
 */
struct zr_joint_read {
    const char *key;
    uint32_t flags; /* ZARR_STORE_OP_KIND of the first operation; IF_VERSION; WANT_VERSION
                       if one of them has it */
    zarr_store_version version; /* with IF_VERSION */
    const zarr_cancel *cancel;  /* of all of them */
    uint64_t offset;            /* ZARR_STORE_SUFFIX: the last `bytes` bytes */
    uint64_t bytes;             /* 0: only length, version and existence are asked for */
    struct zr_joint_piece *piece;
    size_t n;
    /* of this room */
    struct zr_joint_reads *all;
    uint64_t wasted;       /* of `bytes`: in gaps */
    uint64_t at, pos;      /* the bytes [at, pos) of the value have come */
    uint64_t object_bytes; /* UINT64_MAX: unknown */
    uint64_t wanted_end;   /* where the last range ends */
    size_t n_begun;
    struct zr_joint_piece *active; /* begun and not complete */
};

struct zr_joint_reads {
    const zarr_allocator *alloc;
    struct zr_joint_read *request; /* n_requests of them */
    size_t n_requests;
    atomic_size_t n_left;
};

/* Merges n >= 1 GETs and STATs; a STAT is a GET of 0 bytes. Those of one request have the
 * same key, cancel object and expected version. The operations, but not the array of
 * pointers, are borrowed until done() is called for them. *out is freed by
 * zr_joint_read_end() of its last request. Fails if the host cannot reach the memory of
 * an operation, or knows no such memory. */
zarr_status zr_joint_reads_make(struct zr_joint_reads **out, const zarr_allocator *alloc,
                                const struct zr_memory_registry *memory,
                                zarr_store_op *const *ops, size_t n,
                                const struct zr_joint_rules *rules, zarr_error *err);

/* An answer begins with byte `at` of the value, which may be before the request's first
 * byte (a server that ignores ranges). object_bytes: length of the whole value;
 * UINT64_MAX: unknown. A repeated request calls it again, and all bytes come again. IO:
 * the answer begins too late, or a suffix has no known place. */
zarr_status zr_joint_read_begin(struct zr_joint_read *r, uint64_t at,
                                uint64_t object_bytes, zarr_error *err);
/* Takes the next n bytes. Returns false once all that the operations need has come: the
 * store may end the transfer. */
bool zr_joint_read_take(struct zr_joint_read *r, const void *bytes, size_t n);

/* How a request ended. */
struct zr_joint_answer {
    zarr_status status;                /* of all its operations, unless it is OK */
    const zarr_error *err;             /* for a status that is not OK */
    uint64_t object_bytes;             /* UINT64_MAX: unknown, or as at the beginning */
    const zarr_store_version *version; /* NULL: the store has none */
};
/* Sets the results of each operation and calls done(arg, op, err) for it. A range whose
 * bytes did not all come is IO. A range after the end of the value has 0 bytes: a 416 is
 * an answer without zr_joint_read_begin(). The request, and with the last one all of
 * them, is freed before the last done(). */
void zr_joint_read_end(struct zr_joint_read *r, const struct zr_joint_answer *answer,
                       void (*done)(void *arg, zarr_store_op *op, const zarr_error *err),
                       void *arg);

#endif
