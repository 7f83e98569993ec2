/*
 * port/call.c - a call of a codec: its lane, its launches, and the statuses of its jobs,
 * which come back in one copy.
 */
#include "port_int.h"

#include <stdlib.h>
#include <string.h>

const struct port_kernel_fact port_kernel_facts[PORT_N_KERNELS] = {
#define PORT_KERNEL(id, name, per_stream) {name, per_stream},
    PORT_KERNELS(PORT_KERNEL)
#undef PORT_KERNEL
};

zarr_status port_no_memory(zarr_error *err)
{
    return port_host->fail(err, ZARR_ERR_NO_MEMORY, PORT_NAME ": no memory for a batch");
}

/* ---- statuses -------------------- */

/* A block for what kernels write for each job. */
static zarr_status results_open(struct port_call *c, enum port_results r, zarr_error *err)
{
    struct port_block *block = r == PORT_SIZES ? &c->pending->sizes : &c->pending->status;

    return r == PORT_NO_RESULTS
               ? ZARR_OK
               : port_result_open(c->lane, c->n * sizeof(k_u32), block, err);
}

void port_note_status(struct port_call *c, uint64_t job, uint32_t status)
{
    if (c->pending->early[job] == K_OK)
        c->pending->early[job] = status;
}

static const char *reason(k_u32 why)
{
    static const char *const reasons[K_STATUSES] = {
        [K_BAD_INPUT] = "the input ends too early",
        [K_BAD_OFFSET] = "a match begins before the output",
        [K_TOO_LONG] = "the output is too long",
        [K_TOO_SHORT] = "the output is too short",
        [K_BAD_LENGTH] = "the length in the header is wrong",
        [K_BAD_HEADER] = "the header is damaged",
        [K_BAD_SUM] = "the checksum differs",
        [K_BAD_PADDING] = "the count of padding bits is wrong",
        [K_UNSUPPORTED] = "the device does not know the format"};

    return why < K_STATUSES && reasons[why] ? reasons[why] : "unknown damage";
}

/* The lengths of outputs. A length of 0: it did not fit, so other code encodes the job.
 */
static void take_sizes(const struct port_pending *p, zarr_codec_job *jobs)
{
    const k_u32 *sizes = p->sizes.host;

    for (uint64_t i = 0; i < p->n; i++) {
        jobs[i].dst_used = sizes[i];
        if (sizes[i] == 0 && p->early[i] == K_OK)
            p->early[i] = K_UNSUPPORTED;
    }
}

/* Gives the jobs their statuses. */
static zarr_status report(const struct port_pending *p, zarr_codec_job *jobs,
                          zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (uint64_t i = 0; i < p->n; i++) {
        k_u32 why = p->early[i];

        if (why == K_OK && p->status.bytes > 0)
            why = ((const k_u32 *)p->status.host)[i];
        if (why == K_OK)
            continue;
        jobs[i].status =
            why == K_UNSUPPORTED || p->declines ? ZARR_ERR_UNSUPPORTED : ZARR_ERR_CORRUPT;
        if (st != ZARR_OK)
            continue;
        st = port_host->fail(err, jobs[i].status, "%s: %s", p->codec, reason(why));
        if (err)
            err->item = i;
    }
    return st;
}

static void pending_free(struct port_pending *p)
{
    if (p->status.bytes > 0)
        port_result_close(&p->status);
    if (p->sizes.bytes > 0)
        port_result_close(&p->sizes);
    free(p->early);
    free(p);
}

/* After the lane was waited for. */
static zarr_status pending_end(struct port_pending *p, zarr_codec_job *jobs,
                               zarr_error *err)
{
    zarr_status st;

    for (int f = 0; f < PORT_N_FORMATS; f++)
        if (p->inner[f])
            port_decoder->settle(p->inner[f], p->status.host);
    if (p->sizes.bytes > 0)
        take_sizes(p, jobs);
    st = report(p, jobs, err);
    pending_free(p);
    return st;
}

