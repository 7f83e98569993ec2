/*
 * coalesce/join.c - decides which operations one request fetches. They are sorted by
 * object and offset, and neighbours are joined while the gaps between them and the whole
 * range stay small. A range that lies inside of another one costs nothing, and so do
 * suffixes, of which the longest contains all others.
 *
 * One block of memory has the requests and their pieces: some 300 bytes for each
 * operation.
 * Thread class: plain functions.
 */
#include "coalesce/coalesce.h"

#include <stdlib.h>
#include <string.h>

/* ---- order ---- */

static int compare_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static bool is_suffix(const zarr_store_op *op)
{
    return op->verb == ZARR_STORE_GET && op->offset == ZARR_STORE_SUFFIX;
}

/* 0: one request may fetch both, as far as the object is concerned. */
static int compare_objects(const zarr_store_op *a, const zarr_store_op *b)
{
    const uint32_t condition = ZARR_STORE_OP_IF_VERSION;
    int order = a->key == b->key ? 0 : strcmp(a->key, b->key);

    if (order == 0)
        order = compare_u64((uintptr_t)a->cancel, (uintptr_t)b->cancel);
    if (order == 0)
        order = compare_u64(a->flags & condition, b->flags & condition);
    if (order == 0 && (a->flags & condition))
        order = memcmp(&a->version, &b->version, sizeof a->version);
    if (order == 0)
        order = (int)is_suffix(a) - (int)is_suffix(b);
    return order;
}

static int by_object_and_place(const void *a, const void *b)
{
    const struct zr_joint_piece *x = a, *y = b;
    int order = compare_objects(x->op, y->op);

    if (order == 0 && is_suffix(x->op))
        order = compare_u64(y->op->length, x->op->length); /* the longest first */
    else if (order == 0)
        order = compare_u64(x->from, y->from);
    if (order == 0)
        order = compare_u64(y->n, x->n);
    return order;
}

/* ---- requests ---- */

/* Adds a range to a request, or returns false, without an effect, if it does not fit. */
static bool join_range(struct zr_joint_read *r, const struct zr_joint_piece *p,
                       const struct zr_joint_rules *rules)
{
    const uint64_t end = r->offset + r->bytes, next_end = p->from + p->n;
    const uint64_t gap = p->from > end ? p->from - end : 0;
    const uint64_t bytes = ZR_MAX(end, next_end) - r->offset;
    const uint64_t wasted = r->wasted + gap;

    if (p->n == 0) /* it needs an answer, but no bytes */
        return true;
    if (gap > rules->gap || (bytes > r->bytes && bytes > rules->bytes) ||
        (gap > 0 && wasted > ZR_MAX(rules->waste, bytes - wasted)))
        return false;
    r->bytes = bytes;
    r->wasted = wasted;
    return true;
}

static bool join_piece(struct zr_joint_read *r, const struct zr_joint_piece *p,
                       const struct zr_joint_rules *rules)
{
    if (compare_objects(r->piece->op, p->op) != 0 ||
        (!is_suffix(p->op) && !join_range(r, p, rules)))
        return false;
    r->flags |= p->op->flags & ZARR_STORE_OP_WANT_VERSION;
    r->n++;
    return true;
}

static void start_request(struct zr_joint_reads *m, struct zr_joint_piece *p)
{
    const uint32_t passed =
        ZARR_STORE_OP_KIND | ZARR_STORE_OP_IF_VERSION | ZARR_STORE_OP_WANT_VERSION;

    m->request[m->n_requests++] = (struct zr_joint_read){
        .key = p->op->key,
        .flags = p->op->flags & passed,
        .version = p->op->version,
        .cancel = p->op->cancel,
        .offset = is_suffix(p->op) ? ZARR_STORE_SUFFIX : p->from,
        .bytes = is_suffix(p->op) ? p->op->length : p->n,
        .piece = p,
        .n = 1,
        .all = m,
        .object_bytes = UINT64_MAX,
    };
}

static zarr_status make_piece(struct zr_joint_piece *p, zarr_store_op *op,
                              const struct zr_memory_registry *memory, zarr_error *err)
{
    const uint64_t n = ZR_MIN(op->length, op->mem.bytes);
    void *to = NULL;
    zarr_status st = ZARR_OK;

    *p = (struct zr_joint_piece){.op = op, .needs_length = true};
    if (op->verb == ZARR_STORE_STAT)
        return ZARR_OK;
    if (op->verb != ZARR_STORE_GET)
        return zr_internal(err);
    p->n = n;
    p->needs_length = op->length > n;
    if (!is_suffix(op)) {
        p->from = op->offset;
        p->n = ZR_MIN(n, UINT64_MAX - op->offset); /* no value is so long */
    }
    if (n > 0)
        st = zr_mem_host_ptr(memory, &op->mem, n, &to, err);
    p->to = to;
    return st;
}

zarr_status zr_joint_reads_make(struct zr_joint_reads **out, const zarr_allocator *alloc,
                                const struct zr_memory_registry *memory,
                                zarr_store_op *const *ops, size_t n,
                                const struct zr_joint_rules *rules, zarr_error *err)
{
    const size_t each = sizeof(struct zr_joint_read) + sizeof(struct zr_joint_piece);
    struct zr_joint_piece *piece = NULL;
    struct zr_joint_reads *m = NULL;
    size_t bytes = 0;
    zarr_status st = ZARR_OK;

    if (zr_mul(n, each, &bytes) && zr_add(bytes, sizeof *m, &bytes))
        m = zr_malloc(alloc, bytes);
    if (!m)
        return zr_fail_memory(err, bytes);
    *m = (struct zr_joint_reads){.alloc = alloc};
    m->request = (struct zr_joint_read *)(void *)(m + 1);
    piece = (struct zr_joint_piece *)(void *)(m->request + n);
    for (size_t i = 0; i < n; i++)
        ZR_TRY(make_piece(&piece[i], ops[i], memory, err));
    qsort(piece, n, sizeof *piece, by_object_and_place);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || !join_piece(&m->request[m->n_requests - 1], &piece[i], rules))
            start_request(m, &piece[i]);
    atomic_init(&m->n_left, m->n_requests);
    *out = m;
    m = NULL;
out:
    zr_free(alloc, m);
    return st;
}
