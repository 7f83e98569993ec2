/*
 * s3/s3_int.h - what the files of this room share: signatures, credentials, and the
 * store.
 */
#ifndef ZR_S3_INT_H
#define ZR_S3_INT_H

#include <stdatomic.h>
#include <string.h>

#include "http/http.h"
#include "s3/s3.h"
#include "sched/sched.h"

/* ---- credentials: one set ------------------------------------------------------- */

/* Frozen; wiped with the last reference. */
struct zr_s3_key {
    const zarr_allocator *alloc;
    atomic_uint refs;
    char *id, *secret;
    char *token;       /* of a session; NULL: none */
    int64_t expires_s; /* since 1970; 0: never */
    uint64_t number;   /* of those that the store has fetched, from 1 on */
};
/* Copies the texts; token NULL or "": none. INVALID: one cannot be in a header. */
zarr_status zr_s3_key_create(struct zr_s3_key **out, const zarr_allocator *alloc,
                             const char *id, const char *secret, const char *token,
                             int64_t expires_s, zarr_error *err);
void zr_s3_key_free(struct zr_s3_key *key); /* a reference; NULL is allowed */
/* Makes room for n more bytes: a text that grows later leaves copies of its secrets. */
void zr_s3_text_reserve(struct zr_str *s, size_t n);
void zr_s3_text_wipe(struct zr_str *s); /* and frees it */

/* ---- signatures: pure functions ---------------------------------------------------- */

enum {
    ZR_S3_TIME_ROOM = sizeof "20130524T000000Z",
    ZR_S3_HASH_ROOM = 2 * ZR_SHA256_BYTES + 1,
    /* "x-amz-checksum-sha256: ", and base64 */
    ZR_S3_CHECKSUM_ROOM = 24 + 4 * ((ZR_SHA256_BYTES + 2) / 3) + 1
};
/* SHA-256 of no bytes, as most requests have. */
#define ZR_S3_EMPTY_HASH                                                                 \
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

struct zr_s3_signing {
    const zarr_allocator *alloc;
    const char *method;
    const struct zr_url *url;
    const char *region, *service;
    const struct zr_s3_key *key;
    int64_t time_s;
    const char *payload_hash; /* of the body, hexadecimal */
    bool sends_payload_hash;  /* S3 demands it */
    const char *const *lines; /* "Name: value" to sign and send; NULL ends; NULL: none */
};
/* Appends the lines that sign a request, each with a NUL. */
zarr_status zr_s3_sign(struct zr_str *lines, const struct zr_s3_signing *s,
                       zarr_error *err);
zarr_status zr_s3_hash(char out[ZR_S3_HASH_ROOM], const void *bytes, size_t n,
                       zarr_error *err);
void zr_s3_put_hash(char out[ZR_S3_HASH_ROOM], const uint8_t in[ZR_SHA256_BYTES]);
/* Appends a text with an escape for all but letters, digits and "-._~". */
void zr_s3_encode(struct zr_str *out, const char *text, bool keeps_slash);
/* "20130524T000000Z" */
void zr_s3_put_time(char out[ZR_S3_TIME_ROOM], int64_t time_s);
/* "2013-05-24T00:00:00Z", also with a fraction, or an offset for the Z */
bool zr_s3_parse_time(const char *text, int64_t *out_s);

/* ---- where credentials come from --------------------------------------------------- */

/* The files ~/.aws/config and ~/.aws/credentials. */
struct zr_s3_profiles {
    struct zr_str config, credentials; /* their texts; "" if one is not there */
    struct zr_str names;               /* of both files, for messages */
};
zarr_status zr_s3_profiles_read(struct zr_s3_profiles *p, const zarr_allocator *alloc,
                                zr_s3_env *variable, zarr_error *err);
void zr_s3_profiles_deinit(struct zr_s3_profiles *p); /* wipes them */
bool zr_s3_profiles_have(const struct zr_s3_profiles *p, const char *profile);
/* Replaces *out, which is owned, by the value of a member of a profile, or by NULL. */
zarr_status zr_s3_profiles_get(char **out, const struct zr_s3_profiles *p,
                               const char *profile, const char *name, zarr_error *err);
/* Reads a file of at most 1 MiB. NOT_FOUND, DENIED, IO, LIMIT, CORRUPT. */
zarr_status zr_s3_read_file(struct zr_str *out, const char *path, zarr_error *err);

