/*
 * mem/pool.c - blocks of memory that are reused: a new block costs page faults or a
 * driver call, a used one is warm. There are four size classes to a doubling, so at most
 * a fifth is wasted. A class is a stack, newest first. All idle blocks also form one list
 * by age. When they exceed keep_bytes, the oldest are freed, of any class or device, so
 * that after a change of chunk sizes the pool is not full of blocks of useless sizes.
 * Bookkeeping nodes are reused, so a steady state allocates nothing. If there is no node
 * for a block, the block is freed instead of kept. Backends are called without the lock.
 * Thread class: shared.
 */
#include "mem/mem_int.h"

#define POOL_CLASSES     256 /* 64 doublings, 4 each */
#define POOL_LEAST_BYTES 64

/* A kept block, in the stack of its class and in the list by age. */
struct pool_block {
    zarr_mem mem;
    const struct zr_backend *be;
    struct pool_block **head;         /* of its class */
    struct pool_block *newer, *older; /* in its class */
    struct pool_block *next, *prev;   /* by age: next is older */
};

/* One device's classes. */
struct pool_shelf {
    struct pool_shelf *next;
    int32_t device_type, device_id;
    struct pool_block *classes[POOL_CLASSES];
};

struct zr_pool {
    const struct zr_memory_registry *r;
    const zarr_allocator *alloc;
    uint64_t keep_bytes;
    struct {
        zr_mutex mutex;
        struct pool_shelf *shelves;
        struct pool_block *newest, *oldest;
        struct pool_block *spare; /* nodes without a block, by next */
        uint64_t kept_bytes;
    } locked;
    struct zr_fork_hook fork; /* keeps the shelves consistent in a forked child */
};

/* ---- classes ------------------------------------------------------------------ */

static uint32_t pool_log2(uint64_t v)
{
    return 63 - (uint32_t)__builtin_clzll(v);
}

/* The class's size, or 0 if no class is that large. */
static uint64_t pool_round(uint64_t bytes)
{
    uint64_t step;

    if (bytes <= POOL_LEAST_BYTES)
        return POOL_LEAST_BYTES;
    if (bytes > UINT64_C(1) << 62)
        return 0;
    step = UINT64_C(1) << (pool_log2(bytes) - 2);
    return (bytes + step - 1) / step * step;
}

static uint32_t pool_class(uint64_t rounded)
{
    const uint32_t log = pool_log2(rounded);

    return log * 4 + (uint32_t)(rounded >> (log - 2) & 3);
}

/* ---- lists -------------------------------------------------------------------- */

static struct pool_shelf *pool_shelf_locked(struct zr_pool *p, int32_t type, int32_t id)
{
    struct pool_shelf *shelf = p->locked.shelves;

    while (shelf && (shelf->device_type != type || shelf->device_id != id))
        shelf = shelf->next;
    return shelf;
}

/* Both the shelf and the node, or NULL. */
static struct pool_block *pool_node_locked(struct zr_pool *p, const zarr_mem *mem,
                                           struct pool_shelf **shelf)
{
    struct pool_block *b = p->locked.spare;

    *shelf = pool_shelf_locked(p, mem->device_type, mem->device_id);
    if (!*shelf) {
        *shelf = zr_calloc(p->alloc, 1, sizeof **shelf);
        if (!*shelf)
            return NULL;
        (*shelf)->device_type = mem->device_type;
        (*shelf)->device_id = mem->device_id;
        (*shelf)->next = p->locked.shelves;
        p->locked.shelves = *shelf;
    }
    if (b)
        p->locked.spare = b->next;
    else
        b = zr_malloc(p->alloc, sizeof *b);
    return b;
}

static void pool_link_locked(struct zr_pool *p, struct pool_block *b)
{
    b->newer = NULL;
    b->older = *b->head;
    if (b->older)
        b->older->newer = b;
    *b->head = b;
    b->prev = NULL;
    b->next = p->locked.newest;
    if (b->next)
        b->next->prev = b;
    else
        p->locked.oldest = b;
    p->locked.newest = b;
    p->locked.kept_bytes += b->mem.bytes;
}

static void pool_unlink_locked(struct zr_pool *p, struct pool_block *b)
{
    if (b->newer)
        b->newer->older = b->older;
    else
        *b->head = b->older;
    if (b->older)
        b->older->newer = b->newer;
    if (b->prev)
        b->prev->next = b->next;
    else
        p->locked.newest = b->next;
    if (b->next)
        b->next->prev = b->prev;
    else
        p->locked.oldest = b->prev;
    p->locked.kept_bytes -= b->mem.bytes;
}

/* Takes the oldest blocks out until at most keep_bytes are left. Returns them as a list
 * by next. */
static struct pool_block *pool_evict_locked(struct zr_pool *p, uint64_t keep_bytes)
{
    struct pool_block *out = NULL, *b;

