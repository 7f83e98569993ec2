/*
 * coalesce/receive.c - receives the answer of a request: copies each byte to every
 * operation whose range has it, and tells each operation what became of it. The pieces of
 * a request are in the order of their ranges. So at any time those that wait for the next
 * byte are a short list, and those after them have not begun.
 * Thread class: a request is solo.
 */
#include "coalesce/coalesce.h"

#include <string.h>

/* The range of an operation in a value of object_bytes; UINT64_MAX: of unknown length. */
static void find_range(struct zr_joint_piece *p, uint64_t object_bytes)
{
    const zarr_store_op *op = p->op;
    const uint64_t n = ZR_MIN(op->length, op->mem.bytes);

    if (op->verb == ZARR_STORE_STAT)
        return;
    p->from = op->offset == ZARR_STORE_SUFFIX
                  ? object_bytes - ZR_MIN(op->length, object_bytes)
                  : op->offset;
    p->n = p->from < object_bytes ? ZR_MIN(n, object_bytes - p->from) : 0;
}

static zarr_status fail_answer(const struct zr_joint_read *r, zarr_error *err,
                               const char *what)
{
    return zr_fail(err, ZARR_ERR_IO, "%s: %s", r->key, what);
}

zarr_status zr_joint_read_begin(struct zr_joint_read *r, uint64_t at,
                                uint64_t object_bytes, zarr_error *err)
{
    r->at = r->pos = at;
    r->object_bytes = object_bytes;
    r->wanted_end = at;
    r->n_begun = 0;
    r->active = NULL;
    if (r->offset == ZARR_STORE_SUFFIX && object_bytes == UINT64_MAX)
        return fail_answer(r, err, "the answer does not tell the length of the value");
    for (size_t i = 0; i < r->n; i++) {
        struct zr_joint_piece *p = &r->piece[i];

        find_range(p, object_bytes);
        if (p->n > 0 && p->from < at)
            return fail_answer(r, err, "the answer begins after the range");
        if (p->n > 0)
            r->wanted_end = ZR_MAX(r->wanted_end, p->from + p->n);
    }
    return ZARR_OK;
}

/* Copies what [pos, pos + n) and the piece have in common. Returns whether the piece
 * needs more. */
static bool take_part(const struct zr_joint_piece *p, const uint8_t *bytes, uint64_t pos,
                      size_t n)
{
    const uint64_t from = ZR_MAX(p->from, pos);
    const uint64_t end = ZR_MIN(p->from + p->n, pos + n);

    if (end > from)
        memcpy(p->to + (from - p->from), bytes + (from - pos), (size_t)(end - from));
    return p->from + p->n > pos + n;
}

bool zr_joint_read_take(struct zr_joint_read *r, const void *bytes, size_t n)
{
    struct zr_joint_piece **link = &r->active;
    uint64_t end;

    if (!zr_add(r->pos, n, &end)) /* zr_joint_read_end() sees that too few came */
        return false;
    while (*link)
        if (take_part(*link, bytes, r->pos, n))
            link = &(*link)->next;
        else
            *link = (*link)->next;
    for (; r->n_begun < r->n && r->piece[r->n_begun].from < end; r->n_begun++) {
        struct zr_joint_piece *p = &r->piece[r->n_begun];

        if (!take_part(p, bytes, r->pos, n))
            continue;
        p->next = r->active;
        r->active = p;
    }
    r->pos = end;
    return r->pos < r->wanted_end;
}

/* ---- the end ---- */

static zarr_status end_one(const struct zr_joint_read *r, struct zr_joint_piece *p,
                           zarr_error *err)
{
    zarr_store_op *op = p->op;
    const uint64_t has = r->object_bytes;

    if (has == UINT64_MAX && r->offset == ZARR_STORE_SUFFIX)
        return fail_answer(r, err, "the answer does not tell the length of the value");
    if (has != UINT64_MAX && r->pos > has)
        return fail_answer(r, err, "the answer is longer than the value");
    find_range(p, has);
    if (p->n > 0 && (p->from < r->at || p->from + p->n > r->pos))
        return zr_fail(err, ZARR_ERR_IO,
                       "%s: the answer ended at byte %" PRIu64 " of %" PRIu64, r->key,
                       r->pos, p->from + p->n);
    if (has == UINT64_MAX && p->needs_length)
        return fail_answer(r, err, "the answer does not tell the length of the value");
    op->done_bytes = p->n;
    op->object_bytes = has;
    return ZARR_OK;
}

void zr_joint_read_end(struct zr_joint_read *r, const struct zr_joint_answer *answer,
                       void (*done)(void *arg, zarr_store_op *op, const zarr_error *err),
                       void *arg)
{
    struct zr_joint_reads *const m = r->all;
    const zarr_allocator *const alloc = m->alloc;
    const size_t n = r->n;
    zarr_error err = {0};

    if (r->object_bytes == UINT64_MAX)
        r->object_bytes = answer->object_bytes;
    for (size_t i = 0; i < n; i++) {
        zarr_store_op *op = r->piece[i].op;
        const bool failed = answer->status != ZARR_OK;

        op->done_bytes = 0;
        op->object_bytes = UINT64_MAX;
        op->status = failed ? answer->status : end_one(r, &r->piece[i], &err);
        if (op->status == ZARR_OK && (op->flags & ZARR_STORE_OP_WANT_VERSION) &&
            answer->version)
            op->version = *answer->version;
        if (failed && answer->err) {
            err = *answer->err;
            op->os_code = answer->err->os_code;
        }
        if (i + 1 == n && atomic_fetch_sub(&m->n_left, 1) == 1)
            zr_free(alloc, m); /* before done(), which may free what has the allocator */
        done(arg, op, op->status != ZARR_OK ? &err : NULL);
    }
}
