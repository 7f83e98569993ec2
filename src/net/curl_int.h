/*
 * net/curl_int.h - libcurl, as the files of this room call it: through a table, which is
 * filled when the first client is made.
 */
#ifndef ZR_NET_CURL_INT_H
#define ZR_NET_CURL_INT_H

#define CURL_NO_OLDIES
#define CURL_DISABLE_TYPECHECK   /* they are macros around the functions' own names */
#define CURL_DISABLE_DEPRECATION /* the new names are not in all versions */
#include <curl/curl.h>

#include "net/net_int.h"

/* What newer headers have. The loaded library is asked for its version before use. */
#if LIBCURL_VERSION_NUM < 0x075000
#    define CURLOPT_PREREQFUNCTION ((CURLoption)20312)
#    define CURLOPT_PREREQDATA     ((CURLoption)10313)
#    define CURL_PREREQFUNC_OK     0
#    define CURL_PREREQFUNC_ABORT  1
#endif
#if LIBCURL_VERSION_NUM < 0x075500
#    define CURLOPT_PROTOCOLS_STR ((CURLoption)10318)
#endif
#if LIBCURL_VERSION_NUM < 0x075700
#    define CURLOPT_QUICK_EXIT ((CURLoption)322)
#endif

/* X(type of the result, name without curl_, arguments) */
#define ZR_NET_CURL(X)                                                                   \
    X(CURLcode, global_init, (long))                                                     \
    X(curl_version_info_data *, version_info, (CURLversion))                             \
    X(CURL *, easy_init, (void))                                                         \
    X(void, easy_cleanup, (CURL *))                                                      \
    X(void, easy_reset, (CURL *))                                                        \
    X(CURLcode, easy_setopt, (CURL *, CURLoption, ...))                                  \
    X(CURLcode, easy_getinfo, (CURL *, CURLINFO, ...))                                   \
    X(const char *, easy_strerror, (CURLcode))                                           \
    X(CURLM *, multi_init, (void))                                                       \
    X(CURLMcode, multi_cleanup, (CURLM *))                                               \
    X(CURLMcode, multi_setopt, (CURLM *, CURLMoption, ...))                              \
    X(CURLMcode, multi_add_handle, (CURLM *, CURL *))                                    \
    X(CURLMcode, multi_remove_handle, (CURLM *, CURL *))                                 \
    X(CURLMcode, multi_perform, (CURLM *, int *))                                        \
    X(CURLMsg *, multi_info_read, (CURLM *, int *))                                      \
    X(CURLMcode, multi_poll, (CURLM *, struct curl_waitfd *, unsigned int, int, int *))  \
    X(CURLMcode, multi_wakeup, (CURLM *))                                                \
    X(struct curl_slist *, slist_append, (struct curl_slist *, const char *))            \
    X(void, slist_free_all, (struct curl_slist *))

struct zr_net_curl {
#define ZR_NET_MEMBER(type, name, arguments) type(*name) arguments;
    ZR_NET_CURL(ZR_NET_MEMBER)
#undef ZR_NET_MEMBER
    uint32_t version; /* 0x074C00: 7.76.0 */
};
/* Frozen once zr_net_curl_load() has returned OK. */
extern struct zr_net_curl zr_curl;
/* Loads libcurl, and initialises it, once. */
zarr_status zr_net_curl_load(zarr_error *err);

/* ---- transfers ----------------------------------------------------------------- */

/* What the body of an answer is for. */
enum zr_net_phase {
    ZR_NET_HEADER, /* the header is not complete */
    ZR_NET_SINK,
    ZR_NET_ERROR, /* it tells why the request failed */
    ZR_NET_DROP
};
/* What follows when libcurl is done with a request. */
enum zr_net_outcome {
    ZR_NET_RUNS, /* libcurl is not done with it */
    ZR_NET_END,
    ZR_NET_REPEAT,
    ZR_NET_HOLD, /* it has not begun, because must_wait() says so */
    ZR_NET_REDIRECT
};

/* A request that runs. */
struct zr_net_transfer {
    struct zr_net *net;
    struct zr_net_request *request;

