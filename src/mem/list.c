/*
 * mem/list.c - lists of copies, fills and comparisons. A list is checked as a whole
 * before anything moves. Then it is cut where the route changes, so that each call of a
 * backend has runs between the same two memories. What the stream's backend cannot do
 * alone waits for the stream first and is done on return.
 * Thread class: plain functions; each caller has its own counters and stream.
 */
#include "mem/mem_int.h"

static bool same_device(const zarr_memory *a, const zarr_memory *b)
{
    return a->device_type == b->device_type && a->device_id == b->device_id;
}

/* ---- runs ------------------------------------------------------------------------- */

static zarr_status runs_check(const struct zr_memory_registry *r, const zarr_memory *dst,
                              const zarr_memory *src, uint64_t n, zarr_error *err)
{
    struct zr_route way;
    uint64_t end = 0;

    for (uint64_t i = 0; i < n; i++) {
        ZR_CHECK(zr_route_find(&way, r, dst[i].device_type, src[i].device_type, err));
        if (dst[i].bytes != src[i].bytes || !zr_add(dst[i].offset, dst[i].bytes, &end) ||
            !zr_add(src[i].offset, src[i].bytes, &end))
            return zr_fail(err, ZARR_ERR_INVALID,
                           "copy of %" PRIu64 " bytes to a run of %" PRIu64 " bytes",
                           src[i].bytes, dst[i].bytes);
    }
    return ZARR_OK;
}

/* Copies runs that all have the same route. */
static zarr_status runs_copy(const struct zr_memory_registry *r, const zarr_memory *dst,
                             const zarr_memory *src, uint64_t n, struct zr_stream *s,
                             struct zr_copy_counters *c, zarr_error *err)
{
    const struct zr_backend *be = NULL;
    struct zr_route way;
    uint64_t bytes = 0;
    void *handle = NULL;

    ZR_CHECK(zr_route_find(&way, r, dst->device_type, src->device_type, err));
    be = zr_route_backend(&way);
    ZR_CHECK(zr_stream_handle(s, be, &handle, err));
    if (!be) { /* inside the host, or between two devices */
        for (uint64_t i = 0; i < n; i++)
            ZR_CHECK(zr_mem_copy_bytes(r, &dst[i], &src[i], dst[i].bytes, c, err));
        return ZARR_OK;
    }
    ZR_CHECK(zr_backend_copy_list(be, dst, src, n, handle, c, err));
    for (uint64_t i = 0; i < n; i++)
        bytes += dst[i].bytes;
    zr_route_count(c, way.kind, n, bytes);
    return ZARR_OK;
}

zarr_status zr_mem_copy_list(const struct zr_memory_registry *r, const zarr_memory *dst,
                             const zarr_memory *src, uint64_t n, struct zr_stream *s,
                             struct zr_copy_counters *c, zarr_error *err)
{
    uint64_t first = 0, end = 0;

    ZR_CHECK(runs_check(r, dst, src, n, err));
    for (first = 0; first < n; first = end) {
        end = first + 1;
        if (dst[first].bytes == 0)
            continue;
        while (end < n && dst[end].bytes > 0 && same_device(&dst[end], &dst[first]) &&
               same_device(&src[end], &src[first]))
            end++;
        ZR_CHECK(runs_copy(r, &dst[first], &src[first], end - first, s, c, err));
    }
    return ZARR_OK;
}

/* ---- boxes ------------------------------------------------------------------------ */

static zarr_status boxes_check(const struct zr_memory_registry *r, const zarr_box *boxes,
                               uint64_t n, bool fill, zarr_error *err)
{
    const struct zr_backend *be = NULL;
    uint64_t bytes = 0;

    for (uint64_t i = 0; i < n; i++) {
        ZR_CHECK(zr_route_check(&boxes[i], fill, &bytes, err));
        ZR_CHECK(zr_backend_find(r, boxes[i].dst.mem.device_type, &be, err));
        if (!fill)
            ZR_CHECK(zr_backend_find(r, boxes[i].src.mem.device_type, &be, err));
        if (fill && boxes[i].item_bytes != boxes[0].item_bytes)
            return zr_internal(err);
    }
    return ZARR_OK;
}

