/*
 * net/cancel.c - ends requests before their time: by tag, and those in queues by their
 * cancel object. A reactor looks at the objects of its own requests itself, and ends all
 * that are cancelled.
 *
 * Thread class: shared.
 */
#include "net/curl_int.h"

#define CANCEL_SWEEP_NS UINT64_C(50000000)

bool zr_net_is_cancelled(const struct zr_net_transfer *t)
{
    return atomic_load(&t->is_cancelled) || zr_is_cancelled(t->request->cancel) ||
           (t->end_ns != UINT64_MAX && zr_now_ns() >= t->end_ns);
}

void zr_net_cancel_transfer(struct zr_net_transfer *t)
{
    const bool exits = atomic_load(&zr_net_engine.is_closed);

    t->st = zr_fail(&t->err, ZARR_ERR_CANCELLED, "%s",
                    exits ? "the process exits" : "the request was cancelled");
}

static void cancel_in(struct zr_net_list *l, const struct zr_net *net, const void *tag,
                      struct zr_net_reactor *r)
{
    bool found = false;

    for (struct zr_net_transfer *t = l->first; t; t = t->next)
        if (t->net == net && t->request->tag == tag) {
            atomic_store(&t->is_cancelled, true);
            found = true;
        }
    if (found)
        zr_net_engine_wake_locked(r);
}

/* A reactor calls its done(). */
static void cancel_queued(struct zr_net_transfer *t)
{
    struct zr_net_reactor *r = zr_net_engine_choose_locked();

    if (atomic_load(&zr_net_engine.is_closed)) /* the reactors end it */
        return;
    zr_net_list_remove(t);
    zr_net_engine.n_queued--;
    zr_net_cancel_transfer(t);
    zr_net_list_add(&r->ended, t);
    zr_net_engine_wake_locked(r);
}

static void cancel_queue(struct zr_net_list *l, const struct zr_net *net, const void *tag)
{
    struct zr_net_transfer *t = l->first, *next;

    for (; t; t = next) {
        next = t->next;
        if (t->net != net || t->request->tag != tag)
            continue;
        atomic_store(&t->is_cancelled, true);
        cancel_queued(t);
    }
}

void zr_net_engine_sweep_locked(uint64_t now_ns)
{
    if (zr_net_engine.n_queued == 0 || now_ns < zr_net_engine.sweep_ns)
        return;
    zr_net_engine.sweep_ns = now_ns + CANCEL_SWEEP_NS;
    for (size_t i = 0; i < zr_net_engine.hosts.n; i++) {
        struct zr_net_host *h = zr_net_engine.hosts.items[i].value;
        struct zr_net_transfer *t = h->queue.first, *next;

        for (; t; t = next) {
            next = t->next;
            if (zr_net_is_cancelled(t))
                cancel_queued(t);
        }
    }
}

void zr_net_cancel(struct zr_net *net, const void *tag)
{
    zr_mutex_lock(&zr_net_engine.mutex);
    for (size_t i = 0; i < zr_net_engine.hosts.n; i++)
        cancel_queue(&((struct zr_net_host *)zr_net_engine.hosts.items[i].value)->queue,
                     net, tag);
    for (uint32_t i = 0; i < atomic_load(&zr_net_engine.n_reactors); i++) {
        struct zr_net_reactor *r = &zr_net_engine.reactor[i];

        cancel_in(&r->inbox, net, tag, r);
        cancel_in(&r->active, net, tag, r);
        cancel_in(&r->waiting, net, tag, r);
        cancel_in(&r->ended, net, tag, r);
    }
    for (struct zr_net_scope *s = zr_net_engine.scopes; s; s = s->next)
        s->is_cancelled = s->is_cancelled || (s->net == net && s->tag == tag);
    zr_mutex_unlock(&zr_net_engine.mutex);
}

/* ---- scopes ---- */

static _Thread_local char cancel_thread; /* its address is that of the thread */

void zr_net_scope_add_locked(struct zr_net_scope *s)
{
    s->thread = &cancel_thread;
    s->next = zr_net_engine.scopes;
    zr_net_engine.scopes = s;
}

void zr_net_scope_remove_locked(const struct zr_net_scope *s)
{
    struct zr_net_scope **at = &zr_net_engine.scopes;

    while (*at && *at != s) /* a child of a fork has none of its parent */
        at = &(*at)->next;
    if (*at)
        *at = s->next;
}

/* Only of this thread: when the end of an operation is told, another thread may use its
 * tag again before its scope ends. */
bool zr_net_scope_is_cancelled_locked(const struct zr_net *net, const void *tag)
{
    for (const struct zr_net_scope *s = zr_net_engine.scopes; s; s = s->next)
        if (s->is_cancelled && s->thread == &cancel_thread && s->net == net &&
            s->tag == tag)
            return true;
    return false;
}

void zr_net_scope_begin(struct zr_net_scope *s, const struct zr_net *net, const void *tag)
{
    *s = (struct zr_net_scope){.net = net, .tag = tag};
    zr_mutex_lock(&zr_net_engine.mutex);
    zr_net_scope_add_locked(s);
    zr_mutex_unlock(&zr_net_engine.mutex);
}

void zr_net_scope_move(struct zr_net_scope *to, struct zr_net_scope *from)
{
    zr_mutex_lock(&zr_net_engine.mutex);
    zr_net_scope_remove_locked(from);
    *to = *from;
    zr_net_scope_add_locked(to);
    zr_mutex_unlock(&zr_net_engine.mutex);
}

void zr_net_scope_end(struct zr_net_scope *s)
{
    zr_mutex_lock(&zr_net_engine.mutex);
    zr_net_scope_remove_locked(s);
    zr_mutex_unlock(&zr_net_engine.mutex);
}

bool zr_net_scope_is_cancelled(const struct zr_net *net, const void *tag)
{
    bool is_cancelled;

    zr_mutex_lock(&zr_net_engine.mutex);
    is_cancelled = zr_net_scope_is_cancelled_locked(net, tag);
    zr_mutex_unlock(&zr_net_engine.mutex);
    return is_cancelled;
}
