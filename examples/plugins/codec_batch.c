/*
 * codec_batch.c - a codec that takes many chunks at once: "example.rle", which writes
 * equal neighbouring bytes as (length 1..255, byte). It asks for whole waves
 * (ZARR_CODEC_BATCH), sorts the chunks by their encoded size and begins with the longest,
 * so that no thread begins a long one at the end. A GPU or SIMD codec would also work on
 * the whole batch. The option {"example-rle": {"threads": 2}} bounds the threads.
 *
 * A second implementation, "cpu.watch", wraps the next one and says on standard error how
 * many chunks each call has. ZARRC_CODEC_PREFERENCE=example.rle=cpu.watch chooses it.
 *
 *     cc -shared -fPIC -o codec_batch.so codec_batch.c
 *     zarrc --plugin=./codec_batch.so create --codec=example.rle ...
 */
#include <zarrc/plugin/plugin.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const zarr_host *host;
static int64_t threads; /* the option: at most so many; 0: one for each core */

/* The worst case is two bytes for each byte. */
static zarr_status resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                           zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    (void)spec;
    (void)fill_out;
    if (in->n_bytes > UINT64_MAX / 2)
        return host->fail(err, ZARR_ERR_LIMIT, "example.rle: the chunk is too large");
    out->n_bytes = 2 * in->n_bytes;
    out->exact = 0;
    return ZARR_OK;
}

static const zarr_codec_spec_vtable meaning = {
    .struct_size = sizeof meaning,
    .flags = ZARR_CODEC_SPEC_EXPERIMENTAL,
    .name = "example.rle",
    .kind = ZARR_CODEC_BYTES_BYTES,
    .resolve = resolve, /* no configuration: canonical is NULL */
};

static unsigned char *block_bytes(const zarr_memory *mem)
{
    return (unsigned char *)mem->handle + mem->offset;
}

static void encode_one(zarr_codec_job *job)
{
    const unsigned char *src = block_bytes(&job->src);
    unsigned char *dst = block_bytes(&job->dst);
    uint64_t at = 0, used = 0;

    job->status = job->dst.bytes < 2 * job->src.bytes ? ZARR_ERR_INTERNAL : ZARR_OK;
    while (job->status == ZARR_OK && at < job->src.bytes) {
        uint64_t n = 1;

        while (n < 255 && at + n < job->src.bytes && src[at + n] == src[at])
            n++;
        dst[used++] = (unsigned char)n;
        dst[used++] = src[at];
        at += n;
    }
    job->dst_used = used;
}

static void decode_one(zarr_codec_job *job)
{
    const unsigned char *src = block_bytes(&job->src);
    uint64_t used = 0;

    job->status = job->src.bytes % 2 ? ZARR_ERR_CORRUPT : ZARR_OK;
    for (uint64_t at = 0; job->status == ZARR_OK && at < job->src.bytes; at += 2) {
        if (src[at] == 0 || src[at] > job->dst.bytes - used) /* stored bytes may lie */
            job->status = ZARR_ERR_CORRUPT;
        else
            memset(block_bytes(&job->dst) + used, src[at + 1], src[at]);
        used += job->status == ZARR_OK ? src[at] : 0;
    }
    job->dst_used = used;
}

/* ---- the batch ---- */

struct batch {
    zarr_codec_job **order; /* the longest first */
    int encode;
};

static int longer_first(const void *a, const void *b)
{
    const uint64_t x = (*(zarr_codec_job *const *)a)->src.bytes;
    const uint64_t y = (*(zarr_codec_job *const *)b)->src.bytes;

    return (x < y) - (x > y);
}

static zarr_status one(void *arg, uint64_t i, uint32_t worker, zarr_error *err)
{
    const struct batch *b = (const struct batch *)arg;

    (void)worker;
    (void)err;
    if (b->encode)
        encode_one(b->order[i]);
    else
        decode_one(b->order[i]);
    return ZARR_OK; /* each job has its own status */
}

