/*
 * net/reactor.c - the thread that carries out requests, with a multi handle of libcurl of
 * its own. It takes new requests, lets libcurl work, settles what has ended, and sleeps.
 * All lists change by the engine's mutex; but only the reactor itself changes those of
 * its active and waiting requests, so it reads them without.
 *
 * Thread class: the functions
 * are of one reactor's thread.
 */
#include "net/curl_int.h"

#include <string.h>

enum {
    REACTOR_IDLE_MS = 120000, /* then all connections are closed */
    REACTOR_CANCEL_MS = 50
};
#define REACTOR_WINDOW_NS UINT64_C(100000000)
#define REACTOR_NS_PER_MS UINT64_C(1000000)

/* Lets a reactor keep its share of the connections. */
static void reactor_share_connections(struct zr_net_reactor *r)
{
    const uint32_t n = atomic_load(&zr_net_engine.n_reactors);
    const long share = (long)zr_net_engine.max_active / (long)ZR_MAX(n, 1U) + 1;

    if (r->share != share)
        (void)zr_curl.multi_setopt(r->multi, CURLMOPT_MAXCONNECTS, share);
    r->share = share;
}

/* ---- beginning and end of a transfer: inside of libcurl ---- */

static void reactor_end(struct zr_net_transfer *t, enum zr_net_outcome outcome,
                        struct zr_net_transfer **ended)
{
    t->outcome = outcome;
    t->after = *ended;
    *ended = t;
}

static void reactor_give_up_easy(struct zr_net_reactor *r, struct zr_net_transfer *t)
{
    if (!t->easy)
        return;
    (void)zr_curl.multi_remove_handle(r->multi, t->easy);
    zr_net_transfer_release(t);
    if (r->n_spare < ZR_COUNT(r->spare)) {
        zr_curl.easy_reset(t->easy);
        r->spare[r->n_spare++] = t->easy;
    } else {
        zr_curl.easy_cleanup(t->easy);
    }
    t->easy = NULL;
}

static void reactor_begin(struct zr_net_reactor *r, struct zr_net_transfer *t,
                          struct zr_net_transfer **ended)
{
    t->easy = r->n_spare > 0 ? r->spare[--r->n_spare] : zr_curl.easy_init();
    if (t->redirects == 0)
        t->tries++;
    if (!t->easy)
        zr_net_fail(t, ZARR_ERR_NO_MEMORY, "libcurl lacks memory");
    else if (zr_net_transfer_prepare(t) == ZARR_OK &&
             zr_curl.multi_add_handle(r->multi, t->easy) != CURLM_OK)
        zr_net_fail(t, ZARR_ERR_NO_MEMORY, "libcurl lacks memory");
    if (t->st != ZARR_OK) {
        reactor_give_up_easy(r, t);
        reactor_end(t, ZR_NET_END, ended);
    }
}

static bool reactor_is_cancelled(const struct zr_net_transfer *t)
{
    return atomic_load(&t->is_cancelled) || zr_is_cancelled(t->request->cancel);
}

static void reactor_cancel(struct zr_net_transfer *t, const char *why)
{
    t->st = ZARR_OK;
    zr_net_fail(t, ZARR_ERR_CANCELLED, "%s", why);
}

static void reactor_read_messages(struct zr_net_reactor *r,
                                  struct zr_net_transfer **ended)
{
    CURLMsg *m;
    int left;

    while ((m = zr_curl.multi_info_read(r->multi, &left))) {
        const CURLcode result = m->data.result;
        CURL *const easy = m->easy_handle;
        struct zr_net_transfer *t = NULL;
        enum zr_net_outcome outcome;

        if (m->msg != CURLMSG_DONE)
            continue;
        (void)zr_curl.easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&t);
        outcome = zr_net_decide(t, result);
        reactor_give_up_easy(r, t);
        reactor_end(t, outcome, ended);
    }
}

/* One turn inside of libcurl; gives the transfers that it is done with. */
static struct zr_net_transfer *reactor_work(struct zr_net_reactor *r)
{
    struct zr_net_transfer *ended = NULL;
    int n_running;

    zr_mutex_lock(&r->mutex);
    reactor_share_connections(r);
    for (struct zr_net_transfer *t = r->active.first; t; t = t->next) {
        if (reactor_is_cancelled(t)) {
            reactor_give_up_easy(r, t);
            reactor_cancel(t, "the request was cancelled");
            reactor_end(t, ZR_NET_END, &ended);
        } else if (!t->easy) {
            reactor_begin(r, t, &ended);
        }
    }
    (void)zr_curl.multi_perform(r->multi, &n_running);
    reactor_read_messages(r, &ended);
    zr_mutex_unlock(&r->mutex);
    return ended;
}

