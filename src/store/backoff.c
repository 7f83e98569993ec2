/*
 * store/backoff.c - waits between the tries of a write that another writer overtook, as
 * on a store that is written by conditions. Each wait takes a random time up to a bound
 * that doubles with each try ("full jitter"), so that many writers of one key get out of
 * step. All waits together last as long as a wait for a lock may: `lock_wait_ms` of the
 * store. Thread class: a struct zr_backoff belongs to its waiter.
 */
#include "store/store_int.h"

#include "sched/sched.h"

#define BACKOFF_FIRST_NS  UINT64_C(1000000)    /* of the first wait, at most */
#define BACKOFF_MOST_NS   UINT64_C(1000000000) /* of any wait */
#define BACKOFF_CANCEL_NS UINT64_C(10000000)   /* how often it looks at `cancel` */

void zr_backoff_init(struct zr_backoff *b, const zarr_store *s, const char *key,
                     const zarr_cancel *cancel)
{
    *b = (struct zr_backoff){.wait = {.rules = &s->keylocks.rules, .cancel = cancel},
                             .key = *key ? key : "/",
                             .bound_ns = BACKOFF_FIRST_NS};
}

/* Ends early if the whole wait is over. */
static void backoff_sleep(struct zr_backoff *b, uint64_t ns)
{
    const uint64_t end_ns = zr_now_ns() + ns;
    struct zr_event never;
    bool ended = false;

    zr_event_init(&never);
    zr_block_begin();
    while (!ended && !zr_lock_wait_is_over(&b->wait)) {
        const uint64_t now_ns = zr_now_ns();

        ended = now_ns >= end_ns;
        if (!ended)
            (void)zr_event_wait(&never, ZR_MIN(end_ns, now_ns + BACKOFF_CANCEL_NS));
    }
    zr_block_end();
    zr_event_deinit(&never);
}

static zarr_status backoff_fail(const struct zr_backoff *b, zarr_status st,
                                zarr_error *err)
{
    if (zr_is_cancelled(b->wait.cancel))
        return zr_fail(err, ZARR_ERR_CANCELLED,
                       "%s: cancelled while other writers were "
                       "faster",
                       b->key);
    return zr_prefix(err, st, "%" PRIu32 " tries within %.3g s (option lock_wait_ms)",
                     b->n_tries, (double)b->wait.rules->limit_ns / 1e9);
}

zarr_status zr_backoff_wait(struct zr_backoff *b, zarr_status st, zarr_error *err)
{
    b->n_tries++;
    if (b->wait.begun_ns == 0)
        b->wait.begun_ns = zr_now_ns();
    backoff_sleep(b, zr_random_u64() % (b->bound_ns + 1));
    b->bound_ns = ZR_MIN(2 * b->bound_ns, BACKOFF_MOST_NS);
    if (zr_lock_wait_is_over(&b->wait))
        return backoff_fail(b, st, err);
    if (zr_lock_wait_is_long(&b->wait)) {
        b->wait.warned = true;
        zr_log(&b->wait.rules->log, ZARR_LOG_WARN,
               "%s: other writers were faster %" PRIu32 " times in %.3g s", b->key,
               b->n_tries, (double)b->wait.rules->warn_ns / 1e9);
    }
    return ZARR_OK;
}
