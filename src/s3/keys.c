/*
 * s3/keys.c - the credentials that a store has now, and their renewal before they expire:
 * one thread fetches new ones while the others go on with the old ones. Requests that
 * must not wait for that ask the renewer. Thread class: shared.
 */
#include "s3/s3_int.h"

#include "sched/sched.h"

#include <string.h>

enum {
    KEYS_RANK = 5,      /* inside of the lock of a reactor */
    KEYS_EARLY_S = 300, /* a new key is fetched so long before the old one expires */
    KEYS_PAUSE_S = 10   /* between two tries meanwhile */
};

/* ---- one key ---- */

static bool is_in_header(const char *text)
{
    return *text && zr_is_plain_line(text) && !strpbrk(text, " ,/");
}

zarr_status zr_s3_key_create(struct zr_s3_key **out, const zarr_allocator *alloc,
                             const char *id, const char *secret, const char *token,
                             int64_t expires_s, zarr_error *err)
{
    struct zr_s3_key *k;

    *out = NULL;
    if (!is_in_header(id) || !*secret || (token && !zr_is_plain_line(token)))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "an access key, its secret or a session token has characters that "
                       "none has, or is empty");
    k = zr_calloc(alloc, 1, sizeof *k);
    if (!k)
        return zr_fail_memory(err, sizeof *k);
    k->alloc = alloc;
    atomic_init(&k->refs, 1);
    k->expires_s = expires_s;
    k->id = zr_strdup(alloc, id);
    k->secret = zr_strdup(alloc, secret);
    k->token = token && *token ? zr_strdup(alloc, token) : NULL;
    if (!k->id || !k->secret || (token && *token && !k->token)) {
        zr_s3_key_free(k);
        return zr_fail_memory(err, strlen(id) + strlen(secret));
    }
    *out = k;
    return ZARR_OK;
}

void zr_s3_key_free(struct zr_s3_key *key)
{
    if (!key || atomic_fetch_sub(&key->refs, 1) > 1)
        return;
    zr_free_secret(key->alloc, key->id);
    zr_free_secret(key->alloc, key->secret);
    zr_free_secret(key->alloc, key->token);
    zr_free(key->alloc, key);
}

void zr_s3_text_reserve(struct zr_str *s, size_t n)
{
    if (zr_grow(s->alloc, &s->ptr, &s->cap, s->bytes + n + 1, 1, NULL) == ZARR_OK)
        s->ptr[s->bytes] = '\0';
    else
        s->failed = true;
}

void zr_s3_text_wipe(struct zr_str *s)
{
    if (s->ptr)
        zr_wipe(s->ptr, s->cap);
    zr_str_deinit(s);
}

/* ---- the renewer ---- */

/* One thread for all stores, as requests that must not wait need a new key. */
static struct {
    zr_once once;
    zr_mutex mutex;
    zr_cond changed;
    struct zr_fork_hook fork;
    struct zr_s3_keys *first, *renewed; /* in a queue; and of the present renewal */
    bool runs, is_closed;
    struct zr_service service;
} renewer = {.once = ZR_ONCE_INIT};

static void renewer_in_child(void *arg)
{
    ZR_UNUSED(arg);
    zr_cond_init(&renewer.changed);
    renewer.first = renewer.renewed = NULL;
    renewer.runs = false;
}

static void renewer_make(void)
{
    zr_mutex_init(&renewer.mutex);
    zr_cond_init(&renewer.changed);
    renewer.fork = (struct zr_fork_hook){
        .mutex = &renewer.mutex, .child = renewer_in_child, .rank = KEYS_RANK};
    zr_fork_hook_add(&renewer.fork);
}

static struct zr_s3_keys *renewer_take_locked(void)
{
    struct zr_s3_keys *k = renewer.first;

    if (k)
        renewer.first = k->next;
    return k;
}

/* Nothing is renewed any more: requests that wait go on with the key at hand. */
static void renewer_end_locked(void)
{
    struct zr_s3_keys *k;

    renewer.runs = false;
    while ((k = renewer_take_locked()))
        atomic_store(&k->is_asked, false);
}

static void renewer_serve(void *unused)
{
    struct zr_s3_keys *k;

    ZR_UNUSED(unused);
    zr_mutex_lock(&renewer.mutex);
    while (!renewer.is_closed) {
        k = renewer_take_locked();
        if (!k) {
            zr_cond_wait(&renewer.changed, &renewer.mutex);
            continue;
        }
        renewer.renewed = k;
        zr_mutex_unlock(&renewer.mutex);
        (void)zr_s3_keys_renew(k, &k->cancel, NULL);
        zr_mutex_lock(&renewer.mutex);
        atomic_store(&k->is_asked, false);
        renewer.renewed = NULL;
        zr_cond_broadcast(&renewer.changed);
    }
    renewer_end_locked();
    zr_mutex_unlock(&renewer.mutex);
}

