/*
 * unit/pipe/batch/test_device_shape_writes.c - writes of a device where the chunks of a
 * grid differ in shape. A batch of units has as many waits as with one shape. Each call
 * that fails ends the write, damage names its chunk, and what is declined is done alone.
 */
#include "unit/pipe/device_shapes.h"

/* Writes a selection of `data` from the device. */
static zarr_status write_some(const struct pw *w, zarr_array *a, const char *text,
                              zarr_io_options *opts)
{
    struct source s;
    zarr_status st;

    source_open(w, &s, text);
    st = zarr_array_write(a, s.sel, &s.t, opts, &terr);
    source_close(w, &s);
    return st;
}

static void write_same(const struct pw *w, zarr_array *a, zarr_array *h, const char *text)
{
    struct source s;

    source_open(w, &s, text);
    assert_ok(zarr_array_write(a, s.sel, &s.t, NULL, &terr));
    assert_ok(zarr_array_write(h, s.sel, &s.host, NULL, &terr));
    source_close(w, &s);
    for (uint64_t r = 0; r < ZR_COUNT(rows); r++)
        for (uint64_t c = 0; c < ZR_COUNT(columns); c++)
            same_value(w, (const char *[2]){"a", "h"}, r, c);
}

/* What is written from the device is stored as from the host, also chunks with the fill
 * value alone and those that keep something. */
static void test_write(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads += 3)
        for (uint64_t wave = 1024; wave <= (1 << 20); wave *= 1024)
            for (size_t c = 0; c < ZR_COUNT(chains); c++) {
                zarr_array *a, *h;
                struct pw w;

                open_world(&w, threads, wave);
                a = array_of_shapes(&w, "a", chains[c].codecs);
                h = array_of_shapes(&w, "h", chains[c].codecs);
                for (int i = 0; i < N; i++)
                    data[i] = i / 400 % 3 ? 5000 + i : -1;
                write_same(&w, a, h, "3:90, 5:37");
                write_same(&w, a, h, "::7, 1::3");
                write_same(&w, a, h, "...");
                zarr_array_free(a);
                zarr_array_free(h);
                close_world(&w);
            }
}

/* Two waits, for the lengths and the copies, or one where the lengths are known; one more
 * if old values are decoded. */
static void test_write_calls(void **state)
{
    static const struct {
        const char *codecs;
        int calls, waits, old;
    } of[] = {
        {"[" BYTES "]", 0, 1, 0},
        {"[" BYTES "," LATE "]", SHAPES, 2, 1},
        {"[" TURN "," BIG "," LATE "]", SHAPES, 2, 1},
    };

    (void)state;
    for (size_t i = 0; i < 2 * ZR_COUNT(of); i++) {
        const bool old = i % 2;
        zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
        struct counts n;
        zarr_array *a;
        struct pw w;

        open_world(&w, 2, 1 << 20);
        a = array_of_shapes(&w, "a", of[i / 2].codecs);
        count_begin(&n, &opts);
        assert_ok(write_some(&w, a, old ? "1:99, 1:39" : "...", &opts));
        count_end(&n);
        assert_int_equal(n.stats.waves, 1);
        assert_int_equal(n.stats.chunks_done, CHUNKS);
        assert_int_equal(atomic_load(&n_late.encode_calls), of[i / 2].calls);
        /* the one chunk of 20 x 15 elements keeps nothing */
        assert_int_equal(atomic_load(&n_late.calls),
                         old && of[i / 2].calls ? SHAPES - 1 : 0);
        assert_int_equal(n.late.syncs, of[i / 2].waits + (old ? of[i / 2].old : 0));
        zarr_array_free(a);
        close_world(&w);
    }
}

