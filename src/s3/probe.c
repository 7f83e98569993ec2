/*
 * s3/probe.c - whether a server keeps conditions of writes. Some parse them and write
 * anyway; then writers would lose each other's updates. So a key of the store's own is
 * written and replaced under conditions that must fail, once per bucket and process,
 * before the first write that needs a condition. DELETE is not probed: a server may check
 * its condition before it takes the lock, which no requests in a row show.
 *
 * A probe that was cancelled, or whose process was forked, sends nothing more: its key
 * stays until it is cleaned.
 * Thread class: shared.
 */
#include "s3/s3_int.h"

#include "sched/sched.h"

#include <stdio.h>
#include <string.h>

enum {
    PROBE_RANK = 5, /* of a lock inside of no other */
    PROBE_PLACES = 64
};

/* An ETag that no value has. */
#define PROBE_WRONG_ETAG "\"00000000000000000000000000000000\""

/* ---- what the process knows ---- */

/* A bucket at an endpoint. */
struct probed_place {
    char hash[ZR_S3_HASH_ROOM]; /* of its name; "": this entry is free */
    uint32_t known;             /* ZR_S3_KEEPS_*; 0: a thread finds out */
    const void *tag;            /* of that thread's operation */
    bool is_cancelled;
};

static struct {
    zr_once once;
    zr_mutex mutex;
    zr_cond changed;
    struct zr_fork_hook fork;
    struct probed_place place[PROBE_PLACES];
    size_t next; /* the one that goes first when all are taken */
} probes = {.once = ZR_ONCE_INIT};

/* The threads that find out are in the parent. */
static void probes_in_child(void *arg)
{
    ZR_UNUSED(arg);
    zr_cond_init(&probes.changed);
    for (size_t i = 0; i < PROBE_PLACES; i++)
        if (probes.place[i].known == 0)
            *probes.place[i].hash = '\0';
}

static void probes_setup(void)
{
    zr_mutex_init(&probes.mutex);
    zr_cond_init(&probes.changed);
    probes.fork = (struct zr_fork_hook){
        .mutex = &probes.mutex, .child = probes_in_child, .rank = PROBE_RANK};
    zr_fork_hook_add(&probes.fork);
}

static struct probed_place *find_place_locked(const char *hash)
{
    for (size_t i = 0; i < PROBE_PLACES; i++)
        if (zr_streq(probes.place[i].hash, hash))
            return &probes.place[i];
    return NULL;
}

/* A new entry; NULL: in all of them threads find out. */
static struct probed_place *add_place_locked(const char *hash, const void *tag)
{
    for (size_t i = 0; i < PROBE_PLACES; i++) {
        struct probed_place *p = &probes.place[probes.next++ % PROBE_PLACES];

        if (*p->hash && p->known == 0)
            continue;
        *p = (struct probed_place){.tag = tag};
        memcpy(p->hash, hash, sizeof p->hash);
        return p;
    }
    return NULL;
}

/* of_uploads: of what is known about their completion, which has an entry of its own. */
static zarr_status hash_place(char out[ZR_S3_HASH_ROOM], const struct zr_s3_store *s,
                              bool of_uploads, zarr_error *err)
{
    const struct zr_url *bucket = &s->place[0].bucket;
    struct zr_str name;
    zarr_status st = ZARR_OK;

    zr_str_init(&name, s->reader.env.alloc);
    zr_url_put_key(&name, bucket, NULL);
    if (of_uploads)
        zr_str_puts(&name, "?uploads");
    ZR_TRY(zr_str_status(&name, err));
    st = zr_s3_hash(out, zr_str_text(&name), name.bytes, err);
out:
    zr_str_deinit(&name);
    return st;
}

/* ---- the probe ---- */

struct probe {
    struct zr_s3_store *s;
    bool of_uploads;
    const zarr_cancel *cancel;
    const void *tag;
    struct probed_place *place; /* for cancels by tag */
    uint64_t generation;        /* of forks */
    char key[sizeof ZR_S3_PROBE_NAME + 32];
    char etag[ZR_HTTP_ETAG_ROOM]; /* of the key's value; "": unknown */
    bool is_there;
};

static bool probe_is_ended(const struct probe *p)
{
    bool ended;

    if (zr_has_forked(p->generation) || zr_is_cancelled(p->cancel))
        return true;
    zr_mutex_lock(&probes.mutex);
    ended = p->place->is_cancelled;
    zr_mutex_unlock(&probes.mutex);
    return ended;
}

