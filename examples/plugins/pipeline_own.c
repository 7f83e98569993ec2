/*
 * pipeline_own.c - a pipeline: "example.own". Every thread takes the next segment of a
 * wave. If the chain is little-endian `bytes` and "example.xor", the pipeline decodes
 * chunks itself instead of calling decode(): it decodes the bytes of a whole segment in
 * place and then scatters the chunks. Everything else is done by the library's steps. A
 * write encodes and stores the chunks that it covers completely. The library writes the
 * others, because they need old data and locks.
 *
 *     cc -shared -fPIC -o pipeline_own.so pipeline_own.c
 *     ZARRC_PIPELINE=example.own zarrc --plugin=./pipeline_own.so cat x.zarr
 */
#include <zarrc/plugin/plugin.h>

#include <string.h>

static const zarr_host *host;

struct work {
    const zarr_pipeline_steps *steps;
    zarr_pipeline_wave *wave;
    const zarr_pipeline_blocks *blocks;
    int key; /* of example.xor; -1: another chain */
};

/* ---- reading ---- */

static zarr_status open_one(void *arg, uint64_t i, zarr_pipeline_worker *worker,
                            zarr_error *err)
{
    const struct work *w = (const struct work *)arg;

    return w->steps->open(worker, w->wave, (uint32_t)i, err);
}

/* Decodes all chunks of a segment. swap_bytes tells the byte order of their elements. */
static zarr_status read_own(const struct work *w, zarr_pipeline_worker *worker,
                            uint32_t i, uint32_t n_items, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    zarr_memory got;
    unsigned char *bytes;

    st = w->steps->fetch(worker, w->wave, i, &got, err);
    if (st == ZARR_ERR_NOT_FOUND) { /* no such object: fill values */
        st = ZARR_OK;
        for (uint32_t k = 0; k < n_items && st == ZARR_OK; k++)
            st = w->steps->fill(worker, w->wave, i, k, err);
        return st;
    }
    if (st != ZARR_OK)
        return st;
    bytes = (unsigned char *)got.handle + got.offset;
    for (uint64_t k = 0; k < got.bytes; k++)
        bytes[k] ^= (unsigned char)w->key;
    for (uint32_t k = 0; k < n_items && st == ZARR_OK; k++) {
        zarr_pipeline_item item;
        zarr_memory elements = got;

        w->steps->item_get(w->wave, i, k, &item);
        if (item.bytes != ZARR_PIPELINE_WHOLE) {
            elements.offset += item.offset;
            elements.bytes = item.bytes;
        }
        if (elements.bytes != item.chunk_bytes)
            return host->fail(
                err, ZARR_ERR_CORRUPT, "example.own: a chunk of %llu bytes, not %llu",
                (unsigned long long)elements.bytes, (unsigned long long)item.chunk_bytes);
        st = w->steps->scatter(worker, w->wave, i, k, &elements, err);
    }
    return st;
}

static zarr_status read_one(void *arg, uint64_t i, zarr_pipeline_worker *worker,
                            zarr_error *err)
{
    const struct work *w = (const struct work *)arg;
    zarr_pipeline_segment segment;

    w->steps->segment_get(w->wave, (uint32_t)i, &segment);
    /* key NULL: the bytes are in a decoded shard, and other threads read them, too. */
    if (w->key < 0 || !segment.key || segment.device_type != ZARR_DEVICE_CPU)
        return w->steps->read(worker, w->wave, (uint32_t)i, err);
    return read_own(w, worker, (uint32_t)i, segment.n_items, err);
}

/* Returns the key if the chain is `bytes` and example.xor, else -1. */
static int own_key(zarr_request *request, const zarr_pipeline_steps *steps)
{
    const zarr_codec_spec *first = steps->codec(request, 0, 0);
    const zarr_codec_spec *second = steps->codec(request, 0, 1);
    int64_t key = -1;

    if (!first || !second || steps->codec(request, 0, 2) ||
        strcmp(host->spec_name(first), "bytes") != 0 ||
        strcmp(host->spec_name(second), "example.xor") != 0 ||
        host->spec_i64(second, "key", &key) != 0)
        return -1;
    return (int)key;
}

static zarr_status read_all(void *self, zarr_request *request,
                            const zarr_pipeline_steps *steps, zarr_error *err)
{
    struct work w = {steps, NULL, NULL, own_key(request, steps)};
    zarr_pipeline_plan *plan = NULL;
    uint32_t kind = ZARR_WAVE_MORE, n_opens = 0, n_segments = 0;
    zarr_status st = steps->plan_open(&plan, request, NULL, err);

    (void)self;
    if (st == ZARR_OK)
        st = steps->wave_open(&w.wave, plan, err);
    while (st == ZARR_OK && kind == ZARR_WAVE_MORE && !steps->cancelled(request)) {
        st = steps->next(plan, w.wave, &kind, err);
        if (st != ZARR_OK || kind != ZARR_WAVE_MORE)
            break;
        steps->wave_counts(w.wave, &n_opens, &n_segments);
        if (n_opens > 0) {
            st = steps->parallel(request, n_opens, open_one, &w, err);
            st = st == ZARR_OK ? steps->resume(plan, w.wave, err) : st;
        }
        if (st == ZARR_OK)
            st = steps->parallel(request, n_segments, read_one, &w, err);
    }
    steps->wave_close(w.wave);
    steps->plan_close(plan);
    return st;
}

/* ---- writing ---- */

static zarr_status write_one(void *arg, uint64_t i, zarr_pipeline_worker *worker,
                             zarr_error *err)
{
    const struct work *w = (const struct work *)arg;
    zarr_pipeline_block block;
    zarr_memory bytes;
    int empty = 0;
    zarr_status st;

    w->steps->block_get(w->blocks, (uint32_t)i, &block);
    if (!block.simple)
        return w->steps->write(worker, w->blocks, (uint32_t)i, 1, err);
    st = w->steps->encode(worker, w->blocks, (uint32_t)i, &bytes, &empty, err);
    return st != ZARR_OK ? st
                         : w->steps->put(worker, w->blocks, (uint32_t)i,
                                         empty ? NULL : &bytes, err);
}

static zarr_status write_all(void *self, zarr_request *request,
                             const zarr_pipeline_steps *steps, zarr_error *err)
{
    struct work w = {steps, NULL, NULL, -1};
    zarr_pipeline_blocks *blocks = NULL;
    uint32_t n = 1;
    zarr_status st = steps->blocks_open(&blocks, request, err);

    (void)self;
    w.blocks = blocks;
    while (st == ZARR_OK && !steps->cancelled(request)) {
        st = steps->blocks_next(blocks, 64, &n, err);
        if (st != ZARR_OK || n == 0)
            break;
        st = steps->parallel(request, n, write_one, &w, err);
    }
    steps->blocks_close(blocks);
    return st;
}

static const zarr_pipeline_vtable pipeline = {.struct_size = sizeof pipeline,
                                              .name = "example.own",
                                              .read = read_all,
                                              .write = write_all};

static zarr_status load(const zarr_host *given, zarr_context *ctx, void **self,
                        zarr_error *err)
{
    (void)self;
    host = given;
    return host->register_pipeline(ctx, &pipeline, NULL, err);
}

static const zarr_plugin plugin = {.struct_size = sizeof plugin,
                                   .abi = ZARR_PLUGIN_ABI,
                                   .name = "example-own",
                                   .version = "1.0",
                                   .license = "Apache-2.0",
                                   .load = load};

const zarr_plugin *zarr_plugin_v1(void)
{
    return &plugin;
}
