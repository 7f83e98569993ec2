/*
 * mem/pool.c - blocks of memory that are reused: a new block costs page faults or a
 * driver call, a used one is warm. There are four size classes to a doubling, so at most
 * a fifth is wasted. A class is a stack, newest first. Idle blocks also form lists by
 * age, and the oldest are freed first, of any class, so that after a change of chunk
 * sizes the pool is not full of blocks of useless sizes.
 *
 * A shelf has the blocks of one device, or pinned host memory for one device. A shelf
 * with a budget never has more bytes, in use and idle together, and makes room by freeing
 * idle blocks. While the device still frees some it may have no room for what takes their
 * place; that allocation is tried again afterwards. The idle blocks of all other shelves
 * together stay within keep_bytes.
 *
 * Bookkeeping nodes are reused, so a steady state allocates nothing. If there is no node
 * for a block, the block is freed instead of kept. Pinned blocks look like host memory,
 * so their nodes stay in lists by address while they are in use. Backends are called
 * without the lock. Thread class: shared.
 */
#include "mem/mem_int.h"

#define POOL_CLASSES     256 /* 64 doublings, 4 each */
#define POOL_LEAST_BYTES 64
#define POOL_PINNED_LOG  6 /* of the number of lists of pinned blocks */
#define POOL_TRIES       64

struct pool_block;
/* Idle blocks by age. */
struct pool_ages {
    struct pool_block *newest, *oldest;
    uint64_t kept_bytes;
};

/* A kept block, in the stack of its class and in a list by age; or a pinned block in
 * use, in a list of those. */
struct pool_block {
    zarr_mem mem;
    struct pool_shelf *shelf;
    struct pool_block *newer, *older; /* in its class */
    struct pool_block *next, *prev;   /* by age: next is older */
};

/* One device's classes, or its pinned memory's. */
struct pool_shelf {
    struct pool_shelf *next;
    const struct zr_backend *be; /* allocates and frees */
    int32_t device_type, device_id;
    bool pinned;
    uint64_t budget, used_bytes; /* UINT64_MAX: no budget, and used_bytes is unused */
    struct pool_ages own, *ages; /* &own with a budget, else the pool's */
    struct pool_block *classes[POOL_CLASSES];
};

struct zr_pool {
    const struct zr_memory_registry *r;
    const zarr_allocator *alloc;
    uint64_t keep_bytes, device_bytes, pinned_bytes, pinned_most;
    atomic_uint_fast64_t pinned_in_use; /* blocks */
    struct {
        zr_mutex mutex;
        struct pool_shelf *shelves;
        struct pool_ages ages;    /* of all shelves without a budget */
        struct pool_block *spare; /* nodes without a block, by next */
        uint32_t leaving;         /* lists of blocks that threads are freeing */
        uint64_t left;            /* lists that were freed */
        zr_cond freed;
        /* in use, by address; each list by next and prev */
        struct pool_block *pinned[1 << POOL_PINNED_LOG];
    } locked;
    struct zr_fork_hook fork; /* keeps the shelves consistent in a forked child */
};

/* ---- classes ------------------------------------------------------------------ */

static uint32_t pool_log2(uint64_t v)
{
    return 63 - (uint32_t)__builtin_clzll(v);
}

/* Returns the size of the class that holds `bytes`, or 0 if no class is so
 * large. */
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

/* ---- shelves ------------------------------------------------------------------ */

static struct pool_shelf *pool_shelf_locked(struct zr_pool *p, int32_t type, int32_t id,
                                            bool pinned)
{
    struct pool_shelf *shelf = p->locked.shelves;

    while (shelf && (shelf->device_type != type || shelf->device_id != id ||
                     shelf->pinned != pinned))
        shelf = shelf->next;
    return shelf;
}

