/*
 * unit/codecs/test_zstd_blocks.c - how many blocks a frame of zstd has: more than it
 * needs take longer to decode.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <zarrc/zarrc.h>

enum {
    EDGE = 64,
    N = EDGE * EDGE * EDGE,
    BLOCK_BYTES = 128 << 10 /* what a block of zstd has at most */
};

static uint16_t data[N];
static zarr_error terr;

static void assert_ok(zarr_status st)
{
    if (st != ZARR_OK)
        fail_msg("%s", terr.message);
}

/* Elements in which zstd 1.5.7 finds many places to begin a block. */
static void make_data(void)
{
    for (uint32_t z = 0, at = 0; z < EDGE; z++)
        for (uint32_t y = 0; y < EDGE; y++)
            for (uint32_t x = 0; x < EDGE; x++) {
                const uint32_t n = (z * 256 + y) * 256 + x;

                data[at++] = (uint16_t)(n + (n >> 9) * (n >> 9) / 32);
            }
}

/* Spec: RFC 8878, 3.1.1: the header of a frame, then a header of 3 bytes for each block.
 */
static int count_blocks(const uint8_t *frame, size_t bytes)
{
    static const size_t dictionary[] = {0, 1, 2, 4}, content[] = {0, 2, 4, 8};
    const bool single = frame[4] >> 5 & 1;
    size_t at = (single ? 5u : 6u) + dictionary[frame[4] & 3] + content[frame[4] >> 6];
    int n = 0;

    at += single && frame[4] >> 6 == 0;
    for (bool last = false; !last; n++) {
        uint32_t header = 0;

        assert_true(at + 3 <= bytes);
        header = frame[at] | (uint32_t)frame[at + 1] << 8 | (uint32_t)frame[at + 2] << 16;
        last = header & 1;
        at += 3 + ((header >> 1 & 3) == 1 ? 1 : header >> 3); /* 1: one byte, repeated */
    }
    return n;
}

static int count_zstd_blocks(zarr_context *ctx, int level)
{
    const uint64_t shape[3] = {EDGE, EDGE, EDGE};
    const uint64_t dims[3] = {EDGE, EDGE, EDGE};
    const zarr_tensor t = {.struct_size = sizeof t,
                           .device_type = ZARR_DEVICE_CPU,
                           .ndim = 3,
                           .data = data,
                           .shape = dims,
                           .data_bytes = sizeof data};
    static uint8_t room[2 * sizeof data];
    char codecs[200];
    zarr_array_spec spec = ZARR_ARRAY_SPEC_INIT;
    const uint64_t first[3] = {0};
    uint64_t bytes = sizeof room;
    zarr_store *store = NULL;
    zarr_array *a = NULL;

    snprintf(codecs, sizeof codecs,
             "[\"bytes\",{\"name\":\"zstd\",\"configuration\":{\"level\":%d,"
             "\"checksum\":false}}]",
             level);
    spec.ndim = 3;
    spec.shape = spec.chunk_shape = shape;
    spec.data_type = "uint16";
    spec.codecs = codecs;
    assert_ok(zarr_store_open(&store, ctx, "memory:", NULL, &terr));
    assert_ok(zarr_array_create(&a, store, "a", &spec, NULL, &terr));
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    assert_ok(zarr_array_block_read_encoded(a, first, room, &bytes, NULL, &terr));
    zarr_array_free(a);
    zarr_store_free(store);
    return count_blocks(room, (size_t)bytes);
}

static void test_blocks(void **state)
{
    zarr_context *ctx = NULL;

    (void)state;
    make_data();
    assert_ok(zarr_context_create(&ctx, NULL, &terr));
    for (int level = 1; level < 10; level++)
        assert_int_equal(count_zstd_blocks(ctx, level), sizeof data / BLOCK_BYTES);
    zarr_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_blocks)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
