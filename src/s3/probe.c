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
    PROBE_PLACES = 64,
    PROBE_KEYS = 3 /* until a doubtful verdict counts for the write that asked */
};

/* An ETag that no value has. */
#define PROBE_WRONG_ETAG "\"00000000000000000000000000000000\""

/* ---- what the process knows ---- */

/* A bucket at an endpoint. */
struct probed_place {
    char hash[ZR_S3_HASH_ROOM]; /* of its name; "": this entry is free */
    enum zr_s3_verdict verdict; /* UNKNOWN: a thread finds out */
    const char *seen;           /* what speaks against it */
    uint64_t until_ns;          /* of a doubtful verdict */
};

static struct {
    zr_once once;
    zr_mutex mutex;
    zr_cond changed;
    struct zr_fork_hook fork;
    struct probed_place place[PROBE_PLACES];
    size_t next; /* the one that goes first when all are taken */
} probes = {.once = ZR_ONCE_INIT};

atomic_uint_fast64_t zr_s3_doubt_ns = UINT64_C(60000000000);

/* The threads that find out are in the parent. */
static void probes_in_child(void *arg)
{
    ZR_UNUSED(arg);
    zr_cond_init(&probes.changed);
    for (size_t i = 0; i < PROBE_PLACES; i++)
        if (probes.place[i].verdict == ZR_S3_UNKNOWN)
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

/* Whether what was found out about a place is out of date. */
static bool has_expired(const struct probed_place *p)
{
    return p->verdict == ZR_S3_DOUBTFUL && zr_now_ns() >= p->until_ns;
}

/* A new entry; NULL: in all of them threads find out. */
static struct probed_place *add_place_locked(const char *hash)
{
    for (size_t i = 0; i < PROBE_PLACES; i++) {
        struct probed_place *p = &probes.place[probes.next++ % PROBE_PLACES];

        if (*p->hash && p->verdict == ZR_S3_UNKNOWN)
            continue;
        *p = (struct probed_place){.verdict = ZR_S3_UNKNOWN};
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
    const void *tag;     /* in a scope of it */
    uint64_t generation; /* of forks */
    const char *seen;    /* what speaks against the server */
    char key[sizeof ZR_S3_PROBE_NAME + 32];
    char etag[ZR_HTTP_ETAG_ROOM]; /* of the key's value; "": unknown */
    bool is_there, has_warned;
};

static bool probe_is_ended(const struct probe *p)
{
    return zr_has_forked(p->generation) || zr_is_cancelled(p->cancel) ||
           zr_net_scope_is_cancelled(p->s->reader.net, p->tag);
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

/* One PUT under a condition that is right or wrong. A `clean` may have erased the key,
 * and the answer to a first try may be lost. So DOUBTFUL: a new key may show another
 * verdict.
 */
static zarr_status probe_put(struct probe *p, const char *condition, bool is_right,
                             enum zr_s3_verdict *out, zarr_error *err)
{
    struct zr_s3_request r;
    zarr_status st = probe_send(p, "PUT", condition, &r, err);
    const uint32_t status = r.net.answer.status;
    const bool is_done = status / 100 == 2,
               has_key = strstr(condition, "If-Match") != NULL;

    p->seen = !is_done  ? status == 412 ? "it refuses a PUT whose If-Match is right"
                                        : "it has no answer to a condition but HTTP 404, "
                                          "409 or 501"
              : has_key ? "it replaces a value although If-Match has another ETag"
                        : "it replaces a value although If-None-Match is *";
    if (st == ZARR_OK && is_done)
        *out = is_right ? ZR_S3_KEEPS : has_key ? ZR_S3_IGNORES : ZR_S3_DOUBTFUL;
    else if (st == ZARR_OK && status == 412)
        *out = is_right ? ZR_S3_DOUBTFUL : ZR_S3_KEEPS;
    else if (st == ZARR_OK && (status == 409 || zr_streq(r.fault.code, "NoSuchKey")))
        *out = ZR_S3_DOUBTFUL;
    else if (st == ZARR_OK && (status == 501 || zr_streq(r.fault.code, "NotImplemented")))
        *out = ZR_S3_IGNORES;
    else if (st == ZARR_OK)
        st = zr_s3_request_fail(&r, err);
    zr_s3_request_deinit(&r);
    return st;
}

static zarr_status probe_all(struct probe *p, enum zr_s3_verdict *out, zarr_error *err)
{
    char right[sizeof "If-Match: " + ZR_HTTP_ETAG_ROOM];

    *out = ZR_S3_IGNORES;
    p->seen = "it tells no ETag that a condition may have";
    if (!*p->etag)
        return ZARR_OK;
    snprintf(right, sizeof right, "If-Match: %s", p->etag);
    ZR_CHECK(probe_put(p, "If-Match: " PROBE_WRONG_ETAG, false, out, err));
    if (*out == ZR_S3_KEEPS)
        ZR_CHECK(probe_put(p, "If-None-Match: *", false, out, err));
    if (*out == ZR_S3_KEEPS)
        ZR_CHECK(probe_put(p, right, true, out, err));
    return ZARR_OK;
}

/* Whether the server keeps conditions when it joins parts. */
static zarr_status probe_uploads(struct probe *p, enum zr_s3_verdict *out,
                                 zarr_error *err)
{
    const struct zr_s3_trial trial = {p->key, p->etag, p->cancel, p->tag};

    if (probe_is_ended(p))
        return zr_fail(err, ZARR_ERR_CANCELLED, "cancelled");
    p->seen =
        "it refuses such conditions, or joins the parts although one of them is false";
    return zr_s3_try_upload(p->s, &trial, out, err);
}

/* A request without a condition. */
static zarr_status probe_plain(struct probe *p, const char *method, zarr_error *err)
{
    struct zr_s3_request r;
    zarr_status st = probe_send(p, method, NULL, &r, err);

    if (st == ZARR_OK && !zr_s3_has_succeeded(&r))
        st = zr_s3_request_fail(&r, err);
    zr_s3_request_deinit(&r);
    return st;
}

static void probe_erase(struct probe *p)
{
    zarr_error why = {0};

    if (probe_plain(p, "DELETE", &why) != ZARR_ERR_DENIED || p->has_warned)
        return;
    p->has_warned = true;
    zr_log(&p->s->reader.env.log, ZARR_LOG_WARN,
           "the key of a probe stays, and each process may leave some%s: %s",
           p->of_uploads ? "" : ". The option conditional=etag sends no such probe",
           why.message);
}

static zarr_status probe_run(struct probe *p, enum zr_s3_verdict *out, zarr_error *err)
{
    zarr_status st;

    p->is_there = false;
    *p->etag = '\0';
    snprintf(p->key, sizeof p->key, ZR_S3_PROBE_NAME "%016" PRIx64 "%016" PRIx64,
             zr_random_u64(), zr_random_u64());
    st = probe_plain(p, "PUT", err);
    if (st == ZARR_OK)
        st = (p->of_uploads ? probe_uploads : probe_all)(p, out, err);
    if (p->is_there && st != ZARR_ERR_CANCELLED)
        probe_erase(p);
    return st == ZARR_OK || st == ZARR_ERR_CANCELLED
               ? st
               : zr_prefix(err, st,
                           "cannot find out whether the server keeps conditions (option "
                           "conditional)");
}

/* ---- asking ---- */

/* Runs probes without the lock. */
static zarr_status learn_locked(struct probe *p, struct probed_place *place,
                                zarr_error *err)
{
    enum zr_s3_verdict verdict = ZR_S3_DOUBTFUL;
    zarr_status st = ZARR_OK;

    zr_mutex_unlock(&probes.mutex);
    zr_block_begin();
    for (int i = 0; i < PROBE_KEYS && st == ZARR_OK && verdict == ZR_S3_DOUBTFUL; i++)
        st = probe_run(p, &verdict, err);
    zr_block_end();
    zr_mutex_lock(&probes.mutex);
    if (zr_has_forked(p->generation)) /* the entry may have another owner */
        return zr_fail(err, ZARR_ERR_CANCELLED, "the process was forked");
    place->verdict = verdict;
    place->seen = p->seen;
    place->until_ns = zr_now_ns() + atomic_load(&zr_s3_doubt_ns);
    if (st != ZARR_OK)
        *place->hash = '\0';
    zr_cond_broadcast(&probes.changed);
    return st;
}

/* Copies what is known of the place, after a probe if need be. */
static zarr_status ask_locked(struct probe *p, const char *hash, struct probed_place *out,
                              zarr_error *err)
{
    struct probed_place *place;
    zarr_status st = ZARR_OK;

    while (st == ZARR_OK) {
        place = find_place_locked(hash);
        if (place && place->verdict != ZR_S3_UNKNOWN && !has_expired(place)) {
            *out = *place;
            return ZARR_OK;
        }
        if (zr_attempt_runs())
            return zr_attempt_fail(err);
        if (place && place->verdict != ZR_S3_UNKNOWN)
            *place->hash = '\0';
        else if (!place && (place = add_place_locked(hash))) {
            st = learn_locked(p, place, err);
            *out = *place;
            return st;
        } else {
            zr_block_begin(); /* another thread finds out */
            (void)zr_cond_wait_until(&probes.changed, &probes.mutex,
                                     zr_now_ns() + 50000000);
            zr_block_end();
            if (probe_is_ended(p))
                st = zr_fail(err, ZARR_ERR_CANCELLED, "cancelled");
        }
    }
    return st;
}

static zarr_status refuse_condition(const struct zr_s3_store *s,
                                    const struct probed_place *place, bool of_uploads,
                                    zarr_error *err)
{
    const char *const what = of_uploads ? "values in parts" : "writes";
    const char *const advice =
        of_uploads ? "With more memory (--mem), a value of up to 5 GiB is written at once"
                   : "The option conditional=none permits it where there is only one "
                     "writer";

    if (s->is_unconditional)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "the option conditional=none rules out conditions of writes");
    if (place->verdict == ZR_S3_DOUBTFUL)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "%d probes did not show whether the server keeps conditions of "
                       "%s: %s. %s%s",
                       PROBE_KEYS, what, place->seen, advice,
                       of_uploads ? ""
                                  : ", and conditional=etag where the server is known to "
                                    "keep them");
    return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                   "a probe showed that the server ignores conditions of %s: %s. So "
                   "writers at the same time would lose changes. %s",
                   what, place->seen, advice);
}