enum zr_s3_source {
    ZR_S3_FIXED, /* the key never changes; or there is none */
    ZR_S3_PROCESS,
    ZR_S3_ROLE,         /* STS, with another key */
    ZR_S3_WEB_IDENTITY, /* STS, with the token of a file */
    ZR_S3_CONTAINER,
    ZR_S3_INSTANCE
};

/* What open() has found; the texts are owned, and NULL if they are not told. */
struct zr_s3_origin {
    enum zr_s3_source source;
    char *command;                      /* PROCESS */
    char *role, *session, *external_id; /* ROLE, WEB_IDENTITY */
    char *token_file;                   /* WEB_IDENTITY, CONTAINER */
    char *authorization;                /* CONTAINER: the text itself */
    char *url;                          /* of STS or of the metadata server */
    char *region;                       /* that STS requests are signed for */
    struct zr_s3_key *parent;           /* ROLE: what signs them */
};

struct zr_s3_keys {
    const zarr_allocator *alloc;
    struct zr_log log;
    zarr_limits limits;
    struct zr_net *net; /* for requests of credentials; NULL: none are needed */
    struct zr_s3_origin origin;
    struct zr_str looked; /* where nothing was found, for the message */
    /* under `mutex` */
    zr_mutex mutex;
    zr_cond changed;
    struct zr_fork_hook fork;
    struct zr_s3_key *key; /* NULL: none yet */
    bool is_refreshing, is_stale;
    uint64_t n_fetched;
    int64_t next_try_s; /* no refresh before, while the key is valid */
    uint64_t n_failures;
    zarr_status st; /* of the last failure */
    zarr_error err;
    /* of the renewers, threads that renew the keys of all stores */
    atomic_bool is_asked;
    struct zr_s3_keys *next;
    zarr_cancel cancel;
};

/* What decides where credentials come from. All texts may be NULL. */
struct zr_s3_keys_options {
    const char *id, *secret, *token, *profile;
    bool anonymous, untrusted;
    const char *region; /* of STS */
    zr_s3_env *variable;
    const struct zr_s3_profiles *profiles;
    const struct zr_net_options *net;
};
/* Sends no request. UNSUPPORTED: a profile needs what is not supported. */
zarr_status zr_s3_keys_init(struct zr_s3_keys *k, const struct zr_s3_keys_options *o,
                            const struct zr_store_env *env, zarr_error *err);
void zr_s3_keys_deinit(struct zr_s3_keys *k);
/* Makes sure that there is a key that is valid now: the first caller fetches a new one.
 * Others wait only if the old one has expired. Not on a reactor. */
zarr_status zr_s3_keys_renew(struct zr_s3_keys *k, const zarr_cancel *cancel,
                             zarr_error *err);
/* The key as it is, a reference; NULL: there is none. */
struct zr_s3_key *zr_s3_keys_get(struct zr_s3_keys *k);
/* Lets another thread renew the key if it is due, and does not wait. On a failure nothing
 * is renewed. */
zarr_status zr_s3_keys_ask(struct zr_s3_keys *k, zarr_error *err);
/* Whether there is no valid key before that renewal ends. */
bool zr_s3_keys_are_awaited(struct zr_s3_keys *k);
/* The failure of the last renewal, if there is no valid key. */
zarr_status zr_s3_keys_check(struct zr_s3_keys *k, zarr_error *err);
/* The server says that the key of this number has expired. Returns whether a later
 * request may have another key. */
bool zr_s3_keys_expire(struct zr_s3_keys *k, uint64_t number);

/* Find the origin (origin.c). */
zarr_status zr_s3_origin_find(struct zr_s3_keys *k, const struct zr_s3_keys_options *o,
                              zarr_error *err);
/* Fetch a key from it (fetch.c, process.c). */
zarr_status zr_s3_fetch(struct zr_s3_key **out, struct zr_s3_keys *k,
                        const zarr_cancel *cancel, zarr_error *err);
zarr_status zr_s3_fetch_process(struct zr_str *out, const char *command,
                                const zarr_cancel *cancel, zarr_error *err);

/* ---- the store ------------------------------------------------------------------- */

enum {
    ZR_S3_REGION_ROOM = 64,
    ZR_S3_LINES_MOST = 16,   /* of x-amz-* that a store signs, besides its own */
    ZR_S3_OWN_LINES_MOST = 8 /* of one request, besides those */
};
/* Where the bucket is, as known at a time. Frozen. */
struct zr_s3_place {
    char region[ZR_S3_REGION_ROOM];
    struct zr_url root;   /* of the store's keys */
    struct zr_url bucket; /* for listings */
};

