/*
 * net/net_int.h - what the files of this room share. libcurl's header is in curl_int.h.
 *
 * Locks. A reactor's own mutex is held while it is inside of libcurl, so that a fork
 * finds libcurl and its TLS library at rest. The engine's mutex is for all lists, and may
 * be taken inside of it. No callback but a sink's runs with a lock held.
 */
#ifndef ZR_NET_INT_H
#define ZR_NET_INT_H

#include "net/net.h"
#include "sched/sched.h"

#include <stdatomic.h>

struct sockaddr;

enum {
    ZR_NET_REDIRECTS = 5,
    ZR_NET_HEADER_BYTES = 65536, /* of an answer, with those of status 1xx before it */
    ZR_NET_HEADER_LINES = 256,
    ZR_NET_ERROR_BYTES = 16384, /* of the body of an answer that is no success */
    ZR_NET_DROP_BYTES = 65536,  /* a longer body that no caller wants ends a connection */
    ZR_NET_CONNECT_TRIES = 3,   /* before there is a connection */
    ZR_NET_CONNECT_MS = 15000,  /* the default of the option connect_ms */
    ZR_NET_STALL_S = 60,        /* the default of the option stall_s */
    ZR_NET_BACKOFF_MAX_MS = 10000,  /* between two tries */
    ZR_NET_RETRY_AFTER_MAX_S = 300, /* of a request in all; more ends it */
    ZR_NET_BUFFERS_BYTES =
        32 << 20,            /* of receive buffers, above those of the least size */
    ZR_NET_CONCURRENCY = 32, /* of a host, at first */
    ZR_NET_CONCURRENCY_MAX = 256,
    ZR_NET_REACTORS_MAX = 64
};

/* ---- parsers: pure functions ------------------------------------------------------ */

void zr_net_answer_reset(struct zr_net_answer *a, const zarr_allocator *alloc);
void zr_net_answer_deinit(struct zr_net_answer *a);
/* Adds one line of a header, with or without its end. A status line begins the header
 * anew. IO: it is malformed. */
zarr_status zr_net_answer_add(struct zr_net_answer *a, const char *line, size_t n,
                              zarr_error *err);
/* Sets the facts after the last line. IO: they contradict each other. */
zarr_status zr_net_answer_finish(struct zr_net_answer *a, zarr_error *err);
/* Compares a 206 with the range that was asked for. IO: it is another one. */
zarr_status zr_net_answer_check_range(const struct zr_net_answer *a, uint32_t flags,
                                      uint64_t first, uint64_t bytes, zarr_error *err);
/* Content-Range: of a 206 "bytes 2-5/10" (or / *), of a 416 "bytes * /10". */
bool zr_net_parse_content_range(const char *text, bool is_range, uint64_t *first,
                                uint64_t *bytes, uint64_t *total);
/* Retry-After: seconds, or a date; now_s: since 1970. */
bool zr_net_parse_retry_after(const char *text, int64_t now_s, uint64_t *out_s);
/* Sets out to the target of a redirect from `from`. IO: it is not http or https, or leads
 * from https to http, or is malformed. */
zarr_status zr_net_location(struct zr_url *out, const struct zr_url *from,
                            const char *location, zarr_error *err);
bool zr_net_is_same_origin(const struct zr_url *a, const struct zr_url *b);
/* Whether an address is one that the public Internet does not route: private, loopback,
 * link-local, multicast and others, also inside of IPv6. Unknown families are. */
bool zr_net_is_private(const struct sockaddr *address);
bool zr_net_is_private_text(const char *text); /* "10.0.0.1", "fe80::1" */

/* ---- libraries that are not linked ------------------------------------------------ */

struct zr_net_symbol {
    const char *name;
    size_t at; /* of its pointer in the table */
};
/* Loads the first of the files that is there, and keeps it loaded; NULL ends them. Fills
 * the table with pointers to n functions. UNSUPPORTED: there is no such file, or a
 * function is missing. need: begins the text, as "http needs libcurl". */
zarr_status zr_net_load_library(void *table, const char *const *files,
                                const struct zr_net_symbol *symbols, size_t n,
                                const char *need, zarr_error *err);

#endif