static zarr_status run(zarr_codec_job *jobs, uint64_t n, zarr_codec_exec *exec,
                       int encode, zarr_error *err)
{
    /* scratch() asked for this memory: nothing is allocated here. */
    struct batch b = {(zarr_codec_job **)(void *)block_bytes(&exec->scratch), encode};
    zarr_status st = ZARR_OK;

    for (uint64_t i = 0; i < n; i++)
        b.order[i] = &jobs[i];
    qsort(b.order, (size_t)n, sizeof *b.order, longer_first);
    st = host->parallel(n, (uint32_t)threads, one, &b, err);
    for (uint64_t i = 0; i < n && st == ZARR_OK; i++)
        if (jobs[i].status != ZARR_OK)
            st = host->fail(err, jobs[i].status, "example.rle: these are no runs");
    return st;
}

static zarr_status encode(void *self, zarr_codec_job *jobs, uint64_t n,
                          zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    return run(jobs, n, exec, 1, err);
}

static zarr_status decode(void *self, zarr_codec_job *jobs, uint64_t n,
                          zarr_codec_exec *exec, zarr_error *err)
{
    (void)self;
    return run(jobs, n, exec, 0, err);
}

static zarr_status bind(void **self, const zarr_codec_spec *spec,
                        const zarr_codec_binding *to, zarr_error *err)
{
    (void)spec;
    (void)to;
    (void)err;
    *self = NULL;
    return ZARR_OK;
}

static uint64_t scratch(void *self, uint64_t n, uint64_t max_out)
{
    (void)self;
    (void)max_out;
    return n * sizeof(zarr_codec_job *);
}

static const zarr_codec_impl_vtable way = {
    .struct_size = sizeof way,
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_BATCH |
            ZARR_CODEC_SAFE | ZARR_CODEC_DETERMINISTIC,
    .codec = "example.rle",
    .impl = "cpu.example",
    .in_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),
    .out_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),
    .bind = bind,
    .scratch = scratch,
    .encode = encode,
    .decode = decode,
};

/* ---- an implementation that wraps the next one ---- */

static zarr_status watch_bind(void **self, const zarr_codec_spec *spec,
                              const zarr_codec_binding *to, zarr_error *err)
{
    zarr_codec_next *next = NULL;
    const zarr_status st = host->next_open(&next, to, err);

    (void)spec;
    *self = next;
    return st;
}

static uint64_t watch_scratch(void *self, uint64_t n, uint64_t max_out)
{
    return host->next_scratch((zarr_codec_next *)self, n, max_out);
}

static zarr_status watch_run(void *self, zarr_codec_job *jobs, uint64_t n,
                             zarr_codec_exec *exec, zarr_error *err)
{
    const zarr_codec_next *next = (const zarr_codec_next *)self;

    fprintf(stderr, "example.rle: %s does %llu chunks\n", host->next_name(next),
            (unsigned long long)n);
    return host->next_run(next, exec, jobs, n, err);
}

static void watch_close(void *self)
{
    host->next_close((zarr_codec_next *)self);
}

static const zarr_codec_impl_vtable watch = {
    .struct_size = sizeof watch,
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_BATCH |
            ZARR_CODEC_SAFE | ZARR_CODEC_DETERMINISTIC,
    .codec = "example.rle",
    .impl = "cpu.watch",
    .in_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),
    .out_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),
    .priority = -1, /* only by preference */
    .bind = watch_bind,
    .scratch = watch_scratch,
    .encode = watch_run,
    .decode = watch_run,
    .close = watch_close,
};

static zarr_status load(const zarr_host *given, zarr_context *ctx, void **self,
                        zarr_error *err)
{
    zarr_status st;

    (void)self;
    host = given;
    if (host->option_i64(ctx, "threads", &threads) && (threads < 0 || threads > 1024))
        return host->fail(err, ZARR_ERR_INVALID,
                          "example-rle: `threads` is %lld, must be 0 to 1024",
                          (long long)threads);
    st = host->register_codec_spec(ctx, &meaning, err);
    if (st == ZARR_OK)
        st = host->register_codec_impl(ctx, &way, err);
    return st != ZARR_OK ? st : host->register_codec_impl(ctx, &watch, err);
}

static const zarr_plugin plugin = {.struct_size = sizeof plugin,
                                   .abi = ZARR_PLUGIN_ABI,
                                   .name = "example-rle",
                                   .version = "1.0",
                                   .license = "Apache-2.0",
                                   .load = load};

const zarr_plugin *zarr_plugin_v1(void)
{
    return &plugin;
}
