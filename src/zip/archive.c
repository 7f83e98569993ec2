/*
 * zip/archive.c - the archive as a run of bytes: ranges of one value of the store below.
 * Each read compares the version of the value, or its length if the store has no
 * versions. So all reads are of the archive whose directory was read, or fail. In a
 * session each append gives the archive another version, which a read that was just
 * planned may not know: such a read is repeated. No other program writes the parts of a
 * draft.
 * Thread class: shared; windows are solo.
 */
#include "zip/zip_int.h"

#include <string.h>

/* A handle that can write reads the directory again, and repeats the read. In another
 * handle the same read would fail again. */
zarr_status zr_zip_fail_changed(const struct zr_zip_archive *a,
                                const struct zr_zip_caller *caller, zarr_error *err)
{
    if (caller->has_changed)
        *caller->has_changed = true;
    return zr_fail(err, ZARR_ERR_IO,
                   "%s: the archive changed after it was opened: open it again", a->key);
}

/* An archive is no metadata document, so of a composite store it is with the chunks. */
static bool has_versions(const struct zr_zip_archive *a)
{
    return (a->caps.chunk_flags & ZARR_STORE_CAP_VERSIONS) != 0;
}

/* Checks an operation that succeeded. */
static zarr_status check_version(const struct zr_zip_archive *a,
                                 const struct zr_zip_caller *caller,
                                 const zarr_store_op *op, zarr_error *err)
{
    if (a->parts)
        return ZARR_OK;
    if (has_versions(a) && !zr_store_version_equal(&op->version, &a->version))
        return zr_zip_fail_changed(a, caller, err);
    if (!a->in_session && op->object_bytes != UINT64_MAX && op->object_bytes != a->bytes)
        return zr_zip_fail_changed(a, caller, err);
    return ZARR_OK;
}

zarr_store_op zr_zip_read_op(const struct zr_zip_archive *a, uint64_t at, uint64_t n,
                             const zarr_memory *mem, const struct zr_zip_caller *caller)
{
    zarr_store_op op = {.verb = ZARR_STORE_GET,
                        .flags = caller->kind,
                        .key = a->key,
                        .offset = at,
                        .length = n,
                        .mem = *mem,
                        .cancel = caller->cancel};

    if (a->parts) {
        op.flags |= ZARR_STORE_OP_IN_PARTS;
        op.parts = a->parts;
        return op;
    }
    if (has_versions(a))
        op.flags |= ZARR_STORE_OP_WANT_VERSION;
    if (!a->in_session &&
        a->version.bytes[0] > 0) { /* a server need not send bytes of another version */
        op.flags |= ZARR_STORE_OP_IF_VERSION;
        op.version = a->version;
    }
    return op;
}

static bool is_ahead(const struct zr_zip_ahead *ahead, const zarr_store_op *op)
{
    return ahead && op->length > 0 && ahead->op.length == op->length &&
           ahead->op.offset == op->offset &&
           (ahead->block || ahead->op.mem.handle == op->mem.handle);
}

/* Takes the result of an operation that was read ahead. op: as zr_zip_read_op() made it.
 */
static zarr_status take_range_ahead(const struct zr_zip_archive *a, zarr_store_op *op,
                                    const struct zr_zip_ahead *ahead, zarr_error *err)
{
    const zarr_memory to = op->mem;

    *op = ahead->op;
    if (op->status != ZARR_OK && !ahead->err)
        return zr_fail(err, op->status, "%s: %s", a->key, zarr_status_text(op->status));
    if (op->status != ZARR_OK)
        return zr_pass(err, op->status, ahead->err);
    if (ahead->block) /* else the bytes are there; both are host memory */
        memcpy((uint8_t *)to.handle + to.offset, ahead->block, (size_t)op->done_bytes);
    return ZARR_OK;
}

static zarr_status read_spool(const struct zr_zip_archive *a, uint64_t at, uint64_t n,
                              const zarr_memory *mem, zarr_error *err)
{
    void *to = NULL;
    const zarr_status st = zr_mem_host_ptr(a->env.memory, mem, n, &to, err);

    return st == ZARR_OK ? zr_zip_spool_read(a->spool, at, n, to, err) : st;
}

