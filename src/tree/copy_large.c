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
    LARGE_RANGE = 8 << 20
};

struct large_copy {
    struct zr_copy *c;
    const struct zr_copy_large *o;
    struct zr_store_pin pin;
    bool pinned;
    void *lock, *parts;
    uint64_t taken, range;
    zarr_memory mem, old;
};

bool zr_copy_is_large(const struct zr_copy *c, const char *src_key, uint64_t bytes)
{
    return bytes > c->ctx->budget.total / LARGE_PART &&
           zr_key_kind(src_key) != ZARR_STORE_OP_DOCUMENT &&
           zr_store_can_key(c->dst, src_key, ZARR_STORE_CAP_PARTS) &&
           zr_store_pins(c->src, src_key);
}

static zarr_status get_range(const struct large_copy *l, bool of_dst, uint64_t at,
                             zarr_memory *mem, zarr_error *err)
{
    zarr_store_op op = {.verb = ZARR_STORE_GET,
                        .flags = ZARR_STORE_OP_CHUNK | ZARR_STORE_OP_WANT_VERSION,
                        .key = of_dst ? l->o->dst_key : l->o->src_key,
                        .offset = at,
                        .length = mem->bytes,
                        .mem = *mem,
                        .cancel = l->c->opts.cancel};
    zarr_status st = ZARR_OK;

    if (!of_dst) {
        op.flags |= ZR_STORE_OP_PINNED;
        op.lock = (void *)(uintptr_t)&l->pin;
    }
    ZR_TRY(zr_store_run_one(of_dst ? l->c->dst : l->c->src, &op, err));
    if (op.done_bytes != mem->bytes)
        st = zr_fail(err, ZARR_ERR_CONFLICT, "the object changes while it is copied");
    if (!of_dst && l->o->version)
        *l->o->version = op.version;
out:
    return st;
}

/* Calls fn for each range of the source, in l->mem, until it returns other than OK or
 * sets *end. */
static zarr_status each_range(struct large_copy *l,
                              zarr_status (*fn)(struct large_copy *l, uint64_t at,
                                                const zarr_memory *range, bool *end,
                                                zarr_error *err),
                              zarr_error *err)
{
    bool end = false;
    zarr_status st = ZARR_OK;

    for (uint64_t at = 0; at < l->o->bytes && !end; at += l->range) {
        zarr_memory range;

        ZR_TRY(zr_cancel_check(l->c->opts.cancel, err));
        if (!zr_mem_slice(&l->mem, 0, ZR_MIN(l->range, l->o->bytes - at), &range))
            return zr_internal(err);
        ZR_TRY(get_range(l, false, at, &range, err));
        ZR_TRY(fn(l, at, &range, &end, err));
    }
out:
    return st;
}

static zarr_status put_range(struct large_copy *l, uint64_t at, const zarr_memory *range,
                             bool *end, zarr_error *err)
{
    zarr_store_op op = {.verb = ZARR_STORE_PUT_PART,
                        .flags = ZARR_STORE_OP_CHUNK,
                        .key = l->o->dst_key,
                        .offset = at,
                        .length = range->bytes,
                        .mem = *range,
                        .cancel = l->c->opts.cancel,
                        .parts = l->parts,
                        .part = at / l->range + 1};

    ZR_UNUSED(end);
    return zr_store_run_one(l->c->dst, &op, err);
}

static zarr_status compare_range(struct large_copy *l, uint64_t at,
                                 const zarr_memory *range, bool *end, zarr_error *err)
{
    void *a = NULL, *b = NULL;
    zarr_memory old;
    zarr_status st = ZARR_OK;

    if (!zr_mem_slice(&l->old, 0, range->bytes, &old))
        return zr_internal(err);
    ZR_TRY(get_range(l, true, at, &old, err));
    ZR_TRY(zr_mem_host_ptr(&l->c->ctx->memory, range, range->bytes, &a, err));
    ZR_TRY(zr_mem_host_ptr(&l->c->ctx->memory, &old, old.bytes, &b, err));
    *end = memcmp(a, b, (size_t)range->bytes) != 0;
    *l->o->equal = !*end;
out:
    return st;
}

/* Sets there and equal. */
static zarr_status compare_large(struct large_copy *l, zarr_error *err)
{
    zarr_store_op now = {
        .verb = ZARR_STORE_STAT, .flags = ZARR_STORE_OP_CHUNK, .key = l->o->dst_key};
    zarr_error why = {0};
    zarr_status st = zr_store_run_one(l->c->dst, &now, &why);

    *l->o->there = st != ZARR_ERR_NOT_FOUND;
    if (st == ZARR_ERR_NOT_FOUND)
        return ZARR_OK;
    ZR_TRY(zr_pass(err, st, &why));
    if (now.object_bytes == l->o->bytes)
        ZR_TRY(each_range(l, compare_range, err));
out:
    return st;
}

static zarr_status large_begin(struct large_copy *l, zarr_error *err)
{
    struct zr_copy *c = l->c;
    const uint64_t need = l->o->compare ? 2 * l->range : l->range;
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
    ZR_TRY(zr_pool_take(c->ctx->pool, ZARR_DEVICE_CPU, 0, l->range, &l->mem, err));
    if (l->o->compare)
        ZR_TRY(zr_pool_take(c->ctx->pool, ZARR_DEVICE_CPU, 0, l->range, &l->old, err));
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
    ZR_TRY(each_range(&l, put_range, err));
    put.lock = l.lock;
    put.parts = l.parts;
    ZR_TRY(zr_store_run_one(c->dst, &put, err));
out:
    large_end(&l);
    return st;
}
