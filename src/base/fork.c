/*
 * base/fork.c - how the library survives fork(). In the child only the thread that forked
 * goes on. A lock that another thread held would stay locked for ever, and what that
 * thread was doing would never be finished. So each long-lived object with a lock
 * registers a hook. Before a fork all hooked locks are taken, outermost rank first, so
 * that the objects are consistent when the memory is copied. Afterwards parent and child
 * release them; in the child each hook first resets what belonged to threads that no
 * longer exist.
 *
 * The generation counts the forks between this process and the one that loaded the
 * library. A request stores it and so knows that it was inherited. The handlers are
 * installed when the library is loaded, before it has any thread. Lock order: the list's
 * lock is the outermost, so hooks are added and removed with no lock held.
 *
 * Thread class: shared.
 */
#include "base/base.h"

static struct {
    zr_mutex mutex;
    struct zr_fork_hook *first; /* by falling rank */
} fork_list = {ZR_MUTEX_INIT, NULL};

static atomic_uint_fast64_t fork_count;

uint64_t zr_fork_generation(void)
{
    return atomic_load_explicit(&fork_count, memory_order_relaxed);
}

bool zr_has_forked(uint64_t generation)
{
    return generation != atomic_load_explicit(&fork_count, memory_order_relaxed);
}

void zr_fork_hook_add(struct zr_fork_hook *hook)
{
    struct zr_fork_hook *before = NULL, *after;

    zr_mutex_lock(&fork_list.mutex);
    if (!hook->linked) {
        for (after = fork_list.first; after && after->rank > hook->rank;
             after = after->next)
            before = after;
        hook->prev = before;
        hook->next = after;
        if (before)
            before->next = hook;
        else
            fork_list.first = hook;
        if (after)
            after->prev = hook;
        hook->linked = true;
    }
    zr_mutex_unlock(&fork_list.mutex);
}

void zr_fork_hook_remove(struct zr_fork_hook *hook)
{
    zr_mutex_lock(&fork_list.mutex);
    if (hook->linked) {
        if (hook->prev)
            hook->prev->next = hook->next;
        else
            fork_list.first = hook->next;
        if (hook->next)
            hook->next->prev = hook->prev;
        hook->linked = false;
    }
    zr_mutex_unlock(&fork_list.mutex);
}

static void fork_prepare(void)
{
    zr_mutex_lock(&fork_list.mutex);
    for (struct zr_fork_hook *h = fork_list.first; h; h = h->next)
        zr_mutex_lock(h->mutex);
}

static void fork_unlock_all(void)
{
    struct zr_fork_hook *h = fork_list.first;

    while (h && h->next)
        h = h->next;
    for (; h; h = h->prev)
        zr_mutex_unlock(h->mutex);
    zr_mutex_unlock(&fork_list.mutex);
}

static void fork_in_child(void)
{
    atomic_fetch_add_explicit(&fork_count, 1, memory_order_relaxed);
    for (struct zr_fork_hook *h = fork_list.first; h; h = h->next)
        if (h->child)
            h->child(h->arg);
    fork_unlock_all();
}

__attribute__((constructor)) static void fork_install(void)
{
    (void)pthread_atfork(fork_prepare, fork_unlock_all, fork_in_child);
}