static struct pool_shelf *pool_add_shelf_locked(struct zr_pool *p,
                                                const struct zr_backend *be, int32_t id,
                                                bool pinned, uint64_t budget)
{
    struct pool_shelf *shelf = pool_shelf_locked(p, be->vt.device_type, id, pinned);

    if (shelf)
        return shelf;
    shelf = zr_calloc(p->alloc, 1, sizeof *shelf);
    if (!shelf)
        return NULL;
    shelf->be = pinned ? zr_backend_pinning(p->r, be) : zr_allocator_of(p->r, be);
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
    zarr_status st = ZARR_OK;

    *budget = UINT64_MAX;
    if (zr_device_is_host(p->r, be->vt.device_type))
        return ZARR_OK;
    if (pinned && p->pinned_bytes) {
        *budget = p->pinned_bytes;
        return ZARR_OK;
    }
    *budget = p->device_bytes;
    if (!*budget)
        ZR_TRY(zr_backend_limit(p->r, be, id, budget, err));
    if (pinned)
        *budget = ZR_MIN(*budget, p->pinned_most);
out:
    return st;
}

/* Finds or makes the shelf. The backend is asked for its limit without the lock. */
static zarr_status pool_shelf(struct zr_pool *p, const struct zr_backend *be, int32_t id,
                              bool pinned, struct pool_shelf **out, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    uint64_t budget = 0;

    zr_mutex_lock(&p->locked.mutex);
    *out = pool_shelf_locked(p, be->vt.device_type, id, pinned);
    zr_mutex_unlock(&p->locked.mutex);
    if (*out)
        return ZARR_OK;
    ZR_TRY(pool_ask(p, be, id, pinned, &budget, err));
    zr_mutex_lock(&p->locked.mutex);
    *out = pool_add_shelf_locked(p, be, id, pinned, budget);
    zr_mutex_unlock(&p->locked.mutex);
    if (!*out)
        st = zr_fail_memory(err, sizeof **out);
out:
    return st;
}

/* ---- lists -------------------------------------------------------------------- */

static struct pool_block *pool_node_locked(struct zr_pool *p)
{
    struct pool_block *b = p->locked.spare;

    if (b)
        p->locked.spare = b->next;
    else
        b = zr_malloc(p->alloc, sizeof *b);
    return b;
}

static struct pool_block **pool_head(const struct pool_block *b)
{
    return &b->shelf->classes[pool_class(b->mem.bytes)];
}

static void pool_link_locked(struct pool_block *b)
{
    struct pool_ages *ages = b->shelf->ages;
    struct pool_block **head = pool_head(b);

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
}

