/*
 * unit/array/test_caller_chunks_many.c - many chunks that the caller has, in one call:
 * what they cost does not grow faster than their number. A chunk takes no allocation, and
 * nothing depends on the order of the batch. bench/micro/chunk_decode.c measures the
 * time.
 */
#include "caller_chunks_test.h"

enum {
    MANY = 65536,
    FEW = 4096
};
static uint64_t chunks[MANY];
static zarr_memory bytes[MANY];
static int32_t elements[MANY], got[MANY];

/* An array of n chunks of one element, without a store. */
static zarr_array *one_element_each(uint64_t n, const char *codecs)
{
    zarr_array *a = NULL;
    char text[512];

    snprintf(text, sizeof text,
             "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[%u],\"data_type\":"
             "\"int32\",\"chunk_grid\":" REGULAR(
                 "[1]") ",\"chunk_key_encoding\":{\"name\":\"default\"},"
                        "\"fill_value\":0,\"codecs\":[%s]}",
             (unsigned)n, codecs);
    assert_ok(zarr_array_open_document(&a, w.ctx, text, NULL, NULL, NULL, NULL, &terr));
    return a;
}

static zarr_status note_chunk(void *user, const uint64_t *chunk, const zarr_memory *mem,
                              zarr_error *err)
{
    char *room = user;

    (void)err;
    assert_true(mem && mem->bytes <= 32);
    memcpy(room + 32 * chunk[0], (char *)mem->handle + mem->offset, mem->bytes);
    bytes[chunk[0]] = (zarr_memory){ZARR_DEVICE_CPU, 0, room, 32 * chunk[0], mem->bytes};
    return ZARR_OK;
}

/* Returns how many allocations a decode of n chunks makes, in an order that is not that
 * of the grid. */
static int64_t count_allocations(uint64_t n, const char *codecs)
{
    const int64_t most = INT64_C(1) << 40;
    char *room = calloc(n, 32);
    const zarr_block_sink sink = {
        .struct_size = sizeof sink, .fn = note_chunk, .user = room};
    const zarr_io_options o = {.struct_size = sizeof o, .max_threads = 1};
    zarr_array *a = one_element_each(n, codecs);
    zarr_block_batch in = ZARR_BLOCK_BATCH_INIT;
    int64_t made = 0;
    zarr_tensor t;

    zarr_tensor_host(&t, NULL, elements, n * sizeof *elements, 1, &n);
    assert_ok(zarr_array_encode(a, NULL, &t, NULL, &sink, &o, &terr));
    for (uint64_t i = 0; i < n; i++)
        chunks[i] = i;
    for (uint64_t i = 0; i < n / 2; i += 3) {
        const zarr_memory mem = bytes[i];

        chunks[i] = n - 1 - i;
        chunks[n - 1 - i] = i;
        bytes[i] = bytes[n - 1 - i];
        bytes[n - 1 - i] = mem;
    }
    in.n_blocks = n;
    in.blocks = chunks;
    in.bytes = bytes;
    zarr_tensor_host(&t, NULL, got, n * sizeof *got, 1, &n);
    assert_ok(zarr_array_decode(a, NULL, &t, &in, &o, &terr)); /* warm */
    memset(got, 0, sizeof got);
    atomic_store(&w.fail_at, most);
    assert_ok(zarr_array_decode(a, NULL, &t, &in, &o, &terr));
    made = most - atomic_exchange(&w.fail_at, 0);
    assert_memory_equal(got, elements, n * sizeof *got);
    zarr_array_free(a);
    free(room);
    return made;
}

static void test_allocations(void **state)
{
    static const char *const codecs[] = {LITTLE, LITTLE ",\"crc32c\"",
                                         LITTLE ",\"zstd\""};

    (void)state;
    for (int i = 0; i < MANY; i++)
        elements[i] = i + 1;
    world_open(&w, WORLD_MEMORY);
    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++) {
        const int64_t few = count_allocations(FEW, codecs[i]);
        const int64_t many = count_allocations(MANY, codecs[i]);

        assert_true(few > 0);
        if (many > 3 * few + 100)
            fail_msg("%s: %d allocations for %d chunks, %d for %d", codecs[i], (int)few,
                     FEW, (int)many, MANY);
    }
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
