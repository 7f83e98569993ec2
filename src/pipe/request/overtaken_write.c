/*
 * pipe/request/overtaken_write.c - a write whose array another program replaces
 * meanwhile. The request checks the stored array before each wave, under the lock of each
 * unit that it changes in part, and at its end. Until a check passes, it keeps which
 * objects it has stored. If a check finds that the array is gone or another one, it
 * removes those that it made and that no other writer has replaced since, and counts the
 * others. A check that fails for another reason leaves the judgement to the next one; the
 * last one fails the write. Thread class: the request is shared; zr_take_back(): after
 * the pipeline.
 */
#include "pipe/request/request.h"

#include <string.h>

enum {
    NOTES_FIRST_BYTES = 8192 /* of the 64 units of a wave, most often */
};

/* One stored object; its key follows, ended by 0. */
struct put_note {
    zarr_store_version version; /* known with ZR_STORE_OP_TELL */
    uint32_t flags;
    uint32_t bytes; /* with the key */
};

void zr_ask_put(const struct zarr_request *rq, zarr_store_op *op)
{
    if (op->verb == ZARR_STORE_PUT && rq->io.check && zr_store_is_own(rq->io.store))
        op->flags |= ZR_STORE_OP_TELL;
}

zarr_status zr_note_put(struct zarr_request *rq, const zarr_store_op *op, zarr_error *err)
{
    struct zr_put_notes *notes = &rq->locked.notes;
    const size_t key_bytes = strlen(op->key) + 1;
    const struct put_note note = {.version = op->version,
                                  .flags = op->flags,
                                  .bytes = (uint32_t)(sizeof note + key_bytes)};
    zarr_status st = ZARR_OK;

    if (op->verb != ZARR_STORE_PUT || op->status != ZARR_OK || !rq->io.check ||
        zr_has_forked(rq->fork_generation))
        return ZARR_OK;
    zr_request_lock(rq);
    st = zr_grow(rq->io.engine->alloc, &notes->ptr, &notes->cap,
                 ZR_MAX(notes->bytes + note.bytes, (size_t)NOTES_FIRST_BYTES), 1, err);
    if (st == ZARR_OK) {
        memcpy(notes->ptr + notes->bytes, &note, sizeof note);
        memcpy(notes->ptr + notes->bytes + sizeof note, op->key, key_bytes);
        notes->bytes += note.bytes;
    }
    zr_request_unlock(rq);
    return st;
}

bool zr_is_overtaken(zarr_status st)
{
    return st == ZARR_ERR_NOT_FOUND || st == ZARR_ERR_CONFLICT;
}

zarr_status zr_request_check(struct zarr_request *rq, zarr_error *err)
{
    struct zr_put_notes *notes = &rq->locked.notes;
    zarr_error why = {0};
    zarr_status st = ZARR_OK;
    uint64_t end = 0;

    if (!rq->io.check)
        return ZARR_OK;
    zr_request_lock(rq);
    end = notes->dropped + notes->bytes;
    zr_request_unlock(rq);
    st = rq->io.check(rq->io.check_arg, false, &why);
    if (st != ZARR_OK)
        return zr_is_overtaken(st) ? zr_pass(err, st, &why) : ZARR_OK;
    zr_request_lock(rq);
    /* drops the notes of objects that were stored before, unless another check did */
    if (end > notes->dropped) {
        const size_t n = (size_t)(end - notes->dropped);

        notes->bytes -= n;
        memmove(notes->ptr, notes->ptr + n, notes->bytes);
        notes->dropped = end;
    }
    zr_request_unlock(rq);
    return ZARR_OK;
}

zarr_status zr_request_check_locked(struct zarr_request *rq, zarr_error *err)
{
    return zr_store_can(rq->io.store, ZARR_STORE_CAP_LOCK) &&
                   zr_store_is_own(rq->io.store)
               ? zr_request_check(rq, err)
               : ZARR_OK;
}

/* Removes an object that this request made, if its value is still the request's. */
static zarr_status erase_own(struct zarr_request *rq, const struct put_note *note,
                             const char *key)
{
    zarr_store_op op = {.verb = ZARR_STORE_ERASE,
                        .flags = ZARR_STORE_OP_CHUNK | ZARR_STORE_OP_IF_VERSION,
                        .key = key,
                        .version = note->version,
                        .cancel = &rq->cancel};

    return zr_store_run_one(rq->io.store, &op, NULL);
}

/* Whether a key has the value that this request stored, or may have it. */
static bool has_own_value(struct zarr_request *rq, const struct put_note *note,
                          const char *key)
{
    zarr_store_op op = {.verb = ZARR_STORE_STAT,
                        .flags = ZARR_STORE_OP_CHUNK | ZARR_STORE_OP_WANT_VERSION,
                        .key = key,
                        .cancel = &rq->cancel};
    const zarr_status st = zr_store_run_one(rq->io.store, &op, NULL);

    if (st == ZARR_ERR_NOT_FOUND)
        return false;
    return st != ZARR_OK || !(note->flags & ZR_STORE_OP_TELL) ||
           zr_store_version_equal(&op.version, &note->version);
}

/* Removes what the request can remove, and returns the number of objects that remain. */
static uint64_t take_back_objects(struct zarr_request *rq)
{
    const struct zr_put_notes *notes = &rq->locked.notes;
    struct put_note note;
    uint64_t n = 0;

    for (size_t at = 0; at < notes->bytes; at += note.bytes) {
        const char *key = (const char *)notes->ptr + at + sizeof note;

        memcpy(&note, notes->ptr + at, sizeof note);
        if (note.flags & ZR_STORE_OP_CREATED)
            (void)erase_own(rq, &note, key);
        n += has_own_value(rq, &note, key);
    }
    return n;
}

void zr_take_back(struct zarr_request *rq, zarr_error *err)
{
    const zarr_error said = *err;
    const uint64_t n = take_back_objects(rq);

    if (said.code == ZARR_ERR_CONFLICT)
        zr_fail(err, said.code,
                "%s; %" PRIu64 " object%s of this call remain%s in the new array",
                said.message, n, n == 1 ? "" : "s", n == 1 ? "s" : "");
    else if (n > 0)
        zr_fail(err, said.code, "%s; %" PRIu64 " object%s of this call remain%s there",
                said.message, n, n == 1 ? "" : "s", n == 1 ? "s" : "");
    memcpy(err->part, said.part, sizeof said.part);
    err->os_code = said.os_code;
}

void zr_tell_unchecked(zarr_error *err)
{
    const zarr_error said = *err;

    zr_fail(err, said.code,
            "%s; the elements are stored, but it is not known whether the array was "
            "replaced meanwhile",
            said.message);
    memcpy(err->part, said.part, sizeof said.part);
    err->os_code = said.os_code;
}

void zr_put_notes_free(struct zarr_request *rq)
{
    if (!zr_has_forked(
            rq->fork_generation)) /* else a thread of the parent may be growing it */
        zr_free(rq->io.engine->alloc, rq->locked.notes.ptr);
    rq->locked.notes = (struct zr_put_notes){.ptr = NULL};
}
