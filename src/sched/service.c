/*
 * sched/service.c - threads that serve until the process exits. They may use libraries
 * whose exit handlers free what they use. So the handler here is installed after those,
 * by the first service, and runs before them: it stops all services and waits a moment.
 * Threads that have ended are joined, or sleep for ever if the library stays mapped
 * (pool.c says why).
 *
 * Thread class: shared.
 */
#include "sched/pool_int.h"

#include <stdlib.h>

/* A machine with too much to do may leave a thread without a core for a second. */
#define SERVICE_EXIT_NS UINT64_C(5000000000)

static struct {
    zr_mutex mutex;
    struct {
        zr_cond ended;
        struct zr_service *first;
        bool ready, closed;
    } locked;
} the_services = {.mutex = ZR_MUTEX_INIT};

static void service_in_child(void *unused)
{
    ZR_UNUSED(unused);
    the_services.locked.first = NULL;
    zr_cond_init(&the_services.locked.ended);
}

static void *service_main(void *arg)
{
    struct zr_service *s = arg;
    const bool stays = zr_pool_stays();

    s->serve(s->arg);
    zr_mutex_lock(&the_services.mutex);
    s->ended = true;
    zr_cond_signal(&the_services.locked.ended);
    zr_mutex_unlock(&the_services.mutex);
    if (stays)
        zr_thread_park();
    return NULL;
}

static void service_exit(void)
{
    const uint64_t end = zr_now_ns() + SERVICE_EXIT_NS;
    bool in_time = true;

    zr_mutex_lock(&the_services.mutex);
    the_services.locked.closed = true; /* so the list does not change any more */
    zr_mutex_unlock(&the_services.mutex);
    for (struct zr_service *s = the_services.locked.first; s; s = s->next)
        s->stop(s->arg);
    zr_mutex_lock(&the_services.mutex);
    for (struct zr_service *s = the_services.locked.first; s; s = s->next) {
        while (!s->ended && in_time && !zr_thread_is_self(&s->thread))
            in_time =
                zr_cond_wait_until(&the_services.locked.ended, &the_services.mutex, end);
        if (!s->ended || zr_pool_stays())
            continue;
        zr_mutex_unlock(&the_services.mutex); /* it may still be leaving the lock */
        zr_thread_join(&s->thread);
        zr_mutex_lock(&the_services.mutex);
    }
    the_services.locked.first = NULL;
    zr_mutex_unlock(&the_services.mutex);
}

/* At loading, because the first service may be started with a hooked lock held. */
__attribute__((constructor)) static void service_install(void)
{
    static struct zr_fork_hook hook = {.mutex = &the_services.mutex,
                                       .child = service_in_child};

    zr_fork_hook_add(&hook);
    zr_cond_init(&the_services.locked.ended);
}

zarr_status zr_service_start(struct zr_service *s, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    zr_mutex_lock(&the_services.mutex);
    s->ended = false;
    if (!the_services.locked.ready)
        the_services.locked.ready = atexit(service_exit) == 0;
    if (!the_services.locked.ready)
        st = zr_fail_memory(err, sizeof *s);
    else if (the_services.locked.closed)
        st = zr_fail(err, ZARR_ERR_CANCELLED, "the process exits");
    else
        st = zr_thread_start(&s->thread, service_main, s, err);
    if (st == ZARR_OK) {
        s->next = the_services.locked.first;
        the_services.locked.first = s;
    }
    zr_mutex_unlock(&the_services.mutex);
    return st;
}