/* One request for the key, with a condition or NULL. */
static zarr_status probe_send(struct probe *p, const char *method, const char *condition,
                              struct zr_s3_request *r, zarr_error *err)
{
    const char *const lines[] = {condition, NULL};
    const bool is_put = strcmp(method, "PUT") == 0;
    zarr_store_version version;
    zarr_status st;

    *r = (struct zr_s3_request){.store = p->s,
                                .method = method,
                                .key = p->key,
                                .lines = lines,
                                .body = is_put ? "probe of zarrc" : NULL,
                                .body_bytes = is_put ? strlen("probe of zarrc") : 0,
                                .is_repeatable = true,
                                .makes_object = is_put,
                                .cancel = p->cancel,
                                .tag = p->tag};
    if (probe_is_ended(p))
        return zr_fail(err, ZARR_ERR_CANCELLED, "cancelled");
    p->is_there = p->is_there || is_put;
    st = zr_s3_call(r, err);
    r->lines = NULL;
    r->body = NULL;
    if (st != ZARR_OK || r->net.answer.status / 100 != 2)
        return st;
    p->is_there = is_put;
    *p->etag = '\0';
    zr_http_version_make(&version, &r->net.answer);
    if (is_put && !zr_http_version_etag(&version, p->etag))
        *p->etag = '\0';
    return ZARR_OK;
}

/* What a server does with a request whose condition is wrong, or right. */
enum probe_found {
    PROBE_REFUSED,
    PROBE_DONE,
    PROBE_UNKNOWN_CONDITION
};

static zarr_status probe_ask(struct probe *p, const char *method, const char *condition,
                             enum probe_found *out, zarr_error *err)
{
    struct zr_s3_request r;
    zarr_status st = probe_send(p, method, condition, &r, err);
    const uint32_t status = r.net.answer.status;

    if (st == ZARR_OK && status / 100 == 2)
        *out = PROBE_DONE;
    else if (st == ZARR_OK && status == 412)
        *out = PROBE_REFUSED;
    else if (st == ZARR_OK && condition &&
             (status == 501 || zr_streq(r.fault.code, "NotImplemented")))
        *out = PROBE_UNKNOWN_CONDITION;
    else if (st == ZARR_OK)
        st = zr_s3_request_fail(&r, err);
    zr_s3_request_deinit(&r);
    return st;
}

/* Whether the server refuses a wrong condition. */
static zarr_status probe_wrong(struct probe *p, const char *condition, bool *keeps,
                               zarr_error *err)
{
    enum probe_found found = PROBE_UNKNOWN_CONDITION;
    const zarr_status st = probe_ask(p, "PUT", condition, &found, err);

    *keeps = st == ZARR_OK && found == PROBE_REFUSED;
    return st;
}

/* The same under the right condition: whether it does what it should. */
static zarr_status probe_right(struct probe *p, bool *keeps, zarr_error *err)
{
    enum probe_found found = PROBE_UNKNOWN_CONDITION;
    char condition[sizeof "If-Match: " + ZR_HTTP_ETAG_ROOM];
    zarr_status st = ZARR_OK;

    *keeps = false;
    if (!*p->etag)
        return ZARR_OK;
    snprintf(condition, sizeof condition, "If-Match: %s", p->etag);
    st = probe_ask(p, "PUT", condition, &found, err);
    *keeps = st == ZARR_OK && found == PROBE_DONE;
    return st;
}

static zarr_status probe_all(struct probe *p, uint32_t *known, zarr_error *err)
{
    enum probe_found found = PROBE_DONE;
    bool keeps = false;
    zarr_status st = ZARR_OK;

    ZR_TRY(probe_ask(p, "PUT", NULL, &found, err));
    ZR_TRY(probe_wrong(p, "If-None-Match: *", &keeps, err));
    if (keeps)
        ZR_TRY(probe_wrong(p, "If-Match: " PROBE_WRONG_ETAG, &keeps, err));
    if (keeps)
        ZR_TRY(probe_right(p, &keeps, err));
    *known = ZR_S3_KEEPS_KNOWN | (keeps ? ZR_S3_KEEPS_PUT : 0u);
out:
    return st;
}

/* Whether the server keeps conditions when it joins parts. */
static zarr_status probe_uploads(struct probe *p, uint32_t *known, zarr_error *err)
{
    const struct zr_s3_trial trial = {p->key, p->etag, p->cancel, p->tag};
    enum probe_found found = PROBE_DONE;
    bool keeps = false;
    zarr_status st = ZARR_OK;

    ZR_TRY(probe_ask(p, "PUT", NULL, &found, err));
    if (probe_is_ended(p))
        return zr_fail(err, ZARR_ERR_CANCELLED, "cancelled");
    ZR_TRY(zr_s3_try_upload(p->s, &trial, &keeps, err));
    *known = ZR_S3_KEEPS_KNOWN | (keeps ? ZR_S3_KEEPS_PUT : 0u);
out:
    return st;
}