/* Whichever chunk cannot be encoded, the error names it. */
static void test_write_damage(void **state)
{
    static int32_t got[N];
    zarr_array *a;
    struct pw w;

    (void)state;
    open_world(&w, 2, 1 << 20);
    a = array_of_shapes(&w, "a", "[" BYTES "," LATE "]");
    for (uint64_t r = 0, row = 0; r < ZR_COUNT(rows); row += rows[r++])
        for (uint64_t c = 0, column = 0; c < ZR_COUNT(columns); column += columns[c++]) {
            refuses = data[row * COLS + column];
            assert_status(write_some(&w, a, "...", NULL), ZARR_ERR_CORRUPT);
            same_key(r, c);
        }
    refuses = 0;
    declines = ZARR_ERR_UNSUPPORTED;
    assert_ok(write_some(&w, a, "...", NULL));
    declines = ZARR_OK;
    compare_read(&w, a, "...", got);
    assert_memory_equal(got, data, sizeof data);
    zarr_array_free(a);
    close_world(&w);
}

/* Each of both answers with half of the chains. */
static void test_failing_writes(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZR_COUNT(chains); i++) {
        const zarr_status status = i % 2 ? ZARR_ERR_NO_MEMORY : ZARR_ERR_DEVICE;
        bool passed = false;
        zarr_array *a;
        struct pw w;

        open_world(&w, 2, 1 << 20);
        a = array_of_shapes(&w, "a", chains[i].codecs);
        for (uint64_t k = 4; !passed; k += ZR_FAIL_STEP(k)) {
            struct source s;
            zarr_status st;

            assert_true(k < 2000);
            source_open(&w, &s, k % 2 ? "..." : "1:99, 1:39");
            zarr_context_trim(w.ctx); /* so that blocks are allocated each time */
            zarr_fakedev_fail(device, ZARR_FAKEDEV_ALL, k, status);
            st = zarr_array_write(a, s.sel, &s.t, NULL, &terr);
            zarr_fakedev_fail(device, 0, 0, ZARR_OK);
            assert_true(st == ZARR_OK || st == status);
            passed = st == ZARR_OK && k > 150;
            assert_ok(zarr_array_write(a, s.sel, &s.t, NULL, &terr));
            source_close(&w, &s);
        }
        zarr_array_free(a);
        close_world(&w);
    }
}

/* A large unit and small ones are written in part: each old value takes its own length.
 */
static void test_lengths(void **state)
{
    enum {
        LARGE = 1 << 18, /* elements */
        SMALL = 8,
        ALL = LARGE + 15 * SMALL
    };
    static const uint64_t all[1] = {ALL};
    static int32_t in[ALL], out[ALL];
    const zarr_array_spec spec = {
        .struct_size = sizeof spec,
        .ndim = 1,
        .shape = all,
        .data_type = "int32",
        .fill_value = "-1",
        .chunk_grid = "{\"name\":\"rectilinear\",\"configuration\":{\"kind\":\"inline\","
                      "\"chunk_shapes\":[[262144,8,8,8,8,8,8,8,8,8,8,8,8,8,8,8]]}}",
        .codecs = "[" BYTES "," LATE "]"};
    uint64_t length[1] = {ALL};
    zarr_selection *sel = NULL;
    zarr_array *a = NULL;
    zarr_tensor t;
    uint64_t before;
    zarr_memory mem;
    struct pw w;

    (void)state;
    pinned_bytes = UINT64_C(1) << 20; /* the rest is counted as ordinary memory */
    open_world(&w, 2, 0);
    pinned_bytes = 0;
    assert_ok(zarr_array_create(&a, w.store, "a", &spec, NULL, &terr));
    for (int i = 0; i < ALL; i++)
        in[i] = i;
    zarr_tensor_host(&t, NULL, in, sizeof in, 1, length);
    assert_ok(zarr_array_write(a, NULL, &t, NULL, &terr));
    zarr_context_trim(w.ctx);
    assert_ok(zarr_selection_parse(&sel, 1, all, "::2", &terr));
    length[0] = ALL / 2;
    assert_ok(zarr_memory_alloc(&mem, w.ctx, ZARR_DEVICE_EXT, 0, sizeof in, &terr));
    t = (zarr_tensor)ZARR_TENSOR_INIT;
    t.device_type = ZARR_DEVICE_EXT;
    t.ndim = 1;
    t.data = mem.handle;
    t.data_bytes = mem.bytes;
    t.shape = length;
    before = atomic_load(&w.n_bytes);
    atomic_store(&w.peak_bytes, before);
    assert_ok(zarr_array_write(a, sel, &t, NULL, &terr));
    assert_in_range(atomic_load(&w.peak_bytes) - before, 0, 12 << 20);
    length[0] = ALL;
    zarr_tensor_host(&t, NULL, out, sizeof out, 1, length);
    assert_ok(zarr_array_read(a, NULL, &t, NULL, &terr));
    for (int i = 1; i < ALL; i += 2)
        assert_int_equal(out[i], i);
    zarr_memory_free(w.ctx, &mem);
    zarr_selection_free(sel);
    zarr_array_free(a);
    close_world(&w);
}