struct zr_s3_store {
    struct zr_http_reader reader; /* first */
    struct zr_url url;            /* s3://bucket/prefix */
    struct zr_str prefix;   /* of all keys, decoded, "" or with a slash at the end */
    struct zr_url endpoint; /* no text: AWS */
    bool is_path_style, requester_pays, denied_is_missing, allow_http;
    bool is_anonymous;
    bool checksums;                    /* of the body of each request that has one */
    bool is_unconditional;             /* the option conditional=none */
    bool keeps_erase;                  /* keeps conditions of DELETE: no probe tells */
    atomic_bool keeps_writes;          /* is known to keep those of PUT */
    atomic_bool keeps_uploads;         /* and of the completion of uploads */
    atomic_bool no_batches;            /* the service has no DeleteObjects */
    char *lines[ZR_S3_LINES_MOST + 1]; /* "x-amz-NAME: value", owned; NULL ends */
    size_t n_lines;
    zr_mutex mutex; /* of corrections */
    struct zr_fork_hook fork;
    struct zr_s3_place place[2]; /* as configured, and as the service corrected it */
    atomic_uint at;              /* the one that counts */
    atomic_int_fast64_t skew_s;  /* of the server's clock */
    struct zr_s3_keys keys;
};

/* Makes the place of a region. */
zarr_status zr_s3_place_init(struct zr_s3_place *out, const struct zr_s3_store *s,
                             const char *region, zarr_error *err);
void zr_s3_place_deinit(struct zr_s3_place *p);
const struct zr_s3_place *zr_s3_place_get(const struct zr_s3_store *s);
bool zr_s3_is_loopback(const char *host); /* of a URL: an address, or localhost */
/* The region that the host of a request belongs to. */
const char *zr_s3_place_region(const struct zr_s3_store *s, const char *host);
/* Returns whether the place is now that of the region, which a server told. */
bool zr_s3_place_correct(struct zr_s3_store *s, const char *region);

/* Functions of struct zr_http_protocol. */
void zr_s3_put_url(const struct zr_http_reader *reader, struct zr_str *out,
                   const char *key);
zarr_status zr_s3_add_headers(void *reader, struct zr_net_request *r,
                              struct zr_str *lines, zarr_error *err);
bool zr_s3_must_wait(void *reader);
zarr_status zr_s3_refuse(struct zr_http_reader *reader, const struct zr_net_request *r,
                         const char *body, size_t body_bytes, enum zr_http_next *next,
                         zarr_error *err);

/* What the service says in an error. */
enum {
    ZR_S3_CODE_ROOM = 64
};
struct zr_s3_fault { /* "": not told */
    char code[ZR_S3_CODE_ROOM], request[ZR_S3_CODE_ROOM], region[ZR_S3_CODE_ROOM];
};
/* Reads the body of an error, and what the header tells of it. */
void zr_s3_fault_read(struct zr_s3_fault *f, const zarr_allocator *alloc,
                      const struct zr_net_request *r, const char *body, size_t n);
/* Whether the service says that the key has expired, and another one may come. */
bool zr_s3_needs_key(struct zr_s3_store *s, const struct zr_net_request *r,
                     const struct zr_s3_fault *f);
/* Whether the request may succeed when it is sent again: corrects the region or the
 * clock. */
bool zr_s3_can_correct(struct zr_s3_store *s, const struct zr_net_request *r,
                       const struct zr_s3_fault *f);
/* What an answer means to a request of credentials. */
zarr_status zr_s3_fail_answer(const zarr_allocator *alloc, const struct zr_net_request *r,
                              const char *body, size_t body_bytes, zarr_error *err);

/* ---- requests that read no value -------------------------------------------------- */

/*
 * One signed request. The caller zeroes it, sets the first members, and keeps it and all
 * that it borrows in place until done(). It is sent again by itself as net.h says, and
 * after a correction of the region, the clock or an expired key.
 */
