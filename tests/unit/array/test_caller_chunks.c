/*
 * unit/array/test_caller_chunks.c - chunks that the caller has: zarr_array_decode() and
 * zarr_array_encode() give what reads and writes of a store give, for whole chunks,
 * parts, shards, nested shards and both formats, from memory of any kind; what a batch
 * may lack and may not.
 */
#include "caller_chunks_test.h"

#include "fakedev/fakedev.h"

static struct kept kept;

/* A box in the middle of chunks, and elements with steps. */
static zarr_selection *select_part(const zarr_array *a, int which)
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
    const zarr_block_batch in = make_batch(&given);
    const uint64_t *s = sel ? zarr_selection_shape(sel) : zarr_array_shape(stored);
    const uint64_t shape[] = {(uint64_t)s[0], (uint64_t)s[1]};
    int16_t want[N], got[N];
    zarr_tensor t = host_tensor(want, shape), u = host_tensor(got, shape);
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
        zarr_io_options o = {.struct_size = sizeof o,
                             .stats = &stats,
                             .tuning = TUNING(.pipeline = pipelines[p])};

        compare_read(stored, free, NULL, &o);
        assert_int_equal(stats.elements, N);
        for (int i = 0; i < 4; i++) {
            zarr_selection *sel = select_part(stored, i);

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
            zarr_array_block_read_encoded(stored, kept.chunk[i], bytes, &n, NULL, &terr);

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
    const zarr_block_batch old = make_batch(&given);
    const zarr_block_sink sink = make_sink(&kept);
    const uint64_t *s = sel ? zarr_selection_shape(sel) : zarr_array_shape(stored);
    const uint64_t shape[] = {(uint64_t)s[0], (uint64_t)s[1]};
    zarr_tensor t = host_tensor((int16_t *)(uintptr_t)v, shape);

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
        zarr_io_options o = {.struct_size = sizeof o,
                             .tuning = TUNING(.pipeline = pipelines[p])};

        make_elements(v, (unsigned)p);
        compare_write(stored, free, NULL, v, &o);
        for (int i = 0; i < 4; i++) {
            zarr_selection *sel = select_part(stored, i);

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
        zarr_tensor t = host_tensor(v, whole);

        print_message("document %zu\n", i);
        world_open(&w, WORLD_MEMORY);
        stored = stored_array(documents[i]);
        free = free_array(stored);
        keep_all(&given, stored); /* nothing is stored */
        compare_reads(stored, free);
        sel = select_part(stored, 0); /* some chunks are missing */
        make_elements(v, 9);
        t = host_tensor(v, (const uint64_t[]){5, 5});
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
        zarr_block_batch in;
        int16_t v[N];
        zarr_tensor t = host_tensor(v, whole);

        world_open(&w, WORLD_MEMORY);
        stored = stored_array(documents[rows[i].document]);
        free = free_array(stored);
        make_elements(v, 1);
        assert_ok(zarr_array_write(stored, NULL, &t, NULL, &terr));
        keep_all(&given, stored);
        in = make_batch(&given);
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

static void test_batch_faults(void **state)
{
    const zarr_io_options strict = {.struct_size = sizeof strict,
                                    .missing_chunks = ZARR_MISSING_ERROR};
    zarr_block_batch in;

    (void)state;
    for (int document = 2; document < 5; document++) {
        open_one(document);
        in = make_batch(&given);
        assert_status(decode_one(NULL, NULL, NULL), ZARR_ERR_INVALID);
        in.n_blocks--; /* the last one is chunk 0, 0 */
        assert_status(decode_one(NULL, &in, NULL), ZARR_ERR_INVALID);
        assert_says("x/y/c/0/0: the batch does not have this chunk");
        in.n_blocks++;
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
        in = make_batch(&given);
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

static zarr_status refuse_chunk(void *user, const uint64_t *chunk,
                                const zarr_memory *bytes, zarr_error *err)
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
    zarr_block_sink sink = make_sink(&kept);
    zarr_block_batch old;
    zarr_selection *sel;
    int16_t v[N];
    zarr_tensor part = host_tensor(v, (const uint64_t[]){5, 5}),
                all = host_tensor(v, whole);

    (void)state;
    for (int document = 2; document < 5; document++) {
        open_one(document);
        kept_clear(&kept);
        make_elements(v, 3);
        sel = select_part(one, 0);
        assert_status(zarr_array_encode(one_free, sel, &part, NULL, NULL, NULL, &terr),
                      ZARR_ERR_INVALID);
        assert_says("no sink");
        assert_status(zarr_array_encode(one_free, sel, &part, NULL, &sink, NULL, &terr),
                      ZARR_ERR_INVALID);
        assert_says("the batch does not have this chunk");
        kept_clear(&kept);
        assert_ok(zarr_array_encode(one_free, NULL, &all, NULL, &sink, NULL, &terr));
        assert_int_equal(kept.n, given.n);
        old = make_batch(&given);
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
        sink = make_sink(&kept);
        sink.fn = NULL;
        assert_status(zarr_array_encode(one_free, NULL, &all, NULL, &sink, NULL, &terr),
                      ZARR_ERR_INVALID);
        sink = make_sink(&kept);
        zarr_selection_free(sel);
        close_one();
    }
}

/* Chunks of fill values are erased, unless the option says otherwise. */
static void test_empty_chunks(void **state)
{
    const zarr_io_options all_stored = {.struct_size = sizeof all_stored,
                                        .empty_chunks = ZARR_EMPTY_CHUNKS_WRITE};
    zarr_block_sink sink = make_sink(&kept);
    int16_t v[N];
    zarr_tensor t = host_tensor(v, whole);

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

/* Few chunks of a grid that has too many for a table of all, in any order. */
static void test_large_grid(void **state)
{
    static const char text[] =
        "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[4000000000,4000000000],"
        "\"data_type\":\"int16\",\"chunk_grid\":" REGULAR(
            "[1,2]") ","
                     "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":9,"
                     "\"codecs\":[" BIG "]}";
    enum {
        ROWS_TAKEN = 20
    };
    static uint8_t bytes[ROWS_TAKEN][4];
    static uint64_t chunks[ROWS_TAKEN][2];
    static zarr_memory mem[ROWS_TAKEN];
    zarr_block_batch in = ZARR_BLOCK_BATCH_INIT;
    int16_t v[ROWS_TAKEN][2];
    zarr_tensor t = host_tensor(v[0], (const uint64_t[]){ROWS_TAKEN, 2});
    const uint64_t first[] = {3000000000, 3999999998}, count[] = {ROWS_TAKEN, 2};
    zarr_selection *sel = NULL;
    zarr_array *a = NULL;

    (void)state;
    t.data_bytes = sizeof v;
    world_open(&w, WORLD_MEMORY);
    assert_ok(zarr_array_open_document(&a, w.ctx, text, NULL, NULL, NULL, NULL, &terr));
    assert_ok(zarr_selection_box(&sel, 2, zarr_array_shape(a), first, count, &terr));
    for (uint64_t i = 0; i < ROWS_TAKEN; i++) {
        const uint64_t row = (i * 7) % ROWS_TAKEN;

        chunks[i][0] = first[0] + row;
        chunks[i][1] = first[1] / 2;
        bytes[i][1] = (uint8_t)row;
        bytes[i][3] = 77;
        mem[i] = (zarr_memory){.handle = row == 3 ? NULL : bytes[i], .bytes = 4};
    }
    in.n_blocks = ROWS_TAKEN;
    in.blocks = chunks[0];
    in.bytes = mem;
    assert_ok(zarr_array_decode(a, sel, &t, &in, NULL, &terr));
    for (int i = 0; i < ROWS_TAKEN; i++) {
        assert_int_equal(v[i][0], i == 3 ? 9 : i);
        assert_int_equal(v[i][1], i == 3 ? 9 : 77);
    }
    chunks[5][0]++; /* becomes another one's, and its own is not there */
    assert_status(zarr_array_decode(a, sel, &t, &in, NULL, &terr), ZARR_ERR_INVALID);
    assert_says("c/3000000016/1999999999: given twice");
    chunks[5][0] = 1;
    assert_status(zarr_array_decode(a, sel, &t, &in, NULL, &terr), ZARR_ERR_INVALID);
    assert_says("c/3000000015/1999999999: the batch does not have this chunk");
    zarr_selection_free(sel);
    zarr_array_free(a);
    world_close(&w);
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
        zarr_memory host = k->mem[i];

        if (!host.handle || host.bytes == 0)
            continue;
        assert_ok(
            zarr_memory_alloc(&k->mem[i], w.ctx, ZARR_DEVICE_EXT, 0, host.bytes, &terr));
        assert_ok(zarr_memory_copy(w.ctx, &k->mem[i], &host, host.bytes, &terr));
    }
}

static zarr_status count_far(void *user, const uint64_t *chunk, const zarr_memory *bytes,
                             zarr_error *err)
{
    struct kept *k = user;
    zarr_memory *m = NULL;

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
        zarr_block_sink sink = {.struct_size = sizeof sink,
                                .fn = count_far,
                                .user = &kept,
                                .device_type = ZARR_DEVICE_EXT};
        zarr_fakedev_counters c;
        zarr_block_batch in;
        int16_t v[N], got[N];
        zarr_tensor t = host_tensor(v, whole), u = host_tensor(got, whole), d;
        zarr_memory block, host = {ZARR_DEVICE_CPU, 0, got, 0, sizeof got};

        open_far(document);
        make_elements(v, 3);
        assert_ok(zarr_array_write(one, NULL, &t, NULL, &terr));
        keep_all(&given, one);
        move_away(&given);
        in = make_batch(&given);
        assert_ok(zarr_array_decode(one_free, NULL, &u, &in, NULL, &terr));
        assert_memory_equal(got, v, sizeof v);
        assert_ok(zarr_memory_alloc(&block, w.ctx, ZARR_DEVICE_EXT, 0, sizeof v, &terr));
        d = t;
        d.device_type = ZARR_DEVICE_EXT;
        d.data = block.handle;
        d.byte_offset = block.offset;
        assert_ok(zarr_array_decode(one_free, NULL, &d, &in, NULL, &terr));
        memset(got, 0, sizeof got);
        assert_ok(zarr_memory_copy(w.ctx, &host, &block, sizeof got, &terr));
        assert_memory_equal(got, v, sizeof v);
        kept_clear(&kept);
        assert_ok(zarr_array_encode(one_free, NULL, &d, NULL, &sink, NULL, &terr));
        compare_chunks(one);
        zarr_memory_free(w.ctx, &block);
        for (uint64_t i = 0; i < given.n; i++)
            if (given.mem[i].device_type == ZARR_DEVICE_EXT)
                zarr_memory_free(w.ctx, &given.mem[i]);
        zarr_fakedev_count(far, &c);
        assert_int_equal(c.faults, 0);
        close_one();
    }
}

/* ---- no memory ---------------------------------------------------------- */

static void test_no_memory(void **state)
{
    const zarr_block_sink sink = make_sink(&kept);
    zarr_block_batch in;
    int16_t v[N];
    zarr_tensor t = host_tensor(v, whole);

    (void)state;
    for (int document = 2; document < 5; document++) {
        zarr_status st = ZARR_ERR_NO_MEMORY;

        open_one(document);
        in = make_batch(&given);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_store), cmocka_unit_test(test_no_copies),
        cmocka_unit_test(test_batch_faults),  cmocka_unit_test(test_encode_faults),
        cmocka_unit_test(test_empty_chunks),  cmocka_unit_test(test_device),
        cmocka_unit_test(test_no_memory),     cmocka_unit_test(test_large_grid),
    };

    return cmocka_run_group_tests_name("given chunks", tests, NULL, NULL);
}