    /* by the engine's mutex */
    struct zr_net_transfer *prev, *next;
    struct zr_net_list *list; /* that it is in; NULL: none */
    struct zr_net_host *host;
    atomic_bool is_cancelled;

    /* of the reactor that has it */
    struct zr_url url; /* where it goes now */
    uint32_t tries, redirects;
    uint32_t n_sends; /* libcurl's own repetitions included */
    uint64_t asked_s; /* pauses that the host has asked for, all together */
    bool has_left;    /* the first origin: no credentials any more */
    bool was_public;  /* an address before this redirect was */
    bool is_sent;     /* libcurl has begun to send it, in this try */
    enum zr_net_outcome outcome;
    enum zr_net_phase phase;
    uint32_t header_lines;
    size_t header_bytes;
    uint64_t due_ns;       /* of the repetition */
    uint64_t end_ns;       /* of its time; UINT64_MAX: no limit */
    uint64_t buffer_bytes; /* of its share of the receive buffers */
    CURL *easy;
    struct curl_slist *headers;
    zarr_status st; /* the first failure, with its text */
    zarr_error err;
};
zarr_status zr_net_transfer_create(struct zr_net_transfer **out, struct zr_net *net,
                                   struct zr_net_request *r, zarr_error *err);
void zr_net_transfer_free(struct zr_net_transfer *t); /* NULL is allowed */
/* Sets up t->easy, which must be fresh or reset. */
zarr_status zr_net_transfer_prepare(struct zr_net_transfer *t);
/* Frees what prepare made, but not the easy handle. */
void zr_net_transfer_release(struct zr_net_transfer *t);
bool zr_net_is_repeatable(const struct zr_net_request *r);
/* Whether this answer is one that a repetition may change, and there are tries left. */
bool zr_net_repeats_answer(const struct zr_net_transfer *t);
bool zr_net_is_redirect(const struct zr_net_transfer *t);
/* Counts what libcurl did, and decides. Sets t->st and t->err, due_ns, or url. */
enum zr_net_outcome zr_net_decide(struct zr_net_transfer *t, CURLcode result);
/* Whether t was cancelled, or its time is over. */
bool zr_net_is_cancelled(const struct zr_net_transfer *t);
/* Ends t with CANCELLED, whatever it was. Needs no memory: a lock may be held. */
void zr_net_cancel_transfer(struct zr_net_transfer *t);
/* Fails t with a text after its shown URL; keeps an earlier failure. */
void zr_net_fail(struct zr_net_transfer *t, zarr_status st, const char *fmt, ...)
    ZARR_PRINTF(3, 4);

/* libcurl's callbacks, with a transfer as their last argument. */
curl_socket_t zr_net_on_open(void *user, curlsocktype purpose,
                             struct curl_sockaddr *address);
int zr_net_on_close(void *user, curl_socket_t fd);
int zr_net_on_request(void *user, char *there, char *here, int there_port, int here_port);

/* Makes a multi handle and finds its descriptors for wake-ups, which a forked child
 * closes. -1: not found, because another thread opened a file meanwhile. */
CURLM *zr_net_multi_create(int wake_fd[2]);

/* ---- lists, hosts, reactors: by the engine's mutex --------------------------------- */

struct zr_net_list {
    struct zr_net_transfer *first, *last;
    uint32_t n;
};
void zr_net_list_add(struct zr_net_list *l, struct zr_net_transfer *t);
void zr_net_list_remove(struct zr_net_transfer *t); /* from the list that it is in */
void zr_net_list_move(struct zr_net_list *to, struct zr_net_list *from);

/* An origin, and how many requests it may have at once. */
struct zr_net_host {
    struct zr_net_list queue;
    uint32_t n_active, limit;
    bool is_slow_start, was_full;   /* full: requests waited for others in this window */
    uint32_t window_n, window_size; /* answers in this window */
    uint64_t window_ns, window_bytes; /* when it began; what came */
    double rate;                      /* of the window before, bytes per second */
    uint64_t calm_ns;                 /* until then it does not grow */
};
/* The host of the transfer's URL; NULL: no memory. Of clients with the option
 * `concurrency`, the last one that comes to a host sets its limit. */
