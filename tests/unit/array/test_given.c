/*
 * unit/array/test_given.c - chunks that the caller has: zarr_array_decode() and
 * zarr_array_encode() give what reads and writes of a store give, for whole chunks,
 * parts, shards, nested shards and both formats, from memory of any kind; what a batch
 * may lack and may not; arrays without a store; second handles.
 */
#include <pthread.h>
#include <stdbool.h>

#include <zarrc/chain.h>
#include <zarrc/chunks.h>
#include <zarrc/shape.h>

#include "array_test.h"
#include "fakedev/fakedev.h"

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

static zarr_array *stored_array(const char *document)
{
    zarr_array_spec spec = {.struct_size = sizeof spec, .document = document};
    zarr_array *a = NULL;

    spec.flags = ZARR_SPEC_OVERWRITE;
    assert_ok(zarr_array_create(&a, w.store, "x/y", &spec, NULL, &terr));
    return a;
}

/* The same array, known by its text only. */
static zarr_array *free_array(const zarr_array *stored)
{
    zarr_array *a = NULL;

    assert_ok(zarr_array_open_document(&a, w.ctx, zarr_array_metadata(stored), NULL,
                                       "x/y", NULL, NULL, &terr));
    return a;
}

static zarr_tensor tensor_of(int16_t *data, const int64_t *shape)
{
    zarr_tensor t;

    zarr_tensor_host(&t, data, (uint64_t)(shape[0] * shape[1]) * sizeof *data, 2, shape);
    return t;
}

static const int64_t whole[] = {ROWS, COLS};

/* ---- batches ------------------------------------------------------------ */

/* Encoded chunks, as a program of the caller keeps them. */
struct kept {
    uint64_t chunk[MOST_CHUNKS][2];
    zarr_mem mem[MOST_CHUNKS];
    uint8_t bytes[MOST_CHUNKS][MOST_BYTES];
    zarr_status status[MOST_CHUNKS];
    uint64_t n, n_erased;
    pthread_mutex_t mutex;
};
static struct kept kept, given;

static void kept_clear(struct kept *k)
{
    memset(k, 0, sizeof *k);
    pthread_mutex_init(&k->mutex, NULL);
}

static zarr_chunk_batch batch_of(const struct kept *k)
{
    return (zarr_chunk_batch){.struct_size = sizeof(zarr_chunk_batch),
                              .n_chunks = k->n,
                              .chunks = &k->chunk[0][0],
                              .bytes = k->mem,
                              .status = k->status};
}

static zarr_mem *keep(struct kept *k, const uint64_t *chunk)
{
    assert_true(k->n < MOST_CHUNKS);
    memcpy(k->chunk[k->n], chunk, sizeof k->chunk[0]);
    k->mem[k->n] = (zarr_mem){
        .device_type = ZARR_DEVICE_CPU, .handle = k->bytes[k->n], .bytes = MOST_BYTES};
    return &k->mem[k->n++];
}

/* Reads every chunk of the grid, backwards, so that the order does not matter. */
static void keep_all(struct kept *k, zarr_array *a)
{
    uint64_t counts[2];

    kept_clear(k);
    zarr_array_chunk_counts(a, counts);
    for (uint64_t i = counts[0]; i-- > 0;)
        for (uint64_t j = counts[1]; j-- > 0;) {
            const uint64_t chunk[] = {i, j};
            zarr_mem *m = keep(k, chunk);
            const zarr_status st =
                zarr_array_chunk_read_encoded(a, chunk, m->handle, &m->bytes, &terr);

            if (st == ZARR_ERR_NOT_FOUND && k->n % 2)
                k->status[k->n - 1] = st;
            else if (st == ZARR_ERR_NOT_FOUND)
                m->handle = NULL;
            else
                assert_ok(st);
        }
}