static void pool_unlink_locked(struct pool_block *b)
{
    struct pool_ages *ages = b->shelf->ages;

    if (b->newer)
        b->newer->older = b->older;
    else
        *pool_head(b) = b->older;
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

static void shelf_unuse_locked(struct pool_shelf *shelf, uint64_t bytes)
{
    if (shelf->budget != UINT64_MAX)
        shelf->used_bytes -= ZR_MIN(shelf->used_bytes, bytes);
}

/* Takes the oldest blocks out until at most keep_bytes are left, and puts them in front
 * of a list by next. */
static struct pool_block *ages_evict_locked(struct pool_ages *ages, uint64_t keep_bytes,
                                            struct pool_block *out)
{
    struct pool_block *b;

    while (ages->kept_bytes > keep_bytes && (b = ages->oldest)) {
        pool_unlink_locked(b);
        shelf_unuse_locked(b->shelf, b->mem.bytes);
        b->next = out;
        out = b;
    }
    return out;
}

/* The same for one list, which pool_release() frees. */
static struct pool_block *pool_evict_locked(struct zr_pool *p, struct pool_ages *ages,
                                            uint64_t keep_bytes)
{
    struct pool_block *list = ages_evict_locked(ages, keep_bytes, NULL);

    p->locked.leaving += list != NULL;
    return list;
}

static void shelf_free(const struct pool_shelf *shelf, zarr_mem *mem)
{
    (shelf->pinned ? shelf->be->vt.host_free : shelf->be->vt.free)(shelf->be->self, mem);
}

static void pool_freed_locked(struct zr_pool *p)
{
    p->locked.leaving--;
    p->locked.left++;
    zr_cond_broadcast(&p->locked.freed);
}

/* Frees the blocks of such a list; the nodes become spare. */
static void pool_release(struct zr_pool *p, struct pool_block *list)
{
    struct pool_block *last = NULL;

    for (struct pool_block *b = list; b; b = b->next) {
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

static uint64_t pool_left(struct zr_pool *p)
{
    uint64_t left = 0;

    zr_mutex_lock(&p->locked.mutex);
    left = p->locked.left;
    zr_mutex_unlock(&p->locked.mutex);
    return left;
}

/* The threads that were freeing blocks are not there. */
static void blocks_in_child(void *arg)
{
    struct zr_pool *p = arg;

    p->locked.leaving = 0;
    zr_cond_init(&p->locked.freed);
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
    p->keep_bytes = p->pinned_most = keep_bytes;
    atomic_init(&p->pinned_in_use, 0);
    zr_mutex_init(&p->locked.mutex);
    zr_cond_init(&p->locked.freed);
    p->fork = (struct zr_fork_hook){
        .mutex = &p->locked.mutex, .child = blocks_in_child, .arg = p};
    zr_fork_hook_add(&p->fork);
    return ZARR_OK;
}

void zr_pool_set_budgets(struct zr_pool *p, uint64_t device_bytes, uint64_t pinned_bytes,
                         uint64_t pinned_most)
{
    p->device_bytes = device_bytes;
    p->pinned_bytes = pinned_bytes;
    p->pinned_most = pinned_most;
}

zarr_status zr_pool_budget(struct zr_pool *p, int32_t device_type, int32_t device_id,
                           bool pinned, uint64_t *bytes, zarr_error *err)
{
    const struct zr_backend *be;
    struct pool_shelf *shelf = NULL;
    zarr_status st = ZARR_OK;

    *bytes = UINT64_MAX;
    ZR_TRY(zr_backend_find(p->r, device_type, &be, err));
    if (zr_device_is_host(p->r, device_type) || (pinned && !zr_backend_pinning(p->r, be)))
        return ZARR_OK;
    ZR_TRY(pool_shelf(p, be, device_id, pinned, &shelf, err));
    *bytes = shelf->budget;
out:
    return st;
}

void zr_pool_trim(struct zr_pool *p)
{
    struct pool_block *list;

    zr_mutex_lock(&p->locked.mutex);
    list = ages_evict_locked(&p->locked.ages, 0, NULL);
    for (struct pool_shelf *s = p->locked.shelves; s; s = s->next)
        list = ages_evict_locked(&s->own, 0, list);
    p->locked.leaving += list != NULL;
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
    zr_cond_deinit(&p->locked.freed);
    zr_mutex_deinit(&p->locked.mutex);
    zr_free(p->alloc, p);
}

/* Takes an idle block; or reserves its bytes in the budget and returns false. *full: it
 * does not fit the budget, even without idle blocks. */
static bool shelf_take(struct zr_pool *p, struct pool_shelf *shelf, uint64_t rounded,
                       zarr_mem *out, bool *full)
{
    struct pool_block *b = NULL, *evicted = NULL;
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
            evicted = pool_evict_locked(p, &shelf->own, idle_most);
            shelf->used_bytes += rounded;
        }
    }
    zr_mutex_unlock(&p->locked.mutex);
    pool_release(p, evicted);
    return b != NULL;
}

static zarr_status pool_alloc(struct zr_pool *p, const struct zr_backend *be, int32_t id,
                              bool pinned, uint64_t rounded, zarr_mem *out,
                              zarr_error *err)
{
    zarr_status (*const fn)(void *, int32_t, uint64_t, zarr_mem *, zarr_error *) =
        pinned ? be->vt.host_alloc : be->vt.alloc;
    zarr_status st = fn(be->self, id, rounded, out, NULL);
    uint64_t left = 0;

    if (st != ZARR_OK) { /* idle blocks may use up the memory that is missing */
        zr_pool_trim(p);
        left = pool_left(p);
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
        *out = (zarr_mem){0};
    return st;
}

/* Allocates a block for which shelf_take() has reserved room. */
static zarr_status shelf_alloc(struct zr_pool *p, struct pool_shelf *shelf,
                               uint64_t rounded, zarr_mem *out, zarr_error *err)
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

/* Host memory has no budget, so its shelf need not exist before a block is kept. */
static bool host_take(struct zr_pool *p, int32_t type, int32_t id, uint64_t rounded,
                      zarr_mem *out)
{
    struct pool_shelf *shelf;
    struct pool_block *b = NULL;

    zr_mutex_lock(&p->locked.mutex);
    shelf = pool_shelf_locked(p, type, id, false);
    if (shelf)
        b = shelf->classes[pool_class(rounded)];
    if (b) {
        pool_unlink_locked(b);
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
    struct pool_shelf *shelf = NULL;
    bool full = false;

    *out = (zarr_mem){0};
    ZR_TRY(zr_backend_find(p->r, device_type, &be, err));
    if (!rounded)
        return zr_fail_memory(err, bytes);
    if (zr_device_is_host(p->r, device_type)) {
        if (!host_take(p, device_type, device_id, rounded, out))
            ZR_TRY(pool_alloc(p, zr_allocator_of(p->r, be), device_id, false, rounded,
                              out, err));
        goto out;
    }
    ZR_TRY(pool_shelf(p, be, device_id, false, &shelf, err));
    if (shelf_take(p, shelf, rounded, out, &full))
        goto out;
    if (full)
        return zr_fail(err, ZARR_ERR_NO_MEMORY,
                       "%" PRIu64 " bytes of \"%s\" memory exceed its budget of %" PRIu64
                       " bytes",
                       rounded, be->vt.name, shelf->budget);
    ZR_TRY(shelf_alloc(p, shelf, rounded, out, err));
out:
    return st;
}

/* The list that a pinned block is in while it is in use. */
static struct pool_block **pinned_list(struct zr_pool *p, const zarr_mem *mem)
{
    const uint64_t at = (uint64_t)(uintptr_t)mem->handle * UINT64_C(0x9e3779b97f4a7c15);

    return &p->locked.pinned[at >> (64 - POOL_PINNED_LOG)];
}

/* Notes that a pinned block is in use. */
static bool pinned_note(struct zr_pool *p, struct pool_shelf *shelf, const zarr_mem *mem)
{
    struct pool_block **list = pinned_list(p, mem);
    struct pool_block *b;

    zr_mutex_lock(&p->locked.mutex);
    b = pool_node_locked(p);
    if (b) {
        *b = (struct pool_block){.mem = *mem, .shelf = shelf, .next = *list};
        if (b->next)
            b->next->prev = b;
        *list = b;
        atomic_fetch_add(&p->pinned_in_use, 1);
    }
    zr_mutex_unlock(&p->locked.mutex);
    return b != NULL;
}

/* Takes the note of a pinned block back and makes the block idle. Returns false if it is
 * not pinned. */
static bool pinned_give(struct zr_pool *p, const zarr_mem *mem)
{
    struct pool_block **list = pinned_list(p, mem), *b = NULL, *evicted = NULL;

    if (atomic_load_explicit(&p->pinned_in_use, memory_order_relaxed) == 0)
        return false;
    zr_mutex_lock(&p->locked.mutex);
    for (b = *list; b && b->mem.handle != mem->handle; b = b->next)
        ;
    if (b) {
        if (b->prev)
            b->prev->next = b->next;
        else
            *list = b->next;
        if (b->next)
            b->next->prev = b->prev;
        atomic_fetch_sub(&p->pinned_in_use, 1);
        pool_link_locked(b);
        if (b->shelf->budget == UINT64_MAX)
            evicted = pool_evict_locked(p, b->shelf->ages, p->keep_bytes);
    }
    zr_mutex_unlock(&p->locked.mutex);
    pool_release(p, evicted);
    return b != NULL;
}

zarr_status zr_pool_take_staging(struct zr_pool *p, int32_t device_type,
                                 int32_t device_id, uint64_t bytes, zarr_mem *out,
                                 zarr_error *err)
{
    zarr_status st = ZARR_OK;
    const struct zr_backend *be;
    const uint64_t rounded = pool_round(bytes);
    struct pool_shelf *shelf = NULL;
    bool full = true;

    *out = (zarr_mem){0};
    ZR_TRY(zr_backend_find(p->r, device_type, &be, err));
    if (!rounded || zr_device_is_host(p->r, device_type) || !zr_backend_pinning(p->r, be))
        return zr_pool_take(p, ZARR_DEVICE_CPU, 0, bytes, out, err);
    ZR_TRY(pool_shelf(p, be, device_id, true, &shelf, err));
    if (!shelf_take(p, shelf, rounded, out, &full) && !full) {
        st = shelf_alloc(p, shelf, rounded, out, err);
        if (st != ZARR_OK && st != ZARR_ERR_NO_MEMORY)
            goto out;
    }
    if (out->handle && pinned_note(p, shelf, out))
        return ZARR_OK;
    if (out->handle) { /* no node */
        shelf_free(shelf, out);
        zr_mutex_lock(&p->locked.mutex);
        shelf_unuse_locked(shelf, rounded);
        zr_mutex_unlock(&p->locked.mutex);
    }
    if (err && st != ZARR_OK)
        zr_error_clear(err);
    st = zr_pool_take(p, ZARR_DEVICE_CPU, 0, bytes, out, err);
out:
    return st;
}

uint64_t zr_pool_pinned(const struct zr_pool *p)
{
    return atomic_load_explicit(&p->pinned_in_use, memory_order_relaxed);
}

void zr_pool_give(struct zr_pool *p, zarr_mem *mem)
{
    const struct zr_backend *be = NULL;
    struct pool_block *b = NULL, *evicted = NULL;
    struct pool_shelf *shelf = NULL;
    bool keep = false;

    if (!mem->handle || zr_backend_find(p->r, mem->device_type, &be, NULL) != ZARR_OK)
        return;
    if (mem->device_type == ZARR_DEVICE_CPU && pinned_give(p, mem)) {
        *mem = (zarr_mem){0};
        return;
    }
    zr_mutex_lock(&p->locked.mutex);
    shelf = pool_shelf_locked(p, mem->device_type, mem->device_id, false);
    keep = pool_round(mem->bytes) == mem->bytes &&
           ((shelf && shelf->budget != UINT64_MAX) || mem->bytes <= p->keep_bytes);
    if (keep && !shelf)
        shelf = pool_add_shelf_locked(p, be, mem->device_id, false, UINT64_MAX);
    b = keep && shelf ? pool_node_locked(p) : NULL;
    if (b) {
        b->mem = *mem;
        b->shelf = shelf;
        pool_link_locked(b);
        if (shelf->budget == UINT64_MAX)
            evicted = pool_evict_locked(p, shelf->ages, p->keep_bytes);
    } else {
        if (shelf)
            shelf_unuse_locked(shelf, mem->bytes);
        p->locked.leaving++;
    }
    zr_mutex_unlock(&p->locked.mutex);
    if (!b) {
        be = zr_allocator_of(p->r, be);
        be->vt.free(be->self, mem);
        zr_mutex_lock(&p->locked.mutex);
        pool_freed_locked(p);
        zr_mutex_unlock(&p->locked.mutex);
    }
    pool_release(p, evicted);
    *mem = (zarr_mem){0};
}
