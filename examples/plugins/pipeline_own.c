/*
 * pipeline_own.c - a pipeline: "example.own". Every thread takes the next segment of a
 * wave. If the chain is `bytes` and "example.xor", the pipeline decodes chunks itself
 * instead of calling decode(): it decodes the bytes of a whole segment in place and then
 * scatters the chunks. Everything else is done by the library's steps. A write encodes
 * and stores the chunks that it covers completely. The library writes the others, because
 * they need old data and locks.
 *
 *     cc -shared -fPIC -o pipeline_own.so pipeline_own.c
 *     ZARRC_PIPELINE=example.own zarrc --plugin=./pipeline_own.so cat x.zarr
 */
#include <zarrc/plugin/plugin.h>

#include <string.h>

static const zarr_host *host;

struct work {
    zarr_request *request;
    const zarr_pipeline_steps *steps;
    zarr_pipeline_worker *worker; /* of the thread that the request is on */
    zarr_pipeline_request facts;
    zarr_pipeline_wave *wave;
    const zarr_pipeline_blocks *blocks;
    int key; /* of example.xor; -1: another chain */
};

static zarr_status begin(struct work *w, zarr_request *request,
                         const zarr_pipeline_steps *steps, zarr_error *err)
{
    memset(w, 0, sizeof *w);
    w->request = request;
    w->steps = steps;
    w->key = -1;
    steps->request(request, &w->facts);
    return steps->worker_open(&w->worker, request, 0, err);
}

typedef zarr_status (*work_fn)(void *arg, uint64_t i, zarr_pipeline_worker *worker,
                               zarr_error *err);

/* One call needs no other thread. */
static zarr_status each(struct work *w, uint64_t n, work_fn fn, zarr_error *err)
{
    return n == 1 ? fn(w, 0, w->worker, err)
                  : w->steps->parallel(w->request, n, fn, w, err);
}

/* ---- reading ---- */

static zarr_status open_one(void *arg, uint64_t i, zarr_pipeline_worker *worker,
                            zarr_error *err)
{
    const struct work *w = (const struct work *)arg;

    return w->steps->open(worker, w->wave, (uint32_t)i, err);
}

/* Gives the elements of a chunk, which example.xor has decoded already if it is the
 * codec. swap_bytes of the item tells their byte order. */
static zarr_status decode(const struct work *w, zarr_pipeline_worker *worker, uint32_t i,
                          uint32_t k, const zarr_memory *got, zarr_memory *elements,
                          zarr_error *err)
{
    zarr_pipeline_item item;

    if (w->key < 0)
        return w->steps->decode(worker, w->wave, i, k, got, elements, err);
    w->steps->item_get(w->wave, i, k, &item);
    *elements = *got;
    if (item.bytes != ZARR_PIPELINE_WHOLE) {
        elements->offset += item.offset;
        elements->bytes = item.bytes;
    }
    if (elements->bytes != item.chunk_bytes)
        return host->fail(
            err, ZARR_ERR_CORRUPT, "example.own: a chunk of %llu bytes, not %llu",
            (unsigned long long)elements->bytes, (unsigned long long)item.chunk_bytes);
    return ZARR_OK;
}

static zarr_status read_own(const struct work *w, zarr_pipeline_worker *worker,
                            uint32_t i, uint32_t n_items, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    zarr_memory got, elements;
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
    for (uint64_t k = 0; k < got.bytes && w->key >= 0; k++)
        bytes[k] ^= (unsigned char)w->key;
    for (uint32_t k = 0; k < n_items && st == ZARR_OK; k++) {
        st = decode(w, worker, i, k, &got, &elements, err);
        if (st == ZARR_OK)
            st = w->steps->scatter(worker, w->wave, i, k, &elements, err);
    }
    return st;
}

