/*
 * mem/pack.c - boxes between a device and the host, if the backend copies boxes only
 * inside of the device. The elements of many boxes are packed in a block on the device,
 * in the order in which the host has them, and go up or down in one list of runs. A box
 * that is dense on the host needs no other copy; the rest is packed on the host, too.
 * Thread class: plain functions; one thread at a time uses the stream.
 */
#include "mem/mem_int.h"

enum {
    PACK_MOST = 64, /* boxes in a list */
    PACK_ROWS = 8   /* boxes of fewer rows on the device go row by row (stage.c) */
};
#define PACK_BYTES ((uint64_t)32 << 20) /* of a block */
#define PACK_LEAST ((uint64_t)64 << 10) /* of one where memory is short */

struct pack {
    const struct zr_memory_registry *r;
    const struct zr_backend *be;
    struct zr_stream *s;
    struct zr_copy_counters *c;
    bool up;               /* the device side is dst */
    bool done;             /* the backend has not declined */
    zarr_memory dev, host; /* blocks; host without a handle until a box needs it */
    zarr_box *own;         /* what the backend copies: the device's side, and the block */
    zarr_box *unpacked;    /* the host's side, and the host's block */
    zarr_memory *run, *at; /* on the host, and in the device's block */
    uint32_t n, n_unpacked;
    uint64_t used;  /* bytes of both blocks */
    uint64_t bytes; /* of the boxes of the list */
};

static zarr_box_side *pack_host_side(zarr_box *box, bool up)
{
    return up ? &box->src : &box->dst;
}

static const zarr_box_side *pack_dev_side(const zarr_box *box, bool up)
{
    return up ? &box->dst : &box->src;
}

static uint64_t pack_bytes(const zarr_box *box)
{
    uint64_t n = 0;

    (void)zr_product_u64(box->shape, (size_t)box->ndim, &n); /* checked by route.c */
    return n * box->item_bytes;
}

/* ---- boxes ------------------------------------------------------------------------ */

/* Rows of a box that are contiguous on the device. */
static uint64_t pack_rows(const zarr_box *box, bool up)
{
    const zarr_box_side *dev = pack_dev_side(box, up);
    uint64_t row = box->item_bytes;
    bool found = true;

    while (found) {
        found = false;
        for (int32_t k = 0; k < box->ndim && !found; k++)
            if (box->shape[k] > 1 && dev->stride[k] > 0 &&
                (uint64_t)dev->stride[k] == row) {
                row *= box->shape[k];
                found = true;
            }
    }
    return pack_bytes(box) / row;
}

/* Makes one side of a box the packed elements, which begin at `mem`. Returns whether the
 * other side, `like`, is packed, too. */
static bool pack_side(zarr_box_side *side, const zarr_box *box, const zarr_box_side *like,
                      const zarr_memory *mem)
{
    int64_t line = box->item_bytes;
    bool dense = true;

    zr_box_side_init(side, mem, 0);
    for (int32_t k = box->ndim - 1; k >= 0; k--) {
        dense = dense && like->stride[k] == line;
        side->stride[k] = line;
        line *= (int64_t)box->shape[k];
    }
    return dense;
}

/* ---- blocks ----------------------------------------------------------------------- */

/* Takes a block from the stream's pool, which keeps it for later calls; a caller without
 * a stream has no pool. */
static zarr_status pack_take(const struct pack *p, bool on_host, int32_t device_id,
                             uint64_t bytes, zarr_memory *out, zarr_error *err)
{
    const struct zr_backend *from = zr_backend_allocator(p->r, p->be);
    void *block = NULL;

    if (p->s && p->s->pool)
        return on_host ? zr_pool_take_staging(p->s->pool, p->be->vt.device_type,
                                              device_id, bytes, out, err)
                       : zr_pool_take(p->s->pool, p->be->vt.device_type, device_id, bytes,
                                      out, err);
    if (!on_host)
        return from->vt.alloc(from->self, device_id, bytes, out, err);
    block = zr_malloc(p->r->alloc, (size_t)bytes);
    if (!block)
        return zr_fail_memory(err, bytes);
    *out = zr_mem_of_host(block, bytes);
    return ZARR_OK;
}

