/*
 * net/net.h - the door to the network: HTTP requests, many at once, by libcurl's multi
 * interface. Stores of services use it; it knows of no store. libcurl is loaded by the
 * first zr_net_open() of the process.
 *
 * A few threads of the process (reactors) carry out all requests of all clients. They
 * only move bytes: sinks and done() run on them, so these copy, count and wake others,
 * and never decode or wait.
 *
 * What the engine does by itself:
 * - It repeats requests that are safe to repeat (GET, HEAD, PROPFIND, and what has
 *   ZR_NET_REPEATABLE) after lost connections, stalls, and the answers 408, 429, 500,
 *   502, 503 and 504, with exponential back-off and full jitter. It obeys Retry-After up
 *   to 300 s for a request in all.
 * - It follows redirects of GET, HEAD and PROPFIND (unless a request has
 *   ZR_NET_NO_REDIRECT): at most 5, to http and https only, never from https to http.
 * Credentials and secret headers go to the first origin only.
 * - It limits the requests of each host that run at once, and adapts the limit. The
 *   process as a whole has half of the descriptors that it may open; when they are taken,
 *   hosts take turns.
 * - Its receive buffers have at most 32 MiB, and 16 KiB for each further request.
 * - It checks an answer before its body goes to the sink: the size of its header, a
 *   Content-Encoding, and whether a Content-Range is the range that was asked for.
 *
 * An answer with any status is a success here: the caller looks at answer.status. Error
 * texts name URLs as zr_url_put_shown() does, and have no header's value.
 *
 * In a forked child a request of the parent does not exist: its done() is never called
 * there. Clients go on. When the process exits, requests end with CANCELLED.
 *
 * Thread class: shared, but a request is solo.
 */
#ifndef ZR_NET_H
#define ZR_NET_H

#include "base/base.h"
#include "net/crypto.h"
#include "net/xml.h"

/* ---- answers ------------------------------------------------------------------ */

/* What the header of an answer says. The texts stay valid until the request ends. */
struct zr_net_answer {
    uint32_t status;      /* 200, 404, ...; 0: there is no answer */
    bool is_range;        /* a 206 with a valid Content-Range */
    bool is_chunked;      /* the body has an end of its own */
    bool is_etag_weak;    /* W/"..." or malformed: it does not pin the bytes */
    uint64_t length;      /* of this body, by Content-Length; UINT64_MAX: not told */
    uint64_t range_first; /* is_range: the first byte of the object that it has, */
    uint64_t range_bytes; /* and how many. The body has this length */
    uint64_t total;       /* length of the object: of a 206 or 416 from Content-Range, of
                             a 200 `length`; UINT64_MAX: not told */
    const char *etag;     /* with its quotes, and W/ if it is weak; NULL: none */
    uint64_t retry_after_s; /* UINT64_MAX: none */
    int64_t date_s;         /* the server's clock, since 1970; 0: not told */
    uint64_t body_bytes;    /* that were received */
    uint64_t wait_ns;       /* from the request to the first byte of this answer */
    struct zr_str lines;    /* "Name: value", each with a NUL; zr_net_answer_header() */
};
/* The value of the first header of this name (any case), without blanks around it. NULL:
 * there is none. */
const char *zr_net_answer_header(const struct zr_net_answer *a, const char *name);

/* ---- requests ------------------------------------------------------------------ */

/* Where the body of a 2xx answer goes, straight from the receive buffer. Both run on a
 * reactor, which a fork waits for: they take no lock that anyone holds for long. A
 * failure ends the request with its status and text. */
struct zr_net_sink {
    /* The header has come, and a body may follow. It is called again for each repetition:
     * what the body before wrote is void then. NULL: every answer is right. */
    zarr_status (*begin)(void *user, const struct zr_net_answer *a, zarr_error *err);
    /* The next bytes of the body, in order. NULL: they are dropped. */
    zarr_status (*write)(void *user, const void *bytes, size_t n, zarr_error *err);
    void *user;
};
/* A sink for an answer that has exactly the range of the request, or all of the object.
 * It holds at most `cap` bytes, and a longer body ends the request with IO. */
