/*
 * pipe/request/engine.c - what the requests of one context share: the budget of buffers
 * that grow, those of devices, idle streams, and idle worker contexts (workers.c). Thread
 * class: shared.
 */
#include "pipe/request/request.h"

void zr_engine_init(struct zr_engine *e)
{
    zr_budget_init(&e->unsized_budget, e->budget->total);
    zr_holders_init(&e->holders, e->budget->total);
    zr_mutex_init(&e->workers.mutex);
    e->workers.free = NULL;
    zr_streams_init(&e->streams);
    zr_device_budgets_init(&e->devices);
    e->fork = (struct zr_fork_hook){.mutex = &e->workers.mutex};
    zr_fork_hook_add(&e->fork);
}

void zr_engine_deinit(struct zr_engine *e)
{
    zr_workers_free(e);
    zr_streams_deinit(&e->streams);
    zr_device_budgets_deinit(&e->devices, e->alloc);
    zr_fork_hook_remove(&e->fork);
    zr_mutex_deinit(&e->workers.mutex);
    zr_holders_deinit(&e->holders);
    zr_budget_deinit(&e->unsized_budget);
}

void zr_engine_trim(struct zr_engine *e)
{
    zr_workers_free(e);
    zr_streams_trim(&e->streams);
    zr_pool_trim(e->pool);
}
