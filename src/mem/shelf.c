/*
 * mem/shelf.c - the blocks of the pool that are idle, and those that take their place.
 * There are four size classes to a doubling, so at most a fifth is wasted. A class is a
 * stack, newest first. Idle blocks also form lists by age, and the oldest are freed
 * first, of any class, so that after a change of chunk sizes the pool is not full of
 * blocks of useless sizes.
 *
 * A shelf has the blocks of one device, or pinned host memory for one device. A shelf
 * with a budget never has more bytes, in use and idle together, and makes room by freeing
 * idle blocks. While the device still frees some it may have no room for what takes their
 * place; that allocation is tried again afterwards. The idle blocks of all other shelves
 * together stay within keep_bytes.
 *
 * Bookkeeping nodes are reused, so a steady state allocates nothing. If there is no node
 * for a block, the block is freed instead of kept. Backends are called without the lock.
 * Thread class: shared.
 */
#include "mem/pool_int.h"

#define POOL_LEAST_BYTES 64
#define POOL_TRIES       64

/* ---- classes ------------------------------------------------------------------ */

static uint32_t pool_log2(uint64_t v)
{
    return 63 - (uint32_t)__builtin_clzll(v);
}

uint64_t zr_pool_round(uint64_t bytes)
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

/* ---- shelves ------------------------------------------------------------------ */

static struct zr_pool_shelf *shelf_find_locked(struct zr_pool *p, int32_t type,
                                               int32_t id, bool pinned)
{
    struct zr_pool_shelf *shelf = p->locked.shelves;

    while (shelf && (shelf->device_type != type || shelf->device_id != id ||
                     shelf->pinned != pinned))
        shelf = shelf->next;
    return shelf;
}

static struct zr_pool_shelf *shelf_add_locked(struct zr_pool *p,
                                              const struct zr_backend *be, int32_t id,
                                              bool pinned, uint64_t budget)
{
    struct zr_pool_shelf *shelf = shelf_find_locked(p, be->vt.device_type, id, pinned);

    if (shelf)
        return shelf;
    shelf = zr_calloc(p->alloc, 1, sizeof *shelf);
    if (!shelf)
        return NULL;
    shelf->be =
        pinned ? zr_backend_find_pinning(p->r, be) : zr_backend_allocator(p->r, be);
    shelf->device_type = be->vt.device_type;
    shelf->device_id = id;
    shelf->pinned = pinned;
    shelf->budget = budget;
    shelf->ages = budget == UINT64_MAX ? &p->locked.ages : &shelf->own;
    shelf->next = p->locked.shelves;
    p->locked.shelves = shelf;
    return shelf;
}

/* The bytes that a new shelf may have. */
static zarr_status pool_ask(const struct zr_pool *p, const struct zr_backend *be,
                            int32_t id, bool pinned, uint64_t *budget, zarr_error *err)
{
    *budget = UINT64_MAX;
    if (zr_device_is_host(p->r, be->vt.device_type))
        return ZARR_OK;
    if (pinned && p->pinned_bytes) {
        *budget = p->pinned_bytes;
        return ZARR_OK;
    }
    *budget = p->device_bytes;
    if (!*budget)
        ZR_CHECK(zr_backend_limit(p->r, be, id, budget, err));
    if (pinned)
        *budget = ZR_MIN(*budget, p->pinned_most);
    return ZARR_OK;
}

zarr_status zr_shelf_get(struct zr_pool *p, const struct zr_backend *be, int32_t id,
                         bool pinned, struct zr_pool_shelf **out, zarr_error *err)
{
    uint64_t budget = 0;

    zr_mutex_lock(&p->locked.mutex);
    *out = shelf_find_locked(p, be->vt.device_type, id, pinned);
    zr_mutex_unlock(&p->locked.mutex);
    if (*out)
        return ZARR_OK;
    ZR_CHECK(pool_ask(p, be, id, pinned, &budget, err));
    zr_mutex_lock(&p->locked.mutex);
    *out = shelf_add_locked(p, be, id, pinned, budget);
    zr_mutex_unlock(&p->locked.mutex);
    if (!*out)
        return zr_fail_memory(err, sizeof **out);
    return ZARR_OK;
}

/* ---- lists -------------------------------------------------------------------- */

struct zr_pool_block *zr_pool_node_locked(struct zr_pool *p)
{
    struct zr_pool_block *b = p->locked.spare;

    if (b)
        p->locked.spare = b->next;
    else
        b = zr_malloc(p->alloc, sizeof *b);
    return b;
}

static void pool_unlink_locked(struct zr_pool_block *b)
{
    struct zr_pool_ages *ages = b->shelf->ages;

    if (b->newer)
        b->newer->older = b->older;
    else
        b->shelf->classes[pool_class(b->mem.bytes)] = b->older;
    if (b->older)
        b->older->newer = b->newer;
    if (b->prev)
        b->prev->next = b->next;
    else
        ages->newest = b->next;
    if (b->next)
        b->next->prev = b->prev;
    else
        ages->oldest = b->prev;
    ages->kept_bytes -= b->mem.bytes;
}