zarr_status zr_s3_conditions_check(struct zr_s3_store *s, const zarr_store_op *op,
                                   bool of_uploads, const void *tag, zarr_error *err)
{
    atomic_bool *const keeps = of_uploads ? &s->keeps_uploads : &s->keeps_writes;
    struct probe p = {.s = s,
                      .of_uploads = of_uploads,
                      .cancel = op->cancel,
                      .tag = tag,
                      .generation = zr_fork_generation()};
    struct probed_place place = {.verdict = ZR_S3_UNKNOWN};
    char hash[ZR_S3_HASH_ROOM];
    zarr_status st = ZARR_OK;

    if (!(op->flags & ZARR_STORE_OP_IF_VERSION) || s->keeps_erase)
        return ZARR_OK;
    if (op->verb == ZARR_STORE_ERASE)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                       "the server is not known to keep conditions of deletes");
    if (atomic_load(keeps))
        return ZARR_OK;
    if (!s->is_unconditional) {
        zr_call_once(&probes.once, probes_setup);
        ZR_TRY(hash_place(hash, s, of_uploads, err));
        zr_mutex_lock(&probes.mutex);
        st = ask_locked(&p, hash, &place, err);
        zr_mutex_unlock(&probes.mutex);
    }
    if (st == ZARR_OK && place.verdict != ZR_S3_KEEPS)
        st = refuse_condition(s, &place, of_uploads, err);
    else if (st == ZARR_OK)
        atomic_store(keeps, true);
out:
    return st;
}