static zarr_status keep_chunk(void *user, const uint64_t *chunk, const zarr_mem *bytes,
                              zarr_error *err)
{
    struct kept *k = user;
    zarr_mem *m = NULL;

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

static zarr_chunk_sink sink_of(struct kept *k)
{
    return (zarr_chunk_sink){
        .struct_size = sizeof(zarr_chunk_sink), .fn = keep_chunk, .user = k};
}

/* ---- elements ----------------------------------------------------------- */

static void make_elements(int16_t *v, unsigned seed)
{
    for (unsigned i = 0; i < N; i++)
        v[i] = (int16_t)(i * 331 + seed);
}

/* A box in the middle of chunks, and elements with steps. */
static zarr_selection *part_of(const zarr_array *a, int which)
{
    static const char *const text[] = {"2:7, 1:6", "::3, ::-2", "[8,0,3], 2:7",
                                       "8:9, 6:7"};
    zarr_selection *sel = NULL;

    assert_ok(zarr_selection_parse(&sel, 2, zarr_array_shape(a), text[which], &terr));
    return sel;
}

static void compare_read(zarr_array *stored, zarr_array *free, const zarr_selection *sel,
                         const zarr_io_options *o)
{
    const zarr_chunk_batch in = batch_of(&given);
    const uint64_t *s = sel ? zarr_selection_shape(sel) : zarr_array_shape(stored);
    const int64_t shape[] = {(int64_t)s[0], (int64_t)s[1]};
    int16_t want[N], got[N];
    zarr_tensor t = tensor_of(want, shape), u = tensor_of(got, shape);
    const size_t bytes = (size_t)(s[0] * s[1]) * sizeof *want;

    memset(got, 0x55, sizeof got);
    assert_ok(zarr_array_read(stored, sel, &t, NULL, &terr));
    assert_ok(zarr_array_decode(free, sel, &u, &in, o, &terr));
    assert_memory_equal(got, want, bytes);
}

static void compare_reads(zarr_array *stored, zarr_array *free)
{
    for (size_t p = 0; p < 2; p++) {
        zarr_stats stats = ZARR_STATS_INIT;
        zarr_io_options o = {
            .struct_size = sizeof o, .pipeline = pipelines[p], .stats = &stats};

        compare_read(stored, free, NULL, &o);
        assert_int_equal(stats.elements, N);
        for (int i = 0; i < 4; i++) {
            zarr_selection *sel = part_of(stored, i);

            compare_read(stored, free, sel, &o);
            zarr_selection_free(sel);
        }
    }
}

/* Every chunk that was given to the sink is the stored one, and no other changed. */
static void compare_chunks(zarr_array *stored)
{
    uint8_t bytes[MOST_BYTES];

    assert_true(kept.n > 0);
    for (uint64_t i = 0; i < kept.n; i++) {
        uint64_t n = sizeof bytes;
        const zarr_status st =
            zarr_array_chunk_read_encoded(stored, kept.chunk[i], bytes, &n, &terr);

        if (!kept.mem[i].handle) {
            assert_int_equal(st, ZARR_ERR_NOT_FOUND);
            continue;
        }
        assert_ok(st);
        assert_int_equal(n, kept.mem[i].bytes);
        assert_memory_equal(bytes, kept.bytes[i], (size_t)n);
    }
}

static void compare_write(zarr_array *stored, zarr_array *free, const zarr_selection *sel,
                          const int16_t *v, const zarr_io_options *o)
{
    const zarr_chunk_batch old = batch_of(&given);
    const zarr_chunk_sink sink = sink_of(&kept);
    const uint64_t *s = sel ? zarr_selection_shape(sel) : zarr_array_shape(stored);
    const int64_t shape[] = {(int64_t)s[0], (int64_t)s[1]};
    zarr_tensor t = tensor_of((int16_t *)(uintptr_t)v, shape);

    kept_clear(&kept);
    assert_ok(zarr_array_encode(free, sel, &t, &old, &sink, o, &terr));
    assert_ok(zarr_array_write(stored, sel, &t, o, &terr));
    compare_chunks(stored);
    keep_all(&given, stored);
}

static void compare_writes(zarr_array *stored, zarr_array *free)
{
    int16_t v[N];

    for (size_t p = 0; p < 2; p++) {
        zarr_io_options o = {.struct_size = sizeof o, .pipeline = pipelines[p]};

        make_elements(v, (unsigned)p);
        compare_write(stored, free, NULL, v, &o);
        for (int i = 0; i < 4; i++) {
            zarr_selection *sel = part_of(stored, i);

            make_elements(v, 1000u + (unsigned)i);
            compare_write(stored, free, sel, v, &o);
            zarr_selection_free(sel);
        }
    }
}

static void test_same_as_store(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        zarr_array *stored, *free;
        zarr_selection *sel;
        int16_t v[N];
        zarr_tensor t = tensor_of(v, whole);

        print_message("document %zu\n", i);
        world_open(&w, WORLD_MEMORY);
        stored = stored_array(documents[i]);
        free = free_array(stored);
        keep_all(&given, stored); /* nothing is stored */
        compare_reads(stored, free);
        sel = part_of(stored, 0); /* some chunks are missing */
        make_elements(v, 9);
        t = tensor_of(v, (const int64_t[]){5, 5});
        assert_ok(zarr_array_write(stored, sel, &t, NULL, &terr));
        zarr_selection_free(sel);
        keep_all(&given, stored);
        compare_reads(stored, free);
        compare_writes(stored, free);
        compare_reads(stored, free);
        zarr_array_free(stored);
        zarr_array_free(free);
        world_close(&w);
    }
}

