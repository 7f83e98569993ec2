/*
 * port/sums.c - the checksums: four bytes before or after the bytes that they cover. The
 * bytes are copied, and their sum is computed in slices, which one item joins.
 */
#include <stdlib.h>
#include <string.h>

#include "port_int.h"

enum {
    SUM_BYTES = 4,
    SLICES_LEAST = 64, /* of a sum */
    SLICES_MOST = 1024,
    SLICES = 65536 /* wanted in all */
};

struct sum_self {
    struct k_sum sum; /* without places */
    uint64_t head;    /* bytes before the payload */
};

/* A group of jobs, as the kernels get it. */
struct work {
    struct port_call *call;
    struct port_block sums, runs;
    uint64_t n, most;
};

static uint64_t choose_slices(uint64_t n)
{
    const uint64_t each = SLICES / n;

    return each < SLICES_LEAST ? SLICES_LEAST : each > SLICES_MOST ? SLICES_MOST : each;
}

/* ---- launches -------------------- */

/* `at`: where the sums are, and `from` where the bytes are that they cover. */
static zarr_status launch_sums(const struct work *w, struct port_place at,
                               struct port_place from, zarr_error *err)
{
    struct port_lane *l = w->call->lane;
    const struct port_place slices = port_memory_place(&w->call->exec->scratch);
    const uint64_t each = choose_slices(w->n);
    const struct port_argument first[] = {PORT_ARG_BUFFER(from), PORT_ARG_BLOCK(w->sums),
                                          PORT_ARG_AT(slices), PORT_ARG_U64(w->n),
                                          PORT_ARG_U64(each)};
    const struct port_argument last[] = {PORT_ARG_BUFFER(at),
                                         PORT_ARG_BUFFER(from),
                                         PORT_ARG_BLOCK(w->sums),
                                         PORT_ARG_AT(slices),
                                         PORT_ARG_BLOCK(w->call->pending->status),
                                         PORT_ARG_U64(w->n),
                                         PORT_ARG_U64(each)};
    zarr_status st;

    if (w->n * each > w->call->exec->scratch.bytes / sizeof(k_u64))
        return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                               PORT_NAME ": too many checksums");
    st = port_launch(l, PORT_SUM_SLICES, first, 5, w->n * each, err);
    return st == ZARR_OK ? port_launch(l, PORT_SUM_END, last, 7, w->n, err) : st;
}

static zarr_status list_open(struct work *w, uint64_t n, zarr_error *err)
{
    const zarr_status st =
        port_stage(w->call->lane, n * sizeof(struct k_sum), &w->sums, err);

    return st == ZARR_OK
               ? port_stage(w->call->lane, n * sizeof(struct k_run), &w->runs, err)
               : st;
}

/* Adds a job: its sum is at `at`, and the bytes go from `src` to `dst`. */
static void list_add(struct work *w, uint64_t at, const struct k_run *run,
                     uint64_t number, int store)
{
    const struct sum_self *self = w->call->self;
    struct k_sum *s = (struct k_sum *)w->sums.host + w->n;

    *s = self->sum;
    s->src = run->src;
    s->bytes = run->bytes;
    s->at = at;
    s->number = (k_u32)number;
    s->store = store ? 1 : 0;
    ((struct k_run *)w->runs.host)[w->n++] = *run;
    w->most = run->bytes > w->most ? run->bytes : w->most;
}

static zarr_status launch_copies(const struct work *w, const struct port_item *x,
                                 zarr_error *err)
{
    return port_launch_runs(w->call->lane, x[0].dst, x[0].src, &w->runs, w->n, w->most,
                            err);
}

/* ---- both ways -------------------- */

static zarr_status check_group(struct port_call *c, const struct port_item *x, uint64_t n,
                               zarr_error *err)
{
    const struct sum_self *self = c->self;
    struct work w = {.call = c};
    zarr_status st = list_open(&w, n, err);

    for (uint64_t i = 0; i < n && st == ZARR_OK; i++) {
        const uint64_t bytes = x[i].job->src.bytes;

        if (bytes < SUM_BYTES || bytes - SUM_BYTES > x[i].job->dst.bytes) {
            x[i].job->dst_used = 0;
            port_note_status(c, x[i].number,
                             bytes < SUM_BYTES ? K_BAD_INPUT : K_TOO_LONG);
            continue;
        }
        const struct k_run run = {.src = x[i].src.at + self->head,
                                  .dst = x[i].dst.at,
                                  .bytes = bytes - SUM_BYTES};

        x[i].job->dst_used = run.bytes;
        list_add(&w, self->head ? x[i].src.at : run.src + run.bytes, &run, x[i].number,
                 0);
    }
    if (st == ZARR_OK && w.n > 0)
        st = launch_sums(&w, x[0].src, x[0].src, err);
    return st == ZARR_OK && w.n > 0 ? launch_copies(&w, x, err) : st;
}