/* Length of a box in bytes; 0 if there is nothing to do. */
static uint64_t box_bytes(const zarr_box *box)
{
    uint64_t bytes = 0;

    (void)zr_product_u64(box->shape, (size_t)box->ndim, &bytes); /* checked before */
    return bytes * box->item_bytes;
}

/* Whether a box can be part of a list that begins with `first`. */
static bool box_joins(const zarr_box *first, const zarr_box *box, bool fill)
{
    return same_device(&first->dst.mem, &box->dst.mem) &&
           (fill ||
            (same_device(&first->src.mem, &box->src.mem) && !zr_route_repeats(box))) &&
           box_bytes(box) > 0;
}

/* How many boxes from the first on go in one call of a backend, and their bytes. */
static uint64_t boxes_alike(const zarr_box *boxes, uint64_t n, bool fill, uint64_t *bytes)
{
    uint64_t end = 1;

    *bytes = box_bytes(&boxes[0]);
    if (*bytes == 0 || (!fill && zr_route_repeats(&boxes[0])))
        return 1;
    for (; end < n && box_joins(&boxes[0], &boxes[end], fill); end++)
        *bytes += box_bytes(&boxes[end]);
    return end;
}

static zarr_status boxes_copy(const struct zr_memory_registry *r, const zarr_box *boxes,
                              uint64_t n, uint64_t bytes, struct zr_stream *s,
                              struct zr_copy_counters *c, zarr_error *err)
{
    const struct zr_backend *be = NULL;
    struct zr_route way;
    bool done = false;
    void *handle = NULL;

    ZR_CHECK(zr_route_find(&way, r, boxes->dst.mem.device_type,
                           boxes->src.mem.device_type, err));
    be = zr_route_backend(&way);
    if (be && !zr_route_repeats(boxes)) {
        ZR_CHECK(zr_stream_handle(s, be, &handle, err));
        ZR_CHECK(zr_backend_copy_boxes(be, boxes, n, handle, &done, err));
        if (done)
            zr_count_call(c);
        else if (way.kind != ZR_ROUTE_DEVICE && n > 1)
            ZR_CHECK(zr_pack_copy(r,
                                  &(struct zr_pack_list){.be = be,
                                                         .boxes = boxes,
                                                         .n = n,
                                                         .bytes = bytes,
                                                         .up = way.kind == ZR_ROUTE_UP},
                                  s, c, &done, err));
    }
    if (done) {
        zr_route_count(c, way.kind, n, bytes);
        return ZARR_OK;
    }
    for (uint64_t i = 0; i < n; i++)
        ZR_CHECK(zr_box_copy(r, &boxes[i], s, c, err));
    return ZARR_OK;
}

zarr_status zr_box_copy_list(const struct zr_memory_registry *r, const zarr_box *boxes,
                             uint64_t n, struct zr_stream *s, struct zr_copy_counters *c,
                             zarr_error *err)
{
    uint64_t bytes = 0, step = 0;

    ZR_CHECK(boxes_check(r, boxes, n, false, err));
    for (uint64_t i = 0; i < n; i += step) {
        step = boxes_alike(&boxes[i], n - i, false, &bytes);
        if (bytes > 0)
            ZR_CHECK(boxes_copy(r, &boxes[i], step, bytes, s, c, err));
    }
    return ZARR_OK;
}

