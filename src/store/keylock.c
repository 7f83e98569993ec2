/*
 * store/keylock.c - locks by key between the threads of one handle. A lock is a struct in
 * its holder's storage, linked into a small table while it is held. So another thread can
 * give it back, and nothing is allocated. Waiters share one condition variable, because
 * few keys are held, and only briefly. These locks do not exclude other processes: the
 * local store adds lock files for that.
 * Thread class: shared.
 */
#include "store/store_int.h"

#include "sched/sched.h"

#include <string.h>

static const char KEYLOCK_HOLDER[] = "a thread of this process holds it";

/* Holders and waiters were other threads, which do not exist in a forked child. */
static void keylocks_in_child(void *arg)
{
    struct zr_keylocks *k = arg;

    zr_cond_init(&k->locked.given);
    memset(k->locked.held, 0, sizeof k->locked.held);
    k->locked.n_waiting = 0;
}

void zr_keylocks_init(struct zr_keylocks *k, const struct zr_store_env *env,
                      const zarr_store_options *opts)
{
    memset(k, 0, sizeof *k);
    zr_lock_rules_read(&k->rules, env, opts);
    zr_mutex_init(&k->locked.mutex);
    zr_cond_init(&k->locked.given);
    k->fork = (struct zr_fork_hook){
        .mutex = &k->locked.mutex, .child = keylocks_in_child, .arg = k};
    zr_fork_hook_add(&k->fork);
}

void zr_keylocks_deinit(struct zr_keylocks *k)
{
    zr_fork_hook_remove(&k->fork);
    zr_cond_deinit(&k->locked.given);
    zr_mutex_deinit(&k->locked.mutex);
}

static uint32_t keylock_bucket(const char *key)
{
    return (uint32_t)(zr_map_hash(key, strlen(key)) % ZR_KEYLOCK_BUCKETS);
}

static bool keylock_is_held_locked(const struct zr_keylocks *k, uint32_t bucket,
                                   const char *key)
{
    for (const struct zr_keylock *l = k->locked.held[bucket]; l; l = l->next)
        if (strcmp(l->key, key) == 0)
            return true;
    return false;
}

/* Whether the key is free before the wait is over. */
static bool keylock_wait_locked(struct zr_keylocks *k, const struct zr_keylock *lock,
                                struct zr_lock_wait *wait)
{
    bool is_held = true;

    k->locked.n_waiting++;
    zr_block_begin();
    while (is_held && !zr_lock_wait_is_over(wait)) {
        (void)zr_cond_wait_until(&k->locked.given, &k->locked.mutex,
                                 zr_lock_wait_due(wait));
        if (zr_lock_wait_is_long(wait)) {
            zr_mutex_unlock(&k->locked.mutex);
            zr_lock_wait_warn(wait, KEYLOCK_HOLDER);
            zr_mutex_lock(&k->locked.mutex);
        }
        is_held = keylock_is_held_locked(k, lock->bucket, lock->key);
    }
    zr_block_end();
    k->locked.n_waiting--;
    return !is_held;
}

zarr_status zr_keylocks_take(struct zr_keylocks *k, struct zr_keylock *lock,
                             struct zr_lock_wait *wait, zarr_error *err)
{
    bool is_free = true;

    wait->rules = &k->rules;
    lock->key = wait->key;
    lock->bucket = keylock_bucket(lock->key);
    zr_mutex_lock(&k->locked.mutex);
    if (keylock_is_held_locked(k, lock->bucket, lock->key))
        is_free = keylock_wait_locked(k, lock, wait);
    if (is_free) {
        lock->next = k->locked.held[lock->bucket];
        k->locked.held[lock->bucket] = lock;
    }
    zr_mutex_unlock(&k->locked.mutex);
    return is_free ? ZARR_OK : zr_lock_wait_fail(wait, KEYLOCK_HOLDER, err);
}

bool zr_keylocks_try(struct zr_keylocks *k, struct zr_keylock *lock, const char *key)
{
    bool is_free = false;

    lock->key = key;
    lock->bucket = keylock_bucket(key);
    zr_mutex_lock(&k->locked.mutex);
    is_free = !keylock_is_held_locked(k, lock->bucket, key);
    if (is_free) {
        lock->next = k->locked.held[lock->bucket];
        k->locked.held[lock->bucket] = lock;
    }
    zr_mutex_unlock(&k->locked.mutex);
    return is_free;
}

void zr_keylocks_give(struct zr_keylocks *k, struct zr_keylock *lock)
{
    zr_mutex_lock(&k->locked.mutex);
    for (struct zr_keylock **p = &k->locked.held[lock->bucket]; *p; p = &(*p)->next) {
        if (*p == lock) {
            *p = lock->next;
            break;
        }
    }
    if (k->locked.n_waiting > 0)
        zr_cond_broadcast(&k->locked.given);
    zr_mutex_unlock(&k->locked.mutex);
}

zarr_status zr_handle_lock_take(struct zr_keylocks *k, const zarr_allocator *alloc,
                                const char *key, const zarr_cancel *cancel, void **lock,
                                zarr_error *err)
{
    size_t n = strlen(key) + 1;
    struct zr_handle_lock *held = zr_malloc(alloc, sizeof *held + n);
    struct zr_lock_wait wait = {.cancel = cancel};
    zarr_status st;

    if (!held)
        return zr_fail_memory(err, sizeof *held + n);
    memcpy(held->key, key, n);
    wait.key = held->key;
    st = zr_keylocks_take(k, &held->keylock, &wait, err);
    if (st == ZARR_OK)
        *lock = held;
    else
        zr_free(alloc, held);
    return st;
}

void zr_handle_lock_give(struct zr_keylocks *k, const zarr_allocator *alloc, void *lock)
{
    struct zr_handle_lock *held = lock;

    if (!held)
        return;
    zr_keylocks_give(k, &held->keylock);
    zr_free(alloc, held);
}