/* ---- copies ------------------------------------------------------------- */

/* Encoded bytes are decoded where they are: a raw chunk is copied once, to its place, and
 * a compressed one not at all. */
static void test_no_copies(void **state)
{
    static const struct {
        int document;
        uint64_t copies;
    } rows[] = {{0, 9}, {4, 16}};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        zarr_stats stats = ZARR_STATS_INIT, of_store = ZARR_STATS_INIT;
        zarr_io_options o = {.struct_size = sizeof o, .stats = &stats};
        zarr_array *stored, *free;
        zarr_chunk_batch in;
        int16_t v[N];
        zarr_tensor t = tensor_of(v, whole);

        world_open(&w, WORLD_MEMORY);
        stored = stored_array(documents[rows[i].document]);
        free = free_array(stored);
        make_elements(v, 1);
        assert_ok(zarr_array_write(stored, NULL, &t, NULL, &terr));
        keep_all(&given, stored);
        in = batch_of(&given);
        assert_ok(zarr_array_decode(free, NULL, &t, &in, &o, &terr));
        o.stats = &of_store;
        assert_ok(zarr_array_read(stored, NULL, &t, &o, &terr));
        assert_true(stats.bytes_host <= of_store.bytes_host);
        assert_int_equal(stats.chunks_done, of_store.chunks_done);
        assert_int_equal(stats.bytes_stored, of_store.bytes_stored);
        zarr_array_free(stored);
        zarr_array_free(free);
        world_close(&w);
    }
}

/* ---- what a batch lacks ------------------------------------------------- */

static zarr_array *one, *one_free;

static void open_one(int document)
{
    int16_t v[N];
    zarr_tensor t = tensor_of(v, whole);

    world_open(&w, WORLD_MEMORY);
    one = stored_array(documents[document]);
    one_free = free_array(one);
    make_elements(v, 3);
    assert_ok(zarr_array_write(one, NULL, &t, NULL, &terr));
    keep_all(&given, one);
}

static void close_one(void)
{
    zarr_array_free(one);
    zarr_array_free(one_free);
    world_close(&w);
}

static zarr_status decode_one(const zarr_selection *sel, const zarr_chunk_batch *in,
                              const zarr_io_options *o)
{
    const int64_t small[] = {5, 5};
    int16_t v[N];
    zarr_tensor t = tensor_of(v, sel ? small : whole);

    return zarr_array_decode(one_free, sel, &t, in, o, &terr);
}

static void test_batch_faults(void **state)
{
    const zarr_io_options strict = {.struct_size = sizeof strict,
                                    .missing_chunks = ZARR_MISSING_ERROR};
    zarr_chunk_batch in;

    (void)state;
    for (int document = 2; document < 5; document++) {
        open_one(document);
        in = batch_of(&given);
        assert_status(decode_one(NULL, NULL, NULL), ZARR_ERR_INVALID);
        in.n_chunks--; /* the last one is chunk 0, 0 */
        assert_status(decode_one(NULL, &in, NULL), ZARR_ERR_INVALID);
        assert_says("x/y/c/0/0: the batch does not have this chunk");
        in.n_chunks++;
        memcpy(given.chunk[0], given.chunk[1], sizeof given.chunk[0]);
        assert_status(decode_one(NULL, &in, NULL), ZARR_ERR_INVALID);
        assert_says("given twice");
        given.chunk[0][0] = 77;
        assert_status(decode_one(NULL, &in, NULL), ZARR_ERR_INVALID);
        assert_says("outside of the grid");
        in.flags = 1;
        assert_status(decode_one(NULL, &in, NULL), ZARR_ERR_UNSUPPORTED);
        in.flags = 0;
        in.bytes = NULL;
        assert_status(decode_one(NULL, &in, NULL), ZARR_ERR_INVALID);
        keep_all(&given, one);
        in = batch_of(&given);
        given.status[0] = ZARR_ERR_IO;
        assert_status(decode_one(NULL, &in, NULL), ZARR_ERR_IO);
        assert_says("could not read it");
        given.status[0] = ZARR_ERR_NOT_FOUND;
        assert_ok(decode_one(NULL, &in, NULL));
        assert_status(decode_one(NULL, &in, &strict), ZARR_ERR_NOT_FOUND);
        given.status[0] = ZARR_OK;
        given.mem[0].bytes /= 2;
        assert_status(decode_one(NULL, &in, NULL), ZARR_ERR_CORRUPT);
        given.mem[0].bytes = 0;
        assert_status(decode_one(NULL, &in, NULL), ZARR_ERR_CORRUPT);
        assert_says("x/y/c/");
        in.status = NULL;
        assert_status(decode_one(NULL, &in, NULL), ZARR_ERR_CORRUPT);
        close_one();
    }
}