static void renewer_stop(void *unused)
{
    ZR_UNUSED(unused);
    zr_mutex_lock(&renewer.mutex);
    renewer.is_closed = true;
    if (renewer.renewed)
        atomic_store(&renewer.renewed->cancel.set, true);
    zr_cond_broadcast(&renewer.changed);
    zr_mutex_unlock(&renewer.mutex);
}

zarr_status zr_s3_keys_ask(struct zr_s3_keys *k, zarr_error *err)
{
    struct zr_s3_keys **last = &renewer.first;
    zarr_status st = ZARR_OK;

    zr_call_once(&renewer.once, renewer_make);
    zr_mutex_lock(&renewer.mutex);
    if (!renewer.runs) {
        renewer.service =
            (struct zr_service){.serve = renewer_serve, .stop = renewer_stop};
        st = zr_service_start(&renewer.service, err);
        renewer.runs = st == ZARR_OK;
    }
    if (st == ZARR_OK && !atomic_exchange(&k->is_asked, true)) {
        while (*last)
            last = &(*last)->next;
        *last = k;
        k->next = NULL;
        zr_cond_broadcast(&renewer.changed);
    }
    zr_mutex_unlock(&renewer.mutex);
    return st;
}

/* Ends the renewal of keys that are freed. */
static void renewer_leave(struct zr_s3_keys *k)
{
    struct zr_s3_keys **p = &renewer.first;

    zr_call_once(&renewer.once, renewer_make);
    zr_mutex_lock(&renewer.mutex);
    while (*p && *p != k)
        p = &(*p)->next;
    if (*p)
        *p = k->next;
    atomic_store(&k->cancel.set, true);
    while (renewer.renewed == k)
        zr_cond_wait(&renewer.changed, &renewer.mutex);
    zr_mutex_unlock(&renewer.mutex);
}

/* ---- all of a store ---- */

static void keys_in_child(void *keys)
{
    struct zr_s3_keys *k = keys;

    zr_cond_init(&k->changed);
    k->is_refreshing = false;
    atomic_store(&k->is_asked, false);
}

zarr_status zr_s3_keys_init(struct zr_s3_keys *k, const struct zr_s3_keys_options *o,
                            const struct zr_store_env *env, zarr_error *err)
{
    k->alloc = env->alloc;
    k->log = env->log;
    k->limits = env->limits;
    zr_str_init(&k->looked, env->alloc);
    zr_mutex_init(&k->mutex);
    zr_cond_init(&k->changed);
    zr_cancel_init(&k->cancel, NULL);
    k->fork = (struct zr_fork_hook){
        .mutex = &k->mutex, .child = keys_in_child, .arg = k, .rank = KEYS_RANK};
    zr_fork_hook_add(&k->fork);
    return o->anonymous ? ZARR_OK : zr_s3_origin_find(k, o, err);
}

void zr_s3_keys_deinit(struct zr_s3_keys *k)
{
    struct zr_s3_origin *o = &k->origin;
    char *const texts[] = {o->command,    o->role,          o->session, o->external_id,
                           o->token_file, o->authorization, o->url,     o->region};

    if (!k->fork.mutex) /* not initialised */
        return;
    renewer_leave(k);
    zr_fork_hook_remove(&k->fork);
    for (size_t i = 0; i < ZR_COUNT(texts); i++)
        zr_free_secret(k->alloc, texts[i]);
    zr_s3_key_free(o->parent);
    zr_s3_key_free(k->key);
    zr_net_free(k->net);
    zr_str_deinit(&k->looked);
    zr_cond_deinit(&k->changed);
    zr_mutex_deinit(&k->mutex);
}

struct zr_s3_key *zr_s3_keys_get(struct zr_s3_keys *k)
{
    struct zr_s3_key *key;

    zr_mutex_lock(&k->mutex);
    key = k->key;
    if (key)
        atomic_fetch_add(&key->refs, 1);
    zr_mutex_unlock(&k->mutex);
    return key;
}

bool zr_s3_keys_expire(struct zr_s3_keys *k, uint64_t number)
{
    if (k->origin.source == ZR_S3_FIXED)
        return false;
    zr_mutex_lock(&k->mutex);
    if (number == 0 || number == k->n_fetched)
        k->is_stale = true;
    zr_mutex_unlock(&k->mutex);
    return true;
}

/* ---- renewal ---- */

static bool keys_are_valid(const struct zr_s3_keys *k, int64_t now)
{
    return k->key && !k->is_stale && (k->key->expires_s == 0 || now < k->key->expires_s);
}

