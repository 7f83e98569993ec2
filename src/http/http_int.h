/*
 * http/http_int.h - what the files of this room share: facts of answers, what they mean
 * for an operation, and the store.
 */
#ifndef ZR_HTTP_INT_H
#define ZR_HTTP_INT_H

#include "http/http.h"
#include "net/net.h"

/* ---- answers: pure functions -------------------------------------------------- */

enum {
    /* of a short ETag, with its end */
    ZR_HTTP_ETAG_ROOM = 64
};
/* Bytes before a range that a server which ignores ranges may send in vain, or after the
 * room of a read whose value has no length. */
#define ZR_HTTP_SKIP_MOST (UINT64_C(64) << 20)

/* What a GET asks for. */
struct zr_http_want {
    uint64_t offset;   /* of the range; a suffix has none */
    uint64_t bytes;    /* at most so many, and at least 1 */
    bool is_whole;     /* without a range */
    bool is_suffix;    /* the last `bytes` */
    bool needs_length; /* of the value, if it has more than `bytes` */
};
/* What the head of an answer says. */
struct zr_http_answer {
    int32_t status;
    uint64_t content_bytes; /* UINT64_MAX: not told */
    bool has_range;         /* Content-Range names one range of bytes */
    uint64_t first, last;   /* of it, both included */
    uint64_t total;         /* of Content-Range; UINT64_MAX: not told */
    const char *etag;       /* NULL: none */
};
/* Which bytes of a body are the result: `take` bytes after the first `skip`. */
struct zr_http_plan {
    bool asks_length; /* none: the range must be computed from the length */
    bool counts;      /* the body is read to its end for its length */
    bool ignores_ranges;
    uint64_t skip, take;
    uint64_t body_bytes, object_bytes; /* UINT64_MAX: the answer does not tell */
};

/* Makes a version of an ETag, or none if it is not strong. Of a long ETag it has a
 * hash. */
void zr_http_version_make(zarr_store_version *out, const char *etag);
/* The ETag of a version. False: the version has only a hash of it, or there is none. */
bool zr_http_version_etag(const zarr_store_version *v, char out[ZR_HTTP_ETAG_ROOM]);
/* Whether the answer has this version; a version of zeros is that of no value. CONFLICT:
 * no. */
zarr_status zr_http_judge_version(const struct zr_http_answer *a,
                                  const zarr_store_version *expected, zarr_error *err);
/* Judges the head of an answer to a GET. */
zarr_status zr_http_judge(const struct zr_http_want *w, const struct zr_http_answer *a,
                          struct zr_http_plan *plan, zarr_error *err);
/* The same for a question for the length: HEAD, or a GET of the first byte. UINT64_MAX
 * with OK: the HEAD does not tell, and a GET may. */
zarr_status zr_http_judge_length(const struct zr_http_answer *a, bool is_head,
                                 uint64_t *object_bytes, zarr_error *err);
/* Judges the end of the body of a GET, which had `seen` bytes as far as it was read. Sets
 * done_bytes and object_bytes of op. */
zarr_status zr_http_judge_end(const struct zr_http_plan *plan, uint64_t seen,
                              zarr_store_op *op, zarr_error *err);

/* ---- the store ------------------------------------------------------------------- */

enum {
    ZR_HTTP_HEADERS_MOST = 64
};
/* What the text `config` says. */
struct zr_http_options {
    struct zr_net_options net;
    bool denied_is_missing; /* a 403 is a missing key */
    struct zr_str block;    /* has the texts of `net` */
    const char *headers[ZR_HTTP_HEADERS_MOST + 1];
};
/* config: NULL, or the text of an object. user_info: of the URL, or NULL; it wins. */
zarr_status zr_http_options_read(struct zr_http_options *o, const char *config,
                                 const char *user_info, const struct zr_store_env *env,
                                 zarr_error *err);
void zr_http_options_deinit(struct zr_http_options *o); /* wipes the texts */

struct zr_http_store {
    struct zr_store_env env;
    struct zr_url url; /* of the root */
    struct zr_net *net;
    bool denied_is_missing;
    /* What answers have taught: HEAD is not supported; suffixes are not. */
    atomic_bool no_head, no_suffix;
    atomic_bool warned; /* that the server ignores ranges */
};

void zr_http_submit(void *self, zarr_store_op **ops, uint64_t n,
                    void (*done)(void *arg, zarr_store_op *op, const zarr_error *err),
                    void *arg);
void zr_http_cancel(void *self, void *arg);
zarr_status zr_http_list(void *self, const char *prefix, uint32_t how,
                         zarr_store_list_fn fn, void *user, const zarr_cancel *cancel,
                         zarr_error *err);

#endif