static zarr_status refuse_chunk(void *user, const uint64_t *chunk, const zarr_mem *bytes,
                                zarr_error *err)
{
    (void)chunk;
    (void)bytes;
    if (user && err)
        snprintf(err->message, sizeof err->message, "the queue is full");
    if (user && err)
        err->code = ZARR_ERR_IO;
    return ZARR_ERR_IO;
}

static void test_encode_faults(void **state)
{
    zarr_chunk_sink sink = sink_of(&kept);
    zarr_chunk_batch old;
    zarr_selection *sel;
    int16_t v[N];
    zarr_tensor part = tensor_of(v, (const int64_t[]){5, 5}), all = tensor_of(v, whole);

    (void)state;
    for (int document = 2; document < 5; document++) {
        open_one(document);
        kept_clear(&kept);
        make_elements(v, 3);
        sel = part_of(one, 0);
        assert_status(zarr_array_encode(one_free, sel, &part, NULL, NULL, NULL, &terr),
                      ZARR_ERR_INVALID);
        assert_says("no sink");
        assert_status(zarr_array_encode(one_free, sel, &part, NULL, &sink, NULL, &terr),
                      ZARR_ERR_INVALID);
        assert_says("the batch does not have this chunk");
        kept_clear(&kept);
        assert_ok(zarr_array_encode(one_free, NULL, &all, NULL, &sink, NULL, &terr));
        assert_int_equal(kept.n, given.n);
        old = batch_of(&given);
        for (uint64_t i = 0; i < given.n; i++)
            given.mem[i].bytes = 1;
        kept_clear(&kept);
        assert_status(zarr_array_encode(one_free, sel, &part, &old, &sink, NULL, &terr),
                      ZARR_ERR_CORRUPT);
        kept_clear(&kept);
        assert_ok(zarr_array_encode(one_free, NULL, &all, &old, &sink, NULL, &terr));
        compare_chunks(one);
        sink.fn = refuse_chunk;
        sink.user = NULL;
        assert_status(zarr_array_encode(one_free, NULL, &all, NULL, &sink, NULL, &terr),
                      ZARR_ERR_IO);
        assert_says("the sink of chunks");
        sink.user = &kept;
        assert_status(zarr_array_encode(one_free, NULL, &all, NULL, &sink, NULL, &terr),
                      ZARR_ERR_IO);
        assert_says("the queue is full");
        sink = sink_of(&kept);
        sink.fn = NULL;
        assert_status(zarr_array_encode(one_free, NULL, &all, NULL, &sink, NULL, &terr),
                      ZARR_ERR_INVALID);
        sink = sink_of(&kept);
        zarr_selection_free(sel);
        close_one();
    }
}

/* Chunks of fill values are erased, unless the option says otherwise. */
static void test_empty_chunks(void **state)
{
    const zarr_io_options all_stored = {.struct_size = sizeof all_stored,
                                        .empty_chunks = ZARR_EMPTY_CHUNKS_WRITE};
    zarr_chunk_sink sink = sink_of(&kept);
    int16_t v[N];
    zarr_tensor t = tensor_of(v, whole);

    (void)state;
    open_one(4);
    for (int i = 0; i < N; i++)
        v[i] = 5;
    kept_clear(&kept);
    assert_ok(zarr_array_encode(one_free, NULL, &t, NULL, &sink, NULL, &terr));
    assert_int_equal(kept.n_erased, 6);
    kept_clear(&kept);
    assert_ok(zarr_array_encode(one_free, NULL, &t, NULL, &sink, &all_stored, &terr));
    assert_int_equal(kept.n_erased, 0);
    assert_int_equal(kept.n, 6);
    close_one();
}

