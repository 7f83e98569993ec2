/*
 * codec_xor.c - the simplest codec: "example.xor", which combines every byte with `key`
 * by exclusive or. It has a specification (its configuration and sizes) and an
 * implementation (for host memory, one chunk at a time, on any thread).
 *
 *     cc -shared -fPIC -o codec_xor.so codec_xor.c
 *     zarrc --plugin=./codec_xor.so create --codec=example.xor:key=90 ...
 */
#include <zarrc/plugin/plugin.h>

#include <stdio.h>

static const zarr_host *host;

static zarr_status canonical(const zarr_codec_spec *raw, int format, char *text,
                             size_t cap, size_t *text_bytes, zarr_error *err)
{
    int64_t key = 0;
    const char *member = host->spec_member(raw, 0);

    (void)format;
    if (!member || host->spec_member(raw, 1) || host->spec_i64(raw, "key", &key) != 0 ||
        key < 0 || key > 255)
        return host->fail(err, ZARR_ERR_INVALID,
                          "example.xor: `key`, from 0 to 255, and nothing else");
    *text_bytes = (size_t)snprintf(text, cap, "{\"key\":%d}", (int)key);
    return ZARR_OK;
}

/* The output has the length of the input: *out arrives as a copy of *in. */
static zarr_status resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                           zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    (void)spec;
    (void)in;
    (void)out;
    (void)fill_out;
    (void)err;
    return ZARR_OK;
}

static const zarr_codec_spec_vtable meaning = {
    .struct_size = sizeof meaning,
    .flags = ZARR_CODEC_SPEC_EXPERIMENTAL,
    .name = "example.xor",
    .kind = ZARR_CODEC_BYTES_BYTES,
    .canonical = canonical,
    .resolve = resolve,
};

/* ---- implementation ---- */

static zarr_status bind(void **self, const zarr_codec_spec *spec,
                        const zarr_codec_binding *to, zarr_error *err)
{
    int64_t key = 0;

    (void)to;
    if (host->spec_i64(spec, "key", &key) != 0)
        return host->fail(err, ZARR_ERR_INTERNAL, "example.xor: no key");
    *self = (void *)(uintptr_t)key; /* the whole state, so that close is NULL */
    return ZARR_OK;
}

static zarr_status run(void *self, zarr_codec_job *jobs, uint64_t n,
                       zarr_codec_exec *exec, zarr_error *err)
{
    const unsigned char key = (unsigned char)(uintptr_t)self;
    zarr_status first = ZARR_OK;

    (void)exec;
    for (uint64_t k = 0; k < n; k++) { /* n is 1: no ZARR_CODEC_BATCH below */
        zarr_codec_job *job = &jobs[k];
        const unsigned char *src =
            (const unsigned char *)job->src.handle + job->src.offset;
        unsigned char *dst = (unsigned char *)job->dst.handle + job->dst.offset;

        job->status = ZARR_OK;
        if (job->src.bytes > job->dst.bytes)
            job->status = host->fail(err, ZARR_ERR_CORRUPT,
                                     "example.xor: more bytes than the chunk has");
        for (uint64_t i = 0; job->status == ZARR_OK && i < job->src.bytes; i++)
            dst[i] = src[i] ^ key;
        job->dst_used = job->src.bytes;
        first = first != ZARR_OK ? first : job->status;
    }
    return first;
}

static const zarr_codec_impl_vtable way = {
    .struct_size = sizeof way,
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE |
            ZARR_CODEC_DETERMINISTIC,
    .codec = "example.xor",
    .impl = "cpu.example",
    .in_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),
    .out_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),
    .bind = bind,
    .encode = run,
    .decode = run,
};

static zarr_status load(const zarr_host *given, zarr_context *ctx, void **self,
                        zarr_error *err)
{
    zarr_status st;

    (void)self;
    host = given;
    st = host->register_codec_spec(ctx, &meaning, err);
    return st != ZARR_OK ? st : host->register_codec_impl(ctx, &way, err);
}

static const zarr_plugin plugin = {.struct_size = sizeof plugin,
                                   .abi = ZARR_PLUGIN_ABI,
                                   .name = "example-xor",
                                   .version = "1.0",
                                   .license = "Apache-2.0",
                                   .load = load};

const zarr_plugin *zarr_plugin_v1(void)
{
    return &plugin;
}
