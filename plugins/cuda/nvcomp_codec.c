/*
 * cuda/nvcomp_codec.c - the codecs that nvCOMP does: zstd, gzip, zlib, snappy, lz4 and
 * KvikIO's nvcomp_batch. A chunk is one stream, some bytes after its beginning. Chunks
 * that have other forms, or that nvCOMP cannot do, are declined, so that the next
 * implementation does them and says what is wrong. Only for GDeflate there is none. The
 * forms are checked on the host before chunks are copied from there (cuda.nvcomp), or by
 * a kernel where a store has brought them to the device (cuda.nvcomp.device).
 * Thread class: an instance is shared by threads; a call uses one lane.
 */
#include "nvcomp.h"

#include <stdlib.h>
#include <string.h>

enum {
    DECODE_MOST = INT32_MAX,        /* bytes of a stream, of all formats */
    ENCODE_MOST = 16 * 1024 * 1024, /* what all versions of nvCOMP take */
    MEMORY_PART = 4,                /* of a device, at most for one chunk */
    LZ4_HEAD = 4,
    ZLIB_HEAD = 2,
    ZLIB_TAIL = 4
};

/* How a chunk is a stream: bytes before and after it. */
struct form {
    enum nvcomp_format format;
    uint32_t head, tail;
    uint32_t how; /* for k_stream_fits(); K_STORED: it has no header */
};

struct nvcomp_self {
    struct form form;
    int encode;
    uint64_t decoded, encoded; /* bytes of a chunk; of its encoded form at most */
};

/* ---- binding -------------------- */

static int is(const char *a, const char *b)
{
    return a && strcmp(a, b) == 0;
}

static struct form batch_form(const zarr_codec_spec *spec)
{
    const char *name = port_host->spec_text(spec, "algorithm");
    int head = 0;

    (void)port_host->spec_bool(spec, "has_header", &head);
    if (is(name, "zstd"))
        return (struct form){NVCOMP_ZSTD, 0, 0, K_ZSTD};
    if (is(name, "deflate"))
        return (struct form){NVCOMP_DEFLATE, 0, 0, K_STORED};
    if (is(name, "snappy"))
        return (struct form){NVCOMP_SNAPPY, 0, 0, K_SNAPPY};
    if (is(name, "gdeflate"))
        return (struct form){NVCOMP_GDEFLATE, 0, 0, K_STORED};
    if (head)
        return (struct form){NVCOMP_LZ4, LZ4_HEAD, 0, K_LZ4_HEADED};
    return (struct form){NVCOMP_LZ4, 0, 0, K_STORED};
}

/* Bytes of scratch memory that a call for `n` chunks needs on the first device that is in
 * use. `total`: the memory of that device. */
static uint64_t scratch_bytes(const struct nvcomp_self *self, uint64_t n,
                              uint64_t most_in, uint64_t *total)
{
    uint64_t bytes = 0;

    for (int32_t i = 0; i < driver_devices() && bytes == 0; i++) {
        struct cuda_device *d = device_usable(i);
        zarr_device_facts facts = {.struct_size = sizeof facts};
        struct place was;

        if (!d || device_enter(d, &was, NULL) != ZARR_OK)
            continue;
        bytes =
            nvcomp_scratch(self->form.format, self->encode, n, self->decoded, most_in);
        device_leave(&was);
        if (total && device_describe(i, &facts, NULL) == ZARR_OK)
            *total = facts.total_bytes;
    }
    return bytes;
}

/* Whether one chunk takes a large part of the device: the encoder of zstd needs more than
 * 1 GB on an H100. */
static int is_too_large(const struct nvcomp_self *self)
{
    uint64_t total = 0;
    const uint64_t bytes = scratch_bytes(self, 1, self->decoded, &total);

    return total > 0 && bytes > total / MEMORY_PART;
}