/* ---- other memory ------------------------------------------------------- */

static void *far;

static void open_far(int document)
{
    zarr_error err;

    world_begin(&w, WORLD_MEMORY);
    assert_ok(world_context(&w, &terr));
    far = zarr_fakedev_create();
    assert_non_null(far);
    assert_ok(
        zarr_context_register_memory(w.ctx, zarr_fakedev_vtable(), far, "test", &err));
    assert_ok(world_store(&w, WORLD_MEMORY, &terr));
    one = stored_array(documents[document]);
    one_free = free_array(one);
}

/* Moves every second chunk of the batch to the device. */
static void move_away(struct kept *k)
{
    for (uint64_t i = 0; i < k->n; i += 2) {
        zarr_mem host = k->mem[i];

        if (!host.handle || host.bytes == 0)
            continue;
        assert_ok(
            zarr_mem_alloc(w.ctx, ZARR_DEVICE_EXT, 0, host.bytes, &k->mem[i], &terr));
        assert_ok(zarr_mem_copy(w.ctx, &k->mem[i], &host, host.bytes, &terr));
    }
}

static zarr_status count_far(void *user, const uint64_t *chunk, const zarr_mem *bytes,
                             zarr_error *err)
{
    struct kept *k = user;
    zarr_mem *m = NULL;

    (void)err;
    pthread_mutex_lock(&k->mutex);
    m = keep(k, chunk);
    assert_non_null(bytes);
    assert_int_equal(bytes->device_type, ZARR_DEVICE_EXT);
    m->bytes = bytes->bytes;
    assert_int_equal(
        zarr_fakedev_peek(bytes->handle, bytes->offset, m->handle, bytes->bytes), 0);
    pthread_mutex_unlock(&k->mutex);
    return ZARR_OK;
}

static void test_device(void **state)
{
    (void)state;
    for (int document = 0; document < 7; document++) {
        zarr_chunk_sink sink = {.struct_size = sizeof sink,
                                .fn = count_far,
                                .user = &kept,
                                .device_type = ZARR_DEVICE_EXT};
        zarr_fakedev_counters c;
        zarr_chunk_batch in;
        int16_t v[N], got[N];
        zarr_tensor t = tensor_of(v, whole), u = tensor_of(got, whole), d;
        zarr_mem block, host = {ZARR_DEVICE_CPU, 0, got, 0, sizeof got};

        open_far(document);
        make_elements(v, 3);
        assert_ok(zarr_array_write(one, NULL, &t, NULL, &terr));
        keep_all(&given, one);
        move_away(&given);
        in = batch_of(&given);
        assert_ok(zarr_array_decode(one_free, NULL, &u, &in, NULL, &terr));
        assert_memory_equal(got, v, sizeof v);
        assert_ok(zarr_mem_alloc(w.ctx, ZARR_DEVICE_EXT, 0, sizeof v, &block, &terr));
        d = t;
        d.device_type = ZARR_DEVICE_EXT;
        d.data = block.handle;
        d.byte_offset = block.offset;
        assert_ok(zarr_array_decode(one_free, NULL, &d, &in, NULL, &terr));
        memset(got, 0, sizeof got);
        assert_ok(zarr_mem_copy(w.ctx, &host, &block, sizeof got, &terr));
        assert_memory_equal(got, v, sizeof v);
        kept_clear(&kept);
        assert_ok(zarr_array_encode(one_free, NULL, &d, NULL, &sink, NULL, &terr));
        compare_chunks(one);
        zarr_mem_free(w.ctx, &block);
        for (uint64_t i = 0; i < given.n; i++)
            if (given.mem[i].device_type == ZARR_DEVICE_EXT)
                zarr_mem_free(w.ctx, &given.mem[i]);
        zarr_fakedev_count(far, &c);
        assert_int_equal(c.faults, 0);
        close_one();
    }
}

/* ---- no memory ---------------------------------------------------------- */

