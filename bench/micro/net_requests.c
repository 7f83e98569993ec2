/*
 * bench/micro/net_requests.c - what the engine for HTTP costs beside a bare loop around
 * libcurl's multi interface, in the same process and run. A program, not a test:
 *
 *   net_requests <url> <object bytes> <part bytes> <stride> <parts> <in flight> <rounds>
 *
 * Reads parts of the object at the URL, each `stride` bytes after the one before, and
 * prints medians as JSON: microseconds of CPU for each request and milliseconds for all,
 * the library's and the loop's. Of several rounds the first one does not count; a single
 * one has cold connections. bench/micro/net compares the numbers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <curl/curl.h>

#include "net/net.h"
#include "sched/sched.h"

enum {
    ROUNDS_MAX = 99,
    FLIGHT_MAX = 512
};

static struct {
    const char *url;
    uint64_t object, part, stride, n;
    uint32_t flight, rounds;
} what;

static void must(bool ok, const char *why)
{
    if (ok)
        return;
    fprintf(stderr, "net_requests: %s\n", why);
    exit(1);
}

static double cpu_us(void)
{
    struct rusage u;

    (void)getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static uint64_t first_byte(uint64_t i)
{
    return i * what.stride % (what.object - what.part + 1);
}

struct cost {
    double us, ms; /* of CPU for each request; until all have ended */
};

static struct cost begin_cost(void)
{
    return (struct cost){.us = cpu_us(), .ms = (double)zr_now_ns() / 1e6};
}

static struct cost end_cost(struct cost before)
{
    return (struct cost){.us = (cpu_us() - before.us) / (double)what.n,
                         .ms = (double)zr_now_ns() / 1e6 - before.ms};
}

/* ---- the engine ---- */

static struct {
    struct zr_net *net;
    atomic_uint_fast64_t next;
    atomic_uint left;
    struct zr_event all;
} run;

struct slot {
    struct zr_net_request r;
    struct zr_net_buffer buffer;
    char range[64];
};

static void slot_next(struct slot *s);

static void slot_done(struct zr_net_request *r, zarr_status st, const zarr_error *err)
{
    struct slot *s = r->user;

    must(st == ZARR_OK && r->answer.status == 206 && s->buffer.n == what.part,
         err ? err->message : "a wrong answer");
    zr_net_request_deinit(r);
    slot_next(s);
}

static void slot_next(struct slot *s)
{
    const uint64_t i = atomic_fetch_add(&run.next, 1);

    if (i >= what.n) {
        if (atomic_fetch_sub(&run.left, 1) == 1)
            zr_event_set(&run.all);
        return;
    }
    s->r = (struct zr_net_request){.method = "GET",
                                   .url = what.url,
                                   .flags = ZR_NET_RANGE,
                                   .range_first = first_byte(i),
                                   .range_bytes = what.part,
                                   .done = slot_done,
                                   .user = s};
    zr_net_buffer_sink(&s->r.sink, &s->buffer);
    zr_net_submit(run.net, &s->r);
}

static struct cost measure_engine(struct slot *slots)
{
    const struct cost before = begin_cost();

    atomic_store(&run.next, 0);
    atomic_store(&run.left, what.flight);
    zr_event_init(&run.all);
    for (uint32_t i = 0; i < what.flight; i++)
        slot_next(&slots[i]);
    must(zr_event_wait(&run.all, UINT64_MAX), "the engine has not ended");
    zr_event_deinit(&run.all);
    return end_cost(before);
}

/* ---- the bare loop ---- */

static size_t bare_write(char *bytes, size_t one, size_t n, void *user)
{
    struct slot *s = user;

    must(n * one <= s->buffer.cap - s->buffer.n, "a long answer");
    memcpy(s->buffer.bytes + s->buffer.n, bytes, n * one);
    s->buffer.n += n * one;
    return n * one;
}

static void bare_next(CURLM *m, CURL *e, struct slot *s, uint64_t i)
{
    const uint64_t first = first_byte(i);

    s->buffer.n = 0;
    (void)snprintf(s->range, sizeof s->range, "%" PRIu64 "-%" PRIu64, first,
                   first + what.part - 1);
    (void)curl_easy_setopt(e, CURLOPT_RANGE, s->range);
    (void)curl_multi_add_handle(m, e);
}

