/*
 * mem/pool_int.h - what the two files of the pool share: its structures, and what pool.c
 * needs of shelf.c. Functions whose names end in _locked want the pool's lock.
 */
#ifndef ZR_MEM_POOL_INT_H
#define ZR_MEM_POOL_INT_H

#include "mem/mem_int.h"

#define ZR_POOL_CLASSES    256 /* 64 doublings, 4 each */
#define ZR_POOL_PINNED_LOG 6   /* of the number of lists of pinned blocks */

struct zr_pool_block;
/* Idle blocks by age. */
struct zr_pool_ages {
    struct zr_pool_block *newest, *oldest;
    uint64_t kept_bytes;
};

/* A kept block, in the stack of its class and in a list by age; or a pinned block in
 * use, in a list of those. */
struct zr_pool_block {
    zarr_memory mem;
    struct zr_pool_shelf *shelf;
    struct zr_pool_block *newer, *older; /* in its class */
    struct zr_pool_block *next, *prev;   /* by age: next is older */
};

/* One device's classes, or its pinned memory's. */
struct zr_pool_shelf {
    struct zr_pool_shelf *next;
    const struct zr_backend *be; /* allocates and frees */
    int32_t device_type, device_id;
    bool pinned;
    uint64_t budget, used_bytes;    /* UINT64_MAX: no budget, and used_bytes is unused */
    struct zr_pool_ages own, *ages; /* &own with a budget, else the pool's */
    struct zr_pool_block *classes[ZR_POOL_CLASSES];
};

struct zr_pool {
    const struct zr_memory_registry *r;
    const zarr_allocator *alloc;
    uint64_t keep_bytes, device_bytes, pinned_bytes, pinned_most;
    atomic_uint_fast64_t pinned_in_use; /* blocks */
    struct {
        zr_mutex mutex;
        struct zr_pool_shelf *shelves;
        struct zr_pool_ages ages;    /* of all shelves without a budget */
        struct zr_pool_block *spare; /* nodes without a block, by next */
        uint32_t leaving;            /* lists of blocks that threads are freeing */
        uint64_t left;               /* lists that were freed */
        zr_cond freed;
        /* in use, by address; each list by next and prev */
        struct zr_pool_block *pinned[1 << ZR_POOL_PINNED_LOG];
    } locked;
    struct zr_fork_hook fork; /* keeps the shelves consistent in a forked child */
};

/* Returns the size of the class that holds `bytes`, or 0 if no class is so large. Other
 * functions want such sizes as `rounded`. */
uint64_t zr_pool_round(uint64_t bytes);

/* Finds or makes the shelf. The backend is asked for its limit without the lock. */
zarr_status zr_shelf_get(struct zr_pool *p, const struct zr_backend *be, int32_t id,
                         bool pinned, struct zr_pool_shelf **out, zarr_error *err);

/* Takes an idle block; or reserves its bytes in the budget and returns false. *full: it
 * does not fit the budget, even without idle blocks. */
bool zr_shelf_take(struct zr_pool *p, struct zr_pool_shelf *shelf, uint64_t rounded,
                   zarr_memory *out, bool *full);
/* Allocates a block for which zr_shelf_take() has reserved room. */
zarr_status zr_shelf_alloc(struct zr_pool *p, struct zr_pool_shelf *shelf,
                           uint64_t rounded, zarr_memory *out, zarr_error *err);
/* Frees a block in use, and its bytes in the budget. */
void zr_shelf_drop(struct zr_pool *p, struct zr_pool_shelf *shelf, zarr_memory *mem);
/* A block of host memory: an idle one or a new one. */
zarr_status zr_shelf_host(struct zr_pool *p, const struct zr_backend *be, int32_t id,
                          uint64_t rounded, zarr_memory *out, zarr_error *err);
/* Makes a block that is not pinned idle, or frees it. */
void zr_shelf_give(struct zr_pool *p, const struct zr_backend *be, zarr_memory *mem);

/* A node without a block. NULL: no memory. */
struct zr_pool_block *zr_pool_node_locked(struct zr_pool *p);
/* Makes the node's block idle. Returns the list of blocks that had to make room:
 * zr_pool_release() frees them. */
struct zr_pool_block *zr_shelf_keep_locked(struct zr_pool *p, struct zr_pool_block *b);
/* Frees the blocks of such a list, without the lock; the nodes become spare. */
void zr_pool_release(struct zr_pool *p, struct zr_pool_block *list);

#endif