static zarr_status bind_as(struct form form, void **out, const zarr_codec_binding *to,
                           zarr_error *err)
{
    const uint64_t most = to->encode ? ENCODE_MOST : DECODE_MOST;
    struct nvcomp_self *self;
    zarr_status st = nvcomp_start(err);

    if (st != ZARR_OK)
        return st;
    if (!nvcomp_find(form.format, (int)to->encode))
        return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                               "nvCOMP: this version lacks the format");
    if (!to->decoded->exact || to->decoded->n_bytes == 0 || to->decoded->n_bytes > most)
        return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                               "nvCOMP: only chunks of a fixed length up to %llu",
                               (unsigned long long)most);
    self = calloc(1, sizeof *self);
    if (!self)
        return port_host->fail(err, ZARR_ERR_NO_MEMORY, "nvCOMP: no memory");
    self->form = form;
    self->encode = (int)to->encode;
    self->decoded = to->decoded->n_bytes;
    self->encoded = to->encoded->n_bytes;
    if (is_too_large(self)) {
        free(self);
        return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                               "nvCOMP: it needs too much memory for this device");
    }
    *out = self;
    return ZARR_OK;
}

#define BINDS(name, ...)                                                                 \
    static zarr_status name##_bind(void **out, const zarr_codec_spec *spec,              \
                                   const zarr_codec_binding *to, zarr_error *err)        \
    {                                                                                    \
        (void)spec;                                                                      \
        return bind_as((struct form){__VA_ARGS__}, out, to, err);                        \
    }
BINDS(gzip, NVCOMP_GZIP, 0, 0, K_GZIP)
BINDS(zlib, NVCOMP_DEFLATE, ZLIB_HEAD, ZLIB_TAIL, K_ZLIB)
BINDS(snappy, NVCOMP_SNAPPY, 0, 0, K_SNAPPY)
BINDS(lz4, NVCOMP_LZ4, LZ4_HEAD, 0, K_LZ4_HEADED)

/* nvCOMP's encoder writes no checksum. */
static zarr_status zstd_bind(void **out, const zarr_codec_spec *spec,
                             const zarr_codec_binding *to, zarr_error *err)
{
    int sum = 0;

    if (to->encode && port_host->spec_bool(spec, "checksum", &sum) && sum)
        return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                               "nvCOMP: it writes no checksum of zstd");
    return bind_as((struct form){NVCOMP_ZSTD, 0, 0, K_ZSTD}, out, to, err);
}

static zarr_status batch_bind(void **out, const zarr_codec_spec *spec,
                              const zarr_codec_binding *to, zarr_error *err)
{
    return bind_as(batch_form(spec), out, to, err);
}

static void self_close(void *self)
{
    free(self);
}

/* ---- what it takes -------------------- */

static int has_stream(const struct nvcomp_self *self, uint64_t n)
{
    return n > (uint64_t)self->form.head + self->form.tail && n <= DECODE_MOST;
}

/* Some valid streams destroy the context of the device, such as a skippable frame of zstd
 * before another one, so only those are taken whose headers were seen: here, or by
 * check_on_device(). */
static int self_accepts(void *self_ptr, const zarr_codec_job *job)
{
    const struct nvcomp_self *self = self_ptr;
    const uint8_t *p = (const uint8_t *)job->src.handle + job->src.offset;
    const uint64_t n = job->src.bytes;

    if (job->src.device_type != ZARR_DEVICE_CPU || !has_stream(self, n))
        return 0;
    return k_stream_fits(p, n, self->decoded, self->form.how);
}

/* The longest output of the encoder, with what is before and after it. */
static uint64_t most_out(const struct nvcomp_self *self)
{
    const struct nvcomp_way *w = nvcomp_find(self->form.format, 1);
    const struct nvcomp_options how = {{0}};
    size_t most = 0;

    if (!w || w->most((size_t)self->decoded, how, &most) != 0)
        return 0;
    return (most + 255) / 256 * 256;
}

/* The memory of an encoder also has its outputs, because they may be longer than the room
 * that a job has. */
static uint64_t self_scratch(void *self_ptr, uint64_t n, uint64_t most)
{
    const struct nvcomp_self *self = self_ptr;
    const uint64_t in = self->encode ? self->decoded
                        : self->encoded < most + most / 8 + 65536
                            ? self->encoded
                            : most + most / 8 + 65536;
    return scratch_bytes(self, n, in, NULL) +
           (self->encode ? n * most_out(self) + 256 : 0);
}

/* ---- calls -------------------- */

struct pending {
    struct nvcomp_results results;
    uint64_t *job; /* of stream i */
    uint64_t n;
};