struct zr_s3_request {
    struct zr_net_request net; /* first; of request.c. After done(): its `answer` */
    struct zr_s3_store *store;
    const char *method;
    const char *key;          /* below the store's prefix; NULL: the bucket itself */
    const char *query;        /* encoded; NULL: none */
    const char *const *lines; /* "Name: value" to sign and send; NULL at the end; NULL:
                                 none. At most ZR_S3_OWN_LINES_MOST */
    const void *body;
    size_t body_bytes;
    const uint8_t *body_hash; /* SHA-256 of a body; NULL: zr_s3_send() computes it */
    bool is_repeatable;       /* may be carried out twice */
    bool repeats_409;         /* it has no condition, so this answer passes */
    bool makes_object;    /* so it has the headers of new objects, as a storage class */
    bool needs_checksum;  /* of the body, even without the option `checksums` */
    bool is_long;         /* the service may work in silence */
    bool is_short;        /* an abort: ends after 3 s, and waits for no key */
    bool has_no_checksum; /* even with it: the service would take it for another one */
    uint64_t max_bytes;   /* of the body of a 2xx answer, else LIMIT; 0:
                             ZR_S3_ANSWER_MOST */
    const zarr_cancel *cancel;
    const void *tag;
    /* OK: there is an answer of any status; zr_s3_request_fail() makes a failure of it.
     * It runs on a reactor, or inside of zr_s3_send(). The request may be freed or sent
     * again here, after zr_s3_request_deinit(). */
    void (*done)(struct zr_s3_request *r, zarr_status st, const zarr_error *err);
    void *user;

    /* Complete in done(). */
    struct zr_str answer;     /* the body of an answer; of an error its beginning */
    struct zr_s3_fault fault; /* what an answer that is no success says */
    uint32_t n_sent;          /* how often: more than once, and an earlier one may have
                                 been carried out */

    /* of request.c */
    struct zr_str url;
    uint32_t n_again;
    bool was_renewed;
    char hash[ZR_S3_HASH_ROOM], checksum[ZR_S3_CHECKSUM_ROOM];
};
enum {
    ZR_S3_LATE_BYTES = 64 << 10 /* the longest body of a PUT that a reactor hashes */
};
/* Starts a request, after the renewal of a key that is due. Hashes the body. */
void zr_s3_send(struct zr_s3_request *r);
/* Does a request before it returns, with keys that are renewed if need be; uses r->done
 * and r->user itself. Not on a reactor. */
zarr_status zr_s3_call(struct zr_s3_request *r, zarr_error *err);
/* Frees what was made for a request that has ended. Zeroed storage is allowed. */
void zr_s3_request_deinit(struct zr_s3_request *r);
/* The failure that an answer is if it is no success; never OK, NOT_FOUND or CONFLICT. The
 * text names URL, verb, status, the service's code and request, and what to do. */
zarr_status zr_s3_request_fail(const struct zr_s3_request *r, zarr_error *err);

/* ---- conditions of writes --------------------------------------------------------- */

/* How the name of a key begins that a probe writes, below the store's prefix. */
#define ZR_S3_PROBE_NAME ".zarrc-probe-"
/* Whether the operation has no condition, or the server keeps it, which a probe finds out
 * unless another thread does or did. of_uploads: of the completion of an upload. Waits:
 * not on a reactor. tag: that of a scope of the thread. UNSUPPORTED: it does not. */
zarr_status zr_s3_conditions_check(struct zr_s3_store *s, const zarr_store_op *op,
                                   bool of_uploads, const void *tag, zarr_error *err);
extern atomic_uint_fast64_t zr_s3_doubt_ns; /* until a doubtful verdict is left */

/* INVALID: the library keeps keys of this name for itself. */
zarr_status zr_s3_check_key(const char *key, zarr_error *err);

typedef void zr_s3_done_fn(void *arg, zarr_store_op *op, const zarr_error *err);
/* Ends an operation, whose store may be gone afterwards. Names its key in a failure. */
void zr_s3_op_end(zarr_store_op *op, zarr_status st, zarr_error *err, zr_s3_done_fn *done,
                  void *arg);
/* Does a PUT or ERASE. */
void zr_s3_write(struct zr_s3_store *s, zarr_store_op *op, zr_s3_done_fn *done,
                 void *arg);

zarr_status zr_s3_list(void *self, const char *prefix, uint32_t how,
                       zarr_store_list_fn fn, void *user, const zarr_cancel *cancel,
                       zarr_error *err);
/* Erases what killed processes left: see `clean` in zarr_store_vtable. */
zarr_status zr_s3_clean(void *self, const char *prefix, uint64_t min_age_s,
                        uint64_t *n_removed, const zarr_cancel *cancel, zarr_error *err);

/* ---- large values, and many keys at once ------------------------------------------ */

