/*
 * net/host.c - which request runs when, and on which reactor. Requests wait in the queue
 * of their host until it has a free slot. The number of slots begins at 32. While
 * requests wait for others, it grows: by one with each answer, so it doubles in a round
 * trip, until the throughput of a window of answers does not grow with it; from then on
 * by an eighth for each window that is faster than the one before. It halves when the
 * host says that it has too much to do.
 *
 * Thread class: by the engine's mutex.
 */
#include "net/curl_int.h"

#define HOST_CALM_NS       UINT64_C(1000000000)
#define HOST_WINDOW_NS     UINT64_C(5000000)
#define HOST_REQUEST_BYTES 16384 /* what a request costs, as bytes */

void zr_net_host_reset(struct zr_net_host *h, uint32_t limit)
{
    limit = ZR_MIN(limit, (uint32_t)ZR_NET_CONCURRENCY_MAX);
    *h = (struct zr_net_host){.queue = h->queue,
                              .n_active = h->n_active,
                              .limit = limit,
                              .window_size = limit,
                              .is_slow_start = true};
}

void zr_net_host_begin_window(struct zr_net_host *h, uint64_t now_ns)
{
    h->window_ns = now_ns;
    h->window_bytes = 0;
    h->window_n = 0;
    h->window_size = h->limit;
    h->was_full = false;
}

static void host_end_window(struct zr_net_host *h, uint64_t now_ns)
{
    const double seconds = (double)(now_ns - h->window_ns) / 1e9;
    const double rate = (double)h->window_bytes / seconds;

    if (h->was_full && now_ns >= h->calm_ns) {
        if (rate < h->rate * 1.1)
            h->is_slow_start = false;
        else if (!h->is_slow_start)
            h->limit += ZR_MAX(h->limit / 8, 1U);
        h->limit = ZR_MIN(h->limit, (uint32_t)ZR_NET_CONCURRENCY_MAX);
    }
    /* a peak is forgotten after a while: then the limit is tried again */
    h->rate = ZR_MAX(rate, h->rate * 0.95);
    zr_net_host_begin_window(h, now_ns);
}

void zr_net_host_learn(struct zr_net_host *h, uint64_t bytes, bool is_overloaded,
                       uint64_t now_ns)
{
    if (is_overloaded) {
        if (now_ns >= h->calm_ns)
            h->limit = ZR_MAX(h->limit / 2, 1U);
        h->calm_ns = now_ns + HOST_CALM_NS;
        h->is_slow_start = false;
        h->rate = 0;
        return;
    }
    if (h->window_ns == 0)
        h->window_ns = now_ns;
    h->window_bytes += bytes + HOST_REQUEST_BYTES;
    h->window_n++;
    if (h->queue.n > 0) {
        h->was_full = true;
        if (h->is_slow_start && h->limit < ZR_NET_CONCURRENCY_MAX)
            h->limit++;
    }
    if (h->window_n >= h->window_size && now_ns - h->window_ns >= HOST_WINDOW_NS)
        host_end_window(h, now_ns);
}

/* ---- slots ---- */

static bool host_is_full_locked(void)
{
    return zr_net_engine.n_active >= zr_net_engine.max_active;
}

/* When the process exits, a reactor may have ended: those that have not end what is
 * queued. */
static bool host_dispatch_one_locked(struct zr_net_host *h)
{
    struct zr_net_transfer *t = h->queue.first;
    struct zr_net_reactor *r;

    if (!t || h->n_active >= h->limit || host_is_full_locked() ||
        atomic_load(&zr_net_engine.is_closed))
        return false;
    zr_net_list_remove(t);
    zr_net_engine.n_queued--;
    zr_net_engine.n_active++;
    h->n_active++;
    r = zr_net_engine_choose_locked();
    zr_net_list_add(&r->inbox, t);
    zr_net_engine_wake_locked(r);
    return true;
}

void zr_net_host_dispatch_locked(struct zr_net_host *h)
{
    while (host_dispatch_one_locked(h))
        ;
}

/* All slots were taken: gives the free ones to the hosts in turns. */
static void host_share_locked(void)
{
    const struct zr_map *hosts = &zr_net_engine.hosts;

    for (size_t idle = 0; idle < hosts->n && !host_is_full_locked(); idle++)
        if (host_dispatch_one_locked(hosts->items[zr_net_engine.turn++ % hosts->n].value))
            idle = 0;
}

void zr_net_host_leave_locked(struct zr_net_host *h)
{
    const bool was_full = host_is_full_locked();

    h->n_active--;
    zr_net_engine.n_active--;
    if (was_full)
        host_share_locked();
    else
        zr_net_host_dispatch_locked(h);
}

struct zr_net_host *zr_net_host_find_locked(const struct zr_net_transfer *t)
{
    struct zr_net *net = t->net;
    struct zr_net_host *h = NULL;
    struct zr_str origin;

    zr_str_init(&origin, NULL);
    zr_url_put_origin(&origin, &t->url);
    if (!origin.failed)
        h = zr_map_get(&zr_net_engine.hosts, zr_str_text(&origin));
    if (!h && !origin.failed) {
        h = zr_calloc(NULL, 1, sizeof *h);
        if (h &&
            zr_map_put(&zr_net_engine.hosts, zr_str_text(&origin), h, NULL) != ZARR_OK) {
            zr_free(NULL, h);
            h = NULL;
        }
        if (h)
            zr_net_host_reset(h, ZR_NET_CONCURRENCY);
    }
    if (h && net->opts.concurrency && !net->has_set_limit)
        zr_net_host_reset(h, net->opts.concurrency);
    net->has_set_limit = true;
    zr_str_deinit(&origin);
    return h;
}

/* ---- lists ---- */

void zr_net_list_add(struct zr_net_list *l, struct zr_net_transfer *t)
{
    t->list = l;
    t->prev = l->last;
    t->next = NULL;
    if (l->last)
        l->last->next = t;
    else
        l->first = t;
    l->last = t;
    l->n++;
}

void zr_net_list_remove(struct zr_net_transfer *t)
{
    struct zr_net_list *l = t->list;

    if (t->prev)
        t->prev->next = t->next;
    else
        l->first = t->next;
    if (t->next)
        t->next->prev = t->prev;
    else
        l->last = t->prev;
    l->n--;
    t->list = NULL;
    t->prev = t->next = NULL;
}

void zr_net_list_move(struct zr_net_list *to, struct zr_net_list *from)
{
    while (from->first) {
        struct zr_net_transfer *t = from->first;

        zr_net_list_remove(t);
        zr_net_list_add(to, t);
    }
}
