/*
 * net/engine.c - the one engine of the process: its reactors, and the way of a request
 * from its submission to its end.
 *
 * Fork. The fork waits until no reactor is inside of libcurl. In the child there are no
 * reactors and no requests. libcurl's handles of the parent are never touched there, not
 * even to free them: TLS would say goodbye on a connection that the parent still uses.
 * Only the sockets and the descriptors of wake-ups are closed.
 *
 * Exit. The reactors end all requests with CANCELLED and stop before the exit handlers of
 * the TLS library run. libcurl is not asked to clean up, so exit waits for nothing.
 *
 * Thread class: shared.
 */
#include "net/curl_int.h"

#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    /* so that no lock is taken in the wrong order: outermost first */
    ENGINE_START_RANK = 30,
    ENGINE_REACTOR_RANK = 20,
    ENGINE_RANK = 10,
    ENGINE_BUSY = 800, /* of 1000: a reactor has enough to do */
    ENGINE_ACTIVE_MIN = 8,
    ENGINE_ACTIVE_MAX = 4096
};

struct zr_net_engine zr_net_engine = {.start_mutex = ZR_MUTEX_INIT,
                                      .mutex = ZR_MUTEX_INIT};
static _Thread_local struct zr_net_reactor *engine_self; /* NULL: not a reactor */

static void engine_close_sockets(void)
{
    for (size_t word = 0; word < zr_net_engine.n_socket_words; word++)
        for (int bit = 0; bit < 64; bit++)
            if (zr_net_engine.socket_bits[word] >> bit & 1)
                (void)close((int)word * 64 + bit);
    if (zr_net_engine.n_socket_words)
        memset(zr_net_engine.socket_bits, 0,
               zr_net_engine.n_socket_words * sizeof *zr_net_engine.socket_bits);
    zr_net_engine.n_sockets = 0;
}

static void engine_in_child(void *unused)
{
    ZR_UNUSED(unused);
    engine_close_sockets();
    for (size_t i = 0; i < zr_net_engine.hosts.n; i++) {
        struct zr_net_host *h = zr_net_engine.hosts.items[i].value;

        h->queue = (struct zr_net_list){0};
        h->n_active = 0;
    }
    for (size_t i = 0; i < ZR_NET_REACTORS_MAX; i++) {
        struct zr_net_reactor *r = &zr_net_engine.reactor[i];

        for (int k = 0; k < 2 && r->multi; k++)
            if (r->wake_fd[k] >= 0)
                (void)close(r->wake_fd[k]);
        r->multi = NULL;
        r->n_spare = 0;
        r->inbox = r->active = r->waiting = r->ended = (struct zr_net_list){0};
    }
    zr_net_engine.scopes = NULL;
    engine_self = NULL;
    atomic_store(&zr_net_engine.buffer_bytes, 0);
    zr_net_engine.n_active = zr_net_engine.n_queued = 0;
    atomic_store(&zr_net_engine.n_reactors, 0);
}

/* Half of the descriptors that the process may open. */
static uint32_t engine_count_descriptors(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / 2 > ENGINE_ACTIVE_MAX)
        return ENGINE_ACTIVE_MAX;
    return ZR_MAX((uint32_t)(limit.rlim_cur / 2), (uint32_t)ENGINE_ACTIVE_MIN);
}

void zr_net_engine_setup(void)
{
    struct zr_net_engine *e = &zr_net_engine;
    uint64_t cores = ZR_MIN((uint64_t)zr_cpu_count(), zr_cgroup_cores(NULL));

    zr_map_init(&e->hosts, NULL, NULL);
    cores = ZR_MAX(cores, UINT64_C(1));
    e->max_reactors = (uint32_t)ZR_MIN(cores, (uint64_t)ZR_NET_REACTORS_MAX);
    e->max_active = engine_count_descriptors();
    e->start_fork =
        (struct zr_fork_hook){.mutex = &e->start_mutex, .rank = ENGINE_START_RANK};
    zr_fork_hook_add(&e->start_fork);
    for (size_t i = 0; i < ZR_NET_REACTORS_MAX; i++) {
        struct zr_net_reactor *r = &e->reactor[i];

        zr_mutex_init(&r->mutex);
        r->fork = (struct zr_fork_hook){.mutex = &r->mutex, .rank = ENGINE_REACTOR_RANK};
        zr_fork_hook_add(&r->fork);
    }
    e->fork = (struct zr_fork_hook){
        .mutex = &e->mutex, .child = engine_in_child, .rank = ENGINE_RANK};
    zr_fork_hook_add(&e->fork);
}

/* ---- reactors ---- */

static bool engine_needs_reactor(uint32_t n)
{
    if (n == 0)
        return true;
    for (uint32_t i = 0; i < n; i++)
        if (atomic_load(&zr_net_engine.reactor[i].busy) < ENGINE_BUSY)
            return false;
    return n < zr_net_engine.max_reactors;
}

