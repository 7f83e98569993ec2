/*
 * codec_planes.c - a codec around other codecs: "example.planes" cuts elements into
 * planes of equal bytes, as a shuffle does, and encodes each plane by the chain `codecs`.
 * An encoded chunk has, for each plane, its length (8 bytes, little-endian) and the
 * encoded plane. The size of elements is a member of the configuration, which v2 calls
 * `itemsize`; if it is missing, the array tells it.
 *
 *     cc -shared -fPIC -o codec_planes.so codec_planes.c
 *     zarrc --plugin=./codec_planes.so create \
 *         --codec='{"name":"example.planes","configuration":{"codecs":["zstd"]}}' ...
 */
#include <zarrc/plugin/plugin.h>

#include <stdio.h>

enum {
    HEAD = 8
};
static const zarr_host *host;
static const char *const chains[] = {"codecs", NULL};

/* ---- specification ---- */

static int64_t read_size(const zarr_codec_spec *spec, const char *member)
{
    int64_t size = 0; /* not told */

    (void)host->spec_i64(spec, member, &size);
    return size;
}

static size_t put(const zarr_codec_spec *spec, const char *member, int64_t size,
                  char *text, size_t cap)
{
    char number[48] = "";

    if (size > 0)
        (void)snprintf(number, sizeof number, "\"%s\":%d,", member, (int)size);
    return (size_t)snprintf(text, cap, "{%s\"codecs\":%s}", number,
                            host->spec_chain_json(spec, "codecs"));
}

static zarr_status canonical(const zarr_codec_spec *raw, int format, char *text,
                             size_t cap, size_t *text_bytes, zarr_error *err)
{
    const int v2 = format == 2 && read_size(raw, "itemsize") != 0;
    const int64_t size = read_size(raw, v2 ? "itemsize" : "elementsize");
    int array = 0;

    if (host->spec_chain_codecs(raw, "codecs", &array) < 0 || array || size < 0 ||
        size > 1024)
        return host->fail(err, ZARR_ERR_INVALID,
                          "example.planes: `codecs` from bytes to bytes, and a size of "
                          "elements up to 1024");
    *text_bytes = put(raw, "elementsize", size, text, cap);
    return ZARR_OK;
}

static zarr_status chain_input(const zarr_codec_spec *spec, const char *member,
                               const zarr_chunk_spec *in, zarr_chunk_spec *out,
                               zarr_error *err)
{
    const int64_t size = read_size(spec, "elementsize");

    (void)member;
    (void)err;
    out->n_bytes = in->n_bytes / (uint64_t)(size > 0 ? size : 1);
    out->exact = in->exact;
    out->item_bytes_hint = 1;
    return ZARR_OK;
}

static zarr_status resolve(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                           zarr_chunk_spec *out, void *fill_out, zarr_error *err)
{
    const uint64_t size = (uint64_t)read_size(spec, "elementsize");
    zarr_chunk_spec plane = {0}, encoded = {0};
    zarr_status st;

    (void)fill_out;
    plane.struct_size = encoded.struct_size = sizeof plane;
    (void)chain_input(spec, "codecs", in, &plane, err);
    if (size > 0 && in->exact && in->n_bytes % size)
        return host->fail(err, ZARR_ERR_INVALID, "example.planes: cut elements");
    st = host->spec_chain_resolve(spec, "codecs", &plane, &encoded, err);
    out->exact = 0;
    out->item_bytes_hint = 1;
    out->n_bytes = UINT64_MAX;
    if (st == ZARR_OK && size > 0 && encoded.n_bytes < UINT64_MAX / size - HEAD)
        out->n_bytes = size * (HEAD + encoded.n_bytes);
    return st;
}

static int incomplete(const zarr_codec_spec *spec)
{
    return read_size(spec, "elementsize") == 0;
}

static zarr_status complete(const zarr_codec_spec *spec, const zarr_chunk_spec *in,
                            const zarr_chunk_spec *array, char *text, size_t cap,
                            size_t *text_bytes, zarr_error *err)
{
    (void)array;
    (void)err;
    *text_bytes = 0; /* nothing is missing */
    if (incomplete(spec))
        *text_bytes = put(spec, "elementsize", in->item_bytes_hint, text, cap);
    return ZARR_OK;
}

static zarr_status spell(const zarr_codec_spec *spec, zarr_codec_spelling *how,
                         char *text, size_t cap, size_t *text_bytes, zarr_error *err)
{
    (void)err;
    *text_bytes = 0; /* as canonical() has it */
    if (how->format == 2)
        *text_bytes = put(spec, "itemsize", read_size(spec, "elementsize"), text, cap);
    return ZARR_OK;
}

static const zarr_codec_spec_vtable meaning = {.struct_size = sizeof meaning,
                                               .flags = ZARR_CODEC_SPEC_EXPERIMENTAL,
                                               .name = "example.planes",
                                               .kind = ZARR_CODEC_BYTES_BYTES,
                                               .canonical = canonical,
                                               .resolve = resolve,
                                               .chains = chains,
                                               .complete = complete,
                                               .incomplete = incomplete,
                                               .chain_input = chain_input,
                                               .spell = spell};

/* ---- implementation ---- */