static CURL *bare_make(struct slot *s)
{
    CURL *e = curl_easy_init();

    must(e != 0, "no memory");
    (void)curl_easy_setopt(e, CURLOPT_URL, what.url);
    (void)curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, bare_write);
    (void)curl_easy_setopt(e, CURLOPT_WRITEDATA, s);
    (void)curl_easy_setopt(e, CURLOPT_PRIVATE, s);
    (void)curl_easy_setopt(e, CURLOPT_BUFFERSIZE, 524288L);
    (void)curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(e, CURLOPT_SSL_VERIFYPEER, 0L);
    (void)curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    return e;
}

/* The handles and connections stay from round to round, as those of the engine do. */
static struct cost measure_bare(CURLM *m, CURL **easy, struct slot *slots)
{
    const struct cost before = begin_cost();
    uint64_t next = 0, ended = 0;
    int running, left;

    for (; next < what.flight; next++)
        bare_next(m, easy[next], &slots[next], next);
    while (ended < what.n) {
        CURLMsg *g;

        (void)curl_multi_perform(m, &running);
        while ((g = curl_multi_info_read(m, &left))) {
            CURL *const e = g->easy_handle;
            struct slot *s = NULL;

            must(g->data.result == CURLE_OK, "the bare loop fails");
            (void)curl_easy_getinfo(e, CURLINFO_PRIVATE, (char **)&s);
            must(s->buffer.n == what.part, "a short answer");
            (void)curl_multi_remove_handle(m, e);
            ended++;
            if (next < what.n)
                bare_next(m, e, s, next++);
        }
        if (ended < what.n)
            (void)curl_multi_poll(m, NULL, 0, 100, NULL);
    }
    return end_cost(before);
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Of one number of all rounds but the first. */
static double find_median(const struct cost *c, bool wall)
{
    const uint32_t first = what.rounds > 1;
    double v[ROUNDS_MAX] = {0};

    for (uint32_t i = first; i < what.rounds; i++)
        v[i - first] = wall ? c[i].ms : c[i].us;
    qsort(v, what.rounds - first, sizeof *v, compare_doubles);
    return v[(what.rounds - first) / 2];
}

int main(int argc, char **argv)
{
    struct cost engine[ROUNDS_MAX], bare[ROUNDS_MAX];
    struct zr_net_options o = {.tls_unverified = true};
    static struct slot slots[FLIGHT_MAX];
    CURL *easy[FLIGHT_MAX] = {0};
    CURLM *m;

    must(argc == 8, "needs <url> <object> <part> <stride> <parts> <in flight> <rounds>");
    what.url = argv[1];
    what.object = strtoull(argv[2], NULL, 10);
    what.part = strtoull(argv[3], NULL, 10);
    what.stride = strtoull(argv[4], NULL, 10);
    what.n = strtoull(argv[5], NULL, 10);
    what.flight = (uint32_t)strtoul(argv[6], NULL, 10);
    what.rounds = (uint32_t)strtoul(argv[7], NULL, 10);
    must(what.part > 0 && what.part <= what.object && what.flight > 0 &&
             what.flight <= FLIGHT_MAX && what.flight <= what.n && what.rounds > 0 &&
             what.rounds <= ROUNDS_MAX,
         "an argument is out of range");
    must(zr_net_open(&run.net, &o, NULL) == ZARR_OK, "no libcurl");
    m = curl_multi_init();
    (void)curl_multi_setopt(m, CURLMOPT_MAXCONNECTS, (long)FLIGHT_MAX);
    for (uint32_t i = 0; i < what.flight; i++) {
        slots[i].buffer.cap = what.part;
        slots[i].buffer.bytes = calloc(1, what.part);
        must(slots[i].buffer.bytes != 0, "no memory");
        easy[i] = bare_make(&slots[i]);
    }
    for (uint32_t i = 0; i < what.rounds; i++) {
        engine[i] = measure_engine(slots);
        bare[i] = measure_bare(m, easy, slots);
    }
    printf("{\"engine_us\": %.2f, \"bare_us\": %.2f, \"engine_ms\": %.2f, \"bare_ms\": "
           "%.2f}\n",
           find_median(engine, false), find_median(bare, false),
           find_median(engine, true), find_median(bare, true));
    return 0;
}
