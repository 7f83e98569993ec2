/*
 * pipe/request/device_budget.c - the memory of a device, which all requests of a context
 * share. A wave of a read, a batch of units or a chunk that is done alone takes what it
 * may need at most before it begins, and waits for it while it holds nothing. So waves
 * and batches are as large as the budget allows, and what they then take from the pool is
 * there. Thread class: shared.
 */
#include "pipe/request/request.h"

/* ---- what work needs ------------------------------------------------------------ */

/* Blocks of the pool are rounded up, by a quarter at most. */
static uint64_t budget_share(uint64_t bytes)
{
    return bytes / 5 * 4;
}

enum {
    MOST_ON_DEVICE = 4096 /* a wave has no more */
};

/* Adds a chunk's bytes of one slab. */
static void chunk_adds(const struct zr_io *io, int32_t device, uint64_t bytes,
                       uint64_t *sum)
{
    if (zr_io_is_host(io, device))
        return;
    if (!zr_add(bytes, ZR_CHUNK_ALIGNMENT, &bytes) || !zr_add(*sum, bytes, sum))
        *sum = UINT64_MAX;
}

/* What the chunks of a wave have on the device at most: slabs are held until the wave has
 * waited, so all stages count. */
static uint64_t chunks_on_device(const struct zr_io *io, const struct zr_program *p,
                                 uint64_t n)
{
    uint64_t each = 0, scratch = 0, sum = 0;

    if (!p) /* this build cannot write these codecs: the unit will fail and say so */
        return 0;
    chunk_adds(io, p->fetch_device, p->encoded_bound, &each);
    if (!p->encode && p->n > 0 && p->stage[0].kind == ZR_STAGE_CODEC &&
        p->stage[0].impl->vt.alignment > 1) /* it may be moved */
        chunk_adds(io, p->fetch_device, p->encoded_bound, &each);
    for (uint32_t i = 0; i < p->n; i++) {
        const struct zr_stage *s = &p->stage[i];

        chunk_adds(io, p->encode ? s->in_device : s->out_device,
                   p->encode || s->kind == ZR_STAGE_COPY ? s->in_bytes : s->out_bytes,
                   &each);
        if (s->kind == ZR_STAGE_CODEC &&
            !zr_io_is_host(io, p->encode ? s->in_device : s->out_device) &&
            !zr_add(scratch, zr_stage_scratch(s, n), &scratch))
            return UINT64_MAX;
    }
    /* elements that a list copies up, or that a list of boxes gathers */
    if (p->encode || zr_io_is_host(io, p->decoded_device))
        chunk_adds(io, io->view.base.device_type, p->decoded_bytes, &each);
    return zr_mul(each, n, &sum) && zr_add(sum, scratch, &sum) ? sum : UINT64_MAX;
}

uint64_t zr_device_need(const struct zr_io *io, const struct zr_level *lv, bool encode,
                        bool old, uint64_t n)
{
    if (zr_io_is_host(io, io->view.base.device_type) || n == 0)
        return 0;
    return zr_add_cap(chunks_on_device(io, encode ? lv->encode : lv->decode, n),
                      old ? chunks_on_device(io, lv->decode, n) : 0);
}

uint64_t zr_device_room(const struct zr_io *io, uint32_t flights)
{
    const zarr_memory *tensor = &io->view.base;
    uint64_t budget = UINT64_MAX;

    if (zr_io_is_host(io, tensor->device_type) ||
        zr_pool_budget(io->engine->pool, tensor->device_type, tensor->device_id, false,
                       &budget, NULL) != ZARR_OK ||
        budget == UINT64_MAX)
        return UINT64_MAX;
    return budget_share(budget) / flights;
}

uint32_t zr_device_most(const struct zr_io *io, const struct zr_level *lv, bool encode,
                        bool old, uint32_t flights)
{
    const uint64_t room = zr_device_room(io, flights);
    uint64_t n = MOST_ON_DEVICE;

    if (room == UINT64_MAX)
        return UINT32_MAX;
    while (n > 1 && zr_device_need(io, lv, encode, old, n) > room)
        n -= ZR_MAX(n / 8, UINT64_C(1));
    return (uint32_t)n;
}

