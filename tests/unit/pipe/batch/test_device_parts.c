/*
 * unit/pipe/batch/test_device_parts.c - one request with many parts, read to a device and
 * written from one, which does the items of a list backward. Where parts overlap, or a
 * selection repeats a place, the last element counts.
 */
#include "unit/pipe/device_test.h"

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
    zarr_memory mem;
};

/* Random places, one behind the other in one block of the device. */
static void crops_make(const struct pw *w, struct crops *c)
{
    static const uint64_t lengths[2] = {CROP_ROWS, CROP_COLS};
    static const uint64_t count[2] = {CROP_ROWS, CROP_COLS};
    unsigned seed = 7;

    memset(c, 0, sizeof *c);
    assert_ok(zarr_memory_alloc(&c->mem, w->ctx, ZARR_DEVICE_EXT, 0,
                                sizeof data[0] * CROPS * CROP, &terr));
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
        c->t[i].shape = lengths;
        c->part[i].selection = sel;
        c->part[i].tensor = &c->t[i];
    }
}

static void crops_free(const struct pw *w, struct crops *c)
{
    for (int i = 0; i < CROPS; i++)
        zarr_selection_free((zarr_selection *)(uintptr_t)c->part[i].selection);
    zarr_memory_free(w->ctx, &c->mem);
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

    (void)state;
    for (size_t k = 0; k < ZR_COUNT(chains); k++) {
        zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
        struct counts n;
        struct crops c;
        struct pw w;
        zarr_array *a;
        zarr_tensor t;

        open_world(&w, 2, 1 << 20);
        a = pw_array(w.store, "a", chains[k], shape, (uint64_t[2]){20, 20});
        zarr_tensor_host(&t, NULL, data, sizeof data, 2, sizes);
        assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
        assert_ok(zarr_array_block_erase(a, (uint64_t[2]){2, 0}, NULL, &terr));
        crops_make(&w, &c);
        count_begin(&n, &opts);
        assert_ok(zarr_array_read_many(a, c.part, CROPS, &opts, &terr));
        count_end(&n);
        for (int i = 0; i < CROPS; i++) {
            assert_int_equal(c.part[i].status, ZARR_OK);
            crop_is_right(&c, i);
        }
        /* up, boxes (1,024 in a call at most) and fills */
        assert_in_range(n.late.lists, 2, 6 * n.stats.waves);
        assert_in_range(n.late.syncs, 1, n.stats.waves);
        /* each stored byte once, or each decoded byte if the CPU decodes */
        assert_in_range(n.moved.bytes_up, 1, sizeof data);
        assert_int_equal(n.moved.bytes_down, 0);
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

/* ---- writing -------------------------------------------------------------------- */

/* The same crops on the host. */
static int32_t crop_data[CROPS][CROP];
static zarr_tensor host_tensor[CROPS];
static zarr_io_part host_part[CROPS];

static bool host_crop_is_right(const struct crops *c, int i)
{
    for (int k = 0; k < CROP; k++) {
        const uint64_t row = c->at[i][0] + (uint64_t)(k / CROP_COLS);
        const uint64_t col = c->at[i][1] + (uint64_t)(k % CROP_COLS);
        const bool missing = row / 20 == 2 && col / 20 == 0;

        if (crop_data[i][k] != (missing ? -1 : data[row * COLS + col]))
            return false;
    }
    return true;
}

/* Every second crop is in host memory. */
static void crops_mix(struct crops *c)
{
    static const uint64_t lengths[2] = {CROP_ROWS, CROP_COLS};

    for (int i = 0; i < CROPS; i += 2) {
        memset(crop_data[i], 0, sizeof crop_data[i]);
        zarr_tensor_host(&host_tensor[i], NULL, crop_data[i], sizeof crop_data[i], 2,
                         lengths);
        c->part[i].tensor = &host_tensor[i];
    }
}

static void mixed_are_right(const struct crops *c, zarr_status other)
{
    int n_failed = 0;

    for (int i = 0; i < CROPS; i++) {
        /* only the device's decoder meets the damage */
        const bool is_bad = other && i % 2 == 1 && crop_touches(c, i, 45, 28);

        assert_int_equal(c->part[i].status, is_bad ? other : ZARR_OK);
        if (is_bad && n_failed++ == 0)
            assert_int_equal(terr.item, i); /* the caller's number of the first one */
        if (!is_bad && i % 2 == 0)
            assert_true(host_crop_is_right(c, i));
        else if (!is_bad)
            crop_is_right(c, i);
    }
    assert_true(!other || n_failed > 1);
}

/* Each part is decoded where it belongs: the device's chunks by the device, which gets
 * them encoded. Streams order the device alone. */
static void test_mixed_crops(void **state)
{
    (void)state;
    for (int submitted = 0; submitted < 2; submitted++) {
        zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
        zarr_request *rq = NULL;
        struct counts n;
        struct crops c;
        struct pw w;
        zarr_array *a;
        zarr_tensor t;

        open_world(&w, 2, 1 << 20);
        a = pw_array(w.store, "a", "[" SHARD("[5,4]", BYTES "," LATE, "end") "]", shape,
                     (uint64_t[2]){20, 20});
        zarr_tensor_host(&t, NULL, data, sizeof data, 2, sizes);
        assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
        assert_ok(zarr_array_block_erase(a, (uint64_t[2]){2, 0}, NULL, &terr));
        crops_make(&w, &c);
        crops_mix(&c);
        count_begin(&n, &opts);
        if (submitted) {
            assert_ok(zarr_array_read_many_submit(&rq, a, c.part, CROPS, &opts, &terr));
            assert_ok(zarr_request_wait(rq, ZARR_WAIT_FOREVER, NULL, &terr));
            zarr_request_free(rq);
        } else {
            assert_ok(zarr_array_read_many(a, c.part, CROPS, &opts, &terr));
        }
        count_end(&n);
        mixed_are_right(&c, ZARR_OK);
        assert_int_equal(n.stats.elements, CROPS * CROP);
        assert_int_equal(n.stats.copies_decoded_host, 0);
        assert_in_range(n.moved.bytes_up, 1, sizeof data);
        damage = data[45 * COLS + 28];
        assert_status(zarr_array_read_many(a, c.part, CROPS, NULL, &terr),
                      ZARR_ERR_CORRUPT);
        damage = -1;
        mixed_are_right(&c, ZARR_ERR_CORRUPT);
        crops_free(&w, &c);
        zarr_array_free(a);
        close_world(&w);
    }
}

/* Gives each crop elements of its own; every seventh has only the fill value. */
static void crops_fill(const struct crops *c)
{
    static const uint64_t lengths[2] = {CROP_ROWS, CROP_COLS};

    for (int i = 0; i < CROPS; i++) {
        for (int k = 0; k < CROP; k++)
            crop_data[i][k] = i % 7 ? 100000 + i * CROP + k : -1;
        assert_int_equal(zarr_fakedev_poke(c->mem.handle, c->t[i].byte_offset,
                                           crop_data[i], sizeof crop_data[i]),
                         0);
        zarr_tensor_host(&host_tensor[i], NULL, crop_data[i], sizeof crop_data[i], 2,
                         lengths);
        host_part[i] =
            (zarr_io_part){.selection = c->part[i].selection, .tensor = &host_tensor[i]};
    }
}

/* What is stored is what the host's memory gives, whatever the chain; crops overlap. */
static void test_written(void **state)
{
    int n_cases = 0;

    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads += 3)
        for (uint64_t wave = 1024; wave <= (1 << 20); wave *= 1024)
            for (int k = 0; k < N_KINDS; k++) {
                zarr_io_options o = ZARR_IO_OPTIONS_INIT, o2 = ZARR_IO_OPTIONS_INIT;
                zarr_stats host = ZARR_STATS_INIT;
                struct counts n;
                struct crops c;
                struct pw w;
                zarr_array *d, *h;

                if (n_cases++ % ZR_CASE_STEP != 0)
                    continue;
                open_world(&w, threads, wave);
                d = filled_array(&w, "d", k);
                h = filled_array(&w, "h", k);
                assert_ok(zarr_array_block_erase(d, (uint64_t[2]){0, 0}, NULL, &terr));
                assert_ok(zarr_array_block_erase(h, (uint64_t[2]){0, 0}, NULL, &terr));
                crops_make(&w, &c);
                crops_fill(&c);
                count_begin(&n, &o);
                assert_ok(zarr_array_write_many(d, c.part, CROPS, &o, &terr));
                count_end(&n);
                o2.stats = &host;
                assert_ok(zarr_array_write_many(h, host_part, CROPS, &o2, &terr));
                same_arrays(&w, "d", "h", k);
                for (int i = 0; i < CROPS; i++)
                    assert_int_equal(c.part[i].status, ZARR_OK);
                assert_int_equal(n.stats.elements, host.elements);
                assert_int_equal(n.stats.elements, CROPS * CROP);
                assert_int_equal(n.stats.chunks_done, host.chunks_done);
                assert_int_equal(n.stats.chunks_missing, host.chunks_missing);
                assert_int_equal(n.stats.read_modify_writes, host.read_modify_writes);
                crops_free(&w, &c);
                zarr_array_free(d);
                zarr_array_free(h);
                close_world(&w);
            }
}

/* Hundreds of small parts in a few chunks, most of them over others. */
static void test_small_parts(void **state)
{
    enum {
        SMALL = 700
    };
    static const uint64_t lengths[2] = {2, 3};
    static const uint64_t count[2] = {2, 3};
    static zarr_io_part part[SMALL], from_host[SMALL];
    static zarr_tensor t[SMALL], host[SMALL];
    unsigned seed = 3;
    struct pw w;
    zarr_array *d, *h;
    zarr_tensor whole;
    zarr_memory mem;

    (void)state;
    open_world(&w, 2, 1 << 20);
    d = filled_array(&w, "d", 6);
    h = filled_array(&w, "h", 6);
    mem = tensor_new(&w, &whole, sizes);
    assert_int_equal(zarr_fakedev_poke(mem.handle, 0, data, sizeof data), 0);
    for (int i = 0; i < SMALL; i++) {
        const uint64_t at[2] = {(uint64_t)rand_r(&seed) % 9,
                                (uint64_t)rand_r(&seed) % 12};
        zarr_selection *sel = NULL;

        assert_ok(zarr_selection_box(&sel, 2, shape, at, count, &terr));
        t[i] = whole;
        t[i].shape = lengths;
        t[i].byte_offset = (uint64_t)i * 5 * 4;
        part[i] = (zarr_io_part){.selection = sel, .tensor = &t[i]};
        zarr_tensor_host(&host[i], NULL, data + (size_t)i * 5, UINT64_C(24), 2, lengths);
        from_host[i] = (zarr_io_part){.selection = sel, .tensor = &host[i]};
    }
    assert_ok(zarr_array_write_many(d, part, SMALL, NULL, &terr));
    assert_ok(zarr_array_write_many(h, from_host, SMALL, NULL, &terr));
    same_arrays(&w, "d", "h", 6);
    for (int i = 0; i < SMALL; i++)
        zarr_selection_free((zarr_selection *)(uintptr_t)part[i].selection);
    zarr_memory_free(w.ctx, &mem);
    zarr_array_free(d);
    zarr_array_free(h);
    close_world(&w);
}

/* Crops side by side, which share chunks but do not overlap, are gathered by one list. */
static void test_write_calls(void **state)
{
    static const char *const chains[] = {
        "[" SHARD("[5,4]", BYTES "," LATE, "end") "]",
        "[" SHARD("[10,20]", SHARD("[5,4]", BYTES "," LATE, "end"), "end") "]",
        "[" SHARD("[5,4]", BIG, "end") "]",
    };

    (void)state;
    for (size_t k = 0; k < ZR_COUNT(chains); k++) {
        static const uint64_t lengths[2] = {7, 13};
        static const uint64_t count[2] = {7, 13};
        enum {
            MANY = 14 * 3
        };
        zarr_io_options o = ZARR_IO_OPTIONS_INIT;
        zarr_io_part part[MANY] = {{0}};
        zarr_tensor t[MANY], whole;
        int32_t got[N];
        struct counts n;
        struct pw w;
        zarr_array *a;
        zarr_memory mem;

        open_world(&w, 2, 1 << 20);
        a = pw_array(w.store, "a", chains[k], shape, (uint64_t[2]){20, 20});
        mem = tensor_new(&w, &whole, sizes);
        assert_int_equal(zarr_fakedev_poke(mem.handle, 0, data, sizeof data), 0);
        for (int i = 0; i < MANY; i++) {
            const uint64_t at[2] = {(uint64_t)i / 3 * 7, (uint64_t)i % 3 * 13};
            static const int64_t stride[2] = {(int64_t)COLS * 4, 4};
            zarr_selection *sel = NULL;

            assert_ok(zarr_selection_box(&sel, 2, shape, at, count, &terr));
            t[i] = whole;
            t[i].shape = lengths;
            t[i].strides = stride;
            t[i].byte_offset = (at[0] * COLS + at[1]) * 4;
            part[i] = (zarr_io_part){.selection = sel, .tensor = &t[i]};
        }
        count_begin(&n, &o);
        assert_ok(zarr_array_write_many(a, part, MANY, &o, &terr));
        count_end(&n);
        assert_int_equal(n.stats.waves, 1);
        assert_int_equal(n.stats.elements, 98 * 39);
        /* fills of what no crop has, gather, compare, down; or down alone */
        assert_in_range(n.late.lists, k < 2 ? 2 : 1, k < 2 ? 4 : 2);
        assert_in_range(n.late.syncs, 1, 3);
        assert_in_range(n.late.calls - (uint64_t)atomic_load(&n_late.encode_jobs), 2, 8);
        if (k < 2)
            assert_int_equal(atomic_load(&n_late.encode_calls), 1);
        zarr_tensor_host(&whole, NULL, got, sizeof got, 2, sizes);
        assert_ok(zarr_array_read(a, NULL, &whole, NULL, &terr));
        for (int i = 0; i < N; i++)
            assert_int_equal(got[i], i / COLS < 98 && i % COLS < 39 ? data[i] : -1);
        for (int i = 0; i < MANY; i++)
            zarr_selection_free((zarr_selection *)(uintptr_t)part[i].selection);
        zarr_memory_free(w.ctx, &mem);
        zarr_array_free(a);
        close_world(&w);
    }
}

/* A chunk of the array, with its inner chunks if it has some, and how many of its
 * elements the crops have. */
static int crops_cover(const struct crops *c, uint64_t row, uint64_t col,
                       const uint64_t *chunk)
{
    static bool have[N];
    int n = 0;

    memset(have, 0, sizeof have);
    for (int i = 0; i < CROPS; i++)
        for (int k = 0; k < CROP; k++)
            have[(c->at[i][0] + (uint64_t)(k / CROP_COLS)) * COLS + c->at[i][1] +
                 (uint64_t)(k % CROP_COLS)] = true;
    for (uint64_t i = 0; i < N; i++)
        n += have[i] && i / COLS - row < chunk[0] && i % COLS - col < chunk[1];
    return n;
}

/* The corner of a leaf of which the crops have a part. */
static void half_covered(const struct crops *c, const uint64_t *leaf, uint64_t *at)
{
    for (at[0] = 0; at[0] < ROWS; at[0] += leaf[0])
        for (at[1] = 0; at[1] + leaf[1] <= COLS; at[1] += leaf[1]) {
            const int n = crops_cover(c, at[0], at[1], leaf);

            if (n > 0 && (uint64_t)n < leaf[0] * leaf[1])
                return;
        }
    fail();
}

/* An old value that is damaged fails the crops that need it, and no other. */
static void test_write_failure(void **state)
{
    static const struct {
        int kind;
        uint64_t leaf[2];
    } tried[] = {{5, {7, 9}}, {11, {2, 4}}, {12, {5, 4}}};

    (void)state;
    for (size_t n = 0; n < ZR_COUNT(tried); n++) {
        const uint64_t *chunk = kinds[tried[n].kind].chunk;
        static int32_t want[N], got[N];
        uint64_t at[2] = {0, 0};
        int failed = 0;
        struct crops c;
        struct pw w;
        zarr_tensor t;
        zarr_array *a;

        open_world(&w, 2, 1 << 20);
        a = filled_array(&w, "a", tried[n].kind);
        crops_make(&w, &c);
        crops_fill(&c);
        half_covered(&c, tried[n].leaf, at);
        damage = data[at[0] * COLS + at[1]];
        memcpy(want, data, sizeof data);
        assert_status(zarr_array_write_many(a, c.part, CROPS, NULL, &terr),
                      ZARR_ERR_CORRUPT);
        damage = -1;
        for (int d = 0; d < 2; d++)
            at[d] = at[d] / chunk[d] * chunk[d];
        for (int i = 0; i < CROPS; i++) {
            const bool touches =
                c.at[i][0] < at[0] + chunk[0] && at[0] < c.at[i][0] + CROP_ROWS &&
                c.at[i][1] < at[1] + chunk[1] && at[1] < c.at[i][1] + CROP_COLS;

            failed += touches;
            assert_int_equal(c.part[i].status, touches ? ZARR_ERR_CORRUPT : ZARR_OK);
            for (int k = 0; k < CROP; k++)
                want[(c.at[i][0] + (uint64_t)(k / CROP_COLS)) * COLS + c.at[i][1] +
                     (uint64_t)(k % CROP_COLS)] = crop_data[i][k];
        }
        assert_in_range(failed, 1, CROPS - 1);
        zarr_tensor_host(&t, NULL, got, sizeof got, 2, sizes);
        assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
        for (uint64_t i = 0; i < N; i++)
            assert_int_equal(got[i],
                             i / COLS - at[0] < chunk[0] && i % COLS - at[1] < chunk[1]
                                 ? data[i]
                                 : want[i]);
        crops_free(&w, &c);
        zarr_array_free(a);
        close_world(&w);
    }
}

/* ---- places that a selection repeats -------------------------------------------- */

static zarr_selection *repeated_points(void)
{
    static const int64_t at[] = {3, 4, 5, 6, 3, 4, 99, 39, 5, 6, 3, 4, 0, 0, 99, 39};
    static const uint64_t n = ZR_COUNT(at) / 2;
    zarr_selection *sel = NULL;

    assert_ok(zarr_selection_points(&sel, 2, shape, n, at, 1, &n, &terr));
    return sel;
}

static void test_repeats(void **state)
{
    static const char *const texts[] = {"[5,6,5,6,5,7], 1:39", "[9,9,9], [4,5,4,5]",
                                        "3:90, [7,3,7,30,3,7]", NULL};

    (void)state;
    for (int k = 0; k < N_KINDS; k++)
        for (size_t i = 0; i < ZR_COUNT(texts); i++) {
            uint64_t lengths[2] = {1, 1};
            zarr_selection *sel = NULL;
            zarr_tensor t, host;
            struct pw w;
            zarr_array *d, *h;
            zarr_memory mem;

            open_world(&w, 2, 1 << 20);
            d = filled_array(&w, "d", k);
            h = filled_array(&w, "h", k);
            if (texts[i])
                assert_ok(zarr_selection_parse(&sel, 2, shape, texts[i], &terr));
            else
                sel = repeated_points();
            for (int dim = 0; dim < zarr_selection_ndim(sel); dim++)
                lengths[dim] = (uint64_t)zarr_selection_shape(sel)[dim];
            mem = tensor_new(&w, &t, lengths);
            t.ndim = zarr_selection_ndim(sel);
            for (int e = 0; e < N; e++)
                data[e] += 50000;
            assert_int_equal(zarr_fakedev_poke(mem.handle, 0, data, sizeof data), 0);
            zarr_tensor_host(&host, NULL, data, sizeof data, t.ndim, lengths);
            assert_ok(zarr_array_write(d, sel, &t, NULL, &terr));
            assert_ok(zarr_array_write(h, sel, &host, NULL, &terr));
            same_arrays(&w, "d", "h", k);
            zarr_selection_free(sel);
            zarr_memory_free(w.ctx, &mem);
            zarr_array_free(d);
            zarr_array_free(h);
            close_world(&w);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crops),         cmocka_unit_test(test_written),
        cmocka_unit_test(test_mixed_crops),   cmocka_unit_test(test_write_calls),
        cmocka_unit_test(test_write_failure), cmocka_unit_test(test_repeats),
        cmocka_unit_test(test_small_parts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
