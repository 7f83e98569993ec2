/*
 * mem/mem_int.h - what the files of this room share: the normal form of a strided copy
 * between host pointers, and the functions that do it. Only this room includes it.
 */
#ifndef ZR_MEM_INT_H
#define ZR_MEM_INT_H

#include "mem/mem.h"

/* Huge pages are used from this size on; the alignment that they need. */
#define ZR_HOST_LARGE_BYTES ((uint64_t)4 << 20)
#define ZR_HOST_HUGE_BYTES  ((uint64_t)2 << 20)
#define ZR_HOST_ALIGN_BYTES ((uint64_t)64)

/* Length of a piece that goes through the host if there is no direct way. */
#define ZR_STAGE_BYTES ((uint64_t)1 << 20)

/* A destination of at least this length will not be in a cache when it is complete, so
 * its rows are written past the caches. Half of a usual third-level cache. */
#define ZR_NT_EXTENT_BYTES ((uint64_t)16 << 20)

/*
 * A strided copy in normal form. Dimension 0 is the innermost. Elements are `run` bytes,
 * contiguous on both sides. Strides of dst are not negative. There are no dimensions of
 * length 1, and dimensions that form one line are merged. The struct is large, so it is
 * filled only up to ndim.
 */
struct zr_strided {
    uint8_t *dst;
    const uint8_t *src; /* NULL in a fill */
    size_t run;
    uint32_t unit; /* bytes to reverse; 0: plain copy */
    uint32_t ndim;
    bool nt; /* destination is too big for the caches */
    uint64_t n[ZARR_MAX_RANK];
    int64_t ds[ZARR_MAX_RANK], ss[ZARR_MAX_RANK];
};

/* False: there are no elements to copy. src NULL makes a fill, for which only dst is
 * used. */
bool zr_strided_init(struct zr_strided *out, const zarr_box *box, void *dst,
                     const void *src);
void zr_strided_copy(struct zr_strided *s);

/* The range of bytes that the elements touch, relative to the first element: [low, high).
 * False if it exceeds every memory (2^60 bytes). Without elements both are 0. */
bool zr_extent(int32_t ndim, const uint64_t *shape, const int64_t *stride,
               uint32_t item_bytes, int64_t *low, int64_t *high);

/* The host pointer of a run. */
static inline uint8_t *zr_mem_at(const zarr_memory *m)
{
    return (uint8_t *)m->handle + m->offset;
}
/* The destination's pointer is a host pointer. */
void zr_host_box_fill(const zarr_box *box, const void *pattern);
void zr_host_copy(void *dst, const void *src, size_t bytes);

/* ---- routes (route.c) ---- */

enum zr_route_kind {
    ZR_ROUTE_HOST,
    ZR_ROUTE_UP,
    ZR_ROUTE_DOWN,
    ZR_ROUTE_DEVICE
};
struct zr_route {
    enum zr_route_kind kind;
    const struct zr_backend *dst, *src; /* NULL: host */
};
zarr_status zr_route_find(struct zr_route *out, const struct zr_memory_registry *r,
                          int32_t dst_type, int32_t src_type, zarr_error *err);
/* Returns the backend that can do it alone, or NULL. */
const struct zr_backend *zr_route_backend(const struct zr_route *way);
/* Counts n copies; a call of a backend. c may be NULL. */
void zr_route_count(struct zr_copy_counters *c, enum zr_route_kind kind, uint64_t n,
                    uint64_t bytes);
void zr_count_call(struct zr_copy_counters *c);
/* Checks for mistakes of our own callers. *bytes is 0 for an empty box. */
zarr_status zr_route_check(const zarr_box *box, bool fill, uint64_t *bytes,
                           zarr_error *err);
/* Whether elements are written more than once (a repeated index). Then only the last copy
 * of each counts. A device may copy in any order, so a copy of all could leave another
 * one there; such a box never goes to a device as it is. */
bool zr_route_repeats(const zarr_box *box);

/* ---- boxes through the host (stage.c) ---- */

/* Copies a box without dimensions of length 1, the longest stride of one side first. */
void zr_box_sort(zarr_box *out, const zarr_box *box, bool by_dst);
/* Copies a box for which no single backend can do everything. dst_be, src_be NULL:
 * host. Nothing is queued, before or after. */
