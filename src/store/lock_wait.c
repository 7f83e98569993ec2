/*
 * store/lock_wait.c - limits a wait for a lock (the limit of the store's options), ends
 * it if the call is cancelled, and warns once if it is long. It reads the clock only
 * after a wait begins. Thread class: a struct zr_lock_wait belongs to its waiter; rules
 * are frozen.
 */
#include "store/store_int.h"

#include <errno.h>

#define WAIT_NS_PER_MS UINT64_C(1000000)
#define WAIT_WARN_NS   (10000 * WAIT_NS_PER_MS)
#define WAIT_CANCEL_NS (10 * WAIT_NS_PER_MS) /* how often a waiter looks at `cancel` */

const zarr_cancel zr_lock_no_wait = {.set = true};

void zr_lock_rules_read(struct zr_lock_rules *out, const struct zr_store_env *env,
                        const zarr_store_options *opts)
{
    out->log = env->log;
    out->limit_ns = (uint64_t)opts->lock_wait_ms * WAIT_NS_PER_MS;
    out->warn_ns = env->lock_warn_ns > 0 ? env->lock_warn_ns : WAIT_WARN_NS;
}

bool zr_lock_wait_is_over(const struct zr_lock_wait *w)
{
    return zr_is_cancelled(w->cancel) ||
           (w->begun_ns > 0 && w->rules->limit_ns > 0 &&
            zr_now_ns() - w->begun_ns >= w->rules->limit_ns);
}

bool zr_lock_wait_is_long(const struct zr_lock_wait *w)
{
    return w->begun_ns > 0 && !w->warned &&
           zr_now_ns() - w->begun_ns >= w->rules->warn_ns;
}

uint64_t zr_lock_wait_due(struct zr_lock_wait *w)
{
    uint64_t due = UINT64_MAX;

    if (w->begun_ns == 0)
        w->begun_ns = zr_now_ns();
    if (w->rules->limit_ns > 0)
        due = w->begun_ns + w->rules->limit_ns;
    if (w->cancel)
        due = ZR_MIN(due, zr_now_ns() + WAIT_CANCEL_NS);
    return w->warned ? due : ZR_MIN(due, w->begun_ns + w->rules->warn_ns);
}

void zr_lock_wait_warn(struct zr_lock_wait *w, const char *holder)
{
    w->warned = true;
    zr_log(&w->rules->log, ZARR_LOG_WARN,
           "%s: has waited %.3g s for the lock of this key: %s", w->key,
           (double)w->rules->warn_ns / 1e9, holder);
}

zarr_status zr_lock_wait_fail(const struct zr_lock_wait *w, const char *holder,
                              zarr_error *err)
{
    if (w->cancel == &zr_lock_no_wait)
        return zr_fail(err, ZARR_ERR_CANCELLED, "%s: is locked: %s", w->key, holder);
    if (zr_is_cancelled(w->cancel))
        return zr_fail(err, ZARR_ERR_CANCELLED, "%s: cancelled while waiting: %s", w->key,
                       holder);
    return zr_fail_os(err, ZARR_ERR_IO, ETIMEDOUT,
                      "%s: no lock within %.3g s (option lock_wait_ms): %s", w->key,
                      (double)w->rules->limit_ns / 1e9, holder);
}
