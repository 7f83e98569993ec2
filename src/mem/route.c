/*
 * mem/route.c - chooses the route of bytes between any two memories. If the host reaches
 * both: our own strided kernels. If one backend knows both sides and has a strided copy:
 * that backend. Everything else goes through a piece of host memory (stage.c) and is
 * counted as such. Lengths are checked here again for every copy, because this is the
 * last place before bytes move.
 * Thread class: plain functions; each caller has its own counters.
 */
#include "mem/mem_int.h"

static zarr_status route_side(const struct zr_memory_registry *r, int32_t device_type,
                              const struct zr_backend **out, zarr_error *err)
{
    const zarr_status st = zr_backend_find(r, device_type, out, err);

    if (st == ZARR_OK && zr_device_is_host(r, device_type))
        *out = NULL;
    return st;
}

zarr_status zr_route_find(struct zr_route *out, const struct zr_memory_registry *r,
                          int32_t dst_type, int32_t src_type, zarr_error *err)
{
    ZR_CHECK(route_side(r, dst_type, &out->dst, err));
    ZR_CHECK(route_side(r, src_type, &out->src, err));
    out->kind = out->dst ? (out->src ? ZR_ROUTE_DEVICE : ZR_ROUTE_UP)
                         : (out->src ? ZR_ROUTE_DOWN : ZR_ROUTE_HOST);
    return ZARR_OK;
}

const struct zr_backend *zr_route_backend(const struct zr_route *way)
{
    if (way->dst && way->src && way->dst != way->src)
        return NULL;
    return way->dst ? way->dst : way->src;
}

void zr_count_call(struct zr_copy_counters *c)
{
    if (c)
        c->calls++;
}

void zr_route_count(struct zr_copy_counters *c, enum zr_route_kind kind, uint64_t n,
                    uint64_t bytes)
{
    if (!c)
        return;
    switch (kind) {
    case ZR_ROUTE_HOST:
        c->copies_host += n;
        c->bytes_host += bytes;
        break;
    case ZR_ROUTE_UP:
        c->copies_up += n;
        c->bytes_up += bytes;
        break;
    case ZR_ROUTE_DOWN:
        c->copies_down += n;
        c->bytes_down += bytes;
        break;
    case ZR_ROUTE_DEVICE:
        c->copies_device += n;
        c->bytes_device += bytes;
        break;
    }
}

/* Counts a detour through the host; between two devices it is one copy down and one
 * up. */
static void route_count_staged(struct zr_copy_counters *c, enum zr_route_kind kind,
                               uint64_t bytes)
{
    if (c)
        c->staged++;
    if (kind == ZR_ROUTE_DEVICE) {
        zr_route_count(c, ZR_ROUTE_DOWN, 1, bytes);
        kind = ZR_ROUTE_UP;
    }
    zr_route_count(c, kind, 1, bytes);
}

/* ---- boxes -------------------------------------------------------------------- */

void zr_box_side_init(zarr_box_side *out, const zarr_memory *run, int64_t at)
{
    out->mem = *run;
    out->mem.bytes += run->offset;
    out->mem.offset += (uint64_t)at;
}

static bool route_side_fits(const zarr_box *box, const zarr_box_side *side)
{
    const zarr_memory *m = &side->mem;
    int64_t low, high;
    uint64_t end;

    return zr_extent(box->ndim, box->shape, side->stride, box->item_bytes, &low, &high) &&
           (uint64_t)-low <= m->offset && zr_add(m->offset, (uint64_t)high, &end) &&
           end <= m->bytes;
}

zarr_status zr_route_check(const zarr_box *box, bool fill, uint64_t *bytes,
                           zarr_error *err)
{
    *bytes = 0;
    if (box->ndim < 0 || box->ndim > ZARR_MAX_RANK ||
        (box->swap_bytes > 1 && box->item_bytes % box->swap_bytes))
        return zr_internal(err);
    if (!zr_product_u64(box->shape, (size_t)box->ndim, bytes) ||
        !zr_mul(*bytes, box->item_bytes, bytes))
        return zr_internal(err);
    if (*bytes &&
        (!route_side_fits(box, &box->dst) || (!fill && !route_side_fits(box, &box->src))))
        return zr_fail(err, ZARR_ERR_INTERNAL,
                       "internal error: a box of %" PRIu64 " bytes leaves its memory",
                       *bytes);
    return ZARR_OK;
}

bool zr_route_repeats(const zarr_box *box)
{
    for (int32_t k = 0; k < box->ndim; k++)
        if (box->dst.stride[k] == 0 && box->shape[k] > 1)
            return true;
    return false;
}

/* Makes the box of the last copies if elements are written more than once; otherwise
 * returns false. */
static bool route_last_ones(zarr_box *out, const zarr_box *box)
{
    bool repeats = false;

    for (int32_t k = 0; k < box->ndim; k++) {
        if (box->dst.stride[k] != 0 || box->shape[k] < 2)
            continue;
        if (!repeats)
            *out = *box;
        repeats = true;
        out->src.mem.offset += (box->shape[k] - 1) * (uint64_t)box->src.stride[k];
        out->shape[k] = 1;
    }
    return repeats;
}