static void shelf_unuse_locked(struct zr_pool_shelf *shelf, uint64_t bytes)
{
    if (shelf->budget != UINT64_MAX)
        shelf->used_bytes -= ZR_MIN(shelf->used_bytes, bytes);
}

/* Takes the oldest blocks out until at most keep_bytes are left, and puts them in front
 * of a list by next. The caller passes the list to zr_pool_release(). */
static struct zr_pool_block *pool_evict_locked(struct zr_pool *p,
                                               struct zr_pool_ages *ages,
                                               uint64_t keep_bytes,
                                               struct zr_pool_block *out)
{
    const bool is_first = !out;
    struct zr_pool_block *b;

    while (ages->kept_bytes > keep_bytes && (b = ages->oldest)) {
        pool_unlink_locked(b);
        shelf_unuse_locked(b->shelf, b->mem.bytes);
        b->next = out;
        out = b;
    }
    p->locked.leaving += is_first && out;
    return out;
}

struct zr_pool_block *zr_shelf_keep_locked(struct zr_pool *p, struct zr_pool_block *b)
{
    struct zr_pool_ages *ages = b->shelf->ages;
    struct zr_pool_block **head = &b->shelf->classes[pool_class(b->mem.bytes)];

    b->newer = NULL;
    b->older = *head;
    if (b->older)
        b->older->newer = b;
    *head = b;
    b->prev = NULL;
    b->next = ages->newest;
    if (b->next)
        b->next->prev = b;
    else
        ages->oldest = b;
    ages->newest = b;
    ages->kept_bytes += b->mem.bytes;
    return b->shelf->budget == UINT64_MAX
               ? pool_evict_locked(p, ages, p->keep_bytes, NULL)
               : NULL;
}

static void shelf_free(const struct zr_pool_shelf *shelf, zarr_memory *mem)
{
    (shelf->pinned ? shelf->be->vt.host_free : shelf->be->vt.free)(shelf->be->self, mem);
}

static void pool_freed_locked(struct zr_pool *p)
{
    p->locked.leaving--;
    p->locked.left++;
    zr_cond_broadcast(&p->locked.freed);
}

void zr_pool_release(struct zr_pool *p, struct zr_pool_block *list)
{
    struct zr_pool_block *last = NULL;

    for (struct zr_pool_block *b = list; b; b = b->next) {
        shelf_free(b->shelf, &b->mem);
        last = b;
    }
    if (!last)
        return;
    zr_mutex_lock(&p->locked.mutex);
    last->next = p->locked.spare;
    p->locked.spare = list;
    pool_freed_locked(p);
    zr_mutex_unlock(&p->locked.mutex);
}

/* Waits until something is freed that other threads were freeing. Returns false if
 * nothing was since there were `left`, and nothing is. */
static bool pool_wait_freed(struct zr_pool *p, uint64_t *left)
{
    bool any = false;

    zr_mutex_lock(&p->locked.mutex);
    while (p->locked.leaving > 0 && p->locked.left == *left)
        zr_cond_wait(&p->locked.freed, &p->locked.mutex);
    any = p->locked.left != *left;
    *left = p->locked.left;
    zr_mutex_unlock(&p->locked.mutex);
    return any;
}

static uint64_t pool_spare_bytes(struct zr_pool *p)
{
    uint64_t left = 0;

    zr_mutex_lock(&p->locked.mutex);
    left = p->locked.left;
    zr_mutex_unlock(&p->locked.mutex);
    return left;
}

void zr_pool_trim(struct zr_pool *p)
{
    struct zr_pool_block *list;

    zr_mutex_lock(&p->locked.mutex);
    list = pool_evict_locked(p, &p->locked.ages, 0, NULL);
    for (struct zr_pool_shelf *s = p->locked.shelves; s; s = s->next)
        list = pool_evict_locked(p, &s->own, 0, list);
    zr_mutex_unlock(&p->locked.mutex);
    zr_pool_release(p, list);
}

/* ---- idle blocks, and new ones ------------------------------------------------ */