/* The budget that the application set, or the device has. */
static uint64_t told_budget(const struct zr_io *io)
{
    const zarr_memory *tensor = &io->view.base;
    uint64_t budget = 0;

    (void)zr_pool_budget(io->engine->pool, tensor->device_type, tensor->device_id, false,
                         &budget, NULL);
    return budget;
}

bool zr_is_too_large(const struct zr_work *w, const struct zr_level *lv, bool encode,
                     zarr_status st)
{
    return st == ZARR_ERR_NO_MEMORY && !w->on_host && w->rq->device &&
           zr_device_need(w->io, lv, encode, encode, 1) > w->rq->device->total;
}

void zr_work_on_host(struct zr_work *w, const struct zr_level *lv, bool encode)
{
    w->on_host = true;
    zr_log(w->io->engine->log, ZARR_LOG_DEBUG,
           "%s: a chunk needs up to %" PRIu64
           " bytes of the device's memory, whose budget is %" PRIu64
           " bytes: the CPU does it",
           *w->io->prefix ? w->io->prefix : "/",
           zr_device_need(w->io, lv, encode, encode, 1), told_budget(w->io));
}

zarr_status zr_too_large_tell(const struct zr_work *w, const struct zr_level *lv,
                              bool encode, zarr_status st, zarr_error *err)
{
    if (st == ZARR_OK || !w->on_host)
        return st;
    return zr_prefix(err, st,
                     "the chunk needs up to %" PRIu64
                     " bytes of the device's memory, whose budget is %" PRIu64 " bytes",
                     zr_device_need(w->io, lv, encode, encode, 1), told_budget(w->io));
}

uint64_t zr_unit_on_device(const struct zr_io *io, const struct zr_level *lv)
{
    const struct zr_layout *l = io->layout;
    const struct zr_level *leaf = &l->level[l->n_levels - 1];
    uint64_t n = 1;

    if (!lv->is_shard)
        return zr_device_need(io, lv, true, true, 1);
    n = lv->n_inner_all;
    for (uint32_t i = 1; i + 1 < l->n_levels; i++)
        n = zr_mul_cap(n, l->level[i].n_inner_all);
    n = ZR_MIN(n, (uint64_t)MOST_ON_DEVICE);
    return zr_device_need(io, leaf, true, true,
                          ZR_MIN(n, (uint64_t)zr_device_most(io, leaf, true, true, 1)));
}

/* ---- waves ---------------------------------------------------------------------- */

enum {
    WAVE_CHUNKS = 1024,      /* at most: several waves are on the device at once */
    WAVE_CHUNKS_LARGE = 256, /* and of more than WAVE_BYTES */
    WAVE_BYTES = 128 << 20,
    WAVES_LEAST = 16 /* of a request whose waves are larger than the context's */
};

static bool works_on_device(const struct zr_io *io, const struct zr_program *p)
{
    for (uint32_t i = 0; p && i < p->n; i++)
        if (p->stage[i].kind == ZR_STAGE_CODEC &&
            !zr_io_is_host(io, p->stage[i].out_device))
            return true;
    return false;
}

/* The most bytes of a wave of large chunks: a small part of what the request has, because
 * the first wave is fetched, and the last one finished, while the device has nothing else
 * to do; and no more than pinned memory has room for in all waves. */
static uint64_t large_wave(const struct zr_io *io)
{
    const zarr_memory *tensor = &io->view.base;
    uint64_t pinned = UINT64_MAX;
    const uint64_t all = zr_mul_cap(zr_io_elements(io), io->layout->item_bytes);

    if (zr_pool_budget(io->engine->pool, tensor->device_type, tensor->device_id, true,
                       &pinned, NULL) != ZARR_OK)
        return 0; /* what fails here fails again where memory is taken */
    return ZR_MIN(all / WAVES_LEAST, budget_share(pinned) / ZR_DEVICE_FLIGHTS);
}