static void test_no_memory(void **state)
{
    const zarr_chunk_sink sink = sink_of(&kept);
    zarr_chunk_batch in;
    int16_t v[N];
    zarr_tensor t = tensor_of(v, whole);

    (void)state;
    for (int document = 2; document < 5; document++) {
        zarr_status st = ZARR_ERR_NO_MEMORY;

        open_one(document);
        in = batch_of(&given);
        make_elements(v, 8);
        for (int k = 1; st != ZARR_OK; k++) {
            zarr_array *a = NULL;

            kept_clear(&kept);
            atomic_store(&w.fail_at, k);
            st = zarr_array_open_document(&a, w.ctx, zarr_array_metadata(one), NULL, NULL,
                                          NULL, NULL, &terr);
            if (st == ZARR_OK)
                st = zarr_array_encode(a, NULL, &t, NULL, &sink, NULL, &terr);
            if (st == ZARR_OK)
                st = zarr_array_decode(a, NULL, &t, &in, NULL, &terr);
            atomic_store(&w.fail_at, 0);
            zarr_array_free(a);
            if (st != ZARR_OK)
                assert_int_equal(st, ZARR_ERR_NO_MEMORY);
            assert_true(k < 2000);
        }
        close_one();
    }
}

/* ---- arrays without a store ---------------------------------------------- */

static void test_documents(void **state)
{
    static const char *const wrong[] = {"", "[]", "{", "{\"zarr_format\":4}",
                                        "{\"zarr_format\":3,\"node_type\":\"array\"}"};
    const uint64_t shape[] = {20, 20};
    zarr_array *a = NULL;
    int16_t v[N];
    zarr_tensor t = tensor_of(v, whole);

    (void)state;
    open_one(0);
    assert_string_equal(zarr_array_path(one_free), "x/y");
    assert_string_equal(zarr_array_metadata(one_free), zarr_array_metadata(one));
    assert_status(zarr_array_read(one_free, NULL, &t, NULL, &terr), ZARR_ERR_UNSUPPORTED);
    assert_says("without a store");
    assert_status(zarr_array_write(one_free, NULL, &t, NULL, &terr),
                  ZARR_ERR_UNSUPPORTED);
    assert_says("without a store");
    assert_int_not_equal(zarr_array_resize(one_free, shape, NULL, &terr), ZARR_OK);
    assert_int_not_equal(zarr_array_refresh(one_free, NULL, &terr), ZARR_OK);
    assert_int_not_equal(zarr_array_attribute_set(one_free, "a", "1", &terr), ZARR_OK);
    assert_int_not_equal(
        zarr_array_chunk_list(one_free, ZARR_CHUNKS_OBJECTS, NULL, NULL, NULL, &terr),
        ZARR_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_status(
            zarr_array_open_document(&a, w.ctx, wrong[i], NULL, NULL, NULL, NULL, &terr),
            ZARR_ERR_CORRUPT);
        assert_null(a);
    }
    assert_status(
        zarr_array_open_document(&a, w.ctx, NULL, NULL, NULL, NULL, NULL, &terr),
        ZARR_ERR_INVALID);
    assert_status(zarr_array_open_document(&a, w.ctx,
                                           "{\"zarr_format\":3,\"node_type\":\"group\"}",
                                           NULL, NULL, NULL, NULL, &terr),
                  ZARR_ERR_NOT_FOUND);
    assert_status(
        zarr_array_open_document(&a, w.ctx, documents[0], "{}", NULL, NULL, NULL, &terr),
        ZARR_ERR_INVALID);
    assert_ok(zarr_array_open_document(&a, w.ctx, documents[8], "{\"units\":\"K\"}", NULL,
                                       NULL, NULL, &terr));
    assert_string_equal(zarr_array_attributes(a), "{\n  \"units\": \"K\"\n}");
    zarr_array_free(a);
    /* with a store, as an array that was opened */
    assert_ok(zarr_array_open_document(&a, w.ctx, zarr_array_metadata(one), NULL,
                                       "/x//y/", w.store, NULL, &terr));
    assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
    assert_int_equal(v[5], (int16_t)(5 * 331 + 3));
    zarr_array_free(a);
    close_one();
}

/* ---- shapes of the grid -------------------------------------------------- */