/* Whether this caller should fetch a new key. */
static bool keys_need_refresh(const struct zr_s3_keys *k, int64_t now)
{
    if (!keys_are_valid(k, now))
        return true;
    return k->key->expires_s != 0 && now >= k->key->expires_s - KEYS_EARLY_S &&
           now >= k->next_try_s;
}

bool zr_s3_keys_are_due(struct zr_s3_keys *k)
{
    const int64_t now = zr_wall_seconds();
    bool are_due;

    if (k->origin.source == ZR_S3_FIXED)
        return false;
    zr_mutex_lock(&k->mutex);
    are_due = keys_need_refresh(k, now) && !(k->is_refreshing && keys_are_valid(k, now));
    zr_mutex_unlock(&k->mutex);
    return are_due;
}

bool zr_s3_keys_are_awaited(struct zr_s3_keys *k)
{
    bool are_valid;

    zr_mutex_lock(&k->mutex);
    are_valid = keys_are_valid(k, zr_wall_seconds());
    zr_mutex_unlock(&k->mutex);
    return !are_valid && atomic_load(&k->is_asked);
}

zarr_status zr_s3_keys_check(struct zr_s3_keys *k, zarr_error *err)
{
    zarr_status st;

    zr_mutex_lock(&k->mutex);
    st = keys_are_valid(k, zr_wall_seconds()) ? ZARR_OK : zr_pass(err, k->st, &k->err);
    zr_mutex_unlock(&k->mutex);
    return st;
}

/* Fetches without the lock. A caller that was cancelled fails alone: one of those who
 * wait goes on. */
static zarr_status refresh_locked(struct zr_s3_keys *k, const zarr_cancel *cancel,
                                  zarr_error *out)
{
    struct zr_s3_key *fresh = NULL;
    zarr_error err = {0};
    zarr_status st;

    k->is_refreshing = true;
    zr_mutex_unlock(&k->mutex);
    st = zr_s3_fetch(&fresh, k, cancel, &err);
    if (st != ZARR_OK)
        zr_log(&k->log, ZARR_LOG_DEBUG, "S3: no new credentials: %s", err.message);
    zr_mutex_lock(&k->mutex);
    k->is_refreshing = false;
    zr_cond_broadcast(&k->changed);
    if (st == ZARR_ERR_CANCELLED)
        return zr_pass(out, st, &err);
    k->next_try_s = zr_wall_seconds() + KEYS_PAUSE_S;
    if (st == ZARR_OK) {
        zr_s3_key_free(k->key);
        fresh->number = ++k->n_fetched;
        k->key = fresh;
        k->is_stale = false;
    } else {
        k->err = err;
        k->n_failures++;
    }
    k->st = st;
    return ZARR_OK;
}

static zarr_status renew_locked(struct zr_s3_keys *k, const zarr_cancel *cancel,
                                zarr_error *err)
{
    const uint64_t n_failures = k->n_failures;
    zarr_status st = ZARR_OK;

    while (keys_need_refresh(k, zr_wall_seconds())) {
        if (!k->is_refreshing && k->st != ZARR_OK && zr_wall_seconds() < k->next_try_s)
            return zr_pass(err, k->st, &k->err); /* it has just failed */
        if (!k->is_refreshing)
            ZR_TRY(refresh_locked(k, cancel, err));
        else if (keys_are_valid(k, zr_wall_seconds()))
            return ZARR_OK;
        else
            (void)zr_cond_wait_until(&k->changed, &k->mutex, zr_now_ns() + 50000000);
        if (zr_is_cancelled(cancel))
            return zr_cancel_check(cancel, err);
        if (k->n_failures != n_failures)
            return keys_are_valid(k, zr_wall_seconds()) ? ZARR_OK
                                                        : zr_pass(err, k->st, &k->err);
    }
out:
    return st;
}

zarr_status zr_s3_keys_renew(struct zr_s3_keys *k, const zarr_cancel *cancel,
                             zarr_error *err)
{
    zarr_status st = ZARR_OK;
    bool needs;

    if (k->origin.source == ZR_S3_FIXED)
        return k->key || k->looked.bytes == 0
                   ? ZARR_OK
                   : zr_fail(err, ZARR_ERR_DENIED, "no credentials were found: %s",
                             zr_str_text(&k->looked));
    zr_mutex_lock(&k->mutex);
    needs = keys_need_refresh(k, zr_wall_seconds());
    if (needs && zr_attempt_runs())
        st = zr_attempt_fail(err);
    else if (needs && !zr_net_is_reactor()) /* which goes on with the old key */
        st = renew_locked(k, cancel, err);
    zr_mutex_unlock(&k->mutex);
    return st;
}
