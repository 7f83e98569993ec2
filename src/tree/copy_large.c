/*
 * tree/copy_large.c - copies one object that is too large for memory: ranges of the
 * source, all of one version, become parts of the new value.
 * Thread class: plain function.
 */
#include "mem/mem.h"
#include "tree/copy_int.h"

#include <string.h>

enum {
    LARGE_PART = 4, /* of the budget: larger objects are copied in ranges */
    LARGE_RANGE = 8 << 20,
    LARGE_AT_ONCE = 4 /* ranges that are on their way; in all a quarter of the budget */
};

struct large_copy {
    struct zr_copy *c;
    const struct zr_copy_large *o;
    struct zr_store_pin pin;
    bool pinned;
    void *lock, *parts;
    uint64_t taken, range;
    uint32_t at_once; /* ranges of one call of a store */
    zarr_memory mem, old;
};

bool zr_copy_is_large(const struct zr_copy *c, const char *src_key, uint64_t bytes)
{
    return bytes > c->ctx->budget.total / LARGE_PART &&
           zr_key_kind(src_key) != ZARR_STORE_OP_DOCUMENT &&
           zr_store_can_key(c->dst, src_key, ZARR_STORE_CAP_PARTS) &&
           zr_store_pins(c->src, src_key);
}

/* Makes operations for the next ranges of the value, whose bytes are in `block`. */
static zarr_status range_ops(const struct large_copy *l, uint64_t at,
                             const zarr_memory *block, zarr_store_op *op, uint32_t *n,
                             zarr_error *err)
{
    for (*n = 0; *n < l->at_once && at < l->o->bytes; at += l->range, ++*n) {
        op[*n] = (zarr_store_op){.flags = ZARR_STORE_OP_CHUNK,
                                 .offset = at,
                                 .length = ZR_MIN(l->range, l->o->bytes - at),
                                 .cancel = l->c->opts.cancel};
        if (!zr_mem_slice(block, *n * l->range, op[*n].length, &op[*n].mem))
            return zr_internal(err);
    }
    return ZARR_OK;
}

static zarr_status get_ranges(const struct large_copy *l, bool is_from_dst, uint64_t at,
                              const zarr_memory *block, zarr_error *err)
{
    zarr_store_op op[LARGE_AT_ONCE];
    uint32_t n = 0;

    ZR_CHECK(range_ops(l, at, block, op, &n, err));
    for (uint32_t i = 0; i < n; i++) {
        op[i].verb = ZARR_STORE_GET;
        op[i].key = is_from_dst ? l->o->dst_key : l->o->src_key;
        op[i].flags |=
            ZARR_STORE_OP_WANT_VERSION | (is_from_dst ? 0 : ZR_STORE_OP_PINNED);
        op[i].lock = is_from_dst ? NULL : (void *)(uintptr_t)&l->pin;
    }
    ZR_CHECK(zr_store_run(is_from_dst ? l->c->dst : l->c->src, op, n, err));
    for (uint32_t i = 0; i < n; i++)
        if (op[i].status != ZARR_OK || op[i].done_bytes != op[i].length)
            return zr_fail(err, ZARR_ERR_CONFLICT,
                           "the object changes while it is copied");
    if (!is_from_dst && l->o->version)
        *l->o->version = op[0].version;
    return ZARR_OK;
}

/* Calls fn for the ranges of the source, as many as are in l->mem at once, until it
 * returns other than OK or sets *end. */
static zarr_status each_batch(struct large_copy *l,
                              zarr_status (*fn)(struct large_copy *l, uint64_t at,
                                                bool *end, zarr_error *err),
                              zarr_error *err)
{
    bool end = false;

    for (uint64_t at = 0; at < l->o->bytes && !end; at += l->at_once * l->range) {
        ZR_CHECK(zr_cancel_check(l->c->opts.cancel, err));
        ZR_CHECK(get_ranges(l, false, at, &l->mem, err));
        ZR_CHECK(fn(l, at, &end, err));
    }
    return ZARR_OK;
}

static zarr_status put_batch(struct large_copy *l, uint64_t at, bool *end,
                             zarr_error *err)
{
    zarr_store_op op[LARGE_AT_ONCE];
    uint32_t n = 0;

    ZR_UNUSED(end);
    ZR_CHECK(range_ops(l, at, &l->mem, op, &n, err));
    for (uint32_t i = 0; i < n; i++) {
        op[i].verb = ZARR_STORE_PUT_PART;
        op[i].key = l->o->dst_key;
        op[i].parts = l->parts;
        op[i].part = op[i].offset / l->range + 1;
    }
    ZR_CHECK(zr_store_run(l->c->dst, op, n, err));
    for (uint32_t i = 0; i < n; i++)
        if (op[i].status != ZARR_OK) /* zr_store_run() passes over NOT_FOUND */
            return zr_fail(err, op[i].status, "a part of the new value has gone");
    return ZARR_OK;
}