zarr_status zr_zip_read(const struct zr_zip_archive *a, uint64_t at, uint64_t n,
                        const zarr_memory *mem, const struct zr_zip_caller *caller,
                        zarr_error *err)
{
    zarr_store_op op = zr_zip_read_op(a, at, n, mem, caller);
    zarr_status st = ZARR_OK;

    if (a->spool)
        return read_spool(a, at, n, mem, err);
    if (is_ahead(caller->ahead, &op))
        st = take_range_ahead(a, &op, caller->ahead, err);
    else
        st = zarr_store_run(a->store, &op, err);
    if (st == ZARR_ERR_CONFLICT)
        st = zr_zip_fail_changed(a, caller, err);
    ZR_TRY(st);
    ZR_TRY(check_version(a, caller, &op, err));
    if (op.done_bytes != n)
        st = zr_fail(err, ZARR_ERR_IO, "%s: %" PRIu64 " bytes of %" PRIu64 " at %" PRIu64,
                     a->key, op.done_bytes, n, at);
out:
    if (st == ZARR_ERR_NOT_FOUND && caller->has_changed)
        *caller->has_changed = true;
    if (st == ZARR_ERR_NOT_FOUND) /* never let a member read as missing */
        st = zr_fail(err, ZARR_ERR_IO, "%s: the archive disappeared", a->key);
    return st;
}

zarr_status zr_zip_read_host(const struct zr_zip_archive *a, uint64_t at, size_t n,
                             void *to, zarr_error *err)
{
    const struct zr_zip_caller opener = {.cancel = a->cancel,
                                         .has_changed = a->has_changed};
    const zarr_memory mem = {.device_type = ZARR_DEVICE_CPU, .handle = to, .bytes = n};

    return zr_zip_read(a, at, n, &mem, &opener, err);
}

zarr_status zr_zip_read_tail(struct zr_zip_archive *a, void *to, size_t n, size_t *got,
                             zarr_error *err)
{
    zarr_store_op op = {.verb = ZARR_STORE_GET,
                        .flags =
                            has_versions(a) ? (uint32_t)ZARR_STORE_OP_WANT_VERSION : 0,
                        .key = a->key,
                        .offset = ZARR_STORE_SUFFIX,
                        .length = n,
                        .mem = {.device_type = ZARR_DEVICE_CPU, .handle = to, .bytes = n},
                        .cancel = a->cancel};

    ZR_CHECK(zarr_store_run(a->store, &op, err));
    if (op.object_bytes == UINT64_MAX)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "%s: the store does not tell its length", a->key);
    *got = (size_t)ZR_MIN(op.object_bytes, (uint64_t)n);
    if (op.done_bytes != *got)
        return zr_fail(err, ZARR_ERR_IO, "%s: %" PRIu64 " of the last %zu bytes", a->key,
                       op.done_bytes, *got);
    a->bytes = op.object_bytes;
    if (has_versions(a))
        a->version = op.version;
    return ZARR_OK;
}

/* ---- windows ---- */

/* Bytes that the tail has are copied, not read. */
static zarr_status window_fill(struct zr_zip_window *w, uint64_t at, size_t n,
                               zarr_error *err)
{
    const uint64_t tail_at = w->archive->bytes - w->tail_bytes;
    const size_t from_store =
        at < tail_at ? (size_t)ZR_MIN((uint64_t)n, tail_at - at) : 0;

    w->n = 0;
    if (from_store > 0)
        ZR_CHECK(zr_zip_read_host(w->archive, at, from_store, w->bytes, err));
    if (n > from_store)
        memcpy(w->bytes + from_store, w->tail + (at + from_store - tail_at),
               n - from_store);
    w->at = at;
    w->n = n;
    return ZARR_OK;
}

zarr_status zr_zip_window_get(struct zr_zip_window *w, uint64_t at, size_t n,
                              uint64_t end, const uint8_t **out, zarr_error *err)
{
    const size_t want = (size_t)ZR_MIN((uint64_t)w->most, end - at);

    if (at < w->at || at - w->at > w->n || w->n - (at - w->at) < n) {
        ZR_CHECK(zr_grow(w->archive->env.alloc, &w->bytes, &w->cap, want, 1, err));
        ZR_CHECK(window_fill(w, at, want, err));
    }
    *out = w->bytes + (at - w->at);
    return ZARR_OK;
}