struct zr_net_buffer {
    uint8_t *bytes; /* borrowed */
    size_t cap, n;  /* n: how many came */
};
void zr_net_buffer_sink(struct zr_net_sink *out, struct zr_net_buffer *buffer);

enum {
    ZR_NET_REPEATABLE = 1,  /* may be sent again, although it changes something */
    ZR_NET_RANGE = 2,       /* asks for range_bytes from range_first on */
    ZR_NET_SUFFIX = 4,      /* asks for the last range_bytes */
    ZR_NET_NO_REDIRECT = 8, /* a redirect is an answer */
    ZR_NET_409_PASSES = 16, /* repeats it after this answer, too, if it is repeatable */
    ZR_NET_IS_LONG = 32,    /* the server may work in silence: for five times stall_s */
    ZR_NET_IS_SHORT = 64    /* ends with CANCELLED 3 s after its submission */
};

struct zr_net;

/* The caller zeroes it, sets the first members, and keeps it and all that it borrows in
 * place until done() is called. All texts are borrowed. */
struct zr_net_request {
    const char *method;                /* "GET", "HEAD", "PUT", ... */
    const char *url;                   /* absolute; zr_url_parse() accepts it */
    uint32_t flags;                    /* ZR_NET_* */
    uint64_t range_first, range_bytes; /* range_bytes > 0 */
    /* "Name: value" each; NULL at the end; NULL: none. Secret ones go to the first origin
     * only. A line with a control character is refused (INVALID). */
    const char *const *headers, *const *secret_headers;
    /* Appends more secret lines, each with a NUL, such as a signature. It is called
     * before each try, on a reactor that a fork waits for: it computes, and does no I/O.
     * NULL: none. */
    zarr_status (*add_headers)(void *header_user, struct zr_net_request *r,
                               struct zr_str *lines, zarr_error *err);
    void *header_user;
    uint64_t key_number; /* add_headers() may note here which key has signed */
    /* Looked at before each try, as add_headers() is. While it returns true, the request
     * waits, and is looked at every 50 ms. NULL: it never waits. */
    bool (*must_wait)(void *header_user);
    const void *body; /* NULL: none */
    size_t body_bytes;
    struct zr_net_sink sink;
    uint64_t max_bytes; /* most bytes of a 2xx body, else LIMIT; 0: no limit */
    /* Receives the beginning of the body of other answers; borrowed; NULL: dropped. */
    struct zr_str *error_body;
    const zarr_cancel *cancel; /* looked at every 50 ms; NULL: none */
    const void *tag;           /* for zr_net_cancel() */
    /* Called once, on a reactor (or inside of zr_net_submit()); err is NULL if st is OK.
     * The request may be freed or sent again here, after zr_net_request_deinit(), which
     * the caller calls now or later. OK: there is an answer, of any status. IO: there is
     * none, or it is wrong. CANCELLED, LIMIT, INVALID, NO_MEMORY; or what the sink
     * returned. */
    void (*done)(struct zr_net_request *r, zarr_status st, const zarr_error *err);
    void *user; /* for the caller */

    /* Complete in done(); zr_net_request_deinit() frees it. */
    struct zr_net_answer answer;
    struct zr_net_transfer *own; /* of the engine */
};

/* Starts a request. All failures arrive in done(). The caller holds no lock that a fork
 * takes (struct zr_fork_hook). */
void zr_net_submit(struct zr_net *net, struct zr_net_request *r);
/* Does a request before it returns; uses r->done and r->user itself. CANCELLED also
 * inside of an attempt (sched/sched.h), and in a child that was forked meanwhile. */
zarr_status zr_net_run(struct zr_net *net, struct zr_net_request *r, zarr_error *err);
/* Frees what the engine made for a request that has ended, and its answer. Zeroed storage
 * is allowed. */
