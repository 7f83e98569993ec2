/*
 * net/reactor.c - the thread that carries out requests, with a multi handle of libcurl of
 * its own. It takes new requests, lets libcurl work, settles what has ended, and sleeps.
 * All lists change by the engine's mutex; but only the reactor itself changes those of
 * its active and waiting requests, so it reads them without.
 *
 * Thread class: the functions run on the thread of their reactor.
 */
#include "net/curl_int.h"

#include <string.h>

enum {
    REACTOR_IDLE_MS = 120000, /* then all connections are closed */
    REACTOR_CANCEL_MS = 50    /* how often the objects of requests are looked at */
};
#define REACTOR_WINDOW_NS UINT64_C(100000000)
#define REACTOR_NS_PER_MS UINT64_C(1000000)
#define REACTOR_RENEW_NS  ((REACTOR_IDLE_MS - 1000) * REACTOR_NS_PER_MS)

/* Lets a reactor keep its share of the connections. */
static void reactor_share_connections(const struct zr_net_reactor *r)
{
    const long n = (long)ZR_MAX(atomic_load(&zr_net_engine.n_reactors), 1U);

    (void)zr_curl.multi_setopt(r->multi, CURLMOPT_MAXCONNECTS,
                               (long)zr_net_engine.max_active / n + 1);
}

/* ---- beginning and end of a transfer: inside of libcurl ---- */

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

/* Leaves a request that must wait for the list of waiting ones. */
static bool reactor_holds(struct zr_net_transfer *t)
{
    struct zr_net_request *const r = t->request;

    if (t->redirects > 0 || !r->must_wait || !r->must_wait(r->header_user))
        return false;
    zr_net_answer_reset(&r->answer, t->net->opts.alloc); /* of the try before */
    t->due_ns = zr_now_ns() + REACTOR_CANCEL_MS * REACTOR_NS_PER_MS;
    t->outcome = ZR_NET_HOLD;
    return true;
}

static void reactor_begin(struct zr_net_reactor *r, struct zr_net_transfer *t)
{
    if (reactor_holds(t))
        return;
    t->easy = r->n_spare > 0 ? r->spare[--r->n_spare] : zr_curl.easy_init();
    if (!t->easy || (zr_net_transfer_prepare(t) == ZARR_OK &&
                     zr_curl.multi_add_handle(r->multi, t->easy) != CURLM_OK))
        zr_net_fail(t, ZARR_ERR_NO_MEMORY, "libcurl lacks memory");
    if (t->st != ZARR_OK) {
        reactor_give_up_easy(r, t);
        t->outcome = ZR_NET_END;
    } else if (t->redirects == 0) {
        t->tries++;
    }
}

static void reactor_read_messages(struct zr_net_reactor *r)
{
    CURLMsg *m;
    int left;

    while ((m = zr_curl.multi_info_read(r->multi, &left))) {
        const CURLcode result = m->data.result;
        struct zr_net_transfer *t = NULL;

        if (m->msg != CURLMSG_DONE)
            continue;
        (void)zr_curl.easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&t);
        t->outcome = zr_net_decide(t, result);
        reactor_give_up_easy(r, t);
    }
}

/* One turn inside of libcurl. Sets the outcome of the transfers that it is done with. */
static void reactor_work(struct zr_net_reactor *r)
{
    int n_running;

    zr_mutex_lock(&r->mutex);
    reactor_share_connections(r);
    for (struct zr_net_transfer *t = r->active.first; t; t = t->next) {
        if (zr_net_is_cancelled(t)) {
            reactor_give_up_easy(r, t);
            zr_net_cancel_transfer(t);
            t->outcome = ZR_NET_END;
        } else if (!t->easy) {
            reactor_begin(r, t);
        }
    }
    (void)zr_curl.multi_perform(r->multi, &n_running);
    reactor_read_messages(r);
    zr_mutex_unlock(&r->mutex);
}

/* ---- what follows ---- */