uint64_t zr_device_wave(const struct zr_io *io)
{
    const struct zr_level *leaf = &io->layout->level[io->layout->n_levels - 1];
    const uint64_t least = io->engine->device_wave_bytes;
    uint64_t all;

    if (least == 0 ||
        (!works_on_device(io, leaf->decode) && !works_on_device(io, leaf->encode)))
        return 0;
    all = ZR_MIN(zr_mul_cap(leaf->decoded_bytes, WAVE_CHUNKS),
                 ZR_MAX(zr_mul_cap(leaf->decoded_bytes, WAVE_CHUNKS_LARGE),
                        UINT64_C(1) * WAVE_BYTES));
    return all <= least ? all : ZR_MIN(all, ZR_MAX(least, large_wave(io)));
}

/* ---- the budgets ---------------------------------------------------------------- */

struct zr_device_budget {
    struct zr_device_budget *next;
    int32_t device_type, device_id;
    struct zr_budget bytes;
};

void zr_device_budgets_init(struct zr_device_budgets *d)
{
    zr_mutex_init(&d->locked.mutex);
    d->locked.first = NULL;
    d->fork = (struct zr_fork_hook){.mutex = &d->locked.mutex};
    zr_fork_hook_add(&d->fork);
}

void zr_device_budgets_deinit(struct zr_device_budgets *d, const zarr_allocator *alloc)
{
    struct zr_device_budget *b = d->locked.first, *next = NULL;

    for (; b; b = next) {
        next = b->next;
        zr_budget_deinit(&b->bytes);
        zr_free(alloc, b);
    }
    zr_fork_hook_remove(&d->fork);
    zr_mutex_deinit(&d->locked.mutex);
}

/* The budget of a device, or NULL. Called under the lock. */
static struct zr_device_budget *find_device_budget(const struct zr_engine *e,
                                                   const zarr_memory *on)
{
    struct zr_device_budget *b = e->devices.locked.first;

    while (b && (b->device_type != on->device_type || b->device_id != on->device_id))
        b = b->next;
    return b;
}

/* Adds the budget of a device, unless another thread was faster. A budget is made and
 * given up without the lock, because it has a fork hook. */
static struct zr_device_budget *budget_add(struct zr_engine *e, const zarr_memory *on,
                                           uint64_t bytes)
{
    struct zr_device_budget *mine = zr_calloc(e->alloc, 1, sizeof *mine), *b = NULL;

    if (!mine)
        return NULL;
    mine->device_type = on->device_type;
    mine->device_id = on->device_id;
    zr_budget_init(&mine->bytes, budget_share(bytes));
    zr_mutex_lock(&e->devices.locked.mutex);
    b = find_device_budget(e, on);
    if (!b) {
        mine->next = e->devices.locked.first;
        e->devices.locked.first = b = mine;
    }
    zr_mutex_unlock(&e->devices.locked.mutex);
    if (b != mine) {
        zr_budget_deinit(&mine->bytes);
        zr_free(e->alloc, mine);
    }
    return b;
}

zarr_status zr_device_budget_find(struct zr_budget **out, struct zr_engine *e,
                                  const zarr_memory *on, zarr_error *err)
{
    struct zr_device_budget *b = NULL;
    uint64_t bytes = UINT64_MAX;

    *out = NULL;
    if (zr_device_is_host(e->memory, on->device_type))
        return ZARR_OK;
    /* what fails here fails again, with its error, once memory is needed */
    if (zr_pool_budget(e->pool, on->device_type, on->device_id, false, &bytes, NULL) !=
            ZARR_OK ||
        bytes == UINT64_MAX)
        return ZARR_OK;
    zr_mutex_lock(&e->devices.locked.mutex);
    b = find_device_budget(e, on);
    zr_mutex_unlock(&e->devices.locked.mutex);
    if (!b)
        b = budget_add(e, on, bytes);
    if (!b)
        return zr_fail_memory(err, sizeof *b);
    *out = &b->bytes;
    return ZARR_OK;
}
