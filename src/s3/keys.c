/*
 * s3/keys.c - the credentials that a store has now, and their renewal before they expire:
 * one thread fetches new ones while the others go on with the old ones. Requests that
 * must not wait for that ask a renewer. Thread class: shared.
 */
#include "s3/s3_int.h"

#include "sched/sched.h"

#include <string.h>

enum {
    KEYS_RANK = 5,      /* inside of the lock of a reactor */
    KEYS_EARLY_S = 300, /* a new key is fetched so long before the old one expires */
    KEYS_PAUSE_S = 10,  /* between two tries meanwhile */
    RENEWERS_MOST = 8
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

/* ---- renewers ---- */

/* Threads for requests that must not wait and need a new key. One more starts when all
 * are busy, so a program that hangs does not hold up the keys of other stores. */
struct renewer {
    struct zr_service service;
    struct zr_s3_keys *keys; /* of the present renewal */
};
static struct {
    zr_once once;
    zr_mutex mutex;
    zr_cond changed;
    struct zr_fork_hook fork;
    struct zr_s3_keys *first; /* in a queue */
    struct renewer thread[RENEWERS_MOST];
    uint32_t n, n_asked; /* asked: in the queue, or renewed now */
    bool is_closed;
} renewers = {.once = ZR_ONCE_INIT};

static void renewers_in_child(void *arg)
{
    ZR_UNUSED(arg);
    zr_cond_init(&renewers.changed);
    renewers.first = NULL;
    renewers.n = renewers.n_asked = 0;
}

static void renewers_make(void)
{
    zr_mutex_init(&renewers.mutex);
    zr_cond_init(&renewers.changed);
    renewers.fork = (struct zr_fork_hook){
        .mutex = &renewers.mutex, .child = renewers_in_child, .rank = KEYS_RANK};
    zr_fork_hook_add(&renewers.fork);
}

/* Requests that wait go on, with the key at hand. */
static void answer_locked(struct zr_s3_keys *k)
{
    atomic_store(&k->is_asked, false);
    renewers.n_asked--;
}

static struct zr_s3_keys *take_asked_locked(void)
{
    struct zr_s3_keys *k = renewers.first;

    if (k)
        renewers.first = k->next;
    return k;
}

static void renewer_serve(void *user)
{
    struct renewer *self = user;

    zr_mutex_lock(&renewers.mutex);
    while (!renewers.is_closed) {
        self->keys = take_asked_locked();
        if (!self->keys) {
            zr_cond_wait(&renewers.changed, &renewers.mutex);
            continue;
        }
        zr_mutex_unlock(&renewers.mutex);
        (void)zr_s3_keys_renew(self->keys, &self->keys->cancel, NULL);
        zr_mutex_lock(&renewers.mutex);
        answer_locked(self->keys);
        self->keys = NULL;
        zr_cond_broadcast(&renewers.changed);
    }
    for (struct zr_s3_keys *k; (k = take_asked_locked());)
        answer_locked(k); /* nothing more is renewed */
    zr_mutex_unlock(&renewers.mutex);
}

static void renewer_stop(void *user)
{
    struct renewer *self = user;

    zr_mutex_lock(&renewers.mutex);
    renewers.is_closed = true;
    if (self->keys)
        atomic_store(&self->keys->cancel.set, true);
    zr_cond_broadcast(&renewers.changed);
    zr_mutex_unlock(&renewers.mutex);
}

/* Starts a thread if all are busy. */
static zarr_status add_renewer_locked(zarr_error *err)
{
    struct renewer *r = &renewers.thread[renewers.n];
    zarr_status st;

    if (renewers.is_closed)
        return zr_fail(err, ZARR_ERR_CANCELLED, "the process exits");
    if (renewers.n_asked < renewers.n || renewers.n == RENEWERS_MOST)
        return ZARR_OK;
    *r = (struct renewer){{.serve = renewer_serve, .stop = renewer_stop, .arg = r}, NULL};
    st = zr_service_start(&r->service, err);
    if (st == ZARR_OK)
        renewers.n++;
    return renewers.n > 0 ? ZARR_OK : st;
}

/* Ends the renewal of keys that are freed. */
static void renewers_leave(struct zr_s3_keys *k)
{
    struct zr_s3_keys **p = &renewers.first;

    zr_mutex_lock(&renewers.mutex);
    while (*p && *p != k)
        p = &(*p)->next;
    if (*p) {
        *p = k->next;
        answer_locked(k);
    }
    atomic_store(&k->cancel.set, true);
    while (atomic_load(&k->is_asked))
        zr_cond_wait(&renewers.changed, &renewers.mutex);
    zr_mutex_unlock(&renewers.mutex);
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
    zr_call_once(&renewers.once, renewers_make);
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
    renewers_leave(k);
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
    if (number == k->n_fetched)
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

static bool keys_are_due(struct zr_s3_keys *k)
{
    const int64_t now = zr_wall_seconds();
    bool are_due;

    zr_mutex_lock(&k->mutex);
    are_due = keys_need_refresh(k, now) && !(k->is_refreshing && keys_are_valid(k, now));
    zr_mutex_unlock(&k->mutex);
    return are_due;
}

zarr_status zr_s3_keys_ask(struct zr_s3_keys *k, zarr_error *err)
{
    struct zr_s3_keys **last = &renewers.first;
    zarr_status st = ZARR_OK;

    if (k->origin.source == ZR_S3_FIXED || !keys_are_due(k))
        return ZARR_OK;
    zr_mutex_lock(&renewers.mutex);
    if (!atomic_load(&k->is_asked))
        st = add_renewer_locked(err);
    if (st == ZARR_OK && !atomic_exchange(&k->is_asked, true)) {
        while (*last)
            last = &(*last)->next;
        *last = k;
        k->next = NULL;
        renewers.n_asked++;
        zr_cond_broadcast(&renewers.changed);
    }
    zr_mutex_unlock(&renewers.mutex);
    return st;
}

bool zr_s3_keys_are_awaited(struct zr_s3_keys *k)
{
    bool are_valid;

    if (!atomic_load(&k->is_asked))
        return false;
    zr_mutex_lock(&k->mutex);
    are_valid = keys_are_valid(k, zr_wall_seconds());
    zr_mutex_unlock(&k->mutex);
    return !are_valid;
}

zarr_status zr_s3_keys_check(struct zr_s3_keys *k, zarr_error *err)
{
    zarr_status st;

    if (k->origin.source == ZR_S3_FIXED)
        return ZARR_OK;
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

    while (keys_need_refresh(k, zr_wall_seconds())) {
        if (!k->is_refreshing && k->st != ZARR_OK && zr_wall_seconds() < k->next_try_s)
            return zr_pass(err, k->st, &k->err); /* it has just failed */
        if (!k->is_refreshing)
            ZR_CHECK(refresh_locked(k, cancel, err));
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
    return ZARR_OK;
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