static zarr_status probe_run(struct probe *p, uint32_t *known, zarr_error *err)
{
    enum probe_found found = PROBE_DONE;
    zarr_status st;

    snprintf(p->key, sizeof p->key, ZR_S3_PROBE_NAME "%016" PRIx64 "%016" PRIx64,
             zr_random_u64(), zr_random_u64());
    st = (p->of_uploads ? probe_uploads : probe_all)(p, known, err);
    if (p->is_there && st != ZARR_ERR_CANCELLED)
        (void)probe_ask(p, "DELETE", NULL, &found, NULL);
    return st == ZARR_OK || st == ZARR_ERR_CANCELLED
               ? st
               : zr_prefix(err, st,
                           "cannot find out whether the server keeps conditions (option "
                           "conditional)");
}

/* ---- asking ---- */

/* Runs a probe without the lock. */
static zarr_status learn_locked(struct zr_s3_store *s, const zarr_store_op *op,
                                bool of_uploads, struct probed_place *place,
                                uint32_t *known, zarr_error *err)
{
    struct probe p = {.s = s,
                      .of_uploads = of_uploads,
                      .cancel = op->cancel,
                      .tag = place->tag,
                      .place = place,
                      .generation = zr_fork_generation()};
    zarr_status st;

    zr_mutex_unlock(&probes.mutex);
    zr_block_begin();
    st = probe_run(&p, known, err);
    zr_block_end();
    zr_mutex_lock(&probes.mutex);
    if (zr_has_forked(p.generation)) /* the entry may have another owner */
        return zr_fail(err, ZARR_ERR_CANCELLED, "the process was forked");
    if (st == ZARR_OK)
        place->known = *known;
    else
        *place->hash = '\0';
    zr_cond_broadcast(&probes.changed);
    return st;
}

static zarr_status ask_locked(struct zr_s3_store *s, const zarr_store_op *op,
                              bool of_uploads, const void *tag, uint32_t *known,
                              zarr_error *err)
{
    char hash[ZR_S3_HASH_ROOM];
    const zarr_status st = hash_place(hash, s, of_uploads, err);

    if (st != ZARR_OK)
        return st;
    for (;;) {
        struct probed_place *place = find_place_locked(hash);

        if (place && place->known) {
            *known = place->known;
            return ZARR_OK;
        }
        if (!place)
            place = add_place_locked(hash, tag);
        else
            place = NULL; /* another thread finds out */
        if (place)
            return learn_locked(s, op, of_uploads, place, known, err);
        zr_block_begin();
        (void)zr_cond_wait_until(&probes.changed, &probes.mutex, zr_now_ns() + 50000000);
        zr_block_end();
        if (zr_is_cancelled(op->cancel))
            return zr_cancel_check(op->cancel, err);
    }
}

static void recall(const struct zr_s3_store *s, bool of_uploads, atomic_uint *out)
{
    char hash[ZR_S3_HASH_ROOM];
    const struct probed_place *place = NULL;

    if (atomic_load(out) || hash_place(hash, s, of_uploads, NULL) != ZARR_OK)
        return;
    zr_mutex_lock(&probes.mutex);
    place = find_place_locked(hash);
    if (place)
        atomic_store(out, place->known);
    zr_mutex_unlock(&probes.mutex);
}

void zr_s3_conditions_recall(struct zr_s3_store *s)
{
    zr_call_once(&probes.once, probes_setup);
    recall(s, false, &s->keeps);
    recall(s, true, &s->upload_keeps);
}

zarr_status zr_s3_conditions_learn(struct zr_s3_store *s, const zarr_store_op *op,
                                   bool of_uploads, const void *tag, zarr_error *err)
{
    uint32_t known = 0;
    zarr_status st;

    if (zr_attempt_runs())
        return zr_attempt_fail(err);
    zr_mutex_lock(&probes.mutex);
    st = ask_locked(s, op, of_uploads, tag, &known, err);
    zr_mutex_unlock(&probes.mutex);
    if (st == ZARR_OK)
        atomic_store(of_uploads ? &s->upload_keeps : &s->keeps, known);
    return st;
}

void zr_s3_conditions_cancel(const void *tag)
{
    zr_mutex_lock(&probes.mutex);
    for (size_t i = 0; i < PROBE_PLACES; i++)
        if (*probes.place[i].hash && probes.place[i].known == 0 &&
            probes.place[i].tag == tag)
            probes.place[i].is_cancelled = true;
    zr_mutex_unlock(&probes.mutex);
}
