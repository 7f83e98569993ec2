/*
 * unit/array/caller_chunks_test.h - chunks that the caller has, for tests: documents of
 * arrays, arrays with and without a store, and batches of their encoded chunks.
 */
#ifndef ZR_GIVEN_TEST_H
#define ZR_GIVEN_TEST_H

#include <pthread.h>
#include <stdbool.h>

#include <zarrc/chunks.h>
#include <zarrc/shape.h>

#include "array_test.h"

enum {
    ROWS = 9,
    COLS = 7,
    N = ROWS * COLS,
    MOST_CHUNKS = 64,
    MOST_BYTES = 4096
};

static struct world w;
static const char *const pipelines[] = {"waves", "serial"};

/* ---- arrays ------------------------------------------------------------- */

#define V3(grid, fill, codecs)                                                           \
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[9,7],\"data_type\":"          \
    "\"int16\",\"chunk_grid\":" grid ",\"chunk_key_encoding\":{\"name\":\"default\"},"   \
    "\"fill_value\":" fill ",\"codecs\":[" codecs "]}"
#define REGULAR(shape)                                                                   \
    "{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":" shape "}}"
#define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#define BIG    "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
#define SHARD(shape, codecs)                                                             \
    "{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":" shape           \
    ",\"codecs\":[" codecs "],\"index_codecs\":[" LITTLE ",\"crc32c\"]}}"

static const char *const documents[] = {
    V3(REGULAR("[4,3]"), "0", LITTLE),
    V3(REGULAR("[9,7]"), "7", BIG),
    V3(REGULAR("[4,3]"), "-2",
       "{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}," BIG
       ",\"zstd\",\"crc32c\""),
    V3(REGULAR("[4,4]"), "5", SHARD("[2,2]", LITTLE)),
    V3(REGULAR("[4,4]"), "5", SHARD("[2,2]", LITTLE ",\"gzip\"")),
    V3(REGULAR("[4,4]"), "5", SHARD("[2,2]", SHARD("[1,2]", LITTLE)) ",\"zstd\""),
    V3(REGULAR("[4,4]"), "5", SHARD("[4,2]", SHARD("[2,1]", LITTLE))),
    V3("{\"name\":\"rectilinear\",\"configuration\":{\"kind\":\"inline\","
       "\"chunk_shapes\":[[2,3,4],[5,2]]}}",
       "1", LITTLE ",\"zstd\""),
    "{\"zarr_format\":2,\"shape\":[9,7],\"chunks\":[3,4],\"dtype\":\">i2\",\"order\":"
    "\"F\","
    "\"fill_value\":3,\"filters\":[{\"id\":\"shuffle\",\"elementsize\":2}],"
    "\"compressor\":{\"id\":\"zlib\",\"level\":1}}",
    "{\"zarr_format\":2,\"shape\":[9,7],\"chunks\":[3,4],\"dtype\":\"<i2\",\"order\":"
    "\"C\","
    "\"fill_value\":null,\"filters\":null,\"compressor\":{\"id\":\"blosc\",\"cname\":"
    "\"lz4\",\"clevel\":5,\"shuffle\":1,\"blocksize\":0},\"dimension_separator\":\"/\"}",
};

static inline zarr_array *stored_array(const char *document)
{
    zarr_array_spec spec = {.struct_size = sizeof spec, .document = document};
    zarr_array *a = NULL;

    spec.flags = ZARR_SPEC_OVERWRITE;
    assert_ok(zarr_array_create(&a, w.store, "x/y", &spec, NULL, &terr));
    return a;
}

/* The same array, known by its text only. */
static inline zarr_array *free_array(const zarr_array *stored)
{
    zarr_array *a = NULL;

    assert_ok(zarr_array_open_document(&a, w.ctx, zarr_array_metadata(stored), NULL,
                                       "x/y", NULL, NULL, &terr));
    return a;
}

static inline zarr_tensor host_tensor(int16_t *data, const uint64_t *shape)
{
    zarr_tensor t;

    zarr_tensor_host(&t, NULL, data, (uint64_t)(shape[0] * shape[1]) * sizeof *data, 2,
                     shape);
    return t;
}

static const uint64_t whole[] = {ROWS, COLS};

/* ---- batches ------------------------------------------------------------ */