/* Moves a transfer out of the active ones, or leaves it there for its next origin. */
static void reactor_settle_locked(struct zr_net_reactor *r, struct zr_net_transfer *t)
{
    const struct zr_net_answer *a = &t->request->answer;

    if (t->outcome == ZR_NET_REDIRECT)
        r->state = ZR_NET_NEWS;
    if (t->outcome == ZR_NET_RUNS || t->outcome == ZR_NET_REDIRECT)
        return;
    zr_net_list_remove(t);
    if (a->status)
        zr_net_host_learn(t->host, a->body_bytes, a->status == 429 || a->status == 503,
                          zr_now_ns());
    zr_net_host_leave_locked(t->host);
    zr_net_list_add(t->outcome == ZR_NET_END ? &r->ended : &r->waiting, t);
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

static void reactor_settle(struct zr_net_reactor *r)
{
    struct zr_net_transfer *t, *next;

    for (t = r->active.first; t; t = t->next)
        if (t->outcome == ZR_NET_REPEAT)
            reactor_log_repeat(t);
    zr_mutex_lock(&zr_net_engine.mutex);
    for (t = r->active.first; t; t = next) {
        next = t->next;
        reactor_settle_locked(r, t);
    }
    zr_mutex_unlock(&zr_net_engine.mutex);
    zr_net_engine_finish(r);
}

/* Queues the waiting transfers whose pause is over, and ends the cancelled ones. */
static void reactor_look_at_waiting(struct zr_net_reactor *r)
{
    const uint64_t now = zr_now_ns();
    struct zr_net_transfer *t, *next;

    if (r->waiting.n == 0)
        return;
    zr_mutex_lock(&zr_net_engine.mutex);
    for (t = r->waiting.first; t; t = next) {
        next = t->next;
        if (zr_net_is_cancelled(t)) {
            zr_net_cancel_transfer(t);
            zr_net_list_remove(t);
            zr_net_list_add(&r->ended, t);
        } else if (t->due_ns <= now) {
            zr_net_list_remove(t);
            zr_net_list_add(&t->host->queue, t);
            zr_net_engine.n_queued++;
            zr_net_host_dispatch_locked(t->host);
        }
    }
    zr_mutex_unlock(&zr_net_engine.mutex);
    zr_net_engine_finish(r);
}

/* ---- exit ---- */

static void reactor_abandon(struct zr_net_reactor *r, struct zr_net_list *l)
{
    zr_mutex_lock(&zr_net_engine.mutex);
    for (struct zr_net_transfer *t = l->first; t; t = t->next)
        zr_net_cancel_transfer(t);
    zr_net_list_move(&r->ended, l);
    zr_mutex_unlock(&zr_net_engine.mutex);
    zr_net_engine_finish(r);
}

/* Ends all requests without libcurl, which stays as it is. Others queue no more, except
 * other reactors, which come here, too. */
static void reactor_close(struct zr_net_reactor *r)
{
    reactor_abandon(r, &r->inbox);
    reactor_abandon(r, &r->active);
    reactor_abandon(r, &r->waiting);
    for (size_t i = 0; i < zr_net_engine.hosts.n; i++)
        reactor_abandon(
            r, &((struct zr_net_host *)zr_net_engine.hosts.items[i].value)->queue);
}

static void reactor_stop(void *reactor)
{
    struct zr_net_reactor *r = reactor;

    zr_mutex_lock(&zr_net_engine.mutex);
    atomic_store(&zr_net_engine.is_closed, true);
    zr_net_engine_wake_locked(r);
    zr_mutex_unlock(&zr_net_engine.mutex);
}

/* ---- the loop ---- */

/* Makes a new multi handle, which closes connections that no request has used for long.
 * r->multi stays NULL if there is no memory for the first one. */
static void reactor_renew(struct zr_net_reactor *r)
{
    CURLM *fresh, *old = r->multi;
    int wake_fd[2];

    zr_mutex_lock(&r->mutex);
    fresh = zr_net_multi_create(wake_fd);
    if (fresh) {
        zr_mutex_lock(&zr_net_engine.mutex);
        r->multi = fresh;
        memcpy(r->wake_fd, wake_fd, sizeof wake_fd);
        zr_mutex_unlock(&zr_net_engine.mutex);
        while (r->n_spare > 0)
            zr_curl.easy_cleanup(r->spare[--r->n_spare]);
        (void)zr_curl.multi_cleanup(old);
    }
    zr_mutex_unlock(&r->mutex);
}

/* Until there is something to do, or another thread brings it. */
static void reactor_sleep(struct zr_net_reactor *r)
{
    const bool is_idle = r->active.n + r->waiting.n == 0;
    uint64_t ms = is_idle ? REACTOR_IDLE_MS : REACTOR_CANCEL_MS;
    const uint64_t begin = zr_now_ns();
    bool sleeps;

    if (is_idle)
        atomic_store(&r->busy, 0);
    for (const struct zr_net_transfer *t = r->waiting.first; t; t = t->next)
        ms = ZR_MIN(ms,
                    t->due_ns > begin ? (t->due_ns - begin) / REACTOR_NS_PER_MS + 1 : 0);
    zr_mutex_lock(&zr_net_engine.mutex);
    sleeps = ms > 0 && r->state != ZR_NET_NEWS && !atomic_load(&zr_net_engine.is_closed);
    if (sleeps)
        r->state = ZR_NET_ASLEEP;
    zr_mutex_unlock(&zr_net_engine.mutex);
    if (sleeps)
        (void)zr_curl.multi_poll(r->multi, NULL, 0, (int)ms, NULL);
    if (is_idle && zr_now_ns() - begin >= REACTOR_RENEW_NS)
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
        zr_mutex_lock(&zr_net_engine.mutex);
        zr_net_engine_sweep_locked(zr_now_ns());
        r->state = ZR_NET_AWAKE;
        zr_net_list_move(&r->active, &r->inbox);
        zr_mutex_unlock(&zr_net_engine.mutex);
        reactor_work(r);
        reactor_settle(r);
        reactor_look_at_waiting(r);
        reactor_measure(r);
        reactor_sleep(r);
    }
    reactor_close(r);
}

zarr_status zr_reactor_start(struct zr_net_reactor *r, zarr_error *err)
{
    zarr_status st;

    reactor_renew(r);
    if (!r->multi)
        return zr_fail_memory(err, 1);
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
