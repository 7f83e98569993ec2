/*
 * pipe/chunk/fetch.c - moves encoded bytes from the store into a worker's scratch: whole
 * objects of unknown length, and exact ranges of pinned objects. The expected size of an
 * object comes from metadata. An object longer than its codecs allow is refused before
 * memory is taken for it.
 * Thread class: on the worker context.
 */
#include "pipe/chunk/chunk_int.h"

enum {
    OBJECT_SLACK = 64 * 1024
};

zarr_status zr_store_op_run(const struct zr_work *w, zarr_store_op *op, zarr_error *err)
{
    op->cancel = &w->rq->cancel;
    (void)zr_store_run_one(w->io->store, op, err);
    zr_worker_count(w->worker, op);
    return op->status;
}

uint64_t zr_encoded_most(const struct zr_io *io, uint64_t encoded_bound, bool exact,
                         bool gaps)
{
    const zarr_limits *limits = io->engine->limits;
    uint64_t most = encoded_bound, slack = encoded_bound / 10 + OBJECT_SLACK;

    if (limits->encoded_bytes != 0)
        return limits->encoded_bytes;
    if (!exact && !zr_add(most, slack, &most))
        most = UINT64_MAX;
    return gaps ? ZR_MAX(most, limits->chunk_bytes) : most;
}

uint64_t zr_shard_most(const struct zr_io *io, const struct zr_level *lv)
{
    return zr_encoded_most(io, lv->encoded_most, false, !lv->bytes_decode);
}

uint64_t zr_program_most(const struct zr_io *io, const struct zr_program *p)
{
    return zr_encoded_most(io, p->encoded_most, p->encoded_exact, p->gaps);
}

zarr_status zr_excess(const struct zr_io *io)
{
    return io->engine->limits->encoded_bytes != 0 ? ZARR_ERR_LIMIT : ZARR_ERR_CORRUPT;
}

static zarr_status too_long(const struct zr_io *io, const struct zr_fetch *f,
                            uint64_t bytes, zarr_error *err)
{
    if (f->gaps)
        return zr_fail_limit(
            err, io->engine->limits->encoded_bytes != 0 ? "encoded_bytes" : "chunk_bytes",
            f->most, "a shard of %" PRIu64 " bytes must be fetched whole", bytes);
    if (zr_excess(io) == ZARR_ERR_LIMIT)
        return zr_fail_limit(err, "encoded_bytes", f->most,
                             "the object has %" PRIu64 " bytes", bytes);
    return zr_fail(err, ZARR_ERR_CORRUPT,
                   "the object has %" PRIu64
                   " bytes, but its chunk can have at most %" PRIu64,
                   bytes, f->most);
}

/* A GET without a copy, if the store has the bytes in memory of the kind that op->mem
 * names. */
static bool lend(const struct zr_work *w, zarr_store_op *op, zarr_memory *out)
{
    if (w->own_bytes || !zr_store_lend(w->io->store, op))
        return false;
    zr_worker_count(w->worker, op);
    *out = op->mem;
    return true;
}

bool zr_lend_range(const struct zr_work *w, const struct zr_get *g, zarr_memory *out)
{
    zarr_store_op op = {.verb = ZARR_STORE_GET,
                        .flags = g->pin ? ZR_STORE_OP_PINNED : 0,
                        .lock = g->pin,
                        .key = g->key,
                        .offset = g->offset,
                        .length = g->dst.bytes,
                        .mem = g->dst};

    /* a range that ends early is left to the GET, which reports it */
    return lend(w, &op, out) && op.done_bytes == g->dst.bytes;
}