struct zr_net_host *zr_net_host_find_locked(const struct zr_net_transfer *t);
/* Passes queued requests to reactors, as far as the limits permit. */
void zr_net_host_dispatch_locked(struct zr_net_host *h);
/* Ends the slot of a request. */
void zr_net_host_leave_locked(struct zr_net_host *h);
/* Begins to adapt anew. */
void zr_net_host_reset(struct zr_net_host *h, uint32_t limit);
/* Begins to measure; now_ns 0: with the next answer, after a time without requests. */
void zr_net_host_begin_window(struct zr_net_host *h, uint64_t now_ns);
/* Counts an answer, and adapts the limit. */
void zr_net_host_learn(struct zr_net_host *h, uint64_t bytes, bool is_overloaded,
                       uint64_t now_ns);

struct zr_net_reactor {
    zr_mutex mutex; /* held inside of libcurl */
    struct zr_fork_hook fork;
    struct zr_service service;
    CURLM *multi;
    int wake_fd[2];                      /* zr_net_multi_create() */
    CURL *spare[ZR_NET_CONCURRENCY_MAX]; /* easy handles without a request */
    uint32_t n_spare;
    uint64_t window_ns, window_cpu_ns; /* begin of the measurement of `busy` */
    atomic_uint busy;                  /* of 1000: CPU time by time */
    /* by the engine's mutex */
    struct zr_net_list inbox, active, waiting;
    struct zr_net_list ended; /* done() comes next */
    enum {
        ZR_NET_AWAKE,
        ZR_NET_NEWS, /* another thread has brought work since the begin of this turn */
        ZR_NET_ASLEEP
    } state;
};
extern struct zr_net_engine {
    zr_mutex start_mutex; /* outermost: reactors start one by one */
    zr_mutex mutex;
    struct zr_fork_hook start_fork, fork;
    struct zr_map hosts;
    struct zr_net_scope *scopes;
    struct zr_net_reactor reactor[ZR_NET_REACTORS_MAX];
    atomic_uint n_reactors;
    uint32_t n_active, n_queued, max_reactors;
    atomic_uint max_active; /* tests change it while reactors run */
    size_t turn;            /* the host that gets the next slot when all were taken */
    uint64_t sweep_ns;      /* when the queues are looked at again */
    atomic_uint_fast64_t buffer_bytes; /* of all receive buffers */
    uint64_t *socket_bits;             /* of all descriptors of libcurl's sockets */
    size_t n_socket_words;
    uint32_t n_sockets;
    atomic_bool is_closed;
} zr_net_engine;
void zr_net_engine_setup(void); /* once, before all others */
/* The reactor that has the fewest requests. */
struct zr_net_reactor *zr_net_engine_choose_locked(void);
/* Scopes, as in net.h. The first one sets net and tag. */
void zr_net_scope_add_locked(struct zr_net_scope *s);
void zr_net_scope_remove_locked(const struct zr_net_scope *s);
bool zr_net_scope_is_cancelled_locked(const struct zr_net *net, const void *tag);
/* Ends requests in queues that were cancelled or whose time is over, every 50 ms. */
void zr_net_engine_sweep_locked(uint64_t now_ns);
/* Starts one more reactor, if all are busy or there is none. */
zarr_status zr_net_engine_grow(zarr_error *err);
void zr_net_engine_wake_locked(struct zr_net_reactor *r);
/* Calls done() for all that has ended, on the reactor's thread. The requests may be gone
 * afterwards. No lock is held. */
void zr_net_engine_finish(struct zr_net_reactor *r);

zarr_status zr_reactor_start(struct zr_net_reactor *r, zarr_error *err);

/* ---- clients ---- */

struct zr_net {
    struct zr_net_options opts; /* with own texts */
    char **secret_headers;      /* NULL at the end */
    bool has_set_limit;         /* of its host; by the engine's mutex */
    atomic_uint_fast64_t requests, retries, in_bytes, out_bytes;
};

/* The longest time without a byte, for this request. */
uint64_t zr_net_stall_s(const struct zr_net_transfer *t);

#endif
