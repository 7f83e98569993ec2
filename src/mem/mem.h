/*
 * mem/mem.h - the door to memory of any kind: backends, checked views of the
 * caller's tensors, strided copies and fills between any two memories, pooled
 * buffers, and the one place where a handle becomes a host pointer.
 * It knows no Zarr: elements are item_bytes wide, that is all.
 * Thread class: registry sealed; pools shared; views are values.
 */
#ifndef ZR_MEM_H
#define ZR_MEM_H

#include "base/base.h"
#include <zarrc/memory.h>
#include <zarrc/plugin/memory.h>

/* ---- backends ----------------------------------------------------------- */

struct zr_backend {
    struct zr_registered entry;
    zarr_memory_vtable vt;
    void *self;
};
struct zr_memory_registry {
    struct zr_registry kinds;       /* struct zr_backend */
    struct zr_backend *by_type[32]; /* by DLPack number; [ZARR_DEVICE_CPU] is the host */
    const zarr_allocator *alloc;
};
/* Registers the host backend, whose memory comes from alloc. */
zarr_status zr_memory_registry_init(struct zr_memory_registry *r,
                                    const zarr_allocator *alloc, zarr_error *err);
void zr_memory_registry_deinit(struct zr_memory_registry *r);
zarr_status zr_memory_register(struct zr_memory_registry *r, const zarr_memory_vtable *v,
                               void *self, const char *origin, zarr_error *err);
/* UNSUPPORTED names the device type. */
zarr_status zr_backend_find(const struct zr_memory_registry *r, int32_t device_type,
                            const struct zr_backend **out, zarr_error *err);
bool zr_device_is_host(const struct zr_memory_registry *r,
                       int32_t device_type); /* CPU may read and write */

/* The only way from a handle to a pointer: MEMORY_KIND unless the host may touch it,
 * INTERNAL unless [offset, offset+bytes) is inside. */
zarr_status zr_mem_host_ptr(const struct zr_memory_registry *r, const zarr_mem *mem,
                            uint64_t bytes, void **out, zarr_error *err);
zarr_mem zr_mem_of_host(void *p, uint64_t bytes);
/* A part of a run; false when it is not inside. */
bool zr_mem_slice(const zarr_mem *mem, uint64_t offset, uint64_t bytes, zarr_mem *out);

/* ---- heaps ---------------------------------------------------------------- */

/* Blocks of host memory that live until all are cleared at once. Shared; clearing solo.
 */
struct zr_heap_block;
struct zr_heap {
    _Atomic(struct zr_heap_block *) first;
    atomic_uint_fast64_t bytes; /* of all blocks */
    uint64_t most;
    const zarr_allocator *alloc;
};
void zr_heap_init(struct zr_heap *h, uint64_t most, const zarr_allocator *alloc);
void zr_heap_clear(struct zr_heap *h);
uint64_t zr_heap_bytes(const struct zr_heap *h);
/* LIMIT above h->most. *out is aligned for any element and never NULL. */
zarr_status zr_heap_alloc(struct zr_heap *h, uint64_t bytes, void **out, zarr_error *err);

/* ---- counters ----------------------------------------------------------- */

/* Copies by route; each worker has its own, added up at the end. */
struct zr_copy_counters {
    uint64_t copies_host, bytes_host, copies_up, bytes_up, copies_down, bytes_down,
        copies_device, bytes_device,
        staged; /* staged: device<->device or box copies that went through the host */
};

/* ---- views --------------------------------------------------------------- */

/* A checked strided view of caller's memory. stride in bytes, any sign; base.offset is
 * the first element. */
struct zr_view {
    zarr_mem base;
    int32_t ndim;
    uint32_t item_bytes;
    uint32_t swap_bytes; /* unit to reverse against host order; 0: none */
    uint64_t shape[ZARR_MAX_RANK];
    int64_t stride[ZARR_MAX_RANK];
};
enum zr_view_role {
    ZR_VIEW_SOURCE,
    ZR_VIEW_DESTINATION
};
/* What the caller's tensor has to be. swap_unit: bytes of the data type's unit. */
struct zr_view_want {
    int32_t ndim;
    const uint64_t *shape;
    uint32_t item_bytes, swap_unit;
    enum zr_view_role role;
};
/* From a caller's tensor: struct size, rank and shape against `want`, strides and extents
 * in 64 bits, data_bytes, byte order, overlap (destination). base.bytes is the extent
 * behind the handle, as in a box's sides. */
zarr_status zr_view_from_tensor(struct zr_view *out, const struct zr_memory_registry *r,
                                const zarr_tensor *tensor,
                                const struct zr_view_want *want, zarr_error *err);
/* C-order view of a run of bytes; base is an ordinary run, its bytes count from its
 * offset. */
void zr_view_contiguous(struct zr_view *out, zarr_mem base, int32_t ndim,
                        const uint64_t *shape, uint32_t item_bytes, uint32_t swap_bytes);
bool zr_view_is_contiguous(const struct zr_view *v);

/* ---- strided copies ------------------------------------------------------ */

/*
 * One side of a box over a run of bytes: the first element lies `at` bytes behind the
 * run's offset. A run's bytes count from its offset, a side's from the handle (strides go
 * both ways): this is the place where one becomes the other. Strides are the caller's to
 * set.
 */
void zr_box_side_init(zarr_box_side *out, const zarr_mem *run, int64_t at);

/*
 * Copies box->shape elements from src to dst, any memories, any strides, reversing units
 * of swap_bytes. Merges and sorts dimensions, then picks: memcpy of long runs,
 * non-temporal rows, fused byte swap, blocked transposes (both sides' fastest dims
 * differ), generic loop. Other memories: backend's copy_box when it has one, else packing
 * through host staging (counted). Host side only when both are host: no allocation.
 */
zarr_status zr_box_copy(const struct zr_memory_registry *r, const zarr_box *box,
                        struct zr_copy_counters *c, zarr_error *err);
/* Fills box->dst with a pattern of item_bytes (host memory, already in the destination's
 * byte order). */
zarr_status zr_box_fill(const struct zr_memory_registry *r, const zarr_box *box,
                        const void *pattern, struct zr_copy_counters *c, zarr_error *err);
/* True when all n elements equal the pattern bit for bit; host memory; vectorised, stops
 * at the first difference. */
bool zr_all_equal(const void *data, uint64_t n, const void *pattern, uint32_t item_bytes);
/* Plain runs between any two memories. */
zarr_status zr_mem_copy_bytes(const struct zr_memory_registry *r, const zarr_mem *dst,
                              const zarr_mem *src, uint64_t bytes,
                              struct zr_copy_counters *c, zarr_error *err);

/* ---- pooled buffers -------------------------------------------------------- */

/* Reusable blocks of any memory kind: size classes, kept when given back, capped, trimmed
 * on demand. Shared (locks inside). */
struct zr_pool;
zarr_status zr_pool_create(struct zr_pool **out, const struct zr_memory_registry *r,
                           const zarr_allocator *alloc, uint64_t keep_bytes,
                           zarr_error *err);
void zr_pool_free(struct zr_pool *p);
/* At least `bytes`; out->bytes is the block's full size. */
zarr_status zr_pool_take(struct zr_pool *p, int32_t device_type, int32_t device_id,
                         uint64_t bytes, zarr_mem *out, zarr_error *err);
void zr_pool_give(struct zr_pool *p, zarr_mem *mem);
void zr_pool_trim(struct zr_pool *p);

#endif