struct call {
    const struct nvcomp_self *self;
    struct cuda_lane *lane;
    zarr_codec_job *jobs;
    uint64_t n;
    zarr_codec_exec *exec;
    struct nvcomp_stream *stream;
    struct pending *pending;
    CUdeviceptr outputs; /* encoding: where they are first */
    uint64_t output_step;
    int unseen; /* the host has not checked the headers */
};

static void pending_free(struct pending *p)
{
    if (!p)
        return;
    nvcomp_results_close(&p->results);
    free(p->job);
    free(p);
}

static zarr_status decline(zarr_codec_job *job, zarr_status st, zarr_error *err)
{
    job->status = ZARR_ERR_UNSUPPORTED;
    return st != ZARR_OK ? st
                         : port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                                           "nvCOMP: a chunk of another form");
}

/* The streams of the jobs that can be done; the others get a status, the first of which
 * is returned in *declined. */
static void call_streams(struct call *c, zarr_status *declined, zarr_error *err)
{
    const struct form *f = &c->self->form;
    const uint64_t around = (uint64_t)f->head + f->tail;

    for (uint64_t i = 0; i < c->n; i++) {
        zarr_codec_job *job = &c->jobs[i];
        struct nvcomp_stream *s = &c->stream[c->pending->n];

        if (!port_reaches(&job->src) || !port_reaches(&job->dst) ||
            job->dst.device_id != c->lane->device->number ||
            (!c->self->encode && (!has_stream(c->self, job->src.bytes) ||
                                  job->dst.bytes != c->self->decoded)) ||
            (c->self->encode && job->dst.bytes == 0)) {
            *declined = decline(job, *declined, err);
            continue;
        }
        *s = (struct nvcomp_stream){.src = device_address(&job->src),
                                    .dst = device_address(&job->dst),
                                    .src_bytes = job->src.bytes,
                                    .room = job->dst.bytes};
        if (c->self->encode) {
            s->dst = c->outputs + c->pending->n * c->output_step;
            s->room = c->output_step;
        } else {
            s->src += f->head;
            s->src_bytes -= around;
            job->dst_used = job->dst.bytes;
        }
        c->pending->job[c->pending->n++] = i;
    }
}

/* Declines the chunks whose headers a kernel did not accept, and keeps the others. */
static void keep_checked(struct call *c, const uint32_t *status, zarr_status *declined,
                         zarr_error *err)
{
    struct pending *p = c->pending;
    uint64_t left = 0;

    for (uint64_t i = 0; i < p->n; i++)
        if (status[i] == K_OK) {
            c->stream[left] = c->stream[i];
            p->job[left++] = p->job[i];
        } else {
            *declined = decline(&c->jobs[p->job[i]], *declined, err);
        }
    p->n = left;
}

/* Has a kernel check the headers, and waits for what it says. */
static zarr_status check_on_device(struct call *c, zarr_status *declined, zarr_error *err)
{
    struct port_lane *l = &c->lane->port;
    const uint64_t n = c->pending->n;
    struct port_block list = {0}, says = {0};
    const struct port_argument a[] = {{.kind = PORT_BUFFER},
                                      {.kind = PORT_BLOCK, .block = &list},
                                      {.kind = PORT_BLOCK, .block = &says},
                                      {.kind = PORT_U64, .number = n}};
    zarr_status st;

    if (n == 0 || c->self->form.how == K_STORED)
        return ZARR_OK;
    st = port_stage(l, n * sizeof(struct k_stream), &list, err);
    if (st == ZARR_OK)
        st = port_result_open(l, n * sizeof(uint32_t), &says, err);
    if (st != ZARR_OK)
        return st;
    for (uint64_t i = 0; i < n; i++) {
        const zarr_memory *src = &c->jobs[c->pending->job[i]].src;

        ((struct k_stream *)list.host)[i] =
            (struct k_stream){.src = device_address(src),
                              .src_bytes = src->bytes,
                              .dst_bytes = c->self->decoded,
                              .how = c->self->form.how,
                              .number = (k_u32)i};
    }
    st = port_launch(l, PORT_CHECK_STREAMS, a, 4, n, err);
    if (st == ZARR_OK)
        st = port_result_fetch(l, &says, err);
    if (st == ZARR_OK)
        st = port_wait(l, err);
    else
        (void)port_wait(l, NULL);
    if (st == ZARR_OK)
        keep_checked(c, says.host, declined, err);
    port_result_close(&says);
    return st;
}