static void pack_give(const struct pack *p, zarr_memory *mem, bool on_host)
{
    const struct zr_backend *from = zr_backend_allocator(p->r, p->be);

    if (!mem->handle)
        return;
    if (p->s && p->s->pool)
        zr_pool_give(p->s->pool, mem);
    else if (on_host)
        zr_free(p->r->alloc, mem->handle);
    else
        from->vt.free(from->self, mem);
}

/* ---- lists ------------------------------------------------------------------------ */

static zarr_status pack_own_boxes(struct pack *p, void *handle, zarr_error *err)
{
    bool done = false;

    ZR_CHECK(zr_backend_copy_boxes(p->be, p->own, p->n, handle, &done, err));
    if (done) {
        zr_count_call(p->c);
        return ZARR_OK;
    }
    for (uint32_t i = 0; i < p->n; i++) {
        ZR_CHECK(zr_backend_copy_box(p->be, &p->own[i], handle, &done, err));
        zr_count_call(p->c);
        p->done = done;
        if (!done)
            return ZARR_OK;
    }
    return ZARR_OK;
}

/* Copies between the host's places and the block on the device. */
static zarr_status pack_runs(const struct pack *p, void *handle, zarr_error *err)
{
    return zr_backend_copy_list(p->be, p->up ? p->at : p->run, p->up ? p->run : p->at,
                                p->n, handle, p->c, err);
}

static void pack_on_host(const struct pack *p)
{
    for (uint32_t i = 0; i < p->n_unpacked; i++)
        zr_host_box_copy(&p->unpacked[i]);
}

/* Moves the boxes of the list. The blocks can be used again afterwards. */
static zarr_status pack_send(struct pack *p, zarr_error *err)
{
    void *handle = NULL;

    if (p->n == 0)
        return ZARR_OK;
    if (p->n_unpacked > 0)
        ZR_CHECK(zr_stream_sync(p->s, err)); /* the host's block may be in use */
    if (p->up)
        pack_on_host(p);
    ZR_CHECK(zr_stream_handle(p->s, p->be, &handle, err));
    if (p->up)
        ZR_CHECK(pack_runs(p, handle, err));
    ZR_CHECK(pack_own_boxes(p, handle, err));
    if (!p->done)
        return ZARR_OK;
    if (!p->up)
        ZR_CHECK(pack_runs(p, handle, err));
    if (!p->up && p->n_unpacked > 0) {
        ZR_CHECK(zr_stream_sync(p->s, err));
        pack_on_host(p);
    }
    zr_route_count(p->c, ZR_ROUTE_DEVICE, p->n, p->bytes);
    p->n = p->n_unpacked = 0;
    p->used = p->bytes = 0;
    return ZARR_OK;
}

/* Adds a box that fits the block. */
static zarr_status pack_add(struct pack *p, const zarr_box *box, zarr_error *err)
{
    const uint64_t bytes = pack_bytes(box);
    zarr_box *own = &p->own[p->n], host = *box;
    zarr_memory slice = {0};
    bool dense;

    if (!zr_mem_slice(&p->dev, p->used, bytes, &p->at[p->n]))
        return zr_internal(err);
    *own = *box;
    dense = pack_side(pack_host_side(own, p->up), box, pack_host_side(&host, p->up),
                      &p->at[p->n]);
    if (dense) {
        p->run[p->n] = pack_host_side(&host, p->up)->mem;
        p->run[p->n].bytes = bytes;
    } else {
        if (!p->host.handle)
            ZR_CHECK(pack_take(p, true, p->dev.device_id, p->dev.bytes, &p->host, err));
        if (!zr_mem_slice(&p->host, p->used, bytes, &slice))
            return zr_internal(err);
        host.swap_bytes = 0; /* the device does it */
        (void)pack_side(p->up ? &host.dst : &host.src, &host, &host.src, &slice);
        p->run[p->n] = slice;
        p->unpacked[p->n_unpacked++] = host;
    }
    p->n++;
    p->bytes += bytes;
    p->used += (bytes + 255) / 256 * 256;
    return ZARR_OK;
}

