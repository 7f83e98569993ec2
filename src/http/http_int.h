/*
 * http/http_int.h - what the files of this room share: what answers mean, and the store.
 */
#ifndef ZR_HTTP_INT_H
#define ZR_HTTP_INT_H

#include "http/http.h"

/* ---- answers: pure functions -------------------------------------------------- */

/* Most bytes of a body that a read drops: before its range, if the server ignores ranges,
 * or after it, if only the end of the body tells the length of the value. */
#define ZR_HTTP_SKIP_MOST (UINT64_C(64) << 20)

/* What a GET asks for. */
struct zr_http_want {
    uint64_t offset; /* of the range; a suffix has none */
    uint64_t bytes;  /* at least 1 */
    bool is_whole;   /* without a range */
    bool is_suffix;  /* the last `bytes` */
};
enum zr_http_verdict {
    ZR_HTTP_REFUSED,     /* zr_net_fail_status() says why */
    ZR_HTTP_ASKS_LENGTH, /* the next request has to ask for the length */
    ZR_HTTP_HAS_VALUE
};
/* What an answer is. */
struct zr_http_found {
    enum zr_http_verdict verdict;
    uint64_t at;           /* place of the body's first byte in the value */
    uint64_t object_bytes; /* of the whole value; UINT64_MAX: not told */
};

/* Whether the version has only a hash of its ETag. */
bool zr_http_version_is_hash(const zarr_store_version *v);
/* Keeps an ETag of which the version has only a hash. Any thread. */
void zr_http_etag_keep(struct zr_http_reader *reader, const zarr_store_version *v,
                       const char *etag);
/* The ETag that was kept for the version, which lives as long as the reader. NULL: none.
 */
const char *zr_http_etag_find(const struct zr_http_reader *reader,
                              const zarr_store_version *v);
/* Whether the answer has this version; a version of zeros is that of no value. CONFLICT:
 * no. */
zarr_status zr_http_judge_version(const struct zr_net_answer *a,
                                  const zarr_store_version *expected, zarr_error *err);
/* Judges the head of an answer to a GET. IO: it contradicts the request. UNSUPPORTED: the
 * bytes are too far from the first one of the body. */
zarr_status zr_http_judge(const struct zr_http_want *w, const struct zr_net_answer *a,
                          struct zr_http_found *out, zarr_error *err);
/* The same for a question for the length: HEAD, or a GET of the first byte. */
zarr_status zr_http_judge_length(const struct zr_net_answer *a, bool is_head,
                                 struct zr_http_found *out, zarr_error *err);

/* A server's listing of a folder, whose path ends with a slash. */
struct zr_http_page {
    const zarr_allocator *alloc;
    const zarr_limits *limits;
    const struct zr_url *folder;
    /* gets each member, with any name; bytes: UINT64_MAX: not told */
    zarr_status (*fn)(void *user, const char *name, bool is_folder, uint64_t bytes,
                      zarr_error *err);
    void *user;
};
/* WebDAV's answer to PROPFIND. CORRUPT: it is malformed, or names what is not in the
 * folder. */
zarr_status zr_http_dav_read(const struct zr_http_page *page, const char *text, size_t n,
                             zarr_error *err);
/* An index in JSON, as nginx sends it. CORRUPT: it is malformed. UNSUPPORTED: it is no
 * index. */
zarr_status zr_http_index_read(const struct zr_http_page *page, const char *text,
                               size_t n, zarr_error *err);

/* ---- the store ------------------------------------------------------------------- */

struct zr_http_store {
    struct zr_http_reader reader; /* first */
    struct zr_url url;            /* of the root */
    bool denied_is_missing;
    atomic_bool has_index, has_dav; /* it lists folders as JSON; by WebDAV */
};

zarr_status zr_http_list(void *self, const char *prefix, uint32_t how,
                         zarr_store_list_fn fn, void *user, const zarr_cancel *cancel,
                         zarr_error *err);

#endif