/* An output that is longer than its room is cut, and its job declined when its length is
 * known. */
static zarr_status call_outputs(const struct call *c, zarr_error *err)
{
    CUresult rc = CUDA_SUCCESS;

    for (uint64_t i = 0; i < c->pending->n && rc == CUDA_SUCCESS; i++) {
        const zarr_memory *dst = &c->jobs[c->pending->job[i]].dst;
        const uint64_t bytes = dst->bytes < c->output_step ? dst->bytes : c->output_step;

        rc = cuda.cuMemcpyAsync(device_address(dst), c->stream[i].dst, (size_t)bytes,
                                c->lane->stream);
    }
    return device_check(c->lane->device, err, "encoded chunks", rc);
}

static zarr_status call_queue(struct call *c, zarr_status *declined, zarr_error *err)
{
    const zarr_memory *scratch = &c->exec->scratch;
    struct nvcomp_batch b = {.format = c->self->form.format,
                             .encode = c->self->encode,
                             .stream = c->stream,
                             .most = c->self->decoded,
                             .scratch = device_address(scratch),
                             .scratch_bytes = scratch->bytes};
    zarr_status st = ZARR_OK;

    if (c->self->encode) { /* the outputs are at the end */
        uint64_t bytes;

        c->output_step = most_out(c->self);
        bytes = c->n * c->output_step;
        if (bytes == 0 || bytes > scratch->bytes)
            return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                                   "nvCOMP: no memory for its outputs");
        b.scratch_bytes = scratch->bytes - bytes;
        b.scratch_bytes -= (b.scratch + b.scratch_bytes) % 256;
        c->outputs = b.scratch + b.scratch_bytes;
    }
    call_streams(c, declined, err);
    if (c->unseen)
        st = check_on_device(c, declined, err);
    b.n = c->pending->n;
    if (st == ZARR_OK && b.n > 0)
        st = nvcomp_queue(c->lane, &b, &c->pending->results, err);
    return st == ZARR_OK && b.n > 0 && c->self->encode ? call_outputs(c, err) : st;
}

/* Gives the jobs their lengths and statuses, after the lane was waited for. */
static zarr_status call_end(const struct nvcomp_self *self, struct pending *p,
                            zarr_codec_job *jobs, zarr_error *err)
{
    /* no other code decodes it, so that its damage is damage */
    const zarr_status bad = self->form.format == NVCOMP_GDEFLATE && !self->encode
                                ? ZARR_ERR_CORRUPT
                                : ZARR_ERR_UNSUPPORTED;
    zarr_status st = ZARR_OK;

    for (uint64_t i = 0; i < p->n; i++) {
        zarr_codec_job *job = &jobs[p->job[i]];
        const int status = nvcomp_status(&p->results, i);
        const uint64_t length = nvcomp_length(&p->results, i);

        if (status == 0 && self->encode && length > 0 && length <= job->dst.bytes) {
            job->dst_used = length;
            continue;
        }
        if (status == 0 && !self->encode && length == job->dst.bytes)
            continue;
        job->status = bad;
        if (st == ZARR_OK)
            st = port_host->fail(err, bad, "nvCOMP: status %d, %llu bytes", status,
                                 (unsigned long long)length);
    }
    pending_free(p);
    return st;
}

static zarr_status call_new(struct call *c, zarr_error *err)
{
    c->pending = calloc(1, sizeof *c->pending);
    c->stream = calloc((size_t)c->n, sizeof *c->stream);
    if (c->pending)
        c->pending->job = calloc((size_t)c->n, sizeof *c->pending->job);
    if (c->pending && c->stream && c->pending->job)
        return ZARR_OK;
    return port_host->fail(err, ZARR_ERR_NO_MEMORY, "nvCOMP: no memory for a batch");
}