bool zr_shelf_take(struct zr_pool *p, struct zr_pool_shelf *shelf, uint64_t rounded,
                   zarr_memory *out, bool *full)
{
    struct zr_pool_block *b = NULL, *evicted = NULL;
    uint64_t idle_most = 0;

    *full = false;
    zr_mutex_lock(&p->locked.mutex);
    b = shelf->classes[pool_class(rounded)];
    if (b) {
        pool_unlink_locked(b);
        *out = b->mem;
        b->next = p->locked.spare;
        p->locked.spare = b;
    } else if (shelf->budget != UINT64_MAX) {
        const uint64_t busy = shelf->used_bytes - shelf->own.kept_bytes;

        *full = rounded > shelf->budget || busy > shelf->budget - rounded;
        if (!*full) {
            idle_most = shelf->budget - rounded - busy;
            evicted = pool_evict_locked(p, &shelf->own, idle_most, NULL);
            shelf->used_bytes += rounded;
        }
    }
    zr_mutex_unlock(&p->locked.mutex);
    zr_pool_release(p, evicted);
    return b != NULL;
}

static zarr_status pool_alloc(struct zr_pool *p, const struct zr_backend *be, int32_t id,
                              bool pinned, uint64_t rounded, zarr_memory *out,
                              zarr_error *err)
{
    zarr_status (*const fn)(void *, int32_t, uint64_t, zarr_memory *, zarr_error *) =
        pinned ? be->vt.host_alloc : be->vt.alloc;
    zarr_status st = fn(be->self, id, rounded, out, NULL);
    uint64_t left = 0;

    if (st != ZARR_OK) { /* idle blocks may use up the memory that is missing */
        zr_pool_trim(p);
        left = pool_spare_bytes(p);
        st = fn(be->self, id, rounded, out, err);
    }
    for (int k = 0; k < POOL_TRIES && st == ZARR_ERR_NO_MEMORY; k++) {
        if (!pool_wait_freed(p, &left))
            break;
        if (err)
            zr_error_clear(err);
        st = fn(be->self, id, rounded, out, err);
    }
    if (st == ZARR_OK)
        out->bytes = rounded;
    else
        *out = (zarr_memory){0};
    return st;
}

zarr_status zr_shelf_alloc(struct zr_pool *p, struct zr_pool_shelf *shelf,
                           uint64_t rounded, zarr_memory *out, zarr_error *err)
{
    const zarr_status st =
        pool_alloc(p, shelf->be, shelf->device_id, shelf->pinned, rounded, out, err);

    if (st != ZARR_OK) {
        zr_mutex_lock(&p->locked.mutex);
        shelf_unuse_locked(shelf, rounded);
        zr_mutex_unlock(&p->locked.mutex);
    }
    return st;
}

zarr_status zr_shelf_host(struct zr_pool *p, const struct zr_backend *be, int32_t id,
                          uint64_t rounded, zarr_memory *out, zarr_error *err)
{
    struct zr_pool_shelf *shelf;
    struct zr_pool_block *b = NULL;

    zr_mutex_lock(&p->locked.mutex);
    shelf = shelf_find_locked(p, be->vt.device_type, id, false);
    if (shelf)
        b = shelf->classes[pool_class(rounded)];
    if (b) {
        pool_unlink_locked(b);
        *out = b->mem;
        b->next = p->locked.spare;
        p->locked.spare = b;
    }
    zr_mutex_unlock(&p->locked.mutex);
    if (b)
        return ZARR_OK;
    return pool_alloc(p, zr_backend_allocator(p->r, be), id, false, rounded, out, err);
}

void zr_shelf_drop(struct zr_pool *p, struct zr_pool_shelf *shelf, zarr_memory *mem)
{
    const uint64_t rounded = mem->bytes;

    shelf_free(shelf, mem);
    zr_mutex_lock(&p->locked.mutex);
    shelf_unuse_locked(shelf, rounded);
    zr_mutex_unlock(&p->locked.mutex);
}

void zr_shelf_give(struct zr_pool *p, const struct zr_backend *be, zarr_memory *mem)
{
    struct zr_pool_block *b = NULL, *evicted = NULL;
    struct zr_pool_shelf *shelf = NULL;
    bool keep = false;

    zr_mutex_lock(&p->locked.mutex);
    shelf = shelf_find_locked(p, mem->device_type, mem->device_id, false);
    keep = zr_pool_round(mem->bytes) == mem->bytes &&
           ((shelf && shelf->budget != UINT64_MAX) || mem->bytes <= p->keep_bytes);
    if (keep && !shelf)
        shelf = shelf_add_locked(p, be, mem->device_id, false, UINT64_MAX);
    b = keep && shelf ? zr_pool_node_locked(p) : NULL;
    if (b) {
        b->mem = *mem;
        b->shelf = shelf;
        evicted = zr_shelf_keep_locked(p, b);
    } else {
        if (shelf)
            shelf_unuse_locked(shelf, mem->bytes);
        p->locked.leaving++;
    }
    zr_mutex_unlock(&p->locked.mutex);
    if (!b) {
        be = zr_backend_allocator(p->r, be);
        be->vt.free(be->self, mem);
        zr_mutex_lock(&p->locked.mutex);
        pool_freed_locked(p);
        zr_mutex_unlock(&p->locked.mutex);
    }
    zr_pool_release(p, evicted);
}
