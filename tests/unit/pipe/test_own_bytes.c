/*
 * unit/pipe/test_own_bytes.c - a pipeline of an application may overwrite the bytes that
 * it fetched. They are its own, also where the library itself reads them in place: the
 * encoded chunks of a caller.
 */
#include "own_pipe.h"

enum {
    N = 32,
    EDGE = 16,
    N_CHUNKS = 4,
    MOST_BYTES = 8192
};
static const uint64_t shape[2] = {N, N}, chunk[2] = {EDGE, EDGE}, zero[2] = {0, 0};
static int32_t data[N * N], got[N * N];

static const char *const codecs[] = {
    "[" BYTES "]",
    "[" BYTES "," GZIP "]",
    "[" TURN "," BIG "]",
    "[" SHARD("[4,8]", BYTES, "end") "]",
    "[" SHARD("[4,8]", BYTES "," GZIP, "start") "]",
    "[" SHARD("[4,8]", BYTES, "end") "," CRC "]",
    "[" SHARD("[8,8]", SHARD("[4,8]", BYTES, "end"), "end") "," GZIP "]",
};

static void own_open_world(struct pw *w)
{
    pw_context(w, 2, UINT64_C(64) << 20, 0);
    assert_ok(zarr_context_register_pipeline(w->ctx, &own_pipe, &own_n, "test", &terr));
    assert_ok(zarr_store_open(&w->store, w->ctx, "memory:", NULL, &terr));
    for (int i = 0; i < N * N; i++)
        data[i] = i + 1;
}

static void test_chunks_of_the_caller(void **state)
{
    static uint8_t bytes[N_CHUNKS][MOST_BYTES], before[N_CHUNKS][MOST_BYTES];
    const uint64_t whole[2] = {N, N};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(codecs); i++) {
        const zarr_io_options opts = {.struct_size = sizeof opts,
                                      .tuning = TUNING(.pipeline = "test.own")};
        uint64_t at[N_CHUNKS * 2];
        zarr_memory mem[N_CHUNKS];
        const zarr_block_batch batch = {.struct_size = sizeof batch,
                                        .n_blocks = N_CHUNKS,
                                        .blocks = at,
                                        .bytes = mem};
        struct pw w;
        zarr_array *a;

        own_open_world(&w);
        a = pw_array(w.store, "a", codecs[i], shape, chunk);
        assert_ok(pw_box(a, zero, shape, data, NULL, true));
        for (uint64_t k = 0; k < N_CHUNKS; k++) {
            uint64_t n = MOST_BYTES;

            at[2 * k] = k / 2;
            at[2 * k + 1] = k % 2;
            assert_ok(
                zarr_array_block_read_encoded(a, &at[2 * k], bytes[k], &n, NULL, &terr));
            mem[k] = zr_mem_of_host(bytes[k], n);
        }
        memcpy(before, bytes, sizeof before);
        for (int turn = 0; turn < 2; turn++) {
            const zarr_tensor t = pw_tensor(got, whole, sizeof got);

            memset(got, 0, sizeof got);
            assert_ok(zarr_array_decode(a, NULL, &t, &batch, &opts, &terr));
            assert_memory_equal(got, data, sizeof got);
            assert_memory_equal(bytes, before, sizeof bytes);
        }
        zarr_array_free(a);
        pw_close(&w);
    }
    assert_int_equal(atomic_load(&own_n.wrong), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunks_of_the_caller),
    };

    return cmocka_run_group_tests_name("own bytes", tests, NULL, NULL);
}
