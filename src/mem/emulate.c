/*
 * mem/emulate.c - the optional entries of a backend's table, each with what the library
 * does if the backend lacks the entry or answers UNSUPPORTED. Lists become single calls.
 * A backend without streams has done all work when a call returns. A list is compared on
 * the host, piece by piece. No other file tests whether an optional entry is there.
 * Thread class: plain functions; each caller has its own counters.
 */
#include "mem/mem_int.h"

#include <string.h>

/* Whether a backend declined and left the work to the library. */
static bool has_declined(zarr_status st, zarr_error *err)
{
    if (st != ZARR_ERR_UNSUPPORTED)
        return false;
    if (err)
        zr_error_clear(err);
    return true;
}

/* ---- single boxes --------------------------------------------------------------- */

zarr_status zr_backend_copy_box(const struct zr_backend *be, const zarr_box *box,
                                void *stream, bool *done, zarr_error *err)
{
    zarr_status st = ZARR_ERR_UNSUPPORTED;

    if (be->vt.copy_box)
        st = be->vt.copy_box(be->self, box, stream, err);
    *done = !has_declined(st, be->vt.copy_box ? err : NULL);
    return *done ? st : ZARR_OK;
}

zarr_status zr_backend_fill_box(const struct zr_backend *be, const zarr_box *box,
                                const void *pattern, void *stream, bool *done,
                                zarr_error *err)
{
    zarr_status st = ZARR_ERR_UNSUPPORTED;

    if (be->vt.fill_box)
        st = be->vt.fill_box(be->self, box, pattern, stream, err);
    *done = !has_declined(st, be->vt.fill_box ? err : NULL);
    return *done ? st : ZARR_OK;
}

/* ---- lists ------------------------------------------------------------------------ */

zarr_status zr_backend_copy_list(const struct zr_backend *be, const zarr_memory *dst,
                                 const zarr_memory *src, uint64_t n, void *stream,
                                 struct zr_copy_counters *c, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (be->vt.copy_list) {
        st = be->vt.copy_list(be->self, dst, src, n, stream, err);
        if (!has_declined(st, err)) {
            zr_count_call(c);
            return st;
        }
        st = ZARR_OK;
    }
    for (uint64_t i = 0; i < n; i++) {
        ZR_TRY(be->vt.copy(be->self, &dst[i], &src[i], dst[i].bytes, stream, err));
        zr_count_call(c);
    }
out:
    return st;
}

zarr_status zr_backend_copy_boxes(const struct zr_backend *be, const zarr_box *boxes,
                                  uint64_t n, void *stream, bool *done, zarr_error *err)
{
    zarr_status st = ZARR_ERR_UNSUPPORTED;

    if (be->vt.copy_boxes)
        st = be->vt.copy_boxes(be->self, boxes, n, stream, err);
    *done = !has_declined(st, be->vt.copy_boxes ? err : NULL);
    return *done ? st : ZARR_OK;
}

zarr_status zr_backend_fill_boxes(const struct zr_backend *be, const zarr_box *boxes,
                                  uint64_t n, const void *pattern, void *stream,
                                  bool *done, zarr_error *err)
{
    zarr_status st = ZARR_ERR_UNSUPPORTED;

    if (be->vt.fill_boxes)
        st = be->vt.fill_boxes(be->self, boxes, n, pattern, stream, err);
    *done = !has_declined(st, be->vt.fill_boxes ? err : NULL);
    return *done ? st : ZARR_OK;
}

/* ---- comparing -------------------------------------------------------------------- */

zarr_status zr_backend_equal_list(const struct zr_backend *be,
                                  const struct zr_equal_list *l, void *stream, bool *done,
                                  zarr_error *err)
{
    zarr_status st = ZARR_ERR_UNSUPPORTED;

    if (be->vt.equal_list)
        st = be->vt.equal_list(be->self, l->src, l->n, l->pattern, l->item_bytes,
                               l->equal, stream, err);
    *done = !has_declined(st, be->vt.equal_list ? err : NULL);
    return *done ? st : ZARR_OK;
}

/* Compares run i on the host. `piece` is a multiple of item_bytes long. */
static zarr_status equal_run(const struct zr_backend *be, const struct zr_equal_list *l,
                             uint64_t i, const zarr_memory *piece,
                             struct zr_copy_counters *c, zarr_error *err)
{
    const zarr_memory *run = &l->src[i];