static zarr_status compare_batch(struct large_copy *l, uint64_t at, bool *end,
                                 zarr_error *err)
{
    const uint64_t bytes = ZR_MIN(l->at_once * l->range, l->o->bytes - at);
    void *a = NULL, *b = NULL;

    ZR_CHECK(get_ranges(l, true, at, &l->old, err));
    ZR_CHECK(zr_mem_host_ptr(&l->c->ctx->memory, &l->mem, bytes, &a, err));
    ZR_CHECK(zr_mem_host_ptr(&l->c->ctx->memory, &l->old, bytes, &b, err));
    *end = memcmp(a, b, (size_t)bytes) != 0;
    *l->o->equal = !*end;
    return ZARR_OK;
}

/* Sets there and equal. */
static zarr_status compare_large(struct large_copy *l, zarr_error *err)
{
    zarr_store_op now = {.verb = ZARR_STORE_STAT,
                         .flags = ZARR_STORE_OP_CHUNK,
                         .key = l->o->dst_key,
                         .cancel = l->c->opts.cancel};
    zarr_error why = {0};
    zarr_status st = zr_store_run_one(l->c->dst, &now, &why);

    *l->o->there = st != ZARR_ERR_NOT_FOUND;
    if (st == ZARR_ERR_NOT_FOUND)
        return ZARR_OK;
    ZR_TRY(zr_pass(err, st, &why));
    if (now.object_bytes == l->o->bytes)
        ZR_TRY(each_batch(l, compare_batch, err));
out:
    return st;
}

/* Stores that wait for a network get several ranges at once, if memory has room. */
static uint32_t ranges_at_once(const struct large_copy *l)
{
    const uint64_t room = l->c->ctx->budget.total / (l->o->compare ? 8 : 4) / l->range;
    const uint64_t n = zr_ceil_div_u64(l->o->bytes, l->range);
    const bool fast = zr_store_can(l->c->dst, ZARR_STORE_CAP_FAST_GET);

    return fast ? 1
                : (uint32_t)ZR_MAX(ZR_MIN(ZR_MIN(room, n), (uint64_t)LARGE_AT_ONCE),
                                   UINT64_C(1));
}

static zarr_status large_begin(struct large_copy *l, zarr_error *err)
{
    struct zr_copy *c = l->c;
    const uint64_t block = l->at_once * l->range,
                   need = l->o->compare ? 2 * block : block;
    zarr_status st = ZARR_OK;

    st = zr_store_pin_init(&l->pin, c->src, l->o->src_key, err);
    if (st == ZARR_ERR_NOT_FOUND) /* the listing had it */
        st = zr_fail(err, ZARR_ERR_CONFLICT, "it vanished while the node was copied");
    l->pinned = st == ZARR_OK;
    ZR_TRY(st);
    /* before the lock: writers of chunks take both in this order */
    ZR_TRY(zr_budget_take(&c->ctx->budget, need, UINT64_MAX, NULL, err));
    l->taken = need;
    ZR_TRY(zr_store_lock(c->dst, l->o->dst_key, c->opts.cancel, &l->lock, err));
    ZR_TRY(zr_pool_take(c->ctx->pool, ZARR_DEVICE_CPU, 0, block, &l->mem, err));
    if (l->o->compare)
        ZR_TRY(zr_pool_take(c->ctx->pool, ZARR_DEVICE_CPU, 0, block, &l->old, err));
out:
    return st;
}

static void large_end(struct large_copy *l)
{
    zr_pool_give(l->c->ctx->pool, &l->mem);
    zr_pool_give(l->c->ctx->pool, &l->old);
    if (l->taken)
        zr_budget_give(&l->c->ctx->budget, l->taken);
    zr_store_end_parts(l->c->dst, l->o->dst_key, l->parts);
    zr_store_unlock(l->c->dst, l->lock);
    if (l->pinned)
        zr_store_pin_deinit(&l->pin);
}

zarr_status zr_copy_large(struct zr_copy *c, const struct zr_copy_large *o,
                          zarr_error *err)
{
    const uint64_t share = ZR_MAX(c->ctx->budget.total / 16, UINT64_C(65536));
    struct large_copy l = {.c = c, .o = o, .range = ZR_MIN(share, (uint64_t)LARGE_RANGE)};
    zarr_store_op put = {.verb = ZARR_STORE_PUT,
                         .flags = ZARR_STORE_OP_CHUNK | ZARR_STORE_OP_LOCKED |
                                  ZARR_STORE_OP_IN_PARTS,
                         .key = o->dst_key,
                         .length = o->bytes,
                         .cancel = c->opts.cancel};
    zarr_status st = ZARR_OK;

    l.range = ZR_MAX(l.range, zr_store_part_min_bytes(c->dst, o->dst_key, o->bytes));
    l.at_once = ranges_at_once(&l);
    *o->there = *o->equal = false;
    ZR_TRY(large_begin(&l, err));
    if (o->compare)
        ZR_TRY(compare_large(&l, err));
    if (*o->equal)
        goto out;
    if (*o->there && !(c->opts.flags & ZARR_COPY_OVERWRITE))
        ZR_FAIL(err, ZARR_ERR_EXISTS, "%s exists with other bytes", o->dst_key);
    ZR_TRY(
        zr_store_begin_parts(c->dst, o->dst_key, l.lock, c->opts.cancel, &l.parts, err));
    ZR_TRY(each_batch(&l, put_batch, err));
    put.lock = l.lock;
    put.parts = l.parts;
    ZR_TRY(zr_store_run_one(c->dst, &put, err));
out:
    large_end(&l);
    return st;
}