zarr_status zr_fetch_object(const struct zr_work *w, const struct zr_fetch *f,
                            zarr_memory *out, zarr_error *err)
{
    zarr_store_op op = {.verb = ZARR_STORE_GET,
                        .flags = ZARR_STORE_OP_CHUNK,
                        .key = f->key,
                        .length = ZARR_STORE_TO_END};
    int32_t device = f->device_type != 0 ? f->device_type : ZARR_DEVICE_CPU;
    uint64_t room = ZR_MIN(f->expect, f->most);
    zarr_status st = ZARR_OK;

    op.mem.device_type = device;
    if (lend(w, &op, out)) {
        if (out->bytes > f->most)
            st = too_long(w->io, f, out->bytes, err);
        goto out;
    }
    if (f->version)
        op.flags |= ZARR_STORE_OP_WANT_VERSION;
    for (int tries = 0; tries < 4; tries++) {
        op.object_bytes = UINT64_MAX;
        ZR_TRY(zr_worker_scratch(w, f->slot, device, room, &op.mem, err));
        st = zr_store_op_run(w, &op, err);
        if (st == ZARR_ERR_NOT_FOUND && tries > 0)
            st = zr_fail(err, ZARR_ERR_CONFLICT,
                         "the object was deleted while it was read");
        ZR_TRY(st);
        if (f->version)
            *f->version = op.version;
        if (op.object_bytes == UINT64_MAX || op.object_bytes <= op.done_bytes) {
            *out = op.mem;
            out->bytes = op.done_bytes;
            goto out;
        }
        /* The object is longer than expected, or has grown: fetch it again with its real
         * length. */
        if (op.object_bytes > f->most)
            ZR_TRY(too_long(w->io, f, op.object_bytes, err));
        room = op.object_bytes;
    }
    st = zr_fail(err, ZARR_ERR_CONFLICT, "the object keeps growing while it is read");
out:
    return st;
}

struct zr_store_pin *zr_shard_pin(const struct zr_shard *s)
{
    while (s->parent)
        s = s->parent;
    return s->held;
}

/* Checks the length of the object, if the store reports it, and the number of bytes
 * read. */
static zarr_status get_check(const struct zr_get *g, const zarr_store_op *op,
                             zarr_error *err)
{
    uint64_t has = op->object_bytes;

    if (g->object_bytes == 0 || has == UINT64_MAX || has == g->object_bytes) {
        if (op->done_bytes == g->dst.bytes)
            return ZARR_OK;
        if (g->shard_bytes)
            return zr_fail(err, ZARR_ERR_CORRUPT,
                           "a shard of %" PRIu64
                           " bytes cannot hold its index of %" PRIu64,
                           op->done_bytes, g->dst.bytes);
        if (op->length != ZARR_STORE_TO_END)
            return zr_fail(err, ZARR_ERR_CORRUPT,
                           "bytes %" PRIu64 "+%" PRIu64 " end after %" PRIu64
                           ": the object is short",
                           g->offset, g->dst.bytes, op->done_bytes);
        has = op->done_bytes;
    }
    return zr_fail(err, ZARR_ERR_CORRUPT,
                   "chunk has %" PRIu64
                   " bytes where its shape and data type need %" PRIu64,
                   has, g->object_bytes);
}

zarr_status zr_get(const struct zr_work *w, const struct zr_get *g, zarr_error *err)
{
    const bool whole = g->object_bytes != 0 && g->object_bytes == g->dst.bytes;
    zarr_store_op op = {.verb = ZARR_STORE_GET,
                        .flags =
                            (g->pin ? ZR_STORE_OP_PINNED : 0) |
                            (g->is_index ? ZARR_STORE_OP_INDEX : ZARR_STORE_OP_CHUNK),
                        .lock = g->pin,
                        .key = g->key,
                        .offset = g->offset,
                        .length = whole ? ZARR_STORE_TO_END : g->dst.bytes,
                        .mem = g->dst,
                        .object_bytes = UINT64_MAX};

    if (g->dst.bytes == 0)
        return ZARR_OK;
    if (g->version) {
        op.flags |= ZARR_STORE_OP_IF_VERSION;
        op.version = *g->version;
    }
    op.cancel = &w->rq->cancel;
    (void)zr_store_run_one(w->io->store, &op, err);
    if (g->counted)
        zr_worker_count_bytes(w->worker, &op);
    else
        zr_worker_count(w->worker, &op);
    if (g->shard_bytes)
        *g->shard_bytes = op.object_bytes;
    if (op.status == ZARR_ERR_NOT_FOUND && g->known)
        return zr_fail(err, ZARR_ERR_CONFLICT, "the %s was deleted while it was read",
                       g->known);
    return op.status == ZARR_OK ? get_check(g, &op, err) : op.status;
}