/* ---- jobs by their buffers -------------------- */

int port_same_buffers(const struct port_item *a, const struct port_item *b)
{
    return a->dst.buffer == b->dst.buffer && a->src.buffer == b->src.buffer;
}

static int by_buffers(const void *a, const void *b)
{
    const struct port_item *x = a, *y = b;
    const uintptr_t xd = (uintptr_t)x->dst.buffer, yd = (uintptr_t)y->dst.buffer;
    const uintptr_t xs = (uintptr_t)x->src.buffer, ys = (uintptr_t)y->src.buffer;

    if (xd != yd)
        return xd < yd ? -1 : 1;
    if (xs != ys)
        return xs < ys ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

zarr_status port_items(struct port_call *c, struct port_item **out, zarr_error *err)
{
    struct port_item *x = malloc((size_t)c->n * sizeof *x);
    int sorted = 1;

    *out = x;
    if (!x)
        return port_no_memory(err);
    for (uint64_t i = 0; i < c->n; i++) {
        zarr_codec_job *job = &c->jobs[i];

        x[i] = (struct port_item){.job = job, .number = i};
        if (port_reaches(&job->src))
            x[i].src = port_memory_place(&job->src);
        if (port_reaches(&job->dst))
            x[i].dst = port_memory_place(&job->dst);
        sorted = sorted && (i == 0 || port_same_buffers(&x[i - 1], &x[i]));
    }
    if (!sorted)
        qsort(x, (size_t)c->n, sizeof *x, by_buffers);
    return ZARR_OK;
}

static zarr_status call_groups(struct port_call *c, port_group_fn fn, zarr_error *err)
{
    struct port_item *x;
    zarr_status st = port_items(c, &x, err);

    for (uint64_t i = 0, k; i < c->n && st == ZARR_OK; i = k) {
        for (k = i + 1; k < c->n && port_same_buffers(&x[i], &x[k]); k++)
            ;
        st = fn(c, &x[i], k - i, err);
    }
    free(x);
    return st;
}

/* ---- calls -------------------- */

static zarr_status fail_all(zarr_codec_job *jobs, uint64_t n, zarr_status st)
{
    for (uint64_t i = 0; i < n; i++)
        jobs[i].status = st;
    return st;
}

static struct port_pending *pending_new(const char *codec, uint64_t n)
{
    struct port_pending *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->codec = codec;
    p->n = n;
    p->early = calloc((size_t)n, sizeof *p->early);
    if (p->early)
        return p;
    free(p);
    return NULL;
}

static const zarr_memory *device_side(const zarr_codec_job *job)
{
    return port_reaches(&job->dst) ? &job->dst : &job->src;
}

static zarr_status call_queue(const struct port_codec *codec, struct port_call *c,
                              zarr_error *err)
{
    const zarr_status st = results_open(c, codec->results, err);

    if (st != ZARR_OK)
        return st;
    return codec->group ? call_groups(c, codec->group, err) : codec->queue(c, err);
}

zarr_status port_run(const struct port_codec *codec, void *self, zarr_codec_job *jobs,
                     uint64_t n, zarr_codec_exec *exec, zarr_error *err)
{
    struct port_call c = {.self = self, .jobs = jobs, .n = n, .exec = exec};
    zarr_status st, end;

    if (n == 0)
        return ZARR_OK;
    c.pending = pending_new(codec->name, n);
    if (!c.pending)
        return fail_all(jobs, n, port_no_memory(err));
    st = port_begin(exec->stream, device_side(&jobs[0])->device_id, &c.lane, err);
    if (st != ZARR_OK) {
        pending_free(c.pending);
        return fail_all(jobs, n, st);
    }
    st = call_queue(codec, &c, err);
    if (st == ZARR_OK && c.pending->status.bytes > 0)
        st = port_result_fetch(c.lane, &c.pending->status, err);
    if (st == ZARR_OK && c.pending->sizes.bytes > 0)
        st = port_result_fetch(c.lane, &c.pending->sizes, err);
    if (st != ZARR_OK && exec->stream)
        (void)port_wait(c.lane, NULL); /* what was queued still writes its statuses */
    st = port_end(exec->stream, c.lane, st, err);
    if (st == ZARR_OK && exec->stream) {
        exec->pending = c.pending; /* moved */
        return ZARR_OK;
    }
    end = pending_end(c.pending, jobs, st == ZARR_OK ? err : NULL);
    return st == ZARR_OK ? end : fail_all(jobs, n, st);
}

zarr_status port_settle(void *self, zarr_codec_job *jobs, uint64_t n,
                        zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    (void)n;
    return pending_end(exec->pending, jobs, err);
}

/* ---- launches -------------------- */

zarr_status port_stage_empty(struct port_lane *l, uint64_t bytes, struct port_block *out,
                             zarr_error *err)
{
    const zarr_status st = port_stage(l, bytes, out, err);

    if (st == ZARR_OK)
        memset(out->host, 0, (size_t)bytes);
    return st;
}

static uint64_t whole_groups(uint64_t items)
{
    enum {
        GROUP = 256
    };

    return (items / GROUP + (items % GROUP != 0)) * GROUP;
}

uint64_t port_each(uint64_t n, uint64_t most)
{
    enum {
        ITEMS = 1 << 21, /* in all: several times what a device runs at a time */
        BYTES = 32       /* for each item */
    };
    const uint64_t wanted = whole_groups(ITEMS / n + 1);
    const uint64_t useful = whole_groups(most / BYTES + 1);

    return wanted < useful ? wanted : useful;
}

zarr_status port_launch_decode(struct port_lane *l, struct port_place dst,
                               struct port_place src, const struct port_block *streams,
                               uint64_t n, const struct port_block *status,
                               zarr_error *err)
{
    const struct port_argument a[] = {PORT_ARG_BUFFER(dst), PORT_ARG_BUFFER(src),
                                      PORT_ARG_BLOCK(*streams), PORT_ARG_BLOCK(*status),
                                      PORT_ARG_U64(n)};

    return port_launch(l, PORT_DECODE, a, 5, n * port_lanes(), err);
}

zarr_status port_launch_encode(struct port_lane *l, struct port_place dst,
                               struct port_place src, const struct port_block *streams,
                               uint64_t n, const struct port_block *sizes,
                               zarr_error *err)
{
    const struct port_argument a[] = {PORT_ARG_BUFFER(dst), PORT_ARG_BUFFER(src),
                                      PORT_ARG_BLOCK(*streams), PORT_ARG_BLOCK(*sizes),
                                      PORT_ARG_U64(n)};

    return port_launch(l, PORT_ENCODE, a, 5, n * port_lanes(), err);
}

zarr_status port_launch_runs(struct port_lane *l, struct port_place dst,
                             struct port_place src, const struct port_block *runs,
                             uint64_t n, uint64_t most, zarr_error *err)
{
    const uint64_t each = port_each(n, most);
    const struct port_argument a[] = {PORT_ARG_BUFFER(dst), PORT_ARG_BUFFER(src),
                                      PORT_ARG_BLOCK(*runs), PORT_ARG_U64(n),
                                      PORT_ARG_U64(each)};

    return port_launch(l, PORT_COPY_RUNS, a, 5, n * each, err);
}

zarr_status port_launch_planes(struct port_lane *l, enum port_kernel k,
                               const struct port_planes *p, zarr_error *err)
{
    const uint64_t each = port_each(p->n, p->most);
    const struct port_argument a[] = {PORT_ARG_BUFFER(p->dst), PORT_ARG_BUFFER(p->src),
                                      PORT_ARG_BLOCK(*p->list), PORT_ARG_U64(p->n),
                                      PORT_ARG_U64(each)};

    return port_launch(l, k, a, 5, p->n * each, err);
}