struct planes {
    const zarr_allocator *alloc;
    zarr_codec_runner *runner;
    uint64_t size;
};

static void finish(void *self)
{
    struct planes *p = (struct planes *)self;

    host->runner_close(p->runner);
    p->alloc->free(p->alloc->user, p);
}

static zarr_status bind(void **self, const zarr_codec_spec *spec,
                        const zarr_codec_binding *to, zarr_error *err)
{
    const zarr_allocator *alloc = host->spec_allocator(spec);
    struct planes *p = (struct planes *)alloc->alloc(alloc->user, sizeof *p);
    zarr_chunk_spec plane = {0};
    zarr_status st;

    if (!p)
        return host->fail(err, ZARR_ERR_NO_MEMORY, "example.planes: no memory");
    *p = (struct planes){alloc, NULL, (uint64_t)read_size(spec, "elementsize")};
    plane.struct_size = sizeof plane;
    (void)chain_input(spec, "codecs", to->decoded, &plane, err);
    st = host->runner_open(&p->runner, spec, "codecs", &plane, err);
    if (st == ZARR_OK)
        *self = p;
    else
        finish(p);
    return st;
}

static unsigned char *block_bytes(const zarr_memory *mem)
{
    return (unsigned char *)mem->handle + mem->offset;
}

static uint64_t scratch(void *self, uint64_t n, uint64_t max_out)
{
    (void)n; /* 1: no ZARR_CODEC_BATCH below */
    return max_out / ((const struct planes *)self)->size + 1;
}

static zarr_status encode(void *self, zarr_codec_job *job, uint64_t n,
                          zarr_codec_exec *exec, zarr_error *err)
{
    const struct planes *p = (const struct planes *)self;
    const uint64_t items = job->src.bytes / p->size;
    unsigned char *plane = block_bytes(&exec->scratch);
    zarr_memory src = exec->scratch;

    (void)n;
    src.bytes = items;
    job->status = ZARR_OK;
    job->dst_used = 0;
    for (uint64_t b = 0; b < p->size && job->status == ZARR_OK; b++) {
        zarr_memory dst = job->dst;
        unsigned char *head = block_bytes(&job->dst) + job->dst_used;

        if (job->dst.bytes - job->dst_used < HEAD) {
            job->flags |= ZARR_CODEC_JOB_NO_ROOM;
            return job->status =
                       host->fail(err, ZARR_ERR_CORRUPT, "example.planes: room");
        }
        for (uint64_t i = 0; i < items; i++)
            plane[i] = block_bytes(&job->src)[i * p->size + b];
        dst.offset += job->dst_used + HEAD;
        dst.bytes -= job->dst_used + HEAD;
        job->status = host->runner_encode(p->runner, exec, &src, &dst, err);
        for (int i = 0; i < HEAD; i++)
            head[i] = (unsigned char)(dst.bytes >> 8 * i);
        job->dst_used += HEAD + dst.bytes;
    }
    return job->status;
}

static zarr_status decode(void *self, zarr_codec_job *job, uint64_t n,
                          zarr_codec_exec *exec, zarr_error *err)
{
    const struct planes *p = (const struct planes *)self;
    uint64_t at = 0, items = 0;

    (void)n;
    job->status = ZARR_OK;
    for (uint64_t b = 0; b < p->size && job->status == ZARR_OK; b++) {
        zarr_memory src = job->src, dst = {0}; /* dst: memory of the runner */
        uint64_t bytes = 0;

        if (job->src.bytes - at < HEAD)
            return job->status = host->fail(err, ZARR_ERR_CORRUPT, "example.planes: cut");
        for (int i = 0; i < HEAD; i++)
            bytes |= (uint64_t)block_bytes(&src)[at + (uint64_t)i] << 8 * i;
        at += HEAD;
        if (bytes > job->src.bytes - at)
            return job->status = host->fail(err, ZARR_ERR_CORRUPT, "example.planes: cut");
        src.offset += at;
        src.bytes = bytes;
        at += bytes;
        job->status = host->runner_decode(p->runner, exec, &src, &dst, err);
        items = b == 0 ? dst.bytes : items;
        if (job->status == ZARR_OK &&
            (dst.bytes != items || items > job->dst.bytes / p->size))
            job->status = host->fail(err, ZARR_ERR_CORRUPT, "example.planes: lengths");
        for (uint64_t i = 0; job->status == ZARR_OK && i < items; i++)
            block_bytes(&job->dst)[i * p->size + b] = block_bytes(&dst)[i];
    }
    job->dst_used = items * p->size;
    return job->status;
}

static const zarr_codec_impl_vtable way = {
    .struct_size = sizeof way,
    .caps = ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE | ZARR_CODEC_SAFE,
    .codec = "example.planes",
    .impl = "cpu.example",
    .in_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),
    .out_kinds = ZARR_MEMORY_BIT(ZARR_DEVICE_CPU),
    .bind = bind,
    .scratch = scratch,
    .encode = encode,
    .decode = decode,
    .close = finish,
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
                                   .name = "example-planes",
                                   .version = "1.0",
                                   .license = "Apache-2.0",
                                   .load = load};

const zarr_plugin *zarr_plugin_v1(void)
{
    return &plugin;
}