void zr_net_request_deinit(struct zr_net_request *r);
/* Whether the calling thread is a reactor, which must not wait for a request. */
bool zr_net_is_reactor(void);
/* Ends all requests of this client that have the tag, soon, with CANCELLED. They may have
 * ended already. One whose done() runs now may submit another one with the tag: it ends,
 * too, as does one that is submitted in a scope of the tag. Wakes the reactors. */
void zr_net_cancel(struct zr_net *net, const void *tag);

/* A time in which a thread submits requests of one tag, and may wait before it does: a
 * cancel of the tag is not lost meanwhile. The caller keeps the struct in place from
 * begin to end; between them no other operation has this tag. Thread class: solo. */
struct zr_net_scope {
    struct zr_net_scope *next; /* all members: of the engine */
    const struct zr_net *net;
    const void *tag, *thread;
    bool is_cancelled;
};
void zr_net_scope_begin(struct zr_net_scope *s, const struct zr_net *net,
                        const void *tag);
/* `from` ends, and goes on as `to` in the calling thread. */
void zr_net_scope_move(struct zr_net_scope *to, struct zr_net_scope *from);
void zr_net_scope_end(struct zr_net_scope *s);
/* Whether the tag was cancelled in a scope of the calling thread. */
bool zr_net_scope_is_cancelled(const struct zr_net *net, const void *tag);
/* How often a request was sent, in its done(). After more than once an earlier try may
 * have been carried out, although its answer was lost or a failure. */
uint32_t zr_net_count_tries(const struct zr_net_request *r);
/* The failure that an answer is if the caller has no use for its status; never OK.
 * NOT_FOUND: 404, 410. DENIED: 401, 403, 407. CONFLICT: 412. Else IO. The text has the
 * status and its usual reason, but no URL; err->os_code is the status. */
zarr_status zr_net_fail_status(zarr_error *err, const struct zr_net_request *r);

/* ---- clients --------------------------------------------------------------------- */

/* Zero is the default of each member; texts are copied. */
struct zr_net_options {
    const zarr_allocator *alloc;
    struct zr_log log;
    const char *const
        *secret_headers;       /* of each request, to its first origin; NULL ends */
    const char *user_password; /* "user:password", to the first origin */
    const char *proxy;    /* NULL: as the environment says (http_proxy, ...); "": none */
    const char *no_proxy; /* hosts, with commas; NULL: as the environment says */
    const char *ca_file, *ca_folder; /* NULL: libcurl's */
    bool netrc;             /* look up credentials of the first origin in ~/.netrc */
    const char *netrc_file; /* or in this file; NULL: none */
    bool tls_unverified;    /* accept any certificate; logs a warning */
    bool untrusted;         /* no redirect from a public address to a private, loopback or
                               link-local one */
    uint32_t connect_ms;    /* longest time to connect; 0: 15 s */
    uint32_t stall_s;       /* longest time without a byte; 0: 60 s */
    uint32_t tries;         /* most tries of a request; 0: 10 */
    uint32_t backoff_ms;    /* before the second try, doubled for each; 0: 100 ms */
    /* Requests of a host at once, at first. All clients of a host share the limit, and
     * the last one with this option sets it. 0: 32 at first, or as it is. */
    uint32_t concurrency;
};
/* Loads libcurl if this is the first client. UNSUPPORTED: it is not there, or too old, or
 * this build lacks it. INVALID: an option is malformed. */
zarr_status zr_net_open(struct zr_net **out, const struct zr_net_options *opts,
                        zarr_error *err);
void zr_net_free(struct zr_net *net); /* none of its requests may run; NULL is allowed */

struct zr_net_stats {
    uint64_t requests;            /* sent, with repetitions and redirects */
    uint64_t retries;             /* of them repetitions */
    uint64_t in_bytes, out_bytes; /* headers and bodies, before TLS */
};
void zr_net_stats_get(const struct zr_net *net, struct zr_net_stats *out);

/* Of the whole process, for tests. */
struct zr_net_engine_stats {
    uint32_t reactors, sockets, active, queued, waiting; /* waiting: for a repetition */
};
void zr_net_engine_stats_get(struct zr_net_engine_stats *out);

#endif