    while (p->locked.kept_bytes > keep_bytes && (b = p->locked.oldest)) {
        pool_unlink_locked(p, b);
        b->next = out;
        out = b;
    }
    return out;
}

/* Frees the blocks of such a list; the nodes become spare. */
static void pool_release(struct zr_pool *p, struct pool_block *list)
{
    struct pool_block *last = NULL;

    for (struct pool_block *b = list; b; b = b->next) {
        b->be->vt.free(b->be->self, &b->mem);
        last = b;
    }
    if (!last)
        return;
    zr_mutex_lock(&p->locked.mutex);
    last->next = p->locked.spare;
    p->locked.spare = list;
    zr_mutex_unlock(&p->locked.mutex);
}

/* ---- door --------------------------------------------------------------------- */

zarr_status zr_pool_create(struct zr_pool **out, const struct zr_memory_registry *r,
                           const zarr_allocator *alloc, uint64_t keep_bytes,
                           zarr_error *err)
{
    struct zr_pool *p = zr_calloc(alloc, 1, sizeof *p);

    *out = p;
    if (!p)
        return zr_fail_memory(err, sizeof *p);
    p->r = r;
    p->alloc = alloc;
    p->keep_bytes = keep_bytes;
    zr_mutex_init(&p->locked.mutex);
    p->fork = (struct zr_fork_hook){.mutex = &p->locked.mutex};
    zr_fork_hook_add(&p->fork);
    return ZARR_OK;
}

void zr_pool_trim(struct zr_pool *p)
{
    struct pool_block *list;

    zr_mutex_lock(&p->locked.mutex);
    list = pool_evict_locked(p, 0);
    zr_mutex_unlock(&p->locked.mutex);
    pool_release(p, list);
}

void zr_pool_free(struct zr_pool *p)
{
    if (!p)
        return;
    zr_fork_hook_remove(&p->fork);
    zr_pool_trim(p);
    for (struct pool_block *b = p->locked.spare, *next; b; b = next) {
        next = b->next;
        zr_free(p->alloc, b);
    }
    for (struct pool_shelf *s = p->locked.shelves, *next; s; s = next) {
        next = s->next;
        zr_free(p->alloc, s);
    }
    zr_mutex_deinit(&p->locked.mutex);
    zr_free(p->alloc, p);
}

static bool pool_pop(struct zr_pool *p, int32_t type, int32_t id, uint64_t rounded,
                     zarr_mem *out)
{
    struct pool_shelf *shelf;
    struct pool_block *b = NULL;

    zr_mutex_lock(&p->locked.mutex);
    shelf = pool_shelf_locked(p, type, id);
    if (shelf)
        b = shelf->classes[pool_class(rounded)];
    if (b) {
        pool_unlink_locked(p, b);
        *out = b->mem;
        b->next = p->locked.spare;
        p->locked.spare = b;
    }
    zr_mutex_unlock(&p->locked.mutex);
    return b != NULL;
}

zarr_status zr_pool_take(struct zr_pool *p, int32_t device_type, int32_t device_id,
                         uint64_t bytes, zarr_mem *out, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    const struct zr_backend *be;
    const uint64_t rounded = pool_round(bytes);
    zarr_mem mem = {0};

    *out = mem;
    ZR_TRY(zr_backend_find(p->r, device_type, &be, err));
    if (!rounded)
        return zr_fail_memory(err, bytes);
    if (!pool_pop(p, device_type, device_id, rounded, &mem)) {
        st = be->vt.alloc(be->self, device_id, rounded, &mem, NULL);
        if (st != ZARR_OK) { /* idle blocks may use up the memory that is missing */
            zr_pool_trim(p);
            ZR_TRY(be->vt.alloc(be->self, device_id, rounded, &mem, err));
        }
        mem.bytes = rounded;
    }
    *out = mem;
out:
    return st;
}

void zr_pool_give(struct zr_pool *p, zarr_mem *mem)
{
    const struct zr_backend *be = NULL;
    struct pool_block *b = NULL, *evicted = NULL;
    struct pool_shelf *shelf;

    if (!mem->handle || zr_backend_find(p->r, mem->device_type, &be, NULL) != ZARR_OK)
        return;
    if (mem->bytes <= p->keep_bytes && pool_round(mem->bytes) == mem->bytes) {
        zr_mutex_lock(&p->locked.mutex);
        b = pool_node_locked(p, mem, &shelf);
        if (b) {
            b->mem = *mem;
            b->be = be;
            b->head = &shelf->classes[pool_class(mem->bytes)];
            pool_link_locked(p, b);
            evicted = pool_evict_locked(p, p->keep_bytes);
        }
        zr_mutex_unlock(&p->locked.mutex);
    }
    if (!b)
        be->vt.free(be->self, mem);
    pool_release(p, evicted);
    *mem = (zarr_mem){0};
}