/* Another handle grows the array; the old document still reads and changes all of it. */
static void test_grid_shape(void **state)
{
    const zarr_array_open_options o = {.struct_size = sizeof o,
                                       .flags = ZARR_OPEN_GRID_SHAPE};
    const uint64_t grown[] = {30, 7}, at[] = {25, 5}, n[] = {2, 2};
    int16_t v[] = {1, 2, 3, 4}, got[4];
    zarr_array *a = NULL, *b = NULL;
    zarr_selection *sel = NULL;
    zarr_tensor t = tensor_of(v, (const int64_t[]){2, 2});
    zarr_tensor u = tensor_of(got, (const int64_t[]){2, 2});

    (void)state;
    for (int document = 0; document < 10; document++) {
        const bool bounded = document == 7; /* rectilinear */

        open_one(document);
        assert_ok(zarr_array_open_document(&a, w.ctx, zarr_array_metadata(one), NULL,
                                           "x/y", w.store, &o, &terr));
        assert_true(zarr_array_shape(a)[0] >= 9);
        assert_int_equal(zarr_array_shape(a)[0] > (UINT64_C(1) << 60), !bounded);
        assert_ok(zarr_array_with(&b, one, &o, &terr));
        assert_int_equal(zarr_array_shape(b)[0], zarr_array_shape(a)[0]);
        if (!bounded) {
            assert_ok(zarr_array_resize(one, grown, NULL, &terr));
            assert_ok(zarr_selection_box(&sel, 2, zarr_array_shape(a), at, n, &terr));
            assert_ok(zarr_array_write(a, sel, &t, NULL, &terr));
            assert_ok(zarr_array_read(b, sel, &u, NULL, &terr));
            assert_memory_equal(v, got, sizeof v);
            zarr_selection_free(sel);
            assert_ok(zarr_selection_box(&sel, 2, grown, at, n, &terr));
            assert_ok(zarr_array_read(one, sel, &u, NULL, &terr));
            assert_memory_equal(v, got, sizeof v);
            zarr_selection_free(sel);
        }
        assert_status(zarr_array_resize(a, grown, NULL, &terr), ZARR_ERR_INVALID);
        assert_status(zarr_array_refresh(a, NULL, &terr), ZARR_ERR_INVALID);
        assert_status(zarr_array_append(a, 0, &t, NULL, NULL, &terr), ZARR_ERR_INVALID);
        assert_status(zarr_array_attribute_set(b, "a", "1", &terr), ZARR_ERR_INVALID);
        assert_says("ZARR_OPEN_GRID_SHAPE");
        zarr_array_free(a);
        zarr_array_free(b);
        close_one();
    }
    world_open(&w, WORLD_MEMORY);
    one = stored_array(documents[0]);
    assert_status(zarr_array_open(&a, w.store, "x/y", &o, &terr), ZARR_ERR_UNSUPPORTED);
    zarr_array_free(one);
    world_close(&w);
}

/* A list of equal edges ends, although its chunks are those of a regular grid. */
static void test_grid_shape_of_equal_edges(void **state)
{
    const zarr_array_open_options o = {.struct_size = sizeof o,
                                       .flags = ZARR_OPEN_GRID_SHAPE};
    const uint64_t ends[] = {9, 7};
    zarr_array *a = NULL;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    assert_ok(zarr_array_open_document(
        &a, w.ctx,
        V3("{\"name\":\"rectilinear\",\"configuration\":{\"kind\":\"inline\","
           "\"chunk_shapes\":[[3,3,3],[7]]}}",
           "1", LITTLE),
        NULL, NULL, NULL, &o, &terr));
    assert_memory_equal(zarr_array_shape(a), ends, sizeof ends);
    zarr_array_free(a);
    world_close(&w);
}

/* ---- second handles ------------------------------------------------------ */

static void test_with(void **state)
{
    zarr_array_open_options o = {.struct_size = sizeof o,
                                 .missing_chunks = ZARR_MISSING_ERROR,
                                 .pipeline = "serial"};
    zarr_store *other = NULL;
    zarr_array *a = NULL, *b = NULL;
    int16_t v[N];
    zarr_tensor t = tensor_of(v, whole);

    (void)state;
    for (int document = 0; document < 10; document++) {
        open_one(document);
        assert_ok(zarr_store_open(&other, w.ctx, "memory:", NULL, &terr));
        o.chunk_store = other;
        assert_ok(zarr_array_with(&a, one, &o, &terr));
        assert_string_equal(zarr_array_metadata(a), zarr_array_metadata(one));
        assert_status(zarr_array_read(a, NULL, &t, NULL, &terr), ZARR_ERR_NOT_FOUND);
        assert_ok(zarr_array_with(&b, a, NULL, &terr)); /* the same options */
        assert_status(zarr_array_read(b, NULL, &t, NULL, &terr), ZARR_ERR_NOT_FOUND);
        assert_ptr_equal(zarr_array_chunk_store(b), other);
        assert_ok(zarr_array_read(one, NULL, &t, NULL, &terr));
        assert_ok(zarr_array_write(b, NULL, &t, NULL, &terr));
        assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
        o.zarr_format = document < 8 ? 2 : 3;
        zarr_array_free(b);
        assert_status(zarr_array_with(&b, one, &o, &terr), ZARR_ERR_INVALID);
        o.zarr_format = 0;
        zarr_array_free(a);
        zarr_store_free(other);
        close_one();
    }
}

