/*
 * unit/pipe/read/test_rounds.c - round trips of a read on a store with latency. A read of
 * shards takes one for the indexes and one for the chunks, whatever the number of
 * threads; a missing chunk is asked for once. Also the memory of what is fetched.
 */
#include "unit/conditional_caps.h"
#include "unit/pipe/far_store.h"

/* One for each level of indexes, and one for the chunks. */
static const uint32_t rounds[N_KINDS] = {1, 2, 2, 3};

static void read_whole(zarr_array *a, uint32_t threads)
{
    zarr_io_options o = {.struct_size = sizeof o, .max_threads = threads};
    zarr_tensor t = whole_tensor(got);

    memset(got, 0, sizeof got);
    d.rounds = d.n_ops = d.n_gets = 0;
    assert_ok(zarr_array_read(a, NULL, &t, &o, &err));
}

static void test_rounds(void **state)
{
    static const uint32_t all_caps[] = {ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX,
                                        ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX |
                                            CAPS_CONDITIONAL};
    static const uint32_t gets[N_KINDS] = {1024, 32, 32, 16 + 16 * 8 + 16};

    (void)state;
    for (size_t c = 0; c < 2; c++)
        for (int kind = 0; kind < N_KINDS; kind++)
            for (uint32_t threads = 1; threads <= 2; threads++) {
                zarr_array *a = NULL;

                open_stores(all_caps[c]);
                a = make_array((enum kind)kind);
                read_whole(a, threads);
                assert_memory_equal(got, elements, sizeof got);
                assert_int_equal(d.rounds, rounds[kind]);
                assert_int_equal(d.n_gets, gets[kind]);
                assert_int_equal(d.n_ops, d.n_gets);
                assert_non_null(strstr(traced, "a: wave "));
                assert_non_null(strstr(traced, " of a read: "));
                zarr_array_free(a);
                close_stores();
            }
}

/* Values of known lengths come to blocks that they share. The others do not: of a block
 * for the most that they may have, most would never be touched. */
static void test_blocks(void **state)
{
    static const char *const codecs[] = {"[\"bytes\"]", "[\"bytes\",\"zstd\"]"};
    static const uint64_t shape[] = {N, N}, chunk[] = {8, 8};

    (void)state;
    for (int i = 0; i < 3; i++) {
        zarr_array_spec spec = {.struct_size = sizeof spec,
                                .ndim = 2,
                                .shape = shape,
                                .chunk_shape = chunk,
                                .data_type = "int32",
                                .codecs = i < 2 ? codecs[i] : NULL};
        zarr_tensor t = whole_tensor(elements);
        zarr_array *a = NULL, *b = NULL;

        open_stores(ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX);
        a = make_array(SHARDS); /* and its elements */
        if (i < 2) {
            zarr_array_free(a);
            assert_ok(zarr_array_create(&b, memory, "b", &spec, NULL, &err));
            assert_ok(zarr_array_write(b, NULL, &t, NULL, &err));
            zarr_array_free(b);
            assert_ok(zarr_array_open(&a, far, "b", NULL, &err));
        }
        d.n_chunks = d.n_blocks = 0;
        read_whole(a, 2);
        assert_memory_equal(got, elements, sizeof got);
        assert_int_equal(d.n_chunks, i < 2 ? 1024 : 16);
        if (i == 1)
            assert_true(d.n_blocks > 100);
        else
            assert_int_equal(d.n_blocks, 1);
        zarr_array_free(a);
        close_stores();
    }
}

/* Values that did not come are fetched again into the blocks that they gave back: each of
 * these values is too large to share one. */
static void test_second_fetch(void **state)
{
    enum {
        LARGE = 5 << 20
    };
    static const uint64_t shape[] = {2 * LARGE}, chunk[] = {LARGE};
    static const uint64_t all[] = {2 * LARGE};
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 1,
                                  .shape = shape,
                                  .chunk_shape = chunk,
                                  .data_type = "uint8",
                                  .codecs = "[\"bytes\",\"crc32c\"]"};
    const zarr_io_options o = {.struct_size = sizeof o, .max_threads = 1};
    uint8_t *in = malloc(2 * LARGE), *out = calloc(2, LARGE);
    zarr_array *a = NULL;
    zarr_tensor t;

    (void)state;
    assert_true(in && out);
    memset(in, 7, 2 * LARGE);
    in[LARGE + 5] = 1;
    open_stores(ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX);
    zarr_tensor_host(&t, NULL, in, 2 * LARGE, 1, all);
    assert_ok(zarr_array_create(&a, memory, "b", &spec, NULL, &err));
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &err));
    zarr_array_free(a);
    assert_ok(zarr_array_open(&a, far, "b", NULL, &err));
    d.n_failing = 2;
    d.n_seen = 0;
    zarr_tensor_host(&t, NULL, out, 2 * LARGE, 1, all);
    assert_ok(zarr_array_read(a, NULL, &t, &o, &err));
    assert_memory_equal(out, in, 2 * LARGE);
    assert_int_equal(d.n_seen, 4);
    assert_ptr_not_equal(d.seen[0], d.seen[1]);
    for (int i = 2; i < 4; i++)
        assert_true(d.seen[i] == d.seen[0] || d.seen[i] == d.seen[1]);
    zarr_array_free(a);
    close_stores();
    free(in);
    free(out);
}