static zarr_status sum_group(struct port_call *c, const struct port_item *x, uint64_t n,
                             zarr_error *err)
{
    const struct sum_self *self = c->self;
    struct work w = {.call = c};
    zarr_status st = list_open(&w, n, err);

    for (uint64_t i = 0; i < n && st == ZARR_OK; i++) {
        const struct k_run run = {.src = x[i].src.at,
                                  .dst = x[i].dst.at + self->head,
                                  .bytes = x[i].job->src.bytes};

        if (x[i].job->dst.bytes < SUM_BYTES ||
            x[i].job->dst.bytes - SUM_BYTES < run.bytes)
            return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                                   PORT_NAME ": no room for a checksum");
        x[i].job->dst_used = run.bytes + SUM_BYTES;
        list_add(&w, self->head ? x[i].dst.at : run.dst + run.bytes, &run, x[i].number,
                 1);
    }
    if (st == ZARR_OK)
        st = launch_sums(&w, x[0].dst, x[0].src, err);
    return st == ZARR_OK ? launch_copies(&w, x, err) : st;
}

static zarr_status sum_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                              zarr_codec_exec *exec, zarr_error *err)
{
    static const struct port_codec codec = {
        .name = "checksum", .results = PORT_STATUSES, .group = check_group};

    return port_run(&codec, self, jobs, n, exec, err);
}

static zarr_status sum_encode(void *self, zarr_codec_job *jobs, uint64_t n,
                              zarr_codec_exec *exec, zarr_error *err)
{
    static const struct port_codec codec = {
        .name = "checksum", .results = PORT_STATUSES, .group = sum_group};

    return port_run(&codec, self, jobs, n, exec, err);
}

/* ---- the tables -------------------- */

static const struct {
    const char *codec;
    uint32_t kind, at_start;
} kinds[] = {{"crc32c", K_CRC32C, 0},
             {"crc32", K_CRC32, 1},
             {"adler32", K_ADLER32, 1},
             {"fletcher32", K_FLETCHER32, 0},
             {"jenkins_lookup3", K_LOOKUP3, 0}};

static void read_lookup3(struct k_sum *s, const zarr_codec_spec *spec)
{
    int64_t prefix[K_PREFIX] = {0}, start = 0, n;

    (void)port_host->spec_i64(spec, "initval", &start);
    n = port_host->spec_i64s(spec, "prefix", prefix, K_PREFIX);
    s->start = (k_u32)start;
    s->prefix_bytes = n > 0 ? (k_u32)n : 0;
    for (int64_t i = 0; i < n && i < K_PREFIX; i++)
        s->prefix[i] = (k_u8)prefix[i];
}

static zarr_status sum_bind(void **self, const zarr_codec_spec *spec,
                            const zarr_codec_binding *to, zarr_error *err)
{
    const char *name = port_host->spec_name(spec);
    const char *location = port_host->spec_text(spec, "location");
    struct sum_self *s = calloc(1, sizeof *s);
    int start;
    size_t k = 0;

    (void)to;
    if (!s)
        return port_no_memory(err);
    while (k + 1 < sizeof kinds / sizeof kinds[0] && strcmp(kinds[k].codec, name) != 0)
        k++;
    start = location ? strcmp(location, "start") == 0 : (int)kinds[k].at_start;
    s->head = start ? SUM_BYTES : 0;
    s->sum.kind = kinds[k].kind;
    read_lookup3(&s->sum, spec);
    if (s->sum.prefix_bytes <= K_PREFIX) {
        *self = s;
        return ZARR_OK;
    }
    free(s);
    return port_host->fail(err, ZARR_ERR_UNSUPPORTED, PORT_NAME ": a long prefix");
}

/* At least n * choose_slices(n) slices, also for groups of fewer jobs. */
static uint64_t sum_scratch(void *self, uint64_t n, uint64_t max_out)
{
    const uint64_t all = n < SLICES / SLICES_LEAST ? SLICES : n * SLICES_LEAST;

    (void)self;
    (void)max_out;
    return all * sizeof(k_u64);
}

#define SUM(table, name)                                                                 \
    const zarr_codec_impl_vtable table = {.struct_size = sizeof table,                   \
                                          .caps = PORT_BOTH_WAYS,                        \
                                          .codec = name,                                 \
                                          .impl = PORT_NAME "." name,                    \
                                          .in_kinds = PORT_KINDS,                        \
                                          .out_kinds = PORT_KINDS,                       \
                                          .priority = 10,                                \
                                          .bind = sum_bind,                              \
                                          .scratch = sum_scratch,                        \
                                          .encode = sum_encode,                          \
                                          .decode = sum_decode,                          \
                                          .settle = port_settle,                         \
                                          .close = free}
SUM(port_crc32c, "crc32c");
SUM(port_crc32, "crc32");
SUM(port_adler32, "adler32");
SUM(port_fletcher32, "fletcher32");
SUM(port_jenkins_lookup3, "jenkins_lookup3");