enum {
    /* a PUT of more bytes goes up in parts */
    ZR_S3_PUT_MOST = 64 << 20
};
/* Does a PUT in parts, whose memory is not empty. Hashes them first. */
void zr_s3_put_large(struct zr_s3_store *s, zarr_store_op *op, zr_s3_done_fn *done,
                     void *arg);
void zr_s3_put_part(struct zr_s3_store *s, zarr_store_op *op, zr_s3_done_fn *done,
                    void *arg);
/* A PUT of the parts of begin_parts(). */
void zr_s3_commit(struct zr_s3_store *s, zarr_store_op *op, zr_s3_done_fn *done,
                  void *arg);
/* UNSUPPORTED: it has a condition, or the source is one of another service, or the
 * service cannot copy it. */
void zr_s3_copy(struct zr_s3_store *s, zarr_store_op *op, zr_s3_done_fn *done, void *arg);
/* Erases the first of n keys, together with those after it that can go with it. Returns
 * how many they are. */
uint64_t zr_s3_erase_many(struct zr_s3_store *s, zarr_store_op **ops, uint64_t n,
                          zr_s3_done_fn *done, void *arg);

/* What a probe shows of conditions. */
enum zr_s3_verdict {
    ZR_S3_UNKNOWN,
    ZR_S3_IGNORES,
    ZR_S3_DOUBTFUL, /* the key may have been erased, or a right request done twice */
    ZR_S3_KEEPS
};
/* A key that a probe has written, and the ETag of its value. */
struct zr_s3_trial {
    const char *key, *etag;
    const zarr_cancel *cancel;
    const void *tag;
};
/* Whether the service joins parts to a key only under the right condition. Waits. */
zarr_status zr_s3_try_upload(struct zr_s3_store *s, const struct zr_s3_trial *trial,
                             enum zr_s3_verdict *out, zarr_error *err);

/* Functions of the store. */
zarr_status zr_s3_begin_parts(void *self, const char *key, void *lock,
                              const zarr_cancel *cancel, void **parts, zarr_error *err);
void zr_s3_end_parts(void *self, const char *key, void *parts);

/* Aborts uploads below a prefix that began min_age_s ago or before. Adds their number. */
zarr_status zr_s3_clean_uploads(struct zr_s3_store *s, const char *prefix,
                                uint64_t min_age_s, uint64_t *n_removed,
                                const zarr_cancel *cancel, zarr_error *err);
/* Lists them as "KEY?uploadId=ID", with their age. */
zarr_status zr_s3_list_uploads(struct zr_s3_store *s, const char *prefix,
                               zarr_store_list_fn fn, void *user,
                               const zarr_cancel *cancel, zarr_error *err);
/* Appends a key of a listing, with its escapes if it is_escaped: '+' is a blank. False:
 * an escape is malformed. */
bool zr_s3_decode_key(struct zr_str *out, const char *text, bool is_escaped);

/* ---- what the files of large values share ----------------------------------------- */

#define ZR_S3_PART_BYTES (UINT64_C(8) << 20) /* of a part that is not the last one */
#define ZR_S3_PART_MOST  (UINT64_C(5) << 30) /* of a part, a PUT or a copy */
enum {
    ZR_S3_PARTS_MOST = 10000,
    ZR_S3_ANSWER_MOST = 1 << 20 /* bytes of an answer */
};

/* ---- what tells one write from another ---- */

#define ZR_S3_WRITE_ID "x-amz-meta-zarrc-write"
enum {
    ZR_S3_WRITE_DIGITS = 32,
    ZR_S3_CONDITION_ROOM = sizeof "If-None-Match: " + ZR_HTTP_ETAG_ROOM
};
struct zr_s3_write_id {
    char text[ZR_S3_WRITE_DIGITS + 1];
    char line[sizeof ZR_S3_WRITE_ID ": " + ZR_S3_WRITE_DIGITS];
};
void zr_s3_write_id_make(struct zr_s3_write_id *id);
/* Whether the object of an answer is of this write. */
bool zr_s3_write_id_fits(const struct zr_s3_write_id *id, const struct zr_net_answer *a);
/* The line of a write that expects a version. UNSUPPORTED: its ETag is not known. */
zarr_status zr_s3_put_condition(char out[ZR_S3_CONDITION_ROOM],
                                const zarr_store_version *expected, zarr_error *err);
/* Makes a version of an ETag in a body, which some services tell without its quotes. */
void zr_s3_make_version(zarr_store_version *out, const char *etag);

/* ---- uploads ---- */