/* ---- locks -------------------------------------------------------------------- */

/* A store that does not look at the cancel object of lock(), over one that has locks. */
static struct {
    zarr_store *below;
    int held, most;
    int block, n_earlier; /* the last one; how often an earlier one followed it */
} deaf;

static void deaf_caps(void *self, zarr_store_caps *out)
{
    (void)self;
    *out = (zarr_store_caps){.struct_size = sizeof *out,
                             .flags = ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_WRITE |
                                      ZARR_STORE_CAP_LOCK | ZARR_STORE_CAP_WRITES_WAIT};
}

static void deaf_run(void *self, zarr_store_op *op, zarr_error *err)
{
    (void)self;
    (void)zr_store_run_one(deaf.below, op, err);
}

static zarr_status deaf_lock(void *self, const char *key, const zarr_cancel *cancel,
                             void **lock, zarr_error *err)
{
    int r = 0, c = 0, block;

    (void)self;
    (void)cancel;
    if (sscanf(key, "a/c/%d/%d", &r, &c) != 2)
        return zr_store_lock(deaf.below, key, NULL, lock, err);
    block = r * (int)ZR_COUNT(columns) + c;
    deaf.n_earlier += deaf.held > 0 && block < deaf.block;
    deaf.block = block;
    if (++deaf.held > deaf.most)
        deaf.most = deaf.held;
    return zr_store_lock(deaf.below, key, NULL, lock, err);
}

static void deaf_unlock(void *self, void *lock)
{
    (void)self;
    deaf.held--;
    zr_store_unlock(deaf.below, lock);
}

/* A request that holds the lock of a block waits only for locks of later blocks, whatever
 * their shapes are: two requests never wait for each other. */
static void test_lock_order(void **state)
{
    static const zarr_store_vtable vt = {.struct_size = sizeof vt,
                                         .name = "deaf",
                                         .caps = deaf_caps,
                                         .run = deaf_run,
                                         .lock = deaf_lock,
                                         .unlock = deaf_unlock};
    zarr_store *store = NULL;
    zarr_array *a;
    struct pw w;

    (void)state;
    open_world(&w, 1, 1 << 20);
    memset(&deaf, 0, sizeof deaf);
    deaf.below = w.store;
    zarr_array_free(array_of_shapes(&w, "a", "[" BYTES "," LATE "]"));
    assert_ok(zarr_store_open_custom(&store, w.ctx, &vt, &deaf, NULL, &terr));
    assert_ok(zarr_array_open(&a, store, "a", NULL, &terr));
    assert_ok(write_some(&w, a, "::2, ::2", NULL));
    assert_int_equal(deaf.most, CHUNKS);
    assert_int_equal(deaf.held, 0);
    assert_int_equal(deaf.n_earlier, 0);
    zarr_array_free(a);
    zarr_store_free(store);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write),        cmocka_unit_test(test_write_calls),
        cmocka_unit_test(test_write_damage), cmocka_unit_test(test_failing_writes),
        cmocka_unit_test(test_lengths),      cmocka_unit_test(test_lock_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