static zarr_status read_one(void *arg, uint64_t i, zarr_pipeline_worker *worker,
                            zarr_error *err)
{
    const struct work *w = (const struct work *)arg;
    zarr_pipeline_segment segment;
    zarr_pipeline_item item;
    uint64_t bytes;
    zarr_status st;

    w->steps->segment_get(w->wave, (uint32_t)i, &segment);
    /* key NULL: the bytes are in a decoded shard, and other threads read them, too. */
    if (!segment.key || segment.device_type != ZARR_DEVICE_CPU ||
        w->facts.device_type != ZARR_DEVICE_CPU)
        return w->steps->read(worker, w->wave, (uint32_t)i, err);
    w->steps->item_get(w->wave, (uint32_t)i, 0, &item);
    bytes = segment.bytes < ZARR_PIPELINE_MISSING ? segment.bytes : item.chunk_bytes;
    bytes += item.chunk_bytes; /* of what fetch() gives, and of one decoded chunk */
    st = w->steps->reserve(w->request, bytes, err);
    if (st != ZARR_OK)
        return st;
    st = read_own(w, worker, (uint32_t)i, segment.n_items, err);
    w->steps->release(w->request, bytes);
    return st;
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
    struct work w;
    zarr_pipeline_plan *plan = NULL;
    uint32_t kind = ZARR_WAVE_MORE, n_opens = 0, n_segments = 0;
    zarr_status st = begin(&w, request, steps, err);

    (void)self;
    w.key = own_key(request, steps);
    if (st == ZARR_OK)
        st = steps->plan_open(&plan, request, NULL, err);
    if (st == ZARR_OK)
        st = steps->wave_open(&w.wave, plan, err);
    while (st == ZARR_OK && kind == ZARR_WAVE_MORE && !steps->cancelled(request)) {
        st = steps->next(plan, w.wave, &kind, err);
        if (st != ZARR_OK || kind != ZARR_WAVE_MORE)
            break;
        steps->wave_counts(w.wave, &n_opens, &n_segments);
        if (n_opens > 0) {
            st = each(&w, n_opens, open_one, err);
            st = st == ZARR_OK ? steps->resume(plan, w.wave, err) : st;
        }
        if (st == ZARR_OK)
            st = each(&w, n_segments, read_one, err);
    }
    steps->wave_close(w.wave);
    steps->plan_close(plan);
    steps->worker_close(w.worker);
    return st;
}

/* ---- writing ---- */

static zarr_status encode_and_put(const struct work *w, zarr_pipeline_worker *worker,
                                  uint32_t i, zarr_error *err)
{
    zarr_memory bytes;
    int empty = 0;
    const zarr_status st = w->steps->encode(worker, w->blocks, i, &bytes, &empty, err);

    return st != ZARR_OK
               ? st
               : w->steps->put(worker, w->blocks, i, empty ? NULL : &bytes, err);
}

static zarr_status write_one(void *arg, uint64_t i, zarr_pipeline_worker *worker,
                             zarr_error *err)
{
    const struct work *w = (const struct work *)arg;
    zarr_pipeline_block block;
    uint64_t bytes;
    zarr_status st;

    w->steps->block_get(w->blocks, (uint32_t)i, &block);
    if (!block.simple)
        return w->steps->write(worker, w->blocks, (uint32_t)i, 1, err);
    /* The elements, and about as many encoded bytes. */
    bytes = 2 * block.n_elements * host->dtype_item_bytes(w->facts.dtype);
    st = w->steps->reserve(w->request, bytes, err);
    if (st != ZARR_OK)
        return st;
    st = encode_and_put(w, worker, (uint32_t)i, err);
    w->steps->release(w->request, bytes);
    return st;
}

static zarr_status write_all(void *self, zarr_request *request,
                             const zarr_pipeline_steps *steps, zarr_error *err)
{
    struct work w;
    zarr_pipeline_blocks *blocks = NULL;
    uint32_t n = 1;
    zarr_status st = begin(&w, request, steps, err);

    (void)self;
    if (st == ZARR_OK)
        st = steps->blocks_open(&blocks, request, err);
    w.blocks = blocks;
    while (st == ZARR_OK && !steps->cancelled(request)) {
        st = steps->blocks_next(blocks, 64, &n, err);
        if (st != ZARR_OK || n == 0)
            break;
        st = each(&w, n, write_one, err);
    }
    steps->blocks_close(blocks);
    steps->worker_close(w.worker);
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