/* Ranges of one shard are joined as the call says; that changes no round trip. */
static void test_coalesce(void **state)
{
    static const struct {
        uint64_t gap, bytes;
        uint32_t ranges; /* of each shard */
    } rows[] = {{0, 0, 1}, {0, 1, 64}, {1, 1, 64}, {0, 64 * 8 * 8 * 4 / 2, 2}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        zarr_io_options o = {.struct_size = sizeof o,
                             .tuning = TUNING(.coalesce_gap = rows[i].gap,
                                              .coalesce_bytes = rows[i].bytes)};
        zarr_tensor t = whole_tensor(got);
        zarr_array *a = NULL;

        open_stores(ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX);
        a = make_array(SHARDS);
        memset(got, 0, sizeof got);
        assert_ok(zarr_array_read(a, NULL, &t, &o, &err));
        assert_memory_equal(got, elements, sizeof got);
        assert_int_equal(d.rounds, 2);
        assert_int_equal(d.n_gets, 16 + 16 * rows[i].ranges);
        zarr_array_free(a);
        close_stores();
    }
}

/* A read of parts of all shards, and four crops in one request, take as few. */
static void test_partial(void **state)
{
    static int32_t crop[4][100 * 90];
    const uint64_t crop_shape[] = {100, 90};
    const uint64_t n[] = {100, 90};

    (void)state;
    for (int kind = 0; kind < N_KINDS; kind++) {
        const uint64_t some[] = {N / 16, N / 16};
        zarr_selection *sel = NULL, *box[4];
        zarr_io_part part[4] = {{0}};
        zarr_tensor t, crops[4];
        zarr_array *a = NULL;

        open_stores(ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX);
        a = make_array((enum kind)kind);
        assert_ok(
            zarr_selection_parse(&sel, 2, zarr_array_shape(a), "5::16, 3::16", &err));
        zarr_tensor_host(&t, NULL, got, sizeof got, 2, some);
        assert_ok(zarr_array_read(a, sel, &t, NULL, &err));
        assert_int_equal(d.rounds, rounds[kind]);
        for (int i = 0; i < 256; i++)
            assert_int_equal(got[i], elements[(i / 16 * 16 + 5) * N + i % 16 * 16 + 3]);
        zarr_selection_free(sel);
        d.rounds = d.n_gets = 0;
        for (int i = 0; i < 4; i++) {
            const uint64_t at[] = {30 * (uint64_t)i, 50 * (uint64_t)i};

            assert_ok(zarr_selection_box(&box[i], 2, zarr_array_shape(a), at, n, &err));
            zarr_tensor_host(&crops[i], NULL, crop[i], sizeof crop[i], 2, crop_shape);
            part[i] = (zarr_io_part){.selection = box[i], .tensor = &crops[i]};
        }
        assert_ok(zarr_array_read_many(a, part, 4, NULL, &err));
        assert_int_equal(d.rounds, rounds[kind]);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(crop[i][0], elements[30 * i * N + 50 * i]);
            assert_int_equal(crop[i][8999], elements[(30 * i + 99) * N + 50 * i + 89]);
            zarr_selection_free(box[i]);
        }
        zarr_array_free(a);
        close_stores();
    }
}

/* Missing chunks and shards cost no second request, but one look at the document. */
static void test_missing(void **state)
{
    (void)state;
    for (int kind = 0; kind < N_KINDS; kind++) {
        const uint64_t missing[][2] = {{0, 0}, {3, 2}, {1, 3}};
        zarr_array *a = NULL, *b = NULL;

        open_stores(ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX);
        a = make_array((enum kind)kind);
        assert_ok(zarr_array_open(&b, memory, "a", NULL, &err));
        for (size_t i = 0; i < 3; i++)
            assert_ok(zarr_array_block_erase(b, missing[i], NULL, &err));
        read_whole(a, 2);
        assert_int_equal(got[0], 0);
        assert_int_equal(got[N * N - 1], N * N);
        assert_int_equal(d.rounds, rounds[kind] + 1);
        if (kind == CHUNKS)
            assert_int_equal(d.n_gets, 1024 + 1);
        if (kind == SHARDS)
            assert_int_equal(d.n_gets, 16 + 13 + 1);
        zarr_array_free(b);
        zarr_array_free(a);
        close_stores();
    }
}

/* A damaged index, and one that is cut off, give the same errors as without latency. */
static void test_damage(void **state)
{
    const uint64_t chunk[] = {1, 1};

    (void)state;
    for (int i = 0; i < 2; i++) {
        zarr_array *a = NULL, *b = NULL;
        zarr_tensor t = whole_tensor(got);
        uint8_t bytes[32 * 1024];
        uint64_t n = sizeof bytes;

        open_stores(ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX);
        a = make_array(SHARDS);
        assert_ok(zarr_array_open(&b, memory, "a", NULL, &err));
        assert_ok(zarr_array_block_read_encoded(b, chunk, bytes, &n, NULL, &err));
        memset(bytes + n - 100, 0x11, 100);
        assert_ok(zarr_array_block_write_encoded(b, chunk, bytes, i == 0 ? n : 100, NULL,
                                                 &err));
        assert_int_equal(zarr_array_read(a, NULL, &t, NULL, &err), ZARR_ERR_CORRUPT);
        assert_non_null(strstr(err.message, "a/c/1/1"));
        zarr_array_free(b);
        zarr_array_free(a);
        close_stores();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounds),       cmocka_unit_test(test_coalesce),
        cmocka_unit_test(test_partial),      cmocka_unit_test(test_missing),
        cmocka_unit_test(test_damage),       cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_second_fetch),
    };

    return cmocka_run_group_tests_name("round trips of reads", tests, NULL, NULL);
}