/* Encoded chunks, as a program of the caller keeps them. */
struct kept {
    uint64_t chunk[MOST_CHUNKS][2];
    zarr_memory mem[MOST_CHUNKS];
    uint8_t bytes[MOST_CHUNKS][MOST_BYTES];
    zarr_status status[MOST_CHUNKS];
    uint64_t n, n_erased;
    pthread_mutex_t mutex;
};
static struct kept given;

static inline void kept_clear(struct kept *k)
{
    memset(k, 0, sizeof *k);
    pthread_mutex_init(&k->mutex, NULL);
}

static inline zarr_block_batch make_batch(const struct kept *k)
{
    return (zarr_block_batch){.struct_size = sizeof(zarr_block_batch),
                              .n_blocks = k->n,
                              .blocks = &k->chunk[0][0],
                              .bytes = k->mem,
                              .status = k->status};
}

static inline zarr_memory *keep(struct kept *k, const uint64_t *chunk)
{
    assert_true(k->n < MOST_CHUNKS);
    memcpy(k->chunk[k->n], chunk, sizeof k->chunk[0]);
    k->mem[k->n] = (zarr_memory){
        .device_type = ZARR_DEVICE_CPU, .handle = k->bytes[k->n], .bytes = MOST_BYTES};
    return &k->mem[k->n++];
}

/* Reads every chunk of the grid, backwards, so that the order does not matter. */
static inline void keep_all(struct kept *k, zarr_array *a)
{
    uint64_t counts[2];

    kept_clear(k);
    zarr_array_block_counts(a, counts);
    for (uint64_t i = counts[0]; i-- > 0;)
        for (uint64_t j = counts[1]; j-- > 0;) {
            const uint64_t chunk[] = {i, j};
            zarr_memory *m = keep(k, chunk);
            const zarr_status st = zarr_array_block_read_encoded(a, chunk, m->handle,
                                                                 &m->bytes, NULL, &terr);

            if (st == ZARR_ERR_NOT_FOUND && k->n % 2)
                k->status[k->n - 1] = st;
            else if (st == ZARR_ERR_NOT_FOUND)
                m->handle = NULL;
            else
                assert_ok(st);
        }
}

static inline zarr_status keep_chunk(void *user, const uint64_t *chunk,
                                     const zarr_memory *bytes, zarr_error *err)
{
    struct kept *k = user;
    zarr_memory *m = NULL;

    (void)err;
    pthread_mutex_lock(&k->mutex);
    m = keep(k, chunk);
    if (bytes) {
        assert_int_equal(bytes->device_type, ZARR_DEVICE_CPU);
        assert_true(bytes->bytes <= MOST_BYTES);
        m->bytes = bytes->bytes;
        memcpy(m->handle, (const uint8_t *)bytes->handle + bytes->offset,
               (size_t)bytes->bytes);
    } else {
        m->handle = NULL;
        k->n_erased++;
    }
    pthread_mutex_unlock(&k->mutex);
    return ZARR_OK;
}

static inline zarr_block_sink make_sink(struct kept *k)
{
    return (zarr_block_sink){
        .struct_size = sizeof(zarr_block_sink), .fn = keep_chunk, .user = k};
}

/* ---- elements ----------------------------------------------------------- */

static inline void make_elements(int16_t *v, unsigned seed)
{
    for (unsigned i = 0; i < N; i++)
        v[i] = (int16_t)(i * 331 + seed);
}

/* ---- an array with and without a store ---------------------------------- */

static zarr_array *one, *one_free;

static inline void open_one(int document)
{
    int16_t v[N];
    zarr_tensor t = host_tensor(v, whole);

    world_open(&w, WORLD_MEMORY);
    one = stored_array(documents[document]);
    one_free = free_array(one);
    make_elements(v, 3);
    assert_ok(zarr_array_write(one, NULL, &t, NULL, &terr));
    keep_all(&given, one);
}

static inline void close_one(void)
{
    zarr_array_free(one);
    zarr_array_free(one_free);
    world_close(&w);
}

static inline zarr_status decode_one(const zarr_selection *sel,
                                     const zarr_block_batch *in, const zarr_io_options *o)
{
    const uint64_t small[] = {5, 5};
    int16_t v[N];
    zarr_tensor t = host_tensor(v, sel ? small : whole);

    return zarr_array_decode(one_free, sel, &t, in, o, &terr);
}

#endif