/* ---- what follows ---- */

static bool reactor_is_overload(const struct zr_net_transfer *t)
{
    return t->request->answer.status == 429 || t->request->answer.status == 503;
}

/* Moves a transfer out of the active ones, or leaves it there for its next origin. */
static void reactor_settle_locked(struct zr_net_reactor *r, struct zr_net_transfer *t,
                                  uint64_t now_ns)
{
    if (t->outcome == ZR_NET_REDIRECT)
        return;
    zr_net_list_remove(t);
    if (t->request->answer.status)
        zr_net_host_learn(t->host, t->request->answer.body_bytes, reactor_is_overload(t),
                          now_ns);
    zr_net_engine_leave_locked(t);
    if (t->outcome == ZR_NET_REPEAT)
        zr_net_list_add(&r->waiting, t);
}

static void reactor_log_repeat(const struct zr_net_transfer *t)
{
    struct zr_str shown;

    atomic_fetch_add(&t->net->retries, 1);
    zr_str_init(&shown, t->net->opts.alloc);
    zr_url_put_shown(&shown, t->request->url);
    zr_log(&t->net->opts.log, ZARR_LOG_DEBUG,
           "%.200s: try %" PRIu32 " failed (status %" PRIu32 "), the request is repeated",
           zr_str_text(&shown), t->tries, t->request->answer.status);
    zr_str_deinit(&shown);
}

static void reactor_settle(struct zr_net_reactor *r, struct zr_net_transfer *ended)
{
    struct zr_net_transfer *t, *next;

    if (!ended)
        return;
    /* before others can see them: afterwards the request may be gone */
    for (t = ended; t; t = t->after)
        if (t->outcome == ZR_NET_REPEAT)
            reactor_log_repeat(t);
    zr_net_engine_lock();
    for (t = ended; t; t = t->after)
        reactor_settle_locked(r, t, zr_now_ns());
    zr_net_engine_unlock();
    for (t = ended; t; t = next) {
        next = t->after;
        if (t->outcome == ZR_NET_END)
            zr_net_engine_finish(t);
    }
}

/* Queues the waiting transfers whose pause is over, and ends the cancelled ones. */
static void reactor_look_at_waiting(struct zr_net_reactor *r)
{
    const uint64_t now = r->waiting.n > 0 ? zr_now_ns() : 0;
    struct zr_net_transfer *t = r->waiting.first, *next;

    for (; t; t = next) {
        const bool is_cancelled = reactor_is_cancelled(t);

        next = t->next;
        if (!is_cancelled && t->due_ns > now)
            continue;
        zr_net_engine_lock();
        zr_net_list_remove(t);
        if (!is_cancelled) {
            zr_net_list_add(&t->host->queue, t);
            zr_net_engine.n_queued++;
            zr_net_engine_dispatch_locked(t->host);
        }
        zr_net_engine_unlock();
        if (is_cancelled) {
            reactor_cancel(t, "the request was cancelled");
            zr_net_engine_finish(t);
        }
    }
}

/* ---- exit ---- */

static struct zr_net_transfer *reactor_pop(struct zr_net_list *l)
{
    struct zr_net_transfer *t;

    zr_net_engine_lock();
    t = l->first;
    if (t)
        zr_net_list_remove(t);
    zr_net_engine_unlock();
    return t;
}

static void reactor_abandon(struct zr_net_list *l)
{
    struct zr_net_transfer *t;

    while ((t = reactor_pop(l))) {
        reactor_cancel(t, "the process exits");
        zr_net_engine_finish(t);
    }
}

/* Ends all requests without libcurl, which stays as it is. The first reactor also has
 * those that wait for a slot. */
static void reactor_close(struct zr_net_reactor *r)
{
    reactor_abandon(&r->inbox);
    reactor_abandon(&r->active);
    reactor_abandon(&r->waiting);
    for (size_t i = 0; r == zr_net_engine.reactor && i < zr_net_engine.hosts.n; i++)
        reactor_abandon(
            &((struct zr_net_host *)zr_net_engine.hosts.items[i].value)->queue);
}

static void reactor_stop(void *reactor)
{
    struct zr_net_reactor *r = reactor;

    zr_net_engine_lock();
    atomic_store(&zr_net_engine.is_closed, true);
    r->is_asleep = true;
    zr_net_engine_wake_locked(r);
    zr_net_engine_unlock();
}

/* ---- the loop ---- */