/* Fills boxes of one device. *done false: its backend has no list, or it is the host. */
static zarr_status boxes_fill(const struct zr_memory_registry *r, const zarr_box *boxes,
                              uint64_t n, const void *pattern, struct zr_stream *s,
                              bool *done, zarr_error *err)
{
    const struct zr_backend *be = NULL;
    void *handle = NULL;

    *done = false;

    ZR_CHECK(zr_backend_find(r, boxes->dst.mem.device_type, &be, err));
    if (!zr_device_is_host(r, boxes->dst.mem.device_type)) {
        ZR_CHECK(zr_stream_handle(s, be, &handle, err));
        ZR_CHECK(zr_backend_fill_boxes(be, boxes, n, pattern, handle, done, err));
    }
    return ZARR_OK;
}

zarr_status zr_box_fill_list(const struct zr_memory_registry *r, const zarr_box *boxes,
                             uint64_t n, const void *pattern, struct zr_stream *s,
                             struct zr_copy_counters *c, zarr_error *err)
{
    uint64_t bytes = 0, step = 0;
    bool done = false;

    ZR_CHECK(boxes_check(r, boxes, n, true, err));
    for (uint64_t i = 0; i < n; i += step) {
        step = boxes_alike(&boxes[i], n - i, true, &bytes);
        if (bytes == 0)
            continue;
        ZR_CHECK(boxes_fill(r, &boxes[i], step, pattern, s, &done, err));
        if (done) {
            zr_count_call(c);
            zr_route_count(c, ZR_ROUTE_DEVICE, step, bytes);
            continue;
        }
        for (uint64_t k = i; k < i + step; k++)
            ZR_CHECK(zr_box_fill(r, &boxes[k], pattern, s, c, err));
    }
    return ZARR_OK;
}

/* ---- comparing -------------------------------------------------------------------- */

/* Compares runs that are all memory of one device. */
static zarr_status runs_equal(const struct zr_memory_registry *r,
                              const struct zr_equal_list *l, struct zr_stream *s,
                              struct zr_copy_counters *c, zarr_error *err)
{
    const struct zr_backend *be = NULL;
    bool done = false;
    void *handle = NULL;

    ZR_CHECK(zr_backend_find(r, l->src->device_type, &be, err));
    if (!zr_device_is_host(r, l->src->device_type)) {
        ZR_CHECK(zr_stream_handle(s, be, &handle, err));
        ZR_CHECK(zr_backend_equal_list(be, l, handle, &done, err));
        if (done) {
            zr_count_call(c);
            return ZARR_OK;
        }
        ZR_CHECK(zr_stream_sync(s, err));
        return zr_host_equal_list(r, be, l, c, err);
    }
    ZR_CHECK(zr_stream_sync(s, err));
    for (uint64_t i = 0; i < l->n; i++)
        l->equal[i] = zr_all_equal(zr_mem_at(&l->src[i]), l->src[i].bytes / l->item_bytes,
                                   l->pattern, l->item_bytes);
    return ZARR_OK;
}

zarr_status zr_mem_equal_list(const struct zr_memory_registry *r,
                              const struct zr_equal_list *l, struct zr_stream *s,
                              struct zr_copy_counters *c, zarr_error *err)
{
    const zarr_memory *src = l->src;
    const struct zr_backend *be = NULL;
    uint64_t first = 0, end = 0;

    for (uint64_t i = 0; i < l->n; i++) {
        ZR_CHECK(zr_backend_find(r, src[i].device_type, &be, err));
        if (l->item_bytes == 0 || src[i].bytes % l->item_bytes ||
            !zr_add(src[i].offset, src[i].bytes, &end))
            return zr_internal(err);
        l->equal[i] = 1; /* also the answer for an empty run */
    }
    for (first = 0; first < l->n; first = end) {
        struct zr_equal_list part = *l;

        end = first + 1;
        if (src[first].bytes == 0)
            continue;
        while (end < l->n && src[end].bytes > 0 && same_device(&src[end], &src[first]))
            end++;
        part.src += first;
        part.n = end - first;
        part.equal += first;
        ZR_CHECK(runs_equal(r, &part, s, c, err));
    }
    return ZARR_OK;
}