/* Copies a checked box of `bytes` bytes for which the host alone is not enough. */
static zarr_status route_device_box(const struct zr_memory_registry *r,
                                    const struct zr_route *way, const zarr_box *box,
                                    uint64_t bytes, struct zr_stream *s,
                                    struct zr_copy_counters *c, zarr_error *err)
{
    const struct zr_backend *be = zr_route_backend(way);
    bool done = false;
    void *handle = NULL;

    if (be) {
        ZR_CHECK(zr_stream_handle(s, be, &handle, err));
        ZR_CHECK(zr_backend_copy_box(be, box, handle, &done, err));
        if (done)
            zr_count_call(c);
        else if (way->kind != ZR_ROUTE_DEVICE)
            ZR_CHECK(zr_pack_copy(r,
                                  &(struct zr_pack_list){.be = be,
                                                         .boxes = box,
                                                         .n = 1,
                                                         .bytes = bytes,
                                                         .up = way->kind == ZR_ROUTE_UP},
                                  s, c, &done, err));
    }
    if (done) {
        zr_route_count(c, way->kind, 1, bytes);
    } else {
        ZR_CHECK(zr_stream_sync(s, err));
        ZR_CHECK(zr_stage_copy(r, box, way->dst, way->src, c, err));
        route_count_staged(c, way->kind, bytes);
        if (c && way->kind == ZR_ROUTE_DEVICE)
            c->detours++;
    }
    return ZARR_OK;
}

zarr_status zr_box_copy(const struct zr_memory_registry *r, const zarr_box *box,
                        struct zr_stream *s, struct zr_copy_counters *c, zarr_error *err)
{
    zarr_box last;
    struct zr_route way;
    uint64_t bytes;

    ZR_CHECK(zr_route_check(box, false, &bytes, err));
    ZR_CHECK(
        zr_route_find(&way, r, box->dst.mem.device_type, box->src.mem.device_type, err));
    if (bytes == 0)
        return ZARR_OK;
    if (route_last_ones(&last, box)) {
        box = &last;
        ZR_CHECK(zr_route_check(box, false, &bytes, err));
    }
    if (way.kind == ZR_ROUTE_HOST) {
        ZR_CHECK(zr_stream_sync(s, err));
        zr_host_box_copy(box);
        zr_route_count(c, ZR_ROUTE_HOST, 1, bytes);
        return ZARR_OK;
    }
    return route_device_box(r, &way, box, bytes, s, c, err);
}

zarr_status zr_box_fill(const struct zr_memory_registry *r, const zarr_box *box,
                        const void *pattern, struct zr_stream *s,
                        struct zr_copy_counters *c, zarr_error *err)
{
    const struct zr_backend *be;
    uint64_t bytes;
    bool done = false;
    void *handle = NULL;

    ZR_CHECK(zr_route_check(box, true, &bytes, err));
    ZR_CHECK(route_side(r, box->dst.mem.device_type, &be, err));
    if (bytes == 0)
        return ZARR_OK;
    ZR_CHECK(zr_stream_handle(s, be, &handle, err));
    if (!be) {
        zr_host_box_fill(box, pattern);
        zr_route_count(c, ZR_ROUTE_HOST, 1, bytes);
        return ZARR_OK;
    }
    ZR_CHECK(zr_backend_fill_box(be, box, pattern, handle, &done, err));
    if (done) {
        zr_count_call(c);
        zr_route_count(c, ZR_ROUTE_DEVICE, 1, bytes);
    } else {
        ZR_CHECK(zr_stream_sync(s, err));
        ZR_CHECK(zr_stage_fill(r, box, pattern, be, c, err));
        route_count_staged(c, ZR_ROUTE_UP, bytes);
    }
    return ZARR_OK;
}

/* ---- runs --------------------------------------------------------------------- */

zarr_status zr_mem_copy_bytes(const struct zr_memory_registry *r, const zarr_memory *dst,
                              const zarr_memory *src, uint64_t bytes,
                              struct zr_copy_counters *c, zarr_error *err)
{
    const struct zr_backend *be = NULL;
    struct zr_route way;
    uint64_t end;

    ZR_CHECK(zr_route_find(&way, r, dst->device_type, src->device_type, err));
    if (bytes > dst->bytes || bytes > src->bytes || !zr_add(dst->offset, bytes, &end) ||
        !zr_add(src->offset, bytes, &end))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "copy of %" PRIu64 " bytes from a run of %" PRIu64
                       " to one of %" PRIu64,
                       bytes, src->bytes, dst->bytes);
    if (bytes == 0)
        return ZARR_OK;
    if (way.kind == ZR_ROUTE_HOST) {
        zr_host_copy(zr_mem_at(dst), zr_mem_at(src), (size_t)bytes);
        zr_route_count(c, ZR_ROUTE_HOST, 1, bytes);
    } else if ((be = zr_route_backend(&way)) != NULL) {
        ZR_CHECK(be->vt.copy(be->self, dst, src, bytes, NULL, err));
        zr_count_call(c);
        zr_route_count(c, way.kind, 1, bytes);
    } else {
        zarr_box box = {.struct_size = sizeof box, .ndim = 1, .item_bytes = 1};

        box.shape[0] = bytes;
        zr_box_side_init(&box.dst, dst, 0);
        zr_box_side_init(&box.src, src, 0);
        box.dst.stride[0] = box.src.stride[0] = 1;
        ZR_CHECK(zr_stage_copy(r, &box, way.dst, way.src, c, err));
        route_count_staged(c, way.kind, bytes);
    }
    return ZARR_OK;
}