/* Milliseconds until there is something to do, unless another thread brings it. */
static int reactor_find_pause(const struct zr_net_reactor *r)
{
    uint64_t ms = r->active.n > 0 ? 1000 : REACTOR_IDLE_MS, now;

    for (const struct zr_net_transfer *t = r->active.first; t; t = t->next) {
        if (!t->easy)
            return 0;
        if (t->request->cancel)
            ms = ZR_MIN(ms, (uint64_t)REACTOR_CANCEL_MS);
    }
    if (r->waiting.n == 0)
        return (int)ms;
    now = zr_now_ns();
    for (const struct zr_net_transfer *t = r->waiting.first; t; t = t->next) {
        if (t->request->cancel)
            ms = ZR_MIN(ms, (uint64_t)REACTOR_CANCEL_MS);
        ms = ZR_MIN(ms, t->due_ns > now ? (t->due_ns - now) / REACTOR_NS_PER_MS + 1 : 0);
    }
    return (int)ms;
}

/* Closes connections that no request has used for long. */
static void reactor_renew(struct zr_net_reactor *r)
{
    CURLM *fresh = zr_curl.multi_init(), *old = r->multi;

    if (!fresh)
        return;
    zr_net_engine_lock();
    r->multi = fresh;
    r->share = 0;
    zr_net_engine_unlock();
    zr_mutex_lock(&r->mutex);
    while (r->n_spare > 0)
        zr_curl.easy_cleanup(r->spare[--r->n_spare]);
    (void)zr_curl.multi_cleanup(old);
    zr_mutex_unlock(&r->mutex);
}

static void reactor_sleep(struct zr_net_reactor *r)
{
    int pause = reactor_find_pause(r);
    const bool is_idle = r->active.n == 0 && r->waiting.n == 0;
    const uint64_t begin = zr_now_ns();
    bool is_asleep;

    zr_net_engine_lock();
    if (zr_net_engine.n_queued > 0)
        pause = ZR_MIN(pause, (int)REACTOR_CANCEL_MS);
    r->is_asleep = is_asleep =
        r->inbox.n == 0 && pause > 0 && !atomic_load(&zr_net_engine.is_closed);
    zr_net_engine_unlock();
    if (is_asleep)
        (void)zr_curl.multi_poll(r->multi, NULL, 0, pause, NULL);
    zr_net_engine_lock();
    is_asleep = r->is_asleep; /* no thread woke it */
    r->is_asleep = false;
    zr_net_engine_unlock();
    if (is_idle && is_asleep &&
        zr_now_ns() - begin >= REACTOR_IDLE_MS * REACTOR_NS_PER_MS / 2)
        reactor_renew(r);
}

/* Starts one more reactor if this and all others have too much to do. */
static void reactor_measure(struct zr_net_reactor *r)
{
    const uint64_t now = zr_now_ns(), ns = now - r->window_ns;
    uint64_t cpu;

    if (ns < REACTOR_WINDOW_NS)
        return;
    cpu = zr_thread_cpu_ns();
    atomic_store(&r->busy, (unsigned)((cpu - r->window_cpu_ns) * 1000 / ns));
    r->window_ns = now;
    r->window_cpu_ns = cpu;
    if (r->active.n > 1)
        (void)zr_net_engine_grow(NULL);
}

static void reactor_serve(void *arg)
{
    struct zr_net_reactor *r = arg;

    r->window_ns = zr_now_ns();
    r->window_cpu_ns = zr_thread_cpu_ns();
    while (!atomic_load(&zr_net_engine.is_closed)) {
        zr_net_engine_lock();
        zr_net_engine_sweep_locked(zr_now_ns());
        zr_net_list_move(&r->active, &r->inbox);
        zr_net_engine_unlock();
        reactor_settle(r, reactor_work(r));
        reactor_look_at_waiting(r);
        reactor_measure(r);
        reactor_sleep(r);
    }
    reactor_close(r);
}

zarr_status zr_reactor_start(struct zr_net_reactor *r, zarr_error *err)
{
    zarr_status st;

    r->multi = zr_curl.multi_init();
    r->share = 0;
    if (!r->multi)
        return zr_fail_memory(err, 1);
    r->is_asleep = false;
    atomic_store(&r->busy, 0);
    r->service =
        (struct zr_service){.serve = reactor_serve, .stop = reactor_stop, .arg = r};
    st = zr_service_start(&r->service, err);
    if (st != ZARR_OK) {
        (void)zr_curl.multi_cleanup(r->multi);
        r->multi = NULL;
    }
    return st;
}