/* Halves a box until it fits. The depth is at most 64: each call halves the bytes. */
static zarr_status pack_box(struct pack *p, // NOLINT(misc-no-recursion)
                            const zarr_box *box, zarr_error *err)
{
    const uint64_t bytes = pack_bytes(box);
    zarr_box half = *box;
    int32_t k = 0;

    if (bytes <= p->dev.bytes) {
        if (p->n == PACK_MOST || p->used > p->dev.bytes - bytes)
            ZR_CHECK(pack_send(p, err));
        return p->done ? pack_add(p, box, err) : ZARR_OK;
    }
    while (k + 1 < box->ndim && box->shape[k] < 2)
        k++;
    half.shape[k] = box->shape[k] / 2;
    ZR_CHECK(pack_box(p, &half, err));
    half.dst.mem.offset += half.shape[k] * (uint64_t)box->dst.stride[k];
    half.src.mem.offset += half.shape[k] * (uint64_t)box->src.stride[k];
    half.shape[k] = box->shape[k] - half.shape[k];
    if (p->done)
        ZR_CHECK(pack_box(p, &half, err));
    return ZARR_OK;
}

/* ---- door ------------------------------------------------------------------------- */

static zarr_status pack_begin(struct pack *p, const struct zr_pack_list *l,
                              zarr_error *err)
{
    const zarr_memory *dev = &pack_dev_side(l->boxes, p->up)->mem;
    /* in a list, each box begins at a multiple of 256 bytes */
    const uint64_t gaps = l->n > 1 ? zr_mul_cap(l->n, 256) : 0;
    uint64_t room = ZR_MIN(zr_add_cap(l->bytes, gaps), PACK_BYTES), least = PACK_LEAST;
    zarr_status st = ZARR_OK;

    p->own = zr_malloc(p->r->alloc, PACK_MOST * sizeof *p->own);
    p->unpacked = zr_malloc(p->r->alloc, PACK_MOST * sizeof *p->unpacked);
    p->run = zr_malloc(p->r->alloc, PACK_MOST * sizeof *p->run);
    p->at = zr_malloc(p->r->alloc, PACK_MOST * sizeof *p->at);
    if (!p->own || !p->unpacked || !p->run || !p->at)
        return zr_fail_memory(err, PACK_MOST * sizeof *p->own);
    for (uint64_t i = 0; i < l->n; i++)
        least = ZR_MAX(least, (uint64_t)l->boxes[i].item_bytes);
    st = pack_take(p, false, dev->device_id, room, &p->dev, err);
    for (; st == ZARR_ERR_NO_MEMORY && room / 2 >= least; room /= 2)
        st = pack_take(p, false, dev->device_id, room / 2, &p->dev, err);
    p->done = st == ZARR_OK;
    if (st != ZARR_OK && st != ZARR_ERR_NO_MEMORY)
        return st;
    if (err) /* a larger block may not have been there */
        zr_error_clear(err);
    return ZARR_OK; /* without a block they go row by row */
}

static void pack_end(struct pack *p)
{
    pack_give(p, &p->dev, false);
    pack_give(p, &p->host, true);
    zr_free(p->r->alloc, p->own);
    zr_free(p->r->alloc, p->unpacked);
    zr_free(p->r->alloc, p->run);
    zr_free(p->r->alloc, p->at);
}

static bool pack_is_worth(const zarr_box *boxes, uint64_t n, bool up)
{
    uint64_t rows = 0;

    for (uint64_t i = 0; i < n && rows <= PACK_ROWS; i++) {
        const uint64_t own = pack_rows(&boxes[i], up);

        if (boxes[i].item_bytes > PACK_BYTES)
            return false;
        rows = own > PACK_ROWS ? PACK_ROWS + 1 : rows + own;
    }
    return rows > PACK_ROWS;
}

zarr_status zr_pack_copy(const struct zr_memory_registry *r, const struct zr_pack_list *l,
                         struct zr_stream *s, struct zr_copy_counters *c, bool *done,
                         zarr_error *err)
{
    struct pack p = {.r = r, .be = l->be, .s = s, .c = c, .up = l->up};
    zarr_status st = ZARR_OK, end = ZARR_OK;
    zarr_box sorted;

    *done = false;
    if (!pack_is_worth(l->boxes, l->n, l->up))
        return ZARR_OK;
    ZR_TRY(pack_begin(&p, l, err));
    for (uint64_t i = 0; i < l->n && p.done; i++) {
        zr_box_sort(&sorted, &l->boxes[i], !l->up); /* as the host has them */
        ZR_TRY(pack_box(&p, &sorted, err));
    }
    if (p.done)
        ZR_TRY(pack_send(&p, err));
out:
    end = zr_stream_sync(s, st == ZARR_OK ? err : NULL); /* the blocks are given back */
    *done = p.done;
    pack_end(&p);
    return st == ZARR_OK ? end : st;
}
