/*
 * unit/pipe/chunk/test_zstd_pieces.c - large zstd chunks are decoded in pieces into views
 * whose rows are long enough, and whole into others; streams of all kinds, and damaged
 * ones, give what the decoder of whole chunks gives.
 */
#include "unit/pipe/pipe_test.h"

#include <zstd.h>

#define PLANES INT64_C(9)
#define ROWS   INT64_C(150)
#define COLS   INT64_C(900) /* a plane of 270,000 bytes: more than a piece */
#define ITEMS  (PLANES * ROWS * COLS)
static const uint64_t shape[] = {PLANES, ROWS, COLS};
#define ZSTD1 "{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":false}}"
static uint16_t data[ITEMS], room[3 * ITEMS];

static void make_data(void)
{
    uint32_t x = 1;

    for (int i = 0; i < ITEMS; i++) {
        x = x * 1664525 + 1013904223;
        data[i] = (uint16_t)(i % COLS * 3 + i / COLS + (int)(x >> 31 & (i % 64 == 0)));
    }
}

static zarr_array *make_array(const struct pw *w, const char *path, const char *codecs,
                              const uint64_t *chunk)
{
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .ndim = 3,
                                  .shape = shape,
                                  .chunk_shape = chunk,
                                  .data_type = "uint16",
                                  .codecs = codecs};
    zarr_array *a = NULL;

    assert_ok(zarr_array_create(&a, w->store, path, &spec, NULL, &terr));
    return a;
}

/* Where the elements of a tensor are in `room`, in elements. */
struct layout {
    int64_t first, stride[3];
    int pieces; /* whether chunks are decoded in pieces */
};

/* Returns how many chunks were not copied from a block. */
static zarr_status read_to(zarr_array *a, const struct layout *l, uint64_t *direct)
{
    static const uint64_t size[] = {PLANES, ROWS, COLS};
    const int64_t strides[] = {2 * l->stride[0], 2 * l->stride[1], 2 * l->stride[2]};
    zarr_stats stats = ZARR_STATS_INIT;
    const zarr_io_options opts = {.struct_size = sizeof opts, .stats = &stats};
    zarr_tensor t;
    zarr_status st;

    zarr_tensor_host(&t, NULL, room, sizeof room, 3, size);
    t.strides = strides;
    t.byte_offset = (uint64_t)l->first * 2;
    memset(room, 0x11, sizeof room);
    st = zarr_array_read(a, NULL, &t, &opts, &terr);
    *direct = stats.chunks_direct;
    return st;
}

static void check(const struct layout *l)
{
    uint64_t differ = 0;

    for (int64_t i = 0; i < PLANES; i++)
        for (int64_t j = 0; j < ROWS; j++)
            for (int64_t k = 0; k < COLS; k++)
                differ += room[l->first + i * l->stride[0] + j * l->stride[1] +
                               k * l->stride[2]] != data[(i * ROWS + j) * COLS + k];
    assert_int_equal(differ, 0);
}

static const struct layout wide = {7, {ROWS * (COLS + 5), COLS + 5, 1}, 1};

static void test_layouts(void **state)
{
    static const struct layout layouts[] = {
        {7, {ROWS * (COLS + 5), COLS + 5, 1}, 1},
        {0, {COLS, PLANES * COLS, 1}, 1}, /* another order of long rows */
        {(PLANES - 1) * ROWS * COLS, {-ROWS * COLS, COLS, 1}, 1},
        {PLANES * ROWS * COLS - COLS, {-ROWS * COLS, -COLS, 1}, 1},
        {0, {2 * ROWS * COLS, 2 * COLS, 2}, 0},
        {COLS - 1, {ROWS * COLS, COLS, -1}, 0},
        {0, {1, PLANES, PLANES * ROWS}, 0},
    };
    static const struct {
        const char *path, *codecs;
        uint64_t chunk[3];
        int n, pieces; /* whole chunks; whether these are large */
    } arrays[] = {
        {"a", "[" BYTES "," ZSTD1 "]", {PLANES, ROWS, COLS}, 1, 1},
        {"b", "[" BYTES "," ZSTD1 "," CRC "]", {8, ROWS, COLS}, 1, 1},
        {"c", "[" BYTES "," ZSTD1 "]", {2, ROWS, COLS}, 4, 0},
        {"d", "[" BYTES "," ZSTD1 "]", {PLANES, ROWS, 800}, 1, 1},
        {"e", "[" BIG "," ZSTD1 "]", {PLANES, ROWS, COLS}, 1, 0},
    };
    struct pw w;

    (void)state;
    pw_open(&w, 1, UINT64_C(256) << 20, 0);
    for (size_t i = 0; i < ZR_COUNT(arrays); i++) {
        zarr_array *a = make_array(&w, arrays[i].path, arrays[i].codecs, arrays[i].chunk);
        zarr_tensor t;
        static const uint64_t size[] = {PLANES, ROWS, COLS};

        zarr_tensor_host(&t, NULL, data, sizeof data, 3, size);
        assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
        for (size_t k = 0; k < ZR_COUNT(layouts); k++) {
            uint64_t direct = 0;

            assert_ok(read_to(a, &layouts[k], &direct));
            check(&layouts[k]);
            assert_int_equal(direct,
                             arrays[i].pieces && layouts[k].pieces ? arrays[i].n : 0);
        }
        zarr_array_free(a);
    }
    pw_close(&w);
}

