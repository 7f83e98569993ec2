/*
 * mem/pool.c - blocks of memory that are reused: a new block costs page faults or a
 * driver call, a used one is warm. shelf.c has the idle blocks, and the budgets. Pinned
 * blocks look like host memory, so their nodes stay in lists by address while they are in
 * use. Thread class: shared.
 */
#include "mem/pool_int.h"

/* The threads that were freeing blocks are not there. */
static void blocks_in_child(void *arg)
{
    struct zr_pool *p = arg;

    p->locked.leaving = 0;
    zr_cond_init(&p->locked.freed);
}

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
    struct zr_pool_shelf *shelf = NULL;

    *bytes = UINT64_MAX;
    ZR_CHECK(zr_backend_find(p->r, device_type, &be, err));
    if (zr_device_is_host(p->r, device_type) ||
        (pinned && !zr_backend_find_pinning(p->r, be)))
        return ZARR_OK;
    ZR_CHECK(zr_shelf_get(p, be, device_id, pinned, &shelf, err));
    *bytes = shelf->budget;
    return ZARR_OK;
}

void zr_pool_free(struct zr_pool *p)
{
    if (!p)
        return;
    zr_fork_hook_remove(&p->fork);
    zr_pool_trim(p);
    for (struct zr_pool_block *b = p->locked.spare, *next; b; b = next) {
        next = b->next;
        zr_free(p->alloc, b);
    }
    for (struct zr_pool_shelf *s = p->locked.shelves, *next; s; s = next) {
        next = s->next;
        zr_free(p->alloc, s);
    }
    zr_cond_deinit(&p->locked.freed);
    zr_mutex_deinit(&p->locked.mutex);
    zr_free(p->alloc, p);
}

zarr_status zr_pool_take(struct zr_pool *p, int32_t device_type, int32_t device_id,
                         uint64_t bytes, zarr_memory *out, zarr_error *err)
{
    const struct zr_backend *be;
    const uint64_t rounded = zr_pool_round(bytes);
    struct zr_pool_shelf *shelf = NULL;
    bool full = false;

    *out = (zarr_memory){0};
    ZR_CHECK(zr_backend_find(p->r, device_type, &be, err));
    if (!rounded)
        return zr_fail_memory(err, bytes);
    if (zr_device_is_host(p->r, device_type)) {
        ZR_CHECK(zr_shelf_host(p, be, device_id, rounded, out, err));
        return ZARR_OK;
    }
    ZR_CHECK(zr_shelf_get(p, be, device_id, false, &shelf, err));
    if (zr_shelf_take(p, shelf, rounded, out, &full))
        return ZARR_OK;
    if (full)
        return zr_fail(err, ZARR_ERR_NO_MEMORY,
                       "%" PRIu64 " bytes of \"%s\" memory exceed its budget of %" PRIu64
                       " bytes",
                       rounded, be->vt.name, shelf->budget);
    return zr_shelf_alloc(p, shelf, rounded, out, err);
}

/* ---- pinned blocks in use ----------------------------------------------------- */

/* The list that a pinned block is in while it is in use. */
static struct zr_pool_block **pinned_list(struct zr_pool *p, const zarr_memory *mem)
{
    const uint64_t at = (uint64_t)(uintptr_t)mem->handle * UINT64_C(0x9e3779b97f4a7c15);

    return &p->locked.pinned[at >> (64 - ZR_POOL_PINNED_LOG)];
}

/* Notes that a pinned block is in use. */
static bool pinned_note(struct zr_pool *p, struct zr_pool_shelf *shelf,
                        const zarr_memory *mem)
{
    struct zr_pool_block **list = pinned_list(p, mem);
    struct zr_pool_block *b;

    zr_mutex_lock(&p->locked.mutex);
    b = zr_pool_node_locked(p);
    if (b) {
        *b = (struct zr_pool_block){.mem = *mem, .shelf = shelf, .next = *list};
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
static bool pinned_give(struct zr_pool *p, const zarr_memory *mem)
{
    struct zr_pool_block **list = pinned_list(p, mem), *b = NULL, *evicted = NULL;

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
        evicted = zr_shelf_keep_locked(p, b);
    }
    zr_mutex_unlock(&p->locked.mutex);
    zr_pool_release(p, evicted);
    return b != NULL;
}

zarr_status zr_pool_take_staging(struct zr_pool *p, int32_t device_type,
                                 int32_t device_id, uint64_t bytes, zarr_memory *out,
                                 zarr_error *err)
{
    zarr_status st = ZARR_OK;
    const struct zr_backend *be;
    const uint64_t rounded = zr_pool_round(bytes);
    struct zr_pool_shelf *shelf = NULL;
    bool full = true;

    *out = (zarr_memory){0};
    ZR_TRY(zr_backend_find(p->r, device_type, &be, err));
    if (!rounded || zr_device_is_host(p->r, device_type) ||
        !zr_backend_find_pinning(p->r, be))
        return zr_pool_take(p, ZARR_DEVICE_CPU, 0, bytes, out, err);
    ZR_TRY(zr_shelf_get(p, be, device_id, true, &shelf, err));
    if (!zr_shelf_take(p, shelf, rounded, out, &full) && !full) {
        st = zr_shelf_alloc(p, shelf, rounded, out, err);
        if (st != ZARR_OK && st != ZARR_ERR_NO_MEMORY)
            goto out;
    }
    if (out->handle && pinned_note(p, shelf, out))
        return ZARR_OK;
    if (out->handle) /* no node */
        zr_shelf_drop(p, shelf, out);
    if (err && st != ZARR_OK)
        zr_error_clear(err);
    st = zr_pool_take(p, ZARR_DEVICE_CPU, 0, bytes, out, err);
out:
    return st;
}

uint64_t zr_pool_count_pinned(const struct zr_pool *p)
{
    return atomic_load_explicit(&p->pinned_in_use, memory_order_relaxed);
}

void zr_pool_give(struct zr_pool *p, zarr_memory *mem)
{
    const struct zr_backend *be = NULL;

    if (!mem->handle || zr_backend_find(p->r, mem->device_type, &be, NULL) != ZARR_OK)
        return;
    if (mem->device_type != ZARR_DEVICE_CPU ||
        atomic_load_explicit(&p->pinned_in_use, memory_order_relaxed) == 0 ||
        !pinned_give(p, mem))
        zr_shelf_give(p, be, mem);
    *mem = (zarr_memory){0};
}
