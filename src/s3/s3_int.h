/*
 * s3/s3_int.h - what the files of this room share: signatures, credentials, and the
 * store.
 */
#ifndef ZR_S3_INT_H
#define ZR_S3_INT_H

#include <stdatomic.h>

#include "http/http.h"
#include "s3/s3.h"

/* ---- credentials: one set ------------------------------------------------------- */

/* Frozen; wiped with the last reference. */
struct zr_s3_key {
    const zarr_allocator *alloc;
    atomic_uint refs;
    char *id, *secret;
    char *token;       /* of a session; NULL: none */
    int64_t expires_s; /* since 1970; 0: never */
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
    int64_t next_try_s; /* no refresh before, while the key is valid */
    uint64_t n_failures;
    zarr_status st; /* of the last failure */
    zarr_error err;
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
/* The server says that the key has expired. */
void zr_s3_keys_expire(struct zr_s3_keys *k);

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
    atomic_uint keeps;                 /* ZR_S3_KEEPS_* */
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
zarr_status zr_s3_add_headers(void *reader, const struct zr_net_request *r,
                              struct zr_str *lines, zarr_error *err);
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
 * after a correction of the region or of the clock.
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
    bool is_repeatable;  /* may be carried out twice */
    bool repeats_409;    /* it has no condition, so this answer passes */
    bool makes_object;   /* so it has the headers of new objects, as a storage class */
    bool needs_checksum; /* of the body, even without the option `checksums` */
    uint64_t max_bytes;  /* of the body of a 2xx answer, else LIMIT; 0: no limit */
    const zarr_cancel *cancel;
    const void *tag;
    /* OK: there is an answer of any status; zr_s3_request_fail() makes a failure of it.
     * It runs on a reactor. The request may be freed or sent again here, after
     * zr_s3_request_deinit(). */
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
    char hash[ZR_S3_HASH_ROOM], checksum[ZR_S3_CHECKSUM_ROOM];
};
/* Starts a request. The caller has called zr_s3_keys_renew(). */
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

/* What is known of a server. */
enum {
    ZR_S3_KEEPS_KNOWN = 1,
    ZR_S3_KEEPS_PUT = 2,  /* it keeps conditions of PUT */
    ZR_S3_KEEPS_ERASE = 4 /* and of DELETE */
};
/* How the name of a key begins that a probe writes, below the store's prefix. */
#define ZR_S3_PROBE_NAME ".zarrc-probe-"
/* Sets s->keeps to what the process knows of the bucket. */
void zr_s3_conditions_recall(struct zr_s3_store *s);
/* Finds out, unless another thread does or did, and sets s->keeps. Waits: not on a
 * reactor. op: the write that needs to know it; tag: for zr_s3_conditions_cancel(). */
zarr_status zr_s3_conditions_learn(struct zr_s3_store *s, const zarr_store_op *op,
                                   const void *tag, zarr_error *err);
/* The probes of operations with this tag send nothing more. */
void zr_s3_conditions_cancel(const void *tag);

/* Does a PUT or ERASE. */
void zr_s3_write(struct zr_s3_store *s, zarr_store_op *op,
                 void (*done)(void *arg, zarr_store_op *op, const zarr_error *err),
                 void *arg);

zarr_status zr_s3_list(void *self, const char *prefix, uint32_t how,
                       zarr_store_list_fn fn, void *user, const zarr_cancel *cancel,
                       zarr_error *err);
/* Erases what killed processes left: see `clean` in zarr_store_vtable. */
zarr_status zr_s3_clean(void *self, const char *prefix, uint64_t min_age_s,
                        uint64_t *n_removed, const zarr_cancel *cancel, zarr_error *err);

#endif
