/*
 * unit/pipe/test_device_crops.c - one request with many parts, read to a device.
 */
#include "device_waves_test.h"

#include <zarrc/parts.h>

enum {
    CROPS = 64,
    CROP_ROWS = 16,
    CROP_COLS = 12,
    CROP = CROP_ROWS * CROP_COLS
};

struct crops {
    zarr_io_part part[CROPS];
    zarr_tensor t[CROPS];
    uint64_t at[CROPS][2];
    zarr_mem mem;
};

/* Random places, one behind the other in one block of the device. */
static void crops_make(const struct pw *w, struct crops *c)
{
    static const int64_t sizes[2] = {CROP_ROWS, CROP_COLS};
    static const uint64_t count[2] = {CROP_ROWS, CROP_COLS};
    unsigned seed = 7;

    memset(c, 0, sizeof *c);
    assert_ok(zarr_mem_alloc(w->ctx, ZARR_DEVICE_EXT, 0, sizeof data[0] * CROPS * CROP,
                             &c->mem, &terr));
    for (int i = 0; i < CROPS; i++) {
        zarr_selection *sel = NULL;

        c->at[i][0] = (uint64_t)rand_r(&seed) % (ROWS - CROP_ROWS + 1);
        c->at[i][1] = (uint64_t)rand_r(&seed) % (COLS - CROP_COLS + 1);
        assert_ok(zarr_selection_box(&sel, 2, shape, c->at[i], count, &terr));
        c->t[i] = (zarr_tensor)ZARR_TENSOR_INIT;
        c->t[i].device_type = ZARR_DEVICE_EXT;
        c->t[i].ndim = 2;
        c->t[i].data = c->mem.handle;
        c->t[i].byte_offset = (uint64_t)i * CROP * sizeof data[0];
        c->t[i].data_bytes = c->mem.bytes;
        c->t[i].shape = sizes;
        c->part[i].selection = sel;
        c->part[i].tensor = &c->t[i];
    }
}

static void crops_free(const struct pw *w, struct crops *c)
{
    for (int i = 0; i < CROPS; i++)
        zarr_selection_free((zarr_selection *)(uintptr_t)c->part[i].selection);
    zarr_mem_free(w->ctx, &c->mem);
}

/* Whether a crop has elements of the chunk of 5 x 4 at this place. */
static bool crop_touches(const struct crops *c, int i, uint64_t row, uint64_t col)
{
    return c->at[i][0] < row + 5 && row < c->at[i][0] + CROP_ROWS &&
           c->at[i][1] < col + 4 && col < c->at[i][1] + CROP_COLS;
}

static void crop_is_right(const struct crops *c, int i)
{
    static int32_t crop[CROP];

    assert_int_equal(
        zarr_fakedev_peek(c->mem.handle, c->t[i].byte_offset, crop, sizeof crop), 0);
    for (int k = 0; k < CROP; k++) {
        const uint64_t row = c->at[i][0] + (uint64_t)(k / CROP_COLS);
        const uint64_t col = c->at[i][1] + (uint64_t)(k % CROP_COLS);
        const bool missing = row / 20 == 2 && col / 20 == 0;

        assert_int_equal(crop[k], missing ? -1 : data[row * COLS + col]);
    }
}

/* 64 random crops are one request, whose waves make few calls; a chunk that is damaged
 * fails only the crops that touch it. */
static void test_crops(void **state)
{
    static const char *const chains[] = {
        "[" SHARD("[5,4]", BYTES "," LATE, "end") "]",
        "[" SHARD("[5,4]", BIG, "end") "]",
        "[" SHARD("[5,4]", BYTES "," GZIP, "end") "]",
    };
    const int64_t sizes[2] = {ROWS, COLS};

    (void)state;
    for (size_t k = 0; k < ZR_COUNT(chains); k++) {
        zarr_stats stats = ZARR_STATS_INIT;
        zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
        zarr_fakedev_late_counters before, after;
        zarr_fakedev_counters moved, moved_after;
        struct crops c;
        struct pw w;
        zarr_array *a;
        zarr_tensor t;

        open_world(&w, 2, 1 << 20);
        a = pw_array(w.store, "a", chains[k], shape, (uint64_t[2]){20, 20});
        zarr_tensor_host(&t, data, sizeof data, 2, sizes);
        assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
        assert_ok(zarr_array_chunk_erase(a, (uint64_t[2]){2, 0}, &terr));
        crops_make(&w, &c);
        opts.stats = &stats;
        atomic_store(&n_jobs, 0);
        zarr_fakedev_late_count(device, &before);
        zarr_fakedev_count(device, &moved);
        assert_ok(zarr_array_read_many(a, c.part, CROPS, &opts, &terr));
        zarr_fakedev_late_count(device, &after);
        zarr_fakedev_count(device, &moved_after);
        for (int i = 0; i < CROPS; i++) {
            assert_int_equal(c.part[i].status, ZARR_OK);
            crop_is_right(&c, i);
        }
        /* up, boxes (1,024 in a call at most) and fills; the codec of this test has a
         * list for each chunk */
        assert_in_range(after.lists - before.lists - (uint64_t)atomic_load(&n_jobs), 2,
                        6 * stats.waves);
        assert_in_range(after.syncs - before.syncs, 1, stats.waves);
        /* each stored byte once, or each decoded byte if the CPU decodes */
        assert_in_range(moved_after.bytes_up - moved.bytes_up, 1, sizeof data);
        assert_int_equal(moved_after.bytes_down, moved.bytes_down);
        if (k == 0) {
            damage = data[45 * COLS + 28];
            assert_status(zarr_array_read_many(a, c.part, CROPS, NULL, &terr),
                          ZARR_ERR_CORRUPT);
            for (int i = 0; i < CROPS; i++) {
                assert_int_equal(c.part[i].status, crop_touches(&c, i, 45, 28)
                                                       ? ZARR_ERR_CORRUPT
                                                       : ZARR_OK);
                if (c.part[i].status == ZARR_OK)
                    crop_is_right(&c, i);
            }
            damage = -1;
        }
        crops_free(&w, &c);
        zarr_array_free(a);
        close_world(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_crops)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