/* ---- chains --------------------------------------------------------------- */

static void test_chain(void **state)
{
    static const char *const codecs[] = {
        NULL, "[" BIG "]",
        "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}," LITTLE
        ",\"zstd\",\"crc32c\"]",
        "[" LITTLE ",{\"name\":\"blosc\"}]"};
    const uint64_t shape[] = {ROWS, COLS}, inner[] = {3, 7};
    const int64_t turned[] = {2, (int64_t)2 * ROWS};
    zarr_array_spec spec = {.struct_size = sizeof spec,
                            .ndim = 2,
                            .chunk_shape = shape,
                            .data_type = "int16",
                            .fill_value = "4"};
    int16_t v[N], got[N];
    uint8_t room[4096];
    zarr_tensor t = tensor_of(v, whole), u = tensor_of(got, whole);
    zarr_chain *c = NULL;
    zarr_mem m;

    (void)state;
    world_open(&w, WORLD_MEMORY);
    for (size_t i = 0; i < 16; i++) {
        spec.codecs = codecs[i % 4];
        spec.shard_shape = i / 4 == 1 ? shape : NULL;
        spec.chunk_shape = i / 4 == 1 ? inner : shape;
        t.strides = i / 4 == 2 ? turned : NULL;
        make_elements(v, (unsigned)i);
        if (i / 4 == 3)
            for (size_t k = 0; k < N; k++)
                v[k] = 4; /* the fill value is encoded, too */
        assert_ok(zarr_chain_open(&c, w.ctx, &spec, &terr));
        assert_non_null(zarr_chain_codecs(c));
        m = (zarr_mem){ZARR_DEVICE_CPU, 0, room, 0, 3};
        assert_status(zarr_chain_encode(c, &t, &m, NULL, &terr), ZARR_ERR_LIMIT);
        assert_true(m.bytes > 3 && m.bytes <= zarr_chain_bound(c));
        assert_true(zarr_chain_bound(c) < UINT64_C(1) << 20);
        assert_ok(zarr_chain_encode(c, &t, &m, NULL, &terr));
        memset(got, 0, sizeof got);
        u.strides = t.strides;
        assert_ok(zarr_chain_decode(c, &m, &u, NULL, &terr));
        assert_memory_equal(v, got, sizeof v);
        m.bytes /= 2;
        assert_status(zarr_chain_decode(c, &m, &u, NULL, &terr), ZARR_ERR_CORRUPT);
        zarr_chain_free(c);
    }
    spec = (zarr_array_spec){.struct_size = sizeof spec, .data_type = "string"};
    spec.zarr_format = 2;
    spec.codecs = "{\"filters\":[{\"id\":\"vlen-utf8\"}],\"compressor\":null}";
    assert_ok(zarr_chain_open(&c, w.ctx, &spec, &terr));
    assert_true(zarr_chain_bound(c) == UINT64_MAX);
    zarr_chain_free(c);
    spec.codecs = "[\"nosuch\"]";
    spec.zarr_format = 3;
    assert_status(zarr_chain_open(&c, w.ctx, &spec, &terr), ZARR_ERR_UNSUPPORTED);
    assert_null(c);
    spec.document = "{}";
    assert_status(zarr_chain_open(&c, w.ctx, &spec, &terr), ZARR_ERR_INVALID);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_store),
        cmocka_unit_test(test_no_copies),
        cmocka_unit_test(test_batch_faults),
        cmocka_unit_test(test_encode_faults),
        cmocka_unit_test(test_empty_chunks),
        cmocka_unit_test(test_device),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_documents),
        cmocka_unit_test(test_grid_shape),
        cmocka_unit_test(test_grid_shape_of_equal_edges),
        cmocka_unit_test(test_with),
        cmocka_unit_test(test_chain),
    };

    return cmocka_run_group_tests_name("given chunks", tests, NULL, NULL);
}