zarr_status zr_stage_copy(const struct zr_memory_registry *r, const zarr_box *box,
                          const struct zr_backend *dst_be,
                          const struct zr_backend *src_be, struct zr_copy_counters *c,
                          zarr_error *err);
zarr_status zr_stage_fill(const struct zr_memory_registry *r, const zarr_box *box,
                          const void *pattern, const struct zr_backend *dst_be,
                          struct zr_copy_counters *c, zarr_error *err);

/* ---- boxes between a device and the host (pack.c) ---- */

struct zr_pack_list {
    const struct zr_backend *be;
    const zarr_box *boxes; /* between one device of the backend and the host */
    uint64_t n, bytes;     /* of all boxes */
    bool up;               /* to the device */
};
/* Copies boxes for a backend that copies them only inside of the device; the work is done
 * on return. *done false: the backend has no such copies, there is no memory for a block,
 * or it is not worth it. */
zarr_status zr_pack_copy(const struct zr_memory_registry *r, const struct zr_pack_list *l,
                         struct zr_stream *s, struct zr_copy_counters *c, bool *done,
                         zarr_error *err);

/* ---- streams (stream.c) ---- */

/* Gives the handle of a stream for work of `be`, and notes that work is queued. If `be`
 * is not the stream's backend, it waits for the stream and gives NULL, so that the work
 * is done on return and after all earlier work. */
zarr_status zr_stream_handle(struct zr_stream *s, const struct zr_backend *be,
                             void **handle, zarr_error *err);

/* ---- optional entries of a backend (emulate.c) ---- */

/* *done false: the backend cannot, and nothing was queued. */
zarr_status zr_backend_copy_box(const struct zr_backend *be, const zarr_box *box,
                                void *stream, bool *done, zarr_error *err);
zarr_status zr_backend_fill_box(const struct zr_backend *be, const zarr_box *box,
                                const void *pattern, void *stream, bool *done,
                                zarr_error *err);
zarr_status zr_backend_copy_boxes(const struct zr_backend *be, const zarr_box *boxes,
                                  uint64_t n, void *stream, bool *done, zarr_error *err);
zarr_status zr_backend_fill_boxes(const struct zr_backend *be, const zarr_box *boxes,
                                  uint64_t n, const void *pattern, void *stream,
                                  bool *done, zarr_error *err);
zarr_status zr_backend_equal_list(const struct zr_backend *be,
                                  const struct zr_equal_list *l, void *stream, bool *done,
                                  zarr_error *err);
/* Counts its calls, but not its copies. */
zarr_status zr_backend_copy_list(const struct zr_backend *be, const zarr_memory *dst,
                                 const zarr_memory *src, uint64_t n, void *stream,
                                 struct zr_copy_counters *c, zarr_error *err);
/* Compares on the host. Nothing is queued. */
zarr_status zr_host_equal_list(const struct zr_memory_registry *r,
                               const struct zr_backend *be, const struct zr_equal_list *l,
                               struct zr_copy_counters *c, zarr_error *err);
/* *stream NULL: the backend has none. */
zarr_status zr_backend_stream_open(const struct zr_backend *be, int32_t device_id,
                                   void **stream, zarr_error *err);
void zr_backend_stream_close(const struct zr_backend *be, void *stream);
zarr_status zr_backend_sync(const struct zr_backend *be, void *stream, zarr_error *err);
zarr_status zr_backend_order(const struct zr_backend *be, void *stream, void *foreign,
                             zarr_error *err);
bool zr_backend_classify(const struct zr_backend *be, const void *pointer,
                         int32_t *device_type, int32_t *device_id);
/* UINT64_MAX: not known. */
zarr_status zr_backend_limit(const struct zr_memory_registry *r,
                             const struct zr_backend *be, int32_t device_id,
                             uint64_t *bytes, zarr_error *err);
/* Returns the backend with host_alloc() for devices of `be`, or NULL. */
const struct zr_backend *zr_backend_find_pinning(const struct zr_memory_registry *r,
                                                 const struct zr_backend *be);

void zr_host_vtable(zarr_memory_vtable *out);

#endif