/* ---- streams ---------------------------------------------------------------------- */

static uint8_t value[2 * sizeof data];

/* Appends a frame of the elements [from, to). */
static size_t frame(size_t at, size_t from, size_t to, int window_log, int with_size)
{
    ZSTD_CCtx *c = ZSTD_createCCtx();
    ZSTD_inBuffer src = {data + from, (to - from) * 2, 0};
    ZSTD_outBuffer dst = {value + at, sizeof value - at, 0};

    (void)ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, window_log);
    (void)ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
    (void)ZSTD_CCtx_setParameter(c, ZSTD_c_contentSizeFlag, with_size);
    if (with_size)
        (void)ZSTD_CCtx_setPledgedSrcSize(c, src.size);
    while (ZSTD_compressStream2(
        c, &dst, &src, src.pos < src.size && !with_size ? ZSTD_e_flush : ZSTD_e_end))
        ;
    if (!with_size)
        while (ZSTD_compressStream2(c, &dst, &src, ZSTD_e_end))
            ;
    ZSTD_freeCCtx(c);
    return at + dst.pos;
}

static void expect(zarr_array *a, const struct pw *w, size_t n, uint64_t direct,
                   const char *failure)
{
    uint64_t got = 0;
    zarr_status st;

    assert_ok(zarr_store_put(w->store, "a/c/0/0/0", value, n, NULL, &terr));
    st = read_to(a, &wide, &got);
    if (!failure) {
        assert_ok(st);
        check(&wide);
        assert_int_equal(got, direct);
        return;
    }
    assert_status(st, ZARR_ERR_CORRUPT);
    if (!strstr(terr.message, failure))
        fail_msg("%s", terr.message);
}

static void test_streams(void **state)
{
    static const uint8_t skip[] = {0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3};
    zarr_array *a;
    struct pw w;
    size_t n;

    (void)state;
    pw_open(&w, 1, UINT64_C(256) << 20, 0);
    a = make_array(&w, "a", "[" BYTES "," ZSTD1 "]", shape);
    n = frame(0, 0, ITEMS, 18, 1);
    expect(a, &w, n, 1, NULL);
    value[n - 1] ^= 1;
    expect(a, &w, n, 0, "checksum");
    expect(a, &w, n - 1, 0, "truncated");
    value[n - 1] ^= 1;
    value[n / 2] ^= 0x55;
    expect(a, &w, n, 0, "zstd: ");
    n = frame(0, 0, ITEMS, 18, 0);
    expect(a, &w, n, 1, NULL);
    n = frame(0, 0, ITEMS, 24, 0); /* a window that would take too much memory */
    expect(a, &w, n, 0, NULL);
    n = frame(0, 0, 100001, 16, 1); /* several frames, one of them without elements */
    n = frame(n, 100001, 100001, 16, 0);
    n = frame(n, 100001, ITEMS, 17, 0);
    memcpy(value + n, skip, sizeof skip);
    expect(a, &w, n, 1, NULL);
    expect(a, &w, n + sizeof skip, 1, NULL);
    n = frame(n, 0, 1, 17, 1);
    expect(a, &w, n, 0, "zstd: more than 2430000 bytes");
    n = frame(0, 0, ITEMS - 1, 18, 0);
    expect(a, &w, n, 0, "zstd: 2429998 bytes, expected 2430000");
    n = frame(0, 0, 0, 18, 0);
    expect(a, &w, n, 0, "zstd: 0 bytes, expected 2430000");
    zarr_array_free(a);
    pw_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layouts),
                                       cmocka_unit_test(test_streams)};

    make_data();
    return cmocka_run_group_tests_name("pipe_zstd_pieces", tests, NULL, NULL);
}