/* What a completion tells of a part. */
struct zr_s3_part_tags {
    char checksum[ZR_S3_CHECKSUM_ROOM]; /* base64; "": none */
    char etag[];
};

/* The upload of one value. Its requests, except those of parts, come one after another.
 */
struct zr_s3_upload {
    struct zr_s3_request request; /* first */
    struct zr_s3_store *store;
    uint64_t generation; /* of forks */
    struct zr_str query; /* "uploadId=ID"; "": not begun */
    struct zr_str body;  /* of the completion */
    struct zr_s3_write_id id;
    zr_mutex mutex;           /* of the list */
    struct zr_part_list list; /* the value of a part is struct zr_s3_part_tags, owned */
    atomic_bool was_cancelled;
    bool is_committed;
    bool is_doubtful; /* an earlier completion may have been carried out */
    bool can_repeat;  /* the service says that a repetition may succeed */
    uint32_t n_again;
    bool is_conditional;
    bool has_checksums; /* of its parts */
    char condition[ZR_S3_CONDITION_ROOM];
    const char *lines[3];
    zarr_store_version version; /* of the value */
    zarr_status st;             /* of a completion whose outcome is asked for */
    zarr_error err;
    /* of the call that runs */
    const zarr_cancel *cancel;
    const void *tag;
    void (*ended)(struct zr_s3_upload *u, zarr_status st, zarr_error *err);
    void *user;
    zarr_store_op *op; /* of a commit */
    zr_s3_done_fn *done;
    void *arg;
    char key[];
};
zarr_status zr_s3_upload_make(struct zr_s3_upload **out, struct zr_s3_store *s,
                              const char *key, zarr_error *err);
void zr_s3_upload_free(struct zr_s3_upload *u); /* NULL is allowed; sends nothing */
/* Each starts a request. The caller sets `cancel`, `tag` and `ended`, which is called
 * once, and may free the upload. */
void zr_s3_upload_begin(struct zr_s3_upload *u);
/* Does the first of them before it returns. Not on a reactor. */
zarr_status zr_s3_upload_begin_now(struct zr_s3_upload *u, zarr_error *err);
/* expected: NULL, or the version that the key must have. */
void zr_s3_upload_complete(struct zr_s3_upload *u, const zarr_store_version *expected);
void zr_s3_upload_abort(struct zr_s3_upload *u);

/* One part on its way. The caller zeroes it, sets the first members after `request`, and
 * frees it by zr_s3_part_free() in `ended`. */
struct zr_s3_part {
    struct zr_s3_request request; /* first */
    struct zr_s3_upload *upload;
    uint64_t number, offset, bytes;
    const void *body;               /* NULL: the part is copied */
    const uint8_t *hash;            /* SHA-256 of the body; NULL: it is computed */
    const char *source, *source_is; /* lines of a copy: its source, and the condition */
    const zarr_cancel *cancel;
    const void *tag;
    void (*ended)(struct zr_s3_part *p, zarr_status st, zarr_error *err);
    void *user;
    zarr_store_op *op; /* of a PUT_PART */
    zr_s3_done_fn *done;
    /* of upload.c */
    struct zr_str query;
    const char *lines[4];
    char range[64];
    uint32_t n_again;
};
void zr_s3_part_send(struct zr_s3_part *p);
void zr_s3_part_free(struct zr_s3_part *p);

bool zr_s3_has_succeeded(const struct zr_s3_request *r); /* a 2xx */
/* Whether an answer with this code says that the service has no such copies. */
bool zr_s3_cannot_copy(const struct zr_s3_request *r, const char *code);
/* What the body of an answer has: the name of the root, and some texts in it. */
struct zr_s3_result {
    int depth;
    bool is_root;               /* it has the expected root */
    char code[ZR_S3_CODE_ROOM]; /* of a root <Error>; "": it is none */
    struct zr_str id, etag;
};
void zr_s3_result_deinit(struct zr_s3_result *out);
/* CORRUPT: it is malformed, or has neither root. */
zarr_status zr_s3_result_read(struct zr_s3_result *out, const struct zr_s3_request *r,
                              const char *root, zarr_error *err);
/* The name of an element, without its namespace. */
static inline const char *zr_s3_local_name(const char *name)
{
    const char *const blank = strrchr(name, ' ');

    return blank ? blank + 1 : name;
}
/* Appends a text of XML. */
void zr_s3_put_xml(struct zr_str *out, const char *text);
/* Whether a body says that another writer was faster. */
bool zr_s3_is_conflict(const char *code);

#endif
