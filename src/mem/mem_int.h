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
/* s was made with src NULL; this call may change it. The pattern is item_bytes long, as
 * the box's elements. */
void zr_strided_fill(struct zr_strided *s, const void *pattern, uint32_t item_bytes);

/* The range of bytes that the elements touch, relative to the first element: [low, high).
 * False if it exceeds every memory (2^60 bytes). Without elements both are 0. */
bool zr_extent(int32_t ndim, const uint64_t *shape, const int64_t *stride,
               uint32_t item_bytes, int64_t *low, int64_t *high);
enum zr_overlap {
    ZR_OVERLAP_NO,
    ZR_OVERLAP_YES,
    ZR_OVERLAP_UNKNOWN
};
enum zr_overlap zr_strides_overlap(int32_t ndim, const uint64_t *shape,
                                   const int64_t *stride, uint32_t item_bytes);

/* The pointers of both sides are host pointers. */
void zr_host_box_copy(const zarr_box *box);
void zr_host_box_fill(const zarr_box *box, const void *pattern);
void zr_host_copy(void *dst, const void *src, size_t bytes);

/* Copies a box for which no single backend can do everything. dst_be, src_be NULL:
 * host. */
zarr_status zr_stage_copy(const struct zr_memory_registry *r, const zarr_box *box,
                          const struct zr_backend *dst_be,
                          const struct zr_backend *src_be, zarr_error *err);
zarr_status zr_stage_fill(const struct zr_memory_registry *r, const zarr_box *box,
                          const void *pattern, const struct zr_backend *dst_be,
                          zarr_error *err);

void zr_host_vtable(zarr_memory_vtable *out);

static inline uint8_t *zr_mem_at(const zarr_mem *m)
{
    return (uint8_t *)m->handle + m->offset;
}

#endif