static zarr_status run_call(struct call c, zarr_error *err)
{
    zarr_codec_exec *exec = c.exec;
    zarr_status declined = ZARR_OK, st, end;
    struct port_lane *lane = NULL;

    if (c.n == 0)
        return ZARR_OK;
    st = call_new(&c, err);
    if (st == ZARR_OK)
        st = port_begin(exec->stream, c.jobs[0].dst.device_id, &lane, err);
    if (st == ZARR_OK) {
        c.lane = (struct cuda_lane *)lane;
        st = call_queue(&c, &declined, err);
        if (st != ZARR_OK && exec->stream)
            (void)port_wait(lane, NULL); /* inputs may be on their way to the scratch */
        st = port_end(exec->stream, lane, st, err);
    }
    free(c.stream);
    if (st != ZARR_OK) {
        for (uint64_t i = 0; i < c.n; i++)
            c.jobs[i].status = st;
        pending_free(c.pending);
        return st;
    }
    if (exec->stream && c.pending->n > 0) {
        exec->pending = c.pending; /* moved */
        return declined;
    }
    end = call_end(c.self, c.pending, c.jobs, declined == ZARR_OK ? err : NULL);
    return declined != ZARR_OK ? declined : end;
}

static zarr_status self_run(void *self, zarr_codec_job *jobs, uint64_t n,
                            zarr_codec_exec *exec, zarr_error *err)
{
    return run_call((struct call){.self = self, .jobs = jobs, .n = n, .exec = exec}, err);
}

static zarr_status unseen_run(void *self, zarr_codec_job *jobs, uint64_t n,
                              zarr_codec_exec *exec, zarr_error *err)
{
    return run_call(
        (struct call){.self = self, .jobs = jobs, .n = n, .exec = exec, .unseen = 1},
        err);
}

static zarr_status self_settle(void *self, zarr_codec_job *jobs, uint64_t n,
                               zarr_codec_exec *exec, zarr_error *err)
{
    (void)n;
    return call_end(self, exec->pending, jobs, err);
}

/* ---- tables -------------------- */

#define DECODES ZARR_CODEC_CAN_DECODE
#define BOTH    (ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE)
#define V2      ZARR_CODEC_FOR_V2
#define V2_V3   (ZARR_CODEC_FOR_V2 | ZARR_CODEC_FOR_V3)

#define NVCOMP_TABLE(name, suffix, flags, binds, rank, looks, encodes, decodes)          \
    {                                                                                    \
        .struct_size = sizeof(zarr_codec_impl_vtable),                                   \
        .caps = (flags) | ZARR_CODEC_BATCH | ZARR_CODEC_ASYNC, .codec = name,            \
        .impl = "cuda.nvcomp" suffix, .in_kinds = PORT_KINDS, .out_kinds = PORT_KINDS,   \
        .priority = (rank), .bind = (binds), .accepts = (looks),                         \
        .scratch = self_scratch, .encode = (encodes), .decode = (decodes),               \
        .close = self_close, .settle = self_settle                                       \
    }
/* A codec whose chunks come from the host, and then the decoder of those that a store has
 * brought to the device. */
#define NVCOMP_TABLES(name, binds, can, formats, rank)                                   \
    NVCOMP_TABLE(name, "", (can) | (formats) | ZARR_CODEC_LOOKS, binds, rank,            \
                 self_accepts, (can) == BOTH ? self_run : NULL, self_run),               \
        NVCOMP_TABLE(name, ".device", DECODES | (formats), binds, rank, NULL, NULL,      \
                     unseen_run)
/* Our own decoder of lz4 has a higher priority. */
static const zarr_codec_impl_vtable tables[] = {
    NVCOMP_TABLES("zstd", zstd_bind, BOTH, V2_V3, 5),
    NVCOMP_TABLES("gzip", gzip_bind, BOTH, V2_V3, 5),
    NVCOMP_TABLES("zlib", zlib_bind, DECODES, V2_V3, 5),
    NVCOMP_TABLES("snappy", snappy_bind, DECODES, V2_V3, 5),
    NVCOMP_TABLES("lz4", lz4_bind, DECODES, V2_V3, 1),
    NVCOMP_TABLES("nvcomp_batch", batch_bind, DECODES, V2, 5),
};

zarr_status nvcomp_register(const zarr_host *host, zarr_context *ctx, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    for (size_t i = 0; i < sizeof tables / sizeof *tables && st == ZARR_OK; i++)
        st = host->register_codec_impl(ctx, &tables[i], err);
    return st;
}