    l->equal[i] = 1;
    for (uint64_t at = 0; at < run->bytes && l->equal[i]; at += piece->bytes) {
        const uint64_t bytes = ZR_MIN(piece->bytes, run->bytes - at);
        zarr_memory part = *run;

        part.offset += at;
        part.bytes = bytes;
        ZR_CHECK(be->vt.copy(be->self, piece, &part, bytes, NULL, err));
        zr_count_call(c);
        zr_route_count(c, ZR_ROUTE_DOWN, 1, bytes);
        l->equal[i] =
            zr_all_equal(piece->handle, bytes / l->item_bytes, l->pattern, l->item_bytes);
    }
    return ZARR_OK;
}

zarr_status zr_host_equal_list(const struct zr_memory_registry *r,
                               const struct zr_backend *be, const struct zr_equal_list *l,
                               struct zr_copy_counters *c, zarr_error *err)
{
    const uint64_t fit = ZR_STAGE_BYTES / l->item_bytes * l->item_bytes;
    uint64_t longest = l->item_bytes;
    zarr_status st = ZARR_OK;
    zarr_memory piece;

    for (uint64_t i = 0; i < l->n; i++)
        longest = ZR_MAX(longest, l->src[i].bytes);
    longest = fit ? ZR_MIN(longest, fit) : l->item_bytes;
    piece = zr_mem_of_host(zr_malloc(r->alloc, (size_t)longest), longest);
    if (!piece.handle)
        return zr_fail_memory(err, longest);
    for (uint64_t i = 0; i < l->n; i++)
        ZR_TRY(equal_run(be, l, i, &piece, c, err));
out:
    zr_free(r->alloc, piece.handle);
    return st;
}

/* ---- streams ---------------------------------------------------------------------- */

zarr_status zr_backend_stream_open(const struct zr_backend *be, int32_t device_id,
                                   void **stream, zarr_error *err)
{
    *stream = NULL;
    if (!be->vt.stream_open || !be->vt.sync)
        return ZARR_OK;
    return be->vt.stream_open(be->self, device_id, stream, err);
}

void zr_backend_stream_close(const struct zr_backend *be, void *stream)
{
    if (stream && be->vt.stream_close)
        be->vt.stream_close(be->self, stream);
}

zarr_status zr_backend_sync(const struct zr_backend *be, void *stream, zarr_error *err)
{
    return be->vt.sync ? be->vt.sync(be->self, stream, err) : ZARR_OK;
}

zarr_status zr_backend_order(const struct zr_backend *be, void *stream, void *foreign,
                             zarr_error *err)
{
    if (stream && be->vt.order)
        return be->vt.order(be->self, stream, foreign, err);
    return zr_backend_sync(be, foreign, err);
}

/* ---- facts and host memory -------------------------------------------------------- */

bool zr_backend_classify(const struct zr_backend *be, const void *pointer,
                         int32_t *device_type, int32_t *device_id)
{
    return be->vt.classify &&
           be->vt.classify(be->self, pointer, device_type, device_id) != 0;
}

/* The chosen allocator knows better, if it says anything. */
zarr_status zr_backend_limit(const struct zr_memory_registry *r,
                             const struct zr_backend *be, int32_t device_id,
                             uint64_t *bytes, zarr_error *err)
{
    const struct zr_backend *own = zr_backend_allocator(r, be);

    *bytes = UINT64_MAX;
    if (own->vt.limit)
        return own->vt.limit(own->self, device_id, bytes, err);
    return be->vt.limit ? be->vt.limit(be->self, device_id, bytes, err) : ZARR_OK;
}

zarr_status zr_backend_device_count(const struct zr_backend *be, uint32_t *n,
                                    zarr_error *err)
{
    *n = 1;
    return be->vt.device_count ? be->vt.device_count(be->self, n, err) : ZARR_OK;
}

zarr_status zr_backend_describe(const struct zr_backend *be, int32_t device_id,
                                zarr_device_facts *out, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    *out = (zarr_device_facts){.struct_size = sizeof *out};
    if (be->vt.describe)
        st = be->vt.describe(be->self, device_id, out, err);
    out->name[sizeof out->name - 1] = '\0';
    if (!zr_utf8_is_valid(out->name, strlen(out->name)))
        out->name[0] = '\0';
    return st;
}

const struct zr_backend *zr_backend_find_pinning(const struct zr_memory_registry *r,
                                                 const struct zr_backend *be)
{
    const struct zr_backend *own = zr_backend_allocator(r, be);

    if (own->vt.host_alloc && own->vt.host_free)
        return own;
    return be->vt.host_alloc && be->vt.host_free ? be : NULL;
}