bool zr_net_is_reactor(void)
{
    return engine_self != NULL;
}

zarr_status zr_net_engine_grow(zarr_error *err)
{
    struct zr_net_engine *e = &zr_net_engine;
    zarr_status st = ZARR_OK;
    uint32_t n;

    zr_mutex_lock(&e->start_mutex);
    n = atomic_load(&e->n_reactors);
    if (engine_needs_reactor(n)) {
        st = zr_reactor_start(&e->reactor[n], err);
        if (st == ZARR_OK)
            atomic_store(&e->n_reactors, n + 1);
    }
    zr_mutex_unlock(&e->start_mutex);
    return n > 0 ? ZARR_OK : st;
}

void zr_net_engine_wake_locked(struct zr_net_reactor *r)
{
    if (r->state == ZR_NET_ASLEEP)
        (void)zr_curl.multi_wakeup(r->multi);
    r->state = ZR_NET_NEWS;
}

struct zr_net_reactor *zr_net_engine_choose_locked(void)
{
    const uint32_t n = atomic_load(&zr_net_engine.n_reactors);
    struct zr_net_reactor *best = &zr_net_engine.reactor[0];

    for (uint32_t i = 1; i < n; i++) {
        struct zr_net_reactor *r = &zr_net_engine.reactor[i];

        if (r->inbox.n + r->active.n < best->inbox.n + best->active.n)
            best = r;
    }
    return best;
}

/* ---- requests ---- */

static zarr_status engine_submit(struct zr_net *net, struct zr_net_request *r,
                                 zarr_error *err)
{
    struct zr_net_transfer *t = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(zr_net_transfer_create(&t, net, r, err));
    if (atomic_load(&zr_net_engine.n_reactors) == 0)
        ZR_TRY(zr_net_engine_grow(err));
    r->own = t;
    zr_mutex_lock(&zr_net_engine.mutex);
    if (atomic_load(&zr_net_engine.is_closed)) /* the reactors read the hosts */
        st = zr_fail(err, ZARR_ERR_CANCELLED, "the process exits");
    else if (zr_net_scope_is_cancelled_locked(net, r->tag))
        st = zr_fail(err, ZARR_ERR_CANCELLED, "the request was cancelled");
    else if (!(t->host = zr_net_host_find_locked(t)))
        st = zr_fail_memory(err, sizeof *t->host);
    if (st == ZARR_OK) {
        if (t->host->n_active == 0)
            zr_net_host_begin_window(t->host, 0);
        zr_net_list_add(&t->host->queue, t);
        zr_net_engine.n_queued++;
        zr_net_host_dispatch_locked(t->host);
    }
    zr_mutex_unlock(&zr_net_engine.mutex);
out:
    if (st != ZARR_OK) {
        zr_net_transfer_free(t);
        r->own = NULL;
    }
    return st;
}

void zr_net_submit(struct zr_net *net, struct zr_net_request *r)
{
    zarr_error err = {0};
    const zarr_status st = engine_submit(net, r, &err);

    if (st != ZARR_OK)
        r->done(r, st, &err);
}

void zr_net_engine_finish(struct zr_net_reactor *r)
{
    struct zr_net_transfer *t;

    engine_self = r;
    zr_mutex_lock(&zr_net_engine.mutex);
    while ((t = r->ended.first)) {
        struct zr_net_request *const request = t->request;
        const zarr_error err = t->err; /* t may be gone in done() */
        const zarr_status st = t->st;
        struct zr_net_scope scope = {.net = t->net,
                                     .tag = request->tag,
                                     .is_cancelled = atomic_load(&t->is_cancelled)};

        zr_net_list_remove(t);
        zr_net_scope_add_locked(&scope); /* an operation's next request comes in done() */
        zr_mutex_unlock(&zr_net_engine.mutex);
        request->done(request, st, st == ZARR_OK ? NULL : &err);
        zr_mutex_lock(&zr_net_engine.mutex);
        zr_net_scope_remove_locked(&scope);
    }
    zr_mutex_unlock(&zr_net_engine.mutex);
}

void zr_net_request_deinit(struct zr_net_request *r)
{
    zr_net_answer_deinit(&r->answer);
    zr_net_transfer_free(r->own);
    r->own = NULL;
}

void zr_net_engine_stats_get(struct zr_net_engine_stats *out)
{
    *out =
        (struct zr_net_engine_stats){.reactors = atomic_load(&zr_net_engine.n_reactors)};
    zr_mutex_lock(&zr_net_engine.mutex);
    out->sockets = zr_net_engine.n_sockets;
    out->active = zr_net_engine.n_active;
    out->queued = zr_net_engine.n_queued;
    for (uint32_t i = 0; i < out->reactors; i++)
        out->waiting += zr_net_engine.reactor[i].waiting.n;
    zr_mutex_unlock(&zr_net_engine.mutex);
}
