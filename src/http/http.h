/*
 * http/http.h - the door to HTTP(S) stores: read-only, the value of a key is what a GET
 * of its URL gives. The room net carries the requests out.
 *
 * NOT_FOUND means that the server said 404 or 410, or, with the option
 * "denied_is_missing", 403.
 *
 * Stores of services that read by GET and HEAD, such as S3, use the same calls through a
 * struct zr_http_reader, and read the same options.
 *
 * Thread class: shared.
 */
#ifndef ZR_HTTP_H
#define ZR_HTTP_H

#include "base/base.h"
#include "coalesce/coalesce.h"
#include "net/net.h"
#include "store/store.h"

/* The functions of the store, without `open`. */
extern const zarr_store_vtable zr_http_vtable;

/* Makes the `self` for the functions. Sends no request. Copies env, which must outlive
 * it, as for zr_store_open(). config: the JSON object of zarr_store_options; NULL: none.
 * INVALID: the URL or an option is wrong. UNSUPPORTED: there is no libcurl. */
zarr_status zr_http_open(void **self, const struct zr_store_env *env, const char *url,
                         const char *config, zarr_error *err);

/* ---- what other stores use ------------------------------------------------------- */

struct zr_http_reader;

/* What follows an answer that is no success. */
enum zr_http_next {
    ZR_HTTP_FAIL,
    ZR_HTTP_AGAIN,   /* the same once more */
    ZR_HTTP_RENEWED, /* the same once more, with other credentials */
    ZR_HTTP_ASK_BODY /* after a HEAD, whose answer has no body: a GET of the first byte */
};

/* What differs between services. */
struct zr_http_protocol {
    uint32_t flags; /* ZR_NET_* of each request */
    /* HEAD and suffixes are known to work, so an answer of another status than 2xx and
     * 416 is never a reason to ask in another way. */
    bool is_strict;
    /* Appends the URL of a key. */
    void (*put_url)(const struct zr_http_reader *reader, struct zr_str *out,
                    const char *key);
    /* As in struct zr_net_request; header_user is the reader. NULL: none. */
    zarr_status (*add_headers)(void *reader, struct zr_net_request *r,
                               struct zr_str *lines, zarr_error *err);
    bool (*must_wait)(void *reader);
    /* Judges an answer that is no success. body: what the server says, which may be cut;
     * "": nothing. With ZR_HTTP_FAIL the result is a failure, else it is OK. *next is
     * ZR_HTTP_AGAIN at first. It is ZR_HTTP_FAIL if the call has been sent often enough,
     * and must stay so. It is ZR_HTTP_RENEWED if that has been an answer to this call. */
    zarr_status (*refuse)(struct zr_http_reader *reader, const struct zr_net_request *r,
                          const char *body, size_t body_bytes, enum zr_http_next *next,
                          zarr_error *err);
};

enum {
    ZR_HTTP_ETAGS_MOST = 256
};

/* The part of a store that reads values; the first member of `self`. The store sets the
 * first members, and zeroes the others. */
struct zr_http_reader {
    const struct zr_http_protocol *protocol;
    struct zr_store_env env;
    struct zr_net *net;
    struct zr_estimate estimate; /* of all requests of values */
    /* What answers have taught: HEAD is not supported; suffixes are not. */
    atomic_bool no_head, no_suffix;
    atomic_bool has_found; /* a value: so what holds the values is there */
    atomic_bool warned;    /* that the server ignores ranges */
    /* ETags that are longer than a version, by the hash that the version has. Entries
     * stay until the store is closed. If there is no room, an ETag is not kept. */
    struct zr_http_long_etag *_Atomic etag[ZR_HTTP_ETAGS_MOST];
};

/* Frees what the reader has learnt, when no request runs. */
void zr_http_reader_deinit(struct zr_http_reader *reader);
/* Entries of a zarr_store_vtable; self is a reader. submit() does GETs and STATs. */
void zr_http_submit(void *self, zarr_store_op **ops, uint64_t n,
                    void (*done)(void *arg, zarr_store_op *op, const zarr_error *err),
                    void *arg);
void zr_http_cancel(void *self, void *arg);
void zr_http_count(void *self, zarr_store_counters *out);

enum {
    /* of a short ETag, with its end */
    ZR_HTTP_ETAG_ROOM = 64
};
/* Makes a version of a strong ETag, or none. Of a long ETag it has a hash. */
void zr_http_version_make(zarr_store_version *out, const struct zr_net_answer *a);
/* The ETag of a version. False: the version has only a hash of it, or there is none. */
bool zr_http_version_etag(const zarr_store_version *v, char out[ZR_HTTP_ETAG_ROOM]);

enum {
    ZR_HTTP_HEADERS_MOST = 64,
    ZR_HTTP_OWN_MOST = 32
};

/* An option that only one kind of stores has; one of the two pointers is NULL. */
struct zr_http_own_option {
    const char *name;
    bool *flag;
    const char **text; /* a part of the block */
};

/* The options of a kind of stores, besides those of transport. */
struct zr_http_own_options {
    const char *kind; /* "an HTTP store" */
    const struct zr_http_own_option *option;
    size_t n; /* at most ZR_HTTP_OWN_MOST */
};

/* What the text `config` says. */
struct zr_http_options {
    struct zr_net_options net;
    struct zr_str block; /* has the texts */
    const char *headers[ZR_HTTP_HEADERS_MOST + 1];
};
/* Reads the options of transport and `own`. config: NULL, or the text of an object.
 * user_info: of the URL, or NULL; it wins. */
zarr_status zr_http_options_read(struct zr_http_options *o,
                                 const struct zr_http_own_options *own,
                                 const char *config, const char *user_info,
                                 const struct zr_store_env *env, zarr_error *err);
void zr_http_options_deinit(struct zr_http_options *o); /* wipes the texts */

#endif
